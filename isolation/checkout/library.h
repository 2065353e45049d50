/* SPDX-License-Identifier: Apache-2.0 */
/* libgit2: started with nothing of the host's configuration, its errors turned into ours. */
#ifndef CM_ISOLATION_CHECKOUT_LIBRARY_H
#define CM_ISOLATION_CHECKOUT_LIBRARY_H

#include <git2.h>
/* where 1.8 and later have git_error_clear */
#if __has_include(<git2/sys/errors.h>)
#include <git2/sys/errors.h>
#endif

#include "casemate/error.h"

#define CM_LIBRARY_AT_LEAST(major, minor)                                                          \
	(LIBGIT2_VER_MAJOR > (major) ||                                                            \
	 (LIBGIT2_VER_MAJOR == (major) && LIBGIT2_VER_MINOR >= (minor)))
/* git_fetch_options.depth */
#define CM_LIBRARY_HAS_DEPTH CM_LIBRARY_AT_LEAST(1, 7)

#define CM_OID_HEX_SIZE (GIT_OID_HEXSZ + 1)

/* Once, before any other call into libgit2. */
int cm_library_open(struct cm_error *err);
void cm_library_close(void);
/*
 * Fill *err from libgit2's last error: "<fmt>: <its message>". A full disk, a refused access and
 * lack of memory get codes and hints of their own; everything else is CM_E_CHECKOUT.
 */
int cm_library_error(struct cm_error *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The same classification for an errno that one of our own system calls gave. */
int cm_library_sys_error(struct cm_error *err, int sys_errno, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#define CM_DEFINE_AUTO_GIT(type)                                                                   \
	static inline void cm_auto_##type(type **p)                                                \
	{                                                                                          \
		type##_free(*p);                                                                   \
	}
CM_DEFINE_AUTO_GIT(git_repository)
CM_DEFINE_AUTO_GIT(git_reference)
CM_DEFINE_AUTO_GIT(git_reference_iterator)
CM_DEFINE_AUTO_GIT(git_object)
CM_DEFINE_AUTO_GIT(git_odb)
CM_DEFINE_AUTO_GIT(git_odb_object)
CM_DEFINE_AUTO_GIT(git_commit)
CM_DEFINE_AUTO_GIT(git_tree)
CM_DEFINE_AUTO_GIT(git_blob)
CM_DEFINE_AUTO_GIT(git_index)
CM_DEFINE_AUTO_GIT(git_config)
CM_DEFINE_AUTO_GIT(git_diff)

/* An owned libgit2 object that frees itself; initialise it to NULL at its declaration. */
#define CM_AUTO_GIT(type) __attribute__((cleanup(cm_auto_##type)))
#define CM_AUTO_GIT_BUF __attribute__((cleanup(git_buf_dispose)))

#endif
