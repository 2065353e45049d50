#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Limits, groups and levels on another kernel with cgroup v2, as root and as an ordinary user.
#
#   guest-kernel.sh DIRECTORY-OF-THE-BUILD      in the virtual machine, started by host.sh
# shellcheck disable=SC2016
# SC2016: what single quotes keep from this shell is for the shell inside
. "$(dirname "${BASH_SOURCE[0]}")/guest-lib.sh"

slice=/sys/fs/cgroup/casemate.slice
case $kernel in
6.1) abi=2 ;;
6.12) abi=6 ;;
*) exit 99 ;;
esac
useradd -m -u 1234 ci

# A group handed to the user as a container runtime or an administrator would.
delegate() { # NAME
	local dir=/sys/fs/cgroup/$1
	mkdir "$dir" "$dir/shell"
	echo '+memory +pids +cpu +cpuset' >"$dir/cgroup.subtree_control"
	chown ci "$dir" "$dir/cgroup.procs" "$dir/cgroup.subtree_control" "$dir/cgroup.threads" \
		"$dir/shell" "$dir/shell/cgroup.procs"
}
delegate ci

# --- the host -----------------------------------------------------------------------------------

test_host_is_what_it_should_be() {
	local text
	like "$(</proc/self/mountinfo)" '*/sys/fs/cgroup*nsdelegate*' 'cgroup v2 with nsdelegate'
	"$casemate" doctor >"$out" 2>"$err"
	text=$(<"$out")
	like "$text" "*landlock *ABI $abi*" "Landlock has ABI $abi"
	like "$text" "*v2 below '$slice': --memory, --swap, --pids-limit, --cpus, --cpuset can be*" \
		'every limit can be enforced'
	like "$text" "*reaches level 'full' here*" "root's level is full"
}

unit_start() { # NAME
	CM_TEST_MUST_WORK='CGROUP2 SECCOMP LANDLOCK' "$build/tests/unit/test_$1" \
		>"/tmp/unit.$1" 2>&1 </dev/null &
	unit_pid=$!
}

unit_end() { # NAME SKIPS-THAT-MAY-BE
	wait "$unit_pid"
	is $? 0 "test_$1"
	mv "/tmp/unit.$1" "$out"
	like "$(<"$out")" '*PASSED*' 'has run'
	is "$(sed -n 's/^\[  SKIPPED \] \([a-z0-9_]*\)$/\1/p' "$out" | grep -v '^v1_' | sort -u)" "$2" \
		'and left out only what is of v1'
}

unit() {
	unit_start "$1"
	unit_end "$@"
}

test_unit_cgroup() { unit cgroup v2_test_required_without_a_controller; }
test_unit_cgroup_tree() { unit cgroup_tree ''; }
test_unit_host_cgroup() { unit host_cgroup ''; }

# --- a controller that is not there -------------------------------------------------------------

# In a container whose group was given everything but memory: NAME.out, NAME.err, NAME.rc of each.
boxed() {
	echo "$BASHPID" >/sys/fs/cgroup/box/cgroup.procs && exec unshare --cgroup --mount bash -c '
		umount -l /sys/fs/cgroup && mount -t cgroup2 cgroup2 /sys/fs/cgroup &&
			mkdir /sys/fs/cgroup/inner && echo 0 >/sys/fs/cgroup/inner/cgroup.procs || exit 99
		try() { # NAME ARGUMENT...
			"$0" run --no-workspace --result "/tmp/$1.result" "${@:2}" >"/tmp/$1.out" 2>"/tmp/$1.err"
			echo $? >"/tmp/$1.rc"
		}
		try named -m 64M -- true
		try optional -m "64M?" --pids-limit 20 -- cat /sys/fs/cgroup/pids.max
		try full --min-level full -- true' "$casemate" </dev/null
}

hand_down() { # +memory or -memory, in that order
	local dir
	for dir in "${@:2}"; do
		dir=/sys/fs/cgroup/$dir/cgroup.subtree_control
		[ ! -e "$dir" ] || echo "$1" >"$dir"
	done
}

test_required_without_the_controller() {
	mkdir /sys/fs/cgroup/box
	hand_down -memory ci casemate.slice .
	like "$(</sys/fs/cgroup/box/cgroup.controllers)" '*pids*' 'pids is handed down'
	[[ $(</sys/fs/cgroup/box/cgroup.controllers) != *memory* ]]
	check 'memory is not'
	(boxed)
	check 'the container runs'
	is "$(</tmp/named.rc)" 125 'a named limit is refused'
	like "$(</tmp/named.err)" "casemate: memory limit cannot be enforced here (no controller in '/sys/fs/cgroup' for: memory)
hint: see 'casemate doctor', or use --memory '64M?' to go on without" 'with cause and way out'
	is "$(</tmp/optional.rc) $(</tmp/optional.out)" '0 20' 'an optional one is not, others hold'
	mv /tmp/optional.result "$result"
	is "$(result level)" no-cgroup 'and the level says so'
	is "$(</tmp/full.rc)" 125 '--min-level full is refused'
	like "$(</tmp/full.err)" "casemate: level 'full' cannot be had here (no controller in *memory*)
hint: *" 'with its cause'
	find /sys/fs/cgroup/box -depth -type d -exec rmdir {} +
	hand_down +memory . casemate.slice ci
}

