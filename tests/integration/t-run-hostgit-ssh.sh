#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What libgit2 cannot do, by the host's git over ssh: the same keys are sent to the same server alone,
# and what says no says it in the same words.
# shellcheck disable=SC2016,SC2154
# SC2016: what single quotes keep from this shell is for the shell inside
# SC2154: addresses and keys are set by servers.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/lib-remote.sh"
. "$(dirname "${BASH_SOURCE[0]}")/lib-hostgit.sh"
. "$(dirname "${BASH_SOURCE[0]}")/lib-ssh.sh"

(cd "$repos" && repo_plain plain && repo_sha256 new && repo_with_lfs big && git init -q -b main tree)
cp -a "$repos/big" "$repos/gone"
for i in 1 2 3; do
	echo "$i" >"$repos/tree/top" && mkdir -p "$repos/tree/docs" && echo "$i docs" >"$repos/tree/docs/in"
	commit "$repos/tree" "$i"
done
server_ssh "$repos" || skip_all TOOLS "no $missing"
https_token=lfs-token-$RANDOM-$RANDOM
server_lfs lfs || bail 'no server'
fingerprint=$(ssh-keygen -lf "$ssh_dir/host_ed25519.pub" | cut -d ' ' -f 2)
secret_line=$(sed -n 3p "$ssh_key")

# What its ssh server tells git-lfs: the place, and a token that opens it.
answers() { # ADDRESS TOKEN
	printf '{"href": "%s", "header": {"Authorization": "Basic %s"}, "expires_in": 600}\n' "$1" \
		"$(printf 'x:%s' "$2" | base64 -w 0)" >"$ssh_lfs_answer"
}

begin_hostssh() { # NAME
	begin_ssh "$1"
	: >"$lfs_log"
	: >"$ssh_dir/commands"
	answers "$lfs_url/private/@.git/info/lfs" "$https_token"
}
token_sent=$(printf 'x:%s' "$https_token" | base64 -w 0)

begin_hostssh 'by a key'
has_key "$ssh_key"
run run --session f --repo "$ssh_url/tree" --filter blob:none --sparse docs -- sh -c \
	'git rev-list --objects --all --missing=print | grep -c "^?"; cat docs/in'
expect_out '4
3 docs' 'a partial clone'
like "$(err)" "${git_does}partial clones*" 'which is said'
run rm --files --force f
run run --repo "$ssh_url/new" -- sh -c 'cat one; git rev-parse --show-object-format; git remote get-url origin'
expect_out "one
sha256
$ssh_url/new" 'a SHA-256 repository'
run run --repo "$ssh_url/new" -- cat one
expect_out one 'again, into its mirror'
run run --repo "$ssh_url/tree" --depth 1 -- git log --format=%s
expect_out 3 'a part of the history'
run run --repo "$ssh_url/tree" --depth 2 --filter blob:none -- git log --format=%s
expect_out '3
2' 'both'
run run --session l --repo "$ssh_url/big" --lfs -- sh -c 'cat docs/d.bin src/same.bin; git status --short'
expect_out 'documents
same' 'LFS content'
like "$(cat "$lfs_log")" "200 POST /private/big.git/info/lfs/objects/batch Basic $token_sent*" \
	'from where its ssh server says, with the token that it gives'
clone "$lfs_url/open/big"
same l big 'LFS content'
is "$(sed "s/ '.*//" "$ssh_dir/commands" | sort -u)" 'git-lfs-authenticate /big download
git-upload-pack' 'nothing else is asked of it'
rm "$HOME"/.ssh/id_*
has_key "$ssh_key_unknown"
has_key "$ssh_key" id_ecdsa
run run --repo "$ssh_url/tree" --filter blob:none -- cat top
expect_out 3 'each key is tried'
has_key "$ssh_key_rsa" id_ecdsa
run run --repo "$ssh_url/tree" --filter blob:none -- cat top
expect_out 3 'of RSA, too, with SHA-2'
grep ssh-rsa "$ssh_known_hosts" >"$work/rsa"
knows "$work/rsa"
run run --repo "$ssh_url/tree" --filter blob:none -- cat top
expect_out 3 'to a server of which an RSA key is known'
rm -rf "$work/w/clone"
finish

