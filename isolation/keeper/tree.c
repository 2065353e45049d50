/* SPDX-License-Identifier: Apache-2.0 */
/* An exec's tree, found by its mark and ended as a whole. Runs in pid 1 of the jail. */
#include "isolation/keeper/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/fd.h"
#include "runtime/base/kernel.h"

/* scan-and-kill passes before the whole jail is stopped for an instant */
#define PLAIN_PASSES 2
#define MAX_FROZEN_ROUNDS 200
#define MAX_STOPPED 4096
/* how often to look again before those that come and go count as a bearer */
#define MAX_LOOKS 4

/* as "/proc/PID/task/TID" */
#define TASK_PATH_SIZE 64

/* By weight: of a process's threads, the heaviest counts. */
enum bearing {
	BEARS_NO = 0,
	/* not readable: it has not executed yet, or what nobody may read. Not ours to touch. */
	BEARS_HIDDEN,
	/* it bore the mark, or may have; it runs and forks no more: killed, on its way out, a zombie */
	BEARS_DEAD,
	/* gone since it was listed: it may have left a child that was not listed */
	BEARS_GONE,
	BEARS_YES,
};

/* Calls fn for each numbered entry of a directory of procfs, until it returns false. */
static void for_each_number(const char *path, bool (*fn)(pid_t number, void *data), void *data)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	bool goes_on = true;

	if (!dir)
		return;
	while (goes_on && (entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9')
			goes_on = fn((pid_t)strtol(entry->d_name, NULL, 10), data);
	}
	(void)closedir(dir);
}

/*
 * The start of a file of `task`, "/proc/PID" or "/proc/PID/task/TID"; false when it is gone. What
 * does not fit is cut: state and groups come early, and lists behind them are as long as the agent
 * likes (allowed processors).
 */
static bool read_start(const char *task, const char *file, char *text, size_t size)
{
	CM_AUTO_FD int fd = -1;
	char path[TASK_PATH_SIZE + 16];
	ssize_t n;

	(void)snprintf(path, sizeof(path), "%s/%s", task, file);
	fd = cm_open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = cm_read_all(fd, text, size - 1);
	if (n == -E2BIG)
		n = (ssize_t)size - 1;
	if (n < 0)
		return false;
	text[n] = '\0';
	return true;
}

/* 0: gone, dead, or not readable; errno says which */
static uint64_t uts_of(const char *task)
{
	char path[TASK_PATH_SIZE + 16];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/ns/uts", task);
	return stat(path, &st) < 0 ? 0 : st.st_ino;
}

uint64_t cm_tree_uts_of(pid_t pid)
{
	char task[TASK_PATH_SIZE];

	(void)snprintf(task, sizeof(task), "/proc/%d", (int)pid);
	return uts_of(task);
}

/* PF_EXITING of the kernel's struct task_struct, in the flags that stat shows */
#define FLAG_EXITING 0x4UL

/* p is at the state: parent, group, session, terminal and its foreground group follow. */
static unsigned long flags_in(const char *p)
{
	for (int i = 0; i < 6; i++) {
		p = strchr(p, ' ');
		if (!p)
			return 0;
		p++;
	}
	return strtoul(p, NULL, 10);
}

/* One letter as ps(1) shows it, 'X' also for one that is on its way out; '\0' when it is gone. */
static char state_of(const char *task)
{
	char text[1024];
	const char *p;

	if (!read_start(task, "stat", text, sizeof(text)))
		return '\0';
	/* the name is in parentheses and may hold some itself: the last one counts */
	p = strrchr(text, ')');
	if (!p || p[1] != ' ')
		return '\0';
	p += 2;
	if (*p != 'Z' && (flags_in(p) & FLAG_EXITING) != 0)
		return 'X';
	return *p;
}

static bool is_dead(char state)
{
	return state == 'Z' || state == 'X' || state == '\0';
}

static bool has_group(const char *status, gid_t gid)
{
	/* the process's name comes first and may hold anything but a newline, escaped */
	const char *p = strstr(status, "\nGroups:\t");

	if (!p)
		return false;
	p += strlen("\nGroups:\t");
	while (*p >= '0' && *p <= '9') {
		char *end = NULL;

		if (strtoul(p, &end, 10) == gid)
			return true;
		p = *end == ' ' ? end + 1 : end;
	}
	return false;
}

