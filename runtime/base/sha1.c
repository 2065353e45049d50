/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/sha1.h"

#include <string.h>

#define BLOCK 64

static uint32_t rotate(uint32_t x, unsigned int n)
{
	return x << n | x >> (32 - n);
}

static uint32_t mix(const uint32_t s[5], int i)
{
	if (i < 20)
		return ((s[1] & s[2]) | (~s[1] & s[3])) + 0x5a827999;
	if (i < 40)
		return (s[1] ^ s[2] ^ s[3]) + 0x6ed9eba1;
	if (i < 60)
		return ((s[1] & s[2]) | (s[1] & s[3]) | (s[2] & s[3])) + 0x8f1bbcdc;
	return (s[1] ^ s[2] ^ s[3]) + 0xca62c1d6;
}

static void compress(uint32_t h[5], const uint8_t *p)
{
	uint32_t w[80];
	uint32_t s[5];

	for (int i = 0; i < 16; i++, p += 4)
		w[i] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
	for (int i = 16; i < 80; i++)
		w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
	memcpy(s, h, sizeof(s));
	for (int i = 0; i < 80; i++) {
		uint32_t next = rotate(s[0], 5) + mix(s, i) + s[4] + w[i];

		memmove(s + 1, s, 4 * sizeof(*s));
		s[0] = next;
		s[2] = rotate(s[2], 30);
	}
	for (int i = 0; i < 5; i++)
		h[i] += s[i];
}

/* text has room for what is appended to it. */
static void hash(uint8_t *text, size_t len, uint8_t digest[CM_SHA1_SIZE])
{
	uint32_t h[5] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 };
	uint64_t bits = (uint64_t)len * 8;
	size_t whole = (len + 8) / BLOCK * BLOCK + BLOCK;

	memset(text + len, 0, whole - len);
	text[len] = 0x80;
	for (size_t i = 0; i < 8; i++)
		text[whole - 1 - i] = (uint8_t)(bits >> (8 * i));
	for (size_t i = 0; i < whole; i += BLOCK)
		compress(h, text + i);
	for (size_t i = 0; i < CM_SHA1_SIZE; i++)
		digest[i] = (uint8_t)(h[i / 4] >> (24 - 8 * (i % 4)));
}

bool cm_sha1(const void *data, size_t len, uint8_t digest[CM_SHA1_SIZE])
{
	uint8_t text[CM_SHA1_DATA_MAX + 2 * BLOCK];

	if (len > CM_SHA1_DATA_MAX)
		return false;
	memcpy(text, data, len);
	hash(text, len, digest);
	return true;
}

bool cm_hmac_sha1(const void *key, size_t key_len, const void *data, size_t len,
		  uint8_t digest[CM_SHA1_SIZE])
{
	uint8_t text[BLOCK + CM_HMAC_SHA1_DATA_MAX + 2 * BLOCK];
	uint8_t pad[BLOCK] = { 0 };

	if (key_len > CM_HMAC_SHA1_KEY_MAX || len > CM_HMAC_SHA1_DATA_MAX)
		return false;
	memcpy(pad, key, key_len);
	for (size_t i = 0; i < BLOCK; i++)
		text[i] = pad[i] ^ 0x36;
	memcpy(text + BLOCK, data, len);
	hash(text, BLOCK + len, digest);
	for (size_t i = 0; i < BLOCK; i++)
		text[i] = pad[i] ^ 0x5c;
	memcpy(text + BLOCK, digest, CM_SHA1_SIZE);
	hash(text, BLOCK + CM_SHA1_SIZE, digest);
	return true;
}
