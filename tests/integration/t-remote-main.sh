#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The main job by the command line, with each service's stand-in: a repository is checked out in a
# sandbox, set up once, and commands work on it; and then nothing is left that costs money.
#
#   t-remote-main.sh DIRECTORY-OF-THE-BINARIES root|plain e2b|platform
# shellcheck disable=SC2016,SC2154
# SC2016: what single quotes keep from this shell is for the shell inside; SC2154: lib.sh
provider=${3:?}
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/servers.sh"
helpers=$here/../helpers
python=/usr/bin/python3

for program in git make cc $python; do
	command -v "$program" >/dev/null || skip_all TOOLS "no $program"
done
cp "$binaries/casemate-remote" "$top/bin/" || bail "no casemate-remote in '$binaries'"
export limit=60
case $provider in
e2b) token='e2b_0123456789abcdef0123456789abcdef01234567' ;;
platform) token='msp_0123456789abcdef0123456789abcdef' ;;
*) bail "what is '$provider'?" ;;
esac
git_password='hunter2-0123456789abcdef'

# --- the service, the repository ----------------------------------------------------------------

service=
end_service() {
	[ -z "$service" ] || kill "$service" 2>/dev/null
	[ -z "$service" ] || wait "$service" 2>/dev/null
	service=
}
ends+=(end_service)

start_service() {
	local options=(--token "$token")
	[ "$provider" != e2b ] || options=(--api-key "$token")
	mkdir "$top/service"
	: >"$top/violations"
	: >"$top/said"
	$python "$helpers/${provider}_server.py" --dir "$top/service" --violations "$top/violations" \
		--log "$top/log" "${options[@]}" >"$top/said" 2>"$top/server.err" &
	service=$!
	until_true 40 grep -q '^PORT ' "$top/said" || {
		kill -0 "$service" 2>/dev/null && bail 'the stand-in does not start'
		wait "$service"
		[ $? = 77 ] && skip_all NAMESPACES 'the stand-in can make no sandbox'
		bail 'the stand-in has failed'
	}
	port=$(sed -n 's/^PORT //p' "$top/said")
}

use_service() {
	unset E2B_API_KEY E2B_API_URL E2B_SANDBOX_URL E2B_DOMAIN CASEMATE_PROVIDER CASEMATE_GIT_TOKEN
	unset FACTORY_SANDBOX_PROVIDER MASTRA_PROJECT_ID MASTRA_ENVIRONMENT_ID
	unset MASTRA_PLATFORM_ACCESS_TOKEN MASTRA_PLATFORM_SECRET_KEY MASTRA_WORKSPACE_PROXY_URL
	case $provider in
	e2b)
		export E2B_API_KEY=$token E2B_API_URL=http://127.0.0.1:$port
		export E2B_SANDBOX_URL=http://127.0.0.1:$port
		;;
	platform)
		export MASTRA_PROJECT_ID=project-1 MASTRA_ENVIRONMENT_ID=environment-1
		export MASTRA_PLATFORM_ACCESS_TOKEN=$token
		export MASTRA_WORKSPACE_PROXY_URL=http://127.0.0.1:$port
		;;
	esac
}

# How many sandboxes there are that somebody pays for.
n_sandboxes() {
	$python - "$port" <<-'END'
		import http.client, json, sys
		c = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=20)
		c.request("GET", "/__test/state")
		state = json.load(c.getresponse())
		print(sum(x.get("state", x.get("status")) in ("running", "paused") for x in state["sandboxes"]))
	END
}
has_sandboxes() { [ "$(n_sandboxes)" = "$1" ]; }
nothing_left() {
	until_true 20 has_sandboxes 0
	ok "${1:-the service has no sandbox left}"
}

# read_json EXPRESSION: of the JSON `j` in the last output
read_json() { $python -c "import json, sys; j = json.load(open(sys.argv[1])); print($1)" "$work/out"; }

# What commands print is the caller's, and no place for what opens the service, or the repository.
: >"$top/printed"
on() { # COMMAND ARGUMENT...: of this provider
	local words=("$1")
	[ "$1" != file ] || words+=("$2")
	run "${words[@]}" --provider "$provider" "${@:$((${#words[@]} + 1))}"
	cat "$work/out" "$work/err" >>"$top/printed"
}

make_repository() {
	mkdir "$top/repos" "$top/app"
	printf '%s\n' '#include <stdio.h>' 'int main(int argc, char **argv) {' \
		'(void)argv; puts("built"); fputs("warned\n", stderr); return argc > 1 ? 7 : 0; }' >"$top/app/app.c"
	printf 'app: app.c\n\t@echo made >>made\n\tcc -o $@ app.c\n' >"$top/app/Makefile"
	(
		cd "$top/app" || exit
		export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
		git init -q -b main . && git add . && git -c user.name=t -c user.email=t@localhost \
			commit -q -m 'an app' && git clone -q --bare . "$top/repos/app.git"
	) >&2 || bail 'no repository'
	chmod -R a+rX "$top/repos"
}

end_block() {
	is "$(traces "$token")$(traces "$git_password")" '' 'no token in a file or process'
	finish
}

make_repository
server_git "$top/repos" || skip_all TOOLS "no $missing"
start_service

begin_with() { # NAME
	begin "$1"
	# where is remembered what was made of a session
	allow "(state|/var/lib)/casemate/remote(/$provider)? d 700"
	use_service
	job=(--repo "$git_url/app.git" --network internet --setup make)
}

# --- a command ----------------------------------------------------------------------------------

