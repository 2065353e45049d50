/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detached commands of a local session, followed.
 *
 * What one prints is in its journal, whoever looks on: this is one more reader of it, told of news by
 * inotify. The keeper, where it runs, tells of the end; else the journal has a result, or nobody knows.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "providers/local/vtable_internal.h"
#include "runtime/base/alloc.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/store/journal.h"

#define CHUNK 65536
#define ANSWER_MS 10000
/* where there are no watches */
#define BLIND_TICK_MS 100
/* a keeper that is lost may have a last word to write */
#define LAST_WORD_MS 2000
#define LAST_WORD_NS 20000000L

enum slot {
	SLOT_JAIL,
	SLOT_WATCH,
	SLOT_CANCEL,
	SLOT_MORE,
	SLOT_COUNT = SLOT_MORE + CM_WAKE_MAX,
};

struct lv_attach {
	struct cm_exec base;
	uint64_t exec_id;
	struct cm_journal_reader journal;
	bool has_journal;
	int watch_fd;
	struct cm_jail jail;
	/* our name for it there */
	uint64_t id;
	/* what it reads from; asked for when something is written. By another connection: an end that
	 * comes meanwhile is not missed. */
	int in_fd;
	struct cm_jail input_jail;
	bool follows;
	bool is_started_told;
	bool is_output_told;
	bool has_ended;
	struct cm_exec_end end;
	uint64_t offset[2];
	/* what is read of each stream in the end; UINT64_MAX: it goes on */
	uint64_t until[2];
	uint64_t signals;
	char chunk[CHUNK];
};

/* --- its end ------------------------------------------------------------------------------- */

static void finish(struct lv_attach *a)
{
	a->has_ended = true;
	for (int i = 0; i < 2; i++)
		a->until[i] = cm_journal_end(&a->journal, (enum cm_journal_stream)i);
	if (a->end.kind == CM_EXEC_SIGNALLED && a->end.signal < 64 &&
	    (a->signals & UINT64_C(1) << a->end.signal) != 0)
		a->end.kind = CM_EXEC_KILLED;
}

/* No keeper is there to tell. */
static void conclude(struct lv_attach *a)
{
	const struct timespec pause = { .tv_nsec = LAST_WORD_NS };
	int64_t deadline = cm_clock_mono_ms() + LAST_WORD_MS;

	a->end = (struct cm_exec_end){ .kind = CM_EXEC_LOST };
	while (!cm_lv_journal_end(&a->journal, &a->end, NULL) && a->jail.has_ended &&
	       cm_clock_mono_ms() < deadline)
		(void)nanosleep(&pause, NULL);
	finish(a);
}

static void hear(struct lv_attach *a)
{
	struct cm_msg msg;
	int r;

	cm_msg_init(&msg);
	r = cm_proto_recv(a->jail.sock, &msg);
	if (r == 1 && msg.rec.type == CM_REC_END && msg.rec.id == a->id) {
		cm_lv_end(&msg.rec.body.end, &a->end);
		finish(a);
	} else if (r != 1 && r != -EAGAIN) {
		a->jail.has_ended = true;
		conclude(a);
	}
	cm_msg_clear(&msg);
}

/* --- what is next -------------------------------------------------------------------------- */

static int read_stream(struct lv_attach *a, int i, struct cm_exec_event *ret, struct cm_error *err)
{
	uint64_t at = a->offset[i];
	uint64_t left = a->until[i] > at ? a->until[i] - at : 0;
	size_t size = left < CHUNK ? (size_t)left : CHUNK;
	ssize_t n = size == 0 ? 0
			      : cm_journal_read(&a->journal, (enum cm_journal_stream)i, &at,
						a->chunk, size);

	if (n < 0)
		return cm_error_set(err, CM_E_SYS, (int)-n, "cannot read what the command printed");
	/* what is later than was asked for was not kept in between */
	if (n == 0)
		return 0;
	a->offset[i] = at + (uint64_t)n;
	*ret = (struct cm_exec_event){
		.kind = CM_EXEC_HAS_OUTPUT, .stream = i + 1, .bytes = a->chunk, .len = (size_t)n
	};
	return 1;
}

/* 1: *ret is it; 0: nothing is known without a wait; or a code. */
static int known(struct lv_attach *a, struct cm_exec_event *ret, struct cm_error *err)
{
	int r = 0;

	if (!a->is_started_told) {
		*ret = (struct cm_exec_event){ .kind = CM_EXEC_HAS_STARTED };
		a->is_started_told = true;
		return 1;
	}
	for (int i = 0; i < 2 && r == 0; i++)
		r = read_stream(a, i, ret, err);
	if (r != 0 || !a->has_ended)
		return r;
	*ret = (struct cm_exec_event){ .kind = CM_EXEC_HAS_ENDED, .end = a->end };
	return 1;
}

