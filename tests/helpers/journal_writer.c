/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Journals and events without a keeper, in a session's state directory.
 *
 *	journal_writer STATE write ID MAX END   stdin is the command's stdout, descriptor 3 its stderr
 *	                                        where that is open; END: "ended" leaves a result, "died"
 *	                                        none
 *	journal_writer STATE remove ID
 *	journal_writer STATE event SESSION TYPE ID N   N events
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/num.h"
#include "runtime/store/events.h"
#include "runtime/store/journal.h"

#define TEXT "/w\0printer\0--all\0"
#define TAKE_MAX 65536U

/* U+009B and U+202E: a terminal obeys the one, and turns text round at the other */
static const char obeyed[] = { '\xc2', '\x9b', '3', '1', 'm', ' ', '\xe2', '\x80', '\xae', '\0' };

static _Noreturn void fail(const char *what, const struct cm_error *err)
{
	(void)fprintf(stderr, "journal_writer: %s: %s\n", what, err ? err->msg : strerror(errno));
	exit(1);
}

static uint64_t id_of(const char *text)
{
	struct cm_error err = CM_ERROR_INIT;
	uint64_t id = 0;

	if (cm_exec_id_parse(text, &id, &err) != CM_OK)
		fail("id", &err);
	return id;
}

static uint64_t number_of(const char *text)
{
	struct cm_error err = CM_ERROR_INIT;
	uint64_t n = 0;

	if (cm_parse_u64(text, "number", 0, UINT32_MAX, &n, &err) != CM_OK)
		fail("number", &err);
	return n;
}

static void take_streams(struct cm_journal *j)
{
	struct pollfd p[] = {
		{ .fd = STDIN_FILENO, .events = POLLIN },
		{ .fd = fcntl(3, F_GETFD) < 0 ? -1 : 3, .events = POLLIN },
	};

	for (size_t i = 0; i < CM_ARRAY_SIZE(p); i++) {
		if (p[i].fd >= 0 && fcntl(p[i].fd, F_SETFL, O_NONBLOCK) < 0)
			fail("O_NONBLOCK", NULL);
	}
	while (p[0].fd >= 0 || p[1].fd >= 0) {
		if (poll(p, CM_ARRAY_SIZE(p), -1) < 0)
			fail("poll", NULL);
		for (size_t i = 0; i < CM_ARRAY_SIZE(p); i++) {
			ssize_t n = -EAGAIN;

			if (p[i].fd >= 0 && p[i].revents)
				n = cm_journal_take(j, (enum cm_journal_stream)i, p[i].fd,
						    TAKE_MAX);
			if (n <= 0 && n != -EAGAIN)
				p[i].fd = -1;
		}
	}
}

static void write_journal(int dir_fd, char **argv)
{
	const struct cm_journal_request request = {
		.exec_id = id_of(argv[3]),
		.max_bytes = number_of(argv[4]),
		.n_args = 2,
		.text_len = sizeof(TEXT) - 1,
		.started_ms = cm_clock_real_ms(),
	};
	const struct cm_journal_result result = { .kind = 1, .ended_ms = cm_clock_real_ms() };
	struct cm_error err = CM_ERROR_INIT;
	struct cm_journal j;

	/* a limit on the size of files is a disk that is full */
	(void)signal(SIGXFSZ, SIG_IGN);
	if (cm_journal_create(dir_fd, &request, TEXT, &j, &err) != CM_OK)
		fail("create", &err);
	take_streams(&j);
	if (strcmp(argv[5], "ended") == 0 && cm_journal_finish(&j, &result) < 0)
		fail("finish", NULL);
	cm_journal_close(&j);
}

static void write_events(int dir_fd, char **argv)
{
	struct cm_event_log log = { .dir_fd = dir_fd, .session = argv[3] };
	uint64_t exec_id = id_of(argv[5]);
	uint64_t n = number_of(argv[6]);

	for (uint64_t i = 0; i < n;) {
		struct cm_event e;

		cm_event_begin(&e, &log, argv[4], exec_id);
		cm_jw_kuint(&e.w, "i", i);
		cm_jw_kstring(&e.w, "text", obeyed);
		cm_event_end(&e);
		/* another one writes without a pause */
		i += log.dropped == 0;
		if (log.dropped > 1000)
			fail("events are dropped", NULL);
	}
}

int main(int argc, char **argv)
{
	CM_AUTO_FD int dir_fd = -1;

	if (argc < 4)
		return 2;
	dir_fd = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		fail(argv[1], NULL);
	if (strcmp(argv[2], "write") == 0 && argc == 6)
		write_journal(dir_fd, argv);
	else if (strcmp(argv[2], "remove") == 0 && argc == 4)
		return cm_journal_remove(dir_fd, id_of(argv[3])) == 0 ? 0 : 1;
	else if (strcmp(argv[2], "event") == 0 && argc == 7)
		write_events(dir_fd, argv);
	else
		return 2;
	return 0;
}
