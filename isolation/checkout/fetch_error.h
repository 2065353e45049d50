/* SPDX-License-Identifier: Apache-2.0 */
/* Why a fetch failed, as far as what libgit2 says lets one tell. */
#ifndef CM_ISOLATION_CHECKOUT_FETCH_ERROR_H
#define CM_ISOLATION_CHECKOUT_FETCH_ERROR_H

#include <stdbool.h>

#include "casemate/error.h"
#include "runtime/base/giturl.h"

/* Names are stable: they are in the report. */
#define CM_FETCH_REASONS(X)                                                                        \
	X(AUTH_REQUIRED, "auth-required")                                                          \
	X(AUTH_REFUSED, "auth-refused")                                                            \
	X(AUTH_IN_CLEAR, "auth-in-clear")                                                          \
	X(AUTH_UNSUPPORTED, "auth-unsupported")                                                    \
	X(FORBIDDEN, "forbidden")                                                                  \
	X(NOT_FOUND, "not-found")                                                                  \
	X(CERTIFICATE, "certificate")                                                              \
	X(HOST_KEY, "host-key")                                                                    \
	X(TLS, "no-tls")                                                                           \
	X(REDIRECT, "redirect")                                                                    \
	X(NAME, "name-unknown")                                                                    \
	X(CONNECT, "no-connection")                                                                \
	X(BROKEN_OFF, "broken-off")                                                                \
	X(REFUSED, "refused")                                                                      \
	X(SERVER, "server-error")                                                                  \
	X(PROTOCOL, "not-git")                                                                     \
	X(HOST_KEY_CHANGED, "host-key-changed")                                                    \
	X(HOST_KEY_REVOKED, "host-key-revoked")                                                    \
	X(HOST_KEY_KIND, "host-key-kind")                                                          \
	X(KEY_REQUIRED, "key-required")                                                            \
	X(KEY_REFUSED, "key-refused")                                                              \
	X(KEY_UNUSABLE, "key-unusable")                                                            \
	X(PASSWORD_REFUSED, "password-refused")                                                    \
	X(AGENT, "agent")                                                                          \
	X(COMMAND, "command-refused")                                                              \
	X(BAD_PACK, "bad-pack")                                                                    \
	X(MIRROR, "mirror")

enum cm_fetch_reason {
	CM_FETCH_UNKNOWN = 0,
#define X(id, name) CM_FETCH_##id,
	CM_FETCH_REASONS(X)
#undef X
};

struct cm_fetch_state {
	/* as far as a callback of ours knows it already */
	enum cm_fetch_reason reason;
	/* there is one */
	bool has_credential;
	bool has_sent_credential;
	/* objects came */
	bool has_begun;
	/* of ssh: some host key of this server is known; and which one it has, in words */
	bool has_known_key;
	char offered[96];
};

/*
 * In the texts @ is the host, # its port, % both as known_hosts has them and ^ the host key that was
 * offered; with a cause what libgit2 said comes after them.
 */
struct cm_fetch_words {
	int code;
	bool has_cause;
	const char *msg;
	const char *hint;
	/* instead, where a credential was sent; NULL: the same */
	const char *hint_sent;
};

/* NULL for CM_FETCH_UNKNOWN. */
const char *cm_fetch_reason_name(enum cm_fetch_reason reason);
/* Is it the server's, the network's or the caller's doing, so that a new mirror changes nothing? */
bool cm_fetch_is_remote(enum cm_fetch_reason reason);
/* From what libgit2 returned and its last error. Completes state->reason; never returns CM_OK. */
int cm_fetch_error(struct cm_fetch_state *state, const struct cm_giturl *url, int r,
		   struct cm_error *err);
/* The words for state->reason, which is known; cause comes after them where they want one. */
int cm_fetch_say(const struct cm_fetch_state *state, const struct cm_giturl *url, const char *cause,
		 struct cm_error *err);

#endif
