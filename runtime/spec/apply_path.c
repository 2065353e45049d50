/* SPDX-License-Identifier: Apache-2.0 */
/* One setting onto a spec: what names a path. Text only; nothing is looked up. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/num.h"
#include "runtime/base/path.h"
#include "runtime/base/text.h"
#include "runtime/spec/apply_internal.h"

static bool has_dot_dot(const char *path)
{
	for (const char *p = strstr(path, ".."); p; p = strstr(p + 1, "..")) {
		bool begins = p == path || p[-1] == '/';

		if (begins && (p[2] == '/' || p[2] == '\0'))
			return true;
	}
	return false;
}

/*
 * "~" and "~/x" are the caller's home; "~name" is a file's name, since asking for another user's
 * home would need the name service.
 */
static int expand_home(const struct cm_apply *a, const char *text, char **ret, struct cm_error *err)
{
	bool is_home = text[0] == '~' && (text[1] == '/' || text[1] == '\0');
	int r;

	if (!is_home) {
		*ret = cm_strdup(text);
		return *ret ? CM_OK : cm_apply_no_memory(err);
	}
	if (!a->caller->home) {
		r = cm_error_set(err, CM_E_INVALID, 0, "%s: no home directory for '%.100s'",
				 a->setting->what, text);
		cm_error_hint(err, "set HOME to an absolute path, or write the path in full");
		return r;
	}
	*ret = cm_asprintf("%s%s", a->caller->home, text + 1);
	return *ret ? CM_OK : cm_apply_no_memory(err);
}

int cm_apply_make_absolute(const struct cm_apply *a, const char *text, char **ret,
			   struct cm_error *err)
{
	CM_AUTO_FREE char *expanded = NULL;
	CM_AUTO_FREE char *joined = NULL;
	int r = cm_apply_check_text(a, text, err);

	if (r == CM_OK)
		r = expand_home(a, text, &expanded, err);
	if (r != CM_OK)
		return r;
	joined = cm_path_join(a->base ? a->base : "/", expanded);
	if (!joined)
		return cm_apply_no_memory(err);
	if (strlen(joined) >= PATH_MAX)
		return cm_error_set(err, CM_E_INVALID, 0, "%s: path longer than %d bytes",
				    a->setting->what, PATH_MAX - 1);
	*ret = has_dot_dot(joined) ? cm_strdup(joined) : cm_path_clean(joined);
	return *ret ? CM_OK : cm_apply_no_memory(err);
}

int cm_apply_path(struct cm_apply *a, struct cm_error *err)
{
	char *path = NULL;
	int r = cm_apply_make_absolute(a, a->setting->value, &path, err);

	return r == CM_OK ? cm_apply_store(a, path, err) : r;
}

/* A session root that moved with the current directory would lose sessions. */
int cm_apply_root(struct cm_apply *a, struct cm_error *err)
{
	const char *value = a->setting->value;
	bool is_home = value[0] == '~' && (value[1] == '/' || value[1] == '\0');
	int r;

	if (value[0] == '/' || is_home)
		return cm_apply_path(a, err);
	r = cm_error_set(err, CM_E_INVALID, 0, "%s must be an absolute path, not '%.200s'",
			 a->setting->what, value);
	cm_error_hint(err, "write it in full, or from '~/'");
	return r;
}

int cm_apply_result(struct cm_apply *a, struct cm_error *err)
{
	const char *value = a->setting->value;
	uint64_t fd;
	int r;

	if (!cm_text_has_prefix(value, "fd:"))
		return cm_apply_path(a, err);
	r = cm_parse_u64(value + 3, a->setting->what, 1, 65535, &fd, err);
	if (r != CM_OK) {
		cm_error_hint(err, "for example --result fd:3, with '3>result.json' in the shell");
		return r;
	}
	return cm_apply_store(a, cm_asprintf("fd:%llu", (unsigned long long)fd), err);
}

static bool take_suffix(char *text, const char *suffix)
{
	size_t len = strlen(text);
	size_t suffix_len = strlen(suffix);

	if (len <= suffix_len || strcmp(text + len - suffix_len, suffix) != 0)
		return false;
	text[len - suffix_len] = '\0';
	return true;
}