/* Is there a SIGKILL that has not been acted on? A fork fails from then on. */
static bool has_been_killed(const char *status)
{
	static const char *const names[] = { "\nSigPnd:\t", "\nShdPnd:\t" };

	for (size_t i = 0; i < CM_ARRAY_SIZE(names); i++) {
		const char *p = strstr(status, names[i]);

		if (p && (strtoull(p + strlen(names[i]), NULL, 16) & (1ULL << (SIGKILL - 1))) != 0)
			return true;
	}
	return false;
}

/* A bearer by its mark; does it live? */
static enum bearing judge(const char *task, const char *status)
{
	char state;

	if (has_been_killed(status))
		return BEARS_DEAD;
	state = state_of(task);
	if (state == '\0')
		return BEARS_GONE;
	return is_dead(state) ? BEARS_DEAD : BEARS_YES;
}

static enum bearing task_bears_gid(const char *task, gid_t gid)
{
	char status[4096];

	if (!read_start(task, "status", status, sizeof(status)))
		return BEARS_GONE;
	/* the dead have their groups still */
	return has_group(status, gid) ? judge(task, status) : BEARS_NO;
}

static enum bearing task_bears_uts(const char *task, uint64_t uts_ino)
{
	uint64_t ino = uts_of(task);
	bool is_hidden = ino == 0 && errno == EACCES;
	char status[4096];
	enum bearing found;

	if (ino != 0 && ino != uts_ino)
		return BEARS_NO;
	if (!read_start(task, "status", status, sizeof(status)))
		return BEARS_GONE;
	found = judge(task, status);
	if (ino != 0 || found != BEARS_YES)
		return found;
	/*
	 * The dying have no namespaces any more, and some kernels say EACCES for them; this one
	 * lives.  Where it was not refused, it was on its way out, and is not what it was.
	 */
	return is_hidden ? BEARS_HIDDEN : BEARS_GONE;
}

static enum bearing task_bears(const struct cm_mark *mark, const char *task)
{
	return mark->gid != 0 ? task_bears_gid(task, mark->gid)
			      : task_bears_uts(task, mark->uts_ino);
}

struct thread_search {
	const struct cm_mark *mark;
	pid_t pid;
	enum bearing found;
};

static bool look_at_thread(pid_t tid, void *data)
{
	struct thread_search *search = data;
	char task[TASK_PATH_SIZE];
	enum bearing found;

	if (tid == search->pid)
		return true;
	(void)snprintf(task, sizeof(task), "/proc/%d/task/%d", (int)search->pid, (int)tid);
	found = task_bears(search->mark, task);
	if (found > search->found)
		search->found = found;
	return found != BEARS_YES;
}

/*
 * A process whose first thread has ended looks like a zombie, but its other threads go on: they
 * are looked at then.
 */
static enum bearing bears(const struct cm_mark *mark, pid_t pid)
{
	struct thread_search search = { mark, pid, BEARS_NO };
	char path[TASK_PATH_SIZE];

