#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Git in a jail: what of a repository's own files can be changed from inside, and that the rest works.
# shellcheck disable=SC2016
# SC2016: what single quotes keep from this shell is for the shell inside
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

command -v git >/dev/null || skip_all TOOLS 'no git'

# What the host's git would run or read: unchanged?
git_state() { (cd "$1" && find . -type f -o -type l | sort | xargs sha256sum); }

repository() { # DIR
	"${as[@]}" git init -q -b main "$1"
	"${as[@]}" git -C "$1" config user.name Host
	"${as[@]}" git -C "$1" config user.email host@example.org
	echo one >"$1/file"
	give "$1/file"
	"${as[@]}" git -C "$1" add file
	"${as[@]}" git -C "$1" commit -q -m first
}

export GIT_CONFIG_NOSYSTEM=1
printf '[user]\n\tname = A User\n\temail = user@example.org\n[init]\n\tdefaultBranch = trunk\n[credential]\n\thelper = store\n[alias]\n\tbad = !touch /tmp/alias\n[core]\n\tsshCommand = touch /tmp/ssh\n' \
	>"$top/gitconfig"

begin 'pinned'
cp "$top/gitconfig" "$HOME/.gitconfig" && give "$HOME/.gitconfig"
repository "$work/w"
before=$(git_state "$work/w/.git")
start_files
run run -- sh -c 'git status --short; git log --format=%s; git diff --stat; git show HEAD:file'
is "$(out) $rc" 'first
one 0' 'reading works'
expect_stderr '' 'without a word'
run run -- sh -c 'git config --get user.name; git config --get user.email; git config --global --list; git config --get safe.directory'
[[ $(out) == *'Host'* ]] && ! grep -q 'credential\|alias\|sshcommand' "$work/out"
ok 'identity is inside, helpers and aliases are not'
for what in 'echo x >>.git/config' 'echo x >.git/hooks/pre-commit' 'echo ../evil >.git/commondir' \
	'echo x >.git/config.worktree' 'mkdir .git/modules' 'echo x >.git/info/attributes' \
	'mkdir -p .git/objects/info && echo /tmp >.git/objects/info/alternates' 'rm -rf .git' \
	'mv .git .old' 'git config core.fsmonitor /tmp/x' 'ln -s /tmp .git/hooks/x' \
	'chmod 777 .git/config' 'rm .git/config' 'truncate -s 0 .git/HEAD'; do
	run run -- sh -c "$what"
	[ "$rc" != 0 ] && [ "$(git_state "$work/w/.git")" = "$before" ]
	ok "refused: $what"
done
cd "$top" || bail cd
run run --workspace "$work/w" -- sh -c "mv $work/w $work/w2 || cd $work/w && mv .git/../../w ../w2"
[ "$rc" != 0 ] && [ -d "$work/w/.git" ]
ok 'refused: a rename of the parent'
# what is above the workspace is the jail's own, and takes the pins along
run run --workspace "$work/w" -- sh -c "mv $work $work.2; cd $work/w || cd $work.2/w; echo x >>.git/config"
[ "$rc" != 0 ] && [ "$(git_state "$work/w/.git")" = "$before" ]
ok 'a rename further up changes nothing'
cd "$work/w" || bail cd
run run -- sh -c 'echo two >>file; git commit -q -am second'
[ "$rc" != 0 ] && [ "$rc" != 125 ] && [ -s "$work/err" ]
ok 'a commit fails with a message of git'"'"'s'
is "$(git_state "$work/w/.git")" "$before" 'and leaves the repository as it was'
is "$(tail -n 1 "$work/w/file")" two 'while the tree can be changed'
"${as[@]}" git -C "$work/w" checkout -q file
finish

