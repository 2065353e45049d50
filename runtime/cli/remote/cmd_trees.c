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

#include "providers/local/host_path.h"
#include "providers/remote/tree.h"
#include "runtime/base/fd.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/file_place.h"
#include "runtime/cli/remote/absent.h"
#include "runtime/cli/remote/file_access.h"

/* what a tree is called on its way from one session to another */
#define ON_THE_WAY "tree"

struct copy {
	struct cm_cli *cli;
	/* links that lead out of what is copied, too */
	bool keeps_links;
	struct cm_file_place from;
	struct cm_file_place to;
	/* what the copy is called in a directory; "": its content goes there */
	char name[NAME_MAX + 1];
};

/* It is printed as what failed on this side. */
static int fail_here(const struct copy *c, enum cm_file_step step, int error, const char *path)
{
	struct cm_error err = CM_ERROR_INIT;

	(void)cm_files_error(&err, step, error, path, 0, NULL);
	cm_cli_print_error(c->cli, &err);
	return CM_EXIT_FILE;
}

/* What could not be done, or is left out: told, and the rest goes on. data: of the files. */
static int failed(void *data, enum cm_file_step step, int error, const char *path)
{
	struct cm_away_files *f = data;
	struct cm_error why = CM_ERROR_INIT;

	(void)cm_files_error(&why, step, error, path, 0, NULL);
	cm_cli_print_error(f->away.cli, &why);
	f->has_failed = true;
	return 0;
}

static int no_memory(struct cm_error *err)
{
	return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
}

static void note_stripped(const struct copy *c, uint64_t n)
{
	if (n > 0)
		cm_cli_note(c->cli, "set-id and sticky bits of %" PRIu64 " were left out", n);
}

/* What the session's tar could not read is a failure of the copy, and not of the way to it. */
static int settle(struct cm_away_files *f, int r, struct cm_error *err)
{
	if (r == CM_E_SYS && f->why.code == 0) {
		f->has_failed = true;
		cm_cli_print_error(f->away.cli, err);
		return CM_OK;
	}
	return cm_away_files_go_on(f, r, err);
}

/* --- out of a session ---------------------------------------------------------------------- */

/* Where it goes on this side: a directory, and a name in it. */
static int find_place(const char *path, int *ret_fd, char name[NAME_MAX + 1], bool *ret_is_inside,
		      bool *ret_wants_directory)
{
	char base[NAME_MAX + 1];
	int fd = cm_host_path_open_dir(path);

	if (fd >= 0) {
		*ret_fd = fd;
		*ret_is_inside = true;
		return 0;
	}
	if (fd != -ENOENT && fd != -ENOTDIR)
		return fd;
	fd = cm_host_path_open_parent(path, base, ret_wants_directory);
	if (fd < 0)
		return fd == -EISDIR ? -ENOENT : fd;
	*ret_fd = fd;
	memcpy(name, base, sizeof(base));
	return 0;
}

/* Into what receiver was initialised for. */
static int get_tree(const struct copy *c, struct cm_away_files *f,
		    struct cm_file_receiver *receiver, bool keeps_links, struct cm_error *err)
{
	CM_AUTO_FREE char *path = cm_away_files_path(f, c->from.path);
	int r;

	receiver->failed = failed;
	receiver->data = f;
	receiver->checks_links = !keeps_links;
	r = path ? cm_tree_get(f->away.session, path, receiver, &f->away.call, err)
		 : no_memory(err);
	cm_file_receiver_close(receiver);
	note_stripped(c, receiver->n_stripped);
	return r;
}

