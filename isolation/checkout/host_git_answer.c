/* SPDX-License-Identifier: Apache-2.0 */
/*
 * git's credential helper, which git-lfs asks as well: it answers for the repository's own scheme,
 * host and port, whoever led git to ask for another. The secret is in a memory file that git's
 * processes in this jail inherit, and in no argument, no environment and no file.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "isolation/checkout/host_git.h"
#include "runtime/base/fd.h"
#include "runtime/base/text.h"

#define QUESTION_MAX 16384

/* "key=value", a line each. NULL: it does not say. Caller frees. */
static char *value_of(const char *question, const char *key)
{
	size_t len = strlen(key);

	for (const char *line = question; *line; line += strcspn(line, "\n")) {
		line += *line == '\n';
		if (strncmp(line, key, len) == 0 && line[len] == '=')
			return cm_asprintf("%.*s", (int)strcspn(line + len + 1, "\n"),
					   line + len + 1);
	}
	return NULL;
}

static bool is_for(const char *question, const char *address)
{
	CM_AUTO_FREE char *protocol = value_of(question, "protocol");
	CM_AUTO_FREE char *host = value_of(question, "host");
	CM_AUTO_FREE char *text = NULL;
	struct cm_giturl asked = { 0 };
	struct cm_giturl own = { 0 };
	bool is_same;

	if (!protocol || !host)
		return false;
	/* an address has a path; which one does not matter */
	text = cm_asprintf("%s://%s/x", protocol, host);
	is_same = text && cm_giturl_parse(text, &asked, NULL) == CM_OK &&
		  cm_giturl_parse(address, &own, NULL) == CM_OK && asked.host && own.host &&
		  cm_giturl_same_server(&asked, &own) && cm_giturl_is_safe(&own);
	cm_giturl_clear(&asked);
	cm_giturl_clear(&own);
	return is_same;
}

/* git reads it to its end. */
static int tell(const char *user, const char *secret)
{
	CM_AUTO_BUF struct cm_buf answer = { 0 };
	int r;

	cm_buf_init(&answer, CM_CREDENTIAL_MAX + 64);
	/* at once: growing leaves copies behind */
	cm_buf_reserve(&answer, CM_CREDENTIAL_MAX + 64);
	cm_buf_printf(&answer, "username=%s\npassword=%s\n", user, secret);
	r = cm_buf_status(&answer) == CM_OK ? cm_write_all(STDOUT_FILENO, answer.data, answer.len)
					    : -ENOMEM;
	if (answer.data)
		explicit_bzero(answer.data, answer.len);
	return r < 0 ? 1 : 0;
}

int cm_host_git_answer(int argc, char **argv)
{
	char question[QUESTION_MAX + 1];
	char texts[CM_CREDENTIAL_MAX + 1];
	const char *secret;
	ssize_t n;
	int r = 0;

	/* whether it was right is nothing to keep */
	if (argc != 4 || strcmp(argv[3], "get") != 0)
		return 0;
	n = cm_read_all(STDIN_FILENO, question, QUESTION_MAX);
	if (n < 0)
		return 1;
	question[n] = '\0';
	if (!is_for(question, argv[2]))
		return 0;
	/* others have the descriptor, too, and its offset */
	n = pread(CM_HOST_GIT_SECRET_FD, texts, CM_CREDENTIAL_MAX, 0);
	if (n <= 0)
		return 1;
	texts[n] = '\0';
	secret = texts + strlen(texts) + 1;
	/* a line's end would be the end of it for git */
	if (secret < texts + n && !strpbrk(texts, "\n") && !strpbrk(secret, "\n"))
		r = tell(texts, secret);
	explicit_bzero(texts, sizeof(texts));
	return r;
}
