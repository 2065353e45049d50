/* SPDX-License-Identifier: Apache-2.0 */
/* Capabilities: who keeps which, and why. */
#include "isolation/mech/caps.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/capability.h>
#include <sys/prctl.h>

#include "runtime/base/fd.h"
#include "runtime/base/raw_syscall.h"

#define BIT(cap) (1ULL << (cap))

enum who {
	/* init, wherever there is more than one id */
	WHO_INIT_RANGED = 1,
	/* init where a command has its id, or can take it: with the caller's alone, or as root */
	WHO_INIT_APART,
	/* init of a lasting session that marks execs by UTS namespaces: with the caller's id alone, or
	 * where they are root */
	WHO_INIT_UTS,
	/* init, when execs get leaf groups on v2 */
	WHO_INIT_LEAVES,
	/* a command run with --user root */
	WHO_ROOT,
};

static const struct {
	enum who who;
	int cap;
} kept[] = {
	/* a command changes from init's id to the agent's */
	{ WHO_INIT_RANGED, CAP_SETUID },
	/* the same, and the mark of an exec is a supplementary group */
	{ WHO_INIT_RANGED, CAP_SETGID },
	/* signals to processes of another id */
	{ WHO_INIT_RANGED, CAP_KILL },
	/* each exec gets a UTS namespace of its own as its mark: there is no second id for one, or root
	 * inside, who may set groups, would drop it */
	{ WHO_INIT_UTS, CAP_SYS_ADMIN },
	/* the agent lacks it: so the kernel refuses the agent every change of init's scheduling, its memory
	 * and its descriptors. Where commands are marked it reads the mark of those that made themselves
	 * non-dumpable. */
	{ WHO_INIT_APART, CAP_SYS_PTRACE },
	/* an exec leaves its group's name behind in a cgroup namespace of its own, so that programs
	 * find the session's limits at the root of /sys/fs/cgroup */
	{ WHO_INIT_LEAVES, CAP_SYS_ADMIN },
	/* package installation gives files their owners, */
	{ WHO_ROOT, CAP_CHOWN },
	/* writes files of other ids, */
	{ WHO_ROOT, CAP_DAC_OVERRIDE },
	/* sets modes and times of such files, */
	{ WHO_ROOT, CAP_FOWNER },
	/* and their modes survive a change of content */
	{ WHO_ROOT, CAP_FSETID },
	/* apt and others drop to a user of their own */
	{ WHO_ROOT, CAP_SETUID },
	{ WHO_ROOT, CAP_SETGID },
	/* and stop what they started under such a user */
	{ WHO_ROOT, CAP_KILL },
};

static uint64_t set_of(enum who who)
{
	uint64_t set = 0;

	for (size_t i = 0; i < CM_ARRAY_SIZE(kept); i++) {
		if (kept[i].who == who)
			set |= BIT(kept[i].cap);
	}
	return set;
}

uint64_t cm_caps_of_init(const struct cm_plan *plan)
{
	const struct cm_plan_header *h = plan->header;
	bool is_single = h->idmap == CM_IDMAP_SINGLE;
	bool is_temporary = (h->flags & CM_PLANF_TEMPORARY) != 0;
	uint64_t set = is_single ? 0 : set_of(WHO_INIT_RANGED);

	if (is_single || (h->flags & CM_PLANF_ROOT_USER) != 0)
		set |= set_of(WHO_INIT_APART) | (is_temporary ? 0 : set_of(WHO_INIT_UTS));
	if (!is_temporary && h->cgroup == CM_CGROUP_V2)
		set |= set_of(WHO_INIT_LEAVES);
	/* handed on to its execs, so init must hold it */
	return set | cm_caps_of_exec(plan);
}

uint64_t cm_caps_of_exec(const struct cm_plan *plan)
{
	return (plan->header->flags & CM_PLANF_ROOT_USER) != 0 ? set_of(WHO_ROOT) : 0;
}

static int bound_to(uint64_t keep, struct cm_error *err)
{
	for (int cap = 0; cap < 64; cap++) {
		if ((keep & BIT(cap)) != 0)
			continue;
		/* EINVAL: past the last capability that this kernel knows */
		if (cap_drop_bound(cap) < 0) {
			if (errno == EINVAL)
				break;
			return cm_error_set(err, CM_E_ISOLATION, errno,
					    "cannot drop capability %d from the bounding set", cap);
		}
	}
	return CM_OK;
}

int cm_caps_bound(const struct cm_plan *plan, struct cm_error *err)
{
	/* NO_SETUID_FIXUP stays off: a change away from uid 0 clears the sets by itself. With uid 0
	 * inside, an execve gives the bounding set cut by what is permitted, which is the list. */
	unsigned long bits = SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_NOROOT_LOCKED |
			     SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
	int r;

	if ((plan->header->flags & CM_PLANF_ROOT_USER) == 0)
		bits |= SECBIT_NOROOT;
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return cm_error_set(err, CM_E_ISOLATION, errno,
				    "cannot clear ambient capabilities");
	r = bound_to(cm_caps_of_exec(plan), err);
	if (r < 0)
		return r;
	if (prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) < 0)
		return cm_error_set(err, CM_E_ISOLATION, errno, "cannot lock the securebits");
	return CM_OK;
}

/* By the system calls: a set of libcap's is an allocation, and a new size of one costs pid 1 pages. */
int cm_caps_keep(uint64_t set, struct cm_error *err)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct now[2] = { { 0 } };
	long r = cm_caps_raw_set(set);

	if (cm_raw_failed(r))
		return cm_error_set(err, CM_E_ISOLATION, (int)-r, "cannot reduce capabilities");
	r = cm_raw_syscall2(__NR_capget, cm_raw_ptr(&header), cm_raw_ptr(now));
	if (cm_raw_failed(r))
		return cm_error_set(err, CM_E_ISOLATION, (int)-r, "cannot read capabilities");
	for (size_t i = 0; i < CM_ARRAY_SIZE(now); i++) {
		uint32_t want = (uint32_t)(set >> (32 * i));

		if (now[i].effective != want || now[i].permitted != want || now[i].inheritable != 0)
			return cm_error_set(err, CM_E_ISOLATION, 0,
					    "capabilities are not what was asked for");
	}
	return CM_OK;
}

int cm_caps_raw_set(uint64_t set)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2];

	data[0].effective = data[0].permitted = (uint32_t)set;
	data[1].effective = data[1].permitted = (uint32_t)(set >> 32);
	data[0].inheritable = data[1].inheritable = 0;
	return (int)cm_raw_syscall2(__NR_capset, cm_raw_ptr(&header), cm_raw_ptr(data));
}
