/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where this caller can make control groups, found by looking and never by trying.
 *
 * v2 as root: <mount>/casemate.slice, which the keeper makes. Systemd does not know the slice; it
 * cannot take a controller away from it either, because the kernel refuses (EBUSY) to disable one
 * in a parent while a child's subtree_control has it.
 *
 * v2 as a user: clone3 into a group asks for write access to cgroup.procs of the common ancestor
 * of where the keeper is and where it wants its child. Only an ancestor of the own group that was
 * handed to this user will do. A slice, and user@UID.service, also belong to the user by file
 * mode, but a manager rules them: it writes their subtree_control as its own units come and go,
 * and with a controller go the limits of groups that it does not know. There systemd is asked for
 * a scope of our own.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "isolation/host/cgroup_internal.h"
#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"

/* a host with 20,000 mounts; what is longer is a host that we do not know how to read */
#define TEXT_MAX ((size_t)8 * 1024 * 1024)

/* of these a missing one is told; who wants a cpuset learns of it when asking for one */
#define EXPECTED (CM_CG_MEMORY | CM_CG_PIDS | CM_CG_CPU)

static bool can_write(const char *dir, const char *file)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/%s", dir, file);

	return n > 0 && (size_t)n < sizeof(path) &&
	       faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0;
}

static bool exists(const char *dir, const char *file)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/%s", dir, file);

	return n > 0 && (size_t)n < sizeof(path) && access(path, F_OK) == 0;
}

/* -1 when it cannot be read. An absent or unreadable file is not an empty one. */
static ssize_t read_text(const char *dir, const char *file, char *buf, size_t size)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/%s", dir, file);

	if (n <= 0 || (size_t)n >= sizeof(path))
		return -1;
	return cm_read_file_at(AT_FDCWD, path, buf, size);
}

/* Does the group hold processes? One that cannot be read is taken to. */
static bool has_processes(const char *dir)
{
	char path[PATH_MAX];
	char byte;
	CM_AUTO_FD int fd = -1;
	int n = snprintf(path, sizeof(path), "%s/cgroup.procs", dir);

	if (n <= 0 || (size_t)n >= sizeof(path))
		return true;
	fd = cm_open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 || read(fd, &byte, 1) != 0;
}

static uint32_t read_controllers(const char *dir, const char *file)
{
	char text[512];

	return read_text(dir, file, text, sizeof(text)) < 0 ? 0 : cm_cgroup_names_parse(text);
}

static void __attribute__((format(printf, 2, 3)))
no_groups(struct cm_host_cgroup *ret, const char *fmt, ...)
{
	va_list ap;

	memset(ret, 0, sizeof(*ret));
	va_start(ap, fmt);
	(void)vsnprintf(ret->reason, sizeof(ret->reason), fmt, ap);
	va_end(ap);
}

/* The tail of a path for a message: the end is what tells groups apart. */
static const char *shown(const char *path)
{
	size_t n = strlen(path);

	return n > 120 ? path + n - 120 : path;
}

/* Freezing and killing need no controller on v2. */
static void set_v2(struct cm_host_cgroup *ret, const char *base, uint32_t controllers,
		   const char *where)
{
	char missing[64] = "";

	memset(ret, 0, sizeof(*ret));
	ret->kind = CM_CGROUP_V2;
	ret->controllers = controllers | CM_CG_FREEZER;
	(void)snprintf(ret->v2_base, sizeof(ret->v2_base), "%s", base);
	for (size_t i = 0; i < CM_CG_N; i++) {
		size_t n = strlen(missing);

		if ((EXPECTED & ~controllers & 1U << i) != 0)
			(void)snprintf(missing + n, sizeof(missing) - n, " %s", cm_cgroup_names[i]);
	}
	if (missing[0] != '\0')
		(void)snprintf(ret->reason, sizeof(ret->reason), "no controller in '%s' for:%s",
			       shown(where), missing);
}

