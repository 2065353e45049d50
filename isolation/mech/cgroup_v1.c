/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control group v1: one group a hierarchy, all of the same name.
 *
 * Killing has no kernel help here. The freezer stops the tree, so that nothing in it can fork
 * past the reader of cgroup.procs; without a freezer the reading is repeated until nothing is
 * left. A process number may be another process by the time it is signalled, so a pidfd is taken
 * first and the process behind it must name our group.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "isolation/mech/cgroup_internal.h"
#include "runtime/base/fd.h"
#include "runtime/base/kernel.h"

/* A frozen group is quick unless a task sits in the kernel; killing goes on without. */
#define FREEZE_MS 100

/* The i-th line of the plan's bases. False when it is empty or too long. */
static bool base_get(const struct cm_plan *plan, size_t i, char *out, size_t size)
{
	const char *s = cm_plan_str(plan, plan->header->cgroup_base);
	size_t n;

	for (; i > 0 && s; i--) {
		s = strchr(s, '\n');
		s = s ? s + 1 : NULL;
	}
	if (!s)
		return false;
	n = strcspn(s, "\n");
	if (n == 0 || n >= size)
		return false;
	memcpy(out, s, n);
	out[n] = '\0';
	return true;
}

/* A hierarchy before i with the same directory (controllers mounted together), or -1. */
static int shared_with(const struct cm_plan *plan, const struct cm_cgroup *cg, size_t i,
		       const char *base)
{
	char other[PATH_MAX];

	for (size_t k = 0; k < i; k++)
		if (cg->group_fd[k] >= 0 && base_get(plan, k, other, sizeof(other)) &&
		    strcmp(other, base) == 0)
			return (int)k;
	return -1;
}

/* Tasks cannot enter before cpus and mems are set; new groups start without. */
static int copy_cpuset(const struct cm_cgroup *cg)
{
	static const char *const files[] = { "cpuset.cpus", "cpuset.mems" };
	char text[4096];

	for (size_t i = 0; i < CM_ARRAY_SIZE(files); i++) {
		ssize_t n =
			cm_read_file_at(cg->base_fd[CM_CGI_CPUSET], files[i], text, sizeof(text));
		int r;

		if (n < 0)
			return (int)n;
		text[strcspn(text, "\n")] = '\0';
		r = cm_write_file_at(cg->group_fd[CM_CGI_CPUSET], files[i], text);
		if (r < 0)
			return r;
	}
	return 0;
}

static int group_make(struct cm_cgroup *cg, const struct cm_plan *plan, size_t i, const char *base)
{
	int shared = shared_with(plan, cg, i, base);
	int r;

	if (shared >= 0) {
		/* its tasks file is joined once, for both */
		cg->base_fd[i] = fcntl(cg->base_fd[shared], F_DUPFD_CLOEXEC, 3);
		cg->group_fd[i] = fcntl(cg->group_fd[shared], F_DUPFD_CLOEXEC, 3);
		if (cg->base_fd[i] >= 0 && cg->group_fd[i] >= 0)
			return 0;
		r = -errno;
		/* or the group would be removed that the other controller has */
		cm_fd_close(&cg->base_fd[i]);
		return r;
	}
	r = cm_cgroup_dir_open(AT_FDCWD, base, CGROUP_SUPER_MAGIC, &cg->base_fd[i]);
	if (r < 0)
		return r;
	r = cm_cgroup_group_make(cg->base_fd[i], cg->name, &cg->group_fd[i]);
	if (r < 0) {
		/* what is there is not ours to remove */
		cm_fd_close(&cg->base_fd[i]);
		return r;
	}
	if (i == CM_CGI_CPUSET)
		r = copy_cpuset(cg);
	if (r < 0)
		return r;
	cg->tasks_fd[i] = openat(cg->group_fd[i], "tasks", O_WRONLY | O_CLOEXEC);
	return cg->tasks_fd[i] < 0 ? -errno : 0;
}

/* A hierarchy that fails is left out, unless it is required or the group is somebody's. */
static void group_drop(struct cm_cgroup *cg, size_t i)
{
	if (cg->base_fd[i] >= 0)
		(void)cm_cgroup_group_remove(cg->base_fd[i], cg->name);
	cm_fd_close(&cg->tasks_fd[i]);
	cm_fd_close(&cg->group_fd[i]);
	cm_fd_close(&cg->base_fd[i]);
}

static int groups_make(struct cm_cgroup *cg, const struct cm_plan *plan, struct cm_error *err)
{
	const struct cm_plan_header *h = plan->header;
	char base[PATH_MAX] = "";
	int last = -ENOENT;
	bool has_any = false;

	for (size_t i = 0; i < CM_CG_N; i++) {
		bool is_required = (h->cgroup_required & (1U << i)) != 0;
		int r = -ENOENT;

		if ((h->cgroup_controllers & (1U << i)) == 0)
			continue;
		if (base_get(plan, i, base, sizeof(base)))
			r = group_make(cg, plan, i, base);
		if (r == 0) {
			has_any = true;
			continue;
		}
		if (is_required || r == -EBUSY || r == -ENOTEMPTY)
			return cm_cgroup_make_failed(base, cg->name, r, err);
		group_drop(cg, i);
		last = r;
	}
	return has_any ? CM_OK : cm_cgroup_make_failed(base, cg->name, last, err);
}

