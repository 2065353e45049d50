/* SPDX-License-Identifier: Apache-2.0 */
/* Namespaces and id maps. */
#include "isolation/mech/ns.h"

#include <asm/unistd.h>
#include <errno.h>
#include <grp.h>
#include <linux/sched.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "runtime/base/fd.h"
#include "runtime/base/kernel.h"
#include "runtime/base/raw_clone.h"
#include "runtime/base/raw_syscall.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif
#ifndef CLONE_INTO_CGROUP
#define CLONE_INTO_CGROUP 0x200000000ULL
#endif

static void explain_clone(struct cm_error *err, int error)
{
	switch (error) {
	case EPERM:
	case EACCES:
		cm_error_hint(err, "this host forbids user namespaces to this program: "
				   "'casemate doctor' names the setting");
		break;
	case ENOSPC:
	case EUSERS:
		cm_error_hint(err, "too many namespaces: see /proc/sys/user/max_user_namespaces");
		break;
	case ENOSYS:
		cm_error_hint(err, "Linux 5.15 or newer is needed");
		break;
	default:
		break;
	}
}

pid_t cm_ns_clone_init(bool has_own_network, int cgroup_fd, int *ret_pidfd, struct cm_error *err)
{
	int pidfd = -1;
	struct cm_clone3_args args = {
		.flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |
			 CLONE_NEWTIME | CLONE_PIDFD,
		.pidfd = (uint64_t)(uintptr_t)&pidfd,
		.exit_signal = SIGCHLD,
	};
	long pid;

	if (has_own_network)
		args.flags |= CLONE_NEWNET;
	if (cgroup_fd >= 0) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)cgroup_fd;
	}
	/* a plain fork as far as memory goes, so libc's state in the child is a copy of this
	 * single-threaded program's */
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid < 0) {
		int error = errno;

		cm_error_set(err, CM_E_ISOLATION, error, "cannot make the namespaces");
		explain_clone(err, error);
		return CM_E_ISOLATION;
	}
	if (pid > 0)
		*ret_pidfd = pidfd;
	return (pid_t)pid;
}

static int write_proc(pid_t pid, const char *file, const char *text, struct cm_error *err)
{
	char path[64];
	int r;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	r = cm_write_file_at(AT_FDCWD, path, text);
	if (r < 0)
		return cm_error_set(err, CM_E_ISOLATION, -r, "cannot write the jail's %s", file);
	return CM_OK;
}

#define MAP_TOOL_MAX_ARGS (3 * CM_PLAN_MAX_ID_RANGES)

/* "newuidmap PID 0 100000 1000 1000 1000 1 ...": set-id programs that check /etc/subuid. */
static int start_map_tool(const char *tool, pid_t pid, const char *numbers, pid_t *ret_pid,
			  struct cm_error *err)
{
	char words[512];
	char pid_text[16];
	char *argv[MAP_TOOL_MAX_ARGS + 3];
	char *env[] = { NULL };
	char *save = NULL;
	size_t n = 0;
	int r;

	(void)snprintf(pid_text, sizeof(pid_text), "%d", (int)pid);
	if ((size_t)snprintf(words, sizeof(words), "%s", numbers) >= sizeof(words))
		return cm_error_set(err, CM_E_PROTOCOL, 0, "malformed plan: id map too long");
	argv[n++] = (char *)(uintptr_t)tool;
	argv[n++] = pid_text;
	for (char *word = strtok_r(words, " ", &save); word && n < MAP_TOOL_MAX_ARGS + 2;
	     word = strtok_r(NULL, " ", &save))
		argv[n++] = word;
	argv[n] = NULL;
	r = posix_spawn(ret_pid, tool, NULL, NULL, argv, env);
	if (r != 0) {
		cm_error_set(err, CM_E_LEVEL, r, "cannot run '%s'", tool);
		cm_error_hint(err, "install the package that has it (Debian: uidmap)");
		return CM_E_LEVEL;
	}
	return CM_OK;
}

static int finish_map_tool(const char *tool, pid_t pid, struct cm_error *err)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return cm_error_set(err, CM_E_SYS, errno, "cannot wait for '%s'", tool);
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return CM_OK;
	cm_error_set(err, CM_E_LEVEL, 0, "'%s' refused the map of ids", tool);
	cm_error_hint(err, "the ranges of this user are in /etc/subuid and /etc/subgid");
	return CM_E_LEVEL;
}

