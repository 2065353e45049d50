/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions on disk: directories, locks, the state file, ids, and the status function.
 *
 *	<state>/sessions/<id>/state.json   written only by clients, under lock
 *	                     /lock         flock of the client that changes something
 *	                     /keeper.lock  held by the keeper for its life (keeper_lock.h)
 *	                     /end          one fixed record, written by the keeper when it ends;
 *	                                   end.new on the way there
 *	                     /groups       text: which control groups the session has, and where
 *	                     /plan.txt     the plan of the last start, for people
 *	                     /env          the environment of the last start, for its commands,
 *	                                   and a checksum
 *	                     /setup.log    what setup printed (setup_log.h)
 *	                     /exec/<id>/   journals of detached commands (journal.h)
 *	                     /events.*     what happened in the session (events.h)
 *	                     /home /tmp    private home and /tmp of the session
 *	<state>/starts                     lock of starts that have a cap
 *	<state>/pruned                     its time is that of the last look for what may go
 *	<state>/new/                       sessions being made or taken away, not visible yet or any more
 *	<state>/kept/<id>.<16 hex>         a session that was removed, and whose directory stayed
 *	<state>/ids/<n>                    a slot of kernel ids (root): session's id, session root
 *	<runtime>/ids/<n>                  the same while it is claimed, and its lock
 *	<runtime>/s/<16 hex>               the keeper's socket
 *	<runtime>/tmp/<id>/                the state directory of a temporary session: lock; plan where
 *	                                   it has groups; root, which names the session root, where it
 *	                                   has a session directory. Home and /tmp are its jail's
 *	<runtime>/skeletons/<name>/        root file systems without what is mounted in them, shared
 *	<root>/<id>/                       session directory: the user's work
 *
 * state: /var/lib/casemate as root, else $XDG_STATE_HOME/casemate; runtime: /run/casemate, else
 * $XDG_RUNTIME_DIR/casemate (without one: <state>/run). All are 0700 and ours, or refused.
 */
#ifndef CM_RUNTIME_STORE_STORE_H
#define CM_RUNTIME_STORE_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "casemate/error.h"
#include "runtime/base/buf.h"
#include "runtime/spec/spec.h"
#include "runtime/store/keeper_lock.h"

#define CM_SLOT_NONE UINT32_MAX
/*
 * In a session's state directory. By whoever started it: what its groups are found by when it is
 * dead, and the plan of the last start as text. Made with a session that stays: its home and /tmp.
 */
#define CM_STORE_GROUPS "groups"
#define CM_STORE_PLAN_TEXT "plan.txt"
/* of the last start: what commands have of it (providers/local/environment.c) */
#define CM_STORE_ENV "env"
#define CM_STORE_HOME "home"
#define CM_STORE_HOME_TMP "tmp"
#define CM_STATE_VERSION 1

struct cm_store {
	char *state;
	char *runtime;
	char *cache;
	/* session root: --root, CASEMATE_ROOT, MASTRACODE_LOCAL_SANDBOX_ROOT, default */
	char *root;
	/* named by --root or a variable: then a session that lives under another one is refused */
	bool is_root_named;
	int state_fd;
	int runtime_fd;
	/* the slot claimed last, locked until its session is made; -1: none */
	int slot_fd;
	uint32_t slot_claimed;
};

/* env: the caller's "NAME=value" vector. Directories are made when absent. */
int cm_store_open(const struct cm_strv *env, const char *root, const char *home, bool is_root,
		  struct cm_store *ret, struct cm_error *err);
void cm_store_close(struct cm_store *store);

enum cm_setup_state {
	CM_SETUP_NONE = 0,
	CM_SETUP_DONE,
	CM_SETUP_FAILED,
};

