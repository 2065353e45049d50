/* SPDX-License-Identifier: Apache-2.0 */
/* Landlock as a second wall behind the namespaces. */
#include "isolation/mech/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "runtime/base/fd.h"
#include "runtime/base/kernel.h"

#define FS_READ (CM_LL_FS_EXECUTE | CM_LL_FS_READ_FILE | CM_LL_FS_READ_DIR)
/* no MAKE_CHAR and MAKE_BLOCK: nobody inside has a use for a device node */
#define FS_WRITE                                                                                   \
	(CM_LL_FS_WRITE_FILE | CM_LL_FS_REMOVE_DIR | CM_LL_FS_REMOVE_FILE | CM_LL_FS_MAKE_DIR |    \
	 CM_LL_FS_MAKE_REG | CM_LL_FS_MAKE_SOCK | CM_LL_FS_MAKE_FIFO | CM_LL_FS_MAKE_SYM |         \
	 CM_LL_FS_REFER | CM_LL_FS_TRUNCATE)
/* the rights that a rule on something else than a directory may have */
#define FS_FILE                                                                                    \
	(CM_LL_FS_EXECUTE | CM_LL_FS_WRITE_FILE | CM_LL_FS_READ_FILE | CM_LL_FS_TRUNCATE |         \
	 CM_LL_FS_IOCTL_DEV)

#define DEVICE (CM_LL_FS_WRITE_FILE | CM_LL_FS_TRUNCATE | CM_LL_FS_IOCTL_DEV)

static bool is_device(const struct cm_plan_op *op)
{
	return op->kind == CM_OP_DEVPTS || (op->flags & CM_OPF_DEV) != 0;
}

static bool is_in_dev(const struct cm_plan *plan, const struct cm_plan_op *op)
{
	return strncmp(cm_plan_str(plan, op->target), "/dev/", 5) == 0;
}

static uint64_t handled_fs(unsigned int abi)
{
	uint64_t all = CM_LL_FS_MAKE_SYM | (CM_LL_FS_MAKE_SYM - 1);

	if (abi >= 2)
		all |= CM_LL_FS_REFER;
	if (abi >= 3)
		all |= CM_LL_FS_TRUNCATE;
	if (abi >= 5)
		all |= CM_LL_FS_IOCTL_DEV;
	return all;
}

static int add_rule(int ruleset, const char *path, uint64_t access, struct cm_error *err)
{
	CM_AUTO_FD int fd = openat(AT_FDCWD, path, O_PATH | O_CLOEXEC | O_NOFOLLOW);
	struct cm_ll_path_beneath_attr rule;

	if (fd < 0) {
		/* an optional mount that was left out */
		if (errno == ENOENT)
			return CM_OK;
		return cm_error_set(err, CM_E_ISOLATION, errno, "cannot open '%s'", path);
	}
	rule.allowed_access = access;
	rule.parent_fd = fd;
	if (cm_sys_landlock_add_rule(ruleset, CM_LL_RULE_PATH_BENEATH, &rule, 0) < 0)
		return cm_error_set(err, CM_E_ISOLATION, errno, "cannot add the rule for '%s'",
				    path);
	return CM_OK;
}

/* What the agent may do below an op's target beyond reading; 0: nothing. */
static uint64_t access_of(const struct cm_plan *plan, const struct cm_plan_op *op)
{
	uint64_t access = 0;

	if (op->kind == CM_OP_PROC)
		/* a process writes its own comm, oom_score_adj, ...; the rest is masked or
		 * read-only */
		access = CM_LL_FS_WRITE_FILE | CM_LL_FS_TRUNCATE;
	else if (is_device(op))
		access = is_in_dev(plan, op) ? 0 : DEVICE;
	else if ((op->flags & CM_OPF_WRITABLE) != 0)
		access = FS_WRITE;
	return (op->flags & CM_OPF_FILE) != 0 ? access & FS_FILE : access;
}

/* One rule for all device nodes, which is a third of the rules: nothing else is in /dev but for
 * what has a rule of its own. */
static int add_devices(int ruleset, const struct cm_plan *plan, uint64_t handled,
		       struct cm_error *err)
{
	for (uint32_t i = 0; i < plan->header->n_ops; i++) {
		if (is_device(&plan->ops[i]) && is_in_dev(plan, &plan->ops[i]))
			return add_rule(ruleset, "/dev", (DEVICE | FS_READ) & handled, err);
	}
	return CM_OK;
}

int cm_landlock_enter(const struct cm_plan *plan, struct cm_error *err)
{
	unsigned int abi = plan->header->landlock_abi;
	struct cm_ll_ruleset_attr attr = { 0 };
	CM_AUTO_FD int ruleset = -1;
	/* each field was added by an ABI; an older kernel refuses a longer structure */
	size_t size = sizeof(attr.handled_access_fs);
	int r;

	if (abi == 0)
		return CM_OK;
	attr.handled_access_fs = handled_fs(abi);
	if (abi >= 6) {
		attr.scoped = CM_LL_SCOPE_ABSTRACT_UNIX | CM_LL_SCOPE_SIGNAL;
		size = sizeof(attr);
	}
	ruleset = cm_sys_landlock_create_ruleset(&attr, size, 0);
	if (ruleset < 0)
		return cm_error_set(err, CM_E_ISOLATION, errno,
				    "cannot make a Landlock ruleset of ABI %u", abi);
	r = add_rule(ruleset, "/", FS_READ, err);
	if (r < 0)
		return r;
	r = add_devices(ruleset, plan, attr.handled_access_fs, err);
	for (uint32_t i = 0; i < plan->header->n_ops && r == CM_OK; i++) {
		const struct cm_plan_op *op = &plan->ops[i];
		uint64_t access = access_of(plan, op) & attr.handled_access_fs;
		uint64_t read = (op->flags & CM_OPF_FILE) != 0 ? FS_READ & FS_FILE : FS_READ;

		if (access != 0)
			r = add_rule(ruleset, cm_plan_str(plan, op->target),
				     access | (read & attr.handled_access_fs), err);
	}
	if (r < 0)
		return r;
	if (cm_sys_landlock_restrict_self(ruleset, 0) < 0)
		return cm_error_set(err, CM_E_ISOLATION, errno, "cannot enter the Landlock domain");
	return CM_OK;
}
