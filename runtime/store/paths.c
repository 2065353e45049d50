/* SPDX-License-Identifier: Apache-2.0 */
/* Where things lie: the store's directories, opened and checked. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/kernel.h"
#include "runtime/base/path.h"
#include "runtime/store/store_internal.h"

#define ROOT_STATE "/var/lib/casemate"
#define ROOT_RUNTIME "/run/casemate"
#define ROOT_CACHE "/var/cache/casemate"
#define DEFAULT_ROOT ".mastracode/web/sandboxes"

static int no_memory(struct cm_error *err)
{
	return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
}

static uint64_t random_u64(void)
{
	uint64_t v = 0;

	/* before the pool is ready (early boot) a name that is only unlikely must do */
	if (getrandom(&v, sizeof(v), GRND_NONBLOCK) != (ssize_t)sizeof(v))
		v = ((uint64_t)cm_clock_mono_us() << 20) ^ (uint64_t)getpid();
	return v;
}

void cm_store_random_hex(char buf[17])
{
	(void)snprintf(buf, 17, "%016llx", (unsigned long long)random_u64());
}

void cm_store_new_id(char *buf, size_t size)
{
	/* without letters and digits that look alike */
	static const char alphabet[] = "abcdefghjkmnpqrstuvwxyz023456789";
	uint64_t v = random_u64();
	char tail[13];

	_Static_assert(sizeof(alphabet) == 33, "five bits a letter");
	for (size_t i = 0; i < sizeof(tail) - 1; i++, v >>= 5)
		tail[i] = alphabet[v & 31];
	tail[sizeof(tail) - 1] = '\0';
	(void)snprintf(buf, size, "run-%s", tail);
}

void cm_store_name(char buf[CM_STORE_NAME_SIZE], const char *a, const char *b)
{
	(void)snprintf(buf, CM_STORE_NAME_SIZE, "%s/%s", a, b);
}

