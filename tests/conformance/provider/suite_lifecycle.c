/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: made, found, stopped, started, ended. L and R are Mastra's, as in the README above. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/fd.h"
#include "tests/conformance/provider/suite.h"

static enum cm_session_state state_of(struct suite *t, struct cm_session *s)
{
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_session_info info;
	enum cm_session_state state = 0;
	int r;

	memset(&info, 0, sizeof(info));
	r = cm_session_info(s, &call, &info, &err);
	if (CHECK_OK(t, r, err, "info")) {
		state = info.state;
		cm_session_info_clear(&info);
	}
	return state;
}

static void is_in(struct suite *t, struct cm_session *s, enum cm_session_state want)
{
	enum cm_session_state state = state_of(t, s);

	CHECK(t, state == want, "its state is %d, wanted %d", state, want);
}

static bool stop(struct suite *t, struct cm_session *s)
{
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	int r = cm_session_stop(s, &call, &err);

	return CHECK_OK(t, r, err, "stop");
}

static bool start(struct suite *t, struct cm_session *s)
{
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	int r = cm_session_start(s, &call, &err);

	return CHECK_OK(t, r, err, "start");
}

static struct cm_session *find(struct suite *t, const char *id)
{
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_session *s = NULL;
	int r = cm_session_attach(t->p, id, &call, &s, &err);

	return CHECK_OK(t, r, err, "attach") ? s : NULL;
}

static void is_gone(struct suite *t, const char *id)
{
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_session *s = NULL;
	int r = cm_session_attach(t->p, id, &call, &s, &err);

	CHECK_CODE(t, r, err, CM_E_NOT_FOUND, "attach to what is not there");
	CHECK(t, !s, "there is a session");
}

/* --- what it is ---------------------------------------------------------------------------- */

static void information(struct suite *t)
{
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_session_info info;
	struct cm_session *s;
	char name[64];
	int r;

	suite_name(t, name);
	s = suite_create(t, name);
	if (!s)
		return;
	CHECK(t, strcmp(s->id, name) == 0, "it is called '%s'", s->id);
	CHECK(t, s->is_new && !s->was_running, "new %d, ran before %d", s->is_new, s->was_running);
	CHECK(t, s->provider == t->p, "it is another provider's");
	r = cm_session_info(s, &call, &info, &err);
	if (CHECK_OK(t, r, err, "info")) {
		CHECK(t, info.id && strcmp(info.id, name) == 0, "id '%s'", info.id);
		CHECK(t, info.state == CM_SESSION_RUNNING, "state %d", info.state);
		CHECK(t, !info.workdir || info.workdir[0] == '/', "workdir '%s'",
		      info.workdir ? info.workdir : "");
		cm_session_info_clear(&info);
	}
	suite_sh_is(t, s, "echo works", "works\n");
	suite_end(t, s);
	is_gone(t, name);
}

static void one_id_is_one(struct suite *t)
{
	char name[64];
	char other[64];
	struct cm_session *a;
	struct cm_session *b;
	struct cm_session *c;

	suite_name(t, name);
	suite_name(t, other);
	a = suite_create(t, name);
	b = suite_create(t, name);
	c = suite_create(t, other);
	if (a && b && c) {
		CHECK(t, a->is_new && !b->is_new && b->was_running && c->is_new,
		      "new %d %d %d, ran before %d", a->is_new, b->is_new, c->is_new,
		      b->was_running);
		suite_sh_is(t, a, "echo mine > /tmp/whose", "");
		suite_sh_is(t, b, "cat /tmp/whose", "mine\n");
		suite_sh_is(t, c, "test -e /tmp/whose || echo none", "none\n");
	}
	if (t->port != 0)
		CHECK(t, n_sandboxes(t) == 3, "%d sandboxes", n_sandboxes(t));
	cm_session_release(b);
	suite_end(t, a);
	suite_end(t, c);
}

static void without_a_name(struct suite *t)
{
	struct cm_session *a = suite_create(t, NULL);
	struct cm_session *b = suite_create(t, NULL);

	if (a && b) {
		CHECK(t, a->id[0] && strcmp(a->id, b->id) != 0, "'%s' and '%s'", a->id, b->id);
		CHECK(t, a->is_new && b->is_new, "new %d %d", a->is_new, b->is_new);
		suite_sh_is(t, a, "echo a > /tmp/x; echo one", "one\n");
		suite_sh_is(t, b, "test -e /tmp/x || echo two", "two\n");
		is_in(t, a, CM_SESSION_RUNNING);
	}
	suite_end(t, a);
	suite_end(t, b);
}

