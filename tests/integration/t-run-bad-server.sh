#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# --repo of a server that misbehaves, of one that goes away, and of a repository that was made to do
# harm: a clear error within bounded time, memory and disk, nothing gained and nothing left.
#
# Whose run it is matters little to what a server does: what can be had over http and git, by a run and
# by the helper alone, is tried half by root and half by the user, so that each caller sees each server
# in both ways and both together see all of it.  So it is with what comes a moment later, and with
# whom a fetch loses in which phase.  What waits for long does so beside the rest.
# shellcheck disable=SC2016,SC2154
# SC2016: what single quotes keep from this shell is for the shell inside
# SC2154: what servers are is set by servers.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/lib-remote.sh"

command -v python3 >/dev/null || skip_all TOOLS 'no python3'
bad_git_server=$(realpath "${3:?path of bad_git_server}")
(cd "$repos" && repo_plain plain)
bad_pack_of "$repos/plain"
plain_pack=("${bad_pack[@]}")
head=$(git -C "$repos/plain" rev-parse HEAD)

begin_remote() { # NAME
	begin_mirrors "$1"
	mkdir "$work/runs"
	give "$work/runs"
	start_files
}

# begin_server MODE: with what goes with it, unless it is running; its addresses in $url_http, $url_git
declare -A addresses=()
begin_server() {
	[ -n "${addresses[$1]:-}" ] || {
		case $1 in
		bomb | inflate)
			bad_pack_hostile "$1" 17179869184 && server_bad good "${bad_pack[@]}"
			;;
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

# The half of what is numbered that is this caller's.
parity=$([ "$identity" = root ] && echo 0 || echo 1)
is_mine() { [ $((($1 + parity) % 2)) = 0 ]; } # NUMBER

# --- the helper alone: every mode at once ---------------------------------------------------------

# MODE|SCHEMES|REASON|SECONDS: those that are waited for, or the others
modes() { # slow|quick
	case $1 in
	slow) all_modes | grep -E '\|(silent|too-slow)\|' ;;
	quick) all_modes | grep -Ev '\|(silent|too-slow)\|' ;;
	esac
}

all_modes() {
	cat <<-EOF
		stop|http git|broken-off|15
		reset|http git|broken-off|15
		reset-refs|http git|broken-off|15
		reset-pack|http git|broken-off|15
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
		denied-pack|http|auth-required|15
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
helper=$top/bin/casemate-checkout
helper_at() {
	mkdir -p "$1"
	give "$1"
	measured "${as[@]}" timeout -k 1 150 "$helper" --fetch "$2" --mirror "$1" \
		--report-fd 1 >"$1.out" 2>"$1.err"
}

# The longest of all is one caller's run: the other sees it by the helper.
is_run_here() { [ "$1" != slow-pack ] || [ "$identity" = plain ]; } # MODE

each_mode() { # slow|quick run|helper COMMAND: with mode, scheme, address, its arguments
	local mode schemes reason seconds n=0 way=0
	[ "$2" = run ] || way=1
	while IFS='|' read -r mode schemes reason seconds; do
		n=$((n + 1))
		[ "$2" != run ] || is_run_here "$mode" || continue
		begin_server "$mode"
		if [ "$schemes" = http ] || is_mine $((n + way)); then
			"$3" "$mode" http "$url_http" "$reason" "$seconds"
		else
			"$3" "$mode" git "$url_git" "$reason" "$seconds"
		fi
	done < <(modes "$1")
}

background_pids=()
fetches=
fetch_bad() { # MODE SCHEME URL
	helper_at "$fetches/$1-$2" "$3" &
	background_pids+=($!)
}

check_bad() { # MODE SCHEME URL REASON SECONDS
	local dir=$fetches/$1-$2 status ms kb
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
	local run=$work/runs/$1-$2 status ms kb tries again
	read -r status ms kb < <(tail -n 1 "$run.err")
	is "$status" 125 "$1, $2: the status"
	like "$(cat "$run.err")" "*casemate: cannot fetch '$3'*
hint: *" "$1, $2: says what failed, and a hint"
	[ "$ms" -lt $(($5 * 1000 + 20000)) ] && [ ! -s "$run.out" ]
	ok "$1, $2: in $5 s and the time of its retries ($ms ms)"
	! LC_ALL=C grep -q $'[\x01-\x08\x0b-\x1f\x7f]' "$run.err"
	ok "$1, $2: nothing that a terminal obeys"
	tries=$(tries_of "$4")
	again=$(sed -n 's/.*; trying again in \([0-9]*\) s$/\1/p' "$run.err" | tr '\n' ' ')
	case $tries in
	1) is "$again" '' "$1, $2: is not tried again" ;;
	3) is "$again" '1 4 ' "$1, $2: is tried again twice, which is said" ;;
	esac
	# to libgit2 a SHA-256 repository is noise, so that git is let ask, too
	[ "$1" != garbage-refs ] || tries=2
	[ "$2" != http ] || is "$(bad_asked | grep -c '^GET ')" "$tries" "$1: so often it was asked"
}

