/* SPDX-License-Identifier: Apache-2.0 */
/* Looking for FIFOs, sockets and devices in a git directory, by lists of names where those do. */
#include "isolation/checkout/regular.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/fd.h"
#include "runtime/base/path.h"

/* refs/remotes/<remote>/<group>/<name>, and as deep again */
#define DEPTH_MAX 8

/* Of what is looked at: 0, or AT_SYMLINK_NOFOLLOW where a link is refused as well */
struct rules {
	int flags;
	const char *whose;
	const char *hint;
};

/* name: "" for dir itself */
static int not_a_file(const struct rules *rules, const char *dir, const char *name,
		      struct cm_error *err)
{
	cm_error_set(err, CM_E_CHECKOUT, 0, "'%s%s%s' in the %s is not a regular file", dir,
		     name[0] != '\0' ? "/" : "", name, rules->whose);
	cm_error_hint(err, "%s", rules->hint);
	return CM_E_CHECKOUT;
}

static bool is_file_or_dir(const struct rules *rules, int dir_fd, const char *name)
{
	struct stat st;

	return fstatat(dir_fd, name, &st, rules->flags) < 0 || S_ISREG(st.st_mode) ||
	       S_ISDIR(st.st_mode);
}

static bool is_good_entry(const struct rules *rules, int dir_fd, const struct dirent *e)
{
	return e->d_type == DT_REG || e->d_type == DT_DIR ||
	       is_file_or_dir(rules, dir_fd, e->d_name);
}

static void close_dir(DIR **d)
{
	if (*d)
		(void)closedir(*d);
}

/* Links to directories are not gone through: where they lead is not this directory's. */
static int check_tree(const struct rules *rules, int parent_fd, const char *name, const char *path,
		      int depth, struct cm_error *err)
{
	int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	__attribute__((cleanup(close_dir))) DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	if (!d) {
		if (fd >= 0)
			(void)close(fd);
		return CM_OK;
	}
	while ((e = readdir(d))) {
		CM_AUTO_FREE char *below = NULL;
		int r = CM_OK;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (!is_good_entry(rules, fd, e))
			return not_a_file(rules, path, e->d_name, err);
		if ((e->d_type != DT_DIR && e->d_type != DT_UNKNOWN) || depth >= DEPTH_MAX)
			continue;
		below = cm_path_join(path, e->d_name);
		if (!below)
			return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
		r = check_tree(rules, fd, e->d_name, below, depth + 1, err);
		if (r != CM_OK)
			return r;
	}
	return CM_OK;
}

static int check(const struct rules *rules, const char *git_dir, struct cm_error *err)
{
	static const char *const names[] = {
		"HEAD",	 "config",  "config.worktree", "commondir",    "gitdir",
		"index", "shallow", "packed-refs",     "info/exclude", "info/attributes",
	};
	static const char *const trees[] = { "refs", "objects" };
	CM_AUTO_FD int fd = open(git_dir, O_PATH | O_CLOEXEC);
	struct stat st;
	int r = CM_OK;

	if (fd < 0 || fstat(fd, &st) < 0)
		return CM_OK;
	/* a ".git" file is read as one, too */
	if (!S_ISDIR(st.st_mode))
		return S_ISREG(st.st_mode) ? CM_OK : not_a_file(rules, git_dir, "", err);
	for (size_t i = 0; i < CM_ARRAY_SIZE(names); i++) {
		if (!is_file_or_dir(rules, fd, names[i]))
			return not_a_file(rules, git_dir, names[i], err);
	}
	for (size_t i = 0; i < CM_ARRAY_SIZE(trees) && r == CM_OK; i++)
		r = check_tree(rules, fd, trees[i], trees[i], 0, err);
	return r;
}

int cm_regular_check(const char *git_dir, struct cm_error *err)
{
	static const struct rules rules = {
		0, "source",
		"remove it, or give a clone that git made: it would wait for whoever is at its "
		"other end"
	};

	return check(&rules, git_dir, err);
}

int cm_regular_check_own(const char *git_dir, struct cm_error *err)
{
	static const struct rules rules = {
		AT_SYMLINK_NOFOLLOW, "git directory of the checkout",
		"put back what git had there; or move the checkout away, and it is made anew"
	};

	return check(&rules, git_dir, err);
}
