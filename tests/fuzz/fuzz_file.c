/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames as a hostile jail sends them, received as a copy out of it is: into a directory in which
 * somebody has prepared links to the outside.  Nothing outside is made or changed, nothing that is not
 * whole is left, nothing stays open.  The first byte says in pieces of which size they come.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "isolation/keeper/file_recv.h"
#include "runtime/base/fd.h"
#include "tests/fuzz/fuzz.h"

static char top[] = "/tmp/casemate-fuzz-XXXXXX";
static int top_fd = -1;

static void remove_top(void)
{
	(void)cm_remove_tree_at(AT_FDCWD, top);
}

static void make_file(const char *name)
{
	int fd = openat(top_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);

	require(fd >= 0 && write(fd, "outside", 7) == 7);
	close(fd);
}

static void prepare(void)
{
	if (top_fd < 0) {
		require(mkdtemp(top) != NULL);
		(void)atexit(remove_top);
		top_fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		require(top_fd >= 0 && mkdirat(top_fd, "out", 0750) == 0);
		make_file("out/file");
	}
	require(mkdirat(top_fd, "in", 0755) == 0 && mkdirat(top_fd, "in/d", 0755) == 0);
	require(symlinkat("../out", top_fd, "in/l") == 0);
	require(symlinkat("../../out", top_fd, "in/d/l") == 0);
	require(symlinkat("../../out/file", top_fd, "in/d/f") == 0);
}

static void check_outside(void)
{
	struct stat dir;
	struct stat file;

	require(fstatat(top_fd, "out", &dir, 0) == 0 && fstatat(top_fd, "out/file", &file, 0) == 0);
	require((dir.st_mode & 07777) == 0750 && dir.st_nlink == 2);
	require((file.st_mode & 07777) == 0640 && file.st_size == 7 && file.st_nlink == 1);
	/* nothing else is there */
	require(unlinkat(top_fd, "out/file", 0) == 0);
	require(unlinkat(top_fd, "out", AT_REMOVEDIR) == 0);
	require(mkdirat(top_fd, "out", 0750) == 0);
	make_file("out/file");
}

static int failed(void *data, enum cm_file_step step, int error, const char *path)
{
	(void)data;
	require(step > 0 && step < CM_FILE_STEP_COUNT_ && error >= 0);
	require(strlen(path) <= CM_FILE_PATH_MAX);
	return 0;
}

static void check_msg(const struct cm_file_msg *msg)
{
	require(strlen(msg->name) == msg->name_len && strlen(msg->target) == msg->target_len);
	require(msg->name_len <= CM_FILE_PATH_MAX && msg->target_len <= CM_FILE_PATH_MAX);
	require(msg->type != CM_FRAME_DATA || msg->len <= CM_FILE_DATA_MAX);
}

/* Until it is refused, or there is no more. */
static void take(struct cm_file_reader *reader, struct cm_file_receiver *to, bool *ret_is_over)
{
	static struct cm_file_msg msg;
	int r;

	while ((r = cm_file_reader_next(reader, &msg)) == 1) {
		check_msg(&msg);
		if (msg.type == CM_FRAME_ERROR || msg.type == CM_FRAME_DONE)
			continue;
		if (cm_file_receiver_take(to, &msg) < 0)
			break;
	}
	*ret_is_over = r != 0;
}

static void receive(const uint8_t *data, size_t size)
{
	static struct cm_file_reader reader;
	static struct cm_file_receiver receiver;
	size_t piece = 1 + (size_t)data[0] * 64;
	int in_fd = openat(top_fd, "in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool is_over = false;

	require(in_fd >= 0);
	cm_file_reader_init(&reader);
	cm_file_receiver_init(&receiver, in_fd, data[0] % 3 == 0 ? "" : "d", "in", true);
	receiver.failed = failed;
	receiver.checks_links = data[0] % 2 == 0;
	for (size_t at = 1; at < size && !is_over; at += piece) {
		size_t n = size - at < piece ? size - at : piece;

		memmove(reader.bytes, reader.bytes + reader.at, reader.len - reader.at);
		reader.len -= reader.at;
		reader.at = 0;
		require(n <= sizeof(reader.bytes) - reader.len);
		memcpy(reader.bytes + reader.len, data + at, n);
		reader.len += n;
		take(&reader, &receiver, &is_over);
	}
	cm_file_receiver_close(&receiver);
	close(in_fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t open_before;

	if (size == 0)
		return 0;
	prepare();
	open_before = count_fds();
	receive(data, size);
	require(count_fds() == open_before);
	check_outside();
	require(cm_remove_tree_at(top_fd, "in") == 0);
	return 0;
}
