#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Functions that only one file may call, functions that nobody may call, notes to self, and what
# may stand at the top of the repository.
# shellcheck disable=SC2016
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

product=$(lint_files '^(runtime|isolation|providers)/.*\.(c|h|def)$')
tests=$(lint_files '^tests/.*\.[ch]$')

# a call, not a longer name and not a member
word() {
	printf '(^|[^A-Za-z0-9_.>])(%s)[[:space:]]*[(]' "$1"
}

# banned WHY FILES REGEX [PATHS THAT MAY]
banned() {
	local files=$2
	[ -n "$files" ] || return 0
	[ -z "${4:-}" ] || files=$(printf '%s\n' "$files" | grep -vE "$4" || :)
	[ -n "$files" ] || return 0
	# shellcheck disable=SC2086
	{ perl "$lint_dir/strip-c.pl" $files | grep -E ":[0-9]+:.*$(word "$3")" || :; } | lint_report "$1"
}

banned 'the environment is read in runtime/spec/config.c alone' "$product" \
	'getenv|secure_getenv' '^runtime/spec/config\.c$'
banned 'time is read in runtime/base/clock.c alone' "$product" \
	'clock_gettime|gettimeofday|time' '^runtime/base/clock\.c$'
banned 'memory is allocated in runtime/base/alloc.c alone' "$product" \
	'malloc|calloc|realloc|reallocarray|strdup|strndup|asprintf|vasprintf|alloca' \
	'^runtime/base/(alloc\.[ch]|fortify_shim\.c)$'
banned 'a length is missing here' "$product
$tests" 'strcpy|strcat|stpcpy|sprintf|vsprintf|gets'
banned 'no shell' "$product" 'system|popen'
banned 'numbers are read by runtime/base/num.h' "$product" 'atoi|atol|atoll|atof|sscanf'

lint_files '\.(c|h|def|sh|pl|cmake|py)$|^scripts/[a-z]+$|CMakeLists\.txt$|^\.ci/' |
	while IFS= read -r file; do
		grep -HnE '(^|[^A-Za-z_])(T[O]DO|F[I]XME|X[X]X)([^A-Za-z_]|$)' "$file" || :
	done | lint_report 'do it or say NEEDSWORK and why'

lint_files '.' | sed 's|/.*||' | sort -u |
	{ grep -vxE 'CMakeLists\.txt|README\.md|LICENSE|runtime|isolation|providers|tests|scripts|\..*' ||
		:; } | lint_report 'nothing else may stand at the top of the repository'

lint_files '\.[ch]$|\.def$' | while IFS= read -r file; do
	head -n 1 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0' || echo "$file"
done | lint_report 'the first line names the licence'
exit "$lint_status"
