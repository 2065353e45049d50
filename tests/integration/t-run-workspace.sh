#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Which trees a command sees, which are refused, and what it can do to the host through them.
# shellcheck disable=SC2016
# SC2016: what single quotes keep from this shell is for the shell inside
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

begin 'the default'
"${as[@]}" git init -q "$work/w"
"${as[@]}" mkdir -p "$work/w/a/b"
echo top >"$work/w/file"
give "$work/w"
start_files
cd "$work/w/a/b" || bail cd
run run -- sh -c 'cat ../../file; echo new >../../made; pwd'
is "$(out) $(cat "$work/w/made")" "top
$work/w/a/b new" 'is the git top level, from a subdirectory'
is "$(stat -c %u "$work/w/made")" "$uid" 'what is made belongs to the owner of the tree'
rm -f "$work/w/made"
mkdir "$work/plain" && give "$work/plain"
echo beside >"$work/beside"
cd "$work/plain" || bail cd
run run -- sh -c "ls -a; cat $work/beside"
is "$(out)" '.
..' 'without git the current directory and nothing beside it'
cd / || bail cd
run run --no-workspace -- sh -c 'pwd; ls -A; touch made && echo writable'
like "$(out)" '/*
writable' '--no-workspace: an empty directory'
finish

begin '--workspace and --volume'
mkdir "$work/tree" "$work/data" "$work/over"
echo content >"$work/tree/file"
echo data >"$work/data/file"
echo single >"$work/one"
give "$work/tree" "$work/data" "$work/one" "$work/over"
start_files
run run --workspace "$work/tree" -- sh -c 'pwd; cat file; echo 1 >made'
is "$(out) $(cat "$work/tree/made")" "$work/tree
content 1" '--workspace DIR'
rm -f "$work/tree/made"
run run --workspace "$work/tree:ro" -- sh -c 'cat file; echo 1 >made'
[ "$rc" != 0 ] && [ "$(out)" = content ] && [ ! -e "$work/tree/made" ] && grep -qi 'read-only' "$work/err"
ok '--workspace DIR:ro'
run run --read-only -v "$work/data" -- sh -c "cat $work/data/file; touch made || touch $work/data/made"
[ "$rc" != 0 ] && [ "$(out)" = data ] && [ ! -e made ] && [ ! -e "$work/data/made" ]
ok '--read-only'
run run -v "$work/data" -- sh -c "cat $work/data/file; echo 2 >$work/data/made"
is "$(out) $(cat "$work/data/made")" 'data 2' '-v DIR is writable'
rm -f "$work/data/made"
run run -v "$work/data:ro" -- sh -c "cat $work/data/file; echo 2 >$work/data/made"
[ "$rc" != 0 ] && [ "$(out)" = data ] && [ ! -e "$work/data/made" ]
ok '-v DIR:ro is not'
run run -v "$work/data:/mnt/there:ro" -v "$work/one:/mnt/one" -- sh -c 'cat /mnt/there/file /mnt/one'
expect_out 'data
single' '-v SRC:DST of a directory and a file'
run run --mount "type=bind,src=$work/data,dst=/mnt/x,ro" -- cat /mnt/x/file
expect_out data '--mount type=bind'
run run -v "$work/data:$work/w/missing" -- true
[ "$rc" = 125 ] && [ ! -e "$work/w/missing" ]
ok 'onto a place that is missing in the tree: refused'
grep -q '^hint: ' "$work/err"
ok 'with a hint, and nothing is made in the tree'
for mode in '' :ro; do
	run run -v "$work/one:/usr/libexec/not-there$mode" -- true
	refused "*'/usr/libexec/not-there'*" '*' "a file onto a place that is missing in /usr${mode:+, read-only}"
done
mkdir "$work/w/there" && give "$work/w/there"
start_files
run run -v "$work/data:$work/w/there" -- cat there/file
expect_out data 'onto a place that is there'
run run -v "$work/not-there" -- true
refused "*'$work/not-there'*" '*' 'a source that is not there'
run run --workspace "$work/not-there" -- true
refused "*'$work/not-there'*" '*' 'a workspace that is not there'
run run --workspace "$work/one" -- true
refused "*" '*' 'a workspace that is a file'
finish

