/* SPDX-License-Identifier: Apache-2.0 */
/* Records with descriptors: whole, cut, with too many, and none left open. */
#include <sys/resource.h>
#include <sys/socket.h>

#include "runtime/base/sock.h"
#include "tests/unit/test_base.h"

struct ends {
	int a;
	int b;
};

static int set_up(void **state)
{
	struct ends *e = malloc(sizeof(*e));
	int fds[2];

	assert_non_null(e);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds),
			 0);
	*e = (struct ends){ fds[0], fds[1] };
	*state = e;
	return 0;
}

static int tear_down(void **state)
{
	struct ends *e = *state;

	cm_fd_close(&e->a);
	cm_fd_close(&e->b);
	free(e);
	return 0;
}

static int send_text(int sock, const char *s, const int *fds, size_t n_fds)
{
	struct iovec iov = { (void *)(uintptr_t)s, strlen(s) };

	return cm_sock_send(sock, &iov, 1, fds, n_fds);
}

static void test_round_trip(void **state)
{
	struct ends *e = *state;
	char text[] = "abcd";
	struct iovec iov[3] = { { text, 2 }, { NULL, 0 }, { text + 2, 2 } };
	int fds[CM_SOCK_MAX_FDS];
	int sent[CM_SOCK_MAX_FDS];
	size_t n_fds = 77;
	char buf[16];
	size_t open_before;

	for (size_t n = 0; n <= CM_SOCK_MAX_FDS; n++) {
		for (size_t i = 0; i < n; i++)
			sent[i] = e->a;
		assert_int_equal(cm_sock_send(e->a, iov, 3, sent, n), 0);
		open_before = count_fds();
		assert_int_equal(cm_sock_recv(e->b, buf, sizeof(buf), fds, &n_fds), 4);
		assert_memory_equal(buf, "abcd", 4);
		assert_int_equal(n_fds, n);
		assert_int_equal(count_fds(), open_before + n);
		for (size_t i = 0; i < CM_SOCK_MAX_FDS; i++) {
			if (i >= n) {
				assert_int_equal(fds[i], -1);
				continue;
			}
			assert_int_equal(fcntl(fds[i], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
			assert_true(fds[i] != e->a);
		}
		cm_sock_close_fds(fds);
		assert_int_equal(count_fds(), open_before);
		assert_int_equal(fds[0], -1);
	}
}

static void test_send_refusals(void **state)
{
	struct ends *e = *state;
	char text[] = "x";
	struct iovec iov = { text, 1 };
	struct iovec nothing[2] = { { NULL, 0 }, { text, 0 } };
	int fds[CM_SOCK_MAX_FDS + 1];
	int bad = 9999;

	for (size_t i = 0; i < CM_ARRAY_SIZE(fds); i++)
		fds[i] = e->a;
	assert_int_equal(cm_sock_send(e->a, &iov, 1, fds, CM_SOCK_MAX_FDS + 1), -EINVAL);
	/* it would read as the end of the connection */
	assert_int_equal(cm_sock_send(e->a, nothing, 2, NULL, 0), -EINVAL);
	assert_int_equal(cm_sock_send(e->a, nothing, 0, NULL, 0), -EINVAL);
	assert_int_equal(cm_sock_send(e->a, nothing, 2, fds, 1), -EINVAL);
	assert_int_equal(cm_sock_send(e->a, &iov, 1, &bad, 1), -EBADF);
	assert_int_equal(send_text(-1, "x", NULL, 0), -EBADF);
}

static void test_nothing_there(void **state)
{
	struct ends *e = *state;
	int fds[CM_SOCK_MAX_FDS] = { 7, 7, 7, 7, 7, 7, 7, 7 };
	size_t n_fds = 77;
	char buf[16];

	assert_int_equal(cm_sock_recv(e->b, buf, sizeof(buf), fds, &n_fds), -EAGAIN);
	assert_int_equal(n_fds, 77);
	for (size_t i = 0; i < CM_SOCK_MAX_FDS; i++)
		assert_int_equal(fds[i], -1);
	cm_fd_close(&e->a);
	assert_int_equal(cm_sock_recv(e->b, buf, sizeof(buf), fds, &n_fds), 0);
	assert_int_equal(n_fds, 0);
	/* a peer that is gone is an errno and not a signal */
	assert_int_equal(send_text(e->b, "x", NULL, 0), -EPIPE);
	assert_int_equal(cm_sock_recv(-1, buf, sizeof(buf), fds, &n_fds), -EBADF);
}

static void test_full(void **state)
{
	struct ends *e = *state;
	char big[4096] = { 0 };
	struct iovec iov = { big, sizeof(big) };
	int r = 0;

	for (int i = 0; i < 10000 && r == 0; i++)
		r = cm_sock_send(e->a, &iov, 1, NULL, 0);
	assert_int_equal(r, -EAGAIN);
}

static void test_too_long(void **state)
{
	struct ends *e = *state;
	int sent[3] = { e->a, e->a, e->a };
	int fds[CM_SOCK_MAX_FDS];
	size_t n_fds = 77;
	size_t open_before = count_fds();
	char buf[8] = "untouch";

	assert_int_equal(send_text(e->a, "12345678", sent, 3), 0);
	assert_int_equal(send_text(e->a, "123456789", sent, 3), 0);
	assert_int_equal(send_text(e->a, "next", NULL, 0), 0);
	assert_int_equal(cm_sock_recv(e->b, buf, sizeof(buf), fds, &n_fds), 8);
	assert_int_equal(n_fds, 3);
	cm_sock_close_fds(fds);
	n_fds = 77;
	assert_int_equal(cm_sock_recv(e->b, buf, sizeof(buf), fds, &n_fds), -EMSGSIZE);
	assert_int_equal(n_fds, 77);
	assert_int_equal(fds[0], -1);
	assert_int_equal(count_fds(), open_before);
	/* the record is gone as a whole */
	assert_int_equal(cm_sock_recv(e->b, buf, sizeof(buf), fds, &n_fds), 4);
	assert_memory_equal(buf, "next", 4);
}

/* As a peer that does not use our send function. */
static void send_raw(int sock, const char *data, size_t len, size_t n_fds)
{
	static union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(253 * sizeof(int))];
	} control;
	struct iovec iov = { (void *)(uintptr_t)data, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;

	memset(&control, 0, sizeof(control));
	msg.msg_control = control.bytes;
	msg.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
	c = CMSG_FIRSTHDR(&msg);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
	for (size_t i = 0; i < n_fds; i++)
		memcpy(CMSG_DATA(c) + i * sizeof(int), &sock, sizeof(sock));
	assert_int_equal(sendmsg(sock, &msg, 0), (ssize_t)len);
}

static void test_too_many_fds(void **state)
{
	struct ends *e = *state;
	static const size_t counts[] = { 9, 10, 11, 15, 16, 17, 30, 31, 100, 253 };
	int fds[CM_SOCK_MAX_FDS];
	size_t open_before = count_fds();
	char buf[8];

	for (size_t i = 0; i < CM_ARRAY_SIZE(counts); i++) {
		size_t n_fds = 77;

		send_raw(e->a, "x", 1, counts[i]);
		assert_int_equal(cm_sock_recv(e->b, buf, sizeof(buf), fds, &n_fds), -EMSGSIZE);
		assert_int_equal(n_fds, 77);
		for (size_t k = 0; k < CM_SOCK_MAX_FDS; k++)
			assert_int_equal(fds[k], -1);
		assert_int_equal(count_fds(), open_before);
	}
	send_raw(e->a, "x", 1, 8);
	assert_int_equal(cm_sock_recv(e->b, buf, sizeof(buf), fds, &(size_t){ 0 }), 1);
	cm_sock_close_fds(fds);
	assert_int_equal(count_fds(), open_before);
}

static void test_empty_record(void **state)
{
	struct ends *e = *state;
	int fds[CM_SOCK_MAX_FDS];
	size_t n_fds = 77;
	size_t open_before = count_fds();
	char buf[8];

	send_raw(e->a, "", 0, 2);
	assert_int_equal(cm_sock_recv(e->b, buf, sizeof(buf), fds, &n_fds), 0);
	assert_int_equal(n_fds, 0);
	assert_int_equal(count_fds(), open_before);
}

/* Credentials come before the descriptors and must not push one out. */
static void test_credentials(void **state)
{
	struct ends *e = *state;
	int on = 1;
	int fds[CM_SOCK_MAX_FDS];
	int sent[CM_SOCK_MAX_FDS];
	size_t n_fds = 0;
	size_t open_before;
	char buf[8];

	assert_int_equal(setsockopt(e->b, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)), 0);
	for (size_t i = 0; i < CM_SOCK_MAX_FDS; i++)
		sent[i] = e->a;
	open_before = count_fds();
	assert_int_equal(send_text(e->a, "x", sent, CM_SOCK_MAX_FDS), 0);
	assert_int_equal(cm_sock_recv(e->b, buf, sizeof(buf), fds, &n_fds), 1);
	assert_int_equal(n_fds, CM_SOCK_MAX_FDS);
	cm_sock_close_fds(fds);
	send_raw(e->a, "x", 1, 9);
	assert_int_equal(cm_sock_recv(e->b, buf, sizeof(buf), fds, &n_fds), -EMSGSIZE);
	assert_int_equal(count_fds(), open_before);
}

