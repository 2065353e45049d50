/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the server of --repo is told: where it is read from, and which of several counts.
 *
 * No message has any of it, nor the option's own text: whoever writes --git-credential TOKEN has
 * put the token there.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/num.h"
#include "runtime/base/path.h"
#include "runtime/base/text.h"
#include "runtime/spec/config_internal.h"

#define OPTION "--git-credential"
#define TOKEN_VARIABLE "CASEMATE_GIT_TOKEN"
#define MAX_SECRET (64UL * 1024)

/* servers that take a token look at no user name, but want one */
static const char token_user[] = "x-access-token";

static int no_memory(struct cm_error *err)
{
	return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
}

/* Up to the end of file; *ret may hold NUL bytes. */
static int read_secret(int fd, char **ret, size_t *ret_len, struct cm_error *err)
{
	char *text = cm_malloc(MAX_SECRET + 1);
	ssize_t n;
	int r = CM_OK;

	if (!text)
		return no_memory(err);
	n = cm_read_all(fd, text, MAX_SECRET);
	if (n == -E2BIG) {
		r = cm_error_set(err, CM_E_LIMIT, 0, OPTION ": more than %lu bytes", MAX_SECRET);
		cm_error_hint(err, "a token is much shorter; is it the right one?");
	} else if (n < 0) {
		r = cm_error_set(err, CM_E_SYS, (int)-n, OPTION ": cannot read what it names");
		cm_error_hint(err, "name a file, or a descriptor that is open for reading");
	}
	if (r != CM_OK) {
		explicit_bzero(text, MAX_SECRET);
		free(text);
		return r;
	}
	text[n] = '\0';
	*ret = text;
	*ret_len = (size_t)n;
	return CM_OK;
}

static int open_file(const struct cm_config *config, const char *path, struct cm_merge *m,
		     int *ret_fd, struct cm_error *err)
{
	bool is_home = path[0] == '~' && path[1] == '/' && config->home;
	CM_AUTO_FREE char *full = is_home ? cm_asprintf("%s%s", config->home, path + 1)
					  : cm_path_join(config->cwd, path);
	CM_AUTO_FD int fd = -1;
	struct stat st;

	if (!full)
		return no_memory(err);
	fd = open(full, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st) < 0) {
		int error = errno;
		int code = error == ENOENT ? CM_E_NOT_FOUND : CM_E_SYS;

		cm_error_set(err, code, error, OPTION ": cannot open '%s'", full);
		cm_error_hint(err, "check the path and its permissions");
		return code;
	}
	if (S_ISREG(st.st_mode) && (st.st_mode & S_IROTH) &&
	    cm_strv_addf(&m->notes, "every user of this host can read '%s': chmod 600 it", full) !=
		    CM_OK)
		return no_memory(err);
	*ret_fd = cm_fd_take(&fd);
	return CM_OK;
}

static int read_file(const struct cm_config *config, const char *path, struct cm_merge *m,
		     char **ret, size_t *ret_len, struct cm_error *err)
{
	CM_AUTO_FD int fd = -1;
	int r = open_file(config, path, m, &fd, err);

	return r == CM_OK ? read_secret(fd, ret, ret_len, err) : r;
}

static int read_fd(const char *number, char **ret, size_t *ret_len, struct cm_error *err)
{
	uint64_t fd;
	int r = cm_parse_u64(number, OPTION, 0, 65535, &fd, err);

	if (r != CM_OK) {
		cm_error_set(err, CM_E_INVALID, 0, OPTION ": fd: needs the number of a descriptor");
		cm_error_hint(err, "for example " OPTION " fd:3, with '3<FILE' in the shell");
		return CM_E_INVALID;
	}
	r = read_secret((int)fd, ret, ret_len, err);
	/* nothing else reads it; the standard ones stay, so that no file gets their number */
	if (fd > STDERR_FILENO)
		(void)close((int)fd);
	return r;
}

static int read_variable(struct cm_config *config, const char *name, char **ret, size_t *ret_len,
			 struct cm_error *err)
{
	bool is_name = name[0] != '\0' && !strchr(name, '=');
	int r = CM_OK;

