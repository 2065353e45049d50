#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# git in a jail: who commits, what a checkout and a workspace allow, trees that belong to another id,
# linked worktrees; and ssh's keys.
# shellcheck disable=SC2016
# SC2016: what single quotes keep from this shell is for the shell inside
. "$(dirname "${BASH_SOURCE[0]}")/t-tools-common.sh"

as_git() { outside git "$@"; }

# A repository of the caller's at $work/w/app, by somebody else.
repository() {
	cat >"$HOME/.gitconfig" <<-'CONFIG'
		[user]
			name = "Ada \"A.\" Lovelace"
			email = ada@example.org
		[init]
			defaultBranch = trunk
		[credential]
			helper = "!echo password=secret"
		[core]
			sshCommand = ssh -i /secret
		[alias]
			st = status
		[url "https://user:secret@example.org/"]
			insteadOf = https://example.org/
	CONFIG
	give "$HOME/.gitconfig"
	as_git init -q -b main app
	cd app || bail 'no repository'
	outside sh -c 'echo one >file; git add file;
		git -c user.name=Other -c user.email=other@example.org commit -qm first'
}

# Of a shell inside: each line that has to work.
work_on_it='set -e
git status --porcelain
git checkout -q -b topic
echo two >file2
git add file2
git commit -qm second
git log -1 --format="%an %ae %s"
git checkout -q main
echo three >>file
git commit -qam third
git merge -q --no-edit topic
git tag v1
git worktree add -q ../tree topic
cd ../tree
echo four >file4
git add file4
git commit -qm fourth
cd "$OLDPWD"
git rebase -q topic
git gc -q
git fsck --no-dangling
git log --oneline | wc -l
git worktree list | wc -l'

if need TOOLS git 'git'; then
	begin 'a checkout'
	repository
	start_files
	run run --repo . --git rw -- bash -c "$work_on_it"
	expect_out 'Ada "A." Lovelace ada@example.org second
4
2' 'commit, branch, merge, worktree, rebase'
	expect_status 0 'all of it'
	run run --repo . -- bash -c 'git log --format=%s; git diff; git show --stat -q; git blame file >/dev/null
		git commit --allow-empty -qm no'
	has first 'pinned, it can be read'
	has '*Read-only file system' 'and not written'
	run run --repo . -- sh -c 'git remote get-url origin; git rev-parse --abbrev-ref @{u}'
	expect_out "$PWD
origin/main" 'it knows where it is from'
	is "$(as_git log --format=%s --all)" first 'the repository has what it had'
	finish

	begin 'a workspace'
	repository
	start_files
	allow '/w/app/(\.git|file)'
	run run --git rw -- bash -c 'echo x >>file && git commit -qam second &&
		git checkout -q -b topic && git log -1 --format="%an <%ae>"'
	expect_out 'Ada "A." Lovelace <ada@example.org>' 'is committed to as its user'
	is "$(as_git log -1 --format='%s %an')" 'second Ada "A." Lovelace' 'which the host sees'
	is "$(as_git status --porcelain)" '' 'with nothing left over'
	is "$(find . ! -uid "$(stat -c %u .)" | wc -l)" 0 'and files of its owner'
	run run -- git commit --allow-empty -qm no
	has '*Read-only file system' 'without --git rw it is not'
	run run -- git status --porcelain --branch
	expect_out '## topic' 'but read'
	run run -- sh -c 'git init -q /tmp/new && cd /tmp/new && git commit -q --allow-empty -m x &&
		git branch --show-current && git config --get-all alias.st;
		git config --get-regexp "credential|ssh|url" || echo nothing'
	expect_out 'trunk
nothing' 'a new one has the user'"'"'s settings, and nothing that runs or is secret'
	run run -- git ls-remote https://example.org/x
	has 'note: this session has no network; *' 'a remote is out of reach, and why is said'
	finish

	begin 'a linked worktree'
	repository
	as_git worktree add -q ../tree -b side
	start_files
	cd ../tree || bail 'no worktree'
	allow '/w/(app/\.git|tree)'
	run run -- git log --format='%s %D'
	expect_out 'first HEAD -> side, main' 'finds its repository'
	run run --git rw -- bash -c 'echo y >z; git add z; git commit -qm side; git log -1 --format=%s'
	expect_out side 'and is committed to with --git rw'
	is "$(as_git -C ../app log -1 --format=%s side)" side 'which the repository has'
	finish

	begin 'a tree of another user'
	if is_root && [ "$identity" = root ]; then
		repository
		chown -R 64199:64199 .
		start_files
		allow '/w/app/'
		run run -- git status --porcelain --branch
		expect_out '## main' 'is not of dubious ownership to git'
		run run --git rw -- git commit -q --allow-empty -m x
		expect_status 0 'and can be committed to'
		is "$(find . ! -uid 64199 | wc -l)" 0 'its files are its owner'"'"'s'
	else
		skip ROOT 'only root can have one' 'is not of dubious ownership to git'
	fi
	finish
fi

begin 'ssh'
if need TOOLS ssh-keygen 'keys'; then
	mkdir -p "$HOME/.ssh"
	echo 'a secret' >"$HOME/.ssh/id_ed25519"
	give "$HOME/.ssh"
	start_files
	run run -- sh -c 'ssh-keygen -q -t ed25519 -N "" -f ~/key && ssh-keygen -y -f ~/key | cut -c 1-11
		ssh -V 2>&1 | cut -c 1-7; ls -A ~/.ssh'
	expect_out 'ssh-ed25519
OpenSSH' 'are made and read; the user'"'"'s own are not there'
	run run -- ssh -o BatchMode=yes nobody@example.org true
	has 'ssh: Could not resolve*' 'ssh knows who it is, and that there is no network'
	if command -v ssh-agent >/dev/null; then
		run run -- sh -c 'eval "$(ssh-agent)" >/dev/null; ssh-keygen -q -t ed25519 -N "" -f ~/key
			ssh-add -q ~/key && ssh-add -l | wc -l; kill "$SSH_AGENT_PID"'
		expect_out 1 'an agent of the jail'"'"'s own'
	fi
fi
finish

done_testing
