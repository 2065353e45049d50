#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What is on the disk and nothing else: after a reboot, and with state files that are cut, flipped, of
# another version or not there at all.
# shellcheck disable=SC2016
# SC2016: what single quotes keep from this shell is for the shell inside
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

status_of() { cm ls 2>/dev/null | awk -v id="$1" '$1 == id { print $2 }'; }
none_runs() { [ -z "$(our_processes)" ]; }

if [ "$identity" = root ]; then
	runtime=/run/casemate
else
	runtime=
fi
# where NAME: sets what each block needs
places() {
	state=$XDG_STATE_HOME/casemate/sessions
	[ "$identity" = root ] || runtime=$XDG_RUNTIME_DIR/casemate
	[ "$identity" != root ] || state=/var/lib/casemate/sessions
}

# The machine goes down: nothing runs any more, and what is no disk is empty.
reboot() {
	local pid
	for pid in $(our_processes); do
		kill -KILL "$pid" 2>/dev/null
	done
	until_true 5 none_runs
	find "$runtime" -mindepth 1 -delete
	list_groups | sort -r | xargs -r rmdir 2>/dev/null
}

begin 'a reboot'
places
run start a --setup 'echo s >>~/setups'
run exec a -- sh -c 'echo home >~/mark; echo tmp >/tmp/mark; echo tree >mark'
run exec a -d -- sh -c 'echo first'
done_id=$(out)
until_true 5 test -f "$state/a/exec/$done_id/result"
run exec a -d -i -- sh -c 'echo second; sleep 1000'
lost_id=$(out)
until_true 5 grep -q second "$state/a/exec/$lost_id/out.head"
run create b
run start c
run stop c
run start d --idle-timeout 1h
events=$(wc -l <"$state/a/events.ndjson")
reboot
run ls
expect_status 0 'ls answers'
is "$(status_of a) $(status_of b) $(status_of c) $(status_of d)" 'stopped created stopped stopped' 'what ran is stopped'
for id in a b c d; do
	run inspect "$id"
	expect_status 0 "inspect $id"
	run stop "$id"
	expect_status 0 "stop $id"
done
[ -f "$state/a/exec/$done_id/result" ] && [ ! -e "$state/a/exec/$lost_id/result" ]
ok 'of a command that did not end no end is made up'
is "$(cat "$state/a/exec/$lost_id/out.head")" second 'what it printed is kept'
run exec a -- sh -c 'cat ~/mark /tmp/mark mark ~/setups'
is "$rc $(out | tr '\n' ' ')" '0 home tmp tree s ' 'the next command starts it, with all its files, and no setup runs'
run exec a -d -- true
new_id=$(out)
[ "${new_id%.*}" -gt "${lost_id%.*}" ]
ok 'ids are not used again'
[ ! -e "$state/a/exec/$lost_id/result" ]
ok 'nor does the next start make one up'
[ "$(wc -l <"$state/a/events.ndjson")" -gt "$events" ]
ok 'events go on'
is "$(grep -o '"seq":[0-9]*' "$state/a/events.ndjson" | sort | uniq -d)" '' 'with numbers of their own'
for id in b c d; do
	run exec "$id" -- echo up
	is "$rc $(out)" '0 up' "$id starts"
done
reboot
for id in a b c d; do
	run rm --files "$id"
	expect_status 0 "$id can be removed after another one"
done
finish

begin 'a reboot in the middle'
places
start start a --setup 'echo begun >~/begun; sleep 1000'
until_true 10 test -s "$state/a/home/begun"
reboot
wait_bg
is "$(status_of a)" stopped 'of a setup: the session is there'
run setup a --json
expect_status 0 'and what is known of its setup is said'
limit=2 run exec a -- true
like "$(err)" "note: setup of session 'a' began *and came to no end; it is run again*" 'it is run again'
reboot
run rm --files a
expect_status 0 'it can be removed'
finish

# --- damage ------------------------------------------------------------------------------------

# Each command answers: with what was there, or with an error in words.  Never a signal, never silence.
answers() { # WHAT
	local command
	for command in 'ls' 'inspect a' 'exec a -- cat kept'; do
		# shellcheck disable=SC2086
		run $command
		case $command:$rc in
		exec*:0) [ "$(out)" = kept ] || worse "$1: $command found '$(out | head -c 60)'" ;;
		*:0) ;;
		*:1 | *:125) grep -q '^casemate: [a-z]' "$work/err" || worse "$1: $command said nothing" ;;
		*) worse "$1: $command ended with $rc" ;;
		esac
	done
	run stop a
	[ "$rc" = 0 ] || grep -q '^casemate: ' "$work/err" || worse "$1: stop ended with $rc"
	until_true 3 none_runs || worse "$1: it does not stop"
}
worse() {
	bad=$((bad + 1))
	echo "# $*"
}

