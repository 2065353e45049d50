/* SPDX-License-Identifier: Apache-2.0 */
/* A plan as text, one line a step: for golden tests and for people. */
#include <inttypes.h>
#include <string.h>

#include "isolation/plan/plan.h"
#include "runtime/base/fd.h"
#include "runtime/base/text.h"

static const char *const op_names[] = {
	[CM_OP_BIND] = "bind",	       [CM_OP_BIND_INERT] = "bind-inert",
	[CM_OP_TMPFS] = "tmpfs",       [CM_OP_PROC] = "proc",
	[CM_OP_DEVPTS] = "devpts",     [CM_OP_MQUEUE] = "mqueue",
	[CM_OP_CGROUPFS] = "cgroupfs", [CM_OP_DIR] = "dir",
	[CM_OP_FILE] = "file",	       [CM_OP_SYMLINK] = "symlink",
	[CM_OP_MASK] = "mask",	       [CM_OP_READ_ONLY] = "read-only",
	[CM_OP_SYSCTL] = "sysctl",     [CM_OP_PIN] = "pin",
	[CM_OP_COPY] = "copy",	       [CM_OP_ROOT] = "root",
};
_Static_assert(CM_ARRAY_SIZE(op_names) == CM_OP_COUNT_, "a name for every step");

static const struct {
	uint32_t bit;
	const char *name;
} flag_names[] = {
	{ CM_OPF_READ_ONLY, "ro" }, { CM_OPF_OPTIONAL, "optional" }, { CM_OPF_FILE, "file" },
	{ CM_OPF_IDMAP, "idmap" },  { CM_OPF_AGENT, "agent" },	     { CM_OPF_NOEXEC, "noexec" },
	{ CM_OPF_DEV, "dev" },	    { CM_OPF_WRITABLE, "writable" }, { CM_OPF_TRY, "try" },
};

static void print_text(struct cm_buf *out, const char *label, const char *s)
{
	if (*s == '\0')
		return;
	cm_buf_printf(out, " %s", label);
	cm_text_escape(out, s, strlen(s), false);
}

static void print_op(const struct cm_plan *plan, const struct cm_plan_op *op, struct cm_buf *out)
{
	cm_buf_puts(out, op_names[op->kind]);
	print_text(out, "", cm_plan_str(plan, op->target));
	print_text(out, "<- ", cm_plan_str(plan, op->source));
	for (size_t i = 0; i < CM_ARRAY_SIZE(flag_names); i++) {
		if ((op->flags & flag_names[i].bit) != 0)
			cm_buf_printf(out, " %s", flag_names[i].name);
	}
	if (op->mode != 0)
		cm_buf_printf(out, " mode=%04o", op->mode);
	if ((op->flags & CM_OPF_IDMAP) != 0)
		cm_buf_printf(out, " owner=%u:%u", op->owner_uid, op->owner_gid);
	if (op->content_len != 0) {
		cm_buf_puts(out, " content=");
		cm_text_escape(out, cm_plan_str(plan, op->content), op->content_len, false);
	}
	cm_buf_putc(out, '\n');
}

static const char *idmap_name(uint32_t idmap)
{
	switch (idmap) {
	case CM_IDMAP_SINGLE:
		return "single";
	case CM_IDMAP_SLOT:
		return "slot";
	case CM_IDMAP_SUBIDS:
		return "subids";
	default:
		return "?";
	}
}

/* the names that mech/seccomp.c has */
static const char *seccomp_name(uint32_t profile)
{
	switch (profile) {
	case CM_SECCOMP_DEFAULT:
		return "default";
	case CM_SECCOMP_STRICT:
		return "strict";
	case CM_SECCOMP_NO_UNIX:
		return "no-unix";
	default:
		return "?";
	}
}

static void print_limit(struct cm_buf *out, const char *name, uint64_t value)
{
	if (value != UINT64_MAX)
		cm_buf_printf(out, "limit %s %" PRIu64 "\n", name, value);
}

static void print_line(struct cm_buf *out, const char *label, const char *s)
{
	if (*s == '\0')
		return;
	cm_buf_puts(out, label);
	cm_text_escape(out, s, strlen(s), false);
	cm_buf_putc(out, '\n');
}

void cm_plan_print(const struct cm_plan *plan, struct cm_buf *out)
{
	const struct cm_plan_header *h = plan->header;

	cm_buf_printf(out, "session %s", cm_plan_str(plan, h->session_id));
	print_text(out, "hostname ", cm_plan_str(plan, h->hostname));
	cm_buf_putc(out, '\n');
	cm_buf_printf(out, "ids %s %u:%u\n", idmap_name(h->idmap), h->uid_base, h->gid_base);
	cm_buf_printf(out, "network %s\n", (h->flags & CM_PLANF_NETNS) != 0 ? "none" : "host");
	cm_buf_printf(out, "user %s\n", (h->flags & CM_PLANF_ROOT_USER) != 0 ? "root" : "user");
	cm_buf_printf(out, "cgroup %u controllers=0x%x required=0x%x\n", h->cgroup,
		      h->cgroup_controllers, h->cgroup_required);
	cm_buf_printf(out, "seccomp %s landlock %u\n", seccomp_name(h->seccomp), h->landlock_abi);
	print_limit(out, "memory", h->limits.memory_bytes);
	print_limit(out, "swap", h->limits.swap_bytes);
	print_limit(out, "pids", h->limits.pids);
	print_limit(out, "cpu-milli", h->limits.cpu_milli);
	print_limit(out, "open-files", h->limits.open_files);
	print_limit(out, "core", h->limits.core_bytes);
	print_limit(out, "tmpfs", h->tmpfs_bytes);
	print_limit(out, "tmpfs-inodes", h->tmpfs_inodes);
	if (h->idle_ms != 0)
		cm_buf_printf(out, "idle %" PRIu64 " ms\n", h->idle_ms);
	if (h->lifetime_ms != 0)
		cm_buf_printf(out, "lifetime %" PRIu64 " ms\n", h->lifetime_ms);
	print_line(out, "cpuset ", cm_plan_str(plan, h->cpuset));
	for (uint32_t i = 0; i < h->n_ops; i++)
		print_op(plan, &plan->ops[i], out);
}
