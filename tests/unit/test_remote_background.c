/* SPDX-License-Identifier: Apache-2.0 */
/* Detached commands whose output is kept in the session, under dash and busybox. */
#include "providers/remote/background.h"

#include <poll.h>

#include "tests/unit/fake_provider.h"
#include "tests/unit/test_base.h"

#define OUT_MAX (96UL * 1024 * 1024)

static struct fake_provider fake;

static int open_dash(void **state)
{
	(void)state;
	return fake_provider_open(&fake, "dash") ? 0 : -1;
}

static int open_busybox(void **state)
{
	(void)state;
	if (!fake_provider_open(&fake, "busybox"))
		fake.top[0] = '\0';
	return 0;
}

static int close_fake(void **state)
{
	(void)state;
	if (fake.top[0] != '\0')
		fake_provider_close(&fake);
	return 0;
}

static void need_session(void)
{
	if (fake.top[0] == '\0')
		skip();
}

struct seen {
	struct cm_buf out[2];
	struct cm_exec_end end;
	unsigned int n_started;
	bool has_ended;
};

static void seen_init(struct seen *s)
{
	memset(s, 0, sizeof(*s));
	cm_buf_init(&s->out[0], OUT_MAX);
	cm_buf_init(&s->out[1], OUT_MAX);
}

static void seen_clear(struct seen *s)
{
	cm_buf_clear(&s->out[0]);
	cm_buf_clear(&s->out[1]);
}

static int step(struct cm_exec *e, struct seen *s, struct cm_error *err)
{
	const struct cm_call call = fake_call();
	struct cm_exec_event event = { .kind = 0 };
	int r = cm_exec_next(e, NULL, &call, &event, err);

	if (r < 0)
		return r;
	if (event.kind == CM_EXEC_HAS_STARTED)
		s->n_started++;
	if (event.kind == CM_EXEC_HAS_OUTPUT) {
		assert_int_equal(s->n_started, 1);
		assert_true(event.len > 0);
		cm_buf_append(&s->out[event.stream - 1], event.bytes, event.len);
	}
	if (event.kind == CM_EXEC_HAS_ENDED) {
		s->has_ended = true;
		s->end = event.end;
	}
	return CM_OK;
}

static void follow(struct cm_exec *e, struct seen *s)
{
	struct cm_error err = CM_ERROR_INIT;

	while (!s->has_ended) {
		if (step(e, s, &err) < 0)
			fail_msg("%s", err.msg);
	}
	assert_int_equal(s->n_started, 1);
}

static struct cm_exec *start_request(const struct cm_exec_request *request)
{
	struct cm_error err = CM_ERROR_INIT;
	const struct cm_call call = fake_call();
	struct cm_exec *e = NULL;

	if (cm_background_start(&fake.session, request, &call, &e, &err) < 0)
		fail_msg("%s", err.msg);
	return e;
}

static struct cm_exec *start(const char *script)
{
	char *const argv[] = { (char *)"sh", (char *)"-c", (char *)script, NULL };
	const struct cm_exec_request request = { .argv = argv, .is_detached = true };

	return start_request(&request);
}

/* in front of a command: it goes on once the gate is open, however slow this host is */
#define GATE "while [ ! -e \"$HOME/gate\" ]; do sleep 0.05; done; "

static void open_gate(void)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/gate", fake.home);
	make_file(AT_FDCWD, path, "");
}

static struct cm_exec *attach(const char *name, uint64_t from, bool follows)
{
	struct cm_error err = CM_ERROR_INIT;
	const struct cm_call call = fake_call();
	const uint64_t offsets[2] = { from, 0 };
	struct cm_exec *e = NULL;

	if (cm_background_attach(&fake.session, name, offsets, follows, &call, &e, &err) < 0)
		fail_msg("%s", err.msg);
	return e;
}

static void await(const char *name)
{
	struct seen s;
	struct cm_exec *e = attach(name, 0, true);

	seen_init(&s);
	follow(e, &s);
	seen_clear(&s);
	cm_exec_release(e);
}

