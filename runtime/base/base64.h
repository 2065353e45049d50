/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 (RFC 4648, section 4), as keys of ssh and digests of them are written. */
#ifndef CM_RUNTIME_BASE_BASE64_H
#define CM_RUNTIME_BASE_BASE64_H

#include "runtime/base/buf.h"

/* Appends. is_padded: with '=' up to a multiple of four characters. */
void cm_base64_encode(struct cm_buf *out, const void *data, size_t len, bool is_padded);
/*
 * Appends. False when it is not base64 as it is written above, padded: other characters, blanks
 * among them, or bits left over; what was appended then is not to be used. Whether out failed is the
 * caller's to see.
 */
bool cm_base64_decode(struct cm_buf *out, const char *text, size_t len);

#endif
