#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# --repo of what another host serves: by https with and without a credential, http and git; the
# mirror; and each way in which a server says no.
# shellcheck disable=SC2016,SC2154
# SC2016: what single quotes keep from this shell is for the shell inside
# SC2154: URLs and tokens are set by servers.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/lib-remote.sh"

(cd "$repos" && repo_plain plain && git init -q -b main empty && git init -q -b main many &&
	git -C many commit -q --allow-empty -m one && git -C many branch topic &&
	git -C many tag v1 && git -C many update-ref refs/pull/7/head \
	"$(git -C many commit-tree -p main -m 'of a pull request' 'main^{tree}')")
server_https "$repos" || skip_all TOOLS "no $missing"
server_git "$repos" || skip_all TOOLS "no $missing"
# the library that verifies names knows no addresses
https_url=${https_url/127.0.0.1/localhost}
expired_url=${expired_url/127.0.0.1/localhost}
othername_url=${othername_url/127.0.0.1/localhost}
otherca_url=${otherca_url/127.0.0.1/localhost}
first=$(git -C "$repos/plain" rev-parse HEAD)

begin_remote() { # NAME
	begin_mirrors "$1"
	export GIT_SSL_CAINFO=$https_ca
	forget_requests
	start_files
}

begin_remote 'https'
run run --repo "$https_url/open/plain" -- sh -c 'git rev-parse HEAD; git remote get-url origin
git status --short; git rev-parse --abbrev-ref HEAD @{u}'
is "$rc $(out)" "0 $first
$https_url/open/plain
main
origin/main" 'is checked out, and its origin is the address'
like "$(err)" '*casemate: fetch *casemate: checkout *' 'the phases are told'
like "$(requests https)" '200 GET */info/refs?service=git-upload-pack \[-\]
200 POST */git-upload-pack \[-\]' 'without a credential, and in two requests'
forget_requests
run run --repo "$https_url/open/plain" -- git rev-parse HEAD
expect_out "$first" 'a second session'
is "$(requests https | grep -c POST)" 0 'fetches nothing that is in the mirror'
git -C "$repos/plain" commit -q --allow-empty -m later
run run --repo "$https_url/open/plain" -- git rev-parse HEAD
expect_out "$(git -C "$repos/plain" rev-parse HEAD)" 'what is new is fetched'
git -C "$repos/plain" reset -q --hard "$first"
run run --repo "$https_url/open/plain" -- git rev-parse HEAD
expect_out "$first" 'what is gone is gone'
run run --repo "$https_url/open/plain" -- find .git -type f -name '*.pack' -links +1
expect_out '' 'objects are copies'
finish

begin_remote 'http and git'
run run --repo "$http_url/open/plain" -- git rev-parse HEAD
expect_out "$first" 'http'
run run --repo "$git_url/plain" -- git rev-parse HEAD
expect_out "$first" 'git'
finish

begin_remote 'refs'
run run --repo "$https_url/open/many" --ref topic -- git rev-parse --abbrev-ref HEAD
expect_out topic 'a branch'
run run --repo "$https_url/open/many" --ref v1 -- git log --format=%s
expect_out one 'a tag'
run run --repo "$https_url/open/many" --ref "$(git -C "$repos/many" rev-parse main)" -- git log --format=%s
expect_out one 'a commit'
run run --repo "$https_url/open/many" --ref refs/pull/7/head -- git log --format=%s
expect_out 'of a pull request
one' 'the head of a pull request, by its name'
run run --repo "$https_url/open/many" --ref topik -- true
refused "cannot check out '$https_url/open/many': ref 'topik' is not in the source" \
	"did you mean 'topic'*" 'one that is not there'
