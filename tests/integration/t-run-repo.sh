#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Checkout and setup: a repository of one's own, a command that prepares it once, and what goes wrong.
# shellcheck disable=SC2016
# SC2016: what single quotes keep from this shell is for the shell inside
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/lib-repo.sh"

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
run rm --files --force s
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
like "$(err)" "*note: setup failed (exit 4) and is not run again by itself: 'casemate setup f --retry' does it*" 'which says what it is'
run run --session f --repo . --setup 'echo try >>count; exit 4' -- cat count
is "$(out) $(grep -c '^note: ' "$work/err")" 'try 1' 'and is not run again blindly'
for state in running stopped; do
	run run --session f --repo . --setup 'echo again >>count' --setup-again -- cat count
	is "$rc $(out | tail -1) $(grep -c '^note: ' "$work/err")" '0 again 0' "but when asked to: $state"
	run stop f
done
run run --session f --repo . --setup 'echo again >>count' -- grep -c again count
expect_out 2 'once for each time'
run ls
like "$(out)" '*f *' 'ls shows it'
run rm --files --force f
run run --repo . --setup 'setsid sleep 1000 & echo $! >pid' -- sh -c 'ps -e 2>/dev/null | grep -c "[s]leep"; cat /proc/[0-9]*/comm | grep -c sleep'
! grep -qv '^0$' "$work/out"
ok 'what setup leaves running is gone before the command'
for _ in 1 2 3 4 5; do
	"${as[@]}" "$casemate" run --session many --repo . --setup 'echo run >>count; sleep 0.2' -- cat count >>"$work/out2" 2>>"$work/err2" &
done
wait_jobs
is "$(grep -c run "$work/out2") $(sort -u "$work/out2")" '5 run' 'five first runs at once run it once'
run rm --files --force many
finish

begin 'setup that is interrupted'
repository "$work/w"
start_files
for sig in INT TERM; do
	start run --session i --repo . --setup 'echo half >>tries; sleep 3; touch done' \
		--result "$work/result" -- ls
	until_true 10 grep -q half "$root/i/w/tries"
	kill -$sig "$bg"
	wait_bg
	is "$rc $(json phase "$work/result") $(json code "$work/result")" \
		"$((128 + $(kill -l $sig))) setup cancelled" "$sig ends it"
	like "$(err)" "*casemate: interrupted while session 'i' was set up
hint: *" "$sig: which is said"
	rm -f "$work/result"
	run run --session i -- true
	is "$rc $(grep -c '^note: session .i. is not set up yet' "$work/err")" '0 1' \
		"$sig: and again by a run without the commands"
	rm -f "$root/i/w/tries"
done
run run --session i --repo . --setup 'touch done' -- ls 'done'
is "$(out) $rc" 'done 0' 'the next start with setup commands runs them'
run run --session i --repo . --setup 'touch done' -- true
expect_stderr '' 'once'
run run --session i --setup 'touch done' -- true
expect_stderr '' 'with no word more'
run inspect i
grep -qE '^setup  .*done \(exit 0, [0-9]+ ms\)$' "$work/out"
ok 'inspect shows how long it took'
run rm --files --force i
finish

begin 'a checkout that nobody wrote down'
repository "$work/w"
start_files
run run --session n --repo . -- touch mine
run stop n
state=$(cm inspect n | sed -n 's/^state *//p')/state.json
grep -q '"checkout_begun":true' "$state"
ok 'that it begins is written down'
sed -i 's/"checkout_done":true/"checkout_done":false/; s/,"sum":"[^"]*"//' "$state"
run run --session n -- ls mine
expect_out mine 'a whole one is taken over'
sed -i 's/"checkout_done":true/"checkout_done":false/; s/"checkout_begun":true/"checkout_begun":false/; s/,"sum":"[^"]*"//' "$state"
run stop n
run run --session n -- ls mine
expect_status 125 'what was there before is not'
run rm --files --force n
finish

begin 'files of a session that was removed'
repository "$work/w"
start_files
run run --session k -- sh -c 'echo precious >precious; mkdir w; echo y >w/y'
run rm k
like "$(err)" "note: files kept in '$root/k'; casemate rm --files k removes them" \
	'rm says where they are, and what removes them'
run run --session k --repo . -- true
is "$rc $(cat "$root/k/precious" "$root/k/w/y" 2>/dev/null | tr '\n' ' ')" '125 precious y ' \
	'a first start that fails leaves them'
