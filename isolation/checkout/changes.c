/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/checkout/changes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/path.h"

#define DEPTH_MAX 64

static int out_of_memory(struct cm_error *err)
{
	return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
}

static int tree_of(git_repository *repo, const git_oid *commit_id, git_tree **ret,
		   struct cm_error *err)
{
	CM_AUTO_GIT(git_commit) git_commit *commit = NULL;

	if (git_commit_lookup(&commit, repo, commit_id) < 0 || git_commit_tree(ret, commit) < 0)
		return cm_library_error(err, "cannot read the commit");
	return CM_OK;
}

/* Whatever libgit2 makes of a name: these are never opened. */
static bool is_safe(const char *path)
{
	while (*path != '\0') {
		size_t len = strcspn(path, "/");

		if (len == 0 || len > NAME_MAX || (len == 1 && path[0] == '.') ||
		    (len == 2 && path[0] == '.' && path[1] == '.') ||
		    (len == 4 && strncasecmp(path, ".git", 4) == 0))
			return false;
		path += len;
		path += *path == '/';
	}
	return true;
}

static bool is_attributes(const char *path)
{
	const char *slash = strrchr(path, '/');

	return strcmp(slash ? slash + 1 : path, ".gitattributes") == 0;
}

/* libgit2 knows .git in all its spellings; it checks each name that comes into the index. */
static int check_names(struct cm_existing *ex, git_tree *tree, struct cm_changes *changes,
		       struct cm_error *err)
{
	CM_AUTO_GIT(git_index) git_index *index = NULL;
	size_t n;

	if (git_repository_index(&index, ex->repo) < 0)
		return cm_library_error(err, "cannot read the index of '%s'", ex->path);
	if (git_index_read_tree(index, tree) < 0)
		return cm_library_error(err, "cannot read the commit's tree");
	n = git_index_entrycount(index);
	for (size_t i = 0; i < n; i++) {
		const char *path = git_index_get_byindex(index, i)->path;

		if (!is_safe(path))
			return cm_error_set(err, CM_E_CHECKOUT, 0,
					    "the commit has the name '%.200s', which no file may "
					    "have",
					    path);
		changes->has_attributes = changes->has_attributes || is_attributes(path);
	}
	return CM_OK;
}

static int compare_changes(const void *a, const void *b)
{
	const struct cm_change *x = a;
	const struct cm_change *y = b;

	return strcmp(x->path, y->path);
}

static int fill(struct cm_changes *changes, const git_diff *diff, struct cm_error *err)
{
	size_t n = git_diff_num_deltas(diff);

	changes->v = cm_calloc(n + 1, sizeof(*changes->v));
	if (!changes->v)
		return out_of_memory(err);
	for (size_t i = 0; i < n; i++) {
		const git_diff_delta *delta = git_diff_get_delta(diff, i);
		struct cm_change *c = &changes->v[i];
		bool has_old = delta->status != GIT_DELTA_ADDED;
		bool has_new = delta->status != GIT_DELTA_DELETED;

		c->old_mode = has_old ? delta->old_file.mode : 0;
		c->new_mode = has_new ? delta->new_file.mode : 0;
		c->old_id = delta->old_file.id;
		c->new_id = delta->new_file.id;
		c->path = cm_strdup(has_new ? delta->new_file.path : delta->old_file.path);
		if (!c->path)
			return out_of_memory(err);
		changes->n++;
		changes->has_attributes = changes->has_attributes || is_attributes(c->path);
	}
	if (n > 1)
		qsort(changes->v, n, sizeof(*changes->v), compare_changes);
	return CM_OK;
}

static int read_changes(struct cm_existing *ex, const git_oid *old_commit,
			const git_oid *new_commit, struct cm_changes *changes, struct cm_error *err)
{
	CM_AUTO_GIT(git_tree) git_tree *old_tree = NULL;
	CM_AUTO_GIT(git_tree) git_tree *new_tree = NULL;
	CM_AUTO_GIT(git_diff) git_diff *diff = NULL;
	git_diff_options opts = GIT_DIFF_OPTIONS_INIT;
	int r = old_commit ? tree_of(ex->repo, old_commit, &old_tree, err) : CM_OK;

	if (r == CM_OK)
		r = tree_of(ex->repo, new_commit, &new_tree, err);
	if (r == CM_OK)
		r = check_names(ex, new_tree, changes, err);
	if (r < 0)
		return r;
	opts.flags = GIT_DIFF_INCLUDE_TYPECHANGE;
	if (git_diff_tree_to_tree(&diff, ex->repo, old_tree, new_tree, &opts) < 0)
		return cm_library_error(err, "cannot compare the commits");
	return fill(changes, diff, err);
}

