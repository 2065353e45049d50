/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control files: write a limit and believe only what is read back. The kernel rounds (memory to
 * pages), narrows (cpuset) and, on old or odd configurations, accepts without effect.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "isolation/mech/cgroup_internal.h"
#include "runtime/base/fd.h"
#include "runtime/base/num.h"

struct cpus {
	uint64_t words[CM_CGROUP_CPUS_MAX / 64];
};

/* "max" and v1's "-1" stand for no limit. */
static int text_to_u64(const char *s, uint64_t *ret)
{
	if (strcmp(s, "max") == 0 || strcmp(s, "-1") == 0) {
		*ret = UINT64_MAX;
		return 0;
	}
	return cm_parse_u64(s, "", 0, UINT64_MAX, ret, NULL) == CM_OK ? 0 : -EBADMSG;
}

int cm_cgroup_read_u64(int dirfd, const char *file, uint64_t *ret)
{
	char text[64];
	ssize_t n = cm_read_file_at(dirfd, file, text, sizeof(text));

	if (n < 0)
		return (int)n;
	text[strcspn(text, "\n ")] = '\0';
	return text_to_u64(text, ret);
}

static int find_key(char *text, const char *key, uint64_t *ret)
{
	size_t key_len = strlen(key);
	char *save = NULL;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (strncmp(line, key, key_len) == 0 && line[key_len] == ' ')
			return text_to_u64(line + key_len + 1, ret);
	return -ENOENT;
}

int cm_cgroup_read_key(int dirfd, const char *file, const char *key, uint64_t *ret)
{
	char text[4096];
	ssize_t n = cm_read_file_at(dirfd, file, text, sizeof(text));

	return n < 0 ? (int)n : find_key(text, key, ret);
}

int cm_cgroup_read_key_again(int dirfd, const char *file, int *fd, const char *key, uint64_t *ret)
{
	char text[4096];
	ssize_t n;

	if (*fd < 0)
		*fd = openat(dirfd, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	n = *fd < 0 ? -1 : pread(*fd, text, sizeof(text) - 1, 0);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	return find_key(text, key, ret);
}

static int write_u64(int dirfd, const char *file, uint64_t value)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%" PRIu64, value);
	return cm_write_file_at(dirfd, file, text);
}

int cm_cgroup_set_u64(int dirfd, const char *file, uint64_t value, uint64_t unit)
{
	uint64_t got = 0;
	int r = write_u64(dirfd, file, value);

	if (r == 0)
		r = cm_cgroup_read_u64(dirfd, file, &got);
	if (r < 0)
		return r;
	return got == value - value % unit ? 0 : -ERANGE;
}

uint64_t cm_cgroup_page_size(void)
{
	long size = sysconf(_SC_PAGESIZE);

	return size > 0 ? (uint64_t)size : 4096;
}

static bool cpu_number(const char **s, unsigned int *ret)
{
	unsigned int v = 0;

	if (**s < '0' || **s > '9')
		return false;
	for (; **s >= '0' && **s <= '9'; (*s)++) {
		v = v * 10 + (unsigned int)(**s - '0');
		if (v >= CM_CGROUP_CPUS_MAX)
			return false;
	}
	*ret = v;
	return true;
}

/* "0-3,8\n"; an empty text is an empty set. */
static bool cpus_parse(const char *s, struct cpus *ret)
{
	unsigned int first;
	unsigned int last;

	memset(ret, 0, sizeof(*ret));
	while (*s != '\0' && *s != '\n') {
		if (!cpu_number(&s, &first))
			return false;
		last = first;
		if (*s == '-') {
			s++;
			if (!cpu_number(&s, &last) || last < first)
				return false;
		}
		for (unsigned int cpu = first; cpu <= last; cpu++)
			ret->words[cpu / 64] |= 1ULL << (cpu % 64);
		if (*s == ',')
			s++;
		else if (*s != '\0' && *s != '\n')
			return false;
	}
	return true;
}

static bool cpus_some_within(const struct cpus *some, const struct cpus *all)
{
	uint64_t any = 0;

	for (size_t i = 0; i < CM_ARRAY_SIZE(some->words); i++) {
		if ((some->words[i] & ~all->words[i]) != 0)
			return false;
		any |= some->words[i];
	}
	return any != 0;
}

int cm_cgroup_set_cpus(int dirfd, const char *file, const char *effective_file, const char *list)
{
	char text[4096];
	struct cpus wanted;
	struct cpus got;
	ssize_t n;
	int r;

	if (!cpus_parse(list, &wanted))
		return -EINVAL;
	r = cm_write_file_at(dirfd, file, list);
	if (r < 0)
		return r;
	n = cm_read_file_at(dirfd, effective_file, text, sizeof(text));
	if (n < 0)
		return (int)n;
	return cpus_parse(text, &got) && cpus_some_within(&got, &wanted) ? 0 : -ERANGE;
}
