/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in program of file operations: its request, its table, its end. */
#include "isolation/keeper/file_ops.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "isolation/keeper/file_builtin.h"
#include "runtime/base/fd.h"

/* Never written to in init: what the child uses of them is its own copy. */
static _Alignas(16) unsigned char stack[512U * 1024];
static struct cm_file_request request;

static volatile sig_atomic_t is_stopped;

static void on_stop(int sig)
{
	(void)sig;
	is_stopped = 1;
}

bool cm_file_is_stopped(void)
{
	return is_stopped != 0;
}

static int go_on(void *data)
{
	(void)data;
	return is_stopped ? -EINTR : 0;
}

/* What was begun is taken back before this ends, so the first signal is heard and not obeyed. */
static void hear_signals(void)
{
	static const int stops[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT };
	struct sigaction stop = { .sa_handler = on_stop };
	struct sigaction ignore = { .sa_handler = SIG_IGN };

	for (size_t i = 0; i < CM_ARRAY_SIZE(stops); i++)
		(void)sigaction(stops[i], &stop, NULL);
	/* both are errors of the write */
	(void)sigaction(SIGPIPE, &ignore, NULL);
	(void)sigaction(SIGXFSZ, &ignore, NULL);
}

int cm_file_fail(struct cm_file_request *q, enum cm_file_step step, int error, const char *path,
		 uint64_t written)
{
	/* who stopped it knows why */
	if (!is_stopped)
		(void)cm_file_put_error(&q->out, step, error, path, false, written);
	return 1;
}

int cm_file_failed(void *data, enum cm_file_step step, int error, const char *path)
{
	struct cm_file_request *q = data;

	q->has_failed = true;
	return cm_file_put_error(&q->out, step, error, path, true, 0);
}

int cm_file_next(struct cm_file_request *q)
{
	for (;;) {
		int r = cm_file_reader_next(&q->in, &q->msg);
		ssize_t n;

		if (r != 0)
			return r;
		if (is_stopped)
			return -EINTR;
		n = cm_file_reader_fill(&q->in, STDIN_FILENO);
		if (n == 0)
			return cm_file_reader_is_empty(&q->in) ? 0 : -EBADMSG;
		if (n < 0 && n != -EINTR)
			return (int)n;
	}
}

int cm_file_open_parent(const char *path, const char **ret_base)
{
	int fd = -1;
	int r;

	if (strlen(path) > CM_FILE_PATH_MAX)
		return -ENAMETOOLONG;
	r = cm_open_parent_at(AT_FDCWD, path, &fd, ret_base);
	if (r < 0)
		return r;
	if (fd < 0)
		fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int cm_file_make_parents(const char *path, bool with_last)
{
	char text[CM_FILE_PATH_MAX + 1];
	size_t len = strlen(path);

	if (len > CM_FILE_PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(text, path, len + 1);
	while (len > 1 && text[len - 1] == '/')
		text[--len] = '\0';
	for (char *p = text + 1; len > 0; p++) {
		bool is_last = *p == '\0';
		struct stat st;
		char was = *p;

		if ((*p != '/' && !is_last) || (is_last && !with_last)) {
			if (is_last)
				break;
			continue;
		}
		*p = '\0';
		if (mkdir(text, 0777) < 0 && (stat(text, &st) < 0 || !S_ISDIR(st.st_mode)))
			return errno == EEXIST ? -ENOTDIR : -errno;
		*p = was;
		if (is_last)
			break;
	}
	return 0;
}

mode_t cm_file_default_mode(mode_t all)
{
	mode_t mask = umask(0);

	(void)umask(mask);
	return all & ~mask;
}

static const struct {
	const char *name;
	size_t min_paths;
	size_t max_paths;
	int (*run)(struct cm_file_request *q, uint64_t *ret_value);
} operations[] = {
	{ "read", 1, 1, cm_file_op_read },
	{ "write", 1, 1, cm_file_op_write },
	{ "ls", 1, SIZE_MAX, cm_file_op_ls },
	{ "stat", 1, SIZE_MAX, cm_file_op_stat },
	{ "mkdir", 1, SIZE_MAX, cm_file_op_mkdir },
	{ "rm", 1, SIZE_MAX, cm_file_op_rm },
	{ "mv", 2, 2, cm_file_op_mv },
	{ "get", 1, 1, cm_file_op_get },
	{ "put", 2, 2, cm_file_op_put },
	{ "watch", 1, 1, cm_file_op_watch },
};

/* Five numbers; the first is the version. */
static bool read_options(struct cm_file_request *q, const char *text)
{
	uint64_t v[5];

	for (size_t i = 0; i < CM_ARRAY_SIZE(v); i++) {
		char *end = NULL;

		errno = 0;
		v[i] = strtoull(text, &end, 16);
		if (end == text || errno != 0 || *end != (i + 1 < CM_ARRAY_SIZE(v) ? ':' : '\0'))
			return false;
		text = end + 1;
	}
	q->flags = (uint32_t)v[1];
	q->mode = (mode_t)(v[2] & CM_FILE_MODE_MASK);
	q->offset = v[3];
	q->length = v[4];
	return v[0] == CM_FILE_VERSION;
}

static int carry_out(struct cm_file_request *q, char **argv)
{
	size_t n_args = 0;
	uint64_t value = 0;

	while (argv[n_args])
		n_args++;
	if (n_args < 3 || !read_options(q, argv[2]))
		return cm_file_fail(q, CM_FILE_STEP_REQUEST, EINVAL, "", 0);
	q->paths = argv + 3;
	q->n_paths = n_args - 3;
	for (size_t i = 0; i < CM_ARRAY_SIZE(operations); i++) {
		if (strcmp(operations[i].name, argv[1]) != 0 ||
		    q->n_paths < operations[i].min_paths || q->n_paths > operations[i].max_paths)
			continue;
		if (operations[i].run(q, &value) != 0)
			return 1;
		return cm_file_put_plain(&q->out, CM_FRAME_DONE, value) < 0 || q->has_failed;
	}
	return cm_file_fail(q, CM_FILE_STEP_REQUEST, ENOSYS, argv[1], 0);
}

static int file_main(char **argv)
{
	int status;

	hear_signals();
	cm_file_reader_init(&request.in);
	cm_file_writer_init(&request.out, STDOUT_FILENO, go_on, NULL);
	status = carry_out(&request, argv);
	/* what could not be told is no success */
	return cm_file_flush(&request.out) < 0 ? 1 : status;
}

void cm_file_image(struct cm_exec_image *image)
{
	image->builtin = file_main;
	image->stack = stack;
	image->stack_size = sizeof(stack);
}
