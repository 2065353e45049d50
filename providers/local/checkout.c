/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The repository of a session, checked out in a jail of its own. It sees the source and, of a linked
 * worktree or a submodule, the git directory that is elsewhere, both read-only; the session
 * directory; and nothing else of the user's. It ends with the checkout, before any code of the
 * repository runs.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "providers/local/checkout_helper.h"
#include "providers/local/fetch.h"
#include "providers/local/submodules.h"
#include "runtime/base/alloc.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/giturl.h"
#include "runtime/base/path.h"

/* as the helper names what it has begun */
#define PARTIAL_SUFFIX ".partial"

static bool is_there(const struct cm_local *l)
{
	struct stat st;

	return lstat(l->session.record.checkout, &st) == 0;
}

bool cm_local_has_checkout(const struct cm_local *l)
{
	return l->session.record.checkout && l->session.record.is_checkout_done && is_there(l);
}

/* What is checked out: a repository on this host, or the mirror of one that is not. */
struct source {
	const struct cm_store_mirror *mirror;
	/* as the jail shows it */
	const char *path;
	/* what else the jail has to show of it; NULL: nothing */
	const char *git_dir;
	/* NULL: its path */
	const char *origin;
};

static int make_spec(const struct cm_local *l, const struct source *source, struct cm_spec *spec,
		     struct cm_error *err)
{
	int r = cm_checkout_helper_spec(l, spec, err);

	if (r < 0 || source->mirror)
		return r;
	return cm_checkout_helper_show(spec, source->path, source->git_dir, err);
}

/* How many files are not committed is worth a note, and no reason to fail. */
static int tell_uncommitted(struct cm_local *l, const struct source *source, struct cm_error *err)
{
	char line[160];
	int64_t n;
	int r = cm_checkout_helper_status(l, source->path, &n, err);

	if (r == CM_E_TIMEOUT) {
		cm_local_note(l,
			      "whether files are not committed could not be found out: something "
			      "in the repository's tree cannot be read");
		return CM_OK;
	}
	if (r < 0 || n <= 0)
		return r;
	(void)snprintf(line, sizeof(line),
		       "%lld uncommitted file%s %s not in the checkout (use --workspace to work on "
		       "the tree itself)",
		       (long long)n, n == 1 ? "" : "s", n == 1 ? "is" : "are");
	cm_local_note(l, line);
	return CM_OK;
}

static int was_held_up(const struct cm_local *l, struct cm_error *err)
{
	cm_error_set(err, CM_E_TIMEOUT, 0, "cannot check out '%s': nothing moved for %d seconds",
		     l->spec.repo, CM_CHECKOUT_SILENCE_MS / 1000);
	cm_error_hint(err, "its git directory has a FIFO or a device that waits for somebody (find "
			   "DIR -type p), or lies on a file system that does not answer");
	return CM_E_TIMEOUT;
}

static int run_clone(struct cm_local *l, const struct source *source,
		     struct cm_checkout_result *result, struct cm_error *err)
{
	const struct cm_spec *spec = &l->spec;
	char *argv[24] = { NULL };
	char number[CM_CHECKOUT_NUMBER_SIZE];
	CM_AUTO_FREE char *sparse = NULL;
	size_t n = 0;
	int r;

	cm_checkout_option(argv, &n, "--source", source->path);
	cm_checkout_option(argv, &n, "--target", l->session.record.checkout);
	cm_checkout_option(argv, &n, "--origin", source->origin);
	cm_checkout_option(argv, &n, "--ref", spec->ref);
	cm_checkout_option(argv, &n, "--pr", cm_checkout_number(spec->pr, number));
	cm_checkout_option(argv, &n, "--branch", spec->branch);
	cm_checkout_option(argv, &n, "--from", spec->base);
	argv[n++] = (char *)(uintptr_t) "--modules";
	r = cm_checkout_git_options(spec, !source->mirror, argv, &n, &sparse, err);
	if (r < 0)
		return r;
	r = cm_checkout_helper_run(l, argv, NULL, result, err);
	(void)snprintf(l->checkout_commit, sizeof(l->checkout_commit), "%s", result->commit);
	if (r == CM_E_TIMEOUT)
		return was_held_up(l, err);
	if (r == CM_E_CHECKOUT)
		return cm_error_wrap(err, "cannot check out '%s'", l->spec.repo);
	return r;
}

