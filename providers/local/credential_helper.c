/* SPDX-License-Identifier: Apache-2.0 */
#include "providers/local/credential_helper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "providers/local/local_internal.h"
#include "runtime/base/alloc.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/giturl.h"
#include "runtime/base/kernel.h"
#include "runtime/base/path.h"
#include "runtime/base/text.h"

/* some ask a service of the desktop; nobody is there who could click */
#define ANSWER_MS 20000
#define ANSWER_MAX (64UL * 1024)

/* Not by PATH, where a session's tree may stand; what git starts is found by what is left of it. */
static const char *const programs[] = { "/usr/bin/git", "/usr/local/bin/git", "/bin/git" };

struct process {
	pid_t pid;
	int pidfd;
	int in;
	int out;
};

static int no_memory(struct cm_error *err)
{
	return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the credential");
}

/* As root with another user's home (sudo), that user's configuration is not root's to run. */
static bool is_own_home(const struct cm_local *l)
{
	struct stat st;

	return !l->config->home || stat(l->config->home, &st) < 0 || st.st_uid == geteuid();
}

static const char *find_git(const struct cm_local *l)
{
	if (!is_own_home(l))
		return NULL;
	for (size_t i = 0; i < CM_ARRAY_SIZE(programs); i++) {
		if (access(programs[i], X_OK) == 0)
			return programs[i];
	}
	return NULL;
}

/* --- what it is asked and what it says ------------------------------------------------------- */

static int write_question(const struct cm_local *l, const struct cm_giturl *url, struct cm_buf *out)
{
	bool is_https = url->kind == CM_GITURL_HTTPS;
	bool is_v6 = strchr(url->host, ':') != NULL;
	const char *path = url->path;

	while (*path == '/')
		path++;
	cm_buf_printf(out, "protocol=%s\nhost=%s%s%s", is_https ? "https" : "http",
		      is_v6 ? "[" : "", url->host, is_v6 ? "]" : "");
	if (url->port != (is_https ? 443U : 80U))
		cm_buf_printf(out, ":%u", url->port);
	cm_buf_printf(out, "\npath=%s\n", path);
	/* the address has none: what it was given with is apart */
	if (l->spec.repo_user)
		cm_buf_printf(out, "username=%s\n", l->spec.repo_user);
	cm_buf_puts(out, "\n");
	return cm_buf_status(out);
}

/* A value of the protocol: one line, and no byte that would end another one. */
static char *take_value(const char *line, size_t len, const char *key)
{
	size_t key_len = strlen(key);
	char *value;

	if (len <= key_len || memcmp(line, key, key_len) != 0)
		return NULL;
	for (size_t i = key_len; i < len; i++) {
		if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
			return NULL;
	}
	value = cm_malloc(len - key_len + 1);
	if (!value)
		return NULL;
	memcpy(value, line + key_len, len - key_len);
	value[len - key_len] = '\0';
	return value;
}

/*
 * The first two lines "username=" and "password=" of what git said; false: it has not both, or something
 * that can be no credential.
 */
static bool read_answer(const char *text, size_t len, char **ret_user, char **ret_secret)
{
	char *user = NULL;
	char *secret = NULL;
	const char *after = text + len;

	while (text < after) {
		const char *newline = memchr(text, '\n', (size_t)(after - text));
		size_t n = (size_t)((newline ? newline : after) - text);

		if (!user)
			user = take_value(text, n, "username=");
		if (!secret)
			secret = take_value(text, n, "password=");
		text += n + 1;
	}
	if (!user || !secret) {
		cm_free_secret(&user);
		cm_free_secret(&secret);
		return false;
	}
	*ret_user = user;
	*ret_secret = secret;
	return true;
}

/* --- the process ----------------------------------------------------------------------------- */

/* Of git's own variables those that are the user's configuration, and no repository's. */
static bool is_passed(const char *item)
{
	if (cm_text_has_prefix(item, "GIT_"))
		return cm_text_has_prefix(item, "GIT_CONFIG_") ||
		       cm_text_has_prefix(item, "GIT_EXEC_PATH=");
	return !cm_text_has_prefix(item, "SSH_ASKPASS") && !cm_text_has_prefix(item, "PATH=");
}

