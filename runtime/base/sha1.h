/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-1 (FIPS 180-4), by which a WebSocket server shows that it is one, and HMAC with it (RFC 2104), by
 * which ssh's known_hosts hides the names of hosts. Of no use where somebody gains by two texts with one
 * digest.
 */
#ifndef CM_RUNTIME_BASE_SHA1_H
#define CM_RUNTIME_BASE_SHA1_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CM_SHA1_SIZE 20
/* of both texts, in bytes */
#define CM_HMAC_SHA1_KEY_MAX 64
#define CM_HMAC_SHA1_DATA_MAX 1024
#define CM_SHA1_DATA_MAX 1024

/* False: the text is too long. */
bool cm_sha1(const void *data, size_t len, uint8_t digest[CM_SHA1_SIZE]);

/* False: a text is too long. */
bool cm_hmac_sha1(const void *key, size_t key_len, const void *data, size_t len,
		  uint8_t digest[CM_SHA1_SIZE]);

#endif
