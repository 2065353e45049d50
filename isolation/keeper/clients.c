/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper's clients: who may speak to it, and for how long. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "isolation/keeper/keeper.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/kernel.h"
#include "runtime/base/peer.h"
#include "runtime/store/keeper_lock.h"

#define HELLO_DEADLINE_MS 5000
#define BACKLOG 64
/* no descriptor is left for another client */
#define REST_MS 100
/* who runs commands one after the other (setup) has asked for the next one by then */
#define SPARE_MS 20

void cm_keeper_greet(struct cm_keeper *k, int client)
{
	struct cm_keeper_client *c = &k->clients[client];
	struct cm_rec rec;

	if (c->sock < 0 || !c->is_greeting_due)
		return;
	c->is_greeting_due = false;
	cm_keeper_fill_up(k, &rec);
	cm_keeper_tell(k, client, &rec, NULL, NULL, 0);
}

void cm_keeper_tell(struct cm_keeper *k, int client, struct cm_rec *rec, const void *blob,
		    const int *fds, unsigned int n_fds)
{
	if (client >= 0)
		cm_keeper_greet(k, client);
	if (client >= 0 && cm_proto_send(k->clients[client].sock, rec, blob, fds, n_fds) < 0)
		cm_keeper_client_drop(k, client);
}

void cm_keeper_refuse_as(struct cm_keeper *k, int client, uint64_t id, const struct cm_error *why)
{
	cm_keeper_greet(k, client);
	if (cm_proto_send_error(k->clients[client].sock, CM_REC_REFUSED, id, why) < 0)
		cm_keeper_client_drop(k, client);
}

void cm_keeper_refuse(struct cm_keeper *k, int client, uint64_t id, int code, const char *why)
{
	struct cm_error err = CM_ERROR_INIT;

	(void)cm_error_set(&err, code, 0, "%s", why);
	cm_keeper_refuse_as(k, client, id, &err);
}

static int index_of(const struct cm_keeper *k, int sock)
{
	for (int i = 0; i < k->n_clients; i++) {
		if (k->clients[i].sock == sock)
			return i;
	}
	return -1;
}

static void arm_hello(struct cm_keeper *k);

/* One that has gone may have left requests, which are read later; a temporary session ends. */
static void on_paused_client(struct cm_keeper *k, int client, uint32_t events)
{
	if ((events & (EPOLLHUP | EPOLLERR)) == 0)
		return;
	if (k->is_temporary)
		cm_keeper_client_drop(k, client);
	else
		cm_loop_remove(&k->loop, k->clients[client].sock);
}

static void on_client(struct cm_loop *loop, int fd, uint32_t events, void *data)
{
	struct cm_keeper *k = data;
	int client = index_of(k, fd);

	(void)loop;
	if (client < 0)
		return;
	if (k->clients[client].is_paused)
		on_paused_client(k, client, events);
	else if ((events & EPOLLIN) != 0)
		cm_keeper_request(k, client);
	else if ((events & (EPOLLHUP | EPOLLERR)) != 0)
		cm_keeper_client_drop(k, client);
}

static void on_hello_late(struct cm_loop *loop, int timer, void *data)
{
	struct cm_keeper *k = data;
	int64_t now = cm_clock_mono_ms();

	(void)loop;
	(void)timer;
	k->hello_timer = -1;
	for (int i = 0; i < k->n_clients; i++) {
		struct cm_keeper_client *c = &k->clients[i];

		if (c->sock >= 0 && !c->has_said_hello && c->hello_due_ms <= now)
			cm_keeper_client_drop(k, i);
	}
	arm_hello(k);
}

/* One timer for all who have not said hello: the loop has fewer than there can be clients. */
static void arm_hello(struct cm_keeper *k)
{
	int64_t first = INT64_MAX;

	cm_loop_timer_cancel(&k->loop, k->hello_timer);
	k->hello_timer = -1;
	for (int i = 0; i < k->n_clients; i++) {
		const struct cm_keeper_client *c = &k->clients[i];

		if (c->sock >= 0 && !c->has_said_hello && c->hello_due_ms < first)
			first = c->hello_due_ms;
	}
	if (first != INT64_MAX)
		k->hello_timer = cm_loop_timer_add(&k->loop, first, on_hello_late, k);
}

