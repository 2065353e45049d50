/* SPDX-License-Identifier: Apache-2.0 */
/* One setting onto a spec: numbers, words, texts, lists. Paths are in apply_path.c. */
#include <stdlib.h>
#include <string.h>

#include "runtime/base/fd.h"
#include "runtime/base/num.h"
#include "runtime/base/submodule.h"
#include "runtime/base/text.h"
#include "runtime/spec/apply_internal.h"
#include "runtime/spec/cpuset.h"
#include "runtime/spec/labels.h"
#include "runtime/spec/retention.h"

#define MAX_NUMBER 64
/* they are one argument of a program, which may have 128 KiB */
#define SPARSE_MAX 64

int cm_apply_no_memory(struct cm_error *err)
{
	return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
}

int cm_apply_store(struct cm_apply *a, char *own_text, struct cm_error *err)
{
	char **field = cm_key_field(a->info, a->spec);

	if (!own_text)
		return cm_apply_no_memory(err);
	free(*field);
	*field = own_text;
	return CM_OK;
}

void cm_apply_forget(struct cm_apply *a, enum cm_key key)
{
	a->spec->asked &= ~(UINT64_C(1) << key);
	if (a->origins)
		cm_strv_clear(&a->origins->of[key]);
}

/* A newline in a name could forge a line where names are listed one a line. */
int cm_apply_check_text(const struct cm_apply *a, const char *text, struct cm_error *err)
{
	size_t len = strlen(text);

	if (len < a->info->min)
		return cm_error_set(err, CM_E_INVALID, 0, "%s must not be empty", a->setting->what);
	if (len > a->info->max)
		return cm_error_set(err, CM_E_INVALID, 0, "%s must be at most %llu bytes long",
				    a->setting->what, (unsigned long long)a->info->max);
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c < 0x20 || c == 0x7f)
			return cm_error_set(err, CM_E_INVALID, 0,
					    "%s must not have control characters",
					    a->setting->what);
	}
	return CM_OK;
}

int cm_apply_check_name(const struct cm_apply *a, const char *text, struct cm_error *err)
{
	int r = cm_apply_check_text(a, text, err);

	if (r != CM_OK || text[0] != '-')
		return r;
	cm_error_set(err, CM_E_INVALID, 0, "%s must not begin with a dash, as '%.100s' does",
		     a->setting->what, text);
	cm_error_hint(err, "an option that came without its value takes the next word for it");
	return CM_E_INVALID;
}

static int apply_bool(struct cm_apply *a, struct cm_error *err)
{
	bool *field = cm_key_field(a->info, a->spec);
	bool is_true = strcmp(a->setting->value, "true") == 0;

	if (!is_true && strcmp(a->setting->value, "false") != 0)
		return cm_error_set(err, CM_E_INVALID, 0, "%s must be true or false, not '%.100s'",
				    a->setting->what, a->setting->value);
	*field = is_true;
	/* the later of the two holds, also when a file said the one and a flag the other */
	if (is_true && a->info->key == CM_KEY_QUIET)
		a->spec->is_verbose = false;
	if (is_true && a->info->key == CM_KEY_VERBOSE)
		a->spec->is_quiet = false;
	return CM_OK;
}

static int apply_tri(struct cm_apply *a, struct cm_error *err)
{
	enum cm_tri *field = cm_key_field(a->info, a->spec);

	if (strcmp(a->setting->value, "true") == 0)
		*field = CM_YES;
	else if (strcmp(a->setting->value, "false") == 0)
		*field = CM_NO;
	else if (strcmp(a->setting->value, "auto") == 0)
		*field = CM_AUTO;
	else
		return cm_error_set(err, CM_E_INVALID, 0,
				    "%s must be true, false or auto, not '%.100s'",
				    a->setting->what, a->setting->value);
	return CM_OK;
}

static int parse_number(const struct cm_apply *a, const char *text, uint64_t *ret,
			struct cm_error *err)
{
	const struct cm_key_info *info = a->info;
	const char *what = a->setting->what;