static int get(const struct copy *c)
{
	static struct cm_away_files f;
	static struct cm_file_receiver receiver;
	CM_AUTO_FD int fd = -1;
	struct cm_error err = CM_ERROR_INIT;
	char name[NAME_MAX + 1];
	bool is_inside = false;
	bool wants_directory = false;
	int r;

	memcpy(name, c->name, sizeof(name));
	r = find_place(c->to.path, &fd, name, &is_inside, &wants_directory);
	if (r < 0)
		return fail_here(c, CM_FILE_STEP_CREATE, -r, c->to.path);
	cm_file_receiver_init(&receiver, fd, name, c->to.path, is_inside);
	receiver.wants_directory = wants_directory;
	r = cm_away_files_open(&f, c->cli, c->from.session, &err);
	if (r == CM_OK)
		r = settle(&f, get_tree(c, &f, &receiver, c->keeps_links, &err), &err);
	r = cm_away_files_end(&f, r, &err);
	cm_away_files_close(&f);
	return r;
}

/* To standard output: the content of one file. */
static int print(const struct copy *c)
{
	static struct cm_away_files f;
	struct cm_error err = CM_ERROR_INIT;
	int r = cm_away_files_open(&f, c->cli, c->from.session, &err);

	if (r == CM_OK)
		r = cm_away_files_go_on(
			&f, cm_away_files_print(&f, c->from.path, 0, UINT64_MAX, &err), &err);
	r = cm_away_files_end(&f, r, &err);
	cm_away_files_close(&f);
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
	ret->dir = above ? cm_away_files_path(f, above) : NULL;
	return ret->dir ? CM_OK : no_memory(err);
}

static int not_a_directory(const char *path, int code, struct cm_error *err)
{
	(void)cm_error_set(err, code, 0, "'%.200s' is no directory in the session", path);
	cm_error_hint(err, "name a directory that is there, or leave out the '/' behind it");
	return code;
}

/* The caller frees ret->dir. */
static int find_inside(const struct copy *c, struct cm_away_files *f, bool is_directory,
		       struct place *ret, struct cm_error *err)
{
	CM_AUTO_FREE char *path = cm_away_files_path(f, c->to.path);
	bool wants_directory = c->to.path[strlen(c->to.path) - 1] == '/';
	enum cm_path_type type = CM_PATH_OTHER;
	int r;