# --- limits, as root and as a user ---------------------------------------------------------------

values() { # of the jail's own group, a line each
	run --no-workspace -m 64M --pids-limit 40 --cpus 0.5 --cpuset 1 -- sh -c '
		cat /proc/self/cgroup
		cd /sys/fs/cgroup && cat memory.max memory.swap.max pids.max cpu.max cpuset.cpus
		nproc; touch here 2>/dev/null || echo read-only
		echo 1G 2>/dev/null >memory.max || echo refused; cat memory.max; ls -d x* ../* 2>/dev/null | head -n 3'
	expect_status 0 'runs with every limit'
	is "$(out | head -n 10)" '0::/
67108864
0
40
50000 100000
1
1
read-only
refused
67108864' 'inside, the group is the root and shows the limits, which nobody there can change'
}

memory_acts() {
	run --no-workspace -m 16M -- tail /dev/zero
	expect_status 137 'too much memory is death'
	is "$(result end) $(result memoryLimit)" 'memory-limit true' 'the result says of what'
	like "$(err)" 'casemate: command ended by the memory limit (16.0 MiB)
hint: * --memory *' 'the message, too'
	run --no-workspace -m 16M -- sh -c 'dd if=/dev/zero of=/dev/null bs=10M count=1 && echo fits
		dd if=/dev/zero of=/dev/null bs=32M count=1; echo after'
	is "$(out) $rc" 'fits
after 0' 'what fits lives, and only the one that took more dies'
}

pids_act() { # DIRECTORY-OF-THE-SESSION'S-GROUP
	local group=$1 now most=0 ticks=0
	start bomb --no-workspace --session bomb --pids-limit 40 --timeout 3s -- bash -c \
		'b() { b | b & sleep 0.2; b; }; b' 2>/dev/null
	until_true 20 test -e "$group/pids.current"
	check 'a fork bomb goes off'
	while kill -0 "$bg" 2>/dev/null; do
		read -r now <"$group/pids.current" || break
		[ "$now" -le "$most" ] || most=$now
		/bin/true && ticks=$((ticks + 1))
	done 2>/dev/null
	wait "$bg"
	is $? 124 'until its time is up'
	[ "$most" -le 40 ] && [ "$most" -ge 30 ]
	check "with 40 processes at the most (seen: $most)"
	[ "$ticks" -ge 5 ]
	check "the host can fork meanwhile ($ticks times)"
	"${as[@]}" "$casemate" rm bomb >"$out" 2>"$err"
	check 'the session can be removed'
}

cpu_acts() { # DIRECTORY-OF-THE-SESSION'S-GROUP
	local cpu throttled
	start cpu --no-workspace --session cpu --cpus 0.25 -- sh -c \
		'echo ready; while :; do :; done'
	until_true 20 has_text /tmp/cpu.out ready
	check 'a loop runs'
	cpu=$(sed -n 's/^usage_usec //p' "$1/cpu.stat")
	sleep 2
	cpu=$(($(sed -n 's/^usage_usec //p' "$1/cpu.stat") - cpu))
	throttled=$(sed -n 's/^nr_throttled //p' "$1/cpu.stat")
	kill -KILL "$bg"
	wait "$bg" 2>/dev/null
	# half a second is a quarter; whoever reads the file comes late
	[ "$cpu" -le 1000000 ] && [ "$cpu" -ge 50000 ]
	check "2 s of it take half a second of a processor ($((cpu / 1000)) ms)"
	[ "$throttled" -ge 5 ]
	check "it was held back $throttled times"
	"${as[@]}" "$casemate" rm cpu >"$out" 2>"$err"
	check 'the session can be removed'
}

test_root_values() { values; is "$(result level)" full 'the level is full'; }
test_root_memory() { memory_acts; }
test_new_root_pids() { pids_act "$slice"/cm-bomb; }
test_new_root_cpu() { cpu_acts "$slice"/cm-cpu; }

test_new_root_swap() {
	modprobe zram && echo 64M >/sys/block/zram0/disksize && mkswap /dev/zram0 >"$out" &&
		swapon /dev/zram0
	check 'there is swap'
	run --no-workspace -m 16M -- dd if=/dev/zero of=/dev/null bs=24M count=1
	is "$rc $(result end)" '137 memory-limit' 'none of it is the session'"'"'s'
	run --no-workspace -m 16M --swap 32M -- sh -c '
		dd if=/dev/zero of=/dev/null bs=24M count=1 && cat /sys/fs/cgroup/memory.swap.max'
	is "$rc $(out)" '0 33554432' 'but when --swap gives it'
	swapoff /dev/zram0
}

test_new_root_runtimes_see_the_limit() {
	command -v node >/dev/null && {
		run --no-workspace -m 256M -- node -p 'process.constrainedMemory()'
		is "$(out)" 268435456 'node'
	}
	command -v java >/dev/null && {
		run --no-workspace -m 256M -- java -XX:+UseSerialGC -Xlog:os+container=trace -version
		like "$(out)" '*Memory Limit is: 268435456*' 'java'
	}
	return 0
}

# --- sessions -----------------------------------------------------------------------------------

heartbeat='echo ready; i=0; while :; do i=$((i + 1)); echo $i; sleep 0.2; done'
beats() { wc -l </tmp/beat.out; }
beats_on() {
	local before
	before=$(beats)
	until_true 5 eval "[ \$(beats) -gt $((before + 2)) ]"
	check "$1"
}

empty_but() { # GROUP: of its leaves, those with processes
	local leaf pids
	for leaf in "$1"/x*; do
		pids=$(cat "$leaf/cgroup.procs" 2>/dev/null) && [ -n "$pids" ] && echo "${leaf##*/}"
	done
}
one_tree() { [ "$(empty_but "$slice"/cm-s1 | wc -l)" = 1 ]; }

