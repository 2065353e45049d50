#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A checkout that is there already: what was made of it stays, what stands in its place is not opened,
# and nothing else is taken for it.
# shellcheck disable=SC2016
# SC2016: what single quotes keep from this shell is for the shell inside
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/lib-repo.sh"

begin 'a checkout before anything runs'
repository "$work/w"
start_files
run checkout c --repo .
is "$rc $(out)" "0 $root/c/w" 'is made, and its place is told'
is "$(cat "$root/c/w/file") $(cm ls | grep -c '^c .*created')" 'two 1' 'in a session that was never started'
echo mine >"$root/c/w/file"
run checkout c --repo .
is "$rc $(out) $(err | grep -c checkout) $(cat "$root/c/w/file")" "0 $root/c/w 0 mine" 'once more it is left alone'
run checkout c --repo "$work/other"
refused "session 'c' was made with another --repo: '$work/w'" '*' 'another repository is refused'
run run --session c -- sh -c 'cat file; git log -1 --format=%s'
expect_out 'mine
second' 'a run goes on with it'
run checkout c --repo .
is "$rc $(out)" "0 $root/c/w" 'and while it runs, too'
run stop c
run rm --files --force c
run checkout d --repo /nope
is "$rc $(out)$(cm ls -q)" '125 ' 'one that fails leaves no session'
run checkout d --repo . --ref nope --json
is "$rc $(json phase) $(cm ls -q)" '125 checkout ' 'which the result tells'
finish

begin "the user's work"
repository "$work/w"
repository "$work/w2"
start_files
run run --session e --git rw --repo . -- sh -c 'echo mine >file; echo new >new; rm run; git add new
git config user.name x; git config user.email x@example.org; git branch -m mine'
expect_status 0 'a session'
run stop e
g -C "$work/w" update-ref refs/heads/main v1
listing() { (cd "$root/e/w" && find . \( -path ./.git -o -path ./.git/index \) -o -printf '%P %y %m %l %T@\n' | sort && cat file new); }
was=$(listing)
for again in '' '--repo .' "--repo $work/w"; do
	# shellcheck disable=SC2086
	run run --session e $again -- sh -c 'git log -1 --format=%s; git rev-parse --abbrev-ref HEAD; git status --short'
	is "$rc $(out)" '0 second
mine
 M file
A  new
 D run' "is as it was: ${again%"$work"*}"
	run stop e
done
is "$(listing)" "$was" 'in each file'
is "$(err | grep -c 'casemate: checkout')" 0 'nothing is checked out'
run run --session e --repo "$work/w2" -- true
refused "session 'e' was made with another --repo: '$work/w'" 'leave --repo out: *' 'another repository is refused'
run run --session e --repo . --ref side -- true
refused "session 'e' was made with another --ref: 'none'" '*' 'and another ref'
is "$(listing)" "$was" 'which changes nothing'
# what is removed by its owner is removed
rm -rf "$root/e/w/.git"
run run --session e --repo . -- sh -c 'cat file; ls -a | grep -c "^[.]git$"'
is "$rc $(out)" '1 mine
0' 'without its git directory it is what it is'
run stop e
rm -rf "${root:?}/e/w"
run run --session e --repo . -- cat file
expect_out one 'one that is gone is made anew'
run rm --files --force e
rm -rf "$work/w2"
finish

# Who writes to a FIFO waits until somebody opens it to read: a file after that says that one did.
watch_fifo() { # FIFO
	(echo x >"$1" && : >"$work/opened") 2>/dev/null &
	watchers+=($!)
}
unwatch() {
	local pid
	for pid in "${watchers[@]}"; do
		kill "$pid" 2>/dev/null
		wait "$pid" 2>/dev/null
	done
	watchers=()
}

begin 'a trap in place of its git directory'
repository "$work/w"
mkdir "$work/out.d"
for name in HEAD config commondir index; do mkfifo "$work/out.d/$name"; done
give "$work/out.d"
start_files
watchers=()
watch_fifo "$work/out.d/config"
cat "$work/out.d/config" >/dev/null
until_true 5 test -e "$work/opened"
ok 'control: who opens one is seen'
unwatch
for git in rw pinned; do
	for trap in 'mkfifo .git' "ln -s $work/out.d .git" "echo gitdir: $work/out.d >.git" \
		"mkdir .git; ln -s $work/out.d/HEAD $work/out.d/config $work/out.d/index .git" \
		"mkdir .git; ln -s $work/out.d/commondir .git; echo ref: refs/heads/main >.git/HEAD; : >.git/config"; do
		run run --session t --git rw --repo . -- sh -c "mv .git .git.old; $trap"
		expect_status 0 "$git: $trap"
		run stop t
		[ $git = rw ] || sed -i 's/"git":"rw"/"git":"pinned"/; s/,"sum":"[^"]*"//' "$(cm inspect t | sed -n 's/^state *//p')/state.json"
		rm -f "$work/opened"
		for name in HEAD config commondir index; do watch_fifo "$work/out.d/$name"; done
		[ ! -p "$root/t/w/.git" ] || watch_fifo "$root/t/w/.git"
		limit=20 run run --session t --repo . -- cat file
		[ "$rc $(out)" = '0 two' ] || { [ "$rc" = 125 ] && err | grep -q '^hint: '; }
		ok "$git: the session starts, or says why not"
		run inspect t
		run ls
		[ ! -e "$work/opened" ]
		ok "$git: what it leads to is not opened"
		unwatch
		run rm --files --force t
		is "$rc $(find "$work/out.d" -type p | wc -l)" '0 4' "$git: nor removed"
	done
done
rm -f "$work/opened"
finish

begin 'what is no checkout of ours'
repository "$work/w"
start_files
run run --session k -- sh -c 'mkdir w; echo y >w/y'
run rm k
run run --session k --repo . -- true
refused "'$root/k/w' is there already, and is no checkout of session 'k'" '*' 'a directory with files'
is "$(cat "$root/k/w/y")" y 'is left alone'
rm -rf "${root:?}/k/w"
ln -s "$work/w" "$root/k/w"
run run --session k --repo . -- true
refused "'$root/k/w' is there already, and is no checkout of session 'k'" '*' 'a link'
rm -f "$root/k/w"
echo file >"$root/k/w"
run run --session k --repo . -- true
refused "'$root/k/w' is there already, and is no checkout of session 'k'" '*' 'a file'
rm -f "$root/k/w"
run run --session k -- mkdir w
run rm k
run run --session k --repo . -- cat file
is "$rc $(out)" '0 two' 'an empty directory is no loss'
run rm --files --force k
finish

done_testing
