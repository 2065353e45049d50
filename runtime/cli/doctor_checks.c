/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From facts to checks: the kernel, namespaces and mounts. Pure.
 *
 * The probe decides what works; settings and the environment only name the cause, the most
 * specific first.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/fd.h"
#include "runtime/base/text.h"
#include "runtime/cli/doctor.h"

#define NEEDED_MAJOR 5
#define NEEDED_MINOR 15
/* how many namespaces an advice allows: what kernels choose for a machine with some memory */
#define ENOUGH_NAMESPACES 15000

/* Where the text goes beside the ABI; Linux 6.12 has all of it. */
#define LANDLOCK_COMPLETE 6

static bool is_refusal(int error)
{
	return error == EPERM || error == EACCES;
}

static void check_kernel(const struct cm_doctor_facts *facts, struct cm_doctor_report *report)
{
	const struct cm_host *host = facts->host;
	bool is_known =
		strcmp(facts->machine, "x86_64") == 0 || strcmp(facts->machine, "aarch64") == 0;

	if (host->kernel_major < NEEDED_MAJOR ||
	    (host->kernel_major == NEEDED_MAJOR && host->kernel_minor < NEEDED_MINOR)) {
		cm_doctor_add(report, "kernel", CM_DOCTOR_FAIL,
			      "Linux %s: %d.%d or newer is needed", facts->release, NEEDED_MAJOR,
			      NEEDED_MINOR);
		cm_doctor_fix(report, 95, "boot Linux %d.%d or newer", NEEDED_MAJOR, NEEDED_MINOR);
	} else if (!is_known) {
		cm_doctor_add(report, "kernel", CM_DOCTOR_FAIL,
			      "Linux %s on '%s': there are filters for x86_64 and aarch64 only",
			      facts->release, facts->machine);
		cm_doctor_fix(report, 100, "use a machine of one of these architectures");
	} else {
		cm_doctor_add(report, "kernel", CM_DOCTOR_OK, "Linux %s on %s", facts->release,
			      facts->machine);
	}
}

/* Who runs it decides whose ids a jail gets: the planner's rules, told beforehand. */
static void check_identity(const struct cm_doctor_facts *facts, struct cm_doctor_report *report)
{
	const struct cm_host *host = facts->host;

	if (host->is_root) {
		cm_doctor_add(report, "identity", CM_DOCTOR_OK,
			      "root: each session has %u ids of its own", CM_ID_SLOT_SIZE);
	} else if (host->uid == 0 && !host->has_slot_ids) {
		cm_doctor_add(report, "identity", CM_DOCTOR_FAIL,
			      "root of a user namespace that has no ids to give to sessions");
		cm_doctor_fix(report, 85, "run casemate as an ordinary user%s",
			      facts->container[0] ? " of the container: --user 1000:1000" : "");
	} else if (host->uid == 0) {
		cm_doctor_add(report, "identity", CM_DOCTOR_FAIL,
			      "root without CAP_SYS_ADMIN, CAP_SETUID and CAP_SETGID");
		cm_doctor_fix(report, 75,
			      "run casemate as an ordinary user, or give it these capabilities");
	} else if (host->gid == 0) {
		cm_doctor_add(report, "identity", CM_DOCTOR_FAIL,
			      "the primary group of user '%s' is root's, which no jail may have",
			      host->user_name);
		cm_doctor_fix(report, 75, "run casemate with another primary group");
	} else {
		cm_doctor_add(report, "identity", CM_DOCTOR_OK,
			      "user '%s': the agent has this one id (single-id)", host->user_name);
	}
}

static void sysctl_fix(struct cm_doctor_report *report, unsigned int rank, const char *setting)
{
	cm_doctor_fix(report, rank,
		      "echo %s | sudo tee -a /etc/sysctl.d/60-casemate.conf && "
		      "sudo sysctl --system",
		      setting);
}