begin_hostssh 'addresses'
has_key "$ssh_key" work
configured "Host work w*\n HostName 127.0.0.1\n Port $ssh_port\n User $ssh_user\n IdentityFile ~/.ssh/work\n"
for url in ssh://work/tree work:/tree "$ssh_user@work:tree" work:tree; do
	run run --repo "$url" --filter blob:none -- sh -c 'cat top; git remote get-url origin'
	is "$rc $(out)" "0 3
$url" "$url"
done
for url in ssh://work/big work:/big "$ssh_user@work:big" work:big; do
	run run --repo "$url" --lfs -- cat docs/d.bin
	expect_out documents "LFS content: $url"
done
for url in ssh://-oProxyCommand=touch/x ssh://-l@127.0.0.1/x 'ssh://127.0.0.1/-x' -oProxyCommand=x:y '127.0.0.1:-x'; do
	run run --repo="$url" --filter blob:none -- true
	is "$rc" 125 "is refused: $url"
done
finish

begin_hostssh 'a key is nowhere'
has_key "$ssh_key"
for what in 'tree --filter blob:none' 'big --lfs' 'new'; do
	read -ra words <<<"$what"
	run run --session s --repo "$ssh_url/${words[0]}" "${words[@]:1}" -- sh -c 'git rev-parse HEAD; env; ls -la ~ ~/.ssh
cat /proc/*/environ /proc/*/cmdline; find / -xdev -type f -size -64k -newer /proc/self/exe -exec cat {} + \
2>/dev/null; cat .git/config'
	[ "$rc" = 0 ] && grep -q "^[0-9a-f]\{40\}" "$work/out"
	ok "$what: the repository is checked out"
	! grep -qaF -e "$secret_line" -e "$https_token" -e "$token_sent" "$work/out"
	ok "$what: inside it is not, nor is the token"
	is "$(traces_of_key "$secret_line")$(traces_of_key "$https_token")$(traces_of_key "$token_sent")" '' "$what: nor outside"
	run rm --files --force s
done
# while a server keeps ssh waiting: in no file, argument or environment then either
cp "$ssh_dir/command" "$work/command"
says 'sleep 600'
: >"$ssh_dir/commands"
start run --repo "$ssh_url/tree" --filter blob:none -- true
asked() { grep -q upload-pack "$ssh_dir/commands"; }
until_true 20 asked
key_in_proc() {
	local dir
	for dir in /proc/[0-9]*; do
		grep -laF -e "$secret_line" "$dir/environ" "$dir/cmdline" 2>/dev/null
	done
}
is "$(key_in_proc)$(traces_of_key "$secret_line")" '' 'while ssh runs, neither'
# control: it is found where it is
KEY=$secret_line sleep 600 &
like "$(key_in_proc)" "/proc/$!/environ" 'where it is it would be found'
kill $!
# not what looks for it
helpers() {
	# some end while they are read
	{ cat /proc/[0-9]*/cmdline 2>/dev/null || :; } | tr '\0' ' ' |
		grep -e "[-]-connect-git $ssh_url" -e "[s]sh -Fnone .* -p $ssh_port " >/dev/null
}
helpers
ok 'which it does'
kill -INT "$bg"
wait_bg
gone() { ! helpers; }
until_true 10 gone
ok 'and not when its caller has enough'
cp "$work/command" "$ssh_dir/command"
finish

begin_hostssh 'a passphrase'
CASEMATE_SSH_PASSPHRASE=$ssh_passphrase run run --repo "$ssh_url/tree" --filter blob:none --ssh-key "$ssh_key_locked" \
	-- sh -c 'cat top; env'
[ "$rc" = 0 ] && grep -q '^3' "$work/out" && ! grep -qF "$ssh_passphrase" "$work/out"
ok 'is taken from the environment, and away from it'
is "$(traces_of_key "$ssh_passphrase")" '' 'it is nowhere'
CASEMATE_SSH_PASSPHRASE=wrong run run --repo "$ssh_url/tree" --filter blob:none --ssh-key "$ssh_key_locked" -- true
refused '*the key for 127.0.0.1 cannot be used' 'check the passphrase*' 'a wrong one'
finish

