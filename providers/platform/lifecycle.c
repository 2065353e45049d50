/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: stopped, removed, shown, copied. */
#include <stdlib.h>
#include <string.h>

#include "providers/platform/keep.h"
#include "providers/platform/sessions.h"
#include "runtime/base/fd.h"

/* how often a capture is asked for until it is of all there is */
#define STOP_CAPTURES 3

static struct cm_platform *platform_of(const struct cm_platform_session *s)
{
	return cm_platform_of(s->base.provider);
}

/* --- its files kept -------------------------------------------------------------------------- */

/*
 * *ret: the checkpoint's name, the caller's; NULL: nothing was captured. *ret_is_whole: of what is there now,
 * and not by a capture that had begun before.
 */
static int capture_only(struct cm_platform_session *s, const struct cm_call *call, char **ret,
			bool *ret_is_whole, struct cm_error *err)
{
	struct cm_platform_checkpoint checkpoint = { 0 };
	int r;

	*ret = NULL;
	*ret_is_whole = false;
	if (!cm_platform_is_running(s))
		return CM_OK;
	r = cm_platform_capture(platform_of(s), s, call, &checkpoint, err);
	if (r < 0)
		return r;
	if (checkpoint.status == CM_PLATFORM_SKIPPED) {
		free(checkpoint.name);
		cm_platform_session_lose(s);
		return CM_OK;
	}
	s->has_checkpoint = true;
	*ret_is_whole = checkpoint.status == CM_PLATFORM_CAPTURED;
	/* a service that does not say calls it by what it was given */
	*ret = checkpoint.name ? checkpoint.name : cm_strdup(s->base.id);
	return *ret ? CM_OK : cm_error_set(err, CM_E_NOMEM, 0, "no memory for a checkpoint");
}

static int capture(struct cm_platform_session *s, const struct cm_call *call, char **ret,
		   struct cm_error *err)
{
	bool is_whole = false;
	int r = capture_only(s, call, ret, &is_whole, err);

	if (r == CM_OK && *ret)
		r = cm_platform_keep_checkpoint(s, call, err);
	if (r < 0) {
		free(*ret);
		*ret = NULL;
	}
	return r;
}

/*
 * The platform has no stop: a sandbox costs until its idle time is over. Its files are in the checkpoint,
 * with which the next start begins, so that it need not wait for that. A failure is no harm: it costs on.
 */
static void end_sandbox(struct cm_platform_session *s, bool is_whole, const struct cm_call *call)
{
	struct cm_platform *p = platform_of(s);
	struct cm_error why = CM_ERROR_INIT;

	if (p->settings.is_e2b)
		cm_error_set(&why, CM_E_UNSUPPORTED, 0, "one of e2b is not more than its sandbox");
	else if (!is_whole)
		cm_error_set(&why, CM_E_BUSY, 0, "its checkpoint was begun by another client");
	else if (cm_platform_delete(p, s, call, &why) == CM_OK) {
		cm_platform_session_lose(s);
		return;
	}
	cm_provider_note(&p->base,
			 "the sandbox of session '%s' still runs, until the platform's idle time "
			 "ends it: %s",
			 s->base.id, why.msg);
}

static int stop(struct cm_platform_session *s, const struct cm_call *call, struct cm_error *err)
{
	CM_AUTO_FREE char *name = NULL;
	bool is_whole = false;
	int r;

	if (s->is_stopped)
		return CM_OK;
	/* one that had begun before may lack what was written since */
	for (unsigned int i = 0; i < STOP_CAPTURES && !is_whole; i++) {
		free(name);
		r = capture_only(s, call, &name, &is_whole, err);
		if (r < 0)
			return r;
		if (!name)
			break;
	}
	if (name)
		end_sandbox(s, is_whole, call);
	else
		cm_provider_note(s->base.provider,
				 "no checkpoint of session '%s' was made: its sandbox does not run "
				 "any more, and the files are those of the last checkpoint",
				 s->base.id);
	cm_platform_lease_drop(s);
	s->is_stopped = true;
	return cm_platform_keep_save(s, err);
}

