/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything that one process can do to another: to pid 1 of the jail, or, as the control
 * ("victim"), to a child that allows it.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/escape/probe.h"

#define SCHED_IDLE_ 5
#define PTRACE_SEIZE_ 0x4206

static char path[64];

static const char *proc(pid_t pid, const char *name)
{
	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return path;
}

static long readable(pid_t pid, const char *name)
{
	int fd = open(proc(pid, name), O_RDONLY | O_CLOEXEC);
	char byte;
	long n = fd < 0 ? -1 : read(fd, &byte, 1);

	return n;
}

static void files(pid_t pid)
{
	char text[256];

	probe_result("mem", open(proc(pid, "mem"), O_RDWR | O_CLOEXEC));
	probe_result("environ", readable(pid, "environ"));
	probe_result("maps", readable(pid, "maps"));
	probe_result("auxv", readable(pid, "auxv"));
	probe_result("fd list", open(proc(pid, "fd"), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	probe_result("fd 0", readlink(proc(pid, "fd/0"), text, sizeof(text)));
	probe_result("namespace", open(proc(pid, "ns/mnt"), O_RDONLY | O_CLOEXEC));
	probe_result("clear_refs", open(proc(pid, "clear_refs"), O_WRONLY | O_CLOEXEC));
}

static void memory(pid_t pid)
{
	char buf[8];
	struct iovec local = { buf, sizeof(buf) };
	struct iovec remote = { (void *)(uintptr_t)files, sizeof(buf) };
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

	probe_result("pidfd_getfd", syscall(SYS_pidfd_getfd, pidfd, 0, 0));
	/* past the permission check an address may be one that the target does not have */
	probe_result_or("process_vm_readv", process_vm_readv(pid, &local, 1, &remote, 1, 0), EFAULT,
			EFAULT);
	probe_result("kcmp", syscall(SYS_kcmp, pid, getpid(), 0, 0, 0));
	probe_result("ptrace", ptrace(PTRACE_SEIZE_, pid, NULL, NULL));
}

static void scheduling(pid_t pid)
{
	struct sched_param param = { 0 };
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	probe_result("sched_setaffinity", sched_setaffinity(pid, sizeof(cpus), &cpus));
	probe_result("setpriority", setpriority(PRIO_PROCESS, (id_t)pid, 19));
	probe_result("ioprio_set", syscall(SYS_ioprio_set, 1, pid, 3 << 13));
	/* musl's wrapper is not implemented */
	probe_result("sched_setscheduler",
		     syscall(SYS_sched_setscheduler, pid, SCHED_IDLE_, &param));
}

static void limits(pid_t pid)
{
	struct rlimit few = { 20, 20 };
	struct rlimit none = { 0, 0 };

	probe_result("prlimit files", prlimit(pid, RLIMIT_NOFILE, &few, NULL));
	/* this one kills */
	probe_result("prlimit cpu", prlimit(pid, RLIMIT_CPU, &none, NULL));
}

/* The state in /proc/PID/stat: '\0' when it is gone. */
static char state_of(pid_t pid)
{
	char text[512] = "";
	int fd = open(proc(pid, "stat"), O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	char *end = n > 0 ? strrchr(text, ')') : NULL;

	(void)close(fd);
	if (!end || end[1] != ' ')
		return '\0';
	return end[2];
}

/* Is it in one of the states, or gone, within half a second? */
static bool becomes(pid_t pid, const char *states)
{
	for (int i = 0; i < 25; i++) {
		char state = state_of(pid);

		if (state == '\0' || strchr(states, state))
			return true;
		(void)usleep(20000);
	}
	return false;
}

static void signals(pid_t pid)
{
	/* what a handler would have to be there for, and what cannot be handled */
	for (int sig = 1; sig <= 64; sig++) {
		if (sig != SIGSTOP && sig != SIGCHLD)
			(void)kill(pid, sig);
	}
	probe_bool("dies", becomes(pid, "Z"));
}

int main(int argc, char **argv)
{
	pid_t pid = 1;

	if (argc == 2 && strcmp(argv[1], "victim") == 0) {
		pid = fork();
		if (pid == 0) {
			for (;;)
				(void)pause();
		}
	}
	files(pid);
	memory(pid);
	scheduling(pid);
	(void)kill(pid, SIGSTOP);
	probe_bool("stops", becomes(pid, "Tt"));
	limits(pid);
	signals(pid);
	return 0;
}
