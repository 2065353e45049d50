#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Streams of commands in sessions: large ones whole and in bounded memory, slow and missing readers,
# input that nobody reads, large scripts and argument lists.  What could wait for ever has a limit.
# shellcheck disable=SC2016
# SC2016: what single quotes keep from this shell is for the shell inside
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need STREAMS openssl 'a stream of random bytes' || done_testing
limit=90

# random BYTES: the same ones each time
random() {
	openssl enc -aes-128-ctr -nosalt -K 0123456789abcdef0123456789abcdef \
		-iv 00000000000000000000000000000000 </dev/zero 2>/dev/null | head -c "$1"
}
sum() { sha256sum | cut -c 1-64; }
member() { sed -n "s/.*\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p"; } # of a line of JSON
keeper_of() { cm events "$1" --type session.started | tail -n 1 | member keeperPid; }
peak_kib() { awk '/^VmHWM/ { print $2 }' "/proc/$1/status" 2>/dev/null; }
# what such a command has written, by its own account
wrote() { cm exec "$1" -- sh -c 'cat ~/wrote 2>/dev/null || echo 0'; }
# writes 64 KiB at a time, and says how many times it could
writer='i=0; while [ $i -lt '"'%s'"' ]; do head -c 65536 /dev/zero || exit 9; i=$((i+1)); echo $i >~/wrote; done'
detached() { # ARGUMENT OF exec...: its id in $id
	run exec s -d "$@"
	id=$(out)
}
has_ended() { cm events s --type exec.ended | grep -qF "\"exec\":\"$1\""; }

# The memory of the client and the keeper, read while the client lives.
watch_peaks() { # PID-OF-KEEPER
	client_peak=0
	keeper_peak=0
	local kib
	while kill -0 "$bg" 2>/dev/null; do
		kib=$(peak_kib "$bg")
		[ "${kib:-0}" -le "$client_peak" ] || client_peak=$kib
		kib=$(peak_kib "$1")
		[ "${kib:-0}" -le "$keeper_peak" ] || keeper_peak=$kib
		sleep 0.05
	done
}

begin '1 GiB both ways'
run start s
mkfifo "$work/in" "$work/through"
random 1G | tee >(sum >"$work/sent") >"$work/in" &
(sum >"$work/received") <"$work/through" &
"${as[@]}" "$casemate" exec -i s -- cat <"$work/in" >"$work/through" 2>"$work/err" &
bg=$!
# its sleep goes with it: at the end all children are waited for
(
	sleep 200 &
	trap 'kill $!; exit' TERM
	wait $!
	kill -KILL "$bg"
) 2>/dev/null &
watchdog=$!
watch_peaks "$(keeper_of s)"
wait $bg
rc=$?
kill $watchdog 2>/dev/null
until_true 5 test -s "$work/received" -a -s "$work/sent"
is "$rc $(cat "$work/received")" "0 $(cat "$work/sent")" 'comes back as it went'
# a sanitizer's own is 16 MiB of it
[ "$client_peak" -gt 100 ] && [ "$client_peak" -lt 32768 ]
ok "in bounded memory of the client ($client_peak KiB)"
[ "$keeper_peak" -gt 100 ] && [ "$keeper_peak" -lt 32768 ]
ok "and of the keeper ($keeper_peak KiB)"
run rm --files s
finish

