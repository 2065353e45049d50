/* SPDX-License-Identifier: Apache-2.0 */
/* What went wrong with a request: the message, and whether it may be sent again. */
#include <inttypes.h>
#include <string.h>

#include "providers/http_internal.h"
#include "runtime/base/fd.h"
#include "runtime/base/num.h"
#include "runtime/base/text.h"

#define TEXT_MAX 160

/* libcurl's words have some of the peer's in them. */
static void describe(const struct cm_http_transfer *t, struct cm_buf *out)
{
	size_t len = strnlen(t->text, sizeof(t->text));

	cm_buf_init(out, 16 * TEXT_MAX);
	/* a proxy that it cannot use it shows whole, with its password */
	if (strstr(t->text, "Unsupported proxy") || memchr(t->text, '@', len)) {
		cm_buf_puts(out, "the proxy is none that can be used");
		return;
	}
	if (len == 0) {
		cm_buf_puts(out, curl_easy_strerror(t->result));
		return;
	}
	while (len > 0 && (t->text[len - 1] == '\n' || t->text[len - 1] == '.'))
		len--;
	cm_text_escape(out, t->text, cm_text_fitting(t->text, len, TEXT_MAX), false);
}

static const char *text_of(const struct cm_buf *text)
{
	return text->data && !text->has_failed ? text->data : "no memory for the reason";
}

static bool is_tls_failure(CURLcode code)
{
	static const CURLcode codes[] = {
		CURLE_SSL_CONNECT_ERROR,     CURLE_PEER_FAILED_VERIFICATION,
		CURLE_SSL_CERTPROBLEM,	     CURLE_SSL_CIPHER,
		CURLE_SSL_CACERT_BADFILE,    CURLE_SSL_ISSUER_ERROR,
		CURLE_SSL_INVALIDCERTSTATUS, CURLE_SSL_ENGINE_INITFAILED,
	};

	for (size_t i = 0; i < CM_ARRAY_SIZE(codes); i++) {
		if (code == codes[i])
			return true;
	}
	return false;
}

/* --- messages --------------------------------------------------------------------------------- */

static int tls_error(const struct cm_http_transfer *t, const char *text, struct cm_error *err)
{
	cm_error_set(err, CM_E_REMOTE, 0, "no trusted connection to '%s': %s", t->host, text);
	if (t->result == CURLE_PEER_FAILED_VERIFICATION)
		cm_error_hint(err, "check the address and this machine's clock; certificates of an "
				   "authority of one's own are named by SSL_CERT_FILE");
	else if (t->result == CURLE_SSL_CACERT_BADFILE)
		cm_error_hint(err, "name a PEM file in SSL_CERT_FILE, or install ca-certificates");
	else
		cm_error_hint(err, "check that the address is one of https, and what is between");
	return CM_E_REMOTE;
}

static int connection_error(const struct cm_http_transfer *t, const char *text,
			    struct cm_error *err)
{
	bool is_late = t->result == CURLE_OPERATION_TIMEDOUT;
	int code = is_late ? CM_E_TIMEOUT : CM_E_REMOTE;

	if (is_late)
		cm_error_set(err, code, 0, "no connection to '%s' within %d s", t->host,
			     CM_HTTP_CONNECT_MS / 1000);
	else
		cm_error_set(err, code, 0, "no connection to '%s': %s", t->host, text);
	cm_error_hint(err, "check the address, the network, and the proxy in https_proxy and "
			   "no_proxy");
	return code;
}

