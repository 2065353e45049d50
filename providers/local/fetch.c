/* SPDX-License-Identifier: Apache-2.0 */
#include "providers/local/fetch.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "providers/local/checkout_helper.h"
#include "providers/local/credential_helper.h"
#include "providers/local/ssh.h"
#include "runtime/base/alloc.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/text.h"

#define LOCK_WAIT_MS (15LL * 60 * 1000)
#define LOCK_SLICE_MS 200
/* before the second try and the third */
static const int retry_ms[] = { 1000, 4000 };

/* A pack that is damaged: perhaps on its way, perhaps by what the mirror already had. */
#define BAD_PACK "bad-pack"
/* What may go well a moment later: the helper's reasons for a fetch that failed. */
static const char *const transient[] = { "broken-off", "server-error", BAD_PACK };

/* One fetch: of what, and what of an ssh server is known and told to it. */
struct job {
	const struct cm_local_remote *remote;
	struct cm_local_ssh ssh;
};

/* Nothing of the user's; the host's network, since no other is to be had. */
static void make_spec(const struct cm_local *l, struct cm_spec *spec)
{
	cm_spec_init(spec);
	spec->workspace_kind = CM_WORKSPACE_NONE;
	spec->network = CM_NETWORK_HOST;
	spec->user = CM_USER_USER;
	spec->git = CM_GIT_RW;
	/* the network alone makes it less than full, and that says nothing about the session */
	spec->min_level =
		l->spec.min_level == CM_LEVEL_FULL ? CM_LEVEL_NO_CGROUP : l->spec.min_level;
	spec->limits.timeout.value = CM_UNLIMITED;
}

static bool may_go_well(const struct cm_checkout_result *result)
{
	for (size_t i = 0; i < CM_ARRAY_SIZE(transient); i++) {
		if (strcmp(result->reason, transient[i]) == 0)
			return true;
	}
	return false;
}

/* false: the caller has enough of it */
static bool wait_ms(const struct cm_local *l, int ms)
{
	struct pollfd p = { .fd = cm_local_cancel_fd(l), .events = POLLIN };
	int64_t deadline = cm_clock_mono_ms() + ms;
	int64_t left;

	while ((left = deadline - cm_clock_mono_ms()) > 0) {
		if (poll(&p, 1, (int)left) > 0)
			return false;
	}
	return true;
}

static int given_up(const struct job *job, struct cm_error *err)
{
	return cm_error_set(err, CM_E_CANCELLED, 0, "stopped while '%s' was fetched",
			    job->remote->url);
}

static int held_up(const struct job *job, struct cm_error *err)
{
	cm_error_set(err, CM_E_TIMEOUT, 0, "cannot fetch '%s': the server said nothing for %d s",
		     job->remote->url, CM_CHECKOUT_SILENCE_MS / 1000);
	cm_error_hint(err, "check the address, and that nothing on the way swallows the "
			   "connection; then try again");
	return CM_E_TIMEOUT;
}

/* The certificates that the caller's git would believe; NULL: the system's. */
static int find_ca_file(const struct cm_local *l, const char **ret, struct cm_error *err)
{
	static const char *const names[] = { "GIT_SSL_CAINFO", "SSL_CERT_FILE" };

	*ret = NULL;
	for (size_t i = 0; i < CM_ARRAY_SIZE(names); i++) {
		const char *value = cm_strv_env_get(&l->config->env, names[i]);

		if (!value || value[0] == '\0')
			continue;
		if (value[0] != '/' || access(value, R_OK) < 0) {
			cm_error_set(err, CM_E_INVALID, value[0] == '/' ? errno : 0,
				     "the certificates in '%s', which %s names, cannot be read",
				     value, names[i]);
			cm_error_hint(err, "name a PEM file by its absolute path, or unset %s",
				      names[i]);
			return CM_E_INVALID;
		}
		*ret = value;
		return CM_OK;
	}
	return CM_OK;
}

/* A name that is neither a branch's nor a tag's has to be asked for. */
static const char *extra_ref(const char *ref)
{
	if (!ref || !cm_text_has_prefix(ref, "refs/") || cm_text_has_prefix(ref, "refs/heads/") ||
	    cm_text_has_prefix(ref, "refs/tags/"))
		return NULL;
	return ref;
}

