/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that a session left when it was removed without them.
 *
 * <state>/kept/<id>.<16 hex of the root> says that <root>/<id> was a session's, in the form of
 * state.json, with as much of it as removing the files takes. It is believed only as long as the
 * directory is the one that it was: a name says nothing, since whatever was put there later may be
 * somebody's work. A number of an inode is given again, so the time of its birth goes with it.
 *
 * To remove them the session is made again, which is the one way to have its id, its slot and its
 * lock, and then goes like any other. A death on the way leaves a session that can be removed.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/fd.h"
#include "runtime/base/hash.h"
#include "runtime/base/kernel.h"
#include "runtime/base/text.h"
#include "runtime/store/store_internal.h"

/* a dot, the hash of the root */
#define SUFFIX_LEN 17
/* id, root and numbers */
#define NOTE_MAX (32UL * 1024)
#define IDENTITY_SIZE 64

static void note_name(char buf[CM_STORE_NAME_SIZE], const char *root, const char *id)
{
	(void)snprintf(buf, CM_STORE_NAME_SIZE, "%s.%016llx", id,
		       (unsigned long long)cm_hash_text(root));
}

/* Which directory is at <root>/<id>? 0, 1 when the root is there and it is not, or -errno. */
static int identify(const char *root, const char *id, char buf[IDENTITY_SIZE])
{
	CM_AUTO_FD int root_fd = open(root, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	CM_AUTO_FD int fd = -1;
	struct cm_statx st = { 0 };

	if (root_fd < 0)
		return -errno;
	fd = cm_store_openat(root_fd, id, O_PATH | O_DIRECTORY, 0);
	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 1 : -errno;
	if (cm_sys_statx_fd(fd, CM_STATX_INO | CM_STATX_BTIME, &st) < 0)
		return -errno;
	/* where births are not recorded both are zero */
	(void)snprintf(buf, IDENTITY_SIZE, "%" PRIu64 " %" PRId64 ".%09u", st.ino, st.born.sec,
		       st.born.nsec);
	return 0;
}

/* 1: it is, 0: it is not, or -errno when that cannot be told now. */
static int is_same(const struct cm_session_record *note)
{
	char identity[IDENTITY_SIZE];
	int r = identify(note->root, note->id, identity);

	if (r < 0)
		return r;
	return r == 0 && note->kept && strcmp(note->kept, identity) == 0;
}

int cm_store_kept_note(struct cm_store *store, const struct cm_store_session *s,
		       struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf text = { 0 };
	CM_AUTO_FD int kept_fd = -1;
	struct cm_session_record note;
	char identity[IDENTITY_SIZE];
	char name[CM_STORE_NAME_SIZE];
	char temp[CM_STORE_NAME_SIZE];
	int r;

	/* who worked elsewhere made no directory: what is there is not its own */
	if (s->record.workspace_kind == CM_WORKSPACE_DIR ||
	    identify(s->record.root, s->record.id, identity) != 0)
		return CM_OK;
	r = cm_store_subdir(store->state_fd, store->state, CM_STORE_KEPT_DIR, &kept_fd, err);
	if (r != CM_OK)
		return r;
	/* strings are lent: it is not to be cleared */
	cm_session_record_init(&note);
	note.id = s->record.id;
	note.root = s->record.root;
	note.kept = identity;
	note.created_ms = s->record.created_ms;
	note.user = s->record.user;
	note.slot = s->record.slot;
	note.agent_id = s->record.agent_id;
	cm_buf_init(&text, NOTE_MAX);
	r = cm_record_format(&note, &text);
	if (r != CM_OK)
		return cm_error_set(err, r, 0, "cannot note what session '%s' leaves", note.id);
	note_name(name, note.root, note.id);
	/* the lock of the id is held: nobody else writes this */
	(void)snprintf(temp, sizeof(temp), "%s.new", note.id);
	r = cm_store_replace(kept_fd, name, temp, text.data, text.len, true);
	return r < 0 ? cm_store_fail(err, -r, "write", store->state, CM_STORE_KEPT_DIR) : CM_OK;
}

/* The note of this file name. CM_OK; CM_E_NOT_FOUND: it is none; CM_E_PROTOCOL: it is damaged. */
static int read_note(int kept_fd, const char *name, struct cm_session_record *ret)
{
	char text[NOTE_MAX];
	char id[CM_STORE_NAME_SIZE];
	char expected[CM_STORE_NAME_SIZE];
	size_t len = strlen(name);
	ssize_t n;
	int r;

	if (len <= SUFFIX_LEN || len >= sizeof(id) || name[len - SUFFIX_LEN] != '.')
		return CM_E_NOT_FOUND;
	(void)snprintf(id, sizeof(id), "%.*s", (int)(len - SUFFIX_LEN), name);
	if (cm_session_id_check(id, NULL) != CM_OK)
		return CM_E_NOT_FOUND;
	n = cm_read_file_at(kept_fd, name, text, sizeof(text));
	if (n < 0)
		return n == -E2BIG ? CM_E_PROTOCOL : CM_E_NOT_FOUND;
	r = cm_record_parse(text, (size_t)n, id, ret, NULL);
	if (r != CM_OK)
		return r;
	note_name(expected, ret->root, ret->id);
	if (strcmp(name, expected) == 0)
		return CM_OK;
	cm_session_record_clear(ret);
	return CM_E_PROTOCOL;
}

struct search {
	const char *id;
	/* preferred, or the only one that will do */
	const char *root;
	bool is_root_fixed;
	bool has_found;
	struct cm_session_record found;
};

static bool look_at(int kept_fd, const char *name, void *data)
{
	struct search *search = data;
	size_t len = strlen(search->id);
	struct cm_session_record note;
	bool is_preferred;

	if (strncmp(name, search->id, len) != 0 || strlen(name) != len + SUFFIX_LEN ||
	    read_note(kept_fd, name, &note) != CM_OK)
		return true;
	is_preferred = strcmp(note.root, search->root) == 0;
	if (strcmp(note.id, search->id) != 0 || (search->is_root_fixed && !is_preferred) ||
	    (search->has_found && !is_preferred) || is_same(&note) != 1) {
		cm_session_record_clear(&note);
		return true;
	}
	if (search->has_found)
		cm_session_record_clear(&search->found);
	search->found = note;
	search->has_found = true;
	return !is_preferred;
}

/* root NULL: below any, the store's own first. The caller clears *ret. */
static bool find(struct cm_store *store, const char *root, const char *id,
		 struct cm_session_record *ret)
{
	struct search search = { .id = id,
				 .root = root ? root : store->root,
				 .is_root_fixed = root != NULL };

	(void)cm_store_each_entry(store->state_fd, CM_STORE_KEPT_DIR, look_at, &search);
	if (search.has_found)
		*ret = search.found;
	return search.has_found;
}

bool cm_store_kept_command(struct cm_store *store, const char *root, const char *id,
			   char **ret_command, char **ret_dir)
{
	CM_AUTO_BUF struct cm_buf text = { 0 };
	CM_AUTO_FREE char *dir = NULL;
	struct cm_session_record note;

	if (!find(store, root, id, &note))
		return false;
	cm_buf_init(&text, NOTE_MAX);
	cm_buf_puts(&text, "casemate rm --files ");
	/* what says now where sessions are may not say it then */
	if (store->is_root_named || strcmp(note.root, store->root) != 0) {
		cm_buf_puts(&text, "--root ");
		cm_text_shell_quote(&text, note.root);
		cm_buf_putc(&text, ' ');
	}
	cm_buf_puts(&text, id);
	dir = cm_asprintf("%s/%s", note.root, id);
	cm_session_record_clear(&note);
	if (cm_buf_status(&text) != CM_OK || !dir)
		return false;
	*ret_command = cm_buf_take(&text);
	if (ret_dir)
		*ret_dir = cm_ptr_take(&dir);
	return *ret_command != NULL;
}

/* Is the slot still the one of these files? Its ids may be anybody's by now. */
static bool has_slot(struct cm_store *store, const struct cm_session_record *note)
{
	CM_AUTO_FD int fd = cm_store_slot_hold(store, note->slot, note->id);

	return fd >= 0;
}

int cm_store_kept_open(struct cm_store *store, const char *id, struct cm_store_session *ret,
		       struct cm_error *err)
{
	struct cm_session_record note;
	struct cm_store_session s;
	int r;

	if (!find(store, store->root, id, &note))
		return CM_E_NOT_FOUND;
	if (err)
		cm_error_clear(err);
	if (!has_slot(store, &note)) {
		note.slot = CM_SLOT_NONE;
		note.agent_id = 0;
	}
	cm_ptr_free(&note.kept);
	r = cm_store_session_create(store, &note, &s, err);
	cm_session_record_clear(&note);
	if (r != CM_OK)
		return r;
	/* from here on nobody else can, but somebody may have just before */
	if (!find(store, store->root, id, &note)) {
		(void)cm_store_session_remove(store, &s, false, NULL);
		cm_store_session_close(&s);
		return cm_error_set(err, CM_E_NOT_FOUND, 0, "session '%s' not found", id);
	}
	cm_session_record_clear(&note);
	s.is_revived = true;
	*ret = s;
	return CM_OK;
}

void cm_store_kept_forget(struct cm_store *store, const struct cm_session_record *record)
{
	CM_AUTO_FD int kept_fd =
		cm_store_openat(store->state_fd, CM_STORE_KEPT_DIR, O_RDONLY | O_DIRECTORY, 0);
	char name[CM_STORE_NAME_SIZE];

	note_name(name, record->root, record->id);
	if (kept_fd >= 0)
		(void)unlinkat(kept_fd, name, 0);
}

struct visit {
	void (*fn)(const struct cm_session_record *note, void *data);
	void *data;
};

static bool visit_one(int kept_fd, const char *name, void *data)
{
	const struct visit *visit = data;
	struct cm_session_record note;

	if (read_note(kept_fd, name, &note) != CM_OK)
		return true;
	if (is_same(&note) == 1)
		visit->fn(&note, visit->data);
	cm_session_record_clear(&note);
	return true;
}

void cm_store_kept_each(struct cm_store *store,
			void (*fn)(const struct cm_session_record *note, void *data), void *data)
{
	struct visit visit = { fn, data };

	(void)cm_store_each_entry(store->state_fd, CM_STORE_KEPT_DIR, visit_one, &visit);
}

static bool forget_gone(int kept_fd, const char *name, void *data)
{
	struct cm_session_record note;
	int r = read_note(kept_fd, name, &note);
	bool is_gone = r == CM_E_PROTOCOL;

	(void)data;
	if (r == CM_OK) {
		is_gone = is_same(&note) == 0;
		cm_session_record_clear(&note);
	}
	if (is_gone)
		(void)unlinkat(kept_fd, name, 0);
	return true;
}

void cm_store_kept_collect(struct cm_store *store)
{
	(void)cm_store_each_entry(store->state_fd, CM_STORE_KEPT_DIR, forget_gone, NULL);
}