void cm_keeper_client_greeted(struct cm_keeper *k, int client)
{
	k->clients[client].has_said_hello = true;
	arm_hello(k);
}

/* One word, if there is room for it: nobody is waited for. */
static void refuse_stranger(int sock)
{
	struct cm_error why = CM_ERROR_INIT;

	(void)cm_error_set(&why, CM_E_LIMIT, 0, "the session has %d clients already",
			   CM_KEEPER_MAX_CLIENTS);
	cm_error_hint(&why, "try again when some of its commands have ended");
	if (fcntl(sock, F_SETFL, O_NONBLOCK) == 0)
		(void)cm_proto_send_error(sock, CM_REC_REFUSED, 0, &why);
}

/*
 * Who keeps a connection without a command makes room for who has one: it connects again. A request that
 * it sends in this moment stays unread, which it is told by the kernel. The longest first.
 */
static int drop_spare(struct cm_keeper *k)
{
	int64_t oldest_ms = cm_clock_mono_ms() - SPARE_MS;
	int spare = -1;

	for (int i = 0; i < k->n_clients && !k->is_temporary; i++) {
		const struct cm_keeper_client *c = &k->clients[i];

		if (c->spare_since_ms == 0 || c->spare_since_ms > oldest_ms || c->is_paused ||
		    c->wants_stopped || cm_keeper_client_waits(k, i))
			continue;
		oldest_ms = c->spare_since_ms;
		spare = i;
	}
	if (spare >= 0)
		cm_keeper_client_drop(k, spare);
	return spare;
}

static int free_client(struct cm_keeper *k)
{
	int i = index_of(k, -1);

	if (i < 0 && k->n_clients == CM_KEEPER_MAX_CLIENTS)
		i = drop_spare(k);
	if (i >= 0 || k->n_clients == CM_KEEPER_MAX_CLIENTS)
		return i;
	k->clients[k->n_clients].sock = -1;
	return k->n_clients++;
}

int cm_keeper_client_add(struct cm_keeper *k, int own_sock, bool is_trusted, struct cm_error *err)
{
	int i = free_client(k);
	int r;

	if (i < 0) {
		refuse_stranger(own_sock);
		(void)close(own_sock);
		return cm_error_set(err, CM_E_LIMIT, 0, "too many clients");
	}
	/* a client that does not read its answers is dropped, and never waited for */
	if (fcntl(own_sock, F_SETFL, O_NONBLOCK) < 0) {
		(void)close(own_sock);
		return cm_error_set(err, CM_E_SYS, errno, "cannot set up a client");
	}
	r = cm_loop_add(&k->loop, own_sock, EPOLLIN, on_client, k, err);
	if (r < 0) {
		(void)close(own_sock);
		return r;
	}
	memset(&k->clients[i], 0, sizeof(k->clients[i]));
	k->clients[i].sock = own_sock;
	k->clients[i].has_said_hello = is_trusted;
	k->clients[i].hello_due_ms = cm_clock_mono_ms() + HELLO_DEADLINE_MS;
	arm_hello(k);
	return CM_OK;
}

void cm_keeper_client_drop(struct cm_keeper *k, int client)
{
	struct cm_keeper_client *c = &k->clients[client];

	cm_loop_remove(&k->loop, c->sock);
	cm_fd_close(&c->sock);
	if (!c->has_said_hello)
		arm_hello(k);
	cm_keeper_exec_forget(k, client);
	/* a temporary session is its client's: it ends with it */
	if (k->is_temporary) {
		k->end_reason = CM_ENDED_TEMPORARY;
		cm_loop_stop(&k->loop);
	}
}

void cm_keeper_client_pause(struct cm_keeper *k, int client)
{
	struct cm_keeper_client *c = &k->clients[client];

	if (c->sock < 0 || c->is_paused)
		return;
	c->is_paused = true;
	/* its end is still told */
	if (cm_loop_modify(&k->loop, c->sock, 0, NULL) < 0)
		cm_keeper_client_drop(k, client);
}

