/* SPDX-License-Identifier: Apache-2.0 */
#include "providers/local/ssh_config.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "runtime/base/fd.h"
#include "runtime/base/num.h"
#include "runtime/base/text.h"

#define VALUE_MAX 4096
#define IDENTITIES_MAX 16

struct reader {
	struct cm_ssh_config *c;
	const char *host;
	/* the lines at hand are of a Host that is this one */
	bool is_ours;
};

void cm_ssh_config_clear(struct cm_ssh_config *c)
{
	free(cm_ptr_take(&c->host_name));
	free(cm_ptr_take(&c->user));
	c->port = 0;
	cm_strv_clear(&c->identities);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* The next word, in quotes or not; false at the end, or where a quote is not closed. */
static bool take_word(const char **at, char *word, size_t size)
{
	const char *s = *at + strspn(*at, " \t");
	size_t n;

	if (*s == '\0' || *s == '#')
		return false;
	if (*s == '"') {
		s++;
		n = strcspn(s, "\"");
		if (s[n] != '"')
			return false;
		*at = s + n + 1;
	} else {
		n = strcspn(s, " \t");
		*at = s + n;
	}
	if (n == 0 || n >= size)
		return false;
	memcpy(word, s, n);
	word[n] = '\0';
	return true;
}

/* "KEYWORD VALUE", "KEYWORD=VALUE", "KEYWORD = VALUE": at the value then */
static bool take_keyword(const char **at, char *word, size_t size)
{
	const char *s = *at + strspn(*at, " \t");
	size_t n = strcspn(s, " \t=");

	if (n == 0 || *s == '#' || n >= size)
		return false;
	memcpy(word, s, n);
	word[n] = '\0';
	s += n;
	s += strspn(s, " \t");
	if (*s == '=')
		s++;
	*at = s;
	return true;
}

/* One pattern that excludes it is enough for it to be out. */
static bool is_host_in(const char *at, const char *host)
{
	char pattern[VALUE_MAX];
	bool is_in = false;

	while (take_word(&at, pattern, sizeof(pattern))) {
		bool is_out = pattern[0] == '!';

		if (!cm_text_matches(pattern + is_out, host))
			continue;
		if (is_out)
			return false;
		is_in = true;
	}
	return is_in;
}

/* Without its tokens; one that means what is not known here makes the value none. */
static int expand(const char *value, const char *host, char **ret)
{
	CM_AUTO_BUF struct cm_buf out = { 0 };

	cm_buf_init(&out, VALUE_MAX);
	for (; *value != '\0'; value++) {
		if (*value != '%')
			cm_buf_putc(&out, *value);
		else if (*++value == 'h')
			cm_buf_puts(&out, host);
		else if (*value == '%')
			cm_buf_putc(&out, '%');
		else
			return CM_OK;
	}
	if (cm_buf_status(&out) < 0)
		return cm_buf_status(&out) == CM_E_LIMIT ? CM_OK : CM_E_NOMEM;
	*ret = cm_buf_take(&out);
	return *ret ? CM_OK : CM_E_NOMEM;
}

static bool is_plain(const char *value)
{
	for (const char *p = value; *p != '\0'; p++) {
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			return false;
	}
	/* to whoever gets it a dash is an option's */
	return value[0] != '-';
}

static int take_value(struct reader *r, const char *keyword, const char *value)
{
	struct cm_ssh_config *c = r->c;
	uint64_t port;

	if (!is_plain(value))
		return CM_OK;
	if (strcasecmp(keyword, "HostName") == 0)
		return c->host_name ? CM_OK : expand(value, r->host, &c->host_name);
	if (strcasecmp(keyword, "User") == 0 && !c->user) {
		c->user = cm_strdup(value);
		return c->user ? CM_OK : CM_E_NOMEM;
	}
	if (strcasecmp(keyword, "Port") == 0 && c->port == 0 &&
	    cm_parse_u64(value, "Port", 1, 65535, &port, NULL) == CM_OK)
		c->port = (unsigned int)port;
	else if (strcasecmp(keyword, "IdentityFile") == 0 && c->identities.n < IDENTITIES_MAX &&
		 strcasecmp(value, "none") != 0)
		return cm_strv_add(&c->identities, value);
	return CM_OK;
}

static int take_line(struct reader *r, const char *line)
{
	char keyword[64];
	char value[VALUE_MAX];

	if (!take_keyword(&line, keyword, sizeof(keyword)))
		return CM_OK;
	if (strcasecmp(keyword, "Match") == 0) {
		r->is_ours = false;
		return CM_OK;
	}
	if (strcasecmp(keyword, "Host") == 0) {
		r->is_ours = is_host_in(line, r->host);
		return CM_OK;
	}
	if (!r->is_ours || !take_word(&line, value, sizeof(value)))
		return CM_OK;
	return take_value(r, keyword, value);
}

int cm_ssh_config_add(struct cm_ssh_config *c, const char *text, size_t len, const char *host,
		      struct cm_error *err)
{
	struct reader r = { .c = c, .host = host, .is_ours = true };
	const char *end = text + len;
	char line[2 * VALUE_MAX];

	for (const char *at = text; at < end;) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *stop = newline ? newline : end;
		size_t n = (size_t)(stop - at);

		while (n > 0 && (is_blank(at[n - 1]) || at[n - 1] == '\r'))
			n--;
		/* what is too long, or no text, is nothing of ours */
		if (n < sizeof(line) && !memchr(at, '\0', n)) {
			memcpy(line, at, n);
			line[n] = '\0';
			if (take_line(&r, line) != CM_OK)
				return cm_error_set(err, CM_E_NOMEM, 0,
						    "no memory for ssh's configuration");
		}
		at = stop + 1;
	}
	return CM_OK;
}
