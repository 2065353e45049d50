/* SPDX-License-Identifier: Apache-2.0 */
/* What sessions take of the disk, and how much of that could go. */
#ifndef CM_RUNTIME_STORE_USAGE_H
#define CM_RUNTIME_STORE_USAGE_H

#include "runtime/base/tree_size.h"
#include "runtime/store/store.h"

enum cm_store_part {
	/* of sessions: the state directory but for the next two, and what is below <root>/<id> */
	CM_STORE_PART_STATE = 0,
	CM_STORE_PART_HOME,
	CM_STORE_PART_TMP,
	CM_STORE_PART_DIRECTORY,
	/* directories of sessions that were removed without their files */
	CM_STORE_PART_KEPT,
	CM_STORE_PART_MIRROR,
	CM_STORE_PART_SKELETON,
	CM_STORE_PART_COUNT,
};

struct cm_store_share {
	uint64_t count;
	struct cm_tree_size size;
	/* of it: of sessions that do not run, and of what nobody uses now */
	uint64_t n_idle;
	uint64_t idle_bytes;
};

struct cm_store_usage {
	struct cm_store_share of[CM_STORE_PART_COUNT];
};

const char *cm_store_part_name(enum cm_store_part part);
/* Walks all of it. What cannot be read makes the numbers partial, and is no error. */
int cm_store_usage_read(struct cm_store *store, struct cm_store_usage *ret, struct cm_error *err);
/* One session's: its state directory and, with_dir and where it worked in that, <root>/<id>. */
void cm_store_session_size(const struct cm_store_session *s, bool with_dir,
			   struct cm_tree_size *ret);
/* Did the session work in <root>/<id>? One on a workspace of the user's own made no such thing. */
bool cm_store_session_has_dir(const struct cm_session_record *record);

#endif
