/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directories that are filled once and then shared, read-only, by every session that wants the same.
 *
 *	<runtime>/skeletons/<name>/lock   the key; flock: shared by all who use it, exclusive to
 *	                                  remove it
 *	                          /...    what the filler made
 *	                   /.<hex>/       one being made
 *
 * The name is a hash of the key, and a number where two keys have the same. Complete from the moment
 * it has its name, which a rename gives it, and never changed afterwards.
 * A file system that survives a reboot may lose contents that were never synced and keep the name:
 * there the name says in which boot it was made.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/hash.h"
#include "runtime/base/path.h"
#include "runtime/store/store_internal.h"

/* ones that nobody uses, kept for whoever comes next: a few projects, each some 60 small nodes */
#define KEEP 48
#define TRIES 16
enum {
	ABSENT = 1,
	OTHER_KEY
};
/* of a boot id: nobody chooses it to be like another */
#define BOOT_DIGITS 8
#define NAME_SIZE 40

static int fail(const struct cm_store *store, int sys_errno, const char *what, const char *name,
		struct cm_error *err)
{
	CM_AUTO_FREE char *dir = cm_asprintf("%s/" CM_STORE_SKELETONS, store->runtime);

	return cm_store_fail(err, sys_errno, what, dir ? dir : store->runtime, name);
}

/* What names of this boot end with; "" where nothing survives one. */
static void boot_suffix(const struct cm_store *store, char buf[BOOT_DIGITS + 2])
{
	char boot[64] = "";
	struct statfs fs;

	if (fstatfs(store->runtime_fd, &fs) < 0 ||
	    (fs.f_type != TMPFS_MAGIC && fs.f_type != RAMFS_MAGIC))
		(void)cm_read_file_at(AT_FDCWD, "/proc/sys/kernel/random/boot_id", boot,
				      sizeof(boot));
	(void)snprintf(buf, BOOT_DIGITS + 2, "%s%.*s", boot[0] != '\0' ? "." : "", BOOT_DIGITS,
		       boot);
}

