/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that are left running. P1 to P39 are Mastra's, as in the README above. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/fd.h"
#include "tests/conformance/provider/suite.h"

/* Its name; false: it was said why there is none. */
static bool spawn_with(struct suite *t, const struct cm_exec_request *request,
		       char name[CM_EXEC_NAME_SIZE])
{
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_exec_event event = { 0 };
	struct cm_exec *e = NULL;
	int r = cm_exec_start(t->s, request, &call, &e, &err);

	if (r == CM_OK)
		r = cm_exec_next(e, NULL, &call, &event, &err);
	CHECK_OK(t, r, err, "it is started");
	if (r == CM_OK) {
		CHECK(t, event.kind == CM_EXEC_HAS_STARTED, "event %d", event.kind);
		(void)snprintf(name, CM_EXEC_NAME_SIZE, "%s", e->name);
	}
	cm_exec_release(e);
	return CHECK(t, r < 0 || name[0] != '\0', "it has no name") && r == CM_OK;
}

static bool spawn(struct suite *t, const char *text, char name[CM_EXEC_NAME_SIZE])
{
	const char *const argv[] = { "sh", "-c", text, NULL };
	const struct cm_exec_request request = { .argv = suite_v(argv), .is_detached = true };

	name[0] = '\0';
	return spawn_with(t, &request, name);
}

/* What there is from these offsets on, to its end where it is followed. */
static void attach(struct suite *t, const char *name, uint64_t out, uint64_t err, bool follows,
		   struct outcome *o)
{
	const uint64_t offsets[2] = { out, err };
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_exec *e = NULL;

	outcome_init(o);
	o->r = cm_exec_attach(t->s, name, offsets, follows, &call, &e, &o->err);
	if (o->r < 0)
		return;
	suite_follow(e, SUITE_MS, o);
	CHECK(t, strcmp(e->name, name) == 0, "it is called '%s', not '%s'", e->name, name);
	cm_exec_release(e);
}

static bool printed_errs(const struct outcome *o, const char *text)
{
	return o->errs.len == strlen(text) &&
	       memcmp(o->errs.data ? o->errs.data : "", text, o->errs.len) == 0;
}

/* --- to its end ---------------------------------------------------------------------------- */

static void output_and_end(struct suite *t)
{
	char name[CM_EXEC_NAME_SIZE];
	struct outcome o;

	if (!spawn(t, "echo out; echo err >&2; sleep 0.5; echo more; exit 42", name))
		return;
	attach(t, name, 0, 0, true, &o);
	CHECK_EXIT(t, &o, 42);
	CHECK(t, o.end.kind == CM_EXEC_EXITED, "kind %d", o.end.kind);
	CHECK_PRINTED(t, &o, "out\nmore\n");
	CHECK(t, printed_errs(&o, "err\n"), "stderr '%s'", o.errs.data ? o.errs.data : "");
	outcome_clear(&o);
	/* again and again */
	for (int i = 0; i < 2; i++) {
		attach(t, name, 0, 0, true, &o);
		CHECK_EXIT(t, &o, 42);
		CHECK_PRINTED(t, &o, "out\nmore\n");
		outcome_clear(&o);
	}
	attach(t, name, 0, 0, false, &o);
	CHECK_EXIT(t, &o, 42);
	CHECK_PRINTED(t, &o, "out\nmore\n");
	outcome_clear(&o);
}

static void from_offsets(struct suite *t)
{
	char name[CM_EXEC_NAME_SIZE];
	struct outcome o;

	if (!spawn(t, "printf 0123456789; printf abcdef >&2", name))
		return;
	attach(t, name, 4, 2, true, &o);
	CHECK_EXIT(t, &o, 0);
	CHECK_PRINTED(t, &o, "456789");
	CHECK(t, printed_errs(&o, "cdef"), "stderr '%s'", o.errs.data ? o.errs.data : "");
	outcome_clear(&o);
	attach(t, name, 10, 6, true, &o);
	CHECK_EXIT(t, &o, 0);
	CHECK_PRINTED(t, &o, "");
	CHECK(t, o.errs.len == 0, "stderr has something");
	outcome_clear(&o);
}

static void returns_at_once(struct suite *t)
{
	char name[CM_EXEC_NAME_SIZE];
	struct outcome o;

	suite_untell(t);
	if (!spawn(t, UNTIL_TOLD "; echo late", name))
		return;
	suite_tell(t);
	attach(t, name, 0, 0, true, &o);
	CHECK_EXIT(t, &o, 0);
	CHECK_PRINTED(t, &o, "late\n");
	outcome_clear(&o);
}

