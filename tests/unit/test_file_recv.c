/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tree out of frames that nobody sane would send, into a directory that somebody has prepared: nothing
 * is made or changed outside of it, and what is not whole is not left.
 */
#include "isolation/keeper/file_recv.h"

#include "tests/unit/test_base.h"

static char top[32];
static int top_fd;
/* <top>/in: where it goes; <top>/out is to stay as it is */
static int in_fd;
static struct cm_file_receiver r;
static struct cm_file_msg msg;
static unsigned int n_failed;
static enum cm_file_step last_step;

static int failed(void *data, enum cm_file_step step, int error, const char *path)
{
	(void)data;
	(void)error;
	(void)path;
	n_failed++;
	last_step = step;
	return 0;
}

static int set_up(void **state)
{
	(void)state;
	memcpy(top, "/tmp/casemate-test-XXXXXX", sizeof("/tmp/casemate-test-XXXXXX"));
	if (!mkdtemp(top))
		return -1;
	top_fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(top_fd, "in", 0755), 0);
	assert_int_equal(mkdirat(top_fd, "out", 0755), 0);
	make_file(top_fd, "out/file", "outside");
	in_fd = openat(top_fd, "in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cm_file_receiver_init(&r, in_fd, "t", "in", true);
	r.failed = failed;
	n_failed = 0;
	return 0;
}

static int tear_down(void **state)
{
	char text[16] = "";

	(void)state;
	cm_file_receiver_close(&r);
	assert_int_equal(cm_read_file_at(top_fd, "out/file", text, sizeof(text)), 7);
	assert_string_equal(text, "outside");
	close(in_fd);
	close(top_fd);
	return cm_remove_tree_at(AT_FDCWD, top) == 0 ? 0 : -1;
}

static int entry(uint32_t mode, const char *name, const char *target)
{
	memset(&msg, 0, sizeof(msg));
	msg.type = CM_FRAME_ENTRY;
	msg.body.entry.mode = mode;
	msg.name_len = strlen(name);
	memcpy(msg.name, name, msg.name_len);
	msg.target_len = strlen(target);
	memcpy(msg.target, target, msg.target_len);
	return cm_file_receiver_take(&r, &msg);
}

static int plain(uint16_t type, uint16_t flags, uint64_t value)
{
	memset(&msg, 0, sizeof(msg));
	msg.type = type;
	msg.flags = flags;
	msg.value = value;
	return cm_file_receiver_take(&r, &msg);
}

static int data(const char *text)
{
	memset(&msg, 0, sizeof(msg));
	msg.type = CM_FRAME_DATA;
	msg.data = (const unsigned char *)text;
	msg.len = strlen(text);
	return cm_file_receiver_take(&r, &msg);
}

static int file(const char *name, const char *text)
{
	int e = entry(S_IFREG | 0644, name, "");

	if (e == 0)
		e = data(text);
	return e < 0 ? e : plain(CM_FRAME_END, 0, 0);
}

static struct stat look(const char *path)
{
	struct stat st = { .st_mode = 0 };

	(void)fstatat(in_fd, path, &st, AT_SYMLINK_NOFOLLOW);
	return st;
}

