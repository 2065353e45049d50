#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The command line over sessions of E2B, with a stand-in of the service that is strict: which provider
# is chosen, what commands of sessions say and return, and that nothing is left that costs money.
#
#   t-remote-cli.sh DIRECTORY-OF-THE-BINARIES root|plain
# shellcheck disable=SC2016,SC2216
# SC2016: what single quotes keep from this shell is for the shell inside; SC2216: `run cp` reads
. "$(dirname "${BASH_SOURCE[0]}")/lib-terminal.sh"
. "$(dirname "${BASH_SOURCE[0]}")/lib-e2b.sh"

# --- which provider -----------------------------------------------------------------------------

begin 'the choice'
no_service
run provider
expect_out 'local: nothing names another one' 'without a word sessions are here'
E2B_API_KEY=x run provider
expect_out 'e2b: E2B_API_KEY is set' 'a key names its provider'
E2B_API_KEY=x run provider --provider local
like "$(out)" 'local: --provider*' 'an option comes first'
CASEMATE_PROVIDER=nobody run ls
refused "CASEMATE_PROVIDER names no provider: 'nobody'" 'there are local, platform and e2b' \
	'a provider that is not there'
run ls --provider e2b
refused "no key for E2B: 'E2B_API_KEY' is not set" 'set E2B_API_KEY *' 'without a key'
E2B_API_KEY='  ' run ls --provider=e2b
refused "no key for E2B: 'E2B_API_KEY' is not set" 'set E2B_API_KEY *' 'a blank key'
E2B_API_KEY=$key E2B_API_URL=http://127.0.0.1:1 run ls --provider e2b
expect_status 125 'half of a service'
like "$(err)" '*E2B_SANDBOX_URL*' 'half of a service: what is missing'
no_secrets 'half of a service: no key'
E2B_API_KEY=$key E2B_SANDBOX_URL=http://127.0.0.1:1 run ls --provider e2b
expect_status 125 'the other half'
like "$(err)" '*E2B_API_URL*' 'the other half: what is missing'
E2B_API_KEY=$key E2B_API_URL=http://192.0.2.1 E2B_SANDBOX_URL=http://192.0.2.1 run ls --provider e2b
expect_status 125 'without encryption to another machine'
like "$(err)" '*https*' 'without encryption to another machine: the reason'
no_secrets 'without encryption: no key'
run template ls
refused 'sessions of this host have no templates yet' '--provider e2b *' 'no templates here'
run file url s f
refused 'sessions of this host have no addresses for their files' "'casemate file read' *" \
	'no addresses here'
MASTRA_PROJECT_ID=p MASTRA_ENVIRONMENT_ID=e MASTRA_PLATFORM_ACCESS_TOKEN=t \
	run file url s f --provider platform
refused "provider 'platform' has no 'file url'" "'casemate file read' *" 'none on the platform'
finish

start_service

begin_with 'a wrong key'
E2B_API_KEY=wrong_4711 run ls
expect_status 125 'a wrong key'
like "$(err)" 'casemate: *' 'a wrong key is said'
! grep -q wrong_4711 "$work/out" "$work/err"
ok 'the key is not'
E2B_API_KEY=wrong_4711 run run "${temporary[@]}" -- true
expect_status 125 'a wrong key, and a command'
finish

# --- commands -----------------------------------------------------------------------------------

begin_with 'run'
run run "${temporary[@]}" -- echo 'a  b'
expect_status 0 'a command'
expect_out 'a  b' 'its output'
nothing_left
run run "${temporary[@]}" -- sh -c 'echo out; echo err >&2; exit 42'
expect_status 42 'its status'
expect_out out 'its standard output'
like "$(err)" '*err' 'its standard error'
printf 'x\0\377y' | run run "${temporary[@]}" -- cat
is "$(od -An -c "$work/out" | tr -s ' ')" ' x \0 377 y' 'its input, of any bytes'
run run "${temporary[@]}" -- no-such-command-anywhere
expect_status 127 'a command that is not there'
run run --network internet -- true
expect_status 125 'a tree of this host is not there'
like "$(err)" '*--no-workspace*' 'and what to write'
nothing_left 'after all that no sandbox is left'
run run --verbose "${temporary[@]}" -- true
expect_status 0 'with --verbose'
like "$(err)" '*POST *sandboxes*DELETE *' 'with --verbose: its requests'
no_secrets 'with --verbose: no key, no token'
finish

