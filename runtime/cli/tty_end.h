/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of the caller's input, told to a terminal of the jail's: a pipe that has ended is closed,
 * but a terminal has only its end-of-file character for that.
 */
#ifndef CM_RUNTIME_CLI_TTY_END_H
#define CM_RUNTIME_CLI_TTY_END_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* All zero: the input has not ended. */
struct cm_tty_end {
	/* when to look again (CLOCK_MONOTONIC); 0: not at all */
	int64_t due_ms;
	int64_t pause_ms;
	/* whom it was told last while it could not be told for sure, and how often */
	pid_t reader;
	unsigned int n_unsure;
};

/* The input has ended, and the terminal has got all of it. */
void cm_tty_end_begin(struct cm_tty_end *end);
/* When it is due: tell it to who reads next, unless somebody has yet to read what is there. Was it
 * told? */
bool cm_tty_end_step(struct cm_tty_end *end, int master_fd);

#endif
