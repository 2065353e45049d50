#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Bad input from end to end: exit 125, an error that says what, a hint that says how on, and nothing
# changed anywhere.
# shellcheck disable=SC2016
# SC2016: what single quotes keep from this shell is for the shell inside
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# bad NAME ARGUMENT OF CASEMATE...: refused so
bad() {
	local name=$1 before
	shift
	before=$(list_files)
	run "$@"
	[ "$rc" = 125 ] && [ ! -s "$work/out" ]
	ok "$name: refused (status $rc)"
	[ "$(grep -c '^casemate: [^A-Z]' "$work/err")" = 1 ] && ! grep -q '[.]$' <(grep '^casemate: ' "$work/err")
	ok "$name: one error, in small letters and without a full stop"
	grep -q '^hint: ' "$work/err"
	ok "$name: a hint"
	is "$(comm -3 <(echo "$before") <(list_files) | grep -vE "$lasting")" '' "$name: nothing changed"
}

begin 'ids'
n=0
for id in '' . .. .hidden -dash a/b ../x $'a\nb' 'a b' "$(printf 'a%.0s' $(seq 129))" 'ä' 'a:b' '*'; do
	n=$((n + 1))
	bad "id $n" run --session="$id" -- true
done
run run --session "$(printf 'a%.0s' $(seq 128))" -- true
expect_status 0 'control: 128 characters are fine'
run rm --files "$(printf 'a%.0s' $(seq 128))"
for command in stop rm inspect; do
	bad "$command of what is not there" $command nothing
	bad "$command of what is no id" $command ../../etc
done
finish

begin roots
mkdir "$work/real" "$work/closed"
ln -s "$work/real" "$work/link"
: >"$work/file"
give "$work/real" "$work/file"
chmod 555 "$work/closed"
start_files
bad 'a relative one' run --root relative --session x -- true
bad 'a file' run --root "$work/file" --session x -- true
bad 'below a file' run --root "$work/file/x" --session x -- true
[ "$identity" = root ] || bad 'one that cannot be written' run --root "$work/closed/x" --session x -- true
bad 'in /proc' run --root /proc/x --session x -- true
mkdir "$work/real/x" && ln -s "$work/w" "$work/real/y"
: >"$work/real/z"
give "$work/real"
start_files
bad 'a symbolic link where the session directory is expected' run --root "$work/real" --session y -- true
bad 'a file where it is expected' run --root "$work/real" --session z -- true
finish

begin 'state directories'
if is_root && [ "$identity" = root ]; then
	state=/var/lib/casemate runtime=/run/casemate
else
	state=$XDG_STATE_HOME/casemate runtime=$XDG_RUNTIME_DIR/casemate
	for dir in state runtime; do
		: >"$work/$dir/casemate"
		start_files
		bad "a file for the $dir directory" run --session x -- true
		rm "$work/$dir/casemate"
		ln -s "$work/w" "$work/$dir/casemate"
		start_files
		bad "a link for the $dir directory" run --session x -- true
		rm "$work/$dir/casemate"
		mkdir -m 777 "$work/$dir/casemate"
		chmod 777 "$work/$dir/casemate"
		give "$work/$dir/casemate"
		start_files
		bad "a $dir directory that others can write" run --session x -- true
		rmdir "$work/$dir/casemate"
	done
	XDG_STATE_HOME=$work/unwritable
	mkdir -m 555 "$work/unwritable"
	is_root && chown 0:0 "$work/unwritable"
	start_files
	bad 'one that cannot be written' run --session x -- true
	XDG_STATE_HOME=$work/state
fi
start_files
run run --session x -- true
expect_status 0 'control: as they should be'
run stop x
echo '{' >"$state/sessions/x/state.json"
run run --session x -- true
[ "$rc" = 125 ] && grep -q '^hint: ' "$work/err"
ok 'a damaged state file'
run ls
expect_status 0 'ls goes on'
printf '{"v": 99999, "version": 99999}' >"$state/sessions/x/state.json"
run run --session x -- true
[ "$rc" = 125 ] && grep -q '^hint: ' "$work/err"
ok 'one of a newer version'
run rm --files x
expect_status 0 'rm takes it away'
rm -rf "${root:?}/x"
[ -d "$runtime" ]
ok 'the runtime directory is there'
finish

