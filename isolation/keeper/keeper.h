/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper: the small process outside that holds the power over one jail.
 *
 * It is single-threaded for life, parses no text, and decides nothing: it carries out a checked
 * plan, forwards requests from a table gated by its state, and believes nothing that comes from
 * the jail. It is never in the jail's control group.
 */
#ifndef CM_ISOLATION_KEEPER_KEEPER_H
#define CM_ISOLATION_KEEPER_KEEPER_H

#include "isolation/keeper/handover.h"
#include "isolation/keeper/outbox.h"
#include "isolation/keeper/proto.h"
#include "isolation/mech/cgroup.h"
#include "isolation/plan/plan.h"
#include "runtime/base/loop.h"
#include "runtime/store/events.h"

#define CM_KEEPER_MAX_CLIENTS 200
/* clients that follow a command which they did not start */
#define CM_KEEPER_MAX_WATCHES 512

enum cm_keeper_state {
	CM_KS_STARTING = 1,
	CM_KS_UP = 2,
	CM_KS_STOPPING = 4,
};

struct cm_keeper_client {
	int sock;
	bool has_said_hello;
	/* its HELLO is to be answered, before all else */
	bool is_greeting_due;
	/* of another protocol version: only what is frozen is understood */
	bool is_foreign;
	/* CLOCK_MONOTONIC; of one that has not: dropped then */
	int64_t hello_due_ms;
	/* CLOCK_MONOTONIC; when a command of its ended last. 0: none has since its last request */
	int64_t spare_since_ms;
	/* a request of its waits for room to init: no more are read */
	bool is_paused;
	bool wants_stopped;
	uint64_t stop_id;
};

struct cm_keeper_exec {
	/* also after the end, while its mark or leaf is still borne */
	bool is_used;
	bool is_running;
	uint64_t id;
	/* -1: its client is gone */
	int client;
	uint64_t client_id;
	uint32_t flags;
	uint64_t oom_before;
	/* its tree was, or may have been, killed by its leaf */
	bool is_leaf_spent;
	/* inside the jail; 0: not known yet */
	int32_t pid;
	/* its event is to be written */
	bool is_start_due;
	/* CLOCK_REALTIME */
	int64_t started_ms;
	/* cwd and arguments, cut; owned */
	char *text;
	uint32_t text_len;
	/* detached; NULL: not, or told its end. Its own owner (jobs.h). */
	struct cm_keeper_job *job;
};

struct cm_keeper_watch {
	bool is_used;
	int client;
	/* as the client knows the command */
	uint64_t client_id;
	uint64_t exec_id;
};

struct cm_keeper {
	/* first what is small, and every start touches; then what has room for many */
	struct cm_plan plan;
	/* the socket that the keeper was started with */
	int starter;
	/* init was forked before the plan was known, with or without a network of its own; what was
	 * announced of the plan since then is prepared */
	bool is_ahead;
	bool has_own_network;
	bool is_temporary;
	/* the starter waits for what this process leaves */
	bool starter_reaps;
	/* and knows that its last command has ended */
	bool is_last_told;
	enum cm_keeper_state state;
	int init_sock;
	int init_pidfd;
	pid_t init_pid;
	/* what init_sock has no room for */
	struct cm_outbox outbox;
	int signal_fd;
	int listen_fd;
	int state_dir_fd;
	int lock_fd;
	uint64_t counter;
	uint32_t end_reason;
	/* CLOCK_BOOTTIME: when it began, and when a command ended last or was asked for; the timer for
	 * the bounds on both, -1: there are none */
	int64_t began_ms;
	int64_t active_ms;
	int age_fd;
	/* for the first client that has not said hello; -1: none */
	int hello_timer;
	/* for results that could not be written; -1: there are none */
	int result_timer;
	/* for terminals of jobs that nobody has open; -1: there are none */
	int hung_timer;
	unsigned int n_starts_due;
	struct cm_keeper_job *jobs;
	unsigned int n_jobs;
	/* since it began */
	uint64_t n_journaled;
	/* borrows state_dir_fd */
	struct cm_event_log events;
	struct cm_msg msg;
	struct cm_announced announced;
	/* clients and watches from here on were never used: not even their memory is touched */
	int n_clients;
	size_t n_watches;
	/* as root: what init cannot open */
	struct cm_mount_sources sources;
	struct cm_cgroup cgroup;
	struct cm_loop loop;
	struct cm_keeper_client clients[CM_KEEPER_MAX_CLIENTS];
	struct cm_keeper_exec execs[CM_MAX_EXECS];
	struct cm_keeper_watch watches[CM_KEEPER_MAX_WATCHES];
};

