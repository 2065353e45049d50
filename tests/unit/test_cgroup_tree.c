/* SPDX-License-Identifier: Apache-2.0 */
/* Processes in control groups: leaves, killing, removing, delegation. */
#include "tests/unit/cgroup_ground.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/fd.h"

/* As init does it on v1; v2 has it in the kernel. */
static void kill_leaf(const struct cm_cgroup *cg, const struct cm_cgroup_leaf *leaf,
		      const char *name)
{
	char path[64];
	char text[4096];
	char *save = NULL;

	if (cg->kind == CM_CGROUP_V2) {
		assert_int_equal(cm_write_all(leaf->kill_fd, "1", 1), 0);
		return;
	}
	assert_int_equal(cm_write_all(leaf->kill_fd, "FROZEN", 6), 0);
	for (int i = 0; i < 1000; i++) {
		memset(text, 0, sizeof(text));
		assert_true(pread(leaf->kill_fd, text, sizeof(text) - 1, 0) > 0);
		if (strcmp(text, "FROZEN\n") == 0)
			break;
		cm_cgroup_sleep_ms(1);
	}
	assert_string_equal(text, "FROZEN\n");
	(void)snprintf(path, sizeof(path), "%s/cgroup.procs", name);
	assert_true(cm_read_file_at(cg->group_fd[CM_CGI_FREEZER], path, text, sizeof(text)) > 0);
	for (char *p = strtok_r(text, "\n", &save); p; p = strtok_r(NULL, "\n", &save))
		assert_int_equal(kill((pid_t)strtol(p, NULL, 10), SIGKILL), 0);
	assert_int_equal(cm_write_all(leaf->kill_fd, "THAWED", 6), 0);
}

