#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Boots a virtual machine, runs one guest script in it, and judges what it said.
#
#   host.sh DIRECTORY-OF-THE-BUILD GUEST-SCRIPT KERNEL [OPTION-OF-SCRIPTS/VM...]
#
# The guest prints a line a test_NAME function. What counts is that each of them is there and well:
# a machine that dies half way, or a log that ends early, has passed nothing.
set -uo pipefail
[ $# -ge 3 ] || {
	sed -n '5p' "$0" >&2
	exit 2
}
build=$(realpath -- "$1")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
guest=$here/$2
kernel=$3
shift 3
. "$here/names.sh"

skip() { # PREREQUISITE REASON
	case " ${CM_TEST_MUST_WORK:-} " in
	*' all '* | *" $1 "*)
		echo "$1 must work here: $2"
		exit 1
		;;
	esac
	echo "SKIP $1: $2"
	exit 77
}

[ "$(uname -m)" = x86_64 ] || skip TOOLS 'machines are made on x86_64 only'
for tool in qemu-system-x86_64 busybox cpio depmod xz; do
	PATH=$PATH:/usr/sbin:/sbin command -v $tool >/dev/null || skip TOOLS "no $tool"
done

log=$(mktemp "${TMPDIR:-/tmp}/casemate-vm-log.XXXXXX") || exit 99
trap 'rm -f "$log"' EXIT
bash "$here/../../../scripts/vm" -k "$kernel" "$@" -t "${CM_VM_SECONDS:-280}" -- bash "$guest" "$build" \
	> >(tee "$log") 2>&1
status=$?
wait

bad=0
complain() {
	echo "# $*"
	bad=1
}
[ $status = 0 ] || complain "the machine's status is $status"
mapfile -t names < <(test_names "$guest" "$kernel")
[ ${#names[@]} -gt 0 ] || complain "no tests in '$guest'"
grep -qx "1..${#names[@]}" "$log" || complain "the plan is not 1..${#names[@]}"
for i in "${!names[@]}"; do
	grep -q "^ok $((i + 1)) - ${names[i]} " "$log" || complain "not passed: ${names[i]}"
done
! grep '^not ok' "$log" >/dev/null || bad=1
exit $bad