	if (strcmp(name, TOKEN_VARIABLE) == 0)
		*ret = cm_strdup(config->git_token);
	else if (is_name)
		r = cm_config_take_variable(config, name, ret, err);
	if (r != CM_OK)
		return r;
	if (!*ret && config->git_token && strcmp(name, TOKEN_VARIABLE) == 0)
		return no_memory(err);
	if (!*ret) {
		r = cm_error_set(err, CM_E_NOT_FOUND, 0,
				 OPTION ": the variable that it names is not set");
		cm_error_hint(err, "write env: and a variable's name, and export the variable");
		return r;
	}
	*ret_len = strlen(*ret);
	return CM_OK;
}

static int wrong_form(struct cm_error *err)
{
	int r = cm_error_set(err, CM_E_INVALID, 0,
			     OPTION " must be env:NAME, file:PATH, fd:N, helper or none, and no "
				    "secret itself");

	cm_error_hint(err, "other users of this host can read command lines; put it into the "
			   "variable " TOKEN_VARIABLE);
	return r;
}

static int read_from(struct cm_config *config, const char *where, struct cm_merge *m, char **ret,
		     size_t *ret_len, struct cm_error *err)
{
	if (cm_text_has_prefix(where, "env:"))
		return read_variable(config, where + 4, ret, ret_len, err);
	if (cm_text_has_prefix(where, "file:") && where[5] != '\0')
		return read_file(config, where + 5, m, ret, ret_len, err);
	if (cm_text_has_prefix(where, "fd:"))
		return read_fd(where + 3, ret, ret_len, err);
	return wrong_form(err);
}

/* Such a character would end a line of a protocol, and a NUL the text. */
static bool has_control(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
			return true;
	}
	return false;
}

static int bad_content(const char *what, struct cm_error *err)
{
	int r = cm_error_set(err, CM_E_INVALID, 0, OPTION ": what it names %s", what);

	cm_error_hint(err, "it is to hold one line, a token or USER:PASSWORD");
	return r;
}

/* USER:SECRET, or a secret alone; an editor's newline at the end is none of it. */
static int take_apart(struct cm_config *config, char *text, size_t len, struct cm_error *err)
{
	char *secret = text;
	char *colon;

	if (len > 0 && text[len - 1] == '\n')
		text[--len] = '\0';
	if (len > 0 && text[len - 1] == '\r')
		text[--len] = '\0';
	if (has_control(text, len))
		return bad_content("has more than one line, or a control character", err);
	colon = strchr(text, ':');
	if (colon) {
		*colon = '\0';
		secret = colon + 1;
	}
	if (secret[0] == '\0')
		return bad_content("is empty", err);
	if (colon && text[0] == '-')
		return bad_content("has a user name that begins with a dash", err);
	config->git_secret = cm_strdup(secret);
	if (colon && text[0] != '\0')
		config->git_user = cm_strdup(text);
	if (!config->git_secret || (colon && text[0] != '\0' && !config->git_user))
		return no_memory(err);
	return CM_OK;
}

int cm_config_read_credential(struct cm_config *config, const struct cm_layer *flags,
			      struct cm_merge *m, struct cm_error *err)
{
	const struct cm_setting *asked = cm_layer_find(flags, CM_KEY_GIT_CREDENTIAL);
	char *text = NULL;
	size_t len = 0;
	int r;

	cm_free_secret(&config->git_user);
	cm_free_secret(&config->git_secret);
	config->git_helper = CM_GIT_HELPER_LAST;
	if (!asked)
		return CM_OK;
	if (strcmp(asked->value, "helper") == 0 || strcmp(asked->value, "none") == 0) {
		config->git_helper =
			asked->value[0] == 'h' ? CM_GIT_HELPER_FIRST : CM_GIT_HELPER_NEVER;
		return CM_OK;
	}
	r = read_from(config, asked->value, m, &text, &len, err);
	if (r == CM_OK && text)
		r = take_apart(config, text, len, err);
	if (text) {
		explicit_bzero(text, len);
		free(text);
	}
	return r;
}

