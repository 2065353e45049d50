/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the spec share: a caller, and a spec as one line of text. */
#ifndef CM_TESTS_UNIT_TEST_SPEC_ENV_H
#define CM_TESTS_UNIT_TEST_SPEC_ENV_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/base/fd.h"
#include "runtime/spec/format.h"
#include "runtime/spec/merge.h"
#include "runtime/spec/spec_flags.h"
#include "runtime/spec/spec_json.h"

static char test_env_foo[] = "FOO=bar";
static char test_env_empty[] = "EMPTY=";
static char *test_env_vector[] = { test_env_foo, test_env_empty, NULL };
static const struct cm_strv test_env = { .v = test_env_vector, .n = 2 };
static const struct cm_caller test_caller = {
	.cwd = "/srv/app",
	.home = "/home/alice",
	.env = &test_env,
};

/* "key=value" of each key that a source named, then "-- ARG...", separated by blanks. */
static inline char *test_dump(const struct cm_spec *spec, const struct cm_origins *origins)
{
	struct cm_buf out;

	cm_buf_init(&out, 1U << 20);
	for (unsigned int key = 0; key < CM_KEY_COUNT; key++) {
		const struct cm_key_info *info = cm_key_info((enum cm_key)key);
		size_t n = cm_key_count_values(info, spec);

		for (size_t i = 0; origins->of[key].n > 0 && i < n; i++) {
			cm_buf_printf(&out, "%s%s=", out.len ? " " : "", info->name);
			cm_key_format(info, spec, i, &out);
		}
	}
	for (size_t i = 0; i < spec->argv.n; i++)
		cm_buf_printf(&out, "%s%s", i == 0 ? (out.len ? " -- " : "-- ") : " ",
			      spec->argv.v[i]);
	if (!out.data)
		cm_buf_puts(&out, "");
	assert_int_equal(cm_buf_status(&out), CM_OK);
	return cm_buf_take(&out);
}

#endif
