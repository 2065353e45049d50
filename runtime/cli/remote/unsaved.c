/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cli/remote/unsaved.h"

#include <string.h>

#include "providers/remote/shell.h"
#include "runtime/base/fd.h"
#include "runtime/cli/remote/recall.h"

#define LOOK_MS 30000
#define ANSWER_MAX 256U
#define COUNT_MAX 1000000000U

/*
 * Three counts: files, stashes, commits. What git says is taken whole before it is counted: a pipe hides
 * that it failed. What was cloned or fetched from a server is there, whether or not a branch of a remote
 * has it: a tag or a pull request has none.
 */
static const char script[] = CM_SHELL_FAIL
	"g() { git -c safe.directory='*' -c core.fsmonitor=false \"$@\"; }\n"
	"count() { [ -z \"$1\" ] && echo 0 || printf '%s\\n' \"$1\" | wc -l; }\n"
	"cd \"$1\" || fail gone\n"
	"files=$(g status --porcelain --untracked-files=normal) || exit 1\n"
	"stashes=$(g stash list) || exit 1\n"
	"log=$(g rev-parse --git-path logs/HEAD) || exit 1\n"
	"fetched=$(g rev-parse --git-path FETCH_HEAD) || exit 1\n"
	"id='\\([0-9a-f]\\{40,64\\}\\)'\n"
	"http='https\\{0,1\\}://' git=git://\n"
	"known=$(sed -n -e \"1s|^0* $id .*clone: from $http.*|\\\\1|p\" "
	"-e \"1s|^0* $id .*clone: from $git.*|\\\\1|p\" \"$log\" 2>/dev/null\n"
	"sed -n -e \"s|^$id[^0-9a-f].* of $http.*|\\\\1|p\" "
	"-e \"s|^$id[^0-9a-f].* of $git.*|\\\\1|p\" \"$fetched\" 2>/dev/null)\n"
	"head=$(g rev-parse -q --verify HEAD)\n"
	"commits=$(g rev-list --count $head --branches --not --remotes $known) || exit 1\n"
	"echo $(count \"$files\") $(count \"$stashes\") $commits\n";

struct counts {
	uint64_t files;
	uint64_t stashes;
	uint64_t commits;
};

static int senseless(struct cm_error *err)
{
	return cm_error_set(err, CM_E_PROTOCOL, 0, "its answer makes no sense");
}

static int read_counts(const struct cm_buf *text, struct counts *ret, struct cm_error *err)
{
	uint64_t *const places[] = { &ret->files, &ret->stashes, &ret->commits };
	char copy[ANSWER_MAX + 1];
	char *at = copy;

	if (!text->data || text->len >= sizeof(copy))
		return senseless(err);
	memcpy(copy, text->data, text->len);
	copy[text->len] = '\0';
	for (size_t i = 0; i < CM_ARRAY_SIZE(places); i++) {
		char *end = at + strcspn(at, " \n");
		bool is_last = i + 1 == CM_ARRAY_SIZE(places);

		if (*end != (is_last ? '\n' : ' '))
			return senseless(err);
		*end = '\0';
		if (!cm_shell_number(at, COUNT_MAX, places[i]))
			return senseless(err);
		at = end + 1;
	}
	return CM_OK;
}

static int look(const struct cm_away *away, const char *directory, struct counts *ret,
		struct cm_error *err)
{
	char no_locks[] = "GIT_OPTIONAL_LOCKS=0";
	char no_prompt[] = "GIT_TERMINAL_PROMPT=0";
	char locale[] = "LC_ALL=C";
	char *const env[] = { no_locks, no_prompt, locale, NULL };
	const char *const args[] = { directory, NULL };
	const struct cm_shell shell = {
		.session = away->session,
		.script = script,
		.args = args,
		.env = env,
		.is_idempotent = true,
		.timeout_ms = LOOK_MS,
		.out_max = ANSWER_MAX,
	};
	struct cm_shell_end end = CM_SHELL_END_INIT;
	int r = cm_shell_run(&shell, &away->call, &end, err);

	if (r == CM_OK && cm_shell_says(&end, "gone"))
		r = cm_error_set(err, CM_E_BUSY, 0, "'%s' is not there", directory);
	else if (r == CM_OK && end.exit_code != 0)
		r = cm_shell_failed(&end, CM_E_BUSY, err, "git");
	if (r == CM_OK)
		r = read_counts(&end.out, ret, err);
	cm_shell_end_clear(&end);
	return r;
}

static void put_count(struct cm_buf *out, uint64_t n, const char *one, const char *many)
{
	if (n > 0)
		cm_buf_printf(out, "%s%llu %s", out->len > 0 ? ", " : "", (unsigned long long)n,
			      n == 1 ? one : many);
}

static int refuse(const char *id, const struct counts *has, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf what = { 0 };

	cm_buf_init(&what, 256);
	put_count(&what, has->files, "changed or untracked file", "changed or untracked files");
	put_count(&what, has->stashes, "stash", "stashes");
	put_count(&what, has->commits, "commit", "commits");
	if (what.len == 0)
		return CM_OK;
	(void)cm_error_set(err, CM_E_BUSY, 0, "session '%s' has work that is nowhere else: %s", id,
			   what.data ? what.data : "");
	cm_error_hint(err, "'casemate cp %.100s:... .' fetches it, push it, or --force removes it",
		      id);
	return CM_E_BUSY;
}

static int unknown(const char *id, const struct cm_error *why, struct cm_error *err)
{
	(void)cm_error_set(err, CM_E_BUSY, 0,
			   "cannot tell whether session '%s' has work that is nowhere else: %s", id,
			   why->msg);
	cm_error_hint(err, "--force removes it whatever it has");
	return CM_E_BUSY;
}

/* It cost nothing before. */
static void put_back(const struct cm_away *away)
{
	struct cm_call call = cm_away_cleanup_call();
	struct cm_error why = CM_ERROR_INIT;

	if (away->session->was_running || cm_session_stop(away->session, &call, &why) == CM_OK)
		return;
	cm_cli_print_error(away->cli, &why);
	cm_cli_note(away->cli, "session '%s' was left running", away->session->id);
}

int cm_away_check_unsaved(struct cm_away *away, struct cm_error *err)
{
	CM_AUTO_FREE char *directory = cm_away_recall_directory(away);
	const char *id = away->session->id;
	struct cm_error why = CM_ERROR_INIT;
	struct counts has = { 0 };
	int r = directory ? cm_session_start(away->session, &away->call, &why) : CM_OK;

	/* its sandbox is gone, and all that was in it */
	if (!directory || r == CM_E_NOT_FOUND)
		return CM_OK;
	if (r == CM_OK) {
		r = look(away, directory, &has, &why);
		r = r == CM_OK ? refuse(id, &has, err) : r;
		if (r != CM_OK)
			put_back(away);
	}
	if (why.code == CM_E_CANCELLED) {
		*err = why;
		return CM_E_CANCELLED;
	}
	return why.code != 0 ? unknown(id, &why, err) : r;
}
