#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# casemate file: reading, writing, listing and changing files of a session; names, holes, signals,
# full and read-only file systems, and what happens in a directory.
# shellcheck disable=SC2016
# SC2016: what single quotes keep from this shell is for the shell inside
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

sum() { sha256sum | cut -c 1-64; }
inside() { cm exec s -- sh -c "$1"; }
# failed GLOB-OF-THE-ERROR GLOB-OF-THE-HINT NAME: the last one said so, and nothing else was done
failed() {
	[ "$rc" = 1 ]
	ok "$3" || return
	like "$(err)" "*casemate: $1
hint: $2" "$3: the text"
}
nothing_runs() { [ "$(cm ps s --json | grep -c '"state": "running"')" = 0 ]; }

begin 'read and write'
run start s
head -c 3000000 /dev/urandom >"$work/bytes"
run file write s bytes <"$work/bytes"
expect_status 0 'a file is written'
is "$(inside 'sha256sum <bytes | cut -c 1-64')" "$(sum <"$work/bytes")" 'as it was'
is "$(inside 'stat -c "%a %u" bytes; id -u' | tr '\n' ' ')" '644 1000 1000 ' 'by the session'"'"'s user'
is "$(cm file read s bytes | sum)" "$(sum <"$work/bytes")" 'and read as it is'
is "$(head -c 9000000 "$work/bytes" | cm file write s piped && cm file read s piped | sum)" "$(sum <"$work/bytes")" 'by a pipe, too'
is "$(cm file read s bytes --offset 1000000 --length 7 | od -A n -t x1)" \
	"$(tail -c +1000001 "$work/bytes" | head -c 7 | od -A n -t x1)" 'a part of it'
run file read s bytes --offset 4000000
is "$rc $(out)" '0 ' 'behind its end there is nothing'
echo one | cm file write s new/dir/text -p
echo two | cm file write s new/dir/text --append --mode 640
is "$(inside 'cat new/dir/text; stat -c %a new/dir/text')" $'one\ntwo\n640' 'directories are made, bytes appended, modes set'
inside 'chmod 751 new/dir/text; ln -s dir/text new/link; ln new/dir/text new/other'
echo three | cm file write s new/link --atomic
is "$(inside 'cat new/dir/text; stat -c %a new/dir/text; cat new/other; readlink new/link; ls -A new/dir')" \
	$'three\n751\none\ntwo\ndir/text\ntext' '--atomic replaces the file, with its mode, and not a link to it'
run file write s text --mode 4755 </dev/null
refused '--mode has a set-id*' '*' 'no set-id mode'
run file write s text --mode 1777 </dev/null
refused '--mode has a set-id*' '*' 'and no sticky one'
run file write s text --append --atomic </dev/null
refused '--append and --atomic*' '*' 'both at once'
cm file write s version </proc/version
is "$(cm file read s version)" "$(cat /proc/version)" 'of a file that is longer than its size'
run file rm s version
run file read s /proc/meminfo
like "$(out)" 'MemTotal:*' 'a file of procfs'
echo 'sh -c' | cm file write s '-dash' 2>"$work/err" || true
like "$(err)" '*unknown option*' 'a dash is an option'
run file write s -- -dash </dev/null
run file ls s -- -dash
expect_out -dash 'behind "--" it is a name'
is "$(cd "$root/s/new" && cm file read s ../bytes | sum)" "$(cm file read s bytes | sum)" \
	'relative to where the caller is, below the workspace'
run rm --files s
finish

