/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session that exists keeps what it was made with, and an option that contradicts that is refused.
 * What configuration files say is for sessions yet to be made: it contradicts nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "providers/local/local_internal.h"
#include "runtime/base/fd.h"
#include "runtime/base/text.h"

typedef bool agrees_fn(const struct cm_key_info *info, const struct cm_spec *asked,
		       const struct cm_spec *has);

static bool is_same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool is_same_text(const struct cm_key_info *info, const struct cm_spec *asked,
			 const struct cm_spec *has)
{
	char *const *a = cm_key_field_const(info, asked);
	char *const *b = cm_key_field_const(info, has);

	return is_same(*a, *b);
}

static bool is_same_word(const struct cm_key_info *info, const struct cm_spec *asked,
			 const struct cm_spec *has)
{
	return *(const unsigned int *)cm_key_field_const(info, asked) ==
	       *(const unsigned int *)cm_key_field_const(info, has);
}

/* What is asked for without a '?' is not had from a session that may go on without it. */
static bool is_same_limit(const struct cm_key_info *info, const struct cm_spec *asked,
			  const struct cm_spec *has)
{
	const struct cm_limit *a = cm_key_field_const(info, asked);
	const struct cm_limit *b = cm_key_field_const(info, has);

	return b->is_set && a->value == b->value && (a->is_optional || !b->is_optional);
}

/* No time is what a session has that was made without one. */
static bool is_same_time(const struct cm_key_info *info, const struct cm_spec *asked,
			 const struct cm_spec *has)
{
	const struct cm_limit *a = cm_key_field_const(info, asked);
	const struct cm_limit *b = cm_key_field_const(info, has);

	return a->value == (b->is_set ? b->value : CM_UNLIMITED);
}

static bool is_same_cpuset(const struct cm_key_info *info, const struct cm_spec *asked,
			   const struct cm_spec *has)
{
	return is_same_text(info, asked, has) &&
	       (asked->limits.is_cpuset_optional || !has->limits.is_cpuset_optional);
}

static bool is_same_place(const struct cm_spec *asked, const struct cm_spec *has)
{
	return asked->workspace_kind == has->workspace_kind &&
	       is_same(asked->workspace, has->workspace);
}

static bool is_same_workspace(const struct cm_key_info *info, const struct cm_spec *asked,
			      const struct cm_spec *has)
{
	(void)info;
	return is_same_place(asked, has) &&
	       (asked->workspace_kind != CM_WORKSPACE_DIR ||
		asked->is_workspace_read_only == has->is_workspace_read_only);
}

static bool has_volume(const struct cm_spec *has, const struct cm_volume *asked)
{
	for (size_t i = 0; i < has->n_volumes; i++) {
		const struct cm_volume *v = &has->volumes[i];

		if (strcmp(v->src, asked->src) == 0 && strcmp(v->dst, asked->dst) == 0)
			return v->is_read_only == asked->is_read_only;
	}
	return false;
}

/* It need not ask for all of them. */
static bool has_volumes(const struct cm_key_info *info, const struct cm_spec *asked,
			const struct cm_spec *has)
{
	(void)info;
	for (size_t i = 0; i < asked->n_volumes; i++) {
		if (asked->volumes[i].is_asked && !has_volume(has, &asked->volumes[i]))
			return false;
	}
	return true;
}

static bool has_labels(const struct cm_key_info *info, const struct cm_spec *asked,
		       const struct cm_spec *has)
{
	(void)info;
	for (size_t i = 0; i < asked->labels_asked.n; i++) {
		if (!cm_strv_has(&has->labels, asked->labels_asked.v[i]))
			return false;
	}
	return true;
}

static bool is_same_repo(const struct cm_key_info *info, const struct cm_spec *asked,
			 const struct cm_spec *has)
{
	return asked->workspace_kind == has->workspace_kind && is_same_text(info, asked, has);
}

static bool is_same_switch(const struct cm_key_info *info, const struct cm_spec *asked,
			   const struct cm_spec *has)
{
	return *(const bool *)cm_key_field_const(info, asked) ==
	       *(const bool *)cm_key_field_const(info, has);
}

static bool is_same_number(const struct cm_key_info *info, const struct cm_spec *asked,
			   const struct cm_spec *has)
{
	return *(const int *)cm_key_field_const(info, asked) ==
	       *(const int *)cm_key_field_const(info, has);
}

/* As a set: in which order they are named makes no other checkout. */
static bool is_same_list(const struct cm_key_info *info, const struct cm_spec *asked,
			 const struct cm_spec *has)
{
	const struct cm_strv *a = cm_key_field_const(info, asked);
	const struct cm_strv *b = cm_key_field_const(info, has);

	for (size_t i = 0; i < a->n; i++) {
		if (!cm_strv_has(b, a->v[i]))
			return false;
	}
	for (size_t i = 0; i < b->n; i++) {
		if (!cm_strv_has(a, b->v[i]))
			return false;
	}
	return true;
}

