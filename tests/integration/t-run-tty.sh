#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Terminals: the jail's own, sized and resized as the caller's, with job control, and the caller's
# as it was at the end, whatever ended the command.
# shellcheck disable=SC2016
# SC2016: what single quotes keep from this shell is for the shell inside
. "$(dirname "${BASH_SOURCE[0]}")/lib-terminal.sh"

begin 'a terminal'
terminal end -- run -- sh -c 'tty; stty size; test -t 0 && test -t 1 && test -t 2 && echo all three; exit 5'
ended 5 'is what the command gets where stdin and stdout are terminals'
shown /dev/pts/0 'of the jail'"'"'s own'
shown '24 80' 'of the same size'
shown 'all three' 'for the three streams'
terminal end -- run --no-tty -- sh -c 'tty; test -t 1 || echo no terminal'
ended 0 '--no-tty'
shown 'not a tty' '--no-tty: stdin'
shown 'no terminal' '--no-tty: stdout'
run run -t -- sh -c 'tty; stty size' </dev/null
is "$(out | tr -d '\r' | head -n 1) $rc" '/dev/pts/0 0' '-t without a terminal outside'
got=$("${as[@]}" "$casemate" run -it -- sh -c 'read -r x; echo "got $x"' < <(echo hello; sleep 1) | tr -d '\r' | tail -n 1)
is "$got" 'got hello' '-it with stdin from a pipe'
finish

begin 'size'
terminal 'expect:ready' 'resize:40x100' 'expect:40 100' end -- run -- \
	bash -c 'trap "stty size; exit 0" WINCH; echo ready; while :; do sleep 0.05; done'
ended 0 'a resize is seen, and told by SIGWINCH'
finish

begin 'keys'
# exec: a shell that starts a child when the key comes may keep the signal from it
terminal 'expect:ready' 'send:\x03' end -- run -- sh -c 'echo ready; exec sleep 30'
ended 130 'Ctrl-C ends the command'
terminal 'expect:ready' 'send:\x03' 'expect:caught' end -- run -- \
	bash -c 'trap "echo caught; exit 9" INT; echo ready; while :; do sleep 0.05; done'
ended 9 'or is handled by it'
terminal 'expect:ready' 'send:\x1c' end -- run -- sh -c 'ulimit -c 0; echo ready; exec sleep 30'
ended 131 'Ctrl-\ too'
terminal 'expect:ready' 'send:some words\n\x04' 'expect:got some words' end -- run -- \
	sh -c 'echo ready; while read -r x; do echo "got $x"; done; exit 3'
ended 3 'Ctrl-D is the end of input'
finish

begin 'job control in a shell inside'
terminal 'expect:$ ' 'send:sleep 30\n' 'sleep:0.5' 'send:\x1a' 'expect:Stopped' \
	'send:jobs\n' 'expect:sleep 30' 'send:fg\n' 'expect:sleep 30' 'sleep:0.5' 'send:\x03' \
	'send:echo a$((1+1))b\n' 'expect:a2b' 'send:exit 6\n' end -- \
	run -e 'PS1=$ ' -- bash --norc --noprofile -i
ended 6 'Ctrl-Z, jobs, fg and Ctrl-C work'
[ "$(grep -c 'no job control' "$work/out")" = 0 ]
ok 'and bash does not complain'
finish

begin 'a shell outside'
$python "$driver" 'expect:$ ' "send:$casemate run -- cat\n" 'raw:yes' 'send:abc\n' \
	'expect:abc' "run:kill -TSTP \$(pgrep -n -f '^$casemate run')" 'expect:Stopped' 'raw:no' 'send:echo x$((1+1))y\n' 'expect:x2y' \
	'send:fg\n' 'raw:yes' 'send:def\n' 'expect:def' 'send:\x04' 'expect:$ ' 'raw:no' 'send:exit 0\n' end \
	-- "${as[@]}" env HISTFILE= 'PS1=$ ' bash --norc --noprofile --noediting -i >"$work/out" 2>"$work/err"
rc=$?
ended 0 'stops casemate with the terminal restored, and lets it go on'
finish

begin 'in the background of a shell'
in_shell "send:$casemate run -- sh -c 'tty; sleep 0.5; echo x\$((1+1))y' &\n" 'expect:not a tty' \
	'expect:x2y' 'send:wait %1; echo s$?t\n' 'expect:s0t'