begin_with 'a session'
run start s --network internet --label team=web
expect_status 0 'start'
run ls
expect_status 0 'ls'
like "$(out)" $'ID*STATE*AGE*EXPIRES*TEMPLATE*\ns *running*' 'ls: the table'
run ls -q
expect_out s 'ls -q'
run ls --json
is "$(read_json '[(x["id"], x["status"], x["provider"], x["labels"]) for x in j]')" \
	"[('s', 'running', 'e2b', {'team': 'web'})]" 'ls --json'
run ls -q --filter label=team=web --filter state=running
expect_out s 'ls: filters'
run ls -q --filter label=team=db
expect_out '' 'ls: filters, and none'
run ls --filter level=full
refused "provider 'e2b' has no '--filter level'" 'state, name, label and repo *' 'ls: no level'
"${as[@]}" "$casemate" ls >/dev/full 2>"$work/err"
is "$?" 125 'ls: a full disk'
run ls --root /tmp
refused "provider 'e2b' has no '--root'" '*--provider local' 'no root'
run inspect s
like "$(out)" $'id * s\nstatus * running\n*' 'inspect'
run inspect --json s
is "$(read_json '(j["id"], j["name"], j["status"], j["provider"], j["labels"])')" \
	"('s', 's', 'running', 'e2b', {'team': 'web'})" 'inspect --json'
no_secrets 'inspect: no token'
run inspect nobody
expect_status 125 'inspect: not there'
run start s --network internet
is "$rc $(n_sandboxes)" '0 1' 'start again: the same one'
run exec s -- sh -c 'echo in; exit 3'
is "$rc $(out)" '3 in' 'exec'
echo text | run exec -i s -- cat
is "$rc $(out)" '0 text' 'exec -i'
run exec s -- sh -c 'kill -TERM $$'
expect_status 143 'a signal of its own'
terminal 'send:echo $((6 * 7)) >of-shell; exit 3\n' end -- shell s
ended 3 'a shell'
run exec s -- cat of-shell
expect_out 42 'what was typed was done'
run stop s
expect_status 0 'stop'
run ls --json
is "$(read_json '[x["status"] for x in j]')" "['stopped']" 'it is stopped'
run stop s
expect_status 0 'stop again'
run exec s -- echo back
is "$rc $(out)" '0 back' 'exec starts it'
run start t --network internet --teardown 'echo torn >torn; cat torn'
run stop t
is "$rc $(grep -c '^torn$' "$work/err")" '0 1' 'stop: its teardown runs before'
run exec t -- cat torn
expect_out torn 'what that wrote is kept'
run rm --files --force --no-teardown t
is "$rc $(grep -c '^torn$' "$work/err")" '0 0' 'rm: and not where it is not wanted'
run rm s
refused "provider 'e2b' keeps no files of a session that is removed" '*rm --files*' 'rm without --files'
run rm --files s
refused "session 's' runs" "'casemate stop s' *" 'rm of one that runs'
is "$(n_sandboxes)" 1 'it is still there'
run rm --files --force nobody s
expect_status 125 'rm: one of two is not there'
nothing_left 'rm: the other is gone'
finish

begin_with 'commands that nobody waits for'
run start s --network internet
run exec -d s -- sh -c 'echo one; echo two; echo err >&2; exit 5'
expect_status 0 'exec -d'
name=$(out)
[ -n "$name" ]
ok 'it has a name'
run wait s "$name"
expect_status 5 'wait: its status'
run wait --json s "$name"
is "$rc $(read_json '(j["exec"], j["state"], j["end"], j["exitCode"], j["detached"])')" \
	"5 ('$name', 'ended', 'exit', 5, True)" 'wait --json'
