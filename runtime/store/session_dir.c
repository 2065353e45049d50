/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The session directory, <root>/<id>: the user's work.
 *
 * As root it belongs to the session's own kernel uid, so that nothing a jail writes is a file of
 * host root; the root above it is closed to other users, who could otherwise run what is in it.
 * A directory that is there already is somebody's work: it is used as it is or refused, never
 * given another owner. The one exception is an empty one of ours, which a death between making
 * and giving away leaves.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/fd.h"
#include "runtime/store/store_internal.h"

static int refuse_root(const char *root, const struct stat *st, bool is_private,
		       struct cm_error *err)
{
	mode_t open_to = is_private ? 077 : 022;

	if (st->st_uid != geteuid()) {
		(void)cm_error_set(err, CM_E_DENIED, 0,
				   "session root '%s' belongs to uid %u and not to this user", root,
				   (unsigned int)st->st_uid);
		cm_error_hint(err, "name a directory of your own with --root");
		return CM_E_DENIED;
	}
	if (st->st_mode & open_to) {
		(void)cm_error_set(err, CM_E_DENIED, 0,
				   "session root '%s' is open to other users (mode %04o)", root,
				   (unsigned int)(st->st_mode & 07777));
		cm_error_hint(err, "chmod 700 '%s', or name another directory with --root", root);
		return CM_E_DENIED;
	}
	return CM_OK;
}

static int open_root(const char *root, bool is_private, int *ret_fd, struct cm_error *err)
{
	CM_AUTO_FD int fd = -1;
	struct stat st;
	int r;

	fd = cm_open(root, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT) {
		r = cm_store_make_dirs(root, err);
		if (r != CM_OK) {
			if (err && !err->hint[0])
				cm_error_hint(err, "name a directory that you can write with "
						   "--root or CASEMATE_ROOT");
			return cm_error_wrap(err, "cannot make session root '%.200s'", root);
		}
		fd = cm_open(root, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	}
	if (fd < 0) {
		/* O_DIRECTORY answers first when both are wrong */
		bool is_link = errno == ELOOP ||
			       (errno == ENOTDIR && lstat(root, &st) == 0 && S_ISLNK(st.st_mode));

		return cm_store_fail(err, is_link ? ELOOP : errno, "use session root", root, NULL);
	}
	if (fstat(fd, &st) < 0)
		return cm_store_fail(err, errno, "look at session root", root, NULL);
	r = refuse_root(root, &st, is_private, err);
	if (r == CM_OK)
		*ret_fd = cm_fd_take(&fd);
	return r;
}

static bool note_entry(int dir_fd, const char *name, void *data)
{
	(void)dir_fd;
	(void)name;
	*(bool *)data = false;
	return false;
}

static bool is_empty(int dir_fd)
{
	bool is = true;

	return cm_store_each_entry(dir_fd, ".", note_entry, &is) == 0 && is;
}

static int refuse_dir(const struct cm_store_session *s, const struct stat *st, uid_t owner,
		      struct cm_error *err)
{
	if (st->st_uid != owner)
		(void)cm_error_set(err, CM_E_DENIED, 0,
				   "session directory '%s' belongs to uid %u, not to the session "
				   "(uid %u)",
				   s->session_dir, (unsigned int)st->st_uid, (unsigned int)owner);
	else
		(void)cm_error_set(err, CM_E_DENIED, 0,
				   "session directory '%s' can be written by every user",
				   s->session_dir);
	cm_error_hint(err, "move it away, or work on it as it is with --workspace '%s'",
		      s->session_dir);
	return CM_E_DENIED;
}

/* Ours and not given away yet: fresh, or left by a death just there. */
static int give_away(const struct cm_store_session *s, int fd, struct stat *st,
		     struct cm_error *err)
{
	uint32_t agent = s->record.agent_id;

	if (agent == 0 || st->st_uid == agent || st->st_uid != geteuid() || !is_empty(fd))
		return CM_OK;
	if (fchown(fd, agent, agent) < 0 || fchmod(fd, 0700) < 0 || fstat(fd, st) < 0)
		return cm_store_fail(err, errno, "give the session its directory", s->session_dir,
				     NULL);
	return CM_OK;
}

/* What a temporary session works on goes with it: also by whoever finds it when all are dead. */
static int note_root(const struct cm_store_session *s, struct cm_error *err)
{
	const char *root = s->record.root;
	int r;

	if (!s->record.is_temporary)
		return CM_OK;
	r = cm_replace_file_at(s->dir_fd, CM_STORE_ROOT, root, strlen(root), 0600, false);
	return r < 0 ? cm_store_fail(err, -r, "write", s->dir, CM_STORE_ROOT) : CM_OK;
}

int cm_store_session_dir_make(struct cm_store *store, const struct cm_store_session *s,
			      struct cm_error *err)
{
	CM_AUTO_FD int root_fd = -1;
	CM_AUTO_FD int fd = -1;
	uid_t owner = s->record.agent_id ? s->record.agent_id : geteuid();
	struct stat st;
	int r = open_root(s->record.root, s->record.agent_id != 0, &root_fd, err);

	(void)store;
	if (r == CM_OK)
		r = note_root(s, err);
	if (r != CM_OK)
		return r;
	if (mkdirat(root_fd, s->record.id, 0700) < 0 && errno != EEXIST)
		return cm_store_fail(err, errno, "make session directory in", s->record.root, NULL);
	fd = cm_store_openat(root_fd, s->record.id, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return cm_store_fail(err, errno, "open session directory", s->record.root,
				     s->record.id);
	if (fstat(fd, &st) < 0)
		return cm_store_fail(err, errno, "look at", s->session_dir, NULL);
	r = give_away(s, fd, &st, err);
	if (r != CM_OK)
		return r;
	if (st.st_uid != owner || (st.st_mode & S_IWOTH))
		return refuse_dir(s, &st, owner, err);
	return CM_OK;
}
