/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots of kernel ids, for root.
 *
 * <state>/ids/<n> exists while slot n is taken and holds two lines: session id and session root.
 * It is flocked from its making until the session exists, so a file that is free and whose
 * session is nowhere belongs to a claimer that died. Whoever meets such a file takes it over;
 * nobody scans for them on the way to a start.
 *
 * A slot outlives its session while files with its ids do: as long as <root>/<id> is there.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/num.h"
#include "runtime/store/store_internal.h"

/* id, root, two line ends */
#define SLOT_TEXT_SIZE (128 + PATH_MAX + 3)
#define SLOT_NAME_SIZE 16

struct slot_owner {
	char text[SLOT_TEXT_SIZE];
	/* into text; NULL when the file is not whole */
	const char *id;
	const char *root;
};

static void slot_name(char buf[SLOT_NAME_SIZE], uint32_t slot)
{
	(void)snprintf(buf, SLOT_NAME_SIZE, "%u", slot);
}

static void read_owner(int fd, struct slot_owner *o)
{
	ssize_t n = pread(fd, o->text, sizeof(o->text) - 1, 0);
	char *line;
	char *end;

	o->id = NULL;
	o->root = NULL;
	if (n <= 0)
		return;
	o->text[n] = '\0';
	line = strchr(o->text, '\n');
	end = line ? strchr(line + 1, '\n') : NULL;
	if (!end || end[1] != '\0')
		return;
	*line = '\0';
	*end = '\0';
	o->id = o->text;
	o->root = line + 1;
}

static bool is_absent(int dir_fd, const char *path)
{
	struct stat st;

	return fstatat(dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
}

static bool session_dir_is_absent(const char *root, const char *id)
{
	CM_AUTO_FREE char *path = cm_asprintf("%s/%s", root, id);

	return path && is_absent(AT_FDCWD, path);
}

/* Does the session of this id hold this very slot? What cannot be read counts as yes. */
static bool session_has_slot(struct cm_store *store, const char *id, uint32_t slot)
{
	CM_AUTO_FD int fd = -1;
	char name[CM_STORE_NAME_SIZE];
	struct cm_store_session s;
	bool has;

	cm_store_name(name, CM_STORE_TMP, id);
	if (!is_absent(store->runtime_fd, name)) {
		char lock[CM_STORE_NAME_SIZE + 8];

		(void)snprintf(lock, sizeof(lock), "%s/%s", name, CM_STORE_LOCK);
		fd = cm_store_openat(store->runtime_fd, lock, O_RDONLY, 0);
		return fd < 0 || cm_store_lock_slot(fd) == slot;
	}
	cm_store_name(name, CM_STORE_SESSIONS, id);
	if (is_absent(store->state_fd, name))
		return false;
	if (cm_store_session_open_as(store, id, CM_STORE_ANY_ROOT, 0, &s, NULL) != CM_OK)
		return true;
	has = s.record.slot == slot;
	cm_store_session_close(&s);
	return has;
}

static bool is_orphan(struct cm_store *store, const struct slot_owner *o, uint32_t slot)
{
	if (!o->id)
		return true;
	return !session_has_slot(store, o->id, slot) && session_dir_is_absent(o->root, o->id);
}

/* Is fd the file of this name still, and not one that was removed before we had its lock? */
static bool is_named(int ids_fd, const char *name, int fd)
{
	struct stat by_name;
	struct stat by_fd;

	return fstat(fd, &by_fd) == 0 &&
	       fstatat(ids_fd, name, &by_name, AT_SYMLINK_NOFOLLOW) == 0 &&
	       by_fd.st_ino == by_name.st_ino && by_fd.st_dev == by_name.st_dev;
}

/* Open and lock a slot's file. -1 when it is not there or somebody holds it. */
static int hold(int ids_fd, uint32_t slot)
{
	CM_AUTO_FD int fd = -1;
	char name[SLOT_NAME_SIZE];

	slot_name(name, slot);
	fd = cm_store_openat(ids_fd, name, O_RDWR | O_NONBLOCK, 0);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || !is_named(ids_fd, name, fd))
		return -1;
	return cm_fd_take(&fd);
}

