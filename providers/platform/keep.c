/* SPDX-License-Identifier: Apache-2.0 */
#include "providers/platform/keep.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "providers/remote/record.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/num.h"

#define KEY_TEMPLATE "template"
#define KEY_SEED "seed"
#define KEY_RESOURCE "resource_id"
#define KEY_INSTANCE "instance_url"
#define KEY_STATE "state"
/* names alone: values may be secrets */
#define KEY_ENV "env"
#define KEY_DEFINITION "definition"
#define STATE_STOPPED "stopped"
#define KEY_CHECKPOINT "checkpoint"
#define CAPTURED "captured"
/* its sidecar was asked, and did not answer */
#define KEY_SIDECAR "sidecar"
#define SIDECAR_NONE "none"

/* whose records they are: names of directories */
#define OF_SESSIONS "platform"
#define OF_TEMPLATES "platform-templates"

static struct cm_platform *platform_of(const struct cm_platform_session *s)
{
	return cm_platform_of(s->base.provider);
}

static int no_memory(struct cm_error *err)
{
	return cm_error_set(err, CM_E_NOMEM, 0, "no memory for a record");
}

/* --- whose ----------------------------------------------------------------------------------- */

static int open_records(struct cm_platform *p, const char *of, struct cm_records *ret,
			struct cm_error *err)
{
	return cm_records_open(p->base.config.config, of, ret, err);
}

/* Not the token: a project has several, and each of them is good for all of its sandboxes. */
static int account_of(const struct cm_platform *p, char ret[CM_RECORD_ACCOUNT_SIZE],
		      struct cm_error *err)
{
	const struct cm_platform_settings *s = &p->settings;
	CM_AUTO_FREE char *key = cm_asprintf("%s\n%s\n%s", s->is_e2b ? "e2b" : "railway",
					     s->project, s->environment);

	return key ? cm_record_account(key, s->url, ret, err) : no_memory(err);
}

/* CM_E_EXISTS: it is another's. */
static int check_account(struct cm_platform *p, const struct cm_record *record, const char *id,
			 struct cm_error *err)
{
	const char *is = cm_record_get(record, CM_RECORD_ACCOUNT);
	char own[CM_RECORD_ACCOUNT_SIZE];
	int r = account_of(p, own, err);

	if (r < 0 || (is && strcmp(is, own) == 0))
		return r;
	cm_error_set(err, CM_E_EXISTS, 0,
		     "'%s' is of another project, environment or address of the platform", id);
	cm_error_hint(err, "use another name, or set MASTRA_PROJECT_ID, MASTRA_ENVIRONMENT_ID, "
			   "SANDBOX_PROVIDER and MASTRA_WORKSPACE_PROXY_URL as they were");
	return CM_E_EXISTS;
}

static int read_own(struct cm_platform *p, const struct cm_records *records, const char *id,
		    struct cm_record *ret, struct cm_error *err)
{
	int r = cm_record_read(records, id, ret, err);

	if (r < 0)
		return r;
	r = check_account(p, ret, id, err);
	if (r < 0)
		cm_record_clear(ret);
	return r;
}

static int list_own(struct cm_platform *p, const char *of, struct cm_strv *ret,
		    struct cm_error *err)
{
	struct cm_records records = CM_RECORDS_INIT;
	CM_AUTO_STRV struct cm_strv ids = { 0 };
	int r = open_records(p, of, &records, err);

	if (r == CM_OK)
		r = cm_record_list(&records, &ids, err);
	for (size_t i = 0; i < ids.n && r == CM_OK; i++) {
		struct cm_record record = { 0 };

		/* what is another's, or has just gone, or cannot be read, keeps nobody from the others */
		if (read_own(p, &records, ids.v[i], &record, NULL) < 0)
			continue;
		cm_record_clear(&record);
		if (cm_strv_add(ret, ids.v[i]) < 0)
			r = no_memory(err);
	}
	cm_records_close(&records);
	return r;
}

/* --- sessions -------------------------------------------------------------------------------- */

static bool copy(const struct cm_record *record, const char *key, char **to)
{
	const char *value = cm_record_get(record, key);

	/* what was known before may be out of date */
	free(*to);
	*to = cm_strdup(value);
	return !value || *to;
}

static int take_record(struct cm_platform_session *s, const struct cm_record *record,
		       struct cm_error *err)
{
	const char *created = cm_record_get(record, CM_RECORD_CREATED);
	const char *state = cm_record_get(record, KEY_STATE);
	uint64_t ms = 0;

