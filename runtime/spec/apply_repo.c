/* SPDX-License-Identifier: Apache-2.0 */
/* One setting onto a spec: which repository is checked out, and what of it. */
#include <stdlib.h>
#include <string.h>

#include "runtime/base/fd.h"
#include "runtime/base/gitref.h"
#include "runtime/base/giturl.h"
#include "runtime/spec/apply_internal.h"

void cm_apply_forget_repo(struct cm_apply *a)
{
	static const enum cm_key keys[] = { CM_KEY_REPO,   CM_KEY_REF,	CM_KEY_PR,
					    CM_KEY_BRANCH, CM_KEY_FROM, CM_KEY_SPARSE };
	struct cm_spec *spec = a->spec;

	cm_spec_forget_credential(spec);
	free(cm_ptr_take(&spec->repo));
	free(cm_ptr_take(&spec->ref));
	spec->pr = 0;
	free(cm_ptr_take(&spec->branch));
	free(cm_ptr_take(&spec->base));
	cm_strv_clear(&spec->sparse);
	for (size_t i = 0; i < CM_ARRAY_SIZE(keys); i++)
		cm_apply_forget(a, keys[i]);
}

/* Files are copied, committed and shown; flags are gone with the process. */
static int password_in_a_file(const struct cm_apply *a, struct cm_error *err)
{
	cm_error_set(err, CM_E_INVALID, 0, "%s must not have a password in its address",
		     a->setting->what);
	cm_error_hint(err, "a file is no place for one: leave it out, and put it into the variable "
			   "CASEMATE_GIT_TOKEN");
	return CM_E_INVALID;
}

/* Takes what it keeps out of *url. */
static int store(struct cm_apply *a, struct cm_giturl *url, struct cm_error *err)
{
	bool is_local = url->kind == CM_GITURL_PATH || url->kind == CM_GITURL_FILE;
	struct cm_spec *spec = a->spec;
	char *repo = NULL;
	int r = CM_OK;

	if (is_local)
		r = cm_apply_make_absolute(a, url->path, &repo, err);
	else
		repo = cm_ptr_take(&url->text);
	if (r == CM_OK)
		r = cm_apply_store(a, repo, err);
	if (r != CM_OK)
		return r;
	cm_spec_forget_credential(spec);
	spec->repo_user = cm_ptr_take(&url->user);
	spec->repo_secret = cm_ptr_take(&url->password);
	spec->workspace_kind = CM_WORKSPACE_REPO;
	spec->is_workspace_read_only = false;
	free(cm_ptr_take(&spec->workspace));
	cm_apply_forget(a, CM_KEY_WORKSPACE);
	return CM_OK;
}

int cm_apply_repo(struct cm_apply *a, struct cm_error *err)
{
	const char *value = a->setting->value;
	struct cm_giturl url = { 0 };
	int r = cm_apply_check_name(a, value, err);

	if (r != CM_OK)
		return r;
	r = cm_giturl_parse(value, &url, err);
	if (r == CM_E_NOMEM)
		return cm_apply_no_memory(err);
	if (r != CM_OK) {
		cm_error_wrap(err, "%s", a->setting->what);
		return r;
	}
	/* what has a place was read from a file */
	if (url.password && a->setting->place)
		r = password_in_a_file(a, err);
	else
		r = store(a, &url, err);
	cm_giturl_clear(&url);
	return r;
}

int cm_apply_branch(struct cm_apply *a, struct cm_error *err)
{
	const char *value = a->setting->value;
	int r = cm_apply_check_name(a, value, err);

	if (r != CM_OK)
		return r;
	if (!cm_gitref_is_branch(value)) {
		cm_error_set(err, CM_E_INVALID, 0, "%s: a branch cannot be called '%.100s'",
			     a->setting->what, value);
		cm_error_hint(err,
			      "'git help check-ref-format' has the rules; for example "
			      "--branch %s",
			      a->info->example);
		return CM_E_INVALID;
	}
	return cm_apply_store(a, cm_strdup(value), err);
}
