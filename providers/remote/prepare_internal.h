/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared between prepare.c (the order of things, network), prepare_record.c (what this host remembers),
 * prepare_check.c (refusals),
 * prepare_env.c (git's environment), prepare_git.c (checkout), prepare_error.c (what git's failures
 * mean), prepare_setup.c and prepare_teardown.c.
 */
#ifndef CM_PROVIDERS_REMOTE_PREPARE_INTERNAL_H
#define CM_PROVIDERS_REMOTE_PREPARE_INTERNAL_H

#include "providers/remote/prepare.h"
#include "providers/remote/record.h"
#include "providers/remote/shell.h"
#include "runtime/base/giturl.h"

/* of one command of git's or of setup: who hangs for so long hangs for ever */
#define CM_PREPARE_TIMEOUT_MS (15ULL * 60 * 1000)
#define CM_PREPARE_DIRECTORY ".mastra-sandbox"

/* What is in the checkout's place. */
enum cm_prep_place {
	CM_PREP_NOTHING = 1,
	CM_PREP_EMPTY,
	CM_PREP_REPOSITORY,
	CM_PREP_OTHER,
};

struct cm_prep {
	struct cm_session *session;
	const struct cm_prepare *prepare;
	const struct cm_spec *spec;
	const struct cm_config *config;
	const struct cm_call *call;
	/* without them all is looked for in the sandbox */
	bool has_records;
	struct cm_records records;
	struct cm_record record;
	/* it had what was of another sandbox */
	bool has_forgotten;
	/* what the session has right now, and what it is to have in the end */
	enum cm_network network;
	enum cm_network own_network;

	/* of spec->repo */
	bool has_url;
	struct cm_giturl url;
	char *name;

	/* looked for in the sandbox; texts owned, some NULL until then */
	bool is_known;
	bool has_git;
	enum cm_prep_place place;
	char *workdir;
	char *origin;
	char *branch;
	char *marker;
	char *failed_marker;
	/* absolute; NULL without a repository */
	char *checkout;
	/* it was not there before */
	bool is_cloned;
};

struct cm_prep cm_prep_make(struct cm_session *s, const struct cm_prepare *prepare,
			    const struct cm_call *call);
void cm_prep_clear(struct cm_prep *p);
/* What this host remembers; that there is nothing is no failure. */
int cm_prep_open_record(struct cm_prep *p, struct cm_error *err);
/* What of it is ours, over what the file has by now. */
void cm_prep_save_record(const struct cm_prep *p);
/* CM_E_EXISTS: the command line asks for another checkout than the record has. */
int cm_prep_check_record(const struct cm_prep *p, struct cm_error *err);
/* The checkout was made before, and is as it is asked for. */
bool cm_prep_is_recorded(const struct cm_prep *p);
int cm_prep_remember_checkout(struct cm_prep *p, struct cm_error *err);
/* The checkout that the record has. */
int cm_prep_take_recorded(struct cm_prep *p, struct cm_error *err);
/* spec->teardown into the record, where it has some. */
int cm_prep_keep_teardown(struct cm_prep *p, struct cm_error *err);
/* Asks the sandbox, once. */
int cm_prep_look(struct cm_prep *p, struct cm_error *err);
/* The checkout as it was asked for: made, or found. */
int cm_prep_checkout(struct cm_prep *p, struct cm_error *err);
/* What is to be run of spec->setup, and was not yet. */
int cm_prep_setup(struct cm_prep *p, struct cm_error *err);
/* "sha256:..." or, without commands, ""; the caller frees. NULL: memory. */
char *cm_prep_setup_digest(const struct cm_strv *commands);
/* One command in a directory, as setup runs it. env: NULL, or NULL-terminated. */
int cm_prep_run_command(struct cm_prep *p, const char *dir, const char *command, char *const *env,
			struct cm_shell_end *end, struct cm_error *err);

/* CM_E_UNSUPPORTED where the provider cannot. */
int cm_prep_network(struct cm_prep *p, enum cm_network network, struct cm_error *err);
bool cm_prep_can_switch(const struct cm_provider *p);
/* Both streams, for cm_shell's take. */
int cm_prep_output(void *data, const void *bytes, size_t len);

/* git's environment, with the credential where there is one. cm_prep_env_clear wipes it. */
int cm_prep_env(const struct cm_prep *p, struct cm_strv *ret, struct cm_error *err);
void cm_prep_env_clear(struct cm_strv *env);
/* Both addresses mean one repository: server and path, less a ".git" or a slash at the end. */
bool cm_prep_same_repository(const struct cm_giturl *url, const char *other);

int cm_prep_check_repository(const struct cm_prep *p, struct cm_error *err);
int cm_prep_check_secrets(const struct cm_prep *p, struct cm_error *err);

/* What a script of git's failed by. */
int cm_prep_git_error(const struct cm_prep *p, const struct cm_shell_end *end,
		      struct cm_error *err);
/* It may go well the next time. */
bool cm_prep_is_transient(const struct cm_shell_end *end);

#endif