/*
 * The true root of the hierarchy has no cgroup.type. Any other group that holds processes cannot
 * hand controllers down (no internal processes), and they are not ours to move.
 */
static void resolve_root(const struct cm_host_cgroup_v2 *v2, struct cm_host_cgroup *ret)
{
	char base[CM_HOST_CGROUP_PATH_MAX];
	bool is_true_root = !exists(v2->mount, "cgroup.type");
	int n = snprintf(base, sizeof(base), "%s/casemate.slice", v2->mount);

	if (n <= 0 || (size_t)n >= sizeof(base)) {
		no_groups(ret, "the path of the control group hierarchy is too long");
		return;
	}
	if (faccessat(AT_FDCWD, v2->mount, W_OK, AT_EACCESS) != 0 ||
	    !can_write(v2->mount, "cgroup.subtree_control")) {
		no_groups(ret, "'%s' cannot be written (%s)", shown(v2->mount),
			  errno == EROFS ? "mounted read-only, as in a container"
					 : "not permitted");
		return;
	}
	if (!is_true_root && has_processes(v2->mount)) {
		no_groups(ret,
			  "'%s' is a container's own control group and holds processes, so it "
			  "cannot hand controllers down",
			  shown(v2->mount));
		return;
	}
	set_v2(ret, base, read_controllers(v2->mount, "cgroup.controllers"), v2->mount);
}

static bool is_managers(const char *dir)
{
	const char *name = strrchr(dir, '/') + 1;
	size_t n = strlen(name);

	return (n > 6 && strcmp(name + n - 6, ".slice") == 0) || strncmp(name, "user@", 5) == 0;
}

/*
 * Nearest ancestor, the own group excluded: it holds the caller, and a group with processes
 * cannot hand controllers down.
 */
static bool find_delegated(const struct cm_host_cgroup_v2 *v2, char *base, size_t size)
{
	size_t mount_len = strlen(v2->mount);

	(void)snprintf(base, size, "%s", v2->own);
	for (;;) {
		char *slash = strrchr(base, '/');

		if (!slash || (size_t)(slash - base) < mount_len)
			return false;
		*slash = '\0';
		if (!can_write(base, "cgroup.procs") ||
		    !can_write(base, "cgroup.subtree_control") || is_managers(base))
			return false;
		if (faccessat(AT_FDCWD, base, W_OK | X_OK, AT_EACCESS) == 0)
			return true;
	}
}

static void no_manager(struct cm_host_cgroup *ret)
{
	no_groups(ret, "no systemd user session");
	ret->needs_manager = true;
}

/* What a scope of this user's manager can have is what the manager was given. */
static void resolve_scope(uid_t uid, const struct cm_host_cgroup_v2 *v2, struct cm_host_cgroup *ret)
{
	char manager[CM_HOST_CGROUP_PATH_MAX];
	int n = snprintf(manager, sizeof(manager), "%s/user.slice/user-%u.slice/user@%u.service",
			 v2->mount, (unsigned int)uid, (unsigned int)uid);

	if (n <= 0 || (size_t)n >= sizeof(manager)) {
		no_groups(ret, "the path of the control group hierarchy is too long");
		return;
	}
	/* the sockets of a manager that was killed stay */
	if (!exists(manager, "cgroup.controllers")) {
		no_manager(ret);
		return;
	}
	set_v2(ret, "", read_controllers(manager, "cgroup.controllers"), manager);
	ret->needs_scope = true;
}

static void resolve_user(uid_t uid, const char *run_user_dir, const struct cm_host_cgroup_v2 *v2,
			 struct cm_host_cgroup *ret)
{
	char base[CM_HOST_CGROUP_PATH_MAX];

