/* SPDX-License-Identifier: Apache-2.0 */
/* Limits: built-in ones hold where they can, named ones hold or nothing starts. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "isolation/plan/build_internal.h"
#include "runtime/base/fd.h"

#define DEFAULT_PIDS 4096
#define DEFAULT_OPEN_FILES 65536
#define DEFAULT_MEMORY_PERCENT 80

/* How values are written on the command line, for hints. */
static void format_size(uint64_t value, char *buf, size_t size)
{
	static const char *const units[] = { "", "K", "M", "G", "T" };
	size_t unit = 0;

	while (unit + 1 < CM_ARRAY_SIZE(units) && value >= 1024 && value % 1024 == 0) {
		value /= 1024;
		unit++;
	}
	(void)snprintf(buf, size, "%" PRIu64 "%s", value, units[unit]);
}

static void format_count(uint64_t value, char *buf, size_t size)
{
	(void)snprintf(buf, size, "%" PRIu64, value);
}

static void format_milli(uint64_t value, char *buf, size_t size)
{
	int n = snprintf(buf, size, "%" PRIu64 ".%03u", value / 1000, (unsigned int)(value % 1000));

	while (n > 0 && buf[n - 1] == '0')
		buf[--n] = '\0';
	if (n > 0 && buf[n - 1] == '.')
		buf[n - 1] = '\0';
}

static bool is_required(const struct cm_limit *limit)
{
	return limit->is_set && !limit->is_optional && limit->value != CM_UNLIMITED;
}

static int cannot_enforce(const struct cm_build *build, const char *what, const char *controller,
			  const char *option, const char *value, struct cm_error *err)
{
	const char *reason = build->req->host->cgroup.reason;
	char text[64];

	(void)snprintf(text, sizeof(text), "no delegated %s controller", controller);
	cm_error_set(err, CM_E_LEVEL, 0, "%s limit cannot be enforced here (%s)", what,
		     reason[0] ? reason : text);
	if (build->req->host->cgroup.needs_manager)
		cm_error_hint(err,
			      "sudo loginctl enable-linger %s, or use %s '%s?' to go on without",
			      build->req->host->user_name, option, value);
	else
		cm_error_hint(err, "see 'casemate doctor', or use %s '%s?' to go on without",
			      option, value);
	return CM_E_LEVEL;
}

struct rule {
	const char *what;
	const char *controller;
	const char *option;
	const struct cm_limit *limit;
	/* the group that has it, and its bit among the required limits */
	uint32_t group;
	uint32_t bit;
	void (*format)(uint64_t value, char *buf, size_t size);
	uint64_t *value;
};

/* Takes the limit over where a group enforces it; a named one that none does stops the start. */
static int apply(struct cm_build *build, const struct rule *rule, uint64_t fallback,
		 struct cm_error *err)
{
	const struct cm_host_cgroup *cg = &build->req->host->cgroup;
	struct cm_plan_header *h = &build->b->header;
	uint64_t value = rule->limit->is_set ? rule->limit->value : fallback;
	bool can = cg->kind != CM_CGROUP_NONE && (cg->controllers & rule->group) != 0;
	char text[40];

	*rule->value = UINT64_MAX;
	if (value == CM_UNLIMITED)
		return CM_OK;
	if (!can && is_required(rule->limit)) {
		rule->format(value, text, sizeof(text));
		return cannot_enforce(build, rule->what, rule->controller, rule->option, text, err);
	}
	if (!can && rule->limit->is_advised) {
		rule->format(value, text, sizeof(text));
		cm_build_warn_unenforced(build, rule->what, text);
	}
	if (!can) {
		/* without groups RLIMIT_NPROC counts the id's processes in the jail's user
		 * namespace, which keeps a fork bomb from the host's pids */
		if (rule->bit == CM_CG_PIDS && cg->kind == CM_CGROUP_NONE)
			*rule->value = value;
		return CM_OK;
	}
	*rule->value = value;
	h->cgroup_controllers |= rule->group;
	if (is_required(rule->limit))
		h->cgroup_required |= rule->bit;
	return CM_OK;
}

static int apply_all(struct cm_build *build, struct cm_error *err)
{
	const struct cm_limits *limits = &build->req->spec->limits;
	struct cm_plan_limits *to = &build->b->header.limits;
	uint64_t memory = build->req->host->memory_bytes / 100 * DEFAULT_MEMORY_PERCENT;
	/* swap would make a memory limit a limit on speed alone */
	bool wants_no_swap = limits->memory.is_set && limits->memory.value != CM_UNLIMITED;
	const struct rule rules[] = {
		{ "memory", "memory", "--memory", &limits->memory, CM_CG_MEMORY, CM_CG_MEMORY,
		  format_size, &to->memory_bytes },
		{ "swap", "memory", "--swap", &limits->swap, CM_CG_MEMORY, CM_CG_SWAP, format_size,
		  &to->swap_bytes },
		{ "pids", "pids", "--pids-limit", &limits->pids, CM_CG_PIDS, CM_CG_PIDS,
		  format_count, &to->pids },
		{ "cpus", "cpu", "--cpus", &limits->cpus, CM_CG_CPU, CM_CG_CPU, format_milli,
		  &to->cpu_milli },
	};
	const uint64_t fallbacks[CM_ARRAY_SIZE(rules)] = {
		memory ? memory : CM_UNLIMITED,
		wants_no_swap ? 0 : CM_UNLIMITED,
		DEFAULT_PIDS,
		CM_UNLIMITED,
	};

	for (size_t i = 0; i < CM_ARRAY_SIZE(rules); i++) {
		int r = apply(build, &rules[i], fallbacks[i], err);

		if (r < 0)
			return r;
	}
	return CM_OK;
}