static void test_leaf_is_killed_alone(void **state)
{
	struct ground *g = need(state, CM_CG_FREEZER);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_cgroup_leaf chain_leaf;
	struct cm_cgroup_leaf other_leaf;
	struct cm_cgroup_leaf again;
	struct cm_cgroup cg;
	pid_t other;
	int tries = 0;

	plan_for(g, own_id());
	make(&cg);
	assert_int_equal(cm_cgroup_leaf_take(&cg, 0, &chain_leaf, &err), CM_OK);
	assert_int_equal(cm_cgroup_leaf_take(&cg, 255, &other_leaf, &err), CM_OK);
	assert_int_equal(fcntl(chain_leaf.join_fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(fcntl(chain_leaf.kill_fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	other = fork_in_leaf(&cg, &other_leaf);
	if (other == 0)
		for (;;)
			pause();
	if (fork_in_leaf(&cg, &chain_leaf) == 0)
		run_chain();
	cm_cgroup_sleep_ms(20);
	/* not for the next one before it is empty */
	assert_int_equal(cm_cgroup_leaf_take(&cg, 0, &again, &err), CM_E_BUSY);
	kill_leaf(&cg, &chain_leaf, "x0");
	while (cm_cgroup_leaf_take(&cg, 0, &again, &err) == CM_E_BUSY && tries++ < 1000) {
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		cm_cgroup_sleep_ms(1);
	}
	assert_int_equal(kill(other, 0), 0);
	assert_int_equal(waitpid(other, NULL, WNOHANG), 0);
	/* then it is the same one, until it is made anew, and kills as before */
	assert_int_equal(cm_cgroup_leaf_take(&cg, 0, &again, &err), CM_OK);
	assert_int_equal(again.join_fd, chain_leaf.join_fd);
	cm_cgroup_leaf_drop(&cg, 0);
	assert_int_equal(fcntl(again.join_fd, F_GETFD), -1);
	assert_int_equal(cm_cgroup_leaf_take(&cg, 0, &again, &err), CM_OK);
	if (fork_in_leaf(&cg, &again) == 0)
		run_chain();
	cm_cgroup_sleep_ms(20);
	assert_int_equal(cm_cgroup_leaf_take(&cg, 0, &again, &err), CM_E_BUSY);
	kill_leaf(&cg, &again, "x0");
	for (tries = 0; cm_cgroup_leaf_take(&cg, 0, &again, &err) == CM_E_BUSY && tries < 1000;
	     tries++) {
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		cm_cgroup_sleep_ms(1);
	}
	assert_true(tries < 1000);
	cm_cgroup_remove(&cg);
	reap_all();
	assert_all_gone(g, own_id());
}

static void test_leaf_refusals(void **state)
{
	struct ground *g = need(state, CM_CG_FREEZER);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_cgroup_leaf leaf = { -7, -7 };
	struct cm_cgroup cg;

	plan_for(g, own_id());
	make(&cg);
	assert_int_equal(cm_cgroup_leaf_take(&cg, CM_MAX_EXECS, &leaf, &err), CM_E_BUG);
	assert_int_equal(leaf.join_fd, -7);
	assert_int_equal(leaf.kill_fd, -7);
	cm_cgroup_remove(&cg);
	/* no group at all, or one without a place for leaves */
	assert_int_equal(cm_cgroup_leaf_take(&cg, 1, &leaf, &err), CM_E_UNSUPPORTED);
	assert_int_equal(leaf.join_fd, -7);
	assert_int_equal(leaf.kill_fd, -7);
}

/* Whole trees, in leaves and out of them, some frozen. */
static void fill(struct cm_cgroup *cg)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_cgroup_leaf leaf;

	assert_int_equal(cm_cgroup_leaf_take(cg, 3, &leaf, &err), CM_OK);
	for (int i = 0; i < 4; i++) {
		if (fork_in(cg) == 0)
			run_chain();
		if (fork_in_leaf(cg, &leaf) == 0)
			run_chain();
	}
	for (int i = 0; i < 20; i++)
		sleeper_in(cg);
	cm_cgroup_sleep_ms(20);
	/* init died in the middle of a kill */
	if (cg->kind == CM_CGROUP_V1)
		assert_int_equal(cm_write_all(leaf.kill_fd, "FROZEN", 6), 0);
}

static void test_remove_kills_everything(void **state)
{
	struct ground *g = need(state, CM_CG_FREEZER);
	struct cm_cgroup cg;
	int64_t start;

	plan_for(g, own_id())->limits.pids = 500;
	make(&cg);
	fill(&cg);
	start = cm_clock_mono_ms();
	cm_cgroup_remove(&cg);
	assert_true(cm_clock_mono_ms() - start < 2000);
	reap_all();
	assert_all_gone(g, own_id());
}

/* Without the freezer v1 has only repetition; pids is then what shows the processes. */
static void test_remove_without_freezer(void **state)
{
	struct ground *g = need(state, CM_CG_PIDS);
	struct cm_plan_header *h = plan_for(g, own_id());
	struct cm_cgroup cg;

	if (g->kind == CM_CGROUP_V2)
		skip();
	h->cgroup_controllers = CM_CG_PIDS | CM_CG_MEMORY;
	h->limits.pids = 100;
	make(&cg);
	for (int i = 0; i < 20; i++)
		sleeper_in(&cg);
	if (fork_in(&cg) == 0)
		run_chain();
	cm_cgroup_sleep_ms(20);
	cm_cgroup_remove(&cg);
	reap_all();
	assert_all_gone(g, own_id());
}

static void test_collect(void **state)
{
	struct ground *g = need(state, CM_CG_FREEZER);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_cgroup cg;
	struct cm_cgroup other;

	plan_for(g, own_id());
	make(&cg);
	fill(&cg);
	/* a second start of the same id finds it in use, and leaves it alone */
	cm_cgroup_init(&other);
	assert_int_equal(cm_cgroup_make(&other, &maker.plan, INIT_KUID, &err), CM_E_BUSY);
	assert_string_not_equal(err.hint, "");
	assert_int_equal(other.kind, CM_CGROUP_NONE);
	for (size_t i = 0; i < CM_CG_N; i++)
		assert_int_equal(is_there(g, i, own_id()), cg.group_fd[i] >= 0);
	/* the keeper is gone: its descriptors are, the groups are not */
	for (size_t i = 0; i < CM_CG_N; i++) {
		cm_fd_close(&cg.group_fd[i]);
		cm_fd_close(&cg.base_fd[i]);
		cm_fd_close(&cg.tasks_fd[i]);
	}
	assert_int_equal(cm_cgroup_collect(&maker.plan, &err), CM_OK);
	reap_all();
	assert_all_gone(g, own_id());
	assert_int_equal(cm_cgroup_collect(&maker.plan, &err), CM_OK);
}

static void test_empty_leftover_is_replaced(void **state)
{
	struct ground *g = need(state, 0);
	char path[PATH_MAX + 256];
	struct cm_cgroup cg;

	plan_for(g, own_id());
	for (size_t i = 0; i < CM_CG_N; i++) {
		if (g->dir[i][0] == '\0')
			continue;
		(void)snprintf(path, sizeof(path), "%s/cm-%s", g->dir[i], own_id());
		/* v2's base may not be there before the first make */
		(void)!mkdir(g->dir[i], 0755);
		assert_int_equal(mkdir(path, 0700), 0);
		break;
	}
	make(&cg);
	cm_cgroup_remove(&cg);
	assert_all_gone(g, own_id());
}

static uid_t owner_of(int dirfd, const char *file)
{
	struct stat st;

	assert_int_equal(fstatat(dirfd, file, &st, AT_SYMLINK_NOFOLLOW), 0);
	return st.st_uid;
}

static void test_v2_only_procs_is_delegated(void **state)
{
	struct ground *g = need(state, CM_CG_FREEZER);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_cgroup_leaf leaf;
	struct cm_cgroup cg;

	if (g->kind != CM_CGROUP_V2)
		skip();
	plan_for(g, own_id());
	make(&cg);
	assert_int_equal(cm_cgroup_leaf_take(&cg, 1, &leaf, &err), CM_OK);
	assert_int_equal(owner_of(cg.group_fd[0], "cgroup.procs"), INIT_KUID);
	assert_int_equal(owner_of(leaf.join_fd, "cgroup.procs"), INIT_KUID);
	assert_int_equal(owner_of(cg.group_fd[0], "."), 0);
	assert_int_equal(owner_of(cg.group_fd[0], "cgroup.subtree_control"), 0);
	assert_int_equal(owner_of(cg.group_fd[0], "cgroup.kill"), 0);
	assert_int_equal(owner_of(leaf.join_fd, "cgroup.kill"), 0);
	assert_int_equal(owner_of(leaf.join_fd, "cgroup.freeze"), 0);
	assert_string_equal(value_of(&cg, 0, "cgroup.subtree_control"), "");
	cm_cgroup_remove(&cg);
	assert_all_gone(g, own_id());
}

/* 0: everything as it must be; else the line that was not. Runs as init's kernel id in S. */
static int be_init(const struct cm_cgroup *cg, const struct cm_cgroup_leaf *leaf)
{
	int status;
	pid_t pid;

	if (setresgid(INIT_KUID, INIT_KUID, INIT_KUID) < 0 ||
	    setresuid(INIT_KUID, INIT_KUID, INIT_KUID) < 0)
		return 1;
	pid = clone_into(leaf->join_fd);
	if (pid == 0)
		_exit(0);
	if (pid < 0)
		return 2;
	status = wait_for(pid);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return 3;
	/* by the opener's right, not the writer's */
	if (cm_write_all(leaf->kill_fd, "1", 1) < 0)
		return 4;
	if (mkdirat(cg->group_fd[0], "more", 0755) == 0 || errno != EACCES)
		return 5;
	if (cm_write_file_at(cg->group_fd[0], "cgroup.freeze", "1") != -EACCES)
		return 6;
	if (faccessat(cg->group_fd[0], "pids.max", F_OK, 0) == 0 &&
	    cm_write_file_at(cg->group_fd[0], "pids.max", "max") != -EACCES)
		return 7;
	/* out of the session's group */
	if (cm_write_file_at(cg->base_fd[0], "cgroup.procs", "0") != -EACCES)
		return 8;
	return 0;
}

static void test_v2_init_clones_into_leaves(void **state)
{
	struct ground *g = need(state, CM_CG_FREEZER);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_cgroup_leaf leaf;
	struct cm_cgroup cg;
	pid_t pid;

	if (g->kind != CM_CGROUP_V2)
		skip();
	plan_for(g, own_id())->limits.pids = 50;
	make(&cg);
	assert_int_equal(cm_cgroup_leaf_take(&cg, 1, &leaf, &err), CM_OK);
	pid = fork_in(&cg);
	if (pid == 0)
		_exit(be_init(&cg, &leaf));
	assert_int_equal(wait_for(pid), 0);
	cm_cgroup_remove(&cg);
	assert_all_gone(g, own_id());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(test_leaf_is_killed_alone),
		BOTH(test_leaf_refusals),
		BOTH(test_remove_kills_everything),
		ON(1, test_remove_without_freezer),
		BOTH(test_collect),
		BOTH(test_empty_leftover_is_replaced),
		ON(2, test_v2_only_procs_is_delegated),
		ON(2, test_v2_init_clones_into_leaves),
	};

	return ground_main(tests, CM_ARRAY_SIZE(tests));
}
