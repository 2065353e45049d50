# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the tests with real jails share.  TAP; sourced with the arguments of the test:
#
#   t-run-NAME.sh DIRECTORY-OF-THE-BINARIES [root|plain|sub]
#
# root, plain, sub: who calls casemate: root, a user without and one with subordinate ids.  Who runs
# the test as an ordinary user is `plain` himself and skips the others.  As root the test runs in
# mount and pid namespaces of its own: nothing that it leaves outlives it, and the state directories
# of the machine are not touched.
#
# CM_TEST_USER, CM_TEST_USER_SUB: users that exist already; else two are made, in copies of passwd,
# group, subuid and subgid that only the test sees.
# CM_TEST_MUST_WORK="NAME..." (or "all") makes a missing prerequisite a failure.
#
# A test is a number of blocks, each in a home, root, state and workspace of its own:
#
#   begin 'what it is about'
#   run run -- sh -c 'exit 3'
#   is "$rc" 3 'the status is the command'"'"'s'
#   finish
#
# finish looks for what is left: processes, mounts, control groups, files.
set -uo pipefail

[ $# -ge 1 ] || {
	echo "usage: $0 DIRECTORY [root|plain|sub]" >&2
	exit 2
}
binaries=$(realpath -- "$1")
identity=${2:-root}

bail() {
	echo "Bail out! $*"
	exit 99
}

skip_all() { # PREREQUISITE REASON
	case " ${CM_TEST_MUST_WORK:-} " in
	*' all '* | *" $1 "*)
		echo "not ok 1 - $1 must work here: $2"
		echo '1..1'
		exit 1
		;;
	esac
	echo "ok 1 - all # SKIP $1: $2"
	echo '1..1'
	exit 0
}

is_root() { [ "$(id -u)" = 0 ]; }

# A group in each v1 hierarchy, below the one that we are in: what the test makes is below it, and
# what is there at the end was left.
make_groups() {
	local line names dir
	while IFS=: read -r _ names line; do
		dir=/sys/fs/cgroup/$names${line%/}
		[[ $names != '' && $names != *=* ]] || continue
		mkdir "$dir/casemate-test.$$" 2>/dev/null || continue
		echo "$dir/casemate-test.$$"
		[ "$names" != cpuset ] || for file in cpuset.cpus cpuset.mems; do
			cat "$dir/$file" >"$dir/casemate-test.$$/$file"
		done
	done </proc/self/cgroup
}

if is_root && [ -z "${CM_TEST_IN_NAMESPACE:-}" ]; then
	for dir in /var/lib/casemate /run/casemate /var/cache/casemate; do
		[ -d $dir ] || mkdir -m 700 $dir
	done
	mapfile -t groups < <(make_groups)
	export CM_TEST_IN_NAMESPACE=1 CM_TEST_GROUPS="${groups[*]}"
	(
		for dir in "${groups[@]}"; do
			echo 0 >"$dir/tasks"
		done
		exec unshare --mount --pid --fork --kill-child --mount-proc --propagation private \
			bash "$0" "$@"
	)
	status=$?
	for dir in "${groups[@]}"; do
		find "$dir" -depth -type d -exec rmdir {} + 2>/dev/null
	done
	exit $status
fi

exec </dev/null
umask 022
# so that the last command of a pipeline sets the variables of this shell
shopt -s lastpipe
export PWD
count=0
failed=0
top=$(mktemp -d "${TMPDIR:-/tmp}/casemate-test.XXXXXX") || bail 'no directory to work in'
top=$(realpath "$top")
chmod 755 "$top"

# --- the end ------------------------------------------------------------------------------------