begin_hostssh 'who says no'
has_key "$ssh_key_unknown"
run run --repo "$ssh_url/tree" --filter blob:none -- true
refused "cannot fetch '$ssh_url/tree': 127.0.0.1 does not accept the key" '*--ssh-key FILE*' 'a server that does not know the key'
rm "$HOME"/.ssh/id_*
run run --repo "$ssh_url/tree" --filter blob:none -- true
refused '*127.0.0.1 wants a key, and there is none' 'name one with --ssh-key*' 'one that is told none'
has_key "$ssh_key"
TOKEN=$ssh_user:hunter2 run run --repo "$ssh_url/tree" --filter blob:none --git-credential env:TOKEN -- true
refused '*git is told no password*' '*--ssh-key FILE*' 'a password is for libgit2 alone'
run run --repo "$ssh_url/none" --filter blob:none -- true
refused '*127.0.0.1 has no such repository' '*' 'no repository'
run run --repo ssh://127.0.0.1:1/x --filter blob:none -- true
refused "*cannot connect to 127.0.0.1 port 1: ssh says 'Connection refused'" '*' 'no server'
run run --repo ssh://no-such-host.invalid/x --filter blob:none -- true
refused "*the name 'no-such-host.invalid' is not known" '*' 'no host'
cp "$ssh_dir/command" "$work/command"
says 'printf "\\033[31mgo away\\n" >\&2; exit 1'
run run --repo "$ssh_url/tree" --filter blob:none -- true
refused '*127.0.0.1 refuses to serve this repository' "*git ls-remote*" 'in words of its own'
! grep -q 'go away\|\[31m' "$work/err"
ok 'which are not shown'
says 'kill -9 \$PPID'
run run --repo "$ssh_url/tree" --filter blob:none -- true
refused '*the connection to 127.0.0.1 broke off*' 'try again' 'a connection that lasts'
says 'yes >\&2'
limit=100 run run --repo "$ssh_url/tree" --filter blob:none -- true
refused '*the server sends refs or messages without end' '*' 'words without an end'
says 'sleep 600'
limit=100 run run --repo "$ssh_url/tree" --filter blob:none -- true
refused "*the server said nothing for 25 s" '*' 'one that is silent'
cp "$work/command" "$ssh_dir/command"
finish

begin_hostssh 'a host key'
has_key "$ssh_key"
rm "$HOME/.ssh/known_hosts"
run run --repo "$ssh_url/tree" --filter blob:none -- true
refused "cannot fetch '$ssh_url/tree': the host key of 127.0.0.1 is not a known one: ED25519 $fingerprint" \
	"compare it *: ssh-keyscan -p $ssh_port 127.0.0.1 >>~/.ssh/known_hosts" 'that is unknown'
[ ! -e "$HOME/.ssh/known_hosts" ]
ok 'and stays so'
knows "$ssh_known_others"
run run --repo "$ssh_url/tree" --filter blob:none -- true
refused "*warning: the host key of 127.0.0.1 has changed*ED25519 $fingerprint is none of those*" \
	"*ssh-keygen -R '\[127.0.0.1\]:$ssh_port'*" 'that is another'
sed 's/^/@revoked /' "$ssh_known_hosts" | cat - "$ssh_known_hosts" >"$work/revoked"
knows "$work/revoked"
run run --repo "$ssh_url/tree" --filter blob:none -- true
refused "*warning: the host key of 127.0.0.1 is revoked*ED25519 $fingerprint*" '*' 'that is revoked'
ssh-keygen -q -N '' -t ecdsa -f "$work/ecdsa"
printf '[127.0.0.1]:%s %s\n' "$ssh_port" "$(cut -d ' ' -f 1,2 "$work/ecdsa.pub")" >"$work/kind"
knows "$work/kind"
run run --repo "$ssh_url/tree" --filter blob:none -- true
refused '*127.0.0.1 has no host key of a kind that is known of it' '*ssh-keyscan*' 'of another kind'
is "$(ssh_commands)" '' 'nothing was asked of it'
# what the user and the machine say otherwise
cat >"$work/lax" <<-EOF
	Host *
	 StrictHostKeyChecking no
	 ProxyCommand touch $work/w/ran; nc %h %p
	 UserKnownHostsFile $ssh_known_hosts
