#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs probes where they must reach, and in a jail, where they must be refused.
#
#   escape.sh DIRECTORY-OF-THE-BINARIES root|plain|sub GROUP DIRECTORY-OF-THE-PROBES [CASE...]
#   escape.sh --list     are all probes and cases in README.md, and no other probe?
#
# GROUP is a file cases-GROUP.sh: functions case_NAME, run in the order in which they stand there.
# An attempt counts only when the same program reached what it wanted outside (its control), and is
# then compared to the letter: a typo's ENOENT stops nothing.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

if [ "${1:-}" = --list ]; then
	exec bash "$here/list.sh" "$here"
fi
[ $# -ge 4 ] || {
	sed -n '5,6p' "$0" >&2
	exit 2
}
group=$3
probes=$(realpath -- "$4") || exit 2
only=("${@:5}")

. "$here/../integration/lib.sh"

# lib.sh has set it to its own directory
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mkdir "$top/probes"
cp "$probes"/probe_* "$top/probes/"
is_user() { [ "$identity" != root ]; }

# Namespaces of this caller's, without the rest of a jail: where most controls run.
# shellcheck disable=SC2034
if is_user; then
	weaker=(unshare --user --map-root-user --mount --uts --ipc --pid --fork --net --mount-proc)
else
	weaker=(unshare --mount --uts --ipc --pid --fork --mount-proc)
fi

use() { # PROBE...: into the workspace, where the jail sees it
	local name
	for name in "$@"; do
		cp "$top/probes/probe_$name" "$work/w/"
	done
	chmod 755 "$work"/w/probe_*
	give "$work/w"
	start_files
}

# as_caller COMMAND...: on the host, as who calls casemate
as_caller() { timeout --foreground -k 5 60 "${as[@]}" "$@"; }

# attack [OPTION-OF-CASEMATE-RUN...] -- CONTROL... -- PROBE...
# Standard input: a line "ATTEMPT: RESULT" for each line that the probe must print inside.
attack() {
	local options=() outside=() line attempt want got control
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	while [ "$1" != -- ]; do
		outside+=("$1")
		shift
	done
	shift
	cat >"$top/want"
	as_caller "${outside[@]}" >"$top/control" 2>"$top/control.err" </dev/null
	run run "${options[@]}" -- "$@"
	# a terminal's line ends, and what was typed into it
	sed -i 's/^ *//; s/\r$//' "$top/control" "$work/out"
	while IFS= read -r line; do
		attempt=${line%%: *}
		want=${line#*: }
		got=$(result_of "$attempt" "$work/out")
		control=$(result_of "$attempt" "$top/control")
		if [ "$got" != "$want" ]; then
			is "$got" "$want" "$attempt"
		elif [ "$want" != reached ] && [ "$control" != reached ]; then
			skip CONTROL "outside it is '${control:-not tried}'" "$attempt is $want"
		else
			is "$got" "$want" "$attempt is $want"
		fi
	done <"$top/want"
	line=$(sed 's/: [^:]*$//' "$work/out" | grep -vxFf <(sed 's/: [^:]*$//' "$top/want"))
	is "$line" '' 'the probe says nothing else'
}

result_of() { # ATTEMPT FILE
	awk -v want="$1: " 'index($0, want) == 1 { print substr($0, length(want) + 1) }' "$2"
}

# how often a race is tried
# shellcheck disable=SC2034
rounds=${CM_ESCAPE_ROUNDS:-40}

# status of a process that must not live on: true when it is gone within a second
gone() { ! until_true 1 kill -0 "$1" || ! kill -0 "$1" 2>/dev/null; }

cases=$here/cases-$group.sh
[ -r "$cases" ] || bail "no group '$group'"
# shellcheck source=/dev/null
. "$cases"
mapfile -t names < <(sed -n 's/^case_\([a-z0-9_]*\)().*/\1/p' "$cases")
for name in "${names[@]}"; do
	if [ ${#only[@]} -gt 0 ] && [[ " ${only[*]} " != *" $name "* ]]; then
		continue
	fi
	begin "$name"
	"case_$name"
	finish
done
done_testing
