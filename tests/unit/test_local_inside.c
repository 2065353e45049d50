/* SPDX-License-Identifier: Apache-2.0 */
/* A program run in a jail, with a keeper that is played by a child of the test's. */
#include "providers/local/inside.h"
#include "tests/unit/test_base.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/fd.h"

static char program_name[] = "p";
static char *const argv[] = { program_name, NULL };

struct keeper {
	int sock;
	uint64_t id;
	/* the program's */
	int out;
	int err;
};

static struct cm_local local;
static struct cm_local_program program;
static pid_t keeper_pid;

static void pause_ms(unsigned int ms)
{
	const struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 };

	(void)nanosleep(&t, NULL);
}

static void say(int fd, const char *text)
{
	if (cm_write_all(fd, text, strlen(text)) < 0)
		_exit(3);
}

static void say_end(const struct keeper *k, uint64_t id, int status)
{
	struct cm_rec rec = { .type = CM_REC_END, .id = id };

	rec.body.end.kind = CM_END_EXIT;
	rec.body.end.status = status;
	if (cm_proto_send(k->sock, &rec, NULL, NULL, 0) < 0)
		_exit(3);
}

/* Waits until the client wants the program ended. */
static void await_kill(const struct keeper *k)
{
	struct cm_msg msg;

	cm_msg_init(&msg);
	if (cm_proto_recv(k->sock, &msg) != 1 || msg.rec.type != CM_REC_KILL ||
	    msg.rec.id != k->id || msg.rec.body.kill.grace_ms != 0)
		_exit(4);
	cm_msg_clear(&msg);
}

static void begin(void (*play)(struct keeper *))
{
	int pair[2];

	cm_local_init(&local);
	program = (struct cm_local_program){ .argv = argv };
	cm_buf_init(&program.out, 16384);
	cm_buf_init(&program.err, 4096);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	keeper_pid = fork();
	assert_true(keeper_pid >= 0);
	if (keeper_pid == 0) {
		struct keeper k = { .sock = pair[0] };
		struct cm_msg msg;

		/* no keeper outlives a test that hangs */
		(void)alarm(20);
		(void)close(pair[1]);
		cm_msg_init(&msg);
		if (cm_proto_recv(k.sock, &msg) != 1 || msg.n_fds != 2)
			_exit(2);
		k.id = msg.rec.id;
		k.out = msg.fds[0];
		k.err = msg.fds[1];
		play(&k);
		_exit(0);
	}
	(void)close(pair[0]);
	local.jail.sock = pair[1];
}

static int run(struct cm_error *err)
{
	return cm_local_inside(&local, &program, err);
}

static void end(void)
{
	int status = 0;

	cm_fd_close(&local.jail.sock);
	assert_int_equal(waitpid(keeper_pid, &status, 0), keeper_pid);
	assert_int_equal(status, 0);
	cm_buf_clear(&program.out);
	cm_buf_clear(&program.err);
}

static void play_plain(struct keeper *k)
{
	say(k->out, "one\ntwo\n");
	say(k->err, "bad\n");
	/* somebody else's, and then one that comes before the last of the output */
	say_end(k, k->id + 1, 9);
	say_end(k, k->id, 5);
	pause_ms(50);
	say(k->out, "three\n");
}

static void test_output_and_end(void **state)
{
	(void)state;
	begin(play_plain);
	assert_int_equal(run(NULL), CM_OK);
	assert_string_equal(program.out.data, "one\ntwo\nthree\n");
	assert_string_equal(program.err.data, "bad\n");
	assert_int_equal(program.end.status, 5);
	end();
}

static void play_lines(struct keeper *k)
{
	for (int i = 0; i < 1000; i++)
		say(k->out, "a line that would fill the buffer, were it kept\n");
	say(k->out, "the la");
	pause_ms(20);
	say(k->out, "st\n");
	say_end(k, k->id, 0);
}

