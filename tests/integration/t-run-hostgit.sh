#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What libgit2 cannot do and the host's git does: LFS content, sparse checkouts, partial clones,
# SHA-256, and --depth where libgit2 is too old for it.
# shellcheck disable=SC2016,SC2154
# SC2016: what single quotes keep from this shell is for the shell inside
# SC2154: URLs and tokens are set by servers.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/lib-remote.sh"
. "$(dirname "${BASH_SOURCE[0]}")/lib-hostgit.sh"

(cd "$repos" && repo_plain plain && repo_sha256 new && repo_with_lfs big && repo_with_lfs big256 sha256 && git init -q -b main tree)
for name in elsewhere moved gone wrong silent again; do cp -a "$repos/big" "$repos/$name"; done
tree=$repos/tree
for i in 1 2 3; do
	mkdir -p "$tree/src/web/deep" "$tree/src/other" "$tree/docs" "$tree/[odd] name"
	for file in top src/beside src/web/in src/web/deep/in src/other/out docs/out '[odd] name/in'; do
		echo "$i $file" >"$tree/$file"
	done
	commit "$tree" "$i"
done
git -C "$tree" tag v2 main~ && git -C "$tree" branch side main~
(cd "$repos/new" && echo two >two && git add two && git commit -qm second && git tag v1 main~ &&
	git tag -am annotated v2 && git branch topic main~ &&
	git update-ref refs/pull/7/head "$(git commit-tree -p main -m request 'main^{tree}')")

server_https "$repos" || skip_all TOOLS "no $missing"
server_git "$repos" || skip_all TOOLS "no $missing"
https_url=${https_url/127.0.0.1/localhost}

server_lfs other || bail 'no server'
server_lfs lfs "${other_url#http://}" || bail 'no server'

begin_hostgit() { # NAME
	begin_mirrors "$1"
	export GIT_SSL_CAINFO=$https_ca
	: >"$lfs_log"
	: >"$other_log"
	start_files
}

begin_hostgit 'lfs'
url=$lfs_url/open/big
run run --repo "$url" -- sh -c 'cat src/same.bin; git lfs version >/dev/null && git status --short'
like "$rc $(out)" '0 version https://git-lfs.github.com/spec/v1*' 'without --lfs files are pointers'
like "$(err)" '*note: 4 files are Git LFS pointers (--lfs fetches what they stand for)*' 'which is said'
run run --session l --repo "$url" --lfs -- cat src/same.bin src/a/same.bin docs/d.bin
expect_out 'same
same
documents' 'with it there is their content'
like "$(err)" "${git_does}Git LFS*" 'that git does it is said, and why'
is "$(grep -c pointers "$work/err")" 0 'and nothing of pointers'
clone "$url"
same l big 'lfs'
: >"$lfs_log"
run run --repo "$url" --lfs -- cat src/same.bin
is "$(out) $(grep -c /objects/ "$lfs_log")" 'same 0' 'a second session fetches none of it again'
run run --repo "$url" --lfs --sparse docs -- sh -c 'find . -name "*.bin"; git status --short'
expect_out './top.bin
./docs/d.bin' 'of a sparse checkout'
rm -rf "$mirrors"
: >"$lfs_log"
run run --repo "$url" --lfs --sparse docs -- cat docs/d.bin
is "$(out) $(grep -c 'GET /objects/' "$lfs_log")" 'documents 2' 'only what is checked out is fetched'
run run --repo "$url" --lfs --depth 1 --ref main -- sh -c 'cat docs/d.bin; git rev-parse --is-shallow-repository'
expect_out 'documents
true' 'of a part of the history'
run run --repo "$lfs_url/open/big256" --lfs --sparse docs -- cat docs/d.bin
expect_out documents 'of a SHA-256 repository'
run run --repo "$git_url/big" --lfs -- true
refused '*LFS content cannot be had over this protocol' "*https address*" 'by git: is refused'
is "$(git_requests | grep -c big)" 0 'before anything is asked for'
cp -a "$repos/big" "$work/w/big"
run run --repo "$work/w/big" --lfs -- true
refused "*the LFS content of '*' is not in the source" "*git lfs fetch*" 'of a path: it has to be there'
mkdir -p "$work/w/big/.git/lfs/objects"
for file in "$objects"/*; do
	id=${file##*/}
	mkdir -p "$work/w/big/.git/lfs/objects/${id:0:2}/${id:2:2}"
	cp "$file" "$work/w/big/.git/lfs/objects/${id:0:2}/${id:2:2}/"
