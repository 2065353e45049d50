/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan: what will be done on this host to make one jail. Flat, ordered, nothing left to
 * decide. Written by the planner in the client, sent in a sealed memfd, checked once by
 * cm_plan_check and then executed by the keeper and init without interpretation.
 *
 * Layout of the flat form (native endian, one build on both sides: another build id is refused):
 *
 *	struct cm_plan_header
 *	struct cm_plan_op[n_ops]
 *	string table, strings_len bytes; the last one is NUL
 *
 * A reference to a string is its offset in the string table, so 0 (an empty string) is always
 * valid. Every offset is checked to be inside the table and, for content, offset + length too.
 */
#ifndef CM_ISOLATION_PLAN_PLAN_H
#define CM_ISOLATION_PLAN_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "casemate/error.h"
#include "runtime/base/buf.h"

#define CM_PLAN_MAGIC 0x434d504cU
#define CM_PLAN_MAX_OPS 512U
#define CM_PLAN_MAX_STRINGS (1024U * 1024)
#define CM_PLAN_MAX_ID_RANGES 8
#define CM_PLAN_BUILD_ID_SIZE 32
/* so that a time in nanoseconds fits 63 bits */
#define CM_PLAN_MAX_MS (UINT64_C(0x7fffffffffffffff) / 1000000)

/* The agent's uid and gid inside; init's own where the map has more than one id. */
#define CM_ID_AGENT 1000U
#define CM_ID_INIT 65001U
/* one supplementary group a running exec, its mark: CM_ID_MARK_FIRST + slot */
#define CM_ID_MARK_FIRST 60000U
#define CM_MAX_EXECS 256U
/* kernel ids of root's sessions: CM_ID_SLOT_BASE + slot * CM_ID_SLOT_SIZE; no two sessions share
 * one, and no account of the host has any */
#define CM_ID_SLOT_BASE 0x70000000U
#define CM_ID_SLOT_SIZE 65536U
#define CM_ID_SLOTS 4000U
/* no session's: mirrors of remote repositories belong to it, and what fetches into them has it */
#define CM_ID_SLOT_MIRRORS CM_ID_SLOTS

enum cm_plan_op_kind {
	/* host path `source` mounted at `target`, with what is mounted below it: without, a bind fails
	 * on mounts that another namespace locked */
	CM_OP_BIND = 1,
	/* like BIND, behind a read-only overlay, so that host sockets and FIFOs are inert; one file
	 * system, without what is mounted below */
	CM_OP_BIND_INERT,
	/* a new directory of the one tmpfs of the jail, which header.tmpfs_bytes bounds */
	CM_OP_TMPFS,
	CM_OP_PROC,
	CM_OP_DEVPTS,
	CM_OP_MQUEUE,
	/* the session's group through its cgroup namespace; source: v1 controller, or "" for v2 */
	CM_OP_CGROUPFS,
	CM_OP_DIR,
	/* regular file with `content` */
	CM_OP_FILE,
	/* symbolic link `target` -> `source` */
	CM_OP_SYMLINK,
	/* cover a file or directory of procfs with `source`, which is empty and unreadable */
	CM_OP_MASK,
	/* make the mounted or plain directory `target` read-only, by a bind on itself */
	CM_OP_READ_ONLY,
	/* write `content` to /proc/sys/`target`, of the jail's own namespaces */
	CM_OP_SYSCTL,
	/* bind `target` (already inside) on itself so that it cannot be renamed or replaced */
	CM_OP_PIN,
	/* a file with the content of the small host file `source`: only in a skeleton */
	CM_OP_COPY,
	/* first step, and the only one whose target is "/": the directory `source` becomes the
	 * root (skeleton.h) */
	CM_OP_ROOT,
	CM_OP_COUNT_,
};

/* cm_plan_op.flags */
#define CM_OPF_READ_ONLY (1U << 0)
/* DIR, FILE of a skeleton: a mount point, which may be there already */
#define CM_OPF_OPTIONAL (1U << 1)
/* source is a file, so the mount point is one */
#define CM_OPF_FILE (1U << 2)
/* the mount shows files of `owner_uid`/`owner_gid` as the agent's (idmapped; root only) */
#define CM_OPF_IDMAP (1U << 3)
/* DIR, FILE, TMPFS: belongs to the agent. BIND: a directory of Casemate's own (the private home,
 * /tmp), so mount points may be made in it; in any other host directory nothing is ever made. */
