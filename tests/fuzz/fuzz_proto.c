/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records as a hostile peer sends them.  The input is any number of messages, each two bytes of
 * choices, two bytes of length and so many bytes: descriptors in number and kind, and the record.
 * Nothing stays open, and what is received is whole.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "isolation/keeper/proto.h"
#include "runtime/base/fd.h"
#include "runtime/base/sock.h"
#include "tests/fuzz/fuzz.h"

#define MAX_MESSAGES 8
#define MAX_FDS 12

/* A descriptor by its kind: sealed memfds of the right and of another size, half sealed, others. */
static int make_fd(unsigned int kind, const void *content, size_t len)
{
	int fd;

	switch (kind) {
	case 0:
	case 1:
		return cm_memfd_sealed("fuzz", content, len);
	case 2:
		return cm_memfd_sealed("fuzz", content, len / 2);
	case 3:
		fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		require(fd >= 0 && ftruncate(fd, (off_t)len) == 0);
		return fd;
	default:
		return open("/dev/null", O_RDONLY | O_CLOEXEC);
	}
}

static bool send_one(int sock, const uint8_t *choices, const uint8_t *data, size_t len)
{
	static union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(MAX_FDS * sizeof(int))];
	} control;
	size_t n_fds = choices[0] % (MAX_FDS + 1);
	uint32_t blob_len = 0;
	struct iovec iov = { (void *)(uintptr_t)data, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;
	ssize_t n;

	if (len >= 8)
		memcpy(&blob_len, data + 4, sizeof(blob_len));
	if (blob_len > CM_PROTO_BLOB_MAX)
		blob_len = 10;
	memset(&control, 0, sizeof(control));
	if (n_fds > 0) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		for (size_t i = 0; i < n_fds; i++) {
			char *content = calloc(1, (size_t)blob_len + 1);
			int fd = make_fd(i + 1 == n_fds ? choices[1] % 6 : 5, content, blob_len);

			require(content && fd >= 0);
			free(content);
			memcpy(CMSG_DATA(c) + i * sizeof(int), &fd, sizeof(fd));
		}
	}
	n = sendmsg(sock, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	for (size_t i = 0; i < n_fds; i++) {
		int fd;

		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)) + i * sizeof(int), sizeof(fd));
		close(fd);
	}
	return n >= 0;
}

static void check(const struct cm_msg *msg)
{
	static volatile unsigned char sum;
	struct cm_error err;
	size_t n_open = 0;

	require(msg->rec.len <= CM_PROTO_BLOB_MAX && msg->blob && !msg->blob[msg->rec.len]);
	for (size_t i = 0; i < CM_ARRAY_SIZE(msg->fds); i++) {
		require((msg->fds[i] >= 0) == (i < msg->n_fds));
		n_open += msg->fds[i] >= 0;
		if (msg->fds[i] >= 0)
			require((fcntl(msg->fds[i], F_GETFD) & FD_CLOEXEC) != 0);
	}
	require(n_open == msg->n_fds);
	/* every byte of it, for the sanitizer */
	for (uint32_t i = 0; i < msg->rec.len; i++)
		sum = (unsigned char)(sum + (unsigned char)msg->blob[i]);
	cm_proto_error_of(msg, &err);
	require(err.code < 0 && err.code >= CM_E_MIN);
	require(memchr(err.msg, '\0', sizeof(err.msg)) && memchr(err.hint, '\0', sizeof(err.hint)));
}

static void run(int out, int in, const uint8_t *data, size_t size)
{
	struct cm_msg msg;

	cm_msg_init(&msg);
	for (int i = 0; i < MAX_MESSAGES && size >= 4; i++) {
		size_t len = data[2] | (size_t)data[3] << 8;
		int r;

		if (len > size - 4)
			len = size - 4;
		if (!send_one(out, data, data + 4, len))
			break;
		r = cm_proto_recv(in, &msg);
		if (r == 1)
			check(&msg);
		else
			require((r < 0 || len == 0) && !msg.blob && msg.n_fds == 0);
		data += 4 + len;
		size -= 4 + len;
	}
	cm_msg_clear(&msg);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t open_before = count_fds();
	int fds[2];

	require(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
	run(fds[0], fds[1], data, size);
	close(fds[0]);
	close(fds[1]);
	require(count_fds() == open_before);
	return 0;
}
