/* SPDX-License-Identifier: Apache-2.0 */
/* Real control groups for tests: see the header. */
#include "tests/unit/cgroup_ground.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "isolation/host/cgroup_internal.h"
#include "runtime/base/fd.h"

struct ground grounds[2];
struct maker maker;
static unsigned int n_ran;

uint32_t plan_put(const char *s)
{
	size_t at = maker.len;

	maker.len += (size_t)snprintf(maker.strings + at, sizeof(maker.strings) - at, "%s", s) + 1;
	assert_true(maker.len < sizeof(maker.strings));
	return (uint32_t)at;
}

struct cm_plan_header *plan_for(const struct ground *g, const char *id)
{
	memset(&maker, 0, sizeof(maker));
	maker.len = 1;
	maker.header.cgroup = g->kind;
	maker.header.cgroup_controllers = g->controllers;
	maker.header.cgroup_base = plan_put(g->base);
	maker.header.session_id = plan_put(id);
	memset(&maker.header.limits, 0xff, sizeof(maker.header.limits));
	maker.plan.header = &maker.header;
	maker.plan.strings = maker.strings;
	return &maker.header;
}

const char *own_id(void)
{
	static char id[64];

	(void)snprintf(id, sizeof(id), "test.%d", (int)getpid());
	return id;
}

void make(struct cm_cgroup *cg)
{
	struct cm_error err = CM_ERROR_INIT;

	cm_cgroup_init(cg);
	if (cm_cgroup_make(cg, &maker.plan, INIT_KUID, &err) != CM_OK)
		fail_msg("%s (%s)", err.msg, err.hint);
}

struct ground *need(void **state, uint32_t controllers)
{
	struct ground *g = *state;

	if (g->kind == CM_CGROUP_NONE || (g->controllers & controllers) != controllers)
		skip();
	n_ran++;
	return g;
}

bool is_there(const struct ground *g, size_t i, const char *id)
{
	char path[PATH_MAX + 256];

	if (g->dir[i][0] == '\0')
		return false;
	(void)snprintf(path, sizeof(path), "%s/cm-%s", g->dir[i], id);
	return access(path, F_OK) == 0;
}

void assert_all_gone(const struct ground *g, const char *id)
{
	for (size_t i = 0; i < CM_CG_N; i++)
		if (is_there(g, i, id))
			fail_msg("'%s/cm-%s' is left", g->dir[i], id);
}

static void join_v1(const struct cm_cgroup *cg)
{
	for (size_t i = 0; i < CM_CG_N; i++)
		if (cg->tasks_fd[i] >= 0 && cm_write_all(cg->tasks_fd[i], "0", 1) < 0)
			_exit(97);
}

pid_t clone_into(int group_fd)
{
	struct clone_args args = { 0 };

	args.flags = CLONE_INTO_CGROUP;
	args.exit_signal = SIGCHLD;
	args.cgroup = (uint64_t)group_fd;
	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

pid_t fork_in(const struct cm_cgroup *cg)
{
	pid_t pid = cg->kind == CM_CGROUP_V2 ? clone_into(cg->group_fd[0]) : fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (cg->kind == CM_CGROUP_V1)
			join_v1(cg);
	}
	assert_true(pid >= 0);
	return pid;
}

pid_t fork_in_leaf(const struct cm_cgroup *cg, const struct cm_cgroup_leaf *leaf)
{
	pid_t pid = cg->kind == CM_CGROUP_V2 ? clone_into(leaf->join_fd) : fork();

	if (pid == 0 && cg->kind == CM_CGROUP_V1) {
		join_v1(cg);
		if (cm_write_all(leaf->join_fd, "0", 1) < 0)
			_exit(97);
	}
	assert_true(pid >= 0);
	return pid;
}

int wait_for(pid_t pid)
{
	int status = -1;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

void reap_all(void)
{
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		;
}

pid_t sleeper_in(const struct cm_cgroup *cg)
{
	pid_t pid = fork_in(cg);

	if (pid == 0)
		for (;;)
			pause();
	return pid;
}

_Noreturn void run_chain(void)
{
	for (;;) {
		pid_t pid = fork();

		if (pid > 0)
			_exit(0);
		if (pid == 0)
			setsid();
	}
}

const char *value_of(const struct cm_cgroup *cg, size_t i, const char *file)
{
	static char text[512];
	int fd = cg->group_fd[cg->kind == CM_CGROUP_V2 ? 0 : i];

	if (cm_read_file_at(fd, file, text, sizeof(text)) < 0)
		return "(unreadable)";
	text[strcspn(text, "\n")] = '\0';
	return text;
}

static bool read_text(const char *path, char *text, size_t size)
{
	return cm_read_file_at(AT_FDCWD, path, text, size) >= 0;
}

/* Both kinds by themselves, also on a hybrid host, where the product would take v1 only. */
static void find_grounds(void)
{
	static struct cm_host_cgroup facts;
	static struct cm_host_cgroup_v2 v2;
	static char mountinfo[1024 * 1024];
	char self[8192];

	if (!read_text("/proc/self/mountinfo", mountinfo, sizeof(mountinfo)) ||
	    !read_text("/proc/self/cgroup", self, sizeof(self)))
		return;
	cm_host_cgroup_parse(mountinfo, self, &facts);
	if (facts.kind == CM_CGROUP_V1) {
		struct ground *g = &grounds[0];
		size_t len = 0;

		g->kind = CM_CGROUP_V1;
		g->controllers = facts.controllers;
		for (size_t i = 0; i < CM_CG_N; i++) {
			(void)snprintf(g->dir[i], sizeof(g->dir[i]), "%s", facts.v1_base[i]);
			len += (size_t)snprintf(g->base + len, sizeof(g->base) - len, "%s%s",
						i > 0 ? "\n" : "", g->dir[i]);
		}
	}
	if (!cm_host_cgroup_parse_v2(mountinfo, self, &v2))
		return;
	cm_host_cgroup_resolve_v2(true, 0, "/nowhere", &v2, &facts);
	if (facts.kind == CM_CGROUP_V2) {
		grounds[1].kind = CM_CGROUP_V2;
		grounds[1].controllers = facts.controllers;
		(void)snprintf(grounds[1].base, sizeof(grounds[1].base), "%s", facts.v2_base);
		(void)snprintf(grounds[1].dir[0], sizeof(grounds[1].dir[0]), "%s", facts.v2_base);
		grounds[1].had_base = access(facts.v2_base, F_OK) == 0;
	}
}

int ground_main(const struct CMUnitTest *tests, size_t n)
{
	int r;

	if (geteuid() != 0) {
		(void)fprintf(stderr, "skipped: control groups are made as root\n");
		return 77;
	}
	/* orphans of the chains come to us, so that a leftover shows and none is left */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return 1;
	find_grounds();
	r = _cmocka_run_group_tests("cgroup", tests, n, NULL, NULL);
	if (grounds[1].kind == CM_CGROUP_V2 && !grounds[1].had_base)
		(void)!rmdir(grounds[1].base);
	return r == 0 && n_ran == 0 ? 77 : r;
}
