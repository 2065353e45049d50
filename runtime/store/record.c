/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state.json: one table of members, read and written from it.
 *
 * What this version does not know stays in the file. A file with a higher "v" is read as far as
 * it can be understood and never written. Text that is compared as a whole (settings) is kept
 * as a JSON string, so that no reformatting can make it differ. The last member is a checksum of what
 * stands before it, where there is one: a disk that gives back other bits must not make a session
 * another one.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/hash.h"
#include "runtime/base/json.h"
#include "runtime/base/json_copy.h"
#include "runtime/base/json_write.h"
#include "runtime/spec/format.h"
#include "runtime/store/record_fields.h"

#define SUM_KEY "sum"
#define SUM_START ",\"" SUM_KEY "\":\""
#define SUM_END "\"}"
/* with sixteen hex digits */
#define SUM_LEN (sizeof(SUM_START) - 1 + 16 + sizeof(SUM_END) - 1)

/* The names of the file. */
static const char *const workspace_kinds[] = { "default", "dir", "none", "repo" };
static const char *const users[] = { NULL, "user", "root" };
static const char *const git_accesses[] = { NULL, "pinned", "rw" };
static const char *const setup_states[] = { "none", "done", "failed" };

_Static_assert(CM_ARRAY_SIZE(workspace_kinds) == CM_WORKSPACE_REPO + 1, "a name a kind");
_Static_assert(CM_ARRAY_SIZE(users) == CM_USER_ROOT + 1, "a name a user");
_Static_assert(CM_ARRAY_SIZE(git_accesses) == CM_GIT_RW + 1, "a name a kind of access");
_Static_assert(CM_ARRAY_SIZE(setup_states) == CM_SETUP_FAILED + 1, "a name a state");

#define NAME_OF(names, value)                                                                      \
	((unsigned int)(value) < CM_ARRAY_SIZE(names) ? (names)[(unsigned int)(value)] : NULL)

const char *cm_workspace_kind_name(enum cm_workspace_kind kind)
{
	return NAME_OF(workspace_kinds, kind);
}

const char *cm_user_name(enum cm_user user)
{
	return NAME_OF(users, user);
}

const char *cm_git_access_name(enum cm_git_access access)
{
	return NAME_OF(git_accesses, access);
}

const char *cm_setup_state_name(enum cm_setup_state state)
{
	return NAME_OF(setup_states, state);
}

static const char *workspace_kind_of(int value)
{
	return cm_workspace_kind_name((enum cm_workspace_kind)value);
}

static const char *user_of(int value)
{
	return cm_user_name((enum cm_user)value);
}

static const char *git_of(int value)
{
	return cm_git_access_name((enum cm_git_access)value);
}

static const char *setup_of(int value)
{
	return cm_setup_state_name((enum cm_setup_state)value);
}

static const char *network_of(int value)
{
	return value == 0 ? NULL : cm_network_name((enum cm_network)value);
}

#define AT(member) offsetof(struct cm_session_record, member)

