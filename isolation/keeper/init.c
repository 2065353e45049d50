/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pid 1 inside, until the jail stands: the stages of building and hardening.
 *
 * The order is the table at the end; each place in it has its reason. A stage that fails is
 * reported to the keeper and ends everything: the payload has not started.
 */
#include "isolation/keeper/init.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "isolation/keeper/handover.h"
#include "isolation/keeper/proto.h"
#include "isolation/keeper/serve.h"
#include "isolation/mech/caps.h"
#include "isolation/mech/landlock.h"
#include "isolation/mech/ns.h"
#include "isolation/mech/rlimit.h"
#include "isolation/mech/seccomp.h"
#include "runtime/base/fd.h"
#include "runtime/base/kernel.h"

/* Where the keeper's socket and, while building, the sources are. */
#define SOCK_FD 3

static int stage_settle(struct cm_init *init, struct cm_error *err)
{
	(void)init;
	return cm_ns_settle(err);
}

static int stage_loopback(struct cm_init *init, struct cm_error *err)
{
	if (!init->has_own_network || init->is_loopback_up)
		return CM_OK;
	init->is_loopback_up = true;
	return cm_ns_loopback_up(err);
}

/* An ordinary user's; root's come from the keeper: the jail's own root has no rights on the host's
 * paths. */
static int open_sources(struct cm_init *init, const struct cm_plan *plan, struct cm_error *err)
{
	return plan->header->idmap == CM_IDMAP_SLOT
		       ? CM_OK
		       : cm_mount_sources_open(plan, &init->sources, err);
}

/* While the client still makes the plan: what the part of it that is known takes longest with. */
static int prepare(const struct cm_plan *plan, void *data, struct cm_error *err)
{
	struct cm_init *init = data;
	int r = open_sources(init, plan, err);

	/* the other sources need the user's rights, which go when the builder is another id */
	if (r < 0 || plan->header->idmap == CM_IDMAP_SUBIDS)
		return r;
	r = cm_ns_become_builder(plan, err);
	(void)umask(0);
	if (r == CM_OK)
		r = cm_mounts_prepare(plan, &init->sources, err);
	(void)umask(022);
	/* not earlier: a worker of the kernel's tells of it on this processor, at once, and this process
	 * is about to wait */
	return r < 0 ? r : stage_loopback(init, err);
}

/* The maps are written by the keeper; before that this process has no id it could use. */
static int stage_maps(struct cm_init *init, struct cm_error *err)
{
	return cm_handover_wait(init->sock, prepare, init, &init->plan, init->tasks_fd, err);
}

static int stage_sources(struct cm_init *init, struct cm_error *err)
{
	return open_sources(init, &init->plan, err);
}

static int stage_cgroup(struct cm_init *init, struct cm_error *err)
{
	for (size_t i = 0; i < CM_CG_N; i++) {
		/* "0" is the writer; a pid would wait for an RCU grace period. The opener's rights
		 * count, and the keeper opened it. */
		if (init->tasks_fd[i] >= 0 && write(init->tasks_fd[i], "0", 1) != 1)
			return cm_error_set(err, CM_E_ISOLATION, errno,
					    "cannot join the session's control group");
		cm_fd_close(&init->tasks_fd[i]);
	}
	/* only now, so that the namespace's root is the session's group and nothing above it */
	if (unshare(CLONE_NEWCGROUP) < 0)
		return cm_error_set(err, CM_E_ISOLATION, errno, "cannot make a cgroup namespace");
	return CM_OK;
}

static int stage_builder(struct cm_init *init, struct cm_error *err)
{
	return cm_ns_become_builder(&init->plan, err);
}

static int stage_mounts(struct cm_init *init, struct cm_error *err)
{
	int r = CM_OK;

	if (init->plan.header->idmap == CM_IDMAP_SLOT)
		r = cm_handover_recv_sources(init->sock, &init->sources, init->plan.header->n_ops,
					     err);
	(void)umask(0);
	if (r == CM_OK)
		r = cm_mounts_build(&init->plan, &init->sources, err);
	(void)umask(022);
	/* what is still open goes with the other descriptors */
	return r;
}

static int stage_hostname(struct cm_init *init, struct cm_error *err)
{
	return cm_ns_set_hostname(&init->plan, err);
}

/* The jail's own /dev/null, and nothing of the host but the socket. */
static int stage_descriptors(struct cm_init *init, struct cm_error *err)
{
	int null_fd;

	if (dup2(init->sock, SOCK_FD) < 0)
		return cm_error_set(err, CM_E_ISOLATION, errno, "cannot place the keeper's socket");
	init->sock = SOCK_FD;
	if (fcntl(SOCK_FD, F_SETFD, FD_CLOEXEC) < 0 || cm_sys_close_range(SOCK_FD + 1, ~0U, 0) < 0)
		return cm_error_set(err, CM_E_ISOLATION, errno, "cannot close descriptors");
	null_fd = cm_open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null_fd < 0 || dup2(null_fd, 0) < 0 || dup2(null_fd, 1) < 0 || dup2(null_fd, 2) < 0)
		return cm_error_set(err, CM_E_ISOLATION, errno, "cannot open '/dev/null' inside");
	cm_fd_close(&null_fd);
	return CM_OK;
}

