#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# casemate checkout of a session that exists, stopped or running: what the remote has comes into its
# checkout, and nothing that was made there goes.
# shellcheck disable=SC2016,SC2154
# SC2016: what single quotes keep from this shell is for the shell inside
# SC2154: URLs and tokens are set by servers.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/lib-remote.sh"

server_https "$repos" || skip_all TOOLS "no $missing"
server_git "$repos" || skip_all TOOLS "no $missing"
# the library that verifies names knows no addresses
https_url=${https_url/127.0.0.1/localhost}

src() { git -C "$repos/app" "$@"; }

# A repository as it is when the session is made; later() is what comes to it.
app() {
	rm -rf "$repos/app"
	git init -q -b main "$repos/app"
	printf 'one\n' | tee "$repos/app/file" >"$repos/app/same"
	mkdir "$repos/app/d"
	echo one >"$repos/app/d/gone"
	src add -A
	src commit -q -m one
	src branch old
}
later() {
	echo two >"$repos/app/file"
	echo two >"$repos/app/new"
	src rm -q d/gone
	src add -A
	src commit -q -m two
	src branch topic
	src tag v2
	src update-ref refs/pull/7/head "$(src commit-tree -p main -m 'of a pull request' 'main^{tree}')"
}

begin_app() { # NAME
	begin_mirrors "$1"
	export GIT_SSL_CAINFO=$https_ca
	app
	forget_requests
	start_files
	url=$https_url/open/app
	tree=$root/s/app
}

# git at the checkout, as who owns it: here the test is its own enemy
t() { git -c safe.directory='*' -C "$tree" "$@"; }
at() { t log -1 --format='%s %D' | sed 's/ HEAD -> / /; s/,.*//'; }
# The same, and what it made is the session's.
change() { # ARGUMENT...
	t "$@"
	! is_root || chown -R "$(stat -c %u:%g "$tree")" "$tree/.git"
}

begin_app 'what the remote has'
run checkout s --repo "$url"
is "$rc $(out)" "0 $tree" 'a session'
first=$(src rev-parse HEAD)
later
forget_requests
run checkout s
is "$rc $(out) $(t rev-parse HEAD) $(t rev-parse origin/main v2)" "0 $tree $first $(src rev-parse main)
$(src rev-parse v2)" 'is fetched, and the checkout stays where it is'
like "$(err)" '*casemate: fetch *casemate: update *' 'the phases are told'
like "$(err)" "*note: branch 'main' is behind 'origin/main': --ref main moves it there*" 'and what there would be'
is "$(cat "$tree/file") $(requests https | grep -c POST)" 'one 1' 'in one request'
is "$(find "$tree" ! -uid "$(stat -c %u "$tree")" -o -type f -links +1)" '' "each file is the session's own"
run checkout s --repo "$url" --ref main
is "$rc $(at) $(cat "$tree/file")" '0 two main two' 'a branch is moved to where the remote has it'
is "$(t status --porcelain)$(ls "$tree/d" 2>/dev/null)" '' 'with its files'
run checkout s --ref main
is "$rc $(at)" '0 two main' 'once more'
run checkout s --json
is "$rc $(err | grep -c behind) $(out | grep -c moved)" '0 0 0' 'and is not behind then'
run checkout s --pr 7
is "$rc $(at)" '0 of a pull request pr-7' 'a pull request'
src update-ref refs/pull/7/head "$(src commit-tree -p refs/pull/7/head -m more 'main^{tree}')"
run checkout s --pr 7
is "$rc $(at)" '0 more pr-7' 'and what came to it'
run checkout s --branch mine --from old
is "$rc $(at)" '0 one mine' 'a branch of its own'
like "$(err)" "*note: branch 'mine' is new: it begins at 'refs/heads/old', with no upstream*" 'which is said'
run checkout s --ref v2
is "$rc $(t rev-parse --abbrev-ref HEAD)" '0 HEAD' 'a tag'
run checkout s --branch mine
is "$rc $(at)" '0 one mine' 'and back'
run run --session s -- sh -c 'cat file; git log -1 --format=%s; git status --short'
expect_out 'one
one' 'a run finds it so'
run stop s
run run --session s --repo "$url" -- true
is "$rc" 0 'and the session is the one that it was'
run rm --files --force s
finish

