/* SPDX-License-Identifier: Apache-2.0 */
/* Power that a process has without asking: capabilities, new privileges, groups. */
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/escape/probe.h"

/* A set of /proc/self/status is reached when anything is in it. */
static void sets(void)
{
	FILE *file = fopen("/proc/self/status", "re");
	char line[256];
	char *value;

	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, "Cap", 3) != 0)
			continue;
		value = strchr(line, ':');
		*value++ = '\0';
		probe_bool(line, strspn(value, "\t0\n") != strlen(value));
	}
	if (file)
		(void)fclose(file);
}

int main(void)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2] = { { 0 } };
	struct rlimit core;
	gid_t group = 0;

	sets();
	probe_bool("new privileges", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0);
	probe_bool("no filter", prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 2);
	probe_result("PR_SET_SECUREBITS", prctl(PR_SET_SECUREBITS, 0, 0, 0, 0));
	probe_result("setgroups", setgroups(1, &group));
	probe_result("setuid 0", setresuid(0, 0, 0));
	probe_bool("core file", getrlimit(RLIMIT_CORE, &core) != 0 || core.rlim_max != 0);
	/* last: a success takes the others away */
	data[0].permitted = data[0].effective = 1U << CAP_CHOWN;
	probe_result("capset", syscall(SYS_capset, &header, data));
	return 0;
}