ended 0 'it is no terminal for the command, which goes on'
in_shell "send:$casemate run -- sh -c 'echo x\$((1+1))y; exec sleep 30' &\n" 'expect:x2y' \
	'send:kill %1; wait %1; echo s$?t\n' 'expect:s143t'
ended 0 'TERM ends it'
in_shell "send:$casemate run -t -- sh -c 'echo x\$((1+1))y; exec sleep 30' &\n" 'expect:x2y' \
	'raw:no' 'send:kill %1; wait %1; echo s$?t\n' 'expect:s143t'
ended 0 'also one that was to have a terminal'
in_shell "send:$casemate run -- sh -c 'echo x\$((1+1))y; read -r a; echo got \$a' &\n" \
	'expect:x2y' 'send:echo a$((1+1))b\n' 'expect:a2b' 'send:fg\n' 'expect:run --' \
	'send:words\n' 'expect:got words' 'expect:$ '
ended 0 'what is typed goes to the shell, and after fg to the command'
in_shell "send:$casemate run -t -- sh -c 'echo x\$((1+1))y; exec cat' &\n" 'expect:x2y' 'send:fg\n' \
	'raw:yes' 'send:abc\n' 'expect:abc' 'expect:abc' 'send:\x04' 'expect:$ ' 'raw:no'
ended 0 'fg makes the terminal the command'"'"'s'
in_shell "send:$casemate run -- sh -c 'echo x\$((1+1))y; exec sleep 30'\n" 'raw:yes' 'expect:x2y' \
	"run:kill -TSTP \$(pgrep -n -f '^$casemate run')" 'expect:Stopped' 'send:bg\n' \
	'expect:&' 'sleep:0.3' 'raw:no' 'send:kill %1; wait %1; echo s$?t\n' 'expect:s143t'
ended 0 'stopped, it can go on there'
finish

begin 'the terminal is restored'
terminal 'expect:ready' end -- run -- sh -c 'stty raw -echo; echo ready; kill -9 $$'
ended 137 'after SIGKILL of the command'
terminal 'raw:yes' 'expect:ready' "run:kill -9 \$(pgrep -f '^$top/bin/casemate-keeper' | head -n 1)" end -- \
	run -- sh -c 'echo ready; sleep 30'
ended 137 'after SIGKILL of the keeper'
terminal 'raw:yes' 'expect:ready' 'signal:TERM' end -- run -- sh -c 'echo ready; sleep 30'
ended 143 'after SIGTERM of casemate'
terminal 'raw:yes' 'expect:ready' 'signal:HUP' end -- run -- sh -c 'echo ready; sleep 30'
ended 129 'after SIGHUP'
terminal end -- run --timeout 300ms -- sh -c 'trap "" TERM; sleep 1; sleep 30'
ended 124 'after the time limit'
terminal end -- run -- no-such-program
ended 127 'when the command cannot be executed'
terminal end -- run -w /no/such -- true
ended 125 'when it does not start'
finish

begin 'output'
terminal end -- run -- sh -c 'i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done; exit 4'
ended 4 'a lot of it'
is "$(tr -d '\r' <"$work/out" | grep -c '^line ')" 20000 'comes whole'
terminal 'expect:ready' end -- run -- sh -c 'setsid sleep 30 & echo ready'
ended 0 'a grandchild that holds the terminal does not delay the end'
finish

# A terminal of the caller's whose output was stopped, where keys are not the jail's: what is written
# to it waits, and signals do not.
# shellcheck disable=SC2034
begin 'a terminal that was stopped'
for more in 'echo more; echo more; exec sleep 30' 'exec yes' 'yes & exec sleep 30' 'exec yes >&2'; do
	terminal 'expect:ready' 'send:\x13' 'sleep:0.3' 'signal:TERM' end -- \
		run --no-tty -- sh -c "echo ready; sleep 0.2; $more"
	ended 143 "SIGTERM ends it: $more"
done
terminal 'expect:ready' 'send:\x13' 'sleep:0.3' 'send:\x11' 'expect:over' end -- \
	run --no-tty -- sh -c 'echo ready; sleep 0.2; seq 20000; echo over; exit 3'
ended 3 'it goes on where it was'
is "$(tr -d '\r' <"$work/out" | grep -c '^[0-9]*$')" 20000 'with all of it'
terminal 'expect:ready' 'send:\x13' 'sleep:0.3' 'signal:TERM' end -- \
	run --session stopped --setup 'echo ready; sleep 0.2; exec yes' -- true
