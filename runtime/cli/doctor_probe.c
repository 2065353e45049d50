/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trying what a jail needs.
 *
 * The child does what init does, by the same calls and in the same order, and reports one fixed
 * record. It is pid 1 of its own namespace and dies with this process, so nothing is left behind
 * whatever happens. Only its capabilities inside count: distributions let the namespaces be made
 * and take the capabilities away.
 */
#include "runtime/cli/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/kernel.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

/* a mount can hang on a dead server; the host is then in trouble, and this must not be */
#define TIMEOUT_MS 10000

const char *const cm_doctor_ns_names[CM_DOCTOR_NS_COUNT_] = {
	"user", "mnt", "pid", "net", "ipc", "uts", "time",
};

static const uint64_t ns_flags[CM_DOCTOR_NS_COUNT_] = {
	0, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWIPC, CLONE_NEWUTS, CLONE_NEWTIME,
};

static pid_t clone_in(uint64_t flags)
{
	struct cm_clone3_args args = { .flags = flags | CLONE_NEWUSER, .exit_signal = SIGCHLD };

	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

static void reap(pid_t pid)
{
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* 0 or errno of the last call */
static int result_of(bool is_good)
{
	return is_good ? 0 : errno;
}

static int try_propagation(void)
{
	struct mount_attr attr = { .propagation = MS_PRIVATE };

	return result_of(cm_sys_mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &attr) == 0);
}

/* A detached mount of a file system made here. 0 or errno. */
static int new_mount(const char *fs, const char *const options[][2], int *ret_fd)
{
	CM_AUTO_FD int fs_fd = cm_sys_fsopen(fs, FSOPEN_CLOEXEC);
	int fd;

	if (fs_fd < 0)
		return errno;
	for (size_t i = 0; options && options[i][0]; i++) {
		unsigned int cmd = options[i][1] ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG;

		if (cm_sys_fsconfig(fs_fd, cmd, options[i][0], options[i][1], 0) < 0)
			return errno;
	}
	if (cm_sys_fsconfig(fs_fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return errno;
	fd = cm_sys_fsmount(fs_fd, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (fd < 0)
		return errno;
	*ret_fd = fd;
	return 0;
}

static int try_tmpfs(int *ret_fd)
{
	static const char *const options[][2] = { { "size", "64k" }, { "mode", "0755" }, { 0 } };
	CM_AUTO_FD int fd = -1;
	int r = new_mount("tmpfs", options, &fd);

	if (r != 0)
		return r;
	if (cm_sys_move_mount(fd, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return errno;
	*ret_fd = cm_fd_take(&fd);
	return 0;
}

static int try_bind(void)
{
	CM_AUTO_FD int fd = cm_sys_open_tree(AT_FDCWD, "/usr",
					     OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_RDONLY };

	if (fd < 0)
		return errno;
	return result_of(cm_sys_mount_setattr(fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr) == 0);
}

static int try_loopback(void)
{
	CM_AUTO_FD int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };

	if (sock < 0)
		return errno;
	return result_of(ioctl(sock, SIOCSIFFLAGS, &request) == 0);
}

static int try_proc(void)
{
	CM_AUTO_FD int fd = -1;

	return new_mount("proc", NULL, &fd);
}

/* In the tmpfs, which is the working directory. A directory of the lower layer is removed:
 * without userxattr the mount succeeds and that fails. */
static int try_overlay(void)
{
	static const char *const options[][2] = {
		{ "lowerdir", "lower" }, { "upperdir", "upper" }, { "workdir", "work" },
		{ "userxattr", NULL },	 { NULL, NULL },
	};
	static const char *const dirs[] = { "lower", "lower/d", "upper", "work" };
	CM_AUTO_FD int fd = -1;
	int r;

	for (size_t i = 0; i < CM_ARRAY_SIZE(dirs); i++) {
		if (mkdir(dirs[i], 0755) < 0)
			return errno;
	}
	r = new_mount("overlay", options, &fd);
	if (r != 0)
		return r;
	return result_of(unlinkat(fd, "d", AT_REMOVEDIR) == 0);
}

static int try_pivot(void)
{
	return result_of(cm_sys_pivot_root(".", ".") == 0 && umount2(".", MNT_DETACH) == 0);
}

/* Root's jails hold no id of the host: capabilities come with the namespace, ids are taken. */
static int become_builder(bool is_root)
{
	if (!is_root)
		return 0;
	return result_of(setgroups(0, NULL) == 0 && setresgid(0, 0, 0) == 0 &&
			 setresuid(0, 0, 0) == 0);
}

static _Noreturn void child_main(int sock, bool is_root)
{
	int step[CM_DOCTOR_STEPS_];
	CM_AUTO_FD int root_fd = -1;
	char go;

	for (size_t i = 0; i < CM_DOCTOR_STEPS_; i++)
		step[i] = CM_DOCTOR_NOT_TRIED;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	/* the maps are written, or the parent is gone */
	if (read(sock, &go, 1) != 1)
		_exit(1);
	step[CM_DOCTOR_MAP] = become_builder(is_root);
	/* a change of ids clears it */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	step[CM_DOCTOR_LOOPBACK] = try_loopback();
	step[CM_DOCTOR_CGROUP_NS] = result_of(unshare(CLONE_NEWCGROUP) == 0);
	step[CM_DOCTOR_PROPAGATION] = try_propagation();
	/* nothing may be mounted where the host could see it */
	if (step[CM_DOCTOR_PROPAGATION] == 0) {
		step[CM_DOCTOR_BIND] = try_bind();
		step[CM_DOCTOR_PROC] = try_proc();
		step[CM_DOCTOR_TMPFS] = try_tmpfs(&root_fd);
	}
	if (step[CM_DOCTOR_TMPFS] == 0 && fchdir(root_fd) == 0) {
		step[CM_DOCTOR_OVERLAY] = try_overlay();
		step[CM_DOCTOR_PIVOT] = try_pivot();
	}
	/* one record fits the socket's buffer, so this neither blocks nor comes in parts */
	(void)!write(sock, step, sizeof(step));
	_exit(0);
}

static int write_proc(pid_t pid, const char *file, const char *text)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	return -cm_write_file_at(AT_FDCWD, path, text);
}

static int write_maps(const struct cm_host *host, pid_t pid)
{
	char uid_map[64];
	char gid_map[64];
	int r = 0;

	if (host->is_root) {
		(void)snprintf(uid_map, sizeof(uid_map), "0 %u %u", CM_ID_SLOT_BASE,
			       CM_ID_SLOT_SIZE);
		memcpy(gid_map, uid_map, sizeof(gid_map));
	} else {
		(void)snprintf(uid_map, sizeof(uid_map), "%u %u 1", CM_ID_AGENT, host->uid);
		(void)snprintf(gid_map, sizeof(gid_map), "%u %u 1", CM_ID_AGENT, host->gid);
		r = write_proc(pid, "setgroups", "deny");
	}
	if (r == 0)
		r = write_proc(pid, "uid_map", uid_map);
	return r == 0 ? write_proc(pid, "gid_map", gid_map) : r;
}

static int try_idmap(pid_t pid, const char *root_dir)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP };
	CM_AUTO_FD int ns_fd = -1;
	CM_AUTO_FD int tree_fd = -1;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	ns_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (ns_fd < 0)
		return errno;
	/* detached: it is never to be seen anywhere */
	tree_fd = cm_sys_open_tree(AT_FDCWD, root_dir, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (tree_fd < 0)
		return errno;
	attr.userns_fd = (uint64_t)ns_fd;
	return result_of(cm_sys_mount_setattr(tree_fd, "", AT_EMPTY_PATH, &attr) == 0);
}

/* The child's record, within the time; false when there is none. */
static bool read_record(int sock, int step[CM_DOCTOR_STEPS_])
{
	int64_t deadline = cm_clock_mono_ms() + TIMEOUT_MS;
	struct pollfd pfd = { .fd = sock, .events = POLLIN };
	const size_t size = CM_DOCTOR_STEPS_ * sizeof(*step);
	int n;

	do {
		int64_t left = deadline - cm_clock_mono_ms();

		n = poll(&pfd, 1, left > 0 ? (int)left : 0);
	} while (n < 0 && errno == EINTR);
	return n > 0 && read(sock, step, size) == (ssize_t)size;
}

static void run_child(const struct cm_host *host, const char *root_dir, pid_t pid, int sock,
		      struct cm_doctor_probe *ret)
{
	int step[CM_DOCTOR_STEPS_];

	ret->step[CM_DOCTOR_MAP] = write_maps(host, pid);
	if (ret->step[CM_DOCTOR_MAP] != 0)
		return;
	if (host->is_root)
		ret->step[CM_DOCTOR_IDMAP] = try_idmap(pid, root_dir);
	if (write(sock, "", 1) != 1 || !read_record(sock, step)) {
		/* a filter may have killed it, too */
		ret->step[CM_DOCTOR_MAP] = ETIMEDOUT;
		return;
	}
	ret->step[CM_DOCTOR_MAP] = step[CM_DOCTOR_MAP];
	for (size_t i = CM_DOCTOR_PROPAGATION; i <= CM_DOCTOR_PIVOT; i++)
		ret->step[i] = step[i];
}

static void try_jail(const struct cm_host *host, const char *root_dir, struct cm_doctor_probe *ret)
{
	uint64_t flags = 0;
	int pair[2];
	pid_t pid;

	for (size_t i = 0; i < CM_DOCTOR_NS_COUNT_; i++)
		flags |= ns_flags[i];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		ret->step[CM_DOCTOR_CLONE] = errno;
		return;
	}
	pid = clone_in(flags);
	if (pid == 0) {
		(void)close(pair[0]);
		child_main(pair[1], host->is_root);
	}
	ret->step[CM_DOCTOR_CLONE] = result_of(pid > 0);
	(void)close(pair[1]);
	if (pid > 0) {
		run_child(host, root_dir, pid, pair[0], ret);
		/* not waited for yet, so the number is still its own */
		(void)kill(pid, SIGKILL);
		reap(pid);
	}
	(void)close(pair[0]);
}

static int try_namespace(uint64_t flags)
{
	pid_t pid = clone_in(flags);

	if (pid < 0)
		return errno;
	if (pid == 0)
		_exit(0);
	reap(pid);
	return 0;
}

/* A filter cannot be taken off again, so a child takes it. */
static int try_seccomp(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = { .len = 1, .filter = &allow };
	int status = 0;
	pid_t pid = fork();

	if (pid < 0)
		return errno;
	if (pid == 0) {
		bool is_good = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
			       syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;

		_exit(result_of(is_good) & 0xff);
	}
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return errno;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

void cm_doctor_probe_run(const struct cm_host *host, const char *root_dir,
			 struct cm_doctor_probe *ret)
{
	for (size_t i = 0; i < CM_DOCTOR_STEPS_; i++)
		ret->step[i] = CM_DOCTOR_NOT_TRIED;
	for (size_t i = 0; i < CM_DOCTOR_NS_COUNT_; i++)
		ret->ns[i] = CM_DOCTOR_NOT_TRIED;
	try_jail(host, root_dir, ret);
	if (ret->step[CM_DOCTOR_CLONE] != 0) {
		for (size_t i = 0; i < CM_DOCTOR_NS_COUNT_; i++)
			ret->ns[i] = try_namespace(ns_flags[i]);
	}
	ret->step[CM_DOCTOR_SECCOMP] = try_seccomp();
}