/* Our own limit is reached in the middle of a record's descriptors. */
static void test_no_room_for_fds(void **state)
{
	struct ends *e = *state;
	struct rlimit before;
	struct rlimit few;
	int sent[4] = { e->a, e->a, e->a, e->a };
	int fds[CM_SOCK_MAX_FDS];
	size_t n_fds = 77;
	size_t open_before = count_fds();
	CM_AUTO_FD int highest = fcntl(e->a, F_DUPFD_CLOEXEC, 0);
	ssize_t n;
	char buf[8];

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(send_text(e->a, "x", sent, 4), 0);
	few = (struct rlimit){ (rlim_t)highest + 3, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	n = cm_sock_recv(e->b, buf, sizeof(buf), fds, &n_fds);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(n, -EMSGSIZE);
	assert_int_equal(n_fds, 77);
	cm_fd_close(&highest);
	assert_int_equal(count_fds(), open_before);
}

int main(void)
{
#define WITH_ENDS(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		WITH_ENDS(test_round_trip),	 WITH_ENDS(test_send_refusals),
		WITH_ENDS(test_nothing_there),	 WITH_ENDS(test_full),
		WITH_ENDS(test_too_long),	 WITH_ENDS(test_too_many_fds),
		WITH_ENDS(test_empty_record),	 WITH_ENDS(test_credentials),
		WITH_ENDS(test_no_room_for_fds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
