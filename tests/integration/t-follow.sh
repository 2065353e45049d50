#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Commands that somebody else started: listed, waited for, ended, written to, looked on; and what
# sessions use.
# shellcheck disable=SC2016
# SC2016: what single quotes keep from this shell is for the shell inside
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# session NAME [OPTION...]: a block's session, started
session() {
	run start "$@"
	is "$rc $(err)" '0 ' 'a session starts'
	session=$1
	# who is refused a control group that others have says so
	[ "$rc" = 0 ] || bail "no session: $(err)"
}

# detach ARGUMENT...: an exec id in $id
detach() {
	id=$(cm exec -d "$session" "$@") || bail "cannot start: $*"
}

state() { # ID: of a command, as --json has it
	cm ps -a --json "$session" | tr -d ' \n' | sed 's/},{"exec"/}\n{"exec"/g' |
		sed -n "s/.*\"exec\":\"$1\",\"state\":\"\([a-z-]*\)\".*/\1/p"
}

runs() { cm ps "$session" | grep '  running' | grep -qF "$1"; }
lists() { cm ps "$session" | grep -qF "$1"; }
printed() { cm logs "$session" "$id" | grep -q "$1"; }

# count_running REGEX: how often it is in somebody's command line; it must not match itself
count_running() { cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' ' ' | grep -o "$1" | wc -l; }

# wait for these alone: this shell may wait for ever for a process substitution that has ended
pids=()
background_end() {
	wait "${pids[@]}"
	pids=()
}

# a shell without jobs has what it starts in the background ignore INT
default_int=(env --default-signal=INT)

is_state() { [ "$(state "$1")" = "$2" ]; }

keeper_of() { # the keeper itself, not its init: its parent is not a keeper
	local pid exe
	for pid in $(our_processes); do
		exe=$(readlink "/proc/$pid/exe") || continue
		[ "$exe" = "$top/bin/casemate-keeper" ] || continue
		exe=$(readlink "/proc/$(awk '{ print $4 }' "/proc/$pid/stat")/exe")
		[ "$exe" = "$top/bin/casemate-keeper" ] || echo "$pid"
	done
}

is_gone() { ! kill -0 "$1" 2>/dev/null; }

end_session() {
	run rm --files "$session"
	is "$rc" 0 'the session goes'
}

begin 'ps'
session s
run ps nobody
refused "session 'nobody' not found" '*casemate ls*' 'of no session'
run ps a b
refused "'ps' takes one session, not 2" '*casemate ls*' 'of two'
run ps
expect_status 0 'of none is a list of sessions'
like "$(out)" 'ID *STAT*s *running*' 'as ls has it'
run ps --json
like "$(out)" '*"id": "s"*' 'and for programs'
run ps s
is "$rc $(out)" '0 EXEC      STATE           AGE      TIME     COMMAND' 'of one without commands'
detach -- sh -c 'exit 3'
first=$id
run wait s "$id"
detach -- sh -c 'sleep 300' x '' "it's" 'a b' $'one\ntwo\033[31m\\'
run ps s
like "$(out)" "*
1.1  *exit 3  *sh -c 'exit 3'*" 'how one ended'
is "$(out | sed -n 's/^1\.2  *running .* sh -c/sh -c/p')" "sh -c 'sleep 300' x '' 'it'\\''s' 'a b' \$'one\\x0atwo\\x1b[31m\\\\'" \
	'what runs, as it can be typed again'
got=$(eval "printf '%s|' $(out | sed -n 's/^1\.2 .* sh -c/sh -c/p')")
is "$got" "sh|-c|sleep 300|x||it's|a b|"$'one\ntwo\033[31m\\|' 'a shell reads it as it was'
run ps --json s
like "$(out | tr -d ' \n')" '*"exec":"1.2","state":"running","pid":[1-9]*"startedAt":"2*"endedAt":null,"end":null,"exitCode":null,"signal":null,"timedOut":null,*"command":\["sh","-c","sleep300","x","","it'"'"'s",*"detached":true,"tty":false,"stdin":false,"bytes":{"stdout":0,"stderr":0}*' 'all of it for programs'
like "$(out | tr -d ' \n')" '*"exec":"1.1","state":"ended","pid":null,*"endedAt":"2*"end":"exit","exitCode":3,*"timedOut":false,"killed":false,*' 'also of one that ended'
run ps -q s
is "$(out)" '1.1
1.2' 'the ids alone'
start exec s -- sleep 300
until_true 10 is_state 1.3 running
ok 'one that somebody waits for, too'
run ps s
like "$(out)" '*
1.3  *running  *sleep 300' 'with what it is'
run kill s 3
wait_bg
is_state 1.3 ''
ok 'and is gone when it has ended'
for _ in 1 2 3 4 5 6 7 8 9 10 11; do detach -- true; done
run wait s "$id"
run ps -q s
is "$(out | wc -l) $(out | head -n 1) $(out | grep -cx "$first")" '11 1.2 0' 'the last ten that ended'
run ps -qa s
is "$(out | wc -l) $(out | head -n 1)" '13 1.1' '-a: all'
detach -- sh -c 'setsid sleep 300 >/dev/null 2>&1 & exit 5'
until_true 10 is_state "$id" children-left
ok 'one of which children live on'
run ps --json s
like "$(out | tr -d ' \n')" "*\"exec\":\"$id\",\"state\":\"children-left\"*\"exitCode\":5*\"childrenLeft\":true*" 'and how it ended'
start exec s -- sh -c 'exec sleep 300' "$(head -c 3000 /dev/zero | tr '\0' x)"
until_true 10 runs 'xxx...'
ok 'a long one in the foreground is cut'
run stop s
wait_bg
run ps -a s
like "$(out)" '*
1.2  *killed  *' 'of a session that has stopped'
is "$(out | grep -c running)" 0 'nothing runs'
run start s
detach -- true
is "$id" 2.1 'a new start has numbers of its own'
end_session
finish

begin 'wait'
session s
detach -- sh -c 'sleep 0.3; echo out; exit 3'
run wait s "$id"
is "$rc $(out) $(err)" '3  ' 'the exit status is the command'"'"'s'
run wait s "${id#*.}"
is "$rc $(out) $(err)" '3  ' 'at once when it has ended, and by its number alone'
detach -- sh -c 'kill -9 $$'
run wait s "$id"
is "$rc $(err)" "137 note: command $id has ended: SIGKILL" 'a signal'
detach --timeout 200ms -- sleep 300
run wait -q s "$id"
is "$rc $(err)" '124 ' 'its own time limit'
detach -- sleep 300
before=$(now_ms)
run wait --timeout 300ms s "$id"
refused "command $id still runs after 300ms" "*casemate wait s $id*casemate kill*" 'no longer than that'
[ $(($(now_ms) - before)) -lt 5000 ]
ok 'nor much longer'
run wait --timeout 100ms --json s "$id"
like "$rc $(out)" '125 {"exec":"*","state":"running",*' 'and programs see that it runs'
run wait --timeout soon s "$id"
refused '*--timeout*soon*' '*' 'a time that is none'
"${default_int[@]}" "${as[@]}" "$casemate" wait s "$id" &
bg=$!
sleep 0.3
kill -INT "$bg"
wait_bg
is "$rc" 130 'INT ends it'
is_state "$id" running
ok 'and not the command'
start wait --json s "$id"
sleep 0.2
run kill s "$id"
wait_bg
is "$rc" 137 'one that is killed'
like "$(cat "$work/out")" '{"exec":*"state":"ended",*"end":"killed","exitCode":137,*"killed":true,*' 'and for programs'
start exec s -- sh -c 'sleep 1; exit 6'
until_true 10 runs 'sleep 1;'
run wait s "$(cm ps -q s | tail -n 1)"
is "$rc" 6 'one that another waits for'
wait_bg
run wait s 99
refused "session 's' has no command 99" '*casemate ps*s*' 'none of that name'
run wait s x.y
refused '*' '*' 'no name'
run wait s
refused "'wait' takes a session and a command of it" '*casemate ps*' 'none at all'
run exec -d s -- no-such-program
last=$(cm ps -aq s | tail -n 1)
run wait s "$last"
is "$rc" 127 'one that was not found'
# the session ends meanwhile
detach -- sleep 300
start wait s "$id"
sleep 0.3
cm stop s
wait_bg
is "$rc $(cat "$work/err")" "137 note: command $id has ended: killed" 'the session is stopped meanwhile'
run wait s "$id"
is "$rc" 137 'and afterwards'
run start s
detach -- sleep 300
start wait s "$id"
sleep 0.3
kill -KILL "$(keeper_of)"
wait_bg
is "$rc" 125 'its keeper is killed'
like "$(cat "$work/err")" "casemate: how command $id ended is not known
hint: the session ended before the command did*" 'and that is said'
run wait --json s "$id"
like "$rc $(out)" "125 {\"exec\":\"$id\",\"state\":\"unknown\",*\"end\":null,\"exitCode\":null,*" 'also later'
run ps s
like "$(out)" "*
$id  *unknown  *" 'ps shows it so'
end_session
finish

begin 'kill'
session s
detach -- sh -c 'trap "" TERM; setsid sh -c "trap \"\" TERM; sleep 301; sleep 301" & sleep 301; sleep 301'
sleep 0.3
before=$(now_ms)
run kill s "$id"
took=$(($(now_ms) - before))
is "$rc $(out)$(err)" '0 ' 'ends a command'
[ $took -ge 1500 ] && [ $took -lt 10000 ]
ok 'with two seconds for those that do not want to'
is "$(count_running 'slee[p] 301')" 0 'and all that it started'
run kill s "$id"
is "$rc $(err)" "1 casemate: command $id has ended already (killed)" 'twice'
detach -- sh -c 'exit 4'
run wait s "$id"
run kill --json s "$id"
like "$rc $(out)" '1 {*"exitCode":4,*' 'one that ended by itself'
run kill s 1.99
refused "session 's' has no command 1.99" '*1.1, 1.2*casemate ps*' 'one that is not there'
detach -- sh -c 'trap "echo got; exit 9" USR1; echo ready; while :; do sleep 0.05; done'
until_true 10 printed ready
run kill -s USR1 s "$id"
is "$rc $(out)$(err)" '0 ' '-s: a signal'
run wait s "$id"
expect_status 9 'which the command gets'
for name in sigterm TERM 15; do
	detach -- sleep 300
	run kill -s $name s "$id"
	run wait -q s "$id"
	expect_status 143 "-s $name"
done
run kill -s NO s "$id"
refused "'NO' is no signal" '*kill -l*' '-s: no signal'
detach -- sh -c 'setsid sleep 302 & sleep 302'
until_true 10 eval '[ "$(count_running "slee[p] 302")" -ge 3 ]'
run kill -s KILL s "$id"
until_true 10 is_state "$id" children-left
ok '-s KILL: to the main process'"'"'s group alone'
run kill s "$id"
like "$rc $(err)" "1 casemate: command $id has ended already (SIGKILL)
hint: processes that it started live on*casemate stop s*" 'what it left is said'
start exec s -- sh -c 'sleep 300'
until_true 10 runs 'sleep 300'
run kill --json s "$(cm ps -q s | tail -n 1)"
like "$rc" 0 'one that another waits for'
wait_bg
is "$rc" 137 'who is told'
end_session
finish

begin 'stdin'
session s
head -c 5000000 /dev/urandom >"$work/data"
give "$work/data"
detach -i -- sha256sum
run stdin --close s "$id" <"$work/data"
is "$rc $(err)" '0 ' 'five million bytes'
run wait s "$id"
run logs s "$id"
is "$(out)" "$(sha256sum <"$work/data")" 'come as they are'
detach -i -- cat
run stdin s "$id" < <(printf 'one\n')
run stdin s "$id" < <(printf 'two\n')
is_state "$id" running
ok 'its input stays open'
run stdin --close s "$id" </dev/null
is "$rc $(err)" '0 ' 'until it is closed'
run wait s "$id"
run logs s "$id"
is "$rc $(out)" '0 one
two' 'all of it came'
run stdin s "$id" < <(echo x)
like "$rc $(err)" "125 casemate: command $id has ended (exit 0)
hint: *" 'one that has ended'
detach -- sleep 300
run stdin s "$id" < <(echo x)
like "$rc $(err)" '125 casemate: the command was started without an input *
hint: *exec -d -i*' 'one without an input'
run stdin --close s "$id" </dev/null
is "$rc" 125 'nor can that be closed'
detach -i -- sleep 300
"${default_int[@]}" "${as[@]}" "$casemate" stdin s "$id" </dev/zero &
bg=$!
sleep 0.5
kill -0 $bg
ok 'who does not read is waited for'
kill -INT $bg
wait_bg
is "$rc" 130 'until INT'
run kill s "$id"
detach -i -- sh -c 'exec 0<&-; exec sleep 300'
sleep 0.3
run stdin s "$id" < <(echo x)
like "$rc $(err)" "125 casemate: command $id has closed its input*" 'one that has closed it'
detach -i -- sh -c 'head -c 10 >/dev/null; exit 2'
run stdin s "$id" </dev/zero
like "$rc $(err)" "125 casemate: command $id has ended*" 'one that ends meanwhile'
detach -i -- sh -c 'setsid sleep 300 & sleep 0.5'
run stdin s "$id" < <(sleep 3)
like "$rc $(err)" "125 casemate: command $id has ended*" 'and whose children hold it'
# writers at once
detach -i -- cat
for i in 1 2 3 4 5 6 7 8; do
	head -c 4095 /dev/zero | tr '\0' "$i" >"$work/part.$i"
	echo >>"$work/part.$i"
	give "$work/part.$i"
	for _ in 1 2 3 4 5; do
		cm stdin s "$id" <"$work/part.$i"
	done &
	pids+=($!)
done
background_end
run stdin --close s "$id" </dev/null
run wait s "$id"
run logs s "$id"
is "$(out | sort | uniq -c | awk '{ print $1, length($2) }' | sort -u)" '5 4095' 'what several write stays whole'
# a terminal
detach -t -- sh -c 'stty -echo; echo ready; cat; echo over'
until_true 10 printed ready
run stdin s "$id" < <(printf 'typed\n')
run stdin --close s "$id" < <(printf 'and more\n')
is "$rc $(err)" '0 ' 'to a terminal it is typed'
run wait s "$id"
run logs s "$id"
is "$(out | tr -d '\r')" 'ready
typed
and more
over' 'with its end'
detach -i -- sleep 300
"${as[@]}" "$casemate" stdin s "$id" < <(sleep 5) 2>"$work/err" &
bg=$!
sleep 0.3
kill -KILL "$(keeper_of)"
wait_bg
like "$rc $(err)" "125 casemate: command $id has *" 'its keeper is killed'
end_session
finish

begin 'attach'
session s
detach -i -- sh -c 'echo before; while read -r a; do echo "got $a"; echo "err $a" >&2; done; exit 5'
until_true 10 printed before
run attach s "$id" < <(printf 'a\nb\n')
is "$rc $(out)" '5 got a
got b' 'from now on, with input, to the end'
is "$(err)" 'err a
err b' 'and its errors'
run attach s "$id" --tail 2
is "$rc $(out)" '5 got a
got b' 'the last lines of one that has ended'
run attach -q s "$id" -n 99
is "$rc $(out | head -n 1)" '5 before' 'as many as there are'
run attach -q s "$id"
is "$rc $(out)$(err)" '5 ' 'or none'
detach -- sh -c 'seq 100000; sleep 0.5; seq 5; sleep 0.5'
sleep 0.3
run attach -n 3 s "$id"
is "$rc $(out | tr '\n' ' ')" '0 99998 99999 100000 1 2 3 4 5 ' 'lines before, and from then on'
detach -i -- sh -c 'while read -r a; do echo "$a"; done; echo over'
"${as[@]}" "$casemate" attach --no-stdin s "$id" >"$work/seen" &
bg=$!
sleep 0.3
run stdin s "$id" < <(echo x)
run attach s "$id" < <(echo y)
wait_bg
is "$rc $(cat "$work/seen")" '0 x
y
over' 'several at once, and one that only looks on'
detach -i -- cat
start attach s "$id" </dev/null
sleep 0.3
is_state "$id" running
ok 'no input ends nothing'
kill -TERM "$bg"
wait_bg
is "$rc" 143 'TERM ends it'
is_state "$id" running
ok 'and not the command'
"${as[@]}" "$casemate" attach s "$id" </dev/null | true
is_state "$id" running
ok 'nor does a reader that goes away'
run kill s "$id"
start exec s -- sleep 300
until_true 10 runs 'sleep 300'
fore=$(cm ps -q s | tail -n 1)
run attach s "$fore"
refused "command $fore has its output at who started it*" '*casemate wait s*' 'one that somebody waits for'
run kill s "$fore"
wait_bg
detach -- sh -c 'i=0; while [ $i -lt 3000 ]; do echo "line $i"; i=$((i+1)); done; sleep 1; echo last'
for i in 1 2 3 4 5 6; do
	"${as[@]}" "$casemate" attach -n 100000 s "$id" </dev/null >"$work/many.$i" &
	pids+=($!)
	"${as[@]}" "$casemate" logs -f s "$id" >"$work/logs.$i" &
	pids+=($!)
done
background_end
is "$(cat "$work"/many.? "$work"/logs.? | sort | uniq -c | awk '{ print $1 }' | sort | uniq -c | awk '{ print $1, $2 }')" '3001 12' 'six look on and six read'
detach -- sh -c 'head -c 20000000 /dev/zero; exit 8'
"${as[@]}" "$casemate" attach -n 1 s "$id" </dev/null | (
	sleep 1
	wc -c
) | read -r bytes
[ "${PIPESTATUS[0]}" = 0 ] || true
is "$bytes" 20000000 'a slow reader gets all of it'
detach -- sleep 300
start attach s "$id"
sleep 0.3
cm stop s
wait_bg
is "$rc" 137 'the session is stopped meanwhile'
run start s
detach -- sh -c 'echo x; sleep 300'
start attach -n 5 s "$id"
until_true 10 grep -q x "$work/out"
kill -KILL "$(keeper_of)"
wait_bg
is "$rc $(cat "$work/out")" '125 x' 'its keeper is killed'
like "$(cat "$work/err")" "casemate: how command $id ended is not known*" 'and that is said'
end_session
finish

begin 'a hundred at once'
session s
for i in $(seq 100); do
	cm exec -d -i s -- sh -c 'read -r a; exit $((a % 7))' >"$work/id.$i" &
	pids+=($!)
done
background_end
mapfile -t ids < <(cat "$work"/id.*)
is "${#ids[@]} $(cm ps --json s | grep -c '"state": "running"')" '100 100' 'are listed'
run stats --json s
is "$(json commands | tr -d ' ')" 100 'and counted'
for i in "${ids[@]}"; do
	cm wait -q s "$i"
	echo "$i $?" >"$work/rc.$i"
done &
pids+=($!)
for i in "${ids[@]}"; do
	(cm wait -q s "$i" || echo "$i $?" >"$work/also.$i") &
	pids+=($!)
done
for i in "${ids[@]}"; do
	(echo "${i#*.}" | cm stdin s "$i" 2>>"$work/not-taken") &
	pids+=($!)
done
background_end
is "$(cat "$work/not-taken")" '' 'who wrote what ended a command has not failed'
wrong=0
for i in "${ids[@]}"; do
	want="$i $((${i#*.} % 7))"
	[ "$(cat "$work/rc.$i")" = "$want" ] || wrong=$((wrong + 1))
	[ "$(cat "$work/also.$i" 2>/dev/null || echo "$i 0")" = "$want" ] || wrong=$((wrong + 1))
done
is $wrong 0 'each got its input, and each waiter its end'
# what is left of one is looked for again when the next one has ended
cm exec s -- true
until_true 10 eval '! lists "children left"'
run ps s
is "$(out | grep -c 'exit ')" 10 'ten of them are shown'
end_session
finish

begin 'stats'
session s
detach -- sh -c 'while :; do :; done'
detach -- sleep 300
sleep 0.5
run stats
expect_status 0 'of all that run'
like "$(out)" 'ID  *CPU  *MEMORY*
s  *%  *iB  *  2*' 'in a table'
run stats --json s
percent=$(json cpuPercent)
[ "$(json commands | tr -d ' ')" = 2 ] && [ "$(json processes | tr -d ' ')" -ge 3 ] &&
	[ "$(json memoryBytes | tr -d ' ')" -gt 10000 ] && [ "${percent%.*}" -gt 5 ]
ok 'for programs: commands, processes, memory, and a processor that is busy'
is "$(json diskBytes)" '' 'without --size no disk'
cm exec s -- sh -c 'head -c 3000000 /dev/urandom >~/a; head -c 3000000 /dev/urandom >/tmp/a; head -c 3000000 /dev/urandom >a'
run stats --json --size s
disk=$(json diskBytes | tr -d ' ')
[ "$disk" -ge 9000000 ] && [ "$disk" -lt 10000000 ]
ok 'with it: home, /tmp and session directory'
run inspect --json --size s
is "$(json diskUsedMB | tr -d ' ')" 9 'inspect has it, too'
[ "$(json memoryUsedMB | tr -d ' ')" -ge 0 ] && percent=$(json cpuPercent | tr -d ' ') && [ "${percent%.*}" -gt 5 ]
ok 'and what it uses'
run stats nobody
like "$rc $(err)" "125 casemate: session 'nobody' not found*" 'of no session'
run stop s
run stats s
like "$rc $(err)" "125 casemate: session 's' does not run*" 'of one that has stopped'
run stats
is "$rc $(out | wc -l)" '0 1' 'none runs'
run inspect --json s
like "$(out | tr -d ' \n')" '*"resources":{"memoryMB":null,"memoryUsedMB":null,"cpuCores":null,"cpuPercent":null,"diskMB":null,"diskUsedMB":null}*' 'inspect knows nothing then'
end_session
if has_groups; then
	run start s --memory 256M --cpus 1.5
	run stats --json s
	is "$(json memoryLimitBytes | tr -d ' ') $(json cpuLimit | tr -d ' ')" '268435456 1.5' 'limits'
	is "$(json approximate | tr -d ' ' | grep -c memory)" 0 'memory is counted by the group'
	[ "$(json memoryPeakBytes | tr -d ' ')" -gt 10000 ]
	ok 'and what it was at the most'
	session=s
	end_session
else
	skip CGROUP "$user has none" 'limits'
fi
finish

done_testing
