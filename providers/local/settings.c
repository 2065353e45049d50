/* SPDX-License-Identifier: Apache-2.0 */
/* What a session is made with: from a spec into its record, and back. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "providers/local/local_internal.h"
#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/giturl.h"
#include "runtime/base/json.h"
#include "runtime/base/json_write.h"
#include "runtime/spec/format.h"
#include "runtime/spec/merge.h"

/* The limits that a session keeps; a command's own (output, timeout) are each run's. */
static const struct {
	const char *key;
	size_t offset;
} limits[] = {
	{ "memory", offsetof(struct cm_limits, memory) },
	{ "swap", offsetof(struct cm_limits, swap) },
	{ "cpuMilli", offsetof(struct cm_limits, cpus) },
	{ "pids", offsetof(struct cm_limits, pids) },
	{ "openFiles", offsetof(struct cm_limits, open_files) },
	{ "idleMs", offsetof(struct cm_limits, idle) },
	{ "lifetimeMs", offsetof(struct cm_limits, lifetime) },
};

static struct cm_limit *limit_at(struct cm_limits *of, size_t i)
{
	return (struct cm_limit *)((char *)of + limits[i].offset);
}

static void write_limits(const struct cm_limits *of, struct cm_json_writer *w)
{
	struct cm_limits copy = *of;

	for (size_t i = 0; i < CM_ARRAY_SIZE(limits); i++) {
		const struct cm_limit *limit = limit_at(&copy, i);

		if (!limit->is_set)
			continue;
		cm_jw_key(w, limits[i].key);
		cm_jw_object(w);
		if (limit->value == CM_UNLIMITED)
			cm_jw_kbool(w, "unlimited", true);
		else
			cm_jw_kuint(w, "max", limit->value);
		cm_jw_kbool(w, "optional", limit->is_optional);
		cm_jw_end_object(w);
	}
	if (of->cpuset) {
		cm_jw_kstring(w, "cpuset", of->cpuset);
		cm_jw_kbool(w, "cpusetOptional", of->is_cpuset_optional);
	}
}

/* As objects: a path may have a colon, which would end it in an option's text. */
static void write_volumes(const struct cm_spec *spec, struct cm_json_writer *w)
{
	if (spec->n_volumes == 0)
		return;
	cm_jw_key(w, "volumes");
	cm_jw_array(w);
	for (size_t i = 0; i < spec->n_volumes; i++) {
		cm_jw_object(w);
		cm_jw_kstring(w, "src", spec->volumes[i].src);
		cm_jw_kstring(w, "dst", spec->volumes[i].dst);
		cm_jw_kbool(w, "readOnly", spec->volumes[i].is_read_only);
		cm_jw_end_object(w);
	}
	cm_jw_end_array(w);
}

/* Beside what a record has members of its own for. */
static void write_extent(const struct cm_spec *spec, struct cm_json_writer *w)
{
	if (spec->has_lfs)
		cm_jw_kbool(w, "lfs", true);
	if (spec->filter == CM_FILTER_BLOB_NONE)
		cm_jw_kbool(w, "filterBlobs", true);
	if (spec->sparse.n == 0)
		return;
	cm_jw_key(w, "sparse");
	cm_jw_array(w);
	for (size_t i = 0; i < spec->sparse.n; i++)
		cm_jw_string(w, spec->sparse.v[i]);
	cm_jw_end_array(w);
}

/* Of a record they are members of their own. */
static void write_modes(const struct cm_spec *spec, struct cm_json_writer *w)
{
	cm_jw_kbool(w, "workspaceReadOnly", spec->is_workspace_read_only);
	cm_jw_kstring(w, "network", cm_network_name(spec->network));
	cm_jw_kstring(w, "user", cm_user_name(spec->user));
	cm_jw_kstring(w, "git", cm_git_access_name(spec->git));
}

static char *format(const struct cm_spec *spec, bool with_modes)
{
	CM_AUTO_BUF struct cm_buf out = { 0 };
	struct cm_json_writer w;

	cm_buf_init(&out, CM_JSON_MAX_BYTES);
	cm_jw_init(&w, &out, false);
	cm_jw_object(&w);
	if (with_modes)
		write_modes(spec, &w);
	write_limits(&spec->limits, &w);
	write_volumes(spec, &w);
	write_extent(spec, &w);
	cm_jw_end_object(&w);
	return cm_buf_take(&out);
}

/* false: out of memory */
static bool copy_text(char **to, const char *from)
{
	free(*to);
	*to = cm_strdup(from);
	return *to || !from;
}

int cm_local_record(const struct cm_spec *spec, struct cm_session_record *record,
		    struct cm_error *err)
{
	record->workspace_kind = spec->workspace_kind;
	record->is_workspace_read_only = spec->is_workspace_read_only;
	record->network = spec->network;
	record->user = spec->user;
	record->git = spec->git;
	record->pr = spec->pr;
	record->depth = spec->depth;
	free(record->settings_json);
	record->settings_json = format(spec, false);
	if (!record->settings_json || !copy_text(&record->workspace, spec->workspace) ||
	    !copy_text(&record->repo, spec->repo) || !copy_text(&record->ref, spec->ref) ||
	    !copy_text(&record->branch, spec->branch) || !copy_text(&record->base, spec->base) ||
	    !copy_text(&record->rootfs, spec->rootfs) ||
	    cm_strv_copy(&record->labels, &spec->labels) != CM_OK)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the session");
	return CM_OK;
}

