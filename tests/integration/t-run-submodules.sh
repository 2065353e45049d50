#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# --repo of what has submodules: they come from their servers into their places, the token goes to the
# repository's own server alone, and what cannot be had is left empty.
# shellcheck disable=SC2016,SC2154
# SC2016: what single quotes keep from this shell is for the shell inside
# SC2154: URLs and tokens are set by servers.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/lib-remote.sh"

(cd "$repos" && repo_plain leaf && repo_plain other && echo other >other/other && commit other other)
server_https "$repos" || skip_all TOOLS "no $missing"
# the library that verifies names knows no addresses
https_url=${https_url/127.0.0.1/localhost}
elsewhere_url=${elsewhere_url/127.0.0.1/localhost}
leaf=$(git -C "$repos/leaf" rev-parse HEAD)
other=$(git -C "$repos/other" rev-parse HEAD)

begin_modules() { # NAME
	begin_mirrors "$1"
	export GIT_SSL_CAINFO=$https_ca
	forget_requests
	start_files
}

# module REPOSITORY PATH COMMIT URL [NAME]: one more submodule; commit_modules ends it
module() {
	printf '[submodule "%s"]\n\tpath = %s\n\turl = %s\n' "${5-$2}" "$2" "$4" \
		>>"$repos/$1/.gitmodules"
	git -C "$repos/$1" update-index --add --cacheinfo "160000,$3,$2"
}
new() { rm -rf "${repos:?}/$1" && git init -q -b main "$repos/$1"; }
commit_modules() { # REPOSITORY
	git -C "$repos/$1" add .gitmodules && git -C "$repos/$1" commit -qm modules
}

new inner
module inner deep/leaf "$leaf" ../leaf
commit_modules inner
inner=$(git -C "$repos/inner" rev-parse HEAD)
new super
module super leaf "$leaf" ../leaf
module super third/inner "$inner" "$https_url/private/inner" a/name
module super other "$other" "$elsewhere_url/open/other"
commit_modules super

# What git inside has to say of them.
look='git status --porcelain; git submodule status --recursive | sed "s/ (.*//"
cat other/other; cat third/inner/deep/leaf/one | tail -n 1
git -C third/inner/deep/leaf rev-parse --show-toplevel | sed "s,.*/super/,,"
git -C leaf remote get-url origin; git fsck --no-progress 2>&1'
seen=" $leaf leaf
 $other other
 $inner third/inner
 $leaf third/inner/deep/leaf
other
two
third/inner/deep/leaf
$https_url/private/leaf"

begin_modules 'a private repository'
export CASEMATE_GIT_TOKEN=$https_token
run run --repo "$https_url/private/super" -- sh -c "$look"
is "$rc $(out)" "0 $seen" 'its submodules are there, and theirs'
like "$(err)" '*casemate: submodules 4 *casemate: checkout *' 'the phase is told'
like "$(requests https)" '*200 GET /private/leaf/*Basic *' 'the server of all was told the token'
! grep -q 'stays empty\|is refused' "$work/err"
ok 'and no note'
like "$(requests elsewhere)" '200 GET /open/other/*' 'the other server was asked'
! requests elsewhere | grep -v '\[-\]$'
ok 'without any credential'
! grep -rqaF "$https_token" "$work/home" "$work/state" "$work/runtime" "$mirrors"
ok 'the token is kept nowhere'
run run --session s --repo "$https_url/private/super" -- find .git -name '*.pack' -links +1
is "$rc $(out)" '0 ' 'objects are copies'
is "$(ls "$root/s")" super 'beside the checkout is nothing'
forget_requests
run run --session s -- sh -c "$look"
is "$rc $(out)" "0 $seen" 'they are there in a later run'
is "$(requests https)$(requests elsewhere)" '' 'which asks nobody'
run rm --files --force s
# git writes core.worktree anew whatever there is to do
run run --git rw --repo "$https_url/private/super" -- sh -c \
	'git submodule update --init --recursive; git submodule status --recursive | grep -c "^ "'
