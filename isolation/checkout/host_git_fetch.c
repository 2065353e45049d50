/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One fetch by git. Its mirror is in the same place and of the same shape as one of fetch.c's, but for
 * what makes it git's: it is shallow, partial or of SHA-256. Its configuration is written anew each
 * time. What the server's refs are is asked first: HEAD, whether the names beside branches and tags
 * are there, and by the length of its ids which kind of repository it is.
 */
#include "isolation/checkout/host_git_fetch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "isolation/checkout/guard.h"
#include "isolation/checkout/host_git_resolve.h"
#include "isolation/checkout/host_git_ssh.h"
#include "isolation/checkout/mirror.h"
#include "isolation/checkout/names.h"
#include "isolation/checkout/refs.h"
#include "isolation/checkout/regular.h"
#include "runtime/base/fd.h"
#include "runtime/base/path.h"
#include "runtime/base/text.h"

#define HEAD_REF "refs/casemate/HEAD"
#define CONFIG_MAX 16384
/* two million refs have no more: guard.c's number, which does not see git's connections */
#define REFS_BYTES_MAX (160UL << 20)
/* ids of two million files */
#define IDS_MAX (256UL << 20)

struct fetch {
	const struct cm_fetch_options *opts;
	const struct cm_giturl *url;
	struct cm_report *rep;
	struct cm_host_git git;
	struct cm_fetch_state state;
	/* the mirror's directory, and the repository in it */
	int dir_fd;
	char *path;
	bool is_new;
	bool is_for_sha256_alone;
	/* of the server */
	size_t n_refs;
	size_t refs_bytes;
	bool is_sha256;
	char *head_name;
	char head_id[CM_HOST_GIT_HEX_SIZE];
	/* full names beside branches and tags: asked for, and there */
	struct cm_strv wanted;
	struct cm_strv extra;
	/* branches and tags, of a shallow fetch */
	struct cm_names names;
};

static int out_of_memory(struct cm_error *err)
{
	return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
}

static int cannot_write(const struct fetch *f, int sys_errno, struct cm_error *err)
{
	return cm_library_sys_error(err, sys_errno, "cannot write the mirror '%s'", f->path);
}

/* --- what the server has --------------------------------------------------------------------------- */

static int take_symref(struct fetch *f, const char *line)
{
	const char *name = line + strlen("ref: ");
	size_t len = strcspn(name, "\t");

	if (strcmp(name + len, "\tHEAD") != 0 || f->head_name)
		return CM_OK;
	f->head_name = cm_asprintf("%.*s", (int)len, name);
	if (!f->head_name)
		return CM_E_NOMEM;
	if (!cm_text_has_prefix(f->head_name, "refs/heads/") ||
	    !git_reference_is_valid_name(f->head_name))
		free(cm_ptr_take(&f->head_name));
	/* before any ref: it is the first that a server tells */
	return f->head_name ? cm_names_want(&f->names, f->head_name) : CM_OK;
}

/* "ref: NAME\tHEAD" and "ID\tNAME" */
static int take_ref(void *data, const char *line, size_t len)
{
	struct fetch *f = data;
	size_t hex = strspn(line, "0123456789abcdef");
	char id[CM_HOST_GIT_HEX_SIZE];

	f->refs_bytes += len;
	if (f->refs_bytes > REFS_BYTES_MAX) {
		cm_guard_exceed(CM_GUARD_TALK);
		return CM_E_TIMEOUT;
	}
	if (cm_text_has_prefix(line, "ref: "))
		return take_symref(f, line);
	if ((hex != CM_HOST_GIT_HEX_SIZE - 1 && hex != CM_OID_HEX_SIZE - 1) || line[hex] != '\t')
		return CM_OK;
	if (++f->n_refs > CM_REFS_MAX)
		return CM_E_LIMIT;
	f->is_sha256 = hex == CM_HOST_GIT_HEX_SIZE - 1;
	memcpy(id, line, hex);
	id[hex] = '\0';
	line += hex + 1;
	if (strcmp(line, "HEAD") == 0)
		memcpy(f->head_id, id, hex + 1);
	if (cm_strv_has(&f->wanted, line) && cm_strv_add(&f->extra, line) < 0)
		return CM_E_NOMEM;
	return f->opts->depth > 0 ? cm_names_offer(&f->names, line, id) : CM_OK;
}

