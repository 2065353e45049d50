/* SPDX-License-Identifier: Apache-2.0 */
/* Which host keys OpenSSH believes of one server. */
#ifndef CM_ISOLATION_CHECKOUT_SSH_KNOWN_H
#define CM_ISOLATION_CHECKOUT_SSH_KNOWN_H

#include "casemate/error.h"
#include "runtime/base/buf.h"

struct cm_ssh_known {
	/* a known_hosts for OpenSSH */
	struct cm_buf lines;
	/* of HostKeyAlgorithms: what the known keys sign with, the best first; empty: no key is known */
	struct cm_buf algorithms;
};

/*
 * From HOME/.ssh/known_hosts, as ssh.h has it: "NAME KIND KEY" and "#revoked KEY". What is not there
 * has no keys; a revoked key whose kind cannot be told is an error, since it would be believed.
 */
int cm_ssh_known_read(const char *home, struct cm_ssh_known *ret, struct cm_error *err);
int cm_ssh_known_take(const char *text, struct cm_ssh_known *ret, struct cm_error *err);
void cm_ssh_known_clear(struct cm_ssh_known *known);

#endif