/* A path as AppArmor's parser reads it: quoted, with its pattern letters inert. */
static void put_apparmor_path(struct cm_buf *out, const char *path)
{
	cm_buf_putc(out, '"');
	for (; *path; path++) {
		if (strchr("*?[]{}^\\\"", *path))
			cm_buf_putc(out, '\\');
		cm_buf_putc(out, *path);
	}
	cm_buf_putc(out, '"');
}

/* printf's arguments are the profile's lines, so the command can be pasted from any indentation. */
static void put_profile_line(struct cm_buf *out, const char *line)
{
	cm_buf_puts(out, " \\\n  ");
	cm_text_shell_quote(out, line);
}

static void put_profile(struct cm_buf *out, const char *name, const char *path)
{
	CM_AUTO_BUF struct cm_buf line = { 0 };

	cm_buf_init(&line, 4UL * PATH_MAX);
	cm_buf_printf(&line, "profile %s ", name);
	put_apparmor_path(&line, path);
	cm_buf_puts(&line, " flags=(unconfined) {");
	put_profile_line(out, line.data ? line.data : "");
	put_profile_line(out, "  userns,");
	put_profile_line(out, "}");
}

static void apparmor_fix(const struct cm_doctor_facts *facts, struct cm_doctor_report *report)
{
	static const char file[] = "/etc/apparmor.d/casemate";
	const struct cm_doctor_helper *keeper = &facts->helpers[CM_DOCTOR_KEEPER];
	CM_AUTO_BUF struct cm_buf text = { 0 };

	if (facts->container[0] != '\0' || facts->program[0] == '\0') {
		/* a profile goes by paths as the host sees them */
		cm_doctor_fix(report, 82,
			      "on the host: sudo sysctl -w "
			      "kernel.apparmor_restrict_unprivileged_userns=0");
		return;
	}
	cm_buf_init(&text, 32UL * PATH_MAX);
	cm_buf_puts(&text, "printf '%s\\n'");
	put_profile_line(&text, "abi <abi/4.0>,");
	put_profile_line(&text, "include <tunables/global>");
	put_profile(&text, "casemate", facts->program);
	if (keeper->err.code == CM_OK)
		put_profile(&text, "casemate-keeper", keeper->path);
	cm_buf_printf(&text, " |\n  sudo tee %s && sudo apparmor_parser -r %s", file, file);
	if (cm_buf_status(&text) == CM_OK)
		cm_doctor_fix(report, 82, "%s", text.data);
	else
		report->has_failed = true;
}

static bool is_apparmor_restricted(const struct cm_doctor_facts *facts)
{
	const char *label = facts->apparmor;

	return !facts->host->is_root && facts->apparmor_restrict > 0 &&
	       (label[0] == '\0' || strcmp(label, "unconfined") == 0);
}

static bool is_apparmor_confined(const struct cm_doctor_facts *facts)
{
	return facts->apparmor[0] != '\0' && strcmp(facts->apparmor, "unconfined") != 0;
}

/* Somebody refuses what the kernel would allow: who? */
static void explain_refusal(const struct cm_doctor_facts *facts, const char *what,
			    struct cm_doctor_report *report)
{
	static const char name[] = "namespaces";

	if (is_apparmor_restricted(facts)) {
		cm_doctor_add(
			report, name, CM_DOCTOR_FAIL,
			"%s: kernel.apparmor_restrict_unprivileged_userns is %d, and AppArmor "
			"has no profile for this program",
			what, (int)facts->apparmor_restrict);
		apparmor_fix(facts, report);
	} else if (facts->container[0] != '\0') {
		cm_doctor_add(report, name, CM_DOCTOR_FAIL,
			      "%s: the container that this runs in forbids it", what);
		cm_doctor_fix(report, 70, "start it with what the check 'container' names");
	} else if (is_apparmor_confined(facts)) {
		cm_doctor_add(report, name, CM_DOCTOR_FAIL,
			      "%s: AppArmor's profile '%s' confines this process", what,
			      facts->apparmor);
		cm_doctor_fix(report, 70, "run casemate outside of that profile");
	} else if (facts->has_filter) {
		cm_doctor_add(report, name, CM_DOCTOR_FAIL,
			      "%s: a system-call filter confines this process (a container's, or "
			      "of a systemd unit)",
			      what);
		cm_doctor_fix(report, 70,
			      "run casemate outside of it; in a unit: RestrictNamespaces=no and "
			      "SystemCallFilter= with clone3 and @mount");
	} else {
		cm_doctor_add(report, name, CM_DOCTOR_FAIL,
			      "%s: a security module refuses it (active: %s)", what,
			      facts->lsms[0] ? facts->lsms : "not known");
		cm_doctor_fix(report, 70,
			      "look for denials in the kernel's log: sudo dmesg, "
			      "sudo ausearch -m avc");
	}
}

