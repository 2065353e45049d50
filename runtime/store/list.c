/* SPDX-License-Identifier: Apache-2.0 */
/* Which sessions there are. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/fd.h"
#include "runtime/store/store_internal.h"

static int list_dir(int base_fd, const char *base, const char *parent, struct cm_strv *ids,
		    struct cm_error *err)
{
	const struct dirent *e;
	int r = CM_OK;
	int fd = cm_store_openat(base_fd, parent, O_RDONLY | O_DIRECTORY, 0);
	DIR *dir;

	if (fd < 0 && errno == ENOENT)
		return CM_OK;
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		r = cm_store_fail(err, errno, "read", base, parent);
		cm_fd_close(&fd);
		return r;
	}
	while (r == CM_OK && (e = readdir(dir)) != NULL)
		if (cm_session_id_check(e->d_name, NULL) == CM_OK &&
		    cm_strv_add(ids, e->d_name) != CM_OK)
			r = cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	(void)closedir(dir);
	return r;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int cm_store_list(struct cm_store *store, struct cm_strv *ret, struct cm_error *err)
{
	struct cm_strv ids = { 0 };
	int r = list_dir(store->state_fd, store->state, CM_STORE_SESSIONS, &ids, err);

	if (r == CM_OK)
		r = list_dir(store->runtime_fd, store->runtime, CM_STORE_TMP, &ids, err);
	if (r != CM_OK) {
		cm_strv_clear(&ids);
		return r;
	}
	if (ids.n > 1)
		qsort(ids.v, ids.n, sizeof(ids.v[0]), compare);
	*ret = ids;
	return CM_OK;
}
