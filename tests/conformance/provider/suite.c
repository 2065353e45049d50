/* SPDX-License-Identifier: Apache-2.0 */
/* What all tests of the suite stand on. */
#include "tests/conformance/provider/suite.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/base/clock.h"

#define OUTPUT_MAX (256UL * 1024 * 1024)

bool suite_check(struct suite *t, bool holds, const char *file, int line, const char *fmt, ...)
{
	char text[2048];
	va_list ap;

	if (holds)
		return true;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	for (char *p = text; *p; p++) {
		if ((unsigned char)*p < ' ' || (unsigned char)*p > '~')
			*p = '?';
	}
	(void)printf("# %s:%d: %s\n", strrchr(file, '/') ? strrchr(file, '/') + 1 : file, line,
		     text);
	t->has_failed = true;
	return false;
}

bool suite_check_ok(struct suite *t, int r, const struct cm_error *err, const char *file, int line,
		    const char *what)
{
	return suite_check(t, r == CM_OK, file, line, "%s: %s: %s", what, cm_error_name(r),
			   err->msg);
}

bool suite_check_code(struct suite *t, int r, const struct cm_error *err, int want,
		      const char *file, int line, const char *what)
{
	return suite_check(t, r == want && err->code == r && err->msg[0] != '\0', file, line,
			   "%s: wanted %s, got %s (%s: %s)", what, cm_error_name(want),
			   cm_error_name(r), cm_error_name(err->code), err->msg);
}

struct cm_call suite_call(int ms)
{
	return (struct cm_call){ .deadline_ms = cm_clock_mono_ms() + ms, .cancel_fd = -1 };
}

int64_t suite_now(void)
{
	return cm_clock_mono_ms();
}

void suite_sleep(int ms)
{
	const struct timespec pause = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

	(void)nanosleep(&pause, NULL);
}

void suite_untell(struct suite *t)
{
	suite_sh_is(t, t->s, "rm -f /tmp/told", "");
}

void suite_tell(struct suite *t)
{
	suite_sh_is(t, t->s, ": >/tmp/told", "");
}

/* --- mistakes of ours ---------------------------------------------------------------------- */

static char bug[CM_ERROR_MSG_SIZE];

void suite_note_bug(int code, const char *why)
{
	if (code == CM_E_BUG && bug[0] == '\0')
		(void)snprintf(bug, sizeof(bug), "%s", why && why[0] ? why : "nobody says why");
}

const char *suite_take_bug(void)
{
	static char taken[sizeof(bug)];

	memcpy(taken, bug, sizeof(taken));
	bug[0] = '\0';
	return taken[0] != '\0' ? taken : NULL;
}

/*
 * In place of cm_error_set wherever another file calls it (the linker's --wrap): also an error that its
 * caller does not look at is seen.
 */
