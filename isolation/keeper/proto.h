/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records between client, keeper and init. SOCK_SEQPACKET, native endian, one build on both sides
 * for init; for clients HELLO, INFO, STOP and KILL are frozen for ever.
 *
 * A message is one 128-byte struct cm_rec, then rec.len bytes of blob. A blob above
 * CM_PROTO_INLINE_MAX is a sealed memfd, sent as the message's last descriptor (CM_RECF_MEMFD).
 * Unknown type: answered by REFUSED, the connection lives. Malformed: the connection is closed.
 */
#ifndef CM_ISOLATION_KEEPER_PROTO_H
#define CM_ISOLATION_KEEPER_PROTO_H

#include <limits.h>
#include <stdint.h>

#include "casemate/error.h"

#define CM_PROTO_VERSION 2U
#define CM_PROTO_INLINE_MAX (64U * 1024)
/* argv, env and cwd of one exec */
#define CM_PROTO_BLOB_MAX (4U * 1024 * 1024)
#define CM_PROTO_MAX_ARGS 65536U

enum cm_rec_type {
	/*
	 * starter -> keeper: the plan, as a sealed memfd. First record of the socket that the keeper
	 * was started with, and only there. A second descriptor, if there is one, is the lock of the
	 * plan's skeleton: kept open for the keeper's life.
	 */
	CM_REC_PLAN = 15,
	/*
	 * starter -> keeper, first record if any of these: fork init now, into namespaces that every
	 * plan has. body.ahead. Only for a temporary session whose init is not born into a v2 group.
	 */
	CM_REC_AHEAD = 13,
	/*
	 * starter -> keeper -> init, after AHEAD and before the plan: blob: the plan as far as it is
	 * known (flat form). What needs no more is made meanwhile; the plan must begin with it.
	 */
	CM_REC_PREPARE = 14,
	/* client -> keeper: first record. body.hello; blob: the full session id */
	CM_REC_HELLO = 1,
	/* client -> keeper: answered by INFO with body.up */
	CM_REC_INFO = 2,
	/* client -> keeper: orderly stop of the session; answered by STOPPED, then end of file.
	 * keeper -> init: TERM to everything, grace (body.kill), KILL; answered by end of file */
	CM_REC_STOP = 3,
	/* client -> keeper -> init: end an exec's tree: TERM, grace, KILL. body.kill */
	CM_REC_KILL = 4,
	/*
	 * client -> keeper -> init: start a command. body.exec; blob: cwd, argv..., env..., each
	 * NUL-terminated. Descriptors: stdin, stdout, stderr as the flags say, then the memfd.
	 * It may be sent behind HELLO without waiting for the answer: it counts as asked for then.
	 * The client chooses rec.id (unique on its connection); answers carry it.
	 */
	CM_REC_EXEC = 16,
	/* client -> keeper -> init: body.signal, to the main process's group */
	CM_REC_SIGNAL = 17,
	/* client -> keeper: which commands there are; answered by LISTED */
	CM_REC_LIST = 18,
	/*
	 * client -> keeper: body.attach. Answered by STARTED (body.started), with one descriptor where
	 * CM_ATTACHF_INPUT asks for it: what the command reads from, the write end of its pipe or its
	 * terminal's master. From then on the client's rec.id names the command in SIGNAL and KILL, and
	 * its END comes as to who started it. REFUSED when it does not run (any more).
	 */
	CM_REC_ATTACH = 19,
	/* client -> keeper: body.attach: the keeper's end of a detached command's stdin is closed;
	 * answered by CLOSED. Who got one by ATTACH has that still. */
	CM_REC_CLOSE_INPUT = 20,
	/* client -> keeper: what the session uses, as its control groups tell; answered by USED */
	CM_REC_USAGE = 21,

	/* keeper -> client: HELLO was accepted, or (temporary session) the jail is up. body.up */
	CM_REC_UP = 64,
	/* keeper -> client: the exec runs, unless it has ended by the time that it would be told (END
	 * says it then). With CM_EXECF_TTY one descriptor: the pty's master,
	 * whose size the client then sets itself */
	CM_REC_STARTED = 65,
	/* keeper -> client: the exec ended. body.end */
	CM_REC_END = 66,
	/* keeper -> client: the request was not carried out. blob: struct cm_error */
	CM_REC_REFUSED = 67,
	/* keeper -> client: the jail could not be made or is lost. blob: struct cm_error */
	CM_REC_FAILED = 68,
	CM_REC_STOPPED = 69,
	/* keeper -> client: rec.len bytes of struct cm_rec_item, each followed by its text */
	CM_REC_LISTED = 70,
	CM_REC_CLOSED = 71,
	/* keeper -> client: body.usage */
	CM_REC_USED = 72,

	/*
	 * keeper -> init: the ids are mapped, go on. Descriptors: the plan, then a tasks file for
	 * each bit of body.go.tasks in order.
	 */
	CM_REC_GO = 96,
	/* init -> keeper: nothing bears this slot's mark any more. body.slot */
	CM_REC_SLOT_FREE = 97,
};

