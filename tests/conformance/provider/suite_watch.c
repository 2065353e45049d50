/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to files, told. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "tests/conformance/provider/suite.h"

#define TOP "/tmp/watched"

struct seen {
	struct suite *t;
	struct cm_exec *e;
	unsigned int n_ready;
	bool has_created;
	bool has_modified;
	bool has_removed;
	bool has_renamed;
	bool has_directory;
	bool has_below;
	int cancel_fd;
};

static bool is_path(const char *path, const char *want)
{
	return path && strcmp(path, want) == 0;
}

/* Once it stands a command of the same session makes things happen. */
static void begin(struct seen *seen)
{
	const char *const argv[] = {
		"sh", "-c",
		"cd " TOP "/w; echo x > one; sleep 0.3; echo y >> one; mkdir sub; "
		"sleep 1.5; echo z > sub/two; sleep 0.3; mv one three; sleep 0.3; "
		"rm three",
		NULL
	};
	const struct cm_exec_request request = { .argv = suite_v(argv) };
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	int r = cm_exec_start(seen->t->s, &request, &call, &seen->e, &err);

	CHECK_OK(seen->t, r, err, "a command while it is watched");
}

static int on_event(void *data, const struct cm_watch_event *event)
{
	struct seen *seen = data;
	bool is_removal = event->kind == CM_WATCH_REMOVED;

	if (event->kind == CM_WATCH_READY && seen->n_ready++ == 0)
		begin(seen);
	seen->has_created |= event->kind == CM_WATCH_CREATED && is_path(event->path, "one");
	seen->has_modified |= event->kind == CM_WATCH_MODIFIED && is_path(event->path, "one");
	seen->has_directory |= event->kind == CM_WATCH_CREATED && is_path(event->path, "sub");
	seen->has_below |= (event->kind == CM_WATCH_CREATED || event->kind == CM_WATCH_MODIFIED) &&
			   is_path(event->path, "sub/two");
	/* where the two names are not told together, one goes and one comes */
	seen->has_renamed |=
		(event->kind == CM_WATCH_RENAMED || is_removal) && is_path(event->path, "one");
	seen->has_removed |= is_removal && is_path(event->path, "three");
	/* all there is: its watcher gives up */
	if (seen->has_removed && write(seen->cancel_fd, "x", 1) != 1)
		return -EIO;
	return 0;
}

static void watches(struct suite *t)
{
	struct cm_call call = suite_call(20000);
	struct cm_error err = CM_ERROR_INIT;
	struct seen seen = { .t = t };
	int pair[2];
	int r;

	suite_sh_is(t, t->s, "rm -rf " TOP "/w; mkdir -p " TOP "/w", "");
	if (!CHECK(t, pipe2(pair, O_CLOEXEC) == 0, "a pipe"))
		return;
	call.cancel_fd = pair[0];
	seen.cancel_fd = pair[1];
	r = cm_session_watch(t->s, TOP "/w", on_event, &seen, &call, &err);
	CHECK_CODE(t, r, err, CM_E_CANCELLED, "a watch that is given up");
	CHECK(t, seen.n_ready > 0, "it never stood");
	CHECK(t, seen.has_created, "a file that was made was not told");
	CHECK(t, seen.has_modified, "a file that was written to was not told");
	CHECK(t, seen.has_directory, "a directory that was made was not told");
	CHECK(t, seen.has_below, "what was made in a new directory was not told");
	CHECK(t, seen.has_renamed, "a file that was renamed was not told");
	CHECK(t, seen.has_removed, "a file that was removed was not told");
	cm_exec_release(seen.e);
	(void)close(pair[0]);
	(void)close(pair[1]);
	suite_sh_is(t, t->s, "echo on", "on\n");
}

static void watch_nothing(struct suite *t)
{
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	struct seen seen = { .t = t, .n_ready = 1, .cancel_fd = -1 };
	int r = cm_session_watch(t->s, TOP "/not-there", on_event, &seen, &call, &err);

	CHECK_CODE(t, r, err, CM_E_NOT_FOUND, "a watch of what is not there");
}

const struct test suite_watch[] = {
	{ "what is made, written, renamed and removed, also in what is new", CM_CAP_WATCH,
	  watches },
	{ "what is not there", CM_CAP_WATCH, watch_nothing },
	{ NULL, 0, NULL },
};
