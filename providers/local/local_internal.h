/* SPDX-License-Identifier: Apache-2.0 */
/* Shared between the files of the local provider. */
#ifndef CM_PROVIDERS_LOCAL_LOCAL_INTERNAL_H
#define CM_PROVIDERS_LOCAL_LOCAL_INTERNAL_H

#include "isolation/plan/skeleton.h"
#include "providers/local/local.h"
#include "runtime/spec/keys.h"

struct cm_local_plan;

void cm_local_note(struct cm_local *l, const char *text);
/* A phase that began at since_us (CLOCK_MONOTONIC) has ended. */
void cm_local_phase(struct cm_local *l, const char *name, int64_t since_us);

/* For poll(2): events.cancel_fd, or -1. */
int cm_local_cancel_fd(const struct cm_local *l);
/* CM_E_SYS: nothing can be written to the session's state directory. */
int cm_local_write_failed(const struct cm_local *l, int sys_errno, struct cm_error *err);
/* What may not be mounted, into l->refusals; once. */
int cm_local_read_refusals(struct cm_local *l, struct cm_error *err);

/* "sha256:<hex>" of the commands joined by newlines, "" for none; NULL when out of memory. */
char *cm_local_setup_digest(const struct cm_strv *setup);

/* setup.c: those of spec with what they need, as the record's setup_json; NULL: out of memory */
char *cm_local_setup_commands(const struct cm_spec *spec);
/* And back, into spec. A member that is missing is left as it is. */
int cm_local_setup_recorded(const struct cm_session_record *record, struct cm_spec *spec,
			    struct cm_error *err);
/* None has ended, and there is one: never begun, interrupted, or it runs just now. */
bool cm_local_setup_is_due(const struct cm_session_record *record);

/*
 * environment.c. Begin: before the session is found or made, what a start names becomes the session's
 * (l->keeps_env). Record: into a record that is made. Adopt: what the record has, under that. Make:
 * l->env of the request's session and command. Write: of a start, for those who only read it: 1: they
 * have it in l->env, and the workspace's path; 0: it is not there (yet).
 */
int cm_local_env_begin(struct cm_local *l, struct cm_error *err);
int cm_local_env_record(const struct cm_local *l, struct cm_session_record *record,
			struct cm_error *err);
int cm_local_env_adopt(struct cm_local *l, struct cm_error *err);
int cm_local_env_make(struct cm_local *l, const struct cm_plan_request *req, struct cm_error *err);
int cm_local_env_write(const struct cm_local *l, struct cm_error *err);
int cm_local_env_read(struct cm_local *l, struct cm_error *err);

/* start.c: <root>/<id> */
int cm_local_make_session_dir(struct cm_local *l, struct cm_error *err);
/* start.c: the tree that the command works in, as the workspace facts want it; NULL: what the caller
 * is in. Borrowed. */
const char *cm_local_work_dir(const struct cm_local *l);
/* start.c: make what of the session's own has to be there, and mount what of it is beside the tree;
 * *ret_marker has to outlive extra, and is the caller's. */
int cm_local_mount_own(struct cm_local *l, struct cm_local_plan *extra, char **ret_marker,
		       struct cm_error *err);
/* start.c: of a temporary session; the keeper starts while facts and plan are made here. */
int cm_local_spawn_ahead(struct cm_local *l, struct cm_error *err);

/* checkout.c: is the session's checkout complete, and something at its place? */
bool cm_local_has_checkout(const struct cm_local *l);
/* update.c: bring it up to date, as l->update has it; the session's lock is held, and it may run. */
int cm_local_update(struct cm_local *l, struct cm_error *err);
/*
 * update.c: after an update that died on its way, go through with what it began; where that cannot be
 * done, say so and let the session go on. What is done with the checkout otherwise comes after it.
 */
int cm_local_update_finish(struct cm_local *l, struct cm_error *err);
/* update.c: refuse an update of a session that is not there, where it names no repository to make */
int cm_local_check_new(const struct cm_local *l, struct cm_error *err);

/* groups.c: keep where the groups of a plan are found when all of us are dead. */
int cm_local_keep_groups(struct cm_local *l, const struct cm_buf *plan);
/* After a keeper that ended with its client has ended by itself: there is nothing to find. */
void cm_local_forget_groups(struct cm_local *l);
/* The same for the session's own jail, where the session is temporary. */
void cm_local_drop_groups(struct cm_local *l);
/*
 * cap.c: refused where as many sessions run as may; else the lock that says so is held (where there is
 * a cap), until what is started counts itself, or cm_local_close.
 */
