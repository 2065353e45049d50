/* SPDX-License-Identifier: Apache-2.0 */
/* Is there work in a session's directory that is nowhere else? */
#ifndef CM_PROVIDERS_LOCAL_UNSAVED_H
#define CM_PROVIDERS_LOCAL_UNSAVED_H

#include "runtime/spec/config.h"
#include "runtime/store/store.h"

/*
 * Of the repositories in <root>/<id>, bare ones too: the checkout, the directory itself, and those right
 * below it. s: open for change, and not running. CM_OK: nothing would be lost; CM_E_EXISTS: something
 * would, or it cannot be told, and the message says what. No git directory is read but in a jail, by the
 * helper of checkouts. look_ms: how long all of it may take; 0: a minute.
 */
int cm_local_check_unsaved(struct cm_store_session *s, const struct cm_config *config,
			   unsigned int look_ms, struct cm_error *err);

#endif
