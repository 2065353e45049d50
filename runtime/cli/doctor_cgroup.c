/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of what enforces limits, and of the container around us. Pure. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/fd.h"
#include "runtime/base/text.h"
#include "runtime/cli/doctor.h"

static const struct {
	const char *option;
	uint32_t bit;
} limits[] = {
	{ "--memory", CM_CG_MEMORY }, { "--swap", CM_CG_MEMORY },   { "--pids-limit", CM_CG_PIDS },
	{ "--cpus", CM_CG_CPU },      { "--cpuset", CM_CG_CPUSET },
};

/* "--memory, --cpus" for those whose controller is in `bits`; "" for none. */
static void put_limits(struct cm_buf *out, uint32_t bits)
{
	const char *separator = "";

	for (size_t i = 0; i < CM_ARRAY_SIZE(limits); i++) {
		if ((limits[i].bit & bits) == 0)
			continue;
		cm_buf_printf(out, "%s%s", separator, limits[i].option);
		separator = ", ";
	}
}

static bool is_users_manager(const struct cm_doctor_facts *facts)
{
	const struct cm_host_cgroup *cg = &facts->host->cgroup;

	return cg->kind == CM_CGROUP_V2 && !facts->host->is_root &&
	       (cg->needs_scope || strstr(cg->v2_base, "/user@") != NULL);
}

static void delegate_fix(const struct cm_doctor_facts *facts, unsigned int rank,
			 struct cm_doctor_report *report)
{
	static const char dir[] = "/etc/systemd/system/user@.service.d";

	cm_doctor_fix(report, rank,
		      "sudo mkdir -p %s &&\n"
		      "  printf '%%s\\n' '[Service]' 'Delegate=cpu cpuset io memory pids' |\n"
		      "  sudo tee %s/delegate.conf && sudo systemctl daemon-reload &&\n"
		      "  sudo systemctl restart user@%u.service   # ends this user's sessions",
		      dir, dir, (unsigned int)facts->host->uid);
}

static void none_fix(const struct cm_doctor_facts *facts, struct cm_doctor_report *report)
{
	const struct cm_host *host = facts->host;
	/* v1 hierarchies are handed to nobody */
	bool is_v1 = strstr(host->cgroup.reason, "(v1)") != NULL;

	if (facts->container[0] != '\0')
		cm_doctor_fix(report, 50,
			      host->uid == 0
				      ? "start the container with what the check 'container' names"
				      : "run casemate as root of the container, with what the "
					"check 'container' names then");
	else if (host->uid == 0)
		cm_doctor_fix(report, 50, "sudo mount -t cgroup2 none /sys/fs/cgroup");
	else if (is_v1 && facts->has_systemd)
		cm_doctor_fix(report, 50,
			      "add to the kernel's command line, and boot: "
			      "systemd.unified_cgroup_hierarchy=1");
	else if (is_v1 || !facts->has_systemd)
		cm_doctor_fix(report, 50,
			      "run casemate as root, or from a v2 control group that belongs to "
			      "this user, with its parent");
	else if (facts->has_linger)
		cm_doctor_fix(report, 50, "sudo systemctl start user@%u.service",
			      (unsigned int)host->uid);
	else
		cm_doctor_fix(report, 50, "sudo loginctl enable-linger %s", host->user_name);
}

static void missing_fix(const struct cm_doctor_facts *facts, uint32_t missing,
			struct cm_doctor_report *report)
{
	const struct cm_host *host = facts->host;
	unsigned int rank = (missing & CM_CG_FULL) != 0 ? 50 : 40;

	if (is_users_manager(facts))
		delegate_fix(facts, rank, report);
	else if (facts->container[0] != '\0')
		cm_doctor_fix(report, rank, "the container's own group has to be given them");
	else if (host->cgroup.kind == CM_CGROUP_V1)
		cm_doctor_fix(report, rank,
			      "mount these hierarchies, for example: sudo mount -t cgroup -o pids "
			      "cgroup /sys/fs/cgroup/pids");
	else
		cm_doctor_fix(report, rank,
			      "give the controllers to this group (cgroup.subtree_control above "
			      "it); as kernel parameters: cgroup_enable=memory, "
			      "systemd.unified_cgroup_hierarchy=1");
}

