/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The provider vtable: a source of sandboxes, as its users and its implementers see it.
 *
 * Implementers fill a const struct cm_provider_ops; registry.c has them by name. Nobody but provider*.c
 * calls through it: the functions below check the contract (an operation that is absent, a capability
 * that is missing, a code without a message, a result without success) and the call's deadline before
 * anything is done.
 *
 * Every operation returns CM_OK, or a negative enum cm_errc with *err filled; results are written on
 * success only. Each that can take long has a struct cm_call. None logs, exits, changes signal
 * dispositions or leaves a child unreaped. Texts that come from a sandbox or a service are as they came:
 * who prints them escapes them.
 *
 * A provider belongs to one thread, and so does all that comes of it, which is released before it: a
 * command before its session, a session before its provider.
 * Different providers are independent.
 */
#ifndef CM_PROVIDERS_PROVIDER_H
#define CM_PROVIDERS_PROVIDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "casemate/error.h"
#include "providers/call.h"
#include "runtime/base/buf.h"
#include "runtime/spec/config.h"
#include "runtime/spec/spec.h"

struct cm_provider;
struct cm_session;
struct cm_exec;

/* --- capabilities ---------------------------------------------------------------------------- */

/*
 * A bit says that the provider enforces it, or that it can be relied on, not that there is a call for
 * it. id, text for people: "... cannot enforce TEXT" or "cannot TEXT".
 */
#define CM_CAPS(X)                                                                                 \
	/* policy */                                                                               \
	X(NETWORK_NONE, "a session without network (--network none)")                              \
	X(NETWORK_INTERNET, "a network of public addresses alone (--network internet)")            \
	X(NETWORK_HOST, "this host's network (--network host)")                                    \
	X(LIMIT_MEMORY, "a memory limit (--memory, --swap)")                                       \
	X(LIMIT_CPU, "a processor limit (--cpus, --cpuset)")                                       \
	X(LIMIT_PIDS, "a limit of processes (--pids-limit)")                                       \
	X(LIMIT_FILES, "a limit of open files (--open-files)")                                     \
	X(LIMIT_TIME, "idle time and lifetime (--idle-timeout, --lifetime)")                       \
	X(LIMIT_SESSIONS, "a number of sessions (--max-sessions)")                                 \
	X(EXEC_TIMEOUT, "an end of commands that take too long (--timeout)")                       \
	X(HOST_FILES, "files of this host in a session (--workspace, --volume, --read-only)")      \
	X(ROOTFS, "a root file system of the caller's (--rootfs)")                                 \
	X(GIT_PINNED, "a .git that commands cannot write to (--git pinned)")                       \
	X(LEVEL, "a level of isolation (--min-level)")                                             \
	X(RETENTION, "an end of sessions that nobody uses (--retention)")                          \
	X(ROOT_USER, "commands as root (--user root)")                                             \
	/* what can be relied on */                                                                \
	X(STDIN, "pass on standard input")                                                         \
	X(TTY, "give a command a terminal")                                                        \
	X(SIGNAL, "send a signal to a command")                                                    \
	X(DETACH, "leave a command running")                                                       \
	X(FILES, "read and write files")                                                           \
	X(AS_USER, "read and write files as its user (--user user)")                               \
	X(WATCH, "watch files")                                                                    \
	X(FILE_URL, "give an address for a file")                                                  \
	X(LABELS, "keep labels")                                                                   \
	X(CHECKOUT, "check out a repository (--repo)")                                             \
	X(TEARDOWN, "run commands at a session's end (--teardown)")                                \
	X(SNAPSHOT, "take a snapshot")                                                             \
	X(CLONE, "clone a session")                                                                \
	X(TEMPLATE, "build a template, or begin with one (--template)")                            \
	X(PUBLISH, "publish a port")

enum cm_cap_bit {
#define X(id, text) CM_CAP_BIT_##id,
	CM_CAPS(X)
#undef X
	CM_CAP_BIT_COUNT_,
};

/* masks: CM_CAP_NETWORK_NONE, ... */
enum cm_cap {
#define X(id, text) CM_CAP_##id = 1 << CM_CAP_BIT_##id,
	CM_CAPS(X)
#undef X
};

