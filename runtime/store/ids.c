/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots of kernel ids, for root.
 *
 * <runtime>/ids/<n> is the lock of slot n: whoever looks at the slot in earnest holds its flock,
 * and a claimer keeps it until its session exists, a temporary session's until it ends. It holds
 * two lines, session id and session root. <state>/ids/<n>, of the same form, is the slot's owner
 * for good: it is on the disk before a session that stays is.
 *
 * A slot is free when nobody has its lock and neither file names a session that has it. So what a
 * dead claimer leaves needs no repair: whoever meets it takes it over, and nothing on the way of
 * a start scans for it. The runtime directory of root is the same for all, and temporary sessions
 * touch no disk.
 *
 * A slot outlives its session while files with its ids do: as long as <root>/<id> is there.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/hash.h"
#include "runtime/base/num.h"
#include "runtime/store/store_internal.h"

/* id, root, two line ends */
/* claims looked at by who only lists; which ones differs from time to time where there are more */
#define MAX_LOOKS 32
#define SLOT_TEXT_SIZE (128 + PATH_MAX + 3)
#define SLOT_NAME_SIZE 20
/* a lock file can be removed by its last holder while we open it; not for ever */
#define MAX_TRIES 64
#define LOOKER_PAUSE_NS 500000L

struct slot_owner {
	char text[SLOT_TEXT_SIZE];
	/* into text; NULL when the file is not whole */
	const char *id;
	const char *root;
};

