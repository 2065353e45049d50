#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# casemate-checkout's part in submodules, without a jail and a network: what may be fetched is told,
# and a repository is put into its place as git would have put it.  TAP.
#
#   t-checkout-modules.sh PATH-OF-CASEMATE-CHECKOUT
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/repositories.sh"

checkout=$(realpath "${1:?path of casemate-checkout}")
work=$(mktemp -d "${TMPDIR:-/tmp}/casemate-checkout.XXXXXX")
work=$(realpath "$work")
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export HOME=$work LC_ALL=C
git_settings
umask 022
base=https://example.org/team/super.git
count=0
failed=0

ok() { # NAME: by the status of the command before
	local status=$? mark=
	count=$((count + 1))
	[ $status -eq 0 ] || mark='not '
	echo "${mark}ok $count - $1"
	[ $status -eq 0 ] && return
	failed=$((failed + 1))
	echo "# exit $rc; report: $(head -c 900 report 2>/dev/null)"
}

rc=0
co() { # OPTION...
	"$checkout" --report-fd 3 "$@" 3>report 2>stderr
	rc=$?
	return $rc
}

has() { # TEXT...: all in the report
	local text
	for text; do
		grep -qF -- "$text" report || return 1
	done
}

# place PATH NAME [GIT-DIR]: repository m as a submodule of t
place() {
	co --source m --target t.submodule --origin https://example.org/m --ref "$id" --modules \
		--into t --module "$1" --name "$2" --git-dir "${3:-.git}"
}

# without what changes in a directory that a checkout is put into
content() { find t -path t/.git/config -prune -o -printf '%p %y %m %l\n' | sort; }

repo_plain m
id=$(git -C m rev-parse HEAD)

# a repository with submodules below it, at the places of which is nothing
super() { # PATH...
	local path
	rm -rf super t t.modules
	git init -q -b main super
	for path; do
		printf '[submodule "%s"]\n\tpath = %s\n\turl = https://example.org/m\n' "$path" "$path"
		git -C super update-index --add --cacheinfo "160000,$id,$path"
	done >super/.gitmodules
	commit_index super
	co --source super --target t --origin "$base" --modules
}
commit_index() { git -C "$1" add .gitmodules && git -C "$1" commit -qm super; }

super a third/lib
has '"modules":[{"name":"a","path":"a","url":"https://example.org/m","commit":"'"$id"'"},{"name":"third/lib"' \
	'"submodules":2' '"notes":[]' && [ -d t.modules ]
ok 'what may be fetched is told, and that it is missing'
place a a && place third/lib third/lib && ! ls -d t.submodule* 2>/dev/null
ok 'two are put into their places'
is_clean() {
	[ -z "$(git -C t status --porcelain)" ] && [ -z "$(git -C t fsck 2>&1)" ] &&
		! git -C t submodule status --recursive | grep -v '^ '
}
is_clean && [ "$(git -C t submodule status | wc -l)" = 2 ]
ok 'git sees them, and nothing that is changed'
[ "$(cat t/a/.git)" = 'gitdir: ../.git/modules/a' ] &&
	[ "$(cat t/third/lib/.git)" = 'gitdir: ../../.git/modules/third/lib' ] &&
	[ "$(git -C t/third/lib config core.worktree)" = ../../../../third/lib ] &&
	[ "$(git -C t/a rev-parse HEAD)" = "$id" ] && ! git -C t/a symbolic-ref -q HEAD
ok 'as git has it'
mv t moved && git -C moved submodule --quiet update --init --recursive &&
	[ -z "$(git -C moved status --porcelain)" ] && mv moved t
ok 'also elsewhere; an update has nothing to do'
git clone -q --no-hardlinks m plain && diff -r --no-dereference -x .git m t/a &&
	[ -z "$(find t/.git/modules -type f -links +1)" ]
ok 'the files are those of the commit, and copies'
rm -rf plain

