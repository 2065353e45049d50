/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing a file. The agent makes it with the directories above, and leaves what it has when an upload
 * is cut off, so that what there is before is looked at first.
 *
 * What is appended is uploaded beside, and joined by a shell; what is to be there at once is uploaded
 * beside, and moved.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "providers/e2b/files.h"
#include "providers/remote/shell.h"
#include "runtime/base/fd.h"

#define FORM_HEAD                                                                                  \
	"Content-Disposition: form-data; name=\"file\"; filename=\"file\"\r\n"                     \
	"Content-Type: application/octet-stream\r\n\r\n"

/* --- the upload -------------------------------------------------------------------------------- */

enum form_state {
	FORM_HEADER,
	FORM_CONTENT,
	FORM_TRAILER,
	FORM_OVER,
};

/* A form of one file, whose length need not be known. */
struct form {
	const struct cm_write_request *request;
	char boundary[CM_PROVIDER_HEX_SIZE + 24];
	char text[256];
	size_t at;
	enum form_state state;
};

/* What is left of the text; at its end the state is the next one. */
static size_t text_part(struct form *f, char *buf, size_t size, enum form_state next)
{
	size_t n = strlen(f->text) - f->at;

	if (n > size)
		n = size;
	memcpy(buf, f->text + f->at, n);
	f->at += n;
	if (f->text[f->at] == '\0')
		f->state = next;
	return n;
}

static ssize_t fill_form(void *data, void *buf, size_t size)
{
	struct form *f = data;
	ssize_t n;

	switch (f->state) {
	case FORM_HEADER:
		return (ssize_t)text_part(f, buf, size, FORM_CONTENT);
	case FORM_CONTENT:
		n = f->request->fill(f->request->data, buf, size);
		if (n != 0)
			return n;
		f->state = FORM_TRAILER;
		f->at = 0;
		(void)snprintf(f->text, sizeof(f->text), "\r\n--%s--\r\n", f->boundary);
		return (ssize_t)text_part(f, buf, size, FORM_OVER);
	case FORM_TRAILER:
		return (ssize_t)text_part(f, buf, size, FORM_OVER);
	case FORM_OVER:
		break;
	}
	return 0;
}

static int init_form(struct form *f, const struct cm_write_request *request, struct cm_error *err)
{
	char random[CM_PROVIDER_HEX_SIZE];
	int r = cm_provider_random_hex(random, err);

	if (r < 0)
		return r;
	/* nobody who wrote the content knows it */
	f->request = request;
	f->state = FORM_HEADER;
	f->at = 0;
	(void)snprintf(f->boundary, sizeof(f->boundary), "casemate-%s", random);
	(void)snprintf(f->text, sizeof(f->text), "--%s\r\n" FORM_HEAD, f->boundary);
	return CM_OK;
}

/* shown: what it is for, and is told of */
static int upload(struct cm_e2b_session *s, const char *path, const char *shown,
		  const struct cm_write_request *request, const struct cm_call *call,
		  struct cm_error *err)
{
	CM_AUTO_FREE char *url = cm_e2b_files_url(s, path);
	CM_AUTO_FREE char *what = cm_e2b_doing(s, "write", shown);
	bool is_form = request->len < 0 || !s->takes_octets;
	struct form form = { .state = FORM_HEADER };
	char type[128] = "Content-Type: application/octet-stream";
	struct cm_e2b_headers headers;
	struct cm_http_request http = {
		.method = "POST",
		.url = url,
		.headers = headers.v,
		.fill = is_form ? fill_form : request->fill,
		.fill_data = is_form ? &form : request->data,
		.fill_len = is_form ? -1 : request->len,
	};
	struct cm_http_answer answer;
	int r = url && what ? CM_OK : cm_e2b_no_memory(err);

	if (r == CM_OK && is_form)
		r = init_form(&form, request, err);
	if (r < 0)
		return r;
	if (is_form)
		(void)snprintf(type, sizeof(type), "Content-Type: multipart/form-data; boundary=%s",
			       form.boundary);
	cm_e2b_headers_init(&headers, s, false);
	cm_e2b_headers_add(&headers, type);
	r = cm_http_send(cm_e2b_of(&s->base)->http, &http, call, &answer, err);
	if (r < 0) {
		(void)cm_error_wrap(err, "cannot %s", what);
		return r;
	}
	if (answer.status < 200 || answer.status > 299)
		r = cm_e2b_agent_refused(s, &http, &answer, what, err);
	cm_http_answer_clear(&answer);
	return r;
}

/* --- what is there before -------------------------------------------------------------------------- */

struct target {
	/* of what a link leads to; owned */
	char *path;
	bool is_new;
	uint32_t mode;
};

static int find_target(struct cm_e2b_session *s, const char *path, uint32_t flags,
		       const struct cm_call *call, struct target *ret, struct cm_error *err)
{
	struct cm_json_doc *doc = NULL;
	struct cm_path_info info = { 0 };
	int r = cm_e2b_look(s, path, call, &doc, &info, err);

	if (r == CM_OK && info.type == CM_PATH_LINK && info.target) {
		ret->path = cm_strdup(info.target);
		cm_json_free(doc);
		doc = NULL;
		if (!ret->path)
			return cm_e2b_no_memory(err);
		r = cm_e2b_look(s, ret->path, call, &doc, &info, err);
	} else if (r == CM_OK || r == CM_E_NOT_FOUND) {
		ret->path = cm_strdup(path);
		if (!ret->path)
			r = cm_e2b_no_memory(err);
	}
	if (r == CM_OK && info.type == CM_PATH_DIRECTORY)
		r = cm_error_set(err, CM_E_INVALID, 0, "'%s' is a directory", path);
	ret->mode = info.mode;
	cm_json_free(doc);
	if (r != CM_E_NOT_FOUND)
		return r;
	cm_error_clear(err);
	ret->is_new = true;
	return (flags & CM_WRITE_PARENTS) != 0 ? CM_OK
					       : cm_e2b_need_parent(s, ret->path, call, err);
}

