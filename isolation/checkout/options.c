/* SPDX-License-Identifier: Apache-2.0 */
/* One table of options: how each is written, where it goes, and which tasks it is for. */
#include "isolation/checkout/options.h"

#include <getopt.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "isolation/checkout/library.h"
#include "runtime/base/fd.h"
#include "runtime/base/gitref.h"
#include "runtime/base/num.h"
#include "runtime/base/submodule.h"
#include "runtime/base/text.h"

/* A ref is a path below .git/refs. */
#define REF_LEN_MAX 1024

#define CHECKOUT CM_TASK_CHECKOUT
#define FETCH CM_TASK_FETCH
#define STATUS CM_TASK_STATUS
#define UPDATE CM_TASK_UPDATE

enum kind {
	/* const char * */
	TEXT,
	/* unsigned int, min to max */
	NUMBER,
	/* int, min to max: a descriptor */
	DESCRIPTOR,
	/* bool */
	SWITCH,
};

#define AT(member) offsetof(struct cm_options, member)

static const struct {
	const char *name;
	/* of its value in the help; NULL for a switch */
	const char *value;
	enum kind kind;
	uint64_t min;
	uint64_t max;
	size_t offset;
	/* of enum cm_task; 0: of any */
	unsigned int tasks;
	const char *help;
} table[] = {
	{ "source", "PATH", TEXT, 0, 0, AT(checkout.source), CHECKOUT | UPDATE,
	  "repository: work tree, bare, linked worktree or submodule" },
	{ "target", "DIR", TEXT, 0, 0, AT(checkout.target), CHECKOUT,
	  "directory to make; its parent exists" },
	{ "origin", "URL", TEXT, 0, 0, AT(checkout.origin), CHECKOUT | UPDATE,
	  "address of the checkout's remote (default: the source's path)" },
	{ "ref", "REF", TEXT, 0, 0, AT(checkout.ref), CHECKOUT | FETCH | UPDATE,
	  "branch, tag or commit id (default: the source's HEAD); of a fetch a full\n"
	  "name beside branches and tags, such as refs/pull/7/head" },
	{ "pr", "N", NUMBER, 1, UINT_MAX, AT(checkout.pr), CHECKOUT | FETCH | UPDATE,
	  "head of pull or merge request N, in place of --ref" },
	{ "branch", "NAME", TEXT, 0, 0, AT(checkout.branch), CHECKOUT | UPDATE,
	  "be on this branch: the source's, with its upstream, or a new one that\n"
	  "begins at what else would be checked out" },
	{ "from", "BASE", TEXT, 0, 0, AT(base), CHECKOUT | UPDATE,
	  "where it begins when it is new: as --ref" },
	{ "modules", NULL, SWITCH, 0, 0, AT(checkout.wants_modules), CHECKOUT,
	  "report its submodules that may be fetched; where there are any, make\n"
	  "DIR.modules, too" },
	{ "into", "CHECKOUT", TEXT, 0, 0, AT(checkout.place.checkout), CHECKOUT,
	  "move what was checked out there as a submodule" },
	{ "module", "PATH", TEXT, 0, 0, AT(checkout.place.path), CHECKOUT,
	  "its place, below CHECKOUT" },
	{ "git-dir", "DIR", TEXT, 0, 0, AT(checkout.place.git_dir), CHECKOUT,
	  "its superproject's git directory, below CHECKOUT" },
	{ "name", "NAME", TEXT, 0, 0, AT(checkout.place.name), CHECKOUT, "its name" },
	{ "fetch", "URL", TEXT, 0, 0, AT(fetch.url), FETCH,
	  "remote repository: https, http, ssh, git or file" },
	{ "mirror", "DIR", TEXT, 0, 0, AT(fetch.mirror), FETCH,
	  "directory of its mirror, which exists" },
	{ "depth", "N", NUMBER, 1, INT_MAX, AT(fetch.depth), FETCH,
	  "fetch no more than N commits of each history, and no branches and tags\n"
	  "but HEAD's, those of --take-ref and --take-branch and what DIR has; where\n"
	  "--take-ref is no name of the server's, all" },
	{ "lfs", NULL, SWITCH, 0, 0, AT(wants.has_lfs), CHECKOUT | FETCH,
	  "the content of Git LFS files, too" },
	{ "sparse", "DIRS", TEXT, 0, 0, AT(wants.sparse), CHECKOUT | FETCH,
	  "these directories alone, a line each, and the files above them" },
	{ "filter", "blob:none", TEXT, 0, 0, AT(filter), CHECKOUT | FETCH,
	  "no content of files but what is checked out" },
	{ "take-ref", "REF", TEXT, 0, 0, AT(fetch.take_ref), FETCH,
	  "what is going to be checked out, as --ref has it there: that is whose\n"
	  "content --lfs and --filter fetch, and what --depth fetches" },
	{ "take-branch", "NAME", TEXT, 0, 0, AT(fetch.take_branch), FETCH, "as --branch has it" },
	{ "fresh", NULL, SWITCH, 0, 0, AT(fetch.is_fresh), FETCH,
	  "use nothing of what an earlier fetch left there" },
	{ "ca-file", "FILE", TEXT, 0, 0, AT(fetch.ca_file), FETCH,
	  "certificates to believe (PEM)" },
	{ "home", "DIR", TEXT, 0, 0, AT(fetch.ssh.home), FETCH,
	  "where .ssh/known_hosts is, with the keys of this server alone" },
	{ "ssh-agent", "SOCKET", TEXT, 0, 0, AT(fetch.ssh.agent), FETCH,
	  "use the keys of the agent there, and none of the credential" },
	{ "ssh-host", "HOST", TEXT, 0, 0, AT(fetch.ssh.host), FETCH,
	  "the server's real name, where the address has another for it" },
	{ "ssh-port", "N", NUMBER, 1, 65535, AT(fetch.ssh.port), FETCH,
	  "its port, where the address has none" },
	{ "credential-fd", "N", DESCRIPTOR, 0, INT_MAX, AT(credential_fd), FETCH,
	  "read from N, each ended by a NUL byte, a user name and a secret, or the\n"
	  "name and for each key of ssh the private one and its passphrase" },
	{ "progress-fd", "N", DESCRIPTOR, 1, INT_MAX, AT(progress_fd), 0,
	  "write progress to descriptor N, one JSON object a line" },
	{ "report-fd", "N", DESCRIPTOR, 1, INT_MAX, AT(report_fd), CHECKOUT | FETCH | UPDATE,
	  "write the result to descriptor N, one JSON object" },
	{ "update", "CHECKOUT", TEXT, 0, 0, AT(update_path), UPDATE,
	  "work tree of a checkout to bring up to date" },
	{ "unshallow", NULL, SWITCH, 0, 0, AT(is_unshallow), UPDATE,
	  "all of the history, where a part of it is missing" },
	{ "keep-branches", NULL, SWITCH, 0, 0, AT(keeps_branches), UPDATE,
	  "the remote may have branches that PATH has not: these stay" },
	{ "finish", NULL, SWITCH, 0, 0, AT(is_finish), UPDATE,
	  "without --source: only go through with what a killed update began" },
	{ "status", "PATH", TEXT, 0, 0, AT(status_path), STATUS,
	  "print how many files of a work tree are not committed" },
	{ "unsaved", NULL, SWITCH, 0, 0, AT(wants_unsaved), STATUS,
	  "and what no remote has: stashes, commits; looks into submodules" },
	{ "help", NULL, SWITCH, 0, 0, AT(wants_help), 0, "print this" },
};
#define N_OPTIONS CM_ARRAY_SIZE(table)
_Static_assert(N_OPTIONS < '?', "getopt_long answers that for what it does not know");

