#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every script passes shellcheck; they are found by their names or first lines.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
lint_need shellcheck

mapfile -t files < <(lint_files '.' | while IFS= read -r file; do
	case $file in
	*.sh) echo "$file" ;;
	*.* ) [[ $file != .ci/* ]] || grep -lIm1 -E '^#!.*[ /](ba|da)?sh( |$)' "$file" ;;
	*) head -n 1 "$file" | tr -d '\0' | grep -qE '^#!.*[ /](ba|da)?sh( |$)' && echo "$file" ;;
	esac || :
done)
[ ${#files[@]} -gt 0 ] || exit 0
# SC2317: a function that is called through a trap or a variable is taken for unreachable;
# what a script sources is looked for beside it, then from the top of the repository
shellcheck -x -e SC2317 -P SCRIPTDIR -P . "${files[@]}"
