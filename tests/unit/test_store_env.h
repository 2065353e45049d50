/* SPDX-License-Identifier: Apache-2.0 */
/* A store in a directory of its own, for the tests of the store. */
#ifndef CM_TESTS_UNIT_TEST_STORE_ENV_H
#define CM_TESTS_UNIT_TEST_STORE_ENV_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* it includes nothing of what it needs, so it comes after the above */
#include <cmocka.h>

#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/store/store.h"
#include "runtime/store/store_internal.h"

struct env {
	char dir[64];
	struct cm_strv vars;
	struct cm_store store;
};

/* Opens the store again, as another process would. */
static inline void env_open(struct env *e, struct cm_store *ret)
{
	struct cm_error err = CM_ERROR_INIT;
	char home[80];

	(void)snprintf(home, sizeof(home), "%s/home", e->dir);
	if (cm_store_open(&e->vars, NULL, home, false, ret, &err) != CM_OK)
		fail_msg("%s: %s", err.msg, strerror(err.sys_errno));
}

static inline void env_vars(struct env *e)
{
	assert_int_equal(cm_strv_addf(&e->vars, "XDG_STATE_HOME=%s/state", e->dir), CM_OK);
	assert_int_equal(cm_strv_addf(&e->vars, "XDG_RUNTIME_DIR=%s/run", e->dir), CM_OK);
	assert_int_equal(cm_strv_addf(&e->vars, "XDG_CACHE_HOME=%s/cache", e->dir), CM_OK);
}

static inline int env_setup(void **state)
{
	struct env *e = calloc(1, sizeof(*e));

	assert_non_null(e);
	/* thousands of fsyncs, which here are to be called and not to be waited for */
	(void)snprintf(e->dir, sizeof(e->dir), "%s/cm-test-store-XXXXXX",
		       access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	assert_non_null(mkdtemp(e->dir));
	env_vars(e);
	env_open(e, &e->store);
	*state = e;
	return 0;
}

static inline int env_teardown(void **state)
{
	struct env *e = *state;

	cm_store_close(&e->store);
	cm_strv_clear(&e->vars);
	assert_int_equal(cm_remove_tree_at(AT_FDCWD, e->dir), 0);
	free(e);
	return 0;
}

/* A record whose strings are literals: not to be cleared. */
static inline struct cm_session_record env_record(const char *id)
{
	struct cm_session_record r;

	cm_session_record_init(&r);
	r.id = (char *)(uintptr_t)id;
	r.network = CM_NETWORK_NONE;
	r.user = CM_USER_USER;
	r.git = CM_GIT_PINNED;
	return r;
}

static inline int env_create(struct env *e, const char *id, bool is_temporary,
			     struct cm_store_session *ret, struct cm_error *err)
{
	struct cm_session_record r = env_record(id);

	r.is_temporary = is_temporary;
	return cm_store_session_create(&e->store, &r, ret, err);
}

/* A session that is there and that nobody holds. */
static inline void env_make(struct env *e, const char *id)
{
	struct cm_store_session s;
	struct cm_error err = CM_ERROR_INIT;

	if (env_create(e, id, false, &s, &err) != CM_OK)
		fail_msg("%s: %s", err.msg, strerror(err.sys_errno));
	cm_store_session_close(&s);
}

static inline size_t env_count(struct env *e)
{
	struct cm_strv ids = { 0 };
	size_t n;

	assert_int_equal(cm_store_list(&e->store, &ids, NULL), CM_OK);
	n = ids.n;
	cm_strv_clear(&ids);
	return n;
}

/* How many entries path has that are not in but_not as well (NULL: all); 0 when it is absent. */
static inline size_t env_entries_but(const char *path, const char *but_not)
{
	DIR *dir = opendir(path);
	const struct dirent *d;
	size_t n = 0;

	while (dir && (d = readdir(dir)) != NULL) {
		char other[512];

		if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
			continue;
		(void)snprintf(other, sizeof(other), "%s/%s", but_not ? but_not : "", d->d_name);
		n += !but_not || access(other, F_OK) != 0;
	}
	if (dir)
		(void)closedir(dir);
	return n;
}

static inline size_t env_entries(struct env *e, const char *path)
{
	char full[160];

	(void)snprintf(full, sizeof(full), "%s/%s", e->dir, path);
	return env_entries_but(full, NULL);
}

/* How many slots of kernel ids are claimed or kept. */
static inline size_t env_slots(struct env *e)
{
	char state[160];
	char run[160];

	(void)snprintf(state, sizeof(state), "%s/state/casemate/ids", e->dir);
	(void)snprintf(run, sizeof(run), "%s/run/casemate/ids", e->dir);
	return env_entries_but(state, NULL) + env_entries_but(run, state);
}

static inline void assert_status(int status, int expected)
{
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), expected);
}

#endif