static void explain_limit(const struct cm_doctor_facts *facts, enum cm_doctor_ns kind,
			  struct cm_doctor_report *report)
{
	const char *name = cm_doctor_ns_names[kind];
	int64_t max = facts->max_namespaces[kind];
	char setting[64];

	if (max == 0)
		cm_doctor_add(report, "namespaces", CM_DOCTOR_FAIL,
			      "%s namespaces cannot be made: user.max_%s_namespaces is 0", name,
			      name);
	else
		cm_doctor_add(
			report, "namespaces", CM_DOCTOR_FAIL,
			"%s namespaces cannot be made: the limit user.max_%s_namespaces (%lld "
			"here) is used up, or that of an outer user namespace, or they are "
			"nested 32 deep",
			name, name, (long long)max);
	(void)snprintf(setting, sizeof(setting), "user.max_%s_namespaces=%lld", name,
		       max >= ENOUGH_NAMESPACES ? (long long)max * 2 : ENOUGH_NAMESPACES);
	sysctl_fix(report, 70, setting);
}

static void explain_missing(enum cm_doctor_ns kind, struct cm_doctor_report *report)
{
	static const char *const options[CM_DOCTOR_NS_COUNT_] = {
		"USER_NS", "NAMESPACES", "PID_NS", "NET_NS", "IPC_NS", "UTS_NS", "TIME_NS",
	};

	cm_doctor_add(report, "namespaces", CM_DOCTOR_FAIL,
		      "this kernel was built without %s namespaces", cm_doctor_ns_names[kind]);
	cm_doctor_fix(report, 90, "boot a kernel with CONFIG_%s=y", options[kind]);
}

static void explain_forbidden_clone(const struct cm_doctor_facts *facts,
				    struct cm_doctor_report *report)
{
	static const char name[] = "namespaces";

	if (!facts->has_own_id) {
		cm_doctor_add(report, name, CM_DOCTOR_FAIL,
			      "user namespaces cannot be made: this process's own id is not mapped "
			      "in the user namespace that it is in");
		cm_doctor_fix(report, 70, "map it: unshare --user --map-current-user casemate ...");
	} else if (facts->is_chroot) {
		cm_doctor_add(report, name, CM_DOCTOR_FAIL,
			      "user namespaces cannot be made: this process is in a chroot");
		cm_doctor_fix(report, 70,
			      "enter the tree by pivot_root instead, as "
			      "systemd-nspawn and containers do");
	} else if (!facts->host->is_root && facts->userns_clone == 0) {
		cm_doctor_add(report, name, CM_DOCTOR_FAIL,
			      "user namespaces cannot be made: kernel.unprivileged_userns_clone is "
			      "0");
		sysctl_fix(report, 70, "kernel.unprivileged_userns_clone=1");
	} else {
		explain_refusal(facts, "user namespaces cannot be made", report);
	}
}

