/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Request and result of a journal: what is taken is what its record says.  First byte: 1: a checksum
 * that is right is put behind it, since no mutation finds one; 2: it is a result, and the request a
 * good one.  Then an offset (eight bytes), which is read from and names a segment; then the file.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/fd.h"
#include "runtime/store/journal.h"
#include "runtime/store/journal_internal.h"
#include "tests/fuzz/fuzz.h"

#define ID (UINT64_C(3) << 32 | 17)
#define HAS_SUM 1U
#define IS_RESULT 2U
#define START (1 + sizeof(uint64_t))

static char dir[64];

static void remove_dir(void)
{
	(void)cm_remove_tree_at(AT_FDCWD, dir);
}

/* A state directory with a good journal in it. */
static int state_dir(void)
{
	static int fd = -1;

	if (fd >= 0)
		return fd;
	(void)snprintf(dir, sizeof(dir), "%s/cm-fuzz-journal-XXXXXX",
		       access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	require(mkdtemp(dir) != NULL && atexit(remove_dir) == 0);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	require(fd >= 0);
	return fd;
}

static void make_good(int fd)
{
	const struct cm_journal_request request = {
		.exec_id = ID, .n_args = 1, .text_len = 6, .max_bytes = CM_JOURNAL_MIN
	};
	struct cm_journal j;

	require(cm_journal_remove(fd, ID) == 0);
	require(cm_journal_create(fd, &request, "/\0abc", &j, NULL) == CM_OK);
	cm_journal_close(&j);
}

static void write_file(int fd, const char *path, const uint8_t *data, size_t len, bool has_sum)
{
	CM_AUTO_FD int file_fd = openat(fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	uint64_t sum = cm_journal_sum(data, len, NULL, 0);

	require(file_fd >= 0 && cm_write_all(file_fd, data, len) == 0);
	require(!has_sum || cm_write_all(file_fd, &sum, sizeof(sum)) == 0);
}

static void check_request(const struct cm_journal_reader *r)
{
	const struct cm_journal_request *request = &r->request;
	const char *at = r->text;

	require(request->exec_id == ID && request->text_len > 0);
	/* cwd and each argument ends within it */
	for (uint64_t i = 0; i <= request->n_args; i++) {
		require(at < r->text + request->text_len);
		at += strlen(at) + 1;
	}
	require(at == r->text + request->text_len);
}

static void check_streams(struct cm_journal_reader *r, uint64_t offset)
{
	char buf[4096];

	for (int i = 0; i < 10; i++) {
		uint64_t at = offset;
		ssize_t n = cm_journal_read(r, CM_JOURNAL_OUT, &at, buf, sizeof(buf));

		require(n >= 0 && at >= offset && (size_t)n <= sizeof(buf));
		require(n > 0 || at == offset);
		offset = at + (uint64_t)n;
	}
	(void)cm_journal_end(r, CM_JOURNAL_OUT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = state_dir();
	struct cm_journal_result result;
	struct cm_journal_reader r;
	char segment[64];
	uint64_t offset;

	if (size < START)
		return 0;
	memcpy(&offset, data + 1, sizeof(offset));
	make_good(fd);
	write_file(fd, data[0] & IS_RESULT ? "exec/3.17/result" : "exec/3.17/request", data + START,
		   size - START, (data[0] & HAS_SUM) != 0);
	(void)snprintf(segment, sizeof(segment), "exec/3.17/out.%" PRIu64, offset);
	write_file(fd, segment, data, size, false);
	if (cm_journal_open(fd, ID, &r, NULL) != CM_OK)
		return 0;
	check_request(&r);
	if (cm_journal_result_read(&r, &result) == 1)
		require(result.exec_id == ID && result.magic == CM_JOURNAL_MAGIC);
	check_streams(&r, offset);
	check_streams(&r, 0);
	cm_journal_reader_close(&r);
	return 0;
}