begin 'detached: 200 MiB'
run start s
# lines of nine bytes: where each is can be told
lines='seq 10000000 33300000'
bytes=$((23300001 * 9))
detached --output 800M -- sh -c "$lines"
timeout 60 "${as[@]}" "$casemate" logs s "$id" -f 2>"$work/err" | sum >"$work/got"
is "$(cat "$work/got")" "$($lines | sum)" 'all of it, where so much may be kept'
is "$(err)" '' 'and nothing is said'
# what a test may fill of root's disk is 256 MiB
run rm --files s
run start s
detached -- sh -c "$lines; echo the end"
until_true 60 has_ended "$id"
"${as[@]}" "$casemate" logs s "$id" >"$work/kept" 2>"$work/err"
kept=$(stat -c %s "$work/kept")
[ "$kept" -le $((64 * 1048576)) ] && [ "$kept" -ge $((40 * 1048576)) ]
ok "else 64 MiB at the most ($kept bytes)"
head=$((16 * 1048576))
is "$(head -c $head "$work/kept" | sum)" "$($lines | head -c $head | sum)" 'the head'
is "$(tail -n 1 "$work/kept")" 'the end' 'and the tail'
tail=$((kept - head))
is "$(tail -c $tail "$work/kept" | sum)" "$({ $lines; echo the end; } | tail -c $tail | sum)" \
	'which is the last of it without a hole'
like "$(err)" "note: bytes $head to $((bytes + 8 - tail - 1)) *" 'what is missing is named'
rm -f "$work/kept"
is "$(peak_kib "$(keeper_of s)" | awk '{ print ($1 < 32768) }')" 1 'in bounded memory of the keeper'
run rm --files s
finish

begin 'slow and missing readers'
run start s
# shellcheck disable=SC2059
writer_of_320=$(printf "$writer" 320)
mkfifo "$work/pipe"
exec 7<>"$work/pipe"
"${as[@]}" "$casemate" exec s -- sh -c "$writer_of_320" >"$work/pipe" 2>"$work/err" &
bg=$!
sleep 1.5
first=$(wrote s)
sleep 0.5
is "$(wrote s)" "$first" 'while nobody reads the command waits'
[ "$first" -lt 64 ]
ok "after less than 4 MiB ($first of 320 pieces)"
[ "$(peak_kib $bg)" -lt 32768 ]
ok 'and casemate holds none of it'
run exec s -- echo beside
is "$rc $(out)" '0 beside' 'other commands go on'
is "$(timeout 60 head -c $((320 * 65536)) <&7 | wc -c)" $((320 * 65536)) 'a reader that comes late gets all'
wait_bg
is "$rc $(wrote s)" '0 320' 'and the command ends'
exec 7<&-
is "$("${as[@]}" timeout 60 "$casemate" exec s -- sh -c 'random() { head -c 20000000 /dev/urandom; }
	random >/tmp/r; sha256sum </tmp/r >~/sum; cat /tmp/r' |
	python3 -c 'import hashlib, os, time
h = hashlib.sha256()
n = 0
while True:
    data = os.read(0, 65536)
    if not data:
        break
    h.update(data)
    n += 1
    if n % 40 == 0:
        time.sleep(0.05)
print(h.hexdigest())')" "$(cm exec s -- sh -c 'cut -c 1-64 ~/sum')" 'a slow reader gets all'
# the reader is gone: so is the command, and the client says what a pipe's writer says
{
	timeout 30 "${as[@]}" "$casemate" exec s -- sh -c 'yes; echo "yes $?" >~/left' 2>"$work/err"
	echo $? >"$work/rc"
} | head -n 1 >"$work/first"
is "$(cat "$work/first")" y 'a reader that goes away'
[ "$(cat "$work/rc")" != 124 ]
ok "ends the wait (status $(cat "$work/rc"))"
gone() { ! cm exec s -- sh -c 'grep -l "^yes$" /proc/[0-9]*/comm 2>/dev/null | grep -q .'; }
until_true 10 gone
ok 'and what wrote'
run rm --files s
finish

begin 'detached, and nobody reads'
run start s
detached --output 64K -- sh -c 'yes | head -c 50000000; echo >~/done'
until_true 30 has_ended "$id"
run exec s -- test -e "$HOME/done"
expect_status 0 'the command is not held up'
run rm --files s
finish

