/* SPDX-License-Identifier: Apache-2.0 */
/* Submodules: what becomes of each, said in notes. */
#ifndef CM_ISOLATION_CHECKOUT_MODULES_H
#define CM_ISOLATION_CHECKOUT_MODULES_H

#include "casemate/error.h"
#include "isolation/checkout/report.h"

/* May an address be fetched for a submodule, once submodules are fetched? */
enum cm_module_url {
	/* https or ssh */
	CM_MODULE_URL_ALLOWED,
	/* a path, file: or git: or http: or an unknown scheme, or one that hides an option */
	CM_MODULE_URL_REFUSED,
};
enum cm_module_url cm_module_url_check(const char *url);

/* Count the submodules in index and note for each why its directory is empty. */
int cm_modules_note(git_repository *repo, git_index *index, struct cm_report *rep,
		    struct cm_error *err);

#endif
