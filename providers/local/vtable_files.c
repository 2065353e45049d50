/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a local session. Each operation has a connection to the keeper of its own. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "providers/local/files.h"
#include "providers/local/vtable_internal.h"
#include "runtime/base/fd.h"

#define ID_SIZE 16

struct operation {
	struct cm_lv_session *session;
	struct cm_lv_call call;
	struct cm_local *l;
	struct cm_files *f;
	/* of what could not be done where the rest went on, the first */
	struct cm_error failed;
	struct cm_lv_quiet quiet;
};

static void on_failed(void *data, const struct cm_error *why)
{
	struct operation *op = data;

	if (op->failed.code == 0)
		op->failed = *why;
}

static int begin(struct operation *op, struct cm_session *s, const struct cm_call *call,
		 const struct cm_files_request *request, struct cm_error *err)
{
	const struct cm_lv_want want = { NULL, NULL };
	struct cm_files_where where;
	int r;

	memset(op, 0, sizeof(*op));
	op->session = (struct cm_lv_session *)s;
	cm_lv_quiet_begin(&op->quiet);
	r = cm_lv_call_open(&op->call, call, err);
	if (r == CM_OK)
		r = cm_lv_reach(op->session, &want, call, &op->l, err);
	if (r < 0)
		return r;
	where = (struct cm_files_where){
		.jail = &op->l->jail,
		.session = s->id,
		.cwd = cm_local_cwd(op->l),
		.generation = op->l->session.record.generation,
		.cancel_fd = op->call.fd,
		.failed = on_failed,
		.data = op,
	};
	return cm_files_open(&where, request, &op->f, err);
}

/* Ended from inside or by a stop is nothing that the caller asked for. */
static int settle(const struct operation *op, int r, struct cm_error *err)
{
	struct cm_error why;

	if (r != CM_E_CANCELLED || !op->f)
		return r;
	if (op->f->is_cancelled)
		return cm_lv_call_result(&op->call, r, err);
	if (!err)
		return CM_E_ISOLATION;
	why = *err;
	(void)cm_error_set(err, CM_E_ISOLATION, 0, "%s", why.msg);
	cm_error_hint(err, "%s", why.hint);
	return CM_E_ISOLATION;
}

/* What ended with r; a caller's own result, too, which has no message. */
static int end(struct operation *op, int r, struct cm_error *err)
{
	r = settle(op, r, err);
	if (r == CM_OK && op->failed.code != 0) {
		if (err)
			*err = op->failed;
		r = op->failed.code;
	}
	cm_files_close(op->f);
	cm_lv_leave(op->l, NULL);
	cm_lv_call_close(&op->call);
	cm_lv_quiet_end(&op->quiet);
	return r;
}

static int malformed(struct cm_error *err)
{
	return cm_error_set(err, CM_E_PROTOCOL, 0, "cannot understand the file operation");
}

/* Nothing comes out of it but its end. */
static int await(struct operation *op, struct cm_error *err)
{
	int r = cm_files_next(op->f, err);

	return r > 0 ? malformed(err) : r;
}

static int change(struct cm_session *s, const struct cm_files_request *request,
		  const struct cm_call *call, struct cm_error *err)
{
	struct operation op;
	int r = begin(&op, s, call, request, err);

	if (r == CM_OK)
		r = await(&op, err);
	return end(&op, r, err);
}

/* --- content ------------------------------------------------------------------------------- */

struct taker {
	int (*take)(void *data, const void *bytes, size_t len);
	void *data;
};

static int take(const struct taker *t, const void *bytes, size_t len, struct cm_error *err)
{
	int r = t->take(t->data, bytes, len);

	return r == 0 ? CM_OK
		      : cm_error_set(err, CM_E_SYS, r < 0 ? -r : r, "cannot take what was read");
}

static int take_hole(const struct taker *t, uint64_t len, struct cm_error *err)
{
	static const char zeros[65536];
	int r = CM_OK;

	while (len > 0 && r == CM_OK) {
		size_t n = len < sizeof(zeros) ? (size_t)len : sizeof(zeros);

		r = take(t, zeros, n, err);
		len -= n;
	}
	return r;
}

int cm_lv_file_read(struct cm_session *s, const char *path, uint64_t offset, uint64_t length,
		    int (*take_fn)(void *data, const void *bytes, size_t len), void *data,
		    const struct cm_call *call, struct cm_error *err)
{
	const char *const paths[] = { path, NULL };
	const struct cm_files_request request = {
		.op = "read",
		.flags = length != UINT64_MAX ? CM_FILEF_LENGTH : 0,
		.offset = offset,
		.length = length != UINT64_MAX ? length : 0,
		.paths = paths,
	};
	const struct taker taker = { take_fn, data };
	struct operation op;
	int r = begin(&op, s, call, &request, err);

	while (r == CM_OK) {
		r = cm_files_next(op.f, err);
		if (r <= 0)
			break;
		r = CM_OK;
		if (op.f->msg.type == CM_FRAME_DATA)
			r = take(&taker, op.f->msg.data, op.f->msg.len, err);
		else if (op.f->msg.type == CM_FRAME_HOLE)
			r = take_hole(&taker, op.f->msg.value, err);
	}
	return end(&op, r, err);
}

