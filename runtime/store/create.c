/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making a session, all or nothing.
 *
 * A session that stays is built in <state>/new under a name of its own and renamed into place, so
 * a death on the way leaves nothing that anybody sees. Its builder holds the flock of the
 * directory's lock file from the start: what is in `new` and not locked is garbage. Whoever
 * collects may win the moment between mkdir and flock; then the builder begins again.
 *
 * A temporary session is on the way of every `casemate run` and is nothing but a directory with a
 * held lock; made in place, since its lock is what makes it a session.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/store/store_internal.h"

/* Many starts at once are many collectors, and each can win once. */
#define MAX_TRIES 100

static int already_there(const char *id, struct cm_error *err)
{
	(void)cm_error_set(err, CM_E_EXISTS, 0, "session '%s' exists already", id);
	cm_error_hint(err,
		      "use it with 'casemate run --session %s -- COMMAND', remove it with "
		      "'casemate rm %s', or take another id",
		      id, id);
	return CM_E_EXISTS;
}

static int collected_again(const char *id, struct cm_error *err)
{
	(void)cm_error_set(err, CM_E_BUSY, 0, "session '%s' was removed while it was being made",
			   id);
	cm_error_hint(err, "try again");
	return CM_E_BUSY;
}

/* Who a dead session's slot belonged to is asked of its lock file: it may have no state.json. */
static int note_slot(int lock_fd, uint32_t slot)
{
	if (slot == CM_SLOT_NONE)
		return 0;
	errno = ENOSPC;
	return pwrite(lock_fd, &slot, sizeof(slot), 0) == (ssize_t)sizeof(slot) ? 0 : -errno;
}

/* mkdir base_fd/path, open and lock it. 0, 1 when it was collected meanwhile, or -errno. */
static int make_locked_dir(int base_fd, const char *path, uint32_t slot, int *ret_dir_fd,
			   int *ret_lock_fd)
{
	CM_AUTO_FD int dir_fd = -1;
	CM_AUTO_FD int lock_fd = -1;
	int r;

	if (mkdirat(base_fd, path, 0700) < 0)
		return -errno;
	r = cm_store_lock_dir(base_fd, path, true, &dir_fd, &lock_fd);
	if (r == 0)
		r = note_slot(lock_fd, slot);
	/* without the lock whoever collects does it */
	if (r < 0 && (lock_fd < 0 || cm_store_remove_locked_dir(base_fd, path) < 0))
		(void)unlinkat(base_fd, path, AT_REMOVEDIR);
	if (r != 0)
		return r;
	*ret_dir_fd = cm_fd_take(&dir_fd);
	*ret_lock_fd = cm_fd_take(&lock_fd);
	return 0;
}

static int create_temporary(struct cm_store *store, struct cm_store_session *s,
			    struct cm_error *err)
{
	char name[CM_STORE_NAME_SIZE];
	bool has_parent = false;

	cm_store_name(name, CM_STORE_TMP, s->record.id);
	for (int i = 0; i < MAX_TRIES; i++) {
		int r = make_locked_dir(store->runtime_fd, name, s->record.slot, &s->dir_fd,
					&s->lock_fd);

		if (r == 0)
			return CM_OK;
		if (r == -EEXIST)
			return already_there(s->record.id, err);
		if (r == -ENOENT && !has_parent) {
			has_parent = true;
			if (mkdirat(store->runtime_fd, CM_STORE_TMP, 0700) == 0 || errno == EEXIST)
				continue;
			r = -errno;
		}
		if (r < 0)
			return cm_store_fail(err, -r, "make directory", store->runtime, name);
	}
	return collected_again(s->record.id, err);
}

