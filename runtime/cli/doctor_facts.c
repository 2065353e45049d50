/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the host's files say: settings that forbid namespaces, the container around us, the user's
 * ids, our own programs. A file that cannot be read leaves its fact at "unknown", since the checks
 * judge by what the probe could do and use these to name causes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "isolation/host/facts.h"
#include "providers/local/helper.h"
#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/fields.h"
#include "runtime/base/kernel.h"
#include "runtime/base/num.h"
#include "runtime/base/path.h"
#include "runtime/base/text.h"
#include "runtime/cli/doctor.h"
#include "runtime/store/store.h"

#define MAX_FILE ((size_t)1024 * 1024)

const char *const cm_doctor_helper_names[CM_DOCTOR_HELPERS_] = {
	"casemate-keeper",
	"casemate-checkout",
	"casemate-scope",
};

static bool exists(const char *path)
{
	return access(path, F_OK) == 0;
}

/* The whole file; NULL when it cannot be read. Caller frees. */
static char *read_file(const char *path)
{
	char *text = cm_malloc(MAX_FILE);

	if (text && cm_read_file_at(AT_FDCWD, path, text, MAX_FILE) >= 0)
		return text;
	free(text);
	return NULL;
}

static int64_t read_number(const char *path)
{
	char text[64];
	char *end = NULL;
	long long v;

	if (cm_read_file_at(AT_FDCWD, path, text, sizeof(text)) < 0)
		return -1;
	v = strtoll(text, &end, 10);
	return end == text ? -1 : (int64_t)v;
}

static void read_line(const char *path, char *buf, size_t size)
{
	if (cm_read_file_at(AT_FDCWD, path, buf, size) < 0)
		buf[0] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
}

static void read_settings(struct cm_doctor_facts *facts)
{
	char path[96];

	facts->apparmor_restrict =
		read_number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns");
	facts->userns_clone = read_number("/proc/sys/kernel/unprivileged_userns_clone");
	for (size_t i = 0; i < CM_DOCTOR_NS_COUNT_; i++) {
		(void)snprintf(path, sizeof(path), "/proc/sys/user/max_%s_namespaces",
			       cm_doctor_ns_names[i]);
		facts->max_namespaces[i] = read_number(path);
	}
	/* "docker-default (enforce)" */
	read_line("/proc/self/attr/apparmor/current", facts->apparmor, sizeof(facts->apparmor));
	facts->apparmor[strcspn(facts->apparmor, " ")] = '\0';
}

void cm_doctor_read_mountinfo(const char *mountinfo, struct cm_doctor_facts *facts)
{
	facts->is_chroot = true;
	facts->is_proc_covered = false;
	for (; mountinfo && *mountinfo; mountinfo = cm_next_line(mountinfo)) {
		struct cm_field f[6];
		char target[256];

		/* id, parent, device, root, mount point; a longer one is none of these */
		if (cm_fields_split(mountinfo, ' ', f, CM_ARRAY_SIZE(f)) < 5 ||
		    !cm_field_copy(&f[4], target, sizeof(target)))
			continue;
		if (strcmp(target, "/") == 0)
			facts->is_chroot = false;
		/* the one mount on an ordinary /proc: on an empty directory, so it hides nothing */
		if (cm_text_has_prefix(target, "/proc/") &&
		    strcmp(target, "/proc/sys/fs/binfmt_misc") != 0)
			facts->is_proc_covered = true;
	}
}

void cm_doctor_read_uid_map(const char *uid_map, struct cm_doctor_facts *facts)
{
	/* first id inside, first id outside, count */
	unsigned long long v[3] = { 0 };
	size_t n = 0;

	while (uid_map && n < CM_ARRAY_SIZE(v)) {
		char *end = NULL;

		v[n] = strtoull(uid_map, &end, 10);
		if (end == uid_map)
			break;
		uid_map = end;
		n++;
	}
	facts->has_all_ids = n == 3 && v[0] == 0 && v[1] == 0 && v[2] == UINT32_MAX;
	/* nothing mapped: this process is nobody, and the kernel gives nobody no namespace */
	facts->has_own_id = n == 3;
}

