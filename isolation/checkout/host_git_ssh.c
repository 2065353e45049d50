/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What git is given to reach a server over ssh. Keys that have a passphrase are decrypted here, by the
 * host's ssh-keygen, in a memory file: OpenSSH's client would ask for it, and nobody answers.
 */
#include "isolation/checkout/host_git_ssh.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "isolation/checkout/fetch_error.h"
#include "isolation/checkout/ssh.h"
#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/kernel.h"
#include "runtime/base/text.h"

static const char *const ssh_places[] = { "/usr/bin/ssh", "/bin/ssh" };
static const char *const keygen_places[] = { "/usr/bin/ssh-keygen", "/bin/ssh-keygen" };

static int out_of_memory(struct cm_error *err)
{
	return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
}

const char *cm_host_git_ssh_program(void)
{
	return cm_host_git_program(ssh_places, CM_ARRAY_SIZE(ssh_places));
}

static const char *keygen_program(void)
{
	return cm_host_git_program(keygen_places, CM_ARRAY_SIZE(keygen_places));
}

static bool is_any_locked(const struct cm_credential *c)
{
	for (size_t i = 0; i < c->n_keys; i++) {
		if (c->keys[i].passphrase)
			return true;
	}
	return false;
}

int cm_host_git_ssh_check(const struct cm_credential *credential, const char *agent,
			  struct cm_error *err)
{
	bool has_ssh = cm_host_git_ssh_program() != NULL;

	if (credential->secret && !agent) {
		cm_error_set(err, CM_E_UNSUPPORTED, 0,
			     "over ssh the host's git is told no password, and does what libgit2 "
			     "cannot");
		cm_error_hint(err, "use a key (--ssh-key FILE) or --ssh-agent");
		return CM_E_UNSUPPORTED;
	}
	if (has_ssh && (agent || !is_any_locked(credential) || keygen_program()))
		return CM_OK;
	cm_error_set(err, CM_E_UNSUPPORTED, 0,
		     "%s is not installed on this host, and git needs it here",
		     has_ssh ? "ssh-keygen" : "ssh");
	cm_error_hint(err, "install it (the package openssh-client), or leave --lfs, --filter and "
			   "--depth out");
	return CM_E_UNSUPPORTED;
}

/* --- memory files ---------------------------------------------------------------------------------- */

