#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The keeper against clients that casemate itself is not.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

[ -x "${3:-}" ] || bail 'the third argument is the client to test with'
cp "$3" "$top/bin/keeper_client"

# speak ID WHAT: to the keeper of the only session that listens
speak() {
	local dir=$work/runtime/casemate/s
	[ "$uid" != 0 ] || dir=/run/casemate/s
	last_args="(client) $*"
	limit=40 timeout --foreground -k 5 60 "${as[@]}" "$top/bin/keeper_client" "$dir"/* "$@" \
		>"$work/out" 2>"$work/err"
	rc=$?
}

begin 'a hundred time limits'
run run --session f -- true
speak f limits
expect_status 0 'are all kept'
expect_stderr '' 'and none is refused'
run rm --files f
finish

begin 'hundreds of ends against large requests'
run run --session f -- true
speak f flood
expect_status 0 'are all answered'
expect_stderr '' 'and none is refused'
run run --session f -- echo still
expect_out still 'the session goes on'
run rm --files f
finish

begin 'a client of another version'
run run --session f -- true
speak f version
expect_status 0 'can look, and stop the session'
is "$(head -n 2 "$work/out")" "session 'f' was started by another version of casemate (protocol 1, and not 2)
stop the session and start it again: casemate stop f" 'is told so'
like "$(sed -n 3p "$work/out")" 'a request that is unknown*' 'and gets nothing else'
is "$(our_processes)" '' 'nothing runs'
run run --session f -- echo again
expect_out again 'it starts again'
run rm --files f
finish

done_testing
