#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# clang-format has nothing to change.  Output differs between versions, so it is pinned.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

tool=clang-format-14
command -v $tool >/dev/null || tool=clang-format
lint_need $tool
if ! $tool --version | grep 'version 14\.' >/dev/null; then
	lint_need clang-format-14
fi
mapfile -t files < <(lint_files '\.[ch]$')
[ ${#files[@]} -gt 0 ] || exit 0
$tool --dry-run -Werror --style=file "${files[@]}"
