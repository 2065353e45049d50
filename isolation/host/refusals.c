/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host paths that would hand power back if a jail could write, or even see, them. Compared by
 * device and inode along the parents: a spelling, a symbolic link or a bind mount of a refused
 * directory is that directory. (A bind mount of something below one is not found this way; only
 * host root can have made it.)
 *
 * Two kinds. Trees are refused with all that is in them: /etc, /run, our own state. The others,
 * homes and every directory that contains something refused, only themselves: a project below a
 * home is what jails are for.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "isolation/host/node.h"
#include "isolation/host/passwd.h"
#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/path.h"
#include "runtime/base/text.h"

#define MAX_DEPTH 256

static const char *const system_trees[] = {
	"/etc", "/run", "/var/run", "/proc", "/sys", "/dev", "/boot",
};

static const char *const system_directories[] = {
	"/usr", "/bin", "/sbin", "/lib", "/lib64", "/var", "/var/lib", "/home", "/tmp",
};

/* Also the directories above it: each contains something refused. */
static int add_parents(struct cm_nodes *selves, const char *path)
{
	CM_AUTO_FREE char *parent = cm_strdup(path);
	char *slash;

	if (!parent)
		return CM_E_NOMEM;
	while ((slash = strrchr(parent, '/')) && slash != parent) {
		bool is_known = false;
		struct stat st;

		*slash = '\0';
		/* its own parents came with it */
		for (size_t i = 0; i < selves->n && !is_known; i++)
			is_known = strcmp(selves->v[i].path, parent) == 0;
		if (is_known)
			return CM_OK;
		if (stat(parent, &st) == 0 && cm_nodes_add(selves, parent, &st, NULL) < 0)
			return CM_E_NOMEM;
	}
	return CM_OK;
}

/* Adds what path really is, and what contains that; a path that is not there needs no refusal. */
static int add(struct cm_nodes *nodes, struct cm_nodes *selves, const char *path)
{
	CM_AUTO_FREE char *real = NULL;
	CM_AUTO_FD int fd = -1;
	struct stat st;

	fd = cm_open(path, O_PATH | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return CM_OK;
	real = cm_fd_real_path(fd);
	if (!real && errno == ENOMEM)
		return CM_E_NOMEM;
	if (cm_nodes_add(nodes, real ? real : path, &st, NULL) < 0)
		return CM_E_NOMEM;
	return add_parents(selves, real ? real : path);
}

/* Fixed, and directly below "/": one look each. */
static int add_plain(struct cm_nodes *nodes, const char *const paths[], size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct stat st;

		if (stat(paths[i], &st) == 0 && cm_nodes_add(nodes, paths[i], &st, NULL) < 0)
			return CM_E_NOMEM;
	}
	return CM_OK;
}

/*
 * Service accounts share a few homes that stand close together in passwd: the last ones are kept, so
 * that each is looked at once, and a file of many thousand users is still read in one pass.
 */
struct homes_seen {
	char path[16][64];
	size_t next;
};

static bool is_seen(struct homes_seen *seen, const char *home)
{
	const size_t size = sizeof(seen->path[0]);
	size_t len = strlen(home);

	if (len >= size)
		return false;
	for (size_t i = 0; i < CM_ARRAY_SIZE(seen->path); i++) {
		if (strcmp(seen->path[i], home) == 0)
			return true;
	}
	memcpy(seen->path[seen->next], home, len + 1);
	seen->next = (seen->next + 1) % CM_ARRAY_SIZE(seen->path);
	return false;
}

static bool is_one_of(const char *path, const char *const paths[], size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(path, paths[i]) == 0)
			return true;
	}
	return false;
}

/* Service accounts live in system directories, which are refused as such. */
static bool is_system_home(const char *home)
{
	return home[0] != '/' || home[1] == '\0' || cm_path_is_below(home, "/var") ||
	       cm_path_is_below(home, "/usr") || cm_path_is_below(home, "/run") ||
	       is_one_of(home, system_directories, CM_ARRAY_SIZE(system_directories)) ||
	       is_one_of(home, system_trees, CM_ARRAY_SIZE(system_trees));
}