#define CM_OPF_AGENT (1U << 4)
#define CM_OPF_NOEXEC (1U << 5)
/* a device node: the mount is not nodev */
#define CM_OPF_DEV (1U << 6)
/* Landlock: the agent may write below target */
#define CM_OPF_WRITABLE (1U << 7)
/* SYSCTL, CGROUPFS, MQUEUE: left out where it fails. BIND with IDMAP: mounted without the map where
 * the file system has none (everybody may read it). */
#define CM_OPF_TRY (1U << 8)
#define CM_OPF_ALL_ 0x1ffU

struct cm_plan_op {
	uint16_t kind;
	uint16_t mode;
	uint32_t flags;
	uint32_t source;
	uint32_t target;
	uint32_t content;
	uint32_t content_len;
	/* IDMAP: host ids shown as the agent's */
	uint32_t owner_uid;
	uint32_t owner_gid;
	/* BIND, COPY: what the planner looked at; another object there now stops the start
	 * (0: any) */
	uint64_t expect_dev;
	uint64_t expect_ino;
	/* COPY: the source's size, and its ctime in ns: whatever is done to a file changes it */
	uint64_t expect_bytes;
	uint64_t expect_ctime_ns;
};

enum cm_plan_idmap {
	/* the caller's own id as 1000, nothing else */
	CM_IDMAP_SINGLE = 1,
	/* root: 0..65535 of a slot */
	CM_IDMAP_SLOT,
	/* the caller's id as 1000 and its subordinate ranges around it, by newuidmap */
	CM_IDMAP_SUBIDS,
};

enum cm_plan_cgroup {
	CM_CGROUP_NONE = 0,
	CM_CGROUP_V1,
	CM_CGROUP_V2,
};

/* controllers, as bits: v1 has a hierarchy of each, v2 one group with them */
#define CM_CG_MEMORY (1U << 0)
#define CM_CG_PIDS (1U << 1)
#define CM_CG_CPU (1U << 2)
#define CM_CG_CPUSET (1U << 3)
#define CM_CG_FREEZER (1U << 4)
#define CM_CG_N 5
/* controllers in v2, too, where each group can be frozen and killed without one */
#define CM_CG_LIMITING (CM_CG_MEMORY | CM_CG_PIDS | CM_CG_CPU | CM_CG_CPUSET)
/* without one of them a session's level is no-cgroup */
#define CM_CG_FULL (CM_CG_MEMORY | CM_CG_PIDS)
/* in bit order */
extern const char *const cm_cgroup_names[CM_CG_N];
/* The bits of those that stand in text, a list of names as v2's files have it. */
uint32_t cm_cgroup_names_parse(const char *text);
/* in sets of limits only (required, enforced): swap has no hierarchy of its own */
#define CM_CG_SWAP (1U << 7)

struct cm_plan_limits {
	/* UINT64_MAX: none. Those of the session's group: where it cannot be written, the start fails
	 * only if the bit is in cgroup_required. */
	uint64_t memory_bytes;
	uint64_t swap_bytes;
	uint64_t pids;
	uint64_t cpu_milli;
	/* those of each command */
	uint64_t open_files;
	uint64_t core_bytes;
};

enum cm_plan_seccomp {
	CM_SECCOMP_DEFAULT = 1,
	CM_SECCOMP_STRICT,
	/* the default one less what gets to abstract sockets, for a jail of ours on the host's network
	 * (Landlock keeps a jail from them, but from Linux 6.12 only) */
	CM_SECCOMP_NO_UNIX,
	CM_SECCOMP_COUNT_,
};

/* cm_plan_header.flags */
/* a network namespace of its own, empty; without it the host's */
#define CM_PLANF_NETNS (1U << 0)
/* the agent is uid 0 inside, with the capabilities of mech/caps.c's root set */
#define CM_PLANF_ROOT_USER (1U << 1)
/* the keeper ends when its creating socket does (temporary sessions) */
#define CM_PLANF_TEMPORARY (1U << 2)

