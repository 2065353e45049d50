/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libgit2 tells nothing before the first object of a pack is complete, and nothing while it waits.
 * The kernel counts what every connection received, so it is asked, for each descriptor that may be
 * one.
 */
#include "isolation/checkout/traffic.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static bool get_info(int fd, struct tcp_info *info)
{
	socklen_t len = sizeof(*info);

	memset(info, 0, sizeof(*info));
	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &len) == 0;
}

void cm_traffic_look(struct cm_traffic *traffic)
{
	traffic->has_unread = traffic->has_connection = false;
	for (int fd = STDERR_FILENO + 1; fd < CM_TRAFFIC_FDS; fd++) {
		struct tcp_info info;
		int unread = 0;

		if (!get_info(fd, &info)) {
			traffic->seen[fd] = 0;
			continue;
		}
		traffic->has_connection = true;
		/* less than before: another connection by the same number */
		if (info.tcpi_bytes_received < traffic->seen[fd])
			traffic->seen[fd] = 0;
		traffic->total += info.tcpi_bytes_received - traffic->seen[fd];
		traffic->seen[fd] = info.tcpi_bytes_received;
		if (ioctl(fd, FIONREAD, &unread) == 0 && unread > 0)
			traffic->has_unread = true;
	}
}

void cm_traffic_end(void)
{
	for (int fd = STDERR_FILENO + 1; fd < CM_TRAFFIC_FDS; fd++) {
		struct tcp_info info;

		if (get_info(fd, &info))
			(void)shutdown(fd, SHUT_RDWR);
	}
}
