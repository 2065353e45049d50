/* SPDX-License-Identifier: Apache-2.0 */
/* What doctor says of hosts that this one is not: facts in, lines out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/cli/doctor.h"

#define ALL_CONTROLLERS (CM_CG_MEMORY | CM_CG_PIDS | CM_CG_CPU | CM_CG_CPUSET)

/* Paths for pages in each. */
static struct cm_host host;
static struct cm_doctor_facts facts;
static struct cm_doctor_report report;
static struct cm_doctor_summary summary;
static char text[65536];

#define set(array, value) (void)snprintf(array, sizeof(array), "%s", value)

static void set_dir(enum cm_doctor_dir_kind kind, const char *path)
{
	struct cm_doctor_dir *dir = &facts.dirs[kind];

	*dir = (struct cm_doctor_dir){ .is_present = true, .is_writable = true };
	dir->path = strdup(path);
	dir->nearest = strdup(path);
	dir->free_bytes = 8ULL << 30;
}

/* A workstation where everything works, of an ordinary user below systemd. */
static int set_up(void **state)
{
	(void)state;
	host = (struct cm_host){ .uid = 1000, .gid = 1000, .kernel_major = 6, .kernel_minor = 12 };
	host.user_name = (char *)(uintptr_t) "alice";
	host.home = (char *)(uintptr_t) "/home/user";
	host.landlock_abi = 6;
	host.cgroup.kind = CM_CGROUP_V2;
	host.cgroup.controllers = ALL_CONTROLLERS;
	host.cgroup.needs_scope = true;
	host.subids = (struct cm_host_subids){
		.uid_first = 100000, .uid_count = 65536, .gid_first = 100000, .gid_count = 65536
	};
	facts = (struct cm_doctor_facts){ .host = &host };
	set(facts.release, "6.12.1-generic");
	set(facts.machine, "x86_64");
	set(facts.program, "/usr/bin/casemate");
	set(facts.git, "/usr/bin/git");
	facts.probe.step[CM_DOCTOR_IDMAP] = CM_DOCTOR_NOT_TRIED;
	for (size_t i = 0; i < CM_DOCTOR_NS_COUNT_; i++) {
		facts.probe.ns[i] = CM_DOCTOR_NOT_TRIED;
		facts.max_namespaces[i] = 7000;
	}
	facts.apparmor_restrict = -1;
	facts.userns_clone = -1;
	facts.has_all_ids = facts.has_own_id = true;
	host.has_slot_ids = true;
	facts.has_systemd = facts.has_newuidmap = facts.has_newgidmap = true;
	facts.next_subid = 165536;
	set_dir(CM_DOCTOR_DIR_STATE, "/home/user/.local/state/casemate");
	set_dir(CM_DOCTOR_DIR_RUNTIME, "/run/user/1000/casemate");
	set_dir(CM_DOCTOR_DIR_CACHE, "/home/user/.cache/casemate");
	set_dir(CM_DOCTOR_DIR_ROOT, "/home/user/.mastracode/web/sandboxes");
	for (size_t i = 0; i < CM_DOCTOR_HELPERS_; i++)
		(void)snprintf(facts.helpers[i].path, sizeof(facts.helpers[i].path),
			       "/usr/libexec/casemate/%s", cm_doctor_helper_names[i]);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	cm_doctor_report_clear(&report);
	cm_doctor_facts_clear(&facts);
	return 0;
}

static void become_root(void)
{
	host.uid = host.gid = 0;
	host.is_root = true;
	host.cgroup.needs_scope = false;
	set(host.cgroup.v2_base, "/sys/fs/cgroup/casemate.slice");
	facts.probe.step[CM_DOCTOR_IDMAP] = 0;
}

/* Nothing could be tried after this. */
static void fail_clone(int error, enum cm_doctor_ns first_bad)
{
	for (size_t i = 0; i < CM_DOCTOR_SECCOMP; i++)
		facts.probe.step[i] = CM_DOCTOR_NOT_TRIED;
	facts.probe.step[CM_DOCTOR_CLONE] = error;
	for (size_t i = 0; i < CM_DOCTOR_NS_COUNT_; i++)
		facts.probe.ns[i] = i < first_bad ? 0 : error;
}

static void examine(void)
{
	cm_doctor_report_clear(&report);
	cm_doctor_check(&facts, &report);
	assert_false(report.has_failed);
	cm_doctor_summarise(&facts, &report, &summary);
}

/* The lines of one check; "" when it is not there. */
static const char *lines_of(const char *name)
{
	static char found[8192];
	CM_AUTO_BUF struct cm_buf out = { 0 };
	char *at;

	found[0] = '\0';
	cm_buf_init(&out, sizeof(text) - 1);
	cm_doctor_print_text(&report, false, &out);
	assert_int_equal(cm_buf_status(&out), CM_OK);
	(void)snprintf(text, sizeof(text), "%s", out.data);
	for (at = text; *at; at += strcspn(at, "\n") + 1) {
		size_t len = strlen(name);
		const char *end;

		if (strncmp(at + 6, name, len) != 0 || at[6 + len] != ' ' || *at == ' ')
			continue;
		end = strchr(at, '\n') + 1;
		while (*end == ' ')
			end = strchr(end, '\n') + 1;
		(void)snprintf(found, sizeof(found), "%.*s", (int)(end - at), at);
	}
	return found;
}

