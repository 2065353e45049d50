/* SPDX-License-Identifier: Apache-2.0 */
/* Teardown commands: kept with this host's record of the session, run before it is stopped or removed. */
#include <string.h>

#include "providers/remote/prepare_internal.h"
#include "runtime/base/json.h"
#include "runtime/base/json_write.h"

#define TEARDOWN_MAX (256UL * 1024)

int cm_prep_keep_teardown(struct cm_prep *p, struct cm_error *err)
{
	const struct cm_strv *commands = &p->spec->teardown;
	CM_AUTO_BUF struct cm_buf text = { 0 };
	struct cm_json_writer w;

	if (commands->n == 0)
		return CM_OK;
	cm_buf_init(&text, TEARDOWN_MAX);
	cm_jw_init(&w, &text, false);
	cm_jw_array(&w);
	for (size_t i = 0; i < commands->n; i++)
		cm_jw_string(&w, commands->v[i]);
	cm_jw_end_array(&w);
	if (cm_buf_status(&text) < 0)
		return cm_error_set(err, CM_E_LIMIT, 0, "the teardown commands are too long");
	return cm_record_set(&p->record, CM_RECORD_TEARDOWN, text.data, err);
}

/* What was asked for, or else what the session was begun with. */
static int find_commands(const struct cm_prep *p, struct cm_strv *ret, struct cm_error *err)
{
	const char *text = cm_record_get(&p->record, CM_RECORD_TEARDOWN);
	struct cm_json_doc *doc = NULL;
	int r;

	if (p->spec->teardown.n > 0 || !text) {
		r = cm_strv_copy(ret, &p->spec->teardown);
		return r < 0 ? cm_error_set(err, r, 0, "out of memory") : CM_OK;
	}
	r = cm_json_parse(text, strlen(text), "the session's record", 0, &doc, err);
	if (r == CM_OK && cm_json_strings(cm_json_root(doc), ret) < 0)
		r = cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	cm_json_free(doc);
	return r;
}

static int run_one(struct cm_prep *p, size_t at, const char *command, struct cm_error *err)
{
	const char *dir = p->checkout ? p->checkout : p->workdir;
	struct cm_shell_end end;
	int r = cm_prep_run_command(p, dir && dir[0] ? dir : "/", command, NULL, &end, err);

	if (r == CM_OK && end.exit_code != 0)
		cm_provider_note(p->session->provider, "teardown command %zu failed (exit %d)",
				 at + 1, end.exit_code);
	cm_shell_end_clear(&end);
	return r;
}

void cm_prepare_teardown(struct cm_session *s, const struct cm_prepare *prepare,
			 const struct cm_call *call)
{
	struct cm_prep p = cm_prep_make(s, prepare, call);
	CM_AUTO_STRV struct cm_strv commands = { 0 };
	struct cm_error err = CM_ERROR_INIT;
	int r = cm_prep_open_record(&p, &err);

	if (r == CM_OK)
		r = find_commands(&p, &commands, &err);
	if (r == CM_OK && commands.n > 0)
		r = cm_prep_take_recorded(&p, &err);
	if (r == CM_OK && commands.n > 0 && !p.checkout)
		r = cm_prep_look(&p, &err);
	for (size_t i = 0; r == CM_OK && i < commands.n; i++)
		r = run_one(&p, i, commands.v[i], &err);
	if (r < 0)
		cm_provider_note(s->provider, "teardown: %.400s", err.msg);
	cm_prep_clear(&p);
}