/* state.json; strings owned. Unknown keys of the file are kept on rewrite. */
struct cm_session_record {
	int version;
	char *id;
	char *root;
	bool is_temporary;
	int64_t created_ms;
	/* bumped at each start */
	uint64_t generation;
	/* as the session was made; later runs are compared with these */
	enum cm_workspace_kind workspace_kind;
	char *workspace;
	bool is_workspace_read_only;
	char *repo;
	char *ref;
	/* as struct cm_spec has them */
	int pr;
	char *branch;
	char *base;
	int depth;
	/* absolute; NULL without --repo. <root>/<id>/<repository name> */
	char *checkout;
	/* said before it is: what has its name then, and is not said to be done, is complete */
	bool is_checkout_begun;
	bool is_checkout_done;
	/* until it has ended: one that died may have left files of two commits */
	bool is_update_begun;
	enum cm_network network;
	char *rootfs;
	enum cm_user user;
	enum cm_git_access git;
	/* kernel ids (root); CM_SLOT_NONE for an ordinary user */
	uint32_t slot;
	/*
	 * Kernel uid and gid that own what the agent writes: home, tmp, session directory. 0: the
	 * caller's own (never host uid 0's as root: a root session has a slot).
	 */
	uint32_t agent_id;
	/* limits and other settings as canonical JSON text, compared as a whole */
	char *settings_json;
	/* the environment that the session gives its commands, as JSON text; NULL: none of its own */
	char *env_json;
	/* what the last start made of them below the ceilings of its time; NULL: never started */
	char *started_json;
	enum cm_setup_state setup_state;
	/* sha256:<hex> of the setup commands, "" when there are none */
	char *setup_digest;
	int setup_exit;
	/* when it ended, and how long it took; 0: not known */
	int64_t setup_ms;
	int64_t setup_took_ms;
	/* when it began, until it has ended; 0: none runs, nor was one interrupted */
	int64_t setup_begun_ms;
	/* the commands of the last one that began, as JSON text; NULL: none did */
	char *setup_json;
	/* what runs before it is stopped or removed, as a JSON array of texts; NULL: nothing */
	char *teardown_json;
	/* what the last start reached, for `inspect`: "full", "full-single-id+hostnet", ... */
	char *level;
	/* JSON object text: for each limit what enforces it */
	char *enforced_json;
	/* the socket as the last writer saw it: a caller with another runtime directory finds it */
	char *socket;
	/* "KEY=value"; as made */
	struct cm_strv labels;
	/* only below <state>/kept: which directory <root>/<id> was (kept.c) */
	char *kept;
	/* members of the file that this version does not know, as JSON text "\"k\":v,..." */
	char *unknown_json;
};

struct cm_store_session {
	struct cm_session_record record;
	/* <state>/sessions/<id> or <runtime>/tmp/<id> */
	char *dir;
	int dir_fd;
	/* held while open for change; -1 when opened to look */
	int lock_fd;
	/* <root>/<id>; made on demand */
	char *session_dir;
	char *socket_path;
	/* of one that was removed and left its directory: CM_STORE_KEPT */
	bool is_revived;
	/* state.json as it was read, by its inode and time of change (ns); 0: there was none */
	uint64_t state_ino;
	uint64_t state_changed_ns;
};

/* Zeroes, except what is not zero when unset (slot, version). */
void cm_session_record_init(struct cm_session_record *r);

/* As state.json has them; NULL for 0 where 0 means "not set", and for what is no value. */
const char *cm_workspace_kind_name(enum cm_workspace_kind kind);
const char *cm_user_name(enum cm_user user);
const char *cm_git_access_name(enum cm_git_access access);
const char *cm_setup_state_name(enum cm_setup_state state);

/* A fresh id for a temporary session ("run-x7k2m9..."). */
void cm_store_new_id(char *buf, size_t size);
/*
 * Open an existing session. With will_change the lock is taken, waiting up to deadline_ms
 * (CLOCK_MONOTONIC) for another client. CM_E_NOT_FOUND with a hint that says what exists.
 * CM_E_EXISTS when the id lives under another root.
 */
