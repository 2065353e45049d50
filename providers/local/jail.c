/* SPDX-License-Identifier: Apache-2.0 */
/* The client's end of a keeper. */
#include "providers/local/jail.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "providers/local/launch.h"
#include "runtime/base/alloc.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"

void cm_jail_init(struct cm_jail *jail)
{
	memset(jail, 0, sizeof(*jail));
	jail->sock = -1;
	jail->skeleton.lock_fd = -1;
}

static void wait_for(pid_t pid, int *ret_status)
{
	while (waitpid(pid, ret_status, 0) < 0 && errno == EINTR)
		;
}

/* Of a temporary jail: end of file is what it ends by. */
static void end_keeper(struct cm_jail *jail)
{
	cm_fd_close(&jail->sock);
	(void)cm_launch_end(&jail->launch, NULL);
	if (jail->spawned > 0) {
		wait_for(jail->spawned, &jail->wait_status);
		/* ours only where the keeper has left it; else there is nobody to wait for */
		if (jail->reaps && jail->up.init_pid > 0)
			wait_for(jail->up.init_pid, NULL);
	}
	jail->spawned = 0;
	memset(&jail->up, 0, sizeof(jail->up));
}

int cm_jail_spawn(struct cm_jail *jail, const struct cm_jail_start *start, struct cm_error *err)
{
	int pair[2];
	int r;

	if (jail->sock >= 0 && !start->scope_id && !start->is_collect) {
		jail->is_temporary = start->is_temporary;
		return CM_OK;
	}
	end_keeper(jail);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot make a socket pair");
	r = cm_launch_keeper(pair[1], start->scope_id, start->is_collect ? "--collect" : NULL,
			     &jail->launch, &jail->spawned, err);
	(void)close(pair[1]);
	if (r < 0) {
		(void)close(pair[0]);
		return r;
	}
	jail->sock = pair[0];
	jail->is_temporary = start->is_temporary;
	jail->is_ahead = jail->has_ended = false;
	return CM_OK;
}

static int went_away(int sys_errno, struct cm_error *err)
{
	cm_error_set(err, CM_E_ISOLATION, sys_errno, "the keeper went away");
	cm_error_hint(err, "'casemate doctor' looks for a cause; the system's log may name one");
	return CM_E_ISOLATION;
}

/* A keeper that has ended already has left what it has to say in the socket: whoever waits for the
 * answer reads it. */
static int sent(int r, struct cm_error *err)
{
	return r < 0 && r != -EPIPE && r != -ECONNRESET ? went_away(-r, err) : CM_OK;
}

int cm_jail_ahead(struct cm_jail *jail, bool has_own_network, struct cm_error *err)
{
	struct cm_rec rec = { .type = CM_REC_AHEAD };

	if (jail->reaps)
		jail->reaps = prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0;
	rec.body.ahead.has_own_network = has_own_network;
	rec.body.ahead.starter_reaps = jail->reaps;
	jail->is_ahead = true;
	return sent(cm_proto_send(jail->sock, &rec, NULL, NULL, 0), err);
}

int cm_jail_prepare(struct cm_jail *jail, const void *plan, size_t plan_len, struct cm_error *err)
{
	struct cm_rec rec = { .type = CM_REC_PREPARE, .len = (uint32_t)plan_len };

	/* whether the keeper could be started at all is asked with the plan */
	return sent(cm_proto_send(jail->sock, &rec, plan, NULL, 0), err);
}

int cm_jail_plan(struct cm_jail *jail, const void *plan, size_t plan_len, struct cm_error *err)
{
	CM_AUTO_FD int fd = cm_memfd_sealed("casemate-plan", plan, plan_len);
	struct cm_rec rec = { .type = CM_REC_PLAN };
	int fds[2] = { fd, jail->skeleton.lock_fd };
	int r = cm_launch_end(&jail->launch, err);

	if (r < 0)
		return r;
	if (fd < 0)
		return cm_error_set(err, CM_E_SYS, -fd, "cannot seal the plan");
	return sent(cm_proto_send(jail->sock, &rec, NULL, fds, fds[1] >= 0 ? 2 : 1), err);
}