begin 'root file systems'
mkdir -p "$work/fs/usr/bin" "$work/fs/etc" "$work/fs/tmp" "$work/none"
cp /bin/busybox "$work/fs/usr/bin/" 2>/dev/null
for name in bin lib lib64 sbin; do
	[ ! -e "/$name" ] || ln -s "usr/$name" "$work/fs/$name"
done
start_files
bad 'one that is not there' run --rootfs "$work/not" -- true
: >"$work/file" && start_files
bad 'one that is a file' run --rootfs "$work/file" -- true
bad 'one that is relative' run --rootfs not/there -- true
ln -s /etc "$work/fs/proc"
ln -s "$work/aim" "$work/fs/dev"
start_files
run run --rootfs "$work/fs" --no-workspace -- /usr/bin/busybox sh -c '[ -d /proc/self ] && [ -c /dev/null ] && echo own'
if [ "$rc" = 0 ]; then
	is "$(out)" own 'one whose /proc and /dev are links has ours all the same'
else
	is "$rc" 125 'one whose /proc is a link is refused'
fi
[ ! -e "$work/aim" ]
ok 'and nothing is made where they lead'
finish

begin 'helper programs'
helpers=$work/helpers/bin
mkdir -p "$helpers"
was=$casemate
setup_helpers() {
	rm -rf "$helpers"
	cp -r "$top/bin" "$helpers"
	casemate=$helpers/casemate
}
setup_helpers
rm "$helpers/casemate-keeper"
start_files
bad 'no keeper' run -- true
setup_helpers
chmod 644 "$helpers/casemate-keeper"
bad 'a keeper that cannot be executed' run -- true
setup_helpers
printf 'not a program' >"$helpers/casemate-keeper"
bad 'a keeper that is no program' run -- true
setup_helpers
printf '#!/bin/sh\nexit 0\n' >"$helpers/casemate-keeper"
bad 'a keeper that says nothing' run -- true
printf '#!/bin/sh\nexec cat /dev/urandom >&3\n' >"$helpers/casemate-keeper"
bad 'a keeper that says nonsense' run -- true
setup_helpers
chmod 777 "$helpers/casemate-keeper"
bad 'a keeper that others can write' run -- true
setup_helpers
chmod 777 "$helpers"
bad 'a directory that others can write' run -- true
chmod 755 "$helpers"
setup_helpers
rm "$helpers/casemate-checkout"
git init -q "$work/repo" 2>/dev/null
give "$work/repo"
start_files
bad 'no checkout helper' run --repo "$work/repo" -- true
setup_helpers
run run -- echo fine
expect_out fine 'control: all of them'
casemate=$was
finish

