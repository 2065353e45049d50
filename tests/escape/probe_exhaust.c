/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes of one kind what there is, up to a bound (KIND BOUND), and says what stopped it: "reached"
 * when nothing did. With a third argument it holds that until it is ended.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/escape/probe.h"

#define MIB (1024UL * 1024)

static char block[MIB];
static int file = -1;

static long take_process(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		(void)pause();
		_exit(0);
	}
	return pid;
}

static long take_descriptor(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static long take_pty(void)
{
	return open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
}

static long take_inotify(void)
{
	return inotify_init1(IN_CLOEXEC);
}

/* A MiB of its own memory, of a memfd, or of a tmpfs. */
static long take_memory(void)
{
	char *memory = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return -1;
	memset(memory, 1, MIB);
	return 0;
}

static long take_file(void)
{
	return write(file, block, sizeof(block));
}

static long take_memfd(void)
{
	if (file < 0)
		file = memfd_create("exhaust", MFD_CLOEXEC);
	return take_file();
}

static long take_tmpfs(void)
{
	if (file < 0)
		file = open("/dev/shm/exhaust", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	/* outside nothing else takes it away from one that was killed */
	(void)unlink("/dev/shm/exhaust");
	return take_file();
}

static long take_name(void)
{
	static unsigned int n;
	char name[64];
	int fd;

	(void)snprintf(name, sizeof(name), "/run/lock/exhaust%u", n++);
	fd = open(name, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0)
		(void)close(fd);
	return fd;
}

static const struct {
	const char *kind;
	long (*take)(void);
} kinds[] = {
	{ "processes", take_process }, { "descriptors", take_descriptor },
	{ "ptys", take_pty },	       { "inotify", take_inotify },
	{ "memory", take_memory },     { "memfd", take_memfd },
	{ "tmpfs", take_tmpfs },       { "names", take_name },
};

int main(int argc, char **argv)
{
	long bound = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
	long taken = 0;
	long r = 0;

	/* a group of its own: it is ended as one */
	(void)setpgid(0, 0);
	memset(block, 1, sizeof(block));
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (argc < 3 || strcmp(kinds[i].kind, argv[1]) != 0)
			continue;
		for (; taken < bound && r >= 0; taken += r >= 0) {
			errno = 0;
			r = kinds[i].take();
		}
		(void)fprintf(stderr, "%ld taken\n", taken);
		probe_result(argv[1], r);
	}
	if (argc > 3)
		(void)pause();
	(void)signal(SIGTERM, SIG_IGN);
	if (strcmp(argv[1], "processes") == 0)
		(void)kill(0, SIGTERM);
	return 0;
}
