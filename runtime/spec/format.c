/* SPDX-License-Identifier: Apache-2.0 */
/* A spec's values as text that reads back. */
#include "runtime/spec/format.h"

#include <inttypes.h>
#include <string.h>

#include "runtime/base/fd.h"

struct unit {
	const char *text;
	uint64_t factor;
};

static void format_in_units(uint64_t value, const struct unit *units, size_t n, struct cm_buf *out)
{
	for (size_t i = 0; i < n; i++) {
		if (value != 0 && value % units[i].factor == 0) {
			cm_buf_printf(out, "%" PRIu64 "%s", value / units[i].factor, units[i].text);
			return;
		}
	}
	cm_buf_printf(out, "%" PRIu64, value);
}

static void format_size(uint64_t bytes, struct cm_buf *out)
{
	static const struct unit units[] = {
		{ "T", UINT64_C(1) << 40 },
		{ "G", UINT64_C(1) << 30 },
		{ "M", UINT64_C(1) << 20 },
		{ "K", UINT64_C(1) << 10 },
	};

	format_in_units(bytes, units, CM_ARRAY_SIZE(units), out);
}

static void format_duration(uint64_t ms, struct cm_buf *out)
{
	static const struct unit units[] = {
		{ "d", UINT64_C(86400000) },
		{ "h", 3600000 },
		{ "m", 60000 },
		{ "s", 1000 },
		{ "ms", 1 },
	};

	format_in_units(ms, units, CM_ARRAY_SIZE(units), out);
}

static void format_milli(uint64_t milli, struct cm_buf *out)
{
	char digits[8];
	size_t n = 3;

	cm_buf_printf(out, "%" PRIu64, milli / 1000);
	if (milli % 1000 == 0)
		return;
	digits[0] = (char)('0' + milli / 100 % 10);
	digits[1] = (char)('0' + milli / 10 % 10);
	digits[2] = (char)('0' + milli % 10);
	while (n > 1 && digits[n - 1] == '0')
		n--;
	digits[n] = '\0';
	cm_buf_printf(out, ".%s", digits);
}

static void format_limit(const struct cm_key_info *info, const struct cm_limit *limit,
			 struct cm_buf *out)
{
	if (limit->value == CM_UNLIMITED) {
		cm_buf_puts(out, "unlimited");
		return;
	}
	if (info->kind == CM_KIND_SIZE)
		format_size(limit->value, out);
	else if (info->kind == CM_KIND_DURATION)
		format_duration(limit->value, out);
	else if (info->kind == CM_KIND_MILLI)
		format_milli(limit->value, out);
	else
		cm_buf_printf(out, "%" PRIu64, limit->value);
	if (limit->is_optional)
		cm_buf_putc(out, '?');
}

static void format_volume(const struct cm_volume *volume, struct cm_buf *out)
{
	cm_buf_puts(out, volume->src);
	if (strcmp(volume->src, volume->dst) != 0)
		cm_buf_printf(out, ":%s", volume->dst);
	if (volume->is_read_only)
		cm_buf_puts(out, ":ro");
}

static const char *string_of(const struct cm_key_info *info, const struct cm_spec *spec)
{
	char *const *field = cm_key_field_const(info, spec);

	return *field;
}

static bool is_vector(const struct cm_key_info *info)
{
	return info->kind == CM_KIND_LIST || cm_key_is_map(info);
}

size_t cm_key_count_values(const struct cm_key_info *info, const struct cm_spec *spec)
{
	if (info->offset == SIZE_MAX)
		return 0;
	if (is_vector(info))
		return ((const struct cm_strv *)cm_key_field_const(info, spec))->n;
	if (info->kind == CM_KIND_VOLUME)
		return spec->n_volumes;
	if (info->kind == CM_KIND_WORKSPACE)
		return spec->workspace_kind == CM_WORKSPACE_DIR ||
		       spec->workspace_kind == CM_WORKSPACE_NONE;
	if (info->kind == CM_KIND_NUMBER)
		return *(const int *)cm_key_field_const(info, spec) > 0;
	/* no word has 0: nothing is said */
	if (info->kind == CM_KIND_WORD)
		return *(const unsigned int *)cm_key_field_const(info, spec) != 0;
	if (cm_key_is_switch(info) || cm_key_is_limit(info))
		return 1;
	return string_of(info, spec) != NULL;
}

