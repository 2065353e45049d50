/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The repository of a session, checked out in a jail of its own: it sees the source read-only, the
 * session directory, and nothing else of the user's. It ends with the checkout, before any code of
 * the repository runs.
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
#include "providers/local/local_internal.h"
#include "runtime/base/alloc.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/json.h"
#include "runtime/base/text.h"

#define HELPER_INSIDE "/run/casemate/casemate-checkout"
#define REPORT_MAX (1024UL * 1024)
#define UP_WAIT_MS 20000

static bool is_there(const struct cm_local *l)
{
	struct stat st;

	return lstat(l->session.record.checkout, &st) == 0;
}

/* A bare spec: the session directory to write to, the source to read, and the network is none. */
static int make_spec(const struct cm_local *l, struct cm_spec *spec, struct cm_error *err)
{
	cm_spec_init(spec);
	spec->workspace_kind = CM_WORKSPACE_DIR;
	spec->workspace = cm_strdup(l->session.session_dir);
	spec->network = CM_NETWORK_NONE;
	spec->user = CM_USER_USER;
	spec->git = CM_GIT_RW;
	spec->min_level = l->spec.min_level;
	spec->limits.timeout.value = CM_UNLIMITED;
	spec->volumes = cm_calloc(1, sizeof(*spec->volumes));
	if (!spec->workspace || !spec->volumes)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the checkout");
	spec->n_volumes = 1;
	spec->volumes[0].src = cm_strdup(l->spec.repo);
	spec->volumes[0].dst = cm_strdup(l->spec.repo);
	spec->volumes[0].is_read_only = true;
	if (!spec->volumes[0].src || !spec->volumes[0].dst)
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

static int in_jail(struct cm_local *l, struct cm_error *err)
{
	char *const status[] = { (char *)(uintptr_t)HELPER_INSIDE, (char *)(uintptr_t) "--status",
				 l->spec.repo, NULL };
	char *const clone[] = { (char *)(uintptr_t)HELPER_INSIDE,
				(char *)(uintptr_t) "--source",
				l->spec.repo,
				(char *)(uintptr_t) "--target",
				l->session.record.checkout,
				(char *)(uintptr_t) "--report-fd",
				(char *)(uintptr_t) "1",
				l->spec.ref ? (char *)(uintptr_t) "--ref" : NULL,
				l->spec.ref,
				NULL };
	CM_AUTO_BUF struct cm_buf report = { 0 };
	CM_AUTO_BUF struct cm_buf text = { 0 };
	struct cm_rec_end end = { 0 };
	int r = cm_jail_wait_up(&l->jail, cm_clock_mono_ms() + UP_WAIT_MS, err);

	cm_buf_init(&report, REPORT_MAX);
	cm_buf_init(&text, REPORT_MAX);
	if (r == CM_OK)
		r = cm_local_inside(l, status, 0, &report, &text, &end, err);
	if (r == CM_OK)
		tell_uncommitted(l, &report);
	cm_buf_clear(&report);
	cm_buf_clear(&text);
	if (r == CM_OK)
		r = cm_local_inside(l, clone, CM_EXECF_LAST, &report, &text, &end, err);
	if (r == CM_OK)
		r = take_report(l, &report, &text, &end, err);
	return r;
}

int cm_local_checkout(struct cm_local *l, struct cm_error *err)
{
	char helper[PATH_MAX];
	struct cm_local_plan extra = { helper, HELPER_INSIDE, true };
	const struct cm_jail_start start = { .is_temporary = true };
	struct cm_spec spec;
	CM_AUTO_BUF struct cm_buf plan = { 0 };
	int64_t start_us = cm_clock_mono_us();
	int r;

	/* what was checked out is the user's work now, and wins */
	if (l->spec.workspace_kind != CM_WORKSPACE_REPO || l->is_running ||
	    (l->session.record.is_checkout_done && is_there(l)))
		return CM_OK;
	r = cm_local_make_session_dir(l, err);
	if (r == CM_OK)
		r = cm_helper_path("casemate-checkout", helper, sizeof(helper), err);
	if (r < 0)
		return r;
	cm_buf_init(&plan, 16UL * 1024 * 1024);
	r = make_spec(l, &spec, err);
	if (r == CM_OK)
		r = cm_local_plan_make(l, &spec, l->session.session_dir, true, &extra, &plan, err);
	if (r == CM_OK)
		r = cm_jail_spawn(&l->jail, &start, err);
	if (r == CM_OK)
		r = cm_jail_plan(&l->jail, plan.data, plan.len, err);
	if (r == CM_OK)
		r = in_jail(l, err);
	cm_jail_close(&l->jail);
	cm_spec_clear(&spec);
	if (r < 0)
		return r;
	l->session.record.is_checkout_done = true;
	if (!l->is_temporary)
		r = cm_store_session_save(&l->session, true, err);
	if (r == CM_OK)
		cm_local_phase(l, "checkout", start_us);
	return r;
}
