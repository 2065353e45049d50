/* SPDX-License-Identifier: Apache-2.0 */
/* Submodules as the checkout helper's report tells them. */
#ifndef CM_PROVIDERS_LOCAL_MODULE_LIST_H
#define CM_PROVIDERS_LOCAL_MODULE_LIST_H

#include <stddef.h>

#include "casemate/error.h"
#include "runtime/base/json.h"

struct cm_module {
	char *name;
	/* below its superproject */
	char *path;
	/* https or ssh, without a secret */
	char *url;
	/* 40 digits */
	char *commit;
};

struct cm_module_list {
	struct cm_module *v;
	size_t n;
};

/*
 * At most CM_SUBMODULES_MAX. The report comes from a jail: CM_E_PROTOCOL where there is anything in it
 * that the helper would not have told.
 */
int cm_module_list_read(const struct cm_json *array, struct cm_module_list *ret,
			struct cm_error *err);
void cm_module_list_clear(struct cm_module_list *list);

#endif
