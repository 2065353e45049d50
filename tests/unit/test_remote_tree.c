/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees into a session and out of it, with GNU's tar and with busybox's; and streams that nobody sane
 * would send.
 */
#include "providers/remote/tree.h"

#include <archive.h>
#include <archive_entry.h>
#include <sys/inotify.h>
#include <sys/sysmacros.h>
#include <sys/timerfd.h>

#include "runtime/base/clock.h"
#include "tests/unit/fake_provider.h"
#include "tests/unit/test_base.h"

#define ODD "-n \n'\"$(id)`*?[\\\xff\xfe é"
#define MB (1024UL * 1024)

static struct fake_provider fake;
static char host[64];
static int host_fd = -1;
static struct cm_file_receiver receiver;
static unsigned int n_failed;
static char failures[4096];
/* of the calls */
static int cancel_fd = -1;

static int failed(void *data, enum cm_file_step step, int error, const char *path)
{
	size_t len = strlen(failures);

	(void)data;
	n_failed++;
	(void)snprintf(failures + len, sizeof(failures) - len, "%d %d %s|", (int)step, error, path);
	return 0;
}

static int open_with(const char *shell)
{
	n_failed = 0;
	failures[0] = '\0';
	cancel_fd = -1;
	(void)snprintf(host, sizeof(host), "/tmp/cm-test-host-XXXXXX");
	if (!mkdtemp(host))
		return -1;
	host_fd = open(host, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (!fake_provider_open(&fake, shell))
		fake.top[0] = '\0';
	return 0;
}

static int open_dash(void **state)
{
	(void)state;
	return open_with("dash");
}

static int open_busybox(void **state)
{
	int r = open_with("busybox");
	char path[256];

	(void)state;
	/* a provider's own tar is the one that is meant */
	(void)snprintf(path, sizeof(path), "%s/bin/tar", fake.top);
	return r;
}

static int close_all(void **state)
{
	(void)state;
	close(host_fd);
	(void)cm_remove_tree_at(AT_FDCWD, host);
	if (fake.top[0] != '\0')
		fake_provider_close(&fake);
	return 0;
}

static void need_session(void)
{
	if (fake.top[0] == '\0')
		skip();
}

static bool was_told(enum cm_file_step step, int error, const char *path)
{
	CM_AUTO_FREE char *want = cm_asprintf("%d %d %s|", (int)step, error, path);

	return strstr(failures, want) != NULL;
}

static int open_work(void)
{
	int fd = open(fake.work, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static struct stat look(int dirfd, const char *path)
{
	struct stat st = { .st_mode = 0 };

	(void)fstatat(dirfd, path, &st, AT_SYMLINK_NOFOLLOW);
	return st;
}

static void expect_text(int dirfd, const char *path, const char *want)
{
	char text[256] = "";

	assert_true(cm_read_file_at(dirfd, path, text, sizeof(text)) >= 0);
	assert_string_equal(text, want);
}

static void expect_link(int dirfd, const char *path, const char *want)
{
	char text[256] = "";

	assert_true(readlinkat(dirfd, path, text, sizeof(text) - 1) > 0);
	assert_string_equal(text, want);
}

/* --- a tree ---------------------------------------------------------------------------------- */

static void make_sparse(int dirfd, const char *name)
{
	int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	assert_int_equal(pwrite(fd, "begin", 5, 0), 5);
	assert_int_equal(pwrite(fd, "middle", 6, 3 * (off_t)MB), 6);
	assert_int_equal(ftruncate(fd, 8 * (off_t)MB), 0);
	close(fd);
}

static void make_tree(int dirfd)
{
	const struct timespec times[2] = { { 1500000000, 0 }, { 1500000000, 123456789 } };
	char deep[300];

	memset(deep, 'x', 200);
	deep[200] = '\0';
	assert_int_equal(mkdirat(dirfd, "t", 0755), 0);
	assert_int_equal(mkdirat(dirfd, "t/" ODD, 0750), 0);
	make_file(dirfd, "t/" ODD "/f", "one");
	make_file(dirfd, "t/set", "x");
	/* in a jail no set-id bit can be made */
	assert_true(fchmodat(dirfd, "t/set", 04755, 0) == 0 ||
		    (errno == EPERM && fchmodat(dirfd, "t/set", 0755, 0) == 0));
	make_file(dirfd, "t/empty", "");
	assert_int_equal(symlinkat(ODD "/f", dirfd, "t/in"), 0);
	assert_int_equal(symlinkat("/etc/passwd", dirfd, "t/out"), 0);
	assert_int_equal(linkat(dirfd, "t/" ODD "/f", dirfd, "t/hard", 0), 0);
	assert_int_equal(mkfifoat(dirfd, "t/fifo", 0600), 0);
	assert_int_equal(mkdirat(dirfd, "t/ro", 0755), 0);
	make_file(dirfd, "t/ro/f", "in");
	/* who is not root cannot put anything into one a second time, nor busybox's tar the first */
	assert_int_equal(fchmodat(dirfd, "t/ro", geteuid() == 0 ? 0555 : 0755, 0), 0);
	make_sparse(dirfd, "t/sparse");
	{
		CM_AUTO_FREE char *path = cm_asprintf("t/%s", deep);
		CM_AUTO_FREE char *below = cm_asprintf("t/%s/%s", deep, deep);

		assert_int_equal(mkdirat(dirfd, path, 0755), 0);
		make_file(dirfd, below, "long");
	}
	assert_int_equal(utimensat(dirfd, "t/empty", times, 0), 0);
}

static void check_tree(int dirfd, const char *top, bool is_gnu, bool has_ns)
{
	struct stat st;
	char deep[300];
	int fd;
	char middle[6];

	memset(deep, 'x', 200);
	deep[200] = '\0';
	fd = openat(dirfd, top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(look(fd, ODD).st_mode, S_IFDIR | 0750);
	expect_text(fd, ODD "/f", "one");
	expect_text(fd, "hard", "one");
	assert_int_equal(look(fd, "set").st_mode, S_IFREG | 0755);
	st = look(fd, "empty");
	assert_int_equal(st.st_mtim.tv_sec, 1500000000);
	if (has_ns)
		assert_int_equal(st.st_mtim.tv_nsec, 123456789);
	expect_link(fd, "in", ODD "/f");
	assert_int_equal(look(fd, "out").st_mode, 0);
	assert_int_equal(look(fd, "fifo").st_mode, 0);
	assert_int_equal(look(fd, "ro").st_mode, S_IFDIR | (geteuid() == 0 ? 0555 : 0755));
	expect_text(fd, "ro/f", "in");
	st = look(fd, "sparse");
	assert_int_equal(st.st_size, 8 * MB);
	if (is_gnu)
		assert_true(st.st_blocks * 512 < 2 * (long)MB);
	{
		int sparse = openat(fd, "sparse", O_RDONLY | O_CLOEXEC);

		assert_int_equal(pread(sparse, middle, 6, 3 * (off_t)MB), 6);
		assert_memory_equal(middle, "middle", 6);
		close(sparse);
	}
	{
		CM_AUTO_FREE char *below = cm_asprintf("%s/%s", deep, deep);

		expect_text(fd, below, "long");
	}
	close(fd);
}

/* --- into ------------------------------------------------------------------------------------ */

static int put(const char *name, const char *to_dir, const char *to_name, struct cm_tree_sent *sent,
	       struct cm_error *err)
{
	const struct cm_tree_source source = {
		.dirfd = host_fd, .name = name, .path = name, .failed = failed
	};
	struct cm_call call = fake_call();

	call.cancel_fd = cancel_fd;
	*err = (struct cm_error)CM_ERROR_INIT;
	return cm_tree_put(&fake.session, &source, to_dir, to_name, &call, sent, err);
}

static void try_put(bool is_gnu)
{
	struct cm_tree_sent sent;
	struct cm_error err;
	CM_AUTO_FD int work = open_work();

	make_tree(host_fd);
	if (put("t", ".", "copy", &sent, &err) < 0)
		fail_msg("%s", err.msg);
	check_tree(work, "copy", is_gnu, is_gnu);
	assert_true(sent.has_failed);
	assert_int_equal(sent.n_stripped, (look(host_fd, "t/set").st_mode & S_ISUID) != 0 ? 1 : 0);
	assert_int_equal(n_failed, 2);
	assert_non_null(strstr(failures, "t/out|"));
	assert_non_null(strstr(failures, "t/fifo|"));
	/* again, over it; and its content alone */
	assert_int_equal(put("t", ".", "copy", &sent, &err), CM_OK);
	assert_int_equal(mkdirat(work, "into", 0700), 0);
	assert_int_equal(put("t", "into", "", &sent, &err), CM_OK);
	check_tree(work, "into", is_gnu, is_gnu);
	assert_int_equal(look(work, "into").st_mode, S_IFDIR | 0700);
	/* a file */
	make_file(host_fd, "one", "1");
	assert_int_equal(put("one", fake.work, "-two", &sent, &err), CM_OK);
	expect_text(work, "-two", "1");
	n_failed = 0;
	assert_int_equal(put("one", ".", "", &sent, &err), CM_OK);
	assert_int_equal(n_failed, 1);
	assert_int_equal(put("missing", ".", "m", &sent, &err), CM_OK);
	assert_int_equal(n_failed, 2);
	assert_int_equal(put("one", "none", "x", &sent, &err), CM_E_NOT_FOUND);
	assert_int_equal(put("one", "-two", "x", &sent, &err), CM_E_INVALID);
	assert_int_equal(put("one", ".", "../x", &sent, &err), CM_E_INVALID);
}

static void test_put_gnu(void **state)
{
	(void)state;
	need_session();
	try_put(true);
}

static void test_put_busybox(void **state)
{
	(void)state;
	need_session();
	try_put(false);
}

static void test_put_by_file(void **state)
{
	(void)state;
	need_session();
	fake.base.caps &= ~(uint32_t)CM_CAP_STDIN;
	try_put(true);
	assert_int_equal(n_failed, 2);
}

/* A file that is all hole makes no bytes for hours. */
static void test_put_given_up(void **state)
{
	const struct itimerspec soon = { .it_value = { .tv_nsec = 300000000 } };
	CM_AUTO_FD int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	CM_AUTO_FD int fd = openat(host_fd, "huge", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	struct cm_tree_source source = {
		.dirfd = host_fd, .name = "huge", .path = "huge", .failed = failed
	};
	struct cm_call call = fake_call();
	struct cm_tree_sent sent;
	struct cm_error err = CM_ERROR_INIT;
	int64_t begun = cm_clock_mono_ms();

	(void)state;
	need_session();
	if (ftruncate(fd, 8 * 1024 * 1024 * (off_t)MB) < 0)
		skip();
	assert_int_equal(timerfd_settime(timer, 0, &soon, NULL), 0);
	cancel_fd = timer;
	assert_int_equal(put("huge", ".", "huge", &sent, &err), CM_E_CANCELLED);
	call.deadline_ms = cm_clock_mono_ms() + 300;
	err = (struct cm_error)CM_ERROR_INIT;
	assert_int_equal(cm_tree_put(&fake.session, &source, ".", "huge", &call, &sent, &err),
			 CM_E_TIMEOUT);
	/* the provider's own end of the file, too */
	fake.base.caps &= ~(uint32_t)CM_CAP_STDIN;
	assert_int_equal(timerfd_settime(timer, 0, &soon, NULL), 0);
	assert_int_equal(put("huge", ".", "huge", &sent, &err), CM_E_CANCELLED);
	assert_true(cm_clock_mono_ms() - begun < 20000);
}

/* --- out of ---------------------------------------------------------------------------------- */

static int get(const char *path, const char *name, struct cm_error *err)
{
	struct cm_call call = fake_call();
	int r;

	call.cancel_fd = cancel_fd;
	*err = (struct cm_error)CM_ERROR_INIT;
	cm_file_receiver_init(&receiver, host_fd, name, "HOST", true);
	receiver.failed = failed;
	receiver.checks_links = true;
	r = cm_tree_get(&fake.session, path, &receiver, &call, err);
	cm_file_receiver_close(&receiver);
	return r;
}

static void try_get(bool is_gnu)
{
	struct cm_error err;
	CM_AUTO_FD int work = open_work();
	CM_AUTO_FREE char *path = cm_asprintf("%s/t/", fake.work);

	make_tree(work);
	if (get("t", "copy", &err) < 0)
		fail_msg("%s", err.msg);
	check_tree(host_fd, "copy", is_gnu, false);
	assert_true(receiver.has_failed);
	assert_int_equal(receiver.n_stripped, (look(work, "t/set").st_mode & S_ISUID) != 0 ? 1 : 0);
	assert_non_null(strstr(failures, "out|"));
	assert_non_null(strstr(failures, "fifo|"));
	assert_int_equal(n_failed, 2);
	assert_int_equal(get(path, "copy2", &err), CM_OK);
	check_tree(host_fd, "copy2", is_gnu, false);
	assert_int_equal(mkdirat(host_fd, "into", 0700), 0);
	{
		CM_AUTO_FD int fd = openat(host_fd, "into", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		const struct cm_call call = fake_call();

		cm_file_receiver_init(&receiver, fd, "", "HOST", false);
		receiver.failed = failed;
		receiver.checks_links = true;
		assert_int_equal(cm_tree_get(&fake.session, "t/.", &receiver, &call, &err), CM_OK);
		cm_file_receiver_close(&receiver);
	}
	check_tree(host_fd, "into", is_gnu, false);
	/* one file, of whatever name */
	make_file(work, ODD, "odd");
	assert_int_equal(get(ODD, "odd", &err), CM_OK);
	expect_text(host_fd, "odd", "odd");
	assert_int_equal(get("none", "x", &err), CM_E_NOT_FOUND);
	assert_int_equal(get(ODD "/x", "x", &err), CM_E_INVALID);
	assert_int_equal(look(host_fd, "x").st_mode, 0);
}

static void test_get_gnu(void **state)
{
	(void)state;
	need_session();
	try_get(true);
}

static void test_get_busybox(void **state)
{
	(void)state;
	need_session();
	try_get(false);
}

/* --- streams of somebody else's making ------------------------------------------------------- */

static struct archive *made;
static struct cm_buf stream;

static la_ssize_t keep(struct archive *a, void *data, const void *bytes, size_t len)
{
	(void)a;
	(void)data;
	cm_buf_append(&stream, bytes, len);
	return (la_ssize_t)len;
}

static void begin_stream(void)
{
	cm_buf_init(&stream, 64 * MB);
	made = archive_write_new();
	assert_int_equal(archive_write_set_format_gnutar(made), ARCHIVE_OK);
	assert_int_equal(archive_write_open(made, NULL, NULL, keep, NULL), ARCHIVE_OK);
}

static void add(unsigned int type, const char *path, const char *target, const char *text)
{
	struct archive_entry *entry = archive_entry_new();

	archive_entry_set_filetype(entry, type);
	archive_entry_set_perm(entry, 0755);
	archive_entry_copy_pathname(entry, path);
	archive_entry_set_size(entry, text ? (la_int64_t)strlen(text) : 0);
	if (type == AE_IFLNK)
		archive_entry_copy_symlink(entry, target);
	else if (target)
		archive_entry_copy_hardlink(entry, target);
	if (type == AE_IFCHR)
		archive_entry_set_rdev(entry, makedev(1, 3));
	assert_true(archive_write_header(made, entry) >= ARCHIVE_WARN);
	if (text)
		assert_true(archive_write_data(made, text, strlen(text)) >= 0);
	archive_entry_free(entry);
}

static int end_stream(struct cm_error *err)
{
	struct fake_answer answer;
	int r;

	assert_int_equal(archive_write_close(made), ARCHIVE_OK);
	archive_write_free(made);
	answer = (struct fake_answer){ stream.data, stream.len, NULL, 0 };
	fake.answers = &answer;
	fake.n_answers = 1;
	r = get("t", "t", err);
	cm_buf_clear(&stream);
	return r;
}

static void test_leads_out(void **state)
{
	struct cm_error err;

	(void)state;
	need_session();
	assert_int_equal(mkdirat(host_fd, "outside", 0755), 0);
	make_file(host_fd, "outside/secret", "mine");
	begin_stream();
	add(AE_IFDIR, "./t/", NULL, NULL);
	add(AE_IFREG, "./t/../outside/a", NULL, "bad");
	add(AE_IFREG, "../outside/b", NULL, "bad");
	add(AE_IFREG, "/tmp/cm-test-absolute", NULL, "bad");
	add(AE_IFREG, "outside/c", NULL, "bad");
	add(AE_IFREG, "t/./x/../../../outside/d", NULL, "bad");
	add(AE_IFLNK, "t/link", "../outside", NULL);
	add(AE_IFREG, "t/link/e", NULL, "through");
	add(AE_IFLNK, "t/ok", "sub", NULL);
	add(AE_IFREG, "t/ok/f", NULL, "through");
	add(AE_IFREG, "t/copied", "../outside/secret", NULL);
	add(AE_IFREG, "t/copied2", "t/ok", NULL);
	add(AE_IFCHR, "t/null", NULL, NULL);
	add(AE_IFIFO, "t/fifo", NULL, NULL);
	add(AE_IFREG, "t/last", NULL, "good");
	assert_int_equal(end_stream(&err), CM_OK);
	assert_true(receiver.has_failed);
	assert_int_equal(count_entries(host), 2);
	assert_int_equal(look(host_fd, "outside/e").st_mode, 0);
	assert_int_equal(access("/tmp/cm-test-absolute", F_OK), -1);
	expect_text(host_fd, "outside/secret", "mine");
	expect_text(host_fd, "t/last", "good");
	expect_link(host_fd, "t/ok", "sub");
	/* where the link was refused, what is below its name is a directory's own */
	assert_true(S_ISDIR(look(host_fd, "t/link").st_mode));
	expect_text(host_fd, "t/link/e", "through");
	assert_int_equal(look(host_fd, "t/copied").st_mode, 0);
	assert_int_equal(look(host_fd, "t/copied2").st_mode, 0);
	assert_int_equal(look(host_fd, "t/null").st_mode, 0);
	/* what is said of a name is not what is said of a link */
	assert_true(was_told(CM_FILE_STEP_CREATE, EINVAL, "./t/../outside/a"));
	assert_true(was_told(CM_FILE_STEP_CREATE, EINVAL, "../outside/b"));
	assert_true(was_told(CM_FILE_STEP_CREATE, EINVAL, "/tmp/cm-test-absolute"));
	assert_true(was_told(CM_FILE_STEP_CREATE, EINVAL, "outside/c"));
	assert_true(was_told(CM_FILE_STEP_LEADS_OUT, 0, "HOST/t/link"));
	assert_true(was_told(CM_FILE_STEP_LINK, EXDEV, "t/copied"));
	assert_true(was_told(CM_FILE_STEP_LINK, EXDEV, "t/copied2"));
}

/* What stands in the directory, and what did, is nobody's to copy. */
static void test_link_to_others(void **state)
{
	struct cm_error err;

	(void)state;
	need_session();
	assert_int_equal(mkdirat(host_fd, "t", 0755), 0);
	assert_int_equal(mkdirat(host_fd, "t/d", 0755), 0);
	make_file(host_fd, "t/d/secret", "mine");
	make_file(host_fd, "t/old", "old");
	begin_stream();
	add(AE_IFREG, "t/stolen", "t/d/secret", NULL);
	add(AE_IFREG, "t/stolen2", "t/old", NULL);
	add(AE_IFREG, "t/none", "t/never", NULL);
	add(AE_IFREG, "t/old", NULL, "new");
	add(AE_IFREG, "t/given", "t/old", NULL);
	add(AE_IFREG, "t/again", "t/given", NULL);
	add(AE_IFREG, "t/stolen3", "t/d/secret", NULL);
	/* enough to remember for the table to grow */
	for (int i = 0; i < 700; i++) {
		char path[32];

		(void)snprintf(path, sizeof(path), "t/many/%d", i);
		add(AE_IFREG, path, NULL, path);
	}
	add(AE_IFREG, "t/first", "t/many/0", NULL);
	add(AE_IFREG, "t/last", "t/many/699", NULL);
	add(AE_IFREG, "t/stolen4", "t/d/secret", NULL);
	assert_int_equal(end_stream(&err), CM_OK);
	assert_int_equal(n_failed, 5);
	assert_true(was_told(CM_FILE_STEP_LINK, EXDEV, "t/stolen"));
	assert_true(was_told(CM_FILE_STEP_LINK, EXDEV, "t/stolen2"));
	assert_true(was_told(CM_FILE_STEP_LINK, EXDEV, "t/none"));
	assert_int_equal(look(host_fd, "t/stolen").st_mode, 0);
	assert_int_equal(look(host_fd, "t/stolen2").st_mode, 0);
	assert_int_equal(look(host_fd, "t/stolen3").st_mode, 0);
	assert_int_equal(look(host_fd, "t/stolen4").st_mode, 0);
	expect_text(host_fd, "t/d/secret", "mine");
	expect_text(host_fd, "t/given", "new");
	expect_text(host_fd, "t/again", "new");
	expect_text(host_fd, "t/first", "t/many/0");
	expect_text(host_fd, "t/last", "t/many/699");
}

/* A few KiB that say 12 GiB, and say it again. */
static void test_link_to_sparse(void **state)
{
	const la_int64_t size = 12 * 1024 * (la_int64_t)MB;
	struct archive_entry *entry = archive_entry_new();
	struct cm_error err;
	struct stat st;

	(void)state;
	need_session();
	cm_buf_init(&stream, MB);
	made = archive_write_new();
	assert_int_equal(archive_write_set_format_pax(made), ARCHIVE_OK);
	assert_int_equal(archive_write_open(made, NULL, NULL, keep, NULL), ARCHIVE_OK);
	archive_entry_set_filetype(entry, AE_IFREG);
	archive_entry_set_perm(entry, 0644);
	archive_entry_copy_pathname(entry, "t/sparse");
	archive_entry_set_size(entry, size);
	archive_entry_sparse_add_entry(entry, 0, 5);
	archive_entry_sparse_add_entry(entry, size, 0);
	assert_true(archive_write_header(made, entry) >= ARCHIVE_WARN);
	assert_int_equal(archive_write_data(made, "begin", 5), 5);
	archive_entry_free(entry);
	add(AE_IFREG, "t/link", "t/sparse", NULL);
	add(AE_IFREG, "t/link2", "t/link", NULL);
	if (end_stream(&err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(n_failed, 0);
	for (int i = 0; i < 2; i++) {
		CM_AUTO_FD int fd = -1;
		char text[6] = "";

		st = look(host_fd, i == 0 ? "t/link" : "t/link2");
		assert_int_equal(st.st_size, size);
		assert_true(st.st_blocks * 512 < (long)MB);
		fd = openat(host_fd, i == 0 ? "t/link" : "t/link2", O_RDONLY | O_CLOEXEC);
		assert_int_equal(pread(fd, text, 5, 0), 5);
		assert_string_equal(text, "begin");
	}
}

/* All links together add as much as the stream had, and 64 MiB. */
static void test_links_add_up(void **state)
{
	static char text[33 * MB + 1];
	struct cm_error err;

	(void)state;
	need_session();
	memset(text, 'x', 33 * MB);
	text[33 * MB] = '\0';
	begin_stream();
	add(AE_IFREG, "t/big", NULL, text);
	add(AE_IFREG, "t/small", NULL, "small");
	add(AE_IFREG, "t/1", "t/big", NULL);
	add(AE_IFREG, "t/2", "t/big", NULL);
	add(AE_IFREG, "t/3", "t/big", NULL);
	add(AE_IFREG, "t/4", "t/small", NULL);
	assert_int_equal(end_stream(&err), CM_OK);
	assert_int_equal(n_failed, 1);
	assert_true(was_told(CM_FILE_STEP_LINK, EFBIG, "t/3"));
	assert_int_equal(look(host_fd, "t/1").st_size, 33 * MB);
	assert_int_equal(look(host_fd, "t/2").st_size, 33 * MB);
	assert_int_equal(look(host_fd, "t/3").st_mode, 0);
	expect_text(host_fd, "t/4", "small");
}

/* Given up while a file is copied, out of the stream or for a link: it ends there. */
static void try_get_given_up(const char *target, const char *text)
{
	CM_AUTO_FD int watch = inotify_init1(IN_CLOEXEC);
	CM_AUTO_FREE char *path = cm_asprintf("%s/t/sub", host);
	struct cm_error err;

	assert_true(watch >= 0);
	(void)mkdirat(host_fd, "t", 0755);
	(void)mkdirat(host_fd, "t/sub", 0755);
	assert_true(inotify_add_watch(watch, path, IN_CREATE) >= 0);
	begin_stream();
	add(AE_IFREG, "t/first", NULL, "first");
	/* what is made tells that it is given up */
	add(AE_IFREG, "t/sub/f", target, text);
	add(AE_IFREG, "t/after", NULL, "after");
	cancel_fd = watch;
	assert_int_equal(end_stream(&err), CM_E_CANCELLED);
	expect_text(host_fd, "t/first", "first");
	assert_int_equal(look(host_fd, "t/sub/f").st_mode, 0);
	assert_int_equal(look(host_fd, "t/after").st_mode, 0);
	cancel_fd = -1;
}

static void test_get_given_up(void **state)
{
	(void)state;
	need_session();
	try_get_given_up("t/first", NULL);
	try_get_given_up(NULL, "content");
}

static void test_order(void **state)
{
	struct cm_error err;

	(void)state;
	need_session();
	begin_stream();
	/* no directories at all, and back and forth */
	add(AE_IFREG, "t/a/b/1", NULL, "1");
	add(AE_IFREG, "t/c/2", NULL, "2");
	add(AE_IFREG, "t/a/b/3", NULL, "3");
	add(AE_IFDIR, "t/a", NULL, NULL);
	add(AE_IFREG, "t/a/4", NULL, "4");
	add(AE_IFREG, "t/a/5", "t/a/b/3", NULL);
	add(AE_IFDIR, "t", NULL, NULL);
	add(AE_IFREG, "t/a/4", NULL, "four");
	assert_int_equal(end_stream(&err), CM_OK);
	expect_text(host_fd, "t/a/b/1", "1");
	expect_text(host_fd, "t/c/2", "2");
	expect_text(host_fd, "t/a/b/3", "3");
	expect_text(host_fd, "t/a/4", "four");
	expect_text(host_fd, "t/a/5", "3");
	assert_int_equal(look(host_fd, "t/a/5").st_nlink, 1);
}

static void test_no_tree(void **state)
{
	char deep[1100] = "t";
	struct cm_error err;

	(void)state;
	need_session();
	begin_stream();
	add(AE_IFREG, "other", NULL, "x");
	assert_int_equal(end_stream(&err), CM_E_PROTOCOL);
	begin_stream();
	assert_int_equal(end_stream(&err), CM_E_PROTOCOL);
	/* a file cannot be gone into */
	begin_stream();
	add(AE_IFREG, "t", NULL, "x");
	add(AE_IFREG, "t/y", NULL, "y");
	assert_int_equal(end_stream(&err), CM_E_PROTOCOL);
	expect_text(host_fd, "t", "x");
	assert_int_equal(unlinkat(host_fd, "t", 0), 0);
	/* as deep as may be, and deeper */
	for (size_t i = 0; i < 400; i++)
		memcpy(deep + strlen(deep), "/d", 3);
	begin_stream();
	add(AE_IFREG, "t/x", NULL, "x");
	add(AE_IFREG, deep, NULL, "deep");
	assert_int_equal(end_stream(&err), CM_OK);
	assert_true(receiver.has_failed);
	assert_true(was_told(CM_FILE_STEP_DEPTH, 0, deep));
	expect_text(host_fd, "t/x", "x");
}

/* Garbage, and a good stream with each of its bytes wrong, or cut off: no crash, and nothing outside. */
static void test_damaged(void **state)
{
	struct cm_buf good;
	struct cm_error err;
	CM_AUTO_FREE char *bad = NULL;

	(void)state;
	need_session();
	begin_stream();
	add(AE_IFDIR, "t", NULL, NULL);
	add(AE_IFREG, "t/a", NULL, "content");
	add(AE_IFLNK, "t/l", "a", NULL);
	assert_int_equal(archive_write_close(made), ARCHIVE_OK);
	archive_write_free(made);
	good = stream;
	bad = malloc(good.len);
	assert_non_null(bad);
	for (size_t i = 0; i < 2048; i += 3) {
		struct fake_answer answer = { bad, good.len, NULL, 0 };

		memcpy(bad, good.data, good.len);
		bad[i] = (char)(bad[i] ^ (1 << (i % 8)));
		if (i % 2 == 0)
			answer.out_len = i;
		fake.answers = &answer;
		fake.n_answers = 1;
		(void)get("t", "t", &err);
		(void)cm_remove_tree_at(host_fd, "t");
		assert_int_equal(count_entries(host), 0);
	}
	cm_buf_clear(&good);
}

/* Sizes that no file has. */
static void test_sizes(void **state)
{
	struct fake_answer answer;
	struct cm_error err;
	char head[1024] = "t";
	unsigned int sum = 0;

	(void)state;
	need_session();
	memcpy(head + 100, "0000644", 8);
	memcpy(head + 108, "0000000", 8);
	memcpy(head + 116, "0000000", 8);
	/* base 256: as much as there can be */
	memset(head + 124, 0xff, 12);
	head[124] = (char)0x80;
	memcpy(head + 136, "00000000000", 12);
	memset(head + 148, ' ', 8);
	head[156] = '0';
	memcpy(head + 257, "ustar  ", 8);
	for (size_t i = 0; i < 512; i++)
		sum += (unsigned char)head[i];
	(void)snprintf(head + 148, 8, "%06o", sum);
	answer = (struct fake_answer){ head, sizeof(head), NULL, 0 };
	fake.answers = &answer;
	fake.n_answers = 1;
	assert_true(get("t", "t", &err) < 0);
	assert_int_equal(look(host_fd, "t").st_mode, 0);
}

#define DASH(test) cmocka_unit_test_setup_teardown(test, open_dash, close_all)
#define BUSYBOX(test) cmocka_unit_test_setup_teardown(test, open_busybox, close_all)

int main(void)
{
	const struct CMUnitTest tests[] = {
		DASH(test_put_gnu),	   BUSYBOX(test_put_busybox), DASH(test_put_by_file),
		DASH(test_get_gnu),	   BUSYBOX(test_get_busybox), DASH(test_leads_out),
		DASH(test_order),	   DASH(test_no_tree),	      DASH(test_damaged),
		DASH(test_sizes),	   DASH(test_put_given_up),   DASH(test_link_to_others),
		DASH(test_link_to_sparse), DASH(test_links_add_up),   DASH(test_get_given_up),
	};

	(void)umask(022);
	return cmocka_run_group_tests_name("remote_tree", tests, NULL, NULL);
}