	(void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	search.found = task_bears(mark, path);
	if (search.found != BEARS_DEAD)
		return search.found;
	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	for_each_number(path, look_at_thread, &search);
	return search.found;
}

struct state_search {
	pid_t pid;
	char state;
};

static bool look_at_state(pid_t tid, void *data)
{
	struct state_search *search = data;
	char task[TASK_PATH_SIZE];

	(void)snprintf(task, sizeof(task), "/proc/%d/task/%d", (int)search->pid, (int)tid);
	search->state = state_of(task);
	return is_dead(search->state);
}

/* Of the first thread that lives. */
static char live_state_of(pid_t pid)
{
	struct state_search search = { pid, '\0' };
	char path[TASK_PATH_SIZE];

	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	for_each_number(path, look_at_state, &search);
	return search.state;
}

static bool signal_bearer(const struct cm_mark *mark, pid_t pid, int sig)
{
	CM_AUTO_FD int pidfd = cm_sys_pidfd_open(pid, 0);

	/* the number may be another process's by now: look again with the pidfd held */
	if (pidfd < 0 || bears(mark, pid) != BEARS_YES)
		return false;
	return sig == 0 || cm_sys_pidfd_send_signal(pidfd, sig) == 0;
}

struct pass {
	const struct cm_mark *mark;
	int sig;
	unsigned int seen;
	/* somebody has gone since the listing, and may have had a child before */
	bool has_gone;
	/* of the pids of the dead: the same twice means that nobody died meanwhile */
	uint64_t dead_sum;
};

static bool signal_one(pid_t pid, void *data)
{
	struct pass *pass = data;

	if (pid <= 1)
		return true;
	switch (bears(pass->mark, pid)) {
	case BEARS_YES:
		pass->seen++;
		(void)signal_bearer(pass->mark, pid, pass->sig);
		break;
	case BEARS_DEAD:
		pass->dead_sum += (uint64_t)pid * UINT64_C(0x9e3779b97f4a7c15);
		break;
	case BEARS_GONE:
		pass->has_gone = true;
		break;
	case BEARS_NO:
	case BEARS_HIDDEN:
		break;
	}
	return true;
}

/*
 * The kernel lists all processes first, and each is looked at later: one that replaces itself by
 * a child all the time is gone then, and its child not in the list.  That nobody was seen proves
 * something only when nobody had gone or died meanwhile, so it is looked again, some times.
 */
unsigned int cm_tree_signal(const struct cm_mark *mark, int sig)
{
	uint64_t dead_before = 0;

	for (int i = 0; i < MAX_LOOKS; i++) {
		struct pass pass = { .mark = mark, .sig = sig };

		for_each_number("/proc", signal_one, &pass);
		if (pass.seen > 0)
			return pass.seen;
		if (!pass.has_gone && pass.dead_sum == dead_before)
			return 0;
		dead_before = pass.dead_sum;
	}
	return 1;
}

struct pid_list {
	pid_t pid[MAX_STOPPED];
	size_t n;
};

static bool list_has(const struct pid_list *list, pid_t pid)
{
	for (size_t i = 0; i < list->n; i++) {
		if (list->pid[i] == pid)
			return true;
	}
	return false;
}

static bool note_stopped(pid_t pid, void *data)
{
	struct pid_list *list = data;
	char state = live_state_of(pid);

	if ((state == 'T' || state == 't') && list->n < MAX_STOPPED)
		list->pid[list->n++] = pid;
	return true;
}

static bool continue_one(pid_t pid, void *data)
{
	if (pid > 1 && !list_has(data, pid))
		(void)kill(pid, SIGCONT);
	return true;
}

/*
 * Stop everything, kill the bearers, let the others go on. kill(-1) holds the kernel's task list
 * while it signals, so no fork gets past it; it spares pid 1, and pid 1 waits for nobody here.
 * Processes that were stopped before stay stopped.
 */
static bool kill_frozen(const struct cm_mark *mark)
{
	static struct pid_list stopped;
	unsigned int left = 1;

	stopped.n = 0;
	for_each_number("/proc", note_stopped, &stopped);
	for (int i = 0; i < MAX_FROZEN_ROUNDS && left > 0; i++) {
		(void)kill(-1, SIGSTOP);
		left = cm_tree_signal(mark, SIGKILL);
	}
	for_each_number("/proc", continue_one, &stopped);
	return left == 0;
}

/* A failure shows in the scans that follow, which end what is left by its mark. */
static void tell_group(int fd, const char *value)
{
	if (pwrite(fd, value, strlen(value), 0) < 0)
		return;
}

static bool kill_v1(const struct cm_mark *mark, int freezer_fd)
{
	unsigned int left = 1;

	tell_group(freezer_fd, "FROZEN");
	for (int i = 0; i < PLAIN_PASSES && left > 0; i++)
		left = cm_tree_signal(mark, SIGKILL);
	/* a frozen process dies when it thaws */
	tell_group(freezer_fd, "THAWED");
	return cm_tree_signal(mark, SIGKILL) == 0;
}

bool cm_tree_kill(const struct cm_mark *mark, int v2_kill_fd, int v1_freezer_fd, bool *ret_froze)
{
	*ret_froze = false;
	if (v2_kill_fd >= 0)
		tell_group(v2_kill_fd, "1");
	else if (v1_freezer_fd >= 0 && kill_v1(mark, v1_freezer_fd))
		return true;
	/* with a group this is the cross-check */
	for (int i = 0; i < PLAIN_PASSES; i++) {
		if (cm_tree_signal(mark, SIGKILL) == 0)
			return true;
	}
	*ret_froze = true;
	return kill_frozen(mark);
}

bool cm_tree_any(void)
{
	siginfo_t info;

	/*
	 * Whatever runs in the jail is a child of its first process, or below one: what loses its parent
	 * becomes one. kill(-1, 0) would ask for the same of each process of the host.
	 */
	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 ||
	       errno != ECHILD;
}

void cm_tree_signal_all(int sig)
{
	/* the kernel holds its task list meanwhile, and a fork with a signal pending fails: one
	 * call takes everything. The caller's loop reaps. */
	(void)kill(-1, sig);
}
