/* SPDX-License-Identifier: Apache-2.0 */
/* state.json: there and back, damage, other versions. */
#include "tests/unit/test_store_env.h"

static char *text(const char *s)
{
	char *copy = cm_strdup(s);

	assert_non_null(copy);
	return copy;
}

/* Every member set to something that is not its default. */
static void full_record(struct cm_session_record *r)
{
	cm_session_record_init(r);
	r->id = text("a");
	r->root = text("/srv/boxes");
	r->is_temporary = true;
	r->created_ms = 1764449546123;
	r->generation = 41;
	r->workspace_kind = CM_WORKSPACE_REPO;
	r->workspace = text("/home/u/w \"x\"\n");
	r->is_workspace_read_only = true;
	r->repo = text("https://example.org/r.git");
	r->ref = text("refs/heads/main");
	r->pr = 42;
	r->branch = text("fix/login");
	r->base = text("v1.2");
	r->depth = 3;
	r->checkout = text("/srv/boxes/a/r");
	r->is_checkout_done = true;
	r->is_update_begun = true;
	r->network = CM_NETWORK_HOST;
	r->rootfs = text("/srv/fs");
	r->user = CM_USER_ROOT;
	r->git = CM_GIT_RW;
	r->slot = 17;
	r->agent_id = 1880000000;
	r->settings_json = text("{\"memory\":\"4G\"}");
	r->setup_state = CM_SETUP_FAILED;
	r->setup_digest = text("sha256:00");
	r->setup_exit = -3;
	r->setup_ms = 99;
	r->setup_took_ms = 98;
	r->setup_begun_ms = 97;
	r->setup_json = text("{\"commands\":[\"npm ci\"]}");
	r->env_json = text("{\"env\":[\"A=1\"],\"pass\":[]}");
	r->teardown_json = text("[\"down\"]");
	r->level = text("full-single-id");
	r->enforced_json = text("{\"memory\":\"cgroup v1\"}");
	r->socket = text("/run/casemate/s/0123");
	assert_int_equal(cm_strv_add(&r->labels, "team=web \"x\""), CM_OK);
	assert_int_equal(cm_strv_add(&r->labels, "empty="), CM_OK);
	r->unknown_json = text("\"later\":{\"a\":[1,2.5,null,true,\"x\"]},\"other\":-7");
}

static char *format(const struct cm_session_record *r)
{
	struct cm_buf b;
	char *out;

	cm_buf_init(&b, 1 << 20);
	assert_int_equal(cm_record_format(r, &b), CM_OK);
	out = cm_buf_take(&b);
	assert_non_null(out);
	return out;
}

static void test_round_trip(void **state)
{
	struct cm_session_record a;
	struct cm_session_record b;
	struct cm_session_record c;
	char *first;
	char *second;

	(void)state;
	full_record(&a);
	first = format(&a);
	assert_int_equal(cm_record_parse(first, strlen(first), "a", &b, NULL), CM_OK);
	assert_string_equal(b.workspace, a.workspace);
	assert_string_equal(b.settings_json, a.settings_json);
	assert_string_equal(b.unknown_json, a.unknown_json);
	assert_int_equal(b.version, 1);
	assert_int_equal(b.generation, 41);
	assert_int_equal(b.network, CM_NETWORK_HOST);
	assert_int_equal(b.workspace_kind, CM_WORKSPACE_REPO);
	assert_int_equal(b.user, CM_USER_ROOT);
	assert_int_equal(b.git, CM_GIT_RW);
	assert_string_equal(b.branch, "fix/login");
	assert_string_equal(b.base, "v1.2");
	assert_int_equal(b.pr, 42);
	assert_int_equal(b.depth, 3);
	assert_int_equal(b.slot, 17);
	assert_int_equal(b.agent_id, 1880000000);
	assert_int_equal(b.setup_state, CM_SETUP_FAILED);
	assert_int_equal(b.setup_exit, -3);
	assert_string_equal(b.teardown_json, "[\"down\"]");
	assert_int_equal(b.setup_begun_ms, 97);
	assert_string_equal(b.setup_json, "{\"commands\":[\"npm ci\"]}");
	assert_string_equal(b.env_json, "{\"env\":[\"A=1\"],\"pass\":[]}");
	assert_int_equal(b.labels.n, 2);
	assert_string_equal(b.labels.v[0], "team=web \"x\"");
	assert_string_equal(b.labels.v[1], "empty=");
	assert_true(b.is_temporary && b.is_checkout_done && b.is_update_begun &&
		    b.is_workspace_read_only);
	assert_int_equal(cm_record_copy(&c, &b), CM_OK);
	second = format(&c);
	assert_string_equal(first, second);
	free(first);
	free(second);
	cm_session_record_clear(&a);
	cm_session_record_clear(&b);
	cm_session_record_clear(&c);
}

