/* SPDX-License-Identifier: Apache-2.0 */
/* Where a new provider begins: see skeleton.c. */
#ifndef CM_PROVIDERS_SKELETON_SKELETON_H
#define CM_PROVIDERS_SKELETON_SKELETON_H

#include "providers/provider.h"

extern const struct cm_provider_ops cm_skeleton_ops;

#endif
