#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A death, and a system call that fails, at (nearly) every step of what is done with a lasting session,
# in each of the processes.  After each: every command answers, the status is true, the next command
# works and finds the files, what setup did is not done again, and in the end nothing is left.
# shellcheck disable=SC2016
# SC2016: what single quotes keep from this shell is for the shell inside
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

command -v strace >/dev/null || skip_all TOOLS 'no strace'
"${as[@]}" strace -f -o /dev/null true 2>/dev/null || skip_all PTRACE 'strace cannot trace here'
! ldd "$top/bin/casemate" 2>/dev/null | grep -q asan || skip_all PLAIN 'a sanitizer is in the way'

state=
events() { cat "$state/events.ndjson" 2>/dev/null; }
status_of() { cm ls 2>/dev/null | awk -v id="$1" '$1 == id { print $2 }'; }
keeper_pid() { events | grep -o '"keeperPid":[0-9]*' | tail -n 1 | cut -d: -f2; }

# every END: which ones of so many, all of the first and then further and further apart
every() {
	local n
	for ((n = 1; n <= $1; n += n < 8 ? 1 : 1 + n / 6)); do
		echo "$n"
	done
}

# A session that was set up, with a file in each place that is kept.
make() {
	state=$XDG_STATE_HOME/casemate/sessions/w
	[ "$identity" != root ] || state=/var/lib/casemate/sessions/w
	run start w --setup 'echo s >>~/setups'
	run exec w -- sh -c 'echo home >~/mark; echo tmp >/tmp/mark; echo tree >mark'
	is "$rc" 0 'control: a session that was set up'
}
running() { [ "$(status_of w)" = running ] || cm start w >/dev/null 2>&1; }
stopped() { cm stop w >/dev/null 2>&1; }

bad=0
fault() { # WHAT
	bad=$((bad + 1))
	echo "# $step: $1 (status $rc, out '$(head -c 80 "$work/out")', err '$(head -c 300 "$work/err" | tr '\n' '|')')"
}

# What must be true whatever happened, at once.
look() {
	local status=$rc
	step=$1
	run ls
	[ "$rc" = 0 ] || fault 'ls'
	run inspect w
	[ "$rc" = 0 ] || fault 'inspect'
	case $(status_of w) in
	# one that is dying has its lock still
	running) [ -n "$(our_processes)" ] || [ "$(status_of w)" != running ] || fault 'it is said to run, and nothing does' ;;
	stopped) [ -z "$(our_processes)" ] || until_true 3 none_runs || fault 'it is said to be stopped, and something runs' ;;
	# of a start that failed, and told so
	error) [ "$status" != 0 ] || fault 'an error that nobody was told of' ;;
	*) fault "its status is '$(status_of w)'" ;;
	esac
}
check() {
	look "$1"
	run exec w -- sh -c 'cat ~/mark /tmp/mark mark ~/setups'
	[ "$rc $(out | tr '\n' ' ')" = '0 home tmp tree s ' ] || fault 'the next command'
}
none_runs() { [ -z "$(our_processes)" ]; }

end_of_walk() { # NAME LEAST
	is "$bad" 0 "$1: $walked deaths or failures, and all is well after each"
	[ "$walked" -ge "$2" ]
	ok "$1: there were that many"
	bad=0
}

# client_dies MAXIMUM BEFORE COMMAND...: at its Nth call
client_dies() {
	local max=$1 before=$2 n
	shift 2
	walked=0
	for n in $(every "$max"); do
		"$before"
		rm -f "$work/trace"
		{
			timeout --foreground -k 5 30 "${as[@]}" strace -qq -o "$work/trace" -e inject=all:signal=KILL:when="$n" \
				-- "$casemate" "$@" >"$work/out" 2>"$work/err"
			rc=$?
		} 2>/dev/null
		grep -q SIGKILL "$work/trace" || break
		walked=$((walked + 1))
		"${checked:-check}" "client at $n of $*"
	done
	rm -f "$work/trace"
}

# attached PID ARGUMENT...: strace is there, and goes on in the background as $tracer
attached() {
	local pid=$1
	shift
	rm -f "$work/trace"
	strace -qq -o "$work/trace" -p "$pid" "$@" 2>/dev/null &
	tracer=$!
	until_true 5 grep -q '^TracerPid:[[:space:]]*[1-9]' "/proc/$pid/status"
}
detached() {
	kill -INT "$tracer" 2>/dev/null
	wait "$tracer" 2>/dev/null
}

pid_of() { # keeper, init
	local pid
	pid=$(keeper_pid)
	[ "$1" = keeper ] || pid=$(cut -d' ' -f1 "/proc/$pid/task/$pid/children")
	echo "$pid"
}

is_dead() { [ ! -d "/proc/$1" ] || grep -q '^State:.*[ZX]' "/proc/$1/status" 2>/dev/null; }

