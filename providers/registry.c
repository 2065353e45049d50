/* SPDX-License-Identifier: Apache-2.0 */
/* Tables by name. */
#include "providers/registry.h"

#include <string.h>

const struct cm_provider_ops *cm_provider_find(const char *name)
{
	const struct cm_provider_ops *const *table = cm_provider_tables;

	while (*table && strcmp((*table)->name, name) != 0)
		table++;
	return *table;
}