static int apply_cpuset(struct cm_build *build, struct cm_error *err)
{
	const struct cm_limits *limits = &build->req->spec->limits;
	const struct cm_host_cgroup *cg = &build->req->host->cgroup;
	struct cm_plan_header *h = &build->b->header;

	if (!limits->cpuset)
		return CM_OK;
	if (limits->is_cpuset_advised &&
	    (cg->kind == CM_CGROUP_NONE || (cg->controllers & CM_CG_CPUSET) == 0))
		cm_build_warn_unenforced(build, "cpuset", limits->cpuset);
	if (cg->kind == CM_CGROUP_NONE || (cg->controllers & CM_CG_CPUSET) == 0)
		return limits->is_cpuset_optional ? CM_OK
						  : cannot_enforce(build, "cpuset", "cpuset",
								   "--cpuset", limits->cpuset, err);
	h->cpuset = cm_plan_builder_str(build->b, limits->cpuset);
	h->cgroup_controllers |= CM_CG_CPUSET;
	if (!limits->is_cpuset_optional)
		h->cgroup_required |= CM_CG_CPUSET;
	return CM_OK;
}

/* Set by setrlimit, so no group is needed; a hard limit of the caller's is never raised. */
static int apply_open_files(struct cm_build *build, struct cm_error *err)
{
	const struct cm_limit *limit = &build->req->spec->limits.open_files;
	uint64_t max = build->req->host->max_open_files;
	uint64_t value = limit->is_set ? limit->value : DEFAULT_OPEN_FILES;

	if (max == 0)
		max = UINT64_MAX;
	if (is_required(limit) && value > max) {
		cm_error_set(err, CM_E_LEVEL, 0,
			     "open-files limit cannot be %" PRIu64 " here (the caller's hard limit "
			     "is %" PRIu64 ")",
			     value, max);
		cm_error_hint(err, "--open-files %" PRIu64 ", or raise the limit with ulimit -Hn",
			      max);
		return CM_E_LEVEL;
	}
	build->b->header.limits.open_files = value > max ? max : value;
	return CM_OK;
}

/* v1: a path a hierarchy in bit order. v2: one path. */
static void set_base(struct cm_build *build)
{
	const struct cm_host_cgroup *cg = &build->req->host->cgroup;
	struct cm_buf *text = cm_build_text(build);

	if (cg->kind == CM_CGROUP_V2)
		cm_buf_puts(text, cg->v2_base);
	for (size_t i = 0; cg->kind == CM_CGROUP_V1 && i < CM_CG_N; i++) {
		if (i > 0)
			cm_buf_putc(text, '\n');
		cm_buf_puts(text, cg->v1_base[i]);
	}
	if (cm_buf_status(text) != CM_OK)
		build->b->strings.has_failed = true;
	else
		build->b->header.cgroup_base =
			cm_plan_builder_str(build->b, text->data ? text->data : "");
}

static void set_group(struct cm_build *build)
{
	const struct cm_host_cgroup *cg = &build->req->host->cgroup;
	struct cm_plan_header *h = &build->b->header;
	struct cm_plan_summary *s = build->summary;

	s->base_level = CM_LEVEL_NO_CGROUP;
	if (cg->kind == CM_CGROUP_NONE)
		return;
	h->cgroup = cg->kind;
	/* stops an exec's tree at once, and counts nothing */
	h->cgroup_controllers |= cg->controllers & CM_CG_FREEZER;
	s->cgroup_controllers = h->cgroup_controllers;
	set_base(build);
	if ((cg->controllers & CM_CG_FULL) == CM_CG_FULL)
		s->base_level = CM_LEVEL_FULL;
}

int cm_build_limits(struct cm_build *build, struct cm_error *err)
{
	struct cm_plan_limits *to = &build->b->header.limits;
	int r;

	/* a core file of the agent's would be written by the host's handler */
	to->core_bytes = 0;
	r = apply_all(build, err);
	if (r == CM_OK)
		r = apply_cpuset(build, err);
	if (r == CM_OK)
		r = apply_open_files(build, err);
	if (r == CM_OK)
		set_group(build);
	return r;
}
