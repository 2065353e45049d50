#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The credential helpers of the user's git: when they are asked and for what, and where what they give
# goes.
# shellcheck disable=SC2016,SC2154
# SC2016: what single quotes keep from this shell is for the shell inside
# SC2154: URLs and tokens are set by servers.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/lib-remote.sh"

(cd "$repos" && repo_plain plain && repo_plain other)
server_https "$repos" || skip_all TOOLS "no $missing"
https_url=${https_url/127.0.0.1/localhost}
first=$(git -C "$repos/plain" rev-parse HEAD)
private=$https_url/private/plain

# What it is asked and where it runs it writes down; what it gives is in a file, or it does as one says.
helper=$top/helper
mkdir "$helper"
cat >"$helper/ask" <<EOF
#!/bin/sh
{
	echo "asked \$1"
	cat
	echo "in \$(pwd)"
	tty
	(exec </dev/tty) 2>/dev/null && echo 'a terminal'
	env
} >>"$helper/log"
[ ! -e "$helper/do" ] || . "$helper/do"
[ "\$1" != get ] || [ ! -e "$helper/token" ] || printf 'username=me\npassword=%s\n' "\$(cat "$helper/token")"
EOF
chmod 755 "$helper/ask"
cat >"$helper/gitconfig" <<EOF
[credential]
	helper = $helper/ask
EOF
give "$helper"