static const char *summary_text(void)
{
	static char found[8192];
	CM_AUTO_BUF struct cm_buf out = { 0 };

	cm_buf_init(&out, sizeof(found) - 1);
	cm_doctor_print_summary(&summary, &out);
	(void)snprintf(found, sizeof(found), "%s", out.data);
	return found;
}

static void expect(const char *name, const char *lines)
{
	examine();
	assert_string_equal(lines_of(name), lines);
}

static void test_good_user(void **state)
{
	static const char expected[] =
		"ok    kernel             Linux 6.12.1-generic on x86_64\n"
		"ok    identity           user 'alice': the agent has this one id (single-id)\n"
		"ok    namespaces         user, mnt, pid, net, ipc, uts, time and cgroup, with "
		"capabilities inside\n"
		"ok    mounts             tmpfs, bind and pivot_root by the new mount calls\n"
		"ok    proc               a fresh /proc can be mounted\n"
		"ok    overlay            overlays can be mounted in a user namespace\n"
		"ok    landlock           ABI 6\n"
		"ok    seccomp            filters can be loaded\n"
		"ok    cgroups            v2, a scope of systemd's user manager for each session: "
		"--memory, --swap, --pids-limit, --cpus, --cpuset can be enforced\n"
		"ok    subordinate-ids    65536 uids and 65536 gids, for --user root\n"
		"ok    groups             no supplementary group that a jail would keep\n"
		"ok    state-directory    '/home/user/.local/state/casemate', 8.0 GiB free\n"
		"ok    runtime-directory  '/run/user/1000/casemate', 8.0 GiB free\n"
		"ok    cache-directory    '/home/user/.cache/casemate', 8.0 GiB free\n"
		"ok    session-root       '/home/user/.mastracode/web/sandboxes', 8.0 GiB free\n"
		"ok    casemate-keeper    '/usr/libexec/casemate/casemate-keeper'\n"
		"ok    casemate-checkout  '/usr/libexec/casemate/casemate-checkout'\n"
		"ok    casemate-scope     '/usr/libexec/casemate/casemate-scope'\n"
		"ok    git                '/usr/bin/git'\n"
		"ok    tools              none below '/home/user'; those of /usr are shown\n";

	(void)state;
	examine();
	(void)lines_of("kernel");
	assert_string_equal(text, expected);
	assert_string_equal(summary_text(), "casemate run reaches level 'full-single-id' here\n");
}

static void test_good_root(void **state)
{
	(void)state;
	become_root();
	examine();
	assert_string_equal(summary_text(), "casemate run reaches level 'full' here\n");
	assert_string_equal(
		lines_of("identity"),
		"ok    identity           root: each session has 65536 ids of its own\n");
	assert_string_equal(
		lines_of("idmapped-mounts"),
		"ok    idmapped-mounts    the file system of '/home/user/.mastracode/web/sandboxes' "
		"has them\n");
	/* rows of ordinary users */
	assert_string_equal(lines_of("groups"), "");
	assert_string_equal(lines_of("subordinate-ids"), "");
	assert_string_equal(lines_of("casemate-scope"), "");
}

static void test_kernel(void **state)
{
	(void)state;
	host.kernel_major = 5;
	host.kernel_minor = 15;
	set(facts.release, "5.15.0");
	expect("kernel", "ok    kernel             Linux 5.15.0 on x86_64\n");
	host.kernel_minor = 14;
	set(facts.release, "5.14.21");
	expect("kernel", "fail  kernel             Linux 5.14.21: 5.15 or newer is needed\n"
			 "      fix: boot Linux 5.15 or newer\n");
	assert_false(summary.can_jail);
	host.kernel_major = 4;
	host.kernel_minor = 18;
	examine();
	assert_false(summary.can_jail);
	host.kernel_major = 7;
	host.kernel_minor = 0;
	set(facts.machine, "riscv64");
	expect("kernel",
	       "fail  kernel             Linux 5.14.21 on 'riscv64': there are filters for x86_64 "
	       "and aarch64 only\n"
	       "      fix: use a machine of one of these architectures\n");
	set(facts.machine, "aarch64");
	examine();
	assert_true(summary.can_jail);
}

static void test_identity(void **state)
{
	(void)state;
	host.uid = 0;
	expect("identity",
	       "fail  identity           root without CAP_SYS_ADMIN, CAP_SETUID and CAP_SETGID\n"
	       "      fix: run casemate as an ordinary user, or give it these capabilities\n");
	host.has_slot_ids = false;
	expect("identity",
	       "fail  identity           root of a user namespace that has no ids to give to "
	       "sessions\n"
	       "      fix: run casemate as an ordinary user\n");
	host.uid = 1000;
	host.gid = 0;
	expect("identity",
	       "fail  identity           the primary group of user 'alice' is root's, which no jail "
	       "may have\n"
	       "      fix: run casemate with another primary group\n");
}

