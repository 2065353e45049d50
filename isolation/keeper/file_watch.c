/* SPDX-License-Identifier: Apache-2.0 */
/* watch. */
#include <errno.h>

#include "isolation/keeper/file_builtin.h"

int cm_file_op_watch(struct cm_file_request *q, uint64_t *ret_value)
{
	*ret_value = 0;
	return cm_file_fail(q, CM_FILE_STEP_REQUEST, ENOSYS, "watch", 0);
}
