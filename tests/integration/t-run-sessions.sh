#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Sessions in numbers: labels, ls, df, prune with work that would be lost, the cap of those that run,
# retention.
. "$(dirname "$0")/lib.sh"


as_caller() { "${as[@]}" "$@"; }
state=
state_dir() {
	state=$work/state/casemate
	[ "$identity" != root ] || state=/var/lib/casemate
}
ids() { cm ls -q "$@" 2>/dev/null | tr '\n' ' '; }
idle_is() { # GLOB: of session one
	# shellcheck disable=SC2053
	[[ "$(cm ls --format '{idle}' --filter name=one)" == $1 ]]
}
is_labelled() { [ -n "$(ids -a --filter "label=$1")" ]; } # KEY: is any session?
stop() { cm stop "$@" >/dev/null 2>&1; }
clear_all() {
	local all
	all=$(ids)
	# shellcheck disable=SC2086
	[ -z "$all" ] || cm rm --files --force $all >/dev/null 2>&1
}
# used ID AGE: the session, which is stopped, was made and used last so long ago
used() {
	local dir=$state/sessions/$1
	as_caller sed -i "s/\"created_ms\":[0-9]*/\"created_ms\":1000000000000/; s/,\"sum\":\"[^\"]*\"//" "$dir/state.json"
	as_caller rm -f "$dir/end"
	as_caller touch -d "-$2" "$dir/lock"
}
git_in='git -c user.email=a@example.org -c user.name=a -c init.defaultBranch=main'
make_source() {
	as_caller git init -q -b main "$work/w/src"
	as_caller sh -c "cd '$work/w/src' && echo one >file && git add file &&
		git -c user.email=a@example.org -c user.name=a commit -q -m one"
	start_files
}

begin 'labels and lists'
state_dir
run run --session one --label team=web -l note='two words' -- true
expect_status 0 'a session with labels'
run run --session two --label team=db -- true
stop two
run inspect one
like "$(out)" '*labels*team=web*note=two words*' 'inspect has them'
run ls --json --filter label=team=web
like "$(out)" '*"team": "web"*"note": "two words"*' 'so has the list'
is "$(ids --filter label=team)" 'one two ' 'both have the key'
is "$(ids --filter label=team=db)" 'two ' 'one the value'
is "$(ids --filter state=running)|$(ids --filter state=stopped)" 'one |two ' 'by state'
is "$(ids --filter name=t)|$(ids --filter 'name=*e')" 'two |one ' 'by name'
is "$(cm ls --format '{id}:{state}:{label.team}' | tr '\n' ' ')" 'one:running:web two:stopped:db ' \
	'in a format of the caller'"'"'s'
run ls --format '{{.ID}}'
refused "--format: '{{' begins no placeholder here" "for '{{.ID}}' write '{id}'" 'and none of docker'"'"'s'
run run --session one --label team=db -- true
refused "session 'one' was made with another --label: *" "leave --label out: *" \
	'what exists is not labelled anew'
run run --session one --label team=web -- true
expect_status 0 'but may be called by what it has'
run run --label 'a b=c' -- true
refused "--label 'a b=c': bad key" '*' 'a key has an alphabet'
run ls -s
like "$(out)" 'ID *STATE *LEVEL *AGE *IDLE *MEM *DISK *WORKSPACE/REPO*' 'all columns'
if has_groups; then
	start run --session one -- sleep 20
	until_true 10 idle_is active
	ok 'what runs something is active'
	like "$(cm ls --format '{mem}' --filter name=one)" '*[0-9] *B' 'and has memory'
	kill -TERM "$bg"
	wait_bg
	until_true 10 idle_is '[0-9]*'
	ok 'then it is idle'
fi
start run --label kind=temporary -- sleep 20
until_true 10 is_labelled kind
ok 'a temporary session is found by its label'
kill -TERM "$bg"
wait_bg
is "$(ids -a --filter label=kind)" '' 'and is gone with its command'
if need SCRIPT script 'a narrow terminal has fewer columns'; then
	narrow=$(as_caller script -qec "stty cols 40; '$casemate' ls" /dev/null </dev/null | tr -d '\r')
	like "$narrow" 'ID *STATE *AGE *WORKSPACE*' 'a narrow terminal has fewer columns'
	[[ $narrow != *MEM* && $narrow != *IDLE* ]]
	ok 'those that it can do without'
fi
clear_all
finish