run run --repo "$https_url/open/many" --pr 7 -- sh -c 'git log --format=%s; git rev-parse --abbrev-ref HEAD'
expect_out 'of a pull request
one
pr-7' 'and by its number'
run run --repo "$https_url/open/many" --branch new --pr 7 -- sh -c 'git log -1 --format="%s %D"
git rev-parse --abbrev-ref "@{u}" 2>&1 | grep -c "no upstream"'
expect_out 'of a pull request HEAD -> new
1' 'a branch of its own that begins there'
like "$(err)" "*note: branch 'new' is new: it begins at 'refs/pull/7/head', with no upstream*" 'which is said'
run run --repo "$https_url/open/many" --branch new --from refs/pull/7/head -- git log -1 --format=%s
expect_out 'of a pull request' 'also by the name of what it begins at'
run run --repo "$https_url/open/many" --branch topic --from v1 -- git rev-parse --abbrev-ref HEAD '@{u}'
expect_out 'topic
origin/topic' 'a branch that is there'
like "$(err)" "*note: branch 'topic' exists in the source: it is checked out as it is there, and is not made anew*" \
	'which is said'
run run --session b --repo "$https_url/open/many" --branch new --pr 7 -- sh -c 'echo mine >work'
run stop b
run run --session b --repo "$https_url/open/many" --branch new --pr 7 -- sh -c 'cat work; git log -1 --format="%s %D"'
expect_out 'mine
of a pull request HEAD -> new' 'a session with the same options goes on'
run run --session b --branch other --repo "$https_url/open/many" -- true
refused "session 'b' was made with another --branch: 'new'" '*' 'and with others is not another one'
run run --session b --pr 8 --repo "$https_url/open/many" -- true
refused "session 'b' was made with another --pr: '7'" '*' 'nor another pull request'
run rm --files --force b
run run --repo "$https_url/open/empty" -- git status -sb
is "$rc $(out)" '0 ## No commits yet on main' 'a repository without commits'
many=$https_url/open/many
id=$(git -C "$repos/many" rev-parse refs/pull/7/head)
for name in refs/merge-requests/8/head refs/pull-requests/9/from; do
	git -C "$repos/many" update-ref "$name" "$id"
	number=${name%/*}
	run run --repo "$many" --pr "${number##*/}" -- git log -1 --format=%s
	expect_out 'of a pull request' "--pr of $name"
	run run --repo "$many" --ref "$name" -- git log -1 --format=%s
	expect_out 'of a pull request' "--ref $name"
	git -C "$repos/many" update-ref -d "$name"
done
run run --repo "$many" --pr 7 --ref "${id:0:10}" -- true
expect_status 125 'a request and a ref are two'
run run --repo "$many" --ref "$(git -C "$repos/many" rev-parse --short=8 main)" -- git log --format=%s
expect_out one 'an abbreviated commit id'
finish

# The mirror remembers; what counts is what the server has.
begin_remote 'refs that change'
change=$repos/change
rm -rf "$change" && git init -q -b main "$change" && git -C "$change" commit -q --allow-empty -m one
git -C "$change" branch a && git -C "$change" branch gone
id=$(git -C "$change" commit-tree -p main -m 'of a pull request' 'main^{tree}')
git -C "$change" update-ref refs/pull/7/head "$id"
url=$https_url/open/change
run run --repo "$url" --pr 7 -- git log -1 --format='%H'
expect_out "$id" 'a pull request'
run run --repo "$url" --ref gone -- true
expect_status 0 'a branch'
git -C "$change" update-ref -d refs/pull/7/head
git -C "$change" branch -q -D gone
run run --repo "$url" --pr 7 -- true
refused '*there is no pull or merge request 7' '*' 'a request that is gone'
run run --repo "$url" --ref refs/pull/7/head -- true
refused "*ref 'refs/pull/7/head' is not in the source" '*' 'by its name'
for ref in "$id" "${id:0:12}"; do
	run run --repo "$url" --ref "$ref" -- true
	refused "*commit '$ref' is not in the source" '*no branch and no tag leads to*' "by its commit: ${#ref} digits"
