/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a command's tree, with trees that do as the test says. */
#include "isolation/keeper/serve.h"
#include "tests/unit/test_base.h"

#define GRACE_MS 300

static struct {
	/* bearers of the mark */
	unsigned int alive;
	/* how many attempts to kill it fail */
	int n_failing;
	int n_kills;
	int n_terms;
	int n_ends;
	int n_slots_free;
	struct cm_rec_end end;
	bool has_left;
} world;

static struct cm_serve serve;
static struct cm_plan_header header;
static const struct cm_plan plan = { .header = &header };

unsigned int cm_tree_signal(const struct cm_mark *mark, int sig)
{
	(void)mark;
	world.n_terms += sig == SIGTERM;
	return world.alive;
}

bool cm_tree_kill(const struct cm_mark *mark, int v2_kill_fd, int v1_freezer_fd, bool *ret_froze)
{
	(void)mark;
	(void)v2_kill_fd;
	(void)v1_freezer_fd;
	*ret_froze = false;
	world.n_kills++;
	if (world.n_failing-- > 0)
		return false;
	world.alive = 0;
	return true;
}

bool cm_tree_any(void)
{
	return world.alive > 0;
}

void cm_tree_signal_all(int sig)
{
	world.n_terms += sig == SIGTERM;
	world.n_kills += sig == SIGKILL;
}

void cm_serve_send(struct cm_serve *s, struct cm_rec *rec, const int *fds, unsigned int n_fds)
{
	(void)fds;
	(void)n_fds;
	if (rec->type == CM_REC_END) {
		/* nothing may be called ended that runs */
		assert_true(world.alive == 0 || (rec->body.end.flags & CM_ENDF_CHILDREN_LEFT) != 0);
		world.end = rec->body.end;
		world.n_ends++;
		cm_loop_stop(&s->loop);
	}
	world.n_slots_free += rec->type == CM_REC_SLOT_FREE;
}

void cm_serve_fill_end(const struct cm_serve_exec *e, struct cm_rec_end *end)
{
	end->kind = e->end_kind != 0 ? e->end_kind : CM_END_EXIT;
}

void cm_serve_drop(struct cm_serve_exec *e)
{
	(void)e;
}

_Noreturn void cm_serve_leave(struct cm_serve *s)
{
	(void)s;
	/* only where a test forks for it */
	_exit(7);
}

static int set_up(void **state)
{
	struct cm_serve_exec *e = &serve.execs[0];

	memset(&world, 0, sizeof(world));
	memset(&serve, 0, sizeof(serve));
	header = (struct cm_plan_header){ 0 };
	world.alive = 1;
	serve.plan = &plan;
	serve.timer = -1;
	assert_int_equal(cm_loop_init(&serve.loop, NULL), CM_OK);
	e->serve = &serve;
	/* as if a command had been started in it */
	serve.n_slots = 1;
	e->phase = CM_PHASE_RUNNING;
	e->pidfd = e->report_fd = e->pty_fd = e->kill_fd = -1;
	for (size_t i = 0; i < CM_ARRAY_SIZE(e->lent_fds); i++)
		e->lent_fds[i] = -1;
	e->mark.gid = 1;
	*state = e;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	cm_loop_clear(&serve.loop);
	return 0;
}

static void main_ends(struct cm_serve_exec *e)
{
	e->has_exited = true;
	cm_serve_finish(e);
}

static void test_kill_that_fails(void **state)
{
	struct cm_serve_exec *e = *state;

	world.n_failing = 3;
	cm_serve_end_tree(e, CM_END_KILLED, 0);
	main_ends(e);
	assert_int_equal(world.n_ends, 0);
	assert_int_equal(world.n_slots_free, 0);
	assert_int_equal(cm_loop_run(&serve.loop, NULL), CM_OK);
	assert_int_equal(world.n_kills, 4);
	assert_int_equal(world.n_ends, 1);
	assert_int_equal(world.n_slots_free, 1);
	assert_int_equal(world.end.kind, CM_END_KILLED);
	assert_int_equal(world.end.flags & CM_ENDF_CHILDREN_LEFT, 0);
}

