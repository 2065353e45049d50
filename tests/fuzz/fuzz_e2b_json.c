/* SPDX-License-Identifier: Apache-2.0 */
/* JSON of the service and of the agent: what is taken out of it is what it has to be. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "providers/e2b/e2b_internal.h"
#include "providers/e2b/entry.h"
#include "providers/e2b/texts.h"
#include "tests/fuzz/fuzz.h"

static void check_header(const char *line)
{
	require(strpbrk(line, "\r\n") == NULL);
}

static void adopt(const struct cm_json *v)
{
	struct cm_e2b e = { .places = { .domain = (char *)"e2b.app" } };
	struct cm_e2b_session *s = NULL;

	require(cm_e2b_session_new(&e, "fuzz", &s, NULL) == CM_OK);
	if (cm_e2b_session_adopt(s, v, NULL) == CM_OK) {
		require(cm_e2b_is_sandbox_id(s->sandbox_id));
		check_header(s->id_header);
		if (s->token_header)
			check_header(s->token_header);
		require(strncmp(s->agent_url, "https://", 8) == 0);
		require(strpbrk(s->agent_url + 8, "/?#@ \r\n") == NULL);
	}
	cm_e2b_session_release(&s->base);
}

static void entries(const struct cm_json *v)
{
	long len = cm_e2b_entries_prefix(v);
	struct cm_path_info info;

	for (const struct cm_json *child = v->first_child; child; child = child->next) {
		if (cm_e2b_entry_read(child, &info, NULL) != CM_OK)
			continue;
		require(info.path[0] != '\0' && info.mode <= 0777 && info.type >= CM_PATH_FILE &&
			info.type <= CM_PATH_OTHER);
		require(len < 0 || strlen(info.path) > (size_t)len);
	}
}

static void watch(const char *text, size_t len)
{
	enum cm_e2b_watch_kind what = CM_E2B_WATCH_OTHER;
	enum cm_watch_kind kind = CM_WATCH_READY;
	char *name = NULL;

	if (cm_e2b_watch_read(text, len, &what, &kind, &name, NULL) == CM_OK)
		require((name != NULL) == (what == CM_E2B_WATCH_EVENT));
	free(name);
}

static void words(const char *text)
{
	int64_t ns = 0;
	const char *base = NULL;
	size_t len = 0;
	char *parent = cm_e2b_parent(text);
	int sig = cm_e2b_signal_of(text);

	require(parent && parent[0] != '\0' && strlen(parent) <= strlen(text) + 1);
	free(parent);
	if (cm_e2b_base(text, &base, &len))
		require(len > 0 && memchr(base, '/', len) == NULL);
	require(sig >= 0 && sig <= 64);
	if (cm_e2b_time(text, &ns))
		require(ns > -INT64_C(86400000000000));
	(void)cm_e2b_is_version(text, 0, 5, 7);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cm_json_doc *doc = NULL;
	char *text = malloc(size + 1);

	require(text != NULL);
	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	words(text);
	watch(text, size);
	if (cm_json_parse(text, size, "input", 0, &doc, NULL) == CM_OK) {
		adopt(cm_json_root(doc));
		entries(cm_json_root(doc));
		require(cm_e2b_error_of(cm_json_root(doc), "do it", NULL) < 0);
	}
	cm_json_free(doc);
	free(text);
	return 0;
}
