/* SPDX-License-Identifier: Apache-2.0 */
/* Entries that come in any order, told by their names: what is in a directory right behind it. */
#ifndef CM_PROVIDERS_REMOTE_SORTED_H
#define CM_PROVIDERS_REMOTE_SORTED_H

#include "providers/provider.h"

struct cm_sorted {
	int (*each)(void *data, const struct cm_path_info *info);
	void *data;
	/* copies, until there are too many to be kept: then those that are there are told */
	struct cm_path_info *v;
	size_t n;
	size_t capacity;
	size_t bytes;
};

void cm_sorted_init(struct cm_sorted *s, int (*each)(void *data, const struct cm_path_info *info),
		    void *data);
/* data is the struct cm_sorted. What `each` gave up with, or CM_E_NOMEM without a message. */
int cm_sorted_take(void *data, const struct cm_path_info *info);
/*
 * What ended with r: the rest is told, also before an error, and nothing is kept. Returns r, or what `each`
 * gave up with.
 */
int cm_sorted_end(struct cm_sorted *s, int r, struct cm_error *err);

#endif
