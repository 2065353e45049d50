# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154
# The caller's side: what a jail's files, names and output do to the commands that meet them.

session_files='/state/|/(run|var/lib)/casemate|/runtime/|/home/'

case_users() {
	local user
	run run --user user -- id -u
	is "$(out)" 1000 'the control: a user that there is'
	for user in 1000x '' -1 4294967296 0 1000 'root ' ' root' Root root:root 0x0 $'user\nroot'; do
		run run --user "$user" -- sh -c 'id -u; touch ran'
		is "$rc:$(out)" 125: "'${user//$'\n'/ }' is no user"
	done
	[ ! -e "$work/w/ran" ]
	ok 'nothing ran'
}

# Root inside has what package installation needs, and neither the host's power nor set-id bits.
case_root_inside() {
	if [ "$identity" = plain ]; then
		run run --user root -- true
		is "$rc" 125 'without subordinate ids there is no root inside'
		return
	fi
	use setid syscalls try
	cm run --user root -- ./probe_setid >"$work/out"
	is "$(grep -c 'refused EPERM' "$work/out"):$(grep -c reached "$work/out")" 13:0 \
		'no set-id file can be made'
	cm run --user root -- ./probe_syscalls >"$work/out"
	is "$(grep -c reached "$work/out")" 0 'no system call is open that the agent has not'
	is "$(grep -c refused "$work/out")" 43 'all were tried'
	cm run --user root -- ./probe_try write:/proc/sys/kernel/core_pattern read:/proc/1/mem \
		read:/proc/1/root/etc/shadow create:/usr/bin/evil create:/new >"$work/out"
	is "$(out)" 'write /proc/sys/kernel/core_pattern: refused EACCES
read /proc/1/mem: refused EACCES
read /proc/1/root/etc/shadow: refused EACCES
create /usr/bin/evil: refused EROFS
create /new: refused EROFS' 'nothing of the system can be written'
	cm run --user root -- sh -c 'touch made; chown 33:33 made; mkdir -p deep/er; touch deep/er/file'
	is "$(find "$work/w" -uid 0 -name made)" '' 'what it makes is not the host'"'"'s root'"'"'s'
	is "$(find "$work/w" -perm /6000)" '' 'nor set-id'
	rm -rf "$work/w/made" "$work/w/deep"
	allow '/w/'
}

# Sequences that drive a terminal, where text of a jail or a tree becomes text of ours.
case_terminal_text() {
	local bad=$'\033]52;c;ZXZpbA==\a\033[2J'
	run run --json -- printf '%s' "$bad"
	! grep -q $'\033' "$work/out"
	ok 'JSON has no control byte'
	as_caller printf '%s' "$bad" | grep -q $'\033'
	ok 'the control has one'
	run run -- "./no-such$bad"
	is "$rc" 127 'a command that is not there'
	! grep -q $'\033' "$work/err"
	ok 'the message has no control byte'
	mkdir "$work/w/$bad"
	give "$work/w"
	cd "$work/w/$bad" || return
	echo 'gitdir: nowhere' >.git
	run run --workdir "$work/nowhere$bad" -- true
	! grep -q $'\033' "$work/err"
	ok 'nor a message about a directory'
	run run -- sh -c 'exit 3'
	! grep -q $'\033' "$work/err"
	ok 'nor a note about the tree'
	cd "$work/w" || return
	rm -r "${work:?}/w/$bad"
}

# What a jail writes about sessions is not believed.
case_fake_session() {
	local state
	# shellcheck disable=SC2016
	run run --session real -- sh -c 'mkdir -p .mastra-sandbox ~/.local/state/casemate/sessions/evil
		echo done >.mastra-sandbox/setup
		for f in state.json keeper.lock end.json socket; do
			echo "{\"id\":\"evil\",\"workspace\":\"/etc\"}" >$f
			cp $f ~/.local/state/casemate/sessions/evil/
		done'
	is "$rc" 0 'a session writes what looks like one'
	run ls
	! grep -q evil "$work/out"
	ok 'it is not listed'
	run inspect evil
	[ "$rc" != 0 ]
	ok 'it cannot be looked at'
	# shellcheck disable=SC2016
	run run --session real -- sh -c 'pwd; cat state.json'
	like "$(out)" "$root/real*" 'the real one is what it was'
	case $identity in
	root) state=/var/lib/casemate ;;
	*) state=$work/state/casemate ;;
	esac
	is "$(find "$state" -maxdepth 2 -name 'evil*')" '' 'nothing of it is in the state directory'
	run rm --files real
	allow "$session_files"
}

# Removal as the caller, of a tree that an agent made.
case_removal() {
	mkdir "$work/outside"
	echo keep >"$work/outside/file"
	mkdir "$work/mounted"
	echo keep >"$work/mounted/file"
	give "$work/outside" "$work/mounted"
	run run --session gone -- sh -c "ln -s $work/outside link; ln -s $work/outside/file filelink
		ln -s / top; mkdir -p a/b/c sub; ln -s ../../.. a/b/up; chmod 0 a/b; mkfifo f
		mkdir d; i=0; while [ \$i -lt 50 ]; do mkdir d/d; cd d; i=\$((i + 1)); done"
	is "$rc" 0 'a session with links, depth and modes'
	if ! is_user; then
		mount --bind "$work/mounted" "$root/gone/sub"
		run rm --files gone
		is "$(cat "$work/mounted/file")" keep 'what is mounted there is not emptied'
		umount "$root/gone/sub"
	fi
	run rm --files gone
	[ ! -e "$root/gone" ]
	ok 'the session directory is gone'
	is "$(cat "$work/outside/file")" keep 'what links lead to is there'
	allow "$session_files"
}

# A link that changes places with a directory while the tree is removed.
case_removal_race() {
	local racer
	mkdir "$work/outside"
	: >"$work/outside/file"
	give "$work/outside"
	for _ in 1 2 3 4 5 6 7 8; do
		run run --session race -- sh -c "mkdir -p t/x t/y; ln -s $work/outside t/link
			i=0; while [ \$i -lt 60 ]; do mkdir t/x/\$i; : >t/x/\$i/file; i=\$((i + 1)); done"
		"${as[@]}" "$top/probes/probe_flip" "$root/race/t/x" "$root/race/t/link" 2>/dev/null &
		racer=$!
		run rm --files race
		kill $racer 2>/dev/null
		wait $racer 2>/dev/null
		[ -e "$work/outside/file" ] || break
		run rm --files race
	done
	[ -e "$work/outside/file" ]
	ok 'nothing outside is removed'
	allow "$session_files"
}

# A file in the repository may only tighten.
case_policy() {
	local file
	for file in '{"network":"host"}' '{"volume":["/etc:/data"]}' '{"user":"root"}' \
		'{"git":"rw"}' '{"memory":"unlimited"}' '{"workspace":"/srv"}'; do
		echo "$file" >"$work/w/.casemate.json"
		give "$work/w"
		run run -- sh -c 'id -u; ls /data; cat /proc/net/dev | grep -v lo: | wc -l'
		[ "$rc" = 125 ] || [ "$(out)" = $'1000\n2' ]
		ok "$file widens nothing"
	done
	rm "$work/w/.casemate.json"
}
