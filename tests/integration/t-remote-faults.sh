#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The command line over sessions of E2B where something goes wrong or is refused: signals, a service that
# fails or does not answer, setup that fails, and what a provider cannot do.
#
#   t-remote-faults.sh DIRECTORY-OF-THE-BINARIES root|plain
# shellcheck disable=SC2016
# SC2016: what single quotes keep from this shell is for the shell inside
. "$(dirname "${BASH_SOURCE[0]}")/lib-terminal.sh"
. "$(dirname "${BASH_SOURCE[0]}")/lib-e2b.sh"
. "$(dirname "${BASH_SOURCE[0]}")/lib-remote.sh"

state_of() { # ID
	"${as[@]}" "$casemate" ls --json >"$work/states" 2>/dev/null
	$python -c 'import json, sys
print(*[x["status"] for x in json.load(open(sys.argv[1])) if x["id"] == sys.argv[2]])' "$work/states" "$1"
}

start_service
repo_plain "$repos/plain"
server_git "$repos" || skip_all TOOLS "no $missing"

# --- signals ------------------------------------------------------------------------------------

begin_with 'what is broken off'
for at in 'POST /(v2/)?sandboxes( |$|\?)' 'process.Process/Start'; do
	fault "[{\"match\": \"$at\", \"fault\": \"delay\", \"ms\": 1500, \"times\": 1}]"
	start run "${temporary[@]}" -- sleep 30
	sleep 0.7
	kill -INT "$bg"
	wait_bg
	expect_status 130 "INT before the answer of $at"
	nothing_left "nothing is left: $at"
	fault "[{\"match\": \"$at\", \"fault\": \"delay_after\", \"ms\": 1500, \"times\": 1}]"
	start run "${temporary[@]}" -- sleep 30
	sleep 0.7
	kill -TERM "$bg"
	wait_bg
	expect_status 143 "TERM before the answer of $at, which was carried out"
	nothing_left "nothing is left: $at, which was carried out"
done
fault '[]'
start run "${temporary[@]}" -- sh -c 'echo begun; sleep 30'
until_true 20 grep -q begun "$work/out"
kill -INT "$bg"
wait_bg
expect_status 130 'INT while the command runs'
nothing_left 'nothing is left of it'
start run "${temporary[@]}" -- sh -c 'trap "" INT TERM; echo begun; sleep 30'
until_true 20 grep -q begun "$work/out"
kill -INT "$bg"
wait_bg
[ "$rc" != 0 ]
ok 'INT while a command runs that ignores it'
nothing_left 'nothing is left of that'
fault '[{"match": "DELETE /sandboxes/", "fault": "delay", "ms": 1000, "times": 1}]'
start run "${temporary[@]}" -- true
sleep 1
kill -INT "$bg" 2>/dev/null
wait_bg
nothing_left 'INT while it is taken away'
fault '[]'
finish

begin_with 'a service that fails'
fault '[{"match": "DELETE /sandboxes/", "fault": "status", "code": 500, "times": 20}]'
run run "${temporary[@]}" -- echo finished
is "$(out)" finished 'the command has run'
like "$(err)" '*casemate rm --files --force --provider e2b *' 'what was left is said'
fault '[]'
run ls -q
left=$(out)
run rm --files --force "$left"
expect_status 0 'and removed'
nothing_left
fault '[{"match": "GET /(v2/)?sandboxes", "fault": "garbage_json", "times": 20}]'
run ls
expect_status 125 'no JSON'
fault '[]'
finish

