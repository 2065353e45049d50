/* SPDX-License-Identifier: Apache-2.0 */
/*
 * casemate-checkout: makes a repository's checkout for a session, in a jail of its own.
 *
 * It is the only executable that links libgit2, so that the parser of other people's packs and
 * trees shares an address space with nothing that has power or secrets. Only a fetch uses the
 * network, and only a fetch is given a credential; it sees no session.
 */
#include <errno.h>
#include <getopt.h>
#include <libgen.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "isolation/checkout/checkout.h"
#include "isolation/checkout/fetch.h"
#include "isolation/checkout/guard.h"
#include "isolation/checkout/library.h"
#include "isolation/checkout/process.h"
#include "isolation/checkout/pulse.h"
#include "isolation/checkout/source.h"
#include "isolation/checkout/status.h"
#include "runtime/base/fd.h"
#include "runtime/base/gitref.h"
#include "runtime/base/num.h"
#include "runtime/base/text.h"

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
	struct cm_fetch_options fetch;
	struct cm_credential credential;
	/* --from */
	const char *base;
	/* --status, --unsaved */
	const char *status_path;
	bool wants_unsaved;
	/* --ssh-agent */
	const char *agent;
	int credential_fd;
	int progress_fd;
	int report_fd;
	bool wants_help;
};

static const char usage[] =
	"usage: casemate-checkout --source PATH --target DIR [--origin URL]\n"
	"                         [--ref REF | --pr N] [--branch NAME [--from BASE]]\n"
	"                         [--modules]\n"
	"                         [--into CHECKOUT --module PATH --git-dir DIR --name NAME]\n"
	"                         [--progress-fd N] [--report-fd N]\n"
	"       casemate-checkout --fetch URL --mirror DIR [--ref REF | --pr N] [--fresh]\n"
	"                         [--depth N] [--ca-file FILE] [--credential-fd N] [--home DIR]\n"
	"                         [--ssh-agent SOCKET] [--ssh-host HOST] [--ssh-port N]\n"
	"                         [--progress-fd N] [--report-fd N]\n"
	"       casemate-checkout --status PATH [--unsaved] [--progress-fd N]\n"
	"\n"
	"Check a local git repository out into the new directory DIR, or fetch a remote one into the\n"
	"mirror DIR, which can then be checked out.\n"
	"\n"
	"  --source PATH     repository: work tree, bare, linked worktree or submodule\n"
	"  --target DIR      directory to make; its parent exists\n"
	"  --origin URL      address of the checkout's remote (default: the source's path)\n"
	"  --ref REF         branch, tag or commit id (default: the source's HEAD); of a fetch a full\n"
	"                    name beside branches and tags, such as refs/pull/7/head\n"
	"  --pr N            head of pull or merge request N, in place of --ref\n"
	"  --branch NAME     be on this branch: the source's, with its upstream, or a new one that\n"
	"                    begins at what else would be checked out\n"
	"  --from BASE       where it begins when it is new: as --ref\n"
	"  --modules         report its submodules that may be fetched; where there are any, make\n"
	"                    DIR.modules, too\n"
	"  --into CHECKOUT   move what was checked out there as a submodule\n"
	"  --module PATH     its place, below CHECKOUT\n"
	"  --git-dir DIR     its superproject's git directory, below CHECKOUT\n"
	"  --name NAME       its name\n"
	"  --fetch URL       remote repository: https, http, ssh, git or file\n"
	"  --mirror DIR      directory of its mirror, which exists\n"
	"  --depth N         fetch no more than N commits of each history (libgit2 1.7 or newer)\n"
	"  --fresh           use nothing of what an earlier fetch left there\n"
	"  --ca-file FILE    certificates to believe (PEM)\n"
	"  --home DIR        where .ssh/known_hosts is, with the keys of this server alone\n"
	"  --ssh-agent SOCKET  use the keys of the agent there, and none of the credential\n"
	"  --ssh-host HOST   the server's real name, where the address has another for it\n"
	"  --ssh-port N      its port, where the address has none\n"
	"  --credential-fd N read from N, each ended by a NUL byte, a user name and a secret, or the\n"
	"                    name and for each key of ssh the private one and its passphrase\n"
	"  --progress-fd N   write progress to descriptor N, one JSON object a line\n"
	"  --report-fd N     write the result to descriptor N, one JSON object\n"
	"  --status PATH     print how many files of a work tree are not committed\n"
	"  --unsaved         and what no remote has: stashes, commits; looks into submodules\n";

