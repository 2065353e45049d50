/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a checkout in a sandbox failed by. What our own scripts test they say by a verdict; what git met
 * on its way it tells by texts alone, in the locale that it was given.
 */
#include <string.h>

#include "providers/remote/prepare_internal.h"
#include "runtime/base/fd.h"

/* of git's own words, as much as a message takes */
#define CAUSE_MAX ((size_t)240)

static const struct {
	const char *verdict;
	int code;
	const char *msg;
	const char *hint;
} verdicts[] = {
	{ "denied", CM_E_DENIED, "the place of the checkout cannot be written to",
	  "begin the session with a template whose commands start in a directory of their own" },
	{ "exists", CM_E_EXISTS, "something else has its place",
	  "move it away in the session, or begin another one" },
	{ "no-ref", CM_E_NOT_FOUND, "the repository has no such ref",
	  "check --ref, --from and --pr: a branch, a tag, a commit's full id, or a request's number" },
	{ "no-lfs", CM_E_UNSUPPORTED, "the session has no 'git-lfs'",
	  "leave out --lfs, or begin it with a template that has git-lfs" },
	{ "no-sparse", CM_E_UNSUPPORTED, "the session's git cannot check out a part of a tree",
	  "leave out --sparse, or begin it with a template that has a newer git" },
};

/* What git would ask for on a terminal; with a credential it has been refused. */
#define NO_USER "could not read Username"
#define REFUSED "Authentication failed"

/* The first that fits counts. */
static const struct {
	const char *text;
	int code;
	const char *msg;
	const char *hint;
	bool is_transient;
} failures[] = {
	{ "Could not resolve host", CM_E_REMOTE, "the sandbox does not know the server's name",
	  "check the address, and that the session has a network: --network internet", false },
	{ "Could not resolve proxy", CM_E_REMOTE, "the sandbox does not know its proxy's name",
	  "check the proxy's variables of the session", false },
	{ "Failed to connect", CM_E_REMOTE, "the sandbox cannot connect to the server",
	  "check the address, and that the session has a network: --network internet", false },
	{ "Couldn't connect", CM_E_REMOTE, "the sandbox cannot connect to the server",
	  "check the address, and that the session has a network: --network internet", false },
	{ "unable to connect", CM_E_REMOTE, "the sandbox cannot connect to the server",
	  "check the address, and that the session has a network: --network internet", false },
	{ "Network is unreachable", CM_E_REMOTE, "the sandbox cannot connect to the server",
	  "begin the session with --network internet", false },
	{ "Connection timed out", CM_E_REMOTE, "the sandbox cannot connect to the server",
	  "check the address, and that the session has a network: --network internet", true },
	{ "could not read Username", CM_E_DENIED,
	  "the server wants a credential, and there is none",
	  "export CASEMATE_GIT_TOKEN; a repository that is not there is often answered like this, "
	  "too",
	  false },
	{ "could not read Password", CM_E_DENIED,
	  "the server wants a credential, and there is none", "export CASEMATE_GIT_TOKEN", false },
	{ REFUSED, CM_E_DENIED, "the server does not accept the credential",
	  "the token is wrong, has expired or is another host's: replace it", false },
	{ "returned error: 401", CM_E_DENIED, "the server does not accept the credential",
	  "the token is wrong, has expired or is another host's: replace it", false },
	{ "returned error: 403", CM_E_DENIED, "the server forbids access to it",
	  "give a token that may read it: CASEMATE_GIT_TOKEN", false },
	{ "returned error: 30", CM_E_REMOTE, "the server redirects, and that is not followed",
	  "give the address that it redirects to: a credential is never taken to another host",
	  false },
	{ "unable to update url base from redirection", CM_E_REMOTE,
	  "the server redirects, and that is not followed",
	  "give the address that it redirects to: a credential is never taken to another host",
	  false },
	{ "returned error: 502", CM_E_REMOTE, "the server failed", "try again later", true },
	{ "returned error: 503", CM_E_REMOTE, "the server failed", "try again later", true },
	{ "returned error: 504", CM_E_REMOTE, "the server failed", "try again later", true },
	{ "certificate", CM_E_DENIED, "the sandbox does not accept the server's certificate",
	  "begin the session with a template that has the authority's certificate", false },
	{ "HTTP/2", CM_E_REMOTE, "the connection to the server broke off", "try again", true },
	{ "RPC failed", CM_E_REMOTE, "the connection to the server broke off", "try again", true },
	{ "early EOF", CM_E_REMOTE, "the connection to the server broke off", "try again", true },
	{ "hung up", CM_E_REMOTE, "the connection to the server broke off", "try again", true },
	{ "reset by peer", CM_E_REMOTE, "the connection to the server broke off", "try again",
	  true },
	{ "GnuTLS", CM_E_REMOTE, "the connection to the server broke off", "try again", true },
	{ "SSL_", CM_E_REMOTE, "the connection to the server broke off", "try again", true },
	{ "TLS", CM_E_REMOTE, "the connection to the server broke off", "try again", true },
	{ "No space left", CM_E_LIMIT, "the sandbox's disk is full",
	  "use --depth or --sparse, or begin the session with more disk", false },
	{ "not found", CM_E_NOT_FOUND, "the server has no such repository",
	  "check its path; for a private one give a token: CASEMATE_GIT_TOKEN", false },
	{ "repository not exported", CM_E_NOT_FOUND, "the server has no such repository",
	  "check its path", false },
	{ "does not exist", CM_E_NOT_FOUND, "the server has no such repository", "check its path",
	  false },
	{ "not our ref", CM_E_NOT_FOUND, "the repository has no such commit",
	  "check --ref: the full id of a commit that a branch or a tag leads to", false },
};

