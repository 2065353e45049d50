#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# casemate attach to a command with a terminal, and stats on one: what is typed and painted, who
# leaves, and the caller's terminal as it was.
# shellcheck disable=SC2016
# SC2016: what single quotes keep from this shell is for the shell inside
. "$(dirname "${BASH_SOURCE[0]}")/lib-terminal.sh"

# detach ARGUMENT...: an exec id in $id
detach() { id=$(cm exec -d s "$@") || bail "cannot start: $*"; }
printed() { cm logs s "$id" | grep -q "$1"; }
runs() { cm ps -q s | grep -qx "$id" && cm ps s | grep -q "^$id  *running"; }

keeper_of() { # the keeper itself, not its init: its parent is not a keeper
	local pid exe
	for pid in $(our_processes); do
		exe=$(readlink "/proc/$pid/exe") || continue
		[ "$exe" = "$top/bin/casemate-keeper" ] || continue
		exe=$(readlink "/proc/$(awk '{ print $4 }' "/proc/$pid/stat")/exe")
		[ "$exe" = "$top/bin/casemate-keeper" ] || echo "$pid"
	done
}

begin 'a shell'
run start s
shell=(-t -e 'PS1=$ ' -- bash --norc --noprofile -i)
detach "${shell[@]}"
terminal 'raw:yes' 'send:echo a$((1+1))b\n' 'expect:a2b' 'send:stty size; tty\n' 'expect:24 80' \
	'expect:/dev/pts/0' 'send:exit 7\n' end -- attach s "$id"
ended 7 'is typed at, sized as the terminal outside, and gives its status'
detach "${shell[@]}"
terminal 'raw:yes' 'send:x=5\n' 'send:\x10\x11' end -- attach s "$id"
ended 0 'Ctrl-P Ctrl-Q leaves it'
like "$(tr -d '\r' <"$work/out")" "*command $id goes on: 'casemate attach s $id'*" 'and says so'
runs
ok 'it goes on'
terminal 'raw:yes' 'send:echo $x$x\n' 'expect:55' 'send:\x10' 'sleep:0.2' 'send:\n' 'expect:55' \
	'sleep:0.3' 'send:\x10\x11' end -- attach s "$id"
ended 0 'is as it was when one comes back, and gets a Ctrl-P of its own'
terminal 'raw:yes' 'resize:40x100' 'sleep:0.3' 'send:stty size\n' 'expect:40 100' \
	'send:\x10\x11' end -- attach s "$id"
ended 0 'follows the size'
terminal 'raw:yes' 'send:sleep 300\n' 'expect:sleep 300' 'sleep:0.5' 'send:\x03' 'send:echo s$?t\n' \
	'expect:s130t' 'send:sleep 300\n' 'sleep:0.5' 'send:\x1a' 'expect:Stopped' 'send:kill %1\n' \
	'send:\x10\x11' end -- attach s "$id"
ended 0 'Ctrl-C and Ctrl-Z are keys of its terminal'
terminal 'raw:yes' 'send:sleep 300\n' 'expect:sleep 300' 'sleep:0.5' 'signal:INT' 'sleep:0.3' \
	'send:echo s$?t\n' 'expect:s130t' 'send:\x10\x11' end -- attach s "$id"
ended 0 'and so is a signal INT'
terminal 'raw:yes' 'send:echo a$((1+1))b\n' 'expect:a2b' 'signal:TERM' end -- attach s "$id"
ended 143 'TERM leaves, with the terminal as it was'
terminal 'raw:yes' 'signal:HUP' end -- attach s "$id"
ended 129 'HUP, too'
runs
ok 'and it goes on'
terminal 'sleep:0.3' 'raw:no' 'signal:INT' end -- attach --no-stdin s "$id"
ended 130 'who looks on keeps his keys'
terminal end -- attach -n 2 s 1.1
ended 7 'one that has ended'
run attach s "$id" < <(printf 'echo a$((2+2))b\n'; sleep 0.5)
like "$rc $(out)" '0 *a4b*' 'input from a pipe is typed, with its end'
detach "${shell[@]}"
terminal 'raw:yes' 'send:echo a$((1+1))b\n' 'expect:a2b' "run:kill -9 $(keeper_of)" end -- attach s "$id"
ended 125 'its keeper is killed: the terminal is as it was'
run start s
detach "${shell[@]}"
terminal 'raw:yes' "run:$(printf '%q ' env "${as[@]}" "$casemate" stop s)" end -- attach s "$id"
ended 137 'the session is stopped meanwhile'
run rm --files s
finish

# in_shell STEP...: at the prompt of a shell with jobs
in_shell() {
	last_args='in a shell'
	$python "$driver" 'expect:$ ' "$@" 'send:exit 0\n' end -- "${as[@]}" env HISTFILE= 'PS1=$ ' \
		bash --norc --noprofile --noediting -i >"$work/out" 2>"$work/err"
	rc=$?
}

begin 'a shell outside'
run start s
detach -t -- sh -c 'while read -r a; do echo "got $a"; done'
in_shell "send:$casemate attach s $id\n" 'raw:yes' 'send:one\n' 'expect:got one' \
	"run:kill -TSTP \$(pgrep -n -f '^$casemate attach')" 'expect:Stopped' 'raw:no' \
	'send:echo x$((1+1))y\n' 'expect:x2y' 'send:fg\n' 'raw:yes' 'send:two\n' 'expect:got two' \
	'send:\x10\x11' 'raw:no' 'expect:$ '