/* A session's command could have put a program there. */
static bool is_trusted(const struct cm_local *l, const char *project, const char *dir)
{
	return dir[0] == '/' && !cm_path_is_below(dir, l->store.root) &&
	       !(project && cm_path_is_below(dir, project));
}

static int add_path(const struct cm_local *l, struct cm_strv *env)
{
	const char *path = cm_strv_env_get(&l->config->env, "PATH");
	CM_AUTO_FREE char *copy = cm_strdup(path ? path : "");
	CM_AUTO_FREE char *project = cm_config_project_dir(l->config->cwd);
	CM_AUTO_BUF struct cm_buf kept;
	char *rest = copy;

	cm_buf_init(&kept, 131072);
	while (rest) {
		char *dir = strsep(&rest, ":");
		CM_AUTO_FREE char *real = cm_path_real(dir);

		if (real && is_trusted(l, project, dir) && is_trusted(l, project, real))
			cm_buf_printf(&kept, "%s%s", kept.len > 0 ? ":" : "", real);
	}
	if (cm_buf_status(&kept) != CM_OK)
		return CM_E_NOMEM;
	return cm_strv_env_set(env, "PATH", kept.len > 0 ? kept.data : "/usr/bin:/bin");
}

static int make_env(const struct cm_local *l, struct cm_strv *env, struct cm_error *err)
{
	static const char *const ours[] = { "GIT_TERMINAL_PROMPT=0",
					    "GIT_ASKPASS=", "GCM_INTERACTIVE=never" };
	int r = CM_OK;

	for (size_t i = 0; i < l->config->env.n && r == CM_OK; i++) {
		if (is_passed(l->config->env.v[i]))
			r = cm_strv_add(env, l->config->env.v[i]);
	}
	for (size_t i = 0; i < CM_ARRAY_SIZE(ours) && r == CM_OK; i++)
		r = cm_strv_add(env, ours[i]);
	if (r == CM_OK)
		r = add_path(l, env);
	return r == CM_OK ? CM_OK : no_memory(err);
}

/* A session of its own: no terminal, and one group to end. */
static int spawn(const char *git, char *const *env, int in, int out, pid_t *ret_pid)
{
	char *argv[] = { (char *)(uintptr_t) "git", (char *)(uintptr_t) "credential",
			 (char *)(uintptr_t) "fill", NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none;
	int r;

	(void)sigemptyset(&none);
	if (posix_spawn_file_actions_init(&actions) != 0)
		return -ENOMEM;
	if (posix_spawnattr_init(&attr) != 0) {
		(void)posix_spawn_file_actions_destroy(&actions);
		return -ENOMEM;
	}
	r = posix_spawnattr_setsigmask(&attr, &none);
	if (r == 0)
		r = posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
	if (r == 0)
		r = posix_spawn_file_actions_addchdir_np(&actions, "/");
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	/* what a helper says may have anything in it */
	if (r == 0)
		r = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY,
						     0);
	if (r == 0)
		r = posix_spawn(ret_pid, git, &actions, &attr, argv, env);
	(void)posix_spawnattr_destroy(&attr);
	(void)posix_spawn_file_actions_destroy(&actions);
	return -r;
}

static int start(const char *git, char *const *env, struct process *ret)
{
	int in[2] = { -1, -1 };
	int out[2] = { -1, -1 };
	int r = 0;

	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
		r = -errno;
	if (r == 0)
		r = spawn(git, env, in[0], out[1], &ret->pid);
	cm_fd_close(&in[0]);
	cm_fd_close(&out[1]);
	if (r == 0) {
		ret->in = cm_fd_take(&in[1]);
		ret->out = cm_fd_take(&out[0]);
		ret->pidfd = cm_sys_pidfd_open(ret->pid, 0);
	}
	cm_fd_close(&in[1]);
	cm_fd_close(&out[0]);
	return r;
}

/* What was given up goes with all that it started; what has ended may leave a cache running. */
static bool end(struct process *p, bool is_given_up)
{
	int status = 0;

	cm_fd_close(&p->in);
	cm_fd_close(&p->out);
	if (is_given_up)
		(void)kill(-p->pid, SIGKILL);
	while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR)
		;
	cm_fd_close(&p->pidfd);
	return !is_given_up && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Until it has ended: CM_OK, CM_E_TIMEOUT, CM_E_LIMIT or CM_E_CANCELLED. */
