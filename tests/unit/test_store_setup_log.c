/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test_base.h"

#include "runtime/store/setup_log.h"

#define KEPT (CM_SETUP_LOG_HEAD + CM_SETUP_LOG_TAIL)

/* The byte of a number, none of them like its neighbours. */
static char byte_of(uint64_t number)
{
	return (char)('a' + (number * 7 + number / 26) % 26);
}

static void add_bytes(struct cm_setup_log *log, uint64_t n, size_t step)
{
	char chunk[50000];
	uint64_t end = log->total + n;

	while (log->total < end) {
		size_t len = end - log->total < step ? (size_t)(end - log->total) : step;

		for (size_t i = 0; i < len; i++)
			chunk[i] = byte_of(log->total + i);
		cm_setup_log_add(log, chunk, len);
		assert_int_equal(log->error, 0);
	}
}

static void check_bytes(const char *text, uint64_t from, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		if (text[i] != byte_of(from + i))
			fail_msg("byte %llu is another", (unsigned long long)(from + i));
	}
}

/* What is kept of n bytes, read while the writer is still there. */
static void check_kept(int dir_fd, uint64_t n, size_t step)
{
	uint64_t missing = n > KEPT ? n - KEPT : 0;
	struct cm_setup_log log;
	struct cm_buf out;
	char line[80] = "";

	cm_buf_init(&out, 2 * KEPT);
	assert_int_equal(cm_setup_log_create(dir_fd, &log, NULL), CM_OK);
	add_bytes(&log, n, step);
	assert_int_equal(cm_setup_log_read(dir_fd, &out, NULL), CM_OK);
	if (missing > 0)
		(void)snprintf(line, sizeof(line), "\n[casemate: %llu bytes are missing here]\n",
			       (unsigned long long)missing);
	assert_int_equal(out.len, n - missing + strlen(line));
	if (missing > 0) {
		check_bytes(out.data, 0, CM_SETUP_LOG_HEAD);
		assert_memory_equal(out.data + CM_SETUP_LOG_HEAD, line, strlen(line));
		check_bytes(out.data + CM_SETUP_LOG_HEAD + strlen(line),
			    CM_SETUP_LOG_HEAD + missing, CM_SETUP_LOG_TAIL);
	} else if (n > 0) {
		check_bytes(out.data, 0, n);
	}
	cm_buf_clear(&out);
	cm_setup_log_close(&log);
}

static void test_keeps_both_ends(void **state)
{
	static const uint64_t sizes[] = {
		0,
		1,
		CM_SETUP_LOG_HEAD - 1,
		CM_SETUP_LOG_HEAD,
		CM_SETUP_LOG_HEAD + 1,
		KEPT - 1,
		KEPT,
		KEPT + 1,
		KEPT + 7777,
		2 * KEPT,
		3 * KEPT,
		3 * KEPT + 1,
	};
	CM_AUTO_FD int dir_fd = open_scratch(state);

	for (size_t i = 0; i < CM_ARRAY_SIZE(sizes); i++) {
		check_kept(dir_fd, sizes[i], 50000);
		check_kept(dir_fd, sizes[i], 4099);
	}
}

static void test_is_private_and_bounded(void **state)
{
	CM_AUTO_FD int dir_fd = open_scratch(state);
	struct cm_setup_log log;
	struct stat st;

	assert_int_equal(cm_setup_log_create(dir_fd, &log, NULL), CM_OK);
	add_bytes(&log, 5 * KEPT, 50000);
	assert_int_equal(fstatat(dir_fd, CM_STORE_SETUP_LOG, &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0600);
	assert_true(st.st_size <= (off_t)KEPT + 64);
	cm_setup_log_close(&log);
}

static void test_begins_anew(void **state)
{
	CM_AUTO_FD int dir_fd = open_scratch(state);
	struct cm_setup_log log;
	struct cm_buf out;

	cm_buf_init(&out, 100);
	assert_int_equal(cm_setup_log_create(dir_fd, &log, NULL), CM_OK);
	cm_setup_log_add(&log, "first of all", 12);
	cm_setup_log_close(&log);
	assert_int_equal(cm_setup_log_create(dir_fd, &log, NULL), CM_OK);
	cm_setup_log_add(&log, "again", 5);
	cm_setup_log_close(&log);
	assert_int_equal(cm_setup_log_read(dir_fd, &out, NULL), CM_OK);
	assert_string_equal(out.data, "again");
	cm_buf_clear(&out);
}

static void test_says_what_is_wrong(void **state)
{
	CM_AUTO_FD int dir_fd = open_scratch(state);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_setup_log log;
	struct cm_buf out;

	cm_buf_init(&out, 100);
	assert_int_equal(cm_setup_log_read(dir_fd, &out, &err), CM_E_NOT_FOUND);
	make_file(dir_fd, CM_STORE_SETUP_LOG, "something else altogether");
	assert_int_equal(cm_setup_log_read(dir_fd, &out, &err), CM_E_SYS);
	make_file(dir_fd, CM_STORE_SETUP_LOG, "short");
	assert_int_equal(cm_setup_log_read(dir_fd, &out, &err), CM_E_SYS);
	assert_int_equal(unlinkat(dir_fd, CM_STORE_SETUP_LOG, 0), 0);
	assert_int_equal(symlinkat("elsewhere", dir_fd, CM_STORE_SETUP_LOG), 0);
	assert_int_equal(cm_setup_log_read(dir_fd, &out, &err), CM_E_SYS);
	/* what lies in the way of one that begins is not followed either */
	assert_int_equal(cm_setup_log_create(dir_fd, &log, &err), CM_OK);
	cm_setup_log_close(&log);
	assert_int_equal(faccessat(dir_fd, "elsewhere", F_OK, 0), -1);
	/* where nothing can be kept, adding is no failure */
	assert_int_equal(cm_setup_log_create(-1, &log, &err), CM_E_SYS);
	cm_setup_log_add(&log, "x", 1);
	cm_setup_log_close(&log);
	cm_buf_clear(&out);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)
	const struct CMUnitTest tests[] = {
		T(test_keeps_both_ends),
		T(test_is_private_and_bounded),
		T(test_begins_anew),
		T(test_says_what_is_wrong),
	};
#undef T
	return cmocka_run_group_tests(tests, NULL, NULL);
}
