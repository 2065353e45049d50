/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool, the one place that waits, and requests with their retries.
 *
 * All transfers of a pool are libcurl's at once: whoever waits for one lets the others go on. So a
 * stream that nobody reads at the moment fills its buffer and is then paused, and hinders no request.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "providers/http_internal.h"
#include "runtime/base/alloc.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"

#define AGAIN_MAX 3
#define AGAIN_FIRST_MS 400
/* who asks for more than this is not waited for */
#define AGAIN_ASKED_MAX_MS (5 * 60 * 1000)
/* libcurl's own timers end a wait before that */
#define POLL_MAX_MS 60000

/* --- the pool --------------------------------------------------------------------------------- */

/* Not pthread_once: where there was no memory, a later try may have some. It is never undone. */
static int start_library(struct cm_error *err)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static bool is_started;
	CURLcode code = CURLE_OK;

	(void)pthread_mutex_lock(&lock);
	if (!is_started) {
		code = curl_global_init_mem(CURL_GLOBAL_DEFAULT, cm_malloc, free, cm_realloc,
					    cm_strdup, cm_calloc);
		is_started = code == CURLE_OK;
	}
	(void)pthread_mutex_unlock(&lock);
	if (code == CURLE_OK)
		return CM_OK;
	return cm_error_set(err, CM_E_NOMEM, 0, "cannot start libcurl: %s",
			    curl_easy_strerror(code));
}

/* What the environment says of certificates; looked at now, so that it is said once and clearly. */
static int find_certificates(struct cm_http *http, struct cm_error *err)
{
	const char *file = http->env ? cm_strv_env_get(http->env, "SSL_CERT_FILE") : NULL;
	const char *dir = http->env ? cm_strv_env_get(http->env, "SSL_CERT_DIR") : NULL;

	if (file && *file) {
		if (file[0] != '/' || access(file, R_OK) < 0) {
			cm_error_set(
				err, CM_E_INVALID, file[0] == '/' ? errno : 0,
				"the certificates in '%s', which SSL_CERT_FILE names, cannot be "
				"read",
				file);
			cm_error_hint(err, "name a PEM file by its absolute path, or unset "
					   "SSL_CERT_FILE");
			return CM_E_INVALID;
		}
		http->ca_file = file;
	}
	if (dir && *dir)
		http->ca_dir = dir;
	return CM_OK;
}

int cm_http_open(const struct cm_http_options *options, struct cm_http **ret, struct cm_error *err)
{
	struct cm_http *http;
	int r = start_library(err);

	if (r != CM_OK)
		return r;
	http = cm_calloc(1, sizeof(*http));
	if (!http)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	if (options) {
		http->env = options->env;
		http->trace = options->trace;
		http->data = options->data;
	}
	r = find_certificates(http, err);
	if (r == CM_OK) {
		http->multi = curl_multi_init();
		if (!http->multi)
			r = cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	}
	if (r != CM_OK) {
		cm_http_close(http);
		return r;
	}
	*ret = http;
	return CM_OK;
}

void cm_http_close(struct cm_http *http)
{
	if (!http)
		return;
	(void)curl_multi_cleanup(http->multi);
	free(http);
}

void cm_http_trace(const struct cm_http *http, const char *fmt, ...)
{
	char line[CM_ERROR_MSG_SIZE + CM_HTTP_SUBJECT_SIZE];
	va_list ap;

	if (!http->trace)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	http->trace(http->data, line);
}

/* --- waiting ---------------------------------------------------------------------------------- */

static int multi_failed(CURLMcode code, struct cm_error *err)
{
	if (code == CURLM_RECURSIVE_API_CALL)
		return cm_error_set(err, CM_E_BUG, 0, "a request while a body is sent or taken");
	return cm_error_set(err, code == CURLM_OUT_OF_MEMORY ? CM_E_NOMEM : CM_E_SYS, 0,
			    "cannot go on with what was asked: %s", curl_multi_strerror(code));
}

int cm_http_run(CURLM *multi, struct cm_error *err)
{
	int n_running = 0;
	int n_left = 0;
	CURLMcode code = curl_multi_perform(multi, &n_running);
	CURLMsg *message;

	if (code != CURLM_OK)
		return multi_failed(code, err);
	while ((message = curl_multi_info_read(multi, &n_left)) != NULL) {
		struct cm_http_transfer *t = NULL;

		if (message->msg != CURLMSG_DONE ||
		    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&t) !=
			    CURLE_OK ||
		    !t)
			continue;
		t->is_done = true;
		t->result = message->data.result;
	}
	return CM_OK;
}

