/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a sandbox: reading them, and what is asked about paths. */
#include "providers/e2b/files.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "providers/e2b/texts.h"
#include "providers/remote/shell.h"
#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/num.h"
#include "runtime/base/text.h"

#define PATH_MAX_BYTES 4096U
#define SHOWN_MAX 200U
#define PIECE (64UL * 1024)

static struct cm_e2b_session *session_of(struct cm_session *s)
{
	return (struct cm_e2b_session *)(void *)s;
}

/* --- requests ---------------------------------------------------------------------------------- */

int cm_e2b_check_path(const char *path, struct cm_error *err)
{
	if (strlen(path) > PATH_MAX_BYTES)
		return cm_error_set(err, CM_E_INVALID, 0, "a path has more than %u bytes",
				    PATH_MAX_BYTES);
	if (cm_e2b_is_text(path))
		return CM_OK;
	(void)cm_error_set(err, CM_E_INVALID, 0,
			   "E2B has no way to name a path that is no UTF-8 text");
	cm_error_hint(err, "a command of the session can: casemate exec");
	return CM_E_INVALID;
}

char *cm_e2b_place(const struct cm_e2b_session *s, const char *path)
{
	if (path[0] == '/')
		return cm_strdup(path);
	if (s->workdir)
		return cm_asprintf("%s/%s", s->workdir, path);
	return cm_asprintf("%s%s", path[0] == '~' ? "./" : "", path);
}

char *cm_e2b_doing(const struct cm_e2b_session *s, const char *verb, const char *place)
{
	size_t n = s->workdir ? strlen(s->workdir) : 0;
	size_t len;

	if (s->workdir && strncmp(place, s->workdir, n) == 0 && place[n] == '/' && place[n + 1])
		place += n + 1;
	else if (cm_text_has_prefix(place, "./~"))
		place += 2;
	len = strlen(place);
	/* the end of it says more than the beginning */
	return cm_asprintf("%s '%s'", verb, len > SHOWN_MAX ? place + len - SHOWN_MAX : place);
}

int cm_e2b_path_rpc(struct cm_e2b_session *s, const char *method, const char *path,
		    const char *verb, const struct cm_call *call, struct cm_json_doc **ret_doc,
		    struct cm_error *err)
{
	CM_AUTO_FREE char *what = cm_e2b_doing(s, verb, path);
	CM_AUTO_BUF struct cm_buf body = { .max = 64UL * 1024 };
	const struct cm_e2b_rpc rpc = { .method = method,
					.body = &body,
					.is_root = s->is_root,
					.is_idempotent = true,
					.is_file = true,
					.what = what };
	struct cm_json_writer w;
	int r = what ? cm_e2b_check_path(path, err) : cm_e2b_no_memory(err);

	if (r < 0)
		return r;
	cm_jw_init(&w, &body, false);
	cm_jw_object(&w);
	cm_jw_kstring(&w, "path", path);
	cm_jw_end_object(&w);
	return cm_e2b_unary(s, &rpc, call, ret_doc, NULL, err);
}

int cm_e2b_look(struct cm_e2b_session *s, const char *path, const struct cm_call *call,
		struct cm_json_doc **ret_doc, struct cm_path_info *ret, struct cm_error *err)
{
	struct cm_json_doc *doc = NULL;
	int r = cm_e2b_path_rpc(s, "filesystem.Filesystem/Stat", path, "look at", call, &doc, err);

	if (r == CM_OK)
		r = cm_e2b_entry_read(cm_json_get(cm_json_root(doc), "entry"), ret, err);
	if (r < 0)
		cm_json_free(doc);
	else
		*ret_doc = doc;
	return r;
}

int cm_e2b_type_of(struct cm_e2b_session *s, const char *path, bool follows,
		   const struct cm_call *call, struct cm_error *err)
{
	struct cm_json_doc *doc = NULL;
	struct cm_path_info info = { .type = CM_PATH_OTHER };
	int type;
	int r = cm_e2b_look(s, path, call, &doc, &info, err);

	if (r == CM_E_NOT_FOUND) {
		cm_error_clear(err);
		return 0;
	}
	if (r < 0)
		return r;
	type = (int)info.type;
	if (type == CM_PATH_LINK && follows && info.target)
		type = cm_e2b_type_of(s, info.target, false, call, err);
	cm_json_free(doc);
	return type;
}

