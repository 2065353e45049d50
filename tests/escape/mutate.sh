#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Takes single defences out of a copy of the tree, and shows that a probe then gets further.
#
#   mutate.sh [NAME...]      as root; prints a table: defence, probe, what it got without
#
# A wall behind another is shown by taking the first away: the attempt is then refused by the second,
# with its own errno, and reaches when both are gone.
set -uo pipefail
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
[ "$(id -u)" = 0 ] || {
	echo 'skipped: this needs root'
	exit 77
}
copy=$(mktemp -d "${TMPDIR:-/tmp}/casemate-mutate.XXXXXX") || exit 1
chmod 755 "$copy"
trap 'rm -rf "$copy"' EXIT
trap 'exit 1' INT TERM HUP
failed=0

(cd "$source" && git ls-files -z --cached --others --exclude-standard -- CMakeLists.txt isolation runtime providers scripts tests |
	while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done |
	tar -c --null -T - -f -) | tar -x -C "$copy" || exit 1
cmake -S "$copy" -B "$copy/build" -G Ninja >"$copy/log" 2>&1 || {
	cat "$copy/log"
	exit 1
}

build() {
	cmake --build "$copy/build" -j 2 --target casemate casemate-keeper escape_probes \
		>"$copy/log" 2>&1 || {
		tail -n 20 "$copy/log"
		return 1
	}
}

# edit FILE SED-SCRIPT: changes the file, or the row is out of date
edit() {
	[ -e "$copy/original/$1" ] || {
		mkdir -p "$copy/original/$(dirname "$1")"
		cp "$copy/$1" "$copy/original/$1"
	}
	cp "$copy/$1" "$copy/before"
	sed -i "$2" "$copy/$1"
	! cmp -s "$copy/$1" "$copy/before" || {
		echo "    nothing changed in $1: $2"
		failed=$((failed + 1))
	}
}

restore() {
	local file
	[ -d "$copy/original" ] || return 0
	(cd "$copy/original" && find . -type f) | while IFS= read -r file; do
		cp "$copy/original/$file" "$copy/$file"
	done
	rm -rf "$copy/original"
}

# What the attempt got in a test that failed; "as expected" when it did not fail.
got() { # CASE ATTEMPT
	awk -v name=" - $1: $2" '
		index($0, "not ok ") == 1 {
			rest = substr($0, index($0, " - "))
			found = index(rest, name) == 1
			seen = seen || found
		}
		/^ok / { found = 0 }
		found && /^# got:  / { print substr($0, 9); told = 1; exit }
		END { if (!told) print seen ? "fails" : "as expected" }' "$copy/tap"
}

# gone NAME CALLER GROUP CASE ATTEMPT GOT: with the edits that were made
gone() {
	local name=$1 caller=$2 group=$3 case=$4 attempt=$5 want=$6 result
	if build; then
		CM_ESCAPE_ROUNDS=150 timeout 300 bash "$copy/tests/escape/escape.sh" "$copy/build/bin" \
			"$caller" "$group" "$copy/build/tests/escape/probes" "$case" >"$copy/tap" 2>&1
		result=$(got "$case" "$attempt")
	else
		result='does not build'
	fi
	# a race says how often
	[[ $want != some || ! $result =~ ^[1-9][0-9]*$ ]] || want=$result
	printf '%-34s %-7s %-14s %-44s %s\n' "$name" "$caller" "$case" "$attempt" "$result"
	[ "$result" = "$want" ] || {
		echo "    expected: $want"
		failed=$((failed + 1))
	}
}

no_seccomp() { edit isolation/mech/seccomp.c '/^int cm_seccomp_load/,/^}/s/^\tint r = /\treturn 0;\n&/'; }
no_landlock() { edit isolation/mech/landlock.c 's/^\tif (abi == 0)$/\tif (abi != 99)/'; }
no_sysctls() { edit isolation/mech/mounts.c '/^static int run_sysctl/,/^}/s/^\tint r;/\tint r;\n\treturn CM_OK;/'; }
no_read_only() { edit isolation/mech/mount_sources.c '/attr_set |= MOUNT_ATTR_RDONLY/s/MOUNT_ATTR_RDONLY/0/'; }

mutation_seccomp() {
	no_seccomp
	gone 'filter' root kernel syscalls io_uring_setup reached
	gone 'filter' root kernel sockets vsock reached
	gone 'filter' root kernel tty TIOCSTI reached
	gone 'filter' root kernel setid 'chmod 4755' reached
	gone 'filter; sysctls stand' root kernel syscalls 'unshare user' 'refused ENOSPC'
}

mutation_namespaces() {
	no_seccomp
	no_sysctls
	gone 'filter and sysctls' root kernel syscalls 'unshare user' reached
}

mutation_bounding() {
	edit isolation/mech/caps.c 's/^\tr = bound_to(.*);/\tr = CM_OK;/'
	gone 'bounding set' root kernel caps CapBnd reached
}

mutation_dumpable() {
	edit isolation/keeper/init.c 's/PR_SET_DUMPABLE, 0,/PR_SET_DUMPABLE, 1,/'
	gone 'init non-dumpable' plain init init 'fd list' reached
}