EOF
install -m 644 "$work/lax" "$HOME/.ssh/config"
give "$HOME/.ssh/config"
if is_root; then
	mkdir -p /etc/ssh && mount -t tmpfs casemate-test /etc/ssh && cp "$work/lax" /etc/ssh/ssh_config
fi
run run --repo "$ssh_url/tree" --filter blob:none -- true
refused '*127.0.0.1 has no host key of a kind that is known of it' '*' 'whatever configurations say'
[ ! -e "$work/w/ran" ]
ok 'whose programs are not run'
if is_root; then
	# without a jail, that has neither of them
	"${as[@]}" mkdir "$work/w/m"
	{ printf '%s\0' "$ssh_user" && cat "$ssh_key" && printf '\0\0'; } |
		"${as[@]}" "$top/bin/casemate-checkout" --fetch "$ssh_url/tree" --mirror "$work/w/m" \
			--home "$HOME" --credential-fd 0 --filter blob:none >"$work/out" 2>"$work/err"
	like "$? $(err)" '1 *has no host key of a kind that is known of it*' 'nor in a jail that has them'
	[ ! -e "$work/w/ran" ]
	ok 'whose programs are not run then'
	umount /etc/ssh
	rm -rf "$work/w/m"
fi
finish

# Whoever leads git or git-lfs to another server, or to ask another thing.
begin_hostssh 'what git may ask for'
connect() { # SSH-ARGUMENT...
	printf 'git\0' >"$work/credential"
	: >"$work/said"
	"$top/bin/casemate-checkout" --connect-git ssh://git@127.0.0.1:1/x 127.0.0.1 1 - - "$@" \
		>"$work/out" 2>"$work/err" 10<"$work/credential" 11<>"$work/said"
	rc=$?
}
connect -o SendEnv=GIT_PROTOCOL -p 1 git@127.0.0.1 "git-upload-pack '/x'"
is "$rc $(err)" '255 ' 'the server of the address, which is not there'
grep -qa Connection "$work/said"
ok 'as ssh says'
connect -p 1 -- git@127.0.0.1 'git-lfs-authenticate /x download'
is "$rc $(err)" '255 ' 'where its LFS content is'
for words in '-p|1|git@127.0.0.2' '-p|2|git@127.0.0.1' 'git@127.0.0.1' '-p|1|root@127.0.0.1' '-p|1|git@127.0.0.1@x'; do
	IFS='|' read -ra words <<<"$words"
	connect "${words[@]}" "git-upload-pack '/x'"
	is "$rc $(err)" "255 casemate: another ssh server than the repository's is not asked" "not ${words[*]}"
done
own=(-p 1 git@127.0.0.1)
for words in '-oProxyCommand=x' '-F/dev/null' '-o|ProxyCommand=x' '-A' '--|-oProxyCommand=x'; do
	IFS='|' read -ra words <<<"$words"
	connect "${words[@]}" "${own[@]}" "git-upload-pack '/x'"
	is "$rc $(err)" '255 casemate: this is not asked of an ssh server' "not with ${words[*]}"
done
for command in "git-receive-pack '/x'" 'git-lfs-transfer /x download' 'git-lfs-authenticate /x upload' id; do
	connect "${own[@]}" "$command"
	is "$rc $(err)" '255 casemate: this is not asked of an ssh server' "not for $command"
done
connect "${own[@]}" "git-upload-pack '/x'" more
is "$rc $(err)" '255 casemate: this is not asked of an ssh server' 'nor for more'
finish

begin_hostssh 'an agent'
if [ "$identity" = root ] && is_root; then
	run run --repo "$ssh_url/tree" --filter blob:none --ssh-agent -- true
	refused "root's ssh agent cannot be used*" '*--ssh-key FILE*' "root's"