# other_dies WHO MAXIMUM COMMAND...: keeper or init of the running session, at its Nth call from now on
other_dies() {
	local who=$1 max=$2 n
	shift 2
	walked=0
	for n in $(every "$max"); do
		running
		victim=$(pid_of "$who")
		attached "$victim" -e inject=all:signal=KILL:when="$n"
		run "$@"
		is_dead "$victim" || sleep 0.2
		is_dead "$victim" || {
			detached
			break
		}
		detached
		walked=$((walked + 1))
		"${checked:-check}" "$who at $n of $*"
	done
	rm -f "$work/trace"
}

begin 'start'
make
client_dies 900 stopped start w
end_of_walk 'the client is killed' 12
helpers=$work/helpers/bin
mkdir -p "$helpers"
cp "$top/bin/casemate" "$top/bin/casemate-checkout" "$helpers/"
cp "$top/bin/casemate-keeper" "$helpers/keeper"
was=$casemate
# start_dies MAXIMUM STRACE ARGUMENT...: at the Nth call of the keeper, and with -f of its children
start_dies() {
	local max=$1 n
	shift
	walked=0
	for n in $(every "$max"); do
		stopped
		printf '%s\n' '#!/bin/sh' \
			"exec $(command -v strace) -D -qq -o $work/trace ${*//%N/$n} -- $helpers/keeper \"\$@\"" \
			>"$helpers/casemate-keeper"
		chmod 755 "$helpers/casemate-keeper"
		rm -f "$work/trace"
		casemate=$helpers/casemate
		run start w
		casemate=$was
		# of the next command, perhaps
		grep -q SIGKILL "$work/trace" || break
		walked=$((walked + 1))
		[ "$rc" = 0 ] || { [ "$rc" = 125 ] && grep -q '^casemate: ' "$work/err"; } || fault "start under $* $n"
		check "keeper or init at $n of start"
	done
	stopped
}
start_files
start_dies 400 -f -e inject=all:signal=KILL:when=%N
end_of_walk 'the keeper or init is killed' 12
start_dies 300 -f -e inject=fsopen,fsconfig,move_mount,mkdirat,setgroups,setresuid,capset,seccomp,sendmsg,recvmsg:signal=KILL:when=%N
end_of_walk 'either at steps of its own' 8
run rm --files --force w
rm -rf "$work/helpers"
start_files
finish

begin 'commands'
make
client_dies 500 running exec w -- true
end_of_walk 'exec, and the client is killed' 8
client_dies 500 running exec w -d -- sh -c 'echo out'
end_of_walk 'exec -d, and the client is killed' 7
if is_root; then
	other_dies keeper 60 exec w -- true
	end_of_walk 'exec, and the keeper is killed' 6
	other_dies init 60 exec w -- true
	end_of_walk 'exec, and init is killed' 4
	other_dies keeper 90 exec w -d -- sh -c 'echo out'
	end_of_walk 'exec -d, and the keeper is killed' 10
	other_dies init 60 exec w -d -- sh -c 'echo out'
	end_of_walk 'exec -d, and init is killed' 4
fi
run exec w -d -- sh -c 'echo out'
last=$(out)
until_true 5 test -f "$state/exec/$last/result"
is "$(cat "$state/exec/$last/out.head")" out 'journals go on being written'
is "$(find "$state/exec" -mindepth 1 -maxdepth 1 -name '.*')" '' 'and nothing half made stays'
is "$(events | grep -vc '^{"v":1,"seq":[0-9]*,.*}$')" 0 'all events are whole'
is "$(events | grep -o '"seq":[0-9]*' | sort | uniq -d)" '' 'and have numbers of their own'
run rm --files --force w
finish

begin 'stop'
make
client_dies 300 running stop w
end_of_walk 'the client is killed' 8
client_dies 900 running restart w
end_of_walk 'restart, and the client is killed' 12
if is_root; then
	other_dies keeper 60 stop w
	end_of_walk 'the keeper is killed' 6
	other_dies init 60 stop w
	end_of_walk 'init is killed' 4
fi
run rm --files --force w
finish

# It is there as a whole or not at all; then it is removed, and made anew.
check_removal() {
	local left
	step=$1
	run ls
	[ "$rc" = 0 ] || fault ls
	if [ -n "$(status_of w)" ]; then
		left=there
		run inspect w
		[ "$rc" = 0 ] || fault 'inspect of one that is listed'
	else
		left=gone
	fi
	run rm --files --force w
	[ "$rc" = 0 ] || { [ "$left" = gone ] && grep -q 'not found' "$work/err"; } || fault "rm of one that is $left"
	[ -z "$(status_of w)" ] || fault 'it is there after its removal'
	none_runs || until_true 3 none_runs || fault 'it runs after its removal'
}
made() {
	run start w --setup 'echo s >>~/setups'
	[ "$rc" = 0 ] || fault 'it can be made anew'
	run exec w -- cat "$HOME/setups"
	[ "$(out)" = s ] || fault 'the new one has nothing of the old one'
}

