#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# casemate doctor on this host, as root and as an ordinary user, and where a jail is forbidden.
#
#   t-doctor.sh CASEMATE KEEPER
#
# Each refusal has its control: the same surroundings without the one thing that forbids it.
# shellcheck disable=SC2016
set -u

# The machine's own state directories are not touched.
if [ "$(id -u)" = 0 ] && [ -z "${CM_TEST_IN_NAMESPACE:-}" ]; then
	for dir in /var/lib/casemate /run/casemate; do
		[ -d $dir ] || mkdir -m 700 $dir
	done
	export CM_TEST_IN_NAMESPACE=1
	exec unshare --mount --propagation private bash "$0" "$@"
fi
if [ "$(id -u)" = 0 ]; then
	mount -t tmpfs -o mode=700 casemate-test /var/lib/casemate &&
		mount -t tmpfs -o mode=700 casemate-test /run/casemate || exit 1
fi

work=$(realpath "$(mktemp -d)") || exit 1
chmod 755 "$work"
trap 'cd / && rm -rf "$work"' EXIT
mkdir "$work/bin" && cp "$1" "$work/bin/casemate" && cp "$2" "$work/bin/casemate-keeper" || exit 1
casemate=$work/bin/casemate
# inside a small user namespace root is nobody, whose programs are not trusted
cp -r "$work/bin" "$work/own"
own=$work/own/casemate
count=0
failed=0
rc=0

# ok TEXT: by the status of the command before
ok() {
	local status=$?
	count=$((count + 1))
	if [ $status -eq 0 ]; then
		echo "ok $count - $1"
	else
		echo "not ok $count - $1"
		sed 's/^/# /' "$work/out" "$work/err" 2>/dev/null
		failed=1
	fi
}

skip() {
	count=$((count + 1))
	echo "ok $count - $2 # SKIP $1"
	case " ${CM_TEST_MUST_WORK:-} " in *" $1 "*) failed=1 ;; esac
}

# Users of these tests: root, and one without a name, or the runner alone.
as=()
home=$work/home
mkdir -m 700 "$home"
export HOME=$home
unset XDG_STATE_HOME XDG_CACHE_HOME XDG_RUNTIME_DIR XDG_CONFIG_HOME CASEMATE_ROOT \
	MASTRACODE_LOCAL_SANDBOX_ROOT CASEMATE_CONFIG CASEMATE_PROFILE
if [ "$(id -u)" = 0 ]; then
	chown -R 65534:65534 "$home" "$work/own"
	as=(setpriv --reuid 65534 --regid 65534 --clear-groups)
fi

run() {
	"$@" >"$work/out" 2>"$work/err"
	rc=$?
}

line() {
	grep -qxF -- "$1" "$work/out"
}

# Processes of our copy of the program.
left() {
	local exe
	for exe in /proc/[0-9]*/exe; do
		case $(readlink "$exe" 2>/dev/null) in "$work/"*) return 0 ;; esac
	done
	return 1
}

level_of_run() {
	(mkdir -p "$1" && cd "$1" && shift && "$@" run --quiet --result fd:3 -- true 3>&1 >/dev/null \
		2>"$work/err") | sed -n 's/.*"level":"\([^"]*\)".*/\1/p'
}

t_root() {
	local level
	if [ "$(id -u)" != 0 ]; then
		skip ROOT 'root: what it says'
		skip ROOT 'root: the level is what run reaches'
		skip ROOT 'root: a /proc that is covered'
		skip ROOT 'root: control: one that is not'
		return
	fi
	HOME=$work run "$casemate" doctor
	[ $rc -eq 0 ] && line 'ok    identity           root: each session has 65536 ids of its own' &&
		line "ok    casemate-keeper    '$work/bin/casemate-keeper'" && [ ! -s "$work/err" ]
	ok 'root: what it says'
	level=$(HOME=$work level_of_run "$work/tree" "$casemate")
	[ -n "$level" ] && line "casemate run reaches level '$level' here"
	ok "root: the level is what run reaches ($level)"
	HOME=$work run unshare -m sh -c 'mount --bind /dev/null /proc/version && exec "$0" doctor' "$casemate"
	[ $rc -eq 1 ] && grep -q '^fail  proc               a fresh /proc cannot be mounted: parts of the present one are covered' "$work/out" &&
		grep -q '^no jail can be made here: a fresh /proc' "$work/out"
	ok 'root: a /proc that is covered'
	HOME=$work run unshare -m sh -c 'mount --bind /dev/null /etc/hostname && exec "$0" doctor' "$casemate"
	[ $rc -eq 0 ] && line 'ok    proc               a fresh /proc can be mounted'
	ok 'root: control: one that is not'
}

