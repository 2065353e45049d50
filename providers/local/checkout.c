/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The repository of a session, checked out in a jail of its own: it sees the source read-only, the
 * session directory, and nothing else of the user's. It ends with the checkout, before any code of
 * the repository runs.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
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

struct output {
	int fd;
	struct cm_buf text;
};

/* Take what comes until the end record; both pipes are ours alone. */
static int collect(struct cm_local *l, struct output *out, struct output *errs,
		   struct cm_rec_end *ret, struct cm_error *err)
{
	struct pollfd p[3] = { { .fd = l->jail.sock, .events = POLLIN },
			       { .fd = out->fd, .events = POLLIN },
			       { .fd = errs->fd, .events = POLLIN } };
	struct output *outputs[2] = { out, errs };
	struct cm_msg msg;
	bool has_ended = false;
	int r = CM_OK;

	cm_msg_init(&msg);
	while (r == CM_OK && (!has_ended || p[1].fd >= 0 || p[2].fd >= 0)) {
		char chunk[8192];

		if (poll(p, 3, -1) < 0 && errno != EINTR)
			r = cm_error_set(err, CM_E_SYS, errno, "cannot wait for the checkout");
		for (int i = 0; i < 2 && r == CM_OK; i++) {
			ssize_t n;

			if (p[i + 1].fd < 0 || p[i + 1].revents == 0)
				continue;
			n = read(p[i + 1].fd, chunk, sizeof(chunk));
			if (n > 0)
				cm_buf_append(&outputs[i]->text, chunk, (size_t)n);
			else if (n == 0 || errno != EINTR)
				p[i + 1].fd = -1;
		}
		if (r < 0 || p[0].fd < 0 || p[0].revents == 0)
			continue;
		if (cm_proto_recv(p[0].fd, &msg) != 1) {
			p[0].fd = -1;
			if (!has_ended)
				r = cm_error_set(err, CM_E_ISOLATION, 0,
						 "the checkout's jail ended unexpectedly");
		} else if (msg.rec.type == CM_REC_END) {
			*ret = msg.rec.body.end;
			has_ended = true;
		} else if (msg.rec.type == CM_REC_REFUSED || msg.rec.type == CM_REC_FAILED) {
			cm_proto_error_of(&msg, err);
			r = err ? err->code : CM_E_ISOLATION;
		}
	}
	cm_msg_clear(&msg);
	return r;
}

/* Run the helper in the jail; its stdout is a JSON object, its stderr text for people. */
static int run_helper(struct cm_local *l, char *const *argv, uint32_t flags, struct cm_buf *report,
		      struct cm_buf *text, struct cm_rec_end *ret, struct cm_error *err)
{
	char *env[] = { (char *)(uintptr_t) "PATH=/usr/bin:/bin", NULL };
	struct cm_jail_command command = {
		.argv = argv, .env = env, .cwd = "/", .flags = flags, .stdio = { -1, -1, -1 }
	};
	int out[2];
	int errs[2];
	uint64_t id;
	int r;

	if (pipe2(out, O_CLOEXEC) < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot make a pipe");
	if (pipe2(errs, O_CLOEXEC) < 0) {
		(void)close(out[0]);
		(void)close(out[1]);
		return cm_error_set(err, CM_E_SYS, errno, "cannot make a pipe");
	}
	command.stdio[1] = out[1];
	command.stdio[2] = errs[1];
	r = cm_jail_exec(&l->jail, &command, &id, err);
	(void)close(out[1]);
	(void)close(errs[1]);
	if (r == CM_OK) {
		struct output o = { out[0], *report };
		struct output e = { errs[0], *text };

		r = collect(l, &o, &e, ret, err);
		*report = o.text;
		*text = e.text;
	}
	(void)close(out[0]);
	(void)close(errs[0]);
	return r;
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
		r = run_helper(l, status, 0, &report, &text, &end, err);
	if (r == CM_OK)
		tell_uncommitted(l, &report);
	cm_buf_clear(&report);
	cm_buf_clear(&text);
	if (r == CM_OK)
		r = run_helper(l, clone, CM_EXECF_LAST, &report, &text, &end, err);
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
	if (!l->is_temporary || l->is_kept)
		r = cm_store_session_save(&l->session, true, err);
	if (r == CM_OK)
		cm_local_phase(l, "checkout", start_us);
	return r;
}
