/* SPDX-License-Identifier: Apache-2.0 */
/* `ls --format`: text with {placeholders}, parsed once and put out a line a session. */
#include <stdlib.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/text.h"
#include "runtime/cli/session_view.h"

#define MAX_PIECES 64
#define LABEL "label."

enum piece_kind {
	PIECE_TEXT,
	PIECE_FIELD,
	PIECE_LABEL,
};

struct piece {
	enum piece_kind kind;
	enum cm_session_field field;
	/* PIECE_TEXT: it; PIECE_LABEL: the key */
	char *text;
};

struct cm_session_format {
	size_t n;
	struct piece v[MAX_PIECES];
};

/* Docker's templates, which people have in their fingers. */
static const struct {
	const char *word;
	const char *ours;
} foreign[] = {
	{ "ID", "id" },
	{ "Names", "id" },
	{ "Name", "id" },
	{ "Status", "state" },
	{ "State", "state" },
	{ "RunningFor", "age" },
	{ "CreatedAt", "created" },
	{ "Size", "disk" },
	{ "Image", "repo" },
	{ "Labels", "label.KEY" },
	{ "Label", "label.KEY" },
	{ "Mounts", "workspace" },
};

void cm_session_format_free(struct cm_session_format *format)
{
	for (size_t i = 0; format && i < format->n; i++)
		free(format->v[i].text);
	free(format);
}

static void hint_fields(struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf list = { 0 };

	cm_buf_init(&list, 512);
	for (int i = 0; i < CM_FIELD_COUNT; i++)
		cm_buf_printf(&list, "{%s} ", cm_session_field_name((enum cm_session_field)i));
	cm_error_hint(err, "there are %sand {label.KEY}", list.data ? list.data : "");
}

/* at: behind "{{" */
static int refuse_template(const char *at, struct cm_error *err)
{
	int r = cm_error_set(err, CM_E_INVALID, 0, "--format: '{{' begins no placeholder here");

	at += strspn(at, " .");
	for (size_t i = 0; i < CM_ARRAY_SIZE(foreign); i++) {
		size_t len = strlen(foreign[i].word);

		if (strncmp(at, foreign[i].word, len) == 0 && strchr(" }", at[len])) {
			cm_error_hint(err, "for '{{.%s}}' write '{%s}'", foreign[i].word,
				      foreign[i].ours);
			return r;
		}
	}
	hint_fields(err);
	return r;
}

static int unknown_field(const char *word, size_t len, struct cm_error *err)
{
	int r = cm_error_set(err, CM_E_INVALID, 0, "--format: there is no '{%.*s}'",
			     len < 60 ? (int)len : 60, word);

	hint_fields(err);
	return r;
}

static int add_piece(struct cm_session_format *f, enum piece_kind kind, const char *text,
		     size_t len, struct cm_error *err)
{
	struct piece *piece = &f->v[f->n];

	if (f->n == MAX_PIECES)
		return cm_error_set(err, CM_E_LIMIT, 0, "--format: more than %d parts", MAX_PIECES);
	*piece = (struct piece){ .kind = kind, .text = cm_asprintf("%.*s", (int)len, text) };
	if (!piece->text)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	f->n++;
	return CM_OK;
}

/* word: what is between the braces */
static int add_field(struct cm_session_format *f, const char *word, size_t len,
		     struct cm_error *err)
{
	size_t label_len = strlen(LABEL);
	int r;

	if (len > label_len && memcmp(word, LABEL, label_len) == 0)
		return add_piece(f, PIECE_LABEL, word + label_len, len - label_len, err);
	for (int i = 0; i < CM_FIELD_COUNT; i++) {
		const char *name = cm_session_field_name((enum cm_session_field)i);

		if (strlen(name) != len || memcmp(name, word, len) != 0)
			continue;
		r = add_piece(f, PIECE_FIELD, "", 0, err);
		if (r == CM_OK)
			f->v[f->n - 1].field = (enum cm_session_field)i;
		return r;
	}
	return unknown_field(word, len, err);
}

/* Plain text up to the next brace, with \t, \n and \\ as in other programs' formats. */
static int add_text(struct cm_session_format *f, const char *text, size_t len, struct cm_error *err)
{
	static const char escapes[] = "tn\\";
	static const char meant[] = "\t\n\\";
	CM_AUTO_BUF struct cm_buf plain = { 0 };

	cm_buf_init(&plain, len + 1);
	for (size_t i = 0; i < len; i++) {
		const char *escape = NULL;

		if (i + 1 < len && text[i] == '\\')
			escape = memchr(escapes, text[i + 1], sizeof(escapes) - 1);
		cm_buf_append(&plain, escape ? &meant[escape - escapes] : &text[i], 1);
		i += escape != NULL;
	}
	if (cm_buf_status(&plain) != CM_OK)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	return add_piece(f, PIECE_TEXT, plain.data ? plain.data : "", plain.len, err);
}

static int parse(struct cm_session_format *f, const char *text, struct cm_error *err)
{
	int r = CM_OK;

	while (r == CM_OK && *text != '\0') {
		size_t len = strcspn(text, "{");

		if (len > 0) {
			r = add_text(f, text, len, err);
			text += len;
			continue;
		}
		if (text[1] == '{')
			return refuse_template(text + 2, err);
		len = strcspn(text, "}");
		if (text[len] == '\0') {
			r = cm_error_set(err, CM_E_INVALID, 0, "--format: '%.60s' has no '}'",
					 text);
			hint_fields(err);
			return r;
		}
		r = add_field(f, text + 1, len - 1, err);
		text += len + 1;
	}
	return r;
}

int cm_session_format_parse(const char *text, struct cm_session_format **ret, struct cm_error *err)
{
	struct cm_session_format *f;
	int r;

	if (!strchr(text, '{')) {
		r = cm_error_set(err, CM_E_INVALID, 0,
				 "--format '%.60s' shows nothing of a session", text);
		if (strcmp(text, "json") == 0)
			cm_error_hint(err, "use --json");
		else
			hint_fields(err);
		return r;
	}
	f = cm_calloc(1, sizeof(*f));
	if (!f)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	r = parse(f, text, err);
	if (r == CM_OK)
		*ret = f;
	else
		cm_session_format_free(f);
	return r;
}

bool cm_session_format_wants_size(const struct cm_session_format *format)
{
	for (size_t i = 0; i < format->n; i++) {
		if (format->v[i].kind == PIECE_FIELD && format->v[i].field == CM_FIELD_DISK)
			return true;
	}
	return false;
}

void cm_session_format_put(const struct cm_session_format *format,
			   const struct cm_session_view *view, struct cm_buf *out)
{
	for (size_t i = 0; i < format->n; i++) {
		const struct piece *piece = &format->v[i];
		const char *value;

		if (piece->kind == PIECE_FIELD) {
			cm_session_view_put(view, piece->field, out);
			continue;
		}
		value = piece->kind == PIECE_TEXT
				? piece->text
				: cm_strv_env_get(&view->s->record.labels, piece->text);
		if (piece->kind == PIECE_TEXT)
			cm_buf_puts(out, value);
		else if (value)
			cm_text_escape(out, value, strlen(value), false);
	}
	cm_buf_putc(out, '\n');
}
