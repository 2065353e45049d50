#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# casemate logs and events: what was kept of commands that nobody waited for, while they run, after
# they ended, and when nobody knows how they ended.
#
#   t-logs.sh DIRECTORY-OF-THE-BINARIES root|plain JOURNAL_WRITER
helper=$3
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cp "$helper" "$top/bin/journal_writer"
# what follows for ever is seen soon
export limit=20
driver=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/../helpers/terminal.py
python=/usr/bin/python3

# The state directory of a session.
state_of() {
	if [ "$identity" = root ] && is_root; then
		echo "/var/lib/casemate/sessions/$1"
	else
		echo "$work/state/casemate/sessions/$1"
	fi
}

writer() { "${as[@]}" "$top/bin/journal_writer" "$(state_of s)" "$@"; }

last_seq() { tail -n 1 "$1" | sed 's/.*"seq":\([0-9]*\),.*/\1/'; }
has_caught_up() { [ "$(last_seq "$work/all")" = "$(last_seq "$(state_of s)/events.ndjson")" ]; }

# A session that runs: its last start is the first one.
session() {
	run run --session s -- true
	expect_status 0 'a session'
}

lines() { seq -f "$1 %g" "$2" "$3"; }

followers=()
follow() { # FILE ARGUMENT...: in the background
	local file=$1
	shift
	"${as[@]}" "$casemate" logs -f "$@" >"$work/$file.out" 2>"$work/$file.err" 8>&- 9>&- &
	followers+=($!)
}

is_gone() { ! kill -0 "$1" 2>/dev/null; }

followers_end() { # within ten seconds, all with 0
	local pid until status=0
	until=$(($(now_ms) + 10000))
	for pid in "${followers[@]}"; do
		while kill -0 "$pid" 2>/dev/null && [ "$(now_ms)" -lt $until ]; do
			sleep 0.02
		done
		kill -KILL "$pid" 2>/dev/null
		wait "$pid" 2>/dev/null || status=1
	done
	followers=()
	return $status
}

begin 'what was kept'
session
lines out 1 3 | writer write 1.1 0 ended 3< <(lines err 1 2)
run logs s 1.1
expect_status 0 'the status is none of the command'"'"'s'
expect_out "$(lines out 1 3)" 'stdout'
expect_stderr "$(lines err 1 2)" 'stderr'
run logs --stream stderr s 1.1
is "$(out) $(err)" "$(lines err 1 2) " '--stream stderr: on standard output'
run logs --stream stdout s 1.1
is "$(out) $(err)" "$(lines out 1 3) " '--stream stdout'
run logs --offset 6 s 1.1
is "$(out) $(err)" "$(lines out 2 3) " '--offset'
run logs --offset 6 --stream stderr s 1.1
is "$(out)" 'err 2' '--offset of stderr'
run logs --offset 600 s 1.1
is "$(out) $rc" ' 0' '--offset behind the end'
run logs --offset 6 --bytes 5 s 1.1
is "$(out)" 'out 2' '--bytes'
run logs --tail 1 s 1.1
is "$(out) $(err)" 'out 3 err 2' '--tail: of each stream'
run logs -n 2 --stream stdout s 1
expect_out "$(lines out 2 3)" '--tail, by the number alone'
run logs --tail 0 s 1.1
is "$(out)$(err) $rc" ' 0' '--tail 0'
run logs --tail 99 s 1.1
expect_out "$(lines out 1 3)" '--tail of more than there is'
printf 'a\nb\nhalf' | writer write 1.2 0 ended
run logs --tail 2 s 1.2
is "$(out)" $'b\nhalf' '--tail: a line that has no end is one'
run logs -f s 1.1
is "$(out) $rc" "$(lines out 1 3) 0" '-f of one that has ended ends'
"${as[@]}" "$casemate" stop s
run logs s 1.1
expect_out "$(lines out 1 3)" 'it can be read when the session has stopped'
run rm --files s
run logs s 1.1
refused "session 's' not found" '*' 'of a session that was removed'
finish