	if (!copy(record, CM_RECORD_PROVIDER_ID, &s->sandbox.id) ||
	    !copy(record, KEY_RESOURCE, &s->sandbox.resource_id) ||
	    !copy(record, KEY_INSTANCE, &s->sandbox.instance_url) ||
	    !copy(record, KEY_TEMPLATE, &s->template_name) ||
	    !copy(record, CM_RECORD_WORKDIR, &s->workdir) || !copy(record, KEY_SEED, &s->seed) ||
	    !copy(record, KEY_ENV, &s->env_names))
		return no_memory(err);
	if (created && cm_parse_u64(created, CM_RECORD_CREATED, 0, INT64_MAX, &ms, NULL) == CM_OK)
		s->created_ms = (int64_t)ms;
	s->is_stopped = state && strcmp(state, STATE_STOPPED) == 0;
	s->has_checkpoint = cm_record_get(record, KEY_CHECKPOINT) != NULL;
	if (cm_record_get(record, KEY_SIDECAR)) {
		s->has_asked_sidecar = true;
		s->has_sidecar = false;
	}
	return CM_OK;
}

int cm_platform_keep_load(struct cm_platform_session *s, struct cm_error *err)
{
	struct cm_records records = CM_RECORDS_INIT;
	struct cm_record record = { 0 };
	int r = open_records(platform_of(s), OF_SESSIONS, &records, err);

	if (r == CM_OK)
		r = read_own(platform_of(s), &records, s->base.id, &record, err);
	cm_records_close(&records);
	if (r < 0)
		return r;
	r = take_record(s, &record, err);
	cm_record_clear(&record);
	return r;
}

static int fill_record(const struct cm_platform_session *s, struct cm_record *record,
		       struct cm_error *err)
{
	char account[CM_RECORD_ACCOUNT_SIZE];
	char created[24];
	const struct {
		const char *key;
		const char *value;
	} values[] = {
		{ CM_RECORD_ACCOUNT, account },
		{ CM_RECORD_PROVIDER_ID, s->sandbox.id },
		{ KEY_RESOURCE, s->sandbox.resource_id },
		{ KEY_INSTANCE, s->sandbox.instance_url },
		{ CM_RECORD_CREATED, created },
		{ KEY_TEMPLATE, s->template_name },
		{ CM_RECORD_WORKDIR, s->workdir },
		{ KEY_SEED, s->seed },
		{ KEY_ENV, s->env_names },
		{ KEY_STATE, s->is_stopped ? STATE_STOPPED : NULL },
		{ KEY_CHECKPOINT, s->has_checkpoint ? CAPTURED : NULL },
		{ KEY_SIDECAR, s->has_asked_sidecar && !s->has_sidecar ? SIDECAR_NONE : NULL },
	};
	int r = account_of(platform_of(s), account, err);

	(void)snprintf(created, sizeof(created), "%" PRId64, s->created_ms);
	for (size_t i = 0; i < CM_ARRAY_SIZE(values) && r == CM_OK; i++)
		r = cm_record_set(record, values[i].key, values[i].value, err);
	for (size_t i = 0; i < s->labels.n && r == CM_OK; i++) {
		const char *value = strchr(s->labels.v[i], '=');
		CM_AUTO_FREE char *name = NULL;

		if (!value)
			continue;
		name = cm_asprintf("%.*s", (int)(value - s->labels.v[i]), s->labels.v[i]);
		if (!name || cm_strv_env_set(&record->labels, name, value + 1) < 0)
			r = no_memory(err);
	}
	return r;
}

int cm_platform_keep_save(const struct cm_platform_session *s, struct cm_error *err)
{
	struct cm_records records = CM_RECORDS_INIT;
	struct cm_record record = { 0 };
	int r = open_records(platform_of(s), OF_SESSIONS, &records, err);

	if (r == CM_OK)
		r = read_own(platform_of(s), &records, s->base.id, &record, err);
	if (r == CM_E_NOT_FOUND) {
		cm_error_clear(err);
		r = CM_OK;
	}
	if (r == CM_OK)
		r = fill_record(s, &record, err);
	if (r == CM_OK)
		r = cm_record_write(&records, s->base.id, &record, err);
	cm_record_clear(&record);
	cm_records_close(&records);
	return r;
}

/* By who holds its lock. */
static int change(const struct cm_platform_session *s, const struct cm_records *records,
		  const char *key, const char *value, struct cm_error *err)
{
	struct cm_record record = { 0 };
	const char *sandbox;
	int r = read_own(platform_of(s), records, s->base.id, &record, err);

	if (r < 0)
		return r;
	sandbox = cm_record_get(&record, CM_RECORD_PROVIDER_ID);
	if (sandbox && s->sandbox.id && strcmp(sandbox, s->sandbox.id) == 0) {
		r = cm_record_set(&record, key, value, err);
		if (r == CM_OK)
			r = cm_record_write(records, s->base.id, &record, err);
	}
	cm_record_clear(&record);
	return r;
}

static int change_locked(const struct cm_platform_session *s, const char *key, const char *value,
			 const struct cm_call *call, struct cm_error *err)
{
	struct cm_records records = CM_RECORDS_INIT;
	CM_AUTO_FD int lock = -1;
	int r = open_records(platform_of(s), OF_SESSIONS, &records, err);

	if (r == CM_OK)
		r = cm_record_lock(&records, s->base.id, call, &lock, err);
	if (r == CM_OK)
		r = change(s, &records, key, value, err);
	cm_records_close(&records);
	return r;
}

