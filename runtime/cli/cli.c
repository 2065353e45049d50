/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands share: dispatch, printing, simple options. */
#include "runtime/cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "providers/selection.h"
#include "runtime/base/fd.h"
#include "runtime/base/text.h"
#include "runtime/cli/commands.h"
#include "runtime/spec/spec_flags.h"

#define RED "\033[1;31m"
#define DIM "\033[2m"
#define PLAIN "\033[0m"
#define MAX_LINE 4096

/* "LABEL: TEXT" in one write, so that lines of concurrent programs do not mix. */
static void print_line(const struct cm_cli *cli, const char *colour, const char *label,
		       const char *text, int sys_errno)
{
	CM_AUTO_BUF struct cm_buf line = { 0 };

	/* each byte may become four */
	cm_buf_init(&line, MAX_LINE * 4 + 256);
	if (cli->has_colour)
		cm_buf_printf(&line, "%s%s:%s ", colour, label, PLAIN);
	else
		cm_buf_printf(&line, "%s: ", label);
	cm_text_escape(&line, text, strnlen(text, MAX_LINE), false);
	if (sys_errno != 0)
		cm_buf_printf(&line, ": %s", strerror(sys_errno));
	cm_buf_putc(&line, '\n');
	/* where stderr is gone there is nobody to tell */
	if (cm_buf_status(&line) == CM_OK)
		(void)cm_write_all(STDERR_FILENO, line.data, line.len);
	else
		(void)cm_write_all(STDERR_FILENO, "casemate: out of memory\n", 24);
}

void cm_cli_print_error(const struct cm_cli *cli, const struct cm_error *err)
{
	print_line(cli, RED, cli->prog, err->msg, err->sys_errno);
	if (err->hint[0] != '\0')
		print_line(cli, DIM, "hint", err->hint, 0);
}

int cm_cli_fail(const struct cm_cli *cli, const struct cm_error *err)
{
	cm_cli_print_error(cli, err);
	return cli->failure_exit;
}

void cm_cli_note(const struct cm_cli *cli, const char *fmt, ...)
{
	char text[MAX_LINE];
	va_list ap;

	if (cli->is_quiet)
		return;
	va_start(ap, fmt);
	/* clang-tidy 14 does not see va_start here */
	/* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized) */
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	print_line(cli, DIM, "note", text, 0);
}

int cm_cli_print(const struct cm_cli *cli, const char *text, size_t len)
{
	struct cm_error err = CM_ERROR_INIT;
	int r = cm_write_all(STDOUT_FILENO, text, len);

	if (r == 0)
		return 0;
	cm_error_set(&err, CM_E_SYS, -r, "cannot write to standard output");
	return cm_cli_fail(cli, &err);
}

static const struct cm_cli_option *find_option(const struct cm_cli_option *options,
					       const char *name, size_t len, char letter)
{
	for (; options->name; options++) {
		if (letter != '\0' && options->letter == letter)
			return options;
		if (letter == '\0' && strlen(options->name) == len &&
		    memcmp(options->name, name, len) == 0)
			return options;
	}
	return NULL;
}

static int unknown_option(const struct cm_cli_option *options, const char *word, char letter,
			  struct cm_error *err)
{
	size_t len = strcspn(word, "=");
	const char *near = NULL;
	unsigned int best = 3;
	int r;

	if (letter != '\0')
		return cm_error_set(err, CM_E_INVALID, 0, "unknown option '-%c'", letter);
	r = cm_error_set(err, CM_E_INVALID, 0, "unknown option '%.*s'", len < 100 ? (int)len : 100,
			 word);
	for (; options->name; options++) {
		unsigned int distance = cm_text_distance(word + 2, options->name, best);

		if (distance < best) {
			best = distance;
			near = options->name;
		}
	}
	if (near)
		cm_error_hint(err, "did you mean '--%s'?", near);
	return r;
}

/* value: what follows '=' or the letter; NULL: none, so the next word is it. */
static int take_option(const struct cm_cli_option *option, const char *spelling, const char *value,
		       int argc, char **argv, int *at, struct cm_error *err)
{
	if (option->kind == CM_OPTION_SWITCH) {
		if (value)
			return cm_error_set(err, CM_E_INVALID, 0, "option '--%s' takes no value",
					    option->name);
		*(bool *)option->target = true;
		return CM_OK;
	}
	if (!value && *at < argc)
		value = argv[(*at)++];
	if (!value || *value == '\0')
		return cm_error_set(err, CM_E_INVALID, 0, "option '%.100s' needs a value",
				    spelling);
	if (option->kind == CM_OPTION_LIST)
		return cm_strv_add(option->target, value) == CM_OK
			       ? CM_OK
			       : cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	*(const char **)option->target = value;
	return CM_OK;
}

static int take_letters(const char *word, int argc, char **argv,
			const struct cm_cli_option *options, int *at, struct cm_error *err)
{
	int r = CM_OK;

	for (const char *p = word + 1; r == CM_OK && *p != '\0'; p++) {
		const struct cm_cli_option *option = find_option(options, NULL, 0, *p);

		if (!option)
			return unknown_option(options, word, *p, err);
		if (option->kind != CM_OPTION_SWITCH)
			return take_option(option, word, p[1] ? p + 1 : NULL, argc, argv, at, err);
		r = take_option(option, word, NULL, argc, argv, at, err);
	}
	return r;
}

