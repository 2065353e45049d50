/* SPDX-License-Identifier: Apache-2.0 */
/* A command from its request until it has executed. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "isolation/keeper/file_ops.h"
#include "isolation/keeper/image.h"
#include "isolation/keeper/pty.h"
#include "isolation/keeper/serve.h"
#include "isolation/mech/caps.h"
#include "runtime/base/alloc.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"

#define STACK_SIZE (32U * 1024)
/* of the descriptors lent; before it the three streams */
#define LENT_LEAF 3
/* of the first slot, and so of all commands but those beside another */
static _Alignas(16) char first_stack[STACK_SIZE];
/*
 * At the latest. Most commands end sooner, and who waits for such a one has no use for the news that it runs: init,
 * keeper and client would be woken for it, on the processors that the command could have.
 */
#define REPORT_LATE_MS 3

/*
 * The child has its own. With ours closed a pipe ends when the command does, and not when that was told:
 * who reads it has that behind it while the rest ends. The image keeps the numbers, which the child reads.
 */
static void close_lent(struct cm_serve_exec *e)
{
	for (size_t i = 0; i < CM_ARRAY_SIZE(e->lent_fds); i++)
		cm_fd_close(&e->lent_fds[i]);
}

/* The child has executed or is dead: nothing reads its image any more. */
void cm_serve_drop(struct cm_serve_exec *e)
{
	cm_image_settle(e->memory);
	close_lent(e);
}

/* Who wants the terminal's master, or only to know that it was started, waits for that. */
static bool is_start_awaited(const struct cm_serve_exec *e)
{
	return (e->flags & (CM_EXECF_TTY | CM_EXECF_DETACH)) != 0;
}

/* Of one that has ended the end tells it, unless who started it waits for nothing else. */
static void started(struct cm_serve_exec *e)
{
	struct cm_rec rec = { .type = CM_REC_STARTED, .id = e->id };

	if (e->has_exited && !is_start_awaited(e)) {
		e->started_pid = e->pid;
		return;
	}
	rec.body.started.pid = e->pid;
	cm_serve_send(e->serve, &rec, &e->pty_fd, e->pty_fd >= 0 ? 1 : 0);
	cm_fd_close(&e->pty_fd);
	if (e->phase == CM_PHASE_STARTING)
		e->phase = CM_PHASE_RUNNING;
}

/*
 * A child that shares our memory must be gone before its stack is used again. It may have been
 * stopped by the agent, but nobody can hold up SIGKILL, so this wait is short.
 */
static void bury(struct cm_serve_exec *e)
{
	if (e->has_exited || e->pid <= 0)
		return;
	(void)kill(e->pid, SIGKILL);
	while (waitpid(e->pid, &e->wait_status, 0) < 0 && errno == EINTR)
		;
	e->has_exited = true;
}

/* The report pipe: four bytes when it could not be executed, end of file when it was (or died). */
void cm_serve_take_report(struct cm_serve_exec *e)
{
	uint32_t word = 0;
	ssize_t n;

	if (e->report_fd < 0)
		return;
	n = read(e->report_fd, &word, sizeof(word));
	cm_loop_remove(&e->serve->loop, e->report_fd);
	cm_fd_close(&e->report_fd);
	if (n == (ssize_t)sizeof(word)) {
		cm_serve_drop(e);
		bury(e);
		cm_serve_finish_not_executed(e, word);
		return;
	}
	started(e);
	/* of one that has ended: when that was told */
	if (!e->has_exited)
		cm_serve_drop(e);
}

static void on_report(struct cm_loop *loop, int fd, uint32_t events, void *data)
{
	struct cm_serve_exec *e = data;

	(void)loop;
	(void)fd;
	(void)events;
	cm_serve_take_report(e);
}

static void on_late_reports(struct cm_loop *loop, int timer, void *data);

static void arm_late_reports(struct cm_serve *serve, int64_t due_ms)
{
	if (serve->report_timer < 0)
		serve->report_timer =
			cm_loop_timer_add(&serve->loop, due_ms, on_late_reports, serve);
}

