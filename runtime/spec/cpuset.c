/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of processors as bits. */
#include "runtime/spec/cpuset.h"

#include <string.h>

static bool has_cpu(const struct cm_cpuset *set, unsigned int cpu)
{
	return (set->words[cpu / 64] >> (cpu % 64)) & 1U;
}

/* At least one digit, a value below CM_CPUSET_MAX; the rest of the text, or NULL. */
static const char *read_cpu(const char *s, unsigned int *ret)
{
	unsigned int value = 0;
	const char *p = s;

	while (*p >= '0' && *p <= '9') {
		value = value * 10 + (unsigned int)(*p - '0');
		if (value >= CM_CPUSET_MAX)
			return NULL;
		p++;
	}
	if (p == s)
		return NULL;
	*ret = value;
	return p;
}

/* "N" or "N-M"; the rest of the text, or NULL. */
static const char *read_range(const char *s, struct cm_cpuset *set)
{
	unsigned int first;
	unsigned int last;

	s = read_cpu(s, &first);
	if (!s)
		return NULL;
	last = first;
	if (*s == '-')
		s = read_cpu(s + 1, &last);
	if (!s || last < first)
		return NULL;
	for (unsigned int cpu = first; cpu <= last; cpu++)
		set->words[cpu / 64] |= UINT64_C(1) << (cpu % 64);
	return s;
}

int cm_cpuset_parse(const char *list, const char *what, struct cm_cpuset *ret, struct cm_error *err)
{
	struct cm_cpuset set = { { 0 } };
	const char *p = read_range(list, &set);

	while (p && *p == ',')
		p = read_range(p + 1, &set);
	if (!p || *p != '\0')
		return cm_error_set(err, CM_E_INVALID, 0,
				    "%s must be a list of processors (0 to %d), not '%.100s'", what,
				    CM_CPUSET_MAX - 1, list);
	*ret = set;
	return CM_OK;
}

void cm_cpuset_format(const struct cm_cpuset *set, struct cm_buf *out)
{
	const char *separator = "";
	unsigned int cpu = 0;

	while (cpu < CM_CPUSET_MAX) {
		unsigned int end = cpu;

		while (end < CM_CPUSET_MAX && has_cpu(set, end))
			end++;
		if (end == cpu) {
			cpu++;
			continue;
		}
		cm_buf_printf(out, "%s%u", separator, cpu);
		if (end - cpu > 1)
			cm_buf_printf(out, "-%u", end - 1);
		separator = ",";
		cpu = end;
	}
}

bool cm_cpuset_intersect(struct cm_cpuset *a, const struct cm_cpuset *b)
{
	uint64_t any = 0;

	for (size_t i = 0; i < sizeof(a->words) / sizeof(a->words[0]); i++) {
		a->words[i] &= b->words[i];
		any |= a->words[i];
	}
	return any != 0;
}