static void test_kill_that_fails_after_setup(void **state)
{
	struct cm_serve_exec *e = *state;

	e->flags = CM_EXECF_KILL_TREE;
	world.n_failing = 2;
	main_ends(e);
	assert_int_equal(world.n_ends, 0);
	assert_int_equal(cm_loop_run(&serve.loop, NULL), CM_OK);
	assert_int_equal(world.n_kills, 3);
	assert_int_equal(world.end.kind, CM_END_EXIT);
	assert_int_equal(world.n_slots_free, 1);
}

/* Its others have the rest of the grace when the main process has ended. */
static void test_grace_is_the_trees(void **state)
{
	struct cm_serve_exec *e = *state;

	cm_serve_end_tree(e, CM_END_KILLED, GRACE_MS);
	main_ends(e);
	assert_int_equal(world.n_kills, 0);
	assert_int_equal(world.n_ends, 0);
	/* somebody was reaped, but not the last */
	cm_serve_settle(&serve);
	assert_int_equal(world.n_ends, 0);
	world.alive = 0;
	cm_serve_settle(&serve);
	assert_int_equal(world.n_ends, 1);
	assert_int_equal(world.n_kills, 0);
	assert_int_equal(world.n_slots_free, 1);
}

static void test_grace_ends(void **state)
{
	struct cm_serve_exec *e = *state;

	cm_serve_end_tree(e, CM_END_TIMEOUT, GRACE_MS);
	main_ends(e);
	assert_int_equal(cm_loop_run(&serve.loop, NULL), CM_OK);
	assert_int_equal(world.n_kills, 1);
	assert_int_equal(world.end.kind, CM_END_TIMEOUT);
}

static void test_told_twice(void **state)
{
	struct cm_serve_exec *e = *state;
	int64_t due;

	cm_serve_end_tree(e, CM_END_TIMEOUT, GRACE_MS);
	due = e->due_ms;
	cm_serve_end_tree(e, CM_END_KILLED, 10 * GRACE_MS);
	assert_int_equal(e->due_ms, due);
	cm_serve_end_tree(e, CM_END_KILLED, 1);
	assert_true(e->due_ms < due);
	assert_int_equal(world.n_terms, 1);
	assert_int_equal(world.n_kills, 0);
	cm_serve_end_tree(e, CM_END_KILLED, 0);
	assert_int_equal(world.n_kills, 1);
	main_ends(e);
	/* the first reason counts */
	assert_int_equal(world.end.kind, CM_END_TIMEOUT);
}

static void test_lingering(void **state)
{
	struct cm_serve_exec *e = *state;

	main_ends(e);
	assert_int_equal(world.n_ends, 1);
	assert_int_equal(world.end.flags, CM_ENDF_CHILDREN_LEFT);
	assert_int_equal(world.n_slots_free, 0);
	world.alive = 0;
	cm_serve_settle(&serve);
	assert_int_equal(world.n_slots_free, 1);
	assert_int_equal(world.n_ends, 1);
}

static void test_stop(void **state)
{
	struct cm_serve_exec *e = *state;
	int status = 0;
	pid_t pid;

	cm_serve_stop(&serve, GRACE_MS);
	assert_int_equal(world.n_terms, 1);
	assert_int_equal(world.n_kills, 0);
	/* once is enough */
	cm_serve_stop(&serve, GRACE_MS);
	assert_int_equal(world.n_terms, 1);
	main_ends(e);
	assert_int_equal(world.n_ends, 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		world.alive = 0;
		cm_serve_settle(&serve);
		_exit(1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 7);
}

/* Whoever has been told hears of it once, the others hear of it. */
static void test_stop_within_a_grace(void **state)
{
	struct cm_serve_exec *e = *state;
	struct cm_serve_exec *other = &serve.execs[1];
	int64_t due;

	serve.n_slots = 2;
	*other = *e;
	other->phase = CM_PHASE_LINGERING;
	cm_serve_end_tree(e, CM_END_TIMEOUT, GRACE_MS);
	due = e->due_ms;
	assert_int_equal(world.n_terms, 1);
	cm_serve_stop(&serve, GRACE_MS);
	assert_int_equal(world.n_terms, 2);
	assert_int_equal(e->due_ms, due);
	assert_int_equal(e->end_kind, CM_END_TIMEOUT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_kill_that_fails, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_kill_that_fails_after_setup, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_grace_is_the_trees, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_grace_ends, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_told_twice, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_lingering, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_stop, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_stop_within_a_grace, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
