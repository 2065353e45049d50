/* SPDX-License-Identifier: Apache-2.0 */
/* Records for a peer that does not read just now: none lost, none waited for, all in order. */
#include <sys/epoll.h>
#include <sys/socket.h>

#include "isolation/keeper/outbox.h"
#include "tests/unit/test_base.h"

/* far more than a socket holds */
#define N_SMALL 2000
#define N_LARGE 200
#define LARGE (60U * 1024)

struct end {
	struct cm_outbox box;
	struct cm_msg msg;
	uint64_t taken;
	uint64_t expected;
	unsigned int n_emptied;
	bool is_gone;
};

struct pair {
	struct cm_loop loop;
	struct end ends[2];
	size_t open_before;
};

static void on_end(struct cm_loop *loop, int fd, uint32_t events, void *data)
{
	struct end *end = data;
	int r;

	(void)events;
	(void)cm_outbox_flush(&end->box);
	r = cm_proto_recv(fd, &end->msg);
	if (r == -EAGAIN)
		return;
	if (r != 1) {
		end->is_gone = true;
		cm_loop_stop(loop);
		return;
	}
	assert_int_equal(end->msg.rec.id, end->taken);
	if (end->msg.rec.len > 0)
		assert_int_equal(end->msg.blob[end->msg.rec.len - 1], (char)end->taken);
	end->taken++;
	if (end->taken == end->expected)
		cm_loop_stop(loop);
}

static void on_emptied(void *data)
{
	struct end *end = data;

	assert_true(cm_outbox_is_empty(&end->box));
	end->n_emptied++;
}

static int set_up(void **state)
{
	struct pair *p = calloc(1, sizeof(*p));
	int fds[2];

	assert_non_null(p);
	p->open_before = count_fds();
	assert_int_equal(cm_loop_init(&p->loop, NULL), CM_OK);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	for (int i = 0; i < 2; i++) {
		struct end *end = &p->ends[i];

		cm_msg_init(&end->msg);
		assert_int_equal(cm_loop_add(&p->loop, fds[i], EPOLLIN, on_end, end, NULL), CM_OK);
		assert_int_equal(cm_outbox_init(&end->box, &p->loop, fds[i], NULL), CM_OK);
		end->box.emptied = on_emptied;
		end->box.data = end;
	}
	*state = p;
	return 0;
}

static int tear_down(void **state)
{
	struct pair *p = *state;

	for (int i = 0; i < 2; i++) {
		cm_outbox_clear(&p->ends[i].box);
		cm_msg_clear(&p->ends[i].msg);
		cm_fd_close(&p->ends[i].box.sock);
	}
	cm_loop_clear(&p->loop);
	assert_int_equal(count_fds(), p->open_before);
	free(p);
	return 0;
}

static void send_some(struct end *end, uint64_t first, uint64_t n, uint32_t len, const int *fds,
		      unsigned int n_fds)
{
	char *blob = calloc(1, (size_t)len + 1);

	assert_non_null(blob);
	for (uint64_t i = first; i < first + n; i++) {
		struct cm_rec rec = { .type = CM_REC_END, .id = i, .len = len };

		if (len > 0)
			blob[len - 1] = (char)i;
		assert_int_equal(cm_outbox_send(&end->box, &rec, blob, fds, n_fds), 0);
	}
	free(blob);
}

/* Each has more to tell than the socket holds, and nobody has read yet. */
static void test_both_at_once(void **state)
{
	struct pair *p = *state;

	send_some(&p->ends[0], 0, N_LARGE, LARGE, NULL, 0);
	send_some(&p->ends[1], 0, N_SMALL, 0, NULL, 0);
	assert_false(cm_outbox_is_empty(&p->ends[0].box));
	assert_false(cm_outbox_is_empty(&p->ends[1].box));
	assert_int_equal(p->ends[0].n_emptied, 0);
	p->ends[0].expected = N_SMALL;
	p->ends[1].expected = N_LARGE;
	while (p->ends[0].taken < N_SMALL || p->ends[1].taken < N_LARGE)
		assert_int_equal(cm_loop_run(&p->loop, NULL), CM_OK);
	assert_true(cm_outbox_is_empty(&p->ends[0].box));
	assert_true(cm_outbox_is_empty(&p->ends[1].box));
	/* whoever waits for room is told once */
	assert_int_equal(p->ends[0].n_emptied, 1);
	assert_int_equal(p->ends[1].n_emptied, 1);
}

