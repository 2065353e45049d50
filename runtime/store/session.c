/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One session on disk: opening, locking, reading and writing it.
 *
 * The lock is a flock on <dir>/lock, so the kernel lets go of it when its holder dies. Whoever
 * got it looks whether the file is still the one of that name: while it waited, the session may
 * have been removed and made anew.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/hash.h"
#include "runtime/base/json.h"
#include "runtime/store/store_internal.h"

/* between two looks at a lock that somebody holds */
#define LOCK_POLL_MIN_US 500
#define LOCK_POLL_MAX_US 20000
/* most records are far smaller, and memory for each of a thousand would cost more than to read it */
#define STATE_USUAL_SIZE (16UL * 1024)

void cm_store_session_init(struct cm_store_session *s)
{
	memset(s, 0, sizeof(*s));
	cm_session_record_init(&s->record);
	s->dir_fd = -1;
	s->lock_fd = -1;
}

void cm_store_session_close(struct cm_store_session *s)
{
	if (!s)
		return;
	cm_session_record_clear(&s->record);
	cm_ptr_free(&s->dir);
	cm_ptr_free(&s->session_dir);
	cm_ptr_free(&s->socket_path);
	cm_fd_close(&s->dir_fd);
	cm_fd_close(&s->lock_fd);
}

/*
 * A keeper that was started from a login with another runtime directory listens there as long as
 * it lives; the next one listens where this caller looks.
 */
static char *socket_path(const struct cm_store *store, const struct cm_store_session *s)
{
	char *path = cm_asprintf("%s/" CM_STORE_SOCKETS "/%016llx", store->runtime,
				 (unsigned long long)cm_hash_text(s->record.id));
	const char *recorded = s->record.socket;

	if (!path || !recorded || recorded[0] != '/' || strcmp(recorded, path) == 0 ||
	    !cm_store_keeper_alive(s))
		return path;
	free(path);
	return cm_strdup(recorded);
}

int cm_store_session_paths(struct cm_store *store, struct cm_store_session *s)
{
	bool is_temporary = s->record.is_temporary;

	s->dir = cm_asprintf("%s/%s/%s", is_temporary ? store->runtime : store->state,
			     is_temporary ? CM_STORE_TMP : CM_STORE_SESSIONS, s->record.id);
	s->session_dir = cm_asprintf("%s/%s", s->record.root, s->record.id);
	s->socket_path = socket_path(store, s);
	return s->dir && s->session_dir && s->socket_path ? CM_OK : CM_E_NOMEM;
}

int cm_store_socket_check(const struct cm_store_session *s, struct cm_error *err)
{
	size_t max = sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1;

	if (strlen(s->socket_path) <= max)
		return CM_OK;
	(void)cm_error_set(err, CM_E_INVALID, 0,
			   "the socket of session '%s' would have a path of %zu bytes, and the "
			   "kernel takes %zu: '%.300s'",
			   s->record.id, strlen(s->socket_path), max, s->socket_path);
	cm_error_hint(err, "set XDG_RUNTIME_DIR to a directory with a shorter name; without "
			   "--session none is needed");
	return CM_E_INVALID;
}

static bool count_entry(int dir_fd, const char *name, void *data)
{
	(void)dir_fd;
	(void)name;
	(*(size_t *)data)++;
	return true;
}

static int not_found(struct cm_store *store, const char *id, struct cm_error *err)
{
	CM_AUTO_FREE char *command = NULL;
	CM_AUTO_FREE char *dir = NULL;
	size_t n = 0;

	/* for a hint, so what cannot be read counts as none; without those that come and go */
	(void)cm_store_each_entry(store->state_fd, CM_STORE_SESSIONS, count_entry, &n);

	(void)cm_error_set(err, CM_E_NOT_FOUND, 0, "session '%s' not found", id);
	if (cm_store_kept_command(store, NULL, id, &command, &dir)) {
		cm_error_hint(err, "its files are kept in '%s'; %s removes them", dir, command);
		return CM_E_NOT_FOUND;
	}
	cm_error_hint(err,
		      "'casemate ls' lists %zu session%s of yours (each user has their own); "
		      "'casemate start %s' makes one",
		      n, n == 1 ? "" : "s", id);
	return CM_E_NOT_FOUND;
}

