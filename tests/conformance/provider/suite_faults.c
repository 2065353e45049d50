/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A service that misbehaves. Whatever it does: no second sandbox is paid for, no command runs twice, what
 * came is complete or an error, nobody waits for ever, and no secret is in a message.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/fd.h"
#include "tests/conformance/provider/suite.h"

/* requests that make a sandbox, start a command, end a sandbox; as JSON has the regular expression */
#define CREATE_E2B "POST (/v2)?/sandboxes$"
#define CREATE_PLATFORM "POST .*/sandbox$"
#define EXEC_E2B "process.Process/Start"
#define EXEC_PLATFORM "^WS "
#define DELETE_E2B "DELETE /sandboxes/"
#define DELETE_PLATFORM "DELETE .*/sandbox/[^/]*$"
/* of one operation, with what is tried again in it */
#define OPERATION_MS (SUITE_PATIENCE * 12000)

struct bad {
	const char *what;
	const char *name;
	/* NULL: that service cannot be made to do it */
	const char *e2b;
	const char *platform;
	int times;
};

static bool has_bad(const struct suite *t, const struct bad *bad)
{
	return (is_e2b(t) ? bad->e2b : bad->platform) != NULL;
}

static void set(struct suite *t, const struct bad *bad, const char *e2b, const char *platform)
{
	const char *params = is_e2b(t) ? bad->e2b : bad->platform;
	const struct fault f = { e2b,	     platform, bad->name,
				 bad->times, 0,	       params && params[0] ? params : NULL };

	fault_set(t, &f);
}

/* A clean error: it has a message, and nobody's secret. */
static void is_clean(struct suite *t, int r, const struct cm_error *err, const char *what)
{
	CHECK(t, r < 0 && err->code == r && err->msg[0] != '\0', "%s: %s (%s)", what,
	      cm_error_name(r), err->msg);
	CHECK(t, r != CM_E_BUG, "%s: a bug: %s", what, err->msg);
	CHECK(t, !suite_has_secret(t, err->msg) && !suite_has_secret(t, err->hint),
	      "%s: a secret is told: %s (%s)", what, err->msg, err->hint);
}

static int create(struct suite *t, const char *id, int ms, struct cm_session **ret,
		  struct cm_error *err)
{
	struct cm_call call = suite_call(ms);
	struct cm_spec spec;
	int r;

	suite_spec(t, id, &spec);
	r = cm_session_create(t->p, &spec, &call, ret, err);
	cm_spec_clear(&spec);
	return r;
}

/* --- making a session ---------------------------------------------------------------------- */

static const struct bad of_create[] = {
	{ "503 once", "status", NULL, "\"code\": 503", 1 },
	{ "503, with Retry-After", "status", "\"code\": 503, \"headers\": {\"Retry-After\": \"1\"}",
	  "\"code\": 503, \"headers\": {\"Retry-After\": \"1\"}", 1 },
	{ "429, with Retry-After", "status", "\"code\": 429, \"headers\": {\"Retry-After\": \"1\"}",
	  "\"code\": 429, \"headers\": {\"Retry-After\": \"1\"}", 2 },
	{ "500 for ever", "status", "\"code\": 500", "\"code\": 500", -1 },
	{ "500, and it was made", "status", "\"code\": 500, \"carry\": true",
	  "\"code\": 500, \"carry\": true", 1 },
	{ "504, and it was made", "status", "\"code\": 504, \"carry\": true",
	  "\"code\": 504, \"carry\": true", 1 },
	{ "403", "status", "\"code\": 403", "\"code\": 403", -1 },
	{ "a reset before", "reset_before", "", "", 1 },
	{ "a reset after it was made", "reset_after", "", "", 1 },
	{ "an end after it was made", "cut_after", "", NULL, 1 },
	{ "an answer cut short", "short", NULL, "", 1 },
	{ "an answer that is reset", "reset_mid", "\"n\": 20", "\"bytes\": 20", 1 },
	{ "no HTTP", "garbage", "", "", 1 },
	{ "no JSON", "garbage_json", "", "", 1 },
	{ "JSON of another type", "garbage_json", "\"body\": \"[1, 2]\"", "\"body\": \"[1, 2]\"",
	  1 },
	{ "members of another type", "wrong_type", NULL, "", 1 },
	{ "HTML", "wrong_type", "", NULL, 1 },
	{ "64 MiB", "oversized", "", "", 1 },
	{ "64 MiB in chunks", "oversized", NULL, "\"mode\": \"chunked\"", 1 },
	{ "slow bytes", "slow", "\"rate\": 400", "\"delay\": 0, \"chunk\": 20, \"interval\": 0.02",
	  1 },
	{ "single bytes", "split", "", NULL, 1 },
	{ "single bytes", "chunked", NULL, "", 1 },
	{ "an end without a length", "eof_framing", "", NULL, 1 },
	{ "an end without a length", "no_length", NULL, "", 1 },
};

