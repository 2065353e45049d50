/* SPDX-License-Identifier: Apache-2.0 */
/* Copying a local object store: files, never links. */
#ifndef CM_ISOLATION_CHECKOUT_OBJECTS_H
#define CM_ISOLATION_CHECKOUT_OBJECTS_H

#include <stdbool.h>

#include "casemate/error.h"
#include "isolation/checkout/report.h"

/* What the receiver has already, and does not want again. */
struct cm_objects_had {
	/* of a loose object: 40 digits */
	bool (*has_loose)(void *data, const char *hex);
	/* pack_dir: where it is; stem: its name without ".pack" */
	bool (*has_pack)(void *data, const char *pack_dir, const char *stem);
	void *data;
};

/*
 * Copy the loose objects and packs of the object directory `from`, and of the alternates that it
 * names, into the new and empty object directory to_fd. Every file made is new (link count 1,
 * mode 0444), and to_fd gets no alternates. Symbolic links and special files among the source's
 * objects are errors. *ret_is_partial: the source lacks objects by design (a partial clone).
 * had may be NULL: all are wanted.
 */
int cm_objects_copy(const char *from, int to_fd, const struct cm_objects_had *had,
		    struct cm_report *rep, bool *ret_is_partial, struct cm_error *err);

#endif