static int bad_usage(struct cm_error *err, const char *what)
{
	cm_error_set(err, CM_E_INVALID, 0, "%s", what);
	cm_error_hint(err, "see 'casemate-checkout --help'");
	return CM_E_INVALID;
}

static int parse_fd(const char *text, const char *option, uint64_t min, int *ret,
		    struct cm_error *err)
{
	uint64_t value;
	int r = cm_parse_u64(text, option, min, INT_MAX, &value, err);

	if (r == CM_OK)
		*ret = (int)value;
	return r;
}

static int parse_number_option(struct command *cmd, int option, struct cm_error *err)
{
	uint64_t pr;
	uint64_t depth;
	uint64_t port;
	int r;

	switch (option) {
	case 'O':
		r = cm_parse_u64(optarg, "--ssh-port", 1, 65535, &port, err);
		cmd->fetch.ssh.port = r == CM_OK ? (unsigned int)port : 0;
		return r;
	case 'P':
		r = cm_parse_u64(optarg, "--pr", 1, UINT_MAX, &pr, err);
		cmd->checkout.pr = r == CM_OK ? (unsigned int)pr : 0;
		return r;
	case 'D':
		r = cm_parse_u64(optarg, "--depth", 1, INT_MAX, &depth, err);
		cmd->fetch.depth = r == CM_OK ? (unsigned int)depth : 0;
		return r;
	case 'p':
		return parse_fd(optarg, "--progress-fd", 1, &cmd->progress_fd, err);
	case 'R':
		return parse_fd(optarg, "--report-fd", 1, &cmd->report_fd, err);
	case 'c':
		return parse_fd(optarg, "--credential-fd", 0, &cmd->credential_fd, err);
	default:
		return bad_usage(err, "unknown option, or one without its value");
	}
}

static int parse_option(struct command *cmd, int option, struct cm_error *err)
{
	static const struct {
		int option;
		size_t offset;
	} texts[] = {
		{ 's', offsetof(struct command, checkout.source) },
		{ 't', offsetof(struct command, checkout.target) },
		{ 'o', offsetof(struct command, checkout.origin) },
		{ 'r', offsetof(struct command, checkout.ref) },
		{ 'b', offsetof(struct command, checkout.branch) },
		{ 'B', offsetof(struct command, base) },
		{ 'I', offsetof(struct command, checkout.place.checkout) },
		{ 'M', offsetof(struct command, checkout.place.path) },
		{ 'g', offsetof(struct command, checkout.place.git_dir) },
		{ 'n', offsetof(struct command, checkout.place.name) },
		{ 'f', offsetof(struct command, fetch.url) },
		{ 'm', offsetof(struct command, fetch.mirror) },
		{ 'C', offsetof(struct command, fetch.ca_file) },
		{ 'H', offsetof(struct command, fetch.ssh.home) },
		{ 'A', offsetof(struct command, agent) },
		{ 'N', offsetof(struct command, fetch.ssh.host) },
		{ 'S', offsetof(struct command, status_path) },
	};

	for (size_t i = 0; i < CM_ARRAY_SIZE(texts); i++) {
		if (texts[i].option == option) {
			*(const char **)((char *)cmd + texts[i].offset) = optarg;
			return CM_OK;
		}
	}
	if (option == 'h')
		cmd->wants_help = true;
	else if (option == 'F')
		cmd->fetch.is_fresh = true;
	else if (option == 'w')
		cmd->checkout.wants_modules = true;
	else if (option == 'U')
		cmd->wants_unsaved = true;
	else
		return parse_number_option(cmd, option, err);
	return CM_OK;
}

/* How many of these were given? */
static size_t count_given(const char *const *texts, size_t n)
{
	size_t given = 0;

	for (size_t i = 0; i < n; i++)
		given += texts[i] != NULL;
	return given;
}

