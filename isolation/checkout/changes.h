/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From one commit's files to another's: what differs, and what of that is in the work tree as the one
 * or the other has it. What is neither is somebody's work.
 */
#ifndef CM_ISOLATION_CHECKOUT_CHANGES_H
#define CM_ISOLATION_CHECKOUT_CHANGES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "isolation/checkout/existing.h"

enum cm_change_state {
	/* nothing is there, or directories that hold nothing but what goes */
	CM_CHANGE_ABSENT,
	CM_CHANGE_OLD,
	CM_CHANGE_NEW,
	CM_CHANGE_OTHER,
};

struct cm_change {
	char *path;
	git_oid old_id;
	git_oid new_id;
	/* git's; 0: there is none */
	uint32_t old_mode;
	uint32_t new_mode;

	enum cm_change_state state;
	/* somebody's work, in the tree or in the index, would be lost */
	bool is_blocked;
	/* the index has the old one */
	bool is_old_in_index;
	/* of what is there, unless absent */
	struct stat st;
};

struct cm_changes {
	/* by path */
	struct cm_change *v;
	size_t n;
	size_t n_blocked;
	git_oid old_commit;
	git_oid new_commit;
	/* some file may not be what its blob is: line ends, ident */
	bool has_attributes;
};

/*
 * old_commit NULL: from nothing. Names of the new commit that reach .git or leave the tree, in any
 * spelling, are an error.
 */
int cm_changes_read(struct cm_existing *ex, const git_oid *old_commit, const git_oid *new_commit,
		    struct cm_changes *ret, struct cm_error *err);
/* Fill in what is there. index_st: of the file that index was read from. */
int cm_changes_look(struct cm_existing *ex, struct cm_changes *changes, git_index *index,
		    const struct stat *index_st, struct cm_error *err);
void cm_changes_clear(struct cm_changes *changes);

/* A file's content, as a checkout of the commit has it. */
struct cm_content {
	git_blob *blob;
	git_buf filtered;
	const char *data;
	size_t len;
};
int cm_changes_content(struct cm_existing *ex, const struct cm_changes *changes,
		       const struct cm_change *change, bool is_new, struct cm_content *ret,
		       struct cm_error *err);
void cm_content_clear(struct cm_content *content);

/*
 * The directory that a path below the work tree is in; no link is followed. 0, -ENOENT, -ENOTDIR for
 * a file or a link on the way (*ret_base is then behind its name), or another -errno.
 */
int cm_changes_parent(const struct cm_existing *ex, const char *path, int *ret_fd,
		      const char **ret_base);

#endif