static void test_output(void **state)
{
	struct seen s;
	struct cm_exec *e;

	(void)state;
	need_session();
	e = start("echo one; echo two >&2; sleep 0.1; echo three; exit 7");
	assert_string_equal(e->name, "1");
	assert_true(e->pid > 1);
	seen_init(&s);
	follow(e, &s);
	assert_string_equal(s.out[0].data, "one\nthree\n");
	assert_string_equal(s.out[1].data, "two\n");
	assert_int_equal(s.end.kind, CM_EXEC_EXITED);
	assert_int_equal(s.end.exit_code, 7);
	cm_exec_release(e);
	seen_clear(&s);
	/* again, from an offset, when it is over */
	e = attach("1", 4, true);
	seen_init(&s);
	follow(e, &s);
	assert_string_equal(s.out[0].data, "three\n");
	assert_string_equal(s.out[1].data, "two\n");
	assert_int_equal(s.end.exit_code, 7);
	seen_clear(&s);
	cm_exec_release(e);
	/* from beyond all that there is */
	e = attach("1", 4000, false);
	seen_init(&s);
	follow(e, &s);
	assert_int_equal(s.out[0].len, 0);
	seen_clear(&s);
	cm_exec_release(e);
}

static void test_arguments(void **state)
{
	char *const argv[] = { (char *)"printf", (char *)"%s|",	    (char *)"a b", (char *)"",
			       (char *)"x\ny\n", (char *)"'\"`id`", (char *)"-n",  NULL };
	char *const env[] = { (char *)"GREETING=it's $HOME\nthere", NULL };
	char *const show[] = { (char *)"sh", (char *)"-c",
			       (char *)"printf '%s' \"$GREETING\"; pwd; umask", NULL };
	struct cm_exec_request request = { .argv = argv, .is_detached = true };
	char want[256];
	struct cm_exec *e;
	struct seen s;

	(void)state;
	need_session();
	e = start_request(&request);
	seen_init(&s);
	follow(e, &s);
	assert_string_equal(s.out[0].data, "a b||x\ny\n|'\"`id`|-n|");
	cm_exec_release(e);
	seen_clear(&s);
	request.argv = show;
	request.env = env;
	request.cwd = fake.home;
	(void)umask(027);
	e = start_request(&request);
	(void)umask(022);
	seen_init(&s);
	follow(e, &s);
	(void)snprintf(want, sizeof(want), "it's $HOME\nthere%s\n0027\n", fake.home);
	assert_string_equal(s.out[0].data, want);
	cm_exec_release(e);
	seen_clear(&s);
}

static void test_many_bytes(void **state)
{
	struct seen s;
	struct cm_exec *e;

	(void)state;
	need_session();
	e = start(
		"i=0; while [ $i -lt 60 ]; do head -c 20001 /dev/zero; head -c 101 /dev/zero >&2; "
		"i=$((i+1)); done");
	seen_init(&s);
	follow(e, &s);
	assert_int_equal(s.out[0].len, 60 * 20001);
	assert_int_equal(s.out[1].len, 60 * 101);
	assert_int_equal(s.end.exit_code, 0);
	cm_exec_release(e);
	seen_clear(&s);
}

static void test_cap(void **state)
{
	char path[256];
	char text[32] = "";
	struct seen s;
	struct cm_exec *e;

	(void)state;
	need_session();
	e = start("head -c 67109000 /dev/zero; echo end >&2");
	seen_init(&s);
	follow(e, &s);
	assert_int_equal(s.out[0].len, CM_BACKGROUND_OUTPUT_MAX);
	assert_string_equal(s.out[1].data, "end\n");
	assert_int_equal(s.end.exit_code, 0);
	(void)snprintf(path, sizeof(path), "%s/.casemate/exec/1/stdout.dropped", fake.home);
	assert_true(cm_read_file_at(AT_FDCWD, path, text, sizeof(text)) > 0);
	assert_string_equal(text, "136\n");
	cm_exec_release(e);
	seen_clear(&s);
}

static void test_outlives(void **state)
{
	struct seen s;
	struct cm_exec *e;

	(void)state;
	need_session();
	e = start(GATE "echo late");
	cm_exec_release(e);
	/* without following it is seen to run */
	e = attach("1", 0, false);
	seen_init(&s);
	follow(e, &s);
	assert_int_equal(s.end.kind, CM_EXEC_LOST);
	assert_int_equal(s.out[0].len, 0);
	cm_exec_release(e);
	seen_clear(&s);
	open_gate();
	e = attach("1", 0, true);
	seen_init(&s);
	follow(e, &s);
	assert_string_equal(s.out[0].data, "late\n");
	cm_exec_release(e);
	seen_clear(&s);
}

