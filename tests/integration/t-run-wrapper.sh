#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# casemate run as a wrapper like env or timeout: exit statuses, the three streams, arguments,
# descriptors, and where the command starts.
# shellcheck disable=SC2016
# SC2016: what single quotes keep from this shell is for the shell inside
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

begin 'exit status'
run run -- true
expect_status 0 'of a command that succeeds'
run run -- false
expect_status 1 'of one that fails'
run run -- sh -c 'exit 125'
expect_status 125 'which may be 125'
expect_stderr '' 'and then nothing is said'
run run -- sh -c 'kill -SEGV $$'
expect_status 139 'of a command that a signal ended'
run run -- sh -c 'kill -9 $$'
expect_status 137 'or SIGKILL'
run run --timeout 200ms -- sleep 30
expect_status 124 'of one that took too long'
expect_stderr 'casemate: command ended after its time limit (200 ms)
hint: give it more with --timeout DURATION' 'which is said'
run run -- no-such-program
expect_status 127 'of one that is not there'
like "$(err)" "casemate: 'no-such-program' not found in the jail (exit 127)*" 'which is said'
run run -- /etc/passwd
expect_status 126 'of one that is no program'
like "$(err)" "casemate: cannot execute '/etc/passwd' in the jail (exit 126)*" 'which is said'
run run -- ./missing
expect_status 127 'of a path that is not there'
for name in 'make test' cd 'A=1'; do
	run run -- "$name" /tmp
	is "$rc $(err)" "127 casemate: '$name' not found in the jail (exit 127)
hint: shell text goes after -c: -c 'TEXT' in place of -- and the command" "of what only a shell knows: $name"
done
printf '#!/no/such/interpreter -x\n' >"$work/w/script"
printf '#!/bin/sh\r\n' >"$work/w/dos"
chmod 755 "$work/w/script" "$work/w/dos"
give "$work/w/script" "$work/w/dos"
for name in ./script "$work/w/script"; do
	run run -- "$name"
	like "$rc $(err)" "127 casemate: the interpreter of '$name', '/no/such/interpreter', not found in the jail (exit 127)
hint: *" 'of a script whose interpreter is not there'
done
run run -- ./dos
like "$rc $(err)" "127 casemate: the interpreter of './dos', *
hint: *carriage return*" 'of one with a carriage return'
run run --no-workspace -- "$work/w/script"
like "$(err)" "casemate: '$work/w/script' not found in the jail*" 'a script that the jail does not show'
rm -f "$work/w/script" "$work/w/dos"
run run -w /no/such/place -- true
refused "cannot enter '/no/such/place' in the jail*" '--workdir *' 'a working directory that is not there'
run run --
refused 'no command given' '*' 'no command'
run run --nonsense -- true
refused "unknown option '--nonsense'*" '*' 'an option that is none'
run run --failure-exit 77 --nonsense -- true
expect_status 77 'of a failure as the caller wants it'
cat >"$work/w/script" <<'END'
echo "no interpreter line: $1"
END
chmod 755 "$work/w/script"
give "$work/w/script"
start_files
run run -- ./script yes
expect_out 'no interpreter line: yes' 'a script without #! is a shell script'
finish

begin 'stdin'
echo 'from a pipe' | run run -- cat
expect_out 'from a pipe' 'a pipe'
echo 'from a file' >"$work/in"
run run -- cat <"$work/in"
expect_out 'from a file' 'a file'
run run -- sh -c 'wc -c; stat -L -c %t:%T /proc/self/fd/0' </dev/null
expect_out '0
1:3' '/dev/null'
run run -- sh -c 'wc -c; readlink /proc/self/fd/0' <&-
expect_out '0
/dev/null' 'closed'
printf 'echo one\necho two $((1+2))\nexit 7\n' | run run -- bash -s
expect_out 'one
two 3' 'a script for bash -s'
expect_status 7 'whose status is passed on'
(sleep 0.3; echo late) | run run -- cat
expect_out 'late' 'that comes late'
yes 2>/dev/null | run run -- head -n 1
expect_out 'y' 'that never ends and is not read'
run run -i -- cat <"$work/in"
expect_out 'from a file' 'with -i, as with docker'
{
	run run -- true
	cat >"$work/rest"
} < <(echo 'not wanted')
[ "$(cat "$work/rest")" = '' ] || [ "$(cat "$work/rest")" = 'not wanted' ]
ok 'what a command does not read is lost or left, and never in its way'
finish

begin 'large streams'
head -c 200M /dev/zero | openssl enc -aes-128-ctr -nosalt -K 0123456789abcdef0123456789abcdef \
	-iv 00000000000000000000000000000000 >"$work/big"
