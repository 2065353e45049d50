#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# create, start, exec, shell, restart: sessions that live, and commands in them.
# shellcheck disable=SC2016
# SC2016: what single quotes keep from this shell is for the shell inside
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

python3=/usr/bin/python3

status_of() { cm ls 2>/dev/null | awk -v id="$1" '$1 == id { print $2 }'; }
journals() { # ID: where its journals are
	if is_root && [ "$identity" = root ]; then
		echo "/var/lib/casemate/sessions/$1/exec"
	else
		echo "$XDG_STATE_HOME/casemate/sessions/$1/exec"
	fi
}
has_result() { [ -f "$(journals "$1")/$2/result" ]; }
events() { cat "$(dirname "$(journals "$1")")/events.ndjson"; }
has_begun() { events "$1" | tail -n 1 | grep -q '"exec.started"'; }

begin 'start and exec'
run exec one -- true
refused "session 'one' not found" "'casemate ls' lists 0 sessions of yours (each user has their own); 'casemate start one' makes one" 'a session has to exist'
run start one
is "$rc $(out)" '0 ' 'start prints nothing'
is "$(status_of one)" running 'it runs'
run start one
expect_status 0 'start of one that runs'
run exec one -- sh -c 'echo out; echo err >&2; exit 3'
expect_status 3 'the status is the command'"'"'s'
expect_out out 'stdout'
expect_stderr err 'stderr'
run exec one -c 'echo "$0 $1"; exit 4'
expect_status 4 '-c'
run exec one -- no-such
expect_status 127 'not found'
run exec one -- /etc/passwd
expect_status 126 'not executable'
run exec one -- sh -c 'kill -9 $$'
expect_status 137 'signals'
run exec one --timeout 200ms -- sh -c 'trap "" TERM; sleep 60'
expect_status 124 'a time limit'
run exec one --output 10 -- yes
expect_status 137 'a limit of output'
echo in | run exec one -- cat
expect_out '' 'without -i it reads nothing'
echo in | run exec one -i -- cat
expect_out in 'with -i what the caller gives'
run exec -e A=1 one -e B=2 -- sh -c 'echo $A $B'
expect_out '1 2' 'options before and behind the session'
run exec one --json -- sh -c 'echo out; exit 5'
is "$rc $(json exitCode) $(json stdout) $(json session)" '5 5 out\n one' '--json'
like "$(json exec)" '1.*' 'with the id of the command'
run exec one --memory 1G -- true
refused "--memory is the session's, and not a command's" '*' 'an option of sessions'
run exec one --session two -- true
refused 'two sessions are named' "leave --session out: 'one' is the session" 'another session'
run exec one -- 'echo a b'
like "$rc $(err)" "127 *hint: shell text goes after -c: -c 'TEXT' in place of *" 'one word of shell text'
run logs one 1.1
refused "session 'one' has no command whose output was kept" '*whoever started them*' \
	'what somebody waited for is not kept'
run wait one 1.1
refused "session 'one' has no command whose output was kept" '*and so did their end' 'nor how it ended'
run exec one
refused 'no command given' '*' 'no command'
run exec
refused 'no session given' '*' 'no session'
run exec '../one' -- true
expect_status 125 'an id that is none'
run exec one --root /nonexistent -- true
expect_status 125 'another root'
run rm --files --force one
run exec one -- true
refused "session 'one' not found" '*' 'one that was removed'
finish

begin 'where and with what'
mkdir sub
give sub
start_files
run start w --workspace . -e KEPT=1 -e OVER=1 --pass-env 'CI_*'
(cd sub && run exec w -- pwd)
expect_out "$work/w/sub" 'the caller'"'"'s place in the workspace'
(cd / && run exec w -- pwd)
expect_out "$work/w" 'else its top'
run exec w -w sub -- pwd
expect_out "$work/w/sub" '-w, relative'
run exec w -w /tmp -- pwd
expect_out /tmp '-w, absolute'
run exec w -w /nonexistent -- pwd
refused "cannot enter '/nonexistent' in the jail*" '--workdir*' '-w that is not there'
run exec w -e OVER=2 -- sh -c 'echo $KEPT $OVER'
expect_out '1 2' 'the session'"'"'s environment, and the command'"'"'s over it'
run exec w -- sh -c 'echo $KEPT $OVER ${CASEMATE_SESSION}'
expect_out '1 1 w' 'which is the command'"'"'s alone'
run stop w
CI_JOB=7 run exec w -- sh -c 'echo $KEPT $OVER $CI_JOB'
expect_out '1 1 7' 'and kept over stop and start'
SECRET=x run exec w -- sh -c 'echo [$SECRET]'
expect_out '[]' 'the caller'"'"'s does not pass'
SECRET=x run exec w -e SECRET -- sh -c 'echo [$SECRET]'
expect_out '[x]' 'but when it is named'
run start w -e KEPT=2
refused "session 'w' runs with the environment that it has" '*' 'start -e of one that runs'
run restart w -e KEPT=2
expect_status 0 'restart -e'
run exec w -- sh -c 'echo $KEPT $OVER'
expect_out '2 1' 'changes it'
run rm w
finish

