/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots, clones and published ports. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "tests/conformance/provider/suite.h"

/* NULL, and it was said why. */
static struct cm_session *create_of(struct suite *t, const char *template_name)
{
	struct cm_spec spec;
	char name[64];

	suite_name(t, name);
	suite_spec(t, name, &spec);
	spec.template_name = cm_strdup(template_name);
	return suite_create_of(t, &spec, "a session of what was kept");
}

/* What is written after it is in none, and what is written in one is not in the other. */
static void snapshots(struct suite *t)
{
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	CM_AUTO_FREE char *kept = NULL;
	struct cm_session *first;
	struct cm_session *second;
	char name[64];
	int r;

	suite_name(t, name);
	first = suite_create(t, name);
	if (!first)
		return;
	suite_sh_is(t, first, "echo before >kept", "");
	r = cm_session_snapshot(first, NULL, &call, &kept, &err);
	if (CHECK_OK(t, r, err, "a snapshot") && CHECK(t, kept && kept[0], "it has no name")) {
		suite_sh_is(t, first, "cat kept; echo after >kept; cat kept", "before\nafter\n");
		second = create_of(t, kept);
		if (second) {
			suite_sh_is(t, second, "cat kept; echo other >kept", "before\n");
			suite_sh_is(t, first, "cat kept", "after\n");
		}
		suite_end(t, second);
		suite_sh_is(t, first, "echo works", "works\n");
	}
	suite_end(t, first);
}

/* One has the caller's name, or that is refused, and nothing else. */
static void named_snapshot(struct suite *t)
{
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	CM_AUTO_FREE char *kept = NULL;
	char name[64];
	int r;

	suite_name(t, name);
	r = cm_session_snapshot(t->s, name, &call, &kept, &err);
	if (!is_e2b(t)) {
		CHECK_CODE(t, r, err, CM_E_UNSUPPORTED, "a name for a snapshot");
		CHECK(t, !kept, "there is one nevertheless");
		return;
	}
	if (!CHECK_OK(t, r, err, "a snapshot with a name"))
		return;
	CHECK(t, kept && strncmp(kept, name, strlen(name)) == 0, "'%s' is called '%s'", name,
	      kept ? kept : "");
	suite_end(t, create_of(t, kept));
	err = (struct cm_error)CM_ERROR_INIT;
	r = cm_template_remove(t->p, kept, &call, &err);
	CHECK_OK(t, r, err, "a snapshot is removed");
}

static void clones(struct suite *t)
{
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_session *copy = NULL;
	struct cm_session *first;
	char name[64];
	char other[64];
	int before = n_sandboxes(t);
	int r;

	suite_name(t, name);
	suite_name(t, other);
	first = suite_create(t, name);
	if (!first)
		return;
	suite_sh_is(t, first, "echo before >kept", "");
	r = cm_session_clone(first, other, &call, &copy, &err);
	if (CHECK_OK(t, r, err, "a clone")) {
		CHECK(t, strcmp(copy->id, other) == 0, "'%s' is called '%s'", other, copy->id);
		suite_sh_is(t, copy, "cat kept; echo copy >kept", "before\n");
		suite_sh_is(t, first, "cat kept; echo first >kept", "before\n");
		suite_sh_is(t, copy, "cat kept", "copy\n");
	}
	CHECK(t, n_sandboxes(t) == before + 2, "%d sandboxes, wanted %d", n_sandboxes(t),
	      before + 2);
	suite_end(t, first);
	/* it stands by itself */
	if (copy)
		suite_sh_is(t, copy, "cat kept", "copy\n");
	suite_end(t, copy);
	CHECK(t, n_sandboxes(t) == before, "%d sandboxes are left", n_sandboxes(t) - before);
}

/* A name that is taken is no place for a copy, and what has it stays as it is. */
static void clone_onto_another(struct suite *t)
{
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_session *copy = NULL;
	struct cm_session *other;
	int before = n_sandboxes(t);
	char name[64];
	int r;

	suite_name(t, name);
	other = suite_create(t, name);
	if (!other)
		return;
	suite_sh_is(t, other, "echo mine >kept", "");
	r = cm_session_clone(t->s, name, &call, &copy, &err);
	CHECK_CODE(t, r, err, CM_E_EXISTS, "a clone of that name");
	CHECK(t, !copy, "there is one nevertheless");
	suite_sh_is(t, other, "cat kept", "mine\n");
	suite_end(t, other);
	CHECK(t, n_sandboxes(t) == before, "%d sandboxes are left", n_sandboxes(t) - before);
	r = cm_session_clone(t->s, "no name at all/", &call, &copy, &err);
	CHECK_CODE(t, r, err, CM_E_INVALID, "a clone without a name that can be");
}

static void publishes(struct suite *t)
{
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	CM_AUTO_FREE char *url = NULL;
	CM_AUTO_FREE char *other = NULL;

	CHECK_OK(t, cm_session_publish(t->s, 3000, &call, &url, &err), err, "a port");
	CHECK_OK(t, cm_session_publish(t->s, 3001, &call, &other, &err), err, "another port");
	if (!url || !other)
		return;
	CHECK(t, strncmp(url, "https://", 8) == 0 || strncmp(url, "http://", 7) == 0, "'%s'", url);
	CHECK(t, strstr(url, "3000") && strstr(other, "3001"), "'%s' and '%s'", url, other);
	CHECK(t, !suite_has_secret(t, url), "'%s' has a secret", url);
}

/* Who cannot says so, and asks nobody. */
static void cannot(struct suite *t)
{
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_session *copy = NULL;
	char *text = NULL;
	int64_t end_ms = 0;
	int before = t->port != 0 ? n_requests(t) : 0;

	for (unsigned int i = 0; i < 4; i++) {
		static const uint32_t caps[] = { CM_CAP_SNAPSHOT, CM_CAP_CLONE, CM_CAP_PUBLISH,
						 CM_CAP_FILE_URL };
		struct cm_error err = CM_ERROR_INIT;
		int r;

		if ((t->caps & caps[i]) != 0)
			continue;
		if (i == 0)
			r = cm_session_snapshot(t->s, NULL, &call, &text, &err);
		else if (i == 1)
			r = cm_session_clone(t->s, "suite-copy", &call, &copy, &err);
		else if (i == 2)
			r = cm_session_publish(t->s, 3000, &call, &text, &err);
		else
			r = cm_session_file_url(t->s, "/tmp/f", 0, 0, &call, &text, &end_ms, &err);
		CHECK_CODE(t, r, err, CM_E_UNSUPPORTED, cm_cap_text(caps[i]));
	}
	CHECK(t, !text && !copy, "there is something nevertheless");
	CHECK(t, t->port == 0 || n_requests(t) == before, "somebody was asked");
}

const struct test suite_copies[] = {
	{ "a snapshot, and a session of it", CM_CAP_SNAPSHOT, snapshots },
	{ "a snapshot with a name", CM_CAP_SNAPSHOT, named_snapshot },
	{ "a clone, and each is by itself", CM_CAP_CLONE, clones },
	{ "a clone of a name that is taken", CM_CAP_CLONE, clone_onto_another },
	{ "the address of a port", CM_CAP_PUBLISH, publishes },
	{ "what cannot be is refused", 0, cannot },
	{ NULL, 0, NULL },
};
