/* SPDX-License-Identifier: Apache-2.0 */
/* What this host remembers of remote sessions. */
#include "providers/remote/record.h"

#include "tests/unit/test_base.h"

#include "runtime/base/clock.h"

static struct cm_call soon(int64_t ms)
{
	return (struct cm_call){ .deadline_ms = cm_clock_mono_ms() + ms, .cancel_fd = -1 };
}

static void test_there_and_back(void **state)
{
	struct cm_records records = { open_scratch(state) };
	struct cm_record record = { { NULL, 0 }, { NULL, 0 } };
	struct cm_record back = { { NULL, 0 }, { NULL, 0 } };
	struct cm_error err = CM_ERROR_INIT;
	struct cm_strv ids = { 0 };
	struct stat st;

	assert_int_equal(cm_record_read(&records, "s1", &back, &err), CM_E_NOT_FOUND);
	assert_int_equal(cm_record_set(&record, CM_RECORD_PROVIDER_ID, "a=b\n\"c\"", &err), CM_OK);
	assert_int_equal(cm_record_set(&record, CM_RECORD_WORKDIR, "/w", &err), CM_OK);
	assert_int_equal(cm_record_set(&record, CM_RECORD_REPO, "x", &err), CM_OK);
	assert_int_equal(cm_record_set(&record, CM_RECORD_REPO, NULL, &err), CM_OK);
	assert_int_equal(cm_record_set(&record, CM_RECORD_CHECKOUT, NULL, &err), CM_OK);
	assert_int_equal(cm_strv_add(&record.labels, "k=v=w"), CM_OK);
	assert_int_equal(cm_record_write(&records, "s1", &record, &err), CM_OK);
	assert_int_equal(cm_record_write(&records, "a.json", &record, &err), CM_OK);
	make_file(records.dir_fd, "-x.json", "{}");
	make_file(records.dir_fd, "other", "{}");
	assert_int_equal(fstatat(records.dir_fd, "s1.json", &st, 0), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(cm_record_read(&records, "s1", &back, &err), CM_OK);
	assert_string_equal(cm_record_get(&back, CM_RECORD_PROVIDER_ID), "a=b\n\"c\"");
	assert_string_equal(cm_record_get(&back, CM_RECORD_WORKDIR), "/w");
	assert_null(cm_record_get(&back, CM_RECORD_REPO));
	assert_int_equal(back.labels.n, 1);
	assert_string_equal(back.labels.v[0], "k=v=w");
	assert_int_equal(cm_record_list(&records, &ids, &err), CM_OK);
	assert_int_equal(ids.n, 2);
	assert_string_equal(ids.v[0], "a.json");
	assert_string_equal(ids.v[1], "s1");
	assert_int_equal(cm_record_remove(&records, "s1", &err), CM_OK);
	assert_int_equal(cm_record_remove(&records, "s1", &err), CM_OK);
	assert_int_equal(cm_record_read(&records, "../s1", &record, &err), CM_E_INVALID);
	cm_strv_clear(&ids);
	cm_record_clear(&record);
	cm_record_clear(&back);
	cm_records_close(&records);
}

static void test_damaged(void **state)
{
	static const char *const texts[] = { "", "[]", "{\"a\":", "\"x\"", "{\"a\":1,\"a\":2}" };
	struct cm_records records = { open_scratch(state) };
	struct cm_record record = { { NULL, 0 }, { NULL, 0 } };
	struct cm_error err = CM_ERROR_INIT;

	for (size_t i = 0; i < CM_ARRAY_SIZE(texts); i++) {
		make_file(records.dir_fd, "bad.json", texts[i]);
		assert_int_equal(cm_record_read(&records, "bad", &record, &err), CM_E_PROTOCOL);
		assert_int_equal(record.values.n, 0);
	}
	/* what another version wrote, too */
	make_file(records.dir_fd, "new.json", "{\"a\":\"x\",\"b\":[1],\"c\":{},\"labels\":7}");
	assert_int_equal(cm_record_read(&records, "new", &record, &err), CM_OK);
	assert_string_equal(cm_record_get(&record, "a"), "x");
	assert_int_equal(record.values.n, 1);
	cm_record_clear(&record);
	cm_records_close(&records);
}

static void test_lock(void **state)
{
	struct cm_records records = { open_scratch(state) };
	struct cm_call call = soon(200);
	struct cm_error err = CM_ERROR_INIT;
	int fd = -1;
	int other = -1;
	int pipe_fds[2];
	pid_t pid;
	int status;

	assert_int_equal(cm_record_lock(&records, "s", &call, &fd, &err), CM_OK);
	assert_int_equal(cm_record_lock(&records, "s", &call, &other, &err), CM_E_TIMEOUT);
	assert_int_equal(other, -1);
	assert_int_equal(pipe(pipe_fds), 0);
	assert_int_equal(write(pipe_fds[1], "x", 1), 1);
	call = soon(10000);
	call.cancel_fd = pipe_fds[0];
	assert_int_equal(cm_record_lock(&records, "s", &call, &other, &err), CM_E_CANCELLED);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	call.cancel_fd = -1;
	/* one who waits gets it, though its file is taken away in between */
	pid = fork_child();
	if (pid == 0)
		_exit(cm_record_lock(&records, "s", &call, &other, NULL) == CM_OK ? 0 : 1);
	(void)usleep(150000);
	cm_record_unlock(&records, "s", &fd);
	assert_int_equal(fd, -1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(cm_record_lock(&records, "s", &call, &fd, &err), CM_OK);
	cm_record_unlock(&records, "s", &fd);
	cm_records_close(&records);
}

static void test_account(void **state)
{
	char a[CM_RECORD_ACCOUNT_SIZE];
	char b[CM_RECORD_ACCOUNT_SIZE];

	(void)state;
	assert_int_equal(cm_record_account("key", "https://a", a, NULL), CM_OK);
	assert_int_equal(strlen(a), 16);
	assert_int_equal(cm_record_account("key", "https://b", b, NULL), CM_OK);
	assert_string_not_equal(a, b);
	assert_int_equal(cm_record_account("yek", "https://a", b, NULL), CM_OK);
	assert_string_not_equal(a, b);
	assert_int_equal(cm_record_account("key", "https://a", b, NULL), CM_OK);
	assert_string_equal(a, b);
}

struct attempt {
	struct cm_records records;
};

static bool attempt(void *data)
{
	const struct attempt *a = data;
	struct cm_record record = { { NULL, 0 }, { NULL, 0 } };
	struct cm_record back = { { NULL, 0 }, { NULL, 0 } };
	struct cm_error err = CM_ERROR_INIT;
	int r = cm_record_set(&record, "a", "b", &err);

	if (r == CM_OK)
		r = cm_record_write(&a->records, "m", &record, &err);
	if (r == CM_OK)
		r = cm_record_read(&a->records, "m", &back, &err);
	cm_record_clear(&record);
	cm_record_clear(&back);
	assert_true(r == CM_OK || r == CM_E_NOMEM);
	return r == CM_OK;
}

static void test_no_memory(void **state)
{
	struct attempt a = { { open_scratch(state) } };

	assert_true(fail_each_allocation(attempt, &a) > 0);
	cm_records_close(&a.records);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_there_and_back, scratch_setup,
						scratch_teardown),
		cmocka_unit_test_setup_teardown(test_damaged, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_lock, scratch_setup, scratch_teardown),
		cmocka_unit_test(test_account),
		cmocka_unit_test_setup_teardown(test_no_memory, scratch_setup, scratch_teardown),
	};

	return cmocka_run_group_tests_name("remote_record", tests, NULL, NULL);
}
