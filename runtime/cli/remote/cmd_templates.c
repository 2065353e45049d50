/* SPDX-License-Identifier: Apache-2.0 */
/* casemate template: what sandboxes of a provider are made from. */
#include <string.h>
#include <unistd.h>

#include "runtime/base/fd.h"
#include "runtime/base/json_write.h"
#include "runtime/base/num.h"
#include "runtime/base/text.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/remote/absent.h"
#include "runtime/cli/remote/away.h"

#define MAX_TEXT (64UL * 1024 * 1024)
#define MAX_LINE 65536U
#define CPUS_MAX 1024
#define MEMORY_MAX (UINT64_C(1) << 50)
#define NAME_WIDTH 24

struct options {
	const char *base;
	const char *cpus;
	const char *memory;
	struct cm_strv commands;
	bool is_json;
};

/* --- build --------------------------------------------------------------------------------- */

/* Of a build's log: nothing of it is ours. */
static void on_log(void *data, const char *line)
{
	const struct cm_cli *cli = data;
	CM_AUTO_BUF struct cm_buf text = { 0 };

	if (cli->is_quiet)
		return;
	/* each byte may become four */
	cm_buf_init(&text, 4UL * MAX_LINE + 1);
	cm_text_escape(&text, line, strnlen(line, MAX_LINE), false);
	cm_buf_putc(&text, '\n');
	if (cm_buf_status(&text) == CM_OK)
		(void)cm_write_all(STDERR_FILENO, text.data, text.len);
}

static int print_built(struct cm_cli *cli, const char *name, const char *built, bool is_json)
{
	CM_AUTO_BUF struct cm_buf text = { 0 };
	struct cm_error err = CM_ERROR_INIT;
	struct cm_json_writer w;

	cm_buf_init(&text, MAX_LINE);
	if (is_json) {
		cm_jw_init(&w, &text, false);
		cm_jw_object(&w);
		cm_jw_kstring(&w, "name", name);
		cm_jw_kstring(&w, "template", built);
		cm_jw_kstring(&w, "provider", cm_away_provider_name());
		cm_jw_end_object(&w);
	} else {
		cm_text_escape(&text, built, strlen(built), false);
	}
	cm_buf_putc(&text, '\n');
	if (cm_buf_status(&text) == CM_OK)
		return cm_cli_print(cli, text.data, text.len);
	(void)cm_error_set(&err, CM_E_NOMEM, 0, "no memory for the template's name");
	return cm_cli_fail(cli, &err);
}

static int build(struct cm_cli *cli, const struct cm_template_request *request, bool is_json)
{
	struct cm_away away = { .signal_fd = -1, .cli = cli };
	struct cm_error err = CM_ERROR_INIT;
	CM_AUTO_FREE char *built = NULL;
	int r = cm_away_open(&away, cli, &err);

	if (r == CM_OK)
		r = cm_template_build(away.provider, request, &away.call, &built, &err);
	r = r < 0 ? cm_away_fail(&away, &err)
		  : print_built(cli, request->name, built ? built : request->name, is_json);
	cm_away_close(&away);
	return r;
}

/* What follows "--" is one command, each word as it is. */
static int add_words(struct cm_strv *commands, char *const *words, int n, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf text = { 0 };

	if (n == 0)
		return CM_OK;
	cm_buf_init(&text, MAX_TEXT);
	for (int i = 0; i < n; i++) {
		if (i > 0)
			cm_buf_putc(&text, ' ');
		cm_text_shell_quote(&text, words[i]);
	}
	return cm_strv_add_own(commands, cm_buf_take(&text)) == CM_OK
		       ? CM_OK
		       : cm_error_set(err, CM_E_NOMEM, 0, "no memory for the command line");
}

static int read_sizes(const struct options *o, struct cm_template_request *request,
		      struct cm_error *err)
{
	uint64_t cpus = 0;
	int r = CM_OK;