# --- disk, processor time, memory -------------------------------------------------------------------

# A file system of 20 MiB at $small, with nothing in it.
small_disk() {
	small=$work/small
	mkdir -p "$small"
	mount -t tmpfs -o size=20m,nr_inodes=2000 casemate-test "$small"
	give "$small"
}

check_out() { # SOURCE TARGET [PRLIMIT-OPTION...]
	local source=$1 target=$2
	shift 2
	measured "${as[@]}" prlimit "$@" timeout -k 1 150 "$top/bin/casemate-checkout" \
		--source "$source" --target "$target" --report-fd 1 >"$work/out" 2>"$work/err"
	read -r rc _ kb < <(tail -n 1 "$work/err")
}

# Repositories of one kind each: a pack that is large, one that becomes large, many small files
bounds_repositories() {
	(
		cd "$repos" && git init -q -b main incompressible &&
			head -c 30000000 /dev/urandom >incompressible/data && commit incompressible d
		git init -q -b main zeros && head -c 400000000 /dev/zero >zeros/data && commit zeros d
		rm zeros/data
		repo_many_files inodes 3000
	)
	chmod -R go+rX "$repos"
}

t_disk() {
	small_disk
	mkdir "$small/m"
	give "$small/m"
	helper_at "$small/m" "$git_url/incompressible"
	is "$(json code "$small/m.out") $(json reason "$small/m.out")" 'limit disk-full' 'a pack that does not fit'
	is "$(find "$small/m" -path '*/pack/*' -type f)" '' 'of which nothing is left'
	rm "$small"/m.*
	helper_at "$small/m" "$plain_url"
	is "$(json code "$small/m.out")" ok 'control: one that does'
	check_out "$repos/zeros" "$small/t"
	is "$rc $(json code) $(find "$small" -mindepth 1 -maxdepth 1 -name 't*')" '1 limit ' \
		'a file that does not fit, of which nothing is left'
	check_out "$repos/inodes" "$small/t"
	is "$rc $(json code) $(find "$small" -mindepth 1 -maxdepth 1 -name 't*')" '1 limit ' \
		'more files than there may be, of which nothing is left'
	umount "$small"
	rmdir "$small"
}

t_processor_time() {
	begin_server inflate
	mkdir -p "$work/bounds/cpu"
	give "$work/bounds"
	measured "${as[@]}" prlimit --cpu=2:60 timeout -k 1 150 "$top/bin/casemate-checkout" --fetch \
		"$url_git" --mirror "$work/bounds/cpu" --report-fd 1 >"$work/out" 2>"$work/err"
	is "$(json code) $(json reason)" 'limit too-much-work' 'a lower limit of the caller holds'
	is "$(find "$work/bounds/cpu" -path '*/pack/*' -type f)" '' 'and leaves nothing'

}

t_memory() {
	check_out "$repos/zeros" "$work/bounds/t" --data=200000000
	is "$rc $(json code) $(json reason)" '1 limit too-much-memory' 'a file that needs more'
	[ "$kb" -lt 300000 ] && [ -z "$(find "$work/bounds" -mindepth 1 -maxdepth 1 -name 't*')" ]
	ok "and gets no more, and leaves nothing ($kb KB)"
	check_out "$repos/plain" "$work/bounds/t" --data=200000000
	is "$rc" 0 'control: one that does not'
}

# A name server that takes questions and has no answers: nothing that the process waits for could be
# ended from beside it, so that it is ended as a whole.
begin_name_server() {
	new_server_dir
	printf 'nameserver 127.0.0.77\noptions timeout:30 attempts:5\n' >"$server_dir/resolv.conf"
	: >"$server_dir/log"
	name_log=$server_dir/log
	serve "says_port $name_log" "$name_log" python3 -c 'import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.77", 53))
print("port 53", flush=True)
while s.recv(512):
    print("asked", flush=True)' || return 1
	mount --bind "$server_dir/resolv.conf" /etc/resolv.conf
}

