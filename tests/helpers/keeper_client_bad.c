/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that are wrong: each is refused, or its connection is closed, and the keeper goes on.
 *
 * garbage	what is no record, or none that was finished
 * order	before the greeting; twice; of commands that are no one's, or another's
 * exec		requests for commands that contradict themselves
 * random	thousands of records made up from a fixed seed
 * refused	a command that init refuses; then the connection is kept for a while
 * look		what is answered to each request, until the connection is closed
 * listen	a socket at that path, for ten seconds
 * old		a keeper of another version, of the session whose state directory is the current one,
 *		until it is told to stop
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/sock.h"
#include "runtime/store/keeper_lock.h"
#include "tests/helpers/keeper_client.h"

#define N_RANDOM 20000
#define ANSWER_MS 10000
#define QUIET_MS 200

enum answer {
	/* end of file */
	CLOSED,
	REFUSED,
	/* STARTED, LISTED, ... */
	TAKEN,
	NOTHING,
};

static const char *const answer_names[] = { "closed", "refused", "taken", "nothing" };

/* A command that ends at once, as cwd and argument; its request is what a test then spoils. */
static const char blob[] = "/\0/bin/true";

static struct cm_rec exec_request(uint64_t id, uint32_t flags)
{
	struct cm_rec rec = { .type = CM_REC_EXEC, .id = id, .len = sizeof(blob) };

	rec.body.exec.flags = flags;
	rec.body.exec.n_args = 1;
	return rec;
}

static int send_raw(int sock, const void *data, size_t len, const int *fds, size_t n_fds)
{
	const struct iovec iov = { (void *)(uintptr_t)data, len };

	return cm_sock_send(sock, &iov, 1, fds, n_fds);
}

/* The next answer that is about no command's end. */
static enum answer answer_of(int sock, struct cm_msg *msg, int wait_ms)
{
	struct pollfd p = { .fd = sock, .events = POLLIN };

	for (;;) {
		int r;

		if (poll(&p, 1, wait_ms) <= 0)
			return NOTHING;
		r = cm_proto_recv(sock, msg);
		if (r <= 0)
			return CLOSED;
		if (msg->rec.type != CM_REC_END)
			return msg->rec.type == CM_REC_REFUSED ? REFUSED : TAKEN;
	}
}

static void expect(int sock, enum answer want, const char *what)
{
	struct cm_msg msg;
	enum answer got;

	cm_msg_init(&msg);
	got = answer_of(sock, &msg, want == NOTHING ? QUIET_MS : ANSWER_MS);
	if (got == REFUSED && want == REFUSED) {
		struct cm_error why = CM_ERROR_INIT;

		cm_proto_error_of(&msg, &why);
		(void)printf("%s: %s\n", what, why.msg);
	}
	cm_msg_clear(&msg);
	if (got != want) {
		(void)fprintf(stderr, "keeper_client: %s: %s, and not %s\n", what,
			      answer_names[got], answer_names[want]);
		exit(1);
	}
}

static int greeted(char **argv)
{
	struct cm_jail jail;

	kc_hello(&jail, argv);
	return jail.sock;
}

/* Somebody else is served all the while. */
static void check_alive(char **argv, const char *after)
{
	struct cm_rec rec = { .type = CM_REC_LIST, .id = 1 };
	int sock = greeted(argv);

	if (cm_proto_send(sock, &rec, NULL, NULL, 0) < 0)
		kc_fail(after, NULL);
	expect(sock, TAKEN, after);
	(void)close(sock);
}

/* --- garbage ------------------------------------------------------------------------------- */

struct spoiled {
	const char *what;
	/* of the record, and what its header says of the rest */
	size_t send_len;
	uint32_t len;
	uint16_t flags;
	/* a descriptor comes along: of an unsealed memfd of this size; 0: none */
	size_t memfd_size;
};