static size_t find(const char *text)
{
	size_t i = 0;

	while (i < CM_ARRAY_SIZE(failures) && !strstr(text, failures[i].text))
		i++;
	return i;
}

bool cm_prep_is_transient(const struct cm_shell_end *end)
{
	size_t i = find(end->tail);

	return !cm_shell_verdict(end) && i < CM_ARRAY_SIZE(failures) && failures[i].is_transient;
}

static int fail(const struct cm_prep *p, int code, const char *msg, const char *hint,
		struct cm_error *err)
{
	(void)cm_error_set(err, code, 0, "cannot check out '%.200s': %s", p->url.text, msg);
	cm_error_hint(err, "%s", hint);
	return code;
}

/* git says what it failed by first, and what may have led to it in the lines behind that. */
static const char *find_cause(const char *text)
{
	static const char *const words[] = { "fatal: ", "error: " };

	while (text) {
		for (size_t i = 0; i < CM_ARRAY_SIZE(words); i++) {
			if (strncmp(text, words[i], strlen(words[i])) == 0)
				return text;
		}
		text = strchr(text, '\n');
		text = text ? text + 1 : NULL;
	}
	return NULL;
}

int cm_prep_git_error(const struct cm_prep *p, const struct cm_shell_end *end, struct cm_error *err)
{
	const char *user;
	const char *secret;
	const char *cause;
	size_t len;
	size_t i;

	for (i = 0; i < CM_ARRAY_SIZE(verdicts); i++) {
		if (cm_shell_says(end, verdicts[i].verdict))
			return fail(p, verdicts[i].code, verdicts[i].msg, verdicts[i].hint, err);
	}
	i = find(end->tail);
	if (i < CM_ARRAY_SIZE(failures) && strcmp(failures[i].text, NO_USER) == 0 &&
	    cm_config_git_credential(p->config, p->spec, &user, &secret))
		i = find(REFUSED);
	if (i < CM_ARRAY_SIZE(failures))
		return fail(p, failures[i].code, failures[i].msg, failures[i].hint, err);
	cause = find_cause(end->tail);
	len = cause ? strcspn(cause, "\r\n") : 0;
	if (cause)
		(void)cm_error_set(err, CM_E_CHECKOUT, 0, "cannot check out '%.150s': %.*s",
				   p->url.text, (int)(len < CAUSE_MAX ? len : CAUSE_MAX), cause);
	else
		(void)cm_shell_failed(end, CM_E_CHECKOUT, err, "cannot check out '%.150s'",
				      p->url.text);
	cm_error_hint(err, "these are git's words in the sandbox: try the same there by hand");
	return CM_E_CHECKOUT;
}
