/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a session, as their users call them. */
#include "providers/provider_internal.h"

/* The slot is there, the provider has FILES and what the handle asks for, and the path is one. */
static int may(const struct cm_session *s, bool has_slot, const char *path, const char *what,
	       const struct cm_call *call, struct cm_error *err)
{
	int r = cm_provider_may(s->provider, has_slot, CM_CAP_FILES, what, call, err);

	if (r == CM_OK && s->is_as_user)
		r = cm_provider_may(s->provider, true, CM_CAP_AS_USER, cm_cap_text(CM_CAP_AS_USER),
				    call, err);
	if (r < 0 || path[0] != '\0')
		return r;
	cm_error_set(err, CM_E_INVALID, 0, "cannot %s: the path is empty", what);
	cm_error_hint(err, "'.' is where commands start");
	return CM_E_INVALID;
}

int cm_session_read(struct cm_session *s, const char *path, const struct cm_read_request *request,
		    const struct cm_call *call, struct cm_error *err)
{
	static const char what[] = "read a file";
	const struct cm_provider_ops *ops = s->provider->ops;
	int r = may(s, ops->file_read != NULL, path, what, call, err);

	if (r < 0 || !ops->file_read)
		return r;
	return cm_provider_settle(s->provider, ops->file_read(s, path, request, call, err), what,
				  err);
}

int cm_session_write(struct cm_session *s, const char *path, const struct cm_write_request *request,
		     const struct cm_call *call, struct cm_error *err)
{
	static const char what[] = "write a file";
	const struct cm_provider_ops *ops = s->provider->ops;
	int r = may(s, ops->file_write != NULL, path, what, call, err);

	if (r == CM_OK && request->mode != UINT32_MAX && (request->mode & ~0777U) != 0) {
		cm_error_set(err, CM_E_INVALID, 0, "cannot %s with mode %o", what, request->mode);
		cm_error_hint(err, "a mode has read, write and execute bits alone: 644, 755");
		return CM_E_INVALID;
	}
	if (r < 0 || !ops->file_write)
		return r;
	return cm_provider_settle(s->provider, ops->file_write(s, path, request, call, err), what,
				  err);
}

struct kind {
	bool is_known;
	bool is_directory;
};

static int take_kind(void *data, const struct cm_path_info *info)
{
	struct kind *kind = data;

	kind->is_known = true;
	kind->is_directory = info->type == CM_PATH_DIRECTORY;
	return CM_OK;
}

struct itself {
	int (*each)(void *data, const struct cm_path_info *info);
	void *data;
};

static int tell_itself(void *data, const struct cm_path_info *info)
{
	const struct itself *itself = data;
	struct cm_path_info nameless = *info;

	nameless.path = "";
	return itself->each(itself->data, &nameless);
}

/* CM_LIST_ANY, where the provider lists directories alone: what it is, once it could not be listed. */
static int list_itself(struct cm_session *s, const char *path, struct itself *itself,
		       const struct cm_call *call, int listed, struct cm_error *err)
{
	const struct cm_provider_ops *ops = s->provider->ops;
	struct cm_error why = CM_ERROR_INIT;
	struct kind kind = { false };
	int r = ops->file_stat(s, path, CM_STAT_FOLLOW, take_kind, &kind, call, &why);

	/* a link to nowhere is there nevertheless */
	if (r == CM_E_NOT_FOUND)
		r = ops->file_stat(s, path, 0, take_kind, &kind, call, &why);
	if (r < 0 || !kind.is_known || kind.is_directory)
		return listed;
	if (err)
		cm_error_clear(err);
	return ops->file_stat(s, path, 0, tell_itself, itself, call, err);
}

int cm_session_list_files(struct cm_session *s, const char *path, uint32_t flags,
			  int (*each)(void *data, const struct cm_path_info *info), void *data,
			  const struct cm_call *call, struct cm_error *err)
{
	const struct cm_provider_ops *ops = s->provider->ops;
	int r = may(s, ops->file_list != NULL, path, "list files", call, err);

	if (r < 0 || !ops->file_list)
		return r;
	r = ops->file_list(s, path, flags, each, data, call, err);
	if ((flags & CM_LIST_ANY) != 0 && ops->file_stat &&
	    (r == CM_E_NOT_FOUND || r == CM_E_INVALID)) {
		struct itself itself = { each, data };

		r = list_itself(s, path, &itself, call, r, err);
	}
	return r;
}

