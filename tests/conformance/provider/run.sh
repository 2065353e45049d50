#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The suite of providers against one of them:
#
#   run.sh DIRECTORY-OF-THE-BINARIES SUITE local root|plain [GROUP[/TEST]]
#   run.sh DIRECTORY-OF-THE-BINARIES SUITE e2b|platform [GROUP[/TEST]]
#
# local: with real jails, as root or as an ordinary user.  The others talk to a stand-in on loopback, which
# writes down what a client must not do; that is a failure.
# shellcheck disable=SC2317,SC2086
set -uo pipefail

here=$(realpath -- "$(dirname "${BASH_SOURCE[0]}")")
suite=$(realpath -- "$2")
provider=$3
[ "$provider" != local ] || {
	only=${5:-}
	set -- "$1" "$4" "$suite" "$only"
	# what it runs again has to find itself
	CM_TEST_SUITE=$suite
	export CM_TEST_SUITE
	exec bash "$here/run-local.sh" "$@"
}
helpers=$here/../../helpers
python=/usr/bin/python3

# CM_TEST_MUST_WORK="NAME..." (or "all") makes a missing prerequisite a failure
skip_all() { # PREREQUISITE REASON
	case " ${CM_TEST_MUST_WORK:-} " in
	*' all '* | *" $1 "*)
		echo "not ok 1 - $1 must work here: $2"
		echo '1..1'
		exit 1
		;;
	esac
	echo "ok 1 - all # SKIP $1: $2"
	echo '1..1'
	exit 0
}

# The machine's records are not ours: root has a place of its own for them, which goes with it.
if [ "$(id -u)" = 0 ]; then
	if [ -z "${CM_TEST_IN_NAMESPACE:-}" ]; then
		[ -d /var/lib/casemate ] || mkdir -m 700 /var/lib/casemate
		CM_TEST_IN_NAMESPACE=1 exec unshare --mount --propagation private bash "$0" "$@"
	fi
	mount -t tmpfs -o mode=700,size=64m casemate-test /var/lib/casemate || {
		echo "Bail out! cannot mount over '/var/lib/casemate'"
		exit 99
	}
fi

$python -c 'import json' 2>/dev/null || skip_all TOOLS 'no python3'
command -v openssl >/dev/null || skip_all TOOLS 'no openssl'
dir=$(mktemp -d "${TMPDIR:-/tmp}/casemate-suite.XXXXXX") || exit 99
server=
tls_server=
end_server() { # PID
	[ -n "$1" ] || return 0
	kill -TERM "$1" 2>/dev/null
	for _ in $(seq 100); do
		kill -0 "$1" 2>/dev/null || break
		sleep 0.1
	done
	kill -KILL "$1" 2>/dev/null
	wait "$1" 2>/dev/null
}
clean_up() {
	local status=$?
	trap - EXIT
	end_server "$server"
	end_server "$tls_server"
	rm -rf --one-file-system "$dir"
	exit $status
}
trap clean_up EXIT
trap 'exit 1' INT TERM HUP

mkdir "$dir/server" "$dir/home" "$dir/state"
records=$dir/state
[ "$(id -u)" != 0 ] || records=/var/lib/casemate
touch "$dir/violations" "$dir/log"
# whose clock is right is nobody's business
options=(--clock-ahead 10800)
[ "$provider" != e2b ] || options+=(--api-key e2b_0123456789abcdef)
[ "$provider" != platform ] || options+=(--token suite-token)
$python "$helpers/${provider}_server.py" --dir "$dir/server" --violations "$dir/violations" \
	--log "$dir/log" "${options[@]}" >"$dir/port" 2>"$dir/server.err" &
server=$!
for _ in $(seq 100); do
	[ ! -s "$dir/port" ] || break
	kill -0 "$server" 2>/dev/null || break
	sleep 0.1
done
port=$(sed -n 's/^PORT \([0-9]*\)$/\1/p' "$dir/port")
[ -n "$port" ] || {
	wait "$server"
	status=$?
	server=
	[ $status -ne 77 ] || skip_all NAMESPACES 'no sandboxes can be made here'
	sed 's/^/# /' "$dir/server.err"
	echo 'Bail out! the stand-in did not start'
	exit 99
}

env=(PATH="$PATH" HOME="$dir/home" XDG_STATE_HOME="$dir/state" LANG=C.UTF-8
	CM_TEST_PORT="$port" CM_TEST_LOG="$dir/log" CM_TEST_DIR="$dir")
case $provider in
e2b)
	env+=(E2B_API_KEY=e2b_0123456789abcdef E2B_API_URL="http://127.0.0.1:$port"
		E2B_SANDBOX_URL="http://127.0.0.1:$port")
	;;
platform)
	env+=(MASTRA_PROJECT_ID=project-1 MASTRA_ENVIRONMENT_ID=environment-1
		MASTRA_PLATFORM_ACCESS_TOKEN=suite-token
		MASTRA_WORKSPACE_PROXY_URL="http://127.0.0.1:$port")
	;;
esac
# the same with a certificate that nobody vouches for
if openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost \
	-addext 'subjectAltName=IP:127.0.0.1' -keyout "$dir/key" -out "$dir/cert" 2>/dev/null; then
	mkdir "$dir/tls"
	$python "$helpers/${provider}_server.py" --dir "$dir/tls" --tls "$dir/cert" "$dir/key" \
		--violations "$dir/violations" --log "$dir/tls.log" "${options[@]}" >"$dir/tls.port" \
		2>/dev/null &
	tls_server=$!
	for _ in $(seq 100); do
		[ ! -s "$dir/tls.port" ] || break
		sleep 0.1
	done
	env+=(CM_TEST_TLS_URL="https://127.0.0.1:$(sed -n 's/^PORT //p' "$dir/tls.port")")
fi
# the plan is the last line, and two more tests come
(cd "$dir/home" && env -i "${env[@]}" "$suite" "$provider" ${4:+"$4"}) |
	tee "$dir/out" | grep --line-buffered -v '^1\.\.'
status=${PIPESTATUS[0]}
plan=$(sed -n 's/^1\.\.\([0-9]*\)$/\1/p' "$dir/out")
if [ -z "$plan" ]; then
	echo "Bail out! the suite ended with status $status"
	sed 's/^/# server: /' "$dir/server.err" | head -n 20
	exit 99
fi
if [ -s "$dir/violations" ]; then
	echo "not ok $((plan + 1)) - the rules of the service were kept"
	head -n 40 "$dir/violations" | sed 's/^/# /'
	status=1
else
	echo "ok $((plan + 1)) - the rules of the service were kept"
fi
left=$(find "$records" -name '*.lock')
if [ -n "$left" ]; then
	echo "not ok $((plan + 2)) - no lock is left"
	printf '%s\n' "$left" | head -n 20 | sed 's/^/# /'
	status=1
else
	echo "ok $((plan + 2)) - no lock is left"
fi
[ ! -s "$dir/server.err" ] || sed 's/^/# server: /' "$dir/server.err" | head -n 20
echo "1..$((plan + 2))"
exit $status