static void test_last_line(void **state)
{
	(void)state;
	begin(play_lines);
	program.is_last_line = true;
	assert_int_equal(run(NULL), CM_OK);
	assert_int_equal(cm_buf_status(&program.out), CM_OK);
	assert_int_equal(program.out.len, strlen("the last\n"));
	assert_memory_equal(program.out.data, "the last\n", program.out.len);
	end();
}

static void on_signal(int sig)
{
	(void)sig;
}

/* The pipe is empty when the signal comes: a read of it would wait for what comes much later. */
static void play_signal(struct keeper *k)
{
	struct cm_error why = CM_ERROR_INIT;

	say(k->out, "x");
	say(k->err, "y");
	pause_ms(200);
	if (kill(getppid(), SIGUSR1) < 0)
		_exit(5);
	pause_ms(200);
	(void)cm_error_set(&why, CM_E_LEVEL, 0, "no");
	if (cm_proto_send_error(k->sock, CM_REC_FAILED, 0, &why) < 0)
		_exit(3);
	pause_ms(3000);
}

static void test_interrupted(void **state)
{
	const struct sigaction action = { .sa_handler = on_signal };
	struct cm_error err = CM_ERROR_INIT;
	int64_t since = cm_clock_mono_ms();

	(void)state;
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	begin(play_signal);
	assert_int_equal(run(&err), CM_E_LEVEL);
	assert_true(cm_clock_mono_ms() - since < 2000);
	end();
}

static void play_silent(struct keeper *k)
{
	say(k->out, "x\n");
	await_kill(k);
	say_end(k, k->id, 0);
}

static void test_silent(void **state)
{
	struct cm_error err = CM_ERROR_INIT;

	(void)state;
	begin(play_silent);
	program.silence_ms = 300;
	assert_int_equal(run(&err), CM_E_TIMEOUT);
	assert_int_equal(err.code, CM_E_TIMEOUT);
	end();
}

static void play_slow(struct keeper *k)
{
	for (int i = 0; i < 12; i++) {
		say(i % 2 == 0 ? k->out : k->err, ".");
		pause_ms(100);
	}
	say_end(k, k->id, 0);
}

/* It may take its time, as long as it is heard of. */
static void test_slow(void **state)
{
	(void)state;
	begin(play_slow);
	program.silence_ms = 600;
	assert_int_equal(run(NULL), CM_OK);
	assert_int_equal(program.out.len, 6);
	end();
}

static void play_forever(struct keeper *k)
{
	say(k->out, "x");
	pause_ms(200);
	if (kill(getppid(), SIGUSR2) < 0)
		_exit(5);
	/* until the client goes away */
	await_kill(k);
}

static int cancel[2];

static void on_cancel(int sig)
{
	(void)sig;
	(void)!write(cancel[1], "", 1);
}

static void test_cancelled(void **state)
{
	const struct sigaction action = { .sa_handler = on_cancel };
	struct cm_error err = CM_ERROR_INIT;
	int status = 0;

	(void)state;
	assert_int_equal(pipe(cancel), 0);
	assert_int_equal(sigaction(SIGUSR2, &action, NULL), 0);
	begin(play_forever);
	local.events.cancel_fd = cancel[0];
	assert_int_equal(run(&err), CM_E_CANCELLED);
	assert_int_equal(err.code, CM_E_CANCELLED);
	cm_fd_close(&local.jail.sock);
	assert_int_equal(waitpid(keeper_pid, &status, 0), keeper_pid);
	cm_buf_clear(&program.out);
	cm_buf_clear(&program.err);
	(void)close(cancel[0]);
	(void)close(cancel[1]);
}

static void play_dead(struct keeper *k)
{
	say(k->out, "x");
}

static void test_lost(void **state)
{
	(void)state;
	begin(play_dead);
	program.silence_ms = 10000;
	assert_int_equal(run(NULL), CM_E_ISOLATION);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_output_and_end), cmocka_unit_test(test_last_line),
		cmocka_unit_test(test_interrupted),    cmocka_unit_test(test_silent),
		cmocka_unit_test(test_slow),	       cmocka_unit_test(test_cancelled),
		cmocka_unit_test(test_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
