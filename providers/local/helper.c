/* SPDX-License-Identifier: Apache-2.0 */
/* Our other executables: where they are. */
#include "providers/local/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "isolation/host/private_group.h"
#include "runtime/base/fd.h"

static int own_directory(char *buf, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", buf, size - 1);
	char *slash;

	if (n <= 0)
		return -1;
	buf[n] = '\0';
	slash = strrchr(buf, '/');
	if (!slash)
		return -1;
	*slash = '\0';
	return 0;
}

/* What is in a group of the user's own is written by nobody else: host/private_group.h has why. */
static bool is_private_group(gid_t gid)
{
	struct cm_private_groups groups = { .uid = geteuid() };
	bool is_private = cm_private_groups_has(&groups, gid);

	cm_private_groups_clear(&groups);
	return is_private;
}

/* A program that somebody else could have put there is not ours. */
static bool is_trusted(const struct stat *st)
{
	if (st->st_uid != 0 && st->st_uid != geteuid())
		return false;
	if ((st->st_mode & S_IWOTH) != 0)
		return false;
	return (st->st_mode & S_IWGRP) == 0 || is_private_group(st->st_gid);
}

static int refuse(const char *path, const struct stat *st, struct cm_error *err)
{
	if (st->st_uid != 0 && st->st_uid != geteuid()) {
		cm_error_set(err, CM_E_DENIED, 0,
			     "'%s' belongs to uid %u, who could put anything there", path,
			     (unsigned int)st->st_uid);
		cm_error_hint(err,
			      "only what is root's or uid %u's is run; install it: "
			      "sudo cmake --install build",
			      (unsigned int)geteuid());
		return CM_E_DENIED;
	}
	cm_error_set(err, CM_E_DENIED, 0, "'%s' could have been put there by somebody else", path);
	cm_error_hint(err, "make it writable by nobody but its owner: chmod go-w '%s'", path);
	return CM_E_DENIED;
}

/* 1: that is it, 0: there is none, negative: it cannot be trusted */
static int look(const char *dir, const char *name, char *buf, size_t size, struct cm_error *err)
{
	struct stat st;
	struct stat dir_st;

	if ((size_t)snprintf(buf, size, "%s/%s", dir, name) >= size || stat(buf, &st) < 0 ||
	    !S_ISREG(st.st_mode) || stat(dir, &dir_st) < 0)
		return 0;
	if (!is_trusted(&st))
		return refuse(buf, &st, err);
	return is_trusted(&dir_st) ? 1 : refuse(dir, &dir_st, err);
}

/* Where an installation has them that was given another prefix than the one that it was built for. */
static int look_beside(const char *own_dir, const char *name, char *buf, size_t size,
		       struct cm_error *err)
{
	char path[2 * PATH_MAX];
	char dir[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/" CM_LIBEXEC_FROM_BIN, own_dir);
	return realpath(path, dir) ? look(dir, name, buf, size, err) : 0;
}

int cm_helper_path(const char *name, char *buf, size_t size, struct cm_error *err)
{
	char dir[PATH_MAX];
	int r = 0;

	/* from this program's place first: a build must not run with an installed keeper */
	if (own_directory(dir, sizeof(dir)) == 0) {
		if (strcmp(dir, CM_BINDIR) != 0)
			r = look(dir, name, buf, size, err);
		if (r == 0)
			r = look_beside(dir, name, buf, size, err);
	}
	if (r == 0)
		r = look(CM_LIBEXECDIR, name, buf, size, err);
	if (r != 0)
		return r < 0 ? r : CM_OK;
	cm_error_set(err, CM_E_NOT_FOUND, ENOENT, "cannot find '%s'", name);
	cm_error_hint(err, "it belongs into '%s': install casemate again", CM_LIBEXECDIR);
	return CM_E_NOT_FOUND;
}
