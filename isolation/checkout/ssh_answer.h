/* SPDX-License-Identifier: Apache-2.0 */
/* What a server answers git-lfs over ssh: where LFS content is, and a token for there. Pure. */
#ifndef CM_ISOLATION_CHECKOUT_SSH_ANSWER_H
#define CM_ISOLATION_CHECKOUT_SSH_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/buf.h"

/*
 * The same answer made anew of what git-lfs may have of it: an address over TLS, or with may_be_here
 * one of this very host; and of headers Authorization alone, which git-lfs leaves out where a redirect
 * leads elsewhere, as it does with no other. CM_OK, CM_E_DENIED (an address in clear), CM_E_PROTOCOL,
 * CM_E_NOMEM.
 */
int cm_ssh_answer_make(const char *answer, size_t len, bool may_be_here, struct cm_buf *out);

#endif
