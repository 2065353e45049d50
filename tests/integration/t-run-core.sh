#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Core files: of what holds a credential there is none, however it ends.
#
# A server that stops in the middle has everybody wait: the client, the keeper of the fetch's jail, and
# the helper or the host's git.  Each of them is ended as by a fault of its own while it waits, where
# the caller allows core files of any size.
# shellcheck disable=SC2154
# SC2154: URLs are set by servers.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/lib-remote.sh"

bad_git_server=$(realpath "${3:?path of bad_git_server}")
# another pattern leads to a program or a place of the host's, which is none of a test's
[ "$(cat /proc/sys/kernel/core_pattern)" = core ] || skip_all CORE 'core files are not written to where a process is'
ulimit -c unlimited 2>/dev/null || skip_all CORE 'no core files may be written here'
(cd "$repos" && repo_plain plain)
bad_pack_of "$repos/plain"
server_bad stall "${bad_pack[@]}" || skip_all TOOLS "no $missing"

# In no file of this test as it is: it would be found in a core file alone.
secret=core-$(head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n')

cores() { find "$top" /var/lib/casemate /run/casemate /var/cache/casemate -name 'core*' -type f -size +0 2>/dev/null; }

# All that wait for the server: ours, and what they began.
waiting() {
	local pid
	for pid in $(our_processes); do
		descendants "$pid"
	done | sort -un
}

# all_wait PROGRAM...: the server was asked, and these are there; who else is, too, in $pids
n_asked=0
pids=()
all_wait() {
	local program
	[ "$(bad_asked | wc -l)" -gt "$n_asked" ] || return
	mapfile -t pids < <(waiting)
	for program; do
		printf '/proc/%s/comm\n' "${pids[@]}" | xargs cat 2>/dev/null | grep "^$program" || return
	done
}

# end_all SIGNAL: those that were begun last first, so that nobody is gone before its turn
end_all() {
	local pid
	for pid in $(printf '%s\n' "${pids[@]}" | sort -rn); do
		kill "-$1" "$pid"
	done
	sleep 0.5
	# whoever blocks it
	for pid in "${pids[@]}"; do
		kill -KILL "$pid"
	done
	wait_bg
} 2>/dev/null

each_ended() { # SIGNAL WHAT PROGRAM...
	local signal=$1 what=$2
	shift 2
	until_true 20 all_wait "$@"
	ok "$what: $* wait"
	end_all "$signal"
	is "$(cores)" '' "$what: no core file"
	is "$(traces "$secret")" '' "$what: the credential is nowhere"
	n_asked=$(bad_asked | wc -l)
}

begin_core() { # NAME
	begin_mirrors "$1"
	start_files
}

begin_core control
(
	cd "$work/w" || exit
	# shellcheck disable=SC2016
	exec "${as[@]}" env SECRET="$secret" sh -c 'kill -ABRT $$'
) 2>/dev/null
is "$(cores)" "$work/w/core" 'what is ended so leaves a core file'
is "$(traces "$secret")" "$work/w/core" 'in which a credential is found'
rm -f "$work/w/core"
finish

# by libgit2, and by the host's git
for signal in ABRT SEGV; do
	begin_core "a run, SIG$signal"
	CASEMATE_GIT_TOKEN=$secret start run --repo "$bad_url" -- true
	each_ended $signal 'a fetch' 'casemate$' casemate-keeper casemate-checko
	CASEMATE_GIT_TOKEN=$secret start run --repo "$bad_url" --filter blob:none -- true
	each_ended $signal "by the host's git" 'casemate$' casemate-keeper casemate-checko git
	run run --no-workspace -- true
	is "$rc" 0 'the next start collects what they left'
	finish

	# without a jail, and so without the limit that a jail has
	begin_core "the helper alone, SIG$signal"
	for git in '' git; do
		mkdir "$work/w/m"
		give "$work/w/m"
		# shellcheck disable=SC2086
		"${as[@]}" "$top/bin/casemate-checkout" --fetch "$bad_url" --mirror "$work/w/m" \
			--credential-fd 0 ${git:+--filter blob:none} < <(printf 'user\0%s\0' "$secret") \
			>"$work/out" 2>"$work/err" &
		bg=$!
		each_ended $signal "a fetch${git:+ by git}" casemate-checko $git
		rm -rf "$work/w/m"
	done
	finish
done

done_testing
