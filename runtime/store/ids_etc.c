/* SPDX-License-Identifier: Apache-2.0 */
/* Which slots of kernel ids the host has given to somebody else. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/fields.h"
#include "runtime/store/store_internal.h"

/* account files of hosts with a hundred thousand users fit */
#define ETC_FILE_MAX (32L * 1024 * 1024)

/* The whole file, NUL-terminated; NULL with errno. */
static char *read_etc(int etc_fd, const char *name)
{
	CM_AUTO_FREE char *text = NULL;
	CM_AUTO_FD int fd = -1;
	struct stat st;
	ssize_t n;

	fd = openat(etc_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0)
		return NULL;
	if (st.st_size > ETC_FILE_MAX) {
		errno = EFBIG;
		return NULL;
	}
	/* one more, so that a file that grew meanwhile is an error and not half a file */
	text = cm_malloc((size_t)st.st_size + 2);
	if (!text) {
		errno = ENOMEM;
		return NULL;
	}
	n = cm_read_all(fd, text, (size_t)st.st_size + 1);
	if (n < 0) {
		errno = (int)-n;
		return NULL;
	}
	text[n] = '\0';
	return cm_ptr_take(&text);
}

/* An editor of another system may have left something at the line's end. */
static bool read_id(struct cm_field field, uint64_t *ret)
{
	while (field.len > 0 && strchr("\r ", field.at[field.len - 1]))
		field.len--;
	return cm_field_number(&field, ret);
}

static void block(const struct cm_slot_space *space, uint8_t *bitmap, uint64_t first, uint64_t n)
{
	uint64_t base = space->base;
	uint64_t end = base + (uint64_t)space->n_slots * space->size;
	uint64_t last;

	if (n == 0 || first >= end || first + n <= base)
		return;
	last = first + n - 1 < end ? first + n - 1 : end - 1;
	first = first > base ? first : base;
	for (uint64_t slot = (first - base) / space->size; slot <= (last - base) / space->size;
	     slot++)
		bitmap[slot / 8] |= (uint8_t)(1U << (slot % 8));
}

/* Lines "name:first:count" (is_range) or those of passwd, "name:x:uid:gid:...". */
static void block_lines(const char *text, bool is_range, const struct cm_slot_space *space,
			uint8_t *bitmap)
{
	for (const char *line = text; *line; line = cm_next_line(line)) {
		size_t at = is_range ? 1 : 2;
		struct cm_field f[5];
		uint64_t first;
		uint64_t second;

		if (cm_fields_split(line, ':', f, CM_ARRAY_SIZE(f)) < at + 2 ||
		    !read_id(f[at], &first) || !read_id(f[at + 1], &second))
			continue;
		if (is_range) {
			block(space, bitmap, first, second);
		} else {
			block(space, bitmap, first, 1);
			block(space, bitmap, second, 1);
		}
	}
}

int cm_slot_blocked(int etc_fd, const struct cm_slot_space *space, uint8_t *bitmap,
		    struct cm_error *err)
{
	static const char *const names[] = { "subuid", "subgid", "passwd" };

	for (size_t i = 0; i < CM_ARRAY_SIZE(names); i++) {
		CM_AUTO_FREE char *text = read_etc(etc_fd, names[i]);

		if (!text && errno == ENOENT)
			continue;
		/* not knowing who has an id is no reason to take it */
		if (!text)
			return cm_store_fail(err, errno, "read", "/etc", names[i]);
		block_lines(text, i < 2, space, bitmap);
	}
	return CM_OK;
}
