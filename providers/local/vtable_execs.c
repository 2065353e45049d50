/* SPDX-License-Identifier: Apache-2.0 */
/* Which commands a local session has: those that its keeper knows, and those that have a journal. */
#include <stdlib.h>
#include <string.h>

#include "providers/local/vtable_internal.h"

#define LIST_MAX (16UL * 1024 * 1024)
#define ANSWER_MS 10000

static void take_result(const struct cm_journal_result *result, struct cm_exec_end *ret)
{
	const struct cm_rec_end end = {
		.kind = result->kind,
		.status = result->status,
		.detail = result->detail,
		.wall_us = result->wall_us,
	};

	cm_lv_end(&end, ret);
}

bool cm_lv_journal_end(const struct cm_journal_reader *journal, struct cm_exec_end *ret,
		       int64_t *ret_ended_ms)
{
	struct cm_journal_result result;

	if (cm_journal_result_read(journal, &result) != 1)
		return false;
	take_result(&result, ret);
	if (ret_ended_ms)
		*ret_ended_ms = result.ended_ms;
	return true;
}

struct listing {
	struct cm_jail jail;
	struct cm_buf items;
	uint64_t *journals;
	size_t n_journals;
	int dir_fd;
	int (*each)(void *data, const struct cm_exec_info *info);
	void *data;
};

static const struct cm_rec_item *item_of(const struct listing *list, uint64_t exec_id)
{
	const struct cm_rec_item *item;
	const char *text;
	size_t at = 0;

	while ((item = cm_jail_item(&list->items, &at, &text)) != NULL && item->exec_id != exec_id)
		;
	return item;
}

/* Of cwd and arguments, each ended by a NUL, but perhaps the last. */
static int take_text(struct cm_exec_info *info, const char *text, size_t len)
{
	const char *end = text + len;
	int r = CM_OK;

	while (text < end && r == CM_OK) {
		size_t n = strnlen(text, (size_t)(end - text));
		char *own = cm_asprintf("%.*s", (int)n, text);

		if (!own)
			return CM_E_NOMEM;
		if (!info->cwd)
			info->cwd = own;
		else
			r = cm_strv_add_own(&info->argv, own);
		text += n + 1;
	}
	return r;
}

static int tell(const struct listing *list, struct cm_exec_info *info, uint64_t exec_id,
		const char *text, size_t len, struct cm_error *err)
{
	const struct cm_rec_item *item = item_of(list, exec_id);
	char name[CM_EXEC_ID_SIZE];
	int r;

	cm_exec_id_format(exec_id, name);
	memcpy(info->name, name, sizeof(name));
	if (item && item->state != CM_ITEM_CHILDREN_LEFT) {
		/* it may have ended since then: what is said is of one moment */
		info->is_running = true;
		info->has_end = false;
		info->pid = item->pid;
	}
	r = take_text(info, text, len);
	if (r < 0)
		r = cm_error_set(err, CM_E_NOMEM, 0, "no memory for the command");
	else
		r = list->each(list->data, info);
	cm_exec_info_clear(info);
	return r;
}

static int tell_journal(const struct listing *list, uint64_t exec_id, struct cm_error *err)
{
	struct cm_journal_reader journal;
	struct cm_exec_info info = { .is_detached = true };
	int r;

	cm_journal_reader_init(&journal);
	/* removed since it was listed */
	if (cm_journal_open(list->dir_fd, exec_id, &journal, NULL) < 0)
		return CM_OK;
	info.started_ms = journal.request.started_ms;
	info.has_end = cm_lv_journal_end(&journal, &info.end, &info.ended_ms);
	r = tell(list, &info, exec_id, journal.text, journal.request.text_len, err);
	cm_journal_reader_close(&journal);
	return r;
}

static bool has_journal(const struct listing *list, uint64_t exec_id)
{
	for (size_t i = 0; i < list->n_journals; i++) {
		if (list->journals[i] == exec_id)
			return true;
	}
	return false;
}

static int tell_all(const struct listing *list, struct cm_error *err)
{
	const struct cm_rec_item *item;
	const char *text;
	size_t at = 0;
	int r = CM_OK;

	for (size_t i = 0; i < list->n_journals && r == CM_OK; i++)
		r = tell_journal(list, list->journals[i], err);
	while (r == CM_OK && (item = cm_jail_item(&list->items, &at, &text)) != NULL) {
		struct cm_exec_info info = {
			.is_detached = (item->flags & CM_EXECF_DETACH) != 0,
			.started_ms = item->started_ms,
		};

		if (!has_journal(list, item->exec_id) && (item->flags & CM_EXECF_BUILTIN) == 0)
			r = tell(list, &info, item->exec_id, text, item->text_len, err);
	}
	return r;
}

/* Journals first: one of them that the keeper does not know then has ended. */
static int read_all(struct listing *list, const struct cm_store_session *record,
		    const struct cm_call *call, struct cm_error *err)
{
	struct cm_error why = CM_ERROR_INIT;
	int r = cm_journal_list(record->dir_fd, &list->journals, &list->n_journals, err);

	if (r < 0 || !cm_store_keeper_alive(record))
		return r;
	r = cm_jail_connect(&list->jail, record->socket_path, record->record.id,
			    cm_lv_deadline(call, ANSWER_MS), &why);
	if (r == CM_OK)
		r = cm_jail_list(&list->jail, &list->items, cm_lv_deadline(call, ANSWER_MS), &why);
	/* it ends just now */
	if (r == CM_E_NOT_FOUND || list->jail.has_ended)
		return CM_OK;
	if (r < 0 && err)
		*err = why;
	return r;
}

int cm_lv_exec_list(struct cm_session *s, const struct cm_call *call,
		    int (*each)(void *data, const struct cm_exec_info *info), void *data,
		    struct cm_error *err)
{
	struct listing list = { .each = each, .data = data };
	struct cm_store_session record;
	struct cm_store store;
	int r = cm_lv_open((struct cm_lv_session *)s, 0, call, &store, &record, err);

	if (r < 0)
		return r;
	cm_jail_init(&list.jail);
	cm_buf_init(&list.items, LIST_MAX);
	list.dir_fd = record.dir_fd;
	r = read_all(&list, &record, call, err);
	if (r == CM_OK)
		r = tell_all(&list, err);
	(void)cm_jail_close(&list.jail);
	cm_buf_clear(&list.items);
	free(list.journals);
	cm_store_session_close(&record);
	cm_store_close(&store);
	return r;
}
