/* SPDX-License-Identifier: Apache-2.0 */
/* Paths on their way to a session's shell, and what comes back of them. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "providers/remote/shell_files_internal.h"
#include "runtime/base/fd.h"

#define N_FIELDS 8U
/* of a path in a message; the end of it says more than the beginning */
#define SHOWN_MAX 200U
#define NS_DIGITS 9
#define NS_PER_S 1000000000

static const struct {
	const char *verdict;
	int code;
	const char *text;
	const char *hint;
} verdicts[] = {
	{ "not-found", CM_E_NOT_FOUND, "it is not there", NULL },
	{ "exists", CM_E_EXISTS, "something is there", NULL },
	{ "not-empty", CM_E_EXISTS, "it is not empty", NULL },
	{ "denied", CM_E_DENIED, "the session's user may not", NULL },
	{ "is-dir", CM_E_INVALID, "it is a directory", NULL },
	{ "whole-dir", CM_E_INVALID, "it is a directory",
	  "'file rm -r' removes a directory with all in it" },
	{ "not-dir", CM_E_INVALID, "a part of the path is no directory", NULL },
	{ "special", CM_E_INVALID, "it is no regular file", NULL },
	{ "itself", CM_E_INVALID, "it would be below itself", NULL },
	{ "no-space", CM_E_LIMIT, "the session's disk is full", NULL },
	{ "short", CM_E_SYS, "not all of it arrived", "try again" },
	{ "no-base64", CM_E_UNSUPPORTED, "the session has no 'base64'",
	  "begin it with a template that has coreutils or busybox" },
};

/* Of where something was to be moved to, whose name comes between the two. */
static const struct {
	const char *verdict;
	int code;
	const char *before;
	const char *after;
} to_verdicts[] = {
	{ "to-is-dir", CM_E_INVALID, "", " is a directory" },
	{ "to-no-dir", CM_E_INVALID, "", " is no directory" },
	{ "to-not-dir", CM_E_INVALID, "a part of the path of ", " is no directory" },
	{ "to-not-found", CM_E_NOT_FOUND, "the directory of ", " is not there" },
	{ "to-exists", CM_E_EXISTS, "", " is there" },
	{ "to-not-empty", CM_E_EXISTS, "", " is not empty" },
	{ "to-denied", CM_E_DENIED, "the session's user may not write ", "" },
};

static const char *shown(const char *path)
{
	size_t len = strlen(path);

	return len > SHOWN_MAX ? path + len - SHOWN_MAX : path;
}

int cm_shell_path(const char *path, char **ret, struct cm_error *err)
{
	if (path[0] == '\0' || strlen(path) >= PATH_MAX)
		return cm_error_set(err, CM_E_INVALID, 0, "%s",
				    path[0] == '\0' ? "an empty path names nothing"
						    : "the path is too long");
	*ret = path[0] == '/' ? cm_strdup(path) : cm_asprintf("./%s", path);
	return *ret ? CM_OK : cm_error_set(err, CM_E_NOMEM, 0, "no memory for a path");
}

int cm_shell_file_error(const struct cm_shell_end *end, const char *what, const char *path,
			struct cm_error *err)
{
	for (size_t i = 0; i < CM_ARRAY_SIZE(verdicts); i++) {
		if (!cm_shell_says(end, verdicts[i].verdict))
			continue;
		(void)cm_error_set(err, verdicts[i].code, 0, "cannot %s '%s': %s", what,
				   shown(path), verdicts[i].text);
		if (verdicts[i].hint)
			cm_error_hint(err, "%s", verdicts[i].hint);
		return verdicts[i].code;
	}
	return cm_shell_failed(end, CM_E_SYS, err, "cannot %s '%s'", what, shown(path));
}

int cm_shell_move_error(const struct cm_shell_end *end, const char *from, const char *to,
			struct cm_error *err)
{
	const char *at = shown(to);

	for (size_t i = 0; i < CM_ARRAY_SIZE(to_verdicts); i++) {
		if (cm_shell_says(end, to_verdicts[i].verdict))
			return cm_error_set(err, to_verdicts[i].code, 0,
					    "cannot move '%s' to '%s': %s'%s'%s", shown(from), at,
					    to_verdicts[i].before, at, to_verdicts[i].after);
	}
	return cm_shell_file_error(end, "move", from, err);
}

int cm_shell_file_run(struct cm_session *s, const char *script, const char *const *args,
		      const char *what, const char *path, const struct cm_call *call,
		      struct cm_error *err)
{
	const struct cm_shell shell = { .session = s, .script = script, .args = args };
	struct cm_shell_end end;
	int r = cm_shell_run(&shell, call, &end, err);

	if (r == CM_OK && end.exit_code != 0)
		r = cm_shell_file_error(&end, what, path, err);
	cm_shell_end_clear(&end);
	return r;
}

/* --- entries --------------------------------------------------------------------------------- */