begin_app 'what is refused'
run checkout s --ref main
refused "there is no session 's' for --ref" '*--repo URL' 'a ref of no session'
run checkout s
refused "there is no session 's'" '*--repo URL' 'no session'
run checkout s --unshallow --repo "$url"
refused "there is no session 's' for --unshallow" '*' 'what is not there cannot be made whole'
is "$(cm ls -q)" '' 'none is made'
run checkout s --repo "$url"
later
before=$(t for-each-ref)
run checkout s --repo "$https_url/open/other"
refused "session 's' was made with another --repo: '$url'" '*' 'another repository'
run checkout s --ref nope
refused "cannot update '$tree': ref 'nope' is not in the source" '*' 'a ref that is not there'
run checkout s --pr 99
refused "cannot update '$tree': there is no pull or merge request 99" '*' 'nor a request'
run checkout s --unshallow
refused "the checkout of session 's' was made without --depth" '*leave --unshallow out' 'what is whole'
is "$(t for-each-ref)" "$before" 'nothing is changed'
run checkout s --ref nope --json
is "$rc $(json phase) $(json code) $(json reason) $(json detail)" '125 checkout checkout clone-failed missing-branch' 'the result tells'
run checkout s --json --ref main
is "$rc $(json phase) $(json exitCode) $(json session) $(grep -c '"name":"fetch".*"name":"update"' "$work/out")" '0 checkout 0 s 1' 'and what went well'
mv "$repos/app" "$repos/away"
run checkout s
is "$rc $(t rev-parse origin/main)" "125 $(git -C "$repos/away" rev-parse main)" 'a remote that is gone is no answer'
mv "$repos/away" "$repos/app"
run rm --files --force s
run run --session k -- true
run stop k
run checkout k
refused "session 'k' has no repository" '*' 'a session without one'
run rm --files --force k
finish

begin_app "the user's work"
run run --session s --git rw --repo "$url" -- sh -c 'echo mine >file; echo mine >same; echo mine >untracked'
run stop s
later
run checkout s --branch topic
is "$rc $(at) $(cat "$tree/file" "$tree/same" "$tree/untracked" | tr '\n' ' ')" '0 one main mine mine mine ' 'is not overwritten'
like "$(err)" "*note: the checkout stays as it is, and not on branch topic: changes that are not committed would be overwritten in 1 file: 'file'*" \
	'which a note says'
is "$(err | grep -c 'casemate: update')" 0 'and not that it is done'
run checkout s --branch topic --json
like "$rc $(out)" '0 *"moved":false*' 'nor does the result'
is "$(t rev-parse origin/topic)" "$(src rev-parse topic)" 'but the remote is known'
run run --session s -- git checkout -q file
run stop s
run checkout s --branch topic
is "$rc $(at) $(cat "$tree/file" "$tree/same" "$tree/untracked" | tr '\n' ' ')" '0 two topic two mine mine ' 'what is not in the way comes along'
run run --session s -- sh -c 'git config user.name x; git config user.email x@example.org; git commit -q -am mine; git rev-parse HEAD'
mine=$(out)
run stop s
echo three >"$repos/app/file"
src checkout -q topic && src commit -q -am three && src checkout -q main
run checkout s --ref topic
is "$rc $(t rev-parse HEAD)" "0 $mine" 'a branch with commits of its own is not moved'
like "$(err)" "*note: branch 'topic' has commits that*it stays where it is*" 'which is said'
run rm --files --force s
finish

for git in pinned rw; do
	begin_app "a session that runs, --git $git"
	run run --session s --git $git --repo "$url" -- sh -c 'sleep 300 >/dev/null 2>&1 & echo $! >pid; echo inside >mark'
	is "$rc $(cm ls | grep -c '^s .*running')" '0 1' 'runs'
	later
	run checkout s --ref main
	is "$rc $(out) $(at) $(cat "$tree/file" "$tree/mark" | tr '\n' ' ')" "0 $tree two main two inside " 'is brought up to date'
	run run --session s -- sh -c 'kill -0 "$(cat pid)" && cat file && git log -1 --format=%s && git status --short'
	expect_out 'two
