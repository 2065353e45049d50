/* SPDX-License-Identifier: Apache-2.0 */
/* Policy and configuration JSON -> layers. Pure. */
#ifndef CM_RUNTIME_SPEC_SPEC_JSON_H
#define CM_RUNTIME_SPEC_SPEC_JSON_H

#include <stddef.h>

#include "runtime/spec/layer.h"

/* What a file may hold beside keys. */
#define CM_FILE_PROFILES (1U << 0)
#define CM_FILE_CEILING (1U << 1)

struct cm_profile {
	char *name;
	struct cm_layer layer;
};

struct cm_file {
	struct cm_layer keys;
	struct cm_profile *profiles;
	size_t n_profiles;
	struct cm_layer ceiling;
};

/*
 * name is the file's, for messages; base an absolute directory that relative paths in it start
 * from. Every value is also checked, so that a wrong one is found where it stands and not when a
 * profile is first used. *ret is zeroed by the caller and cleared by cm_file_clear, also after an
 * error.
 */
int cm_file_parse(const char *text, size_t len, const char *name, const char *base,
		  unsigned int allowed, struct cm_file *ret, struct cm_error *err);
void cm_file_clear(struct cm_file *file);
#define CM_AUTO_FILE __attribute__((cleanup(cm_file_clear)))

/* An --env-file's text: NAME=VALUE or NAME a line, '#' comments. Adds CM_KEY_ENV settings. */
int cm_env_file_parse(const char *text, size_t len, const char *name, struct cm_layer *ret,
		      struct cm_error *err);

/* The JSON schema of a configuration file, made from the table of keys. */
void cm_schema_write(struct cm_buf *out);

#endif
