/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: made, found, started, and the sandbox that each of them has. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "providers/platform/keep.h"
#include "providers/platform/sessions.h"
#include "runtime/base/alloc.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/text.h"

/* what is left of a call that was given up is removed within that time: somebody waits for the end */
#define UNDO_MS 2500
/* by how much less than it says the platform's clock and this host's differ, where that is to tell what is new */
#define CLOCKS_DIFFER_MS (CM_HTTP_CLOCK_MS + 500)
#define SEEN_MS 2000
#define ENV_NAMES_MAX 65536

struct cm_platform_session *cm_platform_session_of(struct cm_session *s)
{
	return (struct cm_platform_session *)(void *)s;
}

bool cm_platform_has_provider(const struct cm_platform *p, const struct cm_platform_session *s)
{
	return p->settings.is_e2b ||
	       (s->template_name &&
		!cm_text_has_prefix(s->template_name, CM_PLATFORM_CHECKPOINT_PREFIX));
}

bool cm_platform_is_running(const struct cm_platform_session *s)
{
	return s->sandbox.id && !s->is_gone;
}

void cm_platform_session_lose(struct cm_platform_session *s)
{
	cm_platform_lease_drop(s);
	s->is_gone = true;
	s->has_asked_sidecar = false;
	s->has_sidecar = false;
}

void cm_platform_release(struct cm_session *base)
{
	struct cm_platform_session *s = cm_platform_session_of(base);

	cm_platform_sandbox_clear(&s->sandbox);
	cm_platform_lease_clear(&s->lease);
	free(s->template_name);
	free(s->workdir);
	free(s->seed);
	free(s->env_names);
	/* they may be secrets */
	for (size_t i = 0; i < s->env.n; i++)
		explicit_bzero(s->env.v[i], strlen(s->env.v[i]));
	cm_strv_clear(&s->env);
	cm_strv_clear(&s->labels);
	free(s);
}

/* --- made ------------------------------------------------------------------------------------ */

static int no_memory(struct cm_error *err)
{
	return cm_error_set(err, CM_E_NOMEM, 0, "no memory for a session");
}

int cm_platform_session_new(struct cm_platform *p, const char *id, struct cm_platform_session **ret,
			    struct cm_error *err)
{
	struct cm_platform_session *s = cm_calloc(1, sizeof(*s));

	if (!s) {
		(void)no_memory(err);
		return CM_E_NOMEM;
	}
	s->base.provider = &p->base;
	if (strlen(id) >= sizeof(s->base.id)) {
		free(s);
		(void)cm_error_set(err, CM_E_INVALID, 0, "a session's name is too long");
		return CM_E_INVALID;
	}
	(void)snprintf(s->base.id, sizeof(s->base.id), "%s", id);
	*ret = s;
	return CM_OK;
}

/* It has what it was made with; what is asked for now is to be the same. */
static int take_spec(struct cm_platform_session *s, const struct cm_spec *spec,
		     struct cm_error *err)
{
	if (!s->base.is_new && spec->template_name &&
	    strcmp(spec->template_name, s->template_name ? s->template_name : "") != 0) {
		cm_error_set(err, CM_E_EXISTS, 0, "session '%s' began with %s%s%s", s->base.id,
			     s->template_name ? "template '" : "no template",
			     s->template_name ? s->template_name : "", s->template_name ? "'" : "");
		cm_error_hint(err, "leave out --template, or use another session");
		return CM_E_EXISTS;
	}
	if (s->base.is_new && spec->template_name) {
		s->template_name = cm_strdup(spec->template_name);
		if (!s->template_name)
			return no_memory(err);
	}
	if (spec->workdir && spec->workdir[0] == '/') {
		free(s->workdir);
		s->workdir = cm_strdup(spec->workdir);
		if (!s->workdir)
			return no_memory(err);
	}
	if (cm_strv_copy(&s->env, &spec->env) < 0 || cm_strv_copy(&s->labels, &spec->labels) < 0)
		return no_memory(err);
	return CM_OK;
}

/* --- a sandbox for it ------------------------------------------------------------------------ */

/*
 * Did this call make it? A name that was made is nobody else's. Of one with a name of its user's there may be a
 * sandbox that another host has made, which is not to go: only one as old as the call is ours.
 */