done
run run --repo "$url" --branch new --from "$id" -- true
refused "*commit '$id' is not in the source" '*' 'as what a branch begins at'
run run --repo "$url" --ref gone -- true
refused "*ref 'gone' is not in the source" '*' 'a branch that is gone'
run run --repo "$url" --branch gone -- git rev-parse --abbrev-ref HEAD
expect_out gone 'but to make'
like "$(err)" "*note: branch 'gone' is new*" 'which is said'
git -C "$change" branch -q -D a && git -C "$change" branch a/b
run run --repo "$url" --ref a/b -- git for-each-ref --format='%(refname)' refs/remotes/origin/a refs/remotes/origin/a/b
expect_out refs/remotes/origin/a/b 'a branch where another was a directory'
git -C "$change" branch -q -D a/b && git -C "$change" branch a
run run --repo "$url" --ref a -- git for-each-ref --format='%(refname)' refs/remotes/origin/a refs/remotes/origin/a/b
expect_out refs/remotes/origin/a 'and the reverse'
git -C "$change" branch -q -m main trunk
run run --repo "$url" -- git rev-parse --abbrev-ref HEAD '@{u}' origin/HEAD
expect_out 'trunk
origin/trunk
origin/trunk' 'the default branch has another name'
run run --repo "$url" --ref main -- true
refused "*ref 'main' is not in the source" '*' 'and the old one none'
git -C "$change" update-ref refs/heads/trunk "$(git -C "$change" commit-tree -m anew 'trunk^{tree}')"
run run --repo "$url" -- git log --format=%s
expect_out anew 'a history that was replaced'
git -C "$change" update-ref --no-deref HEAD "$(git -C "$change" commit-tree -m apart 'trunk^{tree}')"
run run --repo "$url" -- sh -c 'git symbolic-ref -q HEAD || git log --format=%s'
expect_out apart 'a HEAD that is on no branch'
run run --repo "$url" --ref "$(git -C "$change" rev-parse HEAD)" -- git log --format=%s
expect_out apart 'and its commit'
run run --repo "$url" --ref "$(git -C "$change" rev-parse a)" -- git log --format=%s
expect_out one 'a commit of another branch'
git -C "$change" symbolic-ref HEAD refs/heads/none
run run --repo "$url" -- sh -c 'git log 2>&1 | grep -c "does not have any commits"; ls -A'
is "$rc $(out)" '0 1
.git' 'a HEAD that leads nowhere'
like "$(err)" "*note: *no commits: the checkout is empty*" 'which is said'
run run --repo "$url" --ref a -- git log --format=%s
expect_out one 'beside branches that are there'
git -C "$change" branch main a
run run --repo "$url" -- git log --format=%s
like "$rc $(err)" "0 *note: HEAD of '$url' names no branch that is there*" 'also where there is a main: which is said'
rm -rf "$change"
finish

begin_remote 'a private repository'
CASEMATE_GIT_TOKEN=$https_token run run --repo "$https_url/private/plain" -- sh -c \
	'git rev-parse HEAD; env; cat /proc/*/environ /proc/*/cmdline; find / -xdev -type f -size -64k \
	-newer /proc/self/exe -exec cat {} + 2>/dev/null; cat .git/config'
[ "$rc" = 0 ] && grep -q "$first" "$work/out"
ok 'is checked out with the token'
! grep -qaF "$https_token" "$work/out"
ok 'which is nowhere inside'
is "$(traces "$https_token")" '' 'nor outside'
# control: it is found where it is
echo "$https_token" >"$work/home/found"
is "$(traces "$https_token")" "$work/home/found" 'where it is it would be found'
rm "$work/home/found"
like "$(requests https)" '401 GET *
200 GET *Basic *
200 POST *Basic *' 'it was sent when asked for'
run run --repo "$https_url/private/plain" -- true
refused "cannot fetch '$https_url/private/plain': localhost wants a credential, and there is none" \
	'export CASEMATE_GIT_TOKEN*' 'without a token: not from the mirror'
CASEMATE_GIT_TOKEN=wrong run run --repo "$https_url/private/plain" -- true
refused '*localhost does not accept the credential (401)' '*the token is wrong*' \
	'with a wrong one: not from the mirror'
