/* SPDX-License-Identifier: Apache-2.0 */
/* Stopping a session whose keeper does not do as it should: a process of this test plays it. */
#include <sys/socket.h>
#include <sys/un.h>

#include "isolation/keeper/proto.h"
#include "providers/local/local.h"
#include "runtime/base/clock.h"
#include "tests/unit/test_base.h"

struct keeper {
	char dir[32];
	char socket[64];
	struct cm_store_session session;
	pid_t pid;
};

enum part {
	/* takes connections, by the kernel, and nothing else */
	PART_HANGS,
	/* holds the lock, and cannot be found */
	PART_DOES_NOT_LISTEN,
	/* who listens is somebody else */
	PART_OF_ANOTHER_USER,
	/* does not know the version, but how to stop; takes its time to end after that */
	PART_OF_ANOTHER_VERSION,
};

static void answer_as_another_version(int listener, int lock)
{
	struct cm_rec stopped = { .type = CM_REC_STOPPED };
	struct cm_error err = CM_ERROR_INIT;
	struct cm_msg msg;
	int sock;

	cm_msg_init(&msg);
	(void)cm_error_set(&err, CM_E_UNSUPPORTED, 0, "another version");
	cm_error_hint(&err, "stop it");
	for (;;) {
		sock = accept(listener, NULL, NULL);
		while (sock >= 0 && cm_proto_recv(sock, &msg) == 1) {
			if (msg.rec.type == CM_REC_HELLO)
				(void)cm_proto_send_error(sock, CM_REC_REFUSED, 0, &err);
			if (msg.rec.type != CM_REC_STOP)
				continue;
			cm_fd_close(&lock);
			(void)cm_proto_send(sock, &stopped, NULL, NULL, 0);
			cm_fd_close(&sock);
			(void)usleep(300000);
			_exit(0);
		}
		cm_fd_close(&sock);
	}
}

static _Noreturn void play(const struct keeper *k, enum part part, int ready)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	int lock = -1;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (cm_store_keeper_lock(k->session.dir_fd, &lock, NULL) < 0)
		_exit(1);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", k->socket);
	if (part == PART_OF_ANOTHER_USER && setuid(65534) < 0)
		_exit(1);
	if (part != PART_DOES_NOT_LISTEN &&
	    (bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	     listen(listener, 8) < 0))
		_exit(1);
	if (write(ready, "x", 1) != 1)
		_exit(1);
	if (part == PART_OF_ANOTHER_VERSION)
		answer_as_another_version(listener, lock);
	for (;;)
		(void)pause();
}

static void begin(struct keeper *k, enum part part)
{
	int ready[2];
	char byte;

	memset(k, 0, sizeof(*k));
	(void)snprintf(k->dir, sizeof(k->dir), "/tmp/cm-test-stop.XXXXXX");
	assert_non_null(mkdtemp(k->dir));
	assert_int_equal(chmod(k->dir, 0777), 0);
	(void)snprintf(k->socket, sizeof(k->socket), "%s/s", k->dir);
	k->session.dir = k->dir;
	k->session.dir_fd = open(k->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	k->session.socket_path = k->socket;
	k->session.record.id = (char *)(uintptr_t) "x";
	assert_int_equal(pipe(ready), 0);
	k->pid = fork();
	assert_true(k->pid >= 0);
	if (k->pid == 0)
		play(k, part, ready[1]);
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
}

/* Its status, when it has ended by itself or was killed; -1: it runs on, and is ended here. */
static int end(struct keeper *k)
{
	int status = 0;
	pid_t pid = waitpid(k->pid, &status, WNOHANG);

	if (pid == 0) {
		(void)kill(k->pid, SIGKILL);
		assert_int_equal(waitpid(k->pid, NULL, 0), k->pid);
		status = -1;
	}
	assert_int_equal(cm_remove_tree_at(AT_FDCWD, k->dir), 0);
	close(k->session.dir_fd);
	return status;
}

static void test_hangs(void **state)
{
	struct keeper k;
	struct cm_error err = CM_ERROR_INIT;
	size_t before = count_fds();
	int status;

	(void)state;
	begin(&k, PART_HANGS);
	assert_int_equal(kill(k.pid, SIGSTOP), 0);
	assert_int_equal(cm_local_stop(&k.session, cm_clock_mono_ms() + 300, &err),
			 CM_LOCAL_KILLED);
	assert_false(cm_store_keeper_alive(&k.session));
	assert_int_equal(err.code, CM_OK);
	assert_int_equal(access(k.socket, F_OK), -1);
	status = end(&k);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(count_fds(), before);
}

/* Nobody is killed who was not seen to be the keeper. */
static void test_does_not_listen(void **state)
{
	struct keeper k;
	struct cm_error err = CM_ERROR_INIT;

	(void)state;
	begin(&k, PART_DOES_NOT_LISTEN);
	assert_int_equal(cm_local_stop(&k.session, cm_clock_mono_ms() + 300, &err), CM_E_TIMEOUT);
	assert_true(err.hint[0] != '\0');
	assert_int_equal(end(&k), -1);
}

static void test_of_another_user(void **state)
{
	struct keeper k;
	struct cm_error err = CM_ERROR_INIT;
	int64_t since = cm_clock_mono_ms();

	(void)state;
	if (geteuid() != 0)
		skip();
	begin(&k, PART_OF_ANOTHER_USER);
	assert_int_equal(cm_local_stop(&k.session, since + 20000, &err), CM_E_DENIED);
	assert_true(cm_clock_mono_ms() - since < 5000);
	assert_int_equal(err.code, CM_E_DENIED);
	assert_int_equal(end(&k), -1);
}

static void test_of_another_version(void **state)
{
	struct keeper k;
	struct cm_error err = CM_ERROR_INIT;

	(void)state;
	begin(&k, PART_OF_ANOTHER_VERSION);
	assert_int_equal(cm_local_stop(&k.session, cm_clock_mono_ms() + 10000, &err), CM_OK);
	/* and it is not there any more */
	assert_int_equal(end(&k), 0);
}

/* Whoever joins a session is told by the keeper, in its words. */
static void test_joining_another_version(void **state)
{
	struct keeper k;
	struct cm_jail jail;
	struct cm_error err = CM_ERROR_INIT;

	(void)state;
	begin(&k, PART_OF_ANOTHER_VERSION);
	cm_jail_init(&jail);
	assert_int_equal(cm_jail_connect(&jail, k.socket, "x", cm_clock_mono_ms() + 10000, &err),
			 CM_E_UNSUPPORTED);
	assert_string_equal(err.msg, "another version");
	assert_string_equal(err.hint, "stop it");
	(void)cm_jail_close(&jail);
	assert_int_equal(end(&k), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hangs),
		cmocka_unit_test(test_does_not_listen),
		cmocka_unit_test(test_of_another_user),
		cmocka_unit_test(test_of_another_version),
		cmocka_unit_test(test_joining_another_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
