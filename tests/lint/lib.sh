# SPDX-License-Identifier: Apache-2.0
# What the lint scripts share.  Sourced by a script that takes the tree to check as its first
# argument (default: the repository), so that selftest.sh can give it a bad one.
# shellcheck shell=bash disable=SC2034
set -euo pipefail
# lint_report ends pipelines and keeps the status
shopt -s lastpipe

lint_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
lint_root=$(cd "${1:-$lint_dir/../..}" && pwd)
lint_status=0
cd "$lint_root"

# lint_files REGEX: the project's files whose path matches; without git, what is not a build
lint_files() {
	if [ -e .git ]; then
		git ls-files
	else
		find . -path './build*' -prune -o -type f -print | sed 's|^\./||'
	fi | { grep -E -- "$1" || :; } | while IFS= read -r file; do
		# a file may be deleted and not yet committed
		[ ! -f "$file" ] || printf '%s\n' "$file"
	done | sort
}

# lint_report RULE: standard input is what breaks the rule; nothing is fine
lint_report() {
	local found
	found=$(cat)
	[ -n "$found" ] || return 0
	printf '%s:\n' "$1"
	printf '%s\n' "$found" | sed 's/^/  /'
	lint_status=1
}

# A tool that is not here is a skip, and a failure where CM_TEST_MUST_WORK says it must be.
lint_need() {
	command -v "$1" >/dev/null && return 0
	echo "SKIP TOOLS: $1 is not installed"
	case " ${CM_TEST_MUST_WORK:-} " in
	*' all '* | *' TOOLS '*) exit 1 ;;
	esac
	exit 77
}
