/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kill -9 before and after every system call of what changes the store.
 *
 * The child is traced and killed at its n-th stop, for n = 1, 2, ... until it gets through. After
 * each death the session must be there as a whole or not at all, and collecting must leave nothing.
 */
#include "tests/unit/test_store_env.h"

#include "tests/unit/kill_walk.h"

static const struct cm_slot_space space = { 0x70000000U, 65536, 4000 };

typedef int (*step_fn)(struct cm_store *store);

struct step {
	step_fn fn;
	struct cm_store store;
};

static int run_step(void *data)
{
	struct step *step = data;

	return step->fn(&step->store) == CM_OK ? 0 : 1;
}

/* Was it killed at its n-th stop? false: it ended by itself before, with success. */
static bool killed_at(struct env *e, step_fn fn, int n)
{
	struct step step = { .fn = fn };
	bool is_killed;

	env_open(e, &step.store);
	is_killed = kill_walk_killed_at(run_step, &step, n);
	cm_store_close(&step.store);
	return is_killed;
}

static void collect(struct env *e)
{
	assert_int_equal(cm_store_collect(&e->store, NULL, NULL, NULL), CM_OK);
	assert_int_equal(cm_store_collect_slots(&e->store, NULL), CM_OK);
}

static void assert_clean(struct env *e, size_t n_sessions)
{
	assert_int_equal(env_entries(e, "state/casemate/new"), 0);
	assert_int_equal(env_entries(e, "state/casemate/sessions"), n_sessions);
	assert_int_equal(env_entries(e, "run/casemate/tmp"), 0);
}

/* Opens, for change and at once: nobody holds it. All parts are there. */
static void assert_whole(struct env *e, struct cm_store_session *ret)
{
	struct cm_error err = CM_ERROR_INIT;

	if (cm_store_session_open(&e->store, "a", true, 0, ret, &err) != CM_OK)
		fail_msg("%s", err.msg);
	assert_int_equal(faccessat(ret->dir_fd, "home", F_OK, 0), 0);
	assert_int_equal(faccessat(ret->dir_fd, "tmp", F_OK, 0), 0);
	assert_string_equal(ret->record.workspace, "/w");
}

static void remove_it(struct env *e, struct cm_store_session *s)
{
	assert_int_equal(cm_store_session_remove(&e->store, s, true, NULL), CM_OK);
	cm_store_session_close(s);
}

static int create(struct cm_store *store)
{
	struct cm_session_record r = env_record("a");
	struct cm_store_session s;
	int code = cm_store_slot_claim(store, "a", &space, &r.slot, NULL);

	r.workspace = (char *)(uintptr_t) "/w";
	r.agent_id = geteuid() == 0 ? 1879049192U : 0;
	if (code == CM_OK)
		code = cm_store_session_create(store, &r, &s, NULL);
	return code == CM_OK ? cm_store_session_dir_make(store, &s, NULL) : code;
}

static void test_create(void **state)
{
	struct env *e = *state;
	int n_absent = 0;
	int n_whole = 0;

	for (int n = 1; killed_at(e, create, n); n++) {
		struct cm_store_session s;
		size_t found = env_count(e);

		assert_true(found <= 1);
		collect(e);
		assert_clean(e, found);
		assert_int_equal(env_slots(e), found);
		if (found == 0) {
			n_absent++;
			continue;
		}
		n_whole++;
		assert_whole(e, &s);
		/* half of the way to a session directory is no hindrance */
		assert_int_equal(cm_store_session_dir_make(&e->store, &s, NULL), CM_OK);
		remove_it(e, &s);
		assert_clean(e, 0);
		assert_int_equal(env_slots(e), 0);
	}
	/* the walk met both sides of the rename */
	assert_true(n_absent > 20 && n_whole > 10);
}

static void make_again(struct env *e)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		struct cm_store store;

		env_open(e, &store);
		_exit(create(&store) == CM_OK ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_status(status, 0);
}