/* For a pipe, as isolation/checkout/credential.h has it; nothing where there is no credential. */
static int write_credential(const struct job *job, struct cm_buf *out, struct cm_error *err)
{
	const struct cm_local_remote *remote = job->remote;

	if (remote->user) {
		cm_buf_append(out, remote->user, strlen(remote->user) + 1);
		cm_buf_append(out, remote->secret, strlen(remote->secret) + 1);
	} else if (job->ssh.is_ssh) {
		cm_buf_append(out, job->ssh.texts.data, job->ssh.texts.len);
	}
	if (cm_buf_status(out) == CM_OK)
		return CM_OK;
	cm_error_set(err, CM_E_LIMIT, 0, "the credential for the repository is too long");
	cm_error_hint(err, "at most %d bytes", (int)CM_LOCAL_INPUT_MAX - 2);
	return CM_E_LIMIT;
}

static void forget(struct cm_buf *credential)
{
	if (credential->data)
		explicit_bzero(credential->data, credential->len);
	cm_buf_clear(credential);
}

/* What a fetch that leaves others' history or content out has to bring, which is what is checked out. */
static int add_extent(const struct cm_local_remote *remote, char **argv, size_t *n,
		      char **own_sparse, struct cm_error *err)
{
	const struct cm_spec *spec = remote->spec;

	bool leaves_content = spec && (spec->has_lfs || spec->filter == CM_FILTER_BLOB_NONE);

	if (remote->depth == 0 && !leaves_content)
		return CM_OK;
	cm_checkout_option(argv, n, "--take-ref", remote->ref);
	cm_checkout_option(argv, n, "--take-branch", remote->branch);
	return leaves_content ? cm_checkout_git_options(spec, false, argv, n, own_sparse, err)
			      : CM_OK;
}

static int run_helper(struct cm_local *l, const struct job *job, bool is_fresh,
		      struct cm_checkout_result *result, struct cm_error *err)
{
	const struct cm_local_remote *remote = job->remote;
	const struct cm_local_ssh *ssh = &job->ssh;
	struct cm_buf credential;
	char *argv[40] = { NULL };
	char pr[CM_CHECKOUT_NUMBER_SIZE];
	char port[CM_CHECKOUT_NUMBER_SIZE];
	char depth[CM_CHECKOUT_NUMBER_SIZE];
	const char *ca_file = NULL;
	CM_AUTO_FREE char *sparse = NULL;
	size_t n = 0;
	int r;

	cm_buf_init(&credential, CM_LOCAL_INPUT_MAX);
	/* at once: growing leaves copies behind */
	cm_buf_reserve(&credential, CM_LOCAL_INPUT_MAX);
	r = write_credential(job, &credential, err);
	if (r == CM_OK)
		r = find_ca_file(l, &ca_file, err);
	cm_checkout_option(argv, &n, "--fetch", remote->url);
	cm_checkout_option(argv, &n, "--mirror", CM_FETCH_MIRROR_INSIDE);
	cm_checkout_option(argv, &n, "--credential-fd", credential.len > 0 ? "0" : NULL);
	cm_checkout_option(argv, &n, "--ca-file", ca_file);
	cm_checkout_option(argv, &n, "--ref", extra_ref(remote->ref));
	cm_checkout_option(argv, &n, "--pr", cm_checkout_number(remote->pr, pr));
	cm_checkout_option(argv, &n, "--home", ssh->is_ssh ? CM_SSH_HOME_INSIDE : NULL);
	cm_checkout_option(argv, &n, "--ssh-agent", ssh->agent ? CM_SSH_AGENT_INSIDE : NULL);
	cm_checkout_option(argv, &n, "--ssh-host", cm_local_ssh_host(ssh));
	cm_checkout_option(argv, &n, "--ssh-port",
			   cm_checkout_number((int)cm_local_ssh_port(ssh), port));
	cm_checkout_option(argv, &n, "--depth", cm_checkout_number(remote->depth, depth));
	if (r == CM_OK)
		r = add_extent(remote, argv, &n, &sparse, err);
	if (is_fresh)
		argv[n++] = (char *)(uintptr_t) "--fresh";
	if (r == CM_OK)
		r = cm_checkout_helper_run(l, argv, &credential, result, err);
	forget(&credential);
	return r;
}

/* A jail each time: what the last one's server may have done to the helper ends with it. */
static int in_jail(struct cm_local *l, struct job *job, const struct cm_store_mirror *mirror,
		   bool is_fresh, struct cm_checkout_result *result, struct cm_error *err)
{
	/* only an agent is spoken to by such a socket */
	struct cm_local_plan extra = { .is_of_mirrors = true,
				       .refuses_unix_sockets = !job->ssh.agent };
	char helper[PATH_MAX];
	struct cm_spec spec;
	int r = cm_checkout_helper_mount(&extra, helper, sizeof(helper), err);

	make_spec(l, &spec);
	extra.mounts[extra.n_mounts++] =
		(struct cm_local_mount){ mirror->dir, CM_FETCH_MIRROR_INSIDE, CM_OPF_WRITABLE };
	if (r == CM_OK)
		r = cm_local_ssh_show(l, &job->ssh, &extra, err);
	if (r == CM_OK)
		r = cm_local_task_open(l, &spec, NULL, &extra, err);
	cm_local_ssh_hide(l, &job->ssh);
	/* what it asks for otherwise is for a session's own network */
	if (r == CM_E_LEVEL && job->ssh.agent)
		cm_error_hint(err, "use --ssh-key FILE: without an agent no such sockets are "
				   "needed");
	if (r == CM_OK)
		r = run_helper(l, job, is_fresh, result, err);
	cm_local_task_close(l);
	cm_spec_clear(&spec);
	return r;
}