begin_helper() { # NAME [TOKEN]
	begin_mirrors "$1"
	export GIT_SSL_CAINFO=$https_ca GIT_CONFIG_GLOBAL=$helper/gitconfig
	forget_requests
	rm -f "$helper/log" "$helper/token" "$helper/do"
	[ $# -lt 2 ] || printf %s "$2" >"$helper/token"
	give "$helper"
	start_files
}

asked() { sed -n "/^asked/p" "$helper/log" 2>/dev/null | grep -c '^asked'; }

begin_helper 'a helper' "$https_token"
cd "$work/w" && git init -q -b main . && git config credential.helper "!touch $top/helper/repository-ran; :"
give "$work/w"
start_files
GIT_DIR=$work/w/.git GIT_ASKPASS=$helper/ask SSH_ASKPASS=$helper/ask GIT_TRACE=$helper/trace PATH=$work/w/bin:$PATH \
	run run --repo "$private" -- sh -c 'git rev-parse HEAD; git config --get remote.origin.url; env
cat /proc/*/environ /proc/*/cmdline; find / -xdev -type f -size -64k -newer /proc/self/exe -exec cat {} + 2>/dev/null; true'
[ "$rc" = 0 ] && grep -q "$first" "$work/out"
ok 'gives what the server wants'
like "$(requests https)" '401 GET *\[-\]
*200 GET *Basic *' 'which is asked without one first'
is "$(asked) $(sed -n '2,3p' "$helper/log" | tr '\n' ' ')" \
	"1 protocol=https host=${https_url#https://} " 'it is asked once, with protocol and host'
is "$(grep -c "^in /\$" "$helper/log") $(grep -c 'a terminal' "$helper/log")" '1 0' 'in /, and without a terminal'
! grep -qE "^(GIT_DIR|GIT_TRACE|SSH_ASKPASS)=|^GIT_ASKPASS=.|^PATH=.*$work/w" "$helper/log"
ok 'with nothing that names a repository, a prompt or a program in the tree'
[ ! -e "$helper/repository-ran" ] && [ ! -e "$helper/trace" ]
ok "no repository's own helper runs"
! grep -qaF "$https_token" "$work/out"
ok 'the secret is nowhere inside'
is "$(traces "$https_token")" '' 'nor outside'
echo "$https_token" >"$work/home/found"
is "$(traces "$https_token")" "$work/home/found" 'where it is it would be found'
rm "$work/home/found"
rm -rf "$work/w/.git"
allow "$work/w/.git"
finish

begin_helper 'who is asked, and when' "$https_token"
run run --repo "$https_url/open/plain" -- git rev-parse HEAD
is "$(out) $(asked)" "$first 0" 'nobody where nothing is wanted'
run run --repo "$private" --git-credential none -- true
refused '*wants a credential, and there is none' '*' 'none: nothing is told'
is "$(asked)" 0 'and nobody is asked'
CASEMATE_GIT_TOKEN=$https_token run run --repo "$private" --git-credential none -- true
expect_status 125 'none: nor is the token of a variable'
CASEMATE_GIT_TOKEN=wrong run run --repo "$private" -- true
refused '*does not accept the credential (401)' '*' 'a token that is wrong is no reason to ask'
is "$(asked)" 0 'nobody is'
forget_requests
CASEMATE_GIT_TOKEN=wrong run run --repo "$private" --git-credential helper -- git rev-parse HEAD
is "$rc $(out) $(asked)" "0 $first 1" 'helper: asked first, above the variable'
run run --repo "$work/none" --git-credential helper -- true
refused '--git-credential helper is for a --repo by https or http' '*' 'helper: not of a path'
run run --session s --repo "$private" -- true
is "$rc $(asked)" '0 2' 'a session that stays'
run run --session s -- true
is "$rc $(asked)" '0 2' 'needs nothing more'
run rm --files --force s
finish

begin_helper 'what it gives' wrong
run run --repo "$private" -- true
refused '*does not accept the credential (401)' "it is what git's credential helper gave: *" 'is wrong: which is said'
is "$(grep -c '^asked erase' "$helper/log")" 0 'and nothing is erased'
rm "$helper/token"
run run --repo "$private" -- true
refused '*wants a credential, and there is none' 'export CASEMATE_GIT_TOKEN*' 'is nothing'
for do in 'exit 1' 'printf "username=x\npassword=\n"' 'echo quit=1' 'kill -9 $$' \
	'head -c 300000 /dev/zero | tr "\0" x' 'printf "username=a\npassword=b\001c\n"'; do
	echo "$do" >"$helper/do"
	run run --repo "$private" -- true
	is "$rc" 125 "is nothing: $do"
	like "$(err)" '*casemate: cannot fetch *hint: *' "which is clear: $do"
done
echo 'sleep 300 & sleep 300' >"$helper/do"
since=$(now_ms)
run run --repo "$private" -- true
took_ms=$(($(now_ms) - since))
refused '*wants a credential, and there is none' '*' 'does not come'
[ "$took_ms" -gt 15000 ] && [ "$took_ms" -lt 30000 ] && ! pgrep -x sleep >/dev/null
ok "is waited for 20 s, and goes with all that it began ($took_ms ms)"
start run --repo "$private" -- true
until_true 10 pgrep -x sleep
kill -INT "$bg"
wait_bg
[ "$rc" = 130 ] && [ "$elapsed_ms" -lt 2000 ] && ! pgrep -x sleep >/dev/null
ok 'a signal ends the wait'
printf %s "$https_token" >"$helper/token"
echo 'setsid sleep 300 >/dev/null & echo $! >"$0.pid"' >"$helper/do"
give "$helper"
since=$(now_ms)
run run --repo "$private" -- git rev-parse HEAD
is "$(out)" "$first" 'is there, and something is left running'
[ $(($(now_ms) - since)) -lt 15000 ]
ok 'which is not waited for'
kill "$(cat "$helper/ask.pid")"
ok 'nor ended, since it may be a cache'
finish

begin_helper 'another server' "$https_token"
for path in port-private beside-private plain-private; do
	run run --repo "$https_url/$path/plain" -- true
	refused '*redirects*' '*' "a redirect: $path"
done
is "$(requests elsewhere)$(requests http) $(asked)" ' 0' 'nobody is asked for it, and it is told nothing'
run run --repo "${expired_url/127.0.0.1/localhost}/private/plain" -- true
is "$rc $(asked)" '125 0' 'nor for one that nobody vouches for'
finish

begin_helper 'a path' "$https_token"
printf '\tuseHttpPath = true\n' >>"$helper/gitconfig"
run run --repo "$private" -- true
is "$rc $(grep '^path=' "$helper/log")" '0 path=private/plain' 'is asked with where that is wanted'
finish

begin_helper 'a mirror of who may not' "$https_token"
run run --repo "$private" -- true
rm "$helper/token"
run run --repo "$private" -- true
refused '*wants a credential, and there is none' '*' 'is not seen without the credential'
finish

if is_root; then
	begin_helper 'no git' "$https_token"
	: >"$top/empty"
	for git in /usr/bin/git /usr/local/bin/git; do
		[ ! -e $git ] || mount --bind "$top/empty" $git
	done
	run run --repo "$private" -- true
	refused '*wants a credential, and there is none' '*' 'is as no helper'
	for git in /usr/bin/git /usr/local/bin/git; do
		[ ! -e $git ] || umount $git
	done
	finish
fi

done_testing
