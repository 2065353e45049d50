/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a command prints, from its journal to the caller as it comes.
 *
 * A stream is read only when its destination can take more, and no write waits (outlet.h): a reader
 * that is slow, or a terminal that was stopped, keeps nobody from being heard.
 */
#ifndef CM_RUNTIME_CLI_ATTACH_OUTPUT_H
#define CM_RUNTIME_CLI_ATTACH_OUTPUT_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "casemate/error.h"
#include "runtime/cli/outlet.h"
#include "runtime/cli/shown_text.h"
#include "runtime/store/journal.h"

struct cm_attach_stream {
	struct cm_outlet outlet;
	bool is_escaped;
	struct cm_shown_text text;
	uint64_t offset;
	/* what is read of it in the end; UINT64_MAX: it goes on */
	uint64_t until;
	/* there may be more to be read */
	bool is_due;
	/* nobody reads it */
	bool is_closed;
};

struct cm_attach_output {
	struct cm_journal_reader *journal;
	struct cm_attach_stream streams[CM_JOURNAL_STREAMS];
	/* bytes that were not kept, to be told of */
	uint64_t n_missed;
};

/*
 * From the end of what there is now, or n_lines before it. is_raw: a terminal of the command's is
 * shown on one; else what goes to a terminal is escaped.
 */
void cm_attach_output_open(struct cm_attach_output *o, struct cm_journal_reader *journal,
			   uint64_t n_lines, bool is_raw);
void cm_attach_output_close(struct cm_attach_output *o);
/* Something was written since. */
void cm_attach_output_due(struct cm_attach_output *o);
/* The command has ended: what it wrote until then is passed on, and no more. */
void cm_attach_output_finish(struct cm_attach_output *o);
/* Everything was passed on that is due. */
bool cm_attach_output_is_done(const struct cm_attach_output *o);
/* What to wait for, a pollfd a stream; and then what to do about it. CM_E_SYS: a stream cannot be
 * written to; one that nobody reads any more is no error. */
void cm_attach_output_prepare(const struct cm_attach_output *o,
			      struct pollfd p[CM_JOURNAL_STREAMS]);
int cm_attach_output_step(struct cm_attach_output *o, const struct pollfd p[CM_JOURNAL_STREAMS],
			  struct cm_error *err);
/* A word of our own to standard output, if that takes it now. */
void cm_attach_output_say(struct cm_attach_output *o, const char *text);

#endif
