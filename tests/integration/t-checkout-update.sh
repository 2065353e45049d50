#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# casemate-checkout --update without a jail: what is brought into a checkout that is there, what of it
# never changes, and what a death on the way leaves.  TAP.
#
#   t-checkout-update.sh PATH-OF-CASEMATE-CHECKOUT
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/repositories.sh"

checkout=$(realpath "${1:?path of casemate-checkout}")
work=$(mktemp -d "${TMPDIR:-/tmp}/casemate-checkout.XXXXXX")
work=$(realpath "$work")
trap 'chmod -R u+rwX "$work"; rm -rf "$work"' EXIT
cd "$work" || exit 1
export HOME=$work LC_ALL=C
git_settings
umask 022
count=0
failed=0

ok() { # NAME: by the status of the command before
	local status=$? mark=
	count=$((count + 1))
	[ $status -eq 0 ] || mark='not '
	echo "${mark}ok $count - ${block:+$block: }$1"
	[ $status -eq 0 ] && return
	failed=$((failed + 1))
	echo "# exit $rc; report: $(head -c 900 report 2>/dev/null)"
	head -n 4 stderr | sed 's/^/# /'
	return 1
}

is() { # GOT WANT NAME
	[ "$1" = "$2" ]
	ok "$3" || printf '# got:  %s\n# want: %s\n' "$1" "$2"
}

rc=0
up() { # OPTION...: of t
	"$checkout" --update "$work/t" --source src --report-fd 3 "$@" 3>report 2>stderr
	rc=$?
	return $rc
}

has() { # TEXT...: all in the report
	local text
	for text; do
		grep -qF -- "$text" report || return 1
	done
}

# Two commits: of the second each kind of difference.  t is a checkout of the first.
ground() {
	rm -rf src t
	git init -q -b main src
	mkdir -p src/dir src/gone.d
	for name in same changed removed dir/file gone.d/file mode; do echo one >"src/$name"; done
	ln -s same src/link
	echo one >src/becomes-dir
	git -C src add -A
	git -C src commit -q -m one
	git -C src branch old
	"$checkout" --source src --target t >/dev/null 2>&1
	echo two >src/changed
	echo two >src/dir/file
	chmod +x src/mode
	ln -sfn changed src/link
	rm -r src/removed src/gone.d src/becomes-dir
	mkdir -p src/becomes-dir src/new.d
	echo two >src/becomes-dir/file
	echo two >src/new.d/new
	git -C src add -A
	git -C src commit -q -m two
	git -C src tag v2
	git -C src branch topic
	git -C src update-ref refs/pull/7/head "$(git -C src commit-tree -p main -m 'of a pull request' 'main^{tree}')"
}

# All that git knows of t and of its files.
state() {
	git -C t rev-parse HEAD
	git -C t symbolic-ref -q HEAD
	git -C t for-each-ref
	git -C t ls-files -s
	(cd t && find . -path ./.git -prune -o -printf '%P %y %m %l\n' | sort &&
		find . -path ./.git -prune -o -type f -print0 | sort -z | xargs -0 cat)
}

sound() { # t is as git would have it at HEAD, and nothing is left
	[ -z "$(git -C t status --porcelain)" ] && git -C t fsck --full --strict >fsck.out 2>&1 &&
		[ ! -e t/.git/casemate-update ] && [ ! -e t/.git/index.lock ] &&
		[ -z "$(find t/.git -type f -links +1)" ] && [ -z "$(find t -name '*.lock')" ]
}

block='refs'
ground
before=$(git -C t rev-parse HEAD)
up
is "$rc $(git -C t rev-parse HEAD) $(git -C t rev-parse origin/main)" "0 $before $(git -C src rev-parse main)" \
	'the remote is known, and HEAD stays'
is "$(git -C t for-each-ref --format='%(refname)' | tr '\n' ' ')" \
	'refs/heads/main refs/remotes/origin/HEAD refs/remotes/origin/main refs/remotes/origin/old refs/remotes/origin/topic refs/tags/v2 ' \
	'each branch and tag'
sound
ok 'nothing else'
git -C src branch -q -D topic
git -C src branch -q topic/sub
git -C src tag -f v2 old >/dev/null
up
is "$(git -C t for-each-ref --format='%(refname)' refs/remotes | grep topic) $(git -C t rev-parse v2)" \
	"refs/remotes/origin/topic/sub $(git -C src rev-parse main)" 'one that is gone goes, a tag stays'
