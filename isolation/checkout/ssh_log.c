/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/checkout/ssh_log.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/fd.h"
#include "runtime/base/text.h"

/* of its exit statuses, the one that is not the command's */
#define SSH_FAILED 255

#define HOST_KEY "debug1: Server host key: "

/* How servers say that there is no such repository; what else they say means that they refuse. */
static const char *const not_found[] = {
	"not found", "not be found", "does not exist",
	"no such ",  "unknown repo", "does not appear to be a git repository",
};

/* In the order in which they count: the beginning of a line, and what is in the rest of it. */
static const struct {
	const char *beginning;
	const char *rest;
	enum cm_fetch_reason reason;
	const char *cause;
} texts[] = {
	{ "@       WARNING: REVOKED HOST KEY DETECTED!", "", CM_FETCH_HOST_KEY_REVOKED, "" },
	{ "@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!", "", CM_FETCH_HOST_KEY_CHANGED,
	  "" },
	{ "Unable to negotiate with ", "no matching host key type", CM_FETCH_HOST_KEY_KIND, "" },
	{ "Unable to negotiate with ", "", CM_FETCH_PROTOCOL,
	  "ssh and the server have no algorithm in common" },
	{ "No ", " host key is known for ", CM_FETCH_HOST_KEY, "" },
	/* whatever else it did not like of it */
	{ "Host key verification failed.", "", CM_FETCH_HOST_KEY, "" },
	{ "ssh: Could not resolve hostname ", "", CM_FETCH_NAME, "" },
	{ "ssh: connect to host ", "", CM_FETCH_CONNECT, "" },
	{ "Load key ", "", CM_FETCH_KEY_UNUSABLE, "" },
	{ "debug1: get_agent_identities: ssh_get_authentication_socket: ", "", CM_FETCH_AGENT, "" },
	{ "debug1: get_agent_identities: ssh_fetch_identitylist: ", "communication", CM_FETCH_AGENT,
	  "" },
	{ "Received disconnect from ", "Too many authentication failures", CM_FETCH_KEY_REFUSED,
	  "" },
	{ "", ": Permission denied (", CM_FETCH_KEY_REFUSED, "" },
	{ "Bad packet length ", "", CM_FETCH_PROTOCOL, "ssh does not understand it" },
	{ "kex_exchange_identification: ", "Connection ", CM_FETCH_BROKEN_OFF,
	  "ssh says that it was closed at once" },
	{ "kex_exchange_identification: ", "", CM_FETCH_PROTOCOL, "it is no ssh server" },
	{ "Received disconnect from ", "", CM_FETCH_BROKEN_OFF,
	  "ssh says that the server ended it" },
	{ "Connection ", "", CM_FETCH_BROKEN_OFF, "ssh says that it was closed" },
	{ "client_loop: send disconnect: ", "", CM_FETCH_BROKEN_OFF,
	  "ssh says that it was closed" },
	{ "Timeout, server ", "", CM_FETCH_BROKEN_OFF, "ssh says that it was silent" },
};

enum cm_fetch_reason cm_ssh_reason_of_words(const char *words)
{
	for (size_t i = 0; i < CM_ARRAY_SIZE(not_found); i++) {
		if (strcasestr(words, not_found[i]))
			return CM_FETCH_NOT_FOUND;
	}
	return CM_FETCH_COMMAND;
}

static const char *kind_of(const char *name)
{
	if (cm_text_has_prefix(name, "ssh-ed25519 "))
		return "ED25519";
	if (cm_text_has_prefix(name, "ecdsa-sha2-"))
		return "ECDSA";
	return cm_text_has_prefix(name, "ssh-rsa ") ? "RSA" : "unknown";
}

/* "KIND SHA256:...": as ssh.c describes one. */
static void take_host_key(struct cm_ssh_log *log, const char *text)
{
	const char *digest = strstr(text, " SHA256:");

	if (digest)
		(void)snprintf(log->offered, sizeof(log->offered), "%s%.60s", kind_of(text),
			       digest);
}

