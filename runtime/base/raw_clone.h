/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child that shares its parent's memory and runs on a stack of its own until it executes or ends:
 * as cheap to make and to end from a large process as from a small one. What it may do: see
 * raw_syscall.h.
 */
#ifndef CM_RUNTIME_BASE_RAW_CLONE_H
#define CM_RUNTIME_BASE_RAW_CLONE_H

#include "runtime/base/kernel.h"

/* For every function that such a child calls: sanitizers and the stack protector's data belong to
 * the parent. */
#if defined(__clang__)
#define CM_NO_INSTRUMENT __attribute__((no_sanitize("address", "undefined")))
#else
#define CM_NO_INSTRUMENT __attribute__((no_sanitize_address, no_sanitize_undefined))
#endif

/*
 * args: CLONE_VM, stack and stack_size are needed. The child calls fn(arg) and ends with its result.
 * The pid, or -errno.
 */
long cm_raw_clone(struct cm_clone3_args *args, int (*fn)(void *), void *arg);

#endif
