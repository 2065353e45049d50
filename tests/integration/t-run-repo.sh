#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Checkout and setup: a repository of one's own, a command that prepares it once, and what goes wrong.
# shellcheck disable=SC2016
# SC2016: what single quotes keep from this shell is for the shell inside
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

command -v git >/dev/null || skip_all TOOLS 'no git'

g() { "${as[@]}" git "$@"; }

repository() { # DIR
	g init -q -b main "$1"
	g -C "$1" config user.name a
	g -C "$1" config user.email a@example.org
	printf 'one\n' >"$1/file"
	printf '#!/bin/sh\necho script\n' >"$1/run"
	chmod 755 "$1/run"
	give "$1/file" "$1/run"
	g -C "$1" add .
	g -C "$1" commit -q -m first
	g -C "$1" tag v1
	echo two >"$1/file"
	g -C "$1" commit -q -am second
	g -C "$1" branch side
}

begin 'a repository'
repository "$work/w"
start_files
run run --repo . -- sh -c 'pwd; cat file; ./run; git log --format=%s; git status --short'
is "$rc" 0 'is checked out'
like "$(out)" "$root/run-*/w
two
script
second*" 'below the session, as committed'
is "$(err | grep -c 'casemate: checkout ')" 1 'the phase is told'
run run --repo . -- sh -c 'echo changed >file; echo x >new'
is "$(cat "$work/w/file") $(ls "$work/w")" 'two file
run' 'the source is not touched'
run run --repo "$work/w" --ref v1 -- sh -c 'cat file'
expect_out one '--ref of a tag'
run run --repo . --ref side -- cat file
expect_out two '--ref of a branch'
run run --repo . --ref "$(g -C "$work/w" rev-parse HEAD~)" -- cat file
expect_out one '--ref of a commit'
run run --repo . --ref no-such -- true
[ "$rc" = 125 ] && grep -q "^casemate: cannot check out" "$work/err" && grep -q '^hint: ' "$work/err"
ok '--ref of what is not there'
echo dirty >"$work/w/file"
echo x >"$work/w/untracked"
run run --repo . -- cat file
expect_out two 'uncommitted work is not in it'
grep -q '^note: [0-9]* uncommitted files* \(is\|are\) not in the checkout (use --workspace to work on the tree itself)' "$work/err"
ok 'which is said'
rm "$work/w/untracked"
g -C "$work/w" checkout -q file
run run --repo . --network host -- sh -c 'find .git -type f -links +1 | head -n 3; cat .git/objects/info/alternates 2>/dev/null'
expect_out '' 'objects are copies, with no link to the source'
is "$(find "$work/w/.git/objects" -type f -links +1)" '' 'there, too'
finish

begin 'setup'
repository "$work/w"
start_files
run run --repo . --setup 'echo prepared >setup-ran' --setup 'test -f setup-ran' -- cat setup-ran
is "$(out) $rc" 'prepared 0' 'runs before the command'
run run --session s --repo . --setup 'echo run >>count' -- cat count
expect_out run 'once'
digest=sha256:$(printf '%s' 'echo run >>count' | sha256sum | cut -d' ' -f1)
is "$(cat "$root/s/.mastra-sandbox/setup")" "$digest" 'the marker has the digest of the commands'
run run --session s --repo . --setup 'echo run >>count' -- cat count
expect_out run 'and not again'
run stop s
run run --session s -- sh -c 'cat count; rm ../.mastra-sandbox/setup 2>/dev/null; echo gone >../.mastra-sandbox/setup'
expect_out run 'nor after a stop'
run stop s
run run --session s --repo . --setup 'echo run >>count' -- cat count
expect_out run 'nor when the marker was changed from inside'
run run --session s --setup 'echo other >>count' -- cat count
is "$(out)" run 'nor when the commands are others'
grep -q '^note: ' "$work/err"
ok 'which is said'
run rm --files s
run run --repo . --setup 'echo out; echo err >&2; exit 3' --result "$work/w/result" -- touch "$work/w/ran"
is "$rc $(json code "$work/w/result") $(json phase "$work/w/result")" '125 setup setup' 'that fails ends the run'
like "$(err)" "*casemate: setup command '*' failed (exit 3)
hint: *" 'which is said'
grep -q '^err$' "$work/err"
ok 'with what it printed'
[ ! -e "$work/w/ran" ]
ok 'the command does not run'
rm -f "$work/w/result"
run run --session f --repo . --setup 'echo try >>count; exit 4' -- true
expect_status 125 'in a named session'
run run --session f -- cat count
expect_out try 'leaves a usable session'
run run --session f --repo . --setup 'echo try >>count; exit 4' -- cat count
is "$(out)" try 'and is not run again blindly'
run ls
like "$(out)" '*f *' 'ls shows it'
run rm --files f
run run --repo . --setup 'setsid sleep 1000 & echo $! >pid' -- sh -c 'ps -e 2>/dev/null | grep -c "[s]leep"; cat /proc/[0-9]*/comm | grep -c sleep'
! grep -qv '^0$' "$work/out"
ok 'what setup leaves running is gone before the command'
for _ in 1 2 3 4 5; do
	"${as[@]}" "$casemate" run --session many --repo . --setup 'echo run >>count; sleep 0.2' -- cat count >>"$work/out2" 2>>"$work/err2" &
