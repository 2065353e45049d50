/* SPDX-License-Identifier: Apache-2.0 */
/* Who has a session's lock, as far as the kernel tells. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "runtime/store/store_internal.h"

/* "1: FLOCK ADVISORY WRITE 123 fe:00:456 0 EOF"; who waits for it has an arrow there. */
static pid_t holder_in(const char *line, const char *file)
{
	const char *at = strstr(line, file);

	if (!at || !strstr(line, " FLOCK ") || strstr(line, "->"))
		return 0;
	/* back over the process */
	while (at > line && at[-1] >= '0' && at[-1] <= '9')
		at--;
	return (pid_t)strtol(at, NULL, 10);
}

pid_t cm_store_lock_holder(int fd)
{
	FILE *locks;
	struct stat st;
	char file[64];
	char line[256];
	pid_t pid = 0;

	if (fstat(fd, &st) < 0)
		return 0;
	(void)snprintf(file, sizeof(file), " %02x:%02x:%lu ", major(st.st_dev), minor(st.st_dev),
		       (unsigned long)st.st_ino);
	locks = fopen("/proc/locks", "re");
	while (locks && pid == 0 && fgets(line, sizeof(line), locks))
		pid = holder_in(line, file);
	if (locks)
		(void)fclose(locks);
	return pid > 0 ? pid : 0;
}