begin_with 'signals that do not come to the command'
fault '[{"match": "process.Process/Start", "fault": "hang", "times": 1}]'
start run "${temporary[@]}" -- sleep 60
until_true 20 has_sandboxes 1
sleep 0.5
kill -INT "$bg"
wait_bg
is "$rc $((elapsed_ms < 10000))" '130 1' 'one INT ends it while nothing says that it has started'
nothing_left
start run "${temporary[@]}" -- sh -c 'echo begun; sleep 60'
until_true 20 grep -q begun "$work/out"
fault '[{"match": "process.Process/(SendSignal|Start)", "fault": "hang", "times": null}]'
kill -INT "$bg"
sleep 0.5
kill -INT "$bg"
wait_bg
expect_status 130 'two INTs end it'
like "$(err)" '*casemate: the command was started, and its end, *' 'what is not known is said'
nothing_left 'nothing is left of that, either'
fault '[]'
finish

# --- what is refused ----------------------------------------------------------------------------

begin_with 'create'
for option in '--repo=https://example.org/r' --setup=true --teardown=true; do
	run create c --network internet "$option"
	refused "'create' prepares nothing, and there is ${option%%=*}" "'casemate start c ...' *" \
		"create ${option%%=*}"
done
is "$(n_sandboxes)" 0 'nothing was made'
run create c --network internet
is "$rc $(state_of c)" '0 stopped' 'create'
run create c --network internet
is "$rc $(state_of c)" '0 stopped' 'create again'
run start c --network internet
run create c --network internet
is "$rc $(state_of c)" '0 running' 'create does not stop what runs'
run rm --files --force c
fault '[{"match": "POST /sandboxes/[^/]*/pause", "fault": "status", "code": 500, "times": 20}]'
run create c --network internet
expect_status 125 'create: it cannot be stopped'
nothing_left 'and so it is taken away again'
fault '[{"match": "POST /sandboxes/[^/]*/pause", "fault": "status", "code": 500, "times": 20},
	{"match": "DELETE /sandboxes/", "fault": "status", "code": 500, "times": 20}]'
run create c --network internet
expect_status 125 'create: nor taken away'
like "$(err)" "*note: session 'c' was left running: casemate stop --provider e2b c*" 'what was left is said'
fault '[]'
run rm --files --force c
expect_status 0 'it can be removed'
nothing_left
finish

begin_with 'options that mean nothing elsewhere'
run start s --network internet
for command in "run ${temporary[*]}" 'run --session s' 'start t' 'create t' 'restart s' 'exec s' 'shell s'; do
	what=()
	case $command in run* | exec*) what=(-- true) ;; esac
	# shellcheck disable=SC2086
	run $command --root "$work" "${what[@]}"
	refused "provider 'e2b' has no '--root'" '*leave it out*' "--root: $command"
done
is "$(state_of s) $(n_sandboxes)" 'running 1' 'nothing was made or stopped'
run file ls -u user s
refused "provider 'e2b' has no '--user'" '*' 'file: no user'
run cp -u user s:a .
refused "provider 'e2b' has no '--user'" '*' 'cp: no user'
run exec -d --output 1M s -- true
refused "what a detached command of provider 'e2b' keeps cannot be limited" 'leave --output out' \
	'exec -d --output'
run exec --output 1M s -- echo x
is "$rc $(out)" '0 x' 'exec --output'
run run "${temporary[@]}" --memory '64M?' --pids-limit '9?' -- true
is "$rc $(err)" "0 note: --memory is not enforced by provider 'e2b'
note: --pids-limit is not enforced by provider 'e2b'" 'limits that are not enforced'
run run -q "${temporary[@]}" --memory '64M?' -- true
is "$rc $(err)" '0 ' 'without a word'
run rm --files --force s
nothing_left
finish

# --- environment and directories ----------------------------------------------------------------

begin_with 'an environment'
export CM_TEST_PASSED='a b' CM_TEST_OTHER=x
run start s --network internet --pass-env 'CM_TEST_P*' --env CM_TEST_GIVEN=c
run exec s -- sh -c 'echo "$CM_TEST_PASSED/$CM_TEST_GIVEN/$CM_TEST_OTHER"'
expect_out 'a b/c/' 'start: --pass-env'
run create t --network internet --pass-env CM_TEST_PASSED
run exec t -- sh -c 'echo "$CM_TEST_PASSED"'
expect_out 'a b' 'create: --pass-env'
unset CM_TEST_PASSED CM_TEST_OTHER
run rm --files --force s t
nothing_left
finish

