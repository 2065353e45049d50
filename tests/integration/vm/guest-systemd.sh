#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Limits below systemd: scopes of a user's manager, from where its users come, and without one.
#
#   guest-systemd.sh DIRECTORY-OF-THE-BUILD     in the virtual machine, started by host.sh
# shellcheck disable=SC2016
# SC2016: what single quotes keep from this shell is for the shell inside
. "$(dirname "${BASH_SOURCE[0]}")/guest-lib.sh"

# the user that scripts/vm has made, lingering, with a manager
manager=/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service
useradd -m -u 1234 ci

# What a login, a service and the manager's own service see: the script on standard input.
by_login() { su -l casemate -c "bash $1"; }
by_manager() {
	setpriv --reuid=1000 --regid=1000 --init-groups env XDG_RUNTIME_DIR=/run/user/1000 \
		systemd-run --user --quiet --pipe --wait bash "$1"
}
by_service() { systemd-run --quiet --uid=casemate --pipe --wait bash "$1"; }

of_user() { # ARGUMENT-OF-SYSTEMCTL...
	setpriv --reuid=1000 --regid=1000 --init-groups env XDG_RUNTIME_DIR=/run/user/1000 \
		systemctl --user "$@"
}
our_scopes() { of_user list-units --all --plain --no-legend 'casemate-*.scope'; }
no_scopes() { [ -z "$(our_scopes)" ]; }
nothing_below() { [ -z "$(find "$manager"/casemate.slice -mindepth 1 -type d 2>/dev/null)" ]; }

cat >/tmp/limits.sh <<'S'
cd "$(mktemp -d)" && cat /proc/self/cgroup
/tmp/bin/casemate run --no-workspace -m 64M --pids-limit 40 --cpus 0.5 --result fd:9 -- sh -c '
	cat /proc/self/cgroup; cd /sys/fs/cgroup; cat memory.max memory.swap.max pids.max cpu.max' 9>level
echo "status $?"
sed -n 's/.*"level":"\([^"]*\).*/\1/p' level
/tmp/bin/casemate run --no-workspace -m 16M --result fd:9 -- tail /dev/zero 9>end
echo "status $?"
sed -n 's/.*"end":"\([^"]*\).*/\1/p' end
S

limits_from() { # WAY GLOB-OF-THE-CALLER'S-GROUP
	last="$1 limits.sh"
	"$1" /tmp/limits.sh >"$out" 2>"$err" </dev/null
	rc=$?
	like "$(sed 1q "$out")" "$2" "from '$2'"
	is "$(tail -n +2 "$out")" '0::/
67108864
0
40
50000 100000
status 0
full-single-id
status 137
memory-limit' 'limits are those that were asked for, and act'
	like "$(err)" 'casemate: command ended by the memory limit (16.0 MiB)*' 'which is said'
	until_true 5 no_scopes
	check 'the scope goes with the session' || our_scopes | sed 's/^/#     /'
	until_true 5 nothing_below
	check 'and nothing is left in the slice'
}

test_system_is_up() {
	like "$(systemctl is-system-running)" running 'systemd runs'
	like "$(loginctl list-users --no-legend)" '*1000 casemate*' 'the user has a manager'
}

test_from_a_login() { limits_from by_login '0::/user.slice/user-1000.slice/session-*.scope'; }
test_from_the_manager() { limits_from by_manager '0::/user.slice/*/user@1000.service/app.slice/*'; }
test_from_a_service() { limits_from by_service '0::/system.slice/run-*.service'; }

# --- a session of the user's -------------------------------------------------------------------

