/* SPDX-License-Identifier: Apache-2.0 */
/* casemate cp with "-" at one end: the content of one file. */
#include "runtime/cli/copy_line.h"
#include "runtime/cli/file_access.h"

static int open_files(const struct cm_copy *c, const struct cm_file_place *place,
		      struct cm_file_access **ret)
{
	const struct cm_file_target target = { .session = place->session,
					       .root = c->root,
					       .user = c->user };

	return cm_file_access_open(c->cli, &target, ret);
}

int cm_copy_print(const struct cm_copy *c)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_file_access *f = NULL;
	int status = open_files(c, &c->from, &f);
	int r;

	if (status != 0)
		return status;
	r = cm_file_access_print(f, c->from.path, 0, UINT64_MAX, &err);
	status = cm_file_access_end(f, cm_file_access_go_on(f, r, &err), &err);
	cm_file_access_close(f);
	return status;
}

int cm_copy_write_input(const struct cm_copy *c)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_file_access *f = NULL;
	int status = open_files(c, &c->to, &f);
	int r;

	if (status != 0)
		return status;
	r = cm_file_access_write(f, c->to.path, 0, UINT32_MAX, &err);
	status = cm_file_access_end(f, cm_file_access_go_on(f, r, &err), &err);
	cm_file_access_close(f);
	return status;
}
