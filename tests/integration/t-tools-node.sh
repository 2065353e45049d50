#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# node and npm in a jail: an addon is compiled, servers answer on localhost, what is installed
# globally goes to the private home, and what needs a network says so at once.
# shellcheck disable=SC2016
# SC2016: what single quotes keep from this shell is for node and the shell inside
. "$(dirname "${BASH_SOURCE[0]}")/t-tools-common.sh"
limit=120

begin 'npm ci'
if need NODE npm 'a native addon'; then
	npm_settings
	# small, and without anything compiled in the package
	put package.json <<-'JSON'
		{ "name": "app", "version": "1.0.0",
		  "dependencies": { "is-number": "7.0.0", "unix-dgram": "2.0.6" } }
	JSON
	give "$work/w"
	start_files
	allow '/w/(node_modules|package|\.cache)|/home/\.npm'
	if works REGISTRY 'the registry answers' --network host -- \
		npm install --package-lock-only --no-audit --cache .cache; then
		works ADDON 'a native addon is compiled' --network host -- \
			npm ci --no-audit --cache .cache
		works ADDON 'and loaded without a network' -- node -e '
			const { createSocket } = require("unix-dgram");
			const s = createSocket("unix_dgram", m => { console.log(`got ${m}`); s.close(); });
			s.bind("/tmp/s");
			const c = createSocket("unix_dgram", () => {});
			c.send(Buffer.from("it"), 0, 2, "/tmp/s", () => c.close());'
		has 'got it' 'and works'
		if [ -d node_modules ]; then
			is "$(find node_modules ! -uid "$(stat -c %u node_modules)" | wc -l)" 0 \
				'the files belong to whom the workspace belongs to'
		fi
		rm -rf node_modules
		run run -- npm ci --ignore-scripts --cache .cache
		expect_status 0 'with a full cache it needs no network'
	fi
fi
finish

begin 'no network'
if need NODE npm 'npm without a network'; then
	npm_settings
	start_files
	# the first reads npm's own files from the disk
	run run -- npm --version
	since=$(now_ms)
	run run -- npm view is-number
	ms=$(($(now_ms) - since))
	expect_status 1 'npm fails'
	[ $ms -lt 10000 ]
	ok "at once and not after a minute ($ms ms)"
	has 'npm error *ENOTFOUND*' 'says that the name was not found'
	has 'note: this session has no network; * refused' 'and the session, that it has none'
	has 'hint: --network *' 'and what to do'
	since=$(now_ms)
	run run -- sh -c 'npm install is-number || npx --yes no-such-program-of-ours'
	ms=$(($(now_ms) - since))
	[ "$rc" != 0 ] && [ $ms -lt 20000 ]
	ok "so do install and npx ($ms ms)"
	allow '/w/package'
fi
finish

begin 'node --test'
if need NODE node 'a server on localhost'; then
	put server.test.js <<-'JS'
		const test = require('node:test');
		const assert = require('node:assert');
		const http = require('node:http');
		const { fork } = require('node:child_process');
		const { Worker } = require('node:worker_threads');
		const dns = require('node:dns').promises;

		for (const host of ['localhost', '127.0.0.1', '::1']) {
			test(`a server on ${host}`, async () => {
				const server = http.createServer((q, a) => a.end('answer'));
				await new Promise(done => server.listen(0, host, done));
				const name = host.includes(':') ? `[${host}]` : host;
				const r = await fetch(`http://${name}:${server.address().port}/`);
				assert.equal(await r.text(), 'answer');
				server.close();
				server.closeAllConnections();
			});
		}
		test('a socket in a directory', async () => {
			const server = http.createServer((q, a) => a.end('path'));
			await new Promise(done => server.listen('/tmp/http.sock', done));
			const text = await new Promise(done => http.get({ socketPath: '/tmp/http.sock' },
				a => a.on('data', d => done(String(d)))));
			assert.equal(text, 'path');
			server.close();
		});
		test('a child with a channel', async () => {
			const child = fork('-', { execArgv: ['-e', 'process.send(process.pid)'] });
			assert.equal(await new Promise(done => child.on('message', done)), child.pid);
		});
		test('a thread', async () => {
			const worker = new Worker('require("worker_threads").parentPort.postMessage(7)',
				{ eval: true });
			assert.equal(await new Promise(done => worker.on('message', done)), 7);
		});
		test('a name that does not exist', async () => {
			await assert.rejects(dns.lookup('www.example.org'), { code: 'ENOTFOUND' });
		});
		test('a watched file', async () => {
			const fs = require('node:fs');
			fs.writeFileSync('/tmp/watched', '');
			const seen = new Promise(done => {
				const watcher = fs.watch('/tmp/watched', () => { watcher.close(); done(true); });
			});
			fs.writeFileSync('/tmp/watched', 'x');
			assert.equal(await seen, true);
		});
	JS
	give "$work/w"
	start_files
	run run -- node --test
	expect_status 0 'passes'
	has '* pass 8' 'all of it'
	run run -- node -p '[process.cwd(), os.homedir(), os.userInfo().homedir, os.tmpdir()].join()'
	expect_out "$work/w,$HOME,$HOME,/tmp" 'node and passwd agree on who and where'
fi
finish

begin 'npm -g'
if need NODE npm 'into the private home'; then
	put tool/package.json <<-'JSON'
		{ "name": "cm-tool", "version": "1.0.0", "bin": { "cm-tool": "tool.js" } }
	JSON
	put tool/tool.js <<-'JS'
		#!/usr/bin/env node
		console.log('from ' + __filename);
	JS
	chmod 755 tool/tool.js
	give "$work/w"
	start_files
	run run -- sh -c 'npm pack --silent --pack-destination /tmp ./tool &&
		npm install -g /tmp/cm-tool-1.0.0.tgz && cm-tool && command -v cm-tool'
	expect_status 0 'a package is installed'
	has "from $HOME/.npm-global/lib/node_modules/cm-tool/tool.js" 'where its user can write'
	has "$HOME/.npm-global/bin/cm-tool" 'and is found on PATH'
fi
finish

begin 'limits'
if need NODE node 'memory'; then
	if has_groups; then
		run run --memory 512M -- node -p 'process.constrainedMemory()'
		expect_out 536870912 'node sees the memory limit'
		run run --memory 256M -- node -e '
			const { heap_size_limit } = require("v8").getHeapStatistics();
			console.log(heap_size_limit < 400 * 1024 * 1024)'
		expect_out true 'and sizes its heap by it'
	else
		skip CGROUP 'no limits for this user here' 'node sees the memory limit'
	fi
fi
finish

done_testing
