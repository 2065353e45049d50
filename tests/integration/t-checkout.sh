#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# casemate-checkout without a jail: what it makes equals what git clone makes, what is hostile in
# a repository stays inert, what fails leaves nothing.  TAP.
#
#   t-checkout.sh PATH-OF-CASEMATE-CHECKOUT
#
# CM_TEST_MUST_WORK="USERNS NOBODY LOOP PTRACE" (or "all") makes a missing prerequisite a failure.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/repositories.sh"

checkout=$(realpath "${1:?path of casemate-checkout}")
# the hard links that must not be made are only possible on one file system
work=$(mktemp -d "${TMPDIR:-/tmp}/casemate-checkout.XXXXXX")
work=$(realpath "$work")
chmod 755 "$work"
trap 'chmod -R u+rwX "$work" 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 1

export HOME=$work/home LC_ALL=C
git_settings
mkdir "$HOME"
umask 022

count=0
failed=0

ok() { # NAME: by the status of the command before
	local status=$? mark=
	count=$((count + 1))
	[ $status -eq 0 ] || mark='not '
	echo "${mark}ok $count - $1"
	[ $status -eq 0 ] && return
	failed=$((failed + 1))
	echo "# exit $rc; report: $(head -c 600 report 2>/dev/null)"
	sed 's/^/# /' stderr 2>/dev/null | head -n 6
}

skip() { # PREREQUISITE NAME
	count=$((count + 1))
	case " ${CM_TEST_MUST_WORK:-} " in
	*' all '* | *" $1 "*)
		echo "not ok $count - $2 # $1 must work here"
		failed=$((failed + 1))
		;;
	*) echo "ok $count - $2 # SKIP $1" ;;
	esac
}

rc=0
co() { # SOURCE TARGET [OPTION...]: status in rc, report and progress in files
	local source=$1 target=$2
	shift 2
	"$checkout" --source "$source" --target "$target" --report-fd 3 --progress-fd 4 "$@" \
		3>report 4>progress 2>stderr
	rc=$?
	return $rc
}

has() { # TEXT...: all in the report
	local text
	for text; do
		grep -qF -- "$text" report || {
			echo "# no '$text'"
			return 1
		}
	done
}

# refused NAME EXIT CODE TEXT [TARGET]: the last co failed so, said how to go on, and left nothing
refused() {
	local target=${5:-t}
	[ $rc -eq "$2" ] && has "\"code\":\"$3\"" "$4" '"hint":"' && grep -q '^hint: ' stderr &&
		[ ! -e "$target" ] && [ ! -e "$target.partial" ]
	ok "$1"
	rm -rf "$target"
}

listing() { (cd "$1" && find . -path ./.git -prune -o -printf '%P %y %m %l\n' | sort); }

# A checkout as good as the clone: content, modes, links, history, a clean status, files of its own.
same() { # OURS GITS
	diff -r --no-dereference -x .git "$1" "$2" && [ "$(listing "$1")" = "$(listing "$2")" ] &&
		[ "$(git -C "$1" rev-parse HEAD)" = "$(git -C "$2" rev-parse HEAD)" ] &&
		[ -z "$(git -C "$1" status --porcelain)" ] && sound "$1"
}

sound() { # REPOSITORY: whole by itself and no inode shared
	git -C "$1" fsck --full --strict --no-dangling >fsck.out 2>&1 || {
		cat fsck.out
		return 1
	}
	! grep -v '^notice: ' fsck.out && [ -z "$(find "$1" -type f -links +1)" ] &&
		[ -z "$(find "$1/.git/objects" ! -type f ! -type d)" ] &&
		[ -z "$(find "$1/.git/objects" -type f ! -perm 444)" ] &&
		[ ! -e "$1/.git/objects/info/alternates" ]
}

t_plain() {
	co src t
	git clone -q --no-hardlinks src g
	[ $rc -eq 0 ] && same t g
	ok 'a work tree is checked out as git clones it'
	has '"code":"ok"' '"ref":"refs/heads/main"' '"branch":"main"' '"files":6' '"notes":[]' \
		"\"commit\":\"$(git -C src rev-parse HEAD)\""
	ok 'the report names commit, ref, branch and files'
	[ "$(git -C t remote get-url origin)" = "$work/src" ] &&
		[ "$(git -C t rev-parse --abbrev-ref '@{u}')" = origin/main ] &&
		[ "$(git -C t for-each-ref --format='%(refname) %(objectname)')" = \
			"$(git -C g for-each-ref --format='%(refname) %(objectname)')" ]
	ok 'origin, upstream and refs are those of a clone'
	git -C t pull -q && git -C t fetch -q --all && git -C t commit -q --allow-empty -m more
	ok 'the result can pull and commit'
	[ -z "$(find t/.git/hooks -type f)" ]
	ok 'there are no hooks, samples or others'
	local stages
	stages=$(sed -n 's/^{"type":"checkout.progress","stage":"\([a-z]*\)","received":[0-9]*,"total":[0-9]*}$/\1/p' progress | uniq | tr '\n' ' ')
	[ "$stages" = 'open refs loose packs files done ' ] &&
		! grep -qv -e '^{"type":"checkout.progress",.*}$' -e '^{"type":"checkout.alive"}$' progress &&
		[ "$(wc -l <report)" -eq 1 ]
	ok 'progress has each stage, one object a line'
	rm -rf t g
	(umask 077 && cd dir.d && "$checkout" --source ../src --target ./rel 2>../stderr)
	rc=$?
	[ $rc -eq 0 ] && [ "$(stat -c %a dir.d/rel)$(stat -c %a dir.d/rel/one)" = 755644 ] &&
		[ "$(git -C dir.d/rel remote get-url origin)" = "$work/src" ]
	ok 'relative paths work and the umask of the caller does not matter'
	rm -rf dir.d/rel
	"$checkout" --source src --target "a b"$'\n'c 2>stderr && sound "a b"$'\n'c
	ok 'odd names of targets work'
	rm -rf "a b"$'\n'c
}

t_forms() {
	git clone -q --bare src bare.git
	git -C src worktree add -q ../wt feature/x
	git -C src worktree add -q --detach ../wt2 light
	local form
	for form in bare.git src/.git; do
		co $form t && git clone -q --no-hardlinks $form g && same t g
		ok "$form is a source"
		rm -rf t g
	done
	co wt t && has '"branch":"feature/x"' && [ -e t/side ] && sound t
	ok 'a linked worktree is a source, with its own HEAD'
	rm -rf t
	co wt2 t && has '"branch":null' 'detached' && [ ! -e t/side ] && sound t &&
		! git -C t symbolic-ref -q HEAD
	ok 'a detached worktree gives a detached checkout and a note'
	rm -rf t
	git init -q -b main super && git -C super -c protocol.file.allow=always \
		submodule --quiet add "$work/src" mod && commit super m
	co super/mod t && git clone -q --no-hardlinks super/mod g && same t g
	ok "a submodule's tree is a source"
	rm -rf t g
	mv src/.git src/moved && co wt t
	mv src/moved src/.git
	refused 'a worktree whose repository is not there is explained' 1 not-found 'linked worktree'
	git clone -q --bare src packed.git && git -C packed.git gc -q && git -C packed.git pack-refs --all
	co packed.git t && git clone -q --no-hardlinks packed.git g && same t g &&
		[ -n "$(find t/.git/objects/pack -name '*.idx')" ]
	ok 'packs and packed refs are copied'
	rm -rf t g
	git -C packed.git config core.repositoryformatversion 1
	git -C packed.git config extensions.worktreeConfig true
	co packed.git t && sound t
	ok 'harmless extensions do not stand in the way'
	rm -rf t
	git clone -q --bare src broken.git
	echo 0123456789012345678901234567890123456789 >broken.git/refs/heads/gone
	co broken.git t && has 'missing objects' && sound t && ! git -C t rev-parse -q --verify origin/gone
	ok 'refs to missing objects are left out and noted'
	rm -rf t
}

