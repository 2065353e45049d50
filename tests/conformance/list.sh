#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# README.md's table and the tests have the same numbers and names: 12, 11, 39 and 13 of them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

# a number is used once: as the beginning of a name
in_tests() {
	sed -n "s/^.*'\([CLPR][0-9]\{1,2\} .*\)'\$/\1/p" t-*.sh | sed "s/'\"'\"'/'/g" | sort -V
}
in_table() { sed -n 's/^| \([CLPR][0-9]*\) | \([^|]*\) |.*/\1 \2/p' README.md | sort -V; }

expected() {
	local group
	for group in C:12 L:11 P:39 R:13; do
		seq -f "${group%:*}%g" "${group#*:}"
	done
}

status=0
diff <(in_table) <(in_tests) || status=1
diff <(expected | sort -V) <(in_tests | cut -d ' ' -f 1) || status=1
[ $status = 0 ] || echo 'the table (<) and the tests (>) differ' >&2
exit $status
