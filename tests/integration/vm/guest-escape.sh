# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# The cases of tests/escape on this kernel: sourced by guest-kernel.sh.
#
# escape.sh compares line by line with programs, which takes minutes here; the words that its cases
# are written in are given again, so that a case costs its control, its jail, and no more.
# shellcheck disable=SC2034,SC2154
# SC2034, SC2154: guest-lib.sh and the cases use them, or have set them

probes=$build/tests/escape/probes
cases=$here/../../escape

is_user() { [ ${#as[@]} -gt 0 ]; }
give() { ! is_user || chown -R ci "$@"; }
ok() { check "$@"; }
allow() { :; }
start_files() { :; }

# A disk of its own, because a tmpfs takes no idmapped mount before 6.3.
make_disk() {
	modprobe -a loop ext4 && truncate -s 128M /tmp/disk.img && mkfs.ext4 -q -O ^has_journal /tmp/disk.img &&
		mkdir /tmp/disk && mount -o loop /tmp/disk.img /tmp/disk
}

begin_case() { # NAME
	work=/tmp/disk/$1-${#as[@]}
	mkdir "$work" "$work/w" && cd "$work/w" || return
	weaker=(unshare --mount --uts --ipc --pid --fork --mount-proc)
	! is_user || weaker=(unshare --user --map-root-user --mount --uts --ipc --pid --fork --net
		--mount-proc)
	give "$work/w"
}

use() { # PROBE...
	local name
	for name in "$@"; do
		install -m 755 "$probes/probe_$name" "$work/w/"
	done
	give "$work/w"
}

serve() { # NAME
	"${as[@]}" "$probes/probe_serve" "$1" >"$work/ready" &
	served=$!
	until_true 10 has_text "$work/ready" ready
}

unserve() {
	kill "$served"
	wait "$served" 2>/dev/null
}

# attack [OPTION-OF-CASEMATE-RUN...] -- CONTROL... -- PROBE...
# Standard input: a line "ATTEMPT: RESULT" for each line that the probe must print inside.
attack() {
	local options=() outside=() line n=0 of=0 wrong=0
	local -A control=() inside=()
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	while [ "$1" != -- ]; do
		outside+=("$1")
		shift
	done
	shift
	while IFS= read -r line; do
		control[${line%%: *}]=${line#*: }
	done < <("${as[@]}" "${outside[@]}" 2>/dev/null </dev/null)
	last="run ${options[*]} -- $*"
	"${as[@]}" "$casemate" run "${options[@]}" -- "$@" >"$out" 2>"$err" </dev/null
	rc=$?
	while IFS= read -r line; do
		inside[${line%%: *}]=${line#*: }
	done <"$out"
	while IFS= read -r line; do
		line=${line#"${line%%[![:space:]]*}"}
		of=$((of + 1))
		[ "${control[${line%%: *}]:-}" != reached ] || n=$((n + 1))
		[ "${inside[${line%%: *}]:-}" = "${line#*: }" ] || {
			echo "#     ${line%%: *} is '${inside[${line%%: *}]:-}', not '${line#*: }'"
			wrong=$((wrong + 1))
		}
		unset "inside[${line%%: *}]"
	done
	[ $wrong = 0 ] && [ ${#inside[@]} = 0 ]
	check "$of attempts are refused as they should be, of which $n reach outside"
	[ $n -gt 0 ]
	check 'the control reaches something'
}

# shellcheck source=/dev/null
. "$cases/cases-kernel.sh"

escape_cases() { # CASE...
	local name
	for name in "$@"; do
		begin_case "$name"
		"case_$name"
		cd /tmp/w || return
	done
}

# Abstract sockets are what the host's network brings with it; Landlock keeps them from 6.12 on.
escape_host_network() {
	local name=@cm-vm-${#as[@]}
	begin_case abstract
	use try
	serve "$name"
	attack -- ./probe_try "connect:$name" -- ./probe_try "connect:$name" <<<"connect $name: refused ECONNREFUSED"
	if [ "$abi" -ge 6 ]; then
		attack --network host -- ./probe_try "connect:$name" -- ./probe_try "connect:$name" \
			<<<"connect $name: refused EPERM"
	else
		run --network host -- true
		is "$rc $(err)" "125 casemate: network 'host' would reach the host's abstract sockets (this kernel's Landlock ABI is $abi, 6 is needed)
hint: leave --network host out, or use Linux 6.12 or newer with Landlock" '--network host is refused'
	fi
	unserve
	cd /tmp/w || return
}
