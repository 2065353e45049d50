/* SPDX-License-Identifier: Apache-2.0 */
/* ls and stat. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "isolation/keeper/file_builtin.h"
#include "runtime/base/alloc.h"
#include "runtime/base/buf.h"
#include "runtime/base/fd.h"

/* names are sorted as far as they fit into this; a directory with more comes in sorted pieces */
#define MAX_NAMES_BYTES (8UL * 1024 * 1024)

/* A directory's entry that is shown as `shown`. */
static int put_at(struct cm_file_request *q, int dirfd, const char *name, const char *shown,
		  struct stat *st, bool follows)
{
	char target[CM_FILE_PATH_MAX + 1];
	ssize_t n = 0;
	int r;

	if (fstatat(dirfd, name, st, follows ? 0 : AT_SYMLINK_NOFOLLOW) < 0) {
		/* ls: removed since it was listed */
		if (errno == ENOENT && dirfd != AT_FDCWD)
			return 0;
		return cm_file_failed(q, CM_FILE_STEP_STAT, errno, shown);
	}
	if (S_ISLNK(st->st_mode)) {
		n = readlinkat(dirfd, name, target, sizeof(target) - 1);
		n = n < 0 ? 0 : n;
	}
	target[n] = '\0';
	r = cm_file_put_entry(&q->out, st, shown, target);
	return r == -ENAMETOOLONG ? cm_file_failed(q, CM_FILE_STEP_STAT, ENAMETOOLONG, shown) : r;
}

/* --- a directory --------------------------------------------------------------------------- */

struct names {
	/* NUL-terminated, one after the other */
	struct cm_buf text;
	const char **v;
	size_t n;
};

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Without memory for it they are not sorted: order is no promise, and what there is, is. */
static void sort(struct names *names)
{
	const char *p = names->text.data;

	names->v = cm_malloc(names->n * sizeof(*names->v) + 1);
	for (size_t i = 0; names->v && i < names->n; i++) {
		names->v[i] = p;
		p += strlen(p) + 1;
	}
	if (names->v)
		qsort(names->v, names->n, sizeof(*names->v), by_bytes);
}

static void clear(struct names *names)
{
	cm_buf_clear(&names->text);
	free(names->v);
	names->v = NULL;
	names->n = 0;
}

static bool is_dots(const char *name)
{
	return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

/* The next piece. 0, -errno; is_more: there may be another one. */
static int read_names(DIR *dir, struct names *names, bool *ret_is_more)
{
	struct dirent *entry;

	clear(names);
	cm_buf_init(&names->text, 2 * MAX_NAMES_BYTES);
	for (;;) {
		*ret_is_more = names->text.len >= MAX_NAMES_BYTES;
		if (*ret_is_more)
			break;
		errno = 0;
		entry = readdir(dir);
		if (!entry)
			break;
		if (is_dots(entry->d_name))
			continue;
		cm_buf_append(&names->text, entry->d_name, strlen(entry->d_name) + 1);
		names->n++;
	}
	if (!*ret_is_more && errno != 0)
		return -errno;
	if (cm_buf_status(&names->text) < 0)
		return -ENOMEM;
	sort(names);
	return 0;
}

static int list(struct cm_file_request *q, int fd, const char *shown, const char *prefix,
		unsigned int depth);

static int list_below(struct cm_file_request *q, int dirfd, const char *name, const char *shown,
		      unsigned int depth)
{
	int fd;

	if (depth >= CM_FILE_DEPTH_MAX)
		return cm_file_failed(q, CM_FILE_STEP_DEPTH, 0, shown);
	fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return cm_file_failed(q, CM_FILE_STEP_LIST, errno, shown);
	return list(q, fd, shown, shown, depth + 1);
}

static int put_name(struct cm_file_request *q, int dirfd, const char *name, const char *prefix,
		    unsigned int depth)
{
	CM_AUTO_FREE char *shown = prefix[0] ? cm_asprintf("%s/%s", prefix, name) : cm_strdup(name);
	struct stat st = { .st_mode = 0 };
	int r;

	if (!shown)
		return cm_file_failed(q, CM_FILE_STEP_LIST, ENOMEM, name);
	r = put_at(q, dirfd, name, shown, &st, false);
	if (r == 0 && (q->flags & CM_FILEF_RECURSIVE) != 0 && S_ISDIR(st.st_mode))
		r = list_below(q, dirfd, name, shown, depth);
	return r;
}

static int put_names(struct cm_file_request *q, int dirfd, const struct names *names,
		     const char *prefix, unsigned int depth)
{
	const char *p = names->text.data;
	int r = 0;

	for (size_t i = 0; i < names->n && r == 0; i++) {
		r = put_name(q, dirfd, names->v ? names->v[i] : p, prefix, depth);
		p += strlen(p) + 1;
		if (r == 0 && cm_file_is_stopped())
			r = -EINTR;
	}
	return r;
}

/* Takes fd. shown: what it is called where it fails; prefix: before the names of its entries. */
static int list(struct cm_file_request *q, int fd, const char *shown, const char *prefix,
		unsigned int depth)
{
	struct names names = { .n = 0 };
	DIR *dir = fdopendir(fd);
	bool is_more = true;
	int r = 0;

	if (!dir) {
		r = errno;
		cm_fd_close(&fd);
		return cm_file_failed(q, CM_FILE_STEP_LIST, r, shown);
	}
	while (is_more && r == 0) {
		r = read_names(dir, &names, &is_more);
		if (r < 0)
			r = cm_file_failed(q, CM_FILE_STEP_LIST, -r, shown);
		else
			r = put_names(q, dirfd(dir), &names, prefix, depth);
	}
	clear(&names);
	(void)closedir(dir);
	return r;
}

/* --- operations ---------------------------------------------------------------------------- */

static int list_path(struct cm_file_request *q, const char *path)
{
	struct stat st;
	int fd = -1;

	if ((q->flags & CM_FILEF_ITSELF) == 0)
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* a link to nowhere is there nevertheless */
	if (fd < 0 && (q->flags & CM_FILEF_ITSELF) == 0 && errno != ENOTDIR && errno != ENOENT &&
	    errno != ELOOP)
		return cm_file_failed(q, CM_FILE_STEP_LIST, errno, path);
	if (fd < 0)
		return put_at(q, AT_FDCWD, path, path, &st, false);
	/* of several, each name says below which it is */
	return list(q, fd, path, q->n_paths > 1 ? path : "", 0);
}

int cm_file_op_ls(struct cm_file_request *q, uint64_t *ret_value)
{
	for (size_t i = 0; i < q->n_paths; i++) {
		if (list_path(q, q->paths[i]) < 0)
			return 1;
	}
	*ret_value = 0;
	return 0;
}

int cm_file_op_stat(struct cm_file_request *q, uint64_t *ret_value)
{
	struct stat st;

	for (size_t i = 0; i < q->n_paths; i++) {
		if (put_at(q, AT_FDCWD, q->paths[i], q->paths[i], &st,
			   (q->flags & CM_FILEF_FOLLOW) != 0) < 0)
			return 1;
	}
	*ret_value = 0;
	return 0;
}