static void remove_beside(const struct cm_local *l, const char *suffix)
{
	CM_AUTO_FD int dir_fd =
		open(l->session.session_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	CM_AUTO_FREE char *name =
		cm_asprintf("%s%s", cm_path_base(l->session.record.checkout), suffix);

	if (dir_fd >= 0 && name)
		(void)cm_remove_tree_at(dir_fd, name);
}

/*
 * The helper removes what it began when it fails, but not when it is ended. What it made has its
 * name when it is complete; nobody has seen it yet, and nobody would take it for a checkout.
 */
static void remove_unfinished(const struct cm_local *l)
{
	remove_beside(l, PARTIAL_SUFFIX);
	remove_beside(l, "");
}

static int in_jail(struct cm_local *l, const struct source *source,
		   struct cm_checkout_result *result, struct cm_error *err)
{
	char helper[PATH_MAX];
	struct cm_local_plan extra = { 0 };
	bool was_there = is_there(l);
	struct cm_spec spec;
	int r = cm_checkout_helper_mount(&extra, helper, sizeof(helper), err);

	if (r < 0)
		return r;
	if (source->mirror)
		extra.mounts[extra.n_mounts++] =
			(struct cm_local_mount){ source->mirror->dir, CM_FETCH_MIRROR_INSIDE,
						 CM_OPF_READ_ONLY };
	r = make_spec(l, source, &spec, err);
	if (r == CM_OK)
		r = cm_local_task_open(l, &spec, l->session.session_dir, &extra, err);
	if (r == CM_OK && !source->mirror)
		r = tell_uncommitted(l, source, err);
	if (r == CM_OK)
		r = run_clone(l, source, result, err);
	cm_local_task_close(l);
	cm_spec_clear(&spec);
	if (r == CM_E_CANCELLED) {
		cm_error_set(err, r, 0, "stopped while '%s' was checked out", l->spec.repo);
		cm_error_hint(err, "nothing of it is left: the next run begins again");
	}
	if (r < 0 && !was_there)
		remove_unfinished(l);
	return r;
}

static int take(struct cm_local *l, const struct cm_store_mirror *mirror, void *data,
		struct cm_checkout_result *result, struct cm_error *err)
{
	const struct source source = { .mirror = mirror,
				       .path = CM_FETCH_REPOSITORY_INSIDE,
				       .origin = l->spec.repo };

	(void)data;
	return in_jail(l, &source, result, err);
}

static int from_remote(struct cm_local *l, struct cm_module_list *modules, struct cm_error *err)
{
	struct cm_checkout_result result;
	struct cm_local_remote remote;
	int r;

	cm_local_remote_of(l, &remote);
	cm_checkout_result_init(&result);
	result.modules = modules;
	r = cm_local_fetch(l, &remote, take, NULL, &result, err);
	cm_store_mirrors_prune(&l->store);
	return r;
}

/* "github.com/OWNER/NAME" and "OWNER/NAME", as some programs take them, are paths of this host. */
static void hint_address(const struct cm_local *l, struct cm_error *err)
{
	const char *cwd = l->config->cwd;
	size_t len = strlen(cwd);
	const char *given = l->spec.repo;
	const char *slash;
	size_t first;

	if (strncmp(given, cwd, len) != 0 || given[len] != '/')
		return;
	given += len + 1;
	first = strcspn(given, "/");
	slash = given[first] == '/' ? strchr(given + first + 1, '/') : NULL;
	if (memchr(given, '.', first) && slash)
		cm_error_hint(err, "it is a path of this host so; did you mean 'https://%s'?",
			      given);
	else if (given[first] == '/' && !slash)
		cm_error_hint(err,
			      "it is a path of this host so; for a remote one give its address, "
			      "such as 'https://github.com/%s'",
			      given);
}

static int from_here(struct cm_local *l, struct cm_module_list *modules, struct cm_error *err)
{
	struct cm_source_facts facts = { NULL, NULL };
	struct cm_checkout_result result;
	struct source source = { NULL };
	int r = cm_source_facts_read(l->spec.repo, &facts, err);

	/* a file may say so of whatever is checked out */
	if (l->spec.depth > 0 && cm_key_is_asked(CM_KEY_DEPTH, &l->spec))
		cm_local_note(l, "--depth is for what has to be fetched: of a repository on this "
				 "host all of the history is copied");
	if (l->spec.filter == CM_FILTER_BLOB_NONE && cm_key_is_asked(CM_KEY_FILTER, &l->spec))
		cm_local_note(l, "--filter is for what has to be fetched: of a repository on this "
				 "host all objects are copied");
	source.path = facts.path;
	source.git_dir = facts.git_dir;
	cm_checkout_result_init(&result);
	result.modules = modules;
	if (r == CM_E_NOT_FOUND)
		hint_address(l, err);
	if (r == CM_OK)
		r = in_jail(l, &source, &result, err);
	cm_source_facts_clear(&facts);
	return r;
}

/* Without the mark what is left is taken for complete. It is an empty directory, or not ours. */
static void end_submodules(const struct cm_local *l)
{
	CM_AUTO_FREE char *mark = cm_asprintf("%s" CM_SUBMODULES_MARK, l->session.record.checkout);

	remove_beside(l, CM_SUBMODULES_TREE PARTIAL_SUFFIX);
	if (mark)
		(void)rmdir(mark);
}

static int check_out(struct cm_local *l, struct cm_error *err)
{
	struct cm_module_list modules = { NULL, 0 };
	int r = cm_giturl_is_remote(l->spec.repo) ? from_remote(l, &modules, err)
						  : from_here(l, &modules, err);

	if (r == CM_OK && modules.n > 0) {
		r = cm_local_submodules(l, &modules, err);
		if (r < 0)
			remove_unfinished(l);
		end_submodules(l);
	}
	cm_module_list_clear(&modules);
	return r;
}

/* A checkout that has its name, but whose submodules nobody came to the end of. */
static bool lacks_submodules(const struct cm_local *l)
{
	CM_AUTO_FREE char *path = cm_asprintf("%s" CM_SUBMODULES_MARK, l->session.record.checkout);
	struct stat st;

	return path && is_there(l) && lstat(path, &st) == 0;
}

/* What was there before is not ours to take; only of an empty directory nothing is lost. */
static int make_room(const struct cm_local *l, struct cm_error *err)
{
	const char *path = l->session.record.checkout;
	CM_AUTO_FD int dir_fd =
		open(l->session.session_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (!is_there(l) ||
	    (dir_fd >= 0 && unlinkat(dir_fd, cm_path_base(path), AT_REMOVEDIR) == 0))
		return CM_OK;
	cm_error_set(err, CM_E_EXISTS, 0,
		     "'%s' is there already, and is no checkout of session '%s'", path,
		     l->session.record.id);
	cm_error_hint(err, "move it away, or name another session: --session ID");
	return CM_E_EXISTS;
}

/*
 * The helper gives a checkout its name when it is complete but for submodules: a death before the
 * record said so leaves a whole one.
 */
static int begin(struct cm_local *l, struct cm_error *err)
{
	int r;

	if (l->is_temporary || l->session.record.is_checkout_begun)
		return CM_OK;
	r = make_room(l, err);
	if (r < 0)
		return r;
	l->session.record.is_checkout_begun = true;
	return cm_store_session_save(&l->session, false, err);
}

/*
 * What is at its place was made by a program that had read what a server sent. It is mounted by its
 * path from here on, so it is a directory of the session's own, at that very place, or nothing.
 */
static int check_place(const struct cm_local *l, bool is_new, struct cm_error *err)
{
	const char *path = l->session.record.checkout;
	uid_t owner = l->session.record.agent_id != 0 ? l->session.record.agent_id : geteuid();
	CM_AUTO_FD int dir_fd =
		open(l->session.session_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (dir_fd >= 0 && fstatat(dir_fd, cm_path_base(path), &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISDIR(st.st_mode) && (!is_new || st.st_uid == owner))
		return CM_OK;
	cm_error_set(err, CM_E_CHECKOUT, 0, "'%s' is not the directory that a checkout is", path);
	cm_error_hint(err, "look at it (ls -ld), and begin anew: casemate rm --files --force %s",
		      l->session.record.id);
	return CM_E_CHECKOUT;
}

/* Or refused: what has no repository has nothing to make either. */
static bool is_to_update(const struct cm_local *l)
{
	return l->is_running || l->spec.workspace_kind != CM_WORKSPACE_REPO ||
	       cm_local_has_checkout(l);
}

int cm_local_checkout(struct cm_local *l, struct cm_error *err)
{
	int64_t start_us = cm_clock_mono_us();
	int r;

	if (l->update && is_to_update(l)) {
		r = l->session.record.checkout ? check_place(l, false, err) : CM_OK;
		return r == CM_OK ? cm_local_update(l, err) : r;
	}
	if (l->session.record.is_update_begun && cm_local_has_checkout(l)) {
		r = cm_local_update_finish(l, err);
		if (r < 0)
			return r;
	}
	/* what was checked out is the user's work now, and wins */
	if (l->spec.workspace_kind != CM_WORKSPACE_REPO || l->is_running)
		return CM_OK;
	if (cm_local_has_checkout(l))
		return check_place(l, false, err);
	r = cm_local_make_session_dir(l, err);
	if (r == CM_OK)
		r = begin(l, err);
	if (r == CM_OK && l->session.record.is_checkout_begun && lacks_submodules(l)) {
		remove_unfinished(l);
		end_submodules(l);
	}
	if (r == CM_OK && !(l->session.record.is_checkout_begun && is_there(l)))
		r = check_out(l, err);
	if (r == CM_OK)
		r = check_place(l, true, err);
	if (r < 0)
		return r;
	l->session.record.is_checkout_done = true;
	if (!l->is_temporary)
		r = cm_store_session_save(&l->session, true, err);
	if (r == CM_OK)
		cm_local_phase(l, "checkout", start_us);
	return r;
}
