/* SPDX-License-Identifier: Apache-2.0 */
/* What is in a session's directories. */
#include "providers/remote/shell_files_internal.h"
#include "providers/remote/sorted.h"
#include "runtime/base/fd.h"

/* $1 path, $2 "1" for all below, $3 what find calls */
static const char list_script[] = CM_SHELL_WHY CM_SHELL_TREE
	"why \"$1\"\n"
	"if [ ! -d \"$1\" ]; then [ -e \"$1\" ] || fail not-found; fail not-dir; fi\n"
	"[ -r \"$1\" ] && [ -x \"$1\" ] || fail denied\n"
	"p=${1%/}/ deep=$2 each=$3\n"
	"tree 2>/dev/null || fail denied\n";

/* $1 path, $2 "1": of what a link leads to */
static const char stat_script[] = CM_SHELL_WHY CM_SHELL_SHOW
	"p=\n"
	"why \"$1\"\n"
	"[ \"$2\" = 0 ] || [ -e \"$1\" ] || fail not-found\n"
	"if " CM_SHELL_HAS_PRINTF "; then\n"
	"if [ \"$2\" = 1 ]; then exec find -H \"$1\" -maxdepth 0 -printf " CM_SHELL_PRINTF "; fi\n"
	"exec find \"$1\" -maxdepth 0 -printf " CM_SHELL_PRINTF "\n"
	"fi\n"
	"[ \"$2\" = 0 ] || follow=-L\n"
	"show \"$1\"\n";

struct listing {
	int (*each)(void *data, const struct cm_path_info *info);
	void *data;
	/* of one that is asked for by its path */
	const char *path;
	unsigned int n;
};

static int pass_on(void *data, const struct cm_path_info *info, char mark)
{
	struct listing *l = data;
	struct cm_path_info named;

	(void)mark;
	if (!info)
		return CM_OK;
	named = *info;
	if (l->path)
		named.path = l->path;
	/* once, whatever comes */
	return l->path && l->n++ > 0 ? CM_OK : l->each(l->data, &named);
}

static int run(struct cm_session *s, const char *script, const char *const *args, struct listing *l,
	       const char *what, const char *path, const struct cm_call *call, struct cm_error *err)
{
	struct cm_shell_entries entries;
	const struct cm_shell shell = {
		.session = s,
		.script = script,
		.args = args,
		.is_idempotent = true,
		.take = cm_shell_entries_take,
		.take_data = &entries,
	};
	struct cm_error why = CM_ERROR_INIT;
	struct cm_shell_end end;
	int r;

	cm_shell_entries_init(&entries, pass_on, l);
	r = cm_shell_run(&shell, call, &end, &why);
	if (r == CM_OK && end.exit_code != 0)
		r = cm_shell_file_error(&end, what, path, &why);
	r = cm_shell_entries_end(&entries, r, &why, what, path, err);
	cm_shell_end_clear(&end);
	cm_shell_entries_clear(&entries);
	return r;
}

int cm_shell_list(struct cm_session *s, const char *path, uint32_t flags,
		  int (*each)(void *data, const struct cm_path_info *info), void *data,
		  const struct cm_call *call, struct cm_error *err)
{
	CM_AUTO_FREE char *name = NULL;
	const char *args[] = { NULL, (flags & CM_LIST_RECURSIVE) != 0 ? "1" : "0", CM_SHELL_EACH,
			       NULL };
	struct cm_sorted sorted;
	struct listing l = { .each = cm_sorted_take, .data = &sorted };
	int r = cm_shell_path(path, &name, err);

	if (r < 0)
		return r;
	args[0] = name;
	cm_sorted_init(&sorted, each, data);
	r = run(s, list_script, args, &l, "list", path, call, err);
	return cm_sorted_end(&sorted, r, err);
}

int cm_shell_stat(struct cm_session *s, const char *path, uint32_t flags,
		  int (*each)(void *data, const struct cm_path_info *info), void *data,
		  const struct cm_call *call, struct cm_error *err)
{
	CM_AUTO_FREE char *name = NULL;
	const char *args[] = { NULL, (flags & CM_STAT_FOLLOW) != 0 ? "1" : "0", NULL };
	struct listing l = { .each = each, .data = data, .path = path };
	int r = cm_shell_path(path, &name, err);

	args[0] = name;
	if (r == CM_OK)
		r = run(s, stat_script, args, &l, "look at", path, call, err);
	if (r == CM_OK && l.n == 0)
		r = cm_error_set(err, CM_E_PROTOCOL, 0,
				 "cannot look at '%.200s': the session's answer makes no sense",
				 path);
	return r;
}
