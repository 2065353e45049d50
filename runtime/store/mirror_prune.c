/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mirrors that go: the old ones, and more where all together are too many bytes. Each is locked before
 * it is removed, so none goes that somebody uses; whoever waits for it finds it gone and makes another.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/store/mirror.h"
#include "runtime/store/store_internal.h"

/* below mirrors/: its time is that of the last look at all of them */
#define PRUNED "pruned"
#define DAY_S (24LL * 60 * 60)
/* of a directory tree that a jail has written */
#define DEPTH_MAX 32

struct found {
	char key[CM_STORE_MIRROR_KEY_SIZE];
	int64_t used_s;
	uint64_t bytes;
};

struct all {
	struct found *v;
	size_t n;
};

static uint64_t tree_bytes(int dir_fd, const char *name, int depth)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	uint64_t bytes = 0;
	struct stat st;

	if (!dir) {
		if (fd >= 0)
			(void)close(fd);
		return 0;
	}
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is ours alone */
	while ((entry = readdir(dir)) != NULL) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		bytes += (uint64_t)st.st_blocks * 512;
		if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX)
			bytes += tree_bytes(fd, entry->d_name, depth + 1);
	}
	(void)closedir(dir);
	return bytes;
}

static bool add(int dir_fd, const char *name, void *data)
{
	struct all *all = data;
	char used[CM_STORE_NAME_SIZE];
	struct found *v;
	struct stat st;

	bool is_key = strlen(name) == CM_STORE_MIRROR_KEY_SIZE - 1;

	/* what a death left of one that was being removed: first of all */
	if (!is_key && strncmp(name, CM_STORE_GONE, strlen(CM_STORE_GONE)) != 0)
		return true;
	v = cm_realloc(all->v, (all->n + 1) * sizeof(*v));
	if (!v)
		return false;
	all->v = v;
	v += all->n++;
	(void)snprintf(v->key, sizeof(v->key), "%s", name);
	cm_store_name(used, name, CM_STORE_USED);
	/* one that is being made has its lock, so that its age does not count */
	v->used_s =
		is_key && fstatat(dir_fd, used, &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_mtime : 0;
	v->bytes = tree_bytes(dir_fd, name, 0);
	return true;
}

static int by_age(const void *a, const void *b)
{
	const struct found *x = a;
	const struct found *y = b;

	return x->used_s < y->used_s ? -1 : x->used_s > y->used_s;
}

/* false: it is in use */
static bool remove_one(int mirrors_fd, const char *key)
{
	CM_AUTO_FD int dir_fd = -1;
	CM_AUTO_FD int lock_fd = -1;

	return cm_store_lock_dir(mirrors_fd, key, false, &dir_fd, &lock_fd) == 0 &&
	       cm_store_remove_locked_dir(mirrors_fd, key) == 0;
}

static void prune(int mirrors_fd, uint64_t max_bytes, int64_t max_age_s)
{
	struct all all = { NULL, 0 };
	int64_t now_s = cm_clock_real_ms() / 1000;
	uint64_t bytes = 0;

	(void)cm_store_each_entry(mirrors_fd, ".", add, &all);
	if (all.n > 0)
		qsort(all.v, all.n, sizeof(*all.v), by_age);
	for (size_t i = 0; i < all.n; i++)
		bytes += all.v[i].bytes;
	for (size_t i = 0; i < all.n; i++) {
		const struct found *f = &all.v[i];

		if (bytes <= max_bytes && now_s - f->used_s <= max_age_s)
			break;
		if (remove_one(mirrors_fd, f->key))
			bytes -= f->bytes;
	}
	free(all.v);
}

static int open_mirrors(struct cm_store *store)
{
	CM_AUTO_FD int cache_fd = open(store->cache, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return cache_fd < 0
		       ? -1
		       : cm_store_openat(cache_fd, CM_STORE_MIRRORS, O_RDONLY | O_DIRECTORY, 0);
}

void cm_store_mirrors_prune_to(struct cm_store *store, uint64_t max_bytes, int64_t max_age_s)
{
	CM_AUTO_FD int mirrors_fd = open_mirrors(store);

	if (mirrors_fd >= 0)
		prune(mirrors_fd, max_bytes, max_age_s);
}

void cm_store_mirrors_prune(struct cm_store *store)
{
	CM_AUTO_FD int mirrors_fd = open_mirrors(store);
	CM_AUTO_FD int pruned_fd = -1;
	struct stat st;

	if (mirrors_fd < 0 || (fstatat(mirrors_fd, PRUNED, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			       cm_clock_real_ms() / 1000 - st.st_mtime < DAY_S))
		return;
	/* before: who comes now does not look, too */
	pruned_fd = cm_store_openat(mirrors_fd, PRUNED, O_WRONLY | O_CREAT, 0600);
	if (pruned_fd < 0 || futimens(pruned_fd, NULL) < 0)
		return;
	prune(mirrors_fd, CM_STORE_MIRRORS_MAX, CM_STORE_MIRROR_DAYS * DAY_S);
}