static bool is_ours(const struct cm_platform_session *s, int64_t began_ms)
{
	int64_t created_ms = s->sandbox.created_ms;

	/* when it was made is told by the platform's clock */
	created_ms -= cm_platform_of(s->base.provider)->clock_ahead_ms;
	return s->has_made_name || (created_ms >= began_ms - CLOCKS_DIFFER_MS &&
				    created_ms <= cm_clock_real_ms() + CLOCKS_DIFFER_MS);
}

/* What was made is gone again, or a note says what was left. */
static void undo(struct cm_platform_session *s, int64_t began_ms)
{
	struct cm_platform *p = cm_platform_of(s->base.provider);
	struct cm_call own = { cm_clock_mono_ms() + UNDO_MS, -1 };
	struct cm_error why = CM_ERROR_INIT;

	if (!is_ours(s, began_ms))
		cm_provider_note(&p->base,
				 "sandbox '%s' of session '%s' was left, which may be older",
				 s->sandbox.id, s->base.id);
	else if (cm_platform_delete(p, s, &own, &why) < 0)
		cm_provider_note(&p->base, "sandbox '%s' of session '%s' was left: %s",
				 s->sandbox.id, s->base.id, why.msg);
	cm_platform_session_lose(s);
}

/*
 * The platform was asked for a sandbox, and its answer did not arrive. Asked once more, it says what it
 * has by that name.
 */
static void undo_unsure(struct cm_platform_session *s, const struct cm_platform_wish *wish,
			int64_t began_ms)
{
	struct cm_platform *p = cm_platform_of(s->base.provider);
	struct cm_call own = { cm_clock_mono_ms() + UNDO_MS, -1 };
	struct cm_platform_sandbox sandbox = { 0 };
	bool is_unsure = false;

	if (cm_platform_provision(p, wish, &own, &sandbox, &is_unsure, NULL) < 0) {
		cm_provider_note(&p->base,
				 "a sandbox for session '%s' may have been left at the platform",
				 s->base.id);
		return;
	}
	cm_platform_sandbox_clear(&s->sandbox);
	s->sandbox = sandbox;
	undo(s, began_ms);
}

/* "A B": what a sandbox is made with. The values stay with it, and with who gave them. */
static int name_env(struct cm_platform_session *s, struct cm_error *err)
{
	struct cm_buf names;

	if (s->env.n == 0)
		return CM_OK;
	cm_buf_init(&names, ENV_NAMES_MAX);
	for (size_t i = 0; i < s->env.n; i++) {
		cm_buf_puts(&names, i == 0 ? "" : " ");
		cm_buf_append(&names, s->env.v[i], strcspn(s->env.v[i], "="));
	}
	free(s->env_names);
	s->env_names = cm_buf_take(&names);
	return s->env_names ? CM_OK : no_memory(err);
}

static void note_new(struct cm_platform_session *s)
{
	struct cm_platform *p = cm_platform_of(s->base.provider);

	if (s->sandbox.is_template_pending)
		cm_provider_note(&p->base,
				 "template '%s' is still being built: session '%s' begins with "
				 "an earlier one, or the platform's own",
				 s->template_name ? s->template_name : "", s->base.id);
	if (s->env.n == 0 && s->env_names)
		cm_provider_note(
			&p->base,
			"the new sandbox of session '%s' has not the variables that it was "
			"made with: %s",
			s->base.id, s->env_names);
}

/* What it is to begin with. *ret_definition is the caller's. */
static int fill_wish(struct cm_platform_session *s, struct cm_platform_wish *wish,
		     struct cm_json_doc **ret_definition, struct cm_error *err)
{
	static const size_t prefix_len = sizeof(CM_PLATFORM_CHECKPOINT_PREFIX) - 1;
	int r;

	*wish = (struct cm_platform_wish){ .id = s->base.id, .seed = s->seed, .env = &s->env };
	if (!s->template_name)
		return CM_OK;
	if (cm_text_has_prefix(s->template_name, CM_PLATFORM_CHECKPOINT_PREFIX)) {
		if (!wish->seed)
			wish->seed = s->template_name + prefix_len;
		return CM_OK;
	}
	r = cm_platform_template_find(cm_platform_of(s->base.provider), s->template_name,
				      ret_definition, err);
	if (r == CM_OK)
		wish->definition = cm_json_root(*ret_definition);
	return r;
}