run ls
! grep -q '^k ' "$work/out"
ok 'and no session'
rm -rf "${root:?}/k"
# what is removed by hand, rm sees when it looks at the ids that are in use
run rm k
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
run rm --files --force "$id"
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

begin 'a directory below the top level'
repository "$work/w"
mkdir -p "$work/w/lib/deep" "$work/w/.git/more"
give "$work/w/lib" "$work/w/.git/more"
start_files
for dir in lib lib/deep ./lib/../lib .git/more; do
	run run --repo $dir -- true
	refused "cannot check out '$work/w/${dir##*../}': it is below the top level of its repository" \
		"give the top level: --repo '$work/w'" "is refused: $dir"
done
run run --repo .git -- cat file
expect_out two 'the git directory itself is a repository'
! grep -q '^note: .*uncommitted' "$work/err"
ok 'of which no work tree is seen to have lost its files'
cd "$work/w/lib/deep" || bail cd
run run --repo ../.. -- cat file
expect_out two 'so is what a relative path leads to'
finish

begin 'a linked worktree'
repository "$work/w"
g -C "$work/w" worktree add -q "$work/tree" -b topic
echo three >"$work/tree/file"
g -C "$work/tree" commit -q -am third
g -C "$work/w" worktree add -q --detach "$work/w/inner" v1
start_files
before=$(find "$work/w/.git" "$work/tree" -type f -printf '%p %s %T@\n' | sort)
cd "$work" || bail cd
run run --repo ./w/../tree -- sh -c 'pwd; cat file; git log --format=%s; git branch --show-current; git status --short; test -d .git'
like "$rc $(out)" "0 $root/run-*/tree
three
third
second
first
topic" 'is a repository with a HEAD of its own'
is "$(find "$work/w/.git" "$work/tree" -type f -printf '%p %s %T@\n' | sort)" "$before" 'and not touched'
run run --repo tree --ref main -- cat file
expect_out two 'all branches are there'
echo dirty >"$work/tree/file"
run run --repo tree -- cat file
is "$(out) $(grep -c '^note: 1 uncommitted file is ' "$work/err")" 'three 1' 'what is not committed is counted in its own tree'
g -C "$work/tree" checkout -q file
run run --repo w/inner -- cat file
expect_out one 'one within the other tree, detached'
ln -s tree "$work/link"
run run --repo link -- cat file
expect_out three 'by a link'
run run --session t --repo tree -- true
run stop t
mv "$work/tree" "$work/moved"
run run --session t -- cat file
expect_out three 'what was checked out needs it no more'
run rm --files --force t
run run --repo moved -- true
refused "cannot check out '$work/moved': the git directory that its '.git' file names *" "'git worktree repair' *" \
	'one that was moved is not known to its repository'
finish

begin 'other layouts'
repository "$work/w"
mkdir "$work/proj"
give "$work/proj"
g clone -q --bare "$work/w" "$work/proj/.bare"
echo 'gitdir: ./.bare' >"$work/proj/.git"
give "$work/proj/.git"
g -C "$work/proj" worktree add -q "$work/proj/topic" -b topic v1
g -C "$work/w" worktree add -q "$work/w/.git/hidden" v1
g init -q --separate-git-dir "$work/separate.git" "$work/separate"
mkdir "$work/linked"
ln -s ../w/.git "$work/linked/.git"
give "$work/linked"
start_files
cd "$work" || bail cd
run run --repo proj -- cat file
expect_out two 'a .git file that names a directory beside it'
run run --repo proj/topic -- cat file
expect_out one 'a worktree beside a bare repository'
run run --repo proj/.bare --ref v1 -- cat file
expect_out one 'the bare repository'
run run --repo w/.git/hidden -- cat file
expect_out one 'a worktree in the git directory'
run run --repo separate -- true
refused "cannot check out '$work/separate': *" "*give that repository *" 'a git directory that names no tree is not shown'
run run --repo linked -- true
refused "cannot check out '$work/linked': * is not a git repository" '*' 'nor what a link leads to'
finish