/* The text of the lowest bit. */
const char *cm_cap_text(uint32_t caps);
#define CM_CAP_NAME_SIZE 32
/* "network-none", as in JSON; buf. "": there is no such bit. */
const char *cm_cap_name(uint32_t cap, char buf[CM_CAP_NAME_SIZE]);
/* What a spec needs: what its command line or files name, and its network in any case. */
uint32_t cm_provider_needs(const struct cm_spec *spec);

/* --- a provider ------------------------------------------------------------------------------ */

struct cm_provider_config {
	/* the caller's environment and directories; borrowed, as long as the provider lives */
	const struct cm_config *config;
	/* One line for people; a phase that has ended; a line for each request, without secrets. Each may be
	 * NULL. */
	void (*note)(void *data, const char *text);
	void (*phase)(void *data, const char *name, uint64_t duration_us);
	void (*trace)(void *data, const char *line);
	/*
	 * What could not be done with a file, where the session is there and the rest was done: told as it is
	 * found, and then no failure of the operation. A provider that cannot tell it from what ends
	 * everything returns it, as all do where this is NULL.
	 */
	void (*failed)(void *data, const struct cm_error *why);
	void *data;
};

/* Of every provider the first member. */
struct cm_provider {
	const struct cm_provider_ops *ops;
	struct cm_provider_config config;
	/* what probe said, once it did; until then the table's */
	uint32_t caps;
};

/* --- sessions -------------------------------------------------------------------------------- */

enum cm_session_state {
	CM_SESSION_CREATED = 1,
	CM_SESSION_RUNNING,
	/* its files are kept */
	CM_SESSION_STOPPED,
	CM_SESSION_FAILED,
};

/* Of every session the first member. The provider outlives it. */
struct cm_session {
	struct cm_provider *provider;
	/* what its user calls it */
	char id[132];
	/* get-or-create made it */
	bool is_new;
	/* it was running, and no start was needed */
	bool was_running;
	/* Its user's to set, AS_USER: files are what the session's user may do with them, where its commands
	 * are root. */
	bool is_as_user;
};

struct cm_session_info {
	/* owned, as all texts here; each but id may be NULL */
	char *id;
	/* what the provider calls it */
	char *provider_id;
	char *template_name;
	/* where commands start */
	char *workdir;
	char *repo;
	/* "KEY=value" */
	struct cm_strv labels;
	enum cm_session_state state;
	/* 0: not known */
	enum cm_network network;
	/* CLOCK_REALTIME, milliseconds; 0: not known, or never */
	int64_t created_ms;
	int64_t expires_ms;
	/* of the sandbox; 0: not known */
	uint64_t memory_bytes;
	uint64_t disk_bytes;
	uint32_t cpus_milli;
};
void cm_session_info_clear(struct cm_session_info *info);

/* --- commands -------------------------------------------------------------------------------- */

struct cm_exec_request {
	/* NULL-terminated; argv[0] is looked up in the sandbox's PATH */
	char *const *argv;
	/* "NAME=value", over the session's; NULL: none */
	char *const *env;
	/* NULL: where the session's commands start */
	const char *cwd;
	bool wants_tty;
	/* of that terminal */
	uint16_t rows;
	uint16_t cols;
	/* cm_exec_input will be called; else it reads nothing */
	bool has_input;
	/* it is not waited for: its output is kept in the session */
	bool is_detached;
	/* it does no harm twice: may be started again where the connection was lost */
	bool is_idempotent;
	bool is_root;
	/* 0: none. Past it the command is ended: TERM, then, grace_ms later, KILL. */
	uint64_t timeout_ms;
	uint64_t grace_ms;
};

enum cm_exec_end_kind {
	CM_EXEC_EXITED = 1,
	CM_EXEC_SIGNALLED,
	CM_EXEC_TIMED_OUT,
	CM_EXEC_OUT_OF_MEMORY,
	/* by cm_exec_signal, or its session ended */
	CM_EXEC_KILLED,
	/* it could not be executed (126) or was not found (127) */
	CM_EXEC_NOT_EXECUTED,
	/* it was started, and how it ended, or all that it printed, cannot be known: the sandbox or the
	 * connection was lost. exit_code is its own where that is known */
	CM_EXEC_LOST,
};

