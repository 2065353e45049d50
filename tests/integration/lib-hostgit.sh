# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the tests of the host's git share: repositories with LFS content, a server for that, and what
# git itself makes of a repository.  After lib-remote.sh.
# shellcheck disable=SC2034,SC2154
# SC2034: what is set here is read by the tests
# SC2154: lib.sh knows where, and servers.sh the tokens
command -v git-lfs >/dev/null || skip_all TOOLS 'no git-lfs'
command -v python3 >/dev/null || skip_all TOOLS 'no python3'

objects=$top/objects
mkdir "$objects"

# A pointer to what is on standard input, which the LFS server has then.
lfs_file() { # FILE
	local id
	cat >"$top/content"
	id=$(sha256sum <"$top/content" | cut -d ' ' -f 1)
	printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %s\n' "$id" \
		"$(stat -c %s "$top/content")" >"$1"
	mv "$top/content" "$objects/$id"
}

# Four files of LFS, of which two are the same, in three directories; text; an executable.
repo_with_lfs() { # DIR [OBJECT-FORMAT]
	git init -q -b main --object-format="${2:-sha1}" "$1"
	mkdir -p "$1/src/a" "$1/docs"
	echo '*.bin filter=lfs diff=lfs merge=lfs -text' >"$1/.gitattributes"
	head -c 300000 /dev/urandom | lfs_file "$1/top.bin"
	echo same | lfs_file "$1/src/same.bin"
	cp "$1/src/same.bin" "$1/src/a/same.bin"
	echo documents | lfs_file "$1/docs/d.bin"
	echo text >"$1/src/text" && echo run >"$1/src/run" && chmod 755 "$1/src/run"
	ln -s src/text "$1/link"
	commit "$1" lfs
}

# server_lfs NAME [ELSEWHERE]: NAME_url, NAME_log
server_lfs() {
	local try
	new_server_dir
	for ((try = 0; try < 10; try++)); do
		free_port
		: >"$server_dir/log"
		printf -v "$1_url" %s "http://127.0.0.1:$free_port"
		printf -v "$1_log" %s "$server_dir/log"
		serve "is_serving_at $free_port" "$server_dir/out" python3 \
			"$here/../helpers/lfs_server.py" "$repos" "$objects" "$free_port" \
			"$server_dir/log" "$https_token" "${2:-}" && return 0
	done
	cat "$server_dir/out" >&2
	return 1
}
# What git itself makes of it, in $work/w/clone: OPTION... are git clone's.
clone() { # OPTION... URL
	rm -rf "$work/w/clone"
	git -c filter.lfs.process='git-lfs filter-process' -c filter.lfs.required=true \
		-c filter.lfs.smudge='git-lfs smudge -- %f' clone -q "$@" "$work/w/clone" 2>&1
}

hidden() { # PROGRAM ARGUMENT...: casemate-checkout where the program cannot be executed
	local program=$1
	shift
	# shellcheck disable=SC2016
	"${as[@]}" unshare --user --map-root-user --mount sh -c \
		'mount --bind /dev/null "$1" && shift && exec "$@"' sh "$program" "$top/bin/casemate-checkout" "$@" \
		>"$work/out" 2>"$work/err"
	rc=$?
}

# Files, modes, links, contents.
listing() { # DIR
	(cd "$1" && find . -path ./.git -prune -o -printf '%y %m %l %P\n' | sort &&
		find . -path ./.git -prune -o -type f -print0 | sort -z | xargs -0 sha256sum)
}

# The checkout of a session is what git's clone is, and git finds nothing to say of it.
same() { # SESSION NAME WHAT
	is "$(listing "$root/$1/$2")" "$(listing "$work/w/clone")" "$3: the same as git's"
	is "$(find "$root/$1/$2/.git" -type f -links +1)$(find "$root/$1/$2/.git" -name alternates)" '' \
		"$3: copies"
	is "$(ls -A "$root/$1/$2/.git/hooks" 2>/dev/null)" '' "$3: no hook"
	run run --session "$1" -- sh -c 'git status --short; git fsck 2>&1 | grep -v dangling'
	is "$(out)" '' "$3: clean, and whole"
	run rm --files --force "$1"
}

git_does="*note: the host's git does this, because libgit2 has no "
