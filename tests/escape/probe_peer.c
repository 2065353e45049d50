/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What two sessions could share: "make" leaves one object of each kind and stays; "look" tries to
 * find them; "killall" ends everything that it may.
 */
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/escape/probe.h"

#define KEY 0xca5e

static int abstract(bool is_listener)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "\0cm-escape-peer" };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const socklen_t len = offsetof(struct sockaddr_un, sun_path) + 15;

	if (!is_listener)
		return connect(fd, (struct sockaddr *)&address, len);
	return bind(fd, (struct sockaddr *)&address, len) < 0 ? -1 : listen(fd, 4);
}

static _Noreturn void make(void)
{
	(void)shmget(KEY, 4096, IPC_CREAT | 0666);
	(void)semget(KEY, 1, IPC_CREAT | 0666);
	(void)msgget(KEY, IPC_CREAT | 0666);
	(void)mq_open("/cm-escape-peer", O_CREAT | O_RDWR, 0666, NULL);
	(void)open("/dev/shm/cm-escape-peer", O_CREAT | O_RDWR | O_CLOEXEC, 0666);
	(void)open("/tmp/cm-escape-peer", O_CREAT | O_RDWR | O_CLOEXEC, 0666);
	(void)abstract(true);
	(void)puts("ready");
	(void)fflush(stdout);
	for (;;)
		(void)pause();
}

static void look(void)
{
	probe_result("shared memory", shmget(KEY, 0, 0));
	probe_result("semaphore", semget(KEY, 0, 0));
	probe_result("message queue", msgget(KEY, 0));
	probe_result("posix queue", mq_open("/cm-escape-peer", O_RDWR));
	probe_result("/dev/shm", open("/dev/shm/cm-escape-peer", O_RDWR | O_CLOEXEC));
	probe_result("/tmp", open("/tmp/cm-escape-peer", O_RDWR | O_CLOEXEC));
	probe_result("abstract socket", abstract(false));
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	if (strcmp(mode, "make") == 0)
		make();
	if (strcmp(mode, "killall") == 0)
		return kill(-1, SIGKILL);
	look();
	return 0;
}
