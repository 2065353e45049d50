/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of /etc/passwd and /etc/group. Pure; any input. */
#ifndef CM_ISOLATION_HOST_PASSWD_H
#define CM_ISOLATION_HOST_PASSWD_H

#include <stdbool.h>
#include <sys/types.h>

/* bound for either file, enough for a large site */
#define CM_PASSWD_MAX (4UL * 1024 * 1024)

struct cm_passwd_entry {
	char *name;
	char *home;
	char *shell;
};

/* The first line with this uid; false when there is none (or no memory). The caller clears. */
bool cm_passwd_find(const char *text, uid_t uid, struct cm_passwd_entry *ret);
void cm_passwd_entry_clear(struct cm_passwd_entry *entry);
/* Copies the home of the line at *text and moves *text to the next one; false at the end. */
bool cm_passwd_next_home(const char **text, char *buf, size_t size);
/*
 * Is gid a group that uid and root are in, and nobody else can be: a user private group? group is
 * the text of /etc/group. False when the group is not in it: then its members are not known; and
 * when it has none: such a group is what set-gid programs and services run with.
 */
bool cm_passwd_is_private_group(const char *passwd, const char *group, gid_t gid, uid_t uid);

#endif
