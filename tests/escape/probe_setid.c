/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every way to leave a set-id program behind in the current directory. What the filter lets
 * through is left there, for the test to find.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/escape/probe.h"

#ifndef O_TMPFILE
#define O_TMPFILE (020000000 | O_DIRECTORY)
#endif
#define SYS_FCHMODAT2 452

static void by_change(void)
{
	int fd = open("setid", O_CREAT | O_RDWR | O_CLOEXEC, 0755);
	int dir = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

#ifdef SYS_chmod
	probe_result("chmod 4755", syscall(SYS_chmod, "setid", 04755));
	probe_result("chmod 2755", syscall(SYS_chmod, "setid", 02755));
#endif
	probe_result("fchmod 6755", syscall(SYS_fchmod, fd, 06755));
	probe_result("fchmodat 4755", syscall(SYS_fchmodat, AT_FDCWD, "setid", 04755));
	probe_result("fchmodat2 4755", syscall(SYS_FCHMODAT2, dir, "setid", 04755, 0));
	(void)close(dir);
	(void)close(fd);
}

static void by_creation(void)
{
	(void)umask(0);
#ifdef SYS_open
	probe_result("open 4755", syscall(SYS_open, "setid1", O_CREAT | O_RDWR, 04755));
	probe_result("creat 4755", syscall(SYS_creat, "setid2", 04755));
	probe_result("mknod 4755", syscall(SYS_mknod, "setid3", S_IFREG | 04755, 0));
	probe_result("mkdir 2755", syscall(SYS_mkdir, "setid4", 02755));
#endif
	probe_result("openat 2755",
		     syscall(SYS_openat, AT_FDCWD, "setid5", O_CREAT | O_RDWR, 02755));
	probe_result("O_TMPFILE 4755",
		     syscall(SYS_openat, AT_FDCWD, ".", O_TMPFILE | O_RDWR, 04755));
	probe_result("mknodat 6755", syscall(SYS_mknodat, AT_FDCWD, "setid6", S_IFREG | 06755, 0));
	probe_result("mkdirat 2755", syscall(SYS_mkdirat, AT_FDCWD, "setid7", 02755));
}

/* A device node would be the same gift in another shape. */
static void devices(void)
{
	/* memory, which is not opened here */
	probe_result("mknod memory", mknod("setid8", S_IFCHR | 0666, 0x101));
	(void)unlink("setid8");
}

static void openat2_mode(void)
{
	unsigned long long how[3] = { O_CREAT | O_RDWR, 04755, 0 };

	probe_result("openat2 4755", syscall(SYS_openat2, AT_FDCWD, "setid9", how, sizeof(how)));
}

int main(void)
{
	by_change();
	by_creation();
	openat2_mode();
	devices();
	return 0;
}
