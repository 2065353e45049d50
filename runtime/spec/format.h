/* SPDX-License-Identifier: Apache-2.0 */
/* Spec -> text and JSON, in forms that read back as the same value. Pure. */
#ifndef CM_RUNTIME_SPEC_FORMAT_H
#define CM_RUNTIME_SPEC_FORMAT_H

#include "runtime/base/buf.h"
#include "runtime/base/json_write.h"
#include "runtime/spec/keys.h"

/* How many values a key has: of a list its length, of a scalar 1 where it is set or has a default. */
size_t cm_key_count_values(const struct cm_key_info *info, const struct cm_spec *spec);
/* The i-th value as text: "4G?", "/a:/b:ro", "true". */
void cm_key_format(const struct cm_key_info *info, const struct cm_spec *spec, size_t i,
		   struct cm_buf *out);
/* The key's value as a JSON value that cm_file_parse takes; null when it has none. */
void cm_key_write_json(const struct cm_key_info *info, const struct cm_spec *spec,
		       struct cm_json_writer *w);
/* "NAME=value" each, as a JSON object. */
void cm_strv_write_map(const struct cm_strv *map, struct cm_json_writer *w);

#endif