static void test_empty_record(void **state)
{
	struct cm_session_record r = env_record("a");
	struct cm_session_record back;
	char *out;

	(void)state;
	r.root = (char *)(uintptr_t) "/r";
	out = format(&r);
	assert_int_equal(cm_record_parse(out, strlen(out), "a", &back, NULL), CM_OK);
	assert_null(back.workspace);
	assert_null(back.unknown_json);
	assert_int_equal(back.slot, CM_SLOT_NONE);
	assert_int_equal(back.workspace_kind, CM_WORKSPACE_DEFAULT);
	cm_session_record_clear(&back);
	free(out);
}

/* Cut anywhere it is refused, except where only the line end is gone. */
static void test_every_truncation(void **state)
{
	struct cm_session_record a;
	char *out;
	size_t len;

	(void)state;
	full_record(&a);
	out = format(&a);
	len = strlen(out);
	for (size_t n = 0; n < len - 1; n++) {
		struct cm_session_record r = { .generation = 5 };
		struct cm_error err = CM_ERROR_INIT;

		assert_int_equal(cm_record_parse(out, n, "a", &r, &err), CM_E_PROTOCOL);
		assert_non_null(strstr(err.msg, "'a'"));
		assert_non_null(strstr(err.hint, "casemate rm a"));
		/* written on success only */
		assert_int_equal(r.generation, 5);
	}
	free(out);
	cm_session_record_clear(&a);
}

/* Each byte replaced by several others: refused, or what was written. */
static void test_every_byte_flipped(void **state)
{
	static const unsigned char masks[] = { 0x01, 0x02, 0x10, 0x20, 0x80, 0xff };
	struct cm_session_record a;
	unsigned int n_refused = 0;
	unsigned int n_all = 0;
	char *written;
	char *out;
	size_t len;

	(void)state;
	full_record(&a);
	out = format(&a);
	written = text(out);
	len = strlen(out);
	for (size_t i = 0; i < len; i++)
		for (size_t m = 0; m < CM_ARRAY_SIZE(masks); m++, n_all++) {
			struct cm_session_record r;
			char *again;

			out[i] = (char)((unsigned char)out[i] ^ masks[m]);
			if (cm_record_parse(out, len, "a", &r, NULL) == CM_OK) {
				/* of the checksum's own name */
				free(r.unknown_json);
				r.unknown_json = text(a.unknown_json);
				again = format(&r);
				assert_string_equal(again, written);
				free(again);
				cm_session_record_clear(&r);
			} else {
				n_refused++;
			}
			out[i] = (char)((unsigned char)out[i] ^ masks[m]);
		}
	assert_true(n_refused > n_all / 10 * 9);
	free(written);
	free(out);
	cm_session_record_clear(&a);
}

static void test_refused_texts(void **state)
{
	static const char *const texts[] = {
		"[]",
		"null",
		"{}",
		"{\"v\":1}",
		"{\"v\":0,\"id\":\"a\",\"root\":\"/r\"}",
		"{\"v\":-1,\"id\":\"a\",\"root\":\"/r\"}",
		"{\"v\":\"1\",\"id\":\"a\",\"root\":\"/r\"}",
		"{\"v\":1,\"id\":\"b\",\"root\":\"/r\"}",
		"{\"v\":1,\"id\":\"a\",\"root\":\"r\"}",
		"{\"v\":1,\"id\":\"a\"}",
		"{\"v\":1,\"id\":\"a\",\"root\":\"/r\",\"network\":\"wormhole\"}",
		"{\"v\":1,\"id\":\"a\",\"root\":\"/r\",\"generation\":-1}",
		"{\"v\":1,\"id\":\"a\",\"root\":\"/r\",\"slot\":4294967296}",
		"{\"v\":1,\"id\":\"a\",\"root\":\"/r\",\"setup_exit\":2147483648}",
		"{\"v\":1,\"id\":\"a\",\"root\":\"/r\",\"temporary\":1}",
		"{\"v\":1,\"id\":\"a\",\"root\":\"/r\",\"repo\":null}",
		"{\"v\":1,\"id\":\"a\",\"root\":\"/r\",\"id\":\"a\"}",
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(texts); i++) {
		struct cm_session_record r;

		if (cm_record_parse(texts[i], strlen(texts[i]), "a", &r, NULL) != CM_E_PROTOCOL)
			fail_msg("taken: %s", texts[i]);
	}
}

static void put_state(struct env *e, const char *id, const char *content)
{
	char path[160];

	(void)snprintf(path, sizeof(path), "sessions/%s/state.json", id);
	assert_int_equal(
		cm_replace_file_at(e->store.state_fd, path, content, strlen(content), 0600, false),
		0);
}

static void test_unknown_members_survive(void **state)
{
	struct env *e = *state;
	struct cm_store_session s;
	char out[4096];

	env_make(e, "a");
	put_state(
		e, "a",
		"{\"v\":1,\"colour\":\"red\",\"id\":\"a\",\"root\":\"/r\",\"deep\":{\"l\":[{}]}}");
	assert_int_equal(cm_store_session_open(&e->store, "a", true, 0, &s, NULL), CM_OK);
	s.record.generation = 9;
	assert_int_equal(cm_store_session_save(&s, true, NULL), CM_OK);
	assert_true(cm_read_file_at(s.dir_fd, "state.json", out, sizeof(out)) > 0);
	assert_non_null(strstr(out, "\"colour\":\"red\""));
	assert_non_null(strstr(out, "\"deep\":{\"l\":[{}]}"));
	assert_non_null(strstr(out, "\"generation\":9"));
	cm_store_session_close(&s);
	assert_int_equal(cm_store_session_open(&e->store, "a", false, 0, &s, NULL), CM_OK);
	assert_string_equal(s.record.unknown_json, "\"colour\":\"red\",\"deep\":{\"l\":[{}]}");
	cm_store_session_close(&s);
}

