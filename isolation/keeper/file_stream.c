/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of file operations: the checks on what came, and the buffer of what goes. */
#include "isolation/keeper/file_stream.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define HEADER sizeof(struct cm_file_frame)

_Static_assert(CM_FILE_READER_SIZE >= HEADER + CM_FILE_DATA_MAX, "a frame fits");
_Static_assert(CM_FILE_READER_SIZE >=
		       HEADER + sizeof(struct cm_file_entry) + 2UL * CM_FILE_PATH_MAX,
	       "an entry fits");

/* --- reading ------------------------------------------------------------------------------- */

void cm_file_reader_init(struct cm_file_reader *r)
{
	r->at = r->len = 0;
}

bool cm_file_reader_is_empty(const struct cm_file_reader *r)
{
	return r->at == r->len;
}

static int take_text(const unsigned char *bytes, size_t len, char *ret, size_t *ret_len)
{
	if (len > CM_FILE_PATH_MAX || memchr(bytes, '\0', len))
		return -EBADMSG;
	memcpy(ret, bytes, len);
	ret[len] = '\0';
	*ret_len = len;
	return 0;
}

/* head, then two texts whose lengths are in it. */
static int take_texts(const unsigned char *bytes, size_t len, size_t head, uint32_t first,
		      uint32_t second, struct cm_file_msg *ret)
{
	int r;

	if (len != head + (uint64_t)first + second)
		return -EBADMSG;
	r = take_text(bytes + head, first, ret->name, &ret->name_len);
	return r < 0 ? r : take_text(bytes + head + first, second, ret->target, &ret->target_len);
}

static int take_entry(const unsigned char *bytes, size_t len, struct cm_file_msg *ret)
{
	struct cm_file_entry *entry = &ret->body.entry;

	if (len < sizeof(*entry))
		return -EBADMSG;
	memcpy(entry, bytes, sizeof(*entry));
	if (entry->mtime_nsec >= 1000000000U || entry->size > INT64_MAX ||
	    (S_ISLNK(entry->mode) ? 0 : entry->target_len) != 0)
		return -EBADMSG;
	return take_texts(bytes, len, sizeof(*entry), entry->name_len, entry->target_len, ret);
}

static int take_error(const unsigned char *bytes, size_t len, struct cm_file_msg *ret)
{
	struct cm_file_error *error = &ret->body.error;

	if (len < sizeof(*error))
		return -EBADMSG;
	memcpy(error, bytes, sizeof(*error));
	if (error->error < 0 || error->error > 4095 || error->step == 0 ||
	    error->step >= CM_FILE_STEP_COUNT_)
		return -EBADMSG;
	return take_texts(bytes, len, sizeof(*error), error->path_len, 0, ret);
}

static int take_event(const unsigned char *bytes, size_t len, struct cm_file_msg *ret)
{
	struct cm_file_event *event = &ret->body.event;

	if (len < sizeof(*event))
		return -EBADMSG;
	memcpy(event, bytes, sizeof(*event));
	if (event->kind == 0 || event->kind >= CM_FILE_EVENT_COUNT_)
		return -EBADMSG;
	return take_texts(bytes, len, sizeof(*event), event->path_len, event->from_len, ret);
}

/* The longest that a frame of this type may be; SIZE_MAX: there is none. */
static size_t longest(uint16_t type)
{
	switch (type) {
	case CM_FRAME_ENTRY:
		return sizeof(struct cm_file_entry) + 2UL * CM_FILE_PATH_MAX;
	case CM_FRAME_DATA:
		return CM_FILE_DATA_MAX;
	case CM_FRAME_HOLE:
	case CM_FRAME_END:
	case CM_FRAME_LEAVE:
	case CM_FRAME_DONE:
		return 0;
	case CM_FRAME_ERROR:
		return sizeof(struct cm_file_error) + CM_FILE_PATH_MAX;
	case CM_FRAME_EVENT:
		return sizeof(struct cm_file_event) + 2UL * CM_FILE_PATH_MAX;
	default:
		return SIZE_MAX;
	}
}

