/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session that exists keeps what it was made with, and an option that contradicts that is refused.
 * What configuration files say is for sessions yet to be made: it contradicts nothing.
 */
#include <string.h>

#include "providers/e2b/e2b_internal.h"
#include "runtime/base/fd.h"
#include "runtime/spec/keys.h"

static int contradiction(const char *id, const char *option, const char *has, struct cm_error *err)
{
	(void)cm_error_set(err, CM_E_EXISTS, 0, "session '%s' was made with another --%s: '%s'", id,
			   option, has);
	cm_error_hint(err,
		      "leave --%s out: a session's is set when it is made; 'casemate start NAME' "
		      "makes another one",
		      option);
	return CM_E_EXISTS;
}

int cm_e2b_adopt_check(const char *id, const struct cm_spec *spec, const struct cm_e2b_found *found,
		       struct cm_error *err)
{
	if (cm_key_is_asked(CM_KEY_USER, spec) && (spec->user == CM_USER_ROOT) != found->is_root)
		return contradiction(id, "user", found->is_root ? "root" : "user", err);
	return CM_OK;
}

static bool is(const char *name, const char *asked)
{
	return name && strcmp(name, asked) == 0;
}

/* A template has more names than a list tells. */
static int check_template(struct cm_e2b_session *s, const char *asked,
			  const struct cm_e2b_found *found, const struct cm_call *call,
			  struct cm_error *err)
{
	const char *has = found->alias ? found->alias : found->template_id;
	CM_AUTO_FREE char *id = NULL;
	bool is_there = false;
	int r;

	if (is(found->template_name, asked) || is(found->alias, asked) ||
	    is(found->template_id, asked))
		return CM_OK;
	r = cm_e2b_template_look_up(cm_e2b_of(&s->base), asked, call, &id, &is_there, err);
	if (r < 0)
		return cm_e2b_no_absence(r, err);
	if (id && is(found->template_id, id))
		return CM_OK;
	if (found->template_name)
		has = found->template_name;
	return contradiction(s->base.id, "template", has ? has : "", err);
}

static int check_network(struct cm_e2b_session *s, enum cm_network asked,
			 const struct cm_e2b_found *found, const struct cm_call *call,
			 struct cm_error *err)
{
	enum cm_network has = CM_NETWORK_NONE;
	int r = cm_e2b_network_of(cm_e2b_of(&s->base), found->sandbox_id, call, &has, err);

	if (r < 0 || has == asked)
		return r;
	return contradiction(s->base.id, "network", cm_network_name(has), err);
}

int cm_e2b_adopt(struct cm_e2b_session *s, const struct cm_spec *spec,
		 const struct cm_e2b_found *found, const struct cm_call *call, struct cm_error *err)
{
	int r = cm_e2b_adopt_check(s->base.id, spec, found, err);

	if (r == CM_OK && cm_key_is_asked(CM_KEY_TEMPLATE, spec) && spec->template_name)
		r = check_template(s, spec->template_name, found, call, err);
	if (r == CM_OK && cm_key_is_asked(CM_KEY_NETWORK, spec))
		r = check_network(s, spec->network, found, call, err);
	return r;
}
