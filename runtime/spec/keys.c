/* SPDX-License-Identifier: Apache-2.0 */
/* The table of keys and its look-ups. */
#include "runtime/spec/keys.h"

#include <string.h>

#include "runtime/base/fd.h"
#include "runtime/base/text.h"

/* Farther than this is another word and no slip. */
#define MAX_DISTANCE 3

static const struct cm_key_word cm_words_network[] = {
	{ "none", CM_NETWORK_NONE },
	{ "host", CM_NETWORK_HOST },
	{ "internet", CM_NETWORK_INTERNET },
	{ NULL, 0 },
};

static const struct cm_key_word cm_words_filter[] = {
	{ "blob:none", CM_FILTER_BLOB_NONE },
	{ "none", CM_FILTER_NONE },
	{ NULL, 0 },
};

static const struct cm_key_word cm_words_user[] = {
	{ "user", CM_USER_USER },
	{ "root", CM_USER_ROOT },
	{ NULL, 0 },
};

static const struct cm_key_word cm_words_git[] = {
	{ "pinned", CM_GIT_PINNED },
	{ "rw", CM_GIT_RW },
	{ NULL, 0 },
};

static const struct cm_key_word cm_words_min_level[] = {
	{ "full", CM_LEVEL_FULL },
	{ "no-cgroup", CM_LEVEL_NO_CGROUP },
	{ NULL, 0 },
};

static const struct cm_key_info keys[] = {
#define CM_KEY(id, kind_, field, name_, letter_, aliases_, json_, metavar_, min_, max_, fallback_, \
	       words_, flags_, group_, example_, help_)                                            \
	[CM_KEY_##id] = { .key = CM_KEY_##id,                                                      \
			  .kind = CM_KIND_##kind_,                                                 \
			  .name = name_,                                                           \
			  .letter = letter_,                                                       \
			  .aliases = aliases_,                                                     \
			  .json = json_,                                                           \
			  .metavar = metavar_,                                                     \
			  .min = min_,                                                             \
			  .max = max_,                                                             \
			  .fallback = fallback_,                                                   \
			  .words = words_,                                                         \
			  .flags = flags_,                                                         \
			  .group = CM_GROUP_##group_,                                              \
			  .example = example_,                                                     \
			  .help = help_,                                                           \
			  .offset = offsetof(struct cm_spec, field) },
#define CM_KEY_OPTION(id, kind_, name_, letter_, aliases_, json_, metavar_, min_, max_, fallback_, \
		      words_, flags_, group_, example_, help_)                                     \
	[CM_KEY_##id] = { .key = CM_KEY_##id,                                                      \
			  .kind = CM_KIND_##kind_,                                                 \
			  .name = name_,                                                           \
			  .letter = letter_,                                                       \
			  .aliases = aliases_,                                                     \
			  .json = json_,                                                           \
			  .metavar = metavar_,                                                     \
			  .min = min_,                                                             \
			  .max = max_,                                                             \
			  .fallback = fallback_,                                                   \
			  .words = words_,                                                         \
			  .flags = flags_,                                                         \
			  .group = CM_GROUP_##group_,                                              \
			  .example = example_,                                                     \
			  .help = help_,                                                           \
			  .offset = SIZE_MAX },
#include "runtime/spec/keys.def"
#undef CM_KEY
#undef CM_KEY_OPTION
};

const struct cm_key_info *cm_key_info(enum cm_key key)
{
	return &keys[key];
}

static bool is_same(const char *word, size_t word_len, const char *name, size_t len)
{
	return word_len == len && memcmp(word, name, len) == 0;
}

/* Is name one of the words of a list separated by spaces? */
static bool is_listed(const char *list, const char *name, size_t len)
{
	const char *word = list;

	while (*word != '\0') {
		size_t word_len = strcspn(word, " ");

		if (is_same(word, word_len, name, len))
			return true;
		word += word_len;
		word += strspn(word, " ");
	}
	return false;
}