int cm_store_session_open(struct cm_store *store, const char *id, bool will_change,
			  int64_t deadline_ms, struct cm_store_session *ret, struct cm_error *err);
/* Take the lock, as will_change does */
#define CM_STORE_CHANGE (1U << 0)
/* whatever root it lives under (ls, inspect, stop, rm: an id is unique to a user) */
#define CM_STORE_ANY_ROOT (1U << 1)
/* also when state.json cannot be read: record then holds id, root and what else is known (rm) */
#define CM_STORE_DAMAGED (1U << 2)
/*
 * Also a session that was removed, but for its directory below the store's root: made again as far
 * as it takes to remove it with its files. Who cannot do that removes it without them.
 */
#define CM_STORE_KEPT (1U << 3)
int cm_store_session_open_as(struct cm_store *store, const char *id, unsigned int flags,
			     int64_t deadline_ms, struct cm_store_session *ret,
			     struct cm_error *err);
/* Is the record what a session opened now would have? False also when the session was removed. */
bool cm_store_session_is_current(const struct cm_store_session *s);
/*
 * Make a session from record (id, root and settings filled by the caller), all or nothing, and
 * hold its lock. Directories: state directory, home, tmp. fsynced unless temporary.
 * CM_E_EXISTS when it is there already. A temporary session gets no state.json, home or tmp:
 * cm_store_session_save writes the first when somebody is to see it.
 */
int cm_store_session_create(struct cm_store *store, const struct cm_session_record *record,
			    struct cm_store_session *ret, struct cm_error *err);
/* Make <root>/<id> (and the root), owned by record.agent_id; one that is there is checked. */
int cm_store_session_dir_make(struct cm_store *store, const struct cm_store_session *s,
			      struct cm_error *err);
/*
 * Write state.json (write, rename; fsync when is_durable and not temporary). Lock held.
 * CM_E_UNSUPPORTED when a newer version wrote it.
 */
int cm_store_session_save(struct cm_store_session *s, bool is_durable, struct cm_error *err);
/*
 * Take the state away: state directory, socket, id slot. Session directory: with_files; while it
 * stays, so does the slot, since its files belong to the slot's ids. Lock held. CM_E_BUSY when it
 * runs; CM_E_DENIED, with the path, when the tree has files that this user cannot remove (then
 * the session is still there).
 */
int cm_store_session_remove(struct cm_store *store, struct cm_store_session *s, bool with_files,
			    struct cm_error *err);
void cm_store_session_close(struct cm_store_session *s);
/*
 * Before a session is removed without its files: write down that its directory is one of ours, so
 * that CM_STORE_KEPT finds it. Nothing is written of a session that has none.
 */
int cm_store_kept_note(struct cm_store *store, const struct cm_store_session *s,
		       struct cm_error *err);
/*
 * The command line that removes what was kept of <root>/<id> (root NULL: of the id, below the
 * store's root if there is such, else below any), and the directory. false: nothing was, or it is
 * not there any more. The caller frees both; ret_dir may be NULL.
 */
bool cm_store_kept_command(struct cm_store *store, const char *root, const char *id,
			   char **ret_command, char **ret_dir);
/* Forget directories that are gone or are others now. */
void cm_store_kept_collect(struct cm_store *store);
/* Can a keeper listen at the session's socket? CM_E_INVALID where its path is too long for one. */
int cm_store_socket_check(const struct cm_store_session *s, struct cm_error *err);
void cm_session_record_clear(struct cm_session_record *r);

/* Where slots lie among the kernel's ids: isolation/plan owns the numbers, the caller knows them. */
struct cm_slot_space {
	uint32_t base;
	/* ids a slot */
	uint32_t size;
	uint32_t n_slots;
};
/*
 * Root: claim the first free slot from a start hashed of the id (by its lock; no scan in the
 * common case); passed over when the range meets /etc/subuid, /etc/subgid or a passwd entry. A session
 * directory that is there already gets its own slot back. The claim is the caller's until a
 * session is made with it; a claimer that dies loses it. One claim at a time a store.
 */