begin 'a .git file that lies'
repository "$work/w"
mkdir "$work/other"
give "$work/other"
repository "$work/other/private"
g -C "$work/other/private" worktree add -q "$work/other/tree"
mkdir "$work/mine" "$work/mine/git" "$work/mine/tree"
echo "$work/mine/tree/.git" >"$work/mine/git/gitdir"
echo "$work/other/private/.git" >"$work/mine/git/commondir"
echo 'ref: refs/heads/main' >"$work/mine/git/HEAD"
mkfifo "$work/mine/fifo"
give "$work/mine"
start_files
for to in "$work/other/private/.git" "$work/other/private/.git/worktrees/tree" "$work/mine/git" /dev/zero /dev \
	"$work/mine/fifo" "$work/mine/fifo/x" ../git / /proc/self/fd/0 "$work/none" "$work/mine/tree" ''; do
	echo "gitdir: $to" >"$work/mine/tree/.git"
	run run --repo "$work/mine/tree" -- touch "$work/w/ran"
	[ "$rc" = 125 ] && [ ! -e "$work/w/ran" ] && [ "$(grep -c "^casemate: cannot check out .*: the git directory that its '.git' file names " "$work/err")" = 1 ]
	ok "shows nothing: '${to#"$work"}'"
done
# named back by who could write it, but kept somewhere else: behind a link
mkdir "$work/mine/common"
cp -a "$work/other/private/.git/HEAD" "$work/mine/common/"
ln -s "$work/other/private/.git/objects" "$work/mine/common/objects"
ln -s "$work/other/private/.git/refs" "$work/mine/common/refs"
ln -s "$work/mine/away" "$work/mine/common/worktrees"
mkdir -p "$work/mine/away/git"
cp "$work/mine/git/"* "$work/mine/away/git/"
echo "$work/mine/common" >"$work/mine/away/git/commondir"
echo "gitdir: $work/mine/common/worktrees/git" >"$work/mine/tree/.git"
run run --repo "$work/mine/tree" -- touch "$work/w/ran"
[ "$rc" = 125 ] && [ ! -e "$work/w/ran" ] && grep -q "that its '.git' file names " "$work/err"
ok 'nor by links in a directory of its own'
rm "$work/mine/common/worktrees"
mkdir "$work/mine/common/worktrees"
mv "$work/mine/away/git" "$work/mine/common/worktrees/"
run run --repo "$work/mine/tree" -- touch "$work/w/ran"
[ "$rc" = 125 ] && [ ! -e "$work/w/ran" ]
ok 'nor objects that lie elsewhere'
if [ "$identity" != root ]; then
	# somebody else's, which the caller can name and not read
	mkdir -p "$work/closed/w/.git/worktrees/tree"
	echo "$work/mine/tree/.git" >"$work/closed/w/.git/worktrees/tree/gitdir"
	echo ../.. >"$work/closed/w/.git/worktrees/tree/commondir"
	mkdir "$work/closed/w/.git/objects" "$work/closed/w/.git/refs"
	echo 'ref: refs/heads/main' >"$work/closed/w/.git/HEAD"
	chmod 700 "$work/closed"
	! is_root || chown 0 "$work/closed"
	is_root || chmod 0 "$work/closed"
	echo "gitdir: $work/closed/w/.git/worktrees/tree" >"$work/mine/tree/.git"
	run run --repo "$work/mine/tree" -- touch "$work/w/ran"
	[ "$rc" = 125 ] && [ ! -e "$work/w/ran" ]
	ok 'nor what the caller cannot read'
	chmod 700 "$work/closed"
fi
finish

begin 'a submodule'
repository "$work/lib"
repository "$work/w"
g -C "$work/w" -c protocol.file.allow=always submodule --quiet add "$work/lib" lib 2>/dev/null
g -C "$work/w" commit -q -m module
start_files
run run --repo lib -- sh -c 'cat file; git log --format=%s'
is "$rc $(out)" '0 two
second
first' 'is a repository, too'
echo dirty >"$work/w/lib/file"
run run --repo lib -- cat file
is "$(out) $(grep -c '^note: 1 uncommitted file is ' "$work/err")" 'two 1' 'with a tree of its own'
finish

