/* SPDX-License-Identifier: Apache-2.0 */
/* Started from a file that is set-user-id root, or has file capabilities: did that give power? */
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/escape/probe.h"

int main(void)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2] = { { 0 } };

	(void)syscall(SYS_capget, &header, data);
	probe_bool("euid", geteuid() != getuid());
	probe_bool("capability", data[0].effective != 0);
	return 0;
}