/* Every other key is each run's own, or about something else (which session, what to read,
 * how much of a history or of its content that is there already was fetched). */
static agrees_fn *const agrees[CM_KEY_COUNT] = {
	[CM_KEY_WORKSPACE] = is_same_workspace,
	[CM_KEY_READ_ONLY] = is_same_switch,
	[CM_KEY_VOLUME] = has_volumes,
	[CM_KEY_REPO] = is_same_repo,
	[CM_KEY_REF] = is_same_text,
	[CM_KEY_PR] = is_same_number,
	[CM_KEY_BRANCH] = is_same_text,
	[CM_KEY_FROM] = is_same_text,
	[CM_KEY_LFS] = is_same_switch,
	[CM_KEY_SPARSE] = is_same_list,
	[CM_KEY_LABEL] = has_labels,
	[CM_KEY_IDLE_TIMEOUT] = is_same_time,
	[CM_KEY_LIFETIME] = is_same_time,
	[CM_KEY_MEMORY] = is_same_limit,
	[CM_KEY_SWAP] = is_same_limit,
	[CM_KEY_CPUS] = is_same_limit,
	[CM_KEY_CPUSET] = is_same_cpuset,
	[CM_KEY_PIDS_LIMIT] = is_same_limit,
	[CM_KEY_OPEN_FILES] = is_same_limit,
	[CM_KEY_NETWORK] = is_same_word,
	[CM_KEY_ROOTFS] = is_same_text,
	[CM_KEY_USER] = is_same_word,
	[CM_KEY_GIT] = is_same_word,
};

bool cm_local_keeps(enum cm_key key)
{
	return agrees[key];
}

static const char *workspace_of(const struct cm_spec *has)
{
	switch (has->workspace_kind) {
	case CM_WORKSPACE_DIR:
		return has->workspace;
	case CM_WORKSPACE_REPO:
		return has->repo;
	case CM_WORKSPACE_NONE:
		return "none";
	case CM_WORKSPACE_DEFAULT:
		break;
	}
	return "the session directory";
}

static void describe(const struct cm_key_info *info, const struct cm_spec *asked,
		     const struct cm_spec *has, struct cm_buf *out)
{
	if (info->key == CM_KEY_WORKSPACE && is_same_place(asked, has)) {
		cm_buf_puts(out, has->is_workspace_read_only ? "read-only" : "writable");
		return;
	}
	if (info->key == CM_KEY_WORKSPACE || info->key == CM_KEY_REPO) {
		cm_buf_puts(out, workspace_of(has));
		return;
	}
	cm_local_describe(info, has, out);
}

static int contradiction(const struct cm_local *l, const struct cm_key_info *info,
			 const struct cm_spec *has, struct cm_error *err)
{
	const char *id = l->session.record.id;
	CM_AUTO_BUF struct cm_buf value = { 0 };

	cm_buf_init(&value, 65536);
	describe(info, &l->spec, has, &value);
	cm_error_set(err, CM_E_EXISTS, 0, "session '%s' was made with another --%s: '%s'", id,
		     info->name, value.data ? value.data : "");
	cm_error_hint(err,
		      "leave --%s out: a session's is set when it is made; 'casemate start NAME' "
		      "makes another one",
		      info->name);
	return CM_E_EXISTS;
}

/* What an update goes to is where it goes to, whatever the checkout began as. */
static bool is_of_update(const struct cm_local *l, unsigned int key)
{
	return l->update && cm_local_has_checkout(l) &&
	       (key == CM_KEY_REF || key == CM_KEY_PR || key == CM_KEY_BRANCH ||
		key == CM_KEY_FROM);
}

static int check_asked(const struct cm_local *l, const struct cm_spec *has, struct cm_error *err)
{
	for (unsigned int key = 0; key < CM_KEY_COUNT; key++) {
		const struct cm_key_info *info = cm_key_info((enum cm_key)key);

		if (agrees[key] && !is_of_update(l, key) &&
		    cm_key_is_asked((enum cm_key)key, &l->spec) &&
		    !agrees[key](info, &l->spec, has))
			return contradiction(l, info, has, err);
	}
	return CM_OK;
}