/* 1: readable, 0: deadline, negative: errno */
static int wait_readable(int fd, int64_t deadline_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	for (;;) {
		int64_t left = deadline_ms == INT64_MAX ? -1 : deadline_ms - cm_clock_mono_ms();
		int r;

		if (deadline_ms != INT64_MAX && left < 0)
			left = 0;
		r = poll(&p, 1, left > 1000000 ? 1000000 : (int)left);
		if (r > 0)
			return 1;
		if (r < 0 && errno != EINTR)
			return -errno;
		if (r == 0 && left >= 0 && left <= 1000000)
			return 0;
	}
}

static int receive(struct cm_jail *jail, struct cm_msg *msg, int64_t deadline_ms,
		   struct cm_error *err)
{
	int r = wait_readable(jail->sock, deadline_ms);

	if (r == 0)
		return cm_error_set(err, CM_E_TIMEOUT, 0, "the keeper does not answer");
	if (r > 0)
		r = cm_proto_recv(jail->sock, msg);
	if (r == 1)
		return CM_OK;
	/* reset: it ended with something of ours unread */
	jail->has_ended = r == 0 || r == -ECONNRESET;
	if (jail->has_ended)
		r = cm_error_set(err, CM_E_ISOLATION, 0, "the keeper ended without a word");
	else
		r = cm_error_set(err, CM_E_PROTOCOL, -r, "cannot understand the keeper");
	cm_error_hint(err, "'casemate doctor' looks for a cause; the system's log may name one");
	return r;
}

static int refused(const struct cm_msg *msg, struct cm_error *err)
{
	struct cm_error why = CM_ERROR_INIT;

	cm_proto_error_of(msg, &why);
	(void)cm_error_set(err, why.code, why.sys_errno, "%s", why.msg);
	if (why.hint[0] != '\0')
		cm_error_hint(err, "%s", why.hint);
	return why.code;
}

int cm_jail_wait_up(struct cm_jail *jail, int64_t deadline_ms, struct cm_error *err)
{
	struct cm_msg msg;
	int r;

	cm_msg_init(&msg);
	r = receive(jail, &msg, deadline_ms, err);
	if (r == CM_OK && msg.rec.type == CM_REC_UP) {
		jail->up = msg.rec.body.up;
	} else if (r == CM_OK &&
		   (msg.rec.type == CM_REC_FAILED || msg.rec.type == CM_REC_REFUSED)) {
		r = refused(&msg, err);
	} else if (r == CM_OK) {
		r = cm_error_set(err, CM_E_PROTOCOL, 0, "cannot understand the keeper");
	}
	cm_msg_clear(&msg);
	return r;
}

