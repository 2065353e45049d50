/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch: what happens in a directory and below.
 *
 * Theory of operation. A directory is watched first and looked through then, so that whatever is made
 * in it is either seen in it or told by inotify; what both say is told once: names that were seen are
 * kept until all events have been read that were queued by then. The two halves of a rename are looked
 * for in what is queued; a half whose other one is elsewhere is a removal or a creation. When the
 * kernel has dropped events everything is watched anew, and all that is there is told.
 *
 * Directories are opened from the top, a component at a time and through no link, and watched as the
 * working directory: no path can lead elsewhere in between.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "isolation/keeper/file_builtin.h"
#include "isolation/keeper/file_nodes.h"
#include "runtime/base/fd.h"

#define BUFFER_SIZE 65536U
/* the second half of a rename is queued right behind the first */
#define OTHER_HALF_MS 20
#define MASK                                                                                       \
	(IN_CREATE | IN_DELETE | IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_MOVED_FROM |          \
	 IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_EXCL_UNLINK)

struct watch {
	struct cm_file_request *q;
	int fd;
	/* "": it is no directory. No descriptor is kept of it: the kernel tells of its removal when
	 * nobody has it open. */
	char top[CM_FILE_PATH_MAX + 1];
	int top_wd;
	struct cm_file_nodes nodes;
	/* so many bytes of events were queued when names were last seen */
	size_t told_bytes;
	size_t at;
	size_t len;
	_Alignas(struct inotify_event) char buf[BUFFER_SIZE];
};

static int put(struct watch *w, enum cm_file_event_kind kind, bool is_directory, const char *path,
	       const char *from)
{
	return cm_file_put_event(&w->q->out, kind, is_directory, path, from);
}

/* --- directories --------------------------------------------------------------------------- */

