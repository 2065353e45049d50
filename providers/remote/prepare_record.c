/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this host remembers of a session's checkout, setup and teardown: keys of their own in a record
 * that the provider has keys in, too. An option that contradicts what a checkout was made with is refused;
 * what configuration files say is for sessions yet to be made, and how much of a history was fetched is
 * no property of a checkout.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "providers/remote/prepare_internal.h"
#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/text.h"
#include "runtime/spec/keys.h"

#define TEXT_MAX (64UL * 1024)
#define PREFIX_MAX 64

static const char *const own_keys[] = {
	CM_RECORD_PREPARED_BY, CM_RECORD_REPO,	       CM_RECORD_CHECKOUT,    CM_RECORD_BRANCH,
	CM_RECORD_REF,	       CM_RECORD_PR,	       CM_RECORD_BASE,	      CM_RECORD_SPARSE,
	CM_RECORD_LFS,	       CM_RECORD_SETUP_DIGEST, CM_RECORD_SETUP_STATE, CM_RECORD_SETUP_EXIT,
	CM_RECORD_TEARDOWN,
};

static int no_memory(struct cm_error *err)
{
	return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the session's record");
}

static int compare(const void *a, const void *b)
{
	const char *const *x = a;
	const char *const *y = b;

	return strcmp(*x, *y);
}

static void sort(struct cm_strv *values)
{
	if (values->n > 1)
		qsort(values->v, values->n, sizeof(*values->v), compare);
}

/* --- whose ----------------------------------------------------------------------------------- */

/* "E2B_": what a provider of that name reads its account from. */
static void prefix_of(const char *provider, char ret[PREFIX_MAX])
{
	size_t n = 0;

	for (; n < PREFIX_MAX - 2 && provider[n] != '\0'; n++)
		ret[n] = isalnum((unsigned char)provider[n])
				 ? (char)toupper((unsigned char)provider[n])
				 : '_';
	ret[n++] = '_';
	ret[n] = '\0';
}

static int join(const struct cm_strv *values, struct cm_buf *ret)
{
	for (size_t i = 0; i < values->n; i++) {
		if (i > 0 && strcmp(values->v[i], values->v[i - 1]) == 0)
			continue;
		if (i > 0)
			cm_buf_putc(ret, '\n');
		cm_buf_puts(ret, values->v[i]);
	}
	return cm_buf_status(ret);
}

/*
 * Of the provider's variables: another key or address has other sessions by the same names. Who only
 * changes how it is spelled has the sandbox asked once more.
 */
static int find_owner(const struct cm_prep *p, char ret[CM_RECORD_ACCOUNT_SIZE],
		      struct cm_error *err)
{
	const struct cm_strv *env = &p->config->env;
	/* pointers into the environment */
	CM_AUTO_FREE char **own = cm_calloc(env->n + 1, sizeof(*own));
	struct cm_strv view = { own, 0 };
	char prefix[PREFIX_MAX];
	struct cm_buf text;
	size_t size = 1;
	int r;

	if (!own)
		return no_memory(err);
	prefix_of(p->session->provider->ops->name, prefix);
	for (size_t i = 0; i < env->n; i++) {
		if (!cm_text_has_prefix(env->v[i], prefix))
			continue;
		own[view.n++] = env->v[i];
		size += strlen(env->v[i]) + 1;
	}
	sort(&view);
	cm_buf_init(&text, size);
	/* of its full size at once, so that nothing is moved and left behind */
	cm_buf_reserve(&text, size - 1);
	r = join(&view, &text) < 0 ? no_memory(err) : cm_record_account(text.data, NULL, ret, err);
	if (text.data)
		explicit_bzero(text.data, text.len);
	cm_buf_clear(&text);
	return r;
}

static void forget(struct cm_prep *p)
{
	for (size_t i = 0; i < CM_ARRAY_SIZE(own_keys); i++) {
		p->has_forgotten |= cm_record_get(&p->record, own_keys[i]) != NULL;
		(void)cm_record_set(&p->record, own_keys[i], NULL, NULL);
	}
}

/* --- the file -------------------------------------------------------------------------------- */

