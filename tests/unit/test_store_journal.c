/* SPDX-License-Identifier: Apache-2.0 */
/* Journals: what is kept of a stream, and what readers make of it, whatever happened to it. */
#include "tests/unit/test_base.h"

#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <termios.h>

#include "runtime/store/journal.h"
#include "tests/unit/kill_walk.h"

#define MAX CM_JOURNAL_MIN
#define HEAD (MAX / 4)
#define SEGMENT ((MAX - HEAD) / 2)
#define ID (UINT64_C(3) << 32 | 17)
#define TEXT "/w\0make\0-j\0"
#define RESULT_SIZE (sizeof(struct cm_journal_result) + sizeof(uint64_t))

/* The byte of an offset, none of them like its neighbours, and segments not like each other. */
static char byte_of(uint64_t offset)
{
	return (char)('a' + (offset * 7 + offset / 26 + offset / SEGMENT) % 26);
}

static struct cm_journal_request request_of(uint64_t id)
{
	return (struct cm_journal_request){
		.exec_id = id,
		.n_args = 2,
		.max_bytes = MAX,
		.text_len = sizeof(TEXT) - 1,
		.started_ms = 1000,
		.timeout_ms = 5,
		.flags = CM_JOURNALF_STDIN,
	};
}

static void create(int dir_fd, uint64_t id, struct cm_journal *j)
{
	struct cm_journal_request request = request_of(id);
	struct cm_error err = CM_ERROR_INIT;

	if (cm_journal_create(dir_fd, &request, TEXT, j, &err) != CM_OK)
		fail_msg("%s", err.msg);
}

static void open_reader(int dir_fd, uint64_t id, struct cm_journal_reader *r)
{
	struct cm_error err = CM_ERROR_INIT;

	if (cm_journal_open(dir_fd, id, r, &err) != CM_OK)
		fail_msg("%s", err.msg);
}

static void make_pipe(int fds[2])
{
	assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
}

/* Feed bytes of the stream from its end on, through a pipe, `step` at a time. */
static void feed(struct cm_journal *j, enum cm_journal_stream stream, uint64_t n, size_t step)
{
	char chunk[60000];
	uint64_t at = j->at[stream];
	uint64_t end = at + n;
	int fds[2];

	make_pipe(fds);
	while (at < end) {
		size_t len = end - at < step ? (size_t)(end - at) : step;

		for (size_t i = 0; i < len; i++)
			chunk[i] = byte_of(at + i);
		assert_int_equal(write(fds[1], chunk, len), (ssize_t)len);
		assert_int_equal(cm_journal_take(j, stream, fds[0], len), (ssize_t)len);
		at += len;
	}
	assert_int_equal(cm_journal_take(j, stream, fds[0], 1), -EAGAIN);
	cm_fd_close(&fds[1]);
	assert_int_equal(cm_journal_take(j, stream, fds[0], 1), 0);
	cm_fd_close(&fds[0]);
	assert_int_equal(j->at[stream], end);
}

/* Read all from offset on; how many bytes came. What is at *ret_gap was jumped over (0: nothing). */
static uint64_t read_on(struct cm_journal_reader *r, enum cm_journal_stream stream, uint64_t offset,
			size_t size, uint64_t *ret_gap, uint64_t *ret_end)
{
	char buf[70000];
	uint64_t total = 0;

	*ret_gap = 0;
	for (;;) {
		uint64_t at = offset;
		ssize_t n = cm_journal_read(r, stream, &at, buf, size);

		assert_true(n >= 0 && (size_t)n <= size);
		if (n == 0)
			break;
		assert_true(at >= offset);
		if (at != offset) {
			assert_int_equal(*ret_gap, 0);
			*ret_gap = at - offset;
		}
		for (ssize_t i = 0; i < n; i++) {
			if (buf[i] != byte_of(at + (uint64_t)i))
				fail_msg("byte %llu is another", (unsigned long long)at);
		}
		offset = at + (uint64_t)n;
		total += (uint64_t)n;
	}
	*ret_end = offset;
	return total;
}

/* The first offset after the head that n bytes still have. */
static uint64_t tail_start(uint64_t n)
{
	uint64_t last = n > HEAD ? (n - HEAD - 1) / SEGMENT : 0;

	return HEAD + (last > 1 ? (last - 1) * SEGMENT : 0);
}

static void check_kept(int dir_fd, uint64_t n, size_t step)
{
	struct cm_journal j;
	struct cm_journal_reader r;
	uint64_t start = tail_start(n);
	uint64_t gap;
	uint64_t end;

	create(dir_fd, ID, &j);
	feed(&j, CM_JOURNAL_ERR, n, step);
	open_reader(dir_fd, ID, &r);
	assert_int_equal(cm_journal_end(&r, CM_JOURNAL_ERR), n);
	assert_int_equal(read_on(&r, CM_JOURNAL_ERR, 0, 4000, &gap, &end), n - (start - HEAD));
	assert_int_equal(gap, start - HEAD);
	assert_int_equal(end, n);
	/* from anywhere, also from what is gone; backwards, so that nothing is open already */
	for (uint64_t from = n + 5000; from > 0; from = from > 3001 ? from - 3001 : 0) {
		uint64_t first = from >= HEAD && from < start ? start : from;

		(void)read_on(&r, CM_JOURNAL_ERR, from, 70000, &gap, &end);
		assert_int_equal(end, from < n ? n : from);
		if (from >= HEAD && from < n)
			assert_int_equal(gap, first - from);
	}
	assert_int_equal(cm_journal_end(&r, CM_JOURNAL_OUT), 0);
	assert_int_equal(read_on(&r, CM_JOURNAL_OUT, 0, 4000, &gap, &end), 0);
	cm_journal_reader_close(&r);
	cm_journal_close(&j);
	assert_int_equal(cm_journal_remove(dir_fd, ID), 0);
}

