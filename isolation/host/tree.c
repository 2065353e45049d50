/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of the host's tree, or of a rootfs, there is to show. Each start pays for this, so it is a
 * fixed number of look-ups: one listing of /etc (tree_etc.c), no search of a tree, no walk along a
 * path.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "isolation/host/listing.h"
#include "isolation/host/node.h"
#include "isolation/host/tree_internal.h"
#include "runtime/base/fd.h"
#include "runtime/base/kernel.h"
#include "runtime/base/path.h"

#define MAX_PASSWD (256UL * 1024)
#define MAX_ROOTFS_ENTRIES 64

static const char *const proc_names[] = {
#define CM_PROC(kind, name, why) name,
#include "isolation/plan/procfs.def"
#undef CM_PROC
};

static const char *const host_tops[] = { "usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32" };

/* of a rootfs: what the jail has of its own, and what a tree for programs does not need */
static const char *const not_from_rootfs[] = {
	"boot", "dev",	"etc", "home", "lost+found", "media", "mnt",
	"proc", "root", "run", "sys",  "tmp",	     "var",
};

static const char *const host_extras[] = {
	"dev/null",
	"dev/zero",
	"dev/full",
	"dev/random",
	"dev/urandom",
	"dev/tty",
	"sys/devices/system/cpu",
	"sys/kernel/mm/transparent_hugepage",
};

static const char *const tree_extras[] = {
	"var/lib/dpkg",
	"var/lib/rpm",
	/* openSUSE's trust anchors: /etc/ssl/ca-bundle.pem leads here */
	"var/lib/ca-certificates",
};

/* Links may lead to /run: the planner binds the file where it really is. */
static const char *const real_extras[] = { "etc/resolv.conf", "etc/hosts" };

int cm_tree_add_real(struct cm_nodes *nodes, int dirfd, const char *name, const char *path)
{
	CM_AUTO_FREE char *real = NULL;
	CM_AUTO_FD int fd = -1;
	struct stat st;

	fd = openat(dirfd, name, O_PATH | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return 0;
	real = cm_fd_real_path(fd);
	if (!real)
		return errno == ENOMEM ? CM_E_NOMEM : 0;
	if (cm_nodes_add(nodes, path, &st, strcmp(real, path) == 0 ? NULL : real) < 0)
		return CM_E_NOMEM;
	return 1;
}

int cm_tree_add(struct cm_nodes *nodes, int dir_fd, const char *dir, const char *name)
{
	char path[PATH_MAX];

	if (!cm_join(path, sizeof(path), dir, name))
		return 0;
	return cm_nodes_add_path(nodes, dir_fd, name, path);
}

static int add_list(struct cm_tree_reader *reader, struct cm_nodes *nodes, const char *root,
		    const char *const names[], size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (cm_tree_add(nodes, reader->root_fd, root, names[i]) < 0)
			return CM_E_NOMEM;
	}
	return CM_OK;
}

