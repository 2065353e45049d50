/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HMAC with SHA-1 (RFC 2104, FIPS 180-4): by it ssh's known_hosts hides the names of hosts. Of no
 * use where somebody gains by two texts with one digest.
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

/* False: a text is too long. */
bool cm_hmac_sha1(const void *key, size_t key_len, const void *data, size_t len,
		  uint8_t digest[CM_SHA1_SIZE]);

#endif