begin 'one jail'
run start j
run exec j -- sh -c 'echo f >/tmp/f; echo h >~/h; echo s >/dev/shm/s; readlink /proc/self/ns/net'
net=$(out)
run exec j -- sh -c 'cat /tmp/f ~/h /dev/shm/s; readlink /proc/self/ns/net'
expect_out "f
h
s
$net" 'files and network of the next command'
run exec j -d -- sh -c 'cd /tmp; exec /usr/bin/python3 -u -m http.server 8124 --bind 127.0.0.1'
expect_status 0 'a server'
run exec j -- bash -c 'for i in $(seq 200); do exec 3<>/dev/tcp/127.0.0.1/8124 && break; sleep 0.05; done 2>/dev/null; printf "GET / HTTP/1.0\r\n\r\n" >&3; head -n 1 <&3'
like "$(out)" 'HTTP/1.0 200*' 'reached on localhost'
run restart j --git rw
refused "session 'j' was made with another --git: 'pinned'" 'leave --git out: *' 'restart changes no option'
is "$(status_of j) $(events j | grep -c '"session.stopped"')" 'running 0' 'and then ends nothing'
cm exec j -d -- true >/dev/full 2>"$work/err"
like "$? $(err)" '125 *note: the command runs as 1.*' 'an id that cannot be printed is said'
run restart j
run exec j -- sh -c 'cat /tmp/f ~/h; ls /dev/shm; grep -l python3 /proc/[0-9]*/comm 2>/dev/null | wc -l'
expect_out 'f
h
0' 'restart keeps files, home and /tmp, and no process'
run rm --files --force j
finish

begin 'system calls'
# init has most of its commands' filter itself, and they have the rest: together all of it
run start calls --no-workspace
run exec calls -- sed -n 's/^Seccomp:[[:space:]]*//p' /proc/1/status
is "$rc $(out)" '0 2' 'init is under a filter'
run exec calls -- unshare --user true
[ "$rc" = 1 ] && err | grep -q 'Operation not permitted'
ok 'what init may, a command may not: unshare'
run exec calls -- unshare --uts true
[ "$rc" = 1 ] && err | grep -q 'Operation not permitted'
ok 'nor what init really does with it'
run exec calls -- unshare --mount true
[ "$rc" = 1 ] && err | grep -q 'Operation not permitted'
ok 'and a mount namespace is refused as before'
if [ -x $python3 ]; then
	clone3='import ctypes; libc = ctypes.CDLL(None, use_errno=True)
args = (ctypes.c_uint64 * 8)(0, 0, 0, 0, 17)
pid = libc.syscall(435, args, 64)
print(pid, ctypes.get_errno())'
	run exec calls -- $python3 -c "$clone3"
	is "$rc $(out)" '0 -1 38' 'clone3'
	# one alone has no use for two
	run run --no-workspace -- $python3 -c "$clone3"
	is "$rc $(out)" '0 -1 38' 'as in a session of one command'
fi
run rm calls --files
finish

begin 'lazy'
run create l --setup 'echo s >>~/setups; sleep 0.5'
is "$(status_of l)" created 'create starts nothing'
pids=()
for i in 1 2 3 4 5 6 7 8 9 10; do
	cm exec l -- cat "$HOME/setups" >"$work/out.$i" 2>&1 &
	pids+=($!)
done
bad=0
for pid in "${pids[@]}"; do
	wait "$pid" || bad=1
done
is "$bad $(cat "$work"/out.* | grep -c '^s$')" '0 10' 'ten first commands: one jail, one setup'
is "$(events l | grep -c '"session.started"')" 1 'one start'
run exec l -- true
is "$rc $(err)" '0 ' 'and nothing is said of it later'
run stop l
run exec l -- cat "$HOME/setups"
expect_out s 'nor run again'
run rm --files --force l
run create bad --setup 'echo broken; exit 9'
run exec bad -- true
is "$rc" 125 'a setup that fails fails the first command'
like "$(err)" '*setup*exit 9*' 'and says so'
run exec bad -- echo usable
is "$rc $(out)" '0 usable' 'the next one finds a usable session'
like "$(err)" '*setup failed (exit 9) and is not run again*' 'and is told'
run rm --files --force bad
finish