begin 'many at once'
state_dir
cm run --session a -- true
cm run --session b -- true
run stop a nobody b
is "$rc $(ids --filter state=stopped)" '125 a b ' 'stop goes on after an error, and says so'
like "$(err)" "*session 'nobody' not found*" 'about whom'
run rm a nobody b
is "$rc $(ids)" '125 ' 'so does rm'
run rm --files --force a b
expect_status 0 'and their files go by name'
finish

begin 'disk'
state_dir
run run --session a -- sh -c 'head -c 3000000 /dev/zero >file; head -c 2000000 /dev/zero >~/file'
run df
like "$(out)" 'WHAT *COUNT *SIZE *RECLAIMABLE*
state *homes *1 *1.9 MiB* *directories *1 *2.9 MiB* *total *' 'by kind'
run df --json
[ "$(tr -d ' \n' <"$work/out" | grep -c '"directories":{"count":1,"bytes":3[0-9]*,"partial":false,"reclaimableCount":0,')" = 1 ]
ok 'nothing of what runs can go'
stop a
run df --json
[ "$(tr -d ' \n' <"$work/out" | grep -c '"homes":{"count":1,"bytes":2[0-9]*,"partial":false,"reclaimableCount":1,')" = 1 ]
ok 'of what does not, all'
# what a jail made of its directory leads nowhere
as_caller mkdir "$work/w/large"
as_caller sh -c "head -c 9000000 /dev/zero >'$work/w/large/file'"
run run --session a -- sh -c "rm file; ln -s '$work/w/large' link; ln -s '$work/w/large/file' file; mkfifo fifo"
stop a
run df --json
[ "$(tr -d ' \n' <"$work/out" | grep -c '"directories":{"count":1,"bytes":[0-9]\{1,6\},')" = 1 ]
ok 'no link is followed, and no FIFO opened'
is "$(cm ls --format '{disk}')" "$(cm ls --format '{disk}' --filter name=a)" 'the list has it, too'
run rm a
run df
like "$(out)" '*kept *1 *' 'a directory that was kept'
run rm --files --force a
as_caller rm -r "$work/w/large"
finish

begin 'prune'
state_dir
make_source
for id in clean dirty ahead stash detached tagged skipped called-bare gone; do
	cm run --session $id --quiet --git rw --repo src -- true
done
cm run --session dirty -- sh -c 'echo >>file; echo >new'
cm run --session ahead -- sh -c "echo two >file; $git_in commit -qam two"
cm run --session stash -- sh -c "echo two >file; $git_in stash -q"
cm run --session detached -- sh -c "git checkout -q --detach; echo two >file; $git_in commit -qam two"
cm run --session gone -- sh -c 'rm -rf .git'
cm run --session tagged -- sh -c "git checkout -q --detach; echo two >file; $git_in commit -qam two
	git tag two; git checkout -q main"
cm run --session skipped -- sh -c 'echo two >file; git update-index --skip-worktree file'
cm run --session called-bare -- sh -c 'echo two >file; git config core.bare true'
app="$git_in init -q app && cd app && echo 1 >x && git add x && $git_in commit -qm one"
cm run --session linked -- sh -c "$app && git update-ref refs/remotes/far/main HEAD &&
	git worktree add -q --detach ../a/b/c && echo >../a/b/c/new"
cm run --session pushed -- sh -c "git init -q --bare near.git && $app && git remote add near ../near.git &&
	git push -q near HEAD:refs/heads/main"
cm run --session inside -- sh -c "$app"
cm run --session plain -- sh -c 'echo 1 >x'
cm run --session hostile -- sh -c "$git_in init -q . && git config core.worktree /"
cm run --session elsewhere --workspace src -- true
cm run --session runs -- true
stay=(dirty stash detached tagged linked skipped called-bare pushed gone inside hostile)
stop clean ahead plain elsewhere "${stay[@]}"
for id in clean ahead plain elsewhere "${stay[@]}"; do
	used "$id" '2 days'
done
run prune
refused 'prune does not say which sessions are to go' 'give --older-than 7d, *' 'it wants a choice'
run prune --older-than 3 --files
refused "--older-than '3' has no unit" '*7d*' 'and units'
run prune --older-than 3d --files
expect_out '' 'nothing is so old'
run prune --older-than 1d --files --dry-run
is "$rc $(out | sort | tr '\n' ' ')" '0 clean elsewhere plain ' 'what would go'
is "$(ids | wc -w)" 16 'and does not yet'
run prune --older-than 1d --files
is "$rc $(out | sort | tr '\n' ' ')" '0 clean elsewhere plain ' 'it goes'
said=$(err)
like "$said" "*session 'dirty' stays: *dirty/src' has 1 uncommitted change, 1 untracked file
*" 'changes stay'
like "$said" "*session 'ahead' stays: *ahead/src' has 1 commit on no branch of a remote
*" 'a commit stays'
like "$said" "*session 'stash' stays: *stash/src' has 1 stash
*" 'a stash stays'
like "$said" "*session 'detached' stays: *detached/src' has 1 commit on no branch of a remote
*" 'one of no branch, too'
like "$said" "*session 'tagged' stays: *tagged/src' has 1 commit on no branch of a remote
*" 'one of a tag, too'
like "$said" "*session 'linked' stays: whether *linked/app' has work to lose is not known: *worktrees*" \
	'files of a linked worktree that lies deeper stay'