/* cm_rec.flags */
#define CM_RECF_MEMFD (1U << 0)

/* body.exec.flags */
/* descriptors present, in this order; without one init opens the jail's /dev/null */
#define CM_EXECF_STDIN (1U << 0)
#define CM_EXECF_STDOUT (1U << 1)
#define CM_EXECF_STDERR (1U << 2)
/* a pty of the jail instead of the three; its master is passed out */
#define CM_EXECF_TTY (1U << 3)
/* kill the exec's whole tree when its main process has ended (setup) */
#define CM_EXECF_KILL_TREE (1U << 4)
/* look argv[0] up on the PATH of the exec's environment */
#define CM_EXECF_SEARCH_PATH (1U << 5)
/* report memory and other usage of the session's group with the end */
#define CM_EXECF_USAGE (1U << 6)
/* temporary session: it ends when this exec does */
#define CM_EXECF_LAST (1U << 7)
/* not in a temporary session: no descriptors come along, the keeper makes them and journals what
 * comes (runtime/store/journal.h), whoever is there to read it */
#define CM_EXECF_DETACH (1U << 8)
/* with DETACH: its stdin is a pipe that the keeper holds (ATTACH, CLOSE_INPUT) */
#define CM_EXECF_INPUT (1U << 9)
/* as the agent's id, where the session's commands are root inside */
#define CM_EXECF_AS_USER (1U << 10)
/* keeper -> init only: the exec has a leaf group, two descriptors follow the others: the one to
 * join by and the one to kill by (mech/cgroup.h) */
#define CM_EXECF_LEAF (1U << 16)
/*
 * Nothing is executed: the command's process goes on in init's own program, with the command's rights
 * (file_proto.h has what the arguments are, and what its stdin and stdout are then). Outside of the
 * bits that keepers before it passed on: those refuse the request as malformed, so that none of them
 * takes its arguments for a program.
 */
#define CM_EXECF_BUILTIN (1U << 17)
/* what a client may set */
#define CM_EXECF_CLIENT_ (0xffffU | CM_EXECF_BUILTIN)

enum cm_end_kind {
	/* exit status in status */
	CM_END_EXIT = 1,
	/* signal number in status */
	CM_END_SIGNAL,
	CM_END_TIMEOUT,
	/* killed by the kernel because of the session's memory limit */
	CM_END_MEMORY,
	/* ended by a KILL or STOP request */
	CM_END_KILLED,
	/* the command could not be executed: errno in status, enum cm_exec_step in detail */
	CM_END_NOT_EXECUTED,
};

/* "exit", "memory-limit", ...: as --json has them; "unknown" for what is no kind */
const char *cm_end_kind_name(uint32_t kind);

/* NOT_EXECUTED: what the command's process could not do. */
enum cm_exec_step {
	CM_EXEC_STEP_SESSION = 1,
	CM_EXEC_STEP_STDIO,
	CM_EXEC_STEP_GROUP,
	CM_EXEC_STEP_MARK,
	CM_EXEC_STEP_CWD,
	CM_EXEC_STEP_IDS,
	CM_EXEC_STEP_CAPS,
	CM_EXEC_STEP_SECCOMP,
	CM_EXEC_STEP_EXECVE,
};

/* "enter the working directory", ...: after "the command could not" */
const char *cm_exec_step_name(enum cm_exec_step step);

struct cm_rec_hello {
	uint32_t version;
	uint32_t reserved_;
};

/* level bits, what the session really has */
#define CM_UPF_CGROUP_V1 (1U << 0)
#define CM_UPF_CGROUP_V2 (1U << 1)
#define CM_UPF_SINGLE_ID (1U << 2)
#define CM_UPF_HOST_NETWORK (1U << 3)
#define CM_UPF_LANDLOCK (1U << 4)

struct cm_rec_up {
	uint32_t version;
	uint32_t flags;
	/* CM_CG_* of the limits that a group enforces */
	uint32_t enforced;
	int32_t keeper_pid;
	/* as seen from the host */
	int32_t init_pid;
	uint32_t landlock_abi;
	uint64_t generation;
};

struct cm_rec_exec {
	uint32_t flags;
	uint32_t n_args;
	uint32_t n_env;
	uint16_t rows;
	uint16_t cols;
	/* wall time; 0: none */
	uint64_t timeout_ms;
	/* between TERM and KILL */
	uint64_t grace_ms;
	/* keeper -> init: mark and leaf, and the id that it printed */
	uint32_t slot;
	uint32_t reserved_;
	uint64_t exec_id;
	/* DETACH: what is kept of each stream at the most; 0: CM_JOURNAL_BYTES */
	uint64_t journal_bytes;
	/* the session's start that it is meant for; 0: any */
	uint64_t generation;
};

#define CM_ATTACHF_INPUT (1U << 0)

struct cm_rec_attach {
	uint64_t exec_id;
	/* CM_ATTACHF_* */
	uint32_t flags;
};

