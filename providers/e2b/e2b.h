/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions in sandboxes of E2B, or of a service that speaks its protocol. */
#ifndef CM_PROVIDERS_E2B_E2B_H
#define CM_PROVIDERS_E2B_E2B_H

#include "providers/provider.h"

extern const struct cm_provider_ops cm_e2b_ops;

#endif
