/* SPDX-License-Identifier: Apache-2.0 */
/* Records between client, keeper and init: limits, memfds, descriptors, malformed peers. */
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "isolation/keeper/proto.h"
#include "runtime/base/sock.h"
#include "tests/unit/test_base.h"

struct ends {
	int a;
	int b;
	size_t open_before;
	struct cm_msg msg;
};

static int set_up(void **state)
{
	struct ends *e = malloc(sizeof(*e));
	int size = 1 << 20;
	int fds[2];

	assert_non_null(e);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds),
			 0);
	assert_int_equal(setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
	e->a = fds[0];
	e->b = fds[1];
	e->open_before = count_fds();
	cm_msg_init(&e->msg);
	*state = e;
	return 0;
}

/* Nothing is left open, whatever the test sent. */
static int tear_down(void **state)
{
	struct ends *e = *state;

	cm_msg_clear(&e->msg);
	assert_int_equal(count_fds(), e->open_before);
	cm_fd_close(&e->a);
	cm_fd_close(&e->b);
	free(e);
	return 0;
}

static char *pattern(size_t len)
{
	char *blob = malloc(len + 1);

	assert_non_null(blob);
	for (size_t i = 0; i < len; i++)
		blob[i] = (char)(i * 31 + i / 251);
	return blob;
}

static void check_blob(struct ends *e, uint32_t len, unsigned int n_fds)
{
	struct cm_rec rec = { .type = CM_REC_EXEC, .len = len, .id = 77, .flags = 0xffff };
	CM_AUTO_FREE char *blob = pattern(len);
	int fds[CM_SOCK_MAX_FDS];

	rec.body.exec.n_args = 5;
	for (size_t i = 0; i < CM_SOCK_MAX_FDS; i++)
		fds[i] = e->a;
	assert_int_equal(cm_proto_send(e->a, &rec, blob, fds, n_fds), 0);
	assert_int_equal(count_fds(), e->open_before);
	assert_int_equal(cm_proto_recv(e->b, &e->msg), 1);
	assert_int_equal(e->msg.rec.type, CM_REC_EXEC);
	assert_int_equal(e->msg.rec.id, 77);
	assert_int_equal(e->msg.rec.len, len);
	assert_int_equal(e->msg.rec.body.exec.n_args, 5);
	assert_int_equal((e->msg.rec.flags & CM_RECF_MEMFD) != 0, len > CM_PROTO_INLINE_MAX);
	assert_memory_equal(e->msg.blob, blob, len);
	assert_int_equal(e->msg.blob[len], '\0');
	/* the memfd is taken out */
	assert_int_equal(e->msg.n_fds, n_fds);
	assert_int_equal(count_fds(), e->open_before + n_fds);
	for (size_t i = 0; i < CM_ARRAY_SIZE(e->msg.fds); i++)
		assert_int_equal(e->msg.fds[i] >= 0, i < n_fds);
	cm_msg_clear(&e->msg);
	assert_int_equal(count_fds(), e->open_before);
	assert_null(e->msg.blob);
}

static void test_blobs(void **state)
{
	static const uint32_t sizes[] = {
		0,
		1,
		127,
		128,
		4096,
		CM_PROTO_INLINE_MAX - 1,
		CM_PROTO_INLINE_MAX,
		CM_PROTO_INLINE_MAX + 1,
		1000000,
		CM_PROTO_BLOB_MAX - 1,
		CM_PROTO_BLOB_MAX,
	};

	for (size_t i = 0; i < CM_ARRAY_SIZE(sizes); i++) {
		check_blob(*state, sizes[i], 0);
		check_blob(*state, sizes[i], 3);
		/* one place is the memfd's */
		check_blob(*state, sizes[i], 7);
	}
	check_blob(*state, 0, 8);
	check_blob(*state, CM_PROTO_INLINE_MAX, 8);
}

