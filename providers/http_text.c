/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of HTTP: escapes, header lines, and the error that a status stands for. */
#include <curl/curl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "providers/http_internal.h"
#include "runtime/base/alloc.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/num.h"
#include "runtime/base/text.h"

#define DIGITS "0123456789"
/* the small ones after the others */
#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
/* what a service says of itself, in a message */
#define SAID_MAX 160
/* the year 2200: no clock is wrong by that much, and what says so is not a clock */
#define DATE_MAX INT64_C(7258118400)

void cm_http_escape(struct cm_buf *out, const char *text)
{
	for (; *text; text++) {
		if (strchr(LETTERS DIGITS "-._~", *text))
			cm_buf_putc(out, *text);
		else
			cm_buf_printf(out, "%%%02X", (unsigned char)*text);
	}
}

/* --- headers ---------------------------------------------------------------------------------- */

const char *cm_http_header_fault(const char *line)
{
	/* how long a message is, is libcurl's to say: two that disagree are two requests */
	static const char *const ours[] = { "content-length:", "transfer-encoding:", "expect:" };
	size_t name_len = strspn(line, LETTERS DIGITS "!#$%&'*+-.^_`|~");

	if (name_len == 0 || line[name_len] != ':')
		return "its name has a character that no name has";
	for (const char *s = line + name_len; *s; s++) {
		if ((unsigned char)*s < 0x20 ? *s != '\t' : *s == 0x7f)
			return "its value has a line break or another control character";
	}
	for (size_t i = 0; i < CM_ARRAY_SIZE(ours); i++) {
		if (strncasecmp(line, ours[i], strlen(ours[i])) == 0)
			return "it follows from what is sent";
	}
	return NULL;
}

/* Not by the locale. */
static char lower(char c)
{
	static const char letters[] = LETTERS;

	if (c < 'A' || c > 'Z')
		return c;
	return letters[c - 'A' + 26];
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

int cm_http_answer_add(struct cm_http_answer *answer, const char *line, size_t len)
{
	const char *colon = memchr(line, ':', len);
	const char *value;
	size_t name_len;
	char *own;

	/* what begins with a blank goes on with the line before, which nobody sends any more */
	if (!colon || colon == line || is_blank(line[0]))
		return CM_OK;
	name_len = (size_t)(colon - line);
	value = colon + 1;
	len -= name_len + 1;
	while (len > 0 && is_blank(value[0])) {
		value++;
		len--;
	}
	while (len > 0 && (is_blank(value[len - 1]) || value[len - 1] == '\r'))
		len--;
	own = cm_asprintf("%.*s: %.*s", (int)name_len, line, (int)len, value);
	for (size_t i = 0; own && i < name_len; i++)
		own[i] = lower(own[i]);
	return cm_strv_add_own(&answer->headers, own);
}

const char *cm_http_header(const struct cm_http_answer *answer, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < answer->headers.n; i++) {
		const char *line = answer->headers.v[i];

		if (strncmp(line, name, len) == 0 && line[len] == ':')
			return line + len + 2;
	}
	return NULL;
}

/* -1: it does not say. */
static time_t date_of(const struct cm_http_answer *answer)
{
	const char *date = cm_http_header(answer, "date");

	return date ? curl_getdate(date, NULL) : (time_t)-1;
}

static int64_t clock_ahead_ms(const struct cm_http_answer *answer)
{
	time_t date = date_of(answer);
	int64_t ahead_ms;

	if (date <= 0 || date > DATE_MAX)
		return 0;
	/* of the second that it names, the middle */
	ahead_ms = (int64_t)date * 1000 + 500 - cm_clock_real_ms();
	return ahead_ms > -CM_HTTP_CLOCK_MS && ahead_ms < CM_HTTP_CLOCK_MS ? 0 : ahead_ms;
}

