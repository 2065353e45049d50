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

# --- names --------------------------------------------------------------------------------------

# A tree with one thing at a path, whatever its names are, and the trees on the way to it.
tree_at() { # REPOSITORY MODE PATH ID
	local mode=$2 path=$3 id=$4
	while :; do
		id=$(entry "$mode" "${path##*/}" "$id" | tree_of "$1")
		mode=40000
		[ "${path%/*}" != "$path" ] || break
		path=${path%/*}
	done
	echo "$id"
}

# Names that are .git's to some file system, or lead out.  Nothing may ever be written there.
# shellcheck disable=SC2016,SC2034
hostile_names=(.git .GIT .Git .. . a/.git a/.. git~1 GIT~1 '.git ' '.git.' '.git...'
	'.git::$INDEX_ALLOCATION' '.git:x' '.git\x' $'.g\xe2\x80\x8cit' $'.gi\xe2\x80\x8dt'
	$'\xef\xbb\xbf.git' $'.git\xe2\x80\x8e' $'a/.g\xe2\x81\xafit' $'.GI\xe2\x80\xaat')

# A directory of that name (a/NAME: in a directory) with a file "config" that would run a program,
# were it git's.
repo_named() { # DIR NAME
	local blob
	git init -q -b main "$1"
	blob=$(echo '[core] fsmonitor = touch /pwned' | git -C "$1" hash-object -w --stdin)
	commit_tree "$1" "$(tree_at "$1" 100644 "$2/config" "$blob")"
}

# A file whose name has a slash in it, beside a link of that name up to the slash.
repo_slash() { # DIR NAME TARGET-OF-THE-LINK
	local link file tree
	git init -q -b main "$1"
	link=$(printf %s "$3" | git -C "$1" hash-object -w --stdin)
	file=$(echo overwritten | git -C "$1" hash-object -w --stdin)
	tree=$({ entry 120000 a "$link" && entry 100644 "$2" "$file"; } | tree_of "$1")
	commit_tree "$1" "$tree"
}

# Names that are no harm: a line's end, what a terminal obeys, quotes, one that looks like an option,
# bytes that are no text, a directory below 17 of 240 bytes each (4,096 and more in all).
repo_odd_names() { # DIR
	local name path=deep
	git init -q -b main "$1"
	# shellcheck disable=SC2016
	for name in $'line\nend' $'\e[31mred' "'" '"' '-rf' $'\xff\xfe' ' ' '*' '$(touch ran)'; do
		echo odd >"$1/$name"
	done
	git -C "$1" add -A
	name=$(printf '%0240d' 0)
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17; do
		path+=/$name
	done
	git -C "$1" update-index --add --cacheinfo \
		"100644,$(echo deep | git -C "$1" hash-object -w --stdin),$path/file"
	git -C "$1" commit -qm odd
}

# --- links --------------------------------------------------------------------------------------

# Links to a directory outside, absolute and relative, to a file, and to nothing.
repo_links() { # DIR TARGET RELATIVE-TARGET
	git init -q -b main "$1" && ln -s "$2" "$1/abs" && ln -s "$3" "$1/rel" &&
		ln -s /etc/passwd "$1/passwd" && ln -s nowhere "$1/dangling" && commit "$1" l
}

# One name twice: a link, and a directory with a file that would be written through it.
repo_twice() { # DIR TARGET-OF-THE-LINK link|dir: which is first
	local link dir
	git init -q -b main "$1"
	link=$(printf %s "$2" | git -C "$1" hash-object -w --stdin)
	dir=$(tree_at "$1" 100644 file "$(echo overwritten | git -C "$1" hash-object -w --stdin)")
	case $3 in
	link) entry 120000 a "$link" && entry 40000 a "$dir" ;;
	dir) entry 40000 a "$dir" && entry 120000 a "$link" ;;
	esac >"$1/entries"
	commit_tree "$1" "$(tree_of "$1" <"$1/entries")"
	rm "$1/entries"
}

repo_linked_gitmodules() { # DIR
	local link
	git init -q -b main "$1" && link=$(printf /etc/passwd | git -C "$1" hash-object -w --stdin)
	commit_tree "$1" "$(tree_at "$1" 120000 .gitmodules "$link")"
}

# --- submodules ---------------------------------------------------------------------------------

# Many submodules m1, m2, ... with the addresses on standard input, written as they are there.
repo_addresses() { # DIR COMMIT
	local url i=0
	git init -q -b main "$1"
	while read -r url; do
		i=$((i + 1))
		printf '[submodule "m%s"]\n\tpath = m%s\n\turl = %s\n' $i $i "$url"
		git -C "$1" update-index --add --cacheinfo "160000,$2,m$i"
	done >"$1/.gitmodules"
	git -C "$1" add .gitmodules && git -C "$1" commit -qm s
}

# One submodule, whatever its name, path and address are.  The tree has it at PATH, or at "sub" where
# no tree can.
repo_submodule() { # DIR COMMIT NAME PATH URL [LINE]
	local at=$4 modules top_name tree LC_ALL=C
	case $at in /* | '') at=sub ;; esac
	git init -q -b main "$1"
	modules=$(printf '[submodule "%s"]\n\tpath = "%s"\n\turl = "%s"\n%s\n' \
		"$3" "$4" "$5" "${6:+	$6}" | git -C "$1" hash-object -w --stdin)
	top_name=${at%%/*}
	if [ "$top_name" = "$at" ]; then
		entry 160000 "$at" "$2"
	else
		entry 40000 "$top_name" "$(tree_at "$1" 160000 "${at#*/}" "$2")"
	fi >"$1/below"
	entry 100644 .gitmodules "$modules" >"$1/modules"
	if [[ $top_name < .gitmodules ]]; then
		tree=$(cat "$1/below" "$1/modules" | tree_of "$1")
	else
		tree=$(cat "$1/modules" "$1/below" | tree_of "$1")
	fi
	rm "$1/below" "$1/modules"
	commit_tree "$1" "$tree"
}

