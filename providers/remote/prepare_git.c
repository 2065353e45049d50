/* SPDX-License-Identifier: Apache-2.0 */
/* A repository checked out by the git that is in the sandbox. */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "providers/remote/prepare_internal.h"
#include "runtime/base/alloc.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"

#define LOOK_MAX (64UL * 1024)
#define N_FIELDS 7
#define TRIES 3
#define FIRST_PAUSE_MS 2000

/*
 * $1 the checkout's name, or "". Seven NUL-terminated fields: where commands start, "1" with git, what is
 * in the place, its origin, its branch, the two markers.
 */
static const char look_script[] =
	"w=$(pwd; echo x); w=${w%?x}\n"
	"if [ ! -w \"$w\" ] && [ -n \"${HOME:-}\" ] && [ -w \"$HOME\" ]; then w=$HOME; fi\n"
	"w=${w%/}; d=$w/$1 git=0 place=nothing url= branch=\n"
	"! git --version >/dev/null 2>&1 || git=1\n"
	"if [ -z \"$1\" ]; then :\n"
	"elif [ -e \"$d/.git\" ]; then\n"
	"place=repository\n"
	"url=$(git -C \"$d\" config --get remote.origin.url 2>/dev/null | head -c 8192)\n"
	"branch=$(git -C \"$d\" symbolic-ref -q --short HEAD 2>/dev/null)\n"
	"elif [ -d \"$d\" ]; then\n"
	"place=empty\n"
	"for f in \"$d\"/* \"$d\"/.[!.]* \"$d\"/..?*; do\n"
	"if [ -e \"$f\" ] || [ -L \"$f\" ]; then place=other; fi; done\n"
	"elif [ -e \"$d\" ] || [ -L \"$d\" ]; then place=other; fi\n"
	"m=$w/" CM_PREPARE_DIRECTORY "\n"
	"printf '%s\\0' \"$w\" \"$git\" \"$place\" \"$url\" \"$branch\" "
	"\"$(head -c 256 \"$m/setup\" 2>/dev/null)\" "
	"\"$(head -c 256 \"$m/setup-failed\" 2>/dev/null)\"\n";

#define GIT                                                                                        \
	"g() { git -c core.hooksPath=/dev/null -c protocol.ext.allow=never "                       \
	"-c protocol.file.allow=never \"$@\"; }\n"                                                 \
	"nl='\n'\n"                                                                                \
	"tab=$(printf '\\t')\n"                                                                    \
	"has() { case $nl$list$nl in *\"$tab$1$nl\"*) return 0;; esac; return 1; }\n"

/*
 * $1 address, $2 place, $3 depth, $4 filter, $5 ref, $6 request, $7 branch to be on, $8 where that one
 * begins, $9 "1" with LFS; then directories of a sparse checkout. Each may be "".
 *
 * The clone has no files until it is known which; the place gets it whole.
 */
