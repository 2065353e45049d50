/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a fetch by ssh takes along into its jail: which host keys are believed, as a file; the
 * private keys, as texts for the helper's pipe, or the socket of an agent; and what the user's
 * configuration says of the server's name, port and account.
 */
#ifndef CM_PROVIDERS_LOCAL_SSH_H
#define CM_PROVIDERS_LOCAL_SSH_H

#include "providers/local/local_internal.h"
#include "providers/local/ssh_config.h"
#include "runtime/base/giturl.h"

/* where a jail shows them */
#define CM_SSH_HOME_INSIDE "/run/casemate/home"
#define CM_SSH_AGENT_INSIDE "/run/casemate/ssh-agent"

struct cm_local_ssh {
	/* what follows counts for an ssh address alone */
	bool is_ssh;
	struct cm_giturl url;
	struct cm_ssh_config config;
	/* for the helper's pipe (isolation/checkout/credential.h), where it is told no password */
	struct cm_buf texts;
	/* of the agent, borrowed; NULL: none */
	const char *agent;
	/* known_hosts of this server, and where it is while a jail is made */
	struct cm_buf known_hosts;
	char *path;
};

/*
 * Reads all that the host has to say of the address, which may be of any kind. Keys and the agent are
 * left alone without has_keys. cm_local_ssh_clear is right also after a failure.
 */
int cm_local_ssh_init(struct cm_local *l, const char *url, bool has_keys, struct cm_local_ssh *ssh,
		      struct cm_error *err);
void cm_local_ssh_clear(struct cm_local_ssh *ssh);
/* Add to what the jail shows; the file is there until cm_local_ssh_hide. */
int cm_local_ssh_show(struct cm_local *l, struct cm_local_ssh *ssh, struct cm_local_plan *extra,
		      struct cm_error *err);
/* Once the jail stands, or does not: it keeps what it was shown. */
void cm_local_ssh_hide(struct cm_local *l, struct cm_local_ssh *ssh);
/* The server's real name and port where the address has others, else NULL and 0. */
const char *cm_local_ssh_host(const struct cm_local_ssh *ssh);
unsigned int cm_local_ssh_port(const struct cm_local_ssh *ssh);

#endif