static int redirect_error(const struct cm_http_transfer *t, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf name = { .max = 1024 };
	const char *to = cm_http_header(&t->answer, "location");
	struct cm_http_url url;

	/* without what may be a signature; what is no whole address stays where it is */
	if (to && !cm_http_url_read(to, &url))
		cm_text_escape(&name, url.authority,
			       url.authority_len > 150 ? 150 : url.authority_len, false);
	else if (to && (to[0] != '/' || to[1] == '/'))
		cm_buf_puts(&name, "an address that cannot be read");
	else
		cm_buf_puts(&name, t->host);
	cm_error_set(err, CM_E_PROTOCOL, 0, "'%s' sends us on to '%s' (%d), which is not followed",
		     t->subject, text_of(&name), t->answer.status);
	cm_error_hint(err,
		      "configure the address that it leads to, if that is to get what is sent");
	return CM_E_PROTOCOL;
}

static int silence_error(const struct cm_http_transfer *t, uint32_t ms, const char *what,
			 struct cm_error *err)
{
	char text[32];

	cm_format_duration(ms, text, sizeof(text));
	return cm_error_set(err, CM_E_TIMEOUT, 0, "'%s' %s for %s", t->subject, what, text);
}

static int status_error(const struct cm_http_transfer *t, struct cm_error *err)
{
	return cm_error_set(err, CM_E_PROTOCOL, 0, "'%s' answers %d, which was not asked for",
			    t->subject, t->answer.status);
}

static int fault_error(const struct cm_http_transfer *t, struct cm_error *err)
{
	char size[32];

	switch (t->fault) {
	case CM_HTTP_FAULT_NONE:
	case CM_HTTP_FAULT_NOMEM:
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	case CM_HTTP_FAULT_FILL:
		return cm_error_set(err, CM_E_SYS, t->fault_errno,
				    "cannot read what is sent to '%s'", t->subject);
	case CM_HTTP_FAULT_TAKE:
		return cm_error_set(err, CM_E_SYS, t->fault_errno, "cannot write what '%s' sends",
				    t->subject);
	case CM_HTTP_FAULT_ADDRESS:
		return cm_error_set(err, CM_E_INVALID, 0,
				    "'%s' leads to another machine, and is not https", t->host);
	case CM_HTTP_FAULT_STALE:
		return cm_error_set(err, CM_E_REMOTE, 0, "'%s' was cut off before an answer",
				    t->subject);
	case CM_HTTP_FAULT_STATUS:
		return status_error(t, err);
	case CM_HTTP_FAULT_REDIRECT:
		return redirect_error(t, err);
	case CM_HTTP_FAULT_HEADERS:
		return cm_error_set(
			err, CM_E_LIMIT, 0,
			"the answer of '%s' has more than %lu KiB or %d lines of headers",
			t->subject, CM_HTTP_HEADERS_MAX / 1024, CM_HTTP_HEADERS_MAX_COUNT);
	case CM_HTTP_FAULT_BODY:
		cm_format_size(t->max_bytes, size, sizeof(size));
		return cm_error_set(err, CM_E_LIMIT, 0, "the answer of '%s' has more than %s",
				    t->subject, size);
	case CM_HTTP_FAULT_MUTE:
		return silence_error(t, t->first_byte_ms, "did not answer", err);
	case CM_HTTP_FAULT_SILENT:
		return silence_error(t, t->idle_ms, "sent no more", err);
	}
	return cm_error_set(err, CM_E_BUG, 0, "no such fault: %d", (int)t->fault);
}

/* "Illegal or missing hexadecimal sequence in chunked-encoding" has the code of a reset. */
static bool is_malformed(const struct cm_http_transfer *t)
{
	return t->result == CURLE_UNSUPPORTED_PROTOCOL || t->result == CURLE_WEIRD_SERVER_REPLY ||
	       t->result == CURLE_BAD_CONTENT_ENCODING ||
	       strstr(t->text, "chunked-encoding") != NULL;
}

static int answer_error(const struct cm_http_transfer *t, const char *text, struct cm_error *err)
{
	const char *name = t->answer.request_id[0] ? ", request " : "";
	const char *id = t->answer.request_id;

	if (is_malformed(t))
		return cm_error_set(err, CM_E_PROTOCOL, 0, "'%s' does not answer in HTTP: %s",
				    t->subject, text);
	if (t->is_headed)
		return cm_error_set(err, CM_E_REMOTE, 0, "the answer of '%s' was cut off (%s)%s%s",
				    t->subject, text, name, id);
	return cm_error_set(err, CM_E_REMOTE, 0, "'%s' was cut off before an answer (%s)",
			    t->subject, text);
}