static const char clone_script[] = CM_SHELL_FAIL GIT
	"url=$1 d=$2 depth=${3:+--depth=$3} filter=${4:+--filter=$4} want=$5 pr=$6 new=$7 lfs=$9\n"
	"[ -z \"$8\" ] || want=$8\n"
	"shift 9\n"
	"p=${d%/*}; m=$p/" CM_PREPARE_DIRECTORY " t=$m/clone\n"
	"mkdir -p \"$m\" 2>/dev/null && [ -w \"$m\" ] || fail denied\n"
	"rm -rf \"$t\"\n"
	"if [ \"$lfs\" = 1 ]; then git lfs version >/dev/null 2>&1 || fail no-lfs\n"
	"else export GIT_LFS_SKIP_SMUDGE=1; fi\n"
	"want=${want#refs/heads/}; want=${want#refs/tags/}; [ \"$want\" != HEAD ] || want=\n"
	"list= at= name= point= detach=\n"
	"if [ -n \"$want$pr$new\" ]; then\n"
	"list=$(g ls-remote -- \"$url\" \"refs/heads/${want:-$new}\" \"refs/tags/${want:-$new}\" "
	"\"refs/heads/${new:-$want}\" \"refs/pull/$pr/head\" \"refs/merge-requests/$pr/head\" "
	"\"refs/pull-requests/$pr/from\") || exit\n"
	"fi\n"
	"if [ -n \"$new\" ] && has \"refs/heads/$new\"; then name=$new new= pr=\n"
	"elif [ -n \"$pr\" ]; then\n"
	"for f in \"refs/pull/$pr/head\" \"refs/merge-requests/$pr/head\" "
	"\"refs/pull-requests/$pr/from\"; do\n"
	"if [ -z \"$at\" ] && has \"$f\"; then at=$f; fi; done\n"
	"[ -n \"$at\" ] || fail no-ref; new=${new:-pr-$pr}\n"
	"elif [ -n \"$want\" ]; then\n"
	"if has \"refs/heads/$want\" || has \"refs/tags/$want\"; then name=$want\n"
	"else case $want in *[!0-9a-f]*) fail no-ref;; ????*) at=$want;; *) fail no-ref;; esac; fi\n"
	"fi\n"
	"g clone --no-checkout $depth $filter ${name:+--branch \"$name\"} -- \"$url\" \"$t\" || exit\n"
	"cd \"$t\" || fail denied\n"
	"if [ -n \"$at\" ]; then\n"
	"if g cat-file -e \"$at^{commit}\" 2>/dev/null; then point=$at\n"
	"else g fetch $depth $filter origin \"$at\" || exit; point=FETCH_HEAD; fi\n"
	"detach=--detach\n"
	"fi\n"
	"if [ $# -gt 0 ]; then\n"
	"g sparse-checkout init --cone >/dev/null 2>&1 || fail no-sparse\n"
	"printf '%s\\n' \"$@\" | g sparse-checkout set --stdin || exit\n"
	"fi\n"
	"if [ -n \"$new\" ]; then g checkout -q --no-track -b \"$new\" $point || exit\n"
	"elif [ -n \"$point\" ] || g rev-parse -q --verify HEAD >/dev/null; then\n"
	"g checkout -q $detach $point || exit\n"
	"fi\n"
	"if [ -e \"$d\" ]; then rmdir \"$d\" 2>/dev/null || fail exists; fi\n"
	"cd \"$p/\" && mv \"$t\" \"$d\" || fail denied\n";

/*
 * $1 place, $2 branch to be on, $3 where one that is new begins ("": here), $4 depth, $5 "1": the server
 * may be asked. What git would have to overwrite stays, and so does the branch. The checkout's own
 * configuration may be an earlier command's: what it could have run by itself (q) is not told the credential.
 */
static const char branch_script[] = CM_SHELL_FAIL GIT
	"q() { (unset GIT_CONFIG_COUNT; g -c core.fsmonitor=false \"$@\"); }\n"
	"cd \"$1\" || fail denied\n"
	"new=$2 base=${3#refs/heads/} depth=${4:+--depth=$4} list= point=\n"
	"if g show-ref -q --verify \"refs/heads/$new\"; then\n"
	"q checkout -q \"$new\" -- || fail kept; exit 0; fi\n"
	"if [ \"$5\" = 1 ]; then\n"
	"list=$(g ls-remote origin \"refs/heads/$new\" \"refs/heads/${base:-$new}\" "
	"\"refs/tags/${base:-$new}\") || exit\n"
	"if has \"refs/heads/$new\"; then\n"
	"g fetch $depth origin \"+refs/heads/$new:refs/remotes/origin/$new\" || exit\n"
	"q checkout -q -b \"$new\" --track \"origin/$new\" || fail kept; exit 0; fi\n"
	"if [ -n \"$base\" ]; then\n"
	"g fetch $depth origin \"$base\" || exit; point=FETCH_HEAD; fi\n"
	"fi\n"
	"q checkout -q --no-track -b \"$new\" $point || fail kept\n";

/* $1 place, $2 an address without what a user wrote into it */
static const char scrub_script[] = "git -C \"$1\" remote set-url origin \"$2\"\n";

/* --- what is there --------------------------------------------------------------------------- */

