/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The filters of both machines, run by an interpreter.
 *
 * What must be refused is written down here by hand and not taken from the table: a row that is
 * wrong there would otherwise be right by definition.  The table's own rows come on top.
 */
#include <errno.h>
#include <linux/audit.h>
#include <seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "isolation/mech/seccomp.h"
#include "isolation/mech/seccomp_sim.h"

#define CM_SECCOMP_ALL_MACHINES
#include "isolation/mech/seccomp_programs.h"

/* what `default` answers, `no-unix` answers too */
#define D (1U << CM_SECCOMP_DEFAULT | U)
#define S (1U << CM_SECCOMP_STRICT)
#define U (1U << CM_SECCOMP_NO_UNIX)
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define HIGH (UINT64_C(1) << 32)
#define HIGH_ONES (UINT64_C(0xffffffff) << 32)

struct machine {
	const char *name;
	uint32_t audit;
	uint32_t scmp;
	struct cm_seccomp_profile profiles[CM_SECCOMP_COUNT_][CM_SECCOMP_PARTS_];
};

#define PROGRAM(a)                                                                                 \
	{                                                                                          \
		.insns = (a), .n = COUNT(a)                                                        \
	}
#define PROFILE(a)                                                                                 \
	{                                                                                          \
		[CM_SECCOMP_WHOLE] = PROGRAM(a), [CM_SECCOMP_OF_INIT] = PROGRAM(a##_init),         \
		[CM_SECCOMP_REST] = PROGRAM(a##_rest),                                             \
	}

static const struct machine machines[] = {
	{
		"x86_64",
		AUDIT_ARCH_X86_64,
		SCMP_ARCH_X86_64,
		{
			[CM_SECCOMP_DEFAULT] = PROFILE(x86_64_default),
			[CM_SECCOMP_STRICT] = PROFILE(x86_64_strict),
			[CM_SECCOMP_NO_UNIX] = PROFILE(x86_64_no_unix),
		},
	},
	{
		"aarch64",
		AUDIT_ARCH_AARCH64,
		SCMP_ARCH_AARCH64,
		{
			[CM_SECCOMP_DEFAULT] = PROFILE(aarch64_default),
			[CM_SECCOMP_STRICT] = PROFILE(aarch64_strict),
			[CM_SECCOMP_NO_UNIX] = PROFILE(aarch64_no_unix),
		},
	},
};

/* 0: allowed; else the errno; a broken program or another action is a failure at once */
static int ask(const struct machine *m, unsigned int profile, uint32_t arch, uint32_t nr,
	       const uint64_t args[6])
{
	const struct cm_seccomp_profile *p = m->profiles[profile];
	struct seccomp_data data = { .nr = (int)nr, .arch = arch };
	uint32_t parts;
	uint32_t r;

	memcpy(data.args, args, sizeof(data.args));
	r = cm_sim_run(p[CM_SECCOMP_WHOLE].insns, p[CM_SECCOMP_WHOLE].n, &data);
	/* in two parts it is the same */
	parts = cm_sim_over(
		cm_sim_run(p[CM_SECCOMP_REST].insns, p[CM_SECCOMP_REST].n, &data),
		cm_sim_run(p[CM_SECCOMP_OF_INIT].insns, p[CM_SECCOMP_OF_INIT].n, &data));
	assert_int_equal(parts, r);
	if (r == CM_SIM_BROKEN)
		fail_msg("%s, profile %u, call %u: the program is broken", m->name, profile, nr);
	if (r == SECCOMP_RET_ALLOW)
		return 0;
	assert_int_equal(r & SECCOMP_RET_ACTION_FULL, SECCOMP_RET_ERRNO);
	assert_int_not_equal(r & SECCOMP_RET_DATA, 0);
	return (int)(r & SECCOMP_RET_DATA);
}

/* -1 when the machine does not have the call */
static int number_of(const struct machine *m, const char *call)
{
	static const struct {
		const char *call;
		int nr;
	} young[] = {
		{ "cachestat", 451 },	      { "fchmodat2", 452 },
		{ "map_shadow_stack", 453 },  { "futex_wake", 454 },
		{ "futex_wait", 455 },	      { "futex_requeue", 456 },
		{ "statmount", 457 },	      { "listmount", 458 },
		{ "lsm_get_self_attr", 459 }, { "lsm_set_self_attr", 460 },
		{ "lsm_list_modules", 461 },  { "mseal", 462 },
		{ "setxattrat", 463 },	      { "getxattrat", 464 },
		{ "listxattrat", 465 },	      { "removexattrat", 466 },
		{ "open_tree_attr", 467 },    { "file_getattr", 468 },
		{ "file_setattr", 469 },
	};
	int nr;

	for (size_t i = 0; i < COUNT(young); i++) {
		if (strcmp(young[i].call, call) == 0)
			return young[i].nr;
	}
	if (strcmp(call, "uretprobe") == 0)
		return m->audit == AUDIT_ARCH_X86_64 ? 335 : -1;
	if (strcmp(call, "uprobe") == 0)
		return m->audit == AUDIT_ARCH_X86_64 ? 336 : -1;
	nr = seccomp_syscall_resolve_name_arch(m->scmp, call);
	if (nr == __NR_SCMP_ERROR)
		fail_msg("no call is named '%s'", call);
	return nr < 0 ? -1 : nr;
}

struct expectation {
	const char *call;
	unsigned int profiles;
	int error;
	uint64_t args[6];
};

#define OPEN_CREATE UINT64_C(0101)
#define OPEN_TMPFILE UINT64_C(020000002)
/* SOCK_CLOEXEC and SOCK_NONBLOCK */
#define SOCK_FLAGS UINT64_C(02004000)

static const struct expectation expectations[] = {
	/* what every program does */
	{ "read", D | S, 0, { 0 } },
	{ "openat", D | S, 0, { 0, 0, 0 } },
	{ "openat", D | S, 0, { HIGH_ONES | 0xffffff9c, 1, 0101, 0644 } },
	/* without creation the mode is whatever the register holds */
	{ "openat", D | S, 0, { 0, 0, 0, 06755 } },
	{ "openat", D | S, 0, { 0, 0, HIGH, UINT64_MAX } },
	{ "openat", D | S, EPERM, { 0, 0, OPEN_CREATE, 04755 } },
	{ "openat", D | S, EPERM, { 0, 0, OPEN_CREATE, 02755 } },
	{ "openat", D | S, EPERM, { 0, 0, OPEN_CREATE, 06000 } },
	{ "openat", D | S, EPERM, { 0, 0, OPEN_CREATE | HIGH, 04755 | HIGH } },
	{ "openat", D | S, EPERM, { 0, 0, OPEN_CREATE | HIGH_ONES, 02755 | HIGH_ONES } },
	{ "openat", D | S, EPERM, { 0, 0, OPEN_TMPFILE, 04755 } },
	{ "openat", D | S, EPERM, { 0, 0, OPEN_TMPFILE | HIGH, 02755 | HIGH } },
	{ "openat", D | S, 0, { 0, 0, OPEN_CREATE, 01777 } },
	/* where openat has its flags, open has its mode */
	{ "open", D | S, 0, { 0, 0, 06755, 0 } },
	{ "open", D | S, 0, { 0, OPEN_CREATE, 0644, 06000 } },
	{ "open", D | S, EPERM, { 0, OPEN_CREATE, 04755 } },
	{ "open", D | S, EPERM, { 0, OPEN_CREATE | HIGH, 02755 | HIGH } },
	{ "open", D | S, EPERM, { 0, OPEN_TMPFILE, 04600 } },
	{ "open", D | S, EPERM, { 0, OPEN_TMPFILE, 02600 | HIGH_ONES } },
	{ "creat", D | S, 0, { 0, 0644 } },
	{ "creat", D | S, EPERM, { 0, 04755 | HIGH } },
	{ "creat", D | S, EPERM, { 0, 02755 } },
	{ "chmod", D | S, 0, { 06000, 01777, 06000 } },
	{ "chmod", D | S, EPERM, { 0, 04755 } },
	{ "chmod", D | S, EPERM, { 0, 02755 | HIGH } },
	{ "chmod", D | S, EPERM, { 0, 06755 | HIGH_ONES | 0xffff0000 } },
	{ "fchmod", D | S, 0, { 06000, 0755 } },
	{ "fchmod", D | S, EPERM, { 3, 04000 } },
	{ "fchmod", D | S, EPERM, { 3, 02000 | HIGH } },
	{ "fchmodat", D | S, 0, { 0, 06000, 0755, 06000 } },
	{ "fchmodat", D | S, EPERM, { 0, 0, 04755 | HIGH } },
	{ "fchmodat", D | S, EPERM, { 0, 0, 02755 } },
	{ "fchmodat2", D | S, 0, { 0, 06000, 0755, 06000 } },
	{ "fchmodat2", D | S, EPERM, { 0, 0, 04755 } },
	{ "fchmodat2", D | S, EPERM, { 0, 0, 02755 | HIGH } },
	{ "mkdir", D | S, 0, { 0, 01777 } },
	{ "mkdir", D | S, EPERM, { 0, 02755 | HIGH } },
	{ "mkdir", D | S, EPERM, { 0, 04755 } },
	{ "mkdirat", D | S, 0, { 0, 0, 01777 } },
	{ "mkdirat", D | S, EPERM, { 0, 0, 02755 } },
	{ "mkdirat", D | S, EPERM, { 0, 0, 04755 | HIGH } },
	{ "mknod", D | S, 0, { 0, 0100644 } },
	{ "mknod", D | S, EPERM, { 0, 0104755 } },
	{ "mknod", D | S, EPERM, { 0, 0102755 | HIGH } },
	{ "mknodat", D | S, 0, { 0, 0, 0010644 } },
	{ "mknodat", D | S, EPERM, { 0, 0, 0104755 | HIGH } },
	{ "mknodat", D | S, EPERM, { 0, 0, 0102755 } },
	/* netlink: routes only */
	{ "socket", D | S, 0, { 16, 3, 0 } },
	{ "socket", D | S, EPROTONOSUPPORT, { 16, 3, 15 } },
	{ "socket", D | S, EPROTONOSUPPORT, { 16, 3, 12 } },
	{ "socket", D | S, EPROTONOSUPPORT, { 16, 3, HIGH } },
	{ "socketpair", D | S, 0, { 1, 1, 0 } },
	{ "socketpair", D | S, EAFNOSUPPORT, { 2, 1, 0 } },
	{ "socketpair", D | S, EAFNOSUPPORT, { 0, 1, 0 } },
	{ "socketpair", D | S, EAFNOSUPPORT, { HIGH | 40, 1, 0 } },
	{ "socketpair", D | S, EAFNOSUPPORT, { HIGH | 1, 2, 0 } },
	{ "socketpair", D | S, 0, { 1, 5 | SOCK_FLAGS, 0 } },
	/* an end of such a pair sends to any name, and RAW is DGRAM to the kernel */
	{ "socketpair", (D | S) & ~U, 0, { 1, 2, 0 } },
	{ "socketpair", (D | S) & ~U, 0, { 1, 3 | SOCK_FLAGS, 0 } },
	{ "socketpair", U, ESOCKTNOSUPPORT, { 1, 2, 0 } },
	{ "socketpair", U, ESOCKTNOSUPPORT, { 1, 3, 0 } },
	{ "socketpair", U, ESOCKTNOSUPPORT, { 1, 2 | SOCK_FLAGS, 0 } },
	{ "socketpair", U, ESOCKTNOSUPPORT, { 1, 3 | SOCK_FLAGS | HIGH_ONES, 0 } },
	{ "socketpair", U, 0, { 1, 1 | SOCK_FLAGS | HIGH, 0 } },
	/* namespaces */
	{ "clone", D | S, 0, { 0x01200011 } },
	{ "clone", D | S, 0, { 0x003d0f00 } },
	{ "clone", D | S, 0, { 0x00004111 } },
	{ "clone", D | S, 0, { 0x80 } },
	{ "unshare", D, 0, { 0x400 } },
	{ "unshare", S, EPERM, { 0x400 } },
	{ "unshare", D | S, EPERM, { 0x80 } },
	{ "clone3", D | S, ENOSYS, { 0 } },
	{ "setns", D | S, EPERM, { 0 } },
	/* terminals */
	{ "ioctl", D | S, 0, { 0, 0x5401 } },
	{ "ioctl", D | S, 0, { 0, 0x540e } },
	{ "ioctl", D | S, 0, { 0, 0x80045430 } },
	/* _IOR('V', 0, ...): video, not virtual terminals */
	{ "ioctl", D | S, 0, { 0, 0x80685600 } },
	/* limits */
	{ "prlimit64", D | S, 0, { 0, 7, 1, 0 } },
	{ "prlimit64", D | S, 0, { 1, 7, 0, 1 } },
	{ "prlimit64", D | S, EPERM, { 1, 0, 1, 0 } },
	{ "prlimit64", D | S, EPERM, { 1, 0, HIGH, 0 } },
	{ "prlimit64", D | S, EPERM, { HIGH | 1, 0, 1, 0 } },
	{ "prlimit64", D | S, EPERM, { HIGH, 0, HIGH, 0 } },
	/* execution domains: the kernel takes the low half */
	{ "personality", D | S, 0, { 0 } },
	{ "personality", D | S, 0, { 0xffffffff } },
	{ "personality", D | S, 0, { UINT64_MAX } },
	{ "personality", D, 0, { 0x8 } },
	{ "personality", D, 0, { 0x20000 } },
	{ "personality", D, 0, { 0x20008 } },
	{ "personality", D, 0, { 0x40000 } },
	{ "personality", S, EPERM, { 0x8 } },
	{ "personality", S, EPERM, { 0x20000 } },
	{ "personality", S, EPERM, { 0x40000 } },
	{ "personality", D | S, EPERM, { 0x0400000 } },
	{ "personality", D | S, EPERM, { 0x0440000 } },
	{ "personality", D | S, EPERM, { 0x0100000 } },
	{ "personality", D | S, EPERM, { 0xfffffffe } },
	{ "personality", D | S, EPERM, { 0x7fffffff } },
	{ "personality", D | S, EPERM, { HIGH_ONES | 0x0400000 } },
	{ "personality", D | S, EPERM, { 1 } },
	/* debuggers */
	{ "ptrace", D, 0, { 0 } },
	{ "ptrace", S, EPERM, { 0 } },
	{ "process_vm_readv", S, EPERM, { 0 } },
	{ "process_vm_writev", S, EPERM, { 0 } },
	{ "pidfd_getfd", S, EPERM, { 0 } },
	{ "kcmp", S, EPERM, { 0 } },
	{ "io_submit", S, ENOSYS, { 0 } },
	/* power over the host */
	{ "mount", D | S, EPERM, { 0 } },
	{ "umount2", D | S, EPERM, { 0 } },
	{ "pivot_root", D | S, EPERM, { 0 } },
	{ "chroot", D | S, EPERM, { 0 } },
	{ "fsopen", D | S, EPERM, { 0 } },
	{ "fsconfig", D | S, EPERM, { 0 } },
	{ "fsmount", D | S, EPERM, { 0 } },
	{ "fspick", D | S, EPERM, { 0 } },
	{ "move_mount", D | S, EPERM, { 0 } },
	{ "open_tree", D | S, EPERM, { 0 } },
	{ "open_tree_attr", D | S, EPERM, { 0 } },
	{ "mount_setattr", D | S, EPERM, { 0 } },
	{ "open_by_handle_at", D | S, EPERM, { 0 } },
	{ "bpf", D | S, EPERM, { 0 } },
	{ "perf_event_open", D | S, EPERM, { 0 } },
	{ "init_module", D | S, EPERM, { 0 } },
	{ "finit_module", D | S, EPERM, { 0 } },
	{ "delete_module", D | S, EPERM, { 0 } },
	{ "kexec_load", D | S, EPERM, { 0 } },
	{ "kexec_file_load", D | S, EPERM, { 0 } },
	{ "reboot", D | S, EPERM, { 0 } },
	{ "swapon", D | S, EPERM, { 0 } },
	{ "swapoff", D | S, EPERM, { 0 } },
	{ "sethostname", D | S, EPERM, { 0 } },
	{ "setdomainname", D | S, EPERM, { 0 } },
	{ "acct", D | S, EPERM, { 0 } },
	{ "quotactl", D | S, EPERM, { 0 } },
	{ "quotactl_fd", D | S, EPERM, { 0 } },
	{ "syslog", D | S, EPERM, { 0 } },
	{ "settimeofday", D | S, EPERM, { 0 } },
	{ "clock_settime", D | S, EPERM, { 0 } },
	{ "iopl", D | S, EPERM, { 0 } },
	{ "ioperm", D | S, EPERM, { 0 } },
	{ "vhangup", D | S, EPERM, { 0 } },
	{ "fanotify_init", D | S, EPERM, { 0 } },
	/* not there, so that libraries fall back */
	{ "openat2", D | S, ENOSYS, { 0 } },
	{ "io_uring_setup", D | S, ENOSYS, { 0 } },
	{ "io_uring_enter", D | S, ENOSYS, { 0 } },
	{ "io_uring_register", D | S, ENOSYS, { 0 } },
	{ "userfaultfd", D | S, ENOSYS, { 0 } },
	{ "memfd_secret", D | S, ENOSYS, { 0 } },
	{ "keyctl", D | S, ENOSYS, { 0 } },
	{ "add_key", D | S, ENOSYS, { 0 } },
	{ "request_key", D | S, ENOSYS, { 0 } },
	{ "statmount", D | S, ENOSYS, { 0 } },
	{ "listmount", D | S, ENOSYS, { 0 } },
};

static void expect(const struct machine *m, const struct expectation *e)
{
	int nr = number_of(m, e->call);

	for (unsigned int p = 1; nr >= 0 && p < CM_SECCOMP_COUNT_; p++) {
		int got;

		if (!(e->profiles & (1U << p)))
			continue;
		got = ask(m, p, m->audit, (uint32_t)nr, e->args);
		if (got != e->error)
			fail_msg("%s, profile %u: %s(0x%llx, 0x%llx, 0x%llx, 0x%llx) gives %d, "
				 "not %d",
				 m->name, p, e->call, (unsigned long long)e->args[0],
				 (unsigned long long)e->args[1], (unsigned long long)e->args[2],
				 (unsigned long long)e->args[3], got, e->error);
	}
}

static void test_expectations(void **state)
{
	(void)state;
	for (size_t m = 0; m < COUNT(machines); m++) {
		for (size_t i = 0; i < COUNT(expectations); i++)
			expect(&machines[m], &expectations[i]);
	}
}

static void test_socket_families(void **state)
{
	(void)state;
	for (size_t m = 0; m < COUNT(machines); m++) {
		for (uint64_t family = 0; family < 4096; family++) {
			bool known = family == 1 || family == 2 || family == 10 || family == 16;
			int error = known ? 0 : EAFNOSUPPORT;
			int no_unix = family == 1 ? EAFNOSUPPORT : error;

			expect(&machines[m],
			       &(struct expectation){
				       "socket", (D | S) & ~U, error, { family, 1, 0 } });
			expect(&machines[m],
			       &(struct expectation){ "socket", U, no_unix, { family, 1, 0 } });
			/* the kernel drops the high half: what is refused must stay refused */
			if (!known)
				expect(&machines[m],
				       &(struct expectation){
					       "socket", D | S, EAFNOSUPPORT, { family | HIGH } });
		}
		for (unsigned int bit = 5; bit < 64; bit++)
			expect(&machines[m],
			       &(struct expectation){
				       "socket", D | S, EAFNOSUPPORT, { UINT64_C(1) << bit | 1 } });
	}
}

static void test_namespace_flags(void **state)
{
	static const uint32_t flags[] = { 0x00020000, 0x02000000, 0x04000000, 0x08000000,
					  0x10000000, 0x20000000, 0x40000000, 0x7e020000 };

	(void)state;
	for (size_t m = 0; m < COUNT(machines); m++) {
		for (size_t i = 0; i < COUNT(flags); i++) {
			const uint64_t forms[] = { flags[i], flags[i] | 0x11, flags[i] | HIGH,
						   flags[i] | HIGH_ONES | 0x003d0f00 };

			for (size_t f = 0; f < COUNT(forms); f++) {
				expect(&machines[m], &(struct expectation){
							     "clone", D | S, EPERM, { forms[f] } });
				expect(&machines[m],
				       &(struct expectation){
					       "unshare", D | S, EPERM, { forms[f] } });
			}
		}
	}
}

static void test_ioctls(void **state)
{
	static const uint32_t refused[] = { 0x5412, 0x541c, 0x541d, 0x5423 };

	(void)state;
	for (size_t m = 0; m < COUNT(machines); m++) {
		for (uint64_t cmd = 0; cmd < 0x10000; cmd++) {
			int error = cmd >> 8 == 0x4b || cmd >> 8 == 0x56 ? EPERM : 0;

			for (size_t i = 0; i < COUNT(refused); i++) {
				if (cmd == refused[i])
					error = EPERM;
			}
			expect(&machines[m],
			       &(struct expectation){ "ioctl", D | S, error, { 0, cmd } });
			expect(&machines[m],
			       &(struct expectation){ "ioctl", D | S, error, { 0, cmd | HIGH } });
			expect(&machines[m],
			       &(struct expectation){
				       "ioctl", D | S, error, { 0, cmd | HIGH_ONES } });
		}
	}
}

static void test_foreign_numbers(void **state)
{
	static const uint64_t zeroes[6];

	(void)state;
	for (size_t m = 0; m < COUNT(machines); m++) {
		const struct machine *is = &machines[m];
		const struct machine *other = &machines[1 - m];

		for (unsigned int p = 1; p < CM_SECCOMP_COUNT_; p++) {
			for (uint32_t nr = 470; nr < 4096; nr++)
				assert_int_equal(ask(is, p, is->audit, nr, zeroes), ENOSYS);
			for (uint32_t nr = 0; nr < 600; nr++) {
				/* x32 */
				assert_int_equal(ask(is, p, is->audit, nr | 0x40000000, zeroes),
						 ENOSYS);
				assert_int_equal(ask(is, p, is->audit, ~nr, zeroes), ENOSYS);
				assert_int_equal(ask(is, p, AUDIT_ARCH_I386, nr, zeroes), ENOSYS);
				assert_int_equal(ask(is, p, AUDIT_ARCH_ARM, nr, zeroes), ENOSYS);
				assert_int_equal(ask(is, p, other->audit, nr, zeroes), ENOSYS);
			}
		}
	}
}

/* A row without a rule is its call's answer, whatever the arguments. */
static void test_every_row(void **state)
{
	static const uint64_t zeroes[6];
	size_t checked = 0;

	(void)state;
	for (size_t i = 0; i < CM_SC_TABLE_N; i++) {
		const struct cm_sc_entry *e = &cm_sc_table[i];

		for (size_t m = 0; m < COUNT(machines); m++) {
			int nr = number_of(&machines[m], e->call);

			for (unsigned int p = 1; nr >= 0 && p < CM_SECCOMP_COUNT_; p++) {
				uint64_t args[6] = { 1, 0, 0 };
				int want = cm_sim_expected(e->call, p, zeroes);

				if (!(e->profiles & (1U << p)))
					continue;
				assert_int_equal(ask(&machines[m], p, machines[m].audit,
						     (uint32_t)nr, zeroes),
						 want);
				/* other rows of its call may refuse what it allows */
				if (e->kind == CM_SC_ALLOW)
					assert_int_equal(ask(&machines[m], p, machines[m].audit,
							     (uint32_t)nr, args),
							 cm_sim_expected(e->call, p, args));
				else if (e->kind == CM_SC_ERRNO)
					assert_int_equal(ask(&machines[m], p, machines[m].audit,
							     (uint32_t)nr, args),
							 e->error);
				checked++;
			}
		}
	}
	assert_true(checked > 1000);
}

/* A call that some supported kernel has must have been thought about. */
static void test_no_call_forgotten(void **state)
{
	/* numbers kept for calls that no kernel of this machine ever had, or lost before 5.15 */
	static const char *const never[] = {
		"create_module", "get_kernel_syms", "query_module",   "getpmsg",
		"putpmsg",	 "afs_syscall",	    "tuxcall",	      "security",
		"vserver",	 "epoll_ctl_old",   "epoll_wait_old",
	};

	(void)state;
	for (size_t m = 0; m < COUNT(machines); m++) {
		for (int nr = 0; nr < 470; nr++) {
			char *name = seccomp_syscall_resolve_num_arch(machines[m].scmp, nr);
			bool found = !name;

			for (size_t i = 0; !found && i < COUNT(never); i++)
				found = strcmp(never[i], name) == 0;
			for (size_t i = 0; !found && i < CM_SC_TABLE_N; i++)
				found = strcmp(cm_sc_table[i].call, name) == 0;
			if (!found)
				fail_msg("%s: '%s' has no row", machines[m].name, name);
			free(name);
		}
	}
}

static void test_rows_for_explain(void **state)
{
	size_t n = 0;
	const struct cm_seccomp_row *rows = cm_seccomp_rows(&n);

	(void)state;
	assert_int_equal(n, CM_SC_TABLE_N);
	for (size_t i = 0; i < n; i++) {
		const struct cm_sc_entry *e = &cm_sc_table[i];

		assert_string_equal(rows[i].syscall, e->call);
		assert_string_equal(rows[i].action, e->kind == CM_SC_ALLOW   ? "allow"
						    : e->kind == CM_SC_ERRNO ? "errno"
									     : "args");
		assert_int_equal(rows[i].error, e->error);
		assert_int_equal(rows[i].profiles, e->profiles);
		assert_true(strlen(rows[i].reason) > 8);
		assert_true(rows[i].profiles != 0);
	}
}

static void test_profiles(void **state)
{
	(void)state;
	assert_null(cm_seccomp_profile_get((enum cm_plan_seccomp)0, CM_SECCOMP_WHOLE));
	assert_null(cm_seccomp_profile_get(CM_SECCOMP_COUNT_, CM_SECCOMP_REST));
	assert_null(cm_seccomp_profile_get((enum cm_plan_seccomp) - 1, CM_SECCOMP_WHOLE));
	assert_string_equal(cm_seccomp_profile_get(CM_SECCOMP_DEFAULT, CM_SECCOMP_REST)->name,
			    "default");
	assert_string_equal(cm_seccomp_profile_get(CM_SECCOMP_STRICT, CM_SECCOMP_REST)->name,
			    "strict");
	assert_string_equal(cm_seccomp_profile_get(CM_SECCOMP_NO_UNIX, CM_SECCOMP_REST)->name,
			    "no-unix");
	/* every start pays for loading them: twice this size costs twice the time */
	for (unsigned int p = 1; p < CM_SECCOMP_COUNT_; p++) {
		const struct cm_seccomp_profile *got = cm_seccomp_profile_get(p, CM_SECCOMP_WHOLE);

		assert_in_range(got->n, 64, 255);
		got = cm_seccomp_profile_get(p, CM_SECCOMP_OF_INIT);
		assert_in_range(got->n, 64, 255);
		/* each command pays for this one */
		got = cm_seccomp_profile_get(p, CM_SECCOMP_REST);
		assert_in_range(got->n, 5, 12);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_expectations),	  cmocka_unit_test(test_socket_families),
		cmocka_unit_test(test_namespace_flags),	  cmocka_unit_test(test_ioctls),
		cmocka_unit_test(test_foreign_numbers),	  cmocka_unit_test(test_every_row),
		cmocka_unit_test(test_no_call_forgotten), cmocka_unit_test(test_rows_for_explain),
		cmocka_unit_test(test_profiles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
