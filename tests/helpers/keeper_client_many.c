/* SPDX-License-Identifier: Apache-2.0 */
/*
 * More of everything than there is room for: refused in words, and the keeper sleeps afterwards.
 *
 * crowd	200 clients, and ten thousand that come when those are there
 * silent	clients that say nothing: dropped after their time, and not before
 * unread	a client that asks and never reads
 * commands	256 commands at once, and one more
 * watches	512 that follow a command, and one more
 * descriptors	a keeper that may open no more
 * journals	more journals than are kept, of every other command
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "isolation/plan/plan.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "tests/helpers/keeper_client.h"

#define N_CLIENTS 200
#define N_TRIED 10000
#define N_SILENT 150
#define N_WATCHES 512
#define N_UNREAD 20000
#define N_JOURNALED 400
#define SECOND_NS 1000000000L
/* of a keeper that has nothing to do, in a second */
#define IDLE_NS (SECOND_NS / 100)

static struct cm_jail clients[N_CLIENTS];

static void pause_ms(long ms)
{
	const struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	(void)nanosleep(&t, NULL);
}

/* Processor time of a process until now, in nanoseconds. */
static uint64_t cpu_ns(pid_t pid)
{
	char path[64];
	char text[128];

	(void)snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)pid);
	if (cm_read_file_at(AT_FDCWD, path, text, sizeof(text)) <= 0)
		kc_fail(path, NULL);
	return strtoull(text, NULL, 10);
}

static void check_idle(pid_t keeper, const char *when)
{
	uint64_t before;
	uint64_t used;

	pause_ms(300);
	before = cpu_ns(keeper);
	pause_ms(1000);
	used = cpu_ns(keeper) - before;
	if (used > IDLE_NS) {
		(void)fprintf(stderr,
			      "keeper_client: %s: the keeper was busy for %" PRIu64
			      " us of a second\n",
			      when, used / 1000);
		exit(1);
	}
}

static void list(struct cm_jail *jail, struct cm_buf *out)
{
	struct cm_error err = CM_ERROR_INIT;

	cm_buf_init(out, 1 << 20);
	if (cm_jail_list(jail, out, cm_clock_mono_ms() + KC_DEADLINE_MS, &err) < 0)
		kc_fail("cannot list", &err);
}

static void check_served(struct cm_jail *jail)
{
	CM_AUTO_BUF struct cm_buf out = { 0 };

	list(jail, &out);
}

/* --- clients ------------------------------------------------------------------------------- */

static int crowd(char **argv)
{
	pid_t keeper;
	int n_other = 0;

	for (int i = 0; i < N_CLIENTS; i++)
		kc_hello(&clients[i], argv);
	keeper = clients[0].up.keeper_pid;
	for (int i = 0; i < N_TRIED; i++) {
		struct cm_error err = CM_ERROR_INIT;
		struct cm_jail jail;
		int r;

		cm_jail_init(&jail);
		r = cm_jail_connect(&jail, argv[1], argv[2], cm_clock_mono_ms() + KC_DEADLINE_MS,
				    &err);
		if (r != CM_E_LIMIT || !strstr(err.msg, "has 200 clients already") ||
		    err.hint[0] == '\0') {
			(void)fprintf(stderr, "keeper_client: connection %d: %d '%s'\n", i, r,
				      err.msg);
			n_other++;
		}
		cm_fd_close(&jail.sock);
		if (n_other > 3)
			return 1;
	}
	if (n_other > 0)
		return 1;
	for (int i = 0; i < N_CLIENTS; i++)
		check_served(&clients[i]);
	check_idle(keeper, "with 200 clients");
	for (int i = 0; i < N_CLIENTS; i++)
		cm_fd_close(&clients[i].sock);
	check_idle(keeper, "when they are gone");
	kc_hello(&clients[0], argv);
	check_served(&clients[0]);
	return 0;
}

static unsigned int n_open(struct pollfd *p)
{
	unsigned int n = 0;

	(void)poll(p, N_SILENT, 0);
	for (int i = 0; i < N_SILENT; i++)
		n += p[i].revents == 0;
	return n;
}