static int senseless(struct cm_error *err)
{
	return cm_error_set(err, CM_E_PROTOCOL, 0,
			    "the session's answer to where its files are makes no sense");
}

static bool split(const struct cm_buf *text, const char *ret[N_FIELDS])
{
	const char *at = text->data;
	const char *to = at ? at + text->len : NULL;

	for (size_t i = 0; i < N_FIELDS; i++) {
		const char *end = at < to ? memchr(at, '\0', (size_t)(to - at)) : NULL;

		if (!end)
			return false;
		ret[i] = at;
		at = end + 1;
	}
	return at == to;
}

static enum cm_prep_place read_place(const char *word)
{
	static const char *const words[] = { [CM_PREP_NOTHING] = "nothing",
					     [CM_PREP_EMPTY] = "empty",
					     [CM_PREP_REPOSITORY] = "repository",
					     [CM_PREP_OTHER] = "other" };

	for (size_t i = CM_PREP_NOTHING; i < CM_ARRAY_SIZE(words); i++) {
		if (strcmp(words[i], word) == 0)
			return (enum cm_prep_place)i;
	}
	return 0;
}

static int take_answer(struct cm_prep *p, const struct cm_buf *text, struct cm_error *err)
{
	const char *f[N_FIELDS];

	if (!split(text, f) || (f[0][0] != '/' && f[0][0] != '\0') || !read_place(f[2]))
		return senseless(err);
	p->has_git = strcmp(f[1], "1") == 0;
	p->place = read_place(f[2]);
	p->workdir = cm_strdup(f[0]);
	p->origin = cm_strdup(f[3]);
	p->branch = cm_strdup(f[4]);
	p->marker = cm_strdup(f[5]);
	p->failed_marker = cm_strdup(f[6]);
	if (p->name)
		p->checkout = cm_asprintf("%s/%s", f[0], p->name);
	if (!p->workdir || !p->origin || !p->branch || !p->marker || !p->failed_marker ||
	    (p->name && !p->checkout))
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for a session's places");
	p->is_known = true;
	return CM_OK;
}

int cm_prep_look(struct cm_prep *p, struct cm_error *err)
{
	const char *const args[] = { p->name ? p->name : "", NULL };
	const struct cm_shell shell = {
		.session = p->session,
		.script = look_script,
		.args = args,
		.is_root = p->spec->user == CM_USER_ROOT,
		.is_idempotent = true,
		.timeout_ms = CM_PREPARE_TIMEOUT_MS,
		.out_max = LOOK_MAX,
	};
	struct cm_shell_end end;
	int r;

	if (p->is_known)
		return CM_OK;
	r = cm_shell_run(&shell, p->call, &end, err);
	if (r == CM_OK)
		r = take_answer(p, &end.out, err);
	cm_shell_end_clear(&end);
	return r;
}

/* --- git ------------------------------------------------------------------------------------- */

/* Not for longer than the call may take. */
static int pause_ms(const struct cm_prep *p, int ms, struct cm_error *err)
{
	struct pollfd fd = { .fd = p->call->cancel_fd, .events = POLLIN };

	if (p->call->deadline_ms - cm_clock_mono_ms() <= ms)
		return cm_error_set(err, CM_E_TIMEOUT, 0, "it took too long");
	if (poll(&fd, 1, ms) > 0)
		return cm_error_set(err, CM_E_CANCELLED, 0, "given up");
	return CM_OK;
}

/* What git prints, less the line by which our scripts say how they ended. */
struct git_output {
	const struct cm_prep *prep;
	/* so much of the mark was seen, and is held back */
	size_t n_held;
	/* behind the mark, up to the end of its line */
	bool is_verdict;
};

static const char verdict_mark[] = "\ncasemate-verdict ";

static void tell(const struct git_output *g, const char *bytes, size_t len)
{
	if (len > 0 && g->prep->prepare->output)
		g->prep->prepare->output(g->prep->prepare->data, bytes, len);
}

static int take_output(void *data, const void *bytes, size_t len)
{
	tell(data, bytes, len);
	return 0;
}