static void test_keeps_both_ends(void **state)
{
	static const uint64_t sizes[] = {
		0,
		1,
		HEAD - 1,
		HEAD,
		HEAD + 1,
		HEAD + SEGMENT - 1,
		HEAD + SEGMENT,
		HEAD + SEGMENT + 1,
		HEAD + 2 * SEGMENT,
		HEAD + 2 * SEGMENT + 1,
		HEAD + 3 * SEGMENT + 7,
		HEAD + 12 * SEGMENT,
		HEAD + 12 * SEGMENT + 1,
	};
	CM_AUTO_FD int dir_fd = open_scratch(state);

	for (size_t i = 0; i < CM_ARRAY_SIZE(sizes); i++) {
		check_kept(dir_fd, sizes[i], 60000);
		check_kept(dir_fd, sizes[i], 4099);
	}
}

static void test_is_bounded_and_private(void **state)
{
	static const char *const names[] = { "request", "out.head", "out.38", "out.39", "result" };
	CM_AUTO_FD int dir_fd = open_scratch(state);
	struct cm_journal_result result = { .kind = 1 };
	struct cm_journal j;
	char path[80];
	struct stat st;

	create(dir_fd, ID, &j);
	feed(&j, CM_JOURNAL_OUT, HEAD + 40 * SEGMENT, 50000);
	assert_int_equal(cm_journal_finish(&j, &result), 0);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", j.dir_fd);
	assert_int_equal(count_entries(path), CM_ARRAY_SIZE(names));
	for (size_t i = 0; i < CM_ARRAY_SIZE(names); i++) {
		assert_int_equal(fstatat(j.dir_fd, names[i], &st, AT_SYMLINK_NOFOLLOW), 0);
		assert_int_equal(st.st_mode, S_IFREG | 0600);
		assert_true(st.st_size <= (off_t)SEGMENT);
	}
	assert_int_equal(fstatat(dir_fd, "exec", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0700);
	assert_int_equal(fstatat(dir_fd, "exec/3.17", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0700);
	cm_journal_close(&j);
}

static void test_request_comes_back(void **state)
{
	CM_AUTO_FD int dir_fd = open_scratch(state);
	struct cm_journal_result result = {
		.kind = 2, .status = -5, .wall_us = 77, .ended_ms = 1234
	};
	struct cm_journal_result back;
	struct cm_journal_reader r;
	struct cm_journal j;
	size_t n_fds = count_fds();

	create(dir_fd, ID, &j);
	open_reader(dir_fd, ID, &r);
	assert_int_equal(r.request.exec_id, ID);
	assert_int_equal(r.request.flags, CM_JOURNALF_STDIN);
	assert_int_equal(r.request.max_bytes, MAX);
	assert_int_equal(r.request.started_ms, 1000);
	assert_int_equal(r.request.timeout_ms, 5);
	assert_memory_equal(r.text, TEXT, sizeof(TEXT) - 1);
	assert_int_equal(cm_journal_result_read(&r, &back), 0);
	feed(&j, CM_JOURNAL_OUT, 10, 10);
	feed(&j, CM_JOURNAL_ERR, HEAD + 4 * SEGMENT, 1000);
	assert_int_equal(cm_journal_finish(&j, &result), 0);
	assert_int_equal(cm_journal_result_read(&r, &back), 1);
	assert_int_equal(back.exec_id, ID);
	assert_int_equal(back.kind, 2);
	assert_int_equal(back.status, -5);
	assert_int_equal(back.wall_us, 77);
	assert_int_equal(back.ended_ms, 1234);
	assert_int_equal(back.bytes[CM_JOURNAL_OUT], 10);
	assert_int_equal(back.bytes[CM_JOURNAL_ERR], HEAD + 4 * SEGMENT);
	assert_int_equal(back.lost[CM_JOURNAL_OUT], 0);
	/* removed while somebody reads */
	assert_int_equal(cm_journal_remove(dir_fd, ID), 0);
	assert_int_equal(cm_journal_result_read(&r, &back), -ESTALE);
	assert_int_equal(cm_journal_remove(dir_fd, ID), 0);
	cm_journal_reader_close(&r);
	cm_journal_close(&j);
	assert_int_equal(count_fds(), n_fds);
}

static void test_create_refuses(void **state)
{
	CM_AUTO_FD int dir_fd = open_scratch(state);
	struct cm_journal_request request = request_of(ID);
	struct cm_error err = CM_ERROR_INIT;
	struct cm_journal j = { .exec_id = UNTOUCHED };
	struct cm_journal first;

	create(dir_fd, ID, &first);
	assert_int_equal(cm_journal_create(dir_fd, &request, TEXT, &j, &err), CM_E_EXISTS);
	request.exec_id++;
	request.n_args = 3;
	assert_int_equal(cm_journal_create(dir_fd, &request, TEXT, &j, &err), CM_E_INVALID);
	request.n_args = 2;
	request.text_len--;
	assert_int_equal(cm_journal_create(dir_fd, &request, TEXT, &j, &err), CM_E_INVALID);
	request.text_len++;
	request.max_bytes = MAX - 1;
	assert_int_equal(cm_journal_create(dir_fd, &request, TEXT, &j, &err), CM_E_INVALID);
	assert_int_equal(j.exec_id, UNTOUCHED);
	request.max_bytes = 0;
	assert_int_equal(cm_journal_create(dir_fd, &request, TEXT, &j, &err), CM_OK);
	assert_int_equal(j.max_bytes, CM_JOURNAL_BYTES);
	cm_journal_close(&j);
	cm_journal_close(&first);
	/* the first one is whole; a link in its place is not followed */
	assert_int_equal(faccessat(dir_fd, "exec/3.17/request", F_OK, 0), 0);
	assert_int_equal(cm_remove_tree_at(dir_fd, "exec"), 0);
	assert_int_equal(symlinkat("elsewhere", dir_fd, "exec"), 0);
	assert_int_equal(mkdirat(dir_fd, "elsewhere", 0700), 0);
	assert_int_equal(cm_journal_create(dir_fd, &request, TEXT, &j, &err), CM_E_SYS);
}

static void test_exec_ids(void **state)
{
	static const char *const bad[] = { "",
					   "3",
					   ".",
					   "3.",
					   ".17",
					   "3.17x",
					   " 3.1",
					   "3.-1",
					   "03.1",
					   "3.017",
					   "+3.1",
					   "3.1.",
					   "3.1 2",
					   "4294967296.1",
					   "1.4294967296",
					   "-1.2",
					   "3,17",
					   "3.17\n",
					   "99999999999999999999.1" };
	struct cm_error err = CM_ERROR_INIT;
	char buf[CM_EXEC_ID_SIZE];
	uint64_t id = UNTOUCHED;

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(bad); i++) {
		if (cm_exec_id_parse(bad[i], &id, &err) != CM_E_INVALID || err.hint[0] == '\0')
			fail_msg("taken: '%s'", bad[i]);
	}
	assert_int_equal(id, UNTOUCHED);
	assert_int_equal(cm_exec_id_parse("3.17", &id, &err), CM_OK);
	assert_int_equal(id, ID);
	assert_int_equal(cm_exec_id_parse("4294967295.4294967295", &id, &err), CM_OK);
	assert_int_equal(id, UINT64_MAX);
	cm_exec_id_format(id, buf);
	assert_string_equal(buf, "4294967295.4294967295");
	assert_int_equal(cm_exec_id_parse("0.0", &id, &err), CM_OK);
	cm_exec_id_format(id, buf);
	assert_string_equal(buf, "0.0");
}

/* --- damage -------------------------------------------------------------------------------- */

static void write_file(int dir_fd, const char *path, const void *data, size_t len)
{
	CM_AUTO_FD int fd = openat(dir_fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(cm_write_all(fd, data, len), 0);
}

static void test_damaged_result(void **state)
{
	CM_AUTO_FD int dir_fd = open_scratch(state);
	struct cm_journal_result result = { .kind = 1, .status = 3 };
	struct cm_journal_result back = { .kind = 99 };
	struct cm_journal_reader r;
	struct cm_journal j;
	unsigned char good[RESULT_SIZE + 1] = { 0 };
	const char *path = "exec/3.17/result";

	create(dir_fd, ID, &j);
	assert_int_equal(cm_journal_finish(&j, &result), 0);
	open_reader(dir_fd, ID, &r);
	assert_int_equal(cm_read_file_at(dir_fd, path, (char *)good, sizeof(good)), RESULT_SIZE);
	for (size_t len = 0; len < RESULT_SIZE; len++) {
		write_file(dir_fd, path, good, len);
		assert_int_equal(cm_journal_result_read(&r, &back), -EBADMSG);
	}
	write_file(dir_fd, path, good, RESULT_SIZE + 1);
	assert_int_equal(cm_journal_result_read(&r, &back), -EBADMSG);
	for (size_t bit = 0; bit < RESULT_SIZE * 8; bit++) {
		unsigned char bad[RESULT_SIZE];

		memcpy(bad, good, sizeof(bad));
		bad[bit / 8] ^= (unsigned char)(1U << bit % 8);
		write_file(dir_fd, path, bad, sizeof(bad));
		assert_int_equal(cm_journal_result_read(&r, &back), -EBADMSG);
	}
	assert_int_equal(back.kind, 99);
	assert_int_equal(unlinkat(dir_fd, path, 0), 0);
	assert_int_equal(symlinkat("request", dir_fd, path), 0);
	assert_true(cm_journal_result_read(&r, &back) < 0);
	cm_journal_reader_close(&r);
	cm_journal_close(&j);
}

static int try_open(int dir_fd)
{
	struct cm_journal_reader r = { .dir_fd = -7 };
	struct cm_error err = CM_ERROR_INIT;
	int code = cm_journal_open(dir_fd, ID, &r, &err);

	if (code == CM_OK)
		cm_journal_reader_close(&r);
	else
		assert_int_equal(r.dir_fd, -7);
	return code;
}

static void test_damaged_request(void **state)
{
	CM_AUTO_FD int dir_fd = open_scratch(state);
	const char *path = "exec/3.17/request";
	unsigned char good[200] = { 0 };
	struct cm_journal j;
	ssize_t n;

	assert_int_equal(try_open(dir_fd), CM_E_NOT_FOUND);
	create(dir_fd, ID, &j);
	n = cm_read_file_at(dir_fd, path, (char *)good, sizeof(good));
	assert_true(n > 0);
	for (ssize_t len = 0; len <= n + 1; len++) {
		write_file(dir_fd, path, good, (size_t)len);
		assert_int_equal(try_open(dir_fd), len == n ? CM_OK : CM_E_PROTOCOL);
	}
	for (ssize_t bit = 0; bit < n * 8; bit++) {
		unsigned char bad[sizeof(good)];

		memcpy(bad, good, sizeof(bad));
		bad[bit / 8] ^= (unsigned char)(1U << bit % 8);
		write_file(dir_fd, path, bad, (size_t)n);
		assert_int_equal(try_open(dir_fd), CM_E_PROTOCOL);
	}
	/* nothing is followed, and nothing waits for a writer */
	write_file(dir_fd, "good", good, (size_t)n);
	assert_int_equal(unlinkat(dir_fd, path, 0), 0);
	assert_int_equal(try_open(dir_fd), CM_E_NOT_FOUND);
	assert_int_equal(symlinkat("../../good", dir_fd, path), 0);
	assert_int_equal(try_open(dir_fd), CM_E_SYS);
	assert_int_equal(unlinkat(dir_fd, path, 0), 0);
	assert_int_equal(mkfifoat(dir_fd, path, 0600), 0);
	assert_int_equal(try_open(dir_fd), CM_E_PROTOCOL);
	assert_int_equal(renameat(dir_fd, "exec/3.17", dir_fd, "elsewhere"), 0);
	assert_int_equal(symlinkat("../elsewhere", dir_fd, "exec/3.17"), 0);
	assert_true(try_open(dir_fd) != CM_OK);
	cm_journal_close(&j);
}

/* A power cut may keep a later file and lose the end of one before. */
static void test_short_segment(void **state)
{
	CM_AUTO_FD int dir_fd = open_scratch(state);
	struct cm_journal_reader r;
	struct cm_journal j;
	uint64_t gap;
	uint64_t end;

	create(dir_fd, ID, &j);
	feed(&j, CM_JOURNAL_OUT, HEAD + SEGMENT + 100, 5000);
	open_reader(dir_fd, ID, &r);
	{
		CM_AUTO_FD int fd = openat(j.dir_fd, "out.0", O_WRONLY | O_CLOEXEC);

		assert_int_equal(ftruncate(fd, 10), 0);
	}
	assert_int_equal(read_on(&r, CM_JOURNAL_OUT, 0, 3000, &gap, &end), HEAD + 10 + 100);
	assert_int_equal(gap, SEGMENT - 10);
	assert_int_equal(end, HEAD + SEGMENT + 100);
	/* nor does a file that no writer made lead astray */
	write_file(j.dir_fd, "out.99999999999999999999", "x", 1);
	write_file(j.dir_fd, "out.9999999999999999", "x", 1);
	write_file(j.dir_fd, "out.18446744073709551614", "x", 1);
	write_file(j.dir_fd, "out.00001", "x", 1);
	assert_int_equal(cm_journal_end(&r, CM_JOURNAL_OUT), HEAD + SEGMENT + 100);
	(void)read_on(&r, CM_JOURNAL_OUT, 0, 3000, &gap, &end);
	assert_int_equal(end, HEAD + SEGMENT + 100);
	{
		CM_AUTO_FD int fd = openat(j.dir_fd, "out.head", O_WRONLY | O_APPEND | O_CLOEXEC);

		assert_int_equal(cm_write_all(fd, "zzzz", 4), 0);
	}
	(void)read_on(&r, CM_JOURNAL_OUT, 0, 70000, &gap, &end);
	assert_int_equal(end, HEAD + SEGMENT + 100);
	cm_journal_reader_close(&r);
	cm_journal_close(&j);
}

/* --- terminals ----------------------------------------------------------------------------- */

static void test_terminal(void **state)
{
	CM_AUTO_FD int dir_fd = open_scratch(state);
	CM_AUTO_FD int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	CM_AUTO_FD int slave = -1;
	struct cm_journal_reader r;
	struct termios t;
	struct cm_journal j;
	uint64_t gap;
	uint64_t end;

	if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0)
		skip();
	slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(slave >= 0);
	assert_int_equal(tcgetattr(slave, &t), 0);
	cfmakeraw(&t);
	assert_int_equal(tcsetattr(slave, TCSANOW, &t), 0);
	create(dir_fd, ID, &j);
	assert_int_equal(cm_journal_take(&j, CM_JOURNAL_OUT, master, 1000), -EAGAIN);
	for (uint64_t at = 0; at < HEAD + 1000; at += 500) {
		char chunk[500];

		for (size_t i = 0; i < sizeof(chunk); i++)
			chunk[i] = byte_of(at + i);
		assert_int_equal(write(slave, chunk, sizeof(chunk)), sizeof(chunk));
		while (j.at[CM_JOURNAL_OUT] < at + sizeof(chunk)) {
			ssize_t n = cm_journal_take(&j, CM_JOURNAL_OUT, master, 1000);

			assert_true(n > 0 || n == -EAGAIN);
		}
	}
	cm_fd_close(&slave);
	assert_int_equal(cm_journal_take(&j, CM_JOURNAL_OUT, master, 1000), 0);
	open_reader(dir_fd, ID, &r);
	(void)read_on(&r, CM_JOURNAL_OUT, 0, 3000, &gap, &end);
	assert_int_equal(gap, 0);
	assert_true(end >= HEAD + 1000);
	cm_journal_reader_close(&r);
	cm_journal_close(&j);
}

/* --- a full disk --------------------------------------------------------------------------- */

static int write_past_limit(void *data)
{
	const int *dir_fd = data;
	struct rlimit limit = { .rlim_cur = HEAD + 1000, .rlim_max = RLIM_INFINITY };
	struct cm_journal_result result = { .kind = 1 };
	struct cm_journal j;
	int fds[2];

	(void)signal(SIGXFSZ, SIG_IGN);
	if (getrlimit(RLIMIT_FSIZE, &limit) < 0)
		return 2;
	limit.rlim_cur = HEAD + 1000;
	create(*dir_fd, ID, &j);
	if (setrlimit(RLIMIT_FSIZE, &limit) < 0)
		return 3;
	/* the head fits; segment 0 does not quite */
	feed(&j, CM_JOURNAL_OUT, HEAD + HEAD + 1000, 3000);
	if (j.lost[CM_JOURNAL_OUT] != 0)
		return 4;
	make_pipe(fds);
	if (write(fds[1], "12345", 5) != 5 ||
	    cm_journal_take(&j, CM_JOURNAL_OUT, fds[0], 100) != 5 || j.lost[CM_JOURNAL_OUT] != 5)
		return 5;
	/* it goes on as soon as it can */
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_FSIZE, &limit) < 0)
		return 6;
	feed(&j, CM_JOURNAL_OUT, 2 * SEGMENT, 3000);
	return cm_journal_finish(&j, &result) == 0 ? 0 : 7;
}

