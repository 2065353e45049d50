/* SPDX-License-Identifier: Apache-2.0 */
/* clone3 onto another stack, for each architecture. */
#include "runtime/base/raw_clone.h"

#include <asm/unistd.h>

long cm_raw_clone(struct cm_clone3_args *args, int (*fn)(void *), void *arg)
{
#if defined(__x86_64__)
	register int (*r8)(void *) __asm__("r8") = fn;
	register void *r9 __asm__("r9") = arg;
	long ret;

	__asm__ volatile("syscall\n\t"
			 "testq %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "xorl %%ebp, %%ebp\n\t"
			 "movq %%r9, %%rdi\n\t"
			 "callq *%%r8\n\t"
			 "movl %%eax, %%edi\n\t"
			 "movl %[exit], %%eax\n\t"
			 "syscall\n\t"
			 "hlt\n"
			 "1:"
			 : "=a"(ret)
			 : "0"((long)__NR_clone3), "D"(args), "S"(sizeof(*args)), "r"(r8),
			   "r"(r9), [exit] "i"(__NR_exit_group)
			 : "rcx", "r11", "memory");
	return ret;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = __NR_clone3;
	register long x0 __asm__("x0") = (long)args;
	register long x1 __asm__("x1") = sizeof(*args);
	register int (*x2)(void *) __asm__("x2") = fn;
	register void *x3 __asm__("x3") = arg;

	__asm__ volatile("svc #0\n\t"
			 "cbnz x0, 1f\n\t"
			 "mov x29, #0\n\t"
			 "mov x0, x3\n\t"
			 "blr x2\n\t"
			 "mov x8, %[exit]\n\t"
			 "svc #0\n"
			 "1:"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), [exit] "i"(__NR_exit_group)
			 : "memory", "cc", "x30");
	return x0;
#else
#error "written for x86_64 and aarch64 only"
#endif
}
