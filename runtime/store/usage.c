/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/store/usage.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/fd.h"
#include "runtime/store/store_internal.h"

const char *cm_store_part_name(enum cm_store_part part)
{
	static const char *const names[CM_STORE_PART_COUNT] = {
		[CM_STORE_PART_STATE] = "state",
		[CM_STORE_PART_HOME] = "homes",
		[CM_STORE_PART_TMP] = "tmp",
		[CM_STORE_PART_DIRECTORY] = "directories",
		[CM_STORE_PART_KEPT] = "kept",
		[CM_STORE_PART_MIRROR] = "mirrors",
		[CM_STORE_PART_SKELETON] = "skeletons",
	};

	return names[part];
}

bool cm_store_session_has_dir(const struct cm_session_record *record)
{
	return record->workspace_kind != CM_WORKSPACE_DIR;
}

static void add_size(struct cm_tree_size *to, const struct cm_tree_size *size)
{
	to->bytes += size->bytes;
	to->is_partial = to->is_partial || size->is_partial;
}

static void add_share(struct cm_store_usage *usage, enum cm_store_part part,
		      const struct cm_tree_size *size, bool is_idle)
{
	struct cm_store_share *share = &usage->of[part];

	share->count++;
	add_size(&share->size, size);
	if (is_idle) {
		share->n_idle++;
		share->idle_bytes += size->bytes;
	}
}

/* <root>/<id>: false where there is none */
static bool dir_size(const char *root, const char *id, struct cm_tree_size *ret)
{
	CM_AUTO_FD int root_fd = open(root, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (root_fd < 0 || fstatat(root_fd, id, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	cm_tree_size_add(root_fd, id, ret);
	return true;
}

struct parts {
	struct cm_tree_size of[CM_STORE_PART_DIRECTORY + 1];
	bool has[CM_STORE_PART_DIRECTORY + 1];
};

static bool add_entry(int dir_fd, const char *name, void *data)
{
	struct parts *parts = data;
	enum cm_store_part part = CM_STORE_PART_STATE;

	if (strcmp(name, CM_STORE_HOME) == 0)
		part = CM_STORE_PART_HOME;
	else if (strcmp(name, CM_STORE_HOME_TMP) == 0)
		part = CM_STORE_PART_TMP;
	parts->has[part] = true;
	cm_tree_size_add(dir_fd, name, &parts->of[part]);
	return true;
}

static void read_parts(const struct cm_store_session *s, bool with_dir, struct parts *ret)
{
	*ret = (struct parts){ .has = { [CM_STORE_PART_STATE] = true } };
	if (cm_store_each_entry(s->dir_fd, ".", add_entry, ret) < 0)
		ret->of[CM_STORE_PART_STATE].is_partial = true;
	ret->has[CM_STORE_PART_DIRECTORY] =
		with_dir && cm_store_session_has_dir(&s->record) &&
		dir_size(s->record.root, s->record.id, &ret->of[CM_STORE_PART_DIRECTORY]);
}

void cm_store_session_size(const struct cm_store_session *s, bool with_dir,
			   struct cm_tree_size *ret)
{
	struct parts parts;

	*ret = (struct cm_tree_size){ 0 };
	read_parts(s, with_dir, &parts);
	for (size_t i = 0; i < CM_ARRAY_SIZE(parts.of); i++)
		add_size(ret, &parts.of[i]);
}

static int add_sessions(struct cm_store *store, struct cm_store_usage *usage, struct cm_error *err)
{
	CM_AUTO_STRV struct cm_strv ids = { 0 };
	int r = cm_store_list(store, &ids, err);

	for (size_t i = 0; r == CM_OK && i < ids.n; i++) {
		struct cm_store_session s;
		struct parts parts;
		bool is_idle;

		/* gone meanwhile; a damaged one has what it has */
		if (cm_store_session_open_as(store, ids.v[i], CM_STORE_ANY_ROOT | CM_STORE_DAMAGED,
					     0, &s, NULL) != CM_OK)
			continue;
		is_idle = !cm_store_keeper_alive(&s);
		read_parts(&s, true, &parts);
		for (size_t p = 0; p < CM_ARRAY_SIZE(parts.of); p++) {
			if (parts.has[p])
				add_share(usage, (enum cm_store_part)p, &parts.of[p], is_idle);
		}
		cm_store_session_close(&s);
	}
	return r;
}

static void add_kept(const struct cm_session_record *note, void *data)
{
	struct cm_tree_size size = { 0 };

	if (dir_size(note->root, note->id, &size))
		add_share(data, CM_STORE_PART_KEPT, &size, true);
}

/* Nobody has the lock of what is in dir_fd/name. Had for a moment, in which others wait or retry. */
static bool is_free(int dir_fd, const char *name)
{
	CM_AUTO_FD int fd = -1;
	char path[CM_STORE_NAME_SIZE];

	cm_store_name(path, name, CM_STORE_LOCK);
	fd = cm_store_openat(dir_fd, path, O_RDONLY, 0);
	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
}

struct shared {
	struct cm_store_usage *usage;
	enum cm_store_part part;
};

static bool add_shared(int dir_fd, const char *name, void *data)
{
	const struct shared *shared = data;
	struct cm_tree_size size = { 0 };
	struct stat st;

	/* beside mirrors there are files */
	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
		return true;
	cm_tree_size_add(dir_fd, name, &size);
	add_share(shared->usage, shared->part, &size, is_free(dir_fd, name));
	return true;
}

int cm_store_usage_read(struct cm_store *store, struct cm_store_usage *ret, struct cm_error *err)
{
	CM_AUTO_FD int cache_fd = -1;
	struct shared mirrors = { ret, CM_STORE_PART_MIRROR };
	struct shared skeletons = { ret, CM_STORE_PART_SKELETON };
	int r;

	*ret = (struct cm_store_usage){ 0 };
	r = add_sessions(store, ret, err);
	if (r != CM_OK)
		return r;
	cm_store_kept_each(store, add_kept, ret);
	if (store->cache)
		cache_fd = open(store->cache, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (cache_fd >= 0)
		(void)cm_store_each_entry(cache_fd, CM_STORE_MIRRORS, add_shared, &mirrors);
	(void)cm_store_each_entry(store->runtime_fd, CM_STORE_SKELETONS, add_shared, &skeletons);
	return CM_OK;
}