/* There is a mirror, and nothing in it that would be waited for. */
static bool is_usable(const struct fetch *f)
{
	struct cm_error why = CM_ERROR_INIT;

	return faccessat(f->dir_fd, CM_MIRROR_REPOSITORY "/HEAD", F_OK, 0) == 0 &&
	       cm_regular_check(f->path, &why) == CM_OK;
}

static int take_had(void *data, const char *name, size_t len)
{
	struct fetch *f = data;

	(void)len;
	return cm_names_had(&f->names, name);
}

/* What the mirror has; nothing where that cannot be told, for then it is made anew. */
static int tell_mirror(struct fetch *f, struct cm_error *err)
{
	const char *const argv[] = { "-C", f->path, "for-each-ref", "--format=%(refname)", NULL };
	struct cm_host_git_call call = { .argv = argv, .on_part = take_had, .data = f, .end = '\n' };
	int r;

	if (f->opts->is_fresh || !is_usable(f))
		return CM_OK;
	r = cm_host_git_write_config(f->opts->mirror, cm_host_git_mirror_is_sha256(f->opts->mirror),
				     err);
	if (r == CM_OK)
		r = cm_host_git_run(&f->git, &call, err);
	cm_buf_clear(&call.said);
	return r;
}

static int want_names(struct fetch *f, struct cm_error *err)
{
	const struct cm_fetch_options *opts = f->opts;
	int r = opts->ref ? cm_strv_add(&f->wanted, opts->ref) : CM_OK;

	if (r == CM_OK && opts->depth > 0)
		r = cm_names_init(&f->names, opts->take_ref, opts->take_branch);
	for (size_t i = 0; i < CM_REFS_REQUEST_NAMES && opts->pr > 0 && r == CM_OK; i++)
		r = cm_strv_add_own(&f->wanted, cm_refs_request_name(opts->pr, i));
	if (r < 0)
		return out_of_memory(err);
	return opts->depth > 0 ? tell_mirror(f, err) : CM_OK;
}

static int ask_refs(struct fetch *f, struct cm_error *err)
{
	const char *const argv[] = { "ls-remote", "--symref", "--", f->url->text, NULL };
	struct cm_host_git_call call = { .argv = argv, .on_part = take_ref, .data = f, .end = '\n' };
	int r = want_names(f, err);

	if (r < 0)
		return r;
	cm_guard_phase(CM_GUARD_REFS);
	r = cm_host_git_run(&f->git, &call, err);
	if (r == CM_E_LIMIT && f->n_refs > CM_REFS_MAX) {
		cm_error_set(err, r, 0, "the server has more than %d refs", CM_REFS_MAX);
		cm_error_hint(err, "clone it with git, and give --repo the path of the clone");
	}
	if (r < 0 && cm_guard_exceeded() != CM_GUARD_NONE)
		r = cm_guard_error(f->rep, err);
	if (r == CM_OK && call.status != 0)
		r = cm_host_git_fetch_error(&call, f->opts, f->url, &f->state, f->rep, err);
	cm_buf_clear(&call.said);
	cm_names_end(&f->names);
	f->names.is_all = f->names.is_all || f->opts->depth == 0;
	if (r == CM_OK)
		cm_report_progress(f->rep, "remote", f->n_refs, f->n_refs);
	return r;
}

/* --- the mirror ------------------------------------------------------------------------------------- */

bool cm_host_git_mirror_is_sha256(const char *dir)
{
	CM_AUTO_FREE char *path = cm_path_join(dir, CM_MIRROR_REPOSITORY);

	return path && cm_host_git_has_sha256(path);
}

int cm_host_git_write_config(const char *mirror, bool is_sha256, struct cm_error *err)
{
	CM_AUTO_FREE char *path = cm_path_join(mirror, CM_MIRROR_REPOSITORY "/config");
	CM_AUTO_FREE char *text =
		cm_asprintf("[core]\n\trepositoryformatversion = 1\n\tbare = true\n%s",
			    is_sha256 ? "[extensions]\n\tobjectformat = sha256\n" : "");
	int r;

	if (!path || !text)
		return out_of_memory(err);
	r = cm_replace_file_at(AT_FDCWD, path, text, strlen(text), 0644, false);
	return r < 0 ? cm_library_sys_error(err, -r, "cannot write '%s'", path) : CM_OK;
}