static const struct spoiled spoiled[] = {
	{ "one byte", 1, 0, 0, 0 },
	{ "half a record", sizeof(struct cm_rec) / 2, 0, 0, 0 },
	{ "a record less one byte", sizeof(struct cm_rec) - 1, 0, 0, 0 },
	{ "more than is said", sizeof(struct cm_rec) + 5, 4, 0, 0 },
	{ "less than is said", sizeof(struct cm_rec) + 5, 6, 0, 0 },
	{ "a blob that is missing", sizeof(struct cm_rec), 100, 0, 0 },
	{ "a blob of 4 GiB", sizeof(struct cm_rec) + 5, UINT32_MAX, 0, 0 },
	{ "more than a message can have", sizeof(struct cm_rec) + CM_PROTO_INLINE_MAX + 1,
	  CM_PROTO_INLINE_MAX + 1, 0, 0 },
	{ "a memfd that is missing", sizeof(struct cm_rec), 100000, CM_RECF_MEMFD, 0 },
	{ "a memfd that can be changed", sizeof(struct cm_rec), 100000, CM_RECF_MEMFD, 100000 },
	{ "a memfd of another size", sizeof(struct cm_rec), 100000, CM_RECF_MEMFD, 5 },
	{ "a memfd beside a blob", sizeof(struct cm_rec) + 5, 5, CM_RECF_MEMFD, 5 },
};