done
give "$work/w/big"
run run --session p --repo "$work/w/big" --lfs -- cat docs/d.bin
expect_out documents 'then it is copied'
clone "$url"
same p big 'of a path'
rm -rf "$work/w/big" "$work/w/clone"
finish

begin_hostgit 'lfs of a private repository'
url=$lfs_url/private/big
CASEMATE_GIT_TOKEN=$https_token run run --session l --repo "$url" --lfs -- sh -c \
	'cat docs/d.bin; env; cat /proc/*/environ /proc/*/cmdline; cat .git/config; grep -r Basic .git'
grep -q '^documents' "$work/out"
ok 'is there with the token'
! grep -qaF "$https_token" "$work/out"
ok 'which is nowhere inside'
is "$(traces "$https_token")" '' 'nor outside, while the session is there'
like "$(cat "$lfs_log")" '*401 POST */info/lfs/objects/batch -
200 POST */info/lfs/objects/batch Basic *' 'the LFS server was told it when it asked'
run rm --files --force l
run run --repo "$url" --lfs -- true
refused '*127.0.0.1 wants a credential, and there is none' '*CASEMATE_GIT_TOKEN*' 'without: not from the mirror'
CASEMATE_GIT_TOKEN=$https_token run run --repo "$lfs_url/private/elsewhere" --lfs -- cat docs/d.bin
expect_out documents 'objects that are on another server'
is "$(sed 's/ .* / /' "$other_log" | sort -u)" '200 -' 'which is told no credential'
: >"$other_log"
CASEMATE_GIT_TOKEN=$https_token run run --repo "$lfs_url/private/moved" --lfs -- true
is "$rc $(grep -c Basic "$other_log")" '125 0' 'nor is one that the LFS server redirects to'
is "$(traces "$https_token")" '' 'and it is nowhere then'
finish

# The repository's author chooses the server, the client's options, and more, if he may.
begin_hostgit 'a hostile .lfsconfig'
evil=$repos/evil
rm -rf "$evil" && cp -a "$repos/big" "$evil"
cat >"$evil/.lfsconfig" <<-EOF
	[lfs]
		url = $other_url/private/big.git/info/lfs
		fetchexclude = *
		standalonetransferagent = evil
	[remote "origin"]
		lfsurl = $other_url/private/big.git/info/lfs
	[lfs "customtransfer.evil"]
		path = touch
		args = $work/w/ran
EOF
commit "$evil" evil
CASEMATE_GIT_TOKEN=$https_token run run --repo "$lfs_url/private/evil" --lfs -- cat docs/d.bin
expect_out documents 'the content comes from the server of the repository'
is "$(cat "$other_log")" '' 'another one is not even asked'
like "$(err)" '*note: *.lfsconfig names another LFS server, which is not asked*' 'which is said'
[ ! -e "$work/w/ran" ]
ok 'and no program of its is run'
rm -rf "$evil"
finish

begin_hostgit 'lfs content that is not had'
for name in gone wrong; do
	run run --repo "$lfs_url/open/$name" --lfs -- true
	refused "cannot fetch '$lfs_url/open/$name': *" '*without --lfs*' "$name"
	is "$(find "$root" -mindepth 1 2>/dev/null)" '' "$name: no checkout is left, whole or in part"
done
limit=100 run run --repo "$lfs_url/open/silent" --lfs -- true
refused "*the server said nothing for 25 s" '*' 'a server that is silent'
# once is enough for a minute
if is_root; then
	skip IDENTITY 'once is enough for a minute' 'one that has git-lfs ask again and again'
else
	limit=150 run run --repo "$lfs_url/open/again" --lfs -- true
	refused "*the server said nothing for 25 s" '*' 'one that has git-lfs ask again and again'