t_empty() {
	git init -q -b trunk unborn
	co unborn t && has '"commit":null' '"branch":"trunk"' '"files":0' 'has no commits' &&
		[ "$(git -C t symbolic-ref HEAD)" = refs/heads/trunk ] && sound t &&
		[ "$(find t -mindepth 1 -maxdepth 1)" = t/.git ]
	ok 'a repository without commits gives an empty checkout and a note'
	rm -rf t
	git init -q --bare empty.git && co empty.git t && sound t
	ok 'so does a bare one'
	rm -rf t
}

t_shallow() {
	git clone -q --depth 1 "file://$work/src" shallow
	co shallow t && has 'shallow' && sound t &&
		[ "$(git -C t rev-list --count HEAD)" = 1 ] &&
		[ "$(git -C t rev-parse --is-shallow-repository)" = true ]
	ok 'a shallow source gives a shallow checkout and a note'
	rm -rf t
	printf 'not a commit\n' >shallow/.git/shallow && co shallow t
	refused 'a malformed shallow file is refused' 1 checkout 'not a list of commits'
	git -C src config uploadpack.allowFilter true
	git clone -q --no-checkout --filter=blob:none "file://$work/src" partial
	co partial t
	refused 'a partial clone that lacks objects is explained' 1 checkout 'partial clone'
	repo_sha256 sha256 && co sha256 t && has "the host's git does this" \
		"\"commit\":\"$(git -C sha256 rev-parse HEAD)\"" && [ "$(cat t/one)" = one ] &&
		[ -z "$(git -C t status --porcelain)$(git -C t fsck 2>&1)" ]
	ok 'a SHA-256 repository is checked out by git'
	rm -rf t
	co sha256 t --into "$work" --module s --git-dir .git --name s
	refused 'and is nobody'"'"'s submodule' 1 unsupported 'SHA-256'
}

# at REF COMMIT BRANCH: a ref leads to a commit, on a branch or (empty) detached
at() {
	local commit
	commit=$(git -C src rev-parse "$2^{commit}")
	co src t --ref "$1" && has "\"commit\":\"$commit\"" &&
		[ "$(git -C t rev-parse HEAD)" = "$commit" ] &&
		[ "$(git -C t symbolic-ref -q --short HEAD)" = "$3" ] &&
		[ -z "$(git -C t status --porcelain)" ]
	ok "--ref $1"
	rm -rf t
}

t_refs() {
	local first
	first=$(git -C src rev-parse light)
	at HEAD main main
	at feature/x feature/x feature/x
	at refs/heads/feature/x feature/x feature/x
	at heads/feature/x feature/x feature/x
	at light light ''
	at v1.0 v1.0 ''
	at refs/tags/v1.0 v1.0 ''
	at "$first" light ''
	at "${first:0:4}" light ''
	at "${first:0:12}" light ''
	at "$(git -C src rev-parse v1.0)" v1.0 ''
	co src t --ref feature/x && git clone -q --no-hardlinks -b feature/x src g && same t g &&
		[ "$(git -C t rev-parse --abbrev-ref '@{u}')" = origin/feature/x ]
	ok 'a branch tracks origin and equals git clone -b'
	rm -rf t g
	co src t --ref v1.0 && git clone -q --no-hardlinks -b v1.0 src g && same t g
	ok 'a tag equals git clone -b'
	rm -rf t g

	git clone -q src down && git -C down branch -q --unset-upstream
	co down t --ref origin/feature/x && has '"branch":"feature/x"' 'no upstream' && [ -e t/side ]
	ok 'a remote-tracking branch becomes a local one'
	rm -rf t
	co down t --ref feature/x && has '"ref":"refs/remotes/origin/feature/x"' && [ -e t/side ] && sound t
	ok 'its short name does, as for git checkout'
	rm -rf t
	git -C down remote add other ../src && git -C down fetch -q other
	co down t --ref feature/x
	refused 'a branch of two remotes is ambiguous' 1 invalid \
		"'refs/remotes/origin/feature/x', 'refs/remotes/other/feature/x'"
	git clone -q src both && git -C both tag main light
	co both t --ref main
	refused 'a name that is a tag and a branch is ambiguous' 1 invalid "'refs/tags/main', 'refs/heads/main'"
	co src t --ref mian
	refused 'a typing error gets a suggestion' 1 not-found "did you mean 'main'"
	co src t --ref feature/y
	refused 'so does another' 1 not-found "did you mean 'feature/x'"
	co src t --ref V1.0
	refused 'so does a wrong case' 1 not-found "'v1.0'"
	co src t --ref 'main~1'
	refused 'expressions are refused with a way out' 1 not-found 'git rev-parse'
	co src t --ref 0000000000000000000000000000000000000000
	refused 'an id that is not there' 1 not-found 'not in the source'
	co src t --ref "$(git -C src rev-parse HEAD:one)"
	refused "a file's id is no commit" 1 invalid 'id of a blob'
	git -C src tag blobtag HEAD:one
	co src t --ref blobtag
	git -C src tag -d blobtag >/dev/null
	refused 'nor is the tag of a file' 1 invalid 'names a blob'
	co src t --ref ''
	refused 'an empty ref is refused' 1 invalid '--ref'
	co src t --ref '../../../../etc/passwd'
	refused 'a ref is not a path' 1 not-found 'not in the source'
}

# on BRANCH COMMIT UPSTREAM NOTE OPTION...: what is checked out with a branch asked for
on() {
	local branch=$1 commit upstream=$3 note=$4
	commit=$(git -C src rev-parse "$2^{commit}")
	shift 4
	co src t --branch "$branch" "$@" && has "\"commit\":\"$commit\"" "\"branch\":\"$branch\"" "$note" &&
		[ "$(git -C t rev-parse HEAD)" = "$commit" ] &&
		[ "$(git -C t symbolic-ref -q HEAD)" = "refs/heads/$branch" ] &&
		[ "$(git -C t rev-parse --abbrev-ref '@{u}' 2>/dev/null)" = "$upstream" ] &&
		[ "$(git -C t for-each-ref refs/heads --format='%(refname)')" = "refs/heads/$branch" ] &&
		[ -z "$(git -C t status --porcelain)" ] && sound t
	ok "--branch $branch $*"
	rm -rf t
}

