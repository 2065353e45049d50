/* SPDX-License-Identifier: Apache-2.0 */
/* Full disks at every write, and every allocation failing once. */
#include <sched.h>
#include <sys/mount.h>

#include "runtime/base/alloc.h"
#include "tests/unit/test_store_env.h"

static const struct cm_slot_space space = { 0x70000000U, 65536, 4000 };

static void write_proc(const char *name, const char *value)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/self/%s", name);
	if (cm_write_file_at(AT_FDCWD, path, value) != 0)
		_exit(77);
}

/* A mount namespace of this process's own; ends it with 77 where there is none to be had. */
static void own_mounts(void)
{
	char map[64];
	uid_t uid = geteuid();
	gid_t gid = getegid();

	if (uid == 0) {
		if (unshare(CLONE_NEWNS) != 0)
			_exit(77);
	} else {
		(void)snprintf(map, sizeof(map), "0 %u 1", (unsigned int)uid);
		if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
			_exit(77);
		write_proc("setgroups", "deny");
		write_proc("uid_map", map);
		(void)snprintf(map, sizeof(map), "0 %u 1", (unsigned int)gid);
		write_proc("gid_map", map);
	}
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		_exit(77);
}

/* A failure must be a full disk's, with its hint; or a success. */
static bool went_well(int code, const struct cm_error *err)
{
	if (code == CM_OK)
		return true;
	if (err->sys_errno != ENOSPC)
		fail_msg("%d: %s: %s", code, err->msg, strerror(err->sys_errno));
	assert_true(err->hint[0] != '\0');
	return false;
}

struct seen {
	int n_failed;
	int n_made;
	int n_saved;
	int n_not_saved;
};

static void try_save(struct env *e, struct cm_store_session *s, struct seen *seen)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_store_session again;
	char big[20001];
	bool is_saved;

	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	s->record.generation = 2;
	s->record.settings_json = cm_strdup(big);
	is_saved = went_well(cm_store_session_save(s, true, &err), &err);
	seen->n_saved += is_saved;
	seen->n_not_saved += !is_saved;
	/* the old one or the new one */
	assert_int_equal(cm_store_session_open(&e->store, "a", false, 0, &again, NULL), CM_OK);
	assert_int_equal(again.record.generation, is_saved ? 2 : 1);
	assert_int_equal(faccessat(again.dir_fd, "state.json.new", F_OK, 0), -1);
	cm_store_session_close(&again);
}

static void life_on_little(struct env *e, struct seen *seen)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_session_record r = env_record("a");
	struct cm_store_session s;

	if (!went_well(cm_store_slot_claim(&e->store, "a", &space, &r.slot, &err), &err)) {
		seen->n_failed++;
		assert_int_equal(env_slots(e), 0);
		return;
	}
	r.generation = 1;
	if (!went_well(cm_store_session_create(&e->store, &r, &s, &err), &err)) {
		seen->n_failed++;
		assert_int_equal(env_count(e), 0);
		assert_int_equal(env_entries(e, "state/casemate/new"), 0);
		cm_store_slot_release(&e->store, r.slot, "a");
		assert_int_equal(env_slots(e), 0);
		return;
	}
	seen->n_made++;
	try_save(e, &s, seen);
	/* there is always room to give something up */
	if (cm_store_session_remove(&e->store, &s, true, &err) != CM_OK)
		fail_msg("%s: %s", err.msg, strerror(err.sys_errno));
	cm_store_session_close(&s);
	assert_int_equal(env_count(e), 0);
	assert_int_equal(env_entries(e, "state/casemate/new"), 0);
	assert_int_equal(env_slots(e), 0);
}

static void temporary_on_little(struct env *e, struct seen *seen)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_store_session s;

	if (!went_well(env_create(e, "run-1", true, &s, &err), &err)) {
		seen->n_failed++;
		assert_int_equal(env_count(e), 0);
		return;
	}
	(void)went_well(cm_store_session_save(&s, false, &err), &err);
	assert_int_equal(cm_store_session_remove(&e->store, &s, false, NULL), CM_OK);
	cm_store_session_close(&s);
	assert_int_equal(env_entries(e, "run/casemate/tmp"), 0);
}

