/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host's git as a child of this process, in the same jail, for what libgit2 cannot do. Its
 * environment and its configuration are made here and have nothing of anybody's: no hook, no filter
 * but LFS, one protocol, no question to a terminal.
 */
#ifndef CM_ISOLATION_CHECKOUT_HOST_GIT_H
#define CM_ISOLATION_CHECKOUT_HOST_GIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "casemate/error.h"
#include "isolation/checkout/credential.h"
#include "isolation/checkout/report.h"
#include "isolation/checkout/ssh_log.h"
#include "runtime/base/buf.h"
#include "runtime/base/giturl.h"

struct cm_ssh_options;

/* an id as text */
#define CM_HOST_GIT_HEX_SIZE CM_REPORT_ID_SIZE

/* What was asked for that libgit2 cannot do. */
struct cm_host_git_wants {
	bool has_lfs;
	/* no content of files beside the checkout's */
	bool filters_blobs;
	/* directories, a line each without the last one's end; NULL: all of the tree */
	const char *sparse;
};

/* What a fetch takes along; all of it may be absent, and is borrowed. */
struct cm_host_git_access {
	/* NULL: there is no network, and no protocol is allowed */
	const struct cm_giturl *url;
	/*
	 * Sent to the scheme, host and port of url alone; over http only where that is this host, over
	 * ssh only keys.
	 */
	const struct cm_credential *credential;
	/* of an ssh address, which is placed (ssh.h) */
	const struct cm_ssh_options *ssh;
	/* certificates that are believed, PEM; NULL: the system's */
	const char *ca_file;
	/* is git-lfs run for the files that are its? else they stay pointers */
	bool has_lfs;
};

struct cm_host_git {
	struct cm_report *rep;
	const char *program;
	/* a memory file: git's one configuration beside the repository's own */
	int config_fd;
	/* the same for the credential; -1: there is none */
	int secret_fd;
	/* where what ssh says is left, in a memory file; -1: there is no ssh */
	int ssh_fd;
	/* "NAME=value" */
	struct cm_strv env;
};

#define CM_HOST_GIT_INIT                                                                           \
	{                                                                                          \
		.config_fd = -1, .secret_fd = -1, .ssh_fd = -1                                     \
	}

/* Is anything of it wanted? */
bool cm_host_git_is_wanted(const struct cm_host_git_wants *wants);
/* CM_E_UNSUPPORTED where git, or with has_lfs git-lfs, is not installed. */
int cm_host_git_check(bool has_lfs, struct cm_error *err);
/* Does the repository's configuration say so? It is read as far as it is a file, and never waited for. */
bool cm_host_git_has_sha256(const char *git_dir);
int cm_host_git_open(struct cm_host_git *g, const struct cm_host_git_access *access,
		     struct cm_report *rep, struct cm_error *err);
void cm_host_git_close(struct cm_host_git *g);

/* One run of git. */
struct cm_host_git_call {
	/* after "git"; NULL-terminated */
	const char *const *argv;
	/* another program than git, by its path, and the file that it has in place of git's configuration */
	const char *program;
	int file_fd;
	/* its standard input; NULL: empty */
	const struct cm_buf *in;
	/*
	 * Its processor time is a sign of life for so long after it last said something new, in
	 * milliseconds; 0: always. For what can be kept busy from outside.
	 */
	uint64_t busy_ms_max;
	/* called with each part of its standard output that end ends; NULL: it is not read */
	int (*on_part)(void *data, const char *part, size_t len);
	void *data;
	char end;
	/* the last of what it said on standard error that is no progress; the caller clears it */
	struct cm_buf said;
	/* its exit status; 128 and the signal's number where one ended it */
	int status;
	/* of an ssh address: what the last connection came to */
	struct cm_ssh_log ssh;
};

/*
 * Run it to its end. CM_OK also where it failed: status tells. What on_part returns that is not CM_OK
 * ends it, and so does the guard, whose bound is then the error to tell.
 */
int cm_host_git_run(struct cm_host_git *g, struct cm_host_git_call *call, struct cm_error *err);
/* The same, for what has no reason to fail: another status than 0 is CM_E_CHECKOUT with git's words. */
int cm_host_git_must(struct cm_host_git *g, const char *const *argv, struct cm_error *err);
/* The first line of its standard output, without its end; "" where it failed or said nothing. */
int cm_host_git_line(struct cm_host_git *g, const char *const *argv, char *text, size_t size,
		     struct cm_error *err);
/* "cannot WHAT: the last thing that git said". */
int cm_host_git_failed(const struct cm_host_git_call *call, const char *what, struct cm_error *err);

/* The text of git's configuration for that access, into out. self: this program's path. */
int cm_host_git_config(const struct cm_host_git_access *access, const char *self,
		       struct cm_buf *out, struct cm_error *err);
/*
 * Where the content of LFS files is, as git-lfs finds it: of an http or https address, or of one of
 * ssh, whose server tells git-lfs the place.
 */
int cm_host_git_lfs_url(const struct cm_host_git_access *access, struct cm_buf *out,
			struct cm_error *err);

/* A line of git's progress, or of git-lfs's: told to rep and to the guard. False: it is none. */
bool cm_host_git_progress(struct cm_report *rep, const char *line);
/* Milliseconds of processor time that the processes of that group have used. */
uint64_t cm_host_git_cpu_ms(pid_t group);

/* One note: that git does it, and what libgit2 does not have. */
int cm_host_git_note(struct cm_report *rep, const char *const *reasons, size_t n,
		     struct cm_error *err);

/*
 * Is path, of a file, among what is checked out? All of the named directories, and the files beside
 * them and beside each directory above them: git's cone mode.
 */
bool cm_host_git_is_in_cone(const char *sparse, const char *path);

/*
 * The descriptors that git's processes inherit: its configuration, or what another program reads and
 * writes; the credential, as credential.h has it; and where --connect-git leaves a struct cm_ssh_log.
 * Memory files, far above the standard ones and below any limit.
 */
#define CM_HOST_GIT_FILE_FD 9
#define CM_HOST_GIT_SECRET_FD 10
#define CM_HOST_GIT_SSH_FD 11
#define CM_HOST_GIT_FILE_PATH "/proc/self/fd/9"
#define CM_HOST_GIT_SECRET_PATH "/proc/self/fd/10"
/* As git's credential helper: argv is "--answer-git" URL OPERATION. Exit status. */
int cm_host_git_answer(int argc, char **argv);
/* A memory file with that text, whose number is none of the above. */
int cm_host_git_memory(const char *name, const struct cm_buf *text, int *ret, struct cm_error *err);
/* The first of these paths that can be executed; NULL: none. */
const char *cm_host_git_program(const char *const *places, size_t n);

#endif