static unsigned int count(const char *path)
{
	int fd = openat(in_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fdopendir(fd);
	unsigned int n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2;
}

static void test_tree(void **state)
{
	(void)state;
	assert_int_equal(entry(S_IFDIR | 0500, "", ""), 0);
	assert_int_equal(file("a\n\xff", "text"), 0);
	assert_int_equal(entry(S_IFREG | 06755, "sparse", ""), 0);
	assert_int_equal(plain(CM_FRAME_HOLE, 0, 1U << 30), 0);
	assert_int_equal(plain(CM_FRAME_END, 0, 0), 0);
	assert_int_equal(entry(S_IFLNK | 0777, "l", "a"), 0);
	assert_false(cm_file_receiver_is_done(&r));
	assert_int_equal(plain(CM_FRAME_LEAVE, 0, 0), 0);
	assert_true(cm_file_receiver_is_done(&r));
	assert_int_equal(look("t").st_mode & 07777, 0500);
	assert_int_equal(look("t/a\n\xff").st_size, 4);
	assert_int_equal(look("t/sparse").st_size, 1U << 30);
	assert_int_equal(look("t/sparse").st_blocks, 0);
	assert_int_equal(look("t/sparse").st_mode & 07777, 0755);
	assert_int_equal(r.n_stripped, 1);
	assert_int_equal(n_failed, 0);
	/* nothing more may come */
	assert_int_equal(entry(S_IFREG | 0644, "", ""), -EBADMSG);
	assert_int_equal(plain(CM_FRAME_LEAVE, 0, 0), -EBADMSG);
}

static void test_names(void **state)
{
	static const char *const names[] = { "", ".", "..", "a/b", "/etc", "../out/file" };
	char longer[NAME_MAX + 2];

	(void)state;
	assert_int_equal(entry(S_IFDIR | 0755, "", ""), 0);
	for (size_t i = 0; i < CM_ARRAY_SIZE(names); i++)
		assert_int_equal(entry(S_IFREG | 0644, names[i], ""), -EBADMSG);
	memset(longer, 'n', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	assert_int_equal(entry(S_IFREG | 0644, longer, ""), -EBADMSG);
	assert_int_equal(entry(S_IFIFO | 0644, "fifo", ""), -EBADMSG);
	assert_int_equal(entry(S_IFCHR | 0644, "device", ""), -EBADMSG);
	assert_int_equal(count("t"), 0);
}

/* What was made as a directory, a file, a link is what the next name goes through. */
static void test_through_links(void **state)
{
	(void)state;
	assert_int_equal(symlinkat("../out", in_fd, "t"), 0);
	assert_int_equal(entry(S_IFDIR | 0755, "", ""), 0);
	assert_int_equal(n_failed, 1);
	assert_int_equal(file("file", "inside"), 0);
	assert_int_equal(plain(CM_FRAME_LEAVE, 0, 0), 0);
	cm_file_receiver_init(&r, in_fd, "u", "in", true);
	r.failed = failed;
	assert_int_equal(entry(S_IFDIR | 0755, "", ""), 0);
	assert_int_equal(entry(S_IFLNK | 0777, "sub", "../../out"), 0);
	assert_int_equal(entry(S_IFDIR | 0755, "sub", ""), 0);
	assert_int_equal(n_failed, 2);
	assert_int_equal(file("file", "inside"), 0);
	assert_int_equal(plain(CM_FRAME_LEAVE, 0, 0), 0);
	/* a file in the place of a link: the link goes */
	assert_int_equal(entry(S_IFLNK | 0777, "file", "../../out/file"), 0);
	assert_int_equal(file("file", "inside"), 0);
	assert_true(S_ISREG(look("u/file").st_mode));
	assert_int_equal(n_failed, 2);
}

/* At the top it may be what the caller's words stand for. */
static void test_top_is_special(void **state)
{
	(void)state;
	assert_int_equal(symlinkat("../out/file", in_fd, "t"), 0);
	assert_int_equal(file("", "inside"), 0);
	assert_int_equal(n_failed, 1);
	assert_true(S_ISLNK(look("t").st_mode));
	cm_file_receiver_init(&r, in_fd, "fifo", "in", true);
	r.failed = failed;
	assert_int_equal(mkfifoat(in_fd, "fifo", 0600), 0);
	assert_int_equal(file("", "inside"), 0);
	assert_int_equal(n_failed, 2);
	assert_true(S_ISFIFO(look("fifo").st_mode));
}

/* Somebody moves a directory away that is being filled, and puts a link in its place. */
static void test_swapped(void **state)
{
	(void)state;
	assert_int_equal(entry(S_IFDIR | 0755, "", ""), 0);
	assert_int_equal(entry(S_IFDIR | 0755, "sub", ""), 0);
	assert_int_equal(renameat(in_fd, "t/sub", in_fd, "moved"), 0);
	assert_int_equal(symlinkat("../../out", in_fd, "t/sub"), 0);
	assert_int_equal(file("file", "inside"), 0);
	assert_int_equal(plain(CM_FRAME_LEAVE, 0, 0), 0);
	assert_int_equal(look("moved/file").st_size, 6);
	assert_int_equal(n_failed, 0);
}

static void test_nothing_half_done(void **state)
{
	(void)state;
	assert_int_equal(entry(S_IFDIR | 0755, "", ""), 0);
	make_file(in_fd, "t/old", "before");
	assert_int_equal(entry(S_IFREG | 0644, "old", ""), 0);
	assert_int_equal(data("after"), 0);
	assert_int_equal(look("t/old").st_size, 6);
	assert_int_equal(plain(CM_FRAME_END, CM_FRAMEF_FAILED, 0), 0);
	assert_int_equal(look("t/old").st_size, 6);
	assert_int_equal(count("t"), 1);
	assert_true(r.has_failed);
	assert_int_equal(entry(S_IFREG | 0644, "new", ""), 0);
	assert_int_equal(data("half"), 0);
	/* the stream breaks off */
	cm_file_receiver_close(&r);
	assert_int_equal(count("t"), 1);
}

static void test_replaces(void **state)
{
	(void)state;
	assert_int_equal(entry(S_IFDIR | 0700, "", ""), 0);
	make_file(in_fd, "t/old", "before it");
	assert_int_equal(linkat(in_fd, "t/old", in_fd, "other", 0), 0);
	assert_int_equal(file("old", "after"), 0);
	assert_int_equal(look("t/old").st_size, 5);
	/* another name of the file has the other content still */
	assert_int_equal(look("other").st_size, 9);
	assert_int_equal(mkdirat(in_fd, "t/dir", 0755), 0);
	assert_int_equal(file("dir", "no file"), 0);
	assert_int_equal(n_failed, 1);
	assert_int_equal(last_step, CM_FILE_STEP_CREATE);
}

static void test_links_out(void **state)
{
	(void)state;
	r.checks_links = true;
	assert_int_equal(entry(S_IFDIR | 0755, "", ""), 0);
	assert_int_equal(entry(S_IFLNK | 0777, "in", "a"), 0);
	assert_int_equal(entry(S_IFLNK | 0777, "up", "../x"), 0);
	assert_int_equal(entry(S_IFLNK | 0777, "abs", "/etc"), 0);
	assert_int_equal(entry(S_IFDIR | 0755, "sub", ""), 0);
	assert_int_equal(entry(S_IFLNK | 0777, "up", "../x"), 0);
	assert_int_equal(n_failed, 2);
	assert_int_equal(count("t"), 2);
	assert_int_equal(count("t/sub"), 1);
	cm_file_receiver_close(&r);
	cm_file_receiver_init(&r, in_fd, "link", "in", true);
	r.failed = failed;
	r.checks_links = true;
	assert_int_equal(entry(S_IFLNK | 0777, "", "t"), 0);
	assert_int_equal(n_failed, 3);
}

static void test_order(void **state)
{
	(void)state;
	assert_int_equal(data("x"), -EBADMSG);
	assert_int_equal(plain(CM_FRAME_END, 0, 0), -EBADMSG);
	assert_int_equal(plain(CM_FRAME_EVENT, 0, 0), -EBADMSG);
	assert_int_equal(entry(S_IFREG | 0644, "", ""), 0);
	assert_int_equal(entry(S_IFREG | 0644, "x", ""), -EBADMSG);
	assert_int_equal(plain(CM_FRAME_LEAVE, 0, 0), -EBADMSG);
}

static void test_depth(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < CM_FILE_DEPTH_MAX; i++)
		assert_int_equal(entry(S_IFDIR | 0755, "d", ""), 0);
	assert_int_equal(entry(S_IFDIR | 0755, "d", ""), -EBADMSG);
}

static void test_huge_hole(void **state)
{
	(void)state;
	assert_int_equal(entry(S_IFREG | 0644, "", ""), 0);
	assert_int_equal(plain(CM_FRAME_HOLE, 0, INT64_MAX), 0);
	(void)plain(CM_FRAME_HOLE, 0, INT64_MAX);
	assert_int_equal(n_failed, 1);
	assert_int_equal(data("more"), 0);
	assert_int_equal(plain(CM_FRAME_END, 0, 0), 0);
	assert_int_equal(count("."), 0);
}

static void test_file_as_directory(void **state)
{
	(void)state;
	r.wants_directory = true;
	assert_int_equal(file("", "x"), 0);
	assert_int_equal(n_failed, 1);
	cm_file_receiver_init(&r, in_fd, "", "in", true);
	r.failed = failed;
	assert_int_equal(file("", "x"), 0);
	assert_int_equal(n_failed, 2);
	assert_int_equal(count("."), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_tree),	   TEST(test_names),	 TEST(test_through_links),
		TEST(test_top_is_special), TEST(test_swapped),	 TEST(test_nothing_half_done),
		TEST(test_replaces),	   TEST(test_links_out), TEST(test_order),
		TEST(test_depth),	   TEST(test_huge_hole), TEST(test_file_as_directory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