/* Ubuntu 24.04: everything is made, and nothing is allowed inside. */
static void test_apparmor(void **state)
{
	static const char fix[] =
		"printf '%s\\n' \\\n"
		"             'abi <abi/4.0>,' \\\n"
		"             'include <tunables/global>' \\\n"
		"             'profile casemate \"/opt/o'\\''neil/\\[x\\]/casemate\" "
		"flags=(unconfined) {' \\\n"
		"             '  userns,' \\\n"
		"             '}' \\\n"
		"             'profile casemate-keeper \"/usr/libexec/casemate/casemate-keeper\" "
		"flags=(unconfined) {' \\\n"
		"             '  userns,' \\\n"
		"             '}' |\n"
		"             sudo tee /etc/apparmor.d/casemate && sudo apparmor_parser -r "
		"/etc/apparmor.d/casemate\n";
	char expected[2048];

	(void)state;
	facts.apparmor_restrict = 1;
	set(facts.apparmor, "unconfined");
	set(facts.program, "/opt/o'neil/[x]/casemate");
	facts.probe.step[CM_DOCTOR_LOOPBACK] = EPERM;
	facts.probe.step[CM_DOCTOR_PROPAGATION] = EACCES;
	facts.probe.step[CM_DOCTOR_CGROUP_NS] = EPERM;
	facts.probe.step[CM_DOCTOR_TMPFS] = CM_DOCTOR_NOT_TRIED;
	facts.probe.step[CM_DOCTOR_BIND] = CM_DOCTOR_NOT_TRIED;
	facts.probe.step[CM_DOCTOR_PROC] = CM_DOCTOR_NOT_TRIED;
	facts.probe.step[CM_DOCTOR_OVERLAY] = CM_DOCTOR_NOT_TRIED;
	facts.probe.step[CM_DOCTOR_PIVOT] = CM_DOCTOR_NOT_TRIED;
	(void)snprintf(expected, sizeof(expected),
		       "fail  namespaces         user namespaces are made without capabilities "
		       "(mount propagation cannot be cut: Permission denied): "
		       "kernel.apparmor_restrict_unprivileged_userns is 1, and AppArmor has no "
		       "profile for this program\n"
		       "      fix: %s",
		       fix);
	expect("namespaces", expected);
	assert_false(summary.can_jail);
	assert_string_equal(summary.best->name, "namespaces");
	/* what was not tried is not said to work, or not to */
	assert_string_equal(lines_of("mounts"), "");
	assert_string_equal(lines_of("proc"), "");
	assert_string_equal(lines_of("overlay"), "");
	/* only the loopback refused, and the setting on: it is the same cause */
	facts.probe.step[CM_DOCTOR_PROPAGATION] = facts.probe.step[CM_DOCTOR_TMPFS] = 0;
	examine();
	assert_non_null(strstr(lines_of("namespaces"),
			       "(the loopback interface cannot be brought up: Operation not "
			       "permitted): kernel.apparmor_restrict_unprivileged_userns is 1"));
	/* root is not restricted by it, so another cause is named */
	host.is_root = true;
	examine();
	assert_null(strstr(lines_of("namespaces"), "apparmor_restrict"));
	host.is_root = false;
	/* in a container a profile of the host's paths would not match */
	set(facts.container, "docker");
	examine();
	assert_non_null(strstr(lines_of("namespaces"),
			       "fix: on the host: sudo sysctl -w "
			       "kernel.apparmor_restrict_unprivileged_userns=0\n"));
}

static void test_settings(void **state)
{
	(void)state;
	fail_clone(EPERM, CM_DOCTOR_NS_USER);
	facts.userns_clone = 0;
	expect("namespaces", "fail  namespaces         user namespaces cannot be made: "
			     "kernel.unprivileged_userns_clone is 0\n"
			     "      fix: echo kernel.unprivileged_userns_clone=1 | sudo tee -a "
			     "/etc/sysctl.d/60-casemate.conf && sudo sysctl --system\n");
	facts.userns_clone = 1;
	facts.is_chroot = true;
	expect("namespaces",
	       "fail  namespaces         user namespaces cannot be made: this process is in a "
	       "chroot\n"
	       "      fix: enter the tree by pivot_root instead, as systemd-nspawn and containers "
	       "do\n");
	facts.has_own_id = false;
	examine();
	assert_non_null(strstr(lines_of("namespaces"), "own id is not mapped"));
	facts.has_own_id = true;
	facts.is_chroot = false;
	set(facts.lsms, "capability,selinux");
	expect("namespaces",
	       "fail  namespaces         user namespaces cannot be made: a security module refuses "
	       "it (active: capability,selinux)\n"
	       "      fix: look for denials in the kernel's log: sudo dmesg, sudo ausearch -m "
	       "avc\n");
	facts.has_filter = true;
	examine();
	assert_non_null(strstr(lines_of("namespaces"), "a system-call filter confines"));
	set(facts.apparmor, "snap.code.code");
	examine();
	assert_non_null(strstr(lines_of("namespaces"), "profile 'snap.code.code' confines"));
}

