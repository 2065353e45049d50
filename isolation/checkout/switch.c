/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order: what would be lost is looked for under the index's lock; what is to be done is written down;
 * files are replaced one at a time, each whole or not at all; the index; the branch, HEAD. A death
 * after the second step is made up for by going through the rest again: what is there is then known as
 * the old, the new, or work of after the death, which stays.
 */
#include "isolation/checkout/switch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "isolation/checkout/changes.h"
#include "isolation/checkout/lfs.h"
#include "isolation/checkout/worktree.h"
#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/gitref.h"
#include "runtime/base/text.h"

/* in the scratch */
#define JOURNAL "switch"
#define JOURNAL_MAX 4096
#define JOURNAL_FORMAT "casemate switch 1"
#define INDEX "index"

#define LOCK "index.lock"
/* what a lock of ours has in it, to be told from git's */
static const char lock_mark[] = "casemate\n";

#define NAMES_MAX 3

struct run {
	struct cm_existing *ex;
	const struct cm_switch *sw;
	struct cm_report *rep;
	struct cm_changes changes;
	git_index *index;
	struct stat index_st;
	bool has_lock;
	/* by the journal of one that was killed */
	bool is_again;
};

static int cannot_write(const struct run *run, int sys_errno, struct cm_error *err)
{
	return cm_library_sys_error(err, sys_errno, "cannot write below '%s'", run->ex->git_path);
}

