/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cli/signal_names.h"

#include <signal.h>
#include <strings.h>

#include "runtime/base/fd.h"
#include "runtime/base/num.h"

/* the last one of the kernel's; those from 32 on have no names of their own */
#define LAST_SIGNAL 64

static const struct {
	const char *name;
	int sig;
} names[] = {
	{ "HUP", SIGHUP },   { "INT", SIGINT },	      { "QUIT", SIGQUIT }, { "ILL", SIGILL },
	{ "TRAP", SIGTRAP }, { "ABRT", SIGABRT },     { "BUS", SIGBUS },   { "FPE", SIGFPE },
	{ "KILL", SIGKILL }, { "USR1", SIGUSR1 },     { "SEGV", SIGSEGV }, { "USR2", SIGUSR2 },
	{ "PIPE", SIGPIPE }, { "ALRM", SIGALRM },     { "TERM", SIGTERM }, { "STKFLT", SIGSTKFLT },
	{ "CHLD", SIGCHLD }, { "CONT", SIGCONT },     { "STOP", SIGSTOP }, { "TSTP", SIGTSTP },
	{ "TTIN", SIGTTIN }, { "TTOU", SIGTTOU },     { "URG", SIGURG },   { "XCPU", SIGXCPU },
	{ "XFSZ", SIGXFSZ }, { "VTALRM", SIGVTALRM }, { "PROF", SIGPROF }, { "WINCH", SIGWINCH },
	{ "IO", SIGIO },     { "PWR", SIGPWR },	      { "SYS", SIGSYS },
};

int cm_signal_parse(const char *text, int *ret, struct cm_error *err)
{
	const char *name = strncasecmp(text, "SIG", 3) == 0 ? text + 3 : text;
	uint64_t number;

	for (size_t i = 0; i < CM_ARRAY_SIZE(names); i++) {
		if (strcasecmp(names[i].name, name) == 0) {
			*ret = names[i].sig;
			return CM_OK;
		}
	}
	if (cm_parse_u64(text, "signal", 1, LAST_SIGNAL, &number, NULL) == CM_OK) {
		*ret = (int)number;
		return CM_OK;
	}
	(void)cm_error_set(err, CM_E_INVALID, 0, "'%.100s' is no signal", text);
	cm_error_hint(err,
		      "a name as 'kill -l' has them (TERM, INT, HUP), or a number from 1 to %d",
		      LAST_SIGNAL);
	return CM_E_INVALID;
}

const char *cm_signal_name(int sig)
{
	for (size_t i = 0; i < CM_ARRAY_SIZE(names); i++) {
		if (names[i].sig == sig)
			return names[i].name;
	}
	return NULL;
}
