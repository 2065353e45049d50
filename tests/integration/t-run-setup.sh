#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Setup: its marker, its output, what it leaves when it fails or is killed, and going on from there.
# shellcheck disable=SC2016
# SC2016: what single quotes keep from this shell is for the shell inside
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/lib-repo.sh"

digest_of() { printf '%s' "$1" | sha256sum | cut -d' ' -f1; }

begin 'the marker'
repository "$work/w"
start_files
run run --session m --repo . --setup 'echo one >>made' --setup '  ' --setup ' echo two >>made ' -- cat made
expect_out 'one
two' 'commands run in order'
printf 'sha256:%s' "$(digest_of $'echo one >>made\n echo two >>made ')" >"$work/want"
cmp "$root/m/.mastra-sandbox/setup" "$work/want"
ok 'is what Mastra writes, byte for byte: no newline, and no blank command in its digest'
is "$(stat -c %a "$root/m/.mastra-sandbox/setup")" 644 'and can be read by others'
run run --session m --setup 'echo one >>made' --setup ' echo two >>made ' -- cat made
is "$(out)
$(err)" 'one
two
' 'nor do blank commands make others of them'
run rm --files --force m
finish

state_of() { cm inspect "$1" | sed -n 's/^state *//p'; }

# The content of a kept log, behind its header.
kept() { tail -c +17 "$(state_of "$1")/setup.log"; }

begin 'output'
repository "$work/w"
start_files
run run --repo . --setup 'echo out; echo err >&2' -- echo command
expect_out command 'of setup is none of the command'
is "$(err | grep -c -x -e out -e err)" 2 'and is shown on standard error'
run run --repo . --setup 'echo out; printf "\033[1mbold\n"' --json -- echo command
is "$(wc -l <"$work/out") $(json stdout)" '1 command\n' 'nor of the object of --json'
grep -q "$(printf '\033')\\[1mbold" "$work/err"
ok 'its bytes are as it wrote them'
run run -q --repo . --setup 'echo out; echo err >&2' -- echo command
is "$(out) $(err)" 'command ' 'with -q it is not shown'
run run -q --repo . --setup 'echo said >&2; exit 3' -- echo command
is "$rc $(err | head -n 1)" '125 said' 'unless it failed'
start run --repo . --setup 'echo begun; sleep 20' -- true
until_true 10 grep -qx begun "$work/err"
ok 'it is shown as it comes'
kill -TERM "$bg"
wait_bg
# a reader that goes away is no reason to fail
cm run --session o --repo . --setup 'seq 100000; echo last' -- echo command 2>&1 >"$work/out" | head -n 1 >"$work/first"
expect_out command 'a reader of it that has gone away changes nothing'
is "$(kept o | tail -n 1)" last 'and all of it is kept'
run rm --files --force o
run run --session o --repo . --setup 'echo kept; echo too >&2' --setup 'seq 400000; echo last >&2' -q -- true
is "$rc $(stat -c '%a %F' "$(state_of o)/setup.log")" '0 600 regular file' 'is kept where nobody else can read it'
is "$(kept o | head -n 2 | sort | tr '\n' ' ')" 'kept too ' 'from its beginning'
is "$(($(stat -c %s "$(state_of o)/setup.log") <= 1024 * 1024 + 64))" 1 'up to a bound'
run rm --files --force o
is "$(find "$work" /var/lib/casemate /run/casemate -name setup.log 2>/dev/null)" '' 'until the session goes'
finish

begin 'a setup that fails'
repository "$work/w"
start_files
run run --session f --repo . --setup 'seq 1000; printf "äö%.0s" $(seq 2000); echo end; exit 4' --result "$work/result" -- true
is "$rc $(json phase "$work/result") $(json code "$work/result") $(json exit "$work/result")" '125 setup setup 4' \
	'the result has its exit status'
is "$(json reason "$work/result") $(grep -o '"phases":.*]' "$work/result" | grep -o '"name":"[a-z]*' | cut -d'"' -f4 | tr '\n' ' ')" \
	'setup-failed checkout jail ' 'why it failed, and the phases before'
