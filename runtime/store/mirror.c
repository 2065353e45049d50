/* SPDX-License-Identifier: Apache-2.0 */
/* Finding, making and locking mirrors. */
#include "runtime/store/mirror.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/fd.h"
#include "runtime/base/path.h"
#include "runtime/base/sha256.h"
#include "runtime/store/store_internal.h"

#define MIRRORS "mirrors"
#define DATA "data"
/* of a digest's 64: a name that nothing else has */
#define KEY_LEN 32

/* Others cannot get here: the directories above are the caller's alone. */
static int make_data(int dir_fd, const char *path, uint32_t owner, struct cm_error *err)
{
	CM_AUTO_FD int fd = -1;
	struct stat st;

	if (mkdirat(dir_fd, DATA, 0755) < 0 && errno != EEXIST)
		return cm_store_fail(err, errno, "make directory", path, DATA);
	fd = cm_store_openat(dir_fd, DATA, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0 || fstat(fd, &st) < 0)
		return cm_store_fail(err, errno, "open directory", path, DATA);
	if (owner != 0 && st.st_uid != owner && fchown(fd, owner, owner) < 0)
		return cm_store_fail(err, errno, "give away directory", path, DATA);
	return CM_OK;
}

static int lock(int dir_fd, const char *path, int *ret_fd, struct cm_error *err)
{
	int r = cm_store_lock_file(dir_fd, false, ret_fd);

	if (r < 0)
		return cm_store_fail(err, -r, "lock", path, CM_STORE_LOCK);
	if (r == 0)
		return CM_OK;
	cm_error_set(err, CM_E_BUSY, 0, "the mirror '%s' is in use", path);
	return CM_E_BUSY;
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
	char key[CM_SHA256_HEX_SIZE];
	int r = cm_store_open_private(store->cache, "no cache directory", "set XDG_CACHE_HOME",
				      &cache_fd, err);

	cm_sha256_hex(identity, strlen(identity), key);
	key[KEY_LEN] = '\0';
	if (r == CM_OK)
		r = cm_store_subdir(cache_fd, store->cache, MIRRORS, &mirrors_fd, err);
	if (r == CM_OK)
		r = cm_store_subdir(mirrors_fd, store->cache, key, &dir_fd, err);
	if (r < 0)
		return r;
	named = cm_asprintf("%s/" MIRRORS "/%s", store->cache, key);
	/* without a link on the way: who mounts it follows none */
	path = named ? cm_path_real(named) : NULL;
	data = path ? cm_asprintf("%s/" DATA, path) : NULL;
	if (!data)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the mirror");
	r = lock(dir_fd, path, &lock_fd, err);
	if (r == CM_OK)
		r = make_data(dir_fd, path, owner, err);
	if (r < 0)
		return r;
	ret->dir = cm_ptr_take(&data);
	ret->lock_fd = cm_fd_take(&lock_fd);
	return CM_OK;
}

void cm_store_mirror_close(struct cm_store_mirror *mirror)
{
	cm_fd_close(&mirror->lock_fd);
	free(mirror->dir);
	mirror->dir = NULL;
}