/* Each at its own time: one that began since the timer was set would be woken for too early. */
static void on_late_reports(struct cm_loop *loop, int timer, void *data)
{
	struct cm_serve *serve = data;
	int64_t now_ms = cm_clock_mono_ms();
	int64_t next_ms = INT64_MAX;

	(void)timer;
	serve->report_timer = -1;
	for (size_t i = 0; i < serve->n_slots; i++) {
		struct cm_serve_exec *e = &serve->execs[i];
		int64_t due_ms = e->start_us / 1000 + REPORT_LATE_MS;

		if (e->phase == CM_PHASE_FREE || !e->is_report_late || e->report_fd < 0)
			continue;
		/* where it cannot be watched now, it is tried again */
		if (due_ms <= now_ms) {
			e->is_report_late =
				cm_loop_add(loop, e->report_fd, EPOLLIN, on_report, e, NULL) < 0;
			due_ms = now_ms + REPORT_LATE_MS;
		}
		if (e->is_report_late && due_ms < next_ms)
			next_ms = due_ms;
	}
	if (next_ms != INT64_MAX)
		arm_late_reports(serve, next_ms);
}

static int await_report(struct cm_serve_exec *e, struct cm_error *err)
{
	if (is_start_awaited(e))
		return cm_loop_add(&e->serve->loop, e->report_fd, EPOLLIN, on_report, e, err);
	e->is_report_late = true;
	arm_late_reports(e->serve, cm_clock_mono_ms() + REPORT_LATE_MS);
	return e->serve->report_timer >= 0
		       ? CM_OK
		       : cm_error_set(err, CM_E_LIMIT, 0, "no timer for the command's start");
}

/* stdin, stdout, stderr as the flags say, then the leaf's two. */
static int take_fds(struct cm_serve_exec *e, struct cm_msg *msg, struct cm_error *err)
{
	static const uint32_t bits[3] = { CM_EXECF_STDIN, CM_EXECF_STDOUT, CM_EXECF_STDERR };
	unsigned int next = 0;
	unsigned int want = 0;

	for (int i = 0; i < 3; i++)
		want += (e->flags & bits[i]) != 0;
	want += (e->flags & CM_EXECF_LEAF) != 0 ? 2 : 0;
	if (want != msg->n_fds)
		return cm_error_set(err, CM_E_PROTOCOL, 0, "malformed request: descriptors");
	for (int i = 0; i < 3; i++) {
		/* without one, init's own */
		e->image.stdio[i] = i;
		if ((e->flags & bits[i]) != 0)
			e->image.stdio[i] = e->lent_fds[i] = cm_fd_take(&msg->fds[next++]);
	}
	if ((e->flags & CM_EXECF_LEAF) != 0) {
		e->image.leaf_join_fd = e->lent_fds[LENT_LEAF] = cm_fd_take(&msg->fds[next++]);
		e->kill_fd = cm_fd_take(&msg->fds[next]);
	}
	return CM_OK;
}

static int make_mark(struct cm_serve_exec *e, struct cm_error *err)
{
	const struct cm_plan_header *h = e->serve->plan->header;

	/* root of the jail changes its groups as it likes */
	if (h->idmap != CM_IDMAP_SINGLE && (h->flags & CM_PLANF_ROOT_USER) == 0) {
		e->mark.gid = CM_ID_MARK_FIRST + (gid_t)(e - e->serve->execs);
		e->mark.uts_ino = 0;
		return CM_OK;
	}
	/* its tree is everything: no mark is looked for, and init needs no capability to make one */
	if ((h->flags & CM_PLANF_TEMPORARY) != 0)
		return CM_OK;
	/* init makes it and is in it until the next one: a child's own would not be readable
	 * before it has executed, and its grandchildren can be free before that */
	if (unshare(CLONE_NEWUTS) < 0)
		return cm_error_set(err, CM_E_ISOLATION, errno, "cannot mark the command");
	e->mark.gid = 0;
	e->mark.uts_ino = cm_tree_uts_of(getpid());
	if (e->mark.uts_ino == 0)
		return cm_error_set(err, CM_E_ISOLATION, errno, "cannot read the command's mark");
	return CM_OK;
}

static int open_terminal(struct cm_serve_exec *e, const struct cm_rec_exec *req,
			 struct cm_error *err)
{
	int slave = -1;
	int r = cm_pty_open(req->rows, req->cols, &e->pty_fd, &slave, err);

	if (r < 0)
		return r;
	cm_fd_close(&e->lent_fds[0]);
	e->lent_fds[0] = slave;
	for (int i = 0; i < 3; i++)
		e->image.stdio[i] = slave;
	e->image.is_tty = true;
	return CM_OK;
}

