#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Toolchains below a home: the layouts of nvm, rustup, pyenv, volta, asdf, mise, sdkman, bun, deno, uv
# and others with programs of two lines in the places where theirs are.  PATH finds each, none can be
# changed, exactly the listed directories are there, and credentials beside them are not.
# shellcheck disable=SC2016
# SC2016: what single quotes keep from this shell is for the shell inside
. "$(dirname "${BASH_SOURCE[0]}")/t-tools-common.sh"

# program FILE: says its own name
program() {
	put "$1" <<-'SH'
		#!/bin/sh
		echo "$(basename "$0") from $0"
	SH
	chmod 755 "$1"
}

secret() { # FILE...
	local file
	for file; do
		echo 'token: cm-test-secret' | put "$file"
		chmod 600 "$file"
	done
}

# What a user's home has: tools that a jail shows, and beside each what it must not.
fill_home() {
	local h=$1
	program "$h/.nvm/versions/node/v22.1.0/bin/node-nvm"
	program "$h/.nvm/nvm-exec"
	echo lts >"$h/.nvm/placeholder"
	echo 22 | put "$h/.nvm/alias/default"
	echo 'nvm() { echo nvm; }' >"$h/.nvm/nvm.sh"
	secret "$h/.nvm/.cache/x" "$h/.nvm/.npmrc"
	program "$h/.local/share/fnm/node-versions/v20/installation/bin/node-fnm"
	mkdir -p "$h/.local/share/fnm/aliases"
	ln -s "$h/.local/share/fnm/node-versions/v20/installation" "$h/.local/share/fnm/aliases/default"
	mkdir -p "$work/runtime/fnm_multishells"
	ln -s "$h/.local/share/fnm/aliases/default" "$work/runtime/fnm_multishells/1"
	program "$h/.volta/bin/volta"
	program "$h/.volta/tools/image/node/20/bin/node-volta"
	secret "$h/.volta/hooks.json"
	program "$h/.asdf/shims/asdf-tool"
	program "$h/.asdf/installs/tool/1/bin/asdf-tool"
	echo : >"$h/.asdf/asdf.sh"
	secret "$h/.asdf/downloads/x"
	program "$h/.local/share/mise/shims/mise-tool"
	program "$h/.local/share/mise/installs/tool/1/bin/mise-tool"
	echo '[tools]' | put "$h/.config/mise/config.toml"
	secret "$h/.config/mise/age.txt" "$h/.local/share/mise/http-tarballs/x"
	program "$h/.pyenv/bin/pyenv"
	program "$h/.pyenv/shims/python-pyenv"
	program "$h/.pyenv/versions/3.12.1/bin/python-pyenv"
	echo 3.12.1 >"$h/.pyenv/version"
	secret "$h/.pyenv/cache/x"
	program "$h/.rbenv/shims/ruby-rbenv"
	secret "$h/.gem/credentials"
	program "$h/.cargo/bin/cargo-here"
	secret "$h/.cargo/credentials.toml" "$h/.cargo/config.toml"
	program "$h/.rustup/toolchains/stable/bin/cargo-real"
	echo 'default_toolchain = "stable"' >"$h/.rustup/settings.toml"
	secret "$h/.rustup/downloads/x"
	program "$h/go/bin/gopls"
	secret "$h/go/pkg/mod/private/x"
	program "$h/sdk/go1.22/bin/go-sdk"
	program "$h/.sdkman/candidates/java/21/bin/java-sdkman"
	ln -s 21 "$h/.sdkman/candidates/java/current"
	program "$h/.sdkman/bin/sdkman-init.sh"
	secret "$h/.sdkman/etc/config" "$h/.sdkman/var/x"
	program "$h/.bun/bin/bun"
	secret "$h/.bun/install/cache/x" "$h/.bunfig.toml"
	program "$h/.deno/bin/deno"
	program "$h/.local/share/uv/python/cpython-3.12/bin/python-uv"
	program "$h/.local/share/uv/tools/ruff/bin/ruff"
	secret "$h/.local/share/uv/credentials/x"
	program "$h/.local/bin/uv"
	program "$h/.local/bin/uvx"
	program "$h/.local/bin/other"
	echo 'tool 1' >"$h/.tool-versions"
	printf '//registry.example.org/:_authToken=cm-test-secret\nengine-strict=true\n' >"$h/.npmrc"
	secret "$h/.netrc" "$h/.git-credentials" "$h/.ssh/id_ed25519" "$h/.aws/credentials" \
		"$h/.docker/config.json" "$h/.kube/config" "$h/.config/gh/hosts.yml" "$h/.pypirc" \
		"$h/.m2/settings.xml" "$h/.gradle/gradle.properties" "$h/.config/pip/pip.conf" \
		"$h/.gnupg/x" "$h/.bash_history" "$h/.local/state/x" "$h/.local/share/keyrings/x"
	give "$h" "$work/runtime"
}

