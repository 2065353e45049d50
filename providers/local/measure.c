/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper has the session's groups open, wherever they were moved to, and tells. Where it has none,
 * or none that counts, processes are summed: all that are below the jail's init, which is where the
 * kernel keeps them. Of those only numbers are read.
 */
#include "providers/local/measure.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/tree_size.h"

/* more processes than that are not looked at */
#define PROCESSES_MAX 65536U
/* of one thread: some ten thousand */
#define CHILDREN_MAX (128UL * 1024)
#define MAX_LIST (16UL * 1024 * 1024)
/* after the name: state is 3, as proc(5) counts */
#define FIRST_FIELD 3
#define FIELD_UTIME 14
#define FIELD_CSTIME 17
#define FIELD_RSS 24

/* Processes found and not looked at yet, and what those that were looked at use. */
struct sum {
	pid_t *pids;
	size_t n;
	size_t capacity;
	uint64_t n_seen;
	uint64_t ticks;
	uint64_t pages;
	/* CHILDREN_MAX bytes */
	char *text;
};

static void add_pid(struct sum *sum, pid_t pid)
{
	if (sum->n == sum->capacity) {
		size_t capacity = sum->capacity > 0 ? sum->capacity * 2 : 64;
		pid_t *pids = cm_realloc(sum->pids, capacity * sizeof(*pids));

		/* what is not seen is missing in a sum that is not exact anyway */
		if (!pids)
			return;
		sum->pids = pids;
		sum->capacity = capacity;
	}
	sum->pids[sum->n++] = pid;
}

static void add_children(struct sum *sum, int task_fd, const char *tid)
{
	char path[64];
	char *p = sum->text;

	if (snprintf(path, sizeof(path), "%.20s/children", tid) >= (int)sizeof(path) ||
	    cm_read_file_at(task_fd, path, sum->text, CHILDREN_MAX) < 0)
		return;
	for (;;) {
		char *end = NULL;
		long pid = strtol(p, &end, 10);

		if (end == p)
			return;
		if (pid > 0)
			add_pid(sum, (pid_t)pid);
		p = end;
	}
}

/* Each thread has the children that it started. */
static void find_children(struct sum *sum, pid_t pid)
{
	const struct dirent *e;
	char path[64];
	DIR *dir;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (!dir)
		return;
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is ours alone */
	while ((e = readdir(dir)) != NULL) {
		if (e->d_name[0] != '.')
			add_children(sum, dirfd(dir), e->d_name);
	}
	(void)closedir(dir);
}

/* Its own time, and that of children that it waited for: those are in no list any more. */
static bool count(struct sum *sum, pid_t pid)
{
	char path[64];
	char text[2048];
	char *p;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (cm_read_file_at(AT_FDCWD, path, text, sizeof(text)) < 0)
		return false;
	/* the name may have spaces and parentheses */
	p = strrchr(text, ')');
	if (!p)
		return false;
	p++;
	for (int field = FIRST_FIELD; field <= FIELD_RSS && *p != '\0'; field++) {
		p += strspn(p, " ");
		if (field >= FIELD_UTIME && field <= FIELD_CSTIME)
			sum->ticks += strtoull(p, NULL, 10);
		else if (field == FIELD_RSS)
			sum->pages += strtoull(p, NULL, 10);
		p += strcspn(p, " ");
	}
	sum->n_seen++;
	return true;
}

static void sum_processes(pid_t init, struct sum *sum)
{
	sum->text = cm_malloc(CHILDREN_MAX);
	if (sum->text)
		add_pid(sum, init);
	while (sum->n > 0 && sum->n_seen < PROCESSES_MAX) {
		pid_t pid = sum->pids[--sum->n];

		if (count(sum, pid))
			find_children(sum, pid);
	}
	free(sum->text);
	free(sum->pids);
}

