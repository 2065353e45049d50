/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/checkout/peers.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>

/* Far above what a fetch has open; descriptors are given from the lowest on. */
#define FDS_MAX 1024

typedef bool peer_fn(const struct sockaddr_storage *peer, unsigned int port);

static bool is_connection(int fd, struct sockaddr_storage *peer)
{
	socklen_t len = sizeof(*peer);
	socklen_t type_len = sizeof(int);
	int type;

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_len) == 0 && type == SOCK_STREAM &&
	       getpeername(fd, (struct sockaddr *)peer, &len) == 0 &&
	       (peer->ss_family == AF_INET || peer->ss_family == AF_INET6);
}

static bool all_peers(peer_fn *is_good, unsigned int port)
{
	struct sockaddr_storage peer = { 0 };
	bool is_there = false;

	for (int fd = 0; fd < FDS_MAX; fd++) {
		if (!is_connection(fd, &peer))
			continue;
		if (!is_good(&peer, port))
			return false;
		is_there = true;
	}
	return is_there;
}

static bool has_port(const struct sockaddr_storage *peer, unsigned int port)
{
	in_port_t has = peer->ss_family == AF_INET ? ((const struct sockaddr_in *)peer)->sin_port
						   : ((const struct sockaddr_in6 *)peer)->sin6_port;

	return ntohs(has) == port;
}

static bool is_here(const struct sockaddr_storage *peer, unsigned int port)
{
	const struct in6_addr *address = &((const struct sockaddr_in6 *)peer)->sin6_addr;

	(void)port;
	if (peer->ss_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)peer)->sin_addr.s_addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(address) ||
	       (IN6_IS_ADDR_V4MAPPED(address) && address->s6_addr[12] == 127);
}

bool cm_peers_have_port(unsigned int port)
{
	return all_peers(has_port, port);
}

bool cm_peers_are_here(void)
{
	return all_peers(is_here, 0);
}