	if (info->kind == CM_KIND_SIZE)
		return cm_parse_size(text, what, info->min, info->max, ret, err);
	if (info->kind == CM_KIND_DURATION)
		return cm_parse_duration(text, what, info->min, info->max, ret, err);
	if (info->kind == CM_KIND_MILLI)
		return cm_parse_milli(text, what, info->min, info->max, ret, err);
	return cm_parse_u64(text, what, info->min, info->max, ret, err);
}

/* The text without its '?'; NULL when out of memory. */
static char *take_optional(const char *text, bool *ret_is_optional)
{
	size_t len = strlen(text);
	char *copy = cm_strdup(text);

	*ret_is_optional = len > 0 && text[len - 1] == '?';
	if (copy && *ret_is_optional)
		copy[len - 1] = '\0';
	return copy;
}

/* No memory is asked for: cm_spec_init puts built-in values here and cannot fail. */
static int apply_limit(struct cm_apply *a, struct cm_error *err)
{
	struct cm_limit *field = cm_key_field(a->info, a->spec);
	struct cm_limit limit = { .value = CM_UNLIMITED, .is_set = true };
	const char *text = a->setting->value;
	size_t len = strlen(text);
	char number[MAX_NUMBER];
	bool is_none;
	int r = CM_OK;

	/* what is longer is no number, and the parser says so */
	if (len > 0 && len < sizeof(number) && text[len - 1] == '?') {
		memcpy(number, text, len - 1);
		number[len - 1] = '\0';
		text = number;
		limit.is_optional = true;
	}
	/* of a time people say rather that there is none */
	is_none = strcmp(text, "unlimited") == 0 ||
		  (a->info->kind == CM_KIND_DURATION && strcmp(text, "none") == 0);
	if (!is_none)
		r = parse_number(a, text, &limit.value, err);
	if (r != CM_OK) {
		cm_error_hint(err,
			      "for example %s, '%s?' to go on where it cannot be enforced, "
			      "or unlimited",
			      a->info->example, a->info->example);
		return r;
	}
	*field = limit;
	return CM_OK;
}

static int apply_cpuset(struct cm_apply *a, struct cm_error *err)
{
	bool is_optional;
	CM_AUTO_FREE char *text = take_optional(a->setting->value, &is_optional);
	CM_AUTO_BUF struct cm_buf canonical = { 0 };
	struct cm_cpuset set;
	int r;

	cm_buf_init(&canonical, a->info->max * 16);
	if (!text)
		return cm_apply_no_memory(err);
	r = cm_cpuset_parse(text, a->setting->what, &set, err);
	if (r != CM_OK) {
		cm_error_hint(err, "for example %s", a->info->example);
		return r;
	}
	cm_cpuset_format(&set, &canonical);
	r = cm_apply_store(a, cm_buf_take(&canonical), err);
	if (r == CM_OK)
		a->spec->limits.is_cpuset_optional = is_optional;
	return r;
}

