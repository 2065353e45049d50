/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The session's control group: what is the same for v1 and v2.
 *
 * Memory limit: at the limit the kernel kills one process, the largest (memory.oom.group stays
 * 0). With 1 it would kill the whole group, and init is in it: a compiler that needs too much
 * would end the session and every other command. Init is not chosen, because the choice goes by
 * memory and init has a few dozen pages, and because nothing inside can make itself less likely
 * than its parent (oom_score_adj below the inherited one takes CAP_SYS_RESOURCE). That a kill
 * happened is not silent: cm_cgroup_usage counts them, and who compares the count before and
 * after a command can say that it ended by the memory limit, whichever of its processes it was.
 *
 * Order: group, limits, read back, delegation. Whatever fails, the groups go again.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "isolation/mech/cgroup_internal.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/text.h"

#define REMOVE_MS 2000

/* The option that names the limit, for messages and hints. */
static const struct {
	uint32_t bit;
	const char *what;
	const char *hint;
} limit_texts[] = {
	{ CM_CG_MEMORY, "memory limit", "make it optional, for example --memory '4G?'" },
	{ CM_CG_PIDS, "limit of processes", "make it optional, for example --pids-limit '4096?'" },
	{ CM_CG_CPU, "cpu limit", "make it optional, for example --cpus '2?'" },
	{ CM_CG_CPUSET, "cpu set", "name processors that this host has, or leave --cpuset out" },
	{ CM_CG_SWAP, "swap limit", "make it optional, for example --swap '0?'" },
};

void cm_cgroup_init(struct cm_cgroup *cg)
{
	memset(cg, 0, sizeof(*cg));
	for (size_t i = 0; i < CM_CG_N; i++) {
		cg->group_fd[i] = -1;
		cg->base_fd[i] = -1;
		cg->tasks_fd[i] = -1;
	}
	cg->oom_fd = -1;
}

static void close_fds(struct cm_cgroup *cg)
{
	for (unsigned int i = 0; i < cg->n_leaves; i++) {
		cm_fd_close(&cg->leaves[i].join_fd);
		cm_fd_close(&cg->leaves[i].kill_fd);
	}
	cg->n_leaves = 0;
	for (size_t i = 0; i < CM_CG_N; i++) {
		cm_fd_close(&cg->group_fd[i]);
		cm_fd_close(&cg->base_fd[i]);
		cm_fd_close(&cg->tasks_fd[i]);
	}
	cm_fd_close(&cg->oom_fd);
	cg->kind = CM_CGROUP_NONE;
	cg->enforced = 0;
	cg->name[0] = '\0';
}

/*
 * The id becomes a file name in a directory of the host's, so it is checked here too, whoever
 * checked it before.
 */
static int set_name(struct cm_cgroup *cg, const char *session_id, struct cm_error *err)
{
	if (!cm_text_is_session_id(session_id)) {
		cm_error_set(err, CM_E_INVALID, 0, "a session id cannot name a control group");
		cm_error_hint(err, "use 1 to 128 of A-Z a-z 0-9 . _ -");
		return CM_E_INVALID;
	}
	(void)snprintf(cg->name, sizeof(cg->name), "cm-%s", session_id);
	return CM_OK;
}

uint32_t cm_cgroup_wanted(const struct cm_plan *plan)
{
	const struct cm_plan_header *h = plan->header;
	uint32_t bits = 0;

	if (h->limits.memory_bytes != UINT64_MAX)
		bits |= CM_CG_MEMORY;
	if (h->limits.swap_bytes != UINT64_MAX)
		bits |= CM_CG_SWAP;
	if (h->limits.pids != UINT64_MAX)
		bits |= CM_CG_PIDS;
	if (h->limits.cpu_milli != UINT64_MAX)
		bits |= CM_CG_CPU;
	if (cm_plan_str(plan, h->cpuset)[0] != '\0')
		bits |= CM_CG_CPUSET;
	return bits;
}

