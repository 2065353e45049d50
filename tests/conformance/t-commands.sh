#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Conformance: command execution.  executeCommand is `casemate exec`.
# shellcheck disable=SC2016
# SC2016: what single quotes keep from this shell is for the shell inside
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

begin commands
new_box box
run exec "$box" --json -- echo hello
is "$rc $(value exitCode <"$work/out") $(value stdout <"$work/out")" '0 0 hello' \
	'C1 echo: exit status 0 and what it printed'
run exec "$box" -- printf '%s\n' 'some longer text'
like "$(out)" '*longer*' 'C2 stdout has the text'
run exec "$box" --json -- sh -c 'echo oops >&2'
is "$(value stdout <"$work/out")/$(value stderr <"$work/out")" '/oops' 'C3 stderr is kept apart'
run exec "$box" --json -- sh -c 'exit 1'
is "$rc $(value exitCode <"$work/out")" '1 1' 'C4 a failure is its exit status, and no failure of ours'
run exec "$box" -- echo one two three
expect_out 'one two three' 'C5 arguments keep their order'
run exec "$box" -- sh -c 'echo "$#:$1"' sh 'a b'
expect_out '1:a b' 'C6 an argument with a space is one'
run exec "$box" -e GREETING=hi -- printenv GREETING
expect_out hi 'C7 a variable'
run exec "$box" -e A=1 -e B=2 -- sh -c 'echo $A-$B'
expect_out 1-2 'C8 two variables'
# LocalSandbox with bwrap ignores it; here it holds
run exec "$box" -w /tmp -- pwd
expect_out /tmp 'C9 a directory outside of the workspace'
# LocalSandbox never reads its own, and sends one TERM; here it is kept, and says 124
timed run exec "$box" --json --timeout 100ms -- sh -c 'trap "" TERM; while :; do sleep 10; done'
is "$rc $(value timedOut <"$work/out") $((ms < 6000))" '124 true 1' \
	'C10 a timeout ends the command, also one that ignores TERM'
pids=()
for i in 1 2 3; do
	cm exec "$box" -- sh -c "sleep 0.1; echo $i" >"$work/out.$i" 2>&1 &
	pids+=($!)
done
all_of "${pids[@]}"
is "$bad $(cat "$work/out."[123] | tr '\n' ' ')" '0 1 2 3 ' 'C11 three at once: each has its own output'
pids=()
for i in 1 2 3; do
	cm exec "$box" -e "V=$i" -- sh -c 'sleep 0.1; echo $V' >"$work/out.$i" 2>&1 &
	pids+=($!)
done
all_of "${pids[@]}"
is "$bad $(cat "$work/out."[123] | tr '\n' ' ')" '0 1 2 3 ' 'C12 and its own environment'
run rm --files "$box"
finish

done_testing
