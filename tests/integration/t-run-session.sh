#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Named sessions: made once, joined by later runs, stopped, started, removed, and after a crash.
# shellcheck disable=SC2016
# SC2016: what single quotes keep from this shell is for the shell inside
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

status_of() { cm ls 2>/dev/null | awk -v id="$1" '$1 == id { print $2 }'; }
keeper_of() { # the only keeper that is nobody's child here; its exe is not its user's to read
	local dir first
	for dir in /proc/[0-9]*; do
		IFS= read -r -d '' first 2>/dev/null <"$dir/cmdline" || continue
		[ "$first" = "$top/bin/casemate-keeper" ] || continue
		grep -qE '^NSpid:.*[[:space:]]1$' "$dir/status" || echo "${dir#/proc/}"
	done | head -n 1
}

# A client waits for some keeper to accept it.
has_greeted() { awk '$6 == "02" && $8 ~ /\/s\/[0-9a-f]+$/ { n++ } END { exit n == 0 }' /proc/net/unix; }

begin 'life'
run run --session one -- sh -c 'echo 1 >file; readlink /proc/self/ns/pid /proc/self/ns/mnt /proc/self/ns/net; pwd'
expect_status 0 'the first run makes it'
first=$(out)
is "$(status_of one)" running 'and it runs on'
run run --session one -- sh -c 'cat file >&2; readlink /proc/self/ns/pid /proc/self/ns/mnt /proc/self/ns/net; pwd'
is "$(out)" "$first" 'the second joins the same jail'
is "$(err)" 1 'and finds what the first left'
run run --session one -- sh -c 'exit 9'
expect_status 9 'statuses are the command'"'"'s'
run run --session one -- sh -c 'kill -9 $$'
expect_status 137 'signals, too'
run run --session one -- no-such
expect_status 127 'what is not there does not end the session'
is "$(status_of one)" running 'which still runs'
run ls
like "$(out)" 'ID *STATE*
one *running*' ls
run ls --json
grep -q '"id": *"one"' "$work/out" && grep -q '"status": *"running"' "$work/out"
ok 'ls --json'
run inspect one
grep -q '^level' "$work/out" && grep -q '^enforced by' "$work/out"
ok inspect
run inspect --json one
/usr/bin/python3 -m json.tool <"$work/out" >/dev/null
ok 'inspect --json'
run inspect --plan one
[ "$rc" = 0 ] && [ "$(wc -l <"$work/out")" -gt 10 ]
ok 'inspect --plan'
run stop one
expect_status 0 stop
is "$(status_of one)" stopped 'it is stopped'
is "$(our_processes)" '' 'and nothing runs'
run stop one
expect_status 0 'again'
run run --session one -- cat file
expect_out 1 'it starts again'
run rm one
expect_status 0 'rm of one that runs'
[ -f "$root/one/file" ]
ok 'the files stay'
run inspect one
refused "session 'one' not found" "*" 'it is gone'
run run --session one -- cat file
is "$(out) $rc" '1 0' 'one of the same name has the files'
run rm one
run rm --files one
[ "$rc" = 0 ] && [ ! -e "$root/one" ]
ok 'rm --files, also after rm'
run rm --files one
refused "session 'one' not found" "*" 'and again there is nothing'
inside=root
[ "$identity" != plain ] || inside=user
run run --session one --user $inside -- sh -c 'mkdir d; echo x >d/f; [ $(id -u) != 0 ] || chown 5:5 d/f d'
run rm one
[ -d "$root/one/d" ]
ok 'files of other ids stay'
run rm --files one
[ "$rc" = 0 ] && [ ! -e "$root/one" ]
ok 'and go'
run ls
! grep -q '^one ' "$work/out"
ok 'without a session to be seen'
mkdir "$root/mine" && echo m >"$root/mine/file" && give "$root/mine"
start_files
run rm --files mine
refused "session 'mine' not found" "*" 'a directory that was no session'"'"'s'
[ -f "$root/mine/file" ]
ok 'stays'
rm -rf "${root:?}/mine"
start_files
finish