static void test_file_size_limit(void **state)
{
	CM_AUTO_FD int dir_fd = open_scratch(state);
	struct cm_journal_result result;
	struct cm_journal_reader r;
	uint64_t gap;
	uint64_t end;

	assert_int_equal(run_child(write_past_limit, &dir_fd), 0);
	open_reader(dir_fd, ID, &r);
	assert_int_equal(cm_journal_result_read(&r, &result), 1);
	assert_int_equal(result.lost[CM_JOURNAL_OUT], 5);
	assert_int_equal(result.lost[CM_JOURNAL_ERR], 0);
	assert_int_equal(result.bytes[CM_JOURNAL_OUT], 2 * HEAD + 1000 + 2 * SEGMENT);
	(void)read_on(&r, CM_JOURNAL_OUT, 0, 3000, &gap, &end);
	assert_int_equal(end, result.bytes[CM_JOURNAL_OUT]);
	cm_journal_reader_close(&r);
}

#define NO_MOUNTS 77

static bool write_text(const char *path, const char *text)
{
	return cm_write_file_at(AT_FDCWD, path, text) == 0;
}

/* Namespaces in which this user may mount; files are its own there. */
static bool enter_namespaces(void)
{
	unsigned int uid = geteuid();
	unsigned int gid = getegid();
	char uids[40];
	char gids[40];

	if (unshare(CLONE_NEWNS) == 0)
		return true;
	(void)snprintf(uids, sizeof(uids), "%u %u 1", uid, uid);
	(void)snprintf(gids, sizeof(gids), "%u %u 1", gid, gid);
	return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 &&
	       write_text("/proc/self/setgroups", "deny") &&
	       write_text("/proc/self/uid_map", uids) && write_text("/proc/self/gid_map", gids);
}