static int take_error(void *data, const void *bytes, size_t len)
{
	struct git_output *g = data;
	const char *text = bytes;
	size_t from = 0;

	for (size_t i = 0; i < len; i++) {
		if (g->is_verdict) {
			g->is_verdict = text[i] != '\n';
			from = i + 1;
			continue;
		}
		/* the mark's first byte is not in it again */
		if (text[i] != verdict_mark[g->n_held]) {
			tell(g, verdict_mark, g->n_held);
			g->n_held = 0;
		}
		if (text[i] != verdict_mark[g->n_held])
			continue;
		if (g->n_held == 0)
			tell(g, text + from, i - from);
		from = i + 1;
		g->n_held++;
		g->is_verdict = g->n_held == sizeof(verdict_mark) - 1;
		if (g->is_verdict)
			g->n_held = 0;
	}
	tell(g, text + from, len - from);
	return 0;
}

/*
 * With the credential, where it is to have one; again where the connection was to blame. A verdict `kept`
 * is *ret_is_kept where that is asked for.
 */
static int run_git(struct cm_prep *p, const char *script, const char *const *args,
		   bool *ret_is_kept, struct cm_error *err)
{
	struct cm_strv env = { 0 };
	struct git_output output = { .prep = p };
	int r = cm_prep_env(p, &env, err);
	const struct cm_shell shell = {
		.session = p->session,
		.script = script,
		.args = args,
		.env = env.v,
		.is_root = p->spec->user == CM_USER_ROOT,
		.timeout_ms = CM_PREPARE_TIMEOUT_MS,
		.take = take_output,
		.take_error = take_error,
		.take_data = &output,
	};
	int wait = FIRST_PAUSE_MS;

	for (int i = 1; r == CM_OK; i++, wait *= 2) {
		struct cm_shell_end end;
		bool is_again;

		r = cm_shell_run(&shell, p->call, &end, err);
		tell(&output, verdict_mark, output.n_held);
		output = (struct git_output){ .prep = p };
		is_again =
			r == CM_OK && end.exit_code != 0 && i < TRIES && cm_prep_is_transient(&end);
		if (r == CM_OK && ret_is_kept)
			*ret_is_kept = cm_shell_says(&end, "kept");
		if (is_again)
			r = pause_ms(p, wait, err);
		else if (r == CM_OK && end.exit_code != 0 && !(ret_is_kept && *ret_is_kept))
			r = cm_prep_git_error(p, &end, err);
		cm_shell_end_clear(&end);
		if (!is_again)
			break;
	}
	cm_prep_env_clear(&env);
	return r;
}

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

static const char **make_clone_args(const struct cm_prep *p, const char *depth, const char *pr)
{
	const struct cm_spec *spec = p->spec;
	const char **args = cm_calloc(10 + spec->sparse.n, sizeof(*args));

	if (!args)
		return NULL;
	args[0] = p->url.text;
	args[1] = p->checkout;
	args[2] = depth;
	args[3] = spec->filter == CM_FILTER_BLOB_NONE ? "blob:none" : "";
	args[4] = or_empty(spec->ref);
	args[5] = pr;
	args[6] = or_empty(spec->branch);
	args[7] = or_empty(spec->base);
	args[8] = spec->has_lfs ? "1" : "0";
	for (size_t i = 0; i < spec->sparse.n; i++)
		args[9 + i] = spec->sparse.v[i];
	return args;
}

static int clone(struct cm_prep *p, struct cm_error *err)
{
	char depth[16] = "";
	char pr[16] = "";
	CM_AUTO_FREE const char **args = NULL;
	int r;

	if (p->spec->depth > 0)
		(void)snprintf(depth, sizeof(depth), "%d", p->spec->depth);
	if (p->spec->pr > 0)
		(void)snprintf(pr, sizeof(pr), "%d", p->spec->pr);
	args = make_clone_args(p, depth, pr);
	if (!args)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for a checkout");
	if (p->network == CM_NETWORK_NONE) {
		r = cm_prep_network(p, CM_NETWORK_INTERNET, err);
		if (r < 0)
			return cm_error_wrap(err, "cannot check out '%.150s'", p->url.text);
	}
	r = run_git(p, clone_script, args, NULL, err);
	p->is_cloned = r == CM_OK;
	return r;
}

