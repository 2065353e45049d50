# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: Apache-2.0
# What the tests inside the virtual machine share; sourced with the directory of the build.
#
# A test is a function test_NAME and gives one line of TAP; its single checks are comments. The plan
# comes first, from the list of functions, so that host.sh can tell a log that was cut off.
# Processes cost 50 ms here: what bash can do itself it does.
set -uo pipefail
shopt -s lastpipe
umask 022

build=$1
guest=${BASH_SOURCE[1]}
here=${guest%/*}
. "$here/names.sh"
# 6.1.0-57-amd64
kernel=$(uname -r | cut -d . -f 1,2)
bin=/tmp/bin
out=/tmp/out
err=/tmp/err
result=/tmp/result

mkdir $bin /tmp/w
cp "$build"/bin/casemate "$build"/bin/casemate-* $bin/
chmod 755 $bin/* /tmp/w
casemate=$bin/casemate
# the host's own state is below this file system
for dir in /var/lib/casemate /run/casemate; do
	mkdir -p $dir
	mount -t tmpfs -o mode=700 casemate-test $dir
done
# an RCU grace period is a long wait for processors that are emulated
echo 1 >/sys/kernel/rcu_expedited
export HOME=/root CASEMATE_ROOT=/var/lib/casemate/root
cd /tmp/w || exit 99

# --- who calls casemate -------------------------------------------------------------------------

# as USER [GROUP]: in that control group, without what a login would bring, till the test ends
as=()
as() {
	as=(bash "$here/as.sh" "$@" --)
}

# --- checks -------------------------------------------------------------------------------------

failed=0
check() { # NAME: by the status of the command before
	local status=$?
	if [ $status -eq 0 ]; then
		echo "#   $1"
		return 0
	fi
	failed=1
	echo "#   FAILED: $1"
	[ -z "${last:-}" ] || {
		echo "#     casemate $last -> ${rc:-?}"
		head -c 2000 "$out" 2>/dev/null | head -n 15 | sed 's/^/#     out: /'
		head -c 2000 "$err" 2>/dev/null | head -n 15 | sed 's/^/#     err: /'
	}
	return 1
}

is() { # GOT WANT NAME
	[ "$1" = "$2" ]
	check "$3" || printf '#     got:  %s\n#     want: %s\n' "${1//$'\n'/ | }" "${2//$'\n'/ | }"
}

like() { # TEXT GLOB NAME
	# shellcheck disable=SC2053
	[[ $1 == $2 ]]
	check "$3" || printf '#     got:  %s\n#     want: %s\n' "${1//$'\n'/ | }" "${2//$'\n'/ | }"
}

# --- running casemate ---------------------------------------------------------------------------

run() { # ARGUMENT...: status in rc, streams and result in files
	last="$*"
	rm -f "$result"
	"${as[@]}" "$casemate" run --result fd:9 "$@" >"$out" 2>"$err" 9>"$result" </dev/null
	rc=$?
}

start() { # NAME ARGUMENT...: in the background, its pid in bg, its streams in /tmp/NAME.out and .err
	local name=$1
	shift
	last="run $*"
	: >"/tmp/$name.out"
	"${as[@]}" "$casemate" run "$@" >"/tmp/$name.out" 2>"/tmp/$name.err" </dev/null &
	bg=$!
}

out() { cat $out; }
err() { cat $err; }
# KEY: a number or a string of the last result
result() { sed -n "s/.*\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p" $result; }

expect_status() { is "$rc" "$1" "$2"; }

# until_true SECONDS COMMAND...: true as soon as the command is
until_true() {
	local until=$((SECONDS + $1))
	shift
	while ! "$@"; do
		[ $SECONDS -le $until ] || return 1
		sleep 0.05
	done
}

has_text() { # FILE TEXT
	[[ $(<"$1") == *"$2"* ]]
} 2>/dev/null

# The groups that sessions made.
our_groups() {
	find /sys/fs/cgroup -type d -name 'cm-*' 2>/dev/null | sort
}
no_groups() { [ -z "$(our_groups)" ]; }

keeper_of() { # GROUP: the parent of the jail's init, which is the first process of the group
	local init
	read -r init <"$1/cgroup.procs" || return
	sed -n 's/^PPid:[[:space:]]*//p' "/proc/$init/status"
}

# --- the run ------------------------------------------------------------------------------------

run_tests() {
	local names name n=0 since bad=0
	mapfile -t names < <(test_names "$guest" "$kernel")
	echo "1..${#names[@]}"
	for name in "${names[@]}"; do
		n=$((n + 1))
		failed=0
		since=$SECONDS
		last=
		as=()
		"$name"
		until_true 5 no_groups
		check 'no control group is left' || our_groups | sed 's/^/#     /'
		if [ $failed = 0 ]; then
			echo "ok $n - $name ($((SECONDS - since)) s)"
		else
			echo "not ok $n - $name ($((SECONDS - since)) s)"
			bad=1
		fi
	done
	exit $bad
}
