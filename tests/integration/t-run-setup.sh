#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Setup: its marker, its output, what it leaves when it fails or is killed, and going on from there.
# shellcheck disable=SC2016
# SC2016: what single quotes keep from this shell is for the shell inside
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/lib-repo.sh"

digest_of() { printf '%s' "$1" | sha256sum | cut -d' ' -f1; }

begin 'the marker'
repository "$work/w"
start_files
run run --session m --repo . --setup 'echo one >>made' --setup '  ' --setup ' echo two >>made ' -- cat made
expect_out 'one
two' 'commands run in order'
printf 'sha256:%s' "$(digest_of $'echo one >>made\n echo two >>made ')" >"$work/want"
cmp "$root/m/.mastra-sandbox/setup" "$work/want"
ok 'is what Mastra writes, byte for byte: no newline, and no blank command in its digest'
is "$(stat -c %a "$root/m/.mastra-sandbox/setup")" 644 'and can be read by others'
run run --session m --setup 'echo one >>made' --setup ' echo two >>made ' -- cat made
is "$(out)
$(err)" 'one
two
' 'nor do blank commands make others of them'
run rm --files m
finish

done_testing
