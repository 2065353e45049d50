/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Local sessions as a provider. A session that was asked for without a name is one that lasts, under a
 * name made up for it: its user destroys it. Whatever needs a session that does not run starts it.
 */
#ifndef CM_PROVIDERS_LOCAL_VTABLE_H
#define CM_PROVIDERS_LOCAL_VTABLE_H

#include "providers/provider.h"

extern const struct cm_provider_ops cm_local_ops;

#endif