static void comes_while_it_runs(struct suite *t)
{
	const uint64_t offsets[2] = { 0, 0 };
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_exec_event event = { 0 };
	struct cm_exec *e = NULL;
	char name[CM_EXEC_NAME_SIZE];
	unsigned int seen = 0;
	struct outcome o;
	int r;

	suite_untell(t);
	if (!spawn(t, "echo first; echo first >&2; " UNTIL_TOLD "; echo last", name))
		return;
	r = cm_exec_attach(t->s, name, offsets, true, &call, &e, &err);
	while (r == CM_OK && seen != 3 && event.kind != CM_EXEC_HAS_ENDED) {
		r = cm_exec_next(e, NULL, &call, &event, &err);
		if (r == CM_OK && event.kind == CM_EXEC_HAS_OUTPUT)
			seen |= 1U << (event.stream - 1);
	}
	CHECK_OK(t, r, err, "followed");
	CHECK(t, seen == 3, "it did not come before the end");
	suite_tell(t);
	outcome_init(&o);
	(void)snprintf(o.name, sizeof(o.name), "seen");
	if (e)
		suite_follow(e, SUITE_MS, &o);
	CHECK_EXIT(t, &o, 0);
	CHECK_PRINTED(t, &o, "last\n");
	outcome_clear(&o);
	cm_exec_release(e);
}

static void environment(struct suite *t)
{
	const char *const argv[] = { "sh", "-c", "printf '%s' \"$OWN\"; pwd", NULL };
	const char *const env[] = { "OWN=it's \"mine\"\nreally", NULL };
	const struct cm_exec_request request = {
		.argv = suite_v(argv), .env = suite_v(env), .cwd = "/tmp", .is_detached = true
	};
	char name[CM_EXEC_NAME_SIZE] = "";
	struct outcome o;

	if (!spawn_with(t, &request, name))
		return;
	attach(t, name, 0, 0, true, &o);
	CHECK_EXIT(t, &o, 0);
	CHECK_PRINTED(t, &o, "it's \"mine\"\nreally/tmp\n");
	outcome_clear(&o);
}

static void three_at_once(struct suite *t)
{
	char names[3][CM_EXEC_NAME_SIZE];

	for (int i = 0; i < 3; i++) {
		char text[64];

		(void)snprintf(text, sizeof(text), "sleep 0.3; echo number %d", i);
		if (!spawn(t, text, names[i]))
			return;
	}
	CHECK(t,
	      strcmp(names[0], names[1]) != 0 && strcmp(names[1], names[2]) != 0 &&
		      strcmp(names[0], names[2]) != 0,
	      "names are not their own: %s %s %s", names[0], names[1], names[2]);
	for (int i = 0; i < 3; i++) {
		char want[32];
		struct outcome o;

		(void)snprintf(want, sizeof(want), "number %d\n", i);
		attach(t, names[i], 0, 0, true, &o);
		CHECK_EXIT(t, &o, 0);
		CHECK_PRINTED(t, &o, want);
		outcome_clear(&o);
	}
}

static void much_output(struct suite *t)
{
	char name[CM_EXEC_NAME_SIZE];
	struct outcome o;
	size_t n = 0;

	if (!spawn(t, "head -c 3000000 /dev/zero | tr '\\000' '\\377'; printf end", name))
		return;
	attach(t, name, 0, 0, true, &o);
	CHECK_EXIT(t, &o, 0);
	while (n < o.out.len && (unsigned char)o.out.data[n] == 0xff)
		n++;
	CHECK(t, n == 3000000 && o.out.len == 3000003, "%zu of %zu bytes", n, o.out.len);
	outcome_clear(&o);
}

static void timed_out(struct suite *t)
{
	const char *const argv[] = { "sh", "-c", "trap '' TERM; while :; do sleep 1; done", NULL };
	const struct cm_exec_request request = {
		.argv = suite_v(argv), .is_detached = true, .timeout_ms = 500, .grace_ms = 300
	};
	char name[CM_EXEC_NAME_SIZE] = "";
	struct outcome o;

	if (!spawn_with(t, &request, name))
		return;
	attach(t, name, 0, 0, true, &o);
	CHECK_EXIT(t, &o, 124);
	CHECK(t, o.end.kind == CM_EXEC_TIMED_OUT, "kind %d", o.end.kind);
	outcome_clear(&o);
}

/* --- what it is told ----------------------------------------------------------------------- */