/* 0, *ret_error being why the caller has no more; -1: the operation is over. */
static int send_content(struct operation *op, const struct cm_write_request *request,
			int *ret_error)
{
	for (;;) {
		size_t size;
		void *to = cm_file_space(&op->f->writer, &size);
		ssize_t n;

		if (!to)
			return -1;
		n = request->fill(request->data, to, size);
		if (n < 0)
			*ret_error = (int)-n;
		if (n <= 0)
			return 0;
		cm_file_commit(&op->f->writer, (size_t)n);
		/* a file that takes everything at once would not hear of it */
		if (cm_lv_call_check(op->call.call, NULL) < 0)
			return -1;
	}
}

static int send_all(struct operation *op, const struct cm_write_request *request,
		    struct cm_error *err)
{
	struct cm_file_frame frame = { .type = CM_FRAME_END };
	struct cm_error why = CM_ERROR_INIT;
	int error = 0;
	int r = send_content(op, request, &error);
	int over = cm_lv_call_check(op->call.call, &why);

	if (over < 0) {
		op->f->is_cancelled = true;
		if (err)
			*err = why;
		return over;
	}
	if (error != 0)
		frame.flags = CM_FRAMEF_FAILED;
	if (r == 0)
		r = cm_file_put(&op->f->writer, &frame, NULL, 0, NULL, 0);
	if (r == 0)
		r = cm_files_end_input(op->f);
	if (r < 0)
		r = cm_files_why(op->f, error == 0 ? err : NULL);
	else
		r = cm_files_next(op->f, error == 0 ? err : NULL);
	if (error != 0)
		return cm_error_set(err, CM_E_SYS, error, "cannot read what is to be written");
	return r > 0 ? malformed(err) : r;
}

int cm_lv_file_write(struct cm_session *s, const char *path, const struct cm_write_request *write,
		     const struct cm_call *call, struct cm_error *err)
{
	const char *const paths[] = { path, NULL };
	const struct cm_files_request request = {
		.op = "write",
		.flags = ((write->flags & CM_WRITE_APPEND) != 0 ? CM_FILEF_APPEND : 0U) |
			 ((write->flags & CM_WRITE_ATOMIC) != 0 ? CM_FILEF_ATOMIC : 0U) |
			 ((write->flags & CM_WRITE_PARENTS) != 0 ? CM_FILEF_PARENTS : 0U) |
			 (write->mode != UINT32_MAX ? CM_FILEF_MODE : 0U),
		.mode = write->mode != UINT32_MAX ? write->mode & CM_FILE_MODE_MASK : 0,
		.paths = paths,
	};
	struct operation op;
	int r = begin(&op, s, call, &request, err);

	if (r == CM_OK)
		r = send_all(&op, write, err);
	return end(&op, r, err);
}

/* --- entries ------------------------------------------------------------------------------- */

static enum cm_path_type type_of(uint32_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return CM_PATH_FILE;
	case S_IFDIR:
		return CM_PATH_DIRECTORY;
	case S_IFLNK:
		return CM_PATH_LINK;
	default:
		return CM_PATH_OTHER;
	}
}

static int tell_entry(const struct cm_file_msg *msg,
		      int (*each)(void *data, const struct cm_path_info *info), void *data)
{
	const struct cm_file_entry *e = &msg->body.entry;
	char owner[ID_SIZE];
	char group[ID_SIZE];
	const struct cm_path_info info = {
		.path = msg->name,
		.type = type_of(e->mode),
		.mode = e->mode & CM_FILE_MODE_MASK,
		.size = e->size,
		.mtime_ns = e->mtime_sec * 1000000000 + e->mtime_nsec,
		.target = S_ISLNK(e->mode) ? msg->target : NULL,
		.owner = owner,
		.group = group,
	};

	(void)snprintf(owner, sizeof(owner), "%u", (unsigned int)e->uid);
	(void)snprintf(group, sizeof(group), "%u", (unsigned int)e->gid);
	return each(data, &info);
}

static int entries(struct cm_session *s, const struct cm_files_request *request,
		   int (*each)(void *data, const struct cm_path_info *info), void *data,
		   const struct cm_call *call, struct cm_error *err)
{
	struct operation op;
	int r = begin(&op, s, call, request, err);

	while (r == CM_OK) {
		r = cm_files_next(op.f, err);
		if (r <= 0)
			break;
		r = op.f->msg.type == CM_FRAME_ENTRY ? tell_entry(&op.f->msg, each, data)
						     : malformed(err);
	}
	return end(&op, r, err);
}