ended 143 'also while a session is set up'
run rm --files stopped
terminal 'expect:ready' 'send:\x13' 'sleep:0.3' 'signal:TERM' end -- \
	run --session stopped --setup 'echo ready; exec sleep 0.5' --setup 'sleep 30' -- true
ended 143 'or between its commands'
run rm --files stopped
finish

# How often the screen shows a line.
lines() { tr -d '\r' <"$work/out" | grep -cx -- "$1"; }

begin 'input that is no terminal and ends'
limit=15
run run -t -- sh < <(echo cat)
expect_status 0 'ends a shell, and before it what the shell runs'
run run -t -- sh < <(echo 'cat; cat; exit 4')
expect_status 4 'as often as somebody reads'
run run -t -- cat < <(printf 'one\ntwo')
like "$rc $(out)" '0 *one*one*' 'a line comes'
like "$(out)" '*two*two*' 'and what comes after the last line end'
run run -t -- sh -c 'sleep 0.5; cat; echo over; exit 5' </dev/null
is "$rc $(lines over)" '5 1' 'no input at all'
run run -t -- sh -c 'stty eof ^A; cat; echo over' < <(sleep 0.5; echo x)
is "$rc $(lines over)" '0 1' 'by the character that the terminal has for it'
run run -t -- sh -c 'stty -echo; cat; exit 6' < <(sleep 0.5; seq 20000)
is "$rc $(lines '[0-9]*')" '6 20000' 'a lot of it comes whole'
run run -t --session eof -- sh < <(echo cat)
expect_status 0 'in a session that stays'
run rm --files eof
run run -t -- bash --norc --noprofile -i < <(echo cat; sleep 0.5)
expect_status 0 'a shell that edits its line'
run run -t -- bash --norc --noprofile -i < <(echo 'cat; sleep 0.3; /usr/bin/python3 -q; (exit 7)')
expect_status 7 'and another program that does, in it'
run run -t -- sh -c 'sleep 1.5; exit 8' </dev/null
expect_status 8 'who does not read is not disturbed'
run run -t -- sh -c 'exec 0<&- 1>&- 2>&-; sleep 0.3; exit 7' </dev/null
expect_status 7 'who closes the terminal before it ends is not hung up'
run run -t -- sh -c 'exec 3>&1 0<&- 1>&- 2>&- 3>&-; sleep 0.3; echo again >/dev/tty; exit 7' </dev/null
is "$rc $(lines again)" '7 1' 'and may open it again'
run run -t -- sh -c 'stty raw -echo; timeout 3 cat | wc -c' </dev/null
[ "$(tr -dc 0-9 <"$work/out")" -le 10 ]
ok 'nor is who takes every key flooded with them'
limit=60
finish

begin 'programs that paint the screen'
if need TOOLS vi vi; then
	terminal 'sleep:0.7' 'send:ihello\x1b:wq\r' end -- run -e TERM=xterm -- vi file
	ended 0 'vi'
	is "$(cat "$work/w/file" 2>/dev/null)" hello 'vi writes'
	rm -f "$work/w"/* "$work/w"/.*.sw?
fi
if need TOOLS less less; then
	seq 1000 >"$work/w/lines"
	terminal 'expect:20' 'send:G' 'expect:1000' 'send:q' end -- run -e TERM=xterm -- less lines
	ended 0 less
	rm -f "$work/w/lines"
fi
if need TOOLS top top; then
	terminal 'expect:PID' 'send:q' end -- run -e TERM=xterm -- top -d 0.5
	ended 0 'top'
fi
if need TOOLS tmux tmux; then
	tmux=("${as[@]}" tmux -S "$work/runtime/tmux" -f /dev/null)
	"${tmux[@]}" new-session -d -x 90 -y 30 "$casemate run -- bash --norc; echo status \$?; sleep 30"
	until_true 10 sh -c "$(printf '%q ' "${tmux[@]}") capture-pane -p | grep -q '\\$'"
	"${tmux[@]}" send-keys 'stty size; tty; exit 12' Enter
	until_true 10 sh -c "$(printf '%q ' "${tmux[@]}") capture-pane -p | grep -q 'status 12'"
	ok 'a shell under tmux'
	"${tmux[@]}" capture-pane -p >"$work/out"
	shown '30 90' 'sized as the pane'
	"${tmux[@]}" kill-server
	rm -f "$work/runtime/tmux"
fi
finish

done_testing
