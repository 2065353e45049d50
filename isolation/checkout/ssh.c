/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/checkout/ssh.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/base/base64.h"
#include "runtime/base/fd.h"
#include "runtime/base/text.h"

#define KNOWN_HOSTS_MAX (1024UL * 1024)
#define REVOKED "#revoked "

/* whom a server of repositories expects, where nobody says another one */
static const char default_user[] = "git";

static void take_known(struct cm_ssh *ssh, const char *text)
{
	while (*text != '\0') {
		size_t len = strcspn(text, "\n");

		if (cm_text_has_prefix(text, REVOKED)) {
			cm_buf_append(&ssh->revoked, text + strlen(REVOKED), len - strlen(REVOKED));
			cm_buf_putc(&ssh->revoked, '\n');
		} else if (len > 0 && *text != '#') {
			ssh->state->has_known_key = true;
		}
		text += len + (text[len] == '\n');
	}
}

static int read_known(struct cm_ssh *ssh, struct cm_error *err)
{
	CM_AUTO_FREE char *path = cm_asprintf("%s/.ssh/known_hosts", ssh->opts->home);
	CM_AUTO_FREE char *text = cm_malloc(KNOWN_HOSTS_MAX);
	ssize_t n;

	if (!path || !text)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	n = cm_read_file_at(AT_FDCWD, path, text, KNOWN_HOSTS_MAX);
	if (n == -ENOENT)
		return CM_OK;
	if (n < 0)
		return cm_library_sys_error(err, (int)-n, "cannot read '%s'", path);
	take_known(ssh, text);
	if (cm_buf_status(&ssh->revoked) < 0)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	return CM_OK;
}

int cm_ssh_init(struct cm_ssh *ssh, const struct cm_ssh_options *opts,
		const struct cm_credential *credential, struct cm_fetch_state *state,
		struct cm_error *err)
{
	ssh->opts = opts;
	ssh->credential = credential;
	ssh->state = state;
	ssh->n_tried = 0;
	cm_buf_init(&ssh->revoked, KNOWN_HOSTS_MAX);
	return opts->home ? read_known(ssh, err) : CM_OK;
}

void cm_ssh_clear(struct cm_ssh *ssh)
{
	cm_buf_clear(&ssh->revoked);
}

/* The address's own user name with its '@', as it is written; empty where it has none. */
static size_t find_user(const char *text, const char **ret)
{
	const char *scheme = strstr(text, "://");
	const char *at;

	*ret = scheme ? scheme + 3 : text;
	at = *ret + strcspn(*ret, scheme ? "@/" : "@:");
	return *at == '@' ? (size_t)(at + 1 - *ret) : 0;
}

int cm_ssh_place(const struct cm_ssh *ssh, struct cm_giturl *url, struct cm_error *err)
{
	if (ssh->opts->port > 0)
		url->port = ssh->opts->port;
	if (ssh->opts->host) {
		free(url->host);
		url->host = cm_strdup(ssh->opts->host);
	}
	return url->host ? CM_OK : cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
}

int cm_ssh_address(const struct cm_ssh *ssh, const struct cm_giturl *url, char **ret,
		   struct cm_error *err)
{
	const char *user;
	size_t user_len = find_user(url->text, &user);
	bool is_scheme = strstr(url->text, "://") != NULL;
	bool is_v6 = strchr(url->host, ':') != NULL;

	if (!ssh->opts->host && ssh->opts->port == 0)
		*ret = cm_strdup(url->text);
	else if (is_scheme)
		*ret = cm_asprintf("ssh://%.*s%s%s%s:%u%s", (int)user_len, user, is_v6 ? "[" : "",
				   url->host, is_v6 ? "]" : "", url->port, url->path);
	else
		/* a path below the account's home can only be written so */
		*ret = cm_asprintf("[%.*s%s:%u]:%s", (int)user_len, user, url->host, url->port,
				   url->path);
	return *ret ? CM_OK : cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
}

const char *cm_ssh_user(const struct cm_giturl *url, const struct cm_credential *credential)
{
	if (url->user)
		return url->user;
	return credential->user && credential->user[0] != '\0' ? credential->user : default_user;
}

static int give_up(const struct cm_ssh *ssh, enum cm_fetch_reason reason)
{
	ssh->state->reason = reason;
	return GIT_EAUTH;
}

static int use_password(struct cm_ssh *ssh, git_credential **ret, const char *user)
{
	if (ssh->n_tried++ > 0)
		return give_up(ssh, CM_FETCH_PASSWORD_REFUSED);
	return git_credential_userpass_plaintext_new(ret, user, ssh->credential->secret);
}

