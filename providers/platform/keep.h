/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this host remembers, in records of remote/record.h: which sandbox a session has, since the platform
 * finds none by a session's name, and the definitions that templates' names stand for.
 *
 * A record is of a project, an environment and a service at one address. Those of others are not seen, and
 * not written over.
 */
#ifndef CM_PROVIDERS_PLATFORM_KEEP_H
#define CM_PROVIDERS_PLATFORM_KEEP_H

#include "providers/platform/platform_internal.h"

/* CM_E_NOT_FOUND: there is no such session here. CM_E_EXISTS: there is one, and not of this account. */
int cm_platform_keep_load(struct cm_platform_session *s, struct cm_error *err);
/* By who holds its lock. What others keep in its record stays. */
int cm_platform_keep_save(const struct cm_platform_session *s, struct cm_error *err);
/*
 * What has come to be known of its sandbox, and nothing else. Under its lock, which is asked for; where
 * the sandbox there is another by now, nothing is written.
 */
int cm_platform_keep_checkpoint(const struct cm_platform_session *s, const struct cm_call *call,
				struct cm_error *err);
/* Not where somebody holds the lock: that may be who waits for this. */
void cm_platform_keep_no_sidecar(const struct cm_platform_session *s);
/* What is not there is CM_OK. */
int cm_platform_keep_remove(const struct cm_platform_session *s, struct cm_error *err);
/* What is in the record alone: repository, labels. */
int cm_platform_keep_info(const struct cm_platform_session *s, struct cm_session_info *ret,
			  struct cm_error *err);
/* The ids of all of this account, sorted. */
int cm_platform_keep_list(struct cm_platform *p, struct cm_strv *ret, struct cm_error *err);
/* Held by who makes a session or removes it. */
int cm_platform_keep_lock(const struct cm_platform_session *s, const struct cm_call *call,
			  int *ret_fd, struct cm_error *err);
/* is_over: the session is gone, and its lock goes with it. */
void cm_platform_keep_unlock(const struct cm_platform_session *s, bool is_over, int *fd);

/* *ret is the caller's. CM_E_NOT_FOUND. */
int cm_platform_keep_definition(struct cm_platform *p, const char *name, char **ret,
				struct cm_error *err);
/* definition NULL: it goes; CM_E_NOT_FOUND. */
int cm_platform_keep_set_definition(struct cm_platform *p, const char *name, const char *definition,
				    struct cm_error *err);
int cm_platform_keep_definitions(struct cm_platform *p, struct cm_strv *ret, struct cm_error *err);

#endif
