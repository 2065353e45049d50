# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the tests of terminals share, over lib.sh: casemate in a terminal of its own, as a user would
# drive it (tests/helpers/terminal.py has the steps).
# shellcheck source=tests/integration/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

driver=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/../helpers/terminal.py
python=/usr/bin/python3
$python -c 'import pty, termios' 2>/dev/null || skip_all PYTHON 'no python3'

# terminal STEP... -- ARGUMENT OF CASEMATE...: what is shown in out, how it ended in err
terminal() {
	local steps=()
	while [ "$1" != -- ]; do
		steps+=("$1")
		shift
	done
	shift
	last_args="$*"
	$python "$driver" "${steps[@]}" -- "${as[@]}" "$casemate" "$@" >"$work/out" 2>"$work/err"
	rc=$?
}

# ended STATUS NAME: every step came, the program ended so, the terminal is as it was
ended() {
	[ "$rc" = 0 ] && grep -qx "status $1" "$work/err" && grep -qx 'modes same' "$work/err"
	ok "$2" || sed 's/^/# /' "$work/err"
}

shown() { # TEXT NAME
	tr -d '\r' <"$work/out" | grep -qF -- "$1"
	ok "$2"
}

# in_shell STEP...: at the prompt of a shell with jobs
in_shell() {
	last_args='in a shell'
	$python "$driver" 'expect:$ ' "$@" 'send:exit 0\n' end -- "${as[@]}" env HISTFILE= 'PS1=$ ' \
		bash --norc --noprofile --noediting -i >"$work/out" 2>"$work/err"
	rc=$?
}
