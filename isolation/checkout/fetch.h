/* SPDX-License-Identifier: Apache-2.0 */
/* Fetching from a remote repository into a mirror. */
#ifndef CM_ISOLATION_CHECKOUT_FETCH_H
#define CM_ISOLATION_CHECKOUT_FETCH_H

#include "casemate/error.h"
#include "isolation/checkout/credential.h"
#include "isolation/checkout/host_git.h"
#include "isolation/checkout/report.h"
#include "isolation/checkout/ssh.h"

struct cm_fetch_options {
	/* https, http, ssh, git or file; without a password */
	const char *url;
	/* the mirror's directory, which exists */
	const char *mirror;
	/* a full name beside branches and tags ("refs/pull/7/head"); NULL: none */
	const char *ref;
	/* the head of this pull or merge request, too; 0: of none */
	unsigned int pr;
	/*
	 * Commits of history; 0: all of them. With it the branches and tags are those of take_ref and
	 * take_branch, HEAD's and what the mirror has, where the server has these; all of them where
	 * take_ref is no name of its.
	 */
	unsigned int depth;
	/* certificates that are believed, PEM; NULL: the system's */
	const char *ca_file;
	/* what an earlier fetch left is not to be gone on with */
	bool is_fresh;
	/* of an ssh address */
	struct cm_ssh_options ssh;
	/* what libgit2 cannot do, and what is going to be checked out, which is where it counts */
	struct cm_host_git_wants wants;
	/* a ref of any spelling, and a branch that it may be on: NULL, as a checkout has them */
	const char *take_ref;
	const char *take_branch;
	/* is sent where the server asks for one: over https, and over http to this host alone */
	const struct cm_credential *credential;
};

/*
 * Afterwards the mirror's branches, tags and HEAD are the remote's, of a shallow fetch those that were
 * asked for; what was deleted there is gone.
 * What was there before stays when it fails. rep->reason says why it failed.
 */
int cm_fetch(const struct cm_fetch_options *opts, struct cm_report *rep, struct cm_error *err);

#endif
