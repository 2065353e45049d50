/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to files, told. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "tests/conformance/provider/suite.h"

#define TOP "/tmp/watched"

/* What is done, each once what was done before has been told: no pause is too short for it. */
enum step {
	NONE,
	MAKE,
	WRITE,
	MAKE_DIRECTORY,
	MAKE_BELOW,
	RENAME,
	REMOVE,
	GIVE_UP
};
static const char *const commands[] = {
	[MAKE] = "cd " TOP "/w; echo x >one",
	[WRITE] = "cd " TOP "/w; echo y >>one",
	[MAKE_DIRECTORY] = "mkdir " TOP "/w/sub",
	/* a watch of it has to come, too */
	[MAKE_BELOW] = "sleep 1.5; echo z >" TOP "/w/sub/two",
	[RENAME] = "cd " TOP "/w; mv one three",
	[REMOVE] = "rm " TOP "/w/three",
};

struct seen {
	struct suite *t;
	enum step step;
	int cancel_fd;
};

static bool is_path(const char *path, const char *want)
{
	return path && strcmp(path, want) == 0;
}

/* What follows, once this is told; NONE: it is no news. */
static enum step follows(enum step step, const struct cm_watch_event *event)
{
	bool is_made = event->kind == CM_WATCH_CREATED;
	bool is_written = event->kind == CM_WATCH_MODIFIED;
	bool is_removed = event->kind == CM_WATCH_REMOVED;
	/* where the two names are not told together, one goes and one comes */
	bool is_renamed = event->kind == CM_WATCH_RENAMED || is_removed;

	if (step == NONE && event->kind == CM_WATCH_READY)
		return MAKE;
	if (step == MAKE && is_made && is_path(event->path, "one"))
		return WRITE;
	if (step == WRITE && is_written && is_path(event->path, "one"))
		return MAKE_DIRECTORY;
	if (step == MAKE_DIRECTORY && is_made && is_path(event->path, "sub"))
		return MAKE_BELOW;
	if (step == MAKE_BELOW && (is_made || is_written) && is_path(event->path, "sub/two"))
		return RENAME;
	if (step == RENAME && is_renamed && is_path(event->path, "one"))
		return REMOVE;
	if (step == REMOVE && is_removed && is_path(event->path, "three"))
		return GIVE_UP;
	return NONE;
}

static int on_event(void *data, const struct cm_watch_event *event)
{
	struct seen *seen = data;
	enum step next = follows(seen->step, event);

	if (next == NONE)
		return 0;
	seen->step = next;
	if (next == GIVE_UP)
		return write(seen->cancel_fd, "x", 1) == 1 ? 0 : -EIO;
	suite_sh_is(seen->t, seen->t->s, commands[next], "");
	return 0;
}

static int no_event(void *data, const struct cm_watch_event *event)
{
	(void)data;
	(void)event;
	return 0;
}

static void watches(struct suite *t)
{
	struct cm_call call = suite_call(SUITE_PATIENCE * 20000);
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
	CHECK(t, seen.step == GIVE_UP, "not told: %s",
	      seen.step == NONE	     ? "that it stands"
	      : seen.step == GIVE_UP ? "nothing"
				     : commands[seen.step]);
	(void)close(pair[0]);
	(void)close(pair[1]);
	suite_sh_is(t, t->s, "echo on", "on\n");
}

static void watch_nothing(struct suite *t)
{
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	int r = cm_session_watch(t->s, TOP "/not-there", no_event, NULL, &call, &err);

	CHECK_CODE(t, r, err, CM_E_NOT_FOUND, "a watch of what is not there");
}

const struct test suite_watch[] = {
	{ "what is made, written, renamed and removed, also in what is new", CM_CAP_WATCH,
	  watches },
	{ "what is not there", CM_CAP_WATCH, watch_nothing },
	{ NULL, 0, NULL },
};