begin 'sockets and pipes of the host'
mkdir "$work/svc"
mkfifo "$work/svc/fifo"
chmod 777 "$work/svc" "$work/svc/fifo"
/usr/bin/python3 - "$work/svc/sock" <<'END' &
import os, socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
os.chmod(sys.argv[1], 0o777)
s.listen()
while True:
    c, _ = s.accept()
    c.sendall(b"REACHED")
    c.close()
END
server=$!
give "$work/svc"
until_true 5 test -S "$work/svc/sock"
start_files
client='import socket,sys
s=socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
print(s.recv(99).decode())'
got=$("${as[@]}" /usr/bin/python3 -c "$client" "$work/svc/sock")
is "$got" REACHED 'control: outside the socket answers'
run run -v "$work/svc" -- /usr/bin/python3 -c "$client" "$work/svc/sock"
is "$(out)" REACHED 'control: inside, through a writable volume, too'
run run -v "$work/svc:ro" -- /usr/bin/python3 -c "$client" "$work/svc/sock"
[ "$rc" != 0 ] && ! grep -q REACHED "$work/out" && grep -q 'Connection\|ConnectionRefused\|refused' "$work/err"
ok 'behind :ro it refuses'
run run --workspace "$work/svc:ro" -- /usr/bin/python3 -c "$client" "$work/svc/sock"
[ "$rc" != 0 ] && ! grep -q REACHED "$work/out"
ok 'in a read-only workspace, too'
(timeout 3 cat "$work/svc/fifo" >"$work/fifo-out") &
reader=$!
sleep 0.2
run run --timeout 1s -v "$work/svc:ro" -- sh -c "echo BAD >$work/svc/fifo"
wait $reader
is "$(cat "$work/fifo-out")" '' 'a FIFO behind :ro leads to no one'
(timeout 5 cat "$work/svc/fifo" >"$work/fifo-out") &
reader=$!
sleep 0.2
run run --timeout 3s -v "$work/svc" -- sh -c "echo GOOD >$work/svc/fifo"
wait $reader
is "$(cat "$work/fifo-out")" GOOD 'control: through a writable volume it does'
kill $server
wait $server 2>/dev/null
finish

begin refusals
refuse() { # NAME ARGUMENT...
	local name=$1
	shift
	run run "$@" -- true
	[ "$rc" = 125 ] && grep -q "^casemate: refusing to use" "$work/err" && grep -q '^hint: ' "$work/err"
	ok "$name" || true
}
refuse / --workspace /
refuse HOME --workspace "$HOME"
refuse 'a parent of HOME' --workspace "$(dirname "$HOME")"
refuse 'HOME by another spelling' --workspace "$HOME/../home/./"
ln -s "$HOME" "$work/w/link" && start_files
refuse 'HOME through a link' --workspace "$work/w/link"
for dir in /etc /run /proc /sys /dev /boot /root /home; do
	# what the caller cannot read is refused by the kernel
	"${as[@]}" test -x $dir || continue
	refuse "$dir" --workspace $dir
	refuse "$dir as a volume" -v $dir:/mnt:ro
done
refuse 'below /etc' -v /etc/ssl:/mnt:ro
if [ -e "$top/etc/passwd" ]; then
	mkdir "$work/later" && give "$work/later" && start_files
	for ((i = 0; i < 300; i++)); do
		echo "cm-test-$i:x:$((65000 + i)):65000::/var/lib/cm-test-$i:/bin/false"
	done >>"$top/etc/passwd"
	echo "cm-test-later:x:64900:64900::$work/later:/bin/sh" >>"$top/etc/passwd"
	refuse 'the home of a user after hundreds' --workspace "$work/later"
fi
run run --session one -- true
if is_root; then
	state=/var/lib/casemate
	[ "$identity" = root ] || state=$XDG_STATE_HOME/casemate
