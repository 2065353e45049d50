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

static void tell_failed(const struct operation *op, const struct cm_error *why)
{
	const struct cm_provider_config *config = &op->session->base.provider->config;

	config->failed(config->data, why);
}

static bool can_tell_failed(const struct operation *op)
{
	return op->session->base.provider->config.failed != NULL;
}

static void on_failed(void *data, const struct cm_error *why)
{
	struct operation *op = data;

	if (can_tell_failed(op))
		tell_failed(op, why);
	else if (op->failed.code == 0)
		op->failed = *why;
}

/* Connected to the session, by what its caller has or on our own. */
static int reach(struct operation *op, const struct cm_call *call, struct cm_files_where *where,
		 struct cm_error *err)
{
	const struct cm_local_reached *reached = op->session->reached;
	const struct cm_lv_want want = { NULL, NULL };
	int r;

	if (reached) {
		where->jail = reached->jail;
		where->cwd = reached->cwd;
		where->generation = reached->generation;
		return CM_OK;
	}
	r = cm_lv_reach(op->session, &want, call, &op->l, err);
	if (r < 0)
		return r;
	where->jail = &op->l->jail;
	where->cwd = cm_local_cwd(op->l);
	where->generation = op->l->session.record.generation;
	return CM_OK;
}

/* shown: what the request's path is called in errors; NULL: as it is. */
static int begin_as(struct operation *op, struct cm_session *s, const struct cm_call *call,
		    const struct cm_files_request *request, const char *shown, struct cm_error *err)
{
	struct cm_files_where where = {
		.session = s->id,
		.is_as_user = s->is_as_user,
		.asked = shown ? request->paths[0] : NULL,
		.shown = shown,
		.failed = on_failed,
		.data = op,
	};
	int r;

	memset(op, 0, sizeof(*op));
	op->session = (struct cm_lv_session *)s;
	cm_lv_quiet_begin(&op->quiet);
	r = cm_lv_call_open(&op->call, call, err);
	if (r == CM_OK)
		r = reach(op, call, &where, err);
	if (r < 0)
		return r;
	where.cancel_fd = op->call.fd;
	return cm_files_open(&where, request, &op->f, err);
}

