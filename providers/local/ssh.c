/* SPDX-License-Identifier: Apache-2.0 */
#include "providers/local/ssh.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "isolation/host/node.h"
#include "providers/local/inside.h"
#include "providers/local/known_hosts.h"
#include "providers/local/ssh_key.h"
#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/path.h"
#include "runtime/base/text.h"

#define FILE_MAX (8UL * 1024 * 1024)
/* of the keys together */
#define TEXTS_MAX CM_LOCAL_INPUT_MAX
/* a server ends the connection after some six that it does not know */
#define KEYS_MAX 5
#define KNOWN_HOSTS "known_hosts"
#define SSH_PORT 22

/* Whose a file has to be, and who may else. */
enum trust {
	TRUST_ANY,
	/* the caller's or root's, written by nobody else: what a configuration says is obeyed */
	TRUST_UNWRITTEN,
	/* the caller's, read by nobody else: as ssh wants its keys */
	TRUST_SECRET,
};

static int no_memory(struct cm_error *err)
{
	return cm_error_set(err, CM_E_NOMEM, 0, "no memory for what ssh needs");
}

static bool is_trusted(const struct stat *st, enum trust trust)
{
	bool is_own = st->st_uid == geteuid();

	if (trust == TRUST_SECRET)
		return is_own && (st->st_mode & 077) == 0;
	return trust == TRUST_ANY || ((is_own || st->st_uid == 0) && (st->st_mode & 022) == 0);
}

/*
 * A regular file's text, and how much it is. What is not there, is another kind of file or is not to
 * be trusted counts as empty: ssh would pass it over, too.
 */
static ssize_t read_file(const char *path, enum trust trust, size_t max, char **ret)
{
	CM_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;
	char *text;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !is_trusted(&st, trust) ||
	    st.st_size <= 0)
		return 0;
	if ((uint64_t)st.st_size > max)
		return -EFBIG;
	text = cm_malloc((size_t)st.st_size + 1);
	if (!text)
		return -ENOMEM;
	n = cm_read_all(fd, text, (size_t)st.st_size);
	if (n <= 0) {
		free(text);
		return n;
	}
	text[n] = '\0';
	*ret = text;
	return n;
}

static void forget(char *text, ssize_t len)
{
	if (text && len > 0)
		explicit_bzero(text, (size_t)len);
	free(text);
}

static char *in_home(const struct cm_local *l, const char *name)
{
	return cm_asprintf("%s/.ssh/%s", l->config->home, name);
}

/* --- configuration --------------------------------------------------------------------------- */

static int check_host_name(const struct cm_local_ssh *ssh, struct cm_error *err)
{
	const char *name = ssh->config.host_name;
	CM_AUTO_FREE char *address = cm_asprintf("ssh://%s/x", name);
	struct cm_giturl url = { 0 };
	int r;

	if (!address)
		return no_memory(err);
	r = cm_giturl_parse(address, &url, NULL);
	if (r == CM_OK && (strcasecmp(url.host, name) != 0 || url.user))
		r = CM_E_INVALID;
	cm_giturl_clear(&url);
	if (r == CM_OK || r == CM_E_NOMEM)
		return r == CM_OK ? r : no_memory(err);
	cm_error_set(err, CM_E_INVALID, 0, "~/.ssh/config has a HostName for '%s' that is none",
		     ssh->url.host);
	cm_error_hint(err, "write the server's own name, or its IPv4 address");
	return CM_E_INVALID;
}

static int read_config(const struct cm_local *l, struct cm_local_ssh *ssh, struct cm_error *err)
{
	CM_AUTO_FREE char *path = in_home(l, "config");
	CM_AUTO_FREE char *text = NULL;
	ssize_t n;
	int r;

	if (!path)
		return no_memory(err);
	n = read_file(path, TRUST_UNWRITTEN, FILE_MAX, &text);
	if (n < 0)
		return cm_error_set(err, CM_E_SYS, (int)-n, "cannot read '%s'", path);
	if (n == 0)
		return CM_OK;
	r = cm_ssh_config_add(&ssh->config, text, (size_t)n, ssh->url.host, err);
	return r == CM_OK && ssh->config.host_name ? check_host_name(ssh, err) : r;
}

const char *cm_local_ssh_host(const struct cm_local_ssh *ssh)
{
	return ssh->is_ssh ? ssh->config.host_name : NULL;
}

unsigned int cm_local_ssh_port(const struct cm_local_ssh *ssh)
{
	/* a port in the address is above the configuration's */
	if (!ssh->is_ssh || ssh->url.port != SSH_PORT)
		return 0;
	return ssh->config.port;
}

