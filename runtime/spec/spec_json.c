/* SPDX-License-Identifier: Apache-2.0 */
/* Policy and configuration files: JSON into settings, then each layer tried on a spec. */
#include "runtime/spec/spec_json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/json.h"
#include "runtime/spec/merge.h"

#define MAX_PROFILE_NAME 128
#define MAX_PROFILES 256

struct reader {
	const char *name;
	const char *base;
	unsigned int allowed;
	struct cm_file *file;
};

void cm_file_clear(struct cm_file *file)
{
	cm_layer_clear(&file->keys);
	cm_layer_clear(&file->ceiling);
	for (size_t i = 0; i < file->n_profiles; i++) {
		free(file->profiles[i].name);
		cm_layer_clear(&file->profiles[i].layer);
	}
	free(file->profiles);
	*file = (struct cm_file){ 0 };
}

static int no_memory(struct cm_error *err)
{
	return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
}

static const char *wanted(const struct cm_key_info *info)
{
	switch (info->kind) {
	case CM_KIND_BOOL:
		return "true or false";
	case CM_KIND_TRI:
		return "true, false or \"auto\"";
	case CM_KIND_SIZE:
		return "a size";
	case CM_KIND_COUNT:
	case CM_KIND_NUMBER:
		return "a whole number";
	case CM_KIND_MILLI:
		return "a number";
	case CM_KIND_DURATION:
		return "a duration";
	case CM_KIND_ENV:
	case CM_KIND_LABEL:
		return "an object of strings, or a list of strings";
	case CM_KIND_LIST:
	case CM_KIND_VOLUME:
		return "a string or a list of strings";
	case CM_KIND_WORKSPACE:
		return "a string or false";
	case CM_KIND_RETENTION:
		return "a string or an object";
	case CM_KIND_CPUSET:
	case CM_KIND_WORD:
	case CM_KIND_NAME:
	case CM_KIND_REPO:
	case CM_KIND_BRANCH:
	case CM_KIND_PATH:
	case CM_KIND_ROOT:
	case CM_KIND_SESSION:
	case CM_KIND_RESULT:
	case CM_KIND_MOUNT:
	case CM_KIND_ULIMIT:
	case CM_KIND_ENV_FILE:
	case CM_KIND_POLICY:
	case CM_KIND_PROFILE:
	case CM_KIND_PROVIDER:
	case CM_KIND_SHELL:
	case CM_KIND_CREDENTIAL:
	case CM_KIND_FILE:
	case CM_KIND_SWITCH:
	case CM_KIND_HELP:
		break;
	}
	return "a string";
}

static void hint_example(const struct cm_key_info *info, struct cm_error *err)
{
	if (cm_key_is_map(info))
		cm_error_hint(err, "for example \"%s\": { \"%.*s\": \"%s\" }", info->json,
			      (int)strcspn(info->example, "="), info->example,
			      info->example + strcspn(info->example, "=") + 1);
	else if (info->flags & CM_KEYF_LIST)
		cm_error_hint(err, "for example \"%s\": [\"%s\"]", info->json, info->example);
	else if (cm_key_is_switch(info) || info->kind == CM_KIND_NUMBER)
		cm_error_hint(err, "for example \"%s\": %s", info->json, info->example);
	else
		cm_error_hint(err, "for example \"%s\": \"%s\"", info->json, info->example);
}

static const char *type_text(const struct cm_json *v)
{
	switch (v->type) {
	case CM_JSON_NULL:
		return "null";
	case CM_JSON_BOOL:
		return v->u.boolean ? "true" : "false";
	case CM_JSON_INT:
		return "a number";
	case CM_JSON_DOUBLE:
		return "a fraction";
	case CM_JSON_STRING:
		return "a string";
	case CM_JSON_ARRAY:
		return "a list";
	case CM_JSON_OBJECT:
		break;
	}
	return "an object";
}

static int wrong_type(const struct reader *rd, const struct cm_key_info *info,
		      const struct cm_json *v, struct cm_error *err)
{
	int r = cm_error_set(err, CM_E_INVALID, 0, "%s:%u: '%s' must be %s, not %s", rd->name,
			     v->line, info->json, wanted(info), type_text(v));

	hint_example(info, err);
	return r;
}

