/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The smallest provider that keeps its promises, to be copied: sessions that are names in this process,
 * with labels and nothing to run. README.md beside the vtable says what to do next.
 *
 * It is built and tested with the rest, so that it stays what the vtable asks for. No program offers it.
 */
#include "providers/skeleton/skeleton.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/base/clock.h"

/* What the service knows of a sandbox: here a list, elsewhere its answers. */
struct sandbox {
	struct sandbox *next;
	char id[132];
	struct cm_strv labels;
	bool is_running;
	int64_t created_ms;
};

/* The base first: what is passed around is a pointer to it. */
struct skeleton {
	struct cm_provider base;
	struct sandbox *sandboxes;
	/* of names that are made up */
	unsigned int n_made;
};

/* The one place each where a pointer to the base becomes one to the whole. */
static struct skeleton *of(struct cm_provider *p)
{
	return (struct skeleton *)p;
}

static struct sandbox *find(struct cm_provider *p, const char *id)
{
	struct sandbox *box = of(p)->sandboxes;

	while (box && strcmp(box->id, id) != 0)
		box = box->next;
	return box;
}

/* Variables and addresses are read and checked here; nothing is asked of the service yet. */
static int skeleton_open(const struct cm_provider_config *config, struct cm_provider **ret,
			 struct cm_error *err)
{
	struct skeleton *skeleton = cm_calloc(1, sizeof(*skeleton));

	(void)config;
	if (!skeleton)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	*ret = &skeleton->base;
	return CM_OK;
}

static void skeleton_close(struct cm_provider *p)
{
	struct sandbox *box = of(p)->sandboxes;

	while (box) {
		struct sandbox *next = box->next;

		cm_strv_clear(&box->labels);
		free(box);
		box = next;
	}
	free(of(p));
}

/* Where the account or the plan decides, it is asked here. */
static int skeleton_probe(struct cm_provider *p, const struct cm_call *call, uint32_t *ret_caps,
			  struct cm_error *err)
{
	(void)call;
	(void)err;
	*ret_caps = p->ops->caps;
	return CM_OK;
}

static int new_handle(struct cm_provider *p, const char *id, struct cm_session **ret,
		      struct cm_error *err)
{
	struct cm_session *s = cm_calloc(1, sizeof(*s));

	if (!s)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	s->provider = p;
	(void)snprintf(s->id, sizeof(s->id), "%s", id);
	*ret = s;
	return CM_OK;
}

/* All or nothing: what was made goes again when what comes after it fails. */
static int make(struct cm_provider *p, const char *id, const struct cm_spec *spec,
		struct cm_session **ret, struct cm_error *err)
{
	struct sandbox *box = cm_calloc(1, sizeof(*box));
	int r = box ? cm_strv_copy(&box->labels, &spec->labels) : CM_E_NOMEM;

	if (r == CM_OK)
		r = new_handle(p, id, ret, err);
	else
		(void)cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	if (r < 0) {
		if (box)
			cm_strv_clear(&box->labels);
		free(box);
		return r;
	}
	(void)snprintf(box->id, sizeof(box->id), "%s", id);
	box->is_running = true;
	box->created_ms = cm_clock_real_ms();
	box->next = of(p)->sandboxes;
	of(p)->sandboxes = box;
	(*ret)->is_new = true;
	return CM_OK;
}

static int skeleton_create(struct cm_provider *p, const struct cm_spec *spec,
			   const struct cm_call *call, struct cm_session **ret,
			   struct cm_error *err)
{
	char name[132];
	struct sandbox *box;
	int r;

	(void)call;
	if (spec->session_id)
		(void)snprintf(name, sizeof(name), "%s", spec->session_id);
	else
		(void)snprintf(name, sizeof(name), "tmp-%u", ++of(p)->n_made);
	box = find(p, name);
	if (!box)
		return make(p, name, spec, ret, err);
	r = new_handle(p, name, ret, err);
	if (r < 0)
		return r;
	(*ret)->was_running = box->is_running;
	box->is_running = true;
	return CM_OK;
}

