/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A layer: the settings of one source (the flags, a file, a profile, the environment), as text.
 *
 * Every source is first turned into settings, so that one function a kind (apply.c) reads values,
 * whoever wrote them, and every value knows where it was written.
 */
#ifndef CM_RUNTIME_SPEC_LAYER_H
#define CM_RUNTIME_SPEC_LAYER_H

#include "runtime/base/buf.h"
#include "runtime/spec/keys.h"

/* More settings than this in one layer are refused; keeps a hostile file's work bounded. */
#define CM_LAYER_MAX 16384

struct cm_setting {
	enum cm_key key;
	/* "true", "4G?", "CI=1", ...; switches have "true", "false" or "auto" */
	char *value;
	/* how a message names it: "--memory", "'memory'", "CASEMATE_ROOT" */
	char *what;
	/* "FILE:LINE", or NULL for flags and the environment */
	char *place;
	/* see asked in spec.h; set by who merges the layer */
	bool is_asked;
};

struct cm_layer {
	struct cm_setting *settings;
	size_t n;
	/* absolute directory that relative paths start from; NULL: there is none */
	char *base;
	/* flags only: the command */
	struct cm_strv argv;
};

void cm_layer_clear(struct cm_layer *layer);
/* Copies its strings. place may be NULL. CM_OK, CM_E_NOMEM or CM_E_LIMIT. */
int cm_layer_add(struct cm_layer *layer, enum cm_key key, const char *value, const char *what,
		 const char *place, struct cm_error *err);
/* The last setting of a key, or NULL. */
const struct cm_setting *cm_layer_find(const struct cm_layer *layer, enum cm_key key);
/* Where it was written, for `config show --origin`: its place, or what a message calls it. */
const char *cm_setting_origin(const struct cm_setting *setting);
#define CM_AUTO_LAYER __attribute__((cleanup(cm_layer_clear)))

#endif