static void read_limits(const struct cm_json *has, struct cm_limits *ret)
{
	for (size_t i = 0; i < CM_ARRAY_SIZE(limits); i++) {
		const struct cm_json *value = cm_json_get(has, limits[i].key);

		if (!value)
			continue;
		*limit_at(ret, i) = (struct cm_limit){
			.is_set = true,
			.value = cm_json_bool(value, "unlimited", false)
					 ? CM_UNLIMITED
					 : (uint64_t)cm_json_int(value, "max", 0),
			.is_optional = cm_json_bool(value, "optional", false),
		};
	}
}

static int read_volumes(const struct cm_json *list, struct cm_spec *spec, struct cm_error *err)
{
	size_t n = 0;

	for (const struct cm_json *v = list ? list->first_child : NULL; v; v = v->next)
		n++;
	if (n == 0)
		return CM_OK;
	spec->volumes = cm_calloc(n, sizeof(*spec->volumes));
	if (!spec->volumes)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the session");
	for (const struct cm_json *v = list->first_child; v; v = v->next) {
		struct cm_volume *volume = &spec->volumes[spec->n_volumes++];

		/* where nothing is said it is the tighter one */
		volume->is_read_only = cm_json_bool(v, "readOnly", true);
		if (!cm_json_str(v, "src", NULL) || !cm_json_str(v, "dst", NULL))
			return cm_error_set(err, CM_E_PROTOCOL, 0,
					    "a volume of the session's state is not understood");
		if (!copy_text(&volume->src, cm_json_str(v, "src", NULL)) ||
		    !copy_text(&volume->dst, cm_json_str(v, "dst", NULL)))
			return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the session");
	}
	return CM_OK;
}

static int read_extent(const struct cm_json *has, struct cm_spec *spec, struct cm_error *err)
{
	const struct cm_json *list = cm_json_get(has, "sparse");

	spec->has_lfs = cm_json_bool(has, "lfs", false);
	if (cm_json_bool(has, "filterBlobs", false))
		spec->filter = CM_FILTER_BLOB_NONE;
	for (const struct cm_json *v = list ? list->first_child : NULL; v; v = v->next) {
		if (v->type == CM_JSON_STRING && cm_strv_add(&spec->sparse, v->u.string) < 0)
			return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the session");
	}
	return CM_OK;
}

static bool is_word(const struct cm_json *has, const char *key, const char *word, bool otherwise)
{
	const char *text = cm_json_str(has, key, NULL);

	return text ? strcmp(text, word) == 0 : otherwise;
}

static void read_modes(const struct cm_json *has, struct cm_spec *spec)
{
	bool is_host = is_word(has, "network", cm_network_name(CM_NETWORK_HOST),
			       spec->network == CM_NETWORK_HOST);
	bool is_root = is_word(has, "user", cm_user_name(CM_USER_ROOT), spec->user == CM_USER_ROOT);
	bool is_rw = is_word(has, "git", cm_git_access_name(CM_GIT_RW), spec->git == CM_GIT_RW);

	spec->network = is_host ? CM_NETWORK_HOST : CM_NETWORK_NONE;
	spec->user = is_root ? CM_USER_ROOT : CM_USER_USER;
	spec->git = is_rw ? CM_GIT_RW : CM_GIT_PINNED;
	spec->is_workspace_read_only =
		cm_json_bool(has, "workspaceReadOnly", spec->is_workspace_read_only);
}

static int parse(const char *text, struct cm_spec *spec, struct cm_error *err)
{
	struct cm_json_doc *doc = NULL;
	const struct cm_json *has;
	int r = cm_json_parse(text, strlen(text), "state.json", 0, &doc, err);

	if (r < 0)
		return r;
	has = cm_json_root(doc);
	read_modes(has, spec);
	read_limits(has, &spec->limits);
	spec->limits.is_cpuset_optional = cm_json_bool(has, "cpusetOptional", false);
	if (!copy_text(&spec->limits.cpuset, cm_json_str(has, "cpuset", NULL)))
		r = cm_error_set(err, CM_E_NOMEM, 0, "no memory for the session");
	if (r == CM_OK)
		r = read_volumes(cm_json_get(has, "volumes"), spec, err);
	if (r == CM_OK)
		r = read_extent(has, spec, err);
	cm_json_free(doc);
	return r;
}

/* --read-only is not kept by itself, but as what it made of the workspace and each volume. */
static bool is_all_read_only(const struct cm_spec *spec)
{
	for (size_t i = 0; i < spec->n_volumes; i++) {
		if (!spec->volumes[i].is_read_only)
			return false;
	}
	return spec->is_workspace_read_only;
}

/*
 * As an option's value is read today: a record may have an address as it was written by whoever made
 * the session, and what reads as the same is the same. false: out of memory.
 */
