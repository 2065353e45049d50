/* SPDX-License-Identifier: Apache-2.0 */
/* get and put: the jail's end of cp. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "isolation/keeper/file_builtin.h"
#include "isolation/keeper/file_link.h"
#include "isolation/keeper/file_recv.h"
#include "isolation/keeper/file_send.h"
#include "runtime/base/fd.h"

int cm_file_op_get(struct cm_file_request *q, uint64_t *ret_value)
{
	static struct cm_file_sender sender;
	const char *path = q->paths[0];
	struct stat st;

	cm_file_sender_init(&sender, &q->out, path, cm_file_failed, q);
	/* without this "x/" would be the link x */
	if (path[0] != '\0' && path[strlen(path) - 1] == '/' && stat(path, &st) == 0 &&
	    !S_ISDIR(st.st_mode))
		return cm_file_fail(q, CM_FILE_STEP_OPEN, ENOTDIR, path, 0);
	*ret_value = 0;
	return cm_file_send_tree(&sender, AT_FDCWD, path, "") < 0;
}

/* --- put ----------------------------------------------------------------------------------- */

static int receive(struct cm_file_request *q, struct cm_file_receiver *r)
{
	for (;;) {
		int e = cm_file_next(q);

		if (e <= 0)
			return e < 0 ? e : -ECANCELED;
		if (q->msg.type == CM_FRAME_DONE)
			return !r->has_top || cm_file_receiver_is_done(r) ? 0 : -EBADMSG;
		e = cm_file_receiver_take(r, &q->msg);
		if (e < 0)
			return e;
	}
}

/* Where the tree goes: *ret_fd is a directory, and *ret_name what the top is called in it. */
static int find_place(struct cm_file_request *q, int *ret_fd, char name[NAME_MAX + 1],
		      bool *ret_is_inside, bool *ret_wants_directory)
{
	const char *path = q->paths[0];
	char text[CM_FILE_PATH_MAX + 1];
	const char *base = NULL;
	size_t len = strlen(path);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (len > CM_FILE_PATH_MAX || strlen(q->paths[1]) > NAME_MAX)
		return -ENAMETOOLONG;
	if (fd >= 0) {
		*ret_fd = fd;
		*ret_is_inside = true;
		memcpy(name, q->paths[1], strlen(q->paths[1]) + 1);
		return 0;
	}
	if (errno != ENOENT && errno != ENOTDIR)
		return -errno;
	memcpy(text, path, len + 1);
	while (len > 1 && text[len - 1] == '/') {
		*ret_wants_directory = true;
		text[--len] = '\0';
	}
	fd = cm_file_open_parent(text, &base);
	if (fd < 0)
		return fd == -EINVAL ? -ENOENT : fd;
	*ret_fd = fd;
	if (strlen(base) > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, base, strlen(base) + 1);
	return 0;
}

int cm_file_op_put(struct cm_file_request *q, uint64_t *ret_value)
{
	static struct cm_file_receiver receiver;
	CM_AUTO_FD int fd = -1;
	char name[NAME_MAX + 1] = "";
	bool wants_directory = false;
	bool is_inside = false;
	int r = find_place(q, &fd, name, &is_inside, &wants_directory);

	if (r < 0)
		return cm_file_fail(q, CM_FILE_STEP_CREATE, -r, q->paths[0], 0);
	cm_file_receiver_init(&receiver, fd, name, q->paths[0], is_inside);
	receiver.failed = cm_file_failed;
	receiver.data = q;
	receiver.wants_directory = wants_directory;
	r = receive(q, &receiver);
	*ret_value = receiver.n_entries;
	cm_file_receiver_close(&receiver);
	if (r == -EBADMSG)
		return cm_file_fail(q, CM_FILE_STEP_STREAM, EBADMSG, q->paths[0], 0);
	/* what ends it was told already, as a full disk; a stream that broke off has nobody to be told */
	return r < 0 && !receiver.has_failed;
}
