/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The addresses that git calls URLs: paths, SCHEME://, and HOST:PATH for ssh. Parsed strictly: an
 * address ends in other programs, which must not read another one out of it, and in messages.
 */
#ifndef CM_RUNTIME_BASE_GITURL_H
#define CM_RUNTIME_BASE_GITURL_H

#include <stdbool.h>

#include "casemate/error.h"

/* bytes of an address */
#define CM_GITURL_MAX 4096

enum cm_giturl_kind {
	CM_GITURL_PATH = 1,
	CM_GITURL_FILE,
	CM_GITURL_HTTP,
	CM_GITURL_HTTPS,
	CM_GITURL_GIT,
	CM_GITURL_SSH,
};

struct cm_giturl {
	enum cm_giturl_kind kind;
	/* lower case; of an IPv6 address without its brackets; NULL for PATH and FILE */
	char *host;
	/* the scheme's own where none is given */
	unsigned int port;
	/* decoded; NULL: none is given */
	char *user;
	char *password;
	/* as it is written, from the host on; of PATH and FILE the path itself, decoded */
	char *path;
	/*
	 * The whole address without a secret: none has a password, and only ssh's have a user name,
	 * since in http a token may stand there. Of FILE the path.
	 */
	char *text;
};

/* Is it an address at all, and not a plain path? git's rule: a colon before any slash. */
bool cm_giturl_is_remote(const char *text);
/*
 * CM_OK, CM_E_INVALID or CM_E_NOMEM. Errors never repeat the text, which may hold a password.
 * *ret is the caller's to clear.
 */
int cm_giturl_parse(const char *text, struct cm_giturl *ret, struct cm_error *err);
/* Would a credential for a be one for b? Scheme, host and port. */
bool cm_giturl_same_server(const struct cm_giturl *a, const struct cm_giturl *b);
/* Is its host this very one, by name or address? */
bool cm_giturl_is_here(const struct cm_giturl *url);
/* May a secret be sent to it? over TLS, or to this very host. */
bool cm_giturl_is_safe(const struct cm_giturl *url);
/*
 * What a checkout's directory is called: "name" of ".../name", ".../name.git" and ".../name/.git".
 * Of A-Z a-z 0-9 . _ - only, beginning with none of . -; "repository" where nothing is left. Caller
 * frees; NULL: memory.
 */
char *cm_giturl_name(const struct cm_giturl *url);
/* Passwords and user names are wiped. */
void cm_giturl_clear(struct cm_giturl *url);

#endif