# offsets SIZE: all of a small file, of a larger one some
offsets() {
	local at
	for ((at = 0; at < $1; at += $1 / 12 + 1)); do
		echo "$at"
	done
}

# damaged FILE: cut, flipped and empty, with the session stopped
damaged() {
	local file=$1 at n=0
	bad=0
	cp -p "$file" "$work/whole"
	for at in $(offsets "$(stat -c %s "$file")"); do
		head -c "$at" "$work/whole" >"$file"
		answers "${file##*/} cut at $at"
		cp -p "$work/whole" "$file"
		perl -e 'open F, "+<", $ARGV[0]; seek F, $ARGV[1], 0; read F, $b, 1; seek F, $ARGV[1], 0; print F chr(ord($b) ^ 1 << $ARGV[1] % 8)' \
			"$file" "$at"
		answers "${file##*/} flipped at $at"
		cp -p "$work/whole" "$file"
		n=$((n + 2))
	done
	is "$bad" 0 "${file##*/}: damaged in $n ways, every command answers"
	# the next start has its own
	run exec a -- cat kept
	expect_out kept "${file##*/}: whole again"
	run stop a
}

begin 'damage'
places
run start a -e KEPT=1
run exec a -- sh -c 'echo kept >kept'
run exec a -d -- echo x
run stop a
damaged "$state/a/events.seq"
is "$(grep -o '"seq":[0-9]*' "$state/a/events.ndjson" | sort | uniq -d)" '' 'events have numbers of their own all the same'
for name in state.json end env events.ndjson keeper.lock lock; do
	damaged "$state/a/$name"
done
[ ! -f "$state/a/groups" ] || damaged "$state/a/groups"
bad=0
for name in end env events.ndjson events.seq keeper.lock lock plan.txt exec home tmp; do
	mv "$state/a/$name" "$work/away" 2>/dev/null || continue
	answers "no $name"
	[ ! -e "$state/a/$name" ] || rm -rf "${state:?}/a/$name"
	mv "$work/away" "$state/a/$name"
done
is "$bad" 0 'without one of them, every command answers'
run rm --files a
finish

begin 'damage while it runs'
places
run start a -e KEPT=yes
run exec a -- sh -c 'echo kept >kept'
cp -p "$state/a/env" "$work/whole"
run exec a -- sh -c 'echo $PATH'
whole_path=$(out)
bad=0
for ((at = 0; at < $(stat -c %s "$work/whole"); at += 3)); do
	head -c "$at" "$work/whole" >"$state/a/env"
	run exec a -- sh -c 'echo $KEPT$PATH'
	[ "$rc $(out)" = "0 yes$whole_path" ] || worse "env cut at $at: $rc $(out)"
done
is "$bad" 0 'an environment that was cut is not taken for a whole one'
cp -p "$work/whole" "$state/a/env"
sed -i 's/"v":1,/"v":2,"later":{"x":[1]},/; s/"network":"none"/"network":"warp"/; s/,"sum":"[^"]*"//' "$state/a/state.json"
grep -q '"v":2,.*"warp"' "$state/a/state.json"
ok 'control: a state of a newer version'
run ls
expect_status 0 'a newer state: ls answers'
is "$(status_of a)" running 'and it runs'
run inspect a
expect_status 0 'it can be looked at'
before=$(cat "$state/a/state.json")
for command in 'run --session a -- true' 'start a -e X=1' 'restart a' 'setup a --retry'; do
	# shellcheck disable=SC2086
	run $command
	[ "$rc" = 0 ] || { [ "$rc" = 125 ] && grep -q '^hint: ' "$work/err"; }
	ok "$command: works, or is refused with a hint ($rc)"
	is "$(cat "$state/a/state.json")" "$before" "$command: nothing is written"
done
run stop a
expect_status 0 'stop works'
is "$(our_processes)" '' 'and stops it'
run exec a -- true
refused '*newer casemate*' '*' 'a start is refused'
run rm --files a
expect_status 0 'rm works'
finish

done_testing
