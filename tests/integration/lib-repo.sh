# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# A repository of the caller's, for the tests of --repo.  After lib.sh.
command -v git >/dev/null || skip_all TOOLS 'no git'

# shellcheck disable=SC2154
# SC2154: lib.sh knows who calls
g() { "${as[@]}" git "$@"; }

repository() { # DIR
	g init -q -b main "$1"
	g -C "$1" config user.name a
	g -C "$1" config user.email a@example.org
	printf 'one\n' >"$1/file"
	printf '#!/bin/sh\necho script\n' >"$1/run"
	chmod 755 "$1/run"
	give "$1/file" "$1/run"
	g -C "$1" add .
	g -C "$1" commit -q -m first
	g -C "$1" tag v1
	echo two >"$1/file"
	g -C "$1" commit -q -am second
	g -C "$1" branch side
}
