/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON reader: yajl's events made into a tree in one arena.
 *
 * yajl 2.1 does not check what its allocator returns.  Its memory therefore comes from
 * yajl_alloc_or_leave(), which on failure jumps out of yajl altogether; every block it has is on a
 * list of ours, so nothing is lost.  No callback of ours owns anything while yajl runs.
 */
#include "runtime/base/json.h"

#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

#include "runtime/base/alloc.h"
#include "runtime/base/num.h"
#include "runtime/base/text.h"

#define ARENA_CHUNK 16384
#define ARENA_ALIGN (sizeof(max_align_t))
#define MAX_NUMBER_LEN 64

struct chunk {
	struct chunk *next;
	size_t used;
	size_t size;
	_Alignas(max_align_t) char bytes[];
};

struct cm_json_doc {
	struct chunk *chunks;
	struct cm_json *root;
};

/* a block that yajl has */
struct block {
	/* what points at this one */
	struct block **link;
	struct block *next;
	_Alignas(max_align_t) char bytes[];
};

struct level {
	struct cm_json *container;
	struct cm_json *last_child;
};

struct parser {
	yajl_handle yajl;
	jmp_buf no_memory;
	struct block *blocks;
	struct cm_json_doc *doc;
	const char *text;
	size_t len;
	const char *name;
	struct cm_error *err;
	/* the code of an error that a callback has reported */
	int code;
	/* lines are counted up to here */
	size_t counted_to;
	unsigned int line;
	bool is_at_end;
	size_t n_nodes;
	const char *pending_key;
	unsigned int depth;
	struct level levels[CM_JSON_MAX_DEPTH];
	/* for sorting an object's members */
	const struct cm_json **sorted;
	size_t sorted_size;
};

static struct block *block_of(void *p)
{
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): a freed block is in no list any more */
	return (struct block *)(void *)((char *)p - offsetof(struct block, bytes));
}

static void *yajl_resize_or_leave(void *ctx, void *p, size_t size)
{
	struct parser *parser = ctx;
	struct block *b = p ? block_of(p) : NULL;
	struct block *moved = NULL;

	if (size < SIZE_MAX - sizeof(*b))
		moved = cm_realloc(b, sizeof(*b) + size);
	if (!moved)
		longjmp(parser->no_memory, 1);
	if (!b) {
		moved->link = &parser->blocks;
		moved->next = parser->blocks;
	}
	*moved->link = moved;
	if (moved->next)
		moved->next->link = &moved->next;
	return moved->bytes;
}

static void *yajl_alloc_or_leave(void *ctx, size_t size)
{
	return yajl_resize_or_leave(ctx, NULL, size);
}

static void yajl_release(void *ctx, void *p)
{
	struct block *b;

	(void)ctx;
	if (!p)
		return;
	b = block_of(p);
	*b->link = b->next;
	if (b->next)
		b->next->link = b->link;
	free(b);
}

static void release_all(struct parser *p)
{
	while (p->blocks)
		yajl_release(p, p->blocks->bytes);
	free(p->sorted);
}

