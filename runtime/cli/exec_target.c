/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cli/exec_target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/base/clock.h"
#include "runtime/base/num.h"
#include "runtime/cli/exec_names.h"
#include "runtime/cli/outcome.h"
#include "runtime/cli/sessions.h"
#include "runtime/cli/signal_names.h"

/* a keeper answers at once, and one that starts or ends is there or gone in seconds */
#define ANSWER_MS 10000
#define POLL_NS 20000000L
#define MAX_LIST (16UL * 1024 * 1024)
/* how many a hint names */
#define N_NAMED 5U

static void rest(void)
{
	const struct timespec pause = { .tv_nsec = POLL_NS };

	(void)nanosleep(&pause, NULL);
}

static int64_t answer_deadline(void)
{
	return cm_clock_mono_ms() + ANSWER_MS;
}

/* --- the session --------------------------------------------------------------------------- */

static int connect_to(struct cm_exec_target *t, struct cm_error *err)
{
	const struct cm_store_session *s = &t->session;
	int64_t deadline = answer_deadline();

	while (cm_store_keeper_alive(s)) {
		struct cm_error why = CM_ERROR_INIT;
		int r = cm_jail_connect(&t->jail, s->socket_path, s->record.id, deadline, &why);

		t->is_connected = r == CM_OK;
		/* it starts, or it ends */
		if (r == CM_E_NOT_FOUND && cm_clock_mono_ms() < deadline) {
			rest();
			continue;
		}
		if (r < 0 && err)
			*err = why;
		return r;
	}
	return CM_OK;
}

static int refuse_temporary(const struct cm_store_session *s, struct cm_error *err)
{
	if (!s->record.is_temporary)
		return CM_OK;
	(void)cm_error_set(err, CM_E_UNSUPPORTED, 0,
			   "session '%s' is temporary: it has one command, and that has its client",
			   s->record.id);
	cm_error_hint(err, "'casemate start NAME' makes one that others can use");
	return CM_E_UNSUPPORTED;
}

int cm_exec_target_open(struct cm_exec_target *t, struct cm_cli *cli, const char *root,
			const char *session, struct cm_error *err)
{
	int r;

	memset(t, 0, sizeof(*t));
	t->cli = cli;
	cm_jail_init(&t->jail);
	cm_buf_init(&t->list, MAX_LIST);
	cm_journal_reader_init(&t->journal);
	r = cm_cli_store_open(cli, root, &t->store, err);
	t->has_store = r == CM_OK;
	if (r == CM_OK)
		r = cm_store_session_open_as(&t->store, session, CM_STORE_ANY_ROOT, 0, &t->session,
					     err);
	t->has_session = r == CM_OK && t->has_store;
	if (r == CM_OK)
		r = refuse_temporary(&t->session, err);
	if (r == CM_OK)
		r = cm_journal_list(t->session.dir_fd, &t->journals, &t->n_journals, err);
	if (r == CM_OK)
		r = connect_to(t, err);
	if (r == CM_OK && t->is_connected)
		r = cm_jail_list(&t->jail, &t->list, answer_deadline(), err);
	return r;
}

void cm_exec_target_close(struct cm_exec_target *t)
{
	if (t->has_journal)
		cm_journal_reader_close(&t->journal);
	(void)cm_jail_close(&t->jail);
	cm_buf_clear(&t->list);
	free(t->journals);
	t->journals = NULL;
	if (t->has_session)
		cm_store_session_close(&t->session);
	if (t->has_store)
		cm_store_close(&t->store);
	t->has_journal = t->has_session = t->has_store = t->is_connected = false;
}

/* --- the command --------------------------------------------------------------------------- */

const struct cm_rec_item *cm_exec_target_item(const struct cm_exec_target *t, uint64_t exec_id,
					      const char **ret_text)
{
	const struct cm_rec_item *item;
	const char *text;
	size_t at = 0;

	while ((item = cm_jail_item(&t->list, &at, &text)) != NULL) {
		if (item->exec_id != exec_id)
			continue;
		if (ret_text)
			*ret_text = text;
		return item;
	}
	return NULL;
}

bool cm_exec_target_runs(const struct cm_exec_target *t)
{
	const struct cm_rec_item *item = cm_exec_target_item(t, t->exec_id, NULL);

	return item && item->state != CM_ITEM_CHILDREN_LEFT;
}

