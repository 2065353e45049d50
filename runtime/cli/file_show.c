/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cli/file_show.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/base/alloc.h"
#include "runtime/base/base64.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/json_write.h"
#include "runtime/base/num.h"
#include "runtime/base/text.h"

/* years of four digits */
#define MIN_SECONDS (-62167219200LL)
#define MAX_SECONDS 253402300799LL
/* "2026-11-29T20:52:26": what comes before the fraction */
#define SECONDS_LEN 19
#define TIME_SIZE 40
#define OWNER_WIDTH 5

static const char *type_name(const struct cm_path_info *info)
{
	switch (info->type) {
	case CM_PATH_FILE:
		return "file";
	case CM_PATH_DIRECTORY:
		return "directory";
	case CM_PATH_LINK:
		return "symlink";
	case CM_PATH_OTHER:
		break;
	}
	switch (info->full_mode & S_IFMT) {
	case S_IFIFO:
		return "fifo";
	case S_IFSOCK:
		return "socket";
	case S_IFCHR:
	case S_IFBLK:
		return "device";
	default:
		return "unknown";
	}
}

static uint32_t mode_of(const struct cm_path_info *info)
{
	return (info->full_mode != 0 ? info->full_mode : info->mode) & 07777U;
}

/* With nanoseconds; "" for what has no such form. */
static void format_time(const struct cm_path_info *info, char ret[TIME_SIZE])
{
	char whole[CM_CLOCK_RFC3339_SIZE];

	ret[0] = '\0';
	if (info->mtime_sec < MIN_SECONDS || info->mtime_sec > MAX_SECONDS)
		return;
	cm_clock_rfc3339(info->mtime_sec * 1000, whole);
	(void)snprintf(ret, TIME_SIZE, "%.*s.%09" PRIu32 "Z", SECONDS_LEN, whole, info->mtime_nsec);
}

static void put_escaped(struct cm_buf *out, const char *text)
{
	cm_text_escape(out, text, strlen(text), false);
}

static const char *slash_behind(const char *prefix)
{
	return prefix[0] != '\0' && prefix[strlen(prefix) - 1] != '/' ? "/" : "";
}

static void put_name(struct cm_buf *out, const char *prefix, const char *path)
{
	put_escaped(out, prefix);
	cm_buf_puts(out, slash_behind(prefix));
	put_escaped(out, path);
}

/* --- JSON ---------------------------------------------------------------------------------- */

static bool is_utf8(const char *text, size_t len)
{
	while (len > 0) {
		size_t n = cm_text_utf8_len(text, len);

		if (n == 0)
			return false;
		text += n;
		len -= n;
	}
	return true;
}

/* key, and where it takes that keyBase64 */
static void put_json_text(struct cm_json_writer *w, const char *key, const char *key_whole,
			  const char *text)
{
	CM_AUTO_BUF struct cm_buf whole = { 0 };
	size_t len = strlen(text);

	cm_jw_key(w, key);
	cm_jw_string_len(w, text, len);
	if (is_utf8(text, len))
		return;
	cm_buf_init(&whole, 2 * len + 4);
	cm_base64_encode(&whole, text, len, true);
	if (cm_buf_status(&whole) == CM_OK)
		cm_jw_kstring(w, key_whole, whole.data);
}

/* key with the number that it is, or key_name with the name. */
static void put_json_owner(struct cm_json_writer *w, const char *key, const char *key_name,
			   const char *owner)
{
	uint64_t number = 0;
	bool is_number = owner && cm_parse_u64(owner, key, 0, UINT32_MAX, &number, NULL) == CM_OK;

	cm_jw_known_uint(w, key, is_number, number);
	if (owner && !is_number)
		cm_jw_kstring(w, key_name, owner);
}