static void test_send_refusals(void **state)
{
	struct ends *e = *state;
	struct cm_rec rec = { .type = CM_REC_EXEC, .len = CM_PROTO_BLOB_MAX + 1 };
	CM_AUTO_FREE char *blob = pattern(CM_PROTO_BLOB_MAX + 1);
	int fds[9];

	for (size_t i = 0; i < CM_ARRAY_SIZE(fds); i++)
		fds[i] = e->a;
	assert_int_equal(cm_proto_send(e->a, &rec, blob, NULL, 0), -E2BIG);
	rec.len = UINT32_MAX;
	assert_int_equal(cm_proto_send(e->a, &rec, blob, NULL, 0), -E2BIG);
	rec.len = CM_PROTO_INLINE_MAX + 1;
	assert_int_equal(cm_proto_send(e->a, &rec, blob, fds, 8), -E2BIG);
	rec.len = 1;
	assert_int_equal(cm_proto_send(e->a, &rec, blob, fds, 9), -E2BIG);
	assert_int_equal(cm_proto_recv(e->b, &e->msg), -EAGAIN);
	rec.len = CM_PROTO_INLINE_MAX + 1;
	/* the memfd that was made for nothing is closed: seen at the end */
	assert_int_equal(cm_proto_send(-1, &rec, blob, NULL, 0), -EBADF);
}

/* A record as a peer may send it: `rec` cut to rec_len, a tail, descriptors. */
static void send_raw(struct ends *e, const struct cm_rec *rec, size_t rec_len, const void *tail,
		     size_t tail_len, const int *fds, size_t n_fds)
{
	struct iovec iov[2] = { { (void *)(uintptr_t)rec, rec_len },
				{ (void *)(uintptr_t)tail, tail_len } };

	assert_int_equal(cm_sock_send(e->a, iov, 2, fds, n_fds), 0);
}

static void assert_malformed(struct ends *e)
{
	assert_int_equal(cm_proto_recv(e->b, &e->msg), -EBADMSG);
	assert_null(e->msg.blob);
	assert_int_equal(e->msg.n_fds, 0);
	assert_int_equal(e->msg.rec.type, 0);
	for (size_t i = 0; i < CM_ARRAY_SIZE(e->msg.fds); i++)
		assert_int_equal(e->msg.fds[i], -1);
	assert_int_equal(count_fds(), e->open_before);
}

static void test_wrong_lengths(void **state)
{
	struct ends *e = *state;
	static char tail[CM_PROTO_INLINE_MAX + 1];
	struct cm_rec rec = { .type = CM_REC_EXEC };
	const int fds[2] = { e->a, e->b };

	for (size_t len = 1; len < sizeof(rec); len++) {
		send_raw(e, &rec, len, NULL, 0, fds, 2);
		assert_malformed(e);
	}
	/* more or less than it says */
	rec.len = 1;
	send_raw(e, &rec, sizeof(rec), NULL, 0, fds, 1);
	assert_malformed(e);
	send_raw(e, &rec, sizeof(rec), tail, 2, fds, 1);
	assert_malformed(e);
	rec.len = 0;
	send_raw(e, &rec, sizeof(rec), tail, 1, NULL, 0);
	assert_malformed(e);
	rec.len = CM_PROTO_BLOB_MAX + 1;
	send_raw(e, &rec, sizeof(rec), tail, 1, NULL, 0);
	assert_malformed(e);
	rec.len = UINT32_MAX;
	send_raw(e, &rec, sizeof(rec), tail, 1, NULL, 0);
	assert_malformed(e);
	/* longer than the receiver's buffer */
	rec.len = CM_PROTO_INLINE_MAX + 1;
	send_raw(e, &rec, sizeof(rec), tail, sizeof(tail), fds, 2);
	assert_malformed(e);
	/* the connection is still in step */
	rec.len = 1;
	send_raw(e, &rec, sizeof(rec), "x", 1, NULL, 0);
	assert_int_equal(cm_proto_recv(e->b, &e->msg), 1);
	assert_string_equal(e->msg.blob, "x");
}