t_user() {
	local level
	if ! "${as[@]}" unshare -Urnpf true 2>/dev/null; then
		skip USERNS 'user: what it says'
		skip USERNS 'user: the level is what run reaches'
		return
	fi
	run "${as[@]}" "$casemate" doctor
	[ $rc -eq 0 ] && line 'ok    namespaces         user, mnt, pid, net, ipc, uts, time and cgroup, with capabilities inside' &&
		grep -q "^ok    identity           user '" "$work/out" && [ ! -s "$work/err" ]
	ok 'user: what it says'
	level=$(level_of_run "$home/tree" "${as[@]}" "$casemate")
	[ -n "$level" ] && line "casemate run reaches level '$level' here"
	ok "user: the level is what run reaches ($level)"
}

# in_ns SETTING WANTED: a user namespace in which user.SETTING was set before doctor ran
in_ns() {
	run "${as[@]}" unshare -U --map-user=1000 --map-group=1000 --keep-caps sh -c '
		[ -z "$2" ] || echo "$2" >"/proc/sys/user/$1" || exit 99
		exec "$0" doctor' "$own" "$1" "$2"
}

t_limits() {
	local kind
	if ! "${as[@]}" unshare -U --map-user=1000 --map-group=1000 --keep-caps \
		sh -c 'echo 9 >/proc/sys/user/max_user_namespaces' 2>/dev/null; then
		skip USERNS 'limits of namespaces'
		return
	fi
	in_ns max_user_namespaces ''
	[ $rc -eq 0 ] && grep -q '^ok    namespaces ' "$work/out"
	ok 'control: a nested user namespace'
	for kind in user mnt pid net ipc uts time; do
		in_ns max_${kind}_namespaces 0
		[ $rc -eq 1 ] &&
			line "fail  namespaces         $kind namespaces cannot be made: user.max_${kind}_namespaces is 0" &&
			line "      fix: echo user.max_${kind}_namespaces=15000 | sudo tee -a /etc/sysctl.d/60-casemate.conf && sudo sysctl --system" &&
			line "no jail can be made here: $kind namespaces cannot be made: user.max_${kind}_namespaces is 0"
		ok "user.max_${kind}_namespaces is 0"
	done
	in_ns max_cgroup_namespaces 0
	[ $rc -eq 1 ] && grep -q '^fail  namespaces         cgroup namespaces cannot be made: ' "$work/out"
	ok 'user.max_cgroup_namespaces is 0'
	run "${as[@]}" unshare -U "$own" doctor
	[ $rc -eq 1 ] && grep -q "^fail  namespaces .*this process's own id is not mapped" "$work/out"
	ok 'an id that is not mapped'
	run "${as[@]}" unshare -Ur "$own" doctor
	[ $rc -eq 1 ] && grep -q '^fail  identity           root of a user namespace that has no ids' "$work/out"
	ok 'root of a small user namespace'
	run "${as[@]}" unshare -Urpfm --mount-proc sh -c '
		mount --bind /dev/null /proc/version && exec unshare -U --map-user=1000 --map-group=1000 "$0" doctor' "$own"
	[ $rc -eq 1 ] && grep -q '^fail  proc .* covered' "$work/out"
	ok 'user: a /proc that is covered'
	# what the engine leaves in the environment; the pid namespace tells it from a virtual machine
	container=podman run "${as[@]}" unshare -Urpfm --mount-proc sh -c '
		mount --bind /dev/null /proc/version && exec unshare -U --map-user=1000 --map-group=1000 "$0" doctor' "$own"
	if [ -e /.dockerenv ] || [ -e /run/systemd/container ]; then
		[ $rc -eq 1 ] && grep -q '^fail  container ' "$work/out" && grep -q ' --security-opt .*=' "$work/out"
	else
		[ $rc -eq 1 ] && line '      fix: podman run --security-opt unmask=ALL ...'
	fi
	ok 'a container that covers /proc'
	if [ "$(readlink /proc/self/ns/pid)" = 'pid:[4026531836]' ]; then
		container=podman run "${as[@]}" "$casemate" doctor
		[ $rc -eq 0 ] && ! grep -q '^[a-z]*  *container ' "$work/out"
		ok 'control: a variable makes no container'
	else
		skip OUTERMOST 'control: a variable makes no container'
	fi
}

