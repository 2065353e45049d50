/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of real control groups: what is written acts, what cannot be is said. */
#include "tests/unit/cgroup_ground.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/fd.h"

static void test_limits_are_written(void **state)
{
	struct ground *g = need(state, CM_CG_MEMORY | CM_CG_PIDS | CM_CG_CPU | CM_CG_CPUSET);
	struct cm_plan_header *h = plan_for(g, own_id());
	struct cm_cgroup cg;
	bool is_v2 = g->kind == CM_CGROUP_V2;

	h->limits.memory_bytes = 64 * MIB + 5;
	h->limits.swap_bytes = 0;
	h->limits.pids = 33;
	h->limits.cpu_milli = 1250;
	h->cpuset = plan_put("0");
	h->cgroup_required = CM_CG_MEMORY | CM_CG_PIDS | CM_CG_CPU | CM_CG_CPUSET;
	make(&cg);
	assert_int_equal(cg.enforced & ~CM_CG_SWAP, h->cgroup_required);
	assert_string_equal(
		value_of(&cg, CM_CGI_MEMORY, is_v2 ? "memory.max" : "memory.limit_in_bytes"),
		"67108864");
	if ((cg.enforced & CM_CG_SWAP) != 0)
		assert_string_equal(
			value_of(&cg, CM_CGI_MEMORY,
				 is_v2 ? "memory.swap.max" : "memory.memsw.limit_in_bytes"),
			is_v2 ? "0" : "67108864");
	assert_string_equal(value_of(&cg, CM_CGI_PIDS, "pids.max"), "33");
	assert_string_equal(value_of(&cg, CM_CGI_CPU, is_v2 ? "cpu.max" : "cpu.cfs_quota_us"),
			    is_v2 ? "125000 100000" : "125000");
	assert_string_equal(value_of(&cg, CM_CGI_CPUSET, "cpuset.cpus"), "0");
	cm_cgroup_remove(&cg);
	assert_int_equal(cg.kind, CM_CGROUP_NONE);
	assert_all_gone(g, own_id());
}

static void test_no_limits(void **state)
{
	struct ground *g = need(state, 0);
	struct cm_cgroup_usage usage;
	struct cm_cgroup_now now;
	struct cm_cgroup cg;

	plan_for(g, own_id());
	make(&cg);
	assert_int_equal(cg.enforced, 0);
	cm_cgroup_usage(&cg, &usage);
	assert_int_equal(usage.oom_kills, 0);
	cm_cgroup_now(&cg, &now);
	assert_true(now.n_tasks == 0 || now.n_tasks == CM_CGROUP_UNKNOWN);
	/* removing twice, and what was never made */
	cm_cgroup_remove(&cg);
	cm_cgroup_remove(&cg);
	assert_all_gone(g, own_id());
}

