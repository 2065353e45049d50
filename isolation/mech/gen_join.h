/* SPDX-License-Identifier: Apache-2.0 */
/* Build time only: make one program of two of libseccomp's, and a smaller one of it. */
#ifndef CM_ISOLATION_MECH_GEN_JOIN_H
#define CM_ISOLATION_MECH_GEN_JOIN_H

#include <linux/filter.h>
#include <stddef.h>
#include <stdint.h>

struct cm_gen_program {
	/* the kernel's own limit */
	struct sock_filter insns[BPF_MAXINSNS];
	size_t n;
};

/*
 * What `first` refuses is refused with its answer; what it allows, `later` decides. Both must begin with
 * a compare of the architecture, which is `audit_arch`. Returns NULL, or what is wrong with them; *ret is
 * written on success only.
 */
const char *cm_gen_join(const struct cm_gen_program *first, const struct cm_gen_program *later,
			uint32_t audit_arch, struct cm_gen_program *ret);

#endif