/*
 * memsw counts memory and swap together and may not be below the memory limit, so that one is
 * written first.
 */
static int set_swap(int fd, const struct cm_plan_limits *limits)
{
	uint64_t both = limits->memory_bytes + limits->swap_bytes;

	if (limits->memory_bytes == UINT64_MAX)
		return -ENOENT;
	if (both < limits->swap_bytes || both > INT64_MAX)
		both = INT64_MAX;
	return cm_cgroup_set_u64(fd, "memory.memsw.limit_in_bytes", both, cm_cgroup_page_size());
}

/* v1 refuses a quota above an ancestor's; that ancestor then already holds the wanted limit. */
static bool ancestor_has_cpu(int base_fd, uint64_t milli)
{
	char up[128] = "";

	for (int depth = 0; depth < 32; depth++) {
		char file[160];
		uint64_t quota = 0;
		uint64_t period = 0;

		(void)snprintf(file, sizeof(file), "%scpu.cfs_quota_us", up);
		if (cm_cgroup_read_u64(base_fd, file, &quota) < 0)
			return false;
		(void)snprintf(file, sizeof(file), "%scpu.cfs_period_us", up);
		if (cm_cgroup_read_u64(base_fd, file, &period) < 0 || period == 0)
			return false;
		if (quota <= UINT64_MAX / 1000 && quota * 1000 <= milli * period)
			return true;
		if (strlen(up) + 4 > sizeof(up))
			return false;
		memcpy(up + strlen(up), "../", 4);
	}
	return false;
}

static int set_cpu(const struct cm_cgroup *cg, uint64_t milli)
{
	int fd = cg->group_fd[CM_CGI_CPU];
	int r = cm_cgroup_set_u64(fd, "cpu.cfs_period_us", CM_CGROUP_CPU_PERIOD_US, 1);

	if (r == 0)
		r = cm_cgroup_set_u64(fd, "cpu.cfs_quota_us",
				      milli * (CM_CGROUP_CPU_PERIOD_US / 1000), 1);
	if (r == -EINVAL && ancestor_has_cpu(cg->base_fd[CM_CGI_CPU], milli))
		return 0;
	return r;
}

static int set_limit(const struct cm_cgroup *cg, const struct cm_plan *plan, uint32_t bit)
{
	const struct cm_plan_limits *limits = &plan->header->limits;
	int memory = cg->group_fd[CM_CGI_MEMORY];

	switch (bit) {
	case CM_CG_MEMORY:
		return memory < 0 ? -ENOENT
				  : cm_cgroup_set_u64(memory, "memory.limit_in_bytes",
						      limits->memory_bytes, cm_cgroup_page_size());
	case CM_CG_SWAP:
		return memory < 0 ? -ENOENT : set_swap(memory, limits);
	case CM_CG_PIDS:
		return cg->group_fd[CM_CGI_PIDS] < 0
			       ? -ENOENT
			       : cm_cgroup_set_u64(cg->group_fd[CM_CGI_PIDS], "pids.max",
						   cm_cgroup_pids(limits), 1);
	case CM_CG_CPU:
		return cg->group_fd[CM_CGI_CPU] < 0 ? -ENOENT
						    : set_cpu(cg, cm_cgroup_cpu_milli(limits));
	default:
		return cg->group_fd[CM_CGI_CPUSET] < 0
			       ? -ENOENT
			       : cm_cgroup_set_cpus(cg->group_fd[CM_CGI_CPUSET], "cpuset.cpus",
						    "cpuset.effective_cpus",
						    cm_plan_str(plan, plan->header->cpuset));
	}
}

int cm_cgroup_v1_make(struct cm_cgroup *cg, const struct cm_plan *plan, struct cm_error *err)
{
	uint32_t wanted = cm_cgroup_wanted(plan);
	int r = groups_make(cg, plan, err);

	for (uint32_t bit = 1; r == CM_OK && bit <= CM_CG_SWAP; bit <<= 1)
		if ((wanted & bit) != 0)
			r = cm_cgroup_note(cg, plan->header, bit, set_limit(cg, plan, bit),
					   "its v1 hierarchy", err);
	return r;
}

