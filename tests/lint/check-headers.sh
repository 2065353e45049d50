#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Each header compiles alone and twice: public ones as C11 and as C++11, both pedantic; internal
# ones as the GNU C that the project is built with.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
: "${CC:=cc}" "${CXX:=c++}"
lint_need "$CC"
lint_need "$CXX"

warnings=(-Wall -Wextra -Wpedantic -Werror -fsyntax-only -I. -Iruntime/include)

# twice HEADER COMPILER OPTION...
twice() {
	local header=$1
	shift
	printf '#include "%s"\n#include "%s"\nextern int cm_not_empty;\n' "$header" "$header" |
		"$@" "${warnings[@]}" - || {
		printf '%s does not compile alone: %s\n' "$header" "$*"
		lint_status=1
	}
}

while IFS= read -r header; do
	case $header in
	runtime/include/*)
		twice "${header#runtime/include/}" "$CC" -std=c11 -x c
		twice "${header#runtime/include/}" "$CXX" -std=c++11 -x c++
		;;
	*) twice "$header" "$CC" -std=gnu11 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -x c ;;
	esac
done < <(lint_files '^(runtime|isolation|providers)/.*\.h$')
exit "$lint_status"