static int stage_rlimits(struct cm_init *init, struct cm_error *err)
{
	return cm_rlimits_set(&init->plan, err);
}

static int stage_no_new_privs(struct cm_init *init, struct cm_error *err)
{
	(void)init;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return cm_error_set(err, CM_E_ISOLATION, errno, "cannot set no_new_privs");
	return CM_OK;
}

static int stage_landlock(struct cm_init *init, struct cm_error *err)
{
	return cm_landlock_enter(&init->plan, err);
}

static int stage_bounding(struct cm_init *init, struct cm_error *err)
{
	return cm_caps_bound(&init->plan, err);
}

static int stage_identity(struct cm_init *init, struct cm_error *err)
{
	return cm_ns_become_init(&init->plan, err);
}

static int stage_caps(struct cm_init *init, struct cm_error *err)
{
	return cm_caps_keep(cm_caps_of_init(&init->plan), err);
}

static int stage_dumpable(struct cm_init *init, struct cm_error *err)
{
	(void)init;
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return cm_error_set(err, CM_E_ISOLATION, errno, "cannot become non-dumpable");
	return CM_OK;
}

static int stage_parent_death(struct cm_init *init, struct cm_error *err)
{
	int signal = 0;

	(void)init;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 ||
	    prctl(PR_GET_PDEATHSIG, &signal, 0, 0, 0) < 0)
		return cm_error_set(err, CM_E_ISOLATION, errno, "cannot be bound to the keeper");
	if (signal != SIGKILL)
		return cm_error_set(err, CM_E_ISOLATION, 0, "not bound to the keeper");
	return CM_OK;
}

/*
 * What of the commands' filter holds for init as well. For its own good, and because it is done once; a
 * temporary session has one command, which would pay for both.
 */
static int stage_filter(struct cm_init *init, struct cm_error *err)
{
	const struct cm_plan_header *h = init->plan.header;
	int r;

	if (!cm_serve_is_filtered(h))
		return CM_OK;
	r = cm_seccomp_load(
		cm_seccomp_profile_get((enum cm_plan_seccomp)h->seccomp, CM_SECCOMP_OF_INIT));
	return r < 0 ? cm_error_set(err, CM_E_ISOLATION, -r,
				    "cannot load init's system-call filter")
		     : CM_OK;
}

/* What the stages promise, looked at once more from where the payload will stand. */
static int stage_verify(struct cm_init *init, struct cm_error *err)
{
	char cwd[16];
	struct stat dot;
	struct stat root;

	(void)init;
	/* getcwd gives "(unreachable)..." for a directory outside the root */
	if (!getcwd(cwd, sizeof(cwd)) || strcmp(cwd, "/") != 0)
		return cm_error_set(err, CM_E_ISOLATION, errno,
				    "the working directory is outside the jail");
	if (stat(".", &dot) < 0 || stat("/", &root) < 0 || dot.st_ino != root.st_ino ||
	    dot.st_dev != root.st_dev)
		return cm_error_set(err, CM_E_ISOLATION, errno, "the root is not the jail's");
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		return cm_error_set(err, CM_E_ISOLATION, 0, "no_new_privs is not set");
	return CM_OK;
}

static const struct {
	const char *name;
	int (*run)(struct cm_init *init, struct cm_error *err);
} stages[] = {
	/* all that can be done before the plan is there */
	{ "propagation", stage_settle },
	{ "id maps and preparation", stage_maps },
	{ "loopback", stage_loopback },
	/* an ordinary user's rights on the host's paths, before they are exchanged for root
	 * inside */
	{ "mount sources", stage_sources },
	/* before the mounts: the group's file system is mounted from the namespace */
	{ "control group", stage_cgroup },
	{ "builder", stage_builder },
	{ "mounts", stage_mounts },
	{ "host name", stage_hostname },
	/* the tree has its /dev now; from here on no descriptor leads to the host */
	{ "descriptors", stage_descriptors },
	{ "resource limits", stage_rlimits },
	/* Landlock asks for it */
	{ "no_new_privs", stage_no_new_privs },
	/* mount() is refused from here on */
	{ "landlock", stage_landlock },
	/* needs CAP_SETPCAP, which goes below */
	{ "bounding set", stage_bounding },
	/* the last change of ids: it clears the parent-death signal and resets dumpable */
	{ "identity", stage_identity },
	{ "capabilities", stage_caps },
	{ "dumpable", stage_dumpable },
	{ "parent death", stage_parent_death },
	{ "system calls", stage_filter },
	{ "verification", stage_verify },
};

_Noreturn void cm_init_main(int sock, bool has_own_network)
{
	static struct cm_init state;
	struct cm_init *init = &state;
	struct cm_error err = CM_ERROR_INIT;

	init->sock = sock;
	init->has_own_network = has_own_network;
	cm_mount_sources_init(&init->sources);

	for (size_t i = 0; i < CM_ARRAY_SIZE(stages); i++) {
		if (stages[i].run(init, &err) == CM_OK)
			continue;
		(void)cm_error_wrap(&err, "isolation stage '%s'", stages[i].name);
		(void)cm_proto_send_error(init->sock, CM_REC_FAILED, 0, &err);
		_exit(125);
	}
	cm_init_serve(&init->plan, init->sock);
}
