/* SPDX-License-Identifier: Apache-2.0 */
/* Shared between the files of shell_files.h: scripts' pieces, errors, entries of lists. */
#ifndef CM_PROVIDERS_REMOTE_SHELL_FILES_INTERNAL_H
#define CM_PROVIDERS_REMOTE_SHELL_FILES_INTERNAL_H

#include "providers/remote/shell.h"
#include "providers/remote/shell_files.h"

/*
 * `why PATH`: returns if it is there, a link that leads nowhere too; else it says by which verdict it is
 * not. `dir PATH`: sets d to the directory that it is in.
 */
#define CM_SHELL_WHY                                                                               \
	CM_SHELL_FAIL                                                                              \
	"dir() { d=${1%\"${1##*[!/]}\"}; case $d in */*) d=${d%/*}; [ -n \"$d\" ] || d=/;; "       \
	"'') d=/;; *) d=.;; esac; }\n"                                                             \
	"why() {\n"                                                                                \
	"if [ -e \"$1\" ] || [ -L \"$1\" ]; then return 0; fi\n"                                   \
	"d=$1\n"                                                                                   \
	"while dir \"$d\"; do\n"                                                                   \
	"if [ -d \"$d\" ]; then [ -x \"$d\" ] || fail denied; fail not-found; fi\n"                \
	"if [ -e \"$d\" ]; then fail not-dir; fi\n"                                                \
	"if [ -L \"$d\" ]; then fail not-found; fi\n"                                              \
	"done; }\n" /* in directory $d; a disk that is full has less than a few blocks left */     \
	"blocks() { echo \"${4:-64}\"; }\n"                                                        \
	"full() { b=$(blocks $(df -Pk \"$d\" 2>/dev/null | tail -n 1)); "                          \
	"case $b in ''|*[!0-9]*) return 1;; esac; [ \"$b\" -lt 64 ]; }\n"

/*
 * `show FILE...`: for each eight NUL-terminated fields: type, mode, size, time, owner, group, target, and
 * the path without $p in front of it. GNU's find has the same by CM_SHELL_PRINTF. $follow: "-L" for what
 * a link leads to.
 */
#define CM_SHELL_SHOW                                                                              \
	"follow=\n"                                                                                \
	"show() { for f; do\n"                                                                     \
	"r=${f#\"$p\"} l=; [ -n \"$r\" ] || [ \"${deep:-}\" = self ] || continue\n"                \
	"if [ -L \"$f\" ] && [ -z \"$follow\" ]; then y=l; l=$(readlink -n \"$f\"; echo x); "      \
	"l=${l%x}\n"                                                                               \
	"elif [ -d \"$f\" ]; then y=d; elif [ -f \"$f\" ]; then y=f; else y=o; fi\n"               \
	"s=$(stat $follow -c '%a %s %Y %U %G' \"$f\" 2>/dev/null) || continue\n"                   \
	"set -- $s\n"                                                                              \
	"printf '%s\\0' \"$y\" \"$1\" \"$2\" \"$3\" \"$4\" \"$5\" \"$l\" \"$r\"\n"                 \
	"done; }\n"
#define CM_SHELL_PRINTF "'%y\\0%m\\0%s\\0%T@\\0%u\\0%g\\0%l\\0%P\\0'"
#define CM_SHELL_HAS_PRINTF "find . -maxdepth 0 -printf '' 2>/dev/null"
/*
 * `tree`: all below $p, which ends with a slash; with $deep 0 what is in it, and with "self" $p itself,
 * which then is a file.
 */
#define CM_SHELL_TREE                                                                              \
	CM_SHELL_SHOW                                                                              \
	"printf=0; if " CM_SHELL_HAS_PRINTF "; then printf=1; fi\n"                                \
	"tree() {\n"                                                                               \
	"if [ $printf = 1 ]; then\n"                                                               \
	"if [ \"$deep\" = 1 ]; then find \"$p\" -mindepth 1 -printf " CM_SHELL_PRINTF "\n"         \
	"elif [ \"$deep\" = self ]; then find \"$p\" -maxdepth 0 -printf " CM_SHELL_PRINTF "\n"    \
	"else find \"$p\" -mindepth 1 -maxdepth 1 -printf " CM_SHELL_PRINTF "; fi\n"               \
	"elif [ \"$deep\" = self ]; then show \"$p\"\n"                                            \
	"elif [ \"$deep\" = 1 ]; then\n"                                                           \
	"find \"$p\" ! -path \"$p\" -exec sh -c \"$each\" \"$p\" {} +\n"                           \
	"else for f in \"$p\"* \"$p\".[!.]* \"$p\"..?*; do\n"                                      \
	"if [ -e \"$f\" ] || [ -L \"$f\" ]; then show \"$f\"; fi; done; fi; }\n"
/* $each, for those that find calls */
#define CM_SHELL_EACH CM_SHELL_SHOW "p=$0; show \"$@\"\n"

/* A path that no program takes for an option; the caller frees. CM_E_INVALID: "", or it is too long. */
int cm_shell_path(const char *path, char **ret, struct cm_error *err);
/* The script has ended, not by 0. what: "read"; path: as it was asked for. */
int cm_shell_file_error(const struct cm_shell_end *end, const char *what, const char *path,
			struct cm_error *err);
/* The same of a move, whose verdicts on where it was to go begin with "to-". */
int cm_shell_move_error(const struct cm_shell_end *end, const char *from, const char *to,
			struct cm_error *err);
/* Runs it and judges its end; nothing is captured. */
int cm_shell_file_run(struct cm_session *s, const char *script, const char *const *args,
		      const char *what, const char *path, const struct cm_call *call,
		      struct cm_error *err);

/* Entries out of a stream of fields. */
#define CM_SHELL_ENTRY_MAX (32UL * 1024)
struct cm_shell_entries {
	/* one that has begun */
	struct cm_buf text;
	unsigned int n_fields;
	/* gets each; not 0 ends it. A first field of "." or "!" is a mark, and info is NULL. */
	int (*each)(void *data, const struct cm_path_info *info, char mark);
	void *data;
	/* what each returned; then the take returns -ECANCELED */
	int result;
};
void cm_shell_entries_init(struct cm_shell_entries *e,
			   int (*each)(void *data, const struct cm_path_info *info, char mark),
			   void *data);
void cm_shell_entries_clear(struct cm_shell_entries *e);
/* A cm_shell's take. -EBADMSG: these are no entries. */
int cm_shell_entries_take(void *data, const void *bytes, size_t len);
/* After the run: what came of it, r and why being the run's. */
int cm_shell_entries_end(const struct cm_shell_entries *e, int r, const struct cm_error *why,
			 const char *what, const char *path, struct cm_error *err);

/* The changes from one listing to the next (shell_watch_poll.c). */
struct cm_shell_snapshots;
int cm_shell_snapshots_new(int (*each)(void *data, const struct cm_watch_event *event), void *data,
			   struct cm_shell_snapshots **ret);
/* For struct cm_shell_entries; data is it. */
int cm_shell_snapshots_take(void *data, const struct cm_path_info *info, char mark);
void cm_shell_snapshots_free(struct cm_shell_snapshots *s);

#endif
