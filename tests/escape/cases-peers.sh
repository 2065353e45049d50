# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154
# Other sessions, the host's processes, sockets and services.

session_files='/state/|/(run|var/lib)/casemate|/runtime/|/home/'

# session ID COMMAND...: in the background, in a session that stays
session() {
	local id=$1
	shift
	mkdir -p "$work/$id"
	cp "$top/probes/probe_peer" "$top/probes/probe_try" "$work/$id/"
	give "$work/$id"
	(cd "$work/$id" && exec "${as[@]}" "$casemate" run --session "$id" --workspace "$work/$id" -- "$@") \
		>"$work/$id.out" 2>"$work/$id.err" &
	session_client=$!
}

serve() { # NAME
	"${as[@]}" "$top/probes/probe_serve" "$1" >"$work/ready" &
	served=$!
	until_true 5 grep -q ready "$work/ready"
}

unserve() {
	kill "$served" 2>/dev/null
	wait "$served" 2>/dev/null
}

case_sessions() {
	local one two pid
	session one env MARK=SECRET ./probe_peer make
	one=$session_client
	until_true 5 grep -q ready "$work/one.out"
	session two ./probe_peer look
	wait "$session_client"
	is "$(cat "$work/two.out")" 'shared memory: refused ENOENT
semaphore: refused ENOENT
message queue: refused ENOENT
posix queue: refused ENOENT
/dev/shm: refused ENOENT
/tmp: refused ENOENT
abstract socket: refused ECONNREFUSED' 'one session finds nothing of the other'
	run run --session one -- ./probe_peer look
	is "$(grep -c reached "$work/out")" 7 'the control: its own commands find it all'
	pid=$(pgrep -n -x probe_peer)
	run run --session two -- ./probe_try "signal:$pid" "read:/proc/$pid/environ" "list:$work/one"
	is "$(out)" "signal $pid: refused ESRCH
read /proc/$pid/environ: refused ENOENT
list $work/one: refused ENOENT" 'nor its processes and its tree'
	as_caller ./probe_try "signal:$pid" "list:$work/one" >"$work/out" 2>&1
	as_caller "$work/one/probe_try" "list:$work/one" >"$work/out"
	is "$(out)" "list $work/one: reached" 'the control: the caller sees it'
	start run --session two -- sleep 20
	until_true 5 pgrep -x sleep
	two=$(stat -c %u "/proc/$(pgrep -n -x sleep)")
	if is_user; then
		is "$two" "$uid" 'the kernel id is the user'"'"'s'
	else
		[ "$two" -ge 65536 ] && [ "$two" != "$(stat -c %u "/proc/$pid")" ]
		ok 'two sessions of root have kernel ids of their own'
	fi
	# everything that the agent may end is its own
	run run --session two -- ./probe_peer killall
	kill -0 "$pid"
	ok 'kill(-1) in one spares the other'
	kill "$bg" 2>/dev/null
	wait_bg
	kill "$one"
	wait "$one" 2>/dev/null
	run rm one two
	allow "$session_files"
}

case_host_processes() {
	local id=$uid sleeper be=()
	use try peer
	start run --session kuid --workspace "$work/w" -- sleep 20
	until_true 5 pgrep -x sleep
	# as whom the session's commands run
	is_user || id=$(stat -c %u "/proc/$(pgrep -n -x sleep)")
	! is_root || be=(setpriv --reuid "$id" --regid "$id" --clear-groups)
	"${be[@]}" sleep 31 &
	sleeper=$!
	until_true 2 grep -qz 31 "/proc/$sleeper/cmdline"
	"${be[@]}" "$top/probes/probe_try" "signal:$sleeper" >"$work/control"
	is "$(cat "$work/control")" "signal $sleeper: reached" 'a process of the same id can'
	cm run --session kuid -- ./probe_try "signal:$sleeper" >"$work/out"
	is "$(out)" "signal $sleeper: refused ESRCH" 'one in the jail cannot'
	cm run --session kuid -- ./probe_peer killall >/dev/null 2>&1
	kill -0 "$sleeper"
	ok 'and kill(-1) does not reach it'
	kill "$sleeper" "$bg" 2>/dev/null
	wait "$sleeper" 2>/dev/null
	wait_bg
	run rm kuid
	allow "$session_files"
}

