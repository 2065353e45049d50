/* SPDX-License-Identifier: Apache-2.0 */
/* Feeds files to a fuzz target without libFuzzer, so that every build replays the corpora. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

static size_t n_inputs;

static void die(const char *what, const char *path)
{
	fprintf(stderr, "%s '%s': %s\n", what, path, strerror(errno));
	exit(1);
}

static void run_input(int fd, const char *path, size_t size)
{
	/* exactly as large as the input, so that a sanitizer sees one byte too many */
	uint8_t *data = malloc(size ? size : 1);

	if (!data || read(fd, data, size) != (ssize_t)size)
		die("cannot read", path);
	/* named before it runs: a crash says which one it was */
	printf("%s (%zu bytes)\n", path, size);
	fflush(stdout);
	(void)LLVMFuzzerTestOneInput(data, size);
	free(data);
	n_inputs++;
}

static void run_path(int dirfd, const char *path)
{
	int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);
	struct dirent *entry;
	struct stat st;
	DIR *dir;

	if (fd < 0 || fstat(fd, &st) < 0)
		die("cannot open", path);
	if (!S_ISDIR(st.st_mode)) {
		run_input(fd, path, (size_t)st.st_size);
		close(fd);
		return;
	}
	dir = fdopendir(fd);
	if (!dir)
		die("cannot list", path);
	while ((entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] != '.')
			run_path(fd, entry->d_name);
	}
	closedir(dir);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		run_path(AT_FDCWD, argv[i]);
	if (n_inputs == 0) {
		fprintf(stderr, "no input was replayed\n");
		return 1;
	}
	printf("%zu inputs\n", n_inputs);
	return 0;
}
