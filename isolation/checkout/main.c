/* SPDX-License-Identifier: Apache-2.0 */
/*
 * casemate-checkout: makes a repository's checkout for a session, in a jail of its own.
 *
 * It is the only executable that links libgit2, so that the parser of other people's packs and
 * trees shares an address space with nothing that has power or secrets. Only a fetch uses the
 * network, and only a fetch is given a credential; it sees no session.
 */
#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>

#include "isolation/checkout/guard.h"
#include "isolation/checkout/host_git.h"
#include "isolation/checkout/host_git_ssh.h"
#include "isolation/checkout/library.h"
#include "isolation/checkout/options.h"
#include "isolation/checkout/process.h"
#include "isolation/checkout/pulse.h"
#include "isolation/checkout/source.h"
#include "isolation/checkout/status.h"
#include "isolation/checkout/update.h"
#include "runtime/base/fd.h"

enum exit_status {
	EXIT_OK = 0,
	/* the user can do something about it */
	EXIT_USER = 1,
	EXIT_INTERNAL = 2,
};

static int run_fetch(struct cm_options *cmd, struct cm_report *rep, struct cm_error *err)
{
	struct cm_credential credential = CM_CREDENTIAL_INIT;
	int r = CM_OK;

	if (cmd->credential_fd >= 0)
		r = cm_credential_read(cmd->credential_fd, &credential, err);
	cmd->fetch.ref = cmd->checkout.ref;
	cmd->fetch.pr = cmd->checkout.pr;
	cmd->fetch.credential = &credential;
	/* libgit2 looks for .ssh/known_hosts there, and for nothing else */
	if (r == CM_OK && cmd->fetch.ssh.home && setenv("HOME", cmd->fetch.ssh.home, 1) < 0)
		r = cm_error_set(err, CM_E_NOMEM, errno, "cannot set the environment");
	if (r == CM_OK && cmd->fetch.ssh.agent &&
	    setenv("SSH_AUTH_SOCK", cmd->fetch.ssh.agent, 1) < 0)
		r = cm_error_set(err, CM_E_NOMEM, errno, "cannot set the environment");
	if (r == CM_OK)
		r = cm_fetch(&cmd->fetch, rep, err);
	cm_credential_clear(&credential);
	cmd->fetch.credential = NULL;
	return r;
}

static int run_status(const struct cm_options *cmd, struct cm_error *err)
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

static int run_update(const struct cm_options *cmd, struct cm_report *rep, struct cm_error *err)
{
	const struct cm_update_options opts = {
		.checkout = cmd->update_path,
		.source = cmd->checkout.source,
		.wanted = { .ref = cmd->checkout.ref,
			    .pr = cmd->checkout.pr,
			    .branch = cmd->checkout.branch,
			    .is_mirror = cmd->checkout.origin != NULL },
		.is_unshallow = cmd->is_unshallow,
		.keeps_branches = cmd->keeps_branches,
		.is_finish = cmd->is_finish,
	};

	return cm_update(&opts, rep, err);
}

static int run_task(struct cm_options *cmd, struct cm_report *rep, struct cm_error *err)
{
	switch (cmd->task) {
	case CM_TASK_FETCH:
		return run_fetch(cmd, rep, err);
	case CM_TASK_UPDATE:
		return run_update(cmd, rep, err);
	case CM_TASK_CHECKOUT:
	case CM_TASK_STATUS:
		break;
	}
	return cm_checkout(&cmd->checkout, rep, err);
}

static const char *written_path(const struct cm_options *cmd)
{
	if (cmd->task == CM_TASK_FETCH)
		return cmd->fetch.mirror;
	return cmd->task == CM_TASK_UPDATE ? cmd->update_path : cmd->checkout.target;
}

/* Whatever libgit2 says then: what was exceeded is why it failed. */
static int run_guarded(struct cm_options *cmd, struct cm_report *rep, struct cm_error *err)
{
	CM_AUTO_FREE char *path = cm_strdup(written_path(cmd));
	int r;

	if (!path)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	/* a checkout is made beside its name */
	r = cm_guard_start(cmd->task == CM_TASK_CHECKOUT ? dirname(path) : path, rep, err);
	if (r < 0)
		return r;
	r = run_task(cmd, rep, err);
	cm_guard_stop();
	if (r == CM_E_NOMEM)
		cm_guard_exceed(CM_GUARD_MEMORY);
	return r < 0 && cm_guard_exceeded() != CM_GUARD_NONE ? cm_guard_error(rep, err) : r;
}

static int run(struct cm_options *cmd, struct cm_report *rep, struct cm_error *err)
{
	int r = cm_library_open(err);

	if (r != CM_OK)
		return r;
	if (cmd->base)
		cmd->checkout.ref = cmd->base;
	cmd->wants.filters_blobs = cmd->filter != NULL;
	cmd->checkout.wants = cmd->fetch.wants = cmd->wants;
	r = cm_pulse_start(cmd->progress_fd, err);
	if (r != CM_OK) {
		cm_library_close();
		return r;
	}
	r = cmd->task == CM_TASK_STATUS ? run_status(cmd, err) : run_guarded(cmd, rep, err);
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

static int prepare(struct cm_options *cmd, struct cm_report *rep, int argc, char **argv,
		   struct cm_error *err)
{
	int parsed = cm_options_parse(argc, argv, cmd, err);
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
	struct cm_options cmd = CM_OPTIONS_INIT;
	struct cm_report rep = CM_REPORT_INIT;
	struct cm_error err = CM_ERROR_INIT;
	struct cm_error report_err = CM_ERROR_INIT;
	int r;

	if (argc > 1 && strcmp(argv[1], "--answer-git") == 0)
		return cm_host_git_answer(argc, argv);
	if (argc > 1 && strcmp(argv[1], "--connect-git") == 0)
		return cm_host_git_connect(argc, argv);
	r = prepare(&cmd, &rep, argc, argv, &err);

	if (r == CM_OK && cmd.wants_help)
		return cm_options_print_help() == 0 ? EXIT_OK : EXIT_INTERNAL;
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
