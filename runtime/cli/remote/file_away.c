/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cli/remote/file_away.h"

#include <string.h>

#include "providers/registry.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/cli/remote/absent.h"
#include "runtime/cli/remote/recall.h"

/* so long a session may take to show that it is there */
#define ANSWER_MS 5000

/* Before a session is started, which may cost something, for what its provider has not. */
static int check_verb(enum cm_file_verb verb, struct cm_error *err)
{
	const struct cm_provider_ops *ops = cm_provider_find(cm_away_provider_name());

	return cm_away_absent_option(
		verb == CM_FILE_VERB_URL && ops && (ops->caps & CM_CAP_FILE_URL) == 0, "file url",
		"'casemate file read' and 'casemate file write' pass on what is in one", err);
}

int cm_file_access_line(struct cm_cli *cli, int argc, char **argv, struct cm_file_line *ret,
			struct cm_error *err)
{
	const struct cm_cli_option more[] = {
		{ "verbose", '\0', CM_OPTION_SWITCH, &cli->is_verbose },
		{ .name = NULL },
	};
	int r = cm_file_line_read(cli, argc, argv, more, ret, err);

	if (r == CM_OK)
		r = check_verb(ret->verb, err);
	if (r == CM_OK)
		r = cm_away_absent_root(ret->root, err);
	return r < 0 ? r : cm_away_absent_user(ret->user, err);
}

static int ignore(void *data, const struct cm_path_info *info)
{
	(void)data;
	(void)info;
	return CM_OK;
}

/* A service's agent has no code for some of what it cannot do: it says so as it says that it broke. */
static bool answers(const struct cm_file_access *f)
{
	struct cm_call call = f->call;

	call.deadline_ms = cm_clock_mono_ms() + ANSWER_MS;
	return cm_session_stat(f->session, "/", 0, ignore, NULL, &call, NULL) == CM_OK;
}

/*
 * The session is there, and this could not be done in it: for a reason that has a name, or for another
 * one that a program in it told, which is no errno of this side.
 */
static bool is_refusal(const struct cm_file_access *f, int code, const struct cm_error *err)
{
	return (code == CM_E_SYS && err->sys_errno == 0) || code == CM_E_NOT_FOUND ||
	       code == CM_E_DENIED || code == CM_E_EXISTS || code == CM_E_INVALID ||
	       code == CM_E_LIMIT || code == CM_E_BUSY || (code == CM_E_REMOTE && answers(f));
}

int cm_away_files_open(struct cm_away_files *f, struct cm_cli *cli, const char *id,
		       struct cm_error *err)
{
	int r;

	memset(&f->away, 0, sizeof(f->away));
	f->away.signal_fd = -1;
	f->directory = NULL;
	cm_file_access_init(&f->base, cli);
	r = cm_away_attach_running(&f->away, cli, id, err);
	if (r == CM_OK)
		f->directory = cm_away_recall_directory(&f->away);
	f->base.session = f->away.session;
	f->base.call = f->away.call;
	f->base.directory = f->directory;
	/* of a request by HTTP it is said before */
	f->base.wants_length = true;
	f->base.is_refusal = is_refusal;
	return r;
}

int cm_file_access_open(struct cm_cli *cli, const struct cm_file_target *target,
			struct cm_file_access **ret)
{
	static struct cm_away_files files;
	struct cm_error err = CM_ERROR_INIT;
	int r = cm_away_files_open(&files, cli, target->session, &err);
	int status;

	if (r == CM_OK) {
		*ret = &files.base;
		return 0;
	}
	status = cm_file_access_end(&files.base, r, &err);
	cm_file_access_close(&files.base);
	return status;
}

void cm_file_access_close(struct cm_file_access *f)
{
	struct cm_away_files *files = (struct cm_away_files *)f;

	cm_file_access_clear(f);
	cm_ptr_free(&files->directory);
	cm_away_close(&files->away);
}