/* A newer file is read as far as it goes, never written, and can be removed. */
static void test_newer_schema(void **state)
{
	static const char newer[] = "{\"v\":2,\"id\":\"a\",\"root\":\"/r\",\"network\":\"warp\","
				    "\"repo\":[\"x\"],\"generation\":3}";
	struct env *e = *state;
	struct cm_store_session s;
	struct cm_error err = CM_ERROR_INIT;
	char out[256];

	env_make(e, "a");
	put_state(e, "a", newer);
	assert_int_equal(cm_store_session_open(&e->store, "a", true, 0, &s, NULL), CM_OK);
	assert_int_equal(s.record.version, 2);
	assert_int_equal(s.record.generation, 3);
	assert_null(s.record.repo);
	assert_int_equal(cm_store_session_save(&s, true, &err), CM_E_UNSUPPORTED);
	assert_non_null(strstr(err.msg, "newer casemate"));
	assert_true(err.hint[0] != '\0');
	assert_true(cm_read_file_at(s.dir_fd, "state.json", out, sizeof(out)) > 0);
	assert_string_equal(out, newer);
	assert_int_equal(cm_store_session_remove(&e->store, &s, false, NULL), CM_OK);
	cm_store_session_close(&s);
	assert_int_equal(env_count(e), 0);
}

static void test_damaged_can_be_removed(void **state)
{
	struct env *e = *state;
	struct cm_store_session s;
	struct cm_error err = CM_ERROR_INIT;

	env_make(e, "a");
	for (int round = 0; round < 2; round++) {
		if (round == 0)
			put_state(e, "a", "{\"v\":1,");
		else
			assert_int_equal(unlinkat(e->store.state_fd, "sessions/a/state.json", 0),
					 0);
		assert_int_equal(cm_store_session_open(&e->store, "a", true, 0, &s, &err),
				 CM_E_PROTOCOL);
		assert_non_null(strstr(err.hint, "casemate rm a"));
		/* the failed open has let go of the lock */
		assert_int_equal(cm_store_session_open_as(&e->store, "a",
							  CM_STORE_CHANGE | CM_STORE_DAMAGED, 0, &s,
							  NULL),
				 CM_OK);
		assert_string_equal(s.record.id, "a");
		if (round == 1)
			assert_int_equal(cm_store_session_remove(&e->store, &s, false, NULL),
					 CM_OK);
		cm_store_session_close(&s);
	}
	assert_int_equal(env_count(e), 0);
}

static void test_large_state(void **state)
{
	struct env *e = *state;
	struct cm_store_session s;
	struct cm_error err = CM_ERROR_INIT;
	char *big = malloc(1200000);

	assert_non_null(big);
	env_make(e, "a");
	memset(big, 'x', 1199999);
	big[100000] = '\0';
	assert_int_equal(cm_store_session_open(&e->store, "a", true, 0, &s, NULL), CM_OK);
	s.record.settings_json = text(big);
	assert_int_equal(cm_store_session_save(&s, false, NULL), CM_OK);
	cm_store_session_close(&s);
	assert_int_equal(cm_store_session_open(&e->store, "a", true, 0, &s, NULL), CM_OK);
	assert_string_equal(s.record.settings_json, big);
	/* one that nobody could read again is not written */
	big[100000] = 'x';
	big[1199999] = '\0';
	free(s.record.settings_json);
	s.record.settings_json = text(big);
	assert_int_equal(cm_store_session_save(&s, false, &err), CM_E_LIMIT);
	cm_store_session_close(&s);
	assert_int_equal(cm_store_session_open(&e->store, "a", false, 0, &s, NULL), CM_OK);
	assert_int_equal(strlen(s.record.settings_json), 100000);
	cm_store_session_close(&s);
	put_state(e, "a", big);
	assert_int_equal(cm_store_session_open(&e->store, "a", false, 0, &s, NULL), CM_E_PROTOCOL);
	free(big);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_empty_record),
		cmocka_unit_test(test_every_truncation),
		cmocka_unit_test(test_every_byte_flipped),
		cmocka_unit_test(test_refused_texts),
		cmocka_unit_test_setup_teardown(test_unknown_members_survive, env_setup,
						env_teardown),
		cmocka_unit_test_setup_teardown(test_newer_schema, env_setup, env_teardown),
		cmocka_unit_test_setup_teardown(test_damaged_can_be_removed, env_setup,
						env_teardown),
		cmocka_unit_test_setup_teardown(test_large_state, env_setup, env_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
