/* SPDX-License-Identifier: Apache-2.0 */
/* Events: numbered once and in order, whoever writes and dies; read while the log is turned over. */
#include "tests/unit/test_base.h"

#include <sys/file.h>
#include <sys/resource.h>

#include "runtime/base/json.h"
#include "runtime/store/events.h"
#include "tests/unit/kill_walk.h"

static void write_event(struct cm_event_log *log, const char *type, uint64_t exec_id, size_t pad)
{
	struct cm_event e;
	char *text = malloc(pad + 1);

	assert_non_null(text);
	memset(text, 'p', pad);
	text[pad] = '\0';
	cm_event_begin(&e, log, type, exec_id);
	cm_jw_kstring(&e.w, "pad", text);
	cm_event_end(&e);
	free(text);
}

static struct cm_event_log log_of(int dir_fd)
{
	return (struct cm_event_log){ .dir_fd = dir_fd, .session = "a" };
}

static uint64_t number_of(const struct cm_json *event, const char *key)
{
	return (uint64_t)cm_json_int(event, key, 0);
}

/* The next event; NULL: there is none now. */
static struct cm_json_doc *next_event(struct cm_event_reader *r)
{
	struct cm_json_doc *doc = NULL;
	struct cm_error err = CM_ERROR_INIT;
	const char *line;
	size_t len;
	int n = cm_event_reader_next(r, &line, &len);

	assert_true(n >= 0);
	if (n > 0 && cm_json_parse(line, len, "event", 0, &doc, &err) != CM_OK)
		fail_msg("%s: %.*s", err.msg, (int)len, line);
	return doc;
}

static struct cm_event_reader open_events(int dir_fd)
{
	struct cm_event_reader r;

	assert_int_equal(cm_event_reader_open(dir_fd, &r), 0);
	return r;
}

/* Reads all; how many there are, and the last one's number. */
static uint64_t count_events(struct cm_event_reader *r, uint64_t *seq, uint64_t *ret_dropped)
{
	struct cm_json_doc *doc;
	uint64_t n = 0;

	while ((doc = next_event(r)) != NULL) {
		uint64_t next = number_of(cm_json_root(doc), "seq");

		if (next <= *seq)
			fail_msg("%llu after %llu", (unsigned long long)next,
				 (unsigned long long)*seq);
		*seq = next;
		*ret_dropped += number_of(cm_json_root(doc), "dropped");
		cm_json_free(doc);
		n++;
	}
	return n;
}

static void assert_all(int dir_fd, uint64_t n_want, uint64_t last_want)
{
	struct cm_event_reader r = open_events(dir_fd);
	uint64_t dropped = 0;
	uint64_t seq = 0;

	assert_int_equal(count_events(&r, &seq, &dropped), n_want);
	assert_int_equal(seq, last_want);
	cm_event_reader_close(&r);
}