else
	state=$XDG_STATE_HOME/casemate
fi
refuse 'the state directory' --workspace "$state"
refuse "a session's state" -v "$state/sessions/one:/mnt:ro"
refuse 'the session root' --workspace "$root"
refuse "another session's directory" --workspace "$root/one"
run rm --files one
cd "$HOME" || bail cd
run run -- true
[ "$rc" = 125 ] && is "$(err)" "casemate: refusing to use '$HOME' as a workspace
hint: cd into a project, or name one with --workspace DIR" 'the current directory when it is HOME'
cd "$work/w" || bail cd
mkdir "$work/dock" && : >"$work/dock/docker.sock" && give "$work/dock" && start_files
DOCKER_HOST=unix://$work/dock/docker.sock run run -v "$work/dock:ro" -- true
[ "$rc" = 125 ]
ok 'the socket that DOCKER_HOST names'
run run -v "$work/dock:ro" -- true
is "$rc" 0 'control: without DOCKER_HOST it is a directory'
finish

begin 'what a jail leaves'
run run -- sh -c 'echo x >a; chmod 4755 a; chmod 2755 a; cp /bin/true b; chmod 6755 b; mkdir d; chmod 2777 d; install -m 4755 /bin/true c'
is "$(find "$work/w" -perm /6000)" '' 'no file has a set-id bit'
run run -- sh -c 'ls -ln a | cut -d" " -f3'
is "$(out)" 1000 'inside they are the agent'"'"'s'
[ "$(stat -c %u "$work/w/b")" = "$uid" ]
ok 'outside they are the owner'"'"'s of the workspace'
rm -rf "$work/w"/*
run run --session own -- sh -c 'echo x >file; echo y >~/home; echo z >/tmp/t; pwd'
like "$(out)" "$root/own" 'a named session works in its own directory'
if [ "$identity" = root ] && is_root; then
	is "$(find "$root/own" /var/lib/casemate/sessions/own/home /var/lib/casemate/sessions/own/tmp -uid 0)" \
		'' 'and nothing in it is host root'"'"'s'
fi
run rm --files own
expect_status 0 'which rm --files takes away'
[ ! -e "$root/own" ]
ok 'with its files'
finish

begin 'a home below a link'
mkdir "$work/real" "$work/real/home" "$work/real/home/p" "$work/state-there"
chmod 700 "$work/real/home"
ln -s "$work/real" "$work/link"
ln -s "$work/state-there" "$work/state-link"
git init -q "$work/real/home/p" && git -C "$work/real/home/p" -c user.name=a -c user.email=a@b \
	commit -q --allow-empty -m one
give "$work/real" "$work/state-there"
home=$work/real/home
export HOME=$work/link/home
unset XDG_STATE_HOME XDG_CACHE_HOME
allow '^[^ ]*/real/home/\.[^ ]* '
cd "$work/link/home/p" || bail cd
export PWD
run run -- sh -c 'pwd; echo "$HOME"; cd && touch made && pwd'
is "$(out)" "$work/link/home/p
$home
$home" 'is where the link leads, and the workspace as it was spelled'
run run --workspace "$work/link/home/p" -- pwd
expect_out "$home/p" '--workspace'
for options in '' '--session b'; do
	# shellcheck disable=SC2086
	run run --repo . $options -- sh -c 'ls -d .git; touch ~/x /tmp/x'
	expect_out .git "a checkout, ${options:-temporary}"
done
run run --session b -- sh -c 'ls -d ~/x /tmp/x'
expect_out "$home/x
/tmp/x" 'a lasting home and /tmp'
run rm --files b
expect_status 0 'which can be removed'
XDG_STATE_HOME=$work/state-link run run --session c -- echo works
expect_out works 'a state directory below a link'
XDG_STATE_HOME=$work/state-link run rm --files c
rm -rf "$work/real" "$work/link" "$work/state-there" "$work/state-link"
cd "$work/w" || bail cd
finish

done_testing