begin_name() {
	begin_name_server || return
	helper_at "$aside/name" http://a-name.example.org/x &
	aside_pids+=($!)
	until_true 20 has_asked_name
	umount /etc/resolv.conf
}
has_asked_name() { grep -q asked "$name_log"; }

t_name_server() {
	[ -e "$aside/name.err" ] || {
		skip ROOT 'no name server of our own' 'a name server that does not answer'
		return
	}
	is "$(grep -c . "$aside/name.out") $(json code "$aside/name.out") $(json reason "$aside/name.out")" \
		'1 timeout silent' 'a name server that does not answer: the report is whole'
	read -r _ ms _ < <(tail -n 1 "$aside/name.err")
	[ "$ms" -lt 40000 ]
	ok "a name server that does not answer: in 40 s ($ms ms)"
}

# --- all at once ------------------------------------------------------------------------------------

# By a helper, and of servers, that no block takes for its own.
aside=$top/aside
aside_pids=() aside_servers=() keep_servers=()
begin_aside() {
	mkdir "$aside"
	give "$aside"
	cp "$top/bin/casemate-checkout" "$aside/"
	helper=$aside/casemate-checkout fetches=$aside
	each_mode slow helper fetch_bad
	aside_pids=("${background_pids[@]}")
	! is_root || begin_name
	helper=$top/bin/casemate-checkout
	aside_servers=("${server_pids[@]}")
	background_pids=() server_pids=() addresses=()
	ends+=(stop_aside)
}

stop_aside() {
	local pid
	for pid in "${aside_pids[@]}" "${aside_servers[@]}" "${keep_servers[@]}"; do
		stop_server "$pid"
	done
	aside_pids=() aside_servers=() keep_servers=()
}

# In the mirrors: of a fetch that went well there is a branch, and a pack with its name.
parts_of_packs() {
	local dir whole
	for dir in "$mirrors"/*/; do
		whole=
		git -c 'safe.directory=*' -C "$dir/data/repository" rev-parse -q --verify refs/heads/main \
			>/dev/null 2>&1 && whole='pack-*'
		find "$dir" -name '*.new' -o -path '*/pack/*' -type f ! -name "$whole"
	done
}

a_moment_later() {
	local mode n=0
	for mode in reset reset-pack stop checksum; do
		n=$((n + 1))
		is_mine $n || continue
		server_bad $mode "${plain_pack[@]}" --good-after 1
		run run --repo "$bad_url" -- git rev-parse HEAD
		is "$rc $(out) $(grep -c 'trying again' "$work/err")" "0 $head 1" "$mode: the second try goes well"
		server_bad $mode "${plain_pack[@]}" --good-after 3
		run run --repo "$bad_url" -- true
		expect_status 125 "$mode: there are three"
		run run --repo "$bad_url" -- git rev-parse HEAD
		is "$rc $(out)" "0 $head" "$mode: the same mirror is used then"
	done
}

(cd "$repos" && repo_many_files large 6000)
bounds_repositories
begin_aside
# of this script, which may end before a block does
server_git "$repos" || skip_all TOOLS "no $missing"
large_url=$git_url/large
plain_url=$git_url/plain
keep_servers=("${server_pids[@]}")
server_pids=()

begin_remote 'a server that misbehaves'
fetches=$work/fetches
mkdir "$fetches"
give "$fetches"
each_mode slow run run_bad
slow_pids=("${background_pids[@]}")
background_pids=()
each_mode quick run run_bad
wait "${background_pids[@]}"
each_mode quick run check_run
background_pids=()
each_mode quick helper fetch_bad
wait "${background_pids[@]}"
each_mode quick helper check_bad
a_moment_later
t_processor_time
t_memory
if is_root; then
	t_disk
else
	skip ROOT 'no file system of its own' 'disk'
fi
wait "${slow_pids[@]}"
each_mode slow run check_run
[ ! -e "$work/w/ran" ]
ok 'no command ran'
is "$(find "$root" -mindepth 1 2>/dev/null)" '' 'no checkout is left, whole or in part'
is "$(parts_of_packs)" '' 'nor a part of a pack'
begin_server good
run run --repo "$url_http" -- git rev-parse HEAD
expect_out "$head" 'control: of one that does not'
stop_servers
addresses=()
rm -rf "${work:?}/runs" "${work:?}/fetches" "${work:?}/bounds"
finish

# --- stopped, and killed ---------------------------------------------------------------------------

# A port that takes no more connections: what connects to it waits.
begin_full_port() {
	new_server_dir
	: >"$server_dir/log"
	serve "says_port $server_dir/log" "$server_dir/log" python3 -c 'import signal, socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
s.listen(0)
waiting = []
for i in range(4):
    c = socket.socket()
    c.setblocking(False)
    c.connect_ex(s.getsockname())
    waiting.append(c)
print("port", s.getsockname()[1], flush=True)
signal.pause()' || bail 'no port that is full'
	url=http://127.0.0.1:$(sed -n 's/^port //p' "$server_dir/log")/x
}

# What the helper is doing when it is stopped: PHASE, and the url to get it there in $url.
begin_phase() {
	case $1 in
	connect) begin_full_port ;;
	negotiation) server_bad slow-refs "${plain_pack[@]}" --good-after 1 && url=$bad_git_url ;;
	download) server_bad stall "${plain_pack[@]}" --good-after 1 && url=$bad_url ;;
	indexing) begin_server inflate && url=$url_git ;;
	checkout) url=$large_url ;;
	esac
}

helper_pid() { pgrep -f "^/run/casemate/casemate-checkout (.* )?--$1 " | head -n 1; }
has_partial() { compgen -G "$root/run-*/*.partial/.git" >/dev/null; }
# A tenth of a second of processor time: it does not wait.
is_busy() {
	local pid
	pid=$(helper_pid fetch) && [ "$(awk '{ print $14 + $15 }' "/proc/$pid/stat")" -ge 10 ]
}

# A socket and no answer: of all that it waits for this is the only thing that is one.
helper_waits() {
	local pid
	pid=$(helper_pid fetch) && [ -n "$(find "/proc/$pid/fd" -lname 'socket:*')" ]
}

is_in_phase() { # PHASE
	case $1 in
	connect) helper_waits ;;
	negotiation) [ -n "$(bad_asked)" ] && helper_pid fetch ;;
	download) bad_asked | grep -q POST && helper_pid fetch ;;
	indexing) is_busy ;;
	checkout) has_partial ;;
	esac
}

