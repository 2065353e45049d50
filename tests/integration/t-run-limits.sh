#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Limits: that they hold, what is said when one is reached, and what where one cannot be had.
# shellcheck disable=SC2016
# SC2016: what single quotes keep from this shell is for the shell inside
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

begin 'open files'
run run --open-files 64 -- sh -c 'ulimit -n; ulimit -Hn'
expect_out '64
64' '--open-files'
run run --ulimit nofile=65 -- sh -c 'ulimit -n'
expect_out 65 '--ulimit nofile='
run run --open-files 64 -- bash -c 'for i in $(seq 3 80); do eval "exec $i</dev/null" || exit 9; done'
[ "$rc" != 0 ]
ok 'is reached'
finish

begin 'time and output'
since=$(now_ms)
run run --timeout 400ms -- sh -c 'for i in 1 2 3; do setsid sh -c "trap \"\" TERM HUP; sleep 100; :" & done; echo x; exec sleep 100'
ms=$(($(now_ms) - since))
is "$rc $(out)" '124 x' 'a command with daemons that hold its streams'
[ $ms -ge 390 ] && [ $ms -lt 6000 ]
ok "ends in time ($ms ms)"
run run --output 1000 -- seq 1 10000
is "$rc $(cat "$work/out")" "137 $(seq 1 10000 | head -c 1000)" 'what is below the output limit is passed on'
like "$(err)" 'casemate: command ended by the output limit (1000 B)*' 'what ended the command is said'
run run --output 1000 -- sh -c 'seq 1 10000 | head -c 1000'
is "$rc $(wc -c <"$work/out")" '0 1000' 'as much as the limit is not more'
run run --output 1000 --json -- seq 1 10000
is "$(json end) $(json stdout)" "output-limit $(seq 1 10000 | head -c 1000 | sed -z 's/\n/\\n/g')" 'with --json, too'
run run --output 9 -- sh -c 'printf 12345; sleep 0.2; printf 678901 >&2; sleep 5'
is "$(out) $(err | head -c 4)" '12345 6789' 'both streams count'
run run --timeout 0 -- true
[ "$rc" = 125 ] || [ "$rc" = 0 ]
ok 'no time at all is none or an error'
finish

# A host that has v2 elsewhere (/sys/fs/cgroup/unified of a hybrid one), and no v1 that could be used.
# What is made there is in the machine's own hierarchy, which a mount namespace does not change.
on_v2_elsewhere() { # ARGUMENT...
	unshare --mount --propagation private bash -c '
		mount=$1
		shift
		awk "/ - cgroup/ { print \$5 }" /proc/self/mountinfo | sort -r | xargs -rn 1 umount
		mount -t cgroup2 none "$mount" || exit 77
		"$@"
		rc=$?
		find "$mount/casemate.slice" -depth -type d -exec rmdir {} + 2>/dev/null
		exit $rc' - "$@"
}

begin 'cgroup v2 at another place'
if is_root && [ "$identity" = root ] && [ "$(stat -fc %T /sys/fs/cgroup)" = tmpfs ]; then
	mkdir "$work/v2"
	on_v2_elsewhere "$work/v2" "$casemate" run --no-workspace -- echo yes >"$work/out" 2>"$work/err"
	rc=$?
	if [ "$rc" = 77 ]; then
		skip CGROUP2 'v2 cannot be mounted' 'a temporary session runs'
	else
		is "$rc $(cat "$work/out" "$work/err")" '0 yes' 'a temporary session runs'
	fi
	rmdir "$work/v2"
else
	skip CGROUP1 'no v1 here whose place v2 could take' 'a temporary session runs'
fi
finish

begin 'what is asked for and cannot be had'
if has_groups; then
	run run --memory 1 -- true
	[ "$rc" = 125 ] && grep -q '^hint: ' "$work/err"
	ok 'a limit that nothing can run in is refused'
else
	run run --memory 4G -- true
	# what is missing differs from host to host
	like "$(err)" "casemate: memory limit cannot be enforced here (?*)