static const char *why_not(int r)
{
	switch (-r) {
	case ENOENT:
		return "the group has no such controller";
	case ERANGE:
		return "the kernel did not take the value";
	default:
		return strerror(-r);
	}
}

int cm_cgroup_note(struct cm_cgroup *cg, const struct cm_plan_header *h, uint32_t bit, int r,
		   const char *where, struct cm_error *err)
{
	if (r == 0) {
		cg->enforced |= bit;
		return CM_OK;
	}
	if ((h->cgroup_required & bit) == 0)
		return CM_OK;
	for (size_t i = 0; i < CM_ARRAY_SIZE(limit_texts); i++) {
		if (limit_texts[i].bit != bit)
			continue;
		cm_error_set(err, CM_E_LEVEL, -r, "%s cannot be enforced here: '%s' in '%s' (%s)",
			     limit_texts[i].what, cg->name, where, why_not(r));
		cm_error_hint(err, "%s", limit_texts[i].hint);
		return CM_E_LEVEL;
	}
	return cm_error_set(err, CM_E_BUG, 0, "no text for control group limit 0x%x",
			    (unsigned int)bit);
}

int cm_cgroup_make_failed(const char *base, const char *name, int r, struct cm_error *err)
{
	if (r == -EBUSY || r == -ENOTEMPTY) {
		cm_error_set(err, CM_E_BUSY, -r, "control group '%s/%s' is in use", base, name);
		cm_error_hint(err, "a session of this id still runs, or its processes are left: "
				   "casemate rm ID");
		return CM_E_BUSY;
	}
	cm_error_set(err, CM_E_LEVEL, -r, "cannot make control group '%s/%s' (%s)", base, name,
		     strerror(-r));
	cm_error_hint(err, "see 'casemate doctor' for where control groups can be made");
	return CM_E_LEVEL;
}

/* No group: then no limit that the plan requires a group for can hold. */
static int check_none(const struct cm_plan_header *h, struct cm_error *err)
{
	if (h->cgroup_required == 0)
		return CM_OK;
	cm_error_set(err, CM_E_LEVEL, 0,
		     "required limits cannot be enforced without control groups");
	cm_error_hint(err, "make the limits optional, for example --memory '4G?'");
	return CM_E_LEVEL;
}

int cm_cgroup_make(struct cm_cgroup *cg, const struct cm_plan *plan, uid_t init_kuid,
		   struct cm_error *err)
{
	const struct cm_plan_header *h = plan->header;
	int r;

	if (h->cgroup == CM_CGROUP_NONE)
		return check_none(h, err);
	r = set_name(cg, cm_plan_str(plan, h->session_id), err);
	if (r < 0)
		return r;
	cg->kind = (enum cm_plan_cgroup)h->cgroup;
	cg->init_kuid = init_kuid;
	if (cg->kind == CM_CGROUP_V2)
		r = cm_cgroup_v2_make(cg, plan, err);
	else
		r = cm_cgroup_v1_make(cg, plan, err);
	if (r < 0)
		cm_cgroup_remove(cg);
	return r;
}

/* The hierarchy whose groups have leaves: v2's one, v1's freezer. -1: none. */
static int leaf_parent(const struct cm_cgroup *cg)
{
	switch (cg->kind) {
	case CM_CGROUP_V2:
		return cg->group_fd[0];
	case CM_CGROUP_V1:
		return cg->group_fd[CM_CGI_FREEZER];
	case CM_CGROUP_NONE:
		break;
	}
	return -1;
}

static int make_leaf(struct cm_cgroup *cg, unsigned int slot, struct cm_cgroup_leaf *ret,
		     struct cm_error *err)
{
	struct cm_cgroup_leaf leaf = { -1, -1, false };
	char name[CM_CGROUP_LEAF_NAME_SIZE];
	int parent = leaf_parent(cg);
	CM_AUTO_FD int fd = -1;
	int r;