static void environment(struct suite *t)
{
	const char *const argv[] = { "sh", "-c", "printf '%s|%s|%s' \"$A\" \"$B\" \"$C\"", NULL };
	const char *const env[] = { "B=own", "C=new", NULL };
	const struct cm_exec_request request = { .argv = suite_v(argv), .env = suite_v(env) };
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_session *s = NULL;
	struct cm_spec spec;
	struct outcome o;
	char name[64];
	int r;

	suite_name(t, name);
	suite_spec(t, name, &spec);
	(void)cm_strv_add(&spec.env, "A=of the session's \"own\" $x");
	(void)cm_strv_add(&spec.env, "B=session");
	r = cm_session_create(t->p, &spec, &call, &s, &err);
	cm_spec_clear(&spec);
	if (!CHECK_OK(t, r, err, "a session with an environment"))
		return;
	suite_sh_is(t, s, "printf '%s|%s|%s' \"$A\" \"$B\" \"$C\"",
		    "of the session's \"own\" $x|session|");
	suite_run(t, s, &request, &o);
	CHECK_PRINTED(t, &o, "of the session's \"own\" $x|own|new");
	outcome_clear(&o);
	suite_sh_is(t, s, "printf '%s|%s|%s' \"$A\" \"$B\" \"$C\"",
		    "of the session's \"own\" $x|session|");
	suite_end(t, s);
}

/* --- labels, lists ------------------------------------------------------------------------- */

struct listing {
	const char *id;
	unsigned int n;
	unsigned int n_all;
	bool has_label;
	int give_up_with;
};

static int each(void *data, const struct cm_session_info *info)
{
	struct listing *l = data;

	l->n_all++;
	if (info->id && strcmp(info->id, l->id) == 0) {
		l->n++;
		l->has_label = cm_strv_has(&info->labels, "team=a b=c");
	}
	return l->give_up_with;
}

static void listed(struct suite *t)
{
	struct listing l = { .id = t->s->id };
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	int r = cm_session_list(t->p, &call, each, &l, &err);

	CHECK_OK(t, r, err, "list");
	CHECK(t, l.n == 1, "the session is listed %u times, of %u", l.n, l.n_all);
	l = (struct listing){ .id = "", .give_up_with = -1234 };
	r = cm_session_list(t->p, &call, each, &l, &err);
	CHECK(t, r == -1234 && l.n_all == 1, "who gives up got %d after %u", r, l.n_all);
}

static void labels(struct suite *t)
{
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_session_info info;
	struct cm_session *s = NULL;
	struct listing l;
	struct cm_spec spec;
	char name[64];
	int r;

	suite_name(t, name);
	suite_spec(t, name, &spec);
	(void)cm_strv_add(&spec.labels, "team=a b=c");
	(void)cm_strv_add(&spec.labels, "empty=");
	r = cm_session_create(t->p, &spec, &call, &s, &err);
	cm_spec_clear(&spec);
	if (!CHECK_OK(t, r, err, "a session with labels"))
		return;
	r = cm_session_info(s, &call, &info, &err);
	if (CHECK_OK(t, r, err, "info")) {
		CHECK(t,
		      cm_strv_has(&info.labels, "team=a b=c") &&
			      cm_strv_has(&info.labels, "empty="),
		      "labels are not there");
		CHECK(t, info.labels.n == 2, "%zu labels", info.labels.n);
		cm_session_info_clear(&info);
	}
	l = (struct listing){ .id = name };
	r = cm_session_list(t->p, &call, each, &l, &err);
	CHECK(t, r == CM_OK && l.n == 1 && l.has_label, "listed %u times, with its label %d", l.n,
	      l.has_label);
	suite_end(t, s);
}

/* --- stopped and started ------------------------------------------------------------------- */

static void stop_and_start(struct suite *t)
{
	struct cm_session *s;
	char name[64];

	suite_name(t, name);
	s = suite_create(t, name);
	if (!s)
		return;
	start(t, s);
	is_in(t, s, CM_SESSION_RUNNING);
	suite_sh_is(t, s, "echo kept > /tmp/kept; echo here > kept-here", "");
	for (int i = 0; i < 3; i++) {
		stop(t, s);
		is_in(t, s, CM_SESSION_STOPPED);
		stop(t, s);
		start(t, s);
		start(t, s);
		is_in(t, s, CM_SESSION_RUNNING);
		CHECK(t, strcmp(s->id, name) == 0, "it is called '%s'", s->id);
		suite_sh_is(t, s, "cat /tmp/kept kept-here", "kept\nhere\n");
	}
	suite_end(t, s);
}