/* The jail's private home and /tmp: the agent's own, whoever that is for the kernel. */
static int make_private_dir(const struct cm_store_session *s, const char *name, mode_t mode)
{
	CM_AUTO_FD int fd = -1;

	if (mkdirat(s->dir_fd, name, 0700) < 0)
		return -errno;
	fd = cm_store_openat(s->dir_fd, name, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return -errno;
	if (s->record.agent_id != 0 && fchown(fd, s->record.agent_id, s->record.agent_id) < 0)
		return -errno;
	/* after the chown, which may take mode bits away; and past the umask */
	return fchmod(fd, mode) < 0 ? -errno : 0;
}

static int fill(struct cm_store_session *s, struct cm_error *err)
{
	int r = make_private_dir(s, CM_STORE_HOME, 0700);

	if (r == 0)
		r = make_private_dir(s, CM_STORE_HOME_TMP, 01777);
	if (r < 0)
		return cm_store_fail(err, -r, "make the home and /tmp of", s->dir, NULL);
	return cm_store_session_save(s, true, err);
}

static int publish(struct cm_store *store, struct cm_store_session *s, int new_fd, const char *name,
		   struct cm_error *err)
{
	CM_AUTO_FD int sessions_fd = -1;
	int r = cm_store_subdir(store->state_fd, store->state, CM_STORE_SESSIONS, &sessions_fd,
				err);

	if (r != CM_OK)
		return r;
	/* before the session is: after a power cut its ids must not be anybody else's */
	r = cm_store_slot_keep(store, &s->record);
	if (r < 0)
		return cm_store_fail(err, -r, "write", store->state, CM_STORE_IDS);
	/* a session is never an empty directory, so this cannot replace one */
	if (renameat(new_fd, name, sessions_fd, s->record.id) < 0) {
		if (errno == ENOTEMPTY || errno == EEXIST)
			return already_there(s->record.id, err);
		return cm_store_fail(err, errno, "make", s->dir, NULL);
	}
	/* from here on the slot's file on the disk protects it */
	if (store->slot_claimed == s->record.slot)
		cm_fd_close(&store->slot_fd);
	/* the promise is made: when this fails the session is there, and may not be tomorrow */
	(void)fsync(sessions_fd);
	(void)mkdirat(store->runtime_fd, CM_STORE_SOCKETS, 0700);
	return CM_OK;
}

static int create_lasting(struct cm_store *store, struct cm_store_session *s, struct cm_error *err)
{
	CM_AUTO_FD int new_fd = -1;
	char random[17];
	char name[CM_STORE_NAME_SIZE];
	int r = cm_store_subdir(store->state_fd, store->state, CM_STORE_NEW, &new_fd, err);

	if (r != CM_OK)
		return r;
	for (int i = 0; i < MAX_TRIES; i++) {
		cm_store_random_hex(random);
		(void)snprintf(name, sizeof(name), "%s.%s", s->record.id, random);
		r = make_locked_dir(new_fd, name, s->record.slot, &s->dir_fd, &s->lock_fd);
		if (r != 1)
			break;
	}
	if (r == 1)
		return collected_again(s->record.id, err);
	if (r < 0)
		return cm_store_fail(err, -r, "make directory", store->state, CM_STORE_NEW);
	r = fill(s, err);
	if (r == CM_OK)
		r = publish(store, s, new_fd, name, err);
	if (r != CM_OK)
		(void)cm_remove_tree_at(new_fd, name);
	return r;
}

/* Ids are unique over both kinds. */
static bool is_taken(struct cm_store *store, const char *id)
{
	char name[CM_STORE_NAME_SIZE];
	struct stat st;

	cm_store_name(name, CM_STORE_SESSIONS, id);
	if (fstatat(store->state_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return true;
	cm_store_name(name, CM_STORE_TMP, id);
	return fstatat(store->runtime_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

int cm_store_session_create(struct cm_store *store, const struct cm_session_record *record,
			    struct cm_store_session *ret, struct cm_error *err)
{
	struct cm_store_session s;
	int r = cm_session_id_check(record->id, err);

	if (r != CM_OK)
		return r;
	cm_store_session_init(&s);
	if (cm_record_copy(&s.record, record) != CM_OK)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	s.record.version = CM_STATE_VERSION;
	if (!s.record.root)
		s.record.root = cm_strdup(store->root);
	if (s.record.created_ms == 0)
		s.record.created_ms = cm_clock_real_ms();
	if (!s.record.root || cm_store_session_paths(store, &s) != CM_OK)
		r = cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	else if (!s.record.is_temporary && is_taken(store, s.record.id))
		r = already_there(s.record.id, err);
	else if (s.record.is_temporary)
		r = create_temporary(store, &s, err);
	else
		r = cm_store_socket_check(&s, err);
	if (r == CM_OK && !s.record.is_temporary)
		r = create_lasting(store, &s, err);
	if (r != CM_OK) {
		cm_store_session_close(&s);
		return r;
	}
	*ret = s;
	return CM_OK;
}
