/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libgit2 1.5 tells most of what goes wrong on a connection by its texts alone, so those are what is
 * compared; what they do not tell stays "unknown" and is passed on as it is.
 */
#include "isolation/checkout/fetch_error.h"

#include <stdlib.h>
#include <string.h>

#include "isolation/checkout/library.h"
#include "isolation/checkout/ssh_error.h"
#include "runtime/base/buf.h"
#include "runtime/base/fd.h"
#include "runtime/base/text.h"

#define SSH_PORT 22

static const struct {
	const char *text;
	enum cm_fetch_reason reason;
} texts[] = {
	{ "too many redirects or authentication replays", CM_FETCH_AUTH_REFUSED },
	{ "unexpected http status code: 401", CM_FETCH_AUTH_REFUSED },
	{ "unexpected http status code: 403", CM_FETCH_FORBIDDEN },
	{ "unexpected http status code: 404", CM_FETCH_NOT_FOUND },
	{ "unexpected http status code: 410", CM_FETCH_NOT_FOUND },
	{ "unexpected http status code: 429", CM_FETCH_SERVER },
	{ "unexpected http status code: 5", CM_FETCH_SERVER },
	{ "requires authentication that we do not support", CM_FETCH_AUTH_UNSUPPORTED },
	{ "redirect", CM_FETCH_REDIRECT },
	{ "certificate", CM_FETCH_CERTIFICATE },
	{ "invalid SSL record", CM_FETCH_TLS },
	{ "failed to resolve address", CM_FETCH_NAME },
	{ "failed to connect", CM_FETCH_CONNECT },
	{ "unexpected EOF", CM_FETCH_BROKEN_OFF },
	{ "stream ended at an unexpected time", CM_FETCH_BROKEN_OFF },
	{ "early EOF", CM_FETCH_BROKEN_OFF },
	{ "unexpected disconnect", CM_FETCH_BROKEN_OFF },
	{ "Connection reset", CM_FETCH_BROKEN_OFF },
	{ "could not read refs from remote", CM_FETCH_BROKEN_OFF },
	{ "content-type", CM_FETCH_PROTOCOL },
	{ "not found", CM_FETCH_NOT_FOUND },
	{ "no such repository", CM_FETCH_NOT_FOUND },
	{ "repository not exported", CM_FETCH_NOT_FOUND },
	{ "does not appear to be a git repository", CM_FETCH_NOT_FOUND },
	{ "authenticat", CM_FETCH_AUTH_REFUSED },
};

/* Of what is on this side of the connection the texts say nothing about the other. */
static const struct {
	int class;
	bool is_local;
	enum cm_fetch_reason reason;
} classes[] = {
	{ GIT_ERROR_REPOSITORY, true, CM_FETCH_MIRROR },
	{ GIT_ERROR_ODB, true, CM_FETCH_MIRROR },
	{ GIT_ERROR_REFERENCE, true, CM_FETCH_MIRROR },
	{ GIT_ERROR_OBJECT, true, CM_FETCH_MIRROR },
	{ GIT_ERROR_CONFIG, true, CM_FETCH_MIRROR },
	{ GIT_ERROR_INDEXER, true, CM_FETCH_BAD_PACK },
	{ GIT_ERROR_ZLIB, true, CM_FETCH_BAD_PACK },
	{ GIT_ERROR_SSL, false, CM_FETCH_BROKEN_OFF },
	{ GIT_ERROR_HTTP, false, CM_FETCH_PROTOCOL },
	{ GIT_ERROR_NET, false, CM_FETCH_PROTOCOL },
};

