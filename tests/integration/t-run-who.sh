#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Who may speak to a session, and who may pass for one.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

[ -x "${3:-}" ] || bail 'the third argument is the client to test with'
is_root || skip_all ROOT 'only root can be two users'
cp "$3" "$top/bin/keeper_client"

other=64199
as_other=(setpriv --reuid="$other" --regid="$other" --clear-groups --inh-caps=-all --)
served='taken
taken
taken
refused
refused'

places() {
	runtime=$work/runtime/casemate
	state=$work/state/casemate
	[ "$identity" != root ] || runtime=/run/casemate state=/var/lib/casemate
}
socket() { echo "$runtime"/s/*; }
look() { # AS...: what a client gets that is started so
	last_args="(client) $*"
	limit=30 timeout --foreground -k 5 30 "$@" "$top/bin/keeper_client" "${at:-$(socket)}" f look >"$work/out" 2>"$work/err"
	rc=$?
}
no_one() { # NAME: it got no answer
	! grep -qE 'taken|refused' "$work/out"
	ok "$1"
}

begin 'who may speak'
places
run start f
look "${as[@]}"
is "$(out)" "$served" 'control: its own user'
look "${as_other[@]}"
like "$rc $(err)" '1 *cannot connect*Permission denied' 'another user does not get to the socket'
# somebody opened the way to it
mkdir "$work/way"
chmod 755 "$work/way"
mount --bind "$runtime/s" "$work/way"
chmod 755 "$runtime/s" && chmod 777 "$(socket)"
at=$work/way/$(basename "$(socket)")
look "${as_other[@]}"
no_one 'nor an answer from it'
look "${as[@]}" unshare --user --map-root-user
no_one 'a client in another user namespace'
look "${as[@]}" unshare --user --map-root-user --pid --fork
no_one 'nor in another pid namespace'
[ "$identity" != root ] || {
	look unshare --pid --fork
	no_one "nor root's there"
}
[ "$identity" = root ] || {
	# root of the host may do as it likes, but is no client of a user's
	look
	no_one 'root is not its user'
}
look "${as[@]}"
is "$(out)" "$served" 'its own user is, all the same'
at=
chmod 700 "$runtime/s"
umount "$work/way"
run exec f -- echo yes
expect_out yes 'and the session goes on'
run rm --files f
finish

begin 'a way in by a volume'
places
run start f
for dir in "$runtime" "$runtime/s" "$state" "$state/sessions/f"; do
	run run --no-workspace -v "$dir:/mnt/x" -- true
	refused '*' '*' "not with $dir"
	run start g --workspace "$dir"
	[ "$rc" = 125 ] && grep -q '^hint: ' "$work/err"
	ok "nor as a workspace"
done
run exec f -- sh -c 'ls /run/casemate /var/lib/casemate 2>/dev/null | wc -l'
expect_out 0 'a command sees none of it'
run rm --files f
finish

begin 'who passes for a session'
places
run start f
path=$(socket)
mv "$path" "$path.real"
# on the same file system
mkdir "$runtime/their" "$work/their"
chown $other "$runtime/their"
mount --bind "$runtime/their" "$work/their"
"${as_other[@]}" "$top/bin/keeper_client" "$work/their/s" f listen &
impostor=$!
until_true 5 test -S "$work/their/s"
umount -l "$work/their"
mv "$runtime/their/s" "$path"
chmod 777 "$path"
for command in 'exec f -- true' 'exec f -d -- true' 'run --session f -- true' 'start f'; do
	# shellcheck disable=SC2086
	run $command
	[ "$rc" = 125 ] && grep -q "^casemate: the socket of session 'f' belongs to another user" "$work/err"
	ok "$command: not another user's socket"
done
run stop f
like "$(err)" '*belongs to another user*' 'nor is that one stopped'
kill -KILL $impostor
wait $impostor 2>/dev/null
rm "$path"
rmdir "$runtime/their"
run exec f -- true
refused "session 'f' does not answer*" "its keeper lives*" 'nor is one without a socket'
mv "$path.real" "$path"
run exec f -- echo yes
expect_out yes 'with its own it goes on'
run rm --files f
finish

begin 'directories of others'
places
run start f
run stop f
for dir in "$runtime" "$state"; do
	owner=$(stat -c %u:%g "$dir")
	chown $other "$dir"
	for command in 'exec f -- true' 'start f' 'ls' 'stop f'; do
		# shellcheck disable=SC2086
		run $command
		[ "$rc" != 0 ] && grep -q '^casemate: .*uid 64199' "$work/err" && grep -q '^hint: ' "$work/err"
		ok "$command: not with $dir of another user"
	done
	chown "$owner" "$dir"
done
mv "$state/sessions/f" "$state/sessions/real"
ln -s real "$state/sessions/f"
run exec f -- true
[ "$rc" = 125 ]
ok 'nor by a link for a session'
rm "$state/sessions/f"
mv "$state/sessions/real" "$state/sessions/f"
run exec f -- echo yes
expect_out yes 'with its own it goes on'
run rm --files f
finish

done_testing