/* What no group tells. */
static void complete(pid_t init, struct cm_local_measure *ret)
{
	struct sum sum = { NULL };
	long ticks = sysconf(_SC_CLK_TCK);
	long page = sysconf(_SC_PAGESIZE);

	if (init <= 0)
		return;
	sum_processes(init, &sum);
	if (sum.n_seen == 0)
		return;
	ret->n_processes = sum.n_seen;
	if (ret->memory_bytes == CM_USAGE_UNKNOWN && page > 0) {
		ret->memory_bytes = sum.pages * (uint64_t)page;
		ret->is_memory_approximate = true;
	}
	if (ret->cpu_us == CM_USAGE_UNKNOWN && ticks > 0) {
		ret->cpu_us = sum.ticks * 1000000U / (uint64_t)ticks;
		ret->is_cpu_approximate = true;
	}
}

static uint64_t count_commands(const struct cm_buf *list)
{
	const struct cm_rec_item *item;
	const char *text;
	uint64_t n = 0;
	size_t at = 0;

	while ((item = cm_jail_item(list, &at, &text)) != NULL)
		n += item->state != CM_ITEM_CHILDREN_LEFT;
	return n;
}

static int ask(struct cm_jail *jail, int64_t deadline_ms, struct cm_local_measure *ret,
	       struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf list = { 0 };
	struct cm_rec_usage usage;
	int r = cm_jail_usage(jail, &usage, deadline_ms, err);

	cm_buf_init(&list, MAX_LIST);
	if (r == CM_OK)
		r = cm_jail_list(jail, &list, deadline_ms, err);
	if (r < 0)
		return r;
	*ret = (struct cm_local_measure){
		.generation = jail->up.generation,
		.memory_bytes = usage.memory_bytes,
		.memory_peak_bytes = usage.memory_peak_bytes,
		.memory_max_bytes = usage.memory_max_bytes,
		.cpu_us = usage.cpu_us,
		.cpu_max_milli = usage.cpu_max_milli,
		.n_processes = CM_USAGE_UNKNOWN,
		.processes_max = usage.tasks_max,
		.n_commands = count_commands(&list),
		.at_us = cm_clock_mono_us(),
	};
	complete((pid_t)jail->up.init_pid, ret);
	return CM_OK;
}

int cm_local_measure(const struct cm_store_session *s, int64_t deadline_ms,
		     struct cm_local_measure *ret, struct cm_error *err)
{
	struct cm_jail jail;
	int r = CM_E_NOT_FOUND;

	cm_jail_init(&jail);
	if (!s->record.is_temporary && cm_store_keeper_alive(s))
		r = cm_jail_connect(&jail, s->socket_path, s->record.id, deadline_ms, err);
	if (r == CM_OK)
		r = ask(&jail, deadline_ms, ret, err);
	/* it ended while it was asked */
	if (r < 0 && jail.has_ended)
		r = CM_E_NOT_FOUND;
	(void)cm_jail_close(&jail);
	if (r == CM_E_NOT_FOUND)
		(void)cm_error_set(err, r, 0, "session '%s' does not run", s->record.id);
	return r;
}

double cm_local_measure_percent(const struct cm_local_measure *before,
				const struct cm_local_measure *after)
{
	int64_t wall_us = after->at_us - before->at_us;

	if (before->generation != after->generation || wall_us <= 0 ||
	    before->cpu_us == CM_USAGE_UNKNOWN || after->cpu_us == CM_USAGE_UNKNOWN)
		return -1;
	/* a process that nobody waited for took its time with it */
	if (after->cpu_us < before->cpu_us)
		return 0;
	return (double)(after->cpu_us - before->cpu_us) * 100 / (double)wall_us;
}

void cm_local_measure_disk(const struct cm_store_session *s, struct cm_local_disk *ret)
{
	CM_AUTO_FD int root_fd = open(s->record.root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct cm_tree_size size = { 0 };

	cm_tree_size_add(s->dir_fd, CM_STORE_HOME, &size);
	cm_tree_size_add(s->dir_fd, CM_STORE_HOME_TMP, &size);
	if (root_fd >= 0)
		cm_tree_size_add(root_fd, s->record.id, &size);
	ret->bytes = size.bytes;
	ret->is_partial = size.is_partial;
}
