#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# scripts/vm does what it says: kernels, cgroup layouts, statuses, output, shared directories and a
# user manager.  What fails in a test that uses it is then not the machine.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
count=0
failures=0

skip() {
	echo "SKIP TOOLS: $1"
	case " ${CM_TEST_MUST_WORK:-} " in
	*' all '* | *' TOOLS '*) exit 1 ;;
	esac
	exit 77
}

for tool in qemu-system-x86_64 busybox cpio mmdebstrap; do
	command -v "$tool" >/dev/null || skip "$tool is not installed"
done
grep '^VERSION_CODENAME=bookworm' /etc/os-release >/dev/null || skip "kernels are those of Debian 12"

# machine STATUS VM-ARGUMENT...
machine() {
	local want=$1 got=0
	shift
	"$root/scripts/vm" "$@" >"$work/out" 2>"$work/err" || got=$?
	[ "$got" = "$want" ] || {
		printf '# status %s instead of %s: %s\n' "$got" "$want" "$*"
		sed 's/^/# /' "$work/out" "$work/err"
		return 1
	}
}

check() {
	local what=$1
	shift
	count=$((count + 1))
	if "$@"; then
		echo "ok $count - $what"
	else
		echo "not ok $count - $what"
		failures=$((failures + 1))
	fi
}

old_kernel() {
	mkdir "$work/shared"
	# shellcheck disable=SC2016
	machine 7 -w "$work/shared" -- sh -c \
		'uname -r; echo to stderr >&2; echo kept >"$1/file"; echo gone >/etc/lost; exit 7' sh "$work/shared" &&
		grep '^6\.1\.' "$work/out" && grep -x 'to stderr' "$work/err" && ! grep stderr "$work/out" &&
		grep -x kept "$work/shared/file" && [ ! -e /etc/lost ]
}

new_kernel() {
	machine 0 -k 6.12 -- cat /proc/sys/kernel/osrelease /sys/fs/cgroup/cgroup.controllers &&
		grep '^6\.12\.' "$work/out" && grep 'cpu io memory' "$work/out" && grep pids "$work/out"
}

old_cgroups() {
	machine 0 -c v1 -- cat /proc/self/cgroup && grep ':memory:/' "$work/out" &&
		grep ':pids:/' "$work/out" && ! grep '^0::' "$work/out"
}

user_manager() {
	# shellcheck disable=SC2016
	machine 0 -s -k 6.12 -- sh -c 'systemctl is-system-running &&
		systemctl --user --machine=casemate@.host is-system-running &&
		runuser -u casemate -- env XDG_RUNTIME_DIR=/run/user/1000 \
			systemd-run --user --scope -q -p Delegate=yes sh -c \
			"mkdir /sys/fs/cgroup/\$(cut -d: -f3 /proc/self/cgroup)/mine && echo delegated"' &&
		[ "$(grep -cx running "$work/out")" = 2 ] && grep -x delegated "$work/out"
}

give_up() {
	machine 124 -t 3 -- sleep 60 && machine 125 -k "$work" -- true && machine 125 -c v3 -- true
}

check 'kernel 6.1: status, output and a shared directory come back' old_kernel
check 'kernel 6.12: cgroup v2 with its controllers' new_kernel
check 'kernel 6.1 with cgroup v1' old_cgroups
check 'systemd, and a scope delegated by the manager of an ordinary user' user_manager
check 'time that is up and a machine that cannot start are told apart from the command' give_up
echo "1..$count"
[ "$failures" = 0 ]
