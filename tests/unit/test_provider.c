/* SPDX-License-Identifier: Apache-2.0 */
/* The functions over the vtable: what they refuse, and what they make of an implementer's faults. */
#include "tests/unit/test_base.h"

#include "providers/registry.h"
#include "runtime/base/clock.h"
#include "runtime/spec/keys.h"
#include "runtime/spec/merge.h"
#include "runtime/spec/spec_flags.h"

#define NO_DEADLINE                                                                                \
	{                                                                                          \
		.deadline_ms = INT64_MAX, .cancel_fd = -1                                          \
	}

struct fake {
	struct cm_provider base;
	/* calls that reached it */
	int n_calls;
	/* what it answers, and whether with a message */
	int answer;
	bool is_mute;
};

static struct fake the_fake;
static struct cm_session the_session;

static int answer(struct cm_error *err)
{
	the_fake.n_calls++;
	if (the_fake.answer < 0 && !the_fake.is_mute)
		return cm_error_set(err, the_fake.answer, 0, "it said no");
	return the_fake.answer;
}

static int fake_open(const struct cm_provider_config *config, struct cm_provider **ret,
		     struct cm_error *err)
{
	(void)config;
	(void)err;
	*ret = &the_fake.base;
	return CM_OK;
}

static void fake_close(struct cm_provider *p)
{
	(void)p;
}

static int fake_probe(struct cm_provider *p, const struct cm_call *call, uint32_t *ret_caps,
		      struct cm_error *err)
{
	(void)p;
	(void)call;
	/* more than the table says */
	*ret_caps = UINT32_MAX;
	return answer(err);
}

static int fake_create(struct cm_provider *p, const struct cm_spec *spec,
		       const struct cm_call *call, struct cm_session **ret, struct cm_error *err)
{
	(void)spec;
	(void)call;
	the_session.provider = p;
	*ret = &the_session;
	return answer(err);
}

static int fake_stop(struct cm_session *s, const struct cm_call *call, struct cm_error *err)
{
	(void)s;
	(void)call;
	return answer(err);
}

static int fake_exec(struct cm_session *s, const struct cm_exec_request *request,
		     const struct cm_call *call, struct cm_exec **ret, struct cm_error *err)
{
	(void)s;
	(void)request;
	(void)call;
	*ret = NULL;
	return answer(err);
}

static int fake_url(struct cm_session *s, const char *path, uint32_t flags, uint64_t lifetime_ms,
		    const struct cm_call *call, char **ret, int64_t *ret_end_ms,
		    struct cm_error *err)
{
	static char text[] = "https://there";

	(void)s;
	(void)path;
	(void)call;
	assert_int_equal(flags, CM_URL_WRITE);
	*ret = text;
	*ret_end_ms = (int64_t)lifetime_ms;
	return answer(err);
}

static const struct cm_provider_ops fake_ops = {
	.abi = CM_PROVIDER_ABI,
	.name = "fake",
	.caps = CM_CAP_NETWORK_INTERNET | CM_CAP_FILES | CM_CAP_FILE_URL | CM_CAP_EXEC_TIMEOUT,
	.open = fake_open,
	.close = fake_close,
	.probe = fake_probe,
	.session_create = fake_create,
	.session_stop = fake_stop,
	.exec_start = fake_exec,
	.file_url = fake_url,
};

const struct cm_provider_ops *const cm_provider_tables[] = { &fake_ops, NULL };

static int set_up(void **state)
{
	struct cm_provider_config config = { NULL };

	the_fake = (struct fake){ .answer = CM_OK };
	if (cm_provider_open(cm_provider_find("fake"), &config, (struct cm_provider **)state,
			     NULL) != CM_OK)
		return -1;
	the_session = (struct cm_session){ .provider = &the_fake.base };
	return 0;
}

static void read_spec(const char *const *argv, int argc, struct cm_spec *spec)
{
	CM_AUTO_LAYER struct cm_layer flags = { 0 };
	struct cm_caller caller = { .cwd = "/", .home = "/" };
	struct cm_merge m = { .spec = spec, .caller = &caller, .is_asked = true };

	cm_spec_init(spec);
	assert_int_equal(cm_flags_parse(argc, (char *const *)(uintptr_t)argv, &flags, NULL), CM_OK);
	assert_int_equal(cm_merge_layer(&m, &flags, NULL), CM_OK);
	cm_merge_clear(&m);
}