int cm_e2b_need_parent(struct cm_e2b_session *s, const char *path, const struct cm_call *call,
		       struct cm_error *err)
{
	CM_AUTO_FREE char *parent = cm_e2b_parent(path);
	int type;

	if (!parent)
		return cm_e2b_no_memory(err);
	/* the home directory, which is always there; and the root */
	if (strcmp(parent, ".") == 0 || strcmp(parent, "/") == 0)
		return CM_OK;
	type = cm_e2b_type_of(s, parent, true, call, err);
	if (type == CM_PATH_DIRECTORY || type < 0)
		return type < 0 ? type : CM_OK;
	(void)cm_error_set(err, CM_E_NOT_FOUND, 0, "there is no directory '%s'", parent);
	cm_error_hint(err, "'casemate file mkdir -p' makes it");
	return CM_E_NOT_FOUND;
}

int cm_e2b_set_mode(struct cm_e2b_session *s, const char *path, uint32_t mode,
		    const struct cm_call *call, struct cm_error *err)
{
	char text[16];
	const char *const args[] = { text, path, NULL };
	const struct cm_shell shell = {
		.session = &s->base,
		/* a path that looks like an option is none */
		.script = "case $2 in /*) p=$2 ;; *) p=./$2 ;; esac\n"
			  "cd && chmod \"$1\" \"$p\"\n",
		.args = args,
		.is_idempotent = true,
	};
	struct cm_shell_end end = CM_SHELL_END_INIT;
	int r;

	(void)snprintf(text, sizeof(text), "%04o", (unsigned int)mode & 0777U);
	r = cm_shell_run(&shell, call, &end, err);
	if (r == CM_OK && end.exit_code != 0)
		r = cm_shell_failed(&end, CM_E_REMOTE, err, "cannot set the mode of '%s'", path);
	cm_shell_end_clear(&end);
	return r;
}

int cm_e2b_rename(struct cm_e2b_session *s, const char *from, const char *to,
		  const struct cm_call *call, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf body = { .max = 64UL * 1024 };
	CM_AUTO_FREE char *what = cm_e2b_doing(s, "move", from);
	/* a second time there is nothing any more to move */
	const struct cm_e2b_rpc rpc = { .method = "filesystem.Filesystem/Move",
					.body = &body,
					.is_root = s->is_root,
					.is_file = true,
					.what = what };
	struct cm_json_writer w;
	int r = what ? cm_e2b_check_path(from, err) : cm_e2b_no_memory(err);

	if (r == CM_OK)
		r = cm_e2b_check_path(to, err);
	if (r < 0)
		return r;
	cm_jw_init(&w, &body, false);
	cm_jw_object(&w);
	cm_jw_kstring(&w, "source", from);
	cm_jw_kstring(&w, "destination", to);
	cm_jw_end_object(&w);
	return cm_e2b_unary(s, &rpc, call, NULL, NULL, err);
}

int cm_e2b_unlink(struct cm_e2b_session *s, const char *path, const struct cm_call *call,
		  struct cm_error *err)
{
	return cm_e2b_path_rpc(s, "filesystem.Filesystem/Remove", path, "remove", call, NULL, err);
}

/* --- reading ------------------------------------------------------------------------------------- */

char *cm_e2b_files_url(const struct cm_e2b_session *s, const char *path)
{
	CM_AUTO_BUF struct cm_buf url = { .max = 64UL * 1024 };

	cm_buf_puts(&url, s->agent_url);
	cm_buf_puts(&url, "/files?path=");
	cm_http_escape(&url, path);
	if (s->is_root)
		cm_buf_puts(&url, "&username=root");
	return cm_buf_take(&url);
}

struct reading {
	/* so many bytes that come are before what is wanted, and so many are wanted */
	uint64_t skip;
	uint64_t left;
	int (*take)(void *data, const void *bytes, size_t len);
	void *data;
};

static int pass_on(struct reading *reading, const char *bytes, size_t len, struct cm_error *err)
{
	size_t n = reading->skip < len ? (size_t)reading->skip : len;
	int r;

	reading->skip -= n;
	bytes += n;
	len -= n;
	if (reading->left < len)
		len = (size_t)reading->left;
	reading->left -= len;
	r = len > 0 ? reading->take(reading->data, bytes, len) : 0;
	return r == 0 ? CM_OK
		      : cm_error_set(err, CM_E_SYS, r < 0 ? -r : r, "cannot take what is read");
}