static void test_limits_of_namespaces(void **state)
{
	(void)state;
	fail_clone(ENOSPC, CM_DOCTOR_NS_USER);
	facts.max_namespaces[CM_DOCTOR_NS_USER] = 0;
	expect("namespaces",
	       "fail  namespaces         user namespaces cannot be made: user.max_user_namespaces "
	       "is 0\n"
	       "      fix: echo user.max_user_namespaces=15000 | sudo tee -a "
	       "/etc/sysctl.d/60-casemate.conf && sudo sysctl --system\n");
	assert_string_equal(summary_text(),
			    "no jail can be made here: user namespaces cannot be made: "
			    "user.max_user_namespaces is 0\n"
			    "to change that: echo user.max_user_namespaces=15000 | sudo tee -a "
			    "/etc/sysctl.d/60-casemate.conf && sudo sysctl --system\n");
	fail_clone(ENOSPC, CM_DOCTOR_NS_NET);
	facts.max_namespaces[CM_DOCTOR_NS_NET] = 0;
	examine();
	assert_non_null(strstr(lines_of("namespaces"),
			       "net namespaces cannot be made: user.max_net_namespaces is 0\n"
			       "      fix: echo user.max_net_namespaces=15000 |"));
	facts.max_namespaces[CM_DOCTOR_NS_NET] = 20000;
	examine();
	assert_non_null(strstr(lines_of("namespaces"), "user.max_net_namespaces (20000 here) is "
						       "used up"));
	assert_non_null(strstr(lines_of("namespaces"), "user.max_net_namespaces=40000 |"));
	fail_clone(EINVAL, CM_DOCTOR_NS_TIME);
	expect("namespaces", "fail  namespaces         this kernel was built without time "
			     "namespaces\n"
			     "      fix: boot a kernel with CONFIG_TIME_NS=y\n");
	fail_clone(EAGAIN, CM_DOCTOR_NS_USER);
	examine();
	assert_non_null(strstr(lines_of("namespaces"), "ulimit -u"));
}

static void test_odd_probes(void **state)
{
	(void)state;
	facts.probe.step[CM_DOCTOR_MAP] = ETIMEDOUT;
	examine();
	assert_non_null(strstr(lines_of("namespaces"), "was ended, or did not answer in time"));
	assert_false(summary.can_jail);
	facts.probe.step[CM_DOCTOR_MAP] = EINVAL;
	examine();
	assert_non_null(strstr(lines_of("namespaces"), "id map cannot be written: Invalid"));
	facts.probe.step[CM_DOCTOR_MAP] = 0;
	facts.probe.step[CM_DOCTOR_CGROUP_NS] = ENOSPC;
	examine();
	assert_non_null(strstr(lines_of("namespaces"), "cgroup namespaces cannot be made: No sp"));
	facts.probe.step[CM_DOCTOR_CGROUP_NS] = 0;
	facts.probe.step[CM_DOCTOR_TMPFS] = ENOSYS;
	expect("mounts",
	       "fail  mounts             cannot mount a tmpfs (fsopen, fsmount, move_mount): "
	       "Function not implemented\n"
	       "      fix: a system-call filter or security module refuses it: run casemate "
	       "outside of it\n");
	facts.probe.step[CM_DOCTOR_TMPFS] = 0;
	facts.probe.step[CM_DOCTOR_PIVOT] = EINVAL;
	examine();
	assert_non_null(strstr(lines_of("mounts"), "cannot change the root (pivot_root): Inval"));
	facts.probe.step[CM_DOCTOR_PIVOT] = 0;
	facts.probe.step[CM_DOCTOR_SECCOMP] = EINVAL;
	examine();
	assert_non_null(strstr(lines_of("seccomp"), "fail  seccomp            no filter can"));
	assert_false(summary.can_jail);
}

static void test_proc(void **state)
{
	(void)state;
	facts.probe.step[CM_DOCTOR_PROC] = EPERM;
	facts.is_proc_covered = true;
	examine();
	assert_non_null(strstr(lines_of("proc"), "parts of the present one are covered"));
	assert_non_null(strstr(lines_of("proc"), "fix: run casemate outside of it; in a unit"));
	assert_false(summary.can_jail);
	facts.is_proc_covered = false;
	expect("proc", "fail  proc               a fresh /proc cannot be mounted: Operation not "
		       "permitted\n"
		       "      fix: look at the kernel's log: sudo dmesg\n");
}

static void test_overlay_and_idmap(void **state)
{
	(void)state;
	become_root();
	facts.probe.step[CM_DOCTOR_OVERLAY] = ENODEV;
	facts.probe.step[CM_DOCTOR_IDMAP] = EINVAL;
	examine();
	assert_non_null(strstr(lines_of("overlay"), "warn  overlay "));
	assert_non_null(strstr(lines_of("overlay"), "fix: sudo modprobe overlay\n"));
	assert_non_null(strstr(lines_of("idmapped-mounts"),
			       "not on the file system of '/home/user/.mastracode/web/sandboxes' "
			       "(Invalid argument)"));
	assert_true(summary.can_jail);
	assert_string_equal(summary.best->name, "overlay");
}

