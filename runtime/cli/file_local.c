/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of sessions on this host. The session is started as by `casemate exec`, with its checkout and its
 * setup, which the command line relays; then everything about files goes over the provider.
 */
#include <string.h>

#include "providers/local/vtable.h"
#include "runtime/base/fd.h"
#include "runtime/cli/file_access.h"
#include "runtime/cli/file_session.h"

struct local_files {
	/* the first member */
	struct cm_file_access base;
	struct cm_file_session reached;
	struct cm_local_reached session;
	struct cm_provider *provider;
};

/* Nobody listens for others on behalf of a session of this host. */
static int check_verb(enum cm_file_verb verb, struct cm_error *err)
{
	if (verb != CM_FILE_VERB_URL)
		return CM_OK;
	(void)cm_error_set(err, CM_E_UNSUPPORTED, 0,
			   "sessions of this host have no addresses for their files");
	cm_error_hint(err, "'casemate file read' and 'casemate file write' pass on what is in "
			   "one; --provider e2b has addresses");
	return CM_E_UNSUPPORTED;
}

int cm_file_access_line(struct cm_cli *cli, int argc, char **argv, struct cm_file_line *ret,
			struct cm_error *err)
{
	int r = cm_file_line_read(cli, argc, argv, NULL, ret, err);

	if (r == CM_OK)
		r = check_verb(ret->verb, err);
	if (r < 0 || !ret->user || strcmp(ret->user, "user") == 0)
		return r;
	(void)cm_error_set(err, CM_E_INVALID, 0, "--user takes 'user' here, not '%.40s'",
			   ret->user);
	cm_error_hint(err,
		      "without it files are read and written by who the session's commands are");
	return CM_E_INVALID;
}

/* The provider tells what is refused inside; a path that is none is refused before that. */
static bool is_refusal(const struct cm_file_access *f, int code, const struct cm_error *err)
{
	(void)f;
	(void)err;
	return code == CM_E_INVALID;
}

static int attach(struct local_files *l, bool is_as_user, struct cm_error *err)
{
	const struct cm_provider_config config = {
		.config = &l->base.cli->config,
		.failed = cm_file_access_told,
		.data = &l->base,
	};
	int r = cm_provider_open(&cm_local_ops, &config, &l->provider, err);

	if (r == CM_OK)
		r = cm_local_session_of(l->provider, &l->session, &l->base.session, err);
	if (r == CM_OK)
		l->base.session->is_as_user = is_as_user;
	return r;
}

int cm_file_access_open(struct cm_cli *cli, const struct cm_file_target *target,
			struct cm_file_access **ret)
{
	static struct local_files files;
	struct local_files *l = &files;
	struct cm_error err = CM_ERROR_INIT;
	bool is_as_user = target->user != NULL;
	int status;

	l->provider = NULL;
	cm_file_access_init(&l->base, cli);
	status = cm_file_session_open(&l->reached, cli, target->root, target->session, is_as_user);
	if (status == 0) {
		l->base.call.cancel_fd = l->reached.cancel_fd;
		l->base.is_refusal = is_refusal;
		l->session = (struct cm_local_reached){
			.jail = &l->reached.jail,
			.id = l->reached.id,
			.generation = l->reached.generation,
			.cwd = l->reached.cwd,
		};
		if (attach(l, is_as_user, &err) < 0)
			status = cm_cli_fail(cli, &err);
	}
	if (status == 0)
		*ret = &l->base;
	else
		cm_file_access_close(&l->base);
	return status;
}

void cm_file_access_close(struct cm_file_access *f)
{
	struct local_files *l = (struct local_files *)f;

	cm_file_access_clear(f);
	cm_session_release(f->session);
	cm_provider_close(l->provider);
	cm_file_session_close(&l->reached);
}
