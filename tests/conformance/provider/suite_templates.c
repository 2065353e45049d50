/* SPDX-License-Identifier: Apache-2.0 */
/* Templates: built, listed, used, removed; while they are built, and when that fails. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "tests/conformance/provider/suite.h"

static void count_line(void *data, const char *line)
{
	unsigned int *n = data;

	(void)line;
	(*n)++;
}

/* *ret_lines: of its log. */
static int build(struct suite *t, const char *name, const char *command, int ms, char **ret,
		 unsigned int *ret_lines, struct cm_error *err)
{
	CM_AUTO_STRV struct cm_strv commands = { 0 };
	const struct cm_template_request request = {
		.name = name, .commands = &commands, .log = count_line, .data = ret_lines
	};
	struct cm_call call = suite_call(ms);

	*ret_lines = 0;
	if (cm_strv_add(&commands, command) < 0)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory");
	return cm_template_build(t->p, &request, &call, ret, err);
}

struct seen {
	const char *name;
	unsigned int n;
	char state[32];
};

static int look(void *data, const char *name, const char *state)
{
	struct seen *seen = data;

	if (strcmp(name, seen->name) != 0)
		return 0;
	seen->n++;
	(void)snprintf(seen->state, sizeof(seen->state), "%s", state ? state : "");
	return 0;
}

/* How often it is in the list. */
static unsigned int n_listed(struct suite *t, const char *name, char state[32])
{
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	struct seen seen = { .name = name };

	CHECK_OK(t, cm_template_list(t->p, &call, look, &seen, &err), err, "a list of templates");
	if (state)
		memcpy(state, seen.state, sizeof(seen.state));
	return seen.n;
}

static void drop(struct suite *t, const char *name)
{
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	int r = cm_template_remove(t->p, name, &call, &err);

	CHECK_OK(t, r, err, "a template is removed");
	CHECK(t, n_listed(t, name, NULL) == 0, "it is listed still");
	r = cm_template_remove(t->p, name, &call, &err);
	CHECK_CODE(t, r, err, CM_E_NOT_FOUND, "a template is removed twice");
}

static int create_of(struct suite *t, const char *template_name, struct cm_session **ret,
		     struct cm_error *err)
{
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_spec spec;
	char name[64];
	int r;

	suite_name(t, name);
	suite_spec(t, name, &spec);
	spec.template_name = cm_strdup(template_name);
	r = cm_session_create(t->p, &spec, &call, ret, err);
	cm_spec_clear(&spec);
	return r;
}

static void builds(struct suite *t)
{
	struct cm_error err = CM_ERROR_INIT;
	CM_AUTO_FREE char *built = NULL;
	struct cm_session *s = NULL;
	int before = n_sandboxes(t);
	unsigned int n_lines;
	char state[32] = "";
	char name[64];
	int r;

	suite_name(t, name);
	CHECK(t, n_listed(t, name, NULL) == 0, "there is one before");
	r = build(t, name, "echo of the template >/home/user/made", SUITE_MS, &built, &n_lines,
		  &err);
	if (!CHECK_OK(t, r, err, "a template is built") || !built)
		return;
	CHECK(t, n_lines > 0, "its log has no line");
	CHECK(t, n_sandboxes(t) == before, "what built it is left");
	CHECK(t, n_listed(t, built, state) == 1, "'%s' is not listed once", built);
	CHECK(t, strcmp(state, "ready") == 0, "its state is '%s'", state);
	r = create_of(t, built, &s, &err);
	if (CHECK_OK(t, r, err, "a session of it"))
		suite_sh_is(t, s, "cat /home/user/made", "of the template\n");
	suite_end(t, s);
	drop(t, built);
	s = NULL;
	r = create_of(t, built, &s, &err);
	CHECK(t, r < 0 && err.code == r && err.msg[0] != '\0' && !s,
	      "a session of what was removed: %s (%s)", cm_error_name(r), err.msg);
	suite_end(t, s);
	CHECK(t, n_sandboxes(t) == before, "%d sandboxes are left", n_sandboxes(t) - before);
}