run logs s "$name"
is "$(out)/$(err)" $'one\ntwo/err' 'logs: both streams'
run logs --stream stderr s "$name"
is "$(out)/$(err)" 'err/' 'logs --stream'
run logs --tail 1 s "$name"
is "$(out)" two 'logs --tail'
run logs --offset 4 --bytes 2 s "$name"
is "$(out)" tw 'logs --offset --bytes'
run logs s no-such
expect_status 125 'logs: not there'
run ps s
like "$(out)" $'EXEC*STATE*COMMAND\n'"$name"' *exit 5 *sh -c*' 'ps'
run ps -q s
expect_out "$name" 'ps -q'
run ps --json s
is "$(read_json '[(x["exec"], x["state"], x["exitCode"]) for x in j]')" "[('$name', 'ended', 5)]" 'ps --json'
run kill s "$name"
expect_status 1 'kill: it has ended already'
run exec -d s -- sleep 1000
name=$(out)
run wait --timeout 300ms s "$name"
refused "command $name still runs after 300ms" 'it goes on: *' 'wait --timeout'
run kill s "$name"
expect_status 0 'kill'
run wait -q s "$name"
expect_status 143 'wait: TERM'
run exec -d s -- sh -c 'trap "" TERM; while :; do sleep 0.1; done'
name=$(out)
run kill s "$name"
expect_status 0 'kill: one that ignores TERM'
run exec -d s -- sh -c 'trap "exit 9" USR1; while :; do sleep 0.1; done'
name=$(out)
sleep 0.5
run kill -s USR1 s "$name"
expect_status 0 'kill -s'
run wait s "$name"
expect_status 9 'the signal came'
run kill -s NOTHING s "$name"
expect_status 125 'no such signal'
run exec -d s -- sh -c 'for i in 1 2 3; do echo $i; sleep 0.2; done'
name=$(out)
run logs -f s "$name"
expect_out $'1\n2\n3' 'logs -f'
run exec -d s -- sh -c 'printf "a\\033[31mb\\n"; exit 0'
name=$(out)
run wait s "$name"
run logs s "$name"
is "$(od -An -c "$work/out" | tr -s ' ')" ' a 033 [ 3 1 m b \n' 'logs: to a file as it is'
terminal end -- logs s "$name"
shown 'a\x1b[31mb' 'logs: on a terminal escaped'
terminal end -- attach --tail 1 s "$name"
shown 'a\x1b[31mb' 'attach: on a terminal escaped'
run exec -d s -- sh -c 'head -c 2000000 /dev/zero | tr "\\0" "x"'
name=$(out)
run wait s "$name"
"${as[@]}" "$casemate" logs s "$name" 2>"$work/err" | head -c 10 >/dev/null
is "${PIPESTATUS[0]} $(err)" '0 ' 'logs: a reader that has seen enough'
"${as[@]}" "$casemate" logs s "$name" >/dev/full 2>"$work/err"
is "$?" 125 'logs: a full disk'
run exec -d -i s -- sh -c 'while read -r x; do echo "<$x>"; done; exit 6'
name=$(out)
echo a | run stdin s "$name"
expect_status 0 'stdin'
echo b | run stdin --close s "$name"
expect_status 0 'stdin --close'
run wait s "$name"
expect_status 6 'its input has ended'
run logs s "$name"
expect_out $'<a>\n<b>' 'it came in order'
echo c | run stdin s "$name"
expect_status 125 'stdin: it has ended'
run exec -d -i s -- sh -c 'echo before; read -r x; echo "<$x>"; exit 4'
name=$(out)
sleep 0.5
echo typed | run attach --tail 1 s "$name"
is "$rc $(out)" $'4 before\n<typed>' 'attach'
run attach s "$name"
is "$rc $(out)" '4 ' 'attach: it has ended'
run exec -d s -- sh -c 'echo begun; sleep 0.5; echo over; exit 2'
name=$(out)
echo lost | run attach --tail 9 s "$name"
is "$rc $(out)" $'2 begun\nover' 'attach: to one that has no input'
run exec -d s -- sh -c 'head -c 3000000 /dev/zero; sleep 1000'
name=$(out)
sleep 0.5
run kill s "$name"
expect_status 0 'kill: one that has printed much'
run wait -q s "$name"
expect_status 143 'TERM was enough'
run exec -d s -- sleep 1000
name=$(out)
start attach s "$name"
sleep 1
kill -INT "$bg"
wait_bg
is "$rc $(err)" '130 ' 'INT leaves it'
run ps -q s
like "$(out)" "*$name*" 'it goes on'
run rm --files --force s
expect_status 0 'rm'
nothing_left
finish