/* Words that people try, and what to tell them. */
static const struct {
	enum cm_key key;
	const char *pattern;
	int code;
	const char *reason;
	const char *hint;
} refused_words[] = {
	{ CM_KEY_NETWORK, "allow", CM_E_UNSUPPORTED, "is not supported yet",
	  "there are --network none and --network host" },
	{ CM_KEY_NETWORK, "bridge", CM_E_UNSUPPORTED, "is not supported",
	  "there are --network none and --network host" },
	{ CM_KEY_MIN_LEVEL, "landlock", CM_E_UNSUPPORTED,
	  "is not supported: without namespaces there is no jail",
	  "use --min-level full or --min-level no-cgroup; 'casemate doctor' says what this host has" },
	{ CM_KEY_MIN_LEVEL, "none", CM_E_INVALID, "is not a level that can be asked for",
	  "use --min-level no-cgroup, the lowest there is" },
	{ CM_KEY_MIN_LEVEL, "*single-id*", CM_E_INVALID,
	  "is a qualifier: it describes a session and cannot be asked for",
	  "use --min-level full or --min-level no-cgroup" },
	{ CM_KEY_MIN_LEVEL, "*hostnet*", CM_E_INVALID,
	  "is a qualifier: it describes a session and cannot be asked for",
	  "use --network none to keep the host's network out" },
	{ CM_KEY_MIN_LEVEL, "*nested*", CM_E_INVALID,
	  "is a qualifier: it describes a session and cannot be asked for",
	  "use --min-level full or --min-level no-cgroup" },
	{ CM_KEY_FILTER, "tree:*", CM_E_UNSUPPORTED,
	  "is not supported: without its directories git asks the server for each of them",
	  "use --filter blob:none" },
	{ CM_KEY_USER, "0", CM_E_INVALID, "is not a word for a user", "use --user root" },
	{ CM_KEY_USER, "0:*", CM_E_INVALID, "is not a word for a user", "use --user root" },
	{ CM_KEY_USER, "1000*", CM_E_INVALID, "is not a word for a user",
	  "use --user user, which is uid 1000 in the jail" },
};

static int refuse_word(const struct cm_apply *a, struct cm_error *err)
{
	const char *value = a->setting->value;
	CM_AUTO_BUF struct cm_buf known = { 0 };
	int r;

	for (size_t i = 0; i < CM_ARRAY_SIZE(refused_words); i++) {
		if (refused_words[i].key != a->info->key ||
		    !cm_text_matches(refused_words[i].pattern, value))
			continue;
		r = cm_error_set(err, refused_words[i].code, 0, "%s '%.100s' %s", a->setting->what,
				 value, refused_words[i].reason);
		cm_error_hint(err, "%s", refused_words[i].hint);
		return r;
	}
	cm_buf_init(&known, 256);
	for (const struct cm_key_word *word = a->info->words; word->text; word++)
		cm_buf_printf(&known, "%s%s", word == a->info->words ? "" : " or ", word->text);
	r = cm_error_set(err, CM_E_INVALID, 0, "%s must be %s, not '%.100s'", a->setting->what,
			 known.data ? known.data : "?", value);
	cm_error_hint(err, "for example --%s %s", a->info->name, a->info->words[0].text);
	return r;
}

static int apply_word(struct cm_apply *a, struct cm_error *err)
{
	/* every enumeration of spec.h has the size of an int; the static assert holds that */
	unsigned int *field = cm_key_field(a->info, a->spec);

	_Static_assert(sizeof(enum cm_network) == sizeof(unsigned int) &&
			       sizeof(enum cm_user) == sizeof(unsigned int) &&
			       sizeof(enum cm_git_access) == sizeof(unsigned int) &&
			       sizeof(enum cm_level) == sizeof(unsigned int) &&
			       sizeof(enum cm_filter) == sizeof(unsigned int),
		       "enumerations of the spec are stored as unsigned int");
	for (const struct cm_key_word *word = a->info->words; word->text; word++) {
		if (strcmp(word->text, a->setting->value) == 0) {
			*field = word->value;
			return CM_OK;
		}
	}
	return refuse_word(a, err);
}

static int apply_name(struct cm_apply *a, struct cm_error *err)
{
	const char *value = a->setting->value;
	int r = cm_apply_check_name(a, value, err);

	if (r != CM_OK)
		return r;
	r = cm_apply_store(a, cm_strdup(value), err);
	if (r == CM_OK && a->info->key == CM_KEY_REF) {
		a->spec->pr = 0;
		cm_apply_forget(a, CM_KEY_PR);
	}
	return r;
}

static int apply_session(struct cm_apply *a, struct cm_error *err)
{
	int r = cm_session_id_check(a->setting->value, err);

	if (r != CM_OK)
		return r;
	return cm_apply_store(a, cm_strdup(a->setting->value), err);
}