void cm_shell_entries_init(struct cm_shell_entries *e,
			   int (*each)(void *data, const struct cm_path_info *info, char mark),
			   void *data)
{
	*e = (struct cm_shell_entries){ .each = each, .data = data };
	cm_buf_init(&e->text, CM_SHELL_ENTRY_MAX);
}

void cm_shell_entries_clear(struct cm_shell_entries *e)
{
	cm_buf_clear(&e->text);
}

static enum cm_path_type type_of(char letter)
{
	switch (letter) {
	case 'f':
		return CM_PATH_FILE;
	case 'd':
		return CM_PATH_DIRECTORY;
	case 'l':
		return CM_PATH_LINK;
	default:
		return CM_PATH_OTHER;
	}
}

/* "-12.0300", as much of it as a nanosecond is; false: it is no time */
static bool read_time(const char *text, int64_t *ret)
{
	bool is_before = *text == '-';
	char whole[24];
	const char *dot;
	size_t len;
	uint64_t seconds;
	int64_t ns = 0;

	text += is_before ? 1 : 0;
	dot = strchr(text, '.');
	len = dot ? (size_t)(dot - text) : strlen(text);
	if (len >= sizeof(whole))
		return false;
	memcpy(whole, text, len);
	whole[len] = '\0';
	/* before a sum of the two can overflow */
	if (!cm_shell_number(whole, INT64_MAX / NS_PER_S - 1, &seconds))
		return false;
	for (int i = 0; i < NS_DIGITS; i++) {
		ns *= 10;
		if (!dot || dot[1] == '\0')
			continue;
		dot++;
		if (*dot < '0' || *dot > '9')
			return false;
		ns += *dot - '0';
	}
	*ret = (int64_t)seconds * NS_PER_S + ns;
	if (is_before)
		*ret = -*ret;
	return true;
}

static bool read_mode(const char *text, uint32_t *ret)
{
	uint32_t mode = 0;

	if (*text == '\0' || strlen(text) > 6)
		return false;
	for (; *text != '\0'; text++) {
		if (*text < '0' || *text > '7')
			return false;
		mode = mode * 8 + (uint32_t)(*text - '0');
	}
	/* without the set-id bits */
	*ret = mode & 01777U;
	return true;
}

static bool read_entry(const struct cm_buf *text, struct cm_path_info *ret)
{
	const char *f[N_FIELDS];
	const char *at = text->data;
	int64_t ns = 0;

	for (size_t i = 0; i < N_FIELDS; i++) {
		f[i] = at;
		at += strlen(at) + 1;
	}
	*ret = (struct cm_path_info){ .path = f[7],
				      .type = type_of(f[0][0]),
				      .target = f[0][0] == 'l' ? f[6] : NULL,
				      .owner = f[4][0] ? f[4] : NULL,
				      .group = f[5][0] ? f[5] : NULL };
	if (strlen(f[0]) != 1 || !read_mode(f[1], &ret->mode) ||
	    !cm_shell_number(f[2], INT64_MAX, &ret->size) || !read_time(f[3], &ns))
		return false;
	cm_path_info_set_mtime(ret, ns);
	return true;
}

static int finish_entry(struct cm_shell_entries *e)
{
	struct cm_path_info info;
	char first = e->text.data[0];

	if ((first == '.' || first == '!') && e->text.data[1] == '\0')
		e->result = e->each(e->data, NULL, first);
	else if (read_entry(&e->text, &info))
		e->result = e->each(e->data, &info, '\0');
	else
		return -EBADMSG;
	cm_buf_reset(&e->text);
	e->n_fields = 0;
	return e->result == 0 ? 0 : -ECANCELED;
}

int cm_shell_entries_take(void *data, const void *bytes, size_t len)
{
	struct cm_shell_entries *e = data;
	const char *at = bytes;
	const char *to = at + len;
	int r = 0;

	while (r == 0 && at < to) {
		const char *end = memchr(at, '\0', (size_t)(to - at));
		size_t n = (size_t)((end ? end + 1 : to) - at);

		cm_buf_append(&e->text, at, n);
		if (cm_buf_status(&e->text) != CM_OK)
			return cm_buf_status(&e->text) == CM_E_NOMEM ? -ENOMEM : -EBADMSG;
		at += n;
		if (end && ++e->n_fields == N_FIELDS)
			r = finish_entry(e);
	}
	return r;
}

int cm_shell_entries_end(const struct cm_shell_entries *e, int r, const struct cm_error *why,
			 const char *what, const char *path, struct cm_error *err)
{
	/* its own error, if it has one, is with the caller */
	if (e->result != 0)
		return e->result;
	if ((r == CM_E_SYS && why->sys_errno == EBADMSG) || (r == CM_OK && e->text.len > 0))
		return cm_error_set(err, CM_E_PROTOCOL, 0,
				    "cannot %s '%s': the session's answer makes no sense", what,
				    shown(path));
	if (r < 0 && err)
		*err = *why;
	return r;
}
