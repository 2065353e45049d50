/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions that files are read from and written to. */
#include "runtime/cli/file_session.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/fd.h"
#include "runtime/cli/relay.h"
#include "runtime/cli/request.h"
#include "runtime/cli/run.h"
#include "runtime/cli/run_internal.h"

/* Of the relayed signals those that end this are taken; the others do what they always do. */
static void keep_end_signals(void)
{
	sigset_t mask;

	(void)sigemptyset(&mask);
	(void)sigaddset(&mask, SIGINT);
	(void)sigaddset(&mask, SIGTERM);
	(void)sigaddset(&mask, SIGHUP);
	(void)sigaddset(&mask, SIGQUIT);
	/* an error of the write */
	(void)sigaddset(&mask, SIGPIPE);
	(void)sigprocmask(SIG_SETMASK, &mask, NULL);
	(void)signal(SIGXFSZ, SIG_IGN);
}

/* What is of the session outlives the run that reached it. */
static int take(struct cm_file_session *s, struct run *run, struct cm_error *err)
{
	s->jail = run->local.jail;
	cm_jail_init(&run->local.jail);
	s->generation = run->local.session.record.generation;
	s->id = cm_strdup(run->local.session.record.id);
	s->cwd = cm_strdup(cm_local_cwd(&run->local));
	s->cancel_fd = run->end_fd;
	run->end_fd = 0;
	keep_end_signals();
	return s->id && s->cwd ? CM_OK : cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
}

static int reach(struct cm_file_session *s, struct cm_cli *cli, const struct cm_spec *spec)
{
	struct run *run = cm_run_begin(RUN_EXEC, spec, cli);
	struct cm_error err = CM_ERROR_INIT;
	int r = cm_run_reach(run, &err);

	if (r == CM_OK)
		r = take(s, run, &err);
	return cm_run_finish(run, r, &err);
}

int cm_file_session_open(struct cm_file_session *s, struct cm_cli *cli, const char *root,
			 const char *id, bool is_as_user)
{
	const char *line[] = { "--session", id, root ? "--root" : NULL, root };
	struct cm_error err = CM_ERROR_INIT;
	bool is_quiet = cli->is_quiet;
	struct cm_spec spec;
	int status;

	memset(s, 0, sizeof(*s));
	s->cli = cli;
	s->cancel_fd = -1;
	s->is_as_user = is_as_user;
	cm_jail_init(&s->jail);
	if (cm_request_read(cli, root ? 4 : 2, (char *const *)(uintptr_t)line, &spec, NULL, &err) <
	    0)
		return cm_cli_fail(cli, &err);
	cli->is_quiet = cli->is_quiet || is_quiet;
	status = reach(s, cli, &spec);
	cm_spec_clear(&spec);
	return status;
}

void cm_file_session_close(struct cm_file_session *s)
{
	(void)cm_jail_close(&s->jail);
	cm_fd_close(&s->cancel_fd);
	free(s->id);
	free(s->cwd);
	s->id = s->cwd = NULL;
}

static void told(void *data, const struct cm_error *why)
{
	struct cm_file_session *s = data;

	s->has_failed = true;
	cm_cli_print_error(s->cli, why);
}

int cm_file_session_failed_here(void *data, enum cm_file_step step, int error, const char *path)
{
	struct cm_error why = CM_ERROR_INIT;

	(void)cm_files_error(&why, step, error, path, 0, NULL);
	told(data, &why);
	return 0;
}

int cm_file_session_begin(struct cm_file_session *s, const struct cm_files_request *request,
			  struct cm_files **ret, struct cm_error *err)
{
	const struct cm_files_where where = {
		.jail = &s->jail,
		.session = s->id,
		.cwd = s->cwd,
		.generation = s->generation,
		.is_as_user = s->is_as_user,
		.cancel_fd = s->cancel_fd,
		.failed = told,
		.data = s,
	};

	return cm_files_open(&where, request, ret, err);
}

int cm_file_session_end(struct cm_file_session *s, struct cm_files *f, int r,
			const struct cm_error *err)
{
	int status = r < 0 ? s->cli->failure_exit : s->has_failed ? CM_EXIT_FILE : 0;
	bool is_refusal = f && f->is_refusal;
	int sig;

	/* before anything is said it is over inside */
	cm_files_close(f);
	if (r >= 0)
		return status;
	sig = r == CM_E_CANCELLED ? cm_relay_take_end(s->cancel_fd) : 0;
	if (sig != 0)
		s->signal_status = 128 + sig;
	if (s->signal_status != 0)
		return s->signal_status;
	/* nobody reads what this prints: as of any program */
	if (err->code == CM_E_SYS && err->sys_errno == EPIPE)
		return 128 + SIGPIPE;
	cm_cli_print_error(s->cli, err);
	return is_refusal ? CM_EXIT_FILE : status;
}
