/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands of a local session that their starter waits for, or leaves running.
 *
 * Theory of operation. Each has a connection to the keeper of its own, so that what is said of one is
 * never taken for another's; when it has ended, the next one may have it (vtable_kept.c). Its streams are
 * pipes of ours, read only when the caller asks for what is next: one that is slow makes the command wait.
 * While the caller writes to it, what it prints is held, since a filter that cannot print takes nothing
 * in. When it has ended, what was in the pipes then is passed on, and what comes after that for a moment:
 * what it left running may hold them for ever.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "providers/local/vtable_exec.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/store/journal.h"

#define DRAIN_MS 100
#define HUNG_MS 50

/* --- what the keeper says ------------------------------------------------------------------ */

static int sock_of(const struct cm_lv_exec *e)
{
	return e->l->jail.sock;
}

static void started(struct cm_lv_exec *e, const struct cm_rec_started *rec)
{
	char name[CM_EXEC_ID_SIZE];

	e->is_started = true;
	if (rec->exec_id == 0)
		return;
	cm_exec_id_format(rec->exec_id, name);
	memcpy(e->base.name, name, sizeof(name));
	e->base.pid = rec->pid;
}

static uint64_t bytes_in(int fd)
{
	int n = 0;

	return fd >= 0 && ioctl(fd, FIONREAD, &n) == 0 && n > 0 ? (uint64_t)n : 0;
}

static void ended(struct cm_lv_exec *e, const struct cm_rec_end *end)
{
	e->has_ended = true;
	e->end = *end;
	if (!e->is_started)
		started(e, &end->started);
	e->drain_until_ms = cm_clock_mono_ms() + DRAIN_MS;
	for (int i = 0; i < 2; i++)
		e->due[i] = bytes_in(e->out_fd[i]);
	(void)cm_lv_not_executed(end, e->cwd, &e->why);
}

/* A keeper that is gone has taken the command with it, by the kernel. */
static void lost(struct cm_lv_exec *e)
{
	const struct cm_rec_end killed = { .kind = CM_END_KILLED, .flags = CM_ENDF_KILLED };

	ended(e, &killed);
}

static void take_terminal(struct cm_lv_exec *e, struct cm_msg *msg)
{
	if (!e->is_tty || msg->n_fds != 1)
		return;
	e->out_fd[0] = cm_fd_take(&msg->fds[0]);
	(void)fcntl(e->out_fd[0], F_SETFL, O_NONBLOCK);
}

/* A session that is stopping, or is another start's: who was asked by what is kept is not the one. */
static void refused(struct cm_lv_exec *e, const struct cm_msg *msg)
{
	struct cm_error why = CM_ERROR_INIT;

	cm_proto_error_of(msg, &why);
	e->is_not_taken = e->again && (why.code == CM_E_NOT_FOUND || why.code == CM_E_BUSY);
	if (e->is_not_taken)
		return;
	e->why = why;
	e->has_ended = true;
}

