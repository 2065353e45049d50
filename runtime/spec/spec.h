/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spec: what was asked for; parsed, validated, plain data. No system calls.
 *
 * One table (keys.def) owns the keys: flag, JSON key, kind, bounds, default, help text. A spec
 * owns its strings; zero-initialise through cm_spec_init and free with cm_spec_clear.
 */
#ifndef CM_RUNTIME_SPEC_SPEC_H
#define CM_RUNTIME_SPEC_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "casemate/error.h"
#include "runtime/base/buf.h"

/* unlimited, where a limit's text was "unlimited" */
#define CM_UNLIMITED UINT64_MAX

struct cm_limit {
	uint64_t value;
	/* named by the caller or a file, else the built-in default holds */
	bool is_set;
	/* written "4G?": enforced where possible, else shown as not enforced */
	bool is_optional;
	/* with is_optional: by a repository's own file; that it is not enforced is said */
	bool is_advised;
};

enum cm_network {
	CM_NETWORK_NONE = 1,
	CM_NETWORK_HOST,
	/* public addresses alone; providers of remote sessions have it */
	CM_NETWORK_INTERNET,
};

/* What of a repository's objects is fetched; 0: nothing is said, and all are. */
enum cm_filter {
	CM_FILTER_NONE = 1,
	/* no content of files */
	CM_FILTER_BLOB_NONE,
};

enum cm_workspace_kind {
	/* git top level above the current directory; for a named session its own directory */
	CM_WORKSPACE_DEFAULT = 0,
	CM_WORKSPACE_DIR,
	CM_WORKSPACE_NONE,
	CM_WORKSPACE_REPO,
};

enum cm_user {
	CM_USER_USER = 1,
	CM_USER_ROOT,
};

enum cm_level {
	CM_LEVEL_NONE = 0,
	CM_LEVEL_NO_CGROUP = 1,
	CM_LEVEL_FULL = 2,
};

enum cm_tri {
	CM_AUTO = 0,
	CM_YES,
	CM_NO,
};

enum cm_git_access {
	CM_GIT_PINNED = 1,
	CM_GIT_RW,
};

struct cm_volume {
	/* absolute after the caller's directory was applied; dst defaults to src */
	char *src;
	char *dst;
	bool is_read_only;
	/* by the command line, as in struct cm_spec */
	bool is_asked;
};

struct cm_limits {
	/* bytes */
	struct cm_limit memory;
	struct cm_limit swap;
	/* thousandths of a processor */
	struct cm_limit cpus;
	struct cm_limit pids;
	struct cm_limit open_files;
	/* bytes of stdout and stderr together; of a detached command what is kept of each */
	struct cm_limit output;
	/* wall time of the command; value in milliseconds */
	struct cm_limit timeout;
	/* of a named session, in milliseconds: how long it runs without a command or a caller, and how
	 * long from its start on in any case */
	struct cm_limit idle;
	struct cm_limit lifetime;
	/* of all of the user's that run at once, this one included; each start's own */
	struct cm_limit sessions;
	/* "0-1,3"; NULL: not limited */
	char *cpuset;
	bool is_cpuset_optional;
	bool is_cpuset_advised;
};

struct cm_spec {
	/* a bit for each enum cm_key that the command line (or what it names) has, and not the
	 * configuration alone: what an existing session is not to contradict */
	uint64_t asked;

	/* session: NULL for a temporary one */
	char *session_id;
	/* session root, absolute; NULL: from the environment or the default */
	char *root;

	enum cm_workspace_kind workspace_kind;
	/* CM_WORKSPACE_DIR: as the caller wrote it, made absolute */
	char *workspace;
	bool is_workspace_read_only;
	/* --read-only: holds for the workspace, of whatever kind, and each volume; applied to them */
	bool is_read_only;
	/* CM_WORKSPACE_REPO: a URL without its password, or a path made absolute */
	char *repo;
	/*
	 * What the URL had of a user name and a password; each may be NULL. No key has them for its
	 * field, so that nothing that shows or stores a spec finds them. cm_config_git_credential
	 * says what counts.
	 */
	char *repo_user;
	char *repo_secret;
	char *ref;
	/* with a repository: a pull request's number, in place of ref; 0: none */
	int pr;
	/* a branch to make and to work on, and where it begins; NULL: at what else is checked out */
	char *branch;
	char *base;
	/* commits of history; 0: all of it */
	int depth;
	bool has_lfs;
	/* directories that are checked out, below the repository's top; none: all of them */
	struct cm_strv sparse;
	enum cm_filter filter;
	struct cm_strv setup;
	/* 0: the session's */
	enum cm_network setup_network;
	/* "NAME=value" */
	struct cm_strv setup_env;
	/* names of variables; their values are in struct cm_config alone */
	struct cm_strv setup_secrets;
	/* run them although they ran already */
	bool is_setup_again;
	struct cm_strv teardown;

	/* as retention.h has it; NULL: sessions stay */
	char *retention;
	/* "KEY=value", a key once; and those of them that the command line has, as in asked */
	struct cm_strv labels;
	struct cm_strv labels_asked;

	/* "NAME=value", in order; later wins. --env-file and -e NAME are already resolved. */
	struct cm_strv env;
	/* patterns of caller variables that pass */
	struct cm_strv pass_env;
	/* in the jail; a relative one is below the workspace */
	char *workdir;
	struct cm_volume *volumes;
	size_t n_volumes;

	struct cm_limits limits;
	enum cm_network network;
	char *rootfs;
	/* what a remote session begins with; NULL: the provider's usual one */
	char *template_name;
	enum cm_user user;
	enum cm_git_access git;
	enum cm_level min_level;

	enum cm_tri tty;
	bool is_interactive;
	/* exec -u user: not root, whatever the session's commands are */
	bool is_as_user;
	/* the command is not waited for */
	bool is_detached;
	bool is_kept;

	/* output of the command line itself */
	bool is_json;
	/* "fd:N" or an absolute path */
	char *result;
	/* replaces 125; -1: not set */
	int failure_exit;
	bool is_quiet;
	bool is_verbose;

	/* the command; -c TEXT becomes { "/bin/sh", "-c", TEXT } */
	struct cm_strv argv;
};

void cm_spec_init(struct cm_spec *spec);
void cm_spec_clear(struct cm_spec *spec);
/* Wipes and frees repo_user and repo_secret. */
void cm_spec_forget_credential(struct cm_spec *spec);
/* Deep. *to holds nothing before; on failure it holds nothing after. CM_OK or CM_E_NOMEM. */
int cm_spec_copy(struct cm_spec *to, const struct cm_spec *from);

/* Where each key's value came from is in struct cm_origins of merge.h. */
const char *cm_level_name(enum cm_level level);
const char *cm_network_name(enum cm_network network);

/* 1 to 128 of [A-Za-z0-9._-], no leading dot or dash. */
int cm_session_id_check(const char *id, struct cm_error *err);

#endif