two
?? mark
?? pid' 'its processes are there, and see it'
	if [ $git = pinned ]; then
		run run --session s -- sh -c ': >.git/x'
		[ $rc -ne 0 ] && [ ! -e "$tree/.git/x" ]
		ok 'its git directory is as protected as before'
	fi
	# without the lock that status takes to write what it found, which an update is refused for
	start run --session s -- sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do
		git --no-optional-locks status >/dev/null || exit 1; sleep 0.2; done'
	for ref in old main old main; do
		cm checkout s --ref $ref >/dev/null 2>"$work/err2" || break
	done
	is "$(at)" 'two main' 'beside a command that looks at it'
	wait_bg
	is "$rc" 0 'which goes on'
	is "$(cm ls -aq)" s 'nothing else is there'
	run stop s
	run rm --files --force s
	finish
done

begin_app 'limits in a session that runs'
if has_groups; then
	run run --session s --memory 256M --repo "$url" -- true
	later
	run checkout s --ref main
	is "$rc $(at)" '0 two main' 'a jail beside one with groups'
	run run --session s -- cat file
	expect_out two 'which still is there'
	run stop s
else
	skip CGROUPS 'no limits for this user' 'a jail beside one with groups'
fi
run rm --files --force s
finish

begin_app 'two at once'
run checkout s --repo "$url"
later
start checkout s --ref main
cm checkout s --branch mine --from old >/dev/null 2>"$work/err2"
second=$?
wait_bg
is "$rc $second" '0 0' 'come one after the other'
t fsck --full --strict >/dev/null 2>&1
ok 'and leave it whole'
is "$(t for-each-ref --format='%(refname)' refs/heads | tr '\n' ' ')" 'refs/heads/main refs/heads/mine ' 'with what both made'
is "$(t rev-parse --abbrev-ref HEAD | grep -cE '^(main|mine)$') $(t status --porcelain)" '1 ' 'at one of the two'
run rm --files --force s
finish

# Its processes go with the client, by the kernel; what they held, too.
begin_app 'killed on the way'
for i in $(seq 300); do echo "$i" >"$repos/app/f$i"; done
src add -A && src commit -q -m many
run checkout s --repo "$url"
later
for i in $(seq 300); do echo "new $i" >"$repos/app/f$i"; done
src commit -q -am changed
for ms in 0.02 0.05 0.1 0.15 0.2 0.25 0.3 0.4; do
	for sig in KILL INT; do
		start checkout s --ref main
		sleep $ms
		kill -$sig "$bg" 2>/dev/null
		wait_bg
		limit=30 run checkout s --branch old
		[ $rc -eq 0 ] && [ "$(at)" = 'one old' ] && [ -z "$(t status --porcelain)" ] &&
			t fsck --full >/dev/null 2>&1 && [ ! -e "$tree/.git/casemate-update" ] &&
			[ -z "$(find "$tree/.git" -name '*.lock' -o -name 'tmp_*')" ]
		ok "$sig after $ms s: the next one finds it whole"
		change update-ref refs/heads/main "$(t rev-parse 'origin/main~1')"
	done
done
is "$(cm ls -aq)" s 'no jail is left'
for i in $(seq 3000); do echo "$i" >"$repos/app/f$i"; done
src add -A && src commit -q -m 'very many'
n=0
for who in run running checkout; do
	run checkout s --branch old
	[ $who != running ] || run run --session s -- true
	start checkout s --ref main
	until_true 20 test -e "$tree/.git/casemate-update/switch"
	kill -KILL "$bg"
	wait_bg
	# it may have come to its end before the signal
	is_broken_off=no
	[ ! -e "$tree/.git/casemate-update/switch" ] || is_broken_off=yes
	[ $is_broken_off = no ] || n=$((n + 1))
	# as where it was killed while it wrote the new index
	[ $is_broken_off = no ] || : >"$tree/.git/casemate-update/index.lock"
	if [ $who = checkout ]; then
		run checkout s
	else
		run run --session s -- true
	fi
	is "$rc $(at) $(t status --porcelain) $(cat "$tree/f3000")" '0 very many main  3000' "among the files: $who finds it whole"
	[ $who = checkout ] || [ $is_broken_off = no ] ||
		like "$(err)" '*note: an earlier update to branch main was broken off, and is finished now*' \
			'which is said'
	run stop s
	change update-ref refs/heads/main "$(t rev-parse 'origin/main~1')"
