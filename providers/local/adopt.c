/* SPDX-License-Identifier: Apache-2.0 */
/* A session that exists keeps what it was made with; an option that contradicts it is refused. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "providers/local/local_internal.h"
#include "runtime/base/fd.h"
#include "runtime/base/json.h"
#include "runtime/base/json_write.h"
#include "runtime/base/path.h"

/* The limits that a session keeps; a command's own (output, timeout) are each run's. */
static const struct {
	const char *key;
	const char *option;
	size_t offset;
} kept[] = {
	{ "memory", "--memory", offsetof(struct cm_limits, memory) },
	{ "swap", "--swap", offsetof(struct cm_limits, swap) },
	{ "cpuMilli", "--cpus", offsetof(struct cm_limits, cpus) },
	{ "pids", "--pids-limit", offsetof(struct cm_limits, pids) },
	{ "openFiles", "--open-files", offsetof(struct cm_limits, open_files) },
};

static struct cm_limit *limit_at(struct cm_limits *limits, size_t i)
{
	return (struct cm_limit *)((char *)limits + kept[i].offset);
}

char *cm_local_settings(const struct cm_spec *spec)
{
	CM_AUTO_BUF struct cm_buf out = { 0 };
	struct cm_json_writer w;
	struct cm_limits limits = spec->limits;

	cm_buf_init(&out, 65536);
	cm_jw_init(&w, &out, false);
	cm_jw_object(&w);
	for (size_t i = 0; i < CM_ARRAY_SIZE(kept); i++) {
		const struct cm_limit *limit = limit_at(&limits, i);

		if (!limit->is_set)
			continue;
		cm_jw_key(&w, kept[i].key);
		cm_jw_object(&w);
		if (limit->value == CM_UNLIMITED)
			cm_jw_kbool(&w, "unlimited", true);
		else
			cm_jw_kuint(&w, "max", limit->value);
		cm_jw_kbool(&w, "optional", limit->is_optional);
		cm_jw_end_object(&w);
	}
	if (spec->limits.cpuset) {
		cm_jw_kstring(&w, "cpuset", spec->limits.cpuset);
		cm_jw_kbool(&w, "cpusetOptional", spec->limits.is_cpuset_optional);
	}
	cm_jw_end_object(&w);
	return cm_buf_take(&out);
}

static int contradiction(const struct cm_local *l, struct cm_error *err, const char *option,
			 const char *has)
{
	cm_error_set(err, CM_E_EXISTS, 0, "session '%s' was made with another %s: '%s'",
		     l->session.record.id, option, has ? has : "none");
	cm_error_hint(err, "leave %s out, or 'casemate rm %s' and make it anew", option,
		      l->session.record.id);
	return CM_E_EXISTS;
}

static bool differs(const char *asked, const char *has)
{
	return asked && (!has || strcmp(asked, has) != 0);
}

static const char *workspace_of(const struct cm_session_record *record)
{
	switch (record->workspace_kind) {
	case CM_WORKSPACE_DIR:
		return record->workspace;
	case CM_WORKSPACE_REPO:
		return record->repo;
	case CM_WORKSPACE_NONE:
		return "none";
	case CM_WORKSPACE_DEFAULT:
		break;
	}
	return "the session directory";
}

static int check_workspace(const struct cm_local *l, struct cm_error *err)
{
	const struct cm_spec *spec = &l->spec;
	const struct cm_session_record *record = &l->session.record;

	if (spec->workspace_kind == CM_WORKSPACE_DEFAULT)
		return CM_OK;
	if (spec->workspace_kind == CM_WORKSPACE_REPO) {
		if (record->workspace_kind != CM_WORKSPACE_REPO ||
		    differs(spec->repo, record->repo))
			return contradiction(l, err, "--repo", workspace_of(record));
		if (differs(spec->ref, record->ref))
			return contradiction(l, err, "--ref", record->ref);
		return CM_OK;
	}
	if (spec->workspace_kind != record->workspace_kind ||
	    differs(spec->workspace, record->workspace))
		return contradiction(l, err, "--workspace", workspace_of(record));
	if (spec->is_workspace_read_only != record->is_workspace_read_only)
		return contradiction(l, err, "--workspace",
				     record->is_workspace_read_only ? "read-only" : "writable");
	return CM_OK;
}

/* The built-in default of each of these is what "not asked for" looks like. */
static int check_modes(const struct cm_local *l, struct cm_error *err)
{
	const struct cm_spec *spec = &l->spec;
	const struct cm_session_record *record = &l->session.record;

	if (spec->network != CM_NETWORK_NONE && spec->network != record->network)
		return contradiction(l, err, "--network", cm_network_name(record->network));
	if (spec->user != CM_USER_USER && spec->user != record->user)
		return contradiction(l, err, "--user", cm_user_name(record->user));
	if (spec->git != CM_GIT_PINNED && spec->git != record->git)
		return contradiction(l, err, "--git", cm_git_access_name(record->git));
	if (differs(spec->rootfs, record->rootfs))
		return contradiction(l, err, "--rootfs", record->rootfs);
	return CM_OK;
}