run run --repo "https://someone:$https_token@${https_url#https://}/private/plain" -- \
	git remote get-url origin
is "$rc $(out)" "0 $https_url/private/plain" 'the token in the address is taken out of it'
is "$(traces "$https_token")" '' 'and kept nowhere'
CASEMATE_GIT_TOKEN=$https_token run run --repo "$https_url/forbidden/plain" -- true
refused '*forbids access to it (403)' '*lacks the right*' '403 is told apart'
finish

begin_remote 'a token goes to one server'
export CASEMATE_GIT_TOKEN=$https_token
for path in port-private plain-private port beside beside-private; do
	run run --repo "$https_url/$path/plain" -- true
	refused '*redirects*' '*' "a redirect: $path"
done
is "$(requests elsewhere)$(requests http)" '' 'no other server was asked'
# what is asked of the other port is no secret; what is told it would be
run run --repo "$http_url/beside-private/plain" -- true
is "$rc $(credentials elsewhere)" '125 ' 'a redirect to another port, over http: nothing is told there'
forget_requests
run run --repo "$http_url/host-private/plain" -- true
refused '*redirects*' '*' 'a redirect to another name'
forget_requests
run run --repo "$https_url/moved-private/plain" -- git rev-parse HEAD
expect_out "$first" 'a redirect on the same server is followed'
for path in post post-elsewhere post-plain; do
	run run --repo "$https_url/$path/plain" -- true
	is "$rc $(requests elsewhere)$(requests http)" '125 ' "a redirect of the second request: $path"
done
run run --repo "$https_url/loop/plain" -- true
is "$rc" 125 'a redirect to itself ends'
run run --repo "$http_url/private/plain" -- git rev-parse HEAD
expect_out "$first" 'over http to this host alone'
unset CASEMATE_GIT_TOKEN
finish

begin_remote 'certificates'
for name in expired othername otherca; do
	url=${name}_url
	CASEMATE_GIT_TOKEN=$https_token run run --repo "${!url}/private/plain" -- true
	refused 'cannot fetch *: the certificate of localhost is not valid' '*' "$name"
	is "$(requests $name)" '' "$name: nothing was sent"
done
unset GIT_SSL_CAINFO
run run --repo "$https_url/open/plain" -- true
refused '*the certificate of localhost is not valid' '*GIT_SSL_CAINFO*' 'one that nobody vouches for'
finish

begin_remote 'what is not there'
run run --repo "$https_url/open/none" -- true
refused '*localhost has no such repository' '*' 'a repository'
run run --repo "$git_url/none" -- true
refused '*127.0.0.1 has no such repository' '*' 'a repository, by git'
run run --repo http://127.0.0.1:1/x -- true
refused '*cannot connect to 127.0.0.1 port 1*' '*' 'a server'
run run --repo https://no-such-host.invalid/x -- true
refused "*the name 'no-such-host.invalid' is not known" '*' 'a host'
run run --repo "${https_url/https:/http:}/open/plain" -- true
is "$rc" 125 'http where https is spoken'
run run --repo "${http_url/http:/https:}/open/plain" -- true
refused '*127.0.0.1 does not speak TLS at port *' '*http:*' 'https where http is spoken'
run run --repo "${https_url/localhost/127.0.0.1}/open/plain" -- true
refused '*the certificate of 127.0.0.1 is not valid' '*give the name' 'an address in place of a name'
finish

