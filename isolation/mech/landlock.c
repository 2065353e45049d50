/* SPDX-License-Identifier: Apache-2.0 */
/* Landlock as a second wall behind the namespaces. */
#include "isolation/mech/landlock.h"

#include <errno.h>
#include <sys/stat.h>

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
	CM_AUTO_FD int fd = open(path, O_PATH | O_CLOEXEC | O_NOFOLLOW);
	struct cm_ll_path_beneath_attr rule;
	struct stat st;

	if (fd < 0) {
		/* an optional mount that was left out */
		if (errno == ENOENT)
			return CM_OK;
		return cm_error_set(err, CM_E_ISOLATION, errno, "cannot open '%s'", path);
	}
	if (fstat(fd, &st) < 0)
		return cm_error_set(err, CM_E_ISOLATION, errno, "cannot look at '%s'", path);
	if (!S_ISDIR(st.st_mode))
		access &= FS_FILE;
	rule.allowed_access = access;
	rule.parent_fd = fd;
	if (cm_sys_landlock_add_rule(ruleset, CM_LL_RULE_PATH_BENEATH, &rule, 0) < 0)
		return cm_error_set(err, CM_E_ISOLATION, errno, "cannot add the rule for '%s'",
				    path);
	return CM_OK;
}

/* What the agent may do below an op's target beyond reading; 0: nothing. */
static uint64_t access_of(const struct cm_plan_op *op)
{
	if (op->kind == CM_OP_PROC)
		/* a process writes its own comm, oom_score_adj, ...; the rest is masked or
		 * read-only */
		return CM_LL_FS_WRITE_FILE | CM_LL_FS_TRUNCATE;
	if (op->kind == CM_OP_DEVPTS || (op->flags & CM_OPF_DEV) != 0)
		return CM_LL_FS_WRITE_FILE | CM_LL_FS_TRUNCATE | CM_LL_FS_IOCTL_DEV;
	if ((op->flags & CM_OPF_WRITABLE) != 0)
		return FS_WRITE;
	return 0;
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
	for (uint32_t i = 0; i < plan->header->n_ops; i++) {
		uint64_t access = access_of(&plan->ops[i]) & attr.handled_access_fs;

		if (access == 0)
			continue;
		r = add_rule(ruleset, cm_plan_str(plan, plan->ops[i].target),
			     access | (FS_READ & attr.handled_access_fs), err);
		if (r < 0)
			return r;
	}
	if (cm_sys_landlock_restrict_self(ruleset, 0) < 0)
		return cm_error_set(err, CM_E_ISOLATION, errno, "cannot enter the Landlock domain");
	return CM_OK;
}