begin 'beginning and end'
session
# 64 KiB: the first 16, and of segments of 24 the last two
head -c 200000 /dev/zero | tr '\0' x | fold -w 99 | writer write 1.1 65536 ended
run logs s 1.1
expect_status 0 'what is left'
expect_stderr 'note: bytes 16384 to 163839 of stdout were not kept' 'what is missing is said'
is "$(wc -c <"$work/out")" $((16384 + 202020 - 163840)) 'the rest is there'
run logs --offset 100000 s 1.1
expect_stderr 'note: bytes 100000 to 163839 were not kept' '--offset in what is missing'
is "$(wc -c <"$work/out")" $((202020 - 163840)) 'goes on where something is'
run logs -q --offset 100000 s 1.1
expect_stderr '' '-q'
run logs --offset 170000 s 1.1
is "$(wc -c <"$work/out") $(err)" "$((202020 - 170000)) " '--offset in the end'
run logs --tail 3 s 1.1
is "$(wc -l <"$work/out") $(err)" '2 ' '--tail does not look at what is before'
head -c 40000 /dev/urandom >"$work/bytes"
writer write 1.2 65536 ended <"$work/bytes"
run logs s 1.2
cmp -s "$work/bytes" "$work/out"
ok 'bytes are as they were'
# more than a pipe holds
head -c 1000000 /dev/zero | writer write 1.4 4000000 ended
(
	"${as[@]}" "$casemate" logs s 1.4 2>"$work/err"
	echo $? >"$work/status"
) | head -c 1 >"$work/out"
until_true 5 test -s "$work/status"
is "$(cat "$work/status" "$work/err")" 0 'who reads a byte has no error'
(ulimit -f 20 && cat "$work/bytes" "$work/bytes" | writer write 1.3 1000000 ended)
run logs s 1.3
is "$rc $(err)" '0 note: 59520 bytes of stdout could not be written to the disk' 'what a full disk did not take'
is "$(wc -c <"$work/out")" 20480 'and what it took'
"${as[@]}" "$casemate" rm --files s
finish

begin 'names'
session
run logs s 1.1
refused "session 's' has no command whose output was kept" 'it is kept *' 'there is none'
for i in 1 2 3 4 5 6 7 8 9; do
	writer write 1.$i 0 ended </dev/null
done
run logs s 1.10
refused "session 's' has no command 1.10" "of those that nobody waits for there are 1.5, 1.6, 1.7, 1.8, 1.9 ('casemate ps -a s'); *" 'not there'
run logs s 0.7
refused "session 's' has no command 0.7" 'of those that nobody waits for there are 1.1, 1.2, 1.3, 1.4, 1.5 *' 'of an earlier start'
run logs s 77
refused "session 's' has no command 77" 'of those that nobody waits for there are *' 'the number alone'
echo first | writer write 0.50 0 ended
run logs s 50
expect_out first 'the number alone, of an earlier start'
echo second | writer write 7.50 0 ended
run logs s 50
refused "session 's' has several commands 50" 'say which one: 0.50, 7.50' 'that two starts have'
echo third | writer write 1.50 0 ended
run logs s 50
expect_out third 'the last start'"'"'s is meant'
for bad in '' . 1. .1 x 1.2.3 -- 01.1 ../1.1 1.4294967296; do
	run logs s "$bad"
	[ "$rc" = 125 ] && grep -q '^hint: ' "$work/err"
	ok "'$bad' is none"
done
run logs none 1.1
refused "session 'none' not found" '*' 'no such session'
run logs s
refused "'logs' takes a session and a command of it" '*' 'no command'
run logs --stream both s 1.1
refused "--stream must be stdout or stderr, not 'both'" '*' 'no such stream'
run logs --tail 1 --offset 1 s 1.1
refused '--tail and --offset contradict each other' '*' 'two beginnings'
for bad in '--offset -1' '--tail x' '--bytes 0'; do
	# shellcheck disable=SC2086
	run logs $bad s 1.1
	[ "$rc" = 125 ] && [ ! -s "$work/out" ]
	ok "$bad"
done
echo garbage >"$(state_of s)/exec/1.3/request"
run logs s 1.3
refused 'the journal of command 1.3 is damaged' '*' 'damaged'
"${as[@]}" "$casemate" rm --files s
finish

begin 'following'
session
mkfifo "$work/a" "$work/b"
give "$work/a" "$work/b"
writer write 1.1 0 ended <"$work/a" 3<"$work/b" &
writing=$!
exec 8>"$work/a" 9>"$work/b"
until_true 5 test -e "$(state_of s)/exec/1.1/request"
for i in 1 2 3 4 5 6; do
	follow f$i s 1.1
