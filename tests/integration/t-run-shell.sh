#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Terminals of sessions: `shell` and `exec -t`, with sizes, keys and job control, and the caller's
# terminal as it was, whatever ended the command, the keeper or the session.
# shellcheck disable=SC2016
# SC2016: what single quotes keep from this shell is for the shell inside
. "$(dirname "${BASH_SOURCE[0]}")/lib-terminal.sh"

# how bash's prompt ends
prompt='$ '
shell=(shell s -e SHELL=/bin/bash -e HISTFILE=)
keeper_of() { cm events "$1" --type session.started | tail -n 1 | sed -n 's/.*"keeperPid":\([0-9]*\).*/\1/p'; }

begin shell
run start s
terminal "expect:$prompt" 'send:tty; stty size; echo a$((1+1))b\n' 'expect:a2b' 'send:exit 7\n' end -- "${shell[@]}"
ended 7 'has a status'
shown /dev/pts/ 'and a terminal of the jail'"'"'s'
shown '24 80' 'of the caller'"'"'s size'
terminal "expect:$prompt" 'resize:33x101' 'send:stty size\n' 'expect:33 101' 'send:exit\n' end -- "${shell[@]}"
ended 0 'which follows it'
terminal "expect:$prompt" 'send:sleep 60\n' 'sleep:0.5' 'send:\x03' "expect:$prompt" \
	'send:echo s$?t\n' 'expect:s130t' 'send:exit 3\n' end -- "${shell[@]}"
ended 3 'Ctrl-C ends the program, and not the shell'
terminal "expect:$prompt" 'send:sleep 60\n' 'sleep:0.5' 'send:\x1a' 'expect:Stopped' 'send:jobs\n' \
	'expect:sleep 60' 'send:fg\n' 'expect:sleep 60' 'sleep:0.5' 'send:\x03' 'send:echo a$((1+1))b\n' \
	'expect:a2b' 'send:exit 6\n' end -- "${shell[@]}"
ended 6 'Ctrl-Z, jobs and fg'
is "$(grep -c 'no job control' "$work/out")" 0 'and bash does not complain'
terminal "expect:$prompt" 'send:sleep 300 & echo p$!q\n' 'expect:q' 'send:exit\n' end -- "${shell[@]}"
ended 0 'what it leaves in the background does not delay its end'
terminal "expect:$prompt" 'send:\x04' end -- "${shell[@]}"
ended 0 'Ctrl-D ends it'
run rm --files s
finish

begin 'the terminal is restored'
run start s
terminal 'raw:yes' 'expect:ready' 'signal:TERM' end -- exec -t -i s -- sh -c 'echo ready; exec sleep 60'
ended 143 'after SIGTERM of casemate'
terminal 'raw:yes' 'expect:ready' 'signal:HUP' end -- exec -t -i s -- sh -c 'echo ready; exec sleep 60'
ended 129 'after SIGHUP'
terminal 'expect:ready' end -- exec -t -i s -- sh -c 'stty raw -echo; echo ready; kill -9 $$'
ended 137 'after SIGKILL of the command'
terminal 'raw:yes' 'expect:ready' "run:kill -9 $(keeper_of s)" end -- exec -t -i s -- sh -c 'echo ready; exec sleep 60'
ended 137 'after SIGKILL of the keeper'
run start s
terminal 'raw:yes' 'expect:ready' "run:$(printf '%q ' "${as[@]}" "$casemate" stop s)" end -- exec -t -i s -- \
	sh -c 'echo ready; exec sleep 60'
ended 137 'after the end of the session'
run start s
terminal end -- exec -t -i s --timeout 300ms -- sh -c 'trap "" TERM; sleep 1; sleep 60'
ended 124 'after the time limit'
terminal end -- exec -t -i s -- no-such-program
ended 127 'when the command cannot be executed'
run rm --files s
finish

begin 'programs that paint the screen'
run start s
if need TOOLS vi vi; then
	terminal 'sleep:0.7' 'resize:30x90' 'sleep:0.3' 'send:ihello\x1b:wq\r' end -- exec -t -i s -e TERM=xterm -- vi file
	ended 0 vi
	run exec s -- cat file
	expect_out hello 'vi writes'
fi
if need TOOLS less less; then
	run exec s -- sh -c 'seq 1000 >lines'
	# a pause: while it paints, less loses a resize and the next key, also without a jail
	terminal 'expect:lines' 'sleep:0.5' 'resize:12x60' 'sleep:0.5' 'send:G' 'expect:1000' 'send:q' end -- \
		exec -t -i s -e TERM=xterm -- less lines
	ended 0 less
fi
if need TOOLS top top; then
	terminal 'expect:PID' 'resize:40x120' 'expect:PID' 'send:q' end -- \
		exec -t -i s -e TERM=xterm -- top -d 0.5
	ended 0 top
fi
if need TOOLS tmux 'under tmux'; then
	tmux=("${as[@]}" tmux -S "$work/runtime/tmux" -f /dev/null)
	pane() { "${tmux[@]}" capture-pane -p; }
	pane_shows() { pane | grep -q -- "$1"; } # REGEX
	stop_tmux() { "${tmux[@]}" kill-server 2>/dev/null; }
	ends+=(stop_tmux)
	"${tmux[@]}" new-session -d -x 90 -y 30 \
		"$(printf '%q ' "$casemate" "${shell[@]}" -e TERM=screen); echo status \$?; sleep 30"
	until_true 10 pane_shows '\$ *$'
	"${tmux[@]}" send-keys 'stty size' Enter
	until_true 10 pane_shows '^30 90'
	ok 'a shell under tmux has the size of the pane'
	if command -v less >/dev/null; then
		"${tmux[@]}" send-keys 'less lines' Enter
		until_true 10 pane_shows '^20$' && "${tmux[@]}" send-keys G &&
			until_true 10 pane_shows '^1000$' && "${tmux[@]}" send-keys q &&
			until_true 10 pane_shows '\$ *$'
		ok 'less in it'
	fi
	if command -v top >/dev/null; then
		"${tmux[@]}" send-keys 'top -d 0.5' Enter
		until_true 10 pane_shows 'PID' && "${tmux[@]}" send-keys q &&
			until_true 10 pane_shows '\$ *$'
		ok 'top in it'
	fi
	if command -v vi >/dev/null; then
		"${tmux[@]}" send-keys 'vi by-tmux' Enter
		until_true 10 pane_shows '^~'
		"${tmux[@]}" send-keys 'iwritten' Escape
		sleep 0.5
		"${tmux[@]}" send-keys ':wq' Enter
		until_true 10 cm exec s -- grep -q written by-tmux
		ok 'vi in it'
	fi
	"${tmux[@]}" send-keys 'clear; exit 12' Enter
	until_true 10 pane_shows 'status 12'
	ok 'and its status comes'
	stop_tmux
	rm -f "$work/runtime/tmux"
fi
run rm --files s
finish

done_testing
