/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The repository of a session, checked out in a jail of its own. It sees the source and, of a linked
 * worktree or a submodule, the git directory that is elsewhere, both read-only; the session
 * directory; and nothing else of the user's. It ends with the checkout, before any code of the
 * repository runs.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "providers/local/helper.h"
#include "providers/local/inside.h"
#include "runtime/base/alloc.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/json.h"
#include "runtime/base/path.h"
#include "runtime/base/text.h"

#define HELPER_INSIDE "/run/casemate/casemate-checkout"
#define REPORT_MAX (1024UL * 1024)
/*
 * As long as it gets on it may take its time, and it says so several times a second. What does not
 * get on waits for something that may never come, such as the other end of a FIFO; a file system
 * that is merely slow is heard of long before.
 */
#define SILENCE_MS 30000
/* as the helper names what it has begun */
#define PARTIAL_SUFFIX ".partial"

static bool is_there(const struct cm_local *l)
{
	struct stat st;

	return lstat(l->session.record.checkout, &st) == 0;
}

/* At its own path, as git's files name it. */
static int add_source(struct cm_spec *spec, const char *path)
{
	struct cm_volume *volume = &spec->volumes[spec->n_volumes++];

	volume->src = cm_strdup(path);
	volume->dst = cm_strdup(path);
	volume->is_read_only = true;
	return volume->src && volume->dst ? CM_OK : CM_E_NOMEM;
}

/* A bare spec: the session directory to write to, the source to read, and the network is none. */
static int make_spec(const struct cm_local *l, const struct cm_source_facts *source,
		     struct cm_spec *spec, struct cm_error *err)
{
	cm_spec_init(spec);
	spec->workspace_kind = CM_WORKSPACE_DIR;
	spec->workspace = cm_strdup(l->session.session_dir);
	spec->network = CM_NETWORK_NONE;
	spec->user = CM_USER_USER;
	spec->git = CM_GIT_RW;
	spec->min_level = l->spec.min_level;
	spec->limits.timeout.value = CM_UNLIMITED;
	spec->volumes = cm_calloc(2, sizeof(*spec->volumes));
	if (!spec->workspace || !spec->volumes || add_source(spec, source->path) < 0 ||
	    (source->git_dir && add_source(spec, source->git_dir) < 0))
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the checkout");
	return CM_OK;
}

static void tell_uncommitted(struct cm_local *l, const struct cm_buf *report)
{
	struct cm_json_doc *doc = NULL;
	char line[160];
	int64_t n;

	if (report->len == 0 ||
	    cm_json_parse(report->data, report->len, "status", 0, &doc, NULL) < 0)
		return;
	n = cm_json_int(cm_json_root(doc), "uncommitted", 0);
	cm_json_free(doc);
	if (n <= 0)
		return;
	(void)snprintf(line, sizeof(line),
		       "%lld uncommitted file%s %s not in the checkout (use --workspace to work on "
		       "the tree itself)",
		       (long long)n, n == 1 ? "" : "s", n == 1 ? "is" : "are");
	cm_local_note(l, line);
}

/* The helper's report: notes, or why it failed. It comes from a jail: checked, never trusted. */
static int take_report(struct cm_local *l, const struct cm_buf *report, const struct cm_buf *text,
		       const struct cm_rec_end *end, struct cm_error *err)
{
	struct cm_json_doc *doc = NULL;
	const struct cm_json *root = NULL;
	const struct cm_json *notes;

	if (report->len > 0 &&
	    cm_json_parse(report->data, report->len, "checkout", 0, &doc, NULL) == CM_OK)
		root = cm_json_root(doc);
	notes = cm_json_get(root, "notes");
	for (const struct cm_json *n = notes ? notes->first_child : NULL; n; n = n->next) {
		if (n->type == CM_JSON_STRING)
			cm_local_note(l, n->u.string);
	}
	if (end->kind == CM_END_EXIT && end->status == 0) {
		cm_json_free(doc);
		return CM_OK;
	}
	cm_error_set(err, CM_E_CHECKOUT, 0, "cannot check out '%s': %s", l->spec.repo,
		     cm_json_str(root, "msg", text->len > 0 ? text->data : "the helper failed"));
	cm_error_hint(err, "%s", cm_json_str(root, "hint", ""));
	cm_json_free(doc);
	return CM_E_CHECKOUT;
}

/* How many files are not committed is worth a note, and no reason to fail. */
static int run_status(struct cm_local *l, const struct cm_source_facts *source,
		      struct cm_error *err)
{
	char *const argv[] = {
		(char *)(uintptr_t)HELPER_INSIDE,    (char *)(uintptr_t) "--status", source->path,
		(char *)(uintptr_t) "--progress-fd", (char *)(uintptr_t) "1",	     NULL
	};
	struct cm_local_program status = { .argv = argv,
					   .silence_ms = SILENCE_MS,
					   .is_last_line = true };
	int r;

	cm_buf_init(&status.out, REPORT_MAX);
	cm_buf_init(&status.err, REPORT_MAX);
	r = cm_local_inside(l, &status, err);
	if (r == CM_OK)
		tell_uncommitted(l, &status.out);
	if (r == CM_E_TIMEOUT) {
		cm_local_note(l,
			      "whether files are not committed could not be found out: something "
			      "in the repository's tree cannot be read");
		r = CM_OK;
	}
	cm_buf_clear(&status.out);
	cm_buf_clear(&status.err);
	return r;
}

