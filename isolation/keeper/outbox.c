/* SPDX-License-Identifier: Apache-2.0 */
/* Records for a peer that may not be reading just now, in order. */
#include "isolation/keeper/outbox.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>

#include "runtime/base/alloc.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/sock.h"

#define AGAIN_MS 20

struct cm_outbox_item {
	struct cm_outbox_item *next;
	struct cm_rec rec;
	int fds[CM_SOCK_MAX_FDS];
	unsigned int n_fds;
	char blob[];
};

int cm_outbox_init(struct cm_outbox *box, struct cm_loop *loop, int sock, struct cm_error *err)
{
	*box = (struct cm_outbox){ .loop = loop, .sock = sock, .timer = -1 };
	if (fcntl(sock, F_SETFL, O_NONBLOCK) < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot set up a socket");
	return CM_OK;
}

bool cm_outbox_is_empty(const struct cm_outbox *box)
{
	return !box->first;
}

static void free_item(struct cm_outbox_item *item)
{
	cm_sock_close_fds(item->fds);
	free(item);
}

static int copy_item(const struct cm_rec *rec, const void *blob, const int *fds, unsigned int n_fds,
		     struct cm_outbox_item **ret)
{
	struct cm_outbox_item *item = cm_malloc(sizeof(*item) + rec->len);

	if (!item)
		return -ENOMEM;
	*item = (struct cm_outbox_item){ .rec = *rec, .n_fds = n_fds };
	if (rec->len > 0)
		memcpy(item->blob, blob, rec->len);
	for (size_t i = 0; i < CM_SOCK_MAX_FDS; i++)
		item->fds[i] = -1;
	for (unsigned int i = 0; i < n_fds; i++) {
		item->fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 0);
		if (item->fds[i] < 0) {
			int error = -errno;

			free_item(item);
			return error;
		}
	}
	*ret = item;
	return 0;
}

static void on_again(struct cm_loop *loop, int timer, void *data)
{
	struct cm_outbox *box = data;

	(void)loop;
	(void)timer;
	box->timer = -1;
	/* a peer that is gone is noticed where its socket is read */
	(void)cm_outbox_flush(box);
}

/* The kernel says when there is room; when it has memory or takes descriptors again it does not. */
static int wait_for(struct cm_outbox *box, int error)
{
	struct cm_error err = CM_ERROR_INIT;

	cm_loop_timer_cancel(box->loop, box->timer);
	box->timer = -1;
	if (error == -EAGAIN)
		return cm_loop_modify(box->loop, box->sock, EPOLLIN | EPOLLOUT, &err) < 0
			       ? -err.sys_errno
			       : 0;
	if (cm_loop_modify(box->loop, box->sock, EPOLLIN, &err) < 0)
		return -err.sys_errno;
	box->timer = cm_loop_timer_add(box->loop, cm_clock_mono_ms() + AGAIN_MS, on_again, box);
	return box->timer < 0 ? error : 0;
}

/* What passes: no room, no memory, or more descriptors on their way than this user may have. */
static bool is_passing(int error)
{
	return error == -EAGAIN || error == -ENOBUFS || error == -ENOMEM || error == -ETOOMANYREFS;
}

int cm_outbox_send(struct cm_outbox *box, struct cm_rec *rec, const void *blob, const int *fds,
		   unsigned int n_fds)
{
	struct cm_outbox_item *item = NULL;
	bool was_empty = cm_outbox_is_empty(box);
	int r = -EAGAIN;
	int r_copy;

	if (n_fds > CM_SOCK_MAX_FDS || rec->len > CM_PROTO_BLOB_MAX)
		return -E2BIG;
	if (was_empty) {
		r = cm_proto_send(box->sock, rec, blob, fds, n_fds);
		if (!is_passing(r))
			return r;
	}
	r_copy = copy_item(rec, blob, fds, n_fds, &item);
	if (r_copy < 0)
		return r_copy;
	if (was_empty) {
		r = wait_for(box, r);
		if (r < 0) {
			free_item(item);
			return r;
		}
		box->first = item;
	} else {
		box->last->next = item;
	}
	box->last = item;
	return 0;
}

static int send_first(struct cm_outbox *box)
{
	struct cm_outbox_item *item = box->first;
	int r = cm_proto_send(box->sock, &item->rec, item->blob, item->fds, item->n_fds);

	if (r < 0)
		return r;
	box->first = item->next;
	free_item(item);
	return 0;
}

int cm_outbox_flush(struct cm_outbox *box)
{
	if (cm_outbox_is_empty(box))
		return 0;
	while (!cm_outbox_is_empty(box)) {
		int r = send_first(box);

		if (r < 0)
			return is_passing(r) ? wait_for(box, r) : r;
	}
	cm_loop_timer_cancel(box->loop, box->timer);
	box->timer = -1;
	if (cm_loop_modify(box->loop, box->sock, EPOLLIN, NULL) < 0)
		return -EINVAL;
	if (box->emptied)
		box->emptied(box->data);
	return 0;
}

void cm_outbox_drain(struct cm_outbox *box)
{
	if (fcntl(box->sock, F_SETFL, 0) < 0)
		return;
	while (!cm_outbox_is_empty(box)) {
		int r = send_first(box);

		if (r < 0 && !is_passing(r))
			return;
	}
}

void cm_outbox_clear(struct cm_outbox *box)
{
	while (!cm_outbox_is_empty(box)) {
		struct cm_outbox_item *item = box->first;

		box->first = item->next;
		free_item(item);
	}
}
