/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one reader of environment variables and configuration files.
 *
 * Later wins: built in; /etc/casemate/config.json; the user's file; the profile, from both;
 * --policy FILE; the environment; flags. Then the ceilings: "ceiling" of the /etc file here, and
 * the repository's .casemate.json when the caller knows which tree the work is on: before a temporary
 * session is made, and at each start of one that lasts or has a checkout.
 */
#ifndef CM_RUNTIME_SPEC_CONFIG_H
#define CM_RUNTIME_SPEC_CONFIG_H

#include <stdbool.h>

#include "runtime/base/buf.h"
#include "runtime/spec/merge.h"
#include "runtime/spec/spec_json.h"

#define CM_CONFIG_SYSTEM_FILE "/etc/casemate/config.json"
#define CM_CONFIG_REPOSITORY_FILE ".casemate.json"

/* When git's credential helpers are asked; --git-credential says otherwise. */
enum cm_git_helper {
	/* when the server wants a credential, and nothing else gives one */
	CM_GIT_HELPER_LAST = 0,
	CM_GIT_HELPER_FIRST,
	/* nor is anything else told */
	CM_GIT_HELPER_NEVER,
};

struct cm_config {
	/*
	 * the caller's environment, without what must never reach a jail: CASEMATE_GIT_TOKEN,
	 * CASEMATE_SSH_PASSPHRASE and the variables of --git-credential and --setup-secret
	 */
	struct cm_strv env;
	/* CASEMATE_GIT_TOKEN, trimmed; NULL when not set */
	char *git_token;
	/* what --git-credential names; both NULL without it, the user also where it has none */
	char *git_user;
	char *git_secret;
	enum cm_git_helper git_helper;
	/* --ssh-key, absolute; CASEMATE_SSH_PASSPHRASE; each NULL when it is not there */
	char *ssh_key;
	char *ssh_passphrase;
	/* --ssh-agent */
	bool wants_ssh_agent;
	/* "NAME=value" of --setup-secret, where the caller has it */
	struct cm_strv setup_secrets;
	/* absolute; home NULL when HOME is not set or not absolute */
	char *cwd;
	char *home;
	/* the user's file, whether it exists or not; NULL when there is no home */
	char *user_file;
	/* CASEMATE_CONFIG named it, so it must exist */
	bool is_user_file_named;
	const char *system_file;
	/* CASEMATE_PROFILE, trimmed; NULL when not set */
	char *profile;
	/* set by 'casemate checkout': as is_of_session in merge.h */
	bool is_of_session;
	/* NO_COLOR is set and not empty */
	bool has_no_colour;
	/* settings that variables make: CASEMATE_ROOT, MASTRACODE_LOCAL_SANDBOX_ROOT */
	struct cm_layer environment;
	struct cm_file system;
	struct cm_file user;
	bool are_files_loaded;
};

/*
 * Reads the environment and the current directory; no file. CASEMATE_GIT_TOKEN and
 * CASEMATE_SSH_PASSPHRASE are taken out of the process's own environment, and so are the variables of
 * --git-credential and --setup-secret later.
 */
int cm_config_init(struct cm_config *ret, struct cm_error *err);
void cm_config_clear(struct cm_config *config);
/*
 * The whole: files, profile, policy, environment, flags, contradictions, the /etc ceiling. m->spec
 * was initialised by cm_spec_init; m->caller may be NULL and is set. Files that the flags name
 * (--policy, --env-file) are read.
 */
int cm_config_resolve(struct cm_config *config, const struct cm_layer *flags, struct cm_merge *m,
		      struct cm_error *err);
/*
 * What the server that spec->repo names is to be told, and no other one: --git-credential, else
 * the user name and password of --repo, else CASEMATE_GIT_TOKEN, which is for http and https only.
 * False: there is nothing. Both texts are borrowed, from config and spec, and never NULL when
 * there is; a user name alone has an empty secret, since with some servers that is the token.
 */
bool cm_config_git_credential(const struct cm_config *config, const struct cm_spec *spec,
			      const char **ret_user, const char **ret_secret);
/* May git's credential helpers be asked for that server? Of one by http or https. */
bool cm_config_may_ask_helper(const struct cm_config *config, const struct cm_spec *spec);
/*
 * The session root alone, for commands that make no session: flag (--root, may be NULL), else the
 * environment, the profile, the files. Other keys are not looked at, so nothing that they say can
 * keep a user from listing or removing sessions. *ret is NULL where nothing says; freed by the
 * caller.
 */
int cm_config_root(struct cm_config *config, const char *flag, char **ret, struct cm_error *err);
/*
 * Tighten by dir/.casemate.json, when there is one; dir is the work tree's top. Only a regular
 * file is read, and no symbolic link is followed, since the tree may be another's. name: how errors,
 * notes and origins call it; NULL: by its path.
 */
int cm_config_repository(const char *dir, const char *name, struct cm_merge *m,
			 struct cm_error *err);
/* Whose .casemate.json counts in cwd: where the workspace begins. Caller frees; NULL: memory. */
char *cm_config_project_dir(const char *cwd);
/* Reads and checks one file as `config check` does. */
int cm_config_check(struct cm_config *config, const char *path, struct cm_error *err);

#endif