static int silent(char **argv)
{
	struct pollfd p[N_SILENT];
	int64_t since = cm_clock_mono_ms();

	for (int i = 0; i < N_SILENT; i++)
		p[i] = (struct pollfd){ .fd = kc_connect(argv), .events = POLLIN };
	kc_hello(&clients[0], argv);
	pause_ms(1000);
	if (n_open(p) != N_SILENT)
		kc_fail("some are dropped at once", NULL);
	check_served(&clients[0]);
	while (n_open(p) > 0 && cm_clock_mono_ms() < since + KC_DEADLINE_MS)
		pause_ms(20);
	if (n_open(p) > 0)
		kc_fail("some are never dropped", NULL);
	if (cm_clock_mono_ms() < since + 4900)
		kc_fail("they have no five seconds", NULL);
	check_served(&clients[0]);
	check_idle(clients[0].up.keeper_pid, "when they are gone");
	return 0;
}

static int unread(char **argv)
{
	struct cm_rec rec = { .type = CM_REC_LIST, .id = 1 };
	struct cm_jail jail;
	bool is_dropped = false;

	kc_hello(&clients[0], argv);
	kc_hello(&jail, argv);
	for (int i = 0; i < N_UNREAD && !is_dropped; i++)
		is_dropped = cm_proto_send(jail.sock, &rec, NULL, NULL, 0) < 0;
	if (!is_dropped)
		kc_fail("it is waited for", NULL);
	check_served(&clients[0]);
	check_idle(clients[0].up.keeper_pid, "when it is gone");
	return 0;
}

/* --- commands ------------------------------------------------------------------------------ */

static uint64_t ask(struct cm_jail *jail, const char *seconds, uint32_t flags)
{
	static char program[] = "/bin/sleep";
	char *const argv[] = { program, (char *)(uintptr_t)seconds, NULL };
	char *const env[] = { NULL };
	const struct cm_jail_command command = {
		.argv = argv,
		.env = env,
		.cwd = "/",
		.flags = flags,
		.stdio = { -1, -1, -1 },
	};
	struct cm_error err = CM_ERROR_INIT;
	uint64_t id = 0;

	if (cm_jail_exec(jail, &command, &id, &err) < 0)
		kc_fail("cannot ask for a command", &err);
	return id;
}

/* The exec id of a command that was asked for; 0: it was refused with *why. */
static uint64_t started(struct cm_jail *jail, uint64_t id, struct cm_error *why)
{
	struct cm_error err = CM_ERROR_INIT;
	uint64_t exec_id = 0;
	struct cm_msg msg;

	cm_msg_init(&msg);
	if (cm_jail_next(jail, id, &msg, cm_clock_mono_ms() + KC_DEADLINE_MS, &err) < 0)
		kc_fail("no answer", &err);
	if (msg.rec.type == CM_REC_STARTED)
		exec_id = msg.rec.body.started.exec_id;
	else if (msg.rec.type == CM_REC_REFUSED)
		cm_proto_error_of(&msg, why);
	else
		kc_fail("another answer", NULL);
	cm_msg_clear(&msg);
	return exec_id;
}

static size_t count_running(struct cm_jail *jail)
{
	CM_AUTO_BUF struct cm_buf out = { 0 };
	const struct cm_rec_item *item;
	const char *text;
	size_t n = 0;
	size_t at = 0;

	list(jail, &out);
	while ((item = cm_jail_item(&out, &at, &text)) != NULL)
		n += item->state == CM_ITEM_RUNNING;
	return n;
}

static int commands(char **argv)
{
	/* detached ones, too: they have journals and pipes */
	static uint64_t ids[CM_MAX_EXECS];
	struct cm_error why = CM_ERROR_INIT;
	struct cm_jail *jail = &clients[0];

	kc_hello(jail, argv);
	for (size_t i = 0; i < CM_MAX_EXECS; i++) {
		ids[i] = ask(jail, "1000", i % 2 == 0 ? CM_EXECF_DETACH : 0);
		if (started(jail, ids[i], &why) == 0)
			kc_fail("a command is refused", &why);
	}
	if (count_running(jail) != CM_MAX_EXECS)
		kc_fail("not all are listed", NULL);
	for (uint32_t flags = 0; flags <= CM_EXECF_DETACH; flags += CM_EXECF_DETACH) {
		if (started(jail, ask(jail, "1000", flags), &why) != 0 || why.code != CM_E_LIMIT)
			kc_fail("one more is not refused", NULL);
		(void)printf("%s\n%s\n", why.msg, why.hint);
	}
	check_idle(jail->up.keeper_pid, "with all of them");
	(void)cm_jail_kill(jail, ids[5], 0);
	if (!kc_take(jail, CM_REC_END, 1))
		kc_fail("it does not end", NULL);
	pause_ms(300);
	if (started(jail, ask(jail, "1000", 0), &why) == 0)
		kc_fail("there is no room when one has ended", &why);
	return 0;
}

