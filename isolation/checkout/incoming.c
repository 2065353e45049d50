/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where what is copied meets what is there.
 *
 * The list of shallow commits is the delicate part. A commit on it has no parents for git, whether
 * they are there or not; one that is not on it must have them. So a commit of the source's list comes
 * onto the checkout's when it is new here and lacks a parent, and before anything names it.
 */
#include "isolation/checkout/incoming.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <git2/odb_backend.h>
#include <git2/sys/odb_backend.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "isolation/checkout/objects.h"
#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/path.h"
#include "runtime/base/text.h"

#define OBJECTS "objects"
#define SHALLOW "shallow"
#define SHALLOW_MAX (16UL * 1024 * 1024)

static int out_of_memory(struct cm_error *err)
{
	return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
}

static int cannot_write(const struct cm_existing *ex, int sys_errno, struct cm_error *err)
{
	return cm_library_sys_error(err, sys_errno, "cannot write the objects of '%s'", ex->path);
}

static bool has_loose(void *data, const char *hex)
{
	git_oid id;

	return git_oid_fromstr(&id, hex) == 0 &&
	       git_odb_exists_ext(data, &id, GIT_ODB_LOOKUP_NO_REFRESH) == 1;
}

static int stop_at_missing(const git_oid *id, void *data)
{
	return git_odb_exists_ext(data, id, GIT_ODB_LOOKUP_NO_REFRESH) == 1 ? 0 : GIT_EUSER;
}

/* By its content: the checkout's own git may have packed the same objects anew. */
static bool has_pack(void *data, const char *pack_dir, const char *stem)
{
	CM_AUTO_FREE char *idx = cm_asprintf("%s/%s.idx", pack_dir, stem);
	CM_AUTO_GIT(git_odb) git_odb *pack = NULL;
	git_odb_backend *backend = NULL;

	if (!idx || git_odb_new(&pack) < 0 || git_odb_backend_one_pack(&backend, idx) < 0)
		return false;
	if (git_odb_add_backend(pack, backend, 1) < 0) {
		backend->free(backend);
		return false;
	}
	return git_odb_foreach(pack, stop_at_missing, data) == 0;
}

/* One that is there has the same content, by its name. */
static int move(const struct cm_existing *ex, int from_fd, int to_fd, const char *name,
		struct cm_error *err)
{
	if (renameat2(from_fd, name, to_fd, name, RENAME_NOREPLACE) == 0 || errno == EEXIST)
		return CM_OK;
	/* file systems without that flag */
	if ((errno == EINVAL || errno == ENOSYS) && renameat(from_fd, name, to_fd, name) == 0)
		return CM_OK;
	return cannot_write(ex, errno, err);
}

static void close_dir(DIR **d)
{
	if (*d)
		(void)closedir(*d);
}

/* The files of one directory of the new objects, those whose name ends so. */
static int move_files(const struct cm_existing *ex, int from_fd, int to_fd, const char *end,
		      struct cm_error *err)
{
	int again = openat(from_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	__attribute__((cleanup(close_dir))) DIR *d = again < 0 ? NULL : fdopendir(again);
	const struct dirent *e;
	int r = CM_OK;

	if (!d) {
		if (again >= 0)
			(void)close(again);
		return cannot_write(ex, errno, err);
	}
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): each directory is one thread's */
	while (r == CM_OK && (e = readdir(d)) != NULL) {
		size_t len = strlen(e->d_name);

		if (e->d_name[0] != '.' && len >= strlen(end) &&
		    strcmp(e->d_name + len - strlen(end), end) == 0)
			r = move(ex, from_fd, to_fd, e->d_name, err);
	}
	return r;
}

