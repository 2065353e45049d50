# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the tests of toolchains share, over lib.sh: a command that works outside works inside.
#
#   works PREREQUISITE NAME [OPTION... --] COMMAND...
#
# runs it in a jail, in the current directory.  When it fails, the same command runs outside as the
# same user: does it fail there, too, the tool or the machine is the reason and the test is skipped.
#
# Prerequisite TOOLS is what scripts/packages names; others are tools that a machine may have.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# Whose test it is can be another than who runs the script: of PATH, what that user can enter.
usable_path() {
	local entry kept=''
	while read -r -d : entry; do
		"${as[@]}" test -x "$entry" && kept=$kept:$entry
	done <<<"$PATH:"
	PATH=${kept#:}
}
# shellcheck disable=SC2034
machine_home=$(getent passwd "$(id -u)" | cut -d : -f 6)
# shellcheck disable=SC2034
machine_path=$PATH
usable_path

outside() { timeout --foreground -k 5 "${limit:-60}" "${as[@]}" "$@"; }

works() { # PREREQUISITE NAME [OPTION... --] COMMAND...
	local prerequisite=$1 name=$2 i
	shift 2
	run run "$@"
	if [ "$rc" = 0 ]; then
		ok "$name"
		return
	fi
	for ((i = 1; i <= $#; i++)); do
		[ "${!i}" != -- ] || {
			shift $i
			break
		}
	done
	# which may leave what a jail would not have
	allow '.'
	if outside "$@" >"$work/outside" 2>&1; then
		(exit "$rc")
		ok "$name"
		return 1
	fi
	tail -n 5 "$work/outside" | sed 's/^/# outside: /'
	skip "$prerequisite" 'it fails outside, too' "$name"
	return 1
}

# has TEXT NAME: a line of the last output is TEXT, which may be a pattern
has() {
	local line found=1
	while IFS= read -r line; do
		# shellcheck disable=SC2053
		[[ $line == $1 ]] && found=0 && break
	done < <(cat "$work/out" "$work/err")
	(exit $found)
	ok "$2" || echo "# wanted: $1"
}

# Settings that the machine's npm has and that are no secret, as a user would write them.
npm_settings() {
	[ ! -e /usr/include/node/node.h ] || echo 'nodedir=/usr' >"$HOME/.npmrc"
	printf 'fund=false\nupdate-notifier=false\n' >>"$HOME/.npmrc"
	give "$HOME/.npmrc"
}

put() { # FILE < TEXT: a file of the project's, with its directory
	mkdir -p "$(dirname "$1")"
	cat >"$1"
}

# shellcheck disable=SC2016
# The sources of hello, to the current directory, from where this machine gets its packages.
fetch_source() {
	local dir=$top/apt line
	local apt=(timeout 60 apt-get -q -q -o "Dir::Etc::sourcelist=$dir/sources.list"
		-o Dir::Etc::sourceparts=/dev/null -o "Dir::State::Lists=$dir/lists"
		-o "Dir::Cache=$dir/cache" -o Acquire::Retries=0)

	mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial"
	# the mirror and the suite that a package comes from which every system has
	line=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME) main' \
		'Created-By: Packages' 'Origin: Debian' 'Component: main' 2>/dev/null |
		grep -v -e -updates -e -security | head -n 1)
	[ -n "$line" ] || return 1
	echo "deb-src $line" >"$dir/sources.list"
	"${apt[@]}" update && "${apt[@]}" source --download-only hello
} >"$top/apt.log" 2>&1