static int add(const struct reader *rd, struct cm_layer *layer, const struct cm_key_info *info,
	       const struct cm_json *v, const char *text, struct cm_error *err)
{
	CM_AUTO_FREE char *place = cm_asprintf("%s:%u", rd->name, v->line);
	CM_AUTO_FREE char *what = cm_asprintf("'%s'", info->json);
	int r;

	if (!place || !what || !text)
		return no_memory(err);
	/* an empty text has a meaning of its own for one key, which JSON writes as false */
	if (text[0] == '\0' && v->type == CM_JSON_STRING) {
		r = cm_error_set(err, CM_E_INVALID, 0, "%s: %s must not be empty", place, what);
		hint_example(info, err);
		return r;
	}
	r = cm_layer_add(layer, info->key, text, what, place, err);
	return r == CM_OK ? r : cm_error_wrap(err, "%s", place);
}

static int unknown_member(const struct reader *rd, const struct cm_key_info *info,
			  const struct cm_json *v, const char *known, struct cm_error *err)
{
	int r = cm_error_set(err, CM_E_INVALID, 0, "%s:%u: unknown key '%.100s' in '%s'", rd->name,
			     v->line, v->key, info->json);

	cm_error_hint(err, "%s", known);
	return r;
}

static int read_scalar(const struct reader *rd, struct cm_layer *layer,
		       const struct cm_key_info *info, const struct cm_json *v, const char *suffix,
		       struct cm_error *err);

/* { "max": "4G", "optional": true } */
static int read_limit_object(const struct reader *rd, struct cm_layer *layer,
			     const struct cm_key_info *info, const struct cm_json *v,
			     struct cm_error *err)
{
	const struct cm_json *max = cm_json_get(v, "max");
	const struct cm_json *optional = cm_json_get(v, "optional");
	int r;

	for (const struct cm_json *m = v->first_child; m; m = m->next) {
		if (m != max && m != optional)
			return unknown_member(rd, info, m, "there are \"max\" and \"optional\"",
					      err);
	}
	if (!max || max->type == CM_JSON_OBJECT) {
		r = cm_error_set(err, CM_E_INVALID, 0, "%s:%u: '%s' needs \"max\"", rd->name,
				 v->line, info->json);
		cm_error_hint(err, "for example \"%s\": { \"max\": \"%s\", \"optional\": true }",
			      info->json, info->example);
		return r;
	}
	if (optional && optional->type != CM_JSON_BOOL)
		return cm_error_set(err, CM_E_INVALID, 0,
				    "%s:%u: \"optional\" of '%s' must be true or false, not %s",
				    rd->name, optional->line, info->json, type_text(optional));
	return read_scalar(rd, layer, info, max, optional && optional->u.boolean ? "?" : "", err);
}

/* { "mode": "none" }: room for what belongs to other modes */
static int read_network_object(const struct reader *rd, struct cm_layer *layer,
			       const struct cm_key_info *info, const struct cm_json *v,
			       struct cm_error *err)
{
	const struct cm_json *mode = cm_json_get(v, "mode");
	int r;

	for (const struct cm_json *m = v->first_child; m; m = m->next) {
		if (m == mode)
			continue;
		if (strcmp(m->key, "allow") != 0 && strcmp(m->key, "publish") != 0)
			return unknown_member(rd, info, m, "there is \"mode\"", err);
		r = cm_error_set(err, CM_E_UNSUPPORTED, 0,
				 "%s:%u: '%s' of 'network' is not supported yet", rd->name, m->line,
				 m->key);
		cm_error_hint(err, "there are \"network\": \"none\" and \"network\": \"host\"");
		return r;
	}
	if (!mode || mode->type != CM_JSON_STRING) {
		r = cm_error_set(err, CM_E_INVALID, 0, "%s:%u: 'network' needs \"mode\"", rd->name,
				 v->line);
		cm_error_hint(err, "for example \"network\": \"none\"");
		return r;
	}
	return read_scalar(rd, layer, info, mode, "", err);
}