static void test_landlock(void **state)
{
	(void)state;
	host.landlock_abi = 4;
	expect("landlock",
	       "warn  landlock           ABI 4 of 6: device ioctls are not covered; --network host "
	       "is refused (abstract sockets are not scoped)\n"
	       "      fix: boot Linux 6.12 or newer\n");
	/* no reason to worry somebody whose jails have the full level */
	assert_string_equal(summary_text(), "casemate run reaches level 'full-single-id' here\n");
	host.landlock_abi = 1;
	examine();
	assert_non_null(strstr(lines_of("landlock"), "ABI 1 of 6: moves between directories are "
						     "refused; truncation is not covered; device "
						     "ioctls are not covered; --network host"));
	host.landlock_abi = 0;
	facts.landlock_errno = EOPNOTSUPP;
	set(facts.lsms, "lockdown,capability,yama");
	examine();
	assert_non_null(strstr(lines_of("landlock"), "none (switched off at boot)"));
	assert_non_null(
		strstr(lines_of("landlock"), "boot: lsm=landlock,lockdown,capability,yama\n"));
	facts.landlock_errno = ENOSYS;
	examine();
	assert_non_null(strstr(lines_of("landlock"), "CONFIG_SECURITY_LANDLOCK=y\n"));
}

static void no_groups(const char *cause)
{
	host.cgroup.kind = CM_CGROUP_NONE;
	host.cgroup.controllers = 0;
	host.cgroup.needs_scope = false;
	(void)snprintf(host.cgroup.reason, sizeof(host.cgroup.reason), "%s", cause);
}

static void test_no_cgroup(void **state)
{
	(void)state;
	no_groups("no systemd user session");
	expect("cgroups",
	       "warn  cgroups            none (no systemd user session): a fork bomb or memory eater "
	       "in a jail is not bounded, and --memory, --pids-limit, --cpus and --cpuset are "
	       "refused unless written with '?'\n"
	       "      fix: sudo loginctl enable-linger alice\n");
	assert_string_equal(summary_text(),
			    "casemate run reaches level 'no-cgroup-single-id' here\n"
			    "to improve it: sudo loginctl enable-linger alice\n");
	facts.has_linger = true;
	examine();
	assert_non_null(strstr(lines_of("cgroups"), "fix: sudo systemctl start user@1000.service"));
	facts.has_systemd = false;
	examine();
	assert_non_null(strstr(lines_of("cgroups"), "fix: run casemate as root, or from a v2"));
	no_groups("control groups (v1) cannot be written by this user");
	facts.has_systemd = true;
	examine();
	assert_non_null(strstr(lines_of("cgroups"), "systemd.unified_cgroup_hierarchy=1\n"));
	become_root();
	no_groups("");
	examine();
	assert_non_null(strstr(lines_of("cgroups"), "none (not mounted)"));
	assert_non_null(strstr(lines_of("cgroups"), "sudo mount -t cgroup2 none /sys/fs/cgroup\n"));
	assert_string_equal(summary.level, "no-cgroup");
}

static void test_missing_controllers(void **state)
{
	static const char drop_in[] =
		"      fix: sudo mkdir -p /etc/systemd/system/user@.service.d &&\n"
		"             printf '%s\\n' '[Service]' 'Delegate=cpu cpuset io memory pids' |\n"
		"             sudo tee /etc/systemd/system/user@.service.d/delegate.conf && sudo "
		"systemctl daemon-reload &&\n"
		"             sudo systemctl restart user@1000.service   # ends this user's "
		"sessions\n";
	char expected[2048];

	(void)state;
	host.cgroup.controllers = CM_CG_MEMORY | CM_CG_PIDS;
	set(host.cgroup.reason, "no controller in 'user@1000.service' for: cpu");
	(void)snprintf(expected, sizeof(expected),
		       "warn  cgroups            v2, a scope of systemd's user manager for each "
		       "session: --memory, --swap, --pids-limit can be enforced; not --cpus, "
		       "--cpuset (no controller in 'user@1000.service' for: cpu)\n%s",
		       drop_in);
	expect("cgroups", expected);
	assert_string_equal(summary.level, "full-single-id");
	assert_string_equal(summary.best->name, "cgroups");
	/* a delegated group below the manager is the manager's to give too */
	host.cgroup.needs_scope = false;
	set(host.cgroup.v2_base, "/sys/fs/cgroup/user.slice/user-1000.slice/"
				 "user@1000.service/x.scope");
	examine();
	assert_non_null(strstr(lines_of("cgroups"), drop_in));
	/* cpuset is asked for by few */
	host.cgroup.controllers |= CM_CG_CPU;
	host.cgroup.reason[0] = '\0';
	examine();
	assert_non_null(strstr(lines_of("cgroups"), "--cpus can be enforced; not --cpuset\n"));
	assert_null(summary.best);
	become_root();
	host.cgroup.kind = CM_CGROUP_V1;
	host.cgroup.controllers = CM_CG_MEMORY;
	examine();
	assert_non_null(strstr(lines_of("cgroups"), "v1: --memory, --swap can be enforced; not "
						    "--pids-limit, --cpus, --cpuset\n"));
	assert_string_equal(summary.level, "no-cgroup");
}

