#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The servers that other tests check out from do what they are said to do, as git, curl and ssh see
# them.  Nothing of casemate is tested here.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/repositories.sh"
. "$here/servers.sh"

command -v git >/dev/null || skip_all TOOLS 'no git'
# shellcheck disable=SC2034
bad_git_server=$(realpath "${3:?path of bad_git_server}")
git_settings
cd "$top" || exit 1
export GIT_TERMINAL_PROMPT=0

# g ARGUMENT...: git as a client, its status in rc
g() {
	last_args="git $*"
	timeout -k 1 "${limit:-30}" git "$@" >"$work/out" 2>"$work/err"
	rc=$?
}

same() { # CHECKOUT REPOSITORY
	[ "$(git -C "$1" rev-parse HEAD)" = "$(git -c 'safe.directory=*' -C "$2" rev-parse HEAD)" ] &&
		git -C "$1" fsck --strict >/dev/null 2>&1
}

clones() { # NAME URL [OPTION...]
	local name=$1 url=$2
	shift 2
	rm -rf c
	g "$@" clone -q "$url" c
	[ "$rc" -eq 0 ] && same c "$top/repos/plain"
	ok "$name"
}

# fails NAME GLOB-OF-THE-MESSAGE URL [OPTION...]
fails() {
	local name=$1 message=$2 url=$3
	shift 3
	rm -rf c
	g "$@" clone -q "$url" c
	# shellcheck disable=SC2053
	[ "$rc" -eq 128 ] && [[ $(err) == $message ]]
	ok "$name"
}

mkdir "$top/repos"
(cd "$top/repos" && repo_plain plain)
# as the tests have them: root's servers serve what belongs to the user who calls casemate
give "$top/repos"

t_https() {
	local ca=(-c "http.sslCAInfo=$https_ca") url name
	clones 'a repository is cloned' "$https_url/open/plain" "${ca[@]}"
	clones 'so it is without TLS' "$http_url/open/plain"
	clones 'and by the older protocol' "$https_url/open/plain" "${ca[@]}" -c protocol.version=0
	like "$(requests https)" '200 GET /open/plain/info/refs[?]service=git-upload-pack \[-\]*
200 POST /open/plain/git-upload-pack \[-\]*' 'requests are written down, that have no credentials'
	rm -rf c
	g "${ca[@]}" clone -q --depth 1 "$https_url/open/plain" c
	is "$rc $(git -C c rev-list --count HEAD)" '0 1' 'without its history'
	fails 'a repository that is not there' '*not found*' "$https_url/open/none" "${ca[@]}"
	fails 'a path that is not there' '*not found*' "$https_url/plain" "${ca[@]}"
	fails 'the authority is one of ours' '*certificate*' "$https_url/open/plain"
	for name in expired othername otherca; do
		url=${name}_url
		fails "$name is refused" '*certificate*' "${!url}/open/plain" "${ca[@]}"
		clones "$name: control" "${!url}/open/plain" -c http.sslVerify=false
	done
	is "$(why_refused expired) $(why_refused othername) $(why_refused otherca)" '10 64 21' \
		'for three different reasons'
}

why_refused() { # NAME: OpenSSL's number
	local url=${1}_port
	openssl s_client -connect "127.0.0.1:${!url}" -CAfile "$https_ca" -no-CApath -no-CAstore \
		-verify_ip 127.0.0.1 </dev/null 2>/dev/null |
		sed -n 's/.*Verify return code: \([0-9]*\) .*/\1/p' | head -n 1
}

# url_with USER:PASSWORD URL
url_with() { echo "${2%%://*}://$1@${2#*://}"; }

t_credentials() {
	local ca=(-c "http.sslCAInfo=$https_ca") user
	forget_requests
	fails 'none, where they are wanted' '*could not read Username*' "$https_url/private/plain" "${ca[@]}"
	for user in x-access-token anybody; do
		clones "$user" "$(url_with "$user:$https_token" "$https_url/private/plain")" "${ca[@]}"
	done
	clones 'without TLS' "$(url_with "u:$https_token" "$http_url/private/plain")"
	fails 'wrong ones' '*Authentication failed*' "$(url_with u:wrong "$https_url/private/plain")" "${ca[@]}"
	is "$(credentials https | sort)" "anybody:$https_token
u:wrong
x-access-token:$https_token" 'those of each request are written down'
	is "$(credentials http) $(credentials elsewhere)" "u:$https_token " 'by listener'
	fails 'right ones for what is forbidden' '*403*' \
		"$(url_with "u:$https_token" "$https_url/forbidden/plain")" "${ca[@]}"
	is "$(curl -q -s --cacert "$https_ca" -o /dev/null -w '%{http_code}' "$https_url/forbidden/plain")" \
		401 'which wants some first'
	forget_requests
	is "$(requests https)$(credentials https)" '' 'what was written down is forgotten'
}