int cm_store_slot_claim(struct cm_store *store, const char *id, const struct cm_slot_space *space,
			uint32_t *ret_slot, struct cm_error *err);
void cm_store_slot_release(struct cm_store *store, uint32_t slot, const char *id);

enum cm_session_status {
	/* made, never started */
	CM_STATUS_CREATED = 1,
	CM_STATUS_RUNNING,
	CM_STATUS_STOPPED,
	/* the last start failed, or setup failed */
	CM_STATUS_ERROR,
};

/* Pure: the status shown, from the three things that are known. end may be NULL. */
enum cm_session_status cm_session_status(const struct cm_session_record *record,
					 bool is_keeper_alive, const struct cm_end_record *end);
const char *cm_session_status_name(enum cm_session_status status);
/* Is keeper.lock held? Of a temporary session: is its client's lock held? */
bool cm_store_keeper_alive(const struct cm_store_session *s);
/* A command begins or ends in it: the session was used just now. */
void cm_store_session_touch(const struct cm_store_session *s);
/* When it was made, used or stopped last (end may be NULL), in milliseconds; 0: not known. */
int64_t cm_store_session_used_ms(const struct cm_store_session *s, const struct cm_end_record *end);
/* Of one that runs: when it was started, in milliseconds; 0: not known. */
int64_t cm_store_session_started_ms(const struct cm_store_session *s);
/* CM_OK and *ret, or CM_E_NOT_FOUND; a malformed record counts as not found. */
int cm_store_read_end(const struct cm_store_session *s, struct cm_end_record *ret);

/* Ids of all sessions, sorted; temporary ones too. */
int cm_store_list(struct cm_store *store, struct cm_strv *ret, struct cm_error *err);
/* Without those. */
int cm_store_list_lasting(struct cm_store *store, struct cm_strv *ret, struct cm_error *err);
/* How many sessions run, temporary ones too; no more than max are looked for. */
size_t cm_store_count_live(struct cm_store *store, size_t max);
/*
 * The lock of starts that count others, for as long as *ret_fd is open: 0; 1 when somebody has it; or
 * -errno.
 */
int cm_store_starts_lock(struct cm_store *store, int *ret_fd);
/* A directory that is filled once and then shared by all who ask for it by the same key. */
struct cm_store_skeleton {
	/* real path, owned; nothing in it changes while lock_fd is open, here or in a process that
	 * it was passed to */
	char *dir;
	int lock_fd;
};
/* Make the contents below dir_fd, an empty directory (but for a file of the store's). */
typedef int cm_store_fill_fn(int dir_fd, void *data, struct cm_error *err);
/* Found, or made by fill. key: up to some kilobytes, compared as a whole. */
int cm_store_skeleton_open(struct cm_store *store, const struct cm_buf *key, cm_store_fill_fn *fill,
			   void *data, struct cm_store_skeleton *ret, struct cm_error *err);
void cm_store_skeleton_close(struct cm_store_skeleton *skeleton);

/*
 * Remove what dead temporary sessions left: state directories whose owner's lock is free. At most
 * a few directory reads; called at each start. remove_group is called with the directory of each
 * that has a list of groups so that they go too; NULL leaves those alone.
 */
int cm_store_collect(struct cm_store *store, int (*remove_group)(const char *dir, void *data),
		     void *data, struct cm_error *err);
/* Free slots whose claimer died before it made a session. Reads all slots: for rm and prune. */
int cm_store_collect_slots(struct cm_store *store, struct cm_error *err);
/* Of those some tens of this boot's: for ls, which is to be quick however many sessions there are. */
int cm_store_collect_claims(struct cm_store *store, struct cm_error *err);

#endif