	if (!path)
		return no_memory(err);
	r = cm_session_stat(f->away.session, path, CM_STAT_FOLLOW, take_type, &type, &f->away.call,
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
static int put_tree(const struct copy *c, struct cm_away_files *f,
		    const struct cm_tree_source *source, bool is_directory, struct cm_error *err)
{
	struct cm_tree_sent sent = { false };
	struct place place = { NULL };
	int r = find_inside(c, f, is_directory, &place, err);

	if (r == CM_OK)
		r = cm_tree_put(f->away.session, source, place.dir, place.name, &f->away.call,
				&sent, err);
	cm_ptr_free(&place.dir);
	f->has_failed = f->has_failed || sent.has_failed;
	note_stripped(c, sent.n_stripped);
	return r;
}

/* What is copied: a directory on this side, and a name in it. */
static int find_source(const char *path, int *ret_fd, char name[NAME_MAX + 1],
		       bool *ret_is_directory)
{
	bool wants_directory = false;
	struct stat st;
	int fd = cm_host_path_open_parent(path, name, &wants_directory);

	if (fd == -EISDIR) {
		fd = cm_host_path_open_dir(path);
		memcpy(name, ".", 2);
	}
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	*ret_is_directory = S_ISDIR(st.st_mode);
	return wants_directory && !*ret_is_directory ? -ENOTDIR : 0;
}

static int put(const struct copy *c)
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
	int r = find_source(c->from.path, &fd, name, &is_directory);

	if (r < 0)
		return fail_here(c, CM_FILE_STEP_READ, -r, c->from.path);
	source.dirfd = fd;
	r = cm_away_files_open(&f, c->cli, c->to.session, &err);
	if (r == CM_OK)
		r = settle(&f, put_tree(c, &f, &source, is_directory, &err), &err);
	r = cm_away_files_end(&f, r, &err);
	cm_away_files_close(&f);
	return r;
}

/* From standard input: one file. */
static int write_input(const struct copy *c)
{
	static struct cm_away_files f;
	struct cm_error err = CM_ERROR_INIT;
	int r = cm_away_files_open(&f, c->cli, c->to.session, &err);

	if (r == CM_OK)
		r = cm_away_files_go_on(
			&f, cm_away_files_write(&f, c->to.path, 0, UINT32_MAX, &err), &err);
	r = cm_away_files_end(&f, r, &err);
	cm_away_files_close(&f);
	return r;
}

/* --- from one session to another ----------------------------------------------------------- */

/* By a directory on this side that nobody else can enter. */
static int pass_by(const struct copy *c, struct cm_away_files *a, struct cm_away_files *b, int fd,
		   struct cm_error *err)
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

static int pass_on(const struct copy *c, struct cm_away_files *a, struct cm_away_files *b,
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

static int between(const struct copy *c)
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
	a.has_failed = a.has_failed || (has_b && b.has_failed);
	r = cm_away_files_end(&a, r, &err);
	if (has_b)
		cm_away_files_close(&b);
	cm_away_files_close(&a);
	return r;
}

/* --- the line ------------------------------------------------------------------------------ */

static int read_places(struct copy *c, char **words, int n, struct cm_error *err)
{
	int r = n == 2 ? CM_OK : CM_E_INVALID;

	if (r < 0)
		(void)cm_error_set(err, r, 0, "'cp' takes what is copied and where to");
	if (r == CM_OK)
		r = cm_file_place_parse(words[0], &c->from, err);
	if (r == CM_OK)
		r = cm_file_place_parse(words[1], &c->to, err);
	if (r == CM_OK && c->from.kind != CM_PLACE_SESSION && c->to.kind != CM_PLACE_SESSION)
		r = cm_error_set(err, CM_E_INVALID, 0, "neither of the two is in a session");
	if (r < 0) {
		cm_error_hint(err, "casemate cp FILE ID:PATH, or casemate cp ID:PATH FILE");
		return r;
	}
	if (cm_file_base(c->from.path, c->name, sizeof(c->name)))
		return CM_OK;
	return cm_error_set(err, CM_E_INVALID, ENAMETOOLONG, "cannot copy '%.100s'", c->from.path);
}

static int carry_out(const struct copy *c)
{
	if (c->from.kind == CM_PLACE_STREAM)
		return write_input(c);
	if (c->to.kind == CM_PLACE_STREAM)
		return print(c);
	if (c->to.kind == CM_PLACE_HERE)
		return get(c);
	return c->from.kind == CM_PLACE_HERE ? put(c) : between(c);
}

int cm_cmd_cp(struct cm_cli *cli, int argc, char **argv)
{
	struct copy c = { .cli = cli };
	const char *root = NULL;
	const char *user = NULL;
	bool is_archive = false;
	const struct cm_cli_option options[] = {
		{ "root", '\0', CM_OPTION_TEXT, &root },
		{ "user", 'u', CM_OPTION_TEXT, &user },
		{ "all-links", '\0', CM_OPTION_SWITCH, &c.keeps_links },
		/* what it always is: of docker's and cp's line */
		{ "archive", 'a', CM_OPTION_SWITCH, &is_archive },
		{ "recursive", 'r', CM_OPTION_SWITCH, &is_archive },
		{ "quiet", 'q', CM_OPTION_SWITCH, &cli->is_quiet },
		{ "verbose", '\0', CM_OPTION_SWITCH, &cli->is_verbose },
		{ NULL, '\0', CM_OPTION_SWITCH, NULL },
	};
	struct cm_error err = CM_ERROR_INIT;
	int n = 0;

	if (cm_cli_options(argc - 1, argv + 1, options, &n, &err) < 0 ||
	    cm_away_absent_root(root, &err) < 0 || cm_away_absent_user(user, &err) < 0 ||
	    read_places(&c, argv + 1, n, &err) < 0)
		return cm_cli_fail(cli, &err);
	return carry_out(&c);
}