fi
# takes connections, and says nothing
new_server_dir
free_port
serve "is_serving_at $free_port" "$server_dir/out" python3 -c 'import socket, sys, time
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
time.sleep(600)' "$free_port" || bail 'no server'
limit=100 run run --repo "git://127.0.0.1:$free_port/x" --filter blob:none -- true
refused "*the server said nothing for 25 s" '*' 'also by git'
finish

begin_hostgit 'sparse'
for from in "$https_url/open/tree" "$git_url/tree" "$tree"; do
	run run --session s --repo "$from" --sparse src/web/ --sparse '[odd] name' -- \
		sh -c 'find . -path ./.git -prune -o -type f -print | sort; git log --format=%s'
	expect_out './[odd] name/in
./src/beside
./src/web/deep/in
./src/web/in
./top
3
2
1' "${from%%:*}: the directory, and the files above it"
	like "$(err)" "${git_does}sparse checkouts*" "${from%%:*}: which is said"
	clone --no-checkout "$tree"
	git -C "$work/w/clone" sparse-checkout set --cone --skip-checks src/web '[odd] name'
	git -C "$work/w/clone" checkout -q
	same s tree "${from%%:*}"
done
run run --repo "$tree" --sparse src/none -- true
refused "*there is no directory 'src/none' in what is checked out" '*from the repository*top' 'one that is not there'
run run --repo "$tree" --sparse src/web/in -- true
refused "*there is no directory 'src/web/in' *" '*it is a file*' 'a file'
is "$(find "$root" -mindepth 1 2>/dev/null)" '' 'and nothing is left'
run run --session s --repo "$tree" --sparse docs -- true
run run --session s --repo "$tree" --sparse src -- true
refused "session 's' was made with another --sparse: 'docs'" '*' 'a session keeps its own'
run run --session s --repo "$tree" --lfs -- true
refused "session 's' was made with another --lfs: 'false'" '*' 'also without LFS content'
run run --session s -- sh -c 'ls; git sparse-checkout list'
expect_out 'docs
top
docs' 'and goes on with it'
run rm --files --force s
echo '{"sparse": ["docs"], "lfs": false, "filter": "none"}' >"$work/w/policy.json"
run run --policy "$work/w/policy.json" --repo "$tree" -- ls
expect_out 'docs
top' 'from a file'
rm -rf "$work/w/clone" "$work/w/policy.json"
finish

begin_hostgit 'partial clones'
for from in "$https_url/open/tree" "$git_url/tree"; do
	run run --session f --repo "$from" --filter blob:none --sparse src/web -- sh -c \
		'git rev-list --objects --all --missing=print | grep -c "^?"; git log --format=%s v2'
	expect_out '17
2
1' "${from%%:*}: history without the content of files"
	like "$(err)" "${git_does}partial clones*note: other versions of files*--network host*" 'what that takes is said'
	clone --filter=blob:none --sparse --no-local "$from"
	git -C "$work/w/clone" sparse-checkout set --cone src/web
	same f tree "${from%%:*}"
done
run run --repo "$https_url/open/tree" --filter blob:none --ref v2 -- cat top docs/out
expect_out '2 top
2 docs/out' 'what is checked out is all there'
run run --repo "$https_url/open/tree" --filter blob:none --branch new --from side -- cat top
expect_out '2 top' 'of a new branch'
run run --repo "$git_url/tree" --filter blob:none -- git cat-file -p main~2:docs/out
[ "$rc" != 0 ]
ok 'what is missing is not had without the network'
run run --repo "$git_url/tree" --filter blob:none --network host --git rw -- git cat-file -p main~2:docs/out
expect_out '1 docs/out' 'and with it is'
run run --repo "$git_url/tree" -- sh -c 'git rev-list --objects --all --missing=print | grep -c "^?"; git config remote.origin.promisor'
is "$(out)" 0 'another session without it has everything'
CASEMATE_GIT_TOKEN=$https_token run run --session f --repo "$https_url/private/tree" --filter blob:none -- \
	sh -c 'cat top; env; cat /proc/*/environ /proc/*/cmdline .git/config'
