/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections that a session's handle keeps between commands.
 *
 * Theory of operation. Whoever reaches a session reads its state, and says hello to its keeper, which
 * looks at who that is: as long again as a short command takes. A connection whose command has ended
 * has nothing under way, and the next command can be asked for on it. Before that, the session is
 * looked at in short: where its state has changed, it is reached anew.
 *
 * A keeper that has gone, or that is ending, is found by the request. It refused then, was gone before, or
 * left the request unread: nothing was done of it, and the session is reached anew, too (vtable_start.c).
 */
#include <stdlib.h>

#include "providers/local/vtable_internal.h"
#include "runtime/base/clock.h"

/* "last used" is shown in seconds */
#define TOUCH_MS 1000

int cm_lv_reach_kept(struct cm_lv_session *s, const struct cm_lv_want *want, struct cm_local **ret,
		     struct cm_error *err)
{
	struct cm_spec spec;
	int r;

	*ret = NULL;
	if (s->n_kept == 0)
		return CM_OK;
	r = cm_lv_spec_for(s, want, &spec, err);
	while (r == CM_OK && !*ret && s->n_kept > 0) {
		struct cm_local *l = s->kept[--s->n_kept];

		r = cm_local_rejoin(l, &spec, err);
		if (r == CM_OK && l->is_running)
			*ret = l;
		else
			cm_lv_leave(l);
	}
	cm_spec_clear(&spec);
	return r;
}

void cm_lv_used(struct cm_lv_session *s, struct cm_local *l)
{
	int64_t now_ms = cm_clock_mono_ms();

	/* nothing is looked for there any more, and each command would have its descriptors */
	cm_store_close(&l->store);
	/* by this and what comes after it, and not by being let go of some day */
	l->is_touched = true;
	if (s->touched_ms != 0 && now_ms - s->touched_ms < TOUCH_MS)
		return;
	cm_store_session_touch(&l->session);
	s->touched_ms = now_ms;
}

void cm_lv_keep(struct cm_lv_session *s, struct cm_local *l)
{
	if (s->n_kept == CM_LV_KEPT_MAX) {
		cm_lv_leave(l);
		return;
	}
	/* what cancels the call that made it is not there any more */
	l->events.cancel_fd = 0;
	s->kept[s->n_kept++] = l;
}

void cm_lv_forget_kept(struct cm_lv_session *s)
{
	while (s->n_kept > 0)
		cm_lv_leave(s->kept[--s->n_kept]);
}
