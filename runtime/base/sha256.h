/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-256 (FIPS 180-4), for digests of short texts. The static programs link no crypto library. What
 * is hashed may be a secret: no copy of it is left.
 */
#ifndef CM_RUNTIME_BASE_SHA256_H
#define CM_RUNTIME_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define CM_SHA256_SIZE 32
#define CM_SHA256_HEX_SIZE 65

void cm_sha256(const void *data, size_t len, uint8_t digest[CM_SHA256_SIZE]);
void cm_sha256_hex(const void *data, size_t len, char hex[CM_SHA256_HEX_SIZE]);

#endif
