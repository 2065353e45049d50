/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What there is to say of a command of a session. For programs, an object:
 *
 *	exec        its id, "3.17"
 *	state       "starting", "running", "children-left": it has ended, and processes that it started
 *	            live on; "ended"; "unknown": it has ended, and nobody knows how
 *	pid         inside the jail; null where it has ended
 *	startedAt, endedAt
 *	end, exitCode, signal, timedOut, killed, memoryLimit, childrenLeft
 *	            as --result has them; null where that is not known (yet)
 *	wallMs      how long it ran, or has run
 *	cpuUserMs, cpuSystemMs, maxRssBytes
 *	            null before its end
 *	cwd, command
 *	commandCut  command is not all of it
 *	detached, tty, stdin
 *	            stdin: what it reads can be written to
 *	bytes, lost objects of stdout and stderr: of a detached one what was journaled, and what could
 *	            not be; else null
 */
#ifndef CM_RUNTIME_CLI_EXEC_VIEW_H
#define CM_RUNTIME_CLI_EXEC_VIEW_H

#include "runtime/base/json_write.h"
#include "runtime/cli/exec_target.h"

enum cm_exec_state {
	CM_EXEC_STARTING = 1,
	CM_EXEC_RUNNING,
	CM_EXEC_CHILDREN_LEFT,
	CM_EXEC_ENDED,
	CM_EXEC_UNKNOWN,
};

struct cm_exec_view {
	uint64_t exec_id;
	enum cm_exec_state state;
	int32_t pid;
	/* CLOCK_REALTIME */
	int64_t started_ms;
	bool is_detached;
	bool is_tty;
	bool has_stdin;
	struct cm_exec_fate fate;
	bool has_bytes;
	uint64_t bytes[CM_JOURNAL_STREAMS];
	uint64_t lost[CM_JOURNAL_STREAMS];
	/* cwd and arguments, each NUL-terminated; owned */
	char *text;
	size_t text_len;
	bool is_cut;
};

/*
 * Of a command that the keeper knows, or that has a journal. CM_E_NOT_FOUND: neither (any more).
 * The caller clears it.
 */
int cm_exec_view_fill(const struct cm_exec_target *t, uint64_t exec_id, struct cm_exec_view *ret,
		      struct cm_error *err);
void cm_exec_view_clear(struct cm_exec_view *view);
void cm_exec_view_write(struct cm_json_writer *w, const struct cm_exec_view *view);
/* The object of t's command in a line on standard output, with this end; the exit status of that. */
int cm_exec_view_print(const struct cm_exec_target *t, const struct cm_exec_fate *fate);
/* The command as it can be given to a shell again, in one line that is inert on a terminal. */
void cm_exec_view_command(const struct cm_exec_view *view, struct cm_buf *out);
/* How long it ran, or has run. */
uint64_t cm_exec_view_wall_ms(const struct cm_exec_view *view);

#endif
