/* SPDX-License-Identifier: Apache-2.0 */
/* A terminal in the jail's own devpts. */
#include "isolation/keeper/pty.h"

#include <asm/ioctls.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "runtime/base/fd.h"

int cm_pty_open(uint16_t rows, uint16_t cols, int *ret_master, int *ret_slave, struct cm_error *err)
{
	CM_AUTO_FD int master = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	CM_AUTO_FD int slave = -1;
	struct winsize size = { .ws_row = rows, .ws_col = cols };
	int unlock = 0;

	if (master < 0 || ioctl(master, TIOCSPTLCK, &unlock) < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot open a terminal inside");
	/* by the master, not by its name (Linux 4.13) */
	slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot open the terminal's other end");
	if (rows != 0 && cols != 0 && ioctl(master, TIOCSWINSZ, &size) < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot set the terminal's size");
	*ret_master = cm_fd_take(&master);
	*ret_slave = cm_fd_take(&slave);
	return CM_OK;
}
