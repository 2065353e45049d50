/* SPDX-License-Identifier: Apache-2.0 */
/* Command line -> layer. Pure. */
#ifndef CM_RUNTIME_SPEC_SPEC_FLAGS_H
#define CM_RUNTIME_SPEC_SPEC_FLAGS_H

#include <stdbool.h>

#include "runtime/spec/layer.h"

/*
 * argv holds what follows the command's name. Reading stops at "--" or at the first word that is
 * not an option; the rest becomes ret->argv. The layer is added to, and cleared by the caller
 * also after an error.
 */
int cm_flags_parse(int argc, char *const *argv, struct cm_layer *ret, struct cm_error *err);
/*
 * What --failure-exit says, in a command line that may be wrong elsewhere; -1 when it does not say
 * or says nonsense. Asked when cm_flags_parse failed.
 */
int cm_flags_failure_exit(int argc, char *const *argv);
/*
 * The options that say where the result goes (--json, --result), of a command line that may be
 * wrong elsewhere; in its order, added to ret as cm_flags_parse would. Out of memory there are none.
 */
void cm_flags_outputs(int argc, char *const *argv, struct cm_layer *ret);
/* What --help and -h ask for, if an option before the command does. */
bool cm_flags_wants_help(int argc, char *const *argv);

/*
 * The last --provider before the command, in a command line that may be wrong elsewhere; NULL: there is
 * none, or it has no value. takes_session: the first word that is no option is a session, and options may
 * follow it. Borrowed from argv.
 */
const char *cm_flags_provider(int argc, char *const *argv, bool takes_session);

/* Fills err for an option that is not ours: another tool's word, or the nearest of ours. */
int cm_flags_unknown(const char *option, struct cm_error *err);

#endif