begin 'what is kept'
run run --session k -- sh -c 'echo f >file; echo h >~/home; echo t >/tmp/tmp; echo d >/dev/shm/x; echo v >/var/tmp/v'
run stop k
run run --session k -- sh -c 'cat file ~/home /tmp/tmp; ls /dev/shm'
expect_out 'f
h
t' 'files, home and /tmp live through stop and start, shared memory does not'
kill -KILL "$(keeper_of)"
until_true 5 test -z "$(our_processes)"
until_true 5 sh -c '[ "$("$@" ls | grep -c stopped)" = 1 ]' - "${as[@]}" "$casemate"
ok 'after kill -9 of the keeper it is stopped'
run run --session k -- sh -c 'cat file ~/home /tmp/tmp'
expect_out 'f
h
t' 'and starts again with all of it'
run rm --files k
finish

begin 'background'
run run --session b -- sh -c 'cd /tmp; setsid /usr/bin/python3 -m http.server 8123 --bind 127.0.0.1 >/dev/null 2>&1 & echo started'
expect_out started 'a server in the background does not hold up the run'
run run --session b -- sh -c 'for i in $(seq 100); do exec 3<>/dev/tcp/127.0.0.1/8123 && break; sleep 0.05; done; printf "GET / HTTP/1.0\r\n\r\n" >&3; head -n 1 <&3' 2>/dev/null
[ "$rc" != 0 ] || true
run run --session b -- bash -c 'for i in $(seq 100); do exec 3<>/dev/tcp/127.0.0.1/8123 && break; sleep 0.05; done 2>/dev/null; printf "GET / HTTP/1.0\r\n\r\n" >&3; head -n 1 <&3'
like "$(out)" 'HTTP/1.0 200*' 'the next run reaches it on localhost'
run run --session b --timeout 300ms -- sh -c 'setsid sleep 1000 & sleep 1000'
expect_status 124 'a time limit'
run run --session b -- sh -c 'ps -e -o args= 2>/dev/null || cat /proc/[0-9]*/cmdline | tr "\0" " "'
! grep -q 'sleep 1000' "$work/out"
ok 'ends the tree of its command'
grep -q 'http.server' "$work/out"
ok 'and no other'
: >"$work/out"
start run --session b -- sh -c 'echo ready; setsid sleep 1001 & sleep 1001'
until_true 10 grep -q ready "$work/out"
kill -KILL "$bg"
wait_bg
is "$(status_of b)" running 'kill -9 of a client does not end the session'
run rm --files b
finish

begin 'a runtime directory with a long name'
if [ "$identity" = root ]; then
	skip IDENTITY 'the directory of root is named by nobody' 'is told before'
else
	mkdir -p "$work/runtime/$(printf 'long%.0s' {1..25})" && give "$work/runtime"
	start_files
	XDG_RUNTIME_DIR=$(echo "$work/runtime/long"*)
	allow '/runtime/(long)+/casemate'
	run run --session long -- true
	refused "the socket of session 'long' would have a path of *" 'set XDG_RUNTIME_DIR *' 'is told before'
	run ls
	! grep -q long "$work/out"
	ok 'and no session is made'
	run run -- echo temporary
	expect_out temporary 'a temporary one needs none'
fi
finish

begin 'helpers of another user'
if [ "$identity" = root ]; then
	mkdir "$work/h" && cp "$top/bin/"* "$work/h" && chown -R 64101 "$work/h"
	start_files
	was=$casemate
	casemate=$work/h/casemate
	run run --session u -- true
	refused "'*casemate-keeper' belongs to uid 64101*" '*install it: sudo cmake --install build' \
		'are not run'
	run run --session u --repo "$work/w" -- true
	refused "'*casemate-*' belongs to uid 64101*" '*install it: *' 'nor for a checkout'
	casemate=$was
	run ls
	! grep -q '^u ' "$work/out"
	ok 'and no session is left'
	# one whose keeper is gone with all that it had made
	run run --session v -- true
	cp -r /var/lib/casemate/sessions/v "$work/v"
	run stop v
	rm -f /var/lib/casemate/sessions/v/end
	[ ! -e "$work/v/groups" ] || cp "$work/v/groups" /var/lib/casemate/sessions/v/groups
	rm -rf "$work/v"
	casemate=$work/h/casemate
	run rm --files v
	is "$rc" 0 'without groups nobody is needed to remove a session'
	casemate=$was
else
	skip IDENTITY 'only root runs what is of others' 'are not run'
fi
finish