static const struct cm_fetch_words words[] = {
	[CM_FETCH_AUTH_REQUIRED] = { CM_E_DENIED, false, "@ wants a credential, and there is none",
				     "export CASEMATE_GIT_TOKEN; a repository that is not there is "
				     "often answered like this, too",
				     NULL },
	[CM_FETCH_AUTH_REFUSED] = { CM_E_DENIED, false, "@ does not accept the credential (401)",
				    "the token is wrong, has expired or is another host's: replace "
				    "it",
				    NULL },
	[CM_FETCH_AUTH_IN_CLEAR] = { CM_E_DENIED, false,
				     "@ wants a credential, and over http others could read it",
				     "use https", NULL },
	[CM_FETCH_AUTH_UNSUPPORTED] = { CM_E_UNSUPPORTED, false,
					"@ wants another kind of credential than there is",
					"clone it with git, and give --repo the path of the clone",
					NULL },
	[CM_FETCH_FORBIDDEN] = { CM_E_DENIED, false, "@ forbids access to it (403)",
				 "give a token that may read it: CASEMATE_GIT_TOKEN",
				 "the token is known there, and lacks the right to read this "
				 "repository" },
	[CM_FETCH_NOT_FOUND] = { CM_E_NOT_FOUND, false, "@ has no such repository",
				 "check its path; for a private one give a token: "
				 "CASEMATE_GIT_TOKEN",
				 "check its path; a token that may not read it is answered like "
				 "this, too" },
	[CM_FETCH_CERTIFICATE] = { CM_E_DENIED, false, "the certificate of @ is not valid",
				   "it has expired, is another host's, or its authority is not known "
				   "here: name the file of one of your own with GIT_SSL_CAINFO",
				   NULL },
	[CM_FETCH_TLS] = { CM_E_REMOTE, false, "@ does not speak TLS at port #",
			   "check the port; an address that begins with http: may be meant", NULL },
	[CM_FETCH_REDIRECT] = { CM_E_REMOTE, true, "@ redirects, and that is not followed",
				"give the address that it redirects to: a credential is never taken "
				"to another host",
				NULL },
	[CM_FETCH_NAME] = { CM_E_REMOTE, false, "the name '@' is not known",
			    "check its spelling, and this host's name server", NULL },
	[CM_FETCH_CONNECT] = { CM_E_REMOTE, true, "cannot connect to @ port #",
			       "check the address, and that nothing on the way refuses it", NULL },
	[CM_FETCH_BROKEN_OFF] = { CM_E_REMOTE, true, "the connection to @ broke off", "try again",
				  NULL },
	[CM_FETCH_SERVER] = { CM_E_REMOTE, true, "@ failed", "try again later", NULL },
	[CM_FETCH_REFUSED] = { CM_E_REMOTE, true, "@ refuses",
			       "these are its words; check the address, and that the token may read "
			       "it",
			       NULL },
	[CM_FETCH_PROTOCOL] = { CM_E_PROTOCOL, true, "@ does not answer as a git server does",
				"check the address: it may be a web page's", NULL },
	[CM_FETCH_BAD_PACK] = { CM_E_PROTOCOL, true, "what @ sent is damaged",
				"check the repository there with 'git fsck'", NULL },
};

const char *cm_fetch_reason_name(enum cm_fetch_reason reason)
{
	static const char *const names[] = { [CM_FETCH_UNKNOWN] = NULL,
#define X(id, name) [CM_FETCH_##id] = name,
					     CM_FETCH_REASONS(X)
#undef X
	};

	return names[reason];
}

bool cm_fetch_is_remote(enum cm_fetch_reason reason)
{
	return reason != CM_FETCH_UNKNOWN && reason != CM_FETCH_MIRROR &&
	       reason != CM_FETCH_BAD_PACK;
}

static enum cm_fetch_reason of_class(const git_error *e, bool is_local)
{
	for (size_t i = 0; i < CM_ARRAY_SIZE(classes); i++) {
		if (e->klass == classes[i].class && classes[i].is_local == is_local)
			return classes[i].reason;
	}
	return CM_FETCH_UNKNOWN;
}

/* The server's own: only that it has no such repository is believed. */
static enum cm_fetch_reason of_its_words(const char *text)
{
	for (size_t i = 0; i < CM_ARRAY_SIZE(texts); i++) {
		if (texts[i].reason == CM_FETCH_NOT_FOUND && strstr(text, texts[i].text))
			return CM_FETCH_NOT_FOUND;
	}
	return CM_FETCH_REFUSED;
}

