#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Conformance: reconnection.  A session is found by its id, whoever made it.
# shellcheck disable=SC2016
# SC2016: what single quotes keep from this shell is for the shell inside
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# what somebody else does to it
keeper_of() { cm events "$box" --type session.started | tail -n 1 | value keeperPid; }
kill_keeper() {
	local pid
	pid=$(keeper_of)
	kill -KILL "$pid"
	until_true 5 eval "! kill -0 $pid"
	until_true 5 eval '[ "$(status_of)" = stopped ]'
}

begin reconnection
mkdir data
give data
start_files
new_box box -v "$work/w/data:/data"
is "$(info id)" box 'R1 it has an id'
id=$(info id)
run stop box
run start box
is "$(info id) $(info status)" "$id running" 'R2 which stays over stop and start'
run exec box -- sh -c 'echo kept >/tmp/file'
run stop box
run start box
run exec box -- cat /tmp/file
expect_out kept 'R3 a file in /tmp stays'
run exec box -- pwd
is "$rc $(out)" "0 $root/box" 'R4 commands work after that'
echo seen >data/file
run exec box -- cat /data/file
expect_out seen 'R5 what was mounted is mounted again'
run stop box
stopped=$(status_of)
run exec box -- true
is "$stopped $rc $(status_of)" 'stopped 0 running' 'R6 a stopped one is started when it is needed'
run stop box
run exec box -- echo again
is "$rc $(out)" '0 again' 'R7 and the command that needed it runs'
for i in 1 2 3; do
	run exec box -- echo "$i"
	echo "$rc $(out)"
done >"$work/several"
is "$(tr '\n' ' ' <"$work/several")" '0 1 0 2 0 3 ' 'R8 so do those after it'
for i in 1 2 3; do
	cm stop box && cm start box && cm exec box -- echo "$i"
done >"$work/several" 2>&1
is "$(tr '\n' ' ' <"$work/several")" '1 2 3 ' 'R9 three rounds of stop and start'
pids=()
for i in 1 2 3; do
	cm stop box >"$work/out.$i" 2>&1 &
	pids+=($!)
done
all_of "${pids[@]}"
is "$bad $(status_of)" '0 stopped' 'R10 three stops at once'
before=$(info generation)
pids=()
for i in 1 2 3; do
	cm start box >"$work/out.$i" 2>&1 &
	pids+=($!)
done
all_of "${pids[@]}"
is "$bad $(status_of) $(($(info generation) - before))" '0 running 1' 'R11 three starts at once are one'
kill_keeper
run exec box -- sh -c 'cat /tmp/file; echo back'
is "$rc $(out | tr '\n' ' ')" '0 kept back ' 'R12 killed from outside, exec recovers it'
kill_keeper
run exec box -d -- echo back
id=$(out)
run wait box "$id"
is "$rc $(cm logs box "$id")" '0 back' 'R13 and so does exec -d'
run rm --files box
rm -r data
allow '/w/data'
finish

done_testing