begin 'contradictions'
run run --session c --network none --memory '1G?' -- true
run run --session c --memory '1G?' -- echo same
expect_out same 'the same options again'
run run --session c --memory '2G?' -- true
refused "session 'c' was made with another --memory: '*'" 'leave --memory out: *' 'another memory limit'
run run --session c --network host -- true
refused "session 'c' was made with another --network: 'none'" '*' 'another network'
run run --session c --workspace "$work/w" -- true
refused "session 'c' was made with another --workspace: 'the session directory'" '*' 'another workspace'
run run --session c --git rw -- true
refused "session 'c' was made with another --git: 'pinned'" '*' 'another git access'
run run --session c --read-only -- touch made
refused "session 'c' was made with another --read-only: 'false'" '*' 'read-only'
run run --session c --memory 1G -- true
refused "session 'c' was made with another --memory: '1G?'" '*' 'a limit that it may go without'
mkdir "$work/root2" && give "$work/root2"
run run --session c --root "$work/root2" -- true
refused "*" '*' 'another root'
rmdir "$work/root2"
run run --session c -- echo still
expect_out still 'it runs on as it was'
[ ! -e "$root/c/made" ]
ok 'and nothing ran that was refused'
echo '{ "memory": "2G?", "git": "rw", "read-only": true }' >"$work/config.json"
give "$work/config.json"
export CASEMATE_CONFIG=$work/config.json
run run --session c -- sh -c '>made && echo still'
expect_out still 'configuration is for sessions yet to be made'
unset CASEMATE_CONFIG
run rm --files c
run run --session c --git rw --no-read-only -- true
run run --session c --git pinned -- true
refused "session 'c' was made with another --git: 'rw'" '*' 'the tighter of two words, asked for'
run rm --files c
finish

begin 'volumes'
mkdir "$work/v" "$work/u" && echo v >"$work/v/file" && give "$work/v" "$work/u"
run run --session v -v "$work/v:/data" -- cat /data/file
expect_out v 'of a session that is made'
run run --session v -- cat /data/file
expect_out v 'the next run has them'
run run --session v --volume "$work/v:/data" -- cat /data/file
expect_out v 'and may name them again'
run run --session v -v "$work/u:/other" -- echo wrong
refused "session 'v' was made with another --volume: '$work/v:/data'" 'leave --volume out: *' 'one that it has not'
run run --session v -v "$work/v:/data:ro" -- echo wrong
refused "session 'v' was made with another --volume: '$work/v:/data'" '*' 'one that it has otherwise'
run stop v
run run --session v -v "$work/u:/other" -- echo wrong
refused "session 'v' was made with another --volume: '$work/v:/data'" '*' 'nor when it is stopped'
run run --session v -- cat /data/file
expect_out v 'another start has them'
mv "$work/v" "$work/gone"
run run --session v -- cat /data/file
expect_out v 'one that runs has what is gone from its place'
run stop v
run run --session v -- echo wrong
refused "*'$work/v'*" '*' 'a start has not'
run rm --files v
finish

begin 'a ceiling of the administrator'
if [ "$identity" = root ] && mkdir "$work/etc" "$work/etc.work" && mount -t overlay overlay \
	-o "lowerdir=/etc,upperdir=$work/etc,workdir=$work/etc.work" /etc; then
	ceiling() { # JSON
		mkdir -p /etc/casemate
		echo "{ \"ceiling\": $1 }" >/etc/casemate/config.json
	}
	names='cat /proc/net/dev | grep -c :; ulimit -n'
	run run --session e --network host --open-files 200 -- sh -c "$names"
	is "$(tail -n 1 "$work/out")" 200 'of a session from before'
	ceiling '{ "network": "none" }'
	run run --session e -- echo wrong
	refused "session 'e' runs with more than /etc/casemate/config.json:1 (ceiling) allows: --network 'host'" \
		"'casemate stop e': *" 'is not gone round while it runs'
	run stop e
	run run --session e --network host -- sh -c "$names"
	is "$(out) $rc" '1
200 0' 'holds when it starts again'
	like "$(err)" "note: session 'e' was made with --network 'host'; */config.json:1 (ceiling): it starts with 'none'" 'which is said'
	run run --session e -- sh -c "$names"
	is "$(out) $(err)" '1
200 ' 'and the next run joins'
	ceiling '{ "network": "none", "timeout": "300ms" }'
	run run --session e -- sleep 20
	expect_status 124 "and holds for what is a run's own"
	ceiling '{ "min-level": "full", "open-files": 100 }'
	run run --session e -- echo wrong
	like "$rc $(err)" "125 casemate: session 'e' runs *" 'another one'
	run rm --files e
	umount -l /etc
