/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The filters loaded for real: each attempt is made in a process of its own without a filter
 * (the control), under `default`, under `no-unix`, and under `strict`.
 *
 * A refusal proves something only if the control got further, so a control that ends with the
 * refusal's own errno is said, and counted.
 */
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/netlink.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/seccomp_child.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define HIGH (1L << 32)
/* any result but the refusals' */
#define OTHER (-2)

static char dir[] = "/tmp/cm-test-seccomp-XXXXXX";
static char file[sizeof(dir) + 8];
static char fresh[sizeof(dir) + 8];

static int try_socket(long family)
{
	return outcome(syscall(SYS_socket, family, SOCK_DGRAM, 0));
}

static int try_netlink(long protocol)
{
	return outcome(syscall(SYS_socket, AF_NETLINK, SOCK_RAW, protocol));
}

static int try_socketpair(long family)
{
	int fds[2];

	return outcome(syscall(SYS_socketpair, family, SOCK_STREAM, 0, fds));
}

/* what getaddrinfo asks, too: which addresses there are */
static int try_addresses(long unused)
{
	struct ifaddrs *all = NULL;
	int r = outcome(getifaddrs(&all));

	(void)unused;
	freeifaddrs(all);
	return r;
}

/* The slave of a terminal of its own, as the controlling terminal, so that TIOCSTI is at home. */
static int own_terminal(void)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	const char *name;
	int slave;

	if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0 || setsid() < 0)
		return -1;
	name = ptsname(master);
	slave = name ? open(name, O_RDWR | O_CLOEXEC) : -1;
	/* the master stays open until the process ends: else the slave is hung up */
	return slave;
}

static int try_ioctl(long cmd)
{
	char byte = 'x';
	int zero = 0;
	int tty = own_terminal();

	if (tty < 0)
		return DIED;
	/* TIOCSTI reads a byte, TIOCSETD an int */
	return outcome(syscall(SYS_ioctl, tty, cmd,
			       (cmd & 0xffffffff) == TIOCSTI ? (void *)&byte : (void *)&zero));
}

static int try_chmod(long mode)
{
	return outcome(syscall(SYS_fchmodat, AT_FDCWD, file, mode));
}

static int try_fchmod(long mode)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC);

	return outcome(syscall(SYS_fchmod, fd, mode));
}

static int try_fchmodat2(long mode)
{
	return outcome(syscall(452, AT_FDCWD, file, mode, 0));
}

static int try_create(long mode)
{
	int r = outcome(syscall(SYS_openat, AT_FDCWD, fresh, O_CREAT | O_WRONLY | O_CLOEXEC, mode));

	unlink(fresh);
	return r;
}

static int try_create_high_flag(long mode)
{
	int r = outcome(syscall(SYS_openat, AT_FDCWD, fresh, HIGH | O_CREAT | O_WRONLY, mode));

	unlink(fresh);
	return r;
}

static int try_tmpfile(long mode)
{
	return outcome(syscall(SYS_openat, AT_FDCWD, dir, O_TMPFILE | O_WRONLY, mode));
}

/* a mode beside no O_CREAT is only what the register happened to hold */
static int try_open_existing(long mode)
{
	return outcome(syscall(SYS_openat, AT_FDCWD, file, O_RDONLY, mode));
}

static int try_mkdir(long mode)
{
	int r = outcome(syscall(SYS_mkdirat, AT_FDCWD, fresh, mode));

	rmdir(fresh);
	return r;
}

static int try_mknod(long mode)
{
	int r = outcome(syscall(SYS_mknodat, AT_FDCWD, fresh, S_IFREG | mode, 0));

	unlink(fresh);
	return r;
}

static int try_unshare(long flags)
{
	return outcome(syscall(SYS_unshare, flags));
}

static int try_clone(long flags)
{
	long pid = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
	int e = outcome(pid);

	if (pid == 0)
		_exit(0);
	if (pid > 0)
		(void)waitpid((pid_t)pid, NULL, 0);
	return e;
}