static int apply_retention(struct cm_apply *a, struct cm_error *err)
{
	const char *value = a->setting->value;
	struct cm_retention retention;
	int r = cm_apply_check_text(a, value, err);

	if (r == CM_OK && strcmp(value, "none") == 0) {
		free(cm_ptr_take(&a->spec->retention));
		return CM_OK;
	}
	if (r == CM_OK)
		r = cm_retention_parse(value, a->setting->what, &retention, err);
	return r == CM_OK ? cm_apply_store(a, cm_strdup(value), err) : r;
}

static int apply_integer(struct cm_apply *a, struct cm_error *err)
{
	int *field = cm_key_field(a->info, a->spec);
	uint64_t value;
	int r = cm_parse_u64(a->setting->value, a->setting->what, a->info->min, a->info->max,
			     &value, err);

	if (r != CM_OK)
		return r;
	*field = (int)value;
	if (a->info->key == CM_KEY_PR) {
		free(cm_ptr_take(&a->spec->ref));
		cm_apply_forget(a, CM_KEY_REF);
	}
	return CM_OK;
}

static int append_item(struct cm_apply *a, const char *item, struct cm_error *err)
{
	struct cm_strv *field = cm_key_field(a->info, a->spec);

	if (field->n >= CM_SPEC_MAX_ITEMS)
		return cm_error_set(err, CM_E_LIMIT, 0, "%s: more than %d of them",
				    a->setting->what, CM_SPEC_MAX_ITEMS);
	if (cm_strv_add(field, item) != CM_OK)
		return cm_apply_no_memory(err);
	a->index = field->n - 1;
	return CM_OK;
}

/* As a shell completes a directory's name it ends with a slash. */
static int append_directory(struct cm_apply *a, struct cm_error *err)
{
	const char *value = a->setting->value;
	size_t len = strlen(value);
	CM_AUTO_FREE char *path =
		cm_asprintf("%.*s", (int)(len > 1 && value[len - 1] == '/' ? len - 1 : len), value);

	if (!path)
		return cm_apply_no_memory(err);
	if (a->spec->sparse.n >= SPARSE_MAX)
		return cm_error_set(err, CM_E_LIMIT, 0, "%s: more than %d of them",
				    a->setting->what, SPARSE_MAX);
	if (cm_submodule_is_path(path))
		return append_item(a, path, err);
	cm_error_set(err, CM_E_INVALID, 0, "%s takes a directory of the repository, not '%.100s'",
		     a->setting->what, value);
	cm_error_hint(err,
		      "name it from the repository's top, without '..': for example --sparse %s",
		      a->info->example);
	return CM_E_INVALID;
}

static int apply_list(struct cm_apply *a, struct cm_error *err)
{
	const char *value = a->setting->value;
	int r;

	if (a->info->key == CM_KEY_SPARSE)
		return append_directory(a, err);
	if (a->info->key == CM_KEY_PASS_ENV) {
		r = cm_apply_check_text(a, value, err);
		if (r == CM_OK && strchr(value, '=')) {
			r = cm_error_set(err, CM_E_INVALID, 0,
					 "%s takes patterns of names, not '%.100s'",
					 a->setting->what, value);
			cm_error_hint(err, "--env NAME=VALUE sets a variable");
		}
		if (r != CM_OK)
			return r;
	} else if (value[0] == '\0' || strlen(value) > a->info->max) {
		return cm_error_set(err, CM_E_INVALID, 0, "%s must be 1 to %llu bytes long",
				    a->setting->what, (unsigned long long)a->info->max);
	}
	return append_item(a, value, err);
}

/* The value may be a secret and is in no message. */
static int check_env_name(const struct cm_apply *a, size_t name_len, struct cm_error *err)
{
	const char *name = a->setting->value;
	int r;

	for (size_t i = 0; i < name_len; i++) {
		unsigned char c = (unsigned char)name[i];

		if (c <= 0x20 || c == 0x7f) {
			r = cm_error_set(err, CM_E_INVALID, 0,
					 "%s: a variable's name must not have blanks or control "
					 "characters",
					 a->setting->what);
			cm_error_hint(err, "write NAME=VALUE, with no blank before the '='");
			return r;
		}
	}
	if (name_len == 0) {
		r = cm_error_set(err, CM_E_INVALID, 0, "%s: a variable without a name",
				 a->setting->what);
		cm_error_hint(err, "write NAME=VALUE, or NAME to pass the caller's");
		return r;
	}
	return CM_OK;
}