static int lock(int fd, int how)
{
	int r;

	do
		r = flock(fd, how);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

static int compare(int fd, const struct stat *st, const struct cm_buf *key)
{
	CM_AUTO_FREE char *has = NULL;
	int r;

	if ((uint64_t)st->st_size != key->len)
		return OTHER_KEY;
	has = cm_malloc(key->len + 1);
	if (!has)
		return -ENOMEM;
	r = cm_read_exact(fd, has, key->len);
	if (r < 0)
		return r;
	return memcmp(has, key->data, key->len) == 0 ? 0 : OTHER_KEY;
}

/* 0, ABSENT (or taken away meanwhile), OTHER_KEY, or -errno. */
static int find(int base_fd, const char *name, const struct cm_buf *key, int *ret_fd)
{
	CM_AUTO_FD int fd = -1;
	char path[CM_STORE_NAME_SIZE];
	struct stat st;
	int r;

	cm_store_name(path, name, CM_STORE_LOCK);
	fd = cm_store_openat(base_fd, path, O_RDONLY, 0);
	if (fd < 0)
		return errno == ENOENT ? ABSENT : -errno;
	r = lock(fd, LOCK_SH);
	if (r < 0 || fstat(fd, &st) < 0)
		return r < 0 ? r : -errno;
	if (st.st_nlink == 0)
		return ABSENT;
	r = compare(fd, &st, key);
	if (r == 0)
		*ret_fd = cm_fd_take(&fd);
	return r;
}

static bool try_remove(int base_fd, const char *name)
{
	CM_AUTO_FD int dir_fd = -1;
	CM_AUTO_FD int lock_fd = -1;

	if (cm_store_lock_dir(base_fd, name, false, &dir_fd, &lock_fd) != 0)
		return false;
	(void)cm_store_remove_locked_dir(base_fd, name);
	return true;
}

struct listing {
	/* the oldest ones, first come first */
	struct {
		char name[NAME_SIZE];
		int64_t mtime_ns;
	} v[4 * KEEP];
	size_t n;
};

static bool add_entry(int dir_fd, const char *name, void *data)
{
	struct listing *l = data;
	struct stat st;
	int64_t mtime_ns;
	size_t at = l->n;

	if (strlen(name) >= sizeof(l->v[0].name) ||
	    fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return true;
	if (l->n == CM_ARRAY_SIZE(l->v))
		return false;
	mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
	while (at > 0 && l->v[at - 1].mtime_ns > mtime_ns)
		at--;
	memmove(&l->v[at + 1], &l->v[at], (l->n - at) * sizeof(l->v[0]));
	(void)snprintf(l->v[at].name, sizeof(l->v[at].name), "%s", name);
	l->v[at].mtime_ns = mtime_ns;
	l->n++;
	return true;
}

/*
 * What a maker left that died, and the oldest of too many. Only when one was made, and when that is
 * locked: where all others are in use it would be the one to go.
 */
static void prune(const struct cm_store *store, int base_fd)
{
	struct listing l = { .n = 0 };
	size_t left;

	(void)cm_store_each_entry(store->runtime_fd, CM_STORE_SKELETONS, add_entry, &l);
	left = l.n;
	for (size_t i = 0; i < l.n; i++) {
		bool is_half_made = l.v[i].name[0] == '.';

		if ((is_half_made || left > KEEP) && try_remove(base_fd, l.v[i].name))
			left--;
	}
}

/*
 * A directory that nobody looks for, with its lock. 0; 1 when somebody took it for a dead one's
 * before it had one; or -errno, and it is gone.
 */
static int make_half(int base_fd, const char *half, int *ret_dir_fd, int *ret_lock_fd)
{
	int r;

	if (mkdirat(base_fd, half, 0700) < 0)
		return -errno;
	r = cm_store_lock_dir(base_fd, half, false, ret_dir_fd, ret_lock_fd);
	if (r < 0)
		(void)cm_remove_tree_at(base_fd, half);
	return r;
}

/* Made under a name that nobody looks for, then given its own. CM_OK: look again; or an error. */
static int make(const struct cm_store *store, int base_fd, const char *name,
		const struct cm_buf *key, cm_store_fill_fn *fill, void *data, struct cm_error *err)
{
	CM_AUTO_FD int dir_fd = -1;
	CM_AUTO_FD int lock_fd = -1;
	char random[17];
	char half[NAME_SIZE];
	int r;

	cm_store_random_hex(random);
	(void)snprintf(half, sizeof(half), ".%s", random);
	r = make_half(base_fd, half, &dir_fd, &lock_fd);
	if (r != 0)
		return r < 0 ? fail(store, -r, "make", half, err) : CM_OK;
	/* from here on nobody takes it for a dead one's */
	r = cm_write_all(lock_fd, key->data, key->len);
	r = r < 0 ? fail(store, -r, "write", half, err) : fill(dir_fd, data, err);
	if (r == CM_OK && renameat(base_fd, half, base_fd, name) == 0)
		return CM_OK;
	if (r == CM_OK && errno != EEXIST && errno != ENOTEMPTY)
		r = fail(store, errno, "name", name, err);
	/* somebody else was quicker, or it failed */
	(void)cm_store_remove_locked_dir(base_fd, half);
	return r;
}

/* The directory of the lock, without a link on the way: who mounts it follows none. */
static int describe(struct cm_store_skeleton *ret)
{
	char link[64];
	char real[PATH_MAX];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", ret->lock_fd);
	n = readlink(link, real, sizeof(real) - 1);
	if (n < 0)
		return -errno;
	n -= (ssize_t)strlen("/" CM_STORE_LOCK);
	if (n <= 0)
		return -ENAMETOOLONG;
	real[n] = '\0';
	ret->dir = cm_strdup(real);
	return ret->dir ? 0 : -ENOMEM;
}

int cm_store_skeleton_open(struct cm_store *store, const struct cm_buf *key, cm_store_fill_fn *fill,
			   void *data, struct cm_store_skeleton *ret, struct cm_error *err)
{
	CM_AUTO_FD int base_fd = -1;
	char boot[BOOT_DIGITS + 2];
	char name[NAME_SIZE];
	unsigned int number = 0;
	bool is_made = false;
	int r = cm_store_subdir(store->runtime_fd, store->runtime, CM_STORE_SKELETONS, &base_fd,
				err);

	if (r < 0)
		return r;
	*ret = (struct cm_store_skeleton){ .lock_fd = -1 };
	boot_suffix(store, boot);
	for (int i = 0; i < TRIES; i++) {
		(void)snprintf(name, sizeof(name), "%016llx-%u%s",
			       (unsigned long long)cm_hash(CM_HASH_START, key->data, key->len),
			       number, boot);
		r = find(base_fd, name, key, &ret->lock_fd);
		if (r == 0)
			r = describe(ret);
		if (r == 0 && is_made)
			prune(store, base_fd);
		if (r < 0)
			cm_store_skeleton_close(ret);
		if (r <= 0)
			return r < 0 ? fail(store, -r, "open", name, err) : CM_OK;
		if (r == OTHER_KEY) {
			number++;
			continue;
		}
		r = make(store, base_fd, name, key, fill, data, err);
		if (r < 0)
			return r;
		is_made = true;
	}
	cm_error_set(err, CM_E_BUSY, 0, "'%s/" CM_STORE_SKELETONS "' changes all the time",
		     store->runtime);
	cm_error_hint(err, "remove it while no session runs");
	return CM_E_BUSY;
}

void cm_store_skeleton_close(struct cm_store_skeleton *skeleton)
{
	cm_fd_close(&skeleton->lock_fd);
	free(skeleton->dir);
	skeleton->dir = NULL;
}