static void slot_path(char buf[SLOT_NAME_SIZE], uint32_t slot)
{
	(void)snprintf(buf, SLOT_NAME_SIZE, CM_STORE_IDS "/%u", slot);
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

enum holding {
	NO_SESSION = 0,
	OTHER_SLOT,
	THIS_SLOT,
};

/* Does the session of this id have this very slot? What cannot be read counts as yes. */
static enum holding session_holds(struct cm_store *store, const char *id, uint32_t slot)
{
	char name[CM_STORE_NAME_SIZE];
	struct cm_store_session s;
	bool has;

	cm_store_name(name, CM_STORE_TMP, id);
	if (!is_absent(store->runtime_fd, name)) {
		CM_AUTO_FD int fd = -1;
		char lock[CM_STORE_NAME_SIZE + 8];

		(void)snprintf(lock, sizeof(lock), "%s/%s", name, CM_STORE_LOCK);
		fd = cm_store_openat(store->runtime_fd, lock, O_RDONLY, 0);
		return fd < 0 || cm_store_lock_slot(fd) == slot ? THIS_SLOT : OTHER_SLOT;
	}
	cm_store_name(name, CM_STORE_SESSIONS, id);
	if (is_absent(store->state_fd, name))
		return NO_SESSION;
	if (cm_store_session_open_as(store, id, CM_STORE_ANY_ROOT, 0, &s, NULL) != CM_OK)
		return THIS_SLOT;
	has = s.record.slot == slot;
	cm_store_session_close(&s);
	return has ? THIS_SLOT : OTHER_SLOT;
}

static bool has_owner(struct cm_store *store, const struct slot_owner *o, uint32_t slot)
{
	enum holding holding = o->id ? session_holds(store, o->id, slot) : OTHER_SLOT;

	/* of a session that is gone the files may have stayed */
	if (holding == NO_SESSION)
		return !session_dir_is_absent(o->root, o->id);
	return holding == THIS_SLOT;
}

/* The slot's owner for good. false: there is no such file. */
static bool read_lasting(struct cm_store *store, uint32_t slot, struct slot_owner *o)
{
	CM_AUTO_FD int fd = -1;
	char path[SLOT_NAME_SIZE];

	slot_path(path, slot);
	o->id = NULL;
	fd = cm_store_openat(store->state_fd, path, O_RDONLY | O_NONBLOCK, 0);
	if (fd < 0)
		return errno != ENOENT;
	read_owner(fd, o);
	return true;
}

static int open_lock(struct cm_store *store, const char *path)
{
	int fd = cm_store_openat(store->runtime_fd, path, O_RDWR | O_CREAT | O_NONBLOCK, 0600);

	if (fd < 0 && errno == ENOENT) {
		if (mkdirat(store->runtime_fd, CM_STORE_IDS, 0700) < 0 && errno != EEXIST)
			return -1;
		fd = cm_store_openat(store->runtime_fd, path, O_RDWR | O_CREAT | O_NONBLOCK, 0600);
	}
	return fd;
}

/* The slot's lock, or -1 with errno (EWOULDBLOCK: somebody has it). */
static int lock_slot(struct cm_store *store, uint32_t slot)
{
	char path[SLOT_NAME_SIZE];

	slot_path(path, slot);
	for (int i = 0; i < MAX_TRIES; i++) {
		CM_AUTO_FD int fd = open_lock(store, path);

		if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
			return -1;
		if (cm_store_is_at(store->runtime_fd, path, fd))
			return cm_fd_take(&fd);
	}
	errno = EWOULDBLOCK;
	return -1;
}

/* For an owner: who else has the lock only looks, and lets go of it at once. */
static int lock_own_slot(struct cm_store *store, uint32_t slot)
{
	const struct timespec pause = { .tv_nsec = LOOKER_PAUSE_NS };
	int fd = lock_slot(store, slot);

	for (int i = 0; fd < 0 && errno == EWOULDBLOCK && i < MAX_TRIES; i++) {
		(void)nanosleep(&pause, NULL);
		fd = lock_slot(store, slot);
	}
	return fd;
}

/* With the slot's lock. */
static bool is_taken(struct cm_store *store, int lock_fd, uint32_t slot)
{
	struct slot_owner owner;

	read_owner(lock_fd, &owner);
	if (has_owner(store, &owner, slot))
		return true;
	return read_lasting(store, slot, &owner) && has_owner(store, &owner, slot);
}

static void unlink_lock(struct cm_store *store, uint32_t slot)
{
	char path[SLOT_NAME_SIZE];

	slot_path(path, slot);
	(void)unlinkat(store->runtime_fd, path, 0);
}

static void forget_lasting(struct cm_store *store, uint32_t slot)
{
	char path[SLOT_NAME_SIZE];

	slot_path(path, slot);
	(void)unlinkat(store->state_fd, path, 0);
}

void cm_store_slot_drop(struct cm_store *store, uint32_t slot)
{
	forget_lasting(store, slot);
	unlink_lock(store, slot);
}

static int write_owner(int fd, const char *id, const char *root)
{
	char text[SLOT_TEXT_SIZE];
	int n = snprintf(text, sizeof(text), "%s\n%s\n", id, root);

	if (n < 0 || (size_t)n >= sizeof(text))
		return -ENAMETOOLONG;
	/* emptied first: a new name before the rest of an old one would be believed */
	if (ftruncate(fd, 0) < 0)
		return -errno;
	errno = ENOSPC;
	return pwrite(fd, text, (size_t)n, 0) == n ? 0 : -errno;
}

/* 0 with *ret_fd, 1 when the slot is taken, or an error. */
static int try_slot(struct cm_store *store, uint32_t slot, const char *id, int *ret_fd,
		    struct cm_error *err)
{
	CM_AUTO_FD int fd = lock_slot(store, slot);
	struct stat st;
	int r;

	if (fd < 0)
		return errno == EWOULDBLOCK ? 1
					    : cm_store_fail(err, errno, "claim a slot in",
							    store->runtime, CM_STORE_IDS);
	if (is_taken(store, fd, slot)) {
		/* ours is empty when it was made just now */
		if (fstat(fd, &st) == 0 && st.st_size == 0)
			unlink_lock(store, slot);
		return 1;
	}
	forget_lasting(store, slot);
	r = write_owner(fd, id, store->root);
	if (r < 0) {
		unlink_lock(store, slot);
		return cm_store_fail(err, -r, "claim a slot in", store->runtime, CM_STORE_IDS);
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

struct own_slot {
	struct cm_store *store;
	const char *id;
	int fd;
	uint32_t slot;
};

/* Is this the slot that files of an earlier session of this id belong to? */
static bool look_for_own(int ids_fd, const char *name, void *data)
{
	struct own_slot *own = data;
	struct slot_owner owner;
	CM_AUTO_FD int fd = -1;
	uint32_t slot;

	(void)ids_fd;
	if (!parse_slot(name, &slot) || !read_lasting(own->store, slot, &owner) || !owner.id ||
	    strcmp(owner.id, own->id) != 0)
		return true;
	fd = lock_slot(own->store, slot);
	/* again, now that nobody changes it */
	if (fd < 0 || !read_lasting(own->store, slot, &owner) || !owner.id ||
	    strcmp(owner.id, own->id) != 0 || strcmp(owner.root, own->store->root) != 0 ||
	    session_holds(own->store, own->id, slot) == THIS_SLOT)
		return true;
	if (write_owner(fd, own->id, own->store->root) < 0)
		return true;
	own->fd = cm_fd_take(&fd);
	own->slot = slot;
	return false;
}

static int claim_free(struct cm_store *store, const char *id, const struct cm_slot_space *space,
		      struct own_slot *own, struct cm_error *err)
{
	CM_AUTO_FREE uint8_t *blocked = cm_calloc(space->n_slots / 8 + 1, 1);
	CM_AUTO_FD int etc_fd = -1;
	uint32_t start = (uint32_t)(cm_hash_text(id) % space->n_slots);
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
		r = try_slot(store, slot, id, &own->fd, err);
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
	struct own_slot own = { .store = store, .id = id, .fd = -1, .slot = CM_SLOT_NONE };
	int r = cm_session_id_check(id, err);

	if (r != CM_OK)
		return r;
	/* files of an earlier session of this id belong to its slot: no other one will do */
	if (!session_dir_is_absent(store->root, id)) {
		r = cm_store_each_entry(store->state_fd, CM_STORE_IDS, look_for_own, &own);
		if (r < 0 && r != -ENOENT)
			return cm_store_fail(err, -r, "read", store->state, CM_STORE_IDS);
	}
	if (own.fd < 0) {
		r = claim_free(store, id, space, &own, err);
		if (r != CM_OK)
			return r;
	}
	cm_fd_close(&store->slot_fd);
	store->slot_fd = own.fd;
	store->slot_claimed = own.slot;
	*ret_slot = own.slot;
	return CM_OK;
}

int cm_store_slot_keep(struct cm_store *store, const struct cm_session_record *record)
{
	CM_AUTO_FD int ids_fd = -1;
	CM_AUTO_FD int fd = -1;
	char path[SLOT_NAME_SIZE];
	int r;

	if (record->slot == CM_SLOT_NONE)
		return 0;
	if (mkdirat(store->state_fd, CM_STORE_IDS, 0700) < 0 && errno != EEXIST)
		return -errno;
	slot_path(path, record->slot);
	fd = cm_store_openat(store->state_fd, path, O_RDWR | O_CREAT, 0600);
	if (fd < 0)
		return -errno;
	r = write_owner(fd, record->id, record->root);
	if (r < 0) {
		(void)unlinkat(store->state_fd, path, 0);
		return r;
	}
	ids_fd = cm_store_openat(store->state_fd, CM_STORE_IDS, O_RDONLY | O_DIRECTORY, 0);
	return ids_fd < 0 || fsync(fd) < 0 || fsync(ids_fd) < 0 ? -errno : 0;
}

static bool is_of(const struct slot_owner *o, const char *id)
{
	return o->id && strcmp(o->id, id) == 0;
}

int cm_store_slot_hold(struct cm_store *store, uint32_t slot, const char *id)
{
	CM_AUTO_FD int fd = -1;
	struct slot_owner owner;

	if (slot == CM_SLOT_NONE)
		return -1;
	if (store->slot_fd >= 0 && store->slot_claimed == slot) {
		read_owner(store->slot_fd, &owner);
		return is_of(&owner, id) ? cm_fd_take(&store->slot_fd) : -1;
	}
	fd = lock_own_slot(store, slot);
	if (fd < 0)
		return -1;
	read_owner(fd, &owner);
	if (is_of(&owner, id) || (read_lasting(store, slot, &owner) && is_of(&owner, id)))
		return cm_fd_take(&fd);
	return -1;
}

void cm_store_slot_release(struct cm_store *store, uint32_t slot, const char *id)
{
	CM_AUTO_FD int fd = cm_store_slot_hold(store, slot, id);

	if (fd >= 0)
		cm_store_slot_drop(store, slot);
}

static bool free_unowned(int ids_fd, const char *name, void *data)
{
	CM_AUTO_FD int fd = -1;
	struct stat st;
	uint32_t slot;

	(void)ids_fd;
	if (!parse_slot(name, &slot))
		return true;
	fd = lock_slot(data, slot);
	if (fd < 0)
		return true;
	if (!is_taken(data, fd, slot))
		cm_store_slot_drop(data, slot);
	else if (fstat(fd, &st) == 0 && st.st_size == 0)
		unlink_lock(data, slot);
	return true;
}

struct look {
	struct cm_store *store;
	size_t n;
	size_t n_skip;
	size_t n_looked;
};

static bool count_slot(int ids_fd, const char *name, void *data)
{
	(void)ids_fd;
	(void)name;
	((struct look *)data)->n++;
	return true;
}

static bool look_at_slot(int ids_fd, const char *name, void *data)
{
	struct look *look = data;

	if (look->n_skip > 0) {
		look->n_skip--;
		return true;
	}
	(void)free_unowned(ids_fd, name, look->store);
	return ++look->n_looked < MAX_LOOKS;
}

int cm_store_collect_claims(struct cm_store *store, struct cm_error *err)
{
	struct look look = { .store = store };
	int r = cm_store_each_entry(store->runtime_fd, CM_STORE_IDS, count_slot, &look);

	/* where there are more than that all have their turn */
	look.n_skip = look.n > MAX_LOOKS ? (size_t)cm_clock_mono_us() % look.n : 0;
	if (r == 0 && look.n > 0)
		r = cm_store_each_entry(store->runtime_fd, CM_STORE_IDS, look_at_slot, &look);
	return r == 0 || r == -ENOENT
		       ? CM_OK
		       : cm_store_fail(err, -r, "read", store->runtime, CM_STORE_IDS);
}

int cm_store_collect_slots(struct cm_store *store, struct cm_error *err)
{
	int r = cm_store_each_entry(store->runtime_fd, CM_STORE_IDS, free_unowned, store);

	if (r < 0 && r != -ENOENT)
		return cm_store_fail(err, -r, "read", store->runtime, CM_STORE_IDS);
	r = cm_store_each_entry(store->state_fd, CM_STORE_IDS, free_unowned, store);
	return r == 0 || r == -ENOENT ? CM_OK
				      : cm_store_fail(err, -r, "read", store->state, CM_STORE_IDS);
}