has '1 tag of the source is another one here, which stays'
ok 'which is said'
before=$(state)
up
is "$(state)" "$before" 'once more changes nothing'
git -C t pack-refs --all
git -C t gc -q
packs=$(ls t/.git/objects/pack)
git -C src update-ref refs/heads/main old
up
is "$(git -C t rev-parse origin/main) $(ls t/.git/objects/pack)" "$(git -C src rev-parse old) $packs" \
	'what the checkout packed itself is not copied again'

block='switching'
ground
up --ref main
is "$rc $(git -C t rev-parse HEAD) $(git -C t rev-parse --abbrev-ref HEAD)" "0 $(git -C src rev-parse main) main" 'a fast-forward'
diff -r --no-dereference -x .git src t && sound
ok 'in each file'
has '"branch":"main"' '"notes":[]' "\"commit\":\"$(git -C src rev-parse main)\""
ok 'the report says where it is'
before=$(state)
up --ref main
is "$rc $(state)" "0 $before" 'already there'
up --ref old && sound
ok 'another branch'
is "$(git -C t rev-parse --abbrev-ref HEAD '@{u}' | tr '\n' ' ')" 'old origin/old ' 'which follows the remote'
[ -d t/gone.d ] && [ -f t/becomes-dir ] && [ ! -e t/new.d ]
ok 'what comes and goes'
up --ref v2 && sound
is "$rc $(git -C t rev-parse HEAD) $(git -C t rev-parse --abbrev-ref HEAD)" "0 $(git -C src rev-parse v2) HEAD" 'a tag'
up --ref "$(git -C src rev-parse --short old)" && sound
is "$rc $(git -C t rev-parse HEAD)" "0 $(git -C src rev-parse old)" 'a commit'
up --pr 7 && sound
is "$rc $(git -C t log -1 --format='%s %D')" '0 of a pull request HEAD -> pr-7' 'a pull request'
git -C src update-ref refs/pull/7/head "$(git -C src commit-tree -p refs/pull/7/head -m more 'main^{tree}')"
up --pr 7 && sound
is "$rc $(git -C t log -1 --format=%s)" '0 more' 'and what came to it'
up --branch mine --from old && sound
is "$rc $(git -C t rev-parse HEAD) $(git -C t rev-parse --abbrev-ref HEAD)" "0 $(git -C src rev-parse old) mine" 'a branch of its own'
has "branch 'mine' is new: it begins at 'refs/heads/old', with no upstream"
ok 'which is said'
echo mine >t/same
git -C t commit -q -am mine
mine=$(git -C t rev-parse HEAD)
up --ref main && up --branch mine --from nothing-at-all && sound
is "$rc $(git -C t rev-parse HEAD)" "0 $mine" 'it is gone back to as it is'
up --ref mine
is "$rc" 1 'but not as one of the source'
grep -q '^hint: .*--branch mine' stderr
ok 'and the hint says how'
up --ref nope
is "$rc $(git -C t rev-parse HEAD)" "1 $mine" 'a ref that is not there'

block='history'
ground
echo mine >t/mine
git -C t add mine
git -C t commit -q -m mine
mine=$(git -C t rev-parse HEAD)
up --ref main
is "$rc $(git -C t rev-parse HEAD)" "0 $mine" 'a branch with commits of its own stays'
has "branch 'main' has commits that 'refs/heads/main' of the source has not, and the reverse: it stays where it is"
ok 'which is said'
sound
ok 'and whole'
git -C t checkout -q --detach
git -C t commit -q --allow-empty -m lost
lost=$(git -C t rev-parse HEAD)
up --ref topic
is "$rc $(git -C t rev-parse --abbrev-ref HEAD)" '0 topic' 'from commits on no branch'
has "commit $lost was on no branch"
ok 'which are named'

block='work'
for edit in 'echo mine >changed' 'echo mine >removed' 'chmod -x mode; echo mine >mode' 'ln -sfn mine link' \
	'rm changed' 'echo mine >changed; git add changed; git show HEAD:changed >changed' \
	'mkdir new.d; echo mine >new.d/new' 'echo new.d >.git/info/exclude; mkdir new.d; echo mine >new.d/new' \
	'echo mine >new.d' 'ln -s dir new.d' 'echo mine >gone.d/file' \
	'rm changed; mkdir changed; echo mine >changed/mine' 'git rm -q --cached changed' \
	'rm becomes-dir; mkdir becomes-dir; echo mine >becomes-dir/mine'; do
	ground
	(cd t && eval "$edit")
	before=$(state | grep -v refs/)
	up --branch topic
	[ $rc -eq 0 ] && has 'the checkout stays as it is, and not on branch topic: changes that are not committed would be overwritten' &&
		[ "$(state | grep -v refs/)" = "$before" ] && [ ! -e t/.git/index.lock ] && [ ! -e t/.git/casemate-update ]
	ok "stays: $edit"
	is "$(git -C t rev-parse origin/main)" "$(git -C src rev-parse main)" 'but the remote is known'