static void test_docker_as_user(void **state)
{
	(void)state;
	set(facts.container, "docker");
	set(facts.apparmor, "docker-default");
	facts.has_filter = facts.is_proc_covered = true;
	facts.has_systemd = false;
	fail_clone(ENOSYS, CM_DOCTOR_NS_USER);
	no_groups("the control group cannot be written");
	expect("container",
	       "fail  container          docker: it keeps back what a jail needs\n"
	       "      fix: docker run --security-opt seccomp=unconfined --security-opt "
	       "apparmor=unconfined --security-opt systempaths=unconfined ...\n"
	       "             # --security-opt seccomp=unconfined: clone3 and mount, which its "
	       "filter refuses\n"
	       "             # --security-opt apparmor=unconfined: mounts in a jail, which its "
	       "profile refuses\n"
	       "             # --security-opt systempaths=unconfined: a fresh /proc, which its "
	       "covered one forbids\n");
	assert_string_equal(lines_of("namespaces"),
			    "fail  namespaces         namespaces cannot be made (clone3 is "
			    "refused): the container that this runs in forbids it\n"
			    "      fix: start it with what the check 'container' names\n");
	/* the container's row has the command, so the summary has it too */
	assert_string_equal(summary.best->name, "container");
	/* each option for what it is needed: only /proc is left */
	for (size_t i = 0; i < CM_DOCTOR_SECCOMP; i++)
		facts.probe.step[i] = 0;
	facts.probe.step[CM_DOCTOR_PROC] = EPERM;
	facts.has_filter = false;
	facts.apparmor[0] = '\0';
	expect("container",
	       "fail  container          docker: it keeps back what a jail needs\n"
	       "      fix: docker run --security-opt systempaths=unconfined ...\n"
	       "             # --security-opt systempaths=unconfined: a fresh /proc, which its "
	       "covered one forbids\n");
	facts.probe.step[CM_DOCTOR_PROC] = 0;
	expect("container", "ok    container          docker: it lets a jail have what it needs\n");
	assert_true(summary.can_jail);
}

static void test_podman_as_root(void **state)
{
	(void)state;
	become_root();
	host.is_root = false;
	set(facts.container, "podman");
	facts.has_filter = facts.is_proc_covered = true;
	fail_clone(EPERM, CM_DOCTOR_NS_USER);
	no_groups("'/sys/fs/cgroup' cannot be written (mounted read-only, as in a container)");
	examine();
	assert_non_null(strstr(lines_of("container"),
			       "fix: podman run --security-opt seccomp=unconfined --security-opt "
			       "unmask=ALL --cap-add SYS_ADMIN --cgroupns=host -v "
			       "/sys/fs/cgroup:/sys/fs/cgroup:rw ...\n"));
	/* rootless: neither capability nor group would help */
	facts.has_all_ids = host.has_slot_ids = false;
	examine();
	assert_non_null(strstr(lines_of("container"), "unmask=ALL ...\n"));
	assert_null(strstr(lines_of("container"), "SYS_ADMIN"));
	assert_non_null(strstr(lines_of("identity"), "of the container: --user 1000:1000\n"));
	/* only limits are missing: jails can be made */
	become_root();
	facts.has_all_ids = host.has_slot_ids = true;
	for (size_t i = 0; i < CM_DOCTOR_SECCOMP; i++)
		facts.probe.step[i] = 0;
	examine();
	assert_non_null(strstr(lines_of("container"),
			       "warn  container          podman: it keeps back what a jail needs\n"
			       "      fix: podman run --cgroupns=host -v"));
	assert_string_equal(summary.level, "no-cgroup");
	assert_string_equal(summary.best->name, "container");
}

static void test_kubernetes(void **state)
{
	(void)state;
	set(facts.container, "kubernetes");
	facts.has_filter = facts.is_proc_covered = true;
	fail_clone(EPERM, CM_DOCTOR_NS_USER);
	expect("container", "fail  container          kubernetes: it keeps back what a jail needs\n"
			    "      fix: in the pod's securityContext:\n"
			    "             seccompProfile: { type: Unconfined }\n"
			    "             procMount: Unmasked\n");
}

static void test_account(void **state)
{
	(void)state;
	host.subids = (struct cm_host_subids){ 0 };
	expect("subordinate-ids",
	       "warn  subordinate-ids    no range of 65536 for user 'alice' in /etc/subuid and "
	       "/etc/subgid: --user root cannot be had\n"
	       "      fix: sudo usermod --add-subuids 165536-231071 --add-subgids 165536-231071 "
	       "alice\n");
	/* `run` does not need it, so the summary is silent */
	assert_null(summary.best);
	facts.has_newuidmap = false;
	facts.is_debian = true;
	examine();
	assert_non_null(
		strstr(lines_of("subordinate-ids"), " alice && sudo apt-get install uidmap\n"));
	host.subids.uid_count = host.subids.gid_count = 65536;
	examine();
	assert_non_null(strstr(lines_of("subordinate-ids"), "'/usr/bin/newuidmap' is not there"));
	assert_int_equal(cm_strv_add(&facts.groups, "docker"), 0);
	assert_int_equal(cm_strv_add(&facts.groups, "bad\033[2J"), 0);
	/* a name from a file moves no cursor */
	expect("groups",
	       "warn  groups             a jail with a single id cannot drop these: docker, "
	       "bad\\x1b[2J; a workspace or volume that is open to one of them only is refused\n"
	       "      fix: sudo setpriv --reuid 1000 --regid 1000 --clear-groups casemate ...\n");
}

