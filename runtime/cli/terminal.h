/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's terminal: raw while a command has one of its own, restored whatever happens. */
#ifndef CM_RUNTIME_CLI_TERMINAL_H
#define CM_RUNTIME_CLI_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>

/* stdin and stdout are terminals */
bool cm_terminal_is_there(void);
/* Of stdout, or of stdin; 0 and 0 when there is none. */
void cm_terminal_size(uint16_t *ret_rows, uint16_t *ret_cols);
/* Puts stdin into raw mode and remembers how it was; restored at exit too. */
void cm_terminal_raw(void);
void cm_terminal_restore(void);

#endif