const struct cm_record_field cm_record_fields[] = {
	{ "v", CM_FIELD_INT, AT(version), NULL, 0 },
	{ "id", CM_FIELD_STRING, AT(id), NULL, 0 },
	{ "root", CM_FIELD_STRING, AT(root), NULL, 0 },
	{ "temporary", CM_FIELD_BOOL, AT(is_temporary), NULL, 0 },
	{ "created_ms", CM_FIELD_INT64, AT(created_ms), NULL, 0 },
	{ "generation", CM_FIELD_UINT64, AT(generation), NULL, 0 },
	{ "workspace_kind", CM_FIELD_ENUM, AT(workspace_kind), workspace_kind_of,
	  CM_WORKSPACE_REPO },
	{ "workspace", CM_FIELD_STRING, AT(workspace), NULL, 0 },
	{ "workspace_read_only", CM_FIELD_BOOL, AT(is_workspace_read_only), NULL, 0 },
	{ "repo", CM_FIELD_STRING, AT(repo), NULL, 0 },
	{ "ref", CM_FIELD_STRING, AT(ref), NULL, 0 },
	{ "pr", CM_FIELD_INT, AT(pr), NULL, 0 },
	{ "branch", CM_FIELD_STRING, AT(branch), NULL, 0 },
	{ "base", CM_FIELD_STRING, AT(base), NULL, 0 },
	{ "depth", CM_FIELD_INT, AT(depth), NULL, 0 },
	{ "checkout", CM_FIELD_STRING, AT(checkout), NULL, 0 },
	{ "checkout_begun", CM_FIELD_BOOL, AT(is_checkout_begun), NULL, 0 },
	{ "checkout_done", CM_FIELD_BOOL, AT(is_checkout_done), NULL, 0 },
	{ "update_begun", CM_FIELD_BOOL, AT(is_update_begun), NULL, 0 },
	{ "network", CM_FIELD_ENUM, AT(network), network_of, CM_NETWORK_HOST },
	{ "rootfs", CM_FIELD_STRING, AT(rootfs), NULL, 0 },
	{ "user", CM_FIELD_ENUM, AT(user), user_of, CM_USER_ROOT },
	{ "git", CM_FIELD_ENUM, AT(git), git_of, CM_GIT_RW },
	{ "slot", CM_FIELD_UINT32, AT(slot), NULL, 0 },
	{ "agent_id", CM_FIELD_UINT32, AT(agent_id), NULL, 0 },
	{ "settings", CM_FIELD_STRING, AT(settings_json), NULL, 0 },
	{ "env", CM_FIELD_STRING, AT(env_json), NULL, 0 },
	{ "started", CM_FIELD_STRING, AT(started_json), NULL, 0 },
	{ "setup_state", CM_FIELD_ENUM, AT(setup_state), setup_of, CM_SETUP_FAILED },
	{ "setup_digest", CM_FIELD_STRING, AT(setup_digest), NULL, 0 },
	{ "setup_exit", CM_FIELD_INT, AT(setup_exit), NULL, 0 },
	{ "setup_ms", CM_FIELD_INT64, AT(setup_ms), NULL, 0 },
	{ "setup_took_ms", CM_FIELD_INT64, AT(setup_took_ms), NULL, 0 },
	{ "setup_begun_ms", CM_FIELD_INT64, AT(setup_begun_ms), NULL, 0 },
	{ "setup_commands", CM_FIELD_STRING, AT(setup_json), NULL, 0 },
	{ "teardown_commands", CM_FIELD_STRING, AT(teardown_json), NULL, 0 },
	{ "level", CM_FIELD_STRING, AT(level), NULL, 0 },
	{ "enforced", CM_FIELD_STRING, AT(enforced_json), NULL, 0 },
	{ "socket", CM_FIELD_STRING, AT(socket), NULL, 0 },
	{ "labels", CM_FIELD_MAP, AT(labels), NULL, 0 },
	{ "kept", CM_FIELD_STRING, AT(kept), NULL, 0 },
};
_Static_assert(CM_ARRAY_SIZE(cm_record_fields) == CM_RECORD_FIELDS, "as the header says");

/* enumerations are read and written through an int */
_Static_assert(sizeof(enum cm_setup_state) == sizeof(int), "enumerations are ints");

void cm_session_record_init(struct cm_session_record *r)
{
	memset(r, 0, sizeof(*r));
	r->version = CM_STATE_VERSION;
	r->slot = CM_SLOT_NONE;
}

void cm_session_record_clear(struct cm_session_record *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < CM_RECORD_FIELDS; i++) {
		if (cm_record_fields[i].kind == CM_FIELD_STRING)
			cm_ptr_free(cm_record_member(r, &cm_record_fields[i]));
		else if (cm_record_fields[i].kind == CM_FIELD_MAP)
			cm_strv_clear(cm_record_member(r, &cm_record_fields[i]));
	}
	cm_ptr_free(&r->unknown_json);
	cm_session_record_init(r);
}

int cm_record_copy(struct cm_session_record *to, const struct cm_session_record *from)
{
	struct cm_session_record copy = *from;
	bool is_short = false;

	for (size_t i = 0; i < CM_RECORD_FIELDS; i++) {
		char *const *from_text = cm_record_member_const(from, &cm_record_fields[i]);
		char **to_text = cm_record_member(&copy, &cm_record_fields[i]);

		if (cm_record_fields[i].kind != CM_FIELD_STRING)
			continue;
		*to_text = cm_strdup(*from_text);
		is_short = is_short || (*from_text && !*to_text);
	}
	copy.labels = (struct cm_strv){ 0 };
	is_short = is_short || cm_strv_copy(&copy.labels, &from->labels) != CM_OK;
	copy.unknown_json = cm_strdup(from->unknown_json);
	is_short = is_short || (from->unknown_json && !copy.unknown_json);
	if (is_short) {
		cm_session_record_clear(&copy);
		return CM_E_NOMEM;
	}
	*to = copy;
	return CM_OK;
}

static int read_enum(const struct cm_record_field *f, const char *text, int *ret)
{
	for (int v = 0; v <= f->max; v++) {
		const char *name = f->name(v);

		if (name && strcmp(name, text) == 0) {
			*ret = v;
			return CM_OK;
		}
	}
	return CM_E_INVALID;
}