python3 - "$work/result" <<'EOF'
import json, sys
setup = json.load(open(sys.argv[1], encoding='utf-8'))['setup']
tail = setup['tail']
assert setup['state'] == 'failed' and setup['durationMs'] >= 0, setup
assert tail.endswith('äöend\n') and '\ufffd' not in tail, tail
assert 1790 <= len(tail.encode()) <= 1800, len(tail.encode())
EOF
ok 'and the end of what it printed, in whole characters'
run run --session f -- echo usable
is "$rc $(out)" '0 usable' 'the session can be used'
run rm --files --force f
run run --repo . --setup 'echo fine' --json -- true
like "$(out)" '*"setup":{"state":"done","exit":0,"durationMs":*,"tail":"fine\\n"}*' 'one that ran is in the result, too'
run run --repo . --json -- true
! grep -q '"setup":' "$work/out"
ok 'one that did not is not'
failed_for() { # REASON DETAIL NAME ARGUMENT...
	local reason=$1 detail=$2 name=$3
	shift 3
	run run --result "$work/result" "$@"
	is "$rc $(json reason "$work/result") $(json detail "$work/result")" "125 $reason $detail" "$name"
}
failed_for clone-failed missing-branch 'a branch that is not there' --repo . --ref none -- true
failed_for clone-failed missing-repository 'a repository that is not there' --repo "$work/none" -- true
failed_for egress-blocked connection 'a server that is not there' --repo http://127.0.0.1:1/x -- true
failed_for egress-blocked name 'a host that is not there' --repo https://no-such-host.invalid/x -- true
failed_for setup-failed missing-secret 'a secret that is not there' --repo . --setup true --setup-secret NONE -- true
rm -f "$work/result"
finish

# The keeper's pid, and that of the jail's init, which is the same program and its child.
keeper_and_init() {
	local pid parent
	for pid in $(our_processes); do
		[[ $(readlink "/proc/$pid/exe" 2>/dev/null) == */casemate-keeper ]] || continue
		parent=$(awk '/^PPid:/ { print $2 }' "/proc/$pid/status")
		[[ $(readlink "/proc/$parent/exe" 2>/dev/null) != */casemate-keeper ]] || echo "$parent $pid"
	done | head -n 1
}

# Whoever of the three is killed in the middle: the session is whole, and its setup is due.
begin 'setup that is killed'
repository "$work/w"
start_files
half='echo said; echo half >>tries; [ $(wc -l <tries) -gt 1 ] || sleep 30; touch done'
for who in client keeper init; do
	start run --session k --repo . --setup "$half" --result "$work/result" -- true
	until_true 10 grep -q half "$root/k/w/tries"
	read -r keeper init < <(keeper_and_init)
	case $who in
	client) kill -KILL "$bg" ;;
	keeper) kill -KILL "$keeper" ;;
	init) kill -KILL "$init" ;;
	esac
	wait_bg
	if [ $who = client ]; then
		is "$rc" 137 "$who: it is dead"
	else
		is "$rc $(json phase "$work/result") $(json state "$work/result")" '125 setup interrupted' "$who: the result says so"
		like "$(err)" "*casemate: the jail ended while session 'k' was set up: *
hint: *" "$who: in words, too"
	fi
	rm -f "$work/result"
	is "$(kept k)" said "$who: what it had printed is kept"
	[ $who != client ] || until_true 10 sh -c '! pgrep -x sleep'
	run run --session k --setup "$half" -- sh -c 'cat tries; ls done'
	is "$rc $(out)" '0 half
half
done' "$who: the next run with it runs it again"
	like "$(err)" "note: setup of session 'k' began * ago and came to no end; it is run again*" "$who: and says why"
	run run --session k --setup "$half" -- cat tries
	is "$(out) $(err)" 'half
half ' "$who: once"
	run rm --files --force k
done
finish

begin 'casemate setup'
repository "$work/w"
start_files
try='echo said; echo try >>tries; test -e repaired || exit 4'
run run --session s --repo . --setup "$try" --setup 'echo two >>tries' -- true
expect_status 125 'after one that failed'
like "$(err)" "*hint: repair it inside: casemate run --session s -- COMMAND; then 'casemate setup s --retry' runs it again" \
	'which says how to go on'
