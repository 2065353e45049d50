/* SPDX-License-Identifier: Apache-2.0 */
/* Layers onto a spec, and what must hold when all are in place. */
#include "runtime/spec/merge.h"

#include <string.h>

#include "runtime/base/fd.h"
#include "runtime/base/text.h"
#include "runtime/spec/format.h"

#define SHELL_PATH "/bin/sh"

void cm_origins_clear(struct cm_origins *origins)
{
	for (size_t i = 0; i < CM_ARRAY_SIZE(origins->of); i++)
		cm_strv_clear(&origins->of[i]);
}

void cm_merge_clear(struct cm_merge *m)
{
	cm_strv_clear(&m->notes);
}

/* Across layers the later of the two wins; in one nobody can say which was meant. */
static int check_layer(const struct cm_layer *layer, struct cm_error *err)
{
	static const struct {
		enum cm_key a;
		enum cm_key b;
		const char *hint;
	} pairs[] = {
		{ CM_KEY_WORKSPACE, CM_KEY_REPO,
		  "--workspace works on a tree as it is, --repo on a new checkout" },
		{ CM_KEY_REF, CM_KEY_PR, "--ref names what to check out, and so does --pr" },
	};
	int r;

	for (size_t i = 0; i < CM_ARRAY_SIZE(pairs); i++) {
		const struct cm_setting *a = cm_layer_find(layer, pairs[i].a);
		const struct cm_setting *b = cm_layer_find(layer, pairs[i].b);

		if (!a || !b)
			continue;
		r = cm_error_set(err, CM_E_INVALID, 0, "%s and %s contradict each other", a->what,
				 b->what);
		cm_error_hint(err, "%s", pairs[i].hint);
		if (b->place)
			cm_error_wrap(err, "%s", b->place);
		return r;
	}
	return CM_OK;
}

static int set_command(struct cm_spec *spec, const struct cm_layer *layer, struct cm_error *err)
{
	const struct cm_setting *text = cm_layer_find(layer, CM_KEY_COMMAND);
	int r;

	if (!text && layer->argv.n == 0)
		return CM_OK;
	if (text && layer->argv.n > 0) {
		r = cm_error_set(err, CM_E_INVALID, 0,
				 "-c and the command '%.100s' contradict each other",
				 layer->argv.v[0]);
		cm_error_hint(err, "put all of it into -c's text, in quotes");
		return r;
	}
	cm_strv_clear(&spec->argv);
	if (!text)
		r = cm_strv_copy(&spec->argv, &layer->argv);
	else if (cm_strv_add(&spec->argv, SHELL_PATH) != CM_OK ||
		 cm_strv_add(&spec->argv, "-c") != CM_OK ||
		 cm_strv_add(&spec->argv, text->value) != CM_OK)
		r = CM_E_NOMEM;
	else
		r = CM_OK;
	return r == CM_OK ? CM_OK : cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
}

int cm_merge_layer(struct cm_merge *m, const struct cm_layer *layer, struct cm_error *err)
{
	size_t n_volumes = m->spec->n_volumes;
	int r = check_layer(layer, err);

	for (size_t i = 0; r == CM_OK && i < layer->n; i++) {
		struct cm_setting setting = layer->settings[i];

		setting.is_asked = m->is_asked;
		r = cm_spec_apply(m->spec, m->origins, &setting, layer->base, m->caller, n_volumes,
				  err);
	}
	return r == CM_OK ? set_command(m->spec, layer, err) : r;
}

/* "--ref", or "'ref' (FILE:LINE)" when a file says it. */
static void describe(const struct cm_merge *m, enum cm_key key, struct cm_buf *out)
{
	const struct cm_strv *of = m->origins ? &m->origins->of[key] : NULL;
	const char *origin = of && of->n > 0 ? of->v[0] : NULL;

	if (!origin || cm_text_has_prefix(origin, "--"))
		cm_buf_printf(out, "--%s", cm_key_info(key)->name);
	else
		cm_buf_printf(out, "'%s' (%s)", cm_key_info(key)->name, origin);
}

static int contradiction(const struct cm_merge *m, enum cm_key key, const char *text,
			 const char *hint, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf who = { 0 };
	int r;

	cm_buf_init(&who, CM_ERROR_MSG_SIZE);
	describe(m, key, &who);
	r = cm_error_set(err, CM_E_INVALID, 0, "%s %s",
			 who.data ? who.data : cm_key_info(key)->name, text);
	cm_error_hint(err, "%s", hint);
	return r;
}

/* Does a file say it, for whatever session is made with it? */
static bool is_only_preferred(const struct cm_merge *m, enum cm_key key)
{
	const struct cm_strv *of = m->origins ? &m->origins->of[key] : NULL;

	return of && of->n > 0 && !cm_text_has_prefix(of->v[0], "--");
}

/* How it is fetched is for whatever is checked out, and no mistake in a file where nothing is. */
static bool is_of_fetch(enum cm_key key)
{
	return key == CM_KEY_DEPTH || key == CM_KEY_LFS || key == CM_KEY_FILTER;
}