/* Open the state directory of an id and say of which kind it is. */
static int open_dir(struct cm_store *store, const char *id, int *ret_fd, bool *ret_is_temporary,
		    struct cm_error *err)
{
	char name[CM_STORE_NAME_SIZE];
	int fd;

	cm_store_name(name, CM_STORE_SESSIONS, id);
	fd = cm_store_openat(store->state_fd, name, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0 && errno != ENOENT)
		return cm_store_fail(err, errno, "open", store->state, name);
	if (fd < 0) {
		cm_store_name(name, CM_STORE_TMP, id);
		fd = cm_store_openat(store->runtime_fd, name, O_RDONLY | O_DIRECTORY, 0);
		if (fd < 0 && errno == ENOENT)
			return not_found(store, id, err);
		if (fd < 0)
			return cm_store_fail(err, errno, "open", store->runtime, name);
		*ret_is_temporary = true;
	} else {
		*ret_is_temporary = false;
	}
	*ret_fd = fd;
	return CM_OK;
}

uint32_t cm_store_lock_slot(int lock_fd)
{
	uint32_t slot = CM_SLOT_NONE;

	if (pread(lock_fd, &slot, sizeof(slot), 0) != (ssize_t)sizeof(slot))
		return CM_SLOT_NONE;
	return slot;
}

static int busy(const char *id, bool is_temporary, int lock_fd, struct cm_error *err)
{
	pid_t holder = cm_store_lock_holder(lock_fd);
	char who[48] = "another command";

	if (holder != 0)
		(void)snprintf(who, sizeof(who), "another command (process %d)", (int)holder);
	(void)cm_error_set(err, CM_E_BUSY, 0, "session '%s' is in use by %s", id, who);
	if (is_temporary)
		cm_error_hint(err, "it is a temporary one and goes when the 'casemate run' that "
				   "made it ends");
	else
		cm_error_hint(err, "try again when that command is through, or end it: a start, a "
				   "fetch, a checkout or a setup holds the session meanwhile");
	return CM_E_BUSY;
}

/* Wait for the flock until the deadline, looking ever less often. */
static int wait_flock(int fd, int64_t deadline_ms)
{
	long pause_us = LOCK_POLL_MIN_US;

	for (;;) {
		struct timespec pause = { .tv_nsec = pause_us * 1000 };

		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		if (cm_clock_mono_ms() >= deadline_ms)
			return -EWOULDBLOCK;
		(void)nanosleep(&pause, NULL);
		pause_us = pause_us * 2 < LOCK_POLL_MAX_US ? pause_us * 2 : LOCK_POLL_MAX_US;
	}
}

/* Is the lock that we have the lock of the session that has this id now? */
static bool is_current(struct cm_store *store, const char *id, bool is_temporary, int lock_fd)
{
	char name[CM_STORE_NAME_SIZE + 8];

	(void)snprintf(name, sizeof(name), "%s/%s/%s",
		       is_temporary ? CM_STORE_TMP : CM_STORE_SESSIONS, id, CM_STORE_LOCK);
	return cm_store_is_at(is_temporary ? store->runtime_fd : store->state_fd, name, lock_fd);
}

/* 0, 1 when the session changed under us and must be opened again, or an error. */
static int lock_session(struct cm_store *store, const char *id, int64_t deadline_ms,
			bool is_temporary, int dir_fd, int *ret_fd, struct cm_error *err)
{
	const char *base = is_temporary ? store->runtime : store->state;
	CM_AUTO_FD int fd = -1;
	char name[CM_STORE_NAME_SIZE];
	int r;

	fd = openat(dir_fd, CM_STORE_LOCK, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 && errno == ENOENT)
		return 1;
	cm_store_name(name, is_temporary ? CM_STORE_TMP : CM_STORE_SESSIONS, id);
	if (fd < 0)
		return cm_store_fail(err, errno, "open the lock of", base, name);
	r = wait_flock(fd, deadline_ms);
	if (r == -EWOULDBLOCK)
		return busy(id, is_temporary, fd, err);
	if (r < 0)
		return cm_store_fail(err, -r, "lock", base, name);
	if (!is_current(store, id, is_temporary, fd))
		return 1;
	*ret_fd = cm_fd_take(&fd);
	return CM_OK;
}

