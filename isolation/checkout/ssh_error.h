/* SPDX-License-Identifier: Apache-2.0 */
/* Why a fetch over ssh failed, beside what fetch_error.h knows of any. */
#ifndef CM_ISOLATION_CHECKOUT_SSH_ERROR_H
#define CM_ISOLATION_CHECKOUT_SSH_ERROR_H

#include "isolation/checkout/fetch_error.h"
#include "isolation/checkout/library.h"

/* CM_FETCH_UNKNOWN: nothing that only ssh says. */
enum cm_fetch_reason cm_ssh_reason(const git_error *e, int r, const struct cm_fetch_state *state);
/* NULL: those of any fetch. */
const struct cm_fetch_words *cm_ssh_words(enum cm_fetch_reason reason);

#endif
