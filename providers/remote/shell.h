/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small scripts in a session, over whatever provider it is of: what the shared layer of remote
 * providers is made of.
 *
 * A script is POSIX sh, for dash and busybox alike. What varies comes as its arguments or its
 * environment, and is never pasted into its text. How it failed is told by itself: CM_SHELL_FAIL's
 * `fail WORD`, which cm_shell_verdict reads, since messages of programs depend on who wrote them and
 * on a locale. The session's user can have anything said: what comes is bounded, and checked.
 */
#ifndef CM_PROVIDERS_REMOTE_SHELL_H
#define CM_PROVIDERS_REMOTE_SHELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "providers/provider.h"

/* what of standard error is kept: its end */
#define CM_SHELL_TAIL 2048U
/* of what is captured, where nothing else is said */
#define CM_SHELL_OUT_MAX (1024UL * 1024)
/* Of one argument, or of the script: the kernel takes no string of 128 KiB. */
#define CM_SHELL_ARG_MAX (120UL * 1024)

/* At the top of a script: `fail WORD` ends it. */
#define CM_SHELL_FAIL "fail() { printf '\\ncasemate-verdict %s\\n' \"$1\" >&2; exit 77; }\n"

/* All is borrowed for the call. */
struct cm_shell {
	struct cm_session *session;
	const char *script;
	/* $1 and on, NULL-terminated; NULL: none */
	const char *const *args;
	/* "NAME=value", over the session's; NULL: none */
	char *const *env;
	/* NULL: where the session's commands start */
	const char *cwd;
	bool is_root;
	/* it does no harm twice */
	bool is_idempotent;
	/* it is how a command is ended: where it fails, it is not ended in this way itself */
	bool is_last_resort;
	/* 0: the call's deadline alone. Past it the script is killed: CM_E_TIMEOUT. */
	uint64_t timeout_ms;
	/*
	 * Standard input; NULL: none. The next bytes, 0 at their end, -errno to give up. The provider has
	 * to have CM_CAP_STDIN.
	 */
	ssize_t (*fill)(void *data, void *buf, size_t size);
	void *fill_data;
	/* Standard output as it comes, -errno to give up; NULL: it is captured */
	int (*take)(void *data, const void *bytes, size_t len);
	/* standard error, beside its tail */
	int (*take_error)(void *data, const void *bytes, size_t len);
	void *take_data;
	/* of what is captured, in bytes: more is CM_E_LIMIT; 0: CM_SHELL_OUT_MAX */
	size_t out_max;
};

struct cm_shell_end {
	/* as a shell has it: 128 + signal, too */
	int exit_code;
	/* what was captured */
	struct cm_buf out;
	/* NUL-terminated; bytes that are NUL are blanks in it */
	char tail[CM_SHELL_TAIL + 1];
	size_t tail_len;
};
#define CM_SHELL_END_INIT                                                                          \
	{                                                                                          \
		0                                                                                  \
	}

/*
 * CM_OK: it was run to its end, whatever its exit status. *ret is the caller's to clear, also after a
 * failure. Else CM_E_TIMEOUT, CM_E_CANCELLED, CM_E_LIMIT, CM_E_NOMEM; CM_E_SYS with the
 * errno of fill or take; CM_E_REMOTE: it could not be run, or how it ended is not known. What may still
 * run then is killed, where the provider can.
 */
int cm_shell_run(const struct cm_shell *shell, const struct cm_call *call, struct cm_shell_end *ret,
		 struct cm_error *err);
void cm_shell_end_clear(struct cm_shell_end *end);
/* The script as a command of the session, to be followed by the caller; of shell its first members, up to
 * is_idempotent, and whether it has a fill. */
int cm_shell_start(const struct cm_shell *shell, const struct cm_call *call, struct cm_exec **ret,
		   struct cm_error *err);

/* The word of a `fail WORD`, borrowed; NULL: it did not end by one. */
const char *cm_shell_verdict(const struct cm_shell_end *end);
bool cm_shell_says(const struct cm_shell_end *end, const char *word);
/*
 * "WHAT: the last line of standard error", or with its exit status where it said nothing. Returns
 * code.
 */
int cm_shell_failed(const struct cm_shell_end *end, int code, struct cm_error *err, const char *fmt,
		    ...) __attribute__((format(printf, 4, 5)));

/* Appends to what is kept of standard error. */
void cm_shell_tail_add(struct cm_shell_end *end, const void *bytes, size_t len);
/* Decimal digits and nothing else, up to max; false: it is not that. */
bool cm_shell_number(const char *text, uint64_t max, uint64_t *ret);

#endif
