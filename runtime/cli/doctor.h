/* SPDX-License-Identifier: Apache-2.0 */
/*
 * casemate doctor: what this host can isolate, what it cannot, and what to do about it.
 *
 * Three steps: facts are read (doctor_facts.c) and tried out (doctor_probe.c), checks are made of
 * them (doctor_checks.c, doctor_cgroup.c: pure, so that tests can name any host), and printed
 * (doctor_report.c).
 */
#ifndef CM_RUNTIME_CLI_DOCTOR_H
#define CM_RUNTIME_CLI_DOCTOR_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "isolation/host/host.h"
#include "runtime/base/buf.h"
#include "runtime/spec/config.h"

/* A step that an earlier failure made impossible. */
#define CM_DOCTOR_NOT_TRIED (-1)

/* What only doing can tell; each as the keeper and init do it. */
enum cm_doctor_step {
	/* all namespaces at once, by clone3 */
	CM_DOCTOR_CLONE,
	CM_DOCTOR_MAP,
	/* from here on inside */
	CM_DOCTOR_PROPAGATION,
	CM_DOCTOR_TMPFS,
	CM_DOCTOR_BIND,
	CM_DOCTOR_LOOPBACK,
	CM_DOCTOR_PROC,
	CM_DOCTOR_CGROUP_NS,
	CM_DOCTOR_OVERLAY,
	CM_DOCTOR_PIVOT,
	/* a system-call filter, loaded outside of any namespace */
	CM_DOCTOR_SECCOMP,
	/* root: an idmapped mount of the session root's file system */
	CM_DOCTOR_IDMAP,
	CM_DOCTOR_STEPS_,
};

/* Kinds of namespaces that are made with the jail's init. */
enum cm_doctor_ns {
	CM_DOCTOR_NS_USER,
	CM_DOCTOR_NS_MNT,
	CM_DOCTOR_NS_PID,
	CM_DOCTOR_NS_NET,
	CM_DOCTOR_NS_IPC,
	CM_DOCTOR_NS_UTS,
	CM_DOCTOR_NS_TIME,
	CM_DOCTOR_NS_COUNT_,
};
/* As in /proc/self/ns and, but for "time", /proc/sys/user/max_NAME_namespaces. */
extern const char *const cm_doctor_ns_names[CM_DOCTOR_NS_COUNT_];

struct cm_doctor_probe {
	/* by enum cm_doctor_step: 0, an errno, or CM_DOCTOR_NOT_TRIED */
	int step[CM_DOCTOR_STEPS_];
	/* each kind beside a user namespace; tried when all at once failed */
	int ns[CM_DOCTOR_NS_COUNT_];
};

enum cm_doctor_dir_kind {
	CM_DOCTOR_DIR_STATE,
	CM_DOCTOR_DIR_RUNTIME,
	CM_DOCTOR_DIR_CACHE,
	CM_DOCTOR_DIR_ROOT,
	CM_DOCTOR_DIRS_,
};

struct cm_doctor_dir {
	char *path;
	/* path, or the nearest of its parents that exists */
	char *nearest;
	bool is_present;
	/* of nearest */
	bool is_writable;
	bool is_noexec;
	uint64_t free_bytes;
};

enum cm_doctor_helper_kind {
	CM_DOCTOR_KEEPER,
	CM_DOCTOR_CHECKOUT,
	CM_DOCTOR_SCOPE,
	CM_DOCTOR_HELPERS_,
};
extern const char *const cm_doctor_helper_names[CM_DOCTOR_HELPERS_];

struct cm_doctor_helper {
	char path[PATH_MAX];
	/* code CM_OK: found, and ours */
	struct cm_error err;
};

struct cm_doctor_facts {
	/* borrowed */
	const struct cm_host *host;
	char release[96];
	char machine[96];
	/* this executable */
	char program[PATH_MAX];
	struct cm_doctor_probe probe;

	/* values below /proc/sys; -1: no such file */
	int64_t apparmor_restrict;
	int64_t userns_clone;
	int64_t max_namespaces[CM_DOCTOR_NS_COUNT_];
	/* this process's AppArmor label without its mode; "" and "unconfined": none */
	char apparmor[128];
	/* a system-call filter of somebody else's is loaded already */
	bool has_filter;
	/* this user namespace knows all of the kernel's ids */
	bool has_all_ids;
	bool has_own_id;
	/* the root directory is no mount: the kernel then refuses user namespaces */
	bool is_chroot;
	/* something is mounted over paths of /proc */
	bool is_proc_covered;
	/* "docker", "podman", "kubernetes", "lxc", ...; "": none seen */
	char container[32];

