/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of a keeper that asks for what casemate itself never does.
 *
 *	keeper_client SOCKET ID limits  more time limits than its loop has timers
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "providers/local/jail.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"

#define DEADLINE_MS 30000
#define N_LIMITED 100

static _Noreturn void fail(const char *what, const struct cm_error *err)
{
	(void)fprintf(stderr, "keeper_client: %s: %s\n", what, err ? err->msg : strerror(errno));
	exit(1);
}

static void say_hello(struct cm_jail *jail, char **argv)
{
	struct cm_error err = CM_ERROR_INIT;

	cm_jail_init(jail);
	if (cm_jail_connect(jail, argv[1], argv[2], cm_clock_mono_ms() + DEADLINE_MS, &err) < 0)
		fail("cannot connect", &err);
}

static void ask(struct cm_jail *jail, char *const *argv, const char *env, int stdin_fd,
		uint64_t timeout_ms)
{
	char *const vars[] = { (char *)(uintptr_t)env, NULL };
	const struct cm_jail_command command = {
		.argv = argv,
		.env = vars,
		.cwd = "/",
		.stdio = { stdin_fd, -1, -1 },
		.timeout_ms = timeout_ms,
	};
	struct cm_error err = CM_ERROR_INIT;
	uint64_t id = 0;

	if (cm_jail_exec(jail, &command, &id, &err) < 0)
		fail("cannot ask for a command", &err);
}

/* Takes n records of that type, whatever comes between; false when they do not come. */
static bool take(struct cm_jail *jail, uint16_t type, int n)
{
	int64_t deadline = cm_clock_mono_ms() + DEADLINE_MS;
	struct cm_error why = CM_ERROR_INIT;
	struct cm_msg msg;

	cm_msg_init(&msg);
	while (n > 0) {
		struct pollfd p = { .fd = jail->sock, .events = POLLIN };
		int64_t left = deadline - cm_clock_mono_ms();

		if (left <= 0 || poll(&p, 1, (int)left) <= 0 ||
		    cm_proto_recv(jail->sock, &msg) != 1)
			break;
		if (msg.rec.type == CM_REC_REFUSED) {
			cm_proto_error_of(&msg, &why);
			(void)fprintf(stderr, "keeper_client: refused: %s\n", why.msg);
		}
		n -= msg.rec.type == type;
	}
	cm_msg_clear(&msg);
	return n == 0;
}

static int limits(char **argv)
{
	static char program[] = "/bin/sleep";
	static char seconds[] = "1000";
	char *const command[] = { program, seconds, NULL };
	struct cm_jail jail;

	say_hello(&jail, argv);
	for (int i = 0; i < N_LIMITED; i++)
		ask(&jail, command, "A=1", -1, 1000);
	if (!take(&jail, CM_REC_END, N_LIMITED))
		fail("the commands do not end", NULL);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[3], "limits") == 0)
		return limits(argv);
	(void)fprintf(stderr, "usage: keeper_client SOCKET ID limits\n");
	return 2;
}