static int write_maps_by_tool(const struct cm_plan *plan, pid_t init, struct cm_error *err)
{
	static const char uid_tool[] = "/usr/bin/newuidmap";
	static const char gid_tool[] = "/usr/bin/newgidmap";
	pid_t uid_pid = -1;
	pid_t gid_pid = -1;
	int r;
	int r2 = CM_OK;

	r = start_map_tool(uid_tool, init, cm_plan_str(plan, plan->header->newuidmap_args),
			   &uid_pid, err);
	if (r < 0)
		return r;
	/* both at once: each costs as much as a whole start of a jail */
	r = start_map_tool(gid_tool, init, cm_plan_str(plan, plan->header->newgidmap_args),
			   &gid_pid, err);
	if (r == CM_OK)
		r = finish_map_tool(gid_tool, gid_pid, err);
	r2 = finish_map_tool(uid_tool, uid_pid, r == CM_OK ? err : NULL);
	return r < 0 ? r : r2;
}

int cm_ns_write_maps(const struct cm_plan *plan, pid_t init, struct cm_error *err)
{
	const struct cm_plan_header *h = plan->header;
	char uid_map[64];
	char gid_map[64];
	int r;

	switch (h->idmap) {
	case CM_IDMAP_SUBIDS:
		return write_maps_by_tool(plan, init, err);
	case CM_IDMAP_SLOT:
		(void)snprintf(uid_map, sizeof(uid_map), "0 %u %u", h->uid_base, CM_ID_SLOT_SIZE);
		(void)snprintf(gid_map, sizeof(gid_map), "0 %u %u", h->gid_base, CM_ID_SLOT_SIZE);
		break;
	default:
		(void)snprintf(uid_map, sizeof(uid_map), "%u %u 1", CM_ID_AGENT, h->uid_base);
		(void)snprintf(gid_map, sizeof(gid_map), "%u %u 1", CM_ID_AGENT, h->gid_base);
		/* the kernel asks for it before an unprivileged gid_map (user_namespaces(7)) */
		r = write_proc(init, "setgroups", "deny", err);
		if (r < 0)
			return r;
		break;
	}
	r = write_proc(init, "uid_map", uid_map, err);
	if (r < 0)
		return r;
	return write_proc(init, "gid_map", gid_map, err);
}

static int become(uid_t uid, gid_t gid, struct cm_error *err)
{
	if (setgroups(0, NULL) < 0)
		return cm_error_set(err, CM_E_ISOLATION, errno, "cannot drop supplementary groups");
	if (setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
		return cm_error_set(err, CM_E_ISOLATION, errno, "cannot change to id %u inside",
				    uid);
	return CM_OK;
}

int cm_ns_become_builder(const struct cm_plan *plan, struct cm_error *err)
{
	/* the one id of a single-id map is the caller's already; its groups cannot be dropped */
	if (plan->header->idmap == CM_IDMAP_SINGLE)
		return CM_OK;
	return become(0, 0, err);
}

int cm_ns_become_init(const struct cm_plan *plan, struct cm_error *err)
{
	int r;

	if (plan->header->idmap == CM_IDMAP_SINGLE)
		return CM_OK;
	/* leaving uid 0 clears the permitted set unless it is kept for this one step */
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0)
		return cm_error_set(err, CM_E_ISOLATION, errno, "cannot keep capabilities");
	r = become(CM_ID_INIT, CM_ID_INIT, err);
	if (r < 0)
		return r;
	if (prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) < 0)
		return cm_error_set(err, CM_E_ISOLATION, errno, "cannot stop keeping capabilities");
	return CM_OK;
}

int cm_ns_loopback_up(struct cm_error *err)
{
	CM_AUTO_FD int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = { .ifr_name = "lo" };

	if (sock < 0)
		return cm_error_set(err, CM_E_ISOLATION, errno, "cannot open a socket");
	request.ifr_flags = IFF_UP | IFF_RUNNING;
	if (ioctl(sock, SIOCSIFFLAGS, &request) < 0)
		return cm_error_set(err, CM_E_ISOLATION, errno,
				    "cannot bring the loopback interface up");
	return CM_OK;
}