static int take_body(const struct cm_file_frame *frame, const unsigned char *bytes,
		     struct cm_file_msg *ret)
{
	switch (frame->type) {
	case CM_FRAME_ENTRY:
		return take_entry(bytes, frame->len, ret);
	case CM_FRAME_ERROR:
		return take_error(bytes, frame->len, ret);
	case CM_FRAME_EVENT:
		return take_event(bytes, frame->len, ret);
	case CM_FRAME_HOLE:
		return frame->value > 0 && frame->value <= INT64_MAX ? 0 : -EBADMSG;
	default:
		ret->data = bytes;
		ret->len = frame->len;
		return 0;
	}
}

int cm_file_reader_next(struct cm_file_reader *r, struct cm_file_msg *ret)
{
	struct cm_file_frame frame;
	size_t have = r->len - r->at;
	size_t max;
	int e;

	if (have < HEADER)
		return 0;
	memcpy(&frame, r->bytes + r->at, HEADER);
	max = longest(frame.type);
	if (max == SIZE_MAX || frame.len > max)
		return -EBADMSG;
	if (have < HEADER + frame.len)
		return 0;
	ret->type = frame.type;
	ret->flags = frame.flags;
	ret->value = frame.value;
	ret->name_len = ret->target_len = ret->len = 0;
	ret->name[0] = ret->target[0] = '\0';
	ret->data = NULL;
	e = take_body(&frame, r->bytes + r->at + HEADER, ret);
	if (e < 0)
		return e;
	r->at += HEADER + frame.len;
	return 1;
}

ssize_t cm_file_reader_fill(struct cm_file_reader *r, int fd)
{
	ssize_t n;

	if (r->at == r->len) {
		r->at = r->len = 0;
	} else if (r->at > 0) {
		/* a frame that is not whole: it never is longer than what is free then */
		memmove(r->bytes, r->bytes + r->at, r->len - r->at);
		r->len -= r->at;
		r->at = 0;
	}
	n = read(fd, r->bytes + r->len, sizeof(r->bytes) - r->len);
	if (n < 0)
		return -errno;
	r->len += (size_t)n;
	return n;
}

/* --- writing ------------------------------------------------------------------------------- */

void cm_file_writer_init(struct cm_file_writer *w, int fd, int (*wait)(void *data), void *data)
{
	w->fd = fd;
	w->wait = wait;
	w->data = data;
	w->error = 0;
	w->len = 0;
}

int cm_file_flush(struct cm_file_writer *w)
{
	size_t done = 0;

	while (w->error == 0 && done < w->len) {
		ssize_t n = write(w->fd, w->bytes + done, w->len - done);

		if (n >= 0)
			done += (size_t)n;
		else if (errno != EAGAIN && errno != EINTR)
			w->error = -errno;
		else if (w->wait)
			w->error = w->wait(w->data);
	}
	w->len = 0;
	return w->error;
}

static int make_room(struct cm_file_writer *w, size_t len)
{
	if (w->error == 0 && sizeof(w->bytes) - w->len < len)
		(void)cm_file_flush(w);
	return w->error;
}

static void add(struct cm_file_writer *w, const void *bytes, size_t len)
{
	if (len > 0)
		memcpy(w->bytes + w->len, bytes, len);
	w->len += len;
}

int cm_file_put(struct cm_file_writer *w, const struct cm_file_frame *frame, const void *head,
		size_t head_len, const void *text, size_t text_len)
{
	struct cm_file_frame whole = *frame;
	int r;

	whole.len = (uint32_t)(head_len + text_len);
	if (head_len + text_len > CM_FILE_DATA_MAX)
		return -E2BIG;
	r = make_room(w, HEADER + whole.len);
	if (r < 0)
		return r;
	add(w, &whole, HEADER);
	add(w, head, head_len);
	add(w, text, text_len);
	return 0;
}

int cm_file_put_plain(struct cm_file_writer *w, enum cm_file_frame_type type, uint64_t value)
{
	const struct cm_file_frame frame = { .type = (uint16_t)type, .value = value };

	return cm_file_put(w, &frame, NULL, 0, NULL, 0);
}

