/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/fake_provider.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/fd.h"

#define HOST_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define BUSYBOX "/bin/busybox"

struct fake_exec {
	struct cm_exec base;
	struct fake_provider *fake;
	const struct fake_answer *answer;
	unsigned int step;
	pid_t pid;
	int pidfd;
	int in;
	int out[2];
	bool is_reaped;
	unsigned int n_output;
	char bytes[32 * 1024];
};

static struct fake_provider *of_session(struct cm_session *s)
{
	return (struct fake_provider *)s->provider;
}

/* --- next ------------------------------------------------------------------------------------ */

static int next_answer(struct fake_exec *e, struct cm_exec_event *ret)
{
	const struct fake_answer *a = e->answer;

	e->step++;
	if (e->step == 1)
		*ret = (struct cm_exec_event){ .kind = CM_EXEC_HAS_STARTED };
	else if (e->step == 2)
		*ret = (struct cm_exec_event){ .kind = CM_EXEC_HAS_OUTPUT,
					       .stream = 1,
					       .bytes = a->out ? a->out : "",
					       .len = a->out_len };
	else if (e->step == 3)
		*ret = (struct cm_exec_event){ .kind = CM_EXEC_HAS_OUTPUT,
					       .stream = 2,
					       .bytes = a->err ? a->err : "",
					       .len = a->err ? strlen(a->err) : 0 };
	else
		*ret = (struct cm_exec_event){ .kind = CM_EXEC_HAS_ENDED,
					       .end = { .kind = CM_EXEC_EXITED,
							.exit_code = a->exit_code } };
	return CM_OK;
}

static void reap(struct fake_exec *e, struct cm_exec_end *ret)
{
	int status = 0;

	(void)waitpid(e->pid, &status, 0);
	e->is_reaped = true;
	ret->kind = WIFEXITED(status) ? CM_EXEC_EXITED : CM_EXEC_SIGNALLED;
	ret->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	ret->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + ret->signal;
}

static int wait_ms(const struct cm_call *call)
{
	int64_t left = call->deadline_ms - cm_clock_mono_ms();

	if (call->deadline_ms == INT64_MAX)
		return -1;
	return left <= 0 ? 0 : left > 60000 ? 60000 : (int)left;
}

/* 0: it was at its end. */
static size_t take(struct fake_exec *e, int i, struct cm_exec_event *ret)
{
	ssize_t n = read(e->out[i], e->bytes, sizeof(e->bytes));

	if (n <= 0) {
		cm_fd_close(&e->out[i]);
		return 0;
	}
	*ret = (struct cm_exec_event){
		.kind = CM_EXEC_HAS_OUTPUT, .stream = i + 1, .bytes = e->bytes, .len = (size_t)n
	};
	e->n_output++;
	return (size_t)n;
}

static bool is_lost(struct fake_exec *e)
{
	if (e->fake->lose_after == 0 || e->n_output < e->fake->lose_after)
		return false;
	e->fake->lose_after = 0;
	return true;
}

static int next(struct cm_exec *exec, struct cm_wake *wake, const struct cm_call *call,
		struct cm_exec_event *ret, struct cm_error *err)
{
	struct fake_exec *e = (struct fake_exec *)exec;
	size_t n_wake = wake ? wake->n : 0;

	if (e->answer)
		return next_answer(e, ret);
	if (e->step++ == 0) {
		*ret = (struct cm_exec_event){ .kind = CM_EXEC_HAS_STARTED };
		return CM_OK;
	}
	if (is_lost(e))
		return cm_error_set(err, CM_E_REMOTE, 0, "the connection broke off");
	for (;;) {
		struct pollfd fds[4 + CM_WAKE_MAX] = {
			{ .fd = e->out[0], .events = POLLIN },
			{ .fd = e->out[1], .events = POLLIN },
			{ .fd = e->pidfd, .events = POLLIN },
			{ .fd = call->cancel_fd, .events = POLLIN },
		};
		int n;

		for (size_t i = 0; i < n_wake; i++)
			fds[4 + i] = wake->fds[i];
		n = poll(fds, 4 + n_wake, wait_ms(call));
		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0)
			return cm_error_set(err, CM_E_TIMEOUT, 0, "it took too long");
		if (fds[3].revents != 0)
			return cm_error_set(err, CM_E_CANCELLED, 0, "given up");
		if ((fds[0].revents != 0 && take(e, 0, ret) > 0) ||
		    (fds[1].revents != 0 && take(e, 1, ret) > 0))
			return CM_OK;
		if (fds[0].revents == 0 && fds[1].revents == 0 && fds[2].revents != 0) {
			*ret = (struct cm_exec_event){ .kind = CM_EXEC_HAS_ENDED };
			reap(e, &ret->end);
			return CM_OK;
		}
		for (size_t i = 0; i < n_wake; i++) {
			wake->fds[i].revents = fds[4 + i].revents;
			if (wake->fds[i].revents != 0)
				*ret = (struct cm_exec_event){ .kind = CM_EXEC_WOKEN };
		}
		if (ret->kind == CM_EXEC_WOKEN)
			return CM_OK;
	}
}

