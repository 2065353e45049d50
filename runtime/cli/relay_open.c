/* SPDX-License-Identifier: Apache-2.0 */
/* The pipes between a command and its caller. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "runtime/base/fd.h"
#include "runtime/cli/relay.h"

/* By its number, which is the kernel's (admin-guide/devices), whatever the node is called. */
static bool is_null(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3);
}

bool cm_relay_has_stdin(void)
{
	return fcntl(STDIN_FILENO, F_GETFD) >= 0 && !is_null(STDIN_FILENO);
}

int cm_relay_open(struct cm_relay *relay, bool wants_tty, bool with_stdin, bool counts_output,
		  struct cm_error *err)
{
	int r = CM_OK;

	memset(relay, 0, sizeof(*relay));
	relay->output_max = UINT64_MAX;
	relay->in_fd = relay->out_fd = relay->err_fd = relay->pty_fd = -1;
	relay->far[0] = relay->far[1] = relay->far[2] = -1;
	relay->wants_tty = wants_tty;
	cm_buf_init(&relay->out, CM_RELAY_CAPTURE_MAX);
	cm_buf_init(&relay->err, CM_RELAY_CAPTURE_MAX);
	if (wants_tty)
		return CM_OK;
	if (with_stdin && cm_relay_has_stdin())
		r = cm_jail_pipe(&relay->in_fd, &relay->far[0], true, err);
	if (r == CM_OK && (counts_output || !is_null(STDOUT_FILENO)))
		r = cm_jail_pipe(&relay->out_fd, &relay->far[1], false, err);
	if (r == CM_OK && (counts_output || !is_null(STDERR_FILENO)))
		r = cm_jail_pipe(&relay->err_fd, &relay->far[2], false, err);
	return r;
}

void cm_relay_close(struct cm_relay *relay)
{
	cm_fd_close(&relay->in_fd);
	cm_fd_close(&relay->out_fd);
	cm_fd_close(&relay->err_fd);
	cm_fd_close(&relay->pty_fd);
	for (int i = 0; i < 3; i++)
		cm_fd_close(&relay->far[i]);
	cm_buf_clear(&relay->out);
	cm_buf_clear(&relay->err);
}