static bool is_ready(const struct pollfd *p)
{
	return p->fd >= 0 && p->revents != 0;
}

static size_t prepare(const struct lv_attach *a, const struct cm_wake *wake,
		      const struct cm_call *call, struct pollfd p[SLOT_COUNT])
{
	size_t n = 0;

	p[SLOT_JAIL] = (struct pollfd){ .fd = a->has_ended ? -1 : a->jail.sock, .events = POLLIN };
	p[SLOT_WATCH] = (struct pollfd){ .fd = a->watch_fd, .events = POLLIN };
	p[SLOT_CANCEL] = (struct pollfd){ .fd = call->cancel_fd, .events = POLLIN };
	for (; wake && n < wake->n && n < CM_WAKE_MAX; n++) {
		wake->fds[n].revents = 0;
		p[SLOT_MORE + n] = wake->fds[n];
	}
	return n;
}

static bool is_woken(const struct pollfd p[SLOT_COUNT], struct cm_wake *wake, size_t n_wake)
{
	bool is_any = false;

	for (size_t i = 0; i < n_wake; i++) {
		wake->fds[i].revents = p[SLOT_MORE + i].revents;
		is_any = is_any || is_ready(&p[SLOT_MORE + i]);
	}
	return is_any;
}

/* 1: *ret is it; 0: look again; or a code. may_wait is false where something is known already. */
static int look(struct lv_attach *a, struct cm_wake *wake, const struct cm_call *call,
		bool may_wait, struct cm_exec_event *ret, struct cm_error *err)
{
	struct pollfd p[SLOT_COUNT];
	size_t n = prepare(a, wake, call, p);
	int64_t due_ms = a->watch_fd < 0 ? cm_clock_mono_ms() + BLIND_TICK_MS : INT64_MAX;
	int r = poll(p, SLOT_MORE + n, may_wait ? cm_lv_poll_ms(call, due_ms) : 0);

	if (r < 0)
		return errno == EINTR
			       ? 0
			       : cm_error_set(err, CM_E_SYS, errno, "cannot wait for the command");
	if (is_ready(&p[SLOT_WATCH]))
		cm_journal_watch_drain(a->watch_fd);
	if (is_ready(&p[SLOT_JAIL]))
		hear(a);
	if (is_woken(p, wake, n)) {
		*ret = (struct cm_exec_event){ .kind = CM_EXEC_WOKEN };
		return 1;
	}
	return is_ready(&p[SLOT_CANCEL]) || (r == 0 && may_wait) ? cm_lv_call_check(call, err) : 0;
}

static int attach_next(struct cm_exec *exec, struct cm_wake *wake, const struct cm_call *call,
		       struct cm_exec_event *ret, struct cm_error *err)
{
	struct lv_attach *a = (struct lv_attach *)exec;
	/* output and the caller's own take turns */
	int r = a->is_output_told ? look(a, wake, call, false, ret, err) : 0;

	a->is_output_told = false;
	while (r == 0) {
		r = known(a, ret, err);
		if (r == 0)
			r = look(a, wake, call, true, ret, err);
	}
	if (r > 0)
		a->is_output_told = ret->kind == CM_EXEC_HAS_OUTPUT;
	return r < 0 ? r : CM_OK;
}

/* --- what is done with it ------------------------------------------------------------------ */

static int check_runs(struct lv_attach *a, struct cm_error *err)
{
	struct pollfd p = { .fd = a->jail.sock, .events = POLLIN };

	while (!a->has_ended && a->jail.sock >= 0 && poll(&p, 1, 0) > 0)
		hear(a);
	if (a->has_ended || a->jail.sock < 0)
		return cm_error_set(err, CM_E_NOT_FOUND, 0, "command %s has ended", a->base.name);
	return CM_OK;
}

static int connect_to(const struct lv_attach *a, const struct cm_call *call, struct cm_jail *jail,
		      struct cm_error *err)
{
	struct cm_store_session record;
	struct cm_store store;
	int r = cm_lv_open((const struct cm_lv_session *)a->base.session, 0, call, &store, &record,
			   err);

	if (r < 0)
		return r;
	if (cm_store_keeper_alive(&record) &&
	    (uint32_t)record.record.generation == (uint32_t)(a->exec_id >> 32))
		r = cm_jail_connect(jail, record.socket_path, record.record.id,
				    cm_lv_deadline(call, ANSWER_MS), err);
	else
		r = cm_error_set(err, CM_E_NOT_FOUND, 0, "command %s has ended", a->base.name);
	cm_store_session_close(&record);
	cm_store_close(&store);
	return r;
}