begin 'what cannot be done'
run start s
inside 'mkdir d; echo x >d/f; touch locked; chmod 0 locked; mkdir ro; chmod 555 ro'
run file read s none
failed "cannot read 'none' in session 's': No such file or directory" "'casemate file ls s DIR'*" 'no such file'
run file read s d
failed "cannot read 'd' in session 's': Is a directory" "'casemate cp'*" 'a directory'
run file read s d/f/g
failed "cannot read 'd/f/g' in session 's': Not a directory" "something before*" 'not a directory'
run file read s locked
failed "*Permission denied" 'what the session*' 'no rights'
run file write s /usr/x </dev/null
failed "cannot open '/usr/x' in session 's': Read-only file system" 'it is read-only*' 'read-only'
run file write s none/x </dev/null
failed "*No such file or directory" '*mkdir -p*' 'no directory'
run file write s d </dev/null
failed "*Is a directory" '*' 'a directory is not written to'
run file write s "$(printf 'n%.0s' $(seq 300))" </dev/null
failed "*name too long" 'a name has*' 'a long name'
run file write s "$(printf 'n/%.0s' $(seq 3000))" </dev/null
failed "*name too long" 'a name has*' 'a long path'
run file mkdir s d
failed "*File exists" 'remove it first*' 'it is there'
run file rm s d
failed "*Is a directory" "'file rm -r'*" 'rm of a directory'
run file rm s .
failed "cannot remove '.'*" '*' 'rm of where it is' || true
run file mv s none d
failed "cannot move 'none'*" '*' 'mv of nothing'
run file mv -n s locked d/f
failed "cannot make 'd/f'*File exists" '*' 'mv --no-clobber'
run file mv s d /tmp
failed "cannot move 'd'*" 'these are two file systems*' 'mv to another file system'
run file frobnicate s x
refused "'file' has no operation*" 'read, write*' 'no such operation'
run file read s
refused "'file read' takes*" '*' 'no path'
run file read none x
refused "*none*" '*' 'no such session'
run file read s "$(printf 'bell\a')"
like "$(err)" "*'bell\\\\x07'*" 'what is printed is escaped'
run rm --files s
finish

begin 'listing and changing'
run start s
run file mkdir s -p a/b/c --mode 700
is "$rc $(inside 'stat -c %a a a/b a/b/c | tr "\n" " "')" '0 755 755 700 ' 'mkdir -p'
run file mkdir s -p a/b
expect_status 0 'once more'
inside 'cd a; echo 12345 >f; ln -s ../nowhere l; touch -d @1.123456789 f; mkfifo p'
is "$(cm file ls s a)" $'b\nf\nl\np' 'ls'
is "$(cm file ls s a -r)" $'b\nb/c\nf\nl\np' 'ls -r'
is "$(cm file ls s a/f a/b)" $'a/f\na/b/c' 'of several'
is "$(cm file ls s -d a a/b)" $'a\na/b' 'ls -d'
is "$(cm file ls s a/l)" a/l 'ls of a link to nowhere'
run file ls s a/f none '' a/b
is "$rc $(out | tr '\n' ' ')$(grep -c "'none'\|''" "$work/err")" '1 a/f a/b/c 2' 'of several, of which some are not there'
run file ls s ''
is "$rc $(out)" '1 ' 'an empty path'
inside 'mkdir a/b/c/closed; chmod 0 a/b/c/closed'
run file ls -r s a/b
failed "cannot list 'a/b/c/closed'*Permission denied" '*' 'ls -r, what it cannot enter'
is "$(out)" $'c\nc/closed' 'and the rest'
inside 'rmdir a/b/c/closed'
like "$(cm file ls s -l a/l)" 'lrwxrwxrwx *a/l -> ../nowhere' 'ls -l'
like "$(cm file stat --json s a/f)" '{"name":"a/f","type":"file","size":6,*"mode":"0644",*"mtime":"1970-01-01T00:00:01.123456789Z"}' 'stat --json'
# what the session links to its own streams is not read or written as a file
inside 'for n in 0 1; do ln -s /proc/self/fd/$n a/own$n; done'
for n in 0 1; do
	limit=10 run file read s "a/own$n" </dev/null
	failed "cannot read 'a/own$n'*" '*' "the stream $n is not read as a file"
	echo x | limit=10 run file write s "a/own$n"
	failed "cannot * 'a/own$n'*" '*' "nor written"