struct cm_exec_end {
	enum cm_exec_end_kind kind;
	/* as a shell has it: the command's own, 124, 126, 127, 128 + signal */
	int exit_code;
	/* 0: none */
	int signal;
	/* 0: not known */
	uint64_t wall_ms;
};

#define CM_EXEC_NAME_SIZE 64

struct cm_exec_ops;

/* Of every command the first member. The session outlives it. */
struct cm_exec {
	const struct cm_exec_ops *ops;
	struct cm_session *session;
	/* its name in the session, never used again: "" until it has started */
	char name[CM_EXEC_NAME_SIZE];
	/* the command's process in the sandbox; 0: not known */
	int64_t pid;
};

enum cm_exec_event_kind {
	/* name and pid are there. Always the first. */
	CM_EXEC_HAS_STARTED = 1,
	/* stream 1 or 2, or with a terminal 1 */
	CM_EXEC_HAS_OUTPUT,
	/* always the last; what was printed came before it */
	CM_EXEC_HAS_ENDED,
	/* one of the caller's own descriptors has an event */
	CM_EXEC_WOKEN,
};

struct cm_exec_event {
	enum cm_exec_event_kind kind;
	int stream;
	/* good until the next call about this command */
	const void *bytes;
	size_t len;
	struct cm_exec_end end;
};

/* What can be done with a command that was started or attached to. A NULL slot: not with this one. */
struct cm_exec_ops {
	int (*next)(struct cm_exec *e, struct cm_wake *wake, const struct cm_call *call,
		    struct cm_exec_event *ret, struct cm_error *err);
	/* All of it. len 0: its end. CM_E_NOT_FOUND: the command has ended. */
	int (*input)(struct cm_exec *e, const void *bytes, size_t len, const struct cm_call *call,
		     struct cm_error *err);
	/* To its process group. CM_E_NOT_FOUND: it has ended. */
	int (*signal)(struct cm_exec *e, int sig, const struct cm_call *call, struct cm_error *err);
	int (*resize)(struct cm_exec *e, uint16_t rows, uint16_t cols, const struct cm_call *call,
		      struct cm_error *err);
	/* A command that still runs goes on where the provider can let it; else it is ended. */
	void (*release)(struct cm_exec *e);
};

/* Of a command that is or was. Texts are owned. */
struct cm_exec_info {
	char name[CM_EXEC_NAME_SIZE];
	int64_t pid;
	bool is_running;
	bool is_detached;
	/* of one that has ended, where that is known */
	bool has_end;
	struct cm_exec_end end;
	/* CLOCK_REALTIME; 0: not known */
	int64_t started_ms;
	int64_t ended_ms;
	/* NULL: not known */
	char *cwd;
	struct cm_strv argv;
};
void cm_exec_info_clear(struct cm_exec_info *info);

/* --- files ----------------------------------------------------------------------------------- */

enum cm_path_type {
	CM_PATH_FILE = 1,
	CM_PATH_DIRECTORY,
	CM_PATH_LINK,
	CM_PATH_OTHER,
};

struct cm_path_info {
	/* of an entry of a list below what was listed, "" that itself; else as it was asked for. Any byte but
	 * NUL */
	const char *path;
	enum cm_path_type type;
	/* permission bits, without set-id ones */
	uint32_t mode;
	/* as st_mode has it: what kind of OTHER it is, set-id bits; 0: not known */
	uint32_t full_mode;
	uint64_t size;
	/* what it takes on the disk, and how many names it has; has_usage: that is known */
	uint64_t allocated;
	uint32_t links;
	bool has_usage;
	/* since 1970 */
	int64_t mtime_sec;
	uint32_t mtime_nsec;
	/* of a link; else NULL */
	const char *target;
	/* numbers or names; NULL: not known */
	const char *owner;
	const char *group;
};

struct cm_read_request {
	uint64_t offset;
	/* UINT64_MAX: to the end */
	uint64_t length;
	/* not 0 is -errno, and gives up */
	int (*take)(void *data, const void *bytes, size_t len);
	/* The same of zeros that take no room in the file. NULL, or not known: they come as bytes. */
	int (*take_hole)(void *data, uint64_t len);
	void *data;
};

/* what is written */
#define CM_WRITE_APPEND (1U << 0)
/* a new file, then in its place */
#define CM_WRITE_ATOMIC (1U << 1)
/* with the directories above */
#define CM_WRITE_PARENTS (1U << 2)

