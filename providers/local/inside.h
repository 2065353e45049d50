/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A jail of a session's that is for one task of ours: a checkout, giving files back. It ends with
 * its client, and comes before the session's own or after it.
 */
#ifndef CM_PROVIDERS_LOCAL_INSIDE_H
#define CM_PROVIDERS_LOCAL_INSIDE_H

#include "providers/local/local_internal.h"

/*
 * Plan and jail in l->jail, until it stands; arguments as cm_local_plan_make has them. Its plan is
 * kept with the session's state while it is there, so that its groups are found by whoever comes
 * next when all of us are killed. cm_local_task_close is right also after a failure.
 */
int cm_local_task_open(struct cm_local *l, const struct cm_spec *spec, const char *dir,
		       const struct cm_local_plan *extra, struct cm_error *err);
void cm_local_task_close(struct cm_local *l);

/* what a pipe has room for where nobody has lowered that */
#define CM_LOCAL_INPUT_MAX (60UL * 1024)

struct cm_local_program {
	/* NULL-terminated */
	char *const *argv;
	/* what its standard input has, at most CM_LOCAL_INPUT_MAX bytes; NULL: nothing */
	const struct cm_buf *in;
	/* CM_EXECF_* */
	uint32_t flags;
	/* it is ended when it has written nothing for so long; 0: it may be silent */
	uint64_t silence_ms;
	/* of its standard output the last line counts alone */
	bool is_last_line;
	/* then: called with each whole line, without its end, as it comes. May be NULL. */
	void (*on_line)(void *data, const char *line, size_t len);
	void *data;
	/* once true, it is seen to its end whatever the caller wants. May be NULL. */
	const bool *is_committed;
	/* what it wrote; initialised by the caller, who clears them */
	struct cm_buf out;
	struct cm_buf err;
	struct cm_rec_end end;
};

/*
 * Run a program in l->jail (up, or being made) until it has ended and its output is read.
 * CM_E_TIMEOUT: it was silent; CM_E_CANCELLED: the caller does not want it any more.
 */
int cm_local_inside(struct cm_local *l, struct cm_local_program *program, struct cm_error *err);

#endif