is "$rc $(out)" '0 4' 'an update has nothing to do'
unset CASEMATE_GIT_TOKEN
finish

begin_modules 'another server wants a credential'
new asks
module asks other "$other" "$elsewhere_url/private/other"
module asks leaf "$leaf" ../leaf
commit_modules asks
CASEMATE_GIT_TOKEN=$https_token run run --repo "$https_url/private/asks" -- \
	sh -c 'ls other; cat leaf/one; git submodule status | sed "s/ (.*//"'
is "$rc $(out)" "0 one
two
 $leaf leaf
-$other other" 'its submodule stays empty, the others come'
like "$(err)" "*note: submodule 'other' stays empty: *localhost wants a credential, and there is none*" \
	'which is said'
requests elsewhere | grep -q ' 401 \|^401 ' && ! requests elsewhere | grep -v '\[-\]$'
ok 'nothing was sent to it'
new steals
module steals other "$other" "$https_url/port-private/other"
commit_modules steals
forget_requests
CASEMATE_GIT_TOKEN=$https_token run run --repo "$https_url/private/steals" -- ls other
is "$rc $(out)" '0 ' 'a redirect to it'
like "$(err)" "*note: submodule 'other' stays empty: *redirects*" 'is said, too'
is "$(requests elsewhere)" '' 'and not followed'
finish

begin_modules 'what cannot be had'
new lacks
module lacks gone "$leaf" ../gone
module lacks commit "$other" ../leaf
module lacks http "$leaf" "$http_url/open/leaf"
module lacks path "$leaf" "$repos/leaf"
module lacks file "$leaf" "file://$repos/leaf"
module lacks leaf "$leaf" ../leaf
commit_modules lacks
run run --repo "$https_url/open/lacks" -- sh -c \
	'ls commit file gone http path; git -C leaf rev-parse HEAD; git status --porcelain'
is "$rc $(out)" "0 commit:

file:

gone:

http:

path:
$leaf" 'stays empty'
like "$(err)" "*submodule 'file' is refused: only https and ssh*
*submodule 'http' is refused*
*submodule 'path' is refused*" 'what may not be fetched'
like "$(err)" "*submodule 'commit' stays empty: '$https_url/open/leaf' has no branch or tag with its commit $other
*submodule 'gone' stays empty: *localhost has no such repository*" 'what is not there'
is "$(requests http)" '' 'no other server was asked'
finish

begin_modules 'no end'
new endless
module endless again "$leaf" ../endless
commit_modules endless
# each commit's submodule is the one before
for _ in 1 2 3 4 5 6; do
	git -C "$repos/endless" update-index --cacheinfo \
		"160000,$(git -C "$repos/endless" rev-parse HEAD),again"
	git -C "$repos/endless" commit -qm again
done
run run --repo "$https_url/open/endless" -- sh -c 'ls -d again/again/again/again/.git; ls -A again/again/again/again/again'
is "$rc $(out)" '0 again/again/again/again/.git' 'four deep'
like "$(err)" "*note: submodule 'again/again/again/again/again' stays empty: submodules are followed to a depth of 4*" \
	'which is said'
new many
for ((i = 0; i < 70; i++)); do
	module many "m$i" "$leaf" ../leaf
done
commit_modules many
limit=240 run run --repo "$https_url/open/many" -- sh -c 'ls -d m*/one | wc -l'
is "$rc $(out)" '0 64' 'sixty-four'
like "$(err)" '*at most 64 are fetched*casemate: submodules 64 *' 'which is said, too'
finish

