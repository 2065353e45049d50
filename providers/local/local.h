/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Local sessions: from a spec to a jail that takes commands.
 *
 *	cm_local_open     host facts, directories
 *	cm_local_session  finds or makes the session; its lock is held
 *	cm_local_checkout the repository, when the session has one and it is not there yet, or is to be
 *	                  updated
 *	cm_local_start    plan and jail (or connects to the one that runs)
 *	cm_local_close    lets go; a temporary session leaves nothing behind
 *
 * A struct cm_local belongs to one thread. No signal dispositions are changed, nothing is logged:
 * what people may want to read goes through `note` and `phase`.
 */
#ifndef CM_PROVIDERS_LOCAL_LOCAL_H
#define CM_PROVIDERS_LOCAL_LOCAL_H

#include "casemate/error.h"
#include "isolation/host/facts.h"
#include "isolation/plan/build.h"
#include "providers/local/jail.h"
#include "runtime/spec/config.h"
#include "runtime/spec/spec.h"
#include "runtime/store/store.h"

struct cm_local_events {
	/* one line for people */
	void (*note)(void *data, const char *text);
	/* a phase of the start has ended: "checkout", "setup 1/2", "jail" */
	void (*phase)(void *data, const char *name, uint64_t duration_us);
	/*
	 * How far a checkout is, several times a second. stage: "fetch" (objects, with the bytes that
	 * came), "objects", "packs" (bytes), "files"; static. total is never 0. May be NULL.
	 */
	void (*progress)(void *data, const char *stage, uint64_t received, uint64_t total,
			 uint64_t bytes);
	void *data;
	/* readable, and left so, once the caller wants what takes long (a checkout, waiting for
	 * another's, a jail that does not come up) to be given up; 0: never */
	int cancel_fd;
};

/* What a session's commands have in their environment because its start named it. */
struct cm_session_env {
	/* "NAME=value" */
	struct cm_strv env;
	/* patterns of variables that the caller of each start passes on */
	struct cm_strv pass;
};

/*
 * What is to become of a checkout that is there; beside what the session was made with, and no
 * contradiction to it. Nothing: what the remote has is brought up to date alone. All borrowed.
 */
struct cm_local_update {
	const char *ref;
	/* 0: none */
	int pr;
	const char *branch;
	const char *base;
	/* the history that --depth left out, too */
	bool is_unshallow;
};

/* hexadecimal, and the NUL byte */
#define CM_CHECKOUT_COMMIT_SIZE 65

struct cm_local {
	/* own copy, completed from the session's record */
	struct cm_spec spec;
	const struct cm_config *config;
	struct cm_local_events events;

	struct cm_store store;
	struct cm_refusals refusals;

	struct cm_store_session session;
	bool has_session;
	/* made by this call, and not finished yet: taken away again when something fails */
	bool is_new;
	bool is_temporary;
	/* <root>/<id> was made or found */
	bool has_session_dir;
	/* <root>/<id> was there before this session was made: nothing in it goes with a failed start */
	bool has_earlier_files;
	/* runs already: somebody else's start, or an earlier one of ours */
	bool is_running;
	/* cm_local_join: the jail's answer to hello is yet to come (cm_local_greeted) */
	bool is_dialled;
	/* set by the caller before cm_local_session, and used by cm_local_checkout; NULL: a checkout
	 * that is there is left alone */
	const struct cm_local_update *update;
	/* the update was done, but for what was asked for: notes say why */
	bool is_held;
	/* --keep: a session of a name made up here, stopped when this call lets go of it */
	bool is_kept;

	/* the lock of starts that have a cap, until this one counts; -1: not held */
	int cap_fd;

	/* of the helper's report where the checkout failed: names to look up, and not to pass on */
	char checkout_reason[24];
	char checkout_code[24];
	/* of the checkout that was made by this process; "": none was, or it has no commits */
	char checkout_commit[CM_CHECKOUT_COMMIT_SIZE];
	/* by git's credential helpers, for the server of the repository; NULL: nothing, or not asked */
	char *helper_user;
	char *helper_secret;
	bool is_helper_asked;

	struct cm_workspace_facts workspace;
	struct cm_plan_summary summary;
	/* printed plan of the start */
	struct cm_buf plan_text;
	struct cm_jail jail;
	/* of the next command; and of the start, without what is the command's */
	struct cm_strv env;
	struct cm_strv start_env;
	struct cm_session_env session_env;
	/*
	 * Set after cm_local_init: the session must exist; a setup that was never finished is run,
	 * though the spec has none; the spec's environment is the session's, and not a command's.
	 */
	bool must_exist;
	bool runs_due_setup;
	bool keeps_env;
	/* that the session is used was noted already; else cm_local_close does */
	bool is_touched;

	/* last, as cgroup is in it, which is large and not cleared before it is read */
	struct cm_host host;
};

