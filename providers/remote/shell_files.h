/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of a session by its own shell, with the signatures of the operations: for providers without an
 * interface for files. They are those of the session's user, and nothing is done that he may not.
 *
 * Names have any byte but NUL. GNU find is used where it is; else busybox's or another one with stat,
 * whose times are whole seconds. Content goes in by standard input where the provider has it
 * (CM_CAP_STDIN), else in pieces as arguments, by base64.
 *
 * Errors: CM_E_NOT_FOUND, CM_E_EXISTS (also: a directory that is not empty), CM_E_DENIED, CM_E_INVALID (a
 * directory where a file should be, or the other way round; what is neither), CM_E_LIMIT (the disk is
 * full), CM_E_SYS (the rest), and those of cm_shell_run.
 */
#ifndef CM_PROVIDERS_REMOTE_SHELL_FILES_H
#define CM_PROVIDERS_REMOTE_SHELL_FILES_H

#include "providers/provider.h"

/* Regular files alone. */
int cm_shell_read(struct cm_session *s, const char *path, const struct cm_read_request *request,
		  const struct cm_call *call, struct cm_error *err);
/*
 * A new file, and one with CM_WRITE_ATOMIC, is written beside its place and moved there when it is whole;
 * what is there already is written over, so that what is given up then leaves a part of it.
 */
int cm_shell_write(struct cm_session *s, const char *path, const struct cm_write_request *request,
		   const struct cm_call *call, struct cm_error *err);
/* What cannot be read below is CM_E_DENIED, after the rest was told. */
int cm_shell_list(struct cm_session *s, const char *path, uint32_t flags,
		  int (*each)(void *data, const struct cm_path_info *info), void *data,
		  const struct cm_call *call, struct cm_error *err);
int cm_shell_stat(struct cm_session *s, const char *path, uint32_t flags,
		  int (*each)(void *data, const struct cm_path_info *info), void *data,
		  const struct cm_call *call, struct cm_error *err);
/* mode UINT32_MAX: as usual */
int cm_shell_mkdir(struct cm_session *s, const char *path, uint32_t flags, uint32_t mode,
		   const struct cm_call *call, struct cm_error *err);
/* Onto a directory goes a directory alone, and that one has to be empty. */
int cm_shell_move(struct cm_session *s, const char *from, const char *to, uint32_t flags,
		  const struct cm_call *call, struct cm_error *err);
int cm_shell_remove(struct cm_session *s, const char *path, uint32_t flags,
		    const struct cm_call *call, struct cm_error *err);
/*
 * By inotifywait where the session has one (inotify-tools 3.22 or later). Else the tree is listed once a
 * second in the session, and sent when it is another one: changes in between are one, a file that was
 * renamed was removed and created, and a tree of more than CM_SHELL_WATCH_MAX entries is told as
 * CM_WATCH_OVERFLOW. Renames are told as CM_WATCH_RENAMED without a `to`, then CM_WATCH_CREATED.
 */
int cm_shell_watch(struct cm_session *s, const char *path,
		   int (*each)(void *data, const struct cm_watch_event *event), void *data,
		   const struct cm_call *call, struct cm_error *err);

#define CM_SHELL_WATCH_MAX 200000U

#endif
