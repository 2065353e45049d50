/* SPDX-License-Identifier: Apache-2.0 */
/* Resource limits. Hard limits are only ever lowered: raising needs CAP_SYS_RESOURCE. */
#include "isolation/mech/rlimit.h"

#include <errno.h>
#include <sys/resource.h>

/* Soft and hard become min(want, hard). */
static int lower(int resource, const char *name, uint64_t want, struct cm_error *err)
{
	struct rlimit now;

	if (getrlimit(resource, &now) < 0)
		return cm_error_set(err, CM_E_ISOLATION, errno, "cannot read the limit on %s",
				    name);
	if (now.rlim_max == RLIM_INFINITY || want < now.rlim_max) {
		now.rlim_cur = (rlim_t)want;
		now.rlim_max = (rlim_t)want;
	} else {
		now.rlim_cur = now.rlim_max;
	}
	if (setrlimit(resource, &now) < 0)
		return cm_error_set(err, CM_E_ISOLATION, errno, "cannot limit %s", name);
	return CM_OK;
}

int cm_rlimits_set(const struct cm_plan *plan, struct cm_error *err)
{
	const struct cm_plan_limits *limits = &plan->header->limits;
	int r = CM_OK;

	if (limits->open_files != UINT64_MAX)
		r = lower(RLIMIT_NOFILE, "open files", limits->open_files, err);
	if (r == CM_OK && limits->core_bytes != UINT64_MAX)
		r = lower(RLIMIT_CORE, "core files", limits->core_bytes, err);
	/* the group's limit is the better one: it counts every id of the jail */
	if (r == CM_OK && limits->pids != UINT64_MAX && plan->header->cgroup == CM_CGROUP_NONE)
		r = lower(RLIMIT_NPROC, "processes", limits->pids, err);
	return r;
}