done
inside 'rm a/own?'
like "$(cm file stat s a/l)" $'name:   a/l\ntype:   symlink\n*target: ../nowhere' 'stat of a link'
run file stat -L s a/l
failed "cannot look at 'a/l'*No such file*" '*' 'stat -L of one to nowhere'
run file stat --json s a none a/f
is "$rc $(grep -c . "$work/out") $(grep -c "'none'" "$work/err")" '1 2 1' 'what can be looked at is, and the rest is said'
run file mv s a/f a/b
run file mv s a/b/f a/b/g
is "$(cm file ls s a -r)" $'b\nb/c\nb/g\nl\np' 'mv, into a directory and to a name'
inside 'mkdir keep; touch keep/x; ln -s ../keep a/b/link; ln -s keep k'
run file rm -r s a k
is "$rc $(cm file ls s -r)" $'0 keep\nkeep/x' 'rm -r follows no link'
run file rm -f s none none/x
expect_status 0 'rm -f'
run file mkdir s several a/b several/more
is "$rc $(cm file ls s -d several several/more | tr '\n' ' ')$(grep -c "'a/b'" "$work/err")" '1 several several/more 1' 'mkdir of several, of which one is there'
run file rm -r s several none a/b/none
is "$rc $(grep -c 'No such file' "$work/err")" '1 2' 'rm of several, of which some are not there'
inside 'mkdir many; cd many; i=0; while [ $i -lt 3000 ]; do : >$i; i=$((i+1)); done'
is "$(cm file ls s many | sum)" "$(seq 0 2999 | LC_ALL=C sort | sum)" 'many, sorted'
run rm --files s
finish

begin 'names'
run start s
nl=$'a\nb' raw=$'\xff\xfe\x1b[31m' both=$'x\xe9'
for name in "$nl" "$raw" "$both" ' ' '~' '*' '$(id)'; do
	echo "$name" | cm file write s "$name" || break
done
is "$rc" 0 'any name is written'
is "$(cm file read s "$raw"; cm file read s "$nl")" "$raw"$'\n'"$nl" 'and read'
is "$(cm file ls s | grep -a x)" $'a\\x0ab\nx\\xe9\n\\xff\\xfe\\x1b[31m' 'printed escaped'
is "$(cm file ls s -0 | tr '\0' '\n' | LC_ALL=C sort | sum)" \
	"$(printf '%s\n' "$nl" "$raw" "$both" ' ' '~' '*' '$(id)' | LC_ALL=C sort | sum)" 'as they are with -0'
