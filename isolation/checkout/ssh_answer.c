/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/checkout/ssh_answer.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/buf.h"
#include "runtime/base/fd.h"
#include "runtime/base/giturl.h"

/* JSON's escapes of what is ASCII; of the others no address is made. A NUL would end the text. */
static void unescape(const char *text, size_t len, struct cm_buf *out)
{
	for (size_t i = 0; i < len; i++) {
		char hex[3] = "";
		char c = text[i];

		if (c == '\\' && i + 5 < len && strncmp(text + i + 1, "u00", 3) == 0) {
			memcpy(hex, text + i + 4, 2);
			c = (char)strtoul(hex, NULL, 16);
			i += 5;
		} else if (c == '\\' && i + 1 < len) {
			c = text[++i];
		}
		if (c == '\0')
			c = ' ';
		cm_buf_putc(out, c);
	}
}

/* What begins with "http:". */
static bool is_here(const char *text)
{
	const char *host = text + strlen("http:");
	CM_AUTO_FREE char *address = NULL;
	struct cm_giturl url = { 0 };
	bool is_safe;

	if (strncmp(host, "//", 2) != 0)
		return false;
	host += 2;
	address = cm_asprintf("http://%.*s/x", (int)strcspn(host, "/?#\""), host);
	is_safe =
		address && cm_giturl_parse(address, &url, NULL) == CM_OK && cm_giturl_is_safe(&url);
	cm_giturl_clear(&url);
	return is_safe;
}

bool cm_ssh_answer_is_safe(const char *answer, size_t len)
{
	CM_AUTO_BUF struct cm_buf text = { 0 };
	bool is_safe;

	cm_buf_init(&text, len + 1);
	/* at once: growing leaves copies behind */
	cm_buf_reserve(&text, len + 1);
	unescape(answer, len, &text);
	is_safe = cm_buf_status(&text) == CM_OK;
	for (const char *at = text.data; is_safe && at && (at = strcasestr(at, "http:")); at++)
		is_safe = is_here(at);
	if (text.data)
		explicit_bzero(text.data, text.len);
	return is_safe;
}