/* Of everybody: the file is as long as it is, and the last user's home is as good as the first's. */
static int add_homes(struct cm_nodes *selves, const struct cm_host *host)
{
	CM_AUTO_FREE char *text = NULL;
	struct homes_seen seen = { 0 };
	const char *next;
	char home[PATH_MAX];
	int r;

	if (add(selves, selves, host->home) < 0)
		return CM_E_NOMEM;
	r = cm_read_text_at(AT_FDCWD, "/etc/passwd", CM_PASSWD_MAX, &text);
	if (r < 0)
		return r == -ENOMEM ? CM_E_NOMEM : CM_OK;
	next = text;
	while (cm_passwd_next_home(&next, home, sizeof(home))) {
		struct stat st;

		if (is_system_home(home) || strcmp(home, host->home) == 0 || is_seen(&seen, home))
			continue;
		if (stat(home, &st) == 0 && cm_nodes_add(selves, home, &st, NULL) < 0)
			return CM_E_NOMEM;
	}
	return CM_OK;
}

/* The path of "unix:path=/x,guid=..." or "unix:///x"; false for another transport. */
static bool socket_path(const char *value, char *buf, size_t size)
{
	static const char *const prefixes[] = { "unix:path=", "unix://", "" };
	size_t len;

	for (size_t i = 0; i < CM_ARRAY_SIZE(prefixes); i++) {
		if (!cm_text_has_prefix(value, prefixes[i]))
			continue;
		value += strlen(prefixes[i]);
		len = strcspn(value, i == 0 ? ",;" : "");
		if (value[0] != '/' || len >= size)
			return false;
		memcpy(buf, value, len);
		buf[len] = '\0';
		return true;
	}
	return false;
}

static int add_sockets(struct cm_nodes *trees, struct cm_nodes *selves, const struct cm_strv *env)
{
	static const char *const variables[] = {
		"DOCKER_HOST",
		"SSH_AUTH_SOCK",
		"DBUS_SESSION_BUS_ADDRESS",
	};
	char path[PATH_MAX];

	for (size_t i = 0; i < CM_ARRAY_SIZE(variables); i++) {
		const char *value = cm_strv_env_get(env, variables[i]);

		if (value && socket_path(value, path, sizeof(path)) && add(trees, selves, path) < 0)
			return CM_E_NOMEM;
	}
	return CM_OK;
}

static int read_all(const struct cm_host *host, const struct cm_strv *env,
		    const struct cm_strv *private_dirs, struct cm_nodes *trees,
		    struct cm_nodes *selves)
{
	struct stat st;
	int r;

	r = stat("/", &st) == 0 ? cm_nodes_add(selves, "/", &st, NULL) : CM_OK;
	if (r == CM_OK)
		r = add_plain(trees, system_trees, CM_ARRAY_SIZE(system_trees));
	if (r == CM_OK)
		r = add_plain(selves, system_directories, CM_ARRAY_SIZE(system_directories));
	for (size_t i = 0; r == CM_OK && private_dirs && i < private_dirs->n; i++)
		r = add(trees, selves, private_dirs->v[i]);
	if (r == CM_OK)
		r = add_sockets(trees, selves, env);
	if (r == CM_OK)
		r = add_homes(selves, host);
	return r;
}

int cm_refusals_read(const struct cm_host *host, const struct cm_strv *caller_env,
		     const struct cm_strv *private_dirs, struct cm_refusals *ret,
		     struct cm_error *err)
{
	struct cm_refusals refusals = { 0 };
	struct cm_nodes selves = { 0 };
	struct cm_node *all;
	size_t n;

	if (read_all(host, caller_env, private_dirs, &refusals.nodes, &selves) < 0)
		goto nomem;
	/* exact: cm_nodes_add is not called on it any more */
	n = refusals.nodes.n + selves.n;
	all = cm_realloc(refusals.nodes.v, (n ? n : 1) * sizeof(*all));
	if (!all)
		goto nomem;
	if (selves.n > 0)
		memcpy(all + refusals.nodes.n, selves.v, selves.n * sizeof(*all));
	free(selves.v);
	refusals.n_trees = refusals.nodes.n;
	refusals.nodes = (struct cm_nodes){ all, n };
	*ret = refusals;
	return CM_OK;

nomem:
	cm_nodes_clear(&refusals.nodes);
	cm_nodes_clear(&selves);
	return cm_facts_nomem(err);
}

