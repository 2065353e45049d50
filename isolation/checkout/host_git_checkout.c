/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A checkout of a SHA-256 repository, all of it by git. The steps are those of checkout.c: what can
 * fail for the user's reasons comes first, the name is given last. Objects come by a fetch from the
 * source's path, which copies them, and checks that what the refs name is whole.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "isolation/checkout/guard.h"
#include "isolation/checkout/host_git_resolve.h"
#include "isolation/checkout/host_git_tree.h"
#include "isolation/checkout/modules.h"
#include "isolation/checkout/regular.h"
#include "isolation/checkout/target.h"
#include "runtime/base/fd.h"
#include "runtime/base/path.h"

struct run {
	const struct cm_checkout_options *opts;
	struct cm_report *rep;
	struct cm_host_git git;
	/* real path, and git's own directory of it, which may be elsewhere */
	char *source;
	char git_dir[PATH_MAX];
	struct cm_host_git_taken taken;
	struct cm_target target;
};

static int out_of_memory(struct cm_error *err)
{
	return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
}

bool cm_host_git_is_sha256(const char *source)
{
	CM_AUTO_FREE char *dot_git = cm_path_join(source, ".git");

	/* of a ".git" file, which names another place, nothing is known here */
	return dot_git && cm_host_git_has_sha256(access(dot_git, F_OK) == 0 ? dot_git : source);
}

static int step_source(struct run *run, struct cm_error *err)
{
	/* what it has of other addresses is not asked: a path of this host is all there is */
	static const struct cm_giturl here = { .kind = CM_GITURL_PATH };
	const struct cm_host_git_access local = { .url = &here,
						  .has_lfs = run->opts->wants.has_lfs };
	CM_AUTO_FREE char *dot_git = NULL;
	int r = cm_host_git_check(run->opts->wants.has_lfs, err);

	if (r == CM_OK && run->opts->place.checkout) {
		cm_error_set(err, CM_E_UNSUPPORTED, 0,
			     "a SHA-256 repository cannot be a submodule here");
		cm_error_hint(err, "'git submodule update' in the session fetches it");
		r = CM_E_UNSUPPORTED;
	}
	if (r == CM_OK && run->opts->wants_modules)
		r = cm_modules_want(run->rep, err);
	if (r < 0)
		return r;
	run->source = cm_path_real(run->opts->source);
	dot_git = run->source ? cm_path_join(run->source, ".git") : NULL;
	if (!dot_git)
		return cm_library_sys_error(err, errno, "cannot open source '%s'",
					    run->opts->source);
	r = cm_regular_check(access(dot_git, F_OK) == 0 ? dot_git : run->source, err);
	if (r == CM_OK)
		r = cm_target_locate(run->opts->target, run->source, &run->target, err);
	if (r == CM_OK)
		r = cm_host_git_open(&run->git, &local, run->rep, err);
	if (r == CM_OK)
		cm_report_progress(run->rep, "open", 1, 1);
	return r;
}

/* Of a fetch's mirror the fetch has told it already. */
static int note(struct run *run, struct cm_error *err)
{
	const char *reasons[3] = { "SHA-256 repositories" };
	size_t n = 1;

	if (run->opts->wants.has_lfs)
		reasons[n++] = "Git LFS";
	if (run->opts->wants.sparse)
		reasons[n++] = "sparse checkouts";
	return run->opts->origin ? CM_OK : cm_host_git_note(run->rep, reasons, n, err);
}

