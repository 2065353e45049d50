/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pid 1 inside, once the jail stands: starts commands, reaps everything, ends trees.
 *
 * Theory of operation. One loop over the keeper's socket, SIGCHLD (signalfd), the report pipes of
 * commands that have not executed yet, and timers for wall time and grace. It waits on nothing
 * else. End of file on the socket: the keeper is gone, so everything here ends (the kernel's
 * parent-death signal says the same; this closes the gap before that was set).
 *
 * A command passes STARTING (its child shares our memory), RUNNING, and, when its time is up or
 * it is told to end, ENDING (TERM sent to the tree, grace running). Its end is the end of its
 * main process: what else bears its mark lives on, unless the tree is being ended: then its end is
 * that of the tree.
 */
#include "isolation/keeper/serve.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "isolation/keeper/init.h"
#include "runtime/base/fd.h"

static struct cm_serve serve;

/* Without the keeper nobody is left to tell. */
_Noreturn static void die(void)
{
	_exit(0);
}

void cm_serve_leave(struct cm_serve *s)
{
	cm_outbox_drain(&s->outbox);
	_exit(0);
}

/* Before all else that is told. */
static void tell_up(struct cm_serve *s)
{
	struct cm_rec rec = { .type = CM_REC_UP };

	if (s->is_up_told)
		return;
	s->is_up_told = true;
	if (cm_outbox_send(&s->outbox, &rec, NULL, NULL, 0) < 0)
		die();
}

void cm_serve_send(struct cm_serve *s, struct cm_rec *rec, const int *fds, unsigned int n_fds)
{
	tell_up(s);
	if (cm_outbox_send(&s->outbox, rec, NULL, fds, n_fds) < 0)
		die();
}

void cm_serve_refuse(struct cm_serve *s, uint64_t id, const struct cm_error *err)
{
	struct cm_rec rec = { .type = CM_REC_REFUSED, .id = id, .len = sizeof(*err) };

	tell_up(s);
	if (cm_outbox_send(&s->outbox, &rec, err, NULL, 0) < 0)
		die();
}

static struct cm_serve_exec *find_by_id(uint64_t id)
{
	for (size_t i = 0; i < serve.n_slots; i++) {
		struct cm_serve_exec *e = &serve.execs[i];

		if (e->id == id && e->phase != CM_PHASE_FREE && e->phase != CM_PHASE_LINGERING)
			return e;
	}
	return NULL;
}

static struct cm_serve_exec *find_by_pid(pid_t pid)
{
	for (size_t i = 0; i < serve.n_slots; i++) {
		struct cm_serve_exec *e = &serve.execs[i];

		if (e->pid == pid && e->phase != CM_PHASE_FREE && e->phase != CM_PHASE_LINGERING)
			return e;
	}
	return NULL;
}

static void reap(void)
{
	bool was_orphan = false;

	for (;;) {
		struct rusage usage;
		int status = 0;
		pid_t pid = wait4(-1, &status, WNOHANG, &usage);
		struct cm_serve_exec *e;

		if (pid <= 0)
			break;
		e = find_by_pid(pid);
		if (!e) {
			was_orphan = true;
			continue;
		}
		e->has_exited = true;
		e->wait_status = status;
		e->usage = usage;
		if (e->report_fd >= 0) {
			cm_serve_take_report(e);
			/* it could not be executed, and its end was told */
			if (e->phase == CM_PHASE_FREE)
				continue;
		}
		cm_serve_finish(e);
	}
	/* perhaps the last that bore a mark */
	if (was_orphan || serve.is_stopping)
		cm_serve_settle(&serve);
}

static void on_signal(struct cm_loop *loop, int fd, uint32_t events, void *data)
{
	struct signalfd_siginfo info[8];

	(void)loop;
	(void)events;
	(void)data;
	(void)!read(fd, info, sizeof(info));
	reap();
}

static void op_exec(struct cm_msg *msg)
{
	cm_serve_start(&serve, msg);
}

