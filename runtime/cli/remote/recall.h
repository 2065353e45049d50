/* SPDX-License-Identifier: Apache-2.0 */
/* What this host remembers of a session that is elsewhere: its repository, and where that is. */
#ifndef CM_RUNTIME_CLI_REMOTE_RECALL_H
#define CM_RUNTIME_CLI_REMOTE_RECALL_H

#include "providers/provider.h"
#include "providers/remote/record.h"
#include "runtime/cli/remote/away.h"

struct cm_away_recall {
	/* else nothing is remembered, which is no failure */
	bool has_records;
	struct cm_records records;
};

void cm_away_recall_open(struct cm_away_recall *recall, const struct cm_away *away);
void cm_away_recall_close(struct cm_away_recall *recall);
/*
 * *ret is *info, with repository and directory where the provider does not know them: borrowed from info
 * and record, which the caller clears.
 */
void cm_away_recall_info(const struct cm_away_recall *recall, const struct cm_session_info *info,
			 struct cm_record *record, struct cm_session_info *ret);
/* Where commands of the session start, if that is its repository's top; else NULL. The caller frees. */
char *cm_away_recall_directory(const struct cm_away *away);

#endif
