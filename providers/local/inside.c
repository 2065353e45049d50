/* SPDX-License-Identifier: Apache-2.0 */
/* A program of our own choice run in a jail made for it, its output taken here. */
#include "providers/local/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/fd.h"

#define UP_WAIT_MS 20000
#define KILL_WAIT_MS 5000
#define GIVE_UP_MS 2000
#define POLL_NS 5000000L
#define PLAN_MAX (16UL * 1024 * 1024)

enum slot {
	SLOT_JAIL,
	SLOT_OUT,
	SLOT_ERR,
	SLOT_CANCEL,
	SLOT_COUNT,
};

struct wait {
	struct cm_local *l;
	struct cm_local_program *program;
	uint64_t id;
	struct pollfd p[SLOT_COUNT];
	int64_t heard_ms;
	/* bytes of program->out whose lines were told */
	size_t told;
	/* by us, because it was silent */
	bool is_ended;
	bool has_ended;
};

static int given_up(struct cm_error *err)
{
	return cm_error_set(err, CM_E_CANCELLED, 0, "given up on request");
}

static void tell_lines(struct wait *w)
{
	const struct cm_buf *out = &w->program->out;
	const char *end;

	if (cm_buf_status(out) != CM_OK)
		return;
	while ((end = memchr(out->data + w->told, '\n', out->len - w->told)) != NULL) {
		const char *line = out->data + w->told;

		if (w->program->on_line)
			w->program->on_line(w->program->data, line, (size_t)(end - line));
		w->told = (size_t)(end - out->data) + 1;
	}
}

/* What came before is no news; a line that is still being written is not the last one. */
static void keep_last_line(struct wait *w)
{
	struct cm_buf *buf = &w->program->out;
	size_t at = buf->len;

	tell_lines(w);
	if (at < 2)
		return;
	for (at--; at > 0 && buf->data[at - 1] != '\n'; at--)
		;
	memmove(buf->data, buf->data + at, buf->len - at);
	buf->len -= at;
	w->told -= at;
}

static void take_output(struct wait *w, enum slot slot)
{
	struct cm_buf *buf = slot == SLOT_OUT ? &w->program->out : &w->program->err;
	char chunk[8192];
	ssize_t n = read(w->p[slot].fd, chunk, sizeof(chunk));

	if (n < 0 && errno == EINTR)
		return;
	if (n <= 0) {
		w->p[slot].fd = -1;
		return;
	}
	cm_buf_append(buf, chunk, (size_t)n);
	if (slot == SLOT_OUT && w->program->is_last_line)
		keep_last_line(w);
	w->heard_ms = cm_clock_mono_ms();
}

static int take_record(struct wait *w, struct cm_msg *msg, struct cm_error *err)
{
	if (cm_proto_recv(w->p[SLOT_JAIL].fd, msg) != 1) {
		w->p[SLOT_JAIL].fd = -1;
		if (w->has_ended)
			return CM_OK;
		return cm_error_set(err, CM_E_ISOLATION, 0, "the jail ended unexpectedly");
	}
	/* of a program before this one; what fails as a whole names none */
	if (msg->rec.id != w->id && msg->rec.type != CM_REC_FAILED)
		return CM_OK;
	if (msg->rec.type == CM_REC_END) {
		w->program->end = msg->rec.body.end;
		w->has_ended = true;
	} else if (msg->rec.type == CM_REC_REFUSED || msg->rec.type == CM_REC_FAILED) {
		cm_proto_error_of(msg, err);
		return err ? err->code : CM_E_ISOLATION;
	}
	return CM_OK;
}

static int timeout_of(const struct wait *w)
{
	int64_t left;

	if (w->program->silence_ms == 0)
		return -1;
	left = w->heard_ms - cm_clock_mono_ms() +
	       (w->is_ended ? KILL_WAIT_MS : (int64_t)w->program->silence_ms);
	if (left < 0)
		return 0;
	return left < INT_MAX ? (int)left : INT_MAX;
}

/*
 * Its end is waited for: in a jail that ends with its client all but init is one command's tree,
 * and what is started before the kill is done would go with it.
 */
static int end_silent(struct wait *w, struct cm_error *err)
{
	if (w->is_ended)
		return cm_error_set(err, CM_E_ISOLATION, 0, "a program cannot be ended");
	w->is_ended = true;
	w->heard_ms = cm_clock_mono_ms();
	(void)cm_jail_kill(&w->l->jail, w->id, 0);
	return CM_OK;
}