# By later versions of libgit2; where it is older the host's git does it.
begin_remote 'depth'
deep=$repos/deep
rm -rf "$deep" && git init -q -b main "$deep"
for message in one two three; do git -C "$deep" commit -q --allow-empty -m $message; done
git -C "$deep" branch side main~ && git -C "$deep" tag v1 main~
run run --repo "$https_url/open/deep" -- git rev-list --count HEAD
expect_out 3 'without it all of the history'
forget_requests
run run --repo "$https_url/open/deep" --depth 1 -- sh -c 'git log --format=%s; git status --short
git rev-parse --is-shallow-repository; git fsck 2>&1'
is "$rc $(out)" "0 three
true" 'one commit'
run run --repo "$https_url/open/deep" --depth 1 --ref v1 -- git log --format=%s
expect_out two 'and that of a tag'
run run --repo "$https_url/open/deep" --depth 1 --ref "$(git -C "$deep" rev-parse main~2)" -- true
refused "*commit '*' is not in the source" '*--depth*' 'an older one'
git -C "$deep" commit -q --allow-empty -m four
run run --repo "$https_url/open/deep" --depth 1 -- git log --format=%s
is "$rc $(out | head -1)" '0 four' 'what is new is fetched'
run run --repo "$https_url/open/deep" --depth 2 -- git log --format=%s
expect_out 'four
three' 'another depth'
run run --repo "$git_url/deep" --depth 1 -- git log --format=%s
expect_out four 'by git'
git -C "$deep" reset -q --hard main~
run run --repo "$https_url/open/deep" -- git rev-list --count HEAD
expect_out 3 'without it, still all of the history'
cp -a "$deep" "$work/w/here"
run run --repo "$work/w/here" --depth 1 -- git rev-list --count HEAD
expect_out 3 'of a repository on this host all of the history'
like "$(err)" '*note: --depth is for what has to be fetched*' 'which is said'
rm -rf "$work/w/here" "$deep"
finish

# Each of these has a file of its own, so that the number of objects tells whose commits there are.
begin_remote 'depth: what is asked for alone'
wide=$repos/wide
rm -rf "$wide" && git init -q -b main "$wide"
w() { git -C "$wide" "$@"; }
grow() { # BRANCH MESSAGE
	w checkout -q "$1"
	echo "$2" >"$wide/$2" && w add -A && w commit -q -m "$2"
	w checkout -q main
}
w commit -q --allow-empty -m root
for name in a b c; do
	w branch $name && grow $name old-$name && grow $name tip-$name