/* Zeroes all but the host's control groups; then cm_local_close is always right. */
void cm_local_init(struct cm_local *l);
int cm_local_open(struct cm_local *l, const struct cm_spec *spec, const struct cm_config *config,
		  const struct cm_local_events *events, struct cm_error *err);
int cm_local_session(struct cm_local *l, struct cm_error *err);
/*
 * In place of open, session, checkout and start: a session that exists (CM_E_NOT_FOUND) and runs.
 * is_running says whether it does, and is set up; then l->jail is dialled. Else whoever wants it
 * to closes l and takes the long way. spec->session_id is set.
 */
int cm_local_join(struct cm_local *l, const struct cm_spec *spec, const struct cm_config *config,
		  const struct cm_local_events *events, struct cm_error *err);
/*
 * After that, and after a command may have been asked for: does the jail answer? is_running is false
 * when it ended instead, and then nothing was done of what was asked.
 */
int cm_local_greeted(struct cm_local *l, struct cm_error *err);
/*
 * What was joined and greeted, for another command: is_running says whether it can be used, as what it
 * was. Else it is to be closed, and joined anew. spec is of the same session.
 */
int cm_local_rejoin(struct cm_local *l, const struct cm_spec *spec, struct cm_error *err);
int cm_local_checkout(struct cm_local *l, struct cm_error *err);
/*
 * Returns as soon as the jail is being made: commands may be asked for at once, and the first
 * answer on the jail's socket says whether it stands.
 */
int cm_local_start(struct cm_local *l, struct cm_error *err);
/*
 * Until the jail stands: cm_jail_wait_up, but that the caller may have enough of it (cancel_fd).
 * CM_E_CANCELLED: then the jail is not going to be, and its keeper was killed if it did not end.
 */
int cm_local_wait_up(struct cm_local *l, int64_t deadline_ms, struct cm_error *err);
/* After the jail stands: the session's record says so. */
int cm_local_started(struct cm_local *l, struct cm_error *err);
/* The session stays as it is, though nothing of it was started. */
void cm_local_keep(struct cm_local *l);
/* When setup has run: let the session's lock go, so that others may use it from now on. */
void cm_local_unlock(struct cm_local *l);
void cm_local_close(struct cm_local *l);

/* The memory limit of the session's group, as it is set in l->spec or in its record. */
struct cm_limit cm_local_memory_limit(const struct cm_local *l);
/* Where a command starts, inside. Borrowed. */
const char *cm_local_cwd(const struct cm_local *l);
/* Are there setup commands, and did none run in this session yet? */
bool cm_local_needs_setup(const struct cm_local *l);
/*
 * Before the first of them runs: the session's record says that they do, and which they are. Whoever
 * finds that later, with the session's lock, knows that they were interrupted.
 */
int cm_local_setup_begin(struct cm_local *l, struct cm_error *err);
/* since_us: when it began (CLOCK_MONOTONIC) */
int cm_local_setup_done(struct cm_local *l, bool has_failed, int exit_status, int64_t since_us,
			struct cm_error *err);
/*
 * Is setup given what the session's commands are not? Then it runs in a jail of its own, between
 * cm_local_checkout and cm_local_start: cm_local_setup_open makes it, in l->jail and with l->env, and
 * when cm_local_setup_close returns nothing of it is left. That is right also after a failure.
 */
bool cm_local_setup_is_apart(const struct cm_local *l);
int cm_local_setup_open(struct cm_local *l, struct cm_error *err);
void cm_local_setup_close(struct cm_local *l);
/*
 * The teardown commands of a session: of l's spec into its record, where there are some, else of the
 * record into the spec. Lock held.
 */
int cm_local_keep_teardown(struct cm_local *l, struct cm_error *err);
/* Where the marker is written, inside; NULL without a checkout. */
const char *cm_local_marker_dir(const struct cm_local *l);

/*
 * Take a stopped session's state away, and with_files its directory; also what a session with root
 * inside left there under other ids.
 */
int cm_local_remove(struct cm_store *store, struct cm_store_session *s, bool with_files,
		    const struct cm_config *config, struct cm_error *err);
/* What the control groups of a session that runs say of it, without asking its keeper. */
struct cm_local_usage {
	/* false: it has no such group, or none that can be read */
	bool has_memory;
	bool has_tasks;
	uint64_t memory_bytes;
	/* something runs in it beside init */
	bool is_active;
};
void cm_local_usage(const struct cm_store_session *s, struct cm_local_usage *ret);

/*
 * Stop a session that runs; CM_OK also when it does not. CM_LOCAL_KILLED: it did not stop by the
 * deadline, so its keeper was killed and everything with it.
 */
#define CM_LOCAL_KILLED 1
int cm_local_stop(struct cm_store_session *s, int64_t deadline_ms, struct cm_error *err);

#endif