/* Without it, all of it is looked for in the sandbox: it is no failure that there is none. */
int cm_prep_open_record(struct cm_prep *p, struct cm_error *err)
{
	char owner[CM_RECORD_ACCOUNT_SIZE];
	const char *is;
	int r;

	/* one that is temporary is prepared once */
	if ((!p->spec->session_id && !p->spec->is_kept) ||
	    cm_records_open(p->config, p->session->provider->ops->name, &p->records, NULL) < 0)
		return CM_OK;
	p->has_records = true;
	r = find_owner(p, owner, err);
	if (r < 0)
		return r;
	r = cm_record_read(&p->records, p->session->id, &p->record, err);
	if (r == CM_E_NOMEM)
		return r;
	cm_error_clear(err);
	is = cm_record_get(&p->record, CM_RECORD_PREPARED_BY);
	/* another sandbox by the same name */
	if (p->session->is_new || !is || strcmp(is, owner) != 0)
		forget(p);
	return cm_record_set(&p->record, CM_RECORD_PREPARED_BY, owner, err);
}

/* The provider may have written to it meanwhile. */
static int save(const struct cm_prep *p, struct cm_error *err)
{
	struct cm_record now = { { NULL, 0 }, { NULL, 0 } };
	int r = cm_record_read(&p->records, p->session->id, &now, err);

	if (r == CM_E_NOMEM)
		return r;
	cm_error_clear(err);
	r = CM_OK;
	for (size_t i = 0; i < CM_ARRAY_SIZE(own_keys) && r == CM_OK; i++)
		r = cm_record_set(&now, own_keys[i], cm_record_get(&p->record, own_keys[i]), err);
	if (r == CM_OK)
		r = cm_record_write(&p->records, p->session->id, &now, err);
	cm_record_clear(&now);
	return r;
}

void cm_prep_save_record(const struct cm_prep *p)
{
	struct cm_error err = CM_ERROR_INIT;

	if (p->has_records && save(p, &err) < 0)
		cm_provider_note(p->session->provider, "%.400s", err.msg);
}

void cm_prepare_forget(const struct cm_config *config, const struct cm_session *s)
{
	struct cm_records records = CM_RECORDS_INIT;

	if (cm_records_open(config, s->provider->ops->name, &records, NULL) < 0)
		return;
	(void)cm_record_remove(&records, s->id, NULL);
	cm_records_close(&records);
}

/* --- the checkout's -------------------------------------------------------------------------- */

static void put_sparse(const struct cm_spec *spec, struct cm_buf *out)
{
	CM_AUTO_STRV struct cm_strv sorted = { 0 };

	/* as a set: in which order they are named makes no other checkout */
	if (cm_strv_copy(&sorted, &spec->sparse) < 0) {
		out->has_failed = true;
		return;
	}
	sort(&sorted);
	(void)join(&sorted, out);
}

static void put_ref(const struct cm_spec *spec, struct cm_buf *out)
{
	cm_buf_puts(out, spec->ref ? spec->ref : "");
}

static void put_pr(const struct cm_spec *spec, struct cm_buf *out)
{
	if (spec->pr > 0)
		cm_buf_printf(out, "%d", spec->pr);
}

static void put_base(const struct cm_spec *spec, struct cm_buf *out)
{
	cm_buf_puts(out, spec->base ? spec->base : "");
}

static void put_lfs(const struct cm_spec *spec, struct cm_buf *out)
{
	cm_buf_puts(out, spec->has_lfs ? "yes" : "no");
}

/* What a checkout is made with, and keeps. */
static const struct made {
	const char *record;
	enum cm_key key;
	void (*put)(const struct cm_spec *spec, struct cm_buf *out);
} made[] = {
	{ CM_RECORD_REF, CM_KEY_REF, put_ref },	   { CM_RECORD_PR, CM_KEY_PR, put_pr },
	{ CM_RECORD_BASE, CM_KEY_FROM, put_base }, { CM_RECORD_SPARSE, CM_KEY_SPARSE, put_sparse },
	{ CM_RECORD_LFS, CM_KEY_LFS, put_lfs },
};

/* "" is what it was made without; a key that is not there is one of which nothing is known. */
static int write_made(const struct cm_spec *spec, const struct made *m, struct cm_buf *out,
		      struct cm_error *err)
{
	cm_buf_init(out, TEXT_MAX);
	m->put(spec, out);
	switch (cm_buf_status(out)) {
	case CM_OK:
		return CM_OK;
	case CM_E_LIMIT:
		return cm_error_set(err, CM_E_LIMIT, 0, "--%s is too long",
				    cm_key_info(m->key)->name);
	default:
		return no_memory(err);
	}
}

