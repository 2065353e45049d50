/* SPDX-License-Identifier: Apache-2.0 */
/* Leases for the exec socket: one at a time, kept until shortly before it ends. */
#include <string.h>

#include "providers/platform/platform_internal.h"
#include "runtime/base/clock.h"

#define SPARE_MS 60000

void cm_platform_lease_drop(struct cm_platform_session *s)
{
	cm_platform_lease_clear(&s->lease);
	s->lease_until_ms = 0;
}

/* What is not said when it ends holds for the one connection that it was asked for. */
static int64_t good_until(const struct cm_platform_lease *lease,
			  const struct cm_http_answer *answer)
{
	int64_t now_ms = cm_clock_real_ms() + answer->clock_ahead_ms;
	int64_t left = lease->expires_ms - now_ms - SPARE_MS;

	return lease->expires_ms == 0 || left <= 0 ? 0 : cm_clock_mono_ms() + left;
}

static int take_answer(struct cm_platform_session *s, const struct cm_http_answer *answer,
		       bool *ret_is_absent, struct cm_error *err)
{
	struct cm_platform *p = cm_platform_of(s->base.provider);
	int r;

	if (answer->status == 410) {
		cm_platform_session_lose(s);
		cm_error_set(err, CM_E_NOT_FOUND, 0,
			     "the sandbox of session '%s' is gone: the platform has ended it",
			     s->base.id);
		cm_error_hint(err, "start the session again: it has the files of its last "
				   "checkpoint");
		return CM_E_NOT_FOUND;
	}
	if (answer->status == 404) {
		*ret_is_absent = true;
		return cm_error_set(err, CM_E_UNSUPPORTED, 0,
				    "the workspace proxy gives no lease for a command");
	}
	if (answer->status < 200 || answer->status > 299)
		return cm_platform_refuse(p, answer, "get a lease for a command", err);
	r = cm_platform_lease_read(answer->body.data, answer->body.len, &s->lease, err);
	if (r == CM_OK)
		s->lease_until_ms = good_until(&s->lease, answer);
	return r;
}

int cm_platform_lease(struct cm_platform_session *s, const struct cm_call *call,
		      bool *ret_is_absent, struct cm_error *err)
{
	struct cm_http_answer answer = { 0 };
	int r;

	*ret_is_absent = false;
	if (s->lease.jwt && cm_clock_mono_ms() < s->lease_until_ms)
		return CM_OK;
	cm_platform_lease_drop(s);
	r = cm_platform_ask(cm_platform_of(s->base.provider), s, "POST", "/exec-lease", NULL, call,
			    &answer, err);
	if (r < 0)
		return r;
	r = take_answer(s, &answer, ret_is_absent, err);
	/* it has the token */
	if (answer.body.data)
		explicit_bzero(answer.body.data, answer.body.len);
	cm_http_answer_clear(&answer);
	return r;
}