static void fails(struct suite *t)
{
	struct cm_error err = CM_ERROR_INIT;
	CM_AUTO_FREE char *built = NULL;
	int before = n_sandboxes(t);
	unsigned int n_lines;
	char state[32] = "";
	char name[64];
	int r;

	suite_name(t, name);
	r = build(t, name, "echo why it fails >&2; exit 3", SUITE_MS, &built, &n_lines, &err);
	CHECK_CODE(t, r, err, is_e2b(t) ? CM_E_SETUP : CM_E_REMOTE, "a build that fails");
	CHECK(t, strstr(err.msg, name) != NULL, "'%s' does not name it", err.msg);
	CHECK(t, !built, "there is one nevertheless");
	CHECK(t, n_lines > 0, "its log has no line");
	CHECK(t, n_sandboxes(t) == before, "what built it is left");
	if (n_listed(t, name, state) > 0)
		CHECK(t, strcmp(state, "ready") != 0, "it is listed as ready");
}

/* Who gives up hears that it goes on, and asks again: it is the same build, where a service can tell. */
static void pending(struct suite *t)
{
	struct cm_error err = CM_ERROR_INIT;
	CM_AUTO_FREE char *built = NULL;
	unsigned int n_lines;
	int64_t since = suite_now();
	char state[32] = "";
	char name[64];
	int r;

	suite_name(t, name);
	r = build(t, name, "sleep 2; echo late >/home/user/made", 500, &built, &n_lines, &err);
	CHECK_CODE(t, r, err, CM_E_TIMEOUT, "a build that is given up");
	CHECK(t, suite_now() - since < SUITE_PATIENCE * 2000, "it took %lld ms",
	      (long long)(suite_now() - since));
	CHECK(t, !built, "there is one nevertheless");
	if (n_listed(t, name, state) > 0)
		CHECK(t, strcmp(state, "ready") != 0, "it is listed as ready");
	err = (struct cm_error)CM_ERROR_INIT;
	r = build(t, name, "sleep 2; echo late >/home/user/made", SUITE_MS, &built, &n_lines, &err);
	if (!CHECK_OK(t, r, err, "it is built then") || !built)
		return;
	CHECK(t, n_listed(t, built, state) == 1 && strcmp(state, "ready") == 0, "its state is '%s'",
	      state);
	drop(t, built);
}

static void not_there(struct suite *t)
{
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_session *s = NULL;
	int before = n_sandboxes(t);
	char name[64];
	int r;

	suite_name(t, name);
	r = cm_template_remove(t->p, name, &call, &err);
	CHECK_CODE(t, r, err, CM_E_NOT_FOUND, "a template that is not there is removed");
	r = create_of(t, name, &s, &err);
	CHECK_CODE(t, r, err, CM_E_NOT_FOUND, "a session of a template that is not there");
	CHECK(t, !s && n_sandboxes(t) == before, "there is one nevertheless");
	suite_end(t, s);
}

static void cannot(struct suite *t)
{
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	struct seen seen = { .name = "" };
	CM_AUTO_FREE char *built = NULL;
	unsigned int n_lines;

	if ((t->caps & CM_CAP_TEMPLATE) != 0)
		return;
	CHECK_CODE(t, build(t, "suite-none", "true", SUITE_MS, &built, &n_lines, &err), err,
		   CM_E_UNSUPPORTED, "build");
	CHECK_CODE(t, cm_template_list(t->p, &call, look, &seen, &err), err, CM_E_UNSUPPORTED,
		   "list");
	CHECK_CODE(t, cm_template_remove(t->p, "suite-none", &call, &err), err, CM_E_UNSUPPORTED,
		   "remove");
	CHECK(t, !built, "there is one nevertheless");
}

const struct test suite_templates[] = {
	{ "built, listed, used and removed", CM_CAP_TEMPLATE, builds },
	{ "a build that fails", CM_CAP_TEMPLATE, fails },
	{ "a build that takes its time", CM_CAP_TEMPLATE, pending },
	{ "what is not there", CM_CAP_TEMPLATE, not_there },
	{ "what cannot be is refused", 0, cannot },
	{ NULL, 0, NULL },
};