static void put_json(const struct cm_path_info *info, const char *prefix, struct cm_buf *out)
{
	CM_AUTO_FREE char *whole = NULL;
	struct cm_json_writer w;
	char time[TIME_SIZE];
	char mode[16];

	if (prefix[0] != '\0') {
		whole = cm_asprintf("%s%s%s", prefix, slash_behind(prefix), info->path);
		if (!whole) {
			out->has_failed = true;
			return;
		}
	}
	cm_jw_init(&w, out, false);
	cm_jw_object(&w);
	put_json_text(&w, "name", "nameBase64", whole ? whole : info->path);
	cm_jw_kstring(&w, "type", type_name(info));
	cm_jw_kuint(&w, "size", info->size);
	cm_jw_known_uint(&w, "allocated", info->has_usage, info->allocated);
	(void)snprintf(mode, sizeof(mode), "%04o", mode_of(info));
	cm_jw_kstring(&w, "mode", mode);
	put_json_owner(&w, "uid", "owner", info->owner);
	put_json_owner(&w, "gid", "group", info->group);
	cm_jw_known_uint(&w, "links", info->has_usage, info->links);
	format_time(info, time);
	cm_jw_kstring(&w, "mtime", time[0] ? time : NULL);
	if (info->type == CM_PATH_LINK && info->target)
		put_json_text(&w, "target", "targetBase64", info->target);
	cm_jw_end_object(&w);
	cm_buf_putc(out, '\n');
}

/* --- for people ---------------------------------------------------------------------------- */

static char type_letter(const struct cm_path_info *info)
{
	switch (info->type) {
	case CM_PATH_FILE:
		return '-';
	case CM_PATH_DIRECTORY:
		return 'd';
	case CM_PATH_LINK:
		return 'l';
	case CM_PATH_OTHER:
		break;
	}
	switch (info->full_mode & S_IFMT) {
	case S_IFIFO:
		return 'p';
	case S_IFSOCK:
		return 's';
	case S_IFCHR:
		return 'c';
	case S_IFBLK:
		return 'b';
	default:
		return '?';
	}
}

/* "-rw-r--r--" */
static void format_mode(const struct cm_path_info *info, char ret[11])
{
	static const char bits[] = "rwxrwxrwx";

	ret[0] = type_letter(info);
	for (unsigned int i = 0; i < 9; i++)
		ret[1 + i] = '-';
	for (unsigned int i = 0; i < 9; i++) {
		if ((info->mode & (0400U >> i)) != 0)
			ret[1 + i] = bits[i];
	}
	ret[10] = '\0';
}

static void put_owner(struct cm_buf *out, const char *owner)
{
	size_t len = owner ? strlen(owner) : 1;

	for (; len < OWNER_WIDTH; len++)
		cm_buf_putc(out, ' ');
	put_escaped(out, owner ? owner : "-");
	cm_buf_putc(out, ' ');
}

static void put_target(struct cm_buf *out, const char *before, const struct cm_path_info *info,
		       const char *behind)
{
	if (info->type != CM_PATH_LINK || !info->target)
		return;
	cm_buf_puts(out, before);
	put_escaped(out, info->target);
	cm_buf_puts(out, behind);
}

static void put_long(const struct cm_path_info *info, const char *prefix, struct cm_buf *out)
{
	char time[TIME_SIZE];
	char mode[11];

	format_mode(info, mode);
	format_time(info, time);
	if (time[0])
		time[SECONDS_LEN] = '\0';
	cm_buf_printf(out, "%s ", mode);
	put_owner(out, info->owner);
	put_owner(out, info->group);
	cm_buf_printf(out, "%12" PRIu64 " %s ", info->size, time[0] ? time : "-");
	put_name(out, prefix, info->path);
	put_target(out, " -> ", info, "");
	cm_buf_putc(out, '\n');
}

