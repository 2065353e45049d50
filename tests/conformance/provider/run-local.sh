#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The suite of providers with sessions on this machine; see run.sh.
#
#   run-local.sh DIRECTORY-OF-THE-BINARIES root|plain SUITE [GROUP[/TEST]]
# shellcheck source=tests/integration/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../integration/lib.sh"

only=${4:-}
# beside the keeper that it starts
cp "$3" "$top/bin/provider-suite"

begin 'provider local'
# what this host cannot give
lacks=
if ! has_groups; then
	lacks='limit-memory limit-cpu limit-pids'
fi
[ "$identity" = root ] || lacks+=' root-user'
allow '/(ids|s|sessions|kept|new|tmp)( |/)'
CM_TEST_SKIPS=$lacks limit=560 timeout --foreground -k 5 560 "${as[@]}" "$top/bin/provider-suite" \
	local ${only:+"$only"} >"$work/suite"
status=$?
plan=$(sed -n 's/^1\.\.\([0-9]*\)$/\1/p' "$work/suite")
grep -v '^1\.\.' "$work/suite"
[ -n "$plan" ] || bail "the suite ended with status $status"
count=$plan
failed=$(grep -c '^not ok' "$work/suite")
finish
done_testing
