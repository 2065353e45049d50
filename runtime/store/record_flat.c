/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state.flat: what state.json says, in a form that takes a tenth of the time to read. Every command of a
 * session that runs reads its state, and a list those of all.
 *
 * It decides nothing: it counts only beside the very text that it was made of, which is read, too, and
 * is else passed over. So it may be missing or old, and nobody has to see to it.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/hash.h"
#include "runtime/store/record_fields.h"

/* more is read from state.json */
#define FLAT_MAX 16384
#define ABSENT UINT32_MAX

struct header {
	uint64_t layout;
	/* of state.json's text */
	uint64_t state_sum;
	/* of what follows the header */
	uint64_t sum;
};

/* Of two programs whose records differ none takes the other's: enumerations are numbers here. */
static uint64_t layout(void)
{
	uint64_t h = CM_HASH_START ^ CM_STATE_VERSION;

	for (size_t i = 0; i < CM_RECORD_FIELDS; i++) {
		const struct cm_record_field *f = &cm_record_fields[i];

		h = (h ^ cm_hash_text(f->key)) * 31 + f->kind;
		for (int v = 0; f->kind == CM_FIELD_ENUM && v <= f->max; v++)
			h = (h ^ (f->name(v) ? cm_hash_text(f->name(v)) : 0)) * 31;
	}
	return h;
}

static bool is_value(const struct cm_record_field *f, const void *from)
{
	int v;

	if (f->kind != CM_FIELD_ENUM)
		return true;
	memcpy(&v, from, sizeof(v));
	/* one without a name is not in state.json either */
	return v >= 0 && v <= f->max && (f->name(v) || v == 0);
}

static size_t size_of(enum cm_record_kind kind)
{
	switch (kind) {
	case CM_FIELD_BOOL:
		return sizeof(bool);
	case CM_FIELD_INT:
	case CM_FIELD_ENUM:
		return sizeof(int);
	case CM_FIELD_INT64:
		return sizeof(int64_t);
	case CM_FIELD_UINT32:
		return sizeof(uint32_t);
	case CM_FIELD_UINT64:
		return sizeof(uint64_t);
	case CM_FIELD_STRING:
	case CM_FIELD_MAP:
		break;
	}
	return 0;
}

/* --- writing --- */

static void put_text(struct cm_buf *out, const char *text)
{
	uint32_t len = text ? (uint32_t)strlen(text) : ABSENT;

	cm_buf_append(out, &len, sizeof(len));
	if (text)
		cm_buf_append(out, text, (size_t)len + 1);
}

static void put_map(struct cm_buf *out, const struct cm_strv *map)
{
	uint32_t n = (uint32_t)map->n;

	cm_buf_append(out, &n, sizeof(n));
	for (size_t i = 0; i < map->n; i++)
		put_text(out, map->v[i]);
}

/* Text that is not UTF-8 is replaced in JSON, and the record of the one is not the other's. */
static bool is_exact(const struct cm_buf *state)
{
	static const char replaced[] = "\xef\xbf\xbd";

	return !memmem(state->data, state->len, replaced, sizeof(replaced) - 1) &&
	       !memmem(state->data, state->len, "\\ufffd", 6);
}

int cm_record_flat_save(int dir_fd, const struct cm_session_record *record,
			const struct cm_buf *state)
{
	CM_AUTO_BUF struct cm_buf out;
	struct header header = {
		.layout = layout(),
		.state_sum = cm_hash(CM_HASH_START, state->data, state->len),
	};

	cm_buf_init(&out, FLAT_MAX);
	if (!is_exact(state)) {
		(void)unlinkat(dir_fd, CM_STORE_STATE_FLAT, 0);
		return CM_OK;
	}
	cm_buf_append(&out, &header, sizeof(header));
	for (size_t i = 0; i < CM_RECORD_FIELDS; i++) {
		const struct cm_record_field *f = &cm_record_fields[i];
		const void *from = cm_record_member_const(record, f);

		if (f->kind == CM_FIELD_STRING)
			put_text(&out, *(char *const *)from);
		else if (f->kind == CM_FIELD_MAP)
			put_map(&out, from);
		else
			cm_buf_append(&out, from, size_of(f->kind));
	}
	put_text(&out, record->unknown_json);
	if (cm_buf_status(&out) < 0)
		return cm_buf_status(&out);
	header.sum = cm_hash(CM_HASH_START, out.data + sizeof(header), out.len - sizeof(header));
	memcpy(out.data, &header, sizeof(header));
	return cm_store_replace(dir_fd, CM_STORE_STATE_FLAT, CM_STORE_STATE_FLAT ".new", out.data,
				out.len, false);
}

