/* SPDX-License-Identifier: Apache-2.0 */
/* A command line with keys, and the configuration, as one spec. */
#ifndef CM_RUNTIME_CLI_REQUEST_H
#define CM_RUNTIME_CLI_REQUEST_H

#include "runtime/cli/cli.h"

/*
 * argv holds what follows the command's name. Files are read, the ceilings applied, notes printed;
 * cli takes over quiet, verbose and the exit status of failures, the last also when this fails.
 * *ret needs no initialisation and is the caller's on success only. ret_origins may be NULL; who
 * gives it wants to see values, and gets them as a start would have them.
 */
int cm_request_read(struct cm_cli *cli, int argc, char *const *argv, struct cm_spec *ret,
		    struct cm_origins *ret_origins, struct cm_error *err);

/*
 * The same of a command line "[OPTION...] ID [OPTION...] [--] [COMMAND...]", argv without the command's
 * name: the session is ID. *ret_id is borrowed from argv. Passwords among the options are overwritten,
 * as cm_cli_hide_passwords does.
 */
int cm_request_read_session(struct cm_cli *cli, int argc, char *const *argv, struct cm_spec *ret,
			    const char **ret_id, struct cm_error *err);

/* CM_E_INVALID: the line names another session than the one that its first word does. */
int cm_request_check_session(const struct cm_spec *spec, const char *id, struct cm_error *err);

/* Which options a command takes; ends with CM_KEY_COUNT. CM_E_INVALID for another that is asked for. */
int cm_request_check_keys(const struct cm_spec *spec, const enum cm_key *keys,
			  struct cm_error *err);

/*
 * Where the result of a command line goes that cm_request_read refused: ret's is_json and result,
 * as far as those options are right themselves. The caller clears ret.
 */
void cm_request_outputs(const struct cm_cli *cli, int argc, char *const *argv, struct cm_spec *ret);

/*
 * Overwrite the passwords in addresses among the options. Whoever lists processes sees arguments for as
 * long as this one lives; what cm_request_read took has copies.
 */
void cm_cli_hide_passwords(int argc, char **argv);

#endif
