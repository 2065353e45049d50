# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154
# Taking what the whole host has. Controls are small: the machine is shared.

# bounded KIND BOUND WANT OPTION...: inside KIND is stopped, outside the same number is not
bounded() {
	local kind=$1 bound=$2 want=$3
	shift 3
	as_caller ./probe_exhaust "$kind" "$bound" >"$top/control" 2>/dev/null
	run run "$@" -- ./probe_exhaust "$kind" "$bound"
	if [ "$(cat "$top/control")" != "$kind: reached" ]; then
		skip CONTROL "outside it is '$(cat "$top/control")'" "$kind are bounded"
	else
		is "$(out)" "$kind: $want" "$kind are bounded ($(head -n 1 "$work/err"))"
	fi
}

case_processes() {
	use exhaust
	if has_groups; then
		bounded processes 200 'refused EAGAIN' --pids-limit 64
	else
		# without groups the kernel still counts those of the jail's one id
		bounded processes 200 'refused EAGAIN' --pids-limit '64?'
		run run --pids-limit 64 -- true
		is "$rc" 125 'a limit that no group keeps is refused when it is asked for by name'
	fi
}

case_memory() {
	local kind
	use exhaust
	if ! has_groups; then
		run run --memory 64M -- echo started
		is "$rc:$(out)" 125: 'a memory limit that nothing keeps is refused'
		run run --memory '64M?' -- echo started
		is "$rc:$(out)" 0:started 'and left out where it is optional'
		return
	fi
	as_caller ./probe_exhaust memory 96 >"$top/control" 2>/dev/null
	is "$(cat "$top/control")" 'memory: reached' 'outside there is as much'
	for kind in memory memfd; do
		run run --memory 48M -- ./probe_exhaust $kind 96
		is "$rc" 137 "$kind is ended by the limit"
	done
	# a tmpfs is bounded at half of the memory
	bounded tmpfs 96 'refused ENOSPC' --memory 48M
}

case_descriptors() {
	use exhaust
	bounded descriptors 200 'refused EMFILE' --open-files 64
}

case_names() {
	use exhaust
	mkdir -p "$work/lock"
	run run -- stat -f -c %c /run /tmp /dev/shm
	is "$(out | sort -u)" 1048576 'what is in memory has a bounded number of names'
	[ "$identity" = root ] || return
	run run --memory 32m -- ./probe_exhaust names 5000
	is "$(out)" 'names: refused ENOSPC' 'and as many as its size pays for'
}

# Both count against the whole machine: who holds many inside must leave the host its share.
case_kernel_objects() {
	use exhaust
	run run --open-files 20000 -- ./probe_exhaust inotify 3000
	is "$(out)" 'inotify: refused EMFILE' 'inotify instances are bounded'
	as_caller ./probe_exhaust inotify 8 >"$work/control" 2>/dev/null
	is "$(cat "$work/control")" 'inotify: reached' 'and the host has its own'
	start run --open-files 20000 -- ./probe_exhaust ptys 3000 hold
	until_true 10 grep -q : "$work/out"
	is "$(out)" 'ptys: refused ENOSPC' 'ptys are bounded'
	unshare --mount sh -c 'mount -t devpts -o newinstance,ptmxmode=0666 none /dev/pts &&
		mount --bind /dev/pts/ptmx /dev/ptmx && exec ./probe_exhaust ptys 8' \
		>"$work/control" 2>/dev/null
	is_root && is "$(cat "$work/control")" 'ptys: reached' 'and others have theirs'
	kill "$bg"
	wait_bg
}

# While a jail does its worst, ordinary commands of the host do not wait.
case_responsive() {
	local options=() since took
	has_groups && options=(--memory 128M --cpus 1)
	use tree
	start run --pids-limit '200?' "${options[@]}" --timeout 2s -- ./probe_tree bomb 150
	until_true 3 grep -q ready "$work/out"
	since=$(now_ms)
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		cm run --no-workspace -- true
	done
	took=$(($(now_ms) - since))
	[ $took -lt 3000 ]
	ok "ten jails beside a fork bomb took $took ms"
	wait_bg
	is "$rc" 124 'the bomb ended by its time limit'
	is "$(pgrep -c -x probe_tree)" 0 'and is gone'
}
