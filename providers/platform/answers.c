/* SPDX-License-Identifier: Apache-2.0 */
#include "providers/platform/answers.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/buf.h"
#include "runtime/base/fd.h"
#include "runtime/base/json.h"

#define RETRY_AFTER_MAX_MS 60000
#define EXIT_MAX 255

static int malformed(const char *what, struct cm_error *err)
{
	return cm_error_set(err, CM_E_PROTOCOL, 0, "the workspace proxy's answer %s", what);
}

static int no_memory(struct cm_error *err)
{
	return cm_error_set(err, CM_E_NOMEM, 0, "no memory for an answer of the workspace proxy");
}

/* CM_OK with a root that is an object. */
static int parse(const char *text, size_t len, struct cm_json_doc **ret,
		 const struct cm_json **ret_root, struct cm_error *err)
{
	struct cm_error why = CM_ERROR_INIT;
	struct cm_json_doc *doc = NULL;
	int r = cm_json_parse(text ? text : "", len, "answer", 0, &doc, &why);

	if (r == CM_E_NOMEM)
		return no_memory(err);
	if (r < 0)
		return malformed("is no JSON", err);
	if (cm_json_root(doc)->type != CM_JSON_OBJECT) {
		cm_json_free(doc);
		return malformed("is no JSON object", err);
	}
	*ret = doc;
	*ret_root = cm_json_root(doc);
	return CM_OK;
}

static bool is_name(const char *s)
{
	size_t len = strlen(s);

	if (len == 0 || len > CM_PLATFORM_NAME_MAX)
		return false;
	for (; *s; s++) {
		if (*s <= ' ' || *s > '~')
			return false;
	}
	return true;
}

/* Absent, null or of another type: *ret is NULL. */
static int copy_optional(const struct cm_json *root, const char *key, char **ret,
			 struct cm_error *err)
{
	const char *s = cm_json_str(root, key, NULL);

	*ret = cm_strdup(s);
	return s && !*ret ? no_memory(err) : CM_OK;
}

static bool is_there(const struct cm_json *v)
{
	return v && v->type != CM_JSON_NULL;
}

/* --- sandboxes ------------------------------------------------------------------------------- */

static int fill_sandbox(const struct cm_json *root, struct cm_platform_sandbox *s,
			struct cm_error *err)
{
	const char *id = cm_json_str(root, "id", NULL);
	const char *created = cm_json_str(root, "createdAt", NULL);
	int r;

	/* It goes into the paths of later requests. "." and ".." are names of nothing there. */
	if (!id || !is_name(id) || strcmp(id, ".") == 0 || strcmp(id, "..") == 0)
		return malformed("has no sandbox id", err);
	r = copy_optional(root, "id", &s->id, err);
	if (r == CM_OK)
		r = copy_optional(root, "providerResourceId", &s->resource_id, err);
	if (r == CM_OK)
		r = copy_optional(root, "status", &s->status, err);
	if (r == CM_OK)
		r = copy_optional(root, "instanceUrl", &s->instance_url, err);
	s->created_ms = created ? cm_platform_time(created) : 0;
	s->is_destroyed = is_there(cm_json_get(root, "destroyedAt"));
	s->is_template_pending = is_there(cm_json_get(root, "templatePending"));
	return r;
}

int cm_platform_sandbox_read(const char *text, size_t len, struct cm_platform_sandbox *ret,
			     struct cm_error *err)
{
	struct cm_platform_sandbox s = { 0 };
	const struct cm_json *root = NULL;
	struct cm_json_doc *doc = NULL;
	int r = parse(text, len, &doc, &root, err);

	if (r == CM_OK)
		r = fill_sandbox(root, &s, err);
	cm_json_free(doc);
	if (r == CM_OK)
		*ret = s;
	else
		cm_platform_sandbox_clear(&s);
	return r;
}

void cm_platform_sandbox_clear(struct cm_platform_sandbox *sandbox)
{
	free(sandbox->id);
	free(sandbox->resource_id);
	free(sandbox->status);
	free(sandbox->instance_url);
	*sandbox = (struct cm_platform_sandbox){ 0 };
}

/* --- leases ---------------------------------------------------------------------------------- */

static int fill_lease(const struct cm_json *root, struct cm_platform_lease *lease,
		      struct cm_error *err)
{
	const char *expires = cm_json_str(root, "expiresAt", NULL);
	int r = copy_optional(root, "provider", &lease->provider, err);