/* Of a part, it begins where it was asked for; of all of it, what is before that is passed over. */
static int begin(struct reading *reading, const struct cm_http_answer *answer, struct cm_error *err)
{
	const char *range = cm_http_header(answer, "content-range");
	CM_AUTO_FREE char *first = NULL;
	uint64_t n = 0;

	if (answer->status != 206)
		return CM_OK;
	if (range && cm_text_has_prefix(range, "bytes "))
		first = cm_asprintf("%.*s", (int)strcspn(range + 6, "-"), range + 6);
	if (!first || cm_parse_u64(first, "range", 0, UINT64_MAX, &n, NULL) < 0 ||
	    n != reading->skip)
		return cm_error_set(err, CM_E_PROTOCOL, 0,
				    "the sandbox answers with another part of the file");
	reading->skip = 0;
	return CM_OK;
}

static int read_all(struct cm_http_stream *stream, struct reading *reading,
		    const struct cm_call *call, struct cm_error *err)
{
	CM_AUTO_FREE char *buf = cm_malloc(PIECE);
	size_t len = 0;
	int r = CM_OK;

	if (!buf)
		return cm_e2b_no_memory(err);
	while (r == CM_OK && reading->left > 0) {
		r = cm_http_stream_read(stream, buf, PIECE, NULL, call, &len, err);
		if (r == CM_HTTP_END)
			return CM_OK;
		if (r == CM_HTTP_DATA)
			r = pass_on(reading, buf, len, err);
	}
	return r;
}

/* "bytes=10-", "bytes=10-19"; false: all of it. */
static bool make_range(uint64_t offset, uint64_t length, char *buf, size_t size)
{
	if (offset == 0 && length == UINT64_MAX)
		return false;
	if (length - 1 > UINT64_MAX - offset)
		(void)snprintf(buf, size, "Range: bytes=%" PRIu64 "-", offset);
	else
		(void)snprintf(buf, size, "Range: bytes=%" PRIu64 "-%" PRIu64, offset,
			       offset + length - 1);
	return true;
}

int cm_e2b_file_read(struct cm_session *session, const char *path,
		     const struct cm_read_request *wanted, const struct cm_call *call,
		     struct cm_error *err)
{
	struct cm_e2b_session *s = session_of(session);
	CM_AUTO_FREE char *place = cm_e2b_place(s, path);
	CM_AUTO_FREE char *url = NULL;
	CM_AUTO_FREE char *what = NULL;
	struct reading reading = { .skip = wanted->offset,
				   .left = wanted->length,
				   .take = wanted->take,
				   .data = wanted->data };
	struct cm_e2b_headers headers;
	struct cm_http_request request = { .method = "GET",
					   .headers = headers.v,
					   .is_idempotent = true };
	struct cm_http_stream *stream = NULL;
	const struct cm_http_answer *answer;
	char range[80];
	int r = cm_e2b_check_path(path, err);

	if (r == CM_OK)
		r = cm_e2b_session_reach(s, call, err);
	if (r < 0)
		return r;
	url = place ? cm_e2b_files_url(s, place) : NULL;
	what = place ? cm_e2b_doing(s, "read", place) : NULL;
	if (!url || !what)
		return cm_e2b_no_memory(err);
	request.url = url;
	cm_e2b_headers_init(&headers, s, false);
	/* whether it is there is asked all the same */
	if (make_range(wanted->offset, wanted->length > 0 ? wanted->length : 1, range,
		       sizeof(range)))
		cm_e2b_headers_add(&headers, range);
	r = cm_http_stream_open(cm_e2b_of(session)->http, &request, call, &stream, err);
	if (r < 0) {
		(void)cm_error_wrap(err, "cannot %s", what);
		return r;
	}
	answer = cm_http_stream_answer(stream);
	if (answer->status == 200 || answer->status == 206) {
		r = begin(&reading, answer, err);
		if (r == CM_OK)
			r = read_all(stream, &reading, call, err);
	} else if (answer->status != 416) {
		/* 416: it ends before that */
		r = cm_e2b_agent_refused(s, &request, answer, what, err);
	}
	cm_http_stream_close(stream);
	return r;
}