static void format_switch(const struct cm_key_info *info, const struct cm_spec *spec,
			  struct cm_buf *out)
{
	static const char *const tri[] = {
		[CM_AUTO] = "auto", [CM_YES] = "true", [CM_NO] = "false"
	};

	if (info->kind == CM_KIND_TRI)
		cm_buf_puts(out, tri[*(const enum cm_tri *)cm_key_field_const(info, spec)]);
	else
		cm_buf_puts(out, *(const bool *)cm_key_field_const(info, spec) ? "true" : "false");
}

static void format_text(const struct cm_key_info *info, const struct cm_spec *spec,
			struct cm_buf *out)
{
	const char *text = string_of(info, spec);

	if (text)
		cm_buf_puts(out, text);
	if (info->kind == CM_KIND_WORKSPACE && text && spec->is_workspace_read_only)
		cm_buf_puts(out, ":ro");
	if (info->kind == CM_KIND_CPUSET && text && spec->limits.is_cpuset_optional)
		cm_buf_putc(out, '?');
}

void cm_key_format(const struct cm_key_info *info, const struct cm_spec *spec, size_t i,
		   struct cm_buf *out)
{
	if (info->offset == SIZE_MAX)
		return;
	if (cm_key_is_limit(info))
		format_limit(info, cm_key_field_const(info, spec), out);
	else if (is_vector(info))
		cm_buf_puts(out, ((const struct cm_strv *)cm_key_field_const(info, spec))->v[i]);
	else if (info->kind == CM_KIND_VOLUME)
		format_volume(&spec->volumes[i], out);
	else if (info->kind == CM_KIND_NUMBER)
		cm_buf_printf(out, "%d", *(const int *)cm_key_field_const(info, spec));
	else if (info->kind == CM_KIND_WORD)
		cm_buf_puts(out, cm_key_word_text(info, *(const unsigned int *)cm_key_field_const(
								info, spec)));
	else if (cm_key_is_switch(info))
		format_switch(info, spec, out);
	else
		format_text(info, spec, out);
}

void cm_strv_write_map(const struct cm_strv *map, struct cm_json_writer *w)
{
	cm_jw_object(w);
	for (size_t i = 0; i < map->n; i++) {
		size_t name_len = strcspn(map->v[i], "=");
		CM_AUTO_BUF struct cm_buf name = { 0 };

		cm_buf_init(&name, name_len + 1);
		cm_buf_append(&name, map->v[i], name_len);
		cm_jw_kstring(w, name.data ? name.data : "", map->v[i] + name_len + 1);
	}
	cm_jw_end_object(w);
}

static void write_one(const struct cm_key_info *info, const struct cm_spec *spec, size_t i,
		      struct cm_json_writer *w)
{
	CM_AUTO_BUF struct cm_buf text = { 0 };

	cm_buf_init(&text, SIZE_MAX / 2);
	cm_key_format(info, spec, i, &text);
	cm_jw_string(w, text.data ? text.data : "");
}

void cm_key_write_json(const struct cm_key_info *info, const struct cm_spec *spec,
		       struct cm_json_writer *w)
{
	size_t n = cm_key_count_values(info, spec);

	if (cm_key_is_map(info)) {
		cm_strv_write_map(cm_key_field_const(info, spec), w);
	} else if (info->flags & CM_KEYF_LIST) {
		cm_jw_array(w);
		for (size_t i = 0; i < n; i++)
			write_one(info, spec, i, w);
		cm_jw_end_array(w);
	} else if (n == 0) {
		cm_jw_null(w);
	} else if (info->kind == CM_KIND_BOOL) {
		cm_jw_bool(w, *(const bool *)cm_key_field_const(info, spec));
	} else if (info->kind == CM_KIND_TRI &&
		   *(const enum cm_tri *)cm_key_field_const(info, spec) != CM_AUTO) {
		cm_jw_bool(w, *(const enum cm_tri *)cm_key_field_const(info, spec) == CM_YES);
	} else if (info->kind == CM_KIND_NUMBER) {
		cm_jw_int(w, *(const int *)cm_key_field_const(info, spec));
	} else if (info->kind == CM_KIND_WORKSPACE && spec->workspace_kind == CM_WORKSPACE_NONE) {
		cm_jw_bool(w, false);
	} else {
		write_one(info, spec, 0, w);
	}
}
