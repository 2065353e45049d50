/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for changes in a directory of the store. */
#ifndef CM_RUNTIME_STORE_WATCH_H
#define CM_RUNTIME_STORE_WATCH_H

/*
 * Readable when a file in the directory was made, renamed, written to or removed, or the directory
 * was, since it was made or last drained. fd or -errno; there are few of them to be had, and none
 * on some file systems, so the caller can do without.
 */
int cm_store_watch(int dir_fd);
void cm_store_watch_drain(int watch_fd);

#endif