/* A command starts it; or says that it does not run, and then whoever needs it does. */
static void needed(struct suite *t, struct cm_session *s)
{
	const char *const argv[] = { "true", NULL };
	const struct cm_exec_request request = { .argv = suite_v(argv) };
	struct outcome o;

	suite_run(t, s, &request, &o);
	if (o.r < 0) {
		CHECK(t, t->port != 0 && o.r == CM_E_REMOTE && o.err.msg[0],
		      "it does not run: %s (%s)", cm_error_name(o.r), o.err.msg);
		start(t, s);
	} else {
		CHECK_EXIT(t, &o, 0);
	}
	outcome_clear(&o);
}

static void started_when_needed(struct suite *t)
{
	struct cm_session *s;
	struct cm_session *other;
	char name[64];

	suite_name(t, name);
	s = suite_create(t, name);
	other = s ? find(t, name) : NULL;
	if (other) {
		CHECK(t, !other->is_new, "it is new");
		suite_sh_is(t, s, "echo kept > /tmp/kept", "");
		/* by somebody else */
		stop(t, other);
		needed(t, s);
		suite_sh_is(t, s, "cat /tmp/kept", "kept\n");
		suite_sh_is(t, s, "echo again", "again\n");
		is_in(t, s, CM_SESSION_RUNNING);
		stop(t, s);
	}
	cm_session_release(other);
	other = s ? find(t, name) : NULL;
	if (other) {
		CHECK(t, !other->was_running, "it ran");
		is_in(t, other, CM_SESSION_STOPPED);
		needed(t, other);
		suite_sh_is(t, other, "cat /tmp/kept", "kept\n");
	}
	cm_session_release(other);
	/* get-or-create of a stopped one starts it */
	if (s && stop(t, s)) {
		other = suite_create(t, name);
		if (other)
			CHECK(t, !other->is_new && !other->was_running, "new %d, ran %d",
			      other->is_new, other->was_running);
		suite_sh_is(t, s, "cat /tmp/kept", "kept\n");
		cm_session_release(other);
	}
	suite_end(t, s);
}

static void files_of_a_stopped_one(struct suite *t)
{
	CM_AUTO_BUF struct cm_buf got = { 0 };
	const struct cm_read_request request = { .length = UINT64_MAX,
						 .take = suite_take,
						 .data = &got };
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_session *s;
	char name[64];
	int r;

	suite_name(t, name);
	s = suite_create(t, name);
	if (!s)
		return;
	suite_sh_is(t, s, "printf kept > /tmp/kept", "");
	stop(t, s);
	needed(t, s);
	cm_buf_init(&got, 1024);
	r = cm_session_read(s, "/tmp/kept", &request, &call, &err);
	CHECK_OK(t, r, err, "a file of a stopped session");
	CHECK(t, got.len == 4, "%zu bytes", got.len);
	suite_end(t, s);
}

/* --- destroyed ----------------------------------------------------------------------------- */

static void destroyed(struct suite *t)
{
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_session_info info;
	struct cm_session *s;
	struct cm_session *other;
	struct outcome o;
	char name[64];
	int r;

	suite_name(t, name);
	s = suite_create(t, name);
	other = s ? find(t, name) : NULL;
	if (!other) {
		suite_end(t, s);
		return;
	}
	suite_sh_is(t, s, "echo old > /tmp/old", "");
	r = cm_session_destroy(s, &call, &err);
	CHECK_OK(t, r, err, "destroy");
	r = cm_session_destroy(s, &call, &err);
	CHECK_OK(t, r, err, "destroy what is destroyed");
	r = cm_session_destroy(other, &call, &err);
	CHECK_OK(t, r, err, "destroy what somebody else destroyed");
	is_gone(t, name);
	r = cm_session_info(s, &call, &info, &err);
	CHECK_CODE(t, r, err, CM_E_NOT_FOUND, "info of what is destroyed");
	suite_run(t, s,
		  &(const struct cm_exec_request){ .argv = (char *[]){ (char[]){ "true" }, NULL } },
		  &o);
	/* from outside what is gone and what is stopped can look the same */
	CHECK(t, o.r == CM_E_NOT_FOUND || (t->port != 0 && o.r == CM_E_REMOTE),
	      "a command in what is destroyed: %s (%s)", cm_error_name(o.r), o.err.msg);
	outcome_clear(&o);
	cm_session_release(other);
	cm_session_release(s);
	/* the name is free, and what it had is gone */
	s = suite_create(t, name);
	if (s) {
		CHECK(t, s->is_new, "it is not new");
		suite_sh_is(t, s, "test -e /tmp/old || echo fresh", "fresh\n");
	}
	suite_end(t, s);
}

