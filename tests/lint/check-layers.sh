#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Quoted includes go down the layers only.  One line a directory: what files there may include.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# Public headers ("casemate/...") are open to all.  The first line whose path matches a file
# decides; a file that no line matches is an error, so that a new directory gets its line.
rules='
runtime/include/		-
runtime/base/			runtime/base/
runtime/spec/			runtime/(base|spec)/
runtime/store/			runtime/(base|spec|store)/
runtime/cli/			runtime/(base|spec|store|cli)/|providers/|isolation/host/
isolation/plan/build[a-z_]*[.]	runtime/(base|spec)/|isolation/plan/|isolation/host/host[.]h
isolation/plan/			runtime/base/|isolation/plan/
isolation/host/			runtime/base/|isolation/(plan|host)/
isolation/mech/			runtime/base/|isolation/(plan|mech)/
isolation/keeper/		runtime/base/|isolation/(plan|mech|keeper)/|runtime/store/(keeper_lock|journal|events)[.]h
isolation/checkout/		runtime/base/|isolation/checkout/
providers/			runtime/(base|spec|store)/|isolation/(plan|host)/|isolation/keeper/(proto|file_(link|proto|recv|send|stream))[.]h|providers/
tests/				runtime/|isolation/|providers/|tests/
'

rule_for() {
	local pattern allowed
	while read -r pattern allowed; do
		if [ -n "$pattern" ] && [[ $1 =~ ^$pattern ]]; then
			printf '%s\n' "$allowed"
			return
		fi
	done <<<"$rules"
}

includes='^[[:space:]]*#[[:space:]]*include[[:space:]]+"'

while IFS= read -r file; do
	allowed=$(rule_for "$file")
	if [ -z "$allowed" ]; then
		echo "$file" | lint_report "no layer is defined for"
		continue
	fi
	[ "$allowed" = - ] && allowed='casemate/'
	{ grep -nE "$includes" "$file" || :; } |
		{ grep -vE "\"(casemate/|$allowed)" || :; } | sed "s|^|$file:|" |
		lint_report "${file%/*} may include only $allowed"
	# a path that climbs or starts in the own directory hides the layer
	{ grep -nE "$includes([^\"/]*\"|[^\"]*\.\./)" "$file" || :; } | sed "s|^|$file:|" |
		lint_report "includes are written from the repository root"
done < <(lint_files '^(runtime|isolation|providers|tests)/.*\.(c|h|def)$')
exit "$lint_status"
