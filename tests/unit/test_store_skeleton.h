/* SPDX-License-Identifier: Apache-2.0 */
/* Small skeletons, for the tests of the store: what is in one says by which key it was made. */
#ifndef CM_TESTS_UNIT_TEST_STORE_SKELETON_H
#define CM_TESTS_UNIT_TEST_STORE_SKELETON_H

#include <sys/file.h>

#include "tests/unit/test_store_env.h"

/* below the test's directory */
#define SKELETONS "run/casemate/skeletons"
/* as many unused ones stay */
#define KEPT 48
/* names that skeletons_make has */
#define N_NAMES 250
#define SKELETON_PATH_SIZE 400

struct filling {
	/* how often it was called; and what it is to return */
	int n;
	int code;
	const char *key;
	/* a filler that waits: where it says so, and for what */
	int told_fd;
	int wait_fd;
};

static inline struct cm_buf skeleton_key_buf(const char *text)
{
	struct cm_buf key;

	cm_buf_init(&key, 4096);
	cm_buf_puts(&key, text);
	return key;
}

/* a/, a/file with the key, last */
static inline int skeleton_fill(int dir_fd, void *data, struct cm_error *err)
{
	struct filling *f = data;
	CM_AUTO_FD int fd = -1;
	int r = 0;

	f->n++;
	if (f->code < 0) {
		/* not without having made something */
		(void)mkdirat(dir_fd, "a", 0700);
		return cm_error_set(err, f->code, 0, "as the test wants it");
	}
	if (mkdirat(dir_fd, "a", 0755) < 0 ||
	    (fd = openat(dir_fd, "a/file", O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600)) < 0)
		r = -errno;
	if (r == 0)
		r = cm_write_all(fd, f->key, strlen(f->key));
	if (r == 0 && symlinkat("file", dir_fd, "last") < 0)
		r = -errno;
	return r < 0 ? cm_store_fail(err, -r, "fill", "a", NULL) : CM_OK;
}

static inline int skeleton_open(struct cm_store *store, const char *text, struct filling *f,
				struct cm_store_skeleton *ret, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf key = skeleton_key_buf(text);

	f->key = text;
	return cm_store_skeleton_open(store, &key, skeleton_fill, f, ret, err);
}

static inline void skeleton_get(struct env *e, const char *text, struct filling *f,
				struct cm_store_skeleton *ret)
{
	struct cm_error err = CM_ERROR_INIT;

	if (skeleton_open(&e->store, text, f, ret, &err) != CM_OK)
		fail_msg("%s: %s: %s", text, err.msg, strerror(err.sys_errno));
}

static inline bool skeleton_is_whole(const char *dir, const char *key)
{
	char path[512];
	char text[64];

	(void)snprintf(path, sizeof(path), "%s/a/file", dir);
	if (cm_read_file_at(AT_FDCWD, path, text, sizeof(text)) < 0)
		return false;
	(void)snprintf(path, sizeof(path), "%s/last", dir);
	return strcmp(text, key) == 0 && faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static inline void assert_skeleton(const char *dir, const char *key)
{
	if (!skeleton_is_whole(dir, key))
		fail_msg("'%s' is not all of '%s'", dir, key);
}

/* Found or made, and let go of. */
static inline void skeleton_touch(struct env *e, const char *key)
{
	struct filling f = { 0 };
	struct cm_store_skeleton s;

	skeleton_get(e, key, &f, &s);
	assert_skeleton(s.dir, key);
	cm_store_skeleton_close(&s);
}

static inline void skeletons_clear(struct env *e)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/" SKELETONS, e->dir);
	assert_int_equal(cm_remove_tree_at(AT_FDCWD, path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
}

static inline void skeleton_path(const struct env *e, const char *name,
				 char buf[SKELETON_PATH_SIZE])
{
	(void)snprintf(buf, SKELETON_PATH_SIZE, "%s/" SKELETONS "/%s", e->dir, name);
}

/* Can it be locked exclusively? */
static inline bool skeleton_is_free(const struct env *e, const char *name)
{
	CM_AUTO_FD int fd = -1;
	char path[SKELETON_PATH_SIZE];
	char lock[SKELETON_PATH_SIZE + 8];

	skeleton_path(e, name, path);
	(void)snprintf(lock, sizeof(lock), "%s/lock", path);
	fd = open(lock, O_RDONLY | O_CLOEXEC);
	return fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0;
}

static inline bool skeletons_are_free(const struct env *e)
{
	char path[SKELETON_PATH_SIZE];
	const struct dirent *d;
	bool are_free = true;
	DIR *dir;

	skeleton_path(e, "", path);
	dir = opendir(path);
	while (dir && (d = readdir(dir)) != NULL)
		are_free = are_free && skeleton_is_free(e, d->d_name);
	if (dir)
		(void)closedir(dir);
	return are_free;
}

/* The path of the only entry, or of none in it. */
static inline const char *skeleton_only(const struct env *e)
{
	static char only[SKELETON_PATH_SIZE];
	const struct dirent *d;
	DIR *dir;

	skeleton_path(e, "", only);
	dir = opendir(only);
	while (dir && (d = readdir(dir)) != NULL) {
		if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
			skeleton_path(e, d->d_name, only);
	}
	if (dir)
		(void)closedir(dir);
	return only;
}

/* What skeletons_make made: the n-th is found by the key "n". */
struct skeleton_names {
	char v[N_NAMES][64];
};

static inline const char *skeleton_key(int number)
{
	static char key[16];

	(void)snprintf(key, sizeof(key), "%d", number);
	return key;
}

/* Unused ones, the n-th as the n-th oldest, in no order in the directory; none is pruned. */
static inline void skeletons_make(struct env *e, int n, struct skeleton_names *ret)
{
	char parked[N_NAMES][80];
	char path[SKELETON_PATH_SIZE];

	for (int i = 0; i < n; i++) {
		struct filling f = { 0 };
		struct cm_store_skeleton s;
		/* n is no multiple of 11 */
		int number = i * 11 % n;
		struct timespec times[2] = { { 0 } };

		skeleton_get(e, skeleton_key(number), &f, &s);
		assert_int_equal(f.n, 1);
		/* all within a second, as they are made where many start */
		times[0].tv_nsec = times[1].tv_nsec = number;
		assert_int_equal(utimensat(AT_FDCWD, s.dir, times, 0), 0);
		(void)snprintf(ret->v[number], sizeof(ret->v[number]), "%s",
			       strrchr(s.dir, '/') + 1);
		(void)snprintf(parked[number], sizeof(parked[number]), "%s/%d", e->dir, number);
		assert_int_equal(rename(s.dir, parked[number]), 0);
		cm_store_skeleton_close(&s);
	}
	for (int i = 0; i < n; i++) {
		skeleton_path(e, ret->v[i], path);
		assert_int_equal(rename(parked[i], path), 0);
	}
}

#endif
