/* SPDX-License-Identifier: Apache-2.0 */
/* The status function over all combinations of what it sees. */
#include "tests/unit/test_store_env.h"

#define LONG_AGO 1
#define NOW 2

/* The rules again, as a decision list: first line that matches. -1: any value. */
struct rule {
	int is_alive;
	int setup;
	/* -1 any, 0 never started, 1 started */
	int was_started;
	/* end record: -1 any, 0 none or of another generation, else the reason */
	int end;
	enum cm_session_status status;
};

static const struct rule rules[] = {
	{ 1, -1, -1, -1, CM_STATUS_RUNNING },
	{ 0, CM_SETUP_FAILED, -1, -1, CM_STATUS_ERROR },
	{ 0, -1, 0, -1, CM_STATUS_CREATED },
	{ 0, -1, 1, CM_ENDED_START_FAILED, CM_STATUS_ERROR },
	{ 0, -1, 1, CM_ENDED_STOPPED, CM_STATUS_STOPPED },
	{ 0, -1, 1, CM_ENDED_INIT_DIED, CM_STATUS_STOPPED },
	{ 0, -1, 1, CM_ENDED_TEMPORARY, CM_STATUS_STOPPED },
	{ 0, -1, 1, CM_ENDED_IDLE, CM_STATUS_STOPPED },
	{ 0, -1, 1, CM_ENDED_LIFETIME, CM_STATUS_STOPPED },
	/* power cut, or kill -9 of the keeper */
	{ 0, -1, 1, 0, CM_STATUS_STOPPED },
};

static enum cm_session_status expected(bool is_alive, int setup, bool was_started, int end)
{
	for (size_t i = 0; i < CM_ARRAY_SIZE(rules); i++) {
		const struct rule *r = &rules[i];

		if ((r->is_alive < 0 || r->is_alive == (int)is_alive) &&
		    (r->setup < 0 || r->setup == setup) &&
		    (r->was_started < 0 || r->was_started == (int)was_started) &&
		    (r->end < 0 || r->end == end))
			return r->status;
	}
	fail_msg("no rule");
	return 0;
}

static void check(bool is_alive, int setup, uint64_t generation, int reason, uint64_t end_of)
{
	struct cm_session_record record = env_record("a");
	struct cm_end_record end = { .magic = CM_END_RECORD_MAGIC,
				     .version = CM_END_RECORD_VERSION,
				     .generation = end_of,
				     .reason = (uint32_t)reason };
	int counts = reason != 0 && end_of == generation ? reason : 0;

	record.setup_state = (enum cm_setup_state)setup;
	record.generation = generation;
	assert_int_equal(cm_session_status(&record, is_alive, reason ? &end : NULL),
			 expected(is_alive, setup, generation > 0, counts));
}

static void test_all_combinations(void **state)
{
	int n = 0;

	(void)state;
	for (int alive = 0; alive < 2; alive++)
		for (int setup = CM_SETUP_NONE; setup <= CM_SETUP_FAILED; setup++)
			for (uint64_t generation = 0; generation <= NOW; generation += NOW)
				for (int reason = 0; reason < CM_ENDED_COUNT_; reason++)
					for (uint64_t of = LONG_AGO; of <= NOW; of++, n++)
						check(alive != 0, setup, generation, reason, of);
	assert_int_equal(n, 2 * 3 * 2 * CM_ENDED_COUNT_ * 2);
}

static void test_names(void **state)
{
	(void)state;
	assert_string_equal(cm_session_status_name(CM_STATUS_CREATED), "created");
	assert_string_equal(cm_session_status_name(CM_STATUS_RUNNING), "running");
	assert_string_equal(cm_session_status_name(CM_STATUS_STOPPED), "stopped");
	assert_string_equal(cm_session_status_name(CM_STATUS_ERROR), "error");
	assert_string_equal(cm_session_status_name((enum cm_session_status)99), "unknown");
}

/* The three come from the disk: one session through its life, as others see it. */
static void test_of_a_session(void **state)
{
	struct env *e = *state;
	struct cm_store_session s;
	struct cm_end_record end = { .generation = 1, .reason = CM_ENDED_STOPPED, .real_ms = 5 };
	struct cm_end_record got;
	int keeper = -1;

	assert_int_equal(env_create(e, "a", false, &s, NULL), CM_OK);
	assert_false(cm_store_keeper_alive(&s));
	assert_int_equal(cm_store_read_end(&s, &got), CM_E_NOT_FOUND);
	assert_int_equal(cm_store_keeper_lock(s.dir_fd, &keeper, NULL), CM_OK);
	assert_true(cm_store_keeper_alive(&s));
	cm_fd_close(&keeper);
	assert_false(cm_store_keeper_alive(&s));
	assert_int_equal(cm_store_write_end(s.dir_fd, &end), 0);
	assert_int_equal(cm_store_read_end(&s, &got), CM_OK);
	assert_int_equal(got.generation, 1);
	assert_int_equal(got.reason, CM_ENDED_STOPPED);
	assert_int_equal(got.real_ms, 5);
	cm_store_session_close(&s);
}