bool cm_cgroup_v1_open(struct cm_cgroup *cg, const struct cm_plan *plan)
{
	char base[PATH_MAX];
	bool has_any = false;

	for (size_t i = 0; i < CM_CG_N; i++) {
		if (!base_get(plan, i, base, sizeof(base)) ||
		    cm_cgroup_dir_open(AT_FDCWD, base, CGROUP_SUPER_MAGIC, &cg->base_fd[i]) < 0)
			continue;
		if (cm_cgroup_dir_open(cg->base_fd[i], cg->name, CGROUP_SUPER_MAGIC,
				       &cg->group_fd[i]) == 0)
			has_any = true;
		else
			cm_fd_close(&cg->base_fd[i]);
	}
	return has_any;
}

int cm_cgroup_v1_leaf_open(struct cm_cgroup *cg, const char *leaf, struct cm_cgroup_leaf *ret)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "%s/tasks", leaf);
	ret->join_fd = openat(cg->group_fd[CM_CGI_FREEZER], path, O_WRONLY | O_CLOEXEC);
	if (ret->join_fd < 0)
		return -errno;
	(void)snprintf(path, sizeof(path), "%s/freezer.state", leaf);
	ret->kill_fd = openat(cg->group_fd[CM_CGI_FREEZER], path, O_RDWR | O_CLOEXEC);
	return ret->kill_fd < 0 ? -errno : 0;
}

void cm_cgroup_v1_usage(struct cm_cgroup *cg, struct cm_cgroup_usage *ret)
{
	int memory = cg->group_fd[CM_CGI_MEMORY];

	/* a hierarchy that is not there leaves its numbers at 0: not known */
	if (memory < 0)
		return;
	(void)cm_cgroup_read_u64(memory, "memory.max_usage_in_bytes", &ret->memory_peak_bytes);
}

/* "4:memory:/a/cm-x" or "6:freezer:/cm-x/x3": is one of its groups ours? */
static bool names_group(const char *text, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = strstr(text, name); p; p = strstr(p + 1, name))
		if (p > text && p[-1] == '/' && (p[n] == '/' || p[n] == '\n' || p[n] == '\0'))
			return true;
	return false;
}

static void kill_pid(const char *name, pid_t pid)
{
	char path[64];
	char text[16384];
	CM_AUTO_FD int fd = -1;

	/* 0: not of our pid namespace, and a signal to it would be one to ourselves */
	if (pid <= 1 || pid == getpid())
		return;
	fd = cm_sys_pidfd_open(pid, 0);
	if (fd < 0)
		return;
	(void)snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	if (cm_read_file_at(AT_FDCWD, path, text, sizeof(text)) >= 0 && names_group(text, name))
		(void)cm_sys_pidfd_send_signal(fd, SIGKILL);
}

/* Streams, because a group without a limit may hold any number. */
static void kill_group(int group_fd, const char *name)
{
	char text[4096];
	CM_AUTO_FD int fd = openat(group_fd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	pid_t pid = 0;
	ssize_t n;

	if (fd < 0)
		return;
	while ((n = read(fd, text, sizeof(text))) > 0)
		for (ssize_t i = 0; i < n; i++) {
			if (text[i] >= '0' && text[i] <= '9' && pid < INT_MAX / 10 - 1) {
				pid = pid * 10 + (text[i] - '0');
				continue;
			}
			kill_pid(name, pid);
			pid = 0;
		}
}

static void kill_leaf(int group_fd, const char *leaf, void *name)
{
	CM_AUTO_FD int fd = openat(group_fd, leaf, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0)
		kill_group(fd, name);
}

/* One that init froze to kill an exec stays frozen when its parent is thawed. */
static void thaw_leaf(int group_fd, const char *leaf, void *data)
{
	char path[NAME_MAX + 32];

	(void)data;
	(void)snprintf(path, sizeof(path), "%s/freezer.state", leaf);
	(void)cm_write_file_at(group_fd, path, "THAWED");
}

static void freeze(int freezer_fd)
{
	char state[32];

	if (cm_write_file_at(freezer_fd, "freezer.state", "FROZEN") < 0)
		return;
	for (int ms = 0; ms < FREEZE_MS; ms++) {
		if (cm_read_file_at(freezer_fd, "freezer.state", state, sizeof(state)) < 0 ||
		    strncmp(state, "FROZEN", 6) == 0)
			return;
		cm_cgroup_sleep_ms(1);
	}
}

void cm_cgroup_v1_kill(struct cm_cgroup *cg)
{
	int freezer_fd = cg->group_fd[CM_CGI_FREEZER];

	if (freezer_fd >= 0)
		freeze(freezer_fd);
	for (size_t i = 0; i < CM_CG_N; i++) {
		if (cg->group_fd[i] < 0)
			continue;
		kill_group(cg->group_fd[i], cg->name);
		cm_cgroup_children(cg->group_fd[i], kill_leaf, cg->name);
	}
	/* a frozen task does not die of the signal before it is thawed */
	if (freezer_fd < 0)
		return;
	(void)cm_write_file_at(freezer_fd, "freezer.state", "THAWED");
	cm_cgroup_children(freezer_fd, thaw_leaf, NULL);
}
