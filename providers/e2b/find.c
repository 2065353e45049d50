/* SPDX-License-Identifier: Apache-2.0 */
/* The sandbox of a session: by its name, in a list. */
#include <stdlib.h>
#include <string.h>

#include "providers/e2b/e2b_internal.h"
#include "providers/e2b/texts.h"
#include "runtime/base/fd.h"
#include "runtime/base/num.h"

#define LIFETIME_MAX_S (10ULL * 365 * 24 * 3600)

static uint64_t seconds_in(const struct cm_json *sandbox, const char *key)
{
	const char *text = cm_e2b_metadata(sandbox, key);
	uint64_t n = 0;

	return text && cm_parse_u64(text, key, 1, LIFETIME_MAX_S, &n, NULL) == CM_OK ? n : 0;
}

bool cm_e2b_is_state(const struct cm_json *sandbox, const char *state)
{
	return strcmp(cm_json_str(sandbox, "state", ""), state) == 0;
}

void cm_e2b_found_clear(struct cm_e2b_found *found)
{
	free(found->sandbox_id);
	free(found->template_id);
	free(found->alias);
	free(found->template_name);
	free(found->workdir);
	*found = (struct cm_e2b_found){ 0 };
}

/* false: memory. *ret: a copy of what is there. */
static bool copy_text(const char *text, char **ret)
{
	*ret = cm_strdup(text);
	return *ret || !text;
}

int cm_e2b_found_read(const struct cm_json *sandbox, struct cm_e2b_found *ret)
{
	const char *workdir = cm_e2b_metadata(sandbox, CM_E2B_KEY_WORKDIR);
	const char *user = cm_e2b_metadata(sandbox, CM_E2B_KEY_USER);
	int64_t ns = 0;
	int64_t end_ns = 0;

	(void)cm_e2b_time(cm_json_str(sandbox, "startedAt", ""), &ns);
	(void)cm_e2b_time(cm_json_str(sandbox, "endAt", ""), &end_ns);
	*ret = (struct cm_e2b_found){
		.is_root = user && strcmp(user, "root") == 0,
		.is_running = cm_e2b_is_state(sandbox, "running"),
		.started_ms = ns / 1000000,
		.ends_ms = end_ns / 1000000,
		.idle_s = seconds_in(sandbox, CM_E2B_KEY_IDLE),
		.lifetime_s = seconds_in(sandbox, CM_E2B_KEY_LIFETIME),
	};
	/* others of the team can write metadata, too */
	if (workdir && workdir[0] != '/')
		workdir = NULL;
	return copy_text(cm_json_str(sandbox, "sandboxID", ""), &ret->sandbox_id) &&
			       copy_text(cm_json_str(sandbox, "templateID", NULL),
					 &ret->template_id) &&
			       copy_text(cm_json_str(sandbox, "alias", NULL), &ret->alias) &&
			       copy_text(cm_e2b_metadata(sandbox, CM_E2B_KEY_TEMPLATE),
					 &ret->template_name) &&
			       copy_text(workdir, &ret->workdir)
		       ? CM_OK
		       : CM_E_NOMEM;
}

struct search {
	const char *id;
	struct cm_e2b_found found;
};

static int consider(void *data, const struct cm_json *sandbox)
{
	struct search *search = data;
	const char *id = cm_e2b_metadata(sandbox, CM_E2B_KEY_ID);
	bool is_running = cm_e2b_is_state(sandbox, "running");
	struct cm_e2b_found *f = &search->found;

	if (!id || strcmp(id, search->id) != 0)
		return 0;
	/* the newest, which comes first, but one that runs before one that does not */
	if (f->sandbox_id && (f->is_running || !is_running))
		return 0;
	cm_e2b_found_clear(f);
	return cm_e2b_found_read(sandbox, f);
}

int cm_e2b_find(struct cm_e2b *e, const char *id, const struct cm_call *call,
		struct cm_e2b_found *ret, struct cm_error *err)
{
	struct search search = { .id = id };
	int r = cm_e2b_each_sandbox(e, CM_E2B_KEY_ID, id, call, consider, &search, err);

	if (r == CM_E_NOMEM)
		(void)cm_e2b_no_memory(err);
	if (r < 0) {
		cm_e2b_found_clear(&search.found);
		/* a list that is not there is no name that is not there */
		return cm_e2b_no_absence(r, err);
	}
	if (!search.found.sandbox_id)
		return CM_E_NOT_FOUND;
	*ret = search.found;
	return CM_OK;
}