/* The value as the text that a flag would have; NULL: wrong type (or no memory, for add). */
static char *scalar_text(const struct cm_key_info *info, const struct cm_json *v,
			 const char *suffix, bool *ret_is_right)
{
	bool is_limit = cm_key_is_limit(info);

	*ret_is_right = true;
	if (v->type == CM_JSON_BOOL && cm_key_is_switch(info))
		return cm_strdup(v->u.boolean ? "true" : "false");
	if (v->type == CM_JSON_BOOL && info->kind == CM_KIND_WORKSPACE && !v->u.boolean)
		return cm_strdup("");
	if (v->type == CM_JSON_INT && (is_limit || info->kind == CM_KIND_NUMBER))
		return cm_asprintf("%" PRId64 "%s", v->u.integer, suffix);
	if (v->type == CM_JSON_DOUBLE && info->kind == CM_KIND_MILLI)
		return cm_asprintf("%.3f%s", v->u.number, suffix);
	if (v->type == CM_JSON_STRING && info->kind != CM_KIND_BOOL && info->kind != CM_KIND_NUMBER)
		return v->u.string[0] == '\0' ? cm_strdup("")
					      : cm_asprintf("%s%s", v->u.string, suffix);
	*ret_is_right = false;
	return NULL;
}

static int read_scalar(const struct reader *rd, struct cm_layer *layer,
		       const struct cm_key_info *info, const struct cm_json *v, const char *suffix,
		       struct cm_error *err)
{
	CM_AUTO_FREE char *text = NULL;
	bool is_right;

	if (v->type == CM_JSON_OBJECT && (cm_key_is_limit(info) || info->kind == CM_KIND_CPUSET))
		return read_limit_object(rd, layer, info, v, err);
	if (v->type == CM_JSON_OBJECT && info->key == CM_KEY_NETWORK)
		return read_network_object(rd, layer, info, v, err);
	text = scalar_text(info, v, suffix, &is_right);
	if (!is_right)
		return wrong_type(rd, info, v, err);
	return add(rd, layer, info, v, text, err);
}

static int read_list(const struct reader *rd, struct cm_layer *layer,
		     const struct cm_key_info *info, const struct cm_json *v, struct cm_error *err)
{
	int r = CM_OK;

	if (v->type == CM_JSON_STRING && !cm_key_is_map(info))
		return add(rd, layer, info, v, v->u.string, err);
	if (v->type != CM_JSON_ARRAY)
		return wrong_type(rd, info, v, err);
	for (const struct cm_json *item = v->first_child; r == CM_OK && item; item = item->next) {
		if (item->type != CM_JSON_STRING)
			return wrong_type(rd, info, item, err);
		r = add(rd, layer, info, item, item->u.string, err);
	}
	return r;
}

static int read_map(const struct reader *rd, struct cm_layer *layer, const struct cm_key_info *info,
		    const struct cm_json *v, struct cm_error *err)
{
	int r = CM_OK;

	for (const struct cm_json *m = v->first_child; r == CM_OK && m; m = m->next) {
		CM_AUTO_FREE char *text = NULL;

		if (m->type != CM_JSON_STRING)
			return wrong_type(rd, info, m, err);
		if (strchr(m->key, '=')) {
			r = cm_error_set(err, CM_E_INVALID, 0, "%s:%u: %s must not have '='",
					 rd->name, m->line,
					 info->kind == CM_KIND_ENV ? "a variable's name"
								   : "the key of a label");
			hint_example(info, err);
			return r;
		}
		text = cm_asprintf("%s=%s", m->key, m->u.string);
		r = add(rd, layer, info, m, text, err);
	}
	return r;
}

static int unknown_key(const struct reader *rd, const struct cm_json *v, struct cm_error *err)
{
	const struct cm_key_info *flag = cm_key_by_flag(v->key, strlen(v->key));
	const char *near = cm_key_nearest_json(v->key);
	int r;

	if (flag && !flag->json) {
		r = cm_error_set(err, CM_E_INVALID, 0, "%s:%u: '%.100s' cannot be in a file",
				 rd->name, v->line, v->key);
		cm_error_hint(err, "use the option --%s", flag->name);
		return r;
	}
	r = cm_error_set(err, CM_E_INVALID, 0, "%s:%u: unknown key '%.100s'", rd->name, v->line,
			 v->key);
	if (flag)
		near = flag->json;
	if (near)
		cm_error_hint(err, "did you mean '%s'?", near);
	else
		cm_error_hint(err, "'casemate config show' lists the keys");
	return r;
}