/* One that is written to. */
static int make_writable(const char *name, int *ret, struct cm_error *err)
{
	CM_AUTO_FD int fd = memfd_create(name, MFD_CLOEXEC | CM_MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, MFD_CLOEXEC);
	if (fd < 0 || fchmod(fd, 0600) < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot make a memory file");
	*ret = fcntl(fd, F_DUPFD_CLOEXEC, CM_HOST_GIT_SSH_FD + 1);
	return *ret < 0 ? cm_error_set(err, CM_E_SYS, errno, "cannot make a memory file") : CM_OK;
}

/* Of a memory file of ours it does not fail. */
void cm_host_git_ssh_forget(const struct cm_host_git *g)
{
	if (g->ssh_fd >= 0 && ftruncate(g->ssh_fd, 0) < 0)
		return;
}

void cm_host_git_ssh_read(const struct cm_host_git *g, struct cm_ssh_log *ret)
{
	struct cm_ssh_log log;

	memset(ret, 0, sizeof(*ret));
	if (g->ssh_fd < 0 || pread(g->ssh_fd, &log, sizeof(log), 0) != (ssize_t)sizeof(log) ||
	    (unsigned int)log.reason > CM_FETCH_MIRROR)
		return;
	log.offered[sizeof(log.offered) - 1] = '\0';
	log.cause[sizeof(log.cause) - 1] = '\0';
	*ret = log;
}

/* --- keys ------------------------------------------------------------------------------------------- */

/* Whatever line ends it has, as OpenSSH reads it. */
static void put_key(struct cm_buf *out, const char *text)
{
	size_t len = strlen(text);

	for (size_t i = 0; i < len; i++) {
		if (text[i] != '\r')
			cm_buf_putc(out, text[i]);
	}
	if (len > 0 && text[len - 1] != '\n')
		cm_buf_putc(out, '\n');
}

static int is_unusable(const struct cm_host_git *g, const struct cm_giturl *url,
		       struct cm_error *err)
{
	const struct cm_fetch_state state = { .reason = CM_FETCH_KEY_UNUSABLE };

	g->rep->reason = cm_fetch_reason_name(state.reason);
	return cm_fetch_say(&state, url, "", err);
}

/* Rewrites the key in fd without its passphrase, which ssh-keygen reads as a line. */
static int run_keygen(struct cm_host_git *g, int fd, const char *passphrase, bool *ret_is_done,
		      struct cm_error *err)
{
	const char *const argv[] = { "-q", "-p", "-N", "", "-f", CM_HOST_GIT_FILE_PATH, NULL };
	CM_AUTO_BUF struct cm_buf in = { 0 };
	struct cm_host_git_call call = {
		.argv = argv, .program = keygen_program(), .file_fd = fd, .in = &in
	};
	int r;

	if (!call.program)
		return cm_error_set(err, CM_E_UNSUPPORTED, 0, "ssh-keygen is not installed");
	cm_buf_init(&in, CM_CREDENTIAL_MAX);
	/* at once: growing leaves copies behind */
	cm_buf_reserve(&in, strlen(passphrase) + 2);
	cm_buf_printf(&in, "%s\n", passphrase);
	r = cm_buf_status(&in) == CM_OK ? cm_host_git_run(g, &call, err) : out_of_memory(err);
	*ret_is_done = r == CM_OK && call.status == 0;
	cm_buf_clear(&call.said);
	if (in.data)
		explicit_bzero(in.data, in.len);
	return r;
}

static int unlock_in(struct cm_host_git *g, int fd, const struct cm_ssh_key *key, char *text,
		     const struct cm_giturl *url, struct cm_buf *out, struct cm_error *err)
{
	bool is_done = false;
	ssize_t n;
	int r;

	r = run_keygen(g, fd, key->passphrase, &is_done, err);
	if (r < 0 || !is_done)
		return r < 0 ? r : is_unusable(g, url, err);
	n = pread(fd, text, CM_CREDENTIAL_MAX, 0);
	if (n <= 0 || memchr(text, '\0', (size_t)n))
		return is_unusable(g, url, err);
	text[n] = '\0';
	put_key(out, text);
	return CM_OK;
}

static int unlock(struct cm_host_git *g, const struct cm_ssh_key *key, const struct cm_giturl *url,
		  struct cm_buf *out, struct cm_error *err)
{
	CM_AUTO_FD int fd = -1;
	char *text = cm_malloc(CM_CREDENTIAL_MAX + 1);
	struct cm_buf locked;
	int r;

	if (!text)
		return out_of_memory(err);
	r = make_writable("key", &fd, err);
	cm_buf_init(&locked, CM_CREDENTIAL_MAX);
	put_key(&locked, key->text);
	if (r == CM_OK && (cm_buf_status(&locked) < 0 || !locked.data))
		r = out_of_memory(err);
	if (r == CM_OK && cm_write_all(fd, locked.data, locked.len) < 0)
		r = cm_error_set(err, CM_E_SYS, errno, "cannot write a memory file");
	if (r == CM_OK)
		r = unlock_in(g, fd, key, text, url, out, err);
	cm_buf_clear(&locked);
	explicit_bzero(text, CM_CREDENTIAL_MAX + 1);
	free(text);
	return r;
}

/* Who asks, and the keys in their order: as credential.h has it, none of them with a passphrase. */
static int keep_keys(struct cm_host_git *g, const struct cm_host_git_access *access,
		     struct cm_error *err)
{
	const struct cm_credential *c = access->credential;
	const char *user = cm_ssh_user(access->url, c);
	size_t n_keys = access->ssh->agent ? 0 : c->n_keys;
	struct cm_buf texts;
	int r = CM_OK;

	cm_buf_init(&texts, CM_CREDENTIAL_MAX);
	/* at once: growing leaves copies behind */
	cm_buf_reserve(&texts, CM_CREDENTIAL_MAX);
	cm_buf_append(&texts, user, strlen(user) + 1);
	for (size_t i = 0; i < n_keys && r == CM_OK; i++) {
		if (c->keys[i].passphrase)
			r = unlock(g, &c->keys[i], access->url, &texts, err);
		else
			put_key(&texts, c->keys[i].text);
		cm_buf_append(&texts, "\0", 2);
	}
	if (r == CM_OK && cm_buf_status(&texts) < 0)
		r = cm_error_set(err, CM_E_LIMIT, 0, "the keys are too long together");
	if (r == CM_OK)
		r = cm_host_git_memory("keys", &texts, &g->secret_fd, err);
	if (texts.data)
		explicit_bzero(texts.data, texts.len);
	cm_buf_clear(&texts);
	return r;
}

/* --- git's environment ------------------------------------------------------------------------------- */

static int add_command(struct cm_host_git *g, const struct cm_host_git_access *access,
		       const char *self, struct cm_error *err)
{
	const struct cm_giturl *url = access->url;
	CM_AUTO_FREE char *port = cm_asprintf("%u", url->port);
	const char *const words[] = { self,
				      "--connect-git",
				      url->text,
				      url->host,
				      port,
				      access->ssh->home ? access->ssh->home : "-",
				      access->ssh->agent ? access->ssh->agent : "-" };
	CM_AUTO_BUF struct cm_buf command = { 0 };

	cm_buf_init(&command, 8 * CM_GITURL_MAX);
	cm_buf_puts(&command, "GIT_SSH_COMMAND=");
	for (size_t i = 0; i < CM_ARRAY_SIZE(words) && port; i++) {
		if (i > 0)
			cm_buf_putc(&command, ' ');
		cm_text_shell_quote(&command, words[i]);
	}
	if (!port || cm_buf_status(&command) < 0 || cm_strv_add(&g->env, command.data) < 0 ||
	    cm_strv_add(&g->env, "GIT_SSH_VARIANT=ssh") < 0)
		return out_of_memory(err);
	return CM_OK;
}

int cm_host_git_ssh_open(struct cm_host_git *g, const struct cm_host_git_access *access,
			 const char *self, struct cm_error *err)
{
	int r = cm_host_git_ssh_check(access->credential, access->ssh->agent, err);

	if (r == CM_OK)
		r = keep_keys(g, access, err);
	if (r == CM_OK)
		r = add_command(g, access, self, err);
	return r == CM_OK ? make_writable("ssh", &g->ssh_fd, err) : r;
}