static int check_ref(const char *option, const char *ref, bool is_full, struct cm_error *err)
{
	if (!ref)
		return CM_OK;
	if (ref[0] == '\0' || strlen(ref) > REF_LEN_MAX) {
		cm_error_set(err, CM_E_INVALID, 0, "%s must have 1 to %d bytes", option,
			     REF_LEN_MAX);
		cm_error_hint(err, "see 'casemate-checkout --help'");
		return CM_E_INVALID;
	}
	if (is_full && (!cm_text_has_prefix(ref, "refs/") || !git_reference_is_valid_name(ref)))
		return bad_usage(err, "--ref of a fetch must be a full name");
	return CM_OK;
}

/* --from is what --ref is otherwise: where a branch begins. */
static int check_branch(const struct command *cmd, struct cm_error *err)
{
	const struct cm_checkout_options *c = &cmd->checkout;

	if (cmd->base && !c->branch)
		return bad_usage(err, "--from needs --branch");
	if (cmd->base && (c->ref || c->pr > 0))
		return bad_usage(err,
				 "--from and what it begins at otherwise contradict each other");
	if (c->branch && !cm_gitref_is_branch(c->branch)) {
		cm_error_set(err, CM_E_INVALID, 0, "a branch cannot be called '%.100s'", c->branch);
		cm_error_hint(err, "'git help check-ref-format' has the rules");
		return CM_E_INVALID;
	}
	return check_ref("--from", cmd->base, false, err);
}

static int check_place(const struct cm_place *place, struct cm_error *err)
{
	const char *const all[] = { place->checkout, place->path, place->git_dir, place->name };
	size_t n = count_given(all, CM_ARRAY_SIZE(all));

	if (n == 0)
		return CM_OK;
	if (n < CM_ARRAY_SIZE(all))
		return bad_usage(err, "--into, --module, --git-dir and --name go together");
	return cm_place_check(place, err);
}

static int check_command(const struct command *cmd, struct cm_error *err)
{
	const struct cm_checkout_options *c = &cmd->checkout;
	const char *const of_checkout[] = { c->source,	   c->target,	     c->origin,
					    c->branch,	   cmd->base,	     c->place.checkout,
					    c->place.path, c->place.git_dir, c->place.name };
	const char *const of_fetch[] = {
		cmd->fetch.url,	     cmd->fetch.mirror, cmd->fetch.ca_file,
		cmd->fetch.ssh.home, cmd->agent,	cmd->fetch.ssh.host
	};
	size_t n_checkout = count_given(of_checkout, CM_ARRAY_SIZE(of_checkout)) + c->wants_modules;
	size_t n_fetch = count_given(of_fetch, CM_ARRAY_SIZE(of_fetch)) + cmd->fetch.is_fresh +
			 (cmd->credential_fd >= 0) + (cmd->fetch.ssh.port > 0) +
			 (cmd->fetch.depth > 0);
	int r;

	if (cmd->wants_help)
		return CM_OK;
	if (cmd->status_path)
		return n_checkout + n_fetch > 0 || c->ref || c->pr > 0 || cmd->report_fd >= 0
			       ? bad_usage(err,
					   "--status goes with --unsaved and --progress-fd alone")
			       : CM_OK;
	if (cmd->wants_unsaved)
		return bad_usage(err, "--unsaved needs --status");
	if (n_fetch > 0 && n_checkout > 0)
		return bad_usage(err, "a checkout and a fetch are two commands");
	if (n_fetch > 0 && (!cmd->fetch.url || !cmd->fetch.mirror))
		return bad_usage(err, "--fetch and --mirror are both needed");
	if (n_fetch == 0 && (!c->source || !c->target))
		return bad_usage(err, "--source and --target are both needed");
	if (c->ref && c->pr > 0)
		return bad_usage(err, "--ref and --pr contradict each other");
	r = check_branch(cmd, err);
	if (r == CM_OK)
		r = check_place(&c->place, err);
	return r == CM_OK ? check_ref("--ref", c->ref, n_fetch > 0, err) : r;
}

