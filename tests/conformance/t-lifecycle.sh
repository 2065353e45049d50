#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Conformance: lifecycle.  getInfo is `casemate inspect --json`.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

begin lifecycle
run create one
box=one
is "$(info id) $(info name) $(info provider) $(info status)" 'one one local created' \
	'L1 id, name, provider and status are texts'
run create two
run create one
is "$rc $(cm ls --json | value '#') $(info id two)" '0 2 two' \
	'L2 two ids are two sessions, and one id is one'
# Mastra's word is pending; runtime/README.md has the table
is "$(status_of)" created 'L3 fresh: created, which is pending'
before=$(status_of)
run start one
is "$rc $(status_of)" '0 running' 'L4 started: running'
generation=$(info generation)
run start one
is "$rc $(status_of) $(info generation)" "0 running $generation" 'L5 starting it again is nothing'
run stop one
is "$rc $(status_of)" '0 stopped' 'L6 stopped: stopped'
[ "$before" != running ] && [ "$(info status two)" = created ]
ok 'L7 not running before its start'
run start one
is "$(info id) $(info name) $(info provider) $(info status)" 'one one local running' \
	'L8 inspect says id, name, provider and status of one that runs'
is "$(info status) $(cm ls --json | value '[id=one].status')" 'running running' 'L9 and the same status as ls'
run start bad --workspace "$work/no-such-directory"
like "$rc $(err); $(cm ls -q | tr '\n' ' ')" '125 *no-such-directory*; one two ' 'L10 what cannot be is refused, and makes no session'
run exec one -- echo works
is "$rc $(out)" '0 works' 'L11 after that a good one works'
run rm --files one two
finish

done_testing