int cm_changes_read(struct cm_existing *ex, const git_oid *old_commit, const git_oid *new_commit,
		    struct cm_changes *ret, struct cm_error *err)
{
	struct cm_changes changes = { NULL };
	int r = read_changes(ex, old_commit, new_commit, &changes, err);

	if (old_commit)
		changes.old_commit = *old_commit;
	changes.new_commit = *new_commit;
	if (r < 0)
		cm_changes_clear(&changes);
	else
		*ret = changes;
	return r;
}

void cm_changes_clear(struct cm_changes *changes)
{
	for (size_t i = 0; i < changes->n; i++)
		free(changes->v[i].path);
	free(changes->v);
	changes->v = NULL;
	changes->n = 0;
}

static int apply_filters(struct cm_existing *ex, const git_oid *commit, const char *path,
			 struct cm_content *content, struct cm_error *err)
{
	git_filter_options opts = GIT_FILTER_OPTIONS_INIT;
	git_filter_list *filters = NULL;
	int r;

	opts.flags = GIT_FILTER_ATTRIBUTES_FROM_COMMIT;
	opts.attr_commit_id = *commit;
	r = git_filter_list_load_ext(&filters, ex->repo, content->blob, path,
				     GIT_FILTER_TO_WORKTREE, &opts);
	if (r == 0 && filters)
		r = git_filter_list_apply_to_blob(&content->filtered, filters, content->blob);
	if (r < 0)
		r = cm_library_error(err, "cannot read '%s'", path);
	else if (filters) {
		content->data = content->filtered.ptr;
		content->len = content->filtered.size;
	}
	git_filter_list_free(filters);
	return r < 0 ? r : CM_OK;
}

int cm_changes_content(struct cm_existing *ex, const struct cm_changes *changes,
		       const struct cm_change *change, bool is_new, struct cm_content *ret,
		       struct cm_error *err)
{
	const git_oid *id = is_new ? &change->new_id : &change->old_id;
	uint32_t mode = is_new ? change->new_mode : change->old_mode;

	*ret = (struct cm_content){ .filtered = GIT_BUF_INIT };
	if (git_blob_lookup(&ret->blob, ex->repo, id) < 0)
		return cm_library_error(err, "cannot read '%s'", change->path);
	ret->data = git_blob_rawcontent(ret->blob);
	ret->len = (size_t)git_blob_rawsize(ret->blob);
	if (mode == GIT_FILEMODE_LINK || !changes->has_attributes)
		return CM_OK;
	return apply_filters(ex, is_new ? &changes->new_commit : &changes->old_commit, change->path,
			     ret, err);
}

void cm_content_clear(struct cm_content *content)
{
	git_blob_free(content->blob);
	git_buf_dispose(&content->filtered);
	content->blob = NULL;
}