static void read_process(struct cm_doctor_facts *facts)
{
	CM_AUTO_FREE char *mountinfo = read_file("/proc/self/mountinfo");
	CM_AUTO_FREE char *uid_map = read_file("/proc/self/uid_map");
	CM_AUTO_FREE char *status = read_file("/proc/self/status");
	ssize_t n = readlink("/proc/self/exe", facts->program, sizeof(facts->program) - 1);

	facts->program[n > 0 ? n : 0] = '\0';
	cm_doctor_read_mountinfo(mountinfo ? mountinfo : "0 0 0:0 / /", facts);
	cm_doctor_read_uid_map(uid_map, facts);
	facts->has_filter = status && strstr(status, "\nSeccomp:\t2") != NULL;
}

/* Engines name themselves; what they write is cut to a plain word. */
static void set_container(struct cm_doctor_facts *facts, const char *name)
{
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");

	(void)snprintf(facts->container, sizeof(facts->container), "%.*s",
		       n < sizeof(facts->container) ? (int)n : 0, name);
}

/* Of linux/proc_ns.h: the first namespaces of a kernel have fixed numbers. */
#define INITIAL_IPC 0xEFFFFFFFU
#define INITIAL_UTS 0xEFFFFFFEU
#define INITIAL_PID 0xEFFFFFFCU

/* A virtual machine made of an image still has the engine's marks in its files. */
static bool is_outermost(void)
{
	static const struct {
		const char *path;
		ino_t ino;
	} initial[] = {
		{ "/proc/self/ns/ipc", INITIAL_IPC },
		{ "/proc/self/ns/uts", INITIAL_UTS },
		{ "/proc/self/ns/pid", INITIAL_PID },
	};
	struct stat st;

	for (size_t i = 0; i < CM_ARRAY_SIZE(initial); i++) {
		if (stat(initial[i].path, &st) < 0 || st.st_ino != initial[i].ino)
			return false;
	}
	return true;
}

static void read_container(const struct cm_strv *env, struct cm_doctor_facts *facts)
{
	const char *variable = cm_strv_env_get(env, "container");
	char text[64];

	if (is_outermost())
		return;
	read_line("/run/systemd/container", text, sizeof(text));
	if (cm_strv_env_get(env, "KUBERNETES_SERVICE_HOST"))
		set_container(facts, "kubernetes");
	else if (exists("/.dockerenv"))
		set_container(facts, "docker");
	else if (exists("/run/.containerenv"))
		set_container(facts, "podman");
	else if (text[0] != '\0')
		set_container(facts, text);
	else if (variable && *variable)
		set_container(facts, variable);
}

static void read_kernel(struct cm_doctor_facts *facts)
{
	struct utsname name;

	if (uname(&name) == 0) {
		(void)snprintf(facts->release, sizeof(facts->release), "%.95s", name.release);
		(void)snprintf(facts->machine, sizeof(facts->machine), "%.95s", name.machine);
	}
	if (cm_sys_landlock_create_ruleset(NULL, 0, CM_LL_CREATE_RULESET_VERSION) < 0)
		facts->landlock_errno = errno;
	read_line("/sys/kernel/security/lsm", facts->lsms, sizeof(facts->lsms));
}

/* "name:first:count" */
uint64_t cm_doctor_next_subid(const char *text, uint64_t least)
{
	for (; text && *text; text = cm_next_line(text)) {
		struct cm_field f[4];
		uint64_t first;
		uint64_t count;

		if (cm_fields_split(text, ':', f, CM_ARRAY_SIZE(f)) >= 3 &&
		    cm_field_number(&f[1], &first) && first <= UINT32_MAX &&
		    cm_field_number(&f[2], &count) && count <= UINT32_MAX && first + count > least)
			least = first + count;
	}
	return least;
}

/* "name:password:gid:members"; a name longer than any real one is shown as the number. */
static bool find_group(const char *text, gid_t gid, char *buf, size_t size)
{
	for (; text && *text; text = cm_next_line(text)) {
		struct cm_field f[4];

		if (cm_fields_split(text, ':', f, CM_ARRAY_SIZE(f)) >= 3 &&
		    cm_field_is_id(&f[2], gid))
			return cm_field_copy(&f[0], buf, size) && *buf;
	}
	return false;
}

