/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/store/setup_log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/fd.h"

#define MAGIC UINT64_C(0x31676f6c70757465)
#define CHUNK 65536

struct header {
	uint64_t magic;
	uint64_t total;
};

#define KEPT (CM_SETUP_LOG_HEAD + CM_SETUP_LOG_TAIL)

/* Where in the file the byte of this number is, and how many that follow it lie beside it. */
static off_t place_of(uint64_t number, size_t *ret_room)
{
	uint64_t at = number;

	if (number >= CM_SETUP_LOG_HEAD)
		at = CM_SETUP_LOG_HEAD + (number - CM_SETUP_LOG_HEAD) % CM_SETUP_LOG_TAIL;
	*ret_room = (size_t)(at < CM_SETUP_LOG_HEAD ? CM_SETUP_LOG_HEAD - at : KEPT - at);
	return (off_t)(sizeof(struct header) + at);
}

static int write_at(int fd, const void *data, size_t len, off_t at)
{
	const char *from = data;

	while (len > 0) {
		ssize_t n = pwrite(fd, from, len, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ENOSPC;
		from += n;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

static int write_header(const struct cm_setup_log *log)
{
	const struct header header = { .magic = MAGIC, .total = log->total };

	return write_at(log->fd, &header, sizeof(header), 0);
}

int cm_setup_log_create(int dir_fd, struct cm_setup_log *ret, struct cm_error *err)
{
	*ret = (struct cm_setup_log){ .fd = -1 };
	/* of the one before there may be a reader */
	(void)unlinkat(dir_fd, CM_STORE_SETUP_LOG, 0);
	ret->fd = openat(dir_fd, CM_STORE_SETUP_LOG,
			 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	ret->error = ret->fd < 0 ? errno : -write_header(ret);
	if (ret->error == 0)
		return CM_OK;
	cm_fd_close(&ret->fd);
	return cm_error_set(err, CM_E_SYS, ret->error, "cannot keep the output of setup");
}

void cm_setup_log_add(struct cm_setup_log *log, const void *data, size_t len)
{
	const char *from = data;

	/* with a hole in it, what follows would be taken for what came before */
	while (len > 0 && log->fd >= 0 && log->error == 0) {
		size_t room;
		off_t at = place_of(log->total, &room);
		size_t n = len < room ? len : room;

		log->error = -write_at(log->fd, from, n, at);
		if (log->error != 0)
			return;
		log->total += n;
		from += n;
		len -= n;
		log->error = -write_header(log);
	}
}

void cm_setup_log_close(struct cm_setup_log *log)
{
	cm_fd_close(&log->fd);
}

static int read_part(int fd, uint64_t from, uint64_t to, struct cm_buf *out)
{
	char chunk[CHUNK];

	while (from < to) {
		size_t n_max;
		off_t at = place_of(from, &n_max);
		ssize_t n;

		if (n_max > to - from)
			n_max = (size_t)(to - from);
		n = pread(fd, chunk, n_max < sizeof(chunk) ? n_max : sizeof(chunk), at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		cm_buf_append(out, chunk, (size_t)n);
		from += (uint64_t)n;
	}
	return 0;
}

static int read_log(int fd, struct cm_buf *out)
{
	struct header header = { 0 };
	uint64_t missing;
	int r = cm_read_exact(fd, &header, sizeof(header));

	if (r == 0 && header.magic != MAGIC)
		r = -EINVAL;
	if (r < 0)
		return r;
	if (header.total <= KEPT)
		return read_part(fd, 0, header.total, out);
	missing = header.total - KEPT;
	r = read_part(fd, 0, CM_SETUP_LOG_HEAD, out);
	cm_buf_printf(out, "\n[casemate: %llu bytes are missing here]\n",
		      (unsigned long long)missing);
	return r < 0 ? r : read_part(fd, CM_SETUP_LOG_HEAD + missing, header.total, out);
}

int cm_setup_log_read(int dir_fd, struct cm_buf *out, struct cm_error *err)
{
	CM_AUTO_FD int fd =
		openat(dir_fd, CM_STORE_SETUP_LOG, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY);
	int r;

	if (fd < 0 && errno == ENOENT)
		return cm_error_set(err, CM_E_NOT_FOUND, 0, "no output of setup is kept");
	r = fd < 0 ? -errno : read_log(fd, out);
	if (r == 0 && cm_buf_status(out) == CM_OK)
		return CM_OK;
	return cm_error_set(err, r < 0 ? CM_E_SYS : CM_E_NOMEM, r < 0 ? -r : 0,
			    "cannot read the output of setup that was kept");
}
