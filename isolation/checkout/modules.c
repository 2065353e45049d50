/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Submodules.
 *
 * A .gitmodules that names a local path would copy a neighbour's repository into the session, and
 * libgit2 has no rule against it; http and git can be changed on the way. So only https and ssh
 * are ever followed, and not from here: this process has no network. The commit's tree says which
 * submodules there are; .gitmodules, read from the blob and not from the file, only says of each
 * what it is called and where it comes from.
 */
#include "isolation/checkout/modules.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "isolation/checkout/gitmodules.h"
#include "runtime/base/alloc.h"
#include "runtime/base/buf.h"
#include "runtime/base/fd.h"
#include "runtime/base/submodule.h"

#define GITMODULES_MAX (1U << 20)
#define NOTES_MAX 16

struct run {
	struct cm_report *rep;
	struct cm_gitmodules modules;
	/* NULL: nothing is fetched */
	const char *base;
	size_t notes;
	/* those of which no note says why */
	unsigned long long others;
};

static int out_of_memory(struct cm_error *err)
{
	return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
}

/* A hostile tree may have a million submodules. */
static int note(struct run *run, struct cm_error *err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int note(struct run *run, struct cm_error *err, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	if (run->notes == NOTES_MAX) {
		run->others++;
		return CM_OK;
	}
	run->notes++;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return cm_report_note(run->rep, err, "%s", text);
}

static int read_gitmodules(git_repository *repo, git_index *index, struct cm_gitmodules *m,
			   struct cm_error *err)
{
	const git_index_entry *e = git_index_get_bypath(index, ".gitmodules", 0);
	CM_AUTO_GIT(git_blob) git_blob *blob = NULL;

	if (!e || (e->mode != GIT_FILEMODE_BLOB && e->mode != GIT_FILEMODE_BLOB_EXECUTABLE))
		return CM_OK;
	if (git_blob_lookup(&blob, repo, &e->id) < 0)
		return cm_library_error(err, "cannot read '.gitmodules'");
	/* without the file's text every submodule is one without an address */
	if (git_blob_rawsize(blob) > GITMODULES_MAX)
		return CM_OK;
	return cm_gitmodules_parse(git_blob_rawcontent(blob), (size_t)git_blob_rawsize(blob), m,
				   err);
}

/* The address without "user:password@", which has no place in notes and logs. */
static char *without_userinfo(const char *url)
{
	const char *scheme = strstr(url, "://");
	const char *host = scheme ? scheme + 3 : url;
	size_t len = strcspn(host, "/");
	const char *at = NULL;

	for (size_t i = 0; i < len; i++) {
		if (host[i] == '@')
			at = host + i;
	}
	if (!at)
		return cm_strdup(url);
	return cm_asprintf("%.*s%s", (int)(host - url), url, at + 1);
}

static int add_module(struct cm_report *rep, const git_index_entry *e,
		      const struct cm_gitmodule *module, const struct cm_giturl *url,
		      struct cm_error *err)
{
	struct cm_report_module *m = &rep->modules[rep->n_modules];

	*m = (struct cm_report_module){ .name = cm_strdup(module->name),
					.path = cm_strdup(e->path),
					.url = cm_strdup(url->text) };
	git_oid_tostr(m->commit, sizeof(m->commit), &e->id);
	rep->n_modules++;
	return m->name && m->path && m->url ? CM_OK : out_of_memory(err);
}

static int refuse_address(struct run *run, const char *path, const char *url, struct cm_error *err)
{
	CM_AUTO_FREE char *shown = without_userinfo(url);

	if (!shown)
		return out_of_memory(err);
	return note(run, err,
		    "submodule '%s' is refused: only https and ssh addresses are "
		    "followed, not '%s'",
		    path, shown);
}

/* What may be fetched, and into its place, as far as can be told without trying. */
static int take_usable(struct run *run, const git_index_entry *e, const struct cm_gitmodule *module,
		       const struct cm_giturl *url, struct cm_error *err)
{
	struct cm_report *rep = run->rep;

	if (!run->base)
		return note(run, err, "submodule '%s' is not fetched yet: '%s'", e->path,
			    url->text);
	if (module->is_ambiguous)
		return note(run, err, "submodule '%s' is in .gitmodules twice and stays empty",
			    e->path);
	if (!cm_submodule_is_path(e->path) || !cm_submodule_is_name(module->name))
		return note(run, err,
			    "submodule '%s' is refused: no directory can be called by "
			    "its name '%s', or by its path",
			    e->path, module->name);
	if (rep->n_modules == CM_SUBMODULES_MAX)
		return note(run, err, "submodule '%s' stays empty: at most %d are fetched", e->path,
			    CM_SUBMODULES_MAX);
	return add_module(rep, e, module, url, err);
}

static int take(struct run *run, const git_index_entry *e, struct cm_error *err)
{
	const struct cm_gitmodule *module = cm_gitmodules_find(&run->modules, e->path);
	struct cm_giturl url = { 0 };
	int r;

	if (!module || !module->url)
		return note(run, err, "submodule '%s' has no address and stays empty", e->path);
	r = cm_submodule_url(run->base ? run->base : "/", module->url, &url, NULL);
	if (r == CM_E_NOMEM)
		return out_of_memory(err);
	if (r < 0)
		return refuse_address(run, e->path, module->url, err);
	r = take_usable(run, e, module, &url, err);
	cm_giturl_clear(&url);
	return r;
}

static int take_all(struct run *run, git_repository *repo, git_index *index, struct cm_error *err)
{
	struct cm_report *rep = run->rep;
	size_t count = git_index_entrycount(index);
	int r = CM_OK;

	for (size_t i = 0; i < count && r == CM_OK; i++) {
		const git_index_entry *e = git_index_get_byindex(index, i);

		if (e->mode != GIT_FILEMODE_COMMIT)
			continue;
		if (rep->submodules++ == 0)
			r = read_gitmodules(repo, index, &run->modules, err);
		if (r == CM_OK)
			r = take(run, e, err);
	}
	if (r == CM_OK && run->others > 0)
		r = cm_report_note(rep, err, "%llu more submodules stay empty", run->others);
	return r;
}

int cm_modules_want(struct cm_report *rep, struct cm_error *err)
{
	rep->modules = cm_calloc(CM_SUBMODULES_MAX, sizeof(*rep->modules));
	return rep->modules ? CM_OK : out_of_memory(err);
}

int cm_modules_report(git_repository *repo, git_index *index, const char *base,
		      struct cm_report *rep, struct cm_error *err)
{
	struct run run = { .rep = rep, .base = base };
	int r;

	rep->submodules = 0;
	r = take_all(&run, repo, index, err);
	cm_gitmodules_clear(&run.modules);
	return r;
}
