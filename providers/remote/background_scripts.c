/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scripts that run in the session.
 *
 * The supervisor is made by two setsids in a row, the second of which forks because it leads a group
 * already: a shell's "&" would have everything below it ignore SIGINT for ever. For the same reason it
 * runs the command in the foreground, and what has to happen meanwhile is done by children that are
 * killed afterwards.
 *
 * Output goes through tee, under a limit of the size of a file: it fails there, goes on to count, and
 * the command sees nothing of it. (head and dd would hold back what they were given.) Whoever inherits
 * the command's output may go on for as long as it likes: the end waits for it for a second.
 */
#include "providers/remote/background_internal.h"

#define MS                                                                                         \
	"ms() { now=$(date +%s%3N); case $now in *[!0-9]*) now=$(date +%s)000;; esac; "            \
	"printf '%s' \"$now\"; }\n"

/*
 * The start time of process $1: field 22 of its stat, whose second one may have any byte. One that is a
 * zombie, because nobody reaps in there, has none.
 */
#define BORN                                                                                       \
	"field() { case $1 in Z|X) return;; esac; shift 19; printf '%s' \"$1\"; }\n"               \
	"born() { l=; read -r l 2>/dev/null <\"/proc/$1/stat\" && field ${l##*) }; }\n"

/* Of directory $d. A number that is another process's by now has another start time. */
#define ALIVE                                                                                      \
	BORN "alive() {\n"                                                                         \
	     "p= s=; [ -r \"$d/supervisor\" ] || return 1\n"                                       \
	     "read -r p s <\"$d/supervisor\"; case $p in ''|*[!0-9]*) return 1;; esac\n"           \
	     "kill -0 \"$p\" 2>/dev/null || return 1\n"                                            \
	     "[ -z \"$s\" ] || [ \"$(born \"$p\")\" = \"$s\" ]\n"                                  \
	     "}\n"

#define BASE                                                                                       \
	"base=${HOME:-}; case $base in /*) ;; *) fail no-home;; esac\n"                            \
	"base=$base/.casemate/exec\n"

/* The directory of command $1. A start that was interrupted has no time of it. */
#define ENTRY BASE "d=$base/$1; [ -s \"$d/started\" ] || fail not-found\n"

/*
 * A fifo's one end without waiting for the other one to be opened: as long as one has both, there is
 * one. Whoever reads it then has its end when the others are gone, though they were gone before.
 */
#define OPEN(name, how) "6<>\"$d/" name "\" " how "\"$d/" name "\" 6>&-"

/* Of directory $d: kind, code, ended, started, pid. */
#define STATE                                                                                      \
	"state() {\n"                                                                              \
	"kind= code=0 ended=0 started=0 pid=0\n"                                                   \
	"read -r started <\"$d/started\"\n"                                                        \
	"[ ! -r \"$d/pid\" ] || read -r pid <\"$d/pid\"\n"                                         \
	"if [ ! -e \"$d/end\" ]; then\n"                                                           \
	"if alive; then kind=running; return; fi\n"                                                \
	"if [ ! -e \"$d/end\" ]; then kind=lost; return; fi\n"                                     \
	"fi\n"                                                                                     \
	"read -r kind code ended <\"$d/end\"\n"                                                    \
	"}\n"

/*
 * $1 supervisor, $2 runner, $3 timer, $4 and $5 the timeout ("1.500", "2"; "0": none), $6 and $7 the grace,
 * $8 blocks and $9 bytes of output, then 1 with an input, then the command. Prints number and pid.
 */
const char cm_background_start_script[] = CM_SHELL_FAIL BASE MS
	"for p in setsid mkfifo tee; do command -v \"$p\" >/dev/null 2>&1 || fail \"no-$p\"; done\n"
	"sup=$1 run=$2 timer=$3 t=$4 ts=$5 g=$6 gs=$7 blocks=$8 cap=$9; shift 9; in=$1; shift\n"
	"old=$(umask); umask 077\n"
	"mkdir -p \"$base\" 2>/dev/null || fail denied\n"
	"n=0; [ ! -r \"$base/last\" ] || read -r n <\"$base/last\"\n"
	"case $n in ''|*[!0-9]*|0?*|??????????*) n=0;; esac\n"
	"while n=$((n + 1)); ! mkdir \"$base/$n\" 2>/dev/null; do\n"
	"[ -d \"$base/$n\" ] || fail denied\n"
	"done\n"
	"printf '%s\\n' \"$n\" >\"$base/last.$$\" && mv -f \"$base/last.$$\" \"$base/last\"\n"
	"d=$base/$n\n"
	"w=$(pwd; echo x); printf '%s' \"${w%?x}\" >\"$d/cwd\" || fail denied\n"
	"printf '%s\\0' \"$@\" >\"$d/cmd\" || fail denied\n"
	": >\"$d/stdout\"; : >\"$d/stderr\"\n"
	"mkfifo \"$d/alive\" \"$d/.out\" \"$d/.err\" || fail no-fifo\n"
	"[ \"$in\" = 0 ] || mkfifo \"$d/input\" \"$d/.eof\" || fail no-fifo\n"
	/* the last thing, and all at once: what has it is complete */
	"{ ms && echo; } >\"$d/started.new\" && mv -f \"$d/started.new\" \"$d/started\" || "
	"fail denied\n"
	"setsid setsid sh -c \"$sup\" casemate-exec \"$d\" \"$old\" \"$run\" \"$timer\" \"$t\" "
	"\"$ts\" \"$g\" \"$gs\" \"$blocks\" \"$cap\" \"$in\" \"$@\" </dev/null 2>/dev/null |\n"
	"{ read -r pid || fail no-start; printf '%s\\n%s\\n' \"$n\" \"$pid\"; }\n";