static void test_too_many_fds(void **state)
{
	struct ends *e = *state;
	struct cm_rec rec = { .type = CM_REC_EXEC };
	struct iovec iov = { &rec, sizeof(rec) };
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(20 * sizeof(int))];
	} control;
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes };
	struct cmsghdr *c;

	for (size_t n = 9; n <= 20; n++) {
		memset(&control, 0, sizeof(control));
		m.msg_controllen = CMSG_SPACE(n * sizeof(int));
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n * sizeof(int));
		for (size_t i = 0; i < n; i++)
			memcpy(CMSG_DATA(c) + i * sizeof(int), &e->a, sizeof(int));
		assert_int_equal(sendmsg(e->a, &m, 0), sizeof(rec));
		assert_malformed(e);
	}
}

/* A memfd of `size` bytes with `seals`. */
static int make_memfd(size_t size, int seals)
{
	int fd = memfd_create("cm-test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	if (seals != 0)
		assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void send_memfd(struct ends *e, uint32_t len, int fd)
{
	struct cm_rec rec = { .type = CM_REC_EXEC, .flags = CM_RECF_MEMFD, .len = len };

	send_raw(e, &rec, sizeof(rec), NULL, 0, &fd, 1);
	close(fd);
}

#define ALL_SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static void test_memfd_seals(void **state)
{
	struct ends *e = *state;

	/* every set of seals but the whole one */
	for (int seals = 0; seals <= ALL_SEALS; seals++) {
		if ((seals & ~ALL_SEALS) != 0 || seals == ALL_SEALS)
			continue;
		send_memfd(e, 100000, make_memfd(100000, seals));
		assert_malformed(e);
	}
	/* writes that are forbidden only from now on: a mapping that is there goes on writing */
	send_memfd(e, 100000,
		   make_memfd(100000, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | 0x0010));
	assert_malformed(e);
	send_memfd(e, 100000, make_memfd(100000, ALL_SEALS));
	assert_int_equal(cm_proto_recv(e->b, &e->msg), 1);
	assert_int_equal(e->msg.n_fds, 0);
	/* a small one is as good */
	send_memfd(e, 3, make_memfd(3, ALL_SEALS));
	assert_int_equal(cm_proto_recv(e->b, &e->msg), 1);
	assert_memory_equal(e->msg.blob, "\0\0\0", 4);
}

static void test_memfd_lengths(void **state)
{
	struct ends *e = *state;
	struct cm_rec rec = { .type = CM_REC_EXEC, .flags = CM_RECF_MEMFD, .len = 5 };
	int fd;

	send_memfd(e, 100000, make_memfd(99999, ALL_SEALS));
	assert_malformed(e);
	send_memfd(e, 100000, make_memfd(100001, ALL_SEALS));
	assert_malformed(e);
	send_memfd(e, 1, make_memfd(0, ALL_SEALS));
	assert_malformed(e);
	send_memfd(e, CM_PROTO_BLOB_MAX + 1, make_memfd(CM_PROTO_BLOB_MAX + 1, ALL_SEALS));
	assert_malformed(e);
	/* none at all */
	send_raw(e, &rec, sizeof(rec), NULL, 0, NULL, 0);
	assert_malformed(e);
	/* and one beside a blob */
	fd = make_memfd(5, ALL_SEALS);
	send_raw(e, &rec, sizeof(rec), "12345", 5, &fd, 1);
	close(fd);
	assert_malformed(e);
}

/* Descriptors that are no memfd: reading from them would wait, or change under the reader. */
static void test_not_a_memfd(void **state)
{
	struct ends *e = *state;
	char name[] = "/tmp/cm-test-proto-XXXXXX";
	int pipe_fds[2];
	int fd = mkostemp(name, O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(unlink(name), 0);
	assert_int_equal(ftruncate(fd, 10), 0);
	send_memfd(e, 10, fd);
	assert_malformed(e);
	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	close(pipe_fds[1]);
	send_memfd(e, 10, pipe_fds[0]);
	assert_malformed(e);
	send_memfd(e, 10, open("/dev/zero", O_RDONLY | O_CLOEXEC));
	assert_malformed(e);
	send_memfd(e, 10, open("/", O_PATH | O_CLOEXEC));
	assert_malformed(e);
}

/* Content is read from the start, wherever the position is. */
static void test_memfd_position(void **state)
{
	struct ends *e = *state;
	int fd = cm_memfd_sealed("cm-test", "0123456789", 10);

	assert_true(fd >= 0);
	assert_int_equal(lseek(fd, 7, SEEK_SET), 7);
	send_memfd(e, 10, fd);
	assert_int_equal(cm_proto_recv(e->b, &e->msg), 1);
	assert_string_equal(e->msg.blob, "0123456789");
}

static void test_end_of_file(void **state)
{
	struct ends *e = *state;

	assert_int_equal(cm_proto_recv(e->b, &e->msg), -EAGAIN);
	check_blob(e, 10, 2);
	close(e->a);
	e->a = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(cm_proto_recv(e->b, &e->msg), 0);
	assert_int_equal(cm_proto_recv(-1, &e->msg), -EBADF);
}

/* The peer ended with records unread: what it had sent before still comes. */
static void test_reset(void **state)
{
	struct ends *e = *state;
	struct cm_rec rec = { .type = CM_REC_STOPPED, .id = 3 };

	assert_int_equal(cm_proto_send(e->b, &rec, NULL, NULL, 0), 0);
	assert_int_equal(cm_proto_send(e->a, &rec, NULL, NULL, 0), 0);
	close(e->a);
	e->a = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(cm_proto_recv(e->b, &e->msg), 1);
	assert_int_equal(e->msg.rec.id, 3);
	assert_int_equal(cm_proto_recv(e->b, &e->msg), 0);
}

/* What was in a message before is gone, whatever comes next. */
static void test_used_again(void **state)
{
	struct ends *e = *state;
	struct cm_rec rec = { .type = CM_REC_EXEC, .len = 5 };
	const int fds[2] = { e->a, e->b };

	for (int i = 0; i < 3; i++) {
		assert_int_equal(cm_proto_send(e->a, &rec, "12345", fds, 2), 0);
		assert_int_equal(cm_proto_recv(e->b, &e->msg), 1);
		assert_int_equal(count_fds(), e->open_before + 2);
	}
	assert_int_equal(cm_proto_recv(e->b, &e->msg), -EAGAIN);
	assert_null(e->msg.blob);
	assert_int_equal(count_fds(), e->open_before);
}

static bool receive_once(void *data)
{
	struct ends *e = data;
	struct cm_rec rec = { .type = CM_REC_EXEC, .len = CM_PROTO_INLINE_MAX + 1 };
	CM_AUTO_FREE char *blob = pattern(rec.len);
	int r;

	assert_int_equal(cm_proto_send(e->a, &rec, blob, &e->a, 1), 0);
	r = cm_proto_recv(e->b, &e->msg);
	if (r != 1) {
		assert_int_equal(r, -ENOMEM);
		assert_int_equal(count_fds(), e->open_before);
	}
	return r == 1;
}

static void test_no_memory(void **state)
{
	assert_int_equal(fail_each_allocation(receive_once, *state), 1);
}

static void test_errors(void **state)
{
	struct ends *e = *state;
	struct cm_error sent = CM_ERROR_INIT;
	struct cm_error got = CM_ERROR_INIT;

	cm_error_set(&sent, CM_E_LIMIT, ENOSPC, "no more than %d", 5);
	cm_error_hint(&sent, "use fewer");
	assert_int_equal(cm_proto_send_error(e->a, CM_REC_REFUSED, 9, &sent), 0);
	assert_int_equal(cm_proto_recv(e->b, &e->msg), 1);
	assert_int_equal(e->msg.rec.type, CM_REC_REFUSED);
	assert_int_equal(e->msg.rec.id, 9);
	cm_proto_error_of(&e->msg, &got);
	assert_memory_equal(&got, &sent, sizeof(got));
}

static void check_error(int code, int expected)
{
	struct cm_error raw;
	struct cm_error got;
	struct cm_msg msg;

	/* no NUL anywhere */
	memset(&raw, 'x', sizeof(raw));
	raw.code = code;
	cm_msg_init(&msg);
	msg.rec.len = sizeof(raw);
	msg.blob = malloc(sizeof(raw) + 1);
	assert_non_null(msg.blob);
	memcpy(msg.blob, &raw, sizeof(raw));
	cm_proto_error_of(&msg, &got);
	assert_int_equal(got.code, expected);
	assert_int_equal(strlen(got.msg), CM_ERROR_MSG_SIZE - 1);
	assert_int_equal(strlen(got.hint), CM_ERROR_HINT_SIZE - 1);
	cm_msg_clear(&msg);
}

static void test_malformed_errors(void **state)
{
	static const uint32_t lengths[] = { 0, 1, sizeof(struct cm_error) - 1,
					    sizeof(struct cm_error) + 1, UINT32_MAX };
	struct cm_error got;
	struct cm_msg msg;

	(void)state;
	check_error(CM_E_INVALID, CM_E_INVALID);
	check_error(CM_E_MIN, CM_E_MIN);
	check_error(CM_E_MIN - 1, CM_E_PROTOCOL);
	/* a success cannot be reported as a failure */
	check_error(0, CM_E_PROTOCOL);
	check_error(1, CM_E_PROTOCOL);
	check_error(INT32_MIN, CM_E_PROTOCOL);
	check_error(INT32_MAX, CM_E_PROTOCOL);
	cm_msg_init(&msg);
	for (size_t i = 0; i < CM_ARRAY_SIZE(lengths); i++) {
		msg.rec.len = lengths[i];
		memset(&got, 0x55, sizeof(got));
		cm_proto_error_of(&msg, &got);
		assert_int_equal(got.code, CM_E_PROTOCOL);
		assert_string_equal(got.msg, "malformed report from the keeper");
		assert_string_equal(got.hint, "");
	}
}

static void test_step_names(void **state)
{
	(void)state;
	for (int a = CM_EXEC_STEP_SESSION; a <= CM_EXEC_STEP_EXECVE; a++) {
		for (int b = CM_EXEC_STEP_SESSION; b < a; b++)
			assert_string_not_equal(cm_exec_step_name((enum cm_exec_step)a),
						cm_exec_step_name((enum cm_exec_step)b));
	}
	/* it comes from a jail */
	assert_string_equal(cm_exec_step_name((enum cm_exec_step)0), "start");
	assert_string_equal(cm_exec_step_name((enum cm_exec_step)99), "start");
}

int main(void)
{
#define WITH_ENDS(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		WITH_ENDS(test_blobs),
		WITH_ENDS(test_send_refusals),
		WITH_ENDS(test_wrong_lengths),
		WITH_ENDS(test_too_many_fds),
		WITH_ENDS(test_memfd_seals),
		WITH_ENDS(test_memfd_lengths),
		WITH_ENDS(test_not_a_memfd),
		WITH_ENDS(test_memfd_position),
		WITH_ENDS(test_end_of_file),
		WITH_ENDS(test_reset),
		WITH_ENDS(test_used_again),
		WITH_ENDS(test_no_memory),
		WITH_ENDS(test_errors),
		cmocka_unit_test(test_malformed_errors),
		cmocka_unit_test(test_step_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
