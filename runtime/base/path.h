/* SPDX-License-Identifier: Apache-2.0 */
/* Paths: textual forms here, and the kernel-checked opening of one below a directory. */
#ifndef CM_RUNTIME_BASE_PATH_H
#define CM_RUNTIME_BASE_PATH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "casemate/error.h"

/* a + "/" + b without doubled slashes; b absolute replaces a. NULL when out of memory. */
char *cm_path_join(const char *a, const char *b);
/*
 * Lexically clean: no "//", "/.", trailing "/"; ".." resolved textually. Absolute paths only,
 * at most PATH_MAX. Caller frees. NULL (errno EINVAL, ENAMETOOLONG or ENOMEM) on failure.
 */
char *cm_path_clean(const char *path);
/* Is path equal to or below dir? Both clean and absolute; textual. */
bool cm_path_is_below(const char *path, const char *dir);
/* Last component of a clean path; borrowed. */
const char *cm_path_base(const char *path);
/* realpath(3) that also works for long paths; caller frees; NULL with errno. */
char *cm_path_real(const char *path);
/*
 * The nearest directory at or above dir, a clean path, with what git takes for a repository; dir when
 * there is none. A workspace begins there, and so does what a repository says of itself. Caller
 * frees; NULL: no memory.
 */
char *cm_path_git_top(const char *dir);
/*
 * Make a directory and its missing parents, each with mode. Existing ones are left as they are;
 * a symbolic link or a file in the way is an error. CM_OK or an error with the component.
 */
int cm_path_make_dirs(const char *path, mode_t mode, struct cm_error *err);
/*
 * Open a directory that must be ours: made with mode 0700 when absent (parents too), a real
 * directory, owned by this uid, not accessible to others (a looser mode is refused, not fixed).
 */
int cm_path_open_private_dir(const char *path, int *ret_fd, struct cm_error *err);

#endif