const struct cm_key_info *cm_key_by_flag(const char *name, size_t len)
{
	for (size_t i = 0; i < CM_ARRAY_SIZE(keys); i++) {
		if (is_same(keys[i].name, strlen(keys[i].name), name, len) ||
		    is_listed(keys[i].aliases, name, len))
			return &keys[i];
	}
	return NULL;
}

const struct cm_key_info *cm_key_by_letter(char letter)
{
	for (size_t i = 0; i < CM_ARRAY_SIZE(keys); i++) {
		if (keys[i].letter != '\0' && keys[i].letter == letter)
			return &keys[i];
	}
	return NULL;
}

const struct cm_key_info *cm_key_by_json(const char *name)
{
	for (size_t i = 0; i < CM_ARRAY_SIZE(keys); i++) {
		if (keys[i].json && strcmp(keys[i].json, name) == 0)
			return &keys[i];
	}
	return NULL;
}

/* Half of a short word wrong is another word: "--rm" is not meant to be "--ref". */
static unsigned int distance_allowed(const char *name)
{
	size_t len = strlen(name);

	if (len < 4)
		return 1;
	return len < 8 ? 2 : MAX_DISTANCE;
}

static const char *nearest(const char *name, bool is_json)
{
	unsigned int best = distance_allowed(name) + 1;
	const char *found = NULL;

	for (size_t i = 0; i < CM_ARRAY_SIZE(keys); i++) {
		const char *candidate = is_json ? keys[i].json : keys[i].name;
		unsigned int distance;

		if (!candidate)
			continue;
		distance = cm_text_distance(name, candidate, best);
		if (distance < best) {
			best = distance;
			found = candidate;
		}
	}
	return found;
}

const char *cm_key_nearest_flag(const char *name)
{
	return nearest(name, false);
}

const char *cm_key_nearest_json(const char *name)
{
	return nearest(name, true);
}

bool cm_key_is_asked(enum cm_key key, const struct cm_spec *spec)
{
	_Static_assert(CM_KEY_COUNT <= 64, "a bit a key");
	return (spec->asked >> key & 1) != 0;
}

bool cm_key_is_switch(const struct cm_key_info *info)
{
	return info->kind == CM_KIND_BOOL || info->kind == CM_KIND_TRI ||
	       info->kind == CM_KIND_SWITCH || info->kind == CM_KIND_HELP;
}

bool cm_key_is_map(const struct cm_key_info *info)
{
	return info->kind == CM_KIND_ENV || info->kind == CM_KIND_LABEL;
}

bool cm_key_is_limit(const struct cm_key_info *info)
{
	return info->kind == CM_KIND_SIZE || info->kind == CM_KIND_COUNT ||
	       info->kind == CM_KIND_MILLI || info->kind == CM_KIND_DURATION;
}

const char *cm_key_group_title(enum cm_key_group group)
{
	static const char *const titles[CM_GROUP_COUNT] = {
		[CM_GROUP_WORKSPACE] = "Session and workspace",
		[CM_GROUP_ENVIRONMENT] = "Environment",
		[CM_GROUP_LIMITS] = "Limits ('4G?': where it can be enforced; 'unlimited': none)",
		[CM_GROUP_ISOLATION] = "Isolation",
		[CM_GROUP_TERMINAL] = "Terminal",
		[CM_GROUP_OUTPUT] = "Output",
		[CM_GROUP_CONFIGURATION] = "Command and configuration",
	};

	return titles[group];
}

void *cm_key_field(const struct cm_key_info *info, struct cm_spec *spec)
{
	return (char *)spec + info->offset;
}

const void *cm_key_field_const(const struct cm_key_info *info, const struct cm_spec *spec)
{
	return (const char *)spec + info->offset;
}

const char *cm_key_word_text(const struct cm_key_info *info, unsigned int value)
{
	for (const struct cm_key_word *word = info->words; word && word->text; word++) {
		if (word->value == value)
			return word->text;
	}
	return "?";
}