static void create_with(struct suite *t, const struct bad *bad)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_session *s = NULL;
	int before = n_sandboxes(t);
	int64_t since = suite_now();
	char name[64];
	int r;

	suite_name(t, name);
	set(t, bad, CREATE_E2B, CREATE_PLATFORM);
	r = create(t, name, OPERATION_MS, &s, &err);
	CHECK(t, suite_now() - since < OPERATION_MS + 3000, "%s: it took %lld ms", bad->what,
	      (long long)(suite_now() - since));
	if (suite_now() - since > 3000)
		(void)printf("# %s: %lld ms\n", bad->what, (long long)(suite_now() - since));
	fault_clear(t);
	CHECK(t, n_sandboxes(t) - before <= 1, "%s: %d sandboxes", bad->what,
	      n_sandboxes(t) - before);
	if (r < 0) {
		is_clean(t, r, &err, bad->what);
		CHECK(t, !s, "%s: there is a session nevertheless", bad->what);
		CHECK(t, n_sandboxes(t) == before, "%s: %d sandboxes are left (%s)", bad->what,
		      n_sandboxes(t) - before, err.msg);
		s = suite_create(t, name);
	}
	CHECK(t, n_sandboxes(t) - before == 1, "%s: %d sandboxes with one session", bad->what,
	      n_sandboxes(t) - before);
	if (s)
		suite_sh_is(t, s, "echo works", "works\n");
	suite_end(t, s);
	CHECK(t, n_sandboxes(t) == before, "%s: %d sandboxes are left in the end", bad->what,
	      n_sandboxes(t) - before);
}

static void creating(struct suite *t)
{
	for (size_t i = 0; i < CM_ARRAY_SIZE(of_create); i++) {
		if (has_bad(t, &of_create[i]))
			create_with(t, &of_create[i]);
	}
}

static void never_answers(struct suite *t)
{
	const struct bad bad = { "silence", "hang", "", "", -1 };
	struct cm_error err = CM_ERROR_INIT;
	struct cm_session *s = NULL;
	int before = n_sandboxes(t);
	int64_t since = suite_now();
	char name[64];
	int r;

	suite_name(t, name);
	set(t, &bad, CREATE_E2B, CREATE_PLATFORM);
	r = create(t, name, 1500, &s, &err);
	CHECK_CODE(t, r, err, CM_E_TIMEOUT, "silence");
	/* with a look for what it may have made all the same */
	CHECK(t, suite_now() - since < SUITE_PATIENCE * 20000, "it took %lld ms",
	      (long long)(suite_now() - since));
	fault_clear(t);
	CHECK(t, n_sandboxes(t) == before, "%d sandboxes are left", n_sandboxes(t) - before);
}

/* --- commands ------------------------------------------------------------------------------ */

