/* SPDX-License-Identifier: Apache-2.0 */
#include "providers/remote/sorted.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/alloc.h"

/* names are sorted as far as they fit into this; more come in sorted pieces */
#define MAX_BYTES (32UL * 1024 * 1024)

void cm_sorted_init(struct cm_sorted *s, int (*each)(void *data, const struct cm_path_info *info),
		    void *data)
{
	*s = (struct cm_sorted){ .each = each, .data = data };
}

static void clear_entry(struct cm_path_info *info)
{
	/* copies, which only their users may not change */
	free((char *)(uintptr_t)info->path);
	free((char *)(uintptr_t)info->target);
	free((char *)(uintptr_t)info->owner);
	free((char *)(uintptr_t)info->group);
}

static size_t size_of(const char *text)
{
	return text ? strlen(text) : 0;
}

static int copy_entry(const struct cm_path_info *info, struct cm_path_info *ret)
{
	*ret = *info;
	ret->path = cm_strdup(info->path);
	ret->target = cm_strdup(info->target);
	ret->owner = cm_strdup(info->owner);
	ret->group = cm_strdup(info->group);
	if (ret->path && (ret->target || !info->target) && (ret->owner || !info->owner) &&
	    (ret->group || !info->group))
		return CM_OK;
	clear_entry(ret);
	return CM_E_NOMEM;
}

static void clear(struct cm_sorted *s)
{
	for (size_t i = 0; i < s->n; i++)
		clear_entry(&s->v[i]);
	free(s->v);
	s->v = NULL;
	s->n = s->capacity = s->bytes = 0;
}

static int by_path(const void *a, const void *b)
{
	const char *left = ((const struct cm_path_info *)a)->path;
	const char *right = ((const struct cm_path_info *)b)->path;
	unsigned int l;
	unsigned int r;

	while (*left != '\0' && *left == *right) {
		left++;
		right++;
	}
	/* what is below 'a' comes before 'a-b' */
	l = *left == '/' ? 1 : *left == '\0' ? 0 : (unsigned char)*left + 2U;
	r = *right == '/' ? 1 : *right == '\0' ? 0 : (unsigned char)*right + 2U;
	return (l > r) - (l < r);
}

static int tell(struct cm_sorted *s)
{
	int r = CM_OK;

	if (s->n > 0)
		qsort(s->v, s->n, sizeof(*s->v), by_path);
	for (size_t i = 0; i < s->n && r == CM_OK; i++)
		r = s->each(s->data, &s->v[i]);
	clear(s);
	return r;
}

int cm_sorted_take(void *data, const struct cm_path_info *info)
{
	struct cm_sorted *s = data;

	if (s->n == s->capacity) {
		size_t capacity = s->capacity * 2 + 64;
		struct cm_path_info *v = cm_realloc(s->v, capacity * sizeof(*v));

		if (!v)
			return CM_E_NOMEM;
		s->v = v;
		s->capacity = capacity;
	}
	if (copy_entry(info, &s->v[s->n]) < 0)
		return CM_E_NOMEM;
	s->n++;
	s->bytes += sizeof(*info) + strlen(info->path) + size_of(info->target) +
		    size_of(info->owner) + size_of(info->group);
	return s->bytes < MAX_BYTES ? CM_OK : tell(s);
}

int cm_sorted_end(struct cm_sorted *s, int r, struct cm_error *err)
{
	int told = tell(s);

	if (r == CM_E_NOMEM && err && err->code != r)
		return cm_error_set(err, r, 0, "no memory for what is listed");
	return r != CM_OK ? r : told;
}
