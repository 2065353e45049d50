/* SPDX-License-Identifier: Apache-2.0 */
/* Directories are made; files are moved and removed. */
#include "providers/remote/shell_files.h"

#include <stdio.h>

#include "providers/remote/shell_files_internal.h"
#include "runtime/base/fd.h"

/* $1 path, $2 "1" with the directories above, $3 mode, or "" */
static const char mkdir_script[] =
	CM_SHELL_WHY "if [ -e \"$1\" ] || [ -L \"$1\" ]; then\n"
		     "[ \"$2\" = 1 ] && [ -d \"$1\" ] || fail exists; exit 0; fi\n"
		     "dir \"$1\"\n"
		     "if [ \"$2\" = 0 ]; then\n"
		     "why \"$d\"; [ -d \"$d\" ] || fail not-dir\n"
		     "mkdir ${3:+-m \"$3\"} \"$1\" 2>/dev/null && exit 0\n"
		     "else mkdir -p ${3:+-m \"$3\"} \"$1\" 2>/dev/null && exit 0; fi\n"
		     /* what is in the way, the nearest to it */
		     "while [ ! -e \"$d\" ] && [ ! -L \"$d\" ]; do dir \"$d\"; done\n"
		     "[ -d \"$d\" ] || fail not-dir\n"
		     "if full; then fail no-space; fi\n"
		     "fail denied\n";

/*
 * $1 from, $2 to, $3 "1": not onto anything. rename(2)'s rules, which mv's are not. $side: "to-" for a
 * verdict on where it goes.
 */
static const char move_script[] = CM_SHELL_WHY
	"side=; fail() { printf '\\ncasemate-verdict %s%s\\n' \"$side\" \"$1\" >&2; exit 77; }\n"
	"why \"$1\"; side=to-\n"
	"to=${2%\"${2##*[!/]}\"}; [ -n \"$to\" ] || to=/\n"
	"case $2 in */) if [ ! -d \"$1\" ]; then\n"
	"[ ! -d \"$to\" ] || fail is-dir; fail no-dir; fi;; esac\n"
	"if [ -e \"$to\" ] || [ -L \"$to\" ]; then\n"
	"[ \"$3\" = 0 ] || fail exists\n"
	"[ \"$1\" != \"$to\" ] || exit 0\n"
	"if [ ! -L \"$1\" ] && [ ! -L \"$to\" ] && [ \"$1\" -ef \"$to\" ]; then exit 0; fi\n"
	"if [ -d \"$to\" ] && [ ! -L \"$to\" ]; then\n"
	"if [ -d \"$1\" ] && [ ! -L \"$1\" ]; then\n"
	"rmdir \"$to\" 2>/dev/null || fail not-empty\n"
	"else fail is-dir; fi\n"
	"else\n"
	"if [ -d \"$1\" ] && [ ! -L \"$1\" ]; then fail no-dir; fi\n"
	/* mv would go into a directory that a link leads to */
	"if [ -d \"$to\" ]; then rm -f \"$to\" 2>/dev/null || fail denied; fi\n"
	"fi\n"
	"else dir \"$to\"; why \"$d\"; [ -d \"$d\" ] || fail not-dir; fi\n"
	"mv -f \"$1\" \"$to\" && exit 0\n"
	"dir \"$to\"; [ -w \"$d\" ] || fail denied\n"
	"side=; if full; then fail no-space; fi\n"
	"dir \"$1\"; [ -w \"$d\" ] || fail denied\n"
	"exit 1\n";

/* $1 path, $2 "1" with what is below, $3 "1": what is not there is removed */
static const char remove_script[] = CM_SHELL_WHY
	"path=${1%\"${1##*[!/]}\"}\n"
	"case $path in ''|.|..|./.|./..|*/.|*/..) fail is-dir;; esac\n"
	"if [ ! -e \"$path\" ] && [ ! -L \"$path\" ] && [ \"$3\" = 1 ]; then exit 0; fi\n"
	"why \"$path\"\n"
	"if [ -d \"$path\" ] && [ ! -L \"$path\" ]; then\n"
	"[ \"$2\" = 1 ] || fail whole-dir\n"
	"rm -rf \"$path\" 2>/dev/null && exit 0\n"
	"else rm -f \"$path\" 2>/dev/null && exit 0; fi\n"
	"fail denied\n";

/* "": as usual. Permission bits alone. */
static void format_mode(uint32_t mode, char ret[16])
{
	ret[0] = '\0';
	if (mode != UINT32_MAX)
		(void)snprintf(ret, 16, "%04o", (unsigned int)(mode & 0777U));
}

int cm_shell_mkdir(struct cm_session *s, const char *path, uint32_t flags, uint32_t mode,
		   const struct cm_call *call, struct cm_error *err)
{
	CM_AUTO_FREE char *name = NULL;
	char bits[16];
	const char *args[] = { NULL, (flags & CM_MKDIR_PARENTS) != 0 ? "1" : "0", bits, NULL };
	int r = cm_shell_path(path, &name, err);

	if (r < 0)
		return r;
	args[0] = name;
	format_mode(mode, bits);
	return cm_shell_file_run(s, mkdir_script, args, "make directory", path, call, err);
}

int cm_shell_move(struct cm_session *s, const char *from, const char *to, uint32_t flags,
		  const struct cm_call *call, struct cm_error *err)
{
	CM_AUTO_FREE char *old_name = NULL;
	CM_AUTO_FREE char *new_name = NULL;
	const char *args[] = { NULL, NULL, (flags & CM_MOVE_NO_CLOBBER) != 0 ? "1" : "0", NULL };
	const struct cm_shell shell = { .session = s, .script = move_script, .args = args };
	struct cm_shell_end end;
	int r = cm_shell_path(from, &old_name, err);

	if (r == CM_OK)
		r = cm_shell_path(to, &new_name, err);
	if (r < 0)
		return r;
	args[0] = old_name;
	args[1] = new_name;
	r = cm_shell_run(&shell, call, &end, err);
	if (r == CM_OK && end.exit_code != 0)
		r = cm_shell_move_error(&end, from, to, err);
	cm_shell_end_clear(&end);
	return r;
}

int cm_shell_remove(struct cm_session *s, const char *path, uint32_t flags,
		    const struct cm_call *call, struct cm_error *err)
{
	CM_AUTO_FREE char *name = NULL;
	const char *args[] = { NULL, (flags & CM_REMOVE_RECURSIVE) != 0 ? "1" : "0",
			       (flags & CM_REMOVE_FORCE) != 0 ? "1" : "0", NULL };
	int r = cm_shell_path(path, &name, err);

	args[0] = name;
	return r < 0 ? r : cm_shell_file_run(s, remove_script, args, "remove", path, call, err);
}