t_chroot() {
	if [ "$(id -u)" != 0 ]; then
		skip ROOT 'a chroot'
		return
	fi
	if readelf -lW "$work/bin/casemate" | grep INTERP >/dev/null; then
		skip STATIC 'a chroot'
		return
	fi
	# /proc as seen from there has no mount at "/"
	HOME=/ run unshare -m sh -c '
		mkdir "$1/root" && cd "$1/root" && mkdir bin proc usr var run etc tmp dev && cp "$1"/bin/* bin/ &&
		mount --rbind /proc proc && chroot . /bin/casemate doctor' sh "$work"
	[ $rc -eq 1 ] && line '      fix: enter the tree by pivot_root instead, as systemd-nspawn and containers do'
	ok 'a chroot'
}

t_output() {
	run "${as[@]}" "$casemate" doctor
	cp "$work/out" "$work/text"
	run "${as[@]}" "$casemate" doctor --summary
	[ -s "$work/out" ] && [ "$(tail -n "$(wc -l <"$work/out")" "$work/text")" = "$(cat "$work/out")" ]
	ok 'the summary is the last lines'
	run "${as[@]}" "$casemate" doctor --json
	[ $rc -eq 0 ] && [ "$(grep -c '"check": .*,$' "$work/out")" -ge 15 ] && grep -q '^    "canJail": true,$' "$work/out"
	ok 'JSON has the checks and the summary'
	# each line of the text is a check of the JSON, with the same words
	[ "$(sed -n 's/^ok    \([a-z-]*\) .*/\1/p' "$work/text")" = \
		"$(awk -F'"' '/"check":/ { c = $4 } /"status": "ok"/ { print c }' "$work/out")" ]
	ok 'JSON and text agree'
	run "${as[@]}" "$casemate" doctor --fast
	[ $rc -eq 125 ] && grep -q "^casemate: unknown option '--fast'" "$work/err"
	ok 'an unknown option'
	run "${as[@]}" "$casemate" doctor --json --summary
	[ $rc -eq 125 ] && grep -q '^hint: write casemate doctor' "$work/err"
	ok 'options that exclude each other'
	run "${as[@]}" sh -c 'exec "$0" doctor >/dev/full' "$casemate"
	[ $rc -eq 125 ] && grep -q 'cannot write to standard output' "$work/err"
	ok 'an output that is full'
	run "${as[@]}" "$casemate" doctor
	! grep -q $'\e' "$work/out"
	ok 'no colour in a pipe'
}

t_files() {
	run "${as[@]}" "$casemate" doctor --root relative
	[ $rc -eq 125 ] && grep -q "^casemate: .*'relative'" "$work/err" && [ ! -s "$work/out" ]
	ok 'a root that is not absolute'
	run "${as[@]}" env -u HOME XDG_STATE_HOME=/proc "$casemate" doctor
	[ $rc -eq 1 ] && grep -q '^fail  directories ' "$work/out"
	ok 'no place for the state'
	run "${as[@]}" "$casemate" doctor --root "$home/new/root"
	[ $rc -eq 0 ] && grep -q "^[a-z]*  *session-root  *'$home/new/root' " "$work/out" && [ ! -e "$home/new" ]
	ok 'nothing is made for the session root'
	mkdir "$work/alone" && cp "$casemate" "$work/alone/"
	run "${as[@]}" "$work/alone/casemate" doctor
	if [ $rc -eq 1 ]; then
		line "fail  casemate-keeper    cannot find 'casemate-keeper'"
	else
		# one is installed
		grep -q "^ok    casemate-keeper    '/" "$work/out"
	fi
	ok 'a keeper that is not there'
	chmod 666 "$work/bin/casemate-keeper"
	run "${as[@]}" "$casemate" doctor
	[ $rc -eq 1 ] && grep -q '^fail  casemate-keeper .*could have been put there by somebody else' "$work/out"
	ok 'a keeper that others can write'
	if [ "$(id -u)" = 0 ]; then
		# the caller's group at the moment, as newgrp has it, but not his alone
		chmod 755 "$work/bin/casemate-keeper"
		chgrp games "$work/bin"
		chmod g+w "$work/bin"
		run setpriv --egid games --keep-groups "$casemate" doctor
		[ $rc -eq 1 ] && grep -q '^fail  casemate-keeper .*could have been put there' "$work/out"
		ok 'a directory of a group that is not only the caller'"'"'s'
		chgrp root "$work/bin"
		run "$casemate" doctor
		grep -q '^ok    casemate-keeper ' "$work/out"
		ok 'one of his own group'
		chmod g-w "$work/bin"
	fi
	chmod 644 "$work/bin/casemate-keeper"
	run "${as[@]}" "$casemate" doctor
	[ $rc -eq 1 ] && grep -q "^fail  casemate-keeper    cannot execute '" "$work/out"
	ok 'a keeper that cannot be executed'
	chmod 755 "$work/bin/casemate-keeper"
	run "${as[@]}" env PATH=/nonexistent "$casemate" doctor
	[ $rc -eq 0 ] && grep -q '^warn  git  *not on PATH: ' "$work/out"
	ok 'no git on PATH'
}

t_nothing_is_left() {
	local before i
	before=$(wc -l </proc/self/mountinfo)
	run "${as[@]}" "$casemate" doctor
	[ $rc -eq 0 ] && ! left && [ "$(wc -l </proc/self/mountinfo)" = "$before" ]
	ok 'no process and no mount is left'
	for i in $(seq 60); do
		"${as[@]}" "$casemate" doctor >/dev/null 2>&1 &
		sleep "0.00$((i % 10))"
		kill -9 $! 2>/dev/null
		wait $! 2>/dev/null
	done
	for i in 1 2 3 4 5; do
		left || break
		sleep 0.1
	done
	! left
	ok 'nor when it is killed'
}

t_root
t_user
t_limits
t_chroot
if "${as[@]}" unshare -Urnpf true 2>/dev/null; then
	t_output
	t_files
	t_nothing_is_left
else
	skip USERNS 'output, files and what is left'
fi

echo "1..$count"
[ $failed -eq 0 ]