static int make_tmpfs(const char *dir, const char *options)
{
	if (!enter_namespaces() || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", dir, "tmpfs", MS_NOSUID | MS_NODEV, options) < 0)
		return NO_MOUNTS;
	return 0;
}

/* As create, in a child, which cannot fail a test. */
static bool created(int dir_fd, struct cm_journal *j)
{
	struct cm_journal_request request = request_of(ID);

	return cm_journal_create(dir_fd, &request, TEXT, j, NULL) == CM_OK;
}

/* Of a stream of n bytes what does not fit is lost, and the rest is what came first. */
static int flood(struct cm_journal *j, uint64_t n)
{
	char chunk[4096];
	int fds[2];

	memset(chunk, 'x', sizeof(chunk));
	make_pipe(fds);
	for (uint64_t i = 0; i < n; i += sizeof(chunk)) {
		if (write(fds[1], chunk, sizeof(chunk)) != (ssize_t)sizeof(chunk) ||
		    cm_journal_take(j, CM_JOURNAL_OUT, fds[0], 65536) != (ssize_t)sizeof(chunk))
			return 1;
	}
	cm_fd_close(&fds[0]);
	cm_fd_close(&fds[1]);
	return 0;
}

static int fill_disk(void *data)
{
	const char *dir = data;
	struct cm_journal_result result = { .kind = 1 };
	struct cm_journal_request request = request_of(ID);
	CM_AUTO_FD int dir_fd = -1;
	struct cm_journal_reader r;
	struct cm_journal j;
	int e = make_tmpfs(dir, "size=48k,nr_inodes=20");

	if (e != 0)
		return e;
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (!created(dir_fd, &j))
		return 1;
	make_file(dir_fd, "ballast", "x");
	if (flood(&j, 100000) != 0)
		return 2;
	if (j.lost[CM_JOURNAL_OUT] == 0 || j.at[CM_JOURNAL_OUT] < 20000 ||
	    j.at[CM_JOURNAL_OUT] + j.lost[CM_JOURNAL_OUT] < 100000)
		return 3;
	/* no room for another, and nothing of it is left */
	request.exec_id++;
	if (cm_journal_create(dir_fd, &request, TEXT, &j, NULL) != CM_E_SYS ||
	    faccessat(dir_fd, "exec/.new-3.18", F_OK, 0) == 0 ||
	    faccessat(dir_fd, "exec/3.18", F_OK, 0) == 0)
		return 4;
	if (cm_journal_finish(&j, &result) == 0 ||
	    faccessat(dir_fd, "exec/3.17/result.new", F_OK, 0) == 0)
		return 5;
	if (unlinkat(dir_fd, "ballast", 0) < 0 || cm_journal_finish(&j, &result) != 0)
		return 6;
	if (cm_journal_open(dir_fd, ID, &r, NULL) != CM_OK ||
	    cm_journal_result_read(&r, &result) != 1 || result.lost[CM_JOURNAL_OUT] == 0 ||
	    cm_journal_end(&r, CM_JOURNAL_OUT) != result.bytes[CM_JOURNAL_OUT])
		return 7;
	return 0;
}

static void test_full_disk(void **state)
{
	int e = run_child(fill_disk, *state);

	if (e == NO_MOUNTS)
		skip();
	assert_int_equal(e, 0);
}

static int no_inodes(void *data)
{
	const char *dir = data;
	CM_AUTO_FD int dir_fd = -1;
	struct cm_journal j;
	/* the root, exec, a journal, its request, head and segment 0 */
	int e = make_tmpfs(dir, "size=10M,nr_inodes=6");

	if (e != 0)
		return e;
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (!created(dir_fd, &j))
		return 1;
	if (flood(&j, HEAD + SEGMENT + 8192) != 0 || j.lost[CM_JOURNAL_OUT] < 4096)
		return 2;
	return j.at[CM_JOURNAL_OUT] == HEAD + SEGMENT ? 0 : 3;
}

static void test_no_inodes(void **state)
{
	int e = run_child(no_inodes, *state);

	if (e == NO_MOUNTS)
		skip();
	assert_int_equal(e, 0);
}

/* --- deaths -------------------------------------------------------------------------------- */

struct walk {
	int dir_fd;
	uint64_t id;
};

static int whole_life(void *data)
{
	struct walk *w = data;
	struct cm_journal_result result = { .kind = 1 };
	struct cm_journal j;

	create(w->dir_fd, w->id, &j);
	feed(&j, CM_JOURNAL_OUT, HEAD + 3 * SEGMENT + 5, 60000);
	return cm_journal_finish(&j, &result);
}

static void test_writer_dies(void **state)
{
	CM_AUTO_FD int dir_fd = open_scratch(state);
	struct walk w = { .dir_fd = dir_fd, .id = UINT64_C(3) << 32 };
	char path[80];
	int n_absent = 0;
	int n_open = 0;
	int n_done = 0;

	for (int n = 1; w.id++, kill_walk_killed_at(whole_life, &w, n); n++) {
		struct cm_journal_result result;
		struct cm_journal_reader r;
		struct cm_error err = CM_ERROR_INIT;
		uint64_t gap;
		uint64_t end;
		int code = cm_journal_open(dir_fd, w.id, &r, &err);

		if (code == CM_E_NOT_FOUND) {
			n_absent++;
			continue;
		}
		assert_int_equal(code, CM_OK);
		(void)read_on(&r, CM_JOURNAL_OUT, 0, 70000, &gap, &end);
		assert_int_equal(cm_journal_end(&r, CM_JOURNAL_OUT), end);
		code = cm_journal_result_read(&r, &result);
		assert_true(code == 0 || code == 1);
		if (code == 1)
			assert_int_equal(result.bytes[CM_JOURNAL_OUT], end);
		n_open += code == 0;
		n_done += code == 1;
		cm_journal_reader_close(&r);
	}
	assert_true(n_absent > 10 && n_open > 30 && n_done >= 1);
	/* in a later generation all of them have ended, and what was half made goes */
	cm_journal_prune(dir_fd, 2, 4);
	(void)snprintf(path, sizeof(path), "%s/exec", (const char *)*state);
	assert_int_equal(count_entries(path), 2);
	assert_int_equal(try_open(dir_fd), CM_E_NOT_FOUND);
}

static int remove_it(void *data)
{
	struct walk *w = data;

	return cm_journal_remove(w->dir_fd, w->id);
}

static void test_remover_dies(void **state)
{
	CM_AUTO_FD int dir_fd = open_scratch(state);
	struct walk w = { .dir_fd = dir_fd, .id = ID };
	char path[80];
	int n_whole = 0;
	int n_gone = 0;

	(void)snprintf(path, sizeof(path), "%s/exec", (const char *)*state);
	assert_int_equal(whole_life(&w), 0);
	for (int n = 1; kill_walk_killed_at(remove_it, &w, n); n++) {
		if (try_open(dir_fd) == CM_OK) {
			n_whole++;
			continue;
		}
		n_gone++;
		cm_journal_prune(dir_fd, 0, 0);
		assert_int_equal(count_entries(path), 0);
		w.id = ID;
		assert_int_equal(whole_life(&w), 0);
	}
	assert_true(n_whole >= 3 && n_gone > 10);
	assert_int_equal(count_entries(path), 0);
}

/* --- which are kept ------------------------------------------------------------------------ */

static void make_one(int dir_fd, uint64_t id, bool has_ended)
{
	struct cm_journal_result result = { .kind = 1 };
	struct cm_journal j;

	create(dir_fd, id, &j);
	if (has_ended)
		assert_int_equal(cm_journal_finish(&j, &result), 0);
	cm_journal_close(&j);
}

static uint64_t exec_id(uint32_t generation, uint32_t counter)
{
	return (uint64_t)generation << 32 | counter;
}

static void assert_listed(int dir_fd, const uint64_t *want, size_t n_want)
{
	uint64_t *ids = NULL;
	size_t n = UNTOUCHED;

	assert_int_equal(cm_journal_list(dir_fd, &ids, &n, NULL), CM_OK);
	assert_int_equal(n, n_want);
	for (size_t i = 0; ids && i < n_want; i++)
		assert_int_equal(ids[i], want[i]);
	free(ids);
}

static void test_prune(void **state)
{
	CM_AUTO_FD int dir_fd = open_scratch(state);
	const uint64_t all[] = { exec_id(1, 7), exec_id(2, 1), exec_id(2, 9), exec_id(2, 10),
				 exec_id(2, 11) };
	const uint64_t kept[] = { exec_id(2, 1), exec_id(2, 10), exec_id(2, 11) };
	const uint64_t running[] = { exec_id(2, 1) };

	assert_listed(dir_fd, NULL, 0);
	cm_journal_prune(dir_fd, 0, 9);
	/* the two without a result: of an earlier generation, and one that runs */
	make_one(dir_fd, exec_id(2, 10), true);
	make_one(dir_fd, exec_id(1, 7), false);
	make_one(dir_fd, exec_id(2, 9), true);
	make_one(dir_fd, exec_id(2, 1), false);
	make_one(dir_fd, exec_id(2, 11), true);
	assert_int_equal(mkdirat(dir_fd, "exec/.new-2.12", 0700), 0);
	assert_int_equal(mkdirat(dir_fd, "exec/.new-1.12", 0700), 0);
	assert_int_equal(mkdirat(dir_fd, "exec/.gone-2.3", 0700), 0);
	assert_int_equal(mkdirat(dir_fd, "exec/.gone-2.3/x", 0700), 0);
	make_file(dir_fd, "exec/notes", "of somebody's");
	assert_listed(dir_fd, all, CM_ARRAY_SIZE(all));
	cm_journal_prune(dir_fd, 4, 2);
	assert_listed(dir_fd, all, CM_ARRAY_SIZE(all));
	/* what may be in the making is left */
	assert_int_equal(faccessat(dir_fd, "exec/.new-2.12", F_OK, 0), 0);
	assert_int_equal(faccessat(dir_fd, "exec/.new-1.12", F_OK, 0), -1);
	assert_int_equal(faccessat(dir_fd, "exec/.gone-2.3", F_OK, 0), -1);
	cm_journal_prune(dir_fd, 2, 2);
	assert_listed(dir_fd, kept, CM_ARRAY_SIZE(kept));
	cm_journal_prune(dir_fd, 0, 2);
	assert_listed(dir_fd, running, CM_ARRAY_SIZE(running));
	cm_journal_prune(dir_fd, 0, 3);
	assert_listed(dir_fd, NULL, 0);
	assert_int_equal(faccessat(dir_fd, "exec/notes", F_OK, 0), 0);
}

/* By number, in whatever order the directory has them. */
static void test_prune_the_oldest(void **state)
{
	CM_AUTO_FD int dir_fd = open_scratch(state);
	uint64_t kept[5];

	for (uint32_t i = 0; i < 41; i++)
		make_one(dir_fd, exec_id(1, 1 + i * 7 % 41), true);
	for (uint32_t i = 0; i < CM_ARRAY_SIZE(kept); i++)
		kept[i] = exec_id(1, 37 + i);
	cm_journal_prune(dir_fd, CM_ARRAY_SIZE(kept), 1);
	assert_listed(dir_fd, kept, CM_ARRAY_SIZE(kept));
}

/* --- reading while it is written ----------------------------------------------------------- */

#define LIVE_BYTES (HEAD + 300 * SEGMENT + 77)

static int follow(void *data)
{
	const int *dir_fd = data;
	struct cm_journal_result result;
	struct cm_journal_reader r;
	CM_AUTO_FD int watch_fd = -1;
	uint64_t offset = 0;
	int has_ended = 0;

	open_reader(*dir_fd, ID, &r);
	watch_fd = cm_journal_watch(&r);
	for (;;) {
		struct pollfd p = { .fd = watch_fd, .events = POLLIN };
		char buf[9000];
		ssize_t n = cm_journal_read(&r, CM_JOURNAL_OUT, &offset, buf, sizeof(buf));

		if (n < 0)
			return 2;
		for (ssize_t i = 0; i < n; i++) {
			if (buf[i] != byte_of(offset + (uint64_t)i))
				return 3;
		}
		offset += (uint64_t)n;
		if (n > 0)
			continue;
		if (has_ended)
			return offset == result.bytes[CM_JOURNAL_OUT] ? 0 : 4;
		has_ended = cm_journal_result_read(&r, &result);
		if (has_ended < 0)
			return 5;
		if (has_ended)
			continue;
		/* a watch that tells of nothing would be a hang */
		if (watch_fd >= 0 && poll(&p, 1, 20000) != 1)
			return 6;
		cm_journal_watch_drain(watch_fd);
	}
}

static void test_followers(void **state)
{
	CM_AUTO_FD int dir_fd = open_scratch(state);
	struct cm_journal_result result = { .kind = 1 };
	struct cm_journal j;
	pid_t pids[5];

	create(dir_fd, ID, &j);
	for (size_t i = 0; i < CM_ARRAY_SIZE(pids); i++) {
		pids[i] = fork_child();
		if (pids[i] == 0)
			_exit(follow(&dir_fd));
	}
	feed(&j, CM_JOURNAL_OUT, LIVE_BYTES, 7777);
	assert_int_equal(cm_journal_finish(&j, &result), 0);
	for (size_t i = 0; i < CM_ARRAY_SIZE(pids); i++) {
		int status = -1;

		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	cm_journal_close(&j);
}

struct reading {
	int dir_fd;
	uint64_t from;
};

/* The next bytes, which nothing is missing before. */
static int read_next(void *data)
{
	const struct reading *reading = data;
	struct cm_journal_reader r;
	uint64_t at = reading->from;
	char buf[100];
	ssize_t n;

	open_reader(reading->dir_fd, ID, &r);
	/* the file that they come in, or would have come in, is open */
	at--;
	n = cm_journal_read(&r, CM_JOURNAL_OUT, &at, buf, 1);
	if (n != 1 || at != reading->from - 1)
		return 2;
	at++;
	n = cm_journal_read(&r, CM_JOURNAL_OUT, &at, buf, sizeof(buf));
	if (n < 0 || at != reading->from)
		return 3;
	for (ssize_t i = 0; i < n; i++) {
		if (buf[i] != byte_of(at + (uint64_t)i))
			return 4;
	}
	return 0;
}

/* The writer begins another segment at each step of a reader that waits in the one before. */
static void test_writer_meanwhile(void **state)
{
	CM_AUTO_FD int dir_fd = open_scratch(state);
	struct reading reading = { .dir_fd = dir_fd, .from = HEAD + 100 };
	int n = 1;

	for (;; n++) {
		struct cm_journal j;
		int status = -1;
		pid_t pid;

		create(dir_fd, ID, &j);
		feed(&j, CM_JOURNAL_OUT, HEAD + 100, 60000);
		pid = kill_walk_stopped_at(read_next, &reading, n);
		feed(&j, CM_JOURNAL_OUT, SEGMENT, 60000);
		cm_journal_close(&j);
		if (pid >= 0) {
			assert_int_equal(ptrace(PTRACE_DETACH, pid, NULL, NULL), 0);
			assert_int_equal(waitpid(pid, &status, 0), pid);
			assert_int_equal(status, 0);
		}
		assert_int_equal(cm_journal_remove(dir_fd, ID), 0);
		if (pid < 0)
			break;
	}
	assert_true(n > 20);
}

/* --- out of memory ------------------------------------------------------------------------- */

static bool open_and_list(void *data)
{
	const int *dir_fd = data;
	struct cm_error err = CM_ERROR_INIT;
	struct cm_journal_reader r;
	uint64_t *ids = NULL;
	size_t n;
	int code = cm_journal_open(*dir_fd, ID, &r, &err);

	if (code == CM_OK) {
		cm_journal_reader_close(&r);
		code = cm_journal_list(*dir_fd, &ids, &n, &err);
	}
	free(ids);
	assert_true(code == CM_OK || err.sys_errno == ENOMEM);
	return code == CM_OK;
}

static void test_no_memory(void **state)
{
	CM_AUTO_FD int dir_fd = open_scratch(state);

	make_one(dir_fd, ID, true);
	assert_true(fail_each_allocation(open_and_list, &dir_fd) >= 2);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)
	const struct CMUnitTest tests[] = {
		T(test_keeps_both_ends),
		T(test_is_bounded_and_private),
		T(test_request_comes_back),
		T(test_create_refuses),
		T(test_exec_ids),
		T(test_damaged_result),
		T(test_damaged_request),
		T(test_short_segment),
		T(test_terminal),
		T(test_file_size_limit),
		T(test_full_disk),
		T(test_no_inodes),
		T(test_writer_dies),
		T(test_remover_dies),
		T(test_prune),
		T(test_prune_the_oldest),
		T(test_writer_meanwhile),
		T(test_followers),
		T(test_no_memory),
	};
#undef T
	return cmocka_run_group_tests(tests, NULL, NULL);
}