static void send_spoiled(int sock, const struct spoiled *s, uint16_t type)
{
	static char data[sizeof(struct cm_rec) + CM_PROTO_INLINE_MAX + 1];
	struct cm_rec rec = { .type = type, .flags = s->flags, .len = s->len, .id = 7 };
	int fd = -1;

	memcpy(data, &rec, sizeof(rec));
	if (s->memfd_size > 0) {
		fd = memfd_create("spoiled", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		if (fd < 0 || ftruncate(fd, (off_t)s->memfd_size) < 0)
			kc_fail("memfd", NULL);
	}
	if (send_raw(sock, data, s->send_len, &fd, fd >= 0 ? 1 : 0) < 0)
		kc_fail(s->what, NULL);
	cm_fd_close(&fd);
}

static int garbage(char **argv)
{
	static const uint16_t types[] = { CM_REC_EXEC, CM_REC_LIST, CM_REC_ATTACH,
					  CM_REC_CLOSE_INPUT, CM_REC_INFO };

	for (size_t t = 0; t < CM_ARRAY_SIZE(types); t++) {
		for (size_t i = 0; i < CM_ARRAY_SIZE(spoiled); i++) {
			int sock = greeted(argv);

			send_spoiled(sock, &spoiled[i], types[t]);
			expect(sock, CLOSED, spoiled[i].what);
			(void)close(sock);
			check_alive(argv, spoiled[i].what);
		}
	}
	return 0;
}

/* --- order --------------------------------------------------------------------------------- */

static void send_simple(int sock, uint16_t type, uint64_t id, uint64_t exec_id, uint32_t flags)
{
	struct cm_rec rec = { .type = type, .id = id };

	rec.body.attach.exec_id = exec_id;
	rec.body.attach.flags = flags;
	if (cm_proto_send(sock, &rec, NULL, NULL, 0) < 0)
		kc_fail("cannot send", NULL);
}

/* A command that reads from what the keeper holds (or from nothing); its exec id. */
static uint64_t start_cat(int sock, uint64_t id, uint32_t flags)
{
	static const char text[] = "/\0/bin/sleep\0"
				   "1000";
	struct cm_rec rec = exec_request(id, flags);
	struct cm_msg msg;
	uint64_t exec_id;

	rec.len = sizeof(text);
	rec.body.exec.n_args = 2;
	cm_msg_init(&msg);
	if (cm_proto_send(sock, &rec, text, NULL, 0) < 0 ||
	    answer_of(sock, &msg, ANSWER_MS) != TAKEN || msg.rec.type != CM_REC_STARTED)
		kc_fail("a command does not start", NULL);
	exec_id = msg.rec.body.started.exec_id;
	cm_msg_clear(&msg);
	return exec_id;
}

static void before_hello(char **argv)
{
	static const uint16_t types[] = {
		CM_REC_EXEC, CM_REC_LIST, CM_REC_ATTACH,    CM_REC_CLOSE_INPUT,
		CM_REC_INFO, CM_REC_STOP, CM_REC_KILL,	    CM_REC_SIGNAL,
		CM_REC_PLAN, CM_REC_GO,	  CM_REC_SLOT_FREE, CM_REC_UP,
		CM_REC_END,  0,		  UINT16_MAX,
	};
	struct cm_rec rec = { .type = CM_REC_HELLO, .id = 5 };
	int sock = kc_connect(argv);

	for (size_t i = 0; i < CM_ARRAY_SIZE(types); i++) {
		send_simple(sock, types[i], 1, 0, 0);
		expect(sock, REFUSED, "before the greeting");
	}
	rec.len = 5;
	if (cm_proto_send(sock, &rec, "other", NULL, 0) < 0)
		kc_fail("cannot send", NULL);
	expect(sock, REFUSED, "the name of another session");
	send_simple(sock, CM_REC_LIST, 1, 0, 0);
	expect(sock, REFUSED, "after the name of another session");
	(void)close(sock);
}

static int order(char **argv)
{
	int sock = greeted(argv);
	int other = greeted(argv);
	uint64_t mine = start_cat(sock, 1, 0);
	uint64_t detached = start_cat(sock, 2, CM_EXECF_DETACH | CM_EXECF_INPUT);

	before_hello(argv);
	send_simple(sock, CM_REC_ATTACH, 10, mine + 1000, 0);
	expect(sock, REFUSED, "to follow what does not run");
	send_simple(sock, CM_REC_ATTACH, 10, 0, 0);
	expect(sock, REFUSED, "to follow command 0");
	send_simple(sock, CM_REC_ATTACH, 10, mine, CM_ATTACHF_INPUT);
	expect(sock, REFUSED, "the input of one without");
	send_simple(sock, CM_REC_ATTACH, 1, detached, 0);
	expect(sock, REFUSED, "a number that has a command");
	send_simple(sock, CM_REC_ATTACH, 10, detached, 0);
	expect(sock, TAKEN, "to follow");
	send_simple(sock, CM_REC_ATTACH, 10, detached, 0);
	expect(sock, REFUSED, "the same number twice");
	send_simple(other, CM_REC_KILL, 1, 0, 0);
	send_simple(other, CM_REC_SIGNAL, 2, 9, 0);
	expect(other, NOTHING, "commands of another client by its numbers");
	send_simple(other, CM_REC_CLOSE_INPUT, 3, mine, 0);
	expect(other, REFUSED, "to close the input of one without");
	send_simple(other, CM_REC_CLOSE_INPUT, 3, mine + 1000, 0);
	expect(other, REFUSED, "to close the input of none");
	send_simple(other, CM_REC_CLOSE_INPUT, 3, detached, 0);
	expect(other, TAKEN, "to close an input");
	send_simple(other, CM_REC_ATTACH, 4, detached, CM_ATTACHF_INPUT);
	expect(other, REFUSED, "an input that is closed");
	send_simple(other, CM_REC_CLOSE_INPUT, 3, detached, 0);
	expect(other, TAKEN, "to close it twice");
	send_simple(other, CM_REC_ATTACH, 5, mine, 0);
	expect(other, TAKEN, "both run");
	send_simple(other, CM_REC_ATTACH, 6, detached, 0);
	expect(other, TAKEN, "all the while");
	check_alive(argv, "at the end");
	return 0;
}

/* --- exec ---------------------------------------------------------------------------------- */

struct contradiction {
	const char *what;
	uint32_t flags;
	uint32_t n_args;
	uint32_t n_env;
	unsigned int n_fds;
	/* bytes of the blob less than there are */
	uint32_t cut;
	uint64_t journal_bytes;
};

static const struct contradiction contradictions[] = {
	{ "descriptors for a detached one", CM_EXECF_DETACH, 1, 0, 1, 0, 0 },
	{ "one's own output for a detached one", CM_EXECF_DETACH | CM_EXECF_STDOUT, 1, 0, 0, 0, 0 },
	{ "an input that nobody holds", CM_EXECF_INPUT, 1, 0, 0, 0, 0 },
	{ "a flag of the keeper's", CM_EXECF_LEAF, 1, 0, 0, 0, 0 },
	{ "a flag that there is not", 1U << 31, 1, 0, 0, 0, 0 },
	{ "four descriptors", CM_EXECF_STDIN | CM_EXECF_STDOUT | CM_EXECF_STDERR, 1, 0, 4, 0, 0 },
	{ "fewer descriptors than are said", CM_EXECF_STDIN | CM_EXECF_STDOUT, 1, 0, 1, 0, 0 },
	{ "more descriptors than are said", CM_EXECF_STDIN, 1, 0, 2, 0, 0 },
	{ "no arguments", 0, 0, 0, 0, 0, 0 },
	{ "no arguments, detached", CM_EXECF_DETACH, 0, 0, 0, 0, 0 },
	{ "more arguments than come", 0, 2, 0, 0, 0, 0 },
	{ "more variables than come", 0, 1, 1, 0, 0, 0 },
	{ "the largest numbers", 0, UINT32_MAX, UINT32_MAX, 0, 0, 0 },
	{ "the largest numbers, detached", CM_EXECF_DETACH, UINT32_MAX, UINT32_MAX, 0, 0, 0 },
	{ "an argument without its end", 0, 1, 0, 0, 1, 0 },
	{ "nothing", 0, 1, 0, 0, sizeof(blob), 0 },
	{ "nothing, detached", CM_EXECF_DETACH, 1, 0, 0, sizeof(blob), 0 },
	{ "a journal without a bound", CM_EXECF_DETACH, 1, 0, 0, 0, UINT64_MAX },
};

static int exec(char **argv)
{
	int sock = greeted(argv);
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	const int fds[4] = { null_fd, null_fd, null_fd, null_fd };

	for (size_t i = 0; i < CM_ARRAY_SIZE(contradictions); i++) {
		const struct contradiction *c = &contradictions[i];
		struct cm_rec rec = exec_request(i + 1, c->flags);

		rec.body.exec.n_args = c->n_args;
		rec.body.exec.n_env = c->n_env;
		rec.body.exec.journal_bytes = c->journal_bytes;
		rec.len -= c->cut;
		if (cm_proto_send(sock, &rec, blob, fds, c->n_fds) < 0)
			kc_fail(c->what, NULL);
		expect(sock, REFUSED, c->what);
	}
	(void)start_cat(sock, 1000, 0);
	return 0;
}

/* --- random -------------------------------------------------------------------------------- */

static uint32_t next_random(void)
{
	static uint32_t state = 20261130;

	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return state;
}

static void make_up(struct cm_rec *rec)
{
	/* not STOP: that would be understood */
	static const uint16_t types[] = { CM_REC_HELLO,	 CM_REC_INFO,	    CM_REC_KILL,
					  CM_REC_EXEC,	 CM_REC_EXEC,	    CM_REC_EXEC,
					  CM_REC_SIGNAL, CM_REC_LIST,	    CM_REC_ATTACH,
					  CM_REC_ATTACH, CM_REC_CLOSE_INPUT };

	memset(rec, 0, sizeof(*rec));
	rec->type = next_random() % 50 == 0 ? (uint16_t)(next_random() % 60 + 4)
					    : types[next_random() % CM_ARRAY_SIZE(types)];
	rec->id = next_random() % 8;
	/* now and then all of it, else what may be understood */
	for (size_t i = 0; i < sizeof(rec->body.pad) && next_random() % 8 == 0; i++)
		rec->body.pad[i] = (uint8_t)next_random();
	if (rec->type == CM_REC_EXEC && next_random() % 8 != 0) {
		*rec = exec_request(rec->id, next_random() & CM_EXECF_CLIENT_);
		rec->body.exec.timeout_ms = 50;
	} else if (next_random() % 4 == 0) {
		rec->len = next_random() % (uint32_t)sizeof(blob);
	}
	if (rec->type == CM_REC_ATTACH || rec->type == CM_REC_CLOSE_INPUT) {
		rec->body.attach.exec_id = UINT64_C(1) << 32 | next_random() % 4000;
		rec->body.attach.flags = next_random() % 2;
	}
}

static void drain(int sock)
{
	struct pollfd p = { .fd = sock, .events = POLLIN };
	struct cm_msg msg;

	cm_msg_init(&msg);
	while (poll(&p, 1, 0) > 0 && cm_proto_recv(sock, &msg) > 0)
		;
	cm_msg_clear(&msg);
}

static int random_requests(char **argv)
{
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	const int fds[4] = { null_fd, null_fd, null_fd, null_fd };
	int sock = greeted(argv);

	for (int i = 0; i < N_RANDOM; i++) {
		struct cm_rec rec;

		make_up(&rec);
		if (cm_proto_send(sock, &rec, blob, fds, next_random() % 5) < 0) {
			(void)close(sock);
			sock = greeted(argv);
		}
		drain(sock);
	}
	check_alive(argv, "at the end");
	return 0;
}

/* --- refused ------------------------------------------------------------------------------- */

static int refused(char **argv)
{
	const struct timespec while_ = { .tv_sec = 8 };
	struct cm_rec rec = exec_request(1, CM_EXECF_STDIN);
	int sock = greeted(argv);

	/* a descriptor is missing, which init is the first to see */
	if (cm_proto_send(sock, &rec, blob, NULL, 0) < 0)
		kc_fail("cannot send", NULL);
	expect(sock, REFUSED, "a command");
	(void)fflush(stdout);
	(void)nanosleep(&while_, NULL);
	return 0;
}

/* --- who may, and who one is ---------------------------------------------------------------- */

static int look(char **argv)
{
	static const uint16_t types[] = { CM_REC_INFO, CM_REC_LIST, CM_REC_ATTACH,
					  CM_REC_CLOSE_INPUT };
	struct cm_rec hello = { .type = CM_REC_HELLO, .len = (uint32_t)strlen(argv[2]) };
	int sock = kc_connect(argv);
	enum answer got = CLOSED;
	struct cm_msg msg;

	hello.body.hello.version = CM_PROTO_VERSION;
	cm_msg_init(&msg);
	if (cm_proto_send(sock, &hello, argv[2], NULL, 0) == 0)
		got = answer_of(sock, &msg, ANSWER_MS);
	(void)printf("%s\n", answer_names[got]);
	for (size_t i = 0; i < CM_ARRAY_SIZE(types); i++) {
		struct cm_rec rec = { .type = types[i], .id = 1 };

		got = CLOSED;
		if (cm_proto_send(sock, &rec, NULL, NULL, 0) == 0)
			got = answer_of(sock, &msg, ANSWER_MS);
		(void)printf("%s\n", answer_names[got]);
	}
	cm_msg_clear(&msg);
	return 0;
}

static int make_socket(char **argv)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", argv[1]);
	if (sock < 0 || bind(sock, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(sock, 64) < 0)
		kc_fail("cannot listen", NULL);
	return sock;
}

static int listen_there(char **argv)
{
	const struct timespec while_ = { .tv_sec = 10 };

	(void)make_socket(argv);
	(void)nanosleep(&while_, NULL);
	return 0;
}

/* What is frozen is answered; false: it was told to stop. */
static bool serve_old(int sock, const char *id, struct cm_msg *msg)
{
	struct cm_rec rec = { .type = CM_REC_INFO, .id = msg->rec.id };
	struct cm_error why = CM_ERROR_INIT;

	if (msg->rec.type == CM_REC_STOP)
		return false;
	rec.body.up.version = CM_PROTO_VERSION + 1;
	if (msg->rec.type == CM_REC_INFO) {
		(void)cm_proto_send(sock, &rec, NULL, NULL, 0);
		return true;
	}
	if (msg->rec.type == CM_REC_HELLO)
		(void)cm_error_set(&why, CM_E_UNSUPPORTED, 0,
				   "session '%s' was started by another version", id);
	else
		(void)cm_error_set(&why, CM_E_PROTOCOL, 0, "a request that is unknown");
	cm_error_hint(&why, "stop the session and start it again");
	(void)cm_proto_send_error(sock, CM_REC_REFUSED, msg->rec.id, &why);
	return true;
}

static int old(char **argv)
{
	struct cm_rec stopped = { .type = CM_REC_STOPPED };
	struct cm_error err = CM_ERROR_INIT;
	int dir_fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int lock_fd = -1;
	struct cm_msg msg;
	int listener;

	if (dir_fd < 0 || cm_store_keeper_lock(dir_fd, &lock_fd, &err) < 0)
		kc_fail("cannot lock", &err);
	listener = make_socket(argv);
	cm_msg_init(&msg);
	for (;;) {
		int sock = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

		while (cm_proto_recv(sock, &msg) == 1) {
			if (serve_old(sock, argv[2], &msg))
				continue;
			stopped.id = msg.rec.id;
			(void)unlink(argv[1]);
			cm_fd_close(&lock_fd);
			(void)cm_proto_send(sock, &stopped, NULL, NULL, 0);
			return 0;
		}
		(void)close(sock);
	}
}

const struct kc_mode kc_bad_modes[] = {
	{ "garbage", garbage },	       { "order", order },     { "exec", exec },
	{ "random", random_requests }, { "refused", refused }, { "look", look },
	{ "listen", listen_there },    { "old", old },	       { NULL, NULL },
};