like "$said" "*session 'skipped' stays: whether *skipped/src' has work to lose is not known: *'file'*" \
	'files that git is not to look at stay'
like "$said" "*session 'called-bare' stays: whether *called-bare/src' has work to lose is not known: *" \
	'files of what is called bare stay'
like "$said" "*session 'pushed' stays: *pushed/near.git' has 1 commit on no branch of a remote
*" 'what was pushed to a directory beside it stays'
like "$said" "*session 'gone' stays: whether *gone/src' has work to lose is not known: *" \
	'a checkout without its git directory stays'
like "$said" "*session 'inside' stays: *inside/app' has 1 commit on no branch of a remote
*" 'a repository that was made inside stays'
like "$said" "*session 'hostile' stays: whether *" 'what is made to look empty stays'
[ ! -e "$root/clean" ] && [ ! -e "$root/plain" ] && [ -e "$root/dirty/src/new" ] &&
	[ -e "$work/w/src/file" ]
ok 'the directories with them, and nobody else'"'"'s'
is "$(ids --filter state=running)" 'runs ' 'what runs stays'
run prune --state stopped --keep-last 12 --files --force
expect_out '' 'the last ones used stay'
used ahead '3 days'
run prune --keep-last 11 --files --force --json
like "$(out)" '{"dryRun":false,"removed":\[{"id":"ahead",*,"files":true}],"kept":\[],"failed":\[],*' \
	'with force the work, too'
run prune --state stopped -q
is "$rc $(out | wc -l)" '0 11' 'without its files a session always goes'
[ -e "$root/dirty/src/new" ]
ok 'and they stay'
run rm --files dirty
refused "'$root/dirty/src' has 1 uncommitted change, 1 untracked file" \
	"session 'dirty' left it; --force removes that too*" 'rm --files does not remove it either'
run run --session live --repo src -- sh -c 'echo >new'
run rm --files live
refused "'$root/live/src' has 1 untracked file" "session 'live' is stopped, and stays; --force *" \
	'nor that of one that runs'
is "$(cm ls --format '{state}' --filter name=live) $(ls "$root/live/src/new")" \
	"stopped $root/live/src/new" 'which is stopped, and all there'
run rm --force live
refused '--force needs --files' '*' 'force alone means nothing'
run rm --files --force live
[ "$rc" = 0 ] && [ ! -e "$root/live" ]
ok 'with force it goes'
for id in "${stay[@]}"; do
	cm rm --files --force "$id"
done
clear_all
finish

if [ "$identity" != plain ]; then
	begin 'prune what root inside made'
	state_dir
	made="umask 077; $git_in init -q . && echo 1 >x"
	cm run --session work --user root -- sh -c "$made"
	cm run --session none --user root -- sh -c "$made && $git_in add x && $git_in commit -qm one &&
		git remote add origin . && git -c protocol.file.allow=always fetch -q && mkdir d && chmod 0 d"
	stop work none
	run prune --all --files
	is "$rc $(out)" '0 none' 'what has no work goes'
	like "$(err)" "*session 'work' stays: *work' has 1 untracked file
*" 'what has stays'
	clear_all
	finish
fi

begin 'the cap'
state_dir
allow "$state/(starts|pruned) f 600 "
run run --max-sessions 1 -- true
expect_status 0 'one may run'
cm run --session a -- true
run run --max-sessions 1 --result "$work/w/result" -- true
refused '1 session runs already, and no more may (--max-sessions)' "'casemate ls -a --filter state=running' *" \
	'and then no other'
is "$(json code "$work/w/result") $(json reason "$work/w/result")" 'too-many-sessions too-many-sessions' \
	'which has a name'
as_caller rm -f "$work/w/result"
run run --session b --max-sessions 1 -- true
is "$rc $(ids)" '125 a ' 'of a session nothing is left'
run run --session a --max-sessions 1 -- true
expect_status 0 'what runs takes commands'
run run --max-sessions 2 -- true
expect_status 0 'a second one may'
stop a
run run --session a --max-sessions 1 -- true
expect_status 0 'what stopped starts again'
stop a
# two at once at the limit: one passes, and the other is told
for i in 1 2 3 4 5 6; do
	cm run --session "p$i" --max-sessions 3 -- true >/dev/null 2>"$work/err.$i" &
