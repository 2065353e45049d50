/* SPDX-License-Identifier: Apache-2.0 */
/* The tables that a program is linked with, by name. */
#ifndef CM_PROVIDERS_REGISTRY_H
#define CM_PROVIDERS_REGISTRY_H

#include "providers/provider.h"

/* Ends with NULL. Of the program: each is linked with one of registry_*.c. */
extern const struct cm_provider_ops *const cm_provider_tables[];

/* NULL: this program has no such provider. */
const struct cm_provider_ops *cm_provider_find(const char *name);

#endif
