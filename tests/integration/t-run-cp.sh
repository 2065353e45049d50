#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# casemate cp: trees into a session, out of it and between two; what is left out; and a session that
# changes every component under it while it is at work.
# shellcheck disable=SC2016
# SC2016: what single quotes keep from this shell is for the shell inside
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

inside() { cm exec s -- sh -c "$1"; }
# names, types, modes, times with nanoseconds, targets, content
describe() {
	(cd "$1" && find . -mindepth 1 -printf '%P %y %m %T@ %l\n' | sort
	find . -type f -exec sha256sum {} + | sort)
}
failed() { # as in t-run-files.sh
	[ "$rc" = 1 ]
	ok "$3" || return
	like "$(err)" "*casemate: $1
hint: $2" "$3: the text"
}

make_tree() { # DIR
	mkdir -p "$1/sub/deep" "$1/empty"
	head -c 500000 /dev/urandom >"$1/bytes"
	echo text >"$1/sub/text"
	: >"$1/nothing"
	printf 'x' >"$1/$(printf 'odd\n\xff')"
	ln -s ../bytes "$1/sub/link"
	ln -s nowhere "$1/dangling"
	ln "$1/bytes" "$1/hard"
	truncate -s 100M "$1/sparse"
	chmod 751 "$1/sub/text"
	chmod 500 "$1/empty"
	touch -h -d '2001-02-03 04:05:06.123456789' "$1/sub/link" "$1/dangling"
	touch -d '2002-02-03 04:05:06.987654321' "$1/bytes" "$1/sub" "$1/sub/deep"
	touch -d '1969-12-31 23:59:59.5 UTC' "$1/nothing"
	give "$1"
}