static int make_mirror(struct fetch *f, struct cm_error *err)
{
	const char *const argv[] = { "init",
				     "--quiet",
				     "--bare",
				     "--template=",
				     "--initial-branch=main",
				     f->is_sha256 ? "--object-format=sha256"
						  : "--object-format=sha1",
				     "--",
				     f->path,
				     NULL };
	int r = cm_remove_tree_at(f->dir_fd, CM_MIRROR_REPOSITORY);

	if (r < 0)
		return cannot_write(f, -r, err);
	f->is_new = true;
	return cm_host_git_must(&f->git, argv, err);
}

/* A pack that a killed git did not finish is of no use to the next one. */
static void sweep_packs(const struct fetch *f)
{
	int fd = openat(f->dir_fd, CM_MIRROR_REPOSITORY "/objects/pack",
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!dir) {
		cm_fd_close(&fd);
		return;
	}
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): a directory of this function's own */
	while ((entry = readdir(dir)) != NULL) {
		if (cm_text_has_prefix(entry->d_name, "tmp_"))
			(void)unlinkat(fd, entry->d_name, 0);
	}
	(void)closedir(dir);
}

static int open_mirror(struct fetch *f, bool is_fresh, struct cm_error *err)
{
	int r = CM_OK;

	if (is_fresh || !is_usable(f) ||
	    cm_host_git_mirror_is_sha256(f->opts->mirror) != f->is_sha256)
		r = make_mirror(f, err);
	else
		sweep_packs(f);
	return r == CM_OK ? cm_host_git_write_config(f->opts->mirror, f->is_sha256, err) : r;
}

/* --- objects and names ------------------------------------------------------------------------------ */

struct names {
	const struct fetch *f;
	struct cm_buf deletions;
};

static int take_name(void *data, const char *name, size_t len)
{
	struct names *names = data;

	(void)len;
	if (!cm_names_has(&names->f->names, name) && !cm_strv_has(&names->f->extra, name))
		cm_buf_printf(&names->deletions, "delete %s\n", name);
	return cm_buf_status(&names->deletions);
}

/* Names of earlier fetches that were not asked for now: the server may have none of them any more. */
static int drop_others(struct fetch *f, struct cm_error *err)
{
	const char *const list[] = { "-C", f->path, "for-each-ref", "--format=%(refname)", NULL };
	const char *const update[] = { "-C", f->path, "update-ref", "--stdin", NULL };
	struct names names = { .f = f };
	struct cm_host_git_call call = {
		.argv = list, .on_part = take_name, .data = &names, .end = '\n'
	};
	struct cm_host_git_call drop = { .argv = update, .in = &names.deletions };
	int r;

	cm_buf_init(&names.deletions, CONFIG_MAX * 64);
	r = cm_host_git_run(&f->git, &call, err);
	if (r == CM_OK && names.deletions.len > 0)
		r = cm_host_git_run(&f->git, &drop, err);
	if (r == CM_OK && (call.status != 0 || drop.status != 0)) {
		f->state.reason = CM_FETCH_MIRROR;
		r = cm_host_git_failed(call.status != 0 ? &call : &drop, "read the mirror", err);
	}
	cm_buf_clear(&names.deletions);
	cm_buf_clear(&call.said);
	cm_buf_clear(&drop.said);
	return r;
}

static int add_refspecs(struct fetch *f, struct cm_strv *argv, struct cm_error *err)
{
	int r = CM_OK;

	if (f->names.is_all) {
		r = cm_strv_add(argv, "+refs/heads/*:refs/heads/*");
		if (r == CM_OK)
			r = cm_strv_add(argv, "+refs/tags/*:refs/tags/*");
	}
	if (r == CM_OK && f->head_id[0] != '\0')
		r = cm_strv_add(argv, "+HEAD:" HEAD_REF);
	for (size_t i = 0; i < f->extra.n && r == CM_OK; i++)
		r = cm_strv_addf(argv, "+%s:%s", f->extra.v[i], f->extra.v[i]);
	return r == CM_OK ? CM_OK : out_of_memory(err);
}

