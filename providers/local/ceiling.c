/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ceilings on sessions that exist. A session was made below the ceilings of then, and is recorded so;
 * what a start makes of it is below those of now. A jail that runs cannot be changed: where it has
 * more than is allowed now, it takes no more commands.
 */
#include <stdio.h>

#include "providers/local/local_internal.h"
#include "runtime/base/fd.h"
#include "runtime/spec/merge.h"

#define NAME_SIZE 96

/* The top of a repository that the session works in; NULL: there is none, or not yet. */
static const char *tree_of(const struct cm_local *l, const struct cm_spec *work)
{
	if (work->workspace_kind == CM_WORKSPACE_DIR)
		return work->workspace;
	if (work->workspace_kind == CM_WORKSPACE_REPO && l->session.record.is_checkout_done)
		return l->session.record.checkout;
	/* the session's own directory is nobody's but the command's */
	return NULL;
}

/*
 * A checkout that was just made goes when the start fails, and its path says nothing then. NULL: the
 * path will do.
 */
static const char *name_of(const struct cm_local *l, const char *tree, char buf[NAME_SIZE])
{
	if (!l->is_new || l->checkout_commit[0] == '\0' || tree != l->session.record.checkout)
		return NULL;
	(void)snprintf(buf, NAME_SIZE,
		       "'" CM_CONFIG_REPOSITORY_FILE "' of the repository (commit %.12s)",
		       l->checkout_commit);
	return buf;
}

int cm_local_tighten(const struct cm_local *l, struct cm_spec *spec, const struct cm_spec *work,
		     struct cm_origins *origins, struct cm_strv *notes, struct cm_error *err)
{
	const struct cm_caller caller = {
		.cwd = l->config->cwd,
		.home = l->config->home,
		.env = &l->config->env,
	};
	struct cm_merge m = { .spec = spec, .origins = origins, .caller = &caller };
	const char *tree = tree_of(l, work);
	char name[NAME_SIZE];
	int r = cm_merge_ceiling(&m, &l->config->system.ceiling, false, err);

	if (r == CM_OK)
		cm_merge_finish(&m);
	if (r == CM_OK && tree)
		r = cm_config_repository(tree, name_of(l, tree, name), &m, err);
	if (r == CM_OK && notes && cm_strv_copy(notes, &m.notes) != CM_OK)
		r = cm_error_set(err, CM_E_NOMEM, 0, "no memory for the session");
	cm_merge_clear(&m);
	return r;
}

/* The first key, from `from` on, that a session keeps and a ceiling has changed; or CM_KEY_COUNT. */
static unsigned int find_changed(const struct cm_origins *origins, unsigned int from)
{
	while (from < CM_KEY_COUNT &&
	       (origins->of[from].n == 0 || !cm_local_keeps((enum cm_key)from)))
		from++;
	return from;
}

static void tell_change(struct cm_local *l, const struct cm_key_info *info,
			const struct cm_spec *was, const char *who)
{
	CM_AUTO_BUF struct cm_buf line = { 0 };

	cm_buf_init(&line, 65536);
	cm_buf_printf(&line, "session '%s' was made with --%s '", l->session.record.id, info->name);
	cm_local_describe(info, was, &line);
	cm_buf_printf(&line, "'; %s: it starts with '", who);
	cm_local_describe(info, &l->spec, &line);
	cm_buf_puts(&line, "'");
	if (cm_buf_status(&line) == CM_OK)
		cm_local_note(l, line.data);
}

static void tell(struct cm_local *l, const struct cm_spec *was, const struct cm_origins *origins,
		 const struct cm_strv *notes)
{
	for (size_t i = 0; i < notes->n; i++)
		cm_local_note(l, notes->v[i]);
	/* what a new one was asked for with was tightened before without a word, too */
	if (l->is_new)
		return;
	for (unsigned int key = find_changed(origins, 0); key < CM_KEY_COUNT;
	     key = find_changed(origins, key + 1))
		tell_change(l, cm_key_info((enum cm_key)key), was, origins->of[key].v[0]);
}

int cm_local_bound(struct cm_local *l, struct cm_error *err)
{
	CM_AUTO_ORIGINS struct cm_origins origins = { 0 };
	CM_AUTO_STRV struct cm_strv notes = { 0 };
	struct cm_spec was;
	int r;

	if (cm_spec_copy(&was, &l->spec) != CM_OK)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the session");
	r = cm_local_tighten(l, &l->spec, &was, &origins, &notes, err);
	if (r == CM_OK)
		tell(l, &was, &origins, &notes);
	cm_spec_clear(&was);
	return r;
}

static int refuse(const struct cm_local *l, const struct cm_key_info *info, const char *who,
		  struct cm_error *err)
{
	const char *id = l->session.record.id;
	CM_AUTO_BUF struct cm_buf value = { 0 };
	struct cm_spec has;
	int r = cm_local_running(&l->session.record, &has, err);

	if (r < 0)
		return r;
	cm_buf_init(&value, 65536);
	cm_local_describe(info, &has, &value);
	cm_spec_clear(&has);
	cm_error_set(err, CM_E_DENIED, 0, "session '%s' runs with more than %s allows: --%s '%s'",
		     id, who, info->name, value.data ? value.data : "");
	cm_error_hint(err, "'casemate stop %s': the next run starts it within that", id);
	return CM_E_DENIED;
}

int cm_local_check_bounds(struct cm_local *l, struct cm_error *err)
{
	CM_AUTO_ORIGINS struct cm_origins origins = { 0 };
	struct cm_spec has;
	unsigned int key;
	int r = cm_local_running(&l->session.record, &has, err);

	if (r < 0)
		return r;
	r = cm_local_tighten(l, &has, &has, &origins, NULL, err);
	key = find_changed(&origins, 0);
	if (r == CM_OK && key < CM_KEY_COUNT)
		r = refuse(l, cm_key_info((enum cm_key)key), origins.of[key].v[0], err);
	if (r == CM_OK)
		cm_local_take_over(&l->spec, &has);
	cm_spec_clear(&has);
	return r;
}
