/* SPDX-License-Identifier: Apache-2.0 */
/* casemate cp: files and trees into a session that is elsewhere, out of it, and from one to another. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "providers/remote/tree.h"
#include "runtime/base/fd.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/copy_line.h"
#include "runtime/cli/remote/absent.h"
#include "runtime/cli/remote/file_away.h"

/* what a tree is called on its way from one session to another */
#define ON_THE_WAY "tree"

/* What could not be done, or is left out: told, and the rest goes on. data: of the files. */
static int failed(void *data, enum cm_file_step step, int error, const char *path)
{
	struct cm_away_files *f = data;
	struct cm_error why = CM_ERROR_INIT;

	(void)cm_files_error(&why, step, error, path, 0, NULL);
	cm_file_access_told(&f->base, &why);
	return 0;
}

static int no_memory(struct cm_error *err)
{
	return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
}

static void note_stripped(const struct cm_copy *c, uint64_t n)
{
	if (n > 0)
		cm_cli_note(c->cli, "set-id and sticky bits of %" PRIu64 " were left out", n);
}

/* What the session's tar could not read is a failure of the copy, and not of the way to it. */
static int settle(struct cm_away_files *f, int r, struct cm_error *err)
{
	if (r == CM_E_SYS && f->base.why.code == 0) {
		cm_file_access_told(&f->base, err);
		return CM_OK;
	}
	return cm_file_access_go_on(&f->base, r, err);
}

/* --- out of a session ---------------------------------------------------------------------- */

/* Into what receiver was initialised for. */
static int get_tree(const struct cm_copy *c, struct cm_away_files *f,
		    struct cm_file_receiver *receiver, bool keeps_links, struct cm_error *err)
{
	CM_AUTO_FREE char *path = cm_file_access_path(&f->base, c->from.path);
	int r;

	receiver->failed = failed;
	receiver->data = f;
	receiver->checks_links = !keeps_links;
	r = path ? cm_tree_get(f->base.session, path, receiver, &f->base.call, err)
		 : no_memory(err);
	cm_file_receiver_close(receiver);
	note_stripped(c, receiver->n_stripped);
	return r;
}

static int get(const struct cm_copy *c)
{
	static struct cm_away_files f;
	static struct cm_file_receiver receiver;
	CM_AUTO_FD int fd = -1;
	struct cm_error err = CM_ERROR_INIT;
	int r = cm_copy_open_target(c, &receiver, &fd);

	if (r != 0)
		return r;
	r = cm_away_files_open(&f, c->cli, c->from.session, &err);
	if (r == CM_OK)
		r = settle(&f, get_tree(c, &f, &receiver, c->keeps_links, &err), &err);
	r = cm_file_access_end(&f.base, r, &err);
	cm_file_access_close(&f.base);
	return r;
}

/* --- into a session ------------------------------------------------------------------------ */

static int take_type(void *data, const struct cm_path_info *info)
{
	enum cm_path_type *type = data;

	*type = info->type;
	return CM_OK;
}

/* Where it goes inside: a directory, and a name in it. */
struct place {
	char *dir;
	char name[NAME_MAX + 1];
};

/* As the last component of path, in the directory above. */
static int place_as(const struct cm_away_files *f, const char *path, struct place *ret,
		    struct cm_error *err)
{
	size_t end = strlen(path);
	CM_AUTO_FREE char *above = NULL;

	while (end > 0 && path[end - 1] == '/')
		end--;
	while (end > 0 && path[end - 1] != '/')
		end--;
	above = end > 0 ? cm_asprintf("%.*s", (int)end, path) : cm_strdup(".");
	if (!cm_file_base(path, ret->name, sizeof(ret->name)) || ret->name[0] == '\0') {
		(void)cm_error_set(err, CM_E_NOT_FOUND, 0, "there is no directory '%.200s'", path);
		cm_error_hint(err, "'casemate file mkdir -p' makes it");
		return CM_E_NOT_FOUND;
	}
	ret->dir = above ? cm_file_access_path(&f->base, above) : NULL;
	return ret->dir ? CM_OK : no_memory(err);
}

static int not_a_directory(const char *path, int code, struct cm_error *err)
{
	(void)cm_error_set(err, code, 0, "'%.200s' is no directory in the session", path);
	cm_error_hint(err, "name a directory that is there, or leave out the '/' behind it");
	return code;
}

/* The caller frees ret->dir. */
static int find_inside(const struct cm_copy *c, struct cm_away_files *f, bool is_directory,
		       struct place *ret, struct cm_error *err)
{
	CM_AUTO_FREE char *path = cm_file_access_path(&f->base, c->to.path);
	bool wants_directory = c->to.path[strlen(c->to.path) - 1] == '/';
	enum cm_path_type type = CM_PATH_OTHER;
	int r;

	if (!path)
		return no_memory(err);
	r = cm_session_stat(f->base.session, path, CM_STAT_FOLLOW, take_type, &type, &f->base.call,
			    err);
	if (r == CM_OK && type == CM_PATH_DIRECTORY) {
		memcpy(ret->name, c->name, sizeof(ret->name));
		ret->dir = cm_ptr_take(&path);
		return CM_OK;
	}
	if (r < 0 && r != CM_E_NOT_FOUND)
		return r;
	if (r == CM_OK && (wants_directory || is_directory))
		return not_a_directory(c->to.path, CM_E_EXISTS, err);
	if (r < 0 && wants_directory && !is_directory)
		return not_a_directory(c->to.path, CM_E_NOT_FOUND, err);
	cm_error_clear(err);
	return place_as(f, c->to.path, ret, err);
}