static int use_key(struct cm_ssh *ssh, git_credential **ret, const char *user)
{
	const struct cm_credential *c = ssh->credential;
	size_t i = ssh->n_tried++;

	if (i == (ssh->opts->agent ? 1 : c->n_keys))
		return give_up(ssh, i > 0 ? CM_FETCH_KEY_REFUSED : CM_FETCH_KEY_REQUIRED);
	if (ssh->opts->agent)
		return git_credential_ssh_key_from_agent(ret, user);
	return git_credential_ssh_key_memory_new(ret, user, NULL, c->keys[i].text,
						 c->keys[i].passphrase);
}

int cm_ssh_credential(struct cm_ssh *ssh, git_credential **ret, const char *user,
		      unsigned int allowed)
{
	const struct cm_credential *c = ssh->credential;
	bool is_password = c->secret && !ssh->opts->agent;
	unsigned int kinds = is_password ? GIT_CREDENTIAL_USERPASS_PLAINTEXT
					 : GIT_CREDENTIAL_SSH_KEY | GIT_CREDENTIAL_SSH_MEMORY;

	/* asked first, where the address has none: what comes then has to be of the same */
	if ((allowed & GIT_CREDENTIAL_USERNAME) != 0)
		return git_credential_username_new(
			ret, c->user && c->user[0] != '\0' ? c->user : default_user);
	if ((allowed & kinds) == 0)
		return give_up(ssh, CM_FETCH_AUTH_UNSUPPORTED);
	ssh->state->has_sent_credential = true;
	return is_password ? use_password(ssh, ret, user) : use_key(ssh, ret, user);
}

static const char *kind_of(const git_cert_hostkey *key)
{
	switch (key->raw_type) {
	case GIT_CERT_SSH_RAW_TYPE_RSA:
		return "RSA";
	case GIT_CERT_SSH_RAW_TYPE_KEY_ECDSA_256:
	case GIT_CERT_SSH_RAW_TYPE_KEY_ECDSA_384:
	case GIT_CERT_SSH_RAW_TYPE_KEY_ECDSA_521:
		return "ECDSA";
	case GIT_CERT_SSH_RAW_TYPE_KEY_ED25519:
		return "ED25519";
	case GIT_CERT_SSH_RAW_TYPE_DSS:
	case GIT_CERT_SSH_RAW_TYPE_UNKNOWN:
		break;
	}
	return "unknown";
}

/* As ssh and the owners of servers write it: "ED25519 SHA256:...". */
static void describe(const git_cert_hostkey *key, struct cm_fetch_state *state)
{
	CM_AUTO_BUF struct cm_buf digest = { 0 };

	cm_buf_init(&digest, sizeof(state->offered) / 2);
	if ((key->type & GIT_CERT_SSH_SHA256) != 0)
		cm_base64_encode(&digest, key->hash_sha256, sizeof(key->hash_sha256), false);
	(void)snprintf(state->offered, sizeof(state->offered), "%s SHA256:%s", kind_of(key),
		       digest.len > 0 && cm_buf_status(&digest) == CM_OK ? digest.data : "?");
}

/* In doubt it is. */
static bool is_revoked(const struct cm_ssh *ssh, const git_cert_hostkey *key)
{
	CM_AUTO_BUF struct cm_buf text = { 0 };
	const char *at = ssh->revoked.data;

	if (ssh->revoked.len == 0)
		return false;
	cm_buf_init(&text, KNOWN_HOSTS_MAX);
	if ((key->type & GIT_CERT_SSH_RAW) == 0)
		return true;
	cm_base64_encode(&text, key->hostkey, key->hostkey_len, true);
	cm_buf_putc(&text, '\n');
	if (cm_buf_status(&text) < 0)
		return true;
	for (; at; at = strchr(at, '\n'), at += at != NULL) {
		if (cm_text_has_prefix(at, text.data))
			return true;
	}
	return false;
}

int cm_ssh_certificate(struct cm_ssh *ssh, const git_cert *cert, bool is_known)
{
	/* libgit2 made it one of these, with this as its beginning */
	const git_cert_hostkey *key = (const git_cert_hostkey *)(const void *)cert;

	if (cert->cert_type != GIT_CERT_HOSTKEY_LIBSSH2)
		return GIT_ECERTIFICATE;
	describe(key, ssh->state);
	if (is_revoked(ssh, key))
		ssh->state->reason = CM_FETCH_HOST_KEY_REVOKED;
	else if (is_known)
		return 0;
	else
		ssh->state->reason =
			ssh->state->has_known_key ? CM_FETCH_HOST_KEY_CHANGED : CM_FETCH_HOST_KEY;
	return GIT_ECERTIFICATE;
}
