/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of settings. */
#include "runtime/spec/layer.h"

#include <stdlib.h>

#include "runtime/base/alloc.h"

static void clear_setting(struct cm_setting *setting)
{
	/* an address with a password, a variable's value */
	cm_free_secret(&setting->value);
	free(setting->what);
	free(setting->place);
}

void cm_layer_clear(struct cm_layer *layer)
{
	for (size_t i = 0; i < layer->n; i++)
		clear_setting(&layer->settings[i]);
	free(layer->settings);
	free(layer->base);
	cm_strv_clear(&layer->argv);
	*layer = (struct cm_layer){ 0 };
}

/* Capacity is a power of two that follows from n, so that it need not be kept. */
static bool make_room(struct cm_layer *layer)
{
	struct cm_setting *grown;

	if (layer->n != 0 && (layer->n & (layer->n - 1)) != 0)
		return true;
	grown = cm_realloc(layer->settings, (layer->n ? layer->n * 2 : 1) * sizeof(*grown));
	if (!grown)
		return false;
	layer->settings = grown;
	return true;
}

int cm_layer_add(struct cm_layer *layer, enum cm_key key, const char *value, const char *what,
		 const char *place, struct cm_error *err)
{
	struct cm_setting setting = { .key = key };

	if (layer->n >= CM_LAYER_MAX)
		return cm_error_set(err, CM_E_LIMIT, 0, "more than %d settings", CM_LAYER_MAX);
	setting.value = cm_strdup(value);
	setting.what = cm_strdup(what);
	setting.place = cm_strdup(place);
	if (!setting.value || !setting.what || (place && !setting.place) || !make_room(layer)) {
		clear_setting(&setting);
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	}
	layer->settings[layer->n++] = setting;
	return CM_OK;
}

const struct cm_setting *cm_layer_find(const struct cm_layer *layer, enum cm_key key)
{
	for (size_t i = layer->n; i > 0; i--) {
		if (layer->settings[i - 1].key == key)
			return &layer->settings[i - 1];
	}
	return NULL;
}

const char *cm_setting_origin(const struct cm_setting *setting)
{
	return setting->place ? setting->place : setting->what;
}