int cm_local_cap(struct cm_local *l, struct cm_error *err);
void cm_local_uncap(struct cm_local *l);

/* remove.c: what a killed keeper of this session, whose lock is held, has left of its groups. */
int cm_local_collect_left(const struct cm_store_session *s, struct cm_error *err);
/* remove.c: for cm_store_collect. 0 or negative. */
int cm_local_collect_group(const char *dir, void *data);

/* settings.c: what a session keeps of the spec that it is made with, into its record */
int cm_local_record(const struct cm_spec *spec, struct cm_session_record *record,
		    struct cm_error *err);
/* And back: a spec that has that and is else as built in. On success the caller clears it. */
int cm_local_recorded(const struct cm_session_record *record, struct cm_spec *ret,
		      struct cm_error *err);
/* The same of a jail that runs: what the start that made it had, below the ceilings of then. */
int cm_local_running(const struct cm_session_record *record, struct cm_spec *ret,
		     struct cm_error *err);
int cm_local_record_start(const struct cm_spec *spec, struct cm_session_record *record,
			  struct cm_error *err);
/* A key's value as a message has it: "4G?", "/a, /b:ro", "none". */
void cm_local_describe(const struct cm_key_info *info, const struct cm_spec *spec,
		       struct cm_buf *out);
/* The same from has into spec; has gets what spec had. */
void cm_local_take_over(struct cm_spec *spec, struct cm_spec *has);
/* adopt.c: refuse options that contradict a session that exists, then take its settings over. */
int cm_local_adopt(struct cm_local *l, struct cm_error *err);
/* Is the key one of those that a session keeps? */
bool cm_local_keeps(enum cm_key key);

/*
 * ceiling.c: tighten spec by the administrator's ceiling, and by the repository's where there is one
 * in the tree that `work` names. origins and notes, which may be NULL, get what cm_merge_ceiling has
 * for them.
 */
int cm_local_tighten(const struct cm_local *l, struct cm_spec *spec, const struct cm_spec *work,
		     struct cm_origins *origins, struct cm_strv *notes, struct cm_error *err);
/* Before a start: the session's settings below the ceilings of now; people are told of both. */
int cm_local_bound(struct cm_local *l, struct cm_error *err);
/* Of a jail that runs: refused where it has more than is allowed now; else l->spec is what it has. */
int cm_local_check_bounds(struct cm_local *l, struct cm_error *err);

/*
 * skeleton.c: take what is left of the skeleton out of the plan, find or make it on this host, and
 * name it in the plan; l->jail holds it then. may_make is asked with data before one is made.
 */
int cm_local_skeleton(struct cm_local *l, struct cm_plan_builder *b, struct cm_skeleton *skeleton,
		      int (*may_make)(void *data, struct cm_error *err), void *data,
		      struct cm_error *err);

/* plan.c */
/* The first of a slot's kernel ids (root). */
uint32_t cm_local_slot_base(uint32_t slot);
struct cm_local_mount {
	/* host path, and where it is inside; borrowed */
	const char *source;
	const char *target;
	/* CM_OPF_* */
	uint32_t flags;
};

struct cm_local_plan {
	/* added to the planner's steps */
	struct cm_local_mount mounts[4];
	size_t n_mounts;
	/* root: the ids inside are those that mirrors belong to, and not the session's */
	bool is_of_mirrors;
	/*
	 * Called with the plan as soon as it is complete, so that the jail is made while what only
	 * commands need is still looked for. May be NULL.
	 */
	int (*ready)(struct cm_local *l, const struct cm_buf *plan, struct cm_error *err);
	/* in a jail that ends with its client: the home and /tmp are the session's all the same */
	bool has_home;
	/* as the planner's request has it: for a jail of our own on the host's network */
	bool refuses_unix_sockets;
};
/*
 * Facts and plan for spec with the workspace in l->workspace (filled here from dir); the flat form
 * goes to out. is_temporary: the jail ends with its client. out may be NULL: for a jail that runs
 * already only the facts and the environment are wanted.
 */
int cm_local_plan_make(struct cm_local *l, const struct cm_spec *spec, const char *dir,
		       bool is_temporary, const struct cm_local_plan *extra, struct cm_buf *out,
		       struct cm_error *err);

#endif