static int listen_to(const struct cm_local *l, const struct process *p, struct cm_buf *answer)
{
	int64_t deadline = cm_clock_mono_ms() + ANSWER_MS;
	struct pollfd fds[] = { { .fd = p->out, .events = POLLIN },
				{ .fd = p->pidfd, .events = POLLIN },
				{ .fd = cm_local_cancel_fd(l), .events = POLLIN } };
	char chunk[4096];
	ssize_t n;

	for (;;) {
		int64_t left = deadline - cm_clock_mono_ms();

		if (left <= 0)
			return CM_E_TIMEOUT;
		if (poll(fds, CM_ARRAY_SIZE(fds), (int)left) <= 0)
			continue;
		if (fds[2].revents != 0)
			return CM_E_CANCELLED;
		/* it has ended, and said all: somebody else may hold its output */
		if (fds[0].revents == 0)
			return CM_OK;
		n = read(p->out, chunk, sizeof(chunk));
		if (n > 0)
			cm_buf_append(answer, chunk, (size_t)n);
		else
			fds[0].fd = -1;
		explicit_bzero(chunk, sizeof(chunk));
		if (cm_buf_status(answer) != CM_OK)
			return CM_E_LIMIT;
	}
}

static int ask(const struct cm_local *l, const char *git, const struct cm_buf *question,
	       struct cm_buf *answer, bool *ret_is_good, struct cm_error *err)
{
	CM_AUTO_STRV struct cm_strv env = { 0 };
	struct process p = { .pidfd = -1, .in = -1, .out = -1 };
	int r = make_env(l, &env, err);
	bool is_written;

	*ret_is_good = false;
	if (r < 0 || start(git, env.v, &p) < 0)
		return r;
	/* at most a few kilobytes: a pipe takes them */
	is_written = cm_write_all(p.in, question->data, question->len) == 0;
	cm_fd_close(&p.in);
	r = listen_to(l, &p, answer);
	*ret_is_good = end(&p, r != CM_OK) && is_written;
	if (r == CM_E_CANCELLED)
		return cm_error_set(err, r, 0, "stopped while git's credential helpers were asked");
	return CM_OK;
}

static int ask_and_read(struct cm_local *l, const char *git, const struct cm_giturl *url,
			struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf question;
	struct cm_buf answer;
	bool is_good = false;
	int r;

	cm_buf_init(&question, 2 * CM_GITURL_MAX);
	cm_buf_init(&answer, ANSWER_MAX);
	/* at once: growing leaves copies behind */
	cm_buf_reserve(&answer, ANSWER_MAX);
	r = write_question(l, url, &question);
	if (r == CM_OK)
		r = ask(l, git, &question, &answer, &is_good, err);
	else
		r = no_memory(err);
	if (r == CM_OK && is_good && answer.len > 0)
		(void)read_answer(answer.data, answer.len, &l->helper_user, &l->helper_secret);
	if (answer.data)
		explicit_bzero(answer.data, answer.len);
	cm_buf_clear(&answer);
	return r;
}

int cm_credential_helper_ask(struct cm_local *l, const char *url, const char **ret_user,
			     const char **ret_secret, struct cm_error *err)
{
	const char *git = find_git(l);
	struct cm_giturl parsed = { 0 };
	int r = CM_OK;

	if (git && !l->is_helper_asked)
		r = cm_giturl_parse(url, &parsed, err);
	if (r == CM_OK && parsed.host)
		r = ask_and_read(l, git, &parsed, err);
	cm_giturl_clear(&parsed);
	if (r < 0)
		return r;
	l->is_helper_asked = true;
	cm_credential_helper_given(l, ret_user, ret_secret);
	return CM_OK;
}

void cm_credential_helper_given(const struct cm_local *l, const char **ret_user,
				const char **ret_secret)
{
	*ret_user = l->helper_user;
	*ret_secret = l->helper_secret;
}

void cm_credential_helper_forget(struct cm_local *l)
{
	cm_free_secret(&l->helper_user);
	cm_free_secret(&l->helper_secret);
	l->is_helper_asked = false;
}