/* Did who has closed it leave something of ours unread? The kernel tells that once. */
static bool has_left_unread(int sock)
{
	int error = 0;
	socklen_t len = sizeof(error);

	return getsockopt(sock, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error == ECONNRESET;
}

static void take_message(struct cm_lv_exec *e)
{
	bool was_unread = e->again && !e->is_started && has_left_unread(sock_of(e));
	struct cm_msg msg;
	int r;

	cm_msg_init(&msg);
	r = cm_proto_recv(sock_of(e), &msg);
	if ((r != 1 && r != -EAGAIN) || (r == 1 && msg.rec.type == CM_REC_FAILED)) {
		if (was_unread)
			e->is_not_taken = true;
		else
			lost(e);
	} else if (r == 1 && msg.rec.id == e->id && msg.rec.type == CM_REC_REFUSED) {
		refused(e, &msg);
	} else if (r == 1 && msg.rec.id == e->id && msg.rec.type == CM_REC_STARTED) {
		started(e, &msg.rec.body.started);
		take_terminal(e, &msg);
	} else if (r == 1 && msg.rec.id == e->id && msg.rec.type == CM_REC_END) {
		ended(e, &msg.rec.body.end);
		e->is_free = true;
	}
	cm_msg_clear(&msg);
}

void cm_lv_exec_hear(struct cm_lv_exec *e)
{
	while (!e->has_ended && !e->is_not_taken) {
		struct pollfd p = { .fd = sock_of(e), .events = POLLIN };

		if (poll(&p, 1, 0) <= 0)
			return;
		take_message(e);
	}
}

/* --- waiting ------------------------------------------------------------------------------- */

static bool is_hung(const struct cm_lv_exec *e)
{
	return e->hung_until_ms != 0 && !e->has_ended && e->hung_until_ms > cm_clock_mono_ms();
}

void cm_lv_exec_prepare(const struct cm_lv_exec *e, const struct cm_call *call,
			struct pollfd p[CM_LV_SLOT_COUNT])
{
	p[CM_LV_SLOT_JAIL] =
		(struct pollfd){ .fd = e->has_ended ? -1 : sock_of(e), .events = POLLIN };
	for (int i = 0; i < 2; i++)
		p[CM_LV_SLOT_OUT + i] = (struct pollfd){ .fd = e->out_fd[i], .events = POLLIN };
	if (is_hung(e))
		p[CM_LV_SLOT_OUT].fd = -1;
	p[CM_LV_SLOT_CANCEL] = (struct pollfd){ .fd = call->cancel_fd, .events = POLLIN };
}

int cm_lv_exec_look(struct cm_lv_exec *e, const struct cm_call *call, struct pollfd *p, size_t n,
		    int64_t due_ms, struct cm_error *err)
{
	int64_t until_ms = is_hung(e) && e->hung_until_ms < due_ms ? e->hung_until_ms : due_ms;
	int r = poll(p, n, cm_lv_poll_ms(call, until_ms));

	if (r < 0 && errno != EINTR)
		return cm_error_set(err, CM_E_SYS, errno, "cannot wait for the command");
	if (r < 0) {
		for (size_t i = 0; i < n; i++)
			p[i].revents = 0;
		return CM_OK;
	}
	if (cm_lv_is_ready(&p[CM_LV_SLOT_JAIL]))
		take_message(e);
	return r == 0 || cm_lv_is_ready(&p[CM_LV_SLOT_CANCEL]) ? cm_lv_call_check(call, err)
							       : CM_OK;
}

int cm_lv_exec_fail(struct cm_lv_exec *e, const struct cm_error *why, struct cm_error *err)
{
	e->has_ended = true;
	e->why = *why;
	if (err)
		*err = *why;
	return why->code;
}

/* By when there has to be a word of what was asked on a kept connection. */
static int64_t answer_due_ms(const struct cm_lv_exec *e)
{
	return e->again && !e->is_started && !e->has_ended ? e->answer_due_ms : INT64_MAX;
}

/* With the connection it goes: the keeper begins nothing whose client has gone. */
static int give_up(struct cm_lv_exec *e, struct cm_error *err)
{
	struct cm_error why = CM_ERROR_INIT;

	(void)cm_error_set(&why, CM_E_ISOLATION, 0, "the session's keeper does not answer");
	cm_error_hint(&why, "'casemate stop %s' ends it, and the next command starts it again",
		      e->base.session->id);
	cm_fd_close(&e->l->jail.sock);
	return cm_lv_exec_fail(e, &why, err);
}

/* What was not taken is asked for anew; and who does not answer is not waited for without an end. */
static int insist(struct cm_lv_exec *e, const struct cm_call *call, struct cm_error *err)
{
	if (e->is_not_taken)
		return cm_lv_exec_again(e, call, err);
	if (answer_due_ms(e) != INT64_MAX && cm_clock_mono_ms() >= answer_due_ms(e))
		return give_up(e, err);
	return CM_OK;
}

int cm_lv_exec_await_start(struct cm_lv_exec *e, const struct cm_call *call, struct cm_error *err)
{
	struct pollfd all[CM_LV_SLOT_COUNT];
	int r = insist(e, call, err);

	while (r == CM_OK && !e->has_ended && !e->is_started) {
		cm_lv_exec_prepare(e, call, all);
		all[CM_LV_SLOT_OUT].fd = all[CM_LV_SLOT_ERR].fd = -1;
		r = cm_lv_exec_look(e, call, all, CM_LV_SLOT_MORE, answer_due_ms(e), err);
		if (r == CM_OK)
			r = insist(e, call, err);
	}
	return r;
}

size_t cm_lv_exec_read(struct cm_lv_exec *e, int i)
{
	ssize_t n = read(e->out_fd[i], e->chunk, sizeof(e->chunk));

	if (n > 0) {
		e->due[i] -= (uint64_t)n < e->due[i] ? (uint64_t)n : e->due[i];
		return (size_t)n;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	/* who closes his terminal before he ends would be hung up with it; and others may open it */
	if (e->is_tty && !e->has_ended) {
		e->hung_until_ms = cm_clock_mono_ms() + HUNG_MS;
	} else {
		cm_fd_close(&e->out_fd[i]);
		e->due[i] = 0;
	}
	return 0;
}

/* --- what is next -------------------------------------------------------------------------- */

static void output(struct cm_lv_exec *e, int i, const void *bytes, size_t len,
		   struct cm_exec_event *ret)
{
	*ret = (struct cm_exec_event){
		.kind = CM_EXEC_HAS_OUTPUT, .stream = i + 1, .bytes = bytes, .len = len
	};
	e->is_output_told = true;
}

static bool lend_held(struct cm_lv_exec *e, struct cm_exec_event *ret)
{
	for (int i = 0; i < 2; i++) {
		if (e->held[i].len == 0)
			continue;
		output(e, i, e->held[i].data, e->held[i].len, ret);
		e->lent = i;
		return true;
	}
	return false;
}

void cm_lv_exec_take_back(struct cm_lv_exec *e)
{
	if (e->lent >= 0)
		cm_buf_clear(&e->held[e->lent]);
	e->lent = -1;
}

static bool is_over(const struct cm_lv_exec *e)
{
	if (!e->has_ended)
		return false;
	if (e->out_fd[0] < 0 && e->out_fd[1] < 0)
		return true;
	return e->due[0] == 0 && e->due[1] == 0 && cm_clock_mono_ms() >= e->drain_until_ms;
}

static void tell_end(const struct cm_lv_exec *e, struct cm_exec_event *ret)
{
	*ret = (struct cm_exec_event){ .kind = CM_EXEC_HAS_ENDED };
	cm_lv_end(&e->end, &ret->end);
	if (ret->end.kind == CM_EXEC_SIGNALLED && ret->end.signal < 64 &&
	    (e->signals & UINT64_C(1) << ret->end.signal) != 0)
		ret->end.kind = CM_EXEC_KILLED;
}

/* What is known without a wait. */
static bool is_known(struct cm_lv_exec *e, struct cm_exec_event *ret)
{
	if (e->is_started && !e->is_started_told) {
		*ret = (struct cm_exec_event){ .kind = CM_EXEC_HAS_STARTED };
		e->is_started_told = true;
		return true;
	}
	if (!e->is_started_told)
		return false;
	if (lend_held(e, ret))
		return true;
	if (!is_over(e))
		return false;
	tell_end(e, ret);
	return true;
}

static size_t add_wake(struct pollfd p[CM_LV_SLOT_COUNT], const struct cm_wake *wake)
{
	size_t n = 0;

	for (; wake && n < wake->n && n < CM_WAKE_MAX; n++) {
		wake->fds[n].revents = 0;
		p[CM_LV_SLOT_MORE + n] = wake->fds[n];
	}
	return n;
}

static bool is_woken(const struct pollfd p[CM_LV_SLOT_COUNT], struct cm_wake *wake, size_t n_wake)
{
	bool is_any = false;

	for (size_t i = 0; i < n_wake; i++) {
		wake->fds[i].revents = p[CM_LV_SLOT_MORE + i].revents;
		is_any = is_any || cm_lv_is_ready(&p[CM_LV_SLOT_MORE + i]);
	}
	return is_any;
}

/* Output and the caller's own take turns where both always have something. */
static bool is_event(struct cm_lv_exec *e, const struct pollfd p[CM_LV_SLOT_COUNT],
		     struct cm_wake *wake, size_t n_wake, struct cm_exec_event *ret)
{
	bool woken = is_woken(p, wake, n_wake);

	for (int i = 0; i < 2 && !(woken && e->is_output_told); i++) {
		size_t n = cm_lv_is_ready(&p[CM_LV_SLOT_OUT + i]) ? cm_lv_exec_read(e, i) : 0;

		if (n == 0)
			continue;
		output(e, i, e->chunk, n, ret);
		return true;
	}
	if (!woken)
		return false;
	*ret = (struct cm_exec_event){ .kind = CM_EXEC_WOKEN };
	e->is_output_told = false;
	return true;
}

static int64_t due_ms(const struct cm_lv_exec *e)
{
	return e->has_ended && e->due[0] == 0 && e->due[1] == 0 ? e->drain_until_ms
								: answer_due_ms(e);
}

static int exec_next(struct cm_exec *exec, struct cm_wake *wake, const struct cm_call *call,
		     struct cm_exec_event *ret, struct cm_error *err)
{
	struct cm_lv_exec *e = (struct cm_lv_exec *)exec;
	struct pollfd p[CM_LV_SLOT_COUNT];
	int r;

	cm_lv_exec_take_back(e);
	for (;;) {
		size_t n = 0;

		if (e->why.code != 0) {
			if (err)
				*err = e->why;
			return e->why.code;
		}
		if (is_known(e, ret))
			return CM_OK;
		r = insist(e, call, err);
		if (r < 0)
			return r;
		cm_lv_exec_prepare(e, call, p);
		/* that it has started comes first */
		if (!e->is_started_told)
			p[CM_LV_SLOT_OUT].fd = p[CM_LV_SLOT_ERR].fd = -1;
		n = add_wake(p, wake);
		r = cm_lv_exec_look(e, call, p, CM_LV_SLOT_MORE + n, due_ms(e), err);
		if (r < 0)
			return r;
		if (is_event(e, p, wake, n, ret))
			return CM_OK;
	}
}

void cm_lv_exec_close_streams(struct cm_lv_exec *e)
{
	cm_fd_close(&e->in_fd);
	for (int i = 0; i < 2; i++)
		cm_fd_close(&e->out_fd[i]);
}

static void exec_release(struct cm_exec *exec)
{
	struct cm_lv_exec *e = (struct cm_lv_exec *)exec;

	if (e->is_free)
		cm_lv_keep((struct cm_lv_session *)e->base.session, e->l);
	else
		cm_lv_leave(e->l);
	cm_lv_exec_close_streams(e);
	for (int i = 0; i < 2; i++)
		cm_buf_clear(&e->held[i]);
	cm_lv_request_free(e->again);
	free(e->cwd);
	free(e);
}

const struct cm_exec_ops cm_lv_exec_ops = {
	.next = exec_next,
	.input = cm_lv_exec_input,
	.signal = cm_lv_exec_signal,
	.resize = cm_lv_exec_resize,
	.release = exec_release,
};
