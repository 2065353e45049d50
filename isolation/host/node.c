/* SPDX-License-Identifier: Apache-2.0 */
/* Files as the planner sees them: type, identity, owner; and bounded reading of small ones. */
#include "isolation/host/node.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/path.h"

#define MIN_NODES 16U

int cm_facts_nomem(struct cm_error *err)
{
	return cm_error_set(err, CM_E_NOMEM, 0, "no memory to look at this host's files");
}

void cm_node_clear(struct cm_node *node)
{
	if (!node)
		return;
	free(node->path);
	free(node->link);
	*node = (struct cm_node){ 0 };
}

void cm_nodes_clear(struct cm_nodes *nodes)
{
	if (!nodes)
		return;
	for (size_t i = 0; i < nodes->n; i++)
		cm_node_clear(&nodes->v[i]);
	free(nodes->v);
	*nodes = (struct cm_nodes){ 0 };
}

static enum cm_node_type type_of(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFDIR:
		return CM_NODE_DIR;
	case S_IFREG:
		return CM_NODE_FILE;
	case S_IFLNK:
		return CM_NODE_SYMLINK;
	default:
		return CM_NODE_OTHER;
	}
}

static void fill(struct cm_node *node, const struct stat *st)
{
	node->type = type_of(st->st_mode);
	node->dev = st->st_dev;
	node->ino = st->st_ino;
	node->uid = st->st_uid;
	node->gid = st->st_gid;
	node->mode = st->st_mode & 07777;
	node->size = (uint64_t)st->st_size;
	node->ctime_ns = cm_stat_changed_ns(st);
}

/* Grown at 0, 16, 64, 256, ... elements: the number is its own capacity. */
static bool is_full(size_t n)
{
	while (n > MIN_NODES && n % 4 == 0)
		n /= 4;
	return n == 0 || n == MIN_NODES;
}

int cm_nodes_add(struct cm_nodes *nodes, const char *path, const struct stat *st, const char *link)
{
	struct cm_node node = { 0 };
	struct cm_node *v;

	if (is_full(nodes->n)) {
		v = cm_realloc(nodes->v, (nodes->n ? nodes->n * 4 : MIN_NODES) * sizeof(*v));
		if (!v)
			return CM_E_NOMEM;
		nodes->v = v;
	}
	fill(&node, st);
	node.path = cm_strdup(path);
	node.link = cm_strdup(link);
	if (!node.path || (link && !node.link)) {
		cm_node_clear(&node);
		return CM_E_NOMEM;
	}
	nodes->v[nodes->n++] = node;
	return CM_OK;
}

int cm_nodes_add_path(struct cm_nodes *nodes, int dirfd, const char *name, const char *path)
{
	char link[PATH_MAX];
	struct stat st;
	ssize_t n;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (!S_ISLNK(st.st_mode))
		return cm_nodes_add(nodes, path, &st, NULL) < 0 ? CM_E_NOMEM : 1;
	n = readlinkat(dirfd, name, link, sizeof(link) - 1);
	if (n <= 0)
		return 0;
	link[n] = '\0';
	return cm_nodes_add(nodes, path, &st, link) < 0 ? CM_E_NOMEM : 1;
}

bool cm_join(char *buf, size_t size, const char *dir, const char *name)
{
	size_t nd = strlen(dir);
	size_t nn = strlen(name);

	if (nd + nn + 2 > size)
		return false;
	memcpy(buf, dir, nd);
	buf[nd] = '/';
	memcpy(buf + nd + 1, name, nn);
	buf[nd + 1 + nn] = '\0';
	return true;
}

char *cm_fd_real_path(int fd)
{
	char name[64];
	char path[PATH_MAX];
	ssize_t n;

	(void)snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	/* one call, where realpath would make one for each component */
	n = readlink(name, path, sizeof(path) - 1);
	if (n < 0)
		return NULL;
	path[n] = '\0';
	/* "(unreachable)..." is outside this process' root */
	if (path[0] != '/') {
		errno = ENOENT;
		return NULL;
	}
	return cm_strdup(path);
}

int cm_node_read(const char *path, struct cm_node *ret, struct cm_error *err)
{
	struct cm_node node = { 0 };
	CM_AUTO_FD int fd = -1;
	struct stat st;
	int r;

	fd = cm_open(path, O_PATH | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0) {
		r = errno == ENOENT || errno == ENOTDIR ? CM_E_NOT_FOUND : CM_E_SYS;
		cm_error_set(err, r, errno, "cannot find '%s'", path);
		cm_error_hint(err, "name a file or directory that exists and that you can reach");
		return r;
	}
	fill(&node, &st);
	node.path = cm_fd_real_path(fd);
	if (!node.path)
		return cm_error_set(err, CM_E_SYS, errno, "cannot find the real path of '%s'",
				    path);
	*ret = node;
	return CM_OK;
}

/*
 * Opens a regular file for reading; fd or -errno. What it is is seen before it is opened: names of a
 * tree may lead anywhere, and of a FIFO or a device the opening itself is an act.
 */
static int open_regular_at(int dirfd, const char *path)
{
	CM_AUTO_FD int fd = openat(dirfd, path, O_PATH | O_CLOEXEC);
	char name[sizeof("/proc/self/fd/") + 12];
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	(void)snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	/* O_NONBLOCK: not to wait for who has a lease on it */
	r = cm_open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return r < 0 ? -errno : r;
}

int cm_read_text_at(int dirfd, const char *path, size_t max, char **ret)
{
	CM_AUTO_FREE char *text = NULL;
	CM_AUTO_FD int fd = -1;
	struct stat st;
	ssize_t n;

	fd = open_regular_at(dirfd, path);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size < 0 || (uint64_t)st.st_size > max)
		return -E2BIG;
	text = cm_malloc((size_t)st.st_size + 1);
	if (!text)
		return -ENOMEM;
	n = cm_read_all(fd, text, (size_t)st.st_size);
	if (n < 0)
		return (int)n;
	text[n] = '\0';
	if (strlen(text) != (size_t)n)
		return -EINVAL;
	*ret = cm_ptr_take(&text);
	return 0;
}