void cm_http_answer_settle(struct cm_http_answer *answer)
{
	static const char *const ids[] = { "x-request-id", "x-amzn-requestid", "cf-ray",
					   "x-trace-id" };
	const char *value = cm_http_header(answer, "content-type");
	size_t n = 0;

	for (; value && *value && !strchr("; \t", *value); value++) {
		if (n + 1 < sizeof(answer->content_type) && *value > 0x20 && *value < 0x7f)
			answer->content_type[n++] = lower(*value);
	}
	answer->content_type[n] = '\0';

	n = 0;
	for (size_t i = 0; i < CM_ARRAY_SIZE(ids) && n == 0; i++) {
		value = cm_http_header(answer, ids[i]);
		for (; value && *value; value++) {
			if (n + 1 < sizeof(answer->request_id) && *value > 0x20 && *value < 0x7f)
				answer->request_id[n++] = *value;
		}
	}
	answer->request_id[n] = '\0';
	/* now, as the rest of it may take its time */
	answer->clock_ahead_ms = clock_ahead_ms(answer);
}

void cm_http_answer_clear(struct cm_http_answer *answer)
{
	/* tokens come in both */
	for (size_t i = 0; i < answer->headers.n; i++)
		cm_free_secret(&answer->headers.v[i]);
	if (answer->body.data)
		explicit_bzero(answer->body.data, answer->body.capacity);
	cm_strv_clear(&answer->headers);
	cm_buf_clear(&answer->body);
	*answer = (struct cm_http_answer){ 0 };
}

int64_t cm_http_retry_after_ms(const struct cm_http_answer *answer, int64_t real_ms)
{
	const char *value = cm_http_header(answer, "retry-after");
	int64_t seconds = 0;
	time_t until;
	time_t now;

	if (!value || *value == '\0')
		return -1;
	if (value[strspn(value, DIGITS)] == '\0') {
		/* one more digit is more than a day either way */
		for (size_t left = 9; left > 0 && *value; left--)
			seconds = seconds * 10 + (*value++ - '0');
		return seconds * 1000;
	}
	until = curl_getdate(value, NULL);
	if (until == (time_t)-1)
		return -1;
	/* by the clock of who sent it, where that is known */
	now = date_of(answer);
	if (now == (time_t)-1)
		now = (time_t)(real_ms / 1000);
	return until > now ? (int64_t)(until - now) * 1000 : 0;
}

/* --- what a status stands for ----------------------------------------------------------------- */

static int code_of_status(int status)
{
	switch (status) {
	case 401:
	case 403:
		return CM_E_DENIED;
	case 404:
	case 410:
		return CM_E_NOT_FOUND;
	case 409:
		return CM_E_BUSY;
	case 400:
	case 413:
	case 422:
		return CM_E_INVALID;
	case 408:
	case 504:
		return CM_E_TIMEOUT;
	case 429:
		return CM_E_LIMIT;
	default:
		return CM_E_REMOTE;
	}
}

/* " (MESSAGE)", which is cut so that the rest of the error has room. */
static void add_said(struct cm_buf *out, const char *message)
{
	CM_AUTO_BUF struct cm_buf inert = { .max = 16 * SAID_MAX };
	size_t len = message ? strlen(message) : 0;
	size_t all;

	if (len == 0)
		return;
	cm_text_escape(&inert, message, cm_text_fitting(message, len, SAID_MAX), false);
	if (cm_buf_status(&inert) != CM_OK)
		return;
	all = cm_text_fitting(inert.data, inert.len, SAID_MAX);
	cm_buf_puts(out, " (");
	cm_buf_append(out, inert.data, all);
	cm_buf_puts(out, all < inert.len || inert.len < len ? "...)" : ")");
}

int cm_http_error(const struct cm_http_request *request, const struct cm_http_answer *answer,
		  const char *what, const char *message, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf said = { .max = 4 * SAID_MAX + 16 };
	struct cm_http_url url = { .authority = "" };
	int64_t after_ms = cm_http_retry_after_ms(answer, cm_clock_real_ms());
	int code = code_of_status(answer->status);
	char text[32];

	/* it was sent, so it can be read */
	(void)cm_http_url_read(request->url, &url);
	add_said(&said, message);
	cm_error_set(err, code, 0, "cannot %s: %.*s says %d%s%s%s", what,
		     url.authority_len > 150 ? 150 : (int)url.authority_len, url.authority,
		     answer->status, said.data && !said.has_failed ? said.data : "",
		     answer->request_id[0] ? ", request " : "", answer->request_id);
	if (after_ms > 0) {
		cm_format_duration((uint64_t)after_ms, text, sizeof(text));
		cm_error_hint(err, "it asks to wait for %s: try again then", text);
	}
	return code;
}
