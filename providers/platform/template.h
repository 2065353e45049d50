/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Definitions of templates: what a sandbox begins with, as a list of operations. Plain data.
 *
 * {"schemaVersion":1,"operations":[{"method":"runCmd","args":["npm ci"]}],"family":"name"}
 */
#ifndef CM_PROVIDERS_PLATFORM_TEMPLATE_H
#define CM_PROVIDERS_PLATFORM_TEMPLATE_H

#include "providers/provider.h"
#include "runtime/base/json.h"
#include "runtime/base/json_write.h"

/* The service's bounds. Characters are those of UTF-16. */
#define CM_PLATFORM_OPERATIONS_MAX 256
#define CM_PLATFORM_DEFINITION_MAX (256UL * 1024)
#define CM_PLATFORM_STRING_MAX 32768
#define CM_PLATFORM_ITEMS_MAX 512
#define CM_PLATFORM_FAMILY_MAX 200
/* the greatest whole number that every reader of JSON has exactly */
#define CM_PLATFORM_NUMBER_MAX ((INT64_C(1) << 53) - 1)

/* Appends the definition that a request describes; it is not checked. */
int cm_platform_template_make(const struct cm_template_request *request, struct cm_buf *out,
			      struct cm_error *err);
/*
 * Is the text a definition that the service takes? *ret is the caller's. CM_E_INVALID, CM_E_LIMIT,
 * CM_E_NOMEM; name is the template's, for the message.
 */
int cm_platform_template_check(const char *text, size_t len, const char *name,
			       struct cm_json_doc **ret, struct cm_error *err);

#endif