want=$(sha256sum <"$work/big")
start_files
got=$("${as[@]}" "$casemate" run -- cat <"$work/big" | sha256sum)
is "$got" "$want" '200 MiB from a file to a pipe'
"${as[@]}" "$casemate" run -- cat <"$work/big" >"$work/copy" &
bg=$!
peak=0
while kill -0 $bg 2>/dev/null; do
	rss=$(awk '/^VmHWM/ { print $2 }' /proc/$bg/status 2>/dev/null)
	[ "${rss:-0}" -le "$peak" ] || peak=$rss
	sleep 0.02
done
cmp -s "$work/big" "$work/copy"
ok '200 MiB from a file to a file'
# a sanitizer's own is 16 MiB of it
[ "$peak" -gt 100 ] && [ "$peak" -lt 32768 ]
ok "in bounded memory ($peak KiB)"
rm -f "$work/copy"
head -c 3000000 "$work/big" >"$work/in"
want=$(sha256sum <"$work/in")
got=$("${as[@]}" "$casemate" run --output 10M -- cat <"$work/in" |
	(for _ in 1 2 3; do sleep 0.1; head -c 65536; done; cat) | sha256sum)
is "$got" "$want" 'a reader that is slow, with an output limit'
# more than fits into the pipe to the reader, less than that and the command's own have room for
got=$("${as[@]}" "$casemate" run -- sh -c 'head -c 120000 /dev/zero' | (sleep 12; wc -c))
is "$got" 120000 'a reader that begins after the command has ended'
got=$("${as[@]}" "$casemate" run --session slow -- sh -c 'head -c 120000 /dev/zero >&2' 2>&1 | (sleep 1; wc -c))
is "$got" 120000 'the same of a session that goes on'
got=$("${as[@]}" "$casemate" run --session slow -- sh -c 'sleep 30 & head -c 120000 /dev/zero' | (sleep 1; wc -c))
is "$got" 120000 'and where something else holds its output'
# a pipe whose reader reads nothing
mkfifo "$work/stuck"
give "$work/stuck"
exec 6<>"$work/stuck"
start_stuck() {
	last_args="$*"
	"${as[@]}" "$casemate" "$@" >&6 2>"$work/err" &
	bg=$!
}
start_stuck run --session slow -- sh -c 'head -c 120000 /dev/zero'
sleep 1
kill -0 $bg
ok 'a reader that does not read is waited for'
kill -TERM $bg
wait_bg
[ "$elapsed_ms" -lt 5000 ]
ok "until a signal ($elapsed_ms ms)"
exec 6>&-
rm "$work/stuck"
run rm --files slow
"${as[@]}" "$casemate" run -- sh -c 'cat; echo end >&2' <"$work/in" >>"$work/appended" 2>"$work/err"
cmp -s "$work/in" "$work/appended"
ok 'a file that is appended to'
is "$(err)" 'end' 'stderr apart from it'
rm -f "$work/big" "$work/in" "$work/appended"
run run -- sh -c 'i=0; while [ $i -lt 3000 ]; do echo o$i; echo e$i >&2; i=$((i+1)); done'
is "$(out | sed s/o// | tail -n 1) $(err | sed s/e// | tail -n 1) $(out | grep -c o) $(err | grep -c e)" \
	'2999 2999 3000 3000' 'two streams at once'
finish

begin 'readers that go away'
since=$(now_ms)
"${as[@]}" "$casemate" run -- yes 2>"$work/err" | head -n 1 >"$work/out"
status=${PIPESTATUS[0]}
is "$(out) $status" 'y 141' 'stdout closed early: SIGPIPE reaches the command'
[ $(($(now_ms) - since)) -lt 5000 ]
ok 'and in time'
run run -- sh -c 'echo hidden; echo seen >&2' >&-
run run -- sh -c 'echo lost' 2>&-
expect_status 0 'stderr closed'
cm run -- sh -c 'echo seen >&2; exit 4' >&- 2>"$work/err"
is "$? $(err)" '4 seen' 'stdout closed'
finish

begin 'a full disk'
for text in 'echo x' 'echo x; exit 5' 'sleep 0.2; echo x; sleep 0.2; echo y; exit 0' yes; do
	cm run -- sh -c "$text" 2>"$work/err" >/dev/full
	is "$? $(err)" '125 casemate: cannot write to standard output: No space left on device
