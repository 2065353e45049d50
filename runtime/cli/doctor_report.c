/* SPDX-License-Identifier: Apache-2.0 */
/* The checks as a list, their summary, and both as text and JSON. Pure. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/base/json_write.h"
#include "runtime/base/text.h"
#include "runtime/cli/doctor.h"
#include "runtime/spec/spec.h"

#define NAME_WIDTH 18

static const char *const status_names[] = {
	[CM_DOCTOR_OK] = "ok",
	[CM_DOCTOR_WARN] = "warn",
	[CM_DOCTOR_FAIL] = "fail",
};

static const char *const status_colours[] = {
	[CM_DOCTOR_OK] = "\033[32m",
	[CM_DOCTOR_WARN] = "\033[33m",
	[CM_DOCTOR_FAIL] = "\033[1;31m",
};

static char *__attribute__((format(printf, 1, 0))) format(const char *fmt, va_list ap)
{
	va_list again;
	char *text;
	int n;

	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	text = n >= 0 ? cm_malloc((size_t)n + 1) : NULL;
	if (text)
		(void)vsnprintf(text, (size_t)n + 1, fmt, ap);
	return text;
}

void cm_doctor_add(struct cm_doctor_report *report, const char *name, enum cm_doctor_status status,
		   const char *fmt, ...)
{
	struct cm_doctor_check *check = &report->checks[report->n];
	va_list ap;

	if (report->n == CM_DOCTOR_MAX_CHECKS) {
		report->has_failed = true;
		return;
	}
	va_start(ap, fmt);
	*check = (struct cm_doctor_check){ .name = name, .status = status };
	check->detail = format(fmt, ap);
	va_end(ap);
	if (check->detail)
		report->n++;
	else
		report->has_failed = true;
}

void cm_doctor_fix(struct cm_doctor_report *report, unsigned int rank, const char *fmt, ...)
{
	struct cm_doctor_check *check;
	va_list ap;

	if (report->n == 0 || report->has_failed)
		return;
	check = &report->checks[report->n - 1];
	va_start(ap, fmt);
	check->fix = format(fmt, ap);
	va_end(ap);
	check->rank = rank;
	if (!check->fix)
		report->has_failed = true;
}

void cm_doctor_report_clear(struct cm_doctor_report *report)
{
	for (size_t i = 0; i < report->n; i++) {
		free(report->checks[i].detail);
		free(report->checks[i].fix);
	}
	*report = (struct cm_doctor_report){ 0 };
}

/* A failure goes before every warning, then the greater gain, then the earlier. */
static bool is_better(const struct cm_doctor_check *a, const struct cm_doctor_check *b)
{
	if (a->rank == 0)
		return false;
	if (!b || a->status != b->status)
		return !b || a->status > b->status;
	return a->rank > b->rank;
}

void cm_doctor_summarise(const struct cm_doctor_facts *facts, const struct cm_doctor_report *report,
			 struct cm_doctor_summary *ret)
{
	const struct cm_host *host = facts->host;
	const uint32_t needed = CM_CG_MEMORY | CM_CG_PIDS;
	bool has_groups = host->cgroup.kind != CM_CGROUP_NONE &&
			  (host->cgroup.controllers & needed) == needed;

	*ret = (struct cm_doctor_summary){ .can_jail = true };
	for (size_t i = 0; i < report->n; i++) {
		const struct cm_doctor_check *check = &report->checks[i];

		if (check->status == CM_DOCTOR_FAIL)
			ret->can_jail = false;
		if (check->status != CM_DOCTOR_OK && is_better(check, ret->best))
			ret->best = check;
	}
	if (ret->can_jail)
		(void)snprintf(ret->level, sizeof(ret->level), "%s%s",
			       cm_level_name(has_groups ? CM_LEVEL_FULL : CM_LEVEL_NO_CGROUP),
			       host->is_root ? "" : "-single-id");
}

/* "      fix: " before the first line; the others stand below its text. */
static void put_fix(struct cm_buf *out, const char *label, const char *fix)
{
	size_t indent = strlen(label);

	cm_buf_puts(out, label);
	for (;;) {
		size_t len = strcspn(fix, "\n");

		cm_text_escape(out, fix, len, false);
		cm_buf_putc(out, '\n');
		if (fix[len] == '\0')
			break;
		fix += len + 1;
		for (size_t i = 0; i < indent; i++)
			cm_buf_putc(out, ' ');
	}
}

void cm_doctor_print_text(const struct cm_doctor_report *report, bool has_colour,
			  struct cm_buf *out)
{
	for (size_t i = 0; i < report->n; i++) {
		const struct cm_doctor_check *check = &report->checks[i];
		const char *status = status_names[check->status];

		cm_buf_printf(out, "%s%s%s%*s%-*s ",
			      has_colour ? status_colours[check->status] : "", status,
			      has_colour ? "\033[0m" : "", 6 - (int)strlen(status), "", NAME_WIDTH,
			      check->name);
		cm_text_escape(out, check->detail, strlen(check->detail), false);
		cm_buf_putc(out, '\n');
		if (check->fix)
			put_fix(out, "      fix: ", check->fix);
	}
}

void cm_doctor_print_summary(const struct cm_doctor_summary *summary, struct cm_buf *out)
{
	const struct cm_doctor_check *best = summary->best;

	if (summary->can_jail) {
		cm_buf_printf(out, "casemate run reaches level '%s' here\n", summary->level);
	} else {
		cm_buf_puts(out, "no jail can be made here");
		if (best) {
			cm_buf_puts(out, ": ");
			cm_text_escape(out, best->detail, strlen(best->detail), false);
		}
		cm_buf_putc(out, '\n');
	}
	if (best && best->fix)
		put_fix(out, summary->can_jail ? "to improve it: " : "to change that: ", best->fix);
}

void cm_doctor_print_json(const struct cm_doctor_report *report,
			  const struct cm_doctor_summary *summary, struct cm_buf *out)
{
	struct cm_json_writer w;

	cm_jw_init(&w, out, true);
	cm_jw_object(&w);
	cm_jw_key(&w, "checks");
	cm_jw_array(&w);
	for (size_t i = 0; i < report->n; i++) {
		const struct cm_doctor_check *check = &report->checks[i];

		cm_jw_object(&w);
		cm_jw_kstring(&w, "check", check->name);
		cm_jw_kstring(&w, "status", status_names[check->status]);
		cm_jw_kstring(&w, "detail", check->detail);
		cm_jw_kstring(&w, "fix", check->fix);
		cm_jw_end_object(&w);
	}
	cm_jw_end_array(&w);
	cm_jw_key(&w, "summary");
	cm_jw_object(&w);
	cm_jw_kbool(&w, "canJail", summary->can_jail);
	cm_jw_kstring(&w, "level", summary->can_jail ? summary->level : NULL);
	cm_jw_kstring(&w, "check", summary->best ? summary->best->name : NULL);
	cm_jw_kstring(&w, "fix", summary->best ? summary->best->fix : NULL);
	cm_jw_end_object(&w);
	cm_jw_end_object(&w);
	cm_buf_putc(out, '\n');
}