redirects() { # PATH LISTENER STATUS: where a request to https goes
	local got
	got=$(curl -q -s --cacert "$https_ca" -o /dev/null -w '%{http_code} %{redirect_url}' \
		"$https_url/$1/plain/info/refs?service=git-upload-pack")
	is "$got" "302 $2/plain/info/refs?service=git-upload-pack" "/$1"
}

t_redirects() {
	local ca=(-c "http.sslCAInfo=$https_ca" -c http.followRedirects=true) name=https://localhost:$https_port
	redirects moved "$https_url/open"
	redirects moved-private "$https_url/private"
	redirects port "$elsewhere_url/open"
	redirects port-private "$elsewhere_url/private"
	redirects host "$name/open"
	redirects host-private "$name/private"
	redirects plain "$http_url/open"
	redirects plain-private "$http_url/private"
	redirects loop "$https_url/loop"
	for name in moved port host plain; do
		clones "/$name is followed to a repository" "$https_url/$name/plain" "${ca[@]}"
	done
	clones 'from http to https' "$http_url/secure/plain" "${ca[@]}"
	fails 'the loop has no end' '*redirects*' "$https_url/loop/plain" "${ca[@]}"
	forget_requests
	rm -rf c
	g "${ca[@]}" clone -q "$(url_with "u:$https_token" "$https_url/post-elsewhere/plain")" c
	like "$(requests https)" '401 GET */post-elsewhere/plain/info/refs*
200 GET */post-elsewhere/plain/info/refs*
307 POST */post-elsewhere/plain/git-upload-pack *' 'a redirect of the POST alone'
	is "$(requests elsewhere | grep -c 'POST /private/plain/git-upload-pack')" 1 'arrives'
	clones 'a POST that stays with its host' "$(url_with "u:$https_token" "$https_url/post/plain")" "${ca[@]}"
	# --location-trusted is what must not be done: the listener would tell
	forget_requests
	curl -q -s --cacert "$https_ca" --location-trusted -u "u:$https_token" -o /dev/null \
		"$https_url/port-private/plain/info/refs?service=git-upload-pack"
	is "$(credentials elsewhere)" "u:$https_token" 'credentials that go elsewhere are seen'
	forget_requests
	curl -q -s --cacert "$https_ca" --location -u "u:$https_token" -o /dev/null \
		"$https_url/port-private/plain/info/refs?service=git-upload-pack"
	like "$(requests elsewhere)|$(credentials elsewhere)" '401 GET */private/plain/info/refs*|' \
		'and those that do not go'
}


# A server by that name, its tests, and nothing left of it.
servers() { # NAME START TEST...
	local name=$1 start=$2 pids each
	shift 2
	begin "$name"
	if $start; then
		pids=("${server_pids[@]}")
		for each; do
			$each
		done
		rm -rf c
		stop_servers
		[ -z "$(ps -o pid= -p "${pids[*]}")" ]
		ok 'the server ends'
	else
		skip TOOLS "no ${missing:-$name}" "$name"
	fi
	finish
}

t_end_with_us() {
	local script pid
	# shellcheck disable=SC2016
	script='. "$1"; is_root() { false; }; '"$(declare -f is_root)"'; top=$2; server_https "$3" &&
		echo "${server_pids[@]}"; kill -KILL $$'
	mkdir "$work/w/killed"
	# bash tells of a child that was killed
	{ bash -c "$script" bash "$here/servers.sh" "$work/w/killed" "$top/repos" >"$work/out"; } 2>/dev/null
	[ "$(wc -w <"$work/out")" = 5 ]
	ok 'another shell has servers and is killed'
	for pid in $(out); do
		until_gone "$pid"
		ok 'one ends with it'
	done
	rm -rf "$work/w/killed"
}

