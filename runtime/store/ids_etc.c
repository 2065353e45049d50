/* SPDX-License-Identifier: Apache-2.0 */
/* Which slots of kernel ids the host has given to somebody else. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
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

/* A field of digits, ended by ':' or the line's end; saturates. false when it is not one. */
static bool read_id(const char *s, uint64_t *ret)
{
	uint64_t v = 0;
	const char *p = s;

	for (; *p >= '0' && *p <= '9'; p++)
		if (v <= UINT32_MAX)
			v = v * 10 + (uint64_t)(*p - '0');
	if (p == s || (*p != ':' && *p != '\n' && *p != '\0' && *p != '\r' && *p != ' '))
		return false;
	*ret = v;
	return true;
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

/* The n-th field of the line at s (fields from 0), or NULL. */
static const char *field_of(const char *s, unsigned int n)
{
	for (; n > 0; n--) {
		s += strcspn(s, ":\n");
		if (*s != ':')
			return NULL;
		s++;
	}
	return s;
}

/* Lines "name:first:count" (is_range) or those of passwd, "name:x:uid:gid:...". */
static void block_lines(const char *text, bool is_range, const struct cm_slot_space *space,
			uint8_t *bitmap)
{
	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		const char *a = field_of(line, is_range ? 1 : 2);
		const char *b = field_of(line, is_range ? 2 : 3);
		uint64_t first = 0;
		uint64_t second = 0;

		if (!a || !b || !read_id(a, &first) || !read_id(b, &second))
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
