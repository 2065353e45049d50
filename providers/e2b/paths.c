/* SPDX-License-Identifier: Apache-2.0 */
/* What is done with paths of a sandbox: looked at, listed, made, moved, removed. */
#include <stdlib.h>
#include <string.h>

#include "providers/e2b/files.h"
#include "providers/remote/sorted.h"
#include "runtime/base/fd.h"

/* deeper than any path is long */
#define DEPTH_ALL 5000U
#define DIRECTORIES_MAX 100000U

static struct cm_e2b_session *session_of(struct cm_session *s)
{
	return (struct cm_e2b_session *)(void *)s;
}

/* --- stat ------------------------------------------------------------------------------------------ */

int cm_e2b_file_stat(struct cm_session *session, const char *path, uint32_t flags,
		     int (*each)(void *data, const struct cm_path_info *info), void *data,
		     const struct cm_call *call, struct cm_error *err)
{
	struct cm_e2b_session *s = session_of(session);
	struct cm_json_doc *doc = NULL;
	struct cm_json_doc *of_target = NULL;
	struct cm_path_info info;
	CM_AUTO_FREE char *place = cm_e2b_place(s, path);
	int r = place ? cm_e2b_look(s, place, call, &doc, &info, err) : cm_e2b_no_memory(err);

	if (r == CM_OK && info.type == CM_PATH_LINK && (flags & CM_STAT_FOLLOW) != 0 && info.target)
		r = cm_e2b_look(s, info.target, call, &of_target, &info, err);
	if (r == CM_OK) {
		info.path = path;
		r = each(data, &info);
	}
	cm_json_free(of_target);
	cm_json_free(doc);
	return r;
}

/* --- list ------------------------------------------------------------------------------------------- */

struct listing {
	struct cm_e2b_session *session;
	int (*each)(void *data, const struct cm_path_info *info);
	void *data;
	/* so many bytes of each path are of what is listed; -1: not known yet */
	long prefix_len;
	/* those that are to be listed yet, where each is asked for alone */
	struct cm_strv directories;
	bool is_walk;
};

static int ask_list(struct cm_e2b_session *s, const char *path, uint32_t depth,
		    const struct cm_call *call, struct cm_json_doc **ret, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf body = { .max = 64UL * 1024 };
	CM_AUTO_FREE char *what = cm_e2b_doing(s, "list", path);
	const struct cm_e2b_rpc rpc = { .method = "filesystem.Filesystem/ListDir",
					.body = &body,
					.is_root = s->is_root,
					.is_idempotent = true,
					.is_file = true,
					.what = what };
	struct cm_json_writer w;

	if (!what)
		return cm_e2b_no_memory(err);
	cm_jw_init(&w, &body, false);
	cm_jw_object(&w);
	cm_jw_kstring(&w, "path", path);
	cm_jw_kuint(&w, "depth", depth);
	cm_jw_end_object(&w);
	return cm_e2b_unary(s, &rpc, call, ret, NULL, err);
}

static int bad_list(struct cm_error *err)
{
	return cm_error_set(err, CM_E_PROTOCOL, 0,
			    "cannot list files: the sandbox lists files of other directories");
}

static int tell_entries(struct listing *l, const struct cm_json *entries, struct cm_error *err)
{
	int r = CM_OK;

	if (!entries || entries->type != CM_JSON_ARRAY || entries->n_children == 0)
		return CM_OK;
	if (l->prefix_len < 0)
		l->prefix_len = cm_e2b_entries_prefix(entries);
	if (l->prefix_len < 0)
		return bad_list(err);
	for (const struct cm_json *v = entries->first_child; v && r == CM_OK; v = v->next) {
		struct cm_path_info info;

		r = cm_e2b_entry_read(v, &info, err);
		if (r < 0)
			break;
		if (strlen(info.path) <= (size_t)l->prefix_len)
			return bad_list(err);
		if (l->is_walk && info.type == CM_PATH_DIRECTORY) {
			if (l->directories.n >= DIRECTORIES_MAX)
				return cm_error_set(err, CM_E_LIMIT, 0,
						    "cannot list files: more than %u directories",
						    DIRECTORIES_MAX);
			if (cm_strv_add(&l->directories, info.path) < 0)
				return cm_e2b_no_memory(err);
		}
		info.path += l->prefix_len;
		r = l->each(l->data, &info);
	}
	return r;
}

static int list_once(struct listing *l, const char *path, uint32_t depth,
		     const struct cm_call *call, struct cm_error *err)
{
	struct cm_json_doc *doc = NULL;
	int r = ask_list(l->session, path, depth, call, &doc, err);

	if (r == CM_OK)
		r = tell_entries(l, cm_e2b_member(cm_json_root(doc), "entries", NULL), err);
	cm_json_free(doc);
	return r;
}

/* Directory by directory: of a tree that is too large for one answer. */
static int walk(struct listing *l, const char *path, const struct cm_call *call,
		struct cm_error *err)
{
	int r;

	l->is_walk = true;
	r = list_once(l, path, 1, call, err);
	for (size_t i = 0; i < l->directories.n && r == CM_OK; i++) {
		r = list_once(l, l->directories.v[i], 1, call, err);
		/* it went away meanwhile */
		if (r == CM_E_NOT_FOUND) {
			cm_error_clear(err);
			r = CM_OK;
		}
	}
	return r;
}

