/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command in a live session through the library, beside the same command from the same process:
 *
 *	library ROUNDS SESSION
 *
 * Each round does both, in turn. Prints the minimum and the median of each, and the minimum as a multiple
 * of fork+exec's. What the caller keeps open is the provider and the session.
 */
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "providers/local/vtable.h"
#include "providers/provider.h"
#include "runtime/spec/config.h"
#include "tests/bench/timing.h"

#define PROGRAM "/usr/bin/true"

extern char **environ;

static char *const command[] = { (char *)PROGRAM, NULL };

_Noreturn static void fail(const char *what, const struct cm_error *err)
{
	(void)fprintf(stderr, "library: cannot %s: %s\n", what, err ? err->msg : "");
	exit(1);
}

static double run_beside(void)
{
	double start = timing_now_ms();
	int status = 0;
	pid_t pid;

	if (posix_spawn(&pid, PROGRAM, NULL, NULL, command, environ) != 0)
		fail("run " PROGRAM, NULL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (status != 0)
		fail("run " PROGRAM, NULL);
	return timing_now_ms() - start;
}

static double run_inside(struct cm_session *s)
{
	const struct cm_exec_request request = { .argv = command };
	const struct cm_call call = { .deadline_ms = INT64_MAX, .cancel_fd = -1 };
	struct cm_exec_event event = { .kind = 0 };
	struct cm_error err = CM_ERROR_INIT;
	struct cm_exec *e = NULL;
	double start = timing_now_ms();

	if (cm_exec_start(s, &request, &call, &e, &err) < 0)
		fail("start a command", &err);
	while (event.kind != CM_EXEC_HAS_ENDED) {
		if (cm_exec_next(e, NULL, &call, &event, &err) < 0)
			fail("follow a command", &err);
	}
	cm_exec_release(e);
	if (event.end.kind != CM_EXEC_EXITED || event.end.exit_code != 0)
		fail("run the command: it failed", NULL);
	return timing_now_ms() - start;
}

static void measure(struct cm_session *s, size_t rounds)
{
	struct timing_row rows[2] = { { "fork+exec", calloc(rounds, sizeof(double)) },
				      { "library", calloc(rounds, sizeof(double)) } };

	if (!rows[0].ms || !rows[1].ms)
		abort();
	for (size_t i = 0; i < rounds + WARM_UP; i++) {
		double beside = run_beside();
		double inside = run_inside(s);

		if (i < WARM_UP)
			continue;
		rows[0].ms[i - WARM_UP] = beside;
		rows[1].ms[i - WARM_UP] = inside;
	}
	timing_report(rows, 2, rounds);
	free(rows[0].ms);
	free(rows[1].ms);
}

int main(int argc, char **argv)
{
	const struct cm_call call = { .deadline_ms = INT64_MAX, .cancel_fd = -1 };
	struct cm_error err = CM_ERROR_INIT;
	struct cm_config config;
	struct cm_provider_config provider_config = { .config = &config };
	struct cm_provider *p = NULL;
	struct cm_session *s = NULL;
	size_t rounds = argc == 3 ? strtoul(argv[1], NULL, 10) : 0;

	if (rounds == 0) {
		(void)fprintf(stderr, "usage: library ROUNDS SESSION\n");
		return 2;
	}
	if (cm_config_init(&config, &err) < 0 ||
	    cm_provider_open(&cm_local_ops, &provider_config, &p, &err) < 0 ||
	    cm_session_attach(p, argv[2], &call, &s, &err) < 0)
		fail("reach the session", &err);
	measure(s, rounds);
	cm_session_release(s);
	cm_provider_close(p);
	cm_config_clear(&config);
	return 0;
}
