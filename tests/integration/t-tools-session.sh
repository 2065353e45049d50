#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A long session, as an agent has one: some 500 commands on an npm project and a C project, each
# answer checked.  In the middle a client and then the keeper are killed, and the work goes on.
# shellcheck disable=SC2016
# SC2016: what single quotes keep from this shell is for the shell inside
. "$(dirname "${BASH_SOURCE[0]}")/t-tools-common.sh"
limit=120
rounds=18

for tool in node npm git curl make cc; do
	need TOOLS $tool 'a long session' || done_testing
done

# --- the projects -------------------------------------------------------------------------------

# Those of Debian and of the registry where they are to be had, else small ones that do the same.
c_project() {
	if fetch_source && mkdir c && for archive in hello_*.orig.tar.[gx]z; do
		tar -xf "$archive" -C c --strip-components=1
	done; then
		rm -f hello_*
		return
	fi
	echo '# no source package can be fetched: a small one takes its place'
	put c/src/hello.c <<-'C'
		#include <stdio.h>

		#define _(text) text

		int main(void)
		{
			puts(_("Hello, world!"));
			return 0;
		}
	C
	put c/configure <<-'SH'
		#!/bin/sh
		printf '%s\n' 'hello: src/hello.c' '	cc -o $@ src/hello.c' \
			'check: hello' '	./hello | grep -qx "Hello, world!"' >Makefile
	SH
	chmod 755 c/configure
}

npm_project() {
	put app/package.json <<-'JSON'
		{ "name": "app", "version": "1.0.0", "private": true,
		  "dependencies": { "express": "4.21.2" } }
	JSON
	give "$work/w"
	if (cd app && cm run --network host -- npm install --package-lock-only --no-audit \
		--cache /tmp/cache) >"$work/out" 2>"$work/err"; then
		has_express=yes
	else
		echo '# no registry answers: the server stands on node alone'
		has_express=no
		sed -i '/dependencies/d; s/true,/true }/' app/package.json
		(cd app && as_user_npm install --package-lock-only --offline) >"$work/out" 2>&1
	fi
	put app/src/version.js <<<"module.exports = 'r0';"
	put app/src/answer.js <<-'JS'
		const version = require('./version.js');
		module.exports = path => `${version} ${path.slice(1)}`;
	JS
	put app/build.js <<-'JS'
		const fs = require('fs');
		const part = name => fs.readFileSync(`src/${name}.js`, 'utf8');
		fs.mkdirSync('dist', { recursive: true });
		fs.writeFileSync('dist/bundle.js', part('version').replace('module.exports =', 'const version =') +
			part('answer').replace(/^const.*\n/, ''));
		console.log(`built ${require('./src/version.js')}`);
	JS
	put app/app.test.js <<-'JS'
		const test = require('node:test');
		const assert = require('node:assert');
		test('the bundle has the version of its source', () => {
			assert.equal(require('./dist/bundle.js')('/x'), `${require('./src/version.js')} x`);
		});
	JS
	put app/server.js <<-'JS'
		const answer = require('./dist/bundle.js');
		const handle = (q, a) => { console.log(`GET ${q.url}`); a.end(answer(q.url)); };
		let app = require('http').createServer(handle);
		try {
			const express = require('express')();
			express.use(handle);
			app = express;
		} catch (error) {
			if (error.code !== 'MODULE_NOT_FOUND')
				throw error;
		}
		app.listen(8080, 'localhost', () => console.log('listening'));
	JS
}

as_user_npm() { "${as[@]}" npm "$@"; }

# --- a command and its answer -------------------------------------------------------------------

n=0
# step KIND STATUS GLOB ARGUMENT...: casemate has to end so, and to print what matches
step() {
	local kind=$1 want=$2 glob=$3 since
	shift 3
	since=$(now_ms)
	run "$@"
	echo "$kind $(($(now_ms) - since))" >>"$work/times"
	n=$((n + 1))
	# shellcheck disable=SC2053
	[[ $rc == $want && $(out) == $glob ]] && return
	printf '%s (round %s): %s\n  -> %s, wanted %s\n  %s\n  wanted %s\n  %s\n' "$kind" "$round" "$*" \
		"$rc" "$want" "$(head -c 300 "$work/out")" "$glob" "$(head -c 300 "$work/err")" >>"$work/wrong"
}
in_app() { # KIND STATUS GLOB COMMAND...
	step "$1" "$2" "$3" exec agent -w "$work/w/app" -- "${@:4}"
}
in_c() { step "$1" "$2" "$3" exec agent -w "$work/w/c" -- "${@:4}"; }