void cm_keeper_clients_resume(struct cm_keeper *k)
{
	for (int i = 0; i < k->n_clients; i++) {
		struct cm_keeper_client *c = &k->clients[i];

		if (c->sock < 0 || !c->is_paused)
			continue;
		c->is_paused = false;
		if (cm_loop_modify(&k->loop, c->sock, EPOLLIN, NULL) < 0 &&
		    cm_loop_add(&k->loop, c->sock, EPOLLIN, on_client, k, NULL) < 0)
			cm_keeper_client_drop(k, i);
	}
}

/* The keeper's own never change; known from the first client on. */
struct own_namespace {
	const char *name;
	/* of its descriptor */
	unsigned long ioctl;
	struct stat st;
	bool is_known;
};

/* By its descriptor; before Linux 6.11, and where that is not permitted, by its number in /proc. */
static bool stat_namespace(const struct cm_peer *peer, const struct own_namespace *own,
			   struct stat *ret)
{
	CM_AUTO_FD int fd = cm_sys_pidfd_namespace(peer->pidfd, own->ioctl);
	char path[64];

	if (fd >= 0)
		return fstat(fd, ret) == 0;
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)peer->pid, own->name);
	return stat(path, ret) == 0;
}

static bool same_namespace(const struct cm_peer *peer, struct own_namespace *own)
{
	char path[64];
	struct stat theirs;

	(void)snprintf(path, sizeof(path), "/proc/self/ns/%s", own->name);
	if (!own->is_known && stat(path, &own->st) < 0)
		return false;
	own->is_known = true;
	return stat_namespace(peer, own, &theirs) && theirs.st_ino == own->st.st_ino &&
	       theirs.st_dev == own->st.st_dev;
}

/*
 * A process of the same user on the host, and not one in a jail: those may have the same kernel
 * id (single-id map) but have other namespaces, and no way to the socket's path either.
 */
static bool is_allowed(int sock)
{
	static struct own_namespace user = { .name = "user", .ioctl = CM_PIDFD_GET_USER_NAMESPACE };
	static struct own_namespace pid = { .name = "pid", .ioctl = CM_PIDFD_GET_PID_NAMESPACE };
	struct cm_peer peer = CM_PEER_INIT;
	bool is_ours;

	if (cm_peer_of(sock, &peer) < 0)
		return false;
	/* last: it lives, so what the number showed was its own */
	is_ours = peer.uid == geteuid() && same_namespace(&peer, &user) &&
		  same_namespace(&peer, &pid) && cm_peer_lives(&peer);
	cm_peer_close(&peer);
	return is_ours;
}

static void on_listen_again(struct cm_loop *loop, int timer, void *data)
{
	const struct cm_keeper *k = data;

	(void)timer;
	(void)cm_loop_modify(loop, k->listen_fd, EPOLLIN, NULL);
}

/* Without a descriptor the next connection stays where it is, and would be told of all the time. */
static void rest(struct cm_keeper *k)
{
	if (cm_loop_timer_add(&k->loop, cm_clock_mono_ms() + REST_MS, on_listen_again, k) >= 0)
		(void)cm_loop_modify(&k->loop, k->listen_fd, 0, NULL);
}

static void on_connect(struct cm_loop *loop, int fd, uint32_t events, void *data)
{
	int sock = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

	(void)loop;
	(void)events;
	if (sock < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
			rest(data);
		return;
	}
	if (!is_allowed(sock)) {
		(void)close(sock);
		return;
	}
	/* mostly it has said already what it wants */
	if (cm_keeper_client_add(data, sock, false, NULL) == CM_OK)
		cm_keeper_request(data, index_of(data, sock));
}

int cm_keeper_listen(struct cm_keeper *k, struct cm_error *err)
{
	const char *path = cm_plan_str(&k->plan, k->plan.header->socket_path);
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	CM_AUTO_FD int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot make the session's socket");
	if ((size_t)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path) >=
	    sizeof(address.sun_path))
		return cm_error_set(err, CM_E_SYS, ENAMETOOLONG, "cannot listen at '%s'", path);
	/* a leftover of a keeper that was killed: its lock was free, so nobody listens there */
	(void)unlink(path);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, BACKLOG) < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot listen at '%s'", path);
	if (cm_loop_add(&k->loop, fd, EPOLLIN, on_connect, k, err) < 0)
		return CM_E_SYS;
	k->listen_fd = cm_fd_take(&fd);
	return CM_OK;
}
