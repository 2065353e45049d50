/* SPDX-License-Identifier: Apache-2.0 */
/* What a session uses now, as its groups tell. */
#include "isolation/mech/cgroup_internal.h"

static uint64_t read_value(int fd, const char *file)
{
	uint64_t value;

	return fd >= 0 && cm_cgroup_read_u64(fd, file, &value) == 0 ? value : CM_CGROUP_UNKNOWN;
}

/* A group is charged for every file that was read in it. */
static uint64_t read_memory(int fd, const char *file, const char *cache_key)
{
	uint64_t bytes = read_value(fd, file);
	uint64_t cache = 0;

	if (bytes == CM_CGROUP_UNKNOWN ||
	    cm_cgroup_read_key(fd, "memory.stat", cache_key, &cache) < 0)
		return bytes;
	return cache < bytes ? bytes - cache : 0;
}

static void read_v1(const struct cm_cgroup *cg, struct cm_cgroup_now *ret)
{
	int memory = cg->group_fd[CM_CGI_MEMORY];

	ret->memory_bytes = read_memory(memory, "memory.usage_in_bytes", "total_inactive_file");
	ret->memory_peak_bytes = read_value(memory, "memory.max_usage_in_bytes");
	ret->n_tasks = read_value(cg->group_fd[CM_CGI_PIDS], "pids.current");
	/* nanoseconds, where cpu and cpuacct are one hierarchy */
	ret->cpu_us = read_value(cg->group_fd[CM_CGI_CPU], "cpuacct.usage");
	if (ret->cpu_us != CM_CGROUP_UNKNOWN)
		ret->cpu_us /= 1000;
}

static void read_v2(const struct cm_cgroup *cg, struct cm_cgroup_now *ret)
{
	int fd = cg->group_fd[0];

	ret->memory_bytes = read_memory(fd, "memory.current", "inactive_file");
	ret->memory_peak_bytes = read_value(fd, "memory.peak");
	ret->n_tasks = read_value(fd, "pids.current");
	if (cm_cgroup_read_key(fd, "cpu.stat", "usage_usec", &ret->cpu_us) < 0)
		ret->cpu_us = CM_CGROUP_UNKNOWN;
}

void cm_cgroup_now(const struct cm_cgroup *cg, struct cm_cgroup_now *ret)
{
	*ret = (struct cm_cgroup_now){ CM_CGROUP_UNKNOWN, CM_CGROUP_UNKNOWN, CM_CGROUP_UNKNOWN,
				       CM_CGROUP_UNKNOWN };
	if (cg->kind == CM_CGROUP_V1)
		read_v1(cg, ret);
	else if (cg->kind == CM_CGROUP_V2)
		read_v2(cg, ret);
}