static void test_directories(void **state)
{
	struct cm_doctor_dir *dirs = facts.dirs;

	(void)state;
	dirs[CM_DOCTOR_DIR_STATE].free_bytes = 5 << 20;
	dirs[CM_DOCTOR_DIR_RUNTIME].is_writable = false;
	dirs[CM_DOCTOR_DIR_CACHE].is_present = false;
	dirs[CM_DOCTOR_DIR_ROOT].is_noexec = true;
	expect("state-directory",
	       "warn  state-directory    '/home/user/.local/state/casemate' has only 5.0 MiB free\n"
	       "      fix: free space on the file system of '/home/user/.local/state/casemate', or "
	       "use another by XDG_STATE_HOME\n");
	assert_string_equal(
		lines_of("runtime-directory"),
		"fail  runtime-directory  '/run/user/1000/casemate' cannot be written\n"
		"      fix: set XDG_RUNTIME_DIR to a directory of your own, or make this "
		"one yours: '/run/user/1000/casemate'\n");
	assert_string_equal(
		lines_of("cache-directory"),
		"ok    cache-directory    '/home/user/.cache/casemate' (made when it is "
		"needed), 8.0 GiB free\n");
	assert_non_null(strstr(lines_of("session-root"), "is on a noexec file system"));
	assert_false(summary.can_jail);
	(void)cm_error_set(&facts.store_err, CM_E_INVALID, 0, "no place for the session root");
	cm_error_hint(&facts.store_err, "set HOME to an absolute path");
	expect("directories", "fail  directories        no place for the session root\n"
			      "      fix: set HOME to an absolute path\n");
	assert_string_equal(lines_of("session-root"), "");
}

static void test_programs(void **state)
{
	(void)state;
	(void)cm_error_set(&facts.helpers[CM_DOCTOR_KEEPER].err, CM_E_NOT_FOUND, ENOENT,
			   "cannot find 'casemate-keeper'");
	expect("casemate-keeper",
	       "fail  casemate-keeper    cannot find 'casemate-keeper'\n"
	       "      fix: build or install 'casemate-keeper' beside '/usr/bin/casemate', or "
	       "install casemate again\n");
	assert_false(summary.can_jail);
	cm_error_clear(&facts.helpers[CM_DOCTOR_KEEPER].err);
	(void)cm_error_set(&facts.helpers[CM_DOCTOR_CHECKOUT].err, CM_E_DENIED, 0, "'x' could be");
	cm_error_hint(&facts.helpers[CM_DOCTOR_CHECKOUT].err, "make it yours");
	expect("casemate-checkout", "warn  casemate-checkout  'x' could be: --repo cannot be used\n"
				    "      fix: make it yours\n");
	(void)cm_error_set(&facts.helpers[CM_DOCTOR_SCOPE].err, CM_E_NOT_FOUND, ENOENT, "none");
	examine();
	assert_false(summary.can_jail);
	host.cgroup.needs_scope = false;
	examine();
	assert_true(summary.can_jail);
	assert_string_equal(lines_of("casemate-scope"), "");
	facts.git[0] = '\0';
	examine();
	assert_non_null(strstr(lines_of("git"), "fix: install git\n"));
	assert_int_equal(cm_strv_add(&facts.tools, "~/.nvm"), 0);
	assert_int_equal(cm_strv_add(&facts.tools, "~/.rustup"), 0);
	assert_int_equal(cm_strv_add(&facts.tool_notes, "'/t' of go is not shown"), 0);
	expect("tools", "ok    tools              shown read-only: ~/.nvm, ~/.rustup\n");
	assert_string_equal(lines_of("tools-left-out"),
			    "warn  tools-left-out     '/t' of go is not shown\n"
			    "      fix: chmod go-w what is yours of these\n");
}

/* A failure is told before any warning, whatever either would gain. */
static void test_best(void **state)
{
	(void)state;
	no_groups("no systemd user session");
	examine();
	assert_string_equal(summary.best->name, "cgroups");
	facts.dirs[CM_DOCTOR_DIR_RUNTIME].is_writable = false;
	examine();
	assert_string_equal(summary.best->name, "runtime-directory");
	/* as much, and earlier */
	facts.dirs[CM_DOCTOR_DIR_STATE].is_writable = false;
	examine();
	assert_string_equal(summary.best->name, "state-directory");
	/* more, and later */
	(void)cm_error_set(&facts.helpers[CM_DOCTOR_KEEPER].err, CM_E_NOT_FOUND, 0, "none");
	examine();
	assert_string_equal(summary.best->name, "casemate-keeper");
}

static void test_json(void **state)
{
	CM_AUTO_BUF struct cm_buf out = { 0 };

	(void)state;
	no_groups("no systemd user session");
	examine();
	cm_buf_init(&out, 65536);
	cm_doctor_print_json(&report, &summary, &out);
	assert_int_equal(cm_buf_status(&out), CM_OK);
	assert_non_null(strstr(out.data, "{\n  \"checks\": [\n    {\n      \"check\": \"kernel\",\n"
					 "      \"status\": \"ok\",\n      \"detail\": "
					 "\"Linux 6.12.1-generic on x86_64\",\n"
					 "      \"fix\": null\n    },\n"));
	assert_non_null(strstr(out.data, "      \"fix\": \"sudo loginctl enable-linger alice\"\n"));
	assert_non_null(strstr(out.data, "  \"summary\": {\n    \"canJail\": true,\n"
					 "    \"level\": \"no-cgroup-single-id\",\n"
					 "    \"check\": \"cgroups\",\n"
					 "    \"fix\": \"sudo loginctl enable-linger alice\"\n"
					 "  }\n}\n"));
	cm_buf_clear(&out);
	facts.probe.step[CM_DOCTOR_SECCOMP] = EINVAL;
	examine();
	cm_doctor_print_json(&report, &summary, &out);
	assert_non_null(strstr(out.data, "\"canJail\": false,\n    \"level\": null,\n"
					 "    \"check\": \"seccomp\",\n"));
}

