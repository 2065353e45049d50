/* SPDX-License-Identifier: Apache-2.0 */
/* Mirrors: one of each identity, one user at a time, kept when they were of use, and not for ever. */
#include "tests/unit/test_store_env.h"

#include <time.h>

#include "runtime/base/alloc.h"
#include "runtime/store/mirror.h"

#define DAY_S (24 * 60 * 60)

static void take(struct env *e, const char *identity, struct cm_store_mirror *mirror)
{
	struct cm_error err = CM_ERROR_INIT;

	*mirror = (struct cm_store_mirror)CM_STORE_MIRROR_INIT;
	if (cm_store_mirror_open(&e->store, identity, 0, mirror, &err) != CM_OK)
		fail_msg("%s: %s", identity, err.msg);
}

static void fill(const struct cm_store_mirror *mirror, size_t bytes)
{
	CM_AUTO_FREE char *path = cm_asprintf("%s/pack", mirror->dir);
	CM_AUTO_FREE char *data = cm_calloc(1, bytes);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(cm_write_all(fd, data, bytes), 0);
	assert_int_equal(close(fd), 0);
}

static bool is_there(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

/* A mirror that was used age_s ago; its directory is the caller's to free. */
static char *make(struct env *e, const char *identity, size_t bytes, int64_t age_s)
{
	struct cm_store_mirror mirror;
	struct timespec times[2] = { { .tv_sec = time(NULL) - age_s } };
	char used[96];
	char *dir;

	take(e, identity, &mirror);
	fill(&mirror, bytes);
	assert_int_equal(cm_store_mirror_used(&mirror, NULL), CM_OK);
	(void)snprintf(used, sizeof(used), "%s/used", mirror.key);
	times[1] = times[0];
	assert_int_equal(utimensat(mirror.mirrors_fd, used, times, 0), 0);
	dir = cm_strdup(mirror.dir);
	cm_store_mirror_close(&mirror);
	return dir;
}

static void test_one_of_each(void **state)
{
	struct cm_store_mirror first;
	struct cm_store_mirror second;
	struct cm_store_mirror again = CM_STORE_MIRROR_INIT;
	struct env *e = *state;

	take(e, "https://example.org/a\nuser\nsecret", &first);
	take(e, "https://example.org/a\nuser\nother", &second);
	assert_string_not_equal(first.dir, second.dir);
	assert_int_equal(cm_store_mirror_open(&e->store, "https://example.org/a\nuser\nsecret", 0,
					      &again, NULL),
			 CM_E_BUSY);
	assert_null(again.dir);
	assert_null(strstr(first.dir, "secret"));
	cm_store_mirror_close(&first);
	take(e, "https://example.org/a\nuser\nsecret", &again);
	cm_store_mirror_close(&again);
	cm_store_mirror_close(&second);
}

static void test_kept_when_used(void **state)
{
	struct cm_store_mirror mirror;
	struct env *e = *state;
	CM_AUTO_FREE char *dir = NULL;

	take(e, "a", &mirror);
	dir = cm_strdup(mirror.dir);
	cm_store_mirror_close(&mirror);
	assert_false(is_there(dir));
	take(e, "a", &mirror);
	fill(&mirror, 10);
	assert_int_equal(cm_store_mirror_used(&mirror, NULL), CM_OK);
	cm_store_mirror_close(&mirror);
	assert_true(is_there(dir));
	/* and a fetch that fails later takes nothing away */
	take(e, "a", &mirror);
	cm_store_mirror_close(&mirror);
	assert_true(is_there(dir));
}

static void test_bounds(void **state)
{
	struct env *e = *state;
	struct cm_store_mirror in_use;
	CM_AUTO_FREE char *old = make(e, "old", 10, 31LL * DAY_S);
	CM_AUTO_FREE char *older = make(e, "older", 1000000, 3000);
	CM_AUTO_FREE char *newer = make(e, "newer", 1000000, 2000);
	CM_AUTO_FREE char *last = make(e, "last", 1000000, 1000);

	cm_store_mirrors_prune_to(&e->store, UINT64_MAX, 30LL * DAY_S);
	assert_false(is_there(old));
	assert_true(is_there(older) && is_there(newer) && is_there(last));
	take(e, "older", &in_use);
	cm_store_mirrors_prune_to(&e->store, 2500000, 30LL * DAY_S);
	assert_true(is_there(older));
	assert_false(is_there(newer));
	assert_true(is_there(last));
	cm_store_mirror_close(&in_use);
	cm_store_mirrors_prune_to(&e->store, 0, 30LL * DAY_S);
	assert_false(is_there(older) || is_there(last));
}

/* A death in the middle of a removal leaves it beside its name. */
static void test_half_removed(void **state)
{
	struct env *e = *state;
	CM_AUTO_FREE char *kept = make(e, "kept", 10, 0);
	char gone[128];
	char used[160];

	(void)snprintf(gone, sizeof(gone), "%s/mirrors/.gone.0123456789abcdef", e->store.cache);
	(void)snprintf(used, sizeof(used), "%s/used", gone);
	assert_int_equal(mkdir(gone, 0700), 0);
	assert_int_equal(mknod(used, S_IFREG | 0600, 0), 0);
	cm_store_mirrors_prune_to(&e->store, UINT64_MAX, 30LL * DAY_S);
	assert_false(is_there(gone));
	assert_true(is_there(kept));
}

static void test_once_a_day(void **state)
{
	struct env *e = *state;
	struct timespec times[2] = { { .tv_sec = time(NULL) - 2 * DAY_S } };
	CM_AUTO_FREE char *old = NULL;
	char pruned[128];

	(void)snprintf(pruned, sizeof(pruned), "%s/mirrors/pruned", e->store.cache);
	free(make(e, "a", 10, 0));
	cm_store_mirrors_prune(&e->store);
	assert_true(is_there(pruned));
	old = make(e, "old", 10, 31LL * DAY_S);
	cm_store_mirrors_prune(&e->store);
	assert_true(is_there(old));
	times[1] = times[0];
	assert_int_equal(utimensat(AT_FDCWD, pruned, times, 0), 0);
	cm_store_mirrors_prune(&e->store);
	assert_false(is_there(old));
}

static bool remove_entry(int dir_fd, const char *name, void *data)
{
	(void)data;
	assert_int_equal(cm_remove_tree_at(dir_fd, name), 0);
	return true;
}

/* Whoever found the mirror before it went makes another, and has not the lock of one that is gone. */
static void test_gone_meanwhile(void **state)
{
	struct env *e = *state;
	struct cm_store_mirror mirror;
	CM_AUTO_FREE char *dir = make(e, "a", 10, 0);

	take(e, "a", &mirror);
	assert_int_equal(cm_store_each_entry(mirror.mirrors_fd, ".", remove_entry, NULL), 0);
	assert_false(is_there(dir));
	cm_store_mirror_close(&mirror);
	take(e, "a", &mirror);
	assert_true(is_there(mirror.dir));
	cm_store_mirror_close(&mirror);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_one_of_each, env_setup, env_teardown),
		cmocka_unit_test_setup_teardown(test_kept_when_used, env_setup, env_teardown),
		cmocka_unit_test_setup_teardown(test_half_removed, env_setup, env_teardown),
		cmocka_unit_test_setup_teardown(test_bounds, env_setup, env_teardown),
		cmocka_unit_test_setup_teardown(test_once_a_day, env_setup, env_teardown),
		cmocka_unit_test_setup_teardown(test_gone_meanwhile, env_setup, env_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
