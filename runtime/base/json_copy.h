/* SPDX-License-Identifier: Apache-2.0 */
/* JSON that was read, out again: by who keeps members that it does not know, or passes on what it checked. */
#ifndef CM_RUNTIME_BASE_JSON_COPY_H
#define CM_RUNTIME_BASE_JSON_COPY_H

#include "runtime/base/json.h"
#include "runtime/base/json_write.h"

/* Writes v, without its key, with all that is in it. */
void cm_json_copy(struct cm_json_writer *w, const struct cm_json *v);

#endif