struct cm_write_request {
	/* CM_WRITE_* */
	uint32_t flags;
	/* of a new file; UINT32_MAX: as usual */
	uint32_t mode;
	/* The next bytes, 0 at the end, -errno to give up: then a file of CM_WRITE_ATOMIC is not there. */
	ssize_t (*fill)(void *data, void *buf, size_t size);
	/*
	 * How many of the next bytes are zeros that need no room; they are passed over, then. 0: the next is
	 * fill's. Who does not ask gets them from fill. May be NULL.
	 */
	uint64_t (*pass_hole)(void *data);
	void *data;
	/* how many there will be; -1: not known */
	int64_t len;
	/* Fill waits for wait_fd to be readable: whoever can waits for that himself, and for an end of the
	 * session with it. */
	bool waits;
	int wait_fd;
};

#define CM_LIST_RECURSIVE (1U << 0)
/* of what is no directory, itself: its path is "" */
#define CM_LIST_ANY (1U << 1)
#define CM_MKDIR_PARENTS (1U << 0)
#define CM_MOVE_NO_CLOBBER (1U << 0)
#define CM_REMOVE_RECURSIVE (1U << 0)
/* what is not there is removed */
#define CM_REMOVE_FORCE (1U << 1)
/* of what a link leads to */
#define CM_STAT_FOLLOW (1U << 0)
/* an address to write to, and not to read from */
#define CM_URL_WRITE (1U << 0)
/* services count in seconds */
#define CM_URL_LIFETIME_MIN_MS 1000U

/* One thing that is done to each of several paths. */
enum cm_paths_kind {
	CM_PATHS_LIST = 1,
	CM_PATHS_STAT,
	CM_PATHS_MKDIR,
	CM_PATHS_REMOVE,
};

struct cm_paths_request {
	enum cm_paths_kind kind;
	/* CM_LIST_*, CM_STAT_*, ... */
	uint32_t flags;
	/* of MKDIR; UINT32_MAX: as usual */
	uint32_t mode;
	/* NULL-terminated */
	const char *const *paths;
	/* of LIST and STAT. A name in a list has before it the path that it is below */
	int (*each)(void *data, const struct cm_path_info *info);
	void *data;
};

enum cm_watch_kind {
	/* the watch stands: what happens from now on is told */
	CM_WATCH_READY = 1,
	CM_WATCH_CREATED,
	CM_WATCH_MODIFIED,
	CM_WATCH_ATTRIBUTES,
	CM_WATCH_REMOVED,
	/* path is gone; where the new name is known it is `to` */
	CM_WATCH_RENAMED,
	/* events were lost */
	CM_WATCH_OVERFLOW,
	/* not of all providers: who wrote to it has closed it */
	CM_WATCH_CLOSED,
	/* not of all, after OVERFLOW and until READY comes again: it is there */
	CM_WATCH_FOUND,
	/* not of all: what is watched is gone; the last one */
	CM_WATCH_GONE,
};

struct cm_watch_event {
	enum cm_watch_kind kind;
	/* below what is watched, "" that itself */
	const char *path;
	const char *to;
	/* CM_PATH_DIRECTORY, or CM_PATH_OTHER for all else; 0: not known */
	enum cm_path_type type;
};

/* --- templates ------------------------------------------------------------------------------- */

struct cm_template_request {
	const char *name;
	/* NULL: the provider's usual one */
	const char *base;
	/* shell text, run in order */
	const struct cm_strv *commands;
	/* 0: as usual */
	uint32_t cpus;
	uint64_t memory_bytes;
	/* a line of its build's log. May be NULL. */
	void (*log)(void *data, const char *line);
	void *data;
};

/* --- the table ------------------------------------------------------------------------------- */

#define CM_PROVIDER_ABI 1

/*
 * A NULL slot: the operation is absent, and then its capability is not in caps. (unit.provider walks all
 * tables.)
 */
struct cm_provider_ops {
	uint32_t abi;
	const char *name;
	/* upper bound; probe may say less */
	uint32_t caps;

	/* Reads and checks what is needed (variables); no request is sent. */
	int (*open)(const struct cm_provider_config *config, struct cm_provider **ret,
		    struct cm_error *err);
	void (*close)(struct cm_provider *p);
	/* What this host or account really gives. Changes nothing. */
	int (*probe)(struct cm_provider *p, const struct cm_call *call, uint32_t *ret_caps,
		     struct cm_error *err);

