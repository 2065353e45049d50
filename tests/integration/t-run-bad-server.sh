#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# --repo of a server that misbehaves, of one that goes away, and of a repository that was made to do
# harm: a clear error within bounded time, memory and disk, nothing gained and nothing left.
# shellcheck disable=SC2016,SC2154
# SC2016: what single quotes keep from this shell is for the shell inside
# SC2154: what servers are is set by servers.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/repositories.sh"
. "$here/servers.sh"

command -v git >/dev/null || skip_all TOOLS 'no git'
command -v python3 >/dev/null || skip_all TOOLS 'no python3'
bad_git_server=$(realpath "${3:?path of bad_git_server}")
git_settings
unset CASEMATE_GIT_TOKEN
repos=$top/repos
mkdir "$repos"
(cd "$repos" && repo_plain plain)
bad_pack_of "$repos/plain"
plain_pack=("${bad_pack[@]}")
head=$(git -C "$repos/plain" rev-parse HEAD)

# The mirrors stay, and where they are.
begin_remote() { # NAME
	begin "$1"
	allow '/cache/casemate '
	allow '/cache/casemate/mirrors( |/)'
	mirrors=$work/cache/casemate/mirrors
	[ "$identity" != root ] || ! is_root || mirrors=/var/cache/casemate/mirrors
	rm -rf "$mirrors"
	mkdir "$work/runs"
	give "$work/runs"
	start_files
}

# begin_server MODE: with what goes with it, unless it is running; its addresses in $url_http, $url_git
declare -A addresses=()
begin_server() {
	[ -n "${addresses[$1]:-}" ] || {
		case $1 in
		bomb) bad_pack_hostile bomb 17179869184 && server_bad good "${bad_pack[@]}" ;;
		*) server_bad "$1" "${plain_pack[@]}" ;;
		esac || bail "no server: $1"
		addresses[$1]="$bad_url $bad_git_url $bad_log"
	}
	read -r url_http url_git bad_log <<<"${addresses[$1]}"
}

# measured COMMAND...: what it is, how long it took and the memory of the largest process: the last
# line of standard error
measured() {
	python3 -c 'import os, resource, subprocess, sys, time
start = time.monotonic()
status = subprocess.call(sys.argv[1:])
print(status, int(1000 * (time.monotonic() - start)),
      resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)' "$@"
}

# --- the helper alone: every mode at once ---------------------------------------------------------

# MODE|SCHEMES|REASON|SECONDS
modes() {
	cat <<-EOF
		stop|http git|broken-off|15
		error-band|http git|broken-off|15
		checksum|http git|bad-pack|15
		zlib|http git|bad-pack|15
		no-pack|http git|bad-pack|15
		count|http git|too-much-memory|15
		bomb|http git|too-much-memory|30
		garbage-refs|http git|not-git|15
		garbage-length|http git|not-git|15
		short-length|http git|not-git|15
		band-length|http git|not-git|15
		band-channel|http git|not-git|15
		type|http|not-git|15
		headers|http|not-git|15
		header|http|not-git|15
		status|http|not-git|15
		error|http git|refused|15
		endless-refs|http git|too-much-talk|60
		progress|http git|too-much-talk|60
		stall|http git|silent|40
		silent|http git|silent|40
		length|http|silent|40
		slow-refs|http git|too-slow|40
		slow-pack|http git|too-slow|90
	EOF
}

# helper_at DIR URL: its report in DIR.out
helper_at() {
	mkdir -p "$1"
	give "$1"
	measured "${as[@]}" timeout -k 1 150 "$top/bin/casemate-checkout" --fetch "$2" --mirror "$1" \
		--report-fd 1 >"$1.out" 2>"$1.err"
}

each_mode() { # COMMAND: with mode, scheme, address, its arguments
	local mode schemes reason seconds scheme
	while IFS='|' read -r mode schemes reason seconds; do
		begin_server "$mode"
		for scheme in $schemes; do
			case $scheme in
			http) "$1" "$mode" http "$url_http" "$reason" "$seconds" ;;
			git) "$1" "$mode" git "$url_git" "$reason" "$seconds" ;;
			esac
		done
	done < <(modes)
}

