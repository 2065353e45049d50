/* SPDX-License-Identifier: Apache-2.0 */
/* casemate cp: files and trees into a session, out of it, and from one to another. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/fd.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/copy_line.h"
#include "runtime/cli/file_session.h"

static int open_session(const struct cm_copy *c, const struct cm_file_place *place,
			struct cm_file_session *s)
{
	return cm_file_session_open(s, c->cli, c->root, place->session, c->user != NULL);
}

static int stray_frame(struct cm_error *err)
{
	return cm_error_set(err, CM_E_PROTOCOL, 0,
			    "what came out of the session is not what a copy sends");
}

/* --- out of a session ---------------------------------------------------------------------- */

static int receive(struct cm_files *f, struct cm_file_receiver *to, struct cm_error *err)
{
	int r;

	while ((r = cm_files_next(f, err)) == 1) {
		r = cm_file_receiver_take(to, &f->msg);
		if (r == -EBADMSG)
			return stray_frame(err);
		/* it was told */
		if (r < 0)
			return 0;
	}
	/* nothing came where its top could not be read */
	if (r == 0 && to->has_top && !cm_file_receiver_is_done(to))
		return stray_frame(err);
	return r;
}

static int get_into(const struct cm_copy *c, struct cm_file_session *s,
		    struct cm_file_receiver *receiver)
{
	const char *paths[] = { c->from.path, NULL };
	const struct cm_files_request request = { .op = "get", .paths = paths };
	struct cm_error err = CM_ERROR_INIT;
	struct cm_files *f = NULL;
	int r = cm_file_session_begin(s, &request, &f, &err);

	receiver->failed = cm_file_session_failed_here;
	receiver->data = s;
	receiver->checks_links = !c->keeps_links;
	if (r == CM_OK)
		r = receive(f, receiver, &err);
	cm_file_receiver_close(receiver);
	if (receiver->n_stripped > 0)
		cm_cli_note(c->cli, "set-id and sticky bits of %" PRIu64 " were left out",
			    receiver->n_stripped);
	return cm_file_session_end(s, f, r, &err);
}

static int get(const struct cm_copy *c)
{
	static struct cm_file_receiver receiver;
	CM_AUTO_FD int fd = -1;
	struct cm_file_session s;
	int status = cm_copy_open_target(c, &receiver, &fd);

	if (status != 0)
		return status;
	status = open_session(c, &c->from, &s);
	if (status == 0)
		status = get_into(c, &s, &receiver);
	cm_file_session_close(&s);
	return status;
}

/* --- into a session ------------------------------------------------------------------------ */

static int begin_put(const struct cm_copy *c, struct cm_file_session *s, struct cm_files **ret,
		     struct cm_error *err)
{
	const char *paths[] = { c->to.path, c->name, NULL };
	const struct cm_files_request request = { .op = "put", .paths = paths };

	return cm_file_session_begin(s, &request, ret, err);
}

/* All was sent: what becomes of it. */
static int finish_put(struct cm_files *f, int sent, struct cm_error *err)
{
	int r = sent;

	if (r == 0)
		r = cm_file_put_plain(&f->writer, CM_FRAME_DONE, 0);
	if (r == 0)
		r = cm_files_end_input(f);
	if (r < 0)
		return cm_files_why(f, err);
	r = cm_files_next(f, err);
	return r > 0 ? stray_frame(err) : r;
}

static int put(const struct cm_copy *c)
{
	static struct cm_file_sender sender;
	struct cm_error err = CM_ERROR_INIT;
	CM_AUTO_FD int fd = -1;
	char name[NAME_MAX + 1];
	struct cm_file_session s;
	struct cm_files *f = NULL;
	bool is_directory = false;
	int status = cm_copy_open_source(c, &fd, name, &is_directory);
	int r;

	if (status != 0)
		return status;
	status = open_session(c, &c->to, &s);
	if (status == 0) {
		r = begin_put(c, &s, &f, &err);
		if (r == CM_OK) {
			cm_file_sender_init(&sender, &f->writer, c->from.path,
					    cm_file_session_failed_here, &s);
			r = cm_file_send_tree(&sender, fd, name, "");
			r = finish_put(f, r, &err);
		}
		status = cm_file_session_end(&s, f, r, &err);
	}
	cm_file_session_close(&s);
	return status;
}

/* --- from one session to another ----------------------------------------------------------- */

/* What comes out of the one is checked here, and again by who receives it in the other. */
static int pass_on(struct cm_files *from, struct cm_files *to, struct cm_error *from_err,
		   struct cm_error *to_err, int *ret_to)
{
	int sent = 0;
	int r;

	while ((r = cm_files_next(from, from_err)) == 1) {
		if (from->msg.type == CM_FRAME_EVENT)
			return stray_frame(from_err);
		sent = cm_file_put_msg(&to->writer, &from->msg);
		if (sent < 0)
			break;
	}
	/* of what broke off nothing is kept that is not whole */
	if (r >= 0)
		*ret_to = finish_put(to, sent, to_err);
	return r < 0 ? r : 0;
}

static int pass_between(const struct cm_copy *c, struct cm_file_session *a,
			struct cm_file_session *b)
{
	const char *paths[] = { c->from.path, NULL };
	const struct cm_files_request request = { .op = "get", .paths = paths };
	struct cm_error from_err = CM_ERROR_INIT;
	struct cm_error to_err = CM_ERROR_INIT;
	struct cm_files *from = NULL;
	struct cm_files *to = NULL;
	int to_r = 0;
	int from_status;
	int to_status;
	int r = cm_file_session_begin(a, &request, &from, &from_err);

	if (r == CM_OK)
		to_r = begin_put(c, b, &to, &to_err);
	if (r == CM_OK && to_r == CM_OK)
		r = pass_on(from, to, &from_err, &to_err, &to_r);
	from_status = cm_file_session_end(a, from, r, &from_err);
	/* a signal is one for both, and is taken once */
	if (b->signal_status == 0)
		b->signal_status = a->signal_status;
	to_status = cm_file_session_end(b, to, to_r, &to_err);
	return from_status != 0 ? from_status : to_status;
}

static int between(const struct cm_copy *c)
{
	struct cm_file_session a;
	struct cm_file_session b;
	int status = open_session(c, &c->from, &a);

	if (status == 0) {
		status = open_session(c, &c->to, &b);
		if (status == 0)
			status = pass_between(c, &a, &b);
		cm_file_session_close(&b);
	}
	cm_file_session_close(&a);
	return status;
}

/* --- the line ------------------------------------------------------------------------------ */

int cm_cmd_cp(struct cm_cli *cli, int argc, char **argv)
{
	static const struct cm_copy_ways ways = {
		.get = get,
		.put = put,
		.between = between,
	};
	struct cm_error err = CM_ERROR_INIT;
	struct cm_copy c;

	if (cm_copy_read(cli, argc, argv, NULL, &c, &err) < 0)
		return cm_cli_fail(cli, &err);
	if (c.user && strcmp(c.user, "user") != 0) {
		(void)cm_error_set(&err, CM_E_INVALID, 0, "--user takes 'user' here");
		return cm_cli_fail(cli, &err);
	}
	return cm_copy_carry_out(&c, &ways);
}