static int was_held_up(const struct cm_local *l, struct cm_error *err)
{
	cm_error_set(err, CM_E_TIMEOUT, 0, "cannot check out '%s': nothing moved for %d seconds",
		     l->spec.repo, SILENCE_MS / 1000);
	cm_error_hint(err, "its git directory has a FIFO or a device that waits for somebody (find "
			   "DIR -type p), or lies on a file system that does not answer");
	return CM_E_TIMEOUT;
}

static int run_clone(struct cm_local *l, const struct cm_source_facts *source, struct cm_error *err)
{
	char *const argv[] = { (char *)(uintptr_t)HELPER_INSIDE,
			       (char *)(uintptr_t) "--source",
			       source->path,
			       (char *)(uintptr_t) "--target",
			       l->session.record.checkout,
			       (char *)(uintptr_t) "--report-fd",
			       (char *)(uintptr_t) "1",
			       (char *)(uintptr_t) "--progress-fd",
			       (char *)(uintptr_t) "1",
			       l->spec.ref ? (char *)(uintptr_t) "--ref" : NULL,
			       l->spec.ref,
			       NULL };
	struct cm_local_program clone = {
		.argv = argv, .flags = CM_EXECF_LAST, .silence_ms = SILENCE_MS, .is_last_line = true
	};
	int r;

	cm_buf_init(&clone.out, REPORT_MAX);
	cm_buf_init(&clone.err, REPORT_MAX);
	r = cm_local_inside(l, &clone, err);
	if (r == CM_OK)
		r = take_report(l, &clone.out, &clone.err, &clone.end, err);
	else if (r == CM_E_TIMEOUT)
		r = was_held_up(l, err);
	cm_buf_clear(&clone.out);
	cm_buf_clear(&clone.err);
	return r;
}

/*
 * The helper removes what it began when it fails, but not when it is ended. What it made has its
 * name when it is complete; nobody has seen it yet, and nobody would take it for a checkout.
 */
static void remove_unfinished(const struct cm_local *l)
{
	CM_AUTO_FD int dir_fd =
		open(l->session.session_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	const char *name = cm_path_base(l->session.record.checkout);
	CM_AUTO_FREE char *partial = cm_asprintf("%s" PARTIAL_SUFFIX, name);

	if (dir_fd < 0 || !partial)
		return;
	(void)cm_remove_tree_at(dir_fd, partial);
	(void)cm_remove_tree_at(dir_fd, name);
}

static int in_jail(struct cm_local *l, struct cm_error *err)
{
	char helper[PATH_MAX];
	const struct cm_local_plan extra = { helper, HELPER_INSIDE, true };
	bool was_there = is_there(l);
	struct cm_source_facts source = { NULL, NULL };
	struct cm_spec spec;
	int r = cm_helper_path("casemate-checkout", helper, sizeof(helper), err);

	if (r == CM_OK)
		r = cm_source_facts_read(l->spec.repo, &source, err);
	if (r < 0)
		return r;
	r = make_spec(l, &source, &spec, err);
	if (r == CM_OK)
		r = cm_local_task_open(l, &spec, l->session.session_dir, &extra, err);
	if (r == CM_OK)
		r = run_status(l, &source, err);
	if (r == CM_OK)
		r = run_clone(l, &source, err);
	cm_local_task_close(l);
	cm_spec_clear(&spec);
	cm_source_facts_clear(&source);
	if (r == CM_E_CANCELLED) {
		cm_error_set(err, r, 0, "stopped while '%s' was checked out", l->spec.repo);
		cm_error_hint(err, "nothing of it is left: the next run begins again");
	}
	if (r < 0 && !was_there)
		remove_unfinished(l);
	return r;
}

/*
 * The helper gives a checkout its name when it is complete: a death before the record said so leaves
 * a whole one. What was there before is not ours to take.
 */
static int begin(struct cm_local *l, struct cm_error *err)
{
	if (l->is_temporary || l->session.record.is_checkout_begun || is_there(l))
		return CM_OK;
	l->session.record.is_checkout_begun = true;
	return cm_store_session_save(&l->session, false, err);
}

int cm_local_checkout(struct cm_local *l, struct cm_error *err)
{
	int64_t start_us = cm_clock_mono_us();
	int r;

	/* what was checked out is the user's work now, and wins */
	if (l->spec.workspace_kind != CM_WORKSPACE_REPO || l->is_running ||
	    (l->session.record.is_checkout_done && is_there(l)))
		return CM_OK;
	r = cm_local_make_session_dir(l, err);
	if (r == CM_OK)
		r = begin(l, err);
	if (r == CM_OK && !(l->session.record.is_checkout_begun && is_there(l)))
		r = in_jail(l, err);
	if (r < 0)
		return r;
	l->session.record.is_checkout_done = true;
	if (!l->is_temporary)
		r = cm_store_session_save(&l->session, true, err);
	if (r == CM_OK)
		cm_local_phase(l, "checkout", start_us);
	return r;
}
