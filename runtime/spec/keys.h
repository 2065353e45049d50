/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of a spec: what keys.def says, as data, with look-ups by flag, letter and JSON name.
 */
#ifndef CM_RUNTIME_SPEC_KEYS_H
#define CM_RUNTIME_SPEC_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "casemate/error.h"
#include "runtime/spec/spec.h"

/* How a key's text becomes a value; apply.c has one function for each that stores something. */
enum cm_key_kind {
	CM_KIND_BOOL = 1,
	CM_KIND_TRI,
	/* limits: each also takes "unlimited", and a trailing '?' for optional */
	CM_KIND_SIZE,
	CM_KIND_COUNT,
	CM_KIND_MILLI,
	CM_KIND_DURATION,
	CM_KIND_CPUSET,
	CM_KIND_WORD,
	CM_KIND_NAME,
	CM_KIND_LIST,
	CM_KIND_ENV,
	CM_KIND_LABEL,
	CM_KIND_VOLUME,
	CM_KIND_WORKSPACE,
	CM_KIND_REPO,
	CM_KIND_BRANCH,
	/* a path of the host, made absolute */
	CM_KIND_PATH,
	/* a path of the host that must be absolute already (after '~') */
	CM_KIND_ROOT,
	CM_KIND_SESSION,
	/* retention.h; in JSON an object, too */
	CM_KIND_RETENTION,
	CM_KIND_RESULT,
	CM_KIND_NUMBER,
	/* other spellings of a key, and options that configure the reading itself */
	CM_KIND_MOUNT,
	CM_KIND_ULIMIT,
	CM_KIND_ENV_FILE,
	CM_KIND_POLICY,
	CM_KIND_PROFILE,
	CM_KIND_PROVIDER,
	CM_KIND_SHELL,
	CM_KIND_CREDENTIAL,
	/* a path that whoever made the layer reads; one that is there or not */
	CM_KIND_FILE,
	CM_KIND_SWITCH,
	CM_KIND_HELP,
};

enum cm_key_group {
	CM_GROUP_WORKSPACE = 0,
	CM_GROUP_ENVIRONMENT,
	CM_GROUP_LIMITS,
	CM_GROUP_ISOLATION,
	CM_GROUP_TERMINAL,
	CM_GROUP_OUTPUT,
	CM_GROUP_CONFIGURATION,
	CM_GROUP_COUNT,
};

/* may come from a configuration file or a policy */
#define CM_KEYF_FILE (1U << 0)
/* may stand in a ceiling, where it only tightens */
#define CM_KEYF_CEILING (1U << 1)
/* --no-NAME exists too */
#define CM_KEYF_NO (1U << 2)
/* values add up, within a layer and over the layers */
#define CM_KEYF_LIST (1U << 3)

enum cm_key {
#define CM_KEY(id, ...) CM_KEY_##id,
#define CM_KEY_OPTION(id, ...) CM_KEY_##id,
#include "runtime/spec/keys.def"
#undef CM_KEY
#undef CM_KEY_OPTION
	CM_KEY_COUNT,
};

struct cm_key_word {
	const char *text;
	unsigned int value;
};

struct cm_key_info {
	enum cm_key key;
	enum cm_key_kind kind;
	/* long flag without the dashes */
	const char *name;
	/* '\0': none */
	char letter;
	/* other long flags, separated by a space */
	const char *aliases;
	/* name in JSON; NULL: not for files */
	const char *json;
	const char *metavar;
	/* numbers: the bounds; texts: the bounds of the length in bytes */
	uint64_t min;
	uint64_t max;
	/* built-in value as text, or NULL */
	const char *fallback;
	/* CM_KIND_WORD: what may be said, ended by a NULL text */
	const struct cm_key_word *words;
	/* CM_KEYF_* */
	unsigned int flags;
	enum cm_key_group group;
	/* a value that is right, for hints and the schema */
	const char *example;
	const char *help;
	/* of the field in struct cm_spec; SIZE_MAX: the option has none of its own */
	size_t offset;
};

const struct cm_key_info *cm_key_info(enum cm_key key);
/* Is it what the command line asks for? See struct cm_spec. */
bool cm_key_is_asked(enum cm_key key, const struct cm_spec *spec);
/* NULL when there is none. name is not terminated: len bytes. */
const struct cm_key_info *cm_key_by_flag(const char *name, size_t len);
const struct cm_key_info *cm_key_by_letter(char letter);
const struct cm_key_info *cm_key_by_json(const char *name);
/* The long flag or JSON name that was probably meant, or NULL. */
const char *cm_key_nearest_flag(const char *name);
const char *cm_key_nearest_json(const char *name);
/* Does the option stand alone, without a value? */
bool cm_key_is_switch(const struct cm_key_info *info);
/* Is its value a vector of "NAME=VALUE", in JSON an object of strings? */
bool cm_key_is_map(const struct cm_key_info *info);
bool cm_key_is_limit(const struct cm_key_info *info);
const char *cm_key_group_title(enum cm_key_group group);
/* The key's field; info->offset must not be SIZE_MAX. */
void *cm_key_field(const struct cm_key_info *info, struct cm_spec *spec);
const void *cm_key_field_const(const struct cm_key_info *info, const struct cm_spec *spec);
/* "none" for 1 of the network's words; "?" for a value that has no word. */
const char *cm_key_word_text(const struct cm_key_info *info, unsigned int value);

#endif
