/* SPDX-License-Identifier: Apache-2.0 */
/* Progress lines, the final report, and text for people. */
#include "isolation/checkout/report.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/json_write.h"
#include "runtime/base/text.h"

#define PROGRESS_INTERVAL_MS 200
#define REPORT_MAX (1U << 20)

void cm_report_clear(struct cm_report *rep)
{
	free(rep->ref);
	free(rep->branch);
	rep->ref = NULL;
	rep->branch = NULL;
	for (size_t i = 0; i < rep->n_modules; i++) {
		free(rep->modules[i].name);
		free(rep->modules[i].path);
		free(rep->modules[i].url);
	}
	free(rep->modules);
	rep->modules = NULL;
	rep->n_modules = 0;
	cm_strv_clear(&rep->notes);
}

/*
 * A pipe that poll calls writable takes PIPE_BUF bytes without blocking, and a line is shorter;
 * the descriptor's own flags are shared with the caller and therefore left alone.
 */
static void write_if_ready(int fd, const struct cm_buf *line)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	if (poll(&p, 1, 0) != 1 || !(p.revents & POLLOUT))
		return;
	/* a lost progress line is no reason to fail */
	(void)cm_write_all(fd, line->data, line->len);
}

static void write_progress(struct cm_report *rep, uint64_t received, uint64_t total,
			   const uint64_t *bytes)
{
	CM_AUTO_BUF struct cm_buf line = { 0 };
	struct cm_json_writer w;

	cm_buf_init(&line, 512);
	cm_jw_init(&w, &line, false);
	cm_jw_object(&w);
	cm_jw_kstring(&w, "type", "checkout.progress");
	cm_jw_kstring(&w, "stage", rep->stage);
	cm_jw_kuint(&w, "received", received);
	cm_jw_kuint(&w, "total", total);
	if (bytes)
		cm_jw_kuint(&w, "bytes", *bytes);
	cm_jw_end_object(&w);
	cm_buf_putc(&line, '\n');
	if (cm_buf_status(&line) == CM_OK)
		write_if_ready(rep->progress_fd, &line);
}

/* Is it time for a line? */
static bool is_due(struct cm_report *rep, const char *stage, bool is_last)
{
	int64_t now;

	if (rep->progress_fd < 0)
		return false;
	now = cm_clock_mono_ms();
	if (!is_last && rep->stage == stage && now - rep->written_ms < PROGRESS_INTERVAL_MS)
		return false;
	rep->stage = stage;
	rep->written_ms = now;
	return true;
}

void cm_report_progress(struct cm_report *rep, const char *stage, uint64_t received, uint64_t total)
{
	if (is_due(rep, stage, received >= total))
		write_progress(rep, received, total, NULL);
}

void cm_report_transfer(struct cm_report *rep, uint64_t received, uint64_t total, uint64_t bytes)
{
	if (is_due(rep, "fetch", received >= total && rep->received < total))
		write_progress(rep, received, total, &bytes);
	rep->received = received;
}

void cm_report_alive(struct cm_report *rep)
{
	CM_AUTO_BUF struct cm_buf line = { 0 };

	if (!is_due(rep, rep->stage ? rep->stage : "", false))
		return;
	cm_buf_init(&line, 64);
	cm_buf_puts(&line, "{\"type\":\"checkout.alive\"}\n");
	if (cm_buf_status(&line) == CM_OK)
		write_if_ready(rep->progress_fd, &line);
}

int cm_report_note(struct cm_report *rep, struct cm_error *err, const char *fmt, ...)
{
	CM_AUTO_BUF struct cm_buf clean = { 0 };
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* names in notes come from the repository, and notes end on terminals */
	cm_buf_init(&clean, sizeof(text) * 4);
	cm_text_escape(&clean, text, strlen(text), false);
	if (cm_buf_status(&clean) != CM_OK || cm_strv_add(&rep->notes, clean.data) != CM_OK)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	return CM_OK;
}

int cm_report_lfs(struct cm_report *rep, struct cm_error *err)
{
	if (rep->lfs_pointers == 0)
		return CM_OK;
	return cm_report_note(rep, err,
			      "%llu %s Git LFS pointer%s (--lfs fetches what they stand for)",
			      (unsigned long long)rep->lfs_pointers,
			      rep->lfs_pointers == 1 ? "file is a" : "files are",
			      rep->lfs_pointers == 1 ? "" : "s");
}