static void tell_retry(struct cm_local *l, const struct cm_error *why, int ms)
{
	CM_AUTO_FREE char *line = cm_asprintf("%s; trying again in %d s", why->msg, ms / 1000);

	if (line)
		cm_local_note(l, line);
}

static int fetch(struct cm_local *l, struct job *job, const struct cm_store_mirror *mirror,
		 bool is_fresh, struct cm_error *err)
{
	struct cm_error why = CM_ERROR_INIT;
	struct cm_checkout_result result;
	int r;

	for (size_t i = 0;; i++) {
		why = (struct cm_error)CM_ERROR_INIT;
		cm_checkout_result_init(&result);
		r = in_jail(l, job, mirror, is_fresh, &result, &why);
		if (r == CM_OK || i >= CM_ARRAY_SIZE(retry_ms) || !may_go_well(&result))
			break;
		tell_retry(l, &why, retry_ms[i]);
		if (!wait_ms(l, retry_ms[i]))
			return given_up(job, err);
		is_fresh = is_fresh || strcmp(result.reason, BAD_PACK) == 0;
	}
	if (r == CM_E_CANCELLED)
		return given_up(job, err);
	if (r == CM_E_TIMEOUT)
		return held_up(job, err);
	if (r == CM_OK || !err)
		return r;
	*err = why;
	/* the helper knows the mirror by its place in the jail */
	if (strcmp(result.code, cm_error_name(CM_E_LIMIT)) == 0)
		cm_error_hint(err, "free space where mirrors are kept: '%s'", l->store.cache);
	return cm_error_wrap(err, "cannot fetch '%s'", job->remote->url);
}

/*
 * Whose the mirror is: the address, and who asked. With another credential another may be allowed to
 * see, so nothing that was fetched with one is seen with the other. Where commits are missing on
 * purpose they would be missed by who wants them, so each depth has its own, and so has a partial
 * clone. A mirror of SHA-256 says itself what it is, and is made anew where the server's is another.
 */
static char *identity_of(const struct job *job)
{
	const struct cm_local_remote *remote = job->remote;
	const struct cm_local_ssh *ssh = &job->ssh;
	struct cm_buf out;
	size_t begin;

	cm_buf_init(&out, 2 * CM_LOCAL_INPUT_MAX);
	/* at once: growing leaves copies behind */
	cm_buf_reserve(&out, 2 * CM_LOCAL_INPUT_MAX);
	cm_buf_printf(&out, "%s\n%d%s\n", remote->url, remote->depth,
		      remote->spec && remote->spec->filter == CM_FILTER_BLOB_NONE ? " blob:none"
										  : "");
	if (remote->user || !ssh->is_ssh) {
		cm_buf_printf(&out, "%s\n%s", remote->user ? remote->user : "",
			      remote->user ? remote->secret : "");
		return cm_buf_take(&out);
	}
	cm_buf_printf(&out, "%s\n%u\n%s\n", cm_local_ssh_host(ssh) ? cm_local_ssh_host(ssh) : "",
		      cm_local_ssh_port(ssh), ssh->agent ? "agent" : "keys");
	begin = out.len;
	cm_buf_append(&out, ssh->texts.data, ssh->texts.len);
	for (size_t i = begin; i < out.len; i++) {
		if (out.data[i] == '\0')
			out.data[i] = '\n';
	}
	return cm_buf_take(&out);
}

static int open_mirror(struct cm_local *l, const struct job *job, struct cm_store_mirror *mirror,
		       struct cm_error *err)
{
	uint32_t owner = l->host.is_root ? cm_local_slot_base(CM_ID_SLOT_MIRRORS) + CM_ID_AGENT : 0;
	int64_t deadline = cm_clock_mono_ms() + LOCK_WAIT_MS;
	char *identity = identity_of(job);
	int r;

