/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/checkout/existing.h"

#include <errno.h>
#include <fcntl.h>
#include <git2/sys/repository.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "isolation/checkout/regular.h"
#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/path.h"
#include "runtime/base/text.h"

/* in the scratch: the names that a killed update may have left locks of, one a line */
#define LOCKS "locks"
#define LOCKS_MAX (64UL * 1024 * 1024)
/* a git that holds one of them needs it for milliseconds */
#define LOCK_TRIES 50
#define LOCK_PAUSE_NS 20000000L

/* What a first checkout writes, less what is not read here, and reflogs, which a bare one lacks. */
static const char own_config[] = "[core]\n"
				 "\trepositoryformatversion = 0\n"
				 "\tbare = true\n"
				 "\tlogallrefupdates = true\n"
				 "\tprotectNTFS = true\n"
				 "\tprotectHFS = true\n";

static int not_a_checkout(const struct cm_existing *ex, const char *why, struct cm_error *err)
{
	cm_error_set(err, CM_E_CHECKOUT, 0, "'%s/.git' is not the git directory of a checkout: %s",
		     ex->path, why);
	cm_error_hint(err, "put back what git had there; or move the checkout away, and it is made "
			   "anew");
	return CM_E_CHECKOUT;
}

/* What leads to refs and objects of another repository; a checkout shares with none. */
static int check_alone(const struct cm_existing *ex, struct cm_error *err)
{
	static const char *const names[] = { "commondir", "gitdir", "objects/info/alternates",
					     "objects/info/http-alternates" };
	struct stat st;

	for (size_t i = 0; i < CM_ARRAY_SIZE(names); i++) {
		CM_AUTO_FREE char *why = NULL;

		if (fstatat(ex->git_fd, names[i], &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		why = cm_asprintf("it has '%s'", names[i]);
		return not_a_checkout(ex, why ? why : names[i], err);
	}
	return CM_OK;
}

static int check_names(const struct cm_existing *ex, struct cm_error *err)
{
	static const struct {
		const char *name;
		mode_t type;
		bool is_needed;
	} names[] = {
		{ "HEAD", S_IFREG, true },	    { "config", S_IFREG, true },
		{ "objects", S_IFDIR, true },	    { "refs", S_IFDIR, true },
		{ "objects/pack", S_IFDIR, false }, { "objects/info", S_IFDIR, false },
		{ "packed-refs", S_IFREG, false },  { "index", S_IFREG, false },
		{ "shallow", S_IFREG, false },	    { "logs", S_IFDIR, false },
		{ "info", S_IFDIR, false },
	};
	struct stat st;

	for (size_t i = 0; i < CM_ARRAY_SIZE(names); i++) {
		int r = fstatat(ex->git_fd, names[i].name, &st, AT_SYMLINK_NOFOLLOW);
		CM_AUTO_FREE char *why = NULL;

		if (r < 0 && !names[i].is_needed)
			continue;
		if (r == 0 && (st.st_mode & S_IFMT) == names[i].type)
			continue;
		why = cm_asprintf("its '%s' is not %s", names[i].name,
				  names[i].type == S_IFDIR ? "a directory" : "a file");
		return not_a_checkout(ex, why ? why : names[i].name, err);
	}
	return CM_OK;
}

static int open_dirs(struct cm_existing *ex, struct cm_error *err)
{
	ex->git_path = cm_path_join(ex->path, ".git");
	ex->scratch_path = ex->git_path ? cm_path_join(ex->git_path, CM_EXISTING_SCRATCH) : NULL;
	if (!ex->scratch_path)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	ex->dir_fd = open(ex->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (ex->dir_fd < 0)
		return cm_library_sys_error(err, errno, "cannot open the checkout '%s'", ex->path);
	ex->git_fd = openat(ex->dir_fd, ".git", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (ex->git_fd >= 0)
		return CM_OK;
	if (errno == ENOENT)
		return not_a_checkout(ex, "there is none", err);
	if (errno == ENOTDIR || errno == ELOOP)
		return not_a_checkout(ex, "it is not a directory", err);
	return cm_library_sys_error(err, errno, "cannot open '%s'", ex->git_path);
}

/*
 * libgit2 reads the repository's own configuration when it opens it: the format, which it has to
 * understand, and with the flag of a bare one nothing else that counts. Then it gets another.
 */
static int set_config(struct cm_existing *ex, struct cm_error *err)
{
	CM_AUTO_GIT(git_config) git_config *config = NULL;
	char path[64];

	ex->config_fd = cm_memfd_sealed("config", own_config, sizeof(own_config) - 1);
	if (ex->config_fd < 0)
		return cm_library_sys_error(err, -ex->config_fd, "cannot make a configuration");
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", ex->config_fd);
	if (git_config_new(&config) < 0 ||
	    git_config_add_file_ondisk(config, path, GIT_CONFIG_LEVEL_LOCAL, NULL, 0) < 0 ||
	    git_repository_set_config(ex->repo, config) < 0)
		return cm_library_error(err, "cannot make a configuration");
	/* names in reflogs, which must not be those of the host's user */
	if (git_repository_set_ident(ex->repo, "casemate", "casemate@localhost") < 0)
		return cm_library_error(err, "cannot set the name for reflogs");
	return CM_OK;
}

static int open_repository(struct cm_existing *ex, struct cm_error *err)
{
	unsigned int flags = GIT_REPOSITORY_OPEN_NO_SEARCH | GIT_REPOSITORY_OPEN_BARE |
			     GIT_REPOSITORY_OPEN_CROSS_FS;

	if (git_repository_open_ext(&ex->repo, ex->git_path, flags, NULL) < 0)
		return cm_library_error(err, "cannot open the checkout '%s'", ex->path);
	return set_config(ex, err);
}

int cm_existing_open(const char *path, struct cm_existing *ret, struct cm_error *err)
{
	struct cm_existing ex = CM_EXISTING_INIT;
	int r;

	ex.path = path;
	r = open_dirs(&ex, err);
	if (r == CM_OK)
		r = check_alone(&ex, err);
	if (r == CM_OK)
		r = check_names(&ex, err);
	if (r == CM_OK)
		r = cm_regular_check_own(ex.git_path, err);
	if (r == CM_OK)
		r = open_repository(&ex, err);
	if (r < 0)
		cm_existing_clear(&ex);
	else
		*ret = ex;
	return r;
}

static int cannot_write(const struct cm_existing *ex, int sys_errno, struct cm_error *err)
{
	return cm_library_sys_error(err, sys_errno, "cannot write below '%s'", ex->git_path);
}

/* Of a git at work in the session it goes by itself; that of a killed update does not. */
static void remove_lock(const struct cm_existing *ex, const char *name)
{
	const struct timespec pause = { .tv_nsec = LOCK_PAUSE_NS };
	CM_AUTO_FREE char *lock = cm_asprintf("%s.lock", name);
	struct stat st;

	if (!lock || strstr(name, "..") || name[0] == '/')
		return;
	for (int i = 0; i < LOCK_TRIES; i++) {
		if (fstatat(ex->git_fd, lock, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return;
		(void)nanosleep(&pause, NULL);
	}
	(void)unlinkat(ex->git_fd, lock, 0);
}

static int remove_locks(const struct cm_existing *ex, struct cm_error *err)
{
	struct stat st;
	CM_AUTO_FREE char *text = NULL;
	char *rest;
	ssize_t n;

	if (fstatat(ex->scratch_fd, LOCKS, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
	    st.st_size > (off_t)LOCKS_MAX)
		return CM_OK;
	text = cm_malloc((size_t)st.st_size + 2);
	if (!text)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	n = cm_read_file_at(ex->scratch_fd, LOCKS, text, (size_t)st.st_size + 2);
	rest = n > 0 ? text : NULL;
	while (rest) {
		const char *name = strsep(&rest, "\n");

		if (name[0] != '\0')
			remove_lock(ex, name);
	}
	return CM_OK;
}

int cm_existing_begin(struct cm_existing *ex, bool *ret_is_left, struct cm_error *err)
{
	*ret_is_left = false;
	if (mkdirat(ex->git_fd, CM_EXISTING_SCRATCH, 0700) < 0) {
		if (errno != EEXIST)
			return cannot_write(ex, errno, err);
		*ret_is_left = true;
	}
	ex->scratch_fd = openat(ex->git_fd, CM_EXISTING_SCRATCH,
				O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (ex->scratch_fd < 0)
		return cannot_write(ex, errno, err);
	/* not to be lost before it is known that nothing is to be finished by it */
	ex->is_unfinished = *ret_is_left;
	return *ret_is_left ? remove_locks(ex, err) : CM_OK;
}

int cm_existing_reset(struct cm_existing *ex, struct cm_error *err)
{
	int r;

	cm_fd_close(&ex->scratch_fd);
	r = cm_remove_tree_at(ex->git_fd, CM_EXISTING_SCRATCH);
	if (r < 0)
		return cannot_write(ex, -r, err);
	ex->is_unfinished = false;
	if (mkdirat(ex->git_fd, CM_EXISTING_SCRATCH, 0700) < 0)
		return cannot_write(ex, errno, err);
	ex->scratch_fd = openat(ex->git_fd, CM_EXISTING_SCRATCH,
				O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return ex->scratch_fd < 0 ? cannot_write(ex, errno, err) : CM_OK;
}

int cm_existing_will_lock(struct cm_existing *ex, const struct cm_strv *names, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf text = { 0 };
	int r;

	cm_buf_init(&text, LOCKS_MAX);
	for (size_t i = 0; i < names->n; i++)
		cm_buf_printf(&text, "%s\n", names->v[i]);
	if (cm_buf_status(&text) != CM_OK)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	r = cm_replace_file_at(ex->scratch_fd, LOCKS, text.data ? text.data : "", text.len, 0600,
			       false);
	return r < 0 ? cannot_write(ex, -r, err) : CM_OK;
}

void cm_existing_clear(struct cm_existing *ex)
{
	git_repository_free(ex->repo);
	ex->repo = NULL;
	cm_fd_close(&ex->config_fd);
	if (ex->scratch_fd >= 0 && !ex->is_unfinished)
		(void)cm_remove_tree_at(ex->git_fd, CM_EXISTING_SCRATCH);
	cm_fd_close(&ex->scratch_fd);
	cm_fd_close(&ex->git_fd);
	cm_fd_close(&ex->dir_fd);
	cm_ptr_free(&ex->git_path);
	cm_ptr_free(&ex->scratch_path);
}