/* An empty text is --no-workspace; no other empty text gets here. */
int cm_apply_workspace(struct cm_apply *a, struct cm_error *err)
{
	CM_AUTO_FREE char *text = cm_strdup(a->setting->value);
	char *path = NULL;
	bool is_read_only;
	int r;

	if (!text)
		return cm_apply_no_memory(err);
	is_read_only = take_suffix(text, ":ro");
	if (!is_read_only)
		take_suffix(text, ":rw");
	if (text[0] != '\0') {
		r = cm_apply_make_absolute(a, text, &path, err);
		if (r != CM_OK)
			return r;
	}
	free(a->spec->workspace);
	a->spec->workspace = path;
	a->spec->workspace_kind = path ? CM_WORKSPACE_DIR : CM_WORKSPACE_NONE;
	a->spec->is_workspace_read_only = is_read_only;
	cm_apply_forget_repo(a);
	return CM_OK;
}

/* Where a new volume at dst goes: the place of an older layer's, or the end. */
static int find_slot(const struct cm_apply *a, const char *dst, size_t *ret, struct cm_error *err)
{
	const struct cm_spec *spec = a->spec;

	for (size_t i = 0; i < spec->n_volumes; i++) {
		if (strcmp(spec->volumes[i].dst, dst) != 0)
			continue;
		if (i >= a->n_volumes_before)
			return cm_error_set(err, CM_E_INVALID, 0, "%s: two volumes at '%.200s'",
					    a->setting->what, dst);
		*ret = i;
		return CM_OK;
	}
	if (spec->n_volumes >= CM_SPEC_MAX_VOLUMES)
		return cm_error_set(err, CM_E_LIMIT, 0, "%s: more than %d of them",
				    a->setting->what, CM_SPEC_MAX_VOLUMES);
	*ret = spec->n_volumes;
	return CM_OK;
}

/* Takes src and dst over, also on failure. */
static int put_volume(struct cm_apply *a, char *own_src, char *own_dst, bool is_read_only,
		      struct cm_error *err)
{
	struct cm_spec *spec = a->spec;
	CM_AUTO_FREE char *src = own_src;
	CM_AUTO_FREE char *dst = own_dst;
	struct cm_volume *grown;
	size_t slot = 0;
	int r = find_slot(a, dst, &slot, err);

	if (r != CM_OK)
		return r;
	if (slot == spec->n_volumes) {
		grown = cm_realloc(spec->volumes, (slot + 1) * sizeof(*grown));
		if (!grown)
			return cm_apply_no_memory(err);
		spec->volumes = grown;
		spec->volumes[slot] = (struct cm_volume){ 0 };
		spec->n_volumes++;
	}
	free(spec->volumes[slot].src);
	free(spec->volumes[slot].dst);
	spec->volumes[slot] = (struct cm_volume){
		.src = cm_ptr_take(&src),
		.dst = cm_ptr_take(&dst),
		.is_read_only = is_read_only,
		.is_asked = a->setting->is_asked,
	};
	a->index = slot;
	return CM_OK;
}

/* dst may be NULL: the same path as src. */
static int add_volume(struct cm_apply *a, const char *src, const char *dst, bool is_read_only,
		      struct cm_error *err)
{
	CM_AUTO_FREE char *host = NULL;
	CM_AUTO_FREE char *inside = NULL;
	int r = cm_apply_make_absolute(a, src, &host, err);

	if (r != CM_OK)
		return r;
	if (dst && dst[0] != '/') {
		r = cm_error_set(err, CM_E_INVALID, 0,
				 "%s: '%.200s' must be an absolute path in the jail",
				 a->setting->what, dst);
		cm_error_hint(err, "for example --volume %s", a->info->example);
		return r;
	}
	inside = cm_path_clean(dst ? dst : host);
	if (!inside && errno == ENOMEM)
		return cm_apply_no_memory(err);
	if (!inside)
		return cm_error_set(err, CM_E_INVALID, 0, "%s: unusable path '%.200s'",
				    a->setting->what, dst ? dst : host);
	if (strcmp(inside, "/") == 0) {
		r = cm_error_set(err, CM_E_INVALID, 0, "%s cannot be put at '/'", a->setting->what);
		cm_error_hint(err, "--rootfs DIR takes another root file system");
		return r;
	}
	return put_volume(a, cm_ptr_take(&host), cm_ptr_take(&inside), is_read_only, err);
}

