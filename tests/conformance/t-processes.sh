#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Conformance: process management.  spawn is `casemate exec -d`; its handle an exec id: `wait`,
# `logs`, `stdin`, `kill`, `ps`.
# shellcheck disable=SC2016
# SC2016: what single quotes keep from this shell is for the shell inside
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

begin spawn
new_box box
spawn -- sleep 0.1
like "$id" '1.[0-9]*' 'P1 spawn gives an id at once'
spawn -- echo hello
wait_for "$id"
is "$rc $(logs "$id")" '0 hello' 'P2 its stdout'
spawn -- sh -c 'echo oops >&2'
wait_for "$id"
is "$(logs "$id" --stream stderr)/$(logs "$id" --stream stdout)" 'oops/' 'P3 its stderr'
spawn -- sh -c 'exit 42'
wait_for "$id"
expect_status 42 'P4 its exit status'
spawn -e V=value -- printenv V
wait_for "$id"
is "$(logs "$id")" value 'P5 its environment'
run rm --files "$box"
finish

begin 'output as it comes'
new_box box
spawn -- sh -c 'echo a; sleep 0.1; echo b'
is "$(cm logs "$box" "$id" -f | tr '\n' ' ')" 'a b ' 'P6 all of stdout'
spawn -- sh -c 'echo a >&2; sleep 0.1; echo b >&2'
is "$(cm logs "$box" "$id" -f 2>&1 >/dev/null | tr '\n' ' ')" 'a b ' 'P7 all of stderr'
spawn -- sh -c 'echo early; sleep 30'
start logs "$box" "$id" -f
until_true 5 grep -q early "$work/out" && is_running "$id"
ok 'P8 stdout comes while the command runs'
run kill "$box" "$id"
wait_bg
spawn -- sh -c 'echo early >&2; sleep 30'
start logs "$box" "$id" -f
until_true 5 grep -q early "$work/err" && is_running "$id"
ok 'P9 and so does stderr'
run kill "$box" "$id"
wait_bg
run rm --files "$box"
finish

begin 'the handle'
new_box box
spawn -- sh -c 'echo out; echo err >&2'
wait_for "$id"
is "$(logs "$id" --stream stdout)" out 'P10 stdout is kept'
is "$(logs "$id" --stream stderr)" err 'P11 stderr is kept'
spawn -- sleep 0.5
during=$(exec_info "$id" exitCode)
wait_for "$id"
is "$during $(exec_info "$id" exitCode)" 'null 0' 'P12 there is no exit status before the end'
spawn -- sh -c 'exit 4'
run wait "$box" "$id"
first=$rc
run wait "$box" "$id"
is "$first $rc" '4 4' 'P13 wait may be asked again'
spawn -- sleep 60
run kill "$box" "$id"
killed=$rc
wait_for "$id"
[ "$killed" = 0 ] && [ "$rc" -gt 128 ] && [ "$(exec_info "$id" killed)" = true ]
ok 'P14 kill of one that runs'
spawn -- true
wait_for "$id"
run kill "$box" "$id"
[ "$rc" != 0 ] && [ "$(exec_info "$id" exitCode) $(exec_info "$id" killed)" = '0 false' ]
ok 'P15 kill of one that has ended says so, and changes nothing'
run rm --files "$box"
finish

begin abort
new_box box
# to abort is to end the client that waits: its signal is the command's. At once, and not after the minute
# that the command takes; how soon that is, a busy machine says.
start exec "$box" -- sh -c 'echo begun; exec sleep 60'
until_true 5 grep -q begun "$work/out"
kill -TERM "$bg"
wait_bg
is "$rc $((elapsed_ms < 10000))" '143 1' 'P16 abort in the middle'
start exec "$box" -- sleep 60
kill -TERM "$bg"
wait_bg
is "$rc $((elapsed_ms < 10000)) $(cm ps "$box" --json | value '[state=running].exec')" '143 1 null' 'P17 abort before it began'
start exec "$box" -- sh -c 'echo partial; exec sleep 60'
until_true 5 grep -q partial "$work/out"
kill -INT "$bg"
wait_bg
is "$rc $(out)" '130 partial' 'P18 what was printed until then is there'
run rm --files "$box"
finish

