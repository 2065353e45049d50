/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of `casemate file`. */
#include "runtime/cli/file_line.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "providers/local/files.h"
#include "runtime/base/fd.h"
#include "runtime/base/num.h"

#define MORE_MAX 4
/* a hundred years: longer than anybody keeps a session */
#define EXPIRES_MAX_MS (36500ULL * 24 * 60 * 60 * 1000)

struct operation {
	const char *name;
	/* operands after the session */
	int min_paths;
	int max_paths;
	/* letters of the options that it takes: see `all` in read_options */
	const char *takes;
	const char *usage;
};

static const struct operation operations[] = {
	[CM_FILE_VERB_READ] = { "read", 1, 1, "ol", "[--offset N] [--length SIZE] ID PATH" },
	[CM_FILE_VERB_WRITE] = { "write", 1, 1, "aAmp",
				 "[--append | --atomic] [--mode MODE] [-p] ID PATH" },
	[CM_FILE_VERB_LS] = { "ls", 0, INT32_MAX, "rdjL0",
			      "[-r] [-d] [-l | -0 | --json] ID [PATH...]" },
	[CM_FILE_VERB_STAT] = { "stat", 1, INT32_MAX, "Fj", "[--follow] [--json] ID PATH..." },
	[CM_FILE_VERB_MKDIR] = { "mkdir", 1, INT32_MAX, "pm", "[-p] [--mode MODE] ID PATH..." },
	[CM_FILE_VERB_MV] = { "mv", 2, 2, "n", "[--no-clobber] ID FROM TO" },
	[CM_FILE_VERB_RM] = { "rm", 1, INT32_MAX, "rf", "[-r] [-f] ID PATH..." },
	[CM_FILE_VERB_WATCH] = { "watch", 0, 1, "j", "[--json] ID [PATH]" },
	[CM_FILE_VERB_URL] = { "url", 1, 1, "uej", "[--upload] [--expires TIME] [--json] ID PATH" },
};
_Static_assert(CM_ARRAY_SIZE(operations) == CM_FILE_VERB_COUNT_, "an operation each");

/* What is a text before it is a number. */
struct numbers {
	const char *offset;
	const char *length;
	const char *mode;
	const char *expires;
};

static int no_operation(const char *name, struct cm_error *err)
{
	if (name)
		(void)cm_error_set(err, CM_E_INVALID, 0, "'file' has no operation '%.100s'", name);
	else
		(void)cm_error_set(err, CM_E_INVALID, 0, "'file' needs an operation");
	cm_error_hint(err, "read, write, ls, stat, mkdir, mv, rm, watch or url: casemate file "
			   "read ID PATH");
	return CM_E_INVALID;
}

static const struct operation *find_operation(const char *name)
{
	for (size_t i = 0; name && i < CM_ARRAY_SIZE(operations); i++) {
		if (strcmp(operations[i].name, name) == 0)
			return &operations[i];
	}
	return NULL;
}

/* Of all options those that the operation takes, the common ones, and more. */
static int read_options(struct cm_cli *cli, const struct operation *op, int argc, char **argv,
			const struct cm_cli_option *more, struct cm_file_line *o,
			struct numbers *texts, int *ret_n, struct cm_error *err)
{
	const struct {
		char mark;
		struct cm_cli_option option;
	} all[] = {
		{ 'o', { "offset", '\0', CM_OPTION_TEXT, &texts->offset } },
		{ 'l', { "length", '\0', CM_OPTION_TEXT, &texts->length } },
		{ 'a', { "append", '\0', CM_OPTION_SWITCH, &o->is_append } },
		{ 'A', { "atomic", '\0', CM_OPTION_SWITCH, &o->is_atomic } },
		{ 'm', { "mode", 'm', CM_OPTION_TEXT, &texts->mode } },
		{ 'p', { "parents", 'p', CM_OPTION_SWITCH, &o->wants_parents } },
		{ 'r', { "recursive", 'r', CM_OPTION_SWITCH, &o->is_recursive } },
		{ 'r', { "recursive", 'R', CM_OPTION_SWITCH, &o->is_recursive } },
		{ 'f', { "force", 'f', CM_OPTION_SWITCH, &o->is_forced } },
		{ 'n', { "no-clobber", 'n', CM_OPTION_SWITCH, &o->is_no_clobber } },
		{ 'F', { "follow", 'L', CM_OPTION_SWITCH, &o->follows } },
		{ 'd', { "directory", 'd', CM_OPTION_SWITCH, &o->is_itself } },
		{ 'j', { "json", '\0', CM_OPTION_SWITCH, &o->is_json } },
		{ 'L', { "long", 'l', CM_OPTION_SWITCH, &o->is_long } },
		{ 'u', { "upload", '\0', CM_OPTION_SWITCH, &o->is_upload } },
		{ 'e', { "expires", '\0', CM_OPTION_TEXT, &texts->expires } },
		{ '0', { "null", '0', CM_OPTION_SWITCH, &o->is_nul } },
	};
	struct cm_cli_option options[CM_ARRAY_SIZE(all) + 4 + MORE_MAX];
	size_t n = 0;

