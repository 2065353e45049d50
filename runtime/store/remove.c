/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking a session away.
 *
 * Its state directory is renamed into <state>/new first: from then on nobody sees it, and a death
 * leaves what the next start collects. Trees are removed fd-relative, following no link and
 * crossing no mount, since a jail wrote them. What an ordinary user cannot remove (files of
 * subordinate ids) brings the session back: it is still the way to get at them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/fd.h"
#include "runtime/store/store_internal.h"

static int tree_stays(const char *path, int sys_errno, struct cm_error *err)
{
	if (sys_errno == EACCES || sys_errno == EPERM) {
		(void)cm_error_set(err, CM_E_DENIED, sys_errno, "cannot remove '%s'", path);
		cm_error_hint(err, "it has files of other users (subordinate ids, or root's): "
				   "remove it as root");
		return CM_E_DENIED;
	}
	if (sys_errno == EBUSY || sys_errno == EXDEV) {
		(void)cm_error_set(err, CM_E_BUSY, sys_errno, "cannot remove '%s'", path);
		cm_error_hint(err,
			      "something is mounted below it: unmount it (findmnt), and again");
		return CM_E_BUSY;
	}
	return cm_store_fail(err, sys_errno, "remove", path, NULL);
}

static int remove_files(const struct cm_store_session *s, struct cm_error *err)
{
	CM_AUTO_FD int root_fd = -1;
	int r;

	root_fd = open(s->record.root, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (root_fd < 0)
		return errno == ENOENT ? CM_OK
				       : cm_store_fail(err, errno, "open session root",
						       s->record.root, NULL);
	r = cm_remove_tree_at(root_fd, s->record.id);
	return r < 0 ? tree_stays(s->session_dir, -r, err) : CM_OK;
}

static int remove_temporary(struct cm_store *store, struct cm_store_session *s,
			    struct cm_error *err)
{
	CM_AUTO_FD int tmp_fd =
		cm_store_openat(store->runtime_fd, CM_STORE_TMP, O_RDONLY | O_DIRECTORY, 0);
	int r = tmp_fd < 0 ? -errno : cm_store_remove_locked_dir(tmp_fd, s->record.id);

	/* ENOTEMPTY: whoever collects was in it, and does the rest */
	return r < 0 && r != -ENOENT && r != -ENOTEMPTY ? tree_stays(s->dir, -r, err) : CM_OK;
}

/* What tells that there is a session goes last, so that it can be put back as one. */
static bool remove_but_state(int dir_fd, const char *name, void *data)
{
	int *first = data;
	int r;

	if (strcmp(name, CM_STORE_STATE) == 0 || strcmp(name, CM_STORE_LOCK) == 0)
		return true;
	r = cm_remove_tree_at(dir_fd, name);
	if (r < 0 && *first == 0)
		*first = r;
	return true;
}

static int remove_lasting(struct cm_store *store, struct cm_store_session *s, struct cm_error *err)
{
	CM_AUTO_FD int sessions_fd = -1;
	CM_AUTO_FD int new_fd = -1;
	char random[17];
	char gone[CM_STORE_NAME_SIZE];
	int r = cm_store_subdir(store->state_fd, store->state, CM_STORE_NEW, &new_fd, err);

	if (r == CM_OK)
		r = cm_store_subdir(store->state_fd, store->state, CM_STORE_SESSIONS, &sessions_fd,
				    err);
	if (r != CM_OK)
		return r;
	cm_store_random_hex(random);
	(void)snprintf(gone, sizeof(gone), "%s.%s", s->record.id, random);
	if (renameat(sessions_fd, s->record.id, new_fd, gone) < 0)
		return cm_store_fail(err, errno, "remove", s->dir, NULL);
	r = 0;
	(void)cm_store_each_entry(s->dir_fd, ".", remove_but_state, &r);
	if (r < 0) {
		(void)renameat(new_fd, gone, sessions_fd, s->record.id);
		return tree_stays(s->dir, -r, err);
	}
	/* what fails from here on leaves something to be collected, and no session */
	(void)cm_remove_tree_at(new_fd, gone);
	(void)fsync(sessions_fd);
	if (s->socket_path)
		(void)unlink(s->socket_path);
	return CM_OK;
}

static bool is_running(const struct cm_store_session *s)
{
	/* a temporary session's keeper ends with its client, and we have the client's lock */
	return !s->record.is_temporary && cm_keeper_lock_is_held(s->dir_fd);
}

int cm_store_session_remove(struct cm_store *store, struct cm_store_session *s, bool with_files,
			    struct cm_error *err)
{
	CM_AUTO_FD int slot_fd = -1;
	struct stat st;
	uid_t owner;
	int r = CM_OK;

	if (s->lock_fd < 0)
		return cm_error_set(err, CM_E_BUG, 0, "session '%s' is removed without its lock",
				    s->record.id);
	if (is_running(s)) {
		(void)cm_error_set(err, CM_E_BUSY, 0, "session '%s' is running", s->record.id);
		cm_error_hint(err, "casemate stop %s", s->record.id);
		return CM_E_BUSY;
	}
	if (with_files)
		r = remove_files(s, err);
	if (r != CM_OK)
		return r;
	/* held meanwhile: files with its ids exist until the last line */
	slot_fd = cm_store_slot_hold(store, s->record.slot, s->record.id);
	r = s->record.is_temporary ? remove_temporary(store, s, err)
				   : remove_lasting(store, s, err);
	if (r == CM_OK && with_files && !s->record.is_temporary)
		cm_store_kept_forget(store, &s->record);
	if (r != CM_OK || slot_fd < 0)
		return r;
	/* what is there and was never given to the slot's ids, such as a link, was there before */
	owner = s->record.agent_id != 0 ? s->record.agent_id : geteuid();
	if (lstat(s->session_dir, &st) < 0 ? errno == ENOENT : st.st_uid != owner)
		cm_store_slot_drop(store, s->record.slot);
	else if (s->record.is_temporary)
		(void)cm_store_slot_keep(store, &s->record);
	return CM_OK;
}
