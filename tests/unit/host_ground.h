/* SPDX-License-Identifier: Apache-2.0 */
/* Real files to gather facts of, in a directory of the test's own. */
#ifndef CM_TESTS_UNIT_HOST_GROUND_H
#define CM_TESTS_UNIT_HOST_GROUND_H

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "isolation/host/facts.h"
#include "isolation/host/node.h"
#include "runtime/base/fd.h"
#include "runtime/base/path.h"
#include "tests/unit/host_files.h"

static struct cm_spec spec;

static inline int ground_setup(void **state)
{
	(void)state;
	cm_spec_init(&spec);
	return files_begin();
}

static inline int ground_teardown(void **state)
{
	(void)state;
	cm_spec_clear(&spec);
	return files_end();
}

static inline void read_workspace(const char *path, const char *cwd, struct cm_workspace_facts *ws)
{
	struct cm_error err = CM_ERROR_INIT;

	if (cm_workspace_facts_read(&spec, path, cwd, ws, &err) != CM_OK)
		fail_msg("%s", err.msg);
}

static inline bool has_node(const struct cm_nodes *nodes, const char *path)
{
	for (size_t i = 0; i < nodes->n; i++) {
		if (strcmp(nodes->v[i].path, path) == 0)
			return true;
	}
	return false;
}

static inline bool has_note(const struct cm_workspace_facts *ws, const char *text)
{
	for (size_t i = 0; i < ws->notes.n; i++) {
		if (strstr(ws->notes.v[i], text))
			return true;
	}
	return false;
}

#define ON_GROUND(name) cmocka_unit_test_setup_teardown(name, ground_setup, ground_teardown)

#endif
