/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of single files, for others than this client. */
#include "providers/e2b/url.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "providers/e2b/files.h"
#include "runtime/base/alloc.h"
#include "runtime/base/base64.h"
#include "runtime/base/fd.h"
#include "runtime/base/sha256.h"

/* the end of the year 9999: no date can be written of what is later */
#define LAST_MS INT64_C(253402300799999)

/* --- the text ------------------------------------------------------------------------------------ */

static void put_signature(struct cm_buf *out, const struct cm_e2b_url *url)
{
	CM_AUTO_BUF struct cm_buf code = { .max = 64 };
	uint8_t digest[CM_SHA256_SIZE];
	char end[24] = "";
	char *text;

	if (url->end_s != 0)
		(void)snprintf(end, sizeof(end), ":%" PRId64, url->end_s);
	text = cm_asprintf("%s:%s:%s:%s%s", url->path, url->is_write ? "write" : "read",
			   url->user ? url->user : "", url->token, end);
	if (!text) {
		out->has_failed = true;
		return;
	}
	cm_sha256(text, strlen(text), digest);
	cm_free_secret(&text);
	cm_base64_encode(&code, digest, sizeof(digest), false);
	if (cm_buf_status(&code) < 0) {
		out->has_failed = true;
		return;
	}
	cm_buf_puts(out, "&signature=v1_");
	cm_http_escape(out, code.data);
	if (url->end_s != 0)
		cm_buf_printf(out, "&signature_expiration=%" PRId64, url->end_s);
}

char *cm_e2b_url_make(const struct cm_e2b_url *url)
{
	CM_AUTO_BUF struct cm_buf out = { .max = 64UL * 1024 };

	cm_buf_puts(&out, url->base);
	cm_buf_puts(&out, "/files?path=");
	cm_http_escape(&out, url->path);
	if (url->user) {
		cm_buf_puts(&out, "&username=");
		cm_http_escape(&out, url->user);
	}
	if (url->token)
		put_signature(&out, url);
	return cm_buf_take(&out);
}

/* --- of a session -------------------------------------------------------------------------------- */

/* Rounded down: it ends no later than was asked for. */
static int find_end(int64_t now_ms, uint64_t lifetime_ms, int64_t *ret_s, struct cm_error *err)
{
	if (lifetime_ms > 0 && (now_ms > LAST_MS || lifetime_ms > (uint64_t)(LAST_MS - now_ms))) {
		(void)cm_error_set(err, CM_E_INVALID, 0,
				   "an address cannot end after the year 9999");
		cm_error_hint(err, "without a lifetime it has no end");
		return CM_E_INVALID;
	}
	*ret_s = lifetime_ms > 0 ? (now_ms + (int64_t)lifetime_ms) / 1000 : 0;
	return CM_OK;
}

/* A sandbox that was made without a token lets everybody read and write. */
static int check_unsigned(const struct cm_e2b_session *s, bool has_end, struct cm_error *err)
{
	if (s->token_header)
		return CM_OK;
	if (has_end) {
		(void)cm_error_set(err, CM_E_UNSUPPORTED, 0,
				   "an address of session '%s' has no end: its sandbox has no "
				   "token to sign with",
				   s->base.id);
		cm_error_hint(err, "without a lifetime it has an address that is not signed");
		return CM_E_UNSUPPORTED;
	}
	/* there, a header would say which sandbox it is, or else the signature */
	if (cm_e2b_of(&s->base)->places.sandbox_url) {
		(void)cm_error_set(err, CM_E_UNSUPPORTED, 0,
				   "'E2B_SANDBOX_URL' is of all sandboxes, and that of session "
				   "'%s' has no token that would tell it from others",
				   s->base.id);
		cm_error_hint(err, "'casemate file read' and 'casemate file write' pass its "
				   "content on");
		return CM_E_UNSUPPORTED;
	}
	return CM_OK;
}

int cm_e2b_file_url(struct cm_session *session, const char *path, uint32_t flags,
		    uint64_t lifetime_ms, const struct cm_call *call, char **ret,
		    int64_t *ret_end_ms, struct cm_error *err)
{
	struct cm_e2b_session *s = (struct cm_e2b_session *)(void *)session;
	const struct cm_e2b_places *places = &cm_e2b_of(session)->places;
	CM_AUTO_FREE char *place = cm_e2b_place(s, path);
	CM_AUTO_FREE char *base = NULL;
	struct cm_e2b_url url = { .path = place,
				  .user = s->is_root ? "root" : NULL,
				  .is_write = (flags & CM_URL_WRITE) != 0 };
	char *text;
	int r = place ? cm_e2b_check_path(place, err) : cm_e2b_no_memory(err);

	if (r == CM_OK)
		r = cm_e2b_session_reach(s, call, err);
	if (r == CM_OK)
		r = check_unsigned(s, lifetime_ms > 0, err);
	/* after what may have taken its time */
	if (r == CM_OK)
		r = find_end(cm_e2b_now_ms(s), lifetime_ms, &url.end_s, err);
	if (r < 0)
		return r;
	base = cm_e2b_file_base(places, s->domain, s->sandbox_id);
	url.base = base;
	url.token = cm_e2b_session_token(s);
	text = base ? cm_e2b_url_make(&url) : NULL;
	if (!text)
		return cm_e2b_no_memory(err);
	*ret = text;
	*ret_end_ms = 0;
	if (url.end_s != 0)
		*ret_end_ms = url.end_s * 1000 - cm_e2b_of(session)->clock_ahead_ms;
	return CM_OK;
}
