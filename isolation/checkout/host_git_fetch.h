/* SPDX-License-Identifier: Apache-2.0 */
/* A fetch into a mirror by the host's git, and what of a fetch is git's alone. */
#ifndef CM_ISOLATION_CHECKOUT_HOST_GIT_FETCH_H
#define CM_ISOLATION_CHECKOUT_HOST_GIT_FETCH_H

#include "isolation/checkout/fetch.h"
#include "isolation/checkout/fetch_error.h"
#include "isolation/checkout/host_git.h"

/* Is what an earlier fetch left in this mirror's directory a SHA-256 repository? */
bool cm_host_git_mirror_is_sha256(const char *dir);
/*
 * The mirror's configuration, made anew. Whatever an earlier fetch left there is gone then: what git and
 * git-lfs write, among it that the remote promises what is missing, and what a server that took a fetch
 * over might have written.
 */
int cm_host_git_write_config(const char *mirror, bool is_sha256, struct cm_error *err);
/* What cannot be done for an address of that kind, before anything is asked of its server. */
int cm_host_git_check_fetch(const struct cm_fetch_options *opts, const struct cm_giturl *url,
			    struct cm_error *err);
/*
 * As cm_fetch: the mirror's branches, tags and HEAD are the remote's then. With a filter what the
 * checkout needs is there, too. ret_is_sha256 NULL: whatever kind of repository it is; else nothing is
 * fetched, and CM_E_UNSUPPORTED returned, where it is none of SHA-256.
 */
int cm_host_git_fetch(const struct cm_fetch_options *opts, const struct cm_giturl *url,
		      struct cm_report *rep, bool *ret_is_sha256, struct cm_error *err);
/* The content of the LFS files of what is going to be checked out, into a mirror that is up to date. */
int cm_host_git_fetch_lfs(const struct cm_fetch_options *opts, const struct cm_giturl *url,
			  struct cm_report *rep, struct cm_error *err);
/* Why it failed, by git's words. Fills state->reason; never CM_OK. */
int cm_host_git_fetch_error(const struct cm_host_git_call *call,
			    const struct cm_fetch_options *opts, const struct cm_giturl *url,
			    struct cm_fetch_state *state, struct cm_report *rep,
			    struct cm_error *err);

#endif
