/* SPDX-License-Identifier: Apache-2.0 */
/* The client's end of a file operation in a session. */
#include "providers/local/files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"

#define GRACE_MS 2000
/* what is left of it when its end was told is in the pipe already */
#define LAST_WORDS_MS 1000
#define END_MS 3000
#define PIPE_SIZE (1024 * 1024)
/* five numbers of 16 digits */
#define OPTIONS_SIZE 96

/* --- beginning ----------------------------------------------------------------------------- */

static int make_pipe(int *near, int *far, bool is_input, struct cm_error *err)
{
	int pair[2];

	if (pipe2(pair, O_CLOEXEC) < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot make a pipe");
	*near = is_input ? pair[1] : pair[0];
	*far = is_input ? pair[0] : pair[1];
	(void)fcntl(*near, F_SETFL, O_NONBLOCK);
	/* as large as the user's share allows: fewer turns for each of the two */
	(void)fcntl(*near, F_SETPIPE_SZ, PIPE_SIZE);
	return CM_OK;
}

static int ask(struct cm_files *f, const struct cm_files_request *request, const int far[2],
	       struct cm_error *err)
{
	char options[OPTIONS_SIZE];
	size_t n = 0;
	const char **argv;
	char *no_env[] = { NULL };
	struct cm_jail_command command = {
		.env = no_env,
		.cwd = f->where.cwd,
		.flags = CM_EXECF_BUILTIN | (f->where.is_as_user ? CM_EXECF_AS_USER : 0),
		.stdio = { far[0], far[1], -1 },
		.grace_ms = GRACE_MS,
		.generation = f->where.generation,
	};
	int r;

	while (request->paths[n])
		n++;
	argv = cm_calloc(n + 4, sizeof(*argv));
	if (!argv)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the request");
	(void)snprintf(options, sizeof(options), "%x:%x:%x:%" PRIx64 ":%" PRIx64, CM_FILE_VERSION,
		       request->flags, request->mode, request->offset, request->length);
	argv[0] = "file";
	argv[1] = request->op;
	argv[2] = options;
	memcpy(argv + 3, request->paths, n * sizeof(*argv));
	command.argv = (char *const *)(uintptr_t)argv;
	r = cm_jail_exec(f->where.jail, &command, &f->id, err);
	free(argv);
	return r;
}

static int wait_for_room(void *data);

int cm_files_open(const struct cm_files_where *where, const struct cm_files_request *request,
		  struct cm_files **ret, struct cm_error *err)
{
	struct cm_files *f = cm_malloc(sizeof(*f));
	int far[2] = { -1, -1 };
	int r;

	if (!f)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for a file operation");
	/* the buffers need no clearing */
	memset(f, 0, offsetof(struct cm_files, msg));
	f->where = *where;
	f->in_fd = f->out_fd = -1;
	r = make_pipe(&f->in_fd, &far[0], true, err);
	if (r == CM_OK)
		r = make_pipe(&f->out_fd, &far[1], false, err);
	cm_file_reader_init(&f->reader);
	cm_file_writer_init(&f->writer, f->in_fd, wait_for_room, f);
	if (r == CM_OK)
		r = ask(f, request, far, err);
	cm_fd_close(&far[0]);
	cm_fd_close(&far[1]);
	if (r == CM_OK) {
		*ret = f;
		return CM_OK;
	}
	f->has_ended = true;
	cm_files_close(f);
	return r;
}

/* --- its end ------------------------------------------------------------------------------- */

static int set_why(struct cm_files *f, int code, const char *text)
{
	if (f->why.code == 0)
		(void)cm_error_set(&f->why, code, 0, "%s", text);
	return f->why.code;
}

/* Keepers of builds before this one know no such request; they say that it is malformed. */
static void take_refusal(struct cm_files *f, const struct cm_msg *msg)
{
	cm_proto_error_of(msg, &f->why);
	f->has_ended = true;
	if (msg->rec.type != CM_REC_REFUSED || f->why.code != CM_E_PROTOCOL)
		return;
	(void)cm_error_set(
		&f->why, CM_E_UNSUPPORTED, 0,
		"session '%s' was started by an earlier build of casemate, which knows no "
		"file operations",
		f->where.session);
	cm_error_hint(&f->why, "start it again: casemate restart %s", f->where.session);
}

static void take_message(struct cm_files *f)
{
	struct cm_msg msg;
	int r;

	cm_msg_init(&msg);
	r = cm_proto_recv(f->where.jail->sock, &msg);
	if (r != 1 && r != -EAGAIN) {
		f->has_ended = true;
		f->end.kind = CM_END_KILLED;
		if (f->why.code == 0)
			(void)cm_error_set(&f->why, CM_E_ISOLATION, 0,
					   "session '%s' ended while it was at work",
					   f->where.session);
	} else if (r == 1 && (msg.rec.type == CM_REC_FAILED ||
			      (msg.rec.type == CM_REC_REFUSED && msg.rec.id == f->id))) {
		take_refusal(f, &msg);
	} else if (r == 1 && msg.rec.id == f->id && msg.rec.type == CM_REC_STARTED) {
		f->has_started = true;
	} else if (r == 1 && msg.rec.id == f->id && msg.rec.type == CM_REC_END) {
		f->has_ended = true;
		f->end = msg.rec.body.end;
	}
	cm_msg_clear(&msg);
}

/* It ended without a word of why. */
static int why_ended(struct cm_files *f)
{
	const struct cm_rec_end *end = &f->end;
	int r;

	if (f->why.code != 0)
		return f->why.code;
	switch (end->kind) {
	case CM_END_NOT_EXECUTED:
		r = cm_error_set(&f->why, CM_E_ISOLATION, end->status,
				 "the file operation could not %s",
				 cm_exec_step_name((enum cm_exec_step)end->detail));
		if (end->detail == CM_EXEC_STEP_CWD)
			cm_error_hint(
				&f->why,
				"'%s' is where the session's commands start; it has to be there",
				f->where.cwd);
		return r;
	case CM_END_MEMORY:
		r = cm_error_set(&f->why, CM_E_LIMIT, 0,
				 "the file operation was killed at the session's memory limit");
		cm_error_hint(&f->why, "'casemate stats %s' shows what uses it", f->where.session);
		return r;
	case CM_END_KILLED:
	case CM_END_SIGNAL:
		r = cm_error_set(&f->why, CM_E_CANCELLED, 0,
				 "the file operation was ended from inside or by a stop of session "
				 "'%s'",
				 f->where.session);
		cm_error_hint(&f->why, "'casemate events %s' tells what happened in it",
			      f->where.session);
		return r;
	default:
		return set_why(f, CM_E_PROTOCOL, "the file operation ended in the middle of it");
	}
}

static void cancel(struct cm_files *f)
{
	f->is_cancelled = true;
	(void)set_why(f, CM_E_CANCELLED, "interrupted");
}

/* --- what comes out ------------------------------------------------------------------------ */

/* What an error is about, as its caller knows it; NULL: as it came. The caller frees. */
static char *shown_name(const struct cm_files *f)
{
	const struct cm_files_where *where = &f->where;
	const char *name = f->msg.name;
	size_t len;

	if (!where->asked || !where->shown)
		return NULL;
	if (strcmp(name, where->asked) == 0)
		return cm_strdup(where->shown);
	if (name[0] == '/' || strcmp(where->shown, ".") == 0)
		return NULL;
	len = strlen(where->shown);
	return cm_asprintf("%s%s%s", where->shown, where->shown[len - 1] == '/' ? "" : "/", name);
}

static int take_error(struct cm_files *f)
{
	const struct cm_file_msg *msg = &f->msg;
	enum cm_file_step step = (enum cm_file_step)msg->body.error.step;
	CM_AUTO_FREE char *name = shown_name(f);
	struct cm_error why = CM_ERROR_INIT;

	(void)cm_files_error(&why, step, msg->body.error.error, name ? name : msg->name, msg->value,
			     f->where.session);
	if ((msg->flags & CM_FRAMEF_GOES_ON) != 0) {
		f->has_failed = true;
		if (f->where.failed)
			f->where.failed(f->where.data, &why);
		return CM_OK;
	}
	if (f->why.code == 0) {
		f->why = why;
		f->is_refusal = true;
	}
	return f->why.code;
}

/* 1: a frame; 0: DONE; 2: nothing is there yet; else a code, and f->why. */
static int take_frame(struct cm_files *f)
{
	for (;;) {
		int r = cm_file_reader_next(&f->reader, &f->msg);

		if (r == 0)
			return 2;
		if (r < 0)
			return set_why(f, CM_E_PROTOCOL,
				       "what came out of the session is not what a file operation "
				       "sends");
		if (f->msg.type == CM_FRAME_DONE) {
			f->is_done = true;
			f->value = f->msg.value;
			return 0;
		}
		if (f->msg.type != CM_FRAME_ERROR)
			return 1;
		r = take_error(f);
		if (r != CM_OK)
			return r;
	}
}

/* 1: read some; 0: there is none now; -1: end of file. */
static int fill(struct cm_files *f)
{
	ssize_t n = f->out_fd < 0 ? 0 : cm_file_reader_fill(&f->reader, f->out_fd);

	if (n == -EAGAIN || n == -EINTR)
		return 0;
	if (n > 0)
		return 1;
	cm_fd_close(&f->out_fd);
	return -1;
}

static bool is_readable(const struct pollfd *p)
{
	return p->fd >= 0 && (p->revents & (POLLIN | POLLHUP | POLLERR)) != 0;
}

/* Wait for output, or its end. False: it is over, f->why says how. */
static bool wait_output(struct cm_files *f)
{
	struct pollfd p[3] = {
		{ .fd = f->out_fd, .events = POLLIN },
		{ .fd = f->has_ended ? -1 : f->where.jail->sock, .events = POLLIN },
		{ .fd = f->where.cancel_fd, .events = POLLIN },
	};
	int n = poll(p, CM_ARRAY_SIZE(p), f->has_ended ? LAST_WORDS_MS : -1);

	if (n == 0)
		cm_fd_close(&f->out_fd);
	if (n <= 0)
		return n < 0 && errno == EINTR;
	if (is_readable(&p[2])) {
		cancel(f);
		return false;
	}
	if (is_readable(&p[1]))
		take_message(f);
	return true;
}

/* The output is over; its end tells the rest. */
static int conclude(struct cm_files *f)
{
	int64_t deadline = cm_clock_mono_ms() + END_MS;

	while (!f->has_ended) {
		struct pollfd p = { .fd = f->where.jail->sock, .events = POLLIN };
		int64_t left = deadline - cm_clock_mono_ms();

		if (left <= 0 || poll(&p, 1, (int)left) == 0)
			break;
		take_message(f);
	}
	return why_ended(f);
}

int cm_files_next(struct cm_files *f, struct cm_error *err)
{
	int r = f->why.code;

	while (r == 0) {
		int got;

		r = take_frame(f);
		if (r != 2)
			break;
		r = 0;
		got = fill(f);
		if (got < 0)
			r = conclude(f);
		else if (got == 0 && !wait_output(f) && f->why.code != 0)
			r = f->why.code;
	}
	if (r < 0 && err)
		*err = f->why;
	return r;
}

/* --- what goes in -------------------------------------------------------------------------- */

/*
 * Something came out while there is more to go in: what goes on is told, and anything else is the end.
 * 0: go on sending.
 */
static int hear(struct cm_files *f)
{
	int got = fill(f);
	int r;

	if (got == 0)
		return 0;
	r = got < 0 ? conclude(f) : take_frame(f);
	if (r == 2)
		return 0;
	if (r > 0 || (r == 0 && !f->has_failed))
		(void)set_why(f, CM_E_PROTOCOL, "the file operation ended before it had all");
	return -ECANCELED;
}

/* fd: -1, or what is waited for beside it. 1: that is ready; 0: nothing is yet; -ECANCELED. */
static int wait_any(struct cm_files *f, int fd, short events)
{
	struct pollfd p[4] = {
		{ .fd = f->out_fd, .events = POLLIN },
		{ .fd = f->has_ended ? -1 : f->where.jail->sock, .events = POLLIN },
		{ .fd = f->where.cancel_fd, .events = POLLIN },
		{ .fd = fd, .events = events },
	};

	if (poll(p, CM_ARRAY_SIZE(p), -1) < 0)
		return errno == EINTR ? 0 : -ECANCELED;
	if (is_readable(&p[2])) {
		cancel(f);
		return -ECANCELED;
	}
	if (is_readable(&p[0]) && hear(f) < 0)
		return -ECANCELED;
	if (is_readable(&p[1]))
		take_message(f);
	if (f->has_ended)
		return -ECANCELED;
	return p[3].revents != 0;
}

static int wait_for_room(void *data)
{
	struct cm_files *f = data;
	int r = wait_any(f, f->in_fd, POLLOUT);

	return r < 0 ? r : 0;
}

int cm_files_wait_input(struct cm_files *f, int fd)
{
	int r;

	do {
		r = wait_any(f, fd, POLLIN);
	} while (r == 0);
	return r > 0;
}

int cm_files_end_input(struct cm_files *f)
{
	int r = cm_file_flush(&f->writer);

	cm_fd_close(&f->in_fd);
	return r;
}

int cm_files_why(struct cm_files *f, struct cm_error *err)
{
	cm_fd_close(&f->in_fd);
	/* it ended, or closed its input, for a reason that it gives */
	while (f->why.code == 0) {
		if (!f->is_done && cm_files_next(f, NULL) != 0)
			continue;
		/* told already */
		if (f->has_failed)
			return CM_OK;
		(void)set_why(f, CM_E_PROTOCOL, "the file operation ended before it had all");
	}
	if (err)
		*err = f->why;
	return f->why.code;
}

/* --- closing ------------------------------------------------------------------------------- */

void cm_files_close(struct cm_files *f)
{
	if (!f)
		return;
	cm_fd_close(&f->in_fd);
	cm_fd_close(&f->out_fd);
	/* it notices by its pipes where it is at work on them; else it is told */
	if (!f->has_ended) {
		if (!f->is_done)
			(void)cm_jail_kill(f->where.jail, f->id, GRACE_MS);
		(void)conclude(f);
	}
	free(f);
}