begin '--git rw'
cp "$top/gitconfig" "$HOME/.gitconfig" && give "$HOME/.gitconfig"
repository "$work/w"
"${as[@]}" git -C "$work/w" config --unset user.name
"${as[@]}" git -C "$work/w" config --unset user.email
start_files
allow "^$work/w/.git"
run run --git rw -- sh -c 'echo two >>file; git commit -q -am second && git log -1 --format="%an <%ae>"'
expect_out 'A User <user@example.org>' 'a commit has the identity of the caller'
is "$("${as[@]}" git -C "$work/w" log -1 --format=%s)" second 'and is there outside'
[ "$identity" != root ] || ! is_root || is "$(find "$work/w" -not -uid 0)" '' 'with the owner of the tree'
allow "^$work/w/file"
run run --git rw -- sh -c 'git checkout -q -b topic && git config branch.topic.remote x && git gc -q'
is "$rc" 0 'branches, configuration and gc'
run run -- git init -q fresh
is "$rc" 0 'a new repository in the tree'
is "$(cat "$work/w/fresh/.git/HEAD" 2>/dev/null)" 'ref: refs/heads/trunk' 'starts as the caller configured'
rm -rf "$work/w/fresh"
finish

begin 'linked worktree'
repository "$work/main"
"${as[@]}" git -C "$work/main" worktree add -q "$work/tree" -b topic
start_files
cd "$work/tree" || bail cd
run run -- sh -c 'git status --short; git log --format=%s; pwd'
is "$(out) $rc" "first
$work/tree 0" 'works, with its repository elsewhere'
before=$(git_state "$work/main/.git")
run run -- sh -c "echo x >>$work/main/.git/config || echo x >$work/main/.git/hooks/pre-commit || echo /tmp >.git"
is "$(git_state "$work/main/.git") $(cat .git)" "$before gitdir: $work/main/.git/worktrees/tree" 'which cannot be changed'
run run --git rw -- sh -c 'echo 2 >>file; git -c user.name=a -c user.email=b commit -q -am two; git log --format=%s'
is "$(out)" 'two
first' 'but with --git rw'
run run -- cat "$work/main/file"
is "$rc" 1 'and no other tree of it is shown'
finish

begin 'submodule'
repository "$work/lib"
repository "$work/w"
"${as[@]}" git -C "$work/w" -c protocol.file.allow=always submodule --quiet add "$work/lib" lib 2>/dev/null
"${as[@]}" git -C "$work/w" commit -q -m module
start_files
run run -- sh -c 'git submodule status | cut -c42-; cd lib && git log --format=%s'
like "$(out)" '*lib*
first' 'works from above'
before=$(git_state "$work/w/.git")
cd "$work/w/lib" || bail cd
run run -- sh -c 'git log --format=%s; pwd'
is "$(out) $rc" "first
$work/w/lib 0" 'works as the workspace'
run run -- sh -c 'echo x >>../.git/modules/lib/config; echo x >../.git/modules/lib/hooks/x'
is "$(git_state "$work/w/.git")" "$before" 'and its configuration cannot be changed'
cd "$work/w" || bail cd
run run -- sh -c 'echo x >>.git/modules/lib/config; echo gitdir: /tmp >lib/.git'
is "$(git_state "$work/w/.git")" "$before" 'nor from above'
finish

# What the host's git runs by itself: a victim command on the host tells whether the jail got in.
begin 'programs in the tree'
repository "$work/w"
mkdir "$work/w/tools" "$work/w/conf"
for name in watch clean textconv editor inc home; do
	printf '#!/bin/sh\necho %s >>%s/host-ran\ncat "$1" 2>/dev/null\n' "$name" "$work" >"$work/w/tools/$name"
	chmod 755 "$work/w/tools/$name"
done
mkdir "$work/w/tools/deep" && mv "$work/w/tools/clean" "$work/w/tools/deep/clean"
echo '* filter=x diff=x' >"$work/w/.gitattributes"
printf '[core]\n\tpager = tools/inc\n' >"$work/w/conf/included"
give "$work/w"
g() { "${as[@]}" git -C "$work/w" "$@"; }
g config core.fsmonitor tools/watch
g config filter.x.clean './tools/deep/clean %f'
g config diff.x.textconv 'sh tools/textconv'
g config core.editor "$work/w/tools/editor"
g config alias.x '!cd tools && ls'
g config include.path ../conf/included
g config filter.x.smudge cat
ln -s deep/clean "$work/w/tools/link" && give -h "$work/w/tools/link"
start_files
run run -- sh -c 'ls tools >/dev/null; touch tools/new && rm tools/new'
is "$rc $(err)" '0 ' 'what is there is protected without a word, and beside it can be written'
for what in 'echo x >tools/watch' 'echo x >tools/deep/clean' 'rm tools/textconv' 'mv tools/editor tools/e' \
	'mv tools t' 'mv tools/deep d' 'echo x >tools/inc' 'echo x >conf/included' 'chmod 777 tools/watch' \
	'ln -sf /tmp tools/watch' 'cp tools/home tools/x && mv tools/x tools/watch'; do
	run run -- sh -c "$what"
	[ "$rc" != 0 ] && [ "$rc" != 125 ]
	ok "refused: $what"