ended 0 'stops it with the terminal restored, and lets it go on'
in_shell "send:$casemate attach s $id &\n" 'expect:$ ' 'raw:no' 'send:echo x$((1+1))y\n' 'expect:x2y' \
	'send:fg\n' 'raw:yes' 'send:three\n' 'expect:got three' 'send:\x10\x11' 'raw:no' 'expect:$ '
ended 0 'in its background it leaves the terminal alone'
run rm --files s
finish

begin 'what is no terminal of the command'
run start s
detach -i -- sh -c 'printf "\033]0;title\007\033[31mred\n"; read -r a; echo "got $a"; sleep 0.5; exit 3'
until_true 10 printed red
terminal 'raw:no' 'expect:\\x1b[31mred' 'send:words\n' 'expect:got words' end -- attach -n 5 s "$id"
ended 3 'is escaped on a terminal'
is "$(grep -c "$(printf '\033')" "$work/out")" 0 'all of it'
detach -t -- sh -c 'exec 3>&1 0<&- 1>&- 2>&- 3>&-; sleep 0.3; echo again >/dev/tty; sleep 0.2; exit 7'
run wait s "$id"
is "$rc $(cm logs s "$id" | tr -d '\r')" '7 again' \
	'who closes its terminal before it ends is not hung up, and may open it again'
detach -- sleep 300
terminal 'sleep:0.5' 'send:\x03' end -- attach s "$id"
ended 130 'Ctrl-C leaves it'
runs
ok 'and it goes on'
terminal 'sleep:0.5' 'send:\x03' end -- wait s "$id"
ended 130 'wait, too'
runs
ok 'and it goes on then'
run rm --files s
finish

# Keys are not the command's here: ^S stops the terminal, and what is written to it waits.
begin 'a terminal that was stopped'
run start s
for command in 'exec yes' 'exec yes >&2'; do
	# the terminal is root's: another user cannot open it again, and may be held up (outlet.h)
	[ "$identity" = root ] || continue
	detach -- sh -c "$command"
	terminal 'expect:y' 'send:\x13' 'sleep:0.5' 'signal:TERM' end -- attach -n 5 s "$id"
	ended 143 "SIGTERM ends it: $command"
	cm kill s "$id" >/dev/null 2>&1
done
detach -- sh -c 'echo ready; sleep 0.6; seq 20000; echo over; exit 3'
terminal 'expect:ready' 'send:\x13' 'sleep:1' 'send:\x11' 'expect:over' end -- attach -n 5 s "$id"
ended 3 'it goes on where it was'
is "$(tr -d '\r' <"$work/out" | grep -c '^[0-9]*$')" 20000 'with all of it'
cm rm --files s
finish

begin 'programs that paint the screen'
run start s
if need TOOLS vi vi; then
	detach -t -e TERM=xterm -- vi file
	sleep 0.7
	terminal 'expect:~' 'send:ihello\x1b' 'sleep:0.3' 'send:\x10\x11' end -- attach s "$id"
	ended 0 'vi paints anew for who comes'
	terminal 'expect:hello' 'resize:30x90' 'expect:hello' 'send::wq\r' end -- attach s "$id"
	ended 0 'and again, also at another size, and quits'
	is "$(cat "$root/s/file" 2>/dev/null)" hello 'vi writes'
fi
if need TOOLS less less; then
	seq 1000 >"$work/lines"
	give "$work/lines"
	cm exec -i s -- sh -c 'cat >lines' <"$work/lines"
	detach -t -e TERM=xterm -- less lines
	sleep 0.5
	# while it paints for a new size less passes over what is typed
	terminal 'expect:20' 'sleep:0.3' 'send:G' 'sleep:0.7' 'send:G' 'sleep:1' 'send:G' 'expect:1000' 'resize:30x90' \
		'expect:1000' 'send:\x10\x11' end -- attach s "$id"
	ended 0 'less'
	terminal 'expect:1000' 'sleep:0.7' 'send:q' end -- attach s "$id"
	ended 0 'less quits'
fi
if need TOOLS top top; then
	detach -t -e TERM=xterm -- top -d 60
	sleep 0.5
	terminal 'expect:PID' 'resize:30x90' 'expect:PID' 'send:q' end -- attach s "$id"
	ended 0 'top'
fi
run rm --files s
finish

begin 'stats on a terminal'
run start s
detach -- sleep 300
terminal 'expect:\x1b[?1049h' 'expect:CMDS' 'expect:s   ' 'expect:s   ' 'send:\x03' 'expect:\x1b[?1049l' end -- stats
ended 0 'is drawn again and again, until Ctrl-C'
terminal 'expect:CMDS' 'signal:TERM' 'expect:\x1b[?1049l' end -- stats s
ended 143 'or TERM'
terminal 'expect:s   ' "run:$(printf '%q ' env "${as[@]}" "$casemate" stop s)" 'expect:\x1b[?1049l' end -- stats s
ended 0 'or until the last one that was named has ended'
terminal end -- stats s
ended 125 'of one that does not run there is nothing to draw'
run start s
terminal 'expect:CMDS' 'expect:s   ' end -- stats --once s
ended 0 '--once'
is "$(grep -c '1049' "$work/out")" 0 'stays on the screen'
run rm --files s
finish

done_testing
