/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a spec: built-in values, copies, end; and the names of its words. */
#include "runtime/spec/spec.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/text.h"
#include "runtime/spec/keys.h"
#include "runtime/spec/merge.h"

static const size_t string_fields[] = {
	offsetof(struct cm_spec, session_id),	 offsetof(struct cm_spec, root),
	offsetof(struct cm_spec, workspace),	 offsetof(struct cm_spec, repo),
	offsetof(struct cm_spec, ref),		 offsetof(struct cm_spec, workdir),
	offsetof(struct cm_spec, limits.cpuset), offsetof(struct cm_spec, rootfs),
	offsetof(struct cm_spec, result),	 offsetof(struct cm_spec, repo_user),
	offsetof(struct cm_spec, repo_secret),	 offsetof(struct cm_spec, branch),
	offsetof(struct cm_spec, base),		 offsetof(struct cm_spec, retention),
	offsetof(struct cm_spec, template_name),
};

static const size_t vector_fields[] = {
	offsetof(struct cm_spec, setup),	 offsetof(struct cm_spec, setup_env),
	offsetof(struct cm_spec, setup_secrets), offsetof(struct cm_spec, env),
	offsetof(struct cm_spec, pass_env),	 offsetof(struct cm_spec, argv),
	offsetof(struct cm_spec, labels),	 offsetof(struct cm_spec, labels_asked),
	offsetof(struct cm_spec, teardown),	 offsetof(struct cm_spec, sparse),
};

static char **string_at(struct cm_spec *spec, size_t i)
{
	return (char **)((char *)spec + string_fields[i]);
}

static struct cm_strv *vector_at(struct cm_spec *spec, size_t i)
{
	return (struct cm_strv *)((char *)spec + vector_fields[i]);
}

/* A built-in value holds but was not asked for. It needs no memory, so it cannot fail. */
static void set_fallback(struct cm_spec *spec, const struct cm_key_info *info)
{
	struct cm_setting setting = { .key = info->key };
	struct cm_limit *limit;

	if (cm_key_is_limit(info)) {
		limit = cm_key_field(info, spec);
		*limit = (struct cm_limit){ .value = CM_UNLIMITED, .is_optional = true };
	}
	if (!info->fallback)
		return;
	setting.value = (char *)(uintptr_t)info->fallback;
	setting.what = (char *)(uintptr_t)info->name;
	if (cm_spec_apply(spec, NULL, &setting, NULL, NULL, 0, NULL) != CM_OK)
		abort(); /* the table contradicts itself; a test reads all of it */
	if (cm_key_is_limit(info)) {
		limit = cm_key_field(info, spec);
		limit->is_set = false;
	}
}

void cm_spec_init(struct cm_spec *spec)
{
	*spec = (struct cm_spec){ .failure_exit = -1 };
	for (unsigned int key = 0; key < CM_KEY_COUNT; key++)
		set_fallback(spec, cm_key_info((enum cm_key)key));
}

static void clear_volumes(struct cm_spec *spec)
{
	for (size_t i = 0; i < spec->n_volumes; i++) {
		free(spec->volumes[i].src);
		free(spec->volumes[i].dst);
	}
	free(spec->volumes);
	spec->volumes = NULL;
	spec->n_volumes = 0;
}

void cm_spec_forget_credential(struct cm_spec *spec)
{
	cm_free_secret(&spec->repo_user);
	cm_free_secret(&spec->repo_secret);
}

void cm_spec_clear(struct cm_spec *spec)
{
	cm_spec_forget_credential(spec);
	for (size_t i = 0; i < CM_ARRAY_SIZE(string_fields); i++)
		free(*string_at(spec, i));
	for (size_t i = 0; i < CM_ARRAY_SIZE(vector_fields); i++)
		cm_strv_clear(vector_at(spec, i));
	clear_volumes(spec);
	*spec = (struct cm_spec){ .failure_exit = -1 };
}

static int copy_volumes(struct cm_spec *to, const struct cm_spec *from)
{
	if (from->n_volumes == 0)
		return CM_OK;
	to->volumes = cm_calloc(from->n_volumes, sizeof(*to->volumes));
	if (!to->volumes)
		return CM_E_NOMEM;
	to->n_volumes = from->n_volumes;
	for (size_t i = 0; i < from->n_volumes; i++) {
		to->volumes[i].is_read_only = from->volumes[i].is_read_only;
		to->volumes[i].is_asked = from->volumes[i].is_asked;
		to->volumes[i].src = cm_strdup(from->volumes[i].src);
		to->volumes[i].dst = cm_strdup(from->volumes[i].dst);
		if (!to->volumes[i].src || !to->volumes[i].dst)
			return CM_E_NOMEM;
	}
	return CM_OK;
}

int cm_spec_copy(struct cm_spec *to, const struct cm_spec *from)
{
	/* read only; the accessors serve both directions */
	struct cm_spec source = *from;
	int r = CM_OK;

	*to = *from;
	to->volumes = NULL;
	to->n_volumes = 0;
	for (size_t i = 0; i < CM_ARRAY_SIZE(string_fields); i++)
		*string_at(to, i) = NULL;
	for (size_t i = 0; i < CM_ARRAY_SIZE(vector_fields); i++)
		*vector_at(to, i) = (struct cm_strv){ 0 };

	for (size_t i = 0; r == CM_OK && i < CM_ARRAY_SIZE(string_fields); i++) {
		*string_at(to, i) = cm_strdup(*string_at(&source, i));
		if (*string_at(&source, i) && !*string_at(to, i))
			r = CM_E_NOMEM;
	}
	for (size_t i = 0; r == CM_OK && i < CM_ARRAY_SIZE(vector_fields); i++)
		r = cm_strv_copy(vector_at(to, i), vector_at(&source, i));
	if (r == CM_OK)
		r = copy_volumes(to, from);
	if (r != CM_OK)
		cm_spec_clear(to);
	return r;
}

const char *cm_level_name(enum cm_level level)
{
	if (level == CM_LEVEL_NONE)
		return "none";
	return cm_key_word_text(cm_key_info(CM_KEY_MIN_LEVEL), level);
}

const char *cm_network_name(enum cm_network network)
{
	return cm_key_word_text(cm_key_info(CM_KEY_NETWORK), network);
}

int cm_session_id_check(const char *id, struct cm_error *err)
{
	int r;

	if (cm_text_is_session_id(id))
		return CM_OK;
	r = cm_error_set(err, CM_E_INVALID, 0, "bad session id '%.140s'", id);
	cm_error_hint(err, "use 1 to %d of A-Z a-z 0-9 . _ - and begin with none of . -",
		      CM_SESSION_ID_MAX);
	return r;
}