	if (o->cpus)
		r = cm_parse_u64(o->cpus, "--cpus", 1, CPUS_MAX, &cpus, err);
	request->cpus = (uint32_t)cpus;
	return r == CM_OK && o->memory ? cm_parse_size(o->memory, "--memory", 1024UL * 1024,
						       MEMORY_MAX, &request->memory_bytes, err)
				       : r;
}

/* How many words come before "--"; *ret_n: how many behind it. */
static int words_before(int argc, char *const *argv, int *ret_n)
{
	int n = 0;

	while (n < argc && strcmp(argv[n], "--") != 0)
		n++;
	*ret_n = n < argc ? argc - n - 1 : 0;
	return n;
}

static int build_command(struct cm_cli *cli, int argc, char **argv)
{
	struct options o = { NULL };
	const struct cm_cli_option options[] = {
		{ "base", '\0', CM_OPTION_TEXT, &o.base },
		{ "cpus", '\0', CM_OPTION_TEXT, &o.cpus },
		{ "memory", 'm', CM_OPTION_TEXT, &o.memory },
		{ "run", '\0', CM_OPTION_LIST, &o.commands },
		{ "json", '\0', CM_OPTION_SWITCH, &o.is_json },
		{ "quiet", 'q', CM_OPTION_SWITCH, &cli->is_quiet },
		{ "verbose", '\0', CM_OPTION_SWITCH, &cli->is_verbose },
		{ NULL, '\0', CM_OPTION_SWITCH, NULL },
	};
	struct cm_template_request request = { .log = on_log, .data = cli };
	struct cm_error err = CM_ERROR_INIT;
	int n_words = 0;
	int n_before = words_before(argc, argv, &n_words);
	int status;
	int n = 0;
	int r = cm_cli_options(n_before, argv, options, &n, &err);

	if (r == CM_OK && n != 1) {
		r = cm_error_set(&err, CM_E_INVALID, 0, "'template build' takes one name, not %d",
				 n);
		cm_error_hint(&err, "casemate template build NAME [--base NAME] --run 'apt-get "
				    "update && apt-get install -y git'");
	}
	if (r == CM_OK)
		r = read_sizes(&o, &request, &err);
	if (r == CM_OK)
		r = add_words(&o.commands, argv + n_before + 1, n_words, &err);
	request.name = argv[0];
	request.base = o.base;
	request.commands = &o.commands;
	status = r < 0 ? cm_cli_fail(cli, &err) : build(cli, &request, o.is_json);
	cm_strv_clear(&o.commands);
	return status;
}

/* --- ls ------------------------------------------------------------------------------------ */

struct list {
	bool is_json;
	struct cm_buf text;
	struct cm_json_writer json;
};

static int list_one(void *data, const char *name, const char *state)
{
	struct list *list = data;
	CM_AUTO_BUF struct cm_buf shown = { 0 };

	if (list->is_json) {
		cm_jw_object(&list->json);
		cm_jw_kstring(&list->json, "name", name);
		cm_jw_kstring(&list->json, "state", state);
		cm_jw_end_object(&list->json);
		return 0;
	}
	cm_buf_init(&shown, MAX_LINE);
	cm_text_escape(&shown, name, strlen(name), false);
	cm_buf_printf(&list->text, "%-*s  ", NAME_WIDTH, shown.data ? shown.data : "");
	if (!state)
		state = "-";
	cm_text_escape(&list->text, state, strlen(state), false);
	cm_buf_putc(&list->text, '\n');
	return 0;
}

static int list_templates(struct cm_cli *cli, bool is_json)
{
	struct cm_away away = { .signal_fd = -1, .cli = cli };
	struct list list = { .is_json = is_json };
	struct cm_error err = CM_ERROR_INIT;
	int r = cm_away_open(&away, cli, &err);

	cm_buf_init(&list.text, MAX_TEXT);
	cm_jw_init(&list.json, &list.text, true);
	if (is_json)
		cm_jw_array(&list.json);
	else
		cm_buf_printf(&list.text, "%-*s  STATE\n", NAME_WIDTH, "NAME");
	if (r == CM_OK)
		r = cm_template_list(away.provider, &away.call, list_one, &list, &err);
	if (is_json) {
		cm_jw_end_array(&list.json);
		cm_buf_putc(&list.text, '\n');
	}
	if (r == CM_OK && cm_buf_status(&list.text) < 0)
		r = cm_error_set(&err, CM_E_NOMEM, 0, "no memory for the list");
	r = r < 0 ? cm_away_fail(&away, &err) : cm_cli_print(cli, list.text.data, list.text.len);
	cm_buf_clear(&list.text);
	cm_away_close(&away);
	return r;
}

