/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control group v2.
 *
 * The base (root: <mount>/casemate.slice; a user: the scope that systemd made) hands controllers
 * down by its subtree_control and holds no process. It is shared by all sessions, so it is made
 * by whoever comes first and never removed; every step of making it may be repeated by ten
 * keepers at once with the same result.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "isolation/mech/cgroup_internal.h"
#include "runtime/base/fd.h"

/* Which of the wanted controllers a directory does not yet hand down. */
static uint32_t not_enabled(int dir_fd, uint32_t wanted)
{
	char text[512];

	if (cm_read_file_at(dir_fd, "cgroup.subtree_control", text, sizeof(text)) < 0)
		return wanted;
	return wanted & ~cm_cgroup_names_parse(text);
}

/*
 * One write a controller: a list is refused as a whole when one of it cannot be had. A failure
 * shows when the limit is read back, where it is known whether the limit is required.
 */
static void enable(int dir_fd, uint32_t wanted)
{
	uint32_t missing = not_enabled(dir_fd, wanted);

	for (size_t i = 0; i < CM_CG_N; i++) {
		char text[16];

		if ((missing & 1U << i) == 0)
			continue;
		(void)snprintf(text, sizeof(text), "+%s", cm_cgroup_names[i]);
		(void)cm_write_file_at(dir_fd, "cgroup.subtree_control", text);
	}
}

/* What of the plan's controllers is a controller on v2, rather than a part of every group. */
static uint32_t v2_bits(const struct cm_plan_header *h)
{
	return h->cgroup_controllers & CM_CG_LIMITING;
}

/*
 * Open the base, made when absent. Its parent is looked at first: mkdir in anything but a v2
 * hierarchy would leave a plain directory somewhere on the host.
 */
static int open_base(const char *path, uint32_t wanted, int *ret_fd)
{
	char parent[PATH_MAX];
	const char *slash = strrchr(path, '/');
	CM_AUTO_FD int parent_fd = -1;
	CM_AUTO_FD int fd = -1;
	int r;

	r = cm_cgroup_dir_open(AT_FDCWD, path, CGROUP2_SUPER_MAGIC, &fd);
	if (r == 0 && not_enabled(fd, wanted) == 0)
		goto done;
	if (r < 0 && r != -ENOENT)
		return r;
	if (!slash || slash == path || (size_t)(slash - path) >= sizeof(parent))
		return -EINVAL;
	memcpy(parent, path, (size_t)(slash - path));
	parent[slash - path] = '\0';
	r = cm_cgroup_dir_open(AT_FDCWD, parent, CGROUP2_SUPER_MAGIC, &parent_fd);
	if (r == 0)
		enable(parent_fd, wanted);
	if (fd < 0) {
		if (r < 0)
			return r;
		/* the mode in spite of the caller's umask: others may look, as in all of cgroupfs */
		if (mkdirat(parent_fd, slash + 1, 0755) == 0
			    ? fchmodat(parent_fd, slash + 1, 0755, 0) < 0
			    : errno != EEXIST)
			return -errno;
		r = cm_cgroup_dir_open(parent_fd, slash + 1, CGROUP2_SUPER_MAGIC, &fd);
		if (r < 0)
			return r;
	}
	enable(fd, wanted);
done:
	*ret_fd = cm_fd_take(&fd);
	return 0;
}

/*
 * Only cgroup.procs: with the right to write it in the common ancestor (the session's group) and
 * in the target, init may clone its children into leaves, and can change no limit.
 *
 * A user's keeper cannot give a file to a subordinate id. Its agent has the user's own kernel id
 * and so owns all of these files anyway (what keeps it from them is that the jail's cgroupfs is
 * read-only); letting init's id write means letting everyone, and whoever is not in this group
 * already still lacks the right in the common ancestor.
 */
