/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cli/remote/session_shown.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/base/num.h"
#include "runtime/base/text.h"
#include "runtime/cli/remote/away.h"
#include "runtime/spec/format.h"

#define LABEL_WIDTH 14
#define MIB (UINT64_C(1024) * 1024)

enum cm_session_status cm_away_session_status(enum cm_session_state state)
{
	switch (state) {
	case CM_SESSION_CREATED:
		return CM_STATUS_CREATED;
	case CM_SESSION_RUNNING:
		return CM_STATUS_RUNNING;
	case CM_SESSION_STOPPED:
		return CM_STATUS_STOPPED;
	case CM_SESSION_FAILED:
		break;
	}
	return CM_STATUS_ERROR;
}

void cm_away_session_record(const struct cm_session_info *info, struct cm_session_record *ret)
{
	cm_session_record_init(ret);
	ret->id = info->id;
	ret->created_ms = info->created_ms;
	ret->labels = info->labels;
	ret->repo = info->repo;
}

void cm_away_format_left(int64_t until_ms, char *buf, size_t size)
{
	int64_t left = until_ms - cm_clock_real_ms();

	if (until_ms <= 0)
		(void)snprintf(buf, size, "-");
	else if (left <= 0)
		(void)snprintf(buf, size, "over");
	else
		cm_format_duration((uint64_t)left, buf, size);
}

/* --- for programs -------------------------------------------------------------------------- */

static void write_first(struct cm_json_writer *w, const struct cm_session_info *info)
{
	cm_jw_kstring(w, "id", info->id);
	cm_jw_kstring(w, "status", cm_session_status_name(cm_away_session_status(info->state)));
	cm_jw_kstring(w, "level", NULL);
	cm_cli_write_time(w, "created", info->created_ms);
}

static void write_labels(struct cm_json_writer *w, const struct cm_session_info *info)
{
	cm_jw_key(w, "labels");
	cm_strv_write_map(&info->labels, w);
}

/* What sessions of this host do not have. */
static void write_away(struct cm_json_writer *w, const struct cm_session_info *info)
{
	cm_jw_kstring(w, "provider", cm_away_provider_name());
	cm_jw_kstring(w, "providerId", info->provider_id);
	cm_jw_kstring(w, "template", info->template_name);
	cm_cli_write_time(w, "timeoutAt", info->expires_ms);
}

void cm_away_session_write(struct cm_json_writer *w, const struct cm_session_info *info)
{
	cm_jw_object(w);
	write_first(w, info);
	cm_jw_kstring(w, "used", NULL);
	cm_jw_kstring(w, "root", NULL);
	cm_jw_kstring(w, "workspace", info->workdir);
	cm_jw_kstring(w, "repo", info->repo);
	write_labels(w, info);
	write_away(w, info);
	cm_jw_end_object(w);
}

static void write_known(struct cm_json_writer *w, const char *key, uint64_t bytes)
{
	cm_jw_known_uint(w, key, bytes != 0, bytes / MIB);
}

/* What the sandbox has; what it uses of that is not asked for. */
static void write_resources(struct cm_json_writer *w, const struct cm_session_info *info)
{
	cm_jw_key(w, "resources");
	cm_jw_object(w);
	write_known(w, "memoryMB", info->memory_bytes);
	write_known(w, "memoryUsedMB", 0);
	cm_jw_known_double(w, "cpuCores", info->cpus_milli != 0, (double)info->cpus_milli / 1000);
	cm_jw_kstring(w, "cpuPercent", NULL);
	write_known(w, "diskMB", info->disk_bytes);
	write_known(w, "diskUsedMB", 0);
	cm_jw_end_object(w);
}

void cm_away_session_write_all(struct cm_json_writer *w, const struct cm_session_info *info)
{
	cm_jw_object(w);
	write_first(w, info);
	write_labels(w, info);
	cm_jw_kstring(w, "name", info->id);
	write_away(w, info);
	cm_cli_write_time(w, "createdAt", info->created_ms);
	cm_jw_kstring(w, "lastUsedAt", NULL);
	cm_jw_key(w, "metadata");
	cm_jw_object(w);
	cm_jw_kstring(w, "workingDirectory", info->workdir);
	cm_jw_kstring(w, "platform", "linux");
	cm_jw_kstring(w, "isolation", NULL);
	cm_jw_end_object(w);
	cm_jw_key(w, "workspace");
	cm_jw_object(w);
	cm_jw_kstring(w, "path", info->workdir);
	cm_jw_kstring(w, "repo", info->repo);
	cm_jw_end_object(w);
	write_resources(w, info);
	cm_jw_end_object(w);
}

/* --- for people ---------------------------------------------------------------------------- */

/* One line; none when there is nothing to say. */
static void put_line(struct cm_buf *out, const char *label, const char *value, const char *more)
{
	if (!value || value[0] == '\0')
		return;
	cm_buf_printf(out, "%-*s", LABEL_WIDTH, label);
	cm_text_escape(out, value, strlen(value), false);
	cm_buf_printf(out, "%s\n", more);
}

static void put_time(struct cm_buf *out, const char *label, int64_t at_ms, const char *distance,
		     const char *behind)
{
	char when[CM_CLOCK_RFC3339_SIZE];
	char more[64];

	if (at_ms <= 0)
		return;
	cm_clock_rfc3339(at_ms, when);
	(void)snprintf(more, sizeof(more), " (%s%s)", distance, behind);
	put_line(out, label, when, more);
}

static void put_sizes(struct cm_buf *out, const struct cm_session_info *info)
{
	char text[32];

	if (info->cpus_milli != 0) {
		(void)snprintf(text, sizeof(text), "%g", (double)info->cpus_milli / 1000);
		put_line(out, "processors", text, "");
	}
	if (info->memory_bytes != 0) {
		cm_format_size(info->memory_bytes, text, sizeof(text));
		put_line(out, "memory", text, "");
	}
	if (info->disk_bytes != 0) {
		cm_format_size(info->disk_bytes, text, sizeof(text));
		put_line(out, "disk", text, "");
	}
}

void cm_away_session_put(struct cm_buf *out, const struct cm_session_info *info)
{
	char age[32];
	char left[32];

	put_line(out, "id", info->id, "");
	put_line(out, "status", cm_session_status_name(cm_away_session_status(info->state)), "");
	put_line(out, "provider", cm_away_provider_name(), "");
	put_line(out, "sandbox", info->provider_id, "");
	put_line(out, "template", info->template_name, "");
	cm_cli_format_age(info->created_ms, age, sizeof(age));
	put_time(out, "created", info->created_ms, age, " ago");
	cm_away_format_left(info->expires_ms, left, sizeof(left));
	put_time(out, "expires", info->expires_ms, left, " left");
	for (size_t i = 0; i < info->labels.n; i++)
		put_line(out, i == 0 ? "labels" : "", info->labels.v[i], "");
	put_line(out, "directory", info->workdir, "");
	put_line(out, "repository", info->repo, "");
	put_sizes(out, info);
}