static void test_memory_limit_acts(void **state)
{
	struct ground *g = need(state, CM_CG_MEMORY);
	struct cm_plan_header *h = plan_for(g, own_id());
	struct cm_cgroup_usage usage;
	struct cm_cgroup_now now;
	struct cm_cgroup cg;
	pid_t init;
	pid_t pid;
	int status;

	h->limits.memory_bytes = 16 * MIB;
	h->limits.swap_bytes = 0;
	h->cgroup_required = CM_CG_MEMORY;
	make(&cg);
	init = sleeper_in(&cg);
	pid = fork_in(&cg);
	if (pid == 0) {
		char *p = mmap(NULL, 64 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			       -1, 0);

		if (p == MAP_FAILED)
			_exit(98);
		for (size_t i = 0; i < 64 * MIB; i += 4096)
			p[i] = 1;
		_exit(0);
	}
	status = wait_for(pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
	/* the small one beside it lives: the session survives a command that wants too much */
	assert_int_equal(waitpid(init, NULL, WNOHANG), 0);
	cm_cgroup_usage(&cg, &usage);
	assert_true(usage.oom_kills >= 1);
	/* memory.peak came with Linux 5.19 */
	assert_true(usage.memory_peak_bytes == 0 || usage.memory_peak_bytes > 8 * MIB);
	cm_cgroup_now(&cg, &now);
	assert_true(now.memory_bytes < 16 * MIB);
	/* CM_CGROUP_UNKNOWN, from before that, is more than any */
	assert_true(now.memory_peak_bytes > 8 * MIB);
	cm_cgroup_remove(&cg);
	reap_all();
	assert_all_gone(g, own_id());
}

static void test_now(void **state)
{
	struct ground *g = need(state, CM_CG_MEMORY | CM_CG_PIDS);
	struct cm_plan_header *h = plan_for(g, own_id());
	struct cm_cgroup_now now;
	struct cm_cgroup cg;
	int ready[2];
	char c = 0;

	h->limits.memory_bytes = 64 * MIB;
	h->limits.pids = 5;
	make(&cg);
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	if (fork_in(&cg) == 0) {
		char *p = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			       -1, 0);

		for (size_t i = 0; p != MAP_FAILED && i < 4 * MIB; i += 4096)
			p[i] = 1;
		(void)!write(ready[1], "x", 1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	cm_cgroup_now(&cg, &now);
	assert_true(now.memory_bytes >= 4 * MIB && now.memory_bytes < 64 * MIB);
	assert_true(now.memory_peak_bytes >= 4 * MIB);
	assert_int_equal(now.n_tasks, 1);
	assert_true(now.cpu_us > 0);
	(void)close(ready[0]);
	(void)close(ready[1]);
	cm_cgroup_remove(&cg);
	reap_all();
	assert_all_gone(g, own_id());
}

static void test_pids_limit_acts(void **state)
{
	struct ground *g = need(state, CM_CG_PIDS);
	struct cm_plan_header *h = plan_for(g, own_id());
	struct cm_cgroup cg;
	pid_t pid;

	h->limits.pids = 5;
	h->cgroup_required = CM_CG_PIDS;
	make(&cg);
	pid = fork_in(&cg);
	if (pid == 0) {
		int n = 1;

		while (n < 20) {
			pid_t child = fork();

			if (child == 0)
				for (;;)
					pause();
			if (child < 0)
				break;
			n++;
		}
		_exit(errno == EAGAIN ? n : 96);
	}
	assert_int_equal(WEXITSTATUS(wait_for(pid)), 5);
	assert_string_equal(value_of(&cg, CM_CGI_PIDS, "pids.current"), "4");
	cm_cgroup_remove(&cg);
	reap_all();
	assert_all_gone(g, own_id());
}

static void test_cpu_quota_acts(void **state)
{
	struct ground *g = need(state, CM_CG_CPU);
	struct cm_plan_header *h = plan_for(g, own_id());
	struct rusage before;
	struct rusage after;
	struct cm_cgroup cg;
	int64_t start;
	int64_t wall_us;
	int64_t cpu_us;
	pid_t pid;

	h->limits.cpu_milli = 100;
	h->cgroup_required = CM_CG_CPU;
	make(&cg);
	assert_int_equal(getrusage(RUSAGE_CHILDREN, &before), 0);
	start = cm_clock_mono_us();
	pid = fork_in(&cg);
	if (pid == 0) {
		for (volatile unsigned long i = 0;; i++)
			;
	}
	cm_cgroup_sleep_ms(700);
	kill(pid, SIGKILL);
	wait_for(pid);
	wall_us = cm_clock_mono_us() - start;
	assert_int_equal(getrusage(RUSAGE_CHILDREN, &after), 0);
	cpu_us = (after.ru_utime.tv_sec - before.ru_utime.tv_sec) * 1000000 +
		 (after.ru_utime.tv_usec - before.ru_utime.tv_usec);
	assert_true(cpu_us > 10000);
	/* a tenth, and a slice of the scheduler's more */
	assert_true(cpu_us < wall_us / 2);
	cm_cgroup_remove(&cg);
	assert_all_gone(g, own_id());
}

static void test_required_that_cannot_be(void **state)
{
	struct ground *g = need(state, CM_CG_CPUSET | CM_CG_PIDS);
	struct cm_plan_header *h = plan_for(g, own_id());
	struct cm_error err = CM_ERROR_INIT;
	struct cm_cgroup cg;

	h->limits.pids = 10;
	h->cpuset = plan_put("8000");
	h->cgroup_required = CM_CG_CPUSET;
	cm_cgroup_init(&cg);
	assert_int_equal(cm_cgroup_make(&cg, &maker.plan, INIT_KUID, &err), CM_E_LEVEL);
	assert_non_null(strstr(err.msg, "cpu set"));
	assert_string_not_equal(err.hint, "");
	assert_int_equal(cg.kind, CM_CGROUP_NONE);
	for (size_t i = 0; i < CM_CG_N; i++) {
		assert_int_equal(cg.group_fd[i], -1);
		assert_int_equal(cg.base_fd[i], -1);
		assert_int_equal(cg.tasks_fd[i], -1);
	}
	assert_all_gone(g, own_id());
	/* the same, optional: made, and not said to be enforced */
	h->cgroup_required = 0;
	make(&cg);
	assert_int_equal(cg.enforced, CM_CG_PIDS);
	cm_cgroup_remove(&cg);
	assert_all_gone(g, own_id());
}

static void test_required_without_a_controller(void **state)
{
	struct ground *g = need(state, 0);
	struct cm_plan_header *h = plan_for(g, own_id());
	struct cm_error err = CM_ERROR_INIT;
	struct cm_cgroup cg;

	/* no base has it: on v1 an empty line, on v2 a controller that nobody handed down */
	if (g->kind == CM_CGROUP_V2 && (g->controllers & CM_CG_MEMORY) != 0)
		skip();
	h->limits.memory_bytes = 64 * MIB;
	h->cgroup_controllers |= CM_CG_MEMORY;
	h->cgroup_required = CM_CG_MEMORY;
	if (g->kind == CM_CGROUP_V1)
		maker.strings[h->cgroup_base] = '\n';
	cm_cgroup_init(&cg);
	assert_int_equal(cm_cgroup_make(&cg, &maker.plan, INIT_KUID, &err), CM_E_LEVEL);
	assert_int_equal(cg.kind, CM_CGROUP_NONE);
	assert_all_gone(g, own_id());
}

static void test_base_that_is_no_cgroup(void **state)
{
	struct ground *g = need(state, 0);
	struct cm_plan_header *h = plan_for(g, own_id());
	struct cm_error err = CM_ERROR_INIT;
	struct cm_cgroup cg;

	h->cgroup_controllers = CM_CG_MEMORY;
	h->cgroup_base = plan_put("/tmp/casemate-test-absent");
	cm_cgroup_init(&cg);
	assert_int_equal(cm_cgroup_make(&cg, &maker.plan, INIT_KUID, &err), CM_E_LEVEL);
	assert_int_not_equal(access("/tmp/casemate-test-absent", F_OK), 0);
	h->cgroup_base = plan_put("/tmp");
	assert_int_equal(cm_cgroup_make(&cg, &maker.plan, INIT_KUID, &err), CM_E_LEVEL);
	assert_int_equal(cm_cgroup_collect(&maker.plan, &err), CM_OK);
}

static void test_bad_ids(void **state)
{
	static const char *const ids[] = { "", "a/b", "../x", "a b", "a\nb", "\xc3\xa9" };
	struct ground *g = need(state, 0);
	char longest[130];
	struct cm_error err = CM_ERROR_INIT;
	struct cm_cgroup cg;

	cm_cgroup_init(&cg);
	for (size_t i = 0; i < CM_ARRAY_SIZE(ids); i++) {
		plan_for(g, ids[i]);
		assert_int_equal(cm_cgroup_make(&cg, &maker.plan, INIT_KUID, &err), CM_E_INVALID);
		assert_int_equal(cm_cgroup_collect(&maker.plan, &err), CM_E_INVALID);
	}
	memset(longest, 'a', sizeof(longest));
	longest[129] = '\0';
	plan_for(g, longest);
	assert_int_equal(cm_cgroup_make(&cg, &maker.plan, INIT_KUID, &err), CM_E_INVALID);
	longest[128] = '\0';
	plan_for(g, longest);
	make(&cg);
	cm_cgroup_remove(&cg);
	assert_all_gone(g, longest);
}

static void test_none(void **state)
{
	static const struct ground none;
	struct cm_plan_header *h = plan_for(&none, "x");
	struct cm_error err = CM_ERROR_INIT;
	struct cm_cgroup_usage usage;
	struct cm_cgroup cg;

	(void)state;
	make(&cg);
	assert_int_equal(cg.enforced, 0);
	cm_cgroup_usage(&cg, &usage);
	cm_cgroup_remove(&cg);
	assert_int_equal(cm_cgroup_collect(&maker.plan, &err), CM_OK);
	h->cgroup_required = CM_CG_MEMORY;
	assert_int_equal(cm_cgroup_make(&cg, &maker.plan, INIT_KUID, &err), CM_E_LEVEL);
}

static void test_base_override(void **state)
{
	struct ground *g = need(state, 0);
	struct cm_cgroup cg;
	struct cm_error err = CM_ERROR_INIT;

	if (g->kind != CM_CGROUP_V2)
		skip();
	plan_for(g, own_id());
	maker.header.cgroup_base = 0;
	cm_cgroup_init(&cg);
	assert_int_equal(cm_cgroup_make(&cg, &maker.plan, INIT_KUID, &err), CM_E_LEVEL);
	cg.base = g->base;
	assert_int_equal(cm_cgroup_make(&cg, &maker.plan, INIT_KUID, &err), CM_OK);
	assert_true(is_there(g, 0, own_id()));
	cm_cgroup_remove(&cg);
	assert_all_gone(g, own_id());
}

#define N_KEEPERS 10

/* 0 when this one of ten has what it asked for. */
static int be_keeper(const struct ground *g, int turn)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_cgroup cg;
	struct cm_plan_header *h;
	char id[64];
	uint32_t wanted = g->controllers & (CM_CG_PIDS | CM_CG_MEMORY);
	int r;

	(void)snprintf(id, sizeof(id), "test.%d.%d", (int)getppid(), turn);
	h = plan_for(g, id);
	if ((wanted & CM_CG_MEMORY) != 0)
		h->limits.memory_bytes = 64 * MIB;
	if ((wanted & CM_CG_PIDS) != 0)
		h->limits.pids = 20;
	h->cgroup_required = wanted;
	cm_cgroup_init(&cg);
	r = cm_cgroup_make(&cg, &maker.plan, INIT_KUID, &err);
	if (r < 0) {
		(void)fprintf(stderr, "keeper %d: %s\n", turn, err.msg);
		return 1;
	}
	r = cg.enforced == wanted ? 0 : 2;
	cm_cgroup_remove(&cg);
	return r == 0 && is_there(g, 0, id) ? 3 : r;
}

static void test_ten_keepers_at_once(void **state)
{
	struct ground *g = need(state, 0);
	pid_t pids[N_KEEPERS];
	int go[2];
	char c;

	/* the base too is made by one of them */
	if (g->kind == CM_CGROUP_V2 && !g->had_base)
		(void)!rmdir(g->base);
	assert_int_equal(pipe(go), 0);
	for (int i = 0; i < N_KEEPERS; i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (pids[i] != 0)
			continue;
		close(go[1]);
		(void)!read(go[0], &c, 1);
		_exit(be_keeper(g, i));
	}
	close(go[0]);
	close(go[1]);
	for (int i = 0; i < N_KEEPERS; i++)
		assert_int_equal(wait_for(pids[i]), 0);
}

static int count_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void test_no_descriptor_is_left(void **state)
{
	struct ground *g = need(state, CM_CG_FREEZER);
	int before = count_fds();
	struct cm_error err = CM_ERROR_INIT;
	struct cm_cgroup_leaf leaf;
	struct cm_cgroup cg;

	plan_for(g, own_id());
	for (int i = 0; i < 3; i++) {
		make(&cg);
		assert_int_equal(cm_cgroup_leaf_take(&cg, 1, &leaf, &err), CM_OK);
		cm_cgroup_remove(&cg);
		assert_int_equal(count_fds(), before);
	}
	assert_all_gone(g, own_id());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(test_limits_are_written),
		BOTH(test_no_limits),
		BOTH(test_memory_limit_acts),
		BOTH(test_now),
		BOTH(test_pids_limit_acts),
		BOTH(test_cpu_quota_acts),
		BOTH(test_required_that_cannot_be),
		BOTH(test_required_without_a_controller),
		BOTH(test_base_that_is_no_cgroup),
		BOTH(test_bad_ids),
		ON(1, test_none),
		ON(2, test_base_override),
		BOTH(test_ten_keepers_at_once),
		BOTH(test_no_descriptor_is_left),
	};

	return ground_main(tests, CM_ARRAY_SIZE(tests));
}
