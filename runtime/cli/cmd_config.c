/* SPDX-License-Identifier: Apache-2.0 */
/* casemate config: show the effective values, check a file, print the schema. */
#include <string.h>

#include "runtime/base/fd.h"
#include "runtime/base/json_write.h"
#include "runtime/base/text.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/request.h"
#include "runtime/spec/format.h"

#define MAX_TEXT (64UL * 1024 * 1024)
#define VALUE_COLUMN 48

/* Where the i-th value of a key came from. */
static const char *origin_of(const struct cm_origins *origins, const struct cm_key_info *info,
			     size_t i)
{
	const struct cm_strv *of = &origins->of[info->key];

	return i < of->n ? of->v[i] : "built in";
}

/* Asking for a value that nobody set and that has no default would only be noise. */
static bool is_shown(const struct cm_key_info *info, const struct cm_origins *origins)
{
	return info->json && (origins->of[info->key].n > 0 || info->fallback);
}

/*
 * A variable that is only passed may be a secret, and the output may end in a bug report: its
 * name is enough.
 */
static void hide_passed(const struct cm_cli *cli, struct cm_buf *value)
{
	char *equals = value->data ? strchr(value->data, '=') : NULL;
	const char *callers;

	if (!equals)
		return;
	*equals = '\0';
	callers = cm_strv_env_get(&cli->config.env, value->data);
	if (callers && strcmp(callers, equals + 1) == 0)
		value->len = (size_t)(equals - value->data);
	else
		*equals = '=';
}

static void format_value(const struct cm_cli *cli, const struct cm_key_info *info,
			 const struct cm_spec *spec, size_t i, struct cm_buf *out)
{
	cm_key_format(info, spec, i, out);
	if (info->kind == CM_KIND_WORKSPACE && out->len == 0)
		cm_buf_puts(out, "false");
	if (info->kind == CM_KIND_ENV)
		hide_passed(cli, out);
}

static void show_key_text(const struct cm_cli *cli, const struct cm_key_info *info,
			  const struct cm_spec *spec, const struct cm_origins *origins,
			  bool with_origin, struct cm_buf *out)
{
	size_t n = cm_key_count_values(info, spec);

	for (size_t i = 0; i < n; i++) {
		CM_AUTO_BUF struct cm_buf value = { 0 };
		size_t line_start = out->len;

		cm_buf_init(&value, MAX_TEXT);
		format_value(cli, info, spec, i, &value);
		cm_buf_printf(out, "%s = ", info->json);
		if (value.data)
			cm_text_escape(out, value.data, value.len, false);
		if (with_origin) {
			do
				cm_buf_putc(out, ' ');
			while (out->len - line_start < VALUE_COLUMN && !out->has_failed);
			cm_buf_puts(out, "# ");
			cm_text_escape(out, origin_of(origins, info, i),
				       strlen(origin_of(origins, info, i)), false);
		}
		cm_buf_putc(out, '\n');
	}
}

/* { "value": ..., "origin": ... }, for a list a list of these */
static void write_with_origin(const struct cm_cli *cli, const struct cm_key_info *info,
			      const struct cm_spec *spec, const struct cm_origins *origins,
			      struct cm_json_writer *w)
{
	size_t n = cm_key_count_values(info, spec);

	if (!(info->flags & CM_KEYF_LIST)) {
		cm_jw_object(w);
		cm_jw_key(w, "value");
		cm_key_write_json(info, spec, w);
		cm_jw_kstring(w, "origin", origin_of(origins, info, 0));
		cm_jw_end_object(w);
		return;
	}
	cm_jw_array(w);
	for (size_t i = 0; i < n; i++) {
		CM_AUTO_BUF struct cm_buf value = { 0 };

		cm_buf_init(&value, MAX_TEXT);
		format_value(cli, info, spec, i, &value);
		cm_jw_object(w);
		cm_jw_key(w, "value");
		cm_jw_string_len(w, value.data ? value.data : "", value.len);
		cm_jw_kstring(w, "origin", origin_of(origins, info, i));
		cm_jw_end_object(w);
	}
	cm_jw_end_array(w);
}

static void write_plain(const struct cm_cli *cli, const struct cm_key_info *info,
			const struct cm_spec *spec, struct cm_json_writer *w)
{
	size_t n = cm_key_count_values(info, spec);

	if (info->kind != CM_KIND_ENV) {
		cm_key_write_json(info, spec, w);
		return;
	}
	cm_jw_array(w);
	for (size_t i = 0; i < n; i++) {
		CM_AUTO_BUF struct cm_buf value = { 0 };

		cm_buf_init(&value, MAX_TEXT);
		format_value(cli, info, spec, i, &value);
		cm_jw_string_len(w, value.data ? value.data : "", value.len);
	}
	cm_jw_end_array(w);
}