static bool copy_repo(char **to, const struct cm_session_record *record)
{
	struct cm_giturl url = { 0 };
	int r = record->repo ? cm_giturl_parse(record->repo, &url, NULL) : CM_E_INVALID;

	if (r == CM_E_NOMEM)
		return false;
	if (r != CM_OK)
		return copy_text(to, record->repo);
	free(*to);
	*to = cm_ptr_take(&url.text);
	cm_giturl_clear(&url);
	return true;
}

static int read_record(const struct cm_session_record *record, const char *settings,
		       struct cm_spec *ret, struct cm_error *err)
{
	struct cm_merge m = { .spec = ret };
	int r = CM_OK;

	cm_spec_init(ret);
	ret->workspace_kind = record->workspace_kind;
	ret->is_workspace_read_only = record->is_workspace_read_only;
	/* 0: the file says nothing, and then the tightest holds, which is built in */
	if (record->network != 0)
		ret->network = record->network;
	if (record->user != 0)
		ret->user = record->user;
	if (record->git != 0)
		ret->git = record->git;
	ret->pr = record->pr;
	ret->depth = record->depth;
	if (!copy_text(&ret->workspace, record->workspace) || !copy_repo(&ret->repo, record) ||
	    !copy_text(&ret->ref, record->ref) || !copy_text(&ret->branch, record->branch) ||
	    !copy_text(&ret->base, record->base) || !copy_text(&ret->rootfs, record->rootfs) ||
	    cm_strv_copy(&ret->labels, &record->labels) != CM_OK)
		r = cm_error_set(err, CM_E_NOMEM, 0, "no memory for the session");
	if (r == CM_OK && settings)
		r = parse(settings, ret, err);
	ret->is_read_only = is_all_read_only(ret);
	if (r < 0)
		cm_spec_clear(ret);
	else
		cm_merge_finish(&m);
	return r;
}

int cm_local_recorded(const struct cm_session_record *record, struct cm_spec *ret,
		      struct cm_error *err)
{
	return read_record(record, record->settings_json, ret, err);
}

struct cm_limit cm_local_memory_limit(const struct cm_local *l)
{
	struct cm_limit limit = l->spec.limits.memory;
	struct cm_spec has;

	if (limit.is_set || !l->has_session || cm_local_running(&l->session.record, &has, NULL) < 0)
		return limit;
	limit = has.limits.memory;
	cm_spec_clear(&has);
	return limit;
}

int cm_local_running(const struct cm_session_record *record, struct cm_spec *ret,
		     struct cm_error *err)
{
	return read_record(record,
			   record->started_json ? record->started_json : record->settings_json, ret,
			   err);
}

int cm_local_record_start(const struct cm_spec *spec, struct cm_session_record *record,
			  struct cm_error *err)
{
	char *started = format(spec, true);

	if (!started)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the session");
	free(record->started_json);
	record->started_json = started;
	return CM_OK;
}

void cm_local_describe(const struct cm_key_info *info, const struct cm_spec *spec,
		       struct cm_buf *out)
{
	size_t n = cm_key_count_values(info, spec);

	if (cm_key_is_limit(info) &&
	    !((const struct cm_limit *)cm_key_field_const(info, spec))->is_set)
		n = 0;
	for (size_t i = 0; i < n; i++) {
		cm_buf_puts(out, i > 0 ? ", " : "");
		cm_key_format(info, spec, i, out);
	}
	if (n == 0)
		cm_buf_puts(out, "none");
}

static void swap_text(char **a, char **b)
{
	char *text = *a;

	*a = *b;
	*b = text;
}

void cm_local_take_over(struct cm_spec *spec, struct cm_spec *has)
{
	struct cm_volume *volumes = spec->volumes;
	size_t n_volumes = spec->n_volumes;
	struct cm_strv labels = spec->labels;
	struct cm_strv sparse = spec->sparse;

	spec->workspace_kind = has->workspace_kind;
	spec->is_workspace_read_only = has->is_workspace_read_only;
	spec->is_read_only = has->is_read_only;
	spec->network = has->network;
	spec->user = has->user;
	spec->git = has->git;
	spec->pr = has->pr;
	spec->depth = has->depth;
	spec->has_lfs = has->has_lfs;
	spec->filter = has->filter;
	for (size_t i = 0; i < CM_ARRAY_SIZE(limits); i++)
		*limit_at(&spec->limits, i) = *limit_at(&has->limits, i);
	spec->limits.is_cpuset_optional = has->limits.is_cpuset_optional;
	spec->volumes = has->volumes;
	spec->n_volumes = has->n_volumes;
	has->volumes = volumes;
	has->n_volumes = n_volumes;
	spec->sparse = has->sparse;
	has->sparse = sparse;
	swap_text(&spec->limits.cpuset, &has->limits.cpuset);
	swap_text(&spec->workspace, &has->workspace);
	swap_text(&spec->repo, &has->repo);
	swap_text(&spec->ref, &has->ref);
	swap_text(&spec->branch, &has->branch);
	swap_text(&spec->base, &has->base);
	swap_text(&spec->rootfs, &has->rootfs);
	spec->labels = has->labels;
	has->labels = labels;
}