grep -q '^3 top' "$work/out" && ! grep -qaF "$https_token" "$work/out"
ok 'a private one, with the token, which is nowhere inside'
is "$(traces "$https_token")" '' 'nor outside, while the session is there'
run rm --files --force f
run run --repo "$https_url/private/tree" --filter blob:none -- true
refused '*localhost wants a credential, and there is none' '*CASEMATE_GIT_TOKEN*' 'without: not from the mirror'
CASEMATE_GIT_TOKEN=wrong run run --repo "$https_url/private/tree" --filter blob:none -- true
refused '*localhost does not accept the credential (401)' '*the token is wrong*' 'with a wrong one'
run run --repo "$tree" --filter blob:none -- sh -c 'git rev-list --objects --all --missing=print | grep -c "^?"'
is "$(out)" 0 'of a path of this host everything is copied'
like "$(err)" '*note: --filter is for what has to be fetched*' 'which is said'
rm -rf "$work/w/clone"
finish

begin_hostgit 'where git is led'
export CASEMATE_GIT_TOKEN=$https_token
for path in port-private plain-private port beside beside-private moved-private post-elsewhere; do
	forget_requests
	run run --repo "$https_url/$path/tree" --filter blob:none -- true
	is "$rc $(requests elsewhere)$(requests http)" '125 ' "a redirect: $path: no other server was asked"
done
for name in expired othername otherca; do
	url=${name}_url
	url=${!url/127.0.0.1/localhost}
	run run --repo "$url/private/tree" --filter blob:none -- true
	refused 'cannot fetch *: the certificate of localhost is not valid' '*' "$name"
	is "$(requests $name)" '' "$name: nothing was sent"
done
unset CASEMATE_GIT_TOKEN
run run --repo "$https_url/open/none" --filter blob:none -- true
refused '*localhost has no such repository' '*' 'no repository'
run run --repo http://127.0.0.1:1/x --filter blob:none -- true
refused '*cannot connect to 127.0.0.1 port 1*' '*' 'no server'
run run --repo https://no-such-host.invalid/x --filter blob:none -- true
refused "*the name 'no-such-host.invalid' is not known" '*' 'no host'
finish

begin_hostgit 'sha256'
second=$(git -C "$repos/new" rev-parse main)
for from in "$https_url/open/new" "$http_url/open/new" "$git_url/new" "$repos/new"; do
	run run --session n --repo "$from" -- sh -c 'git rev-parse HEAD; git rev-parse --abbrev-ref HEAD "@{u}" origin/HEAD
git remote get-url origin; git for-each-ref --format="%(refname)" refs/tags'
	expect_out "$second
main
origin/main
origin/main
$from
refs/tags/v1
refs/tags/v2" "${from%%:*}: is checked out"
	like "$(err)" "${git_does}SHA-256 repositories*" "${from%%:*}: which is said"
	clone "$repos/new"
	same n new "${from%%:*}"
done
url=$https_url/open/new
run run --repo "$url" --ref topic -- sh -c 'ls; git rev-parse --abbrev-ref HEAD'
expect_out 'one
topic' 'a branch'
run run --repo "$url" --ref v2 -- sh -c 'ls; git describe --exact-match; git symbolic-ref -q HEAD'
is "$(out)" 'one
two
v2' 'a tag'
run run --repo "$url" --ref "${second:0:12}" -- git rev-parse HEAD
expect_out "$second" 'a commit'
run run --repo "$url" --pr 7 -- git log -1 --format='%s %D'
like "$rc $(out)" '0 request HEAD -> pr-7*' 'a request'
run run --repo "$url" --branch mine --from v1 -- sh -c 'ls; git rev-parse --abbrev-ref HEAD'
expect_out 'one
mine' 'a branch of its own'
run run --repo "$url" --ref nothing -- true
refused "*ref 'nothing' is not in the source" '*' 'one that is not there'
run run --repo "$url" --ref 1234567890abcdef -- true
refused "*ref '1234567890abcdef' is not in the source" '*' 'nor a commit'
run run --repo "$url" --filter blob:none -- true
refused '*a partial clone of a SHA-256 repository is not supported' 'leave --filter out' 'no partial clone of it'
git -C "$repos/new" commit -q --allow-empty -m third
run run --repo "$url" -- git log -1 --format=%s
expect_out third 'what is new is fetched'
git -C "$repos/new" reset -q --hard "$second"
CASEMATE_GIT_TOKEN=$https_token run run --session n --repo "$https_url/private/new" -- \
	sh -c 'ls; env; cat /proc/*/environ /proc/*/cmdline .git/config'
