/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of file operations: what goes through whole, and what is refused whoever sends it. */
#include "isolation/keeper/file_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "isolation/keeper/file_link.h"
#include "tests/unit/test_base.h"

static struct cm_file_reader reader;
static struct cm_file_writer writer;
static struct cm_file_msg msg;

/* What was written so far is what is read next. */
static void turn_round(void)
{
	cm_file_reader_init(&reader);
	assert_int_equal(writer.error, 0);
	memcpy(reader.bytes, writer.bytes, writer.len);
	reader.len = writer.len;
	cm_file_writer_init(&writer, -1, NULL, NULL);
}

static void give(const void *frame, size_t len)
{
	cm_file_reader_init(&reader);
	memcpy(reader.bytes, frame, len);
	reader.len = len;
}

static int set_up(void **state)
{
	(void)state;
	cm_file_writer_init(&writer, -1, NULL, NULL);
	return 0;
}

static void test_entry(void **state)
{
	struct stat st = { .st_mode = S_IFLNK | 0777, .st_size = 3, .st_uid = 7, .st_nlink = 2 };

	(void)state;
	st.st_mtim.tv_sec = -5;
	st.st_mtim.tv_nsec = 999999999;
	assert_int_equal(cm_file_put_entry(&writer, &st, "a\nb\xff", "../t"), 0);
	assert_int_equal(cm_file_put_plain(&writer, CM_FRAME_DONE, 9), 0);
	turn_round();
	assert_int_equal(cm_file_reader_next(&reader, &msg), 1);
	assert_int_equal(msg.type, CM_FRAME_ENTRY);
	assert_string_equal(msg.name, "a\nb\xff");
	assert_string_equal(msg.target, "../t");
	assert_int_equal(msg.body.entry.mtime_sec, -5);
	assert_int_equal(msg.body.entry.mtime_nsec, 999999999);
	assert_int_equal(msg.body.entry.uid, 7);
	assert_int_equal(cm_file_reader_next(&reader, &msg), 1);
	assert_int_equal(msg.type, CM_FRAME_DONE);
	assert_int_equal(msg.value, 9);
	assert_int_equal(cm_file_reader_next(&reader, &msg), 0);
	assert_true(cm_file_reader_is_empty(&reader));
}

static void test_error_and_event(void **state)
{
	(void)state;
	assert_int_equal(cm_file_put_error(&writer, CM_FILE_STEP_WRITE, ENOSPC, "x", true, 12), 0);
	assert_int_equal(cm_file_put_event(&writer, CM_FILE_EVENT_RENAMED, true, "to/here", "from"),
			 0);
	turn_round();
	assert_int_equal(cm_file_reader_next(&reader, &msg), 1);
	assert_int_equal(msg.type, CM_FRAME_ERROR);
	assert_int_equal(msg.flags, CM_FRAMEF_GOES_ON);
	assert_int_equal(msg.value, 12);
	assert_int_equal(msg.body.error.error, ENOSPC);
	assert_string_equal(msg.name, "x");
	assert_int_equal(cm_file_reader_next(&reader, &msg), 1);
	assert_string_equal(msg.name, "to/here");
	assert_string_equal(msg.target, "from");
}

/* A pipe gives it in pieces of any size. */
static void test_pieces(void **state)
{
	static unsigned char whole[CM_FILE_WRITER_SIZE];
	struct stat st = { .st_mode = S_IFREG | 0644 };
	size_t size = 0;
	size_t len;
	int fds[2];
	int frames = 0;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(cm_file_put_entry(&writer, &st, "n", NULL), 0);
	memset(cm_file_space(&writer, &size), 'd', 1000);
	assert_true(size >= CM_FILE_DATA_MAX / 2);
	cm_file_commit(&writer, 1000);
	assert_int_equal(cm_file_put_plain(&writer, CM_FRAME_END, 0), 0);
	len = writer.len;
	memcpy(whole, writer.bytes, len);
	cm_file_reader_init(&reader);
	for (size_t i = 0; i < len; i++) {
		assert_int_equal(write(fds[1], whole + i, 1), 1);
		assert_int_equal(cm_file_reader_fill(&reader, fds[0]), 1);
		frames += cm_file_reader_next(&reader, &msg);
	}
	assert_int_equal(frames, 3);
	close(fds[1]);
	assert_int_equal(cm_file_reader_fill(&reader, fds[0]), 0);
	close(fds[0]);
}

static void refuse(const struct cm_file_frame *frame, const void *body, size_t len)
{
	unsigned char bytes[8192];

	memcpy(bytes, frame, sizeof(*frame));
	if (len > 0)
		memcpy(bytes + sizeof(*frame), body, len);
	give(bytes, sizeof(*frame) + len);
	assert_int_equal(cm_file_reader_next(&reader, &msg), -EBADMSG);
	/* and it stays so */
	assert_int_equal(cm_file_reader_next(&reader, &msg), -EBADMSG);
}

static void test_lengths(void **state)
{
	struct cm_file_frame frame = { .type = CM_FRAME_DATA, .len = CM_FILE_DATA_MAX + 1 };

	(void)state;
	/* refused by its header: nothing is waited for */
	refuse(&frame, NULL, 0);
	frame.len = UINT32_MAX;
	refuse(&frame, NULL, 0);
	frame = (struct cm_file_frame){ .type = 0 };
	refuse(&frame, NULL, 0);
	frame = (struct cm_file_frame){ .type = 99 };
	refuse(&frame, NULL, 0);
	frame = (struct cm_file_frame){ .type = CM_FRAME_DONE, .len = 1 };
	refuse(&frame, "", 1);
	frame = (struct cm_file_frame){ .type = CM_FRAME_HOLE, .value = 0 };
	refuse(&frame, NULL, 0);
	frame.value = (uint64_t)INT64_MAX + 1;
	refuse(&frame, NULL, 0);
	frame = (struct cm_file_frame){ .type = CM_FRAME_ENTRY, .len = 3 };
	refuse(&frame, "abc", 3);
}

