/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System calls that no jail may make: second ways to do what is filtered (io_uring), mounts,
 * namespaces, the running kernel. Arguments are such that a call that is let through changes
 * nothing outside a mount and UTS namespace of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/escape/probe.h"

#define CLONE3_SIZE 64

static void rings(void)
{
	char params[256] = { 0 };

	probe_result("io_uring_setup", syscall(SYS_io_uring_setup, 1, params));
	probe_result_or("io_uring_enter", syscall(SYS_io_uring_enter, -1, 0, 0, 0, NULL, 0), EBADF,
			EINVAL);
	probe_result_or("io_uring_register", syscall(SYS_io_uring_register, -1, 0, NULL, 0), EBADF,
			EINVAL);
	/* 1: faults of user mode only, which every user may ask for */
	probe_result("userfaultfd", syscall(SYS_userfaultfd, O_CLOEXEC | 1));
}

static void keys_and_kernel(void)
{
	char attr[128] = { 0 };
	char handle[136] = { (char)128 };
	int mount_id = 0;

	probe_result("keyctl", syscall(SYS_keyctl, 0, -3, 0));
	probe_result_or("bpf", syscall(SYS_bpf, 0, attr, sizeof(attr)), EINVAL, E2BIG);
	attr[0] = 1;
	attr[4] = 120;
	probe_result("perf_event_open", syscall(SYS_perf_event_open, attr, 0, -1, -1, 0));
	(void)syscall(SYS_name_to_handle_at, AT_FDCWD, ".", handle, &mount_id, 0);
	probe_result("open_by_handle_at",
		     syscall(SYS_open_by_handle_at, AT_FDCWD, handle, O_RDONLY));
	/* by file id only, which every user may ask for */
	probe_result("fanotify_init", syscall(SYS_fanotify_init, 0x200, O_RDONLY));
	probe_result_or("init_module", syscall(SYS_init_module, NULL, 0, ""), EFAULT, ENOEXEC);
	probe_result_or("kexec_load", syscall(SYS_kexec_load, 0, 0, NULL, 0xdead), EINVAL, EINVAL);
	probe_result_or("reboot", syscall(SYS_reboot, 0, 0, 0, NULL), EINVAL, EINVAL);
	probe_result_or("swapon", syscall(SYS_swapon, "./no-such-file", 0), ENOENT, ENOENT);
	probe_result_or("acct", syscall(SYS_acct, "./no-such-file"), ENOENT, ENOENT);
	probe_result("syslog", syscall(SYS_syslog, 10, NULL, 0));
	probe_result("settimeofday", syscall(SYS_settimeofday, NULL, NULL));
}

static void mounts(void)
{
	int tree;

	probe_result("mount", mount("none", ".", "tmpfs", 0, NULL));
	probe_result("umount2", umount2(".", MNT_DETACH));
	probe_result_or("pivot_root", syscall(SYS_pivot_root, ".", "."), EINVAL, EBUSY);
	probe_result("chroot", chroot("/"));
	probe_result("fsopen", syscall(SYS_fsopen, "tmpfs", 0));
	tree = (int)syscall(SYS_open_tree, AT_FDCWD, ".", OPEN_TREE_CLONE);
	probe_result("open_tree", tree);
	probe_result("move_mount",
		     syscall(SYS_move_mount, tree, "", AT_FDCWD, ".", MOVE_MOUNT_F_EMPTY_PATH));
	probe_result_or("mount_setattr", syscall(SYS_mount_setattr, -1, "", 0, "", 0), EINVAL,
			EBADF);
	probe_result_or("setns", syscall(SYS_setns, -1, 0), EBADF, EINVAL);
}

static void host_name(void)
{
	char name[65] = "";

	(void)gethostname(name, sizeof(name) - 1);
	probe_result("sethostname", sethostname(name, strlen(name)));
}

/* A child that shares nothing and ends at once. */
static long try_clone(unsigned long flags)
{
	long pid = syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, NULL);

	if (pid == 0)
		_exit(0);
	if (pid > 0) {
		(void)waitpid((pid_t)pid, NULL, 0);
		errno = 0;
	}
	return pid;
}

static long try_clone3(unsigned long long flags)
{
	unsigned long long args[CLONE3_SIZE / 8] = { flags, 0, 0, 0, SIGCHLD };
	long pid = syscall(SYS_clone3, args, CLONE3_SIZE);

	if (pid == 0)
		_exit(0);
	if (pid > 0)
		(void)waitpid((pid_t)pid, NULL, 0);
	return pid;
}

static unsigned long unshare_flag;

static int try_unshare(void)
{
	return unshare((int)unshare_flag) < 0 ? errno : 0;
}

static void namespaces(void)
{
	static const struct {
		const char *unshare_name;
		/* CLONE_NEWTIME is no flag of clone */
		const char *clone_name;
		unsigned long flag;
	} kinds[] = {
		{ "unshare user", "clone user", CLONE_NEWUSER },
		{ "unshare mount", "clone mount", CLONE_NEWNS },
		{ "unshare pid", "clone pid", CLONE_NEWPID },
		{ "unshare net", "clone net", CLONE_NEWNET },
		{ "unshare ipc", "clone ipc", CLONE_NEWIPC },
		{ "unshare uts", "clone uts", CLONE_NEWUTS },
		{ "unshare cgroup", "clone cgroup", 0x02000000 },
		{ "unshare time", NULL, 0x00000080 },
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		unshare_flag = kinds[i].flag;
		probe_child(kinds[i].unshare_name, try_unshare);
		if (kinds[i].clone_name)
			probe_result(kinds[i].clone_name, try_clone(kinds[i].flag));
	}
	probe_result("clone3", try_clone3(0));
	probe_result("clone3 user", try_clone3(CLONE_NEWUSER));
}

int main(void)
{
	rings();
	namespaces();
	keys_and_kernel();
	host_name();
	mounts();
	return 0;
}
