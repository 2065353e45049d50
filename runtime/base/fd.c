/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors, whole reads and writes, atomic replacement, sealed memory. */
#include "runtime/base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/buf.h"
#include "runtime/base/kernel.h"

#define TEMP_NAME_SIZE 32

void cm_fd_close(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
	errno = saved;
}

int cm_fd_take(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

void cm_ptr_free(void *pointer_to_pointer)
{
	int saved = errno;
	void *p;

	/* memcpy: the pointer's real type is the caller's, and "void **" would alias it */
	memcpy(&p, pointer_to_pointer, sizeof(p));
	free(p);
	p = NULL;
	memcpy(pointer_to_pointer, &p, sizeof(p));
	errno = saved;
}

int cm_write_all(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len > 0) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EIO;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Bytes read, fewer than len only at end of file; or -errno. */
static ssize_t read_up_to(int fd, void *data, size_t len)
{
	size_t got = 0;

	while (got < len) {
		ssize_t n = read(fd, (char *)data + got, len - got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

int cm_read_exact(int fd, void *data, size_t len)
{
	ssize_t n = read_up_to(fd, data, len);

	if (n < 0)
		return (int)n;
	return (size_t)n == len ? 0 : -EPIPE;
}

ssize_t cm_read_all(int fd, void *data, size_t size)
{
	ssize_t n = read_up_to(fd, data, size);
	ssize_t more;
	char extra;

	if (n < 0 || (size_t)n < size)
		return n;
	more = read_up_to(fd, &extra, 1);
	if (more != 0)
		return more < 0 ? more : -E2BIG;
	return n;
}

ssize_t cm_read_file_at(int dirfd, const char *path, char *buf, size_t size)
{
	CM_AUTO_FD int fd = -1;
	ssize_t n;

	if (size == 0)
		return -EINVAL;
	fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	n = cm_read_all(fd, buf, size - 1);
	buf[n < 0 ? 0 : n] = '\0';
	return n;
}

int cm_write_file_at(int dirfd, const char *path, const char *value)
{
	CM_AUTO_FD int fd = -1;
	size_t len = strlen(value);
	ssize_t n;

	fd = openat(dirfd, path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	do {
		n = write(fd, value, len);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	/* the rest would be a second value, not a continuation */
	return (size_t)n == len ? 0 : -EIO;
}

int cm_open_parent_at(int dirfd, const char *path, int *ret_fd, const char **ret_base)
{
	const char *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;
	char *parent;
	int fd;

	if (*base == '\0' || strcmp(base, ".") == 0 || strcmp(base, "..") == 0)
		return -EINVAL;
	if (!slash) {
		*ret_fd = -1;
		*ret_base = base;
		return 0;
	}
	/* the '/' is kept, so that the parent of "/x" is "/" */
	parent = cm_asprintf("%.*s", (int)(base - path), path);
	if (!parent)
		return -ENOMEM;
	fd = openat(dirfd, parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
	cm_ptr_free(&parent);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	*ret_base = base;
	return 0;
}

static int open_temporary(int dirfd, char name[TEMP_NAME_SIZE])
{
	uint64_t random;
	int fd;

	for (int tries = 0; tries < 16; tries++) {
		if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
			return -EIO;
		(void)snprintf(name, TEMP_NAME_SIZE, ".cm-tmp-%016" PRIx64, random);
		fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			    0600);
		if (fd >= 0)
			return fd;
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

static int fill_file(int fd, const void *data, size_t len, mode_t mode, bool is_durable)
{
	int r = cm_write_all(fd, data, len);

	if (r < 0)
		return r;
	/* a later step than creation: the mode is exact whatever the umask is */
	if (fchmod(fd, mode) < 0 || (is_durable && fsync(fd) < 0))
		return -errno;
	return 0;
}

static int sync_directory(int dirfd)
{
	/* dirfd may be O_PATH or AT_FDCWD, which fsync does not take */
	CM_AUTO_FD int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

int cm_replace_file_at(int dirfd, const char *name, const void *data, size_t len, mode_t mode,
		       bool is_durable)
{
	CM_AUTO_FD int parent_fd = -1;
	CM_AUTO_FD int fd = -1;
	char temp[TEMP_NAME_SIZE];
	const char *base;
	int r;

	r = cm_open_parent_at(dirfd, name, &parent_fd, &base);
	if (r < 0)
		return r;
	if (parent_fd >= 0)
		dirfd = parent_fd;
	fd = open_temporary(dirfd, temp);
	if (fd < 0)
		return fd;
	r = fill_file(fd, data, len, mode, is_durable);
	/* network and quota file systems report a lost write only here */
	if (close(cm_fd_take(&fd)) < 0 && r == 0 && errno != EINTR)
		r = -errno;
	/* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): no failed call leaves errno 0 */
	if (r == 0 && renameat(dirfd, temp, dirfd, base) < 0)
		r = -errno;
	if (r < 0) {
		(void)unlinkat(dirfd, temp, 0);
		return r;
	}
	return is_durable ? sync_directory(dirfd) : 0;
}

int cm_memfd_sealed(const char *name, const void *data, size_t len)
{
	const unsigned int flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	CM_AUTO_FD int fd = -1;
	int r;

	/* data of ours is never a program; kernels before 6.3 do not know the flag */
	fd = memfd_create(name, flags | CM_MFD_NOEXEC_SEAL);
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, flags);
	if (fd < 0)
		return -errno;
	r = cm_write_all(fd, data, len);
	if (r < 0)
		return r;
	/* the position is shared by all who get the descriptor: let it stand at the start */
	if (lseek(fd, 0, SEEK_SET) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		return -errno;
	return cm_fd_take(&fd);
}