static int not_found(const char *id, struct cm_error *err)
{
	cm_error_set(err, CM_E_NOT_FOUND, 0, "there is no session '%s'", id);
	cm_error_hint(err, "'casemate ls' lists the sessions");
	return CM_E_NOT_FOUND;
}

static int skeleton_attach(struct cm_provider *p, const char *id, const struct cm_call *call,
			   struct cm_session **ret, struct cm_error *err)
{
	const struct sandbox *box = find(p, id);
	int r = box ? new_handle(p, id, ret, err) : not_found(id, err);

	(void)call;
	if (r == CM_OK)
		(*ret)->was_running = box->is_running;
	return r;
}

static int set_running(struct cm_session *s, bool is_running, struct cm_error *err)
{
	struct sandbox *box = find(s->provider, s->id);

	if (!box)
		return not_found(s->id, err);
	box->is_running = is_running;
	return CM_OK;
}

static int skeleton_start(struct cm_session *s, const struct cm_call *call, struct cm_error *err)
{
	(void)call;
	return set_running(s, true, err);
}

static int skeleton_stop(struct cm_session *s, const struct cm_call *call, struct cm_error *err)
{
	(void)call;
	return set_running(s, false, err);
}

/* What is gone already is what was wanted. */
static int skeleton_destroy(struct cm_session *s, const struct cm_call *call, struct cm_error *err)
{
	struct sandbox **at = &of(s->provider)->sandboxes;
	struct sandbox *box = find(s->provider, s->id);

	(void)call;
	(void)err;
	if (!box)
		return CM_OK;
	while (*at != box)
		at = &(*at)->next;
	*at = box->next;
	cm_strv_clear(&box->labels);
	free(box);
	return CM_OK;
}

static void skeleton_release(struct cm_session *s)
{
	free(s);
}

static int describe(const struct sandbox *box, struct cm_session_info *ret, struct cm_error *err)
{
	*ret = (struct cm_session_info){
		.id = cm_strdup(box->id),
		.state = box->is_running ? CM_SESSION_RUNNING : CM_SESSION_STOPPED,
		.created_ms = box->created_ms,
	};
	if (ret->id && cm_strv_copy(&ret->labels, &box->labels) == CM_OK)
		return CM_OK;
	cm_session_info_clear(ret);
	return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
}

static int skeleton_info(struct cm_session *s, const struct cm_call *call,
			 struct cm_session_info *ret, struct cm_error *err)
{
	const struct sandbox *box = find(s->provider, s->id);

	(void)call;
	return box ? describe(box, ret, err) : not_found(s->id, err);
}

static int skeleton_list(struct cm_provider *p, const struct cm_call *call,
			 int (*each)(void *data, const struct cm_session_info *info), void *data,
			 struct cm_error *err)
{
	int r = CM_OK;

	(void)call;
	for (const struct sandbox *box = of(p)->sandboxes; r == CM_OK && box; box = box->next) {
		struct cm_session_info info;

		r = describe(box, &info, err);
		if (r < 0)
			break;
		r = each(data, &info);
		cm_session_info_clear(&info);
	}
	return r;
}

/* A bit is set when it holds, and not before: what is missing is refused by name, before anything is
 * made. */
const struct cm_provider_ops cm_skeleton_ops = {
	.abi = CM_PROVIDER_ABI,
	.name = "skeleton",
	.caps = CM_CAP_NETWORK_NONE | CM_CAP_LABELS,
	.open = skeleton_open,
	.close = skeleton_close,
	.probe = skeleton_probe,
	.session_create = skeleton_create,
	.session_attach = skeleton_attach,
	.session_start = skeleton_start,
	.session_stop = skeleton_stop,
	.session_destroy = skeleton_destroy,
	.session_release = skeleton_release,
	.session_info = skeleton_info,
	.session_list = skeleton_list,
};