begin_with 'files'
run start s --network internet
printf 'a\0\377\n' | run file write -m 640 s f
expect_status 0 'file write'
run file read s f
is "$(od -An -c "$work/out" | tr -s ' ')" ' a \0 377 \n' 'file read: any bytes'
run file read --offset 1 --length 2 s f
is "$(od -An -c "$work/out" | tr -s ' ')" ' \0 377' 'file read: a piece'
run file stat --json s f
is "$(read_json '(j["name"], j["type"], j["size"], j["mode"])')" "('f', 'file', 4, '0640')" 'file stat'
run file stat s f nobody
expect_status 1 'file stat: one of two is not there'
like "$(out)" $'name: * f\ntype: * file\n*' 'file stat: the other'
like "$(err)" 'casemate: *nobody*' 'file stat: which one'
printf 'a\033[31mb\n' | run file write s escape
terminal end -- file read s escape
shown 'a\x1b[31mb' 'file read: on a terminal escaped'
run file rm s escape
printf 'x' | run file write s $'odd\n\033name'
run file ls s
grep -qxF 'odd\x0a\x1bname' "$work/out"
ok 'names are escaped'
run file rm s $'odd\n\033name'
run file mkdir s a/b
expect_status 1 'file mkdir: nothing above'
run file mkdir -p s a/b
expect_status 0 'file mkdir -p'
run file mv s f a/b/g
expect_status 0 'file mv'
run file ls -r s a
expect_out $'b\nb/g' 'file ls -r'
run file ls -0 s a
is "$(od -An -c "$work/out" | tr -s ' ')" ' b \0' 'file ls -0'
run file ls -l s a/b
like "$(out)" '-rw-r----- *4 * g' 'file ls -l'
run file ls s a/b/g
expect_out a/b/g 'file ls of a file'
run file ls --json s a/b
is "$(read_json '(j["name"], j["type"], j["mode"])')" "('g', 'file', '0640')" 'file ls --json'
echo more | run file write --append s a/b/g
run file read s a/b/g
is "$(tail -n 1 "$work/out")" more 'file write --append'
echo new | run file write --atomic s a/b/g
run file read s a/b/g
expect_out new 'file write --atomic'
echo deep | run file write -p s x/y/z
expect_status 0 'file write -p'
run file rm s a
expect_status 1 'file rm of a directory'
run file rm -r s a x
expect_status 0 'file rm -r'
run file rm s a
expect_status 1 'file rm: not there'
run file rm -f s a
expect_status 0 'file rm -f: not there'
run file read s nobody
expect_status 1 'file read: not there'
run file write --mode 4755 s f </dev/null
expect_status 125 'no set-id bits'
start file watch --json s
until_true 10 grep -q '"ready"' "$work/out"
ok 'file watch: it stands'
cp "$work/out" "$work/watch"
"${as[@]}" "$casemate" exec s -- touch seen >/dev/null 2>&1
until_true 10 grep -q '"created","path":"seen"' "$work/out"
ok 'file watch: what was made'
kill -INT "$bg"
wait_bg
expect_status 130 'file watch: INT'
head -c 3000000 /dev/urandom >"$work/big"
run file write s big <"$work/big"
expect_status 0 'a large file'
run file read s big
cmp -s "$work/out" "$work/big"
ok 'a large file comes back'
# a device that is full
"${as[@]}" "$casemate" file read s big >/dev/full 2>"$work/err"
is $? 125 'a full disk'
"${as[@]}" "$casemate" file read s big 2>"$work/err" | head -c 10 >/dev/null
is "${PIPESTATUS[0]}" 141 'nobody reads it'
rm "$work/big"
run rm --files --force s
nothing_left
finish

# What others have, without any key: the status, and the answer in $work/got.
fetch() { # URL [OPTION...]
	curl -q -s --noproxy '*' -o "$work/got" -w '%{http_code}' "${@:2}" "$1"
}
octets=(-H 'Content-Type: application/octet-stream' --data-binary)
token_of() { # ID: as the service tells who has its key
	curl -q -s --noproxy '*' -H "X-API-Key: $key" "http://127.0.0.1:$port/sandboxes/$1" |
		$python -c 'import json, sys; print(json.load(sys.stdin)["envdAccessToken"])'
}

