/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One fetch. The server is not believed: what it sends is hashed and written under names that follow
 * from the content, its refs are checked names, its text goes nowhere, and it is given the
 * credential only over the connection that was asked for: a redirect to another host is an error,
 * since libgit2 would hand it on.
 */
#include "isolation/checkout/fetch.h"

#include <stdlib.h>
#include <string.h>

#include "isolation/checkout/fetch_error.h"
#include "isolation/checkout/guard.h"
#include "isolation/checkout/host_git_fetch.h"
#include "isolation/checkout/host_git_ssh.h"
#include "isolation/checkout/mirror.h"
#include "isolation/checkout/names.h"
#include "isolation/checkout/peers.h"
#include "isolation/checkout/refs.h"
#include "runtime/base/fd.h"
#include "runtime/base/giturl.h"
#include "runtime/base/text.h"

/* What the server's HEAD is, which need not be on a branch; refs.c does not read it. */
#define HEAD_REF "refs/casemate/HEAD"

struct fetch {
	const struct cm_fetch_options *opts;
	struct cm_report *rep;
	struct cm_giturl url;
	struct cm_fetch_state state;
	struct cm_ssh ssh;
	struct cm_mirror mirror;
	git_remote *remote;
	/* libgit2 has read the server's refs */
	bool has_refs;
	/* "+SOURCE:DESTINATION" */
	struct cm_strv refspecs;
	/* full names beside branches and tags that the server has */
	struct cm_strv extra;
	/* branches and tags, of a shallow fetch */
	struct cm_names names;
};

static int on_transfer(const git_indexer_progress *stats, void *data)
{
	struct fetch *f = data;

	f->state.has_begun = true;
	cm_guard_progress();
	if (stats->total_objects > 0 && stats->received_objects == stats->total_objects)
		cm_guard_phase(CM_GUARD_INDEXING);
	else
		cm_guard_phase(CM_GUARD_OBJECTS);
	cm_report_transfer(f->rep, stats->received_objects, stats->total_objects,
			   stats->received_bytes);
	return cm_guard_exceeded() == CM_GUARD_NONE ? 0 : GIT_EUSER;
}

/* The server's own words are not passed on; that it says something is a sign of life. */
static int on_text(const char *text, int len, void *data)
{
	struct fetch *f = data;

	(void)text;
	cm_report_alive(f->rep);
	return cm_guard_talk(len > 0 ? (uint64_t)len : 0) < 0 ? GIT_EUSER : 0;
}

static int give_up(struct fetch *f, enum cm_fetch_reason reason)
{
	f->state.reason = reason;
	return GIT_EAUTH;
}

static int on_credential(git_credential **ret, const char *url, const char *user,
			 unsigned int allowed, void *data)
{
	struct fetch *f = data;
	const struct cm_credential *c = f->opts->credential;

	(void)url;
	if (f->url.kind == CM_GITURL_SSH)
		return cm_ssh_credential(&f->ssh, ret, user, allowed);
	if (!c->secret)
		return give_up(f, CM_FETCH_AUTH_REQUIRED);
	/* asked again, it was refused; a user name alone may have been no credential at all */
	if (f->state.has_sent_credential)
		return give_up(f, c->secret[0] != '\0' ? CM_FETCH_AUTH_REFUSED
						       : CM_FETCH_AUTH_REQUIRED);
	/* by the connection, and not by a name, which can lead anywhere */
	if (f->url.kind == CM_GITURL_HTTP && !cm_peers_are_here())
		return give_up(f, CM_FETCH_AUTH_IN_CLEAR);
	/* https was looked at by on_certificate */
	if (f->url.kind == CM_GITURL_HTTP && !cm_peers_have_port(f->url.port))
		return give_up(f, CM_FETCH_REDIRECT);
	if ((allowed & GIT_CREDENTIAL_USERPASS_PLAINTEXT) == 0)
		return give_up(f, CM_FETCH_AUTH_UNSUPPORTED);
	f->state.has_sent_credential = true;
	return git_credential_userpass_plaintext_new(ret, c->user, c->secret);
}

