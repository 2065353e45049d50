/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/store/filter.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/fd.h"
#include "runtime/base/path.h"
#include "runtime/base/text.h"
#include "runtime/spec/labels.h"

static const struct {
	const char *key;
	size_t offset;
} lists[] = {
	{ "name", offsetof(struct cm_session_filter, names) },
	/* as docker has them */
	{ "id", offsetof(struct cm_session_filter, names) },
	{ "level", offsetof(struct cm_session_filter, levels) },
	{ "label", offsetof(struct cm_session_filter, labels) },
	{ "repo", offsetof(struct cm_session_filter, repos) },
	{ "root", offsetof(struct cm_session_filter, roots) },
};

void cm_session_filter_clear(struct cm_session_filter *filter)
{
	cm_strv_clear(&filter->names);
	cm_strv_clear(&filter->levels);
	cm_strv_clear(&filter->labels);
	cm_strv_clear(&filter->repos);
	cm_strv_clear(&filter->roots);
	filter->states = 0;
}

static int bad_filter(const char *text, const char *why, struct cm_error *err)
{
	int r = cm_error_set(err, CM_E_INVALID, 0, "filter '%.100s' %s", text, why);

	cm_error_hint(err, "there are state, level, label, name, repo and root: "
			   "--filter state=stopped --filter label=team=web");
	return r;
}

static int add_state(struct cm_session_filter *filter, const char *value, struct cm_error *err)
{
	int r;

	for (int status = CM_STATUS_CREATED; status <= CM_STATUS_ERROR; status++) {
		if (strcmp(value, cm_session_status_name((enum cm_session_status)status)) == 0) {
			filter->states |= 1U << status;
			return CM_OK;
		}
	}
	r = cm_error_set(err, CM_E_INVALID, 0, "no session has the state '%.100s'", value);
	cm_error_hint(err, "there are created, running, stopped and error");
	return r;
}

/* A key alone asks whether there is such a label. */
static int check_label(const char *value, struct cm_error *err)
{
	CM_AUTO_FREE char *whole = NULL;

	if (strchr(value, '='))
		return cm_label_check(value, "label", err);
	whole = cm_asprintf("%s=", value);
	return whole ? cm_label_check(whole, "label", err)
		     : cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
}

static int add_value(struct cm_session_filter *filter, struct cm_strv *list, const char *value,
		     struct cm_error *err)
{
	CM_AUTO_FREE char *clean = NULL;
	int r = list == &filter->labels ? check_label(value, err) : CM_OK;

	if (list == &filter->roots) {
		clean = cm_path_clean(value);
		if (!clean) {
			r = cm_error_set(err, CM_E_INVALID, 0,
					 "a root must be an absolute path, not '%.100s'", value);
			cm_error_hint(err, "write it in full: --filter root=/srv/sandboxes");
		}
	}
	if (r != CM_OK)
		return r;
	return cm_strv_add(list, clean ? clean : value) == CM_OK
		       ? CM_OK
		       : cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
}

int cm_session_filter_add(struct cm_session_filter *filter, const char *text, struct cm_error *err)
{
	size_t key_len = strcspn(text, "=");
	const char *value = text + key_len + 1;

	if (text[key_len] != '=' || *value == '\0')
		return bad_filter(text, "is not KEY=VALUE", err);
	if ((key_len == 5 && memcmp(text, "state", 5) == 0) ||
	    (key_len == 6 && memcmp(text, "status", 6) == 0))
		return add_state(filter, value, err);
	for (size_t i = 0; i < CM_ARRAY_SIZE(lists); i++) {
		if (strlen(lists[i].key) == key_len && memcmp(lists[i].key, text, key_len) == 0)
			return add_value(filter,
					 (struct cm_strv *)((char *)filter + lists[i].offset),
					 value, err);
	}
	return bad_filter(text, "has an unknown key", err);
}

static bool is_any(const struct cm_strv *patterns, const char *text)
{
	for (size_t i = 0; i < patterns->n; i++) {
		if (text && cm_text_matches(patterns->v[i], text))
			return true;
	}
	return patterns->n == 0;
}

bool cm_session_filter_has_name(const struct cm_session_filter *filter, const char *id)
{
	for (size_t i = 0; i < filter->names.n; i++) {
		const char *name = filter->names.v[i];

		if (strpbrk(name, "*?") ? cm_text_matches(name, id) : cm_text_has_prefix(id, name))
			return true;
	}
	return filter->names.n == 0;
}

bool cm_session_filter_is_of_names(const struct cm_session_filter *filter)
{
	return filter->states == 0 && filter->levels.n == 0 && filter->labels.n == 0 &&
	       filter->repos.n == 0 && filter->roots.n == 0;
}

bool cm_session_filter_matches(const struct cm_session_filter *filter,
			       const struct cm_session_record *record,
			       enum cm_session_status status)
{
	if (filter->states != 0 && (filter->states >> status & 1) == 0)
		return false;
	for (size_t i = 0; i < filter->labels.n; i++) {
		if (!cm_labels_match(&record->labels, filter->labels.v[i]))
			return false;
	}
	/* a root may have a '*' in its name */
	return is_any(&filter->levels, record->level) && is_any(&filter->repos, record->repo) &&
	       (filter->roots.n == 0 || cm_strv_has(&filter->roots, record->root));
}