/* What a command leaves behind keeps its output open, and not its end away. */
static void test_orphan(void **state)
{
	struct seen s;
	struct cm_exec *e;

	(void)state;
	need_session();
	/* longer than fake_call lets an event take */
	e = start("sleep 600 & echo $!");
	seen_init(&s);
	follow(e, &s);
	assert_int_equal(s.end.exit_code, 0);
	assert_int_equal(kill((pid_t)strtol(s.out[0].data, NULL, 10), SIGKILL), 0);
	cm_exec_release(e);
	seen_clear(&s);
}

static void test_timeout(void **state)
{
	char *const argv[] = { (char *)"sh", (char *)"-c",
			       (char *)"trap 'echo got' TERM; while :; do sleep 0.1; done", NULL };
	char *const mild[] = { (char *)"sleep", (char *)"600", NULL };
	char *const quick[] = { (char *)"true", NULL };
	struct cm_exec_request request = {
		.argv = argv, .is_detached = true, .timeout_ms = 2000, .grace_ms = 1500
	};
	struct seen s;
	struct cm_exec *e;

	(void)state;
	need_session();
	e = start_request(&request);
	seen_init(&s);
	follow(e, &s);
	assert_string_equal(s.out[0].data, "got\n");
	assert_int_equal(s.end.kind, CM_EXEC_TIMED_OUT);
	assert_int_equal(s.end.exit_code, 124);
	cm_exec_release(e);
	seen_clear(&s);
	request.argv = mild;
	request.timeout_ms = 300;
	request.grace_ms = 600000;
	e = start_request(&request);
	seen_init(&s);
	follow(e, &s);
	assert_int_equal(s.end.kind, CM_EXEC_TIMED_OUT);
	cm_exec_release(e);
	seen_clear(&s);
	request.argv = quick;
	request.timeout_ms = 100000;
	e = start_request(&request);
	seen_init(&s);
	follow(e, &s);
	assert_int_equal(s.end.kind, CM_EXEC_EXITED);
	cm_exec_release(e);
	seen_clear(&s);
}

static void send(struct cm_exec *e, int sig, int want)
{
	struct cm_error err = CM_ERROR_INIT;
	const struct cm_call call = fake_call();

	assert_int_equal(cm_exec_signal(e, sig, &call, &err), want);
}

/*
 * The program itself, and not a shell that is about to execute it: dash catches SIGINT, also with -c,
 * and one that comes just then is gone with its memory.
 */
static void until_executed(const struct cm_exec *e, const char *program)
{
	char path[64];
	char text[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)e->pid);
	for (int i = 0; i < 1000; i++) {
		ssize_t n;
		int fd = open(path, O_RDONLY | O_CLOEXEC);

		assert_true(fd >= 0);
		n = read(fd, text, sizeof(text) - 1);
		(void)close(fd);
		text[n > 0 ? n : 0] = '\0';
		if (strcmp(text, program) == 0)
			return;
		(void)usleep(10000);
	}
	fail_msg("'%s' is not executed: %s", program, text);
}

static void test_signal(void **state)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGKILL, SIGUSR1 };
	char *const argv[] = { (char *)"sleep", (char *)"600", NULL };
	const struct cm_exec_request request = { .argv = argv, .is_detached = true };

	(void)state;
	need_session();
	for (size_t i = 0; i < CM_ARRAY_SIZE(signals); i++) {
		struct cm_exec *e = start_request(&request);
		struct seen s;

		seen_init(&s);
		until_executed(e, "sleep");
		send(e, 0, CM_OK);
		send(e, signals[i], CM_OK);
		follow(e, &s);
		assert_int_equal(s.end.kind, CM_EXEC_KILLED);
		assert_int_equal(s.end.signal, signals[i]);
		assert_int_equal(s.end.exit_code, 128 + signals[i]);
		send(e, SIGTERM, CM_E_NOT_FOUND);
		cm_exec_release(e);
		seen_clear(&s);
	}
}

static void feed(struct cm_exec *e, const char *bytes, size_t len, int want)
{
	struct cm_error err = CM_ERROR_INIT;
	const struct cm_call call = fake_call();

	assert_int_equal(cm_exec_input(e, bytes, len, &call, &err), want);
}

