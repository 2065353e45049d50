/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user's toolchains (tools.def), PATH and certificates. Whoever can write a tool can make the
 * agent run something, so what others may write is left out with a note.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "isolation/host/node.h"
#include "isolation/host/tree_internal.h"
#include "runtime/base/fd.h"
#include "runtime/base/kernel.h"
#include "runtime/base/path.h"

#define MAX_PATH_ENTRIES 128

struct tool {
	const char *name;
	const char *variable;
	const char *base;
	const char *entry;
};

static const struct tool tools[] = {
#define CM_TOOL(tool, variable, base, entry) { tool, variable, base, entry },
#include "isolation/plan/tools.def"
#undef CM_TOOL
};

static const struct tool roots[] = {
#define CM_TOOL_ROOT(tool, path) { tool, "", path, "" },
#include "isolation/plan/tools.def"
#undef CM_TOOL_ROOT
};

static const char *const certificate_variables[] = {
	"SSL_CERT_FILE", "SSL_CERT_DIR",   "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE",
	"PIP_CERT",	 "CURL_CA_BUNDLE", "GIT_SSL_CAINFO",	  "AWS_CA_BUNDLE",
};

static bool others_can_write(struct cm_tree_reader *reader, const struct stat *st)
{
	if (st->st_uid != 0 && st->st_uid != reader->host->uid)
		return true;
	/* as in /nix/store: others may add a name, but not replace one */
	if ((st->st_mode & S_ISVTX) != 0)
		return false;
	if ((st->st_mode & S_IWOTH) != 0)
		return true;
	return (st->st_mode & S_IWGRP) != 0 && !cm_private_groups_has(&reader->groups, st->st_gid);
}

static int note(struct cm_tree_reader *reader, const char *tool, const char *path)
{
	return cm_strv_addf(&reader->facts->notes,
			    "'%s' of %s is not shown: others can write to it", path, tool);
}

/* The directory that a tool's rows are below; -1 for none. */
static int base_path(struct cm_tree_reader *reader, const struct tool *tool, char *path,
		     size_t size)
{
	const char *moved = NULL;
	size_t n;

	if (tool->variable[0] != '\0')
		moved = cm_strv_env_get(reader->env, tool->variable);
	if (tool->base[0] == '/')
		moved = tool->base;
	else if (!moved || moved[0] != '/' || strstr(moved, "/.."))
		moved = NULL;
	if (!cm_join(path, size, moved ? moved : reader->host->home, moved ? "" : tool->base))
		return -1;
	for (n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
		path[n - 1] = '\0';
	/* what is below /usr is shown with it */
	if (cm_path_is_below(path, "/usr"))
		return -1;
	return 0;
}

/*
 * *ret_real is path itself where no component is a link: the kernel says so while it opens, which
 * is cheaper than asking it for the name afterwards.
 */
static int open_real(const char *path, char **ret_real)
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
				.resolve = RESOLVE_NO_SYMLINKS };
	int fd = cm_sys_openat2(AT_FDCWD, path, &how);

	if (fd >= 0) {
		*ret_real = cm_strdup(path);
		return fd;
	}
	if (errno != ELOOP)
		return -1;
	fd = cm_open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		*ret_real = cm_fd_real_path(fd);
	return fd;
}

/*
 * An entry that is a link is mounted from where it leads; any other has the base's real path
 * before it, which is looked up once for all.
 */
static int add_tool(struct cm_tree_reader *reader, const struct tool *tool, int base_fd,
		    const char *base, const char *real_base)
{
	const char *path = base;
	const char *real = real_base;
	CM_AUTO_FREE char *link = NULL;
	CM_AUTO_FD int fd = -1;
	char path_buf[PATH_MAX];
	char real_buf[PATH_MAX];
	struct stat st;

	if (fstatat(base_fd, tool->entry, &st, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) < 0)
		return CM_OK;
	if (tool->entry[0] != '\0') {
		if (!cm_join(path_buf, sizeof(path_buf), base, tool->entry) ||
		    !cm_join(real_buf, sizeof(real_buf), real_base, tool->entry))
			return CM_OK;
		path = path_buf;
		real = real_buf;
	}
	if (S_ISLNK(st.st_mode)) {
		fd = openat(base_fd, tool->entry, O_PATH | O_CLOEXEC);
		if (fd < 0 || fstat(fd, &st) < 0)
			return CM_OK;
		link = cm_fd_real_path(fd);
		if (!link)
			return CM_E_NOMEM;
		real = link;
	}
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return CM_OK;
	if (others_can_write(reader, &st))
		return note(reader, tool->name, path);
	return cm_nodes_add(&reader->facts->tools, path, &st,
			    strcmp(real, path) == 0 ? NULL : real);
}

struct base {
	const char *name;
	int fd;
	char *real;
	char path[PATH_MAX];
};