done
for edit in 'echo mine >same' 'echo mine >untracked' 'echo mine >same; git add same' 'rm same' \
	'mkdir -p becomes.d/empty' 'rm removed' 'mkdir -p new.d/new' 'echo two >changed' 'mkdir new.d; echo two >new.d/new' \
	'touch -d 2001-01-01 changed'; do
	ground
	(cd t && eval "$edit")
	before=$(git -C t diff HEAD -- same; git -C t status --porcelain same untracked)
	up --branch topic
	is "$rc $(git -C t rev-parse HEAD) $(cat t/changed t/new.d/new | tr '\n' ' ')" "0 $(git -C src rev-parse topic) two two " \
		"is no obstacle: $edit"
	is "$(git -C t diff HEAD -- same; git -C t status --porcelain same untracked)" "$before" 'and stays'
done
ground
(cd t && git checkout -q -b side && echo side >changed && git commit -q -am side && git checkout -q main &&
	echo main >changed && git commit -q -am main && git merge -q side) >/dev/null 2>&1
before=$(state | grep -v refs/)
up --ref old
[ $rc -eq 0 ] && has 'a merge, rebase or the like is not finished in it' && [ "$(state | grep -v refs/)" = "$before" ]
ok 'half a merge stays'
ground
: >t/.git/index.lock
up --ref topic
is "$rc $(git -C t rev-parse HEAD)" "1 $(git -C src rev-parse old)" 'nor does it get in the way of a git at work'
grep -q "git is at work in" stderr && [ -e t/.git/index.lock ]
ok 'whose lock stays'

block='line ends'
ground
up --ref main
printf '*.txt text eol=crlf\n' >src/.gitattributes
printf 'a\nb\n' >src/a.txt
git -C src add -A && git -C src commit -q -m attributes
up --ref main && sound
is "$rc $(od -c t/a.txt | head -n 1 | tr -d ' ')" "0 0000000a\r\nb\r\n" 'are as the commit has them'
printf 'a\nc\n' >src/a.txt
git -C src commit -q -am more
up --ref main && sound
is "$rc $(od -c t/a.txt | head -n 1 | tr -d ' ')" "0 0000000a\r\nc\r\n" 'and known again'

block='depth'
ground
for i in 1 2 3 4; do git -C src commit -q --allow-empty -m "more $i"; done
rm -rf t whole
git clone -q --no-local --depth 2 src shallow 2>/dev/null
mv src whole && mv shallow src
"$checkout" --source src --target t 2>/dev/null
is "$(git -C t rev-list --count HEAD)" 2 'a part of the history'
up --unshallow
is "$rc" 1 'cannot be made whole from a part'
git -C whole commit -q --allow-empty -m new
git -C src fetch -q --depth 1 "file://$work/whole" main
git -C src reset -q --hard FETCH_HEAD
up --ref main
git -C t fsck --full >fsck.out 2>&1
is "$rc $? $(git -C t log -1 --format=%s)" '0 0 new' 'a part of a newer one'
mv src shallow && mv whole src
up --unshallow --ref main
git -C t fsck --full >fsck.out 2>&1
is "$rc $? $(git -C t rev-list --count HEAD) $(git -C t rev-parse --is-shallow-repository)" \
	"0 0 $(git -C src rev-list --count main) false" 'all of it'
up --unshallow
is "$rc" 1 'once'
grep -q '^hint: leave --unshallow out' stderr
ok 'and the hint says so'
rm -rf shallow

# What a jail may have made of the git directory.
block='hostile'
outside=$work/outside
mkdir "$outside"
for trap in "ln -s $outside .git" 'echo gitdir: ../outside >.git' 'mkfifo .git' 'mkdir .git' \
	'cp -r .git.old .git; echo ../../outside >.git/commondir' \
	'cp -r .git.old .git; mkdir -p .git/objects/info; echo ../../src/.git/objects >.git/objects/info/alternates' \
	"cp -r .git.old .git; mv .git/refs .git/r; ln -s $outside .git/refs" \
	"cp -r .git.old .git; rm -rf .git/refs/remotes/origin; ln -s $outside .git/refs/remotes/origin" \
	"cp -r .git.old .git; ln -s $outside/x .git/refs/heads/x" \
	"cp -r .git.old .git; rm -rf .git/objects/pack; ln -s $outside .git/objects/pack" \
	'cp -r .git.old .git; rm .git/HEAD; mkfifo .git/HEAD' 'cp -r .git.old .git; mkfifo .git/refs/heads/fifo' \
	"cp -r .git.old .git; rm .git/index; ln -s $outside/index .git/index" \
	"cp -r .git.old .git; ln -s $outside .git/casemate-update" \
	'cp -r .git.old .git; head -c 300 /dev/urandom >.git/index' 'cp -r .git.old .git; : >.git/config; chmod 0 .git/HEAD; rm .git/HEAD' \
	'cp -r .git.old .git; echo "[core]" >.git/config; echo "repositoryformatversion = 7" >>.git/config'; do
	ground
	(cd t && mv .git .git.old && eval "$trap")
	timeout 20 "$checkout" --update "$work/t" --source src --ref main --report-fd 3 3>report 2>stderr
	rc=$?
	[ $rc -eq 1 ] || [ $rc -eq 2 ]
	ok "is refused: $trap"
	[ -z "$(ls -A "$outside")" ] && [ "$(cat t/changed)" = one ]
	ok 'and nothing is written where it leads, nor in the tree'