begin_modules 'hostile ones'
id=$leaf
hostile_submodules "touch $work/w/ran" | sed "s,https://example.org/x,$https_url/open/leaf," >"$work/kinds"
while IFS='|' read -ru 3 kind name path url line; do
	rm -rf "$repos/hostile"
	repo_submodule "$repos/hostile" "$id" "$name" "$path" "$url" "$line"
	run run --repo "$https_url/open/hostile" -- sh -c \
		'git config core.hooksPath; ls .git/hooks; find . -name one; git submodule status || :'
	[ ! -e ran ] && [ ! -e "$work/w/out" ] && [ ! -e /etc/cm-test ]
	ok "$kind runs nothing and leaves nothing"
	case $kind in
	update-program) is "$rc $(out | head -n 1)" '0 ./sub/one' "$kind: it is there" ;;
	path-git | path-git-short | path-out) is "$rc" 125 "$kind: there is no checkout" ;;
	*) is "$rc $(out | grep -c one)" '0 0' "$kind: it stays empty" ;;
	esac
done 3<"$work/kinds"
mkdir out
rm -rf "$repos/hostile"
repo_submodule_through_link "$repos/hostile" "$id" "$work/w/out"
run run --repo "$https_url/open/hostile" -- true
is "$rc $(ls out)" '125 ' 'a link on the way to one'
rmdir out
new nested
module nested a "$leaf" ../leaf
module nested b "$other" ../other a/modules/x
module nested c "$other" ../other a/objects
commit_modules nested
run run --repo "$https_url/open/nested" -- sh -c 'ls a/one; ls b c; find .git/modules -name HEAD -path "*modules/*/HEAD" | sort'
is "$rc $(out)" '0 a/one
b:

c:
.git/modules/a/HEAD
.git/modules/a/logs/HEAD
.git/modules/a/refs/remotes/origin/HEAD' 'a git directory within another'"'"'s'
finish

if server_ssh "$repos"; then
	begin_modules 'ssh'
	allow '/home/\.ssh( |/)'
	install -d -m 700 "$HOME/.ssh"
	install -m 600 "$ssh_key" "$HOME/.ssh/id_ed25519"
	cp "$ssh_known_hosts" "$HOME/.ssh/known_hosts"
	give "$HOME/.ssh"
	start_files
	new keyed
	module keyed leaf "$leaf" ../leaf
	module keyed other "$other" "$https_url/open/other"
	commit_modules keyed
	run run --repo "$ssh_url/keyed" -- sh -c 'cat leaf/one other/other; git -C leaf remote get-url origin'
	is "$rc $(out)" "0 one
two
other
$ssh_url/leaf" 'submodules of its server come with its key'
	commands=$(ssh_commands)
	new unkeyed
	module unkeyed leaf "$leaf" "$ssh_url/leaf"
	commit_modules unkeyed
	run run --repo "$https_url/open/unkeyed" -- ls -A leaf
	is "$rc $(out)" '0 ' 'of another server'"'"'s repository they do not'
	like "$(err)" "*note: submodule 'leaf' stays empty: cannot fetch '$ssh_url/leaf': *" 'which is said'
	is "$(ssh_commands)" "$commands" 'the key opened nothing'
	finish
else
	skip TOOLS "no $missing" 'ssh'
fi

begin_modules 'a repository of this host'
git clone -q "$repos/super" here
git -C here config -f .gitmodules submodule.other.url "$elsewhere_url/open/other"
give here
start_files
run run --repo here -- sh -c 'cat other/other; ls leaf; git submodule status other | sed "s/ (.*//"'
is "$rc $(out)" "0 other
 $other other" 'what https has comes, a neighbour does not'
like "$(err)" "*submodule 'leaf' is refused*" 'which is said'
finish

begin_modules 'an end on the way'
run run --session k --repo "$https_url/open/super" --ref main -- true
run stop k
state=$(cm inspect k | sed -n 's/^state *//p')/state.json
sed -i 's/"checkout_done":true/"checkout_done":false/; s/,"sum":"[^"]*"//' "$state"
rm -rf "$root/k/super/leaf"/* && mkdir "$root/k/super.modules"
give "$root/k/super.modules"
run run --session k -- ls leaf/one
is "$rc $(out)" '0 leaf/one' 'a checkout that lacks submodules is made again'
is "$(ls "$root/k")" super 'once'
run rm --files --force k
finish

done_testing