static int open_input(struct lv_attach *a, const struct cm_call *call, struct cm_error *err)
{
	uint64_t id;
	int r = CM_OK;

	if (a->in_fd >= 0)
		return CM_OK;
	if (a->input_jail.sock < 0)
		r = connect_to(a, call, &a->input_jail, err);
	if (r == CM_OK)
		r = cm_jail_attach(&a->input_jail, a->exec_id, &id, &a->in_fd,
				   cm_lv_deadline(call, ANSWER_MS), err);
	if (r == CM_OK)
		(void)fcntl(a->in_fd, F_SETFL, O_NONBLOCK);
	return r;
}

static int await_room(struct lv_attach *a, const struct cm_call *call, struct cm_error *err)
{
	struct pollfd p[3] = {
		{ .fd = a->in_fd, .events = POLLOUT },
		{ .fd = a->jail.sock, .events = POLLIN },
		{ .fd = call->cancel_fd, .events = POLLIN },
	};
	int r = poll(p, CM_ARRAY_SIZE(p), cm_lv_poll_ms(call, INT64_MAX));

	if (r < 0 && errno != EINTR)
		return cm_error_set(err, CM_E_SYS, errno, "cannot wait for the command");
	if (r == 0 || (r > 0 && is_ready(&p[2]))) {
		r = cm_lv_call_check(call, err);
		if (r < 0)
			return r;
	}
	return check_runs(a, err);
}

static int write_all(struct lv_attach *a, const char *bytes, size_t len, const struct cm_call *call,
		     struct cm_error *err)
{
	int r = CM_OK;

	while (len > 0 && r == CM_OK) {
		ssize_t n = write(a->in_fd, bytes, len);

		if (n > 0) {
			bytes += n;
			len -= (size_t)n;
		} else if (n < 0 && errno == EAGAIN) {
			r = await_room(a, call, err);
		} else if (n < 0 && errno != EINTR) {
			r = cm_error_set(err, CM_E_NOT_FOUND, errno,
					 "command %s has closed its input", a->base.name);
		}
	}
	return r;
}

static int end_input(struct lv_attach *a, const struct cm_call *call, struct cm_error *err)
{
	struct termios modes;
	char c;
	int r;

	if ((a->journal.request.flags & CM_JOURNALF_TTY) != 0) {
		if (tcgetattr(a->in_fd, &modes) < 0)
			return cm_error_set(err, CM_E_SYS, errno, "cannot end a terminal's input");
		c = (char)modes.c_cc[VEOF];
		return write_all(a, &c, 1, call, err);
	}
	/* ours, too: the last one that is closed is the end */
	cm_fd_close(&a->in_fd);
	r = cm_jail_close_input(&a->input_jail, a->exec_id, cm_lv_deadline(call, ANSWER_MS), err);
	(void)cm_jail_close(&a->input_jail);
	cm_jail_init(&a->input_jail);
	return r;
}

static int attach_input(struct cm_exec *exec, const void *bytes, size_t len,
			const struct cm_call *call, struct cm_error *err)
{
	struct lv_attach *a = (struct lv_attach *)exec;
	struct cm_lv_quiet quiet;
	int r = check_runs(a, err);

	if (r == CM_OK)
		r = open_input(a, call, err);
	if (r < 0)
		return r;
	cm_lv_quiet_begin(&quiet);
	r = len > 0 ? write_all(a, bytes, len, call, err) : end_input(a, call, err);
	cm_lv_quiet_end(&quiet);
	return r;
}

static int attach_signal(struct cm_exec *exec, int sig, const struct cm_call *call,
			 struct cm_error *err)
{
	struct lv_attach *a = (struct lv_attach *)exec;
	int r = check_runs(a, err);

	(void)call;
	if (r < 0)
		return r;
	if (sig < 1 || sig > SIGRTMAX)
		return cm_error_set(err, CM_E_INVALID, 0, "%d is no signal", sig);
	if (sig < 64)
		a->signals |= UINT64_C(1) << sig;
	(void)cm_jail_signal(&a->jail, a->id, sig);
	return CM_OK;
}

static int attach_resize(struct cm_exec *exec, uint16_t rows, uint16_t cols,
			 const struct cm_call *call, struct cm_error *err)
{
	struct lv_attach *a = (struct lv_attach *)exec;
	const struct winsize size = { .ws_row = rows, .ws_col = cols };
	int r = check_runs(a, err);

	if (r == CM_OK && (a->journal.request.flags & CM_JOURNALF_TTY) == 0)
		r = cm_error_set(err, CM_E_INVALID, 0, "command %s has no terminal", a->base.name);
	if (r == CM_OK)
		r = open_input(a, call, err);
	if (r < 0)
		return r;
	return ioctl(a->in_fd, TIOCSWINSZ, &size) < 0
		       ? cm_error_set(err, CM_E_SYS, errno, "cannot set the terminal's size")
		       : CM_OK;
}

