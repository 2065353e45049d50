/* SPDX-License-Identifier: Apache-2.0 */
/* The providers of casemate-remote. */
#include "providers/e2b/e2b.h"
#include "providers/platform/platform.h"
#include "providers/registry.h"

const struct cm_provider_ops *const cm_provider_tables[] = { &cm_e2b_ops, &cm_platform_ops, NULL };