	/*
	 * Get or create by spec->session_id; NULL: one that is temporary, with a name of its own. It runs
	 * afterwards. All or nothing: what was made by a call that fails, or is given up, is gone again, or
	 * a note says what was left.
	 */
	int (*session_create)(struct cm_provider *p, const struct cm_spec *spec,
			      const struct cm_call *call, struct cm_session **ret,
			      struct cm_error *err);
	/* One that exists, whatever its state; CM_E_NOT_FOUND. Starts nothing. */
	int (*session_attach)(struct cm_provider *p, const char *id, const struct cm_call *call,
			      struct cm_session **ret, struct cm_error *err);
	/* Idempotent, both. */
	int (*session_start)(struct cm_session *s, const struct cm_call *call,
			     struct cm_error *err);
	int (*session_stop)(struct cm_session *s, const struct cm_call *call, struct cm_error *err);
	/* With its files. Idempotent: what is gone already is CM_OK. */
	int (*session_destroy)(struct cm_session *s, const struct cm_call *call,
			       struct cm_error *err);
	/* The handle, and nothing else. */
	void (*session_release)(struct cm_session *s);
	int (*session_info)(struct cm_session *s, const struct cm_call *call,
			    struct cm_session_info *ret, struct cm_error *err);
	/* each: borrowed; not 0 ends it, and is what comes of it */
	int (*session_list)(struct cm_provider *p, const struct cm_call *call,
			    int (*each)(void *data, const struct cm_session_info *info), void *data,
			    struct cm_error *err);
	/* From now on; CM_NETWORK_*, as capabilities say */
	int (*session_network)(struct cm_session *s, enum cm_network network,
			       const struct cm_call *call, struct cm_error *err);

	/* It may not run yet when this returns: CM_EXEC_HAS_STARTED says so. */
	int (*exec_start)(struct cm_session *s, const struct cm_exec_request *request,
			  const struct cm_call *call, struct cm_exec **ret, struct cm_error *err);
	/* A detached one: its output from `offset` bytes of each stream on. CM_E_NOT_FOUND. */
	int (*exec_attach)(struct cm_session *s, const char *name, const uint64_t offsets[2],
			   bool follows, const struct cm_call *call, struct cm_exec **ret,
			   struct cm_error *err);
	int (*exec_list)(struct cm_session *s, const struct cm_call *call,
			 int (*each)(void *data, const struct cm_exec_info *info), void *data,
			 struct cm_error *err);

	int (*file_read)(struct cm_session *s, const char *path,
			 const struct cm_read_request *request, const struct cm_call *call,
			 struct cm_error *err);
	int (*file_write)(struct cm_session *s, const char *path,
			  const struct cm_write_request *request, const struct cm_call *call,
			  struct cm_error *err);
	/*
	 * The entries of a directory, not itself; CM_LIST_*. By the bytes of their names, what is in a
	 * directory right behind it; of more than fit into some MiB only pieces are sorted.
	 */
	int (*file_list)(struct cm_session *s, const char *path, uint32_t flags,
			 int (*each)(void *data, const struct cm_path_info *info), void *data,
			 const struct cm_call *call, struct cm_error *err);
	/* each is called once */
	int (*file_stat)(struct cm_session *s, const char *path, uint32_t flags,
			 int (*each)(void *data, const struct cm_path_info *info), void *data,
			 const struct cm_call *call, struct cm_error *err);
	/* CM_E_EXISTS, but with PARENTS */
	int (*file_mkdir)(struct cm_session *s, const char *path, uint32_t flags, uint32_t mode,
			  const struct cm_call *call, struct cm_error *err);
	int (*file_move)(struct cm_session *s, const char *from, const char *to, uint32_t flags,
			 const struct cm_call *call, struct cm_error *err);
	int (*file_remove)(struct cm_session *s, const char *path, uint32_t flags,
			   const struct cm_call *call, struct cm_error *err);
	/*
	 * Those above for several paths at once, where a request each would be slow: each is done, whatever
	 * becomes of another, and the configuration has `failed`. Not every provider of files has it.
	 */
	int (*file_paths)(struct cm_session *s, const struct cm_paths_request *request,
			  const struct cm_call *call, struct cm_error *err);
	/* Until the call is cancelled (CM_E_CANCELLED), or what is watched is gone (CM_OK). */
	int (*file_watch)(struct cm_session *s, const char *path,
			  int (*each)(void *data, const struct cm_watch_event *event), void *data,
			  const struct cm_call *call, struct cm_error *err);
	/*
	 * Where whoever has the address reads this one file or, by CM_URL_WRITE, writes it, while the session
	 * runs; nothing of the session's own secrets is in it. Whether the file is there is not asked. *ret is
	 * the caller's, and a secret. lifetime_ms: for how long, rounded down to the service's own measure
	 * of time, or 0: no end. *ret_end_ms: CLOCK_REALTIME, when it ends; 0: never.
	 */
	int (*file_url)(struct cm_session *s, const char *path, uint32_t flags,
			uint64_t lifetime_ms, const struct cm_call *call, char **ret,
			int64_t *ret_end_ms, struct cm_error *err);

