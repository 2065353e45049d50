/* SPDX-License-Identifier: Apache-2.0 */
/* casemate help: the table of commands and the table of keys as text. */
#include <stdio.h>
#include <string.h>

#include "runtime/cli/commands.h"

#define TEXT_COLUMN 29
#define WIDTH 80

void cm_help_overview(struct cm_buf *out)
{
	cm_buf_puts(out, "Usage: casemate COMMAND [OPTION...] [ARG...]\n"
			 "Runs the commands of coding agents in Linux jails.\n\n"
			 "Commands:\n");
	for (const struct cm_command *command = cm_commands; command->name; command++)
		cm_buf_printf(out, "  %-10s %s\n", command->name, command->summary);
	cm_buf_puts(out, "\nIn a project: casemate run -- npm test\n"
			 "'casemate help COMMAND' says more.\n");
}

static void pad_to(struct cm_buf *out, size_t line_start, size_t column)
{
	while (out->len - line_start < column && !out->has_failed)
		cm_buf_putc(out, ' ');
}

/* Words of text from column TEXT_COLUMN on, in lines of WIDTH. */
static void wrap(struct cm_buf *out, const char *text, size_t line_start)
{
	bool is_first = true;

	while (*text != '\0') {
		size_t len = strcspn(text, " ");

		if (!is_first && out->len - line_start + 1 + len > WIDTH) {
			cm_buf_putc(out, '\n');
			line_start = out->len;
			is_first = true;
		}
		if (is_first)
			pad_to(out, line_start, TEXT_COLUMN);
		else
			cm_buf_putc(out, ' ');
		cm_buf_append(out, text, len);
		is_first = false;
		text += len;
		text += strspn(text, " ");
	}
	cm_buf_putc(out, '\n');
}

static const char *own_help(const struct cm_command *command, enum cm_key key)
{
	const struct cm_key_help *help = command->key_helps;

	while (help && help->key != CM_KEY_COUNT && help->key != key)
		help++;
	return help ? help->help : NULL;
}

static void print_key(const struct cm_command *command, const struct cm_key_info *info,
		      struct cm_buf *out)
{
	const char *own = own_help(command, info->key);
	size_t line_start = out->len;
	char text[512];

	if (info->letter != '\0')
		cm_buf_printf(out, "  -%c, ", info->letter);
	else
		cm_buf_puts(out, "      ");
	cm_buf_printf(out, "--%s", info->name);
	if (info->metavar)
		cm_buf_printf(out, " %s", info->metavar);
	if (out->len - line_start + 2 > TEXT_COLUMN) {
		cm_buf_putc(out, '\n');
		line_start = out->len;
	}
	if (info->fallback && !own)
		(void)snprintf(text, sizeof(text), "%s (default: %s)", info->help, info->fallback);
	else
		(void)snprintf(text, sizeof(text), "%s", own ? own : info->help);
	wrap(out, text, line_start);
}

static bool takes(const struct cm_command *command, enum cm_key key)
{
	const enum cm_key *keys = command->keys;

	while (keys && *keys != CM_KEY_COUNT && *keys != key)
		keys++;
	return !keys || *keys == key;
}

static void print_group(const struct cm_command *command, enum cm_key_group group,
			struct cm_buf *out)
{
	bool is_first = true;

	for (unsigned int key = 0; key < CM_KEY_COUNT; key++) {
		const struct cm_key_info *info = cm_key_info((enum cm_key)key);

		if (info->group != group || !takes(command, info->key))
			continue;
		if (is_first)
			cm_buf_printf(out, "\n%s:\n", cm_key_group_title(group));
		is_first = false;
		print_key(command, info, out);
	}
}

static void print_keys(const struct cm_command *command, struct cm_buf *out)
{
	for (unsigned int group = 0; group < CM_GROUP_COUNT; group++)
		print_group(command, (enum cm_key_group)group, out);
	if (command->keys)
		return;
	cm_buf_puts(
		out,
		"\nOptions end at '--' or at the first word that is none. --no-NAME turns a "
		"switch\noff. Most can stand in a configuration file under the same name; "
		"'casemate\nconfig show --origin' says what holds and why.\n"
		"\nVariables: CASEMATE_ROOT is --root, CASEMATE_PROFILE --profile, CASEMATE_PROVIDER\n"
		"--provider; CASEMATE_CONFIG names the configuration file that is read in place\n"
		"of the user's.\n");
}

void cm_help_command(const struct cm_command *command, struct cm_buf *out)
{
	cm_buf_printf(out, "Usage: casemate %s %s\n%c%s.\n", command->name, command->usage,
		      command->summary[0] - 'a' + 'A', command->summary + 1);
	if (command->aliases[0] != '\0')
		cm_buf_printf(out, "Also: %s\n", command->aliases);
	if (command->details)
		cm_buf_printf(out, "\n%s", command->details);
	if (command->has_keys)
		print_keys(command, out);
}

int cm_cmd_help(struct cm_cli *cli, int argc, char **argv)
{
	struct cm_error err = CM_ERROR_INIT;
	CM_AUTO_BUF struct cm_buf text = { 0 };
	const struct cm_command *command;

	cm_buf_init(&text, 65536);
	if (argc > 2) {
		cm_error_set(&err, CM_E_INVALID, 0, "help takes one command, not %d", argc - 1);
		cm_error_hint(&err, "for example casemate help run");
		return cm_cli_fail(cli, &err);
	}
	if (argc < 2) {
		cm_help_overview(&text);
	} else {
		command = cm_command_find(argv[1]);
		if (!command) {
			cm_command_unknown(argv[1], &err);
			return cm_cli_fail(cli, &err);
		}
		cm_help_command(command, &text);
	}
	return cm_cli_print(cli, text.data ? text.data : "", text.len);
}
