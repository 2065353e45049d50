/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/checkout/ssh_answer.h"

#include "runtime/base/giturl.h"
#include "runtime/base/json.h"
#include "runtime/base/json_write.h"

#define HEADER "Authorization"

/* No user name: git-lfs would ask again and again with it. */
static int check_address(const char *text, bool may_be_here)
{
	struct cm_giturl url = { 0 };
	int r = cm_giturl_parse(text, &url, NULL);

	if (r == CM_OK && (url.user || url.password))
		r = CM_E_PROTOCOL;
	if (r == CM_OK && url.kind != CM_GITURL_HTTPS)
		r = url.kind == CM_GITURL_HTTP && may_be_here && cm_giturl_is_safe(&url)
			    ? CM_OK
			    : CM_E_DENIED;
	cm_giturl_clear(&url);
	return r == CM_OK || r == CM_E_NOMEM || r == CM_E_DENIED ? r : CM_E_PROTOCOL;
}

static void put(struct cm_json_writer *w, const struct cm_json *root, const char *href)
{
	const char *authorization = cm_json_str(cm_json_get(root, "header"), HEADER, NULL);
	const char *until = cm_json_str(root, "expires_at", NULL);
	int64_t seconds = cm_json_int(root, "expires_in", 0);

	cm_jw_object(w);
	if (href)
		cm_jw_kstring(w, "href", href);
	if (authorization) {
		cm_jw_key(w, "header");
		cm_jw_object(w);
		cm_jw_kstring(w, HEADER, authorization);
		cm_jw_end_object(w);
	}
	if (until)
		cm_jw_kstring(w, "expires_at", until);
	if (seconds != 0)
		cm_jw_kint(w, "expires_in", seconds);
	cm_jw_end_object(w);
}

int cm_ssh_answer_make(const char *answer, size_t len, bool may_be_here, struct cm_buf *out)
{
	struct cm_json_doc *doc = NULL;
	struct cm_json_writer w;
	const struct cm_json *root;
	const char *href;
	int r;

	/* no answer: what is asked is the address that git-lfs has */
	if (len == 0)
		return CM_OK;
	r = cm_json_parse(answer, len, "answer", 0, &doc, NULL);
	if (r < 0)
		return r == CM_E_NOMEM ? r : CM_E_PROTOCOL;
	root = cm_json_root(doc);
	href = cm_json_str(root, "href", NULL);
	if (root->type != CM_JSON_OBJECT)
		r = CM_E_PROTOCOL;
	else if (href)
		r = check_address(href, may_be_here);
	cm_jw_init(&w, out, false);
	if (r == CM_OK)
		put(&w, root, href);
	cm_json_free(doc);
	return r < 0 ? r : cm_buf_status(out);
}
