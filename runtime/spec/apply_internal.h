/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files that put one setting onto a spec. */
#ifndef CM_RUNTIME_SPEC_APPLY_INTERNAL_H
#define CM_RUNTIME_SPEC_APPLY_INTERNAL_H

#include "runtime/spec/merge.h"

#define CM_SPEC_MAX_ITEMS 4096
#define CM_SPEC_MAX_VOLUMES 128

struct cm_apply {
	struct cm_spec *spec;
	/* may be NULL */
	struct cm_origins *origins;
	const struct cm_setting *setting;
	/* of the key that is stored, which for `mount` is `volume` */
	const struct cm_key_info *info;
	const char *base;
	/* NULL only for built-in values */
	const struct cm_caller *caller;
	size_t n_volumes_before;
	/* lists: which item was added or replaced; SIZE_MAX when none was */
	size_t index;
};

int cm_apply_path(struct cm_apply *a, struct cm_error *err);
int cm_apply_root(struct cm_apply *a, struct cm_error *err);
int cm_apply_result(struct cm_apply *a, struct cm_error *err);
int cm_apply_workspace(struct cm_apply *a, struct cm_error *err);
int cm_apply_repo(struct cm_apply *a, struct cm_error *err);
int cm_apply_branch(struct cm_apply *a, struct cm_error *err);
int cm_apply_volume(struct cm_apply *a, struct cm_error *err);
int cm_apply_mount(struct cm_apply *a, struct cm_error *err);

/* Takes own_text over: the string field of a->info. NULL is out of memory. */
int cm_apply_store(struct cm_apply *a, char *own_text, struct cm_error *err);
/* What only a checkout has is gone: another layer wants none. */
void cm_apply_forget_repo(struct cm_apply *a);
/* Nobody asks for the key any more, because another key's value replaced it. */
void cm_apply_forget(struct cm_apply *a, enum cm_key key);
/* Length within the key's bounds, no control characters. */
int cm_apply_check_text(const struct cm_apply *a, const char *text, struct cm_error *err);
/* And no dash first: a program that gets the name later could take it for an option. */
int cm_apply_check_name(const struct cm_apply *a, const char *text, struct cm_error *err);
int cm_apply_no_memory(struct cm_error *err);
/*
 * Absolute, and clean unless it holds "..": what that means depends on symbolic links, so it is
 * left to the kernel.
 */
int cm_apply_make_absolute(const struct cm_apply *a, const char *text, char **ret,
			   struct cm_error *err);

#endif