static const struct bad of_exec[] = {
	{ "503 once", "status", "\"code\": 503", NULL, 1 },
	{ "429, with Retry-After", "status", "\"code\": 429, \"headers\": {\"Retry-After\": \"1\"}",
	  NULL, 1 },
	{ "503, and it was started", "status", "\"code\": 503, \"carry\": true", NULL, 1 },
	{ "a reset before", "reset_before", "", NULL, 1 },
	{ "a reset after it was started", "reset_after", "", NULL, 1 },
	{ "a reset in its output", "reset_mid", "\"n\": 150", NULL, 1 },
	{ "an end in its output", "cut_mid", "\"n\": 150", NULL, 1 },
	{ "no HTTP", "garbage", "", NULL, 1 },
	{ "HTML", "wrong_type", "", NULL, 1 },
	{ "single bytes", "split", "", NULL, 1 },
	{ "slow bytes", "slow", "\"rate\": 400", NULL, 1 },
	{ "no trailer", "no_trailer", "", NULL, 1 },
	{ "two trailers", "double_trailer", "", NULL, 1 },
	{ "a trailer with an error", "trailer_error", "", NULL, 1 },
	{ "a bad envelope", "bad_envelope", "", NULL, 1 },
	{ "no end", "no_end", "", NULL, 1 },
	{ "another beginning", "start_not_first", "", NULL, 1 },
	{ "other names of members", "snake", "", NULL, 1 },
	{ "refused", "ws_refuse", NULL, "\"code\": 503", 1 },
	{ "refused for good", "ws_refuse", NULL, "\"code\": 403", -1 },
	{ "a wrong accept", "ws_bad_accept", NULL, "", 1 },
	{ "another subprotocol", "ws_wrong_subprotocol", NULL, "", 1 },
	{ "no subprotocol", "ws_no_subprotocol", NULL, "", 1 },
	{ "an extension", "ws_extension", NULL, "", 1 },
	{ "single bytes", "ws_split", NULL, "", 1 },
	{ "frames with the handshake", "ws_early", NULL, "", 1 },
	{ "dropped before it was asked", "ws_drop_before_init", NULL, "", 1 },
	{ "dropped after it was asked", "ws_drop_after_init", NULL, "", 1 },
	{ "dropped in its output", "ws_drop_mid", NULL, "\"bytes\": 5", 1 },
	{ "a frame that is torn", "ws_drop_mid", NULL, "\"bytes\": 5, \"torn\": true", 1 },
	{ "no end", "ws_no_exit", NULL, "", 1 },
	{ "dropped before its end", "ws_drop_exit", NULL, "", 1 },
	{ "a masked frame", "ws_masked", NULL, "", 1 },
	{ "reserved bits", "ws_rsv", NULL, "", 1 },
	{ "no UTF-8", "ws_bad_utf8", NULL, "", 1 },
	{ "a huge frame", "ws_huge_frame", NULL, "", 1 },
	{ "fragments", "ws_fragment", NULL, "", 1 },
	{ "pings", "ws_ping", NULL, "", 1 },
	{ "what begins in the middle", "ws_continuation_first", NULL, "", 1 },
	{ "a long ping", "ws_control_long", NULL, "", 1 },
	{ "an unknown frame", "ws_opcode", NULL, "", 1 },
	{ "a bad end", "ws_bad_exit", NULL, "", 1 },
	{ "an end that is no number", "ws_bad_exit", NULL, "\"variant\": \"string\"", 1 },
	{ "unknown messages", "ws_unknown", NULL, "", 1 },
	{ "more after its end", "ws_after_exit", NULL, "", 1 },
	{ "no close", "ws_no_close", NULL, "", 1 },
};

/* How often it ran is known by the file. */
static void exec_with(struct suite *t, const struct bad *bad)
{
	const char *const argv[] = { "sh", "-c",
				     "echo ran >> /tmp/count; echo out; sleep 0.2; echo more",
				     NULL };
	const struct cm_exec_request request = { .argv = suite_v(argv) };
	struct cm_call call = suite_call(OPERATION_MS);
	int64_t since = suite_now();
	struct cm_exec *e = NULL;
	struct outcome o;

	suite_sh_is(t, t->s, "rm -f /tmp/count; : > /tmp/count", "");
	set(t, bad, EXEC_E2B, EXEC_PLATFORM);
	outcome_init(&o);
	o.r = cm_exec_start(t->s, &request, &call, &e, &o.err);
	if (o.r == CM_OK)
		suite_follow(e, OPERATION_MS, &o);
	CHECK(t, suite_now() - since < OPERATION_MS + 3000, "%s: it took %lld ms", bad->what,
	      (long long)(suite_now() - since));
	cm_exec_release(e);
	fault_clear(t);
	if (o.r < 0)
		is_clean(t, o.r, &o.err, bad->what);
	else if (o.end.kind == CM_EXEC_EXITED)
		CHECK(t, o.end.exit_code == 0 && outcome_printed(&o, "out\nmore\n"),
		      "%s: it ended with %d and printed '%s'", bad->what, o.end.exit_code,
		      o.out.data ? o.out.data : "");
	else
		CHECK(t, o.end.kind == CM_EXEC_LOST, "%s: kind %d", bad->what, o.end.kind);
	CHECK(t, !o.wrong, "%s: %s", bad->what, o.wrong);
	outcome_clear(&o);
	suite_sh(t, "sleep 0.4; n=$(wc -l < /tmp/count); [ $n -le 1 ] || echo ran $n times", &o);
	CHECK(t, outcome_printed(&o, ""), "%s: %s%s", bad->what, o.out.data ? o.out.data : "",
	      o.err.msg);
	outcome_clear(&o);
}