/* --- host keys ------------------------------------------------------------------------------- */

static int add_known(struct cm_known_hosts *k, const char *path, struct cm_error *err)
{
	CM_AUTO_FREE char *text = NULL;
	ssize_t n = read_file(path, TRUST_ANY, FILE_MAX, &text);

	if (n < 0)
		return cm_error_set(err, CM_E_SYS, (int)-n, "cannot read '%s'", path);
	if (n > 0)
		cm_known_hosts_add(k, text, (size_t)n);
	return CM_OK;
}

static int read_known(const struct cm_local *l, struct cm_local_ssh *ssh, struct cm_error *err)
{
	const char *name = cm_local_ssh_host(ssh);
	unsigned int port = cm_local_ssh_port(ssh);
	CM_AUTO_FREE char *own = l->config->home ? in_home(l, KNOWN_HOSTS) : NULL;
	CM_AUTO_FREE char *host = cm_strdup(name ? name : ssh->url.host);
	struct cm_known_hosts k = { 0 };
	int r;

	if (!host || (l->config->home && !own))
		return no_memory(err);
	for (char *p = host; *p != '\0'; p++) {
		if (*p >= 'A' && *p <= 'Z')
			*p = (char)(*p - 'A' + 'a');
	}
	r = cm_known_hosts_init(&k, host, port > 0 ? port : ssh->url.port, err);
	if (r == CM_OK && own)
		r = add_known(&k, own, err);
	if (r == CM_OK)
		r = add_known(&k, "/etc/ssh/ssh_known_hosts", err);
	if (r == CM_OK)
		r = cm_known_hosts_finish(&k, err);
	if (r == CM_OK) {
		ssh->known_hosts = k.lines;
		cm_buf_init(&k.lines, 0);
	}
	cm_known_hosts_clear(&k);
	return r;
}

/* --- keys ------------------------------------------------------------------------------------ */

struct keys {
	const struct cm_local *l;
	struct cm_buf *texts;
	size_t n;
	/* the first that was passed over for want of a passphrase */
	char *locked;
};

static void add_text(struct keys *k, const char *key, size_t len, bool is_locked)
{
	const char *passphrase = k->l->config->ssh_passphrase;

	if (!is_locked || !passphrase)
		passphrase = "";
	cm_buf_append(k->texts, key, len + 1);
	cm_buf_append(k->texts, passphrase, strlen(passphrase) + 1);
	k->n++;
}

/* One that nobody asked for by name: taken when it can be used as it is. */
static int try_key(struct keys *k, const char *path)
{
	char *text = NULL;
	ssize_t n = read_file(path, TRUST_SECRET, CM_SSH_KEY_MAX, &text);
	enum cm_ssh_key_kind kind = text ? cm_ssh_key_look(text, (size_t)n) : CM_SSH_KEY_NONE;
	int r = n == -ENOMEM ? CM_E_NOMEM : CM_OK;

	if (kind == CM_SSH_KEY_LOCKED && !k->l->config->ssh_passphrase) {
		if (!k->locked)
			k->locked = cm_strdup(path);
	} else if ((kind == CM_SSH_KEY_PLAIN || kind == CM_SSH_KEY_LOCKED) && k->n < KEYS_MAX) {
		add_text(k, text, (size_t)n, kind == CM_SSH_KEY_LOCKED);
	}
	forget(text, n);
	return r;
}

/* "~/x" and "%d/x" are in the home; what has another token is not known here. */
static char *identity_path(const struct cm_local *l, const char *value)
{
	if (cm_text_has_prefix(value, "~/"))
		return cm_asprintf("%s%s", l->config->home, value + 1);
	if (cm_text_has_prefix(value, "%d/"))
		return cm_asprintf("%s%s", l->config->home, value + 2);
	return cm_path_join(l->config->home, value);
}

static int try_named(const struct cm_local *l, const struct cm_strv *named, struct keys *k)
{
	for (size_t i = 0; i < named->n; i++) {
		CM_AUTO_FREE char *path = identity_path(l, named->v[i]);

		if (!path || try_key(k, path) < 0)
			return CM_E_NOMEM;
	}
	return CM_OK;
}

static int try_defaults(const struct cm_local *l, struct keys *k)
{
	static const char *const names[] = { "id_ed25519", "id_ecdsa", "id_rsa" };

	for (size_t i = 0; i < CM_ARRAY_SIZE(names); i++) {
		CM_AUTO_FREE char *path = in_home(l, names[i]);

		if (!path || try_key(k, path) < 0)
			return CM_E_NOMEM;
	}
	return CM_OK;
}

