/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/checkout/credential.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "runtime/base/buf.h"
#include "runtime/base/fd.h"

#define TEXTS_MAX (1 + 2 * CM_CREDENTIAL_KEYS_MAX)

static int malformed(struct cm_error *err)
{
	return cm_error_set(err, CM_E_INVALID, 0,
			    "the credential is not a few texts that a NUL byte ends each");
}

/* How many texts there are; 0 for none at all, SIZE_MAX for what is none. */
static size_t split(const char *text, size_t len, const char *texts[TEXTS_MAX])
{
	const char *end = text + len;
	size_t n = 0;

	while (text < end) {
		const char *nul = memchr(text, '\0', (size_t)(end - text));

		if (!nul || n == TEXTS_MAX)
			return SIZE_MAX;
		texts[n++] = text;
		text = nul + 1;
	}
	return n;
}

static int take_keys(const char *const *texts, size_t n, struct cm_credential *c,
		     struct cm_error *err)
{
	for (size_t i = 0; i + 1 < n; i += 2) {
		struct cm_ssh_key *key = &c->keys[c->n_keys++];
		bool is_locked = texts[i + 1][0] != '\0';

		if (texts[i][0] == '\0')
			return malformed(err);
		key->text = cm_strdup(texts[i]);
		key->passphrase = is_locked ? cm_strdup(texts[i + 1]) : NULL;
		if (!key->text || (is_locked && !key->passphrase))
			return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	}
	return CM_OK;
}

static int take(const char *text, size_t len, struct cm_credential *c, struct cm_error *err)
{
	const char *texts[TEXTS_MAX];
	size_t n = split(text, len, texts);

	if (n == SIZE_MAX || (n > 2 && n % 2 == 0))
		return malformed(err);
	if (n == 0)
		return CM_OK;
	c->user = cm_strdup(texts[0]);
	c->secret = n == 2 ? cm_strdup(texts[1]) : NULL;
	if (!c->user || (n == 2 && !c->secret))
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	return n > 2 ? take_keys(texts + 1, n - 1, c, err) : CM_OK;
}

/* text has room for CM_CREDENTIAL_MAX + 1 bytes. */
static int read_from(int fd, char *text, struct cm_credential *c, struct cm_error *err)
{
	ssize_t n = cm_read_all(fd, text, CM_CREDENTIAL_MAX);

	if (n == -E2BIG)
		return malformed(err);
	if (n < 0)
		return cm_error_set(err, CM_E_SYS, (int)-n, "cannot read the credential");
	return take(text, (size_t)n, c, err);
}

int cm_credential_read(int fd, struct cm_credential *ret, struct cm_error *err)
{
	struct cm_credential c = CM_CREDENTIAL_INIT;
	char *text = cm_malloc(CM_CREDENTIAL_MAX + 1);
	int r = text ? read_from(fd, text, &c, err)
		     : cm_error_set(err, CM_E_NOMEM, 0, "out of memory");

	/* a standard one keeps its number taken */
	if (fd > STDERR_FILENO)
		(void)close(fd);
	if (text)
		explicit_bzero(text, CM_CREDENTIAL_MAX + 1);
	free(text);
	if (r < 0)
		cm_credential_clear(&c);
	else
		*ret = c;
	return r;
}

static void wipe(char **text)
{
	if (*text)
		explicit_bzero(*text, strlen(*text));
	free(*text);
	*text = NULL;
}

void cm_credential_clear(struct cm_credential *credential)
{
	wipe(&credential->user);
	wipe(&credential->secret);
	for (size_t i = 0; i < credential->n_keys; i++) {
		wipe(&credential->keys[i].text);
		wipe(&credential->keys[i].passphrase);
	}
	credential->n_keys = 0;
}
