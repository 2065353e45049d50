#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# --repo of repositories that were made to do harm, served by http: what tests/integration/
# t-checkout.sh has of the helper alone holds for a whole run from elsewhere, too.
# shellcheck disable=SC2016,SC2154
# SC2016: what single quotes keep from this shell is for the shell inside
# SC2154: URLs are set by servers.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/lib-remote.sh"

server_https "$repos" || skip_all TOOLS "no $missing"

# Each without the mirror of the one before, which had the same name.
begin_remote() { # NAME
	begin_mirrors "$1"
	mkdir "$work/outside"
	echo untouched >"$work/outside/file"
	give "$work/outside"
	start_files
}

n_made=0
# made FUNCTION ARGUMENT...: by a function of repositories.sh; its address in $url
made() {
	local make=$1
	shift
	n_made=$((n_made + 1))
	url=$http_url/open/r$n_made
	(cd "$repos" && "$make" "r$n_made" "$@") >/dev/null || bail "cannot make a repository: $make"
}

# Of the last run: it did not get to its command, said so, and left nothing.
is_refused() { # NAME
	refused "cannot check out '$url': *" '*' "$1"
	is "$(find "$root" -mindepth 1 2>/dev/null)" '' "$1: no checkout is left, whole or in part"
}

is_untouched() { # NAME
	is "$(cat "$work/outside/file")$(ls "$work/outside")$(ls "$work/w")" untouchedfile "$1"
}

begin_remote 'names'
made repo_named harmless
run run --repo "$url" -- cat harmless/config
expect_out '[core] fsmonitor = touch /pwned' 'control: the same tree with a harmless name'
for name in "${hostile_names[@]}"; do
	made repo_named "$name"
	run run --repo "$url" -- true
	is_refused "$(printf %q "$name")"
done
for name in a/file ../escaped "/$work/escaped"; do
	made repo_slash "$name" "$work/outside"
	run run --repo "$url" -- true
	is_refused "a slash in it: $name"
done
is_untouched 'nothing is outside'
made repo_odd_names
run run --repo "$url" -- true
refused "cannot check out '$url': *: File name too long" '*' '4,096 bytes and more in all'
of=(git -C "$repos/r$n_made")
"${of[@]}" branch odd "$("${of[@]}" ls-tree -z main | grep -azv deep | "${of[@]}" mktree -z |
	xargs "${of[@]}" commit-tree -m odd)"
run run --repo "$url" --ref odd -- sh -c 'ls -A | wc -l; git status --short; cat -- -rf'
is "$rc $(out)" '0 11
odd' 'odd ones that do no harm'
! LC_ALL=C grep -q $'[\x01-\x08\x0b-\x1f\x7f]' "$work/err"
ok 'none of them reaches the terminal raw'
finish

begin_remote 'links'
made repo_links "$work/outside" ../../../outside
run run --repo "$url" -- sh -c 'readlink abs rel passwd dangling; ls -A | wc -l'
is "$rc $(out)" "0 $work/outside
../../../outside
/etc/passwd
nowhere
5" 'those that lead out are links'
run run --repo "$url" -- sh -c 'echo overwritten >abs/file; echo overwritten >rel/file'
is_untouched 'and lead nowhere from inside'
for first in link dir; do
	made repo_twice "$work/outside" $first
	run run --repo "$url" -- true
	is_untouched "nothing is written through one of the tree's own: $first first"
done
made repo_linked_gitmodules
run run --repo "$url" -- true
is_refused 'a .gitmodules that is one'
is_untouched 'nothing is outside'
finish

begin_remote 'submodules'
(cd "$repos" && git init -q -b main private && echo PRIVATE-DATA >private/p && commit private p)
id=$(git -C "$repos/private" rev-parse HEAD)
made repo_addresses "$id" <<-END
	$repos/private
	file://$repos/private
	../private
	ext::sh -c touch% $work/w/ran
	-u./evil
	ssh://-oProxyCommand=touch/x
END
run run --repo "$url" -- sh -c 'git status --short; cat m*/* 2>/dev/null; find m* -mindepth 1; ls -A .git/modules 2>/dev/null; true'
is "$rc $(out)" '0 ' 'of a path, of a program, of an option: nothing is fetched'
! grep -rqs PRIVATE-DATA "$root" "$work/out" "$work/err"
ok 'nothing of a neighbour is anywhere'
while IFS='|' read -r kind name path address line <&3; do
	made repo_submodule "$id" "$name" "$path" "$address" "$line"
	run run --repo "$url" -- sh -c 'find . -path ./.git -prune -o -type f -print; find .git/hooks .git/modules -type f 2>/dev/null; true'
	case $kind in
	path-git* | path-out) is_refused "$kind" ;;
	*)
		[ "$rc" = 125 ] || is "$rc $(grep -v '^./.gitmodules$' "$work/out")" '0 ' "$kind: is a note at most"
		is_untouched "$kind: nothing ran, and nothing is outside"
		;;
	esac
done 3< <(hostile_submodules "$work/w/ran")
made repo_submodule_through_link "$id" "$work/outside"
run run --repo "$url" -- true
is_refused 'below a link'
is_untouched 'nothing is outside'
finish

begin_remote 'programs'
mark="touch $work/w/ran"
made repo_programs "$mark"
r=$repos/r$n_made
cp "$r/.git/config" "$work/home/.gitconfig"
git config -f "$work/home/.gitconfig" "url.$repos/other.insteadOf" "$url"
git config -f "$work/home/.gitconfig" http.proxy http://127.0.0.1:1
give "$work/home/.gitconfig"
start_files
run run --repo "$url" -- sh -c 'cat a.flt; git status --short; ls .git/hooks; git config --get-regexp "filter|core.*Path|fsmonitor|pager"'
is "$(out)" content 'none of the repository, its tree or the home has an effect'
[ ! -e "$work/w/ran" ]
ok 'none ran'
rm -f "$r/a.flt"
git -C "$r" checkout -q -- a.flt >/dev/null 2>&1
[ -e "$work/w/ran" ]
ok 'control: git runs them in the source'
rm -f "$work/w/ran"
finish

begin_remote 'many files'
made repo_many_files 100000
# as many on a file system that others use takes minutes to make and to remove
! is_root || {
	mount -t tmpfs -o mode=700,size=2g casemate-test "$work/home"
	give "$work/home"
	start_files
}
limit=400
since=$(now_ms)
run run --repo "$url" -- sh -c 'git ls-files | wc -l; cat d999/f99999; git status --short | head -n 3'
is "$rc $(out)" '0 100000
99999' "100,000 are checked out ($(($(now_ms) - since)) ms)"
! is_root || {
	rm -rf "$work/home/.mastracode"
	umount "$work/home"
	start_files
}
finish

done_testing
