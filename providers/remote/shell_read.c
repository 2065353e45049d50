/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "providers/remote/shell_files_internal.h"
#include "runtime/base/fd.h"

/* $1 path, $2 offset, $3 length, or "" for all */
static const char read_script[] =
	CM_SHELL_WHY "why \"$1\"\n"
		     "[ ! -d \"$1\" ] || fail is-dir\n"
		     "[ -e \"$1\" ] || fail not-found\n"
		     "[ -f \"$1\" ] || fail special\n"
		     "[ -r \"$1\" ] || fail denied\n"
		     "if [ \"$2\" = 0 ] && [ -z \"$3\" ]; then exec cat <\"$1\"; fi\n"
		     "if [ -z \"$3\" ]; then exec tail -c \"+$(($2 + 1))\" <\"$1\"; fi\n"
		     "if [ \"$2\" = 0 ]; then exec head -c \"$3\" <\"$1\"; fi\n"
		     "tail -c \"+$(($2 + 1))\" <\"$1\" 2>/dev/null | head -c \"$3\"\n";

int cm_shell_read(struct cm_session *s, const char *path, const struct cm_read_request *request,
		  const struct cm_call *call, struct cm_error *err)
{
	CM_AUTO_FREE char *name = NULL;
	char from[32];
	char count[32] = "";
	const char *args[] = { NULL, from, count, NULL };
	struct cm_shell shell = { .session = s,
				  .script = read_script,
				  .args = args,
				  .take = request->take,
				  .take_data = request->data };
	struct cm_shell_end end;
	int r = cm_shell_path(path, &name, err);

	if (r < 0)
		return r;
	if (request->offset >= INT64_MAX)
		return cm_error_set(err, CM_E_INVALID, 0, "no file has a byte %" PRIu64,
				    request->offset);
	args[0] = name;
	(void)snprintf(from, sizeof(from), "%" PRIu64, request->offset);
	if (request->length < INT64_MAX)
		(void)snprintf(count, sizeof(count), "%" PRIu64, request->length);
	r = cm_shell_run(&shell, call, &end, err);
	if (r == CM_OK && end.exit_code != 0)
		r = cm_shell_file_error(&end, "read", path, err);
	cm_shell_end_clear(&end);
	return r;
}