run setup s
like "$(out)" "setup         failed
exit          4
ended         * ago)
took          *
digest        sha256:$(digest_of "$try"$'\n''echo two >>tries')
command       $try
command       echo two >>tries" 'shows how it went'
run setup s --json
python3 - "$work/out" "$try" <<'EOF'
import json, sys
o = json.load(open(sys.argv[1]))
assert o['session'] == 's' and o['state'] == 'failed' and o['exit'] == 4, o
assert o['commands'] == [sys.argv[2], 'echo two >>tries'] and o['began'] is None and o['ended'], o
EOF
ok 'in JSON, too'
run setup s --log
is "$rc $(out)" '0 said' '--log shows what it printed'
run setup s --log --json
like "$(out)" '*"log": "said\\n"*' '--log --json is an object'
run setup s --retry
is "$rc $(out)" '125 ' '--retry runs it again'
run run --session s -- sh -c 'cat tries; touch repaired'
expect_out 'try
try' 'once'
run stop s
run setup s --retry --json
is "$rc $(sed -n 's/^ *"state": "\(.*\)",$/\1/p' "$work/out")" '0 done' 'of a session that was repaired it ends well'
grep -qx said "$work/err"
ok 'with its output on standard error'
run run --session s --setup "$try" --setup 'echo two >>tries' -- sort tries
is "$(out) $(err)" 'try
try
try
two ' 'and is not run by the next run'
is "$(cat "$root/s/.mastra-sandbox/setup")" "sha256:$(digest_of "$try"$'\n''echo two >>tries')" 'the marker is there'
run setup s --retry -q
is "$rc $(out)$(err)" '0 ' 'also one that went well can be run again, quietly'
run setup s --retry --log
refused '--retry, --mark-done and --log contradict each other' '*' 'more than one of the options'
run setup none
refused "session 'none' not found" '*' 'a session that is not there'
run setup
refused "'setup' takes one session, not 0" '*' 'none'
run rm --files --force s
finish

begin 'setup that is marked as done'
repository "$work/w"
start_files
run run --session d --repo . --setup 'echo try >>tries; exit 4' -- true
run setup d --mark-done
is "$rc $(out)$(err)" '0 ' 'without a word'
run setup d
like "$(out)" 'setup         done
exit          0
*' 'is done'
run run --session d --setup 'echo try >>tries; exit 4' -- cat tries
is "$rc $(out) $(err)" '0 try ' 'and is not run'
run rm --files --force d
run run --session d -- true
run setup d
expect_out 'setup         not run' 'a session without any'
run setup d --log
refused "session 'd': no output of setup is kept" '*' 'has no output of it'
run setup d --retry
refused "session 'd' has no setup commands" '*' 'nor commands to run again'
run setup d --mark-done
run run --session d --setup 'touch ran' -- ls
is "$(out)" '' 'where it is marked, later commands are not run'
run rm --files --force d
finish

begin 'setup that was interrupted, or runs'
repository "$work/w"
start_files
start run --session i --repo . --setup 'echo half >>tries; [ -e again ] || sleep 30' -- true
until_true 10 grep -q half "$root/i/w/tries"
cm setup i >"$work/now"
is "$(head -n 1 "$work/now")" 'setup         running' 'one that runs is shown as such'
kill -INT "$bg"
wait_bg
is "$rc" 130 'it is interrupted'
run setup i
like "$(out)" 'setup         interrupted
began         * ago)
digest*' 'which is shown'
run run --session i -- touch again
like "$rc $(err)" "0 note: session 'i' is not set up yet (it was interrupted): 'casemate setup i --retry' does it" 'a run without the commands says so'
run setup i --retry
is "$rc $(cm run --session i -- cat tries)" '0 half
half' '--retry runs it'
run rm --files --force i
for n in 1 2 3 4 5 6 7 8 9 10; do
	cm run --session many --repo . --setup 'echo run >>count; sleep 0.3' -- cat count >"$work/out$n" 2>&1 &
done
wait_jobs
is "$(grep -hc '^run$' "$work"/out? "$work/out10" | sort | uniq -c | tr -s ' ')" ' 10 1' 'ten first runs at once run it once'
run rm --files --force many
finish

begin 'a secret of setup'
repository "$work/w"
start_files
secret=s3cr3t-$RANDOM-$RANDOM
use='[ "$(printf %s "$TOKEN" | sha256sum)" = "'$(printf %s "$secret" | sha256sum)'" ] && echo got it >said'
everything='env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline; find / -xdev -type f -size -64k \
	-newer /proc/self/exe -exec cat {} + 2>/dev/null; echo; cat said'
