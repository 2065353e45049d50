/* SPDX-License-Identifier: Apache-2.0 */
#include "providers/local/ssh_key.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "runtime/base/base64.h"
#include "runtime/base/text.h"

#define BEGIN "-----BEGIN "
#define BEGIN_OPENSSH BEGIN "OPENSSH PRIVATE KEY-----"
/* how many characters of the body are looked at: magic, and the name of the cipher after it */
#define LOOKED_AT 64

static const char magic[] = "openssh-key-v1";

/* The format of OpenSSH's own: after the magic the cipher's name, which is "none" for no cipher. */
static enum cm_ssh_key_kind look_inside(const char *body, size_t len)
{
	CM_AUTO_BUF struct cm_buf text = { 0 };
	const uint8_t *p;
	bool is_plain;

	cm_buf_init(&text, LOOKED_AT);
	if (len < LOOKED_AT || !cm_base64_decode(&text, body, LOOKED_AT) ||
	    cm_buf_status(&text) < 0 || memcmp(text.data, magic, sizeof(magic)) != 0)
		return CM_SSH_KEY_NONE;
	p = (const uint8_t *)text.data + sizeof(magic);
	is_plain =
		p[0] == 0 && p[1] == 0 && p[2] == 0 && p[3] == 4 && memcmp(p + 4, "none", 4) == 0;
	explicit_bzero(text.data, text.len);
	return is_plain ? CM_SSH_KEY_PLAIN : CM_SSH_KEY_LOCKED;
}

enum cm_ssh_key_kind cm_ssh_key_look(const char *text, size_t len)
{
	static const char *const publics[] = { "ssh-", "ecdsa-", "sk-" };
	size_t begin = sizeof(BEGIN_OPENSSH) - 1;

	if (memchr(text, '\0', len))
		return CM_SSH_KEY_NONE;
	if (len >= begin && memcmp(text, BEGIN_OPENSSH, begin) == 0) {
		begin += begin < len && text[begin] == '\r';
		begin += begin < len && text[begin] == '\n';
		return look_inside(text + begin, len - begin);
	}
	for (size_t i = 0; i < sizeof(publics) / sizeof(publics[0]); i++) {
		if (len > 8 && memcmp(text, publics[i], strlen(publics[i])) == 0)
			return CM_SSH_KEY_PUBLIC;
	}
	/* the older ones say it in words: "Proc-Type: 4,ENCRYPTED", "BEGIN ENCRYPTED PRIVATE KEY" */
	if (len < sizeof(BEGIN) || memcmp(text, BEGIN, sizeof(BEGIN) - 1) != 0 ||
	    !memmem(text, len, "PRIVATE KEY-----", 16))
		return CM_SSH_KEY_NONE;
	return memmem(text, len, "ENCRYPTED", 9) ? CM_SSH_KEY_LOCKED : CM_SSH_KEY_PLAIN;
}