int cm_platform_keep_checkpoint(const struct cm_platform_session *s, const struct cm_call *call,
				struct cm_error *err)
{
	return change_locked(s, KEY_CHECKPOINT, CAPTURED, call, err);
}

void cm_platform_keep_no_sidecar(const struct cm_platform_session *s)
{
	struct cm_call now = { cm_clock_mono_ms(), -1 };

	/* what cannot be kept is asked again */
	(void)change_locked(s, KEY_SIDECAR, SIDECAR_NONE, &now, NULL);
}

int cm_platform_keep_remove(const struct cm_platform_session *s, struct cm_error *err)
{
	struct cm_records records = CM_RECORDS_INIT;
	int r = open_records(platform_of(s), OF_SESSIONS, &records, err);

	if (r == CM_OK)
		r = cm_record_remove(&records, s->base.id, err);
	cm_records_close(&records);
	return r;
}

int cm_platform_keep_info(const struct cm_platform_session *s, struct cm_session_info *ret,
			  struct cm_error *err)
{
	struct cm_records records = CM_RECORDS_INIT;
	struct cm_record record = { 0 };
	int r = open_records(platform_of(s), OF_SESSIONS, &records, err);

	if (r == CM_OK)
		r = read_own(platform_of(s), &records, s->base.id, &record, err);
	cm_records_close(&records);
	if (r < 0)
		return r;
	if (!copy(&record, CM_RECORD_REPO, &ret->repo) ||
	    cm_strv_copy(&ret->labels, &record.labels) < 0)
		r = no_memory(err);
	cm_record_clear(&record);
	return r;
}

int cm_platform_keep_list(struct cm_platform *p, struct cm_strv *ret, struct cm_error *err)
{
	return list_own(p, OF_SESSIONS, ret, err);
}

int cm_platform_keep_lock(const struct cm_platform_session *s, const struct cm_call *call,
			  int *ret_fd, struct cm_error *err)
{
	struct cm_records records = CM_RECORDS_INIT;
	int r = open_records(platform_of(s), OF_SESSIONS, &records, err);

	if (r == CM_OK)
		r = cm_record_lock(&records, s->base.id, call, ret_fd, err);
	cm_records_close(&records);
	return r;
}

void cm_platform_keep_unlock(const struct cm_platform_session *s, bool is_over, int *fd)
{
	struct cm_records records = CM_RECORDS_INIT;

	if (*fd >= 0 && is_over &&
	    open_records(platform_of(s), OF_SESSIONS, &records, NULL) == CM_OK)
		cm_record_unlock(&records, s->base.id, fd);
	cm_fd_close(fd);
	cm_records_close(&records);
}

/* --- templates ------------------------------------------------------------------------------- */

int cm_platform_keep_definition(struct cm_platform *p, const char *name, char **ret,
				struct cm_error *err)
{
	struct cm_records records = CM_RECORDS_INIT;
	struct cm_record record = { 0 };
	int r = open_records(p, OF_TEMPLATES, &records, err);

	if (r == CM_OK)
		r = read_own(p, &records, name, &record, err);
	cm_records_close(&records);
	if (r < 0)
		return r;
	if (!cm_record_get(&record, KEY_DEFINITION))
		r = cm_error_set(err, CM_E_PROTOCOL, 0, "the record of template '%s' has none",
				 name);
	else if (!copy(&record, KEY_DEFINITION, ret))
		r = no_memory(err);
	cm_record_clear(&record);
	return r;
}

static int write_definition(struct cm_platform *p, const struct cm_records *records,
			    const char *name, const char *definition, struct cm_error *err)
{
	char account[CM_RECORD_ACCOUNT_SIZE];
	struct cm_record record = { 0 };
	int r = account_of(p, account, err);

	if (r == CM_OK)
		r = cm_record_set(&record, CM_RECORD_ACCOUNT, account, err);
	if (r == CM_OK)
		r = cm_record_set(&record, KEY_DEFINITION, definition, err);
	if (r == CM_OK)
		r = cm_record_write(records, name, &record, err);
	cm_record_clear(&record);
	return r;
}

int cm_platform_keep_set_definition(struct cm_platform *p, const char *name, const char *definition,
				    struct cm_error *err)
{
	struct cm_records records = CM_RECORDS_INIT;
	struct cm_record record = { 0 };
	int r = open_records(p, OF_TEMPLATES, &records, err);

	if (r == CM_OK)
		r = read_own(p, &records, name, &record, err);
	cm_record_clear(&record);
	if (r == CM_E_NOT_FOUND && definition) {
		cm_error_clear(err);
		r = CM_OK;
	}
	if (r == CM_OK)
		r = definition ? write_definition(p, &records, name, definition, err)
			       : cm_record_remove(&records, name, err);
	cm_records_close(&records);
	return r;
}

int cm_platform_keep_definitions(struct cm_platform *p, struct cm_strv *ret, struct cm_error *err)
{
	return list_own(p, OF_TEMPLATES, ret, err);
}