answers() { cm exec agent -- curl -s -o /dev/null http://localhost:8080/; }
serve() {
	step server 0 '[0-9]*.[0-9]*' exec agent -d -w "$work/w/app" -- node server.js
	server=$(out)
	until_true 20 answers || echo "server (round $round): does not answer" >>"$work/wrong"
}
logs_show() { cm logs agent "$1" | grep -qF -- "$2"; } # EXEC TEXT

look() {
	in_app look 0 "module.exports = 'r$((round - 1))';" cat src/version.js
	in_app look 0 '1:const version*' grep -n version.js src/answer.js
	in_app look 0 "*package.json*server.js*src*" ls
	step look 0 "$round" exec agent -w "$work/w" -c 'git log --oneline | wc -l'
	step look 0 '' exec agent -w "$work/w" -- git status --short
	in_c look 0 '*_("Hello, *!")*' grep -n 'Hello, ' src/hello.c
}
edit() {
	echo "module.exports = 'r$round';" |
		step edit 0 '' exec agent -i -w "$work/w/app" -- sh -c 'cat >src/version.js'
	in_c edit 0 '' sed -i "s/_(\"Hello, [a-z0-9]*!\")/_(\"Hello, r$round!\")/" src/hello.c
	step edit 0 '*app/src/version.js*2 files changed*' exec agent -w "$work/w" -- \
		git -c user.name=A -c user.email=a@example.org diff --stat
	step edit 0 '' exec agent -w "$work/w" -- \
		git -c user.name=A -c user.email=a@example.org commit -qam "round $round"
}
build() {
	in_app build 0 "built r$round" node build.js
	in_c build 0 '*' make -s hello
}
check() {
	in_app check 0 '*pass 1*fail 0*' node --test
	in_c check 0 "Hello, r$round!" ./hello
	in_app check 1 '' sh -c 'test -e no-such-file'
}
ask() {
	local i
	for i in 1 2 3 4; do
		step ask 0 "r$round $i" exec agent -- curl -s "http://localhost:8080/$i"
	done
}
# "listening" and "GET /" are 10 and 6 bytes with their line ends, "GET /1" is 7
read_logs() {
	step logs 0 $'listening\nGET /*GET /1\nGET /2\nGET /3\nGET /4' logs agent "$server"
	local bytes
	bytes=$(wc -c <"$work/out")
	step logs 0 $'GET /3\nGET /4' logs agent "$server" --offset $((bytes - 14))
	step logs 0 'GET /4' logs agent "$server" --tail 1
}
prompt() {
	step prompt 0 '[0-9]*.[0-9]*' exec agent -d -i -- sh -c 'printf "name? "; read -r x; echo "hello $x"'
	local id
	id=$(out)
	until_true 10 logs_show "$id" 'name? ' || echo "prompt (round $round): is not shown" >>"$work/wrong"
	echo "r$round" | step prompt 0 '' stdin agent "$id"
	step prompt 0 '' wait agent "$id"
	step prompt 0 "name? hello r$round" logs agent "$id"
}
end_server() {
	step list 0 "*\"$server\"*" ps agent --json
	step kill 0 '*' kill agent "$server"
	step kill '1[34][37]' '' wait agent "$server"
	step kill 124 '' exec agent --timeout 100ms -- sleep 60
}

# The client is gone in the middle: the command goes on.
kill_client() {
	start exec agent -- sh -c 'echo begun; sleep 1; echo whole >~/unwatched'
	until_true 10 grep -q begun "$work/out"
	kill -KILL "$bg"
	wait_bg
	finished() { cm exec agent -- grep -q whole "$HOME/unwatched"; }
	until_true 10 finished || echo 'the command of a killed client did not go on' >>"$work/wrong"
}

# The keeper is gone in the middle: so is what ran, and nothing else.
kill_keeper() {
	local pid
	pid=$(cm events agent --type session.started | tail -n 1 | sed -n 's/.*"keeperPid":\([0-9]*\).*/\1/p')
	serve
	start exec agent -- sh -c 'echo begun; exec sleep 60'
	until_true 10 grep -q begun "$work/out"
	kill -KILL "$pid"
	wait_bg
	[ "$rc" != 0 ] || echo 'a command of a killed keeper ended well' >>"$work/wrong"
	step crash 0 whole exec agent -- cat "$HOME/unwatched"
	step crash 7 '' exec agent -- curl -s http://localhost:8080/
	step crash 0 "listening*" logs agent "$server"
	step crash 125 '' wait agent "$server"
}

begin 'a long session'
git=("${as[@]}" git -C "$work/w" -c user.name=A -c user.email=a@example.org)
npm_settings
c_project
npm_project
printf '%s\n' node_modules dist 'c/*' '!c/src' '*.o' .deps .dirstamp package-lock.json >.gitignore
give "$work/w"
"${git[@]}" init -q && "${git[@]}" add -A && "${git[@]}" commit -qm start
start_files
allow '/w(/| )|/home/\.npm'
round=0
since=$(now_ms)
run start agent --workspace "$work/w" --git rw --setup-network host \
	--setup 'cd app && npm ci --no-audit --cache /tmp/cache' --setup 'cd c && ./configure --quiet --disable-nls && make -s'
expect_status 0 "both projects are set up ($(($(now_ms) - since)) ms, express: $has_express)"
in_c check 0 '*' make -s check
for round in $(seq $rounds); do
	look
	edit
	build
	check
	serve
	ask
	read_logs
	prompt
	end_server
	[ "$round" != $((rounds / 3)) ] || kill_client
	[ "$round" != $((rounds * 2 / 3)) ] || kill_keeper
done
in_c edit 0 '' sed -i 's/_("Hello, [a-z0-9]*!")/_("Hello, world!")/' src/hello.c
in_c build 0 '*' make -s
in_c check 0 '*' make -s check
[ "$n" -ge 500 ]
ok "$n commands"
is "$(cat "$work/wrong" 2>/dev/null)" '' 'and each answer is right'
is "$("${git[@]}" log --oneline | wc -l)" $((rounds + 1)) 'the commits are there'
sort -k1,1 -k2,2n "$work/times" | awk '
	function put() { printf "%s%s %d: %d/%d/%d ms", sep, kind, n, ms[1], ms[int((n + 1) / 2)], ms[n]; sep = ", " }
	BEGIN { printf "# number, fastest/median/slowest: " }
	$1 != kind { if (n) put(); kind = $1; n = 0 }
	{ ms[++n] = $2 }
	END { put(); print "" }'
run rm --files --force agent
rm -rf "$work/w/app" "$work/w/c"
finish

done_testing