# A helper that takes for ever, at a time that the test chooses; and one that says how it lives.
begin 'a checkout that does not end'
repository "$work/w"
helpers=$work/helpers
mkdir "$helpers"
cp "$top/bin/casemate" "$top/bin/casemate-keeper" "$helpers/"
was=$casemate
casemate=$helpers/casemate
# helper TEXT: casemate-checkout as a script; without --source it only tells of nothing uncommitted
helper() {
	printf '%s\n' '#!/bin/sh' 'case "$1" in --status) echo "{\"uncommitted\":0}"; exit;; esac' "$1" \
		>"$helpers/casemate-checkout"
	chmod 755 "$helpers/casemate-checkout"
}
helper 'mkdir "$4.partial"; echo x >"$4.partial/file"; while :; do sleep 1000; done'
start_files
is_checking_out() { compgen -G "$root/$1/w.partial/file" >/dev/null; } # SESSION
for sig in INT TERM HUP QUIT; do
	start run --repo . --result "$work/w/result" -- touch "$work/w/ran"
	until_true 10 is_checking_out 'run-*'
	ok "$sig: the checkout is under way"
	kill -$sig "$bg"
	wait_bg
	is "$rc $(json phase "$work/w/result") $(json code "$work/w/result") $([ "$elapsed_ms" -lt 5000 ] && echo soon)" \
		"$((128 + $(kill -l $sig))) checkout cancelled soon" "$sig ends it"
	like "$(err)" "casemate: stopped while '*' was checked out
hint: *" "$sig: which is said"
	[ ! -e "$work/w/ran" ] && ! is_checking_out 'run-*'
	ok "$sig: nothing of it is left"
	rm -f "$work/w/result"
done
start run --session s --repo . -- true
until_true 10 is_checking_out s
first=$bg
start run --session s -- touch "$work/w/ran"
sleep 0.5
kill -INT "$bg"
wait_bg
is "$rc $([ "$elapsed_ms" -lt 5000 ] && echo soon)" '130 soon' 'who waits for it can be stopped, too'
like "$(err)" "casemate: stopped while another command held session 's'
hint: *" 'which is said'
bg=$first
kill -INT "$bg"
wait_bg
is "$rc $(cm ls --json | grep -c '"s"')" '130 0' 'a session that was made for it goes, too'
[ ! -e "$root/s" ]
ok 'with its directory'
# one that has been there before stays, without the half
casemate=$was
run run --session s --repo . -- sh -c 'rm -rf "$PWD"/* "$PWD"/.[a-z]*'
run stop s
rm -rf "$root/s/w"
casemate=$helpers/casemate
start run --session s -- true
until_true 10 is_checking_out s
kill -INT "$bg"
wait_bg
is "$rc $(ls -A "$root/s")" "130 .mastra-sandbox" 'a session that stays has no half of a checkout'
casemate=$was
run run --session s -- cat file
expect_out two 'and gets a whole one with the next run'
run rm --files --force s
finish

begin 'what the helper of a checkout sees of a linked worktree'
repository "$work/w"
g -C "$work/w" worktree add -q "$work/tree"
helpers=$work/helpers
mkdir "$helpers"
cp "$top/bin/casemate" "$top/bin/casemate-keeper" "$helpers/"
helper "echo tree: \$(ls -A $work/tree) main: \$(ls -A $work/w) >&2
for f in $work/w/.git/x $work/w/.git/worktrees/tree/HEAD $work/tree/.git; do
	touch \$f 2>/dev/null && echo written \$f >&2
done; exit 1"
casemate=$helpers/casemate
start_files
run run --repo "$work/tree" -- true
like "$(err)" "*cannot check out '$work/tree': tree: .git file run main: .git*" 'its files and the git directory'
! grep -q written "$work/err"
ok 'and writes neither'
casemate=$was
rm -rf "$helpers"
finish

# What a helper leaves that a hostile repository has taken over.
begin 'no directory where the checkout belongs'
repository "$work/w"
mkdir "$work/victim"
give "$work/victim"
mkdir "$helpers" 2>/dev/null || helpers=$(mktemp -d "$work/h.XXXXXX")
chmod 755 "$helpers"
cp "$top/bin/casemate" "$top/bin/casemate-keeper" "$helpers/"
casemate=$helpers/casemate
start_files
for made in 'ln -s /srv "$4"' "ln -s $work/victim \"\$4\"" 'mkfifo "$4"' 'echo x >"$4"' 'true'; do
	helper "$made; echo '{\"type\":\"checkout.report\",\"code\":\"ok\",\"notes\":[],\"modules\":[]}'"
	run run --repo . -- touch written "$work/w/ran"
	[ "$rc" = 125 ] && [ ! -e "$work/victim/written" ] && [ ! -e "$work/w/ran" ] &&
		grep -q 'is not the directory that a checkout is' "$work/err"
	ok "$made"
done
casemate=$was
rm -rf "$helpers"
finish