/* What it has said up to now may be that it is to be let through. */
static int cancel(struct wait *w, struct cm_error *err)
{
	const bool *is_committed = w->program->is_committed;

	if (is_committed && w->p[SLOT_OUT].revents != 0)
		take_output(w, SLOT_OUT);
	if (!is_committed || !*is_committed)
		return given_up(err);
	w->p[SLOT_CANCEL].fd = -1;
	return CM_OK;
}

/* Take what comes until the end record; both pipes are ours alone. */
static int step(struct wait *w, struct cm_msg *msg, struct cm_error *err)
{
	int n = poll(w->p, SLOT_COUNT, timeout_of(w));

	/* nothing was filled in: what is there is what the call before this one saw */
	if (n < 0 && errno == EINTR)
		return CM_OK;
	if (n < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot wait for the jail");
	if (w->p[SLOT_CANCEL].revents != 0)
		return cancel(w, err);
	/* a caller that was stopped itself finds here what came meanwhile */
	if (n == 0)
		return timeout_of(w) == 0 ? end_silent(w, err) : CM_OK;
	if (w->p[SLOT_OUT].revents != 0)
		take_output(w, SLOT_OUT);
	if (w->p[SLOT_ERR].revents != 0)
		take_output(w, SLOT_ERR);
	return w->p[SLOT_JAIL].revents != 0 ? take_record(w, msg, err) : CM_OK;
}

static int collect(struct wait *w, struct cm_error *err)
{
	struct cm_msg msg;
	int r = CM_OK;

	cm_msg_init(&msg);
	w->heard_ms = cm_clock_mono_ms();
	while (r == CM_OK && (!w->has_ended || w->p[SLOT_OUT].fd >= 0 || w->p[SLOT_ERR].fd >= 0))
		r = step(w, &msg, err);
	cm_msg_clear(&msg);
	if (r == CM_OK && w->is_ended)
		r = cm_error_set(err, CM_E_TIMEOUT, 0, "it did nothing for %llu seconds",
				 (unsigned long long)w->program->silence_ms / 1000);
	return r;
}

/* Is there room for so much, before anybody reads? A user with many pipes is given small ones. */
static bool has_room(int fd, size_t len)
{
	int size = fcntl(fd, F_GETPIPE_SZ);

	return len <= PIPE_BUF || (size > 0 && (size_t)size >= len) ||
	       fcntl(fd, F_SETPIPE_SZ, (int)len) >= (int)len;
}

/* All of it at once: a pipe takes as much without a reader. */
static int fill_input(const struct cm_buf *in, int *ret_fd, struct cm_error *err)
{
	int pair[2];
	int r;

	if (!in || in->len == 0)
		return CM_OK;
	if (pipe2(pair, O_CLOEXEC) < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot make a pipe");
	if (in->len > CM_LOCAL_INPUT_MAX || !has_room(pair[1], in->len)) {
		(void)close(pair[0]);
		(void)close(pair[1]);
		return cm_error_set(err, CM_E_LIMIT, 0, "the input of a program is too long");
	}
	r = cm_write_all(pair[1], in->data, in->len);
	(void)close(pair[1]);
	*ret_fd = pair[0];
	return r < 0 ? cm_error_set(err, CM_E_SYS, -r, "cannot write to a pipe") : CM_OK;
}

int cm_local_inside(struct cm_local *l, struct cm_local_program *program, struct cm_error *err)
{
	char *env[] = { (char *)(uintptr_t) "PATH=/usr/bin:/bin", NULL };
	struct cm_jail_command command = { .argv = program->argv,
					   .env = env,
					   .cwd = "/",
					   .flags = program->flags,
					   .stdio = { -1, -1, -1 } };
	struct wait w = { .l = l, .program = program };
	CM_AUTO_FD int in_fd = -1;
	CM_AUTO_FD int out_fd = -1;
	CM_AUTO_FD int err_fd = -1;
	int out[2];
	int errs[2];
	int r = fill_input(program->in, &in_fd, err);

	if (r < 0)
		return r;
	if (pipe2(out, O_CLOEXEC) < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot make a pipe");
	out_fd = out[0];
	if (pipe2(errs, O_CLOEXEC) < 0) {
		(void)close(out[1]);
		return cm_error_set(err, CM_E_SYS, errno, "cannot make a pipe");
	}
	err_fd = errs[0];
	command.stdio[0] = in_fd;
	command.stdio[1] = out[1];
	command.stdio[2] = errs[1];
	r = cm_jail_exec(&l->jail, &command, &w.id, err);
	cm_fd_close(&in_fd);
	(void)close(out[1]);
	(void)close(errs[1]);
	if (r < 0)
		return r;
	w.p[SLOT_JAIL] = (struct pollfd){ .fd = l->jail.sock, .events = POLLIN };
	w.p[SLOT_OUT] = (struct pollfd){ .fd = out_fd, .events = POLLIN };
	w.p[SLOT_ERR] = (struct pollfd){ .fd = err_fd, .events = POLLIN };
	w.p[SLOT_CANCEL] = (struct pollfd){ .fd = cm_local_cancel_fd(l), .events = POLLIN };
	return collect(&w, err);
}

static bool has_child_ended(pid_t pid, int64_t deadline_ms)
{
	const struct timespec pause = { .tv_nsec = POLL_NS };
	siginfo_t info;

	for (;;) {
		info.si_pid = 0;
		/* left for who waits for it as a child */
		if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ||
		    info.si_pid != 0)
			return true;
		if (cm_clock_mono_ms() >= deadline_ms)
			return false;
		(void)nanosleep(&pause, NULL);
	}
}

/*
 * Of a jail that is not wanted any more before it stands. Its keeper may be what hangs (a mount whose
 * server is dead), and then it hears of nothing: so long as it is our child it can be killed, which
 * nobody else is likely to do.
 */
static void end_keeper(struct cm_jail *jail)
{
	/* one that lasts would go on without us */
	if (!jail->is_temporary)
		(void)cm_jail_stop(jail, cm_clock_mono_ms() + GIVE_UP_MS, NULL);
	cm_fd_close(&jail->sock);
	if (jail->spawned > 0 && !has_child_ended(jail->spawned, cm_clock_mono_ms() + GIVE_UP_MS))
		(void)kill(jail->spawned, SIGKILL);
}

int cm_local_wait_up(struct cm_local *l, int64_t deadline_ms, struct cm_error *err)
{
	struct pollfd p[2] = { { .fd = l->jail.sock, .events = POLLIN },
			       { .fd = cm_local_cancel_fd(l), .events = POLLIN } };
	int n;

	do {
		int64_t left = deadline_ms == INT64_MAX ? -1 : deadline_ms - cm_clock_mono_ms();

		if (deadline_ms != INT64_MAX && left < 0)
			left = 0;
		n = poll(p, 2, left < INT_MAX ? (int)left : INT_MAX);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot wait for the jail");
	/* what stands already is not given up: who uses it looks at the same descriptor */
	if (n > 0 && p[0].revents == 0) {
		end_keeper(&l->jail);
		return given_up(err);
	}
	return cm_jail_wait_up(&l->jail, deadline_ms, err);
}

int cm_local_task_open(struct cm_local *l, const struct cm_spec *spec, const char *dir,
		       const struct cm_local_plan *extra, struct cm_error *err)
{
	const struct cm_jail_start start = { .is_temporary = true };
	CM_AUTO_BUF struct cm_buf plan = { 0 };
	int r;

	cm_buf_init(&plan, PLAN_MAX);
	/* the groups of a session have one name, and are kept in one place; before the plan, part of
	 * which a keeper that waits already gets at once, and makes the groups that are ours */
	r = cm_local_collect_left(&l->session, err);
	if (r == CM_OK)
		r = cm_local_plan_make(l, spec, dir, true, extra, &plan, err);
	if (r < 0)
		return r;
	r = cm_local_keep_groups(l, &plan);
	if (r < 0)
		return cm_local_write_failed(l, -r, err);
	/* cm_local_open may have started it ahead of the plan */
	if (l->jail.sock < 0)
		r = cm_jail_spawn(&l->jail, &start, err);
	if (r == CM_OK)
		r = cm_jail_plan(&l->jail, plan.data, plan.len, err);
	return r == CM_OK ? cm_local_wait_up(l, cm_clock_mono_ms() + UP_WAIT_MS, err) : r;
}

void cm_local_task_close(struct cm_local *l)
{
	/* what cannot go now is for the next start, for rm, or for whoever collects */
	if (cm_jail_close(&l->jail))
		cm_local_forget_groups(l);
	else
		(void)cm_local_collect_left(&l->session, NULL);
}