int cm_lv_file_list(struct cm_session *s, const char *path, uint32_t flags,
		    int (*each)(void *data, const struct cm_path_info *info), void *data,
		    const struct cm_call *call, struct cm_error *err)
{
	/* of what is no directory there is nothing to list */
	CM_AUTO_FREE char *dir = cm_asprintf("%s/", path);
	const char *const paths[] = { dir, NULL };
	const struct cm_files_request request = {
		.op = "ls",
		.flags = (flags & CM_LIST_RECURSIVE) != 0 ? CM_FILEF_RECURSIVE : 0,
		.paths = paths,
	};

	return dir ? entries(s, &request, each, data, call, err)
		   : cm_error_set(err, CM_E_NOMEM, 0, "no memory for the list");
}

int cm_lv_file_stat(struct cm_session *s, const char *path, uint32_t flags,
		    int (*each)(void *data, const struct cm_path_info *info), void *data,
		    const struct cm_call *call, struct cm_error *err)
{
	const char *const paths[] = { path, NULL };
	const struct cm_files_request request = {
		.op = "stat",
		.flags = (flags & CM_STAT_FOLLOW) != 0 ? CM_FILEF_FOLLOW : 0,
		.paths = paths,
	};

	return entries(s, &request, each, data, call, err);
}

/* --- changes ------------------------------------------------------------------------------- */

int cm_lv_file_mkdir(struct cm_session *s, const char *path, uint32_t flags, uint32_t mode,
		     const struct cm_call *call, struct cm_error *err)
{
	const char *const paths[] = { path, NULL };
	const struct cm_files_request request = {
		.op = "mkdir",
		.flags = ((flags & CM_MKDIR_PARENTS) != 0 ? CM_FILEF_PARENTS : 0U) |
			 (mode != UINT32_MAX ? CM_FILEF_MODE : 0U),
		.mode = mode != UINT32_MAX ? mode & CM_FILE_MODE_MASK : 0,
		.paths = paths,
	};

	return change(s, &request, call, err);
}

int cm_lv_file_move(struct cm_session *s, const char *from, const char *to, uint32_t flags,
		    const struct cm_call *call, struct cm_error *err)
{
	const char *const paths[] = { from, to, NULL };
	const struct cm_files_request request = {
		.op = "mv",
		.flags = (flags & CM_MOVE_NO_CLOBBER) != 0 ? CM_FILEF_NO_CLOBBER : 0,
		.paths = paths,
	};

	return change(s, &request, call, err);
}

int cm_lv_file_remove(struct cm_session *s, const char *path, uint32_t flags,
		      const struct cm_call *call, struct cm_error *err)
{
	const char *const paths[] = { path, NULL };
	const struct cm_files_request request = {
		.op = "rm",
		.flags = ((flags & CM_REMOVE_RECURSIVE) != 0 ? CM_FILEF_RECURSIVE : 0U) |
			 ((flags & CM_REMOVE_FORCE) != 0 ? CM_FILEF_FORCE : 0U),
		.paths = paths,
	};

	return change(s, &request, call, err);
}

/* --- watching ------------------------------------------------------------------------------ */

/* False: it is nothing to be told. */
static bool event_of(const struct cm_file_msg *msg, struct cm_watch_event *ret)
{
	*ret = (struct cm_watch_event){ .path = msg->name };
	switch ((enum cm_file_event_kind)msg->body.event.kind) {
	case CM_FILE_EVENT_READY:
		ret->kind = CM_WATCH_READY;
		return true;
	case CM_FILE_EVENT_CREATED:
		ret->kind = CM_WATCH_CREATED;
		return true;
	case CM_FILE_EVENT_MODIFIED:
		ret->kind = CM_WATCH_MODIFIED;
		return true;
	case CM_FILE_EVENT_ATTRIBUTES:
		ret->kind = CM_WATCH_ATTRIBUTES;
		return true;
	case CM_FILE_EVENT_REMOVED:
		ret->kind = CM_WATCH_REMOVED;
		return true;
	case CM_FILE_EVENT_RENAMED:
		*ret = (struct cm_watch_event){ CM_WATCH_RENAMED, msg->target, msg->name };
		return true;
	case CM_FILE_EVENT_OVERFLOW:
		ret->kind = CM_WATCH_OVERFLOW;
		return true;
	/* what was written was told; what is there after an overflow its reader looks for */
	case CM_FILE_EVENT_CLOSED:
	case CM_FILE_EVENT_FOUND:
	case CM_FILE_EVENT_GONE:
	case CM_FILE_EVENT_COUNT_:
		break;
	}
	return false;
}

int cm_lv_file_watch(struct cm_session *s, const char *path,
		     int (*each)(void *data, const struct cm_watch_event *event), void *data,
		     const struct cm_call *call, struct cm_error *err)
{
	const char *const paths[] = { path, NULL };
	const struct cm_files_request request = { .op = "watch", .paths = paths };
	struct operation op;
	int r = begin(&op, s, call, &request, err);

	while (r == CM_OK) {
		struct cm_watch_event event;

		r = cm_files_next(op.f, err);
		if (r <= 0)
			break;
		if (op.f->msg.type != CM_FRAME_EVENT)
			r = malformed(err);
		else if (event_of(&op.f->msg, &event))
			r = each(data, &event);
		else
			r = CM_OK;
	}
	return end(&op, r, err);
}
