/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/checkout/credential.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "runtime/base/buf.h"
#include "runtime/base/fd.h"

static int malformed(struct cm_error *err)
{
	return cm_error_set(err, CM_E_INVALID, 0,
			    "the credential is not two texts that a NUL byte ends");
}

static int take(const char *text, size_t len, struct cm_credential *c, struct cm_error *err)
{
	const char *secret;

	if (len == 0)
		return CM_OK;
	secret = memchr(text, '\0', len);
	/* the second NUL byte is the last one */
	if (!secret ||
	    memchr(secret + 1, '\0', (size_t)(text + len - secret - 1)) != text + len - 1)
		return malformed(err);
	secret++;
	c->user = cm_strdup(text);
	c->secret = cm_strdup(secret);
	if (!c->user || !c->secret)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	return CM_OK;
}

int cm_credential_read(int fd, struct cm_credential *ret, struct cm_error *err)
{
	struct cm_credential c = { NULL, NULL };
	char *text = cm_malloc(CM_CREDENTIAL_MAX + 1);
	size_t len = 0;
	ssize_t n = 0;
	int r = CM_OK;

	if (!text)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	do {
		n = read(fd, text + len, CM_CREDENTIAL_MAX + 1 - len);
		len += n > 0 ? (size_t)n : 0;
	} while (len <= CM_CREDENTIAL_MAX && (n > 0 || (n < 0 && errno == EINTR)));
	if (n < 0)
		r = cm_error_set(err, CM_E_SYS, errno, "cannot read the credential");
	else if (len > CM_CREDENTIAL_MAX)
		r = malformed(err);
	else
		r = take(text, len, &c, err);
	/* a standard one keeps its number taken */
	if (fd > STDERR_FILENO)
		(void)close(fd);
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
}
