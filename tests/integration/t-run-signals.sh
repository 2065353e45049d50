#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Signals to casemate run, and the death of each of its processes.
# shellcheck disable=SC2016
# SC2016: what single quotes keep from this shell is for the shell inside
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# The command has said that it is there.
started() { grep -q ready "$work/out" 2>/dev/null; }

# keeper and init of the only session, by their parents
keeper_pid() {
	local dir
	for dir in /proc/[0-9]*; do
		[ "$(readlink "$dir/exe" 2>/dev/null)" = "$top/bin/casemate-keeper" ] || continue
		grep -q '^NSpid:[[:space:]][0-9]*$' "$dir/status" 2>/dev/null && ! is_init "$dir" &&
			echo "${dir#/proc/}"
	done
}
is_init() { grep -qE '^NSpid:.*[[:space:]]1$' "$1/status"; }
init_pid() {
	local dir
	for dir in /proc/[0-9]*; do
		[ "$(readlink "$dir/exe" 2>/dev/null)" = "$top/bin/casemate-keeper" ] || continue
		[ "$(awk '/^PPid:/ { print $2 }' "$dir/status")" = "$(keeper_pid)" ] &&
			echo "${dir#/proc/}"
	done
}

nothing_runs() { [ -z "$(our_processes)" ]; }

number() { kill -l "$1"; }

begin 'a signal to casemate'
for sig in INT TERM HUP QUIT; do
	# exec: a shell that is starting a child may keep the signal from it
	start run -- sh -c 'echo ready; exec sleep 30'
	until_true 10 started
	kill -s $sig "$bg"
	wait_bg
	is "$rc" $((128 + $(number $sig))) "$sig: the status is 128+n"
	[ "$elapsed_ms" -lt 1900 ]
	ok "$sig: at once (${elapsed_ms} ms)"
	is "$(out)" 'ready' "$sig: the command has ended"
done
finish

begin 'a signal while the jail is made'
# a keeper that hangs, in its own hand or (as long as the test wants) before it makes anything
helpers=$work/helpers/bin
mkdir -p "$helpers"
cp "$top/bin/"* "$helpers"
mv "$helpers/casemate-keeper" "$helpers/keeper"
was=$casemate
casemate=$helpers/casemate
keeper() { # TEXT
	printf '#!/bin/sh\necho $$ >%s\n%s\n' "$work/pid" "$1" >"$helpers/casemate-keeper"
	chmod 755 "$helpers/casemate-keeper"
}
: >"$work/pid"
give "$work/pid"
start_files
for sig in INT TERM HUP QUIT; do
	keeper 'exec sleep 1000'
	: >"$work/pid"
	start run -- true
	until_true 10 test -s "$work/pid"
	sleep 0.1
	kill -s $sig "$bg"
	wait_bg
	is "$rc $(out)" "$((128 + $(number $sig))) " "$sig: the status is 128+n"
	[ "$elapsed_ms" -lt 6000 ]
	ok "$sig: within seconds (${elapsed_ms} ms)"
	like "$(err)" 'casemate: stopped while the jail was made
hint: *' "$sig: which is said"
	! kill -0 "$(cat "$work/pid")" 2>/dev/null
	ok "$sig: the keeper is gone"
done
for args in '--session s' '--session s --keep' '--keep'; do
	keeper 'exec sleep 1000'
	: >"$work/pid"
	# shellcheck disable=SC2086
	start run $args -- true
	until_true 10 test -s "$work/pid"
	sleep 0.1
	kill -TERM "$bg"
	wait_bg
	! kill -0 "$(cat "$work/pid")" 2>/dev/null
	is "$? $rc $(cm ls | grep -cE '^(s|run-.*) ')" '0 143 0' "run $args: nothing is left"
done
# init hangs, and the keeper, which is nobody's child any more, hears of it over its socket
if need TOOLS strace 'a lasting one whose init hangs' &&
	"${as[@]}" strace -f -o /dev/null true 2>/dev/null; then
	keeper "exec strace -f -qq -o $work/trace -e trace=pivot_root -e inject=pivot_root:signal=STOP \
		-- $helpers/keeper \"\$@\""
	: >"$work/trace"
	give "$work/trace"
	start run --session s -- true
	until_true 10 grep -q pivot_root "$work/trace"
	kill -INT "$bg"
	wait_bg
	is "$rc $(cm ls | grep -c '^s ')" '130 0' 'a lasting one whose init hangs: nothing is left'
	[ "$elapsed_ms" -lt 4000 ]
	ok "and that at once ($elapsed_ms ms)"