static void try_input(void)
{
	char *const argv[] = { (char *)"sh", (char *)"-c", (char *)"cat; echo over", NULL };
	const struct cm_exec_request request = { .argv = argv,
						 .is_detached = true,
						 .has_input = true };
	struct cm_exec *e = start_request(&request);
	struct seen s;

	feed(e, "a\0b\n", 4, CM_OK);
	feed(e, "more\n", 5, CM_OK);
	feed(e, NULL, 0, CM_OK);
	seen_init(&s);
	follow(e, &s);
	assert_int_equal(s.out[0].len, 14);
	assert_memory_equal(s.out[0].data, "a\0b\nmore\nover\n", 14);
	cm_exec_release(e);
	seen_clear(&s);
}

static void test_input(void **state)
{
	struct cm_exec *e;

	(void)state;
	need_session();
	try_input();
	e = start(GATE "true");
	feed(e, "x", 1, CM_E_INVALID);
	open_gate();
	await(e->name);
	feed(e, "x", 1, CM_E_NOT_FOUND);
	cm_exec_release(e);
}

/* A provider without standard input: the bytes go as an argument, though not as text. */
static void test_input_by_argument(void **state)
{
	const struct cm_call call = fake_call();
	char *const argv[] = { (char *)"wc", (char *)"-c", NULL };
	const struct cm_exec_request request = { .argv = argv,
						 .is_detached = true,
						 .has_input = true };
	struct cm_error err = CM_ERROR_INIT;
	static char many[200000];
	struct cm_exec *e;
	struct seen s;

	(void)state;
	need_session();
	fake.base.caps &= ~(uint32_t)CM_CAP_STDIN;
	e = start_request(&request);
	/* cm_exec_input asks for the capability: what is tested is below it */
	assert_int_equal(e->ops->input(e, many, sizeof(many), &call, &err), CM_OK);
	assert_int_equal(e->ops->input(e, NULL, 0, &call, &err), CM_OK);
	seen_init(&s);
	follow(e, &s);
	assert_string_equal(s.out[0].data, "200000\n");
	cm_exec_release(e);
	seen_clear(&s);
}

static void test_not_executed(void **state)
{
	char *const missing[] = { (char *)"/no/such", NULL };
	char *const name[] = { (char *)"no-such-command", NULL };
	char *const option[] = { (char *)"-x", NULL };
	struct cm_exec_request request = { .argv = missing, .is_detached = true };
	const struct cm_call call = fake_call();
	struct cm_error err = CM_ERROR_INIT;
	struct cm_exec *e = NULL;
	struct seen s;

	(void)state;
	need_session();
	for (int i = 0; i < 2; i++) {
		e = start_request(&request);
		seen_init(&s);
		follow(e, &s);
		assert_int_equal(s.end.kind, CM_EXEC_NOT_EXECUTED);
		assert_int_equal(s.end.exit_code, 127);
		cm_exec_release(e);
		seen_clear(&s);
		request.argv = name;
	}
	request.argv = option;
	e = NULL;
	assert_int_equal(cm_background_start(&fake.session, &request, &call, &e, &err),
			 CM_E_INVALID);
	request.wants_tty = true;
	assert_int_equal(cm_background_start(&fake.session, &request, &call, &e, &err),
			 CM_E_UNSUPPORTED);
	assert_null(e);
}

static void test_not_found(void **state)
{
	static const char *const names[] = { "1",  "r1", "01",	 "",   "r",
					     "-1", "1x", "../1", "99", "1234567890" };
	const uint64_t offsets[2] = { 0, 0 };
	const struct cm_call call = fake_call();

	(void)state;
	need_session();
	fake.base.caps |= CM_CAP_ROOT_USER;
	for (size_t i = 0; i < CM_ARRAY_SIZE(names); i++) {
		struct cm_error err = CM_ERROR_INIT;
		struct cm_exec *e = NULL;

		assert_int_equal(cm_background_attach(&fake.session, names[i], offsets, true, &call,
						      &e, &err),
				 CM_E_NOT_FOUND);
		assert_null(e);
		assert_true(err.msg[0] != '\0');
	}
}