static int watches(char **argv)
{
	struct cm_error why = CM_ERROR_INIT;
	struct cm_jail *first = &clients[0];
	uint64_t id;
	uint64_t exec_id;
	uint64_t ignored;

	for (int i = 0; i < 5; i++)
		kc_hello(&clients[i], argv);
	id = ask(first, "1000", 0);
	exec_id = started(first, id, &why);
	for (int i = 0; i < N_WATCHES; i++) {
		if (cm_jail_attach(&clients[1 + i % 4], exec_id, &ignored, NULL,
				   cm_clock_mono_ms() + KC_DEADLINE_MS, &why) < 0)
			kc_fail("cannot follow", &why);
	}
	if (cm_jail_attach(&clients[1], exec_id, &ignored, NULL,
			   cm_clock_mono_ms() + KC_DEADLINE_MS, &why) != CM_E_LIMIT)
		kc_fail("one more is not refused", NULL);
	(void)printf("%s\n", why.msg);
	(void)cm_jail_kill(first, id, 0);
	for (int i = 1; i < 5; i++) {
		if (!kc_take(&clients[i], CM_REC_END, N_WATCHES / 4))
			kc_fail("who follows is not told of the end", NULL);
	}
	id = ask(first, "1000", 0);
	exec_id = started(first, id, &why);
	if (cm_jail_attach(&clients[1], exec_id, &ignored, NULL,
			   cm_clock_mono_ms() + KC_DEADLINE_MS, &why) < 0)
		kc_fail("cannot follow the next", &why);
	return 0;
}

/* --- descriptors --------------------------------------------------------------------------- */

static void limit_descriptors(pid_t pid, rlim_t n, rlim_t *ret_before)
{
	struct rlimit was;
	struct rlimit limit;

	if (prlimit(pid, RLIMIT_NOFILE, NULL, &was) < 0)
		kc_fail("prlimit", NULL);
	limit = (struct rlimit){ .rlim_cur = n, .rlim_max = was.rlim_max };
	if (prlimit(pid, RLIMIT_NOFILE, &limit, NULL) < 0)
		kc_fail("prlimit", NULL);
	*ret_before = was.rlim_cur;
}

static int descriptors(char **argv)
{
	struct cm_error why = CM_ERROR_INIT;
	struct cm_jail *jail = &clients[0];
	rlim_t before;
	rlim_t ignored;
	pid_t keeper;
	int waiting;

	kc_hello(jail, argv);
	keeper = jail->up.keeper_pid;
	/* nothing new, whatever it has */
	limit_descriptors(keeper, 3, &before);
	if (started(jail, ask(jail, "1000", CM_EXECF_DETACH), &why) != 0)
		kc_fail("a journal is made without descriptors", NULL);
	(void)printf("%s\n", why.msg);
	/* it stays in the queue */
	waiting = kc_connect(argv);
	check_idle(keeper, "without descriptors");
	limit_descriptors(keeper, before, &ignored);
	(void)close(waiting);
	if (started(jail, ask(jail, "1000", CM_EXECF_DETACH), &why) == 0)
		kc_fail("nor with them", &why);
	kc_hello(&clients[1], argv);
	check_served(&clients[1]);
	check_idle(keeper, "afterwards");
	return 0;
}

static int journals(char **argv)
{
	struct cm_jail *jail = &clients[0];

	kc_hello(jail, argv);
	for (int i = 0; i < N_JOURNALED; i++) {
		(void)ask(jail, "0", CM_EXECF_DETACH);
		if (!kc_take(jail, CM_REC_END, 1))
			kc_fail("it does not end", NULL);
		(void)ask(jail, "0", 0);
		if (!kc_take(jail, CM_REC_END, 1))
			kc_fail("it does not end", NULL);
	}
	return 0;
}

const struct kc_mode kc_many_modes[] = {
	{ "crowd", crowd },	  { "silent", silent },	  { "unread", unread },
	{ "commands", commands }, { "watches", watches }, { "descriptors", descriptors },
	{ "journals", journals }, { NULL, NULL },
};