done
follow tail --tail 1 s 1.1
follow err --stream stderr --offset 2 s 1.1
follow some --bytes 8 s 1.1
echo one >&8
until_true 5 grep -q one "$work/f1.out"
ok 'it comes as it is written'
echo two >&9
until_true 5 grep -q two "$work/f6.err"
ok 'stderr, too'
until_true 5 grep -q two "$work/tail.err"
ok 'and what comes after the tail'
kill -0 "${followers[0]}" 2>/dev/null
ok 'and goes on'
head -c 300000 /dev/zero | tr '\0' y >&8
until_true 5 is_gone "${followers[8]}"
ok '--bytes does not wait for the command'
echo three >&8
exec 8>&- 9>&-
wait $writing
followers_end
ok 'all end with the command'
same=0
for i in 1 2 3 4 5 6; do
	[ "$(sha256sum <"$work/f$i.out")" = "$(sha256sum <"$work/f1.out")" ] &&
		[ "$(cat "$work/f$i.err")" = two ] && same=$((same + 1))
done
is "$same $(wc -c <"$work/f1.out")" '6 300010' 'and all have read the same'
is "$(cat "$work/err.out")" o '--offset'
is "$(cat "$work/some.out")" $'one\nyyyy' '--bytes'
# whoever reads it has enough
mkfifo "$work/c"
give "$work/c"
writer write 1.2 0 ended <"$work/c" &
writing=$!
exec 8>"$work/c"
until_true 5 test -e "$(state_of s)/exec/1.2/request"
echo one >&8
(
	"${as[@]}" "$casemate" logs -f s 1.2 2>"$work/err" 8>&-
	echo $? >"$work/status"
) | head -n 1 >"$work/out"
until_true 5 test -s "$work/status"
ok 'it ends when nobody reads it'
is "$(cat "$work/status") $(out) $(err)" '0 one ' 'quietly'
exec 8>&-
wait $writing
"${as[@]}" "$casemate" rm --files s
finish

begin 'no end'
session
echo begun | writer write 1.1 0 died
follow f s 1.1
until_true 5 grep -q begun "$work/f.out"
sleep 1.2
kill -0 "${followers[0]}" 2>/dev/null
ok 'a command whose session runs is waited for'
"${as[@]}" "$casemate" stop s
followers_end
ok 'until the session has stopped'
like "$(cat "$work/f.err")" 'note: *its end is not known' 'which is said'
run logs -f s 1.1
is "$rc $(out)" '0 begun' 'also later'
like "$(err)" 'note: *its end is not known' 'and is said then'
# started again: the command is of an earlier start
run run --session s -- true
run logs -f s 1.1
is "$rc $(out)" '0 begun' 'also when the session runs again'
like "$(err)" 'note: *its end is not known' 'what is said'
echo begun | writer write 2.1 0 died
follow f s 2.1
until_true 5 grep -q begun "$work/f.out"
writer remove 2.1
followers_end
ok 'one that is removed meanwhile'
like "$(cat "$work/f.err")" 'note: the command was removed meanwhile*' 'is said to be'
echo begun | writer write 2.2 0 ended
echo garbage >"$(state_of s)/exec/2.2/result"
run logs -f s 2.2
is "$rc $(out)" '0 begun' 'a damaged result'
like "$(err)" 'note: the record of the command*damaged*' 'is said to be'
echo begun | writer write 2.3 0 died
follow f s 2.3
until_true 5 grep -q begun "$work/f.out"
"${as[@]}" "$casemate" rm --files s
followers_end
ok 'one whose session is removed'
finish

begin 'a terminal'
if $python -c 'import pty, termios' 2>/dev/null; then
	session
	{
		printf '\033[31mred\a\r\nplain\n'
		printf '\303\244 \342\202\254\n\377'
	} | writer write 1.1 0 ended
	$python "$driver" end -- "${as[@]}" "$casemate" logs s 1.1 >"$work/out" 2>"$work/err"
	is "$(tr -d '\r' <"$work/out")" $'\\x1b[31mred\\x07\nplain\n\303\244 \342\202\254\n\\xff' 'what could be obeyed is escaped'
	# of two and three bytes, so that the gap begins and ends at each place of a character
	for i in 1 2 3 4 5; do
		{
			printf '%*s\n' $i x
			yes $'\303\244\342\202\254' | tr -d '\n' | head -c 200000
			echo y
		} | writer write 2.$i 65536 ended
		$python "$driver" end -- "${as[@]}" "$casemate" logs s 2.$i >"$work/out" 2>"$work/err"
		! grep -qF '\x' "$work/out" && tr -d '\r' <"$work/out" | grep -qF $'\342\202\254y'
		ok "no character is torn where something is missing: $i"
		$python "$driver" end -- "${as[@]}" "$casemate" logs --offset $((i + 8)) s 2.1 >"$work/out" 2>"$work/err"
		! grep -qF '\x' "$work/out"
		ok "nor where it begins: $i"
	done
	"${as[@]}" "$casemate" rm --files s
