#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A system call that fails, and a death, at (nearly) every step of a start, in each of the processes:
# either the command runs as if nothing were, or it does not run and casemate says so with 125; the
# sessions can be listed afterwards, and the next run leaves nothing of it behind.
# shellcheck disable=SC2016
# SC2016: what single quotes keep from this shell is for the shell inside
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

command -v strace >/dev/null || skip_all TOOLS 'no strace'
"${as[@]}" strace -f -o /dev/null true 2>/dev/null || skip_all PTRACE 'strace cannot trace here'
! ldd "$top/bin/casemate" 2>/dev/null | grep -q asan || skip_all PLAIN 'a sanitizer is in the way'

# The command: static where casemate is, so that next to none of the calls are its own.
payload=(/mnt/cm-test version)
ran='casemate *'

# every BEGIN END: which ones of them, all of the first and then further and further apart
every() {
	local n
	for ((n = 1; n <= $1; n += n < 8 ? 1 : n / 5)); do
		echo "$n"
	done
}

command=(run -v "$top/bin/casemate:${payload[0]}:ro" -- "${payload[@]}")

# traced STRACE ARGUMENT...: a run with what $whom says under strace: all, client, or keeper (and,
# with -f, init); the keeper of the last is a script that has it traced
whom=all
traced() {
	local run=("$casemate" "${command[@]}")
	last_args="$whom under strace $*"
	case $whom in
	all) run=(strace -f -qq -o "$work/trace" "$@" -- "${run[@]}") ;;
	client) run=(strace -qq -o "$work/trace" "$@" -- "${run[@]}") ;;
	keeper)
		printf '%s\n' '#!/bin/sh' \
			"exec $strace -qq -o $work/trace $* -- $helpers/keeper \"\$@\"" \
			>"$helpers/casemate-keeper"
		chmod 755 "$helpers/casemate-keeper"
		;;
	esac
	rm -f "$work/trace"
	# so that each run makes one
	if [ "$identity" = root ]; then
		rm -rf /run/casemate/skeletons
	else
		rm -rf "$XDG_RUNTIME_DIR/casemate/skeletons"
	fi
	timeout --foreground -k 5 30 "${as[@]}" "${run[@]}" >"$work/out" 2>"$work/err"
	rc=$?
	# what bash has to say of a child that was killed
} 2>/dev/null

tell() { echo "# $1: status $rc, out '$(head -c 80 "$work/out")', err '$(head -c 300 "$work/err" | tr '\n' '|')'"; }

next_run() {
	run ls
	expect_status 0 'ls works'
	run run -- true
	expect_status 0 'the next run works'
	run run -- true
}

# fails CALL ERRNO N: the Nth of each process fails
fails() {
	local call=$1 errno=$2 n bad=0 runs=0
	for n in $(every "$3"); do
		traced -e trace="$call" -e inject="$call:error=$errno:when=$n"
		grep -q INJECTED "$work/trace" || break
		runs=$((runs + 1))
		# shellcheck disable=SC2053
		if [ "$rc" = 0 ] && [[ $(out) == $ran ]]; then
			continue
		elif [ "$rc" = 125 ] && [ ! -s "$work/out" ] && grep -q '^casemate: ' "$work/err"; then
			continue
		elif grep -q "${payload[0]}" "$work/err" && [ "$rc" -ge 126 ]; then
			# it was the command's own start that failed
			continue
		elif [ "$rc" = 137 ] && grep -q '^casemate: the session.* ended unexpectedly' "$work/err"; then
			# the command was running
			continue
		fi
		tell "$call $errno $n"
		bad=$((bad + 1))
	done
	is "$bad" 0 "$call fails with $errno, $runs times: runs or 125"
	[ "$runs" -gt 0 ]
	ok "$call was called"
}

begin 'a call that fails'
run run -v "$top/bin/casemate:${payload[0]}:ro" -- "${payload[@]}"
like "$(out)" "$ran" 'control: the command runs'
traced -e trace=none
like "$(out) $rc" "$ran 0" 'control: under strace, too'
for call in clone3 socketpair epoll_create1 memfd_create pipe2 signalfd4 unshare fsopen fsmount \
	pivot_root seccomp landlock_create_ruleset landlock_restrict_self sendmsg recvmsg capset; do
	case $call in
	clone3) fails $call EAGAIN 3 ;;
	socketpair | epoll_create1 | memfd_create | pipe2 | signalfd4) fails $call EMFILE 6 ;;
	*) fails $call ENOMEM 12 ;;
	esac
done
rm -f "$work/trace"
next_run
finish

begin 'a call that fails among many'
fails openat EMFILE 150
fails openat2 EMFILE 100
fails mkdirat ENOSPC 90
fails move_mount ENOMEM 70
fails open_tree ENOMEM 60
fails mount_setattr ENOMEM 60
fails fsconfig ENOMEM 50
fails symlinkat ENOSPC 30
fails renameat ENOSPC 10
fails flock ENOLCK 10
fails prctl EINVAL 50
rm -f "$work/trace"
next_run
finish

# dies WHO MAXIMUM STRACE ARGUMENT...: at its Nth call (%N in the arguments)
dies() {
	local who=$1 max=$2 n bad=0 runs=0 args
	shift 2
	for n in $(every "$max"); do
		args=("${@//%N/$n}")
		traced "${args[@]}"
		grep -q SIGKILL "$work/trace" || break
		runs=$((runs + 1))
		case $rc in
		125) [ ! -s "$work/out" ] || {
			tell "$who $n"
			bad=$((bad + 1))
		} ;;
		0 | 137) ;;
		*)
			tell "$who $n"
			bad=$((bad + 1))
			;;
		esac
		cm ls >"$work/ls" 2>&1 || {
			sed 's/^/# ls: /' "$work/ls"
			bad=$((bad + 1))
		}
	done
	is "$bad" 0 "$who killed at $runs of its calls: the status is true, and ls works"
	[ "$runs" -gt 5 ]
	ok "$who was killed"
	rm -f "$work/trace" "$work/ls"
}

begin 'kill -9 of the client'
whom=client
dies client 700 -e inject=all:signal=KILL:when=%N
until_true 5 sh -c '! pgrep -f "^$1/bin/casemate-keeper" >/dev/null' - "$top"
ok 'no keeper survives its client'
next_run
finish

begin 'kill -9 of the keeper and of init'
helpers=$work/helpers
mkdir "$helpers"
cp "$top/bin/casemate" "$top/bin/casemate-checkout" "$helpers/"
cp "$top/bin/casemate-keeper" "$helpers/keeper"
was=$casemate
casemate=$helpers/casemate
strace=$(command -v strace)
whom=keeper
start_files
traced -e trace=none
like "$(out) $rc" "$ran 0" 'control: with a keeper that is traced'
dies keeper 500 -e inject=all:signal=KILL:when=%N
dies init 400 -f -e inject=fsopen,fsconfig,fsmount,move_mount,mkdirat,symlinkat,fchownat,pivot_root,landlock_add_rule,setgroups,setresuid,capset:signal=KILL:when=%N
casemate=$was
rm -rf "$helpers"
start_files
next_run
finish

done_testing