done
ground
git -C t config core.worktree "$outside"
git -C t config core.hooksPath "$work/hooks"
git -C t config core.fsmonitor "$work/hooks/run"
git -C t config include.path "$work/hooks/config"
git -C t config filter.evil.smudge "$work/hooks/run"
git -C t config "url.$work/nowhere.insteadOf" "$work"
echo '* filter=evil' >t/.git/info/attributes
mkdir hooks
for name in run post-checkout reference-transaction; do
	printf '#!/bin/sh\n: >%s/ran\n' "$work" >"hooks/$name"
	chmod 755 "hooks/$name"
done
up --ref main
[ $rc -eq 0 ] && [ "$(cat t/changed)" = two ] && [ ! -e ran ] && [ -z "$(ls -A "$outside")" ]
ok 'its configuration runs nothing, and leads nowhere'
rm -rf hooks
ground
tree=$(printf '100644 blob %s\tfile\n' "$(git -C src rev-parse main:changed)" | git -C src mktree)
for name in .GIT .git '.git ' '.Git' 'git~1' '..'; do
	inner=$(entry 40000 "$name" "$tree" | tree_of src 2>/dev/null) || continue
	git -C src update-ref refs/heads/evil "$(git -C src commit-tree -m evil "$inner")"
	before=$(state | grep -v refs/)
	up --ref evil
	[ $rc -ne 0 ] && [ "$(state | grep -v refs/)" = "$before" ]
	ok "no name reaches its git directory: '$name'"
done
ground
up --ref main
ln -s "$outside" src/escape
git -C src add -A && git -C src commit -q -m link
up --ref main
git -C src rm -q escape && mkdir src/escape && echo x >src/escape/file
git -C src add -A && git -C src commit -q -m through
up --ref main && sound
is "$rc $(cat t/escape/file) $(ls -A "$outside")" '0 x ' 'a link makes room for a directory, and is not gone through'

# At each number of system calls that matter, by a signal that nothing can be done about.
block='death'
if command -v strace >/dev/null; then
	for call in renameat renameat2 unlinkat mkdirat; do
		for when in 1 2 3 4 5 6 7 8 9 10 12 14 16; do
			ground
			before=$(state | grep -v refs/)
			# the shell tells of who was killed
			{
				strace -qq -f -o /dev/null -e "inject=$call:signal=KILL:when=$when" \
					"$checkout" --update "$work/t" --source src --branch topic
				died=$?
			} >/dev/null 2>&1
			[ $died -ne 0 ] || break
			up
			after=$(state | grep -v refs/)
			if [ "$(git -C t rev-parse --abbrev-ref HEAD)" = topic ]; then
				sound && diff -r --no-dereference -x .git src t >/dev/null
			else
				[ "$after" = "$before" ] && sound
			fi
			ok "$call $when: the old or the new after the next update"
			up --branch topic && sound
			ok "$call $when: and it goes on"
		done
		[ "$when" -gt 1 ]
		ok "$call: is killed"
	done
	ground
	{
		strace -qq -f -o /dev/null -e inject=renameat:signal=KILL:when=4 \
			"$checkout" --update "$work/t" --source src --branch topic
	} >/dev/null 2>&1
	echo mine >t/same
	echo mine >t/changed
	echo mine >t/new.txt
	up
	has 'an earlier update to branch topic was broken off, and is finished now'
	ok 'one that was begun is finished'
	is "$(cat t/same t/changed t/new.txt | tr '\n' ' ')" 'mine mine mine ' 'work of after a death stays'
else
	echo "ok $((count += 1)) - death # SKIP TOOLS: no strace"
fi

echo "1..$count"
[ $failed -eq 0 ]