static int find_keys(const struct cm_local *l, const struct cm_local_ssh *ssh, struct keys *k)
{
	if (!l->config->home)
		return CM_OK;
	if (ssh->config.identities.n > 0)
		return try_named(l, &ssh->config.identities, k);
	return try_defaults(l, k);
}

static int wrong_key(const char *path, enum cm_ssh_key_kind kind, struct cm_error *err)
{
	if (kind == CM_SSH_KEY_LOCKED) {
		cm_error_set(err, CM_E_DENIED, 0,
			     "the key '%s' has a passphrase, and none is given", path);
		cm_error_hint(err, "export CASEMATE_SSH_PASSPHRASE, or use --ssh-agent");
		return CM_E_DENIED;
	}
	cm_error_set(err, CM_E_INVALID, 0, "'%s' is no private key of ssh", path);
	cm_error_hint(err, kind == CM_SSH_KEY_PUBLIC
				   ? "it is the public half: name the file without .pub"
				   : "ssh-keygen -y -f FILE shows whether a file is one");
	return CM_E_INVALID;
}

static int unreadable(const char *path, int error, struct cm_error *err)
{
	int code = error == ENOENT ? CM_E_NOT_FOUND : CM_E_SYS;

	cm_error_set(err, code, error, "--ssh-key: cannot read '%s'", path);
	cm_error_hint(err, "check the path and its permissions");
	return code;
}

static void tell_open(struct cm_local *l, int fd, const char *path)
{
	CM_AUTO_FREE char *line = NULL;
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (st.st_mode & S_IROTH) == 0)
		return;
	line = cm_asprintf("every user of this host can read '%s': chmod 600 it", path);
	if (line)
		cm_local_note(l, line);
}

static int take_named_key(struct keys *k, const char *path, const char *text, size_t len,
			  struct cm_error *err)
{
	enum cm_ssh_key_kind kind = cm_ssh_key_look(text, len);
	bool is_locked = kind == CM_SSH_KEY_LOCKED;

	if (kind != CM_SSH_KEY_PLAIN && (!is_locked || !k->l->config->ssh_passphrase))
		return wrong_key(path, kind, err);
	add_text(k, text, len, is_locked);
	return CM_OK;
}

/* --ssh-key. Unlike one that is found it may be anything that can be read, and has to be a key. */
static int read_named_key(struct cm_local *l, struct keys *k, struct cm_error *err)
{
	const char *path = l->config->ssh_key;
	CM_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	char *text;
	ssize_t n;
	int r;

	if (fd < 0)
		return unreadable(path, errno, err);
	text = cm_malloc(CM_SSH_KEY_MAX + 1);
	if (!text)
		return no_memory(err);
	n = cm_read_all(fd, text, CM_SSH_KEY_MAX);
	if (n == -E2BIG) {
		r = wrong_key(path, CM_SSH_KEY_NONE, err);
	} else if (n < 0) {
		r = unreadable(path, (int)-n, err);
	} else {
		text[n] = '\0';
		r = take_named_key(k, path, text, (size_t)n, err);
	}
	if (r == CM_OK)
		tell_open(l, fd, path);
	forget(text, n < 0 ? (ssize_t)CM_SSH_KEY_MAX : n);
	return r;
}

static int check_agent(const struct cm_local *l, struct cm_local_ssh *ssh, struct cm_error *err)
{
	const char *path = cm_strv_env_get(&l->config->env, "SSH_AUTH_SOCK");
	struct stat st;

	if (l->host.is_root) {
		cm_error_set(err, CM_E_UNSUPPORTED, 0,
			     "root's ssh agent cannot be used: in the jail "
			     "nobody is root, and an agent answers no "
			     "other");
		cm_error_hint(err,
			      "name a key with --ssh-key FILE, or run casemate as the user whose "
			      "agent it is");
		return CM_E_UNSUPPORTED;
	}
	if (path && path[0] == '/' && stat(path, &st) == 0 && S_ISSOCK(st.st_mode)) {
		ssh->agent = path;
		return CM_OK;
	}
	cm_error_set(err, CM_E_NOT_FOUND, 0, "--ssh-agent: SSH_AUTH_SOCK names no socket");
	cm_error_hint(err, "start one: eval \"$(ssh-agent)\" && ssh-add");
	return CM_E_NOT_FOUND;
}

