/* SPDX-License-Identifier: Apache-2.0 */
/* Growable byte buffers and string vectors. */
#include "runtime/base/buf.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "casemate/error.h"
#include "runtime/base/alloc.h"

#define MIN_CAPACITY 64

void cm_buf_init(struct cm_buf *b, size_t max)
{
	*b = (struct cm_buf){ .max = max };
}

void cm_buf_clear(struct cm_buf *b)
{
	free(b->data);
	cm_buf_init(b, b->max);
}

/* Make room for len more bytes and the NUL. */
static bool reserve(struct cm_buf *b, size_t len)
{
	size_t capacity = b->capacity;
	char *data;

	if (b->has_failed)
		return false;
	/* the second bound keeps the NUL and the doubling below from overflowing */
	if (len > b->max - b->len || len >= SIZE_MAX / 4 - b->len) {
		b->has_failed = true;
		b->is_over_max = true;
		return false;
	}
	if (b->len + len < capacity)
		return true;
	if (capacity < MIN_CAPACITY)
		capacity = MIN_CAPACITY;
	while (capacity <= b->len + len)
		capacity *= 2;
	/* no more than can ever be used: many buffers have small maxima */
	if (capacity - 1 > b->max)
		capacity = b->max + 1;
	data = cm_realloc(b->data, capacity);
	if (!data) {
		b->has_failed = true;
		return false;
	}
	b->data = data;
	b->capacity = capacity;
	return true;
}

void cm_buf_reserve(struct cm_buf *b, size_t len)
{
	/* data is a string from the moment that it is there */
	if (reserve(b, len))
		b->data[b->len] = '\0';
}

void cm_buf_reset(struct cm_buf *b)
{
	b->len = 0;
	b->has_failed = b->is_over_max = false;
	if (b->data)
		b->data[0] = '\0';
}

void cm_buf_append(struct cm_buf *b, const void *data, size_t len)
{
	if (!reserve(b, len))
		return;
	if (len > 0)
		memcpy(b->data + b->len, data, len);
	b->len += len;
	b->data[b->len] = '\0';
}

void cm_buf_puts(struct cm_buf *b, const char *s)
{
	cm_buf_append(b, s, strlen(s));
}

void cm_buf_putc(struct cm_buf *b, char c)
{
	cm_buf_append(b, &c, 1);
}

void cm_buf_printf(struct cm_buf *b, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0) {
		b->has_failed = true;
		return;
	}
	if (!reserve(b, (size_t)n))
		return;
	va_start(ap, fmt);
	(void)vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->len += (size_t)n;
}

int cm_buf_status(const struct cm_buf *b)
{
	if (!b->has_failed)
		return CM_OK;
	return b->is_over_max ? CM_E_LIMIT : CM_E_NOMEM;
}

char *cm_buf_take(struct cm_buf *b)
{
	char *data = NULL;

	/* a buffer that nothing was appended to is the empty string, not NULL */
	if (reserve(b, 0)) {
		data = b->data;
		data[b->len] = '\0';
		b->data = NULL;
	}
	cm_buf_clear(b);
	return data;
}

void cm_strv_clear(struct cm_strv *sv)
{
	for (size_t i = 0; i < sv->n; i++)
		free(sv->v[i]);
	free(sv->v);
	*sv = (struct cm_strv){ 0 };
}

/*
 * Room for one more and the NULL behind it. The capacity is not stored, so that it cannot disagree
 * with a vector that somebody shortened: it is the power of two that n and the NULL need, or more.
 */
static bool has_room(struct cm_strv *sv)
{
	size_t need = sv->n + 2;
	char **v;

	if (sv->v && (need <= 4 || ((need - 1) & (need - 2)) != 0))
		return true;
	if (need > SIZE_MAX / sizeof(*v) / 2)
		return false;
	v = cm_realloc(sv->v, (need <= 4 ? 4 : 2 * (need - 1)) * sizeof(*v));
	if (v)
		sv->v = v;
	return v != NULL;
}

int cm_strv_add_own(struct cm_strv *sv, char *own_s)
{
	if (!own_s)
		return CM_E_NOMEM;
	if (!has_room(sv)) {
		free(own_s);
		return CM_E_NOMEM;
	}
	sv->v[sv->n++] = own_s;
	sv->v[sv->n] = NULL;
	return CM_OK;
}