/* --- one that is there ----------------------------------------------------------------------- */

static int other_place(const struct cm_prep *p, struct cm_error *err)
{
	(void)cm_error_set(err, CM_E_EXISTS, 0,
			   p->place == CM_PREP_REPOSITORY
				   ? "the session's '%.150s' is a checkout of another repository"
				   : "the session's '%.150s' is no checkout, and not empty",
			   p->checkout);
	cm_error_hint(err, "move it away in the session, or begin another one");
	return CM_E_EXISTS;
}

/* A user name or password in the address stays in the sandbox as long as it does. */
static int scrub(struct cm_prep *p, struct cm_error *err)
{
	const char *const args[] = { p->checkout, p->url.text, NULL };
	const struct cm_shell shell = {
		.session = p->session,
		.script = scrub_script,
		.args = args,
		.is_root = p->spec->user == CM_USER_ROOT,
		.timeout_ms = CM_PREPARE_TIMEOUT_MS,
	};
	struct cm_giturl url = { .kind = 0 };
	struct cm_shell_end end;
	bool has_user = false;
	int r = cm_giturl_parse(p->origin, &url, err);

	if (r == CM_OK)
		has_user = url.user || url.password;
	cm_giturl_clear(&url);
	if (r < 0 || !has_user)
		return r;
	r = cm_shell_run(&shell, p->call, &end, err);
	if (r == CM_OK && end.exit_code != 0)
		cm_provider_note(p->session->provider,
				 "the address of '%s' has a credential in it, and could not be "
				 "changed",
				 p->checkout);
	cm_shell_end_clear(&end);
	return r;
}

/* Of a checkout that a template or a command made. */
static void tell_ignored(const struct cm_prep *p)
{
	if ((p->spec->ref || p->spec->pr > 0) && !cm_record_get(&p->record, CM_RECORD_CHECKOUT))
		cm_provider_note(
			p->session->provider,
			"'%.200s' was there before, and is left as it is: --%s is not followed",
			p->checkout, p->spec->ref ? "ref" : "pr");
}

static int switch_branch(struct cm_prep *p, struct cm_error *err)
{
	const struct cm_spec *spec = p->spec;
	bool is_online = p->network != CM_NETWORK_NONE || cm_prep_can_switch(p->session->provider);
	char depth[16] = "";
	const char *const args[] = { p->checkout, spec->branch,		 or_empty(spec->base),
				     depth,	  is_online ? "1" : "0", NULL };
	bool is_kept = false;
	int r = CM_OK;

	if (!spec->branch || strcmp(spec->branch, p->branch) == 0)
		return CM_OK;
	if (spec->depth > 0)
		(void)snprintf(depth, sizeof(depth), "%d", spec->depth);
	if (is_online && p->network == CM_NETWORK_NONE)
		r = cm_prep_network(p, CM_NETWORK_INTERNET, err);
	if (r == CM_OK)
		r = run_git(p, branch_script, args, &is_kept, err);
	if (r == CM_OK && is_kept)
		cm_provider_note(p->session->provider,
				 "the checkout stays on its branch: switching to '%s' would change "
				 "what was not committed",
				 spec->branch);
	return r;
}

int cm_prep_checkout(struct cm_prep *p, struct cm_error *err)
{
	int r = cm_prep_look(p, err);

	if (r < 0)
		return r;
	if (!p->has_git) {
		(void)cm_error_set(err, CM_E_CHECKOUT, 0, "the session has no 'git'");
		cm_error_hint(err, "begin it with a template that has git");
		return CM_E_CHECKOUT;
	}
	if (p->place == CM_PREP_OTHER ||
	    (p->place == CM_PREP_REPOSITORY && !cm_prep_same_repository(&p->url, p->origin)))
		return other_place(p, err);
	if (p->place != CM_PREP_REPOSITORY)
		return clone(p, err);
	tell_ignored(p);
	r = scrub(p, err);
	return r == CM_OK ? switch_branch(p, err) : r;
}