/*
 * Of TLS libgit2's own judgement holds; called for each connection before anything is sent over it,
 * also for one that a redirect led to.
 */
static int on_certificate(git_cert *cert, int is_valid, const char *host, void *data)
{
	struct fetch *f = data;

	(void)host;
	if (f->url.kind == CM_GITURL_SSH)
		return cm_ssh_certificate(&f->ssh, cert, is_valid != 0);
	if (!is_valid || cm_peers_have_port(f->url.port))
		return GIT_PASSTHROUGH;
	f->state.reason = CM_FETCH_REDIRECT;
	git_error_set_str(GIT_ERROR_HTTP, "it leads to another port");
	return GIT_EUSER;
}

static void set_callbacks(struct fetch *f, git_remote_callbacks *callbacks)
{
	callbacks->sideband_progress = on_text;
	callbacks->transfer_progress = on_transfer;
	callbacks->credentials = on_credential;
	callbacks->certificate_check = on_certificate;
	callbacks->payload = f;
}

static int failed(struct fetch *f, int r, struct cm_error *err)
{
	r = cm_fetch_error(&f->state, &f->url, r, err);
	f->rep->reason = cm_fetch_reason_name(f->state.reason);
	/* what libgit2 could not write is not told by the server's reasons */
	if (!f->rep->reason && r == CM_E_LIMIT)
		f->rep->reason = "disk-full";
	return r;
}

static int connect(struct fetch *f, struct cm_error *err)
{
	git_remote_connect_options opts = GIT_REMOTE_CONNECT_OPTIONS_INIT;
	CM_AUTO_FREE char *address = NULL;
	int r = CM_OK;

	f->ssh.n_tried = 0;
	if (f->url.kind == CM_GITURL_SSH)
		r = cm_ssh_address(&f->ssh, &f->url, &address, err);
	if (r < 0)
		return r;
	f->state.has_credential = f->opts->credential->secret != NULL;
	set_callbacks(f, &opts.callbacks);
	opts.proxy_opts.type = GIT_PROXY_NONE;
	opts.follow_redirects = GIT_REMOTE_REDIRECT_NONE;
	cm_guard_phase(CM_GUARD_REFS);
	if (git_remote_create_anonymous(&f->remote, f->mirror.repo,
					address ? address : f->url.text) < 0)
		return cm_library_error(err, "cannot use the address");
	r = git_remote_connect_ext(f->remote, GIT_DIRECTION_FETCH, &opts);
	f->has_refs = r == 0;
	return r < 0 ? failed(f, r, err) : CM_OK;
}

/* NULL: the server has no such name. */
static const git_oid *find_ref(const git_remote_head **heads, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(heads[i]->name, name) == 0)
			return &heads[i]->oid;
	}
	return NULL;
}

/* What the server does not have is missed where it is resolved, with the nearest names. */
static int add_extra(struct fetch *f, const git_remote_head **heads, size_t n)
{
	int r = CM_OK;

	if (f->opts->ref && find_ref(heads, n, f->opts->ref))
		r = cm_strv_add(&f->extra, f->opts->ref);
	for (size_t i = 0; i < CM_REFS_REQUEST_NAMES && f->opts->pr > 0 && r == CM_OK; i++) {
		CM_AUTO_FREE char *name = cm_refs_request_name(f->opts->pr, i);

		if (!name)
			return CM_E_NOMEM;
		if (find_ref(heads, n, name))
			r = cm_strv_add(&f->extra, name);
	}
	for (size_t i = 0; i < f->extra.n && r == CM_OK; i++)
		r = cm_strv_addf(&f->refspecs, "+%s:%s", f->extra.v[i], f->extra.v[i]);
	return r;
}

static int tell_mirror(struct fetch *f)
{
	CM_AUTO_GIT(git_reference_iterator) git_reference_iterator *refs = NULL;
	const char *name;
	int r = git_reference_iterator_new(&refs, f->mirror.repo);

	while (r == 0 && (r = git_reference_next_name(&name, refs)) == 0)
		r = cm_names_had(&f->names, name);
	return r == GIT_ITEROVER ? 0 : r;
}

