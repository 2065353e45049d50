/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's ranges of /etc/subuid and /etc/subgid. */
#include <string.h>

#include "isolation/host/host.h"
#include "runtime/base/fd.h"
#include "runtime/base/fields.h"

struct range {
	uint32_t first;
	uint32_t count;
};

/* One line "OWNER:FIRST:COUNT"; false when it is not one of this owner's. */
static bool read_line(const char *line, const char *owner, struct range *ret)
{
	struct cm_field f[4];
	uint64_t first;
	uint64_t count;
	size_t n = strlen(owner);

	if (n == 0 || cm_fields_split(line, ':', f, CM_ARRAY_SIZE(f)) != 3 ||
	    !cm_field_is(&f[0], owner, n) || !cm_field_number(&f[1], &first) ||
	    !cm_field_number(&f[2], &count))
		return false;
	/* host id 0 in a range would be host root inside */
	if (first == 0 || count == 0 || first + count > UINT32_MAX)
		return false;
	*ret = (struct range){ (uint32_t)first, (uint32_t)count };
	return true;
}

/* The largest of the owner's ranges: one range makes one contiguous map. */
static bool find(const char *text, const char *owner, struct range *ret)
{
	struct range best = { 0, 0 };

	for (; *text; text = cm_next_line(text)) {
		struct range range;

		if (read_line(text, owner, &range) && range.count > best.count)
			best = range;
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
