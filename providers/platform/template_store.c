/* SPDX-License-Identifier: Apache-2.0 */
/* Templates: built by the platform, and called by names that this host keeps. */
#include <stdlib.h>
#include <string.h>

#include "providers/platform/keep.h"
#include "providers/platform/sessions.h"
#include "providers/platform/template.h"
#include "runtime/base/fd.h"
#include "runtime/base/text.h"

/* where the platform does not say when to ask again */
#define RETRY_MS 1000
#define RETRY_MIN_MS 50
#define DEFINITION_ROOM (2 * CM_PLATFORM_DEFINITION_MAX)

static int not_found(const char *name, struct cm_error *err)
{
	cm_error_set(err, CM_E_NOT_FOUND, 0, "there is no template '%s' of this project here",
		     name);
	cm_error_hint(err,
		      "build it, or name a checkpoint: " CM_PLATFORM_CHECKPOINT_PREFIX "SESSION");
	return CM_E_NOT_FOUND;
}

int cm_platform_template_find(struct cm_platform *p, const char *name, struct cm_json_doc **ret,
			      struct cm_error *err)
{
	CM_AUTO_FREE char *text = NULL;
	int r;

	if (!cm_text_is_session_id(name))
		return not_found(name, err);
	r = cm_platform_keep_definition(p, name, &text, err);
	if (r == CM_E_NOT_FOUND)
		return not_found(name, err);
	/* a file that somebody can have changed */
	return r < 0 ? r : cm_platform_template_check(text, strlen(text), name, ret, err);
}

/* --- built ----------------------------------------------------------------------------------- */

static void log_line(const struct cm_template_request *request, const char *text)
{
	if (request->log)
		request->log(request->data, text);
}

static int failed(const struct cm_template_request *request, const struct cm_platform_build *build,
		  struct cm_error *err)
{
	if (build->error)
		log_line(request, build->error);
	return cm_error_set(err, CM_E_REMOTE, 0, "the platform cannot build template '%s'%s%s",
			    request->name, build->error ? ": " : "",
			    build->error ? build->error : "");
}

/* Asking again is how the platform is asked how it stands. */
static int build_until_ready(struct cm_platform *p, const struct cm_template_request *request,
			     const struct cm_json *definition, const struct cm_call *call,
			     struct cm_error *err)
{
	log_line(request, "build begun");
	for (;;) {
		struct cm_platform_build build = { 0 };
		uint32_t wait_ms;
		int r = cm_platform_build(p, definition, call, &build, err);

		if (r == CM_OK && build.status == CM_PLATFORM_FAILED)
			r = failed(request, &build, err);
		free(build.error);
		if (r < 0)
			return r;
		if (build.status == CM_PLATFORM_READY) {
			log_line(request, "build ready");
			return CM_OK;
		}
		wait_ms = build.retry_after_ms ? build.retry_after_ms : RETRY_MS;
		r = cm_call_sleep(call, wait_ms > RETRY_MIN_MS ? wait_ms : RETRY_MIN_MS, err);
		if (r < 0) {
			cm_error_wrap(err, "template '%s' is still being built", request->name);
			return r;
		}
	}
}

static int check_request(const struct cm_template_request *request, struct cm_error *err)
{
	if (!request->name || !cm_text_is_session_id(request->name))
		return cm_error_set(err, CM_E_INVALID, 0,
				    "a template's name has 1 to 128 of A-Z a-z 0-9 . _ -");
	if (request->base) {
		cm_error_set(err, CM_E_UNSUPPORTED, 0,
			     "the platform builds templates on its own base alone");
		cm_error_hint(err, "leave out the base");
		return CM_E_UNSUPPORTED;
	}
	return CM_OK;
}

int cm_platform_template_build(struct cm_provider *base, const struct cm_template_request *request,
			       const struct cm_call *call, char **ret, struct cm_error *err)
{
	struct cm_platform *p = cm_platform_of(base);
	struct cm_json_doc *doc = NULL;
	CM_AUTO_FREE char *name = NULL;
	struct cm_buf text;
	int r = check_request(request, err);

	if (r < 0)
		return r;
	name = cm_strdup(request->name);
	if (!name)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for a template");
	cm_buf_init(&text, DEFINITION_ROOM);
	r = cm_platform_template_make(request, &text, err);
	/* every bound, before anything is sent */
	if (r == CM_OK)
		r = cm_platform_template_check(text.data, text.len, request->name, &doc, err);
	if (r == CM_OK)
		r = build_until_ready(p, request, cm_json_root(doc), call, err);
	if (r == CM_OK)
		r = cm_platform_keep_set_definition(p, request->name, text.data, err);
	cm_json_free(doc);
	cm_buf_clear(&text);
	if (r == CM_OK)
		*ret = cm_ptr_take(&name);
	return r;
}

/* --- listed ---------------------------------------------------------------------------------- */

/* Kept is what was ready once. How it stands now is asked by building it again, which a list is not to. */
int cm_platform_template_list(struct cm_provider *base, const struct cm_call *call,
			      int (*each)(void *data, const char *name, const char *state),
			      void *data, struct cm_error *err)
{
	CM_AUTO_STRV struct cm_strv names = { 0 };
	int r = cm_platform_keep_definitions(cm_platform_of(base), &names, err);

	(void)call;
	for (size_t i = 0; i < names.n && r == CM_OK; i++)
		r = each(data, names.v[i], "ready");
	return r;
}

/* The name: the platform keeps what it has built, and has no route that removes it. */
int cm_platform_template_remove(struct cm_provider *base, const char *name,
				const struct cm_call *call, struct cm_error *err)
{
	int r;

	(void)call;
	if (!cm_text_is_session_id(name))
		return not_found(name, err);
	r = cm_platform_keep_set_definition(cm_platform_of(base), name, NULL, err);
	return r == CM_E_NOT_FOUND ? not_found(name, err) : r;
}