/* The head, and two texts in one frame. */
static int put_texts(struct cm_file_writer *w, enum cm_file_frame_type type, const void *head,
		     size_t head_len, const char *first, const char *second)
{
	const size_t len = head_len + strlen(first) + strlen(second);
	const struct cm_file_frame frame = { .type = (uint16_t)type, .len = (uint32_t)len };
	int r = make_room(w, HEADER + len);

	if (r < 0)
		return r;
	add(w, &frame, HEADER);
	add(w, head, head_len);
	add(w, first, strlen(first));
	add(w, second, strlen(second));
	return 0;
}

int cm_file_put_entry(struct cm_file_writer *w, const struct stat *st, const char *name,
		      const char *target)
{
	const char *to = target ? target : "";
	const struct cm_file_entry entry = {
		.mode = st->st_mode,
		.uid = st->st_uid,
		.gid = st->st_gid,
		.n_links = (uint32_t)st->st_nlink,
		.size = (uint64_t)st->st_size,
		.allocated = (uint64_t)st->st_blocks * 512,
		.mtime_sec = st->st_mtim.tv_sec,
		.mtime_nsec = (uint32_t)st->st_mtim.tv_nsec,
		.name_len = (uint32_t)strlen(name),
		.target_len = (uint32_t)strlen(to),
		.device = st->st_dev,
		.inode = st->st_ino,
	};

	if (entry.name_len > CM_FILE_PATH_MAX || entry.target_len > CM_FILE_PATH_MAX)
		return -ENAMETOOLONG;
	return put_texts(w, CM_FRAME_ENTRY, &entry, sizeof(entry), name, to);
}

int cm_file_put_error(struct cm_file_writer *w, enum cm_file_step step, int error, const char *path,
		      bool goes_on, uint64_t written)
{
	struct cm_file_error body = { .error = error, .step = (uint32_t)step };
	const struct cm_file_frame frame = {
		.type = CM_FRAME_ERROR,
		.flags = goes_on ? CM_FRAMEF_GOES_ON : 0,
		.value = written,
	};

	body.path_len = (uint32_t)strnlen(path, CM_FILE_PATH_MAX);
	return cm_file_put(w, &frame, &body, sizeof(body), path, body.path_len);
}

int cm_file_put_event(struct cm_file_writer *w, enum cm_file_event_kind kind, bool is_directory,
		      const char *path, const char *from)
{
	const char *before = from ? from : "";
	const struct cm_file_event event = {
		.kind = (uint32_t)kind,
		.flags = is_directory ? CM_FILE_EVENTF_DIRECTORY : 0,
		.path_len = (uint32_t)strlen(path),
		.from_len = (uint32_t)strlen(before),
	};

	if (event.path_len > CM_FILE_PATH_MAX || event.from_len > CM_FILE_PATH_MAX)
		return -ENAMETOOLONG;
	return put_texts(w, CM_FRAME_EVENT, &event, sizeof(event), path, before);
}

int cm_file_put_msg(struct cm_file_writer *w, const struct cm_file_msg *msg)
{
	const struct cm_file_frame frame = {
		.type = msg->type,
		.flags = msg->flags,
		.value = msg->value,
	};

	if (msg->type == CM_FRAME_ENTRY)
		return put_texts(w, CM_FRAME_ENTRY, &msg->body.entry, sizeof(msg->body.entry),
				 msg->name, msg->target);
	return cm_file_put(w, &frame, msg->data, msg->len, NULL, 0);
}

void *cm_file_space(struct cm_file_writer *w, size_t *ret_size)
{
	size_t left;

	if (make_room(w, HEADER + CM_FILE_DATA_MAX / 2) < 0)
		return NULL;
	left = sizeof(w->bytes) - w->len - HEADER;
	*ret_size = left < CM_FILE_DATA_MAX ? left : CM_FILE_DATA_MAX;
	return w->bytes + w->len + HEADER;
}

void cm_file_commit(struct cm_file_writer *w, size_t len)
{
	const struct cm_file_frame frame = { .type = CM_FRAME_DATA, .len = (uint32_t)len };

	add(w, &frame, HEADER);
	w->len += len;
}