static void show_all(const struct cm_cli *cli, const struct cm_spec *spec,
		     const struct cm_origins *origins, bool with_origin, struct cm_buf *out)
{
	struct cm_json_writer w;

	cm_jw_init(&w, out, true);
	if (spec->is_json)
		cm_jw_object(&w);
	for (unsigned int key = 0; key < CM_KEY_COUNT; key++) {
		const struct cm_key_info *info = cm_key_info((enum cm_key)key);

		if (!is_shown(info, origins))
			continue;
		if (!spec->is_json) {
			show_key_text(cli, info, spec, origins, with_origin, out);
			continue;
		}
		cm_jw_key(&w, info->json);
		if (with_origin)
			write_with_origin(cli, info, spec, origins, &w);
		else
			write_plain(cli, info, spec, &w);
	}
	if (spec->is_json) {
		cm_jw_end_object(&w);
		cm_buf_putc(out, '\n');
	}
}

static int print_text(const struct cm_cli *cli, const struct cm_buf *text)
{
	struct cm_error err = CM_ERROR_INIT;

	if (cm_buf_status(text) != CM_OK) {
		cm_error_set(&err, CM_E_NOMEM, 0, "out of memory");
		return cm_cli_fail(cli, &err);
	}
	return text->data ? cm_cli_print(cli, text->data, text->len) : 0;
}

/* Takes the options of `run`, so that what they would make can be seen. */
static int show(struct cm_cli *cli, int argc, char **argv)
{
	struct cm_error err = CM_ERROR_INIT;
	CM_AUTO_ORIGINS struct cm_origins origins = { 0 };
	CM_AUTO_BUF struct cm_buf text = { 0 };
	struct cm_spec spec;
	bool with_origin = false;
	int n = 0;
	int status;

	cm_buf_init(&text, MAX_TEXT);
	for (int i = 0; i < argc; i++) {
		if (strcmp(argv[i], "--origin") == 0)
			with_origin = true;
		else
			argv[n++] = argv[i];
	}
	if (cm_request_read(cli, n, argv, &spec, &origins, &err) != CM_OK)
		return cm_cli_fail(cli, &err);
	if (spec.argv.n > 0) {
		cm_error_set(&err, CM_E_INVALID, 0, "config show takes options only, not '%.100s'",
			     spec.argv.v[0]);
		cm_error_hint(&err, "write casemate config show [--origin] [--json] [OPTION...]");
		status = cm_cli_fail(cli, &err);
	} else {
		show_all(cli, &spec, &origins, with_origin, &text);
		status = print_text(cli, &text);
	}
	cm_spec_clear(&spec);
	return status;
}

static int check(struct cm_cli *cli, int argc, char **argv)
{
	struct cm_error err = CM_ERROR_INIT;
	int status = 0;

	if (argc == 0) {
		cm_error_set(&err, CM_E_INVALID, 0, "no file to check");
		cm_error_hint(&err, "write casemate config check FILE...");
		return cm_cli_fail(cli, &err);
	}
	for (int i = 0; i < argc; i++) {
		cm_error_clear(&err);
		if (cm_config_check(&cli->config, argv[i], &err) != CM_OK)
			status = cm_cli_fail(cli, &err);
	}
	return status;
}

static int schema(struct cm_cli *cli)
{
	CM_AUTO_BUF struct cm_buf text = { 0 };

	cm_buf_init(&text, MAX_TEXT);
	cm_schema_write(&text);
	return print_text(cli, &text);
}

int cm_cmd_config(struct cm_cli *cli, int argc, char **argv)
{
	struct cm_error err = CM_ERROR_INIT;
	const char *what = argc > 1 ? argv[1] : NULL;

	if (what && strcmp(what, "show") == 0)
		return show(cli, argc - 2, argv + 2);
	if (what && strcmp(what, "check") == 0)
		return check(cli, argc - 2, argv + 2);
	if (what && strcmp(what, "schema") == 0 && argc == 2)
		return schema(cli);
	if (what)
		cm_error_set(&err, CM_E_INVALID, 0, "unknown argument '%.100s' of config", what);
	else
		cm_error_set(&err, CM_E_INVALID, 0, "config show, check or schema?");
	cm_error_hint(&err, "write casemate config show, casemate config check FILE, or "
			    "casemate config schema");
	return cm_cli_fail(cli, &err);
}
