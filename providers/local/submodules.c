/* SPDX-License-Identifier: Apache-2.0 */
#include "providers/local/submodules.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "providers/local/checkout_helper.h"
#include "providers/local/fetch.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/giturl.h"
#include "runtime/base/path.h"
#include "runtime/base/submodule.h"

struct run {
	struct cm_local *l;
	/* tried; there; not tried, since there are too many */
	size_t n;
	size_t n_done;
	size_t n_left;
};

/* Where a repository is that has submodules, both below the checkout. */
struct super {
	/* NULL: the checkout itself */
	const char *path;
	const char *git_dir;
	/* of its submodules: 1 for those of the checkout */
	unsigned int depth;
};

static int out_of_memory(struct cm_error *err)
{
	return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the submodules");
}

static int tell_empty(struct run *run, const char *path, const char *why, struct cm_error *err)
{
	CM_AUTO_FREE char *line = cm_asprintf("submodule '%s' stays empty: %s", path, why);

	if (!line)
		return out_of_memory(err);
	cm_local_note(run->l, line);
	return CM_OK;
}

/* The credential is one for scheme, host and port, wherever on it a submodule is. */
static int make_remote(const struct cm_local *l, const struct cm_module *m,
		       struct cm_local_remote *ret, struct cm_error *err)
{
	struct cm_local_remote of_session;
	struct cm_giturl top = { 0 };
	struct cm_giturl url = { 0 };
	int r = cm_giturl_parse(l->spec.repo, &top, err);

	if (r == CM_OK)
		r = cm_giturl_parse(m->url, &url, err);
	if (r == CM_OK) {
		*ret = (struct cm_local_remote){ .url = m->url };
		if (cm_giturl_same_server(&top, &url)) {
			cm_local_remote_of(l, &of_session);
			ret->user = of_session.user;
			ret->secret = of_session.secret;
			ret->has_keys = of_session.has_keys;
		}
	}
	cm_giturl_clear(&url);
	cm_giturl_clear(&top);
	return r;
}

static int run_helper(struct cm_local *l, const struct cm_module *m, const struct super *super,
		      const char *path, struct cm_checkout_result *result, struct cm_error *err)
{
	const char *checkout = l->session.record.checkout;
	CM_AUTO_FREE char *target = cm_asprintf("%s" CM_SUBMODULES_TREE, checkout);
	char *argv[20] = { NULL };
	size_t n = 0;

	if (!target)
		return out_of_memory(err);
	cm_checkout_option(argv, &n, "--source", CM_FETCH_REPOSITORY_INSIDE);
	cm_checkout_option(argv, &n, "--target", target);
	cm_checkout_option(argv, &n, "--origin", m->url);
	cm_checkout_option(argv, &n, "--ref", m->commit);
	cm_checkout_option(argv, &n, "--into", checkout);
	cm_checkout_option(argv, &n, "--module", path);
	cm_checkout_option(argv, &n, "--git-dir", super->git_dir);
	cm_checkout_option(argv, &n, "--name", m->name);
	argv[n++] = (char *)(uintptr_t) "--modules";
	return cm_checkout_helper_run(l, argv, NULL, result, err);
}

/* One submodule and where it goes. */
struct place {
	const struct cm_module *m;
	const struct super *super;
	/* below the checkout */
	const char *path;
};

static int take(struct cm_local *l, const struct cm_store_mirror *mirror, void *data,
		struct cm_checkout_result *result, struct cm_error *err)
{
	const struct place *place = data;
	char helper[PATH_MAX];
	struct cm_local_plan extra = { 0 };
	struct cm_spec spec;
	int r = cm_checkout_helper_mount(&extra, helper, sizeof(helper), err);

	if (r < 0)
		return r;
	extra.mounts[extra.n_mounts++] =
		(struct cm_local_mount){ mirror->dir, CM_FETCH_MIRROR_INSIDE, CM_OPF_READ_ONLY };
	r = cm_checkout_helper_spec(l, &spec, err);
	if (r == CM_OK)
		r = cm_local_task_open(l, &spec, l->session.session_dir, &extra, err);
	if (r == CM_OK)
		r = run_helper(l, place->m, place->super, place->path, result, err);
	cm_local_task_close(l);
	cm_spec_clear(&spec);
	return r;
}

static int fetch(struct cm_local *l, const struct cm_module *m, const struct super *super,
		 const char *path, struct cm_checkout_result *result, struct cm_error *err)
{
	struct place place = { m, super, path };
	struct cm_local_remote remote;
	int r = make_remote(l, m, &remote, err);

	return r < 0 ? r : cm_local_fetch(l, &remote, take, &place, result, err);
}

