/* SPDX-License-Identifier: Apache-2.0 */
/* What a server answers git-lfs over ssh: where LFS content is, and a token for there. Pure. */
#ifndef CM_ISOLATION_CHECKOUT_SSH_ANSWER_H
#define CM_ISOLATION_CHECKOUT_SSH_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

/*
 * May it be followed, over TLS or to this very host? Whatever in its JSON looks like an address is
 * taken for the one that is meant, in any spelling that a parser makes one of.
 */
bool cm_ssh_answer_is_safe(const char *answer, size_t len);

#endif
