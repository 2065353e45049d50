/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of `casemate cp`, and what of a copy is on this side. */
#include "runtime/cli/copy_line.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "providers/local/host_path.h"
#include "runtime/base/fd.h"
#include "runtime/cli/file_session.h"

#define MORE_MAX 4

/* --- this side ----------------------------------------------------------------------------- */

int cm_copy_fail_here(const struct cm_copy *c, enum cm_file_step step, int error, const char *path)
{
	struct cm_error err = CM_ERROR_INIT;

	(void)cm_files_error(&err, step, error, path, 0, NULL);
	cm_cli_print_error(c->cli, &err);
	return CM_EXIT_FILE;
}

/* A directory, and a name in it. */
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

int cm_copy_open_target(const struct cm_copy *c, struct cm_file_receiver *receiver, int *ret_fd)
{
	char name[NAME_MAX + 1];
	bool is_inside = false;
	bool wants_directory = false;
	int r;

	memcpy(name, c->name, sizeof(name));
	r = find_place(c->to.path, ret_fd, name, &is_inside, &wants_directory);
	if (r < 0)
		return cm_copy_fail_here(c, CM_FILE_STEP_CREATE, -r, c->to.path);
	cm_file_receiver_init(receiver, *ret_fd, name, c->to.path, is_inside);
	receiver->wants_directory = wants_directory;
	return 0;
}

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

int cm_copy_open_source(const struct cm_copy *c, int *ret_fd, char name[NAME_MAX + 1],
			bool *ret_is_directory)
{
	int r = find_source(c->from.path, ret_fd, name, ret_is_directory);

	return r < 0 ? cm_copy_fail_here(c, CM_FILE_STEP_READ, -r, c->from.path) : 0;
}

/* --- the line ------------------------------------------------------------------------------ */

static int read_places(struct cm_copy *c, char **words, int n, struct cm_error *err)
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

int cm_copy_read(struct cm_cli *cli, int argc, char **argv, const struct cm_cli_option *more,
		 struct cm_copy *ret, struct cm_error *err)
{
	bool is_archive = false;
	struct cm_cli_option options[7 + MORE_MAX] = {
		{ "root", '\0', CM_OPTION_TEXT, &ret->root },
		{ "user", 'u', CM_OPTION_TEXT, &ret->user },
		{ "all-links", '\0', CM_OPTION_SWITCH, &ret->keeps_links },
		/* what it always is: of docker's and cp's line */
		{ "archive", 'a', CM_OPTION_SWITCH, &is_archive },
		{ "recursive", 'r', CM_OPTION_SWITCH, &is_archive },
		{ "quiet", 'q', CM_OPTION_SWITCH, &cli->is_quiet },
	};
	size_t at = 6;
	int n = 0;
	int r;

	for (; more && more->name; more++)
		options[at++] = *more;
	*ret = (struct cm_copy){ .cli = cli };
	r = cm_cli_options(argc - 1, argv + 1, options, &n, err);
	return r < 0 ? r : read_places(ret, argv + 1, n, err);
}

int cm_copy_carry_out(const struct cm_copy *c, const struct cm_copy_ways *ways)
{
	if (c->from.kind == CM_PLACE_STREAM)
		return cm_copy_write_input(c);
	if (c->to.kind == CM_PLACE_STREAM)
		return cm_copy_print(c);
	if (c->to.kind == CM_PLACE_HERE)
		return ways->get(c);
	return c->from.kind == CM_PLACE_HERE ? ways->put(c) : ways->between(c);
}