# a tree that flees from its killers, by program and way
flees() { # NAME COMMAND...
	local name=$1
	start tree --session s1 -- "${@:2}"
	until_true 20 has_text /tmp/tree.out ready
	check "$name: runs"
	is "$(empty_but "$slice"/cm-s1 | wc -l)" 2 "$name: two commands, two leaves"
	kill -TERM "$bg"
	wait "$bg"
	is $? 143 "$name: is ended by a signal to its caller"
	until_true 3 one_tree
	check "$name: nothing of it lives" || {
		cat "$slice"/cm-s1/x*/cgroup.procs | while read -r pid; do
			sed 's/^/#     /;s/\x00/ /g' "/proc/$pid/cmdline"
			echo
		done
	}
	beats_on "$name: the other command goes on"
}

test_root_trees() {
	start beat --session s1 --pids-limit 100 -- sh -c "$heartbeat"
	local beat=$bg
	until_true 20 has_text /tmp/beat.out ready
	check 'a command runs'
	is "$(our_groups)" "$slice"/cm-s1 'in a group of its session'
	is "$(empty_but "$slice"/cm-s1)" x0 'in a leaf of its own'
	flees 'setsid chain' sh -c 'trap "" TERM
		setsid sh -c "trap \"\" TERM; setsid sh -c \"trap \\\"\\\" TERM; sleep 300; :\" & sleep 300; :" &
		echo ready; sleep 300; :'
	# 112 is setsid
	flees 'comet' perl -e '$| = 1; $SIG{TERM} = "IGNORE"; print "ready\n";
		if (fork) { sleep 300 }
		for (;;) { fork and exit 0; syscall(112); select undef, undef, undef, .001 }'
	flees 'fork bomb' bash -c 'trap "" TERM; echo ready
		b() { sleep 0.1; b | b & b; }; b 2>/dev/null'
	kill -TERM "$beat"
	wait "$beat"
	is $? 143 'the first ends when it is told to'
	"$casemate" stop s1 >"$out" 2>"$err"
	check 'stop'
	no_groups
	check 'takes the groups away at once'
	"$casemate" rm s1 >"$out" 2>"$err"
}

# in a live session; a leaf whose tree was killed must not kill what comes after it in its slot
test_root_exec() {
	local id
	cm() { "$casemate" "$@" >"$out" 2>"$err"; rc=$?; last="$*"; }
	cm start s4 --pids-limit 100 -m 64M
	check 'start'
	cm exec s4 -d --timeout 1s -- sh -c 'trap "" TERM; setsid sleep 300 & echo begun; sleep 300'
	id=$(<"$out")
	cm wait s4 "$id"
	expect_status 124 'a time limit ends a detached command'
	is "$(empty_but "$slice"/cm-s4)" '' 'and all that it started'
	for _ in 1 2 3; do
		cm exec s4 -- echo alive
		is "$rc $(out)" '0 alive' 'the next one in its slot lives'
	done
	cm exec s4 -d -- sh -c 'echo begun; sleep 300'
	id=$(<"$out")
	until_true 20 eval '"$casemate" logs s4 "$id" | grep -q begun'
	check 'it runs'
	cm kill s4 "$id"
	check 'kill'
	cm wait s4 "$id"
	expect_status 137 'and its end is kept'
	cm logs s4 "$id"
	is "$(out)" begun 'with what it printed'
	cm exec s4 -- echo alive
	is "$rc $(out)" '0 alive' 'and again the next one lives'
	cm exec s4 --json -- tail /dev/zero
	like "$rc $(out)" '137 *"end":"memory-limit"*' 'the session'"'"'s memory limit'
	cm stats s4 --json --once
	like "$(out)" '*"s4"*' 'stats'
	cm rm s4 --files
	check 'rm'
}

