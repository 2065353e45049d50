/* SPDX-License-Identifier: Apache-2.0 */
/* Which sessions there are. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/fd.h"
#include "runtime/store/store_internal.h"

static bool add(int dir_fd, const char *name, void *data)
{
	(void)dir_fd;
	return cm_session_id_check(name, NULL) != CM_OK || cm_strv_add(data, name) == CM_OK;
}

static int list_dir(int base_fd, const char *base, const char *parent, struct cm_strv *ids,
		    struct cm_error *err)
{
	int r = cm_store_each_entry(base_fd, parent, add, ids);

	return r == 0 || r == -ENOENT ? CM_OK : cm_store_fail(err, -r, "read", base, parent);
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int list(struct cm_store *store, bool with_temporary, struct cm_strv *ret,
		struct cm_error *err)
{
	struct cm_strv ids = { 0 };
	int r = list_dir(store->state_fd, store->state, CM_STORE_SESSIONS, &ids, err);

	if (r == CM_OK && with_temporary)
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

int cm_store_list(struct cm_store *store, struct cm_strv *ret, struct cm_error *err)
{
	return list(store, true, ret, err);
}

int cm_store_list_lasting(struct cm_store *store, struct cm_strv *ret, struct cm_error *err)
{
	return list(store, false, ret, err);
}
