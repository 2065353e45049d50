/* SPDX-License-Identifier: Apache-2.0 */
/* Submodules' entries: taken out of the index before the checkout and put back after it. */
#include "isolation/checkout/gitlinks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "runtime/base/buf.h"
#include "runtime/base/fd.h"

struct cm_gitlink {
	char *path;
	git_oid id;
};

static int add(struct cm_gitlinks *links, const git_index_entry *e, struct cm_error *err)
{
	struct cm_gitlink link = { .id = e->id };

	if (links->n == links->capacity) {
		size_t capacity = links->capacity ? links->capacity * 2 : 16;
		struct cm_gitlink *v = cm_realloc(links->v, capacity * sizeof(*v));

		if (!v)
			return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
		links->v = v;
		links->capacity = capacity;
	}
	link.path = cm_strdup(e->path);
	if (!link.path)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	links->v[links->n++] = link;
	return CM_OK;
}

int cm_gitlinks_take(git_index *index, struct cm_gitlinks *ret, struct cm_error *err)
{
	/* from the end: removing moves what comes after, and a hostile tree may have a million */
	for (size_t i = git_index_entrycount(index); i > 0; i--) {
		const git_index_entry *e = git_index_get_byindex(index, i - 1);
		int r;

		if (e->mode != GIT_FILEMODE_COMMIT)
			continue;
		r = add(ret, e, err);
		if (r != CM_OK)
			return r;
		if (git_index_remove(index, ret->v[ret->n - 1].path, 0) < 0)
			return cm_library_error(err, "cannot set submodule '%s' aside",
						ret->v[ret->n - 1].path);
	}
	return CM_OK;
}

static int make_directories(int dir_fd, const char *path, struct cm_error *err)
{
	CM_AUTO_FREE char *copy = cm_strdup(path);
	CM_AUTO_FD int fd = -1;
	char *rest = copy;

	if (!copy)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	while (rest) {
		const char *name = strsep(&rest, "/");
		int parent = fd >= 0 ? fd : dir_fd;
		int next;

		if (mkdirat(parent, name, 0777) < 0 && errno != EEXIST)
			return cm_library_sys_error(
				err, errno, "cannot create the directory of submodule '%s'", path);
		next = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0 && (errno == ENOTDIR || errno == ELOOP)) {
			cm_error_set(err, CM_E_CHECKOUT, 0,
				     "a file of the commit is in the way of submodule '%s'", path);
			cm_error_hint(err, "check the source with 'git fsck'");
			return CM_E_CHECKOUT;
		}
		if (next < 0)
			return cm_library_sys_error(
				err, errno, "cannot open the directory of submodule '%s'", path);
		cm_fd_close(&fd);
		fd = next;
	}
	return CM_OK;
}

int cm_gitlinks_restore(git_index *index, int dir_fd, const struct cm_gitlinks *links,
			struct cm_error *err)
{
	for (size_t i = links->n; i > 0; i--) {
		const struct cm_gitlink *link = &links->v[i - 1];
		git_index_entry e = { .mode = GIT_FILEMODE_COMMIT, .path = link->path };
		int r;

		e.id = link->id;
		/* refuses "..", ".git" and its other spellings in every component */
		if (git_index_add(index, &e) < 0)
			return cm_library_error(err, "cannot add submodule '%s'", link->path);
		r = make_directories(dir_fd, link->path, err);
		if (r != CM_OK)
			return r;
	}
	if (links->n > 0 && git_index_write(index) < 0)
		return cm_library_error(err, "cannot write the index");
	return CM_OK;
}

void cm_gitlinks_clear(struct cm_gitlinks *links)
{
	for (size_t i = 0; i < links->n; i++)
		free(links->v[i].path);
	free(links->v);
	links->v = NULL;
	links->n = 0;
	links->capacity = 0;
}