	if (r == CM_OK)
		r = copy_optional(root, "jwt", &lease->jwt, err);
	if (r == CM_OK)
		r = copy_optional(root, "wsEndpoint", &lease->endpoint, err);
	if (r == CM_OK)
		r = copy_optional(root, "subprotocol", &lease->subprotocol, err);
	if (r < 0)
		return r;
	if (!lease->provider || !lease->jwt || !lease->endpoint || !lease->subprotocol)
		return malformed("is no lease", err);
	lease->expires_ms = expires ? cm_platform_time(expires) : 0;
	return CM_OK;
}

int cm_platform_lease_read(const char *text, size_t len, struct cm_platform_lease *ret,
			   struct cm_error *err)
{
	struct cm_platform_lease lease = { 0 };
	const struct cm_json *root = NULL;
	struct cm_json_doc *doc = NULL;
	int r = parse(text, len, &doc, &root, err);

	if (r == CM_OK)
		r = fill_lease(root, &lease, err);
	cm_json_free(doc);
	if (r == CM_OK)
		*ret = lease;
	else
		cm_platform_lease_clear(&lease);
	return r;
}

void cm_platform_lease_clear(struct cm_platform_lease *lease)
{
	if (lease->jwt)
		explicit_bzero(lease->jwt, strlen(lease->jwt));
	free(lease->jwt);
	free(lease->provider);
	free(lease->endpoint);
	free(lease->subprotocol);
	*lease = (struct cm_platform_lease){ 0 };
}

/* --- checkpoints and builds ------------------------------------------------------------------ */

/* The number of the word in the list, from 1; 0: it is none of them. */
static int word_of(const char *s, const char *const words[3])
{
	for (int i = 0; s && i < 3; i++) {
		if (strcmp(s, words[i]) == 0)
			return i + 1;
	}
	return 0;
}

int cm_platform_checkpoint_read(const char *text, size_t len, struct cm_platform_checkpoint *ret,
				struct cm_error *err)
{
	static const char *const words[3] = { "captured", "coalesced", "skipped" };
	struct cm_platform_checkpoint c = { 0 };
	const struct cm_json *root = NULL;
	struct cm_json_doc *doc = NULL;
	int r = parse(text, len, &doc, &root, err);

	if (r < 0)
		return r;
	c.status = (enum cm_platform_checkpoint_status)word_of(cm_json_str(root, "status", NULL),
							       words);
	r = c.status ? copy_optional(root, "checkpointName", &c.name, err)
		     : malformed("does not say what became of a checkpoint", err);
	cm_json_free(doc);
	if (r == CM_OK && c.name && !is_name(c.name)) {
		free(c.name);
		return malformed("has a checkpoint's name that is none", err);
	}
	if (r == CM_OK)
		*ret = c;
	return r;
}

int cm_platform_build_read(const char *text, size_t len, struct cm_platform_build *ret,
			   struct cm_error *err)
{
	static const char *const words[3] = { "ready", "pending", "failed" };
	struct cm_platform_build b = { 0 };
	const struct cm_json *root = NULL;
	struct cm_json_doc *doc = NULL;
	int64_t wait;
	int r = parse(text, len, &doc, &root, err);

	if (r < 0)
		return r;
	b.status = (enum cm_platform_build_status)word_of(cm_json_str(root, "status", NULL), words);
	wait = cm_json_int(root, "retryAfterMs", 0);
	b.retry_after_ms = wait <= 0		       ? 0
			   : wait > RETRY_AFTER_MAX_MS ? RETRY_AFTER_MAX_MS
						       : (uint32_t)wait;
	r = b.status ? copy_optional(root, "error", &b.error, err)
		     : malformed("does not say what became of a build", err);
	cm_json_free(doc);
	if (r == CM_OK)
		*ret = b;
	return r;
}

/* --- commands -------------------------------------------------------------------------------- */

/*
 * A NUL in output, which is no character of a text here, is shown as bytes that are no UTF-8 were
 * before they came. In place: the escape of one is as long as that of the other.
 */
static void replace_nul(char *text, size_t len)
{
	for (size_t i = 0; i + 1 < len; i++) {
		if (text[i] != '\\')
			continue;
		if (len - i >= 6 && memcmp(text + i, "\\u0000", 6) == 0)
			memcpy(text + i, "\\ufffd", 6);
		i++;
	}
}