int cm_session_stat(struct cm_session *s, const char *path, uint32_t flags,
		    int (*each)(void *data, const struct cm_path_info *info), void *data,
		    const struct cm_call *call, struct cm_error *err)
{
	const struct cm_provider_ops *ops = s->provider->ops;
	int r = may(s, ops->file_stat != NULL, path, "look at a file", call, err);

	if (r < 0 || !ops->file_stat)
		return r;
	return ops->file_stat(s, path, flags, each, data, call, err);
}

int cm_session_mkdir(struct cm_session *s, const char *path, uint32_t flags, uint32_t mode,
		     const struct cm_call *call, struct cm_error *err)
{
	static const char what[] = "make a directory";
	const struct cm_provider_ops *ops = s->provider->ops;
	int r = may(s, ops->file_mkdir != NULL, path, what, call, err);

	if (r < 0 || !ops->file_mkdir)
		return r;
	return cm_provider_settle(s->provider, ops->file_mkdir(s, path, flags, mode, call, err),
				  what, err);
}

int cm_session_move(struct cm_session *s, const char *from, const char *to, uint32_t flags,
		    const struct cm_call *call, struct cm_error *err)
{
	static const char what[] = "move a file";
	const struct cm_provider_ops *ops = s->provider->ops;
	int r = may(s, ops->file_move != NULL, from, what, call, err);

	if (r == CM_OK)
		r = may(s, true, to, what, call, err);
	if (r < 0 || !ops->file_move)
		return r;
	return cm_provider_settle(s->provider, ops->file_move(s, from, to, flags, call, err), what,
				  err);
}

int cm_session_remove(struct cm_session *s, const char *path, uint32_t flags,
		      const struct cm_call *call, struct cm_error *err)
{
	static const char what[] = "remove a file";
	const struct cm_provider_ops *ops = s->provider->ops;
	int r = may(s, ops->file_remove != NULL, path, what, call, err);

	if (r < 0 || !ops->file_remove)
		return r;
	return cm_provider_settle(s->provider, ops->file_remove(s, path, flags, call, err), what,
				  err);
}

bool cm_session_has_paths(const struct cm_session *s)
{
	return s->provider->ops->file_paths && s->provider->config.failed;
}

int cm_session_paths(struct cm_session *s, const struct cm_paths_request *request,
		     const struct cm_call *call, struct cm_error *err)
{
	const struct cm_provider_ops *ops = s->provider->ops;
	/* of a path that is none the provider tells, as of one that is not there */
	int r = may(s, cm_session_has_paths(s), ".", "work on several paths", call, err);

	if (r < 0 || !ops->file_paths)
		return r;
	return ops->file_paths(s, request, call, err);
}

int cm_session_watch(struct cm_session *s, const char *path,
		     int (*each)(void *data, const struct cm_watch_event *event), void *data,
		     const struct cm_call *call, struct cm_error *err)
{
	static const char what[] = "watch files";
	const struct cm_provider_ops *ops = s->provider->ops;
	int r = may(s, ops->file_watch != NULL && (s->provider->caps & CM_CAP_WATCH) != 0, path,
		    what, call, err);

	if (r < 0 || !ops->file_watch)
		return r;
	return ops->file_watch(s, path, each, data, call, err);
}

int cm_session_file_url(struct cm_session *s, const char *path, uint32_t flags,
			uint64_t lifetime_ms, const struct cm_call *call, char **ret,
			int64_t *ret_end_ms, struct cm_error *err)
{
	static const char what[] = "give an address for a file";
	const struct cm_provider_ops *ops = s->provider->ops;
	int r = may(s, ops->file_url != NULL && (s->provider->caps & CM_CAP_FILE_URL) != 0, path,
		    what, call, err);

	if (r == CM_E_UNSUPPORTED)
		cm_error_hint(err, "'casemate file read' and 'casemate file write' pass its "
				   "content on");
	if (r == CM_OK && lifetime_ms != 0 && lifetime_ms < CM_URL_LIFETIME_MIN_MS) {
		(void)cm_error_set(err, CM_E_INVALID, 0, "cannot %s for %u ms", what,
				   (unsigned int)lifetime_ms);
		cm_error_hint(err, "for a second or longer, or without an end");
		return CM_E_INVALID;
	}
	if (r < 0 || !ops->file_url)
		return r;
	return cm_provider_settle(
		s->provider, ops->file_url(s, path, flags, lifetime_ms, call, ret, ret_end_ms, err),
		what, err);
}