/* the options, and what of it is missing: a part of the message, or NULL */
static const struct row {
	const char *argv[8];
	const char *missing;
} rows[] = {
	{ { "--no-workspace", "--network", "internet" }, NULL },
	{ { "--session", "s", "--network", "internet" }, NULL },
	{ { "--session", "s" }, "a session without network" },
	{ { "--session", "s", "--network", "host" }, "this host's network" },
	{ { "--session", "s", "--network", "internet", "--setup-network", "host" },
	  "this host's network" },
	{ { "--network", "internet" }, "files of this host" },
	{ { "--network", "internet", "--keep" }, "files of this host" },
	{ { "--no-workspace", "--network", "internet", "--max-sessions", "3" }, "a number of" },
	{ { "--session", "s", "--network", "internet", "--retention", "older-than=1d" },
	  "an end of sessions" },
	{ { "--network", "internet", "--workspace", "/srv" }, "files of this host" },
	{ { "--no-workspace", "--network", "internet", "-v", "/srv" }, "files of this host" },
	{ { "--no-workspace", "--network", "internet", "--memory", "1G" }, "a memory limit" },
	/* who says that it may be missing is not refused */
	{ { "--no-workspace", "--network", "internet", "--memory", "1G?" }, NULL },
	{ { "--no-workspace", "--network", "internet", "--memory", "unlimited" }, NULL },
	{ { "--no-workspace", "--network", "internet", "--timeout", "5s" }, NULL },
	{ { "--no-workspace", "--network", "internet", "--git", "pinned" }, "a .git" },
	{ { "--no-workspace", "--network", "internet", "--git", "rw" }, NULL },
	{ { "--no-workspace", "--network", "internet", "--min-level", "no-cgroup" }, "a level" },
	{ { "--no-workspace", "--network", "internet", "--user", "root" }, "commands as root" },
	{ { "--no-workspace", "--network", "internet", "--rootfs", "/srv" }, "a root file system" },
	{ { "--no-workspace", "--network", "internet", "--template", "t" }, "build a template" },
	{ { "--no-workspace", "--network", "internet", "-d" }, "leave a command running" },
	{ { "--network", "internet", "--repo", "https://example.org/x" }, "check out" },
};

static void test_needs(void **state)
{
	struct cm_provider *p = *state;
	const struct cm_call call = NO_DEADLINE;

	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		struct cm_error err = CM_ERROR_INIT;
		struct cm_session *s = NULL;
		struct cm_spec spec;
		int argc = 0;
		int r;

		while (argc < (int)CM_ARRAY_SIZE(rows[i].argv) && rows[i].argv[argc])
			argc++;
		read_spec(rows[i].argv, argc, &spec);
		the_fake.n_calls = 0;
		r = cm_session_create(p, &spec, &call, &s, &err);
		if (r != (rows[i].missing ? CM_E_UNSUPPORTED : CM_OK) ||
		    (rows[i].missing && (!strstr(err.msg, rows[i].missing) || err.hint[0] == '\0')))
			fail_msg("row %zu: %d: %s", i, r, err.msg);
		/* before anything is made */
		assert_int_equal(the_fake.n_calls, rows[i].missing ? 0 : 1);
		cm_spec_clear(&spec);
	}
}

/* The bits of a table, and not what a probe makes up. */
static void test_probe_is_bounded(void **state)
{
	struct cm_provider *p = *state;
	const struct cm_call call = NO_DEADLINE;
	uint32_t caps = 0;

	assert_int_equal(cm_provider_probe(p, &call, &caps, NULL), CM_OK);
	assert_int_equal(caps, fake_ops.caps);
}

static void test_over_already(void **state)
{
	struct cm_call call = NO_DEADLINE;
	struct cm_error err = CM_ERROR_INIT;
	int ends[2];

	(void)state;
	call.deadline_ms = cm_clock_mono_ms() - 1;
	assert_int_equal(cm_session_stop(&the_session, &call, &err), CM_E_TIMEOUT);
	assert_true(err.msg[0] != '\0');
	assert_int_equal(pipe(ends), 0);
	call = (struct cm_call){ .deadline_ms = INT64_MAX, .cancel_fd = ends[0] };
	assert_int_equal(cm_session_stop(&the_session, &call, &err), CM_OK);
	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_int_equal(cm_session_stop(&the_session, &call, &err), CM_E_CANCELLED);
	assert_int_equal(the_fake.n_calls, 1);
	(void)close(ends[0]);
	(void)close(ends[1]);
}

static void test_absent(void **state)
{
	const struct cm_call call = NO_DEADLINE;
	struct cm_error err = CM_ERROR_INIT;
	char *text = NULL;

	(void)state;
	assert_int_equal(cm_session_start(&the_session, &call, &err), CM_E_UNSUPPORTED);
	assert_string_equal(err.msg, "provider 'fake' cannot start a session");
	assert_int_equal(cm_session_snapshot(&the_session, "x", &call, &text, &err),
			 CM_E_UNSUPPORTED);
	/* the bit without the slot */
	assert_int_equal(cm_session_remove(&the_session, "x", 0, &call, &err), CM_E_UNSUPPORTED);
	assert_null(text);
}

