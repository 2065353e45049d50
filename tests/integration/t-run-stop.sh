#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# casemate stop: who is told to end, how long they have, and what is done about a keeper that hangs.
# shellcheck disable=SC2016
# SC2016: what single quotes keep from this shell is for the shell inside
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# stopped ID: stops it; the time that took is in took_ms
stop_timed() {
	local since
	since=$(now_ms)
	run stop "$1"
	took_ms=$(($(now_ms) - since))
}

# What runs until it is told to end, and takes its time then; $1: where it says so.
slow='slow() {
	trap "echo told >>$1; sleep 0.7; echo finished >>$1; exit 0" TERM
	echo up >>$1
	while :; do sleep 0.05; done
}'
up() { until_true 10 grep -q "${2:-up}" "$root/$1"; }

keeper_of() { # the only keeper that is nobody's child here; its exe is not its user's to read
	local dir first
	for dir in /proc/[0-9]*; do
		IFS= read -r -d '' first 2>/dev/null <"$dir/cmdline" || continue
		[ "$first" = "$top/bin/casemate-keeper" ] || continue
		grep -qE '^NSpid:.*[[:space:]]1$' "$dir/status" || echo "${dir#/proc/}"
	done | head -n 1
}

begin 'a stop'
run run --session s -- sh -c "$slow"'; slow lingering >/dev/null 2>&1 &'
start run --session s -- sh -c "$slow"'; slow background & slow main'
up s/lingering && up s/background && up s/main
stop_timed s
wait_bg
is "$(cat "$root/s/main")" 'up
told
finished' 'lets a command end itself'
is "$(cat "$root/s/background")" 'up
told
finished' 'and what it has in the background'
is "$(cat "$root/s/lingering")" 'up
told
finished' 'and what a command has left that has ended'
[ "$took_ms" -lt 1900 ]
ok "as long as they need ($took_ms ms)"
is "$(our_processes)" '' 'nothing runs'
run rm --files s
finish

begin 'a command whose main process ends first'
run run --session s -- true
start run --session s -- sh -c "$slow"'; slow background & trap "exit 3" TERM; wait'
up s/background
stop_timed s
wait_bg
is "$(cat "$root/s/background")" 'up
told
finished' 'has its others end themselves'
run rm --files s
run run --session s --timeout 300ms -- sh -c "$slow"'; slow background & trap "exit 3" TERM; wait'
expect_status 124 'a time limit'
is "$(cat "$root/s/background")" 'up
told
finished' 'does, too'
run rm --files s
run run --timeout 300ms -- sh -c "$slow"'; slow background & trap "exit 3" TERM; wait'
expect_status 124 'and the one of a temporary session'
is "$(cat background)" 'up
told
finished' 'as well'
rm -f background
finish

begin 'a stop while a time limit is carried out'
run run --session s -- true
start run --session s --timeout 300ms -- sh -c "$slow"'; slow main'
up s/main told
stop_timed s
wait_bg
is "$(cat "$root/s/main")" 'up
told
finished' 'does not cut it short'
run rm --files s
finish

begin 'what does not end'
run run --session s -- sh -c 'setsid sh -c "trap \"\" TERM; echo up >file; while :; do sleep 0.05; done" >/dev/null 2>&1 &'
up s/file
stop_timed s
expect_status 0 'is killed'
[ "$took_ms" -ge 1900 ] && [ "$took_ms" -lt 4000 ]
ok "after two seconds ($took_ms ms)"
is "$(our_processes)" '' 'nothing runs'
run run --session s -- true
stop_timed s
[ "$took_ms" -lt 1000 ]
ok "and nothing to end takes none ($took_ms ms)"
run rm --files s
finish

begin 'a keeper that hangs'
run run --session s -- sh -c 'setsid sh -c "echo up >file; sleep 1000" >/dev/null 2>&1 &'
up s/file
kill -STOP "$(keeper_of)"
stop_timed s
expect_status 0 'is no obstacle'
like "$(err)" "*session 's' did not stop when asked to; its keeper was killed" 'what was done is said'
[ "$(grep -c . "$work/err")" = 1 ]
ok 'in one line'
[ "$took_ms" -lt 15000 ]
ok "within some seconds ($took_ms ms)"
is "$(our_processes)" '' 'nothing runs'
run run --session s -- sh -c 'setsid sleep 1000 & cat file'
expect_out up 'it starts again'
kill -STOP "$(keeper_of)"
run rm --files s
expect_status 0 'it can be removed, too'
is "$(our_processes)" '' 'and nothing runs'
finish

# Something of the session's lasts (here its setup): nobody waits for it without a word.
begin 'a session that is in use'
git init -q -b main r && git -C r -c user.name=a -c user.email=a@b commit -q --allow-empty -m one
give r
start_files
start run --session u --repo "$work/w/r" --setup 'echo up; sleep 60' -- true
until_true 20 grep -qx up "$work/err"
holder=$(pgrep -x casemate -P $$ | head -n 1)
cp "$work/err" "$work/first"
for command in stop rm; do
	since=$(now_ms)
	cm $command u >"$work/out" 2>"$work/other"
	is "$?" 125 "$command: does not end it"
	took_ms=$(($(now_ms) - since))
	like "$(cat "$work/other")" "note: session 'u' is in use by another command (process $holder): waiting for it up to 10 s
casemate: session 'u' is in use by another command (process $holder)
hint: try again when *, or end it: *" "$command: says who has it, first and last"
	[ "$took_ms" -ge 9500 ] && [ "$took_ms" -lt 13000 ]
	ok "$command: after ten seconds ($took_ms ms)"
done
cm stop u 2>"$work/other" &
waiting=$!
until_true 5 grep -q 'waiting for it' "$work/other"
ok 'it is said while it is waited'
kill -TERM "$holder"
wait_bg
wait $waiting
is "$? $(grep -c . "$work/other")" '0 1' 'and goes on when it can'
run rm --files u
finish

begin 'files of other ids'
if [ "$identity" = sub ]; then
	make() { # NAME
		run run --session s --user root -- sh -c 'mkdir d && echo x >d/f && chown -R 5:5 d && echo made'
		is "$(out) $(err)" 'made ' "$1: made"
		[ "$(stat -c %u "$root/s/d/f")" != "$uid" ]
		ok "$1: control: they are not the user's"
		run stop s
	}
	go() { # NAME
		run rm --files s
		is "$rc $(err)" '0 ' "$1: go with the session"
		[ ! -e "$root/s" ]
		ok "$1: all of them"
	}
	make 'without groups'
	go 'without groups'
	# where v1 groups are delegated, the jail that gives the files back has one, of the session's name
	if [ -n "${CM_TEST_GROUPS:-}" ]; then
		make 'with groups'
		for group in $CM_TEST_GROUPS; do
			chown "$uid:$gid" "$group" "$group"/{tasks,cgroup.procs}
		done
		go 'with groups'
		for group in $CM_TEST_GROUPS; do
			chown 0:0 "$group" "$group"/{tasks,cgroup.procs}
		done
	else
		skip CGROUP1 'no v1 groups to delegate' 'with groups: go with the session'
	fi
else
	skip IDENTITY 'only subordinate ids are others' 'go with the session'
fi
finish

done_testing
