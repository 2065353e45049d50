/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copying a local object store.
 *
 * Theory of operation.  libgit2's own local clone would do three things that must not happen: it
 * links files (the agent could then rewrite the source's objects through its own), it copies
 * objects/info/alternates (the checkout would then depend on, and tell, paths outside), and it
 * copies what it does not know.  Its transport without the local shortcut packs everything anew,
 * which is two orders of magnitude slower.  So the files are copied here, by directory descriptor,
 * and only those whose names are those of loose objects and packs.
 *
 * Nothing is checked while copying, as in git's own local clone, and nothing needs to be: an
 * object is found by its hash, and libgit2 verifies the hash of each one that it reads
 * (library.c).  A damaged or hostile store is thus noticed where its content is used.
 *
 * The source is alive.  Somebody may commit or run git gc meanwhile.  The refs were read before
 * (refs.h), objects are never changed in place, and gc writes the new pack before it removes what
 * the pack replaces.  Hence the order: loose objects first, then packs, and the list of packs is
 * read again until a pass finds nothing new and nothing vanished.
 */
#include "isolation/checkout/objects.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/path.h"

#define FAN_OUT 256
#define LOOSE_NAME_LEN (GIT_OID_HEXSZ - 2)
/* git's own bound on chains of alternates is 5; the number of stores is bounded as well */
#define STORES_MAX 32
#define ALTERNATES_FILE_MAX 65536
#define PACK_PASSES_MAX 8
#define COPY_BUFFER_SIZE ((size_t)256 * 1024)

struct copy {
	const struct cm_objects_had *had;
	struct cm_report *rep;
	int to_fd;
	int to_pack_fd;
	/* paths of object directories, the source's own first */
	struct cm_strv stores;
	/* names of packs that are done, without suffix */
	struct cm_strv packs;
	bool is_partial;
	/* of this store's files none can be cloned: not asked again for each */
	bool is_clone_refused;
	uint64_t done;
	uint64_t total;
	char *buffer;
};

static int out_of_memory(struct cm_error *err)
{
	cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	return CM_E_NOMEM;
}

static int not_regular(const char *dir, const char *name, struct cm_error *err)
{
	cm_error_set(err, CM_E_CHECKOUT, 0, "'%s/%s' in the source is not a regular file", dir,
		     name);
	cm_error_hint(err, "run 'git repack -a -d' in the source, or clone it with git first");
	return CM_E_CHECKOUT;
}

static int was_changed(const char *name, struct cm_error *err)
{
	cm_error_set(err, CM_E_CHECKOUT, 0, "'%s' in the source changed while it was copied", name);
	cm_error_hint(err, "try again when nothing writes to the source");
	return CM_E_CHECKOUT;
}

/* Up to size bytes by reading and writing; bytes done or -errno. */
static ssize_t copy_chunk(struct copy *c, int from, int to)
{
	ssize_t n;

	do {
		n = read(from, c->buffer, COPY_BUFFER_SIZE);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (n > 0) {
		int r = cm_write_all(to, c->buffer, (size_t)n);

		if (r < 0)
			return r;
	}
	return n;
}

/*
 * The whole file by sharing its extents, where the file system can. They are not a link: a write to
 * one file does not show in the other. The size is of the moment of sharing. 0, -ENOSPC and the like,
 * -ESTALE, or -EOPNOTSUPP for whatever refuses: kernel, seccomp filter or file system, or that the two
 * are on different ones.
 */
static int clone_content(struct copy *c, int from, int to, uint64_t size)
{
	struct stat st;

	if (c->is_clone_refused)
		return -EOPNOTSUPP;
	if (ioctl(to, FICLONE, from) < 0) {
		if (errno == ENOSPC || errno == EDQUOT || errno == EIO)
			return -errno;
		c->is_clone_refused = true;
		return -EOPNOTSUPP;
	}
	if (fstat(to, &st) < 0)
		return -errno;
	return (uint64_t)st.st_size == size ? 0 : -ESTALE;
}

/*
 * By read and write, which is two calls; large ones by copy_file_range, which shares extents also
 * where a clone is refused: across mounts, before Linux 5.18. What the kernel, a seccomp filter or the
 * file system refuses is copied by hand.
 */
static int copy_bytes(struct copy *c, int from, int to, uint64_t size, bool is_counted)
{
	bool by_range = size > COPY_BUFFER_SIZE;
	uint64_t done = 0;

	while (done < size) {
		ssize_t n = -1;

		if (by_range) {
			size_t want = size - done < (16U << 20) ? (size_t)(size - done) : 16U << 20;

			n = copy_file_range(from, NULL, to, NULL, want, 0);
			if (n < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EIO))
				return -errno;
		}
		if (n <= 0) {
			by_range = false;
			n = copy_chunk(c, from, to);
		}
		if (n < 0)
			return (int)n;
		if (n == 0)
			return -ESTALE;
		done += (uint64_t)n;
		if (is_counted) {
			c->done += (uint64_t)n;
			cm_report_progress(c->rep, "packs", c->done, c->total);
		}
	}
	return done == size ? 0 : -ESTALE;
}

static int copy_content(struct copy *c, int from, int to, uint64_t size, bool is_counted)
{
	int r = clone_content(c, from, to, size);

	if (r == -EOPNOTSUPP)
		return copy_bytes(c, from, to, size, is_counted);
	if (r == 0 && is_counted) {
		c->done += size;
		cm_report_progress(c->rep, "packs", c->done, c->total);
	}
	return r;
}

/* The file is gone: removed by a gc that is running. */
#define VANISHED 1

/* CM_OK, VANISHED, or an error. A file that is there already came from another store. */
static int copy_file(struct copy *c, int from_dir, int to_dir, const char *dir, const char *name,
		     bool is_counted, struct cm_error *err)
{
	/* O_NONBLOCK: a FIFO of that name must not hold us up */
	CM_AUTO_FD int from =
		openat(from_dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	CM_AUTO_FD int to = -1;
	struct stat st;
	int r;

	if (from < 0 && errno == ENOENT)
		return VANISHED;
	if (from < 0 && (errno == ELOOP || errno == ENXIO))
		return not_regular(dir, name, err);
	if (from < 0 || fstat(from, &st) < 0)
		return cm_library_sys_error(err, errno, "cannot read '%s/%s' in the source", dir,
					    name);
	if (!S_ISREG(st.st_mode))
		return not_regular(dir, name, err);
	to = openat(to_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0444);
	if (to < 0 && errno == EEXIST)
		return CM_OK;
	if (to < 0)
		return cm_library_sys_error(err, errno, "cannot create object '%s/%s'", dir, name);
	r = copy_content(c, from, to, (uint64_t)st.st_size, is_counted);
	if (r == -ESTALE)
		return was_changed(name, err);
	if (r < 0)
		return cm_library_sys_error(err, -r, "cannot copy object '%s/%s'", dir, name);
	return CM_OK;
}

/* A directory below a store. CM_OK with -1 when there is none. */
static int open_below(int store_fd, const char *name, int *ret_fd, struct cm_error *err)
{
	int fd = openat(store_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && errno != ENOENT) {
		if (errno == ELOOP || errno == ENOTDIR)
			return cm_error_set(err, CM_E_CHECKOUT, 0,
					    "'objects/%s' in the source is not a directory", name);
		return cm_library_sys_error(err, errno, "cannot read 'objects/%s' in the source",
					    name);
	}
	*ret_fd = fd;
	return CM_OK;
}

static DIR *list_dir(int fd)
{
	/* a second description: the first one's position is its owner's */
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);

	if (!d && copy >= 0)
		close(copy);
	return d;
}

static void close_dir(DIR **d)
{
	if (*d)
		closedir(*d);
}

static bool is_loose_name(const char *name)
{
	return strlen(name) == LOOSE_NAME_LEN && strspn(name, "0123456789abcdef") == LOOSE_NAME_LEN;
}

/* dir: the first two digits of its name */
static bool has_loose(const struct copy *c, const char *dir, const char *name)
{
	char hex[CM_OID_HEX_SIZE];

	(void)snprintf(hex, sizeof(hex), "%.2s%.38s", dir, name);
	return c->had && c->had->has_loose(c->had->data, hex);
}

/* With to_fd -1 the objects are only counted. */
static int each_loose(struct copy *c, int from_fd, int to_fd, const char *dir, struct cm_error *err)
{
	__attribute__((cleanup(close_dir))) DIR *d = list_dir(from_fd);

	if (!d)
		return cm_library_sys_error(err, errno, "cannot list 'objects/%s' in the source",
					    dir);
	for (;;) {
		const struct dirent *e;
		int r;

		errno = 0;
		e = readdir(d);
		if (!e && errno != 0)
			return cm_library_sys_error(err, errno,
						    "cannot list 'objects/%s' in the source", dir);
		if (!e)
			return CM_OK;
		if (!is_loose_name(e->d_name) || has_loose(c, dir, e->d_name))
			continue;
		if (to_fd < 0) {
			c->total++;
			continue;
		}
		/* a vanished one is in a pack by now, and packs come later */
		r = copy_file(c, from_fd, to_fd, dir, e->d_name, false, err);
		if (r < 0)
			return r;
		c->done++;
		/* written by others meanwhile */
		if (c->done > c->total)
			c->total = c->done;
		cm_report_progress(c->rep, "loose", c->done, c->total);
	}
}

static int copy_fan_out(struct copy *c, int store_fd, bool is_counting, struct cm_error *err)
{
	for (unsigned int i = 0; i < FAN_OUT; i++) {
		CM_AUTO_FD int from = -1;
		CM_AUTO_FD int to = -1;
		char dir[3];
		int r;

		snprintf(dir, sizeof(dir), "%02x", i);
		r = open_below(store_fd, dir, &from, err);
		if (r != CM_OK)
			return r;
		if (from < 0)
			continue;
		if (!is_counting) {
			if (mkdirat(c->to_fd, dir, 0777) < 0 && errno != EEXIST)
				return cm_library_sys_error(err, errno,
							    "cannot create 'objects/%s'", dir);
			to = openat(c->to_fd, dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			if (to < 0)
				return cm_library_sys_error(err, errno, "cannot open 'objects/%s'",
							    dir);
		}
		r = each_loose(c, from, to, dir, err);
		if (r != CM_OK)
			return r;
	}
	return CM_OK;
}

/* "pack-<hex>.pack" -> "pack-<hex>"; NULL for anything else. Caller frees. */
static char *pack_stem(const char *name)
{
	size_t len = strlen(name);

	if (strncmp(name, "pack-", 5) != 0 || len <= 10 || len > 200 ||
	    strcmp(name + len - 5, ".pack") != 0)
		return NULL;
	for (const char *p = name; *p != '\0'; p++) {
		if (!isalnum((unsigned char)*p) && !strchr("-_.", *p))
			return NULL;
	}
	return cm_asprintf("%.*s", (int)(len - 5), name);
}

/* *sum grows by the sizes of packs that are still to be copied. */
static int list_packs(struct copy *c, int from_fd, const char *store, struct cm_strv *ret,
		      uint64_t *sum, struct cm_error *err)
{
	CM_AUTO_FREE char *path = cm_path_join(store, "pack");
	__attribute__((cleanup(close_dir))) DIR *d = list_dir(from_fd);

	if (!path)
		return out_of_memory(err);
	if (!d)
		return cm_library_sys_error(err, errno, "cannot list 'objects/pack' in the source");
	for (;;) {
		CM_AUTO_FREE char *stem = NULL;
		const struct dirent *e;
		struct stat st;

		errno = 0;
		e = readdir(d);
		if (!e && errno != 0)
			return cm_library_sys_error(err, errno,
						    "cannot list 'objects/pack' in the source");
		if (!e)
			return CM_OK;
		if (strlen(e->d_name) > 9 &&
		    strcmp(e->d_name + strlen(e->d_name) - 9, ".promisor") == 0)
			c->is_partial = true;
		stem = pack_stem(e->d_name);
		if (!stem || cm_strv_has(&c->packs, stem) ||
		    (c->had && c->had->has_pack(c->had->data, path, stem)))
			continue;
		if (fstatat(from_fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			*sum += (uint64_t)st.st_size;
		if (cm_strv_add_own(ret, cm_ptr_take(&stem)) != CM_OK)
			return out_of_memory(err);
	}
}

/* The index last: a pack without one is invisible, and so is half a copy. */
static int copy_pack(struct copy *c, int from_fd, const char *stem, struct cm_error *err)
{
	CM_AUTO_FREE char *pack = cm_asprintf("%s.pack", stem);
	CM_AUTO_FREE char *idx = cm_asprintf("%s.idx", stem);
	struct stat st;
	int r;

	if (!pack || !idx)
		return out_of_memory(err);
	/* still being written by its owner, or being removed */
	if (fstatat(from_fd, idx, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
		return VANISHED;
	r = copy_file(c, from_fd, c->to_pack_fd, "pack", pack, true, err);
	if (r == CM_OK)
		r = copy_file(c, from_fd, c->to_pack_fd, "pack", idx, false, err);
	if (r == VANISHED)
		(void)unlinkat(c->to_pack_fd, pack, 0);
	if (r == CM_OK && cm_strv_add(&c->packs, stem) != CM_OK)
		return out_of_memory(err);
	return r;
}

static int copy_packs(struct copy *c, int store_fd, const char *store, struct cm_error *err)
{
	CM_AUTO_FD int from = -1;
	int r = open_below(store_fd, "pack", &from, err);

	if (r != CM_OK || from < 0)
		return r;
	for (int pass = 0; pass < PACK_PASSES_MAX; pass++) {
		CM_AUTO_STRV struct cm_strv found = { 0 };
		uint64_t sum = 0;
		bool is_stable = true;

		r = list_packs(c, from, store, &found, &sum, err);
		if (r != CM_OK)
			return r;
		c->total = c->done + sum;
		for (size_t i = 0; i < found.n; i++) {
			r = copy_pack(c, from, found.v[i], err);
			if (r < 0)
				return r;
			/* whatever vanished has left its objects in a pack that is newer */
			is_stable = is_stable && r == VANISHED && pass > 0;
		}
		if (is_stable)
			break;
	}
	return CM_OK;
}

/* One line of info/alternates, relative to the store that it is in. */
static int add_alternate(struct copy *c, const char *store, const char *line, struct cm_error *err)
{
	CM_AUTO_FREE char *joined = NULL;
	CM_AUTO_FREE char *path = NULL;

	if (line[0] == '\0' || line[0] == '#')
		return CM_OK;
	joined = cm_path_join(store, line);
	if (!joined)
		return out_of_memory(err);
	path = cm_path_real(joined);
	if (!path) {
		cm_error_set(err, CM_E_NOT_FOUND, errno,
			     "cannot open alternate object directory '%s' of the source", joined);
		cm_error_hint(err, "run 'git repack -a -d' in the source, so that it holds all its "
				   "objects itself");
		return CM_E_NOT_FOUND;
	}
	if (cm_strv_has(&c->stores, path))
		return CM_OK;
	if (c->stores.n >= STORES_MAX) {
		cm_error_set(err, CM_E_LIMIT, 0, "the source uses more than %d object directories",
			     STORES_MAX);
		cm_error_hint(err, "run 'git repack -a -d' in the source");
		return CM_E_LIMIT;
	}
	return cm_strv_add(&c->stores, path) == CM_OK ? CM_OK : out_of_memory(err);
}

static int read_alternates(struct copy *c, int store_fd, const char *store, struct cm_error *err)
{
	CM_AUTO_FREE char *text = cm_malloc(ALTERNATES_FILE_MAX);
	char *rest = text;
	struct stat st;
	ssize_t n;

	if (!text)
		return out_of_memory(err);
	if (fstatat(store_fd, "info/alternates", &st, 0) == 0 && !S_ISREG(st.st_mode))
		return not_regular(store, "info/alternates", err);
	n = cm_read_file_at(store_fd, "info/alternates", text, ALTERNATES_FILE_MAX);
	if (n == -ENOENT || n == -ENOTDIR)
		return CM_OK;
	if (n < 0)
		return cm_library_sys_error(err, (int)-n, "cannot read '%s/info/alternates'",
					    store);
	while (rest) {
		const char *line = strsep(&rest, "\n");
		int r = add_alternate(c, store, line, err);

		if (r != CM_OK)
			return r;
	}
	return CM_OK;
}

static int open_store(const char *path, bool is_own, int *ret_fd, struct cm_error *err)
{
	/*
	 * A source whose object directory is a link to somebody's private one would bring that
	 * one's content into the session. Alternates do so as well, but by name and on purpose.
	 */
	int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | (is_own ? O_NOFOLLOW : 0);
	int fd = open(path, flags);

	if (fd < 0 && is_own && (errno == ELOOP || errno == ENOTDIR)) {
		cm_error_set(err, CM_E_CHECKOUT, 0,
			     "the object directory '%s' of the source is not a directory", path);
		cm_error_hint(err, "give the repository that really holds the objects");
		return CM_E_CHECKOUT;
	}
	if (fd < 0)
		return cm_library_sys_error(err, errno, "cannot open object directory '%s'", path);
	*ret_fd = fd;
	return CM_OK;
}

enum pass {
	/* find the alternates and count */
	PASS_COUNT,
	PASS_LOOSE,
	PASS_PACKS,
};

/* stores grows during PASS_COUNT, which is how alternates of alternates are found. */
static int each_store(struct copy *c, enum pass pass, struct cm_error *err)
{
	for (size_t i = 0; i < c->stores.n; i++) {
		CM_AUTO_FD int fd = -1;
		int r = open_store(c->stores.v[i], i == 0, &fd, err);

		c->is_clone_refused = false;
		if (r == CM_OK && pass == PASS_COUNT)
			r = read_alternates(c, fd, c->stores.v[i], err);
		if (r == CM_OK && pass != PASS_PACKS)
			r = copy_fan_out(c, fd, pass == PASS_COUNT, err);
		if (r == CM_OK && pass == PASS_PACKS)
			r = copy_packs(c, fd, c->stores.v[i], err);
		if (r != CM_OK)
			return r;
	}
	return CM_OK;
}

static int copy_all(struct copy *c, const char *from, struct cm_error *err)
{
	CM_AUTO_FREE char *path = cm_path_clean(from);
	int r;

	if (!path || cm_strv_add(&c->stores, path) != CM_OK)
		return out_of_memory(err);
	r = each_store(c, PASS_COUNT, err);
	if (r != CM_OK)
		return r;
	r = each_store(c, PASS_LOOSE, err);
	if (r != CM_OK)
		return r;
	cm_report_progress(c->rep, "loose", c->done, c->done);
	c->done = 0;
	c->total = 0;
	r = each_store(c, PASS_PACKS, err);
	if (r == CM_OK)
		cm_report_progress(c->rep, "packs", c->done, c->done);
	return r;
}

int cm_objects_copy(const char *from, int to_fd, const struct cm_objects_had *had,
		    struct cm_report *rep, bool *ret_is_partial, struct cm_error *err)
{
	CM_AUTO_FD int to_pack_fd = -1;
	struct copy c = { .had = had, .rep = rep, .to_fd = to_fd };
	int r;

	if (mkdirat(to_fd, "pack", 0777) < 0 && errno != EEXIST)
		return cm_library_sys_error(err, errno, "cannot create 'objects/pack'");
	to_pack_fd = openat(to_fd, "pack", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (to_pack_fd < 0)
		return cm_library_sys_error(err, errno, "cannot open 'objects/pack'");
	c.to_pack_fd = to_pack_fd;
	c.buffer = cm_malloc(COPY_BUFFER_SIZE);
	r = c.buffer ? copy_all(&c, from, err) : out_of_memory(err);
	free(c.buffer);
	cm_strv_clear(&c.stores);
	cm_strv_clear(&c.packs);
	if (r == CM_OK)
		*ret_is_partial = c.is_partial;
	return r;
}
