/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cli/remote/file_access.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/cli/remote/recall.h"

/* so long a session may take to show that it is there */
#define ANSWER_MS 5000

int cm_away_files_open(struct cm_away_files *f, struct cm_cli *cli, const char *id,
		       struct cm_error *err)
{
	int r;

	memset(&f->away, 0, sizeof(f->away));
	f->away.cli = cli;
	f->away.signal_fd = -1;
	f->has_failed = false;
	f->has_sink = false;
	f->directory = NULL;
	cm_error_clear(&f->why);
	r = cm_away_attach_running(&f->away, cli, id, err);
	if (r == CM_OK)
		f->directory = cm_away_recall_directory(&f->away);
	return r;
}

void cm_away_files_close(struct cm_away_files *f)
{
	if (f->has_sink)
		cm_file_sink_close(&f->sink);
	f->has_sink = false;
	cm_ptr_free(&f->directory);
	cm_away_close(&f->away);
}

char *cm_away_files_path(const struct cm_away_files *f, const char *path)
{
	/* an empty one is refused as it is */
	if (!f->directory || path[0] == '/' || path[0] == '\0')
		return cm_strdup(path);
	return strcmp(path, ".") == 0 ? cm_strdup(f->directory)
				      : cm_asprintf("%s/%s", f->directory, path);
}

static int no_memory(struct cm_error *err)
{
	return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
}

int cm_away_files_settle(struct cm_away_files *f, int r, struct cm_error *err)
{
	if (f->why.code == 0)
		return r;
	*err = f->why;
	return err->code;
}

/*
 * The session is there, and this could not be done in it: for a reason that has a name, or for another
 * one that a program in it told, which is no errno of this side.
 */
static bool is_refusal(int code, const struct cm_error *err)
{
	return (code == CM_E_SYS && err->sys_errno == 0) || code == CM_E_NOT_FOUND ||
	       code == CM_E_DENIED || code == CM_E_EXISTS || code == CM_E_INVALID ||
	       code == CM_E_LIMIT || code == CM_E_BUSY;
}

static int ignore(void *data, const struct cm_path_info *info)
{
	(void)data;
	(void)info;
	return CM_OK;
}

/* A service's agent has no code for some of what it cannot do: it says so as it says that it broke. */
static bool answers(const struct cm_away_files *f)
{
	struct cm_call call = f->away.call;

	call.deadline_ms = cm_clock_mono_ms() + ANSWER_MS;
	return cm_session_stat(f->away.session, "/", 0, ignore, NULL, &call, NULL) == CM_OK;
}

int cm_away_files_go_on(struct cm_away_files *f, int r, struct cm_error *err)
{
	if (f->why.code != 0 || (!is_refusal(r, err) && (r != CM_E_REMOTE || !answers(f))))
		return cm_away_files_settle(f, r, err);
	f->has_failed = true;
	cm_cli_print_error(f->away.cli, err);
	cm_error_clear(err);
	return CM_OK;
}

int cm_away_files_end(struct cm_away_files *f, int r, const struct cm_error *err)
{
	int sig;

	if (r >= 0)
		return f->has_failed ? CM_EXIT_FILE : 0;
	/* as of any program: who breaks it off knows that, and nobody reads what this prints */
	sig = r == CM_E_CANCELLED ? cm_away_signal(&f->away) : 0;
	if (sig != 0)
		return 128 + sig;
	if (err->code == CM_E_SYS && err->sys_errno == EPIPE)
		return 128 + SIGPIPE;
	return cm_away_fail(&f->away, err);
}

/* --- output -------------------------------------------------------------------------------- */

struct cm_file_sink *cm_away_files_sink(struct cm_away_files *f)
{
	if (!f->has_sink)
		cm_file_sink_init(&f->sink, f->away.call.cancel_fd);
	f->has_sink = true;
	return &f->sink;
}

static int take(void *data, const void *bytes, size_t len)
{
	static struct cm_file_msg msg;
	struct cm_away_files *f = data;
	int r;

	msg.type = CM_FRAME_DATA;
	msg.data = bytes;
	msg.len = len;
	r = cm_file_sink_take(&f->sink, &msg, &f->why);
	if (r == CM_OK)
		return 0;
	return f->why.sys_errno != 0 ? -f->why.sys_errno : -ECANCELED;
}

int cm_away_files_print(struct cm_away_files *f, const char *path, uint64_t offset, uint64_t length,
			struct cm_error *err)
{
	const struct cm_read_request request = {
		.offset = offset, .length = length, .take = take, .data = f
	};
	CM_AUTO_FREE char *whole = cm_away_files_path(f, path);
	struct cm_file_sink *sink = cm_away_files_sink(f);
	int r;

	if (!whole)
		return no_memory(err);
	r = cm_session_read(f->away.session, whole, &request, &f->away.call, err);
	r = cm_away_files_settle(f, r, err);
	return r < 0 ? r : cm_file_sink_end(sink, err);
}

/* --- input --------------------------------------------------------------------------------- */

struct source {
	struct cm_away_files *f;
	/* how many bytes there are still to come; UINT64_MAX: not known */
	uint64_t left;
};

static ssize_t give_up(struct source *source, int code, int error, const char *what)
{
	(void)cm_error_set(&source->f->why, code, error, "%s", what);
	return error != 0 ? -error : -ECANCELED;
}

/* What comes when it comes. */
static ssize_t fill(void *data, void *buf, size_t size)
{
	struct source *source = data;
	size_t max = size < source->left ? size : (size_t)source->left;

	/* one that grows is as long as it was */
	while (max > 0) {
		struct pollfd p[2] = {
			{ .fd = STDIN_FILENO, .events = POLLIN },
			{ .fd = source->f->away.call.cancel_fd, .events = POLLIN },
		};
		ssize_t n;

		if (poll(p, CM_ARRAY_SIZE(p), -1) < 0 && errno != EINTR)
			return give_up(source, CM_E_SYS, errno, "cannot wait for standard input");
		if (p[1].revents != 0)
			return give_up(source, CM_E_CANCELLED, 0, "interrupted");
		if (p[0].revents == 0)
			continue;
		n = read(STDIN_FILENO, buf, max);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0)
			return give_up(source, CM_E_SYS, errno, "cannot read standard input");
		if (n == 0 && source->left != UINT64_MAX)
			return give_up(source, CM_E_SYS, EIO,
				       "cannot read standard input: it became shorter");
		if (n > 0 && source->left != UINT64_MAX)
			source->left -= (uint64_t)n;
		return n;
	}
	return 0;
}

/* Of a file it is known; -1 */
static int64_t input_length(void)
{
	off_t at = lseek(STDIN_FILENO, 0, SEEK_CUR);
	struct stat st;

	if (at < 0 || fstat(STDIN_FILENO, &st) < 0 || !S_ISREG(st.st_mode))
		return -1;
	return st.st_size > at ? st.st_size - at : 0;
}

int cm_away_files_write(struct cm_away_files *f, const char *path, uint32_t flags, uint32_t mode,
			struct cm_error *err)
{
	CM_AUTO_FREE char *whole = cm_away_files_path(f, path);
	int64_t len = input_length();
	struct source source = { .f = f, .left = len >= 0 ? (uint64_t)len : UINT64_MAX };
	const struct cm_write_request request = {
		.flags = flags,
		.mode = mode,
		.fill = fill,
		.data = &source,
		.len = len,
	};

	return whole ? cm_away_files_settle(f,
					    cm_session_write(f->away.session, whole, &request,
							     &f->away.call, err),
					    err)
		     : no_memory(err);
}
