/* SPDX-License-Identifier: Apache-2.0 */
/* Slots of kernel ids: claimed once, kept as long as files have them, never somebody else's. */
#include <stdatomic.h>
#include <sys/mman.h>

#include "runtime/base/hash.h"
#include "tests/unit/test_store_env.h"

#define CLAIMERS 10

static const struct cm_slot_space space = { 0x70000000U, 65536, 4000 };
static const struct cm_slot_space tiny = { 0x70000000U, 65536, 3 };

static uint32_t claim(struct cm_store *store, const char *id)
{
	struct cm_error err = CM_ERROR_INIT;
	uint32_t slot = CM_SLOT_NONE;

	if (cm_store_slot_claim(store, id, &space, &slot, &err) != CM_OK)
		fail_msg("%s", err.msg);
	return slot;
}

static void test_claim_and_release(void **state)
{
	struct env *e = *state;
	uint32_t slot = claim(&e->store, "a");
	struct cm_store other;

	assert_true(slot < space.n_slots);
	assert_int_equal(slot, cm_hash_text("a") % space.n_slots);
	assert_int_equal(env_slots(e), 1);
	/* another store cannot free what is held, nor under another id */
	env_open(e, &other);
	cm_store_slot_release(&other, slot, "a");
	assert_int_equal(env_slots(e), 1);
	assert_int_not_equal(claim(&other, "a"), slot);
	cm_store_slot_release(&other, other.slot_claimed, "a");
	assert_int_equal(env_slots(e), 1);
	cm_store_close(&other);
	cm_store_slot_release(&e->store, slot, "b");
	assert_int_equal(env_slots(e), 1);
	cm_store_slot_release(&e->store, slot, "a");
	assert_int_equal(env_slots(e), 0);
	cm_store_slot_release(&e->store, CM_SLOT_NONE, "a");
}

/* Ten at once that all begin at the same slot. */
static void test_claimers_at_once(void **state)
{
	struct env *e = *state;
	bool is_seen[4000] = { false };
	int gate[2];
	int answer[2];
	uint32_t slot;

	assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
	assert_int_equal(pipe2(answer, O_CLOEXEC), 0);
	for (int i = 0; i < CLAIMERS; i++) {
		pid_t pid = fork();
		struct cm_store store;
		char c;

		assert_true(pid >= 0);
		if (pid > 0)
			continue;
		(void)close(gate[1]);
		env_open(e, &store);
		(void)!read(gate[0], &c, 1);
		if (cm_store_slot_claim(&store, "same", &space, &slot, NULL) != CM_OK ||
		    write(answer[1], &slot, sizeof(slot)) != (ssize_t)sizeof(slot))
			_exit(1);
		/* lives on, so that its claim does */
		(void)pause();
		_exit(0);
	}
	(void)close(gate[0]);
	(void)close(gate[1]);
	for (int i = 0; i < CLAIMERS; i++) {
		assert_int_equal(read(answer[0], &slot, sizeof(slot)), sizeof(slot));
		assert_true(slot < 4000);
		assert_false(is_seen[slot]);
		is_seen[slot] = true;
	}
	assert_int_equal(env_slots(e), CLAIMERS);
	/* the living keep theirs */
	assert_int_equal(cm_store_collect_slots(&e->store, NULL), CM_OK);
	assert_int_equal(env_slots(e), CLAIMERS);
	(void)close(answer[0]);
	(void)close(answer[1]);
}

static void kill_children(void)
{
	char path[64];
	FILE *f;
	long pid;

	(void)snprintf(path, sizeof(path), "/proc/self/task/%ld/children", (long)getpid());
	f = fopen(path, "re");
	assert_non_null(f);
	while (fscanf(f, "%ld", &pid) == 1)
		(void)kill((pid_t)pid, SIGKILL);
	(void)fclose(f);
	while (wait(NULL) > 0)
		;
}

/* Slots of dead claimers: taken over by who meets them, and collected. */
static void test_dead_claimers(void **state)
{
	struct env *e = *state;

	test_claimers_at_once(state);
	kill_children();
	assert_int_equal(claim(&e->store, "same"), cm_hash_text("same") % space.n_slots);
	assert_int_equal(env_slots(e), CLAIMERS);
	assert_int_equal(cm_store_collect_slots(&e->store, NULL), CM_OK);
	assert_int_equal(env_slots(e), 1);
	cm_store_slot_release(&e->store, e->store.slot_claimed, "same");
	assert_int_equal(env_slots(e), 0);
}

