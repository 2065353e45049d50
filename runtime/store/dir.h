/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a directory; linked by the keeper. */
#ifndef CM_RUNTIME_STORE_DIR_H
#define CM_RUNTIME_STORE_DIR_H

#include <stdbool.h>

/* false ends the reading */
typedef bool (*cm_store_entry_fn)(int dir_fd, const char *name, void *data);
/* Call fn for each entry of the directory but "." and "..". 0 or -errno. */
int cm_store_each_in(int dir_fd, cm_store_entry_fn fn, void *data);

#endif
