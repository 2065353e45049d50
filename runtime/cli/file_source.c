/* SPDX-License-Identifier: Apache-2.0 */
/* Standard input as a file's content. */
#include "runtime/cli/file_source.h"

#include <errno.h>
#include <unistd.h>

#include "providers/local/files.h"

/* What comes when it comes. 0, *ret_error being why there is no more; -1: the operation is over. */
static int pass_on(struct cm_files *f, int *ret_error)
{
	for (;;) {
		size_t size;
		void *to;
		ssize_t n;

		if (cm_files_wait_input(f, STDIN_FILENO) == 0)
			return -1;
		to = cm_file_space(&f->writer, &size);
		if (!to)
			return -1;
		n = read(STDIN_FILENO, to, size);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0)
			*ret_error = errno;
		if (n <= 0)
			return 0;
		cm_file_commit(&f->writer, (size_t)n);
		if (cm_file_flush(&f->writer) < 0)
			return -1;
	}
}

static int send_input(struct cm_files *f, int *ret_error)
{
	struct stat st;

	/* a file's holes are holes inside, too */
	if (fstat(STDIN_FILENO, &st) == 0 && S_ISREG(st.st_mode))
		return cm_file_send_content(&f->writer, STDIN_FILENO, UINT64_MAX, ret_error);
	return pass_on(f, ret_error);
}

int cm_file_source_send(struct cm_files *f, struct cm_error *err)
{
	struct cm_file_frame end = { .type = CM_FRAME_END };
	int error = 0;
	int r = send_input(f, &error);

	if (error != 0)
		end.flags = CM_FRAMEF_FAILED;
	if (r == 0)
		r = cm_file_put(&f->writer, &end, NULL, 0, NULL, 0);
	if (r == 0)
		r = cm_files_end_input(f);
	if (r < 0)
		r = cm_files_why(f, err);
	else
		r = cm_files_next(f, err);
	if (error != 0)
		return cm_error_set(err, CM_E_SYS, error, "cannot read standard input");
	return r > 0 ? cm_error_set(err, CM_E_PROTOCOL, 0, "cannot understand the file operation")
		     : r;
}