# The groups of a checkout's jail are found again when its keeper is killed, and when all are.
begin 'kill -9 in a checkout'
repository "$work/w"
mkdir "$helpers" 2>/dev/null || helpers=$(mktemp -d "$work/h.XXXXXX")
chmod 755 "$helpers"
cp "$top/bin/casemate" "$top/bin/casemate-keeper" "$helpers/"
helper 'mkdir "$4.partial"; echo x >"$4.partial/file"; while :; do sleep 1000; done'
casemate=$helpers/casemate
start_files
kill_keepers() {
	local pid
	for pid in $(pgrep -f "^$helpers/casemate-keeper"); do
		kill -KILL "$pid"
	done
}
new_groups() {
	local groups
	mapfile -t groups < <(comm -13 <(echo "$groups_before") <(list_groups))
	left_groups "${groups[@]}"
}
start run --repo . -- true
until_true 10 is_checking_out 'run-*'
kill_keepers
wait_bg
is "$rc" 125 'of the keeper: casemate says so'
is "$(new_groups)" '' 'and its groups are gone'
start run --repo . -- true
until_true 10 is_checking_out 'run-*'
kill -STOP "$bg"
kill_keepers
kill -KILL "$bg"
wait_bg
casemate=$was
run run -- true
is "$rc $(new_groups)" '0 ' 'of both: the next run removes its groups'
casemate=$helpers/casemate
start run --session s --repo . -- true
until_true 10 is_checking_out s
kill -STOP "$bg"
kill_keepers
kill -KILL "$bg"
wait_bg
casemate=$was
run rm --files --force s
is "$rc $(new_groups)" '0 ' 'of both, in a named session: rm does'
rm -rf "$helpers"
finish

begin 'a repository that holds the checkout up'
repository "$work/w"
repository "$work/held"
mkfifo "$work/held/.git/refs/heads/pipe" "$work/held/include"
give "$work/held/.git/refs/heads/pipe" "$work/held/include"
start_files
run run --repo "$work/held" -- touch "$work/w/ran"
is "$rc $(err | grep -c 'is not a regular file')" '125 1' 'a FIFO among its refs is refused'
rm "$work/held/.git/refs/heads/pipe"
if [ "$identity" = root ]; then
	# what its configuration includes is not looked at
	g -C "$work/held" config include.path ../include
	limit=90 run run --repo "$work/held" -- touch "$work/w/ran"
	is "$rc $(err | grep -c 'nothing moved for 30 seconds')" '125 1' 'a FIFO that its configuration includes ends the checkout'
	[ ! -e "$work/w/ran" ]
	ok 'and the command does not run'
else
	skip IDENTITY 'once is enough for a minute' 'a FIFO that its configuration includes ends the checkout'
fi
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

begin 'a file of settings in the repository'
repository "$work/w"
says() { # JSON: the tree's own file, committed
	echo "$1" >"$work/w/.casemate.json"
	give "$work/w/.casemate.json"
	g -C "$work/w" add . && g -C "$work/w" commit -q -m settings
}
says '{ "open-files": 100, "timeout": "400ms", "read-only": true, "network": "host" }'
start_files
look='ulimit -n; grep -c : /proc/net/dev; ( >made ) 2>/dev/null || echo cannot'
run run --repo . --open-files 200 -- sh -c "$look"
expect_out '100
1
cannot' 'tightens a checkout of its own, and widens nothing'
like "$(err)" "*'.casemate.json' of the repository (commit *):1: 'network' cannot widen 'none' (*) to 'host'; ignored*" 'which is said'
run run --repo . -- sleep 20
expect_status 124 "also what is each run's own"
run run --session s --repo . --open-files 200 --network none -- sh -c "$look"
expect_out '100
1
cannot' 'a session with a checkout'
run run --session s --repo . --open-files 200 -- sh -c "$look"
expect_out '100
1
cannot' 'which the next run joins, with the same options'
echo '{ "open-files": 50 }' >"$root/s/w/.casemate.json"
run run --session s -- echo wrong
refused "session 's' runs with more than $root/s/w/.casemate.json:1 (ceiling) allows: --open-files '100'" \
	"'casemate stop s': *" 'is not joined above what its tree says by now'