/* Looking never takes the lock: a keeper that starts meanwhile gets it each time. */
static void test_probe_does_not_disturb(void **state)
{
	struct env *e = *state;
	struct cm_store_session s;
	int status = 0;
	pid_t pid;

	assert_int_equal(env_create(e, "a", false, &s, NULL), CM_OK);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		for (;;)
			(void)cm_keeper_lock_is_held(s.dir_fd);
	for (int i = 0; i < 3000; i++) {
		int keeper = -1;
		struct cm_error err = CM_ERROR_INIT;
		int r = cm_store_keeper_lock(s.dir_fd, &keeper, &err);

		if (r != CM_OK)
			(void)kill(pid, SIGKILL);
		assert_int_equal(r, CM_OK);
		cm_fd_close(&keeper);
	}
	(void)kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	cm_store_session_close(&s);
}

static void test_one_keeper(void **state)
{
	struct env *e = *state;
	struct cm_store_session s;
	struct cm_error err = CM_ERROR_INIT;
	int first = -1;
	int second = -7;

	assert_int_equal(env_create(e, "a", false, &s, NULL), CM_OK);
	assert_int_equal(cm_store_keeper_lock(s.dir_fd, &first, NULL), CM_OK);
	assert_int_equal(cm_store_keeper_lock(s.dir_fd, &second, &err), CM_E_BUSY);
	assert_int_equal(second, -7);
	assert_true(err.hint[0] != '\0');
	cm_fd_close(&first);
	cm_store_session_close(&s);
}

static void write_end_bytes(const struct cm_store_session *s, const void *data, size_t len)
{
	assert_int_equal(cm_replace_file_at(s->dir_fd, "end", data, len, 0600, false), 0);
}

static void test_end_is_checked(void **state)
{
	struct env *e = *state;
	struct cm_store_session s;
	struct cm_end_record end = { .magic = CM_END_RECORD_MAGIC,
				     .version = CM_END_RECORD_VERSION,
				     .generation = 7,
				     .reason = CM_ENDED_INIT_DIED };
	struct cm_end_record got = { .generation = 1234 };
	char longer[sizeof(end) + 1] = "";
	unsigned int n_refused = 0;

	assert_int_equal(env_create(e, "a", false, &s, NULL), CM_OK);
	for (size_t len = 0; len < sizeof(end); len++) {
		write_end_bytes(&s, &end, len);
		assert_int_equal(cm_store_read_end(&s, &got), CM_E_NOT_FOUND);
	}
	memcpy(longer, &end, sizeof(end));
	write_end_bytes(&s, longer, sizeof(longer));
	assert_int_equal(cm_store_read_end(&s, &got), CM_E_NOT_FOUND);
	assert_int_equal(got.generation, 1234);
	for (size_t i = 0; i < sizeof(end); i++) {
		char flipped[sizeof(end)];

		memcpy(flipped, &end, sizeof(end));
		flipped[i] = (char)~flipped[i];
		write_end_bytes(&s, flipped, sizeof(flipped));
		if (cm_store_read_end(&s, &got) != CM_OK) {
			n_refused++;
			continue;
		}
		assert_true(got.reason > 0 && got.reason < CM_ENDED_COUNT_);
	}
	/* magic, version, reason */
	assert_int_equal(n_refused, 12);
	/* a link in its place is not followed */
	assert_int_equal(unlinkat(s.dir_fd, "end", 0), 0);
	assert_int_equal(symlinkat("/dev/zero", s.dir_fd, "end"), 0);
	assert_int_equal(cm_store_read_end(&s, &got), CM_E_NOT_FOUND);
	cm_store_session_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_combinations),
		cmocka_unit_test(test_names),
		cmocka_unit_test_setup_teardown(test_of_a_session, env_setup, env_teardown),
		cmocka_unit_test_setup_teardown(test_probe_does_not_disturb, env_setup,
						env_teardown),
		cmocka_unit_test_setup_teardown(test_one_keeper, env_setup, env_teardown),
		cmocka_unit_test_setup_teardown(test_end_is_checked, env_setup, env_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
