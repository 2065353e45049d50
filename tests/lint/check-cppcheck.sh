#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cppcheck over the product.  With a build directory (second argument) it remembers what passed.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
lint_need cppcheck

memory=()
if [ -n "${2:-}" ]; then
	mkdir -p "$2/lint-cppcheck"
	memory=("--cppcheck-build-dir=$2/lint-cppcheck")
fi
mapfile -t files < <(lint_files '^(runtime|isolation|providers)/.*\.c$')
[ ${#files[@]} -gt 0 ] || exit 0
cppcheck --quiet --std=c11 --enable=warning,style,performance,portability --library=posix \
	--inline-suppr --error-exitcode=1 --suppressions-list="$lint_dir/cppcheck-suppressions.txt" \
	-D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -D__linux__ -D__x86_64__ -I. -Iruntime/include \
	"${memory[@]}" -j "$(nproc)" "${files[@]}"