int cm_changes_parent(const struct cm_existing *ex, const char *path, int *ret_fd,
		      const char **ret_base)
{
	CM_AUTO_FD int fd = openat(ex->dir_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	const char *slash;

	*ret_base = path;
	while (fd >= 0 && (slash = strchr(*ret_base, '/')) != NULL) {
		char name[NAME_MAX + 1];
		size_t len = (size_t)(slash - *ret_base);
		int next;

		if (len > NAME_MAX)
			return -ENAMETOOLONG;
		memcpy(name, *ret_base, len);
		name[len] = '\0';
		*ret_base = slash + 1;
		next = openat(fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			return errno == ELOOP ? -ENOTDIR : -errno;
		cm_fd_close(&fd);
		fd = next;
	}
	if (fd < 0)
		return -errno;
	*ret_fd = cm_fd_take(&fd);
	return 0;
}

struct look {
	struct cm_existing *ex;
	struct cm_changes *changes;
	git_index *index;
	const struct stat *index_st;
};

static const struct cm_change *find(const struct cm_changes *changes, const char *path)
{
	const struct cm_change key = { .path = (char *)(uintptr_t)path };

	return changes->n == 0
		       ? NULL
		       : bsearch(&key, changes->v, changes->n, sizeof(key), compare_changes);
}

static bool goes(const struct look *l, const char *path)
{
	const struct cm_change *c = find(l->changes, path);

	return c && c->old_mode != 0 && c->new_mode == 0;
}

static void close_dir(DIR **d)
{
	if (*d)
		(void)closedir(*d);
}

/* Is anything below a directory that does not go? What cannot be read is somebody's. */
static bool holds_work(const struct look *l, int parent_fd, const char *name, const char *path,
		       int depth)
{
	int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	__attribute__((cleanup(close_dir))) DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	if (!d || depth > DEPTH_MAX) {
		if (!d && fd >= 0)
			(void)close(fd);
		return true;
	}
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): each directory is one thread's */
	while ((e = readdir(d)) != NULL) {
		CM_AUTO_FREE char *below = NULL;
		struct stat st;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		below = cm_path_join(path, e->d_name);
		if (!below || fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return true;
		if (S_ISDIR(st.st_mode) ? holds_work(l, fd, e->d_name, below, depth + 1)
					: !goes(l, below))
			return true;
	}
	return false;
}

static bool is_same_link(int dir_fd, const char *name, const struct cm_content *content)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(dir_fd, name, target, sizeof(target));

	return n >= 0 && (size_t)n == content->len && memcmp(target, content->data, (size_t)n) == 0;
}

static bool is_same_file(int dir_fd, const char *name, const struct cm_content *content)
{
	CM_AUTO_FD int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	CM_AUTO_FREE char *chunk = cm_malloc(65536);
	size_t at = 0;
	ssize_t n;

	if (fd < 0 || !chunk)
		return false;
	while ((n = read(fd, chunk, 65536)) > 0) {
		if ((size_t)n > content->len - at ||
		    memcmp(chunk, content->data + at, (size_t)n) != 0)
			return false;
		at += (size_t)n;
	}
	return n == 0 && at == content->len;
}

static bool has_mode(const struct stat *st, uint32_t mode)
{
	if (S_ISLNK(st->st_mode))
		return mode == GIT_FILEMODE_LINK;
	if (!S_ISREG(st->st_mode))
		return false;
	return mode ==
	       ((st->st_mode & S_IXUSR) != 0 ? GIT_FILEMODE_BLOB_EXECUTABLE : GIT_FILEMODE_BLOB);
}

/* 1: it is the same; 0: another; negative: the error's code */
static int is_same(const struct look *l, const struct cm_change *c, bool is_new, int dir_fd,
		   const char *name, struct cm_error *err)
{
	uint32_t mode = is_new ? c->new_mode : c->old_mode;
	struct cm_content content;
	int r;

	if (mode == 0 || mode == GIT_FILEMODE_COMMIT || !has_mode(&c->st, mode))
		return 0;
	r = cm_changes_content(l->ex, l->changes, c, is_new, &content, err);
	if (r == CM_OK && S_ISLNK(c->st.st_mode))
		r = is_same_link(dir_fd, name, &content);
	else if (r == CM_OK)
		r = (uint64_t)c->st.st_size == content.len && is_same_file(dir_fd, name, &content);
	cm_content_clear(&content);
	return r;
}

/* What the index says of a file whose times it has is so, unless both are of the same moment. */
static bool is_known(const struct look *l, const struct cm_change *c, const git_index_entry *e)
{
	const struct timespec *written = &l->index_st->st_mtim;
	const struct stat *st = &c->st;

	return e && e->mode == c->old_mode && git_oid_equal(&e->id, &c->old_id) &&
	       has_mode(st, e->mode) && e->file_size == (uint32_t)st->st_size &&
	       e->ino == (uint32_t)st->st_ino && e->mtime.seconds == (int32_t)st->st_mtim.tv_sec &&
	       e->mtime.nanoseconds == (uint32_t)st->st_mtim.tv_nsec &&
	       e->ctime.seconds == (int32_t)st->st_ctim.tv_sec &&
	       e->ctime.nanoseconds == (uint32_t)st->st_ctim.tv_nsec &&
	       (st->st_mtim.tv_sec < written->tv_sec ||
		(st->st_mtim.tv_sec == written->tv_sec && st->st_mtim.tv_nsec < written->tv_nsec));
}

static int look_at_file(const struct look *l, struct cm_change *c, const git_index_entry *e,
			int dir_fd, const char *name, struct cm_error *err)
{
	int r;

	if (is_known(l, c, e)) {
		c->state = CM_CHANGE_OLD;
		return CM_OK;
	}
	c->state = CM_CHANGE_OTHER;
	r = is_same(l, c, false, dir_fd, name, err);
	if (r > 0)
		c->state = CM_CHANGE_OLD;
	if (r == 0) {
		r = is_same(l, c, true, dir_fd, name, err);
		if (r > 0)
			c->state = CM_CHANGE_NEW;
	}
	return r < 0 ? r : CM_OK;
}

/* A directory at the place of a file, or of a submodule. */
static enum cm_change_state look_at_dir(const struct look *l, const struct cm_change *c, int dir_fd,
					const char *name)
{
	/* a submodule's files are its own */
	if (c->old_mode == GIT_FILEMODE_COMMIT &&
	    (c->new_mode == 0 || c->new_mode == GIT_FILEMODE_COMMIT))
		return CM_CHANGE_OLD;
	if (c->old_mode == 0 && c->new_mode == GIT_FILEMODE_COMMIT)
		return CM_CHANGE_NEW;
	if (holds_work(l, dir_fd, name, c->path, 0))
		return CM_CHANGE_OTHER;
	if (c->old_mode == GIT_FILEMODE_COMMIT)
		return CM_CHANGE_OLD;
	return CM_CHANGE_ABSENT;
}

static int look_at(const struct look *l, struct cm_change *c, const git_index_entry *e,
		   struct cm_error *err)
{
	CM_AUTO_FD int dir_fd = -1;
	const char *name;
	int r = cm_changes_parent(l->ex, c->path, &dir_fd, &name);

	c->state = CM_CHANGE_ABSENT;
	if (r == -ENOTDIR) {
		CM_AUTO_FREE char *in_the_way =
			cm_asprintf("%.*s", (int)(name - c->path - 1), c->path);

		if (!in_the_way)
			return out_of_memory(err);
		if (!goes(l, in_the_way) && c->new_mode != 0)
			c->state = CM_CHANGE_OTHER;
		return CM_OK;
	}
	if (r == 0 && fstatat(dir_fd, name, &c->st, AT_SYMLINK_NOFOLLOW) < 0)
		r = -errno;
	if (r == -ENOENT)
		return CM_OK;
	if (r < 0)
		return cm_library_sys_error(err, -r, "cannot look at '%s'", c->path);
	if (!S_ISDIR(c->st.st_mode))
		return look_at_file(l, c, e, dir_fd, name, err);
	c->state = look_at_dir(l, c, dir_fd, name);
	return CM_OK;
}

static bool would_lose(const struct cm_change *c, const git_index_entry *e)
{
	bool is_new_in_index = e && c->new_mode != 0 && e->mode == c->new_mode &&
			       git_oid_equal(&e->id, &c->new_id);

	/* what is staged is somebody's work as much as what is in the tree */
	if (e ? !c->is_old_in_index && !is_new_in_index : c->old_mode != 0 && c->new_mode != 0)
		return true;
	switch (c->state) {
	case CM_CHANGE_ABSENT:
		/* a submodule that is not there is one that nobody has fetched */
		return c->old_mode != 0 && c->new_mode != 0 && c->old_mode != GIT_FILEMODE_COMMIT;
	case CM_CHANGE_OLD:
		return false;
	case CM_CHANGE_NEW:
		return false;
	case CM_CHANGE_OTHER:
		break;
	}
	return true;
}

int cm_changes_look(struct cm_existing *ex, struct cm_changes *changes, git_index *index,
		    const struct stat *index_st, struct cm_error *err)
{
	const struct look l = { ex, changes, index, index_st };

	changes->n_blocked = 0;
	for (size_t i = 0; i < changes->n; i++) {
		struct cm_change *c = &changes->v[i];
		const git_index_entry *e = git_index_get_bypath(index, c->path, 0);
		int r = look_at(&l, c, e, err);

		if (r < 0)
			return r;
		c->is_old_in_index = e && c->old_mode != 0 && e->mode == c->old_mode &&
				     git_oid_equal(&e->id, &c->old_id);
		c->is_blocked = would_lose(c, e);
		changes->n_blocked += c->is_blocked;
	}
	return CM_OK;
}