done
grow main old-main
w tag early && w tag -a -m annotated noted
grow main tip-main
w update-ref refs/pull/7/head "$(w commit-tree -p main -m request 'main^{tree}')"
url=$https_url/open/wide
# in the mirror of depth 1: the only one that is shallow
m() { git -c 'safe.directory=*' -C "$(find "$mirrors" -name shallow -printf '%h')" "$@"; }
mirror_refs() { m for-each-ref --format='%(refname:lstrip=1)' | tr '\n' ' '; }
mirror_commits() { m cat-file --batch-all-objects --batch-check | grep -c ' commit '; }
shown='git for-each-ref --format="%(refname:lstrip=2)" refs/remotes refs/tags | tr "\\n" " "
git cat-file --batch-all-objects --batch-check | grep -c " commit "; git log -1 --format=%s; git fsck --no-dangling 2>&1'
# depth_of OPTION... WANT MIRROR NAME: refs, commits, and which is checked out; the mirror's refs
depth_of() {
	local n=$(($# - 3))
	run run --repo "$url" --depth 1 "${@:1:n}" -- sh -c "$shown"
	is "$rc $(out | tr '\n' ' ')" "0 ${*:n+1:1} " "${*:n+3:1}"
	is "$(mirror_refs)" "${*:n+2:1} " "${*:n+3:1}: the mirror"
}
depth_of 'origin/HEAD origin/main 1 tip-main' 'casemate/HEAD heads/main' 'the branch that HEAD names'
is "$(mirror_commits)" 1 'and not one commit of others'
depth_of --ref a 'origin/HEAD origin/a origin/main 2 tip-a' 'casemate/HEAD heads/a heads/main' 'a branch'
depth_of --ref noted 'origin/HEAD origin/a origin/main noted 3 old-main' \
	'casemate/HEAD heads/a heads/main tags/noted' 'a tag'
grow a newer-a
depth_of 'origin/HEAD origin/a origin/main noted 4 tip-main' \
	'casemate/HEAD heads/a heads/main tags/noted' 'what the mirror has is kept up to date'
w tag -d noted >/dev/null
w branch -q -m a a/b
depth_of --ref a/b 'origin/HEAD origin/a/b origin/main 4 newer-a' 'casemate/HEAD heads/a/b heads/main' \
	'what is gone at the server goes, also where it is in the way'
rm -rf "$mirrors"
depth_of --branch b 'origin/HEAD origin/b origin/main 2 tip-b' 'casemate/HEAD heads/b heads/main' \
	'a branch to be on that is there'
depth_of --branch new --from c 'origin/HEAD origin/b origin/c origin/main 3 tip-c' \
	'casemate/HEAD heads/b heads/c heads/main' 'what a new one begins at'
rm -rf "$mirrors"
depth_of --branch new 'origin/HEAD origin/main 1 tip-main' 'casemate/HEAD heads/main' 'a new one'
depth_of --pr 7 'origin/HEAD origin/main 2 request' 'casemate/HEAD heads/main pull/7/head' 'a pull request'
depth_of --ref refs/pull/7/head 'origin/HEAD origin/main 2 request' \
	'casemate/HEAD heads/main pull/7/head' 'by its name'
depth_of --ref "$(w rev-parse b)" 'origin/HEAD origin/b origin/main 3 tip-b' \
	'casemate/HEAD heads/b heads/main' "a commit that is a branch's"
rm -rf "$mirrors"
run run --repo "$url" --depth 2 --ref "$(w rev-parse --short=12 b~)" -- git log -1 --format=%s
expect_out old-b 'one that is in a history: all branches are looked at'
run run --repo "$url" --depth 1 --ref tip-a -- true
refused "*ref 'tip-a' is not in the source" '*' 'a name that is not there'
run run --repo "$url" --depth 1 --ref bb -- true
refused "*ref 'bb' is not in the source" "did you mean 'b'*" 'the nearest ones are known'
finish

begin_remote 'depth: a checkout that is there'
rm -rf "$mirrors"
tree=$root/s/wide
t() { git -c safe.directory='*' -C "$tree" "$@"; }
branches() { t for-each-ref --format='%(refname:lstrip=3)' refs/remotes | tr '\n' ' '; }
run checkout s --repo "$url" --depth 1
is "$rc $(branches)" '0 HEAD main ' 'has the one branch'
run checkout s --ref b
is "$rc $(branches)$(t log --format=%s)" '0 HEAD b main tip-b' 'another one is fetched when it is asked for'
rm -rf "$mirrors"
grow b newer-b
grow main newer-main
run checkout s
is "$rc $(branches)$(t log -1 --format=%s origin/main)" '0 HEAD b main newer-main' \
	'what is not fetched this time stays, also without the mirror'
run checkout s --ref b
is "$rc $(t log -1 --format=%s origin/b)" '0 newer-b' 'until it is'
rm -rf "$mirrors"
w branch -q -D c && w branch c/d main~
run checkout s --ref c/d
is "$rc $(branches)" '0 HEAD b c/d main ' 'a third'
rm -rf "$mirrors"
w branch -q -m c/d c
run checkout s --branch mine --from c
is "$rc $(branches)" '0 HEAD b c main ' 'one whose name another one stood in the way of'
run checkout s --unshallow --ref main
is "$rc $(branches)$(t rev-list --count main) $(t rev-parse --is-shallow-repository)" \
	"0 HEAD a/b b c main $(w rev-list --count main) false" 'all branches, and all of their history'
t fsck --full >/dev/null 2>&1
ok 'and whole'
run rm --files --force s
rm -rf "$mirrors"
run checkout s --repo "$url" --depth 1 --ref b
rm -rf "$mirrors"
grow b newest-b
run checkout s
is "$rc $(branches)$(t log -1 --format=%s origin/b)" '0 HEAD b main newest-b' \
	'where nothing is asked for the one that it was made for is up to date'
run rm --files --force s
rm -rf "$wide"
finish

# As a helper that a server has taken over would find it.
begin_remote 'what the helper of a fetch sees'
helpers=$work/helpers
mkdir "$helpers"
cp "$top/bin/casemate" "$top/bin/casemate-keeper" "$helpers/"
cat >"$helpers/casemate-checkout" <<-'EOF'
	#!/usr/bin/python3
	import os, socket, sys
	found = []
	for family, kind in ((socket.AF_UNIX, socket.SOCK_STREAM), (socket.AF_UNIX, socket.SOCK_DGRAM)):
	    try:
	        socket.socket(family, kind)
	        found.append('socket')
	    except OSError as e:
	        found.append(os.strerror(e.errno))
	socket.socket(socket.AF_INET, socket.SOCK_STREAM)
	found.append(' '.join(sorted(os.listdir('/run/casemate'))))
	found.append(' '.join(sorted(os.listdir(os.environ.get('HOME', '/')))) or 'nothing')
	sys.exit(', '.join(found))
EOF
chmod 755 "$helpers/casemate-checkout"
was=$casemate
casemate=$helpers/casemate
start_files
run run --repo "$https_url/open/plain" -- true
like "$(err)" "*: Address family not supported by protocol, Address family not supported by protocol, \
casemate-checkout mirror, *" 'no socket of the host, the mirror and itself'
casemate=$was
rm -rf "$helpers"
finish

begin_remote 'an address without its beginning'
run run --repo github.com/owner/name -- true
refused '*github.com/owner/name*' "*did you mean 'https://github.com/owner/name'?" 'of a host'
run run --repo owner/name -- true
refused '*owner/name*' "*'https://github.com/owner/name'" 'of a forge'
run run --repo "$https_url/open/many" --ref origin/topic -- true
refused "*ref 'origin/topic' is not in the source" "did you mean 'topic'*" 'a branch as a clone calls it'
finish

# As the jail of a checkout finds it: its filter and its mounts are in no other test of this.
begin_remote 'files that can share extents'
if is_root && PATH=$PATH:/usr/sbin command -v mkfs.xfs >/dev/null && truncate -s 320M "$work/image" &&
	PATH=$PATH:/usr/sbin mkfs.xfs -q "$work/image" && mkdir "$work/disk" &&
	mount -o loop "$work/image" "$work/disk" 2>/dev/null; then
	mkdir -m 700 "$work/disk/cache" "$work/disk/root"
	give "$work/disk"
	was_cache=$XDG_CACHE_HOME
	if [ "$identity" = root ]; then
		mount --bind "$work/disk/cache" /var/cache/casemate
	else
		export XDG_CACHE_HOME=$work/disk/cache
	fi
	run run --session x --root "$work/disk/root" --repo "$https_url/open/plain" -- git fsck
	expect_status 0 'a checkout of a mirror'
	is "$(find "$work/disk/root/x/plain/.git/objects" -type f | while read -r file; do
		filefrag -v "$file" | grep -q shared && echo shared || echo "$file"
	done | sort -u)" shared 'shares them'
	is "$(find "$work/disk" -type f -links +1)" '' 'and no inode'
	run rm --files --force x
	[ "$identity" != root ] || umount /var/cache/casemate
	export XDG_CACHE_HOME=$was_cache
	umount "$work/disk"
else
	skip LOOP 'no such file system' 'a checkout of a mirror'
fi
rm -rf "$work/image" "$work/disk"
finish

begin_remote 'a damaged mirror'
run run --repo "$https_url/open/plain" -- true
repository=$(echo "$mirrors"/*/data/repository)
for what in HEAD 'objects/pack/*.pack' 'refs/heads/main' config; do
	for file in $repository/$what; do
		chmod u+w "$file"
		printf 'damage' >"$file"
	done
	run run --repo "$https_url/open/plain" -- git rev-parse HEAD
	is "$rc $(out)" "0 $first" "$what: it is fetched anew"
done
rm -rf "$repository"/objects/pack/*
run run --repo "$https_url/open/plain" -- git rev-parse HEAD
is "$rc $(out)" "0 $first" 'without its objects, too'
finish

done_testing
