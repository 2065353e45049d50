/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers, sizes, durations: bounds hold, failures leave the result alone and have a message. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/num.h"
#include "tests/fuzz/fuzz.h"

#define UNTOUCHED UINT64_C(0x5ca1ab1e)

typedef int (*parse_fn)(const char *s, const char *what, uint64_t min, uint64_t max, uint64_t *ret,
			struct cm_error *err);
typedef void (*format_fn)(uint64_t v, char *buf, size_t size);

static const struct {
	parse_fn parse;
	format_fn format;
} kinds[] = {
	{ cm_parse_u64, NULL },
	{ cm_parse_size, cm_format_size },
	{ cm_parse_duration, cm_format_duration },
	{ cm_parse_milli, NULL },
};

static void check(size_t kind, const char *s, uint64_t min, uint64_t max)
{
	struct cm_error err = CM_ERROR_INIT;
	uint64_t v = UNTOUCHED;
	char shown[64];
	int r = kinds[kind].parse(s, "value", min, max, &v, &err);

	if (r != CM_OK) {
		require(r == CM_E_INVALID && v == UNTOUCHED && err.msg[0] && err.hint[0]);
		return;
	}
	require(v >= min && v <= max && s[0] >= '0' && s[0] <= '9');
	/* a result is 0 only where the text says 0: 0 often means "no limit" */
	if (v == 0)
		require(strpbrk(s, "123456789") == NULL);
	if (kinds[kind].format) {
		kinds[kind].format(v, shown, sizeof(shown));
		require(strlen(shown) < 24 && strchr(shown, ' '));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *s = malloc(size + 1);

	if (!s)
		return 0;
	memcpy(s, data, size);
	s[size] = '\0';
	for (size_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++) {
		check(kind, s, 0, UINT64_MAX);
		check(kind, s, 1000, 4096);
	}
	free(s);
	return 0;
}
