#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A lint script that cannot fail is worth nothing: each is run on a small good tree, which must
# pass, and on that tree with one thing broken at a time, which must fail and name the place.
#
#   selftest.sh CHECK      CHECK is the middle of check-CHECK.sh
# shellcheck disable=SC2016
set -euo pipefail
lint_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
check=$1
script=$lint_dir/check-$check.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
count=0
failures=0
# a tool that is not here would be taken for a check that found something
export CM_TEST_MUST_WORK=

licence='/* SPDX-License-Identifier: Apache-2.0 */'

# put FILE LINE...: write it into the tree
put() {
	local file=$work/tree/$1
	shift
	mkdir -p "${file%/*}"
	printf '%s\n' "$@" >"$file"
}

good_tree() {
	rm -rf "$work/tree"
	mkdir "$work/tree"
	put README.md 'a tree'
	put runtime/include/casemate/thing.h "$licence" '#ifndef CASEMATE_THING_H' \
		'#define CASEMATE_THING_H' 'int cm_thing(int n);' '#endif'
	put runtime/base/thing.c "$licence" '#include "casemate/thing.h"' '' 'int cm_thing(int n)' \
		'{' $'\treturn n + 1; /* not getenv("HOME") */' '}'
	put runtime/base/thing.h "$licence" '#ifndef CM_RUNTIME_BASE_THING_H' \
		'#define CM_RUNTIME_BASE_THING_H' 'struct cm_thing {' $'\tint n;' '};' '#endif'
	put isolation/mech/use.c "$licence" '#include "runtime/base/thing.h"' '' \
		'int cm_use(const struct cm_thing *thing);' '' 'int cm_use(const struct cm_thing *thing)' \
		'{' $'\treturn thing->n;' '}'
	put scripts/go '#!/bin/sh' 'echo "$1"'
	cp "$lint_dir/../../.clang-format" "$lint_dir/../../.clang-tidy" "$work/tree"
	mkdir "$work/tree/build"
	database runtime/base/thing.c isolation/mech/use.c
}

# database FILE...: what cmake writes for them
database() {
	local file separator=
	{
		echo '['
		for file; do
			printf '%s{\n  "directory": "%s",\n  "command": "%s",\n  "file": "%s"\n}' "$separator" \
				"$work/tree" "cc -I$work/tree -I$work/tree/runtime/include -c $work/tree/$file" \
				"$work/tree/$file"
			separator=$',\n'
		done
		printf '\n]\n'
	} >"$work/tree/build/compile_commands.json"
}

# git's list is what the checks go by
track() {
	rm -rf "$work/tree/.git"
	git -C "$work/tree" init -q
	echo build >"$work/tree/.git/info/exclude"
	git -C "$work/tree" add -A
}

run_check() {
	status=0
	case $check in
	tidy | cppcheck) "$script" "$work/tree" "$work/tree/build" >"$work/out" 2>&1 || status=$? ;;
	*) "$script" "$work/tree" >"$work/out" 2>&1 || status=$? ;;
	esac
	[ "$status" != 77 ] || {
		cat "$work/out"
		exit 77
	}
}

passes() {
	count=$((count + 1))
	run_check
	if [ "$status" = 0 ]; then
		echo "ok $count - $1 passes"
	else
		sed 's/^/# /' "$work/out"
		echo "not ok $count - $1 passes"
		failures=$((failures + 1))
	fi
}

# fails WHAT TEXT: the check must fail, and what it prints must contain TEXT
fails() {
	count=$((count + 1))
	run_check
	if [ "$status" != 0 ] && grep -qF -- "$2" "$work/out"; then
		echo "ok $count - $1 is found"
	else
		sed 's/^/# /' "$work/out"
		echo "not ok $count - $1 is found (status $status)"
		failures=$((failures + 1))
	fi
	good_tree
}

# breaks WHAT FILE LINE...: the good tree with this file in it must fail and name the file
breaks() {
	put "${@:2}"
	track
	fails "$1" "$2"
}