static int parse_output(const char *text, size_t len, struct cm_json_doc **ret,
			const struct cm_json **ret_root, struct cm_error *err)
{
	struct cm_buf copy;
	int r;

	cm_buf_init(&copy, CM_JSON_MAX_BYTES);
	cm_buf_append(&copy, text ? text : "", len);
	r = cm_buf_status(&copy);
	if (r == CM_OK) {
		replace_nul(copy.data, copy.len);
		r = parse(copy.data, copy.len, ret, ret_root, err);
	} else {
		r = r == CM_E_NOMEM ? no_memory(err) : malformed("is too long", err);
	}
	cm_buf_clear(&copy);
	return r;
}

static bool read_exit(const struct cm_json *code, int *ret)
{
	if (!code || code->type != CM_JSON_INT || code->u.integer < 0 || code->u.integer > EXIT_MAX)
		return false;
	*ret = (int)code->u.integer;
	return true;
}

int cm_platform_result_read(const char *text, size_t len, struct cm_platform_result *ret,
			    struct cm_error *err)
{
	struct cm_platform_result result = { 0 };
	const struct cm_json *root = NULL;
	const struct cm_json *code;
	struct cm_json_doc *doc = NULL;
	int r = parse_output(text, len, &doc, &root, err);

	if (r < 0)
		return r;
	result.is_timed_out = cm_json_bool(root, "timedOut", false);
	result.is_truncated = cm_json_bool(root, "truncated", false);
	code = cm_json_get(root, "exitCode");
	/* null stands for what has no code of its own */
	if (code && code->type == CM_JSON_NULL)
		result.exit_code = result.is_timed_out ? 124 : 1;
	else if (!read_exit(code, &result.exit_code))
		r = malformed("does not say how a command ended", err);
	if (r == CM_OK)
		r = copy_optional(root, "stdout", &result.out, err);
	if (r == CM_OK)
		r = copy_optional(root, "stderr", &result.err, err);
	cm_json_free(doc);
	if (r == CM_OK)
		*ret = result;
	else
		cm_platform_result_clear(&result);
	return r;
}

void cm_platform_result_clear(struct cm_platform_result *result)
{
	free(result->out);
	free(result->err);
	*result = (struct cm_platform_result){ 0 };
}

int cm_platform_message_read(const char *text, size_t len, struct cm_platform_line *ret)
{
	struct cm_platform_line line = { 0 };
	const struct cm_json *root = NULL;
	struct cm_json_doc *doc = NULL;
	int r = parse(text, len, &doc, &root, NULL);

	if (r == CM_OK && strcmp(cm_json_str(root, "type", ""), "exit") == 0) {
		const struct cm_json *data = cm_json_get(root, "data");

		line.kind = read_exit(cm_json_get(data, "exit_code"), &line.exit_code)
				    ? CM_PLATFORM_LINE_EXIT
				    : CM_PLATFORM_LINE_BAD_EXIT;
	}
	cm_json_free(doc);
	if (r == CM_E_NOMEM)
		return r;
	*ret = line;
	return CM_OK;
}

int cm_platform_line_read(const char *text, size_t len, struct cm_platform_line *ret)
{
	struct cm_platform_line line = { 0 };
	const struct cm_json *root = NULL;
	struct cm_json_doc *doc = NULL;
	int r = parse_output(text, len, &doc, &root, NULL);

	if (r == CM_OK) {
		const char *type = cm_json_str(root, "type", "");

		if (strcmp(type, "exit") == 0)
			line.kind = read_exit(cm_json_get(root, "code"), &line.exit_code)
					    ? CM_PLATFORM_LINE_EXIT
					    : CM_PLATFORM_LINE_BAD_EXIT;
		else if (strcmp(type, "stdout") == 0)
			line.kind = CM_PLATFORM_LINE_STDOUT;
		else if (strcmp(type, "stderr") == 0)
			line.kind = CM_PLATFORM_LINE_STDERR;
		if (line.kind >= CM_PLATFORM_LINE_STDOUT) {
			r = copy_optional(root, "data", &line.data, NULL);
			if (!line.data)
				line.kind = CM_PLATFORM_LINE_OTHER;
		}
	}
	cm_json_free(doc);
	if (r == CM_E_NOMEM)
		return r;
	*ret = line;
	return CM_OK;
}

char *cm_platform_error_text(const char *text, size_t len)
{
	const struct cm_json *root = NULL;
	struct cm_json_doc *doc = NULL;
	char *message = NULL;

	if (parse(text, len, &doc, &root, NULL) == CM_OK)
		message = cm_strdup(cm_json_str(cm_json_get(root, "error"), "message", NULL));
	cm_json_free(doc);
	return message;
}