static void put_block(const struct cm_path_info *info, const char *prefix, struct cm_buf *out)
{
	char time[TIME_SIZE];

	format_time(info, time);
	cm_buf_puts(out, "name:   ");
	put_name(out, prefix, info->path);
	cm_buf_printf(out, "\ntype:   %s\nsize:   %" PRIu64, type_name(info), info->size);
	if (info->has_usage)
		cm_buf_printf(out, " (%" PRIu64 " on disk)", info->allocated);
	cm_buf_printf(out, "\nmode:   %04o\nowner:  ", mode_of(info));
	put_escaped(out, info->owner ? info->owner : "-");
	cm_buf_putc(out, ':');
	put_escaped(out, info->group ? info->group : "-");
	cm_buf_printf(out, "\nmtime:  %s\n", time[0] ? time : "-");
	put_target(out, "target: ", info, "\n");
}

void cm_file_show_entry(const struct cm_path_info *info, const char *prefix, enum cm_file_form form,
			struct cm_buf *out)
{
	switch (form) {
	case CM_FILE_NUL:
		cm_buf_puts(out, prefix);
		cm_buf_puts(out, slash_behind(prefix));
		cm_buf_append(out, info->path, strlen(info->path) + 1);
		return;
	case CM_FILE_LONG:
		put_long(info, prefix, out);
		return;
	case CM_FILE_JSON:
		put_json(info, prefix, out);
		return;
	case CM_FILE_BLOCK:
		put_block(info, prefix, out);
		return;
	case CM_FILE_NAMES:
		put_name(out, prefix, info->path);
		cm_buf_putc(out, '\n');
		return;
	}
}

/* --- events -------------------------------------------------------------------------------- */

static const char *event_name(const struct cm_watch_event *event)
{
	switch (event->kind) {
	case CM_WATCH_READY:
		return "ready";
	case CM_WATCH_CREATED:
		return "created";
	case CM_WATCH_MODIFIED:
		return "modified";
	case CM_WATCH_ATTRIBUTES:
		return "attributes";
	case CM_WATCH_REMOVED:
		return "removed";
	case CM_WATCH_RENAMED:
		/* where to is not known: it is not here any more */
		return event->to ? "renamed" : "removed";
	case CM_WATCH_OVERFLOW:
		return "overflow";
	case CM_WATCH_CLOSED:
		return "closed";
	case CM_WATCH_FOUND:
		return "found";
	case CM_WATCH_GONE:
		return "gone";
	}
	return "unknown";
}

/* NULL: it is about none. */
static const char *path_of(const struct cm_watch_event *event)
{
	if (event->kind == CM_WATCH_READY || event->kind == CM_WATCH_OVERFLOW)
		return NULL;
	return event->kind == CM_WATCH_RENAMED && event->to ? event->to : event->path;
}

static const char *from_of(const struct cm_watch_event *event)
{
	return event->kind == CM_WATCH_RENAMED && event->to ? event->path : NULL;
}

static void put_json_event(const struct cm_watch_event *event, struct cm_buf *out)
{
	const char *path = path_of(event);
	const char *from = from_of(event);
	struct cm_json_writer w;

	cm_jw_init(&w, out, false);
	cm_jw_object(&w);
	cm_jw_kstring(&w, "type", event_name(event));
	if (path)
		put_json_text(&w, "path", "pathBase64", path);
	if (path && event->type != 0)
		cm_jw_kbool(&w, "directory", event->type == CM_PATH_DIRECTORY);
	else if (path)
		cm_jw_kstring(&w, "directory", NULL);
	if (from)
		put_json_text(&w, "from", "fromBase64", from);
	cm_jw_end_object(&w);
	cm_buf_putc(out, '\n');
}

void cm_file_show_event(const struct cm_watch_event *event, bool is_json, struct cm_buf *out)
{
	const char *path = path_of(event);
	const char *from = from_of(event);

	if (is_json) {
		put_json_event(event, out);
		return;
	}
	cm_buf_puts(out, event_name(event));
	if (from) {
		cm_buf_putc(out, ' ');
		put_escaped(out, from);
		cm_buf_puts(out, " ->");
	}
	if (path) {
		cm_buf_putc(out, ' ');
		put_escaped(out, path[0] != '\0' ? path : ".");
		if (event->type == CM_PATH_DIRECTORY)
			cm_buf_putc(out, '/');
	}
	cm_buf_putc(out, '\n');
}