static int read_number(const struct cm_record_field *f, int64_t v, void *to)
{
	if (f->kind == CM_FIELD_INT && v >= INT32_MIN && v <= INT32_MAX)
		*(int *)to = (int)v;
	else if (f->kind == CM_FIELD_INT64)
		*(int64_t *)to = v;
	else if (f->kind == CM_FIELD_UINT32 && v >= 0 && v <= UINT32_MAX)
		*(uint32_t *)to = (uint32_t)v;
	else if (f->kind == CM_FIELD_UINT64 && v >= 0)
		*(uint64_t *)to = (uint64_t)v;
	else
		return CM_E_INVALID;
	return CM_OK;
}

static int read_map(const struct cm_json *v, struct cm_strv *to)
{
	for (const struct cm_json *m = v->first_child; m; m = m->next) {
		if (m->type != CM_JSON_STRING)
			return CM_E_INVALID;
		if (cm_strv_addf(to, "%s=%s", m->key, m->u.string) != CM_OK)
			return CM_E_NOMEM;
	}
	return CM_OK;
}

static int read_field(const struct cm_record_field *f, const struct cm_json *v,
		      struct cm_session_record *r)
{
	void *to = cm_record_member(r, f);

	if (f->kind == CM_FIELD_STRING && v->type == CM_JSON_STRING) {
		*(char **)to = cm_strdup(v->u.string);
		return *(char **)to ? CM_OK : CM_E_NOMEM;
	}
	if (f->kind == CM_FIELD_ENUM && v->type == CM_JSON_STRING)
		return read_enum(f, v->u.string, to);
	if (f->kind == CM_FIELD_BOOL && v->type == CM_JSON_BOOL) {
		*(bool *)to = v->u.boolean;
		return CM_OK;
	}
	if (f->kind == CM_FIELD_MAP && v->type == CM_JSON_OBJECT)
		return read_map(v, to);
	if (v->type == CM_JSON_INT)
		return read_number(f, v->u.integer, to);
	return CM_E_INVALID;
}

/* *at: where the last one was; files have the order of the table, and thousands of them are read. */
static const struct cm_record_field *find_field(const char *key, size_t *at)
{
	for (size_t i = 0; i < CM_RECORD_FIELDS; i++) {
		size_t next = (*at + i) % CM_RECORD_FIELDS;

		if (strcmp(cm_record_fields[next].key, key) == 0) {
			*at = next + 1;
			return &cm_record_fields[next];
		}
	}
	return NULL;
}

/* The members of an object without its braces. */
static void strip_braces(struct cm_buf *b)
{
	if (b->has_failed || b->len < 2)
		return;
	memmove(b->data, b->data + 1, b->len - 2);
	b->len -= 2;
	b->data[b->len] = '\0';
}

static int keep_unknown(const struct cm_json *root, struct cm_session_record *r)
{
	CM_AUTO_BUF struct cm_buf text;
	struct cm_json_writer w;
	size_t at = 0;
	bool has_any = false;

	cm_buf_init(&text, CM_JSON_MAX_BYTES);
	cm_jw_init(&w, &text, false);
	cm_jw_object(&w);
	for (const struct cm_json *v = root->first_child; v; v = v->next) {
		if (find_field(v->key, &at) || strcmp(v->key, SUM_KEY) == 0)
			continue;
		has_any = true;
		cm_jw_key(&w, v->key);
		cm_json_copy(&w, v);
	}
	cm_jw_end_object(&w);
	if (!has_any)
		return CM_OK;
	strip_braces(&text);
	r->unknown_json = cm_buf_take(&text);
	return r->unknown_json ? CM_OK : CM_E_NOMEM;
}

static int damaged(const char *id, const char *why, struct cm_error *err)
{
	(void)cm_error_set(err, CM_E_PROTOCOL, 0, "state of session '%s' is damaged: %s", id, why);
	cm_error_hint(err,
		      "'casemate rm %s' removes the session and leaves the files of its session "
		      "directory",
		      id);
	return CM_E_PROTOCOL;
}

static int read_members(const struct cm_json *root, const char *id, struct cm_session_record *r,
			struct cm_error *err)
{
	bool is_newer = cm_json_int(root, "v", 0) > CM_STATE_VERSION;
	size_t at = 0;

	for (const struct cm_json *v = root->first_child; v; v = v->next) {
		const struct cm_record_field *f = find_field(v->key, &at);
		int code = f ? read_field(f, v, r) : CM_OK;

		if (code == CM_E_NOMEM)
			return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
		if (code != CM_OK && !is_newer) {
			char why[128];

			(void)snprintf(why, sizeof(why), "member '%.60s' is not understood",
				       v->key);
			return damaged(id, why, err);
		}
	}
	return CM_OK;
}

