/* SPDX-License-Identifier: Apache-2.0 */
/* What kind of a file a private key of ssh is, as far as its beginning says. Pure. */
#ifndef CM_PROVIDERS_LOCAL_SSH_KEY_H
#define CM_PROVIDERS_LOCAL_SSH_KEY_H

#include <stddef.h>

/* RSA's longest, with 16384 bits, have 13 kB */
#define CM_SSH_KEY_MAX (16UL * 1024)

enum cm_ssh_key_kind {
	/* no private key */
	CM_SSH_KEY_NONE = 0,
	CM_SSH_KEY_PUBLIC,
	CM_SSH_KEY_PLAIN,
	/* encrypted with a passphrase */
	CM_SSH_KEY_LOCKED,
};

enum cm_ssh_key_kind cm_ssh_key_look(const char *text, size_t len);

#endif