int cm_ns_settle(struct cm_error *err)
{
	struct mount_attr private = { .propagation = MS_PRIVATE };

	/* before anything is mounted: no event may reach the host's namespace, or come from it */
	if (cm_sys_mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &private) < 0)
		return cm_error_set(err, CM_E_ISOLATION, errno, "cannot cut mount propagation");
	return CM_OK;
}

int cm_ns_set_hostname(const struct cm_plan *plan, struct cm_error *err)
{
	const char *name = cm_plan_str(plan, plan->header->hostname);

	if (sethostname(name, strlen(name)) < 0)
		return cm_error_set(err, CM_E_ISOLATION, errno, "cannot set the host name");
	return CM_OK;
}

static int format_idmap(char *buf, size_t size, uint32_t base, uint32_t owner)
{
	uint32_t agent = base + CM_ID_AGENT;

	if (owner >= base && owner < base + CM_ID_SLOT_SIZE)
		return -EINVAL;
	/* owner -> agent; the agent's own kernel id is the target already, so it is left out */
	(void)snprintf(buf, size, "%u %u 1\n%u %u %u\n%u %u %u\n", owner, agent, base, base,
		       CM_ID_AGENT, agent + 1, agent + 1, CM_ID_SLOT_SIZE - CM_ID_AGENT - 1);
	return 0;
}

/* Only holds the namespace until it is opened, and not longer than the keeper. */
CM_NO_INSTRUMENT static int hold_namespace(void *unused)
{
	(void)unused;
	(void)cm_raw_syscall2(__NR_prctl, PR_SET_PDEATHSIG, SIGKILL);
	/* for ever: all signals are blocked but the one that ends it */
	(void)cm_raw_syscall4(__NR_ppoll, 0, 0, 0, 0);
	return 0;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): the kernel writes it */
static pid_t clone_holder(int *ret_pidfd, struct cm_error *err)
{
	static _Alignas(16) char stack[4096];
	struct cm_clone3_args args = {
		.flags = CLONE_NEWUSER | CLONE_PIDFD | CLONE_VM | CLONE_FILES,
		.pidfd = (uint64_t)(uintptr_t)ret_pidfd,
		.exit_signal = SIGCHLD,
		.stack = (uint64_t)(uintptr_t)stack,
		.stack_size = sizeof(stack),
	};
	long pid = cm_raw_clone(&args, hold_namespace, NULL);

	if (cm_raw_failed(pid))
		return cm_error_set(err, CM_E_ISOLATION, (int)-pid,
				    "cannot make a namespace of ids");
	return (pid_t)pid;
}

void cm_ns_idmap_reap(pid_t *holder)
{
	while (*holder > 0 && waitpid(*holder, NULL, 0) < 0 && errno == EINTR)
		;
	*holder = 0;
}

int cm_ns_idmap_open(uint32_t base, uint32_t owner_uid, uint32_t owner_gid, int *ret_fd,
		     pid_t *ret_holder, struct cm_error *err)
{
	char uid_map[128];
	char gid_map[128];
	char path[64];
	int pidfd = -1;
	int fd = -1;
	pid_t pid;
	int r;

	if (format_idmap(uid_map, sizeof(uid_map), base, owner_uid) < 0 ||
	    format_idmap(gid_map, sizeof(gid_map), base, owner_gid) < 0)
		return cm_error_set(err, CM_E_BUG, 0, "a mapped mount of the session's own ids");
	pid = clone_holder(&pidfd, err);
	if (pid < 0)
		return (int)pid;
	r = write_proc(pid, "uid_map", uid_map, err);
	if (r == CM_OK)
		r = write_proc(pid, "gid_map", gid_map, err);
	if (r == CM_OK) {
		(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
		fd = cm_open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			r = cm_error_set(err, CM_E_ISOLATION, errno,
					 "cannot open a namespace of ids");
	}
	(void)cm_sys_pidfd_send_signal(pidfd, SIGKILL);
	cm_fd_close(&pidfd);
	*ret_holder = pid;
	if (r == CM_OK)
		*ret_fd = fd;
	else
		cm_ns_idmap_reap(ret_holder);
	return r;
}
