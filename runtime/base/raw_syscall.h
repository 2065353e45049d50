/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System calls without libc, for children that share their parent's memory (CLONE_VM).
 *
 * Such a child must not touch errno, locks, the thread pointer's data or libc's setxid broadcast,
 * all of which belong to the parent.  These are inline, keep nothing in memory and return what
 * the kernel returned: a value, or -errno from -4095 to -1.
 *
 * Not for clone with a new stack, vfork or rt_sigreturn: the child would return through a frame
 * that is not its own.
 */
#ifndef CM_RUNTIME_BASE_RAW_SYSCALL_H
#define CM_RUNTIME_BASE_RAW_SYSCALL_H

#include <asm/unistd.h>
#include <stdbool.h>
#include <stdint.h>

/* The last page of addresses is never mapped, so no success can be taken for an error. */
static inline bool cm_raw_failed(long ret)
{
	return (unsigned long)ret > -4096UL;
}

/* A pointer as an argument; keeps the casts at the call sites to one spelling. */
static inline long cm_raw_ptr(const volatile void *p)
{
	return (long)(uintptr_t)p;
}

#if defined(__x86_64__) && !defined(__ILP32__)

static inline long cm_raw_syscall6(long nr, long a0, long a1, long a2, long a3, long a4, long a5)
{
	register long r10 __asm__("r10") = a3;
	register long r8 __asm__("r8") = a4;
	register long r9 __asm__("r9") = a5;
	long ret;

	/* the instruction itself overwrites rcx and r11 */
	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "0"(nr), "D"(a0), "S"(a1), "d"(a2), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

static inline long cm_raw_syscall3(long nr, long a0, long a1, long a2)
{
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "0"(nr), "D"(a0), "S"(a1), "d"(a2)
			 : "rcx", "r11", "memory");
	return ret;
}

#elif defined(__aarch64__) && !defined(__ILP32__)

static inline long cm_raw_syscall6(long nr, long a0, long a1, long a2, long a3, long a4, long a5)
{
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a0;
	register long x1 __asm__("x1") = a1;
	register long x2 __asm__("x2") = a2;
	register long x3 __asm__("x3") = a3;
	register long x4 __asm__("x4") = a4;
	register long x5 __asm__("x5") = a5;

	__asm__ volatile("svc #0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory", "cc");
	return x0;
}

static inline long cm_raw_syscall3(long nr, long a0, long a1, long a2)
{
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a0;
	register long x1 __asm__("x1") = a1;
	register long x2 __asm__("x2") = a2;

	__asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory", "cc");
	return x0;
}

#else
#error "raw system calls are written for x86_64 and aarch64 only"
#endif

static inline long cm_raw_syscall0(long nr)
{
	return cm_raw_syscall3(nr, 0, 0, 0);
}

static inline long cm_raw_syscall1(long nr, long a0)
{
	return cm_raw_syscall3(nr, a0, 0, 0);
}

static inline long cm_raw_syscall2(long nr, long a0, long a1)
{
	return cm_raw_syscall3(nr, a0, a1, 0);
}

static inline long cm_raw_syscall4(long nr, long a0, long a1, long a2, long a3)
{
	return cm_raw_syscall6(nr, a0, a1, a2, a3, 0, 0);
}

static inline long cm_raw_syscall5(long nr, long a0, long a1, long a2, long a3, long a4)
{
	return cm_raw_syscall6(nr, a0, a1, a2, a3, a4, 0);
}

/* Ends the calling process (all threads); the loop is for the compiler, which cannot know. */
static inline _Noreturn void cm_raw_exit(int status)
{
	for (;;)
		(void)cm_raw_syscall1(__NR_exit_group, status);
}

#endif
