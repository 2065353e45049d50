#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# How a run ended, for programs: --json, --result, --failure-exit, and what is said to people.
# shellcheck disable=SC2016
# SC2016: what single quotes keep from this shell is for the shell inside
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

python=/usr/bin/python3
valid() { $python -m json.tool <"$1" >/dev/null 2>&1; }
[ -x $python ] || skip_all PYTHON 'no python3'

begin '--json'
run run --json -- sh -c 'printf "a\"b\n\001"; echo err >&2; exit 3'
expect_status 3 'the status is the command'"'"'s'
valid "$work/out" && [ "$(wc -l <"$work/out")" = 1 ]
ok 'is one object on one line'
is "$(json v) $(json phase) $(json end) $(json exitCode) $(json timedOut) $(json outputBytes)" \
	'1 run exit 3 false 9' 'and says how it ended'
is "$($python -c 'import json,sys; o=json.load(sys.stdin); print(repr(o["stdout"]), repr(o["stderr"]))' <"$work/out")" \
	"'a\"b\\n\\x01' 'err\\n'" 'with the output'
expect_stderr '' 'and nothing beside it'
run run --json --timeout 200ms -- sleep 9
is "$(json end) $(json timedOut) $(json exitCode) $(json code) $rc" 'timeout true 124 timeout 124' 'a timeout'
run run --json -- sh -c 'kill -TERM $$'
is "$(json end) $(json signal) $(json exitCode) $rc" 'signal 15 143 143' 'a signal'
run run --json -- no-such-program
is "$(json end) $(json exitCode) $(json code) $rc" 'not-executed 127 not-found 127' 'a program that is not there'
run run --json -w /no/such -- true
is "$(json exitCode) $(json code) $rc" '125 invalid 125' 'a directory that is not there'
run run --json --output 1K -- sh -c 'yes'
is "$(json end) $(json code)" 'output-limit limit' 'the output limit'
run run --json -- printf 'bad \xff\xfe utf-8'
valid "$work/out"
ok 'bytes that are no text are made some'
run run --json -- sh -c 'head -c 3000000 /dev/zero | tr "\0" x'
valid "$work/out" && [ "$(json outputBytes)" = 3000000 ]
ok '3 MB of it'
run start s --json
is "$(json end) $(json exitCode) $(json phase) $rc" 'null 0 start 0' 'a start without a command has no end'
run rm --files s
finish

begin '--result'
run run --result "$work/w/result" -- sh -c 'echo live; exit 4'
is "$(out) $rc" 'live 4' 'output goes through'
valid "$work/w/result"
ok 'the file has an object'
is "$(json end "$work/w/result") $(json exitCode "$work/w/result") $(json phase "$work/w/result")" 'exit 4 run' 'that says how it ended'
! grep -q stdout "$work/w/result"
ok 'without the output'
is "$(find "$work/w" -name '*result*' | wc -l)" 1 'and nothing is beside it'
rm -f "$work/w/result"
run run --result result -- true
valid "$work/w/result"
ok 'a name without a directory'
rm -f "$work/w/result"
echo old >"$work/w/result"
run run --result "$work/w/result" -w /no/such -- true
is "$(json code "$work/w/result") $(json exitCode "$work/w/result") $(json end "$work/w/result")" 'invalid 125 not-executed' 'when the command could not start'
rm -f "$work/w/result"
run run --result "$work/w/result" --workspace / -- true
is "$(json phase "$work/w/result") $(json end "$work/w/result") $rc" 'start failed 125' 'when the session could not'
[ -n "$(json hint "$work/w/result")" ]
ok 'with the hint'
rm -f "$work/w/result"
run run --result fd:5 -- sh -c 'exit 6' 5>"$work/fd"
is "$(json exitCode "$work/fd") $rc" '6 6' 'fd:N'
run run --result fd:5 -- sh -c 'ls /proc/self/fd | wc -l' 5>"$work/fd"
is "$(out)" 4 'which does not get inside'
run run --result fd:9 -- true
refused 'cannot write the result to descriptor 9*' '*' 'a descriptor that is not open'
run run --result fd:5 -- true 5</dev/null
refused 'cannot write the result to descriptor 5*' '*' 'one that cannot be written'
run run --result "$work/w" -- true
refused "cannot write the result to '$work/w'*" '*' 'a directory'
run run --result "$work/w/no/such" -- touch ran
refused "cannot write the result to*" '*' 'a directory that is not there'
[ ! -e "$work/w/ran" ]
ok 'and the command is not run in vain'
mkdir "$work/w/out" "$work/elsewhere" && echo theirs >"$work/elsewhere/result" && give "$work/w/out" "$work/elsewhere"
run run --result "$work/w/out/result" -- sh -c "mv out old && ln -s '$work/elsewhere' out"
expect_status 0 'control: the command puts a link where the directory was'
is "$(cat "$work/elsewhere/result")" theirs 'the result does not go where that leads'
is "$(json exitCode "$work/w/old/result")" 0 'but into the directory that was meant'
rm -rf "$work/w/out" "$work/w/old" "$work/elsewhere"
finish

