/* SPDX-License-Identifier: Apache-2.0 */
/* A path of this side, one component at a time. */
#include "providers/local/host_path.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/fd.h"

#define MAX_LEVELS 256U
#define MAX_LINKS 40U

struct walk {
	/* each the directory in the one before: ".." is the one that it was come to from, wherever
	 * somebody has moved it since */
	int fds[MAX_LEVELS];
	size_t n;
	unsigned int n_links;
	/* what is to come */
	char rest[2 * PATH_MAX];
};

static void pop(struct walk *w)
{
	cm_fd_close(&w->fds[--w->n]);
}

static void clear(struct walk *w)
{
	while (w->n > 0)
		pop(w);
}

static int push(struct walk *w, int fd)
{
	if (fd < 0)
		return -errno;
	if (w->n == MAX_LEVELS) {
		cm_fd_close(&fd);
		return -ENAMETOOLONG;
	}
	w->fds[w->n++] = fd;
	return 0;
}

static int go_up(struct walk *w)
{
	int fd;

	if (w->n > 1) {
		pop(w);
		return 0;
	}
	/* above where it began */
	fd = openat(w->fds[0], "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
	pop(w);
	return push(w, fd);
}

static int begin(struct walk *w, bool is_absolute)
{
	clear(w);
	return push(w, open(is_absolute ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
}

/*
 * Whose it is says nothing: with an id map of its own a mount shows what a jail makes as root's. In the
 * root directory no jail writes.
 */
static bool is_in_root(const struct walk *w)
{
	struct stat here;
	struct stat root;

	return fstat(w->fds[w->n - 1], &here) == 0 && stat("/", &root) == 0 &&
	       here.st_ino == root.st_ino && here.st_dev == root.st_dev && root.st_uid == 0 &&
	       (root.st_mode & 022) == 0;
}

/* The link `fd` in the last directory: its target comes before the rest. */
static int follow(struct walk *w, int fd)
{
	char target[PATH_MAX];
	size_t len;
	ssize_t n;

	if (!is_in_root(w) || ++w->n_links > MAX_LINKS)
		return -ELOOP;
	n = readlinkat(fd, "", target, sizeof(target));
	if (n <= 0)
		return n < 0 ? -errno : -ENOENT;
	len = strlen(w->rest);
	if ((size_t)n + 1 + len >= sizeof(w->rest))
		return -ENAMETOOLONG;
	memmove(w->rest + n + 1, w->rest, len + 1);
	memcpy(w->rest, target, (size_t)n);
	w->rest[n] = '/';
	return target[0] == '/' ? begin(w, true) : 0;
}

static int enter(struct walk *w, const char *name)
{
	CM_AUTO_FD int fd = openat(w->fds[w->n - 1], name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (S_ISLNK(st.st_mode))
		return follow(w, fd);
	return S_ISDIR(st.st_mode) ? push(w, cm_fd_take(&fd)) : -ENOTDIR;
}

/* The first component of the rest, and what follows it is the rest then. */
static int take_component(struct walk *w, char name[NAME_MAX + 1])
{
	size_t begin_at = strspn(w->rest, "/");
	size_t len = strcspn(w->rest + begin_at, "/");

	if (len > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, w->rest + begin_at, len);
	name[len] = '\0';
	memmove(w->rest, w->rest + begin_at + len, strlen(w->rest + begin_at + len) + 1);
	return 0;
}

/* All of path. A descriptor, or -errno. */
static int walk(const char *path)
{
	static struct walk the_walk;
	struct walk *w = &the_walk;
	char name[NAME_MAX + 1];
	int fd = -1;
	int r;

	if (strlen(path) >= PATH_MAX)
		return -ENAMETOOLONG;
	w->n_links = 0;
	memcpy(w->rest, path, strlen(path) + 1);
	r = begin(w, path[0] == '/');
	while (r == 0 && w->rest[strspn(w->rest, "/")] != '\0') {
		r = take_component(w, name);
		if (r < 0 || strcmp(name, ".") == 0)
			continue;
		r = strcmp(name, "..") == 0 ? go_up(w) : enter(w, name);
	}
	if (r == 0) {
		fd = openat(w->fds[w->n - 1], ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		r = fd < 0 ? -errno : 0;
	}
	clear(w);
	return r < 0 ? r : fd;
}

int cm_host_path_open_dir(const char *path)
{
	return path[0] == '\0' ? -ENOENT : walk(path);
}

int cm_host_path_open_parent(const char *path, char base[NAME_MAX + 1], bool *ret_wants_dir)
{
	char text[PATH_MAX];
	size_t len = strlen(path);
	size_t at;

	*ret_wants_dir = false;
	if (len >= sizeof(text))
		return -ENAMETOOLONG;
	if (len == 0)
		return -ENOENT;
	memcpy(text, path, len + 1);
	while (len > 1 && text[len - 1] == '/') {
		*ret_wants_dir = true;
		text[--len] = '\0';
	}
	at = len;
	while (at > 0 && text[at - 1] != '/')
		at--;
	if (len - at > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(base, text + at, len - at + 1);
	if (base[0] == '\0' || strcmp(base, ".") == 0 || strcmp(base, "..") == 0)
		return -EISDIR;
	text[at] = '\0';
	return walk(at == 0 ? "." : text);
}
