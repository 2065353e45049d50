/* SPDX-License-Identifier: Apache-2.0 */
/*
 * git-lfs fetches the content into the mirror, by its digest, which it checks. The server that it asks
 * is the repository's own, whatever the repository's .lfsconfig names (host_git_config.c); where the
 * objects then are is that server's to say, and another host is told no credential
 * (host_git_answer.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "isolation/checkout/guard.h"
#include "isolation/checkout/host_git_fetch.h"
#include "isolation/checkout/host_git_resolve.h"
#include "isolation/checkout/mirror.h"
#include "runtime/base/fd.h"
#include "runtime/base/path.h"

#define ID_LEN 64
/* of one argument, which may have 128 KiB */
#define INCLUDE_MAX (100UL * 1024)
/* Looking through history for what to fetch is work; an answer can have git-lfs ask for ever, too. */
#define LFS_BUSY_MS 20000

struct fetch {
	const struct cm_fetch_options *opts;
	const struct cm_giturl *url;
	struct cm_report *rep;
	const struct cm_host_git_access *access;
	struct cm_host_git git;
	char *path;
	char commit[CM_HOST_GIT_HEX_SIZE];
	/* patterns of what is checked out, a comma between them */
	struct cm_buf include;
	/* some of it cannot be said so: then all is fetched */
	bool wants_all;
};

static int out_of_memory(struct cm_error *err)
{
	return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
}

/* Where the repository would have its content fetched from. */
static int note_server(struct fetch *f, struct cm_error *err)
{
	CM_AUTO_FREE char *blob = cm_asprintf("%s:.lfsconfig", f->commit);
	CM_AUTO_BUF struct cm_buf own = { 0 };
	const char *const argv[] = { "-C", f->path, "config",  "--blob",
				     blob, "--get", "lfs.url", NULL };
	char url[CM_GITURL_MAX];
	int r;

	if (!blob)
		return out_of_memory(err);
	r = cm_host_git_line(&f->git, argv, url, sizeof(url), err);
	cm_buf_init(&own, 2 * CM_GITURL_MAX);
	if (r == CM_OK)
		r = cm_host_git_lfs_url(f->access, &own, err);
	if (r < 0 || url[0] == '\0' || strcmp(url, own.data) == 0)
		return r;
	return cm_report_note(f->rep, err,
			      "the repository's .lfsconfig names another LFS server, which is not "
			      "asked: LFS content comes from the repository's own");
}

static void add_pattern(struct fetch *f, const char *path, size_t len)
{
	for (size_t i = 0; i < len; i++)
		f->wants_all = f->wants_all || strchr(",*?[]\\!#", path[i]);
	cm_buf_printf(&f->include, "%s%.*s", f->include.len > 0 ? "," : "", (int)len, path);
}

static bool is_below_any(const char *sparse, const char *path)
{
	for (const char *dir = sparse; dir; dir = strchr(dir, '\n')) {
		size_t len;

		dir += *dir == '\n';
		len = strcspn(dir, "\n");
		if (strncmp(path, dir, len) == 0 && path[len] == '/')
			return true;
	}
	return false;
}

/* "ID - PATH" of a file beside the directories above those that are checked out */
static int take_file(void *data, const char *line, size_t len)
{
	struct fetch *f = data;
	const char *sparse = f->opts->wants.sparse;
	const char *path = line + ID_LEN + 3;

	if (len > ID_LEN + 3 && strspn(line, "0123456789abcdef") == ID_LEN &&
	    cm_host_git_is_in_cone(sparse, path) && !is_below_any(sparse, path))
		add_pattern(f, path, strlen(path));
	return CM_OK;
}

static int choose_files(struct fetch *f, struct cm_error *err)
{
	const char *const argv[] = { "-C", f->path, "lfs", "ls-files", "--long", f->commit, NULL };
	struct cm_host_git_call call = {
		.argv = argv, .on_part = take_file, .data = f, .end = '\n'
	};
	int r;

	for (const char *dir = f->opts->wants.sparse; dir; dir = strchr(dir, '\n')) {
		dir += *dir == '\n';
		add_pattern(f, dir, strcspn(dir, "\n"));
	}
	r = cm_host_git_run(&f->git, &call, err);
	if (r == CM_OK && call.status != 0)
		r = cm_host_git_failed(&call, "list the LFS files", err);
	cm_buf_clear(&call.said);
	if (cm_buf_status(&f->include) < 0)
		f->wants_all = true;
	return r;
}