static void send_within(int fd, int64_t deadline_ms)
{
	int64_t left = deadline_ms == INT64_MAX ? 0 : deadline_ms - cm_clock_mono_ms();
	struct timeval limit;

	/* 0: for ever */
	if (left < 1 && deadline_ms != INT64_MAX)
		left = 1;
	limit = (struct timeval){ .tv_sec = left / 1000, .tv_usec = left % 1000 * 1000 };
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

int cm_jail_dial(struct cm_jail *jail, const char *socket_path, const char *session_id,
		 int64_t deadline_ms, struct cm_error *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct cm_rec rec = { .type = CM_REC_HELLO, .len = (uint32_t)strlen(session_id) };
	CM_AUTO_FD int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct ucred peer;
	socklen_t len = sizeof(peer);
	int r;

	if (fd < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot make a socket");
	if ((size_t)snprintf(address.sun_path, sizeof(address.sun_path), "%s", socket_path) >=
	    sizeof(address.sun_path))
		return cm_error_set(err, CM_E_SYS, ENAMETOOLONG, "cannot connect to '%s'",
				    socket_path);
	/* where as many wait already as may, it would wait with them for a keeper that hangs */
	send_within(fd, deadline_ms);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return cm_error_set(err, CM_E_NOT_FOUND, errno, "session '%s' does not answer",
				    session_id);
	/* the directory is 0700 and checked; this says who really listens */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 || peer.uid != geteuid())
		return cm_error_set(err, CM_E_DENIED, 0,
				    "the socket of session '%s' belongs to another user",
				    session_id);
	rec.body.hello.version = CM_PROTO_VERSION;
	r = cm_proto_send(fd, &rec, session_id, NULL, 0);
	/* who refuses has said why before it closed */
	if (r < 0 && r != -EPIPE && r != -ECONNRESET)
		return cm_error_set(err, CM_E_NOT_FOUND, -r, "session '%s' does not answer",
				    session_id);
	send_within(fd, INT64_MAX);
	jail->sock = cm_fd_take(&fd);
	jail->is_temporary = jail->has_ended = false;
	return CM_OK;
}

int cm_jail_greeted(struct cm_jail *jail, const char *session_id, int64_t deadline_ms,
		    struct cm_error *err)
{
	int r = cm_jail_wait_up(jail, deadline_ms, err);

	if (r < 0 && jail->has_ended)
		r = cm_error_set(err, CM_E_NOT_FOUND, 0, "session '%s' does not answer",
				 session_id);
	/* else the next keeper would be taken for started */
	if (r == CM_E_NOT_FOUND)
		cm_fd_close(&jail->sock);
	return r;
}

int cm_jail_connect(struct cm_jail *jail, const char *socket_path, const char *session_id,
		    int64_t deadline_ms, struct cm_error *err)
{
	int r = cm_jail_dial(jail, socket_path, session_id, deadline_ms, err);

	return r < 0 ? r : cm_jail_greeted(jail, session_id, deadline_ms, err);
}

int cm_jail_pipe(int *near, int *far, bool is_input, struct cm_error *err)
{
	int pair[2];

	if (pipe2(pair, O_CLOEXEC) < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot make a pipe");
	*near = is_input ? pair[1] : pair[0];
	*far = is_input ? pair[0] : pair[1];
	/* as root the agent is another than the pipe's owner, and opens /dev/stdout like a file;
	 * only who has the descriptor can */
	(void)fchmod(*far, is_input ? 0644 : 0622);
	/* ours alone: nothing else has this description */
	(void)fcntl(*near, F_SETFL, O_NONBLOCK);
	return CM_OK;
}

static size_t count(char *const *v)
{
	size_t n = 0;

	while (v[n])
		n++;
	return n;
}

static size_t bytes_of(char *const *v)
{
	size_t n = 0;

	for (; *v; v++)
		n += strlen(*v) + 1;
	return n;
}

/* With its NUL; where the next one goes. */
static char *put(char *at, const char *text)
{
	size_t size = strlen(text) + 1;

	memcpy(at, text, size);
	return at + size;
}

static void fill_blob(const struct cm_jail_command *command, char *blob)
{
	char *at = put(blob, command->cwd);

	for (size_t i = 0; command->argv[i]; i++)
		at = put(at, command->argv[i]);
	for (size_t i = 0; command->env[i]; i++)
		at = put(at, command->env[i]);
}

static int check_blob(size_t len, struct cm_error *err)
{
	if (len <= CM_PROTO_BLOB_MAX)
		return CM_OK;
	cm_error_set(err, CM_E_LIMIT, E2BIG,
		     "the command's arguments and environment are too large");
	cm_error_hint(err, "together they may have %u MiB", CM_PROTO_BLOB_MAX / 1024 / 1024);
	return CM_E_LIMIT;
}

int cm_jail_exec(struct cm_jail *jail, const struct cm_jail_command *command, uint64_t *ret_id,
		 struct cm_error *err)
{
	static const uint32_t bits[3] = { CM_EXECF_STDIN, CM_EXECF_STDOUT, CM_EXECF_STDERR };
	struct cm_rec rec = { .type = CM_REC_EXEC, .id = ++jail->last_id };
	struct cm_rec_exec *exec = &rec.body.exec;
	size_t len = strlen(command->cwd) + 1 + bytes_of(command->argv) + bytes_of(command->env);
	/* of most; what is larger is allocated */
	char usual[8192];
	CM_AUTO_FREE char *own = NULL;
	char *blob = usual;
	int fds[3];
	unsigned int n_fds = 0;
	int r = check_blob(len, err);

	if (r < 0)
		return r;
	if (len > sizeof(usual)) {
		own = cm_malloc(len);
		blob = own;
	}
	if (!blob)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the command");
	fill_blob(command, blob);
	exec->n_args = (uint32_t)count(command->argv);
	exec->n_env = (uint32_t)count(command->env);
	exec->flags = command->flags;
	if ((command->flags & CM_EXECF_BUILTIN) == 0)
		exec->flags |= CM_EXECF_SEARCH_PATH;
	exec->timeout_ms = command->timeout_ms;
	exec->grace_ms = command->grace_ms;
	exec->rows = command->rows;
	exec->cols = command->cols;
	exec->journal_bytes = command->journal_bytes;
	exec->generation = command->generation;
	for (int i = 0; i < 3; i++) {
		if (command->stdio[i] < 0)
			continue;
		exec->flags |= bits[i];
		fds[n_fds++] = command->stdio[i];
	}
	rec.len = (uint32_t)len;
	*ret_id = rec.id;
	r = cm_proto_send(jail->sock, &rec, blob, fds, n_fds);
	jail->has_ended = r == -EPIPE || r == -ECONNRESET;
	return sent(r, err);
}

/* Until the answer to request id, or that the session is lost. */
int cm_jail_next(struct cm_jail *jail, uint64_t id, struct cm_msg *msg, int64_t deadline_ms,
		 struct cm_error *err)
{
	for (;;) {
		int r = receive(jail, msg, deadline_ms, err);

		if (r < 0)
			return r;
		if (msg->rec.type == CM_REC_FAILED)
			return refused(msg, err);
		if (msg->rec.id == id)
			return CM_OK;
	}
}

/* A request of which one answer is told, of the type that is expected. */
static int ask(struct cm_jail *jail, struct cm_rec *rec, uint16_t answer, struct cm_msg *msg,
	       int64_t deadline_ms, struct cm_error *err)
{
	int r;

	rec->id = ++jail->last_id;
	r = sent(cm_proto_send(jail->sock, rec, NULL, NULL, 0), err);
	if (r == CM_OK)
		r = cm_jail_next(jail, rec->id, msg, deadline_ms, err);
	if (r == CM_OK && msg->rec.type == CM_REC_REFUSED)
		return refused(msg, err);
	if (r == CM_OK && msg->rec.type != answer)
		return cm_error_set(err, CM_E_PROTOCOL, 0, "cannot understand the keeper");
	return r;
}

int cm_jail_attach(struct cm_jail *jail, uint64_t exec_id, uint64_t *ret_id, int *ret_input,
		   int64_t deadline_ms, struct cm_error *err)
{
	struct cm_rec rec = { .type = CM_REC_ATTACH };
	struct cm_msg msg;
	int r;

	rec.body.attach.exec_id = exec_id;
	rec.body.attach.flags = ret_input ? CM_ATTACHF_INPUT : 0;
	cm_msg_init(&msg);
	r = ask(jail, &rec, CM_REC_STARTED, &msg, deadline_ms, err);
	if (r == CM_OK && ret_input && msg.n_fds != 1)
		r = cm_error_set(err, CM_E_PROTOCOL, 0, "cannot understand the keeper");
	if (r == CM_OK && ret_input)
		*ret_input = cm_fd_take(&msg.fds[0]);
	*ret_id = rec.id;
	cm_msg_clear(&msg);
	return r;
}

int cm_jail_close_input(struct cm_jail *jail, uint64_t exec_id, int64_t deadline_ms,
			struct cm_error *err)
{
	struct cm_rec rec = { .type = CM_REC_CLOSE_INPUT };
	struct cm_msg msg;
	int r;

	rec.body.attach.exec_id = exec_id;
	cm_msg_init(&msg);
	r = ask(jail, &rec, CM_REC_CLOSED, &msg, deadline_ms, err);
	cm_msg_clear(&msg);
	return r;
}

int cm_jail_list(struct cm_jail *jail, struct cm_buf *out, int64_t deadline_ms,
		 struct cm_error *err)
{
	struct cm_rec rec = { .type = CM_REC_LIST };
	struct cm_msg msg;
	int r;

	cm_msg_init(&msg);
	r = ask(jail, &rec, CM_REC_LISTED, &msg, deadline_ms, err);
	if (r == CM_OK && msg.rec.len > 0)
		cm_buf_append(out, msg.blob, msg.rec.len);
	if (r == CM_OK && cm_buf_status(out) < 0)
		r = cm_error_set(err, CM_E_NOMEM, 0, "no memory for the list");
	cm_msg_clear(&msg);
	return r;
}

int cm_jail_usage(struct cm_jail *jail, struct cm_rec_usage *ret, int64_t deadline_ms,
		  struct cm_error *err)
{
	struct cm_rec rec = { .type = CM_REC_USAGE };
	struct cm_error why = CM_ERROR_INIT;
	struct cm_msg msg;
	int r;

	memset(ret, 0xff, sizeof(*ret));
	cm_msg_init(&msg);
	r = ask(jail, &rec, CM_REC_USED, &msg, deadline_ms, &why);
	if (r == CM_OK)
		*ret = msg.rec.body.usage;
	else if (msg.rec.type == CM_REC_REFUSED && !jail->has_ended)
		r = CM_OK;
	else if (err)
		*err = why;
	cm_msg_clear(&msg);
	return r;
}

const struct cm_rec_item *cm_jail_item(const struct cm_buf *list, size_t *at, const char **ret_text)
{
	const struct cm_rec_item *item = (const void *)(list->data + *at);
	size_t left = list->len - *at;

	if (left < sizeof(*item) || item->text_len > left - sizeof(*item))
		return NULL;
	*ret_text = list->data + *at + sizeof(*item);
	*at += sizeof(*item) + (item->text_len + 7U) / 8 * 8;
	if (*at > list->len)
		*at = list->len;
	return item;
}

int cm_jail_signal(struct cm_jail *jail, uint64_t id, int sig)
{
	struct cm_rec rec = { .type = CM_REC_SIGNAL, .id = id };

	rec.body.signal.signal = sig;
	return cm_proto_send(jail->sock, &rec, NULL, NULL, 0);
}

int cm_jail_kill(struct cm_jail *jail, uint64_t id, uint64_t grace_ms)
{
	struct cm_rec rec = { .type = CM_REC_KILL, .id = id };

	rec.body.kill.grace_ms = grace_ms;
	return cm_proto_send(jail->sock, &rec, NULL, NULL, 0);
}

int cm_jail_stop(struct cm_jail *jail, int64_t deadline_ms, struct cm_error *err)
{
	struct cm_rec rec = { .type = CM_REC_STOP, .id = ++jail->last_id };
	struct cm_msg msg;
	int r = cm_proto_send(jail->sock, &rec, NULL, NULL, 0);

	/* gone already is what was asked for */
	if (r < 0)
		return CM_OK;
	cm_msg_init(&msg);
	do {
		r = wait_readable(jail->sock, deadline_ms);
		if (r == 0) {
			cm_msg_clear(&msg);
			return cm_error_set(err, CM_E_TIMEOUT, 0, "the session does not stop");
		}
		r = cm_proto_recv(jail->sock, &msg);
	} while (r == 1 && msg.rec.type != CM_REC_STOPPED);
	cm_msg_clear(&msg);
	return CM_OK;
}

bool cm_jail_close(struct cm_jail *jail)
{
	end_keeper(jail);
	cm_store_skeleton_close(&jail->skeleton);
	return !WIFSIGNALED(jail->wait_status);
}