int cm_platform_stop(struct cm_session *base, const struct cm_call *call, struct cm_error *err)
{
	struct cm_platform_session *s = cm_platform_session_of(base);
	CM_AUTO_FD int lock = -1;
	int r = cm_platform_keep_lock(s, call, &lock, err);

	if (r == CM_OK)
		r = cm_platform_session_reload(s, err);
	return r < 0 ? r : stop(s, call, err);
}

static int remove_sandbox(struct cm_platform_session *s, const struct cm_call *call,
			  struct cm_error *err)
{
	struct cm_platform *p = platform_of(s);
	struct cm_error why = CM_ERROR_INIT;
	bool was_there = false;
	int r = CM_OK;

	/* by the sandbox's id, so that it goes first */
	if (!p->settings.is_e2b)
		r = cm_platform_forget(p, s, call, &was_there, &why);
	if (r == CM_E_CANCELLED || r == CM_E_TIMEOUT)
		return cm_error_set(err, r, why.sys_errno, "%s", why.msg);
	if (r < 0)
		cm_provider_note(&p->base, "the checkpoint of session '%s' was left: %s",
				 s->base.id, why.msg);
	else if (!p->settings.is_e2b && s->has_checkpoint && !was_there)
		cm_provider_note(&p->base,
				 "the platform did not find the checkpoint of session '%s': it may "
				 "have been left there",
				 s->base.id);
	return cm_platform_delete(p, s, call, err);
}

int cm_platform_destroy(struct cm_session *base, const struct cm_call *call, struct cm_error *err)
{
	struct cm_platform_session *s = cm_platform_session_of(base);
	CM_AUTO_FD int lock = -1;
	int r = cm_platform_keep_lock(s, call, &lock, err);

	if (r == CM_OK && s->sandbox.id)
		r = remove_sandbox(s, call, err);
	if (r < 0)
		return r;
	cm_platform_session_lose(s);
	r = cm_platform_keep_remove(s, err);
	cm_platform_keep_unlock(s, true, &lock);
	return r;
}

/* --- shown ----------------------------------------------------------------------------------- */

static int copy(const char *from, char **to)
{
	*to = cm_strdup(from);
	return from && !*to ? CM_E_NOMEM : CM_OK;
}

/* As the platform says it is. */
static int look(struct cm_platform_session *s, const struct cm_call *call,
		struct cm_session_info *ret, struct cm_error *err)
{
	int r = cm_platform_session_look(s, call, err);

	if (r < 0 && r != CM_E_NOT_FOUND)
		return r;
	/* what has a checkpoint comes back with it */
	ret->state = s->has_checkpoint ? CM_SESSION_STOPPED : CM_SESSION_FAILED;
	if (r == CM_OK)
		ret->state = s->is_stopped ? CM_SESSION_STOPPED : CM_SESSION_RUNNING;
	if (r == CM_OK && s->sandbox.created_ms != 0)
		ret->created_ms = s->sandbox.created_ms;
	return CM_OK;
}

static int describe(struct cm_platform_session *s, const struct cm_call *call,
		    struct cm_session_info *ret, struct cm_error *err)
{
	struct cm_session_info info = { .created_ms = s->created_ms };
	int r = look(s, call, &info, err);

	if (r == CM_OK)
		r = cm_platform_keep_info(s, &info, err);
	if (r == CM_OK &&
	    (copy(s->base.id, &info.id) < 0 || copy(s->sandbox.id, &info.provider_id) < 0 ||
	     copy(s->template_name, &info.template_name) < 0 ||
	     copy(s->workdir, &info.workdir) < 0))
		r = cm_error_set(err, CM_E_NOMEM, 0, "no memory for a session");
	if (r == CM_OK)
		*ret = info;
	else
		cm_session_info_clear(&info);
	return r;
}

int cm_platform_info(struct cm_session *base, const struct cm_call *call,
		     struct cm_session_info *ret, struct cm_error *err)
{
	struct cm_platform_session *s = cm_platform_session_of(base);
	struct cm_session_info info = { 0 };
	int r = describe(s, call, &info, err);