done
# copied over the border of two mounts, and not taken away
rm -rf "$work/w/tools/x" "$work/w/d"
rm -f "$work/host-ran"
g status --short >/dev/null 2>&1
grep -q watch "$work/host-ran"
ok 'control: the host runs what is named'
rm -f "$work/host-ran"
g config diff.x.textconv tools/absent
g config diff.x.command tools/link
run run -- true
like "$(err)" "*note: '$work/w/tools/absent'*(diff.textconv)*is not there*" 'one that is not there is told of'
like "$(err)" "*note: '$work/w/tools/link'*(diff.command)*link*" 'one behind a link, too'
run run --git rw -- true
expect_stderr '' '--git rw: nobody is told what he asked for'
g config --unset diff.x.textconv
g config --unset diff.x.command
finish

begin '.git is a link'
repository "$work/w"
mkdir "$work/w/meta" && mv "$work/w/.git" "$work/w/meta/git"
ln -s meta/git "$work/w/.git"
give "$work/w/meta" && give -h "$work/w/.git"
before=$(git_state "$work/w/meta/git")
start_files
run run -- sh -c 'git status --short; git log --format=%s'
is "$(out) $rc" '?? meta/
first 0' 'works'
like "$(err)" "note: '$work/w/.git' is a symbolic link*" 'and what is not protected is told'
for what in 'echo x >>.git/config' 'echo x >meta/git/hooks/post-checkout' 'mv meta m' 'mv meta/git meta/g' \
	'echo ../evil >meta/git/commondir'; do
	run run -- sh -c "$what"
	[ "$rc" != 0 ] && [ "$rc" != 125 ] && [ "$(git_state "$work/w/meta/git")" = "$before" ]
	ok "refused: $what"
done
finish

# What an agent could leave for the next start: work for minutes, and a terminal full of it.
begin 'many programs'
repository "$work/w"
"${as[@]}" git init -q "$work/w/m0"
printf '[submodule "m"]\n\tpath = m0\n' >"$work/w/.gitmodules"
printf '[include]\n\tpath = one\n\tpath = two\n' >>"$work/w/m0/.git/config"
seq -f '[core] hooksPath = h%g' 6500 >"$work/w/m0/.git/one"
seq -f '[core] hooksPath = i%g' 6500 >"$work/w/m0/.git/two"
give "$work/w"
start_files
SECONDS=0
run run -- true
is "$rc $(wc -l <"$work/err")" '0 33' 'are told of in a screen'
like "$(err)" '*and 12968 more*' 'with their number'
[ $SECONDS -lt 10 ]
ok 'and looked at without delay'
seq -f '[x] y = %g' 17000 >"$work/w/m0/.git/two"
cp "$work/w/m0/.git/two" "$work/w/m0/.git/three"
printf '\tpath = three\n' >>"$work/w/m0/.git/config"
give "$work/w"
start_files
run run -- true
is "$rc" 125 'more than that is refused'
like "$(err)" '*than can be protected*--git rw*' 'with the way on'
finish

begin 'a tree of somebody else'
if is_root && [ "$identity" != root ]; then
	mkdir "$work/other"
	git init -q "$work/other" 2>/dev/null
	chmod -R a+rX "$work/other"
	start_files
	cd "$work/other" || bail cd
	run run -- sh -c 'git status --short; touch x'
	[ "$rc" != 0 ] && [ ! -e "$work/other/x" ]
	ok 'is not writable inside when it is not outside'
else
	skip IDENTITY 'for an ordinary user' 'is not writable inside when it is not outside'
fi
finish

done_testing
