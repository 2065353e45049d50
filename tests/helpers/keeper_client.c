/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of a keeper that asks for what casemate itself never does.
 *
 *	keeper_client SOCKET ID WHAT
 *
 * limits	more time limits than its loop has timers
 * flood	hundreds of ends against large requests, both at once
 * version	a client of the next protocol version, which then stops it
 * and what the tables of the other files have.
 */
#include "tests/helpers/keeper_client.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/fd.h"

#define N_LIMITED 100
/* more records of ends than a socket holds, and more large requests than that */
#define N_WAITING 200
#define N_CLIENTS 8
#define N_LARGE_EACH 2
#define LARGE (60 * 1024)

_Noreturn void kc_fail(const char *what, const struct cm_error *err)
{
	(void)fprintf(stderr, "keeper_client: %s: %s\n", what, err ? err->msg : strerror(errno));
	exit(1);
}

void kc_hello(struct cm_jail *jail, char **argv)
{
	struct cm_error err = CM_ERROR_INIT;

	cm_jail_init(jail);
	if (cm_jail_connect(jail, argv[1], argv[2], cm_clock_mono_ms() + KC_DEADLINE_MS, &err) < 0)
		kc_fail("cannot connect", &err);
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
		kc_fail("cannot ask for a command", &err);
}

bool kc_take(struct cm_jail *jail, uint16_t type, int n)
{
	int64_t deadline = cm_clock_mono_ms() + KC_DEADLINE_MS;
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

	kc_hello(&jail, argv);
	for (int i = 0; i < N_LIMITED; i++)
		ask(&jail, command, "A=1", -1, 1000);
	if (!kc_take(&jail, CM_REC_END, N_LIMITED))
		kc_fail("the commands do not end", NULL);
	return 0;
}

/*
 * While the keeper is stopped, init gets more to tell than its socket holds, and the keeper more to
 * pass on than that. If each then waited for the other to read, nothing would ever go on.
 */
static int flood(char **argv)
{
	static char env[LARGE];
	static char cat[] = "/bin/cat";
	static char true_[] = "/bin/true";
	char *const wait_command[] = { cat, NULL };
	char *const large_command[] = { true_, NULL };
	const struct timespec second = { .tv_sec = 1 };
	struct cm_jail waiting;
	struct cm_jail large[N_CLIENTS];
	int gate[2];

	if (pipe(gate) < 0)
		kc_fail("pipe", NULL);
	(void)memset(env, 'x', sizeof(env) - 1);
	(void)memcpy(env, "X=", 2);
	kc_hello(&waiting, argv);
	for (int i = 0; i < N_CLIENTS; i++)
		kc_hello(&large[i], argv);
	for (int i = 0; i < N_WAITING; i++)
		ask(&waiting, wait_command, "A=1", gate[0], 0);
	if (!kc_take(&waiting, CM_REC_STARTED, N_WAITING))
		kc_fail("the commands do not start", NULL);
	if (kill(waiting.up.keeper_pid, SIGSTOP) < 0)
		kc_fail("kill", NULL);
	(void)close(gate[1]);
	(void)nanosleep(&second, NULL);
	for (int i = 0; i < N_CLIENTS * N_LARGE_EACH; i++)
		ask(&large[i % N_CLIENTS], large_command, env, -1, 0);
	(void)kill(waiting.up.keeper_pid, SIGCONT);
	if (!kc_take(&waiting, CM_REC_END, N_WAITING))
		kc_fail("the commands do not end", NULL);
	for (int i = 0; i < N_CLIENTS; i++) {
		if (!kc_take(&large[i], CM_REC_END, N_LARGE_EACH))
			kc_fail("large requests are not carried out", NULL);
	}
	return 0;
}

static void ask_as(int sock, uint16_t type, uint16_t answer, uint32_t version, const char *id)
{
	struct cm_rec rec = { .type = type, .id = type, .len = (uint32_t)strlen(id) };
	struct cm_error why = CM_ERROR_INIT;
	struct cm_msg msg;

	if (version != 0)
		rec.body.hello.version = version;
	cm_msg_init(&msg);
	if (cm_proto_send(sock, &rec, id, NULL, 0) < 0)
		kc_fail("cannot send", NULL);
	if (answer == 0)
		return;
	if (cm_proto_recv(sock, &msg) != 1 || msg.rec.type != answer || msg.rec.id != type) {
		(void)fprintf(stderr, "keeper_client: request %u: not answer %u, but %u\n", type,
			      answer, msg.rec.type);
		exit(1);
	}
	if (answer == CM_REC_REFUSED) {
		cm_proto_error_of(&msg, &why);
		(void)printf("%s\n%s\n", why.msg, why.hint);
	}
	cm_msg_clear(&msg);
}

int kc_connect(char **argv)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", argv[1]);
	if (sock < 0 || connect(sock, (struct sockaddr *)&address, sizeof(address)) < 0)
		kc_fail("cannot connect", NULL);
	return sock;
}

static int version(char **argv)
{
	static const uint16_t unknown[] = { CM_REC_EXEC,	CM_REC_LIST,  CM_REC_ATTACH,
					    CM_REC_CLOSE_INPUT, CM_REC_USAGE, CM_REC_SIGNAL };
	int sock = kc_connect(argv);

	ask_as(sock, CM_REC_HELLO, CM_REC_REFUSED, CM_PROTO_VERSION + 1, argv[2]);
	ask_as(sock, CM_REC_INFO, CM_REC_INFO, 0, "");
	for (size_t i = 0; i < CM_ARRAY_SIZE(unknown); i++)
		ask_as(sock, unknown[i], CM_REC_REFUSED, 0, "");
	ask_as(sock, CM_REC_KILL, 0, 0, "");
	ask_as(sock, CM_REC_INFO, CM_REC_INFO, 0, "");
	ask_as(sock, CM_REC_STOP, CM_REC_STOPPED, 0, "");
	return 0;
}

static const struct kc_mode modes[] = {
	{ "limits", limits },
	{ "flood", flood },
	{ "version", version },
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	const struct kc_mode *const tables[] = { modes, kc_bad_modes, kc_many_modes };

	for (size_t t = 0; argc == 4 && t < CM_ARRAY_SIZE(tables); t++) {
		for (const struct kc_mode *m = tables[t]; m->name; m++) {
			if (strcmp(argv[3], m->name) == 0)
				return m->run(argv);
		}
	}
	(void)fprintf(stderr, "usage: keeper_client SOCKET ID WHAT\n");
	return 2;
}