phases='connect negotiation download indexing checkout'

start_in_phase() { # PHASE
	begin_phase "$1"
	start run --repo "$url" -- touch "$work/w/ran"
	until_true 20 is_in_phase "$1"
	ok "$1: is under way"
}

# Of the last run: that there is nothing but the mirror, and in it no part of a pack.
nothing_of() { # PHASE
	[ ! -e "$work/w/ran" ] && [ -z "$(find "$root" -mindepth 1 2>/dev/null)" ] && [ -z "$(our_processes)" ]
	ok "$1: nothing but the mirror is left"
}

begin_remote 'stopped'
for phase in $phases; do
	start_in_phase "$phase"
	kill -INT "$bg"
	wait_bg
	is "$rc $([ "$elapsed_ms" -lt 2000 ] && echo soon)" '130 soon' "$phase: SIGINT ends it ($elapsed_ms ms)"
	like "$(err)" '*casemate: stopped while *' "$phase: which is said"
	nothing_of "$phase"
done
finish

is_all_gone() { [ -z "$(our_processes)" ]; }

# The client's program is not to be found by the pattern of the others.
kill_all() { # PATTERN
	local pid
	for pid in $(pgrep -f "$1"); do
		kill -KILL "$pid"
	done 2>/dev/null
}

begin_remote 'killed'
pair=0
for phase in $phases; do
	for who in helper keeper client; do
		pair=$((pair + 1))
		is_mine $pair || continue
		start_in_phase "$phase"
		case $who in
		helper) kill_all '^/run/casemate/casemate-checkout' ;;
		keeper) kill_all "^$top/bin/casemate-keeper" ;;
		client) kill -KILL "$bg" ;;
		esac
		# bash tells of a child that was killed
		{ wait_bg; } 2>/dev/null
		[ "$who" = client ] || is "$rc" 125 "$phase: without its $who it says so"
		until_true 5 is_all_gone
		case $phase in
		negotiation | download)
			run run --repo "$url" -- git rev-parse HEAD
			is "$rc $(out)" "0 $head" "$phase: after its $who the next run begins again"
			;;
		checkout)
			run run --repo "$url" -- sh -c 'git status --short; ls d59 | wc -l'
			is "$rc $(out)" '0 100' "$phase: after its $who the next run is whole"
			;;
		*) run run --no-workspace -- true ;;
		esac
		nothing_of "$phase"
	done
done
finish

begin_remote 'what takes long'
wait "${aside_pids[@]}"
aside_pids=()
fetches=$aside
# the addresses that were asked are those of servers that still run
each_mode slow helper check_bad
t_name_server
stop_servers
stop_aside
rm -rf "${aside:?}"
finish

done_testing
