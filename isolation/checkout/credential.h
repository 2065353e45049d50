/* SPDX-License-Identifier: Apache-2.0 */
/* The one credential that this process may have: read from a pipe, kept nowhere else. */
#ifndef CM_ISOLATION_CHECKOUT_CREDENTIAL_H
#define CM_ISOLATION_CHECKOUT_CREDENTIAL_H

#include "casemate/error.h"

/* of what is read, in bytes */
#define CM_CREDENTIAL_MAX (64U * 1024)

struct cm_credential {
	/* NULL: there is none */
	char *user;
	char *secret;
};

/*
 * From fd to its end: a user name and a secret, each ended by a NUL byte; nothing at all is no
 * credential. fd is closed unless it is a standard one.
 */
int cm_credential_read(int fd, struct cm_credential *ret, struct cm_error *err);
/* Overwrites. */
void cm_credential_clear(struct cm_credential *credential);

#endif