enum cm_item_state {
	CM_ITEM_STARTING = 1,
	CM_ITEM_RUNNING,
	/* it has ended, and processes that it started live on */
	CM_ITEM_CHILDREN_LEFT,
};

/* In the blob of LISTED; the next one begins at a multiple of 8 bytes. */
struct cm_rec_item {
	uint64_t exec_id;
	/* CLOCK_REALTIME */
	int64_t started_ms;
	/* CM_EXECF_* */
	uint32_t flags;
	/* enum cm_item_state */
	uint32_t state;
	/* inside the jail; 0: not known yet */
	int32_t pid;
	/* cwd and arguments, each but perhaps the last NUL-terminated; cut at CM_ITEM_TEXT_MAX */
	uint32_t text_len;
};
#define CM_ITEM_TEXT_MAX 1024U

struct cm_rec_signal {
	int32_t signal;
};

struct cm_rec_kill {
	uint64_t grace_ms;
};

struct cm_rec_started {
	/* generation << 32 | counter */
	uint64_t exec_id;
	/* inside the jail */
	int32_t pid;
};

#define CM_ENDF_TIMED_OUT (1U << 0)
#define CM_ENDF_KILLED (1U << 1)
/* processes of its tree live on */
#define CM_ENDF_CHILDREN_LEFT (1U << 2)
/* usage covers only waited-for children */
#define CM_ENDF_USAGE_APPROXIMATE (1U << 3)
/* the kernel killed something of the session at its memory limit while it ran */
#define CM_ENDF_MEMORY_LIMIT (1U << 4)

struct cm_rec_end {
	uint32_t kind;
	int32_t status;
	uint32_t flags;
	/* refused network attempts while it ran; NOT_EXECUTED: enum cm_exec_step */
	uint32_t detail;
	uint64_t wall_us;
	uint64_t cpu_user_us;
	uint64_t cpu_system_us;
	/* of the largest process */
	uint64_t max_rss_bytes;
	/* of the session's group; 0: not known */
	uint64_t memory_peak_bytes;
	/* of a command that was started, and has ended before that was told: there is no STARTED */
	struct cm_rec_started started;
};

#define CM_USAGE_UNKNOWN UINT64_MAX
struct cm_rec_usage {
	/* CM_USAGE_UNKNOWN: there is no group that tells */
	uint64_t memory_bytes;
	uint64_t memory_peak_bytes;
	uint64_t cpu_us;
	uint64_t n_tasks;
	/* limits that are enforced; CM_USAGE_UNKNOWN: there is none */
	uint64_t memory_max_bytes;
	uint64_t cpu_max_milli;
	uint64_t tasks_max;
};

struct cm_rec_ahead {
	/* what the plan will say of it: 1 or 0 */
	uint32_t has_own_network;
	/* 1: what this keeper leaves is the starter's to wait for (PR_SET_CHILD_SUBREAPER) */
	uint32_t starter_reaps;
};

struct cm_rec_go {
	/* CM_CG_* */
	uint32_t tasks;
};

struct cm_rec_slot {
	uint32_t slot;
};

struct cm_rec {
	uint16_t type;
	uint16_t flags;
	uint32_t len;
	uint64_t id;
	union {
		struct cm_rec_hello hello;
		struct cm_rec_up up;
		struct cm_rec_exec exec;
		struct cm_rec_signal signal;
		struct cm_rec_kill kill;
		struct cm_rec_started started;
		struct cm_rec_end end;
		struct cm_rec_slot slot;
		struct cm_rec_go go;
		struct cm_rec_ahead ahead;
		struct cm_rec_attach attach;
		struct cm_rec_usage usage;
		uint8_t pad[112];
	} body;
};
_Static_assert(sizeof(struct cm_rec) == 128, "records are 128 bytes");
_Static_assert(sizeof(struct cm_error) <= PIPE_BUF, "a report is one atomic write");

/* Send rec, its blob (rec->len bytes; a memfd is made when it is large) and descriptors. */
int cm_proto_send(int sock, struct cm_rec *rec, const void *blob, const int *fds,
		  unsigned int n_fds);
/* A REFUSED or FAILED record with *why as its blob. */
int cm_proto_send_error(int sock, uint16_t type, uint64_t id, const struct cm_error *why);

struct cm_msg {
	struct cm_rec rec;
	/* rec.len bytes, NUL-terminated one byte further; cm_msg_clear's to free */
	char *blob;
	/* unused ones are -1; the memfd is taken out */
	int fds[8];
	unsigned int n_fds;
};
/*
 * Receive one message. 1: got one; 0: end of file; negative errno: -EAGAIN when there is none,
 * -EBADMSG when it was malformed (close the connection). The message is cleared first.
 */
int cm_proto_recv(int sock, struct cm_msg *msg);
void cm_msg_init(struct cm_msg *msg);
void cm_msg_clear(struct cm_msg *msg);
/* The struct cm_error in a blob, believed only after this check. */
void cm_proto_error_of(const struct cm_msg *msg, struct cm_error *ret);

#endif
