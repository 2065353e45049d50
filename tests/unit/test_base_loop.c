/* SPDX-License-Identifier: Apache-2.0 */
/* The event loop: order of timers, removal inside callbacks, descriptor numbers used again. */
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "runtime/base/clock.h"
#include "runtime/base/loop.h"
#include "tests/unit/test_base.h"

static struct cm_loop loop;

static int set_up(void **state)
{
	(void)state;
	assert_int_equal(cm_loop_init(&loop, NULL), CM_OK);
	assert_int_equal(fcntl(loop.epoll_fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	cm_loop_clear(&loop);
	assert_int_equal(loop.epoll_fd, -1);
	cm_loop_clear(&loop);
	return 0;
}

/* Readable at once. */
static int ready_fd(void)
{
	int fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);

	assert_true(fd >= 0);
	return fd;
}

struct log {
	char text[64];
	size_t n;
};

static struct log seen;

static void note(char c)
{
	if (seen.n + 1 < sizeof(seen.text))
		seen.text[seen.n++] = c;
	seen.text[seen.n] = '\0';
}

static void on_timer(struct cm_loop *l, int timer, void *data)
{
	(void)timer;
	assert_ptr_equal(l, &loop);
	note(*(const char *)data);
	if (*(const char *)data == '.')
		cm_loop_stop(l);
}

static void forget(void)
{
	seen = (struct log){ 0 };
}

static void add_timer(int64_t due_ms, const char *what)
{
	assert_true(cm_loop_timer_add(&loop, due_ms, on_timer, (void *)(uintptr_t)what) >= 0);
}

static void test_timers_in_order(void **state)
{
	int64_t now = cm_clock_mono_ms();

	(void)state;
	forget();
	add_timer(now + 30, ".");
	add_timer(now + 20, "c");
	add_timer(now + 10, "b");
	/* overdue, and times that are no times */
	add_timer(now - 1000, "a");
	add_timer(0, "1");
	add_timer(-5, "2");
	assert_int_equal(cm_loop_run(&loop, NULL), CM_OK);
	assert_string_equal(seen.text, "12abc.");
	assert_true(cm_clock_mono_ms() >= now + 30);
}

static void test_stop_before_run(void **state)
{
	(void)state;
	forget();
	add_timer(1, "x");
	cm_loop_stop(&loop);
	assert_int_equal(cm_loop_run(&loop, NULL), CM_OK);
	assert_string_equal(seen.text, "");
	/* that one was used up */
	add_timer(cm_clock_mono_ms() + 1, ".");
	assert_int_equal(cm_loop_run(&loop, NULL), CM_OK);
	assert_string_equal(seen.text, "x.");
}

static void test_cancel(void **state)
{
	int64_t now = cm_clock_mono_ms();
	int id;

	(void)state;
	forget();
	id = cm_loop_timer_add(&loop, now + 1, on_timer, (void *)(uintptr_t) "x");
	assert_true(id >= 0);
	cm_loop_timer_cancel(&loop, id);
	cm_loop_timer_cancel(&loop, id);
	cm_loop_timer_cancel(&loop, -1);
	cm_loop_timer_cancel(&loop, CM_E_LIMIT);
	cm_loop_timer_cancel(&loop, INT32_MAX);
	add_timer(now + 5, ".");
	/* the slot is used again, and the old id is not its */
	cm_loop_timer_cancel(&loop, id);
	assert_int_equal(cm_loop_run(&loop, NULL), CM_OK);
	assert_string_equal(seen.text, ".");
}

static void test_timer_ids_wrap(void **state)
{
	int first = cm_loop_timer_add(&loop, 1, on_timer, NULL);

	(void)state;
	cm_loop_timer_cancel(&loop, first);
	/* all generations but one: ids stay positive and do not meet again */
	for (uint32_t i = 0; i < (UINT32_MAX >> 7); i++) {
		int id = cm_loop_timer_add(&loop, 1, on_timer, NULL);

		if (id < 0 || id == first)
			fail_msg("id %d in round %u", id, i);
		cm_loop_timer_cancel(&loop, id);
	}
	assert_int_equal(loop.timers[0].due_ms, 0);
}

static void test_too_many_timers(void **state)
{
	int ids[CM_LOOP_MAX_TIMERS];

	(void)state;
	forget();
	for (size_t i = 0; i < CM_LOOP_MAX_TIMERS; i++) {
		ids[i] = cm_loop_timer_add(&loop, INT64_MAX, on_timer, NULL);
		assert_true(ids[i] >= 0);
	}
	assert_int_equal(cm_loop_timer_add(&loop, 1, on_timer, NULL), CM_E_LIMIT);
	cm_loop_timer_cancel(&loop, ids[7]);
	add_timer(1, ".");
	assert_int_equal(cm_loop_run(&loop, NULL), CM_OK);
	assert_string_equal(seen.text, ".");
}

struct rearm {
	int left;
	int fd_calls;
	int fd;
};

static void on_rearm(struct cm_loop *l, int timer, void *data)
{
	struct rearm *r = data;

	(void)timer;
	r->left--;
	/* due at once, for ever: must not keep descriptors from being served */
	assert_true(r->left > 0);
	assert_true(cm_loop_timer_add(l, 1, on_rearm, r) >= 0);
}

static void on_fd_stop(struct cm_loop *l, int fd, uint32_t events, void *data)
{
	struct rearm *r = data;

	assert_int_equal(fd, r->fd);
	assert_true(events & EPOLLIN);
	if (++r->fd_calls == 3)
		cm_loop_stop(l);
}

static void test_timers_do_not_starve(void **state)
{
	struct rearm r = { 100000, 0, ready_fd() };

	(void)state;
	assert_int_equal(cm_loop_add(&loop, r.fd, EPOLLIN, on_fd_stop, &r, NULL), CM_OK);
	assert_true(cm_loop_timer_add(&loop, 1, on_rearm, &r) >= 0);
	assert_int_equal(cm_loop_run(&loop, NULL), CM_OK);
	assert_int_equal(r.fd_calls, 3);
	assert_true(r.left < 100000);
	cm_loop_remove(&loop, r.fd);
	close(r.fd);
}

struct canceller {
	int other;
};

static void on_cancel_other(struct cm_loop *l, int timer, void *data)
{
	struct canceller *c = data;

	note('c');
	cm_loop_timer_cancel(l, c->other);
	/* its own, fired: a no-op, also when the slot is used again at once */
	add_timer(cm_clock_mono_ms() + 1, ".");
	cm_loop_timer_cancel(l, timer);
}

static void test_cancel_in_callback(void **state)
{
	struct canceller c;

	(void)state;
	forget();
	/* both are due, and the first takes the second away */
	assert_true(cm_loop_timer_add(&loop, 1, on_cancel_other, &c) >= 0);
	c.other = cm_loop_timer_add(&loop, 2, on_timer, (void *)(uintptr_t) "x");
	assert_int_equal(cm_loop_run(&loop, NULL), CM_OK);
	assert_string_equal(seen.text, "c.");
}

static void on_fd_note(struct cm_loop *l, int fd, uint32_t events, void *data)
{
	uint64_t v;

	(void)l;
	(void)events;
	note(*(const char *)data);
	(void)!read(fd, &v, sizeof(v));
	if (*(const char *)data == '.')
		cm_loop_stop(l);
}

static void on_bug(struct cm_loop *l, int fd, uint32_t events, void *data)
{
	(void)l;
	(void)events;
	(void)data;
	fail_msg("called for descriptor %d, which is not watched any more", fd);
}

static void test_add_refusals(void **state)
{
	CM_AUTO_FD int fd = ready_fd();
	CM_AUTO_FD int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	struct cm_error err = CM_ERROR_INIT;
	int closed = dup(fd);

	(void)state;
	close(closed);
	assert_int_equal(cm_loop_add(&loop, -1, EPOLLIN, on_bug, NULL, &err), CM_E_INVALID);
	assert_int_equal(cm_loop_add(&loop, closed, EPOLLIN, on_bug, NULL, &err), CM_E_SYS);
	assert_int_equal(err.sys_errno, EBADF);
	/* a regular file */
	assert_int_equal(cm_loop_add(&loop, file, EPOLLIN, on_bug, NULL, &err), CM_E_SYS);
	assert_int_equal(err.sys_errno, EPERM);
	assert_int_equal(cm_loop_add(&loop, fd, 0, on_bug, NULL, &err), CM_OK);
	assert_int_equal(cm_loop_add(&loop, fd, EPOLLIN, on_bug, NULL, &err), CM_E_EXISTS);
	assert_int_equal(cm_loop_modify(&loop, closed, EPOLLIN, &err), CM_E_NOT_FOUND);
	assert_int_equal(cm_loop_modify(&loop, -1, EPOLLIN, &err), CM_E_NOT_FOUND);
	cm_loop_remove(&loop, -1);
	errno = ERANGE;
	cm_loop_remove(&loop, closed);
	assert_int_equal(errno, ERANGE);
	cm_loop_remove(&loop, fd);
	cm_loop_remove(&loop, fd);
	assert_int_equal(errno, ERANGE);
}

static void test_too_many_sources(void **state)
{
	struct cm_error err = CM_ERROR_INIT;
	CM_AUTO_FD int fd = ready_fd();
	int fds[CM_LOOP_MAX_SOURCES];

	(void)state;
	for (size_t i = 0; i < CM_LOOP_MAX_SOURCES; i++) {
		fds[i] = dup(fd);
		assert_true(fds[i] >= 0);
		assert_int_equal(cm_loop_add(&loop, fds[i], 0, on_bug, NULL, &err), CM_OK);
	}
	assert_int_equal(cm_loop_add(&loop, fd, 0, on_bug, NULL, &err), CM_E_LIMIT);
	cm_loop_remove(&loop, fds[300]);
	forget();
	assert_int_equal(cm_loop_add(&loop, fd, EPOLLIN, on_fd_note, (void *)(uintptr_t) ".", &err),
			 CM_OK);
	assert_int_equal(cm_loop_run(&loop, NULL), CM_OK);
	for (size_t i = 0; i < CM_LOOP_MAX_SOURCES; i++) {
		cm_loop_remove(&loop, fds[i]);
		close(fds[i]);
	}
}

static void test_modify(void **state)
{
	CM_AUTO_FD int fd = ready_fd();

	(void)state;
	forget();
	assert_int_equal(cm_loop_add(&loop, fd, 0, on_fd_note, (void *)(uintptr_t) "x", NULL),
			 CM_OK);
	add_timer(cm_clock_mono_ms() + 20, ".");
	assert_int_equal(cm_loop_run(&loop, NULL), CM_OK);
	assert_string_equal(seen.text, ".");
	assert_int_equal(cm_loop_modify(&loop, fd, EPOLLIN, NULL), CM_OK);
	add_timer(cm_clock_mono_ms() + 20, ".");
	assert_int_equal(cm_loop_run(&loop, NULL), CM_OK);
	assert_string_equal(seen.text, ".x.");
	cm_loop_remove(&loop, fd);
}

/* A pair of descriptors, each ready; whichever is served first takes the other away. */
struct pair {
	int fds[2];
	int calls;
	/* put something else in place of the one that is removed */
	bool is_replaced;
	int replacement;
};

static void on_replacement(struct cm_loop *l, int fd, uint32_t events, void *data)
{
	struct pair *p = data;

	assert_int_equal(fd, p->replacement);
	/* this descriptor is not readable: the event that got here is the old one's */
	assert_true((events & EPOLLIN) == 0);
	cm_loop_stop(l);
	note('?');
}

static void on_pair(struct cm_loop *l, int fd, uint32_t events, void *data)
{
	struct pair *p = data;
	int other = p->fds[0] == fd ? p->fds[1] : p->fds[0];

	(void)events;
	p->calls++;
	/* itself too: a callback may remove any source, its own included */
	cm_loop_remove(l, fd);
	cm_loop_remove(l, other);
	close(other);
	if (p->is_replaced) {
		p->replacement = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		/* the kernel gives the lowest free number: the very same */
		assert_int_equal(p->replacement, other);
		assert_int_equal(cm_loop_add(l, p->replacement, EPOLLIN, on_replacement, p, NULL),
				 CM_OK);
	}
	add_timer(cm_clock_mono_ms() + 20, ".");
}

static void check_pair(bool is_replaced)
{
	struct pair p = { { ready_fd(), ready_fd() }, 0, is_replaced, -1 };
	int survivor;

	forget();
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(cm_loop_add(&loop, p.fds[i], EPOLLIN, on_pair, &p, NULL), CM_OK);
	assert_int_equal(cm_loop_run(&loop, NULL), CM_OK);
	assert_int_equal(p.calls, 1);
	assert_string_equal(seen.text, ".");
	if (is_replaced) {
		cm_loop_remove(&loop, p.replacement);
		survivor = p.replacement == p.fds[0] ? p.fds[1] : p.fds[0];
		close(p.replacement);
	} else {
		survivor = fcntl(p.fds[0], F_GETFD) >= 0 ? p.fds[0] : p.fds[1];
	}
	close(survivor);
}

static void test_remove_in_callback(void **state)
{
	(void)state;
	check_pair(false);
}

/* The event of the removed one is in the same batch and must not reach its number's successor. */
static void test_number_used_again(void **state)
{
	(void)state;
	check_pair(true);
}

static void on_stop_first(struct cm_loop *l, int fd, uint32_t events, void *data)
{
	int *calls = data;

	(void)fd;
	(void)events;
	(*calls)++;
	cm_loop_stop(l);
}

static void test_stop_in_batch(void **state)
{
	int fds[3] = { ready_fd(), ready_fd(), ready_fd() };
	int calls = 0;

	(void)state;
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(cm_loop_add(&loop, fds[i], EPOLLIN, on_stop_first, &calls, NULL),
				 CM_OK);
	/* due as well, and not run after the stop */
	assert_true(cm_loop_timer_add(&loop, 1, on_timer, (void *)(uintptr_t) "x") >= 0);
	forget();
	assert_int_equal(cm_loop_run(&loop, NULL), CM_OK);
	assert_int_equal(calls, 1);
	assert_string_equal(seen.text, "");
	for (size_t i = 0; i < 3; i++) {
		cm_loop_remove(&loop, fds[i]);
		close(fds[i]);
	}
}

static void test_hang_up(void **state)
{
	int fds[2];
	int calls = 0;

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	/* registered for nothing, and told of the end all the same */
	assert_int_equal(cm_loop_add(&loop, fds[0], 0, on_stop_first, &calls, NULL), CM_OK);
	close(fds[1]);
	assert_int_equal(cm_loop_run(&loop, NULL), CM_OK);
	assert_int_equal(calls, 1);
	/* removed after it was closed, against the contract: harmless */
	close(fds[0]);
	cm_loop_remove(&loop, fds[0]);
}

static void test_broken_queue(void **state)
{
	struct cm_error err = CM_ERROR_INIT;

	(void)state;
	cm_loop_clear(&loop);
	assert_int_equal(cm_loop_run(&loop, &err), CM_E_SYS);
	assert_int_equal(err.sys_errno, EBADF);
}

int main(void)
{
#define WITH_LOOP(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		WITH_LOOP(test_timers_in_order),
		WITH_LOOP(test_stop_before_run),
		WITH_LOOP(test_cancel),
		WITH_LOOP(test_timer_ids_wrap),
		WITH_LOOP(test_too_many_timers),
		WITH_LOOP(test_timers_do_not_starve),
		WITH_LOOP(test_cancel_in_callback),
		WITH_LOOP(test_add_refusals),
		WITH_LOOP(test_too_many_sources),
		WITH_LOOP(test_modify),
		WITH_LOOP(test_remove_in_callback),
		WITH_LOOP(test_number_used_again),
		WITH_LOOP(test_stop_in_batch),
		WITH_LOOP(test_hang_up),
		WITH_LOOP(test_broken_queue),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