int cm_doctor_group_names(const char *text, const gid_t *groups, size_t n, gid_t except,
			  struct cm_strv *ret)
{
	char name[64];

	for (size_t i = 0; i < n; i++) {
		if (groups[i] == except)
			continue;
		if (!find_group(text, groups[i], name, sizeof(name)))
			(void)snprintf(name, sizeof(name), "%u", (unsigned int)groups[i]);
		if (cm_strv_add(ret, name) < 0)
			return CM_E_NOMEM;
	}
	return CM_OK;
}

/* Runs with more rights than its caller: by the set-id bit, or by a file capability. */
static bool is_privileged_program(const char *path)
{
	struct stat st;
	char value[64];

	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) || (st.st_mode & S_IXOTH) == 0)
		return false;
	return (st.st_mode & S_ISUID) != 0 ||
	       syscall(SYS_getxattr, path, "security.capability", value, sizeof(value)) > 0;
}

static int read_account(struct cm_doctor_facts *facts)
{
	const struct cm_host *host = facts->host;
	CM_AUTO_FREE char *group = read_file("/etc/group");
	CM_AUTO_FREE char *subuid = read_file("/etc/subuid");
	CM_AUTO_FREE char *subgid = read_file("/etc/subgid");
	char path[PATH_MAX];

	facts->next_subid = cm_doctor_next_subid(subgid, cm_doctor_next_subid(subuid, 100000));
	facts->has_newuidmap = is_privileged_program("/usr/bin/newuidmap");
	facts->has_newgidmap = is_privileged_program("/usr/bin/newgidmap");
	facts->has_systemd = exists("/run/systemd/system");
	facts->is_debian = exists("/etc/debian_version");
	(void)snprintf(path, sizeof(path), "/var/lib/systemd/linger/%.200s", host->user_name);
	facts->has_linger = exists(path);
	return cm_doctor_group_names(group, host->groups, host->n_groups, host->gid,
				     &facts->groups);
}

/* What is true of path, or of the nearest parent that exists; false: no memory. */
static bool read_dir(const char *path, struct cm_doctor_dir *dir)
{
	struct statvfs fs;
	char *at;

	dir->path = cm_strdup(path);
	dir->nearest = at = cm_strdup(path);
	if (!at || !dir->path)
		return false;
	dir->is_present = exists(at);
	while (!exists(at) && strcmp(at, "/") != 0) {
		char *slash = strrchr(at, '/');

		slash[slash == at] = '\0';
	}
	dir->is_writable = faccessat(AT_FDCWD, at, W_OK | X_OK, AT_EACCESS) == 0;
	if (statvfs(at, &fs) == 0) {
		dir->free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
		dir->is_noexec = (fs.f_flag & ST_NOEXEC) != 0;
	}
	return true;
}

static int read_dirs(const struct cm_config *config, const char *root,
		     struct cm_doctor_facts *facts)
{
	struct cm_store store;
	bool is_good;
	/* as every command does, so a directory that is absent is made */
	int r = cm_store_open(&config->env, root, facts->host->home, facts->host->uid == 0, &store,
			      &facts->store_err);

	if (r != CM_OK)
		return r == CM_E_NOMEM ? r : CM_OK;
	is_good = read_dir(store.state, &facts->dirs[CM_DOCTOR_DIR_STATE]) &&
		  read_dir(store.runtime, &facts->dirs[CM_DOCTOR_DIR_RUNTIME]) &&
		  read_dir(store.cache, &facts->dirs[CM_DOCTOR_DIR_CACHE]) &&
		  read_dir(store.root, &facts->dirs[CM_DOCTOR_DIR_ROOT]);
	cm_store_close(&store);
	return is_good ? CM_OK : CM_E_NOMEM;
}

