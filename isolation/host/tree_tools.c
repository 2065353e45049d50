/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user's toolchains (tools.def), PATH and certificates. Whoever can write a tool can make the
 * agent run something, so what others may write is left out with a note.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "isolation/host/node.h"
#include "isolation/host/tree_internal.h"
#include "runtime/base/fd.h"
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

static bool others_can_write(const struct cm_host *host, const struct stat *st)
{
	if (st->st_uid != 0 && st->st_uid != host->uid)
		return true;
	/* as in /nix/store: others may add a name, but not replace one */
	if ((st->st_mode & S_ISVTX) != 0)
		return false;
	if ((st->st_mode & S_IWOTH) != 0)
		return true;
	/* a user's own primary group is not another's, as where umask is 002 */
	return (st->st_mode & S_IWGRP) != 0 && st->st_gid != host->gid && st->st_gid != 0;
}

static int note(struct cm_tree_reader *reader, const char *tool, const char *path)
{
	return cm_strv_addf(&reader->facts->notes,
			    "'%s' of %s is not shown: others can write to it", path, tool);
}

/* The directory a tool's rows are below, opened once for all of them; -1 when it is not there. */
static int open_base(struct cm_tree_reader *reader, const struct tool *tool, char *path,
		     size_t size)
{
	const char *moved = NULL;
	int n;

	if (tool->variable[0] != '\0')
		moved = cm_strv_env_get(reader->env, tool->variable);
	if (tool->base[0] == '/')
		n = snprintf(path, size, "%s", tool->base);
	else if (moved && moved[0] == '/' && !strstr(moved, "/.."))
		n = snprintf(path, size, "%s", moved);
	else
		n = snprintf(path, size, "%s%s%s", reader->host->home, tool->base[0] ? "/" : "",
			     tool->base);
	if (n < 0 || (size_t)n >= size)
		return -1;
	while (n > 1 && path[n - 1] == '/')
		path[--n] = '\0';
	/* what is below /usr is shown with it */
	if (cm_path_is_below(path, "/usr"))
		return -1;
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static int add_tool(struct cm_tree_reader *reader, const struct tool *tool, int base_fd,
		    const char *base)
{
	const char *name = tool->entry[0] ? tool->entry : ".";
	CM_AUTO_FREE char *real = NULL;
	CM_AUTO_FD int fd = -1;
	char path[PATH_MAX];
	struct stat st;
	int n;

	n = snprintf(path, sizeof(path), "%s%s%s", base, tool->entry[0] ? "/" : "", tool->entry);
	if (n < 0 || (size_t)n >= sizeof(path))
		return CM_OK;
	fd = openat(base_fd, name, O_PATH | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)))
		return CM_OK;
	if (others_can_write(reader->host, &st))
		return note(reader, tool->name, path);
	real = cm_fd_real_path(fd);
	if (!real)
		return errno == ENOMEM ? CM_E_NOMEM : CM_OK;
	return cm_nodes_add(&reader->facts->tools, path, &st,
			    strcmp(real, path) == 0 ? NULL : real);
}

static int read_tools(struct cm_tree_reader *reader, const struct tool *table, size_t n)
{
	const char *base = NULL;
	CM_AUTO_FD int base_fd = -1;
	char path[PATH_MAX] = "";

	for (size_t i = 0; i < n; i++) {
		struct stat st;

		if (!base || strcmp(base, table[i].base) != 0) {
			base = table[i].base;
			cm_fd_close(&base_fd);
			base_fd = open_base(reader, &table[i], path, sizeof(path));
			/* the home itself is named by the caller and not by a table */
			if (base_fd >= 0 && *base && fstat(base_fd, &st) == 0 &&
			    others_can_write(reader->host, &st)) {
				cm_fd_close(&base_fd);
				if (note(reader, table[i].name, path) < 0)
					return CM_E_NOMEM;
			}
		}
		if (base_fd >= 0 && add_tool(reader, &table[i], base_fd, path) < 0)
			return CM_E_NOMEM;
	}
	return CM_OK;
}

int cm_tree_tools_read(struct cm_tree_reader *reader)
{
	int r = read_tools(reader, tools, CM_ARRAY_SIZE(tools));

	return r < 0 ? r : read_tools(reader, roots, CM_ARRAY_SIZE(roots));
}

/* With a rootfs a PATH entry is looked up in it; what is a link there is not followed. */
static int add_path_entry(struct cm_tree_reader *reader, const char *entry)
{
	struct cm_nodes *path = &reader->facts->path;
	struct stat st;
	int r;

	if (reader->facts->root) {
		if (fstatat(reader->root_fd, entry + 1, &st, 0) < 0 || !S_ISDIR(st.st_mode))
			return CM_OK;
		return cm_nodes_add(path, entry, &st, NULL);
	}
	if (cm_path_is_below(entry, "/usr")) {
		if (stat(entry, &st) < 0 || !S_ISDIR(st.st_mode))
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

	for (size_t i = 0; i < nodes->n; i++) {
		if (strcmp(nodes->v[i].path, path) == 0)
			return CM_OK;
	}
	return cm_tree_add_real(nodes, AT_FDCWD, path, path) < 0 ? CM_E_NOMEM : CM_OK;
}

int cm_tree_env_read(struct cm_tree_reader *reader)
{
	int r;

	r = each_part(reader, cm_strv_env_get(reader->env, "PATH"), add_path_entry);
	for (size_t i = 0; r == CM_OK && i < CM_ARRAY_SIZE(certificate_variables); i++)
		r = each_part(reader, cm_strv_env_get(reader->env, certificate_variables[i]),
			      add_certificate);
	return r;
}