static int open_pair(const struct cm_existing *ex, int from_fd, int to_fd, const char *name,
		     int *ret_from, int *ret_to, struct cm_error *err)
{
	*ret_from = openat(from_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (*ret_from < 0)
		return errno == ENOENT ? CM_OK : cannot_write(ex, errno, err);
	if (mkdirat(to_fd, name, 0777) < 0 && errno != EEXIST)
		return cannot_write(ex, errno, err);
	*ret_to = openat(to_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return *ret_to < 0 ? cannot_write(ex, errno, err) : CM_OK;
}

/* An index after its pack: one without the other is not seen. */
static int publish(const struct cm_existing *ex, int from_fd, int to_fd, struct cm_error *err)
{
	int r = CM_OK;

	for (unsigned int i = 0; i <= 256 && r == CM_OK; i++) {
		CM_AUTO_FD int from = -1;
		CM_AUTO_FD int to = -1;
		char name[8] = "pack";

		if (i < 256)
			(void)snprintf(name, sizeof(name), "%02x", i);
		r = open_pair(ex, from_fd, to_fd, name, &from, &to, err);
		if (r < 0 || from < 0)
			continue;
		r = move_files(ex, from, to, i < 256 ? "" : ".pack", err);
		if (r == CM_OK && i == 256)
			r = move_files(ex, from, to, ".idx", err);
	}
	return r;
}

static int check_arrived(const struct cm_existing *ex, git_odb *odb, const struct cm_refs *refs,
			 struct cm_error *err)
{
	if (git_odb_refresh(odb) < 0)
		return cm_library_error(err, "cannot read the objects of '%s'", ex->path);
	for (size_t i = 0; i < refs->n; i++) {
		const struct cm_ref *ref = &refs->v[i];

		if (ref->kind == CM_REF_REMOTE || git_odb_exists(odb, &ref->oid))
			continue;
		cm_error_set(err, CM_E_CHECKOUT, 0, "object of '%s' is missing from the copy",
			     ref->name);
		cm_error_hint(err, "try again when nothing writes to the source; then check it "
				   "with 'git fsck'");
		return CM_E_CHECKOUT;
	}
	return CM_OK;
}

/* Lines of 40 digits; "" where there is none. */
static int read_shallow(int dir_fd, char **ret, struct cm_error *err)
{
	CM_AUTO_FD int fd = openat(dir_fd, SHALLOW, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	char *text;
	ssize_t n = 0;

	if (fd >= 0 &&
	    (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > (off_t)SHALLOW_MAX))
		return cm_error_set(err, CM_E_CHECKOUT, 0, "'" SHALLOW "' is no list of commits");
	text = cm_calloc(1, fd >= 0 ? (size_t)st.st_size + 2 : 1);
	if (!text)
		return out_of_memory(err);
	if (fd >= 0)
		n = cm_read_all(fd, text, (size_t)st.st_size + 1);
	if (n < 0) {
		free(text);
		return cm_library_sys_error(err, (int)-n, "cannot read '" SHALLOW "'");
	}
	*ret = text;
	return CM_OK;
}

bool cm_incoming_is_shallow(const struct cm_existing *ex)
{
	struct stat st;

	return fstatat(ex->git_fd, SHALLOW, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_size > 0;
}

/* Read as it is: for libgit2 a commit on such a list may have no parents. */
static bool lacks_parent(git_odb *odb, const git_oid *id)
{
	static const char key[] = "parent ";
	CM_AUTO_GIT(git_odb_object) git_odb_object *object = NULL;
	const char *line;
	const char *end;

	if (git_odb_read(&object, odb, id) < 0 || git_odb_object_type(object) != GIT_OBJECT_COMMIT)
		return true;
	line = git_odb_object_data(object);
	end = line + git_odb_object_size(object);
	while (line < end && *line != '\n') {
		const char *next = memchr(line, '\n', (size_t)(end - line));
		size_t len = next ? (size_t)(next - line) : (size_t)(end - line);
		git_oid parent;

		if (len == sizeof(key) - 1 + GIT_OID_HEXSZ && cm_text_has_prefix(line, key) &&
		    git_oid_fromstrn(&parent, line + sizeof(key) - 1, GIT_OID_HEXSZ) == 0 &&
		    !git_odb_exists(odb, &parent))
			return true;
		line += len + 1;
	}
	return false;
}

static int replace_shallow(struct cm_existing *ex, const struct cm_buf *text, struct cm_error *err)
{
	const char *const locked[] = { SHALLOW };
	const struct cm_strv names = { .v = (char **)(uintptr_t)locked, .n = 1 };
	CM_AUTO_FD int fd = -1;
	int r = cm_existing_will_lock(ex, &names, err);

	if (r < 0)
		return r;
	fd = openat(ex->git_fd, SHALLOW ".lock",
		    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (fd < 0 && errno == EEXIST) {
		cm_error_set(err, CM_E_BUSY, 0, "git is at work in '%s': it holds '" SHALLOW "'",
			     ex->path);
		cm_error_hint(err, "try again when it is through");
		return CM_E_BUSY;
	}
	r = fd < 0 ? -errno : cm_write_all(fd, text->data ? text->data : "", text->len);
	if (r == 0 && text->len > 0 &&
	    renameat(ex->git_fd, SHALLOW ".lock", ex->git_fd, SHALLOW) < 0)
		r = -errno;
	if (r == 0 && text->len == 0 && unlinkat(ex->git_fd, SHALLOW, 0) < 0 && errno != ENOENT)
		r = -errno;
	if (fd >= 0 && (r < 0 || text->len == 0))
		(void)unlinkat(ex->git_fd, SHALLOW ".lock", 0);
	return r < 0 ? cannot_write(ex, -r, err) : CM_OK;
}

static bool has_line(const char *text, const char *hex)
{
	for (const char *at = text; (at = strstr(at, hex)) != NULL; at++) {
		if (at == text || at[-1] == '\n')
			return true;
	}
	return false;
}

/* news: of the source's list what the checkout did not have before; what lacks parents is added. */
static int add_shallow(struct cm_existing *ex, git_odb *odb, const struct cm_strv *news,
		       struct cm_error *err)
{
	CM_AUTO_FREE char *has = NULL;
	CM_AUTO_BUF struct cm_buf text = { 0 };
	size_t n_added = 0;
	int r = read_shallow(ex->git_fd, &has, err);

	if (r < 0)
		return r;
	cm_buf_init(&text, 2 * SHALLOW_MAX);
	cm_buf_puts(&text, has);
	if (text.len > 0 && text.data[text.len - 1] != '\n')
		cm_buf_putc(&text, '\n');
	for (size_t i = 0; i < news->n; i++) {
		git_oid id;

		if (has_line(has, news->v[i]) || git_oid_fromstr(&id, news->v[i]) < 0 ||
		    !git_odb_exists(odb, &id) || !lacks_parent(odb, &id))
			continue;
		cm_buf_printf(&text, "%s\n", news->v[i]);
		n_added++;
	}
	if (cm_buf_status(&text) != CM_OK)
		return out_of_memory(err);
	return n_added > 0 ? replace_shallow(ex, &text, err) : CM_OK;
}

static int list_news(git_odb *odb, git_repository *source, struct cm_strv *ret,
		     struct cm_error *err)
{
	CM_AUTO_FD int fd =
		open(git_repository_commondir(source), O_PATH | O_DIRECTORY | O_CLOEXEC);
	CM_AUTO_FREE char *text = NULL;
	char *rest;
	int r;

	if (fd < 0)
		return cm_library_sys_error(err, errno, "cannot open the source");
	r = read_shallow(fd, &text, err);
	if (r < 0)
		return r;
	rest = text;
	while (rest) {
		const char *line = strsep(&rest, "\n");
		git_oid id;

		if (strlen(line) == GIT_OID_HEXSZ && git_oid_fromstr(&id, line) == 0 &&
		    !git_odb_exists(odb, &id) && cm_strv_add(ret, line) != CM_OK)
			return out_of_memory(err);
	}
	return CM_OK;
}

static int copy(struct cm_existing *ex, git_odb *odb, git_repository *source, struct cm_report *rep,
		struct cm_error *err)
{
	const struct cm_objects_had had = { has_loose, has_pack, odb };
	CM_AUTO_GIT_BUF git_buf path = GIT_BUF_INIT;
	CM_AUTO_FD int new_fd = -1;
	CM_AUTO_FD int objects_fd =
		openat(ex->git_fd, OBJECTS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	bool is_partial;
	int r;

	if (objects_fd < 0 || mkdirat(ex->scratch_fd, OBJECTS, 0700) < 0)
		return cannot_write(ex, errno, err);
	new_fd = openat(ex->scratch_fd, OBJECTS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (new_fd < 0)
		return cannot_write(ex, errno, err);
	if (git_repository_item_path(&path, source, GIT_REPOSITORY_ITEM_OBJECTS) < 0)
		return cm_library_error(err, "cannot find the objects of the source");
	r = cm_objects_copy(path.ptr, new_fd, &had, rep, &is_partial, err);
	return r == CM_OK ? publish(ex, new_fd, objects_fd, err) : r;
}

int cm_incoming_objects(struct cm_existing *ex, git_repository *source, const struct cm_refs *refs,
			struct cm_report *rep, struct cm_error *err)
{
	CM_AUTO_GIT(git_odb) git_odb *odb = NULL;
	CM_AUTO_STRV struct cm_strv news = { 0 };
	int r;

	if (git_repository_odb(&odb, ex->repo) < 0)
		return cm_library_error(err, "cannot open the objects of '%s'", ex->path);
	r = list_news(odb, source, &news, err);
	if (r == CM_OK)
		r = copy(ex, odb, source, rep, err);
	if (r == CM_OK)
		r = check_arrived(ex, odb, refs, err);
	return r == CM_OK && news.n > 0 ? add_shallow(ex, odb, &news, err) : r;
}

int cm_incoming_unshallow(struct cm_existing *ex, struct cm_error *err)
{
	const struct cm_buf none = { 0 };

	return replace_shallow(ex, &none, err);
}