static const char usage[] =
	"usage: casemate-checkout --source PATH --target DIR [OPTION...]\n"
	"       casemate-checkout --fetch URL --mirror DIR [OPTION...]\n"
	"       casemate-checkout --update CHECKOUT --source PATH [OPTION...]\n"
	"       casemate-checkout --status PATH [--unsaved] [--progress-fd N]\n"
	"\n"
	"Check a local git repository out into the new directory DIR, or fetch a remote one into the\n"
	"mirror DIR, which can then be checked out. An update brings what PATH has into a checkout\n"
	"that is there, and with --ref, --pr or --branch puts it on that; in a jail only.\n"
	"\n";

#define HELP_COLUMN 20

int cm_options_print_help(void)
{
	(void)fputs(usage, stdout);
	for (size_t i = 0; i < N_OPTIONS; i++) {
		const char *line = table[i].help;
		int width =
			printf("  --%s %s", table[i].name, table[i].value ? table[i].value : "");

		(void)printf("%*s", width < HELP_COLUMN ? HELP_COLUMN - width : 2, "");
		while (line) {
			const char *end = strchr(line, '\n');

			(void)printf("%.*s\n", end ? (int)(end - line) : (int)strlen(line), line);
			line = end ? end + 1 : NULL;
			if (line)
				(void)printf("%*s", HELP_COLUMN, "");
		}
	}
	return fflush(stdout);
}

