/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's terminal. */
#include "runtime/cli/terminal.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static struct termios saved;
static bool is_raw;

bool cm_terminal_is_there(void)
{
	return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && !cm_terminal_is_background();
}

bool cm_terminal_is_background(void)
{
	/* fails for what is no terminal, or one that has no jobs of this session */
	pid_t foreground = tcgetpgrp(STDIN_FILENO);

	return foreground >= 0 && foreground != getpgrp();
}

void cm_terminal_size(uint16_t *ret_rows, uint16_t *ret_cols)
{
	struct winsize size = { 0 };

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0)
		(void)ioctl(STDIN_FILENO, TIOCGWINSZ, &size);
	*ret_rows = size.ws_row;
	*ret_cols = size.ws_col;
}

void cm_terminal_restore(void)
{
	if (!is_raw)
		return;
	is_raw = false;
	if (cm_terminal_is_background())
		return;
	(void)tcsetattr(STDIN_FILENO, TCSADRAIN, &saved);
}

void cm_terminal_raw(void)
{
	static bool is_registered;
	struct termios raw;

	if (is_raw || cm_terminal_is_background() || tcgetattr(STDIN_FILENO, &saved) < 0)
		return;
	if (!is_registered)
		is_registered = atexit(cm_terminal_restore) == 0;
	raw = saved;
	cfmakeraw(&raw);
	if (tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0)
		is_raw = true;
}

bool cm_terminal_follow(bool *is_background)
{
	bool was_background = *is_background;

	*is_background = cm_terminal_is_background();
	if (!was_background && *is_background)
		cm_terminal_restore();
	return was_background && !*is_background;
}
