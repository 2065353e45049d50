#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The keeper against clients that casemate itself is not.
# shellcheck disable=SC2016
# SC2016: what single quotes keep from this shell is for the shell inside
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

# SETUID, SETGID, KILL where the map has an id for the agent; else SYS_PTRACE, which sets it apart from
# a command of its id, and SYS_ADMIN, which marks commands
begin 'the capabilities of pid 1'
case $identity in
plain) kept=0000000000280000 kept_by_one=0000000000080000 ;;
*) kept=00000000000000e0 kept_by_one=$kept ;;
esac
look='grep -hE "^Cap(Prm|Eff):" /proc/1/status | cut -f 2 | uniq'
run run -- sh -c "$look"
expect_out "$kept_by_one" 'of a session that is one command'
run run --session f -- sh -c "$look"
expect_out "$kept" 'and of one that lasts'
run rm --files f
finish

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
like "$(head -n 2 "$work/out")" "session 'f' was started by another version of casemate (protocol *, and not *)
stop the session and start it again: casemate stop f" 'is told so'
like "$(sed -n 3p "$work/out")" 'a request that is unknown*' 'and gets nothing else'
is "$(our_processes)" '' 'nothing runs'
run run --session f -- echo again
expect_out again 'it starts again'
run rm --files f
finish

begin 'a keeper of another version'
run run --session f -- true
dir=$work/runtime/casemate/s state=$XDG_STATE_HOME/casemate/sessions/f
[ "$identity" != root ] || dir=/run/casemate/s state=/var/lib/casemate/sessions/f
path=$(echo "$dir"/*)
run stop f
(
	cd "$state" || exit
	exec "${as[@]}" "$top/bin/keeper_client" "$path" f old
) &
old=$!
until_true 5 test -S "$path"
is "$(cm ls | awk '$1 == "f" { print $2 }')" running 'ls says that it runs'
run inspect f
expect_status 0 'it can be looked at'
for command in 'exec f -- true' 'exec f -d -- true' 'run --session f -- true' 'start f' 'shell f' 'kill f 1.1' 'attach f 1.1'; do
	# shellcheck disable=SC2086
	run $command
	refused "session 'f' was started by another version" 'stop the session and start it again' "$command"
done
run stop f
expect_status 0 'stop works'
wait $old
is $? 0 'and it is the keeper that stopped'
run exec f -- echo again
expect_out again 'it starts again'
run rm --files f
finish

# lives: the session is the same one, and starts commands
lives() {
	is "$(cat "$root/f/lives" 2>/dev/null)" '' 'control: no command has written yet'
	run exec f -- sh -c 'echo yes >lives; cat ~/mark'
	expect_out kept 'the session goes on'
	is "$(status_of f)" running 'and is said to run'
	run rm --files f
	expect_status 0 'it can be removed'
}
status_of() { cm ls 2>/dev/null | awk -v id="$1" '$1 == id { print $2 }'; }
fresh() {
	state=$XDG_STATE_HOME/casemate/sessions/f
	[ "$identity" != root ] || state=/var/lib/casemate/sessions/f
	run start f "$@"
	run exec f -- sh -c 'echo kept >~/mark'
}

for what in garbage order exec random; do
	begin "wrong requests: $what"
	fresh
	speak f "$what"
	expect_status 0 'each is refused or ends its connection'
	expect_stderr '' 'as it should'
	[ "$what" = garbage ] || [ "$what" = random ] || {
		grep -v '^[a-z0-9, '"'"']*: [a-z]' "$work/out"
		is "$?" 1 'with words'
	}
	lives
	finish
done

begin 'a refused command and the idle time'
fresh --idle-timeout 2s
speak f refused
expect_status 0 'a command is refused'
none_runs() { ! cm ls | grep -q running; }
until_true 3 none_runs
is "$(status_of f)" stopped 'the session ends when it was idle for as long as it may'
run rm --files f
finish

begin 'a session that is ending'
ending() { # the keeper is told to end, and has to wait for a command
	run exec f -d -- sh -c 'trap "sleep 1.5; exit" TERM; echo up >~/up; while :; do sleep 0.05; done'
	until_true 5 test -s "$state/home/up"
	rm "$state/home/up"
	kill -TERM "$(grep -o '"keeperPid":[0-9]*' "$state/events.ndjson" | tail -n 1 | cut -d: -f2)"
	sleep 0.3
}
fresh
ending
run exec f -- cat "$HOME/mark"
is "$rc $(out) $(err)" '0 kept ' 'exec waits for that, and starts it anew'
ending
run run --session f -- cat "$HOME/mark"
is "$rc $(out)" '0 kept' 'so does run'
ending
run exec f -d -- true
like "$rc $(out)" '0 4.1' 'and a detached command'
run rm --files f
finish

for what in crowd silent unread descriptors watches; do
	begin "more than fit: $what"
	fresh
	speak f "$what"
	expect_status 0 'the rest is refused'
	expect_stderr '' 'and the keeper sleeps afterwards'
	lives
	finish
done

begin 'more than fit: journals'
fresh
speak f journals
expect_status 0 'all end'
n=$(find "$state/exec" -mindepth 1 -maxdepth 1 | wc -l)
[ "$n" -ge 256 ] && [ "$n" -le $((256 + 32)) ]
ok "and the last of them are kept ($n)"
[ -d "$state/exec/1.800" ]
ok 'those'
lives
finish

begin 'more than fit: commands'
fresh
speak f commands
expect_status 0 '256 run'
is "$(cat "$work/out")" "the session has 256 commands already, with those that left processes
try again when some of them have ended; 'casemate stop f' ends all
the session has 256 commands already, with those that left processes
try again when some of them have ended; 'casemate stop f' ends all" 'one more is refused, detached or not'
expect_stderr '' 'and the keeper sleeps'
run exec f -- true
refused 'the session has 256 commands already*' 'try again*' 'casemate says so, too'
run stop f
expect_status 0 'stop ends them'
is "$(our_processes)" '' 'all'
run exec f -- cat "$HOME/mark"
expect_out kept 'the next command starts it'
run rm --files f
finish

done_testing