else
	skip IDENTITY 'only root has an /etc of its own here' 'of a session from before'
fi
finish

begin 'ten first runs at once'
for _ in 1 2 3 4 5 6 7 8 9 10; do
	"${as[@]}" "$casemate" run --session ten -- sh -c 'readlink /proc/self/ns/pid' >>"$work/out" 2>>"$work/err" &
done
wait_jobs
is "$(wc -l <"$work/out") $(sort -u "$work/out" | wc -l)" '10 1' 'make one jail'
expect_stderr '' 'without a word'
run inspect ten
run rm --files ten
finish

begin 'a keeper that is killed'
run run --session x -- sh -c 'setsid sleep 1000 & echo up'
kill -KILL "$(keeper_of)"
run run --session x -- echo again
is "$(out) $rc" 'again 0' 'is replaced by the next run'
keeper=$(keeper_of)
kill -STOP "$keeper"
start run --session x -- echo greeted
until_true 10 has_greeted
kill -KILL "$keeper"
wait_bg
is "$(out) $rc" 'greeted 0' 'and by one that was greeting it'
: >"$work/out"
start run --session x -- sh -c 'echo ready; sleep 1000'
until_true 10 grep -q ready "$work/out"
kill -KILL "$(keeper_of)"
wait_bg
is "$rc" 137 'a run that loses it has its command killed'
run ls
expect_status 0 'ls works'
run stop x
expect_status 0 'stop works'
run rm --files x
expect_status 0 'rm works'
finish

begin 'sessions of a directory'
mkdir "$work/tree" && echo t >"$work/tree/file" && give "$work/tree"
start_files
run run --session d --workspace "$work/tree" -- cat file
expect_out t '--workspace'
run run --session d -- sh -c 'cat file; pwd'
expect_out "t
$work/tree" 'is kept'
run rm --files d
[ -f "$work/tree/file" ]
ok 'and never removed'
run run --session t --keep -- true
run rm --files t
run run --keep -- sh -c 'echo kept >file; pwd'
dir=$(out | tail -n 1)
like "$(err)" "*kept as session 'run-*'*" '--keep says under which name'
id=$(sed -n "s/.*kept as session '\(.*\)'.*/\1/p" "$work/err")
run rm --files "${id:-none}"
expect_status 0 'which can be removed'
rm -f "$work/w/file"
[ -n "$dir" ]
ok 'a directory was named'
finish

# seconds of a member of the last inspect --json; 0: null
seconds() {
	local text
	text=$(sed -n "s/^ *\"$1\": \"\(.*\)\",\$/\1/p" "$work/out" | head -n 1)
	if [ -n "$text" ]; then date -d "$text" +%s; else echo 0; fi
}

begin 'when it is stopped'
now=$(date +%s)
run start t --lifetime 1h --idle-timeout 10m
run inspect --json t
[ $(($(seconds createdAt) - now)) -le 60 ] && [ "$(seconds createdAt)" -ge $((now - 1)) ]
ok 'createdAt is when it was made'
begun=$(seconds lastUsedAt)
is "$(($(seconds timeoutAt) - begun))" 600 'timeoutAt is when it will have been idle'
sleep 1.1
run exec t -- true
run inspect --json t
[ "$(seconds lastUsedAt)" -gt "$begun" ] && [ $(($(seconds timeoutAt) - $(seconds lastUsedAt))) = 600 ]
ok 'which a command puts off'
state=$work/state/casemate
[ "$identity" != root ] || state=/var/lib/casemate
rm -f "$state/sessions/t"/events.ndjson*
used=$(cm ls --json | grep -o '"used": "[^"]*' | cut -c 10-)
run inspect --json t
is "$(seconds lastUsedAt) $(($(seconds timeoutAt) - $(seconds lastUsedAt)))" "$(date -d "$used" +%s) 600" \
	'both are what ls says, whatever events are kept'
run exec t -d -- sleep 60
run inspect --json t
left=$(($(seconds timeoutAt) - begun))
[ $left -le 3600 ] && [ $left -ge 3590 ]
ok 'while one runs it is the end of its lifetime'
run stop t
run inspect --json t
is "$(seconds timeoutAt)" 0 'and none when it does not run'
run rm --files t
finish

done_testing