static void killed(struct suite *t)
{
	const uint64_t offsets[2] = { 0, 0 };
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_exec_event event = { 0 };
	struct cm_exec *e = NULL;
	char name[CM_EXEC_NAME_SIZE];
	struct outcome o;
	int r;

	if (!spawn(t, "trap '' TERM; echo up; while :; do sleep 1; done", name))
		return;
	r = cm_exec_attach(t->s, name, offsets, true, &call, &e, &err);
	while (r == CM_OK && event.kind != CM_EXEC_HAS_OUTPUT && event.kind != CM_EXEC_HAS_ENDED)
		r = cm_exec_next(e, NULL, &call, &event, &err);
	if (r == CM_OK)
		r = cm_exec_signal(e, SIGKILL, &call, &err);
	CHECK_OK(t, r, err, "it is killed");
	outcome_init(&o);
	(void)snprintf(o.name, sizeof(o.name), "seen");
	if (e)
		suite_follow(e, SUITE_MS, &o);
	CHECK_EXIT(t, &o, 137);
	outcome_clear(&o);
	if (e) {
		r = cm_exec_signal(e, SIGKILL, &call, &err);
		CHECK_CODE(t, r, err, CM_E_NOT_FOUND, "a kill after the end");
	}
	cm_exec_release(e);
	/* it is known how it ended */
	attach(t, name, 0, 0, true, &o);
	CHECK_EXIT(t, &o, 137);
	CHECK_PRINTED(t, &o, "up\n");
	outcome_clear(&o);
}

static void written_to(struct suite *t)
{
	const char *const argv[] = { "sh", "-c", "read x; echo \"got $x\"; cat; echo end", NULL };
	const struct cm_exec_request request = { .argv = suite_v(argv),
						 .is_detached = true,
						 .has_input = true };
	const uint64_t offsets[2] = { 0, 0 };
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_exec *e = NULL;
	char name[CM_EXEC_NAME_SIZE] = "";
	struct outcome o;
	int r;

	if (!spawn_with(t, &request, name))
		return;
	r = cm_exec_attach(t->s, name, offsets, true, &call, &e, &err);
	if (r == CM_OK)
		r = cm_exec_input(e, "line\nrest\n", 10, &call, &err);
	if (r == CM_OK)
		r = cm_exec_input(e, NULL, 0, &call, &err);
	CHECK_OK(t, r, err, "it is written to");
	outcome_init(&o);
	if (e)
		suite_follow(e, SUITE_MS, &o);
	CHECK_EXIT(t, &o, 0);
	CHECK_PRINTED(t, &o, "got line\nrest\nend\n");
	outcome_clear(&o);
	if (e) {
		r = cm_exec_input(e, "x", 1, &call, &err);
		CHECK_CODE(t, r, err, CM_E_NOT_FOUND, "input after the end");
	}
	cm_exec_release(e);
}

/* --- which there are ----------------------------------------------------------------------- */

struct found {
	const char *name;
	unsigned int n;
	struct cm_exec_info info;
};

static int find(void *data, const struct cm_exec_info *info)
{
	struct found *found = data;

	if (strcmp(info->name, found->name) != 0)
		return 0;
	found->n++;
	found->info = *info;
	found->info.cwd = NULL;
	found->info.argv = (struct cm_strv){ 0 };
	for (size_t i = 0; i < info->argv.n; i++) {
		if (cm_strv_add(&found->info.argv, info->argv.v[i]) < 0)
			return CM_E_NOMEM;
	}
	return 0;
}

static bool look(struct suite *t, const char *name, struct found *found)
{
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	int r;

	*found = (struct found){ .name = name };
	r = cm_exec_list(t->s, &call, find, found, &err);
	return CHECK_OK(t, r, err, "commands are listed");
}

static bool has_word(const struct cm_strv *argv, const char *word)
{
	for (size_t i = 0; i < argv->n; i++) {
		if (strstr(argv->v[i], word))
			return true;
	}
	return false;
}

static void listed(struct suite *t)
{
	char name[CM_EXEC_NAME_SIZE];
	struct found found;
	struct outcome o;

	if (!spawn(t, "echo known; sleep 2.5; exit 7", name) || !look(t, name, &found))
		return;
	CHECK(t, found.n == 1, "listed %u times", found.n);
	CHECK(t, found.info.is_running && found.info.is_detached && !found.info.has_end,
	      "running %d, detached %d, has ended %d", found.info.is_running,
	      found.info.is_detached, found.info.has_end);
	CHECK(t, has_word(&found.info.argv, "sleep 2.5"), "its words are not there");
	cm_exec_info_clear(&found.info);
	/* what it has printed so far */
	attach(t, name, 0, 0, true, &o);
	CHECK_EXIT(t, &o, 7);
	CHECK_PRINTED(t, &o, "known\n");
	outcome_clear(&o);
	if (!look(t, name, &found))
		return;
	CHECK(t, found.n == 1 && !found.info.is_running, "%u times, running %d", found.n,
	      found.info.is_running);
	CHECK(t, found.info.has_end && found.info.end.exit_code == 7, "exit code %d",
	      found.info.end.exit_code);
	cm_exec_info_clear(&found.info);
}