begin 'a tree'
run start s
make_tree "$work/w/t"
run cp t s:
expect_status 0 'goes in'
expect_stderr '' 'without a word'
is "$(describe "$root/s/t")" "$(describe "$work/w/t")" 'with modes, times, links and holes'
is "$(stat -c %b "$root/s/t/sparse") $(stat -c %h "$root/s/t/bytes")" '0 1' 'holes are holes, hard links files'
run cp s:t out
is "$rc $(describe "$work/w/out")" "0 $(describe "$work/w/t")" 'and comes out'
run cp s:t out
is "$(describe "$work/w/out/t")" "$(describe "$work/w/t")" 'into a directory that is there'
run cp s:t/. merged
is "$rc $(describe "$work/w/merged")" "0 $(describe "$work/w/t")" 'or what is in it'
echo other >"$work/w/merged/nothing"
echo mine >"$work/w/merged/mine"
chmod 700 "$work/w/merged/empty"
run cp s:t/. merged/
is "$rc $(cat "$work/w/merged/mine" "$work/w/merged/nothing")" '0 mine' 'onto what is there: files are replaced, others stay'
run cp t/. s:t2
is "$(describe "$root/s/t2")" "$(describe "$work/w/t")" 'the same inwards'
run cp t/sub/text s:t2/sub
run cp t/sub/text s:t2/new
run cp s:t2/new .
is "$rc $(cat new) $(inside 'cat t2/sub/text')" '0 text text' 'files'
is "$(stat -c %y new)" "$(stat -c %y t/sub/text)" 'with their times'
echo piped | cm cp - s:piped
is "$(cm cp s:piped -)" piped 'a file by standard input and output'
run start z
run cp s:t z:
is "$rc $(describe "$root/z/t")" "0 $(describe "$work/w/t")" 'from one session to another'
run cp z:t z:u
is "$rc $(describe "$root/z/u")" "0 $(describe "$work/w/t")" 'and within one'
run rm --files s z
chmod -R u+w "$work/w"
rm -rf "${work:?}/w"/* "$work/w"/.[!.]*
finish

begin 'what is left out, and what cannot be'
run start s
mkdir "$work/w/t"
mkfifo "$work/w/t/fifo"
echo x >"$work/w/t/suid"
give "$work/w/t"
chmod 6755 "$work/w/t/suid"
python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$work/w/t/socket"
! is_root || mknod "$work/w/t/device" c 1 3
run cp t s:
is "$rc $(inside 'ls t; stat -c %a t/suid')" $'1 suid\n755' 'no device, FIFO, socket; no set-id bit'
is "$(grep -c 'is left out: a device' "$work/err")" $((2 + $(is_root && echo 1 || echo 0))) 'each is named'
chmod 755 "$work/w/t/suid"
inside 'mkdir l l/sub; cd l; ln -s /etc/passwd abs; ln -s ../../x out; ln -s sub in; ln -s ../in sub/up
	ln -s sub/.. tricky; ln -s ../../x sub/out; echo x >file'
run cp s:l l
is "$rc $(cd l && find . -type l | sort | tr '\n' ' ')" '1 ./in ./sub/up ' 'links that lead out'
is "$(grep -c 'it leads out of what is copied' "$work/err")" 4 'are named'
run cp --all-links s:l l2
is "$rc $(find l2 -type l | wc -l)" '0 6' 'and made with --all-links'
run cp s:l/in one
failed "link 'one' is left out*" '--all-links*' 'a link alone leads out'
run cp s:none x
failed "cannot look at 'none' in session 's': No such file*" '*' 'no such file inside'
run cp none s:
failed "cannot read 'none': No such file*" 'what is copied*' 'nor here'
run cp s:l none/x
failed "cannot make 'none/x': No such file*" '*' 'nowhere to go'
run cp s:l/file file/
failed "cannot make 'file/'*Not a directory" '*' 'a file is no directory'
echo x >plain
run cp s:l plain
failed "*" '*' 'a directory does not replace a file'
is "$(cat plain)" x 'which stays'
mkdir -p dir/file
run cp s:l/file dir
failed "cannot make 'dir/file': Is a directory" '*' 'a file does not replace a directory'
run cp t s:/usr
failed "*Read-only file system" '*' 'read-only'
run cp a b
refused 'neither of the two*' 'casemate cp*' 'no session'
run cp s:l -
failed "*Is a directory" '*' 'a directory is not printed'
mkdir locked
echo x >locked/a
echo y >locked/b
give locked
chmod 0 locked/a
if [ "$identity" != root ]; then
	run cp locked s:
	is "$rc $(inside 'ls locked')" '1 b' 'what cannot be read is named, and the rest goes'
fi
chmod 600 locked/a
run rm --files s
chmod -R u+w "$work/w"
rm -rf "${work:?}/w"/* "$work/w"/.[!.]*
finish

begin 'into itself'
run start s --workspace "$work/w"
mkdir -p t/sub
echo x | tee t/a >t/sub/b
give t
mkdir -p t/large t/copy
(cd t/large && seq 4000 | split -l 1 -a 4)
give t
n=$(find t -type f | wc -l)
for place in 't s:t/copy' 's:t t/copy' 's:t s:t/copy'; do
	# shellcheck disable=SC2086
	run cp $place
	is "$(find t/copy -type f | wc -l)" "$n" "once: $place"
	rm -rf t/copy/t
done
rm -rf t/large t/copy
run cp t/. s:t
is "$rc $(find t -type f | wc -l) $(cat t/a t/sub/b | tr -d '\n')" '1 2 xx' 'or onto itself'
run rm s
chmod -R u+w "$work/w"
rm -rf "${work:?}/w"/* "$work/w"/.[!.]*
finish

begin 'nothing half done'
run start s
inside 'head -c 200000000 /dev/zero >big'
start cp s:big "$work/w/big"
until_true 5 test -s "$work/w/big"
kill -INT $bg
wait_bg
is "$rc $(ls -A "$work/w")" '130 ' 'INT on the way out'
echo old >"$work/w/big"
give "$work/w/big"
start cp s:big "$work/w/big"
until_true 5 sh -c "ls -A '$work/w' | grep -q tmp"
kill -TERM $bg
wait_bg
is "$rc $(ls -A "$work/w") $(cat "$work/w/big")" '143 big old' 'what was there is there'
head -c 200000000 /dev/zero >"$work/big"
mkfifo "$work/gate"
start cp "$work/big" s:in
until_true 5 inside 'test -s in'
kill -INT $bg
wait_bg
is "$rc $(inside 'ls -A')" '130 big' 'INT on the way in'
run rm --files s
chmod -R u+w "$work/w"
rm -rf "${work:?}/w"/* "$work/w"/.[!.]*
finish

# The session writes the tree that the caller copies to and from. What is a directory or a file at one
# moment is a link to the outside at the next, at every level.
swapper='
import ctypes, os, sys
libc = ctypes.CDLL(None)
os.chdir(sys.argv[1])
pairs = [("d", "d-link"), ("x/e", "x/e-link"), ("x/f", "x/f-link")]
for name, link in pairs:
    os.symlink(sys.argv[2] + ("/secret" if name == "x/f" else ""), link)
print("swaps", flush=True)
while True:
    for name, link in pairs:
        libc.renameat2(-100, name.encode(), -100, link.encode(), 2)
'
begin 'a session that swaps what is copied'
outside=$work/outside
mkdir -p "$work/w/d/e" "$work/w/x/e" "$outside" "$work/copies"
echo inside | tee "$work/w/d/f" "$work/w/d/e/f" "$work/w/x/f" >"$work/w/x/e/f"
echo 'the secret' | tee "$outside/f" >"$outside/secret"
give "$work/w" "$outside" "$work/copies"
look() { find "$outside" -printf '%p %i %s %m %n %T@\n' | sort; }
before=$(look)
if need PYTHON python3 'a session that swaps'; then
	run start s --workspace "$work/w"
	run exec -d s -- python3 -c "$swapper" "$work/w" "$outside"
	swaps=$(out)
	until_true 10 sh -c "[ -L '$work/w/x/f-link' ] || [ -L '$work/w/x/f' ]"
	inside 'mkdir -p /tmp/src/e/g; echo evil | tee /tmp/src/secret /tmp/src/f /tmp/src/e/secret /tmp/src/e/f >/tmp/src/e/g/h; mkdir /tmp/in'
	n_in=0 n_out=0
	until=$(($(now_ms) + 15000))
	while [ "$(now_ms)" -lt $until ]; do
		for to in d x/e "$work/w/d" "$work/w/x"; do
			cm cp s:/tmp/src/. "$to" && n_out=$((n_out + 1))
			cm cp s:/tmp/src/e/. "$to/e"
			cm cp s:/tmp/src/f "$to/"
		done
		cm cp s:/tmp/src/f d/e/f
		cm cp s:/tmp/src/f x/f
		for from in d d/e d/f x x/e x/e/f x/f; do
			cm cp $from s:/tmp/in/ && n_in=$((n_in + 1))
			cm cp --all-links "s:$work/w/$from" "$work/copies/"
		done
		echo evil | cm file write s "$work/w/d/f"
		echo evil | cm file write s "$work/w/x/f" --atomic
		cm file rm -r s "$work/w/x/e/g"
		cm file read s "$work/w/x/f" >>"$work/read"
	done >/dev/null 2>&1
	is "$(look)" "$before" 'nothing outside of it is written'
	[ $n_out -gt 3 ] && [ $n_in -gt 3 ]
	ok "and copies go through ($n_out out, $n_in in)"
	[ -z "$(inside 'grep -rl "the secret" /tmp/in')$(grep -rl 'the secret' "$work/copies" "$work/read")" ]
	ok 'nothing outside of it is read'
	is "$(inside 'find /tmp/in -name "*.tmp"')" '' 'nothing half done is left'
	run kill s "$swaps"
	run stop s
	run rm s
fi
chmod -R u+w "$work/w"
rm -rf "${work:?}/w"/* "$work/w"/.[!.]*
finish

begin 'links on the way'
run start s
echo x | cm file write s f
mkdir real
ln -s real link
give real
[ "$identity" != root ] || chown -h "$((uid + 1234))" link
run cp s:f link/f
failed "cannot make 'link/f': *" 'it is a symbolic link*' 'a link on the way is not followed'
run cp s:f link
failed "*" '*' 'nor one at the end'
is "$(ls real)" '' 'so that nothing is behind it'
run cp s:f real/../real/./f
is "$rc $(cat real/f)" '0 x' 'dots are'
run cp link s:
is "$rc $(inside 'readlink link')" '0 real' 'a link is copied as one'
run rm --files s
chmod -R u+w "$work/w"
rm -rf "${work:?}/w"/* "$work/w"/.[!.]*
finish

done_testing
