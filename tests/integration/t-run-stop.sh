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

done_testing