t_git() {
	clones 'a repository is cloned' "$git_url/plain"
	clones 'and by the older protocol' "$git_url/plain" -c protocol.version=0
	fails 'one that is not there' '*no such repository*' "$git_url/none"
	fails 'nor one beside them' '*remote error*' "$git_url/../repos/plain"
	like "$(git_requests)" "upload-pack for '/plain'*upload-pack for '/none'*" \
		'requests are written down'
}

# by_ssh KEY [KNOWN-HOSTS]: the options of git for a client that takes these and nothing else
by_ssh() {
	ssh=(-c "core.sshCommand=ssh -F /dev/null -i $1 -o IdentitiesOnly=yes -o BatchMode=yes \
-o StrictHostKeyChecking=yes -o GlobalKnownHostsFile=/dev/null -o UserKnownHostsFile=${2:-$ssh_known_hosts}")
}

t_ssh() {
	local ssh kind
	by_ssh "$ssh_key"
	clones 'a repository is cloned' "$ssh_url/plain" "${ssh[@]}"
	clones 'and by the older protocol' "$ssh_url/plain" "${ssh[@]}" -c protocol.version=0
	fails 'one that is not there' '*not*a git repository*' "$ssh_url/none" "${ssh[@]}"
	is "$(ssh_commands | sort -u)" "git-upload-pack '/none'
git-upload-pack '/plain'" 'what was asked for is written down'
	by_ssh "$ssh_key_rsa"
	clones 'with an rsa key' "$ssh_url/plain" "${ssh[@]}"
	by_ssh "$ssh_key_unknown"
	fails 'not with one that it does not know' '*Permission denied (publickey)*' "$ssh_url/plain" "${ssh[@]}"
	by_ssh "$ssh_key_locked"
	fails 'nor with one that wants a passphrase' '*Permission denied*' "$ssh_url/plain" "${ssh[@]}"
	ssh-keygen -q -p -P "$ssh_passphrase" -N '' -f "$ssh_key_locked" >"$work/out" &&
		clones 'which is that one' "$ssh_url/plain" "${ssh[@]}"
	for kind in ssh-ed25519 rsa-sha2-512; do
		by_ssh "$ssh_key"
		ssh[1]+=" -o HostKeyAlgorithms=$kind"
		clones "its $kind host key is known" "$ssh_url/plain" "${ssh[@]}"
	done
	by_ssh "$ssh_key" /dev/null
	fails 'to those who know it' '*Host key verification failed*' "$ssh_url/plain" "${ssh[@]}"
	ssh -F /dev/null -i "$ssh_key" -o BatchMode=yes -o StrictHostKeyChecking=yes \
		-o UserKnownHostsFile="$ssh_known_hosts" -p "$ssh_port" "$ssh_user@127.0.0.1" \
		"touch $top/ran" >"$work/out" 2>"$work/err"
	[ $? -eq 128 ] && [ ! -e "$top/ran" ] && [ "$(ssh_commands | tail -n 1)" = "touch $top/ran" ]
	ok 'no other command is run'
	ssh_change_host_keys
	ok 'it gets other host keys'
	by_ssh "$ssh_key"
	fails 'which are not the known ones' '*REMOTE HOST IDENTIFICATION HAS CHANGED*' "$ssh_url/plain" "${ssh[@]}"
	by_ssh "$ssh_key" "$ssh_known_others"
	clones 'but these' "$ssh_url/plain" "${ssh[@]}"
}

https_of_repos() { server_https "$top/repos"; }
servers https https_of_repos t_https t_credentials t_redirects t_end_with_us
git_of_repos() { server_git "$top/repos"; }
servers git git_of_repos t_git

ssh_of_repos() { server_ssh "$top/repos"; }
servers ssh ssh_of_repos t_ssh

# bad MODE SCHEME STATUS GLOB: what git makes of a server that misbehaves; with 124 it waits for ever
bad() {
	local url limit=20
	server_bad "$1" "${bad_pack[@]}"
	ok "$1: listens"
	case $2 in
	http) url=$bad_url ;;
	git) url=$bad_git_url ;;
	esac
	[ "$3" != 124 ] || limit=1
	rm -rf c
	g clone --progress "$url" c
	# shellcheck disable=SC2053
	[ "$rc" = "$3" ] && [[ $(head -c 20000 "$work/err") == $4 ]] && [ -n "$(bad_asked)" ]
	ok "$1, $2: git's status is $3" || sed 's/^/# log: /' "$bad_log"
	[ "$rc" != 0 ] || {
		same c "$top/repos/plain"
		ok "$1, $2: git's clone is whole"
	}
}