	/* why landlock_abi is 0 */
	int landlock_errno;
	/* "capability,yama,..."; "": not to be read */
	char lsms[256];

	bool has_systemd;
	bool has_linger;
	bool is_debian;
	bool has_newuidmap;
	bool has_newgidmap;
	/* first id above every range of /etc/subuid and /etc/subgid */
	uint64_t next_subid;
	/* names (numbers where there is none) of the groups besides the primary one */
	struct cm_strv groups;

	/* code CM_OK: state and runtime directory are open */
	struct cm_error store_err;
	struct cm_doctor_dir dirs[CM_DOCTOR_DIRS_];
	struct cm_doctor_helper helpers[CM_DOCTOR_HELPERS_];
	/* "": not on PATH */
	char git[PATH_MAX];
	/* directories of the user's toolchains, and what was left out of them */
	struct cm_strv tools;
	struct cm_strv tool_notes;
};

enum cm_doctor_status {
	CM_DOCTOR_OK = 1,
	/* works, with less */
	CM_DOCTOR_WARN,
	/* no jail can be made */
	CM_DOCTOR_FAIL,
};

struct cm_doctor_check {
	const char *name;
	enum cm_doctor_status status;
	/* what was found, with its cause; one line */
	char *detail;
	/* commands or instructions, lines joined by '\n'; NULL: nothing to do */
	char *fix;
	/* how much the fix gains: the summary names the greatest; 0: never there */
	unsigned int rank;
};

#define CM_DOCTOR_MAX_CHECKS 32

struct cm_doctor_report {
	struct cm_doctor_check checks[CM_DOCTOR_MAX_CHECKS];
	size_t n;
	bool has_failed;
};

struct cm_doctor_summary {
	bool can_jail;
	/* that `casemate run` reaches; "" without a jail */
	char level[64];
	/* the check to do something about first; NULL: none. Borrowed from the report. */
	const struct cm_doctor_check *best;
};

/* Reads and tries everything. host is borrowed; *ret is to be cleared on success only. */
int cm_doctor_facts_read(const struct cm_config *config, const char *root,
			 const struct cm_host *host, struct cm_doctor_facts *ret,
			 struct cm_error *err);
void cm_doctor_facts_clear(struct cm_doctor_facts *facts);
/* Pure: the first id above all ranges of a text like /etc/subuid's, at least `least`. */
uint64_t cm_doctor_next_subid(const char *text, uint64_t least);
/* Pure: the names that /etc/group gives to groups; `except` is left out. 0 or CM_E_NOMEM. */
int cm_doctor_group_names(const char *text, const gid_t *groups, size_t n, gid_t except,
			  struct cm_strv *ret);
/* Pure: the three facts that /proc/self/mountinfo and uid_map hold. */
void cm_doctor_read_mountinfo(const char *mountinfo, struct cm_doctor_facts *facts);
void cm_doctor_read_uid_map(const char *uid_map, struct cm_doctor_facts *facts);

/*
 * Tries what a jail needs, in children that are gone when this returns. root_dir: a directory on
 * the file system of the session root.
 */
void cm_doctor_probe_run(const struct cm_host *host, const char *root_dir,
			 struct cm_doctor_probe *ret);

/* Pure. report->has_failed when memory ran out. */
void cm_doctor_check(const struct cm_doctor_facts *facts, struct cm_doctor_report *report);
void cm_doctor_summarise(const struct cm_doctor_facts *facts, const struct cm_doctor_report *report,
			 struct cm_doctor_summary *ret);
void cm_doctor_report_clear(struct cm_doctor_report *report);

/* For the makers of checks. */
void cm_doctor_add(struct cm_doctor_report *report, const char *name, enum cm_doctor_status status,
		   const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* What to do about the check that was added last. */
void cm_doctor_fix(struct cm_doctor_report *report, unsigned int rank, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void cm_doctor_check_cgroup(const struct cm_doctor_facts *facts, struct cm_doctor_report *report);
void cm_doctor_check_container(const struct cm_doctor_facts *facts,
			       struct cm_doctor_report *report);
/* The rows about the user's account, the directories and programs. */
void cm_doctor_check_user(const struct cm_doctor_facts *facts, struct cm_doctor_report *report);
void cm_doctor_check_files(const struct cm_doctor_facts *facts, struct cm_doctor_report *report);

void cm_doctor_print_text(const struct cm_doctor_report *report, bool has_colour,
			  struct cm_buf *out);
/* The last lines of the text. */
void cm_doctor_print_summary(const struct cm_doctor_summary *summary, struct cm_buf *out);
void cm_doctor_print_json(const struct cm_doctor_report *report,
			  const struct cm_doctor_summary *summary, struct cm_buf *out);

#endif
