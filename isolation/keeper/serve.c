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
 * main process: what else bears its mark lives on, unless the tree was being ended.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "isolation/keeper/exec.h"
#include "isolation/keeper/image.h"
#include "isolation/keeper/init.h"
#include "isolation/keeper/proto.h"
#include "isolation/keeper/pty.h"
#include "isolation/keeper/tree.h"
#include "isolation/mech/caps.h"
#include "runtime/base/alloc.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/kernel.h"
#include "runtime/base/loop.h"

#define STACK_SIZE (32U * 1024)

enum phase {
	PHASE_FREE = 0,
	PHASE_STARTING,
	PHASE_RUNNING,
	PHASE_ENDING,
	/* ended, but its mark is still borne: the slot cannot be used again yet */
	PHASE_LINGERING,
};

struct exec {
	enum phase phase;
	uint64_t id;
	uint32_t flags;
	pid_t pid;
	int pidfd;
	int report_fd;
	int pty_fd;
	int join_fd;
	int kill_fd;
	bool is_leaf_v2;
	struct cm_mark mark;
	struct cm_exec_image image;
	void *memory[2];
	void *stack;
	int64_t start_us;
	uint64_t grace_ms;
	int timer;
	/* why it is ENDING: CM_END_TIMEOUT or CM_END_KILLED; 0 otherwise */
	uint32_t end_kind;
	bool has_exited;
	int wait_status;
	struct rusage usage;
};

static struct {
	const struct cm_plan *plan;
	int sock;
	int signal_fd;
	struct cm_loop loop;
	struct exec execs[CM_MAX_EXECS];
	uint64_t refused_before;
	struct cm_msg msg;
} serve;

/* The session is over: the kernel kills whatever else is in the pid namespace. */
static _Noreturn void die(void)
{
	_exit(0);
}

static void send_rec(struct cm_rec *rec, const int *fds, unsigned int n_fds)
{
	if (cm_proto_send(serve.sock, rec, NULL, fds, n_fds) < 0)
		die();
}

static void refuse(uint64_t id, const struct cm_error *err)
{
	if (cm_proto_send_error(serve.sock, CM_REC_REFUSED, id, err) < 0)
		die();
}

static struct exec *find_by_id(uint64_t id)
{
	for (size_t i = 0; i < CM_MAX_EXECS; i++) {
		struct exec *e = &serve.execs[i];

		if (e->id == id && e->phase != PHASE_FREE && e->phase != PHASE_LINGERING)
			return e;
	}
	return NULL;
}

static struct exec *find_by_pid(pid_t pid)
{
	for (size_t i = 0; i < CM_MAX_EXECS; i++) {
		struct exec *e = &serve.execs[i];

		if (e->pid == pid && e->phase != PHASE_FREE && e->phase != PHASE_LINGERING)
			return e;
	}
	return NULL;
}

/* The child has executed or is dead: nothing reads its image any more. */
static void drop_image(struct exec *e)
{
	free(e->memory[0]);
	free(e->memory[1]);
	e->memory[0] = e->memory[1] = NULL;
	for (int i = 0; i < 3; i++) {
		/* 0 to 2 are init's own */
		if (e->image.stdio[i] > 2) {
			int fd = e->image.stdio[i];

			for (int j = i; j < 3; j++) {
				if (e->image.stdio[j] == fd)
					e->image.stdio[j] = -1;
			}
			cm_fd_close(&fd);
		}
	}
	cm_fd_close(&e->join_fd);
}

static void release_slot(struct exec *e)
{
	struct cm_rec rec = { .type = CM_REC_SLOT_FREE };

	rec.body.slot.slot = (uint32_t)(e - serve.execs);
	cm_fd_close(&e->kill_fd);
	e->phase = PHASE_FREE;
	send_rec(&rec, NULL, 0);
}

static void release_lingering(void)
{
	for (size_t i = 0; i < CM_MAX_EXECS; i++) {
		struct exec *e = &serve.execs[i];

		if (e->phase == PHASE_LINGERING && cm_tree_signal(&e->mark, 0) == 0)
			release_slot(e);
	}
}

/* In a temporary session one command runs at a time, so its tree is everything. */
static bool is_whole_jail(void)
{
	return (serve.plan->header->flags & CM_PLANF_TEMPORARY) != 0;
}

static void kill_tree(struct exec *e)
{
	bool froze = false;

	/* by its descriptor, too: before it has executed it bears no mark that could be read, and
	 * with one id inside the agent can have stopped it there */
	if (e->pidfd >= 0)
		(void)cm_sys_pidfd_send_signal(e->pidfd, SIGKILL);
	if (is_whole_jail())
		cm_tree_kill_all();
	else
		(void)cm_tree_kill(&e->mark, e->is_leaf_v2 ? e->kill_fd : -1,
				   e->is_leaf_v2 ? -1 : e->kill_fd, &froze);
}

