# SPDX-License-Identifier: Apache-2.0
# Functions that the project's scripts share.  Sourced by bash, never run.
# shellcheck shell=bash

CM_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# What a CI machine is expected to have; a test that misses one of these there fails instead of
# skipping.  Controllers, systemd and the like differ from machine to machine and are not listed.
# shellcheck disable=SC2034
CM_CI_MUST_WORK="USERNS SECCOMP SYSCALLS LANDLOCK TOOLS"

cm_say() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
}

# cm_die MESSAGE [HINT]
cm_die() {
	cm_say "$1"
	[ $# -lt 2 ] || printf 'hint: %s\n' "$2" >&2
	exit 1
}

cm_have() {
	command -v "$1" >/dev/null 2>&1
}

cm_jobs() {
	nproc 2>/dev/null || echo 2
}

# The comment block below the licence line, up to the first line that is no comment: a script's
# help text is its header, so the two cannot differ.
cm_usage() {
	sed -n '3,${/^#/!q;s/^# \{0,1\}//p}' "$0"
}

# cm_quietly LOG COMMAND...: show the output only when the command fails, and then without ninja's
# lines of progress.
cm_quietly() {
	local log=$1 status=0
	shift
	"$@" >"$log" 2>&1 </dev/null || status=$?
	[ "$status" = 0 ] || {
		sed '/^\[[0-9]*\/[0-9]*\] /d' "$log" >&2
		cm_say "failed with status $status: $*"
	}
	return "$status"
}

# --- packages -----------------------------------------------------------------------------------

cm_packages() {
	awk -v want=" $* " '!/^#/ && NF && index(want, " " $1 " ") { print $2 }' \
		"$CM_ROOT/scripts/packages" | sort -u
}

cm_missing_packages() {
	local names
	names=$(cm_packages "$@")
	# shellcheck disable=SC2086
	comm -23 <(printf '%s\n' "$names") <(dpkg-query -W \
		-f '${db:Status-Status} ${Package}\n' $names 2>/dev/null |
		sed -n 's/^installed //p' | sort -u)
}

# cm_install PURPOSE...: nothing to do and no root needed when everything is there.
cm_install() {
	local missing
	if ! cm_have dpkg-query; then
		cm_say "cannot tell without dpkg what is missing; needed (as Debian names them):"
		cm_packages "$@" | tr '\n' ' ' >&2
		echo >&2
		return 0
	fi
	missing=$(cm_missing_packages "$@" | tr '\n' ' ')
	missing=${missing% }
	[ -n "$missing" ] || return 0
	if [ "$(id -u)" != 0 ]; then
		cm_die "these Debian packages are missing: $missing" \
			"run 'sudo apt-get install $missing', then this again; root is not needed after that"
	fi
	cm_say "these Debian packages are missing and are installed now: $missing"
	cm_apt update >/dev/null || cm_say "apt-get update failed; going on with the lists there are"
	# shellcheck disable=SC2086
	cm_without_services cm_apt --no-install-recommends install $missing >/dev/null ||
		cm_die "cannot install the packages" "run 'apt-get install $missing' to see why"
	cm_disable_services "$missing"
}

# cm_without_services COMMAND...: Debian's packages of servers start what they install, with the
# machine's configuration.  The tests want the programs only, and a machine that gets them for the
# tests must not be one that listens from then on.  A policy of the machine's own is left alone.
cm_without_services() {
	local policy=/usr/sbin/policy-rc.d status=0
	if [ -e $policy ]; then
		"$@"
		return
	fi
	printf '#!/bin/sh\nexit 101\n' >$policy
	chmod 755 $policy
	"$@" || status=$?
	rm -f $policy
	return "$status"
}

# Nor at the next boot; only what has just been installed, and was not there before.
cm_disable_services() { # PACKAGES
	local package unit
	cm_have systemctl || return 0
	for package in $1; do
		case $package in
		openssh-server) unit='ssh.service ssh.socket' ;;
		nginx-light) unit=nginx.service ;;
		fcgiwrap) unit='fcgiwrap.service fcgiwrap.socket' ;;
		*) continue ;;
		esac
		# shellcheck disable=SC2086
		systemctl --quiet disable $unit >/dev/null 2>&1 || :
	done
}

cm_apt() {
	DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o Dpkg::Use-Pty=0 "$@" </dev/null
}

# --- building and testing -----------------------------------------------------------------------

# cm_configure DIR [CMAKE ARGUMENT...]
cm_configure() {
	local dir=$1 generator=()
	shift
	mkdir -p "$dir"
	# an existing build directory keeps its generator: cmake refuses another one
	if [ ! -e "$dir/CMakeCache.txt" ] && cm_have ninja; then
		generator=(-G Ninja)
	fi
	cm_quietly "$dir/configure.log" cmake -S "$CM_ROOT" -B "$dir" "${generator[@]}" "$@"
}

# cm_build DIR [CMAKE --build ARGUMENT...]
cm_build() {
	local dir=$1
	shift
	cm_quietly "$dir/build.log" cmake --build "$dir" --parallel "$(cm_jobs)" "$@"
}

# One line a skip: whole tests, TAP lines and cmocka's.  The reasons are in ctest's record, that a
# test was skipped is only in what it printed.
cm_skips() {
	awk '
	function skip(reason) { print name ": " reason; seen[name] = 1 }
	FILENAME ~ /LastTest/ && /^[0-9]+\/[0-9]+ Testing: / { name = $3; next }
	FILENAME ~ /LastTest/ && /^ *ok [0-9]+.*# SKIP/ { sub(/.*# SKIP:? */, ""); skip($0); next }
	FILENAME ~ /LastTest/ && /^SKIP:? / { sub(/^SKIP:? */, ""); skip($0); next }
	FILENAME ~ /LastTest/ && /^\[  SKIPPED \] [^0-9]/ { skip($4); next }
	FILENAME !~ /LastTest/ && /\*\*\*Skipped/ {
		name = $4
		if (!(name in seen))
			skip("no reason given")
	}
	' "$1/Testing/Temporary/LastTest.log" "$1/ctest.log" | sort -u
}

# The skips whose prerequisite CM_TEST_MUST_WORK promises; a reason starts with its name and ':'.
cm_forbidden_skips() {
	awk -v must=" ${CM_TEST_MUST_WORK:-} " '{
		split($0, part, ": ")
		if (must == " all " || index(must, " " part[2] " "))
			print
	}'
}

# cm_ctest DIR [CTEST ARGUMENT...]: run tests; the last line printed is ctest's closing line.
cm_ctest() {
	local dir=$1 status=0 skips forbidden closing log=$1/ctest.log
	shift
	ctest --test-dir "$dir" --output-on-failure --no-tests=error -j "$(cm_jobs)" "$@" \
		</dev/null 2>&1 | tee "$log" || status=$?
	closing=$(grep -E '^[0-9]+% tests passed, [0-9]+ tests? failed out of [0-9]+' "$log" |
		tail -n 1 || :)
	[ -n "$closing" ] || {
		cm_say "ctest ran no test"
		return 1
	}
	skips=$(cm_skips "$dir")
	if [ -n "$skips" ]; then
		printf '\nSkipped:\n'
		printf '%s\n' "$skips" | sed 's/^/  /'
		forbidden=$(printf '%s\n' "$skips" | cm_forbidden_skips)
		if [ -n "$forbidden" ]; then
			printf '\nSkipped although CM_TEST_MUST_WORK says that it works here:\n'
			printf '%s\n' "$forbidden" | sed 's/^/  /'
			[ "$status" != 0 ] || status=1
		fi
	fi
	printf '\n%s\n' "$closing"
	return "$status"
}
