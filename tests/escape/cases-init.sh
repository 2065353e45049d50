# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154
# Attacks on what runs the jail: pid 1, the keeper, its socket, the end of a tree.

session_files='/state/|/(run|var/lib)/casemate|/runtime/|/home/'


children_of() { pgrep -P "$1"; }

# session ID OPTION... -- COMMAND...: in the background, in a session that stays
session() {
	local id=$1
	shift
	"${as[@]}" "$casemate" run --session "$id" --workspace "$work/w" "$@" \
		>"$work/$id.out" 2>"$work/$id.err" &
	session_client=$!
}

count_of() { pgrep -c -x "$1"; }

none_of() { [ "$(count_of "$1")" = 0 ]; }

expect_init() { # ERRNO-OF-THE-FD-LIST
	cat <<-END
		mem: refused EACCES
		environ: refused EACCES
		maps: refused EACCES
		auxv: refused EACCES
		fd list: refused EACCES
		fd 0: refused EACCES
		namespace: refused EACCES
		clear_refs: refused EACCES
		pidfd_getfd: refused EPERM
		process_vm_readv: refused EPERM
		kcmp: refused EPERM
		ptrace: refused EPERM
		sched_setaffinity: refused EPERM
		setpriority: refused EPERM
		ioprio_set: refused EPERM
		sched_setscheduler: refused EPERM
		prlimit files: refused EPERM
		prlimit cpu: refused EPERM
		stops: refused
		dies: refused
	END
}

case_init() {
	use init
	expect_init >"$work/expect"
	attack -- "${weaker[@]}" ./probe_init victim -- ./probe_init <"$work/expect"
	session init -- ./probe_init
	wait "$session_client"
	is "$(grep -c reached "$work/init.out")" 0 'nothing is reached in a session that stays'
	run run --session init -- echo alive
	is "$(out)" alive 'and it goes on'
	run rm init
	allow "$session_files"
}

# Init must not wait for a child that the agent can stop.
case_stop_spam() {
	local i pids=() ended=0
	use stop
	session spam -- ./probe_stop
	until_true 5 grep -q ready "$work/spam.out"
	for i in 1 2 3 4; do
		(
			for _ in 1 2 3 4 5 6 7 8 9 10; do
				limit=15 cm run --session spam --timeout 1s -- true
				echo $?
			done >"$work/spam.$i" 2>/dev/null
		) &
		pids+=($!)
	done
	wait "${pids[@]}"
	ended=$(cat "$work"/spam.[1-4] | grep -cE '^(0|124)$')
	is "$ended" 40 'every command ended, by itself or by its time limit'
	echo "# $(cat "$work"/spam.[1-4] | sort | uniq -c | tr '\n' ' ')"
	kill "$session_client"
	wait "$session_client" 2>/dev/null
	limit=20 cm run --session spam -- echo alive >"$work/out" 2>"$work/err"
	is "$(out)" alive 'the session goes on afterwards'
	run rm spam
	allow "$session_files"
}

case_tree() {
	local mode other
	use tree
	session tree -- sh -c 'while :; do date +%s%N >beat; sleep 0.05; done'
	until_true 5 test -s "$work/w/beat"
	for mode in chain hidden 'bomb 120'; do
		# shellcheck disable=SC2086
		run run --session tree --timeout 1s -- ./probe_tree $mode
		is "$rc" 124 "$mode: ended by its time limit"
		until_true 3 none_of probe_tree
		is "$(count_of probe_tree)" 0 "$mode: nothing of its tree is left"
		other=$(cat "$work/w/beat")
		sleep 0.3
		[ "$(cat "$work/w/beat")" != "$other" ]
		ok "$mode: the other command goes on"
	done
	kill "$session_client"
	wait "$session_client" 2>/dev/null
	# the control: the same tree outlives its leader where nothing ends it
	as_caller timeout -k 1 1 ./probe_tree hidden >/dev/null
	is "$(count_of probe_tree)" 3 'outside, children outlive a time limit'
	pkill -KILL -x probe_tree
	# in a temporary session
	run run --timeout 1s -- ./probe_tree chain
	is "$rc:$(count_of probe_tree)" 124:0 'a temporary session leaves nothing'
	run rm tree
	rm -f "$work/w/beat"
	allow "$session_files"
}

# kill -9 of the keeper: the kernel ends everything. First as it is, then with pid 1 stopped, so
# that it cannot notice the closed socket by itself.
case_keeper_death() {
	local how keeper init
	use tree
	for how in running stopped; do
		run run --session death --workspace "$work/w" -- ./probe_tree stay
		is "$rc" 0 "$how: the command ended"
		is "$(count_of probe_tree)" 3 "$how: its children live on"
		keeper=$(pgrep -f "^$top/bin/casemate-keeper" | while read -r pid; do
			[ -z "$(children_of "$pid")" ] || echo "$pid"
		done | head -n 1)
		init=$(children_of "$keeper" | head -n 1)
		[ -n "$keeper" ] && [ -n "$init" ]
		ok "$how: keeper and init are there"
		[ $how = running ] || kill -STOP "$init"
		kill -KILL "$keeper"
		until_true 2 none_of probe_tree
		is "$(count_of probe_tree)" 0 "$how: everything in the jail is gone"
		! kill -0 "$init" 2>/dev/null
		ok "$how: init is gone"
		pkill -KILL -x probe_tree
		! kill -0 "$init" 2>/dev/null || kill -KILL "$init"
	done
	run run --session death -- echo again
	is "$(out)" again 'the session starts again'
	run rm death
	allow "$session_files"
}

case_socket() {
	local socket
	use keeper
	run run --session sock --workspace "$work/w" -- true
	case $identity in
	root) socket=$(find /run/casemate -type s | head -n 1) ;;
	*) socket=$(find "$work/runtime" -type s | head -n 1) ;;
	esac
	[ -S "$socket" ]
	ok 'the session has a socket'
	as_caller ./probe_keeper "$socket" sock >"$work/out"
	is "$(out)" 'connect: reached
hello: reached' 'the control: the caller is answered'
	as_caller ./probe_keeper "$socket" other >"$work/out"
	like "$(out)" '*hello: refused EACCES' 'not under another name'
	if is_user; then
		as_caller unshare --user --map-current-user ./probe_keeper "$socket" sock >"$work/out"
		like "$(out)" '*hello: refused ECONNRESET' 'not in another user namespace'
		! is_root || {
			./probe_keeper "$socket" sock >"$work/out"
			like "$(out)" '*hello: refused ECONNRESET' 'not as another user, be it root'
		}
	else
		unshare --pid --fork ./probe_keeper "$socket" sock >"$work/out"
		like "$(out)" '*hello: refused ECONNRESET' 'not in another pid namespace'
		setpriv --reuid 12345 --regid 12345 --clear-groups ./probe_keeper "$socket" sock \
			>"$work/out"
		is "$(out)" 'connect: refused EACCES' 'not as another user'
	fi
	run run --session sock -- ./probe_keeper "$socket" sock
	is "$(out)" 'connect: refused ENOENT' 'from the jail there is no such path'
	run rm sock
	allow "$session_files"
}