static void put_place(struct cm_buf *out, const struct cm_host_cgroup *cg)
{
	if (cg->kind == CM_CGROUP_V1)
		cm_buf_puts(out, "v1");
	else if (cg->needs_scope)
		cm_buf_puts(out, "v2, a scope of systemd's user manager for each session");
	else
		cm_buf_printf(out, "v2 below '%s'", cg->v2_base);
}

static void check_none(const struct cm_doctor_facts *facts, struct cm_doctor_report *report)
{
	const char *cause = facts->host->cgroup.reason;

	cm_doctor_add(report, "cgroups", CM_DOCTOR_WARN,
		      "none (%s): a fork bomb or memory eater in a jail is not bounded, and "
		      "--memory, --pids-limit, --cpus and --cpuset are refused unless written "
		      "with '?'",
		      cause[0] ? cause : "not mounted");
	none_fix(facts, report);
}

void cm_doctor_check_cgroup(const struct cm_doctor_facts *facts, struct cm_doctor_report *report)
{
	const struct cm_host_cgroup *cg = &facts->host->cgroup;
	const uint32_t all = CM_CG_LIMITING;
	uint32_t missing = all & ~cg->controllers;
	CM_AUTO_BUF struct cm_buf text = { 0 };

	if (cg->kind == CM_CGROUP_NONE) {
		check_none(facts, report);
		return;
	}
	cm_buf_init(&text, 4096 + PATH_MAX);
	put_place(&text, cg);
	if ((all & cg->controllers) != 0) {
		cm_buf_puts(&text, ": ");
		put_limits(&text, cg->controllers);
		cm_buf_puts(&text, " can be enforced");
	}
	if (missing != 0) {
		cm_buf_puts(&text, "; not ");
		put_limits(&text, missing);
		if (cg->reason[0] != '\0')
			cm_buf_printf(&text, " (%s)", cg->reason);
	}
	if (cm_buf_status(&text) != CM_OK) {
		report->has_failed = true;
		return;
	}
	/* cpuset alone is not worth a warning: nothing is unbounded without it */
	cm_doctor_add(report, "cgroups",
		      (missing & ~CM_CG_CPUSET) != 0 ? CM_DOCTOR_WARN : CM_DOCTOR_OK, "%s",
		      text.data);
	if ((missing & ~CM_CG_CPUSET) != 0)
		missing_fix(facts, missing, report);
}

/* What the container has to be given, and for what. */
#define GIVE_SECCOMP (1U << 0)
#define GIVE_APPARMOR (1U << 1)
#define GIVE_PROC (1U << 2)
#define GIVE_ADMIN (1U << 3)
#define GIVE_CGROUP (1U << 4)

static const struct {
	unsigned int bit;
	const char *docker;
	const char *podman;
	const char *purpose;
} gifts[] = {
	{ GIVE_SECCOMP, "--security-opt seccomp=unconfined", "--security-opt seccomp=unconfined",
	  "clone3 and mount, which its filter refuses" },
	{ GIVE_APPARMOR, "--security-opt apparmor=unconfined", "--security-opt apparmor=unconfined",
	  "mounts in a jail, which its profile refuses" },
	{ GIVE_PROC, "--security-opt systempaths=unconfined", "--security-opt unmask=ALL",
	  "a fresh /proc, which its covered one forbids" },
	{ GIVE_ADMIN, "--cap-add SYS_ADMIN", "--cap-add SYS_ADMIN",
	  "ids and mounts of root's sessions" },
	{ GIVE_CGROUP, "--cgroupns=host -v /sys/fs/cgroup:/sys/fs/cgroup:rw",
	  "--cgroupns=host -v /sys/fs/cgroup:/sys/fs/cgroup:rw", "control groups for limits" },
};

static bool is_confined(const struct cm_doctor_facts *facts)
{
	return facts->apparmor[0] != '\0' && strcmp(facts->apparmor, "unconfined") != 0;
}