# In the order of PATH.
bins=(.nvm/versions/node/v22.1.0/bin .volta/bin .asdf/shims .local/share/mise/shims .pyenv/shims
	.pyenv/bin .rbenv/shims .cargo/bin go/bin sdk/go1.22/bin .sdkman/candidates/java/current/bin
	.bun/bin .deno/bin .local/bin)
programs=(node-nvm node-fnm volta asdf-tool mise-tool python-pyenv pyenv ruby-rbenv cargo-here gopls
	go-sdk java-sdkman bun deno uv uvx)

set_path() { # HOME
	local dir
	PATH=$work/runtime/fnm_multishells/1/bin
	for dir in "${bins[@]}"; do
		PATH=$PATH:$1/$dir
	done
	PATH=$PATH:/usr/local/bin:/usr/bin:/bin
}
plain_path=$PATH

# What is there below the home: the tools' tops, and the directories on the way.
want_entries='.
./.asdf
./.asdf/asdf.sh
./.asdf/installs
./.asdf/shims
./.bun
./.bun/bin
./.cargo
./.cargo/bin
./.config
./.config/mise
./.config/mise/config.toml
./.deno
./.deno/bin
./.local
./.local/bin
./.local/bin/uv
./.local/bin/uvx
./.local/share
./.local/share/fnm
./.local/share/fnm/aliases
./.local/share/fnm/node-versions
./.local/share/mise
./.local/share/mise/installs
./.local/share/mise/shims
./.local/share/uv
./.local/share/uv/python
./.local/share/uv/tools
./.nvm
./.nvm/alias
./.nvm/nvm-exec
./.nvm/nvm.sh
./.nvm/versions
./.pyenv
./.pyenv/bin
./.pyenv/shims
./.pyenv/version
./.pyenv/versions
./.rbenv
./.rbenv/shims
./.rustup
./.rustup/settings.toml
./.rustup/toolchains
./.sdkman
./.sdkman/bin
./.sdkman/candidates
./.tool-versions
./.volta
./.volta/bin
./.volta/tools
./go
./go/bin
./sdk'


# the machine's own
unset NVM_DIR FNM_DIR VOLTA_HOME ASDF_DATA_DIR MISE_DATA_DIR PYENV_ROOT RBENV_ROOT RUSTUP_HOME
unset SDKMAN_DIR

begin 'a home with everything'
fill_home "$HOME"
set_path "$HOME"
start_files
run run -- sh -c 'for p; do "$p" || echo "no $p"; done' - "${programs[@]}"
is "$(out | sed 's/ from .*//')" "$(printf '%s\n' "${programs[@]}")" 'PATH finds each program'
has "node-nvm from $HOME/.nvm/versions/node/v22.1.0/bin/node-nvm" 'where the user has it'
has "node-fnm from $HOME/.local/share/fnm/*" 'also through a link in a directory that is not there'
run run -- sh -c 'cd && find . -xdev | LC_ALL=C sort'
is "$(out)" "$want_entries" 'exactly the listed directories are there'
run run -- sh -c 'cd && find . -type f | xargs -r -d "\n" grep -l cm-test-secret;
	env | grep cm-test-secret; grep -rs cm-test-secret /etc /tmp /run'
expect_out '' 'and no credentials, in a file or a variable'
run run -- sh -c 'cd && find -L . \( -type f -o -type d \) -path "*/*/*" ! -path "./.local/state*" -print |
	while read -r f; do
		if [ -d "$f" ]; then touch "$f/cm-new" 2>/dev/null && rm "$f/cm-new" && echo "$f"
		else { true >>"$f"; } 2>/dev/null && echo "$f"; fi
	done | LC_ALL=C sort'
is "$(out)" './.config/mise
./.local/bin
./.local/share
./.local/share/fnm
./.local/share/mise
./.local/share/uv' 'only the directories between them can be written'
run run -- sh -c 'for f in ~/.cargo/bin/cargo-here ~/.nvm/nvm.sh ~/.local/bin/uv; do
	mv $f /tmp/ 2>&1; rm -f $f 2>&1; done | grep -c "busy\|Read-only"'