/* five zeroes: what fails in the kernel for want of arguments has got there */
static int try_number(long nr)
{
	return outcome(syscall(nr, 0, 0, 0, 0, 0));
}

static int try_setns(long fd)
{
	return outcome(syscall(SYS_setns, fd, 0));
}

static int set_limit_of(long pid)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return DIED;
	return outcome(syscall(SYS_prlimit64, pid, RLIMIT_NOFILE, &limit, NULL));
}

static int try_limit_parent(long high)
{
	return set_limit_of(high | getppid());
}

static int try_limit_self(long pid)
{
	return set_limit_of(pid);
}

static int try_read_limit(long unused)
{
	struct rlimit limit;

	(void)unused;
	return outcome(syscall(SYS_prlimit64, getppid(), RLIMIT_NOFILE, NULL, &limit));
}

static int try_personality(long persona)
{
	return outcome(syscall(SYS_personality, persona));
}

static int try_ptrace(long request)
{
	return outcome(ptrace((int)request, 0, NULL, NULL));
}

static void *thread(void *arg)
{
	return arg;
}

static int try_thread(long unused)
{
	pthread_t t;
	int r = pthread_create(&t, NULL, thread, NULL);

	(void)unused;
	return r != 0 ? r : pthread_join(t, NULL);
}