fi
casemate=$was
finish

begin 'a command that handles it'
start run -- sh -c 'trap "echo caught; exit 42" TERM; echo ready; while :; do sleep 0.05; done'
until_true 10 started
kill -TERM "$bg"
wait_bg
is "$(out)" 'ready
caught' 'gets to clean up'
is "$rc" 42 'and its own status'
start run -- bash -c 'trap "echo int" INT; echo ready; sleep 0.3 & wait; wait; exit 7'
until_true 10 started
kill -INT "$bg"
wait_bg
is "$(out) $rc" 'ready
int 7' 'or goes on'
finish

begin 'signals that do not end'
says() { until_true 5 grep -qx "$1" "$work/out"; }
traps='for s in USR1 USR2 ALRM RTMIN+3 RTMAX WINCH CONT; do trap "echo got $s" $s; done'
start run -- bash -c "$traps"'; trap "exit 4" TERM; (exec sleep 30) & echo ready
	while kill -0 $!; do sleep 0.05; done; exit 5'
until_true 10 started
for sig in USR1 USR2 ALRM RTMIN+3 RTMAX WINCH CONT; do
	kill -s $sig "$bg"
	says "got $sig"
	ok "$sig is the command's"
done
kill -TERM "$bg"
wait_bg
is "$rc" 4 'and only its own: its children do not get them'
start run -- sh -c 'echo ready; exec sleep 30'
until_true 10 started
kill -USR1 "$bg"
wait_bg
is "$rc" $((128 + $(number USR1))) 'one that does not handle it ends by it'
finish

begin 'a command that ignores it'
start run -- sh -c 'trap "" TERM INT; setsid sh -c "sleep 1000; :" & echo ready; while :; do sleep 0.05; done'
until_true 10 started
kill -TERM "$bg"
wait_bg
is "$rc" 143 'is killed'
[ "$elapsed_ms" -ge 1900 ] && [ "$elapsed_ms" -lt 6000 ]
ok "after two seconds ($elapsed_ms ms)"
start run -- sh -c 'trap "" TERM INT; echo ready; while :; do sleep 0.05; done'
until_true 10 started
kill -TERM "$bg"
sleep 0.3
kill -TERM "$bg"
wait_bg
is "$rc" 143 'a second signal'
[ "$elapsed_ms" -lt 1300 ]
ok "kills at once ($elapsed_ms ms)"
finish

begin 'signals that the caller ignores or blocks'
: >"$work/out"
(
	trap '' INT QUIT
	exec "${as[@]}" "$casemate" run -- sh -c 'echo ready; exec sleep 30'
) >"$work/out" 2>"$work/err" &
bg=$!
until_true 10 started
kill -TERM $bg
wait_bg
is "$rc" 143 'do not hinder the others'
(
	trap '' TERM INT HUP PIPE CHLD
	exec "${as[@]}" "$casemate" run -- grep '^Sig[BI]' /proc/self/status
) >"$work/out" 2>"$work/err"
is "$(out)" 'SigBlk:	0000000000000000
SigIgn:	0000000000000000' 'and are not inherited by the command'
finish

begin 'a caller that ignores the end of its children'
# as some service managers and runtimes start what they start
unaware() { env --ignore-signal=CHLD "${as[@]}" "$casemate" "$@"; }
if env --ignore-signal=CHLD true 2>/dev/null; then
	cm doctor 2>&1 | awk '{ print $1, $2 }' >"$work/aware"
	unaware doctor 2>&1 | awk '{ print $1, $2 }' >"$work/unaware"
	is "$(cat "$work/unaware")" "$(cat "$work/aware")" 'doctor finds what it finds otherwise'
	unaware run -- sh -c 'sleep 0 & wait $!; exit 7' >"$work/out" 2>"$work/err"
	is "$? $(err)" '7 ' 'a command runs, and has children of its own'
else
	skip TOOLS 'env cannot ignore a signal' 'doctor finds what it finds otherwise'
fi
finish

begin 'a client that has children already'
(
	"${as[@]}" sleep 1000 &
	echo $! >"$work/child"
	exec "${as[@]}" "$casemate" run -- sh -c 'setsid sleep 1000 & exit 7'
) >"$work/out" 2>"$work/err" &
bg=$!
wait_bg
is "$rc $(err)" '7 ' 'does not wait for them'
child=$(cat "$work/child")
is "$(ps -o stat= -p "$child" | cut -c 1)" S 'and they go on'
kill "$child"
finish

