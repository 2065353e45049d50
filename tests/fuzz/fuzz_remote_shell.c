/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sandbox that answers whatever it likes, in pieces, to all that a shell in it is asked for. The first
 * byte says which question it is, the second how long a piece is and how the command ends; the rest is
 * standard output and, behind a line "--", standard error.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "providers/remote/background.h"
#include "providers/remote/prepare_internal.h"
#include "providers/remote/shell_files.h"
#include "providers/remote/tree.h"
#include "runtime/base/fd.h"
#include "runtime/base/text.h"
#include "tests/fuzz/fuzz.h"

/* commands of one question; who asks for more has it fail */
#define STARTS_MAX 12
#define EVENTS_MAX 4096
#define MARK "\n--\n"

static struct {
	const char *bytes[2];
	size_t len[2];
	size_t piece;
	int exit_code;
	bool is_lost;
	unsigned int n_starts;
} said;

/* --- the sandbox ----------------------------------------------------------------------------- */

struct answer {
	struct cm_exec base;
	bool has_started;
	size_t at[2];
};

static int next(struct cm_exec *exec, struct cm_wake *wake, const struct cm_call *call,
		struct cm_exec_event *ret, struct cm_error *err)
{
	struct answer *a = (struct answer *)exec;

	(void)wake;
	(void)call;
	(void)err;
	if (!a->has_started) {
		a->has_started = true;
		*ret = (struct cm_exec_event){ .kind = CM_EXEC_HAS_STARTED };
		return CM_OK;
	}
	/* the shorter one is ahead */
	for (int k = 0; k < 2; k++) {
		int i = a->at[1] < a->at[0] ? 1 - k : k;
		size_t left = said.len[i] - a->at[i];
		size_t n = left < said.piece ? left : said.piece;

		if (n == 0)
			continue;
		*ret = (struct cm_exec_event){ .kind = CM_EXEC_HAS_OUTPUT,
					       .stream = i + 1,
					       .bytes = said.bytes[i] + a->at[i],
					       .len = n };
		a->at[i] += n;
		return CM_OK;
	}
	*ret = (struct cm_exec_event){ .kind = CM_EXEC_HAS_ENDED,
				       .end = { .kind = said.is_lost ? CM_EXEC_LOST
								     : CM_EXEC_EXITED,
						.exit_code = said.exit_code } };
	return CM_OK;
}

static int input(struct cm_exec *exec, const void *bytes, size_t len, const struct cm_call *call,
		 struct cm_error *err)
{
	(void)exec;
	(void)bytes;
	(void)len;
	(void)call;
	(void)err;
	return CM_OK;
}

static void release(struct cm_exec *exec)
{
	free(exec);
}

static const struct cm_exec_ops exec_ops = { .next = next, .input = input, .release = release };

static int exec_start(struct cm_session *s, const struct cm_exec_request *request,
		      const struct cm_call *call, struct cm_exec **ret, struct cm_error *err)
{
	struct answer *a;

	(void)request;
	(void)call;
	if (said.n_starts++ >= STARTS_MAX)
		return cm_error_set(err, CM_E_LIMIT, 0, "too many commands");
	a = calloc(1, sizeof(*a));
	require(a != NULL);
	a->base.ops = &exec_ops;
	a->base.session = s;
	*ret = &a->base;
	return CM_OK;
}

static const struct cm_provider_ops ops = {
	.abi = CM_PROVIDER_ABI,
	.name = "fuzz",
	.exec_start = exec_start,
};
static struct cm_provider provider = {
	.ops = &ops,
	.caps = CM_CAP_STDIN | CM_CAP_SIGNAL | CM_CAP_DETACH | CM_CAP_FILES | CM_CAP_WATCH,
};
static struct cm_session session = { .provider = &provider, .id = "s" };
static const struct cm_call call = { .deadline_ms = INT64_MAX, .cancel_fd = -1 };

/* --- the questions --------------------------------------------------------------------------- */

static void check(int r, const struct cm_error *err)
{
	require(r <= 0);
	require(r == CM_OK || (err->msg[0] != '\0' && memchr(err->msg, '\0', sizeof(err->msg))));
}

static int on_path(void *data, const struct cm_path_info *info)
{
	(void)data;
	require(info->path != NULL && strlen(info->path) < 65536);
	require(info->mtime_nsec < 1000000000);
	return CM_OK;
}

static void list(void)
{
	struct cm_error err = CM_ERROR_INIT;

	check(cm_shell_list(&session, "/d", CM_LIST_RECURSIVE, on_path, NULL, &call, &err), &err);
}

static void look_at(void)
{
	struct cm_error err = CM_ERROR_INIT;

	check(cm_shell_stat(&session, "/d", 0, on_path, NULL, &call, &err), &err);
}

static int on_change(void *data, const struct cm_watch_event *event)
{
	(void)data;
	require(event->kind != 0);
	require(event->path != NULL || event->kind == CM_WATCH_READY ||
		event->kind == CM_WATCH_OVERFLOW);
	return CM_OK;
}

static void watch(void)
{
	struct cm_error err = CM_ERROR_INIT;

	check(cm_shell_watch(&session, "/d", on_change, NULL, &call, &err), &err);
}

