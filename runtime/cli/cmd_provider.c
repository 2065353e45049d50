/* SPDX-License-Identifier: Apache-2.0 */
/* casemate provider: where sessions are, and why. */
#include <string.h>

#include "providers/selection.h"
#include "runtime/base/json_write.h"
#include "runtime/cli/commands.h"

#define TEXT_MAX 65536

static bool is_complete(const struct cm_strv *env, enum cm_provider_kind kind)
{
	const struct cm_provider_variable *v = cm_provider_variables(kind);

	while (v->name) {
		bool has_one = !v->is_needed;

		do {
			has_one = has_one || cm_provider_has_variable(env, v->name);
			v++;
		} while (v->name && v->is_alternative);
		if (!has_one)
			return false;
	}
	return true;
}

static void write_variables(struct cm_json_writer *w, const struct cm_strv *env,
			    enum cm_provider_kind kind)
{
	cm_jw_key(w, "variables");
	cm_jw_array(w);
	for (const struct cm_provider_variable *v = cm_provider_variables(kind); v->name; v++) {
		cm_jw_object(w);
		cm_jw_kstring(w, "name", v->name);
		cm_jw_kstring(w, "what", v->what);
		cm_jw_kbool(w, "needed", v->is_needed);
		cm_jw_kbool(w, "alternative", v->is_alternative);
		cm_jw_kbool(w, "set", cm_provider_has_variable(env, v->name));
		cm_jw_end_object(w);
	}
	cm_jw_end_array(w);
}

static void write_json(const struct cm_strv *env, const struct cm_selection *selection,
		       struct cm_buf *out)
{
	struct cm_json_writer w;

	cm_jw_init(&w, out, false);
	cm_jw_object(&w);
	cm_jw_kstring(&w, "provider", cm_provider_kind_name(selection->kind));
	cm_jw_kstring(&w, "reason", selection->reason);
	cm_jw_key(&w, "providers");
	cm_jw_array(&w);
	for (unsigned int kind = 0; kind < CM_PROVIDER_COUNT_; kind++) {
		cm_jw_object(&w);
		cm_jw_kstring(&w, "name", cm_provider_kind_name((enum cm_provider_kind)kind));
		cm_jw_kbool(&w, "chosen", kind == selection->kind);
		cm_jw_kbool(&w, "complete", is_complete(env, (enum cm_provider_kind)kind));
		write_variables(&w, env, (enum cm_provider_kind)kind);
		cm_jw_end_object(&w);
	}
	cm_jw_end_array(&w);
	cm_jw_end_object(&w);
	cm_buf_putc(out, '\n');
}

/* "MASTRA_PLATFORM_ACCESS_TOKEN or MASTRA_PLATFORM_SECRET_KEY (token): not set" */
static void put_variables(const struct cm_strv *env, enum cm_provider_kind kind, struct cm_buf *out)
{
	const struct cm_provider_variable *v = cm_provider_variables(kind);

	while (v->name) {
		const struct cm_provider_variable *first = v;
		bool is_set = false;

		cm_buf_puts(out, "    ");
		do {
			cm_buf_printf(out, "%s%s", v == first ? "" : " or ", v->name);
			is_set = is_set || cm_provider_has_variable(env, v->name);
			v++;
		} while (v->name && v->is_alternative);
		cm_buf_printf(out, ": %s (%s%s)\n", is_set ? "set" : "not set", first->what,
			      first->is_needed ? ", needed" : "");
	}
}

static void put_all(const struct cm_strv *env, const struct cm_selection *selection,
		    struct cm_buf *out)
{
	for (unsigned int i = 0; i < CM_PROVIDER_COUNT_; i++) {
		enum cm_provider_kind kind = (enum cm_provider_kind)i;

		cm_buf_printf(out, "%s %s", kind == selection->kind ? "*" : " ",
			      cm_provider_kind_name(kind));
		if (kind == selection->kind)
			cm_buf_printf(out, " (%s)", selection->reason);
		else if (!is_complete(env, kind))
			cm_buf_puts(out, " (variables are missing)");
		cm_buf_putc(out, '\n');
		put_variables(env, kind, out);
	}
}

static int usage(struct cm_cli *cli, const char *word)
{
	struct cm_error err = CM_ERROR_INIT;

	cm_error_set(&err, CM_E_INVALID, 0, "unknown word '%.100s'", word);
	cm_error_hint(&err, "casemate provider [show|ls] [--json]");
	return cm_cli_fail(cli, &err);
}

int cm_cmd_provider(struct cm_cli *cli, int argc, char **argv)
{
	bool is_json = false;
	const char *flag = NULL;
	const struct cm_cli_option options[] = {
		{ "json", '\0', CM_OPTION_SWITCH, &is_json },
		{ "provider", '\0', CM_OPTION_TEXT, &flag },
		{ .name = NULL },
	};
	const struct cm_strv *env = &cli->config.env;
	struct cm_error err = CM_ERROR_INIT;
	CM_AUTO_BUF struct cm_buf text = { 0 };
	struct cm_selection selection;
	bool is_list;
	int n = 0;

	if (cm_cli_options(argc - 1, argv + 1, options, &n, &err) < 0)
		return cm_cli_fail(cli, &err);
	is_list = n > 0 && strcmp(argv[1], "ls") == 0;
	if (n > 1 || (n == 1 && !is_list && strcmp(argv[1], "show") != 0))
		return usage(cli, argv[n > 1 ? 2 : 1]);
	if (cm_provider_select(env, flag, &selection, &err) < 0)
		return cm_cli_fail(cli, &err);
	cm_buf_init(&text, TEXT_MAX);
	if (is_json)
		write_json(env, &selection, &text);
	else if (is_list)
		put_all(env, &selection, &text);
	else
		cm_buf_printf(&text, "%s: %s\n", cm_provider_kind_name(selection.kind),
			      selection.reason);
	if (cm_buf_status(&text) < 0)
		cm_error_set(&err, CM_E_NOMEM, 0, "out of memory");
	return err.code != 0 ? cm_cli_fail(cli, &err) : cm_cli_print(cli, text.data, text.len);
}