t_branches() {
	local first
	first=$(git -C src rev-parse light)
	git -C src update-ref refs/pull/3/head "$(git -C src commit-tree -p light -m three 'light^{tree}')"
	on new main '' "branch 'new' is new: it begins at 'refs/heads/main'"
	on new light '' "it begins at 'refs/tags/light'" --from light
	on new feature/x '' "it begins at 'refs/heads/feature/x'" --from feature/x
	on new light '' "it begins at '$first'" --from "${first:0:12}"
	on new light '' "it begins at 'refs/tags/light'" --ref light
	on new refs/pull/3/head '' "it begins at 'refs/pull/3/head'" --pr 3
	on new refs/pull/3/head '' "it begins at 'refs/pull/3/head'" --from refs/pull/3/head
	# a directory of refs where the source has a ref, and the reverse
	on main/x main '' "branch 'main/x' is new"
	on feature main '' "branch 'feature' is new"
	on feature/x feature/x origin/feature/x "branch 'feature/x' exists in the source"
	on feature/x feature/x origin/feature/x 'and is not made anew' --from light
	on feature/x feature/x origin/feature/x 'and is not made anew' --from gone
	on feature/x feature/x origin/feature/x 'and is not made anew' --pr 3
	on main main origin/main "branch 'main' exists in the source"
	# a tag of that name is no branch
	on light main '' "branch 'light' is new"
	git -C src checkout -q --detach light
	on new light '' "it begins at '$first'"
	git -C src checkout -q main
	git init -q -b trunk none && co none t --branch new && has '"branch":"new"' '"commit":null' \
		"branch 'trunk' of the source has no commits: the checkout is empty, on branch 'new'" &&
		[ "$(git -C t symbolic-ref --short HEAD)" = new ]
	ok 'in a source without commits'
	rm -rf t
	co none t --branch trunk && has '"branch":"trunk"' '"commit":null' 'the checkout is empty'
	ok 'and the one that its HEAD names'
	rm -rf t none
	co src t --branch new --from nowhere
	refused 'at what is not there' 1 not-found "ref 'nowhere'"
	co src t --branch new --from "$(git -C src rev-parse HEAD:one)"
	refused 'at what is no commit' 1 invalid 'id of a blob'
	co src t --branch 'a..b'
	refused 'a name that no branch can have' 1 invalid "'a..b'"
	co src t --branch -x
	refused 'one that is an option' 1 invalid "'-x'"
	co src t --from main
	refused '--from without --branch' 1 invalid '--branch'
	co src t --branch new --from main --ref light
	refused '--from beside --ref' 1 invalid 'contradict'
	co src t --branch new --from main --pr 3
	refused '--from beside --pr' 1 invalid 'contradict'
	"$checkout" --fetch https://example.org/x --mirror t --branch new 2>stderr
	[ $? -eq 1 ] && grep -q 'fetch' stderr
	ok '--branch is none of a fetch'
	git -C src update-ref -d refs/pull/3/head
}

# What GitHub and Gitea, GitLab and Bitbucket call the head of a request.
t_requests() {
	local name id
	for name in refs/pull/5/head refs/merge-requests/5/head refs/pull-requests/5/from; do
		id=$(git -C src commit-tree -p light -m "$name" 'light^{tree}')
		git -C src update-ref "$name" "$id"
		co src t --pr 5 && has "\"ref\":\"$name\"" '"branch":"pr-5"' '"notes":[]' &&
			[ "$(git -C t rev-parse HEAD) $(git -C t symbolic-ref --short HEAD)" = "$id pr-5" ] &&
			! git -C t rev-parse --quiet --verify '@{u}' >/dev/null 2>&1 && sound t
		ok "--pr is $name"
		rm -rf t
		git -C src update-ref -d "$name"
		co src t --pr 5
		refused 'and nothing where it is gone' 1 not-found 'no pull or merge request 5'
	done
	git -C src update-ref refs/pull/51/head main
	co src t --pr 5
	refused 'nor is another number it' 1 not-found 'no pull or merge request 5'
	git -C src update-ref -d refs/pull/51/head
	for name in 0 -1 x 4294967296 ''; do
		co src t --pr "$name"
		refused "a number that is none: '$name'" 1 invalid '--pr'
	done
	co src t --pr 5 --ref main
	refused 'a ref is another one' 1 invalid 'contradict'
}

