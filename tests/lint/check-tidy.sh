#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# clang-tidy over the compilation database of a build directory (second argument).
#
# A component is compiled once for each libc; only the shared flavour is looked at.  What passed is
# remembered by a hash of everything that went in, so that a second run looks at changes only.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
lint_need clang-tidy
lint_need clang

build=$(cd "${2:-build}" && pwd)
work=$build/lint-tidy
mkdir -p "$work/passed"

# "file<TAB>entry" of each source once, without the options that only gcc with musl knows
awk -v root="$lint_root/" '
/^[ \t]*"directory":/ { directory = $0 }
/^[ \t]*"command":/ {
	command = $0
	is_static = command ~ /_st\.dir\// || command ~ /CM_LIBC_MUSL/
	gsub(/ -specs=[^ ]*| -isystem [^ ]*musl-include| -DCM_LIBC_MUSL=1/, "", command)
}
/^[ \t]*"file":/ {
	file = $0
	sub(/^[^:]*: *"/, "", file)
	sub(/".*/, "", file)
	if (index(file, root) != 1)
		next
	file = substr(file, length(root) + 1)
	if (!(file in entry) || !is_static)
		entry[file] = directory command "\"file\": \"" root file "\""
}
END { for (file in entry) print file "\t" entry[file] }
' "$build/compile_commands.json" | sort >"$work/entries"

lint_files '\.c$' | join -t "$(printf '\t')" - "$work/entries" >"$work/chosen"
[ -s "$work/chosen" ] || {
	echo "the compilation database in $build names no file of the project"
	exit 1
}
{
	echo '['
	cut -f 2- "$work/chosen" | sed 's/^/{/; s/$/},/; $s/,$//'
	echo ']'
} >"$work/compile_commands.json"

tool=$(clang-tidy --version | tr -d '\n')
fingerprint() {
	local dependencies
	dependencies=$(clang -MM -MG -I. -Iruntime/include "$1" | tr -d '\134' | tr -s ' ' '\n' |
		sed 1d | while IFS= read -r one; do
		[ ! -f "$one" ] || echo "$one"
	done)
	# shellcheck disable=SC2086
	{ echo "$tool" && grep "^$1	" "$work/chosen" && sha256sum .clang-tidy $dependencies; } |
		sha256sum | cut -d ' ' -f 1
}

pending=()
while IFS= read -r file; do
	mark=$work/passed/$(fingerprint "$file")
	[ -e "$mark" ] || pending+=("$file" "$mark")
done < <(cut -f 1 "$work/chosen")

[ ${#pending[@]} -gt 0 ] || exit 0
# shellcheck disable=SC2016
printf '%s\0' "${pending[@]}" | xargs -0 -n 2 -P "$(nproc)" bash -c '
	output=$(clang-tidy --quiet -p "$0" --extra-arg=-Wno-unknown-warning-option "$1" 2>&1) || {
		printf "%s\n" "$output" | grep -vE "warnings? (generated|treated)"
		exit 1
	}
	: >"$2"
' "$work"
