/* SPDX-License-Identifier: Apache-2.0 */
/* A program of our own choice run in a jail, its output taken here. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <unistd.h>

#include "providers/local/local_internal.h"
#include "runtime/base/fd.h"

struct output {
	int fd;
	struct cm_buf text;
};

/* Take what comes until the end record; both pipes are ours alone. */
static int collect(struct cm_local *l, struct output *out, struct output *errs,
		   struct cm_rec_end *ret, struct cm_error *err)
{
	struct pollfd p[3] = { { .fd = l->jail.sock, .events = POLLIN },
			       { .fd = out->fd, .events = POLLIN },
			       { .fd = errs->fd, .events = POLLIN } };
	struct output *outputs[2] = { out, errs };
	struct cm_msg msg;
	bool has_ended = false;
	int r = CM_OK;

	cm_msg_init(&msg);
	while (r == CM_OK && (!has_ended || p[1].fd >= 0 || p[2].fd >= 0)) {
		char chunk[8192];

		if (poll(p, 3, -1) < 0 && errno != EINTR)
			r = cm_error_set(err, CM_E_SYS, errno, "cannot wait for the jail");
		for (int i = 0; i < 2 && r == CM_OK; i++) {
			ssize_t n;

			if (p[i + 1].fd < 0 || p[i + 1].revents == 0)
				continue;
			n = read(p[i + 1].fd, chunk, sizeof(chunk));
			if (n > 0)
				cm_buf_append(&outputs[i]->text, chunk, (size_t)n);
			else if (n == 0 || errno != EINTR)
				p[i + 1].fd = -1;
		}
		if (r < 0 || p[0].fd < 0 || p[0].revents == 0)
			continue;
		if (cm_proto_recv(p[0].fd, &msg) != 1) {
			p[0].fd = -1;
			if (!has_ended)
				r = cm_error_set(err, CM_E_ISOLATION, 0,
						 "the jail ended unexpectedly");
		} else if (msg.rec.type == CM_REC_END) {
			*ret = msg.rec.body.end;
			has_ended = true;
		} else if (msg.rec.type == CM_REC_REFUSED || msg.rec.type == CM_REC_FAILED) {
			cm_proto_error_of(&msg, err);
			r = err ? err->code : CM_E_ISOLATION;
		}
	}
	cm_msg_clear(&msg);
	return r;
}

int cm_local_inside(struct cm_local *l, char *const *argv, uint32_t flags, struct cm_buf *report,
		    struct cm_buf *text, struct cm_rec_end *ret, struct cm_error *err)
{
	char *env[] = { (char *)(uintptr_t) "PATH=/usr/bin:/bin", NULL };
	struct cm_jail_command command = {
		.argv = argv, .env = env, .cwd = "/", .flags = flags, .stdio = { -1, -1, -1 }
	};
	int out[2];
	int errs[2];
	uint64_t id;
	int r;

	if (pipe2(out, O_CLOEXEC) < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot make a pipe");
	if (pipe2(errs, O_CLOEXEC) < 0) {
		(void)close(out[0]);
		(void)close(out[1]);
		return cm_error_set(err, CM_E_SYS, errno, "cannot make a pipe");
	}
	command.stdio[1] = out[1];
	command.stdio[2] = errs[1];
	r = cm_jail_exec(&l->jail, &command, &id, err);
	(void)close(out[1]);
	(void)close(errs[1]);
	if (r == CM_OK) {
		struct output o = { out[0], *report };
		struct output e = { errs[0], *text };

		r = collect(l, &o, &e, ret, err);
		*report = o.text;
		*text = e.text;
	}
	(void)close(out[0]);
	(void)close(errs[0]);
	return r;
}