/* Of an ssh server: it names the LFS server, and gives the token for it. */
static int say_of_ssh(const struct fetch *f, enum cm_fetch_reason reason, int r,
		      struct cm_error *err)
{
	if (reason == CM_FETCH_AUTH_REFUSED || reason == CM_FETCH_AUTH_REQUIRED ||
	    reason == CM_FETCH_FORBIDDEN)
		return cm_error_set(err, CM_E_CHECKOUT, 0,
				    "the LFS server does not accept what %s gave for it",
				    f->url->host);
	if (reason == CM_FETCH_COMMAND || reason == CM_FETCH_NOT_FOUND)
		return cm_error_set(err, CM_E_CHECKOUT, 0,
				    "%s does not say where its LFS content is "
				    "(git-lfs-authenticate)",
				    f->url->host);
	return r;
}

static int download(struct fetch *f, struct cm_error *err)
{
	bool has_include = f->opts->wants.sparse && !f->wants_all;
	const char *const argv[] = { "-C",
				     f->path,
				     "lfs",
				     "fetch",
				     "origin",
				     f->commit,
				     has_include ? "--include" : NULL,
				     f->include.data,
				     NULL };
	struct cm_host_git_call call = { .argv = argv, .busy_ms_max = LFS_BUSY_MS };
	struct cm_fetch_state state = { 0 };
	int r;

	cm_guard_phase(CM_GUARD_PREPARING);
	r = cm_host_git_run(&f->git, &call, err);
	cm_guard_phase(CM_GUARD_LOCAL);
	if (r == CM_OK && call.status != 0)
		r = cm_host_git_fetch_error(&call, f->opts, f->url, &state, f->rep, err);
	if (r < 0 && f->url->kind == CM_GITURL_SSH)
		r = say_of_ssh(f, state.reason, r, err);
	if (r == CM_E_CHECKOUT)
		cm_error_hint(err, "the repository's own server has not all of its LFS content; "
				   "without --lfs the files stay pointers");
	cm_buf_clear(&call.said);
	return r;
}

static int run(struct fetch *f, struct cm_error *err)
{
	static const char *const reasons[] = { "Git LFS" };
	const struct cm_fetch_options *opts = f->opts;
	const struct cm_host_git_take take = { opts->take_ref, opts->pr, opts->take_branch };
	int r = cm_host_git_note(f->rep, reasons, CM_ARRAY_SIZE(reasons), err);

	if (r == CM_OK)
		r = cm_host_git_write_config(opts->mirror,
					     cm_host_git_mirror_is_sha256(opts->mirror), err);
	if (r == CM_OK)
		r = cm_host_git_find(&f->git, f->path, &take, f->commit, err);
	/* what is not there is missed, with the nearest names, where it is checked out */
	if (r < 0 || f->commit[0] == '\0')
		return r;
	r = note_server(f, err);
	if (r == CM_OK && opts->wants.sparse)
		r = choose_files(f, err);
	return r == CM_OK ? download(f, err) : r;
}

/*
 * What git-lfs leaves beside the content: in the configuration how it got in at an address that the
 * server named, and records of what failed.
 */
static int clean_up(const struct fetch *f, struct cm_error *err)
{
	static const char *const names[] = { CM_MIRROR_REPOSITORY "/lfs/logs",
					     CM_MIRROR_REPOSITORY "/lfs/tmp",
					     CM_MIRROR_REPOSITORY "/lfs/cache" };
	CM_AUTO_FD int dir = open(f->opts->mirror, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = dir < 0 ? -errno : 0;

	for (size_t i = 0; i < CM_ARRAY_SIZE(names) && r == 0; i++)
		r = cm_remove_tree_at(dir, names[i]);
	if (r < 0)
		return cm_library_sys_error(err, -r, "cannot write the mirror '%s'", f->path);
	return cm_host_git_write_config(f->opts->mirror,
					cm_host_git_mirror_is_sha256(f->opts->mirror), err);
}

int cm_host_git_fetch_lfs(const struct cm_fetch_options *opts, const struct cm_giturl *url,
			  struct cm_report *rep, struct cm_error *err)
{
	const struct cm_host_git_access access = { .url = url,
						   .credential = opts->credential,
						   .ssh = &opts->ssh,
						   .ca_file = opts->ca_file,
						   .has_lfs = true };
	struct fetch f = {
		.opts = opts, .url = url, .rep = rep, .access = &access, .git = CM_HOST_GIT_INIT
	};
	int r = cm_host_git_open(&f.git, &access, rep, err);

	cm_buf_init(&f.include, INCLUDE_MAX);
	f.path = cm_path_join(opts->mirror, CM_MIRROR_REPOSITORY);
	if (r == CM_OK)
		r = f.path ? run(&f, err) : out_of_memory(err);
	/* also of what failed, which is then the error to tell */
	if (f.path && clean_up(&f, r == CM_OK ? err : NULL) < 0 && r == CM_OK)
		r = CM_E_SYS;
	cm_host_git_close(&f.git);
	cm_buf_clear(&f.include);
	free(f.path);
	return r;
}