static int input(struct cm_exec *exec, const void *bytes, size_t len, const struct cm_call *call,
		 struct cm_error *err)
{
	struct fake_exec *e = (struct fake_exec *)exec;
	int r;

	(void)call;
	if (e->answer)
		return CM_OK;
	if (len == 0) {
		cm_fd_close(&e->in);
		return CM_OK;
	}
	r = cm_write_all(e->in, bytes, len);
	if (r == -EPIPE)
		return cm_error_set(err, CM_E_NOT_FOUND, 0, "the command has ended");
	return r < 0 ? cm_error_set(err, CM_E_SYS, -r, "cannot write") : CM_OK;
}

static int send_signal(struct cm_exec *exec, int sig, const struct cm_call *call,
		       struct cm_error *err)
{
	struct fake_exec *e = (struct fake_exec *)exec;

	(void)call;
	if (e->answer || e->is_reaped || kill(-e->pid, sig) < 0)
		return cm_error_set(err, CM_E_NOT_FOUND, 0, "the command has ended");
	return CM_OK;
}

static void release(struct cm_exec *exec)
{
	struct fake_exec *e = (struct fake_exec *)exec;
	struct cm_exec_end end;

	if (!e->answer) {
		cm_fd_close(&e->in);
		cm_fd_close(&e->out[0]);
		cm_fd_close(&e->out[1]);
		if (!e->is_reaped) {
			(void)kill(-e->pid, SIGKILL);
			reap(e, &end);
		}
		cm_fd_close(&e->pidfd);
	}
	free(e);
}

static const struct cm_exec_ops exec_ops = {
	.next = next,
	.input = input,
	.signal = send_signal,
	.release = release,
};

/* --- start ----------------------------------------------------------------------------------- */

static bool find_program(const char *path, const char *name, char ret[512])
{
	if (strchr(name, '/')) {
		(void)snprintf(ret, 512, "%s", name);
		return access(ret, X_OK) == 0;
	}
	for (const char *at = path; *at != '\0';
	     at += strcspn(at, ":") + (at[strcspn(at, ":")] != '\0')) {
		(void)snprintf(ret, 512, "%.*s/%s", (int)strcspn(at, ":"), at, name);
		if (access(ret, X_OK) == 0)
			return true;
	}
	return false;
}

static int make_pipe(int fds[2])
{
	return pipe2(fds, O_CLOEXEC);
}

static bool make_env(const struct fake_provider *f, char *const *more, struct cm_strv *ret)
{
	bool is_good = cm_strv_addf(ret, "PATH=%s", f->path) == CM_OK &&
		       cm_strv_addf(ret, "HOME=%s", f->home) == CM_OK &&
		       cm_strv_add(ret, "LC_ALL=C") == CM_OK;

	for (size_t i = 0; more && more[i] && is_good; i++) {
		CM_AUTO_FREE char *name = cm_asprintf("%.*s", (int)strcspn(more[i], "="), more[i]);

		is_good = cm_strv_env_set(ret, name, strchr(more[i], '=') + 1) == CM_OK;
	}
	return is_good;
}

static void note_start(struct fake_provider *f, const struct cm_exec_request *request)
{
	for (size_t i = 0; request->argv[i]; i++) {
		cm_buf_puts(&f->seen_args, request->argv[i]);
		cm_buf_putc(&f->seen_args, '\n');
	}
	for (size_t i = 0; request->env && request->env[i]; i++) {
		cm_buf_puts(&f->seen_env, request->env[i]);
		cm_buf_putc(&f->seen_env, '\n');
	}
}

