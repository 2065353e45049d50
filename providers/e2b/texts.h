/* SPDX-License-Identifier: Apache-2.0 */
/* Texts on their way into JSON and out of it. Pure. */
#ifndef CM_PROVIDERS_E2B_TEXTS_H
#define CM_PROVIDERS_E2B_TEXTS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/buf.h"
#include "runtime/base/json_write.h"

/* UTF-8 all through: JSON has no other text, and what it cannot have would be changed on the way. */
bool cm_e2b_is_text(const char *s);
/*
 * "NAME=value" of both as an object, each name once: the later wins. Each may be NULL; the second ends
 * with NULL.
 */
void cm_e2b_write_env(struct cm_json_writer *w, const struct cm_strv *first, char *const *second);
/* "2026-11-29T16:11:26.42726751Z", or with an offset. Nanoseconds since 1970. */
bool cm_e2b_time(const char *text, int64_t *ret_ns);
/* "0.6.13" is at least "0.5.7"; what cannot be read is not. */
bool cm_e2b_is_version(const char *text, unsigned int major, unsigned int minor,
		       unsigned int patch);

#endif
