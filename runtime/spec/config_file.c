/* SPDX-License-Identifier: Apache-2.0 */
/* A file of settings as text, where it is what such a file must be. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/json.h"
#include "runtime/spec/config_internal.h"

static int check_type(const struct stat *st, const char *path, unsigned int flags,
		      struct cm_error *err)
{
	int r;

	if (S_ISDIR(st->st_mode) || ((flags & CM_READ_REGULAR) && !S_ISREG(st->st_mode))) {
		r = cm_error_set(err, CM_E_INVALID, 0, "'%s' is not a regular file", path);
		cm_error_hint(err, (flags & CM_READ_REGULAR)
					   ? "remove it, or put a file of JSON there"
					   : "name a file");
		return r;
	}
	if (!(flags & CM_READ_OWN))
		return CM_OK;
	if (st->st_uid != 0 && st->st_uid != geteuid()) {
		r = cm_error_set(err, CM_E_DENIED, 0, "'%s' belongs to another user (uid %u)", path,
				 (unsigned int)st->st_uid);
		cm_error_hint(err, "set HOME to your own home directory; "
				   "under sudo use sudo -H");
		return r;
	}
	if (st->st_mode & S_IWOTH) {
		r = cm_error_set(err, CM_E_DENIED, 0, "'%s' is writable by everyone", path);
		cm_error_hint(err, "chmod o-w '%s'", path);
		return r;
	}
	return CM_OK;
}

static int open_failed(const char *path, int error, struct cm_error *err)
{
	int r;

	if (error == ELOOP) {
		r = cm_error_set(err, CM_E_INVALID, 0, "'%s' is not a regular file", path);
		cm_error_hint(err, "remove it, or put a file of JSON there");
		return r;
	}
	r = cm_error_set(err, error == ENOENT ? CM_E_NOT_FOUND : CM_E_SYS, error,
			 "cannot open '%s'", path);
	cm_error_hint(err, "check the path and its permissions");
	return r;
}

static int too_large(const char *path, struct cm_error *err)
{
	int r = cm_error_set(err, CM_E_LIMIT, 0, "'%s' is larger than %lu bytes", path,
			     CM_JSON_MAX_BYTES);

	cm_error_hint(err, "a file of settings is much smaller; is it the right one?");
	return r;
}

int cm_config_read_file(const char *path, unsigned int flags, char **ret_text, size_t *ret_len,
			struct cm_error *err)
{
	CM_AUTO_FREE char *text = NULL;
	CM_AUTO_FD int fd = -1;
	struct stat st;
	ssize_t n;
	int r;

	fd = cm_open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY |
				   ((flags & CM_READ_REGULAR) ? O_NONBLOCK : 0) |
				   ((flags & CM_READ_NO_LINK) ? O_NOFOLLOW : 0));
	if (fd < 0 && (flags & CM_READ_OPTIONAL) && (errno == ENOENT || errno == ENOTDIR))
		return CM_OK;
	if (fd < 0)
		return open_failed(path, errno, err);
	if (fstat(fd, &st) < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot look at '%s'", path);
	r = check_type(&st, path, flags, err);
	if (r != CM_OK)
		return r;
	text = cm_malloc(CM_JSON_MAX_BYTES + 1);
	if (!text)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	n = cm_read_all(fd, text, CM_JSON_MAX_BYTES);
	if (n == -E2BIG)
		return too_large(path, err);
	if (n < 0)
		return cm_error_set(err, CM_E_SYS, (int)-n, "cannot read '%s'", path);
	text[n] = '\0';
	*ret_text = cm_ptr_take(&text);
	*ret_len = (size_t)n;
	return CM_OK;
}
