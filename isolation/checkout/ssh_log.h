/* SPDX-License-Identifier: Apache-2.0 */
/* What OpenSSH's client says of one connection, in the reasons that libgit2's failures have. Pure. */
#ifndef CM_ISOLATION_CHECKOUT_SSH_LOG_H
#define CM_ISOLATION_CHECKOUT_SSH_LOG_H

#include <stdbool.h>

#include "isolation/checkout/fetch_error.h"

struct cm_ssh_log {
	/* set before: what there is for this server */
	bool has_known_key;
	bool has_keys;
	/* the server let us in: what failed then is the command's, or the connection's */
	bool is_in;
	/* the server's words had no end */
	bool is_too_much;
	/* CM_FETCH_UNKNOWN: nothing failed that is understood */
	enum cm_fetch_reason reason;
	/* the host key, in words */
	char offered[96];
	/* what comes after the reason's words; "": nothing */
	char cause[96];
};

/*
 * One line of its log at the level DEBUG1, without its end. The server's own words are none of it, but
 * for what follows a beginning that is looked for here.
 */
void cm_ssh_log_line(struct cm_ssh_log *log, const char *line);
/* Its exit status, and what the server's program wrote on its standard error. */
void cm_ssh_log_end(struct cm_ssh_log *log, int status, const char *words);
/* Of a program of the server's that refused: that there is no such repository, or something else. */
enum cm_fetch_reason cm_ssh_reason_of_words(const char *words);

#endif
