/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages are Protobuf's in JSON: what has its default value may be left out, so that an exit code
 * of 0 is absent; numbers may be strings; names may be in either spelling.
 */
#include "providers/e2b/events.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/base64.h"
#include "runtime/base/fd.h"
#include "runtime/base/num.h"
#include "runtime/base/text.h"

const struct cm_json *cm_e2b_member(const struct cm_json *v, const char *name, const char *other)
{
	const struct cm_json *m = cm_json_get(v, name);

	if (!m && other)
		m = cm_json_get(v, other);
	return m && m->type != CM_JSON_NULL ? m : NULL;
}

bool cm_e2b_number(const struct cm_json *v, int64_t *ret)
{
	const char *s;
	uint64_t n = 0;
	bool is_negative;

	if (v && v->type == CM_JSON_INT) {
		*ret = v->u.integer;
		return true;
	}
	if (!v || v->type != CM_JSON_STRING)
		return false;
	s = v->u.string;
	is_negative = *s == '-';
	if (cm_parse_u64(s + is_negative, "number", 0, INT64_MAX, &n, NULL) < 0)
		return false;
	*ret = is_negative ? -(int64_t)n : (int64_t)n;
	return true;
}

int cm_e2b_signal_of(const char *status)
{
	static const char prefix[] = "signal: ";
	static const struct {
		const char *name;
		int number;
	} names[] = {
		{ "hangup", SIGHUP },
		{ "interrupt", SIGINT },
		{ "quit", SIGQUIT },
		{ "illegal instruction", SIGILL },
		{ "trace/breakpoint trap", SIGTRAP },
		{ "aborted", SIGABRT },
		{ "bus error", SIGBUS },
		{ "floating point exception", SIGFPE },
		{ "killed", SIGKILL },
		{ "user defined signal 1", SIGUSR1 },
		{ "segmentation fault", SIGSEGV },
		{ "user defined signal 2", SIGUSR2 },
		{ "broken pipe", SIGPIPE },
		{ "alarm clock", SIGALRM },
		{ "terminated", SIGTERM },
		{ "stack fault", 16 },
		{ "child exited", SIGCHLD },
		{ "CPU time limit exceeded", SIGXCPU },
		{ "file size limit exceeded", SIGXFSZ },
		{ "virtual timer expired", SIGVTALRM },
		{ "profiling timer expired", SIGPROF },
		{ "I/O possible", SIGIO },
		{ "power failure", SIGPWR },
		{ "bad system call", SIGSYS },
	};
	size_t len;
	uint64_t n = 0;

	if (!status || !cm_text_has_prefix(status, prefix))
		return 0;
	status += sizeof(prefix) - 1;
	for (size_t i = 0; i < CM_ARRAY_SIZE(names); i++) {
		len = strlen(names[i].name);
		/* " (core dumped)" may follow */
		if (strncasecmp(status, names[i].name, len) == 0 &&
		    (status[len] == '\0' || status[len] == ' '))
			return names[i].number;
	}
	if (cm_text_has_prefix(status, "signal ") &&
	    cm_parse_u64(status + 7, "signal", 1, 64, &n, NULL) == CM_OK)
		return (int)n;
	return 0;
}

static int bad(const char *what, struct cm_error *err)
{
	return cm_error_set(err, CM_E_PROTOCOL, 0, "the sandbox tells of a command %s", what);
}

static int parse(const char *json, size_t len, struct cm_json_doc **ret, struct cm_error *err)
{
	int r = cm_json_parse(json, len, "a message of the sandbox", 0, ret, err);

	/* the reader's own words are for files of a user's */
	if (r == CM_E_INVALID || r == CM_E_LIMIT) {
		cm_error_clear(err);
		return cm_error_set(err, r == CM_E_LIMIT ? r : CM_E_PROTOCOL, 0,
				    "a message of the sandbox %s",
				    r == CM_E_LIMIT ? "is too large" : "cannot be read");
	}
	return r;
}

static int read_start(const struct cm_json *v, struct cm_e2b_event *ret, struct cm_error *err)
{
	int64_t pid = 0;

	if (!cm_e2b_number(cm_e2b_member(v, "pid", NULL), &pid) || pid <= 0 || pid > INT32_MAX)
		return bad("that starts without a process", err);
	ret->kind = CM_E2B_EVENT_START;
	ret->pid = pid;
	return CM_OK;
}

static int read_data(const struct cm_json *v, struct cm_buf *out, struct cm_e2b_event *ret,
		     struct cm_error *err)
{
	static const struct {
		const char *name;
		int stream;
	} streams[] = { { "stdout", 1 }, { "stderr", 2 }, { "pty", 1 } };
	const struct cm_json *text = NULL;
	int r;