static int provision(struct cm_platform_session *s, const struct cm_call *call,
		     struct cm_error *err)
{
	struct cm_platform *p = cm_platform_of(s->base.provider);
	struct cm_platform_sandbox sandbox = { 0 };
	struct cm_platform_wish wish = { 0 };
	struct cm_json_doc *definition = NULL;
	int64_t began_ms = cm_clock_real_ms();
	bool is_unsure = false;
	int r = name_env(s, err);

	if (r == CM_OK)
		r = fill_wish(s, &wish, &definition, err);
	if (r == CM_OK)
		r = cm_platform_provision(p, &wish, call, &sandbox, &is_unsure, err);
	if (r < 0 && is_unsure)
		undo_unsure(s, &wish, began_ms);
	cm_json_free(definition);
	if (r < 0)
		return r;
	cm_platform_sandbox_clear(&s->sandbox);
	s->sandbox = sandbox;
	s->is_gone = false;
	s->is_stopped = false;
	if (s->created_ms == 0)
		s->created_ms = cm_clock_real_ms();
	r = cm_platform_keep_save(s, err);
	if (r < 0)
		undo(s, began_ms);
	else
		note_new(s);
	return r;
}

static int gone(const struct cm_platform_session *s, struct cm_error *err)
{
	cm_error_set(err, CM_E_NOT_FOUND, 0, "the sandbox of session '%s' is gone", s->base.id);
	cm_error_hint(err, "start the session again, or remove it");
	return CM_E_NOT_FOUND;
}

int cm_platform_session_look(struct cm_platform_session *s, const struct cm_call *call,
			     struct cm_error *err)
{
	struct cm_platform_sandbox sandbox = { 0 };
	int r;

	/* once: who has just attached to it has just looked */
	if (cm_clock_mono_ms() < s->seen_until_ms) {
		s->seen_until_ms = 0;
		return s->is_gone ? gone(s, err) : CM_OK;
	}
	r = s->sandbox.id
		    ? cm_platform_look(cm_platform_of(s->base.provider), s, call, &sandbox, err)
		    : gone(s, err);
	if (r == CM_E_NOT_FOUND)
		cm_platform_session_lose(s);
	if (r < 0)
		return r;
	cm_platform_sandbox_clear(&s->sandbox);
	s->sandbox = sandbox;
	s->is_gone = false;
	return CM_OK;
}

static void note_lost(struct cm_platform_session *s)
{
	cm_provider_note(s->base.provider, "the sandbox of session '%s' was gone: %s", s->base.id,
			 s->has_checkpoint ? "its new one has the files of the last checkpoint"
					   : "it begins anew, without a checkpoint");
	/* nothing of what it was is there */
	if (!s->has_checkpoint)
		s->base.is_new = true;
}

/* It has one that runs: that which it had, else a new one. */
static int bring_up(struct cm_platform_session *s, const struct cm_call *call, struct cm_error *err)
{
	bool was_stopped = s->is_stopped;
	int r = cm_platform_session_look(s, call, err);

	if (r == CM_OK) {
		s->base.was_running = !was_stopped;
		s->is_stopped = false;
		return was_stopped ? cm_platform_keep_save(s, err) : CM_OK;
	}
	if (r != CM_E_NOT_FOUND)
		return r;
	cm_error_clear(err);
	r = provision(s, call, err);
	if (r == CM_OK && !s->base.is_new && !was_stopped)
		note_lost(s);
	return r;
}

/* What this host remembers of it, and what is asked for. */
static int prepare(struct cm_platform_session *s, const struct cm_spec *spec, struct cm_error *err)
{
	int r = s->has_made_name ? CM_E_NOT_FOUND : cm_platform_keep_load(s, err);

	s->base.is_new = r == CM_E_NOT_FOUND;
	if (s->base.is_new)
		cm_error_clear(err);
	else if (r < 0)
		return r;
	return take_spec(s, spec, err);
}

