/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attempts on names given as arguments, "HOW:NAME" or "HOW:NAME=OTHER"; with -C in a directory.
 *
 *	read write create mkdir unlink rmdir symlink chdir readlink list mkfifo mount
 *	rename NAME=OTHER	link NAME=OTHER
 *	connect		a unix stream socket; "@NAME" is an abstract one
 *	fifo		writes to a FIFO that somebody reads
 *	tcp		connects to that port of 127.0.0.1
 *	signal		signal 0 to that process
 *
 * Nothing is written to what can be opened: that it could be is the answer.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/escape/probe.h"

static long opened(int fd)
{
	if (fd < 0)
		return -1;
	(void)close(fd);
	return 0;
}

static long try_read(const char *name)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char byte;
	ssize_t n;
	int error;

	if (fd < 0)
		return -1;
	n = read(fd, &byte, 1);
	error = errno;
	(void)close(fd);
	errno = error;
	/* a directory, or a device that has nothing at the moment, was opened all the same */
	return n < 0 && errno != EISDIR && errno != EAGAIN ? -1 : 0;
}

static long try_write(const char *name)
{
	return opened(open(name, O_WRONLY | O_CLOEXEC | O_NONBLOCK));
}

static long try_create(const char *name)
{
	return opened(open(name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644));
}

static long try_mkdir(const char *name)
{
	return mkdir(name, 0755);
}

static long try_symlink(const char *name)
{
	return symlink("/nowhere", name);
}

static long try_chdir(const char *name)
{
	return chdir(name);
}

static long try_readlink(const char *name)
{
	char text[4096];

	return readlink(name, text, sizeof(text));
}

static long try_list(const char *name)
{
	DIR *dir = opendir(name);
	struct dirent *entry;

	if (!dir)
		return -1;
	errno = 0;
	entry = readdir(dir);
	if (!entry && errno == 0)
		errno = ENOENT;
	return entry ? 0 : -1;
}

static long try_mkfifo(const char *name)
{
	return mkfifo(name, 0644);
}

static long try_mount(const char *name)
{
	return mount("none", name, "tmpfs", 0, NULL);
}

static long try_fifo(const char *name)
{
	int fd = open(name, O_WRONLY | O_NONBLOCK | O_CLOEXEC);

	return fd < 0 ? -1 : write(fd, "reached\n", 8);
}

static long connected(int family, const void *address, size_t len)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd < 0 ? -1 : connect(fd, address, (socklen_t)len);
}

static long try_connect(const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t len = strlen(name);

	if (len >= sizeof(address.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(address.sun_path, name, len);
	if (name[0] == '@')
		address.sun_path[0] = '\0';
	return connected(AF_UNIX, &address, offsetof(struct sockaddr_un, sun_path) + len);
}

static long try_tcp(const char *name)
{
	struct sockaddr_in address = { .sin_family = AF_INET };

	address.sin_port = htons((uint16_t)strtoul(name, NULL, 10));
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return connected(AF_INET, &address, sizeof(address));
}

static long try_signal(const char *name)
{
	return kill((pid_t)strtol(name, NULL, 10), 0);
}

static long try_unlink(const char *name)
{
	return unlink(name);
}

static long try_rmdir(const char *name)
{
	return rmdir(name);
}

static const struct {
	const char *how;
	long (*one)(const char *name);
	int (*two)(const char *name, const char *other);
} hows[] = {
	{ "read", try_read, NULL },	    { "write", try_write, NULL },
	{ "create", try_create, NULL },	    { "mkdir", try_mkdir, NULL },
	{ "unlink", try_unlink, NULL },	    { "rmdir", try_rmdir, NULL },
	{ "symlink", try_symlink, NULL },   { "chdir", try_chdir, NULL },
	{ "readlink", try_readlink, NULL }, { "list", try_list, NULL },
	{ "mkfifo", try_mkfifo, NULL },	    { "mount", try_mount, NULL },
	{ "rename", NULL, rename },	    { "link", NULL, link },
	{ "connect", try_connect, NULL },   { "fifo", try_fifo, NULL },
	{ "tcp", try_tcp, NULL },	    { "signal", try_signal, NULL },
};

static int attempt(char *word)
{
	char *name = strchr(word, ':');
	char *other;
	char label[4200];

	if (!name)
		return 2;
	*name++ = '\0';
	(void)snprintf(label, sizeof(label), "%s %s", word, name);
	other = strchr(name, '=');
	for (size_t i = 0; i < sizeof(hows) / sizeof(hows[0]); i++) {
		if (strcmp(hows[i].how, word) != 0)
			continue;
		if (hows[i].one) {
			probe_result(label, hows[i].one(name));
			return 0;
		}
		if (!other)
			return 2;
		*other++ = '\0';
		probe_result(label, hows[i].two(name, other));
		return 0;
	}
	return 2;
}

int main(int argc, char **argv)
{
	int first = 1;

	if (argc > 2 && strcmp(argv[1], "-C") == 0) {
		if (chdir(argv[2]) < 0)
			return 2;
		first = 3;
	}
	for (int i = first; i < argc; i++) {
		if (attempt(argv[i]) != 0) {
			(void)fprintf(stderr, "probe_try: what is '%s'?\n", argv[i]);
			return 2;
		}
	}
	return 0;
}
