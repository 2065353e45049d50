/* SPDX-License-Identifier: Apache-2.0 */
/* What a process was left with: descriptors, working directory, and standard streams of the host. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/escape/probe.h"

#define MAX_FD 4096

int main(void)
{
	char cwd[4096] = "";
	struct stat st;
	bool has_more = false;
	bool has_directory = false;

	for (int fd = 0; fd < MAX_FD; fd++) {
		if (fcntl(fd, F_GETFD) < 0)
			continue;
		has_more = has_more || fd > 2;
		has_directory = has_directory || (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode));
	}
	probe_bool("descriptor above 2", has_more);
	probe_bool("descriptor of a directory", has_directory);
	/* "(unreachable)/..." is what the kernel says of a directory outside the root */
	probe_bool("directory outside the root", !getcwd(cwd, sizeof(cwd)) || cwd[0] != '/');
	return 0;
}
