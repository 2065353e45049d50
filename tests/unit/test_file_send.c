/* SPDX-License-Identifier: Apache-2.0 */
/* A tree as frames, while somebody exchanges what is in it for links to the outside. */
#include "isolation/keeper/file_send.h"

#include <linux/fs.h>

#include "runtime/base/clock.h"
#include "runtime/base/kernel.h"
#include "tests/unit/test_base.h"

#define RACE_MS 1500

static char top[32];
static int top_fd;
static struct cm_file_writer writer;
static struct cm_file_sender sender;
static unsigned int n_failed;

static int failed(void *data, enum cm_file_step step, int error, const char *path)
{
	(void)data;
	(void)step;
	(void)error;
	(void)path;
	n_failed++;
	return 0;
}

static int set_up(void **state)
{
	(void)state;
	memcpy(top, "/tmp/casemate-test-XXXXXX", sizeof("/tmp/casemate-test-XXXXXX"));
	if (!mkdtemp(top))
		return -1;
	top_fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(top_fd, "t", 0755), 0);
	assert_int_equal(mkdirat(top_fd, "t/d", 0755), 0);
	assert_int_equal(mkdirat(top_fd, "out", 0755), 0);
	make_file(top_fd, "out/f", "the secret");
	make_file(top_fd, "t/f", "inside");
	make_file(top_fd, "t/d/f", "inside");
	cm_file_writer_init(&writer, -1, NULL, NULL);
	n_failed = 0;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	close(top_fd);
	return cm_remove_tree_at(AT_FDCWD, top) == 0 ? 0 : -1;
}

static void send(void)
{
	writer.len = 0;
	cm_file_sender_init(&sender, &writer, "t", failed, NULL);
	assert_int_equal(cm_file_send_tree(&sender, top_fd, "t", ""), 0);
}

static bool has(const char *text)
{
	return memmem(writer.bytes, writer.len, text, strlen(text)) != NULL;
}

static void test_left_out(void **state)
{
	(void)state;
	assert_int_equal(mkfifoat(top_fd, "t/fifo", 0600), 0);
	assert_int_equal(symlinkat("../out/f", top_fd, "t/link"), 0);
	send();
	assert_int_equal(n_failed, 1);
	assert_true(has("inside") && has("../out/f"));
	assert_false(has("the secret"));
}

/* Until it is killed. */
static void exchange(void)
{
	for (;;) {
		(void)cm_sys_renameat2(top_fd, "t/d", top_fd, "d-link", RENAME_EXCHANGE);
		(void)cm_sys_renameat2(top_fd, "t/f", top_fd, "f-link", RENAME_EXCHANGE);
	}
}

static void test_exchanged(void **state)
{
	int64_t until = cm_clock_mono_ms() + RACE_MS;
	unsigned int n_links = 0;
	bool is_read = false;
	pid_t pid;

	(void)state;
	assert_int_equal(symlinkat("../out", top_fd, "d-link"), 0);
	assert_int_equal(symlinkat("../out/f", top_fd, "f-link"), 0);
	pid = fork_child();
	if (pid == 0)
		exchange();
	while (cm_clock_mono_ms() < until && !is_read) {
		send();
		is_read = has("the secret");
		n_links += has("../out");
	}
	(void)kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_false(is_read);
	assert_true(n_links > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_left_out, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_exchanged, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
