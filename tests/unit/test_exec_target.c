/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for a command: the test is the keeper at the other end of the socket. */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "isolation/keeper/proto.h"
#include "runtime/base/clock.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/exec_target.h"
#include "tests/unit/test_base.h"

#define ID 7U
#define WAIT_MS 2000

/* The table of commands names those that need more than this program is linked with. */
const struct cm_command cm_commands[] = { { .name = NULL } };

const struct cm_command *cm_command_find(const char *name)
{
	(void)name;
	return NULL;
}

int cm_command_unknown(const char *name, struct cm_error *err)
{
	return cm_error_set(err, CM_E_INVALID, 0, "unknown command '%s'", name);
}

struct bench {
	struct cm_exec_target t;
	int keeper;
};

static int setup(void **state)
{
	static struct bench b;
	int pair[2];

	memset(&b, 0, sizeof(b));
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	cm_jail_init(&b.t.jail);
	b.t.jail.sock = pair[0];
	b.keeper = pair[1];
	*state = &b;
	return 0;
}

static int teardown(void **state)
{
	struct bench *b = *state;

	(void)close(b->t.jail.sock);
	(void)close(b->keeper);
	return 0;
}

static void test_refused(void **state)
{
	struct bench *b = *state;
	struct cm_exec_fate fate = { .is_known = false };
	struct cm_error why = CM_ERROR_INIT;
	struct cm_error err = CM_ERROR_INIT;

	/* of somebody else's request, and of ours */
	(void)cm_error_set(&why, CM_E_BUSY, 0, "another one");
	assert_int_equal(cm_proto_send_error(b->keeper, CM_REC_REFUSED, ID + 1, &why), 0);
	(void)cm_error_set(&why, CM_E_LIMIT, 0, "no room for it");
	assert_int_equal(cm_proto_send_error(b->keeper, CM_REC_REFUSED, ID, &why), 0);
	assert_int_equal(cm_exec_target_wait(&b->t, ID, cm_clock_mono_ms() + WAIT_MS, &fate, &err),
			 CM_E_LIMIT);
	assert_string_equal(err.msg, "no room for it");
	assert_false(fate.is_known);
}

static void test_ended(void **state)
{
	struct bench *b = *state;
	struct cm_exec_fate fate = { .is_known = false };
	struct cm_error err = CM_ERROR_INIT;
	struct cm_rec rec = { .type = CM_REC_END, .id = ID };

	rec.body.end.kind = CM_END_EXIT;
	rec.body.end.status = 3;
	assert_int_equal(cm_proto_send(b->keeper, &rec, NULL, NULL, 0), 0);
	assert_int_equal(cm_exec_target_wait(&b->t, ID, cm_clock_mono_ms() + WAIT_MS, &fate, &err),
			 CM_OK);
	assert_true(fate.is_known);
	assert_int_equal(fate.end.status, 3);
}

static void test_running(void **state)
{
	struct bench *b = *state;
	struct cm_exec_fate fate = { .is_known = false };
	struct cm_error err = CM_ERROR_INIT;

	assert_int_equal(cm_exec_target_wait(&b->t, ID, cm_clock_mono_ms() + 20, &fate, &err),
			 CM_E_TIMEOUT);
	assert_false(fate.is_known);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ended, setup, teardown),
		cmocka_unit_test_setup_teardown(test_running, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