/* "name:/x" is a named volume to docker's users, and a relative path to nobody. */
static bool looks_like_name(const char *src)
{
	return src[0] != '/' && src[0] != '.' && src[0] != '~';
}

int cm_apply_volume(struct cm_apply *a, struct cm_error *err)
{
	CM_AUTO_FREE char *text = cm_strdup(a->setting->value);
	const char *dst = NULL;
	bool is_read_only = false;
	char *colon;
	int r;

	if (!text)
		return cm_apply_no_memory(err);
	colon = strrchr(text, ':');
	if (colon && colon[1] != '/') {
		is_read_only = strcmp(colon + 1, "ro") == 0;
		if (!is_read_only && strcmp(colon + 1, "rw") != 0) {
			r = cm_error_set(err, CM_E_INVALID, 0,
					 "%s: '%.100s' is neither an absolute path in the jail "
					 "nor ro or rw",
					 a->setting->what, colon + 1);
			cm_error_hint(err, "write SRC[:DST][:ro], for example %s",
				      a->info->example);
			return r;
		}
		*colon = '\0';
		colon = strrchr(text, ':');
	}
	if (colon) {
		*colon = '\0';
		dst = colon + 1;
		if (looks_like_name(text)) {
			r = cm_error_set(err, CM_E_UNSUPPORTED, 0,
					 "%s: there are no named volumes such as '%.100s'",
					 a->setting->what, text);
			cm_error_hint(err, "write './%.100s:%.200s' for a directory", text, dst);
			return r;
		}
	}
	return add_volume(a, text, dst, is_read_only, err);
}

struct mount_words {
	const char *src;
	const char *dst;
	bool is_read_only;
};

static bool is_word(const char *word, size_t len, const char *a, const char *b)
{
	return (strlen(a) == len && memcmp(word, a, len) == 0) ||
	       (strlen(b) == len && memcmp(word, b, len) == 0);
}

static int read_mount_word(const struct cm_apply *a, const char *word, struct mount_words *words,
			   struct cm_error *err)
{
	size_t len = strcspn(word, "=");
	const char *value = word[len] == '=' ? word + len + 1 : NULL;
	int r;

	if (is_word(word, len, "src", "source") && value) {
		words->src = value;
	} else if (is_word(word, len, "target", "dst") && value) {
		words->dst = value;
	} else if (is_word(word, len, "destination", "destination") && value) {
		words->dst = value;
	} else if (is_word(word, len, "ro", "readonly") &&
		   (!value || strcmp(value, "true") == 0 || strcmp(value, "false") == 0)) {
		words->is_read_only = !value || strcmp(value, "true") == 0;
	} else if (strcmp(word, "type=bind") != 0) {
		r = cm_error_set(err, CM_E_UNSUPPORTED, 0, "%s: '%.100s' is not supported",
				 a->setting->what, word);
		cm_error_hint(err, "write type=bind,src=SRC,dst=DST[,ro], or --volume SRC:DST:ro");
		return r;
	}
	return CM_OK;
}

int cm_apply_mount(struct cm_apply *a, struct cm_error *err)
{
	CM_AUTO_FREE char *text = cm_strdup(a->setting->value);
	struct mount_words words = { 0 };
	char *rest = text;
	int r;

	if (!text)
		return cm_apply_no_memory(err);
	while (rest) {
		r = read_mount_word(a, strsep(&rest, ","), &words, err);
		if (r != CM_OK)
			return r;
	}
	if (!words.src) {
		r = cm_error_set(err, CM_E_INVALID, 0, "%s: src= is missing", a->setting->what);
		cm_error_hint(err, "write type=bind,src=SRC,dst=DST[,ro], or --volume SRC:DST:ro");
		return r;
	}
	a->info = cm_key_info(CM_KEY_VOLUME);
	return add_volume(a, words.src, words.dst, words.is_read_only, err);
}