static int list_command(struct cm_cli *cli, int argc, char **argv)
{
	bool is_json = false;
	const struct cm_cli_option options[] = {
		{ "json", '\0', CM_OPTION_SWITCH, &is_json },
		{ "verbose", '\0', CM_OPTION_SWITCH, &cli->is_verbose },
		{ NULL, '\0', CM_OPTION_SWITCH, NULL },
	};
	struct cm_error err = CM_ERROR_INIT;
	int n = 0;
	int r = cm_cli_options(argc, argv, options, &n, &err);

	if (r == CM_OK && n > 0) {
		r = cm_error_set(&err, CM_E_INVALID, 0, "'template ls' takes no name");
		cm_error_hint(&err, "it lists all of them");
	}
	return r < 0 ? cm_cli_fail(cli, &err) : list_templates(cli, is_json);
}

/* --- rm ------------------------------------------------------------------------------------ */

/* Goes on after an error, but not after a signal. */
static int remove_templates(struct cm_cli *cli, int n, char *const *names)
{
	struct cm_away away = { .signal_fd = -1, .cli = cli };
	struct cm_error err = CM_ERROR_INIT;
	int status = 0;
	int r = cm_away_open(&away, cli, &err);

	if (r < 0)
		status = cm_away_fail(&away, &err);
	for (int i = 0; i < n && r != CM_E_CANCELLED && away.provider; i++) {
		cm_error_clear(&err);
		r = cm_template_remove(away.provider, names[i], &away.call, &err);
		if (r < 0)
			status = cm_away_fail(&away, &err);
	}
	cm_away_close(&away);
	return status;
}

static int remove_command(struct cm_cli *cli, int argc, char **argv)
{
	const struct cm_cli_option options[] = {
		{ "verbose", '\0', CM_OPTION_SWITCH, &cli->is_verbose },
		{ NULL, '\0', CM_OPTION_SWITCH, NULL },
	};
	struct cm_error err = CM_ERROR_INIT;
	int n = 0;
	int r = cm_cli_options(argc, argv, options, &n, &err);

	if (r == CM_OK && n == 0) {
		r = cm_error_set(&err, CM_E_INVALID, 0, "no template named");
		cm_error_hint(&err, "name one or more: 'casemate template ls' lists them");
	}
	return r < 0 ? cm_cli_fail(cli, &err) : remove_templates(cli, n, argv);
}

/* --- the line ------------------------------------------------------------------------------ */

int cm_cmd_template(struct cm_cli *cli, int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(struct cm_cli *cli, int argc, char **argv);
	} operations[] = {
		{ "build", build_command },
		{ "ls", list_command },
		{ "rm", remove_command },
	};
	struct cm_error err = CM_ERROR_INIT;
	const char *name = argc > 1 ? argv[1] : NULL;

	for (size_t i = 0; name && i < CM_ARRAY_SIZE(operations); i++) {
		if (strcmp(operations[i].name, name) != 0)
			continue;
		/* whose options are asked for in hints */
		argv[1] = argv[0];
		return operations[i].run(cli, argc - 2, argv + 2);
	}
	if (name)
		(void)cm_error_set(&err, CM_E_INVALID, 0, "'template' has no operation '%.100s'",
				   name);
	else
		(void)cm_error_set(&err, CM_E_INVALID, 0, "'template' needs an operation");
	cm_error_hint(&err, "build, ls or rm: casemate template build NAME --run COMMAND");
	return cm_cli_fail(cli, &err);
}
