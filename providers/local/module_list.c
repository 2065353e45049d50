/* SPDX-License-Identifier: Apache-2.0 */
#include "providers/local/module_list.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/base/buf.h"
#include "runtime/base/submodule.h"

#define COMMIT_DIGITS 40

static bool is_commit(const char *text)
{
	return strlen(text) == COMMIT_DIGITS && strspn(text, "0123456789abcdef") == COMMIT_DIGITS;
}

/* CM_E_INVALID: another one than it would have been made to by the helper. */
static int check_url(const char *text)
{
	struct cm_giturl url = { 0 };
	int r = cm_submodule_url("/", text, &url, NULL);

	if (r == CM_OK && strcmp(url.text, text) != 0)
		r = CM_E_INVALID;
	cm_giturl_clear(&url);
	return r;
}

static int read_one(const struct cm_json *v, struct cm_module *ret)
{
	const char *name = cm_json_str(v, "name", "");
	const char *path = cm_json_str(v, "path", "");
	const char *url = cm_json_str(v, "url", "");
	const char *commit = cm_json_str(v, "commit", "");
	int r = check_url(url);

	if (r < 0)
		return r;
	if (!cm_submodule_is_name(name) || !cm_submodule_is_path(path) || !is_commit(commit))
		return CM_E_INVALID;
	ret->name = cm_strdup(name);
	ret->path = cm_strdup(path);
	ret->url = cm_strdup(url);
	ret->commit = cm_strdup(commit);
	return ret->name && ret->path && ret->url && ret->commit ? CM_OK : CM_E_NOMEM;
}

static int read_all(const struct cm_json *array, struct cm_module_list *list)
{
	int r = CM_OK;

	if (!array || array->type != CM_JSON_ARRAY || array->n_children > CM_SUBMODULES_MAX)
		return CM_E_INVALID;
	list->v = cm_calloc(array->n_children + 1, sizeof(*list->v));
	if (!list->v)
		return CM_E_NOMEM;
	for (const struct cm_json *v = array->first_child; v && r == CM_OK; v = v->next)
		r = read_one(v, &list->v[list->n++]);
	return r;
}

int cm_module_list_read(const struct cm_json *array, struct cm_module_list *ret,
			struct cm_error *err)
{
	struct cm_module_list list = { NULL, 0 };
	int r = read_all(array, &list);

	if (r == CM_OK) {
		*ret = list;
		return CM_OK;
	}
	cm_module_list_clear(&list);
	if (r == CM_E_NOMEM)
		return cm_error_set(err, r, 0, "no memory for the submodules");
	cm_error_set(err, CM_E_PROTOCOL, 0, "the checkout reports submodules that there cannot be");
	cm_error_hint(err, "do not trust this repository; then report this");
	return CM_E_PROTOCOL;
}

void cm_module_list_clear(struct cm_module_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		free(list->v[i].name);
		free(list->v[i].path);
		free(list->v[i].url);
		free(list->v[i].commit);
	}
	free(list->v);
	*list = (struct cm_module_list){ NULL, 0 };
}