static int step_refs(struct run *run, struct cm_error *err)
{
	const struct cm_host_git_take take = { run->opts->ref, run->opts->pr, run->opts->branch };
	const char *const argv[] = {
		"-C", run->source, "rev-parse", "--path-format=absolute", "--git-common-dir", NULL
	};
	int r = note(run, err);

	if (r == CM_OK)
		r = cm_host_git_line(&run->git, argv, run->git_dir, sizeof(run->git_dir), err);
	if (r == CM_OK && run->git_dir[0] == '\0') {
		cm_error_set(err, CM_E_UNSUPPORTED, 0, "git cannot read the repository '%s'",
			     run->source);
		cm_error_hint(err,
			      "check it with 'git fsck'; this host's git may be older than it");
		r = CM_E_UNSUPPORTED;
	}
	if (r == CM_OK)
		r = cm_host_git_resolve(&run->git, run->source, &take, run->opts->origin != NULL,
					&run->taken, err);
	if (r == CM_OK)
		cm_report_progress(run->rep, "refs", 1, 1);
	return r;
}

static int init(struct run *run, struct cm_error *err)
{
	CM_AUTO_FREE char *branch =
		cm_asprintf("--initial-branch=%s", run->taken.branch ? run->taken.branch : "main");
	const char *const argv[] = { "init",
				     "--quiet",
				     "--template=",
				     "--object-format=sha256",
				     branch,
				     "--",
				     run->target.partial_path,
				     NULL };

	return branch ? cm_host_git_must(&run->git, argv, err) : out_of_memory(err);
}

static int copy_objects(struct run *run, struct cm_error *err)
{
	/* what no branch leads to is asked for by its id, which a path of this host allows */
	CM_AUTO_FREE char *commit = cm_asprintf("%s", run->taken.commit);
	const char *const argv[] = { "-C",
				     run->target.partial_path,
				     "fetch",
				     "--progress",
				     "--no-tags",
				     "--no-write-fetch-head",
				     "--update-shallow",
				     "--recurse-submodules=no",
				     "--refmap=",
				     "--",
				     run->git_dir,
				     "+refs/heads/*:refs/remotes/origin/*",
				     "+refs/tags/*:refs/tags/*",
				     commit,
				     NULL };
	struct cm_host_git_call call = { .argv = argv };
	int r;

	if (!commit)
		return out_of_memory(err);
	r = cm_host_git_run(&run->git, &call, err);
	cm_guard_phase(CM_GUARD_LOCAL);
	if (r == CM_OK && call.status != 0)
		r = cm_host_git_failed(&call, "copy the objects", err);
	cm_buf_clear(&call.said);
	return r;
}

static int step_objects(struct run *run, struct cm_error *err)
{
	int r = cm_target_begin_bare(&run->target, err);

	if (r == CM_OK)
		r = init(run, err);
	return r == CM_OK && !run->taken.is_unborn ? copy_objects(run, err) : r;
}

static int git_in(struct run *run, const char *const *words, size_t n, struct cm_error *err)
{
	const char *argv[12] = { "-C", run->target.partial_path };

	for (size_t i = 0; i < n; i++)
		argv[i + 2] = words[i];
	return cm_host_git_must(&run->git, argv, err);
}

static int set_key(struct run *run, const char *key, const char *value, struct cm_error *err)
{
	const char *const words[] = { "config", "--local", key, value };

	return git_in(run, words, CM_ARRAY_SIZE(words), err);
}

static int write_config(struct run *run, struct cm_error *err)
{
	const struct cm_host_git_taken *taken = &run->taken;
	CM_AUTO_FREE char *remote = cm_asprintf("branch.%s.remote", taken->branch);
	CM_AUTO_FREE char *merge = cm_asprintf("branch.%s.merge", taken->branch);
	CM_AUTO_FREE char *upstream = cm_asprintf("refs/heads/%s", taken->branch);
	const char *const keys[][2] = {
		{ "remote.origin.url", run->opts->origin ? run->opts->origin : run->source },
		{ "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*" },
		{ "core.protectNTFS", "true" },
		{ "core.protectHFS", "true" },
		{ remote, "origin" },
		{ merge, upstream },
	};
	size_t n = CM_ARRAY_SIZE(keys) - (taken->branch && taken->has_upstream ? 0 : 2);
	int r = CM_OK;

	if (!remote || !merge || !upstream)
		return out_of_memory(err);
	for (size_t i = 0; i < n && r == CM_OK; i++)
		r = set_key(run, keys[i][0], keys[i][1], err);
	return r;
}