/* Does it ask for something of a checkout? */
static bool is_given(const struct cm_spec *spec, enum cm_key key)
{
	if (key == CM_KEY_LFS)
		return spec->has_lfs;
	if (key == CM_KEY_FILTER)
		return spec->filter == CM_FILTER_BLOB_NONE;
	return cm_key_count_values(cm_key_info(key), spec) > 0;
}

static int check_checkout(const struct cm_merge *m, struct cm_error *err)
{
	static const enum cm_key keys[] = { CM_KEY_REF,	  CM_KEY_PR,  CM_KEY_BRANCH, CM_KEY_FROM,
					    CM_KEY_DEPTH, CM_KEY_LFS, CM_KEY_SPARSE, CM_KEY_FILTER };
	const struct cm_spec *spec = m->spec;

	for (size_t i = 0; i < CM_ARRAY_SIZE(keys); i++) {
		if (spec->workspace_kind != CM_WORKSPACE_REPO && !m->is_of_session &&
		    is_given(spec, keys[i]) &&
		    !(is_of_fetch(keys[i]) && is_only_preferred(m, keys[i])))
			return contradiction(m, keys[i], "needs --repo",
					     "name the repository with --repo URL", err);
	}
	if (spec->filter == CM_FILTER_BLOB_NONE && spec->has_lfs)
		return contradiction(m, CM_KEY_FILTER, "and --lfs contradict each other",
				     "of a repository with Git LFS the large files are not among "
				     "its objects: leave --filter out",
				     err);
	if (spec->base && !spec->branch)
		return contradiction(m, CM_KEY_FROM, "needs --branch",
				     "--ref checks out what exists; --branch NAME makes a branch",
				     err);
	if (spec->base && (spec->ref || spec->pr))
		return contradiction(m, CM_KEY_FROM,
				     spec->ref ? "and --ref contradict each other"
					       : "and --pr contradict each other",
				     "without --from the branch begins at what they name", err);
	return CM_OK;
}

/* A temporary session ends with its command, so these would do nothing. */
static int check_session_times(const struct cm_merge *m, struct cm_error *err)
{
	static const enum cm_key keys[] = { CM_KEY_IDLE_TIMEOUT, CM_KEY_LIFETIME };

	for (size_t i = 0; i < CM_ARRAY_SIZE(keys) && !m->spec->session_id; i++) {
		const struct cm_limit *limit = cm_key_field_const(cm_key_info(keys[i]), m->spec);

		if (limit->is_set && limit->value != CM_UNLIMITED && !is_only_preferred(m, keys[i]))
			return contradiction(m, keys[i], "needs --session",
					     "a temporary session ends with its command; "
					     "--timeout DURATION ends that",
					     err);
	}
	return CM_OK;
}

/* Only a command line's address has one; see cm_apply_repo. */
static int note_password(struct cm_merge *m, struct cm_error *err)
{
	if (!m->spec->repo_secret)
		return CM_OK;
	if (cm_strv_add(&m->notes,
			"--repo has a password, and other users of this host can read "
			"command lines; the variable CASEMATE_GIT_TOKEN is not shown") != CM_OK)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	return CM_OK;
}

int cm_merge_check(struct cm_merge *m, struct cm_error *err)
{
	const struct cm_spec *spec = m->spec;
	int r;

	r = check_checkout(m, err);
	if (r == CM_OK)
		r = check_session_times(m, err);
	if (r != CM_OK)
		return r;
	if (spec->setup.n > 0 && spec->workspace_kind != CM_WORKSPACE_REPO && !spec->session_id)
		return contradiction(m, CM_KEY_SETUP, "needs --repo or --session",
				     "without them put the setup into the command: -c 'npm ci && "
				     "npm test'",
				     err);
	if (spec->teardown.n > 0 && spec->workspace_kind != CM_WORKSPACE_REPO && !spec->session_id)
		return contradiction(m, CM_KEY_TEARDOWN, "needs --repo or --session",
				     "without them put it into the command: -c 'npm test; "
				     "./clean-up'",
				     err);
	if (spec->setup_secrets.n > 0 && spec->setup.n == 0)
		return contradiction(m, CM_KEY_SETUP_SECRET, "needs --setup",
				     "name the commands with --setup CMD: they alone get it", err);
	if (spec->is_setup_again && spec->setup.n == 0)
		return contradiction(m, CM_KEY_SETUP_AGAIN, "needs --setup",
				     "name the commands with --setup CMD: a session does not keep "
				     "them",
				     err);
	if (spec->is_json && spec->tty == CM_YES)
		return contradiction(m, CM_KEY_JSON, "and a terminal (--tty) contradict each other",
				     "--result FILE gives the same object beside live output", err);
	return note_password(m, err);
}

void cm_merge_finish(struct cm_merge *m)
{
	struct cm_spec *spec = m->spec;

	if (spec->is_read_only) {
		spec->is_workspace_read_only = true;
		for (size_t i = 0; i < spec->n_volumes; i++)
			spec->volumes[i].is_read_only = true;
	}
	/* a memory limit that swap gets around is none; not named, so not worth a refusal */
	if (!spec->limits.swap.is_set) {
		spec->limits.swap.value = spec->limits.memory.is_set ? 0 : CM_UNLIMITED;
		spec->limits.swap.is_optional = true;
	}
}