static void make_with_slot(struct env *e, const char *id, bool is_temporary,
			   struct cm_store_session *ret)
{
	struct cm_session_record r = env_record(id);

	r.is_temporary = is_temporary;
	r.slot = claim(&e->store, id);
	assert_int_equal(cm_store_session_create(&e->store, &r, ret, NULL), CM_OK);
}

/* The whole life: with its session directory on disk the slot stays, and comes back to its id. */
static void test_slot_stays_with_its_files(void **state)
{
	struct env *e = *state;
	struct cm_store_session s;
	struct cm_store other;
	uint32_t slot;

	make_with_slot(e, "a", false, &s);
	slot = s.record.slot;
	assert_int_equal(cm_store_session_dir_make(&e->store, &s, NULL), CM_OK);
	cm_store_session_close(&s);
	cm_store_close(&e->store);
	env_open(e, &e->store);
	assert_int_equal(cm_store_collect_slots(&e->store, NULL), CM_OK);
	assert_int_equal(env_slots(e), 1);
	assert_int_equal(cm_store_session_open(&e->store, "a", true, 0, &s, NULL), CM_OK);
	assert_int_equal(s.record.slot, slot);
	assert_int_equal(cm_store_session_remove(&e->store, &s, false, NULL), CM_OK);
	cm_store_session_close(&s);
	assert_int_equal(cm_store_collect_slots(&e->store, NULL), CM_OK);
	assert_int_equal(env_slots(e), 1);
	/* no other id gets it, also not one that begins there */
	env_open(e, &other);
	{
		const struct cm_slot_space one = { 0x70000000U, 65536, 1 };
		char name[16];
		uint32_t got;

		(void)snprintf(name, sizeof(name), "ids/%u", slot);
		assert_int_equal(renameat(e->store.state_fd, name, e->store.state_fd, "ids/0"), 0);
		assert_int_equal(cm_store_slot_claim(&other, "b", &one, &got, NULL), CM_E_LIMIT);
		assert_int_equal(renameat(e->store.state_fd, "ids/0", e->store.state_fd, name), 0);
	}
	cm_store_close(&other);
	/* its own id gets it back, wherever a search would begin */
	make_with_slot(e, "a", false, &s);
	assert_int_equal(s.record.slot, slot);
	assert_int_equal(cm_store_session_remove(&e->store, &s, true, NULL), CM_OK);
	cm_store_session_close(&s);
	assert_int_equal(env_slots(e), 0);
}

/* A claim whose session was there already: it is not the slot of that session. */
static void test_claim_for_nothing(void **state)
{
	struct env *e = *state;
	struct cm_session_record r = env_record("a");
	struct cm_store_session s;
	struct cm_store other;
	uint32_t slot;

	make_with_slot(e, "a", false, &s);
	slot = s.record.slot;
	cm_store_session_close(&s);
	env_open(e, &other);
	r.slot = claim(&other, "a");
	assert_int_not_equal(r.slot, slot);
	assert_int_equal(cm_store_session_create(&other, &r, &s, NULL), CM_E_EXISTS);
	cm_store_close(&other);
	assert_int_equal(env_slots(e), 2);
	assert_int_equal(cm_store_collect_slots(&e->store, NULL), CM_OK);
	assert_int_equal(env_slots(e), 1);
	assert_int_equal(cm_store_session_open(&e->store, "a", true, 0, &s, NULL), CM_OK);
	assert_int_equal(cm_store_session_remove(&e->store, &s, false, NULL), CM_OK);
	cm_store_session_close(&s);
	assert_int_equal(env_slots(e), 0);
}

static void test_temporary_sessions(void **state)
{
	struct env *e = *state;
	struct cm_store_session s;

	make_with_slot(e, "run-1", true, &s);
	assert_int_equal(cm_store_session_remove(&e->store, &s, false, NULL), CM_OK);
	cm_store_session_close(&s);
	assert_int_equal(env_slots(e), 0);
	/* one whose owner died: its slot goes with it, though it has no state.json */
	make_with_slot(e, "run-2", true, &s);
	cm_store_session_close(&s);
	cm_store_close(&e->store);
	env_open(e, &e->store);
	assert_int_equal(cm_store_collect_slots(&e->store, NULL), CM_OK);
	assert_int_equal(env_slots(e), 1);
	assert_int_equal(cm_store_collect(&e->store, NULL, NULL, NULL), CM_OK);
	assert_int_equal(env_count(e), 0);
	assert_int_equal(env_slots(e), 0);
}