/* Steps that were not tried are judged by what is seen from outside. */
static unsigned int find_gifts(const struct cm_doctor_facts *facts)
{
	static const enum cm_doctor_step steps[] = {
		CM_DOCTOR_CLONE, CM_DOCTOR_MAP,	  CM_DOCTOR_PROPAGATION, CM_DOCTOR_TMPFS,
		CM_DOCTOR_BIND,	 CM_DOCTOR_PIVOT, CM_DOCTOR_LOOPBACK,	 CM_DOCTOR_CGROUP_NS,
	};
	const struct cm_host *host = facts->host;
	const int *results = facts->probe.step;
	bool is_refused = false;
	unsigned int give = 0;

	for (size_t i = 0; i < CM_ARRAY_SIZE(steps); i++) {
		int error = results[steps[i]];

		is_refused = is_refused || error == EPERM || error == EACCES || error == ENOSYS;
	}
	if (is_refused && facts->has_filter)
		give |= GIVE_SECCOMP;
	if (is_refused && is_confined(facts))
		give |= GIVE_APPARMOR;
	if (results[CM_DOCTOR_PROC] == EPERM ||
	    (results[CM_DOCTOR_PROC] == CM_DOCTOR_NOT_TRIED && facts->is_proc_covered))
		give |= GIVE_PROC;
	if (host->uid == 0 && !host->is_root && host->has_slot_ids)
		give |= GIVE_ADMIN;
	if (host->uid == 0 && facts->has_all_ids && host->cgroup.kind == CM_CGROUP_NONE)
		give |= GIVE_CGROUP;
	return give;
}

static void put_gifts(struct cm_buf *out, unsigned int give, bool is_podman)
{
	cm_buf_puts(out, is_podman ? "podman run" : "docker run");
	for (size_t i = 0; i < CM_ARRAY_SIZE(gifts); i++) {
		if ((gifts[i].bit & give) != 0)
			cm_buf_printf(out, " %s", is_podman ? gifts[i].podman : gifts[i].docker);
	}
	cm_buf_puts(out, " ...");
	for (size_t i = 0; i < CM_ARRAY_SIZE(gifts); i++) {
		if ((gifts[i].bit & give) != 0)
			cm_buf_printf(out, "\n  # %s: %s",
				      is_podman ? gifts[i].podman : gifts[i].docker,
				      gifts[i].purpose);
	}
}

static void put_pod(struct cm_buf *out, unsigned int give)
{
	cm_buf_puts(out, "in the pod's securityContext:");
	if ((give & GIVE_SECCOMP) != 0)
		cm_buf_puts(out, "\n  seccompProfile: { type: Unconfined }");
	if ((give & GIVE_APPARMOR) != 0)
		cm_buf_puts(out, "\n  appArmorProfile: { type: Unconfined }");
	if ((give & GIVE_PROC) != 0)
		cm_buf_puts(out, "\n  procMount: Unmasked");
	if ((give & (GIVE_ADMIN | GIVE_CGROUP)) != 0)
		cm_buf_puts(out, "\n  runAsUser: 1000   # or privileged: true, for root's "
				 "sessions with limits");
}

void cm_doctor_check_container(const struct cm_doctor_facts *facts, struct cm_doctor_report *report)
{
	CM_AUTO_BUF struct cm_buf text = { 0 };
	unsigned int give = find_gifts(facts);
	enum cm_doctor_status status = CM_DOCTOR_FAIL;

	if (facts->container[0] == '\0')
		return;
	if (give == 0) {
		cm_doctor_add(report, "container", CM_DOCTOR_OK,
			      "%s: it lets a jail have what it needs", facts->container);
		return;
	}
	/* limits are all that is missing */
	if (give == GIVE_CGROUP)
		status = CM_DOCTOR_WARN;
	cm_doctor_add(report, "container", status, "%s: it keeps back what a jail needs",
		      facts->container);
	cm_buf_init(&text, 8192);
	if (strcmp(facts->container, "kubernetes") == 0)
		put_pod(&text, give);
	else
		put_gifts(&text, give, strcmp(facts->container, "podman") == 0);
	if (cm_buf_status(&text) == CM_OK)
		cm_doctor_fix(report, 80, "%s", text.data);
	else
		report->has_failed = true;
}