static void close_base(struct base *base)
{
	cm_fd_close(&base->fd);
	free(cm_ptr_take(&base->real));
}

/* Rows of one base stand together, so that it is opened once. */
static int change_base(struct cm_tree_reader *reader, const struct tool *tool, struct base *base)
{
	struct stat st;

	close_base(base);
	base->name = tool->base;
	if (base_path(reader, tool, base->path, sizeof(base->path)) < 0)
		return CM_OK;
	base->fd = open_real(base->path, &base->real);
	if (base->fd < 0)
		return CM_OK;
	if (!base->real || fstat(base->fd, &st) < 0)
		return CM_E_NOMEM;
	/* the home itself is named by the caller and not by a table */
	if (tool->base[0] != '\0' && others_can_write(reader, &st)) {
		close_base(base);
		return note(reader, tool->name, base->path);
	}
	return CM_OK;
}

static int read_tools(struct cm_tree_reader *reader, const struct tool *table, size_t n)
{
	struct base base = { .fd = -1 };
	int r = CM_OK;

	for (size_t i = 0; r == CM_OK && i < n; i++) {
		if (!base.name || strcmp(base.name, table[i].base) != 0)
			r = change_base(reader, &table[i], &base);
		if (r == CM_OK && base.fd >= 0)
			r = add_tool(reader, &table[i], base.fd, base.path, base.real);
	}
	close_base(&base);
	return r;
}

int cm_tree_tools_read(struct cm_tree_reader *reader)
{
	int r = read_tools(reader, tools, CM_ARRAY_SIZE(tools));

	return r < 0 ? r : read_tools(reader, roots, CM_ARRAY_SIZE(roots));
}

static bool is_below_any(const struct cm_nodes *nodes, const char *path)
{
	for (size_t i = 0; i < nodes->n; i++) {
		if (cm_path_is_below(path, nodes->v[i].path))
			return true;
	}
	return false;
}

/* Only an entry that is not shown under its own name needs to be looked up by where it leads, as
 * fnm's links in /run. With a rootfs a link is not followed: it could lead out of it. */
static int add_path_entry(struct cm_tree_reader *reader, const char *entry)
{
	const struct cm_tree_facts *facts = reader->facts;
	struct cm_nodes *path = &reader->facts->path;
	bool is_shown = facts->root || is_below_any(&facts->top, entry) ||
			is_below_any(&facts->tools, entry);
	const char *name = facts->root ? entry + 1 : entry;
	struct stat st;
	int r;

	for (size_t i = 0; i < path->n; i++) {
		if (strcmp(path->v[i].path, entry) == 0)
			return CM_OK;
	}
	if (is_shown) {
		if (fstatat(reader->root_fd, name, &st, 0) < 0 || !S_ISDIR(st.st_mode))
			return CM_OK;
		return cm_nodes_add(path, entry, &st, NULL);
	}
	r = cm_tree_add_real(path, AT_FDCWD, entry, entry);
	if (r < 0)
		return r;
	if (r == 1 && path->v[path->n - 1].type != CM_NODE_DIR)
		cm_node_clear(&path->v[--path->n]);
	return CM_OK;
}

/* fn for each part of a list separated by ':'; a relative part names nothing inside. */
static int each_part(struct cm_tree_reader *reader, const char *list,
		     int (*fn)(struct cm_tree_reader *reader, const char *part))
{
	char part[PATH_MAX];

	for (size_t n = 0; list && *list && n < MAX_PATH_ENTRIES; n++) {
		size_t len = strcspn(list, ":");

		if (len < sizeof(part) && list[0] == '/') {
			memcpy(part, list, len);
			while (len > 1 && part[len - 1] == '/')
				len--;
			part[len] = '\0';
			if (!strstr(part, "/../") && fn(reader, part) < 0)
				return CM_E_NOMEM;
		}
		list += strcspn(list, ":");
		if (*list == ':')
			list++;
	}
	return CM_OK;
}

static int add_certificate(struct cm_tree_reader *reader, const char *path)
{
	struct cm_nodes *nodes = &reader->facts->certificates;

	if (is_below_any(nodes, path) ||
	    (!reader->facts->root &&
	     (is_below_any(&reader->facts->top, path) || is_below_any(&reader->facts->etc, path))))
		return CM_OK;
	return cm_tree_add_real(nodes, AT_FDCWD, path, path) < 0 ? CM_E_NOMEM : CM_OK;
}

int cm_tree_path_read(struct cm_tree_reader *reader)
{
	return each_part(reader, cm_strv_env_get(reader->env, "PATH"), add_path_entry);
}

int cm_tree_certificates_read(struct cm_tree_reader *reader)
{
	int r = CM_OK;

	for (size_t i = 0; r == CM_OK && i < CM_ARRAY_SIZE(certificate_variables); i++)
		r = each_part(reader, cm_strv_env_get(reader->env, certificate_variables[i]),
			      add_certificate);
	return r;
}
