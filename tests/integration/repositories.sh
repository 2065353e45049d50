# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Repositories that tests check out, by git's own plumbing.  Sourced; needs git, and python3 where a
# function says so.  Each function makes the repository that it is given the name of and nothing
# beside it.

# The same ids everywhere, and no setting of who runs the test.
git_settings() {
	export GIT_CONFIG_SYSTEM=/dev/null GIT_CONFIG_GLOBAL=/dev/null
	export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org
	export GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org
	export GIT_AUTHOR_DATE='1700000000 +0000' GIT_COMMITTER_DATE='1700000000 +0000'
	unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
}

commit() { # REPOSITORY MESSAGE
	git -C "$1" add -A && git -C "$1" commit -qm "$2"
}

# commit_tree REPOSITORY TREE: a commit of a tree that git itself would not make, as main
commit_tree() {
	git -C "$1" update-ref refs/heads/main "$(git -C "$1" commit-tree -m hostile "$2")"
}

entry() { # MODE NAME ID: a raw tree entry
	printf '%s %s\0' "$1" "$2"
	printf %b "$(printf %s "$3" | sed 's/../\\x&/g')"
}

tree_of() { # REPOSITORY: a tree of the raw entries on standard input
	git -C "$1" hash-object -t tree -w --stdin --literally
}

# Two commits on main, a branch, tags of both kinds, odd names, a link, and an executable.
repo_plain() { # DIR
	git init -q -b main "$1"
	mkdir -p "$1/dir/sub"
	echo one >"$1/one"
	printf 'binary\0data' >"$1/dir/binary"
	echo run >"$1/dir/run" && chmod 755 "$1/dir/run"
	ln -s ../one "$1/dir/sub/link"
	: >"$1/empty"
	echo odd >"$1/dir/a name"$'\n'"with ü"
	commit "$1" first
	git -C "$1" tag light
	git -C "$1" tag -am annotated v1.0
	git -C "$1" branch feature/x
	echo two >>"$1/one" && commit "$1" second
	git -C "$1" checkout -q feature/x
	echo side >"$1/side" && commit "$1" side
	git -C "$1" checkout -q main
}