export TOKEN=$secret
run run --session s --repo . --setup "$use" --setup-secret TOKEN --pass-env 'TOK*' -e TOKEN --result "$work/result" -- \
	sh -c "$everything"
is "$rc $(tail -n 1 "$work/out")" '0 got it' 'is there while setup runs'
! grep -qaF "$secret" "$work/out"
ok 'and nowhere in the jail of the session, whatever passes the variable'
is "$(traces "$secret")" '' 'nor outside, while the session runs'
echo "$secret" >"$work/home/found"
is "$(traces "$secret")" "$work/home/found" 'where it is it would be found'
rm "$work/home/found"
run setup s
like "$(out)" '*secret        TOKEN' 'its name is kept'
run stop s
run setup s --retry -q
is "$rc $(err)" '0 ' 'with which it can be run again'
unset TOKEN
run stop s
run setup s --retry
refused "the variable 'TOKEN' of --setup-secret is not set" 'export it: *' 'but not without its value'
TOKEN=$secret run setup s --retry
expect_status 0 'a session that was not stopped since can be used'
TOKEN=$secret run run --session s -- true
TOKEN=$secret run setup s --retry
refused "session 's' runs, and its setup may do more than it" "'casemate stop s' first: *" 'one that runs is not set up beside its commands'
run rm --files --force s
TOKEN=$secret run run -q --session p --repo . --setup 'echo "it is $TOKEN"; printf "%s" "$TOKEN" | cut -c1-9; exit 3' \
	--setup-secret TOKEN --result "$work/result" -- true
expect_status 125 'setup that prints it and fails'
cm setup p --log >"$work/log"
is "$(cat "$work/log")" "it is ***
${secret:0:9}" 'is kept without it'
like "$(cat "$work/result")" '*"tail":"it is \*\*\*\\n*' 'so is the result'
is "$(traces "$secret")" '' 'nor is it anywhere else'
run run --session p -- echo usable
is "$rc $(out)" '0 usable' 'and the session can be used'
run rm --files --force p
run run --repo . --setup true --setup-secret "TOKEN=$secret" -- true
refused '--setup-secret needs the name of a variable, and no value' '*' 'a value is refused'
! grep -qF "$secret" "$work/err"
ok 'and not repeated'
rm -f "$work/result"
finish

begin 'teardown'
repository "$work/w"
start_files
run run --session t --repo . --setup 'touch begun; exit 4' --teardown 'rm begun; echo torn down; exit 5' \
	--teardown 'echo "$HOME"; echo second' --result "$work/result" -- true
is "$rc $(grep -o '"reason":"setup-failed"' "$work/result")" '125 "reason":"setup-failed"' 'of a setup that failed: that is what went wrong'
grep -qF '"teardown":{"state":"failed","exit":5,"reason":"teardown-failed"}' "$work/result"
ok 'and what became of the teardown is beside it'
like "$(err)" "*torn down
note: teardown command 'rm begun; echo torn down; exit 5' failed (exit 5)
$work/home
second
casemate: setup command 'touch begun; exit 4' failed (exit 4)*" 'each of its commands runs, and is shown'
is "$(kept t | tail -n 3)" "torn down
$work/home
second" 'and kept in the log'
run run --session t -- ls
is "$rc $(out)" '0 file
run' 'it ran inside'
run stop t
like "$rc $(out)$(err)" "0 *torn down
*note: teardown command 'rm begun; echo torn down; exit 5' failed (exit 5)
$work/home
second" 'a stop runs it before'
is "$(out)" '' 'and says nothing on standard output'
run stop t
is "$rc $(err)" '0 ' 'once'
run rm --files --force t
is "$rc $(err)" '0 ' 'and not of a session that is stopped'
run run --session u --teardown 'kill -0 $(cat pid) && echo runs >>said; echo $(umask) $A >>said; read -r x || echo no input >>said' -- \
	sh -c 'sleep 1000 >/dev/null 2>&1 & echo $! >pid'
