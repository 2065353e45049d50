/* SPDX-License-Identifier: Apache-2.0 */
/* The directory that a checkout is made in, and what of a repository is not objects or files. */
#include "isolation/checkout/target.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/path.h"

#define PARTIAL_SUFFIX ".partial"
#define MODULES_SUFFIX ".modules"
#define PACKED_REFS_MAX (1U << 30)
#define SHALLOW_FILE_MAX (16U << 20)

static int out_of_memory(struct cm_error *err)
{
	cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	return CM_E_NOMEM;
}

static int bad_place(const char *dir, const char *why, struct cm_error *err)
{
	cm_error_set(err, CM_E_INVALID, 0, "target '%s' %s", dir, why);
	cm_error_hint(err, "name a directory that does not exist yet, in one that does");
	return CM_E_INVALID;
}

static char *make_absolute(const char *dir)
{
	CM_AUTO_FREE char *cwd = NULL;
	CM_AUTO_FREE char *joined = NULL;

	if (dir[0] == '/')
		return cm_path_clean(dir);
	cwd = realpath(".", NULL);
	joined = cwd ? cm_path_join(cwd, dir) : NULL;
	return joined ? cm_path_clean(joined) : NULL;
}

static int fill_paths(struct cm_target *t, const char *dir, struct cm_error *err)
{
	CM_AUTO_FREE char *full = make_absolute(dir);
	CM_AUTO_FREE char *parent = NULL;
	char *slash;

	if (!full)
		return bad_place(dir, "is no usable path", err);
	slash = strrchr(full, '/');
	if (slash[1] == '\0' || strlen(slash + 1) + strlen(PARTIAL_SUFFIX) > NAME_MAX)
		return bad_place(dir, "is no usable path", err);
	*slash = '\0';
	parent = cm_path_real(full[0] == '\0' ? "/" : full);
	if (!parent) {
		cm_error_set(err, CM_E_NOT_FOUND, errno, "cannot open the parent directory of '%s'",
			     dir);
		cm_error_hint(err, "make it first");
		return CM_E_NOT_FOUND;
	}
	t->path = cm_path_join(parent, slash + 1);
	t->partial_path = t->path ? cm_asprintf("%s" PARTIAL_SUFFIX, t->path) : NULL;
	if (!t->partial_path)
		return out_of_memory(err);
	t->name = cm_path_base(t->path);
	t->partial_name = cm_path_base(t->partial_path);
	t->parent_fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (t->parent_fd < 0)
		return cm_library_sys_error(err, errno, "cannot open '%s'", parent);
	return CM_OK;
}

