#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The link sets: what each executable may contain.
#
#   check-links.sh BIN-DIRECTORY LIBC [ARCHIVE...]
#
# LIBC is musl, glibc or shared, as the build chose it.  The archives are those that were compiled
# against glibc and go into a static executable all the same: with musl, each name that they want
# of libc must be in archive-needs.txt, with the reason why the two libraries agree on it.
set -euo pipefail
lint_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=$1
libc=$2
shift 2
archives=("$@")
status=0

fail() {
	printf '%s\n' "$*"
	status=1
}

# a stripped file has no names to check, and that must not look like a clean one
names() {
	nm "$1" 2>/dev/null | awk '{ print $NF }' | sort -u
}

needs_names() {
	names "$1" | grep -x main >/dev/null || fail "$1 has no symbols: its link set cannot be checked"
}

static() {
	if readelf -lW "$1" | grep '^ *INTERP' >/dev/null; then
		fail "$1 is not static: it has an interpreter"
	fi
	if readelf -dW "$1" | grep '(NEEDED)'; then
		fail "$1 is not static: it needs shared libraries"
	fi
}

musl_only() {
	if names "$1" | grep -E '^(_IO_2_1_stdout_|__gconv|_dl_relocate_static_pie|__libc_start_call_main)$'; then
		fail "$1 contains parts of glibc"
	fi
}

# without FILE REGEX: what is linked in or asked of a shared library; our own static functions may
# be called as they like
without() {
	if nm -g "$1" 2>/dev/null | awk '{ print $NF }' | sed 's/@.*//' | grep -E "$2"; then
		fail "$1 contains what it must not link: $2"
	fi
	if [ "$libc" = shared ] && ldd "$1" | grep -E 'libyajl|libcurl|libgit2|libseccomp|libmicrohttpd' |
		grep -vE "${3:-^\$}"; then
		fail "$1 links a library that it must not"
	fi
}

archive_needs() {
	local file=$1 archive wanted
	for archive in "${archives[@]}"; do
		# only members of which something is in the executable
		wanted=$(nm -A "$archive" 2>/dev/null | awk -v have="$(names "$file" | tr '\n' ' ')" '
			BEGIN { n = split(have, list, " "); for (i = 1; i <= n; i++) in_file[list[i]] = 1 }
			{ member = $1; sub(/:[0-9a-f]*$/, "", member) }
			$(NF - 1) == "U" { wants[member] = wants[member] " " $NF; next }
			{ defined[$NF] = 1 }
			$(NF - 1) ~ /^[TDBR]$/ && $NF in in_file { used[member] = 1 }
			END {
				for (member in used) {
					n = split(wants[member], list, " ")
					for (i = 1; i <= n; i++)
						if (!(list[i] in defined))
							print list[i]
				}
			}' | sort -u)
		wanted=$(comm -23 <(printf '%s\n' "$wanted" | sed '/^$/d') \
			<(sed -n 's/^\([A-Za-z_][A-Za-z0-9_]*\).*/\1/p' "$lint_dir/archive-needs.txt" | sort -u))
		[ -z "$wanted" ] || fail "$file: ${archive##*/} draws from libc what archive-needs.txt does not list:" \
			"$(printf '%s' "$wanted" | tr '\n' ' ')"
	done
}

found=0
for name in casemate casemate-keeper; do
	file=$bin/$name
	[ -e "$file" ] || continue
	found=$((found + 1))
	needs_names "$file"
	[ "$libc" = shared ] || static "$file"
	if [ "$libc" = musl ]; then
		musl_only "$file"
		archive_needs "$file"
	fi
	case $name in
	casemate-keeper) without "$file" '^(yajl_|curl_|git_|seccomp_|MHD_|nftnl_|mnl_|ares_)' ;;
	casemate) without "$file" '^(curl_|git_|seccomp_|MHD_|nftnl_|mnl_|ares_)' libyajl ;;
	esac
done
# the one program that speaks to services: no part of it makes jails or reads packs
if [ -e "$bin/casemate-remote" ]; then
	needs_names "$bin/casemate-remote"
	readelf -dW "$bin/casemate-remote" | grep 'NEEDED.*libcurl' >/dev/null ||
		fail "$bin/casemate-remote does not link libcurl: it has not what it is for"
	if readelf -dW "$bin/casemate-remote" | grep -E 'NEEDED.*(libgit2|libseccomp|libmicrohttpd)'; then
		fail "$bin/casemate-remote links a library that it must not"
	fi
fi
[ $found -gt 0 ] || fail "there is no executable in $bin"
exit $status
