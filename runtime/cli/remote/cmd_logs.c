/* SPDX-License-Identifier: Apache-2.0 */
/* casemate logs: what a command of a session that is elsewhere printed. */
#include <string.h>
#include <unistd.h>

#include "runtime/base/num.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/remote/absent.h"
#include "runtime/cli/remote/away.h"
#include "runtime/cli/remote/exec_follow.h"
#include "runtime/cli/remote/exec_shown.h"

struct asked {
	const char *root;
	const char *stream;
	const char *offset;
	const char *tail;
	const char *bytes;
	bool is_follow;
};

struct logs {
	/* of stdout and stderr: where they begin, and whether they are shown */
	bool is_shown[2];
	uint64_t offsets[2];
	uint64_t bytes;
	uint64_t n_lines;
	struct cm_away_output outputs[2];
};

static int no_stream(const char *stream, struct cm_error *err)
{
	(void)cm_error_set(err, CM_E_INVALID, 0, "--stream must be stdout or stderr, not '%.100s'",
			   stream);
	cm_error_hint(err, "without it both are shown, each where the command wrote it");
	return CM_E_INVALID;
}

/* One stream that is named, or that has a place to begin at, is the result; else both are shown. */
static int choose_streams(struct logs *logs, const struct asked *asked, struct cm_error *err)
{
	bool is_err = asked->stream && strcmp(asked->stream, "stderr") == 0;
	bool is_one = asked->stream || asked->offset || asked->bytes;

	if (asked->stream && !is_err && strcmp(asked->stream, "stdout") != 0)
		return no_stream(asked->stream, err);
	logs->is_shown[0] = !is_err;
	logs->is_shown[1] = is_err || !is_one;
	return CM_OK;
}

static int read_asked(struct logs *logs, const struct asked *asked, struct cm_error *err)
{
	int r = cm_away_absent_root(asked->root, err);

	if (r == CM_OK)
		r = choose_streams(logs, asked, err);
	if (r == CM_OK && asked->offset)
		r = cm_parse_u64(asked->offset, "--offset", 0, INT64_MAX,
				 &logs->offsets[logs->is_shown[0] ? 0 : 1], err);
	logs->bytes = UINT64_MAX;
	if (r == CM_OK && asked->bytes)
		r = cm_parse_size(asked->bytes, "--bytes", 1, INT64_MAX, &logs->bytes, err);
	if (r == CM_OK && asked->tail)
		r = cm_parse_u64(asked->tail, "--tail", 0, CM_AWAY_TAIL_MAX, &logs->n_lines, err);
	if (r == CM_OK && asked->tail && asked->offset) {
		r = cm_error_set(err, CM_E_INVALID, 0, "--tail and --offset contradict each other");
		cm_error_hint(err, "give one of them: both say where to begin");
	}
	return r;
}

static bool is_both(const struct logs *logs)
{
	return logs->is_shown[0] && logs->is_shown[1];
}

static int show(struct logs *logs, struct cm_away *away, const char *name, bool follows,
		struct cm_error *err)
{
	struct cm_away_follow f = { .away = away, .deadline_ms = INT64_MAX };
	int r = cm_exec_attach(away->session, name, logs->offsets, follows, &away->call, &f.exec,
			       err);

	if (r < 0)
		return r;
	for (int i = 0; i < 2; i++) {
		struct cm_away_output *output = &logs->outputs[i];

		cm_away_output_init(output, i == 1 && is_both(logs) ? STDERR_FILENO : STDOUT_FILENO,
				    away->call.cancel_fd);
		output->left = logs->bytes;
		if (logs->offsets[i] > 0)
			cm_shown_text_gap(&output->text);
		f.outputs[i] = logs->is_shown[i] ? output : NULL;
	}
	r = cm_away_follow(&f, err);
	for (int i = 0; i < 2; i++)
		cm_away_output_close(&logs->outputs[i]);
	cm_exec_release(f.exec);
	if (r == CM_OK && follows && f.has_ended && f.end.kind == CM_EXEC_LOST)
		cm_cli_note(away->cli, "how the command ended is not known");
	return r;
}

static int logs_of(struct cm_cli *cli, struct logs *logs, char *const *words,
		   const struct asked *asked)
{
	struct cm_away away = { .signal_fd = -1, .cli = cli };
	struct cm_error err = CM_ERROR_INIT;
	int r = cm_away_attach(&away, cli, words[0], &err);

	if (r == CM_OK && asked->tail)
		r = cm_away_tail(&away, words[1], logs->n_lines, logs->offsets, &err);
	if (r == CM_OK)
		r = show(logs, &away, words[1], asked->is_follow, &err);
	r = r < 0 ? cm_away_follow_fail(&away, &err) : 0;
	cm_away_close(&away);
	return r;
}

int cm_cmd_logs(struct cm_cli *cli, int argc, char **argv)
{
	static struct logs logs;
	struct asked asked = { NULL };
	const struct cm_cli_option options[] = {
		{ "root", '\0', CM_OPTION_TEXT, &asked.root },
		{ "follow", 'f', CM_OPTION_SWITCH, &asked.is_follow },
		{ "stream", '\0', CM_OPTION_TEXT, &asked.stream },
		{ "offset", '\0', CM_OPTION_TEXT, &asked.offset },
		{ "tail", 'n', CM_OPTION_TEXT, &asked.tail },
		{ "bytes", '\0', CM_OPTION_TEXT, &asked.bytes },
		{ "quiet", 'q', CM_OPTION_SWITCH, &cli->is_quiet },
		{ "verbose", '\0', CM_OPTION_SWITCH, &cli->is_verbose },
		{ NULL, '\0', CM_OPTION_SWITCH, NULL },
	};
	struct cm_error err = CM_ERROR_INIT;
	int n = 0;

	if (cm_cli_options(argc - 1, argv + 1, options, &n, &err) < 0 ||
	    cm_away_exec_check_words("logs", n, &err) < 0 || read_asked(&logs, &asked, &err) < 0)
		return cm_cli_fail(cli, &err);
	return logs_of(cli, &logs, argv + 1, &asked);
}
