/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /proc/self/mountinfo and /proc/self/cgroup, whose paths the owner of a container chooses.
 * The input is the first text, a form feed, and the second.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "isolation/host/cgroup_internal.h"
#include "tests/fuzz/fuzz.h"

/* What the planner and the keeper count on, whatever the texts say. */
static void check_base(const char *base)
{
	size_t n = strlen(base);

	if (base[0] != '/' || n < 2 || n >= PATH_MAX || strchr(base, '\n'))
		abort();
}

static void check(const struct cm_host_cgroup *facts)
{
	bool is_v1 = facts->kind == CM_CGROUP_V1;

	for (size_t i = 0; i < CM_CG_N; i++) {
		bool has = (facts->controllers & (1U << i)) != 0;

		if (has != (facts->v1_base[i][0] != '\0') || (has && !is_v1))
			abort();
		if (has)
			check_base(facts->v1_base[i]);
	}
	if ((facts->controllers >> CM_CG_N) != 0 || (is_v1 && facts->controllers == 0))
		abort();
	if ((facts->kind == CM_CGROUP_V2) != (facts->v2_base[0] != '\0'))
		abort();
	if (facts->kind == CM_CGROUP_V2)
		check_base(facts->v2_base);
	if ((facts->kind == CM_CGROUP_NONE) != (facts->reason[0] != '\0') || facts->needs_scope)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct cm_host_cgroup facts;
	static struct cm_host_cgroup_v2 v2;
	char *mountinfo = calloc(1, size + 1);
	char *self_cgroup;

	if (!mountinfo)
		return 0;
	if (size > 0)
		memcpy(mountinfo, data, size);
	self_cgroup = memchr(mountinfo, '\f', size);
	if (self_cgroup)
		*self_cgroup++ = '\0';
	else
		self_cgroup = mountinfo + size;
	cm_host_cgroup_parse(mountinfo, self_cgroup, &facts);
	check(&facts);
	if (cm_host_cgroup_parse_v2(mountinfo, self_cgroup, &v2)) {
		check_base(v2.mount);
		check_base(v2.own);
		if (strncmp(v2.own, v2.mount, strlen(v2.mount)) != 0)
			abort();
	}
	free(mountinfo);
	return 0;
}
