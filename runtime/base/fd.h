/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File descriptors and whole reads and writes.  -1 is unset, 0 is valid.  All descriptors made
 * here are close-on-exec.  Functions returning int give 0 or a negative errno unless said
 * otherwise; they do not touch errno's meaning for the caller.
 */
#ifndef CM_RUNTIME_BASE_FD_H
#define CM_RUNTIME_BASE_FD_H

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/types.h>

#define CM_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* Close *fd once (never retried: on Linux it is gone even after EINTR), set -1, keep errno. */
void cm_fd_close(int *fd);
/*
 * open(2) of what is there. musl's own makes a second system call of each with O_CLOEXEC, for kernels
 * before 2.6.23, and a start opens dozens.
 */
static inline int cm_open(const char *path, int flags)
{
	return openat(AT_FDCWD, path, flags);
}
/* When the inode was changed last (ctime), in nanoseconds since the epoch. */
static inline uint64_t cm_stat_changed_ns(const struct stat *st)
{
	return (uint64_t)st->st_ctim.tv_sec * 1000000000U + (uint64_t)st->st_ctim.tv_nsec;
}
/* Move ownership out: returns *fd and sets it to -1. */
int cm_fd_take(int *fd);
void cm_ptr_free(void *pointer_to_pointer);
#define cm_ptr_take(p)                                                                             \
	__extension__({                                                                            \
		__typeof__(*(p)) cm_taken_ = *(p);                                                 \
		*(p) = NULL;                                                                       \
		cm_taken_;                                                                         \
	})

/* An owned local that closes or frees itself; initialise it at its declaration. */
#define CM_AUTO_FD __attribute__((cleanup(cm_fd_close)))
#define CM_AUTO_FREE __attribute__((cleanup(cm_ptr_free)))

/* Write all of it; restarts on EINTR and short writes. 0 or -errno. */
int cm_write_all(int fd, const void *data, size_t len);
/* Read exactly len bytes. 0, -EPIPE at an early end of file, or -errno. */
int cm_read_exact(int fd, void *data, size_t len);
/* Read up to size bytes until end of file. Bytes read, -E2BIG if there are more, or -errno. */
ssize_t cm_read_all(int fd, void *data, size_t size);
/*
 * Read a whole small file into buf as a string. dirfd may be AT_FDCWD. Length without the NUL,
 * -E2BIG when it does not fit, or -errno.
 */
ssize_t cm_read_file_at(int dirfd, const char *path, char *buf, size_t size);
/* Write a value to an existing file with one write(2), as /proc and cgroup files want. */
int cm_write_file_at(int dirfd, const char *path, const char *value);
/*
 * The directory that holds the last component of path, for callers that work on single names:
 * *ret_base is that component (inside path), *ret_fd an owned O_PATH descriptor, or -1 when path
 * has no '/' and dirfd itself is the directory. 0, -EINVAL for "", ".", ".." and a trailing '/',
 * or -errno.
 */
int cm_open_parent_at(int dirfd, const char *path, int *ret_fd, const char **ret_base);
/*
 * Replace dirfd/name atomically: write a temporary file beside it, rename over it.  With
 * is_durable the file and the directory are fsynced. The temporary file is removed on failure.
 */
int cm_replace_file_at(int dirfd, const char *name, const void *data, size_t len, mode_t mode,
		       bool is_durable);
/*
 * Remove what is below dirfd/name and then it, fd-relative, following no symbolic link and
 * crossing no mount. A name that is not there is success. 0 or -errno (the first failure; what
 * could be removed is removed).
 */
int cm_remove_tree_at(int dirfd, const char *name);
/* memfd with the content, sealed against every change (F_SEAL_SEAL included). fd or -errno. */
int cm_memfd_sealed(const char *name, const void *data, size_t len);

#endif