static void refuse_entry(struct cm_file_entry entry, const char *text, size_t len)
{
	unsigned char bytes[4096];
	const struct cm_file_frame frame = { .type = CM_FRAME_ENTRY,
					     .len = (uint32_t)(sizeof(entry) + len) };

	memcpy(bytes, &entry, sizeof(entry));
	memcpy(bytes + sizeof(entry), text, len);
	refuse(&frame, bytes, sizeof(entry) + len);
}

static void test_entries_refused(void **state)
{
	struct cm_file_entry entry = { .mode = S_IFREG, .name_len = 3 };

	(void)state;
	refuse_entry(entry, "a\0b", 3);
	refuse_entry(entry, "abcd", 4);
	refuse_entry(entry, "ab", 2);
	entry.name_len = UINT32_MAX;
	entry.target_len = 4;
	refuse_entry(entry, "abc", 3);
	entry = (struct cm_file_entry){ .mode = S_IFREG, .name_len = 1, .target_len = 1 };
	refuse_entry(entry, "ab", 2);
	entry = (struct cm_file_entry){ .mode = S_IFREG, .name_len = 1, .mtime_nsec = 1000000000 };
	refuse_entry(entry, "a", 1);
	entry = (struct cm_file_entry){ .mode = S_IFREG, .name_len = 1, .size = UINT64_MAX };
	refuse_entry(entry, "a", 1);
}

static void test_errors_refused(void **state)
{
	struct cm_file_error error = { .error = -1, .step = CM_FILE_STEP_OPEN };
	struct cm_file_event event = { .kind = CM_FILE_EVENT_COUNT_ };
	struct cm_file_frame frame = { .type = CM_FRAME_ERROR, .len = sizeof(error) };

	(void)state;
	refuse(&frame, &error, sizeof(error));
	error = (struct cm_file_error){ .error = 2, .step = CM_FILE_STEP_COUNT_ };
	refuse(&frame, &error, sizeof(error));
	error = (struct cm_file_error){ .error = 2, .step = CM_FILE_STEP_OPEN, .path_len = 1 };
	refuse(&frame, &error, sizeof(error));
	frame = (struct cm_file_frame){ .type = CM_FRAME_EVENT, .len = sizeof(event) };
	refuse(&frame, &event, sizeof(event));
}

static void test_single_names(void **state)
{
	char longest[NAME_MAX + 2];

	(void)state;
	memset(longest, 'x', sizeof(longest));
	longest[NAME_MAX] = '\0';
	assert_true(cm_file_name_is_single(longest));
	longest[NAME_MAX] = 'x';
	longest[NAME_MAX + 1] = '\0';
	assert_false(cm_file_name_is_single(longest));
	assert_true(cm_file_name_is_single("..."));
	assert_true(cm_file_name_is_single("a\nb"));
	assert_false(cm_file_name_is_single(""));
	assert_false(cm_file_name_is_single("."));
	assert_false(cm_file_name_is_single(".."));
	assert_false(cm_file_name_is_single("a/b"));
	assert_false(cm_file_name_is_single("/"));
}

static void test_links(void **state)
{
	(void)state;
	assert_true(cm_file_link_stays("a", 0));
	assert_true(cm_file_link_stays("a/b/.", 0));
	assert_true(cm_file_link_stays("./a", 0));
	assert_true(cm_file_link_stays("..", 1));
	assert_true(cm_file_link_stays("../../x", 2));
	assert_true(cm_file_link_stays(".//..///x", 1));
	assert_false(cm_file_link_stays("", 0));
	assert_false(cm_file_link_stays("/etc/passwd", 9));
	assert_false(cm_file_link_stays("..", 0));
	assert_false(cm_file_link_stays("../../x", 1));
	/* a may be a link to the top */
	assert_false(cm_file_link_stays("a/..", 5));
	assert_false(cm_file_link_stays("../a/../x", 5));
	assert_true(cm_file_link_stays("..a/...", 0));
}

static void test_base(void **state)
{
	char base[8];

	(void)state;
	assert_true(cm_file_base("a/b", base, sizeof(base)));
	assert_string_equal(base, "b");
	assert_true(cm_file_base("a/b//", base, sizeof(base)));
	assert_string_equal(base, "b");
	assert_true(cm_file_base("a/.", base, sizeof(base)));
	assert_string_equal(base, "");
	assert_true(cm_file_base("a/..", base, sizeof(base)));
	assert_string_equal(base, "");
	assert_true(cm_file_base("/", base, sizeof(base)));
	assert_string_equal(base, "");
	assert_false(cm_file_base("12345678", base, sizeof(base)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_entry, set_up),
		cmocka_unit_test_setup(test_error_and_event, set_up),
		cmocka_unit_test_setup(test_pieces, set_up),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_entries_refused),
		cmocka_unit_test(test_errors_refused),
		cmocka_unit_test(test_single_names),
		cmocka_unit_test(test_links),
		cmocka_unit_test(test_base),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
