/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A remote session's files as its commands find them: the repository checked out by git in the sandbox,
 * its setup commands run once.
 *
 * The credential of the repository is in the environment of those git processes alone: in no argument,
 * file or message. What runs in the sandbox meanwhile as the same user can read it there, and with --branch
 * in a checkout that is there, what an earlier command wrote into that one's git configuration (a proxy,
 * say) has a part in the fetch. A checkout of
 * the same repository that is there is left alone: the user's work wins; where --branch names another
 * branch than it is on, git switches if nothing is lost by that. A new one is made beside its place and
 * moved there when it is whole.
 *
 * In the sandbox, W being where its commands start, or the home where that cannot be written to:
 *
 *	W/<name of the repository>	the checkout
 *	W/.mastra-sandbox/setup		"sha256:<hex>" of the setup commands that were run, joined by
 *					newlines; templates have it, too
 *	W/.mastra-sandbox/setup-failed	that of those that failed, and the exit status
 *
 * Submodules are left to the session's commands.
 */
#ifndef CM_PROVIDERS_REMOTE_PREPARE_H
#define CM_PROVIDERS_REMOTE_PREPARE_H

#include "providers/provider.h"

struct cm_prepare {
	/* what was asked for; all borrowed */
	const struct cm_spec *spec;
	const struct cm_config *config;
	/* what setup and git print, as it comes. May be NULL. */
	void (*output)(void *data, const void *bytes, size_t len);
	void *data;
};

/*
 * For a session that runs, by whoever makes it or starts a command in it; where there is nothing (more)
 * to do, nothing is asked of the sandbox. *ret_cwd: where its commands start, which is the checkout's
 * top; NULL: where the provider says. The caller frees it. Phases ("checkout", "setup 1/2") go to the
 * provider's config.
 *
 * With --network none, a checkout and a setup with a network of its own have theirs by
 * cm_session_network, and the session gets its own back before this returns, whatever comes of them.
 *
 * CM_E_CHECKOUT, CM_E_SETUP (a command failed; the session stays usable, and it is not run again until
 * its text changes or spec->is_setup_again), CM_E_UNSUPPORTED (what of a checkout cannot be had there:
 * ssh, --lfs, ...), CM_E_DENIED, CM_E_NOT_FOUND and CM_E_REMOTE of the repository's server, CM_E_EXISTS
 * (something else has the checkout's place, or the session was made with another one than the command
 * line asks for), CM_E_ISOLATION (the network could not be taken away again),
 * and those of commands.
 */
int cm_prepare_session(struct cm_session *s, const struct cm_prepare *prepare,
		       const struct cm_call *call, char **ret_cwd, struct cm_error *err);

/*
 * What of that can be refused before a sandbox is made: the kind of the address, names, a credential that
 * would go in clear, secrets that are not set, a network that the provider cannot give for a while.
 */
int cm_prepare_check(const struct cm_provider *p, const struct cm_prepare *prepare,
		     struct cm_error *err);

/*
 * spec->teardown, or without it the commands that the session was begun with, before it is stopped or
 * removed; spec->session_id is the session's. What fails is told by a note, and nothing is kept from
 * ending.
 */
void cm_prepare_teardown(struct cm_session *s, const struct cm_prepare *prepare,
			 const struct cm_call *call);

/* Of a session that was removed: this host's record of it. */
void cm_prepare_forget(const struct cm_config *config, const struct cm_session *s);

#endif