done
[ $n -gt 0 ]
ok 'control: some were killed'
start checkout s --ref main
until_true 20 test -e "$tree/.git/casemate-update/switch"
kill -INT "$bg"
wait_bg
is "$rc $(at) $(t status --porcelain)" '0 very many main ' 'one that is only interrupted there comes to its end'
run rm --files --force s
finish

begin_app 'what a jail has made of it'
outside=$work/outside
mkdir "$outside"
give "$outside"
chmod 777 "$outside"
start_files
for trap in "ln -s $outside .git" 'echo gitdir: /tmp >.git' 'mkfifo .git' 'cp -r .git.old .git; echo ../../x >.git/commondir' \
	"cp -r .git.old .git; rm -rf .git/refs/remotes; ln -s $outside .git/refs/remotes" \
	'cp -r .git.old .git; rm .git/config; mkfifo .git/config' \
	'cp -r .git.old .git; mkdir -p .git/objects/info; echo /run/casemate/mirror/repository/objects >.git/objects/info/alternates'; do
	app
	run run --session s --git rw --repo "$url" -- sh -c "mv .git .git.old; $trap"
	run stop s
	later
	limit=60 run checkout s --ref main
	[ $rc -eq 125 ] && [ "$(cat "$tree/file")" = one ] && [ -z "$(ls -A "$outside")" ]
	ok "is refused: $trap"
	like "$(err)" '*casemate: cannot update*
hint: *' 'and the hint says what to do'
	run rm --files --force s
done
app
run run --session s --git rw --repo "$url" -- sh -c 'mkdir .h; for n in post-checkout reference-transaction run; do
printf "#!/bin/sh\n: >$PWD/ran\n" >.h/$n; chmod 755 .h/$n; done
git config core.hooksPath "$PWD/.h"; git config core.fsmonitor "$PWD/.h/run"; git config filter.x.smudge "$PWD/.h/run"
git config core.worktree /tmp; echo "* filter=x" >.git/info/attributes'
run stop s
later
run checkout s --ref main
is "$rc $(cat "$tree/file") $(ls "$tree/ran" 2>/dev/null)" '0 two ' 'its configuration runs nothing'
run rm --files --force s
app
src checkout -q -b "$(printf 'a\342\200\256b')" && src commit -q --allow-empty -m odd && src checkout -q main
printf '\033[31mred' >"$repos/app/$(printf 'name\033[2J')"
src add -A && src commit -q -m escapes
run run --session s --git rw --repo "$url" -- sh -c 'for f in name*; do echo mine >"$f"; done'
run stop s
for f in "$repos"/app/name*; do echo more >>"$f"; done
src commit -q -am more
run checkout s --ref main
[ $rc -eq 0 ] && ! LC_ALL=C grep -q "$(printf '\033')" "$work/err" && err | grep -q 'name.*2J'
ok 'names reach the terminal as text'
run rm --files --force s
finish

begin_app 'a private repository'
export CASEMATE_GIT_TOKEN=$https_token
url=$https_url/private/app
run checkout s --repo "$url"
is "$rc" 0 'a session'
later
run checkout s --ref main
is "$rc $(at)" '0 two main' 'with its token'
is "$(traces "$https_token")" '' 'which is nowhere'
export CASEMATE_GIT_TOKEN=wrong
src commit -q --allow-empty -m secret
run checkout s
is "$rc $(t log -1 --format=%s origin/main)" '125 two' 'without it nothing comes, from the mirror neither'
unset CASEMATE_GIT_TOKEN
run rm --files --force s
finish

begin_app 'a repository of this host'
allow "$work/w/app[ /]"
g() { "${as[@]}" git "$@"; }
g init -q -b main "$work/w/app"
for n in one two; do
	echo $n >"$work/w/app/file"
	give "$work/w/app/file"
	g -C "$work/w/app" add -A
	g -C "$work/w/app" commit -q -m $n
	[ $n = two ] || run checkout s --repo "$work/w/app"
done
run checkout s
is "$rc $(t log -1 --format=%s) $(t log -1 --format=%s origin/main)" '0 one two' 'is read again'
run checkout s --ref main
is "$rc $(at) $(cat "$tree/file")" '0 two main two' 'and gone to'
run rm --files --force s
finish

done_testing
