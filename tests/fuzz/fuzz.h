/* SPDX-License-Identifier: Apache-2.0 */
/* What the fuzz targets share: a claim that does not hold ends the process, which the fuzzer reports. */
#ifndef CM_TESTS_FUZZ_FUZZ_H
#define CM_TESTS_FUZZ_FUZZ_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void require(bool condition)
{
	if (!condition)
		abort();
}

/* That of the directory itself is one of them, at each call. */
static inline size_t count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t n = 0;

	require(dir != NULL);
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n;
}

#endif
