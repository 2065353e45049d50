/* SPDX-License-Identifier: Apache-2.0 */
/* What goes into a command, and what comes out of it. */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "tests/conformance/provider/suite.h"

#define MIB (1024UL * 1024)
#define PIECE 65536

/* A file of 8 MiB in which each byte is its offset, of 256. */
#define MAKE_PATTERN                                                                               \
	"i=0; while [ $i -lt 256 ]; do printf \"\\\\$(printf %o $i)\"; i=$((i+1)); done > p; "     \
	"i=0; while [ $i -lt 15 ]; do cat p p > q; mv q p; i=$((i+1)); done; "

static bool is_pattern(const struct cm_buf *buf, size_t len)
{
	if (buf->len != len)
		return false;
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)buf->data[i] != (i & 255))
			return false;
	}
	return true;
}

static void binary_output(struct suite *t)
{
	struct outcome o;

	suite_sh(t, "cd /tmp && " MAKE_PATTERN "cat p >&2 & cat p; wait; rm p", &o);
	/* what is in the background begins when the file is there */
	outcome_clear(&o);
	suite_sh(t, "cd /tmp && { " MAKE_PATTERN "} && { cat p >&2 & cat p; wait; rm p; }", &o);
	CHECK_EXIT(t, &o, 0);
	CHECK(t, is_pattern(&o.out, 8 * MIB), "stdout: %zu bytes", o.out.len);
	CHECK(t, is_pattern(&o.errs, 8 * MIB), "stderr: %zu bytes", o.errs.len);
	outcome_clear(&o);
}

/* Written piece by piece, and what comes is taken in between: as a relay does it. */
static void feed(struct suite *t, struct cm_exec *e, const char *bytes, size_t len,
		 struct outcome *o)
{
	struct cm_call call = suite_call(SUITE_MS);
	CM_AUTO_FD int always = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	struct pollfd fd = { .fd = always, .events = POLLIN };
	struct cm_wake wake = { &fd, 1 };
	bool is_open = true;
	size_t at = 0;

	for (;;) {
		struct cm_exec_event event;

		o->r = cm_exec_next(e, is_open ? &wake : NULL, &call, &event, &o->err);
		if (o->r < 0)
			return;
		if (event.kind == CM_EXEC_HAS_OUTPUT && event.stream == 1)
			cm_buf_append(&o->out, event.bytes, event.len);
		if (event.kind == CM_EXEC_HAS_ENDED) {
			o->end = event.end;
			return;
		}
		if (event.kind != CM_EXEC_WOKEN)
			continue;
		CHECK(t, (fd.revents & POLLIN) != 0, "woken, and nothing says by what");
		o->r = cm_exec_input(e, bytes + at, len - at < PIECE ? len - at : PIECE, &call,
				     &o->err);
		if (o->r < 0)
			return;
		is_open = at < len;
		at += len - at < PIECE ? len - at : PIECE;
	}
}

static void stdin_bytes(struct suite *t)
{
	const char *const argv[] = { "cat", NULL };
	const struct cm_exec_request request = { .argv = suite_v(argv), .has_input = true };
	struct cm_call call = suite_call(SUITE_MS);
	CM_AUTO_FREE char *bytes = cm_malloc(8 * MIB);
	struct cm_exec *e = NULL;
	struct outcome o;

	for (size_t i = 0; i < 8 * MIB; i++)
		bytes[i] = (char)(i & 255);
	outcome_init(&o);
	o.r = cm_exec_start(t->s, &request, &call, &e, &o.err);
	if (o.r == CM_OK)
		feed(t, e, bytes, 8 * MIB, &o);
	CHECK_EXIT(t, &o, 0);
	CHECK(t, is_pattern(&o.out, 8 * MIB), "%zu bytes came back", o.out.len);
	outcome_clear(&o);
	cm_exec_release(e);
}

/* Written in one go: what comes back meanwhile must not keep it. */
static void stdin_at_once(struct suite *t)
{
	const char *const argv[] = { "cat", NULL };
	const struct cm_exec_request request = { .argv = suite_v(argv), .has_input = true };
	struct cm_call call = suite_call(SUITE_MS);
	CM_AUTO_FREE char *bytes = cm_malloc(MIB);
	struct cm_exec *e = NULL;
	struct outcome o;

	for (size_t i = 0; i < MIB; i++)
		bytes[i] = (char)(i & 255);
	outcome_init(&o);
	o.r = cm_exec_start(t->s, &request, &call, &e, &o.err);
	if (o.r == CM_OK)
		o.r = cm_exec_input(e, bytes, MIB, &call, &o.err);
	if (o.r == CM_OK)
		o.r = cm_exec_input(e, NULL, 0, &call, &o.err);
	if (o.r == CM_OK)
		suite_follow(e, SUITE_MS, &o);
	CHECK_EXIT(t, &o, 0);
	CHECK(t, is_pattern(&o.out, MIB), "%zu bytes came back", o.out.len);
	outcome_clear(&o);
	cm_exec_release(e);
}

static void no_input(struct suite *t)
{
	const char *const argv[] = { "cat", NULL };
	int64_t since = suite_now();
	struct outcome o;

	suite_run(t, t->s, &(const struct cm_exec_request){ .argv = suite_v(argv) }, &o);
	CHECK_EXIT(t, &o, 0);
	CHECK(t, o.out.len == 0, "it read something");
	CHECK(t, suite_now() - since < SUITE_PATIENCE * 5000, "it waited");
	outcome_clear(&o);
}

static void input_after_end(struct suite *t)
{
	const char *const argv[] = { "true", NULL };
	const struct cm_exec_request request = { .argv = suite_v(argv), .has_input = true };
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_exec *e = NULL;
	struct outcome o;
	int r;

	outcome_init(&o);
	o.r = cm_exec_start(t->s, &request, &call, &e, &o.err);
	if (o.r == CM_OK)
		suite_follow(e, SUITE_MS, &o);
	CHECK_EXIT(t, &o, 0);
	if (e) {
		r = cm_exec_input(e, "x", 1, &call, &err);
		CHECK_CODE(t, r, err, CM_E_NOT_FOUND, "input after the end");
	}
	outcome_clear(&o);
	cm_exec_release(e);
}

const struct test suite_streams[] = {
	{ "8 MiB of all bytes on both streams", 0, binary_output },
	{ "8 MiB of all bytes through cat", CM_CAP_STDIN, stdin_bytes },
	{ "1 MiB written in one go", CM_CAP_STDIN, stdin_at_once },
	{ "without input there is nothing to read", 0, no_input },
	{ "input after the end", CM_CAP_STDIN, input_after_end },
	{ NULL, 0, NULL },
};
