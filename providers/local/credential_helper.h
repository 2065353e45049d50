/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The credential helpers of the user's git, asked for what the server of --repo is to be told.
 *
 * `git credential fill` runs as the caller and outside of any jail, since what it reads and starts is
 * the caller's: its own configuration and that of the machine, and no repository's (its working
 * directory is /, and no variable names another). It can ask nobody: it has no terminal and no askpass.
 * What is given is for scheme, host and port of the address alone, and is kept in memory, for this
 * process. Helpers are never told whether it was of use (approve, reject): a server that refuses could
 * have the user's own credential erased, and nothing new was learnt that is worth storing.
 */
#ifndef CM_PROVIDERS_LOCAL_CREDENTIAL_HELPER_H
#define CM_PROVIDERS_LOCAL_CREDENTIAL_HELPER_H

#include "providers/local/local.h"

/*
 * For url (http or https, with no secret). CM_OK also when there is no git, no helper or nothing to be
 * had: then *ret_user and *ret_secret stay NULL. Asked once in a process for the session's repository;
 * both texts are l's. CM_E_CANCELLED as cm_local_inside has it.
 */
int cm_credential_helper_ask(struct cm_local *l, const char *url, const char **ret_user,
			     const char **ret_secret, struct cm_error *err);
/* What was given, or NULLs where nobody was asked yet. */
void cm_credential_helper_given(const struct cm_local *l, const char **ret_user,
				const char **ret_secret);
void cm_credential_helper_forget(struct cm_local *l);

#endif
