/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is told to an ssh server, and which one is believed. Its host key has to be one of those in
 * the known_hosts that the caller wrote for this one server (providers/local/known_hosts.h); nothing
 * is ever added to that.
 */
#ifndef CM_ISOLATION_CHECKOUT_SSH_H
#define CM_ISOLATION_CHECKOUT_SSH_H

#include <stdbool.h>

#include "isolation/checkout/credential.h"
#include "isolation/checkout/fetch_error.h"
#include "isolation/checkout/library.h"
#include "runtime/base/buf.h"
#include "runtime/base/giturl.h"

struct cm_ssh_options {
	/* where .ssh/known_hosts is, which libgit2 finds by HOME; NULL: there is none */
	const char *home;
	/* the socket of the agent that has the keys, which libgit2 finds by SSH_AUTH_SOCK; NULL: none */
	const char *agent;
	/* the server's real name, where the address has another one for it, and port; NULL, 0 */
	const char *host;
	unsigned int port;
};

struct cm_ssh {
	const struct cm_ssh_options *opts;
	const struct cm_credential *credential;
	struct cm_fetch_state *state;
	/* of known_hosts: "KEY\n" for each that is revoked */
	struct cm_buf revoked;
	/* of a fetch: each credential is tried once */
	size_t n_tried;
};

/* Reads known_hosts, and says in the state whether it has a key. What is given is borrowed. */
int cm_ssh_init(struct cm_ssh *ssh, const struct cm_ssh_options *opts,
		const struct cm_credential *credential, struct cm_fetch_state *state,
		struct cm_error *err);
void cm_ssh_clear(struct cm_ssh *ssh);
/* Makes the server's real name and port url's; its text stays as it is. */
int cm_ssh_place(const struct cm_ssh *ssh, struct cm_giturl *url, struct cm_error *err);
/* The address for libgit2, of an url that is placed. Caller frees. */
int cm_ssh_address(const struct cm_ssh *ssh, const struct cm_giturl *url, char **ret,
		   struct cm_error *err);
/* Who asks: the address's own, the credential's, or "git". Borrowed. */
const char *cm_ssh_user(const struct cm_giturl *url, const struct cm_credential *credential);
/* libgit2's callbacks of these names; why something is refused goes to the state. */
int cm_ssh_credential(struct cm_ssh *ssh, git_credential **ret, const char *user,
		      unsigned int allowed);
int cm_ssh_certificate(struct cm_ssh *ssh, const git_cert *cert, bool is_known);

#endif
