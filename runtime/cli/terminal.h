/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's terminal: raw while a command has one of its own, restored whatever happens. */
#ifndef CM_RUNTIME_CLI_TERMINAL_H
#define CM_RUNTIME_CLI_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>

/* stdin and stdout are terminals, and this is not a job in the background of one */
bool cm_terminal_is_there(void);
/* Another job has the terminal: to read it or to change its modes would stop this process. */
bool cm_terminal_is_background(void);
/*
 * Where it is now, against *is_background, which says where it was: restores its modes when it went
 * there; true when it is back, and its modes can be set again.
 */
bool cm_terminal_follow(bool *is_background);
/* Of stdout, or of stdin; 0 and 0 when there is none. */
void cm_terminal_size(uint16_t *ret_rows, uint16_t *ret_cols);
/* Puts stdin into raw mode and remembers how it was; restored at exit too. In the background neither
 * is done: the modes are those of whoever has the terminal. */
void cm_terminal_raw(void);
void cm_terminal_restore(void);

#endif