/* The connection breaks off in the middle: what comes is what it would have been. */
static void test_lost_connection(void **state)
{
	struct seen s;
	struct cm_exec *e;

	(void)state;
	need_session();
	e = start("echo 0; " GATE
		  "i=1; while [ $i -lt 20 ]; do echo $i; sleep 0.02; i=$((i+1)); done");
	seen_init(&s);
	while (s.out[0].len < 2)
		assert_int_equal(step(e, &s, NULL), CM_OK);
	fake.lose_after = 1;
	open_gate();
	follow(e, &s);
	assert_int_equal(fake.lose_after, 0);
	assert_string_equal(s.out[0].data, "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n"
					   "16\n17\n18\n19\n");
	cm_exec_release(e);
	seen_clear(&s);
}

struct list {
	struct cm_exec_info infos[8];
	size_t n;
};

static int add(void *data, const struct cm_exec_info *info)
{
	struct list *l = data;
	struct cm_exec_info *to = &l->infos[l->n++];

	*to = *info;
	to->cwd = cm_strdup(info->cwd);
	to->argv = (struct cm_strv){ 0 };
	assert_int_equal(cm_strv_copy(&to->argv, &info->argv), CM_OK);
	return 0;
}

static void list_all(struct list *l)
{
	const struct cm_call call = fake_call();
	struct cm_error err = CM_ERROR_INIT;

	l->n = 0;
	if (cm_background_list(&fake.session, &call, add, l, &err) < 0)
		fail_msg("%s", err.msg);
}

static void list_clear(struct list *l)
{
	while (l->n > 0)
		cm_exec_info_clear(&l->infos[--l->n]);
}

static void write_entry(const char *name, const char *file, const char *text)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/.casemate/exec/%s", fake.home, name);
	(void)mkdir(path, 0700);
	(void)snprintf(path, sizeof(path), "%s/.casemate/exec/%s/%s", fake.home, name, file);
	make_file(AT_FDCWD, path, text);
}

static void test_list(void **state)
{
	char *const argv[] = { (char *)"sh",   (char *)"-c", (char *)"exit 3",
			       (char *)"a\nb", (char *)"",   NULL };
	const struct cm_exec_request request = { .argv = argv, .is_detached = true };
	struct list l;
	struct cm_exec *e;
	char path[256];
	struct stat st;

	(void)state;
	need_session();
	list_all(&l);
	assert_int_equal(l.n, 0);
	cm_exec_release(start_request(&request));
	await("1");
	e = start("sleep 600");
	/* a session that was stopped in the middle: another process has that number now */
	write_entry("10", "started", "1700000000000\n");
	write_entry("10", "supervisor", "1 12345\n");
	write_entry("10", "pid", "77\n");
	write_entry("10", "cmd", "x");
	write_entry("10", "cwd", "/");
	list_all(&l);
	assert_int_equal(l.n, 3);
	assert_string_equal(l.infos[0].name, "1");
	assert_int_equal(l.infos[0].end.exit_code, 3);
	assert_true(l.infos[0].has_end && !l.infos[0].is_running);
	assert_string_equal(l.infos[0].cwd, fake.work);
	assert_int_equal(l.infos[0].argv.n, 5);
	assert_string_equal(l.infos[0].argv.v[3], "a\nb");
	assert_string_equal(l.infos[0].argv.v[4], "");
	assert_true(l.infos[0].started_ms > 0 && l.infos[0].ended_ms >= l.infos[0].started_ms);
	assert_true(l.infos[1].is_running);
	assert_int_equal(l.infos[1].pid, e->pid);
	assert_string_equal(l.infos[2].name, "10");
	assert_int_equal(l.infos[2].end.kind, CM_EXEC_LOST);
	list_clear(&l);
	send(e, SIGKILL, CM_OK);
	await(e->name);
	cm_exec_release(e);
	(void)snprintf(path, sizeof(path), "%s/.casemate/exec/1", fake.home);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	/* a number is never used again */
	assert_int_equal(cm_remove_tree_at(AT_FDCWD, path), 0);
	e = start("true");
	assert_string_equal(e->name, "3");
	await(e->name);
	cm_exec_release(e);
}