/* OutNoRoutes of the jail's network: attempts to reach something that is not there. */
static uint64_t refused_now(void)
{
	char text[4096];
	const char *names;
	const char *values;
	unsigned int column = 0;

	if (cm_read_file_at(AT_FDCWD, "/proc/self/net/snmp", text, sizeof(text)) < 0)
		return 0;
	names = strstr(text, "Ip: ");
	values = names ? strstr(names + 1, "\nIp: ") : NULL;
	if (!values)
		return 0;
	values++;
	for (const char *p = strstr(names, " OutNoRoutes"); p && p > names; p--)
		column += *p == ' ';
	for (; column > 0 && *values && *values != '\n'; values++)
		column -= *values == ' ';
	return strtoull(values, NULL, 10);
}

static void fill_end(struct exec *e, struct cm_rec_end *end)
{
	if (WIFSIGNALED(e->wait_status)) {
		end->kind = CM_END_SIGNAL;
		end->status = WTERMSIG(e->wait_status);
	} else {
		end->kind = CM_END_EXIT;
		end->status = WEXITSTATUS(e->wait_status);
	}
	if (e->end_kind == CM_END_TIMEOUT)
		end->flags |= CM_ENDF_TIMED_OUT | CM_ENDF_KILLED;
	else if (e->end_kind == CM_END_KILLED)
		end->flags |= CM_ENDF_KILLED;
	if (e->end_kind != 0)
		end->kind = e->end_kind;
	end->wall_us = (uint64_t)(cm_clock_mono_us() - e->start_us);
	end->cpu_user_us =
		(uint64_t)e->usage.ru_utime.tv_sec * 1000000U + (uint64_t)e->usage.ru_utime.tv_usec;
	end->cpu_system_us =
		(uint64_t)e->usage.ru_stime.tv_sec * 1000000U + (uint64_t)e->usage.ru_stime.tv_usec;
	end->max_rss_bytes = (uint64_t)e->usage.ru_maxrss * 1024U;
	end->flags |= CM_ENDF_USAGE_APPROXIMATE;
	if (end->kind == CM_END_EXIT && end->status != 0 &&
	    (serve.plan->header->flags & CM_PLANF_NETNS) != 0) {
		uint64_t now = refused_now();

		end->detail = (uint32_t)(now - serve.refused_before);
		serve.refused_before = now;
	}
}

static void finish(struct exec *e)
{
	struct cm_rec rec = { .type = CM_REC_END, .id = e->id };
	bool ends_tree = e->phase == PHASE_ENDING || (e->flags & CM_EXECF_KILL_TREE) != 0;

	fill_end(e, &rec.body.end);
	cm_loop_timer_cancel(&serve.loop, e->timer);
	e->timer = -1;
	cm_fd_close(&e->pidfd);
	cm_fd_close(&e->pty_fd);
	if ((e->flags & CM_EXECF_LAST) != 0) {
		send_rec(&rec, NULL, 0);
		die();
	}
	if (ends_tree)
		kill_tree(e);
	if (cm_tree_any() && cm_tree_signal(&e->mark, 0) > 0) {
		rec.body.end.flags |= CM_ENDF_CHILDREN_LEFT;
		e->phase = PHASE_LINGERING;
		send_rec(&rec, NULL, 0);
		return;
	}
	send_rec(&rec, NULL, 0);
	release_slot(e);
}

static void finish_not_executed(struct exec *e, uint32_t word)
{
	struct cm_rec rec = { .type = CM_REC_END, .id = e->id };

	rec.body.end.kind = CM_END_NOT_EXECUTED;
	rec.body.end.status = (int32_t)(word & 0xffffU);
	rec.body.end.detail = word >> 16;
	cm_loop_timer_cancel(&serve.loop, e->timer);
	e->timer = -1;
	cm_fd_close(&e->pidfd);
	cm_fd_close(&e->pty_fd);
	send_rec(&rec, NULL, 0);
	if ((e->flags & CM_EXECF_LAST) != 0)
		die();
	release_slot(e);
}

static void started(struct exec *e)
{
	struct cm_rec rec = { .type = CM_REC_STARTED, .id = e->id };

	rec.body.started.pid = e->pid;
	send_rec(&rec, &e->pty_fd, e->pty_fd >= 0 ? 1 : 0);
	cm_fd_close(&e->pty_fd);
	if (e->phase == PHASE_STARTING)
		e->phase = PHASE_RUNNING;
}

/*
 * A child that shares our memory must be gone before its stack is used again. It may have been
 * stopped by the agent, but nobody can hold up SIGKILL, so this wait is short.
 */