/*
 * start.c. From a checked plan to an init that builds the jail; cm_keeper_end cleans up on failure.
 * Ahead: the namespaces, which take longest, while the client still makes the plan; only for a
 * temporary session whose init is not born into a v2 group.
 */
int cm_keeper_clone_ahead(struct cm_keeper *k, bool has_own_network, struct cm_error *err);
/* What k->announced tells: groups, id maps, and what init can make. */
int cm_keeper_prepare(struct cm_keeper *k, struct cm_error *err);
int cm_keeper_start(struct cm_keeper *k, int plan_fd, struct cm_error *err);
/* end.c: kill the jail, remove what was made, write the end record. Idempotent. */
void cm_keeper_end(struct cm_keeper *k);
/* Tell everybody who waits that the session failed. */
void cm_keeper_fail(struct cm_keeper *k, const struct cm_error *why);

/* clients.c */
int cm_keeper_client_add(struct cm_keeper *k, int own_sock, bool is_trusted, struct cm_error *err);
void cm_keeper_client_drop(struct cm_keeper *k, int client);
/* It has said hello. */
void cm_keeper_client_greeted(struct cm_keeper *k, int client);
/* Read no more of its requests, until all are resumed. */
void cm_keeper_client_pause(struct cm_keeper *k, int client);
void cm_keeper_clients_resume(struct cm_keeper *k);
int cm_keeper_listen(struct cm_keeper *k, struct cm_error *err);
/* The answer to its HELLO, if that is due; what it is told else comes after that. */
void cm_keeper_greet(struct cm_keeper *k, int client);
/* client -1: nobody. Who does not read is dropped. */
void cm_keeper_tell(struct cm_keeper *k, int client, struct cm_rec *rec, const void *blob,
		    const int *fds, unsigned int n_fds);
void cm_keeper_refuse_as(struct cm_keeper *k, int client, uint64_t id, const struct cm_error *why);
void cm_keeper_refuse(struct cm_keeper *k, int client, uint64_t id, int code, const char *why);

/* requests.c: from clients */
void cm_keeper_request(struct cm_keeper *k, int client);
/* Orderly; reason: enum cm_end_reason. */
void cm_keeper_stop(struct cm_keeper *k, uint32_t reason);
/* UP, or with another type INFO: what the jail has. */
void cm_keeper_fill_up(const struct cm_keeper *k, struct cm_rec *rec);
/* 0, or -errno. An init that is gone is no failure: its last words are in the socket. */
int cm_keeper_to_init(struct cm_keeper *k, struct cm_rec *rec, const void *blob, const int *fds,
		      unsigned int n_fds);

/* age.c: its idle time and its lifetime */
int cm_keeper_age_begin(struct cm_keeper *k, struct cm_error *err);
void cm_keeper_was_active(struct cm_keeper *k);

/* answers.c: from init */
void cm_keeper_answer(struct cm_keeper *k);

/* execs.c: the commands */
/* EXEC, LIST and ATTACH of the client whose request is in k->msg. */
void cm_keeper_exec(struct cm_keeper *k, int client);
void cm_keeper_list(struct cm_keeper *k, int client);
void cm_keeper_attach(struct cm_keeper *k, int client);
/* Of one that runs its slot, by the exec id or by what a client calls it; -1: there is none. */
int cm_keeper_exec_by_id(const struct cm_keeper *k, uint64_t id);
int cm_keeper_exec_of(struct cm_keeper *k, int client, uint64_t client_id);
/* Its end, to who started it and to who follows it. */
void cm_keeper_exec_ended(struct cm_keeper *k, int slot, struct cm_rec *end);
/* It was not started: the same are told. */
void cm_keeper_exec_refused(struct cm_keeper *k, int slot, const struct cm_error *why);
/* Nothing bears its mark any more. */
void cm_keeper_exec_free(struct cm_keeper *k, uint32_t slot);
/* Has it a command that runs, or follows one? */
bool cm_keeper_client_waits(const struct cm_keeper *k, int client);
/* A client is gone; what it started goes on. */
void cm_keeper_exec_forget(struct cm_keeper *k, int client);

#endif
