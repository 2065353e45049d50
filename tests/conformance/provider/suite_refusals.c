/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions that are refused, and that nothing is made of. */
#include <stdlib.h>
#include <string.h>

#include "runtime/base/fd.h"
#include "tests/conformance/provider/suite.h"

static void ask_memory(struct cm_spec *spec)
{
	spec->limits.memory = (struct cm_limit){ .value = 1UL << 30, .is_set = true };
}

static void ask_pids(struct cm_spec *spec)
{
	spec->limits.pids = (struct cm_limit){ .value = 100, .is_set = true };
}

static void ask_none(struct cm_spec *spec)
{
	spec->network = CM_NETWORK_NONE;
}

static void ask_internet(struct cm_spec *spec)
{
	spec->network = CM_NETWORK_INTERNET;
}

static void ask_host(struct cm_spec *spec)
{
	spec->network = CM_NETWORK_HOST;
}

static void ask_level(struct cm_spec *spec)
{
	spec->min_level = CM_LEVEL_FULL;
}

static void ask_rootfs(struct cm_spec *spec)
{
	spec->rootfs = cm_strdup("/");
}

static void ask_workspace(struct cm_spec *spec)
{
	spec->workspace_kind = CM_WORKSPACE_DIR;
	spec->workspace = cm_strdup("/tmp");
}

static void ask_root(struct cm_spec *spec)
{
	spec->user = CM_USER_ROOT;
}

static void ask_label(struct cm_spec *spec)
{
	(void)cm_strv_add(&spec->labels, "a=b");
}

static void ask_template(struct cm_spec *spec)
{
	spec->template_name = cm_strdup("base");
}

static void ask_teardown(struct cm_spec *spec)
{
	(void)cm_strv_add(&spec->teardown, "true");
}

/* Refused where it has not got it, before anything is made and anybody asked. */
static void refusals(struct suite *t)
{
	static const struct {
		uint32_t cap;
		void (*ask)(struct cm_spec *spec);
	} wants[] = {
		{ CM_CAP_LIMIT_MEMORY, ask_memory }, { CM_CAP_LIMIT_PIDS, ask_pids },
		{ CM_CAP_NETWORK_NONE, ask_none },   { CM_CAP_NETWORK_INTERNET, ask_internet },
		{ CM_CAP_NETWORK_HOST, ask_host },   { CM_CAP_LEVEL, ask_level },
		{ CM_CAP_ROOTFS, ask_rootfs },	     { CM_CAP_HOST_FILES, ask_workspace },
		{ CM_CAP_ROOT_USER, ask_root },	     { CM_CAP_LABELS, ask_label },
		{ CM_CAP_TEMPLATE, ask_template },   { CM_CAP_TEARDOWN, ask_teardown },
	};
	int before = t->port != 0 ? n_requests(t) : 0;
	unsigned int n = 0;

	for (size_t i = 0; i < CM_ARRAY_SIZE(wants); i++) {
		struct cm_call call = suite_call(SUITE_MS);
		struct cm_error err = CM_ERROR_INIT;
		struct cm_session *s = NULL;
		struct cm_spec spec;
		char name[64];
		int r;

		if ((t->caps & wants[i].cap) != 0)
			continue;
		n++;
		suite_name(t, name);
		suite_spec(t, name, &spec);
		wants[i].ask(&spec);
		r = cm_session_create(t->p, &spec, &call, &s, &err);
		cm_spec_clear(&spec);
		CHECK_CODE(t, r, err, CM_E_UNSUPPORTED, cm_cap_text(wants[i].cap));
		CHECK(t, !s && err.hint[0] != '\0', "it was made, or there is no hint");
	}
	CHECK(t, n > 0, "there was nothing to refuse");
	if (t->port != 0)
		CHECK(t, n_requests(t) == before, "the service was asked");
}

static void good_after_bad(struct suite *t)
{
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_session *s = NULL;
	struct cm_spec spec;
	char name[64];
	int r;

	suite_name(t, name);
	suite_spec(t, name, &spec);
	spec.workspace_kind = CM_WORKSPACE_DIR;
	spec.workspace = cm_strdup("/not/there/at/all");
	r = cm_session_create(t->p, &spec, &call, &s, &err);
	cm_spec_clear(&spec);
	CHECK(t, r < 0 && err.code == r && err.msg[0] && !s, "a workspace that is not there: %s",
	      cm_error_name(r));
	err = (struct cm_error)CM_ERROR_INIT;
	r = cm_session_attach(t->p, name, &call, &s, &err);
	CHECK_CODE(t, r, err, CM_E_NOT_FOUND, "it is not there");
	s = suite_create(t, name);
	if (s)
		suite_sh_is(t, s, "echo good", "good\n");
	suite_end(t, s);
}

static void bad_names(struct suite *t)
{
	static const char *const names[] = { "", "../x", "-x", ".x", "a/b", "a b", "\xc3\xa4" };
	char long_name[140];
	int before = t->port != 0 ? n_requests(t) : 0;

	memset(long_name, 'a', sizeof(long_name));
	long_name[129] = '\0';
	for (size_t i = 0; i <= CM_ARRAY_SIZE(names); i++) {
		const char *name = i < CM_ARRAY_SIZE(names) ? names[i] : long_name;
		struct cm_call call = suite_call(SUITE_MS);
		struct cm_error err = CM_ERROR_INIT;
		struct cm_session *s = NULL;
		struct cm_spec spec;
		int r;

		suite_spec(t, name, &spec);
		r = cm_session_create(t->p, &spec, &call, &s, &err);
		cm_spec_clear(&spec);
		CHECK_CODE(t, r, err, CM_E_INVALID, name);
		CHECK(t, !s, "it was made");
		r = cm_session_attach(t->p, name, &call, &s, &err);
		CHECK_CODE(t, r, err, CM_E_INVALID, name);
	}
	if (t->port != 0)
		CHECK(t, n_requests(t) == before, "somebody was asked");
}

const struct test suite_refusals[] = {
	{ "L10: what it cannot do is refused before anything is made", 0, refusals },
	{ "L10 L11: after one that failed a good one works", CM_CAP_HOST_FILES, good_after_bad },
	{ "names that are none", 0, bad_names },
	{ NULL, 0, NULL },
};
