/* SPDX-License-Identifier: Apache-2.0 */
/* What every function over the vtable does before and after. */
#ifndef CM_PROVIDERS_PROVIDER_INTERNAL_H
#define CM_PROVIDERS_PROVIDER_INTERNAL_H

#include "providers/provider.h"

/*
 * May it be called? CM_E_UNSUPPORTED where the provider has no such operation or not its capability (0:
 * none is asked for); CM_E_TIMEOUT, CM_E_CANCELLED where the call is over already. what: after "cannot".
 */
int cm_provider_may(const struct cm_provider *p, bool has_slot, uint32_t cap, const char *what,
		    const struct cm_call *call, struct cm_error *err);
/* What came of it: a failure without a message gets one. */
int cm_provider_settle(const struct cm_provider *p, int r, const char *what, struct cm_error *err);

#endif