# With 1,500 objects of each kind some ids begin with the same four digits.
t_short_ids() {
	local i prefix id
	git init -q -b main short
	for i in $(seq 1500); do
		echo "commit refs/heads/main"
		echo "committer a <a@example.org> 1700000000 +0000"
		printf 'data 1\nx\nM 100644 inline f\ndata %s\n%s\n' ${#i} "$i"
	done | git -C short fast-import --quiet --force
	git -C short cat-file --batch-all-objects --batch-check='%(objecttype) %(objectname)' >ids
	# digits of two commits
	prefix=$(sed -n 's/^commit \(....\).*/\1/p' ids | sort | uniq -d | head -n 1)
	id=$(grep "^commit $prefix" ids | tail -n 1)
	co short t --ref "$prefix"
	refused 'an ambiguous id is an error that lists' 1 invalid "${id#* }"
	# digits of one commit and of something else
	prefix=$(awk '{ p = substr($2, 1, 4); if ($1 == "commit") c[p]++; else o[p]++ }
		END { for (p in c) if (c[p] == 1 && o[p]) { print p; exit } }' ids)
	id=$(grep "^commit $prefix" ids)
	co short t --ref "$prefix" && has "\"commit\":\"${id#* }\""
	ok 'only commits count when an id is ambiguous'
	rm -rf t
	# and of none
	prefix=$(awk '{ p = substr($2, 1, 4); if ($1 == "commit") c[p]++; else o[p]++ }
		END { for (p in o) if (!c[p] && o[p] > 1) { print p; exit } }' ids)
	co short t --ref "$prefix"
	refused 'digits of several files are no commit' 1 invalid 'none is that of a commit'
}

t_alternates() {
	git clone -q --shared src shared && echo own >shared/own && commit shared own
	git clone -q --shared shared chained && echo more >chained/more && commit chained more
	co chained t && git clone -q --no-hardlinks chained g && same t g
	ok 'a chain of alternates is read through, and the result has none'
	rm -rf t g
	git clone -q --shared src relative && echo ../../../src/.git/objects >relative/.git/objects/info/alternates
	co relative t && sound t
	ok 'relative alternates work'
	rm -rf t
	mv src hidden && co shared t
	mv hidden src
	[ $rc -eq 1 ] && grep -q '^hint: ' stderr && [ ! -e t ] && [ ! -e t.partial ]
	ok 'an alternate that is not there is an error'
	git clone -q src loop && echo "$work/loop/.git/objects" >loop/.git/objects/info/alternates
	co loop t && sound t
	ok 'an alternate of itself ends'
	rm -rf t
}

t_object_store() {
	git clone -q --no-hardlinks src linked && mv linked/.git/objects linked-objects &&
		ln -s "$work/linked-objects" linked/.git/objects
	co linked t
	refused 'an object directory that is a link is refused' 1 checkout 'is not a directory'
	git clone -q --no-hardlinks src lo
	local id file
	id=$(git -C lo rev-parse HEAD:one)
	file=lo/.git/objects/${id:0:2}/${id:2}
	mv "$file" loose && ln -s "$work/loose" "$file"
	co lo t
	refused 'a linked object is refused' 1 checkout 'not a regular file'
	rm -f "$file" && mkfifo "$file"
	timeout 20 "$checkout" --source lo --target t --report-fd 3 3>report 2>stderr
	rc=$?
	refused 'a FIFO among the objects does not hang' 1 checkout 'not a regular file'
	rm -f "$file" && id=$(git -C lo rev-parse HEAD:dir/binary) &&
		cp "lo/.git/objects/${id:0:2}/${id:2}" "$file"
	co lo t
	refused 'an object that is not what its name says is noticed' 1 checkout 'hash'
	: >"$file.tmp" && rm -f "$file" && mv "$file.tmp" "$file"
	co lo t
	refused 'an empty object is noticed' 1 checkout 'cannot'
	rm -f "$file" && cp loose "$file" && echo x >lo/.git/objects/pack/stray.txt &&
		mkdir -p lo/.git/objects/extra && echo x >lo/.git/objects/extra/y && co lo t &&
		[ ! -e t/.git/objects/extra ] && [ ! -e t/.git/objects/pack/stray.txt ] && sound t
	ok 'what is no object is not copied'
	rm -rf t
}

# What is at a name is not opened before it is known to be a file: 10 s are forever here.
t_no_files() {
	local name hung=0 said=0
	git clone -q src pipes && git -C pipes worktree add -q ../piped light 2>/dev/null
	git -C pipes pack-refs --all
	for name in HEAD config packed-refs refs/heads/new refs/deep/er/x objects/pack/pack-x.idx \
		objects/00/0123456789012345678901234567890123456789 objects/info/alternates \
		objects/info/commit-graph index info/attributes shallow; do
		[ ! -e "pipes/.git/$name" ] || mv "pipes/.git/$name" saved
		mkdir -p "$(dirname "pipes/.git/$name")"
		mkfifo "pipes/.git/$name"
		timeout 10 "$checkout" --source pipes --target t --report-fd 3 3>report 2>stderr
		rc=$?
		[ $rc -ne 124 ] || hung=$((hung + 1))
		{ [ $rc -eq 1 ] && has 'is not a regular file' "${name##*/}" && grep -q '^hint: ' stderr && [ ! -e t ]; } ||
			said=$name
		timeout 10 "$checkout" --status pipes >/dev/null 2>stderr
		[ $? -ne 124 ] || hung=$((hung + 1))
		rm -rf "pipes/.git/$name" t t.partial
		[ ! -e saved ] || mv saved "pipes/.git/$name"
	done
	[ "$hung" = 0 ]
	ok "a FIFO at any name of the git directory does not hang ($hung)"
	[ "$said" = 0 ]
	ok "and is refused by name ($said)"
	rm -rf pipes/.git/refs/deep
	mkfifo pipes/.git/refs/heads/late
	timeout 10 "$checkout" --source piped --target t --report-fd 3 3>report 2>stderr
	rc=$?
	refused 'the same in the repository of a linked worktree' 1 checkout 'not a regular file'
	rm pipes/.git/refs/heads/late
	mkfifo fifo && ln -s "$work/fifo" pipes/.git/refs/heads/linked
	timeout 10 "$checkout" --source pipes --target t --report-fd 3 3>report 2>stderr
	rc=$?
	refused 'a link to one' 1 checkout 'not a regular file'
	rm pipes/.git/refs/heads/linked
	mkdir odd && mkfifo odd/.git
	timeout 10 "$checkout" --source odd --target t --report-fd 3 3>report 2>stderr
	rc=$?
	refused 'one instead of .git' 1 checkout 'not a regular file'
	co pipes t && sound t
	ok 'control: without them it works'
	rm -rf t
}

# Life is told while there is any, and the report is the last line where both go to one descriptor.
t_pulse() {
	git init -q -b main heavy
	head -c 60000000 /dev/zero | tr '\0' 'x' >heavy/huge
	commit heavy h
	"$checkout" --source heavy --target t --report-fd 3 --progress-fd 3 3>lines 2>stderr
	rc=$?
	[ $rc -eq 0 ] && grep -q '^{"type":"checkout.alive"}$' lines && tail -n 1 lines | grep -q '"type":"checkout.report"'
	ok 'a huge file is told of as life'
	rm -rf t
	"$checkout" --status heavy --progress-fd 1 >lines 2>stderr
	rc=$?
	[ $rc -eq 0 ] && [ "$(tail -n 1 lines)" = '{"uncommitted":0}' ]
	ok 'and the answer of --status is the last line'
	mkfifo included && git -C heavy config include.path "$work/included"
	timeout 3 "$checkout" --source heavy --target t --progress-fd 3 3>lines 2>stderr
	rc=$?
	[ $rc -eq 124 ] && [ "$(wc -l <lines)" -le 2 ]
	ok 'one that waits is silent'
	rm -rf heavy t t.partial
}

t_gc() {
	git init -q -b main busy
	local i status=0
	for i in $(seq 400); do echo "$i" >"busy/f$i"; done
	commit busy base
	(
		while [ ! -e stop-gc ]; do
			git -C busy commit -q --allow-empty -m x
			git -C busy repack -q -a -d
		done
	) >/dev/null 2>&1 &
	local pid=$!
	for i in $(seq 8); do
		co busy t && sound t || status=1
		rm -rf t
		[ $status -eq 0 ] || break
	done
	: >stop-gc
	wait $pid
	[ $status -eq 0 ]
	ok 'a source that is repacked meanwhile is copied whole'
	rm -f stop-gc
}

co_named() { # NAME: a tree with a directory of that name (a/NAME: in a directory)
	rm -rf hostile t
	repo_named hostile "$1"
	co hostile t
}

t_names() {
	local name
	co_named harmless && [ -e t/harmless/config ]
	ok 'control: the same tree with a harmless name is checked out'
	co_named $'.h\xe2\x80\x8cit' && [ -e $'t/.h\xe2\x80\x8cit/config' ]
	ok 'control: so is a name with a zero-width character'
	for name in "${hostile_names[@]}"; do
		co_named "$name"
		refused "the name $(printf %q "$name") is refused" 1 checkout 'invalid path'
	done
	[ ! -e config ] && [ ! -e ../config ] && [ ! -e /pwned ]
	ok 'nothing of them is beside the target'
}

t_links() {
	mkdir outside && echo untouched >outside/file
	repo_links ln "$work/outside" ../outside
	co ln t && git clone -q --no-hardlinks ln g && same t g &&
		[ "$(readlink t/passwd)" = /etc/passwd ] && [ "$(cat outside/file)" = untouched ]
	ok 'links that lead out are links'
	rm -rf t g
	local first name
	for first in link dir; do
		rm -rf twice
		repo_twice twice "$work/outside" $first
		co twice t
		[ $rc -le 1 ] && [ "$(cat outside/file)" = untouched ] && [ "$(ls outside)" = file ]
		ok "nothing is written through a link of the tree's own ($first first)"
		rm -rf t
	done
	# a/b as one name, and names that lead out
	for name in a/file ../escaped "/$work/escaped"; do
		rm -rf twice
		repo_slash twice "$name" "$work/outside"
		co twice t
		[ $rc -eq 1 ] && [ "$(cat outside/file)" = untouched ] && [ ! -e escaped ] && [ ! -e t ]
		ok "a name with a slash is refused ($name)"
		rm -rf t
	done
	repo_linked_gitmodules gm
	co gm t
	[ $rc -eq 1 ] && [ ! -e t ]
	ok 'a .gitmodules that is a link is refused'
	rm -rf t
}

# Whatever could run a program on checkout: each leaves a mark when it runs.
t_programs() {
	local mark="touch $work/ran"
	repo_programs prog "$mark"
	mkdir -p tpl/hooks && cp prog/.git/hooks/post-checkout tpl/hooks/
	cp prog/.git/config "$HOME/.gitconfig"
	git config -f "$HOME/.gitconfig" init.templateDir "$work/tpl"
	git config -f "$HOME/.gitconfig" core.autocrlf true
	git config -f "$HOME/.gitconfig" "url.$work/other.insteadOf" "$work/prog"
	mkdir -p "$HOME/.config/git" && cp "$HOME/.gitconfig" "$HOME/.config/git/config"
	GIT_TEMPLATE_DIR=$work/tpl GIT_DIR=$work/src/.git GIT_OBJECT_DIRECTORY=/nonexistent \
		GIT_EXTERNAL_DIFF="$mark" co prog t
	[ $rc -eq 0 ] && [ ! -e ran ] && [ "$(cat t/a.flt)" = content ] && [ ! -e t/.git/hooks/post-checkout ] &&
		! grep -q -e evil -e fsmonitor -e autocrlf -e insteadOf t/.git/config &&
		[ "$(git -C t config remote.origin.url)" = "$work/prog" ]
	ok 'no hook, filter, template or setting of source, home or environment has an effect'
	[ -z "$(git -C t status --porcelain)" ] && [ ! -e ran ]
	ok 'nor later, by git in the result'
	git -C prog checkout -q -f HEAD -- . >/dev/null 2>&1
	rm -f prog/a.flt && git -C prog checkout -q -- a.flt >/dev/null 2>&1
	[ -e ran ]
	ok 'control: git runs them in the source'
	rm -rf t ran "$HOME"/.gitconfig "$HOME"/.config
}

t_attributes() {
	git init -q -b main attr && mkdir attr/sub
	printf '[attr]dos text eol=crlf\n*.txt dos\n*.id ident\n*.bin -text\n' >attr/.gitattributes
	printf '*.txt -text\n+before text eol=crlf\n' >attr/sub/.gitattributes
	printf 'a\nb\n' | tee attr/x.txt attr/sub/x.txt 'attr/!early' 'attr/sub/+before' attr/x.bin >/dev/null
	# shellcheck disable=SC2016
	printf '$Id$\n' >attr/x.id
	printf '+early.txt text eol=crlf\n' >>attr/.gitattributes && printf 'a\nb\n' >attr/+early.txt
	commit attr a
	co attr t && git clone -q --no-hardlinks attr g && same t g && grep -q $'\r' t/+early.txt
	ok 'line ends and ident are as git makes them, whatever the order of names'
	rm -rf t g
}

t_submodules() {
	git init -q -b main private && echo PRIVATE-DATA >private/p && commit private p
	local i id
	id=$(git -C private rev-parse HEAD)
	repo_addresses sm "$id" <<-EOF
		$work/private
		file://$work/private
		../private
		git://example.org/x
		http://example.org/x
		ext::sh -c touch% $work/ran
		-u./evil
		ssh://-oProxyCommand=touch/x
		"https://user:secret@example.org/x" ; comment
		ssh://git@example.org/x
		git@example.org:x/y.git
		git@-oProxyCommand=x:y
	EOF
	printf '[include]\n\tpath = /dev/zero\n' >>sm/.gitmodules
	git -C sm update-index --add --cacheinfo "160000,$id,nowhere"
	git -C sm add .gitmodules && git -C sm commit -q --amend -m s
	co sm t && has '"submodules":13' '"files":1,'
	ok 'submodules do not stop a checkout'
	local n refused=1
	for n in 1 2 3 4 5 6 7 8 12; do has "submodule 'm$n' is refused" || refused=0; done
	[ $refused = 1 ]
	ok 'path, file, relative, git, http, ext and option-like addresses are refused'
	[ "$(git -C sm ls-files -s)" = "$(git -C t ls-files -s)" ] && [ -d t/nowhere ] &&
		[ -z "$(git -C t status --porcelain)" ]
	ok 'their entries and empty directories are there'
	has "'m9' is not fetched yet: 'https://example.org/x'" "'m10' is not fetched yet" \
		"'m11' is not fetched yet" "'nowhere' has no address" && ! grep -q secret report
	ok 'https and ssh are noted, passwords are not'
	! grep -rq PRIVATE-DATA t && [ -z "$(find t/m* -mindepth 1)" ] && [ ! -e ran ] && [ ! -e t/.git/modules ]
	ok 'nothing of a neighbour is there'
	rm -rf t
	local name
	for name in .git .GIT ../out a/.git 'git~1'; do
		rm -rf hostile t
		git init -q -b main hostile
		commit_tree hostile "$(tree_at hostile 160000 "$name" "$id")"
		co hostile t
		refused "a submodule at $name is refused" 1 checkout "$name"
	done
	rm -rf hostile && repo_submodule_through_link hostile "$id" "$work/outside"
	co hostile t
	[ $rc -eq 1 ] && [ "$(ls outside)" = file ] && [ ! -e t ]
	ok 'no directory of a submodule is made through a link'
	rm -rf t
	git init -q -b main many
	for i in $(seq 40); do git -C many update-index --add --cacheinfo "160000,$id,s$i"; done
	git -C many commit -qm m
	co many t && has '"submodules":40' '24 more submodules'
	ok 'many submodules do not make many notes'
	rm -rf t
}

t_lfs() {
	repo_lfs lfs
	co lfs t && has '"lfs_pointers":3' '3 files are Git LFS pointers (--lfs fetches' && [ "$(cat t/2.bin)" = "$(lfs_pointer)" ]
	ok 'LFS pointers are counted, other files are not'
	rm -rf t
}

t_target() {
	mkdir exists && echo mine >exists/file
	co src exists
	[ $rc -eq 1 ] && has '"code":"exists"' && [ "$(cat exists/file)" = mine ] && [ ! -e exists.partial ]
	ok 'a target that is there is left alone'
	mkdir empty && co src empty
	[ $rc -eq 1 ] && has '"code":"exists"' && [ -z "$(ls empty)" ]
	ok 'so is an empty one'
	ln -s nowhere dangling && co src dangling
	[ $rc -eq 1 ] && has '"code":"exists"' && [ ! -e nowhere ]
	ok 'so is a link'
	mkdir -p t.partial/.git/objects/00 && echo old >t.partial/old && chmod 500 t.partial/.git/objects
	co src t && [ ! -e t/old ] && [ ! -e t.partial ] && sound t
	ok 'what a killed run left is removed'
	rm -rf t
	mkdir precious && echo keep >precious/keep && ln -s precious t.partial
	co src t && [ "$(cat precious/keep)" = keep ] && [ ! -L t.partial ] && sound t
	ok 'a link of that name is removed and not followed'
	rm -rf t
	echo file >t.partial && co src t && sound t
	ok 'so is a file'
	rm -rf t
	mkdir t.partial && exec 9<t.partial && flock 9 && co src t
	[ $rc -eq 1 ] && has '"code":"busy"' && [ -d t.partial ]
	ok 'a checkout that is running elsewhere is left alone'
	exec 9<&- && rm -rf t.partial
	co src no/such/parent/t
	[ $rc -eq 1 ] && has '"code":"not-found"' 'parent'
	ok 'a missing parent is named'
	git clone -q src s.partial && co s.partial s
	[ $rc -eq 1 ] && has '"code":"invalid"' 'overwrite the source' && [ -e s.partial/one ]
	ok 'the source is never taken for a leftover'
	co src /
	[ $rc -eq 1 ] && has '"code":"invalid"'
	ok 'the root is no target'
}

t_source() {
	mkdir plain.d && : >plain.f
	co plain.d t
	refused 'a directory without a repository' 1 not-found 'not a git repository'
	co src/dir t
	refused 'parents are not searched' 1 not-found 'not a git repository'
	co plain.f t
	refused 'a file' 1 invalid 'not a directory'
	co missing t
	refused 'nothing' 1 not-found 'does not exist'
	local scheme
	for scheme in https ssh git http file git+ssh HTTPS; do
		co "$scheme://user:secret@example.org/x" t
		! grep -q -e secret report stderr
		ok "$scheme: no password in the message"
		refused "$scheme is refused" 1 invalid "not an address"
	done
	co git@example.org:secret/x t
	refused 'the short form of ssh' 1 invalid "not an address"
	co ext::sh t
	refused 'a transport helper' 1 invalid 'address'
	co 'gopher://x' t
	refused 'an unknown scheme' 1 invalid "not an address"
	co -- t
	refused 'an option for a source' 1 invalid "'--'"
	mkdir 'co:lon' && git clone -q src co:lon/r && co co:lon/r t && sound t
	ok 'a colon in a path that exists is no address'
	rm -rf t
}

t_unreadable() {
	local as=()
	if [ "$(id -u)" = 0 ]; then
		setpriv --reuid 65534 --regid 65534 --clear-groups test -x "$checkout" || {
			skip NOBODY 'an unreadable source'
			return
		}
		as=(setpriv --reuid 65534 --regid 65534 --clear-groups)
	fi
	mkdir -m 777 open
	git clone -q src secret1 && if [ "$(id -u)" = 0 ]; then chmod 700 secret1; else chmod 000 secret1; fi
	git clone -q src secret2 && chmod 000 secret2/.git
	git clone -q --no-hardlinks src secret3
	find secret3/.git/objects -type f -exec chmod 000 {} +
	local i
	for i in 1 2 3; do
		"${as[@]}" "$checkout" --source secret$i --target open/t --report-fd 3 3>report 2>stderr
		rc=$?
		refused "an unreadable source ($i)" 1 denied '"msg"' open/t
	done
	chmod 755 secret*/.git secret1 2>/dev/null
	"${as[@]}" "$checkout" --source src --target open/t --report-fd 3 3>report 2>stderr && sound_as open/t
	rc=$?
	[ $rc -eq 0 ]
	ok "a readable source of another user"
	mkdir -m 755 closed
	[ "$(id -u)" = 0 ] || chmod 555 closed
	"${as[@]}" "$checkout" --source src --target closed/t --report-fd 3 3>report 2>stderr
	rc=$?
	refused 'a parent that cannot be written' 1 denied closed/t closed/t
	rm -rf open
}

sound_as() { git -c safe.directory='*' -C "$1" fsck >/dev/null 2>&1; }

t_disk_full() {
	unshare -Urm true 2>/dev/null || {
		skip USERNS 'a full disk'
		skip USERNS 'no inodes left'
		return
	}
	mkdir small
	git init -q -b main big && head -c 3000000 /dev/urandom >big/data && commit big b
	# shellcheck disable=SC2016
	local script='mount -t tmpfs -o "$1" tmpfs small && shift && "$@" --target small/t; rc=$?; ls -A small >left; exit $rc'
	local size
	for size in 1m 4m nr_inodes=30; do
		case $size in *m) size=size=$size ;; esac
		unshare -Urm sh -c "$script" sh "$size" "$checkout" --source big --report-fd 3 3>report 2>stderr
		rc=$?
		[ $rc -eq 1 ] && has '"code":"limit"' '"hint":"free space' && [ ! -s left ]
		ok "a full disk is a limit and leaves nothing ($size)"
	done
	unshare -Urm sh -c "$script" sh size=16m "$checkout" --source big --report-fd 3 3>report 2>stderr
	rc=$?
	[ $rc -eq 0 ]
	ok 'control: with space it works'
}

# On a file system that can, objects of any size share the source's extents, and no inode.
# shellcheck disable=SC2015 # what any of them lacks is skipped
t_clones() {
	local PATH=$PATH:/usr/sbin
	git init -q -b main cloned && head -c 400000 /dev/urandom >cloned/data && commit cloned c
	truncate -s 320M image && mkdir disk && command -v mkfs.xfs filefrag >/dev/null &&
		[ "$(id -u)" = 0 ] && mkfs.xfs -q image &&
		unshare -m mount -o loop image disk 2>/dev/null || {
		skip LOOP 'extents are shared where they can be'
		rm -rf image disk
		return
	}
	# shellcheck disable=SC2016
	unshare -m sh -c 'mount -o loop image disk && cp -r cloned disk/src &&
		"$1" --source disk/src --target disk/t --report-fd 3 3>report 2>stderr &&
		find disk/t/.git/objects -type f | sort | while read -r file; do
			filefrag -v "$file" | grep -q "shared" && echo shared || echo "$file"
		done >clones && find disk/t disk/src -type f -links +1 >links &&
		git -c safe.directory="*" -C disk/t fsck --full --strict >/dev/null 2>&1' sh "$checkout"
	rc=$?
	[ $rc -eq 0 ] && [ "$(uniq -c clones | tr -s ' ')" = ' 3 shared' ] && [ ! -s links ]
	ok 'extents are shared where they can be, and no inode'
	rm -rf image disk
}

# Where they cannot be, one refusal is enough for a store, and all is copied.
# shellcheck disable=SC2015
t_no_clones() {
	command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null || {
		skip PTRACE 'what cannot be shared is copied'
		return
	}
	local error
	for error in EOPNOTSUPP EXDEV EPERM ENOTTY; do
		strace -f -o trace -e trace=ioctl -e "inject=ioctl:error=$error" "$checkout" \
			--source cloned --target t --report-fd 3 3>report 2>stderr
		rc=$?
		[ $rc -eq 0 ] && sound t && [ "$(grep -c FICLONE trace)" = 1 ]
		ok "what cannot be shared is copied ($error)"
		rm -rf t
	done
	strace -f -o trace -e trace=ioctl -e inject=ioctl:error=ENOSPC "$checkout" \
		--source cloned --target t --report-fd 3 3>report 2>stderr
	rc=$?
	refused 'a full disk is not' 1 limit '"errno":28'
}

t_killed() {
	git init -q -b main large
	local i delay status=0 kills=0
	for i in $(seq 1500); do echo "$i" >"large/f$i"; done
	commit large l
	for i in $(seq 15); do
		"$checkout" --source large --target t >/dev/null 2>&1 &
		delay=$(printf '0.%03d' $((i * 8)))
		sleep "$delay"
		kill -9 $! 2>/dev/null && kills=$((kills + 1))
		wait $! 2>/dev/null
		if [ -e t ]; then
			[ -z "$(git -C t status --porcelain)" ] && sound t || status=1
			rm -rf t
		fi
	done
	[ $status -eq 0 ] && [ $kills -gt 3 ]
	ok 'a target that is there is complete, whenever the process was killed'
	co large t && [ ! -e t.partial ] && git clone -q --no-hardlinks large g && same t g
	ok 'the next run starts over'
	rm -rf t g
}

t_process() {
	"$checkout" --source large --target t >/dev/null 2>stderr &
	local pid=$! seen=0
	for _ in $(seq 200); do
		grep -q '^NoNewPrivs:.1' "/proc/$pid/status" 2>/dev/null &&
			grep -q '^Max core file size  *0  *0 ' "/proc/$pid/limits" &&
			seen=1 && break
	done
	wait $pid
	rc=$?
	[ $rc -eq 0 ] && [ $seen = 1 ]
	ok 'no new privileges and no core files'
	rm -rf t
	"$checkout" --source src --target t --report-fd 77 2>stderr
	rc=$?
	[ $rc -eq 1 ] && grep -q 77 stderr && [ ! -e t ]
	ok 'a descriptor that is not open is refused'
	"$checkout" --source src --target t --report-fd 3 --progress-fd 4 3> >(exec true) 4> >(exec true) 2>stderr
	rc=$?
	[ -e t ] && { [ $rc -eq 2 ] || [ $rc -eq 0 ]; }
	ok 'readers that are gone do not kill it'
	rm -rf t
	"$checkout" --source src --target t <&- >&- 2>&- && sound t
	ok 'closed standard descriptors do no harm'
	rm -rf t
	co shallow t >/dev/null
	"$checkout" --source wt2 --target t2 2>stderr && grep -q '^note: ' stderr
	ok 'without a report the notes are on standard error'
	rm -rf t t2
	"$checkout" --help | grep -q -- '--status PATH' && ! "$checkout" --bogus 2>stderr && grep -q '^hint: ' stderr
	ok 'help and a wrong option'
	git init -q -b main esc && git -C esc commit -q --allow-empty -m e
	co esc $'no\e[31m/t'
	! grep -q $'\e' stderr && ! grep -q $'\e' report
	ok 'control characters do not reach the terminal'
}

status_is() { # PATH NAME
	local want got
	want=$(git -C "$1" status --porcelain | wc -l)
	got=$("$checkout" --status "$1" 2>stderr)
	rc=$?
	[ "$rc $got" = "0 {\"uncommitted\":$want}" ]
	ok "$2 ($want, $got)"
}

t_status() {
	git clone -q src st && mkdir st/new
	status_is st 'status: clean'
	echo x >>st/one && echo y >st/new/a && echo y >st/new/b && echo z >st/untracked
	rm st/empty && echo s >st/staged && git -C st add staged && echo t >>st/staged
	printf 'ignored\n' >st/.git/info/exclude && echo i >st/ignored
	git -C st mv dir/run moved && git -C st config status.renames false
	status_is st 'status: changed, deleted, staged, untracked, ignored'
	status_is unborn 'status: no commits'
	echo x >unborn/x && git -C unborn add x
	status_is unborn 'status: no commits and a staged file'
	[ "$("$checkout" --status bare.git)" = '{"uncommitted":0}' ]
	ok 'status: a bare repository'
	[ "$("$checkout" --status unborn/.git)" = '{"uncommitted":0}' ]
	ok 'status: a git directory, whose work tree is not what was named'
	git clone -q src away && mkdir away-tree && git -C away config core.worktree "$PWD/away-tree"
	[ "$("$checkout" --status away)" = '{"uncommitted":0}' ]
	ok 'status: a repository whose work tree is elsewhere'
	ln -s unborn named
	[ "$("$checkout" --status named)" = '{"uncommitted":1}' ]
	ok 'status: by a link'
	local before
	before=$(stat -c '%y %i' st/.git/index)
	mkdir st/lots && git -C st add -A && for i in $(seq 1500); do echo "$i" >"st/dir/n$i"; done
	before=$(stat -c '%y %i' st/.git/index)
	[ "$("$checkout" --status st)" = '{"uncommitted":1000}' ] &&
		[ "$before" = "$(stat -c '%y %i' st/.git/index)" ]
	ok 'status: stops at 1000 and writes nothing'
	"$checkout" --status plain.d 2>stderr
	rc=$?
	[ $rc -eq 1 ] && grep -q '^hint: ' stderr
	ok 'status: no repository'
}

# unsaved REPOSITORY UNCOMMITTED UNTRACKED STASHES COMMITS NAME
unsaved() {
	local got
	got=$("$checkout" --status "$1" --unsaved 2>stderr)
	[ "$got" = "{\"uncommitted\":$2,\"untracked\":$3,\"stashes\":$4,\"commits\":$5}" ]
	ok "$6 ($got)"
}

# unsure REPOSITORY MESSAGE NAME
unsure() {
	"$checkout" --status "$1" --unsaved >stdout 2>stderr
	rc=$?
	[ $rc = 1 ] && [ ! -s stdout ] && grep -q "$2" stderr
	ok "$3"
}

# Commits that no branch has, and what git does not look at.
t_unsaved_refs() {
	git init -q -b main remote.src
	echo 1 >remote.src/file
	commit remote.src one
	git clone -q "$work/remote.src" u
	git -C u checkout -q --detach && echo 2 >>u/file && git -C u commit -qam two
	git -C u tag -am said told && git -C u checkout -q main
	unsaved u 0 0 0 1 'a commit of a tag'
	git -C u update-ref refs/wip/x told^{} && git -C u tag -d told >/dev/null
	unsaved u 0 0 0 1 'one of a ref of another kind'
	git -C u update-ref -d refs/wip/x
	git -C u symbolic-ref refs/wip/x refs/heads/none
	unsaved u 0 0 0 0 'a name of a branch that is not there has none'
	echo 2 >>u/file && git -C u stash -q && git -C u reflog expire --expire=now --all
	unsaved u 0 0 0 2 'a stash without its log'
	git -C u update-ref -d refs/stash
	git -C u update-ref refs/wip/blob "$(git -C u rev-parse HEAD:file)"
	unsure u "'refs/wip/blob'" 'what is no commit is not known'
	rm -rf remote.src u
}

t_unsaved_hidden() {
	git init -q -b main remote.src
	echo 1 >remote.src/file
	commit remote.src one
	git clone -q "$work/remote.src" u
	git -C u worktree add -q --detach "$work/beside.tree"
	unsure u 'linked worktrees' 'linked worktrees are not known'
	unsure beside.tree 'linked worktrees' 'nor is one of them'
	git -C u worktree remove "$work/beside.tree"
	unsaved u 0 0 0 0 'until they are removed'
	echo 2 >>u/file
	git -C u update-index --assume-unchanged file
	unsure u "look at 'file'" 'a file that is assumed to be unchanged'
	git -C u update-index --no-assume-unchanged file
	git -C u update-index --skip-worktree file
	unsure u "look at 'file'" 'one that is skipped'
	git -C u update-index --no-skip-worktree file
	unsaved u 1 0 0 0 'until git looks at it'
	git -C u config core.bare true
	unsaved u null 0 0 0 'a work tree that is said not to be one is not known'
	rm -rf remote.src u
}

t_unsaved_modules() {
	git init -q -b main inner.src
	echo 1 >inner.src/file
	commit inner.src one
	git init -q -b main remote.src
	git -C remote.src -c protocol.file.allow=always submodule --quiet add "$work/inner.src" inner
	commit remote.src one
	git -c protocol.file.allow=always clone -q --recurse-submodules "$work/remote.src" u
	unsaved u 0 0 0 0 'nothing of a clone with a submodule would be lost'
	echo 2 >>u/inner/file
	git -C u/inner update-index --skip-worktree file
	unsure u "look at 'file'" 'a file of a submodule that is skipped'
	git -C u/inner update-index --no-skip-worktree file
	local place
	place=$(git -C u/inner config core.worktree)
	git -C u/inner config core.worktree "$work/inner.src"
	unsure u "submodule 'inner' is elsewhere" 'a submodule whose work tree is elsewhere'
	git -C u/.git/modules/inner config core.worktree "$place"
	git -C u/inner checkout -q file
	git -C u/inner worktree add -q --detach "$work/beside.tree"
	unsure u 'linked worktrees' 'a submodule with linked worktrees'
	rm -rf remote.src inner.src u beside.tree
}

# What would be lost with a repository.
t_unsaved() {
	git init -q -b main remote.src
	echo 1 >remote.src/file
	commit remote.src one
	git init -q -b main inner.src
	echo 1 >inner.src/file
	commit inner.src one
	git -C remote.src -c protocol.file.allow=always submodule --quiet add "$work/inner.src" inner
	git -C remote.src commit -qm two
	git -c protocol.file.allow=always clone -q --recurse-submodules "$work/remote.src" u
	unsaved u 0 0 0 0 'nothing of a clone would be lost'
	git -C u branch other HEAD^
	git -C u tag local
	unsaved u 0 0 0 0 'nor of a branch that the remote has in its history'
	echo 2 >>u/file && echo >u/new
	unsaved u 2 1 0 0 'a change and a file'
	git -C u stash -qu
	unsaved u 0 0 1 0 'a stash'
	git -C u stash drop -q
	echo 2 >>u/file && git -C u commit -qam two
	unsaved u 0 0 0 1 'a commit'
	git -C u checkout -q --detach
	echo 3 >>u/file && git -C u commit -qam three
	unsaved u 0 0 0 2 'one of no branch'
	git -C u branch -qf other HEAD && git -C u checkout -q main && git -C u reset -q --hard origin/main
	unsaved u 0 0 0 2 'commits of another branch'
	git -C u push -q origin HEAD:refs/heads/main other:refs/heads/other
	unsaved u 0 0 0 0 'what was pushed is saved'
	echo 2 >>u/inner/file
	unsaved u 1 0 0 0 'a change in a submodule'
	git -C u/inner stash -q
	unsaved u 0 0 1 0 'a stash in a submodule'
	git -C u/inner stash drop -q
	git -C u config submodule.inner.ignore all
	git -C u/inner checkout -q -B work && echo 2 >>u/inner/file && git -C u/inner commit -qam two
	unsaved u 1 0 0 1 'a commit in a submodule, whatever the configuration says of it'
	git init -q -b main lone
	unsaved lone 0 0 0 0 'a repository without commits'
	echo 1 >lone/file && commit lone one
	unsaved lone 0 0 0 1 'one without a remote'
	git -C lone config core.worktree /
	unsaved lone null 0 0 1 'a tree that is elsewhere is not known'
	"$checkout" --unsaved 2>stderr
	[ $? = 1 ] && grep -q 'unsaved needs --status' stderr
	ok 'it is a kind of status'
	rm -rf remote.src inner.src u lone
}

t_many_refs() {
	git clone -q --bare src refs.git
	local id tag
	id=$(git -C refs.git rev-parse main) tag=$(git -C refs.git rev-parse v1.0)
	for i in $(seq 600); do echo "create refs/heads/b/$i $id"; done | git -C refs.git update-ref --stdin
	for i in $(seq 300); do echo "create refs/tags/t-$i $tag"; done |
		git -C refs.git update-ref --stdin
	co refs.git t && git clone -q --no-hardlinks refs.git g && same t g &&
		[ "$(git -C t for-each-ref | wc -l)" = "$(git -C g for-each-ref | wc -l)" ] &&
		[ "$(git -C t rev-parse 't-7^{}')" = "$(git -C g rev-parse 't-7^{}')" ] &&
		[ "$(find t/.git/refs -type f | wc -l)" -le 2 ]
	ok 'many refs become one file'
	rm -rf t g
}

mkdir dir.d
repo_plain src
t_plain
t_forms
t_empty
t_shallow
t_refs
t_branches
t_requests
t_short_ids
t_alternates
t_object_store
t_no_files
t_pulse
t_gc
t_names
t_links
t_programs
t_attributes
t_submodules
t_lfs
t_target
t_source
t_unreadable
t_disk_full
t_clones
t_no_clones
t_killed
t_process
t_status
t_unsaved
t_unsaved_refs
t_unsaved_hidden
t_unsaved_modules
t_many_refs

echo "1..$count"
[ $failed -eq 0 ]