else
	agent=$work/home/agent
	"${as[@]}" ssh-agent -a "$agent" >"$work/agent"
	agent_pid=$(sed -n 's/.*SSH_AGENT_PID=\([0-9]*\).*/\1/p' "$work/agent")
	export SSH_AUTH_SOCK=$agent
	run run --repo "$ssh_url/tree" --filter blob:none --ssh-agent -- true
	refused '*127.0.0.1 does not accept the key' '*' 'without a key'
	"${as[@]}" ssh-add -q "$ssh_key_unknown"
	run run --repo "$ssh_url/tree" --filter blob:none --ssh-agent -- true
	refused '*127.0.0.1 does not accept the key' '*' 'without the key'
	"${as[@]}" ssh-add -q "$ssh_key"
	run run --repo "$ssh_url/tree" --filter blob:none --ssh-agent -- sh -c 'cat top; find / -xdev -type s 2>/dev/null'
	expect_out 3 'signs, and is not in the jail of the session'
	run run --repo "$ssh_url/big" --lfs --ssh-agent -- cat docs/d.bin
	expect_out documents 'also for LFS content'
	run run --repo "$ssh_url/new" --ssh-agent -- cat one
	expect_out one 'and a SHA-256 repository'
	run run --repo "$ssh_url/tree" --filter blob:none -- true
	refused '*127.0.0.1 wants a key, and there is none' '*' 'is not asked unless it is said'
	unset SSH_AUTH_SOCK
	kill "$agent_pid"
	until_gone "$agent_pid"
	rm -f "$agent"
fi
finish

begin_hostssh 'lfs content that is not had'
has_key "$ssh_key"
none_left() { find "$root" -mindepth 1 2>/dev/null; }
answers "$lfs_url/private/@.git/info/lfs" wrong
run run --repo "$ssh_url/big" --lfs -- true
refused "cannot fetch '$ssh_url/big': *does not accept what*" '*' 'with a token that is wrong'
answers "http://192.0.2.1/private/@.git/info/lfs" "$https_token"
run run --repo "$ssh_url/big" --lfs -- true
refused '*over http others could read it' '*' 'by http of elsewhere'
rm "$ssh_lfs_answer"
run run --repo "$ssh_url/big" --lfs -- true
refused '*127.0.0.1 does not say where its LFS content is*' '*' 'of a server that does not know the command'
run run --repo "$ssh_url/big" -- cat docs/d.bin
like "$rc $(out)" '0 version https://git-lfs*' 'without --lfs it is a pointer'
answers "$lfs_url/private/@.git/info/lfs" "$https_token"
run run --repo "$ssh_url/gone" --lfs -- true
refused "cannot fetch '$ssh_url/gone': *" '*without --lfs*' 'that the server has not'
is "$(none_left)" '' 'and no checkout is left'
is "$(find "$mirrors" -path '*/lfs/logs/*'; grep -r access "$mirrors" --include=config)" '' \
	'nor what git-lfs wrote down of it'
is "$(traces_of_key "$token_sent")$(traces_of_key "$https_token")" '' 'nor the token, when it failed'
evil=$repos/evil
rm -rf "$evil" && cp -a "$repos/big" "$evil"
printf '[lfs]\n\turl = ssh://%s@127.0.0.2:%s/big\n' "$ssh_user" "$ssh_port" >"$evil/.lfsconfig"
commit "$evil" evil
run run --repo "$ssh_url/evil" --lfs -- cat docs/d.bin
expect_out documents 'another server of .lfsconfig is not asked'
like "$(err)" '*note: *.lfsconfig names another LFS server, which is not asked*' 'which is said'
rm -rf "$evil"
finish

# What is missing on the host is said before anybody is asked.
begin_hostssh 'without ssh'
"${as[@]}" mkdir "$work/w/m"
printf 'git\0' >"$work/credential"
for option in '--filter blob:none' --lfs '--depth 1'; do
	# shellcheck disable=SC2086
	hidden /usr/bin/ssh --fetch "$ssh_url/big" --mirror "$work/w/m" $option <"$work/credential"
	like "$rc $(err)" '1 *ssh is not installed on this host*hint: install it (the package openssh-client)*' "ssh: $option"
done
printf 'git\0key\0passphrase\0' >"$work/credential"
hidden /usr/bin/ssh-keygen --fetch "$ssh_url/big" --mirror "$work/w/m" --credential-fd 0 --filter blob:none <"$work/credential"
like "$rc $(err)" '1 *ssh-keygen is not installed on this host*hint: install it*' 'ssh-keygen'
is "$(ssh_commands)$(ls -A "$work/w/m")" '' 'nobody was asked, and nothing was written'
rm -rf "$work/w/m"
finish

done_testing