int cm_platform_create(struct cm_provider *base, const struct cm_spec *spec,
		       const struct cm_call *call, struct cm_session **ret, struct cm_error *err)
{
	char temporary[sizeof("tmp-") + CM_PROVIDER_HEX_SIZE] = "tmp-";
	struct cm_platform_session *s = NULL;
	const char *id = spec->session_id;
	CM_AUTO_FD int lock = -1;
	int r = CM_OK;

	if (!id)
		r = cm_provider_random_hex(temporary + strlen("tmp-"), err);
	if (r == CM_OK)
		r = cm_platform_session_new(cm_platform_of(base), id ? id : temporary, &s, err);
	if (r < 0 || !s)
		return r;
	s->has_made_name = !id;
	r = cm_platform_keep_lock(s, call, &lock, err);
	if (r == CM_OK)
		r = prepare(s, spec, err);
	if (r == CM_OK)
		r = bring_up(s, call, err);
	cm_platform_keep_unlock(s, r < 0 && s->base.is_new, &lock);
	if (r < 0)
		cm_platform_release(&s->base);
	else
		*ret = &s->base;
	return r;
}

static int inherit(struct cm_platform_session *s, const struct cm_platform_session *from,
		   const char *checkpoint, struct cm_error *err)
{
	s->seed = cm_strdup(checkpoint);
	s->template_name = cm_strdup(from->template_name);
	s->workdir = cm_strdup(from->workdir);
	if (!s->seed || (from->template_name && !s->template_name) ||
	    (from->workdir && !s->workdir) || cm_strv_copy(&s->env, &from->env) < 0)
		return no_memory(err);
	return CM_OK;
}

int cm_platform_create_clone(const struct cm_platform_session *from, const char *id,
			     const char *checkpoint, const struct cm_call *call,
			     struct cm_session **ret, struct cm_error *err)
{
	struct cm_platform_session *s = NULL;
	CM_AUTO_FD int lock = -1;
	int r = cm_platform_session_new(cm_platform_of(from->base.provider), id, &s, err);

	if (r < 0)
		return r;
	s->base.is_new = true;
	r = cm_platform_keep_lock(s, call, &lock, err);
	if (r == CM_OK)
		r = inherit(s, from, checkpoint, err);
	if (r == CM_OK)
		r = bring_up(s, call, err);
	cm_platform_keep_unlock(s, r < 0, &lock);
	if (r < 0)
		cm_platform_release(&s->base);
	else
		*ret = &s->base;
	return r;
}

int cm_platform_attach(struct cm_provider *base, const char *id, const struct cm_call *call,
		       struct cm_session **ret, struct cm_error *err)
{
	struct cm_platform_session *s = NULL;
	int r = cm_platform_session_new(cm_platform_of(base), id, &s, err);

	if (r < 0)
		return r;
	r = cm_platform_keep_load(s, err);
	/* one of another account is none here */
	if (r == CM_E_EXISTS) {
		if (err)
			err->code = CM_E_NOT_FOUND;
		r = CM_E_NOT_FOUND;
	}
	if (r == CM_OK) {
		r = cm_platform_session_look(s, call, err);
		s->seen_until_ms = cm_clock_mono_ms() + SEEN_MS;
		if (r == CM_E_NOT_FOUND) {
			cm_error_clear(err);
			r = CM_OK;
		}
	}
	if (r < 0)
		cm_platform_release(&s->base);
	else
		*ret = &s->base;
	return r;
}

/* Another client may have given it a new sandbox meanwhile, or removed it. */
int cm_platform_session_reload(struct cm_platform_session *s, struct cm_error *err)
{
	CM_AUTO_FREE char *before = cm_strdup(s->sandbox.id);
	int r = cm_platform_keep_load(s, err);

	if (r == CM_OK && (!before || !s->sandbox.id || strcmp(before, s->sandbox.id) != 0)) {
		cm_platform_lease_drop(s);
		s->is_gone = false;
		s->seen_until_ms = 0;
	}
	return r;
}

int cm_platform_start(struct cm_session *base, const struct cm_call *call, struct cm_error *err)
{
	struct cm_platform_session *s = cm_platform_session_of(base);
	CM_AUTO_FD int lock = -1;
	int r = cm_platform_keep_lock(s, call, &lock, err);

	if (r == CM_OK)
		r = cm_platform_session_reload(s, err);
	return r < 0 ? r : bring_up(s, call, err);
}