static int spawn(struct fake_exec *e, const struct cm_exec_request *request)
{
	CM_AUTO_STRV struct cm_strv env = { 0 };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	char program[512];
	int in[2] = { -1, -1 };
	int out[2] = { -1, -1 };
	int error[2] = { -1, -1 };
	sigset_t none;
	int r;

	if (!make_env(e->fake, request->env, &env) ||
	    !find_program(e->fake->path, request->argv[0], program) || make_pipe(in) < 0 ||
	    make_pipe(out) < 0 || make_pipe(error) < 0)
		return -1;
	(void)sigemptyset(&none);
	(void)sigaddset(&none, SIGPIPE);
	(void)posix_spawnattr_init(&attr);
	(void)posix_spawnattr_setpgroup(&attr, 0);
	(void)posix_spawnattr_setsigdefault(&attr, &none);
	(void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
	(void)posix_spawn_file_actions_init(&actions);
	if (request->has_input)
		(void)posix_spawn_file_actions_adddup2(&actions, in[0], 0);
	else
		(void)posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	(void)posix_spawn_file_actions_adddup2(&actions, out[1], 1);
	(void)posix_spawn_file_actions_adddup2(&actions, error[1], 2);
	(void)posix_spawn_file_actions_addchdir_np(&actions,
						   request->cwd ? request->cwd : e->fake->work);
	r = posix_spawn(&e->pid, program, &actions, &attr, request->argv, env.v);
	(void)posix_spawn_file_actions_destroy(&actions);
	(void)posix_spawnattr_destroy(&attr);
	cm_fd_close(&in[0]);
	cm_fd_close(&out[1]);
	cm_fd_close(&error[1]);
	e->in = in[1];
	e->out[0] = out[0];
	e->out[1] = error[0];
	if (!request->has_input)
		cm_fd_close(&e->in);
	e->pidfd = r == 0 ? (int)syscall(SYS_pidfd_open, e->pid, 0) : -1;
	return r == 0 ? 0 : -1;
}

static int exec_start(struct cm_session *s, const struct cm_exec_request *request,
		      const struct cm_call *call, struct cm_exec **ret, struct cm_error *err)
{
	struct fake_provider *f = of_session(s);
	struct fake_exec *e = calloc(1, sizeof(*e));

	(void)call;
	if (!e)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	f->n_started++;
	note_start(f, request);
	e->base.ops = &exec_ops;
	e->base.session = s;
	e->fake = f;
	e->in = e->out[0] = e->out[1] = e->pidfd = -1;
	if (f->n_answers > 0) {
		e->answer = f->answers++;
		f->n_answers--;
	} else if (spawn(e, request) < 0) {
		free(e);
		return cm_error_set(err, CM_E_REMOTE, 0, "cannot start '%s'", request->argv[0]);
	}
	*ret = &e->base;
	return CM_OK;
}

static int session_network(struct cm_session *s, enum cm_network network,
			   const struct cm_call *call, struct cm_error *err)
{
	struct fake_provider *f = of_session(s);

	(void)call;
	if (f->n_networks >= CM_ARRAY_SIZE(f->networks))
		return cm_error_set(err, CM_E_LIMIT, 0, "the network was set too often");
	f->networks[f->n_networks++] = network;
	return CM_OK;
}

const struct cm_provider_ops fake_provider_ops = {
	.abi = CM_PROVIDER_ABI,
	.name = "fake",
	.exec_start = exec_start,
	.session_network = session_network,
};

/* --- the provider ---------------------------------------------------------------------------- */

/* A directory with a link for each applet, and git and tar's helpers behind it. */
static bool make_busybox(struct fake_provider *f)
{
	char command[512];
	pid_t pid;
	int status = -1;
	char dir[96];
	char *const argv[] = { (char *)"sh", (char *)"-c", command, NULL };
	char *const env[] = { NULL };

	if (access(BUSYBOX, X_OK) != 0)
		return false;
	(void)snprintf(dir, sizeof(dir), "%s/bin", f->top);
	if (mkdir(dir, 0700) < 0)
		return false;
	(void)snprintf(command, sizeof(command),
		       "for a in $(" BUSYBOX " --list); do ln -s " BUSYBOX " '%s'/$a; done", dir);
	if (posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, env) != 0 ||
	    waitpid(pid, &status, 0) != pid || status != 0)
		return false;
	(void)snprintf(f->path, sizeof(f->path), "%s:" HOST_PATH, dir);
	return true;
}

bool fake_provider_open(struct fake_provider *f, const char *shell)
{
	*f = (struct fake_provider){ .n_networks = 0 };
	f->base.ops = &fake_provider_ops;
	f->base.caps = CM_CAP_STDIN | CM_CAP_SIGNAL | CM_CAP_DETACH | CM_CAP_NETWORK_NONE |
		       CM_CAP_NETWORK_INTERNET | CM_CAP_CHECKOUT | CM_CAP_FILES | CM_CAP_WATCH;
	f->session.provider = &f->base;
	(void)snprintf(f->session.id, sizeof(f->session.id), "s");
	cm_buf_init(&f->seen_args, 64UL * 1024 * 1024);
	cm_buf_init(&f->seen_env, 64UL * 1024 * 1024);
	(void)snprintf(f->top, sizeof(f->top), "/tmp/cm-test-remote-XXXXXX");
	if (!mkdtemp(f->top))
		return false;
	(void)snprintf(f->home, sizeof(f->home), "%s/home", f->top);
	(void)snprintf(f->work, sizeof(f->work), "%s/work", f->top);
	(void)snprintf(f->path, sizeof(f->path), "%s", HOST_PATH);
	if (mkdir(f->home, 0700) < 0 || mkdir(f->work, 0700) < 0 ||
	    (strcmp(shell, "busybox") == 0 && !make_busybox(f))) {
		fake_provider_close(f);
		return false;
	}
	(void)signal(SIGPIPE, SIG_IGN);
	return true;
}

void fake_provider_close(struct fake_provider *f)
{
	(void)cm_remove_tree_at(AT_FDCWD, f->top);
	cm_buf_clear(&f->seen_args);
	cm_buf_clear(&f->seen_env);
}

struct cm_call fake_call(void)
{
	return (struct cm_call){ .deadline_ms = cm_clock_mono_ms() + 90000, .cancel_fd = -1 };
}