int __wrap_cm_error_set(struct cm_error *err, int code, int sys_errno, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
int __wrap_cm_error_set(struct cm_error *err, int code, int sys_errno, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	code = cm_error_vset(err, code, sys_errno, fmt, ap);
	va_end(ap);
	suite_note_bug(code, err ? err->msg : NULL);
	return code;
}

/* --- sessions ------------------------------------------------------------------------------ */

void suite_name(struct suite *t, char buf[64])
{
	(void)snprintf(buf, 64, "suite-%s-%u", t->tag, ++t->n_names);
}

void suite_spec(const struct suite *t, const char *id, struct cm_spec *ret)
{
	cm_spec_init(ret);
	ret->session_id = cm_strdup(id);
	/* what it has anyway: a network that it cannot have is not what these tests are about */
	if ((t->caps & CM_CAP_NETWORK_NONE) == 0)
		ret->network = CM_NETWORK_INTERNET;
	ret->workspace_kind = CM_WORKSPACE_NONE;
}

struct cm_session *suite_create_of(struct suite *t, struct cm_spec *spec, const char *what)
{
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_session *s = NULL;
	int r = cm_session_create(t->p, spec, &call, &s, &err);

	cm_spec_clear(spec);
	return CHECK_OK(t, r, err, what) ? s : NULL;
}

static struct cm_session *create(struct suite *t, const char *id, enum cm_user user)
{
	struct cm_spec spec;

	suite_spec(t, id, &spec);
	spec.user = user;
	return suite_create_of(t, &spec, "a session is made");
}

struct cm_session *suite_create(struct suite *t, const char *id)
{
	return create(t, id, CM_USER_USER);
}

struct cm_session *suite_create_root(struct suite *t, const char *id)
{
	return create(t, id, CM_USER_ROOT);
}

void suite_end(struct suite *t, struct cm_session *s)
{
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	int r;

	if (!s)
		return;
	r = cm_session_destroy(s, &call, &err);
	CHECK_OK(t, r, err, "a session is destroyed");
	cm_session_release(s);
}

/* --- commands ------------------------------------------------------------------------------ */

void outcome_init(struct outcome *o)
{
	memset(o, 0, sizeof(*o));
	cm_buf_init(&o->out, OUTPUT_MAX);
	cm_buf_init(&o->errs, OUTPUT_MAX);
}

void outcome_clear(struct outcome *o)
{
	cm_buf_clear(&o->out);
	cm_buf_clear(&o->errs);
}

bool outcome_printed(const struct outcome *o, const char *out)
{
	return o->r == CM_OK && o->out.len == strlen(out) &&
	       memcmp(o->out.data ? o->out.data : "", out, o->out.len) == 0;
}

static void take_output(struct outcome *o, const struct cm_exec_event *event)
{
	if (event->len == 0)
		o->wrong = "output without a byte";
	if (event->stream == 1)
		cm_buf_append(&o->out, event->bytes, event->len);
	else if (event->stream == 2)
		cm_buf_append(&o->errs, event->bytes, event->len);
	else
		o->wrong = "output of no stream";
}

void suite_follow(struct cm_exec *e, int ms, struct outcome *o)
{
	struct cm_call call = suite_call(ms);
	struct cm_exec_event event;
	bool is_first = true;

	for (;;) {
		o->r = cm_exec_next(e, NULL, &call, &event, &o->err);
		suite_note_bug(o->r, o->err.msg);
		if (o->r < 0)
			return;
		if (is_first != (event.kind == CM_EXEC_HAS_STARTED) && o->name[0] == '\0')
			o->wrong = "the first event is not that it has started";
		is_first = false;
		if (event.kind == CM_EXEC_HAS_STARTED)
			(void)snprintf(o->name, sizeof(o->name), "%s", e->name);
		else if (event.kind == CM_EXEC_HAS_OUTPUT)
			take_output(o, &event);
		else if (event.kind == CM_EXEC_WOKEN)
			o->wrong = "woken by nothing";
		if (event.kind == CM_EXEC_HAS_ENDED)
			break;
	}
	o->end = event.end;
}

void suite_run(struct suite *t, struct cm_session *s, const struct cm_exec_request *request,
	       struct outcome *o)
{
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_exec *e = NULL;

	(void)t;
	outcome_init(o);
	o->r = cm_exec_start(s, request, &call, &e, &o->err);
	suite_note_bug(o->r, o->err.msg);
	if (o->r < 0)
		return;
	suite_follow(e, SUITE_MS, o);
	cm_exec_release(e);
}

void suite_sh(struct suite *t, const char *text, struct outcome *o)
{
	const char *const argv[] = { "sh", "-c", text, NULL };
	const struct cm_exec_request request = { .argv = suite_v(argv) };

	suite_run(t, t->s, &request, o);
}

bool suite_sh_is(struct suite *t, struct cm_session *s, const char *text, const char *prints)
{
	const char *const argv[] = { "sh", "-c", text, NULL };
	const struct cm_exec_request request = { .argv = suite_v(argv) };
	struct outcome o;
	bool holds;

	suite_run(t, s, &request, &o);
	holds = CHECK_EXIT(t, &o, 0) && CHECK_PRINTED(t, &o, prints);
	outcome_clear(&o);
	return holds;
}

/* --- files --------------------------------------------------------------------------------- */

struct text {
	const char *at;
	size_t left;
};

static ssize_t fill(void *data, void *buf, size_t size)
{
	struct text *text = data;
	size_t n = text->left < size ? text->left : size;

	memcpy(buf, text->at, n);
	text->at += n;
	text->left -= n;
	return (ssize_t)n;
}

int suite_write(struct suite *t, const char *path, const char *text, uint32_t flags, uint32_t mode,
		struct cm_error *err)
{
	struct text from = { text, strlen(text) };
	const struct cm_write_request request = {
		.flags = flags, .mode = mode, .fill = fill, .data = &from, .len = -1
	};
	struct cm_call call = suite_call(SUITE_MS);

	return cm_session_write(t->s, path, &request, &call, err);
}

int suite_take(void *data, const void *bytes, size_t len)
{
	cm_buf_append(data, bytes, len);
	return 0;
}

int suite_read(struct suite *t, const char *path, struct cm_buf *out, struct cm_error *err)
{
	const struct cm_read_request request = { .length = UINT64_MAX,
						 .take = suite_take,
						 .data = out };
	struct cm_call call = suite_call(SUITE_MS);

	return cm_session_read(t->s, path, &request, &call, err);
}