static void test_all_taken(void **state)
{
	struct env *e = *state;
	struct cm_store stores[4];
	struct cm_error err = CM_ERROR_INIT;
	uint32_t slot = 99;

	for (int i = 0; i < 4; i++) {
		env_open(e, &stores[i]);
		assert_int_equal(cm_store_slot_claim(&stores[i], "a", &tiny, &slot, &err),
				 i < 3 ? CM_OK : CM_E_LIMIT);
	}
	assert_non_null(strstr(err.hint, "casemate rm"));
	/* half a name, as a death or a full disk leaves it, is nobody's */
	cm_store_close(&stores[1]);
	assert_int_equal(cm_store_slot_claim(&stores[3], "b", &tiny, &slot, NULL), CM_OK);
	for (int i = 0; i < 4; i++)
		if (i != 1)
			cm_store_close(&stores[i]);
	assert_int_equal(cm_store_collect_slots(&e->store, NULL), CM_OK);
	assert_int_equal(env_slots(e), 0);
}

static void test_half_written(void **state)
{
	static const char *const texts[] = { "", "a", "a\n", "a\n/root", "a\n/root\nx" };
	struct env *e = *state;

	for (size_t i = 0; i < CM_ARRAY_SIZE(texts); i++) {
		for (int at = 0; at < 2; at++) {
			int fd = at ? e->store.state_fd : e->store.runtime_fd;

			assert_true(mkdirat(fd, "ids", 0700) == 0 || errno == EEXIST);
			assert_int_equal(cm_replace_file_at(fd, "ids/7", texts[i], strlen(texts[i]),
							    0600, false),
					 0);
		}
		assert_int_equal(cm_store_collect_slots(&e->store, NULL), CM_OK);
		assert_int_equal(env_slots(e), 0);
	}
}

#define MAKERS 4
#define COLLECTORS 2
#define CROWD_MS 1200

static const struct cm_slot_space crowded = { 0x70000000U, 65536, 6 };

struct crowd {
	/* is somebody's session using this slot? */
	atomic_int is_used[6];
	atomic_int n_made;
	atomic_int n_wrong;
};

/* One session, with its slot to itself from claim to release. */
static void make_one(struct cm_store *store, struct crowd *c, const char *id, bool is_temporary)
{
	struct cm_session_record r = env_record(id);
	struct cm_store_session s;
	bool is_made;

	r.is_temporary = is_temporary;
	/* all may be taken; that is no fault */
	if (cm_store_slot_claim(store, id, &crowded, &r.slot, NULL) != CM_OK)
		return;
	if (atomic_exchange(&c->is_used[r.slot], 1) != 0)
		atomic_fetch_add(&c->n_wrong, 1);
	is_made = cm_store_session_create(store, &r, &s, NULL) == CM_OK;
	if (is_made && (faccessat(s.dir_fd, "lock", F_OK, 0) != 0 ||
			(!is_temporary && faccessat(s.dir_fd, "home", F_OK, 0) != 0)))
		atomic_fetch_add(&c->n_wrong, 1);
	atomic_store(&c->is_used[r.slot], 0);
	if (!is_made) {
		atomic_fetch_add(&c->n_wrong, 1);
		cm_store_slot_release(store, r.slot, id);
		return;
	}
	atomic_fetch_add(&c->n_made, 1);
	if (cm_store_session_remove(store, &s, false, NULL) != CM_OK)
		atomic_fetch_add(&c->n_wrong, 1);
	cm_store_session_close(&s);
}

static void member_of_crowd(struct env *e, struct crowd *c, int i)
{
	int64_t until = cm_clock_mono_ms() + CROWD_MS;
	struct cm_store store;
	char id[32];

	env_open(e, &store);
	for (unsigned int n = 0; cm_clock_mono_ms() < until; n++) {
		(void)snprintf(id, sizeof(id), "m%d-%u", i, n);
		if (i < MAKERS)
			make_one(&store, c, id, (n + (unsigned int)i) % 2 == 0);
		else if (cm_store_collect(&store, NULL, NULL, NULL) != CM_OK ||
			 cm_store_collect_slots(&store, NULL) != CM_OK)
			atomic_fetch_add(&c->n_wrong, 1);
	}
	_exit(0);
}

