# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2154
# Power handed to the host's git: what .git and what it believes in the tree must not let change.

export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b

git_as() { # DIRECTORY ARGUMENT...
	as_caller git -C "$@" >/dev/null 2>&1
}

repository() { # DIRECTORY
	git_as / init "$1" && echo x >"$1/file" && give "$1" && git_as "$1" add . &&
		git_as "$1" commit -m x
}

# What the agent wants the host to run.
evil() { echo "touch $work/owned; false"; }

owned() { # the host looks at the repository, as prompts and editors do; was anything run?
	rm -f "$work/owned"
	as_caller git -C "$1" status >/dev/null 2>&1
	[ -e "$work/owned" ]
}

case_pins() {
	local attempts=(write:.git/config create:.git/hooks/pre-commit create:.git/commondir
		create:.git/config.worktree create:.git/objects/info/alternates unlink:.git/HEAD
		mkdir:.git/modules symlink:.git/hooks/post-checkout)
	need GIT git 'pins' || return
	repository "$work/w"
	repository "$work/control-repo"
	mkdir -p "$work/control-repo/.git/hooks"
	use try
	cp "$top/probes/probe_try" "$work/control-repo/"
	echo x >"$work/w/mine"
	echo x >"$work/control-repo/mine"
	give "$work/w" "$work/control-repo"
	start_files
	attack -- ./probe_try -C "$work/control-repo" "${attempts[@]}" link:mine=.git/hooks/pre-push \
		rename:mine=.git/info/attributes rename:.git=.git2 -- \
		./probe_try "${attempts[@]}" link:mine=.git/hooks/pre-push \
		rename:mine=.git/info/attributes rename:.git=.git2 <<-'END'
		write .git/config: refused EROFS
		create .git/hooks/pre-commit: refused EROFS
		create .git/commondir: refused EROFS
		create .git/config.worktree: refused EROFS
		create .git/objects/info/alternates: refused EROFS
		unlink .git/HEAD: refused EROFS
		mkdir .git/modules: refused EROFS
		symlink .git/hooks/post-checkout: refused EROFS
		link mine=.git/hooks/pre-push: refused EROFS
		rename mine=.git/info/attributes: refused EXDEV
		rename .git=.git2: refused EBUSY
	END
	run run -- git config core.fsmonitor "$(evil)"
	! owned "$work/w"
	ok 'the host runs nothing'
	run run --git rw -- git config core.fsmonitor "$(evil)"
	owned "$work/w"
	ok 'the control: with --git rw it would'
	rm -f "$work/w/mine"
	allow '/w/'
}

# The worktree's .git is a file, and a file that lies about its repository shows nothing of it.
case_gitfile() {
	use try
	need GIT git 'a linked worktree' || return
	repository "$work/main"
	git_as "$work/main" worktree add "$work/main/../tree"
	cp "$top/probes/probe_try" "$work/tree/"
	cd "$work/tree" || return
	run run -- ./probe_try write:.git unlink:.git rename:.git=x create:../main/.git/hooks/x \
		"create:$work/main/.git/worktrees/tree/config.worktree"
	is "$(out)" "write .git: refused EROFS
unlink .git: refused EBUSY
rename .git=x: refused EBUSY
create ../main/.git/hooks/x: refused EROFS
create $work/main/.git/worktrees/tree/config.worktree: refused EROFS" 'nothing of a worktree is changed'
	cd "$work/w" || return
	echo "gitdir: $work/main/.git" >.git
	give .git
	run run -- ls "$work/main/.git"
	is "$(out)" '' 'a .git file that names another repository shows nothing of it'
	rm .git
	cd "$top" || return
	rm -rf "$work/main" "$work/tree"
}