/* A failure has its own code and a message, or it is a bug that is named. */
static void test_contract(void **state)
{
	const struct cm_call call = NO_DEADLINE;
	struct cm_error err = CM_ERROR_INIT;

	(void)state;
	the_fake.answer = CM_E_REMOTE;
	assert_int_equal(cm_session_stop(&the_session, &call, &err), CM_E_REMOTE);
	assert_string_equal(err.msg, "it said no");
	cm_error_clear(&err);
	the_fake.is_mute = true;
	assert_int_equal(cm_session_stop(&the_session, &call, &err), CM_E_BUG);
	assert_string_equal(err.msg, "provider 'fake' failed to stop a session without a reason");
	/* and what is no code is success alone */
	the_fake.answer = 1;
	assert_int_equal(cm_session_stop(&the_session, &call, &err), CM_OK);
}

static void test_exec_needs(void **state)
{
	static char name[] = "true";
	char *argv[] = { name, NULL };
	char *none[] = { NULL };
	const struct cm_call call = NO_DEADLINE;
	struct cm_exec_request request = { .argv = argv, .timeout_ms = 5 };
	struct cm_error err = CM_ERROR_INIT;
	struct cm_exec *exec = NULL;

	(void)state;
	assert_int_equal(cm_exec_start(&the_session, &request, &call, &exec, &err), CM_OK);
	request.wants_tty = true;
	assert_int_equal(cm_exec_start(&the_session, &request, &call, &exec, &err),
			 CM_E_UNSUPPORTED);
	assert_string_equal(err.msg, "provider 'fake' cannot give a command a terminal");
	request = (struct cm_exec_request){ .argv = argv, .has_input = true };
	assert_int_equal(cm_exec_start(&the_session, &request, &call, &exec, &err),
			 CM_E_UNSUPPORTED);
	request = (struct cm_exec_request){ .argv = none };
	assert_int_equal(cm_exec_start(&the_session, &request, &call, &exec, &err), CM_E_INVALID);
	assert_int_equal(the_fake.n_calls, 1);
}

static int url_of(const char *path, uint64_t lifetime_ms, char **ret, int64_t *ret_end_ms,
		  struct cm_error *err)
{
	const struct cm_call call = NO_DEADLINE;

	cm_error_clear(err);
	return cm_session_file_url(&the_session, path, CM_URL_WRITE, lifetime_ms, &call, ret,
				   ret_end_ms, err);
}

static void test_file_url(void **state)
{
	struct cm_error err = CM_ERROR_INIT;
	char *url = NULL;
	int64_t end_ms = -1;

	(void)state;
	/* what is refused reaches nobody */
	assert_int_equal(url_of("", 0, &url, &end_ms, &err), CM_E_INVALID);
	assert_string_equal(err.msg, "cannot give an address for a file: the path is empty");
	assert_int_equal(url_of("f", 1, &url, &end_ms, &err), CM_E_INVALID);
	assert_int_equal(url_of("f", 999, &url, &end_ms, &err), CM_E_INVALID);
	assert_string_equal(err.msg, "cannot give an address for a file for 999 ms");
	assert_true(err.hint[0] != '\0');
	the_fake.base.caps &= ~(uint32_t)CM_CAP_FILE_URL;
	assert_int_equal(url_of("f", 0, &url, &end_ms, &err), CM_E_UNSUPPORTED);
	assert_string_equal(err.msg, "provider 'fake' cannot give an address for a file");
	assert_non_null(strstr(err.hint, "casemate file read"));
	assert_int_equal(the_fake.n_calls, 0);
	assert_null(url);
	assert_int_equal(end_ms, -1);
	the_fake.base.caps |= CM_CAP_FILE_URL;
	assert_int_equal(url_of("f", 0, &url, &end_ms, &err), CM_OK);
	assert_int_equal(url_of("f", 1000, &url, &end_ms, &err), CM_OK);
	assert_string_equal(url, "https://there");
	assert_int_equal(end_ms, 1000);
	the_fake.answer = CM_E_REMOTE;
	the_fake.is_mute = true;
	assert_int_equal(url_of("f", 0, &url, &end_ms, &err), CM_E_BUG);
}

static void test_names(void **state)
{
	char buf[CM_CAP_NAME_SIZE];

	(void)state;
	assert_string_equal(cm_cap_name(CM_CAP_NETWORK_NONE, buf), "network-none");
	assert_string_equal(cm_cap_name(CM_CAP_TTY, buf), "tty");
	assert_string_equal(cm_cap_name(CM_CAP_FILE_URL, buf), "file-url");
	assert_string_equal(cm_cap_name(0, buf), "");
	assert_string_equal(cm_cap_text(CM_CAP_TTY | CM_CAP_PUBLISH), "give a command a terminal");
	assert_null(cm_provider_find("fak"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_needs, set_up),
		cmocka_unit_test_setup(test_probe_is_bounded, set_up),
		cmocka_unit_test_setup(test_over_already, set_up),
		cmocka_unit_test_setup(test_absent, set_up),
		cmocka_unit_test_setup(test_contract, set_up),
		cmocka_unit_test_setup(test_exec_needs, set_up),
		cmocka_unit_test_setup(test_file_url, set_up),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
