/* SPDX-License-Identifier: Apache-2.0 */
/* The credentials that this process may have: read from a pipe, kept nowhere else. */
#ifndef CM_ISOLATION_CHECKOUT_CREDENTIAL_H
#define CM_ISOLATION_CHECKOUT_CREDENTIAL_H

#include <stddef.h>

#include "casemate/error.h"

/* of what is read, in bytes */
#define CM_CREDENTIAL_MAX (64U * 1024)

/* keys that are tried, one after the other */
#define CM_CREDENTIAL_KEYS_MAX 8

struct cm_ssh_key {
	char *text;
	/* NULL: it has none */
	char *passphrase;
};

struct cm_credential {
	/* NULL: nothing was said */
	char *user;
	/* a password or a token; NULL: there is none */
	char *secret;
	/* of ssh, for which there is no secret then */
	struct cm_ssh_key keys[CM_CREDENTIAL_KEYS_MAX];
	size_t n_keys;
};

#define CM_CREDENTIAL_INIT                                                                         \
	{                                                                                          \
		.user = NULL                                                                       \
	}

/*
 * From fd to its end, texts that a NUL byte ends each:
 *
 *	nothing                       no credential
 *	USER                          a name alone, for a server that asks for no more, or an agent
 *	USER SECRET                   a password or a token
 *	USER (KEY PASSPHRASE)...      private keys of ssh and what they are encrypted with, or ""
 *
 * fd is closed unless it is a standard one.
 */
int cm_credential_read(int fd, struct cm_credential *ret, struct cm_error *err);
/* Overwrites. */
void cm_credential_clear(struct cm_credential *credential);

#endif
