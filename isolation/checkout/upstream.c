/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one place where the configuration of a checkout that is there is read, and added to. Nothing
 * that it says is done: a key is looked for, and written where it is missing.
 */
#include "isolation/checkout/upstream.h"

#include <string.h>

#include "runtime/base/fd.h"

static bool has_key(git_config *config, const char *key)
{
	git_config_entry *entry = NULL;
	bool has = git_config_get_entry(&entry, config, key) == 0;

	git_config_entry_free(entry);
	return has;
}

int cm_upstream_set(struct cm_existing *ex, const char *branch, struct cm_error *err)
{
	CM_AUTO_GIT(git_config) git_config *config = NULL;
	CM_AUTO_FREE char *path = cm_asprintf("%s/config", ex->git_path);
	CM_AUTO_FREE char *remote = cm_asprintf("branch.%s.remote", branch);
	CM_AUTO_FREE char *merge = cm_asprintf("branch.%s.merge", branch);
	CM_AUTO_FREE char *upstream = cm_asprintf("refs/heads/%s", branch);
	CM_AUTO_STRV struct cm_strv locked = { 0 };
	int r;

	if (!path || !remote || !merge || !upstream || cm_strv_add(&locked, "config") != CM_OK)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	r = cm_existing_will_lock(ex, &locked, err);
	if (r < 0)
		return r;
	if (git_config_open_ondisk(&config, path) < 0)
		return cm_library_error(err, "cannot read the configuration of '%s'", ex->path);
	if (has_key(config, remote) || has_key(config, merge))
		return CM_OK;
	if (git_config_set_string(config, remote, "origin") < 0 ||
	    git_config_set_string(config, merge, upstream) < 0)
		return cm_library_error(err, "cannot write the upstream of branch '%s'", branch);
	return CM_OK;
}
