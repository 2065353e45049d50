/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of a file operation that failed. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "providers/local/files.h"

/* of a path in a message; the end of it says more than the beginning */
#define SHOWN_MAX 240U

static const char *step_text(enum cm_file_step step)
{
	switch (step) {
	case CM_FILE_STEP_OPEN:
		return "open";
	case CM_FILE_STEP_READ:
		return "read";
	case CM_FILE_STEP_WRITE:
		return "write";
	case CM_FILE_STEP_CREATE:
		return "make";
	case CM_FILE_STEP_MKDIR:
		return "make directory";
	case CM_FILE_STEP_REMOVE:
		return "remove";
	case CM_FILE_STEP_RENAME:
		return "move";
	case CM_FILE_STEP_STAT:
		return "look at";
	case CM_FILE_STEP_LIST:
		return "list";
	case CM_FILE_STEP_LINK:
		return "make link";
	case CM_FILE_STEP_ATTRIBUTES:
		return "set mode and times of";
	case CM_FILE_STEP_SYNC:
		return "sync";
	case CM_FILE_STEP_WATCH:
		return "watch";
	case CM_FILE_STEP_SPECIAL:
	case CM_FILE_STEP_LEADS_OUT:
	case CM_FILE_STEP_DEPTH:
	case CM_FILE_STEP_ITSELF:
	case CM_FILE_STEP_STREAM:
	case CM_FILE_STEP_REQUEST:
	case CM_FILE_STEP_COUNT_:
		break;
	}
	return "copy";
}

static int code_of(int error)
{
	switch (error) {
	case ENOENT:
	case ENOTDIR:
		return CM_E_NOT_FOUND;
	case EACCES:
	case EPERM:
	case EROFS:
		return CM_E_DENIED;
	case EEXIST:
	case ENOTEMPTY:
		return CM_E_EXISTS;
	case ENOSPC:
	case EDQUOT:
	case EFBIG:
	case EMFILE:
		return CM_E_LIMIT;
	case EISDIR:
	case ENAMETOOLONG:
	case EINVAL:
	case ELOOP:
		return CM_E_INVALID;
	case ENOMEM:
		return CM_E_NOMEM;
	default:
		return CM_E_SYS;
	}
}

static void hint_inside(struct cm_error *err, enum cm_file_step step, int error, const char *s)
{
	switch (error) {
	case ENOENT:
		if (step == CM_FILE_STEP_OPEN || step == CM_FILE_STEP_CREATE ||
		    step == CM_FILE_STEP_MKDIR)
			cm_error_hint(err,
				      "'casemate file ls %s DIR' lists what is there; 'mkdir -p' "
				      "makes a directory with those above it",
				      s);
		else
			cm_error_hint(err, "'casemate file ls %s DIR' lists what is there", s);
		return;
	case EACCES:
	case EPERM:
		cm_error_hint(err,
			      "what the session's user may not do is not done for you either: "
			      "'casemate file stat %s PATH' shows owner and mode",
			      s);
		return;
	case EROFS:
		cm_error_hint(
			err,
			"it is read-only in the session: the host's directories are, and .git "
			"is without --git rw; 'casemate inspect %s' shows what is writable",
			s);
		return;
	case ENOSPC:
	case EDQUOT:
		cm_error_hint(err,
			      "its disk, or its /tmp, is full: 'casemate df', and 'casemate "
			      "file ls %s -l DIR'",
			      s);
		return;
	case EXDEV:
		cm_error_hint(
			err,
			"these are two file systems: casemate cp %s:FROM %s:TO, and 'casemate "
			"file rm -r %s FROM' when that has worked",
			s, s, s);
		return;
	default:
		return;
	}
}

static void hint_here(struct cm_error *err, enum cm_file_step step, int error)
{
	switch (error) {
	case ENOENT:
		if (step == CM_FILE_STEP_CREATE)
			cm_error_hint(err, "make the directory that it goes into first");
		else
			cm_error_hint(err,
				      "what is copied into a session is looked for on this side; "
				      "out of one it is ID:PATH");
		return;
	case EACCES:
	case EPERM:
		if (step != CM_FILE_STEP_READ && step != CM_FILE_STEP_OPEN)
			cm_error_hint(err, "choose a place of your own");
		return;
	case ENOSPC:
	case EDQUOT:
		cm_error_hint(err, "make room on this disk, or choose another one");
		return;
	default:
		return;
	}
}

