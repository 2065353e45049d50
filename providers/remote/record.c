/* SPDX-License-Identifier: Apache-2.0 */
#include "providers/remote/record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/json.h"
#include "runtime/base/json_write.h"
#include "runtime/base/path.h"
#include "runtime/base/sha256.h"
#include "runtime/base/text.h"

#define ROOT_STATE "/var/lib/casemate"
#define RECORD_MAX (256UL * 1024)
#define RECORDS_MAX 65536
#define LOCK_PAUSE_MS 50
#define SUFFIX ".json"
#define NAME_SIZE (CM_SESSION_ID_MAX + 8)

static int no_memory(struct cm_error *err)
{
	return cm_error_set(err, CM_E_NOMEM, 0, "no memory for a session's record");
}

/* --- the directory --------------------------------------------------------------------------- */

static int find_state(const struct cm_config *config, char **ret, struct cm_error *err)
{
	const char *state = cm_strv_env_get(&config->env, "XDG_STATE_HOME");

	if (geteuid() == 0)
		*ret = cm_strdup(ROOT_STATE);
	else if (state && state[0] == '/')
		*ret = cm_asprintf("%s/casemate", state);
	else if (config->home)
		*ret = cm_asprintf("%s/.local/state/casemate", config->home);
	else {
		(void)cm_error_set(err, CM_E_INVALID, 0,
				   "no place for records of sessions: no home directory is known");
		cm_error_hint(err, "set HOME to an absolute path");
		return CM_E_INVALID;
	}
	return *ret ? CM_OK : no_memory(err);
}

int cm_records_open(const struct cm_config *config, const char *provider, struct cm_records *ret,
		    struct cm_error *err)
{
	CM_AUTO_FREE char *state = NULL;
	CM_AUTO_FREE char *path = NULL;
	int fd = -1;
	int r;

	if (!cm_text_is_session_id(provider))
		return cm_error_set(err, CM_E_INVALID, 0, "'%.64s' is no provider's name",
				    provider);
	r = find_state(config, &state, err);
	if (r < 0)
		return r;
	path = cm_asprintf("%s/remote/%s", state, provider);
	if (!path)
		return no_memory(err);
	r = cm_path_open_private_dir(path, &fd, err);
	if (r < 0) {
		if (err && !err->hint[0])
			cm_error_hint(err, "look at '%s' (namei -l), or set XDG_STATE_HOME", path);
		return cm_error_wrap(err, "no directory for records of sessions");
	}
	ret->dir_fd = fd;
	return CM_OK;
}

void cm_records_close(struct cm_records *records)
{
	cm_fd_close(&records->dir_fd);
}

static int make_name(const char *id, const char *suffix, char ret[NAME_SIZE], struct cm_error *err)
{
	if (!cm_text_is_session_id(id))
		return cm_error_set(err, CM_E_INVALID, 0, "'%.130s' is no session's name", id);
	(void)snprintf(ret, NAME_SIZE, "%s%s", id, suffix);
	return CM_OK;
}

/* --- one of them ----------------------------------------------------------------------------- */

const char *cm_record_get(const struct cm_record *record, const char *key)
{
	return cm_strv_env_get(&record->values, key);
}

static void take_out(struct cm_strv *values, const char *key)
{
	size_t len = strlen(key);

	for (size_t i = 0; i < values->n; i++) {
		if (strncmp(values->v[i], key, len) != 0 || values->v[i][len] != '=')
			continue;
		free(values->v[i]);
		/* with the NULL behind the last one */
		memmove(&values->v[i], &values->v[i + 1], (values->n - i) * sizeof(*values->v));
		values->n--;
		return;
	}
}

int cm_record_set(struct cm_record *record, const char *key, const char *value,
		  struct cm_error *err)
{
	if (!value) {
		if (record->values.n > 0)
			take_out(&record->values, key);
		return CM_OK;
	}
	return cm_strv_env_set(&record->values, key, value) < 0 ? no_memory(err) : CM_OK;
}

void cm_record_clear(struct cm_record *record)
{
	cm_strv_clear(&record->values);
	cm_strv_clear(&record->labels);
}

static int not_ours(const char *name, struct cm_error *err)
{
	(void)cm_error_set(err, CM_E_PROTOCOL, 0, "the record '%s' is none of ours", name);
	cm_error_hint(err, "remove the file: what it knew is asked for again where it can be");
	return CM_E_PROTOCOL;
}