static int wrong_name(struct cm_error *err)
{
	int r = cm_error_set(err, CM_E_INVALID, 0,
			     "--setup-secret needs the name of a variable, and no value");

	cm_error_hint(err, "other users of this host can read command lines; export the variable, "
			   "and give its name");
	return r;
}

static int read_setup_secret(struct cm_config *config, const char *name, struct cm_error *err)
{
	char *value = NULL;
	char *item;
	int r;

	if (name[0] == '\0' || strchr(name, '='))
		return wrong_name(err);
	r = cm_config_take_variable(config, name, &value, err);
	if (r != CM_OK || !value)
		return r;
	item = cm_asprintf("%s=%s", name, value);
	cm_free_secret(&value);
	if (!item || cm_strv_add_own(&config->setup_secrets, item) != CM_OK)
		return no_memory(err);
	return CM_OK;
}

int cm_config_read_setup_secrets(struct cm_config *config, const struct cm_layer *flags,
				 struct cm_error *err)
{
	int r = CM_OK;

	for (size_t i = 0; i < flags->n && r == CM_OK; i++) {
		if (flags->settings[i].key == CM_KEY_SETUP_SECRET)
			r = read_setup_secret(config, flags->settings[i].value, err);
	}
	return r;
}

static bool is_http(const struct cm_spec *spec)
{
	return spec->repo && (cm_text_has_prefix(spec->repo, "https://") ||
			      cm_text_has_prefix(spec->repo, "http://"));
}

bool cm_config_may_ask_helper(const struct cm_config *config, const struct cm_spec *spec)
{
	return is_http(spec) && config->git_helper != CM_GIT_HELPER_NEVER;
}

int cm_config_check_credential(const struct cm_config *config, const struct cm_spec *spec,
			       struct cm_error *err)
{
	int r = CM_OK;

	/* of a session that exists the repository is known */
	if ((config->git_secret || config->git_helper != CM_GIT_HELPER_LAST) &&
	    spec->workspace_kind != CM_WORKSPACE_REPO && !spec->session_id) {
		r = cm_error_set(err, CM_E_INVALID, 0, OPTION " needs --repo or --session");
		cm_error_hint(err, "name the repository with --repo URL");
	} else if (config->git_helper == CM_GIT_HELPER_FIRST && spec->repo && !is_http(spec)) {
		r = cm_error_set(err, CM_E_INVALID, 0,
				 OPTION " helper is for a --repo by https or http");
		cm_error_hint(err, "leave it out: ssh has keys, and a path of this host nothing");
	} else if (config->git_token && has_control(config->git_token, strlen(config->git_token))) {
		r = cm_error_set(err, CM_E_INVALID, 0,
				 TOKEN_VARIABLE " has more than one line, or a control character");
		cm_error_hint(err, "unset it, or set it to a token");
	}
	return r;
}

static const char *or_else(const char *text, const char *other)
{
	return text ? text : other;
}

bool cm_config_git_credential(const struct cm_config *config, const struct cm_spec *spec,
			      const char **ret_user, const char **ret_secret)
{
	const char *repo = spec->repo ? spec->repo : "/";
	bool by_http = is_http(spec);
	const char *user = or_else(spec->repo_user, by_http ? token_user : "git");
	const char *secret;

	/* a path of this host, or git's own protocol, which asks for nothing */
	if (repo[0] == '/' || cm_text_has_prefix(repo, "git://"))
		return false;
	if (by_http && config->git_helper != CM_GIT_HELPER_LAST)
		return false;
	if (config->git_secret) {
		user = or_else(config->git_user, user);
		secret = config->git_secret;
	} else {
		secret = or_else(spec->repo_secret, by_http ? config->git_token : NULL);
	}
	/* ssh's user name is the account, and in the address already */
	if (!secret && !(by_http && spec->repo_user))
		return false;
	*ret_user = user;
	*ret_secret = or_else(secret, "");
	return true;
}