static void hint_anywhere(struct cm_error *err, enum cm_file_step step, int error)
{
	switch (error) {
	case EISDIR:
		if (step == CM_FILE_STEP_REMOVE)
			cm_error_hint(err, "'file rm -r' removes a directory with all in it");
		else
			cm_error_hint(err, "'casemate cp' copies directories, 'casemate file ls' "
					   "lists them");
		return;
	case ENOTDIR:
		cm_error_hint(err, "something before the last '/' is a file");
		return;
	case ENAMETOOLONG:
		cm_error_hint(err, "a name has at most 255 bytes, and a path 4095");
		return;
	case EINVAL:
		if (step == CM_FILE_STEP_REMOVE)
			cm_error_hint(err, "name a file or directory: '.', '..' and '/' stay");
		return;
	case EEXIST:
		cm_error_hint(err, "remove it first, or choose another name");
		return;
	case ELOOP:
		cm_error_hint(err,
			      "it is a symbolic link, which is not followed here: name what it "
			      "leads to");
		return;
	case EMFILE:
		cm_error_hint(err,
			      "each directory on the way takes an open file: raise 'ulimit -n', "
			      "or --open-files of the session");
		return;
	default:
		return;
	}
}

static int set_special(struct cm_error *err, enum cm_file_step step, const char *shown)
{
	int r = CM_E_UNSUPPORTED;

	if (step == CM_FILE_STEP_SPECIAL) {
		(void)cm_error_set(err, r, 0, "'%s' is left out: a device, FIFO or socket", shown);
		cm_error_hint(err, "files, directories and symbolic links are copied");
	} else if (step == CM_FILE_STEP_LEADS_OUT) {
		(void)cm_error_set(err, r, 0,
				   "link '%s' is left out: it leads out of what is copied", shown);
		cm_error_hint(err, "--all-links makes such links, too, as they are");
	} else if (step == CM_FILE_STEP_DEPTH) {
		r = cm_error_set(err, CM_E_LIMIT, 0,
				 "'%s' is left out: nested in more than %u directories", shown,
				 CM_FILE_DEPTH_MAX);
		cm_error_hint(err, "'casemate exec' with tar reaches it");
	} else if (step == CM_FILE_STEP_ITSELF) {
		r = cm_error_set(err, CM_E_INVALID, 0,
				 "'%s' is left out: it is where the tree is copied to", shown);
		cm_error_hint(err, "copy to somewhere outside of it");
	} else if (step == CM_FILE_STEP_STREAM) {
		r = cm_error_set(err, CM_E_PROTOCOL, 0, "cannot understand what is copied to '%s'",
				 shown);
	} else {
		(void)cm_error_set(err, r, 0,
				   "the session's casemate does not know this operation");
		cm_error_hint(err, "start the session again: it has the build that it was started "
				   "with");
	}
	return r;
}

static bool is_special(enum cm_file_step step)
{
	return step == CM_FILE_STEP_SPECIAL || step == CM_FILE_STEP_LEADS_OUT ||
	       step == CM_FILE_STEP_DEPTH || step == CM_FILE_STEP_STREAM ||
	       step == CM_FILE_STEP_REQUEST || step == CM_FILE_STEP_ITSELF;
}

int cm_files_error(struct cm_error *err, enum cm_file_step step, int error, const char *path,
		   uint64_t written, const char *session)
{
	size_t len = strlen(path);
	const char *dots = len > SHOWN_MAX ? "..." : "";
	const char *shown = len > SHOWN_MAX ? path + len - SHOWN_MAX : path;
	int code = code_of(error);

	if (is_special(step))
		return set_special(err, step, shown);
	if (session && written > 0)
		(void)cm_error_set(err, code, error,
				   "cannot %s '%s%s' in session '%s' (%" PRIu64
				   " bytes were written)",
				   step_text(step), dots, shown, session, written);
	else if (session)
		(void)cm_error_set(err, code, error, "cannot %s '%s%s' in session '%s'",
				   step_text(step), dots, shown, session);
	else
		(void)cm_error_set(err, code, error, "cannot %s '%s%s'", step_text(step), dots,
				   shown);
	hint_anywhere(err, step, error);
	if (session)
		hint_inside(err, step, error, session);
	else
		hint_here(err, step, error);
	return code;
}