static int bad_usage(struct cm_error *err, const char *what)
{
	cm_error_set(err, CM_E_INVALID, 0, "%s", what);
	cm_error_hint(err, "see 'casemate-checkout --help'");
	return CM_E_INVALID;
}

static int take(struct cm_options *o, size_t i, struct cm_error *err)
{
	void *field = (char *)o + table[i].offset;
	char option[32];
	uint64_t value;
	int r;

	switch (table[i].kind) {
	case TEXT:
		*(const char **)field = optarg;
		return CM_OK;
	case SWITCH:
		*(bool *)field = true;
		return CM_OK;
	case NUMBER:
	case DESCRIPTOR:
		break;
	}
	(void)snprintf(option, sizeof(option), "--%s", table[i].name);
	r = cm_parse_u64(optarg, option, table[i].min, table[i].max, &value, err);
	if (r != CM_OK)
		return r;
	if (table[i].kind == NUMBER)
		*(unsigned int *)field = (unsigned int)value;
	else
		*(int *)field = (int)value;
	return CM_OK;
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
static int check_branch(const struct cm_options *o, struct cm_error *err)
{
	const struct cm_checkout_options *c = &o->checkout;

	if (o->base && !c->branch)
		return bad_usage(err, "--from needs --branch");
	if (o->base && (c->ref || c->pr > 0))
		return bad_usage(err,
				 "--from and what it begins at otherwise contradict each other");
	if (c->branch && !cm_gitref_is_branch(c->branch)) {
		cm_error_set(err, CM_E_INVALID, 0, "a branch cannot be called '%.100s'", c->branch);
		cm_error_hint(err, "'git help check-ref-format' has the rules");
		return CM_E_INVALID;
	}
	return check_ref("--from", o->base, false, err);
}

static int check_place(const struct cm_place *place, struct cm_error *err)
{
	const char *const all[] = { place->checkout, place->path, place->git_dir, place->name };
	size_t n = 0;

	for (size_t i = 0; i < CM_ARRAY_SIZE(all); i++)
		n += all[i] != NULL;
	if (n == 0)
		return CM_OK;
	if (n < CM_ARRAY_SIZE(all))
		return bad_usage(err, "--into, --module, --git-dir and --name go together");
	return cm_place_check(place, err);
}

/* A line each. */
static int check_sparse(const char *sparse, struct cm_error *err)
{
	CM_AUTO_FREE char *list = cm_strdup(sparse);
	char *rest = list;
	char *path;

	while ((path = strsep(&rest, "\n")) != NULL) {
		if (!cm_submodule_is_path(path))
			return bad_usage(err, "--sparse takes directories of the repository");
	}
	return list || !sparse ? CM_OK : cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
}

/* By the host's git. */
static int check_wants(const struct cm_options *o, struct cm_error *err)
{
	if (o->filter && strcmp(o->filter, "blob:none") != 0)
		return bad_usage(err, "--filter takes blob:none");
	if (o->filter && o->wants.has_lfs)
		return bad_usage(err, "--filter and --lfs contradict each other");
	return check_sparse(o->wants.sparse, err);
}

/* any: the tasks of what was given, each alone; all: those that everything given is for. */
static int check_tasks(struct cm_options *o, unsigned int any, unsigned int all,
		       struct cm_error *err)
{
	static const struct {
		enum cm_task task;
		const char *alone;
	} of[] = {
		{ CM_TASK_STATUS, "--status goes with --unsaved and --progress-fd alone" },
		{ CM_TASK_FETCH, "a checkout and a fetch are two commands" },
		{ CM_TASK_UPDATE, "an update and a new checkout are two commands" },
	};

	o->task = CM_TASK_CHECKOUT;
	for (size_t i = 0; i < CM_ARRAY_SIZE(of); i++) {
		if ((any & of[i].task) == 0)
			continue;
		o->task = of[i].task;
		return (all & o->task) != 0 ? CM_OK : bad_usage(err, of[i].alone);
	}
	return CM_OK;
}

static int check(const struct cm_options *o, struct cm_error *err)
{
	const struct cm_checkout_options *c = &o->checkout;
	bool is_fetch = o->task == CM_TASK_FETCH;
	int r;

	if (o->task == CM_TASK_STATUS)
		return o->status_path ? CM_OK : bad_usage(err, "--unsaved needs --status");
	if (is_fetch && (!o->fetch.url || !o->fetch.mirror))
		return bad_usage(err, "--fetch and --mirror are both needed");
	if (o->task == CM_TASK_UPDATE && (!o->update_path || !c->source == !o->is_finish))
		return bad_usage(err, "--update needs either --source or --finish");
	if (o->task == CM_TASK_CHECKOUT && (!c->source || !c->target))
		return bad_usage(err, "--source and --target are both needed");
	if (c->ref && c->pr > 0)
		return bad_usage(err, "--ref and --pr contradict each other");
	r = check_wants(o, err);
	if (r == CM_OK)
		r = check_branch(o, err);
	if (r == CM_OK)
		r = check_place(&c->place, err);
	return r == CM_OK ? check_ref("--ref", c->ref, is_fetch, err) : r;
}

/* Is it for one task alone? */
static bool is_single(unsigned int tasks)
{
	return tasks != 0 && (tasks & (tasks - 1)) == 0;
}

int cm_options_parse(int argc, char **argv, struct cm_options *ret, struct cm_error *err)
{
	struct option options[N_OPTIONS + 1] = { { NULL, 0, NULL, 0 } };
	unsigned int any = 0;
	unsigned int all = ~0U;
	int i;
	int r;

	for (size_t at = 0; at < N_OPTIONS; at++)
		options[at] =
			(struct option){ table[at].name,
					 table[at].kind == SWITCH ? no_argument : required_argument,
					 NULL, (int)at };
	opterr = 0;
	while ((i = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (i < 0 || (size_t)i >= N_OPTIONS)
			return bad_usage(err, "unknown option, or one without its value");
		r = take(ret, (size_t)i, err);
		if (r != CM_OK)
			return r;
		any |= is_single(table[i].tasks) ? table[i].tasks : 0;
		all &= table[i].tasks != 0 ? table[i].tasks : ~0U;
	}
	if (optind < argc)
		return bad_usage(err, "there are no arguments without an option");
	if (ret->wants_help)
		return CM_OK;
	r = check_tasks(ret, any, all, err);
	return r == CM_OK ? check(ret, err) : r;
}