static int try_exec(long unused)
{
	pid_t pid = fork();
	int status = 0;

	(void)unused;
	if (pid == 0) {
		execl("/bin/sh", "sh", "-c", "exit 7", (char *)NULL);
		_exit(1);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return errno;
	return WIFEXITED(status) && WEXITSTATUS(status) == 7 ? 0 : ECHILD;
}

#ifdef __x86_64__
/* getpid by i386's way in; 64-bit code can take it, so no 32-bit program is needed */
static int try_int80(long nr)
{
	long r;

	__asm__ volatile("int $0x80" : "=a"(r) : "0"(nr) : "memory");
	return r < 0 ? (int)-r : 0;
}
#endif

struct attempt {
	const char *name;
	int (*try)(long arg);
	long arg;
	/* without a filter, under `default` and `no-unix`, under `strict` */
	int control;
	int by_default;
	int by_strict;
};

static const struct attempt attempts[] = {
	/* what must go on working */
	{ "thread", try_thread, 0, 0, 0, 0 },
	{ "exec", try_exec, 0, 0, 0, 0 },
	{ "open, stray mode", try_open_existing, 06755, 0, 0, 0 },
	{ "create 0755", try_create, 0755, 0, 0, 0 },
	{ "mkdir 01777", try_mkdir, 01777, 0, 0, 0 },
	{ "chmod 0644", try_chmod, 0644, 0, 0, 0 },
	{ "own limits", try_limit_self, 0, 0, 0, 0 },
	{ "another's limits, read", try_read_limit, 0, 0, 0, 0 },
	{ "netlink routes", try_netlink, NETLINK_ROUTE, 0, 0, 0 },
	{ "addresses", try_addresses, 0, 0, 0, 0 },
	{ "clone", try_clone, 0, 0, 0, 0 },
	{ "socketpair", try_socketpair, AF_UNIX, 0, 0, 0 },
	{ "personality query", try_personality, 0xffffffff, 0, 0, 0 },
	/* terminals */
	{ "TIOCSTI", try_ioctl, TIOCSTI, OTHER, EPERM, EPERM },
	{ "TIOCSTI, high bit", try_ioctl, HIGH | TIOCSTI, OTHER, EPERM, EPERM },
	{ "TIOCSETD", try_ioctl, TIOCSETD, 0, EPERM, EPERM },
	{ "TIOCSETD, high bit", try_ioctl, HIGH | TIOCSETD, 0, EPERM, EPERM },
	{ "KDGKBTYPE", try_ioctl, 0x4b33, ENOTTY, EPERM, EPERM },
	{ "VT_GETSTATE", try_ioctl, 0x5603, ENOTTY, EPERM, EPERM },
	/* set-id bits */
	{ "chmod 04755", try_chmod, 04755, 0, EPERM, EPERM },
	{ "chmod 02755, high bit", try_chmod, HIGH | 02755, 0, EPERM, EPERM },
	{ "fchmod 06755", try_fchmod, 06755, 0, EPERM, EPERM },
	{ "fchmodat2 04755", try_fchmodat2, 04755, OTHER, EPERM, EPERM },
	{ "create 02755", try_create, 02755, 0, EPERM, EPERM },
	{ "create 04755, high bit", try_create, HIGH | 04755, 0, EPERM, EPERM },
	{ "create 04755, high flag", try_create_high_flag, 04755, 0, EPERM, EPERM },
	{ "O_TMPFILE 04755", try_tmpfile, 04755, 0, EPERM, EPERM },
	{ "mkdir 02755", try_mkdir, 02755, 0, EPERM, EPERM },
	{ "mknod 04755", try_mknod, 04755, 0, EPERM, EPERM },
	/* sockets */
	{ "netlink uevents", try_netlink, NETLINK_KOBJECT_UEVENT, 0, EPROTONOSUPPORT,
	  EPROTONOSUPPORT },
	{ "netlink uevents, high bit", try_netlink, HIGH | NETLINK_KOBJECT_UEVENT, 0,
	  EPROTONOSUPPORT, EPROTONOSUPPORT },
	{ "socketpair of inet", try_socketpair, AF_INET, EOPNOTSUPP, EAFNOSUPPORT, EAFNOSUPPORT },
	/* namespaces */
	{ "unshare(NEWUSER)", try_unshare, CLONE_NEWUSER, OTHER, EPERM, EPERM },
	{ "unshare(NEWUSER), high bit", try_unshare, HIGH | CLONE_NEWUSER, OTHER, EPERM, EPERM },
	{ "clone(NEWUSER)", try_clone, CLONE_NEWUSER, OTHER, EPERM, EPERM },
	{ "clone(NEWUSER), high bit", try_clone, HIGH | CLONE_NEWUSER, OTHER, EPERM, EPERM },
	{ "unshare(FILES)", try_unshare, CLONE_FILES, 0, 0, EPERM },
	{ "setns", try_setns, -1, EBADF, EPERM, EPERM },
	{ "clone3", try_number, SYS_clone3, EINVAL, ENOSYS, ENOSYS },
	/* other processes */
	{ "parent's limits", try_limit_parent, 0, 0, EPERM, EPERM },
	{ "parent's limits, high bit", try_limit_parent, HIGH, 0, EPERM, EPERM },
	{ "ptrace", try_ptrace, PTRACE_TRACEME, 0, 0, EPERM },
	/* execution domains */
	{ "personality, no randomisation", try_personality, 0x40000, 0, 0, EPERM },
	{ "personality, READ_IMPLIES_EXEC", try_personality, 0x400000, 0, EPERM, EPERM },
	{ "personality, high bits", try_personality, HIGH | 0x400000, 0, EPERM, EPERM },
	/* the kernel and its second ways in */
	{ "mount", try_number, SYS_mount, EFAULT, EPERM, EPERM },
	{ "io_uring_setup", try_number, SYS_io_uring_setup, OTHER, ENOSYS, ENOSYS },
	{ "openat2", try_number, SYS_openat2, EINVAL, ENOSYS, ENOSYS },
	{ "add_key", try_number, SYS_add_key, OTHER, ENOSYS, ENOSYS },
	{ "io_submit", try_number, SYS_io_submit, EINVAL, EINVAL, ENOSYS },
#ifdef __x86_64__
	{ "int 0x80, getpid", try_int80, 20, OTHER, ENOSYS, ENOSYS },
	{ "int 0x80, mkdir's number", try_int80, 39, OTHER, ENOSYS, ENOSYS },
#endif
};

static void test_attempts(void **state)
{
	size_t wrong = 0;
	size_t unproven = 0;

	(void)state;
	skip_below_a_filter();
	for (size_t i = 0; i < COUNT(attempts); i++) {
		const struct attempt *a = &attempts[i];
		int control = in_child(NULL, a->try, a->arg);
		int d = in_child(profile_of(CM_SECCOMP_DEFAULT), a->try, a->arg);
		int u = in_child(profile_of(CM_SECCOMP_NO_UNIX), a->try, a->arg);
		int s = in_child(profile_of(CM_SECCOMP_STRICT), a->try, a->arg);

		if ((a->control != OTHER && control != a->control) || d != a->by_default ||
		    u != a->by_default || s != a->by_strict) {
			print_error("%s: control %d, default %d, no-unix %d, strict %d\n", a->name,
				    control, d, u, s);
			wrong++;
		} else if (in_parts(CM_SECCOMP_DEFAULT, a->try, a->arg) != d ||
			   in_parts(CM_SECCOMP_NO_UNIX, a->try, a->arg) != u ||
			   in_parts(CM_SECCOMP_STRICT, a->try, a->arg) != s) {
			print_error("%s: in two parts it is not the same\n", a->name);
			wrong++;
		} else if (a->control == OTHER && (control == a->by_strict || control == DIED)) {
			print_message("%s: this host refuses it by itself (%d)\n", a->name,
				      control);
			unproven++;
		}
	}
	assert_int_equal(wrong, 0);
	/* a host may lack user namespaces, TIOCSTI, io_uring, keys, i386: not everything else */
	assert_in_range(unproven, 0, 11);
}

static void test_socket_families(void **state)
{
	size_t reached = 0;

	(void)state;
	skip_below_a_filter();
	for (long family = 0; family < 64; family++) {
		bool known = family == AF_UNIX || family == AF_INET || family == AF_INET6 ||
			     family == AF_NETLINK;
		int control = in_child(NULL, try_socket, family);
		int d = in_child(profile_of(CM_SECCOMP_DEFAULT), try_socket, family);
		int high = in_child(profile_of(CM_SECCOMP_DEFAULT), try_socket, HIGH | family);
		int u = in_child(profile_of(CM_SECCOMP_NO_UNIX), try_socket, family);

		assert_int_equal(d, known ? control : EAFNOSUPPORT);
		assert_int_equal(u, known && family != AF_UNIX ? control : EAFNOSUPPORT);
		/* the kernel would take the low half for the family */
		assert_int_equal(high, EAFNOSUPPORT);
		assert_int_equal(in_child(NULL, try_socket, HIGH | family), control);
		reached += !known && control != EAFNOSUPPORT;
	}
	/* AF_PACKET at least is in every kernel, and EPERM without rights over it */
	assert_true(reached > 0);
}

static void test_both_are_loaded(void **state)
{
	int before = in_child(NULL, count_filters, 0);

	(void)state;
	assert_true(before >= 0);
	assert_int_equal(in_child(profile_of(CM_SECCOMP_DEFAULT), count_filters, 0), before + 1);
	assert_int_equal(in_child(profile_of(CM_SECCOMP_STRICT), count_filters, 0), before + 1);
	assert_int_equal(in_child(profile_of(CM_SECCOMP_NO_UNIX), count_filters, 0), before + 1);
}

/* Without no_new_privs and without a capability the kernel refuses, and errno stays alone. */
static void test_error_is_returned(void **state)
{
	int status = 0;
	pid_t pid;

	(void)state;
	skip_below_a_filter();
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (getuid() == 0 && setresuid(65534, 65534, 65534) < 0)
			_exit(1);
		errno = EXDEV;
		if (cm_seccomp_load(profile_of(CM_SECCOMP_DEFAULT)) != -EACCES)
			_exit(2);
		_exit(errno == EXDEV ? 0 : 3);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static int make_files(void **state)
{
	int fd;

	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(file, sizeof(file), "%s/file", dir);
	snprintf(fresh, sizeof(fresh), "%s/fresh", dir);
	fd = open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	return fd < 0 ? -1 : close(fd);
}

static int remove_files(void **state)
{
	(void)state;
	unlink(file);
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_attempts),
		cmocka_unit_test(test_socket_families),
		cmocka_unit_test(test_both_are_loaded),
		cmocka_unit_test(test_error_is_returned),
	};

	return cmocka_run_group_tests(tests, make_files, remove_files);
}