cases_layers() {
	breaks 'an include that goes up' runtime/base/up.c "$licence" '#include "isolation/mech/a.h"'
	breaks 'an include that goes sideways' isolation/mech/up.h "$licence" \
		'  #  include "runtime/store/store.h"'
	breaks 'a plan file that knows the spec' isolation/plan/codec.c "$licence" \
		'#include "runtime/spec/spec.h"'
	breaks 'a keeper that knows the store' isolation/keeper/k.c "$licence" \
		'#include "runtime/store/store.h"'
	breaks 'an internal header in a public one' runtime/include/casemate/x.h "$licence" \
		'#include "runtime/base/thing.h"'
	breaks 'an include from the own directory' runtime/base/near.c "$licence" '#include "thing.h"'
	breaks 'an include that climbs' runtime/base/climb.c "$licence" \
		'#include "runtime/base/../store/store.h"'
	breaks 'a directory without a layer' runtime/newdir/x.c "$licence"
	put isolation/plan/build_x.c "$licence" '#include "runtime/spec/spec.h"'
	put isolation/keeper/k.c "$licence" '#include "runtime/store/keeper_lock.h"'
	put providers/local/l.c "$licence" '#include "isolation/keeper/proto.h"'
	track
	passes 'what the rules allow'
}

cases_banned() {
	local word
	for word in getenv secure_getenv clock_gettime malloc calloc realloc strdup strcpy strcat \
		sprintf system popen alloca gets atoi; do
		breaks "$word" runtime/base/bad.c "$licence" "void *f(void);" "void *f(void)" '{' \
			"	return $word (0);" '}'
	done
	breaks 'a call over two lines' isolation/mech/bad.c "$licence" 'int x = atoi(' '"1");'
	breaks 'a note to self' runtime/base/bad.c "$licence" "/* TO""DO: later */"
	breaks 'a note to self in a script' scripts/later '#!/bin/sh' "# FIX""ME"
	breaks 'a missing licence' runtime/base/bad.c 'int x;'
	put notes.txt 'x'
	track
	fails 'a stray file at the top' notes.txt
	put docs/x.md 'x'
	track
	fails 'a stray directory at the top' docs
	put runtime/spec/config.c "$licence" 'char *e = getenv("X");'
	put runtime/base/clock.c "$licence" 'int t = clock_gettime(0, 0);'
	put runtime/base/alloc.c "$licence" 'void *p = malloc(1);'
	put runtime/base/fine.c "$licence" '// malloc(1)' 'char *s = "getenv(\"x\") system(1)";' \
		'int a = thing->time(0) + cm_malloc(1) + my_system(2);' 'struct a system;' '/* TO''DOS */'
	track
	passes 'the owners, comments, strings and longer names'
}

cases_text() {
	local host
	breaks "a machine's path" scripts/where 'cd /wo''rk/tree'
	breaks "a user's home" README.md 'see /U''sers/jane/src'
	for host in 'registry.''npmjs.org' 'pypi.''org' 'deb.''debian.org' 'ghcr.''io'; do
		breaks "the host $host" scripts/fetch "curl https://$host/x"
	done
	put runtime/share/names/npm 'registry.''npmjs.org'
	put scripts/fine 'cd /home/node; ls /usr/work/x "$dir/work/"'
	track
	passes 'name sets and homes in a jail'
}

cases_format() {
	breaks 'spaces for tabs' runtime/base/bad.c "$licence" 'int f(void)' '{' '    return 1;' '}'
	breaks 'a long line' runtime/base/bad.h "$licence" \
		"int f(int a_long_name_$(printf 'a%.0s' {1..40}), int b_long_name_$(printf 'b%.0s' {1..40}));"
}

cases_shell() {
	breaks 'an unquoted variable' scripts/bad '#!/bin/sh' 'rm $1'
	breaks 'a script found by its name' tests/lib/bad.sh '# shellcheck shell=sh' 'rm $1'
	breaks 'a script of the continuous integration' .ci/bad '#!/usr/bin/env bash' 'rm $1'
}

cases_headers() {
	breaks 'a header that needs another' runtime/include/casemate/bad.h "$licence" 'size_t f(void);'
	breaks 'a header without a guard' runtime/include/casemate/bad.h "$licence" 'struct a { int b; };'
	breaks 'a word of C++' runtime/include/casemate/bad.h "$licence" 'int f(int class);'
	breaks 'a GNU extension' runtime/include/casemate/bad.h "$licence" '#include <stddef.h>' \
		'static inline int f(int a) { return a ?: 1; }'
	breaks 'an internal header that needs another' isolation/mech/bad.h "$licence" 'pid_t f(void);'
}

