/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/host/listing.h"

#include <stdbool.h>
#include <string.h>

void cm_listing_begin(struct cm_listing *l, int fd)
{
	l->fd = fd;
	l->pos = l->len = 0;
}

/* False: there is no more, or it has failed. */
static bool refill(struct cm_listing *l)
{
	ssize_t n = cm_sys_getdents64(l->fd, l->buf, sizeof(l->buf));

	l->pos = 0;
	l->len = n > 0 ? (size_t)n : 0;
	return n > 0;
}

/* Of what was read; NULL: no more of that. */
static const char *next_held(struct cm_listing *l)
{
	while (l->pos < l->len) {
		const struct cm_dirent *e =
			(const struct cm_dirent *)(const void *)(l->buf + l->pos);

		l->pos += e->record_len;
		if (strcmp(e->name, ".") != 0 && strcmp(e->name, "..") != 0)
			return e->name;
	}
	return NULL;
}

const char *cm_listing_next(struct cm_listing *l)
{
	const char *name;

	while (!(name = next_held(l))) {
		if (!refill(l))
			return NULL;
	}
	return name;
}
