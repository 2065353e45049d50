/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel interfaces newer than the system's headers (Debian 12 ships those of Linux 6.1), and
 * thin system-call wrappers that no libc here has. Each constant's source is the kernel version
 * that added it. Wrappers return the system call's value, or -1 with errno.
 */
#ifndef CM_RUNTIME_BASE_KERNEL_H
#define CM_RUNTIME_BASE_KERNEL_H

#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* Landlock: include/uapi/linux/landlock.h; the ABI that added each */
#define CM_LL_FS_EXECUTE (1ULL << 0)
#define CM_LL_FS_WRITE_FILE (1ULL << 1)
#define CM_LL_FS_READ_FILE (1ULL << 2)
#define CM_LL_FS_READ_DIR (1ULL << 3)
#define CM_LL_FS_REMOVE_DIR (1ULL << 4)
#define CM_LL_FS_REMOVE_FILE (1ULL << 5)
#define CM_LL_FS_MAKE_CHAR (1ULL << 6)
#define CM_LL_FS_MAKE_DIR (1ULL << 7)
#define CM_LL_FS_MAKE_REG (1ULL << 8)
#define CM_LL_FS_MAKE_SOCK (1ULL << 9)
#define CM_LL_FS_MAKE_FIFO (1ULL << 10)
#define CM_LL_FS_MAKE_BLOCK (1ULL << 11)
#define CM_LL_FS_MAKE_SYM (1ULL << 12)
/* ABI 2, Linux 5.19 */
#define CM_LL_FS_REFER (1ULL << 13)
/* ABI 3, Linux 6.2 */
#define CM_LL_FS_TRUNCATE (1ULL << 14)
/* ABI 5, Linux 6.10 */
#define CM_LL_FS_IOCTL_DEV (1ULL << 15)
/* ABI 6, Linux 6.12 */
#define CM_LL_SCOPE_ABSTRACT_UNIX (1ULL << 0)
#define CM_LL_SCOPE_SIGNAL (1ULL << 1)

/* memfd_create(2): never executable. Linux 6.3 */
#define CM_MFD_NOEXEC_SEAL 0x0008U

struct cm_ll_ruleset_attr {
	uint64_t handled_access_fs;
	uint64_t handled_access_net;
	uint64_t scoped;
};

struct cm_ll_path_beneath_attr {
	uint64_t allowed_access;
	int32_t parent_fd;
} __attribute__((packed));

#define CM_LL_RULE_PATH_BENEATH 1
#define CM_LL_CREATE_RULESET_VERSION 1U

static inline int cm_sys_landlock_create_ruleset(const struct cm_ll_ruleset_attr *attr, size_t size,
						 uint32_t flags)
{
	return (int)syscall(444, attr, size, flags);
}

static inline int cm_sys_landlock_add_rule(int ruleset_fd, int type, const void *attr,
					   uint32_t flags)
{
	return (int)syscall(445, ruleset_fd, type, attr, flags);
}

static inline int cm_sys_landlock_restrict_self(int ruleset_fd, uint32_t flags)
{
	return (int)syscall(446, ruleset_fd, flags);
}

static inline int cm_sys_openat2(int dirfd, const char *path, const struct open_how *how)
{
	return (int)syscall(SYS_openat2, dirfd, path, how, sizeof(*how));
}

/* fchmodat with flags. Linux 6.6 */
static inline int cm_sys_fchmodat2(int dirfd, const char *path, mode_t mode, unsigned int flags)
{
	return (int)syscall(452, dirfd, path, mode, flags);
}

/* No wrapper in musl 1.2.3. */
static inline int cm_sys_renameat2(int from_dirfd, const char *from, int to_dirfd, const char *to,
				   unsigned int flags)
{
	return (int)syscall(SYS_renameat2, from_dirfd, from, to_dirfd, to, flags);
}

/* An entry of getdents64(2): neither libc declares it for raw use, which allocates nothing. */
struct cm_dirent {
	uint64_t ino;
	int64_t offset;
	uint16_t record_len;
	uint8_t type;
	char name[];
};

static inline ssize_t cm_sys_getdents64(int fd, void *buf, size_t size)
{
	return (ssize_t)syscall(SYS_getdents64, fd, buf, size);
}

/* clone3(2), Linux 5.7; musl has no declaration */
struct cm_clone3_args {
	uint64_t flags;
	uint64_t pidfd;
	uint64_t child_tid;
	uint64_t parent_tid;
	uint64_t exit_signal;
	uint64_t stack;
	uint64_t stack_size;
	uint64_t tls;
	uint64_t set_tid;
	uint64_t set_tid_size;
	uint64_t cgroup;
};