static bool has_code(const struct cm_checkout_result *result, int code)
{
	return strcmp(result->code, cm_error_name(code)) == 0;
}

/* Is it the submodule's doing, or its server's? */
static bool is_its_own(int r)
{
	return r == CM_E_CHECKOUT || r == CM_E_TIMEOUT || r == CM_E_BUSY;
}

static int tell_failure(struct run *run, const struct cm_module *m, const char *path,
			const struct cm_checkout_result *result, const struct cm_error *why,
			struct cm_error *err)
{
	CM_AUTO_FREE char *text = NULL;

	if (!has_code(result, CM_E_NOT_FOUND))
		return tell_empty(run, path, why->msg, err);
	text = cm_asprintf("'%s' has no branch or tag with its commit %s", m->url, m->commit);
	return text ? tell_empty(run, path, text, err) : out_of_memory(err);
}

static int take_all(struct run *run, const struct cm_module_list *list, const struct super *super,
		    struct cm_error *err);

/* What its own submodules are told to be by what was just checked out. */
static int take_below(struct run *run, const struct cm_module *m, const struct super *super,
		      const char *path, const struct cm_module_list *below, struct cm_error *err)
{
	CM_AUTO_FREE char *git_dir = cm_asprintf("%s/modules/%s", super->git_dir, m->name);
	const struct super here = { path, git_dir, super->depth + 1 };
	char why[80];

	if (!git_dir)
		return out_of_memory(err);
	if (here.depth <= CM_SUBMODULE_DEPTH_MAX)
		return take_all(run, below, &here, err);
	(void)snprintf(why, sizeof(why), "submodules are followed to a depth of %d",
		       CM_SUBMODULE_DEPTH_MAX);
	for (size_t i = 0; i < below->n; i++) {
		CM_AUTO_FREE char *full = cm_path_join(path, below->v[i].path);
		int r = full ? tell_empty(run, full, why, err) : out_of_memory(err);

		if (r < 0)
			return r;
	}
	return CM_OK;
}

static int take_one(struct run *run, const struct cm_module *m, const struct super *super,
		    struct cm_error *err)
{
	CM_AUTO_FREE char *path =
		super->path ? cm_path_join(super->path, m->path) : cm_strdup(m->path);
	struct cm_checkout_result result;
	struct cm_module_list below = { NULL, 0 };
	struct cm_error why = CM_ERROR_INIT;
	int r;

	if (!path)
		return out_of_memory(err);
	if (!cm_submodule_is_path(path))
		return tell_empty(run, path, "its path is too long", err);
	cm_checkout_result_init(&result);
	result.modules = &below;
	r = fetch(run->l, m, super, path, &result, &why);
	if (r == CM_OK) {
		run->n_done++;
		r = take_below(run, m, super, path, &below, err);
	} else if (is_its_own(r)) {
		r = tell_failure(run, m, path, &result, &why, err);
	} else if (err) {
		*err = why;
	}
	cm_module_list_clear(&below);
	return r;
}

static int take_all(struct run *run, const struct cm_module_list *list, const struct super *super,
		    struct cm_error *err)
{
	int r = CM_OK;

	for (size_t i = 0; i < list->n && r == CM_OK; i++) {
		if (run->n == CM_SUBMODULES_MAX) {
			run->n_left += list->n - i;
			break;
		}
		run->n++;
		r = take_one(run, &list->v[i], super, err);
	}
	return r;
}

static void tell(struct run *run, int64_t start_us)
{
	char text[80];

	if (run->n_left > 0) {
		(void)snprintf(text, sizeof(text),
			       "%zu more submodules stay empty: at most %d are fetched",
			       run->n_left, CM_SUBMODULES_MAX);
		cm_local_note(run->l, text);
	}
	(void)snprintf(text, sizeof(text), "submodules %zu", run->n_done);
	cm_local_phase(run->l, text, start_us);
}

int cm_local_submodules(struct cm_local *l, const struct cm_module_list *modules,
			struct cm_error *err)
{
	const struct super top = { NULL, ".git", 1 };
	struct run run = { .l = l };
	int64_t start_us = cm_clock_mono_us();
	int r;

	if (modules->n == 0)
		return CM_OK;
	r = take_all(&run, modules, &top, err);
	if (r == CM_OK)
		tell(&run, start_us);
	cm_store_mirrors_prune(&l->store);
	return r;
}