/* "NAME=value" takes the place of what has the name. */
static int put_named(struct cm_apply *a, const char *value, size_t name_len, struct cm_error *err)
{
	struct cm_strv *field = cm_key_field(a->info, a->spec);

	for (size_t i = 0; i < field->n; i++) {
		char *copy;

		if (strncmp(field->v[i], value, name_len + 1) != 0)
			continue;
		copy = cm_strdup(value);
		if (!copy)
			return cm_apply_no_memory(err);
		free(field->v[i]);
		field->v[i] = copy;
		a->index = i;
		return CM_OK;
	}
	return append_item(a, value, err);
}

static int apply_env(struct cm_apply *a, struct cm_error *err)
{
	const char *value = a->setting->value;
	size_t name_len = strcspn(value, "=");
	CM_AUTO_FREE char *own = NULL;
	int r = check_env_name(a, name_len, err);

	if (r != CM_OK)
		return r;
	if (strlen(value) > a->info->max)
		return cm_error_set(err, CM_E_INVALID, 0, "%s: '%.100s' is longer than %llu bytes",
				    a->setting->what, value, (unsigned long long)a->info->max);
	if (value[name_len] != '=') {
		const char *callers = cm_strv_env_get(a->caller->env, value);

		/* as docker: what the caller does not have, the command does not get */
		if (!callers)
			return CM_OK;
		own = cm_asprintf("%s=%s", value, callers);
		if (!own)
			return cm_apply_no_memory(err);
		value = own;
	}
	return put_named(a, value, name_len, err);
}

static int apply_label(struct cm_apply *a, struct cm_error *err)
{
	const char *value = a->setting->value;
	size_t key_len = strcspn(value, "=");
	CM_AUTO_FREE char *key = NULL;
	int r = cm_label_check(value, a->setting->what, err);

	if (r == CM_OK)
		r = put_named(a, value, key_len, err);
	if (r != CM_OK || !a->setting->is_asked)
		return r;
	key = cm_asprintf("%.*s", (int)key_len, value);
	if (!key || cm_strv_env_set(&a->spec->labels_asked, key, value + key_len + 1) != CM_OK)
		return cm_apply_no_memory(err);
	return CM_OK;
}

/* Ours has one number; docker's soft and hard ones may be written when they are the same. */
static int apply_ulimit(struct cm_apply *a, struct cm_error *err)
{
	static const char prefix[] = "nofile=";
	const char *value = a->setting->value;
	struct cm_setting plain = *a->setting;
	struct cm_apply inner = *a;
	CM_AUTO_FREE char *number = NULL;
	char *colon;
	int r;

	if (!cm_text_has_prefix(value, prefix)) {
		r = cm_error_set(err, CM_E_UNSUPPORTED, 0, "%s '%.100s' is not supported",
				 a->setting->what, value);
		cm_error_hint(err, "--ulimit takes nofile=N; --pids-limit N limits processes, "
				   "--memory SIZE memory, and no core is ever written");
		return r;
	}
	number = cm_strdup(value + strlen(prefix));
	if (!number)
		return cm_apply_no_memory(err);
	colon = strchr(number, ':');
	if (colon) {
		*colon = '\0';
		if (strcmp(number, colon + 1) != 0)
			return cm_error_set(err, CM_E_UNSUPPORTED, 0,
					    "%s: soft and hard limit must be the same",
					    a->setting->what);
	}
	a->info = cm_key_info(CM_KEY_OPEN_FILES);
	plain.value = number;
	inner.setting = &plain;
	inner.info = a->info;
	return apply_limit(&inner, err);
}