static int take_value(const struct cm_json *v, struct cm_record *record)
{
	if (v->type == CM_JSON_STRING && !strchr(v->key, '='))
		return cm_strv_env_set(&record->values, v->key, v->u.string);
	if (v->type == CM_JSON_ARRAY && strcmp(v->key, "labels") == 0)
		return cm_json_strings(v, &record->labels);
	return CM_OK;
}

static int parse(const char *text, size_t len, const char *name, struct cm_record *ret,
		 struct cm_error *err)
{
	struct cm_record record = { { NULL, 0 }, { NULL, 0 } };
	struct cm_json_doc *doc = NULL;
	const struct cm_json *root;
	int r = cm_json_parse(text, len, name, 0, &doc, NULL);

	if (r < 0)
		return r == CM_E_NOMEM ? no_memory(err) : not_ours(name, err);
	root = cm_json_root(doc);
	if (root->type != CM_JSON_OBJECT)
		r = not_ours(name, err);
	for (const struct cm_json *v = root->first_child; v && r == CM_OK; v = v->next) {
		if (take_value(v, &record) < 0)
			r = no_memory(err);
	}
	cm_json_free(doc);
	if (r < 0)
		cm_record_clear(&record);
	else
		*ret = record;
	return r;
}

int cm_record_read(const struct cm_records *records, const char *id, struct cm_record *ret,
		   struct cm_error *err)
{
	CM_AUTO_FREE char *text = NULL;
	char name[NAME_SIZE];
	ssize_t n;
	int r = make_name(id, SUFFIX, name, err);

	if (r < 0)
		return r;
	text = cm_malloc(RECORD_MAX);
	if (!text)
		return no_memory(err);
	n = cm_read_file_at(records->dir_fd, name, text, RECORD_MAX);
	if (n == -ENOENT)
		return cm_error_set(err, CM_E_NOT_FOUND, 0, "there is no session '%s'", id);
	if (n == -E2BIG)
		return not_ours(name, err);
	if (n < 0)
		return cm_error_set(err, CM_E_SYS, (int)-n, "cannot read the record '%s'", name);
	return parse(text, (size_t)n, name, ret, err);
}

static void write_text(const struct cm_record *record, struct cm_buf *out)
{
	struct cm_json_writer w;

	cm_jw_init(&w, out, true);
	cm_jw_object(&w);
	for (size_t i = 0; i < record->values.n; i++) {
		const char *item = record->values.v[i];
		CM_AUTO_FREE char *key = cm_asprintf("%.*s", (int)strcspn(item, "="), item);

		if (!key) {
			out->has_failed = true;
			return;
		}
		cm_jw_kstring(&w, key, strchr(item, '=') + 1);
	}
	cm_jw_kstrings(&w, "labels", &record->labels);
	cm_jw_end_object(&w);
	cm_buf_putc(out, '\n');
}

int cm_record_write(const struct cm_records *records, const char *id,
		    const struct cm_record *record, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf text = { 0 };
	char name[NAME_SIZE];
	int r = make_name(id, SUFFIX, name, err);

	if (r < 0)
		return r;
	cm_buf_init(&text, RECORD_MAX - 1);
	write_text(record, &text);
	r = cm_buf_status(&text);
	if (r == CM_E_LIMIT)
		return cm_error_set(err, CM_E_LIMIT, 0, "the record of session '%s' is too long",
				    id);
	if (r < 0)
		return no_memory(err);
	r = cm_replace_file_at(records->dir_fd, name, text.data, text.len, 0600, false);
	return r < 0 ? cm_error_set(err, CM_E_SYS, -r, "cannot write the record '%s'", name)
		     : CM_OK;
}

int cm_record_remove(const struct cm_records *records, const char *id, struct cm_error *err)
{
	char name[NAME_SIZE];
	int r = make_name(id, SUFFIX, name, err);

	if (r < 0)
		return r;
	if (unlinkat(records->dir_fd, name, 0) < 0 && errno != ENOENT)
		return cm_error_set(err, CM_E_SYS, errno, "cannot remove the record '%s'", name);
	return CM_OK;
}

/* --- all of them ----------------------------------------------------------------------------- */

/* The session's id in what a file is called; NULL: it is another one. */
static char *id_of(const char *name)
{
	size_t len = strlen(name);
	size_t suffix = sizeof(SUFFIX) - 1;
	char *id;

	if (len <= suffix || strcmp(name + len - suffix, SUFFIX) != 0)
		return NULL;
	id = cm_asprintf("%.*s", (int)(len - suffix), name);
	if (id && !cm_text_is_session_id(id)) {
		free(id);
		return NULL;
	}
	return id;
}