	if (r < 0)
		return r;
	if (info.state != CM_SESSION_FAILED) {
		cm_error_clear(err);
		*ret = info;
		return CM_OK;
	}
	cm_session_info_clear(&info);
	return cm_error_set(err, CM_E_NOT_FOUND, 0,
			    "the sandbox of session '%s' is gone, and it has no checkpoint",
			    base->id);
}

static int list_one(struct cm_platform *p, const char *id, const struct cm_call *call,
		    int (*each)(void *data, const struct cm_session_info *info), void *data,
		    struct cm_error *err)
{
	struct cm_session_info info = { 0 };
	struct cm_session *s = NULL;
	int r = cm_platform_attach(&p->base, id, call, &s, err);

	/* somebody has just removed it */
	if (r == CM_E_NOT_FOUND)
		return CM_OK;
	if (r < 0)
		return r;
	/* one that has failed is shown: how else would it be removed */
	r = describe(cm_platform_session_of(s), call, &info, err);
	cm_error_clear(r == CM_OK ? err : NULL);
	if (r == CM_OK)
		r = each(data, &info);
	cm_session_info_clear(&info);
	cm_platform_release(s);
	return r;
}

int cm_platform_list(struct cm_provider *base, const struct cm_call *call,
		     int (*each)(void *data, const struct cm_session_info *info), void *data,
		     struct cm_error *err)
{
	struct cm_platform *p = cm_platform_of(base);
	CM_AUTO_STRV struct cm_strv ids = { 0 };
	int r = cm_platform_keep_list(p, &ids, err);

	for (size_t i = 0; i < ids.n && r == CM_OK; i++)
		r = list_one(p, ids.v[i], call, each, data, err);
	return r;
}

/* --- copied ---------------------------------------------------------------------------------- */

static int capture_now(struct cm_platform_session *s, const char *what, const struct cm_call *call,
		       char **ret, struct cm_error *err)
{
	int r = capture(s, call, ret, err);

	if (r < 0 || *ret)
		return r;
	cm_error_set(err, CM_E_NOT_FOUND, 0, "cannot %s session '%s': its sandbox does not run",
		     what, s->base.id);
	cm_error_hint(err, "start it with 'casemate start %s'", s->base.id);
	return CM_E_NOT_FOUND;
}

int cm_platform_snapshot(struct cm_session *base, const char *name, const struct cm_call *call,
			 char **ret, struct cm_error *err)
{
	struct cm_platform_session *s = cm_platform_session_of(base);
	CM_AUTO_FREE char *checkpoint = NULL;
	int r;

	if (name && strcmp(name, s->base.id) != 0) {
		cm_error_set(err, CM_E_UNSUPPORTED, 0,
			     "a checkpoint of the platform has the name of its session");
		cm_error_hint(err, "leave the name out, or clone the session to '%s'", name);
		return CM_E_UNSUPPORTED;
	}
	r = capture_now(s, "take a snapshot of", call, &checkpoint, err);
	if (r < 0)
		return r;
	*ret = cm_asprintf(CM_PLATFORM_CHECKPOINT_PREFIX "%s", checkpoint);
	return *ret ? CM_OK : cm_error_set(err, CM_E_NOMEM, 0, "no memory for a checkpoint");
}

static int must_be_new(struct cm_platform *p, const char *id, struct cm_error *err)
{
	struct cm_platform_session *s = NULL;
	int r = cm_platform_session_new(p, id, &s, err);

	if (r < 0)
		return r;
	r = cm_platform_keep_load(s, err);
	cm_platform_release(&s->base);
	if (r == CM_E_NOT_FOUND)
		return CM_OK;
	return r < 0 ? r : cm_error_set(err, CM_E_EXISTS, 0, "there is a session '%s' already", id);
}

int cm_platform_clone(struct cm_session *base, const char *id, const struct cm_call *call,
		      struct cm_session **ret, struct cm_error *err)
{
	struct cm_platform_session *s = cm_platform_session_of(base);
	CM_AUTO_FREE char *checkpoint = NULL;
	int r = must_be_new(platform_of(s), id, err);

	if (r == CM_OK)
		r = capture_now(s, "clone", call, &checkpoint, err);
	if (r < 0)
		return r;
	return cm_platform_create_clone(s, id, checkpoint, call, ret, err);
}
