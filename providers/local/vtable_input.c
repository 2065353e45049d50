/* SPDX-License-Identifier: Apache-2.0 */
/* What is done with a command of the local provider: written to, signalled, resized. */
#include <errno.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "providers/local/vtable_exec.h"
#include "runtime/base/fd.h"

static int has_ended_already(const struct cm_lv_exec *e, struct cm_error *err)
{
	if (e->why.code != 0) {
		if (err)
			*err = e->why;
		return e->why.code;
	}
	/* before it was known by a name */
	if (e->base.name[0] == '\0')
		return cm_error_set(err, CM_E_NOT_FOUND, 0, "the command has ended");
	return cm_error_set(err, CM_E_NOT_FOUND, 0, "command %s has ended", e->base.name);
}

/* What the keeper has said by now; and until it has started. */
static int catch_up(struct cm_lv_exec *e, const struct cm_call *call, struct cm_error *err)
{
	int r;

	cm_lv_exec_hear(e);
	r = cm_lv_exec_await_start(e, call, err);
	if (r == CM_OK && e->has_ended)
		r = has_ended_already(e, err);
	return r;
}

static void hold_output(struct cm_lv_exec *e, const struct pollfd p[CM_LV_SLOT_COUNT])
{
	for (int i = 0; i < 2; i++) {
		if (cm_lv_is_ready(&p[CM_LV_SLOT_OUT + i]))
			cm_buf_append(&e->held[i], e->chunk, cm_lv_exec_read(e, i));
	}
}

static bool can_hold(const struct cm_lv_exec *e, int i)
{
	return e->held[i].len + CM_LV_CHUNK <= CM_LV_HELD_MAX;
}

/* Until there is room, while what it prints is held. */
static int await_room(struct cm_lv_exec *e, int fd, const struct cm_call *call,
		      struct cm_error *err)
{
	struct pollfd p[CM_LV_SLOT_COUNT];
	int r;

	do {
		cm_lv_exec_prepare(e, call, p);
		for (int i = 0; i < 2; i++) {
			if (!can_hold(e, i))
				p[CM_LV_SLOT_OUT + i].fd = -1;
		}
		p[CM_LV_SLOT_MORE] = (struct pollfd){ .fd = fd, .events = POLLOUT };
		r = cm_lv_exec_look(e, call, p, CM_LV_SLOT_MORE + 1, INT64_MAX, err);
		if (r < 0)
			return r;
		hold_output(e, p);
		for (int i = 0; i < 2; i++) {
			if (cm_buf_status(&e->held[i]) < 0)
				return cm_error_set(err, CM_E_NOMEM, 0,
						    "no memory for what the command printed");
		}
		if (e->has_ended)
			return has_ended_already(e, err);
	} while (!cm_lv_is_ready(&p[CM_LV_SLOT_MORE]));
	return CM_OK;
}

static int write_all(struct cm_lv_exec *e, int fd, const char *bytes, size_t len,
		     const struct cm_call *call, struct cm_error *err)
{
	int r = CM_OK;

	while (len > 0 && r == CM_OK) {
		ssize_t n = write(fd, bytes, len);

		if (n > 0) {
			bytes += n;
			len -= (size_t)n;
		} else if (n < 0 && errno == EAGAIN) {
			r = await_room(e, fd, call, err);
		} else if (n < 0 && errno != EINTR) {
			r = cm_error_set(err, CM_E_NOT_FOUND, errno,
					 "command %s has closed its input", e->base.name);
		}
	}
	return r;
}

/* A terminal's input has no end but a character for it. */
static int end_terminal(struct cm_lv_exec *e, const struct cm_call *call, struct cm_error *err)
{
	struct termios modes;
	char c;

	if (e->out_fd[0] < 0 || tcgetattr(e->out_fd[0], &modes) < 0)
		return has_ended_already(e, err);
	c = (char)modes.c_cc[VEOF];
	return write_all(e, e->out_fd[0], &c, 1, call, err);
}

int cm_lv_exec_input(struct cm_exec *exec, const void *bytes, size_t len,
		     const struct cm_call *call, struct cm_error *err)
{
	struct cm_lv_exec *e = (struct cm_lv_exec *)exec;
	struct cm_lv_quiet quiet;
	int fd;
	int r = catch_up(e, call, err);

	if (r < 0)
		return r;
	if (!e->is_tty && e->in_fd < 0)
		return len == 0 ? CM_OK
				: cm_error_set(err, CM_E_INVALID, 0,
					       "the input of command %s is closed", e->base.name);
	if (!e->is_tty && len == 0) {
		cm_fd_close(&e->in_fd);
		return CM_OK;
	}
	cm_lv_exec_take_back(e);
	fd = e->is_tty ? e->out_fd[0] : e->in_fd;
	cm_lv_quiet_begin(&quiet);
	if (len == 0)
		r = end_terminal(e, call, err);
	else
		r = write_all(e, fd, bytes, len, call, err);
	cm_lv_quiet_end(&quiet);
	return r;
}

int cm_lv_exec_signal(struct cm_exec *exec, int sig, const struct cm_call *call,
		      struct cm_error *err)
{
	struct cm_lv_exec *e = (struct cm_lv_exec *)exec;
	int r = catch_up(e, call, err);

	if (r < 0)
		return r;
	if (sig < 1 || sig > SIGRTMAX)
		return cm_error_set(err, CM_E_INVALID, 0, "%d is no signal", sig);
	if (sig < 64)
		e->signals |= UINT64_C(1) << sig;
	/* a keeper that is gone is told of next */
	(void)cm_jail_signal(&e->l->jail, e->id, sig);
	return CM_OK;
}

int cm_lv_exec_resize(struct cm_exec *exec, uint16_t rows, uint16_t cols,
		      const struct cm_call *call, struct cm_error *err)
{
	struct cm_lv_exec *e = (struct cm_lv_exec *)exec;
	const struct winsize size = { .ws_row = rows, .ws_col = cols };
	int r = catch_up(e, call, err);

	if (r < 0)
		return r;
	if (e->out_fd[0] < 0 || !e->is_tty)
		return cm_error_set(err, CM_E_INVALID, 0, "command %s has no terminal",
				    e->base.name);
	return ioctl(e->out_fd[0], TIOCSWINSZ, &size) < 0
		       ? cm_error_set(err, CM_E_SYS, errno, "cannot set the terminal's size")
		       : CM_OK;
}
