/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What /proc/self/mountinfo must not hold: set-id and device mounts, mounts that events cross,
 * tmpfs without bounds, a root or control group that can be written.
 */
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "tests/escape/probe.h"

struct line {
	char target[1024];
	char options[512];
	char tags[512];
	char type[64];
};

static bool has(const char *list, const char *option)
{
	size_t n = strlen(option);

	for (const char *p = strstr(list, option); p; p = strstr(p + 1, option)) {
		if ((p == list || p[-1] == ',') && (p[n] == ',' || p[n] == '\0' || p[n] == '='))
			return true;
	}
	return false;
}

/* A size that is the kernel's own default is not among the options. */
static bool is_bounded(const char *target)
{
	struct statvfs fs;

	return statvfs(target, &fs) != 0 || (fs.f_blocks != 0 && fs.f_files != 0);
}

/* "ID PARENT DEV ROOT TARGET OPTIONS TAGS... - TYPE SOURCE SUPER" */
static bool parse(char *text, struct line *ret)
{
	char *rest = strstr(text, " - ");
	char *save = NULL;
	char *word;

	memset(ret, 0, sizeof(*ret));
	if (!rest)
		return false;
	*rest = '\0';
	rest += 3;
	rest[strcspn(rest, "\n")] = '\0';
	word = strtok_r(text, " ", &save);
	for (int i = 0; word; i++, word = strtok_r(NULL, " ", &save)) {
		if (i == 4)
			(void)snprintf(ret->target, sizeof(ret->target), "%s", word);
		else if (i == 5)
			(void)snprintf(ret->options, sizeof(ret->options), "%s", word);
		else if (i > 5)
			(void)snprintf(ret->tags + strlen(ret->tags),
				       sizeof(ret->tags) - strlen(ret->tags), "%s ", word);
	}
	word = strtok_r(rest, " ", &save);
	(void)snprintf(ret->type, sizeof(ret->type), "%s", word ? word : "");
	return true;
}

int main(void)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	bool suid = false;
	bool devices = false;
	bool shared = false;
	bool unbounded = false;
	bool writable = false;
	bool group = false;
	char text[8192];
	struct line line;

	while (file && fgets(text, sizeof(text), file)) {
		if (!parse(text, &line))
			continue;
		suid = suid || !has(line.options, "nosuid");
		/* the nodes of /dev are bound one by one, and a pty is a device */
		devices = devices ||
			  (!has(line.options, "nodev") && strcmp(line.type, "devpts") != 0 &&
			   strncmp(line.target, "/dev/", 5) != 0);
		shared = shared || line.tags[0] != '\0';
		unbounded =
			unbounded || (strcmp(line.type, "tmpfs") == 0 && !is_bounded(line.target));
		writable = writable || (strcmp(line.target, "/") == 0 && !has(line.options, "ro"));
		group = group || (strncmp(line.type, "cgroup", 6) == 0 && !has(line.options, "ro"));
	}
	if (file)
		(void)fclose(file);
	probe_bool("set-id mount", suid);
	probe_bool("device mount", devices);
	probe_bool("shared mount", shared);
	probe_bool("unbounded tmpfs", unbounded);
	probe_bool("writable root", writable);
	probe_bool("writable control group", group);
	return 0;
}
