/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who the caller is and what the kernel has. The executables are static, so names come from the
 * text of /etc/passwd and not from NSS; newuidmap and the kernel check what depends on them.
 */
#include "isolation/host/host.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "isolation/host/node.h"
#include "isolation/host/passwd.h"
#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/kernel.h"
#include "runtime/base/path.h"

#define MAX_SUBID (256UL * 1024)
#define MAX_GROUPS 65536

static bool has_root_capabilities(void)
{
	static const unsigned int needed[] = { CAP_SYS_ADMIN, CAP_SETUID, CAP_SETGID };
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	if (syscall(SYS_capget, &header, data) < 0)
		return false;
	for (size_t i = 0; i < CM_ARRAY_SIZE(needed); i++) {
		if (((data[CAP_TO_INDEX(needed[i])].effective >> (needed[i] & 31)) & 1) == 0)
			return false;
	}
	return true;
}

/* The first n numbers of a text; false when there are fewer. */
static bool read_numbers(const char *text, unsigned long v[], size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char *end = NULL;

		v[i] = strtoul(text, &end, 10);
		if (end == text)
			return false;
		text = *end == '.' ? end + 1 : end;
	}
	return true;
}

/* Root of a small user namespace (a rootless container) has no ids to give to sessions. */
static bool has_slots(const char *map)
{
	const unsigned long end = CM_ID_SLOT_BASE + (unsigned long)CM_ID_SLOTS * CM_ID_SLOT_SIZE;
	char text[4096];
	char *save = NULL;

	if (cm_read_file_at(AT_FDCWD, map, text, sizeof(text)) < 0)
		return false;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		/* first id inside, first id outside, count */
		unsigned long v[3];

		if (read_numbers(line, v, 3) && v[0] <= CM_ID_SLOT_BASE && v[0] + v[2] >= end)
			return true;
	}
	return false;
}

static int read_groups(struct cm_host *host, struct cm_error *err)
{
	CM_AUTO_FREE gid_t *groups = NULL;
	int n = getgroups(0, NULL);

	if (n < 0 || n > MAX_GROUPS)
		return cm_error_set(err, CM_E_SYS, errno, "cannot read this process' groups");
	groups = cm_calloc((size_t)n + 1, sizeof(*groups));
	if (!groups)
		return cm_facts_nomem(err);
	n = getgroups(n, groups);
	if (n < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot read this process' groups");
	host->groups = cm_ptr_take(&groups);
	host->n_groups = (size_t)n;
	return CM_OK;
}

static bool is_directory(const char *path)
{
	struct stat st;

	return path && path[0] == '/' && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static void find_user(uid_t uid, struct cm_passwd_entry *ret)
{
	CM_AUTO_FREE char *text = NULL;

	if (cm_read_text_at(AT_FDCWD, "/etc/passwd", CM_PASSWD_MAX, &text) == 0)
		(void)cm_passwd_find(text, uid, ret);
}

static const char *choose_home(const char *home, const struct cm_passwd_entry *entry)
{
	if (is_directory(home))
		return home;
	return is_directory(entry->home) ? entry->home : "/";
}

char *cm_host_home(const struct cm_strv *env)
{
	struct cm_passwd_entry entry = { 0 };
	const char *home = cm_strv_env_get(env, "HOME");
	char *ret;

	if (!is_directory(home))
		find_user(geteuid(), &entry);
	ret = cm_strdup(choose_home(home, &entry));
	cm_passwd_entry_clear(&entry);
	return ret;
}

static int read_user(struct cm_host *host, const struct cm_strv *env, struct cm_error *err)
{
	struct cm_passwd_entry entry = { 0 };
	const char *home = cm_strv_env_get(env, "HOME");
	const char *shell = cm_strv_env_get(env, "SHELL");
	const char *user = cm_strv_env_get(env, "USER");

	find_user(host->uid, &entry);
	if (entry.name)
		user = entry.name;
	home = choose_home(home, &entry);
	if (!shell || shell[0] != '/')
		shell = entry.shell && entry.shell[0] == '/' ? entry.shell : "/bin/sh";
	host->user_name = cm_strdup(user && *user ? user : "user");
	/* a home below a link is common: what is mounted there, and named in HOME, is where it leads */
	host->home = cm_path_real(home);
	if (!host->home)
		host->home = cm_path_clean(home);
	host->shell = cm_strdup(shell);
	cm_passwd_entry_clear(&entry);
	if (!host->user_name || !host->home || !host->shell)
		return cm_facts_nomem(err);
	return CM_OK;
}

static void read_kernel(struct cm_host *host)
{
	unsigned long version[2];
	struct utsname name;
	struct sysinfo info;
	struct rlimit limit;
	int abi;

	if (uname(&name) == 0 && read_numbers(name.release, version, 2)) {
		host->kernel_major = (unsigned int)version[0];
		host->kernel_minor = (unsigned int)version[1];
	}
	abi = cm_sys_landlock_create_ruleset(NULL, 0, CM_LL_CREATE_RULESET_VERSION);
	host->landlock_abi = abi > 0 ? (unsigned int)abi : 0;
	if (sysinfo(&info) == 0)
		host->memory_bytes = (uint64_t)info.totalram * info.mem_unit;
	host->max_open_files = UINT64_MAX;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max != RLIM_INFINITY)
		host->max_open_files = limit.rlim_max;
}

static void read_subids(struct cm_host *host)
{
	CM_AUTO_FREE char *uids = NULL;
	CM_AUTO_FREE char *gids = NULL;
	struct cm_host_subids *s = &host->subids;

	if (cm_read_text_at(AT_FDCWD, "/etc/subuid", MAX_SUBID, &uids) == 0)
		(void)cm_host_subid_parse(uids, host->user_name, host->uid, &s->uid_first,
					  &s->uid_count);
	/* both files are keyed by the user: there is no list by group */
	if (cm_read_text_at(AT_FDCWD, "/etc/subgid", MAX_SUBID, &gids) == 0)
		(void)cm_host_subid_parse(gids, host->user_name, host->uid, &s->gid_first,
					  &s->gid_count);
}

int cm_host_read(const struct cm_strv *env, struct cm_host *ret, struct cm_error *err)
{
	struct cm_host host;
	int r;

	/* cgroup holds paths for pages: it is not cleared and copied, but read in place */
	memset(&host, 0, offsetof(struct cm_host, cgroup));
	host.uid = geteuid();
	host.gid = getegid();
	/* users and groups are mapped one by one, and a session's slot is of both */
	host.has_slot_ids =
		host.uid == 0 && has_slots("/proc/self/uid_map") && has_slots("/proc/self/gid_map");
	host.is_root = host.has_slot_ids && has_root_capabilities();
	/* first: whoever makes a mount namespace meanwhile holds up who reads the mounts */
	cm_host_cgroup_read(host.is_root, &ret->cgroup);
	r = read_groups(&host, err);
	if (r == CM_OK)
		r = read_user(&host, env, err);
	if (r < 0) {
		free(host.groups);
		free(host.user_name);
		free(host.home);
		free(host.shell);
		return r;
	}
	read_kernel(&host);
	if (host.uid != 0)
		read_subids(&host);
	memcpy(ret, &host, offsetof(struct cm_host, cgroup));
	return CM_OK;
}

void cm_host_clear(struct cm_host *host)
{
	if (!host)
		return;
	free(host->groups);
	free(host->user_name);
	free(host->home);
	free(host->shell);
	/* nor is cgroup touched here (cm_host_read) */
	memset(host, 0, offsetof(struct cm_host, cgroup));
}