begin_with 'one command'
on run "${job[@]}" -- ./app
is "$rc $(out)" '0 built' 'status and output'
like "$(err)" '*warned' 'its standard error'
nothing_left
on run --verbose "${job[@]}" -- ./app fails
is "$rc $(out)" '7 built' 'its own status'
like "$(err)" '*POST *DELETE *' '--verbose has the requests'
on run --json "${job[@]}" -- ./app fails
is "$rc $(read_json '(j["end"], j["exitCode"], j["stdout"])')" "7 ('exit', 7, 'built\\n')" '--json'
is "$(read_json '[j[k] for k in ("cpuUserMs", "cpuSystemMs", "maxRssBytes", "childrenLeft")]')" \
	'[None, None, None, None]' 'what the service does not tell is null'
on start --json --network internet bare
is "$rc $(read_json '(j["end"], j["exitCode"])')" '0 (None, 0)' 'a start without a command has no end'
on rm --files --force bare
on run --repo "$git_url/nobody.git" --network internet -- true
is "$rc $(out)" '125 ' 'a repository that is not there'
like "$(err)" '*casemate: *' 'a repository that is not there: it is said'
CASEMATE_GIT_TOKEN=$git_password on run --verbose "${job[@]}" -- sh -c 'env; ./app; cat .git/config'
is "$rc $(grep -c "$git_password" "$work/out")" '0 0' 'a token for the repository is not in the sandbox'
nothing_left 'after all that the service has no sandbox left'
end_block

# --- a session ----------------------------------------------------------------------------------

begin_with 'a session'
on run --session s "${job[@]}" -- ./app
is "$rc $(out)" '0 built' 'the first command'
on run --session s "${job[@]}" -- sh -c './app && wc -l <made'
is "$rc $(out | tr -d ' ')" $'0 built\n1' 'the second one, and setup was run once'
has_sandboxes 1
ok 'in one sandbox'
on ls -q
expect_out s 'ls'
on exec s -- sh -c './app; exit 4'
is "$rc $(out)" '4 built' 'exec works in the checkout'

on exec -d s -- sh -c 'for i in 1 2 3; do echo $i; sleep 0.2; done; exit 5'
expect_status 0 'exec -d'
name=$(out)
on logs -f s "$name"
expect_out $'1\n2\n3' 'logs -f'
on wait s "$name"
expect_status 5 'wait'
on exec -d s -- sleep 1000
name=$(out)
on kill s "$name"
expect_status 0 'kill'
on wait -q s "$name"
expect_status 143 'wait: it was killed'
on ps s
like "$(out)" "*$name*" 'ps'

printf 'a\0b\377' >"$work/w/bytes"
give "$work/w/bytes"
on file write s bytes <"$work/w/bytes"
expect_status 0 'file write'
on file read s bytes
cmp -s "$work/out" "$work/w/bytes"
ok 'file read'
mkdir -p tree/sub
printf 'one\n' >tree/one
printf 'two\n' >tree/sub/two
give tree
on cp tree s:
expect_status 0 'cp: in'
on exec s -- sh -c 'cat tree/one tree/sub/two; rm tree/one; echo three >tree/sub/three'
is "$rc $(out)" $'0 one\ntwo' 'cp: what is there'
on cp s:tree back
is "$rc $(cd back && find . -type f | sort | tr '\n' ' ')" '0 ./sub/three ./sub/two ' 'cp: out'
rm -rf tree back bytes

on stop s
expect_status 0 'stop'
on ls --json
is "$(read_json '[x["status"] for x in j]')" "['stopped']" 'it is stopped'
on exec s -- sh -c './app && cat tree/sub/three && wc -l <made'
is "$rc $(out | tr -d ' ')" $'0 built\nthree\n1' 'exec starts it, with its files'
on rm --verbose --files --force s
expect_status 0 'rm'
nothing_left
on inspect s
expect_status 125 'it is not there'
end_block

# --- a setup that fails -------------------------------------------------------------------------

begin_with 'a setup that fails'
job=(--repo "$git_url/app.git" --network internet --setup 'echo tried >>tried; echo no >&2; exit 3')
on run "${job[@]}" -- ./app
is "$rc $(out)" '125 ' 'the command is not run'
like "$(err)" '*setup command 1 of 1 failed (exit 3)*' 'which one'
nothing_left 'a sandbox of its own is gone'
on run --json "${job[@]}" -- ./app
is "$rc $(read_json '(j["end"], j["code"], j["phase"], j["reason"])')" \
	"125 ('failed', 'setup', 'setup', 'setup-failed')" '--json: what failed, and why'
nothing_left '--json: its sandbox is gone, too'
on run --session s "${job[@]}" -- ./app
expect_status 125 'of a session'
on run --session s "${job[@]}" -- sh -c 'wc -l <tried'
is "$rc $(out | tr -d ' ')" '0 1' 'again: it is not run a second time'
like "$(err)" '*--setup-again*' 'again: how to run it is said'
on run --session s --setup-again "${job[@]}" -- true
expect_status 125 '--setup-again'
on exec s -- sh -c 'wc -l <tried'
is "$rc $(out | tr -d ' ')" '0 2' '--setup-again runs it'
on rm --files --force s
nothing_left
end_block

begin_with 'the service'
is "$(cat "$top/violations")" '' 'every request was as it should be'
! grep -qF -e "$token" -e "${token#*_}" -e "$git_password" "$top/printed"
ok 'no token in what was printed'
! grep -qiE 'envdAccessToken|x-access-token: |authorization: ' "$top/printed"
ok 'nor one of a sandbox'
end_service
stop_servers
finish

done_testing
