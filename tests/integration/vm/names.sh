# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Which tests of a guest script run on a kernel: the machine's plan and the host's judgement.
#
# test_old_NAME is for 6.1 alone and test_new_NAME for 6.12 alone: what a kernel adds nothing to is
# tried once, because time is dear there.

test_names() { # GUEST-SCRIPT KERNEL
	local name
	sed -n 's/^\(test_[a-z0-9_]*\)() {.*/\1/p' "$1" | while read -r name; do
		case $2:$name in
		6.1:test_new_* | 6.12:test_old_*) ;;
		*) echo "$name" ;;
		esac
	done
}
