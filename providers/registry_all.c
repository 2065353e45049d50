/* SPDX-License-Identifier: Apache-2.0 */
/* All providers, for programs that are not the command line. */
#include "providers/e2b/e2b.h"
#include "providers/local/vtable.h"
#include "providers/platform/platform.h"
#include "providers/registry.h"

const struct cm_provider_ops *const cm_provider_tables[] = { &cm_local_ops, &cm_e2b_ops,
							     &cm_platform_ops, NULL };
