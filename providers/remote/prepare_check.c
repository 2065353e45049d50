/* SPDX-License-Identifier: Apache-2.0 */
/* What is refused before anything is done. */
#include <string.h>

#include "providers/remote/prepare_internal.h"
#include "runtime/base/fd.h"
#include "runtime/base/gitref.h"
#include "runtime/base/text.h"

static int refuse(struct cm_error *err, int code, const char *msg, const char *hint)
{
	(void)cm_error_set(err, code, 0, "%s", msg);
	cm_error_hint(err, "%s", hint);
	return code;
}

static int check_kind(const struct cm_giturl *url, struct cm_error *err)
{
	switch (url->kind) {
	case CM_GITURL_HTTPS:
	case CM_GITURL_HTTP:
	case CM_GITURL_GIT:
		return CM_OK;
	case CM_GITURL_SSH:
		return refuse(
			err, CM_E_UNSUPPORTED,
			"a remote session cannot check out a repository by ssh",
			"use its https address, with a token in CASEMATE_GIT_TOKEN: the key of "
			"ssh would have to be in the sandbox, which could keep it");
	case CM_GITURL_PATH:
	case CM_GITURL_FILE:
		break;
	}
	return refuse(
		err, CM_E_UNSUPPORTED,
		"a remote session cannot check out a repository of this host",
		"give the https address that it was pushed to, or copy it with 'casemate cp'");
}

/* Of a ref that is written in full or in part: nothing that git takes for something else. */
static bool is_ref(const char *text)
{
	static const char *const prefixes[] = { "refs/heads/", "refs/tags/" };

	for (size_t i = 0; i < CM_ARRAY_SIZE(prefixes); i++) {
		if (cm_text_has_prefix(text, prefixes[i]))
			return cm_gitref_is_branch(text + strlen(prefixes[i]));
	}
	return cm_gitref_is_branch(text);
}

static int check_names(const struct cm_spec *spec, struct cm_error *err)
{
	const struct {
		const char *option;
		const char *value;
	} refs[] = { { "--ref", spec->ref }, { "--from", spec->base } };

	for (size_t i = 0; i < CM_ARRAY_SIZE(refs); i++) {
		if (!refs[i].value || is_ref(refs[i].value))
			continue;
		(void)cm_error_set(err, CM_E_INVALID, 0, "%s '%.100s' is no name of a ref",
				   refs[i].option, refs[i].value);
		cm_error_hint(err, "name a branch, a tag or a commit");
		return CM_E_INVALID;
	}
	if (spec->branch && !cm_gitref_is_branch(spec->branch)) {
		(void)cm_error_set(err, CM_E_INVALID, 0, "a branch cannot be called '%.100s'",
				   spec->branch);
		cm_error_hint(err, "give --branch another name");
		return CM_E_INVALID;
	}
	return CM_OK;
}

static int check_credential(const struct cm_prep *p, struct cm_error *err)
{
	const char *user;
	const char *secret;

	if (p->config->git_helper == CM_GIT_HELPER_FIRST)
		return refuse(
			err, CM_E_UNSUPPORTED,
			"credential helpers of this host are not asked for a remote session",
			"give the token itself: CASEMATE_GIT_TOKEN, or --git-credential file:PATH");
	if (!cm_config_git_credential(p->config, p->spec, &user, &secret) ||
	    cm_giturl_is_safe(&p->url))
		return CM_OK;
	return refuse(err, CM_E_DENIED,
		      "over http others could read the credential of the repository", "use https");
}

int cm_prep_check_repository(const struct cm_prep *p, struct cm_error *err)
{
	int r = check_kind(&p->url, err);

	if (r == CM_OK)
		r = check_names(p->spec, err);
	if (r == CM_OK)
		r = check_credential(p, err);
	return r;
}

int cm_prep_check_secrets(const struct cm_prep *p, struct cm_error *err)
{
	for (size_t i = 0; i < p->spec->setup_secrets.n; i++) {
		const char *name = p->spec->setup_secrets.v[i];

		if (cm_strv_env_get(&p->config->setup_secrets, name))
			continue;
		(void)cm_error_set(err, CM_E_NOT_FOUND, 0,
				   "the variable '%s' of --setup-secret is not set", name);
		cm_error_hint(err, "export it: its value is kept nowhere, so each setup needs it");
		return CM_E_NOT_FOUND;
	}
	return CM_OK;
}

bool cm_prep_can_switch(const struct cm_provider *p)
{
	return p->ops->session_network != NULL;
}

static int check_network(const struct cm_provider *p, const struct cm_spec *spec,
			 struct cm_error *err)
{
	bool needs = (spec->repo && spec->network == CM_NETWORK_NONE) ||
		     (spec->setup.n > 0 && spec->setup_network != 0 &&
		      spec->setup_network != spec->network);

	if (!needs || cm_prep_can_switch(p))
		return CM_OK;
	(void)cm_error_set(
		err, CM_E_UNSUPPORTED, 0,
		"sessions of provider '%s' cannot change their network: this one has none "
		"for its checkout or setup",
		p->ops->name);
	cm_error_hint(err, "begin the session with --network internet");
	return CM_E_UNSUPPORTED;
}

int cm_prepare_check(const struct cm_provider *p, const struct cm_prepare *prepare,
		     struct cm_error *err)
{
	const struct cm_spec *spec = prepare->spec;
	struct cm_prep prep = { .prepare = prepare, .spec = spec, .config = prepare->config };
	int r = CM_OK;

	if (spec->repo)
		r = cm_giturl_parse(spec->repo, &prep.url, err);
	if (r == CM_OK && spec->repo)
		r = cm_prep_check_repository(&prep, err);
	cm_giturl_clear(&prep.url);
	if (r == CM_OK && spec->setup.n > 0)
		r = cm_prep_check_secrets(&prep, err);
	return r == CM_OK ? check_network(p, spec, err) : r;
}