begin 'kill -9 of casemate'
start run -- sh -c 'setsid sh -c "sleep 1000; :" & (setsid sleep 1000 &) ; echo ready; sleep 1000'
until_true 10 started
kill -KILL "$bg"
wait_bg
until_true 5 nothing_runs
ok 'ends a temporary session with all in it'
run run -- true
expect_status 0 'the next one works'
finish

begin 'kill -9 of the keeper'
start run -- sh -c 'setsid sh -c "sleep 1000; :" & echo ready; sleep 1000'
until_true 10 started
pid=$(keeper_pid)
init=$(cut -d' ' -f1 "/proc/$pid/task/$pid/children")
kill -KILL "$pid"
wait_bg
is "$rc" 137 'is the end of the command'
is "$(ls -d "/proc/$init" 2>/dev/null)" '' 'and pid 1 of the jail was waited for, too'
like "$(err)" "casemate: the session ended unexpectedly
hint: *" 'which is said'
until_true 5 nothing_runs
ok 'and ends everything in the jail'
finish

begin 'kill -9 of init'
start run -- sh -c 'echo ready; sleep 1000'
until_true 10 started
pid=$(init_pid)
kill -KILL "$pid"
wait_bg
is "$rc" 137 'is the end of the command, too'
like "$(err)" "casemate: *
hint: *" 'which is said'
finish

begin 'signals to the keeper'
start run -- sh -c 'echo ready; sleep 1000'
until_true 10 started
for sig in INT HUP QUIT USR1 PIPE; do
	kill -s $sig "$(keeper_pid)"
done
sleep 0.2
kill -0 "$bg"
ok 'of the terminal do nothing'
kill -TERM "$(keeper_pid)"
wait_bg
[ $rc -ge 125 ]
ok "TERM ends the session (status $rc)"
finish

begin 'stop and continue'
start run -- sh -c 'echo ready; i=0; while [ $i -lt 5 ]; do sleep 0.1; i=$((i + 1)); echo $i; done'
until_true 10 started
kill -STOP "$bg"
sleep 0.3
[ "$(awk '{ print $3 }' "/proc/$bg/stat")" = T ]
ok 'SIGSTOP stops casemate'
kill -CONT "$bg"
wait_bg
is "$(out | tr '\n' ' ')$rc" 'ready 1 2 3 4 5 0' 'and SIGCONT lets it go on, nothing is lost'
start run -- sh -c 'echo ready; sleep 0.6; echo end'
until_true 10 started
kill -TSTP "$bg"
sleep 0.3
[ "$(awk '{ print $3 }' "/proc/$bg/stat")" = T ]
ok 'SIGTSTP stops casemate'
kill -CONT "$bg"
wait_bg
is "$(out | tr '\n' ' ')$rc" 'ready end 0' 'until SIGCONT'
finish

begin 'the time limit'
since=$(now_ms)
run run --timeout 300ms -- sh -c 'trap "echo term; exit 3" TERM; echo ready; while :; do sleep 0.05; done'
expect_status 124 'comes as TERM first'
expect_out 'ready
term' 'so that a command can clean up'
run run --timeout 300ms -- sh -c 'trap "" TERM; setsid sh -c "trap \"\" TERM; sleep 1000; :" & while :; do sleep 0.05; done'
expect_status 124 'and as KILL after two seconds'
[ $(($(now_ms) - since)) -lt 12000 ]
ok 'with what it started'
since=$(now_ms)
"${as[@]}" "$casemate" run --timeout 300ms -- sh -c 'setsid sleep 60 & exec sleep 60' | cat >/dev/null
[ $(($(now_ms) - since)) -lt 5000 ]
ok 'also where daemons hold the pipes'
finish

# unread socket|pipe: casemate's standard output is such a thing, full, and is told to end
unread() {
	python3 - "$1" "${as[@]}" "$casemate" run -- sh -c 'echo up >up; exec yes' <<'EOF'
import os, signal, socket, subprocess, sys, time
ends = [s.detach() for s in socket.socketpair()] if sys.argv[1] == 'socket' else os.pipe()[::-1]
p = subprocess.Popen(sys.argv[2:], stdout=ends[0])
while not os.path.exists('up'):
    time.sleep(0.02)
time.sleep(0.5)
p.send_signal(signal.SIGTERM)
try:
    print(p.wait(8))
except subprocess.TimeoutExpired:
    p.kill()
    print('does not end')
EOF
	rm -f up
}

begin 'output that nobody reads'
for kind in socket pipe; do
	is "$(unread $kind)" 143 "$kind: SIGTERM ends it"
done
finish

done_testing