int cm_http_transfer_error(const struct cm_http_transfer *t, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf text = { 0 };

	if (t->fault != CM_HTTP_FAULT_NONE)
		return fault_error(t, err);
	if (!t->is_done)
		return CM_OK;
	/* it says so of a line that is longer than it takes, too */
	if (t->result == CURLE_OUT_OF_MEMORY && t->has_begun && !t->is_headed)
		return cm_error_set(
			err, CM_E_LIMIT, 0,
			"the answer of '%s' has more than %lu KiB of headers, or there is "
			"no memory for them",
			t->subject, CM_HTTP_HEADERS_MAX / 1024);
	if (t->result == CURLE_OUT_OF_MEMORY)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	describe(t, &text);
	if (t->result != CURLE_OK && is_tls_failure(t->result))
		return tls_error(t, text_of(&text), err);
	if (t->result != CURLE_OK && !t->has_begun)
		return connection_error(t, text_of(&text), err);
	if (t->result != CURLE_OK)
		return answer_error(t, text_of(&text), err);
	/* of a connection alone there is no answer */
	if (t->method[0] && !t->is_headed)
		return status_error(t, err);
	return CM_OK;
}

/* --- again? ----------------------------------------------------------------------------------- */

bool cm_http_transfer_may_start_again(const struct cm_http_transfer *t)
{
	long status = 0;

	if (!t->is_done || t->result == CURLE_OK || t->has_begun || t->fault != CM_HTTP_FAULT_NONE)
		return false;
	/* a proxy that says no does so again */
	if (curl_easy_getinfo(t->easy, CURLINFO_HTTP_CONNECTCODE, &status) == CURLE_OK &&
	    status >= 400 && status < 500)
		return false;
	return t->result == CURLE_COULDNT_RESOLVE_HOST || t->result == CURLE_COULDNT_CONNECT ||
	       t->result == CURLE_OPERATION_TIMEDOUT || t->result == CURLE_SSL_CONNECT_ERROR ||
	       t->result == CURLE_RECV_ERROR || t->result == CURLE_SEND_ERROR ||
	       t->result == CURLE_GOT_NOTHING || t->result == CURLE_COULDNT_RESOLVE_PROXY ||
	       t->result == CURLE_PROXY;
}

static bool may_repeat_answered(const struct cm_http_transfer *t)
{
	switch (t->answer.status) {
	case 429:
		return true;
	case 503:
		return t->is_idempotent || cm_http_header(&t->answer, "retry-after") != NULL;
	case 502:
	case 504:
		return t->is_idempotent;
	default:
		return false;
	}
}

static bool is_cut_off(const struct cm_http_transfer *t)
{
	if (t->fault != CM_HTTP_FAULT_NONE)
		return t->fault == CM_HTTP_FAULT_STALE || t->fault == CM_HTTP_FAULT_MUTE ||
		       t->fault == CM_HTTP_FAULT_SILENT;
	return !is_malformed(t) &&
	       (t->result == CURLE_RECV_ERROR || t->result == CURLE_SEND_ERROR ||
		t->result == CURLE_GOT_NOTHING || t->result == CURLE_PARTIAL_FILE);
}

bool cm_http_transfer_may_repeat(const struct cm_http_transfer *t)
{
	if (t->has_asked_fill || t->taken > 0)
		return false;
	if (cm_http_transfer_may_start_again(t))
		return true;
	if (t->is_done && t->result == CURLE_OK && t->fault == CM_HTTP_FAULT_NONE)
		return may_repeat_answered(t);
	return t->is_idempotent && t->has_begun && is_cut_off(t);
}