/* --- reading --- */

struct reader {
	const char *at;
	const char *end;
	bool has_failed;
};

static const void *take(struct reader *in, size_t n)
{
	const char *at = in->at;

	if (in->has_failed || (size_t)(in->end - in->at) < n) {
		in->has_failed = true;
		return NULL;
	}
	in->at += n;
	return at;
}

static uint32_t take_u32(struct reader *in)
{
	const void *at = take(in, sizeof(uint32_t));
	uint32_t v = 0;

	if (at)
		memcpy(&v, at, sizeof(v));
	return v;
}

/* The caller's to free; NULL: there is none, or it failed. */
static char *take_text(struct reader *in)
{
	uint32_t len = take_u32(in);
	const char *at;
	char *text;

	if (in->has_failed || len == ABSENT)
		return NULL;
	at = take(in, (size_t)len + 1);
	if (!at || at[len] != '\0')
		in->has_failed = true;
	text = in->has_failed ? NULL : cm_strdup(at);
	in->has_failed = in->has_failed || !text;
	return text;
}

static void take_map(struct reader *in, struct cm_strv *to)
{
	uint32_t n = take_u32(in);

	for (uint32_t i = 0; i < n && !in->has_failed; i++)
		in->has_failed = cm_strv_add_own(to, take_text(in)) != CM_OK || in->has_failed;
}

static void take_record(struct reader *in, struct cm_session_record *r)
{
	for (size_t i = 0; i < CM_RECORD_FIELDS && !in->has_failed; i++) {
		const struct cm_record_field *f = &cm_record_fields[i];
		void *to = cm_record_member(r, f);
		const void *at;

		if (f->kind == CM_FIELD_STRING) {
			*(char **)to = take_text(in);
		} else if (f->kind == CM_FIELD_MAP) {
			take_map(in, to);
		} else {
			at = take(in, size_of(f->kind));
			in->has_failed = in->has_failed || !is_value(f, at);
			if (!in->has_failed)
				memcpy(to, at, size_of(f->kind));
		}
	}
	if (!in->has_failed)
		r->unknown_json = take_text(in);
}

static bool is_of(const char *flat, size_t len, const char *state, size_t state_len)
{
	struct header header;

	if (len < sizeof(header))
		return false;
	memcpy(&header, flat, sizeof(header));
	return header.layout == layout() &&
	       header.state_sum == cm_hash(CM_HASH_START, state, state_len) &&
	       header.sum == cm_hash(CM_HASH_START, flat + sizeof(header), len - sizeof(header));
}

bool cm_record_flat_load(int dir_fd, const char *state, size_t state_len, const char *id,
			 struct cm_session_record *ret)
{
	char flat[FLAT_MAX];
	ssize_t n = cm_read_file_at(dir_fd, CM_STORE_STATE_FLAT, flat, sizeof(flat));
	struct reader in = { flat + sizeof(struct header), flat + (n > 0 ? n : 0), false };
	struct cm_session_record r;

	if (n < 0 || !is_of(flat, (size_t)n, state, state_len))
		return false;
	cm_session_record_init(&r);
	take_record(&in, &r);
	if (in.has_failed || in.at != in.end || !r.id || strcmp(r.id, id) != 0 || !r.root) {
		cm_session_record_clear(&r);
		return false;
	}
	*ret = r;
	return true;
}
