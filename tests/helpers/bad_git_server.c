/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A git server that misbehaves in one way and is otherwise right, so that a client gets as far as
 * the misbehaviour.
 *
 *	bad_git_server MODE [--head ID --pack FILE] [--ref NAME] [--good-after N]
 *
 * It listens on a port of the kernel's choice on 127.0.0.1, prints "port N", and then serves until it
 * is killed. What a client says first tells whether it is one of git:// or of http://; both get
 * protocol version 0, at any path. --head is the commit that --ref (refs/heads/main) and HEAD lead
 * to; --pack, with all that belongs to it, is sent whatever is asked for. From the connection after the
 * Nth on it does not misbehave any more.
 *
 * Of each connection two lines are printed: what was asked for, and how many bytes were sent when it
 * ended, by which one sees whether a client had enough.
 *
 * One process a connection: it may hang and others are still served. The kernel ends them with us.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/helpers/bad_git.h"

#define REQUEST_MAX 65536
#define BACKLOG 64

static const struct mode *mode;
static unsigned long good_after = ULONG_MAX;

static _Noreturn void fail(const char *what)
{
	(void)fprintf(stderr, "bad_git_server: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* --- what is asked for ------------------------------------------------------------------------- */

/* Appends what there is to read; false at the end. */
static bool more(struct peer *peer, char *buf, size_t *len)
{
	ssize_t n;

	if (*len >= REQUEST_MAX)
		return false;
	n = read(peer->fd, buf + *len, REQUEST_MAX - *len);
	if (n <= 0)
		return false;
	*len += (size_t)n;
	buf[*len] = '\0';
	return true;
}

/* A request and its body, whose length is told: a clone's is not so long that it would be in chunks
 * or compressed. What it begins with is kept for the caller. */
static bool read_http(struct peer *peer, char *buf, size_t *len)
{
	const char *body;
	const char *told;
	size_t want;

	while (!(body = strstr(buf, "\r\n\r\n"))) {
		if (!more(peer, buf, len))
			return false;
	}
	told = strcasestr(buf, "\r\ncontent-length:");
	want = told && told < body ? strtoul(told + strlen("\r\ncontent-length:"), NULL, 10) : 0;
	while (*len < (size_t)(body + 4 - buf) + want) {
		if (!more(peer, buf, len))
			return false;
	}
	return true;
}

static void log_request(const char *text, size_t len)
{
	(void)printf("asked %.*s\n", (int)strcspn(text, "\r\n"), len > 0 ? text : "");
	(void)fflush(stdout);
}

static void serve_http(struct peer *peer, char *buf, size_t len)
{
	peer->is_http = true;
	while (read_http(peer, buf, &len)) {
		log_request(buf, len);
		if (mode->answer) {
			mode->answer(peer);
		} else if (strncmp(buf, "POST ", 5) == 0) {
			peer->has_bands = strstr(strstr(buf, "\r\n\r\n"), "side-band") != NULL;
			bad_http_head(peer, "application/x-git-upload-pack-result");
			bad_pack(peer, mode);
			bad_http_end(peer);
		} else {
			bad_http_head(peer, "application/x-git-upload-pack-advertisement");
			bad_text(peer, "001e# service=git-upload-pack\n0000");
			bad_refs(peer, mode);
			bad_http_end(peer);
		}
		len = 0;
		buf[0] = '\0';
	}
}

/* The request is one pkt-line; what is wanted comes after the refs, and ends with "done". */
static void serve_git(struct peer *peer, char *buf, size_t len)
{
	char digits[5] = { 0 };

	(void)memcpy(digits, buf, 4);
	while (len < strtoul(digits, NULL, 16)) {
		if (!more(peer, buf, &len))
			return;
	}
	log_request(buf + 4, len);
	if (mode->answer)
		mode->answer(peer);
	bad_refs(peer, mode);
	len = 0;
	buf[0] = '\0';
	while (!memmem(buf, len, "0009done\n", 9)) {
		if (!more(peer, buf, &len))
			return;
	}
	peer->has_bands = memmem(buf, len, "side-band", 9) != NULL;
	bad_pack(peer, mode);
}

static _Noreturn void serve(int fd)
{
	static char buf[REQUEST_MAX + 1];
	struct peer peer = { .fd = fd };
	size_t len = 0;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() == 1)
		_exit(1);
	while (len < 4) {
		if (!more(&peer, buf, &len))
			bad_end(&peer);
	}
	if (strncmp(buf, "GET ", 4) == 0 || strncmp(buf, "POST", 4) == 0)
		serve_http(&peer, buf, len);
	else
		serve_git(&peer, buf, len);
	bad_end(&peer);
}

/* --- the program ------------------------------------------------------------------------------- */

static void read_pack(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		fail(path);
	if (st.st_size < 32) {
		errno = EINVAL;
		fail(path);
	}
	bad_cargo.pack_len = (size_t)st.st_size;
	bad_cargo.pack = mmap(NULL, bad_cargo.pack_len, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	if (bad_cargo.pack == MAP_FAILED)
		fail(path);
	(void)close(fd);
}

static int listen_somewhere(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(fd, BACKLOG) < 0 || getsockname(fd, (struct sockaddr *)&address, &len) < 0)
		fail("cannot listen");
	(void)printf("port %u\n", ntohs(address.sin_port));
	(void)fflush(stdout);
	return fd;
}

static _Noreturn void usage(void)
{
	(void)fprintf(stderr, "usage: bad_git_server MODE [--head ID --pack FILE] [--ref NAME] "
			      "[--good-after N]\n");
	for (size_t i = 0; i < bad_n_modes; i++)
		(void)fprintf(stderr, "  %-16s%s\n", bad_modes[i].name, bad_modes[i].what);
	exit(2);
}

static void read_arguments(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < bad_n_modes; i++) {
		if (strcmp(bad_modes[i].name, argv[1]) == 0)
			mode = &bad_modes[i];
	}
	if (!mode || argc % 2 != 0)
		usage();
	for (int i = 2; i < argc; i += 2) {
		if (strcmp(argv[i], "--head") == 0)
			bad_cargo.head = argv[i + 1];
		else if (strcmp(argv[i], "--pack") == 0)
			read_pack(argv[i + 1]);
		else if (strcmp(argv[i], "--ref") == 0)
			bad_cargo.ref = argv[i + 1];
		else if (strcmp(argv[i], "--good-after") == 0)
			good_after = strtoul(argv[i + 1], NULL, 10);
		else
			usage();
	}
	if (mode->wants_pack && !bad_cargo.pack)
		usage();
}

int main(int argc, char **argv)
{
	int listening;

	read_arguments(argc, argv);
	/* a client that goes is seen by write */
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGCHLD, SIG_IGN);
	listening = listen_somewhere();
	for (unsigned long n = 0;; n++) {
		int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);

		/* the first of all modes */
		if (n >= good_after)
			mode = &bad_modes[0];
		if (fd >= 0 && fork() == 0)
			serve(fd);
		if (fd >= 0)
			(void)close(fd);
	}
}