static void read_helpers(struct cm_doctor_facts *facts)
{
	for (size_t i = 0; i < CM_DOCTOR_HELPERS_; i++) {
		struct cm_doctor_helper *helper = &facts->helpers[i];

		if (cm_helper_path(cm_doctor_helper_names[i], helper->path, sizeof(helper->path),
				   &helper->err) < 0 ||
		    access(helper->path, X_OK) == 0)
			continue;
		(void)cm_error_set(&helper->err, CM_E_DENIED, errno, "cannot execute '%s'",
				   helper->path);
		cm_error_hint(&helper->err, "chmod 0755 '%.200s', on a file system without noexec",
			      helper->path);
	}
}

/* The first `name` in the caller's PATH that can be executed; "" for none. */
static void find_program(const struct cm_strv *env, const char *name, char *buf, size_t size)
{
	const char *at = cm_strv_env_get(env, "PATH");

	while (at && *at) {
		size_t len = strcspn(at, ":");
		int n = snprintf(buf, size, "%.*s/%s", (int)len, at, name);
		struct stat st;

		if (*at == '/' && n > 0 && (size_t)n < size && stat(buf, &st) == 0 &&
		    S_ISREG(st.st_mode) && access(buf, X_OK) == 0)
			return;
		at += len + (at[len] == ':');
	}
	buf[0] = '\0';
}

/* ~/.nvm for /home/user/.nvm/versions: the directories above the entries, once each. */
static int add_tool(const char *home, const char *path, struct cm_strv *ret)
{
	const char *rest = cm_path_is_below(path, home) ? path + strlen(home) : NULL;
	const char *slash = strrchr(path, '/');
	CM_AUTO_FREE char *name = NULL;

	if (rest && *rest == '/' && strcmp(home, "/") != 0) {
		/* a tool's own directory right below the home */
		if (slash == rest)
			slash = path + strlen(path);
		name = cm_asprintf("~%.*s", (int)(slash - rest), rest);
	} else {
		name = cm_strdup(path);
	}
	if (!name)
		return CM_E_NOMEM;
	return cm_strv_has(ret, name) ? CM_OK : cm_strv_add_own(ret, cm_ptr_take(&name));
}

static int read_tools(const struct cm_config *config, struct cm_doctor_facts *facts)
{
	struct cm_tree_facts tree = { 0 };
	struct cm_error err = CM_ERROR_INIT;
	int r = cm_tree_facts_read(facts->host, NULL, &config->env, &tree, &err);

	/* a tree that cannot be read is the business of `run`, which says why */
	if (r != CM_OK)
		return r == CM_E_NOMEM ? r : CM_OK;
	for (size_t i = 0; r == CM_OK && i < tree.tools.n; i++)
		r = add_tool(facts->host->home, tree.tools.v[i].path, &facts->tools);
	if (r == CM_OK)
		r = cm_strv_copy(&facts->tool_notes, &tree.notes);
	cm_tree_facts_clear(&tree);
	return r;
}

int cm_doctor_facts_read(const struct cm_config *config, const char *root,
			 const struct cm_host *host, struct cm_doctor_facts *ret,
			 struct cm_error *err)
{
	const char *root_dir;
	int r;

	*ret = (struct cm_doctor_facts){ .host = host };
	read_settings(ret);
	read_process(ret);
	read_container(&config->env, ret);
	read_kernel(ret);
	read_helpers(ret);
	find_program(&config->env, "git", ret->git, sizeof(ret->git));
	r = read_account(ret);
	if (r == CM_OK)
		r = read_dirs(config, root, ret);
	if (r == CM_OK)
		r = read_tools(config, ret);
	if (r != CM_OK) {
		cm_doctor_facts_clear(ret);
		return cm_error_set(err, r, 0, "out of memory");
	}
	root_dir = ret->dirs[CM_DOCTOR_DIR_ROOT].nearest;
	cm_doctor_probe_run(host, root_dir ? root_dir : "/", &ret->probe);
	return CM_OK;
}

void cm_doctor_facts_clear(struct cm_doctor_facts *facts)
{
	cm_strv_clear(&facts->groups);
	cm_strv_clear(&facts->tools);
	cm_strv_clear(&facts->tool_notes);
	for (size_t i = 0; i < CM_DOCTOR_DIRS_; i++) {
		cm_ptr_free(&facts->dirs[i].path);
		cm_ptr_free(&facts->dirs[i].nearest);
	}
}