static int delegate(const struct cm_cgroup *cg, int group_fd)
{
	if (cg->init_kuid == geteuid())
		return 0;
	if (fchownat(group_fd, "cgroup.procs", cg->init_kuid, (gid_t)-1, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	if (errno == EPERM && geteuid() != 0 && fchmodat(group_fd, "cgroup.procs", 0666, 0) == 0)
		return 0;
	return -errno;
}

static int set_cpu(int fd, uint64_t milli)
{
	char text[64];
	char got[64];
	ssize_t n;
	int r;

	(void)snprintf(text, sizeof(text), "%" PRIu64 " %u",
		       milli * (CM_CGROUP_CPU_PERIOD_US / 1000), CM_CGROUP_CPU_PERIOD_US);
	r = cm_write_file_at(fd, "cpu.max", text);
	if (r < 0)
		return r;
	n = cm_read_file_at(fd, "cpu.max", got, sizeof(got));
	if (n < 0)
		return (int)n;
	got[strcspn(got, "\n")] = '\0';
	return strcmp(text, got) == 0 ? 0 : -ERANGE;
}

static int set_limit(int fd, const struct cm_plan *plan, uint32_t bit)
{
	const struct cm_plan_limits *limits = &plan->header->limits;
	uint64_t page = cm_cgroup_page_size();

	switch (bit) {
	case CM_CG_MEMORY:
		return cm_cgroup_set_u64(fd, "memory.max", limits->memory_bytes, page);
	case CM_CG_SWAP:
		return cm_cgroup_set_u64(fd, "memory.swap.max", limits->swap_bytes, page);
	case CM_CG_PIDS:
		return cm_cgroup_set_u64(fd, "pids.max", cm_cgroup_pids(limits), 1);
	case CM_CG_CPU:
		return set_cpu(fd, cm_cgroup_cpu_milli(limits));
	default:
		return cm_cgroup_set_cpus(fd, "cpuset.cpus", "cpuset.cpus.effective",
					  cm_plan_str(plan, plan->header->cpuset));
	}
}

int cm_cgroup_v2_make(struct cm_cgroup *cg, const struct cm_plan *plan, struct cm_error *err)
{
	const struct cm_plan_header *h = plan->header;
	const char *base = cg->base ? cg->base : cm_plan_str(plan, h->cgroup_base);
	uint32_t wanted = cm_cgroup_wanted(plan);
	int r = 0;

	/* again when somebody removed the empty base between its opening and its use */
	for (int tries = 0; tries < 3; tries++) {
		cm_fd_close(&cg->base_fd[0]);
		r = open_base(base, v2_bits(h), &cg->base_fd[0]);
		if (r == 0)
			r = cm_cgroup_group_make(cg->base_fd[0], cg->name, &cg->group_fd[0]);
		if (r != -ENOENT && r != -ENODEV)
			break;
	}
	if (r < 0) {
		/* what is there is not ours to remove */
		cm_fd_close(&cg->base_fd[0]);
		return cm_cgroup_make_failed(base, cg->name, r, err);
	}
	for (uint32_t bit = 1; bit <= CM_CG_SWAP; bit <<= 1) {
		if ((wanted & bit) == 0)
			continue;
		r = cm_cgroup_note(cg, h, bit, set_limit(cg->group_fd[0], plan, bit), base, err);
		if (r < 0)
			return r;
	}
	r = delegate(cg, cg->group_fd[0]);
	return r < 0 ? cm_cgroup_make_failed(base, cg->name, r, err) : CM_OK;
}

bool cm_cgroup_v2_open(struct cm_cgroup *cg, const struct cm_plan *plan)
{
	if (cm_cgroup_dir_open(AT_FDCWD, cm_plan_str(plan, plan->header->cgroup_base),
			       CGROUP2_SUPER_MAGIC, &cg->base_fd[0]) < 0)
		return false;
	return cm_cgroup_dir_open(cg->base_fd[0], cg->name, CGROUP2_SUPER_MAGIC,
				  &cg->group_fd[0]) == 0;
}

int cm_cgroup_v2_leaf_open(struct cm_cgroup *cg, const char *leaf, struct cm_cgroup_leaf *ret)
{
	int r;

	ret->join_fd = openat(cg->group_fd[0], leaf, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (ret->join_fd < 0)
		return -errno;
	r = delegate(cg, ret->join_fd);
	if (r < 0)
		return r;
	ret->kill_fd = openat(ret->join_fd, "cgroup.kill", O_WRONLY | O_CLOEXEC);
	return ret->kill_fd < 0 ? -errno : 0;
}

void cm_cgroup_v2_usage(struct cm_cgroup *cg, struct cm_cgroup_usage *ret)
{
	int fd = cg->group_fd[0];

	/* a controller that is not there leaves its numbers at 0: not known */
	(void)cm_cgroup_read_u64(fd, "memory.peak", &ret->memory_peak_bytes);
}

void cm_cgroup_v2_kill(struct cm_cgroup *cg)
{
	(void)cm_write_file_at(cg->group_fd[0], "cgroup.kill", "1");
}