static int choose_names(struct fetch *f, const git_remote_head **heads, size_t n)
{
	CM_AUTO_GIT_BUF git_buf head = GIT_BUF_INIT;
	char hex[CM_OID_HEX_SIZE];
	int r = cm_names_init(&f->names, f->opts->take_ref, f->opts->take_branch);

	if (r == CM_OK && git_remote_default_branch(&head, f->remote) == 0)
		r = cm_names_want(&f->names, head.ptr);
	if (r == CM_OK)
		r = tell_mirror(f);
	for (size_t i = 0; i < n && r == CM_OK; i++) {
		git_oid_tostr(hex, sizeof(hex), &heads[i]->oid);
		r = cm_names_offer(&f->names, heads[i]->name, hex);
	}
	cm_names_end(&f->names);
	return r;
}

/* Branches and tags. */
static int add_names(struct fetch *f, const git_remote_head **heads, size_t n)
{
	int r = f->opts->depth > 0 ? choose_names(f, heads, n) : CM_OK;

	f->names.is_all = f->names.is_all || f->opts->depth == 0;
	for (size_t i = 0; i < f->names.chosen.n && !f->names.is_all && r == CM_OK; i++)
		r = cm_strv_addf(&f->refspecs, "+%s:%s", f->names.chosen.v[i],
				 f->names.chosen.v[i]);
	if (r == CM_OK && f->names.is_all)
		r = cm_strv_add(&f->refspecs, "+refs/heads/*:refs/heads/*");
	if (r == CM_OK && f->names.is_all)
		r = cm_strv_add(&f->refspecs, "+refs/tags/*:refs/tags/*");
	return r;
}

static int choose_refs(struct fetch *f, struct cm_error *err)
{
	const git_remote_head **heads;
	size_t n = 0;
	int r = git_remote_ls(&heads, &n, f->remote);

	if (r < 0)
		return failed(f, r, err);
	if (n > CM_REFS_MAX) {
		cm_error_set(err, CM_E_LIMIT, 0, "the server has more than %d refs", CM_REFS_MAX);
		cm_error_hint(err, "clone it with git, and give --repo the path of the clone");
		return CM_E_LIMIT;
	}
	if (add_names(f, heads, n) < 0 ||
	    (find_ref(heads, n, "HEAD") && cm_strv_add(&f->refspecs, "+HEAD:" HEAD_REF) < 0) ||
	    add_extra(f, heads, n) < 0)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	cm_report_progress(f->rep, "remote", n, n);
	return CM_OK;
}

static int download(struct fetch *f, struct cm_error *err)
{
	git_strarray specs = { f->refspecs.v, f->refspecs.n };
	git_fetch_options opts = GIT_FETCH_OPTIONS_INIT;
	int r;

	set_callbacks(f, &opts.callbacks);
	opts.proxy_opts.type = GIT_PROXY_NONE;
	opts.follow_redirects = GIT_REMOTE_REDIRECT_NONE;
	opts.download_tags = GIT_REMOTE_DOWNLOAD_TAGS_NONE;
	opts.prune = GIT_FETCH_NO_PRUNE;
#if CM_LIBRARY_HAS_DEPTH
	opts.depth = (int)f->opts->depth;
#endif
	cm_guard_phase(CM_GUARD_PREPARING);
	r = git_remote_download(f->remote, &specs, &opts);
	cm_guard_phase(CM_GUARD_LOCAL);
	return r < 0 ? failed(f, r, err) : CM_OK;
}

/* Names of earlier fetches that were not asked for now: the server may have none of them any more. */
static int drop_others(struct fetch *f)
{
	CM_AUTO_GIT(git_reference_iterator) git_reference_iterator *refs = NULL;
	const char *name;
	int r = git_reference_iterator_new(&refs, f->mirror.repo);

	while (r == 0 && (r = git_reference_next_name(&name, refs)) == 0) {
		bool is_wanted = cm_names_has(&f->names, name);

		for (size_t i = 0; i < f->extra.n && !is_wanted; i++)
			is_wanted = strcmp(f->extra.v[i], name) == 0;
		if (!is_wanted)
			r = git_reference_remove(f->mirror.repo, name);
	}
	return r == GIT_ITEROVER ? 0 : r;
}

