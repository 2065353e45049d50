#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A checkout that is there already: what was made of it stays, what stands in its place is not opened,
# and nothing else is taken for it.
# shellcheck disable=SC2016
# SC2016: what single quotes keep from this shell is for the shell inside
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/lib-repo.sh"

# Who writes to a FIFO waits until somebody opens it to read: a file after that says that one did.
watch_fifo() { # FIFO
	(echo x >"$1" && : >"$work/opened") 2>/dev/null &
	watchers+=($!)
}
unwatch() {
	local pid
	for pid in "${watchers[@]}"; do
		kill "$pid" 2>/dev/null
		wait "$pid" 2>/dev/null
	done
	watchers=()
}

begin 'a trap in place of its git directory'
repository "$work/w"
mkdir "$work/out.d"
for name in HEAD config commondir index; do mkfifo "$work/out.d/$name"; done
give "$work/out.d"
start_files
watchers=()
watch_fifo "$work/out.d/config"
cat "$work/out.d/config" >/dev/null
until_true 5 test -e "$work/opened"
ok 'control: who opens one is seen'
unwatch
for git in rw pinned; do
	for trap in 'mkfifo .git' "ln -s $work/out.d .git" "echo gitdir: $work/out.d >.git" \
		"mkdir .git; ln -s $work/out.d/HEAD $work/out.d/config $work/out.d/index .git" \
		"mkdir .git; ln -s $work/out.d/commondir .git; echo ref: refs/heads/main >.git/HEAD; : >.git/config"; do
		run run --session t --git rw --repo . -- sh -c "mv .git .git.old; $trap"
		expect_status 0 "$git: $trap"
		run stop t
		[ $git = rw ] || sed -i 's/"git":"rw"/"git":"pinned"/' "$(cm inspect t | sed -n 's/^state *//p')/state.json"
		rm -f "$work/opened"
		for name in HEAD config commondir index; do watch_fifo "$work/out.d/$name"; done
		[ ! -p "$root/t/w/.git" ] || watch_fifo "$root/t/w/.git"
		limit=20 run run --session t --repo . -- cat file
		[ "$rc $(out)" = '0 two' ] || { [ "$rc" = 125 ] && err | grep -q '^hint: '; }
		ok "$git: the session starts, or says why not"
		run inspect t
		run ls
		[ ! -e "$work/opened" ]
		ok "$git: what it leads to is not opened"
		unwatch
		run rm --files t
		is "$rc $(ls "$work/out.d" | wc -l)" '0 4' "$git: nor removed"
	done
done
rm -f "$work/opened"
finish

done_testing
