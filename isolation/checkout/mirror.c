/* SPDX-License-Identifier: Apache-2.0 */
/* Opening, making and mending a mirror. */
#include "isolation/checkout/mirror.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "isolation/checkout/regular.h"
#include "runtime/base/fd.h"
#include "runtime/base/path.h"
#include "runtime/base/text.h"

#define NEW_NAME CM_MIRROR_REPOSITORY ".new"

static int cannot_write(const struct cm_mirror *m, int sys_errno, struct cm_error *err)
{
	return cm_library_sys_error(err, sys_errno, "cannot write the mirror '%s'", m->path);
}

/* The indexer's temporary names are not those of a finished pack. */
static bool is_pack(const char *name)
{
	return cm_text_matches("pack-*.pack", name) || cm_text_matches("pack-*.idx", name);
}

static int sweep_packs(const struct cm_mirror *m, struct cm_error *err)
{
	int fd = openat(m->dir_fd, CM_MIRROR_REPOSITORY "/objects/pack",
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	int r = CM_OK;

	/* as in a mirror in which nothing was fetched yet */
	if (!dir) {
		if (fd >= 0)
			(void)close(fd);
		return CM_OK;
	}
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
	while (r == CM_OK && (entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.' || is_pack(entry->d_name))
			continue;
		if (unlinkat(fd, entry->d_name, 0) < 0 && errno != ENOENT)
			r = cannot_write(m, errno, err);
	}
	(void)closedir(dir);
	return r;
}

/* Whole or not at all: it has its name when it is a repository. */
static int make(struct cm_mirror *m, struct cm_error *err)
{
	git_repository_init_options opts = GIT_REPOSITORY_INIT_OPTIONS_INIT;
	CM_AUTO_FREE char *path = cm_asprintf("%s.new", m->path);
	git_repository *repo = NULL;
	int r;

	if (!path)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	r = cm_remove_tree_at(m->dir_fd, NEW_NAME);
	if (r < 0)
		return cannot_write(m, -r, err);
	opts.flags = GIT_REPOSITORY_INIT_BARE | GIT_REPOSITORY_INIT_NO_REINIT |
		     GIT_REPOSITORY_INIT_MKDIR;
	opts.initial_head = "main";
	if (git_repository_init_ext(&repo, path, &opts) < 0)
		return cm_library_error(err, "cannot create the mirror '%s'", m->path);
	git_repository_free(repo);
	if (renameat(m->dir_fd, NEW_NAME, m->dir_fd, CM_MIRROR_REPOSITORY) < 0)
		return cannot_write(m, errno, err);
	m->is_new = true;
	if (git_repository_open_bare(&m->repo, m->path) < 0)
		return cm_library_error(err, "cannot open the mirror '%s'", m->path);
	return CM_OK;
}

int cm_mirror_renew(struct cm_mirror *m, struct cm_error *err)
{
	int r;

	git_repository_free(m->repo);
	m->repo = NULL;
	r = cm_remove_tree_at(m->dir_fd, CM_MIRROR_REPOSITORY);
	return r < 0 ? cannot_write(m, -r, err) : make(m, err);
}

/* False: nothing there that could be gone on with. */
static bool open_existing(struct cm_mirror *m)
{
	struct cm_error why = CM_ERROR_INIT;

	if (cm_regular_check(m->path, &why) < 0)
		return false;
	return git_repository_open_bare(&m->repo, m->path) == 0;
}

static int open_or_make(struct cm_mirror *m, const char *dir, bool is_fresh, struct cm_error *err)
{
	m->path = cm_path_join(dir, CM_MIRROR_REPOSITORY);
	if (!m->path)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	m->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (m->dir_fd < 0)
		return cm_library_sys_error(err, errno, "cannot open the mirror's directory '%s'",
					    dir);
	if (is_fresh || !open_existing(m))
		return cm_mirror_renew(m, err);
	return sweep_packs(m, err);
}

int cm_mirror_open(const char *dir, bool is_fresh, struct cm_mirror *ret, struct cm_error *err)
{
	struct cm_mirror m = CM_MIRROR_INIT;
	int r = open_or_make(&m, dir, is_fresh, err);

	if (r < 0)
		cm_mirror_clear(&m);
	else
		*ret = m;
	return r;
}

void cm_mirror_clear(struct cm_mirror *m)
{
	git_repository_free(m->repo);
	cm_fd_close(&m->dir_fd);
	free(m->path);
	m->repo = NULL;
	m->path = NULL;
}
