/* SPDX-License-Identifier: Apache-2.0 */
/*
 * casemate-checkout: makes a repository's checkout for a session, in a jail of its own.
 *
 * It is the only executable that links libgit2, so that the parser of other people's packs and
 * trees shares an address space with nothing that has power or secrets. It opens no network.
 */
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "isolation/checkout/checkout.h"
#include "isolation/checkout/library.h"
#include "isolation/checkout/process.h"
#include "isolation/checkout/pulse.h"
#include "isolation/checkout/source.h"
#include "isolation/checkout/status.h"
#include "runtime/base/fd.h"
#include "runtime/base/num.h"

enum exit_status {
	EXIT_OK = 0,
	/* the user can do something about it */
	EXIT_USER = 1,
	EXIT_INTERNAL = 2,
};

/* A ref is a path below .git/refs. */
#define REF_LEN_MAX 1024

struct command {
	struct cm_checkout_options checkout;
	/* --status */
	const char *status_path;
	int progress_fd;
	int report_fd;
	bool wants_help;
};

static const char usage[] =
	"usage: casemate-checkout --source PATH --target DIR [--ref REF]\n"
	"                         [--progress-fd N] [--report-fd N]\n"
	"       casemate-checkout --status PATH [--progress-fd N]\n"
	"\n"
	"Check a local git repository out into the new directory DIR.\n"
	"\n"
	"  --source PATH     repository: work tree, bare, linked worktree or submodule\n"
	"  --target DIR      directory to make; its parent exists\n"
	"  --ref REF         branch, tag or commit id (default: the source's HEAD)\n"
	"  --progress-fd N   write progress to descriptor N, one JSON object a line\n"
	"  --report-fd N     write the result to descriptor N, one JSON object\n"
	"  --status PATH     print how many files of a work tree are not committed\n";

static int bad_usage(struct cm_error *err, const char *what)
{
	cm_error_set(err, CM_E_INVALID, 0, "%s", what);
	cm_error_hint(err, "see 'casemate-checkout --help'");
	return CM_E_INVALID;
}

static int parse_fd(const char *text, const char *option, int *ret, struct cm_error *err)
{
	uint64_t value;
	int r = cm_parse_u64(text, option, 1, INT_MAX, &value, err);

	if (r == CM_OK)
		*ret = (int)value;
	return r;
}

static int parse_option(struct command *cmd, int option, struct cm_error *err)
{
	switch (option) {
	case 's':
		cmd->checkout.source = optarg;
		return CM_OK;
	case 't':
		cmd->checkout.target = optarg;
		return CM_OK;
	case 'r':
		cmd->checkout.ref = optarg;
		return CM_OK;
	case 'S':
		cmd->status_path = optarg;
		return CM_OK;
	case 'p':
		return parse_fd(optarg, "--progress-fd", &cmd->progress_fd, err);
	case 'R':
		return parse_fd(optarg, "--report-fd", &cmd->report_fd, err);
	case 'h':
		cmd->wants_help = true;
		return CM_OK;
	default:
		return bad_usage(err, "unknown option, or one without its value");
	}
}

static int check_command(const struct command *cmd, struct cm_error *err)
{
	const struct cm_checkout_options *c = &cmd->checkout;

	if (cmd->wants_help)
		return CM_OK;
	if (cmd->status_path)
		return c->source || c->target || c->ref || cmd->report_fd >= 0
			       ? bad_usage(err, "--status goes with --progress-fd alone")
			       : CM_OK;
	if (!c->source || !c->target)
		return bad_usage(err, "--source and --target are both needed");
	if (c->ref && (c->ref[0] == '\0' || strlen(c->ref) > REF_LEN_MAX))
		return bad_usage(err, "--ref must have 1 to 1024 bytes");
	return CM_OK;
}

static int parse_command(struct command *cmd, int argc, char **argv, struct cm_error *err)
{
	static const struct option options[] = {
		{ "source", required_argument, NULL, 's' },
		{ "target", required_argument, NULL, 't' },
		{ "ref", required_argument, NULL, 'r' },
		{ "progress-fd", required_argument, NULL, 'p' },
		{ "report-fd", required_argument, NULL, 'R' },
		{ "status", required_argument, NULL, 'S' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		int r = parse_option(cmd, option, err);

		if (r != CM_OK)
			return r;
	}
	if (optind < argc)
		return bad_usage(err, "there are no arguments without an option");
	return check_command(cmd, err);
}

static int run_status(const char *path, struct cm_error *err)
{
	struct cm_source src = CM_SOURCE_INIT;
	uint64_t count = 0;
	int r = cm_source_open(path, &src, err);

	if (r == CM_OK)
		r = cm_status_count(&src, &count, err);
	cm_source_clear(&src);
	cm_pulse_stop();
	return r == CM_OK ? cm_report_status(count, err) : r;
}

static int run(const struct command *cmd, struct cm_report *rep, struct cm_error *err)
{
	int r = cm_library_open(err);

	if (r != CM_OK)
		return r;
	r = cm_pulse_start(cmd->progress_fd, err);
	if (r != CM_OK) {
		cm_library_close();
		return r;
	}
	r = cmd->status_path ? run_status(cmd->status_path, err)
			     : cm_checkout(&cmd->checkout, rep, err);
	cm_pulse_stop();
	cm_library_close();
	return r;
}

static enum exit_status exit_status_of(int code)
{
	switch (code) {
	case CM_OK:
		return EXIT_OK;
	case CM_E_SYS:
	case CM_E_NOMEM:
	case CM_E_PROTOCOL:
	case CM_E_BUG:
		return EXIT_INTERNAL;
	default:
		return EXIT_USER;
	}
}

static int prepare(struct command *cmd, struct cm_report *rep, int argc, char **argv,
		   struct cm_error *err)
{
	int parsed = parse_command(cmd, argc, argv, err);
	const int keep[] = { cmd->progress_fd, cmd->report_fd };
	struct cm_error process_err = CM_ERROR_INIT;

	if (cm_process_harden(keep, CM_ARRAY_SIZE(keep), &process_err) != CM_OK) {
		if (parsed == CM_OK)
			*err = process_err;
		return err->code;
	}
	/* also for a mistake in what came after them */
	rep->progress_fd = cmd->progress_fd;
	rep->report_fd = cmd->report_fd;
	return parsed;
}

int main(int argc, char **argv)
{
	struct command cmd = { .progress_fd = -1, .report_fd = -1 };
	struct cm_report rep = CM_REPORT_INIT;
	struct cm_error err = CM_ERROR_INIT;
	struct cm_error report_err = CM_ERROR_INIT;
	int r = prepare(&cmd, &rep, argc, argv, &err);

	if (r == CM_OK && cmd.wants_help) {
		fputs(usage, stdout);
		return fflush(stdout) == 0 ? EXIT_OK : EXIT_INTERNAL;
	}
	if (r == CM_OK)
		r = run(&cmd, &rep, &err);
	if (r != CM_OK)
		cm_report_print_error(&err);
	if (cm_report_finish(&rep, &err, &report_err) != CM_OK) {
		cm_report_print_error(&report_err);
		r = r == CM_OK ? report_err.code : r;
	}
	cm_report_clear(&rep);
	return exit_status_of(r);
}