static int make_fetch(struct fetch *f, struct cm_strv *argv, struct cm_error *err)
{
	static const char *const fixed[] = { "fetch",
					     "--progress",
					     "--no-tags",
					     "--prune",
					     "--no-write-fetch-head",
					     "--recurse-submodules=no",
					     "--refmap=" };
	int r = cm_strv_add(argv, "-C");

	if (r == CM_OK)
		r = cm_strv_add(argv, f->path);
	for (size_t i = 0; i < CM_ARRAY_SIZE(fixed) && r == CM_OK; i++)
		r = cm_strv_add(argv, fixed[i]);
	if (r == CM_OK && f->opts->depth > 0)
		r = cm_strv_addf(argv, "--depth=%u", f->opts->depth);
	if (r == CM_OK && f->opts->wants.filters_blobs)
		r = cm_strv_add(argv, "--filter=blob:none");
	if (r == CM_OK && !f->names.is_all)
		r = cm_strv_add(argv, "--stdin");
	if (r == CM_OK)
		r = cm_strv_add(argv, "origin");
	return r == CM_OK ? add_refspecs(f, argv, err) : out_of_memory(err);
}

/* What needs the network: its failure may be the server's. */
static int run_remote(struct fetch *f, const char *const *argv, const struct cm_buf *in,
		      struct cm_error *err)
{
	struct cm_host_git_call call = { .argv = argv, .in = in };
	int r;

	cm_guard_phase(CM_GUARD_PREPARING);
	r = cm_host_git_run(&f->git, &call, err);
	cm_guard_phase(CM_GUARD_LOCAL);
	if (r == CM_OK && call.status != 0)
		r = cm_host_git_fetch_error(&call, f->opts, f->url, &f->state, f->rep, err);
	cm_buf_clear(&call.said);
	return r;
}

static int download(struct fetch *f, struct cm_error *err)
{
	CM_AUTO_STRV struct cm_strv argv = { 0 };
	CM_AUTO_BUF struct cm_buf chosen = { 0 };
	int r = make_fetch(f, &argv, err);

	/* git calls a server without anything an error */
	if (r < 0 || f->n_refs == 0)
		return r;
	if (f->names.is_all)
		return run_remote(f, (const char *const *)argv.v, NULL, err);
	cm_buf_init(&chosen, REFS_BYTES_MAX);
	for (size_t i = 0; i < f->names.chosen.n; i++)
		cm_buf_printf(&chosen, "+%s:%s\n", f->names.chosen.v[i], f->names.chosen.v[i]);
	if (cm_buf_status(&chosen) < 0)
		return out_of_memory(err);
	return run_remote(f, (const char *const *)argv.v, &chosen, err);
}

/* As fetch.c has it: a server does not tell what its HEAD names when that is not there. */
static int set_head(struct fetch *f, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf text = { 0 };
	int r;

	cm_buf_init(&text, CONFIG_MAX);
	if (f->head_name)
		cm_buf_printf(&text, "ref: %s\n", f->head_name);
	else if (f->head_id[0] != '\0')
		cm_buf_printf(&text, "%s\n", f->head_id);
	else
		cm_buf_puts(&text, "ref: refs/heads/main\n");
	if (cm_buf_status(&text) < 0)
		return out_of_memory(err);
	r = cm_replace_file_at(f->dir_fd, CM_MIRROR_REPOSITORY "/HEAD", text.data, text.len, 0644,
			       false);
	if (r < 0)
		return cannot_write(f, -r, err);
	if (f->head_name || f->head_id[0] != '\0' || f->n_refs == 0)
		return CM_OK;
	return cm_report_note(f->rep, err,
			      "HEAD of '%s' names no branch that is there: 'main' is taken for it",
			      f->url->text);
}

/* --- the content that a checkout needs ---------------------------------------------------------------- */

struct blobs {
	const struct fetch *f;
	/* an id a line */
	struct cm_buf ids;
};

