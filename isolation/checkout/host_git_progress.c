/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tells that git gets on. Its connections are its own, so that the guard does not see them: its
 * words and its processor time stand for them.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "isolation/checkout/guard.h"
#include "isolation/checkout/host_git.h"
#include "runtime/base/fd.h"
#include "runtime/base/text.h"

static const struct {
	const char *title;
	enum cm_guard_phase phase;
	/* of the progress that is told; NULL: none is */
	const char *stage;
} titles[] = {
	{ "remote: ", CM_GUARD_PREPARING, NULL },
	{ "Receiving objects:", CM_GUARD_OBJECTS, "fetch" },
	{ "Unpacking objects:", CM_GUARD_INDEXING, "fetch" },
	{ "Indexing objects:", CM_GUARD_INDEXING, NULL },
	{ "Resolving deltas:", CM_GUARD_INDEXING, NULL },
	{ "Checking connectivity:", CM_GUARD_INDEXING, NULL },
	{ "Checking objects:", CM_GUARD_INDEXING, NULL },
	{ "Checking out files:", CM_GUARD_LOCAL, "files" },
	{ "Updating files:", CM_GUARD_LOCAL, "files" },
	{ "Filtering content:", CM_GUARD_LOCAL, "files" },
	{ "Downloading LFS objects:", CM_GUARD_OBJECTS, "lfs" },
};

/* A number at *text, and what it ends at. */
static bool read_number(const char **text, uint64_t *ret)
{
	char *end = NULL;

	if (**text < '0' || **text > '9')
		return false;
	*ret = strtoull(*text, &end, 10);
	*text = end;
	return true;
}

/* ", 1.50 MiB": the fraction is of no interest */
static uint64_t read_size(const char *text)
{
	static const char units[] = "KMGT";
	const char *unit;
	uint64_t size = 0;

	text += strspn(text, "), ");
	if (!read_number(&text, &size) || size > UINT32_MAX)
		return 0;
	text += strspn(text, ".0123456789 ");
	unit = *text ? strchr(units, *text) : NULL;
	return unit ? size << (10 * (unit - units + 1)) : size;
}

/* "12% (120/1000), 1.50 MiB | ..." */
static bool read_numbers(const char *text, uint64_t *done, uint64_t *total, uint64_t *bytes)
{
	text = strchr(text, '(');
	if (!text)
		return false;
	text++;
	if (!read_number(&text, done) || *text++ != '/' || !read_number(&text, total) ||
	    *done > *total)
		return false;
	*bytes = read_size(text);
	return true;
}

bool cm_host_git_progress(struct cm_report *rep, const char *line)
{
	uint64_t done;
	uint64_t total;
	uint64_t bytes;
	size_t i = 0;

	while (i < CM_ARRAY_SIZE(titles) && !cm_text_has_prefix(line, titles[i].title))
		i++;
	if (i == CM_ARRAY_SIZE(titles))
		return false;
	cm_guard_phase(titles[i].phase);
	/* a server's own words are bounded, and go nowhere */
	if (i == 0)
		(void)cm_guard_talk(strlen(line));
	if (titles[i].stage &&
	    read_numbers(line + strlen(titles[i].title), &done, &total, &bytes)) {
		if (strcmp(titles[i].stage, "fetch") == 0)
			cm_report_transfer(rep, done, total, bytes);
		else
			cm_report_progress(rep, titles[i].stage, done, total);
	} else {
		cm_report_alive(rep);
	}
	return true;
}

/* So many fields on. */
static const char *skip_fields(const char *text, unsigned int n)
{
	while (n-- > 0) {
		text += strspn(text, " ");
		text += strcspn(text, " ");
	}
	return text + strspn(text, " ");
}

/* The name of a program is in brackets, and may have any byte: the last one counts. */
static uint64_t ticks_of(const char *stat, pid_t group)
{
	const char *text = strrchr(stat, ')');
	uint64_t pgrp = 0;
	uint64_t user = 0;
	uint64_t system = 0;

	if (!text)
		return 0;
	/* state and parent; then session, terminal, its group, flags and four counts of faults */
	text = skip_fields(text + 1, 2);
	if (!read_number(&text, &pgrp) || pgrp != (uint64_t)group)
		return 0;
	text = skip_fields(text, 8);
	if (!read_number(&text, &user))
		return 0;
	text += strspn(text, " ");
	return read_number(&text, &system) ? user + system : 0;
}

uint64_t cm_host_git_cpu_ms(pid_t group)
{
	DIR *proc = opendir("/proc");
	long hz = sysconf(_SC_CLK_TCK);
	const struct dirent *entry;
	uint64_t ticks = 0;

	if (!proc)
		return 0;
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): a directory of this function's own */
	while ((entry = readdir(proc)) != NULL) {
		char name[64];
		char text[1024];

		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		(void)snprintf(name, sizeof(name), "%.20s/stat", entry->d_name);
		if (cm_read_file_at(dirfd(proc), name, text, sizeof(text)) > 0)
			ticks += ticks_of(text, group);
	}
	(void)closedir(proc);
	return hz > 0 ? ticks * 1000 / (uint64_t)hz : 0;
}
