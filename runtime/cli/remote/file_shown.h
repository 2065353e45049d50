/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries and events of files in sessions that are elsewhere, as file_show.h has those of this host's. In
 * JSON null is what is not known; owner and group are there where they have names and no numbers.
 */
#ifndef CM_RUNTIME_CLI_REMOTE_FILE_SHOWN_H
#define CM_RUNTIME_CLI_REMOTE_FILE_SHOWN_H

#include "providers/provider.h"
#include "runtime/cli/file_show.h"

/* prefix: before the name, "": nothing */
void cm_away_file_put(const struct cm_path_info *info, const char *prefix, enum cm_file_form form,
		      struct cm_buf *out);
void cm_away_event_put(const struct cm_watch_event *event, bool is_json, struct cm_buf *out);

/* Entries that are kept to be sorted: zero-initialise. */
struct cm_away_entries {
	struct cm_path_info *v;
	size_t n;
	size_t capacity;
	size_t bytes;
};
/* A copy. CM_OK, CM_E_NOMEM. */
int cm_away_entries_add(struct cm_away_entries *entries, const struct cm_path_info *info);
/* By name, what is in a directory right behind it. */
void cm_away_entries_sort(struct cm_away_entries *entries);
void cm_away_entries_clear(struct cm_away_entries *entries);

#endif