/* "MODE blob ID\tPATH" */
static int take_entry(void *data, const char *entry, size_t len)
{
	struct blobs *blobs = data;
	const char *type = strchr(entry, ' ');
	const char *path = strchr(entry, '\t');

	(void)len;
	if (!type || !path || !cm_text_has_prefix(type, " blob ") ||
	    !cm_host_git_is_in_cone(blobs->f->opts->wants.sparse, path + 1))
		return CM_OK;
	type += strlen(" blob ");
	cm_buf_printf(&blobs->ids, "%.*s\n", (int)(path - type), type);
	return cm_buf_status(&blobs->ids);
}

/* "ID missing" */
static int take_missing(void *data, const char *line, size_t len)
{
	struct cm_buf *ids = data;
	size_t hex = strcspn(line, " ");

	(void)len;
	if (strcmp(line + hex, " missing") == 0)
		cm_buf_printf(ids, "%.*s\n", (int)hex, line);
	return cm_buf_status(ids);
}

/* Where no remote promises anything git says what is not there, and fetches nothing. */
static int find_missing(struct fetch *f, const char *commit, struct cm_buf *missing,
			struct cm_error *err)
{
	const char *const tree[] = { "-C", f->path, "ls-tree", "-r", "-z", commit, NULL };
	const char *const check[] = { "-C", f->path, "cat-file", "--batch-check", NULL };
	struct blobs blobs = { .f = f };
	struct cm_host_git_call list = { .argv = tree, .on_part = take_entry, .data = &blobs };
	struct cm_host_git_call look = { .argv = check,
					 .in = &blobs.ids,
					 .on_part = take_missing,
					 .data = missing,
					 .end = '\n' };
	int r;

	cm_buf_init(&blobs.ids, IDS_MAX);
	r = cm_host_git_run(&f->git, &list, err);
	if (r == CM_OK)
		r = cm_host_git_run(&f->git, &look, err);
	if (r == CM_OK && (list.status != 0 || look.status != 0)) {
		f->state.reason = CM_FETCH_MIRROR;
		r = cm_host_git_failed(list.status != 0 ? &list : &look, "read the mirror", err);
	}
	cm_buf_clear(&blobs.ids);
	cm_buf_clear(&list.said);
	cm_buf_clear(&look.said);
	return r;
}

/* By id, in one request: git's own way to fetch what is missing. */
static int fetch_blobs(struct fetch *f, struct cm_error *err)
{
	const char *const argv[] = { "-C",
				     f->path,
				     "-c",
				     "fetch.negotiationAlgorithm=noop",
				     "fetch",
				     "--progress",
				     "--no-tags",
				     "--no-write-fetch-head",
				     "--recurse-submodules=no",
				     "--filter=blob:none",
				     "--stdin",
				     "origin",
				     NULL };
	const struct cm_host_git_take take = { f->opts->take_ref, f->opts->pr,
					       f->opts->take_branch };
	char commit[CM_HOST_GIT_HEX_SIZE];
	CM_AUTO_BUF struct cm_buf missing = { 0 };
	int r = cm_host_git_find(&f->git, f->path, &take, commit, err);

	/* what is not there is missed, with the nearest names, where it is checked out */
	if (r < 0 || commit[0] == '\0')
		return r;
	cm_buf_init(&missing, IDS_MAX);
	r = cm_host_git_write_config(f->opts->mirror, f->is_sha256, err);
	if (r == CM_OK)
		r = find_missing(f, commit, &missing, err);
	return r == CM_OK && missing.len > 0 ? run_remote(f, argv, &missing, err) : r;
}

/* --- all of it --------------------------------------------------------------------------------------- */

static int transfer(struct fetch *f, bool is_fresh, struct cm_error *err)
{
	int r = open_mirror(f, is_fresh, err);

	if (r == CM_OK)
		r = drop_others(f, err);
	if (r == CM_OK)
		r = download(f, err);
	if (r == CM_OK)
		r = set_head(f, err);
	return r == CM_OK && f->opts->wants.filters_blobs ? fetch_blobs(f, err) : r;
}

static int note(struct fetch *f, struct cm_error *err)
{
	const char *reasons[3];
	size_t n = 0;

	if (f->is_sha256)
		reasons[n++] = "SHA-256 repositories";
	if (f->opts->wants.filters_blobs)
		reasons[n++] = "partial clones";
	if (f->opts->depth > 0 && !CM_LIBRARY_HAS_DEPTH)
		reasons[n++] = "--depth before 1.7";
	return cm_host_git_note(f->rep, reasons, n, err);
}

