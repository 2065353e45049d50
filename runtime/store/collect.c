/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What dead commands left: temporary sessions, and sessions half made or half removed.
 *
 * Whoever has the lock of a directory takes it away (lock_dir.c).
 *
 * On the way of every start, so it costs two stats when there is nothing, looks at a bounded
 * number of live ones, and never fails a start because of what it could not remove.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/store/store_internal.h"

/* Locks tried in one call; which ones differs from call to call where there are more. */
#define MAX_LOOKS 32

struct collector {
	struct cm_store *store;
	int (*remove_group)(const char *dir, void *data);
	void *data;
	/* state directories of temporary sessions: they have groups, and slots of their own */
	bool is_temporary;
	size_t n_skip;
	size_t n_looked;
};

static int remove_group(const struct collector *c, int dir_fd, const char *name)
{
	CM_AUTO_FREE char *path = NULL;
	struct stat st;

	if (!c->is_temporary || fstatat(dir_fd, CM_STORE_GROUPS, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	/* without the list nobody would find them again: for a caller that can */
	if (!c->remove_group)
		return CM_E_UNSUPPORTED;
	path = cm_asprintf("%s/%s/%s", c->store->runtime, CM_STORE_TMP, name);
	return path ? c->remove_group(path, c->data) : CM_E_NOMEM;
}

/* The session directory, where there was one: its files have the ids of the session's slot. */
static int remove_files(const struct collector *c, int dir_fd, const char *name)
{
	char root[PATH_MAX];
	CM_AUTO_FD int root_fd = -1;
	ssize_t n = c->is_temporary ? cm_read_file_at(dir_fd, CM_STORE_ROOT, root, sizeof(root))
				    : -ENOENT;

	if (n < 0)
		return n == -ENOENT ? 0 : (int)n;
	root_fd = open(root, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (root_fd < 0)
		return errno == ENOENT ? 0 : -errno;
	return cm_remove_tree_at(root_fd, name);
}

static void collect_one(const struct collector *c, int parent_fd, const char *name)
{
	CM_AUTO_FD int dir_fd = -1;
	CM_AUTO_FD int lock_fd = -1;
	uint32_t slot;

	if (cm_store_lock_dir(parent_fd, name, false, &dir_fd, &lock_fd) != 0)
		return;
	/* its keeper is still at work; or its groups or its files cannot go yet */
	if (cm_keeper_lock_is_held(dir_fd) || remove_group(c, dir_fd, name) != 0 ||
	    remove_files(c, dir_fd, name) != 0)
		return;
	slot = c->is_temporary ? cm_store_lock_slot(lock_fd) : CM_SLOT_NONE;
	if (cm_store_remove_locked_dir(parent_fd, name) == 0)
		cm_store_slot_release(c->store, slot, name);
}

/* Where to begin among n entries, so that all have their turn. */
static size_t start_of(size_t n)
{
	return n > MAX_LOOKS ? (size_t)cm_clock_mono_us() % n : 0;
}

static bool look(int dir_fd, const char *name, void *data)
{
	struct collector *c = data;

	if (c->n_skip > 0) {
		c->n_skip--;
		return true;
	}
	collect_one(c, dir_fd, name);
	return ++c->n_looked < MAX_LOOKS;
}

static int collect_dir(struct collector *c, int base_fd, const char *base, const char *parent,
		       struct cm_error *err)
{
	struct stat st;
	int r;

	if (fstatat(base_fd, parent, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? CM_OK : cm_store_fail(err, errno, "look at", base, parent);
	/* where links count subdirectories, two means that there is none */
	if (st.st_nlink == 2)
		return CM_OK;
	c->n_looked = 0;
	c->n_skip = start_of(st.st_nlink > 2 ? (size_t)st.st_nlink - 2 : 0);
	r = cm_store_each_entry(base_fd, parent, look, c);
	return r == 0 || r == -ENOENT ? CM_OK : cm_store_fail(err, -r, "read", base, parent);
}

int cm_store_collect(struct cm_store *store, int (*remove_group_fn)(const char *dir, void *data),
		     void *data, struct cm_error *err)
{
	struct collector c = { store, remove_group_fn, data, true, 0, 0 };
	int r = collect_dir(&c, store->runtime_fd, store->runtime, CM_STORE_TMP, err);

	c.is_temporary = false;
	if (r == CM_OK)
		r = collect_dir(&c, store->state_fd, store->state, CM_STORE_NEW, err);
	return r;
}
