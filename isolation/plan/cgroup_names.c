/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel calls the controllers of limits. */
#include <string.h>

#include "isolation/plan/plan.h"

const char *const cm_cgroup_names[CM_CG_N] = { "memory", "pids", "cpu", "cpuset", "freezer" };

uint32_t cm_cgroup_names_parse(const char *text)
{
	uint32_t bits = 0;

	for (text += strspn(text, " \n"); *text; text += strspn(text, " \n")) {
		size_t len = strcspn(text, " \n");

		for (size_t i = 0; i < CM_CG_N; i++) {
			if (strlen(cm_cgroup_names[i]) == len &&
			    memcmp(text, cm_cgroup_names[i], len) == 0)
				bits |= 1U << i;
		}
		text += len;
	}
	return bits;
}