/* Its supervisor is told to end, and the end is written all the same; killed, it is lost. */
static void test_supervisor(void **state)
{
	char path[256];
	char text[64] = "";
	struct cm_exec *e;
	struct seen s;

	(void)state;
	need_session();
	e = start(GATE "exit 9");
	(void)snprintf(path, sizeof(path), "%s/.casemate/exec/1/supervisor", fake.home);
	assert_true(cm_read_file_at(AT_FDCWD, path, text, sizeof(text)) > 0);
	assert_int_equal(kill((pid_t)strtol(text, NULL, 10), SIGTERM), 0);
	open_gate();
	seen_init(&s);
	follow(e, &s);
	assert_int_equal(s.end.exit_code, 9);
	cm_exec_release(e);
	seen_clear(&s);
	e = start("echo here; sleep 600");
	seen_init(&s);
	while (s.out[0].len < 5)
		assert_int_equal(step(e, &s, NULL), CM_OK);
	(void)snprintf(path, sizeof(path), "%s/.casemate/exec/2/supervisor", fake.home);
	assert_true(cm_read_file_at(AT_FDCWD, path, text, sizeof(text)) > 0);
	assert_int_equal(kill((pid_t)strtol(text, NULL, 10), SIGKILL), 0);
	follow(e, &s);
	assert_int_equal(s.end.kind, CM_EXEC_LOST);
	(void)kill(-(pid_t)e->pid, SIGKILL);
	cm_exec_release(e);
	seen_clear(&s);
}

static void test_at_once(void **state)
{
	struct cm_exec *e[6];
	struct list l;

	(void)state;
	need_session();
	for (size_t i = 0; i < CM_ARRAY_SIZE(e); i++)
		e[i] = start("sleep 0.2; echo done");
	for (size_t i = 0; i < CM_ARRAY_SIZE(e); i++) {
		struct seen s;

		seen_init(&s);
		follow(e[i], &s);
		assert_string_equal(s.out[0].data, "done\n");
		seen_clear(&s);
		cm_exec_release(e[i]);
	}
	list_all(&l);
	assert_int_equal(l.n, CM_ARRAY_SIZE(e));
	list_clear(&l);
}

/* What a session says in place of the truth. */
static void test_lies(void **state)
{
	static const char *const heads[] = {
		"",
		"casemate-exec\n",
		"casemate-exec exit 0 0 0 0 0\n",
		"casemate-exec exit 0 0 0 0 0 0 0\n",
		"casemate-exec exit 999 0 0 0 0 0\n",
		"casemate-exec exit 0 0 0 0 99999999999999999999 0\n",
		"casemate-exec exit 0 0 0 0 -1 0\n",
		"casemate-exec exit 0 0 99999999999999999999999 0 0 0\n",
		"casemate-exec nonsense 0 0 0 0 0 0\n",
		"casemate-exec exit 0 0 0 0 3 0\nabcd",
		"other exit 0 0 0 0 0 0\n",
	};
	const uint64_t offsets[2] = { 0, 0 };
	const struct cm_call call = fake_call();

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(heads); i++) {
		const struct fake_answer answer = { heads[i], strlen(heads[i]), "casemate-exec\n",
						    0 };
		struct cm_error err = CM_ERROR_INIT;
		struct cm_exec *e = NULL;
		struct seen s;
		int r;

		fake.answers = &answer;
		fake.n_answers = 1;
		seen_init(&s);
		r = cm_background_attach(&fake.session, "1", offsets, true, &call, &e, &err);
		while (r == CM_OK && !s.has_ended)
			r = step(e, &s, &err);
		assert_true(r == CM_E_PROTOCOL || r == CM_E_REMOTE);
		cm_exec_release(e);
		seen_clear(&s);
	}
}

static int count(void *data, const struct cm_exec_info *info)
{
	(void)info;
	(*(unsigned int *)data)++;
	return 0;
}

static void test_list_lies(void **state)
{
#define LIE(text)                                                                                  \
	{                                                                                          \
		text, sizeof(text) - 1, NULL, 0                                                    \
	}
	static const struct fake_answer answers[] = {
		LIE("1\0exit\0000\0000\0000\0000\0009\0000\0"),
		LIE("1\0exit\0000\0000\0000\0000\00018446744073709551615\0001\0"),
		LIE("1\0exit\0000\0000\0000\0000\0001\00018446744073709551615\0/"),
		LIE("1\0exit\0000"),
		LIE("no NUL at all"),
	};
	const struct cm_call call = fake_call();

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(answers); i++) {
		struct cm_error err = CM_ERROR_INIT;
		unsigned int n = 0;

		fake.answers = &answers[i];
		fake.n_answers = 1;
		assert_int_equal(cm_background_list(&fake.session, &call, count, &n, &err),
				 CM_E_PROTOCOL);
		assert_int_equal(n, 0);
	}
}