echo typed | cm stop u --no-teardown >"$work/out" 2>"$work/err"
[ ! -e "$root/u/said" ]
ok '--no-teardown'
run run --session u -- sh -c 'sleep 1000 >/dev/null 2>&1 & echo $! >pid'
echo typed | cm stop u >"$work/out" 2>"$work/err"
is "$(cat "$root/u/said")" 'runs
0022
no input' 'is kept with the session, and runs beside what it is to end'
run run --session u -- true
mkdir -p "$work/home/.config/casemate"
echo '{ "teardown": "echo configured >>said" }' >"$work/home/.config/casemate/config.json"
give "$work/home/.config"
run run --session u -- true
run stop u
is "$(grep -c configured "$root/u/said") $(grep -c runs "$root/u/said")" '0 1' 'what configuration says is for other sessions'
rm -r "$work/home/.config"
run run --session u -- true
run run --session u --teardown 'echo other >>said' -- true
run rm u
is "$rc $(tail -n 1 "$root/u/said")" '0 other' 'one that is named later takes its place; rm runs it, too'
run rm --files --force u
run run --session w --teardown 'sleep 1000' -- true
start stop w
until_true 10 pgrep -x sleep
kill -INT "$bg"
wait_bg
[ "$rc" = 0 ] && [ "$elapsed_ms" -lt 6000 ]
ok "one that does not end: SIGINT goes on without it ($elapsed_ms ms)"
like "$(err)" "*teardown of session 'w' came to no end: interrupted*" 'which is said'
is "$(our_processes)" '' 'nothing runs'
run run --session w --teardown 'sleep 1000' -- true
start rm --files --force w
until_true 10 pgrep -x sleep
kill -INT "$bg"
wait_bg
is "$rc $(cm run --session w -- echo is there)" '130 is there' 'rm leaves the session alone then'
like "$(err)" '*nothing was removed*' 'and says so'
# somebody takes the lock meanwhile, and the stop waits for it (SIGINT is ignored in the background)
run run --session w --teardown 'touch torn; sleep 0.5' -- rm -f torn
state=$work/state/casemate
[ "$identity" != root ] || state=/var/lib/casemate
start stop w
until_true 10 [ -e "$root/w/torn" ]
exec 8<"$state/sessions/w/lock"
flock 8
sleep 1.5
kill -TERM "$bg"
wait_bg
exec 8<&-
[ "$rc" = 143 ] && [ "$elapsed_ms" -lt 6000 ]
ok "what comes after a teardown can be interrupted ($elapsed_ms ms)"
run rm --files --force --no-teardown w
run run --teardown true -- true
refused '--teardown needs --repo or --session' '*' 'of a session that has no name'
rm -f "$work/result"
finish

begin 'a network and an environment of setup'
repository "$work/w"
start_files
look='echo $(($(grep -c : /proc/net/dev) > 1)) $A >>seen'
run run --session n --repo . --setup "$look; sleep 1000 & setsid sleep 1001 & echo \$HOME >~/made; touch /tmp/made" \
	--setup-network host --setup-env A=b -- \
	sh -c "$look"'; cat seen; cat /proc/[0-9]*/comm | grep -c sleep; cat ~/made; ls /tmp/made; env | grep ^A='
if ! cm run --no-workspace --network host -- true 2>/dev/null; then
	is "$rc" 125 'where the host'"'"'s network cannot be had, it is refused'
else
	like "$(out)" "[01] b
0
0
$work/home
/tmp/made" 'are its alone; its home and /tmp are the session'"'"'s; what it left running is gone'
	[ "$(grep -c : /proc/net/dev)" -le 1 ] || like "$(out)" '1 b*' 'the network is the host'"'"'s'
	is "$(pgrep -x sleep)" '' 'everywhere'
	is "$(cut -c1-7 "$root/n/.mastra-sandbox/setup")" sha256: 'the marker is there'
	run setup n
	like "$(out)" '*network       host
variable      A=b' 'both are kept'
	run stop n
	run run --session n -- sh -c "$look"'; tail -n 1 seen'
	expect_out 0 'a later start has neither'
fi
run rm --files --force n
run run --repo . --setup "$look" --setup-env A=c --setup-network none -- cat seen
expect_out '0 c' 'in a temporary session, too'
echo '{ "network": "none" }' >"$work/w/.casemate.json"
give "$work/w/.casemate.json"
g -C "$work/w" add . && g -C "$work/w" commit -q -m settings
start_files
run run --repo . --setup "$look" --setup-network host -- cat seen
is "$rc $(out)" '0 0' 'a repository can take the network away'
finish

done_testing