static void remove_rest(struct cm_e2b_session *s, const char *path)
{
	const struct cm_call call = cm_e2b_cleanup_call();
	struct cm_error why = CM_ERROR_INIT;

	if (cm_e2b_unlink(s, path, &call, &why) < 0)
		cm_provider_note(&cm_e2b_of(&s->base)->base, "'%s' is left in session '%s': %s",
				 path, s->base.id, why.msg);
}

/* --- the ways to write ------------------------------------------------------------------------------- */

static int write_through(struct cm_e2b_session *s, const struct target *t,
			 const struct cm_write_request *request, const struct cm_call *call,
			 struct cm_error *err)
{
	int r = upload(s, t->path, t->path, request, call, err);

	if (r == CM_OK && request->mode != UINT32_MAX)
		r = cm_e2b_set_mode(s, t->path, request->mode, call, err);
	if (r < 0 && t->is_new)
		remove_rest(s, t->path);
	return r;
}

static char *beside(const char *path, const char *random)
{
	CM_AUTO_FREE char *parent = cm_e2b_parent(path);

	if (!parent)
		return NULL;
	return cm_asprintf("%s%s.casemate-%s", parent, parent[strlen(parent) - 1] == '/' ? "" : "/",
			   random);
}

static int write_beside(struct cm_e2b_session *s, const struct target *t,
			const struct cm_write_request *request, const struct cm_call *call,
			struct cm_error *err)
{
	CM_AUTO_FREE char *temp = NULL;
	char random[CM_PROVIDER_HEX_SIZE];
	uint32_t mode = request->mode;
	int r = cm_provider_random_hex(random, err);

	if (r < 0)
		return r;
	temp = beside(t->path, random);
	if (!temp)
		return cm_e2b_no_memory(err);
	/* it takes the place of a file, and its mode */
	if (mode == UINT32_MAX && !t->is_new)
		mode = t->mode;
	r = upload(s, temp, t->path, request, call, err);
	if (r == CM_OK && mode != UINT32_MAX)
		r = cm_e2b_set_mode(s, temp, mode, call, err);
	if (r == CM_OK)
		r = cm_e2b_rename(s, temp, t->path, call, err);
	if (r < 0)
		remove_rest(s, temp);
	return r;
}

static int join(struct cm_e2b_session *s, const char *temp, const char *path,
		const struct cm_call *call, struct cm_error *err)
{
	const char *const args[] = { temp, path, NULL };
	const struct cm_shell shell = {
		.session = &s->base,
		.script = "cd && cat \"$1\" >>\"$2\" && rm -f \"$1\"\n",
		.args = args,
	};
	struct cm_shell_end end = CM_SHELL_END_INIT;
	int r = cm_shell_run(&shell, call, &end, err);

	if (r == CM_OK && end.exit_code != 0)
		r = cm_shell_failed(&end, CM_E_REMOTE, err, "cannot append to '%s'", path);
	cm_shell_end_clear(&end);
	return r;
}

static int append(struct cm_e2b_session *s, const struct target *t,
		  const struct cm_write_request *request, const struct cm_call *call,
		  struct cm_error *err)
{
	CM_AUTO_FREE char *temp = NULL;
	char random[CM_PROVIDER_HEX_SIZE];
	int r = cm_provider_random_hex(random, err);

	if (r < 0)
		return r;
	/* who may write to the file may not be one who may make another beside it */
	temp = cm_asprintf("/tmp/.casemate-%s", random);
	if (!temp)
		return cm_e2b_no_memory(err);
	r = upload(s, temp, t->path, request, call, err);
	if (r == CM_OK)
		r = join(s, temp, t->path, call, err);
	if (r < 0)
		remove_rest(s, temp);
	else if (request->mode != UINT32_MAX)
		r = cm_e2b_set_mode(s, t->path, request->mode, call, err);
	return r;
}

int cm_e2b_file_write(struct cm_session *session, const char *path,
		      const struct cm_write_request *request, const struct cm_call *call,
		      struct cm_error *err)
{
	struct cm_e2b_session *s = (struct cm_e2b_session *)(void *)session;
	bool is_appended = (request->flags & CM_WRITE_APPEND) != 0;
	bool is_atomic = (request->flags & CM_WRITE_ATOMIC) != 0;
	CM_AUTO_FREE char *place = cm_e2b_place(s, path);
	struct target target = { 0 };
	int r;

	if (!place)
		return cm_e2b_no_memory(err);
	if (is_appended && is_atomic)
		return cm_error_set(err, CM_E_INVALID, 0,
				    "cannot append to '%s' and put a new file in its place", path);
	r = cm_e2b_session_reach(s, call, err);
	if (r == CM_OK)
		r = find_target(s, place, request->flags, call, &target, err);
	if (r == CM_OK && is_atomic)
		r = write_beside(s, &target, request, call, err);
	else if (r == CM_OK && is_appended && !target.is_new)
		r = append(s, &target, request, call, err);
	else if (r == CM_OK)
		r = write_through(s, &target, request, call, err);
	free(target.path);
	return r;
}