expect_out 6 'nor moved, nor removed'
run run -- sh -c '. ~/.nvm/nvm.sh && nvm; echo "${npm_config_prefix-unset}"; cat /etc/npmrc'
has nvm 'nvm works'
has unset 'npm'"'"'s prefix is left to it'
has 'engine-strict=true' 'and of .npmrc passes what is no secret'
run run -- sh -c 'echo "#!/bin/sh
echo own" >~/.local/bin/own && chmod +x ~/.local/bin/own && own; mkdir ~/.cargo/registry && echo kept'
expect_out 'own
kept' 'what is installed inside has its place beside them'
is "$(find "$HOME" -name own -o -name registry -o -name cm-new)" '' 'which the real home does not get'
finish
PATH=$plain_path

begin 'tools that were moved'
mkdir tools
moved=$work/moved
program "$moved/nvm/versions/node/v22/bin/node-moved"
program "$moved/pyenv/shims/python-moved"
program "$moved/rustup/toolchains/stable/bin/x"
secret "$moved/nvm/token" "$moved/pyenv/token"
give "$moved"
start_files
PATH=$moved/nvm/versions/node/v22/bin:$moved/pyenv/shims:$PATH
export NVM_DIR=$moved/nvm PYENV_ROOT=$moved/pyenv RUSTUP_HOME=$moved/rustup VOLTA_HOME=$moved/none
run run -- sh -c 'node-moved; python-moved; echo "$NVM_DIR $PYENV_ROOT $RUSTUP_HOME ${VOLTA_HOME-unset}"
	ls -A "$NVM_DIR" "$PYENV_ROOT"'
expect_out "node-moved from $moved/nvm/versions/node/v22/bin/node-moved
python-moved from $moved/pyenv/shims/python-moved
$moved/nvm $moved/pyenv $moved/rustup unset
$moved/nvm:
versions

$moved/pyenv:
shims" 'are found by their variables, and nothing beside them'
unset NVM_DIR PYENV_ROOT RUSTUP_HOME VOLTA_HOME
PATH=$plain_path
finish

begin 'tools that are not to be trusted'
program "$HOME/.cargo/bin/mine"
program "$HOME/.bun/bin/theirs"
program "$work/w/.volta/bin/in-the-tree"
give "$HOME" "$work/w"
chmod 777 "$HOME/.bun/bin"
start_files
PATH=$HOME/.cargo/bin:$HOME/.bun/bin:$PATH
run run --verbose -- sh -c 'mine >/dev/null && echo mine; command -v theirs; ls -A ~/.bun 2>&1'
has mine 'what only the user can write is there'
has '*cannot access*' 'what everybody can write is not'
has "*/.bun/bin'*others can write*" 'which is said'
if [ -e "$top/etc/group" ]; then
	chmod 775 "$HOME/.cargo/bin"
	start_files
	run run -- mine
	has 'mine from *' 'nor does a group hide it that is only the user'"'"'s'
	# the file that is mounted, and not one that takes its place
	cp "$top/etc/group" "$work/group"
	sed 's/^cm-test-plain:.*/&daemon/' "$work/group" >"$top/etc/group"
	run run -- sh -c 'command -v mine'
	is "$(out)" '' 'what others in the group can write is not there'
	cat "$work/group" >"$top/etc/group"
	chmod 755 "$HOME/.cargo/bin"
	start_files
fi
export VOLTA_HOME=$work/w/.volta
PATH=$work/w/.volta/bin:$PATH
run run -- sh -c 'echo "$PATH"; echo "${VOLTA_HOME-unset}"; : >>.volta/bin/in-the-tree && echo written'
has written 'a tool in the workspace is the workspace'"'"'s'
unset VOLTA_HOME
PATH=$plain_path
finish

begin 'a home that is a link'
mkdir "$work/real"
program "$work/real/.cargo/bin/through"
give "$work/real"
ln -s "$work/real" "$work/link"
start_files
HOME=$work/link PATH=$work/link/.cargo/bin:$PATH run run -- sh -c 'through; echo ~; ls -A ~'
has "through from $work/real/.cargo/bin/through" 'has its tools'
has "$work/real" 'at the path where it leads'
finish

done_testing