	for (size_t i = 0; i < CM_ARRAY_SIZE(streams) && !text; i++) {
		text = cm_e2b_member(v, streams[i].name, NULL);
		ret->stream = streams[i].stream;
	}
	if (!text)
		return CM_OK;
	if (text->type != CM_JSON_STRING)
		return bad("what it printed in no string", err);
	if (!cm_base64_decode(out, text->u.string, strlen(text->u.string)))
		return bad("what it printed in no base64", err);
	r = cm_buf_status(out);
	if (r < 0)
		return cm_error_set(err, r, 0, "no memory for what a command printed");
	if (out->len > 0)
		ret->kind = CM_E2B_EVENT_DATA;
	return CM_OK;
}

static int read_end(const struct cm_json *v, struct cm_e2b_event *ret, struct cm_error *err)
{
	const struct cm_json *code = cm_e2b_member(v, "exitCode", "exit_code");
	const char *status = cm_json_str(v, "status", cm_json_str(v, "error", ""));
	bool has_exited = cm_json_bool(v, "exited", false);
	int64_t n = 0;

	if (code && !cm_e2b_number(code, &n))
		return bad("that ends with no number", err);
	ret->kind = CM_E2B_EVENT_END;
	if (!has_exited)
		ret->signal = cm_e2b_signal_of(status);
	if (ret->signal == 0 && (n < 0 || n > 255))
		ret->is_unknown = true;
	else if (ret->signal == 0)
		ret->exit_code = (int)n;
	return CM_OK;
}

int cm_e2b_event_read(const char *json, size_t len, struct cm_buf *out, struct cm_e2b_event *ret,
		      struct cm_error *err)
{
	struct cm_json_doc *doc = NULL;
	struct cm_e2b_event event = { 0 };
	const struct cm_json *v;
	const struct cm_json *m;
	int r = parse(json, len, &doc, err);

	cm_buf_reset(out);
	if (r < 0)
		return r;
	v = cm_json_get(cm_json_root(doc), "event");
	if (cm_json_root(doc)->type != CM_JSON_OBJECT)
		r = bad("in no object", err);
	else if ((m = cm_e2b_member(v, "start", NULL)) != NULL)
		r = read_start(m, &event, err);
	else if ((m = cm_e2b_member(v, "data", NULL)) != NULL)
		r = read_data(m, out, &event, err);
	else if ((m = cm_e2b_member(v, "end", NULL)) != NULL)
		r = read_end(m, &event, err);
	cm_json_free(doc);
	if (r == CM_OK)
		*ret = event;
	return r;
}

/* --- watches ---------------------------------------------------------------------------------- */

static bool kind_of(const struct cm_json *type, enum cm_watch_kind *ret)
{
	/* by the number, where a writer prefers those */
	static const struct {
		const char *name;
		enum cm_watch_kind kind;
	} kinds[] = {
		{ "EVENT_TYPE_CREATE", CM_WATCH_CREATED },
		{ "EVENT_TYPE_WRITE", CM_WATCH_MODIFIED },
		{ "EVENT_TYPE_REMOVE", CM_WATCH_REMOVED },
		{ "EVENT_TYPE_RENAME", CM_WATCH_RENAMED },
		{ "EVENT_TYPE_CHMOD", CM_WATCH_ATTRIBUTES },
	};

	for (size_t i = 0; type && i < CM_ARRAY_SIZE(kinds); i++) {
		if ((type->type == CM_JSON_STRING && strcmp(type->u.string, kinds[i].name) == 0) ||
		    (type->type == CM_JSON_INT && type->u.integer == (int64_t)i + 1)) {
			*ret = kinds[i].kind;
			return true;
		}
	}
	return false;
}

int cm_e2b_watch_read(const char *json, size_t len, enum cm_e2b_watch_kind *ret_what,
		      enum cm_watch_kind *ret_kind, char **ret_name, struct cm_error *err)
{
	struct cm_json_doc *doc = NULL;
	enum cm_e2b_watch_kind what = CM_E2B_WATCH_OTHER;
	enum cm_watch_kind kind = CM_WATCH_READY;
	char *name = NULL;
	const struct cm_json *v;
	int r = parse(json, len, &doc, err);

	if (r < 0)
		return r;
	if (cm_e2b_member(cm_json_root(doc), "start", NULL)) {
		what = CM_E2B_WATCH_START;
	} else if ((v = cm_e2b_member(cm_json_root(doc), "filesystem", NULL)) != NULL &&
		   kind_of(cm_e2b_member(v, "type", NULL), &kind)) {
		name = cm_strdup(cm_json_str(v, "name", ""));
		if (name)
			what = CM_E2B_WATCH_EVENT;
		else
			r = cm_error_set(err, CM_E_NOMEM, 0, "no memory for what changed");
	}
	cm_json_free(doc);
	if (r < 0)
		return r;
	*ret_what = what;
	*ret_kind = kind;
	*ret_name = name;
	return CM_OK;
}