/* One that the keeper knows, by the id or by its counter alone. */
static bool find_listed(const struct cm_exec_target *t, const char *text, uint64_t *ret)
{
	uint64_t id;

	if (!t->is_connected)
		return false;
	if (cm_parse_u64(text, "command", 0, UINT32_MAX, &id, NULL) == CM_OK)
		id |= t->jail.up.generation << 32;
	else if (cm_exec_id_parse(text, &id, NULL) < 0)
		return false;
	*ret = id;
	return cm_exec_target_item(t, id, NULL) != NULL;
}

/* Of a session with commands in somebody's foreground journals do not tell all. */
static void hint_listed(const struct cm_exec_target *t, const char *text, struct cm_error *err)
{
	char names[N_NAMED * (CM_EXEC_ID_SIZE + 2)] = "";
	const struct cm_rec_item *item;
	const char *item_text;
	size_t len = 0;
	size_t at = 0;

	for (unsigned int i = 0; i < N_NAMED; i++) {
		char id[CM_EXEC_ID_SIZE];

		item = cm_jail_item(&t->list, &at, &item_text);
		if (!item)
			break;
		cm_exec_id_format(item->exec_id, id);
		len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s", i > 0 ? ", " : "",
					id);
	}
	if (len == 0)
		return;
	(void)cm_error_set(err, CM_E_NOT_FOUND, 0, "session '%s' has no command %.40s",
			   t->session.record.id, text);
	cm_error_hint(err,
		      "there %s %s ('casemate ps -a %s' lists all); how another one ended, only "
		      "who waited for it was told",
		      strchr(names, ',') ? "are" : "is", names, t->session.record.id);
}

static int find(struct cm_exec_target *t, const char *text, struct cm_error *err)
{
	int r = CM_OK;

	if (!find_listed(t, text, &t->exec_id))
		r = cm_cli_exec_find(&t->session, text, &t->exec_id, err);
	if (r == CM_E_NOT_FOUND)
		hint_listed(t, text, err);
	if (r < 0)
		return r;
	cm_exec_id_format(t->exec_id, t->name);
	r = cm_journal_open(t->session.dir_fd, t->exec_id, &t->journal, err);
	t->has_journal = r == CM_OK;
	/* one in somebody's foreground has none */
	if (r == CM_E_NOT_FOUND && cm_exec_target_item(t, t->exec_id, NULL))
		return CM_OK;
	return r == CM_E_NOT_FOUND ? cm_cli_exec_not_found(&t->session, text, t->exec_id, err) : r;
}

int cm_exec_target_get(struct cm_exec_target *t, struct cm_cli *cli, const char *root,
		       const char *session, const char *text, struct cm_error *err)
{
	int r = cm_exec_target_open(t, cli, root, session, err);

	return r == CM_OK ? find(t, text, err) : r;
}

int cm_exec_target_attach(struct cm_exec_target *t, uint64_t *ret_id, int *ret_input,
			  struct cm_error *err)
{
	return cm_jail_attach(&t->jail, t->exec_id, ret_id, ret_input, answer_deadline(), err);
}

int cm_exec_target_close_input(const struct cm_exec_target *t, struct cm_error *err)
{
	struct cm_jail jail;
	int r;

	cm_jail_init(&jail);
	r = cm_jail_connect(&jail, t->session.socket_path, t->session.record.id, answer_deadline(),
			    err);
	if (r == CM_OK)
		r = cm_jail_close_input(&jail, t->exec_id, answer_deadline(), err);
	(void)cm_jail_close(&jail);
	return r;
}

int cm_exec_target_check(const char *command, int n, struct cm_error *err)
{
	if (n == 2)
		return CM_OK;
	(void)cm_error_set(err, CM_E_INVALID, 0, "'%s' takes a session and a command of it",
			   command);
	cm_error_hint(err, "casemate %s ID 3.17: 'casemate ps ID' lists its commands", command);
	return CM_E_INVALID;
}

/* --- its end ------------------------------------------------------------------------------- */

static void take_result(const struct cm_journal_result *result, struct cm_exec_fate *ret)
{
	*ret = (struct cm_exec_fate){
		.is_known = true,
		.end = { .kind = result->kind,
			 .status = result->status,
			 .flags = result->flags,
			 .detail = result->detail,
			 .wall_us = result->wall_us,
			 .cpu_user_us = result->cpu_user_us,
			 .cpu_system_us = result->cpu_system_us,
			 .max_rss_bytes = result->max_rss_bytes,
			 .memory_peak_bytes = result->memory_peak_bytes },
		.ended_ms = result->ended_ms,
	};
}

