/* SPDX-License-Identifier: Apache-2.0 */
/* casemate-checkout as a program in a jail of ours: shown there, run, its report read. */
#ifndef CM_PROVIDERS_LOCAL_CHECKOUT_HELPER_H
#define CM_PROVIDERS_LOCAL_CHECKOUT_HELPER_H

#include "providers/local/inside.h"
#include "providers/local/module_list.h"

struct cm_checkout_result {
	/* of the report: a name of casemate/error.h, and of a fetch why it failed; "": not told */
	char code[24];
	char reason[24];
	/* once it writes files it is not given up any more, whatever the caller wants */
	bool is_kept_up;
	bool is_writing;
	/* an update did not put it on what was asked for */
	bool is_held;
	/* filled with the submodules that it tells, and then the caller's; NULL: none are asked for */
	struct cm_module_list *modules;
	/* what was checked out; "": not told */
	char commit[CM_CHECKOUT_COMMIT_SIZE];
};

void cm_checkout_result_init(struct cm_checkout_result *result);
/* Add the helper to what the jail shows; path (PATH_MAX bytes) has to outlive extra. */
int cm_checkout_helper_mount(struct cm_local_plan *extra, char *path, size_t size,
			     struct cm_error *err);
/*
 * The spec of a checkout's jail: the session directory to write to, nothing else of the user's, and
 * the network is none. The caller clears it, also after a failure.
 */
int cm_checkout_helper_spec(const struct cm_local *l, struct cm_spec *spec, struct cm_error *err);
/*
 * A repository of this host, shown read-only at its own path, as git's files name it; git_dir: what
 * of it is elsewhere, or NULL.
 */
int cm_checkout_helper_show(struct cm_spec *spec, const char *path, const char *git_dir,
			    struct cm_error *err);
/* One more of the options below, at argv[*n]; none where value is NULL. */
void cm_checkout_option(char **argv, size_t *n, const char *option, const char *value);
/* An option's number as text, in buf; NULL for 0, which stands for none. */
#define CM_CHECKOUT_NUMBER_SIZE 12
const char *cm_checkout_number(int value, char *buf);
/*
 * What of the spec libgit2 cannot do, as options; is_local: of a repository on this host nothing has to
 * be fetched. *own_sparse is the caller's to free, after they were used.
 */
int cm_checkout_git_options(const struct cm_spec *spec, bool is_local, char **argv, size_t *n,
			    char **own_sparse, struct cm_error *err);
/*
 * Run it in l->jail with these options (NULL-terminated, at most 40) and in (may be NULL) on its
 * standard input. Notes of its report are passed on. CM_E_TIMEOUT: nothing was heard of it for
 * CM_CHECKOUT_SILENCE_MS. Its report comes from a jail: checked, never trusted.
 */
int cm_checkout_helper_run(struct cm_local *l, char *const *options, const struct cm_buf *in,
			   struct cm_checkout_result *result, struct cm_error *err);
/* The number of files that are not committed in the work tree at path; negative when not known. */
int cm_checkout_helper_status(struct cm_local *l, const char *path, int64_t *ret,
			      struct cm_error *err);

struct cm_checkout_unsaved {
	int64_t uncommitted;
	int64_t untracked;
	int64_t stashes;
	int64_t commits;
};
/*
 * What would be lost with the repository at path. CM_E_CHECKOUT: that cannot be told, and why. A jail
 * says so: numbers, and a text that nobody follows.
 */
int cm_checkout_helper_unsaved(struct cm_local *l, const char *path,
			       struct cm_checkout_unsaved *ret, struct cm_error *err);

/*
 * As long as it gets on it may take its time, and it says so several times a second. What does not
 * get on waits for something that may never come, such as the other end of a FIFO or of a
 * connection; what is merely slow is heard of long before.
 */
#define CM_CHECKOUT_SILENCE_MS 30000

#endif