super a && place a a && content >before
mkdir t/b && place b a
[ $rc -eq 1 ] && has 'already for' && rmdir t/b && content | diff before -
ok 'a name that is taken is refused, and nothing is left'
place a other
[ $rc -eq 1 ] && has 'in the submodule' && content | diff before -
ok 'a place that is taken'
mkdir t/b && place b a/modules/x
[ $rc -eq 1 ] && has "another submodule's git directory" && rmdir t/b && content | diff before -
ok 'a name inside of a git directory'
mkdir t/b && place b a/objects
[ $rc -eq 1 ] && has "another submodule's git directory" && rmdir t/b && content | diff before -
ok 'directly in it'
mkdir t/a/sub && place a/sub inner .git/modules/a && rm -rf t/a/sub/.git &&
	[ -e t/.git/modules/a/modules/inner/HEAD ] &&
	[ "$(git --git-dir=t/.git/modules/a config submodule.inner.url)" = https://example.org/m ]
ok 'one in a submodule belongs to that'

super a
mkdir outside && rm -r t/a && ln -s ../outside t/a && place a a
[ $rc -eq 1 ] && [ -z "$(ls outside)" ] && [ "$(readlink t/a)" = ../outside ]
ok 'a link in its place'
mkdir outside/a && place a/a a
[ $rc -eq 1 ] && [ -z "$(ls outside/a)" ]
ok 'a link on the way to it'
rm -rf t/.git/modules && ln -s ../../outside t/.git/modules && mkdir t/b && place b b
[ $rc -eq 1 ] && [ "$(ls outside)" = a ]
ok 'a link on the way to its git directory'
rm t/.git/modules && mkdir t/.git/modules
refused=0
for name in .. ../x a/../b /x .git -x '' $'a\nb' 'a\b'; do
	! place b "$name" && has 'no such submodule' && ! place "$name" b && has 'no such submodule' ||
		refused=1
done
[ $refused = 0 ]
ok 'names and places that lead elsewhere'
for dir in .. . .git/hooks .git/modules .git/modules/../.. /etc; do
	! place b b "$dir" && has 'no such submodule' || refused=1
done
[ $refused = 0 ] && [ -z "$(ls t/b)" ] && place b b
ok 'superprojects that are none'
rm -rf outside

# what is told of hostile ones: nothing
hostile_submodules "$work/ran" >kinds
while IFS='|' read -r kind name path url line; do
	rm -rf r t t.modules
	repo_submodule r "$id" "$name" "$path" "$url" "$line"
	co --source r --target t --origin "$base" --modules
	case $kind in
	# to git the line is another's, and it is never copied
	update-program) has '"name":"sub"' && ! git -C t config submodule.sub.update ;;
	*) has '"code":"checkout"' || { has '"modules":[]' '"notes":["submodule' && [ ! -e t.modules ]; } ;;
	esac
	ok "$kind"
done <kinds

addresses() { # addresses on standard input
	rm -rf super t t.modules
	repo_addresses super "$id"
	co --source super --target t --origin "$base" --modules
}
addresses <<-EOF
	../lib
	../../../lib
	$work/m
	file://$work/m
	http://example.org/m
	git://example.org/m
	https://user:secret@example.org/m
	git@example.org:m
EOF
has '"url":"https://example.org/team/lib"' '"url":"https://example.org/m"' '"url":"git@example.org:m"' \
	"'m2' is refused" "'m3' is refused" "'m4' is refused" "'m5' is refused" "'m6' is refused" &&
	[ "$(grep -o '"url"' report | wc -l)" = 3 ] && ! grep -q secret report
ok 'addresses'

rm -rf super t t.modules
git init -q -b main super
for name in one two; do
	printf '[submodule "%s"]\n\tpath = a\n\turl = https://example.org/%s\n' $name $name
done >super/.gitmodules
git -C super update-index --add --cacheinfo "160000,$id,a"
git -C super update-index --add --cacheinfo "160000,$id,b"
commit_index super
co --source super --target t --origin "$base" --modules
has '"modules":[]' "'a' is in .gitmodules twice" "'b' has no address"
ok 'two of one path, one that is in the tree alone'

rm -rf super t t.modules
git init -q -b main super
printf '[submodule "n"]\n\tpath = a\n\turl = https://example.org/1\n[submodule "n"]\n\tpath = b\n\turl = https://example.org/2\n' \
	>super/.gitmodules
git -C super update-index --add --cacheinfo "160000,$id,a"
commit_index super
co --source super --target t --origin "$base" --modules
has '"modules":[]' "'a' is in .gitmodules twice"
ok 'two of one name'

rm -rf super t t.modules
git init -q -b main super
for ((i = 0; i < 10000; i++)); do
	printf '[submodule "s%d"]\n\tpath=s%d\n\turl=https://example.org/m\n' $i $i
done >super/.gitmodules
awk -v id="$id" 'BEGIN { for (i = 0; i < 10000; i++) print "160000 " id "\ts" i }' |
	git -C super update-index --index-info
commit_index super
SECONDS=0
co --source super --target t --origin "$base" --modules
[ "$(grep -o '"url"' report | wc -l)" = 64 ] && has '"submodules":10000' 'at most 64 are fetched' \
	'9920 more submodules stay empty' && [ "$SECONDS" -lt 20 ]
ok 'of ten thousand sixty-four'

git init -q -b main unborn
co --source unborn --target u --modules
has '"modules":[]' && [ ! -e u.modules ]
ok 'of a repository without commits none'
rm -r u

co --source m --target u --into t --module a
[ $rc -eq 1 ] && has 'go together'
ok 'half a place is refused'

echo "1..$count"
[ $failed -eq 0 ]