else
	skip PYTHON 'no python3' 'escaped'
fi
finish

begin 'events'
session
# those of the session's own making are other tests' business
cm stop s
rm -f "$(state_of s)"/events.*
run events s
before=$(wc -l <"$work/out")
expect_status 0 'what there is'
writer event s exec.started 1.1 3
writer event s exec.ended 1.1 2
run events s
is "$(($(wc -l <"$work/out") - before)) $rc" '5 0' 'one a line'
tail -n 5 "$work/out" >"$work/five"
$python -c '
import json, sys
events = [json.loads(line) for line in open(sys.argv[1])]
assert [e["type"] for e in events] == ["exec.started"] * 3 + ["exec.ended"] * 2
assert all(e["v"] == 1 and e["session"] == "s" and e["exec"] == "1.1" for e in events)
assert [e["seq"] for e in events] == list(range(events[0]["seq"], events[0]["seq"] + 5))
' "$work/five"
ok 'JSON, numbered'
first=$(json seq "$work/five")
run events --since $((first + 1)) s
is "$(wc -l <"$work/out") $(json seq)" "3 $((first + 2))" '--since'
run events --type exec.e s
is "$(wc -l <"$work/out") $(json type)" '2 exec.ended' '--type'
run events --type exec.e --since $((first + 3)) s
is "$(wc -l <"$work/out")" 1 'both'
run events --since x s
refused "--since must be *" '*' 'no number'
run events
refused "'events' takes one session, not 0" '*' 'no session'
printf 'half a line' >>"$(state_of s)/events.ndjson"
printf '\0\0\n' >>"$(state_of s)/events.ndjson"
writer event s exec.ended 1.2 1
run events --type exec. s
is "$(wc -l <"$work/out")" 6 'what a power cut damaged is left out'
expect_stderr 'note: 1 damaged lines were left out' 'and is said to be'
if $python -c 'import pty, termios' 2>/dev/null; then
	$python "$driver" end -- "${as[@]}" "$casemate" events s >"$work/out" 2>"$work/err"
	! grep -q $'\302\233' "$work/out" && ! grep -q $'\342\200\256' "$work/out"
	ok 'escaped on a terminal'
fi
# over several logs, with one that reads all and one that wants few
"${as[@]}" "$casemate" events -q -f --type exec. --since $((first - 1)) s >"$work/all" 2>"$work/all.err" &
followers=($!)
"${as[@]}" "$casemate" events -q -f --type exec.ended --since $((first - 1)) s >"$work/few" 2>"$work/few.err" &
followers+=($!)
for _ in 1 2 3 4; do
	writer event s exec.started 1.3 20000 &
	writing=$!
	writer event s exec.ended 1.4 10
	wait $writing
	until_true 10 has_caught_up
done
is "$(wc -l <"$work/all") $(wc -l <"$work/few")" '80046 43' '-f goes on over old logs'
[ -e "$(state_of s)/events.ndjson.1" ] && [ "$(stat -c %s "$(state_of s)/events.ndjson.1")" -le 4194304 ]
ok 'which have a bound'
sed 's/.*"seq":\([0-9]*\),.*/\1/' "$work/all" >"$work/seqs"
sort -n -u "$work/seqs" | cmp -s - "$work/seqs"
ok 'in order, and none twice'
(
	"${as[@]}" "$casemate" events -f s 2>"$work/err"
	echo $? >"$work/status"
) | head -n 1 >"$work/out"
until_true 5 test -s "$work/status"
is "$(cat "$work/status")" 0 'it ends when nobody reads it'
rm "$work/status"
(
	"${as[@]}" "$casemate" events -f --since $(($(last_seq "$work/all") - 1)) s 2>"$work/err"
	echo $? >"$work/status"
) | head -n 1 >"$work/out"
until_true 5 test -s "$work/status"
ok 'also when there is nothing to write'
is "$(wc -l <"$work/out") $(cat "$work/status" "$work/err")" '1 0' '-f ends quietly'
"${as[@]}" "$casemate" rm --files s
followers_end
ok '-f ends when the session is removed'
run events s
refused "session 's' not found" '*' 'of a session that was removed'
finish

done_testing