/* Component by component; a descriptor, or -errno. */
static int open_below(const struct watch *w, const char *path)
{
	char name[NAME_MAX + 1];
	int fd = open(w->top, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	while (fd >= 0 && *path != '\0') {
		size_t len = strcspn(path, "/");
		int next;

		if (len > NAME_MAX) {
			cm_fd_close(&fd);
			return -ENAMETOOLONG;
		}
		memcpy(name, path, len);
		name[len] = '\0';
		next = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			next = -errno;
		cm_fd_close(&fd);
		if (next < 0)
			return next;
		fd = next;
		path += len;
		path += strspn(path, "/");
	}
	return fd < 0 ? -errno : fd;
}

/* What went away while it was being looked at is no failure: its removal is told. */
static int failed(struct watch *w, enum cm_file_step step, int error, const char *path)
{
	if (error == ENOENT || error == ENOTDIR || error == ELOOP)
		return 0;
	return cm_file_failed(w->q, step, error, path);
}

static bool is_dots(const char *name)
{
	return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

static int watch_directory(struct watch *w, int parent, const char *name, unsigned int depth,
			   enum cm_file_event_kind tells);

static bool is_directory_at(int dirfd, const struct dirent *entry)
{
	struct stat st;

	if (entry->d_type != DT_UNKNOWN)
		return entry->d_type == DT_DIR;
	return fstatat(dirfd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static int look_at(struct watch *w, int wd, DIR *dir, const struct dirent *entry,
		   unsigned int depth, enum cm_file_event_kind tells)
{
	bool is_directory = is_directory_at(dirfd(dir), entry);
	char path[CM_FILE_PATH_MAX + 1];
	struct cm_file_node *node = cm_file_node_find(&w->nodes, wd);
	int r = 0;

	/* deeper than a path can say: it is told of by its directory alone */
	if (!node || !cm_file_node_path(&w->nodes, wd, entry->d_name, path))
		return 0;
	if (tells != 0) {
		cm_buf_append(&node->told, entry->d_name, strlen(entry->d_name) + 1);
		r = put(w, tells, is_directory, path, NULL);
	}
	if (r == 0 && is_directory)
		r = watch_directory(w, wd, entry->d_name, depth + 1, tells);
	return r;
}

static int look_through(struct watch *w, int wd, DIR *dir, unsigned int depth,
			enum cm_file_event_kind tells)
{
	int queued = 0;
	int r = 0;

	while (r == 0) {
		struct dirent *entry = readdir(dir);

		if (!entry)
			break;
		if (!is_dots(entry->d_name))
			r = look_at(w, wd, dir, entry, depth, tells);
	}
	if (ioctl(w->fd, FIONREAD, &queued) == 0 && queued > 0)
		w->told_bytes = w->len - w->at + (size_t)queued;
	else if (w->told_bytes < w->len - w->at)
		w->told_bytes = w->len - w->at;
	return r;
}

/* tells: how what is in it is told of; 0: not at all. 0 or -errno of the stream. */
static int watch_directory(struct watch *w, int parent, const char *name, unsigned int depth,
			   enum cm_file_event_kind tells)
{
	char path[CM_FILE_PATH_MAX + 1];
	DIR *dir;
	int fd;
	int wd;
	int r;

	if (!cm_file_node_path(&w->nodes, parent, name, path))
		return 0;
	if (depth >= CM_FILE_DEPTH_MAX)
		return cm_file_failed(w->q, CM_FILE_STEP_WATCH, ENAMETOOLONG, path);
	fd = open_below(w, path);
	if (fd < 0)
		return failed(w, CM_FILE_STEP_WATCH, -fd, path);
	wd = fchdir(fd) < 0 ? -1 : inotify_add_watch(w->fd, ".", MASK | IN_ONLYDIR);
	r = errno;
	/* it would be held as the working directory, too */
	(void)!chdir("/");
	errno = r;
	if (wd < 0 || cm_file_node_put(&w->nodes, wd, parent, name) < 0) {
		r = wd < 0 ? errno : ENOMEM;
		cm_fd_close(&fd);
		return failed(w, CM_FILE_STEP_WATCH, r, path);
	}
	if (parent < 0)
		w->top_wd = wd;
	dir = fdopendir(fd);
	if (!dir) {
		cm_fd_close(&fd);
		return cm_file_failed(w->q, CM_FILE_STEP_LIST, ENOMEM, path);
	}
	r = look_through(w, wd, dir, depth, tells);
	(void)closedir(dir);
	return r;
}

/* Moved away with all below, which goes on to happen elsewhere. */
static void forget_below(struct watch *w, int parent, const char *name)
{
	const struct cm_file_node *top = cm_file_node_child(&w->nodes, parent, name);
	int top_wd = top ? top->wd : -1;

	if (top_wd < 0)
		return;
	for (size_t i = 0; i < w->nodes.n; i++)
		w->nodes.v[i].is_gone = cm_file_node_is_below(&w->nodes, w->nodes.v[i].wd, top_wd);
	for (size_t i = w->nodes.n; i-- > 0;) {
		int wd = w->nodes.v[i].wd;

		if (!w->nodes.v[i].is_gone)
			continue;
		(void)inotify_rm_watch(w->fd, wd);
		cm_file_node_remove(&w->nodes, wd);
	}
}

/* --- events -------------------------------------------------------------------------------- */

static unsigned int depth_of(const char *path)
{
	unsigned int depth = 0;

	for (; *path != '\0'; path++)
		depth += *path == '/';
	return depth + 1;
}

/* Made, or moved here from elsewhere. */
static int on_created(struct watch *w, const struct inotify_event *e, const char *path)
{
	struct cm_file_node *node = cm_file_node_find(&w->nodes, e->wd);
	bool is_directory = (e->mask & IN_ISDIR) != 0;
	int r = 0;

	if (!node || !cm_file_node_was_told(node, e->name))
		r = put(w, CM_FILE_EVENT_CREATED, is_directory, path, NULL);
	if (r == 0 && is_directory && !cm_file_node_child(&w->nodes, e->wd, e->name))
		r = watch_directory(w, e->wd, e->name, depth_of(path), CM_FILE_EVENT_CREATED);
	return r;
}

static ssize_t read_more(struct watch *w)
{
	ssize_t n;

	if (w->at > 0) {
		memmove(w->buf, w->buf + w->at, w->len - w->at);
		w->len -= w->at;
		w->at = 0;
	}
	n = read(w->fd, w->buf + w->len, sizeof(w->buf) - w->len);
	if (n < 0)
		return -errno;
	w->len += (size_t)n;
	return n;
}

static struct inotify_event *event_at(struct watch *w, size_t at)
{
	return (struct inotify_event *)(void *)(w->buf + at);
}

static size_t size_of(const struct inotify_event *e)
{
	return sizeof(*e) + e->len;
}

/* The MOVED_TO of this cookie in what has been read, from `at` on. */
static struct inotify_event *find_other_half(struct watch *w, size_t at, uint32_t cookie)
{
	while (at < w->len) {
		struct inotify_event *e = event_at(w, at);

		if ((e->mask & IN_MOVED_TO) != 0 && e->cookie == cookie)
			return e;
		at += size_of(e);
	}
	return NULL;
}

static int on_renamed(struct watch *w, const struct inotify_event *from, struct inotify_event *to,
		      const char *from_path)
{
	bool is_directory = (to->mask & IN_ISDIR) != 0;
	char path[CM_FILE_PATH_MAX + 1];
	struct cm_file_node *node;
	int r;

	if (!cm_file_node_path(&w->nodes, to->wd, to->name, path))
		return 0;
	r = put(w, CM_FILE_EVENT_RENAMED, is_directory, path, from_path);
	node = is_directory ? cm_file_node_child(&w->nodes, from->wd, from->name) : NULL;
	if (node)
		(void)cm_file_node_put(&w->nodes, node->wd, to->wd, to->name);
	else if (r == 0 && is_directory)
		r = watch_directory(w, to->wd, to->name, depth_of(path), CM_FILE_EVENT_CREATED);
	/* it was told */
	to->mask = 0;
	return r;
}

/* w->at is at the event: it moves as more is read. */
static int on_moved_from(struct watch *w, const char *from_path)
{
	struct pollfd p = { .fd = w->fd, .events = POLLIN };
	struct inotify_event *e = event_at(w, w->at);
	struct inotify_event *to = find_other_half(w, w->at + size_of(e), e->cookie);

	if (!to && poll(&p, 1, OTHER_HALF_MS) > 0 && read_more(w) > 0) {
		e = event_at(w, w->at);
		to = find_other_half(w, w->at + size_of(e), e->cookie);
	}
	if (to)
		return on_renamed(w, e, to, from_path);
	if ((e->mask & IN_ISDIR) != 0)
		forget_below(w, e->wd, e->name);
	return put(w, CM_FILE_EVENT_REMOVED, (e->mask & IN_ISDIR) != 0, from_path, NULL);
}

/* Of a directory itself: its parent tells the same under its name, but for the top. */
static int on_self(struct watch *w, const struct inotify_event *e)
{
	if ((e->mask & IN_IGNORED) != 0)
		cm_file_node_remove(&w->nodes, e->wd);
	if (e->wd != w->top_wd)
		return 0;
	if ((e->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED)) != 0) {
		w->top_wd = -1;
		return put(w, CM_FILE_EVENT_GONE, w->top[0] != '\0', "", NULL);
	}
	if ((e->mask & IN_MODIFY) != 0)
		return put(w, CM_FILE_EVENT_MODIFIED, false, "", NULL);
	if ((e->mask & IN_CLOSE_WRITE) != 0)
		return put(w, CM_FILE_EVENT_CLOSED, false, "", NULL);
	if ((e->mask & IN_ATTRIB) != 0)
		return put(w, CM_FILE_EVENT_ATTRIBUTES, (e->mask & IN_ISDIR) != 0, "", NULL);
	return 0;
}

static int on_event(struct watch *w, const struct inotify_event *e)
{
	bool is_directory = (e->mask & IN_ISDIR) != 0;
	char path[CM_FILE_PATH_MAX + 1];

	if (e->len == 0 || e->name[0] == '\0')
		return on_self(w, e);
	if (!cm_file_node_path(&w->nodes, e->wd, e->name, path))
		return 0;
	if ((e->mask & (IN_CREATE | IN_MOVED_TO)) != 0)
		return on_created(w, e, path);
	if ((e->mask & IN_MOVED_FROM) != 0)
		return on_moved_from(w, path);
	if ((e->mask & IN_DELETE) != 0)
		return put(w, CM_FILE_EVENT_REMOVED, is_directory, path, NULL);
	if ((e->mask & IN_MODIFY) != 0)
		return put(w, CM_FILE_EVENT_MODIFIED, is_directory, path, NULL);
	if ((e->mask & IN_CLOSE_WRITE) != 0)
		return put(w, CM_FILE_EVENT_CLOSED, is_directory, path, NULL);
	if ((e->mask & IN_ATTRIB) != 0)
		return put(w, CM_FILE_EVENT_ATTRIBUTES, is_directory, path, NULL);
	return 0;
}

/* --- the loop ------------------------------------------------------------------------------ */

/* Everything is watched, and told with `tells`; then READY. */
static int begin(struct watch *w, enum cm_file_event_kind tells)
{
	int r;

	cm_fd_close(&w->fd);
	cm_file_nodes_clear(&w->nodes);
	w->at = w->len = 0;
	w->top_wd = -1;
	w->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (w->fd < 0)
		return cm_file_fail(w->q, CM_FILE_STEP_WATCH, errno, w->q->paths[0], 0);
	if (w->top[0] != '\0') {
		r = watch_directory(w, -1, "", 0, tells);
	} else {
		w->top_wd = inotify_add_watch(w->fd, w->q->paths[0], MASK);
		r = w->top_wd < 0 ? cm_file_fail(w->q, CM_FILE_STEP_WATCH, errno, w->q->paths[0], 0)
				  : cm_file_node_put(&w->nodes, w->top_wd, -1, "");
	}
	if (r == 0 && w->top_wd < 0)
		r = w->q->has_failed
			    ? 1
			    : cm_file_fail(w->q, CM_FILE_STEP_WATCH, ENOENT, w->q->paths[0], 0);
	return r != 0 ? r : put(w, CM_FILE_EVENT_READY, false, "", NULL);
}

static void forget_told(struct watch *w)
{
	for (size_t i = 0; i < w->nodes.n; i++)
		cm_buf_clear(&w->nodes.v[i].told);
	w->told_bytes = 0;
}

/* All that has been read. */
static int take_events(struct watch *w)
{
	int r = 0;

	while (r == 0 && w->at < w->len && w->top_wd >= 0) {
		const struct inotify_event *e = event_at(w, w->at);
		size_t size;

		if ((e->mask & IN_Q_OVERFLOW) != 0) {
			r = put(w, CM_FILE_EVENT_OVERFLOW, false, "", NULL);
			return r < 0 ? r : begin(w, CM_FILE_EVENT_FOUND);
		}
		r = on_event(w, e);
		/* more may have been read meanwhile, and the event is elsewhere in the buffer */
		size = size_of(event_at(w, w->at));
		w->at += size;
		if (w->told_bytes > 0 && w->told_bytes <= size)
			forget_told(w);
		else if (w->told_bytes > 0)
			w->told_bytes -= size;
	}
	return r;
}

/* Until the end of stdin, or of what is watched: 0; 1 or -errno. */
static int loop(struct watch *w)
{
	int r = 0;

	while (r == 0 && w->top_wd >= 0) {
		struct pollfd p[2] = {
			{ .fd = w->fd, .events = POLLIN },
			{ .fd = STDIN_FILENO, .events = POLLIN },
		};
		ssize_t n;

		if (cm_file_flush(&w->q->out) < 0)
			return -EPIPE;
		if (cm_file_is_stopped())
			return 0;
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return -errno;
		if (p[1].revents != 0)
			return 0;
		if ((p[0].revents & POLLIN) == 0)
			continue;
		n = read_more(w);
		if (n < 0 && n != -EAGAIN && n != -EINTR)
			return (int)n;
		r = take_events(w);
	}
	return r;
}

/* The directory's real path; a file stays what it was named. 0 or -errno. */
static int find_top(struct watch *w, const char *path)
{
	CM_AUTO_FD int fd = open(path, O_PATH | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return 0;
	if (fchdir(fd) < 0 || !getcwd(w->top, sizeof(w->top)))
		return -errno;
	return w->top[0] == '/' ? 0 : -ENOENT;
}

int cm_file_op_watch(struct cm_file_request *q, uint64_t *ret_value)
{
	static struct watch w;
	int r;

	*ret_value = 0;
	w.q = q;
	w.fd = -1;
	r = find_top(&w, q->paths[0]);
	if (r < 0)
		return cm_file_fail(q, CM_FILE_STEP_WATCH, -r, q->paths[0], 0);
	r = begin(&w, (enum cm_file_event_kind)0);
	if (r == 0)
		r = loop(&w);
	cm_file_nodes_clear(&w.nodes);
	cm_fd_close(&w.fd);
	return r != 0;
}