static enum cm_fetch_reason classify(const git_error *e, int r)
{
	enum cm_fetch_reason reason;

	if (r == GIT_ECERTIFICATE)
		return CM_FETCH_CERTIFICATE;
	/* of some malformed lines it says nothing at all */
	if (!e)
		return CM_FETCH_PROTOCOL;
	if (cm_text_has_prefix(e->message, "remote error: "))
		return of_its_words(e->message);
	reason = of_class(e, true);
	if (reason != CM_FETCH_UNKNOWN)
		return reason;
	for (size_t i = 0; i < CM_ARRAY_SIZE(texts); i++) {
		if (strstr(e->message, texts[i].text))
			return texts[i].reason;
	}
	return of_class(e, false);
}

static void fill(struct cm_buf *out, const char *text, const struct cm_fetch_state *state,
		 const struct cm_giturl *url)
{
	bool is_named = url->port == SSH_PORT;

	for (; *text; text++) {
		if (*text == '@')
			cm_buf_puts(out, url->host);
		else if (*text == '#')
			cm_buf_printf(out, "%u", url->port);
		else if (*text == '%')
			cm_buf_printf(out, is_named ? "%s" : "[%s]:%u", url->host, url->port);
		else if (*text == '^')
			cm_buf_puts(out, state->offered);
		else
			cm_buf_putc(out, *text);
	}
}

static bool is_address(const char *host)
{
	return strchr(host, ':') || host[strspn(host, "0123456789.")] == '\0';
}

int cm_fetch_say(const struct cm_fetch_state *state, const struct cm_giturl *url, const char *cause,
		 struct cm_error *err)
{
	const struct cm_fetch_words *w =
		url->kind == CM_GITURL_SSH ? cm_ssh_words(state->reason) : NULL;
	const char *hint;
	CM_AUTO_BUF struct cm_buf msg = { 0 };
	CM_AUTO_BUF struct cm_buf advice = { 0 };

	if (!w)
		w = &words[state->reason];
	hint = state->has_sent_credential && w->hint_sent ? w->hint_sent : w->hint;
	if (state->reason == CM_FETCH_CERTIFICATE && is_address(url->host))
		hint = "libgit2 knows host names in certificates, and no addresses: give the name";
	cm_buf_init(&msg, CM_ERROR_MSG_SIZE);
	cm_buf_init(&advice, CM_ERROR_HINT_SIZE);
	fill(&msg, w->msg, state, url);
	fill(&advice, hint, state, url);
	cm_error_set(err, w->code, 0, "%s%s%s",
		     cm_buf_status(&msg) == CM_OK ? msg.data : "no memory",
		     w->has_cause ? ": " : "", w->has_cause ? cause : "");
	if (cm_buf_status(&advice) == CM_OK)
		cm_error_hint(err, "%s", advice.data);
	return w->code;
}

int cm_fetch_error(struct cm_fetch_state *state, const struct cm_giturl *url, int r,
		   struct cm_error *err)
{
	const git_error *e = git_error_last();
	CM_AUTO_FREE char *cause = cm_asprintf("%s", e ? e->message : "unknown cause");
	struct cm_error none = CM_ERROR_INIT;

	if (!err)
		err = &none;
	if (state->reason == CM_FETCH_UNKNOWN && url->kind == CM_GITURL_SSH)
		state->reason = cm_ssh_reason(e, r, state);
	if (state->reason == CM_FETCH_UNKNOWN)
		state->reason = classify(e, r);
	/* asked for with the second request libgit2 asks nobody */
	if (state->reason == CM_FETCH_AUTH_REFUSED && !state->has_credential &&
	    (url->kind == CM_GITURL_HTTP || url->kind == CM_GITURL_HTTPS))
		state->reason = CM_FETCH_AUTH_REQUIRED;
	if (state->reason == CM_FETCH_UNKNOWN || state->reason == CM_FETCH_MIRROR || !url->host)
		return cm_library_error(err, "cannot fetch");
	git_error_clear();
	return cm_fetch_say(state, url, cause ? cause : "unknown cause", err);
}
