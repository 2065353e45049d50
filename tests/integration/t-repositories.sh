#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The repositories that other tests check out are what they are said to be, as git sees them: the
# hostile ones are taken by a transport and refused by git's own index, or would do harm to one
# who is not careful.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/repositories.sh"

command -v git >/dev/null || skip_all TOOLS 'no git'
git_settings

# What the machine's git may have been told to allow it not to.
g() {
	last_args="git $*"
	timeout -k 1 60 git -c core.protectHFS=true -c core.protectNTFS=true "$@" \
		>"$work/out" 2>"$work/err"
	rc=$?
}

# comes NAME: the transport takes r, whatever a checkout does then
comes() {
	rm -rf c
	g clone -q --no-checkout --no-local r c
	[ "$rc" = 0 ] && [ "$(git -C c rev-parse origin/main)" = "$(git -C r rev-parse main)" ]
	ok "$1 comes"
}

# refuses NAME GLOB: git's index does, through which it would be checked out
refuses() {
	comes "$1"
	g -C c read-tree origin/main
	# shellcheck disable=SC2053
	[ "$rc" != 0 ] && [[ $(err) == $2 ]]
	ok "$1 is refused"
	rm -rf r c
}

begin 'names'
for name in "${hostile_names[@]}"; do
	repo_named r "$name"
	refuses "$(printf %q "$name")" '*invalid path*'
done
repo_named r harmless
comes 'control'
g -C c checkout -q main
is "$rc $(cat c/harmless/config)" '0 [core] fsmonitor = touch /pwned' 'control: is checked out'
rm -rf r c
for name in a/file ../escaped "/$work/escaped"; do
	repo_slash r "$name" "$work/out"
	comes "a name with a slash ($name)"
	[ "$(git -C r cat-file -p 'main^{tree}' | wc -l)" = 2 ]
	ok 'it has that name and the link'
	rm -rf r c
done
repo_odd_names r
comes 'odd names'
is "$(git -C c ls-tree -rz --name-only origin/main | tr '\n\0' '|\n' | awk '{ print length }' | sort -n | tail -n 1)" \
	4106 'the longest is longer than a path may be'
is "$(git -C c ls-tree -rz --name-only origin/main | tr '\n\0' '|\n' | wc -l)" 10 'there are ten'
rm -rf r c
finish

begin 'links'
mkdir out
repo_links r "$work/w/out" ../out
g clone -q r c
is "$rc $(readlink c/abs) $(readlink c/rel) $(readlink c/passwd) $(readlink c/dangling)" \
	"0 $work/w/out ../out /etc/passwd nowhere" 'links are links'
rm -rf r c
for first in link dir; do
	repo_twice r "$work/w/out" $first
	comes "a link and a directory by one name ($first first)"
	is "$(git -C c cat-file -p 'origin/main^{tree}' | awk '{ print $1, $4 }' | sort | tr '\n' ' ')" \
		'040000 a 120000 a ' 'both are there'
	rm -rf r c
done
repo_linked_gitmodules r
refuses 'a .gitmodules that is a link' '*invalid path*.gitmodules*'
rm -rf out
finish

begin 'submodules'
git init -q -b main m && git -C m commit -q --allow-empty -m m
id=$(git -C m rev-parse HEAD)
repo_addresses r "$id" <<-'EOF'
	https://example.org/x
	../m
EOF
g clone -q r c
is "$(git -C c config -f .gitmodules submodule.m2.url) $(git -C c ls-files -s | grep -c '^160000')" \
	'../m 2' 'addresses are those of two submodules'
rm -rf r c
hostile_submodules 'touch ran' >"$work/kinds"
while IFS='|' read -r kind name path url line; do
	repo_submodule r "$id" "$name" "$path" "$url" "$line"
	comes "$kind"
	git -C c cat-file blob origin/main:.gitmodules >"$work/modules"
	got=$(git config -f "$work/modules" "submodule.$name.path")
	[ "$got" = "$path" ] && [ -n "$(git config -f "$work/modules" "submodule.$name.url")" ]
	ok "$kind: .gitmodules is one to git"
	[ "$(git -C c ls-tree -r origin/main | grep -c "^160000 commit $id")" = 1 ]
	ok "$kind: the submodule is in the tree"
	g clone -q --recurse-submodules r d
	# /etc/cm-test is in no tree: to git the submodule is another, without an address
	{ [ "$rc" != 0 ] || [[ $(err) == *ignoring* ]] || [ "$kind" = path-absolute ]; } &&
		[ ! -e ran ] && [ ! -e d/ran ] && [ ! -e out ] && [ ! -e /etc/cm-test ]
	ok "$kind: git will not have it"
	rm -rf r c d
done <"$work/kinds"
mkdir out
repo_submodule_through_link r "$id" "$work/w/out"
comes 'a submodule below a link'
[ "$(git -C c cat-file -p 'origin/main^{tree}' | grep -c '	a$')" = 2 ]
ok 'both are there'
rm -rf r c m out
finish

begin 'programs'
# git believes what belongs to its user alone
repo_programs r "touch $work/ran"
g clone -q --no-local r c
[ "$rc" = 0 ] && [ ! -e "$work/ran" ] && rm -rf c
ok 'none runs for one who takes it'
g -C r status
[ -e "$work/ran" ]
ok 'the settings would'
rm -f "$work/ran" r/a.flt
g -C r -c core.fsmonitor=false -c core.hooksPath=/dev/null checkout -q -- a.flt
[ -e "$work/ran" ]
ok 'the filters would'
rm -f "$work/ran"
g -C r -c core.fsmonitor=false commit -q --allow-empty -m x
[ -e "$work/ran" ]
ok 'the hooks would'
rm -rf r
finish

begin 'sizes'
repo_many_files r 100000
is "$(git -C r ls-tree -r main | wc -l) $(git -C r cat-file blob main:d999/f99999)" '100000 99999' \
	'a hundred thousand files'
rm -rf r
repo_many_objects r 30000
is "$(git -C r cat-file --batch-all-objects --batch-check | wc -l) $(git -C r rev-list --count main)" \
	'30000 10000' 'thirty thousand objects'
rm -rf r
finish

begin 'kinds'
repo_requests r
g clone -q --no-local r c
is "$rc $(ls c)" '0 file' 'requests are on no branch'
g -C c fetch -q origin refs/pull/7/head:p refs/merge-requests/3/head:m
is "$rc $(git -C c ls-tree --name-only p | tr '\n' ' ')$(git -C c ls-tree --name-only m | tr '\n' ' ')" \
	'0 file pull file merge ' 'and can be had'
rm -rf r c
repo_sha256 r
is "$(git -C r rev-parse HEAD | wc -c) $(git -C r rev-parse --show-object-format)" '65 sha256' 'sha256'
rm -rf r
repo_unborn r
g clone -q --no-local r c
[ "$rc" = 0 ] && ! git -C c rev-parse -q --verify HEAD >/dev/null &&
	git -C c rev-parse -q --verify origin/main >/dev/null
ok 'HEAD leads nowhere, others lead somewhere'
rm -rf r c
repo_lfs r
is "$(git -C r grep -l git-lfs.github | wc -l) $(git -C r check-attr filter 2.bin plain.bin text.txt | grep -c lfs)" \
	'4 2' 'lfs'
rm -rf r
finish

done_testing