hint: *casemate doctor* --memory '4G[?]' to go on without" '--memory is refused'
	is "$rc" 125 'before anything runs'
	run run --memory '4G?' -- echo yes
	is "$(out) $rc" 'yes 0' 'with ? it goes on'
	for option in '--pids-limit 10' '--cpus 1' '--swap 1G' '--cpuset 0'; do
		# shellcheck disable=SC2086
		run run $option -- true
		[ "$rc" = 125 ] && grep -q 'cannot be enforced here' "$work/err" && grep -q '^hint: ' "$work/err"
		ok "$option is refused, too"
		# shellcheck disable=SC2086
		run run $option\? -- true
		is "$rc" 0 "$option? is not"
	done
	run run --min-level full -- true
	refused '*' '*' '--min-level full'
fi
run run --session l --memory '1G?' -- true
run inspect l
grep -q '^enforced by' "$work/out"
ok 'inspect says what enforces each'
if has_groups; then
	grep -q 'memory *cgroup v[12]' "$work/out"
	ok 'a control group'
else
	grep -q 'memory *not limited' "$work/out"
	ok 'nothing'
fi
run rm --files l
finish

if ! has_groups; then
	done_testing
fi

begin memory
eat='import sys
x = []
try:
    for i in range(400):
        x.append(bytearray(b"x") * (1 << 20))
except MemoryError:
    sys.exit(3)
print("ate it")'
run run --memory 64M --json -- /usr/bin/python3 -c "$eat"
is "$(json end) $(json memoryLimit) $(json exitCode) $rc" 'memory-limit true 137 137' 'a command that takes more is ended'
peak=$(json memoryPeakBytes)
[ "${peak:-0}" -gt 30000000 ] && [ "${peak:-0}" -le 67108864 ]
ok "and the peak is told ($peak)"
run run --memory 64M -- /usr/bin/python3 -c "$eat"
is "$(err)" 'casemate: command ended by the memory limit (64.0 MiB)
hint: give it more with --memory SIZE' 'which is said'
run run --memory 64M -- sh -c "/usr/bin/python3 -c '$eat'; echo status \$?"
is "$rc" 0 'a child that takes more does not end the command'
like "$(out)" 'status 137' 'it sees its end'
run run --memory 64M -- sh -c 'head -c 200M /dev/zero >/tmp/x; echo $?'
! grep -qx 0 "$work/out"
ok '/tmp counts as memory'
run run --memory 512M -- /usr/bin/python3 -c "$eat"
is "$(out)" 'ate it' 'control: with enough it is not ended'
run run --memory 64M -- cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max
[ "$(out)" = 67108864 ]
ok 'programs see their limit'
run run --memory 64M --swap 0 -- true
is "$rc" 0 '--swap 0'
finish

begin processes
since=$(now_ms)
run run --pids-limit 64 --timeout 5s -- bash -c 'f() { f | f & }; f 2>/dev/null; sleep 1; ls /proc | grep -c "^[0-9]"'
[ $(($(now_ms) - since)) -lt 20000 ]
ok 'a fork bomb is bounded and gone with the session'
run run --pids-limit 16 -- sh -c 'for i in $(seq 40); do sleep 5 & done; wait' 2>/dev/null
grep -qi 'fork\|resource' "$work/err"
ok 'no more than --pids-limit'
run run --pids-limit 16 -- sh -c 'for i in $(seq 8); do sleep 0.1 & done; wait; echo ok'
expect_out ok 'control: fewer are fine'
finish

begin processors
run run --cpuset 0 -- nproc
expect_out 1 '--cpuset'
run run --cpus 0.2 --json -- sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'
wall=$(json wallMs)
cpu=$(($(json cpuUserMs) + $(json cpuSystemMs)))
[ "${wall:-0}" -gt $((cpu * 2)) ]
ok "--cpus 0.2 ($cpu ms of processor time took $wall ms)"
run run --cpus 0 -- true
[ "$rc" = 125 ]
ok 'none at all is refused'
finish

begin 'several at once'
for i in 1 2 3 4 5 6; do
	"${as[@]}" "$casemate" run --memory 64M --pids-limit 20 -- sh -c "sleep 0.3; echo $i" &
done >"$work/out" 2>"$work/err"
wait_jobs
is "$(sort "$work/out" | tr '\n' ' ')" '1 2 3 4 5 6 ' 'each in a group of its own'
expect_stderr '' 'and none in another'"'"'s way'
finish

done_testing