run stop s
run run --session s -- sh -c "$look"
expect_out '50
1' 'a start is below that'
run stop s
rm "$root/s/w/.casemate.json"
run run --session s -- sh -c "$look"
expect_out '200
1' 'and without a file as it was made'
run stop s
ln -s /etc/passwd "$root/s/w/.casemate.json"
run run --session s -- echo wrong
refused "'$root/s/w/.casemate.json' is not a regular file" '*' 'a link is not followed'
rm "$root/s/w/.casemate.json"
run rm --files --force s
run run --session d --workspace "$work/w" --open-files 200 -- sh -c "$look"
expect_out '100
1
cannot' 'a session of a tree'
run stop d
echo '{ "open-files": 50, "timeout": "400ms" }' >"$work/w/.casemate.json"
run run --session d -- sh -c 'ulimit -n; sleep 20'
is "$(out) $rc" '50 124' 'a later run that does not name the tree'
run run --session d --workspace "$work/w" --open-files 200 -- sh -c 'ulimit -n'
expect_out 50 'or that names it with the same options'
run rm --files --force d
run run --keep --open-files 200 -- sh -c 'ulimit -n'
expect_out 50 'one that is kept'
id=$(sed -n "s/.*kept as session '\(.*\)'.*/\1/p" "$work/err")
rm "$work/w/.casemate.json"
run run --session "$id" -- sh -c 'ulimit -n'
expect_out 200 'as it was made without a file, too'
run rm --files --force "$id"
says '{
  "no-such": 1 }'
start_files
head=$(g -C "$work/w" rev-parse --short=12 HEAD)
for option in '--session n' --keep ''; do
	# shellcheck disable=SC2086
	run run $option --repo . -- true
	refused "'.casemate.json' of the repository (commit $head):2: *" '*' "one that is not understood: ${option:-temporary}"
done
run ls
is "$(wc -l <"$work/out")" 1 'makes no session'
says '{'
start_files
run run --repo . -- true
refused "'.casemate.json' of the repository (commit *):*" '*' 'one that is no JSON'
finish

# A repository knows nothing of its users' hosts.
begin 'limits in the repository'
repository "$work/w"
says '{ "pids-limit": 100, "memory": "64M", "cpuset": "0" }'
start_files
run run --repo . -- echo runs
is "$rc $(out)" '0 runs' 'stop no start'
if has_groups; then
	! grep -q 'nothing enforces' "$work/err"
	ok 'hold where they can'
	run run --repo . -- sh -c 'x=$(head -c 200000000 /dev/zero | tr "\\0" x); echo wrong'
	is "$rc $(out)" '137 ' 'as they are written'
else
	like "$(err)" "*note: the repository limits memory to 64M, which nothing enforces here
note: the repository limits pids to 100, which nothing enforces here
note: the repository limits cpuset to 0, which nothing enforces here*" 'which are said where nothing holds them'
	run run --repo . --pids-limit 200 -- true
	refused 'pids limit cannot be enforced here*' '*' 'and where one was named, they are required'
fi
run run -- echo runs
is "$rc $(out)" '0 runs' 'the tree itself'
run run --session l --repo . -- true
run stop l
run run --session l -- echo runs
is "$rc $(out)" '0 runs' 'a session'
run rm --files --force l
finish

begin 'an installation'
repository "$work/w"
start_files
if ! command -v cmake >/dev/null || [ ! -f "$binaries/../cmake_install.cmake" ]; then
	skip TOOLS 'no cmake, or not a build directory' 'below another prefix'
elif [ ! -w "$(dirname "$binaries")" ]; then
	skip ROOT 'cmake writes a manifest to the build directory' 'below another prefix'
elif ! cmake --install "$(dirname "$binaries")" --prefix "$work/prefix" >"$work/log" 2>&1; then
	false
	ok 'below another prefix' || sed 's/^/# /' "$work/log"
else
	chmod -R go-w "$work/prefix"
	is "$(cd "$work/prefix" && find bin libexec -type f -printf '%f\n' | sort)" \
		"$(find "$binaries" -type f -printf '%f\n' | sort)" 'every program that is built is installed'
	start_files
	was=$casemate
	casemate=$work/prefix/bin/casemate
	run run --repo . -- cat file
	is "$(out) $rc" 'two 0' 'below another prefix has all that a checkout needs'
	chmod o+w "$work/prefix/libexec/casemate"
	run run -- true
	refused "'$work/prefix/libexec/casemate' could have been put there by somebody else" 'make it writable *' \
		'and trusts no directory that others can write'
	casemate=$was
fi
finish

done_testing