/* dirfd/name of this side, which is called path. */
static int put_tree(const struct cm_copy *c, struct cm_away_files *f,
		    const struct cm_tree_source *source, bool is_directory, struct cm_error *err)
{
	struct cm_tree_sent sent = { false };
	struct place place = { NULL };
	int r = find_inside(c, f, is_directory, &place, err);

	if (r == CM_OK)
		r = cm_tree_put(f->base.session, source, place.dir, place.name, &f->base.call,
				&sent, err);
	cm_ptr_free(&place.dir);
	f->base.has_failed = f->base.has_failed || sent.has_failed;
	note_stripped(c, sent.n_stripped);
	return r;
}

static int put(const struct cm_copy *c)
{
	static struct cm_away_files f;
	char name[NAME_MAX + 1];
	struct cm_tree_source source = {
		.name = name,
		.path = c->from.path,
		.keeps_links = true,
		.failed = failed,
		.data = &f,
	};
	struct cm_error err = CM_ERROR_INIT;
	CM_AUTO_FD int fd = -1;
	bool is_directory = false;
	int r = cm_copy_open_source(c, &fd, name, &is_directory);

	if (r != 0)
		return r;
	source.dirfd = fd;
	r = cm_away_files_open(&f, c->cli, c->to.session, &err);
	if (r == CM_OK)
		r = settle(&f, put_tree(c, &f, &source, is_directory, &err), &err);
	r = cm_file_access_end(&f.base, r, &err);
	cm_file_access_close(&f.base);
	return r;
}

/* --- from one session to another ----------------------------------------------------------- */

/* By a directory on this side that nobody else can enter. */
static int pass_by(const struct cm_copy *c, struct cm_away_files *a, struct cm_away_files *b,
		   int fd, struct cm_error *err)
{
	static struct cm_file_receiver receiver;
	const struct cm_tree_source source = {
		.dirfd = fd,
		.name = ON_THE_WAY,
		.path = c->from.path,
		.keeps_links = true,
		.failed = failed,
		.data = b,
	};
	struct stat st;
	int r;

	cm_file_receiver_init(&receiver, fd, ON_THE_WAY, c->from.path, false);
	r = settle(a, get_tree(c, a, &receiver, true, err), err);
	if (r < 0 || fstatat(fd, ON_THE_WAY, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return r;
	return settle(b, put_tree(c, b, &source, S_ISDIR(st.st_mode), err), err);
}

static int pass_on(const struct cm_copy *c, struct cm_away_files *a, struct cm_away_files *b,
		   struct cm_error *err)
{
	const char *tmp = cm_strv_env_get(&c->cli->config.env, "TMPDIR");
	CM_AUTO_FREE char *path = cm_asprintf("%s/casemate-cp.XXXXXX", tmp && *tmp ? tmp : "/tmp");
	CM_AUTO_FD int fd = -1;
	int r;

	if (!path)
		return no_memory(err);
	if (!mkdtemp(path))
		return cm_error_set(err, CM_E_SYS, errno, "cannot make directory '%s'", path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	r = fd < 0 ? cm_error_set(err, CM_E_SYS, errno, "cannot open '%s'", path)
		   : pass_by(c, a, b, fd, err);
	if (cm_remove_tree_at(AT_FDCWD, path) < 0)
		cm_cli_note(c->cli, "'%s' was left", path);
	return r;
}

static int between(const struct cm_copy *c)
{
	static struct cm_away_files a;
	static struct cm_away_files b;
	struct cm_error err = CM_ERROR_INIT;
	int r = cm_away_files_open(&a, c->cli, c->from.session, &err);
	bool has_b = r == CM_OK;

	if (r == CM_OK)
		r = cm_away_files_open(&b, c->cli, c->to.session, &err);
	if (r == CM_OK)
		r = pass_on(c, &a, &b, &err);
	a.base.has_failed = a.base.has_failed || (has_b && b.base.has_failed);
	r = cm_file_access_end(&a.base, r, &err);
	if (has_b)
		cm_file_access_close(&b.base);
	cm_file_access_close(&a.base);
	return r;
}

/* --- the line ------------------------------------------------------------------------------ */

int cm_cmd_cp(struct cm_cli *cli, int argc, char **argv)
{
	static const struct cm_copy_ways ways = {
		.get = get,
		.put = put,
		.between = between,
	};
	const struct cm_cli_option more[] = {
		{ "verbose", '\0', CM_OPTION_SWITCH, &cli->is_verbose },
		{ .name = NULL },
	};
	struct cm_error err = CM_ERROR_INIT;
	struct cm_copy c;

	if (cm_copy_read(cli, argc, argv, more, &c, &err) < 0 ||
	    cm_away_absent_root(c.root, &err) < 0 || cm_away_absent_user(c.user, &err) < 0)
		return cm_cli_fail(cli, &err);
	return cm_copy_carry_out(&c, &ways);
}