/* Makers and collectors at once: nobody's session is collected, no slot has two owners. */
static void test_crowd(void **state)
{
	struct env *e = *state;
	struct crowd *c =
		mmap(NULL, sizeof(*c), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status;

	assert_true(c != MAP_FAILED);
	for (int i = 0; i < MAKERS + COLLECTORS; i++) {
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid == 0)
			member_of_crowd(e, c, i);
	}
	while (wait(&status) > 0)
		assert_status(status, 0);
	assert_int_equal(atomic_load(&c->n_wrong), 0);
	assert_true(atomic_load(&c->n_made) > MAKERS);
	assert_int_equal(cm_store_collect(&e->store, NULL, NULL, NULL), CM_OK);
	assert_int_equal(cm_store_collect_slots(&e->store, NULL), CM_OK);
	assert_int_equal(env_slots(e), 0);
	assert_int_equal(env_count(e), 0);
	assert_int_equal(munmap(c, sizeof(*c)), 0);
}

static void write_etc(struct env *e, const char *name, const char *content)
{
	assert_int_equal(
		cm_replace_file_at(e->store.state_fd, name, content, strlen(content), 0644, false),
		0);
}

static uint32_t blocked(struct env *e, const struct cm_slot_space *s)
{
	uint8_t bitmap[512] = { 0 };
	uint32_t n = 0;

	assert_int_equal(cm_slot_blocked(e->store.state_fd, s, bitmap, NULL), CM_OK);
	for (uint32_t i = 0; i < s->n_slots; i++)
		n += (bitmap[i / 8] >> (i % 8)) & 1U;
	return n;
}

static void test_ids_of_others(void **state)
{
	static const struct {
		const char *file;
		const char *text;
		uint32_t n_blocked;
	} cases[] = {
		{ "subuid", "", 0 },
		{ "subuid", "u:100000:65536\n", 0 },
		/* first id, last id, one below, one above the range */
		{ "subuid", "u:1879048192:1\n", 1 },
		{ "subuid", "u:2141192191:1\n", 1 },
		{ "subuid", "u:1879048191:1\n", 0 },
		{ "subuid", "u:2141192192:1\n", 0 },
		/* over a border between two slots */
		{ "subuid", "u:1879113727:2\n", 2 },
		{ "subuid", "u:1879048192:65536", 1 },
		{ "subuid", "u:1879048192:65537", 2 },
		{ "subuid", "u:0:4294967295", 4000 },
		{ "subuid", "u:1:18446744073709551615\n", 4000 },
		{ "subuid", "u:1879048192:0\n", 0 },
		{ "subuid", "# c\n\nbad line\nu:x:1\nu:1879048192\nu:1879048192:1:\n", 1 },
		{ "subgid", "g:1879048192:1\r\n", 1 },
		{ "passwd", "u:x:1879048192:100:::/bin/sh\n", 1 },
		{ "passwd", "u:x:100:1879113728:::/bin/sh\nroot:x:0:0::/:/bin/sh\n", 1 },
	};
	struct env *e = *state;

	for (size_t i = 0; i < CM_ARRAY_SIZE(cases); i++) {
		write_etc(e, cases[i].file, cases[i].text);
		if (blocked(e, &space) != cases[i].n_blocked)
			fail_msg("case %zu: %u slots", i, blocked(e, &space));
		assert_int_equal(unlinkat(e->store.state_fd, cases[i].file, 0), 0);
	}
	/* what cannot be read is no licence */
	assert_int_equal(mkdirat(e->store.state_fd, "subuid", 0700), 0);
	{
		uint8_t bitmap[512] = { 0 };
		struct cm_error err = CM_ERROR_INIT;

		assert_int_not_equal(cm_slot_blocked(e->store.state_fd, &space, bitmap, &err),
				     CM_OK);
		assert_non_null(strstr(err.msg, "subuid"));
	}
}

static int teardown(void **state)
{
	kill_children();
	return env_teardown(state);
}

#define T(name) cmocka_unit_test_setup_teardown(name, env_setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_claim_and_release),
		T(test_claimers_at_once),
		T(test_dead_claimers),
		T(test_slot_stays_with_its_files),
		T(test_claim_for_nothing),
		T(test_temporary_sessions),
		T(test_all_taken),
		T(test_half_written),
		T(test_crowd),
		T(test_ids_of_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