void cm_refusals_clear(struct cm_refusals *refusals)
{
	if (!refusals)
		return;
	cm_nodes_clear(&refusals->nodes);
	refusals->n_trees = 0;
}

static bool is_node(const struct cm_node *node, const struct stat *st)
{
	return node->dev == st->st_dev && node->ino == st->st_ino;
}

static const struct cm_node *find(const struct cm_refusals *refusals, size_t n,
				  const struct stat *st)
{
	for (size_t i = 0; i < n; i++) {
		if (is_node(&refusals->nodes.v[i], st))
			return &refusals->nodes.v[i];
	}
	return NULL;
}

static int refuse(const char *path, const char *what, const struct cm_node *node, bool is_self,
		  struct cm_error *err)
{
	int r = cm_error_set(err, CM_E_DENIED, 0, "refusing to use '%s' as %s", path, what);

	if (strcmp(what, "a workspace") == 0)
		cm_error_hint(err, "cd into a project, or name one with --workspace DIR");
	else if (is_self)
		cm_error_hint(err, "name the file or directory that is needed, below '%s'",
			      node->path);
	else
		cm_error_hint(err, "copy what is needed out of '%s' and name the copy", node->path);
	return r;
}

/* Opens the directory to begin at: path itself, or what a file lies in. */
static int open_start(const char *path, struct stat *ret_st, int *ret_dir)
{
	CM_AUTO_FREE char *real = NULL;
	CM_AUTO_FD int fd = cm_open(path, O_PATH | O_CLOEXEC);
	struct stat st;
	char *slash;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode)) {
		real = cm_fd_real_path(fd);
		slash = real ? strrchr(real, '/') : NULL;
		if (!slash)
			return -ENOENT;
		slash[slash == real] = '\0';
		cm_fd_close(&fd);
		fd = cm_open(real, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			return -errno;
	}
	*ret_st = st;
	*ret_dir = cm_fd_take(&fd);
	return 0;
}

static bool is_allowed(const char *allow, const struct stat *st)
{
	struct stat ours;

	return allow && lstat(allow, &ours) == 0 && S_ISDIR(ours.st_mode) &&
	       ours.st_dev == st->st_dev && ours.st_ino == st->st_ino;
}

int cm_refusals_check(const struct cm_refusals *refusals, const char *path, const char *what,
		      const char *allow, struct cm_error *err)
{
	const struct cm_node *node;
	CM_AUTO_FD int dir = -1;
	struct stat before;
	struct stat st = { 0 };
	int r;

	r = open_start(path, &st, &dir);
	if (r < 0) {
		int code = r == -ENOENT || r == -ENOTDIR ? CM_E_NOT_FOUND : CM_E_SYS;

		cm_error_set(err, code, -r, "cannot use '%s' as %s", path, what);
		cm_error_hint(err, "name a file or directory that exists and that you can reach");
		return code;
	}
	node = find(refusals, refusals->nodes.n, &st);
	if (node)
		return refuse(path, what, node, true, err);
	for (unsigned int depth = 0; depth < MAX_DEPTH; depth++) {
		int up;

		if (fstat(dir, &before) < 0)
			break;
		if (is_allowed(allow, &before))
			return CM_OK;
		node = find(refusals, refusals->n_trees, &before);
		if (node)
			return refuse(path, what, node, false, err);
		up = openat(dir, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (up < 0 || fstat(up, &st) < 0) {
			cm_fd_close(&up);
			break;
		}
		cm_fd_close(&dir);
		dir = up;
		if (st.st_dev == before.st_dev && st.st_ino == before.st_ino)
			return CM_OK;
	}
	/* not followed to the top: nothing is known about what contains it */
	cm_error_set(err, CM_E_DENIED, errno, "cannot look at the directories above '%s'", path);
	cm_error_hint(err, "use a directory whose parents you can search");
	return CM_E_DENIED;
}
