/* SPDX-License-Identifier: Apache-2.0 */
/* Every socket family, and every netlink protocol but the routing one. */
#include <errno.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/escape/probe.h"

#define AF_VSOCK_ 40

static long try(int family, int type, int protocol)
{
	int fd = socket(family, type | SOCK_CLOEXEC, protocol);

	if (fd < 0)
		return -1;
	(void)close(fd);
	return 0;
}

static void others(void)
{
	static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET };
	char name[32];

	for (int family = 0; family < 64; family++) {
		if (family == AF_UNIX || family == AF_INET || family == AF_INET6 ||
		    family == AF_NETLINK)
			continue;
		for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
			if (try(family, types[i], 0) < 0 && errno == EAFNOSUPPORT)
				continue;
			(void)snprintf(name, sizeof(name), "family %d", family);
			probe_result(name, 0);
			break;
		}
	}
}

int main(void)
{
	char name[32];

	probe_result("vsock", try(AF_VSOCK_, SOCK_STREAM, 0));
	probe_result("alg", try(AF_ALG, SOCK_SEQPACKET, 0));
	probe_result("packet", try(AF_PACKET, SOCK_RAW, 0));
	probe_result("raw", try(AF_INET, SOCK_RAW, 1));
	for (int protocol = 1; protocol < 23; protocol++) {
		if (try(AF_NETLINK, SOCK_RAW, protocol) < 0 && errno == EPROTONOSUPPORT)
			continue;
		(void)snprintf(name, sizeof(name), "netlink %d", protocol);
		probe_result(name, 0);
	}
	others();
	return 0;
}
