/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/checkout/ssh_known.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/base/base64.h"
#include "runtime/base/fd.h"
#include "runtime/base/text.h"

#define KNOWN_HOSTS_MAX (1024UL * 1024)
/* of a key, decoded */
#define KEY_MAX 8192
#define REVOKED "#revoked "

/* Of a key's kind, what it signs with that is still believed; RSA's own name is that of SHA-1. */
static const struct {
	const char *kind;
	const char *algorithms;
} kinds[] = {
	{ "ssh-ed25519", "ssh-ed25519" },
	{ "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp256" },
	{ "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp384" },
	{ "ecdsa-sha2-nistp521", "ecdsa-sha2-nistp521" },
	{ "ssh-rsa", "rsa-sha2-512,rsa-sha2-256" },
};

static bool is_word(const char *word, size_t len, const char *text)
{
	return strlen(text) == len && memcmp(word, text, len) == 0;
}

/* Of "NAME KIND KEY" the kind's row; their number: none. */
static size_t find_kind(const char *line, size_t len)
{
	const char *end = line + len;
	const char *kind = memchr(line, ' ', len);
	const char *stop = kind ? memchr(kind + 1, ' ', (size_t)(end - kind - 1)) : NULL;
	size_t i = 0;

	while (i < CM_ARRAY_SIZE(kinds) &&
	       (!stop || !is_word(kind + 1, (size_t)(stop - kind - 1), kinds[i].kind)))
		i++;
	return i;
}

/* A key begins with its kind and the length of that. Of all names, to be sure. */
static int take_revoked(const char *key, size_t len, struct cm_ssh_known *k, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf bytes = { 0 };
	const uint8_t *p;
	size_t i = 0;

	cm_buf_init(&bytes, KEY_MAX);
	if (!cm_base64_decode(&bytes, key, len) || cm_buf_status(&bytes) < 0 || bytes.len <= 4)
		return cm_error_set(err, CM_E_INVALID, 0, "a revoked host key cannot be read");
	p = (const uint8_t *)bytes.data;
	while (i < CM_ARRAY_SIZE(kinds) &&
	       (p[0] != 0 || p[1] != 0 || p[2] != 0 || p[3] != strlen(kinds[i].kind) ||
		bytes.len <= 4U + p[3] || memcmp(p + 4, kinds[i].kind, p[3]) != 0))
		i++;
	if (i == CM_ARRAY_SIZE(kinds))
		return cm_error_set(err, CM_E_INVALID, 0, "a revoked host key cannot be read");
	cm_buf_printf(&k->lines, "@revoked * %s %.*s\n", kinds[i].kind, (int)len, key);
	return CM_OK;
}

int cm_ssh_known_take(const char *text, struct cm_ssh_known *ret, struct cm_error *err)
{
	bool has[CM_ARRAY_SIZE(kinds)] = { false };
	int r = CM_OK;

	cm_buf_init(&ret->lines, 2 * KNOWN_HOSTS_MAX);
	cm_buf_init(&ret->algorithms, 512);
	while (*text != '\0' && r == CM_OK) {
		size_t len = strcspn(text, "\n");
		size_t kind = find_kind(text, len);

		if (cm_text_has_prefix(text, REVOKED)) {
			r = take_revoked(text + strlen(REVOKED), len - strlen(REVOKED), ret, err);
		} else if (len > 0 && *text != '#' && *text != '@' && kind < CM_ARRAY_SIZE(kinds)) {
			cm_buf_append(&ret->lines, text, len);
			cm_buf_putc(&ret->lines, '\n');
			has[kind] = true;
		}
		text += len + (text[len] == '\n');
	}
	for (size_t i = 0; i < CM_ARRAY_SIZE(kinds); i++) {
		if (has[i])
			cm_buf_printf(&ret->algorithms, "%s%s", ret->algorithms.len > 0 ? "," : "",
				      kinds[i].algorithms);
	}
	if (r == CM_OK && (cm_buf_status(&ret->lines) < 0 || cm_buf_status(&ret->algorithms) < 0))
		r = cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	return r;
}

int cm_ssh_known_read(const char *home, struct cm_ssh_known *ret, struct cm_error *err)
{
	CM_AUTO_FREE char *path = cm_asprintf("%s/.ssh/known_hosts", home);
	CM_AUTO_FREE char *text = cm_malloc(KNOWN_HOSTS_MAX);
	ssize_t n;

	if (!path || !text)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	n = cm_read_file_at(AT_FDCWD, path, text, KNOWN_HOSTS_MAX);
	if (n < 0 && n != -ENOENT)
		return cm_error_set(err, CM_E_SYS, (int)-n, "cannot read '%s'", path);
	return cm_ssh_known_take(n < 0 ? "" : text, ret, err);
}

void cm_ssh_known_clear(struct cm_ssh_known *known)
{
	cm_buf_clear(&known->lines);
	cm_buf_clear(&known->algorithms);
}
