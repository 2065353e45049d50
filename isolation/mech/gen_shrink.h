/* SPDX-License-Identifier: Apache-2.0 */
/* Build time only: make a program of libseccomp's smaller without changing an answer. */
#ifndef CM_ISOLATION_MECH_GEN_SHRINK_H
#define CM_ISOLATION_MECH_GEN_SHRINK_H

#include <linux/filter.h>
#include <stddef.h>
#include <stdint.h>

struct cm_gen_program {
	/* the kernel's own limit */
	struct sock_filter insns[BPF_MAXINSNS];
	size_t n;
};

/*
 * `in` must begin with a compare of the architecture, which is `audit_arch`.  Returns NULL, or
 * what is wrong with `in`; *ret is written on success only.
 */
const char *cm_gen_shrink(const struct cm_gen_program *in, uint32_t audit_arch,
			  struct cm_gen_program *ret);

#endif