# Pids whose executable is one of ours, or that were started in a jail.
our_processes() {
	local dir exe pid
	for dir in /proc/[0-9]*; do
		pid=${dir#/proc/}
		exe=$(readlink "$dir/exe" 2>/dev/null) || continue
		case $exe in
		"$top/bin/"* | "$top/"*/bin/*) echo "$pid" ;;
		*) tr '\0' '\n' <"$dir/environ" 2>/dev/null | grep -q '^CASEMATE_SESSION=' &&
			echo "$pid" ;;
		esac
	done 2>/dev/null
}

# "wait" alone waits for whatever is a child: this shell is pid 1 of its namespace, and so has for
# children all keepers, and whatever else was left alone.
wait_jobs() {
	local pid
	for pid in $(jobs -p); do
		wait "$pid"
	done
}

# Functions to be called at the end, whatever it is.
ends=()

clean_up() {
	local status=$? pid end
	# a child on its way to exec may still have the trap
	[ "$BASHPID" = $$ ] || exit $status
	trap - EXIT
	for end in "${ends[@]}"; do
		"$end"
	done
	for pid in $(our_processes); do
		kill -KILL "$pid" 2>/dev/null
	done
	wait_jobs 2>/dev/null
	cd /
	chmod -R u+rwX "$top" 2>/dev/null
	rm -rf --one-file-system "$top"
	exit $status
}
trap clean_up EXIT
trap 'exit 1' INT TERM HUP

done_testing() {
	echo "1..$count"
	[ $failed -eq 0 ] || exit 1
	exit 0
}

# --- who calls casemate -------------------------------------------------------------------------

as=()
uid=$(id -u)
gid=$(id -g)
user=$(id -un)

# The user databases as this test sees them.
own_users() {
	local file
	mkdir "$top/etc"
	for file in passwd group subuid subgid; do
		[ -e /etc/$file ] || : >"/etc/$file"
		cp /etc/$file "$top/etc/$file"
	done
	printf '%s\n' 'cm-test-plain:x:64101:64101::/nonexistent:/bin/sh' \
		'cm-test-sub:x:64102:64102::/nonexistent:/bin/sh' >>"$top/etc/passwd"
	printf '%s\n' 'cm-test-plain:x:64101:' 'cm-test-sub:x:64102:' >>"$top/etc/group"
	echo 'cm-test-sub:1700003840:65536' | tee -a "$top/etc/subuid" >>"$top/etc/subgid"
	for file in passwd group subuid subgid; do
		mount --bind "$top/etc/$file" "/etc/$file" || bail "cannot mount over /etc/$file"
	done
}

be_user() { # NAME
	user=$1
	uid=$(id -u "$user") || bail "no user '$user'"
	gid=$(id -g "$user")
	as=(setpriv --reuid="$uid" --regid="$gid" --clear-groups --inh-caps=-all --)
}

if is_root; then
	for dir in /var/lib/casemate /run/casemate /var/cache/casemate; do
		mount -t tmpfs -o mode=700,size=256m casemate-test $dir ||
			bail "cannot mount over '$dir'"
	done
	case $identity in
	root) ;;
	plain | sub)
		if [ "$identity" = plain ] && [ -n "${CM_TEST_USER:-}" ]; then
			be_user "$CM_TEST_USER"
		elif [ "$identity" = sub ] && [ -n "${CM_TEST_USER_SUB:-}" ]; then
			be_user "$CM_TEST_USER_SUB"
		else
			own_users
			be_user "cm-test-$identity"
		fi
		;;
	*) bail "who is '$identity'?" ;;
	esac
else
	[ "$identity" = plain ] || skip_all ROOT "only root can be $identity"
	unshare --user --map-root-user true 2>/dev/null ||
		skip_all USERNS 'this user can make no user namespace'
fi

# Copies: their path is only this test's, so that what runs from it is its own.
mkdir "$top/bin"
for name in casemate casemate-keeper casemate-checkout casemate-scope; do
	[ ! -e "$binaries/$name" ] || cp "$binaries/$name" "$top/bin/$name"
done
casemate=$top/bin/casemate
[ -x "$casemate" ] || bail "no casemate in '$binaries'"

# --- results ------------------------------------------------------------------------------------

ok() { # NAME: by the status of the command before
	local status=$?
	count=$((count + 1))
	if [ $status -eq 0 ]; then
		echo "ok $count - ${block:+$block: }$1"
		return 0
	fi
	echo "not ok $count - ${block:+$block: }$1"
	failed=$((failed + 1))
	[ -z "${work:-}" ] || {
		echo "# last: casemate ${last_args:-} -> ${rc:-?}"
		head -c 1500 "$work/out" 2>/dev/null | sed 's/^/# out: /' | head -n 12
		head -c 1500 "$work/err" 2>/dev/null | sed 's/^/# err: /' | head -n 12
	}
	return 1
}

is() { # GOT WANT NAME
	[ "$1" = "$2" ]
	ok "$3" || printf '%s\n' "got:  $1" "want: $2" | head -n 20 | sed 's/^/# /'
}

like() { # TEXT GLOB NAME
	# shellcheck disable=SC2053
	[[ $1 == $2 ]]
	ok "$3" || printf '%s\n' "got:  ${1:0:1000}" "want: $2" | sed 's/^/# /'
}

skip() { # PREREQUISITE REASON NAME
	case " ${CM_TEST_MUST_WORK:-} " in
	*' all '* | *" $1 "*)
		false
		ok "$3 ($1 must work here: $2)"
		;;
	*)
		count=$((count + 1))
		echo "ok $count - ${block:+$block: }$3 # SKIP $1: $2"
		;;
	esac
}

# need PREREQUISITE PROGRAM NAME: is the program there?
need() {
	command -v "$2" >/dev/null 2>&1 && return 0
	skip "$1" "no $2" "$3"
	return 1
}

# --- blocks -------------------------------------------------------------------------------------

block=
n_blocks=0

give() { # FILE...: to the caller of casemate
	! is_root || chown -R "$uid:$gid" "$@"
}

list_groups() {
	# shellcheck disable=SC2086
	if [ -n "${CM_TEST_GROUPS:-}" ]; then
		find $CM_TEST_GROUPS -mindepth 1 -type d
	else
		find /sys/fs/cgroup -maxdepth 8 -type d -name 'cm-*' -user "$uid"
	fi 2>/dev/null | sort
}

# by number: the path of a mount changes with the names above it, which are not ours
list_mounts() { awk '{ print $1 }' /proc/self/mountinfo | sort; }

list_files() { # what a block may change: its own directories, and the machine's as the test has them
	local dirs=("$work/home" "$work/state" "$work/runtime" "$work/cache" "$work/w")
	! is_root || dirs+=(/var/lib/casemate /run/casemate)
	find "${dirs[@]}" -printf '%p %y %m %U:%G %l\n' 2>/dev/null | sort
}

# The directories that every session shares, once made, stay; so do complete skeletons.
lasting='^([^ ]*/casemate|/(run|var/lib)/casemate)(/(ids|kept|new|sessions|tmp|s|run|run/(ids|tmp|s|skeletons)|skeletons))? d 700 |/skeletons/[0-9a-f]{16}-[0-9]+[^ ]* |/home/\.mastracode(/web(/sandboxes)?)? d 7[05][05] |/home/\.(local|local/state|cache)(/casemate)? d 7[05][05] |cache/casemate/mirrors( d 700|/(pruned|salt) f 600) '

begin() { # NAME
	block=$1
	n_blocks=$((n_blocks + 1))
	work=$top/$n_blocks
	allowed='^$'
	mkdir "$work" "$work/home" "$work/state" "$work/runtime" "$work/cache" "$work/w"
	chmod 755 "$work"
	chmod 700 "$work/home" "$work/state" "$work/runtime" "$work/cache"
	give "$work"
	export HOME=$work/home XDG_STATE_HOME=$work/state XDG_RUNTIME_DIR=$work/runtime
	export XDG_CACHE_HOME=$work/cache USER=$user LOGNAME=$user SHELL=/bin/sh LANG=C.UTF-8
	unset CASEMATE_ROOT MASTRACODE_LOCAL_SANDBOX_ROOT CASEMATE_CONFIG CASEMATE_PROFILE
	unset XDG_CONFIG_HOME
	root=$work/home/.mastracode/web/sandboxes
	cd "$work/w" || bail "cannot enter '$work/w'"
	groups_before=$(list_groups)
	mounts_before=$(list_mounts)
	start_files
}

# From here on files count as new: after the block has made its own.
start_files() { files_before=$(list_files); }

allow() { allowed=$allowed\|$1; } # REGEX of file lines that may stay

left_processes() {
	local pid
	for pid in $(our_processes); do
		echo "process $pid $(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null)"
	done
}

# Others make and remove groups at the same time: one of ours that was left is empty, and stays.
# left_groups CANDIDATE...: those of them that are
left_groups() {
	local group
	for group; do
		[ -z "$(cat "$group/cgroup.procs" 2>/dev/null)" ] && [ -d "$group" ] && echo "$group"
	done
}

left_files() {
	comm -13 <(echo "$files_before") <(list_files) | grep -vE "$lasting" | grep -vE "$allowed"
	comm -23 <(echo "$files_before") <(list_files) | grep -vE "$allowed|/skeletons/" | sed 's/$/ (gone)/'
}

left_mounts() {
	comm -13 <(echo "$mounts_before") <(list_mounts) | while read -r id; do
		grep "^$id " /proc/self/mountinfo
	done
}

bad_files() { # root: nothing in the caller's trees is host root's or set-id, whoever made it
	[ "$identity" = root ] && is_root || return 0
	[ ! -d "$root" ] || find "$root" -mindepth 1 \( -perm /6000 -o -uid 0 \) -printf 'bad %p\n'
	find "$work/w" -perm /6000 -printf 'bad %p\n'
}

finish() {
	local left='' groups
	cd "$top" || bail "cannot enter '$top'"
	mapfile -t groups < <(comm -13 <(echo "$groups_before") <(list_groups))
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12; do
		left=$(left_processes)
		mapfile -t groups < <(left_groups "${groups[@]}")
		[ -n "$left" ] || [ ${#groups[@]} -gt 0 ] || break
		sleep 0.25
	done
	left=$(
		left_processes
		[ ${#groups[@]} -eq 0 ] || printf 'group %s\n' "${groups[@]}"
		left_mounts
		left_files
		bad_files
	)
	[ -z "$left" ]
	ok 'nothing is left' || printf '%s\n' "$left" | head -n 30 | sed 's/^/# left: /'
	block=
	rm -rf --one-file-system "$work"
	work=
}

# Where a text is that should be nowhere: files, environments and arguments.
traces() { # TEXT
	local pid dirs=("$work/home" "$work/state" "$work/runtime" "$work/cache" "$work/w")
	! is_root || dirs+=(/var/lib/casemate /run/casemate /var/cache/casemate)
	grep -rlaF -e "$1" "${dirs[@]}" "$work/result" "$work/out" "$work/err" 2>/dev/null
	for pid in $(our_processes); do
		grep -laF -e "$1" "/proc/$pid/environ" "/proc/$pid/cmdline" 2>/dev/null
	done
}

# --- running casemate ---------------------------------------------------------------------------

# What is already in the call's environment goes along; stdin, too.
cm() { timeout --foreground -k 5 "${limit:-60}" "${as[@]}" "$casemate" "$@"; }

run() { # ARGUMENT...: status in rc, streams in files
	last_args="$*"
	cm "$@" >"$work/out" 2>"$work/err"
	rc=$?
}

# Started in the background: its pid in $bg, its streams in files; wait_bg sets rc and elapsed_ms.
start() { # ARGUMENT...
	last_args="$*"
	: >"$work/out"
	"${as[@]}" "$casemate" "$@" >"$work/out" 2>"$work/err" &
	bg=$!
	# this shell has traps: a child of it loses a signal that comes before it has executed
	while [ "/proc/$bg/exe" -ef /proc/$$/exe ]; do
		:
	done
}

now_ms() { date +%s%3N; }

# PID: of one that does not end, where it is and what it has not taken
tell_where() {
	local file
	echo "# process $1: $(tr '\0' ' ' <"/proc/$1/cmdline")"
	for file in syscall wchan stack; do
		sed "s/^/# $file: /" "/proc/$1/$file"
	done
	grep -E '^(Name|State|SigQ|SigPnd|ShdPnd|SigBlk|SigIgn|SigCgt):' "/proc/$1/status" | sed 's/^/# /'
	# of signals, and what a signalfd takes
	grep -h sigmask "/proc/$1/fdinfo/"* | sed 's/^/# /'
} 2>/dev/null

wait_bg() { # no longer than a minute
	local since until pid
	since=$(now_ms)
	until=$((since + 60000))
	while kill -0 "$bg" 2>/dev/null && [ "$(now_ms)" -lt $until ]; do
		sleep 0.02
	done
	if [ "$(now_ms)" -ge $until ]; then
		echo "# it does not end: $last_args"
		# the client, and who it waits for: keeper, init, the command
		for pid in $(our_processes); do
			tell_where "$pid"
		done
	fi
	kill -KILL "$bg" 2>/dev/null
	# bash tells of a child that was killed
	{
		wait "$bg"
		rc=$?
	} 2>/dev/null
	# shellcheck disable=SC2034
	elapsed_ms=$(($(now_ms) - since))
}

# until SECONDS COMMAND...: true as soon as the command is
until_true() {
	local until
	until=$(($(now_ms) + $1 * 1000))
	shift
	while ! "$@" >/dev/null 2>&1; do
		[ "$(now_ms)" -lt $until ] || return 1
		sleep 0.02
	done
}

out() { cat "$work/out"; }
err() { cat "$work/err"; }

# expect_status WANT NAME, expect_out TEXT NAME, expect_stderr TEXT NAME: of the last run
expect_status() { is "$rc" "$1" "$2"; }
expect_out() { is "$(out)" "$1" "$2"; }
expect_stderr() { is "$(err)" "$1" "$2"; }

# refused CODE-OR-GLOB-OF-THE-ERROR GLOB-OF-THE-HINT NAME: the last run failed so, and told how on
refused() {
	[ "$rc" = 125 ] && [ ! -s "$work/out" ] && [ "$(grep -c . "$work/err")" -ge 2 ]
	ok "$3" || return
	like "$(err)" "*casemate: $1
hint: $2" "$3: the text"
}

has_groups() { # limits can be enforced for this identity
	[ -n "${has_groups_known:-}" ] || {
		has_groups_known=no
		cm run --no-workspace --memory 64M -- true >/dev/null 2>&1 && has_groups_known=yes
	}
	[ "$has_groups_known" = yes ]
}

# json KEY: of the object in the last output
json() { sed -n "s/.*\"$1\":\(\"\([^\"]*\)\"\|\([^,}]*\)\).*/\2\3/p" "${2:-$work/out}" | head -n 1; }