# bad_took LEAST MOST NAME: bytes of the last connection that is over
bad_took() {
	local n
	until_true 5 grep -q '^sent ' "$bad_log"
	n=$(bad_sent | tail -n 1)
	[ "${n:--1}" -ge "$1" ] && [ "$n" -le "$2" ]
	ok "$3 (${n:-nothing})"
	stop_server "$bad_pid"
}

begin 'misbehaviour'
bad_pack_of "$top/repos/plain"
pack_size=$(stat -c %s "${bad_pack[3]}")
many=1000000000
for scheme in http git; do
	bad good $scheme 0 '*'
	bad_took "$pack_size" $((pack_size + 1000)) 'all of it is sent'
	bad stop $scheme 128 '*early EOF*'
	bad_took $((pack_size / 2)) $((pack_size + 300)) 'half of it is'
	bad stall $scheme 124 '*'
	bad_took $((pack_size / 2)) $((pack_size + 300)) 'half of it is'
	bad reset $scheme 128 '*[Rr]eset*'
	bad reset-refs $scheme 128 '*'
	bad reset-pack $scheme 128 '*'
	bad checksum $scheme 128 '*[Ss][Hh][Aa]1*'
	bad zlib $scheme 128 '*inflate*'
	bad count $scheme 128 '*too large*'
	bad no-pack $scheme 128 '*pack*'
	bad endless-refs $scheme 124 '*'
	bad_took 1000000 $many 'as much as is taken'
	bad garbage-refs $scheme 128 '*protocol error*'
	bad garbage-length $scheme 128 '*bad line length*'
	bad short-length $scheme 128 '*bad line length 3*'
	bad error $scheme 128 '*remote error:*owned*evil*'
	bad error-band $scheme 128 $'*remote: \e]0;owned\a\e[[]2J*'
	bad progress $scheme 124 $'*\e]0;owned\a\e[[]2J*\e]0;owned\a\e[[]2J*'
	bad_took 1000000 $many 'as much as is taken'
	bad slow-refs $scheme 124 '*'
	bad_took 1 250 'a few bytes and what comes before them'
	bad silent $scheme 124 '*'
	bad_took 0 0 'nothing'
done
# git's helper for http waits on when git has given up
bad band-length git 128 '*bad line length character: fffg*'
bad band-channel git 128 '*bad band #9*'
bad slow-pack git 124 '*'
bad type http 128 '*not valid: is this a git repository*'
bad headers http 128 '*'
bad_took 100000 10000000 'until the client has enough'
bad header http 128 '*'
bad_took 100000 10000000 'until the client has enough'
bad length http 124 '*'
bad status http 128 '*503*'
bad denied-pack http 128 '*could not read Username*'
stop_servers
finish

# hostile KIND AMOUNT BYTES-OF-THE-FILE LARGEST-PACK
hostile() {
	bad_pack_hostile "$1" "$2"
	[ "$(stat -c %s "${bad_pack[3]}")" -le "$4" ]
	ok "$1 $2: the pack is small"
	[ -n "${3:-}" ] || return
	server_bad good "${bad_pack[@]}"
	rm -rf c
	g clone -q "$bad_url" c
	[ "$rc" = 0 ] && [ "$(stat -c %s c/file)" = "$3" ] && git -C c fsck --strict >/dev/null 2>&1
	ok "$1 $2: git has room for it"
	rm -rf c
	stop_server "$bad_pid"
}

begin 'hostile packs'
if need TOOLS python3 'hostile packs'; then
	hostile inflate 20000001 20000001 25000
	hostile bomb 70000000 $((4 * 0xffffff)) 20000
	hostile deep 3000 12 100000
	hostile bomb 17179869184 '' 20000
	bad_pack_of "$top/repos/plain"
	server_bad good "${bad_pack[@]}" --ref $'refs/heads/../../x\e[31m'
	git ls-remote "$bad_git_url" >"$work/out" 2>"$work/err"
	is "$(tail -n 1 "$work/out")" "${bad_pack[1]}"$'\trefs/heads/../../x\e[31m' \
		'a ref has any name that one wants'
fi
stop_servers
finish

done_testing
