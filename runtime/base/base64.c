/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/base64.h"

#include <stdint.h>
#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* n bytes of three */
static void encode_group(struct cm_buf *out, const uint8_t *p, size_t n, bool is_padded)
{
	uint32_t group = 0;

	for (size_t k = 0; k < 3; k++)
		group = group << 8 | (k < n ? p[k] : 0);
	for (size_t k = 0; k <= n; k++)
		cm_buf_putc(out, digits[group >> (18 - 6 * k) & 63]);
	for (size_t k = n; k < 3 && is_padded; k++)
		cm_buf_putc(out, '=');
}

void cm_base64_encode(struct cm_buf *out, const void *data, size_t len, bool is_padded)
{
	const uint8_t *p = data;

	while (len > 0) {
		size_t n = len < 3 ? len : 3;

		encode_group(out, p, n, is_padded);
		p += n;
		len -= n;
	}
}

/* -1: not a digit. A NUL is none, although strchr would find it. */
static int value_of(char c)
{
	const char *at = c == '\0' ? NULL : strchr(digits, c);

	return at ? (int)(at - digits) : -1;
}

/* n characters of four; false: not digits, or bits that no byte gets. */
static bool decode_group(struct cm_buf *out, const char *text, size_t n)
{
	uint32_t group = 0;

	for (size_t k = 0; k < 4; k++) {
		int value = k < n ? value_of(text[k]) : 0;

		if (value < 0)
			return false;
		group = group << 6 | (uint32_t)value;
	}
	for (size_t k = 0; k + 1 < n; k++)
		cm_buf_putc(out, (char)(group >> (16 - 8 * k) & 0xff));
	return (group & (n == 4 ? 0 : n == 3 ? 0xffU : 0xffffU)) == 0;
}

bool cm_base64_decode(struct cm_buf *out, const char *text, size_t len)
{
	size_t n = len;

	if (len % 4 != 0)
		return false;
	while (n > 0 && len - n < 2 && text[n - 1] == '=')
		n--;
	for (size_t i = 0; i < n; i += 4) {
		if (!decode_group(out, text + i, n - i < 4 ? n - i : 4))
			return false;
	}
	return true;
}