static void unknown(struct suite *t)
{
	static const char *const names[] = { "999.999", "1.99999", "no-such-command",
					     "0",	"-1",	   "../x" };
	const uint64_t offsets[2] = { 0, 0 };
	struct cm_call call = suite_call(SUITE_MS);

	for (size_t i = 0; i < CM_ARRAY_SIZE(names); i++) {
		struct cm_error err = CM_ERROR_INIT;
		struct cm_exec *e = NULL;
		int r = cm_exec_attach(t->s, names[i], offsets, true, &call, &e, &err);

		CHECK_CODE(t, r, err, CM_E_NOT_FOUND, names[i]);
		CHECK(t, !e, "there is a command '%s'", names[i]);
	}
}

/* Who started it is gone: another handle of the session finds it. */
static void by_another_handle(struct suite *t)
{
	const uint64_t offsets[2] = { 0, 0 };
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_session *other = NULL;
	struct cm_exec *e = NULL;
	char name[CM_EXEC_NAME_SIZE];
	struct outcome o;
	int r;

	if (!spawn(t, "sleep 0.5; echo found", name))
		return;
	r = cm_session_attach(t->p, t->s->id, &call, &other, &err);
	if (r == CM_OK)
		r = cm_exec_attach(other, name, offsets, true, &call, &e, &err);
	CHECK_OK(t, r, err, "another handle");
	outcome_init(&o);
	if (e)
		suite_follow(e, SUITE_MS, &o);
	CHECK_EXIT(t, &o, 0);
	CHECK_PRINTED(t, &o, "found\n");
	outcome_clear(&o);
	cm_exec_release(e);
	cm_session_release(other);
}

/* Its pieces are told up to now, and that is all. */
static void not_followed(struct suite *t)
{
	const uint64_t offsets[2] = { 0, 0 };
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_exec *e = NULL;
	char name[CM_EXEC_NAME_SIZE];
	struct outcome o;
	int r;

	suite_untell(t);
	if (!spawn(t, "echo so far; : >/tmp/printed; " UNTIL_TOLD, name))
		return;
	suite_sh_is(t, t->s,
		    "until [ -e /tmp/printed ]; do sleep 0.05; done; sleep 0.5; rm /tmp/printed",
		    "");
	r = cm_exec_attach(t->s, name, offsets, false, &call, &e, &err);
	CHECK_OK(t, r, err, "attached");
	outcome_init(&o);
	if (e)
		suite_follow(e, SUITE_MS, &o);
	CHECK(t, o.r == CM_OK, "%s", o.err.msg);
	CHECK_PRINTED(t, &o, "so far\n");
	suite_tell(t);
	outcome_clear(&o);
	cm_exec_release(e);
}

const struct test suite_process[] = {
	{ "P2 P3 P4 P6 P7 P10 P11 P13 P25 P28: both streams and the end, again and again",
	  CM_CAP_DETACH, output_and_end },
	{ "from offsets on", CM_CAP_DETACH, from_offsets },
	{ "P1: it has a name at once", CM_CAP_DETACH, returns_at_once },
	{ "P8 P9 P37 P38: what it prints comes while it runs, and ends with it", CM_CAP_DETACH,
	  comes_while_it_runs },
	{ "P5 P36: environment and directory", CM_CAP_DETACH, environment },
	{ "P31: three at once", CM_CAP_DETACH, three_at_once },
	{ "3 MB of output", CM_CAP_DETACH, much_output },
	{ "a timeout ends it", CM_CAP_DETACH | CM_CAP_EXEC_TIMEOUT, timed_out },
	{ "P14 P15 P27 P30 P32 P34: it is killed", CM_CAP_DETACH | CM_CAP_SIGNAL, killed },
	{ "P19 P20 P39: it is written to", CM_CAP_DETACH | CM_CAP_STDIN, written_to },
	{ "P12 P21 P22 P23 P24 P26: it is listed, running and ended", CM_CAP_DETACH, listed },
	{ "P29 P33: what is not known is not found", CM_CAP_DETACH, unknown },
	{ "another handle finds it", CM_CAP_DETACH, by_another_handle },
	{ "what there is so far, without its end", CM_CAP_DETACH, not_followed },
	{ NULL, 0, NULL },
};