is "$(cm file ls s --json | sed -n 's/.*"nameBase64":"\([^"]*\)".*/\1/p')" \
	"$(printf %s "$both" | base64)"$'\n'"$(printf %s "$raw" | base64)" 'whole in JSON, where they are no UTF-8'
run cp "s:$raw" "$work/w/"
is "$(cat "$work/w/$raw")" "$raw" 'and copied'
rm -f "$work/w/$raw"
run rm --files s
finish

begin 'holes'
run start s
truncate -s 5G "$work/sparse"
printf 'the middle' | dd of="$work/sparse" bs=1 seek=3000000000 conv=notrunc status=none
printf 'the end' >>"$work/sparse"
truncate -s +1M "$work/sparse"
give "$work/sparse"
size=$(stat -c %s "$work/sparse")
run file write s written <"$work/sparse"
run cp "$work/sparse" s:copied
is "$(inside 'stat -c %s written copied')" "$size"$'\n'"$size" '5 GiB go in'
is "$(inside 'du -k written copied | awk "{ print (\$1 < 200) }"')" $'1\n1' 'and their holes are holes'
cm file read s written >"$work/back"
is "$(stat -c %s "$work/back") $(($(stat -c %b "$work/back") < 400))" "$size 1" 'a file that is read into has them'
run cp s:copied "$work/w/out"
is "$(stat -c %s "$work/w/out") $(($(stat -c %b "$work/w/out") < 400))" "$size 1" 'one that is copied out, too'
cmp "$work/sparse" "$work/w/out" && cmp "$work/sparse" "$work/back"
ok 'and it is the same'
is "$(cm file read s written --offset 2999999999 --length 12 | tr '\0' .)" '.the middle.' 'a part around a hole'
is "$(cm file read s written --length 70000 | sum)" "$(head -c 70000 /dev/zero | sum)" 'into a pipe they are zeros'
rm -f "$work/w/out" "$work/back"
run rm --files s
finish

begin 'full'
if is_root; then
	run start s --workspace "$work/w"
	mount -t tmpfs -o "size=1m,uid=$uid,gid=$gid,mode=700" small "$work/home"
	mkdir "$work/home/w"
	give "$work/home/w"
	run rm s
	XDG_STATE_HOME=$work/state run start s --workspace "$work/home/w"
	head -c 3000000 /dev/urandom >"$work/bytes"
	run file write s big <"$work/bytes"
	failed "cannot write 'big' in session 's' (* bytes were written): No space left on device" '*full*' 'a full disk'
	is "$(stat -c %s "$work/home/w/big")" "$(sed -n 's/.*(\([0-9]*\) bytes.*/\1/p' "$work/err")" 'what was written is said'
	run file rm s big
	echo old >"$work/home/w/atomic"
	give "$work/home/w/atomic"
	run file write s atomic --atomic <"$work/bytes"
	failed "cannot write 'atomic' in session 's': No space left on device" '*' '--atomic'
	is "$(ls -A "$work/home/w") $(cat "$work/home/w/atomic")" 'atomic old' 'leaves what was'
	run cp "$work/bytes" s:copy
	failed "cannot write 'copy' in session 's': No space left on device" '*' 'cp in'
	is "$(ls -A "$work/home/w")" 'atomic' 'leaves nothing'
	cm file write s /tmp/large <"$work/bytes"
	run cp s:/tmp/large "$work/home/out"
	failed "cannot write '$work/home/out': No space left on device" '*' 'cp out'
	is "$(find "$work/home" -mindepth 1 -maxdepth 1 -printf '%f ')" 'w ' 'leaves nothing, either'
	run rm s
	rm -rf "$work/home/w"
	umount "$work/home"
else
	skip ROOT 'only root can make a small file system' 'a full disk'
fi
finish

begin 'signals'
run start s
mkfifo "$work/in"
exec 7<>"$work/in"
for sig in INT TERM; do
	"${as[@]}" "$casemate" file write s --atomic "new" <"$work/in" 2>"$work/err" &
	bg=$!
	head -c 300000 /dev/zero >&7
	until_true 5 inside 'ls -A | grep -q tmp'
	kill -$sig $bg
	wait_bg
	is "$rc" $((128 + $(kill -l $sig))) "$sig ends it"
	is "$(inside 'ls -A')" '' 'nothing of it is left'
	nothing_runs
	ok 'and it does not go on inside'
done
"${as[@]}" "$casemate" file write s --atomic "new" <"$work/in" 2>"$work/err" &
bg=$!
head -c 300000 /dev/zero >&7
until_true 5 inside 'ls -A | grep -q tmp'
kill -KILL $bg
wait_bg
until_true 5 nothing_runs
is "$(inside 'ls -A')" '' 'a client that was killed leaves nothing, either'
"${as[@]}" "$casemate" file write s --atomic "new" <"$work/in" 2>"$work/err" &
bg=$!
head -c 300000 /dev/zero >&7
until_true 5 inside 'ls -A | grep -q tmp'
run stop s
wait_bg
is "$rc" 125 'the end of the session ends it'
like "$(err)" '*session*' 'which is said'
run exec s -- sh -c 'ls -A'
expect_out '' 'and nothing of it is left'
exec 7<&-
inside 'mkfifo fifo'
start file read s fifo
sleep 0.3
kill -INT $bg
wait_bg
is "$rc" 130 'a read that waits ends, too'
start file read s /dev/zero
sleep 0.2
kill -TERM $bg
wait_bg
is "$rc" 143 'and one that never ends'
"${as[@]}" "$casemate" file read s /dev/zero 2>"$work/err" | head -c 10 >"$work/out"
is "${PIPESTATUS[0]} $(err)" '141 ' 'a reader that goes away'
nothing_runs
ok 'nothing runs any more'
run rm --files s
finish

begin 'a session that does not run'
run create s
echo first | cm file write s f
is "$(cm file read s f)" first 'is started'
run stop s
is "$(cm file read s f)" first 'and again'
run rm --files s
finish

begin 'nothing of init'
run start s
start file watch s
until_true 5 grep -q ready "$work/out"
# what runs there is a copy of init's memory: it is as closed as init is
got=$(inside 'for p in /proc/[0-9]*; do
	[ "$p" = /proc/$$ ] || [ "$p" = /proc/1 ] && continue
	[ "$(tr "\0" " " <$p/cmdline 2>/dev/null | cut -c 1-2)" != sh ] || continue
	echo found
	cat $p/environ $p/maps 2>/dev/null | head -n 1
	ls $p/fd 2>/dev/null
	(: <$p/mem) 2>/dev/null && echo mem
	readlink $p/exe $p/cwd $p/root
done 2>/dev/null')
is "$got" found 'its memory, files and root are shown to nobody inside'
kill -INT $bg
wait_bg
is "$(inside 'id -u >/dev/null; grep -E "^(CapEff|CapPrm|CapBnd|NoNewPrivs|Seccomp|Groups):" /proc/self/status' | sed 's/Groups:.*/Groups/')" \
	"$(cm file read s /proc/self/status | grep -E '^(CapEff|CapPrm|CapBnd|NoNewPrivs|Seccomp|Groups):' | sed 's/Groups:.*/Groups/')" \
	'it has the rights of a command'
run file read s /proc/self/status
is "$(grep -E '^(Uid|Gid):' "$work/out")" "$(inside 'grep -E "^(Uid|Gid):" /proc/self/status')" 'and its ids'
run rm --files s
finish

begin 'watch'
run start s
inside 'mkdir -p w/a/b'
events() { sed 's/.*"type":"\([a-z]*\)"\(,"path":"\([^"]*\)"\)\?\(,"directory":[a-z]*\)\?\(,"from":"\([^"]*\)"\)\?.*/\1 \6>\3/' "$work/out"; }
has_event() { events | grep -xF "$1" >/dev/null; }
start file watch --json s w
until_true 5 has_event 'ready >'
ok 'says when it stands'
inside 'cd w; echo 1 >f; mv f g; mv a c; echo 2 >c/b/n; mv c ../out; echo lost >../out/b/lost; mv ../out in; echo 3 >in/b/k; rm g'
until_true 5 has_event 'removed >g'
is "$(events | head -n 10)" 'ready >
created >f
modified >f
closed >f
renamed f>g
renamed a>c
created >c/b/n
modified >c/b/n
closed >c/b/n
removed >c' 'what happens, renames as one, and what was moved away as removed' || events | sed 's/^/# /'
is "$(events | tail -n +11 | grep created | sort)" 'created >in
created >in/b
created >in/b/k
created >in/b/lost
created >in/b/n' 'what was moved in, with all below, and nothing of it twice'
is "$(events | tail -n 1)" 'removed >g' 'and no more'
inside 'cd w; i=0; while [ $i -lt 300 ]; do mkdir -p r$i/s; echo >r$i/s/f; i=$((i+1)); done; touch last'
until_true 10 has_event 'created >last'
is "$(events | grep -cE '^created >r[0-9]+/s/f$')" 300 'what is made in directories that are made is not missed'
is "$(events | grep -E '^created >r' | sort | uniq -d)" '' 'and told once'
kill -INT $bg
wait_bg
is "$rc" 130 'INT ends it'
start file watch s w --json
until_true 5 has_event 'ready >'
kill -STOP $bg
inside 'mkdir w/big; cd w/big; i=0; while [ $i -lt 60000 ]; do : >f$i; i=$((i+1)); done; touch ../done'
kill -CONT $bg
until_true 20 has_event 'overflow >'
ok 'that events were lost is said'
until_true 20 sh -c "[ \$(grep -c '\"ready\"' '$work/out') = 2 ]"
is "$(events | grep -cE '^(found) >(big/f[0-9]+|done)$')" 60001 'and what is there is told anew'
inside 'touch w/after'
until_true 5 has_event 'created >after'
ok 'it goes on'
inside 'rm -r w'
wait_bg
is "$rc $(events | tail -n 1)" '0 gone >' 'until the directory is gone'
run file watch s none
failed "cannot watch 'none'*" '*' 'nothing to watch'
inside 'mkdir w'
start file watch s
until_true 5 grep -q ready "$work/out"
run stop s
wait_bg
is "$rc" 0 'or the session ends'
run rm --files s
finish

begin 'who'
if [ "$identity" = root ] || [ "$identity" = sub ]; then
	run start s --user root
	echo root | cm file write s /tmp/root
	echo user | cm file write s /tmp/user --user user
	is "$(inside 'stat -c %u /tmp/root /tmp/user')" $'0\n1000' 'as the commands, or as less'
	run rm --files s
else
	skip ROOT 'one id has no root inside' 'who writes'
fi
finish

done_testing
