#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# escape.sh --list: README.md names every probe, and no other; prints the table's first columns.
here=$1
status=0

for file in "$here"/probe_*.c; do
	name=$(basename "$file" .c)
	grep -q "\`$name\`" "$here/README.md" || {
		echo "$name is not in tests/escape/README.md"
		status=1
	}
done
# shellcheck disable=SC2016
for name in $(grep -o '`probe_[a-z0-9_]*`' "$here/README.md" | tr -d '`' | sort -u); do
	[ -e "$here/$name.c" ] || {
		echo "tests/escape/README.md names $name, which is not there"
		status=1
	}
done
while IFS= read -r name; do
	grep -q "\`${name#case_}\`" "$here/README.md" || {
		echo "the case ${name#case_} is not in tests/escape/README.md"
		status=1
	}
done < <(grep -oh '^case_[a-z0-9_]*' "$here"/cases-*.sh)
[ $status -eq 0 ] && grep '^|' "$here/README.md" | cut -d'|' -f2-4
exit $status