static void test_mountinfo(void **state)
{
	static const char docker[] = "600 500 0:50 / / rw,relatime - overlay overlay rw\n"
				     "601 600 0:51 / /proc rw - proc proc rw\n"
				     "602 601 0:51 /bus /proc/bus ro - proc proc rw\n";
	static const char plain[] =
		"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
		"23 22 0:5 / /proc rw - proc proc rw\n"
		"24 23 0:30 / /proc/sys/fs/binfmt_misc rw - autofs systemd-1 rw\n"
		"25 22 0:31 / /processes rw - tmpfs tmpfs rw\n"
		"broken\n";

	(void)state;
	cm_doctor_read_mountinfo(docker, &facts);
	assert_true(facts.is_proc_covered);
	assert_false(facts.is_chroot);
	cm_doctor_read_mountinfo(plain, &facts);
	assert_false(facts.is_proc_covered);
	assert_false(facts.is_chroot);
	cm_doctor_read_mountinfo("25 22 0:31 / /srv rw - tmpfs tmpfs rw", &facts);
	assert_true(facts.is_chroot);
	cm_doctor_read_mountinfo("\n\n \n", &facts);
	assert_true(facts.is_chroot);
}

static void test_uid_map(void **state)
{
	(void)state;
	cm_doctor_read_uid_map("         0          0 4294967295\n", &facts);
	assert_true(facts.has_all_ids && facts.has_own_id);
	cm_doctor_read_uid_map("         0       1000          1\n", &facts);
	assert_true(!facts.has_all_ids && facts.has_own_id);
	cm_doctor_read_uid_map("", &facts);
	assert_true(!facts.has_all_ids && !facts.has_own_id);
}

static void test_next_subid(void **state)
{
	(void)state;
	assert_int_equal(cm_doctor_next_subid(NULL, 100000), 100000);
	assert_int_equal(cm_doctor_next_subid("a:100000:65536\nb:165536:65536\n", 100000), 231072);
	assert_int_equal(cm_doctor_next_subid("b:165536:65536\na:100000:65536", 100000), 231072);
	assert_int_equal(cm_doctor_next_subid("# x\n::\na:1\na:5:99999999999\n", 100000), 100000);
}

static void test_group_names(void **state)
{
	static const char group[] = "root:x:0:\ndocker:x:998:alice\nempty::997:\n:x:996:\nalice:x:"
				    "1000:\n";
	const gid_t groups[] = { 1000, 998, 997, 4242 };
	CM_AUTO_STRV struct cm_strv names = { 0 };

	(void)state;
	assert_int_equal(cm_doctor_group_names(group, groups, 4, 1000, &names), CM_OK);
	assert_int_equal(names.n, 3);
	assert_string_equal(names.v[0], "docker");
	assert_string_equal(names.v[1], "empty");
	assert_string_equal(names.v[2], "4242");
	cm_strv_clear(&names);
	assert_int_equal(cm_doctor_group_names(NULL, groups, 1, 0, &names), CM_OK);
	assert_string_equal(names.v[0], "1000");
}

/* Memory that runs out anywhere is reported, never a shorter list that looks complete. */
static void test_no_memory(void **state)
{
	size_t n_checks;
	long n = 0;

	(void)state;
	facts.apparmor_restrict = 1;
	facts.probe.step[CM_DOCTOR_LOOPBACK] = EPERM;
	assert_int_equal(cm_strv_add(&facts.groups, "docker"), 0);
	host.landlock_abi = 3;
	host.cgroup.controllers = CM_CG_MEMORY;
	examine();
	n_checks = report.n;
	for (;; n++) {
		bool has_failed;

		cm_doctor_report_clear(&report);
		cm_alloc_fail_after(n);
		cm_doctor_check(&facts, &report);
		has_failed = report.has_failed;
		cm_alloc_fail_after(-1);
		if (!has_failed)
			break;
		assert_true(n < 10000);
	}
	assert_int_equal(report.n, n_checks);
	assert_true(n > 20);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_good_user),
		TEST(test_good_root),
		TEST(test_kernel),
		TEST(test_identity),
		TEST(test_apparmor),
		TEST(test_settings),
		TEST(test_limits_of_namespaces),
		TEST(test_odd_probes),
		TEST(test_proc),
		TEST(test_overlay_and_idmap),
		TEST(test_landlock),
		TEST(test_no_cgroup),
		TEST(test_missing_controllers),
		TEST(test_docker_as_user),
		TEST(test_podman_as_root),
		TEST(test_kubernetes),
		TEST(test_account),
		TEST(test_directories),
		TEST(test_programs),
		TEST(test_best),
		TEST(test_json),
		TEST(test_mountinfo),
		TEST(test_uid_map),
		TEST(test_next_subid),
		TEST(test_group_names),
		TEST(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
