/* SPDX-License-Identifier: Apache-2.0 */
/* Whom a process is connected to. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "isolation/checkout/peers.h"
#include "tests/unit/test_base.h"

/* Listens until its socket is closed; the port. */
static unsigned int listen_at(const char *address, int *ret_fd)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	socklen_t len = sizeof(in);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(inet_pton(AF_INET, address, &in.sin_addr), 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(listen(fd, 4), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &len), 0);
	*ret_fd = fd;
	return ntohs(in.sin_port);
}

static int connect_to(unsigned int port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	return fd;
}

static void test_ports(void **state)
{
	int listener_fd;
	int other_fd;
	unsigned int port = listen_at("127.0.0.1", &listener_fd);
	unsigned int other = listen_at("127.0.0.1", &other_fd);
	int fd;
	int second_fd;

	(void)state;
	/* a listener is no connection */
	assert_false(cm_peers_have_port(port));
	assert_false(cm_peers_are_here());
	fd = connect_to(port);
	assert_true(cm_peers_have_port(port));
	assert_false(cm_peers_have_port(other));
	assert_true(cm_peers_are_here());
	second_fd = connect_to(other);
	assert_false(cm_peers_have_port(port));
	assert_false(cm_peers_have_port(other));
	assert_true(cm_peers_are_here());
	(void)close(fd);
	assert_true(cm_peers_have_port(other));
	(void)close(second_fd);
	(void)close(listener_fd);
	(void)close(other_fd);
}

/* What is connected and no TCP. */
static void test_others(void **state)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(9) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int pair[2];

	(void)state;
	assert_true(fd >= 0);
	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	/* neither datagrams nor what has no address counts */
	assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_false(cm_peers_have_port(9));
	assert_false(cm_peers_are_here());
	(void)close(fd);
	(void)close(pair[0]);
	(void)close(pair[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ports),
		cmocka_unit_test(test_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
