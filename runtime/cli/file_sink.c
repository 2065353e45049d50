/* SPDX-License-Identifier: Apache-2.0 */
/* A file's content on its way to standard output. */
#include "runtime/cli/file_sink.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ESCAPED_AT_ONCE 16384U

void cm_file_sink_init(struct cm_file_sink *sink, int cancel_fd)
{
	struct stat st;
	int flags = fcntl(STDOUT_FILENO, F_GETFL);
	off_t at = lseek(STDOUT_FILENO, 0, SEEK_CUR);

	cm_outlet_init(&sink->outlet, STDOUT_FILENO);
	memset(&sink->text, 0, sizeof(sink->text));
	sink->cancel_fd = cancel_fd;
	sink->is_terminal = isatty(STDOUT_FILENO) == 1;
	sink->can_seek = fstat(STDOUT_FILENO, &st) == 0 && S_ISREG(st.st_mode) && at >= 0 &&
			 at >= st.st_size && flags >= 0 && (flags & O_APPEND) == 0;
	sink->ends_with_hole = false;
}

void cm_file_sink_close(struct cm_file_sink *sink)
{
	cm_outlet_close(&sink->outlet);
}

static int failed(int error, struct cm_error *err)
{
	return cm_error_set(err, CM_E_SYS, error, "cannot write to standard output");
}

/* Until the outlet takes more. */
static int wait_room(struct cm_file_sink *sink, struct cm_error *err)
{
	while (cm_outlet_is_full(&sink->outlet)) {
		struct pollfd p[2] = {
			{ .fd = STDOUT_FILENO, .events = POLLOUT },
			{ .fd = sink->cancel_fd, .events = POLLIN },
		};
		int r;

		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return failed(errno, err);
		if (p[1].revents != 0)
			return cm_error_set(err, CM_E_CANCELLED, 0, "interrupted");
		r = p[0].revents != 0 ? cm_outlet_flush(&sink->outlet) : 0;
		if (r < 0)
			return failed(-r, err);
	}
	return CM_OK;
}

int cm_file_sink_text(struct cm_file_sink *sink, const char *text, size_t len, struct cm_error *err)
{
	while (len > 0) {
		size_t n = len < CM_OUTLET_MAX ? len : CM_OUTLET_MAX;
		int r = wait_room(sink, err);

		if (r < 0)
			return r;
		r = cm_outlet_put(&sink->outlet, text, n);
		if (r < 0)
			return failed(-r, err);
		text += n;
		len -= n;
	}
	return CM_OK;
}

static int put_shown(struct cm_file_sink *sink, const char *bytes, size_t len, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf out = { 0 };

	while (len > 0) {
		size_t n = len < ESCAPED_AT_ONCE ? len : ESCAPED_AT_ONCE;
		int r;

		/* each byte may become four */
		cm_buf_init(&out, 8UL * ESCAPED_AT_ONCE);
		cm_shown_text_add(&sink->text, bytes, n, &out);
		if (cm_buf_status(&out) < 0)
			return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
		r = cm_file_sink_text(sink, out.data ? out.data : "", out.len, err);
		cm_buf_clear(&out);
		if (r < 0)
			return r;
		bytes += n;
		len -= n;
	}
	return CM_OK;
}

static int put_zeros(struct cm_file_sink *sink, uint64_t len, struct cm_error *err)
{
	/* not const: so it takes no room in the program */
	static char zeros[CM_OUTLET_MAX];
	int r = CM_OK;

	while (len > 0 && r == CM_OK) {
		size_t n = len < sizeof(zeros) ? (size_t)len : sizeof(zeros);

		r = sink->is_terminal ? put_shown(sink, zeros, n, err)
				      : cm_file_sink_text(sink, zeros, n, err);
		len -= n;
	}
	return r;
}

int cm_file_sink_data(struct cm_file_sink *sink, const void *bytes, size_t len,
		      struct cm_error *err)
{
	sink->ends_with_hole = false;
	return sink->is_terminal ? put_shown(sink, bytes, len, err)
				 : cm_file_sink_text(sink, bytes, len, err);
}

int cm_file_sink_hole(struct cm_file_sink *sink, uint64_t len, struct cm_error *err)
{
	if (!sink->can_seek)
		return put_zeros(sink, len, err);
	sink->ends_with_hole = true;
	return lseek(STDOUT_FILENO, (off_t)len, SEEK_CUR) < 0 ? failed(errno, err) : CM_OK;
}

int cm_file_sink_end(struct cm_file_sink *sink, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf out = { 0 };
	int r = CM_OK;

	if (sink->is_terminal) {
		cm_buf_init(&out, ESCAPED_AT_ONCE);
		cm_shown_text_end(&sink->text, &out);
		r = cm_file_sink_text(sink, out.data ? out.data : "", out.len, err);
	}
	if (r == CM_OK)
		r = wait_room(sink, err);
	if (r == CM_OK && sink->ends_with_hole &&
	    ftruncate(STDOUT_FILENO, lseek(STDOUT_FILENO, 0, SEEK_CUR)) < 0)
		r = failed(errno, err);
	return r;
}