	(void)snprintf(name, sizeof(name), "x%u", slot);
	r = cm_cgroup_group_make(parent, name, &fd);
	if (r < 0)
		return cm_cgroup_make_failed(cg->name, name, r, err);
	if (cg->kind == CM_CGROUP_V2)
		r = cm_cgroup_v2_leaf_open(cg, name, &leaf);
	else
		r = cm_cgroup_v1_leaf_open(cg, name, &leaf);
	if (r < 0) {
		cm_fd_close(&leaf.join_fd);
		cm_fd_close(&leaf.kill_fd);
		(void)unlinkat(parent, name, AT_REMOVEDIR);
		return cm_cgroup_make_failed(cg->name, name, r, err);
	}
	*ret = leaf;
	return CM_OK;
}

static bool is_empty(struct cm_cgroup *cg, unsigned int slot)
{
	char path[CM_CGROUP_LEAF_NAME_SIZE + 16];
	char text[64];
	uint64_t populated = 1;

	if (cg->kind == CM_CGROUP_V2) {
		(void)snprintf(path, sizeof(path), "x%u/cgroup.events", slot);
		return cm_cgroup_read_key(leaf_parent(cg), path, "populated", &populated) == 0 &&
		       populated == 0;
	}
	(void)snprintf(path, sizeof(path), "x%u/cgroup.procs", slot);
	return cm_read_file_at(leaf_parent(cg), path, text, sizeof(text)) == 0;
}

void cm_cgroup_leaf_settle(struct cm_cgroup *cg, unsigned int slot)
{
	if (slot < cg->n_leaves && cg->leaves[slot].join_fd >= 0)
		cg->leaves[slot].is_seen_empty = is_empty(cg, slot);
}

int cm_cgroup_leaf_take(struct cm_cgroup *cg, unsigned int slot, struct cm_cgroup_leaf *ret,
			struct cm_error *err)
{
	int r = CM_OK;

	if (slot >= CM_MAX_EXECS)
		return cm_error_set(err, CM_E_BUG, 0, "exec slot %u has no control group", slot);
	if (leaf_parent(cg) < 0) {
		cm_error_set(err, CM_E_UNSUPPORTED, 0, "there are no control groups for commands");
		cm_error_hint(err, "mount the v1 freezer hierarchy, or use v2");
		return CM_E_UNSUPPORTED;
	}
	for (; cg->n_leaves <= slot; cg->n_leaves++)
		cg->leaves[cg->n_leaves] = (struct cm_cgroup_leaf){ -1, -1, false };
	if (cg->leaves[slot].join_fd < 0)
		r = make_leaf(cg, slot, &cg->leaves[slot], err);
	else if (!cg->leaves[slot].is_seen_empty && !is_empty(cg, slot))
		r = cm_error_set(err, CM_E_BUSY, 0, "the last command's processes are there still");
	if (r == CM_OK)
		cg->leaves[slot].is_seen_empty = false;
	*ret = cg->leaves[slot];
	return r;
}

void cm_cgroup_leaf_drop(struct cm_cgroup *cg, unsigned int slot)
{
	char name[CM_CGROUP_LEAF_NAME_SIZE];

	if (slot >= CM_MAX_EXECS || slot >= cg->n_leaves || cg->leaves[slot].join_fd < 0)
		return;
	cm_fd_close(&cg->leaves[slot].join_fd);
	cm_fd_close(&cg->leaves[slot].kill_fd);
	(void)snprintf(name, sizeof(name), "x%u", slot);
	/* what is in it still is seen by who makes it again */
	(void)cm_cgroup_group_remove(leaf_parent(cg), name);
}

