/* SPDX-License-Identifier: Apache-2.0 */
/* Finding, making and locking mirrors. */
#include "runtime/store/mirror.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/buf.h"
#include "runtime/base/fd.h"
#include "runtime/base/path.h"
#include "runtime/base/sha256.h"
#include "runtime/store/store_internal.h"

#define DATA "data"
#define SALT "salt"
/* sixteen hex digits */
#define SALT_SIZE 17

/* Others cannot get here: the directories above are the caller's alone. */
static int make_data(int dir_fd, const char *path, uint32_t owner, struct cm_error *err)
{
	CM_AUTO_FD int fd = -1;
	struct stat st;

	if (mkdirat(dir_fd, DATA, 0755) < 0 && errno != EEXIST)
		return cm_store_fail(err, errno, "make directory", path, DATA);
	/* who writes in it owns it, and can have closed it; it is a mount there, so never a link */
	if (fchmodat(dir_fd, DATA, 0755, 0) < 0)
		return cm_store_fail(err, errno, "open directory", path, DATA);
	fd = cm_store_openat(dir_fd, DATA, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0 || fstat(fd, &st) < 0)
		return cm_store_fail(err, errno, "open directory", path, DATA);
	if (owner != 0 && st.st_uid != owner && fchown(fd, owner, owner) < 0)
		return cm_store_fail(err, errno, "give away directory", path, DATA);
	return CM_OK;
}

static int lock(int mirrors_fd, const char *key, const char *path, int *ret_dir_fd,
		int *ret_lock_fd, struct cm_error *err)
{
	int r = mkdirat(mirrors_fd, key, 0700) < 0 && errno != EEXIST ? -errno : 0;

	if (r < 0)
		return cm_store_fail(err, -r, "make directory", path, NULL);
	r = cm_store_lock_dir(mirrors_fd, key, false, ret_dir_fd, ret_lock_fd);
	if (r < 0)
		return cm_store_fail(err, -r, "lock", path, CM_STORE_LOCK);
	if (r == 0)
		return CM_OK;
	cm_error_set(err, CM_E_BUSY, 0, "the mirror '%s' is in use", path);
	return CM_E_BUSY;
}

/*
 * Names are in messages, and in what others back up: without the file beside them nobody can tell by
 * them which credential somebody had.
 */
static int read_salt(int mirrors_fd, const char *path, char salt[SALT_SIZE], struct cm_error *err)
{
	ssize_t n = cm_read_file_at(mirrors_fd, SALT, salt, SALT_SIZE);
	int r;

	if (n == SALT_SIZE - 1)
		return CM_OK;
	cm_store_random_hex(salt);
	r = cm_replace_file_at(mirrors_fd, SALT, salt, SALT_SIZE - 1, 0600, false);
	if (r < 0)
		return cm_store_fail(err, -r, "write", path, SALT);
	/* of two who made one at the same time one holds */
	n = cm_read_file_at(mirrors_fd, SALT, salt, SALT_SIZE);
	return n == SALT_SIZE - 1 ? CM_OK : cm_store_fail(err, EIO, "read", path, SALT);
}

static int name_of(int mirrors_fd, const char *path, const char *identity, char *ret_key,
		   struct cm_error *err)
{
	char digest[CM_SHA256_HEX_SIZE];
	char salt[SALT_SIZE];
	struct cm_buf text;
	int r = read_salt(mirrors_fd, path, salt, err);

	if (r < 0)
		return r;
	cm_buf_init(&text, SALT_SIZE + strlen(identity));
	/* at once: growing leaves copies behind */
	cm_buf_reserve(&text, SALT_SIZE + strlen(identity));
	cm_buf_puts(&text, salt);
	cm_buf_puts(&text, identity);
	r = cm_buf_status(&text);
	if (r == CM_OK)
		cm_sha256_hex(text.data, text.len, digest);
	if (text.data)
		explicit_bzero(text.data, text.len);
	cm_buf_clear(&text);
	if (r < 0)
		return cm_error_set(err, r, 0, "no memory for the mirror");
	/* of a digest's 64: a name that nothing else has */
	memcpy(ret_key, digest, CM_STORE_MIRROR_KEY_SIZE - 1);
	ret_key[CM_STORE_MIRROR_KEY_SIZE - 1] = '\0';
	return CM_OK;
}

int cm_store_mirror_open(struct cm_store *store, const char *identity, uint32_t owner,
			 struct cm_store_mirror *ret, struct cm_error *err)
{
	CM_AUTO_FREE char *named = NULL;
	CM_AUTO_FREE char *path = NULL;
	CM_AUTO_FREE char *data = NULL;
	CM_AUTO_FD int cache_fd = -1;
	CM_AUTO_FD int mirrors_fd = -1;
	CM_AUTO_FD int dir_fd = -1;
	CM_AUTO_FD int lock_fd = -1;
	char key[CM_STORE_MIRROR_KEY_SIZE];
	int r = cm_store_open_private(store->cache, "no cache directory", "set XDG_CACHE_HOME",
				      &cache_fd, err);

	if (r == CM_OK)
		r = cm_store_subdir(cache_fd, store->cache, CM_STORE_MIRRORS, &mirrors_fd, err);
	if (r == CM_OK)
		r = name_of(mirrors_fd, store->cache, identity, key, err);
	if (r < 0)
		return r;
	named = cm_asprintf("%s/" CM_STORE_MIRRORS "/%s", store->cache, key);
	if (!named)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the mirror");
	r = lock(mirrors_fd, key, named, &dir_fd, &lock_fd, err);
	if (r == CM_OK)
		r = make_data(dir_fd, named, owner, err);
	if (r < 0)
		return r;
	/* without a link on the way: who mounts it follows none */
	path = cm_path_real(named);
	data = path ? cm_asprintf("%s/" DATA, path) : NULL;
	if (!data)
		return cm_error_set(err, CM_E_NOMEM, errno, "cannot find the mirror '%s'", named);
	ret->dir = cm_ptr_take(&data);
	ret->lock_fd = cm_fd_take(&lock_fd);
	ret->mirrors_fd = cm_fd_take(&mirrors_fd);
	memcpy(ret->key, key, sizeof(ret->key));
	return CM_OK;
}

int cm_store_mirror_used(struct cm_store_mirror *mirror, struct cm_error *err)
{
	char name[CM_STORE_NAME_SIZE];
	CM_AUTO_FD int fd = -1;

	cm_store_name(name, mirror->key, CM_STORE_USED);
	fd = cm_store_openat(mirror->mirrors_fd, name, O_WRONLY | O_CREAT, 0600);
	if (fd < 0 || futimens(fd, NULL) < 0)
		return cm_store_fail(err, errno, "write", mirror->dir, CM_STORE_USED);
	return CM_OK;
}

static bool was_used(const struct cm_store_mirror *mirror)
{
	char name[CM_STORE_NAME_SIZE];
	struct stat st;

	cm_store_name(name, mirror->key, CM_STORE_USED);
	return fstatat(mirror->mirrors_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

void cm_store_mirror_close(struct cm_store_mirror *mirror)
{
	/* whoever waits for the lock sees that it is gone, and begins again */
	if (mirror->lock_fd >= 0 && !was_used(mirror))
		(void)cm_store_remove_locked_dir(mirror->mirrors_fd, mirror->key);
	cm_fd_close(&mirror->mirrors_fd);
	cm_fd_close(&mirror->lock_fd);
	free(mirror->dir);
	mirror->dir = NULL;
}