/*
 * The objects are there; now their names. Pruned first: a branch "a" may stand where "a/b" is now.
 */
static int update_refs(struct fetch *f, struct cm_error *err)
{
	git_remote_callbacks callbacks = GIT_REMOTE_CALLBACKS_INIT;
	int r = git_remote_prune(f->remote, &callbacks);

	if (r == 0)
		r = drop_others(f);
	if (r == 0)
		r = git_remote_update_tips(f->remote, &callbacks, 0, GIT_REMOTE_DOWNLOAD_TAGS_NONE,
					   NULL);
	if (r < 0) {
		f->state.reason = CM_FETCH_MIRROR;
		return failed(f, r, err);
	}
	return CM_OK;
}

/* A server does not tell what its HEAD names when that is not there. */
static int guess_head(struct fetch *f, bool is_empty, struct cm_error *err)
{
	static const char name[] = "refs/heads/main";
	git_oid id;

	if (git_repository_set_head(f->mirror.repo, name) < 0)
		return cm_library_error(err, "cannot set HEAD of the mirror");
	if (is_empty)
		return CM_OK;
	return cm_report_note(f->rep, err,
			      git_reference_name_to_id(&id, f->mirror.repo, name) == 0
				      ? "HEAD of '%s' names no branch that is there: 'main' is "
					"taken for it"
				      : "HEAD of '%s' names no branch that is there: name one with "
					"--ref",
			      f->url.text);
}

/* The server's default branch; where its HEAD is detached, so is the mirror's. */
static int set_head(struct fetch *f, struct cm_error *err)
{
	CM_AUTO_GIT_BUF git_buf name = GIT_BUF_INIT;
	const git_remote_head **heads;
	const git_oid *head;
	size_t n = 0;
	int r = git_remote_ls(&heads, &n, f->remote);

	if (r < 0)
		return cm_library_error(err, "cannot set HEAD of the mirror");
	head = find_ref(heads, n, "HEAD");
	r = git_remote_default_branch(&name, f->remote);
	if (r == 0 && cm_text_has_prefix(name.ptr, "refs/heads/"))
		r = git_repository_set_head(f->mirror.repo, name.ptr);
	else if (head)
		r = git_repository_set_head_detached(f->mirror.repo, head);
	else
		return guess_head(f, n == 0, err);
	return r < 0 ? cm_library_error(err, "cannot set HEAD of the mirror") : CM_OK;
}

static int transfer(struct fetch *f, struct cm_error *err)
{
	int r = connect(f, err);

	if (r == CM_OK)
		r = choose_refs(f, err);
	if (r == CM_OK)
		r = download(f, err);
	if (r == CM_OK)
		r = update_refs(f, err);
	if (r == CM_OK)
		r = set_head(f, err);
	git_remote_free(f->remote);
	f->remote = NULL;
	cm_strv_clear(&f->refspecs);
	cm_strv_clear(&f->extra);
	cm_names_clear(&f->names);
	return r;
}

/* What an earlier fetch left may be what is wrong: lost objects, names that stand in the way. */
static bool is_worth_renewing(const struct fetch *f, int r)
{
	return r < 0 && cm_guard_exceeded() == CM_GUARD_NONE && !f->mirror.is_new &&
	       r != CM_E_LIMIT && r != CM_E_NOMEM && !cm_fetch_is_remote(f->state.reason);
}