static int compare(const void *a, const void *b)
{
	const char *const *x = a;
	const char *const *y = b;

	return strcmp(*x, *y);
}

static int read_names(DIR *dir, struct cm_strv *ret, struct cm_error *err)
{
	const struct dirent *entry;
	int r = CM_OK;

	while (r == CM_OK && ret->n < RECORDS_MAX && (entry = readdir(dir)) != NULL) {
		char *id = id_of(entry->d_name);

		if (id && cm_strv_add_own(ret, id) < 0)
			r = no_memory(err);
	}
	if (r == CM_OK && ret->n > 1)
		qsort(ret->v, ret->n, sizeof(*ret->v), compare);
	return r;
}

int cm_record_list(const struct cm_records *records, struct cm_strv *ret, struct cm_error *err)
{
	struct cm_strv ids = { 0 };
	int fd = openat(records->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	int r;

	if (!dir) {
		r = cm_error_set(err, CM_E_SYS, errno, "cannot list the records of sessions");
		cm_fd_close(&fd);
		return r;
	}
	r = read_names(dir, &ids, err);
	(void)closedir(dir);
	if (r < 0)
		cm_strv_clear(&ids);
	else
		*ret = ids;
	return r;
}

/* --- its lock -------------------------------------------------------------------------------- */

/* Is it still what has this name? Whoever had it before may have taken it away. */
static bool is_named(int dir_fd, const char *name, int fd)
{
	struct stat named;
	struct stat open;

	return fstatat(dir_fd, name, &named, AT_SYMLINK_NOFOLLOW) == 0 && fstat(fd, &open) == 0 &&
	       named.st_ino == open.st_ino && named.st_dev == open.st_dev;
}

/* 0; -EWOULDBLOCK: another one has it; or -errno. */
static int try_lock(int dir_fd, const char *name, int *ret_fd)
{
	for (;;) {
		CM_AUTO_FD int fd =
			openat(dir_fd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

		if (fd < 0)
			return -errno;
		if (flock(fd, LOCK_EX | LOCK_NB) < 0)
			return -errno;
		if (is_named(dir_fd, name, fd)) {
			*ret_fd = cm_fd_take(&fd);
			return 0;
		}
	}
}

static int wait_a_moment(const struct cm_call *call, const char *id, struct cm_error *err)
{
	struct pollfd fd = { .fd = call->cancel_fd, .events = POLLIN };

	if (cm_clock_mono_ms() >= call->deadline_ms) {
		(void)cm_error_set(err, CM_E_TIMEOUT, 0,
				   "another casemate is at work on session '%s'", id);
		cm_error_hint(err, "wait for it, or give this one more time");
		return CM_E_TIMEOUT;
	}
	if (poll(&fd, 1, LOCK_PAUSE_MS) > 0)
		return cm_error_set(err, CM_E_CANCELLED, 0, "given up");
	return CM_OK;
}

int cm_record_lock(const struct cm_records *records, const char *id, const struct cm_call *call,
		   int *ret_fd, struct cm_error *err)
{
	char name[NAME_SIZE];
	int fd = -1;
	int r = make_name(id, ".lock", name, err);

	while (r == CM_OK) {
		int e = try_lock(records->dir_fd, name, &fd);

		if (e == 0) {
			*ret_fd = fd;
			return CM_OK;
		}
		r = e == -EWOULDBLOCK || e == -EINTR
			    ? wait_a_moment(call, id, err)
			    : cm_error_set(err, CM_E_SYS, -e, "cannot lock session '%s'", id);
	}
	return r;
}

void cm_record_unlock(const struct cm_records *records, const char *id, int *fd)
{
	char name[NAME_SIZE];

	/* while it is held: who waits for it looks at its name afterwards */
	if (*fd >= 0 && make_name(id, ".lock", name, NULL) == CM_OK)
		(void)unlinkat(records->dir_fd, name, 0);
	cm_fd_close(fd);
}

int cm_record_account(const char *key, const char *url, char ret[CM_RECORD_ACCOUNT_SIZE],
		      struct cm_error *err)
{
	char hex[CM_SHA256_HEX_SIZE];
	char *text = cm_asprintf("%s\n%s", url ? url : "", key ? key : "");

	if (!text)
		return no_memory(err);
	cm_sha256_hex(text, strlen(text), hex);
	cm_free_secret(&text);
	(void)snprintf(ret, CM_RECORD_ACCOUNT_SIZE, "%.*s", CM_RECORD_ACCOUNT_SIZE - 1, hex);
	return CM_OK;
}