static void fill_image(struct cm_serve_exec *e, int report_fd)
{
	const struct cm_plan_header *h = e->serve->plan->header;
	struct cm_exec_image *image = &e->image;
	bool is_root = (h->flags & CM_PLANF_ROOT_USER) != 0 && (e->flags & CM_EXECF_AS_USER) == 0;

	image->is_leaf_v2 = e->is_leaf_v2;
	image->mark_gid = e->mark.gid;
	image->has_ids = h->idmap != CM_IDMAP_SINGLE;
	image->uid = is_root ? 0 : CM_ID_AGENT;
	image->gid = is_root ? 0 : CM_ID_AGENT;
	image->caps = is_root ? cm_caps_of_exec(e->serve->plan) : 0;
	image->seccomp = cm_seccomp_profile_get((enum cm_plan_seccomp)h->seccomp,
						cm_serve_is_filtered(h) ? CM_SECCOMP_REST
									: CM_SECCOMP_WHOLE);
	image->report_fd = report_fd;
	image->stack = e->stack;
	image->stack_size = STACK_SIZE;
	if ((e->flags & CM_EXECF_BUILTIN) != 0)
		cm_file_image(image);
}

static int start(struct cm_serve_exec *e, struct cm_msg *msg, struct cm_error *err)
{
	const struct cm_rec_exec req = msg->rec.body.exec;
	int report[2];
	int write_end;
	int r = take_fds(e, msg, err);

	if (r == CM_OK)
		r = cm_image_parse(msg, &e->image, e->memory, err);
	if (r == CM_OK && (req.flags & CM_EXECF_TTY) != 0)
		r = open_terminal(e, &req, err);
	if (r == CM_OK)
		r = make_mark(e, err);
	if (r < 0)
		return r;
	if (!e->stack)
		e->stack = e == e->serve->execs ? first_stack : cm_malloc(STACK_SIZE);
	if (!e->stack)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for a stack");
	if (pipe2(report, O_CLOEXEC) < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot make a pipe");
	e->report_fd = report[0];
	write_end = report[1];
	fill_image(e, write_end);
	e->start_us = cm_clock_mono_us();
	r = cm_exec_clone(&e->image, &e->pid, &e->pidfd);
	cm_fd_close(&write_end);
	close_lent(e);
	if (r < 0)
		return cm_error_set(err, r == -EAGAIN ? CM_E_LIMIT : CM_E_SYS, -r,
				    "cannot start a process in the session");
	r = await_report(e, err);
	if (r == CM_OK && req.timeout_ms != 0)
		cm_serve_due_after(e, req.timeout_ms);
	return r;
}

void cm_serve_start(struct cm_serve *serve, struct cm_msg *msg)
{
	struct cm_error err = CM_ERROR_INIT;
	uint32_t slot = msg->rec.body.exec.slot;
	struct cm_image_memory memory[CM_IMAGE_MEMORIES];
	struct cm_serve_exec *e;
	void *stack;

	cm_serve_settle(serve);
	if (slot >= CM_MAX_EXECS || serve->execs[slot].phase != CM_PHASE_FREE) {
		(void)cm_error_set(&err, CM_E_PROTOCOL, 0, "the slot is in use");
		cm_serve_refuse(serve, msg->rec.id, &err);
		return;
	}
	if (slot >= serve->n_slots)
		serve->n_slots = (size_t)slot + 1;
	e = &serve->execs[slot];
	stack = e->stack;
	memcpy(memory, e->memory, sizeof(memory));
	memset(e, 0, sizeof(*e));
	memcpy(e->memory, memory, sizeof(memory));
	e->serve = serve;
	e->stack = stack;
	e->phase = CM_PHASE_STARTING;
	e->id = msg->rec.id;
	e->flags = msg->rec.body.exec.flags;
	e->grace_ms = msg->rec.body.exec.grace_ms;
	e->is_leaf_v2 = serve->plan->header->cgroup == CM_CGROUP_V2;
	e->pidfd = e->report_fd = e->pty_fd = e->kill_fd = e->image.leaf_join_fd = -1;
	for (size_t i = 0; i < CM_ARRAY_SIZE(e->lent_fds); i++)
		e->lent_fds[i] = -1;
	if (start(e, msg, &err) == CM_OK)
		return;
	bury(e);
	if (e->report_fd >= 0) {
		cm_loop_remove(&serve->loop, e->report_fd);
		cm_fd_close(&e->report_fd);
	}
	cm_serve_drop(e);
	cm_fd_close(&e->pidfd);
	cm_fd_close(&e->pty_fd);
	cm_serve_refuse(serve, e->id, &err);
	cm_serve_release_slot(e);
}