/* HEAD is on the branch since the beginning; or it is detached. */
static int write_head(struct run *run, struct cm_error *err)
{
	CM_AUTO_FREE char *name = cm_asprintf("refs/heads/%s", run->taken.branch);
	const char *const words[] = {
		"update-ref",	  "-m", "checkout", "--no-deref", run->taken.branch ? name : "HEAD",
		run->taken.commit
	};

	if (!name)
		return out_of_memory(err);
	return git_in(run, words, CM_ARRAY_SIZE(words), err);
}

static int write_remote_head(struct run *run, struct cm_error *err)
{
	static const char heads[] = "refs/heads/";
	const char *const argv[] = { "-C", run->source, "symbolic-ref", "--quiet", "HEAD", NULL };
	CM_AUTO_FREE char *target = NULL;
	char name[PATH_MAX];
	int r = cm_host_git_line(&run->git, argv, name, sizeof(name), err);

	if (r < 0 || strncmp(name, heads, strlen(heads)) != 0)
		return r;
	target = cm_asprintf("refs/remotes/origin/%s", name + strlen(heads));
	if (target) {
		const char *const words[] = { "symbolic-ref", "refs/remotes/origin/HEAD", target };

		return git_in(run, words, CM_ARRAY_SIZE(words), err);
	}
	return out_of_memory(err);
}

static int note_submodules(struct run *run, struct cm_error *err)
{
	if (run->rep->submodules == 0)
		return CM_OK;
	return cm_report_note(run->rep, err,
			      "%llu submodule%s of a SHA-256 repository stay empty: 'git submodule "
			      "update' in the session fetches them",
			      (unsigned long long)run->rep->submodules,
			      run->rep->submodules == 1 ? "" : "s");
}

static int step_write(struct run *run, struct cm_error *err)
{
	const struct cm_host_git_tree tree = { &run->opts->wants, run->git_dir,
					       run->target.partial_path, run->taken.commit };
	int r = write_config(run, err);

	if (r == CM_OK && run->taken.is_unborn)
		return cm_report_note(run->rep, err,
				      "branch '%s' has no commits: the checkout is empty",
				      run->taken.branch);
	if (r == CM_OK)
		r = write_head(run, err);
	if (r == CM_OK)
		r = write_remote_head(run, err);
	if (r == CM_OK)
		r = cm_host_git_tree_checkout(&run->git, &tree, run->rep, err);
	return r == CM_OK ? note_submodules(run, err) : r;
}

static int step_finish(struct run *run, struct cm_error *err)
{
	struct cm_report *rep = run->rep;
	int r = cm_target_finish(&run->target, err);

	if (r < 0)
		return r;
	rep->ref = cm_ptr_take(&run->taken.ref);
	rep->branch = cm_ptr_take(&run->taken.branch);
	memcpy(rep->commit, run->taken.commit, sizeof(run->taken.commit));
	cm_report_progress(rep, "done", rep->files, rep->files);
	return CM_OK;
}

static int (*const steps[])(struct run *, struct cm_error *) = {
	step_source, step_refs, step_objects, step_write, step_finish,
};

int cm_host_git_checkout(const struct cm_checkout_options *opts, struct cm_report *rep,
			 struct cm_error *err)
{
	struct run run = {
		.opts = opts, .rep = rep, .git = CM_HOST_GIT_INIT, .target = CM_TARGET_INIT
	};
	int r = CM_OK;

	for (size_t i = 0; i < CM_ARRAY_SIZE(steps) && r == CM_OK; i++)
		r = steps[i](&run, err);
	cm_target_clear(&run.target);
	cm_host_git_taken_clear(&run.taken);
	cm_host_git_close(&run.git);
	free(run.source);
	return r;
}
