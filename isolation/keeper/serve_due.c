/* SPDX-License-Identifier: Apache-2.0 */
/* Time limits and graces: one timer of the loop, which has fewer than there can be commands. */
#include "isolation/keeper/serve.h"
#include "runtime/base/clock.h"

static void rearm(struct cm_serve *serve);

static void on_timer(struct cm_loop *loop, int timer, void *data)
{
	struct cm_serve *serve = data;
	int64_t now = cm_clock_mono_ms();

	(void)loop;
	(void)timer;
	serve->timer = -1;
	for (size_t i = 0; i < serve->n_slots; i++) {
		struct cm_serve_exec *e = &serve->execs[i];

		if (e->due_ms == 0 || e->due_ms > now)
			continue;
		e->due_ms = 0;
		cm_serve_is_due(e);
	}
	rearm(serve);
}

static void rearm(struct cm_serve *serve)
{
	int64_t first = 0;

	for (size_t i = 0; i < serve->n_slots; i++) {
		int64_t due = serve->execs[i].due_ms;

		if (due != 0 && (first == 0 || due < first))
			first = due;
	}
	cm_loop_timer_cancel(&serve->loop, serve->timer);
	serve->timer = first != 0 ? cm_loop_timer_add(&serve->loop, first, on_timer, serve) : -1;
}

static int64_t due_after(uint64_t ms)
{
	int64_t now = cm_clock_mono_ms();

	return ms > (uint64_t)(INT64_MAX - now) ? 0 : now + (int64_t)ms;
}

void cm_serve_due_after(struct cm_serve_exec *e, uint64_t ms)
{
	e->due_ms = due_after(ms);
	rearm(e->serve);
}

void cm_serve_due_sooner(struct cm_serve_exec *e, uint64_t ms)
{
	int64_t due = due_after(ms);

	if (due != 0 && (e->due_ms == 0 || due < e->due_ms))
		e->due_ms = due;
	rearm(e->serve);
}