static int save(struct cm_store *store)
{
	struct cm_store_session s;
	int code = cm_store_session_open(store, "a", true, 0, &s, NULL);

	if (code != CM_OK)
		return code;
	s.record.generation++;
	return cm_store_session_save(&s, true, NULL);
}

static void test_save(void **state)
{
	struct env *e = *state;
	struct cm_store_session s;
	uint64_t generation = 0;
	int n_old = 0;
	int n_new = 0;

	make_again(e);
	for (int n = 1; killed_at(e, save, n); n++) {
		assert_whole(e, &s);
		assert_true(s.record.generation == generation ||
			    s.record.generation == generation + 1);
		n_new += s.record.generation != generation;
		n_old += s.record.generation == generation;
		generation = s.record.generation;
		/* what a death leaves does not heap up: lock, home, tmp, the state twice, at most one
		 * more of each */
		assert_true(env_entries(e, "state/casemate/sessions/a") <= 7);
		cm_store_session_close(&s);
	}
	assert_true(n_old > 10 && n_new > 3);
	assert_whole(e, &s);
	remove_it(e, &s);
	assert_clean(e, 0);
}

static int remove_all(struct cm_store *store)
{
	struct cm_store_session s;
	int code = cm_store_session_open(store, "a", true, 0, &s, NULL);

	return code == CM_OK ? cm_store_session_remove(store, &s, true, NULL) : code;
}

static void test_remove(void **state)
{
	struct env *e = *state;
	int n_absent = 0;
	int n_whole = 0;

	make_again(e);
	for (int n = 1; killed_at(e, remove_all, n); n++) {
		struct cm_store_session s;
		size_t found = env_count(e);

		collect(e);
		assert_clean(e, found);
		if (found == 1) {
			n_whole++;
			assert_whole(e, &s);
			cm_store_session_close(&s);
			continue;
		}
		n_absent++;
		assert_int_equal(env_slots(e), 0);
		make_again(e);
	}
	assert_true(n_absent > 10 && n_whole > 10);
	assert_clean(e, 0);
	assert_int_equal(env_slots(e), 0);
}

static int temporary(struct cm_store *store)
{
	struct cm_session_record r = env_record("run-1");
	struct cm_store_session s;
	int code = cm_store_slot_claim(store, "run-1", &space, &r.slot, NULL);

	r.is_temporary = true;
	if (code == CM_OK)
		code = cm_store_session_create(store, &r, &s, NULL);
	if (code == CM_OK)
		code = cm_store_session_save(&s, false, NULL);
	return code == CM_OK ? cm_store_session_remove(store, &s, false, NULL) : code;
}

static void test_temporary(void **state)
{
	struct env *e = *state;
	int n = 1;

	for (; killed_at(e, temporary, n); n++) {
		collect(e);
		assert_clean(e, 0);
		assert_int_equal(env_count(e), 0);
		assert_int_equal(env_slots(e), 0);
	}
	assert_true(n > 20);
}

static int collect_step(struct cm_store *store)
{
	int code = cm_store_collect(store, NULL, NULL, NULL);

	return code == CM_OK ? cm_store_collect_slots(store, NULL) : code;
}

/* A death before may have left it where it cannot be made again before it is collected. */
static int unless_there(int code)
{
	return code == CM_E_EXISTS ? CM_OK : code;
}

static int create_again(struct cm_store *store)
{
	return unless_there(create(store));
}

static int temporary_again(struct cm_store *store)
{
	return unless_there(temporary(store));
}

/* The collector dies as well, and another one goes on. */
static void test_collector(void **state)
{
	struct env *e = *state;
	int n = 1;

	do {
		/* a death in the middle of each of the others */
		(void)killed_at(e, create_again, 90);
		(void)killed_at(e, temporary_again, 60);
	} while (killed_at(e, collect_step, n++));
	assert_true(n > 20);
	/* more than one call looks at */
	for (int i = 0; i < 50; i++)
		collect(e);
	assert_int_equal(env_entries(e, "state/casemate/new"), 0);
	assert_int_equal(env_entries(e, "run/casemate/tmp"), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, env_setup, env_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_create), T(test_save), T(test_remove), T(test_temporary), T(test_collector),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