static void bury(struct exec *e)
{
	if (e->has_exited || e->pid <= 0)
		return;
	(void)kill(e->pid, SIGKILL);
	while (waitpid(e->pid, &e->wait_status, 0) < 0 && errno == EINTR)
		;
	e->has_exited = true;
}

/* The report pipe: four bytes when it could not be executed, end of file when it was (or died). */
static void take_report(struct exec *e)
{
	uint32_t word = 0;
	ssize_t n;

	if (e->report_fd < 0)
		return;
	n = read(e->report_fd, &word, sizeof(word));
	cm_loop_remove(&serve.loop, e->report_fd);
	cm_fd_close(&e->report_fd);
	drop_image(e);
	if (n == (ssize_t)sizeof(word)) {
		bury(e);
		finish_not_executed(e, word);
		return;
	}
	started(e);
}

static void on_report(struct cm_loop *loop, int fd, uint32_t events, void *data)
{
	struct exec *e = data;

	(void)loop;
	(void)fd;
	(void)events;
	take_report(e);
}

static void on_grace(struct cm_loop *loop, int timer, void *data)
{
	struct exec *e = data;

	(void)loop;
	(void)timer;
	e->timer = -1;
	kill_tree(e);
}

static void end_tree(struct exec *e, uint32_t kind, uint64_t grace_ms)
{
	if (e->phase == PHASE_ENDING) {
		/* told twice: now */
		kill_tree(e);
		return;
	}
	e->phase = PHASE_ENDING;
	e->end_kind = kind;
	cm_loop_timer_cancel(&serve.loop, e->timer);
	e->timer = -1;
	if (grace_ms == 0) {
		kill_tree(e);
		return;
	}
	(void)cm_tree_signal(&e->mark, SIGTERM);
	/* a child that has not executed yet bears no readable mark */
	(void)kill(e->pid, SIGTERM);
	e->timer =
		cm_loop_timer_add(&serve.loop, cm_clock_mono_ms() + (int64_t)grace_ms, on_grace, e);
	if (e->timer < 0)
		kill_tree(e);
}

static void on_deadline(struct cm_loop *loop, int timer, void *data)
{
	struct exec *e = data;

	(void)loop;
	(void)timer;
	e->timer = -1;
	end_tree(e, CM_END_TIMEOUT, e->grace_ms);
}

static void reap(void)
{
	bool was_orphan = false;

	for (;;) {
		struct rusage usage;
		int status = 0;
		pid_t pid = wait4(-1, &status, WNOHANG, &usage);
		struct exec *e;

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
			take_report(e);
			/* it could not be executed, and its end was told */
			if (e->phase == PHASE_FREE)
				continue;
		}
		finish(e);
	}
	/* perhaps the last that bore a mark: its slot can be used again */
	if (was_orphan)
		release_lingering();
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

/* stdin, stdout, stderr as the flags say, then the leaf's two. */
static int take_fds(struct exec *e, struct cm_msg *msg, struct cm_error *err)
{
	static const uint32_t bits[3] = { CM_EXECF_STDIN, CM_EXECF_STDOUT, CM_EXECF_STDERR };
	unsigned int next = 0;
	unsigned int want = 0;

	for (int i = 0; i < 3; i++)
		want += (e->flags & bits[i]) != 0;
	want += (e->flags & CM_EXECF_LEAF) != 0 ? 2 : 0;
	if (want != msg->n_fds)
		return cm_error_set(err, CM_E_PROTOCOL, 0, "malformed request: descriptors");
	for (int i = 0; i < 3; i++)
		e->image.stdio[i] = (e->flags & bits[i]) != 0 ? cm_fd_take(&msg->fds[next++]) : i;
	if ((e->flags & CM_EXECF_LEAF) != 0) {
		e->join_fd = cm_fd_take(&msg->fds[next++]);
		e->kill_fd = cm_fd_take(&msg->fds[next]);
	}
	return CM_OK;
}