static void destroyed_while_stopped(struct suite *t)
{
	struct cm_session *s;
	char name[64];

	suite_name(t, name);
	s = suite_create(t, name);
	if (s)
		stop(t, s);
	suite_end(t, s);
	is_gone(t, name);
}

static void destroyed_while_busy(struct suite *t)
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
	r = cm_session_destroy(s, &call, &err);
	CHECK_OK(t, r, err, "destroy while a command runs");
	since = suite_now();
	outcome_init(&o);
	(void)snprintf(o.name, sizeof(o.name), "seen");
	if (e)
		suite_follow(e, SUITE_MS, &o);
	/* it ended with the session, or how is not known: not that it ended well, and not never */
	CHECK(t,
	      o.r < 0 || o.end.kind == CM_EXEC_KILLED || o.end.kind == CM_EXEC_LOST ||
		      o.end.kind == CM_EXEC_SIGNALLED,
	      "kind %d", o.end.kind);
	CHECK(t, suite_now() - since < SUITE_PATIENCE * 15000, "it was told after %lld ms",
	      (long long)(suite_now() - since));
	outcome_clear(&o);
	cm_exec_release(e);
	cm_session_release(s);
	is_gone(t, name);
}

/* --- files of this host -------------------------------------------------------------------- */

static void host_files(struct suite *t)
{
	char dir[] = "suite-host-XXXXXX";
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_session *s = NULL;
	CM_AUTO_FREE char *path = NULL;
	CM_AUTO_FREE char *file = NULL;
	struct cm_spec spec;
	char name[64];
	int r;

	if (!CHECK(t, mkdtemp(dir) != NULL, "a directory"))
		return;
	path = cm_asprintf("%s/%s", t->config.cwd, dir);
	file = cm_asprintf("%s/from-inside", path);
	(void)chmod(dir, 0777);
	suite_name(t, name);
	suite_spec(t, name, &spec);
	spec.workspace_kind = CM_WORKSPACE_DIR;
	spec.workspace = cm_strdup(path);
	r = cm_session_create(t->p, &spec, &call, &s, &err);
	cm_spec_clear(&spec);
	if (CHECK_OK(t, r, err, "a workspace of this host")) {
		suite_sh_is(t, s, "echo x > from-inside; echo made", "made\n");
		CHECK(t, access(file, F_OK) == 0, "the file is not here");
		/* over a stop, too */
		stop(t, s);
		suite_sh_is(t, s, "cat from-inside", "x\n");
		suite_end(t, s);
		CHECK(t, access(file, F_OK) == 0, "the file went with the session");
	}
	(void)unlink(file);
	(void)rmdir(path);
}

const struct test suite_lifecycle[] = {
	{ "L1 L4 L8 L9 R1: a session is what it says", 0, information },
	{ "L2: one id is one session, two are two", 0, one_id_is_one },
	{ "without a name it has one of its own", 0, without_a_name },
	{ "P35 P36: its environment is its commands', and theirs comes over it", 0, environment },
	{ "it is listed", 0, listed },
	{ "labels are kept", CM_CAP_LABELS, labels },
	{ "L5 L6 R2 R3 R4 R9 R10 R11: stopped and started, again and again", 0, stop_and_start },
	{ "R6 R7 R8 R12 R13: it is started when it is needed", 0, started_when_needed },
	{ "files of one that is stopped", CM_CAP_FILES, files_of_a_stopped_one },
	{ "destroyed, once and again", 0, destroyed },
	{ "destroyed while it is stopped", 0, destroyed_while_stopped },
	{ "destroyed while a command runs", 0, destroyed_while_busy },
	{ "R5: files of this host", CM_CAP_HOST_FILES, host_files },
	{ NULL, 0, NULL },
};
