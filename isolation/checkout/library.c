/* SPDX-License-Identifier: Apache-2.0 */
/* libgit2's process-wide settings and the translation of its errors. */
#include "isolation/checkout/library.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/fd.h"

#define CAUSE_MAX 240

/*
 * Extensions of a source that change nothing for who only reads its objects and refs: the others
 * (objectformat, refstorage) stay unknown, so that libgit2 refuses what it would misread.
 */
static const char *harmless_extensions[] = {
	"worktreeconfig",
	"relativeworktrees",
	"preciousobjects",
	/* objects may be missing; what is then missing fails by name */
	"partialclone",
	/* later versions of the library know it, and would take a repository for what it is not */
	"!objectformat",
};

static int set_options(void)
{
	static const int levels[] = {
		GIT_CONFIG_LEVEL_SYSTEM,
		GIT_CONFIG_LEVEL_XDG,
		GIT_CONFIG_LEVEL_GLOBAL,
		GIT_CONFIG_LEVEL_PROGRAMDATA,
	};
	int r = 0;

	/*
	 * Nobody's configuration but the target's own may steer a checkout (insteadOf, autocrlf,
	 * attributes files, excludes).
	 */
	for (size_t i = 0; i < CM_ARRAY_SIZE(levels); i++)
		r |= git_libgit2_opts(GIT_OPT_SET_SEARCH_PATH, levels[i], "");
	r |= git_libgit2_opts(GIT_OPT_SET_TEMPLATE_PATH, "");
	/*
	 * The check protects from running with the configuration of somebody else's repository.
	 * Here the source usually is somebody else's (in the jail the user has another id), no
	 * value of its configuration is used, and libgit2 runs no program whatever it says.
	 */
	r |= git_libgit2_opts(GIT_OPT_SET_OWNER_VALIDATION, 0);
	r |= git_libgit2_opts(GIT_OPT_SET_EXTENSIONS, harmless_extensions,
			      CM_ARRAY_SIZE(harmless_extensions));
	/* the default, but objects.c rests on it */
	r |= git_libgit2_opts(GIT_OPT_ENABLE_STRICT_HASH_VERIFICATION, 1);
	/* one stat for each object that is looked up, for a file that only the writer of packs needs */
	r |= git_libgit2_opts(GIT_OPT_DISABLE_PACK_KEEP_FILE_CHECKS, 1);
	return r;
}

int cm_library_open(struct cm_error *err)
{
	if (git_libgit2_init() < 0)
		return cm_library_error(err, "cannot start libgit2");
	if (set_options() < 0) {
		int r = cm_library_error(err, "cannot configure libgit2");

		git_libgit2_shutdown();
		return r;
	}
	return CM_OK;
}

void cm_library_close(void)
{
	git_libgit2_shutdown();
}

static void add_hint(struct cm_error *err, int code)
{
	if (code == CM_E_LIMIT)
		cm_error_hint(err,
			      "free space or inodes on the file system of the target, or raise "
			      "the session's disk limit");
	else if (code == CM_E_DENIED)
		cm_error_hint(err, "make it accessible to the user who runs this");
	else if (code == CM_E_CHECKOUT)
		cm_error_hint(err, "check the source with 'git fsck'");
}

static int classify_errno(int sys_errno)
{
	switch (sys_errno) {
	case ENOSPC:
	case EDQUOT:
	/* guard.c lets no file grow beyond what is free */
	case EFBIG:
		return CM_E_LIMIT;
	case EACCES:
	case EPERM:
	case EROFS:
		return CM_E_DENIED;
	case ENOMEM:
		return CM_E_NOMEM;
	default:
		return CM_E_SYS;
	}
}

/*
 * libgit2 keeps no errno. Its OS errors end in strerror's text, and the locale is C (process.c),
 * so that is what there is to go by.
 */
static int classify(const git_error *e)
{
	static const int known[] = { ENOSPC, EDQUOT, EFBIG, EACCES, EPERM, EROFS, ENOMEM };

	if (!e)
		return CM_E_CHECKOUT;
	/* the second: of a delta that says how large what it makes is */
	if (e->klass == GIT_ERROR_NOMEMORY || strstr(e->message, "overly large object"))
		return CM_E_NOMEM;
	if (e->klass != GIT_ERROR_OS)
		return CM_E_CHECKOUT;
	for (size_t i = 0; i < CM_ARRAY_SIZE(known); i++) {
		const char *text = strerror(known[i]);
		size_t len = strlen(text);
		size_t msg_len = strlen(e->message);

		if (msg_len >= len && strcmp(e->message + msg_len - len, text) == 0)
			return classify_errno(known[i]);
	}
	return CM_E_CHECKOUT;
}

/* What the kernel said is at the end, and what is long is a path: of that the middle is left out. */
static void set_message(struct cm_error *err, int code, const char *what, const char *cause)
{
	size_t len = strlen(cause);

	if (len <= CAUSE_MAX)
		cm_error_set(err, code, 0, "%s: %s", what, cause);
	else
		cm_error_set(err, code, 0, "%s: %.*s...%s", what, CAUSE_MAX / 2, cause,
			     cause + len - CAUSE_MAX / 2);
}

int cm_library_error(struct cm_error *err, const char *fmt, ...)
{
	const git_error *e = git_error_last();
	int code = classify(e);
	char what[CM_ERROR_MSG_SIZE];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	set_message(err, code, what, e && e->message ? e->message : "unknown cause");
	add_hint(err, code);
	git_error_clear();
	return code;
}

int cm_library_sys_error(struct cm_error *err, int sys_errno, const char *fmt, ...)
{
	int code = classify_errno(sys_errno);
	va_list ap;

	va_start(ap, fmt);
	cm_error_vset(err, code, sys_errno, fmt, ap);
	va_end(ap);
	add_hint(err, code);
	return code;
}
