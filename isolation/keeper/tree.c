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
#include <unistd.h>

#include "runtime/base/fd.h"
#include "runtime/base/kernel.h"

/* scan-and-kill passes before the whole jail is stopped for an instant */
#define PLAIN_PASSES 2
#define MAX_FROZEN_ROUNDS 200
#define MAX_STOPPED 4096

enum bearing {
	BEARS_NO = 0,
	BEARS_YES,
	/* gone, a zombie, or not readable: not ours to touch in this pass */
	BEARS_UNKNOWN,
};

uint64_t cm_tree_uts_of(pid_t pid)
{
	char path[48];
	struct stat st;

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/uts", (int)pid);
	return stat(path, &st) < 0 ? 0 : st.st_ino;
}

/* The word after "Groups:" list in /proc/PID/status that equals gid. */
static enum bearing bears_gid(pid_t pid, gid_t gid)
{
	char path[48];
	char text[4096];
	const char *p;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	n = cm_read_file_at(AT_FDCWD, path, text, sizeof(text));
	if (n < 0)
		return BEARS_UNKNOWN;
	if (strstr(text, "\nState:\tZ") || strstr(text, "\nState:\tX"))
		return BEARS_UNKNOWN;
	/* the process's name comes first and may hold anything but a newline, escaped */
	p = strstr(text, "\nGroups:\t");
	if (!p)
		return BEARS_UNKNOWN;
	p += strlen("\nGroups:\t");
	while (*p >= '0' && *p <= '9') {
		char *end = NULL;

		if (strtoul(p, &end, 10) == gid)
			return BEARS_YES;
		p = *end == ' ' ? end + 1 : end;
	}
	return BEARS_NO;
}

static char state_of(pid_t pid)
{
	char path[48];
	char text[1024];
	const char *p;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (cm_read_file_at(AT_FDCWD, path, text, sizeof(text)) < 0)
		return '\0';
	/* the name is in parentheses and may hold some itself: the last one counts */
	p = strrchr(text, ')');
	return p && p[1] == ' ' ? p[2] : '\0';
}

static enum bearing bears(const struct cm_mark *mark, pid_t pid)
{
	uint64_t ino;
	char state;

	if (mark->gid != 0)
		return bears_gid(pid, mark->gid);
	ino = cm_tree_uts_of(pid);
	if (ino == 0)
		return BEARS_UNKNOWN;
	if (ino != mark->uts_ino)
		return BEARS_NO;
	state = state_of(pid);
	return state == 'Z' || state == 'X' || state == '\0' ? BEARS_UNKNOWN : BEARS_YES;
}

static bool signal_bearer(const struct cm_mark *mark, pid_t pid, int sig)
{
	CM_AUTO_FD int pidfd = cm_sys_pidfd_open(pid, 0);

	/* the number may be another process's by now: look again with the pidfd held */
	if (pidfd < 0 || bears(mark, pid) != BEARS_YES)
		return false;
	return sig == 0 || cm_sys_pidfd_send_signal(pidfd, sig) == 0;
}

static void for_each_pid(void (*fn)(pid_t pid, void *data), void *data)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;

	if (!dir)
		return;
	while ((entry = readdir(dir)) != NULL) {
		pid_t pid;

		if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
			continue;
		pid = (pid_t)strtol(entry->d_name, NULL, 10);
		if (pid > 1)
			fn(pid, data);
	}
	(void)closedir(dir);
}

struct signal_pass {
	const struct cm_mark *mark;
	int sig;
	unsigned int seen;
};

static void signal_one(pid_t pid, void *data)
{
	struct signal_pass *pass = data;

	if (bears(pass->mark, pid) != BEARS_YES)
		return;
	pass->seen++;
	(void)signal_bearer(pass->mark, pid, pass->sig);
}

unsigned int cm_tree_signal(const struct cm_mark *mark, int sig)
{
	struct signal_pass pass = { mark, sig, 0 };

	for_each_pid(signal_one, &pass);
	return pass.seen;
}

struct stopped_list {
	pid_t pid[MAX_STOPPED];
	size_t n;
};

static void note_stopped(pid_t pid, void *data)
{
	struct stopped_list *list = data;
	char state = state_of(pid);

	if ((state == 'T' || state == 't') && list->n < MAX_STOPPED)
		list->pid[list->n++] = pid;
}

struct continue_pass {
	const struct stopped_list *stopped;
};

static void continue_one(pid_t pid, void *data)
{
	const struct continue_pass *pass = data;

	for (size_t i = 0; i < pass->stopped->n; i++) {
		if (pass->stopped->pid[i] == pid)
			return;
	}
	(void)kill(pid, SIGCONT);
}

/*
 * Stop everything, kill the bearers, let the others go on. kill(-1) holds the kernel's task list
 * while it signals, so no fork gets past it; it spares pid 1, and pid 1 waits for nobody here.
 * Processes that were stopped before stay stopped.
 */
static bool kill_frozen(const struct cm_mark *mark)
{
	static struct stopped_list stopped;
	struct continue_pass pass = { &stopped };
	unsigned int left = 1;

	stopped.n = 0;
	for_each_pid(note_stopped, &stopped);
	for (int i = 0; i < MAX_FROZEN_ROUNDS && left > 0; i++) {
		(void)kill(-1, SIGSTOP);
		left = cm_tree_signal(mark, SIGKILL);
	}
	for_each_pid(continue_one, &pass);
	return left == 0;
}

static bool kill_v1(const struct cm_mark *mark, int freezer_fd)
{
	unsigned int left = 1;

	(void)pwrite(freezer_fd, "FROZEN", 6, 0);
	for (int i = 0; i < PLAIN_PASSES && left > 0; i++)
		left = cm_tree_signal(mark, SIGKILL);
	/* a frozen process dies when it thaws */
	(void)pwrite(freezer_fd, "THAWED", 6, 0);
	return cm_tree_signal(mark, SIGKILL) == 0;
}

bool cm_tree_kill(const struct cm_mark *mark, int v2_kill_fd, int v1_freezer_fd, bool *ret_froze)
{
	*ret_froze = false;
	if (v2_kill_fd >= 0)
		(void)pwrite(v2_kill_fd, "1", 1, 0);
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
	return kill(-1, 0) == 0 || errno != ESRCH;
}

void cm_tree_kill_all(void)
{
	/* the kernel holds its task list meanwhile, and a fork with a signal pending fails: one
	 * call takes everything. The caller's loop reaps. */
	(void)kill(-1, SIGKILL);
}
