/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Before a session's directory goes without anybody having named it.
 *
 * The session's commands have written everything in it, so here names are looked at, by descriptor and
 * without following a link, and nothing else. What git makes of it is told by the helper of checkouts,
 * in a jail that sees that directory alone; whatever goes wrong there, the directory stays.
 */
#include "providers/local/unsaved.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "providers/local/checkout_helper.h"
#include "providers/local/inside.h"
#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/path.h"
#include "runtime/base/text.h"

/* of one directory */
#define MAX_REPOSITORIES 64
#define MAX_ENTRIES 4096
#define LOOK_MS 60000

static int unknown(const char *path, const char *why, struct cm_error *err)
{
	return cm_error_set(err, CM_E_EXISTS, 0, "whether '%s' has work to lose is not known: %s",
			    path, why);
}

static bool has_entry(int dir_fd, const char *name, const char *below)
{
	char path[NAME_MAX + sizeof("/objects")];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/%s", name, below);
	return fstatat(dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* By its ".git", or a bare one by what git looks for: that may be where all was pushed to. */
static bool is_repository(int dir_fd, const char *name)
{
	struct stat st;

	/* the one component that could be a link is looked at itself first */
	return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) &&
	       (has_entry(dir_fd, name, ".git") ||
		(has_entry(dir_fd, name, "HEAD") && has_entry(dir_fd, name, "objects")));
}

/* Of the directory itself and of what is right in it. Its own ".git" is looked at with it. */
static int find_repositories(const struct cm_store_session *s, DIR *dir, struct cm_strv *ret,
			     struct cm_error *err)
{
	const struct dirent *e;
	size_t n = 0;

	if (is_repository(dirfd(dir), ".") && cm_strv_add(ret, s->session_dir) != CM_OK)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is ours alone */
	while ((e = readdir(dir)) != NULL) {
		if (++n > MAX_ENTRIES || ret->n > MAX_REPOSITORIES)
			return unknown(s->session_dir, "it has too many entries", err);
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
		    strcmp(e->d_name, ".git") == 0 || !is_repository(dirfd(dir), e->d_name))
			continue;
		if (cm_strv_addf(ret, "%s/%s", s->session_dir, e->d_name) != CM_OK)
			return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	}
	return CM_OK;
}

/* A checkout whose git directory is gone has what nobody can tell any more. */
static int add_checkout(const struct cm_store_session *s, struct cm_strv *ret, struct cm_error *err)
{
	const char *checkout = s->record.checkout;
	struct stat st;

	if (!checkout || cm_strv_has(ret, checkout) || lstat(checkout, &st) < 0)
		return CM_OK;
	return cm_strv_add(ret, checkout) == CM_OK
		       ? CM_OK
		       : cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
}

