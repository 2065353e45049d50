/* SPDX-License-Identifier: Apache-2.0 */
/* What git and git-lfs say when a fetch fails, in the words that libgit2's failures have. */
#include <string.h>

#include "isolation/checkout/guard.h"
#include "isolation/checkout/host_git_fetch.h"
#include "runtime/base/fd.h"
#include "runtime/base/text.h"

/* In the order in which they count: the earlier ones are the more certain. */
static const struct {
	const char *text;
	enum cm_fetch_reason reason;
} texts[] = {
	{ "could not read Username", CM_FETCH_AUTH_REQUIRED },
	{ "terminal prompts disabled", CM_FETCH_AUTH_REQUIRED },
	{ "credentials for", CM_FETCH_AUTH_REQUIRED },
	{ "Authentication failed", CM_FETCH_AUTH_REFUSED },
	{ "Authentication required", CM_FETCH_AUTH_REFUSED },
	{ "returned error: 401", CM_FETCH_AUTH_REFUSED },
	{ "returned error: 403", CM_FETCH_FORBIDDEN },
	{ "Authorization error", CM_FETCH_FORBIDDEN },
	{ "returned error: 404", CM_FETCH_NOT_FOUND },
	{ "returned error: 30", CM_FETCH_REDIRECT },
	{ "redirect", CM_FETCH_REDIRECT },
	{ "returned error: 5", CM_FETCH_SERVER },
	{ "returned error: 429", CM_FETCH_SERVER },
	{ "certificate", CM_FETCH_CERTIFICATE },
	{ "Could not resolve", CM_FETCH_NAME },
	{ "unable to look up", CM_FETCH_NAME },
	{ "no such host", CM_FETCH_NAME },
	{ "Failed to connect", CM_FETCH_CONNECT },
	{ "Couldn't connect", CM_FETCH_CONNECT },
	{ "unable to connect", CM_FETCH_CONNECT },
	{ "connection refused", CM_FETCH_CONNECT },
	{ "gnutls_handshake", CM_FETCH_TLS },
	{ "wrong version number", CM_FETCH_TLS },
	{ "inflate", CM_FETCH_BAD_PACK },
	{ "corrupt", CM_FETCH_BAD_PACK },
	{ "bad pack", CM_FETCH_BAD_PACK },
	{ "bad object", CM_FETCH_BAD_PACK },
	{ "invalid index-pack output", CM_FETCH_BAD_PACK },
	{ "not exported", CM_FETCH_NOT_FOUND },
	{ "not found", CM_FETCH_NOT_FOUND },
	{ "does not appear to be a git repository", CM_FETCH_NOT_FOUND },
	{ "is this a git repository", CM_FETCH_PROTOCOL },
	{ "protocol error", CM_FETCH_PROTOCOL },
	{ "bad line length", CM_FETCH_PROTOCOL },
	{ "early EOF", CM_FETCH_BROKEN_OFF },
	{ "hung up", CM_FETCH_BROKEN_OFF },
	{ "disconnect", CM_FETCH_BROKEN_OFF },
	{ "RPC failed", CM_FETCH_BROKEN_OFF },
	{ "EOF", CM_FETCH_BROKEN_OFF },
	{ "onnection reset", CM_FETCH_BROKEN_OFF },
	{ ".lock': File exists", CM_FETCH_MIRROR },
	{ "cannot lock ref", CM_FETCH_MIRROR },
	{ "not a git repository", CM_FETCH_MIRROR },
	{ "unable to read", CM_FETCH_MIRROR },
	{ "missing necessary objects", CM_FETCH_MIRROR },
};

static enum cm_fetch_reason classify(const char *said)
{
	for (size_t i = 0; i < CM_ARRAY_SIZE(texts); i++) {
		if (strstr(said, texts[i].text))
			return texts[i].reason;
	}
	return CM_FETCH_UNKNOWN;
}

/*
 * Over ssh. What failed before the server let us in is ssh's to tell; later git may know better, and
 * says no more than that nothing came where it does not.
 */
static void classify_ssh(const struct cm_host_git_call *call, struct cm_fetch_state *state)
{
	const struct cm_ssh_log *log = &call->ssh;

	if (log->reason == CM_FETCH_UNKNOWN ||
	    (log->is_in && log->reason != CM_FETCH_AUTH_IN_CLEAR &&
	     state->reason != CM_FETCH_UNKNOWN &&
	     (state->reason != CM_FETCH_BROKEN_OFF || log->reason != CM_FETCH_BROKEN_OFF)))
		return;
	state->reason = log->reason;
	state->has_known_key = log->has_known_key;
	memcpy(state->offered, log->offered, sizeof(state->offered));
}

static bool is_full(const char *said)
{
	return strstr(said, "No space left") || strstr(said, "File too large") ||
	       strstr(said, "Disk quota exceeded");
}

int cm_host_git_fetch_error(const struct cm_host_git_call *call,
			    const struct cm_fetch_options *opts, const struct cm_giturl *url,
			    struct cm_fetch_state *state, struct cm_report *rep,
			    struct cm_error *err)
{
	const char *said = call->said.data ? call->said.data : "";
	struct cm_error own = CM_ERROR_INIT;
	bool has_secret = opts->credential->secret != NULL;
	const char *cause;

	/* its own measure of what guard.c cannot see */
	if (strstr(said, "Operation too slow"))
		cm_guard_exceed(CM_GUARD_SLOW);
	else if (is_full(said))
		cm_guard_exceed(CM_GUARD_DISK);
	if (cm_guard_exceeded() != CM_GUARD_NONE)
		return cm_guard_error(rep, err);
	state->reason = classify(said);
	if (url->kind == CM_GITURL_SSH)
		classify_ssh(call, state);
	state->has_credential = has_secret;
	state->has_sent_credential = has_secret && cm_giturl_is_safe(url);
	/* who was not answered asked for what it may not have */
	if (has_secret && state->reason == CM_FETCH_AUTH_REQUIRED)
		state->reason = url->kind == CM_GITURL_HTTP && !cm_giturl_is_safe(url)
					? CM_FETCH_AUTH_IN_CLEAR
					: CM_FETCH_AUTH_REFUSED;
	if (!has_secret && state->reason == CM_FETCH_AUTH_REFUSED)
		state->reason = CM_FETCH_AUTH_REQUIRED;
	rep->reason = cm_fetch_reason_name(state->reason);
	(void)cm_host_git_failed(call, "fetch", &own);
	if (state->reason == CM_FETCH_UNKNOWN || state->reason == CM_FETCH_MIRROR || !url->host) {
		if (err)
			*err = own;
		return own.code;
	}
	cause = call->ssh.cause[0] != '\0' ? call->ssh.cause : strstr(own.msg, "git says");
	return cm_fetch_say(state, url, cause ? cause : "git does not say why", err);
}