static void on_little(struct env *e, const char *options, struct seen *seen)
{
	struct cm_error err = CM_ERROR_INIT;
	char home[80];

	assert_int_equal(mount("t", e->dir, "tmpfs", MS_NOSUID | MS_NODEV, options), 0);
	(void)snprintf(home, sizeof(home), "%s/home", e->dir);
	if (went_well(cm_store_open(&e->vars, NULL, home, false, &e->store, &err), &err)) {
		life_on_little(e, seen);
		temporary_on_little(e, seen);
		cm_store_close(&e->store);
	} else {
		seen->n_failed++;
	}
	assert_int_equal(umount2(e->dir, MNT_DETACH), 0);
}

static int all_sizes(struct env *e)
{
	struct seen inodes = { 0 };
	struct seen pages = { 0 };
	char options[64];

	own_mounts();
	cm_store_close(&e->store);
	for (int n = 2; n <= 24; n++) {
		(void)snprintf(options, sizeof(options), "nr_inodes=%d,size=1m", n);
		on_little(e, options, &inodes);
	}
	for (int n = 1; n <= 16; n++) {
		(void)snprintf(options, sizeof(options), "nr_inodes=1000,size=%dk", n * 4);
		on_little(e, options, &pages);
	}
	/* both walks met failures and successes of both kinds */
	assert_true(inodes.n_failed > 5 && inodes.n_made > 3);
	assert_true(pages.n_failed > 1 && pages.n_made > 3);
	assert_true(pages.n_saved > 1 && pages.n_not_saved > 1);
	return 0;
}

static void test_full_disk(void **state)
{
	struct env *e = *state;
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(all_sizes(e));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip();
	assert_status(status, 0);
}

/* A whole life; the first failure ends it. The store is as before when it comes back. */
static int life(struct env *e, struct cm_error *err)
{
	struct cm_session_record r = env_record("a");
	struct cm_store_session s;
	struct cm_strv ids = { 0 };
	char home[80];
	int code;

	(void)snprintf(home, sizeof(home), "%s/home", e->dir);
	r.unknown_json = (char *)(uintptr_t) "\"x\":[1]";
	r.workspace = (char *)(uintptr_t) "/w";
	code = cm_store_open(&e->vars, NULL, home, false, &e->store, err);
	if (code != CM_OK)
		return code;
	code = cm_store_slot_claim(&e->store, "a", &space, &r.slot, err);
	if (code == CM_OK)
		code = cm_store_session_create(&e->store, &r, &s, err);
	if (code == CM_OK) {
		code = cm_store_session_dir_make(&e->store, &s, err);
		cm_store_session_close(&s);
	}
	if (code == CM_OK)
		code = cm_store_list(&e->store, &ids, err);
	cm_strv_clear(&ids);
	if (code == CM_OK)
		code = cm_store_session_open(&e->store, "a", true, 0, &s, err);
	if (code == CM_OK) {
		code = cm_store_session_save(&s, true, err);
		if (code == CM_OK)
			code = cm_store_session_remove(&e->store, &s, true, err);
		cm_store_session_close(&s);
	}
	cm_store_close(&e->store);
	return code;
}

static void test_allocations(void **state)
{
	struct env *e = *state;
	long n = 0;
	int code;

	cm_store_close(&e->store);
	do {
		struct cm_error err = CM_ERROR_INIT;
		struct cm_store_session s;

		cm_alloc_fail_after(n++);
		code = life(e, &err);
		cm_alloc_fail_after(-1);
		if (code != CM_OK && code != CM_E_NOMEM && err.sys_errno != ENOMEM)
			fail_msg("allocation %ld: %d: %s", n, code, err.msg);
		env_open(e, &e->store);
		/* old or new, and usable; only its claim may be left, for the next to take */
		if (env_count(e) == 1) {
			assert_int_equal(cm_store_session_open(&e->store, "a", true, 0, &s, NULL),
					 CM_OK);
			assert_string_equal(s.record.workspace, "/w");
			assert_string_equal(s.record.unknown_json, "\"x\":[1]");
			assert_int_equal(cm_store_session_remove(&e->store, &s, true, NULL), CM_OK);
			cm_store_session_close(&s);
		}
		assert_int_equal(cm_store_collect(&e->store, NULL, NULL, NULL), CM_OK);
		assert_int_equal(cm_store_collect_slots(&e->store, NULL), CM_OK);
		assert_int_equal(env_count(e), 0);
		assert_int_equal(env_entries(e, "state/casemate/new"), 0);
		assert_int_equal(env_slots(e), 0);
		if (code != CM_OK)
			cm_store_close(&e->store);
	} while (code != CM_OK);
	assert_true(n > 40);
}

#define T(name) cmocka_unit_test_setup_teardown(name, env_setup, env_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_full_disk),
		T(test_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