static void running(struct suite *t)
{
	for (size_t i = 0; i < CM_ARRAY_SIZE(of_exec); i++) {
		if (has_bad(t, &of_exec[i]))
			exec_with(t, &of_exec[i]);
	}
}

static void leases(struct suite *t)
{
	static const struct bad bad[] = {
		{ "an expired lease", "lease_expired", NULL, "", 1 },
		{ "a lease of what is gone", "lease_410", NULL, "", 1 },
		{ "503 for a lease", "status", NULL, "\"code\": 503", 1 },
	};
	struct outcome o;

	for (size_t i = 0; i < CM_ARRAY_SIZE(bad); i++) {
		if (!has_bad(t, &bad[i]))
			continue;
		set(t, &bad[i], NULL, "exec-lease|^WS ");
		suite_sh(t, "echo leased", &o);
		fault_clear(t);
		if (o.r < 0)
			is_clean(t, o.r, &o.err, bad[i].what);
		else
			CHECK_PRINTED(t, &o, "leased\n");
		outcome_clear(&o);
		suite_sh_is(t, t->s, "echo on", "on\n");
	}
}

/* --- files --------------------------------------------------------------------------------- */

static void files_with(struct suite *t, const struct bad *bad, const char *e2b,
		       const char *platform)
{
	CM_AUTO_BUF struct cm_buf got = { 0 };
	struct cm_error err = CM_ERROR_INIT;
	struct outcome o;
	int r;

	cm_buf_init(&got, 4UL * 1024 * 1024);
	suite_sh_is(t, t->s, "head -c 300000 /dev/zero | tr '\\000' x > /tmp/whole", "");
	set(t, bad, e2b, platform);
	r = suite_read(t, "/tmp/whole", &got, &err);
	fault_clear(t);
	if (r < 0)
		is_clean(t, r, &err, bad->what);
	else
		CHECK(t, got.len == 300000, "%s: %zu bytes of 300000", bad->what, got.len);
	set(t, bad, e2b, platform);
	err = (struct cm_error)CM_ERROR_INIT;
	r = suite_write(t, "/tmp/written", "all of it", CM_WRITE_ATOMIC, UINT32_MAX, &err);
	fault_clear(t);
	if (r < 0)
		is_clean(t, r, &err, bad->what);
	/* after an error it may be there, but never half */
	suite_sh(t, "cat /tmp/written 2>/dev/null; rm -f /tmp/written", &o);
	CHECK(t, outcome_printed(&o, "all of it") || (r < 0 && outcome_printed(&o, "")),
	      "%s: '%s' is there", bad->what, o.out.data ? o.out.data : "");
	outcome_clear(&o);
}

static void reading_and_writing(struct suite *t)
{
	static const struct bad bad[] = {
		{ "a reset in the middle", "reset_mid", "\"n\": 5000", NULL, 1 },
		{ "an end in the middle", "cut_mid", "\"n\": 5000", NULL, 1 },
		{ "a wrong length", "bad_length", "", NULL, 1 },
		{ "503", "status", "\"code\": 503", NULL, 1 },
		{ "dropped in the middle", "ws_drop_mid", NULL, "\"bytes\": 5000", 1 },
		{ "no end", "ws_no_exit", NULL, "", 1 },
	};

	for (size_t i = 0; i < CM_ARRAY_SIZE(bad); i++) {
		if (has_bad(t, &bad[i]))
			files_with(t, &bad[i], "/files", "^WS ");
	}
}

/* --- the end ------------------------------------------------------------------------------- */

static void destroy_with(struct suite *t, const struct bad *bad)
{
	struct cm_call call = suite_call(OPERATION_MS);
	struct cm_error err = CM_ERROR_INIT;
	int before = n_sandboxes(t);
	struct cm_session *s;
	char name[64];
	int r;

	suite_name(t, name);
	s = suite_create(t, name);
	if (!s)
		return;
	set(t, bad, DELETE_E2B, DELETE_PLATFORM);
	r = cm_session_destroy(s, &call, &err);
	fault_clear(t);
	if (r < 0)
		is_clean(t, r, &err, bad->what);
	else
		CHECK(t, n_sandboxes(t) == before, "%s: it is there still", bad->what);
	suite_end(t, s);
	CHECK(t, n_sandboxes(t) == before, "%s: %d are left", bad->what, n_sandboxes(t) - before);
}

