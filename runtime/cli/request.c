/* SPDX-License-Identifier: Apache-2.0 */
/* Command line, files and ceilings into a spec. */
#include "runtime/cli/request.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/spec/spec_flags.h"

/*
 * The tree's own file, where the tree is known before anything is made. A session that lasts is made
 * with what is asked for, and each start of it reads the file anew: then it only matters to who wants
 * to see what comes of it.
 */
static int apply_repository(struct cm_cli *cli, struct cm_merge *m, bool is_shown,
			    struct cm_error *err)
{
	const struct cm_spec *spec = m->spec;
	CM_AUTO_FREE char *project = NULL;

	if ((spec->session_id || spec->is_kept) && !is_shown)
		return CM_OK;
	if (spec->workspace_kind == CM_WORKSPACE_DIR)
		return cm_config_repository(spec->workspace, NULL, m, err);
	if (spec->workspace_kind != CM_WORKSPACE_DEFAULT || spec->session_id)
		return CM_OK;
	project = cm_config_project_dir(cli->config.cwd);
	if (!project)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	return cm_config_repository(project, NULL, m, err);
}

static int resolve(struct cm_cli *cli, int argc, char *const *argv, struct cm_merge *m,
		   bool is_shown, struct cm_error *err)
{
	CM_AUTO_LAYER struct cm_layer flags = { 0 };
	int failure_exit;
	int r = cm_flags_parse(argc, argv, &flags, err);

	/* asked first, so that a script learns of any failure by the status that it chose */
	failure_exit = cm_flags_failure_exit(argc, argv);
	if (failure_exit >= 0)
		cli->failure_exit = failure_exit;
	if (r == CM_OK)
		r = cm_config_resolve(&cli->config, &flags, m, err);
	if (r == CM_OK)
		r = apply_repository(cli, m, is_shown, err);
	return r;
}

int cm_request_read(struct cm_cli *cli, int argc, char *const *argv, struct cm_spec *ret,
		    struct cm_origins *ret_origins, struct cm_error *err)
{
	struct cm_spec spec;
	struct cm_merge m = { .spec = &spec, .origins = ret_origins };
	CM_AUTO_ORIGINS struct cm_origins own = { 0 };
	int r;

	/* contradictions and notes name where a value came from, so origins are always kept */
	if (!m.origins)
		m.origins = &own;
	cm_spec_init(&spec);
	r = resolve(cli, argc, argv, &m, ret_origins != NULL, err);
	if (r == CM_OK) {
		cli->is_quiet = spec.is_quiet;
		cli->is_verbose = spec.is_verbose;
		if (spec.failure_exit >= 0)
			cli->failure_exit = spec.failure_exit;
		for (size_t i = 0; i < m.notes.n; i++)
			cm_cli_note(cli, "%s", m.notes.v[i]);
		*ret = spec;
	} else {
		cm_spec_clear(&spec);
	}
	cm_merge_clear(&m);
	return r;
}

void cm_request_outputs(const struct cm_cli *cli, int argc, char *const *argv, struct cm_spec *ret)
{
	const struct cm_caller caller = {
		.cwd = cli->config.cwd,
		.home = cli->config.home,
		.env = &cli->config.env,
	};
	CM_AUTO_LAYER struct cm_layer outputs = { 0 };

	cm_spec_init(ret);
	cm_flags_outputs(argc, argv, &outputs);
	for (size_t i = 0; i < outputs.n; i++)
		(void)cm_spec_apply(ret, NULL, &outputs.settings[i], caller.cwd, &caller, 0, NULL);
}

/* As cm_request_read wants it, with --session ID first. *ret's words are argv's; the caller frees it. */
static int session_line(int argc, char *const *argv, char ***ret, int *ret_n, struct cm_error *err)
{
	CM_AUTO_LAYER struct cm_layer flags = { 0 };
	char **line;
	int n = 0;
	int id;
	int r = cm_flags_parse(argc, argv, &flags, err);

	if (r < 0)
		return r;
	if (flags.argv.n == 0) {
		(void)cm_error_set(err, CM_E_INVALID, 0, "no session given");
		cm_error_hint(err, "name one: 'casemate ls' lists them");
		return CM_E_INVALID;
	}
	id = argc - (int)flags.argv.n;
	line = cm_calloc((size_t)argc + 2, sizeof(*line));
	if (!line) {
		(void)cm_error_set(err, CM_E_NOMEM, 0, "no memory for the command line");
		return CM_E_NOMEM;
	}
	line[n++] = (char *)(uintptr_t) "--session";
	line[n++] = argv[id];
	for (int i = 0; i < argc; i++) {
		/* before the session "--" would end what may follow it */
		if (i != id && (i > id || strcmp(argv[i], "--") != 0))
			line[n++] = argv[i];
	}
	*ret = line;
	*ret_n = n;
	return CM_OK;
}

int cm_request_read_session(struct cm_cli *cli, int argc, char *const *argv, struct cm_spec *ret,
			    const char **ret_id, struct cm_error *err)
{
	char **line = NULL;
	int n = 0;
	int r = session_line(argc, argv, &line, &n, err);

	if (r == CM_OK)
		r = cm_request_read(cli, n, line, ret, NULL, err);
	/* of the line: in argv a "--" before the session would end what is looked at */
	if (r == CM_OK) {
		cm_cli_hide_passwords(n, line);
		*ret_id = line[1];
	}
	free(line);
	return r;
}

int cm_request_check_session(const struct cm_spec *spec, const char *id, struct cm_error *err)
{
	if (spec->session_id && strcmp(spec->session_id, id) == 0)
		return CM_OK;
	(void)cm_error_set(err, CM_E_INVALID, 0, "two sessions are named");
	cm_error_hint(err, "leave --session out: '%.100s' is the session", id);
	return CM_E_INVALID;
}

static bool is_taken(const enum cm_key *keys, enum cm_key key)
{
	while (*keys != CM_KEY_COUNT && *keys != key)
		keys++;
	return *keys == key;
}

int cm_request_check_keys(const struct cm_spec *spec, const enum cm_key *keys, struct cm_error *err)
{
	for (unsigned int key = 0; key < CM_KEY_COUNT; key++) {
		const struct cm_key_info *info = cm_key_info((enum cm_key)key);

		/* what the line was given */
		if (key == CM_KEY_SESSION)
			continue;
		if ((spec->asked & UINT64_C(1) << key) == 0 || is_taken(keys, (enum cm_key)key))
			continue;
		(void)cm_error_set(err, CM_E_INVALID, 0,
				   "--%s is the session's, and not a command's", info->name);
		cm_error_hint(err,
			      "a session gets it when it is made: casemate start ID --%s ...; "
			      "'casemate inspect ID' shows what it has",
			      info->name);
		return CM_E_INVALID;
	}
	return CM_OK;
}

void cm_cli_hide_passwords(int argc, char **argv)
{
	for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
		char *authority = strstr(argv[i], "://");
		char *end = authority ? authority + 3 + strcspn(authority + 3, "/?#") : NULL;
		char *at = authority ? memrchr(authority, '@', (size_t)(end - authority)) : NULL;
		char *colon = at ? memchr(authority + 3, ':', (size_t)(at - authority - 3)) : NULL;

		if (colon)
			memset(colon + 1, '*', (size_t)(at - colon - 1));
	}
}
