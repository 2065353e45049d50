/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the store share; nobody outside this directory includes it. */
#ifndef CM_RUNTIME_STORE_STORE_INTERNAL_H
#define CM_RUNTIME_STORE_STORE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/store/dir.h"
#include "runtime/store/store.h"

/* below the state directory */
#define CM_STORE_SESSIONS "sessions"
#define CM_STORE_NEW "new"
#define CM_STORE_KEPT_DIR "kept"
/* below both */
#define CM_STORE_IDS "ids"
/* below the runtime directory */
#define CM_STORE_TMP "tmp"
#define CM_STORE_SOCKETS "s"
#define CM_STORE_SKELETONS "skeletons"
/* below the cache directory; and below one of these */
#define CM_STORE_MIRRORS "mirrors"
#define CM_STORE_USED "used"
/* below a session's state directory */
#define CM_STORE_LOCK "lock"
#define CM_STORE_STATE "state.json"
#define CM_STORE_STATE_FLAT "state.flat"
#define CM_STORE_END "end"
/* what names of directories on their way out begin with */
#define CM_STORE_GONE ".gone."
/* of a temporary session with a session directory: the text of the session root that it is in */
#define CM_STORE_ROOT "root"

/* an id, a dot, sixteen hex digits */
#define CM_STORE_NAME_SIZE 160

/* Sixteen hex digits that nobody can guess. */
void cm_store_random_hex(char buf[17]);
/* "a/b" */
void cm_store_name(char buf[CM_STORE_NAME_SIZE], const char *a, const char *b);

/* openat that follows no symbolic link in any component; close-on-exec. fd or -1 with errno. */
int cm_store_openat(int dir_fd, const char *path, int flags, unsigned int mode);
/* Open dir_fd/name, made 0700 when absent. what: the whole path, for messages. */
int cm_store_subdir(int dir_fd, const char *what, const char *name, int *ret_fd,
		    struct cm_error *err);
/* Missing directories of path, each 0700; its existing parents may be symbolic links. */
int cm_store_make_dirs(const char *path, struct cm_error *err);
/* A directory of the caller's alone, made when absent. how: what to do about one that cannot be. */
int cm_store_open_private(const char *path, const char *what, const char *how, int *ret_fd,
			  struct cm_error *err);
/* A failed system call on a path of the store, with the hint that its errno deserves. */
int cm_store_fail(struct cm_error *err, int sys_errno, const char *what, const char *dir,
		  const char *name);

/* Call fn for each entry of base_fd/name but "." and "..". 0 or -errno. */
int cm_store_each_entry(int base_fd, const char *name, cm_store_entry_fn fn, void *data);

/* state.json */
int cm_record_parse(const char *text, size_t len, const char *id, struct cm_session_record *ret,
		    struct cm_error *err);
int cm_record_format(const struct cm_session_record *record, struct cm_buf *out);
int cm_record_copy(struct cm_session_record *to, const struct cm_session_record *from);

/* state.flat beside the text of state.json. 0, or what it could not be for: nothing depends on it. */
int cm_record_flat_save(int dir_fd, const struct cm_session_record *record,
			const struct cm_buf *state);
/* False, and *ret is as it was: it is not of that text, or not there. */
bool cm_record_flat_load(int dir_fd, const char *state, size_t state_len, const char *id,
			 struct cm_session_record *ret);

/* CM_STORE_KEPT. CM_E_NOT_FOUND, with *err as it was, when nothing was kept. */
int cm_store_kept_open(struct cm_store *store, const char *id, struct cm_store_session *ret,
		       struct cm_error *err);
/* Call fn for each directory that is still the one that was kept. */
void cm_store_kept_each(struct cm_store *store,
			void (*fn)(const struct cm_session_record *note, void *data), void *data);
void cm_store_kept_forget(struct cm_store *store, const struct cm_session_record *record);

/* A session that holds nothing. */
void cm_store_session_init(struct cm_store_session *s);
/* dir, session_dir and socket_path from the record. CM_E_NOMEM or 0. */
int cm_store_session_paths(struct cm_store *store, struct cm_store_session *s);
/* Is what fd is at that name still? */
bool cm_store_is_at(int parent_fd, const char *name, int fd);
/*
 * Open the directory parent_fd/name and flock the file `lock` in it, made when absent: at once or
 * not at all unless will_wait. 0, 1 when it cannot be had or the directory went away meanwhile, or
 * -errno.
 */
int cm_store_lock_dir(int parent_fd, const char *name, bool will_wait, int *ret_dir_fd,
		      int *ret_lock_fd);
/*
 * With its lock: take it from its name, and remove it. 0 or -errno; what could not be removed is
 * under a name beside it that begins with CM_STORE_GONE, which no id and no key does.
 */
int cm_store_remove_locked_dir(int parent_fd, const char *name);
/* The slot that a temporary session's lock file names. */
uint32_t cm_store_lock_slot(int lock_fd);

/* Set the bit of each slot that meets a range or an account of etc_fd's subuid, subgid, passwd. */
int cm_slot_blocked(int etc_fd, const struct cm_slot_space *space, uint8_t *bitmap,
		    struct cm_error *err);
/* The slot's lock, when the slot is of this id. -1: it is not, or somebody has the lock. */
int cm_store_slot_hold(struct cm_store *store, uint32_t slot, const char *id);
/* Free a slot that is held. */
void cm_store_slot_drop(struct cm_store *store, uint32_t slot);
/* Write the owner of record's slot to the disk, for as long as files have its ids. 0 or -errno. */
int cm_store_slot_keep(struct cm_store *store, const struct cm_session_record *record);

/*
 * The process that has a flock of fd's file; 0: none, or one that is not told (in another pid
 * namespace, on a file system that has other numbers than stat).
 */
pid_t cm_store_lock_holder(int fd);

#endif
