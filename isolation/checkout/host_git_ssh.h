/* SPDX-License-Identifier: Apache-2.0 */
/*
 * git over ssh: the host's OpenSSH, started by this program, which git takes for its ssh. It has the
 * keys from memory files, believes the host keys that libgit2 would, and says why it failed.
 */
#ifndef CM_ISOLATION_CHECKOUT_HOST_GIT_SSH_H
#define CM_ISOLATION_CHECKOUT_HOST_GIT_SSH_H

#include "isolation/checkout/host_git.h"

/* Where ssh is on this host; NULL: it is not. */
const char *cm_host_git_ssh_program(void);
/*
 * Before anything is done: ssh is on this host, and the credential is one that is told this way, which
 * a password is not. agent NULL: there is none.
 */
int cm_host_git_ssh_check(const struct cm_credential *credential, const char *agent,
			  struct cm_error *err);
/* Of g, which is being opened: git's environment, and the keys, without their passphrases. */
int cm_host_git_ssh_open(struct cm_host_git *g, const struct cm_host_git_access *access,
			 const char *self, struct cm_error *err);
/* What the last connection came to is forgotten before a run, and read after it. */
void cm_host_git_ssh_forget(const struct cm_host_git *g);
void cm_host_git_ssh_read(const struct cm_host_git *g, struct cm_ssh_log *ret);

/*
 * As git's ssh: argv is "--connect-git" ADDRESS HOST PORT HOME AGENT, of which the last two are "-"
 * where there is none, and then what git gives to ssh. Exit status.
 */
int cm_host_git_connect(int argc, char **argv);

#endif