static void explain_clone(const struct cm_doctor_facts *facts, struct cm_doctor_report *report)
{
	int error = facts->probe.step[CM_DOCTOR_CLONE];
	enum cm_doctor_ns kind = CM_DOCTOR_NS_USER;

	/* the first that cannot be made alone; all can: a limit on their sum */
	while (kind < CM_DOCTOR_NS_TIME && facts->probe.ns[kind] == 0)
		kind++;
	if (facts->probe.ns[kind] > 0)
		error = facts->probe.ns[kind];
	if (error == ENOSPC || error == EUSERS) {
		explain_limit(facts, kind, report);
	} else if (error == EINVAL) {
		explain_missing(kind, report);
	} else if (is_refusal(error)) {
		explain_forbidden_clone(facts, report);
	} else if (error == ENOSYS) {
		explain_refusal(facts, "namespaces cannot be made (clone3 is refused)", report);
	} else {
		cm_doctor_add(report, "namespaces", CM_DOCTOR_FAIL,
			      "%s namespaces cannot be made: %s", cm_doctor_ns_names[kind],
			      strerror(error));
		cm_doctor_fix(report, 70,
			      error == EAGAIN ? "raise the limit of processes (ulimit -u)"
					      : "end processes, or free memory");
	}
}

/* The first step inside that was refused although the process has all capabilities there. */
static const char *find_stripped(const struct cm_doctor_probe *probe, int *ret_error)
{
	static const struct {
		enum cm_doctor_step step;
		const char *text;
	} steps[] = {
		{ CM_DOCTOR_MAP, "the id map cannot be written" },
		{ CM_DOCTOR_PROPAGATION, "mount propagation cannot be cut" },
		{ CM_DOCTOR_TMPFS, "a tmpfs cannot be mounted" },
		{ CM_DOCTOR_LOOPBACK, "the loopback interface cannot be brought up" },
		{ CM_DOCTOR_CGROUP_NS, "no cgroup namespace can be made" },
	};

	for (size_t i = 0; i < CM_ARRAY_SIZE(steps); i++) {
		*ret_error = probe->step[steps[i].step];
		if (is_refusal(*ret_error))
			return steps[i].text;
	}
	return NULL;
}

static void check_namespaces(const struct cm_doctor_facts *facts, struct cm_doctor_report *report)
{
	const struct cm_doctor_probe *probe = &facts->probe;
	const char *stripped;
	int error = 0;

	if (probe->step[CM_DOCTOR_CLONE] != 0) {
		explain_clone(facts, report);
		return;
	}
	stripped = find_stripped(probe, &error);
	if (stripped) {
		char what[160];

		(void)snprintf(what, sizeof(what),
			       "user namespaces are made without capabilities (%s: %s)", stripped,
			       strerror(error));
		explain_refusal(facts, what, report);
	} else if (probe->step[CM_DOCTOR_MAP] == ETIMEDOUT) {
		explain_refusal(facts,
				"a process in new namespaces was ended, or did not answer in time",
				report);
	} else if (probe->step[CM_DOCTOR_MAP] != 0) {
		cm_doctor_add(report, "namespaces", CM_DOCTOR_FAIL,
			      "user namespaces are made, but the id map cannot be written: %s",
			      strerror(probe->step[CM_DOCTOR_MAP]));
		cm_doctor_fix(report, 70,
			      "run casemate where /proc is writable, with an id that "
			      "its own user namespace maps");
	} else if (probe->step[CM_DOCTOR_LOOPBACK] != 0) {
		cm_doctor_add(report, "namespaces", CM_DOCTOR_FAIL,
			      "the loopback interface of a new network cannot be brought up: %s",
			      strerror(probe->step[CM_DOCTOR_LOOPBACK]));
		cm_doctor_fix(report, 70, "boot a kernel with CONFIG_INET=y");
	} else if (probe->step[CM_DOCTOR_CGROUP_NS] != 0) {
		cm_doctor_add(report, "namespaces", CM_DOCTOR_FAIL,
			      "cgroup namespaces cannot be made: %s",
			      strerror(probe->step[CM_DOCTOR_CGROUP_NS]));
		cm_doctor_fix(report, 70,
			      "boot a kernel with CONFIG_CGROUPS=y, and see "
			      "/proc/sys/user/max_cgroup_namespaces");
	} else {
		cm_doctor_add(report, "namespaces", CM_DOCTOR_OK,
			      "user, mnt, pid, net, ipc, uts, time and cgroup, with capabilities "
			      "inside");
	}
}

