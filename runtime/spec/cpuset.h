/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of processors ("0-1,3") as sets. Pure. */
#ifndef CM_RUNTIME_SPEC_CPUSET_H
#define CM_RUNTIME_SPEC_CPUSET_H

#include <stdbool.h>
#include <stdint.h>

#include "casemate/error.h"
#include "runtime/base/buf.h"

#define CM_CPUSET_MAX 8192

struct cm_cpuset {
	uint64_t words[CM_CPUSET_MAX / 64];
};

int cm_cpuset_parse(const char *list, const char *what, struct cm_cpuset *ret,
		    struct cm_error *err);
void cm_cpuset_format(const struct cm_cpuset *set, struct cm_buf *out);
/* a becomes what is in both; false: nothing is. */
bool cm_cpuset_intersect(struct cm_cpuset *a, const struct cm_cpuset *b);

#endif