void cm_cgroup_usage(struct cm_cgroup *cg, struct cm_cgroup_usage *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->oom_kills = cm_cgroup_oom_kills(cg);
	switch (cg->kind) {
	case CM_CGROUP_V2:
		cm_cgroup_v2_usage(cg, ret);
		break;
	case CM_CGROUP_V1:
		cm_cgroup_v1_usage(cg, ret);
		break;
	case CM_CGROUP_NONE:
		break;
	}
}

uint64_t cm_cgroup_oom_kills(struct cm_cgroup *cg)
{
	uint64_t n = 0;

	/* a hierarchy that is not there leaves it at 0: not known */
	if (cg->kind == CM_CGROUP_V2)
		(void)cm_cgroup_read_key_again(cg->group_fd[0], "memory.events", &cg->oom_fd,
					       "oom_kill", &n);
	else if (cg->kind == CM_CGROUP_V1 && cg->group_fd[CM_CGI_MEMORY] >= 0)
		(void)cm_cgroup_read_key_again(cg->group_fd[CM_CGI_MEMORY], "memory.oom_control",
					       &cg->oom_fd, "oom_kill", &n);
	return n;
}

/* SIGKILL everything in the group and its leaves. */
static void kill_all(struct cm_cgroup *cg)
{
	switch (cg->kind) {
	case CM_CGROUP_V2:
		cm_cgroup_v2_kill(cg);
		break;
	case CM_CGROUP_V1:
		cm_cgroup_v1_kill(cg);
		break;
	case CM_CGROUP_NONE:
		break;
	}
}

/* 0 when nothing is left. Two controllers mounted together are one group: gone is gone. */
static int try_remove(struct cm_cgroup *cg)
{
	int r = 0;

	for (size_t i = 0; i < CM_CG_N; i++) {
		int one = cg->base_fd[i] < 0 ? 0 : cm_cgroup_group_remove(cg->base_fd[i], cg->name);

		if (r == 0)
			r = one;
	}
	return r;
}

/*
 * Killed processes leave their group when they are gone through exit, which takes a moment and
 * which a task in uninterruptible sleep puts off for as long as it likes: hence the limit.
 */
static int kill_and_remove(struct cm_cgroup *cg)
{
	int64_t deadline = cm_clock_mono_ms() + REMOVE_MS;
	unsigned int pause_ms = 1;
	int r = try_remove(cg);

	while (r < 0) {
		kill_all(cg);
		r = try_remove(cg);
		if (r == 0 || cm_clock_mono_ms() >= deadline)
			break;
		cm_cgroup_sleep_ms(pause_ms);
		pause_ms = pause_ms < 50 ? pause_ms * 2 : 50;
	}
	close_fds(cg);
	return r;
}

void cm_cgroup_remove(struct cm_cgroup *cg)
{
	if (cg->kind != CM_CGROUP_NONE)
		(void)kill_and_remove(cg);
}

int cm_cgroup_collect(const struct cm_plan *plan, struct cm_error *err)
{
	const struct cm_plan_header *h = plan->header;
	struct cm_cgroup cg;
	bool is_there;
	char name[sizeof(cg.name)];
	int r;

	if (h->cgroup == CM_CGROUP_NONE)
		return CM_OK;
	cm_cgroup_init(&cg);
	r = set_name(&cg, cm_plan_str(plan, h->session_id), err);
	if (r < 0)
		return r;
	memcpy(name, cg.name, sizeof(name));
	cg.kind = (enum cm_plan_cgroup)h->cgroup;
	is_there = cg.kind == CM_CGROUP_V2 ? cm_cgroup_v2_open(&cg, plan)
					   : cm_cgroup_v1_open(&cg, plan);
	r = is_there ? kill_and_remove(&cg) : 0;
	close_fds(&cg);
	if (r == 0)
		return CM_OK;
	cm_error_set(err, CM_E_BUSY, -r, "cannot remove control group '%s'", name);
	cm_error_hint(err,
		      "a process in it cannot be killed now; see its cgroup.procs and try again");
	return CM_E_BUSY;
}