/* { "older-than": "7d", "keep-last": 20, "files": false } as the option has it. */
static int read_retention(const struct reader *rd, struct cm_layer *layer,
			  const struct cm_key_info *info, const struct cm_json *v,
			  struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf text = { 0 };

	cm_buf_init(&text, 4096);
	for (const struct cm_json *m = v->first_child; m; m = m->next) {
		bool is_files = strcmp(m->key, "files") == 0;
		const char *comma = text.len > 0 ? "," : "";

		if (!is_files && strcmp(m->key, "older-than") != 0 &&
		    strcmp(m->key, "keep-last") != 0)
			return unknown_member(rd, info, m,
					      "there are \"older-than\", \"keep-last\" and "
					      "\"files\"",
					      err);
		if (is_files && m->type == CM_JSON_BOOL)
			cm_buf_printf(&text, "%s%s", m->u.boolean ? comma : "",
				      m->u.boolean ? "files" : "");
		else if (m->type == CM_JSON_INT && !is_files)
			cm_buf_printf(&text, "%s%s=%" PRId64, comma, m->key, m->u.integer);
		else if (m->type == CM_JSON_STRING && !is_files)
			cm_buf_printf(&text, "%s%s=%s", comma, m->key, m->u.string);
		else
			return cm_error_set(
				err, CM_E_INVALID, 0, "%s:%u: \"%s\" of '%s' must be %s, not %s",
				rd->name, m->line, m->key, info->json,
				is_files ? "true or false" : "a number or a string", type_text(m));
	}
	return add(rd, layer, info, v, text.data ? text.data : "", err);
}

static int read_key(const struct reader *rd, struct cm_layer *layer, const struct cm_json *v,
		    struct cm_error *err)
{
	const struct cm_key_info *info = cm_key_by_json(v->key);

	if (!info)
		return unknown_key(rd, v, err);
	if (cm_key_is_map(info) && v->type == CM_JSON_OBJECT)
		return read_map(rd, layer, info, v, err);
	if (info->kind == CM_KIND_RETENTION && v->type == CM_JSON_OBJECT)
		return read_retention(rd, layer, info, v, err);
	if (info->flags & CM_KEYF_LIST)
		return read_list(rd, layer, info, v, err);
	return read_scalar(rd, layer, info, v, "", err);
}

static int not_an_object(const struct reader *rd, const struct cm_json *v, const char *what,
			 struct cm_error *err)
{
	int r = cm_error_set(err, CM_E_INVALID, 0, "%s:%u: %s must be an object, not %s", rd->name,
			     v->line, what, type_text(v));

	cm_error_hint(err, "'casemate config schema' prints what a file may hold");
	return r;
}

static int set_base(const struct reader *rd, struct cm_layer *layer, struct cm_error *err)
{
	layer->base = cm_strdup(rd->base);
	return layer->base ? CM_OK : no_memory(err);
}

static int read_layer(const struct reader *rd, struct cm_layer *layer, const struct cm_json *v,
		      const char *what, struct cm_error *err)
{
	int r = set_base(rd, layer, err);

	if (v->type != CM_JSON_OBJECT)
		return not_an_object(rd, v, what, err);
	for (const struct cm_json *m = v->first_child; r == CM_OK && m; m = m->next)
		r = read_key(rd, layer, m, err);
	return r;
}

static int read_ceiling(const struct reader *rd, const struct cm_json *v, struct cm_error *err)
{
	struct cm_layer *layer = &rd->file->ceiling;
	int r = read_layer(rd, layer, v, "'ceiling'", err);

	for (size_t i = 0; r == CM_OK && i < layer->n; i++) {
		const struct cm_key_info *info = cm_key_info(layer->settings[i].key);

		if (info->flags & CM_KEYF_CEILING)
			continue;
		r = cm_error_set(err, CM_E_INVALID, 0, "%s: '%s' cannot be in a ceiling",
				 layer->settings[i].place, info->json);
		cm_error_hint(err, "a ceiling holds limits, network, user, git, min-level and "
				   "read-only");
	}
	return r;
}

