/* SPDX-License-Identifier: Apache-2.0 */
/* Commands as the platform takes them: shell text in JSON. No system calls. */
#ifndef CM_PROVIDERS_PLATFORM_COMMAND_H
#define CM_PROVIDERS_PLATFORM_COMMAND_H

#include "providers/provider.h"
#include "runtime/base/json_write.h"

/* Appends the words as shell text: a shell becomes that command. Any byte but NUL. */
void cm_platform_command_text(struct cm_buf *out, char *const *argv);
/*
 * The members "command", "cwd" and "env" of the object that is open. session_env: "NAME=value", below
 * those of the request; cwd: where the session's commands start, NULL: as the sandbox has it.
 */
int cm_platform_command_write(struct cm_json_writer *w, const struct cm_exec_request *request,
			      const struct cm_strv *session_env, const char *cwd,
			      struct cm_error *err);
/* An object of them, NAME to value. */
void cm_platform_env_write(struct cm_json_writer *w, const struct cm_strv *env);
/* "TERM"; NULL: the platform has no such signal. */
const char *cm_platform_signal_name(int sig);

#endif
