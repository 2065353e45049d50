/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's ranges of /etc/subuid and /etc/subgid. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "isolation/host/host.h"

struct range {
	uint32_t first;
	uint32_t count;
};

static bool read_u32(const char **at, char end, uint32_t *ret)
{
	uint64_t v = 0;
	const char *p = *at;

	if (*p < '0' || *p > '9')
		return false;
	for (; *p >= '0' && *p <= '9'; p++) {
		v = v * 10 + (uint64_t)(*p - '0');
		if (v > UINT32_MAX)
			return false;
	}
	if (*p != end && !(end == '\n' && *p == '\0'))
		return false;
	*at = p;
	*ret = (uint32_t)v;
	return true;
}

/* One line "OWNER:FIRST:COUNT"; false when it is not one of this owner's. */
static bool read_line(const char *line, const char *owner, struct range *ret)
{
	size_t n = strlen(owner);
	struct range range;

	if (n == 0 || strncmp(line, owner, n) != 0 || line[n] != ':')
		return false;
	line += n + 1;
	if (!read_u32(&line, ':', &range.first))
		return false;
	line++;
	if (!read_u32(&line, '\n', &range.count))
		return false;
	/* host id 0 in a range would be host root inside */
	if (range.first == 0 || range.count == 0 || range.count > UINT32_MAX - range.first)
		return false;
	*ret = range;
	return true;
}

/* The largest of the owner's ranges: one range makes one contiguous map. */
static bool find(const char *text, const char *owner, struct range *ret)
{
	struct range best = { 0, 0 };

	while (*text) {
		struct range range;
		const char *end = strchr(text, '\n');

		if (read_line(text, owner, &range) && range.count > best.count)
			best = range;
		if (!end)
			break;
		text = end + 1;
	}
	if (best.count == 0)
		return false;
	*ret = best;
	return true;
}

bool cm_host_subid_parse(const char *text, const char *user_name, uint32_t id, uint32_t *ret_first,
			 uint32_t *ret_count)
{
	char number[16];
	char *p = number + sizeof(number) - 1;
	struct range range;

	*p = '\0';
	do {
		*--p = (char)('0' + id % 10);
		id /= 10;
	} while (id > 0);
	if (!(user_name && find(text, user_name, &range)) && !find(text, p, &range))
		return false;
	*ret_first = range.first;
	*ret_count = range.count;
	return true;
}