begin_with 'a repository'
url=$git_url/plain
run start s --network internet --repo "$url" --setup 'echo set up >.git/by-setup' \
	--teardown 'echo torn down'
expect_status 0 'start'
run exec s -- sh -c 'cat one .git/by-setup'
is "$rc $(out)" $'0 one\ntwo\nset up' 'its checkout, and its setup'
run exec -w dir/sub s -- cat ../run
is "$rc $(out)" '0 run' 'a relative directory is below the checkout'
run exec -w / s -- pwd
expect_out / 'another one is not'
run exec -d s -- sleep 1000
name=$(out)
run restart s --network internet
is "$rc $(grep -c '^torn down$' "$work/err")" '0 1' 'restart: its teardown'
run ps --json s
is "$(read_json '[x["state"] for x in j if x["exec"] == "'"$name"'"]')" "['ended']" 'restart: no command is left'
run stop s
run rm --files s
expect_status 0 'rm'
run run --network internet --repo "$url" -- cat one
is "$rc $(out)" $'0 one\ntwo' 'one that is temporary'
nothing_left
finish

begin_with 'setup that fails'
run start s --network internet --setup 'exit 3' --teardown 'echo torn down'
expect_status 125 'start'
like "$(err)" "*torn down*note: session 's' was left running: casemate stop --provider e2b s, or casemate rm --files --force --provider e2b s*" \
	'its teardown runs, and it is left'
is "$(state_of s)" running 'it is'
run start s --network internet --setup 'exit 3'
! grep -q 'was left running' "$work/err"
ok 'who made it knows that'
service POST kill "{\"sandbox\": \"$(look 's["sandboxes"][0]["sandboxID"]')\"}" >/dev/null
run rm --files s
[ "$(err)" = '' ] || like "$(err)" "*no session 's'*" 'rm of one that died, without --force'
nothing_left
start start s --network internet --setup 'sleep 60'
until_true 20 has_sandboxes 1
sleep 1
kill -INT "$bg"
wait_bg
expect_status 130 'INT during setup'
like "$(err)" "*note: session 's' was left running: *" 'that it is left is said'
run rm --files --force s
nothing_left
finish

begin_with 'work that is nowhere else'
url=$git_url/plain
run start w --network internet --repo "$url"
run exec w -- sh -c 'echo x >>one; echo y >new'
run stop w
run rm --files w
refused "session 'w' has work that is nowhere else: 2 changed or untracked files" \
	"'casemate cp w:... .' fetches it*--force removes it*" 'rm: files'
is "$(state_of w)" stopped 'it is stopped again'
run exec w -- sh -c 'git -c user.name=a -c user.email=a@b.c commit -qam changed; git checkout -q --detach
	rm new; echo z >>one; git -c user.name=a -c user.email=a@b.c stash -q'
expect_status 0 'a commit and a stash'
run stop w
run rm --files w
refused "session 'w' has work that is nowhere else: 1 stash, 1 commit" '*' 'rm: a commit, and a stash'
run exec w -- mv .git .gone
run stop w
run rm --files w
refused "cannot tell whether session 'w' has work that is nowhere else: *" '--force removes it*' 'rm: no repository'
is "$(state_of w)" stopped 'it is stopped again, too'
run rm --files --force w
expect_status 0 'rm --force'
run start w --network internet --repo "$url" --ref light
run stop w
run rm --files w
is "$rc $(err)" '0 ' 'rm: a tag as it was cloned'
run start w --network internet --repo "$url" --branch mine
run stop w
run rm --files w
is "$rc $(err)" '0 ' 'rm: a branch without a commit'
run start w --network internet
run exec w -- sh -c 'echo y >new'
run stop w
run rm --files w
expect_status 0 'rm: no checkout'
nothing_left
finish

