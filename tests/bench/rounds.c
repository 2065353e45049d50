/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times commands against each other: rounds N [-p MS] NAME COMMAND... ::: NAME COMMAND... ::: ...
 *
 * Each round runs every command once, in turn, with nothing between but the pause, so that a change
 * of the machine's speed meets all of them. Prints for each the minimum and the median of the wall
 * time, and the minimum as a multiple of the first command's. A command that fails ends it.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/timing.h"

#define MAX_COMMANDS 16

extern char **environ;

struct command {
	const char *name;
	char **argv;
};

static double run_once(const struct command *command, posix_spawn_file_actions_t *actions)
{
	double start = timing_now_ms();
	int status = 0;
	pid_t pid;
	int r = posix_spawnp(&pid, command->argv[0], actions, NULL, command->argv, environ);

	if (r != 0) {
		(void)fprintf(stderr, "rounds: cannot run '%s': %s\n", command->argv[0],
			      strerror(r));
		exit(1);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		(void)fprintf(stderr, "rounds: '%s' failed (status %#x)\n", command->name,
			      (unsigned int)status);
		exit(1);
	}
	return timing_now_ms() - start;
}

static size_t parse(int argc, char **argv, struct command *commands)
{
	size_t n = 0;

	for (int i = 0; i < argc && n < MAX_COMMANDS; n++) {
		commands[n].name = argv[i++];
		commands[n].argv = argv + i;
		while (i < argc && strcmp(argv[i], ":::") != 0)
			i++;
		if (i < argc)
			argv[i++] = NULL;
		/* a name and no command */
		if (!commands[n].argv[0])
			return 0;
	}
	return n;
}

int main(int argc, char **argv)
{
	struct command commands[MAX_COMMANDS] = { { NULL, NULL } };
	struct timing_row rows[MAX_COMMANDS];
	posix_spawn_file_actions_t actions;
	size_t rounds;
	long pause_ms = 0;
	size_t n;
	int first = 2;

	if (argc < 4) {
		(void)fprintf(stderr, "usage: rounds N [-p MS] NAME COMMAND... [::: NAME ...]\n");
		return 2;
	}
	rounds = strtoul(argv[1], NULL, 10);
	if (strcmp(argv[2], "-p") == 0) {
		pause_ms = strtol(argv[3], NULL, 10);
		first = 4;
	}
	n = parse(argc - first, argv + first, commands);
	if (rounds == 0 || n == 0 || posix_spawn_file_actions_init(&actions) != 0 ||
	    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0) != 0)
		return 2;
	for (size_t i = 0; i < n; i++) {
		rows[i] = (struct timing_row){ commands[i].name, calloc(rounds, sizeof(double)) };
		if (!rows[i].ms)
			abort();
	}
	for (size_t round = 0; round < rounds + WARM_UP; round++) {
		for (size_t i = 0; i < n; i++) {
			double ms;

			if (pause_ms > 0)
				(void)usleep((useconds_t)pause_ms * 1000);
			ms = run_once(&commands[i], &actions);
			if (round >= WARM_UP)
				rows[i].ms[round - WARM_UP] = ms;
		}
	}
	timing_report(rows, n, rounds);
	return 0;
}