test_root_keeper_dies() {
	start beat --session s2 -m 96M -- sh -c "$heartbeat"
	until_true 20 has_text /tmp/beat.out ready
	check 'a session runs'
	kill -KILL "$(keeper_of "$slice"/cm-s2)"
	wait "$bg"
	is $? 137 'kill -9 of its keeper ends the command'
	is "$(our_groups)" "$slice"/cm-s2 'the group is left'
	until_true 5 eval '[ -z "$(cat $slice/cm-s2/cgroup.procs $slice/cm-s2/x*/cgroup.procs)" ]'
	check 'with nothing in it'
	run --session s2 -- cat /sys/fs/cgroup/memory.max
	is "$(out)" $((96 << 20)) 'the next start makes its own'
	"$casemate" rm s2 >"$out" 2>"$err"
	check 'and rm removes it'
	start beat --no-workspace -- sh -c "$heartbeat"
	until_true 20 has_text /tmp/beat.out ready
	kill -KILL "$(keeper_of "$(our_groups)")" "$bg"
	wait "$bg" 2>/dev/null
	sleep 0.5
	is "$(our_groups | wc -l)" 1 'of a temporary one, whose client dies too, the group is left'
	run --no-workspace -- true
	until_true 3 no_groups
	check 'which the next start of any collects'
}

test_new_root_two_sessions() {
	start beat --session a -m 64M -- sh -c "$heartbeat"
	until_true 20 has_text /tmp/beat.out ready
	run --session b -m 16M -- sh -c 'cat /sys/fs/cgroup/memory.max; exec tail /dev/zero'
	expect_status 137 'one session meets its limit'
	is "$(out)" $((16 << 20)) 'which is its own'
	is "$(our_groups)" "$slice/cm-a
$slice/cm-b" 'two groups'
	is "$(<"$slice"/cm-a/memory.max) $(<"$slice"/cm-b/memory.max)" '67108864 16777216' 'two limits'
	beats_on 'the other goes on'
	kill -TERM "$bg"
	wait "$bg"
	"$casemate" stop a >"$out" 2>"$err" && "$casemate" stop b >"$out" 2>"$err"
	check 'both stop'
	"$casemate" rm a b >"$out" 2>"$err"
}

# --- an ordinary user ---------------------------------------------------------------------------

test_user_values() {
	as ci /sys/fs/cgroup/ci/shell
	values
	is "$(result level)" full-single-id 'the level has one id'
}
test_new_user_memory() { as ci /sys/fs/cgroup/ci/shell; memory_acts; }
test_new_user_pids() { as ci /sys/fs/cgroup/ci/shell; pids_act /sys/fs/cgroup/ci/cm-bomb; }

test_user_without_a_group() {
	as ci
	run --no-workspace -- cat /proc/self/cgroup
	expect_status 0 'runs without a group'
	is "$(result level)" no-cgroup-single-id 'and says so'
	run --no-workspace -m 64M -- true
	expect_status 125 'a named limit is refused'
	like "$(err)" "casemate: memory limit cannot be enforced here (no systemd user session)
hint: *--memory '64M?'*" 'with a way out'
	run --no-workspace --min-level full -- true
	expect_status 125 '--min-level full is refused'
	run --no-workspace -m '64M?' --cpus '1?' -- echo there
	is "$(out)" there 'optional ones are not'
}

# --- escapes ------------------------------------------------------------------------------------

. "$here/guest-escape.sh"

test_disk_for_workspaces() {
	make_disk
	check 'a disk is made'
}
test_root_escapes() { escape_cases syscalls highbits sockets setid; }
test_root_host_network() { escape_host_network; }
test_user_escapes() {
	as ci
	escape_cases syscalls setid
}
test_user_host_network() {
	as ci
	escape_host_network
}

# half a minute of filters, begun before the others
test_old_unit_seccomp_load() {
	unit_pid=$seccomp_pid
	unit_end seccomp_load ''
}

if [ "$kernel" = 6.1 ]; then
	unit_start seccomp_load
	seccomp_pid=$unit_pid
fi
run_tests