static void *arena_alloc(struct cm_json_doc *doc, size_t size)
{
	struct chunk *c = doc->chunks;
	void *p;

	/* bounded: nothing larger than the text itself is asked for */
	size = (size + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
	if (!c || c->size - c->used < size) {
		size_t chunk_size = size > ARENA_CHUNK ? size : ARENA_CHUNK;

		c = cm_malloc(sizeof(*c) + chunk_size);
		if (!c)
			return NULL;
		c->next = doc->chunks;
		c->used = 0;
		c->size = chunk_size;
		doc->chunks = c;
	}
	p = c->bytes + c->used;
	c->used += size;
	return p;
}

/* The line that yajl has read up to, counted on from the last time. */
static unsigned int current_line(struct parser *p)
{
	size_t to = p->is_at_end ? p->len : yajl_get_bytes_consumed(p->yajl);
	const char *newline;

	if (to > p->len)
		to = p->len;
	while (p->counted_to < to) {
		newline = memchr(p->text + p->counted_to, '\n', to - p->counted_to);
		if (!newline) {
			p->counted_to = to;
			break;
		}
		p->line++;
		p->counted_to = (size_t)(newline - p->text) + 1;
	}
	return p->line;
}

static int fail(struct parser *p, int code, unsigned int line, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Returns 0, which is what makes yajl stop. */
static int fail(struct parser *p, int code, unsigned int line, const char *fmt, ...)
{
	va_list ap;

	p->code = code;
	va_start(ap, fmt);
	cm_error_vset(p->err, code, 0, fmt, ap);
	va_end(ap);
	if (line > 0)
		cm_error_wrap(p->err, "%s:%u", p->name, line);
	else
		cm_error_wrap(p->err, "%s", p->name);
	if (line > 0)
		cm_error_hint(p->err, "correct line %u of '%s'", line, p->name);
	else
		cm_error_hint(p->err, "make '%s' smaller", p->name);
	return 0;
}

static int no_memory(struct parser *p)
{
	p->code = cm_error_set(p->err, CM_E_NOMEM, ENOMEM, "out of memory reading '%s'", p->name);
	cm_error_hint(p->err, "free memory and try again");
	return 0;
}

static struct cm_json *add_node(struct parser *p, enum cm_json_type type)
{
	unsigned int line = current_line(p);
	struct level *level = p->depth > 0 ? &p->levels[p->depth - 1] : NULL;
	struct cm_json *node;

	if (p->n_nodes++ >= CM_JSON_MAX_NODES) {
		fail(p, CM_E_LIMIT, line, "more than %d values", CM_JSON_MAX_NODES);
		return NULL;
	}
	node = arena_alloc(p->doc, sizeof(*node));
	if (!node) {
		no_memory(p);
		return NULL;
	}
	*node = (struct cm_json){ .type = type, .line = line, .key = p->pending_key };
	p->pending_key = NULL;
	if (!level) {
		p->doc->root = node;
	} else {
		if (level->last_child)
			level->last_child->next = node;
		else
			level->container->first_child = node;
		level->last_child = node;
		level->container->n_children++;
	}
	return node;
}

static int on_null(void *ctx)
{
	return add_node(ctx, CM_JSON_NULL) != NULL;
}

static int on_boolean(void *ctx, int value)
{
	struct cm_json *node = add_node(ctx, CM_JSON_BOOL);

	if (node)
		node->u.boolean = value != 0;
	return node != NULL;
}

static bool to_integer(const char *s, int64_t *ret)
{
	bool is_negative = *s == '-';
	uint64_t limit = is_negative ? (uint64_t)INT64_MAX + 1 : (uint64_t)INT64_MAX;
	uint64_t v = 0;

	for (s += is_negative; *s; s++) {
		uint64_t digit = (uint64_t)(*s - '0');

		if (v > (limit - digit) / 10)
			return false;
		v = v * 10 + digit;
	}
	if (!is_negative)
		*ret = (int64_t)v;
	else
		*ret = v == limit ? INT64_MIN : -(int64_t)v;
	return true;
}

/* strtod(3) in whatever locale a user of the library has set. */
static double to_double(const char *s)
{
	char local[MAX_NUMBER_LEN + 16];
	const char *point = localeconv()->decimal_point;
	const char *dot = strchr(s, '.');

	if (!dot || strcmp(point, ".") == 0 || strlen(point) > 8)
		return strtod(s, NULL);
	(void)snprintf(local, sizeof(local), "%.*s%s%s", (int)(dot - s), s, point, dot + 1);
	return strtod(local, NULL);
}

static int on_number(void *ctx, const char *s, size_t len)
{
	struct parser *p = ctx;
	char number[MAX_NUMBER_LEN + 1];
	struct cm_json *node;

	if (len > MAX_NUMBER_LEN)
		return fail(p, CM_E_INVALID, current_line(p),
			    "a number has more than %d characters", MAX_NUMBER_LEN);
	memcpy(number, s, len);
	number[len] = '\0';
	node = add_node(p, strpbrk(number, ".eE") ? CM_JSON_DOUBLE : CM_JSON_INT);
	if (!node)
		return 0;
	if (node->type == CM_JSON_INT) {
		if (!to_integer(number, &node->u.integer))
			return fail(p, CM_E_INVALID, node->line,
				    "number '%s' is not between %" PRId64 " and %" PRId64, number,
				    INT64_MIN, INT64_MAX);
		return 1;
	}
	node->u.number = to_double(number);
	if (!isfinite(node->u.number))
		return fail(p, CM_E_INVALID, node->line, "number '%s' is too large", number);
	return 1;
}

static int hex_quad(const char *s)
{
	int v = 0;

	for (size_t i = 0; i < 4; i++) {
		int digit = s[i] <= '9' ? s[i] - '0' : (s[i] | 0x20) - 'a' + 10;

		v = v * 16 + digit;
	}
	return v;
}

/*
 * yajl turns half a surrogate pair into '?' or into bytes that are not UTF-8.  Look for one in the
 * raw string, whose escapes yajl has checked and which ends before `end`.
 */
static bool has_lone_surrogate(const char *s, const char *end)
{
	while (s < end) {
		int unit;

		if (*s != '\\') {
			s++;
			continue;
		}
		if (s[1] != 'u') {
			s += 2;
			continue;
		}
		unit = hex_quad(s + 2);
		s += 6;
		if (unit < 0xd800 || unit > 0xdfff)
			continue;
		if (unit > 0xdbff || end - s < 6 || s[0] != '\\' || s[1] != 'u')
			return true;
		unit = hex_quad(s + 2);
		if (unit < 0xdc00 || unit > 0xdfff)
			return true;
		s += 6;
	}
	return false;
}

/* Is the token that yajl has just read a string with half a surrogate pair? */
static bool is_half_a_pair(const struct parser *p)
{
	size_t at = yajl_get_bytes_consumed(p->yajl);
	const char *end;
	const char *start;

	if (at < 2 || at > p->len)
		return false;
	end = p->text + at - 1;
	for (start = end; start > p->text; start--) {
		size_t backslashes = 0;

		if (start[-1] != '"')
			continue;
		while (start - 2 - backslashes >= p->text &&
		       start[-2 - (ptrdiff_t)backslashes] == '\\')
			backslashes++;
		if (backslashes % 2 == 0)
			break;
	}
	return has_lone_surrogate(start, end);
}

/* A copy in the arena, or NULL after an error. */
static const char *keep_string(struct parser *p, const unsigned char *s, size_t len)
{
	bool was_escaped = (const char *)s < p->text || (const char *)s >= p->text + p->len;
	char *copy;

	if (memchr(s, '\0', len)) {
		fail(p, CM_E_INVALID, current_line(p), "a string has a NUL character");
		return NULL;
	}
	if (was_escaped && is_half_a_pair(p)) {
		fail(p, CM_E_INVALID, current_line(p), "a string has half of a surrogate pair");
		return NULL;
	}
	copy = arena_alloc(p->doc, len + 1);
	if (!copy) {
		no_memory(p);
		return NULL;
	}
	memcpy(copy, s, len);
	copy[len] = '\0';
	return copy;
}

static int on_string(void *ctx, const unsigned char *s, size_t len)
{
	const char *copy = keep_string(ctx, s, len);
	struct cm_json *node = copy ? add_node(ctx, CM_JSON_STRING) : NULL;

	if (node)
		node->u.string = copy;
	return node != NULL;
}

static int on_key(void *ctx, const unsigned char *s, size_t len)
{
	struct parser *p = ctx;

	p->pending_key = keep_string(p, s, len);
	return p->pending_key != NULL;
}

static int start_container(struct parser *p, enum cm_json_type type)
{
	struct cm_json *node;

	if (p->depth >= CM_JSON_MAX_DEPTH)
		return fail(p, CM_E_LIMIT, current_line(p), "nested more than %d levels deep",
			    CM_JSON_MAX_DEPTH);
	node = add_node(p, type);
	if (node)
		p->levels[p->depth++] = (struct level){ .container = node };
	return node != NULL;
}

static int on_start_map(void *ctx)
{
	return start_container(ctx, CM_JSON_OBJECT);
}

static int on_start_array(void *ctx)
{
	return start_container(ctx, CM_JSON_ARRAY);
}

static int compare_keys(const void *a, const void *b)
{
	const struct cm_json *const *left = a;
	const struct cm_json *const *right = b;

	return strcmp((*left)->key, (*right)->key);
}

/* Sorted, because comparing all with all is quadratic in what a hostile document says. */
static int on_end_map(void *ctx)
{
	struct parser *p = ctx;
	const struct cm_json *object = p->levels[--p->depth].container;
	size_t n = 0;

	if (object->n_children > p->sorted_size) {
		void *sorted = cm_realloc(p->sorted, object->n_children * sizeof(*p->sorted));

		if (!sorted)
			return no_memory(p);
		p->sorted = sorted;
		p->sorted_size = object->n_children;
	}
	for (const struct cm_json *v = object->first_child; v; v = v->next)
		p->sorted[n++] = v;
	if (n < 2)
		return 1;
	qsort(p->sorted, n, sizeof(*p->sorted), compare_keys);
	for (size_t i = 1; i < n; i++) {
		const struct cm_json *a = p->sorted[i - 1];
		const struct cm_json *b = p->sorted[i];

		if (strcmp(a->key, b->key) == 0)
			return fail(p, CM_E_INVALID, a->line > b->line ? a->line : b->line,
				    "key '%s' is there twice", a->key);
	}
	return 1;
}

static int on_end_array(void *ctx)
{
	struct parser *p = ctx;

	p->depth--;
	return 1;
}

static const yajl_callbacks callbacks = {
	.yajl_null = on_null,
	.yajl_boolean = on_boolean,
	.yajl_number = on_number,
	.yajl_string = on_string,
	.yajl_start_map = on_start_map,
	.yajl_map_key = on_key,
	.yajl_end_map = on_end_map,
	.yajl_start_array = on_start_array,
	.yajl_end_array = on_end_array,
};

/* yajl's text, which ends in ".\n" or "\n", as one of our messages. */
static void report_yajl_error(struct parser *p)
{
	const char *s = (const char *)yajl_get_error(p->yajl, 0, NULL, 0);
	size_t len = strcspn(s, "\n");

	while (len > 0 && (s[len - 1] == '.' || s[len - 1] == ' '))
		len--;
	fail(p, CM_E_INVALID, current_line(p), "%.*s", (int)len, s);
}

static int run_yajl(struct parser *p, unsigned int flags)
{
	yajl_alloc_funcs memory = { yajl_alloc_or_leave, yajl_resize_or_leave, yajl_release, p };
	yajl_status status;

	if (setjmp(p->no_memory) != 0) {
		no_memory(p);
		return p->code;
	}
	p->yajl = yajl_alloc(&callbacks, &memory, p);
	if (!p->yajl) {
		no_memory(p);
		return p->code;
	}
	yajl_config(p->yajl, yajl_allow_comments, (flags & CM_JSON_COMMENTS) != 0);
	status = yajl_parse(p->yajl, (const unsigned char *)p->text, p->len);
	if (status == yajl_status_ok) {
		(void)current_line(p);
		p->is_at_end = true;
		status = yajl_complete_parse(p->yajl);
	}
	if (status != yajl_status_ok && p->code == CM_OK)
		report_yajl_error(p);
	return p->code;
}

/* Before yajl: its own check of strings lets overlong forms pass and does not see comments. */
static int check_text(struct parser *p)
{
	const char *s = p->text;
	const char *end = p->text + p->len;
	unsigned int line = 1;
	char limit[32];

	if (p->len > CM_JSON_MAX_BYTES) {
		cm_format_size(CM_JSON_MAX_BYTES, limit, sizeof(limit));
		fail(p, CM_E_LIMIT, 0, "larger than %s", limit);
		return p->code;
	}
	while (s < end) {
		size_t n = cm_text_utf8_len(s, (size_t)(end - s));

		if (n == 0 || *s == '\0') {
			fail(p, CM_E_INVALID, line, "byte 0x%02x is not UTF-8 text",
			     (unsigned char)*s);
			return p->code;
		}
		line += *s == '\n';
		s += n;
	}
	return CM_OK;
}

int cm_json_parse(const char *text, size_t len, const char *name, unsigned int flags,
		  struct cm_json_doc **ret, struct cm_error *err)
{
	struct parser *p = cm_calloc(1, sizeof(*p));
	struct cm_json_doc *doc = p ? cm_calloc(1, sizeof(*doc)) : NULL;
	int r;

	if (!doc) {
		free(p);
		cm_error_set(err, CM_E_NOMEM, ENOMEM, "out of memory reading '%s'", name);
		cm_error_hint(err, "free memory and try again");
		return CM_E_NOMEM;
	}
	p->doc = doc;
	p->text = text;
	p->len = len;
	p->name = name;
	p->err = err;
	p->line = 1;
	r = check_text(p);
	if (r == CM_OK)
		r = run_yajl(p, flags);
	release_all(p);
	free(p);
	if (r != CM_OK) {
		cm_json_free(doc);
		return r;
	}
	*ret = doc;
	return CM_OK;
}

void cm_json_free(struct cm_json_doc *doc)
{
	if (!doc)
		return;
	while (doc->chunks) {
		struct chunk *next = doc->chunks->next;

		free(doc->chunks);
		doc->chunks = next;
	}
	free(doc);
}

const struct cm_json *cm_json_root(const struct cm_json_doc *doc)
{
	return doc->root;
}

const struct cm_json *cm_json_get(const struct cm_json *v, const char *key)
{
	if (!v || v->type != CM_JSON_OBJECT)
		return NULL;
	for (v = v->first_child; v; v = v->next) {
		if (strcmp(v->key, key) == 0)
			return v;
	}
	return NULL;
}

const char *cm_json_str(const struct cm_json *v, const char *key, const char *fallback)
{
	v = cm_json_get(v, key);
	return v && v->type == CM_JSON_STRING ? v->u.string : fallback;
}

int64_t cm_json_int(const struct cm_json *v, const char *key, int64_t fallback)
{
	v = cm_json_get(v, key);
	return v && v->type == CM_JSON_INT ? v->u.integer : fallback;
}

bool cm_json_bool(const struct cm_json *v, const char *key, bool fallback)
{
	v = cm_json_get(v, key);
	return v && v->type == CM_JSON_BOOL ? v->u.boolean : fallback;
}

int cm_json_strings(const struct cm_json *v, struct cm_strv *ret)
{
	int r = CM_OK;

	for (v = v ? v->first_child : NULL; v && r == CM_OK; v = v->next)
		r = v->type == CM_JSON_STRING ? cm_strv_add(ret, v->u.string) : CM_OK;
	return r;
}
