/* SPDX-License-Identifier: Apache-2.0 */
/* How much a tree takes that hostile code made: links, FIFOs, deep and locked directories. */
#include "runtime/base/tree_size.h"
#include "tests/unit/test_base.h"

#define WITH_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)
#define MIB (1024UL * 1024)

static void make_large(int dir, const char *name, size_t size)
{
	CM_AUTO_FD int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	static char block[65536] = "x";

	assert_true(fd >= 0);
	for (size_t i = 0; i < size; i += sizeof(block))
		assert_int_equal(cm_write_all(fd, block, sizeof(block)), 0);
}

static struct cm_tree_size size_of(int dir, const char *name)
{
	struct cm_tree_size size = { 0 };

	cm_tree_size_add(dir, name, &size);
	return size;
}

static void assert_near(uint64_t bytes, uint64_t expected)
{
	/* directories and the file system's own blocks */
	if (bytes < expected || bytes > expected + 128UL * 1024)
		fail_msg("%llu bytes, not %llu", (unsigned long long)bytes,
			 (unsigned long long)expected);
}

static void test_files(void **state)
{
	CM_AUTO_FD int dir = open_scratch(state);

	assert_int_equal(size_of(dir, "no").bytes, 0);
	assert_false(size_of(dir, "no").is_partial);
	assert_int_equal(mkdirat(dir, "t", 0700), 0);
	assert_int_equal(mkdirat(dir, "t/sub", 0700), 0);
	make_large(dir, "t/a", MIB);
	make_large(dir, "t/sub/b", 2 * MIB);
	assert_near(size_of(dir, "t").bytes, 3 * MIB);
	assert_near(size_of(dir, "t/a").bytes, MIB);
	assert_false(size_of(dir, "t").is_partial);
}

/* Nothing outside is counted, and nothing is opened that would wait. */
static void test_links_and_fifos(void **state)
{
	CM_AUTO_FD int dir = open_scratch(state);

	make_large(dir, "outside", 4 * MIB);
	assert_int_equal(mkdirat(dir, "out", 0700), 0);
	make_large(dir, "out/file", 4 * MIB);
	assert_int_equal(mkdirat(dir, "t", 0700), 0);
	assert_int_equal(symlinkat("../outside", dir, "t/file"), 0);
	assert_int_equal(symlinkat("../out", dir, "t/dir"), 0);
	assert_int_equal(symlinkat("t", dir, "t/loop"), 0);
	assert_int_equal(symlinkat("out", dir, "link"), 0);
	assert_int_equal(mkfifoat(dir, "t/fifo", 0600), 0);
	assert_near(size_of(dir, "t").bytes, 0);
	assert_near(size_of(dir, "link").bytes, 0);
	assert_false(size_of(dir, "t").is_partial);
	/* of two links one is here: half of it would go */
	make_large(dir, "t/shared", 2 * MIB);
	assert_int_equal(linkat(dir, "t/shared", dir, "other", 0), 0);
	assert_near(size_of(dir, "t").bytes, MIB);
	assert_int_equal(linkat(dir, "t/shared", dir, "t/again", 0), 0);
	assert_near(size_of(dir, "t").bytes, 2 * MIB * 2 / 3);
}

static void test_deep(void **state)
{
	CM_AUTO_FD int dir = open_scratch(state);
	int at = fcntl(dir, F_DUPFD_CLOEXEC, 0);

	for (int i = 0; i < 1000; i++) {
		int fd;

		assert_int_equal(mkdirat(at, "d", 0700), 0);
		fd = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(fd >= 0);
		if (i == 500)
			make_large(fd, "deep", MIB);
		close(at);
		at = fd;
	}
	close(at);
	assert_true(size_of(dir, "d").is_partial);
	assert_int_equal(cm_remove_tree_at(dir, "d"), 0);
}

static void test_locked(void **state)
{
	CM_AUTO_FD int dir = open_scratch(state);

	assert_int_equal(mkdirat(dir, "t", 0700), 0);
	assert_int_equal(mkdirat(dir, "t/locked", 0700), 0);
	make_large(dir, "t/a", MIB);
	assert_int_equal(fchmodat(dir, "t/locked", 0, 0), 0);
	assert_near(size_of(dir, "t").bytes, MIB);
	/* who may read everything sees all of it */
	assert_int_equal(size_of(dir, "t").is_partial, faccessat(dir, "t/locked", R_OK, 0) != 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_SCRATCH(test_files),
		WITH_SCRATCH(test_links_and_fifos),
		WITH_SCRATCH(test_deep),
		WITH_SCRATCH(test_locked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
