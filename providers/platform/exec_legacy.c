/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command within one request, of a proxy that gives no leases: its output comes when it has ended, and
 * until then nothing reaches it but its end, when the call is given up. The last of the ways.
 */
#include <inttypes.h>
#include <string.h>

#include "providers/platform/exec_internal.h"
#include "runtime/base/json_write.h"

#define BODY_MAX (16UL * 1024 * 1024)
/* how much longer than the command's own time the answer may take */
#define SPARE_MS 10000

/* The request with its time put in: an object that ends with a '}' of its own. */
static int write_body(const struct cm_platform_exec *e, struct cm_buf *out, struct cm_error *err)
{
	int r = cm_platform_wrap_write(e, out, err);

	if (r < 0)
		return r;
	out->len--;
	if (e->timeout_ms != 0)
		cm_buf_printf(out, ",\"timeoutSec\":%" PRIu64,
			      e->timeout_ms / 1000 + (e->timeout_ms % 1000 != 0));
	cm_buf_putc(out, '}');
	return cm_buf_status(out) < 0 ? cm_error_set(err, CM_E_NOMEM, 0, "no memory for a command")
				      : CM_OK;
}

/* What is refused was not started; what broke may have been. */
static int take_answer(struct cm_platform_exec *e, const struct cm_http_answer *answer,
		       bool *ret_is_unsure, struct cm_error *err)
{
	struct cm_platform_session *s = cm_platform_exec_session(e);
	struct cm_platform *p = cm_platform_of(s->base.provider);

	if (answer->status == 410)
		cm_platform_session_lose(s);
	*ret_is_unsure = answer->status >= 500 || (answer->status >= 200 && answer->status < 300);
	if (answer->status < 200 || answer->status > 299)
		return cm_platform_refuse(p, answer, "start a command", err);
	return cm_platform_result_read(answer->body.data, answer->body.len, &e->result, err);
}

static int run(struct cm_platform_exec *e, const struct cm_call *call, bool *ret_is_unsure,
	       struct cm_error *err)
{
	struct cm_platform_session *s = cm_platform_exec_session(e);
	struct cm_http_answer answer = { 0 };
	struct cm_buf body;
	int r;

	cm_buf_init(&body, BODY_MAX);
	r = write_body(e, &body, err);
	if (r == CM_OK) {
		*ret_is_unsure = true;
		r = cm_platform_ask(cm_platform_of(s->base.provider), s, "POST", "/exec", &body,
				    call, &answer, err);
	}
	/* variables may be secrets */
	if (body.data)
		explicit_bzero(body.data, body.len);
	cm_buf_clear(&body);
	if (r == CM_OK)
		r = take_answer(e, &answer, ret_is_unsure, err);
	cm_http_answer_clear(&answer);
	return r;
}

/* Another command, beside the one that may run. */
static int run_other(struct cm_platform_exec *e, const struct cm_buf *body,
		     const struct cm_call *call, int *ret_exit_code, struct cm_error *err)
{
	struct cm_platform_session *s = cm_platform_exec_session(e);
	struct cm_platform *p = cm_platform_of(s->base.provider);
	struct cm_platform_result result = { 0 };
	struct cm_http_answer answer = { 0 };
	int r = cm_platform_ask(p, s, "POST", "/exec", body, call, &answer, err);

	if (r < 0)
		return r;
	r = answer.status >= 200 && answer.status < 300
		    ? cm_platform_result_read(answer.body.data, answer.body.len, &result, err)
		    : cm_platform_refuse(p, &answer, "end a command", err);
	cm_http_answer_clear(&answer);
	if (r == CM_OK)
		*ret_exit_code = result.exit_code;
	cm_platform_result_clear(&result);
	return r;
}

static int legacy_begin(struct cm_platform_exec *e, const struct cm_call *call,
			struct cm_error *err)
{
	bool is_unsure = false;
	int r = run(e, call, &is_unsure, err);

	/* it was sent, and may run; or what the platform has ended is the shell that waited for it alone */
	if (is_unsure &&
	    (r == CM_E_CANCELLED || r == CM_E_TIMEOUT || (r == CM_OK && e->result.is_timed_out)))
		cm_platform_wrap_end(e, run_other);
	if (r == CM_OK || !is_unsure || r == CM_E_CANCELLED || r == CM_E_NOMEM)
		return r;
	/* once it was sent there is no second look at it */
	cm_platform_exec_why(e, "%s", err ? err->msg : "its request failed");
	e->is_result_lost = true;
	return CM_OK;
}

static int legacy_next(struct cm_platform_exec *e, struct cm_wake *wake, const struct cm_call *call,
		       struct cm_platform_news *ret, struct cm_error *err)
{
	const char *const texts[2] = { e->result.out, e->result.err };

	(void)wake;
	(void)call;
	(void)err;
	while (e->n_given < 2) {
		unsigned int i = e->n_given++;

		if (texts[i] && *texts[i]) {
			*ret = (struct cm_platform_news){ .kind = CM_PLATFORM_NEWS_OUTPUT,
							  .stream = (int)i + 1,
							  .bytes = texts[i],
							  .len = strlen(texts[i]) };
			return CM_OK;
		}
	}
	if (e->result.is_truncated)
		cm_provider_note(e->base.session->provider,
				 "the platform cut the command's output");
	*ret = (struct cm_platform_news){ .kind = e->is_result_lost ? CM_PLATFORM_NEWS_LOST
								    : CM_PLATFORM_NEWS_EXIT,
					  .exit_code = e->result.exit_code,
					  .is_timed_out = e->result.is_timed_out };
	return CM_OK;
}

/* Until it has ended there is nobody who could ask for one. */
static int legacy_signal(struct cm_platform_exec *e, const char *name, const struct cm_call *call,
			 struct cm_error *err)
{
	(void)e;
	(void)name;
	(void)call;
	return cm_error_set(err, CM_E_NOT_FOUND, 0, "the command has ended");
}

static void legacy_close(struct cm_platform_exec *e)
{
	cm_platform_result_clear(&e->result);
}

static const struct cm_platform_way legacy_way = {
	.begin = legacy_begin,
	.next = legacy_next,
	.signal = legacy_signal,
	.close = legacy_close,
};

void cm_platform_legacy_start(struct cm_platform_exec *e)
{
	e->way = &legacy_way;
	e->n_given = 0;
	e->is_result_lost = false;
	/* the platform ends it, and says so */
	if (e->timeout_ms != 0)
		e->until_ms += SPARE_MS;
}