begin 'a wrong command line'
run run --memory nonsense --result "$work/w/result" -- touch "$work/w/ran"
is "$rc $(json phase "$work/w/result") $(json end "$work/w/result") $(json code "$work/w/result") $(json exitCode "$work/w/result")" \
	'125 start failed invalid 125' 'a bad value after which --result comes'
valid "$work/w/result" && [ -n "$(json message "$work/w/result")" ] && [ -n "$(json hint "$work/w/result")" ]
ok 'with the message and the hint'
rm -f "$work/w/result"
run run --failure-exit 9 --result result --xyzzy -- touch "$work/w/ran"
is "$rc $(json code result) $(json exitCode result)" '9 invalid 9' 'an unknown option'
rm -f result
run run --result fd:5 --ref main -- touch "$work/w/ran" 5>"$work/fd"
is "$rc $(json code "$work/fd")" '125 invalid' 'options that contradict each other, and fd:N'
run run --result fd:5 5>"$work/fd"
is "$rc $(json code "$work/fd")" '125 invalid' 'no command'
run run --json --memory nonsense -- true
valid "$work/out"
ok '--json prints an object'
is "$rc $(json end) $(json code) $(json stdout)" '125 failed invalid ' 'that says it'
echo '{"memroy": 1}' >.casemate.json
give .casemate.json
run run --result fd:5 -- true 5>"$work/fd"
is "$rc $(json code "$work/fd")" '125 invalid' 'a file of the repository'
rm .casemate.json
run run --memory nonsense -- true --result "$work/w/result"
[ "$rc" = 125 ] && [ ! -e "$work/w/result" ]
ok 'an option of the command'"'"'s own is none of ours'
run run --memory nonsense --result "$work/w/no/such" -- true
is "$rc $(grep -c '^casemate: ' "$work/err")" '125 2' 'where it cannot be written, both are said'
! grep -q 'has run' "$work/err" && [ ! -e "$work/w/ran" ]
ok 'and that nothing has run'
run run --result "$work/w/no/such" -- true
is "$rc $(grep -c '^casemate: ' "$work/err")" '125 1' 'a right line with such a result is refused in one sentence'
finish

begin 'a killed casemate writes no half'
: >"$work/out"
start run --result "$work/w/result" -- sh -c 'echo ready; sleep 30'
until_true 10 grep -q ready "$work/out"
kill -TERM "$bg"
wait_bg
is "$(json end "$work/w/result") $(json exitCode "$work/w/result") $rc" 'signal 143 143' 'TERM: how it ended is written'
rm -f "$work/w/result"
start run --result "$work/w/result" -- sh -c 'echo ready; sleep 30'
until_true 10 grep -q ready "$work/out"
kill -KILL "$bg"
wait_bg
[ ! -e "$work/w/result" ]
ok 'KILL: nothing is'
# what the killed one left is taken away by the next
run run -- true
expect_status 0 'the next run'
finish

begin 'what is said'
run run -- true
is "$(out)$(err)" '' 'nothing, when nothing went wrong'
run run --verbose -- true
grep -q '^casemate: ' "$work/err" && [ ! -s "$work/out" ]
ok '--verbose: a line a phase, on stderr'
run run -q -- bash -c 'exec 3<>/dev/tcp/192.0.2.1/80' 2>/dev/null
! grep -qi 'no network' "$work/err"
ok '-q: no notes'
run run -q --workspace / -- true
grep -q '^casemate: ' "$work/err"
ok '-q: errors all the same'
run run --failure-exit 99 --workspace / -- true
expect_status 99 '--failure-exit'
run run --failure-exit 99 -- sh -c 'exit 5'
expect_status 5 'which is not for the command'
run run --failure-exit 300 -- true
expect_status 125 'nor for what is no status'
finish

begin 'output limit'
run run --output 1000 -- sh -c 'head -c 999 /dev/zero; echo'
is "$(wc -c <"$work/out") $rc" '1000 0' 'up to the limit'
run run --output 1000 -- sh -c 'trap "" PIPE TERM; head -c 100000 /dev/zero; sleep 60'
is "$rc" 137 'above it the command is ended'
[ "$(wc -c <"$work/out")" -le 1000 ]
ok 'and no more than it comes out'
like "$(err)" 'casemate: command ended by the output limit (*)
hint: *' 'and it is said'
finish

done_testing