static void format_sum(const char *text, size_t len, char buf[SUM_LEN + 1])
{
	(void)snprintf(buf, SUM_LEN + 1, SUM_START "%016llx" SUM_END,
		       (unsigned long long)cm_hash(CM_HASH_START, text, len));
}

/* False: there is a checksum, of something else. */
static bool is_sum_right(const char *text, size_t len)
{
	char want[SUM_LEN + 1];
	const char *sum;

	if (len > 0 && text[len - 1] == '\n')
		len--;
	if (len < SUM_LEN)
		return true;
	sum = text + len - SUM_LEN;
	if (memcmp(sum, SUM_START, strlen(SUM_START)) != 0)
		return true;
	format_sum(text, len - SUM_LEN, want);
	return memcmp(sum, want, SUM_LEN) == 0;
}

int cm_record_parse(const char *text, size_t len, const char *id, struct cm_session_record *ret,
		    struct cm_error *err)
{
	struct cm_session_record r;
	struct cm_json_doc *doc = NULL;
	struct cm_error why = CM_ERROR_INIT;
	const struct cm_json *root;
	int code;

	cm_session_record_init(&r);
	r.version = 0;
	code = cm_json_parse(text, len, CM_STORE_STATE, 0, &doc, &why);
	if (code == CM_E_NOMEM)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	if (code != CM_OK)
		return damaged(id, why.msg, err);
	root = cm_json_root(doc);
	if (root->type != CM_JSON_OBJECT)
		code = damaged(id, "it is not an object", err);
	else if (!is_sum_right(text, len))
		code = damaged(id, "its checksum is not that of its content", err);
	else
		code = read_members(root, id, &r, err);
	if (code == CM_OK && r.version < 1)
		code = damaged(id, "it has no version", err);
	if (code == CM_OK && (!r.id || strcmp(r.id, id) != 0))
		code = damaged(id, "it names another session", err);
	if (code == CM_OK && (!r.root || r.root[0] != '/'))
		code = damaged(id, "it has no session root", err);
	if (code == CM_OK && keep_unknown(root, &r) != CM_OK)
		code = cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	cm_json_free(doc);
	if (code != CM_OK) {
		cm_session_record_clear(&r);
		return code;
	}
	*ret = r;
	return CM_OK;
}

static void write_field(struct cm_json_writer *w, const struct cm_record_field *f, const void *from)
{
	const char *text = NULL;

	switch (f->kind) {
	case CM_FIELD_STRING:
		text = *(char *const *)from;
		break;
	case CM_FIELD_ENUM:
		if (*(const int *)from >= 0 && *(const int *)from <= f->max)
			text = f->name(*(const int *)from);
		break;
	case CM_FIELD_MAP:
		cm_jw_key(w, f->key);
		cm_strv_write_map(from, w);
		return;
	case CM_FIELD_BOOL:
		cm_jw_kbool(w, f->key, *(const bool *)from);
		return;
	case CM_FIELD_INT:
		cm_jw_kint(w, f->key, *(const int *)from);
		return;
	case CM_FIELD_INT64:
		cm_jw_kint(w, f->key, *(const int64_t *)from);
		return;
	case CM_FIELD_UINT32:
		cm_jw_kuint(w, f->key, *(const uint32_t *)from);
		return;
	case CM_FIELD_UINT64:
		cm_jw_kuint(w, f->key, *(const uint64_t *)from);
		return;
	}
	if (text)
		cm_jw_kstring(w, f->key, text);
}

int cm_record_format(const struct cm_session_record *record, struct cm_buf *out)
{
	char sum[SUM_LEN + 1];
	struct cm_json_writer w;

	cm_jw_init(&w, out, false);
	cm_jw_object(&w);
	for (size_t i = 0; i < CM_RECORD_FIELDS; i++)
		write_field(&w, &cm_record_fields[i],
			    cm_record_member_const(record, &cm_record_fields[i]));
	cm_jw_end_object(&w);
	if (record->unknown_json && !out->has_failed) {
		/* behind the last known member */
		out->len--;
		cm_buf_putc(out, ',');
		cm_buf_puts(out, record->unknown_json);
		cm_buf_putc(out, '}');
	}
	if (!out->has_failed) {
		out->len--;
		format_sum(out->data, out->len, sum);
		cm_buf_puts(out, sum);
	}
	cm_buf_putc(out, '\n');
	return cm_buf_status(out);
}