test_session_in_a_scope() {
	local scope=$manager/casemate.slice/casemate-s1.scope
	as casemate
	start beat --session s1 -m 64M -- sh -c 'echo ready; exec sleep 300'
	until_true 20 has_text /tmp/beat.out ready
	check 'a session runs'
	is "$(our_groups)" "$scope"/cm-s1 'in its scope'
	of_user daemon-reload
	is "$(<"$scope"/cm-s1/memory.max)" $((64 << 20)) 'a reload of the manager leaves the limit'
	run --session s1 -- sh -c 'exec tail /dev/zero'
	is "$rc $(result end)" '137 memory-limit' 'it acts on a second command'
	kill -0 "$bg"
	check 'the first goes on'
	"${as[@]}" "$casemate" stop s1 >"$out" 2>"$err"
	check 'stop'
	wait "$bg"
	run --session s1 -- echo again
	is "$rc $(out)" '0 again' 'starts at once in a new scope of the same name'
	kill -KILL "$(keeper_of "$scope"/cm-s1)"
	run --session s1 -- echo 'and again'
	is "$rc $(out)" '0 and again' 'also after kill -9 of the keeper'
	"${as[@]}" "$casemate" rm s1 >"$out" 2>"$err"
	check 'rm'
	until_true 5 no_scopes
	check 'takes the scope away'
}

# --- no manager, or none that answers ------------------------------------------------------------

test_without_a_manager() {
	as ci
	run --no-workspace -m 64M -- true
	expect_status 125 'a named limit is refused'
	like "$(err)" "casemate: memory limit cannot be enforced here (no systemd user session)
hint: sudo loginctl enable-linger ci, or use --memory '64M?' to go on without" \
		'with its cause and what to do'
	run --no-workspace -- echo there
	is "$(out) $(result level)" 'there no-cgroup-single-id' 'without one it runs, and says so'
	"${as[@]}" "$casemate" doctor >"$out" 2>"$err"
	like "$(out)" '*sudo loginctl enable-linger ci*' 'doctor tells what to do'
	loginctl enable-linger ci
	until_true 30 test -S /run/user/1234/systemd/private
	check 'with a manager'
	run --no-workspace -m 64M -- cat /sys/fs/cgroup/memory.max
	is "$rc $(out)" '0 67108864' 'the limit holds'
	# what casemate-scope has to say must reach the user
	mount --bind /dev/null /run/user/1234/bus && mount --bind /dev/null /run/user/1234/systemd/private
	run --no-workspace -m 64M -- true
	expect_status 125 'a manager that does not answer is an error'
	is "$(err)" "casemate: no cgroup to be had for user 'ci' (no systemd user session)
hint: sudo loginctl enable-linger ci" 'with its cause and what to do'
	is "$(result code)" level 'in the result, too'
	run --session dead -m 64M -- true
	is "$rc $(err)" "125 casemate: no cgroup to be had for user 'ci' (no systemd user session)
hint: sudo loginctl enable-linger ci" 'the same of a session'
	umount /run/user/1234/bus /run/user/1234/systemd/private
	"${as[@]}" "$casemate" ls >"$out" 2>"$err"
	[[ $(out) != *dead* ]]
	check 'which is not there'
	loginctl disable-linger ci
	until_true 20 eval '[ ! -e /run/user/1234 ]'
	check 'the manager goes'
	mkdir -p /run/user/1234
	: >/run/user/1234/bus
	chown -R ci /run/user/1234
	chmod 700 /run/user/1234
	run --no-workspace -m 64M -- true
	like "$rc $(err)" "125 *no systemd user session?
hint: sudo loginctl enable-linger ci, *" 'a socket that it left is not taken for it'
	rm -rf /run/user/1234
}

# --- root ---------------------------------------------------------------------------------------

test_root_below_systemd() {
	start beat --session r1 -m 64M -- sh -c 'echo ready; exec sleep 300'
	until_true 20 has_text /tmp/beat.out ready
	check 'a session runs'
	is "$(our_groups)" /sys/fs/cgroup/casemate.slice/cm-r1 'in the slice of casemate'
	systemctl daemon-reload
	is "$(</sys/fs/cgroup/casemate.slice/cm-r1/memory.max)" $((64 << 20)) \
		'a reload of systemd leaves the limit'
	"$casemate" rm r1 >"$out" 2>"$err"
	check 'rm'
	wait "$bg"
}

run_tests