/* What a terminal or a shell sends to a job goes to the command's group. Another signal is meant
 * for who handles it, and would end children of it that do not. */
static bool goes_to_group(int sig)
{
	return sig == SIGINT || sig == SIGQUIT || sig == SIGHUP || sig == SIGTERM ||
	       sig == SIGWINCH || sig == SIGCONT;
}

static void op_signal(struct cm_msg *msg)
{
	struct cm_serve_exec *e = find_by_id(msg->rec.id);
	int sig = msg->rec.body.signal.signal;

	/* its end may be on the way already */
	if (!e || e->has_exited || sig <= 0 || sig > 64)
		return;
	/* the main process leads a session and a group of its own number */
	if (!goes_to_group(sig) || kill(-e->pid, sig) < 0)
		(void)kill(e->pid, sig);
}

static void op_kill(struct cm_msg *msg)
{
	struct cm_serve_exec *e = find_by_id(msg->rec.id);

	if (e)
		cm_serve_end_tree(e, CM_END_KILLED, msg->rec.body.kill.grace_ms);
}

static void op_stop(struct cm_msg *msg)
{
	cm_serve_stop(&serve, msg->rec.body.kill.grace_ms);
}

static const struct {
	uint16_t type;
	void (*run)(struct cm_msg *msg);
} ops[] = {
	{ CM_REC_EXEC, op_exec },
	{ CM_REC_SIGNAL, op_signal },
	{ CM_REC_KILL, op_kill },
	{ CM_REC_STOP, op_stop },
};

static void on_keeper(struct cm_loop *loop, int fd, uint32_t events, void *data)
{
	int r;

	(void)loop;
	(void)events;
	(void)data;
	if (cm_outbox_flush(&serve.outbox) < 0)
		die();
	r = cm_proto_recv(fd, &serve.msg);
	if (r == -EAGAIN)
		return;
	/* gone, or not speaking our protocol: the keeper is the only one this process believes */
	if (r <= 0)
		die();
	for (size_t i = 0; i < CM_ARRAY_SIZE(ops); i++) {
		if (ops[i].type == serve.msg.rec.type)
			ops[i].run(&serve.msg);
	}
	cm_msg_clear(&serve.msg);
}

static int prepare(struct cm_error *err)
{
	sigset_t mask;
	int r = cm_loop_init(&serve.loop, err);

	if (r < 0)
		return r;
	(void)sigfillset(&mask);
	if (sigprocmask(SIG_SETMASK, &mask, NULL) < 0)
		return cm_error_set(err, CM_E_ISOLATION, errno, "cannot block signals");
	(void)sigemptyset(&mask);
	(void)sigaddset(&mask, SIGCHLD);
	serve.signal_fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	if (serve.signal_fd < 0)
		return cm_error_set(err, CM_E_ISOLATION, errno, "cannot watch for children");
	r = cm_loop_add(&serve.loop, serve.signal_fd, EPOLLIN, on_signal, NULL, err);
	if (r == CM_OK)
		r = cm_loop_add(&serve.loop, serve.sock, EPOLLIN, on_keeper, NULL, err);
	if (r == CM_OK)
		r = cm_outbox_init(&serve.outbox, &serve.loop, serve.sock, err);
	return r;
}

_Noreturn void cm_init_serve(const struct cm_plan *plan, int sock)
{
	struct cm_error err = CM_ERROR_INIT;
	int r;

	serve.plan = plan;
	serve.sock = sock;
	serve.timer = -1;
	serve.report_timer = -1;
	cm_msg_init(&serve.msg);
	r = prepare(&err);
	if (r < 0) {
		(void)cm_proto_send_error(sock, CM_REC_FAILED, 0, &err);
		_exit(125);
	}
	/* A request that waits already comes first: it is what the client waits for, and the keeper, once
	 * it is told of anything, would take this processor. */
	on_keeper(&serve.loop, sock, EPOLLIN, NULL);
	tell_up(&serve);
	(void)cm_loop_run(&serve.loop, &err);
	die();
}