case_abstract() {
	local name=@cm-escape-$$
	use try
	serve "$name"
	attack -- ./probe_try "connect:$name" -- ./probe_try "connect:$name" <<-END
		connect $name: refused ECONNREFUSED
	END
	attack --network host -- ./probe_try "connect:$name" -- ./probe_try "connect:$name" <<-END
		connect $name: refused EPERM
	END
	unserve
}

case_loopback() {
	local port
	use try
	serve tcp
	port=$(head -n 1 "$work/ready")
	attack -- ./probe_try "tcp:$port" -- ./probe_try "tcp:$port" <<-END
		tcp $port: refused ECONNREFUSED
	END
	run run --network host -- ./probe_try "tcp:$port"
	is "$(out)" "tcp $port: reached" 'with --network host it is there, as is said of that mode'
	unserve
}

case_host_network() {
	local level
	use sockets
	run run --network host --min-level full -- true
	is "$rc" 125 'it is never level full'
	run run --network host --json -- true
	level=$(json level)
	like "$level" '*+hostnet*' 'and is named in the level'
	# what needs power over the network needs it still
	attack --network host -- "${weaker[@]}" ./probe_sockets -- ./probe_sockets <<-'END'
		vsock: refused EAFNOSUPPORT
		alg: refused EAFNOSUPPORT
		packet: refused EAFNOSUPPORT
		raw: refused EPERM
	END
	# a repository cannot ask for it
	echo '{"network": "host"}' >"$work/w/.casemate.json"
	give "$work/w"
	start_files
	run run -- cat /proc/net/dev
	! grep -qvE 'Inter|face|^ *lo:' "$work/out"
	ok 'the repository'"'"'s own file does not give it'
}

case_services() {
	local at=$work/bus
	use try
	mkdir "$at"
	give "$at"
	serve "$at/socket"
	export DBUS_SESSION_BUS_ADDRESS=unix:path=$at/socket SSH_AUTH_SOCK=$at/socket
	export DOCKER_HOST=unix://$at/socket DISPLAY=:0 WAYLAND_DISPLAY=wayland-0 XAUTHORITY=$at/socket
	export GPG_AGENT_INFO=$at/socket SUDO_ASKPASS=/bin/true AWS_SECRET_ACCESS_KEY=SECRET
	attack -- ./probe_try "connect:$at/socket" -- ./probe_try "connect:$at/socket" <<-END
		connect $at/socket: refused ENOENT
	END
	run run -- env
	is "$(grep -E 'SECRET|^(DBUS|SSH_AUTH|DOCKER|DISPLAY|WAYLAND|XAUTH|GPG|SUDO)' "$work/out")" '' \
		'no variable leads to a service or holds a secret'
	is "$(env | grep -cE '^(DBUS_SESSION|SSH_AUTH|DOCKER_HOST|DISPLAY)')" 4 'the control has them'
	run run -- sh -c 'ls /run/dbus /run/systemd /run/user/0 /run/docker.sock /tmp/.X11-unix /var/run/docker.sock'
	is "$(out)" '' 'and none is at its usual place'
	unset DBUS_SESSION_BUS_ADDRESS SSH_AUTH_SOCK DOCKER_HOST DISPLAY WAYLAND_DISPLAY XAUTHORITY
	unset GPG_AGENT_INFO SUDO_ASKPASS AWS_SECRET_ACCESS_KEY
	unserve
}

# What else is written to the caller's pipe stays the caller's.
case_caller_pipe() {
	local elapsed
	mkfifo "$work/pipe"
	give "$work/pipe"
	exec 8<>"$work/pipe"
	echo SECRET >&8
	as_caller sh -c 'timeout 1 head -n 1 </proc/self/fd/1 >&2' >&8 2>"$work/control"
	is "$(cat "$work/control")" SECRET 'outside, standard output can be read again'
	echo SECRET >&8
	cm run -- sh -c 'timeout 1 head -n 1 </proc/self/fd/1 >&2' >&8 2>"$work/err"
	! grep -q SECRET "$work/err"
	ok 'from a jail it cannot'
	exec 8>&-
	# a child that holds the stream does not delay the end
	elapsed=$(now_ms)
	cm run -- sh -c 'setsid sleep 5 & echo done' | cat >"$work/out"
	elapsed=$(($(now_ms) - elapsed))
	[ "$elapsed" -lt 2500 ]
	ok "the end comes at once ($elapsed ms)"
	is "$(out)" 'done' 'with the output'
}
