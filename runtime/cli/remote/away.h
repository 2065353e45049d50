/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions that are elsewhere: what the commands of casemate-remote share. It links the command line's own
 * objects but for those commands that know sessions of this host, which it has again over the vtable.
 *
 * INT, TERM, HUP and QUIT do not end this process: they cancel the call that runs, so that what it made
 * is taken away again. A struct cm_away belongs to one thread.
 */
#ifndef CM_RUNTIME_CLI_REMOTE_AWAY_H
#define CM_RUNTIME_CLI_REMOTE_AWAY_H

#include "providers/provider.h"
#include "runtime/cli/cli.h"

/* So long taking away what was made may take, when the caller has given up. */
#define CM_AWAY_CLEANUP_MS 30000
/* behind all that a command may print: nothing of it is asked for */
#define CM_AWAY_BEHIND_ALL (UINT64_C(1) << 60)

struct cm_away {
	struct cm_cli *cli;
	struct cm_provider *provider;
	struct cm_session *session;
	/* what every operation is given: no deadline, and cancelled by a signal */
	struct cm_call call;
	/* readable once a signal has come that is relayed; -1: signals are not watched */
	int signal_fd;
	/* gets phases; may be NULL */
	void (*phase)(void *data, const char *name, uint64_t duration_us);
	void *data;
};

/* The provider that was chosen; signals are watched from now on. After a failure close is right, too. */
int cm_away_open(struct cm_away *away, struct cm_cli *cli, struct cm_error *err);
/* And a session that exists. */
int cm_away_attach(struct cm_away *away, struct cm_cli *cli, const char *id, struct cm_error *err);
/* Started where it does not run. */
int cm_away_attach_running(struct cm_away *away, struct cm_cli *cli, const char *id,
			   struct cm_error *err);
void cm_away_close(struct cm_away *away);
/* A call that is not cancelled by a signal, for taking away. */
struct cm_call cm_away_cleanup_call(void);
/* The signal that cancelled a call; 0: none. */
int cm_away_signal(const struct cm_away *away);
/* Prints the error; the exit status: 128 and its number where a signal gave it up, else the usual one. */
int cm_away_fail(const struct cm_away *away, const struct cm_error *err);

/* Of the provider that was chosen. */
const char *cm_away_provider_name(void);

/*
 * A command that runs or ran, relayed: its output to standard output and error, what is read to it.
 */
struct cm_away_relay {
	struct cm_away *away;
	struct cm_exec *exec;
	bool wants_tty;
	/* standard input goes to it */
	bool has_input;
	/* output is not printed but kept, for --json */
	bool is_captured;
	/* signals go to the command; else one ends the wait, and the command goes on */
	bool relays_signals;
	struct cm_buf out;
	struct cm_buf err;
	/* UINT64_MAX: not limited; of both streams */
	uint64_t output_max;
	uint64_t output_seen;
	bool is_over_output;
	/* the first of INT, TERM, HUP, QUIT; 0: none */
	int signal;
	int lost_fd;
	int lost_errno;
	struct cm_exec_end end;
};
/* Until its end, or until a signal ended the wait (CM_E_CANCELLED, `signal` says which). */
int cm_away_relay_run(struct cm_away_relay *relay, struct cm_error *err);
void cm_away_relay_clear(struct cm_away_relay *relay);
/* The exit status that an end stands for; prints what is to be said about it. */
int cm_away_exit_of(const struct cm_away *away, const struct cm_exec_end *end);
/* The same of one whose end is not known (CM_EXEC_LOST); *err is what was said. */
int cm_away_lost(const struct cm_away *away, const struct cm_exec_end *end, struct cm_error *err);

#endif
