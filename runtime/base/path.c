/* SPDX-License-Identifier: Apache-2.0 */
/* Path text, resolution, and directories that must be ours. */
#include "runtime/base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/buf.h"
#include "runtime/base/fd.h"

/* as the kernel's own limit */
#define MAX_LINKS 40

char *cm_path_join(const char *a, const char *b)
{
	size_t len = strlen(a);

	if (*b == '/' || len == 0)
		return cm_strdup(b);
	if (*b == '\0')
		return cm_strdup(a);
	while (len > 0 && a[len - 1] == '/')
		len--;
	return cm_asprintf("%.*s/%s", (int)len, a, b);
}

/* Remove the last component of a clean path's text of length len; the new length. */
static size_t pop_component(const char *text, size_t len)
{
	while (len > 0 && text[len - 1] != '/')
		len--;
	return len > 0 ? len - 1 : 0;
}

/* The component at *path, which moves behind it; its length, 0 at the end. */
static size_t next_component(const char **path, const char **ret_start)
{
	const char *p = *path;
	size_t len;

	while (*p == '/')
		p++;
	len = strcspn(p, "/");
	*ret_start = p;
	*path = p + len;
	return len;
}

static bool is_dot(const char *s, size_t len)
{
	return len == 1 && s[0] == '.';
}

static bool is_dot_dot(const char *s, size_t len)
{
	return len == 2 && s[0] == '.' && s[1] == '.';
}

char *cm_path_clean(const char *path)
{
	char out[PATH_MAX];
	size_t out_len = 0;
	const char *part;
	size_t len;

	if (!path || *path != '/') {
		errno = EINVAL;
		return NULL;
	}
	if (strlen(path) >= sizeof(out)) {
		errno = ENAMETOOLONG;
		return NULL;
	}
	while ((len = next_component(&path, &part)) > 0) {
		if (is_dot(part, len))
			continue;
		if (is_dot_dot(part, len)) {
			out_len = pop_component(out, out_len);
			continue;
		}
		/* fits: each component is written with at most the '/' it was read with */
		out[out_len++] = '/';
		memcpy(out + out_len, part, len);
		out_len += len;
	}
	if (out_len == 0)
		out[out_len++] = '/';
	out[out_len] = '\0';
	return cm_strdup(out);
}

bool cm_path_is_below(const char *path, const char *dir)
{
	size_t len = strlen(dir);

	if (strcmp(dir, "/") == 0)
		return *path == '/';
	return strncmp(path, dir, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

const char *cm_path_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] != '\0' ? slash + 1 : path;
}

/*
 * Resolution with a descriptor that walks along, for what is longer than PATH_MAX as a text and
 * so cannot be given to the kernel in one piece.
 */
struct resolver {
	int fd;
	/* the way from "/" to fd; "" is "/" itself */
	struct cm_buf text;
	char *rest;
	unsigned int n_links;
};

static int enter(struct resolver *r, const char *name, int flags)
{
	int fd = openat(r->fd, name, O_PATH | O_CLOEXEC | flags);

	if (fd < 0)
		return -errno;
	cm_fd_close(&r->fd);
	r->fd = fd;
	return 0;
}

static int follow_link(struct resolver *r, int link_fd, const char *after)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(link_fd, "", target, sizeof(target) - 1);
	char *rest;

	if (n < 0)
		return -errno;
	if (n == 0)
		return -ENOENT;
	if (++r->n_links > MAX_LINKS)
		return -ELOOP;
	target[n] = '\0';
	rest = cm_asprintf("%s%s", target, after);
	if (!rest)
		return -ENOMEM;
	free(r->rest);
	r->rest = rest;
	if (target[0] != '/')
		return 0;
	r->text.len = 0;
	return enter(r, "/", O_DIRECTORY);
}