# What repo_submodule makes hostile ones of, a line each: KIND|NAME|PATH|URL|LINE
hostile_submodules() { # PROGRAM: that some would run
	cat <<-EOF
		url-option|sub|sub|--upload-pack=$1|
		url-option-host|sub|sub|ssh://-oProxyCommand=$1/x|
		url-program|sub|sub|ext::$1|
		url-newline|sub|sub|https://example.org\\n--upload-pack=$1/x|
		path-option|sub|-u$1|https://example.org/x|
		path-git|sub|.git/hooks|https://example.org/x|
		path-git-short|sub|git~1/hooks|https://example.org/x|
		path-out|sub|../out|https://example.org/x|
		path-absolute|sub|/etc/cm-test|https://example.org/x|
		name-out|../../out|sub|https://example.org/x|
		name-hooks|../hooks|sub|https://example.org/x|
		update-program|sub|sub|https://example.org/x|update = !$1
	EOF
}

# A submodule below a name that is a link, too: its directory would be made where that leads.
repo_submodule_through_link() { # DIR COMMIT TARGET-OF-THE-LINK
	local link below
	git init -q -b main "$1"
	below=$(tree_at "$1" 160000 sub "$2")
	link=$(printf %s "$3" | git -C "$1" hash-object -w --stdin)
	commit_tree "$1" "$({ entry 120000 a "$link" && entry 40000 a "$below"; } | tree_of "$1")"
}

# --- programs -----------------------------------------------------------------------------------

# Whatever could run a program in who takes it or looks at it: hooks, filters, settings of the
# repository and attributes in its tree.
repo_programs() { # DIR PROGRAM
	local hook
	git init -q -b main "$1"
	cat >"$1/.gitattributes" <<-EOF
		*.flt filter=evil diff=evil merge=evil
		*.prc filter=proc
	EOF
	echo content >"$1/a.flt"
	echo content >"$1/b.prc"
	commit "$1" p
	for hook in post-checkout pre-commit reference-transaction post-index-change; do
		printf '#!/bin/sh\n%s\n' "$2" >"$1/.git/hooks/$hook"
		chmod 755 "$1/.git/hooks/$hook"
	done
	cat >>"$1/.git/config" <<-EOF
		[filter "evil"]
			smudge = $2; cat
			clean = $2; cat
			required = true
		[filter "proc"]
			process = $2
			required = true
		[core]
			fsmonitor = $2
			hooksPath = $(cd "$1" && pwd)/.git/hooks
			sshCommand = $2
			pager = $2
		[uploadpack]
			packObjectsHook = $2
	EOF
}

# --- sizes, and what is not there ---------------------------------------------------------------

# So many files in one commit, a hundred in a directory, each with its number in it.
repo_many_files() { # DIR COUNT
	git init -q -b main "$1"
	awk -v count="$2" 'BEGIN {
		print "commit refs/heads/main\ncommitter a <a@example.org> 1700000000 +0000"
		print "data 1\nm"
		for (i = 0; i < count; i++)
			printf "M 100644 inline d%d/f%d\ndata %d\n%d\n", i / 100, i, length(i "") + 1, i
	}' | git -C "$1" fast-import --quiet --force
}

# So many objects: commits with a tree and a file each.
repo_many_objects() { # DIR COUNT
	git init -q -b main "$1"
	awk -v count="$2" 'BEGIN {
		for (i = 0; i < count / 3; i++) {
			print "commit refs/heads/main\ncommitter a <a@example.org> 1700000000 +0000"
			printf "data 1\nm\nM 100644 inline f\ndata %d\n%d\n", length(i "") + 1, i
		}
	}' | git -C "$1" fast-import --quiet --force
}

# Requests as two services have them: commits that no branch leads to.
repo_requests() { # DIR
	local id
	git init -q -b main "$1"
	echo main >"$1/file" && commit "$1" main
	echo pull >"$1/pull" && commit "$1" pull
	id=$(git -C "$1" rev-parse HEAD)
	git -C "$1" update-ref refs/pull/7/head "$id"
	git -C "$1" reset -q --hard HEAD~
	echo merge >"$1/merge" && commit "$1" merge
	id=$(git -C "$1" rev-parse HEAD)
	git -C "$1" update-ref refs/merge-requests/3/head "$id"
	git -C "$1" reset -q --hard HEAD~
	git -C "$1" reflog expire --expire=now --all
}

repo_sha256() { # DIR
	git init -q -b main --object-format=sha256 "$1"
	echo one >"$1/one" && commit "$1" first
}

# HEAD leads to a branch without a commit; there are others.
repo_unborn() { # DIR
	repo_plain "$1" && git -C "$1" symbolic-ref HEAD refs/heads/unborn
}

lfs_pointer() {
	cat <<-EOF
		version https://git-lfs.github.com/spec/v1
		oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393
		size 12345
	EOF
}

# Three pointers, a file that is filtered and no pointer, and one that is not filtered.
repo_lfs() { # DIR
	local i
	git init -q -b main "$1"
	mkdir "$1/sub"
	echo '*.bin filter=lfs diff=lfs merge=lfs -text' >"$1/.gitattributes"
	for i in +1 2 sub/3; do lfs_pointer >"$1/$i.bin"; done
	echo 'not a pointer' >"$1/plain.bin"
	lfs_pointer >"$1/text.txt"
	commit "$1" l
}
