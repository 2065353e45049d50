/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this host remembers of a remote session: which sandbox it has, since not every provider finds one
 * by its session's name, and what was made ready in it. Never a secret.
 *
 *	<state>/remote/<provider>/<id>.json	one object of texts; "labels" is an array
 *	                         /<id>.lock	held by who makes, prepares or removes the session
 *
 * state: /var/lib/casemate as root, else $XDG_STATE_HOME/casemate or ~/.local/state/casemate. All
 * directories are 0700 and ours, or refused. Files are replaced whole; they are not synced, since what is
 * lost with them can be asked for again.
 *
 * Errors: CM_E_INVALID (a name, or no home directory), CM_E_NOT_FOUND, CM_E_SYS, CM_E_NOMEM,
 * CM_E_PROTOCOL (the file is none of ours).
 */
#ifndef CM_PROVIDERS_REMOTE_RECORD_H
#define CM_PROVIDERS_REMOTE_RECORD_H

#include "casemate/error.h"
#include "providers/call.h"
#include "runtime/base/buf.h"
#include "runtime/spec/config.h"

/* Keys; a provider may have others. */
#define CM_RECORD_PROVIDER_ID "provider_id"
/* cm_record_account */
#define CM_RECORD_ACCOUNT "account"
/* milliseconds since 1970 */
#define CM_RECORD_CREATED "created"
#define CM_RECORD_WORKDIR "workdir"
/* without a credential */
#define CM_RECORD_REPO "repo"
#define CM_RECORD_CHECKOUT "checkout"
/* that it was put on last */
#define CM_RECORD_BRANCH "branch"
/* what it was made with; "": without; a list is sorted, one a line */
#define CM_RECORD_REF "ref"
#define CM_RECORD_PR "pr"
#define CM_RECORD_BASE "base"
#define CM_RECORD_SPARSE "sparse"
/* "yes" or "no" */
#define CM_RECORD_LFS "lfs"
/* "sha256:...", and "done", or "failed" with its exit status */
#define CM_RECORD_SETUP_DIGEST "setup_digest"
#define CM_RECORD_SETUP_STATE "setup_state"
#define CM_RECORD_SETUP_EXIT "setup_exit"
/* JSON: an array of texts */
#define CM_RECORD_TEARDOWN "teardown"
/* whose sandbox checkout, setup and teardown are of */
#define CM_RECORD_PREPARED_BY "prepared_by"

struct cm_records {
	/* <state>/remote/<provider> */
	int dir_fd;
};
#define CM_RECORDS_INIT                                                                            \
	{                                                                                          \
		-1                                                                                 \
	}

/* Zero-initialise. */
struct cm_record {
	/* "key=value" */
	struct cm_strv values;
	/* "KEY=value" */
	struct cm_strv labels;
};

/* Directories are made when absent. provider: its table's name. */
int cm_records_open(const struct cm_config *config, const char *provider, struct cm_records *ret,
		    struct cm_error *err);
void cm_records_close(struct cm_records *records);

/* CM_E_NOT_FOUND; *ret is the caller's, and untouched by a failure. */
int cm_record_read(const struct cm_records *records, const char *id, struct cm_record *ret,
		   struct cm_error *err);
int cm_record_write(const struct cm_records *records, const char *id,
		    const struct cm_record *record, struct cm_error *err);
/* One that is not there is CM_OK. */
int cm_record_remove(const struct cm_records *records, const char *id, struct cm_error *err);
/* The ids of all, sorted. */
int cm_record_list(const struct cm_records *records, struct cm_strv *ret, struct cm_error *err);

/* Borrowed; NULL: it has none. */
const char *cm_record_get(const struct cm_record *record, const char *key);
/* value NULL: it has none then. */
int cm_record_set(struct cm_record *record, const char *key, const char *value,
		  struct cm_error *err);
void cm_record_clear(struct cm_record *record);

/*
 * Two clients make one sandbox of one session: the lock is waited for, until the call is over. Closing
 * *ret_fd lets go of it; cm_record_unlock takes its file away as well.
 */
int cm_record_lock(const struct cm_records *records, const char *id, const struct cm_call *call,
		   int *ret_fd, struct cm_error *err);
void cm_record_unlock(const struct cm_records *records, const char *id, int *fd);

#define CM_RECORD_ACCOUNT_SIZE 17
/*
 * Which account it is of: two keys, or one at two addresses, have records that do not mix. The digest's
 * beginning says nothing about the key.
 */
int cm_record_account(const char *key, const char *url, char ret[CM_RECORD_ACCOUNT_SIZE],
		      struct cm_error *err);

#endif