int cm_e2b_file_list(struct cm_session *session, const char *path, uint32_t flags,
		     int (*each)(void *data, const struct cm_path_info *info), void *data,
		     const struct cm_call *call, struct cm_error *err)
{
	struct cm_sorted sorted;
	struct listing l = { .session = session_of(session),
			     .each = cm_sorted_take,
			     .data = &sorted,
			     .prefix_len = -1 };
	struct cm_json_doc *doc = NULL;
	bool is_deep = (flags & CM_LIST_RECURSIVE) != 0;
	CM_AUTO_FREE char *place = cm_e2b_place(l.session, path);
	int r;

	cm_sorted_init(&sorted, each, data);
	r = place ? ask_list(l.session, place, is_deep ? DEPTH_ALL : 1, call, &doc, err)
		  : cm_e2b_no_memory(err);
	if (r == CM_OK) {
		r = tell_entries(&l, cm_e2b_member(cm_json_root(doc), "entries", NULL), err);
	} else if (r == CM_E_LIMIT && is_deep) {
		cm_error_clear(err);
		r = walk(&l, place, call, err);
	}
	if (r == CM_E_LIMIT)
		cm_error_hint(err, "a command of the session lists it: casemate exec");
	r = cm_sorted_end(&sorted, r, err);
	cm_json_free(doc);
	cm_strv_clear(&l.directories);
	return r;
}

/* --- mkdir, move, remove ------------------------------------------------------------------------------ */

int cm_e2b_file_mkdir(struct cm_session *session, const char *path, uint32_t flags, uint32_t mode,
		      const struct cm_call *call, struct cm_error *err)
{
	struct cm_e2b_session *s = session_of(session);
	CM_AUTO_FREE char *place = cm_e2b_place(s, path);
	bool with_parents = (flags & CM_MKDIR_PARENTS) != 0;
	int type;
	int r = place ? CM_OK : cm_e2b_no_memory(err);

	if (r == CM_OK && !with_parents)
		r = cm_e2b_need_parent(s, place, call, err);
	if (r < 0)
		return r;
	r = cm_e2b_path_rpc(s, "filesystem.Filesystem/MakeDir", place, "make directory", call, NULL,
			    err);
	/* one that was there keeps its mode */
	if (r == CM_E_EXISTS && with_parents) {
		cm_error_clear(err);
		return CM_OK;
	}
	if (r == CM_E_EXISTS)
		cm_error_hint(err, "-p makes it where it is not there");
	/* of a file that is there it is said that the argument is invalid */
	if (r == CM_E_INVALID) {
		type = cm_e2b_type_of(s, place, true, call, NULL);
		if (type > 0)
			return cm_error_set(err, CM_E_EXISTS, 0, "'%s' is there, and no directory",
					    path);
	}
	if (r == CM_OK && mode != UINT32_MAX)
		r = cm_e2b_set_mode(s, place, mode, call, err);
	return r;
}

/* Where it goes to, and what is there. */
static int find_destination(struct cm_e2b_session *s, const char *from, uint32_t flags, char **to,
			    const struct cm_call *call, struct cm_error *err)
{
	bool keeps = (flags & CM_MOVE_NO_CLOBBER) != 0;
	CM_AUTO_FREE char *directory = NULL;
	const char *base = NULL;
	size_t len = 0;
	int type = cm_e2b_type_of(s, *to, true, call, err);

	/* into a directory that is there, under the name that it has */
	if (type == CM_PATH_DIRECTORY && cm_e2b_base(from, &base, &len)) {
		directory = cm_ptr_take(to);
		*to = cm_asprintf("%s/%.*s", directory, (int)len, base);
		if (!*to)
			return cm_e2b_no_memory(err);
		return keeps ? cm_e2b_type_of(s, *to, false, call, err) : 0;
	}
	/* a link that leads nowhere is there, too */
	if (type == 0 && keeps)
		type = cm_e2b_type_of(s, *to, false, call, err);
	return type == 0 ? cm_e2b_need_parent(s, *to, call, err) : type;
}

int cm_e2b_file_move(struct cm_session *session, const char *from, const char *to, uint32_t flags,
		     const struct cm_call *call, struct cm_error *err)
{
	struct cm_e2b_session *s = session_of(session);
	CM_AUTO_FREE char *source = cm_e2b_place(s, from);
	CM_AUTO_FREE char *destination = cm_e2b_place(s, to);
	int type = source && destination ? find_destination(s, from, flags, &destination, call, err)
					 : cm_e2b_no_memory(err);

	if (type < 0)
		return type;
	if (type > 0 && (flags & CM_MOVE_NO_CLOBBER) != 0)
		return cm_error_set(err, CM_E_EXISTS, 0, "'%s' is there already", destination);
	return cm_e2b_rename(s, source, destination, call, err);
}

int cm_e2b_file_remove(struct cm_session *session, const char *path, uint32_t flags,
		       const struct cm_call *call, struct cm_error *err)
{
	struct cm_e2b_session *s = session_of(session);
	CM_AUTO_FREE char *place = cm_e2b_place(s, path);
	const char *base = NULL;
	size_t len = 0;
	int type;

	if (!place)
		return cm_e2b_no_memory(err);
	if (!cm_e2b_base(path, &base, &len))
		return cm_error_set(err, CM_E_INVALID, 0, "'%s' is not removed", path);
	/* the agent removes whatever there is, with all that is in it */
	type = cm_e2b_type_of(s, place, false, call, err);
	if (type < 0)
		return type;
	if (type == 0)
		return (flags & CM_REMOVE_FORCE) != 0
			       ? CM_OK
			       : cm_error_set(err, CM_E_NOT_FOUND, 0, "there is no '%s'", path);
	if (type == CM_PATH_DIRECTORY && (flags & CM_REMOVE_RECURSIVE) == 0) {
		(void)cm_error_set(err, CM_E_INVALID, 0, "'%s' is a directory", path);
		cm_error_hint(err, "-r removes it with all that is in it");
		return CM_E_INVALID;
	}
	return cm_e2b_unlink(s, place, call, err);
}