/* The reading of files and the command itself are the business of who made the layer. */
static int apply_nothing(struct cm_apply *a, struct cm_error *err)
{
	(void)a;
	(void)err;
	return CM_OK;
}

static int (*const appliers[])(struct cm_apply *a, struct cm_error *err) = {
	[CM_KIND_BOOL] = apply_bool,	    [CM_KIND_TRI] = apply_tri,
	[CM_KIND_SIZE] = apply_limit,	    [CM_KIND_COUNT] = apply_limit,
	[CM_KIND_MILLI] = apply_limit,	    [CM_KIND_DURATION] = apply_limit,
	[CM_KIND_CPUSET] = apply_cpuset,    [CM_KIND_WORD] = apply_word,
	[CM_KIND_NAME] = apply_name,	    [CM_KIND_LIST] = apply_list,
	[CM_KIND_ENV] = apply_env,	    [CM_KIND_LABEL] = apply_label,
	[CM_KIND_VOLUME] = cm_apply_volume, [CM_KIND_WORKSPACE] = cm_apply_workspace,
	[CM_KIND_REPO] = cm_apply_repo,	    [CM_KIND_BRANCH] = cm_apply_branch,
	[CM_KIND_PATH] = cm_apply_path,	    [CM_KIND_ROOT] = cm_apply_root,
	[CM_KIND_SESSION] = apply_session,  [CM_KIND_RETENTION] = apply_retention,
	[CM_KIND_RESULT] = cm_apply_result, [CM_KIND_NUMBER] = apply_integer,
	[CM_KIND_MOUNT] = cm_apply_mount,   [CM_KIND_ULIMIT] = apply_ulimit,
	[CM_KIND_ENV_FILE] = apply_nothing, [CM_KIND_POLICY] = apply_nothing,
	[CM_KIND_PROFILE] = apply_nothing,  [CM_KIND_PROVIDER] = apply_nothing,
	[CM_KIND_SHELL] = apply_nothing,    [CM_KIND_CREDENTIAL] = apply_nothing,
	[CM_KIND_FILE] = apply_nothing,	    [CM_KIND_SWITCH] = apply_nothing,
	[CM_KIND_HELP] = apply_nothing,
};

static int set_origin(const struct cm_apply *a)
{
	struct cm_strv *of = &a->origins->of[a->info->key];
	char *copy;

	if (!(a->info->flags & CM_KEYF_LIST)) {
		cm_strv_clear(of);
		return cm_strv_add(of, cm_setting_origin(a->setting));
	}
	if (a->index == SIZE_MAX)
		return CM_OK;
	if (a->index == of->n)
		return cm_strv_add(of, cm_setting_origin(a->setting));
	copy = cm_strdup(cm_setting_origin(a->setting));
	if (!copy)
		return CM_E_NOMEM;
	free(of->v[a->index]);
	of->v[a->index] = copy;
	return CM_OK;
}

int cm_spec_apply(struct cm_spec *spec, struct cm_origins *origins,
		  const struct cm_setting *setting, const char *base,
		  const struct cm_caller *caller, size_t n_volumes_before, struct cm_error *err)
{
	struct cm_apply a = {
		.spec = spec,
		.origins = origins,
		.setting = setting,
		.info = cm_key_info(setting->key),
		.base = base ? base : (caller ? caller->cwd : NULL),
		.caller = caller,
		.n_volumes_before = n_volumes_before,
		.index = SIZE_MAX,
	};
	int r = appliers[a.info->kind](&a, err);

	if (r != CM_OK) {
		if (setting->place)
			cm_error_wrap(err, "%s", setting->place);
		return r;
	}
	/* of the key that is stored, which need not be the setting's */
	if (setting->is_asked)
		spec->asked |= UINT64_C(1) << a.info->key;
	if (origins && a.info->offset != SIZE_MAX && set_origin(&a) != CM_OK)
		return cm_apply_no_memory(err);
	return CM_OK;
}
