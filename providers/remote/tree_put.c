/* SPDX-License-Identifier: Apache-2.0 */
/* A tree into a session. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "isolation/keeper/file_link.h"
#include "providers/remote/tree_internal.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"

#define CLEAN_MS 5000

/* $1 directory. Prints whose tar there is. */
static const char look_script[] = CM_SHELL_WHY
	"why \"$1\"\n"
	"[ -d \"$1\" ] || { [ -e \"$1\" ] || fail not-found; fail not-dir; }\n"
	"[ -w \"$1\" ] && [ -x \"$1\" ] || fail denied\n"
	"command -v tar >/dev/null 2>&1 || fail no-tar\n"
	"case $(tar --version 2>/dev/null) in *GNU*) echo gnu;; *) echo other;; esac\n";

/*
 * $1 directory, $2 "gnu" or "other", $3 a file that is removed then; without it standard input. The modes
 * are those of the stream, whatever the umask, and the owner is whoever this is.
 */
static const char put_script[] =
	CM_SHELL_WHY "d=$1; cd \"$1\" || fail denied\n"
		     "set -- \"$2\" \"${3:-}\"\n"
		     "w=; [ \"$1\" != gnu ] || w=--warning=no-unknown-keyword\n"
		     "if [ -n \"$2\" ]; then tar $w -x -p -o -f \"$2\"; r=$?; rm -f \"$2\"\n"
		     "else tar $w -x -p -o -f -; r=$?; fi\n"
		     "d=.; if [ $r != 0 ] && full; then fail no-space; fi\n"
		     "exit $r\n";

static const char remove_script[] = "rm -f \"$1\"\n";

static int no_tar(struct cm_error *err)
{
	(void)cm_error_set(err, CM_E_UNSUPPORTED, 0, "the session has no 'tar'");
	cm_error_hint(err, "begin it with a template that has tar, or copy file by file");
	return CM_E_UNSUPPORTED;
}

static int look(struct cm_session *s, const char *dir, const char *path, const struct cm_call *call,
		bool *ret_is_gnu, struct cm_error *err)
{
	const char *const args[] = { dir, NULL };
	const struct cm_shell shell = {
		.session = s, .script = look_script, .args = args, .is_idempotent = true
	};
	struct cm_shell_end end;
	int r = cm_shell_run(&shell, call, &end, err);

	if (r == CM_OK && cm_shell_says(&end, "no-tar"))
		r = no_tar(err);
	else if (r == CM_OK && end.exit_code != 0)
		r = cm_shell_file_error(&end, "copy to", path, err);
	if (r == CM_OK)
		*ret_is_gnu = end.out.data && strcmp(end.out.data, "gnu\n") == 0;
	cm_shell_end_clear(&end);
	return r;
}

/* file: in the session; NULL: the walk is its input */
static int extract(struct cm_session *s, const char *dir, bool is_gnu, const char *file,
		   struct cm_tree_walk *w, const char *path, const struct cm_call *call,
		   struct cm_error *err)
{
	const char *const args[] = { dir, is_gnu ? "gnu" : "other", file, NULL };
	const struct cm_shell shell = {
		.session = s,
		.script = put_script,
		.args = args,
		.fill = w ? cm_tree_walk_fill : NULL,
		.fill_data = w,
	};
	struct cm_shell_end end;
	int r = cm_shell_run(&shell, call, &end, err);

	if (r == CM_OK && end.exit_code != 0)
		r = cm_shell_file_error(&end, "copy all of it to", path, err);
	cm_shell_end_clear(&end);
	return r;
}

static void remove_file(struct cm_session *s, const char *file)
{
	const struct cm_call call = { .deadline_ms = cm_clock_mono_ms() + CLEAN_MS,
				      .cancel_fd = -1 };
	const char *const args[] = { file, NULL };
	const struct cm_shell shell = { .session = s, .script = remove_script, .args = args };
	struct cm_shell_end end;

	(void)cm_shell_run(&shell, &call, &end, NULL);
	cm_shell_end_clear(&end);
}

/* The provider's own way to write a file, else the shell's. */
static int write_file(struct cm_session *s, const char *file, struct cm_tree_walk *w,
		      const struct cm_call *call, struct cm_error *err)
{
	const struct cm_write_request request = {
		.mode = 0600, .fill = cm_tree_walk_fill, .data = w, .len = -1
	};

	if (s->provider->ops->file_write)
		return cm_session_write(s, file, &request, call, err);
	return cm_shell_write(s, file, &request, call, err);
}

static int put_by_file(struct cm_session *s, const char *dir, bool is_gnu, struct cm_tree_walk *w,
		       const char *path, const struct cm_call *call, struct cm_error *err)
{
	char file[64];
	int r;

	(void)snprintf(file, sizeof(file), "/tmp/.casemate-%016" PRIx64 ".tar",
		       (uint64_t)cm_clock_mono_us() ^ (uint64_t)(uintptr_t)w);
	r = write_file(s, file, w, call, err);
	if (r == CM_OK)
		return extract(s, dir, is_gnu, file, NULL, path, call, err);
	remove_file(s, file);
	return r;
}

int cm_tree_put(struct cm_session *s, const struct cm_tree_source *source, const char *to_dir,
		const char *to_name, const struct cm_call *call, struct cm_tree_sent *ret,
		struct cm_error *err)
{
	CM_AUTO_FREE char *dir = NULL;
	struct cm_tree_walk *w = NULL;
	bool is_gnu = false;
	int r = cm_shell_path(to_dir, &dir, err);

	memset(ret, 0, sizeof(*ret));
	if (r == CM_OK && to_name[0] != '\0' && !cm_file_name_is_single(to_name))
		r = cm_error_set(err, CM_E_INVALID, 0, "'%.200s' is no name of a file", to_name);
	if (r == CM_OK)
		r = look(s, dir, to_dir, call, &is_gnu, err);
	if (r == CM_OK && cm_tree_walk_new(source, to_name, is_gnu, call, ret, &w) < 0)
		r = cm_error_set(err, CM_E_NOMEM, 0, "no memory for a copy");
	if (r == CM_OK)
		r = (s->provider->caps & CM_CAP_STDIN) != 0
			    ? extract(s, dir, is_gnu, NULL, w, to_dir, call, err)
			    : put_by_file(s, dir, is_gnu, w, to_dir, call, err);
	/* whoever asked it for more knows no more than that there was none */
	if (r < 0 && w && cm_tree_walk_stopped(w) < 0)
		r = cm_tree_gave_up(cm_tree_walk_stopped(w), source->path, err);
	cm_tree_walk_free(w);
	return r;
}
