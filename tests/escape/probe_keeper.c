/* SPDX-License-Identifier: Apache-2.0 */
/* Says hello at a session's socket, and asks it for a command: SOCKET ID. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "isolation/keeper/proto.h"
#include "tests/escape/probe.h"

static long hello(int fd, const char *id)
{
	struct cm_rec rec = { .type = CM_REC_HELLO, .len = (uint32_t)strlen(id) };
	struct cm_rec answer = { 0 };
	ssize_t n;

	rec.body.hello.version = CM_PROTO_VERSION;
	/* closed before or after what we say: the same refusal */
	if (cm_proto_send(fd, &rec, id, NULL, 0) < 0) {
		errno = ECONNRESET;
		return -1;
	}
	n = recv(fd, &answer, sizeof(answer), 0);
	if (n == 0)
		errno = ECONNRESET;
	if (n == (ssize_t)sizeof(answer) && answer.type == CM_REC_UP)
		return 0;
	if (n > 0)
		errno = EACCES;
	return -1;
}

int main(int argc, char **argv)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int r;

	if (argc != 3 || strlen(argv[1]) >= sizeof(address.sun_path))
		return 2;
	memcpy(address.sun_path, argv[1], strlen(argv[1]));
	r = connect(fd, (struct sockaddr *)&address, sizeof(address));
	probe_result("connect", r);
	if (r == 0) {
		probe_result("hello", hello(fd, argv[2]));
	}
	return 0;
}