static int write_owner(struct cm_store *store, int fd, const char *id, struct cm_error *err)
{
	char text[SLOT_TEXT_SIZE];
	int n = snprintf(text, sizeof(text), "%s\n%s\n", id, store->root);

	if (n < 0 || (size_t)n >= sizeof(text))
		return cm_error_set(err, CM_E_INVALID, 0, "session root '%.100s...' is too long",
				    store->root);
	/* shorter first: half of a new name behind an old one would be believed */
	if (ftruncate(fd, 0) < 0)
		return cm_store_fail(err, errno, "write", store->state, CM_STORE_IDS);
	errno = 0;
	if (pwrite(fd, text, (size_t)n, 0) != n)
		return cm_store_fail(err, errno ? errno : ENOSPC, "write", store->state,
				     CM_STORE_IDS);
	return CM_OK;
}

/* 0 with *ret_fd, 1 when the slot is taken, or an error. */
static int try_slot(struct cm_store *store, int ids_fd, uint32_t slot, const char *id, int *ret_fd,
		    struct cm_error *err)
{
	CM_AUTO_FD int fd = -1;
	struct slot_owner owner;
	char name[SLOT_NAME_SIZE];
	int r;

	slot_name(name, slot);
	fd = openat(ids_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 && errno != EEXIST)
		return cm_store_fail(err, errno, "claim a slot in", store->state, CM_STORE_IDS);
	if (fd < 0) {
		fd = hold(ids_fd, slot);
		if (fd < 0)
			return 1;
		read_owner(fd, &owner);
		if (!is_orphan(store, &owner, slot))
			return 1;
	} else if (flock(fd, LOCK_EX | LOCK_NB) < 0 || !is_named(ids_fd, name, fd)) {
		/* somebody took the empty file for one of a dead claimer: theirs now */
		return 1;
	}
	r = write_owner(store, fd, id, err);
	if (r != CM_OK) {
		(void)unlinkat(ids_fd, name, 0);
		return r;
	}
	*ret_fd = cm_fd_take(&fd);
	return CM_OK;
}

static bool parse_slot(const char *name, uint32_t *ret)
{
	uint64_t v = 0;

	if (cm_parse_u64(name, "slot", 0, UINT32_MAX - 1, &v, NULL) != CM_OK)
		return false;
	*ret = (uint32_t)v;
	return true;
}

typedef bool (*slot_fn)(struct cm_store *store, int ids_fd, uint32_t slot, void *data);