/* "ssh: connect to host NAME port N: WHY", the last of which is the kernel's word. */
static void take_cause(struct cm_ssh_log *log, const char *line, const char *cause)
{
	const char *why = strrchr(line, ':');

	if (log->reason == CM_FETCH_CONNECT && why)
		(void)snprintf(log->cause, sizeof(log->cause), "ssh says '%.60s'",
			       why + 1 + strspn(why + 1, " "));
	else
		(void)snprintf(log->cause, sizeof(log->cause), "%s", cause);
}

/* What the server offers besides, and whether there was anything to be refused. */
static enum cm_fetch_reason of_denial(const struct cm_ssh_log *log, const char *line)
{
	const char *methods = strrchr(line, '(');

	if (!methods || !strstr(methods, "publickey"))
		return CM_FETCH_AUTH_UNSUPPORTED;
	if (log->reason == CM_FETCH_KEY_UNUSABLE || log->reason == CM_FETCH_AGENT)
		return log->reason;
	return log->has_keys ? CM_FETCH_KEY_REFUSED : CM_FETCH_KEY_REQUIRED;
}

/* What it says only when asked to has words of the server's in it, of which few are looked for. */
static bool is_at(const char *line, const char *beginning)
{
	return beginning[0] != '\0' ? cm_text_has_prefix(line, beginning)
				    : !cm_text_has_prefix(line, "debug");
}

static size_t find(const char *line)
{
	size_t i = 0;

	while (i < CM_ARRAY_SIZE(texts) &&
	       (!is_at(line, texts[i].beginning) ||
		!strstr(line + strlen(texts[i].beginning), texts[i].rest)))
		i++;
	return i;
}

/* Of the host key the first word counts, and what is said of it later is a summary. */
static bool is_of_host_key(enum cm_fetch_reason reason)
{
	return reason == CM_FETCH_HOST_KEY || reason == CM_FETCH_HOST_KEY_CHANGED ||
	       reason == CM_FETCH_HOST_KEY_REVOKED || reason == CM_FETCH_HOST_KEY_KIND;
}

void cm_ssh_log_line(struct cm_ssh_log *log, const char *line)
{
	enum cm_fetch_reason reason;
	size_t i = find(line);

	if (cm_text_has_prefix(line, HOST_KEY)) {
		take_host_key(log, line + strlen(HOST_KEY));
	} else if (cm_text_has_prefix(line, "Authenticated to ")) {
		log->is_in = true;
		log->reason = CM_FETCH_UNKNOWN;
	}
	if (i == CM_ARRAY_SIZE(texts) || is_of_host_key(log->reason))
		return;
	reason = texts[i].reason;
	if (reason == CM_FETCH_KEY_REFUSED)
		reason = of_denial(log, texts[i].beginning[0] == '\0' ? line : "(publickey)");
	else if (reason == CM_FETCH_HOST_KEY && log->has_known_key)
		reason = CM_FETCH_HOST_KEY_CHANGED;
	else if (reason == CM_FETCH_HOST_KEY_KIND && !log->has_known_key)
		reason = CM_FETCH_PROTOCOL;
	log->reason = reason;
	take_cause(log, line, texts[i].cause);
}

void cm_ssh_log_end(struct cm_ssh_log *log, int status, const char *words)
{
	/* what went well has nothing to say, whatever was said on the way */
	if (status == 0)
		log->reason = CM_FETCH_UNKNOWN;
	else if (log->is_in && status != SSH_FAILED)
		log->reason = cm_ssh_reason_of_words(words);
	else if (log->is_in && log->reason == CM_FETCH_UNKNOWN)
		log->reason = CM_FETCH_BROKEN_OFF;
	/* among the server's words it says itself that the server is gone */
	if (log->reason == CM_FETCH_BROKEN_OFF && log->cause[0] == '\0')
		(void)snprintf(log->cause, sizeof(log->cause), "ssh says that it was closed");
}