	/* *ret is the caller's: what a later session names as its template. */
	int (*snapshot)(struct cm_session *s, const char *name, const struct cm_call *call,
			char **ret, struct cm_error *err);
	int (*clone)(struct cm_session *s, const char *id, const struct cm_call *call,
		     struct cm_session **ret, struct cm_error *err);
	/* CM_OK: it is ready; *ret its name for sessions. */
	int (*template_build)(struct cm_provider *p, const struct cm_template_request *request,
			      const struct cm_call *call, char **ret, struct cm_error *err);
	int (*template_list)(struct cm_provider *p, const struct cm_call *call,
			     int (*each)(void *data, const char *name, const char *state),
			     void *data, struct cm_error *err);
	int (*template_remove)(struct cm_provider *p, const char *name, const struct cm_call *call,
			       struct cm_error *err);
	/* Where others reach a port of the session. */
	int (*publish)(struct cm_session *s, uint16_t port, const struct cm_call *call, char **ret,
		       struct cm_error *err);
};

/* --- for implementers, and what is built on providers ------------------------------------------ */

/* One line for people, where somebody wants it; longer ones are cut. */
void cm_provider_note(const struct cm_provider *p, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* A phase has ended that began then (cm_clock_mono_us). */
void cm_provider_phase(const struct cm_provider *p, const char *name, int64_t since_us);
#define CM_PROVIDER_HEX_SIZE 17
/* A name that nobody else has: 16 digits. */
int cm_provider_random_hex(char buf[CM_PROVIDER_HEX_SIZE], struct cm_error *err);
/* nanoseconds since 1970, or before */
void cm_path_info_set_mtime(struct cm_path_info *info, int64_t ns);
/* CM_E_CANCELLED; CM_E_TIMEOUT: the call ends before that, and it was waited for until then. */
int cm_call_sleep(const struct cm_call *call, int64_t ms, struct cm_error *err);

/* --- for users: what the table has, checked ---------------------------------------------------- */

int cm_provider_open(const struct cm_provider_ops *ops, const struct cm_provider_config *config,
		     struct cm_provider **ret, struct cm_error *err);
/* NULL is allowed, as of all that release. */
void cm_provider_close(struct cm_provider *p);
int cm_provider_probe(struct cm_provider *p, const struct cm_call *call, uint32_t *ret_caps,
		      struct cm_error *err);
/* Can it do what this spec asks for? Else CM_E_UNSUPPORTED, naming all that is missing. */
int cm_provider_check(const struct cm_provider *p, const struct cm_spec *spec,
		      struct cm_error *err);

int cm_session_create(struct cm_provider *p, const struct cm_spec *spec, const struct cm_call *call,
		      struct cm_session **ret, struct cm_error *err);
int cm_session_attach(struct cm_provider *p, const char *id, const struct cm_call *call,
		      struct cm_session **ret, struct cm_error *err);
int cm_session_start(struct cm_session *s, const struct cm_call *call, struct cm_error *err);
int cm_session_stop(struct cm_session *s, const struct cm_call *call, struct cm_error *err);
int cm_session_destroy(struct cm_session *s, const struct cm_call *call, struct cm_error *err);
void cm_session_release(struct cm_session *s);
int cm_session_info(struct cm_session *s, const struct cm_call *call, struct cm_session_info *ret,
		    struct cm_error *err);
int cm_session_list(struct cm_provider *p, const struct cm_call *call,
		    int (*each)(void *data, const struct cm_session_info *info), void *data,
		    struct cm_error *err);
int cm_session_network(struct cm_session *s, enum cm_network network, const struct cm_call *call,
		       struct cm_error *err);

int cm_exec_start(struct cm_session *s, const struct cm_exec_request *request,
		  const struct cm_call *call, struct cm_exec **ret, struct cm_error *err);
int cm_exec_attach(struct cm_session *s, const char *name, const uint64_t offsets[2], bool follows,
		   const struct cm_call *call, struct cm_exec **ret, struct cm_error *err);
int cm_exec_list(struct cm_session *s, const struct cm_call *call,
		 int (*each)(void *data, const struct cm_exec_info *info), void *data,
		 struct cm_error *err);
int cm_exec_next(struct cm_exec *e, struct cm_wake *wake, const struct cm_call *call,
		 struct cm_exec_event *ret, struct cm_error *err);
int cm_exec_input(struct cm_exec *e, const void *bytes, size_t len, const struct cm_call *call,
		  struct cm_error *err);
int cm_exec_signal(struct cm_exec *e, int sig, const struct cm_call *call, struct cm_error *err);
int cm_exec_resize(struct cm_exec *e, uint16_t rows, uint16_t cols, const struct cm_call *call,
		   struct cm_error *err);
void cm_exec_release(struct cm_exec *e);

int cm_session_read(struct cm_session *s, const char *path, const struct cm_read_request *request,
		    const struct cm_call *call, struct cm_error *err);
int cm_session_write(struct cm_session *s, const char *path, const struct cm_write_request *request,
		     const struct cm_call *call, struct cm_error *err);
int cm_session_list_files(struct cm_session *s, const char *path, uint32_t flags,
			  int (*each)(void *data, const struct cm_path_info *info), void *data,
			  const struct cm_call *call, struct cm_error *err);
int cm_session_stat(struct cm_session *s, const char *path, uint32_t flags,
		    int (*each)(void *data, const struct cm_path_info *info), void *data,
		    const struct cm_call *call, struct cm_error *err);
int cm_session_mkdir(struct cm_session *s, const char *path, uint32_t flags, uint32_t mode,
		     const struct cm_call *call, struct cm_error *err);
int cm_session_move(struct cm_session *s, const char *from, const char *to, uint32_t flags,
		    const struct cm_call *call, struct cm_error *err);
int cm_session_remove(struct cm_session *s, const char *path, uint32_t flags,
		      const struct cm_call *call, struct cm_error *err);
/* Can several paths be asked for at once, as the provider was configured? */
bool cm_session_has_paths(const struct cm_session *s);
int cm_session_paths(struct cm_session *s, const struct cm_paths_request *request,
		     const struct cm_call *call, struct cm_error *err);
int cm_session_watch(struct cm_session *s, const char *path,
		     int (*each)(void *data, const struct cm_watch_event *event), void *data,
		     const struct cm_call *call, struct cm_error *err);
/* lifetime_ms: 0, or at least CM_URL_LIFETIME_MIN_MS */
int cm_session_file_url(struct cm_session *s, const char *path, uint32_t flags,
			uint64_t lifetime_ms, const struct cm_call *call, char **ret,
			int64_t *ret_end_ms, struct cm_error *err);

int cm_session_snapshot(struct cm_session *s, const char *name, const struct cm_call *call,
			char **ret, struct cm_error *err);
int cm_session_clone(struct cm_session *s, const char *id, const struct cm_call *call,
		     struct cm_session **ret, struct cm_error *err);
int cm_template_build(struct cm_provider *p, const struct cm_template_request *request,
		      const struct cm_call *call, char **ret, struct cm_error *err);
int cm_template_list(struct cm_provider *p, const struct cm_call *call,
		     int (*each)(void *data, const char *name, const char *state), void *data,
		     struct cm_error *err);
int cm_template_remove(struct cm_provider *p, const char *name, const struct cm_call *call,
		       struct cm_error *err);
int cm_session_publish(struct cm_session *s, uint16_t port, const struct cm_call *call, char **ret,
		       struct cm_error *err);

#endif
