/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sandboxes of the Mastra platform, through its workspace proxy.
 *
 * Variables: MASTRA_PROJECT_ID, MASTRA_ENVIRONMENT_ID, MASTRA_PLATFORM_ACCESS_TOKEN or
 * MASTRA_PLATFORM_SECRET_KEY, MASTRA_WORKSPACE_PROXY_URL, SANDBOX_PROVIDER (railway or e2b).
 */
#ifndef CM_PROVIDERS_PLATFORM_PLATFORM_H
#define CM_PROVIDERS_PLATFORM_PLATFORM_H

#include "providers/provider.h"

extern const struct cm_provider_ops cm_platform_ops;

#endif