grep -q '^two' "$work/out" && ! grep -qaF "$https_token" "$work/out"
ok 'a private one, with the token, which is nowhere inside'
is "$(traces "$https_token")" '' 'nor outside, while the session is there'
run rm --files --force n
run run --repo "$https_url/private/new" -- true
refused '*localhost wants a credential, and there is none' '*' 'without: not from the mirror'
mv "$repos/new" "$repos/new.was" && repo_plain "$repos/new"
run run --repo "$url" -- cat two
[ "$rc" != 0 ]
run run --repo "$url" -- git rev-parse HEAD
expect_out "$(git -C "$repos/new" rev-parse HEAD)" 'another repository at its address'
rm -rf "$repos/new" && mv "$repos/new.was" "$repos/new"
run run --repo "$url" -- git rev-parse HEAD
expect_out "$second" 'and back again'
rm -rf "$work/w/clone"
finish

begin_hostgit 'depth of a private repository'
CASEMATE_GIT_TOKEN=$https_token run run --session d --repo "$https_url/private/tree" --depth 1 -- \
	sh -c 'git log --format=%s; env; cat /proc/*/environ /proc/*/cmdline .git/config'
like "$(out)" '3
*' 'one commit'
is "$(grep -caF "$https_token" "$work/out")$(traces "$https_token")" 0 'the token is nowhere'
run rm --files --force d
finish

# A checkout that is there is libgit2's to bring up to date; what it cannot is refused, or said.
begin_hostgit 'brought up to date'
app=$repos/app
rm -rf "$app" && repo_with_lfs "$app"
head_of() { git -c safe.directory='*' -C "$root/$1/$2" log -1 --format=%s "${3:-HEAD}"; }
run checkout l --repo "$lfs_url/open/app" --lfs --network host --git rw
run checkout s --repo "$https_url/open/app" --sparse docs
run checkout f --repo "$https_url/open/app" --filter blob:none
run checkout n --repo "$https_url/open/new"
run checkout p --repo "$repos/new"
for name in s f; do
	like "$(cat "$root/$name/app/top.bin")" 'version https://git-lfs*' "$name: without --lfs git leaves pointers, too"
done
git -C "$app" checkout -q -b beside && echo other | lfs_file "$app/new.bin" && commit "$app" beside
git -C "$app" checkout -q main && echo changed | lfs_file "$app/top.bin" && commit "$app" later
run checkout l
is "$rc $(head_of l app) $(head_of l app origin/main)" '0 lfs later' 'with LFS content: without a switch'
: >"$lfs_log"
run checkout l --ref beside
is "$rc $(head_of l app) $(grep -c '/objects/' "$lfs_log")" '0 beside 0' 'and with one, for which nothing of LFS is fetched'
like "$(err)" "*note: 1 file of Git LFS that changed is a pointer: 'git lfs pull' in the session*" 'what is a pointer then is said'
like "$(cat "$root/l/app/new.bin") $(cat "$root/l/app/docs/d.bin")" 'version https://git-lfs*documents' 'the others have their content'
run run --session l -- sh -c 'git lfs pull && cat new.bin && git status --short'
expect_out other 'which that command brings'
run run --session l -- sh -c 'cp top.bin top && mv top top.bin'
run checkout l --ref main
like "$rc $(head_of l app) $(err)" "0 beside *would be overwritten in *'top.bin'*of them *of Git LFS, whose content is not compared*" \
	'what has content is not overwritten'