int cm_tree_open_dir(const struct cm_tree_reader *reader, const char *name)
{
	return openat(reader->root_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

static int compare_nodes(const void *a, const void *b)
{
	return strcmp(((const struct cm_node *)a)->path, ((const struct cm_node *)b)->path);
}

/* The order of a listing is the file system's: plans of one host are to be alike. */
void cm_tree_sort(struct cm_nodes *nodes)
{
	if (nodes->n > 1)
		qsort(nodes->v, nodes->n, sizeof(nodes->v[0]), compare_nodes);
}

static bool is_from_rootfs(const char *name)
{
	if (name[0] == '.')
		return false;
	for (size_t i = 0; i < CM_ARRAY_SIZE(not_from_rootfs); i++) {
		if (strcmp(name, not_from_rootfs[i]) == 0)
			return false;
	}
	return true;
}

static int read_rootfs_tops(struct cm_tree_reader *reader)
{
	struct cm_nodes *top = &reader->facts->top;
	CM_AUTO_FD int fd = cm_tree_open_dir(reader, ".");
	struct cm_listing listing;
	const char *name;
	int r = CM_OK;

	if (fd < 0)
		return CM_OK;
	cm_listing_begin(&listing, fd);
	while (r >= 0 && top->n < MAX_ROOTFS_ENTRIES && (name = cm_listing_next(&listing))) {
		if (is_from_rootfs(name))
			r = cm_tree_add(top, reader->root_fd, reader->facts->root, name);
	}
	cm_tree_sort(top);
	return r < 0 ? CM_E_NOMEM : CM_OK;
}

/* A link in their place would make the jail's own /proc, /sys, /dev or /etc appear elsewhere. */
static int check_rootfs(struct cm_tree_reader *reader, const char *rootfs, struct cm_error *err)
{
	static const char *const plain[] = { "proc", "sys", "dev", "etc" };
	struct stat st;

	for (size_t i = 0; i < CM_ARRAY_SIZE(plain); i++) {
		if (fstatat(reader->root_fd, plain[i], &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    S_ISDIR(st.st_mode))
			continue;
		cm_error_set(err, CM_E_INVALID, 0,
			     "'/%s' of the root file system '%s' is not a "
			     "directory",
			     plain[i], rootfs);
		cm_error_hint(err, "make it a directory, or remove it: the jail has its own");
		return CM_E_INVALID;
	}
	if (fstatat(reader->root_fd, "usr", &st, 0) == 0 ||
	    fstatat(reader->root_fd, "bin", &st, 0) == 0)
		return CM_OK;
	cm_error_set(err, CM_E_INVALID, 0, "'%s' has neither /usr nor /bin", rootfs);
	cm_error_hint(err, "name the top of an unpacked system with --rootfs");
	return CM_E_INVALID;
}

static int open_root(struct cm_tree_reader *reader, const char *rootfs, struct cm_error *err)
{
	int r;

	reader->root_fd = cm_open(rootfs ? rootfs : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (reader->root_fd < 0) {
		r = errno == ENOENT ? CM_E_NOT_FOUND : CM_E_SYS;
		cm_error_set(err, r, errno, "cannot open the root file system '%s'",
			     rootfs ? rootfs : "/");
		cm_error_hint(err, "name an unpacked system with --rootfs DIR");
		return r;
	}
	if (!rootfs)
		return CM_OK;
	reader->facts->root = cm_fd_real_path(reader->root_fd);
	if (!reader->facts->root)
		return cm_error_set(err, CM_E_SYS, errno, "cannot find the real path of '%s'",
				    rootfs);
	if (reader->facts->root[1] == '\0') {
		cm_error_set(err, CM_E_INVALID, 0, "the root file system is '/'");
		cm_error_hint(err, "leave --rootfs out to use the host's");
		return CM_E_INVALID;
	}
	return check_rootfs(reader, rootfs, err);
}

/*
 * The image's own users. A link could lead anywhere on the host, and could take the place of a file
 * between a look at it and its opening: the kernel follows none on the way to the descriptor.
 */
static int read_name_file(struct cm_tree_reader *reader, const char *name, char **ret)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS };
	CM_AUTO_FD int fd = cm_sys_openat2(reader->root_fd, name, &how);
	char path[32];

	if (fd < 0)
		return CM_OK;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return cm_read_text_at(AT_FDCWD, path, MAX_PASSWD, ret) == -ENOMEM ? CM_E_NOMEM : CM_OK;
}

static int read_names(struct cm_tree_reader *reader)
{
	int r = read_name_file(reader, "etc/passwd", &reader->facts->passwd);

	return r < 0 ? r : read_name_file(reader, "etc/group", &reader->facts->group);
}

static int read_proc(struct cm_tree_facts *facts)
{
	CM_AUTO_FD int fd = cm_open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char path[64];

	for (size_t i = 0; fd >= 0 && i < CM_ARRAY_SIZE(proc_names); i++) {
		if (cm_join(path, sizeof(path), "/proc", proc_names[i]) &&
		    cm_nodes_add_path(&facts->proc, fd, proc_names[i], path) < 0)
			return CM_E_NOMEM;
	}
	return CM_OK;
}

/* Most are plain files, whose real path needs no second look. */
static int add_followed(struct cm_nodes *nodes, const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return CM_OK;
	if (S_ISLNK(st.st_mode))
		return cm_tree_add_real(nodes, AT_FDCWD, path, path) < 0 ? CM_E_NOMEM : CM_OK;
	return cm_nodes_add(nodes, path, &st, NULL);
}

static int read_extra(struct cm_tree_reader *reader, const char *root)
{
	struct cm_nodes *extra = &reader->facts->extra;
	char path[64];

	for (size_t i = 0; i < CM_ARRAY_SIZE(host_extras); i++) {
		if (cm_join(path, sizeof(path), "", host_extras[i]) &&
		    cm_nodes_add_path(extra, AT_FDCWD, path, path) < 0)
			return CM_E_NOMEM;
	}
	for (size_t i = 0; i < CM_ARRAY_SIZE(real_extras); i++) {
		if (cm_join(path, sizeof(path), "", real_extras[i]) &&
		    add_followed(extra, path) < 0)
			return CM_E_NOMEM;
	}
	return add_list(reader, extra, root, tree_extras, CM_ARRAY_SIZE(tree_extras));
}

static int read_system(struct cm_tree_reader *reader)
{
	struct cm_tree_facts *facts = reader->facts;
	const char *root = facts->root ? facts->root : "";
	int r;

	if (facts->root)
		r = read_rootfs_tops(reader);
	else
		r = add_list(reader, &facts->top, root, host_tops, CM_ARRAY_SIZE(host_tops));
	if (r == CM_OK)
		r = cm_tree_etc_read(reader, root);
	if (r == CM_OK)
		r = read_proc(facts);
	if (r == CM_OK)
		r = read_extra(reader, root);
	if (r == CM_OK && facts->root)
		r = read_names(reader);
	return r;
}

static int read_user(struct cm_tree_reader *reader)
{
	int r = CM_OK;

	/* a rootfs brings its own tools, and its home is /home/user */
	if (!reader->facts->root)
		r = cm_tree_tools_read(reader);
	if (r == CM_OK)
		r = cm_tree_certificates_read(reader);
	if (r == CM_OK)
		r = cm_tree_toolconf_read(reader);
	return r;
}

int cm_tree_facts_read_system(const struct cm_host *host, const char *rootfs,
			      struct cm_tree_facts *ret, struct cm_error *err)
{
	struct cm_tree_facts facts = { 0 };
	struct cm_tree_reader reader = { .host = host, .facts = &facts, .root_fd = -1 };
	int r;

	r = open_root(&reader, rootfs, err);
	if (r == CM_OK) {
		r = read_system(&reader);
		if (r < 0)
			r = cm_facts_nomem(err);
	}
	cm_fd_close(&reader.root_fd);
	if (r < 0) {
		cm_tree_facts_clear(&facts);
		return r;
	}
	*ret = facts;
	return CM_OK;
}

/* More about a tree whose system was read. */
static int read_more(const struct cm_host *host, const struct cm_strv *env,
		     struct cm_tree_facts *facts, int (*read)(struct cm_tree_reader *reader),
		     struct cm_error *err)
{
	struct cm_tree_reader reader = {
		.host = host, .env = env, .facts = facts, .groups = { .uid = host->uid }
	};
	const char *root = facts->root ? facts->root : "/";
	int r;

	reader.root_fd = openat(AT_FDCWD, root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (reader.root_fd < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot open '%s'", root);
	r = read(&reader);
	cm_private_groups_clear(&reader.groups);
	cm_fd_close(&reader.root_fd);
	return r < 0 ? cm_facts_nomem(err) : CM_OK;
}

int cm_tree_facts_read_user(const struct cm_host *host, const struct cm_strv *caller_env,
			    struct cm_tree_facts *facts, struct cm_error *err)
{
	return read_more(host, caller_env, facts, read_user, err);
}

int cm_tree_facts_read_path(const struct cm_host *host, const struct cm_strv *caller_env,
			    struct cm_tree_facts *facts, struct cm_error *err)
{
	return read_more(host, caller_env, facts, cm_tree_path_read, err);
}

int cm_tree_facts_read(const struct cm_host *host, const char *rootfs,
		       const struct cm_strv *caller_env, struct cm_tree_facts *ret,
		       struct cm_error *err)
{
	int r = cm_tree_facts_read_system(host, rootfs, ret, err);

	if (r < 0)
		return r;
	r = cm_tree_facts_read_user(host, caller_env, ret, err);
	if (r == CM_OK)
		r = cm_tree_facts_read_path(host, caller_env, ret, err);
	if (r < 0)
		cm_tree_facts_clear(ret);
	return r;
}

void cm_tree_facts_clear(struct cm_tree_facts *facts)
{
	if (!facts)
		return;
	cm_nodes_clear(&facts->top);
	cm_nodes_clear(&facts->etc);
	cm_nodes_clear(&facts->tools);
	cm_nodes_clear(&facts->proc);
	cm_nodes_clear(&facts->extra);
	cm_nodes_clear(&facts->certificates);
	cm_nodes_clear(&facts->path);
	free(facts->root);
	free(facts->passwd);
	free(facts->group);
	cm_strv_clear(&facts->npm);
	cm_strv_clear(&facts->pip);
	cm_strv_clear(&facts->notes);
	*facts = (struct cm_tree_facts){ 0 };
}