/* A start finds out what it reaches; a jail that runs has what it has. */
static int check_level(const struct cm_local *l, struct cm_error *err)
{
	const struct cm_session_record *record = &l->session.record;
	const char *full = cm_level_name(CM_LEVEL_FULL);

	if (!l->is_running || l->spec.min_level != CM_LEVEL_FULL ||
	    (record->level && cm_text_has_prefix(record->level, full) &&
	     record->network != CM_NETWORK_HOST))
		return CM_OK;
	cm_error_set(err, CM_E_LEVEL, 0, "session '%s' runs at level '%s'", record->id,
		     record->level ? record->level : "unknown");
	cm_error_hint(err,
		      "'casemate stop %s': the next run starts it at level '%s' or says why not",
		      record->id, full);
	return CM_E_LEVEL;
}

static void tell_failed_setup(struct cm_local *l)
{
	const struct cm_session_record *record = &l->session.record;
	CM_AUTO_FREE char *line =
		cm_asprintf("setup failed (exit %d) and is not run again by itself: 'casemate "
			    "setup %s --retry' does it",
			    record->setup_exit, record->id);

	if (line)
		cm_local_note(l, line);
}

static void tell_due_setup(struct cm_local *l)
{
	const struct cm_session_record *record = &l->session.record;
	CM_AUTO_FREE char *retry = cm_asprintf("'casemate setup %s --retry'", record->id);
	CM_AUTO_FREE char *line =
		cm_asprintf("session '%s' is not set up yet%s: %s does it", record->id,
			    record->setup_begun_ms != 0 ? " (it was interrupted)" : "",
			    record->setup_json && retry ? retry : "a run with --setup");

	if (line)
		cm_local_note(l, line);
}

static int take_digest(struct cm_session_record *record, char **digest)
{
	free(record->setup_digest);
	record->setup_digest = cm_ptr_take(digest);
	return CM_OK;
}

/* Of one that wants a secret only who has it can run it. */
static int take_due_setup(struct cm_local *l, struct cm_error *err)
{
	int r = CM_OK;

	if (l->runs_due_setup)
		r = cm_local_setup_recorded(&l->session.record, &l->spec, err);
	if (r == CM_OK && l->spec.setup.n > 0 && l->spec.setup_secrets.n == 0)
		return CM_OK;
	cm_strv_clear(&l->spec.setup);
	tell_due_setup(l);
	return r;
}

/*
 * Setup commands given again: the same ones are the session's, others are told about and not run:
 * once a command has run, setup never runs again by itself. Where that is asked for, what is given
 * is what the session is to be set up with, whatever became of an earlier one.
 */
static int adopt_setup(struct cm_local *l, struct cm_error *err)
{
	struct cm_session_record *record = &l->session.record;
	/* none yet, or they were interrupted: the record has what was asked for */
	bool is_due = cm_local_setup_is_due(record);
	CM_AUTO_FREE char *digest = NULL;

	if (record->setup_state == CM_SETUP_FAILED && !l->spec.is_setup_again) {
		tell_failed_setup(l);
		cm_strv_clear(&l->spec.setup);
		return CM_OK;
	}
	if (l->spec.setup.n == 0)
		return is_due ? take_due_setup(l, err) : CM_OK;
	digest = cm_local_setup_digest(&l->spec.setup);
	if (!digest)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the session");
	if (l->spec.is_setup_again) {
		record->setup_state = CM_SETUP_NONE;
		return take_digest(record, &digest);
	}
	if (record->setup_digest && strcmp(digest, record->setup_digest) == 0)
		return CM_OK;
	if (is_due || (record->setup_state == CM_SETUP_NONE && record->generation == 0))
		return take_digest(record, &digest);
	cm_local_note(l, "the setup commands are not those that the session was set up with; they "
			 "are not run again");
	cm_strv_clear(&l->spec.setup);
	return CM_OK;
}

/* Both as the ceilings of today leave them: who asks for the same as ever contradicts nothing. */
static int compare(struct cm_local *l, struct cm_error *err)
{
	struct cm_spec has;
	int r = cm_local_recorded(&l->session.record, &has, err);

	if (r < 0)
		return r;
	r = cm_local_tighten(l, &has, &has, NULL, NULL, err);
	if (r == CM_OK)
		r = cm_local_tighten(l, &l->spec, &has, NULL, NULL, err);
	if (r == CM_OK)
		r = check_asked(l, &has, err);
	cm_spec_clear(&has);
	return r;
}

int cm_local_adopt(struct cm_local *l, struct cm_error *err)
{
	struct cm_spec has;
	int r = compare(l, err);

	if (r == CM_OK)
		r = check_level(l, err);
	if (r == CM_OK)
		r = adopt_setup(l, err);
	if (r == CM_OK)
		r = cm_local_recorded(&l->session.record, &has, err);
	if (r < 0)
		return r;
	cm_local_take_over(&l->spec, &has);
	cm_spec_clear(&has);
	return cm_local_env_adopt(l, err);
}
