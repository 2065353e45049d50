/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detached commands of a session, whose output is kept in the session: for providers that have no such
 * thing. They outlive the client, its connection and this host.
 *
 * In the session, one directory a command, of mode 0700; N counts up and is never used again:
 *
 *	$HOME/.casemate/exec/N/cmd	NUL-terminated arguments
 *	                      /cwd	where it began
 *	                      /started	milliseconds since 1970
 *	                      /pid	of the command, which leads a process group
 *	                      /supervisor	pid and start time of the shell that waits for it
 *	                      /stdout /stderr	what it printed, up to CM_BACKGROUND_OUTPUT_MAX of each
 *	                      /stdout.dropped /stderr.dropped	how many bytes came after that
 *	                      /input	a fifo, while it runs, where it has an input
 *	                      /alive	a fifo that the supervisor holds open: its end is to be waited for
 *	                      /end	KIND CODE ENDED, when it is over: "exit 0 1790000000000"
 *
 * A command is called N, or rN where root runs it. One without an end whose supervisor is gone was
 * lost: its session was stopped, or died. All of it belongs to the session's user, who can write what
 * he likes into it: nothing but numbers and bytes are believed.
 *
 * It takes sh, setsid and coreutils in the session, of GNU or busybox; CM_E_UNSUPPORTED names what is
 * missing. A shell cannot tell a command that a signal ended from one that exits with 128 + its number:
 * such an end is taken for a signal's. busybox's shell ignores SIGQUIT, and so does what it starts.
 */
#ifndef CM_PROVIDERS_REMOTE_BACKGROUND_H
#define CM_PROVIDERS_REMOTE_BACKGROUND_H

#include "providers/provider.h"

#define CM_BACKGROUND_OUTPUT_MAX (64UL * 1024 * 1024)

/*
 * As the operations of struct cm_provider_ops. Of what was started, output is followed from its
 * beginning, once events are asked for beyond CM_EXEC_HAS_STARTED. CM_E_UNSUPPORTED with wants_tty.
 */
int cm_background_start(struct cm_session *s, const struct cm_exec_request *request,
			const struct cm_call *call, struct cm_exec **ret, struct cm_error *err);
/* Without `follows` a command that runs ends as CM_EXEC_LOST, after what it has printed. */
int cm_background_attach(struct cm_session *s, const char *name, const uint64_t offsets[2],
			 bool follows, const struct cm_call *call, struct cm_exec **ret,
			 struct cm_error *err);
/* Those of the user, then root's. */
int cm_background_list(struct cm_session *s, const struct cm_call *call,
		       int (*each)(void *data, const struct cm_exec_info *info), void *data,
		       struct cm_error *err);

#endif
