/* SPDX-License-Identifier: Apache-2.0 */
/* One listing of a tree compared with the next. Of an entry its path is kept, and digests of the rest. */
#include <stdlib.h>
#include <string.h>

#include "providers/remote/shell_files_internal.h"
#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/hash.h"

struct item {
	char *path;
	/* of type, size and time; of mode, owner and target */
	uint64_t content;
	uint64_t attributes;
};

struct list {
	struct item *v;
	size_t n;
	size_t capacity;
};

struct cm_shell_snapshots {
	int (*each)(void *data, const struct cm_watch_event *event);
	void *data;
	struct list old;
	struct list new;
	bool has_old;
	/* the one that comes in is too long: what was is kept until one is not */
	bool is_over;
};

int cm_shell_snapshots_new(int (*each)(void *data, const struct cm_watch_event *event), void *data,
			   struct cm_shell_snapshots **ret)
{
	struct cm_shell_snapshots *s = cm_calloc(1, sizeof(*s));

	if (!s)
		return CM_E_NOMEM;
	s->each = each;
	s->data = data;
	*ret = s;
	return CM_OK;
}

static void list_empty(struct list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i].path);
	l->n = 0;
}

static void list_clear(struct list *l)
{
	list_empty(l);
	free(l->v);
	*l = (struct list){ 0 };
}

void cm_shell_snapshots_free(struct cm_shell_snapshots *s)
{
	if (!s)
		return;
	list_clear(&s->old);
	list_clear(&s->new);
	free(s);
}

static uint64_t hash_text(uint64_t h, const char *text)
{
	return cm_hash(h, text ? text : "", text ? strlen(text) + 1 : 1);
}

static int add(struct cm_shell_snapshots *s, const struct cm_path_info *info)
{
	struct list *l = &s->new;
	struct item item;
	uint64_t h;

	if (l->n >= CM_SHELL_WATCH_MAX || s->is_over) {
		s->is_over = true;
		return 0;
	}
	if (l->n == l->capacity) {
		size_t capacity = l->capacity ? l->capacity * 2 : 256;
		struct item *v = cm_realloc(l->v, capacity * sizeof(*v));

		if (!v)
			return CM_E_NOMEM;
		l->v = v;
		l->capacity = capacity;
	}
	h = cm_hash(CM_HASH_START, &info->type, sizeof(info->type));
	h = cm_hash(h, &info->size, sizeof(info->size));
	h = cm_hash(h, &info->mtime_sec, sizeof(info->mtime_sec));
	item.content = cm_hash(h, &info->mtime_nsec, sizeof(info->mtime_nsec));
	/* of a directory that is what is in it, and that is told by itself */
	if (info->type == CM_PATH_DIRECTORY)
		item.content = 0;
	h = cm_hash(CM_HASH_START, &info->mode, sizeof(info->mode));
	h = hash_text(hash_text(h, info->owner), info->group);
	item.attributes = hash_text(h, info->target);
	item.path = cm_strdup(info->path);
	if (!item.path)
		return CM_E_NOMEM;
	l->v[l->n++] = item;
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct item *x = a;
	const struct item *y = b;

	return strcmp(x->path, y->path);
}

static int tell(const struct cm_shell_snapshots *s, enum cm_watch_kind kind, const char *path)
{
	const struct cm_watch_event event = { .kind = kind, .path = path };

	return s->each(s->data, &event);
}

static int tell_changed(const struct cm_shell_snapshots *s, const struct item *was,
			const struct item *is)
{
	int r = was->content != is->content ? tell(s, CM_WATCH_MODIFIED, is->path) : 0;

	if (r == 0 && was->attributes != is->attributes)
		r = tell(s, CM_WATCH_ATTRIBUTES, is->path);
	return r;
}

/* Both are sorted. */
static int tell_all(const struct cm_shell_snapshots *s)
{
	size_t i = 0;
	size_t j = 0;
	int r = 0;

	while (r == 0 && (i < s->old.n || j < s->new.n)) {
		int order = i == s->old.n   ? 1
			    : j == s->new.n ? -1
					    : compare(&s->old.v[i], &s->new.v[j]);

		if (order < 0)
			r = tell(s, CM_WATCH_REMOVED, s->old.v[i++].path);
		else if (order > 0)
			r = tell(s, CM_WATCH_CREATED, s->new.v[j++].path);
		else
			r = tell_changed(s, &s->old.v[i++], &s->new.v[j++]);
	}
	return r;
}

static int finish(struct cm_shell_snapshots *s)
{
	struct list free_list = s->old;
	int r = 0;

	if (s->is_over) {
		s->is_over = false;
		list_empty(&s->new);
		return tell(s, CM_WATCH_OVERFLOW, "");
	}
	if (s->new.n > 1)
		qsort(s->new.v, s->new.n, sizeof(*s->new.v), compare);
	r = s->has_old ? tell_all(s) : tell(s, CM_WATCH_READY, "");
	s->has_old = true;
	s->old = s->new;
	s->new = free_list;
	list_empty(&s->new);
	return r;
}

int cm_shell_snapshots_take(void *data, const struct cm_path_info *info, char mark)
{
	struct cm_shell_snapshots *s = data;

	if (info)
		return add(s, info);
	/* "!": what is watched is gone, and the script ends */
	return mark == '.' ? finish(s) : 0;
}
