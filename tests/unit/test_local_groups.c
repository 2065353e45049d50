/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept of a session's control groups, what is no such thing, and what they say of one that runs. */
#include "tests/unit/test_base.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "providers/local/local_internal.h"
#include "runtime/base/fd.h"

static char dir[32];

static int set_up(void **state)
{
	(void)state;
	memcpy(dir, "/tmp/casemate-test-XXXXXX", sizeof("/tmp/casemate-test-XXXXXX"));
	return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	return cm_remove_tree_at(AT_FDCWD, dir) == 0 ? 0 : -1;
}

static bool is_kept(void)
{
	CM_AUTO_FREE char *path = cm_asprintf("%s/%s", dir, CM_STORE_GROUPS);
	struct stat st;

	return lstat(path, &st) == 0;
}

/* Neither the next run nor rm of the session is held up by it. */
static void assert_none(const char *text, size_t len)
{
	struct cm_store_session s = { .dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) };
	struct cm_error err = CM_ERROR_INIT;

	cm_session_record_init(&s.record);
	assert_true(s.dir_fd >= 0);
	if (text)
		assert_int_equal(
			cm_replace_file_at(s.dir_fd, CM_STORE_GROUPS, text, len, 0600, false), 0);
	assert_int_equal(cm_local_collect_group(dir, NULL), 0);
	assert_int_equal(cm_local_collect_left(&s, &err), CM_OK);
	assert_string_equal(err.msg, "");
	(void)close(s.dir_fd);
}

static void test_none(void **state)
{
	(void)state;
	assert_none(NULL, 0);
}

static void test_not_understood(void **state)
{
	static const char nul[] = "casemate groups 1\n0 1\ns\n/a\0b";
	static char large[65 * 1024];

	(void)state;
	assert_none("", 0);
	assert_none("casemate groups 2\n", sizeof("casemate groups 2\n") - 1);
	assert_none("casemate groups 1\n9 1\ns\n", sizeof("casemate groups 1\n9 1\ns\n") - 1);
	assert_none(nul, sizeof(nul) - 1);
	memset(large, 'x', sizeof(large));
	assert_none(large, sizeof(large));
	assert_true(is_kept());
}

/* All that it names are gone: so is the list. */
static void test_gone(void **state)
{
	static const char text[] = "casemate groups 1\n2 1\ns\n/nowhere/a\n/nowhere/b";

	(void)state;
	assert_none(text, sizeof(text) - 1);
	assert_false(is_kept());
}

static void put(const char *group, const char *file, const char *text)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", dir, group);
	(void)mkdir(path, 0700);
	(void)snprintf(path, sizeof(path), "%s/%s/cm-s", dir, group);
	(void)mkdir(path, 0700);
	(void)snprintf(path, sizeof(path), "%s/%s/cm-s/%s", dir, group, file);
	assert_int_equal(cm_replace_file_at(AT_FDCWD, path, text, strlen(text), 0600, false), 0);
}

static void read_usage(const char *text, struct cm_local_usage *ret)
{
	struct cm_store_session s = { .dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) };

	assert_true(s.dir_fd >= 0);
	assert_int_equal(
		cm_replace_file_at(s.dir_fd, CM_STORE_GROUPS, text, strlen(text), 0600, false), 0);
	cm_local_usage(&s, ret);
	(void)close(s.dir_fd);
}

/* What a session that runs takes, from files that stand for its groups. */
static void test_usage(void **state)
{
	CM_AUTO_FREE char *v1 =
		cm_asprintf("casemate groups 1\n1 0\ns\n%s/m\n%s/p\n\n\n", dir, dir);
	CM_AUTO_FREE char *v1_pids = cm_asprintf("casemate groups 1\n1 0\ns\n\n%s/p\n\n\n", dir);
	CM_AUTO_FREE char *v2 = cm_asprintf("casemate groups 1\n2 0\ns\n%s/2", dir);
	struct cm_local_usage usage;

	(void)state;
	read_usage(v1, &usage);
	assert_false(usage.has_memory || usage.has_tasks || usage.is_active);
	put("m", "memory.usage_in_bytes", "4096\n");
	put("p", "pids.current", "1\n");
	put("2", "memory.current", "8192\n");
	put("2", "pids.current", "2\n");
	read_usage(v1, &usage);
	assert_true(usage.has_memory && usage.has_tasks && !usage.is_active);
	assert_int_equal(usage.memory_bytes, 4096);
	read_usage(v1_pids, &usage);
	assert_true(!usage.has_memory && usage.has_tasks);
	read_usage(v2, &usage);
	assert_true(usage.has_memory && usage.has_tasks && usage.is_active);
	assert_int_equal(usage.memory_bytes, 8192);
	put("2", "memory.current", "x\n");
	read_usage(v2, &usage);
	assert_false(usage.has_memory);
	read_usage("casemate groups 1\n0 0\ns\n", &usage);
	assert_false(usage.has_memory || usage.has_tasks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_none, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_not_understood, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_gone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_usage, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
