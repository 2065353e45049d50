/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arguments that the kernel reads as 32 bits, with a bit set above them: a filter that compares 64
 * lets them through. Also the other system-call tables of the machine.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/escape/probe.h"

#define HIGH (1UL << 32)
#define X32_BIT 0x40000000L

static void sockets(void)
{
	probe_result("vsock", syscall(SYS_socket, HIGH | 40, SOCK_STREAM, 0));
	probe_result("alg", syscall(SYS_socket, HIGH | AF_ALG, SOCK_SEQPACKET, 0));
	probe_result("netfilter", syscall(SYS_socket, HIGH | AF_NETLINK, HIGH | SOCK_RAW,
					  HIGH | NETLINK_NETFILTER));
}

/* On a descriptor that is no terminal: past the filter the kernel says so. */
static void terminal(void)
{
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	probe_result_or("TIOCSTI", syscall(SYS_ioctl, null_fd, HIGH | TIOCSTI, ""), ENOTTY, ENOTTY);
	probe_result_or("TIOCLINUX", syscall(SYS_ioctl, null_fd, HIGH | TIOCLINUX, ""), ENOTTY,
			ENOTTY);
	(void)close(null_fd);
}

static void modes(void)
{
	static const char name[] = "high";
	int fd = open(name, O_CREAT | O_RDWR | O_CLOEXEC, 0600);

	probe_result("fchmod", syscall(SYS_fchmod, fd, HIGH | 04755));
	probe_result("fchmodat", syscall(SYS_fchmodat, AT_FDCWD, name, HIGH | 04755));
	(void)unlink(name);
	probe_result("openat",
		     syscall(SYS_openat, AT_FDCWD, name, HIGH | O_CREAT | O_RDWR, HIGH | 04755));
	(void)unlink(name);
	probe_result("mknodat", syscall(SYS_mknodat, AT_FDCWD, name, HIGH | S_IFREG | 06755, 0));
	(void)unlink(name);
	(void)close(fd);
}

static void leases(void)
{
	static const char name[] = "leased";
	int fd = open(name, O_CREAT | O_RDONLY | O_CLOEXEC, 0600);

	probe_result("lease", syscall(SYS_fcntl, fd, F_SETLEASE, F_RDLCK));
	probe_result("lease high", syscall(SYS_fcntl, fd, HIGH | F_SETLEASE, F_RDLCK));
	(void)unlink(name);
	(void)close(fd);
}

static void processes(void)
{
	unsigned long long limit[2] = { 1 << 20, 1 << 20 };
	unsigned long long old[2];
	long pid;

	/* RLIMIT_CORE of the parent, set to what it is */
	pid = getppid() > 0 ? getppid() : 1;
	if (syscall(SYS_prlimit64, pid, 4, NULL, old) == 0) {
		limit[0] = old[0];
		limit[1] = old[1];
	}
	probe_result("prlimit64",
		     syscall(SYS_prlimit64, HIGH | (unsigned long)pid, 4, limit, NULL));
	probe_result("personality", syscall(SYS_personality, HIGH | READ_IMPLIES_EXEC));
	pid = syscall(SYS_clone, HIGH | CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);
	if (pid == 0)
		_exit(0);
	probe_result("clone user", pid);
	if (pid > 0)
		(void)waitpid((pid_t)pid, NULL, 0);
}

#if defined(__x86_64__)
static int i386_getpid(void)
{
	long result = 20;

	__asm__ volatile("int $0x80" : "+a"(result) : : "r8", "r9", "r10", "r11", "memory");
	return result > 0 ? 0 : (int)-result;
}

static int x32_getpid(void)
{
	return syscall(X32_BIT | SYS_getpid) > 0 ? 0 : errno;
}
#endif

int main(void)
{
	sockets();
	terminal();
	modes();
	leases();
	processes();
#if defined(__x86_64__)
	probe_child("i386", i386_getpid);
	probe_child("x32", x32_getpid);
#endif
	return 0;
}