mutation_parent_death() {
	edit isolation/keeper/init.c '/^static int stage_parent_death/,/^}/s/^\tint signal = 0;/&\n\treturn CM_OK;/'
	gone 'parent-death signal' root init keeper_death 'stopped: everything in the jail is gone' 3
}

mutation_nosuid() {
	edit isolation/mech/mount_sources.c 's/attr_set = MOUNT_ATTR_NOSUID/attr_set = 0/'
	gone 'nosuid' root tree mounts 'set-id mount' reached
}

mutation_propagation() {
	edit isolation/mech/mount_sources.c 's/\.propagation = MS_PRIVATE/.propagation = 0/'
	edit isolation/mech/ns.c 's/\.propagation = MS_PRIVATE/.propagation = MS_SLAVE/'
	gone 'private mounts' root tree propagation 'and no jail' mark
}

mutation_masks() {
	edit isolation/mech/mounts.c '/^static int run_mask/,/^}/s/^\tint r;/\tint r;\n\treturn CM_OK;/'
	gone 'masks of /proc' root tree proc 'read /proc/kallsyms' reached
}

mutation_inert() {
	edit isolation/plan/build_work.c '/^static bool needs_inert/,/^}/s/return m->is_read_only/return false \&\& m->is_read_only/'
	gone 'inert volumes' root tree volumes 'connect sock' reached
}

mutation_links() {
	edit isolation/mech/mount_sources.c 's/AT_SYMLINK_NOFOLLOW |/0 |/; s/RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS/0/'
	gone 'no links; the inode stands' root tree race "a volume's source: nothing of outside is seen" 'as expected'
	edit isolation/mech/mount_sources.c 's/if (op->expect_ino == 0)/if (op->kind < 99)/'
	gone 'no links, same inode' root tree race "a volume's source: nothing of outside is seen" some
}

mutation_passwd() {
	edit isolation/host/tree.c 's/RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS/0/'
	gone "image's names without links" root tree race "a root file system's passwd: nothing of outside is seen" some
}

mutation_refusals() {
	edit isolation/host/refusals.c '/^int cm_refusals_check/,/^}/s/^\tr = open_start/\treturn CM_OK;\n&/'
	gone 'refused paths' root tree refusals "'/etc' is no volume" '0:seen'
}

mutation_descriptors() {
	edit isolation/keeper/main.c 's/cm_sys_close_range([A-Z_]* + 1, ~0U, 0) < 0/0/'
	edit isolation/keeper/init.c 's/|| cm_sys_close_range(SOCK_FD + 1, ~0U, 0) < 0/|| 0/'
	edit isolation/keeper/exec.c 's/return cm_raw_syscall3(__NR_close_range, 3, ~0U, CLOSE_RANGE_CLOEXEC);/return 0;/'
	gone 'closed descriptors' root tree descriptors 'descriptor above 2' reached
}

mutation_landlock() {
	no_landlock
	gone "Landlock's scope" root peers abstract "connect @" reached
}

mutation_read_only() {
	no_read_only
	gone 'read-only; Landlock stands' plain tree read_only 'write tool' 'refused EACCES'
	no_landlock
	gone 'read-only and Landlock' plain tree read_only 'write tool' reached
}

mutation_netns() {
	edit isolation/mech/ns.c 's/args.flags |= CLONE_NEWNET;/args.flags |= 0;/'
	edit isolation/mech/ns.c 's/return has_own_network ? loopback_up(err) : CM_OK;/return has_own_network \&\& 0 ? loopback_up(err) : CM_OK;/'
	gone 'network namespace' root peers loopback 'tcp' reached
	gone 'the same; Landlock stands' root peers abstract 'connect @' 'refused EPERM'
}

mutation_clients() {
	edit isolation/keeper/clients.c 's/if (!is_allowed(sock))/if (0 \&\& !is_allowed(sock))/'
	gone "keeper's look at its clients" plain init socket 'not in another user namespace' \
		'connect: reached'
}

mutation_pins() {
	edit isolation/plan/build_work.c 's/if (ws->is_read_only || build->req->spec->git == CM_GIT_RW)/if (1)/'
	gone 'pins' root git pins 'write .git/config' reached
	gone 'pins' root git submodules 'populated, first session: the host runs nothing' fails
	gone 'pins' root git configured 'write tools/gitconfig' reached
}

mutation_processes() {
	edit isolation/mech/rlimit.c 's/plan->header->cgroup == CM_CGROUP_NONE/0/'
	gone 'RLIMIT_NPROC' plain limits processes processes 'processes: reached'
}

mutation_terminals() {
	edit isolation/mech/mounts.c 's/PTYS_OPTION, //'
	gone 'bound of ptys' root limits kernel_objects 'ptys are bounded' 'ptys: reached'
}

mapfile -t names < <(sed -n 's/^mutation_\([a-z_]*\)().*/\1/p' "$0")
[ $# -eq 0 ] || names=("$@")
printf '%-34s %-7s %-14s %-44s %s\n' 'without' caller case attempt 'got'
for name in "${names[@]}"; do
	"mutation_$name"
	restore
done
[ $failed -eq 0 ] || echo "$failed not as expected"
[ $failed -eq 0 ]
