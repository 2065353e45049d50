#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A full disk below the journals of detached commands: the command goes on, what was lost is counted,
# and journals go on when there is room again; where there is none at the start nothing starts.
# shellcheck disable=SC2016
# SC2016: what single quotes keep from this shell is for the shell inside
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

is_root || skip_all ROOT 'only root can mount a small file system'

if [ "$identity" = root ]; then
	disk=/var/lib/casemate
else
	disk=
fi
on_small_disk() { # of 8 MiB
	if [ "$identity" != root ]; then
		disk=$work/state/casemate
		mkdir -m 700 "$disk"
		give "$disk"
	fi
	mount -t tmpfs -o mode=700,uid="$uid",gid="$gid",size=8m small "$disk" || bail 'cannot mount'
	journals=$disk/sessions/f/exec
	mounts_before=$(list_mounts)
	start_files
}
off_small_disk() { umount "$disk"; }
has_result() { [ -f "$journals/$1/result" ]; }
fill_up() { # LEAVING: so many KiB
	local free
	free=$(($(df --output=avail -k "$disk" | tail -n 1) - ${1:-0}))
	[ "$free" -le 0 ] || head -c "${free}K" /dev/zero >"$disk/filler" 2>/dev/null
	[ "${1:-0}" -gt 0 ] || cat /dev/zero >>"$disk/filler" 2>/dev/null
	return 0
}
# from the fixed record: journaled and lost bytes of stdout (runtime/store/journal.h)
field() { od -An -t u8 -j "$2" -N 8 "$journals/$1/result" | tr -d ' '; }
kept() { field "$1" 80; }
lost() { field "$1" 96; }
events() { cat "$disk/sessions/f/events.ndjson"; }

begin 'while it runs'
on_small_disk
run start f
run exec f -d -- sh -c 'printf %1000s x; exit 3'
id=$(out)
until_true 5 has_result "$id"
is "$(kept "$id") $(lost "$id")" '1000 0' 'control: all is kept'
run exec f -d -- sh -c 'yes | head -c 1000000; until [ -e ~/go ]; do sleep 0.05; done; yes | head -c 1000000; echo >~/second
	until [ -e ~/on ]; do sleep 0.05; done; echo last'
id=$(out)
until_true 5 sh -c '[ "$(stat -c %s "$1")" = 1000000 ]' - "$journals/$id/out.head"
fill_up 200
run exec f -- sh -c 'echo >~/go'
until_true 10 test -f "$disk/sessions/f/home/second"
ok 'the command goes on'
rm -f "$disk/filler"
run exec f -- sh -c 'echo >~/on'
until_true 10 has_result "$id"
ok 'it ends'
[ "$(lost "$id")" -gt 500000 ]
ok "a part of what it printed was lost ($(lost "$id") bytes)"
is "$(($(kept "$id") + $(lost "$id")))" 2000005 'what was lost is counted'
is "$(tail -c 5 "$journals/$id"/out.head)" last 'what it prints when there is room again is kept'
is_told() { events | grep -q "\"exec.journal-lost\".*\"$id\""; }
until_true 3 is_told
ok 'an event says so'
run logs f "$id"
is "$rc" 0 'logs shows what there is'
like "$(err)" "note: $(lost "$id") bytes of stdout could not be written to the disk*" 'and says that it is not all'
run rm --files f
off_small_disk
finish

begin 'at the end of a command'
on_small_disk
run start f
run exec f -d -- sh -c 'until [ -e ~/go ]; do sleep 0.05; done; exit 3'
id=$(out)
run exec f -- sh -c 'echo >~/go'
fill_up
# of a home on the same disk: there must be room for the file
rm -f "$disk/filler"
fill_up 4
run exec f -- sh -c 'echo >~/go; head -c 100000 /dev/zero >~/rest' 2>/dev/null
sleep 0.5
rm -f "$disk/filler" "$disk/sessions/f/home/rest"
until_true 5 has_result "$id"
ok 'its result is written when there is room'
run rm --files f
off_small_disk
finish

begin 'before it starts'
on_small_disk
run start f
run exec f -d -- true
fill_up
run exec f -d -- touch "$HOME/started"
refused 'cannot make the journal of command *' 'check that the file system of the state directory is not full or read-only' 'it is refused'
[ ! -e "$disk/sessions/f/home/started" ]
ok 'and did not start'
run exec f -- echo attached
is "$rc $(out)" '0 attached' 'a command without a journal runs'
is "$(find "$journals" -mindepth 1 -maxdepth 1 -name '.*')" '' 'nothing half made is left'
run ls
expect_status 0 'ls answers'
run inspect f
expect_status 0 'inspect answers'
run stop f
expect_status 0 'stop works'
is "$(our_processes)" '' 'and stops it'
run exec f -- true
[ "$rc" = 0 ] || grep -q '^hint: ' "$work/err"
ok "a start works or is refused with a hint ($rc)"
rm "$disk/filler"
run exec f -d -- touch "$HOME/started"
id=$(out)
expect_status 0 'when there is room it starts'
until_true 5 has_result "$id"
ok 'and has a journal'
fill_up
run stop f
run rm --files f
expect_status 0 'a full disk is no obstacle to a removal'
rm "$disk/filler"
off_small_disk
finish

done_testing