static int parse_command(struct command *cmd, int argc, char **argv, struct cm_error *err)
{
	static const struct option options[] = {
		{ "source", required_argument, NULL, 's' },
		{ "target", required_argument, NULL, 't' },
		{ "origin", required_argument, NULL, 'o' },
		{ "ref", required_argument, NULL, 'r' },
		{ "modules", no_argument, NULL, 'w' },
		{ "into", required_argument, NULL, 'I' },
		{ "module", required_argument, NULL, 'M' },
		{ "git-dir", required_argument, NULL, 'g' },
		{ "name", required_argument, NULL, 'n' },
		{ "pr", required_argument, NULL, 'P' },
		{ "branch", required_argument, NULL, 'b' },
		{ "from", required_argument, NULL, 'B' },
		{ "fetch", required_argument, NULL, 'f' },
		{ "mirror", required_argument, NULL, 'm' },
		{ "depth", required_argument, NULL, 'D' },
		{ "fresh", no_argument, NULL, 'F' },
		{ "ca-file", required_argument, NULL, 'C' },
		{ "home", required_argument, NULL, 'H' },
		{ "ssh-agent", required_argument, NULL, 'A' },
		{ "ssh-host", required_argument, NULL, 'N' },
		{ "ssh-port", required_argument, NULL, 'O' },
		{ "credential-fd", required_argument, NULL, 'c' },
		{ "progress-fd", required_argument, NULL, 'p' },
		{ "report-fd", required_argument, NULL, 'R' },
		{ "status", required_argument, NULL, 'S' },
		{ "unsaved", no_argument, NULL, 'U' },
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

static int run_fetch(struct command *cmd, struct cm_report *rep, struct cm_error *err)
{
	int r = CM_OK;

	if (cmd->credential_fd >= 0)
		r = cm_credential_read(cmd->credential_fd, &cmd->credential, err);
	cmd->fetch.ref = cmd->checkout.ref;
	cmd->fetch.pr = cmd->checkout.pr;
	cmd->fetch.credential = &cmd->credential;
	cmd->fetch.ssh.has_agent = cmd->agent != NULL;
	/* libgit2 looks for .ssh/known_hosts there, and for nothing else */
	if (r == CM_OK && cmd->fetch.ssh.home && setenv("HOME", cmd->fetch.ssh.home, 1) < 0)
		r = cm_error_set(err, CM_E_NOMEM, errno, "cannot set the environment");
	if (r == CM_OK && cmd->agent && setenv("SSH_AUTH_SOCK", cmd->agent, 1) < 0)
		r = cm_error_set(err, CM_E_NOMEM, errno, "cannot set the environment");
	if (r == CM_OK)
		r = cm_fetch(&cmd->fetch, rep, err);
	cm_credential_clear(&cmd->credential);
	return r;
}

static int run_status(const struct command *cmd, struct cm_error *err)
{
	struct cm_source src = CM_SOURCE_INIT;
	struct cm_status status;
	int r = cm_source_open(cmd->status_path, &src, err);

	if (r == CM_OK)
		r = cm_status_read(&src, cmd->wants_unsaved, &status, err);
	cm_source_clear(&src);
	cm_pulse_stop();
	return r == CM_OK ? cm_report_status(&status, cmd->wants_unsaved, err) : r;
}

/* Whatever libgit2 says then: what was exceeded is why it failed. */
static int run_guarded(struct command *cmd, struct cm_report *rep, struct cm_error *err)
{
	CM_AUTO_FREE char *target = cm_strdup(cmd->fetch.url ? "" : cmd->checkout.target);
	int r;

	if (!target)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	r = cm_guard_start(cmd->fetch.url ? cmd->fetch.mirror : dirname(target), rep, err);
	if (r < 0)
		return r;
	r = cmd->fetch.url ? run_fetch(cmd, rep, err) : cm_checkout(&cmd->checkout, rep, err);
	cm_guard_stop();
	if (r == CM_E_NOMEM)
		cm_guard_exceed(CM_GUARD_MEMORY);
	return r < 0 && cm_guard_exceeded() != CM_GUARD_NONE ? cm_guard_error(rep, err) : r;
}

static int run(struct command *cmd, struct cm_report *rep, struct cm_error *err)
{
	int r = cm_library_open(err);

	if (r != CM_OK)
		return r;
	if (cmd->base)
		cmd->checkout.ref = cmd->base;
	r = cm_pulse_start(cmd->progress_fd, err);
	if (r != CM_OK) {
		cm_library_close();
		return r;
	}
	r = cmd->status_path ? run_status(cmd, err) : run_guarded(cmd, rep, err);
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
	const int keep[] = { cmd->progress_fd, cmd->report_fd, cmd->credential_fd };
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
	struct command cmd = { .credential_fd = -1, .progress_fd = -1, .report_fd = -1 };
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