done
wait
is "$(grep -c run "$work/out2") $(sort -u "$work/out2")" '5 run' 'five first runs at once run it once'
run rm --files many
finish

begin '--keep'
repository "$work/w"
start_files
run run --repo . --keep -- sh -c 'echo kept >made; pwd'
dir=$(out | tail -n 1)
[ "$(cat "$dir/made" 2>/dev/null)" = kept ]
ok 'keeps the checkout'
id=$(sed -n "s/.*kept as session '\(.*\)'.*/\1/p" "$work/err")
[ -n "$id" ]
ok 'and says as which session'
if [ "$identity" = root ] && is_root; then
	is "$(find "$root" -mindepth 1 -uid 0 | head -n 3)" '' 'nothing in it is host root'"'"'s'
fi
is "$(find "$root" -perm /6000)" '' 'nor set-id'
is "$(our_processes)" '' 'its jail has ended'
run run --no-workspace -- true
run run --session "$id" -- cat made
expect_out kept 'which can be used on'
run rm --files "$id"
expect_status 0 'and removed'
finish

begin 'what is no repository'
refused_checkout() { # NAME ARGUMENT...
	local name=$1
	shift
	run run "$@" -- touch "$work/w/ran"
	[ "$rc" = 125 ] && [ ! -e "$work/w/ran" ] && grep -q '^casemate: ' "$work/err" && grep -q '^hint: ' "$work/err"
	ok "$name"
}
refused_checkout 'a path that is not there' --repo "$work/none"
refused_checkout 'a directory without one' --repo "$work/w"
: >"$work/file"
refused_checkout 'a file' --repo "$work/file"
g init -q "$work/bad" && rm "$work/bad/.git/HEAD"
refused_checkout 'a damaged one' --repo "$work/bad"
g init -q "$work/empty"
run run --repo "$work/empty" -- true
[ "$rc" = 125 ] || [ "$rc" = 0 ]
ok "an empty one (status $rc)"
refused_checkout 'a name that is an option' --repo=-u
refused_checkout 'a URL of a scheme that is not known' --repo 'ext::sh -c touch% ran'
refused_checkout 'a repository on another host' --repo https://example.invalid/x.git
rm -rf "$work/bad" "$work/empty"
finish

begin 'hostile repositories'
repository "$work/w"
printf '#!/bin/sh\ntouch %s/hook-ran\n' "$work" >"$work/w/.git/hooks/post-checkout"
chmod 755 "$work/w/.git/hooks/post-checkout"
g -C "$work/w" config core.fsmonitor "touch $work/fsmonitor-ran"
g -C "$work/w" config filter.x.smudge "touch $work/filter-ran; cat"
echo '* filter=x' >"$work/w/.gitattributes"
ln -s /etc/passwd "$work/w/link"
ln -s ../../../.. "$work/w/up"
give "$work/w/.gitattributes"
g -C "$work/w" -c core.fsmonitor= add -A
g -C "$work/w" -c core.fsmonitor= commit -q -m hostile
rm -f "$work/hook-ran" "$work/filter-ran" "$work/fsmonitor-ran"
start_files
run run --repo . -- sh -c 'cat file; ls -d link up; ls .git/hooks 2>/dev/null | grep -v sample; git config --get core.fsmonitor'
like "$(out)" 'two
link
up*' 'is checked out as data'
[ ! -e "$work/hook-ran" ] && [ ! -e "$work/filter-ran" ] && [ ! -e "$work/fsmonitor-ran" ]
ok 'and nothing of it has run'
! grep -q 'post-checkout\|touch' "$work/out"
ok 'nor comes along'
finish

done_testing
