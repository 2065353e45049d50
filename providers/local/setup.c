/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a session's record says of its setup. It decides whether setup runs: the marker in the tree is
 * a copy that the command can change.
 *
 * Setup that may do more than the session's commands has a jail of its own, which is gone with
 * everything in it before the session's is made: what it leaves running would keep what it may, and
 * what it was told could be read from it.
 */
#include <stdlib.h>
#include <string.h>

#include "providers/local/inside.h"
#include "runtime/base/alloc.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/json.h"
#include "runtime/base/json_write.h"

#define RECORD_MAX (16UL * 1024 * 1024)

bool cm_local_setup_is_due(const struct cm_session_record *record)
{
	return record->setup_state == CM_SETUP_NONE && record->setup_digest &&
	       record->setup_digest[0] != '\0';
}

bool cm_local_needs_setup(const struct cm_local *l)
{
	return l->spec.setup.n > 0 && l->session.record.setup_state == CM_SETUP_NONE;
}

/* With what is needed to run them again; of a secret the name. */
char *cm_local_setup_commands(const struct cm_spec *spec)
{
	CM_AUTO_BUF struct cm_buf out = { 0 };
	struct cm_json_writer w;

	cm_buf_init(&out, RECORD_MAX);
	cm_jw_init(&w, &out, false);
	cm_jw_object(&w);
	cm_jw_kstrings(&w, "commands", &spec->setup);
	if (spec->setup_network)
		cm_jw_kstring(&w, "network", cm_network_name(spec->setup_network));
	cm_jw_kstrings(&w, "env", &spec->setup_env);
	cm_jw_kstrings(&w, "secrets", &spec->setup_secrets);
	cm_jw_end_object(&w);
	return cm_buf_take(&out);
}

int cm_local_setup_recorded(const struct cm_session_record *record, struct cm_spec *spec,
			    struct cm_error *err)
{
	struct cm_json_doc *doc = NULL;
	const struct cm_json *network;
	int r;

	if (!record->setup_json)
		return CM_OK;
	r = cm_json_parse(record->setup_json, strlen(record->setup_json), "setup", 0, &doc, err);
	if (r < 0)
		return r;
	network = cm_json_get(cm_json_root(doc), "network");
	if (network && network->type == CM_JSON_STRING &&
	    strcmp(network->u.string, cm_network_name(CM_NETWORK_HOST)) == 0)
		spec->setup_network = CM_NETWORK_HOST;
	r = cm_json_strings(cm_json_get(cm_json_root(doc), "commands"), &spec->setup);
	if (r == CM_OK)
		r = cm_json_strings(cm_json_get(cm_json_root(doc), "env"), &spec->setup_env);
	if (r == CM_OK)
		r = cm_json_strings(cm_json_get(cm_json_root(doc), "secrets"),
				    &spec->setup_secrets);
	cm_json_free(doc);
	return r < 0 ? cm_error_set(err, r, 0, "no memory for the session") : CM_OK;
}

static char *teardown_text(const struct cm_strv *commands)
{
	CM_AUTO_BUF struct cm_buf out = { 0 };
	struct cm_json_writer w;

	cm_buf_init(&out, RECORD_MAX);
	cm_jw_init(&w, &out, false);
	cm_jw_array(&w);
	for (size_t i = 0; i < commands->n; i++)
		cm_jw_string(&w, commands->v[i]);
	cm_jw_end_array(&w);
	return cm_buf_take(&out);
}

static int read_teardown(const char *text, struct cm_strv *ret, struct cm_error *err)
{
	struct cm_json_doc *doc = NULL;
	int r = cm_json_parse(text, strlen(text), "teardown", 0, &doc, err);

	if (r < 0)
		return r;
	r = cm_json_strings(cm_json_root(doc), ret);
	cm_json_free(doc);
	return r < 0 ? cm_error_set(err, r, 0, "no memory for the session") : CM_OK;
}

int cm_local_keep_teardown(struct cm_local *l, struct cm_error *err)
{
	struct cm_session_record *record = &l->session.record;
	CM_AUTO_FREE char *text = NULL;

	/* configuration is for sessions yet to be made */
	if (!l->is_new && !cm_key_is_asked(CM_KEY_TEARDOWN, &l->spec))
		cm_strv_clear(&l->spec.teardown);
	if (l->spec.teardown.n == 0)
		return record->teardown_json
			       ? read_teardown(record->teardown_json, &l->spec.teardown, err)
			       : CM_OK;
	text = teardown_text(&l->spec.teardown);
	if (!text)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the session");
	if (record->teardown_json && strcmp(record->teardown_json, text) == 0)
		return CM_OK;
	free(record->teardown_json);
	record->teardown_json = cm_ptr_take(&text);
	return l->is_temporary ? CM_OK : cm_store_session_save(&l->session, false, err);
}

int cm_local_setup_begin(struct cm_local *l, struct cm_error *err)
{
	struct cm_session_record *record = &l->session.record;
	char *digest = cm_local_setup_digest(&l->spec.setup);
	char *commands = cm_local_setup_commands(&l->spec);

	if (!digest || !commands) {
		free(digest);
		free(commands);
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the session");
	}
	free(record->setup_digest);
	free(record->setup_json);
	record->setup_digest = digest;
	record->setup_json = commands;
	record->setup_state = CM_SETUP_NONE;
	record->setup_begun_ms = cm_clock_real_ms();
	return l->is_temporary ? CM_OK : cm_store_session_save(&l->session, true, err);
}