/* $1 its directory, $2 the umask, $3 runner, $4 timer, $5 to $8 times, $9 blocks, then bytes, input, command */
const char cm_background_supervisor[] = BORN MS
	"d=$1 old=$2 run=$3 timer=$4 t=$5 ts=$6 g=$7 gs=$8 blocks=$9; shift 9\n"
	"cap=$1 in=$2; shift 2; h= w= late=\n"
	/* not ignored, which the command would inherit: it just does not end us */
	"trap : TERM HUP INT QUIT\n"
	"exec 4<>\"$d/alive\"\n"
	"printf '%s %s\\n' \"$$\" \"$(born $$)\" >\"$d/supervisor\"\n"
	"end() {\n"
	"printf '%s %s %s\\n' \"$1\" \"$2\" \"$(ms)\" >\"$d/end.new\"\n"
	"mv -f \"$d/end.new\" \"$d/end\"\n"
	/* whoever opens one for writing just now is let go */
	"[ \"$in\" = 0 ] || exec 5<>\"$d/input\" 6<>\"$d/.eof\"\n"
	"rm -f \"$d/alive\" \"$d/.out\" \"$d/.err\" \"$d/input\" \"$d/.eof\"\n"
	"exit 0\n"
	"}\n"
	"if ! command -v \"$1\" >/dev/null 2>&1; then\n"
	"code=127; case $1 in */*) [ ! -e \"$1\" ] || code=126;; esac\n"
	"printf 'cannot execute %s\\n' \"$1\" >>\"$d/stderr\"; echo 0; end none \"$code\"\n"
	"fi\n"
	"keep() {\n"
	"exec 4>&-\n"
	"( trap '' XFSZ; ulimit -f \"$blocks\"; exec tee \"$d/$1\" <\"$d/.$2\" ) |\n"
	"{ n=$(($(wc -c))); [ \"$n\" -le \"$cap\" ] || echo $((n - cap)) >\"$d/$1.dropped\"; }\n"
	"}\n"
	"( keep stdout out ) & o=$!\n"
	"( keep stderr err ) & e=$!\n"
	"if [ \"$in\" = 0 ]; then input=/dev/null; else\n"
	"input=$d/input\n"
	"( exec 4>&- 5<>\"$input\"; read -r x <\"$d/.eof\"; rm -f \"$d/.eof\" ) & h=$!\n"
	"fi\n"
	"if [ \"$t\" != 0 ]; then\n"
	"setsid sh -c \"$timer\" casemate \"$d\" \"$t\" \"$ts\" \"$g\" \"$gs\" 4>&- & w=$!\n"
	"fi\n"
	"setsid sh -c \"$run\" \"$d\" \"$old\" \"$@\" 3>&1 >\"$d/.out\" 2>\"$d/.err\" "
	"<\"$input\" 4>&-\n"
	"code=$? kind=exit\n"
	"[ -z \"$w\" ] || kill -TERM \"-$w\" || kill -TERM \"$w\"\n"
	"if [ -e \"$d/timed-out\" ]; then\n"
	"kind=timeout code=124; read -r p <\"$d/pid\"; kill -KILL \"-$p\"\n"
	"elif [ -e \"$d/signalled\" ] && [ \"$code\" -gt 128 ]; then kind=killed; fi\n"
	"trap 'late=1' USR2\n"
	"( exec 4>&-; for i in 1 2 3; do sleep 1; kill -USR2 $$; done ) & k=$!\n"
	"wait \"$o\"; [ -n \"$late\" ] || wait \"$e\"\n"
	"kill \"$k\"; [ -z \"$h\" ] || kill \"$h\"\n"
	"end \"$kind\" \"$code\"\n";

/* $0 the directory, $1 the umask, then the command; its pid to descriptor 3 */
const char cm_background_runner[] =
	"printf '%s\\n' \"$$\" >\"$0/pid\"; printf '%s\\n' \"$$\" >&3; exec 3>&-\n"
	"umask \"$1\"; shift; exec \"$@\"\n";

/* $1 the directory, $2 and $3 the timeout, $4 and $5 the grace. Not every sleep takes fractions. */
const char cm_background_timer[] =
	"nap() { sleep \"$1\" || sleep \"$2\"; }\n"
	"nap \"$2\" \"$3\"; [ ! -e \"$1/end\" ] && read -r p <\"$1/pid\" || exit 0\n"
	": >\"$1/timed-out\"; kill -TERM \"-$p\"; nap \"$4\" \"$5\"; kill -KILL \"-$p\"\n";