static int list_repositories(const struct cm_store_session *s, struct cm_strv *ret,
			     struct cm_error *err)
{
	CM_AUTO_FD int root_fd =
		open(s->record.root, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	CM_AUTO_FD int fd = -1;
	DIR *dir;
	int r;

	if (root_fd >= 0)
		fd = openat(root_fd, s->record.id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return CM_OK;
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir)
		return unknown(s->session_dir, strerror(errno), err);
	(void)cm_fd_take(&fd);
	r = find_repositories(s, dir, ret, err);
	(void)closedir(dir);
	return r == CM_OK ? add_checkout(s, ret, err) : r;
}

static void put_count(struct cm_buf *out, int64_t n, const char *one, const char *many)
{
	if (n > 0)
		cm_buf_printf(out, "%s%lld %s", out->len > 0 ? ", " : "", (long long)n,
			      n == 1 ? one : many);
}

static int check_one(struct cm_local *l, const char *path, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf what = { 0 };
	struct cm_error why = CM_ERROR_INIT;
	struct cm_checkout_unsaved has;
	int r = cm_checkout_helper_unsaved(l, path, &has, &why);

	if (r == CM_E_CANCELLED)
		return unknown(path, "git's answer takes too long", err);
	if (r < 0)
		return unknown(path, why.msg, err);
	cm_buf_init(&what, 256);
	put_count(&what, has.uncommitted - has.untracked, "uncommitted change",
		  "uncommitted changes");
	put_count(&what, has.untracked, "untracked file", "untracked files");
	put_count(&what, has.stashes, "stash", "stashes");
	put_count(&what, has.commits, "commit on no branch of a remote",
		  "commits on no branch of a remote");
	if (what.len == 0)
		return CM_OK;
	return cm_error_set(err, CM_E_EXISTS, 0, "'%s' has %s", path, what.data);
}

/* The session directory is what the jail shows; the session's own ids are in it. */
static int fill_spec(const struct cm_store_session *s, struct cm_spec *spec, struct cm_error *err)
{
	cm_spec_init(spec);
	spec->workspace_kind = CM_WORKSPACE_DIR;
	spec->workspace = cm_strdup(s->session_dir);
	spec->network = CM_NETWORK_NONE;
	/* what a root of the jail's made is not for its user to read */
	spec->user = s->record.user == CM_USER_ROOT ? CM_USER_ROOT : CM_USER_USER;
	spec->git = CM_GIT_RW;
	return spec->workspace ? CM_OK
			       : cm_error_set(err, CM_E_NOMEM, 0, "no memory for the session");
}

static int look(struct cm_local *l, const struct cm_strv *repositories, struct cm_error *err)
{
	struct cm_local_plan extra = { 0 };
	struct cm_error why = CM_ERROR_INIT;
	char helper[PATH_MAX];
	int r = cm_checkout_helper_mount(&extra, helper, sizeof(helper), &why);

	if (r == CM_OK)
		r = cm_local_task_open(l, &l->spec, l->session.session_dir, &extra, &why);
	if (r < 0)
		return unknown(l->session.session_dir, why.msg, err);
	for (size_t i = 0; r == CM_OK && i < repositories->n; i++)
		r = check_one(l, repositories->v[i], err);
	return r;
}

static int timer(unsigned int ms, struct cm_error *err)
{
	const struct itimerspec when = {
		.it_value = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 },
	};
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

	if (fd < 0 || timerfd_settime(fd, 0, &when, NULL) < 0) {
		(void)cm_error_set(err, CM_E_SYS, errno, "cannot make a timer");
		cm_fd_close(&fd);
	}
	return fd;
}

static int look_in_jail(struct cm_store_session *s, const struct cm_strv *repositories,
			const struct cm_config *config, unsigned int look_ms, struct cm_error *err)
{
	CM_AUTO_FD int timer_fd = timer(look_ms != 0 ? look_ms : LOOK_MS, err);
	const struct cm_local_events events = { .cancel_fd = timer_fd };
	struct cm_local l;
	struct cm_spec spec;
	int r = timer_fd < 0 ? CM_E_SYS : fill_spec(s, &spec, err);

	if (timer_fd < 0)
		return r;
	cm_local_init(&l);
	if (r == CM_OK)
		r = cm_local_open(&l, &spec, config, &events, err);
	if (r == CM_OK) {
		/* lent: cm_local_close leaves alone what has_session does not claim */
		l.session = *s;
		r = look(&l, repositories, err);
		cm_local_task_close(&l);
		memset(&l.session, 0, sizeof(l.session));
	}
	cm_local_close(&l);
	cm_spec_clear(&spec);
	return r;
}

int cm_local_check_unsaved(struct cm_store_session *s, const struct cm_config *config,
			   unsigned int look_ms, struct cm_error *err)
{
	CM_AUTO_STRV struct cm_strv repositories = { 0 };
	int r = list_repositories(s, &repositories, err);

	return r < 0 || repositories.n == 0 ? r
					    : look_in_jail(s, &repositories, config, look_ms, err);
}
