/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cli/relay_input.h"

#include <errno.h>
#include <unistd.h>

void cm_relay_input_init(struct cm_relay_input *in)
{
	in->is_over = false;
	in->len = in->at = 0;
}

bool cm_relay_input_is_full(const struct cm_relay_input *in)
{
	return in->at < in->len;
}

bool cm_relay_input_read(struct cm_relay_input *in)
{
	ssize_t n = read(STDIN_FILENO, in->chunk, sizeof(in->chunk));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	in->at = 0;
	in->len = n > 0 ? (size_t)n : 0;
	in->is_over = n <= 0;
	return !in->is_over;
}

bool cm_relay_input_write(struct cm_relay_input *in, int fd)
{
	ssize_t n = write(fd, in->chunk + in->at, in->len - in->at);

	if (n > 0)
		in->at += (size_t)n;
	else if (n < 0 && errno != EAGAIN && errno != EINTR) {
		in->len = in->at = 0;
		in->is_over = true;
	}
	return !in->is_over;
}