static int adopt_limit(struct cm_local *l, const struct cm_json *has, size_t i,
		       struct cm_error *err)
{
	struct cm_limit *asked = limit_at(&l->spec.limits, i);
	const struct cm_json *value = cm_json_get(has, kept[i].key);
	struct cm_limit limit = { 0 };
	char text[32] = "";

	if (value) {
		limit.is_set = true;
		limit.value = cm_json_bool(value, "unlimited", false)
				      ? CM_UNLIMITED
				      : (uint64_t)cm_json_int(value, "max", 0);
		limit.is_optional = cm_json_bool(value, "optional", false);
		(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)limit.value);
	}
	if (asked->is_set && (!value || asked->value != limit.value))
		return contradiction(l, err, kept[i].option, value ? text : NULL);
	*asked = limit;
	return CM_OK;
}

static int adopt_limits(struct cm_local *l, struct cm_error *err)
{
	const char *text = l->session.record.settings_json;
	struct cm_json_doc *doc = NULL;
	const struct cm_json *has;
	const char *cpuset;
	int r = cm_json_parse(text ? text : "{}", text ? strlen(text) : 2, "state.json", 0, &doc,
			      err);

	if (r < 0)
		return r;
	has = cm_json_root(doc);
	for (size_t i = 0; i < CM_ARRAY_SIZE(kept) && r == CM_OK; i++)
		r = adopt_limit(l, has, i, err);
	cpuset = cm_json_str(has, "cpuset", NULL);
	if (r == CM_OK && differs(l->spec.limits.cpuset, cpuset))
		r = contradiction(l, err, "--cpuset", cpuset);
	if (r == CM_OK) {
		free(l->spec.limits.cpuset);
		l->spec.limits.cpuset = cm_strdup(cpuset);
		l->spec.limits.is_cpuset_optional = cm_json_bool(has, "cpusetOptional", false);
	}
	cm_json_free(doc);
	return r;
}

static int take_over(char **field, const char *value)
{
	free(*field);
	*field = cm_strdup(value);
	return value && !*field ? CM_E_NOMEM : CM_OK;
}

static void tell_failed_setup(struct cm_local *l)
{
	const struct cm_session_record *record = &l->session.record;
	CM_AUTO_FREE char *line =
		cm_asprintf("setup failed (exit %d); 'casemate rm --files %s' starts over",
			    record->setup_exit, record->id);

	if (line)
		cm_local_note(l, line);
}

static void tell_due_setup(struct cm_local *l)
{
	CM_AUTO_FREE char *line = cm_asprintf("session '%s' is not set up yet: a run with --setup "
					      "does it",
					      l->session.record.id);

	if (line)
		cm_local_note(l, line);
}

/*
 * Setup commands given again: the same ones are the session's, others are told about and not run:
 * once a command has run, setup never runs again by itself.
 */
static int adopt_setup(struct cm_local *l, struct cm_error *err)
{
	const struct cm_session_record *record = &l->session.record;
	/* none yet, or they were interrupted: the record has what was asked for */
	bool is_due = record->setup_state == CM_SETUP_NONE && record->setup_digest &&
		      record->setup_digest[0] != '\0';
	CM_AUTO_FREE char *digest = NULL;

	if (record->setup_state == CM_SETUP_FAILED) {
		tell_failed_setup(l);
		cm_strv_clear(&l->spec.setup);
		return CM_OK;
	}
	if (l->spec.setup.n == 0) {
		if (is_due)
			tell_due_setup(l);
		return CM_OK;
	}
	digest = cm_local_setup_digest(&l->spec.setup);
	if (!digest)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the session");
	if (!differs(digest, record->setup_digest))
		return CM_OK;
	if (is_due || (record->setup_state == CM_SETUP_NONE && record->generation == 0))
		return take_over(&l->session.record.setup_digest, digest);
	cm_local_note(l, "the setup commands are not those that the session was set up with; they "
			 "are not run again");
	cm_strv_clear(&l->spec.setup);
	return CM_OK;
}

int cm_local_adopt(struct cm_local *l, struct cm_error *err)
{
	const struct cm_session_record *record = &l->session.record;
	struct cm_spec *spec = &l->spec;
	int r = check_workspace(l, err);

	if (r == CM_OK)
		r = check_modes(l, err);
	if (r == CM_OK)
		r = adopt_limits(l, err);
	if (r == CM_OK)
		r = adopt_setup(l, err);
	if (r < 0)
		return r;
	spec->workspace_kind = record->workspace_kind;
	spec->is_workspace_read_only = record->is_workspace_read_only;
	spec->network = record->network;
	spec->user = record->user;
	spec->git = record->git;
	if (take_over(&spec->workspace, record->workspace) < 0 ||
	    take_over(&spec->repo, record->repo) < 0 || take_over(&spec->ref, record->ref) < 0 ||
	    take_over(&spec->rootfs, record->rootfs) < 0)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the session");
	return CM_OK;
}
