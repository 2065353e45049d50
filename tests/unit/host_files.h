/* SPDX-License-Identifier: Apache-2.0 */
/* Real files in a directory of the test's own, for the readers of facts. cmocka.h comes before. */
#ifndef CM_TESTS_UNIT_HOST_FILES_H
#define CM_TESTS_UNIT_HOST_FILES_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/fd.h"
#include "runtime/base/path.h"

static char top[] = "/tmp/casemate-facts-XXXXXX";

/* A path below the test's directory; valid until the eighth next call. */
static inline const char *at(const char *name)
{
	static char paths[8][512];
	static unsigned int next;
	char *path = paths[next++ % 8];

	assert_true(snprintf(path, 512, "%s/%s", top, name) < 512);
	return path;
}

static inline void dir(const char *name)
{
	assert_int_equal(cm_path_make_dirs(at(name), 0755, NULL), CM_OK);
}

static inline void bytes(const char *name, const void *data, size_t n)
{
	int fd = open(at(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(cm_write_all(fd, data, n), 0);
	assert_int_equal(close(fd), 0);
}

static inline void file(const char *name, const char *text)
{
	bytes(name, text, strlen(text));
}

static inline void text_of(const char *name, const char *fmt, const char *path)
{
	char text[1024];

	assert_true(snprintf(text, sizeof(text), "%s%s\n", fmt, path) < (int)sizeof(text));
	file(name, text);
}

static inline void link_to(const char *text, const char *name)
{
	assert_int_equal(symlink(text, at(name)), 0);
}

static inline void git_dir(const char *name)
{
	char sub[512];

	for (size_t i = 0; i < 2; i++) {
		assert_true(snprintf(sub, sizeof(sub), "%s/%s", name, i ? "refs" : "objects") > 0);
		dir(sub);
	}
	assert_true(snprintf(sub, sizeof(sub), "%s/HEAD", name) > 0);
	file(sub, "ref: refs/heads/main\n");
}

static inline int files_begin(void)
{
	memcpy(top + strlen(top) - 6, "XXXXXX", 6);
	return mkdtemp(top) ? 0 : -1;
}

static inline int files_end(void)
{
	return cm_remove_tree_at(AT_FDCWD, top);
}

#endif
