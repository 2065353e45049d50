/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of a session, "KEY=VALUE": what people find their sessions by. They confine nothing. */
#ifndef CM_RUNTIME_SPEC_LABELS_H
#define CM_RUNTIME_SPEC_LABELS_H

#include <stdbool.h>

#include "casemate/error.h"
#include "runtime/base/buf.h"

#define CM_LABEL_KEY_MAX 63
#define CM_LABEL_VALUE_MAX 256

/* what names the option or key in messages. CM_OK or CM_E_INVALID with a hint. */
int cm_label_check(const char *label, const char *what, struct cm_error *err);
/* "KEY": is there a label of this key? "KEY=VALUE": and has it this value? */
bool cm_labels_match(const struct cm_strv *labels, const char *wanted);

#endif
