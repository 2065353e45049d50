/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A service of the host, for jails to reach: listens at a unix path, "@NAME" (abstract) or a TCP
 * port (0: one that it prints), and takes every connection. "ready" is printed first.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int listen_unix(const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t len = strlen(name);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (len >= sizeof(address.sun_path))
		return -1;
	memcpy(address.sun_path, name, len);
	if (name[0] == '@')
		address.sun_path[0] = '\0';
	if (fd < 0 || bind(fd, (struct sockaddr *)&address,
			   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) < 0)
		return -1;
	return fd;
}

static int listen_tcp(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t len = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &len) < 0)
		return -1;
	(void)printf("%u\n", ntohs(address.sin_port));
	return fd;
}

int main(int argc, char **argv)
{
	int fd = -1;

	if (argc == 2)
		fd = strcmp(argv[1], "tcp") == 0 ? listen_tcp() : listen_unix(argv[1]);
	if (fd < 0 || listen(fd, 16) < 0) {
		perror("probe_serve");
		return 1;
	}
	(void)puts("ready");
	(void)fflush(stdout);
	for (;;) {
		int client = accept(fd, NULL, NULL);

		if (client < 0)
			return 1;
		(void)close(client);
	}
}
