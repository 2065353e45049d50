/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of the platform: whatever is in them, what comes out holds. The first byte says of what. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "providers/platform/answers.h"
#include "providers/platform/template.h"
#include "runtime/base/fd.h"
#include "runtime/base/json_copy.h"
#include "tests/fuzz/fuzz.h"

#define OUT_MAX (4UL * 1024 * 1024)

static void sandbox(const char *text, size_t len)
{
	struct cm_platform_sandbox s = { 0 };

	if (cm_platform_sandbox_read(text, len, &s, NULL) < 0) {
		require(s.id == NULL && s.resource_id == NULL && s.instance_url == NULL);
		return;
	}
	require(s.id && s.id[0] != '\0' && strlen(s.id) <= CM_PLATFORM_NAME_MAX);
	for (const char *c = s.id; *c; c++)
		require(*c > ' ' && *c <= '~');
	cm_platform_sandbox_clear(&s);
}

static void lease(const char *text, size_t len)
{
	struct cm_platform_lease l = { 0 };

	if (cm_platform_lease_read(text, len, &l, NULL) < 0) {
		require(l.jwt == NULL);
		return;
	}
	require(l.jwt && l.provider && l.endpoint && l.subprotocol && l.expires_ms >= 0);
	cm_platform_lease_clear(&l);
}

static void words(const char *text, size_t len)
{
	struct cm_platform_checkpoint c = { 0 };
	struct cm_platform_build b = { 0 };

	if (cm_platform_checkpoint_read(text, len, &c, NULL) == CM_OK) {
		require(c.status >= CM_PLATFORM_CAPTURED && c.status <= CM_PLATFORM_SKIPPED);
		free(c.name);
	}
	if (cm_platform_build_read(text, len, &b, NULL) == CM_OK) {
		require(b.status >= CM_PLATFORM_READY && b.status <= CM_PLATFORM_FAILED);
		require(b.retry_after_ms <= 60000);
		free(b.error);
	}
}

static void commands(const char *text, size_t len)
{
	struct cm_platform_result result = { 0 };
	struct cm_platform_line line = { 0 };

	if (cm_platform_result_read(text, len, &result, NULL) == CM_OK)
		require(result.exit_code >= 0 && result.exit_code <= 255);
	cm_platform_result_clear(&result);
	if (cm_platform_message_read(text, len, &line) == CM_OK) {
		require(line.data == NULL);
		require(line.exit_code >= 0 && line.exit_code <= 255);
	}
	if (cm_platform_line_read(text, len, &line) == CM_OK) {
		require((line.data != NULL) == (line.kind >= CM_PLATFORM_LINE_STDOUT));
		require(line.exit_code >= 0 && line.exit_code <= 255);
		free(line.data);
	}
}

static void others(const char *text, size_t len)
{
	char *copy = malloc(len + 1);

	require(copy != NULL);
	if (len > 0)
		memcpy(copy, text, len);
	copy[len] = '\0';
	require(cm_platform_time(copy) >= 0);
	free(copy);
	free(cm_platform_error_text(text, len));
}

/* One that was taken is taken again as it is written. */
static void template(const char *text, size_t len)
{
	struct cm_json_doc *doc = NULL;
	struct cm_json_doc *again = NULL;
	struct cm_json_writer w;
	struct cm_buf out;
	int r;

	if (cm_platform_template_check(text, len, "t", &doc, NULL) < 0) {
		require(doc == NULL);
		return;
	}
	cm_buf_init(&out, OUT_MAX);
	cm_jw_init(&w, &out, false);
	cm_json_copy(&w, cm_json_root(doc));
	require(cm_buf_status(&out) == CM_OK);
	r = cm_platform_template_check(out.data, out.len, "t", &again, NULL);
	/* escapes may make it longer than it may be */
	require(r == CM_OK || (r == CM_E_LIMIT && out.len > CM_PLATFORM_DEFINITION_MAX));
	cm_json_free(again);
	cm_buf_clear(&out);
	cm_json_free(doc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const readers[])(const char *text,
				       size_t len) = { sandbox,	 lease,	 words,
						       commands, others, template };
	const char *text = (const char *)data + 1;

	if (size > 0)
		readers[data[0] % CM_ARRAY_SIZE(readers)](text, size - 1);
	return 0;
}