/* What is whole is listed beside what is not. */
static void test_list_skips(void **state)
{
	static const struct fake_answer answer = LIE("../1\0exit\0000\0000\0000\0000\0000\0000\0"
						     "r1\0exit\0000\0000\0000\0000\0000\0000\0"
						     "2\0exit\0000\0000\0\0000\0001\0001\0/a"
						     "3\0\0000\0000\0001\0000\0001\0001\0/a"
						     "4\0exit\0003\0000\0001\0000\0001\0001\0/a");
#undef LIE
	struct list l;

	(void)state;
	fake.answers = &answer;
	fake.n_answers = 1;
	list_all(&l);
	assert_int_equal(l.n, 1);
	assert_string_equal(l.infos[0].name, "4");
	assert_int_equal(l.infos[0].end.exit_code, 3);
	list_clear(&l);
}

/* A start that was interrupted: whatever of it is there, the others stay listed. */
static void test_interrupted_start(void **state)
{
	static const char *const numbers[] = { "10", "11", "12", "13" };
	const uint64_t offsets[2] = { 0, 0 };
	const struct cm_call call = fake_call();
	struct cm_error err = CM_ERROR_INIT;
	struct cm_exec *e;
	struct list l;

	(void)state;
	need_session();
	e = start("exit 4");
	await(e->name);
	cm_exec_release(e);
	for (size_t i = 0; i < CM_ARRAY_SIZE(numbers); i++) {
		write_entry(numbers[i], "started",
			    i == 0   ? ""
			    : i == 1 ? "soon\n"
				     : "1700000000000\n");
		if (i != 2)
			write_entry(numbers[i], "cmd", "x");
		if (i != 3)
			write_entry(numbers[i], "cwd", "/");
	}
	list_all(&l);
	assert_int_equal(l.n, 1);
	assert_int_equal(l.infos[0].end.exit_code, 4);
	list_clear(&l);
	e = NULL;
	assert_int_equal(cm_background_attach(&fake.session, "10", offsets, false, &call, &e, &err),
			 CM_E_NOT_FOUND);
	assert_null(e);
}

static void test_missing_tools(void **state)
{
	char *const argv[] = { (char *)"true", NULL };
	const struct cm_exec_request request = { .argv = argv, .is_detached = true };
	const struct cm_call call = fake_call();
	struct cm_error err = CM_ERROR_INIT;
	struct cm_exec *e = NULL;
	char path[160];

	(void)state;
	need_session();
	(void)snprintf(path, sizeof(path), "%s/tools", fake.top);
	assert_int_equal(mkdir(path, 0700), 0);
	(void)snprintf(path, sizeof(path), "%s/tools/sh", fake.top);
	assert_int_equal(symlink("/bin/dash", path), 0);
	(void)snprintf(fake.path, sizeof(fake.path), "%s/tools", fake.top);
	assert_int_equal(cm_background_start(&fake.session, &request, &call, &e, &err),
			 CM_E_UNSUPPORTED);
	assert_non_null(strstr(err.msg, "setsid"));
	assert_true(err.hint[0] != '\0');
}

#define BOTH(test)                                                                                 \
	cmocka_unit_test_setup_teardown(test, open_dash, close_fake),                              \
		cmocka_unit_test_setup_teardown(test, open_busybox, close_fake)
#define DASH(test) cmocka_unit_test_setup_teardown(test, open_dash, close_fake)

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(test_output),
		BOTH(test_arguments),
		BOTH(test_many_bytes),
		BOTH(test_cap),
		BOTH(test_outlives),
		BOTH(test_orphan),
		BOTH(test_timeout),
		BOTH(test_signal),
		BOTH(test_input),
		BOTH(test_input_by_argument),
		BOTH(test_not_executed),
		BOTH(test_not_found),
		BOTH(test_lost_connection),
		BOTH(test_list),
		BOTH(test_supervisor),
		BOTH(test_at_once),
		DASH(test_lies),
		DASH(test_list_lies),
		DASH(test_list_skips),
		BOTH(test_interrupted_start),
		DASH(test_missing_tools),
	};

	return cmocka_run_group_tests_name("remote_background", tests, NULL, NULL);
}
