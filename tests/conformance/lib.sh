# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the groups of the conformance suite share, over the library of tests with real jails; sourced
# with the same arguments.
#
# A test is a line of README.md's table, and has its number: of `is`, `like` and `ok` it is the last
# word, "C1 NAME".  A block has one session, $box.
# shellcheck source=tests/integration/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../integration/lib.sh"

python=/usr/bin/python3
$python -c 'import json' 2>/dev/null || skip_all PYTHON 'no python3'

# a running session; with OPTION... made with them
new_box() { # ID [OPTION...]
	box=$1
	cm start "$@" >"$work/start" 2>&1 || sed 's/^/# start: /' "$work/start"
}

# value PATH < JSON: a string as it is, anything else as JSON; a member that is not there is null.
# Of a list "[KEY=VALUE]" is the first object that has it, "#" the number.
value() {
	$python -c '
import json, re, sys
v = json.load(sys.stdin)
for step in re.findall(r"\[[^]]*\]|[^.\[\]]+", sys.argv[1]):
    if step == "#":
        v = len(v)
    elif step.startswith("["):
        key, _, want = step[1:-1].partition("=")
        v = next((x for x in v if str(x.get(key)) == want), None)
    else:
        v = v.get(step) if v is not None else None
print(v if isinstance(v, str) else json.dumps(v))' "$1"
}

info() { cm inspect --json "${2:-$box}" 2>/dev/null | value "$1"; } # KEY [ID]
status_of() { info status; }
# of a command: what ps says
exec_info() { cm ps "$box" -a --json 2>/dev/null | value "[exec=$1].$2"; } # EXEC KEY

# spawn ARGUMENT OF exec...: a detached command; its id in $id
spawn() {
	run exec "$box" -d "$@"
	id=$(out)
}

# wait_for EXEC: rc is the command's
wait_for() { run wait "$box" "$1"; }
logs() { cm logs "$box" "$@" 2>&1; }
shows() { logs "$1" | grep -q -- "$2"; } # EXEC TEXT
is_running() { [ "$(exec_info "$1" state)" = running ]; }

timed() { # COMMAND...: ms has how long
	local since
	since=$(now_ms)
	"$@"
	# shellcheck disable=SC2034
	ms=$(($(now_ms) - since))
}

# all_of PID...: wait; bad has how many failed
all_of() {
	local pid
	bad=0
	for pid; do
		wait "$pid" || bad=$((bad + 1))
	done
}