cases_tidy() {
	put runtime/base/thing.c "$licence" '#include "casemate/thing.h"' '' 'int cm_thing(int n)' \
		'{' $'\tint *p = 0;' $'\tif (n)' $'\t\treturn *p;' $'\treturn 1;' '}'
	track
	fails 'a null dereference' runtime/base/thing.c
	track
	passes 'the tree without it, remembered'
	put runtime/include/casemate/thing.h "$licence" '#ifndef CASEMATE_THING_H' \
		'#define CASEMATE_THING_H' 'int cm_thing(int n);' \
		'static inline int cm_same(int n)' '{' $'\treturn n == n;' '}' '#endif'
	track
	fails 'a change in a header of a file that passed' casemate/thing.h
	track
	database
	fails 'an empty database' 'names no file'
}

cases_cppcheck() {
	breaks 'a read behind an array' runtime/base/bad.c "$licence" 'int f(void);' 'int f(void)' '{' \
		$'\tint a[2] = { 1, 2 };' $'\treturn a[3];' '}'
	breaks 'a missing header' runtime/base/bad.c "$licence" '#include "runtime/base/gone.h"' \
		'int f(void);' 'int f(void)' '{' $'\tchar a[2];' $'\treturn a[2];' '}'
}

# check-links.sh takes executables: small ones stand for ours
links_program() {
	local name=$1 libc=$2
	shift 2
	printf '%s\n' "$@" >"$work/$name.c"
	case $libc in
	musl) musl-gcc -static -o "$work/bin/$name" "$work/$name.c" ;;
	glibc) cc -static -o "$work/bin/$name" "$work/$name.c" ;;
	shared) cc -o "$work/bin/$name" "$work/$name.c" ;;
	esac
}

links_check() {
	status=0
	"$script" "$work/bin" "$@" >"$work/out" 2>&1 || status=$?
	run_check() { :; }
}

cases_links() {
	local main='int main(void) { return 0; }'
	mkdir "$work/bin"
	links_program casemate-keeper glibc "$main"
	links_program casemate glibc "$main"
	links_check glibc
	passes 'two static programs'
	links_program casemate shared "$main"
	links_check glibc
	fails 'a shared program' 'is not static'
	links_check shared
	passes 'a shared program where that was chosen'
	links_program casemate glibc "$main"
	links_program casemate-keeper glibc 'int yajl_gen_map_open(void) { return 1; }' "$main"
	links_check glibc
	fails 'yajl in the keeper' yajl_gen_map_open
	links_program casemate-keeper glibc "$main"
	strip "$work/bin/casemate-keeper"
	links_check glibc
	fails 'a program without names' 'has no symbols'
	rm "$work/bin/casemate" "$work/bin/casemate-keeper"
	links_check glibc
	fails 'no program at all' 'no executable'
	command -v musl-gcc >/dev/null || {
		echo "ok $((count + 1)) # SKIP TOOLS: musl-gcc is not installed"
		return
	}
	links_program casemate glibc '#include <stdio.h>' 'int main(void) { return puts("x"); }'
	links_check musl
	fails 'glibc where musl was chosen' 'parts of glibc'
	printf '%s\n' 'int wcsnlen(const int *, unsigned long);' 'int odd(void);' \
		'int odd(void) { return wcsnlen(0, 0); }' >"$work/odd.c"
	cc -c -o "$work/odd.o" "$work/odd.c"
	ar rc "$work/libodd.a" "$work/odd.o"
	printf 'int odd(void);\nint main(void) { return odd(); }\n' >"$work/casemate.c"
	musl-gcc -static -o "$work/bin/casemate" "$work/casemate.c" "$work/libodd.a"
	links_check musl "$work/libodd.a"
	fails 'an unlisted name drawn from libc' wcsnlen
	links_check musl
	passes 'the same without that archive'
}

good_tree
track
case $check in
links) ;;
*) passes 'the good tree' ;;
esac
"cases_$check"
echo "1..$count"
[ "$failures" = 0 ]