/* Ours was left by a killed update: the session's lock lets in one at a time. */
static bool is_our_lock(const struct cm_existing *ex)
{
	char text[sizeof(lock_mark) + 1];
	CM_AUTO_FD int fd =
		openat(ex->git_fd, LOCK, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : cm_read_all(fd, text, sizeof(text));

	return n == (ssize_t)sizeof(lock_mark) - 1 &&
	       memcmp(text, lock_mark, sizeof(lock_mark) - 1) == 0;
}

static int lock_index(struct run *run, struct cm_error *err)
{
	CM_AUTO_FD int fd = -1;
	int r;

	if (is_our_lock(run->ex))
		(void)unlinkat(run->ex->git_fd, LOCK, 0);
	fd = openat(run->ex->git_fd, LOCK, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    0644);
	if (fd < 0 && errno == EEXIST) {
		cm_error_set(err, CM_E_BUSY, 0, "git is at work in '%s': '.git/" LOCK "' is there",
			     run->ex->path);
		cm_error_hint(err, "try again when it is through; where no git runs in the "
				   "session, remove that file");
		return CM_E_BUSY;
	}
	if (fd < 0)
		return cannot_write(run, errno, err);
	run->has_lock = true;
	r = cm_write_all(fd, lock_mark, sizeof(lock_mark) - 1);
	return r < 0 ? cannot_write(run, -r, err) : CM_OK;
}

/* A copy of our own: nobody changes it while it is worked on. No index is an empty one. */
static int copy_index(struct run *run, struct cm_error *err)
{
	CM_AUTO_FD int from =
		openat(run->ex->git_fd, INDEX, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	CM_AUTO_FD int to = -1;
	CM_AUTO_FREE char *chunk = cm_malloc(65536);
	ssize_t n = 0;
	int r = 0;

	if (!chunk)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	if (from < 0)
		return errno == ENOENT ? CM_OK : cannot_write(run, errno, err);
	(void)unlinkat(run->ex->scratch_fd, INDEX, 0);
	to = openat(run->ex->scratch_fd, INDEX, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (to < 0 || fstat(from, &run->index_st) < 0)
		return cannot_write(run, errno, err);
	while (r == 0 && (n = read(from, chunk, 65536)) > 0)
		r = cm_write_all(to, chunk, (size_t)n);
	if (n < 0)
		r = -errno;
	return r < 0 ? cannot_write(run, -r, err) : CM_OK;
}

/* What a sparse checkout leaves out is not to be told from what somebody removed. */
static int check_whole(const struct run *run, struct cm_error *err)
{
	size_t n = git_index_entrycount(run->index);

	for (size_t i = 0; i < n; i++) {
		const git_index_entry *e = git_index_get_byindex(run->index, i);

		if ((e->flags_extended & GIT_INDEX_ENTRY_SKIP_WORKTREE) == 0)
			continue;
		cm_error_set(err, CM_E_UNSUPPORTED, 0, "'%s' is a sparse checkout", run->ex->path);
		cm_error_hint(err, "its remote's branches are up to date: switch with git, in the "
				   "session (--git rw)");
		return CM_E_UNSUPPORTED;
	}
	return CM_OK;
}

static int open_index(struct run *run, struct cm_error *err)
{
	CM_AUTO_FREE char *path = cm_asprintf("%s/" INDEX, run->ex->scratch_path);
	int r;

	if (!path)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	r = copy_index(run, err);
	if (r < 0)
		return r;
	if (git_index_open(&run->index, path) < 0)
		return cm_library_error(err, "cannot read the index of '%s'", run->ex->path);
	return check_whole(run, err);
}

static void name_place(const struct cm_switch *sw, char *buf, size_t size)
{
	char hex[CM_OID_HEX_SIZE];

	git_oid_tostr(hex, sizeof(hex), &sw->to);
	(void)snprintf(buf, size, "%s%.200s", sw->branch ? "branch " : "commit ",
		       sw->branch ? sw->branch : hex);
}

/* Files of Git LFS among the changes: those in whose way something is, or those that are written. */
static size_t count_lfs(const struct run *run, bool is_blocked)
{
	const struct cm_changes *changes = &run->changes;
	const git_oid *commit = is_blocked ? &changes->old_commit : &changes->new_commit;
	size_t n = 0;

	for (size_t i = 0; i < changes->n; i++) {
		const struct cm_change *c = &changes->v[i];
		uint32_t mode = is_blocked ? c->old_mode : c->new_mode;

		n += c->is_blocked == is_blocked &&
		     (mode == GIT_FILEMODE_BLOB || mode == GIT_FILEMODE_BLOB_EXECUTABLE) &&
		     cm_lfs_is_file(run->ex->repo, commit, c->path,
				    is_blocked ? &c->old_id : &c->new_id);
	}
	return n;
}

/* Their content is git-lfs's to bring and to compare, which is not here. */
static int note_lfs(struct run *run, bool is_blocked, struct cm_error *err)
{
	size_t n = count_lfs(run, is_blocked);

	if (n == 0)
		return CM_OK;
	if (is_blocked)
		return cm_report_note(run->rep, err,
				      "%zu of them %s of Git LFS, whose content is not compared: "
				      "git in the session can switch (--git rw)",
				      n, n == 1 ? "is" : "are");
	run->rep->lfs_pointers += n;
	return cm_report_note(run->rep, err,
			      "%zu file%s of Git LFS that changed %s: 'git lfs pull' in the "
			      "session fetches the content (--git rw, --network host)",
			      n, n == 1 ? "" : "s", n == 1 ? "is a pointer" : "are pointers");
}

static int note_blocked(struct run *run, struct cm_error *err)
{
	char place[256];
	char names[400] = "";
	size_t shown = 0;
	int r;

	name_place(run->sw, place, sizeof(place));
	for (size_t i = 0; i < run->changes.n && shown < NAMES_MAX; i++) {
		size_t len = strlen(names);

		if (!run->changes.v[i].is_blocked)
			continue;
		(void)snprintf(names + len, sizeof(names) - len, "%s'%.100s'",
			       shown > 0 ? ", " : "", run->changes.v[i].path);
		shown++;
	}
	r = cm_report_note(run->rep, err,
			   "the checkout stays as it is, and not on %s: changes that are not "
			   "committed would be overwritten in %zu file%s: %s%s",
			   place, run->changes.n_blocked, run->changes.n_blocked == 1 ? "" : "s",
			   names, run->changes.n_blocked > shown ? ", ..." : "");
	return r == CM_OK ? note_lfs(run, true, err) : r;
}

/* Half a merge is work that is not committed, whatever files it touches. */
static bool is_in_the_middle(const struct run *run)
{
	return git_repository_state(run->ex->repo) != GIT_REPOSITORY_STATE_NONE ||
	       git_index_has_conflicts(run->index);
}

static int note_middle(struct run *run, struct cm_error *err)
{
	char place[256];

	name_place(run->sw, place, sizeof(place));
	return cm_report_note(run->rep, err,
			      "the checkout stays as it is, and not on %s: a merge, rebase or the "
			      "like is not finished in it",
			      place);
}

static int write_journal(struct run *run, struct cm_error *err)
{
	const struct cm_switch *sw = run->sw;
	char from[CM_OID_HEX_SIZE];
	char to[CM_OID_HEX_SIZE];
	char tip[CM_OID_HEX_SIZE];
	char text[JOURNAL_MAX];
	int n;
	int r;

	git_oid_tostr(from, sizeof(from), &sw->from);
	git_oid_tostr(to, sizeof(to), &sw->to);
	git_oid_tostr(tip, sizeof(tip), &sw->tip);
	n = snprintf(text, sizeof(text), JOURNAL_FORMAT "\n%s\n%s\n%s\n%s\n",
		     sw->is_unborn ? "" : from, to, sw->has_tip ? tip : "",
		     sw->branch ? sw->branch : "");
	if (n >= (int)sizeof(text))
		return cm_error_set(err, CM_E_INVALID, 0, "the name of the branch is too long");
	r = cm_replace_file_at(run->ex->scratch_fd, JOURNAL, text, (size_t)n, 0600, false);
	if (r < 0)
		return cannot_write(run, -r, err);
	run->ex->is_unfinished = true;
	return CM_OK;
}

/* Locks of refs are held for a moment each; this is the list of where. */
static int tell_locks(struct run *run, struct cm_error *err)
{
	CM_AUTO_STRV struct cm_strv names = { 0 };

	if (cm_strv_add(&names, "HEAD") != CM_OK ||
	    (run->sw->branch && cm_strv_addf(&names, "refs/heads/%s", run->sw->branch) != CM_OK))
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	return cm_existing_will_lock(run->ex, &names, err);
}

static int publish_index(struct run *run, struct cm_error *err)
{
	/* of an update that was killed just here: this index is in a directory of ours, and one update runs */
	if (unlinkat(run->ex->scratch_fd, LOCK, 0) < 0 && errno != ENOENT)
		return cannot_write(run, errno, err);
	if (git_index_write(run->index) < 0)
		return cm_library_error(err, "cannot write the index of '%s'", run->ex->path);
	if (renameat(run->ex->scratch_fd, INDEX, run->ex->git_fd, INDEX) < 0)
		return cannot_write(run, errno, err);
	return CM_OK;
}

/* A branch that was moved since is not the one that was looked at. */
static int set_branch(struct run *run, const char *name, struct cm_error *err)
{
	const struct cm_switch *sw = run->sw;
	CM_AUTO_GIT(git_reference) git_reference *made = NULL;
	git_oid is;
	bool is_there = git_reference_name_to_id(&is, run->ex->repo, name) == 0;
	int r = 0;

	if (is_there && git_oid_equal(&is, &sw->to))
		return CM_OK;
	if (sw->has_tip)
		r = git_reference_create_matching(&made, run->ex->repo, name, &sw->to, 1, &sw->tip,
						  "checkout: fast-forward");
	else
		r = git_reference_create(&made, run->ex->repo, name, &sw->to, 0,
					 "checkout: created");
	return r < 0 ? cm_library_error(err, "cannot write branch '%s'", sw->branch) : CM_OK;
}

static int set_head(struct run *run, const char *name, struct cm_error *err)
{
	int r = name ? git_repository_set_head(run->ex->repo, name)
		     : git_repository_set_head_detached(run->ex->repo, &run->sw->to);

	return r < 0 ? cm_library_error(err, "cannot write HEAD of '%s'", run->ex->path) : CM_OK;
}

static int apply(struct run *run, struct cm_error *err)
{
	CM_AUTO_FREE char *name =
		run->sw->branch ? cm_asprintf("refs/heads/%s", run->sw->branch) : NULL;
	int r;

	if (run->sw->branch && !name)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	/* a name that cannot be is found out about before the files are others */
	if (name && !run->sw->has_tip) {
		r = set_branch(run, name, err);
		if (r < 0) {
			run->ex->is_unfinished = run->is_again;
			return r;
		}
	}
	r = cm_worktree_keep_racy(run->index, &run->index_st, err);
	if (r == CM_OK)
		r = cm_worktree_write(run->ex, &run->changes, run->index, run->rep, err);
	if (r == CM_OK)
		r = publish_index(run, err);
	if (r == CM_OK && name)
		r = set_branch(run, name, err);
	if (r == CM_OK)
		r = set_head(run, name, err);
	return r;
}

static int begin(struct run *run, struct cm_error *err)
{
	const struct cm_switch *sw = run->sw;
	int r = cm_changes_read(run->ex, sw->is_unborn ? NULL : &sw->from, &sw->to, &run->changes,
				err);

	if (r == CM_OK)
		r = lock_index(run, err);
	if (r == CM_OK)
		r = open_index(run, err);
	return r == CM_OK ? cm_changes_look(run->ex, &run->changes, run->index, &run->index_st, err)
			  : r;
}

static void end(struct run *run)
{
	if (run->has_lock && is_our_lock(run->ex))
		(void)unlinkat(run->ex->git_fd, LOCK, 0);
	git_index_free(run->index);
	cm_changes_clear(&run->changes);
}

/* Their files are another repository's. */
static int note_submodules(struct run *run, struct cm_error *err)
{
	size_t n = 0;

	for (size_t i = 0; i < run->changes.n; i++)
		n += run->changes.v[i].new_mode == GIT_FILEMODE_COMMIT;
	run->rep->submodules += n;
	if (n == 0)
		return CM_OK;
	return cm_report_note(run->rep, err,
			      "%zu submodule%s at another commit there, and stay%s as %s: 'git "
			      "submodule update' in the session brings %s",
			      n, n == 1 ? " is" : "s are", n == 1 ? "s" : "",
			      n == 1 ? "it is" : "they are", n == 1 ? "it" : "them");
}

static int carry_out(struct run *run, bool *ret_is_done, struct cm_error *err)
{
	int r = begin(run, err);

	*ret_is_done = false;
	if (r < 0)
		return r;
	if (!run->is_again && is_in_the_middle(run))
		return note_middle(run, err);
	if (!run->is_again && run->changes.n_blocked > 0)
		return note_blocked(run, err);
	r = tell_locks(run, err);
	/* whoever looks on knows that from here on it is better seen to its end */
	cm_report_progress(run->rep, "files", 0, run->changes.n + 1);
	if (r == CM_OK && !run->is_again)
		r = write_journal(run, err);
	if (r == CM_OK)
		r = apply(run, err);
	if (r < 0)
		return r;
	run->rep->files += run->changes.n;
	r = note_submodules(run, err);
	if (r == CM_OK)
		r = note_lfs(run, false, err);
	if (r < 0)
		return r;
	run->ex->is_unfinished = false;
	(void)unlinkat(run->ex->scratch_fd, JOURNAL, 0);
	*ret_is_done = true;
	return CM_OK;
}

int cm_switch(struct cm_existing *ex, const struct cm_switch *sw, struct cm_report *rep,
	      bool *ret_is_done, struct cm_error *err)
{
	struct run run = { .ex = ex, .sw = sw, .rep = rep };
	int r = carry_out(&run, ret_is_done, err);

	end(&run);
	return r;
}

/* false: no line, or more than one id. "" is none. */
static bool take_id(char **rest, git_oid *ret, bool *ret_is_there)
{
	const char *line = strsep(rest, "\n");

	*ret_is_there = line && line[0] != '\0';
	return line && (!*ret_is_there ||
			(strlen(line) == GIT_OID_HEXSZ && git_oid_fromstr(ret, line) == 0));
}

/* text is cut into pieces, one of which is sw->branch. */
static bool parse_journal(char *text, struct cm_switch *sw)
{
	char *rest = text;
	const char *format = strsep(&rest, "\n");
	bool has_from;
	bool has_to;

	if (strcmp(format, JOURNAL_FORMAT) != 0 || !take_id(&rest, &sw->from, &has_from) ||
	    !take_id(&rest, &sw->to, &has_to) || !take_id(&rest, &sw->tip, &sw->has_tip) || !has_to)
		return false;
	sw->is_unborn = !has_from;
	sw->branch = strsep(&rest, "\n");
	if (!sw->branch || !rest)
		return false;
	if (sw->branch[0] == '\0')
		sw->branch = NULL;
	return !sw->branch || cm_gitref_is_branch(sw->branch);
}

/* Where somebody has gone on since, with commits or another branch, there is nothing to finish. */
static bool is_as_left(const struct cm_existing *ex, const struct cm_switch *sw)
{
	git_oid head;

	if (git_reference_name_to_id(&head, ex->repo, "HEAD") < 0)
		return sw->is_unborn;
	return git_oid_equal(&head, &sw->to) || (!sw->is_unborn && git_oid_equal(&head, &sw->from));
}

int cm_switch_finish(struct cm_existing *ex, struct cm_report *rep, struct cm_error *err)
{
	char text[JOURNAL_MAX];
	struct cm_switch sw = { .branch = NULL };
	struct run run = { .ex = ex, .sw = &sw, .rep = rep, .is_again = true };
	char place[256];
	bool is_done;
	int r;

	if (is_our_lock(ex))
		(void)unlinkat(ex->git_fd, LOCK, 0);
	if (cm_read_file_at(ex->scratch_fd, JOURNAL, text, sizeof(text)) < 0 ||
	    !parse_journal(text, &sw) || !is_as_left(ex, &sw))
		return CM_OK;
	r = carry_out(&run, &is_done, err);
	end(&run);
	name_place(&sw, place, sizeof(place));
	return r < 0 ? r
		     : cm_report_note(rep, err,
				      "an earlier update to %s was broken off, and is finished now",
				      place);
}
