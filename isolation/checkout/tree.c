/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing a commit's files by libgit2, which checks every name (".git" in all the spellings that
 * a file system may take for it, "..", and so on) and goes through no symbolic link.
 *
 * libgit2 runs no hook and starts no filter program whatever attributes and configuration say:
 * its filters are the two built in (line ends, ident) and the observer below.
 */
#include "isolation/checkout/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <git2/sys/filter.h>
#include <string.h>

#include "isolation/checkout/gitlinks.h"
#include "isolation/checkout/lfs.h"
#include "isolation/checkout/modules.h"
#include "runtime/base/fd.h"

/*
 * Sees each file to which the attribute filter=lfs applies, and changes none: a pointer without
 * the attribute is a text file also for git-lfs. One a process, since a filter can be registered
 * but not given to one checkout.
 */
struct lfs_observer {
	git_filter base;
	uint64_t pointers;
};

static int observe_lfs(git_filter *self, void **payload, const git_filter_source *src,
		       const char **attr_values)
{
	struct lfs_observer *observer = (struct lfs_observer *)self;
	const git_oid *id = git_filter_source_id(src);

	(void)payload;
	(void)attr_values;
	if (git_filter_source_mode(src) == GIT_FILTER_TO_WORKTREE && id &&
	    cm_lfs_is_pointer_blob(git_filter_source_repo(src), id))
		observer->pointers++;
	return GIT_PASSTHROUGH;
}

static struct lfs_observer lfs_observer = {
	.base = {
		.version = GIT_FILTER_VERSION,
		.attributes = "filter=lfs",
		.check = observe_lfs,
	},
};

static void report_files(const char *path, size_t done, size_t total, void *payload)
{
	(void)path;
	cm_report_progress(payload, "files", done, total);
}

/*
 * The index is filled from the tree before anything is written, and the index is what is checked
 * out: the attributes of a file then never depend on whether its .gitattributes, which may come
 * later in the order of names, is on disk already.
 */
static int fill_index(git_repository *repo, const git_oid *commit_id, git_index **ret,
		      struct cm_error *err)
{
	CM_AUTO_GIT(git_commit) git_commit *commit = NULL;
	CM_AUTO_GIT(git_tree) git_tree *tree = NULL;
	CM_AUTO_GIT(git_index) git_index *index = NULL;

	if (git_commit_lookup(&commit, repo, commit_id) < 0 || git_commit_tree(&tree, commit) < 0)
		return cm_library_error(err, "cannot read the commit");
	if (git_repository_index(&index, repo) < 0 || git_index_read_tree(index, tree) < 0)
		return cm_library_error(err, "cannot read the commit's tree");
	*ret = index;
	index = NULL;
	return CM_OK;
}

/*
 * Without one there is nothing to look up for any file: the target has no info/attributes, and no
 * configuration is read that could name another place.
 */
static bool has_attributes(git_index *index)
{
	static const char name[] = ".gitattributes";
	size_t count = git_index_entrycount(index);

	for (size_t i = 0; i < count; i++) {
		const char *path = git_index_get_byindex(index, i)->path;
		const char *slash = strrchr(path, '/');

		if (strcmp(slash ? slash + 1 : path, name) == 0)
			return true;
	}
	return false;
}

static int write_files(git_repository *repo, git_index *index, const char *dir,
		       struct cm_report *rep, struct cm_error *err)
{
	git_checkout_options opts = GIT_CHECKOUT_OPTIONS_INIT;

	opts.checkout_strategy = GIT_CHECKOUT_FORCE;
	/* the work tree is empty, so whatever stands in the way came out of the same hostile tree */
	opts.file_open_flags = O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW;
	opts.disable_filters = !has_attributes(index);
	opts.target_directory = dir;
	opts.progress_cb = report_files;
	opts.progress_payload = rep;
	if (git_filter_register("casemate-lfs", &lfs_observer.base, GIT_FILTER_DRIVER_PRIORITY) < 0)
		return cm_library_error(err, "cannot watch for LFS pointers");
	lfs_observer.pointers = 0;
	if (git_checkout_index(repo, index, &opts) < 0) {
		int r = cm_library_error(err, "cannot write the files");

		git_filter_unregister("casemate-lfs");
		return r;
	}
	git_filter_unregister("casemate-lfs");
	rep->lfs_pointers = lfs_observer.pointers;
	return CM_OK;
}

static int write_tree(git_repository *repo, git_index *index, const char *dir,
		      struct cm_report *rep, struct cm_error *err)
{
	CM_AUTO_FD int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	__attribute__((cleanup(cm_gitlinks_clear))) struct cm_gitlinks links = { 0 };
	int r;

	if (dir_fd < 0)
		return cm_library_sys_error(err, errno, "cannot open '%s'", dir);
	r = cm_gitlinks_take(index, &links, err);
	if (r == CM_OK)
		r = write_files(repo, index, dir, rep, err);
	if (r == CM_OK)
		r = cm_gitlinks_restore(index, dir_fd, &links, err);
	return r;
}

/*
 * The repository is opened once more as a bare one, and its work tree given as a directory to
 * write to: attributes then come from the index alone. With a work tree libgit2 1.5 resolves the
 * real path of each file's directory for each filter, about 50 system calls a file, and the
 * checkout takes more than twice as long.
 */
int cm_tree_checkout(const char *git_dir, const char *dir, const git_oid *commit,
		     const char *modules_base, struct cm_report *rep, struct cm_error *err)
{
	CM_AUTO_GIT(git_repository) git_repository *repo = NULL;
	CM_AUTO_GIT(git_index) git_index *index = NULL;
	int r;

	if (git_repository_open_bare(&repo, git_dir) < 0)
		return cm_library_error(err, "cannot open '%s'", git_dir);
	r = fill_index(repo, commit, &index, err);
	if (r == CM_OK)
		r = write_tree(repo, index, dir, rep, err);
	if (r == CM_OK)
		r = cm_modules_report(repo, index, modules_base, rep, err);
	if (r == CM_OK)
		r = cm_report_lfs(rep, err);
	if (r == CM_OK)
		rep->files = git_index_entrycount(index) - rep->submodules;
	return r;
}

/* Beyond a sparse checkout there is nothing that a submodule could be put into. */
static int drop_absent(git_index *index)
{
	for (size_t i = git_index_entrycount(index); i-- > 0;) {
		const git_index_entry *e = git_index_get_byindex(index, i);

		if (e->mode == GIT_FILEMODE_COMMIT &&
		    (e->flags_extended & GIT_INDEX_ENTRY_SKIP_WORKTREE) != 0 &&
		    git_index_remove(index, e->path, 0) < 0)
			return -1;
	}
	return 0;
}

int cm_tree_modules(const char *git_dir, const char *modules_base, struct cm_report *rep,
		    struct cm_error *err)
{
	CM_AUTO_GIT(git_repository) git_repository *repo = NULL;
	CM_AUTO_GIT(git_index) git_index *index = NULL;

	if (git_repository_open_bare(&repo, git_dir) < 0 ||
	    git_repository_index(&index, repo) < 0 || drop_absent(index) < 0)
		return cm_library_error(err, "cannot read the index of '%s'", git_dir);
	return cm_modules_report(repo, index, modules_base, rep, err);
}
