/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a session's record says of its setup. It decides whether setup runs: the marker in the tree is
 * a copy that the command can change.
 */
#include <stdlib.h>

#include "providers/local/local_internal.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/json_write.h"

#define RECORD_MAX (16UL * 1024 * 1024)

bool cm_local_needs_setup(const struct cm_local *l)
{
	return l->spec.setup.n > 0 && l->session.record.setup_state == CM_SETUP_NONE;
}

static char *commands_text(const struct cm_spec *spec)
{
	CM_AUTO_BUF struct cm_buf out = { 0 };
	struct cm_json_writer w;

	cm_buf_init(&out, RECORD_MAX);
	cm_jw_init(&w, &out, false);
	cm_jw_object(&w);
	cm_jw_key(&w, "commands");
	cm_jw_array(&w);
	for (size_t i = 0; i < spec->setup.n; i++)
		cm_jw_string(&w, spec->setup.v[i]);
	cm_jw_end_array(&w);
	cm_jw_end_object(&w);
	return cm_buf_take(&out);
}

int cm_local_setup_begin(struct cm_local *l, struct cm_error *err)
{
	struct cm_session_record *record = &l->session.record;
	char *digest = cm_local_setup_digest(&l->spec.setup);
	char *commands = commands_text(&l->spec);

	if (!digest || !commands) {
		free(digest);
		free(commands);
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the session");
	}
	free(record->setup_digest);
	free(record->setup_json);
	record->setup_digest = digest;
	record->setup_json = commands;
	record->setup_state = CM_SETUP_NONE;
	record->setup_begun_ms = cm_clock_real_ms();
	return l->is_temporary ? CM_OK : cm_store_session_save(&l->session, true, err);
}

int cm_local_setup_done(struct cm_local *l, bool has_failed, int exit_status, int64_t since_us,
			struct cm_error *err)
{
	struct cm_session_record *record = &l->session.record;

	record->setup_state = has_failed ? CM_SETUP_FAILED : CM_SETUP_DONE;
	record->setup_exit = exit_status;
	record->setup_ms = cm_clock_real_ms();
	record->setup_took_ms = (cm_clock_mono_us() - since_us) / 1000;
	record->setup_begun_ms = 0;
	if (l->is_temporary)
		return CM_OK;
	/* what was promised to run once must not run again after a crash */
	return cm_store_session_save(&l->session, true, err);
}