static int begin(struct operation *op, struct cm_session *s, const struct cm_call *call,
		 const struct cm_files_request *request, struct cm_error *err)
{
	return begin_as(op, s, call, request, NULL, err);
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
	if (r < 0 && op->f && op->f->is_refusal && op->f->why.code == r && can_tell_failed(op)) {
		tell_failed(op, &op->f->why);
		cm_error_clear(err);
		r = CM_OK;
	}
	if (r == CM_OK && op->failed.code != 0) {
		if (err)
			*err = op->failed;
		r = op->failed.code;
	}
	cm_files_close(op->f);
	cm_lv_leave(op->l);
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

static int taken(int r, struct cm_error *err)
{
	return r == 0 ? CM_OK
		      : cm_error_set(err, CM_E_SYS, r < 0 ? -r : r, "cannot take what was read");
}

static int take_hole(const struct cm_read_request *read, uint64_t len)
{
	/* not const: so it takes no room in the program */
	static char zeros[65536];
	int r = 0;

	if (read->take_hole)
		return read->take_hole(read->data, len);
	while (len > 0 && r == 0) {
		size_t n = len < sizeof(zeros) ? (size_t)len : sizeof(zeros);

		r = read->take(read->data, zeros, n);
		len -= n;
	}
	return r;
}

int cm_lv_file_read(struct cm_session *s, const char *path, const struct cm_read_request *read,
		    const struct cm_call *call, struct cm_error *err)
{
	const char *const paths[] = { path, NULL };
	const struct cm_files_request request = {
		.op = "read",
		.flags = read->length != UINT64_MAX ? CM_FILEF_LENGTH : 0,
		.offset = read->offset,
		.length = read->length != UINT64_MAX ? read->length : 0,
		.paths = paths,
	};
	struct operation op;
	int r = begin(&op, s, call, &request, err);

	while (r == CM_OK) {
		r = cm_files_next(op.f, err);
		if (r <= 0)
			break;
		r = CM_OK;
		if (op.f->msg.type == CM_FRAME_DATA)
			r = taken(read->take(read->data, op.f->msg.data, op.f->msg.len), err);
		else if (op.f->msg.type == CM_FRAME_HOLE)
			r = taken(take_hole(read, op.f->msg.value), err);
	}
	return end(&op, r, err);
}

/* All holes that come next. */
static int send_holes(struct cm_file_writer *w, const struct cm_write_request *request)
{
	uint64_t len;

	while (request->pass_hole && (len = request->pass_hole(request->data)) > 0) {
		if (cm_file_put_plain(w, CM_FRAME_HOLE, len) < 0)
			return -1;
	}
	return 0;
}

/* 0, *ret_error being why the caller has no more; -1: the operation is over. */
static int send_content(struct operation *op, const struct cm_write_request *request,
			int *ret_error)
{
	struct cm_file_writer *w = &op->f->writer;

	for (;;) {
		size_t size;
		void *to;
		ssize_t n;

		if (request->waits && cm_files_wait_input(op->f, request->wait_fd) == 0)
			return -1;
		if (send_holes(w, request) < 0)
			return -1;
		to = cm_file_space(w, &size);
		if (!to)
			return -1;
		n = request->fill(request->data, to, size);
		if (n < 0)
			*ret_error = (int)-n;
		if (n <= 0)
			return 0;
		cm_file_commit(w, (size_t)n);
		/* more may be long in coming; and a file that takes everything at once would not hear that
		 * the caller gives up */
		if (request->waits ? cm_file_flush(w) < 0
				   : cm_lv_call_check(op->call.call, NULL) < 0)
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
	if (error != 0) {
		/* that the jail heard of it is no refusal of the jail's */
		op->f->is_refusal = false;
		return cm_error_set(err, CM_E_SYS, error, "cannot read what is to be written");
	}
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

/* itself: the name of what is told without one; NULL: nothing is. */
static int tell_entry(const struct cm_file_msg *msg, const char *itself,
		      int (*each)(void *data, const struct cm_path_info *info), void *data)
{
	const struct cm_file_entry *e = &msg->body.entry;
	char owner[ID_SIZE];
	char group[ID_SIZE];
	const struct cm_path_info info = {
		.path = itself && strcmp(msg->name, itself) == 0 ? "" : msg->name,
		.type = type_of(e->mode),
		.mode = e->mode & CM_FILE_MODE_MASK,
		.full_mode = e->mode,
		.size = e->size,
		.allocated = e->allocated,
		.links = e->n_links,
		.has_usage = true,
		.mtime_sec = e->mtime_sec,
		.mtime_nsec = e->mtime_nsec,
		.target = S_ISLNK(e->mode) ? msg->target : NULL,
		.owner = owner,
		.group = group,
	};

	(void)snprintf(owner, sizeof(owner), "%u", (unsigned int)e->uid);
	(void)snprintf(group, sizeof(group), "%u", (unsigned int)e->gid);
	return each(data, &info);
}

/* shown: of what is to be told itself, too, its name in errors; NULL: of nothing. */
static int entries(struct cm_session *s, const struct cm_files_request *request, const char *shown,
		   int (*each)(void *data, const struct cm_path_info *info), void *data,
		   const struct cm_call *call, struct cm_error *err)
{
	const char *itself = shown ? request->paths[0] : NULL;
	struct operation op;
	int r = begin_as(&op, s, call, request, shown, err);

	while (r == CM_OK) {
		r = cm_files_next(op.f, err);
		if (r <= 0)
			break;
		r = op.f->msg.type == CM_FRAME_ENTRY ? tell_entry(&op.f->msg, itself, each, data)
						     : malformed(err);
	}
	return end(&op, r, err);
}

static uint32_t list_flags(uint32_t flags)
{
	return (flags & CM_LIST_RECURSIVE) != 0 ? CM_FILEF_RECURSIVE : 0;
}

static uint32_t stat_flags(uint32_t flags)
{
	return (flags & CM_STAT_FOLLOW) != 0 ? CM_FILEF_FOLLOW : 0;
}

int cm_lv_file_list(struct cm_session *s, const char *path, uint32_t flags,
		    int (*each)(void *data, const struct cm_path_info *info), void *data,
		    const struct cm_call *call, struct cm_error *err)
{
	bool is_any = (flags & CM_LIST_ANY) != 0;
	/*
	 * Of what is no directory there is nothing to list; or it is told by the name that it was asked for
	 * with, which no entry has that begins so.
	 */
	CM_AUTO_FREE char *asked = is_any ? cm_asprintf("%s%s", path[0] == '/' ? "" : "./", path)
					  : cm_asprintf("%s/", path);
	const char *const paths[] = { asked, NULL };
	const struct cm_files_request request = {
		.op = "ls",
		.flags = list_flags(flags),
		.paths = paths,
	};

	return asked ? entries(s, &request, is_any ? path : NULL, each, data, call, err)
		     : cm_error_set(err, CM_E_NOMEM, 0, "no memory for the list");
}

int cm_lv_file_stat(struct cm_session *s, const char *path, uint32_t flags,
		    int (*each)(void *data, const struct cm_path_info *info), void *data,
		    const struct cm_call *call, struct cm_error *err)
{
	const char *const paths[] = { path, NULL };
	const struct cm_files_request request = {
		.op = "stat",
		.flags = stat_flags(flags),
		.paths = paths,
	};

	return entries(s, &request, NULL, each, data, call, err);
}

/* --- changes ------------------------------------------------------------------------------- */

static uint32_t mkdir_flags(uint32_t flags, uint32_t mode)
{
	return ((flags & CM_MKDIR_PARENTS) != 0 ? CM_FILEF_PARENTS : 0U) |
	       (mode != UINT32_MAX ? CM_FILEF_MODE : 0U);
}

static uint32_t remove_flags(uint32_t flags)
{
	return ((flags & CM_REMOVE_RECURSIVE) != 0 ? CM_FILEF_RECURSIVE : 0U) |
	       ((flags & CM_REMOVE_FORCE) != 0 ? CM_FILEF_FORCE : 0U);
}

int cm_lv_file_mkdir(struct cm_session *s, const char *path, uint32_t flags, uint32_t mode,
		     const struct cm_call *call, struct cm_error *err)
{
	const char *const paths[] = { path, NULL };
	const struct cm_files_request request = {
		.op = "mkdir",
		.flags = mkdir_flags(flags, mode),
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
		.flags = remove_flags(flags),
		.paths = paths,
	};

	return change(s, &request, call, err);
}

/* --- several paths ------------------------------------------------------------------------- */

/* As its arguments have them: the jail goes on where one of them fails. */
int cm_lv_file_paths(struct cm_session *s, const struct cm_paths_request *several,
		     const struct cm_call *call, struct cm_error *err)
{
	struct cm_files_request request = { .paths = several->paths };

	switch (several->kind) {
	case CM_PATHS_LIST:
		request.op = "ls";
		request.flags = list_flags(several->flags);
		return entries(s, &request, NULL, several->each, several->data, call, err);
	case CM_PATHS_STAT:
		request.op = "stat";
		request.flags = stat_flags(several->flags);
		return entries(s, &request, NULL, several->each, several->data, call, err);
	case CM_PATHS_MKDIR:
		request.op = "mkdir";
		request.flags = mkdir_flags(several->flags, several->mode);
		request.mode = several->mode != UINT32_MAX ? several->mode & CM_FILE_MODE_MASK : 0;
		return change(s, &request, call, err);
	case CM_PATHS_REMOVE:
		request.op = "rm";
		request.flags = remove_flags(several->flags);
		return change(s, &request, call, err);
	}
	return cm_error_set(err, CM_E_BUG, 0, "no such operation on files");
}

/* --- watching ------------------------------------------------------------------------------ */

/* False: no event that we know. */
static bool event_of(const struct cm_file_msg *msg, struct cm_watch_event *ret)
{
	static const enum cm_watch_kind kinds[CM_FILE_EVENT_COUNT_] = {
		[CM_FILE_EVENT_READY] = CM_WATCH_READY,
		[CM_FILE_EVENT_CREATED] = CM_WATCH_CREATED,
		[CM_FILE_EVENT_MODIFIED] = CM_WATCH_MODIFIED,
		[CM_FILE_EVENT_CLOSED] = CM_WATCH_CLOSED,
		[CM_FILE_EVENT_ATTRIBUTES] = CM_WATCH_ATTRIBUTES,
		[CM_FILE_EVENT_REMOVED] = CM_WATCH_REMOVED,
		[CM_FILE_EVENT_RENAMED] = CM_WATCH_RENAMED,
		[CM_FILE_EVENT_OVERFLOW] = CM_WATCH_OVERFLOW,
		[CM_FILE_EVENT_FOUND] = CM_WATCH_FOUND,
		[CM_FILE_EVENT_GONE] = CM_WATCH_GONE,
	};
	uint32_t kind = msg->body.event.kind;
	bool is_directory = (msg->body.event.flags & CM_FILE_EVENTF_DIRECTORY) != 0;

	if (kind >= CM_FILE_EVENT_COUNT_ || kinds[kind] == 0)
		return false;
	*ret = (struct cm_watch_event){
		.kind = kinds[kind],
		.path = kind == CM_FILE_EVENT_RENAMED ? msg->target : msg->name,
		.to = kind == CM_FILE_EVENT_RENAMED ? msg->name : NULL,
		.type = is_directory ? CM_PATH_DIRECTORY : CM_PATH_OTHER,
	};
	return true;
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
		r = op.f->msg.type == CM_FRAME_EVENT && event_of(&op.f->msg, &event)
			    ? each(data, &event)
			    : malformed(err);
	}
	return end(&op, r, err);
}