static void write_modules(struct cm_json_writer *w, const struct cm_report *rep)
{
	cm_jw_key(w, "modules");
	cm_jw_array(w);
	for (size_t i = 0; i < rep->n_modules; i++) {
		const struct cm_report_module *m = &rep->modules[i];

		cm_jw_object(w);
		cm_jw_kstring(w, "name", m->name);
		cm_jw_kstring(w, "path", m->path);
		cm_jw_kstring(w, "url", m->url);
		cm_jw_kstring(w, "commit", m->commit);
		cm_jw_end_object(w);
	}
	cm_jw_end_array(w);
}

static void write_result(struct cm_json_writer *w, const struct cm_report *rep)
{
	cm_jw_kstring(w, "code", cm_error_name(CM_OK));
	cm_jw_kstring(w, "commit", rep->commit[0] != '\0' ? rep->commit : NULL);
	cm_jw_kstring(w, "ref", rep->ref);
	cm_jw_kstring(w, "branch", rep->branch);
	cm_jw_kuint(w, "files", rep->files);
	cm_jw_kuint(w, "submodules", rep->submodules);
	cm_jw_kuint(w, "lfs_pointers", rep->lfs_pointers);
	cm_jw_kbool(w, "held", rep->is_held);
	if (rep->modules)
		write_modules(w, rep);
	cm_jw_key(w, "notes");
	cm_jw_array(w);
	for (size_t i = 0; i < rep->notes.n; i++)
		cm_jw_string(w, rep->notes.v[i]);
	cm_jw_end_array(w);
}

static void write_failure(struct cm_json_writer *w, const struct cm_report *rep,
			  const struct cm_error *failure)
{
	cm_jw_kstring(w, "code", cm_error_name(failure->code));
	cm_jw_kstring(w, "msg", failure->msg);
	cm_jw_kstring(w, "hint", failure->hint[0] != '\0' ? failure->hint : NULL);
	if (rep->reason)
		cm_jw_kstring(w, "reason", rep->reason);
	if (failure->sys_errno != 0)
		cm_jw_kint(w, "errno", failure->sys_errno);
}

static int write_line(int fd, struct cm_buf *line, struct cm_error *err)
{
	int r;

	cm_buf_putc(line, '\n');
	r = cm_buf_status(line);
	if (r != CM_OK)
		return cm_error_set(err, r, 0, "cannot make the report");
	r = cm_write_all(fd, line->data, line->len);
	if (r < 0)
		return cm_error_set(err, CM_E_SYS, -r, "cannot write the report");
	return CM_OK;
}

int cm_report_finish(struct cm_report *rep, const struct cm_error *failure, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf out = { 0 };
	struct cm_json_writer w;

	if (rep->report_fd < 0) {
		for (size_t i = 0; i < rep->notes.n && failure->code == CM_OK; i++)
			dprintf(STDERR_FILENO, "note: %s\n", rep->notes.v[i]);
		return CM_OK;
	}
	cm_buf_init(&out, REPORT_MAX);
	cm_jw_init(&w, &out, false);
	cm_jw_object(&w);
	cm_jw_kstring(&w, "type", "checkout.report");
	if (failure->code == CM_OK)
		write_result(&w, rep);
	else
		write_failure(&w, rep, failure);
	cm_jw_end_object(&w);
	return write_line(rep->report_fd, &out, err);
}

int cm_report_status(const struct cm_status *status, bool with_unsaved, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf out = { 0 };
	struct cm_json_writer w;

	cm_buf_init(&out, 256);
	cm_jw_init(&w, &out, false);
	cm_jw_object(&w);
	cm_jw_key(&w, "uncommitted");
	/* for a note it is none; before it is removed nobody may take it for that */
	if (status->is_tree_known || !with_unsaved)
		cm_jw_uint(&w, status->uncommitted);
	else
		cm_jw_null(&w);
	if (with_unsaved) {
		cm_jw_kuint(&w, "untracked", status->untracked);
		cm_jw_kuint(&w, "stashes", status->stashes);
		cm_jw_kuint(&w, "commits", status->commits);
	}
	cm_jw_end_object(&w);
	return write_line(STDOUT_FILENO, &out, err);
}

static void print_line(const char *prefix, const char *text, int sys_errno)
{
	CM_AUTO_BUF struct cm_buf line = { 0 };

	cm_buf_init(&line, 8192);
	cm_buf_puts(&line, prefix);
	cm_text_escape(&line, text, strlen(text), false);
	if (sys_errno != 0)
		cm_buf_printf(&line, ": %s", strerror(sys_errno));
	cm_buf_putc(&line, '\n');
	if (cm_buf_status(&line) == CM_OK)
		(void)cm_write_all(STDERR_FILENO, line.data, line.len);
}

void cm_report_print_error(const struct cm_error *failure)
{
	print_line("casemate-checkout: ", failure->msg, failure->sys_errno);
	if (failure->hint[0] != '\0')
		print_line("hint: ", failure->hint, 0);
}
