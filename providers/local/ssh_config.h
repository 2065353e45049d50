/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What ssh_config(5) says of one server, as far as it is simple: Host, HostName, User, Port and
 * IdentityFile. Not followed are Include and Match (what is below a Match counts for nobody); other
 * keywords are passed over. Pure.
 */
#ifndef CM_PROVIDERS_LOCAL_SSH_CONFIG_H
#define CM_PROVIDERS_LOCAL_SSH_CONFIG_H

#include "casemate/error.h"
#include "runtime/base/buf.h"

struct cm_ssh_config {
	/* NULL, and 0: not said */
	char *host_name;
	char *user;
	unsigned int port;
	/* in the order of the file, as they are written */
	struct cm_strv identities;
};

/* Later texts do not change what an earlier one said. host: as in the address. Zero-initialise. */
int cm_ssh_config_add(struct cm_ssh_config *c, const char *text, size_t len, const char *host,
		      struct cm_error *err);
void cm_ssh_config_clear(struct cm_ssh_config *c);

#endif