	if (find_delegated(v2, base, sizeof(base))) {
		uint32_t controllers =
			read_controllers(base, has_processes(base) ? "cgroup.subtree_control"
								   : "cgroup.controllers");

		set_v2(ret, base, controllers, base);
		return;
	}
	/* the second is the manager's own socket, there without a message bus too */
	if (exists(run_user_dir, "bus") || exists(run_user_dir, "systemd/private"))
		resolve_scope(uid, v2, ret);
	else
		no_manager(ret);
}

void cm_host_cgroup_resolve_v2(bool is_root, uid_t uid, const char *run_user_dir,
			       const struct cm_host_cgroup_v2 *v2, struct cm_host_cgroup *ret)
{
	if (is_root)
		resolve_root(v2, ret);
	else
		resolve_user(uid, run_user_dir, v2, ret);
}

void cm_host_cgroup_resolve_v1(struct cm_host_cgroup *facts)
{
	char missing[96] = "";

	for (size_t i = 0; i < CM_CG_N; i++) {
		char *base = facts->v1_base[i];
		size_t n = strlen(missing);

		if (base[0] != '\0' && faccessat(AT_FDCWD, base, W_OK | X_OK, AT_EACCESS) == 0)
			continue;
		base[0] = '\0';
		facts->controllers &= ~(1U << i);
		(void)snprintf(missing + n, sizeof(missing) - n, " %s", cm_cgroup_names[i]);
	}
	if (facts->controllers == 0)
		no_groups(facts, "control groups (v1) cannot be written by this user");
	else if (missing[0] != '\0')
		(void)snprintf(facts->reason, sizeof(facts->reason),
			       "no writable v1 hierarchy for:%s", missing);
}

/* A text in the caller's memory, or where that is too small, in one of its own. */
struct proc_text {
	char usual[16UL * 1024];
	char *large;
};

/* NULL when it cannot be read; errno tells. */
static const char *read_proc(const char *path, struct proc_text *text)
{
	ssize_t n = cm_read_file_at(AT_FDCWD, path, text->usual, sizeof(text->usual));

	text->large = NULL;
	if (n >= 0)
		return text->usual;
	for (size_t size = 4 * sizeof(text->usual); n == -E2BIG && size <= TEXT_MAX; size *= 4) {
		free(text->large);
		text->large = cm_malloc(size);
		if (!text->large)
			return NULL;
		n = cm_read_file_at(AT_FDCWD, path, text->large, size);
	}
	if (n >= 0)
		return text->large;
	errno = (int)-n;
	return NULL;
}

static void clear_text(struct proc_text *text)
{
	free(text->large);
}

void cm_host_cgroup_read(bool is_root, struct cm_host_cgroup *ret)
{
	__attribute__((cleanup(clear_text))) struct proc_text mounts;
	__attribute__((cleanup(clear_text))) struct proc_text own;
	const char *mountinfo = read_proc("/proc/self/mountinfo", &mounts);
	const char *self_cgroup = read_proc("/proc/self/cgroup", &own);
	struct cm_host_cgroup_v2 v2;
	char run_user_dir[64];
	uid_t uid = geteuid();

	if (!mountinfo || !self_cgroup) {
		no_groups(ret, "/proc/self/%s cannot be read (%s)",
			  mountinfo ? "cgroup" : "mountinfo", strerror(errno));
		return;
	}
	cm_host_cgroup_parse(mountinfo, self_cgroup, ret);
	if (ret->kind == CM_CGROUP_V1) {
		cm_host_cgroup_resolve_v1(ret);
		return;
	}
	if (ret->kind == CM_CGROUP_NONE || !cm_host_cgroup_parse_v2(mountinfo, self_cgroup, &v2))
		return;
	(void)snprintf(run_user_dir, sizeof(run_user_dir), "/run/user/%u", (unsigned int)uid);
	cm_host_cgroup_resolve_v2(is_root, uid, run_user_dir, &v2, ret);
	/* where systemd is not the init, nobody could start one */
	if (!exists("/run/systemd", "system"))
		ret->needs_manager = false;
}