static int read_profile(const struct reader *rd, const struct cm_json *v, struct cm_error *err)
{
	struct cm_profile *profile = &rd->file->profiles[rd->file->n_profiles];
	CM_AUTO_FREE char *what = NULL;

	if (cm_session_id_check(v->key, NULL) != CM_OK) {
		int r = cm_error_set(err, CM_E_INVALID, 0, "%s:%u: bad profile name '%.140s'",
				     rd->name, v->line, v->key);

		cm_error_hint(err, "use 1 to %d of A-Z a-z 0-9 . _ - and begin with none of . -",
			      MAX_PROFILE_NAME);
		return r;
	}
	what = cm_asprintf("profile '%s'", v->key);
	*profile = (struct cm_profile){ .name = cm_strdup(v->key) };
	if (!what || !profile->name) {
		free(profile->name);
		return no_memory(err);
	}
	rd->file->n_profiles++;
	return read_layer(rd, &profile->layer, v, what, err);
}

static int read_profiles(const struct reader *rd, const struct cm_json *v, struct cm_error *err)
{
	int r = CM_OK;

	if (v->type != CM_JSON_OBJECT)
		return not_an_object(rd, v, "'profiles'", err);
	if (v->n_children > MAX_PROFILES)
		return cm_error_set(err, CM_E_LIMIT, 0, "%s:%u: more than %d profiles", rd->name,
				    v->line, MAX_PROFILES);
	rd->file->profiles =
		cm_calloc(v->n_children ? v->n_children : 1, sizeof(*rd->file->profiles));
	if (!rd->file->profiles)
		return no_memory(err);
	for (const struct cm_json *m = v->first_child; r == CM_OK && m; m = m->next)
		r = read_profile(rd, m, err);
	return r;
}

static int misplaced(const struct reader *rd, const struct cm_json *v, struct cm_error *err)
{
	int r = cm_error_set(err, CM_E_INVALID, 0, "%s:%u: '%s' cannot be in this file", rd->name,
			     v->line, v->key);

	if (strcmp(v->key, "ceiling") == 0)
		cm_error_hint(err, "a ceiling holds only in /etc/casemate/config.json");
	else
		cm_error_hint(err, "profiles are in the configuration files");
	return r;
}

static int read_root(const struct reader *rd, const struct cm_json *root, struct cm_error *err)
{
	int r = set_base(rd, &rd->file->keys, err);

	if (root->type != CM_JSON_OBJECT)
		return not_an_object(rd, root, "the file", err);
	for (const struct cm_json *v = root->first_child; r == CM_OK && v; v = v->next) {
		if (strcmp(v->key, "$schema") == 0)
			continue;
		if (strcmp(v->key, "profiles") == 0)
			r = (rd->allowed & CM_FILE_PROFILES) ? read_profiles(rd, v, err)
							     : misplaced(rd, v, err);
		else if (strcmp(v->key, "ceiling") == 0)
			r = (rd->allowed & CM_FILE_CEILING) ? read_ceiling(rd, v, err)
							    : misplaced(rd, v, err);
		else
			r = read_key(rd, &rd->file->keys, v, err);
	}
	return r;
}

/* Each value once onto a spec that is thrown away, so that errors have their place. */
static int try_layer(const struct cm_layer *layer, struct cm_error *err)
{
	static const struct cm_strv no_env;
	static const struct cm_caller nobody = { .cwd = "/", .home = "/", .env = &no_env };
	struct cm_spec spec;
	struct cm_merge m = { .spec = &spec, .caller = &nobody };
	int r;

	cm_spec_init(&spec);
	r = cm_merge_layer(&m, layer, err);
	cm_spec_clear(&spec);
	return r;
}

int cm_file_parse(const char *text, size_t len, const char *name, const char *base,
		  unsigned int allowed, struct cm_file *ret, struct cm_error *err)
{
	struct reader rd = { .name = name, .base = base, .allowed = allowed, .file = ret };
	struct cm_json_doc *doc = NULL;
	int r = cm_json_parse(text, len, name, CM_JSON_COMMENTS, &doc, err);

	if (r != CM_OK)
		return r;
	r = read_root(&rd, cm_json_root(doc), err);
	cm_json_free(doc);
	if (r == CM_OK)
		r = try_layer(&ret->keys, err);
	if (r == CM_OK)
		r = try_layer(&ret->ceiling, err);
	for (size_t i = 0; r == CM_OK && i < ret->n_profiles; i++)
		r = try_layer(&ret->profiles[i].layer, err);
	return r;
}