/* Without a key the server is asked all the same: it may want none. */
static void tell_locked(struct cm_local *l, const struct keys *k)
{
	CM_AUTO_FREE char *line = NULL;

	if (k->n > 0 || !k->locked)
		return;
	line = cm_asprintf("the key '%s' has a passphrase: export CASEMATE_SSH_PASSPHRASE or use "
			   "--ssh-agent",
			   k->locked);
	if (line)
		cm_local_note(l, line);
}

static int read_keys(struct cm_local *l, struct cm_local_ssh *ssh, struct cm_error *err)
{
	const char *user = ssh->url.user ? ssh->url.user : ssh->config.user;
	struct keys k = { .l = l, .texts = &ssh->texts };
	int r = CM_OK;

	/* at once: growing leaves copies behind */
	cm_buf_reserve(&ssh->texts, TEXTS_MAX);
	cm_buf_puts(&ssh->texts, user ? user : "git");
	cm_buf_append(&ssh->texts, "", 1);
	if (l->config->wants_ssh_agent)
		r = check_agent(l, ssh, err);
	else if (l->config->ssh_key)
		r = read_named_key(l, &k, err);
	else if (find_keys(l, ssh, &k) < 0)
		r = no_memory(err);
	tell_locked(l, &k);
	free(k.locked);
	if (r == CM_OK && cm_buf_status(&ssh->texts) < 0) {
		r = cm_error_set(err, CM_E_LIMIT, 0, "the keys of ssh are too long together");
		cm_error_hint(err, "name one with --ssh-key FILE");
	}
	return r;
}

/* --- the jail -------------------------------------------------------------------------------- */

int cm_local_ssh_init(struct cm_local *l, const char *url, bool has_keys, struct cm_local_ssh *ssh,
		      struct cm_error *err)
{
	int r;

	memset(ssh, 0, sizeof(*ssh));
	cm_buf_init(&ssh->texts, TEXTS_MAX);
	cm_buf_init(&ssh->known_hosts, CM_KNOWN_HOSTS_MAX);
	r = cm_giturl_parse(url, &ssh->url, err);
	ssh->is_ssh = r == CM_OK && ssh->url.kind == CM_GITURL_SSH;
	if (!ssh->is_ssh)
		return r;
	if (l->config->home)
		r = read_config(l, ssh, err);
	if (r == CM_OK)
		r = read_known(l, ssh, err);
	return r == CM_OK && has_keys ? read_keys(l, ssh, err) : r;
}

void cm_local_ssh_clear(struct cm_local_ssh *ssh)
{
	if (ssh->texts.data)
		explicit_bzero(ssh->texts.data, ssh->texts.len);
	cm_buf_clear(&ssh->texts);
	cm_buf_clear(&ssh->known_hosts);
	cm_ssh_config_clear(&ssh->config);
	cm_giturl_clear(&ssh->url);
	free(cm_ptr_take(&ssh->path));
	ssh->is_ssh = false;
}

int cm_local_ssh_show(struct cm_local *l, struct cm_local_ssh *ssh, struct cm_local_plan *extra,
		      struct cm_error *err)
{
	CM_AUTO_FREE char *dir = NULL;
	int r;

	if (!ssh->is_ssh)
		return CM_OK;
	/* 0644, behind a directory that is the caller's alone: in the jail it is another's */
	r = cm_replace_file_at(l->session.dir_fd, KNOWN_HOSTS, ssh->known_hosts.data,
			       ssh->known_hosts.len, 0644, false);
	if (r < 0)
		return cm_local_write_failed(l, -r, err);
	/* without a link on the way: who mounts it follows none */
	dir = cm_fd_real_path(l->session.dir_fd);
	free(ssh->path);
	ssh->path = dir ? cm_asprintf("%s/" KNOWN_HOSTS, dir) : NULL;
	if (!ssh->path)
		return no_memory(err);
	extra->mounts[extra->n_mounts++] =
		(struct cm_local_mount){ ssh->path, CM_SSH_HOME_INSIDE "/.ssh/" KNOWN_HOSTS,
					 CM_OPF_FILE | CM_OPF_READ_ONLY };
	if (ssh->agent)
		extra->mounts[extra->n_mounts++] =
			(struct cm_local_mount){ ssh->agent, CM_SSH_AGENT_INSIDE,
						 CM_OPF_FILE | CM_OPF_WRITABLE };
	return CM_OK;
}

void cm_local_ssh_hide(struct cm_local *l, struct cm_local_ssh *ssh)
{
	if (ssh->path)
		(void)unlinkat(l->session.dir_fd, KNOWN_HOSTS, 0);
	free(cm_ptr_take(&ssh->path));
}