hint: the command has run; its exit status is not this one' "behind stdout is no success: $text"
done
cm run -- sh -c 'echo x' 2>"$work/err" >>/dev/full
is "$?" 125 'behind stdout, appending'
cm run --failure-exit 77 -- sh -c 'echo x' 2>"$work/err" >/dev/full
is "$?" 77 'with a failure as the caller wants it'
cm run -- sh -c 'echo seen; echo x >&2' >"$work/out" 2>/dev/full
is "$? $(out)" '125 seen' 'behind stderr'
cm run --result "$work/result" -- sh -c 'echo x' 2>"$work/err" >/dev/full
like "$(json code "$work/result") $(json end "$work/result") $(json exitCode "$work/result") $(json message "$work/result")" \
	'system * 125 cannot write to standard output*' 'in the result'
cm run -- sh -c 'exit 6' >/dev/full 2>"$work/err"
is "$? $(err)" '6 ' 'matters to nobody who writes nothing'
finish

begin 'arguments'
long=$(head -c 120000 /dev/zero | tr '\0' a)
args=()
for i in $(seq 17); do args+=("$long$i"); done
"${as[@]}" "$casemate" run -- sh -c 'for a; do printf "%s\n" "$a"; done | sha256sum' - "${args[@]}" \
	>"$work/out" 2>"$work/err"
is "$(out)" "$(printf '%s\n' "${args[@]}" | sha256sum)" '2 MiB of them'
run run -- sh -c 'printf "<%s>" "$@"' - '' ' ' $'a\nb' '--' '-x' '*' "'\"\\"
expect_out "<>< ><a
b><--><-x><*><'\"\\>" 'empty and odd ones'
run run -c 'echo $((6 * 7)); exit 9'
is "$(out) $rc" '42 9' '-c'
text="cat <<'END'
$(head -c 120000 /dev/zero | tr '\0' b | fold -w 100)
END
"
run run -c "$text"
is "$(out | wc -l)" 1200 '-c with a here-document'
big=$work/w/here
{
	echo "cat <<'END'"
	head -c 300000 /dev/zero | tr '\0' b | fold -w 100
	printf '\nEND\n'
} >"$big"
start_files
run run -- bash -s <"$big"
is "$(out | tr -d '\n' | wc -c)" 300000 'a here-document of 300 KB on stdin'
finish

begin 'descriptors'
exec 7<"$top/bin/casemate" 8>"$work/extra" 9< <(sleep 0.1)
run run -- bash -c 'cd /proc/self/fd && echo *'
exec 7<&- 8>&- 9<&-
# bash opened the directory for the glob: one more number, and nothing of the caller's
is "$(out)" '0 1 2 3' 'only 0, 1 and 2 are open inside'
run run -- sh -c 'ls -l /proc/self/fd' </dev/null
like "$(out)" '*0 -> /dev/null*' 'stdin is the null device of the jail'
[ "$(out | grep -c 'pipe:')" = 2 ]
ok 'stdout and stderr are pipes of Casemate, also where the caller has files'
run run -- sh -c 'cat <&1'
is "$rc" 1 'stdout cannot be read from: no other writer of the pipe is overheard'
finish

begin 'grandchildren'
since=$(now_ms)
run run -- sh -c 'sleep 30 & setsid sleep 30 & echo done'
ms=$(($(now_ms) - since))
is "$(out)" 'done' 'that hold the streams'
[ $ms -lt 5000 ]
ok "do not delay the end ($ms ms)"
since=$(now_ms)
got=$("${as[@]}" "$casemate" run -- sh -c '(sleep 30; echo no) & setsid -f sleep 30; echo yes')
ms=$(($(now_ms) - since))
is "$got" 'yes' 'nor the end of file of a pipe behind it'
[ $ms -lt 5000 ]
ok "which comes at once ($ms ms)"
finish

begin 'working directory'
mkdir -p "$work/real/a/b" "$work/w/sub/deep"
ln -s "$work/real" "$work/w/link"
ln -s "$work/real" "$work/link"
give "$work"
start_files
cd "$work/w/sub/deep" || bail cd
git -C "$work/w" init -q 2>/dev/null && give "$work/w" && start_files
run run -- sh -c 'pwd; echo $PWD; pwd -P'
expect_out "$work/w/sub/deep
$work/w/sub/deep
$work/w/sub/deep" 'the caller'"'"'s, below the top of the repository'
cd "$work/link/a" || bail cd
run run -- bash -c 'pwd; echo $PWD; pwd -P; ls -d "$0" "$1"' "$work/link/a" "$work/real/a"
expect_out "$work/link/a
$work/link/a
$work/real/a
$work/link/a
$work/real/a" 'through a symbolic link both spellings are there'
run run -w "$work/real/a/b" -- pwd
expect_out "$work/real/a/b" '--workdir'
run run -w b -- sh -c pwd
expect_out "$work/link/a/b" '--workdir below the workspace, in the caller'"'"'s spelling'
finish

done_testing
