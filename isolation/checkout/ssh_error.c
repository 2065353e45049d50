/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/checkout/ssh_error.h"

#include <string.h>

#include "isolation/checkout/ssh_log.h"
#include "runtime/base/fd.h"

/* libssh2's words, behind libgit2's */
static const struct {
	const char *text;
	enum cm_fetch_reason reason;
} texts[] = {
	{ "agent", CM_FETCH_AGENT },
	{ "failed requesting identities", CM_FETCH_AGENT },
	{ "Failed to authenticate SSH session", CM_FETCH_KEY_UNUSABLE },
};

static const struct cm_fetch_words words[] = {
	[CM_FETCH_HOST_KEY] = { CM_E_DENIED, false, "the host key of @ is not a known one: ^",
				"compare it with what its owner says, and add it: ssh-keyscan -p # "
				"@ >>~/.ssh/known_hosts",
				NULL },
	[CM_FETCH_HOST_KEY_CHANGED] = { CM_E_DENIED, false,
					"warning: the host key of @ has changed, somebody may stand in "
					"between: ^ is none of those that are known",
					"ask its owner; only if it is right: ssh-keygen -R '%', then "
					"ssh-keyscan -p # @ >>~/.ssh/known_hosts",
					NULL },
	[CM_FETCH_HOST_KEY_REVOKED] = { CM_E_DENIED, false,
					"warning: the host key of @ is revoked, somebody may stand in "
					"between: ^",
					"ask its owner; the known_hosts of this host mark it as revoked",
					NULL },
	[CM_FETCH_HOST_KEY_KIND] = { CM_E_DENIED, false,
				     "@ has no host key of a kind that is known of it",
				     "ask its owner for its ed25519 or ecdsa key, and add it: "
				     "ssh-keyscan -p # @ >>~/.ssh/known_hosts",
				     NULL },
	[CM_FETCH_KEY_REQUIRED] = { CM_E_DENIED, false, "@ wants a key, and there is none",
				    "name one with --ssh-key FILE, or use --ssh-agent; by itself "
				    "~/.ssh/id_ed25519, id_ecdsa or id_rsa is taken, where it has no "
				    "passphrase",
				    NULL },
	[CM_FETCH_KEY_REFUSED] = { CM_E_DENIED, false, "@ does not accept the key",
				   "add its public half to the account there, or name another with "
				   "--ssh-key FILE; libgit2 signs with an RSA key by SHA-1, which "
				   "new servers refuse: use ed25519",
				   NULL },
	[CM_FETCH_KEY_UNUSABLE] = { CM_E_INVALID, false, "the key for @ cannot be used",
				    "check the passphrase in CASEMATE_SSH_PASSPHRASE, and the file "
				    "with ssh-keygen -y -f FILE",
				    NULL },
	[CM_FETCH_PASSWORD_REFUSED] = { CM_E_DENIED, false, "@ does not accept the password",
					"check the user name and the password", NULL },
	[CM_FETCH_AGENT] = { CM_E_DENIED, false, "the ssh agent does not answer",
			     "check with ssh-add -l that it runs, and SSH_AUTH_SOCK", NULL },
	[CM_FETCH_COMMAND] = { CM_E_DENIED, false, "@ refuses to serve this repository",
			       "check its path, and that the account may read it; 'git ls-remote' "
			       "shows what the server says",
			       NULL },
	[CM_FETCH_AUTH_UNSUPPORTED] = { CM_E_UNSUPPORTED, false,
					"@ wants another kind of credential than there is",
					"it may want a key (--ssh-key FILE) in place of a password, or "
					"a password (--git-credential) in place of a key",
					NULL },
	[CM_FETCH_NOT_FOUND] = { CM_E_NOT_FOUND, false, "@ has no such repository",
				 "check its path; one that the account may not read is often "
				 "answered like this, too",
				 NULL },
};

enum cm_fetch_reason cm_ssh_reason(const git_error *e, int r, const struct cm_fetch_state *state)
{
	if (!e || e->klass != GIT_ERROR_SSH)
		return CM_FETCH_UNKNOWN;
	/* the server's own words are its error, and libgit2's */
	if (r == GIT_EEOF)
		return cm_ssh_reason_of_words(e->message);
	/* there is only one thing that is asked of it with a preference */
	if (state->has_known_key && strstr(e->message, "Unable to exchange encryption keys"))
		return CM_FETCH_HOST_KEY_KIND;
	for (size_t i = 0; i < CM_ARRAY_SIZE(texts); i++) {
		if (strstr(e->message, texts[i].text))
			return texts[i].reason;
	}
	return r == GIT_ECERTIFICATE ? CM_FETCH_HOST_KEY : CM_FETCH_BROKEN_OFF;
}

const struct cm_fetch_words *cm_ssh_words(enum cm_fetch_reason reason)
{
	if ((size_t)reason >= CM_ARRAY_SIZE(words) || !words[reason].msg)
		return NULL;
	return &words[reason];
}