begin 'detached'
run start d
run exec d -d -- sh -c 'echo out; echo err >&2; exit 3'
is "$rc $(err)" '0 ' 'is not waited for'
like "$(out)" '1.*' 'the exec id is printed'
id=$(out)
until_true 5 has_result d "$id"
ok 'it ends'
is "$(cat "$(journals d)/$id/out.head") $(cat "$(journals d)/$id/err.head")" 'out err' 'both streams are kept'
run exec d -d -- no-such
expect_status 127 'what cannot be executed says so at once'
run exec d -d --json -- sleep 0.1
is "$(json end) $(json exitCode)" 'detached 0' '--json'
run exec d -d -- true
second=$(out)
[ "$second" != "$id" ]
ok 'ids are not used again'
run stop d
run start d
run exec d -d -- true
like "$(out)" '2.*' 'nor after a restart'
run exec d -d --timeout 300ms -- sh -c 'echo begun; sleep 100'
id=$(out)
until_true 5 has_result d "$id"
ok 'a time limit ends it'
events d | grep "\"$id\"" | grep -q '"end":"timeout"'
ok 'and the events say so'
run exec d -d -- sh -c '(sleep 1; echo late) & echo early'
id=$(out)
until_true 5 has_result d "$id"
is "$(cat "$(journals d)/$id/out.head")" early 'children do not delay the end'
until_true 5 grep -q late "$(journals d)/$id/out.head"
ok 'and what they print is kept'
run exec d -d -- sh -c 'head -c 300000 /dev/zero | tr "\0" x; echo end'
id=$(out)
until_true 10 has_result d "$id"
is "$(wc -c <"$(journals d)/$id/out.head")" 300004 'all of what was printed'
run exec d -d --output 64K -- sh -c 'seq 1 100000; echo end'
id=$(out)
until_true 10 has_result d "$id"
is "$(tail -n 1 "$(journals d)/$id/out."[0-9]* | tail -n 1) $(head -n 1 "$(journals d)/$id/out.head")" 'end 1' 'of much the head and the tail'
is "$(($(cat "$(journals d)/$id/out."* | wc -c) <= 65536))" 1 'and no more than was asked for'
pids=()
for i in $(seq 40); do
	cm exec d -d -- sh -c "echo $i" >"$work/id.$i" 2>"$work/err.$i" &
	pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid"; done
is "$(cat "$work"/id.* | sort -u | wc -l)" 40 'forty at once have forty ids'
ended() { for i in $(seq 40); do has_result d "$(cat "$work/id.$i")" || return 1; done; }
until_true 10 ended
for i in $(seq 40); do
	[ "$(cat "$(journals d)/$(cat "$work/id.$i")/out.head")" = "$i" ] || echo "$i"
done >"$work/wrong"
is "$(cat "$work/wrong")" '' 'and forty journals'
run rm --files --force d
finish

begin 'who ends what'
run start e
start exec e -- sh -c 'echo begun; trap "" TERM; sleep 100'
until_true 5 grep -q begun "$work/out"
kill -TERM "$bg"
wait_bg
is "$rc" 143 'a signal to exec is the command'"'"'s, and after two seconds its end'
start exec e -- sh -c 'echo $$; sleep 1; echo done >~/done; sleep 100'
until_true 5 test -s "$work/out"
kill -KILL "$bg"
wait_bg
until_true 5 test -f "$(dirname "$(journals e)")/home/done"
ok 'the command goes on when exec is killed'
run stop e
is "$(our_processes)" '' 'and ends with the session'
run exec e -- true
expect_status 0 'the next one starts it'
start exec e -- sleep 100
until_true 5 has_begun e
cm stop e
wait_bg
is "$rc" 137 'stop ends what runs'
like "$(err)" 'note: the command was ended by another*' 'and it is said that it was not its own end'
run rm --files --force e
finish

begin 'pipes that are held'
# the kernel keeps a pipe's mutex while splice waits for a socket: whoever reads that pipe outside
# would wait with it, and nothing ends that
hold='import os, socket
a, b = socket.socketpair()
for call in (lambda: os.splice(a.fileno(), 1, 10), lambda: os.sendfile(1, a.fileno(), None, 10)):
	try: call(); print("reached", flush=True)
	except OSError as e: print(e.errno, flush=True)
open("f", "w").write("sent\n")
os.sendfile(1, os.open("f", os.O_RDONLY), 0, 5)'
run start h
run exec h -- /usr/bin/python3 -c "$hold"
expect_out '22
22
sent' 'splice is refused, and sendfile of what can be waited for'
run rm --files h
finish

begin 'user'
if [ "$identity" != plain ]; then
	run start u --user root
	run exec u -- id -u
	expect_out 0 'a session of root'"'"'s'
	run exec u -u user -- sh -c 'id -u; grep -E "^Cap(Prm|Eff|Inh|Amb)" /proc/self/status | grep -vc 0000000000000000'
	expect_out '1000
0' 'a command of its user'"'"'s'
	run exec u --timeout 1s -- sh -c 'setsid setpriv --clear-groups sh -c "sleep 3178; :" & sleep 50'
	expect_status 124 'a time limit'
	run exec u -- sh -c 'grep -lz "[3]178" /proc/[0-9]*/cmdline 2>/dev/null | wc -l'
	is "$(out)" 0 'takes what has dropped its groups, too'
	run rm --files --force u
fi
run start p
run exec p -u user -- id -u
expect_out 1000 'the user'"'"'s own'
run exec p -u root -- id -u
refused "session 'p' was made with another --user: 'user'" '*' 'no command is more than its session'
run rm --files --force p
finish

done_testing
