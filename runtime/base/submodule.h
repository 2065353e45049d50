/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a repository says of its submodules, all of it chosen by its author: which names, places and
 * addresses are taken. Asked where it is read, and again by who acts on what was read.
 */
#ifndef CM_RUNTIME_BASE_SUBMODULE_H
#define CM_RUNTIME_BASE_SUBMODULE_H

#include <stdbool.h>

#include "casemate/error.h"
#include "runtime/base/giturl.h"

/* of a checkout, those of submodules included; submodules in submodules; bytes */
#define CM_SUBMODULES_MAX 64
#define CM_SUBMODULE_DEPTH_MAX 4
#define CM_SUBMODULE_PATH_MAX 1024

/*
 * May it be a submodule's place below a work tree? Relative, and no component of it is empty, ".",
 * ".." or ".git"; no option; UTF-8 without a backslash or a control character.
 */
bool cm_submodule_is_path(const char *path);
/* The same of the name by which its git directory is found; no quote either. */
bool cm_submodule_is_name(const char *name);
/*
 * Where it is fetched from: url as .gitmodules has it, "./" and "../" beginning at base, the address
 * of the repository that has it in its tree. https and ssh alone are taken; CM_E_INVALID, without
 * the text, which may hold a password. *ret is the caller's to clear.
 */
int cm_submodule_url(const char *base, const char *url, struct cm_giturl *ret,
		     struct cm_error *err);

#endif