static void attach_release(struct cm_exec *exec)
{
	struct lv_attach *a = (struct lv_attach *)exec;

	cm_fd_close(&a->in_fd);
	cm_fd_close(&a->watch_fd);
	(void)cm_jail_close(&a->input_jail);
	(void)cm_jail_close(&a->jail);
	if (a->has_journal)
		cm_journal_reader_close(&a->journal);
	free(a);
}

static const struct cm_exec_ops attach_ops = {
	.next = attach_next,
	.input = attach_input,
	.signal = attach_signal,
	.resize = attach_resize,
	.release = attach_release,
};

/* --- attaching ----------------------------------------------------------------------------- */

static struct lv_attach *new_attach(struct cm_session *s, bool follows, const uint64_t offsets[2])
{
	struct lv_attach *a = cm_malloc(sizeof(*a));

	if (!a)
		return NULL;
	memset(a, 0, offsetof(struct lv_attach, chunk));
	a->base.ops = &attach_ops;
	a->base.session = s;
	a->follows = follows;
	a->watch_fd = a->in_fd = -1;
	cm_jail_init(&a->jail);
	cm_jail_init(&a->input_jail);
	cm_journal_reader_init(&a->journal);
	for (int i = 0; i < 2; i++) {
		a->offset[i] = offsets ? offsets[i] : 0;
		a->until[i] = UINT64_MAX;
	}
	return a;
}

static int not_there(const struct cm_session *s, const char *name, struct cm_error *err)
{
	(void)cm_error_set(err, CM_E_NOT_FOUND, 0, "session '%s' has no command '%.40s'", s->id,
			   name);
	cm_error_hint(err,
		      "what a command prints is kept when it is left running; 'casemate ps -a "
		      "%s' lists those",
		      s->id);
	return CM_E_NOT_FOUND;
}

static int open_journal(struct lv_attach *a, const char *name, const struct cm_call *call,
			struct cm_error *err)
{
	const struct cm_lv_session *s = (const struct cm_lv_session *)a->base.session;
	struct cm_error why = CM_ERROR_INIT;
	struct cm_store_session record;
	struct cm_store store;
	int r;

	if (strlen(name) >= CM_EXEC_ID_SIZE || cm_exec_id_parse(name, &a->exec_id, NULL) < 0)
		return not_there(&s->base, name, err);
	r = cm_lv_open(s, 0, call, &store, &record, err);
	if (r < 0)
		return r;
	r = cm_journal_open(record.dir_fd, a->exec_id, &a->journal, &why);
	a->has_journal = r == CM_OK;
	cm_store_session_close(&record);
	cm_store_close(&store);
	if (r == CM_E_NOT_FOUND)
		return not_there(&s->base, name, err);
	if (r < 0 && err)
		*err = why;
	memcpy(a->base.name, name, strlen(name) + 1);
	return r;
}

/* Its keeper, where that runs and has it. */
static int open_keeper(struct lv_attach *a, const struct cm_call *call, struct cm_error *err)
{
	struct cm_error why = CM_ERROR_INIT;
	int r = cm_lv_journal_end(&a->journal, &a->end, NULL) ? 1 : CM_OK;

	if (r == CM_OK)
		r = connect_to(a, call, &a->jail, &why);
	if (r == CM_OK)
		r = cm_jail_attach(&a->jail, a->exec_id, &a->id, NULL,
				   cm_lv_deadline(call, ANSWER_MS), &why);
	if (r < 0 && r != CM_E_NOT_FOUND && !a->jail.has_ended) {
		if (err)
			*err = why;
		return r;
	}
	if (r > 0)
		finish(a);
	else if (r < 0)
		conclude(a);
	return CM_OK;
}

int cm_lv_exec_attach(struct cm_session *s, const char *name, const uint64_t offsets[2],
		      bool follows, const struct cm_call *call, struct cm_exec **ret,
		      struct cm_error *err)
{
	struct lv_attach *a = new_attach(s, follows, offsets);
	int r;

	if (!a)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the command");
	r = open_journal(a, name, call, err);
	/* watched first: nothing that comes after the look is missed */
	if (r == CM_OK)
		a->watch_fd = follows ? cm_journal_watch(&a->journal) : -1;
	if (r == CM_OK)
		r = open_keeper(a, call, err);
	if (r < 0) {
		attach_release(&a->base);
		return r;
	}
	/* what there is now, and that it goes on */
	if (!follows && !a->has_ended) {
		a->end = (struct cm_exec_end){ .kind = CM_EXEC_LOST };
		finish(a);
	}
	*ret = &a->base;
	return CM_OK;
}
