/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON schema of configuration files, from the table of keys. */
#include "runtime/base/json_write.h"
#include "runtime/spec/spec_json.h"

static void write_limit_def(struct cm_json_writer *w, const char *name, const char *number)
{
	cm_jw_key(w, name);
	cm_jw_object(w);
	cm_jw_key(w, "oneOf");
	cm_jw_array(w);
	cm_jw_object(w);
	cm_jw_kstring(w, "type", "string");
	cm_jw_end_object(w);
	cm_jw_object(w);
	cm_jw_kstring(w, "type", number);
	cm_jw_end_object(w);
	cm_jw_object(w);
	cm_jw_kstring(w, "type", "object");
	cm_jw_key(w, "properties");
	cm_jw_object(w);
	cm_jw_key(w, "max");
	cm_jw_object(w);
	cm_jw_key(w, "type");
	cm_jw_array(w);
	cm_jw_string(w, "string");
	cm_jw_string(w, number);
	cm_jw_end_array(w);
	cm_jw_end_object(w);
	cm_jw_key(w, "optional");
	cm_jw_object(w);
	cm_jw_kstring(w, "type", "boolean");
	cm_jw_end_object(w);
	cm_jw_end_object(w);
	cm_jw_key(w, "required");
	cm_jw_array(w);
	cm_jw_string(w, "max");
	cm_jw_end_array(w);
	cm_jw_kbool(w, "additionalProperties", false);
	cm_jw_end_object(w);
	cm_jw_end_array(w);
	cm_jw_end_object(w);
}

static void write_list(struct cm_json_writer *w, const char *other)
{
	cm_jw_key(w, "oneOf");
	cm_jw_array(w);
	cm_jw_object(w);
	cm_jw_kstring(w, "type", other);
	if (other[0] == 'o') {
		cm_jw_key(w, "additionalProperties");
		cm_jw_object(w);
		cm_jw_kstring(w, "type", "string");
		cm_jw_end_object(w);
	}
	cm_jw_end_object(w);
	cm_jw_object(w);
	cm_jw_kstring(w, "type", "array");
	cm_jw_key(w, "items");
	cm_jw_object(w);
	cm_jw_kstring(w, "type", "string");
	cm_jw_end_object(w);
	cm_jw_end_object(w);
	cm_jw_end_array(w);
}

static void write_words(struct cm_json_writer *w, const struct cm_key_info *info)
{
	cm_jw_key(w, "enum");
	cm_jw_array(w);
	for (const struct cm_key_word *word = info->words; word->text; word++)
		cm_jw_string(w, word->text);
	if (info->key == CM_KEY_NETWORK) {
		cm_jw_object(w);
		cm_jw_kstring(w, "mode", "none");
		cm_jw_end_object(w);
		cm_jw_object(w);
		cm_jw_kstring(w, "mode", "host");
		cm_jw_end_object(w);
	}
	cm_jw_end_array(w);
}

static void write_type(struct cm_json_writer *w, const struct cm_key_info *info)
{
	if (info->kind == CM_KIND_MILLI) {
		cm_jw_kstring(w, "$ref", "#/$defs/fractionLimit");
	} else if (cm_key_is_limit(info) || info->kind == CM_KIND_CPUSET) {
		cm_jw_kstring(w, "$ref", "#/$defs/limit");
	} else if (info->kind == CM_KIND_BOOL) {
		cm_jw_kstring(w, "type", "boolean");
	} else if (info->kind == CM_KIND_TRI || info->kind == CM_KIND_WORKSPACE) {
		cm_jw_key(w, "type");
		cm_jw_array(w);
		cm_jw_string(w, "boolean");
		cm_jw_string(w, "string");
		cm_jw_end_array(w);
	} else if (info->kind == CM_KIND_NUMBER) {
		cm_jw_kstring(w, "type", "integer");
		cm_jw_kuint(w, "minimum", info->min);
		cm_jw_kuint(w, "maximum", info->max);
	} else if (info->kind == CM_KIND_WORD) {
		write_words(w, info);
	} else if (info->kind == CM_KIND_RETENTION) {
		cm_jw_key(w, "type");
		cm_jw_array(w);
		cm_jw_string(w, "string");
		cm_jw_string(w, "object");
		cm_jw_end_array(w);
	} else if (info->flags & CM_KEYF_LIST) {
		write_list(w, cm_key_is_map(info) ? "object" : "string");
	} else {
		cm_jw_kstring(w, "type", "string");
		cm_jw_kuint(w, "maxLength", info->max);
	}
}

static void write_keys(struct cm_json_writer *w, bool is_ceiling)
{
	cm_jw_object(w);
	cm_jw_kstring(w, "type", "object");
	cm_jw_key(w, "properties");
	cm_jw_object(w);
	for (unsigned int key = 0; key < CM_KEY_COUNT; key++) {
		const struct cm_key_info *info = cm_key_info((enum cm_key)key);

		if (!info->json || (is_ceiling && !(info->flags & CM_KEYF_CEILING)))
			continue;
		cm_jw_key(w, info->json);
		cm_jw_object(w);
		write_type(w, info);
		cm_jw_kstring(w, "description", info->help);
		cm_jw_end_object(w);
	}
	cm_jw_end_object(w);
	if (is_ceiling)
		cm_jw_kbool(w, "additionalProperties", false);
	cm_jw_end_object(w);
}

static void write_ref(struct cm_json_writer *w, const char *key, const char *target)
{
	cm_jw_key(w, key);
	cm_jw_object(w);
	cm_jw_kstring(w, "$ref", target);
	cm_jw_end_object(w);
}

static void write_defs(struct cm_json_writer *w)
{
	cm_jw_key(w, "$defs");
	cm_jw_object(w);
	write_limit_def(w, "limit", "integer");
	write_limit_def(w, "fractionLimit", "number");
	cm_jw_key(w, "keys");
	write_keys(w, false);
	cm_jw_key(w, "ceiling");
	write_keys(w, true);
	cm_jw_key(w, "profile");
	cm_jw_object(w);
	cm_jw_kstring(w, "$ref", "#/$defs/keys");
	cm_jw_kbool(w, "unevaluatedProperties", false);
	cm_jw_end_object(w);
	cm_jw_end_object(w);
}

void cm_schema_write(struct cm_buf *out)
{
	struct cm_json_writer w;

	cm_jw_init(&w, out, true);
	cm_jw_object(&w);
	cm_jw_kstring(&w, "$schema", "https://json-schema.org/draft/2020-12/schema");
	cm_jw_kstring(&w, "title", "Casemate configuration");
	cm_jw_kstring(&w, "$ref", "#/$defs/keys");
	cm_jw_key(&w, "properties");
	cm_jw_object(&w);
	cm_jw_key(&w, "$schema");
	cm_jw_object(&w);
	cm_jw_kstring(&w, "type", "string");
	cm_jw_end_object(&w);
	cm_jw_key(&w, "profiles");
	cm_jw_object(&w);
	cm_jw_kstring(&w, "type", "object");
	write_ref(&w, "additionalProperties", "#/$defs/profile");
	cm_jw_end_object(&w);
	write_ref(&w, "ceiling", "#/$defs/ceiling");
	cm_jw_end_object(&w);
	cm_jw_kbool(&w, "unevaluatedProperties", false);
	write_defs(&w);
	cm_jw_end_object(&w);
	cm_buf_putc(out, '\n');
}