/* Linux 5.5: handlers go, as they do at execve. Only clone3 has room for it. */
#ifndef CLONE_CLEAR_SIGHAND
#define CLONE_CLEAR_SIGHAND 0x100000000ULL
#endif

/* statx(2): what is used here of include/uapi/linux/stat.h; musl 1.2.3 has no declaration. */
#define CM_STATX_UID 0x0008U
#define CM_STATX_GID 0x0010U
#define CM_STATX_INO 0x0100U
#define CM_STATX_BTIME 0x0800U
/* Linux 5.8 */
#define CM_STATX_MNT_ID 0x1000U

struct cm_statx_time {
	int64_t sec;
	uint32_t nsec;
	int32_t reserved_;
};

struct cm_statx {
	uint32_t mask;
	uint32_t blksize;
	uint64_t attributes;
	uint32_t nlink;
	uint32_t uid;
	uint32_t gid;
	uint16_t mode;
	uint16_t reserved0_;
	uint64_t ino;
	uint64_t size;
	uint64_t blocks;
	uint64_t attributes_mask;
	struct cm_statx_time accessed;
	struct cm_statx_time born;
	struct cm_statx_time changed;
	struct cm_statx_time modified;
	uint32_t devices[4];
	uint64_t mnt_id;
	uint64_t reserved_[13];
};
_Static_assert(sizeof(struct cm_statx) == 256, "struct statx has 256 bytes");

/* Of an open file. */
static inline int cm_sys_statx_fd(int fd, unsigned int mask, struct cm_statx *ret)
{
	return (int)syscall(SYS_statx, fd, "", AT_EMPTY_PATH, mask, ret);
}

static inline int cm_sys_open_tree(int dirfd, const char *path, unsigned int flags)
{
	return (int)syscall(SYS_open_tree, dirfd, path, flags);
}

static inline int cm_sys_move_mount(int from_dirfd, const char *from, int to_dirfd, const char *to,
				    unsigned int flags)
{
	return (int)syscall(SYS_move_mount, from_dirfd, from, to_dirfd, to, flags);
}

static inline int cm_sys_mount_setattr(int dirfd, const char *path, unsigned int flags,
				       const struct mount_attr *attr)
{
	return (int)syscall(SYS_mount_setattr, dirfd, path, flags, attr, sizeof(*attr));
}

/* Linux 6.15 */
#ifndef SYS_open_tree_attr
#define SYS_open_tree_attr 467
#endif
static inline int cm_sys_open_tree_attr(int dirfd, const char *path, unsigned int flags,
					const struct mount_attr *attr)
{
	return (int)syscall(SYS_open_tree_attr, dirfd, path, flags, attr, sizeof(*attr));
}

static inline int cm_sys_fsopen(const char *fs, unsigned int flags)
{
	return (int)syscall(SYS_fsopen, fs, flags);
}

static inline int cm_sys_fsconfig(int fd, unsigned int cmd, const char *key, const void *value,
				  int aux)
{
	return (int)syscall(SYS_fsconfig, fd, cmd, key, value, aux);
}

static inline int cm_sys_fsmount(int fd, unsigned int flags, unsigned int attrs)
{
	return (int)syscall(SYS_fsmount, fd, flags, attrs);
}

static inline int cm_sys_pidfd_open(pid_t pid, unsigned int flags)
{
	return (int)syscall(SYS_pidfd_open, pid, flags);
}

/* linux/pidfd.h; Linux 6.11: a descriptor of a namespace that the process is in */
#define CM_PIDFD_GET_PID_NAMESPACE _IO(0xFF, 5)
#define CM_PIDFD_GET_USER_NAMESPACE _IO(0xFF, 9)

static inline int cm_sys_pidfd_namespace(int pidfd, unsigned long request)
{
	return (int)syscall(SYS_ioctl, pidfd, request, 0);
}

static inline int cm_sys_pidfd_send_signal(int pidfd, int sig)
{
	return (int)syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0);
}

static inline int cm_sys_close_range(unsigned int first, unsigned int last, unsigned int flags)
{
	return (int)syscall(SYS_close_range, first, last, flags);
}

static inline int cm_sys_pivot_root(const char *new_root, const char *put_old)
{
	return (int)syscall(SYS_pivot_root, new_root, put_old);
}

#endif
