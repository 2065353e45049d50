/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growable byte buffer with a hard maximum, and a vector of owned strings.
 *
 * A failed append (no memory, or over the maximum) marks the buffer failed and every later append
 * is a no-op, so a run of appends needs one check at the end.  data is always NUL-terminated
 * after the first successful append, and the NUL is not counted in len.
 */
#ifndef CM_RUNTIME_BASE_BUF_H
#define CM_RUNTIME_BASE_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct cm_buf {
	char *data;
	size_t len;
	size_t capacity;
	/* bytes of data, the NUL not counted */
	size_t max;
	bool has_failed;
	/* why it failed: over max, else out of memory */
	bool is_over_max;
};

void cm_buf_init(struct cm_buf *b, size_t max);
/* Frees and leaves the buffer as after cm_buf_init with the same maximum. */
void cm_buf_clear(struct cm_buf *b);
/* Room for len more bytes at once: a failure counts as one of an append. */
void cm_buf_reserve(struct cm_buf *b, size_t len);
/* Empties it and keeps the memory; a failure is forgotten. */
void cm_buf_reset(struct cm_buf *b);
void cm_buf_append(struct cm_buf *b, const void *data, size_t len);
void cm_buf_puts(struct cm_buf *b, const char *s);
void cm_buf_putc(struct cm_buf *b, char c);
void cm_buf_printf(struct cm_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* 0, or CM_E_NOMEM / CM_E_LIMIT when an append failed. */
int cm_buf_status(const struct cm_buf *b);
/* The string, owned by the caller (free); NULL when an append failed. Leaves the buffer empty. */
char *cm_buf_take(struct cm_buf *b);
#define CM_AUTO_BUF __attribute__((cleanup(cm_buf_clear)))

/* NULL-terminated vector of owned strings; zero-initialise. */
struct cm_strv {
	char **v;
	size_t n;
};
void cm_strv_clear(struct cm_strv *sv);
/* Copies s. 0 or CM_E_NOMEM. */
int cm_strv_add(struct cm_strv *sv, const char *s);
/* Copies all of a NULL-terminated vector; NULL is none. 0, or CM_E_NOMEM with some of them added. */
int cm_strv_add_all(struct cm_strv *sv, char *const *from);
/* Takes own_s over, also on failure. */
int cm_strv_add_own(struct cm_strv *sv, char *own_s);
int cm_strv_addf(struct cm_strv *sv, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Replaces what is in `to`, which is left as it was on failure. */
int cm_strv_copy(struct cm_strv *to, const struct cm_strv *from);
bool cm_strv_has(const struct cm_strv *sv, const char *s);
/* Environment style: the value of "name=value", or NULL. Borrowed. */
const char *cm_strv_env_get(const struct cm_strv *sv, const char *name);
/* Sets or replaces "name=value". CM_E_INVALID for a name that is empty or has a '='. */
int cm_strv_env_set(struct cm_strv *sv, const char *name, const char *value);
#define CM_AUTO_STRV __attribute__((cleanup(cm_strv_clear)))

/* printf into a new string; NULL when out of memory. */
char *cm_asprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* strdup that accepts NULL (and returns NULL). */
char *cm_strdup(const char *s);

#endif
