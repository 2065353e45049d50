/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cli/exec_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/buf.h"
#include "runtime/base/fd.h"
#include "runtime/base/num.h"
#include "runtime/store/journal.h"

/* how many a hint names */
#define N_NEAR 5U

/* Of ids, ascending, the first of the N_NEAR that lie around near. */
static size_t first_near(const uint64_t *ids, size_t n, uint64_t near)
{
	size_t at = 0;

	while (at < n && ids[at] < near)
		at++;
	at = at > N_NEAR / 2 ? at - N_NEAR / 2 : 0;
	if (at + N_NEAR > n)
		at = n > N_NEAR ? n - N_NEAR : 0;
	return at;
}

static void hint_near(const char *session, const uint64_t *ids, size_t n, uint64_t near,
		      struct cm_error *err)
{
	size_t first = first_near(ids, n, near);
	char text[N_NEAR * (CM_EXEC_ID_SIZE + 2)];
	size_t len = 0;

	for (size_t i = first; i < n && i < first + N_NEAR; i++) {
		char id[CM_EXEC_ID_SIZE];

		cm_exec_id_format(ids[i], id);
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", len ? ", " : "",
					id);
	}
	cm_error_hint(
		err,
		"of those that nobody waits for there %s %s ('casemate ps -a %s'); of others the "
		"output went to whoever started them",
		n == 1 ? "is" : "are", text, session);
}

int cm_cli_exec_not_found(const struct cm_store_session *s, const char *text, uint64_t near,
			  struct cm_error *err)
{
	CM_AUTO_FREE uint64_t *ids = NULL;
	size_t n = 0;

	if (cm_journal_list(s->dir_fd, &ids, &n, err) < 0)
		return err->code;
	if (n == 0) {
		(void)cm_error_set(err, CM_E_NOT_FOUND, 0,
				   "session '%s' has no command whose output was kept",
				   s->record.id);
		cm_error_hint(err, "it is kept of commands that nobody waits for (exec -d); of "
				   "others it went to whoever started them, and so did their end");
		return CM_E_NOT_FOUND;
	}
	(void)cm_error_set(err, CM_E_NOT_FOUND, 0, "session '%s' has no command %.40s",
			   s->record.id, text);
	hint_near(s->record.id, ids, n, near, err);
	return CM_E_NOT_FOUND;
}

static int ambiguous(const char *session, uint32_t counter, uint64_t first, uint64_t second,
		     struct cm_error *err)
{
	char ids[2][CM_EXEC_ID_SIZE];

	cm_exec_id_format(first, ids[0]);
	cm_exec_id_format(second, ids[1]);
	(void)cm_error_set(err, CM_E_INVALID, 0, "session '%s' has several commands %u", session,
			   (unsigned int)counter);
	cm_error_hint(err, "say which one: %s, %s", ids[0], ids[1]);
	return CM_E_INVALID;
}

/* By the counter alone. */
static int find_counter(const struct cm_store_session *s, const char *text, uint32_t counter,
			uint64_t *ret, struct cm_error *err)
{
	uint64_t latest = (uint64_t)(uint32_t)s->record.generation << 32 | counter;
	CM_AUTO_FREE uint64_t *ids = NULL;
	uint64_t found = 0;
	size_t n = 0;

	if (cm_journal_list(s->dir_fd, &ids, &n, err) < 0)
		return err->code;
	for (size_t i = 0; i < n; i++) {
		if (ids[i] == latest) {
			*ret = latest;
			return CM_OK;
		}
	}
	for (size_t i = 0; i < n; i++) {
		if ((uint32_t)ids[i] != counter)
			continue;
		if (found != 0)
			return ambiguous(s->record.id, counter, found, ids[i], err);
		found = ids[i];
	}
	if (found == 0)
		return cm_cli_exec_not_found(s, text, latest, err);
	*ret = found;
	return CM_OK;
}

static int find_id(const struct cm_store_session *s, const char *text, uint64_t id, uint64_t *ret,
		   struct cm_error *err)
{
	CM_AUTO_FREE uint64_t *ids = NULL;
	size_t n = 0;

	if (cm_journal_list(s->dir_fd, &ids, &n, err) < 0)
		return err->code;
	for (size_t i = 0; i < n; i++) {
		if (ids[i] == id) {
			*ret = id;
			return CM_OK;
		}
	}
	return cm_cli_exec_not_found(s, text, id, err);
}

int cm_cli_exec_find(const struct cm_store_session *s, const char *text, uint64_t *ret,
		     struct cm_error *err)
{
	uint64_t id;
	int r;

	if (cm_parse_u64(text, "command", 0, UINT32_MAX, &id, NULL) == CM_OK)
		return find_counter(s, text, (uint32_t)id, ret, err);
	r = cm_exec_id_parse(text, &id, err);
	return r == CM_OK ? find_id(s, text, id, ret, err) : r;
}

bool cm_cli_exec_writer_gone(struct cm_store *store, const char *session, uint64_t exec_id)
{
	struct cm_store_session s;
	bool is_gone;

	if (cm_store_session_open_as(store, session, CM_STORE_ANY_ROOT, 0, &s, NULL) < 0)
		return true;
	is_gone = (uint32_t)s.record.generation != (uint32_t)(exec_id >> 32) ||
		  !cm_store_keeper_alive(&s);
	cm_store_session_close(&s);
	return is_gone;
}