done
for i in 1 2 3 4 5 6; do
	cm run --max-sessions 3 -- sleep 3 >/dev/null 2>"$work/err.t$i" &
done
wait_jobs
most=$(ids -a --filter state=running | wc -w)
# it may be that none of those that stay was among the first three
[ "$most" -le 3 ] && [ "$(grep -L casemate: "$work"/err.* | wc -l)" -ge 3 ] && [ "$(ids | wc -w)" -le 4 ]
ok 'many at once: no more than may'
is "$(cat "$work"/err.* | grep -c 'sessions run already')" \
	"$(grep -l casemate: "$work"/err.* | wc -l)" 'and each of the others is told'
rm -f "$work"/err.*
clear_all
as_caller mkdir "$work/home/.config" "$work/home/.config/casemate"
as_caller sh -c "echo '{\"max-sessions\": 1}' >'$work/home/.config/casemate/config.json'"
start_files
cm run --session a -- true
run run -- true
refused '1 session runs already*' '*' 'from the configuration'
clear_all
finish

begin 'retention'
state_dir
allow "$state/(starts|pruned) f 600 "
as_caller mkdir "$work/home/.config" "$work/home/.config/casemate"
as_caller sh -c "echo '{\"retention\": {\"older-than\": \"7d\"}}' >'$work/home/.config/casemate/config.json'"
start_files
for id in a b c; do
	cm run --session $id --retention none -- sh -c ': >file'
	stop $id
done
used a '9 days'
used b '8 days'
run run -- true
is "$rc $(ids)" '0 c ' 'a start forgets what is old'
[ -e "$root/a/file" ]
ok 'and leaves its files'
used c '9 days'
run run -- true
is "$rc $(ids)" '0 c ' 'once an hour'
touch -d '-2 hours' "$state/pruned"
run run --session c -- true
is "$rc $(ids)" '0 c ' 'never the one that is started'
stop c
used c '9 days'
touch -d '-2 hours' "$state/pruned"
run run --retention none -- true
is "$rc $(ids)" '0 c ' 'nor where it is switched off'
run run -- true
is "$rc $(ids)" '0 ' 'and else at the next start'
cm rm --files --force a
cm rm --files --force b
cm rm --files --force c
finish

# as it is looked at by git: takes longer than a start gives to all of them
much_work() { # ID
	as_caller git init -q -b main "$root/$1"
	as_caller mkdir "$root/$1/d"
	as_caller sh -c "cd '$root/$1/d' && seq 30000 | xargs touch"
}
stamp_age() { echo $(($(date +%s) - $(stat -c %Y "$state/pruned"))); }

begin 'retention with files, and work that is nowhere else'
state_dir
allow "$state/(starts|pruned) f 600 "
as_caller mkdir -p "$work/home/.config/casemate"
as_caller sh -c "echo '{\"retention\": {\"older-than\": \"7d\", \"files\": true}}' >'$work/home/.config/casemate/config.json'"
start_files
for id in a b c; do
	cm run --session $id --retention none -- true
	stop $id
done
much_work a
much_work b
used a '12 days'
used b '11 days'
used c '10 days'
as_caller touch -c -d '-2 hours' "$state/pruned"
run run -- true
is "$rc $(ids -a | tr -d 'c ')" '0 ab' 'is kept'
[ "$(stamp_age)" -lt 1800 ]
ok 'and is not looked at by each start'
for _ in 1 2; do
	as_caller touch -d '-2 hours' "$state/pruned"
	run run -- true
done
is "$rc $(ids)" '0 a b ' 'what is behind it gets its turn'
[ -e "$root/a/d/1" ] && [ ! -e "$root/c" ]
ok 'with its files'
clear_all
finish

begin 'how long a session lives'
state_dir
run run --idle-timeout 30m -- true
refused '--idle-timeout needs --session' 'a temporary session ends with its command; --timeout *' \
	'a temporary one ends by itself'
run run --session a --idle-timeout 30m --lifetime 8h -- true
expect_status 0 'a lasting one'
run inspect --plan a
like "$(out)" '*idle 1800000 ms
lifetime 28800000 ms*' 'has it in its plan'
run run --session a --idle-timeout 40m -- true
refused "session 'a' was made with another --idle-timeout: '30m'" '*' 'and keeps it'
clear_all
finish

done_testing
