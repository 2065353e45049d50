/* SPDX-License-Identifier: Apache-2.0 */
/* Shared between background.c (start, attach), background_exec.c (what comes of one), background_list.c. */
#ifndef CM_PROVIDERS_REMOTE_BACKGROUND_INTERNAL_H
#define CM_PROVIDERS_REMOTE_BACKGROUND_INTERNAL_H

#include "providers/remote/background.h"
#include "providers/remote/shell.h"

/* Scripts; their arguments are said where they stand. */
extern const char cm_background_start_script[];
extern const char cm_background_supervisor[];
extern const char cm_background_runner[];
extern const char cm_background_timer[];
extern const char cm_background_show_script[];
extern const char cm_background_follow_script[];
extern const char cm_background_input_script[];
extern const char cm_background_eof_script[];
extern const char cm_background_signal_script[];
extern const char cm_background_list_script[];

/* A command that is followed. */
struct cm_background;
/* In memory alone; *ret is the caller's. number: "7" */
int cm_background_new(struct cm_session *s, const char *number, bool is_root, int64_t pid,
		      const uint64_t offsets[2], bool follows, struct cm_background **ret,
		      struct cm_error *err);
struct cm_exec *cm_background_exec(struct cm_background *b);
/* Looks at it, so that one that is not there is CM_E_NOT_FOUND. */
int cm_background_look(struct cm_background *b, const struct cm_call *call, struct cm_error *err);

/* "r7": *ret_number within name. False: it is no name of a command. */
bool cm_background_name(const char *name, const char **ret_number, bool *ret_is_root);
/* How it ended, by the words of /end; kind 0: it runs. False: they are none. */
bool cm_background_end(const char *kind, const char *code, const char *ended, const char *started,
		       struct cm_exec_end *ret, int64_t *ret_ended_ms, int64_t *ret_started_ms);
/* What the verdict of a script means. Without one: CM_E_REMOTE. */
int cm_background_error(const struct cm_shell_end *end, const char *what, struct cm_error *err);

#endif