	for (size_t i = 0; i < CM_ARRAY_SIZE(all); i++) {
		if (strchr(op->takes, all[i].mark))
			options[n++] = all[i].option;
	}
	options[n++] = (struct cm_cli_option){ "root", '\0', CM_OPTION_TEXT, &o->root };
	options[n++] = (struct cm_cli_option){ "user", 'u', CM_OPTION_TEXT, &o->user };
	options[n++] = (struct cm_cli_option){ "quiet", 'q', CM_OPTION_SWITCH, &cli->is_quiet };
	for (; more && more->name; more++)
		options[n++] = *more;
	options[n] = (struct cm_cli_option){ NULL, '\0', CM_OPTION_SWITCH, NULL };
	return cm_cli_options(argc, argv, options, ret_n, err);
}

static int check_operands(const struct operation *op, int n, struct cm_error *err)
{
	if (n - 1 >= op->min_paths && n - 1 <= op->max_paths)
		return CM_OK;
	(void)cm_error_set(err, CM_E_INVALID, 0, "'file %s' takes a session and %s", op->name,
			   op->max_paths == 1	? "one path"
			   : op->max_paths == 2 ? "two paths"
						: "paths");
	cm_error_hint(err, "casemate file %s %s", op->name, op->usage);
	return CM_E_INVALID;
}

static int read_mode(const char *text, uint32_t *ret, struct cm_error *err)
{
	char *end = NULL;
	unsigned long mode;

	errno = 0;
	mode = strtoul(text, &end, 8);
	if (text[0] < '0' || text[0] > '7' || *end != '\0' || errno != 0 || mode > 07777) {
		(void)cm_error_set(err, CM_E_INVALID, 0, "--mode must be octal, not '%.40s'", text);
		cm_error_hint(err, "for example 0644, or 0755 for what is executed");
		return CM_E_INVALID;
	}
	if ((mode & ~(unsigned long)CM_FILE_MODE_MASK) != 0) {
		(void)cm_error_set(err, CM_E_INVALID, 0,
				   "--mode has a set-id or sticky bit: '%.40s'", text);
		cm_error_hint(err, "three digits, as 755: no such file can be made in a session");
		return CM_E_INVALID;
	}
	*ret = (uint32_t)mode;
	return CM_OK;
}

static int read_numbers(const struct numbers *texts, struct cm_file_line *o, struct cm_error *err)
{
	int r = CM_OK;

	if (o->is_append && o->is_atomic) {
		r = cm_error_set(err, CM_E_INVALID, 0,
				 "--append and --atomic contradict each other");
		cm_error_hint(err, "--atomic makes a new file, which replaces what is there");
	}
	if (r == CM_OK && texts->offset)
		r = cm_parse_size(texts->offset, "--offset", 0, INT64_MAX, &o->offset, err);
	if (r == CM_OK && texts->length)
		r = cm_parse_size(texts->length, "--length", 0, INT64_MAX, &o->length, err);
	if (r == CM_OK && texts->expires)
		r = cm_parse_duration(texts->expires, "--expires", 1000, EXPIRES_MAX_MS,
				      &o->lifetime_ms, err);
	return r == CM_OK && texts->mode ? read_mode(texts->mode, &o->mode, err) : r;
}

int cm_file_line_read(struct cm_cli *cli, int argc, char **argv, const struct cm_cli_option *more,
		      struct cm_file_line *ret, struct cm_error *err)
{
	static char current[] = ".";
	static char *const here[] = { current, NULL };
	const struct operation *op = find_operation(argc > 1 ? argv[1] : NULL);
	struct numbers texts = { NULL };
	int n = 0;
	int r;

	*ret = (struct cm_file_line){ .length = UINT64_MAX, .mode = UINT32_MAX };
	if (!op)
		return no_operation(argc > 1 ? argv[1] : NULL, err);
	ret->verb = (enum cm_file_verb)(op - operations);
	ret->name = op->name;
	/* whose options are asked for in hints */
	argv[1] = argv[0];
	r = read_options(cli, op, argc - 2, argv + 2, more, ret, &texts, &n, err);
	if (r == CM_OK)
		r = check_operands(op, n, err);
	if (r == CM_OK)
		r = read_numbers(&texts, ret, err);
	if (r < 0)
		return r;
	/* the line's words end with a NULL, but options stood among them */
	argv[2 + n] = NULL;
	ret->session = argv[2];
	ret->paths = n > 1 ? argv + 3 : here;
	return CM_OK;
}