background_pids=()
fetch_bad() { # MODE SCHEME URL
	helper_at "$work/runs/$1-$2" "$3" &
	background_pids+=($!)
}

check_bad() { # MODE SCHEME URL REASON SECONDS
	local dir=$work/runs/$1-$2 status ms kb
	read -r status ms kb < <(tail -n 1 "$dir.err")
	is "$(json reason "$dir.out")" "$4" "$1, $2: the reason"
	[ "$status" != 0 ] && [ -n "$(json msg "$dir.out")" ] && [ -n "$(json hint "$dir.out")" ]
	ok "$1, $2: is told, with a hint"
	[ "$ms" -lt $(($5 * 1000)) ] && [ "$kb" -lt 700000 ]
	ok "$1, $2: in $5 s and 700 MB ($ms ms, $kb KB)"
	! LC_ALL=C grep -q $'[\x01-\x08\x0b-\x1f]' "$dir.out" "$dir.err"
	ok "$1, $2: nothing that a terminal obeys"
	is "$(find "$dir" -name '*.new' -o -path '*/pack/*' -type f)" '' "$1, $2: leaves no part of a pack"
	begin_server good
	helper_at "$dir" "$url_git"
	is "$(json code "$dir.out") $(git -c 'safe.directory=*' -C "$dir/repository" rev-parse refs/heads/main)" \
		"ok $head" "$1, $2: the mirror can be used"
}

# --- casemate: every mode at once ----------------------------------------------------------------

# run_bad MODE SCHEME URL: in the background; a session of its own each
run_bad() {
	(
		limit=150
		measured "${as[@]}" timeout -k 1 150 "$casemate" run --repo "$3" -- \
			touch "$work/w/ran" >"$work/runs/$1-$2.out" 2>"$work/runs/$1-$2.err"
	) &
	background_pids+=($!)
}

# What broke off, or was damaged on the way, may go well a moment later; the rest is wrong again.
tries_of() { # REASON
	case $1 in
	broken-off | bad-pack | server-error) echo 3 ;;
	*) echo 1 ;;
	esac
}

check_run() { # MODE SCHEME URL REASON SECONDS
	local of=$work/runs/$1-$2 status ms kb tries again
	read -r status ms kb < <(tail -n 1 "$of.err")
	is "$status" 125 "$1, $2: the status"
	like "$(cat "$of.err")" "*casemate: cannot fetch '$3'*
hint: *" "$1, $2: says what failed, and a hint"
	[ "$ms" -lt $(($5 * 1000 + 20000)) ] && [ ! -s "$of.out" ]
	ok "$1, $2: in $5 s and the time of its retries ($ms ms)"
	! LC_ALL=C grep -q $'[\x01-\x08\x0b-\x1f\x7f]' "$of.err"
	ok "$1, $2: nothing that a terminal obeys"
	tries=$(tries_of "$4")
	again=$(sed -n 's/.*; trying again in \([0-9]*\) s$/\1/p' "$of.err" | tr '\n' ' ')
	case $tries in
	1) is "$again" '' "$1, $2: is not tried again" ;;
	3) is "$again" '1 4 ' "$1, $2: is tried again twice, which is said" ;;
	esac
	[ "$2" != http ] || is "$(bad_asked | grep -c '^GET ')" "$tries" "$1: so often it was asked"
}

begin_remote 'a server that misbehaves'
each_mode run_bad
wait "${background_pids[@]}"
each_mode check_run
[ ! -e "$work/w/ran" ]
ok 'no command ran'
is "$(find "$root" -mindepth 1 2>/dev/null)" '' 'no checkout is left, whole or in part'
is "$(find "$mirrors" -name '*.new' -o -path '*/pack/*' -type f)" '' 'nor a part of a pack'
begin_server good
run run --repo "$url_http" -- git rev-parse HEAD
expect_out "$head" 'control: of one that does not'
stop_servers
addresses=()
background_pids=()
rm -rf "${work:?}/runs"
finish

begin_remote 'the helper'
each_mode fetch_bad
wait "${background_pids[@]}"
each_mode check_bad
stop_servers
addresses=()
rm -rf "${work:?}/runs"
finish

done_testing