static const char *text_of(const struct cm_buf *b)
{
	return b->data ? b->data : "";
}

static bool is_on_branch(const struct cm_prep *p)
{
	const char *branch = cm_record_get(&p->record, CM_RECORD_BRANCH);

	return !p->spec->branch || (branch && strcmp(branch, p->spec->branch) == 0);
}

bool cm_prep_is_recorded(const struct cm_prep *p)
{
	const char *repo = cm_record_get(&p->record, CM_RECORD_REPO);
	const char *place = cm_record_get(&p->record, CM_RECORD_CHECKOUT);

	if (!repo || !place || place[0] != '/')
		return false;
	/* another one that was asked for was refused */
	return !cm_prep_same_repository(&p->url, repo) || is_on_branch(p);
}

static int remember_one(struct cm_prep *p, const struct made *m, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf text = { 0 };
	int r = write_made(p->spec, m, &text, err);

	return r == CM_OK ? cm_record_set(&p->record, m->record, text_of(&text), err) : r;
}

int cm_prep_remember_checkout(struct cm_prep *p, struct cm_error *err)
{
	bool begins_branch = p->spec->base && !is_on_branch(p);
	int r = cm_record_set(&p->record, CM_RECORD_REPO, p->url.text, err);

	if (r == CM_OK)
		r = cm_record_set(&p->record, CM_RECORD_CHECKOUT, p->checkout, err);
	if (r == CM_OK && p->spec->branch)
		r = cm_record_set(&p->record, CM_RECORD_BRANCH, p->spec->branch, err);
	/* one that was there was made by somebody else */
	for (size_t i = 0; i < CM_ARRAY_SIZE(made) && r == CM_OK; i++) {
		if (p->is_cloned || (made[i].key == CM_KEY_FROM && begins_branch))
			r = remember_one(p, &made[i], err);
	}
	return r;
}

static int contradiction(const struct cm_prep *p, enum cm_key key, const char *has,
			 struct cm_error *err)
{
	const char *name = cm_key_info(key)->name;
	CM_AUTO_FREE char *shown = cm_strdup(has);

	if (!shown)
		return no_memory(err);
	for (char *at = strchr(shown, '\n'); at; at = strchr(at, '\n'))
		*at = ',';
	if (shown[0] != '\0')
		(void)cm_error_set(err, CM_E_EXISTS, 0,
				   "session '%s' was made with another --%s: '%.200s'",
				   p->session->id, name, shown);
	else
		(void)cm_error_set(err, CM_E_EXISTS, 0, "session '%s' was made without --%s",
				   p->session->id, name);
	cm_error_hint(err,
		      "leave --%s out: a session's is set when it is made; 'casemate start NAME' "
		      "makes another one",
		      name);
	return CM_E_EXISTS;
}

static int check_one(const struct cm_prep *p, const struct made *m, struct cm_error *err)
{
	const char *has = cm_record_get(&p->record, m->record);
	CM_AUTO_BUF struct cm_buf text = { 0 };
	int r;

	if (!has || !cm_key_is_asked(m->key, p->spec))
		return CM_OK;
	/* where a branch begins that the checkout is yet to go to */
	if (m->key == CM_KEY_FROM && !is_on_branch(p))
		return CM_OK;
	r = write_made(p->spec, m, &text, err);
	if (r == CM_OK && strcmp(text_of(&text), has) != 0)
		r = contradiction(p, m->key, has, err);
	return r;
}

int cm_prep_check_record(const struct cm_prep *p, struct cm_error *err)
{
	const char *repo = cm_record_get(&p->record, CM_RECORD_REPO);
	int r = CM_OK;

	if (!repo || !cm_record_get(&p->record, CM_RECORD_CHECKOUT))
		return CM_OK;
	if (p->spec->repo && cm_key_is_asked(CM_KEY_REPO, p->spec) &&
	    !cm_prep_same_repository(&p->url, repo))
		return contradiction(p, CM_KEY_REPO, repo, err);
	for (size_t i = 0; i < CM_ARRAY_SIZE(made) && r == CM_OK; i++)
		r = check_one(p, &made[i], err);
	return r;
}