if need TOOLS curl 'addresses of files'; then
	begin_with 'addresses of files'
	run start s --network internet
	token=$(token_of "$(look 's["sandboxes"][0]["sandboxID"]')")
	printf 'a\0\377\n' >"$work/bytes"
	run file write s 'a b+c' <"$work/bytes"
	run file url --verbose s 'a b+c'
	expect_status 0 'to read'
	like "$(out)" "http://127.0.0.1:$port/files?path=*a%20b%2Bc&signature=v1_*" 'to read: the address'
	is "$(wc -l <"$work/out")" 1 'and nothing else'
	like "$(err)" '*POST *sandboxes*' 'with --verbose: its requests'
	[ "${#token}" -gt 20 ] && ! grep -qF -e "$token" -e v1_ "$work/err" && ! grep -qF "$token" "$work/out"
	ok 'and no token, nor the address'
	no_secrets 'nor a key'
	url=$(out)
	is "$(fetch "$url")" 200 'it is read'
	cmp -s "$work/got" "$work/bytes"
	ok 'any bytes'
	is "$(fetch "$url" "${octets[@]}" x)" 401 'it is not written by that'
	is "$(fetch "${url/b%2Bc/b}")" 401 'nor another one read'
	run file url --upload --expires 1h --json s new/made
	expect_status 0 'to write'
	is "$(read_json '(sorted(j), j["name"], j["operation"])')" \
		"(['expires', 'name', 'operation', 'url'], 'new/made', 'write')" 'to write: --json'
	is "$(read_json '__import__("re").fullmatch("20..-..-..T..:..:..[.]000Z", j["expires"]) is not None')" True \
		'to write: its end'
	url=$(read_json 'j["url"]')
	is "$(read_json 'abs(int(j["url"].rpartition("=")[2]) - __import__("time").time() - 3600) < 60')" True \
		'to write: its end is signed'
	is "$(fetch "$url" "${octets[@]}" made)" 200 'it is written'
	is "$(fetch "$url" -F "file=@$work/bytes;type=application/octet-stream")" 200 'by a form, too'
	run file read s new/made
	cmp -s "$work/out" "$work/bytes"
	ok 'and is there'
	is "$(fetch "$url")" 401 'it is not read by that'
	run file url --expires 1s --json s new/made
	url=$(read_json 'j["url"]')
	ended() { [ "$(fetch "$url")" = 401 ]; }
	until_true 10 ended
	ok 'an address ends'
	like "$(cat "$work/got")" '*expired*' 'by its time'
	run file url --json s new/made
	is "$(read_json '(j["expires"], j["operation"])')" "(None, 'read')" 'one without an end'
	run file url --expires 999ms s f
	refused '*--expires*' '?*' 'too short'
	run file url --expires 999999d s f
	refused '*--expires*' '?*' 'too long'
	run file url --expires -1 s f
	expect_status 125 'no time'
	run file url --append s f
	expect_status 125 'no option of others'
	run file url s f g
	refused "'file url' takes a session and one path" 'casemate file url *' 'one path'
	run file url s ''
	expect_status 1 'an empty path'
	run file url nobody f
	expect_status 125 'not there'
	"${as[@]}" "$casemate" file url s f >/dev/full 2>"$work/err"
	is $? 125 'a full disk'
	run help file
	like "$(out)" '*url*--upload*--expires*' 'help'
	# one that others made, without a token
	open=$(curl -q -s --noproxy '*' -H "X-API-Key: $key" -H 'Content-Type: application/json' \
		-d '{"templateID": "base", "timeout": 300}' "http://127.0.0.1:$port/sandboxes" |
		$python -c 'import json, sys; print(json.load(sys.stdin)["sandboxID"])')
	run file url "$open" f
	refused "'E2B_SANDBOX_URL' is of all sandboxes, *" "'casemate file read' *" 'nothing to sign with'
	run file url --expires 1h "$open" f
	refused "an address of session '$open' has no end: *" '?*' 'nothing to sign an end with'
	run rm --files --force "$open"
	run rm --files --force s
	nothing_left
	finish
fi