/* state.json as text: in small where it fits, else in *own. Its length, or -errno. */
static ssize_t read_state(int dir_fd, char small[STATE_USUAL_SIZE], char **own)
{
	ssize_t n = cm_read_file_at(dir_fd, CM_STORE_STATE, small, STATE_USUAL_SIZE);

	if (n != -E2BIG)
		return n;
	*own = cm_malloc(CM_JSON_MAX_BYTES + 1);
	return *own ? cm_read_file_at(dir_fd, CM_STORE_STATE, *own, CM_JSON_MAX_BYTES + 1)
		    : -ENOMEM;
}

/* A temporary session that nobody described, or one whose description is lost. */
static int bare_record(struct cm_store *store, const char *id, bool is_temporary,
		       struct cm_store_session *s)
{
	struct stat st;

	cm_session_record_clear(&s->record);
	s->record.id = cm_strdup(id);
	s->record.root = cm_strdup(store->root);
	s->record.is_temporary = is_temporary;
	if (is_temporary) {
		CM_AUTO_FD int lock_fd = cm_store_openat(s->dir_fd, CM_STORE_LOCK, O_RDONLY, 0);

		if (lock_fd >= 0)
			s->record.slot = cm_store_lock_slot(lock_fd);
		if (fstat(s->dir_fd, &st) == 0)
			s->record.created_ms =
				(int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
	}
	return s->record.id && s->record.root ? CM_OK : CM_E_NOMEM;
}

/* Before it is read: one that is replaced in between is taken for changed, and never for current. */
static void note_state(struct cm_store_session *s)
{
	struct stat st;

	if (fstatat(s->dir_fd, CM_STORE_STATE, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	s->state_ino = st.st_ino;
	s->state_changed_ns = cm_stat_changed_ns(&st);
}

bool cm_store_session_is_current(const struct cm_store_session *s)
{
	struct stat st;

	/* each change is a file of its own, and a removed one leaves an empty directory */
	return fstatat(s->dir_fd, CM_STORE_STATE, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       st.st_ino == s->state_ino && cm_stat_changed_ns(&st) == s->state_changed_ns;
}

static int load(struct cm_store *store, const char *id, bool is_temporary,
		struct cm_store_session *s, struct cm_error *err)
{
	CM_AUTO_FREE char *own = NULL;
	char small[STATE_USUAL_SIZE];
	char name[CM_STORE_NAME_SIZE];
	ssize_t len = read_state(s->dir_fd, small, &own);
	int r = len < 0 ? (int)len : 0;

	if (r == 0 && !is_temporary &&
	    cm_record_flat_load(s->dir_fd, own ? own : small, (size_t)len, id, &s->record)) {
		s->record.is_temporary = is_temporary;
		return CM_OK;
	}
	if (r == 0) {
		r = cm_record_parse(own ? own : small, (size_t)len, id, &s->record, err);
		/* the directory says what it is; a file that says otherwise was moved there */
		s->record.is_temporary = is_temporary;
		return r;
	}
	if (r == -ENOENT && is_temporary)
		return bare_record(store, id, true, s) == CM_OK
			       ? CM_OK
			       : cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	if (r == -ENOMEM)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	if (r == -ENOENT || r == -E2BIG) {
		(void)cm_error_set(err, CM_E_PROTOCOL, 0, "state of session '%s' is damaged: %s %s",
				   id, CM_STORE_STATE,
				   r == -ENOENT ? "is missing" : "is too large");
		cm_error_hint(err, "'casemate rm %s' removes the session", id);
		return CM_E_PROTOCOL;
	}
	cm_store_name(name, is_temporary ? CM_STORE_TMP : CM_STORE_SESSIONS, id);
	return cm_store_fail(err, -r, "read the state of",
			     is_temporary ? store->runtime : store->state, name);
}

static int check_root(const struct cm_store *store, const struct cm_session_record *record,
		      struct cm_error *err)
{
	if (!store->is_root_named || strcmp(record->root, store->root) == 0)
		return CM_OK;
	(void)cm_error_set(err, CM_E_EXISTS, 0, "session '%s' lives under another root, '%s'",
			   record->id, record->root);
	cm_error_hint(err, "an id is unique to a user: take another one, or --root '%s'",
		      record->root);
	return CM_E_EXISTS;
}

static int open_once(struct cm_store *store, const char *id, unsigned int flags,
		     int64_t deadline_ms, struct cm_store_session *s, struct cm_error *err)
{
	bool is_temporary = false;
	int r = open_dir(store, id, &s->dir_fd, &is_temporary, err);

	if (r == CM_OK && (flags & CM_STORE_CHANGE))
		r = lock_session(store, id, deadline_ms, is_temporary, s->dir_fd, &s->lock_fd, err);
	if (r != CM_OK)
		return r;
	note_state(s);
	r = load(store, id, is_temporary, s, err);
	if (r == CM_E_PROTOCOL && (flags & CM_STORE_DAMAGED)) {
		cm_error_clear(err);
		r = bare_record(store, id, is_temporary, s);
	}
	if (r == CM_OK && !(flags & CM_STORE_ANY_ROOT))
		r = check_root(store, &s->record, err);
	if (r == CM_OK && cm_store_session_paths(store, s) != CM_OK)
		r = cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	return r;
}

int cm_store_session_open_as(struct cm_store *store, const char *id, unsigned int flags,
			     int64_t deadline_ms, struct cm_store_session *ret,
			     struct cm_error *err)
{
	int r = cm_session_id_check(id, err);

	if (r != CM_OK)
		return r;
	do {
		struct cm_store_session s;

		cm_store_session_init(&s);
		r = open_once(store, id, flags, deadline_ms, &s, err);
		if (r == CM_OK)
			*ret = s;
		else
			cm_store_session_close(&s);
	} while (r == 1);
	if (r == CM_E_NOT_FOUND && (flags & CM_STORE_KEPT))
		r = cm_store_kept_open(store, id, ret, err);
	/* the keeper's socket goes there, and /run is empty after a reboot */
	if (r == CM_OK && (flags & CM_STORE_CHANGE) && !ret->record.is_temporary)
		(void)mkdirat(store->runtime_fd, CM_STORE_SOCKETS, 0700);
	return r;
}

int cm_store_session_open(struct cm_store *store, const char *id, bool will_change,
			  int64_t deadline_ms, struct cm_store_session *ret, struct cm_error *err)
{
	return cm_store_session_open_as(store, id, will_change ? CM_STORE_CHANGE : 0, deadline_ms,
					ret, err);
}

int cm_store_session_save(struct cm_store_session *s, bool is_durable, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf text;
	int r;

	cm_buf_init(&text, CM_JSON_MAX_BYTES);
	if (s->lock_fd < 0)
		return cm_error_set(err, CM_E_BUG, 0, "session '%s' is saved without its lock",
				    s->record.id);
	if (s->record.version > CM_STATE_VERSION) {
		(void)cm_error_set(err, CM_E_UNSUPPORTED, 0,
				   "session '%s' was written by a newer casemate (state %d, this "
				   "one knows %d)",
				   s->record.id, s->record.version, CM_STATE_VERSION);
		cm_error_hint(err, "use that casemate; 'stop' and 'rm' work with this one too");
		return CM_E_UNSUPPORTED;
	}
	if (s->socket_path &&
	    (!s->record.socket || strcmp(s->record.socket, s->socket_path) != 0)) {
		cm_ptr_free(&s->record.socket);
		s->record.socket = cm_strdup(s->socket_path);
	}
	r = cm_record_format(&s->record, &text);
	if (r != CM_OK) {
		(void)cm_error_set(err, r, 0, "cannot write the state of session '%s': %s",
				   s->record.id,
				   r == CM_E_LIMIT ? "it is too large" : "out of memory");
		cm_error_hint(err, "shorten the session's settings");
		return r;
	}
	r = cm_store_replace(s->dir_fd, CM_STORE_STATE, CM_STORE_STATE ".new", text.data, text.len,
			     is_durable && !s->record.is_temporary);
	if (r < 0)
		return cm_store_fail(err, -r, "write", s->dir, CM_STORE_STATE);
	if (!s->record.is_temporary)
		(void)cm_record_flat_save(s->dir_fd, &s->record, &text);
	return CM_OK;
}
