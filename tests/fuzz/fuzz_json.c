/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON reader on any bytes: no crash, bounds kept, and what was read can be written and read
 * again to the same text.  The first byte chooses the flags.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/json.h"
#include "runtime/base/json_copy.h"
#include "runtime/base/json_write.h"
#include "tests/fuzz/fuzz.h"
#include "tests/helpers/utf8.h"

#define OUT_MAX (16UL * 1024 * 1024)

static void check_strings(const struct cm_json *v)
{
	require(v->type != CM_JSON_STRING || is_utf8(v->u.string, strlen(v->u.string)));
	for (const struct cm_json *c = v->first_child; c; c = c->next)
		check_strings(c);
}

static void write_doc(const struct cm_json_doc *doc, struct cm_buf *out, bool is_pretty)
{
	struct cm_json_writer w;

	cm_buf_init(out, OUT_MAX);
	cm_jw_init(&w, out, is_pretty);
	check_strings(cm_json_root(doc));
	cm_json_copy(&w, cm_json_root(doc));
	require(cm_buf_status(out) == CM_OK);
	require(w.depth == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_json_doc *doc = NULL;
	struct cm_json_doc *again = NULL;
	struct cm_buf first;
	struct cm_buf second;
	int r;

	if (size == 0)
		return 0;
	r = cm_json_parse((const char *)data + 1, size - 1, "input",
			  data[0] & 1 ? CM_JSON_COMMENTS : 0, &doc, &err);
	if (r != CM_OK) {
		require(!doc && err.code == r && err.msg[0] && err.hint[0]);
		return 0;
	}
	write_doc(doc, &first, (data[0] & 2) != 0);
	require(cm_json_parse(first.data, first.len, "again", 0, &again, &err) == CM_OK);
	write_doc(again, &second, (data[0] & 2) != 0);
	require(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
	cm_json_free(doc);
	cm_json_free(again);
	cm_buf_clear(&first);
	cm_buf_clear(&second);
	return 0;
}
