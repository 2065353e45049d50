/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets whose name is no file's are in reach wherever the host's network is: what gets to one
 * without a filter and under `default`, and that nothing does under `no-unix`.
 *
 * Ends of a pair count as much as sockets: a datagram's goes to any name that it is given.  Of the
 * other types the kernel keeps an end to its peer, which is what the profile relies on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include <cmocka.h>

#include "tests/unit/seccomp_child.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define HIGH (1L << 32)

static int host_sock = -1;
static struct sockaddr_un host_name = { .sun_family = AF_UNIX };
static socklen_t host_name_len;

static void open_host_sock(int type)
{
	int n = snprintf(host_name.sun_path + 1, sizeof(host_name.sun_path) - 1,
			 "casemate-test-%d-%d", getpid(), type);

	host_name_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (unsigned int)n);
	host_sock = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_true(host_sock >= 0);
	assert_int_equal(bind(host_sock, (struct sockaddr *)&host_name, host_name_len), 0);
	if (type != SOCK_DGRAM)
		assert_int_equal(listen(host_sock, 8), 0);
}

/* How often it was reached since this was last asked. */
static size_t visits(int type)
{
	size_t n = 0;
	char byte;
	int fd;

	while (type == SOCK_DGRAM && recv(host_sock, &byte, 1, 0) >= 0)
		n++;
	while (type != SOCK_DGRAM && (fd = accept4(host_sock, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		close(fd);
		n++;
	}
	return n;
}

static int connect_to_host(int fd)
{
	if (connect(fd, (struct sockaddr *)&host_name, host_name_len) < 0)
		return errno;
	return outcome(send(fd, "x", 1, MSG_NOSIGNAL));
}

static int send_to_host(int fd)
{
	return outcome(
		sendto(fd, "x", 1, MSG_NOSIGNAL, (struct sockaddr *)&host_name, host_name_len));
}

static int new_socket(long type)
{
	return (int)syscall(SYS_socket, AF_UNIX, type, 0);
}

static int new_end(long type)
{
	int fds[2] = { -1, -1 };

	return syscall(SYS_socketpair, AF_UNIX, type, 0, fds) < 0 ? -1 : fds[0];
}

static int try_connect(long type)
{
	int fd = new_socket(type);

	return fd < 0 ? errno : connect_to_host(fd);
}

static int try_send(long type)
{
	int fd = new_socket(type);

	return fd < 0 ? errno : send_to_host(fd);
}

static int try_connect_end(long type)
{
	int fd = new_end(type);

	return fd < 0 ? errno : connect_to_host(fd);
}

static int try_send_end(long type)
{
	int fd = new_end(type);

	return fd < 0 ? errno : send_to_host(fd);
}

struct attempt {
	const char *name;
	int host_type;
	int (*try)(long type);
	long type;
	/* without a filter and under `default` */
	int control;
	size_t visits;
	/* where nothing gets there */
	int by_no_unix;
};

static const struct attempt attempts[] = {
	{ "stream", SOCK_STREAM, try_connect, SOCK_STREAM, 0, 1, EAFNOSUPPORT },
	{ "stream, high bit", SOCK_STREAM, try_connect, HIGH | SOCK_STREAM, 0, 1, EAFNOSUPPORT },
	{ "seqpacket", SOCK_SEQPACKET, try_connect, SOCK_SEQPACKET, 0, 1, EAFNOSUPPORT },
	{ "datagram", SOCK_DGRAM, try_connect, SOCK_DGRAM, 0, 1, EAFNOSUPPORT },
	{ "datagram, sent", SOCK_DGRAM, try_send, SOCK_DGRAM, 0, 1, EAFNOSUPPORT },
	/* the kernel makes a datagram socket of it */
	{ "raw", SOCK_DGRAM, try_send, SOCK_RAW, 0, 1, EAFNOSUPPORT },
	{ "end, datagram", SOCK_DGRAM, try_connect_end, SOCK_DGRAM, 0, 1, ESOCKTNOSUPPORT },
	{ "end, datagram, sent", SOCK_DGRAM, try_send_end, SOCK_DGRAM, 0, 1, ESOCKTNOSUPPORT },
	{ "end, datagram, flags", SOCK_DGRAM, try_send_end,
	  SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, 1, ESOCKTNOSUPPORT },
	{ "end, datagram, high bit", SOCK_DGRAM, try_send_end, HIGH | SOCK_DGRAM, 0, 1,
	  ESOCKTNOSUPPORT },
	{ "end, raw", SOCK_DGRAM, try_connect_end, SOCK_RAW, 0, 1, ESOCKTNOSUPPORT },
	{ "end, raw, sent", SOCK_DGRAM, try_send_end, SOCK_RAW, 0, 1, ESOCKTNOSUPPORT },
	/* kept to their peer by the kernel, for lack of another place: sent, but not there */
	{ "end, stream", SOCK_STREAM, try_connect_end, SOCK_STREAM, EISCONN, 0, EISCONN },
	{ "end, stream, sent", SOCK_STREAM, try_send_end, SOCK_STREAM, EISCONN, 0, EISCONN },
	{ "end, stream to datagram", SOCK_DGRAM, try_send_end, SOCK_STREAM, EISCONN, 0, EISCONN },
	{ "end, seqpacket", SOCK_SEQPACKET, try_connect_end, SOCK_SEQPACKET, EISCONN, 0, EISCONN },
	{ "end, seqpacket, sent", SOCK_SEQPACKET, try_send_end, SOCK_SEQPACKET, 0, 0, 0 },
	{ "end, seqpacket to datagram", SOCK_DGRAM, try_send_end, SOCK_SEQPACKET, 0, 0, 0 },
};

static bool is_as_expected(const struct attempt *a, const char *under,
			   const struct cm_seccomp_profile *profile, int want, size_t want_visits)
{
	int got = in_child(profile, a->try, a->type);
	size_t got_visits = visits(a->host_type);

	if (got == want && got_visits == want_visits)
		return true;
	print_error("%s, %s: %d with %zu visits\n", a->name, under, got, got_visits);
	return false;
}

static void test_abstract_names(void **state)
{
	size_t wrong = 0;

	(void)state;
	skip_below_a_filter();
	for (size_t i = 0; i < COUNT(attempts); i++) {
		const struct attempt *a = &attempts[i];

		open_host_sock(a->host_type);
		wrong += !is_as_expected(a, "control", NULL, a->control, a->visits);
		wrong += !is_as_expected(a, "default", profile_of(CM_SECCOMP_DEFAULT), a->control,
					 a->visits);
		wrong += !is_as_expected(a, "no-unix", profile_of(CM_SECCOMP_NO_UNIX),
					 a->by_no_unix, 0);
		close(host_sock);
	}
	assert_int_equal(wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_abstract_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