static int run(struct fetch *f, struct cm_error *err)
{
	struct cm_error why = CM_ERROR_INIT;
	int r = cm_mirror_open(f->opts->mirror, f->opts->is_fresh, &f->mirror, err);

	if (r < 0)
		return r;
	r = transfer(f, &why);
	if (is_worth_renewing(f, r)) {
		f->state = (struct cm_fetch_state){ .has_known_key = f->state.has_known_key };
		f->rep->reason = NULL;
		r = cm_mirror_renew(&f->mirror, &why);
		if (r == CM_OK) {
			why = (struct cm_error)CM_ERROR_INIT;
			r = transfer(f, &why);
		}
	}
	if (r < 0)
		*err = why;
	return r;
}

static bool has_host_git(const struct fetch *f)
{
	return cm_host_git_check(false, NULL) == CM_OK &&
	       (f->url.kind != CM_GITURL_SSH ||
		cm_host_git_ssh_check(f->opts->credential, f->opts->ssh.agent, NULL) == CM_OK);
}

/*
 * What libgit2 makes of a server whose ids are longer than it knows: it says the same of noise, so that
 * git has to ask once more.
 */
static bool may_be_sha256(const struct fetch *f, const struct cm_error *why)
{
	static const char *const texts[] = { "parsing REF", "object format", "object-format",
					     "oid type" };

	if (f->has_refs ||
	    (f->state.reason != CM_FETCH_PROTOCOL && f->state.reason != CM_FETCH_UNKNOWN))
		return false;
	for (size_t i = 0; i < CM_ARRAY_SIZE(texts); i++) {
		if (strstr(why->msg, texts[i]))
			return has_host_git(f);
	}
	return false;
}

static int run_library(struct fetch *f, struct cm_error *err)
{
	struct cm_error why = CM_ERROR_INIT;
	struct cm_error of_git = CM_ERROR_INIT;
	const char *reason;
	bool is_sha256 = false;
	int r = run(f, &why);
	int of;

	if (r < 0 && may_be_sha256(f, &why)) {
		reason = f->rep->reason;
		f->rep->reason = NULL;
		of = cm_host_git_fetch(f->opts, &f->url, f->rep, &is_sha256, &of_git);
		/* it is none: then what libgit2 said is what there is to say */
		if (is_sha256) {
			why = of_git;
			r = of;
		} else {
			f->rep->reason = reason;
		}
	}
	if (r < 0 && err)
		*err = why;
	return r;
}

/* By need: what libgit2 can do, it does. */
static int run_either(struct fetch *f, struct cm_error *err)
{
	const struct cm_fetch_options *opts = f->opts;
	bool is_sha256 = cm_host_git_mirror_is_sha256(opts->mirror);
	int r;

	if (opts->wants.filters_blobs || (opts->depth > 0 && !CM_LIBRARY_HAS_DEPTH) ||
	    (is_sha256 && has_host_git(f)))
		r = cm_host_git_fetch(opts, &f->url, f->rep, NULL, err);
	else
		r = run_library(f, err);
	return r == CM_OK && opts->wants.has_lfs ? cm_host_git_fetch_lfs(opts, &f->url, f->rep, err)
						 : r;
}

int cm_fetch(const struct cm_fetch_options *opts, struct cm_report *rep, struct cm_error *err)
{
	struct fetch f = { .opts = opts, .rep = rep, .mirror = CM_MIRROR_INIT };
	int r = cm_giturl_parse(opts->url, &f.url, err);

	if (r == CM_OK)
		r = cm_host_git_check_fetch(opts, &f.url, err);
	if (r == CM_OK && opts->ca_file &&
	    git_libgit2_opts(GIT_OPT_SET_SSL_CERT_LOCATIONS, opts->ca_file, NULL) < 0)
		r = cm_library_error(err, "cannot read the certificates in '%s'", opts->ca_file);
	if (r == CM_OK)
		r = cm_ssh_init(&f.ssh, &opts->ssh, opts->credential, &f.state, err);
	if (r == CM_OK && f.url.kind == CM_GITURL_SSH)
		r = cm_ssh_place(&f.ssh, &f.url, err);
	if (r == CM_OK)
		r = run_either(&f, err);
	cm_ssh_clear(&f.ssh);
	cm_mirror_clear(&f.mirror);
	cm_giturl_clear(&f.url);
	return r;
}