static int check_absent(const struct cm_target *t, struct cm_error *err)
{
	struct stat st;

	if (fstatat(t->parent_fd, t->name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		cm_error_set(err, CM_E_EXISTS, 0, "target '%s' exists already", t->path);
		cm_error_hint(err, "remove it, or choose another directory");
		return CM_E_EXISTS;
	}
	if (errno != ENOENT)
		return cm_library_sys_error(err, errno, "cannot look at target '%s'", t->path);
	return CM_OK;
}

int cm_target_locate(const char *dir, const char *source_path, struct cm_target *ret,
		     struct cm_error *err)
{
	struct cm_target t = CM_TARGET_INIT;
	int r = fill_paths(&t, dir, err);

	if (r == CM_OK)
		r = check_absent(&t, err);
	/* what is named so will be removed */
	if (r == CM_OK && cm_path_is_below(source_path, t.partial_path))
		r = bad_place(dir, "would overwrite the source", err);
	if (r != CM_OK) {
		cm_target_clear(&t);
		return r;
	}
	*ret = t;
	return CM_OK;
}

/* Somebody else's lock is a running checkout into the same place; a dead one's lock is gone. */
static int remove_leftover(const struct cm_target *t, struct cm_error *err)
{
	CM_AUTO_FD int old = openat(t->parent_fd, t->partial_name,
				    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r;

	if (old >= 0 && flock(old, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) {
		cm_error_set(err, CM_E_BUSY, 0, "another checkout is writing to '%s'",
			     t->partial_path);
		cm_error_hint(err, "wait until it is done");
		return CM_E_BUSY;
	}
	r = cm_remove_tree_at(t->parent_fd, t->partial_name);
	if (r < 0)
		return cm_library_sys_error(err, -r, "cannot remove '%s', left by an earlier run",
					    t->partial_path);
	return CM_OK;
}

static int make_partial(struct cm_target *t, struct cm_error *err)
{
	if (mkdirat(t->parent_fd, t->partial_name, 0777) < 0)
		return cm_library_sys_error(err, errno, "cannot create '%s'", t->partial_path);
	t->partial_fd = openat(t->parent_fd, t->partial_name,
			       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (t->partial_fd < 0)
		return cm_library_sys_error(err, errno, "cannot open '%s'", t->partial_path);
	/* file systems without locks lose the diagnosis above and nothing else */
	if (flock(t->partial_fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
		return cm_error_set(err, CM_E_BUSY, 0, "another checkout is writing to '%s'",
				    t->partial_path);
	return CM_OK;
}

static int init_repository(struct cm_target *t, const struct cm_resolved *res, struct cm_error *err)
{
	git_repository_init_options opts = GIT_REPOSITORY_INIT_OPTIONS_INIT;

	opts.flags = GIT_REPOSITORY_INIT_NO_REINIT;
	/* otherwise libgit2 would ask the configuration for a name */
	opts.initial_head = res->branch ? res->branch : "main";
	if (git_repository_init_ext(&t->repo, t->partial_path, &opts) < 0)
		return cm_library_error(err, "cannot create repository '%s'", t->partial_path);
	t->git_fd = openat(t->partial_fd, ".git", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (t->git_fd < 0)
		return cm_library_sys_error(err, errno, "cannot open '%s/.git'", t->partial_path);
	/* part of libgit2's built-in template; nobody asked for one */
	(void)unlinkat(t->git_fd, "hooks/README.sample", 0);
	return CM_OK;
}

int cm_target_begin_bare(struct cm_target *t, struct cm_error *err)
{
	int r = remove_leftover(t, err);

	return r == CM_OK ? make_partial(t, err) : r;
}

int cm_target_begin(struct cm_target *t, const struct cm_resolved *res, struct cm_error *err)
{
	int r = cm_target_begin_bare(t, err);

	return r == CM_OK ? init_repository(t, res, err) : r;
}

int cm_target_open_objects(const struct cm_target *t, int *ret_fd, struct cm_error *err)
{
	int fd;

	if (mkdirat(t->git_fd, "objects", 0777) < 0 && errno != EEXIST)
		return cm_library_sys_error(err, errno, "cannot create '%s/.git/objects'",
					    t->partial_path);
	fd = openat(t->git_fd, "objects", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return cm_library_sys_error(err, errno, "cannot open '%s/.git/objects'",
					    t->partial_path);
	*ret_fd = fd;
	return CM_OK;
}

static int set_key(git_config *config, const char *key, const char *value, struct cm_error *err)
{
	if (git_config_set_string(config, key, value) < 0)
		return cm_library_error(err, "cannot write '%s' to the configuration", key);
	return CM_OK;
}

static int set_upstream(git_config *config, const struct cm_resolved *res, struct cm_error *err)
{
	CM_AUTO_FREE char *remote = cm_asprintf("branch.%s.remote", res->branch);
	CM_AUTO_FREE char *merge = cm_asprintf("branch.%s.merge", res->branch);
	CM_AUTO_FREE char *upstream = cm_asprintf("refs/heads/%s", res->branch);
	int r;

	if (!remote || !merge || !upstream)
		return out_of_memory(err);
	r = set_key(config, remote, "origin", err);
	return r == CM_OK ? set_key(config, merge, upstream, err) : r;
}

static int write_config(struct cm_target *t, const char *origin, const struct cm_resolved *res,
			struct cm_error *err)
{
	const char *const keys[][2] = {
		{ "remote.origin.url", origin },
		{ "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*" },
		/*
		 * Names that another file system would read as ".git": checked here by libgit2, and
		 * by every git that works on the checkout afterwards, on whatever it is copied to.
		 */
		{ "core.protectNTFS", "true" },
		{ "core.protectHFS", "true" },
	};
	CM_AUTO_GIT(git_config) git_config *config = NULL;
	int r;

	if (git_repository_config(&config, t->repo) < 0)
		return cm_library_error(err, "cannot open the configuration of the checkout");
	for (size_t i = 0; i < CM_ARRAY_SIZE(keys); i++) {
		r = set_key(config, keys[i][0], keys[i][1], err);
		if (r != CM_OK)
			return r;
	}
	return res->branch && res->has_upstream ? set_upstream(config, res, err) : CM_OK;
}

/* Both by libgit2, which also writes the reflogs that "git checkout -" needs. */
static int write_head(struct cm_target *t, const struct cm_resolved *res, struct cm_error *err)
{
	CM_AUTO_GIT(git_reference) git_reference *made = NULL;
	CM_AUTO_FREE char *name = res->branch ? cm_asprintf("refs/heads/%s", res->branch) : NULL;

	if (res->branch && !name)
		return out_of_memory(err);
	if (res->is_unborn)
		return CM_OK;
	if (!res->branch) {
		if (git_repository_set_head_detached(t->repo, &res->commit) < 0)
			return cm_library_error(err, "cannot detach HEAD");
		return CM_OK;
	}
	if (git_reference_create(&made, t->repo, name, &res->commit, 1, "checkout") < 0 ||
	    git_repository_set_head(t->repo, name) < 0)
		return cm_library_error(err, "cannot create branch '%s'", res->branch);
	return CM_OK;
}

static int write_remote_head(struct cm_target *t, const struct cm_refs *refs, struct cm_error *err)
{
	CM_AUTO_GIT(git_reference) git_reference *made = NULL;
	CM_AUTO_FREE char *target = NULL;

	if (!refs->head_name || refs->head_is_unborn)
		return CM_OK;
	target = cm_asprintf("refs/remotes/origin/%s", refs->head_name + strlen("refs/heads/"));
	if (!target)
		return out_of_memory(err);
	if (git_reference_symbolic_create(&made, t->repo, "refs/remotes/origin/HEAD", target, 1,
					  NULL) < 0)
		return cm_library_error(err, "cannot write the remote's HEAD");
	return CM_OK;
}

int cm_target_write_refs(struct cm_target *t, const char *origin, const struct cm_refs *refs,
			 const struct cm_resolved *res, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf packed = { 0 };
	int r;

	cm_buf_init(&packed, PACKED_REFS_MAX);
	r = cm_refs_pack(refs, &packed, err);
	if (r != CM_OK)
		return r;
	r = cm_replace_file_at(t->git_fd, "packed-refs", packed.data, packed.len, 0644, false);
	if (r < 0)
		return cm_library_sys_error(err, -r, "cannot write the refs of the checkout");
	/* names in reflogs, which must not be those of the host's user */
	if (git_repository_set_ident(t->repo, "casemate", "casemate@localhost") < 0)
		return cm_library_error(err, "cannot set the name for reflogs");
	r = write_config(t, origin, res, err);
	if (r == CM_OK)
		r = write_remote_head(t, refs, err);
	if (r == CM_OK)
		r = write_head(t, res, err);
	return r;
}

/* Lines of 40 digits; anything else would be handed to the agent's git as it is. */
static bool is_shallow_list(const char *s, size_t len)
{
	size_t line = GIT_OID_HEXSZ + 1;

	if (len == 0 || len % line != 0)
		return false;
	for (size_t at = 0; at < len; at += line) {
		if (strspn(s + at, "0123456789abcdef") != GIT_OID_HEXSZ ||
		    s[at + GIT_OID_HEXSZ] != '\n')
			return false;
	}
	return true;
}

int cm_target_copy_shallow(const struct cm_target *t, const char *source_common_dir,
			   bool *ret_is_shallow, struct cm_error *err)
{
	CM_AUTO_FREE char *path = cm_path_join(source_common_dir, "shallow");
	CM_AUTO_FREE char *text = NULL;
	struct stat st;
	ssize_t n;
	int r;

	if (!path)
		return out_of_memory(err);
	if (lstat(path, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0) {
		*ret_is_shallow = false;
		return CM_OK;
	}
	text = st.st_size < SHALLOW_FILE_MAX ? cm_malloc((size_t)st.st_size + 1) : NULL;
	n = text ? cm_read_file_at(AT_FDCWD, path, text, (size_t)st.st_size + 1) : -ENOMEM;
	if (n < 0)
		return cm_library_sys_error(err, (int)-n, "cannot read '%s'", path);
	if (!is_shallow_list(text, (size_t)n)) {
		cm_error_set(err, CM_E_CHECKOUT, 0, "'%s' is not a list of commits", path);
		cm_error_hint(err, "check the source with 'git fsck'");
		return CM_E_CHECKOUT;
	}
	r = cm_replace_file_at(t->git_fd, "shallow", text, (size_t)n, 0644, false);
	if (r < 0)
		return cm_library_sys_error(err, -r, "cannot write '%s/.git/shallow'",
					    t->partial_path);
	*ret_is_shallow = true;
	return CM_OK;
}

int cm_target_mark_incomplete(const struct cm_target *t, struct cm_error *err)
{
	CM_AUTO_FREE char *name = cm_asprintf("%s" MODULES_SUFFIX, t->name);

	if (!name)
		return out_of_memory(err);
	/* an empty one is what a killed run left; of another nobody knows whose it is */
	if (unlinkat(t->parent_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT) {
		cm_error_set(err, CM_E_EXISTS, 0, "'%s" MODULES_SUFFIX "' is in the way", t->path);
		cm_error_hint(err, "remove it, or choose another directory");
		return CM_E_EXISTS;
	}
	if (mkdirat(t->parent_fd, name, 0777) < 0)
		return cm_library_sys_error(err, errno, "cannot create '%s" MODULES_SUFFIX "'",
					    t->path);
	return CM_OK;
}

int cm_target_finish(struct cm_target *t, struct cm_error *err)
{
	int r = renameat2(t->parent_fd, t->partial_name, t->parent_fd, t->name, RENAME_NOREPLACE);

	/* file systems without that flag: the check is then a moment older than the rename */
	if (r < 0 && (errno == EINVAL || errno == ENOSYS)) {
		r = check_absent(t, err);
		if (r != CM_OK)
			return r;
		r = renameat(t->parent_fd, t->partial_name, t->parent_fd, t->name);
	}
	if (r < 0 && errno == EEXIST)
		return check_absent(t, err);
	if (r < 0)
		return cm_library_sys_error(err, errno, "cannot rename '%s' to '%s'",
					    t->partial_path, t->path);
	cm_fd_close(&t->partial_fd);
	return CM_OK;
}

void cm_target_clear(struct cm_target *t)
{
	git_repository_free(t->repo);
	t->repo = NULL;
	cm_fd_close(&t->git_fd);
	/*
	 * A failed checkout may be what filled the disk. What cannot be removed stays for the next
	 * run, which says so.
	 */
	if (t->partial_fd >= 0)
		(void)cm_remove_tree_at(t->parent_fd, t->partial_name);
	cm_fd_close(&t->partial_fd);
	cm_fd_close(&t->parent_fd);
	free(t->path);
	free(t->partial_path);
	t->path = NULL;
	t->partial_path = NULL;
}