/* What is sent while something is kept comes after it, whatever room there is. */
static void test_order(void **state)
{
	struct pair *p = *state;

	send_some(&p->ends[0], 0, 20, LARGE, NULL, 0);
	send_some(&p->ends[0], 20, 20, 0, NULL, 0);
	send_some(&p->ends[0], 40, 5, CM_PROTO_INLINE_MAX + 1, NULL, 0);
	p->ends[1].expected = 45;
	assert_int_equal(cm_loop_run(&p->loop, NULL), CM_OK);
	assert_int_equal(p->ends[1].taken, 45);
}

/* The caller's are its own: kept are copies, and nothing stays open. */
static void test_descriptors(void **state)
{
	struct pair *p = *state;
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	send_some(&p->ends[0], 0, 20, LARGE, fds, 2);
	cm_fd_close(&fds[0]);
	cm_fd_close(&fds[1]);
	p->ends[1].expected = 20;
	assert_int_equal(cm_loop_run(&p->loop, NULL), CM_OK);
	assert_int_equal(p->ends[1].msg.n_fds, 2);
	assert_int_equal(write(p->ends[1].msg.fds[1], "x", 1), 1);
}

static void test_forgotten(void **state)
{
	struct pair *p = *state;
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	send_some(&p->ends[0], 0, 20, LARGE, fds, 2);
	cm_fd_close(&fds[0]);
	cm_fd_close(&fds[1]);
	cm_outbox_clear(&p->ends[0].box);
	assert_true(cm_outbox_is_empty(&p->ends[0].box));
}

static void test_peer_is_gone(void **state)
{
	struct pair *p = *state;
	struct cm_rec rec = { .type = CM_REC_END };

	send_some(&p->ends[0], 0, 20, LARGE, NULL, 0);
	cm_loop_remove(&p->loop, p->ends[1].box.sock);
	cm_fd_close(&p->ends[1].box.sock);
	assert_int_equal(cm_loop_run(&p->loop, NULL), CM_OK);
	assert_true(p->ends[0].is_gone);
	assert_int_equal(cm_outbox_flush(&p->ends[0].box), -EPIPE);
	cm_outbox_clear(&p->ends[0].box);
	assert_int_equal(cm_outbox_send(&p->ends[0].box, &rec, NULL, NULL, 0), -EPIPE);
}

static void test_no_memory(void **state)
{
	struct pair *p = *state;
	struct cm_rec rec = { .type = CM_REC_END, .id = 20 };

	send_some(&p->ends[0], 0, 20, LARGE, NULL, 0);
	cm_alloc_fail_after(0);
	assert_int_equal(cm_outbox_send(&p->ends[0].box, &rec, NULL, NULL, 0), -ENOMEM);
	cm_alloc_fail_after(-1);
	/* what was kept before still comes */
	p->ends[1].expected = 20;
	assert_int_equal(cm_loop_run(&p->loop, NULL), CM_OK);
	assert_int_equal(p->ends[1].taken, 20);
}

/* The last words: a process that has nothing to read any more waits until it is heard. */
static void test_drain(void **state)
{
	struct pair *p = *state;
	struct end *sender = &p->ends[0];
	int status = 0;
	pid_t pid;

	cm_loop_remove(&p->loop, sender->box.sock);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		/* an event queue of its own: a forked one is shared */
		if (cm_loop_init(&p->loop, NULL) < 0 ||
		    cm_loop_add(&p->loop, sender->box.sock, EPOLLIN, on_end, sender, NULL) < 0)
			_exit(1);
		send_some(&p->ends[0], 0, 20, LARGE, NULL, 0);
		cm_outbox_drain(&p->ends[0].box);
		_exit(cm_outbox_is_empty(&p->ends[0].box) ? 0 : 1);
	}
	cm_fd_close(&sender->box.sock);
	p->ends[1].expected = 20;
	assert_int_equal(cm_loop_run(&p->loop, NULL), CM_OK);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_both_at_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_order, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_descriptors, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_forgotten, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_peer_is_gone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_memory, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_drain, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
