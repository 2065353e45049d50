/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A provider whose session is a directory of this host: commands are run here, by posix_spawn, with an
 * environment of its own. What is shared by remote providers runs for real over it, under whatever shell
 * its PATH has. It can also lie, and lose its connection.
 */
#ifndef CM_TESTS_UNIT_FAKE_PROVIDER_H
#define CM_TESTS_UNIT_FAKE_PROVIDER_H

#include <stdbool.h>
#include <stddef.h>

#include "providers/provider.h"

/* What a command says in place of being run. */
struct fake_answer {
	const char *out;
	size_t out_len;
	const char *err;
	int exit_code;
};

struct fake_provider {
	struct cm_provider base;
	struct cm_session session;
	/* absolute, the session's home and working directory below it */
	char top[64];
	char home[80];
	char work[80];
	/* of commands; NULL: dash's, that is this host's own */
	char path[256];
	/* NULL: none; else taken in order, one for each command, until it has no more */
	const struct fake_answer *answers;
	size_t n_answers;
	/* after how many events of output a connection is lost once; 0: never */
	unsigned int lose_after;
	unsigned int n_started;
	/* all arguments of all commands, one a line, and all their environments */
	struct cm_buf seen_args;
	struct cm_buf seen_env;
	/* the networks that it was set to */
	enum cm_network networks[16];
	size_t n_networks;
};

extern const struct cm_provider_ops fake_provider_ops;

/* shell: "dash" or "busybox"; false: this host has it not. */
bool fake_provider_open(struct fake_provider *f, const char *shell);
void fake_provider_close(struct fake_provider *f);
/* As long as a test may take. */
struct cm_call fake_call(void);

#endif