static void destroying(struct suite *t)
{
	static const struct bad bad[] = {
		{ "503 once", "status", "\"code\": 503", "\"code\": 503", 1 },
		{ "a reset after it", "reset_after", "", "", 1 },
		{ "a reset before it", "reset_before", "", "", 1 },
		{ "500 for ever", "status", "\"code\": 500", "\"code\": 500", -1 },
	};

	for (size_t i = 0; i < CM_ARRAY_SIZE(bad); i++)
		destroy_with(t, &bad[i]);
}

static bool kill_sandbox(struct suite *t, struct cm_session *s)
{
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	CM_AUTO_FREE char *body = NULL;
	struct cm_session_info info;
	int r = cm_session_info(s, &call, &info, &err);

	if (!CHECK_OK(t, r, err, "info"))
		return false;
	body = cm_asprintf("{\"sandbox\": \"%s\"}", info.provider_id ? info.provider_id : "");
	CHECK(t, info.provider_id, "it has no id of the service's");
	cm_session_info_clear(&info);
	return CHECK(t, admin(t, "POST", "kill", body, NULL), "it is killed: %s", body);
}

/* By somebody else, or because its time was over. */
static void killed(struct suite *t)
{
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_session_info info;
	struct cm_session *s;
	struct outcome o;
	char name[64];
	int r;

	suite_name(t, name);
	s = suite_create(t, name);
	if (!s || !kill_sandbox(t, s)) {
		suite_end(t, s);
		return;
	}
	suite_run(t, s,
		  &(const struct cm_exec_request){
			  .argv = suite_v((const char *const[]){ "true", NULL }) },
		  &o);
	CHECK(t, o.r < 0 && o.err.code == o.r && o.err.msg[0],
	      "a command in what was killed: %s (%s)", cm_error_name(o.r), o.err.msg);
	CHECK(t, o.r == CM_E_NOT_FOUND || o.r == CM_E_REMOTE,
	      "a command in what was killed: %s (%s)", cm_error_name(o.r), o.err.msg);
	outcome_clear(&o);
	r = cm_session_info(s, &call, &info, &err);
	if (r == CM_OK) {
		CHECK(t, info.state != CM_SESSION_RUNNING, "what was killed runs");
		cm_session_info_clear(&info);
	} else {
		CHECK_CODE(t, r, err, CM_E_NOT_FOUND, "info of what was killed");
	}
	r = cm_session_destroy(s, &call, &err);
	CHECK_OK(t, r, err, "destroy what was killed");
	cm_session_release(s);
	s = suite_create(t, name);
	if (s) {
		CHECK(t, s->is_new, "it is not new");
		suite_sh_is(t, s, "echo anew", "anew\n");
	}
	suite_end(t, s);
}

static void killed_while_it_runs(struct suite *t)
{
	const char *const argv[] = { "sh", "-c", "echo up; sleep 300", NULL };
	const struct cm_exec_request request = { .argv = suite_v(argv) };
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_exec_event event = { 0 };
	struct cm_exec *e = NULL;
	struct cm_session *s;
	struct outcome o;
	char name[64];
	int64_t since;
	int r = CM_OK;

	suite_name(t, name);
	s = suite_create(t, name);
	if (!s)
		return;
	r = cm_exec_start(s, &request, &call, &e, &err);
	while (r == CM_OK && event.kind != CM_EXEC_HAS_OUTPUT)
		r = cm_exec_next(e, NULL, &call, &event, &err);
	CHECK_OK(t, r, err, "a command that runs");
	kill_sandbox(t, s);
	since = suite_now();
	outcome_init(&o);
	(void)snprintf(o.name, sizeof(o.name), "seen");
	if (e)
		suite_follow(e, SUITE_MS, &o);
	CHECK(t, o.r < 0 || o.end.kind == CM_EXEC_LOST || o.end.kind == CM_EXEC_KILLED, "kind %d",
	      o.end.kind);
	if (o.r < 0)
		is_clean(t, o.r, &o.err, "killed");
	CHECK(t, suite_now() - since < SUITE_PATIENCE * 15000, "it was told after %lld ms",
	      (long long)(suite_now() - since));
	outcome_clear(&o);
	cm_exec_release(e);
	suite_end(t, s);
}

const struct test suite_faults[] = {
	{ "making a session", 0, creating },
	{ "a service that never answers", 0, never_answers },
	{ "running a command", 0, running },
	{ "leases", 0, leases },
	{ "reading and writing", CM_CAP_FILES, reading_and_writing },
	{ "destroying a session", 0, destroying },
	{ "killed by somebody else", 0, killed },
	{ "killed while a command runs", 0, killed_while_it_runs },
	{ NULL, 0, NULL },
};
