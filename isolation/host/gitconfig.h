/* SPDX-License-Identifier: Apache-2.0 */
/* Reader of git's configuration format, and of the ini files alike. Pure; any input. */
#ifndef CM_ISOLATION_HOST_GITCONFIG_H
#define CM_ISOLATION_HOST_GITCONFIG_H

#include <stdbool.h>
#include <stddef.h>

#define CM_GITCONFIG_MAX_BYTES (256UL * 1024)

/* A name that is longer than its field is cut: it is none that anybody asks for. */
struct cm_gitconfig_item {
	/* lower case, up to the first dot */
	char section[64];
	/* as written, or what follows that dot; "" for none */
	char subsection[256];
	/* lower case */
	char key[64];
	char value[8192];
	/* there is more of the value than fits */
	bool is_cut;
};

/* Called for each variable; a value other than 0 ends the reading and is returned. */
typedef int (*cm_gitconfig_fn)(const struct cm_gitconfig_item *item, void *data);

/*
 * Include directives are variables like others: nothing is opened. A malformed line and a value
 * that is longer than its field are skipped. 0, or what fn returned.
 */
int cm_gitconfig_parse(const char *text, size_t len, cm_gitconfig_fn fn, void *data);
/* With the values that are too long: for who must not miss any. */
int cm_gitconfig_parse_all(const char *text, size_t len, cm_gitconfig_fn fn, void *data);

#endif