static void check_mounts(const struct cm_doctor_facts *facts, struct cm_doctor_report *report)
{
	static const struct {
		enum cm_doctor_step step;
		const char *text;
	} steps[] = {
		{ CM_DOCTOR_PROPAGATION, "cut mount propagation (mount_setattr)" },
		{ CM_DOCTOR_TMPFS, "mount a tmpfs (fsopen, fsmount, move_mount)" },
		{ CM_DOCTOR_BIND, "bind '/usr' (open_tree)" },
		{ CM_DOCTOR_PIVOT, "change the root (pivot_root)" },
	};
	const int *results = facts->probe.step;
	size_t n_tried = 0;

	for (size_t i = 0; i < CM_ARRAY_SIZE(steps); i++) {
		int error = results[steps[i].step];

		n_tried += error >= 0;
		/* refused for want of capabilities: said by the check before */
		if (error <= 0 || (is_refusal(error) && steps[i].step <= CM_DOCTOR_TMPFS))
			continue;
		cm_doctor_add(report, "mounts", CM_DOCTOR_FAIL, "cannot %s: %s", steps[i].text,
			      strerror(error));
		if (facts->container[0] != '\0')
			cm_doctor_fix(report, 65,
				      "start the container with what the check "
				      "'container' names");
		else if (error == ENOSYS || is_refusal(error))
			cm_doctor_fix(report, 65,
				      "a system-call filter or security module refuses it: run "
				      "casemate outside of it");
		else
			cm_doctor_fix(report, 65, "look at the kernel's log: sudo dmesg");
		return;
	}
	/* what was not tried is not said to work */
	if (n_tried == CM_ARRAY_SIZE(steps) && results[CM_DOCTOR_TMPFS] == 0)
		cm_doctor_add(report, "mounts", CM_DOCTOR_OK,
			      "tmpfs, bind and pivot_root by the new mount calls");
}

static void check_proc(const struct cm_doctor_facts *facts, struct cm_doctor_report *report)
{
	int error = facts->probe.step[CM_DOCTOR_PROC];

	if (error == 0) {
		cm_doctor_add(report, "proc", CM_DOCTOR_OK, "a fresh /proc can be mounted");
	} else if (error == EPERM && facts->is_proc_covered) {
		cm_doctor_add(report, "proc", CM_DOCTOR_FAIL,
			      "a fresh /proc cannot be mounted: parts of the present one are "
			      "covered, as containers and units do, and the kernel gives nobody "
			      "more than that");
		cm_doctor_fix(report, 68,
			      facts->container[0]
				      ? "start the container with what the check 'container' names"
				      : "run casemate outside of it; in a unit: without "
					"ProtectKernelTunables=, ProtectKernelLogs= and "
					"InaccessiblePaths= below /proc");
	} else if (error > 0) {
		cm_doctor_add(report, "proc", CM_DOCTOR_FAIL, "a fresh /proc cannot be mounted: %s",
			      strerror(error));
		cm_doctor_fix(report, 68,
			      facts->container[0]
				      ? "start the container with what the check 'container' names"
				      : "look at the kernel's log: sudo dmesg");
	}
}

static void check_overlay(const struct cm_doctor_facts *facts, struct cm_doctor_report *report)
{
	int error = facts->probe.step[CM_DOCTOR_OVERLAY];

	if (error == 0) {
		cm_doctor_add(report, "overlay", CM_DOCTOR_OK,
			      "overlays can be mounted in a user namespace");
	} else if (error > 0) {
		cm_doctor_add(report, "overlay", CM_DOCTOR_WARN,
			      "no overlay in a user namespace (%s): host sockets in mounted trees "
			      "cannot be hidden, and layered sessions cannot be had",
			      strerror(error));
		cm_doctor_fix(report, 25,
			      error == ENODEV
				      ? "sudo modprobe overlay"
				      : "boot a kernel with CONFIG_OVERLAY_FS, 5.11 or newer");
	}
}