begin_with 'a command whose end is not known'
start run "${temporary[@]}" --json -- sleep 60
until_true 20 has_sandboxes 1
sleep 1
service POST kill "{\"sandbox\": \"$(look 's["sandboxes"][0]["sandboxID"]')\"}" >/dev/null
wait_bg
expect_status 137 'its sandbox is lost'
like "$(read_json '(j["end"], j["code"], j["reason"], j["message"])')" "*'lost'*the command was started, and its end, *" \
	'the result says so'
nothing_left
finish

begin_with 'files that cannot be had, and sessions'
run start f --network internet
run exec f -- sh -c 'echo a >file; mkdir dir; ln -s loop loop'
printf x >"$work/here"
for command in 'read f none' 'read f dir' 'read f loop' 'read f file/below' 'stat f none' 'ls f none' 'mkdir f file' \
	'mkdir f file/below' 'mv f none other' 'rm f none' 'rm f dir' 'write f dir' 'write f file/below' 'write f loop'; do
	# shellcheck disable=SC2086
	run file $command <"$work/here"
	expect_status 1 "file $command"
done
run cp f:none "$work"
expect_status 1 'cp: not there'
run cp "$work/here" f:none/below
expect_status 1 'cp: no directory'
run cp "$work/here" f:file/
expect_status 1 'cp: a file'
run file read nobody file
expect_status 125 'no such session'
run cp "$work/here" nobody:
expect_status 125 'cp: no such session'
fault '[{"match": "^(GET|POST) /(files|filesystem)", "fault": "status", "code": 503, "times": null}]'
run file read f file
expect_status 125 'a session that does not answer'
fault '[]'
run rm --files --force f
nothing_left
finish

begin 'the service'
is "$(cat "$top/violations")" '' 'every request was as it should be'
stop_service
finish

for ahead in 7200 -7200; do
	service_options=(--clock-ahead "$ahead")
	start_service
	begin_with "a service whose clock is $ahead s ahead"
	run start --network internet --idle-timeout 4s --lifetime 30m clocks
	run exec -d clocks -- sh -c 'sleep 7; echo over'
	run logs -f clocks "$(cat "$work/out")"
	is "$rc $(cat "$work/out")" '0 over' 'a command that takes longer than its session may be idle'
	run rm --files --force clocks
	nothing_left
	is "$(cat "$top/violations")" '' 'every request was as it should be'
	stop_service
	finish
done

begin_with 'input that would be thrown away'
allow '(state|/var/lib)/casemate/remote/platform d 700'
export CASEMATE_PROVIDER=platform MASTRA_PROJECT_ID=p MASTRA_ENVIRONMENT_ID=e
export MASTRA_PLATFORM_ACCESS_TOKEN=t MASTRA_PLATFORM_SECRET_KEY=k
export MASTRA_WORKSPACE_PROXY_URL=http://127.0.0.1:1
echo data >"$work/input"
run run "${temporary[@]}" -- cat <"$work/input"
refused "provider 'platform' passes no standard input on" 'redirect it: </dev/null' 'a file'
{ echo data; sleep 1; } | { sleep 0.2; run run "${temporary[@]}" -- cat; }
refused "provider 'platform' passes no standard input on" 'redirect it: </dev/null' 'a pipe'
run run "${temporary[@]}" -- cat </dev/null
! grep -q 'passes no standard input on' "$work/err"
ok 'none'
finish

begin 'services that are not there'
allow '(state|/var/lib)/casemate/remote(/(e2b|platform))? d 700'
for provider in e2b platform; do
	CASEMATE_PROVIDER=$provider run run "${temporary[@]}" -- true
	refused "*no connection to *" '?*' "$provider is not there"
	! grep -q 'left\|not known' "$work/err"
	ok "and nothing is said to be left of what never came to $provider"
done
finish

done_testing