static int run(struct fetch *f, struct cm_error *err)
{
	struct cm_error why = CM_ERROR_INIT;
	int r = ask_refs(f, err);

	if (r == CM_OK && f->is_for_sha256_alone && !f->is_sha256)
		r = cm_error_set(err, CM_E_UNSUPPORTED, 0, "it is no SHA-256 repository");
	if (r == CM_OK)
		r = note(f, err);
	if (r == CM_OK && f->is_sha256 && f->opts->wants.filters_blobs) {
		cm_error_set(err, CM_E_UNSUPPORTED, 0,
			     "a partial clone of a SHA-256 repository is not supported");
		cm_error_hint(err, "leave --filter out");
		r = CM_E_UNSUPPORTED;
	}
	if (r < 0)
		return r;
	r = transfer(f, f->opts->is_fresh, &why);
	/* what an earlier fetch left may be what is wrong */
	if (r < 0 && cm_guard_exceeded() == CM_GUARD_NONE && !f->is_new && r != CM_E_NOMEM &&
	    r != CM_E_LIMIT && !cm_fetch_is_remote(f->state.reason)) {
		why = (struct cm_error)CM_ERROR_INIT;
		f->rep->reason = NULL;
		r = transfer(f, true, &why);
	}
	if (r < 0 && err)
		*err = why;
	return r;
}

int cm_host_git_check_fetch(const struct cm_fetch_options *opts, const struct cm_giturl *url,
			    struct cm_error *err)
{
	bool needs_git = opts->wants.filters_blobs || (opts->depth > 0 && !CM_LIBRARY_HAS_DEPTH);
	bool is_http = url->kind == CM_GITURL_HTTP || url->kind == CM_GITURL_HTTPS;
	bool is_ssh = url->kind == CM_GITURL_SSH;
	int r;

	if (!needs_git && !opts->wants.has_lfs)
		return CM_OK;
	if (opts->wants.has_lfs && !is_http && !is_ssh) {
		cm_error_set(err, CM_E_UNSUPPORTED, 0,
			     "LFS content cannot be had over this protocol");
		cm_error_hint(err, "give the repository's https address, and a token in "
				   "CASEMATE_GIT_TOKEN where it is private");
		return CM_E_UNSUPPORTED;
	}
	r = cm_host_git_check(opts->wants.has_lfs, err);
	return r == CM_OK && is_ssh ? cm_host_git_ssh_check(opts->credential, opts->ssh.agent, err)
				    : r;
}

static int open_all(struct fetch *f, struct cm_error *err)
{
	const struct cm_host_git_access access = { .url = f->url,
						   .credential = f->opts->credential,
						   .ssh = &f->opts->ssh,
						   .ca_file = f->opts->ca_file };
	int r = cm_host_git_open(&f->git, &access, f->rep, err);

	if (r < 0)
		return r;
	f->path = cm_path_join(f->opts->mirror, CM_MIRROR_REPOSITORY);
	if (!f->path)
		return out_of_memory(err);
	f->dir_fd = open(f->opts->mirror, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return f->dir_fd < 0 ? cannot_write(f, errno, err) : CM_OK;
}

static void clear(struct fetch *f)
{
	cm_host_git_close(&f->git);
	cm_fd_close(&f->dir_fd);
	free(f->path);
	free(f->head_name);
	cm_strv_clear(&f->wanted);
	cm_strv_clear(&f->extra);
	cm_names_clear(&f->names);
}

int cm_host_git_fetch(const struct cm_fetch_options *opts, const struct cm_giturl *url,
		      struct cm_report *rep, bool *ret_is_sha256, struct cm_error *err)
{
	struct fetch f = { .opts = opts,
			   .url = url,
			   .rep = rep,
			   .git = CM_HOST_GIT_INIT,
			   .dir_fd = -1,
			   .is_for_sha256_alone = ret_is_sha256 != NULL };
	int r = open_all(&f, err);

	if (r == CM_OK)
		r = run(&f, err);
	if (ret_is_sha256)
		*ret_is_sha256 = f.is_sha256;
	clear(&f);
	return r;
}