bool cm_http_look(struct cm_wake *wake)
{
	return wake && wake->n > 0 && poll(wake->fds, wake->n, 0) > 0;
}

static void add_fd(struct curl_waitfd *fds, unsigned int *n, int fd, short events)
{
	if (fd < 0)
		return;
	fds[*n] = (struct curl_waitfd){ .fd = fd };
	if (events & POLLIN)
		fds[*n].events |= CURL_WAIT_POLLIN;
	if (events & POLLPRI)
		fds[*n].events |= CURL_WAIT_POLLPRI;
	if (events & POLLOUT)
		fds[*n].events |= CURL_WAIT_POLLOUT;
	++*n;
}

static int poll_ms(const struct cm_http_wait *wait)
{
	int64_t now = cm_clock_mono_ms();
	int64_t until = wait->until_ms;

	if (wait->call->deadline_ms < until)
		until = wait->call->deadline_ms;
	if (until <= now)
		return 0;
	return until - now > POLL_MAX_MS ? POLL_MAX_MS : (int)(until - now);
}

int cm_http_check_call(const struct cm_call *call, const char *subject, struct cm_error *err)
{
	struct pollfd cancel = { .fd = call->cancel_fd, .events = POLLIN };

	if (cancel.fd >= 0 && poll(&cancel, 1, 0) > 0)
		return cm_error_set(err, CM_E_CANCELLED, 0, "given up while waiting for '%s'",
				    subject);
	if (cm_clock_mono_ms() >= call->deadline_ms)
		return cm_error_set(err, CM_E_TIMEOUT, 0, "'%s' took too long", subject);
	return CM_OK;
}

/* libcurl says of what is ours no more than POLLIN and POLLOUT, so we look again. */
int cm_http_wait(const struct cm_http_wait *wait, bool *ret_is_woken, struct cm_error *err)
{
	struct curl_waitfd fds[2 + CM_WAKE_MAX];
	size_t n_wake = wait->wake ? wait->wake->n : 0;
	unsigned int n = 0;
	CURLMcode code;
	int r;

	if (n_wake > CM_WAKE_MAX)
		return cm_error_set(err, CM_E_BUG, 0, "%zu descriptors to wait for", n_wake);
	add_fd(fds, &n, wait->call->cancel_fd, POLLIN);
	add_fd(fds, &n, wait->fd, wait->events);
	for (size_t i = 0; i < n_wake; i++)
		add_fd(fds, &n, wait->wake->fds[i].fd, wait->wake->fds[i].events);
	code = curl_multi_poll(wait->multi, fds, n, poll_ms(wait), NULL);
	if (code != CURLM_OK)
		return multi_failed(code, err);
	if (ret_is_woken)
		*ret_is_woken = cm_http_look(wait->wake);
	r = cm_http_check_call(wait->call, wait->subject, err);
	/* who is woken looks at the time by itself */
	if (r == CM_E_TIMEOUT && ret_is_woken && *ret_is_woken) {
		cm_error_clear(err);
		return CM_OK;
	}
	return r;
}

/* --- one request ------------------------------------------------------------------------------ */

static void trace_end(const struct cm_http_transfer *t, int r, const struct cm_error *err)
{
	const char *id = t->answer.request_id;
	int64_t ms = cm_clock_mono_ms() - t->started_ms;

	if (r != CM_OK)
		cm_http_trace(t->http, "%s %s: failed after %" PRId64 " ms: %s", t->method,
			      t->subject, ms, err->msg);
	else
		cm_http_trace(t->http, "%s %s: %d, %" PRIu64 " bytes%s, %" PRId64 " ms%s%s",
			      t->method, t->subject, t->answer.status,
			      t->taken + (uint64_t)t->answer.body.len, t->is_done ? "" : " so far",
			      ms, id[0] ? ", request " : "", id);
}

static int run_to_answer(struct cm_http_transfer *t, CURLM *multi, bool wants_headers,
			 const struct cm_call *call, struct cm_error *err)
{
	struct cm_http_wait wait = { .multi = multi, .call = call, .fd = -1, .subject = t->subject };
	/* who has given up, or is late already, sends nothing */
	int r = cm_http_wait(&wait, NULL, err);

	if (r == CM_OK)
		r = cm_http_transfer_start(t, multi, err);
	while (r == CM_OK) {
		r = cm_http_run(multi, err);
		if (r != CM_OK)
			return r;
		/* what comes after the headers is told with what comes after them */
		if (wants_headers && t->is_headed && cm_http_transfer_is_2xx(t))
			return CM_OK;
		if (t->is_done)
			return cm_http_transfer_error(t, err);
		wait.until_ms = cm_http_transfer_limit(t);
		if (cm_clock_mono_ms() >= wait.until_ms) {
			t->fault = t->has_answer_line ? CM_HTTP_FAULT_SILENT : CM_HTTP_FAULT_MUTE;
			return cm_http_transfer_error(t, err);
		}
		r = cm_http_wait(&wait, NULL, err);
	}
	return r;
}

