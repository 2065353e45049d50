/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting a keeper without waiting for it: the starter goes on while the kernel loads the program,
 * which is a tenth of what a start takes.
 *
 * The child shares the starter's memory until it has executed, so what it reads is kept in the
 * launch, and lives until cm_launch_end. A launch belongs to one thread.
 */
#ifndef CM_PROVIDERS_LOCAL_LAUNCH_H
#define CM_PROVIDERS_LOCAL_LAUNCH_H

#include <sys/types.h>

#include "casemate/error.h"

struct cm_launch;

/*
 * The keeper with the socket as its descriptor 3. scope_id: the session for which casemate-scope is
 * asked first, or NULL; option: one argument for the keeper, or NULL; both are borrowed for the call
 * only. *ret_pid is the caller's to wait for, *ret the caller's to end.
 */
int cm_launch_keeper(int sock, const char *scope_id, const char *option, struct cm_launch **ret,
		     pid_t *ret_pid, struct cm_error *err);
/*
 * Waits until the program runs, or could not be executed, which is the error then (the child has
 * ended). Frees *launch and sets it to NULL; of NULL it is CM_OK.
 */
int cm_launch_end(struct cm_launch **launch, struct cm_error *err);

#endif
