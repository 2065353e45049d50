#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What of the caller's environment gets into a jail, and what does not.
# shellcheck disable=SC2016
# SC2016: what single quotes keep from this shell is for the shell inside
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# value NAME: in the last output of env
value() { sed -n "s/^$1=//p" "$work/out"; }
has_name() { grep -q "^$1=" "$work/out"; }

begin 'the allow list'
export SECRET_TOKEN=hunter2 AWS_SECRET_ACCESS_KEY=x SSH_AUTH_SOCK=/x DBUS_SESSION_BUS_ADDRESS=x
export DISPLAY=:0 LD_PRELOAD_X=x CASEMATE_GIT_TOKEN=x npm_config__authToken=x
export LC_TIME=de_DE.UTF-8 TZ=Europe/Berlin NO_COLOR=1 COLORTERM=truecolor EDITOR=vi PAGER=less
export FORCE_COLOR=1 CI=true LANGUAGE=de TERM=xterm-256color
run run -- env
expect_status 0 'env runs'
! grep -q 'hunter2' "$work/out"
ok 'a secret of the caller is not inside'
left=
for name in SECRET_TOKEN AWS_SECRET_ACCESS_KEY SSH_AUTH_SOCK DBUS_SESSION_BUS_ADDRESS DISPLAY \
	LD_PRELOAD_X CASEMATE_GIT_TOKEN npm_config__authToken CASEMATE_ROOT XDG_STATE_HOME \
	XDG_CACHE_HOME CM_TEST_IN_NAMESPACE OLDPWD; do
	! has_name $name || left="$left $name"
done
is "$left" '' 'nor anything else that is not listed'
left=
for pair in LC_TIME=de_DE.UTF-8 TZ=Europe/Berlin NO_COLOR=1 COLORTERM=truecolor EDITOR=vi \
	PAGER=less FORCE_COLOR=1 CI=true LANGUAGE=de TERM=xterm-256color "HOME=$HOME" \
	TMPDIR=/tmp CASEMATE=1 XDG_RUNTIME_DIR=/run/user/1000 LANG=C.UTF-8; do
	grep -qx -- "$pair" "$work/out" || left="$left $pair"
done
is "$left" '' 'what is listed is'
[[ $(value CASEMATE_SESSION) == run-* ]]
ok 'the session is named'
run run -- sh -c 'tr "\0" "\n" </proc/self/environ; cat /proc/1/environ'
! grep -q hunter2 "$work/out"
ok 'nor in what /proc shows'
unset SECRET_TOKEN AWS_SECRET_ACCESS_KEY SSH_AUTH_SOCK DBUS_SESSION_BUS_ADDRESS DISPLAY
unset LD_PRELOAD_X CASEMATE_GIT_TOKEN npm_config__authToken LC_TIME TZ NO_COLOR COLORTERM EDITOR
unset PAGER FORCE_COLOR CI LANGUAGE
finish

begin 'options'
export PASSED=one CI_A=1 CI_B='two words' CIX=no OTHER=x
run run -e SET='a=b c' -e PASSED -e NOT_THERE --pass-env 'CI_*' -- env
expect_status 0 'env runs'
is "$(value SET)" 'a=b c' '-e NAME=VALUE'
is "$(value PASSED)" one '-e NAME passes'
! has_name NOT_THERE
ok '-e NAME of what is not set sets nothing'
is "$(value CI_A) $(value CI_B)" '1 two words' '--pass-env PATTERN'
! has_name CIX && ! has_name OTHER
ok 'and no more than it says'
printf '%s\n' '# comment' 'FROM_FILE=1 2' '' 'PASSED' 'QUOTED="kept"' >"$work/env"
chmod 644 "$work/env"
run run --env-file "$work/env" -e FROM_FILE2=x -- env
is "$(value FROM_FILE) $(value PASSED) $(value QUOTED)" '1 2 one "kept"' '--env-file'
run run -e A=1 -e A=2 -- sh -c 'echo $A'
expect_out 2 'the last one of a name holds'
run run -e '=x' -- true
refused '*' '*' 'a name that is none'
run run --env-file "$work/not-there" -- true
refused '*' '*' 'a file that is not there'
run run -e HOME=/elsewhere -- sh -c 'echo $HOME'
[ "$rc" = 0 ] || [ "$rc" = 125 ]
ok 'a HOME of another path is taken or refused'
unset PASSED CI_A CI_B CIX OTHER
finish

begin 'offline switches'
run run -- sh -c 'echo $npm_config_prefer_offline $CARGO_NET_OFFLINE $PIP_RETRIES $GOPROXY $YARN_ENABLE_NETWORK'
expect_out 'true true 0 off 0' 'are set without a network'
run run -e npm_config_prefer_offline=false -e GOPROXY=direct -- sh -c 'echo $npm_config_prefer_offline $GOPROXY'
expect_out 'false direct' 'unless the caller sets them'
run run --network host -- sh -c 'echo "<$npm_config_prefer_offline$CARGO_NET_OFFLINE$GOPROXY>"'
expect_out '<>' 'and not with one'
run run -- bash -c 'exec 3<>/dev/tcp/192.0.2.1/80'
[ "$rc" != 0 ] && grep -qx 'casemate: note: this session has no network; [0-9]* attempts* refused' <(sed 's/^note/casemate: note/; s/^casemate: casemate/casemate/' "$work/err")
ok 'a command that fails for want of a network is told why'
finish

begin PATH
mkdir "$work/w/bin"
printf '#!/bin/sh\necho mine\n' >"$work/w/bin/own-tool"
chmod 755 "$work/w/bin/own-tool"
give "$work/w"
start_files
PATH=$work/w/bin:/no/such/dir:$PATH
run run -- sh -c 'echo $PATH; own-tool'
like "$(out)" "*$work/w/bin*" 'the order and the entries of the caller'
! grep -q /no/such/dir "$work/out"
ok 'without what is not inside'
is "$(out | tail -n 1)" mine 'and programs of the workspace are found'
PATH=${PATH#"$work/w/bin:/no/such/dir:"}
run run -e PATH=/usr/bin -- sh -c 'echo $PATH'
expect_out /usr/bin 'another one with -e'
finish

begin identity
run run -- sh -c 'id -un; id -u; echo $USER $LOGNAME; getent passwd $(id -u) | cut -d: -f6; umask; ulimit -c'
[ "$identity" = root ] && is_root && name=user || name=$user
expect_out "$name
1000
$name $name
$HOME
0022
0" 'user, home, umask and core limit'
run run --user root -- sh -c 'id -u; touch /etc/x 2>/dev/null; echo $?'
if [ "$rc" = 0 ]; then
	is "$(out | head -n 1)" 0 '--user root'
else
	refused '*' '*' '--user root is refused where ids do not allow it'
fi
finish

done_testing