int cm_http_transfer_run(struct cm_http_transfer *t, CURLM *multi, bool wants_headers,
			 const struct cm_call *call, struct cm_error *err)
{
	struct cm_error local = CM_ERROR_INIT;
	int r;

	if (t->method[0])
		cm_http_trace(t->http, "%s %s", t->method, t->subject);
	r = run_to_answer(t, multi, wants_headers, call, &local);
	if (t->method[0])
		trace_end(t, r, &local);
	if (r != CM_OK && err)
		*err = local;
	return r;
}

/* --- again ------------------------------------------------------------------------------------ */

/* 0 to max. */
static int64_t jitter(int64_t max)
{
	uint32_t v = 0;

	/* without any, those who failed together try again together, and that is all */
	if (getrandom(&v, sizeof(v), GRND_NONBLOCK) != (ssize_t)sizeof(v))
		v = 0;
	return max > 0 ? (int64_t)(v % ((uint64_t)max + 1)) : 0;
}

int cm_http_before_again(struct cm_http *http, unsigned int attempt, int64_t asked_ms,
			 const struct cm_call *call, const char *subject, struct cm_error *err)
{
	int64_t now = cm_clock_mono_ms();
	int64_t grown_ms = (int64_t)AGAIN_FIRST_MS << attempt;
	struct cm_http_wait wait = {
		.multi = http->multi, .call = call, .fd = -1, .subject = subject
	};
	int r = CM_OK;

	if (attempt >= AGAIN_MAX || asked_ms > AGAIN_ASKED_MAX_MS)
		return CM_E_LIMIT;
	/* never earlier than asked for, and half of our own is by chance */
	if (asked_ms >= 0)
		wait.until_ms = now + asked_ms + jitter(asked_ms < 2000 ? asked_ms / 10 : 200);
	else
		wait.until_ms = now + grown_ms / 2 + jitter(grown_ms / 2);
	if (wait.until_ms >= call->deadline_ms)
		return CM_E_LIMIT;
	cm_http_trace(http, "%s: again in %" PRId64 " ms", subject, wait.until_ms - now);
	while (r == CM_OK && cm_clock_mono_ms() < wait.until_ms) {
		r = cm_http_wait(&wait, NULL, err);
		if (r == CM_OK)
			r = cm_http_run(http->multi, err);
	}
	return r;
}

int cm_http_send(struct cm_http *http, const struct cm_http_request *request,
		 const struct cm_call *call, struct cm_http_answer *ret, struct cm_error *err)
{
	struct cm_http_transfer t;
	bool may_have_arrived = false;
	int again = CM_OK;
	int r = CM_OK;

	*ret = (struct cm_http_answer){ 0 };
	for (unsigned int attempt = 0; again == CM_OK; attempt++) {
		struct cm_error failure = CM_ERROR_INIT;
		int64_t asked_ms = -1;

		r = cm_http_transfer_init(&t, http, request, NULL, &failure);
		if (r == CM_OK)
			r = cm_http_transfer_run(&t, http->multi, false, call, &failure);
		may_have_arrived = may_have_arrived || t.has_begun;
		again = CM_E_LIMIT;
		if (r != CM_E_CANCELLED && cm_http_transfer_may_repeat(&t)) {
			if (r == CM_OK)
				asked_ms = cm_http_retry_after_ms(&t.answer, cm_clock_real_ms());
			else if (t.fault == CM_HTTP_FAULT_STALE)
				asked_ms = 0;
			again = cm_http_before_again(http, attempt, asked_ms, call, t.subject,
						     &failure);
			if (again != CM_OK && again != CM_E_LIMIT)
				r = again;
		}
		if (again != CM_OK && r == CM_OK) {
			*ret = t.answer;
			t.answer = (struct cm_http_answer){ 0 };
		} else if (again != CM_OK && err) {
			*err = failure;
		}
		cm_http_transfer_clear(&t);
	}
	ret->may_have_arrived = may_have_arrived;
	return r;
}