int cm_local_setup_done(struct cm_local *l, bool has_failed, int exit_status, int64_t since_us,
			struct cm_error *err)
{
	struct cm_session_record *record = &l->session.record;

	record->setup_state = has_failed ? CM_SETUP_FAILED : CM_SETUP_DONE;
	record->setup_exit = exit_status;
	record->setup_ms = cm_clock_real_ms();
	record->setup_took_ms = (cm_clock_mono_us() - since_us) / 1000;
	record->setup_begun_ms = 0;
	if (l->is_temporary)
		return CM_OK;
	/* what was promised to run once must not run again after a crash */
	return cm_store_session_save(&l->session, true, err);
}

bool cm_local_setup_is_apart(const struct cm_local *l)
{
	const struct cm_spec *spec = &l->spec;

	return cm_local_needs_setup(l) &&
	       (spec->setup_network == CM_NETWORK_HOST ||
		(spec->setup_network && spec->setup_network != spec->network) ||
		spec->setup_env.n > 0 || spec->setup_secrets.n > 0);
}

/* Before anything is begun: what is missing is not missed by a command in the middle. */
static int check_secrets(const struct cm_local *l, struct cm_error *err)
{
	for (size_t i = 0; i < l->spec.setup_secrets.n; i++) {
		const char *name = l->spec.setup_secrets.v[i];

		if (cm_strv_env_get(&l->config->setup_secrets, name))
			continue;
		(void)cm_error_set(err, CM_E_NOT_FOUND, 0,
				   "the variable '%s' of --setup-secret is not set", name);
		cm_error_hint(err, "export it: its value is kept nowhere, so each setup needs it");
		return CM_E_NOT_FOUND;
	}
	return CM_OK;
}

static int check_stopped(const struct cm_local *l, struct cm_error *err)
{
	const char *id = l->session.record.id;

	if (!l->is_running)
		return CM_OK;
	(void)cm_error_set(err, CM_E_BUSY, 0,
			   "session '%s' runs, and its setup may do more than it", id);
	cm_error_hint(err,
		      "'casemate stop %s' first: such a setup has a jail of its own, before the "
		      "session's",
		      id);
	return CM_E_BUSY;
}

/* As the session's, but for what setup is given. Bounded by what is in the tree as well. */
static int make_spec(const struct cm_local *l, struct cm_spec *ret, struct cm_error *err)
{
	struct cm_spec spec;
	int r = cm_spec_copy(&spec, &l->spec);

	if (r < 0)
		return cm_error_set(err, r, 0, "no memory for the setup");
	r = cm_local_tighten(l, &spec, &l->spec, NULL, NULL, err);
	if (spec.setup_network)
		spec.network = spec.setup_network;
	/* the network alone makes it less than full, and that says nothing about the session */
	if (spec.network == CM_NETWORK_HOST && spec.min_level == CM_LEVEL_FULL)
		spec.min_level = CM_LEVEL_NO_CGROUP;
	for (size_t i = 0; i < spec.setup_env.n && r == CM_OK; i++) {
		if (cm_strv_add(&spec.env, spec.setup_env.v[i]) < 0)
			r = cm_error_set(err, CM_E_NOMEM, 0, "no memory for the setup");
	}
	if (r < 0)
		cm_spec_clear(&spec);
	else
		*ret = spec;
	return r;
}

/* Into the environment of its commands, and no plan or spec. */
static int add_secrets(struct cm_local *l, struct cm_error *err)
{
	const struct cm_strv *secrets = &l->config->setup_secrets;

	for (size_t i = 0; i < l->spec.setup_secrets.n; i++) {
		const char *name = l->spec.setup_secrets.v[i];

		if (cm_strv_env_set(&l->env, name, cm_strv_env_get(secrets, name)) < 0)
			return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the setup");
	}
	return CM_OK;
}

int cm_local_setup_open(struct cm_local *l, struct cm_error *err)
{
	struct cm_local_plan extra = { .has_home = !l->is_temporary };
	CM_AUTO_FREE char *marker = NULL;
	struct cm_spec spec;
	int r = check_secrets(l, err);

	if (r == CM_OK)
		r = check_stopped(l, err);
	if (r == CM_OK)
		r = make_spec(l, &spec, err);
	if (r < 0)
		return r;
	r = cm_local_mount_own(l, &extra, &marker, err);
	if (r == CM_OK)
		r = cm_local_task_open(l, &spec, cm_local_work_dir(l), &extra, err);
	if (r == CM_OK)
		r = add_secrets(l, err);
	/* whatever becomes of it, the session is one that can be used */
	if (r == CM_OK)
		l->is_new = false;
	cm_spec_clear(&spec);
	return r;
}

void cm_local_setup_close(struct cm_local *l)
{
	for (size_t i = 0; i < l->env.n; i++)
		explicit_bzero(l->env.v[i], strlen(l->env.v[i]));
	cm_strv_clear(&l->env);
	cm_local_task_close(l);
}