begin 'rm'
checked=check_removal
client_dies 500 made rm --files --force w
end_of_walk 'rm --files, and the client is killed' 10
client_dies 500 made rm w
end_of_walk 'rm, and the client is killed' 10
checked=
# what the last of them left half done, the next start takes away
run run -- true
run rm --files --force w
finish

# Setup is the one thing that may run again: when nobody could write down that it had run.
check_creation() {
	step=$1
	run ls
	[ "$rc" = 0 ] || fault ls
	run exec w --json -- sh -c 'echo alive; sort -u ~/setups'
	if [ "$rc" = 125 ]; then
		grep -q "session 'w' not found" "$work/err" || fault 'exec of one that was begun'
	else
		[ "$rc $(json stdout)" = '0 alive\ns\n' ] || fault 'the next command'
		run stop w
		run exec w -- cat "$HOME/setups"
		setups=$(out)
		run stop w
		run exec w -- cat "$HOME/setups"
		[ "$(out)" = "$setups" ] || fault 'setup runs again that was done'
	fi
	run rm --files --force w
}
nothing() { :; }

begin 'create'
checked=check_creation
client_dies 1500 nothing start w --setup 'echo s >>~/setups'
end_of_walk 'the first start, and the client is killed' 14
client_dies 600 nothing create w --setup 'echo s >>~/setups'
end_of_walk 'create, and the client is killed' 8
checked=
run run -- true
run rm --files --force w
finish

# start_fails CALL ERRNO MAXIMUM: the Nth of each process
start_fails() {
	local call=$1 errno=$2 n status
	walked=0
	for n in $(every "$3"); do
		stopped
		rm -f "$work/trace"
		timeout --foreground -k 5 30 "${as[@]}" strace -D -f -qq -o "$work/trace" -e trace="$call" \
			-e inject="$call:error=$errno:when=$n" -- "$casemate" start w >"$work/out" 2>"$work/err"
		rc=$?
		status=$rc
		step="$call $errno $n of start"
		[ "$rc" = 0 ] || { [ "$rc" = 125 ] && grep -q '^casemate: ' "$work/err"; } ||
			# those were the words
			grep -q '^[0-9]* *write(2, .*INJECTED' "$work/trace" || fault 'neither started nor said why'
		look "$step"
		stopped
		until_true 5 none_runs || fault 'it does not stop'
		grep -q INJECTED "$work/trace" || break
		walked=$((walked + 1))
		rc=$status
		check "$step"
	done
	rm -f "$work/trace"
}

begin 'calls that fail in start'
make
for failure in mkdirat:ENOSPC:40 openat:EMFILE:60 renameat:ENOSPC:6 renameat:EIO:6 write:ENOSPC:8 pwrite64:ENOSPC:4 \
	fsync:EIO:4 pipe2:EMFILE:3 epoll_ctl:ENOMEM:8 memfd_create:ENOMEM:3 clone3:ENOMEM:2 bind:ENOSPC:2 \
	listen:EIO:1 fork:ENOMEM:1 timerfd_create:EMFILE:2 flock:ENOLCK:4; do
	IFS=: read -r call errno max <<<"$failure"
	start_fails "$call" "$errno" "$max"
	is "$bad" 0 "$call fails with $errno ($walked times)"
	bad=0
done
run rm --files --force w
finish

# exec_fails CALL ERRNO MAXIMUM: the keeper's Nth from now on
exec_fails() {
	local call=$1 errno=$2 n id
	walked=0
	for n in $(every "$3"); do
		running
		attached "$(pid_of keeper)" -e trace="$call" -e inject="$call:error=$errno:when=$n"
		step="$call $errno $n of exec -d"
		run exec w -d -- sh -c 'echo out'
		detached
		id=$(out)
		case $rc in
		0) until_true 5 test -f "$state/exec/$id/result" || fault 'no result' ;;
		125) grep -q '^casemate: ' "$work/err" || fault 'no reason' ;;
		*) fault 'another status' ;;
		esac
		grep -q INJECTED "$work/trace" || break
		walked=$((walked + 1))
		[ "$(status_of w)" = running ] || fault 'the session does not go on'
		check "$step"
	done
	rm -f "$work/trace"
}

if is_root; then
	begin 'calls that fail in exec -d'
	make
	for failure in mkdirat:ENOSPC:3 openat:ENOSPC:8 openat:EMFILE:8 openat:EIO:8 write:ENOSPC:6 write:EIO:6 renameat:EIO:4 \
		pipe2:EMFILE:3 epoll_ctl:ENOMEM:6 epoll_ctl:ENOSPC:6 fcntl:EMFILE:6 splice:EIO:2 pwrite64:ENOSPC:4 \
		read:EIO:4 accept4:EMFILE:2 accept4:ENOMEM:2; do
		IFS=: read -r call errno max <<<"$failure"
		exec_fails "$call" "$errno" "$max"
		is "$bad" 0 "$call fails with $errno ($walked times)"
		bad=0
	done
	is "$(find "$state/exec" -mindepth 1 -maxdepth 1 -name '.*')" '' 'nothing half made stays'
	run rm --files --force w
	finish
fi

done_testing