void cm_exec_target_fate(const struct cm_exec_target *t, struct cm_exec_fate *ret)
{
	struct cm_journal_result result;
	int r = t->has_journal ? cm_journal_result_read(&t->journal, &result) : 0;

	*ret = (struct cm_exec_fate){ .is_known = false };
	if (r == 1)
		take_result(&result, ret);
	else if (!t->has_journal)
		ret->why = "it ran in the foreground of its client, which alone was told";
	else if (r == 0)
		ret->why =
			"the session ended before the command did: its keeper was killed, or could "
			"not write";
	else
		ret->why = "its record is damaged, or was removed";
}

void cm_exec_target_last_word(struct cm_exec_target *t, struct cm_exec_fate *ret)
{
	int64_t deadline = answer_deadline();
	bool is_gone = !t->has_journal;

	for (;;) {
		cm_exec_target_fate(t, ret);
		if (!t->has_journal)
			ret->why = "the session ended while the command ran";
		if (ret->is_known || is_gone)
			return;
		is_gone = cm_cli_exec_writer_gone(&t->store, t->session.record.id, t->exec_id) ||
			  cm_clock_mono_ms() >= deadline;
		if (!is_gone)
			rest();
	}
}

int cm_exec_target_wait(struct cm_exec_target *t, uint64_t id, int64_t deadline_ms,
			struct cm_exec_fate *ret, struct cm_error *err)
{
	struct cm_error why = CM_ERROR_INIT;
	struct cm_msg msg;
	bool is_refused;
	int r;

	cm_msg_init(&msg);
	do {
		r = cm_jail_next(&t->jail, id, &msg, deadline_ms, &why);
	} while (r == CM_OK && msg.rec.type != CM_REC_END && msg.rec.type != CM_REC_REFUSED);
	is_refused = r == CM_OK && msg.rec.type == CM_REC_REFUSED;
	if (is_refused)
		cm_proto_error_of(&msg, &why);
	else if (r == CM_OK)
		*ret = (struct cm_exec_fate){ .is_known = true,
					      .end = msg.rec.body.end,
					      .ended_ms = cm_clock_real_ms() };
	cm_msg_clear(&msg);
	if (is_refused || r == CM_E_TIMEOUT) {
		if (err)
			*err = why;
		return why.code;
	}
	if (r < 0)
		cm_exec_target_last_word(t, ret);
	return CM_OK;
}

void cm_exec_fate_format(const struct cm_exec_fate *fate, char buf[CM_EXEC_FATE_SIZE])
{
	const char *name = cm_signal_name(fate->end.status);

	if (!fate->is_known) {
		(void)snprintf(buf, CM_EXEC_FATE_SIZE, "unknown");
		return;
	}
	switch ((enum cm_end_kind)fate->end.kind) {
	case CM_END_EXIT:
		(void)snprintf(buf, CM_EXEC_FATE_SIZE, "exit %d", fate->end.status);
		return;
	case CM_END_SIGNAL:
		if (name)
			(void)snprintf(buf, CM_EXEC_FATE_SIZE, "SIG%s", name);
		else
			(void)snprintf(buf, CM_EXEC_FATE_SIZE, "signal %d", fate->end.status);
		return;
	case CM_END_TIMEOUT:
		(void)snprintf(buf, CM_EXEC_FATE_SIZE, "time limit");
		return;
	case CM_END_MEMORY:
		(void)snprintf(buf, CM_EXEC_FATE_SIZE, "memory limit");
		return;
	case CM_END_KILLED:
		(void)snprintf(buf, CM_EXEC_FATE_SIZE, "killed");
		return;
	case CM_END_NOT_EXECUTED:
		(void)snprintf(buf, CM_EXEC_FATE_SIZE, "not executed");
		return;
	}
	(void)snprintf(buf, CM_EXEC_FATE_SIZE, "unknown");
}

int cm_exec_target_exit(const struct cm_exec_target *t, const struct cm_exec_fate *fate)
{
	struct cm_error err = CM_ERROR_INIT;
	char text[CM_EXEC_FATE_SIZE];

	if (!fate->is_known) {
		(void)cm_error_set(&err, CM_E_NOT_FOUND, 0, "how command %s ended is not known",
				   t->name);
		cm_error_hint(&err, "%s", fate->why);
		return cm_cli_fail(t->cli, &err);
	}
	if (fate->end.kind != CM_END_EXIT) {
		cm_exec_fate_format(fate, text);
		cm_cli_note(t->cli, "command %s has ended: %s", t->name, text);
	}
	return cm_end_exit(&fate->end, t->cli->failure_exit);
}
