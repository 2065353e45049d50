/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A keeper between hostile clients and a hostile init. The input is any number of steps of eight bytes:
 * who speaks (three clients, or init), what, about which command, and how it is spoiled. Whatever they
 * say, its tables hold, and nothing stays open.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "isolation/keeper/jobs.h"
#include "isolation/keeper/keeper.h"
#include "runtime/base/fd.h"
#include "runtime/base/sock.h"
#include "tests/fuzz/fuzz.h"

#define N_CLIENTS 3
#define STEP 8
#define MAX_STEPS 64

static struct cm_keeper keeper;
static struct cm_plan_header header;

static const char state_template[] = "/tmp/cm-fuzz-keeper-XXXXXX";
static char state_dir[sizeof(state_template)];

/* the far ends; -1: closed */
static int clients[N_CLIENTS];
static int init;

static void make_pair(int *ret_near, int *ret_far)
{
	int fds[2];

	require(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
	*ret_near = fds[0];
	*ret_far = fds[1];
}

static void begin(struct cm_keeper *k, bool is_temporary)
{
	memset(k, 0, sizeof(*k));
	k->starter = k->init_pidfd = k->signal_fd = k->listen_fd = k->age_fd = -1;
	k->lock_fd = k->events.dir_fd = k->hello_timer = k->result_timer = k->hung_timer = -1;
	for (size_t i = 0; i < CM_KEEPER_MAX_CLIENTS; i++)
		k->clients[i].sock = -1;
	cm_cgroup_init(&k->cgroup);
	cm_msg_init(&k->msg);
	/* the empty string for all of its texts */
	header.generation = 1;
	k->plan.header = &header;
	k->plan.strings = "";
	k->state = CM_KS_UP;
	k->is_temporary = is_temporary;
	k->events.session = "";
	require(cm_loop_init(&k->loop, NULL) == CM_OK);
	make_pair(&k->init_sock, &init);
	/* as start.c has it, though nobody runs this loop */
	require(cm_loop_add(&k->loop, k->init_sock, EPOLLIN, NULL, k, NULL) == CM_OK);
	memcpy(state_dir, state_template, sizeof(state_template));
	require(mkdtemp(state_dir) != NULL);
	k->state_dir_fd = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	require(k->state_dir_fd >= 0);
}

static void connect_client(struct cm_keeper *k, unsigned int i)
{
	int near;

	make_pair(&near, &clients[i]);
	require(cm_keeper_client_add(k, near, false, NULL) == CM_OK);
}

static void check_tables(const struct cm_keeper *k)
{
	size_t n_jobs = 0;

	for (size_t i = 0; i < CM_MAX_EXECS; i++) {
		const struct cm_keeper_exec *e = &k->execs[i];

		require(!e->is_running || e->is_used);
		require(!e->is_running || e->client < 0 || k->clients[e->client].sock >= 0);
		n_jobs += e->job != NULL;
	}
	for (size_t i = 0; i < CM_KEEPER_MAX_WATCHES; i++)
		require(!k->watches[i].is_used || k->clients[k->watches[i].client].sock >= 0);
	require(n_jobs <= k->n_jobs);
}

/* Records as each of the two has them, and those of the other. */
static uint16_t type_of(unsigned int n, bool is_init)
{
	static const uint16_t asked[] = {
		CM_REC_HELLO,	    CM_REC_INFO, CM_REC_EXEC,	 CM_REC_EXEC,
		CM_REC_SIGNAL,	    CM_REC_KILL, CM_REC_LIST,	 CM_REC_ATTACH,
		CM_REC_CLOSE_INPUT, CM_REC_STOP, CM_REC_STARTED,
	};
	static const uint16_t told[] = {
		CM_REC_UP,	CM_REC_STARTED,	  CM_REC_STARTED, CM_REC_END,  CM_REC_END,
		CM_REC_REFUSED, CM_REC_SLOT_FREE, CM_REC_FAILED,  CM_REC_EXEC,
	};

	return is_init ? told[n % CM_ARRAY_SIZE(told)] : asked[n % CM_ARRAY_SIZE(asked)];
}

/* bytes: who, type, the client's number, the command's, flags, flags, descriptors, how spoiled */
static void speak(int sock, const uint8_t *step, bool is_init)
{
	static const char blob[] = "/\0true\0A=1";
	struct cm_rec rec = { .type = type_of(step[1], is_init), .id = step[2] % 8U };
	uint64_t exec_id = UINT64_C(1) << 32 | step[3] % 16U;
	struct iovec iov[2] = { { &rec, sizeof(rec) }, { (void *)(uintptr_t)blob, 0 } };
	unsigned int n_fds = step[6] % 5U;
	int fds[4] = { -1, -1, -1, -1 };

	if (is_init)
		rec.id = exec_id;
	if (rec.type == CM_REC_EXEC) {
		rec.body.exec.flags = step[4] | (uint32_t)step[5] << 8;
		rec.body.exec.n_args = 1;
		rec.body.exec.n_env = 1;
		rec.len = sizeof(blob);
	} else if (rec.type == CM_REC_HELLO) {
		rec.body.hello.version = CM_PROTO_VERSION + step[4] % 16 / 15;
	} else if (rec.type == CM_REC_SLOT_FREE) {
		rec.body.slot.slot = step[3] % 20U == 19 ? UINT32_MAX : step[3] % 20U;
	} else if (rec.type == CM_REC_END) {
		rec.body.end.kind = step[4] % 8U;
		rec.body.end.flags = step[5];
	} else {
		rec.body.attach.exec_id = exec_id;
		rec.body.attach.flags = step[4] % 2U;
	}
	if (step[7] >= 0xc0)
		((uint8_t *)&rec)[step[4] % sizeof(rec)] ^= step[5];
	iov[1].iov_len = rec.len <= sizeof(blob) ? rec.len : sizeof(blob);
	if (step[7] >= 0x80 && step[7] < 0xc0)
		iov[0].iov_len -= step[5] % sizeof(rec);
	for (unsigned int i = 0; i < n_fds; i++)
		require((fds[i] = open("/dev/null", O_RDWR | O_CLOEXEC)) >= 0);
	(void)cm_sock_send(sock, iov, 2, fds, n_fds);
	for (unsigned int i = 0; i < n_fds; i++)
		(void)close(fds[i]);
}

static void drain(int sock)
{
	struct cm_msg msg;
	int r;

	cm_msg_init(&msg);
	do {
		r = sock >= 0 ? cm_proto_recv(sock, &msg) : 0;
	} while (r == 1);
	cm_msg_clear(&msg);
}

static void take_step(struct cm_keeper *k, const uint8_t *step)
{
	unsigned int who = step[0] % 8U;
	unsigned int client = who % N_CLIENTS;

	if (who >= 6) {
		speak(init, step, true);
		cm_keeper_answer(k);
	} else if (who >= 3 && step[1] % 16U == 0) {
		/* it goes, and another one comes */
		cm_fd_close(&clients[client]);
	} else {
		speak(clients[client], step, false);
	}
	for (int i = 0; i < CM_KEEPER_MAX_CLIENTS; i++) {
		if (k->clients[i].sock >= 0 && !k->clients[i].is_paused)
			cm_keeper_request(k, i);
	}
	if (clients[client] < 0)
		connect_client(k, client);
	/* others read later, or never */
	if (step[0] >= 0x40)
		drain(clients[client]);
	drain(init);
	check_tables(k);
}

static void end(struct cm_keeper *k)
{
	for (int i = 0; i < CM_KEEPER_MAX_CLIENTS; i++) {
		if (k->clients[i].sock >= 0)
			cm_keeper_client_drop(k, i);
	}
	check_tables(k);
	cm_job_end_all(k);
	for (uint32_t i = 0; i < CM_MAX_EXECS; i++)
		cm_keeper_exec_free(k, i);
	cm_outbox_clear(&k->outbox);
	cm_msg_clear(&k->msg);
	for (size_t i = 0; i < N_CLIENTS; i++)
		cm_fd_close(&clients[i]);
	cm_fd_close(&init);
	cm_fd_close(&k->init_sock);
	cm_fd_close(&k->state_dir_fd);
	cm_loop_clear(&k->loop);
	require(cm_remove_tree_at(AT_FDCWD, state_dir) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t open_before = count_fds();

	begin(&keeper, size > 0 && data[size - 1] % 8 == 0);
	for (unsigned int i = 0; i < N_CLIENTS; i++)
		connect_client(&keeper, i);
	for (size_t i = 0; i < MAX_STEPS && size >= STEP && !keeper.loop.is_stopped; i++) {
		take_step(&keeper, data);
		data += STEP;
		size -= STEP;
	}
	end(&keeper);
	require(count_fds() == open_before);
	return 0;
}