static int make_mark(struct exec *e, struct cm_error *err)
{
	if (serve.plan->header->idmap != CM_IDMAP_SINGLE) {
		e->mark.gid = CM_ID_MARK_FIRST + (gid_t)(e - serve.execs);
		e->mark.uts_ino = 0;
		return CM_OK;
	}
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

static int open_terminal(struct exec *e, const struct cm_rec_exec *req, struct cm_error *err)
{
	int slave = -1;
	int r = cm_pty_open(req->rows, req->cols, &e->pty_fd, &slave, err);

	if (r < 0)
		return r;
	for (int i = 0; i < 3; i++)
		e->image.stdio[i] = slave;
	e->image.is_tty = true;
	return CM_OK;
}

static void fill_image(struct exec *e, int report_fd)
{
	const struct cm_plan_header *h = serve.plan->header;
	struct cm_exec_image *image = &e->image;
	bool is_root = (h->flags & CM_PLANF_ROOT_USER) != 0;

	image->leaf_join_fd = e->join_fd;
	image->is_leaf_v2 = e->is_leaf_v2;
	image->mark_gid = e->mark.gid;
	image->has_ids = h->idmap != CM_IDMAP_SINGLE;
	image->uid = is_root ? 0 : CM_ID_AGENT;
	image->gid = is_root ? 0 : CM_ID_AGENT;
	image->caps = cm_caps_of_exec(serve.plan);
	image->seccomp = cm_seccomp_profile_get((enum cm_plan_seccomp)h->seccomp);
	image->report_fd = report_fd;
	image->stack = e->stack;
	image->stack_size = STACK_SIZE;
}

static int start(struct exec *e, struct cm_msg *msg, struct cm_error *err)
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
		e->stack = cm_malloc(STACK_SIZE);
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
	if (r < 0)
		return cm_error_set(err, r == -EAGAIN ? CM_E_LIMIT : CM_E_SYS, -r,
				    "cannot start a process in the session");
	r = cm_loop_add(&serve.loop, e->report_fd, EPOLLIN, on_report, e, err);
	if (r == CM_OK && req.timeout_ms != 0) {
		e->timer = cm_loop_timer_add(
			&serve.loop, cm_clock_mono_ms() + (int64_t)req.timeout_ms, on_deadline, e);
		if (e->timer < 0)
			r = cm_error_set(err, CM_E_LIMIT, 0, "too many timers in the session");
	}
	return r;
}

static void op_exec(struct cm_msg *msg)
{
	struct cm_error err = CM_ERROR_INIT;
	uint32_t slot = msg->rec.body.exec.slot;
	struct exec *e;
	void *stack;

	release_lingering();
	if (slot >= CM_MAX_EXECS || serve.execs[slot].phase != PHASE_FREE) {
		(void)cm_error_set(&err, CM_E_PROTOCOL, 0, "the slot is in use");
		refuse(msg->rec.id, &err);
		return;
	}
	e = &serve.execs[slot];
	stack = e->stack;
	memset(e, 0, sizeof(*e));
	e->stack = stack;
	e->phase = PHASE_STARTING;
	e->id = msg->rec.id;
	e->flags = msg->rec.body.exec.flags;
	e->grace_ms = msg->rec.body.exec.grace_ms;
	e->is_leaf_v2 = serve.plan->header->cgroup == CM_CGROUP_V2;
	e->pidfd = e->report_fd = e->pty_fd = e->join_fd = e->kill_fd = e->timer = -1;
	e->image.stdio[0] = e->image.stdio[1] = e->image.stdio[2] = -1;
	if (start(e, msg, &err) == CM_OK)
		return;
	bury(e);
	if (e->report_fd >= 0) {
		cm_loop_remove(&serve.loop, e->report_fd);
		cm_fd_close(&e->report_fd);
	}
	drop_image(e);
	cm_fd_close(&e->pidfd);
	cm_fd_close(&e->pty_fd);
	refuse(e->id, &err);
	release_slot(e);
}

static void op_signal(struct cm_msg *msg)
{
	struct exec *e = find_by_id(msg->rec.id);
	int sig = msg->rec.body.signal.signal;

	/* its end may be on the way already */
	if (!e || sig <= 0 || sig > 64)
		return;
	/* the main process leads a session and a group of its own number */
	if (kill(-e->pid, sig) < 0)
		(void)kill(e->pid, sig);
}

static void op_kill(struct cm_msg *msg)
{
	struct exec *e = find_by_id(msg->rec.id);

	if (e)
		end_tree(e, CM_END_KILLED, msg->rec.body.kill.grace_ms);
}

static const struct {
	uint16_t type;
	void (*run)(struct cm_msg *msg);
} ops[] = {
	{ CM_REC_EXEC, op_exec },
	{ CM_REC_SIGNAL, op_signal },
	{ CM_REC_KILL, op_kill },
};

static void on_keeper(struct cm_loop *loop, int fd, uint32_t events, void *data)
{
	int r = cm_proto_recv(fd, &serve.msg);

	(void)loop;
	(void)events;
	(void)data;
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
	return r;
}

_Noreturn void cm_init_serve(const struct cm_plan *plan, int sock)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_rec rec = { .type = CM_REC_UP };
	int r;

	serve.plan = plan;
	serve.sock = sock;
	cm_msg_init(&serve.msg);
	r = prepare(&err);
	if (r < 0) {
		(void)cm_proto_send_error(sock, CM_REC_FAILED, 0, &err);
		_exit(125);
	}
	send_rec(&rec, NULL, 0);
	(void)cm_loop_run(&serve.loop, &err);
	die();
}
