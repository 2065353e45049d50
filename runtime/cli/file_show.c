/* SPDX-License-Identifier: Apache-2.0 */
/* Entries and events of file operations, as lines for people and for programs. */
#include "runtime/cli/file_show.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/base64.h"
#include "runtime/base/clock.h"
#include "runtime/base/json_write.h"
#include "runtime/base/text.h"

/* years of four digits */
#define MIN_SECONDS (-62167219200LL)
#define MAX_SECONDS 253402300799LL
/* "2026-11-29T20:52:26": what comes before the fraction */
#define SECONDS_LEN 19
#define TIME_SIZE 40

const char *cm_file_type_name(uint32_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return "file";
	case S_IFDIR:
		return "directory";
	case S_IFLNK:
		return "symlink";
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

/* With nanoseconds; "" for what has no such form. */
static void format_time(const struct cm_file_entry *entry, char ret[TIME_SIZE])
{
	char whole[CM_CLOCK_RFC3339_SIZE];

	ret[0] = '\0';
	if (entry->mtime_sec < MIN_SECONDS || entry->mtime_sec > MAX_SECONDS)
		return;
	cm_clock_rfc3339(entry->mtime_sec * 1000, whole);
	(void)snprintf(ret, TIME_SIZE, "%.*s.%09uZ", SECONDS_LEN, whole, entry->mtime_nsec);
}

static void put_escaped(struct cm_buf *out, const char *text, size_t len)
{
	cm_text_escape(out, text, len, false);
}

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
static void put_json_name(struct cm_json_writer *w, const char *key, const char *key_whole,
			  const char *text, size_t len)
{
	CM_AUTO_BUF struct cm_buf whole = { 0 };

	cm_jw_key(w, key);
	cm_jw_string_len(w, text, len);
	if (is_utf8(text, len))
		return;
	cm_buf_init(&whole, 2UL * CM_FILE_PATH_MAX);
	cm_base64_encode(&whole, text, len, true);
	if (cm_buf_status(&whole) == CM_OK)
		cm_jw_kstring(w, key_whole, whole.data);
}

static void put_json_entry(const struct cm_file_msg *msg, struct cm_buf *out)
{
	const struct cm_file_entry *e = &msg->body.entry;
	struct cm_json_writer w;
	char time[TIME_SIZE];
	char mode[16];

	cm_jw_init(&w, out, false);
	cm_jw_object(&w);
	put_json_name(&w, "name", "nameBase64", msg->name, msg->name_len);
	cm_jw_kstring(&w, "type", cm_file_type_name(e->mode));
	cm_jw_kuint(&w, "size", e->size);
	cm_jw_kuint(&w, "allocated", e->allocated);
	(void)snprintf(mode, sizeof(mode), "%04o", e->mode & 07777U);
	cm_jw_kstring(&w, "mode", mode);
	cm_jw_kuint(&w, "uid", e->uid);
	cm_jw_kuint(&w, "gid", e->gid);
	cm_jw_kuint(&w, "links", e->n_links);
	format_time(e, time);
	cm_jw_kstring(&w, "mtime", time[0] ? time : NULL);
	if (S_ISLNK(e->mode))
		put_json_name(&w, "target", "targetBase64", msg->target, msg->target_len);
	cm_jw_end_object(&w);
	cm_buf_putc(out, '\n');
}

static char type_letter(uint32_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return '-';
	case S_IFDIR:
		return 'd';
	case S_IFLNK:
		return 'l';
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
static void format_mode(uint32_t mode, char ret[11])
{
	static const char bits[] = "rwxrwxrwx";

	ret[0] = type_letter(mode);
	for (unsigned int i = 0; i < 9; i++)
		ret[1 + i] = '-';
	for (unsigned int i = 0; i < 9; i++) {
		if ((mode & (0400U >> i)) != 0)
			ret[1 + i] = bits[i];
	}
	ret[10] = '\0';
}

static void put_target(const struct cm_file_msg *msg, const char *before, struct cm_buf *out)
{
	if (!S_ISLNK(msg->body.entry.mode))
		return;
	cm_buf_puts(out, before);
	put_escaped(out, msg->target, msg->target_len);
}

static void put_long(const struct cm_file_msg *msg, struct cm_buf *out)
{
	const struct cm_file_entry *e = &msg->body.entry;
	char time[TIME_SIZE];
	char mode[11];

	format_mode(e->mode, mode);
	format_time(e, time);
	if (time[0])
		time[SECONDS_LEN] = '\0';
	cm_buf_printf(out, "%s %5" PRIu32 " %5" PRIu32 " %12" PRIu64 " %s ", mode, e->uid, e->gid,
		      e->size, time[0] ? time : "-");
	put_escaped(out, msg->name, msg->name_len);
	put_target(msg, " -> ", out);
	cm_buf_putc(out, '\n');
}

static void put_block(const struct cm_file_msg *msg, struct cm_buf *out)
{
	const struct cm_file_entry *e = &msg->body.entry;
	char time[TIME_SIZE];

	cm_buf_puts(out, "name:   ");
	put_escaped(out, msg->name, msg->name_len);
	format_time(e, time);
	cm_buf_printf(out,
		      "\ntype:   %s\nsize:   %" PRIu64 " (%" PRIu64 " on disk)\nmode:   %04o\n"
		      "owner:  %" PRIu32 ":%" PRIu32 "\nmtime:  %s\n",
		      cm_file_type_name(e->mode), e->size, e->allocated, e->mode & 07777U, e->uid,
		      e->gid, time[0] ? time : "-");
	put_target(msg, "target: ", out);
	if (S_ISLNK(e->mode))
		cm_buf_putc(out, '\n');
}

void cm_file_show_entry(const struct cm_file_msg *msg, enum cm_file_form form, struct cm_buf *out)
{
	switch (form) {
	case CM_FILE_NUL:
		cm_buf_append(out, msg->name, msg->name_len + 1);
		return;
	case CM_FILE_LONG:
		put_long(msg, out);
		return;
	case CM_FILE_JSON:
		put_json_entry(msg, out);
		return;
	case CM_FILE_BLOCK:
		put_block(msg, out);
		return;
	case CM_FILE_NAMES:
		put_escaped(out, msg->name, msg->name_len);
		cm_buf_putc(out, '\n');
		return;
	}
}

static const char *event_name(uint32_t kind)
{
	static const char *const names[CM_FILE_EVENT_COUNT_] = {
		[CM_FILE_EVENT_READY] = "ready",	   [CM_FILE_EVENT_CREATED] = "created",
		[CM_FILE_EVENT_MODIFIED] = "modified",	   [CM_FILE_EVENT_CLOSED] = "closed",
		[CM_FILE_EVENT_ATTRIBUTES] = "attributes", [CM_FILE_EVENT_REMOVED] = "removed",
		[CM_FILE_EVENT_RENAMED] = "renamed",	   [CM_FILE_EVENT_OVERFLOW] = "overflow",
		[CM_FILE_EVENT_FOUND] = "found",	   [CM_FILE_EVENT_GONE] = "gone",
	};

	return kind < CM_FILE_EVENT_COUNT_ && names[kind] ? names[kind] : "unknown";
}

static bool has_path(const struct cm_file_msg *msg)
{
	uint32_t kind = msg->body.event.kind;

	return kind != CM_FILE_EVENT_READY && kind != CM_FILE_EVENT_OVERFLOW;
}

static void put_json_event(const struct cm_file_msg *msg, struct cm_buf *out)
{
	const struct cm_file_event *e = &msg->body.event;
	struct cm_json_writer w;

	cm_jw_init(&w, out, false);
	cm_jw_object(&w);
	cm_jw_kstring(&w, "type", event_name(e->kind));
	if (has_path(msg)) {
		put_json_name(&w, "path", "pathBase64", msg->name, msg->name_len);
		cm_jw_kbool(&w, "directory", (e->flags & CM_FILE_EVENTF_DIRECTORY) != 0);
	}
	if (e->kind == CM_FILE_EVENT_RENAMED)
		put_json_name(&w, "from", "fromBase64", msg->target, msg->target_len);
	cm_jw_end_object(&w);
	cm_buf_putc(out, '\n');
}

void cm_file_show_event(const struct cm_file_msg *msg, bool is_json, struct cm_buf *out)
{
	const struct cm_file_event *e = &msg->body.event;

	if (is_json) {
		put_json_event(msg, out);
		return;
	}
	cm_buf_puts(out, event_name(e->kind));
	if (e->kind == CM_FILE_EVENT_RENAMED) {
		cm_buf_putc(out, ' ');
		put_escaped(out, msg->target, msg->target_len);
		cm_buf_puts(out, " ->");
	}
	if (has_path(msg)) {
		cm_buf_putc(out, ' ');
		put_escaped(out, msg->name_len > 0 ? msg->name : ".",
			    msg->name_len > 0 ? msg->name_len : 1);
		if ((e->flags & CM_FILE_EVENTF_DIRECTORY) != 0)
			cm_buf_putc(out, '/');
	}
	cm_buf_putc(out, '\n');
}