/* Call fn for each slot file until it returns true. */
static int each_slot(struct cm_store *store, int ids_fd, slot_fn fn, void *data,
		     struct cm_error *err)
{
	int fd = cm_store_openat(ids_fd, ".", O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	if (!dir) {
		int r = cm_store_fail(err, errno, "read", store->state, CM_STORE_IDS);

		cm_fd_close(&fd);
		return r;
	}
	while ((e = readdir(dir)) != NULL) {
		uint32_t slot;

		if (parse_slot(e->d_name, &slot) && fn(store, ids_fd, slot, data))
			break;
	}
	(void)closedir(dir);
	return CM_OK;
}

struct own_slot {
	const char *id;
	int fd;
	uint32_t slot;
};

static bool is_own_slot(struct cm_store *store, int ids_fd, uint32_t slot, void *data)
{
	struct own_slot *own = data;
	struct slot_owner owner;
	CM_AUTO_FD int fd = hold(ids_fd, slot);

	if (fd < 0)
		return false;
	read_owner(fd, &owner);
	if (!owner.id || strcmp(owner.id, own->id) != 0 || strcmp(owner.root, store->root) != 0 ||
	    session_has_slot(store, owner.id, slot))
		return false;
	own->fd = cm_fd_take(&fd);
	own->slot = slot;
	return true;
}

static int claim_free(struct cm_store *store, int ids_fd, const char *id,
		      const struct cm_slot_space *space, struct own_slot *own, struct cm_error *err)
{
	CM_AUTO_FREE uint8_t *blocked = cm_calloc(space->n_slots / 8 + 1, 1);
	CM_AUTO_FD int etc_fd = -1;
	uint32_t start = (uint32_t)(cm_store_hash(id) % space->n_slots);
	int r;

	if (!blocked)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	etc_fd = open("/etc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (etc_fd < 0)
		return cm_store_fail(err, errno, "open", "/etc", NULL);
	r = cm_slot_blocked(etc_fd, space, blocked, err);
	if (r != CM_OK)
		return r;
	for (uint32_t i = 0; i < space->n_slots; i++) {
		uint32_t slot = (start + i) % space->n_slots;

		if (blocked[slot / 8] & (1U << (slot % 8)))
			continue;
		r = try_slot(store, ids_fd, slot, id, &own->fd, err);
		if (r == 1)
			continue;
		own->slot = slot;
		return r;
	}
	(void)cm_error_set(err, CM_E_LIMIT, 0, "all %u slots of kernel ids are taken",
			   space->n_slots);
	cm_error_hint(err,
		      "remove sessions ('casemate rm'), with --files where their files may go; "
		      "or move what /etc/subuid and /etc/subgid allot between %u and %u",
		      space->base, space->base + space->n_slots * space->size - 1);
	return CM_E_LIMIT;
}

int cm_store_slot_claim(struct cm_store *store, const char *id, const struct cm_slot_space *space,
			uint32_t *ret_slot, struct cm_error *err)
{
	CM_AUTO_FD int ids_fd = -1;
	struct own_slot own = { .id = id, .fd = -1, .slot = CM_SLOT_NONE };
	int r = cm_session_id_check(id, err);

	if (r != CM_OK)
		return r;
	r = cm_store_subdir(store->state_fd, store->state, CM_STORE_IDS, &ids_fd, err);
	/* files of an earlier session of this id belong to its slot: no other one will do */
	if (r == CM_OK && !session_dir_is_absent(store->root, id))
		r = each_slot(store, ids_fd, is_own_slot, &own, err);
	if (r == CM_OK && own.fd < 0)
		r = claim_free(store, ids_fd, id, space, &own, err);
	if (r != CM_OK)
		return r;
	cm_fd_close(&store->slot_fd);
	store->slot_fd = own.fd;
	store->slot_claimed = own.slot;
	*ret_slot = own.slot;
	return CM_OK;
}

int cm_store_slot_sync(struct cm_store *store, uint32_t slot)
{
	CM_AUTO_FD int ids_fd = -1;

	if (store->slot_fd < 0 || store->slot_claimed != slot)
		return 0;
	ids_fd = cm_store_openat(store->state_fd, CM_STORE_IDS, O_RDONLY | O_DIRECTORY, 0);
	if (ids_fd < 0 || fsync(store->slot_fd) < 0 || fsync(ids_fd) < 0)
		return -errno;
	return 0;
}

int cm_store_slot_hold(struct cm_store *store, uint32_t slot, const char *id)
{
	CM_AUTO_FD int ids_fd = -1;
	CM_AUTO_FD int fd = -1;
	struct slot_owner owner;

	if (slot == CM_SLOT_NONE)
		return -1;
	if (store->slot_fd >= 0 && store->slot_claimed == slot) {
		fd = store->slot_fd;
		store->slot_fd = -1;
	} else {
		ids_fd = cm_store_openat(store->state_fd, CM_STORE_IDS, O_RDONLY | O_DIRECTORY, 0);
		fd = ids_fd < 0 ? -1 : hold(ids_fd, slot);
	}
	if (fd < 0)
		return -1;
	read_owner(fd, &owner);
	if (!owner.id || strcmp(owner.id, id) != 0)
		return -1;
	return cm_fd_take(&fd);
}

void cm_store_slot_drop(struct cm_store *store, uint32_t slot)
{
	char path[CM_STORE_NAME_SIZE];
	char name[SLOT_NAME_SIZE];

	slot_name(name, slot);
	cm_store_name(path, CM_STORE_IDS, name);
	(void)unlinkat(store->state_fd, path, 0);
}

void cm_store_slot_release(struct cm_store *store, uint32_t slot, const char *id)
{
	CM_AUTO_FD int fd = cm_store_slot_hold(store, slot, id);

	if (fd >= 0)
		cm_store_slot_drop(store, slot);
}

static bool free_orphan(struct cm_store *store, int ids_fd, uint32_t slot, void *data)
{
	struct slot_owner owner;
	char name[SLOT_NAME_SIZE];
	CM_AUTO_FD int fd = hold(ids_fd, slot);

	(void)data;
	if (fd < 0)
		return false;
	read_owner(fd, &owner);
	if (is_orphan(store, &owner, slot)) {
		slot_name(name, slot);
		(void)unlinkat(ids_fd, name, 0);
	}
	return false;
}

int cm_store_collect_slots(struct cm_store *store, struct cm_error *err)
{
	CM_AUTO_FD int ids_fd = -1;

	ids_fd = cm_store_openat(store->state_fd, CM_STORE_IDS, O_RDONLY | O_DIRECTORY, 0);
	if (ids_fd < 0)
		return errno == ENOENT
			       ? CM_OK
			       : cm_store_fail(err, errno, "open", store->state, CM_STORE_IDS);
	return each_slot(store, ids_fd, free_orphan, NULL, err);
}
