/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the host's git believes below a workspace, and its protection. All of it was written by
 * whoever could write the tree, so the work on it is bounded; and what cannot be read, or is too
 * much, ends the start: half a protection is none.
 */
#ifndef CM_ISOLATION_HOST_WORKSPACE_PINS_H
#define CM_ISOLATION_HOST_WORKSPACE_PINS_H

#include <stddef.h>

#include "isolation/host/facts.h"

struct cm_pins {
	struct cm_workspace_facts *facts;
	struct cm_error *err;
	/* the work so far */
	size_t n_files;
	size_t n_bytes;
	size_t n_items;
	size_t n_paths;
	size_t n_notes;
};

enum cm_pin {
	/* not below the workspace, protected anyway, or nothing that could be meant */
	CM_PIN_NOT_OURS = 0,
	CM_PIN_PROTECTED,
	CM_PIN_ABSENT,
	/* a link, or behind one, can be moved between the look and the mount, which would stop the
	 * start; and afterwards */
	CM_PIN_LINKED,
};

/* These return CM_OK or what is said, or a negative error that is set already. */

/* Makes path read-only and pins the directories above. An enum cm_pin. */
int cm_pins_protect(struct cm_pins *pins, const char *path, bool takes_dir);
/* Once each, and not more than a screen of them. note is taken; NULL: there was no memory. */
int cm_pins_note(struct cm_pins *pins, char *note);
/* A text file that git may read. 1, *ret is the caller's; 0: not there, also for git. */
int cm_pins_read_text(struct cm_pins *pins, const char *path, char **ret);
int cm_pins_count_item(struct cm_pins *pins);
int cm_pins_nomem(struct cm_pins *pins);
/* "'path' WHAT": the start is refused. */
int cm_pins_refuse(struct cm_pins *pins, enum cm_errc code, const char *path, const char *what);

/*
 * What path, a file of configuration, names: programs from top, includes, and each work tree, which
 * is added to worktrees. seen: paths that were read for this top.
 */
int cm_pins_read_config(struct cm_pins *pins, const char *path, const char *top,
			struct cm_strv *seen, struct cm_strv *worktrees);
/* The repository whose work tree is top, if one is, and its submodules. */
int cm_pins_read_tree(struct cm_pins *pins, const char *top, unsigned int depth);

#endif
