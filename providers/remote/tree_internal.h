/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared between tree_get.c (the session's stream), tree_sink.c (its entries into a receiver), tree_put.c
 * (a stream for the session) and tree_walk.c (what it is made of).
 */
#ifndef CM_PROVIDERS_REMOTE_TREE_INTERNAL_H
#define CM_PROVIDERS_REMOTE_TREE_INTERNAL_H

#include <archive.h>
#include <archive_entry.h>

#include "providers/remote/shell_files_internal.h"
#include "providers/remote/tree.h"

/* 0; -ECANCELED, -ETIMEDOUT: its caller waits no longer. Asked at least once for each piece of work. */
int cm_tree_check(const struct cm_call *call);
/* What is said of that. */
int cm_tree_gave_up(int error, const char *path, struct cm_error *err);

/* --- out of a session ------------------------------------------------------------------------ */

struct cm_tree_sink;
/* top: what the stream calls its top; "": ".". call is borrowed. */
int cm_tree_sink_new(struct cm_file_receiver *to, const char *top, const struct cm_call *call,
		     struct cm_tree_sink **ret);
void cm_tree_sink_free(struct cm_tree_sink *sink);
/*
 * One entry and its content. 0; -EBADMSG: it is no stream of that tree; -EIO: the archive broke off;
 * -ECANCELED, -ETIMEDOUT: as cm_tree_check has it; else -errno of what ends all: it was told.
 */
int cm_tree_sink_take(struct cm_tree_sink *sink, struct archive *a, struct archive_entry *entry);
/* The end of the stream: leaves what was entered. */
int cm_tree_sink_end(struct cm_tree_sink *sink);

/* --- into a session -------------------------------------------------------------------------- */

struct cm_tree_walk;
/* is_gnu: the session's tar is GNU's. *ret is the caller's; source, call and sent are borrowed. */
int cm_tree_walk_new(const struct cm_tree_source *source, const char *to_name, bool is_gnu,
		     const struct cm_call *call, struct cm_tree_sent *sent,
		     struct cm_tree_walk **ret);
void cm_tree_walk_free(struct cm_tree_walk *w);
/* The next bytes of the stream, as a fill. */
ssize_t cm_tree_walk_fill(void *data, void *buf, size_t size);
/* 0, or what of cm_tree_check ended it. */
int cm_tree_walk_stopped(const struct cm_tree_walk *w);

#endif
