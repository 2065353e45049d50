/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cli/remote/recall.h"

#include "runtime/base/fd.h"

void cm_away_recall_open(struct cm_away_recall *recall, const struct cm_away *away)
{
	recall->records = (struct cm_records)CM_RECORDS_INIT;
	recall->has_records = cm_records_open(&away->cli->config, cm_away_provider_name(),
					      &recall->records, NULL) == CM_OK;
}

void cm_away_recall_close(struct cm_away_recall *recall)
{
	if (recall->has_records)
		cm_records_close(&recall->records);
	recall->has_records = false;
}

/* For reading; who gets it changes nothing of it. */
static char *borrowed(const struct cm_record *record, const char *key)
{
	return (char *)(uintptr_t)cm_record_get(record, key);
}

void cm_away_recall_info(const struct cm_away_recall *recall, const struct cm_session_info *info,
			 struct cm_record *record, struct cm_session_info *ret)
{
	*ret = *info;
	if (!recall->has_records ||
	    cm_record_read(&recall->records, info->id, record, NULL) != CM_OK)
		return;
	if (!ret->repo)
		ret->repo = borrowed(record, CM_RECORD_REPO);
	if (!ret->workdir)
		ret->workdir = borrowed(record, CM_RECORD_CHECKOUT);
	if (!ret->workdir)
		ret->workdir = borrowed(record, CM_RECORD_WORKDIR);
}

char *cm_away_recall_directory(const struct cm_away *away)
{
	struct cm_record record = { 0 };
	struct cm_away_recall recall;
	const char *directory = NULL;
	char *ret = NULL;

	cm_away_recall_open(&recall, away);
	if (recall.has_records &&
	    cm_record_read(&recall.records, away->session->id, &record, NULL) == CM_OK)
		directory = cm_record_get(&record, CM_RECORD_CHECKOUT);
	if (directory && directory[0] == '/')
		ret = cm_strdup(directory);
	cm_record_clear(&record);
	cm_away_recall_close(&recall);
	return ret;
}