static void test_line(void **state)
{
	CM_AUTO_FD int dir_fd = open_scratch(state);
	struct cm_event_log log = log_of(dir_fd);
	struct cm_event_reader r;
	const struct cm_json *event;
	struct cm_json_doc *doc;
	struct cm_event e;
	struct stat st;

	cm_event_begin(&e, &log, "exec.ended", UINT64_C(3) << 32 | 17);
	cm_jw_kint(&e.w, "status", -1);
	cm_jw_kstring(&e.w, "text", "a\nb\x1b]0;x\a\xff");
	cm_event_end(&e);
	cm_event_begin(&e, &log, "session.idle", 0);
	cm_event_end(&e);
	r = open_events(dir_fd);
	doc = next_event(&r);
	assert_non_null(doc);
	event = cm_json_root(doc);
	assert_int_equal(number_of(event, "v"), 1);
	assert_int_equal(number_of(event, "seq"), 1);
	assert_true(number_of(event, "mono") > 0);
	assert_int_equal(strlen(cm_json_str(event, "ts", "")), 24);
	assert_string_equal(cm_json_str(event, "session", ""), "a");
	assert_string_equal(cm_json_str(event, "type", ""), "exec.ended");
	assert_string_equal(cm_json_str(event, "exec", ""), "3.17");
	assert_string_equal(cm_json_str(event, "text", ""), "a\nb\x1b]0;x\a\xef\xbf\xbd");
	cm_json_free(doc);
	doc = next_event(&r);
	assert_non_null(doc);
	assert_int_equal(number_of(cm_json_root(doc), "seq"), 2);
	assert_null(cm_json_get(cm_json_root(doc), "exec"));
	assert_null(cm_json_get(cm_json_root(doc), "dropped"));
	cm_json_free(doc);
	assert_null(next_event(&r));
	cm_event_reader_close(&r);
	assert_int_equal(fstatat(dir_fd, CM_STORE_EVENTS, &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0600);
}

static void test_drops_and_says_so(void **state)
{
	CM_AUTO_FD int dir_fd = open_scratch(state);
	struct cm_event_log log = log_of(dir_fd);
	struct cm_event_log nowhere = log_of(-1);
	struct cm_event_reader r;
	CM_AUTO_FD int lock_fd = -1;
	uint64_t dropped = 0;
	uint64_t seq = 0;

	write_event(&nowhere, "x.y", 0, 1);
	assert_int_equal(nowhere.dropped, 1);
	/* too long a line */
	write_event(&log, "x.y", 0, CM_EVENT_MAX);
	assert_int_equal(log.dropped, 1);
	/* somebody holds the lock */
	write_event(&log, "x.y", 0, 1);
	assert_int_equal(log.dropped, 0);
	lock_fd = openat(dir_fd, CM_STORE_EVENTS_SEQ, O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(lock_fd, LOCK_EX), 0);
	write_event(&log, "x.y", 0, 1);
	write_event(&log, "x.y", 0, 1);
	assert_int_equal(log.dropped, 2);
	cm_fd_close(&lock_fd);
	write_event(&log, "x.y", 0, 1);
	r = open_events(dir_fd);
	assert_int_equal(count_events(&r, &seq, &dropped), 2);
	assert_int_equal(dropped, 3);
	cm_event_reader_close(&r);
	/* what is in the way is not followed */
	assert_int_equal(unlinkat(dir_fd, CM_STORE_EVENTS, 0), 0);
	assert_int_equal(symlinkat("elsewhere", dir_fd, CM_STORE_EVENTS), 0);
	write_event(&log, "x.y", 0, 1);
	assert_int_equal(log.dropped, 1);
	assert_int_equal(faccessat(dir_fd, "elsewhere", F_OK, 0), -1);
}

static int hold_lock(int dir_fd, int ready_fd)
{
	int fd = openat(dir_fd, CM_STORE_EVENTS_SEQ, O_RDWR | O_CLOEXEC);

	if (fd < 0 || flock(fd, LOCK_EX) < 0 || write(ready_fd, "", 1) != 1)
		return 1;
	(void)usleep(4000);
	return 0;
}

/* A lock that is held for a moment is waited for. */
static void test_waits_a_little(void **state)
{
	CM_AUTO_FD int dir_fd = open_scratch(state);
	struct cm_event_log log = log_of(dir_fd);
	int n_written = 0;

	write_event(&log, "x.y", 0, 1);
	/* the moment may be longer on a machine that has much to do */
	for (int i = 0; i < 20; i++) {
		uint64_t before = log.dropped;
		int fds[2];
		int status;
		char c;
		pid_t pid;

		assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
		pid = fork_child();
		if (pid == 0)
			_exit(hold_lock(dir_fd, fds[1]));
		assert_int_equal(read(fds[0], &c, 1), 1);
		write_event(&log, "x.y", 0, 1);
		n_written += log.dropped <= before && log.dropped == 0;
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		cm_fd_close(&fds[0]);
		cm_fd_close(&fds[1]);
	}
	assert_true(n_written > 0);
}

static void test_turns_over(void **state)
{
	CM_AUTO_FD int dir_fd = open_scratch(state);
	struct cm_event_log log = log_of(dir_fd);
	struct cm_event_reader r = open_events(dir_fd);
	uint64_t dropped = 0;
	uint64_t seq = 0;
	struct stat st;

	/* the reader is never more than one log behind, so it sees all of them */
	for (uint64_t n = 1; n <= 1200; n++) {
		write_event(&log, "x.y", 0, 14000);
		if (n % 200 == 0)
			assert_int_equal(count_events(&r, &seq, &dropped), 200);
	}
	assert_int_equal(seq, 1200);
	assert_int_equal(log.dropped, 0);
	assert_int_equal(fstatat(dir_fd, CM_STORE_EVENTS, &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_in_range(st.st_size, 1, CM_EVENTS_MAX);
	assert_int_equal(fstatat(dir_fd, CM_STORE_EVENTS_OLD, &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_in_range(st.st_size, CM_EVENTS_MAX - CM_EVENT_MAX, CM_EVENTS_MAX);
	/* one that comes later has what is kept; one that is far behind goes on with it */
	cm_event_reader_close(&r);
	r = open_events(dir_fd);
	seq = 0;
	assert_in_range(count_events(&r, &seq, &dropped), 298, 600);
	assert_int_equal(seq, 1200);
	for (int n = 0; n < 1000; n++)
		write_event(&log, "x.y", 0, 14000);
	/* the log that it had open, too */
	assert_in_range(count_events(&r, &seq, &dropped), 298, 900);
	assert_int_equal(seq, 2200);
	cm_event_reader_close(&r);
}

#define N_EACH 4000

static int write_many(void *data)
{
	const int *dir_fd = data;
	struct cm_event_log log = log_of(*dir_fd);

	for (int i = 0; i < N_EACH; i++)
		write_event(&log, "x.y", 0, 1500);
	/* the last one says what was dropped since the one before */
	while (log.dropped > 0)
		write_event(&log, "x.last", 0, 1);
	return 0;
}

/* Two writers at once, over several logs, and a reader all the while. */
static void test_two_writers(void **state)
{
	CM_AUTO_FD int dir_fd = open_scratch(state);
	struct cm_event_reader r = open_events(dir_fd);
	uint64_t dropped = 0;
	uint64_t seq = 0;
	uint64_t n = 0;
	int n_alive = 2;
	pid_t pids[2];

	for (int i = 0; i < 2; i++) {
		pids[i] = fork_child();
		if (pids[i] == 0)
			_exit(write_many(&dir_fd));
	}
	while (n_alive > 0) {
		int status = 0;

		n += count_events(&r, &seq, &dropped);
		for (int i = 0; i < 2; i++) {
			if (pids[i] > 0 && waitpid(pids[i], &status, WNOHANG) == pids[i]) {
				assert_int_equal(status, 0);
				pids[i] = 0;
				n_alive--;
			}
		}
	}
	n += count_events(&r, &seq, &dropped);
	cm_event_reader_close(&r);
	/* each number once and in order: as many as the last one says, unless the reader fell behind */
	assert_true(n <= seq);
	assert_true(n > N_EACH);
	assert_in_range(seq, 2 * N_EACH - dropped, 2 * N_EACH + dropped);
}

/* --- damage -------------------------------------------------------------------------------- */

static void add_text(int dir_fd, const char *name, const char *text)
{
	CM_AUTO_FD int fd = openat(dir_fd, name, O_WRONLY | O_APPEND | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(cm_write_all(fd, text, strlen(text)), 0);
}

static void test_recovers(void **state)
{
	CM_AUTO_FD int dir_fd = open_scratch(state);
	struct cm_event_log log = log_of(dir_fd);

	for (int i = 0; i < 5; i++)
		write_event(&log, "x.y", 0, 1);
	/* half a line, of one that died */
	add_text(dir_fd, CM_STORE_EVENTS, "{\"v\":1,\"seq\":6,\"ts\":");
	write_event(&log, "x.y", 0, 1);
	assert_all(dir_fd, 6, 6);
	/* the number was lost, or is an old one */
	make_file(dir_fd, CM_STORE_EVENTS_SEQ, "");
	write_event(&log, "x.y", 0, 1);
	make_file(dir_fd, CM_STORE_EVENTS_SEQ, "\1\1\1");
	write_event(&log, "x.y", 0, 1);
	assert_int_equal(unlinkat(dir_fd, CM_STORE_EVENTS_SEQ, 0), 0);
	write_event(&log, "x.y", 0, 1);
	assert_all(dir_fd, 9, 9);
	/* the number, and the log that had it */
	assert_int_equal(renameat(dir_fd, CM_STORE_EVENTS, dir_fd, CM_STORE_EVENTS_OLD), 0);
	assert_int_equal(unlinkat(dir_fd, CM_STORE_EVENTS_SEQ, 0), 0);
	write_event(&log, "x.y", 0, 1);
	assert_all(dir_fd, 10, 10);
	/* the log alone was lost */
	assert_int_equal(unlinkat(dir_fd, CM_STORE_EVENTS, 0), 0);
	write_event(&log, "x.y", 0, 1);
	assert_all(dir_fd, 10, 11);
	assert_int_equal(log.dropped, 0);
}

/* Each bit of the number's file: no number comes twice, nor does one go back. */
static void test_flipped_number(void **state)
{
	CM_AUTO_FD int dir_fd = open_scratch(state);
	struct cm_event_log log = log_of(dir_fd);
	uint64_t n_events = 1;
	unsigned char data[64];
	ssize_t n;

	write_event(&log, "x.y", 0, 1);
	n = cm_read_file_at(dir_fd, CM_STORE_EVENTS_SEQ, (char *)data, sizeof(data));
	assert_true(n > 0);
	for (unsigned int bit = 0; bit < (unsigned int)n * 8; bit++, n_events++) {
		CM_AUTO_FD int fd = openat(dir_fd, CM_STORE_EVENTS_SEQ, O_RDWR | O_CLOEXEC);

		assert_int_equal(pread(fd, data, 1, bit / 8), 1);
		data[0] = (unsigned char)(data[0] ^ 1U << bit % 8);
		assert_int_equal(pwrite(fd, data, 1, bit / 8), 1);
		write_event(&log, "x.y", 0, 1);
	}
	assert_all(dir_fd, n_events, n_events);
}

static int write_past_limit(void *data)
{
	const int *dir_fd = data;
	struct cm_event_log log = log_of(*dir_fd);
	struct rlimit limit;

	(void)signal(SIGXFSZ, SIG_IGN);
	write_event(&log, "x.y", 0, 5000);
	if (getrlimit(RLIMIT_FSIZE, &limit) < 0)
		return 2;
	limit.rlim_cur = 8000;
	if (setrlimit(RLIMIT_FSIZE, &limit) < 0)
		return 3;
	/* a part of it is written, and is nobody's line */
	write_event(&log, "x.y", 0, 5000);
	write_event(&log, "x.y", 0, 5000);
	if (log.dropped != 2)
		return 4;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_FSIZE, &limit) < 0)
		return 5;
	write_event(&log, "x.y", 0, 10);
	return log.dropped == 0 ? 0 : 6;
}

static void test_full_disk(void **state)
{
	CM_AUTO_FD int dir_fd = open_scratch(state);
	struct cm_event_reader r;
	uint64_t dropped = 0;
	uint64_t seq = 0;

	assert_int_equal(run_child(write_past_limit, &dir_fd), 0);
	r = open_events(dir_fd);
	assert_int_equal(count_events(&r, &seq, &dropped), 2);
	assert_int_equal(dropped, 2);
	cm_event_reader_close(&r);
}

static int write_one(void *data)
{
	const int *dir_fd = data;
	struct cm_event_log log = log_of(*dir_fd);

	write_event(&log, "x.y", 0, 14000);
	return log.dropped == 0 ? 0 : 1;
}

/* Deaths everywhere, and the turning over of the log among them. */
static void test_writer_dies(void **state)
{
	CM_AUTO_FD int dir_fd = open_scratch(state);
	struct cm_event_log log = log_of(dir_fd);
	struct cm_event_reader r = open_events(dir_fd);
	uint64_t dropped = 0;
	uint64_t seq = 0;
	uint64_t before = 0;
	int n_written = 0;
	int n_not = 0;

	for (int round = 0; round < 2; round++) {
		int n = 1;

		/* in the second one the next line does not fit any more */
		while (round == 1 && before++ < 294)
			write_event(&log, "x.y", 0, 14000);
		(void)count_events(&r, &seq, &dropped);
		for (; kill_walk_killed_at(write_one, &dir_fd, n); n++) {
			uint64_t got = count_events(&r, &seq, &dropped);

			assert_true(got <= 1);
			n_written += got == 1;
			n_not += got == 0;
		}
		assert_true(n > 12);
		assert_int_equal(count_events(&r, &seq, &dropped), 1);
	}
	assert_true(n_written >= 2 && n_not > 12);
	write_event(&log, "x.y", 0, 1);
	assert_int_equal(count_events(&r, &seq, &dropped), 1);
	cm_event_reader_close(&r);
}

struct reading {
	int dir_fd;
	/* 0: those that are there */
	uint64_t last;
};

/* Reads on until it has the last one; none is missing. */
static int read_until(void *data)
{
	const struct reading *reading = data;
	struct cm_event_reader r = open_events(reading->dir_fd);
	struct cm_json_doc *doc;
	uint64_t seq = 0;

	for (int i = 0; i < 5000; i++) {
		while ((doc = next_event(&r)) != NULL) {
			if (number_of(cm_json_root(doc), "seq") != ++seq)
				return 2;
			cm_json_free(doc);
		}
		if (seq >= reading->last)
			return 0;
		(void)usleep(1000);
	}
	return 3;
}

static off_t size_of(int dir_fd)
{
	struct stat st;

	assert_int_equal(fstatat(dir_fd, CM_STORE_EVENTS, &st, AT_SYMLINK_NOFOLLOW), 0);
	return st.st_size;
}

/* A log that one more line fits in; how many it has. */
static uint64_t make_full(int dir_fd)
{
	struct cm_event_log log = log_of(dir_fd);
	off_t line_max;
	uint64_t n = 0;

	assert_int_equal(cm_remove_tree_at(dir_fd, CM_STORE_EVENTS), 0);
	assert_int_equal(cm_remove_tree_at(dir_fd, CM_STORE_EVENTS_OLD), 0);
	assert_int_equal(cm_remove_tree_at(dir_fd, CM_STORE_EVENTS_SEQ), 0);
	do {
		write_event(&log, "x.y", 0, 14000);
		n++;
		/* numbers become longer */
		line_max = size_of(dir_fd) / (off_t)n + 20;
	} while (size_of(dir_fd) + 2 * line_max < (off_t)CM_EVENTS_MAX);
	assert_int_equal(log.dropped, 0);
	return n;
}

/* One more line fits, and then the log is turned over, at each of the last steps of a reader. */
static void test_turned_over_meanwhile(void **state)
{
	CM_AUTO_FD int dir_fd = open_scratch(state);
	struct reading reading = { .dir_fd = dir_fd, .last = 0 };
	struct cm_event_log log = log_of(dir_fd);
	int n_steps = 1;

	(void)make_full(dir_fd);
	while (kill_walk_killed_at(read_until, &reading, n_steps))
		n_steps += 10;
	for (int n = n_steps - 30; n < n_steps; n++) {
		int status = -1;
		pid_t pid;

		reading.last = make_full(dir_fd) + 3;
		pid = kill_walk_stopped_at(read_until, &reading, n);
		assert_true(pid > 0);
		write_event(&log, "x.y", 0, 14000);
		assert_int_equal(faccessat(dir_fd, CM_STORE_EVENTS_OLD, F_OK, 0), -1);
		write_event(&log, "x.y", 0, 14000);
		assert_int_equal(faccessat(dir_fd, CM_STORE_EVENTS_OLD, F_OK, 0), 0);
		write_event(&log, "x.y", 0, 14000);
		assert_int_equal(log.dropped, 0);
		assert_int_equal(ptrace(PTRACE_DETACH, pid, NULL, NULL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
}

static void test_reader_of_damage(void **state)
{
	CM_AUTO_FD int dir_fd = open_scratch(state);
	struct cm_event_log log = log_of(dir_fd);
	struct cm_event_reader r = open_events(dir_fd);
	char *long_line = malloc(200001);
	const char *line;
	size_t len;
	int n_lines = 0;

	assert_non_null(long_line);
	assert_int_equal(cm_event_reader_next(&r, &line, &len), 0);
	/* a line that no writer writes is passed over, in pieces, and what follows it is found */
	memset(long_line, 'x', 200000);
	long_line[199999] = '\n';
	long_line[200000] = '\0';
	make_file(dir_fd, CM_STORE_EVENTS, long_line);
	write_event(&log, "x.y", 0, 1);
	while (cm_event_reader_next(&r, &line, &len) == 1)
		n_lines++;
	assert_in_range(n_lines, 1, 2);
	/* half a line is none, until it is whole */
	add_text(dir_fd, CM_STORE_EVENTS, "{\"v\":");
	assert_int_equal(cm_event_reader_next(&r, &line, &len), 0);
	add_text(dir_fd, CM_STORE_EVENTS, "2}\n");
	assert_int_equal(cm_event_reader_next(&r, &line, &len), 1);
	assert_int_equal(len, strlen("{\"v\":2}"));
	assert_memory_equal(line, "{\"v\":2}", len);
	/* the session is removed */
	assert_int_equal(cm_event_reader_next(&r, &line, &len), 0);
	cm_fd_close(&dir_fd);
	assert_int_equal(cm_remove_tree_at(AT_FDCWD, *state), 0);
	assert_int_equal(cm_event_reader_next(&r, &line, &len), -ESTALE);
	cm_event_reader_close(&r);
	free(long_line);
}

static bool open_reader(void *data)
{
	struct cm_event_reader r;
	int n = cm_event_reader_open(*(int *)data, &r);

	assert_true(n == 0 || n == -ENOMEM);
	if (n == 0)
		cm_event_reader_close(&r);
	return n == 0;
}

static bool write_is_kept(void *data)
{
	struct cm_event_log log = log_of(*(int *)data);
	struct cm_event e;

	cm_event_begin(&e, &log, "x.y", 1);
	cm_event_end(&e);
	return log.dropped == 0;
}

static void test_no_memory(void **state)
{
	CM_AUTO_FD int dir_fd = open_scratch(state);
	size_t n_fds = count_fds();

	assert_true(fail_each_allocation(open_reader, &dir_fd) >= 1);
	assert_true(fail_each_allocation(write_is_kept, &dir_fd) >= 2);
	assert_all(dir_fd, 1, 1);
	assert_int_equal(count_fds(), n_fds);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)
	const struct CMUnitTest tests[] = {
		T(test_line),
		T(test_drops_and_says_so),
		T(test_waits_a_little),
		T(test_turns_over),
		T(test_two_writers),
		T(test_recovers),
		T(test_flipped_number),
		T(test_full_disk),
		T(test_writer_dies),
		T(test_turned_over_meanwhile),
		T(test_reader_of_damage),
		T(test_no_memory),
	};
#undef T
	return cmocka_run_group_tests(tests, NULL, NULL);
}