case_submodules() {
	local i how plant
	need GIT git 'submodules' || return
	repository "$work/up"
	# what the agent does: the submodule's repository becomes its own
	# shellcheck disable=SC2016
	plant='rm -rf libs/sub/.git; mv libs old; mv libs/sub libs/old; mkdir -p libs/sub
		git init -q libs/sub; cd libs/sub && git config core.fsmonitor "$1"
		git -c safe.directory="*" add -A; git -c user.name=a -c user.email=a@b commit -qm z'
	for how in plain populated empty; do
		rm -rf "$work/w/.git" "$work/w/libs" "$work/w/.gitmodules" "$work/w/old"
		repository "$work/w"
		as_caller git -C "$work/w" -c protocol.file.allow=always submodule --quiet add "$work/up" \
			libs/sub
		git_as "$work/w" commit -m sub
		[ $how != empty ] || git_as "$work/w" submodule deinit -f libs/sub
		give "$work/w"
		if [ $how = plain ]; then
			(cd "$work/w" && as_caller sh -c "$plant" sh "$(evil)") >/dev/null 2>&1
			owned "$work/w"
			ok 'the control: a submodule'"'"'s configuration is run from'
			continue
		fi
		for i in first second; do
			run run -- sh -c "rm -f .gitmodules; $plant" sh "$(evil)"
			! owned "$work/w"
			ok "$how, $i session: the host runs nothing"
		done
		run run -- sh -c 'echo new >libs/other && echo new >>file && cat file'
		is "$(out)" 'x
new' "$how: the rest can be written"
	done
	rm -rf "$work/up"
	allow '/w/'
}

# Submodules as git finds them, but a reader of its files may not; and files that cannot be read.
case_submodules_odd() {
	local how where modules plant
	need GIT git 'odd submodules' || return
	repository "$work/deep"
	repository "$work/up"
	as_caller git -C "$work/up" -c protocol.file.allow=always submodule --quiet add "$work/deep" n
	git_as "$work/up" commit -m deep
	for how in mark dotted nested; do
		rm -rf "$work/w/.git" "$work/w/libs" "$work/w/.gitmodules" "$work/copy"
		repository "$work/w"
		as_caller git -C "$work/w" -c protocol.file.allow=always submodule --quiet add "$work/up" \
			libs/sub
		as_caller git -C "$work/w" -c protocol.file.allow=always submodule --quiet update --init \
			--recursive >/dev/null 2>&1
		modules=$work/w/.gitmodules where=libs/sub
		case $how in
		mark) printf '\xef\xbb\xbf[submodule "s"] path = libs/sub\n' >"$modules" ;;
		dotted) printf '[submodule.s]\npath = libs/sub\n' >"$modules" ;;
		nested) where=libs/sub/n ;;
		esac
		git_as "$work/w" commit -a -m sub
		give "$work/w"
		cp -a "$work/w" "$work/copy"
		# shellcheck disable=SC2016
		plant='rm -f "$1/.git"; git init -q "$1"; cd "$1" && git config core.fsmonitor "$2"
			git -c safe.directory="*" add -A; git -c user.name=a -c user.email=a@b commit -qm z'
		(cd "$work/copy" && as_caller sh -c "$plant" sh "$where" "$(evil)") >/dev/null 2>&1
		owned "$work/copy"
		ok "$how: the control: the host runs it"
		run run -- sh -c "$plant" sh "$where" "$(evil)"
		! owned "$work/w"
		ok "$how: the host runs nothing"
	done
	rm -rf "$work/copy"
	printf '\0' >>"$work/w/.gitmodules"
	run run -- true
	is "$rc" 125 'a .gitmodules that cannot be read stops the start'
	like "$(err)" "*.gitmodules' is not a text file*--git rw*" 'which says why, and the way on'
	run run --git rw -- true
	is "$rc" 0 'and that is one'
	rm -rf "$work/up" "$work/deep"
	allow '/w/'
}

# Configuration and hooks that the repository's own configuration takes from the tree.
case_configured() {
	use try
	need GIT git 'configured paths' || return
	repository "$work/w"
	mkdir -p "$work/w/tools/hooks"
	echo '[core]' >"$work/w/tools/gitconfig"
	git_as "$work/w" config include.path ../tools/gitconfig
	git_as "$work/w" config core.hooksPath tools/hooks
	give "$work/w"
	start_files
	cp -a "$work/w" "$work/copy"
	attack -- "$top/probes/probe_try" -C "$work/copy" write:tools/gitconfig \
		create:tools/hooks/pre-commit2 rename:tools=old rename:old=tools -- \
		./probe_try write:tools/gitconfig create:tools/hooks/pre-commit2 rename:tools=old \
		create:tools/other <<-'END'
		write tools/gitconfig: refused EROFS
		create tools/hooks/pre-commit2: refused EROFS
		rename tools=old: refused EBUSY
		create tools/other: reached
	END
	run run -- git config -f tools/gitconfig core.fsmonitor "$(evil)"
	! owned "$work/w"
	ok 'the host runs nothing'
	as_caller git config -f "$work/w/tools/gitconfig" core.fsmonitor "$(evil)"
	owned "$work/w"
	ok 'the control: it is run from there'
	allow '/w/'
}