/*
 * $1 number, $2 and $3 how much is known of each stream. Each stream begins with a line of its own, since
 * which of the two is seen first is not sure; then what has not been seen of it.
 */
const char cm_background_show_script[] = CM_SHELL_FAIL ALIVE STATE ENTRY
	"state\n"
	"a=$(($(wc -c <\"$d/stdout\") - $2)) b=$(($(wc -c <\"$d/stderr\") - $3))\n"
	"[ \"$a\" -gt 0 ] || a=0; [ \"$b\" -gt 0 ] || b=0\n"
	"printf 'casemate-exec %s %s %s %s %s %s %s\\n' \"$kind\" \"$code\" \"$ended\" \"$started\" "
	"\"$pid\" \"$a\" \"$b\"\n"
	"printf 'casemate-exec\\n' >&2\n"
	"[ \"$a\" = 0 ] || tail -c \"+$(($2 + 1))\" \"$d/stdout\" 2>/dev/null | head -c \"$a\"\n"
	"[ \"$b\" = 0 ] || tail -c \"+$(($3 + 1))\" \"$d/stderr\" 2>/dev/null | head -c \"$b\" >&2\n"
	"exit 0\n";

/*
 * $1 to $3 as above: prints what comes, until the supervisor is gone. What it has not printed by then is
 * for the one above. Whoever kills this shell alone leaves nothing that stays.
 */
const char cm_background_follow_script[] = CM_SHELL_FAIL ALIVE ENTRY
	"[ ! -e \"$d/end\" ] && alive && [ -p \"$d/alive\" ] || exit 0\n"
	"exec " OPEN("alive",
		     "7<") "\n"
			   "tail -c \"+$(($2 + 1))\" -f \"$d/stdout\" 2>/dev/null & a=$!\n"
			   "tail -c \"+$(($3 + 1))\" -f \"$d/stderr\" >&2 2>/dev/null & b=$!\n"
			   "( cat <&7; kill \"$a\" \"$b\" ) >/dev/null 2>&1 & c=$!\n"
			   "trap 'kill \"$a\" \"$b\" \"$c\"; exit 0' TERM HUP INT\n"
			   "wait \"$c\"\n"
			   "exit 0\n";

/* $1 number, $2 base64; without it standard input */
const char cm_background_input_script[] =
	CM_SHELL_FAIL ALIVE ENTRY "[ ! -e \"$d/end\" ] && alive || fail ended\n"
				  "[ -p \"$d/input\" ] && [ -p \"$d/.eof\" ] || fail no-input\n"
				  "if [ $# = 1 ]; then cat >\"$d/input\" || fail ended; else\n"
				  "command -v base64 >/dev/null 2>&1 || fail no-base64\n"
				  "printf '%s' \"$2\" | base64 -d >\"$d/input\" || fail ended; fi\n"
				  "[ ! -e \"$d/end\" ] || fail ended\n";

/* $1 number */
const char cm_background_eof_script[] =
	CM_SHELL_FAIL ALIVE ENTRY "[ ! -e \"$d/end\" ] && alive || fail ended\n"
				  "[ ! -p \"$d/.eof\" ] || : >\"$d/.eof\"\n";

/* $1 number, $2 signal */
const char cm_background_signal_script[] = CM_SHELL_FAIL ALIVE ENTRY
	"[ ! -e \"$d/end\" ] && alive && [ -r \"$d/pid\" ] || fail ended\n"
	"read -r p <\"$d/pid\"; case $p in ''|*[!0-9]*|0*|1) fail ended;; esac\n"
	"[ \"$2\" = 0 ] || : >\"$d/signalled\"\n"
	"kill \"-$2\" \"-$p\" 2>/dev/null || fail ended\n";

/*
 * Of each: eight NUL-terminated fields, the last two being lengths of what follows: cwd, cmd. One whose
 * start was interrupted is none.
 */
const char cm_background_list_script[] = CM_SHELL_FAIL ALIVE STATE BASE
	"[ -d \"$base\" ] || exit 0\n"
	"cd \"$base\" || fail denied\n"
	"for d in $(ls | sort -n); do\n"
	"case $d in *[!0-9]*|0*|??????????*) continue;; esac\n"
	"[ -s \"$d/started\" ] && [ -f \"$d/cwd\" ] && [ -f \"$d/cmd\" ] || continue\n"
	"state\n"
	"case $started in ''|*[!0-9]*) continue;; esac\n"
	"w=$(wc -c <\"$d/cwd\") && c=$(wc -c <\"$d/cmd\") || continue\n"
	"w=$((w)) c=$((c))\n"
	"[ \"$w\" -le 8192 ] || w=8192; [ \"$c\" -le 65536 ] || c=65536\n"
	"printf '%s\\0' \"$d\" \"$kind\" \"$code\" \"$ended\" \"$started\" \"$pid\" \"$w\" \"$c\"\n"
	"head -c \"$w\" \"$d/cwd\"; head -c \"$c\" \"$d/cmd\"\n"
	"done\n"
	"exit 0\n";