begin 'policy files'
policy() { # NAME TEXT
	printf '%s' "$2" >"$work/policy.json"
	chmod 644 "$work/policy.json"
	bad "$1" run --policy "$work/policy.json" -- true
}
start_files
policy 'empty' ''
policy 'no JSON' 'memory: 4G'
policy 'cut off' '{"memory": "4G"'
policy 'a list' '[]'
policy 'an unknown key' '{"memmory": "4G"}'
policy 'a wrong type' '{"memory": {}}'
policy 'a wrong value' '{"pids": "many"}'
policy 'two values' '{"memory": "4G", "memory": "5G"}'
policy 'text after it' '{} {}'
policy 'deep' "$(printf '[%.0s' $(seq 2000))"
policy 'bytes that are no text' $'{"memory": "\xff\xfe"}'
policy 'a NUL' '{"memory": "4G\u0000"}'
rm "$work/policy.json"
bad 'none' run --policy "$work/policy.json" -- true
bad 'a directory' run --policy "$work/w" -- true
if [ ${#as[@]} -eq 0 ]; then
	run run --policy <(echo '{"open-files": 78}') -- sh -c 'ulimit -n'
	expect_out 78 'control: one from a pipe'
fi
printf '{ /* comment */ "open-files": 77 }' >"$work/policy.json"
chmod 644 "$work/policy.json"
run run --policy "$work/policy.json" -- sh -c 'ulimit -n'
expect_out 77 'control: one that is fine'
echo '{"network": "host"}' >"$work/w/.casemate.json"
give "$work/w/.casemate.json"
start_files
run run -- sh -c 'ls /sys/class/net 2>/dev/null; cat /proc/net/dev | grep -c :'
[ "$rc" = 125 ] || [ "$(out | tail -n 1)" = 1 ]
ok 'a file in the repository widens nothing'
finish

begin 'options'
bad 'no such network' run --network nowhere -- true
bad 'no such user' run --user nobody-here -- true
bad 'no such git access' run --git some -- true
bad 'no such level' run --min-level high -- true
for value in -1 1x '' 4X 99999999999999999999 ' 1' 0x10 1e3; do
	bad "memory '$value'" run --memory "$value" -- true
done
for value in -1 x '' 99999999999h; do
	bad "timeout '$value'" run --timeout "$value" -- true
done
bad 'open files above the host' run --open-files 999999999 -- true
bad 'a processor that is not there' run --cpuset 4096 -- true
bad 'a volume without a path' run -v '' -- true
bad 'a relative target' run -v "$work/w:relative" -- true
bad 'a target in /proc' run -v "$work/w:/proc/x" -- true
bad 'a target that is /' run -v "$work/w:/" -- true
bad 'bwrap words' run --ro-bind / / -- true
bad 'docker words' run --memory-swap 1G -- true
bad 'no such command' nonsense
bad 'a checkout and a workspace' run --repo "$work/w" --workspace "$work/w" -- true
finish

begin 'commands in sessions'
run start f
run create c
run exec f -d -- sh -c 'exit 3'
gone=$(out)
start_files
bad 'no session' exec
bad 'no command' exec f
run exec f -- ''
is "$rc $(err)" "127 casemate: '' not found in the jail (exit 127)
hint: the command's name is empty; is it a variable that is not set?" 'an empty command'
bad 'a session that is not there' exec nothing -- true
bad 'an id that is none' exec ../f -- true
bad 'an option of sessions' exec f --network host -- true
bad 'another user' exec f -u root -- true
bad 'a time that is none' exec f --timeout soon -- true
bad 'a variable without a name' exec f -e =x -- true
bad 'a terminal that is journaled to nowhere' exec f -d -o x -- true
bad 'a working directory that is not there' exec f -w /nonexistent -- true
bad 'a command for start' start f -- true
bad 'a detached start' start f -d
bad 'start with another workspace' start f --workspace "$work/w"
bad 'a shell with a command' shell f -- true
bad 'a shell of none' shell nothing
bad 'restart of none by a bad id' restart ..
for command in logs wait kill stdin attach; do
	"$casemate" help "$command" >/dev/null 2>&1 || continue
	bad "$command: no command named" $command f
	bad "$command: of a session that is not there" $command nothing 1.1
	bad "$command: of a command that there is not" $command f 1.99
	bad "$command: of another start" $command f 9.1
	bad "$command: what is no id" $command f x.y
	bad "$command: of a session that never ran" $command c 1.1
	bad "$command: a way out" $command f ../../1.1
done
run rm --files f
run rm --files c
start_files
for command in exec logs wait kill stdin attach; do
	"$casemate" help "$command" >/dev/null 2>&1 || continue
	bad "$command: of a session that was removed" $command f "$gone"
done
finish

begin 'arguments'
run start f
big=$(printf 'x%.0s' $(seq 100000))
# less than the kernel takes of a single one
many() { yes "$big" | head -n "$1"; }
mapfile -t args < <(many 20)
run exec f -- sh -c 'n=0; for a; do n=$((n + ${#a})); done; echo $#:$n' - "${args[@]}"
expect_out 20:2000000 '2 MB of arguments arrive'
mapfile -t args < <(many 45)
(
	ulimit -s unlimited 2>/dev/null || exit 77
	run exec f -- true "${args[@]}"
	echo "$rc" >"$work/rc"
)
if [ $? = 77 ] || grep -q 'Argument list too long' "$work/err"; then
	skip STACK 'the kernel takes no more here' '4.5 MB of arguments'
else
	rc=$(cat "$work/rc")
	refused "the command's arguments and environment are too large*" 'together they may have 4 MiB' '4.5 MB of arguments'
fi
{
	echo 'cat >here <<END'
	yes "$(printf 'y%.0s' $(seq 99))" | head -n 3000
	echo 'END'
	echo 'wc -c <here'
} | run exec f -i -- sh
is "$(out | tr -d ' ')" 300000 'a heredoc of 300 KB by standard input'
run rm --files f
finish

done_testing