run checkout s
is "$rc $(head_of s app) $(head_of s app origin/main)" '0 lfs later' 'sparse: without a switch'
run checkout s --ref main
refused '*is a sparse checkout' '*switch with git, in the session*' 'with one'
forget_requests
run checkout f
refused "the checkout of session 'f' is a partial clone (--filter), *" '*with git, in the session*' 'a partial clone'
is "$(requests https)" '' 'before anything is asked for'
for name in n p; do
	run checkout $name
	refused '*a checkout of a SHA-256 repository is not updated from outside' '*with git, in the session*' "SHA-256: $name"
	run run --session $name -- git log -1 --format=%s
	is "$rc $(out) $(grep -c 'broken off' "$work/err")" '0 second 0' "SHA-256: $name: is as it was"
done
run checkout s --filter none
like "$rc $(err)" '0 *note: --filter is for a first checkout*' 'another --filter has no effect, which is said'
run checkout x --sparse docs
refused "there is no session 'x' for --sparse" '*--repo URL' 'of no session'
for name in l s f n p; do run rm --files --force $name; done
rm -rf "$app"
finish

# Hooks and configuration of the repository, on this host and on the server; attributes in its tree.
begin_hostgit 'a hostile repository'
ran=$work/w/ran
rm -rf "$repos/programs" && repo_programs "$repos/programs" "touch $ran"
printf '*.flt filter=evil diff=evil merge=evil\n*.prc filter=proc\n* filter=lfs2 ident\n' \
	>"$repos/programs/.gitattributes"
commit "$repos/programs" attributes
rm -f "$ran"
for extra in '--sparse .hidden' --lfs '--filter blob:none'; do
	read -ra options <<<"$extra"
	set -- "${options[@]}"
	[ "$1" != --sparse ] || {
		mkdir -p "$repos/programs/sub" && echo s >"$repos/programs/sub/c.flt"
		git -C "$repos/programs" -c core.hooksPath=/dev/null -c core.fsmonitor=false \
			-c filter.evil.clean=cat -c filter.evil.smudge=cat add -A
		git -C "$repos/programs" -c core.hooksPath=/dev/null -c core.fsmonitor=false \
			-c filter.evil.clean=cat -c filter.evil.smudge=cat commit -qm sub
		set -- --sparse sub
		rm -f "$ran"
	}
	for from in "$lfs_url/open/programs" "$repos/programs"; do
		[ "$1" != --lfs ] || [ "$from" != "$repos/programs" ] || : # its own store is empty: so is the list
		run run --repo "$from" "$@" -- sh -c 'cat a.flt; git config --get-regexp "filter.evil|fsmonitor|sshcommand|hookspath"'
		is "$(out)" content "$1 of ${from%%:*}: the file as it is, and none of its configuration"
		[ ! -e "$ran" ]
		ok "$1 of ${from%%:*}: nothing of its is run"
	done
done
# control: git itself runs it
git -C "$repos/programs" status >/dev/null 2>&1
[ -e "$ran" ]
ok 'which git itself would run'
rm -rf "$repos/programs" "$ran"
finish

# What is missing on the host is said before anybody is asked.
begin_hostgit 'without git'
"${as[@]}" mkdir "$work/w/m"
hidden /usr/bin/git-lfs --fetch "$lfs_url/open/big" --mirror "$work/w/m" --lfs
like "$rc $(err)" '1 *git-lfs is not installed on this host*hint: install it (the package git-lfs), or leave --lfs out*' 'git-lfs'
for option in '--filter blob:none' --lfs '--depth 1'; do
	# shellcheck disable=SC2086
	hidden /usr/bin/git --fetch "$lfs_url/open/big" --mirror "$work/w/m" $option
	like "$rc $(err)" '1 *git is not installed on this host*hint: install it*' "git: $option"
done
hidden /usr/bin/git --source "$tree" --target "$work/w/t" --sparse docs
like "$rc $(err)" '1 *git is not installed on this host*' 'git: --sparse'
is "$(cat "$lfs_log")$(ls -A "$work/w/m")" '' 'nobody was asked, and nothing was written'
rm -rf "$work/w/m"
finish

done_testing
