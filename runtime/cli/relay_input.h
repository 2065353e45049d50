/* SPDX-License-Identifier: Apache-2.0 */
/* What the caller's stdin has for a command: a chunk at a time, taken before the next is read. */
#ifndef CM_RUNTIME_CLI_RELAY_INPUT_H
#define CM_RUNTIME_CLI_RELAY_INPUT_H

#include <stdbool.h>
#include <stddef.h>

struct cm_relay_input {
	/* nothing more is read: it has ended, or the command takes no more */
	bool is_over;
	/* read from the caller, not yet taken by the command */
	size_t len;
	size_t at;
	char chunk[65536];
};

void cm_relay_input_init(struct cm_relay_input *in);
/* There is some to be written before more is read. */
bool cm_relay_input_is_full(const struct cm_relay_input *in);
/* Where stdin is readable and it is not full. false: it has ended. */
bool cm_relay_input_read(struct cm_relay_input *in);
/* To the command, which reads from fd. false: it does not any more. */
bool cm_relay_input_write(struct cm_relay_input *in, int fd);

#endif