	if (!identity)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the mirror");
	for (;;) {
		struct cm_error why = CM_ERROR_INIT;

		r = cm_store_mirror_open(&l->store, identity, owner, mirror, &why);
		if (r != CM_E_BUSY || cm_clock_mono_ms() >= deadline) {
			if (r < 0 && err)
				*err = why;
			break;
		}
		/* another session fetches from the same repository */
		if (!wait_ms(l, LOCK_SLICE_MS)) {
			r = given_up(job, err);
			break;
		}
	}
	explicit_bzero(identity, strlen(identity));
	free(identity);
	return r;
}

void cm_local_remote_of(const struct cm_local *l, struct cm_local_remote *ret)
{
	*ret = (struct cm_local_remote){ .url = l->spec.repo,
					 .ref = l->spec.base ? l->spec.base : l->spec.ref,
					 .branch = l->spec.branch,
					 .pr = l->spec.pr,
					 .depth = l->spec.depth,
					 .spec = &l->spec,
					 .has_keys = true,
					 .phase = "fetch" };
	if (cm_config_git_credential(l->config, &l->spec, &ret->user, &ret->secret))
		return;
	ret->may_ask_helper = cm_config_may_ask_helper(l->config, &l->spec);
	ret->asks_helper_first =
		ret->may_ask_helper && l->config->git_helper == CM_GIT_HELPER_FIRST;
	/* what was told for the repository, for its submodules there */
	cm_credential_helper_given(l, &ret->user, &ret->secret);
}

static int bring(struct cm_local *l, const struct cm_local_remote *remote, bool is_fresh,
		 struct cm_store_mirror *mirror, struct cm_error *err)
{
	struct job job = { .remote = remote };
	int64_t start_us = cm_clock_mono_us();
	int r = cm_local_ssh_init(l, remote->url, remote->has_keys, &job.ssh, err);

	if (r == CM_OK && !mirror->dir)
		r = open_mirror(l, &job, mirror, err);
	if (r == CM_OK)
		r = fetch(l, &job, mirror, is_fresh, err);
	cm_local_ssh_clear(&job.ssh);
	if (r == CM_OK)
		r = cm_store_mirror_used(mirror, err);
	if (r == CM_OK && remote->phase)
		cm_local_phase(l, remote->phase, start_us);
	return r;
}

static bool failed_for(const struct cm_local *l, int r, const char *reason)
{
	return r == CM_E_CHECKOUT && strcmp(l->checkout_reason, reason) == 0;
}

/*
 * Anonymously, where there is no credential; when the server wants one, git's helpers are asked, and it
 * is fetched once more, into the mirror of what they gave.
 */
static int bring_first(struct cm_local *l, struct cm_local_remote *remote,
		       struct cm_store_mirror *mirror, struct cm_error *err)
{
	int r = CM_OK;

	if (remote->asks_helper_first)
		r = cm_credential_helper_ask(l, remote->url, &remote->user, &remote->secret, err);
	if (r == CM_OK)
		r = bring(l, remote, false, mirror, err);
	if (failed_for(l, r, "auth-required") && remote->may_ask_helper && !remote->user) {
		struct cm_error why = CM_ERROR_INIT;
		int asked = cm_credential_helper_ask(l, remote->url, &remote->user, &remote->secret,
						     &why);

		if (asked < 0)
			*err = why;
		if (asked < 0 || !remote->user)
			return asked < 0 ? asked : r;
		cm_store_mirror_close(mirror);
		*mirror = (struct cm_store_mirror)CM_STORE_MIRROR_INIT;
		*err = (struct cm_error)CM_ERROR_INIT;
		r = bring(l, remote, false, mirror, err);
	}
	if (failed_for(l, r, "auth-refused") && remote->user && remote->user == l->helper_user)
		cm_error_hint(err,
			      "it is what git's credential helper gave: replace it there ('git "
			      "credential reject' erases it), or use CASEMATE_GIT_TOKEN");
	return r;
}

int cm_local_fetch(struct cm_local *l, const struct cm_local_remote *of, cm_local_take_fn *take,
		   void *data, struct cm_checkout_result *result, struct cm_error *err)
{
	struct cm_store_mirror mirror = CM_STORE_MIRROR_INIT;
	struct cm_error why = CM_ERROR_INIT;
	struct cm_local_remote remote = *of;
	int r = bring_first(l, &remote, &mirror, &why);

	if (r == CM_OK)
		r = take(l, &mirror, data, result, &why);
	if (r == CM_E_CHECKOUT && strcmp(result->code, cm_error_name(CM_E_CHECKOUT)) == 0) {
		why = (struct cm_error)CM_ERROR_INIT;
		r = bring(l, &remote, true, &mirror, &why);
		if (r == CM_OK)
			r = take(l, &mirror, data, result, &why);
	}
	cm_store_mirror_close(&mirror);
	if (r < 0 && err)
		*err = why;
	return r;
}