/* One component of r->rest. `after` points behind it. */
static int resolve_component(struct resolver *r, const char *part, size_t len, const char *after)
{
	CM_AUTO_FD int fd = -1;
	char name[NAME_MAX + 1];
	struct stat st;

	if (is_dot_dot(part, len)) {
		r->text.len = pop_component(r->text.data, r->text.len);
		return enter(r, "..", O_DIRECTORY);
	}
	if (len > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, part, len);
	name[len] = '\0';
	fd = openat(r->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (S_ISLNK(st.st_mode))
		return follow_link(r, fd, after);
	if (*after != '\0' && !S_ISDIR(st.st_mode))
		return -ENOTDIR;
	cm_buf_putc(&r->text, '/');
	cm_buf_puts(&r->text, name);
	cm_fd_close(&r->fd);
	r->fd = cm_fd_take(&fd);
	return cm_buf_status(&r->text) == CM_OK ? 0 : -ENOMEM;
}

static int resolve_all(struct resolver *r)
{
	const char *at = r->rest;
	const char *part;
	size_t len;

	while ((len = next_component(&at, &part)) > 0) {
		const char *before = r->rest;
		int e = is_dot(part, len) ? 0 : resolve_component(r, part, len, at);

		if (e < 0)
			return e;
		/* a link has put its target in front of what is left */
		if (r->rest != before)
			at = r->rest;
	}
	return 0;
}

static int resolver_start(struct resolver *r, const char *path)
{
	char cwd[PATH_MAX];

	cm_buf_init(&r->text, SIZE_MAX / 8);
	/* allocated even where the result is "/" */
	cm_buf_puts(&r->text, "");
	r->rest = cm_strdup(path);
	if (!r->rest || cm_buf_status(&r->text) != CM_OK)
		return -ENOMEM;
	if (*path != '/') {
		if (!getcwd(cwd, sizeof(cwd)))
			return -errno;
		cm_buf_puts(&r->text, strcmp(cwd, "/") == 0 ? "" : cwd);
	}
	r->fd = cm_open(*path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return r->fd < 0 ? -errno : 0;
}

static char *resolve_long(const char *path)
{
	struct resolver r = { .fd = -1 };
	char *result = NULL;
	int e = resolver_start(&r, path);

	if (e == 0)
		e = resolve_all(&r);
	if (e == 0 && r.text.len == 0)
		cm_buf_putc(&r.text, '/');
	if (e == 0) {
		result = cm_buf_take(&r.text);
		e = result ? 0 : -ENOMEM;
	}
	cm_fd_close(&r.fd);
	free(r.rest);
	cm_buf_clear(&r.text);
	if (e < 0)
		errno = -e;
	return result;
}

char *cm_path_real(const char *path)
{
	char out[PATH_MAX];

	if (realpath(path, out))
		return cm_strdup(out);
	return errno == ENAMETOOLONG ? resolve_long(path) : NULL;
}

static int make_dirs_failed(const char *path, size_t len, int sys_errno, struct cm_error *err)
{
	int shown = len > PATH_MAX ? PATH_MAX : (int)len;

	switch (sys_errno) {
	case ENOTDIR:
	case ELOOP:
		cm_error_set(
			err, CM_E_EXISTS, sys_errno,
			"cannot make directory '%s': '%.*s' is a symbolic link or not a directory",
			path, shown, path);
		cm_error_hint(err, "remove '%.*s', or name the real path instead", shown, path);
		return CM_E_EXISTS;
	case EACCES:
	case EPERM:
	case EROFS:
		cm_error_set(err, CM_E_DENIED, sys_errno, "cannot make directory '%.*s'", shown,
			     path);
		cm_error_hint(err, "choose a place that this user may write, or change '%.*s'",
			      shown, path);
		return CM_E_DENIED;
	default:
		cm_error_set(err, CM_E_SYS, sys_errno, "cannot make directory '%.*s'", shown, path);
		cm_error_hint(err, "check the file system that holds '%.*s'", shown, path);
		return CM_E_SYS;
	}
}

/* Open name below *at, made when absent; *at is replaced. 0 or -errno. */
static int make_and_enter(int *at, const char *name, mode_t mode)
{
	const int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(*at, name, flags);

	if (fd < 0 && errno == ENOENT) {
		/* somebody else may make it at the same time, which is as good */
		if (mkdirat(*at, name, mode) < 0 && errno != EEXIST)
			return -errno;
		fd = openat(*at, name, flags);
	}
	if (fd < 0)
		return -errno;
	cm_fd_close(at);
	*at = fd;
	return 0;
}

static int make_dirs(const char *path, mode_t mode, int *ret_fd, struct cm_error *err)
{
	CM_AUTO_FD int at = -1;
	const char *rest = path;
	const char *part;
	size_t len;

	if (*path == '\0') {
		cm_error_set(err, CM_E_INVALID, 0, "cannot make directory '': the path is empty");
		cm_error_hint(err, "name a directory");
		return CM_E_INVALID;
	}
	at = cm_open(*path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (at < 0)
		return make_dirs_failed(path, 1, errno, err);
	while ((len = next_component(&rest, &part)) > 0) {
		char name[NAME_MAX + 1];
		int r;

		if (is_dot(part, len))
			continue;
		if (is_dot_dot(part, len)) {
			cm_error_set(err, CM_E_INVALID, 0,
				     "cannot make directory '%s': it goes through '..'", path);
			cm_error_hint(err, "name the directory without '..'");
			return CM_E_INVALID;
		}
		if (len > NAME_MAX)
			return make_dirs_failed(path, (size_t)(rest - path), ENAMETOOLONG, err);
		memcpy(name, part, len);
		name[len] = '\0';
		r = make_and_enter(&at, name, mode);
		if (r < 0)
			return make_dirs_failed(path, (size_t)(rest - path), -r, err);
	}
	*ret_fd = cm_fd_take(&at);
	return CM_OK;
}

int cm_path_make_dirs(const char *path, mode_t mode, struct cm_error *err)
{
	CM_AUTO_FD int fd = -1;

	return make_dirs(path, mode, &fd, err);
}

int cm_path_open_private_dir(const char *path, int *ret_fd, struct cm_error *err)
{
	CM_AUTO_FD int at = -1;
	CM_AUTO_FD int fd = -1;
	struct stat st;
	int r = make_dirs(path, 0700, &at, err);

	if (r != CM_OK)
		return r;
	/* checked through the descriptor that is used, so that it cannot be swapped in between */
	if (fstat(at, &st) < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot look at directory '%s'", path);
	if (st.st_uid != geteuid()) {
		cm_error_set(err, CM_E_DENIED, 0,
			     "cannot use directory '%s': it belongs to uid %u, not to uid %u", path,
			     (unsigned int)st.st_uid, (unsigned int)geteuid());
		cm_error_hint(err, "remove '%s', or run as its owner", path);
		return CM_E_DENIED;
	}
	if ((st.st_mode & 077) != 0) {
		cm_error_set(err, CM_E_DENIED, 0,
			     "cannot use directory '%s': others may access it (mode %04o)", path,
			     (unsigned int)(st.st_mode & 07777));
		cm_error_hint(err, "see what is in it, then run: chmod 700 '%s'", path);
		return CM_E_DENIED;
	}
	fd = openat(at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		cm_error_set(err, CM_E_SYS, errno, "cannot open directory '%s'", path);
		cm_error_hint(err, "run: chmod 700 '%s'", path);
		return CM_E_SYS;
	}
	*ret_fd = cm_fd_take(&fd);
	return CM_OK;
}

/* What git takes for a repository: a gitfile, or a directory with these two. */
static bool has_git(const char *dir)
{
	char path[PATH_MAX];
	struct stat st;
	int n;

	n = snprintf(path, sizeof(path), "%s/.git", dir[1] ? dir : "");
	if (n < 0 || (size_t)n + sizeof("/objects") > sizeof(path) || stat(path, &st) < 0)
		return false;
	if (S_ISREG(st.st_mode))
		return true;
	(void)memcpy(path + n, "/HEAD", sizeof("/HEAD"));
	if (!S_ISDIR(st.st_mode) || lstat(path, &st) < 0)
		return false;
	(void)memcpy(path + n, "/objects", sizeof("/objects"));
	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

char *cm_path_git_top(const char *dir)
{
	char *top = cm_strdup(dir);
	char *slash;

	if (!top)
		return NULL;
	for (;;) {
		if (has_git(top))
			return top;
		slash = strrchr(top, '/');
		if (!slash || slash == top)
			break;
		*slash = '\0';
	}
	free(top);
	return cm_strdup(dir);
}