begin stdin
new_box box
spawn -i -- head -n 1
echo 'a line' | run stdin "$box" "$id"
wait_for "$id"
is "$rc $(logs "$id")" '0 a line' 'P19 what is written is read'
echo late | run stdin "$box" "$id"
[ "$rc" != 0 ] && [ -s "$work/err" ]
ok 'P20 after the end that is refused'
run rm --files "$box"
finish

begin 'list and get'
new_box box
spawn -- sleep 60
long=$id
spawn -- true
short=$id
wait_for "$short"
is "$(exec_info "$long" state)" running 'P21 ps shows one that runs'
is "$(exec_info "$short" state) $(exec_info "$short" exitCode)" 'ended 0' \
	'P22 and one that ended, with its exit status'
like "$(exec_info "$long" command)" '*sleep*' 'P23 and the command'
is "$(exec_info "$long" exec) $(exec_info "$long" detached)" "$long true" 'P24 one is found by its id'
spawn -- echo kept
wait_for "$id"
is "$(exec_info "$id" state) $(logs "$id")" 'ended kept' 'P25 one that ended has its output'
spawn -- sh -c 'echo now; exec sleep 60'
until_true 5 shows "$id" now && is_running "$id"
ok 'P26 one that runs has its output so far'
run kill "$box" "$id"
is "$rc $(exec_info "$id" killed)" '0 true' 'P27 spawn, find and kill it'
# LocalSandbox forgets it once it was asked for; here the last 256 stay
spawn -- true
wait_for "$id"
first=$(exec_info "$id" exitCode)
is "$first $(exec_info "$id" exitCode)" '0 0' 'P28 one that ended is found again and again'
is "$(exec_info 9.999 state)" null 'P29 an unknown id is none'
run kill "$box" "$long"
is "$rc $(exec_info "$long" exec) $(exec_info "$long" state)" "0 $long ended" 'P30 one that was killed is still listed'
ids=()
for i in 1 2 3; do
	spawn -- sh -c "echo $i"
	ids+=("$id")
done
for id in "${ids[@]}"; do
	wait_for "$id"
done
outputs=()
for id in "${ids[@]}"; do
	outputs+=("$(logs "$id")")
done
is "$(printf '%s\n' "${ids[@]}" | sort -u | wc -l): ${outputs[*]}" '3: 1 2 3' \
	'P31 three at once have ids and outputs of their own'
spawn -- sh -c 'sleep 60 & sleep 60'
run kill "$box" "$id"
is "$rc $(exec_info "$id" killed) $(cm ps "$box" --json | value '[state=running].exec')" '0 true null' 'P32 kill by id'
run kill "$box" 9.999
[ "$rc" != 0 ] && [ -s "$work/err" ]
ok 'P33 kill of an unknown id is refused'
# LocalSandbox forgets it; here it is kept, and says how it ended
[ "$(exec_info "$id" killed)" = true ] && [ "$(exec_info "$id" exitCode)" != 0 ]
ok 'P34 after kill it is known as killed'
run rm --files "$box"
finish

begin environment
new_box box -e SHARED=session -e OVER=session
spawn -- printenv SHARED
wait_for "$id"
is "$(logs "$id")" session 'P35 the session'"'"'s environment is inherited'
spawn -e OVER=command -e MORE=command -- sh -c 'echo $SHARED $OVER $MORE'
wait_for "$id"
own=$(logs "$id")
spawn -- sh -c 'echo $SHARED $OVER [$MORE]'
wait_for "$id"
is "$own/$(logs "$id")" 'session command command/session session []' \
	'P36 a command'"'"'s own is over it, is added to it, and is that command'"'"'s alone'
run rm --files "$box"
finish

begin 'reader and writer'
new_box box
spawn -- sh -c 'for i in 1 2 3; do echo $i; sleep 0.1; done'
is "$(cm logs "$box" "$id" -f --stream stdout | tr '\n' ' ')" '1 2 3 ' 'P37 a reader gets the data'
spawn -- sh -c 'echo x; sleep 0.3'
timed run logs "$box" "$id" -f
is "$rc $(out) $((ms < 2300))" '0 x 1' 'P38 and ends when the command does'
spawn -i -- sh -c 'while read -r x; do echo "got $x"; done; echo end'
printf 'one\n' | run stdin "$box" "$id"
printf 'two\n' | run stdin "$box" "$id" --close
wait_for "$id"
is "$rc $(logs "$id" | tr '\n' ' ')" '0 got one got two end ' 'P39 a writer feeds stdin, and ends it'
run rm --files "$box"
finish

done_testing