/* openat says ENOTDIR of a link where a directory is wanted; openat2 says what is wrong. */
static int open_without_openat2(int dir_fd, const char *path, int flags, unsigned int mode)
{
	int fd = openat(dir_fd, path, flags | O_CLOEXEC | O_NOFOLLOW, (mode_t)mode);
	struct stat st;

	if (fd < 0 && errno == ENOTDIR) {
		if (fstatat(dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
			errno = ELOOP;
		else
			errno = ENOTDIR;
	}
	return fd;
}

int cm_store_openat(int dir_fd, const char *path, int flags, unsigned int mode)
{
	struct open_how how = {
		.flags = (uint64_t)(unsigned int)(flags | O_CLOEXEC),
		.mode = mode,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
	};
	int fd = cm_sys_openat2(dir_fd, path, &how);

	/* inside a jail openat2 is not there; our own directories are 0700 in any case */
	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		fd = open_without_openat2(dir_fd, path, flags, mode);
	return fd;
}

int cm_store_fail(struct cm_error *err, int sys_errno, const char *what, const char *dir,
		  const char *name)
{
	const char *slash = name ? "/" : "";
	int code = sys_errno == EACCES || sys_errno == EPERM ? CM_E_DENIED : CM_E_SYS;

	if (!name)
		name = "";
	(void)cm_error_set(err, code, sys_errno, "cannot %s '%s%s%s'", what, dir, slash, name);
	if (sys_errno == ENOSPC || sys_errno == EDQUOT)
		cm_error_hint(err, "free space on the file system of '%s'", dir);
	else if (sys_errno == EROFS)
		cm_error_hint(err, "'%s' is on a read-only file system: mount it writable", dir);
	else if (sys_errno == ELOOP)
		cm_error_hint(err, "'%s%s%s' is a symbolic link: put a directory in its place", dir,
			      slash, name);
	else if (sys_errno == ENOTDIR)
		cm_error_hint(err, "a directory must be at '%s%s%s': move what is there away", dir,
			      slash, name);
	else if (sys_errno == EMFILE || sys_errno == ENFILE)
		cm_error_hint(err, "raise the limit of open files (ulimit -n)");
	else
		cm_error_hint(err, "look at the owner and mode of '%s' (ls -ld)", dir);
	return code;
}

int cm_store_subdir(int dir_fd, const char *what, const char *name, int *ret_fd,
		    struct cm_error *err)
{
	int fd = cm_store_openat(dir_fd, name, O_RDONLY | O_DIRECTORY, 0);

	if (fd < 0 && errno == ENOENT) {
		if (mkdirat(dir_fd, name, 0700) < 0 && errno != EEXIST)
			return cm_store_fail(err, errno, "make directory", what, name);
		fd = cm_store_openat(dir_fd, name, O_RDONLY | O_DIRECTORY, 0);
	}
	if (fd < 0)
		return cm_store_fail(err, errno, "open directory", what, name);
	*ret_fd = fd;
	return CM_OK;
}

/*
 * path with the links in what exists of its way resolved: a home below a symbolic link is common.
 * The last component is left alone, so that a link in its place is seen. NULL: out of memory.
 */
static char *real_parents(const char *path)
{
	const char *slash = strrchr(path, '/');

	for (; slash && slash > path; slash = memrchr(path, '/', (size_t)(slash - path))) {
		CM_AUTO_FREE char *parent = cm_asprintf("%.*s", (int)(slash - path), path);
		CM_AUTO_FREE char *real = parent ? cm_path_real(parent) : NULL;

		if (real)
			return cm_asprintf("%s%s", strcmp(real, "/") == 0 ? "" : real, slash);
		if (errno != ENOENT)
			break;
	}
	return cm_strdup(path);
}

int cm_store_make_dirs(const char *path, struct cm_error *err)
{
	CM_AUTO_FREE char *real = real_parents(path);

	if (!real)
		return no_memory(err);
	return cm_path_make_dirs(real, 0700, err);
}

int cm_store_open_private(const char *path, const char *what, const char *how, int *ret_fd,
			  struct cm_error *err)
{
	CM_AUTO_FREE char *real = NULL;
	CM_AUTO_FD int fd = -1;
	struct stat st;
	int r;

	/* the common case in two calls; what fails here gets its message below */
	fd = cm_open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() && (st.st_mode & 077) == 0) {
		*ret_fd = cm_fd_take(&fd);
		return CM_OK;
	}
	real = real_parents(path);
	if (!real)
		return no_memory(err);
	r = cm_path_open_private_dir(real, ret_fd, err);
	if (r == CM_OK)
		return CM_OK;
	if (err && !err->hint[0])
		cm_error_hint(err, "look at '%s' (namei -l), or %s", path, how);
	return cm_error_wrap(err, "%s", what);
}

static int no_home(const char *what, struct cm_error *err)
{
	(void)cm_error_set(err, CM_E_INVALID, 0, "no place for %s: no home directory is known",
			   what);
	cm_error_hint(err, "set HOME to an absolute path");
	return CM_E_INVALID;
}

/* The variable's value when it is absolute: others are to be ignored. */
static const char *xdg_value(const struct cm_strv *env, const char *name)
{
	const char *value = env ? cm_strv_env_get(env, name) : NULL;

	return value && value[0] == '/' ? value : NULL;
}

/* $name/casemate, else home/fallback/casemate. */
static int xdg_path(const struct cm_strv *env, const char *name, const char *home,
		    const char *fallback, char **ret, struct cm_error *err)
{
	const char *value = xdg_value(env, name);

	if (!value && (!home || home[0] != '/'))
		return no_home("Casemate's own files", err);
	*ret = value ? cm_asprintf("%s/casemate", value)
		     : cm_asprintf("%s/%s/casemate", home, fallback);
	return *ret ? CM_OK : no_memory(err);
}

static int fill_paths(const struct cm_strv *env, const char *home, bool is_root,
		      struct cm_store *store, struct cm_error *err)
{
	const char *runtime = xdg_value(env, "XDG_RUNTIME_DIR");
	int r;

	if (is_root) {
		store->state = cm_strdup(ROOT_STATE);
		store->runtime = cm_strdup(ROOT_RUNTIME);
		store->cache = cm_strdup(ROOT_CACHE);
		return store->state && store->runtime && store->cache ? CM_OK : no_memory(err);
	}
	r = xdg_path(env, "XDG_STATE_HOME", home, ".local/state", &store->state, err);
	if (r == CM_OK)
		r = xdg_path(env, "XDG_CACHE_HOME", home, ".cache", &store->cache, err);
	if (r != CM_OK)
		return r;
	store->runtime =
		runtime ? cm_asprintf("%s/casemate", runtime) : cm_asprintf("%s/run", store->state);
	return store->runtime ? CM_OK : no_memory(err);
}

static const char *named_root(const struct cm_strv *env, const char *root)
{
	static const char *const names[] = { "CASEMATE_ROOT", "MASTRACODE_LOCAL_SANDBOX_ROOT" };

	if (root && *root)
		return root;
	for (size_t i = 0; env && i < CM_ARRAY_SIZE(names); i++) {
		const char *value = cm_strv_env_get(env, names[i]);

		if (value && *value)
			return value;
	}
	return NULL;
}

static int fill_root(const struct cm_strv *env, const char *root, const char *home,
		     struct cm_store *store, struct cm_error *err)
{
	CM_AUTO_FREE char *joined = NULL;
	const char *name = named_root(env, root);
	bool is_below_home = !name || (name[0] == '~' && (name[1] == '/' || name[1] == '\0'));

	store->is_root_named = name != NULL;
	if (is_below_home) {
		if (!home || home[0] != '/')
			return no_home("the session root", err);
		joined = cm_asprintf("%s/%s", home, name ? name + 1 : DEFAULT_ROOT);
		if (!joined)
			return no_memory(err);
		name = joined;
	}
	if (name[0] != '/') {
		(void)cm_error_set(err, CM_E_INVALID, 0, "session root '%s' is not absolute", name);
		cm_error_hint(err, "write it from '/' or '~/' on (--root, CASEMATE_ROOT)");
		return CM_E_INVALID;
	}
	store->root = cm_path_clean(name);
	if (!store->root && errno == ENOMEM)
		return no_memory(err);
	if (!store->root || strcmp(store->root, "/") == 0) {
		(void)cm_error_set(err, CM_E_INVALID, 0, "'%.200s' cannot be the session root",
				   name);
		cm_error_hint(err, "name a directory of your own with --root");
		return CM_E_INVALID;
	}
	return CM_OK;
}

/* The runtime directory of a login ends with it; then the state directory has to do. */
static bool is_login_gone(const char *runtime)
{
	CM_AUTO_FREE char *parent =
		cm_asprintf("%.*s", (int)(strrchr(runtime, '/') - runtime), runtime);
	struct stat st;

	return parent && stat(parent, &st) < 0 && errno == ENOENT;
}

static int open_runtime(struct cm_store *store, bool is_root, struct cm_error *err)
{
	const char *what = "no runtime directory";
	const char *how = is_root ? "make /run writable" : "set XDG_RUNTIME_DIR";
	int r = cm_store_open_private(store->runtime, what, how, &store->runtime_fd, err);

	if (r == CM_OK || is_root || !is_login_gone(store->runtime))
		return r;
	free(store->runtime);
	store->runtime = cm_asprintf("%s/run", store->state);
	if (!store->runtime)
		return no_memory(err);
	cm_error_clear(err);
	return cm_store_open_private(store->runtime, what, how, &store->runtime_fd, err);
}

int cm_store_open(const struct cm_strv *env, const char *root, const char *home, bool is_root,
		  struct cm_store *ret, struct cm_error *err)
{
	struct cm_store store = {
		.state_fd = -1, .runtime_fd = -1, .slot_fd = -1, .slot_claimed = CM_SLOT_NONE
	};
	int r = fill_paths(env, home, is_root, &store, err);

	if (r == CM_OK)
		r = fill_root(env, root, home, &store, err);
	if (r == CM_OK)
		r = cm_store_open_private(store.state, "no state directory",
					  is_root ? "remove it" : "set XDG_STATE_HOME",
					  &store.state_fd, err);
	if (r == CM_OK)
		r = open_runtime(&store, is_root, err);
	if (r != CM_OK) {
		cm_store_close(&store);
		return r;
	}
	*ret = store;
	return CM_OK;
}

void cm_store_close(struct cm_store *store)
{
	if (!store)
		return;
	cm_ptr_free(&store->state);
	cm_ptr_free(&store->runtime);
	cm_ptr_free(&store->cache);
	cm_ptr_free(&store->root);
	cm_fd_close(&store->state_fd);
	cm_fd_close(&store->runtime_fd);
	cm_fd_close(&store->slot_fd);
}