begin_with 'copies'
run start s --network internet
mkdir -p tree/sub
echo one >tree/one
echo two >tree/sub/two
chmod 755 tree/one
ln -s one tree/link
give tree
start_files
run cp tree s:
expect_status 0 'cp: a tree'
run exec s -- sh -c 'cd tree && cat one sub/two && readlink link && test -x one'
is "$rc $(out)" $'0 one\ntwo\none' 'it is there'
run cp s:tree back
expect_status 0 'cp: a tree, back'
diff -r tree back
ok 'it is the same'
is "$(readlink back/link)$([ -x back/one ] && echo x)" onex 'with links and modes'
run cp tree s:as
run exec s -- sh -c 'ls as as/sub'
is "$rc $(out)" $'0 as:\nlink\none\nsub\n\nas/sub:\ntwo' 'cp: as another name'
run cp tree s:as
run cp tree/. s:as
run exec s -- ls as as/tree
is "$rc $(out)" $'0 as:\nlink\none\nsub\ntree\n\nas/tree:\nlink\none\nsub' 'cp: into what is there, and what is in it'
run cp s:tree/. back
is "$rc $(find back | sort | tr '\n' ' ')" '0 back back/link back/one back/sub back/sub/two ' 'cp: what is in it, onto itself'
run cp tree/one s:one/
expect_status 1 'cp: no such directory'
run cp tree s:tree/one
expect_status 1 'cp: a tree onto a file'
run cp tree/one s:/tmp
run exec s -- cat /tmp/one
is "$rc $(out)" '0 one' 'cp: a file, into a directory'
run exec s -- ln -s /etc/passwd tree/out
run cp s:tree out
is "$rc $([ -L out/out ] || echo not) $(cat out/one)" '1 not one' 'cp: a link that leads out stays'
like "$(err)" "*casemate: link '*out' is left out*--all-links*" 'cp: which one'
run cp --all-links s:tree all
is "$rc $(readlink all/out)" '0 /etc/passwd' 'cp: --all-links'
run start z --network internet
run cp s:tree z:
run exec z -- sh -c 'cat tree/sub/two; readlink tree/out'
is "$rc $(out)" $'0 two\n/etc/passwd' 'cp: from one session to another'
run rm --files --force z
run cp s:tree/one .
is "$rc $(cat one)" '0 one' 'cp: a file'
run cp s:tree/one -
is "$rc $(out)" '0 one' 'cp: to standard output'
echo input | run cp - s:in
run cp s:in -
is "$rc $(out)" '0 input' 'cp: from standard input'
run cp s:nobody .
expect_status 1 'cp: not there'
run cp nobody s:
expect_status 1 'cp: not here'
run cp a b
expect_status 125 'cp: no session'
run exec s -- sh -c 'mkdir big && head -c 3000000 /dev/zero >big/file'
fault '[{"match": "process.Process/Start", "fault": "slow", "rate": 50000}]'
start cp s:big .
until_true 10 test -d big
kill -INT "$bg"
wait_bg
is "$rc $(find big -type f)" '130 ' 'cp: INT, and no half of a file'
fault '[]'
rm -rf big
rm -rf back one tree out all
start_files
run rm --files --force s
nothing_left
finish

# --- templates, and what is not there -----------------------------------------------------------

begin_with 'templates'
run template build mine --base base --cpus 1 --memory 512M --run 'echo made >/home/user/made' \
	-- touch '/home/user/a b'
expect_status 0 'template build'
built=$(out)
[ -n "$built" ]
ok 'its name'
run template ls
like "$(out)" $'NAME*STATE\n*mine*' 'template ls'
run template ls --json
is "$(read_json 'any("mine" in x["name"] for x in j)')" True 'template ls --json'
run run "${temporary[@]}" --template "$built" -- sh -c 'cd /home/user; cat made; ls a*'
is "$rc $(out)" $'0 made\na b' 'a session of it'
run template build broken --run 'exit 3'
expect_status 125 'a build that fails'
run template rm mine
expect_status 0 'template rm'
run template rm mine
expect_status 125 'template rm: not there'
run template
expect_status 125 'template without a word'
nothing_left
finish

begin_with 'what is not there'
for command in prune df stats events setup checkout; do
	run $command s
	refused "provider 'e2b' has no '$command'" '?*' "$command"
done
finish

begin 'the service'
is "$(cat "$top/violations")" '' 'every request was as it should be'
stop_service
finish

done_testing