struct cm_plan_header {
	uint32_t magic;
	uint32_t size;
	char build_id[CM_PLAN_BUILD_ID_SIZE];
	uint32_t flags;
	uint32_t idmap;
	/* SLOT: first kernel id. SINGLE and SUBIDS: the caller's own. */
	uint32_t uid_base;
	uint32_t gid_base;
	uint32_t n_ops;
	uint32_t strings_len;
	uint32_t hostname;
	/* string: session id, for messages and group names ([A-Za-z0-9._-]) */
	uint32_t session_id;
	/* string: cpuset list, "" for none */
	uint32_t cpuset;
	uint32_t cgroup;
	/* groups to make (v1), and which of the limits must be enforced or the start fails */
	uint32_t cgroup_controllers;
	uint32_t cgroup_required;
	/* v2: string, absolute directory below which the session's group is made.
	 * v1: string of CM_CG_N paths joined by '\n', in bit order, "" where absent. */
	uint32_t cgroup_base;
	uint32_t seccomp;
	/* minimum Landlock ABI that the planner counted on; 0: none to be had */
	uint32_t landlock_abi;
	uint32_t reserved0_;
	/* SUBIDS: strings with the arguments after the pid for newuidmap and newgidmap: one to
	 * CM_PLAN_MAX_ID_RANGES times "INSIDE HOST COUNT", all separated by one ' ' */
	uint32_t newuidmap_args;
	uint32_t newgidmap_args;
	/* persistent: string, path of the listening socket; "" when temporary */
	uint32_t socket_path;
	/* persistent: strings, state directory (end record, keeper.lock) */
	uint32_t state_dir;
	uint32_t reserved_;
	uint64_t generation;
	/* persistent, in milliseconds, at most CM_PLAN_MAX_MS; 0: never. The session stops when it was
	 * idle for so long, and so long after its start in any case. */
	uint64_t idle_ms;
	uint64_t lifetime_ms;
	/* of all that is in memory: /tmp, /dev/shm, /run and a private home together */
	uint64_t tmpfs_bytes;
	uint64_t tmpfs_inodes;
	struct cm_plan_limits limits;
};

/* A plan in memory: the flat form, checked. Read-only. */
struct cm_plan {
	const struct cm_plan_header *header;
	const struct cm_plan_op *ops;
	const char *strings;
};

/* Reads and checks everything; *ret is valid as long as data is. CM_E_PROTOCOL on any fault. */
int cm_plan_check(const void *data, size_t len, struct cm_plan *ret, struct cm_error *err);
/*
 * Does the plan begin with all that was announced of it? But for the sources of its root and masks,
 * which are known last.
 */
bool cm_plan_continues(const struct cm_plan *plan, const struct cm_plan *announced);
static inline const char *cm_plan_str(const struct cm_plan *plan, uint32_t offset)
{
	return plan->strings + offset;
}
/* Human-readable, one line an op, for golden tests and `inspect --plan`. */
void cm_plan_print(const struct cm_plan *plan, struct cm_buf *out);

/* Builder: grows ops and strings, then cm_plan_builder_finish gives the flat form. */
struct cm_plan_builder {
	struct cm_plan_header header;
	struct cm_plan_op ops[CM_PLAN_MAX_OPS];
	struct cm_buf strings;
	bool has_overflowed;
};

void cm_plan_builder_init(struct cm_plan_builder *b);
void cm_plan_builder_clear(struct cm_plan_builder *b);
/* Offset of a copy of s (with its NUL) in the string table. */
uint32_t cm_plan_builder_str(struct cm_plan_builder *b, const char *s);
uint32_t cm_plan_builder_blob(struct cm_plan_builder *b, const void *data, size_t len);
/* A new zeroed op of a kind; never NULL: on overflow a scratch one, and finish fails. */
struct cm_plan_op *cm_plan_builder_op(struct cm_plan_builder *b, enum cm_plan_op_kind kind);
/* CM_OK, or the failed append that the builder kept in mind. */
int cm_plan_builder_status(const struct cm_plan_builder *b, struct cm_error *err);
/* Appends the flat form to out and checks it. */
int cm_plan_builder_finish(struct cm_plan_builder *b, struct cm_buf *out, struct cm_error *err);

/* Identifies the build; client and keeper must agree. */
extern const char cm_build_id[CM_PLAN_BUILD_ID_SIZE];

#endif