/* What is counted is what comes, and the end comes once. */
static void follow(bool follows)
{
	static const uint64_t offsets[2] = { 3, 0 };
	struct cm_error err = CM_ERROR_INIT;
	struct cm_exec *e = NULL;
	bool has_ended = false;
	int r = cm_background_attach(&session, "1", offsets, follows, &call, &e, &err);

	for (unsigned int i = 0; r == CM_OK && !has_ended && i < EVENTS_MAX; i++) {
		struct cm_exec_event event = { .kind = 0 };

		r = cm_exec_next(e, NULL, &call, &event, &err);
		if (r < 0)
			break;
		require(event.kind >= CM_EXEC_HAS_STARTED && event.kind <= CM_EXEC_HAS_ENDED);
		if (event.kind == CM_EXEC_HAS_OUTPUT)
			require(event.len > 0 && (event.stream == 1 || event.stream == 2));
		has_ended = event.kind == CM_EXEC_HAS_ENDED;
		if (has_ended)
			require(event.end.kind != 0 && event.end.exit_code >= 0 &&
				event.end.exit_code <= 255);
	}
	check(r, &err);
	cm_exec_release(e);
}

static void follow_on(void)
{
	follow(true);
}

static void follow_not(void)
{
	follow(false);
}

static int on_command(void *data, const struct cm_exec_info *info)
{
	(void)data;
	require(info->name[0] != '\0' && info->is_running != info->has_end);
	for (size_t i = 0; i < info->argv.n; i++)
		require(info->argv.v[i] != NULL);
	return CM_OK;
}

static void list_commands(void)
{
	struct cm_error err = CM_ERROR_INIT;

	check(cm_background_list(&session, &call, on_command, NULL, &err), &err);
}

static void start(void)
{
	char *const argv[] = { (char *)"true", NULL };
	const struct cm_exec_request request = { .argv = argv, .is_detached = true };
	struct cm_error err = CM_ERROR_INIT;
	struct cm_exec *e = NULL;

	check(cm_background_start(&session, &request, &call, &e, &err), &err);
	require(!e || (e->name[0] != '\0' && e->pid >= 0));
	cm_exec_release(e);
}

static void look_for_checkout(void)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_config config = { 0 };
	struct cm_spec spec;
	const struct cm_prepare prepare = { .spec = &spec, .config = &config };
	struct cm_prep p;
	int r;

	cm_spec_init(&spec);
	p = cm_prep_make(&session, &prepare, &call);
	r = cm_prep_look(&p, &err);
	check(r, &err);
	if (r == CM_OK)
		require(p.workdir && p.origin && p.branch && p.marker && p.failed_marker &&
			(p.workdir[0] == '/' || p.workdir[0] == '\0'));
	cm_prep_clear(&p);
	cm_spec_clear(&spec);
}

static int on_failed(void *data, enum cm_file_step step, int error, const char *path)
{
	(void)data;
	(void)step;
	(void)error;
	require(path != NULL);
	return 0;
}

/* Nothing of a tree is made beside where it goes to. */
static void copy(void)
{
	static struct cm_file_receiver receiver;
	struct cm_error err = CM_ERROR_INIT;
	char top[] = "/tmp/cm-fuzz-remote-XXXXXX";
	int fd;
	int in;

	require(mkdtemp(top) != NULL);
	fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	require(fd >= 0 && mkdirat(fd, "in", 0700) == 0);
	in = openat(fd, "in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	require(in >= 0);
	cm_file_receiver_init(&receiver, in, "t", "HOST", true);
	receiver.failed = on_failed;
	receiver.checks_links = true;
	check(cm_tree_get(&session, "/d/t", &receiver, &call, &err), &err);
	cm_file_receiver_close(&receiver);
	(void)unlinkat(in, "t", 0);
	(void)cm_remove_tree_at(in, "t");
	close(in);
	/* fails where there is anything else */
	require(unlinkat(fd, "in", AT_REMOVEDIR) == 0 || err.code != CM_OK);
	(void)cm_remove_tree_at(fd, "in");
	require(unlinkat(AT_FDCWD, top, AT_REMOVEDIR) == 0);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const questions[])(void) = { list,      look_at,		 watch,
						   follow_on, follow_not,	 list_commands,
						   start,     look_for_checkout, copy };
	const char *mark;

	if (size < 2)
		return 0;
	memset(&said, 0, sizeof(said));
	said.piece = (size_t)(data[1] % 16) * (data[1] % 16) + 1;
	if (data[1] / 16 == 15)
		said.piece = size;
	said.exit_code = data[1] / 16 % 4 == 1 ? 77 : data[1] / 16 % 4 == 2 ? 1 : 0;
	said.is_lost = data[1] / 16 % 4 == 3;
	said.bytes[0] = (const char *)data + 2;
	said.len[0] = size - 2;
	mark = memmem(said.bytes[0], said.len[0], MARK, sizeof(MARK) - 1);
	if (mark) {
		said.bytes[1] = mark + sizeof(MARK) - 1;
		said.len[1] = size - 2 - (size_t)(said.bytes[1] - said.bytes[0]);
		said.len[0] = (size_t)(mark + 1 - said.bytes[0]);
	}
	questions[data[0] % CM_ARRAY_SIZE(questions)]();
	return 0;
}