static void check_idmap(const struct cm_doctor_facts *facts, struct cm_doctor_report *report)
{
	int error = facts->probe.step[CM_DOCTOR_IDMAP];
	const char *path = facts->dirs[CM_DOCTOR_DIR_ROOT].nearest;

	if (!facts->host->is_root || error == CM_DOCTOR_NOT_TRIED)
		return;
	if (!path)
		path = "/";
	if (error == 0) {
		cm_doctor_add(report, "idmapped-mounts", CM_DOCTOR_OK,
			      "the file system of '%s' has them", path);
		return;
	}
	cm_doctor_add(report, "idmapped-mounts", CM_DOCTOR_WARN,
		      "not on the file system of '%s' (%s): trees there that are not the session's "
		      "own cannot be a workspace or a volume",
		      path, strerror(error));
	cm_doctor_fix(report, 20,
		      "keep the session root on ext4, XFS, btrfs or tmpfs: --root DIR, or "
		      "CASEMATE_ROOT");
}

static void check_landlock(const struct cm_doctor_facts *facts, struct cm_doctor_report *report)
{
	/* by ABI: what the ones below it lack; 4 brought TCP ports, which the network decides */
	static const char *const lacks[LANDLOCK_COMPLETE + 1] = {
		[2] = "moves between directories are refused",
		[3] = "truncation is not covered",
		[5] = "device ioctls are not covered",
		[6] = "--network host is refused (abstract sockets are not scoped)",
	};
	unsigned int abi = facts->host->landlock_abi;
	CM_AUTO_BUF struct cm_buf text = { 0 };

	if (abi >= LANDLOCK_COMPLETE) {
		cm_doctor_add(report, "landlock", CM_DOCTOR_OK, "ABI %u", abi);
		return;
	}
	if (abi == 0) {
		bool is_off = facts->landlock_errno == EOPNOTSUPP;

		cm_doctor_add(report, "landlock", CM_DOCTOR_WARN,
			      "none (%s): the namespaces have no second wall behind them, and "
			      "--network host is refused",
			      is_off ? "switched off at boot" : "not in this kernel, or refused");
		if (is_off)
			cm_doctor_fix(
				report, 30,
				"add to the kernel's command line, and boot: lsm=landlock%s%s",
				facts->lsms[0] ? "," : "", facts->lsms);
		else
			cm_doctor_fix(report, 30, "boot a kernel with CONFIG_SECURITY_LANDLOCK=y");
		return;
	}
	cm_buf_init(&text, 1024);
	for (unsigned int i = abi + 1; i <= LANDLOCK_COMPLETE; i++) {
		if (lacks[i])
			cm_buf_printf(&text, "%s%s", text.len ? "; " : "", lacks[i]);
	}
	cm_doctor_add(report, "landlock", CM_DOCTOR_WARN, "ABI %u of %d: %s", abi,
		      LANDLOCK_COMPLETE, text.data ? text.data : "");
	cm_doctor_fix(report, 0, "boot Linux 6.12 or newer");
}

static void check_seccomp(const struct cm_doctor_facts *facts, struct cm_doctor_report *report)
{
	int error = facts->probe.step[CM_DOCTOR_SECCOMP];

	if (error == 0) {
		cm_doctor_add(report, "seccomp", CM_DOCTOR_OK, "filters can be loaded");
		return;
	}
	cm_doctor_add(report, "seccomp", CM_DOCTOR_FAIL, "no filter can be loaded: %s",
		      strerror(error > 0 ? error : EINVAL));
	cm_doctor_fix(report, 65,
		      "boot a kernel with CONFIG_SECCOMP_FILTER=y, outside of a "
		      "filter that refuses seccomp");
}

void cm_doctor_check(const struct cm_doctor_facts *facts, struct cm_doctor_report *report)
{
	check_kernel(facts, report);
	check_identity(facts, report);
	check_namespaces(facts, report);
	check_mounts(facts, report);
	check_proc(facts, report);
	check_overlay(facts, report);
	check_idmap(facts, report);
	check_landlock(facts, report);
	check_seccomp(facts, report);
	cm_doctor_check_cgroup(facts, report);
	cm_doctor_check_container(facts, report);
	cm_doctor_check_user(facts, report);
	cm_doctor_check_files(facts, report);
}