static int take_long(const char *word, int argc, char **argv, const struct cm_cli_option *options,
		     int *at, struct cm_error *err)
{
	/* every command has it, and it was followed before the command was called */
	static const char *provider;
	static const struct cm_cli_option common[] = {
		{ "provider", '\0', CM_OPTION_TEXT, &provider },
		{ .name = NULL },
	};
	size_t len = strcspn(word, "=");
	const struct cm_cli_option *option = find_option(options, word + 2, len - 2, '\0');

	if (!option)
		option = find_option(common, word + 2, len - 2, '\0');
	if (!option)
		return unknown_option(options, word, '\0', err);
	return take_option(option, word, word[len] == '=' ? word + len + 1 : NULL, argc, argv, at,
			   err);
}

int cm_cli_options(int argc, char **argv, const struct cm_cli_option *options, int *ret_n,
		   struct cm_error *err)
{
	int n = 0;
	int at = 0;
	int r = CM_OK;

	while (r == CM_OK && at < argc) {
		char *word = argv[at++];

		if (strcmp(word, "--") == 0) {
			while (at < argc)
				argv[n++] = argv[at++];
		} else if (word[0] == '-' && word[1] == '-') {
			r = take_long(word, argc, argv, options, &at, err);
		} else if (word[0] == '-' && word[1] != '\0') {
			r = take_letters(word, argc, argv, options, &at, err);
		} else {
			argv[n++] = word;
		}
	}
	if (r == CM_OK)
		*ret_n = n;
	else if (err && err->hint[0] == '\0')
		cm_error_hint(err, "'casemate help %.40s' lists the options", argv[-1]);
	return r;
}

int cm_cli_root(struct cm_cli *cli, const char *flag, char **ret, struct cm_error *err)
{
	return cm_config_root(&cli->config, flag, ret, err);
}

static bool wants_help(const struct cm_command *command, int argc, char **argv)
{
	if (command->has_keys)
		return cm_flags_wants_help(argc - 1, argv + 1);
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return true;
	}
	return false;
}

static int print_help(const struct cm_cli *cli, const struct cm_command *command)
{
	CM_AUTO_BUF struct cm_buf text = { 0 };

	cm_buf_init(&text, 65536);
	cm_help_command(command, &text);
	return cm_cli_print(cli, text.data ? text.data : "", text.len);
}

/* NULL: it does not say. Most do not, and then nothing is read twice. */
static const char *provider_flag(const struct cm_command *command, int argc, char **argv)
{
	static const char flag[] = "--provider";
	const size_t len = sizeof(flag) - 1;
	const char *found = NULL;

	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (strncmp(argv[i], flag, len) != 0)
			continue;
		if (command->has_keys)
			return cm_flags_provider(argc - 1, argv + 1, command->takes_session);
		if (argv[i][len] == '=')
			found = argv[i] + len + 1;
		else if (argv[i][len] == '\0')
			found = argv[i + 1];
	}
	return found;
}

static int dispatch(struct cm_cli *cli, int argc, char **argv)
{
	struct cm_error err = CM_ERROR_INIT;
	CM_AUTO_BUF struct cm_buf text = { 0 };
	const struct cm_command *command;
	struct cm_selection selection;
	int failure_exit;
	const char *name = argc > 1 ? argv[1] : NULL;

	cm_buf_init(&text, 65536);
	if (!name) {
		cm_help_overview(&text);
		if (text.data)
			(void)cm_write_all(STDERR_FILENO, text.data, text.len);
		return cli->failure_exit;
	}
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
		name = "help";
	else if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
		name = "version";
	command = cm_command_find(name);
	if (!command) {
		cm_command_unknown(name, &err);
		return cm_cli_fail(cli, &err);
	}
	if (wants_help(command, argc - 1, argv + 1))
		return print_help(cli, command);
	if (command->is_here)
		return command->run(cli, argc - 1, argv + 1);
	if (cm_provider_select(&cli->config.env, provider_flag(command, argc - 1, argv + 1),
			       &selection, &err) < 0) {
		failure_exit = command->has_keys ? cm_flags_failure_exit(argc - 2, argv + 2) : -1;
		if (failure_exit >= 0)
			cli->failure_exit = failure_exit;
		return cm_cli_fail(cli, &err);
	}
	return cm_cli_run_command(cli, command, &selection, argc - 1, argv + 1);
}

int cm_cli_main(int argc, char **argv)
{
	/* it lasts as long as the process, which ends with it */
	static struct cm_cli cli = { .prog = "casemate", .failure_exit = CM_EXIT_FAILURE };
	struct cm_error err = CM_ERROR_INIT;

	if (cm_config_init(&cli.config, &err) != CM_OK)
		return cm_cli_fail(&cli, &err);
	cli.has_colour = !cli.config.has_no_colour && isatty(STDERR_FILENO);
	return dispatch(&cli, argc, argv);
}
