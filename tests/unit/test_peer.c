/* SPDX-License-Identifier: Apache-2.0 */
/* Who is at the other end of a socket; built twice, once as before Linux 6.5. */
#include <sys/socket.h>
#include <sys/un.h>

#include "runtime/base/peer.h"
#include "tests/unit/test_base.h"

static int connect_to(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		cm_fd_close(&fd);
	return fd;
}

/* A process that listens, and does nothing else until it is killed. */
static pid_t listen_at(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
		if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
		    listen(fd, 4) < 0 || write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			(void)pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void test_listener(void **state)
{
	char dir[] = "/tmp/cm-test-peer.XXXXXX";
	char path[64];
	struct cm_peer peer = CM_PEER_INIT;
	struct cm_peer late = CM_PEER_INIT;
	size_t before = count_fds();
	int sock;
	pid_t pid;

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/s", dir);
	pid = listen_at(path);
	sock = connect_to(path);
	assert_true(sock >= 0);
	assert_int_equal(cm_peer_of(sock, &peer), 0);
	assert_int_equal(peer.pid, pid);
	assert_int_equal(peer.uid, getuid());
	assert_true(cm_peer_lives(&peer));
	assert_int_equal(fcntl(peer.pidfd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_false(cm_peer_lives(&peer));
	/* whoever has that number now is not the peer */
	assert_true(cm_peer_of(sock, &late) < 0);
	assert_int_equal(late.pidfd, -1);
	cm_peer_close(&peer);
	assert_false(cm_peer_lives(&peer));
	close(sock);
	assert_int_equal(count_fds(), before);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
}

static void test_own(void **state)
{
	struct cm_peer peer = CM_PEER_INIT;
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(cm_peer_of(pair[0], &peer), 0);
	assert_int_equal(peer.pid, getpid());
	cm_peer_close(&peer);
	close(pair[0]);
	close(pair[1]);
}

static void test_no_socket(void **state)
{
	struct cm_peer peer = CM_PEER_INIT;

	(void)state;
	assert_int_equal(cm_peer_of(-1, &peer), -EBADF);
	assert_false(cm_peer_lives(&peer));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_listener),
		cmocka_unit_test(test_own),
		cmocka_unit_test(test_no_socket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