int cm_strv_add(struct cm_strv *sv, const char *s)
{
	return cm_strv_add_own(sv, cm_strdup(s));
}

static char *vformat(const char *fmt, va_list ap) __attribute__((format(printf, 1, 0)));

static char *vformat(const char *fmt, va_list ap)
{
	/* most fit, and are formatted once */
	char small[256];
	va_list again;
	char *s = NULL;
	int n;

	va_copy(again, ap);
	n = vsnprintf(small, sizeof(small), fmt, ap);
	if (n >= 0)
		s = cm_malloc((size_t)n + 1);
	if (s && (size_t)n < sizeof(small))
		memcpy(s, small, (size_t)n + 1);
	else if (s)
		(void)vsnprintf(s, (size_t)n + 1, fmt, again);
	va_end(again);
	/* it may have been a secret, which its owner can wipe but here */
	if (n > 0)
		explicit_bzero(small, (size_t)n < sizeof(small) ? (size_t)n : sizeof(small));
	return s;
}

int cm_strv_addf(struct cm_strv *sv, const char *fmt, ...)
{
	va_list ap;
	char *s;

	va_start(ap, fmt);
	s = vformat(fmt, ap);
	va_end(ap);
	return cm_strv_add_own(sv, s);
}

int cm_strv_add_all(struct cm_strv *sv, char *const *from)
{
	int r = CM_OK;

	for (size_t i = 0; from && from[i] && r == CM_OK; i++)
		r = cm_strv_add(sv, from[i]);
	return r;
}

int cm_strv_copy(struct cm_strv *to, const struct cm_strv *from)
{
	struct cm_strv copy = { 0 };

	if (to == from)
		return CM_OK;
	for (size_t i = 0; i < from->n; i++) {
		if (cm_strv_add(&copy, from->v[i]) != CM_OK) {
			cm_strv_clear(&copy);
			return CM_E_NOMEM;
		}
	}
	cm_strv_clear(to);
	*to = copy;
	return CM_OK;
}

bool cm_strv_has(const struct cm_strv *sv, const char *s)
{
	for (size_t i = 0; i < sv->n; i++) {
		if (strcmp(sv->v[i], s) == 0)
			return true;
	}
	return false;
}

static size_t env_find(const struct cm_strv *sv, const char *name, size_t from)
{
	size_t len = strlen(name);

	/* the first character first: most differ there, and a start looks up dozens of names */
	while (from < sv->n && (sv->v[from][0] != name[0] || strncmp(sv->v[from], name, len) != 0 ||
				sv->v[from][len] != '='))
		from++;
	return from;
}

const char *cm_strv_env_get(const struct cm_strv *sv, const char *name)
{
	size_t i = env_find(sv, name, 0);

	return i < sv->n ? sv->v[i] + strlen(name) + 1 : NULL;
}

int cm_strv_env_set(struct cm_strv *sv, const char *name, const char *value)
{
	size_t i;
	char *entry;

	if (*name == '\0' || strchr(name, '='))
		return CM_E_INVALID;
	entry = cm_asprintf("%s=%s", name, value);
	i = env_find(sv, name, 0);
	if (!entry || i == sv->n)
		return cm_strv_add_own(sv, entry);
	free(sv->v[i]);
	sv->v[i] = entry;
	/* programs differ in which of two equal names they read: leave one */
	while ((i = env_find(sv, name, i + 1)) < sv->n) {
		free(sv->v[i]);
		memmove(sv->v + i, sv->v + i + 1, (sv->n - i) * sizeof(*sv->v));
		sv->n--;
		i--;
	}
	return CM_OK;
}

char *cm_asprintf(const char *fmt, ...)
{
	va_list ap;
	char *s;

	va_start(ap, fmt);
	s = vformat(fmt, ap);
	va_end(ap);
	return s;
}

char *cm_strdup(const char *s)
{
	size_t size;
	char *copy;

	if (!s)
		return NULL;
	size = strlen(s) + 1;
	copy = cm_malloc(size);
	if (copy)
		memcpy(copy, s, size);
	return copy;
}
