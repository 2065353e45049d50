/* SPDX-License-Identifier: Apache-2.0 */
/* What tests say of a whole text; the product goes from one sequence to the next. */
#ifndef CM_TESTS_HELPERS_UTF8_H
#define CM_TESTS_HELPERS_UTF8_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/text.h"

static inline bool is_utf8(const char *s, size_t len)
{
	while (len > 0) {
		size_t n = cm_text_utf8_len(s, len);

		if (n == 0)
			return false;
		s += n;
		len -= n;
	}
	return true;
}

#endif
