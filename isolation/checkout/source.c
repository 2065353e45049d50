/* SPDX-License-Identifier: Apache-2.0 */
/* The source of a checkout: which kind of address it is, and opening it. */
#include "isolation/checkout/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "isolation/checkout/regular.h"
#include "runtime/base/fd.h"
#include "runtime/base/giturl.h"
#include "runtime/base/path.h"

static int check_is_path(const char *spec, struct cm_error *err)
{
	if (spec[0] == '\0' || spec[0] == '-') {
		/* an option where a path belongs is a mistake or an attack */
		cm_error_set(err, CM_E_INVALID, 0, "'%s' is no path of a repository", spec);
		cm_error_hint(err, "give an absolute path, or one that begins with './'");
		return CM_E_INVALID;
	}
	if (cm_giturl_is_remote(spec) && access(spec, F_OK) < 0) {
		/* the address itself may hold a password, so it is never part of a message */
		cm_error_set(err, CM_E_INVALID, 0, "a source is a path, not an address");
		cm_error_hint(err,
			      "bring a mirror of it up to date with --fetch, and give the path "
			      "of that");
		return CM_E_INVALID;
	}
	return CM_OK;
}

static int cannot_open(const char *spec, int sys_errno, struct cm_error *err)
{
	switch (sys_errno) {
	case ENOENT:
		cm_error_set(err, CM_E_NOT_FOUND, 0, "source '%s' does not exist", spec);
		cm_error_hint(err, "give the path of a directory that holds a git repository");
		return CM_E_NOT_FOUND;
	case ENOTDIR:
		cm_error_set(err, CM_E_INVALID, 0, "source '%s' is not a directory", spec);
		cm_error_hint(err, "give the path of a directory that holds a git repository");
		return CM_E_INVALID;
	case EACCES:
		cm_error_set(err, CM_E_DENIED, EACCES, "cannot read source '%s'", spec);
		cm_error_hint(err, "make it readable for the user who runs this");
		return CM_E_DENIED;
	default:
		return cm_library_sys_error(err, sys_errno, "cannot open source '%s'", spec);
	}
}

static int not_a_repository(const char *path, struct cm_error *err)
{
	cm_error_set(err, CM_E_NOT_FOUND, 0, "'%s' is not a git repository", path);
	cm_error_hint(err, "name the top level of a repository, or use --workspace DIR for a tree "
			   "without git");
	return CM_E_NOT_FOUND;
}

/* The directory that a ".git" file names may be missing or, in a jail, not mounted. */
static int dangling_link(const char *path, struct cm_error *err)
{
	cm_error_set(
		err, CM_E_NOT_FOUND, 0,
		"'%s' is a linked worktree or a submodule, and its git directory cannot be opened",
		path);
	cm_error_hint(err,
		      "make the repository that it belongs to readable at its own path, or give "
		      "that repository and --ref");
	return CM_E_NOT_FOUND;
}

static int unsupported_format(const char *path, const char *cause, struct cm_error *err)
{
	cm_error_set(err, CM_E_UNSUPPORTED, 0, "cannot read the format of repository '%s': %s",
		     path, cause);
	cm_error_hint(err,
		      "SHA-256 and reftable repositories are not supported: convert it, or use "
		      "--workspace DIR to work on the tree itself");
	return CM_E_UNSUPPORTED;
}

static bool names_an_extension(const char *message)
{
	return strstr(message, "unsupported extension") || strstr(message, "repository version");
}

/* Later versions of the library read the list already when they open the repository. */
static int bad_shallow(const char *gitdir, struct cm_error *err)
{
	cm_error_set(err, CM_E_CHECKOUT, 0, "'%s/shallow' is not a list of commits", gitdir);
	cm_error_hint(err, "check the source with 'git fsck'");
	return CM_E_CHECKOUT;
}

/* gitdir is the directory itself or a ".git" file that names it. */
static int open_gitdir(const char *path, const char *gitdir, git_repository **ret,
		       struct cm_error *err)
{
	unsigned int flags = GIT_REPOSITORY_OPEN_NO_SEARCH | GIT_REPOSITORY_OPEN_BARE |
			     GIT_REPOSITORY_OPEN_CROSS_FS;
	const git_error *e;
	CM_AUTO_FREE char *head = cm_path_join(gitdir, "HEAD");
	struct stat st;

	if (git_repository_open_ext(ret, gitdir, flags, NULL) == 0)
		return CM_OK;
	e = git_error_last();
	if (e && names_an_extension(e->message))
		return unsupported_format(path, e->message, err);
	if (e && strstr(e->message, "graft OID"))
		return bad_shallow(gitdir, err);
	if (lstat(gitdir, &st) == 0 && S_ISREG(st.st_mode))
		return dangling_link(path, err);
	if (head && access(head, R_OK) < 0 && errno == EACCES)
		return cannot_open(gitdir, EACCES, err);
	if (e && e->klass != GIT_ERROR_REPOSITORY && e->klass != GIT_ERROR_OS)
		return cm_library_error(err, "cannot open repository '%s'", path);
	return not_a_repository(path, err);
}

int cm_source_open(const char *spec, struct cm_source *ret, struct cm_error *err)
{
	CM_AUTO_FREE char *path = NULL;
	CM_AUTO_FREE char *dot_git = NULL;
	CM_AUTO_FD int fd = -1;
	git_repository *repo = NULL;
	const char *git_dir;
	struct stat st;
	int r = check_is_path(spec, err);

	if (r != CM_OK)
		return r;
	path = cm_path_real(spec);
	if (!path)
		return cannot_open(spec, errno, err);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return cannot_open(spec, errno, err);
	dot_git = cm_path_join(path, ".git");
	if (!dot_git)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	git_dir = lstat(dot_git, &st) == 0 ? dot_git : path;
	r = cm_regular_check(git_dir, err);
	if (r == CM_OK)
		r = open_gitdir(path, git_dir, &repo, err);
	/* a linked worktree's refs and objects are elsewhere */
	if (r == CM_OK && strcmp(git_repository_path(repo), git_repository_commondir(repo)) != 0)
		r = cm_regular_check(git_repository_commondir(repo), err);
	if (r != CM_OK) {
		git_repository_free(repo);
		return r;
	}
	ret->path = cm_ptr_take(&path);
	ret->repo = repo;
	return CM_OK;
}

void cm_source_clear(struct cm_source *src)
{
	git_repository_free(src->repo);
	free(src->path);
	src->repo = NULL;
	src->path = NULL;
}