begin 'input that nobody reads'
run start s
random 100M | timeout 30 "${as[@]}" "$casemate" exec -i s -- sleep 0.3 >"$work/out" 2>"$work/err"
is "${PIPESTATUS[1]}" 0 'does not delay the end'
yes 2>/dev/null | timeout 30 "${as[@]}" "$casemate" exec -i s -- true >"$work/out" 2>"$work/err"
is "${PIPESTATUS[1]}" 0 'nor does input without an end'
yes 2>/dev/null | timeout 30 "${as[@]}" "$casemate" exec -i s -- sh -c 'head -n 1; exec <&-; sleep 0.3; exit 3' \
	>"$work/out" 2>"$work/err"
is "${PIPESTATUS[1]} $(out)" '3 y' 'or is closed in the middle'
random 20M >"$work/big"
start exec -i s -- sh -c 'sleep 1; sha256sum | cut -c 1-64' <"$work/big"
wait_bg
is "$rc" 0 'and one that reads late ends'
got=$(timeout 30 "${as[@]}" "$casemate" exec -i s -- sh -c 'sleep 1; sha256sum | cut -c 1-64' <"$work/big")
is "$got" "$(sum <"$work/big")" 'with all of it'
# both directions are full before either end reads: a relay that waits for one stands still
got=$(timeout 30 "${as[@]}" "$casemate" exec -i s -- sh -c 'head -c 3000000 /dev/zero; cat' <"$work/big" |
	(sleep 0.5; cat) | wc -c)
is "$got" $((20 * 1048576 + 3000000)) 'both ways full at once'
run rm --files s
finish

begin 'the input of a detached command'
run start s
detached -i -- sh -c 'sha256sum | cut -c 1-64'
random 100M | cm stdin s "$id" --close >"$work/out" 2>"$work/err"
is "${PIPESTATUS[1]}" 0 '100 MiB are written'
run wait s "$id"
is "$(cm logs s "$id")" "$(random 100M | sum)" 'and read'
detached -i -- sleep 60
yes 2>/dev/null | timeout 2 "${as[@]}" "$casemate" stdin s "$id" >"$work/out" 2>"$work/err"
is "${PIPESTATUS[1]}" 124 'who writes to one that does not read waits'
run kill s "$id"
is "$rc $(cm ps s --json | grep -c '"state": "running"')" '0 0' 'and does not keep it from being ended'
run rm --files s
finish

begin 'scripts and arguments'
run start s
{
	seq 60000 | head -c 307199
	echo x
} >"$work/text"
{
	echo "cat >/tmp/copy <<'END'"
	cat "$work/text"
	printf 'END\nsha256sum </tmp/copy | cut -c 1-64\n'
} >"$work/script"
got=$(timeout 30 "${as[@]}" "$casemate" exec -i s -- bash -s <"$work/script")
is "$got" "$(sum <"$work/text")" 'a here-document of 300 KB'
got=$(timeout 30 "${as[@]}" "$casemate" exec -i s -- sh -c 'cat >/tmp/c; sha256sum </tmp/c | cut -c 1-64' <<END
$(cat "$work/text")
END
)
is "$got" "$(sum <"$work/text")" 'and one that is the input'
# one of the kernel's is 128 KiB at the most, and all of them with the environment a quarter of the
# stack, which is 2 MiB
args=()
long=$(head -c 100000 /dev/zero | tr '\0' x)
for i in $(seq 10 29); do
	args+=("$i${long:2}")
done
(
	ulimit -S -s 16384
	timeout 30 "${as[@]}" "$casemate" exec s -- sh -c \
		'printf "%s\n" "$#"; printf "%s\n" "$@" | sha256sum | cut -c 1-64' sh "${args[@]}"
) >"$work/out" 2>"$work/err"
is "$(out)" "20
$(printf '%s\n' "${args[@]}" | sum)" '2 MB of arguments'
(
	ulimit -S -s 16384
	timeout 30 "${as[@]}" "$casemate" exec s -- true "${args[@]}" "${args[@]:0:2}"
) >"$work/out" 2>"$work/err"
rc=$?
like "$rc $(err)" '126 *Argument list too long*' 'more than the kernel takes is said to be that'
run rm --files s
finish

done_testing
