#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# --repo of what an ssh server serves: which keys are sent, which server is believed, and each way in
# which one says no.
# shellcheck disable=SC2016,SC2154
# SC2016: what single quotes keep from this shell is for the shell inside
# SC2154: addresses and keys are set by servers.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/lib-remote.sh"
. "$(dirname "${BASH_SOURCE[0]}")/lib-ssh.sh"

(cd "$repos" && repo_plain plain && mkdir -p "$repos/group" && git clone -q --bare plain group/app.git)
server_ssh "$repos" || skip_all TOOLS "no $missing"
first=$(git -C "$repos/plain" rev-parse HEAD)
fingerprint=$(ssh-keygen -lf "$ssh_dir/host_ed25519.pub" | cut -d ' ' -f 2)
other_fingerprint=$(ssh-keygen -lf "$ssh_dir/other_ed25519.pub" | cut -d ' ' -f 2)
secret_line=$(sed -n 3p "$ssh_key")

begin_ssh 'a key'
run run --repo "$ssh_url/plain" --ssh-key "$ssh_key" -- sh -c 'git rev-parse HEAD
git remote get-url origin; git rev-parse --abbrev-ref HEAD @{u}'
is "$rc $(out)" "0 $first
$ssh_url/plain
main
origin/main" 'is named, and the repository checked out'
run run --repo "$ssh_url/group/app.git" --ssh-key "$ssh_key" -- git rev-parse HEAD
expect_out "$first" 'a bare one'
run run --repo "ssh://127.0.0.1:$ssh_port/plain" --ssh-key "$ssh_key" -- true
if [ "$ssh_user" = git ]; then
	expect_status 0 'without a user name it is for git'
else
	refused "cannot fetch *: 127.0.0.1 does not accept the key" '*' 'without a user name it is for git'
fi
has_key "$ssh_key"
run run --repo "$ssh_url/plain" -- git rev-parse HEAD
expect_out "$first" 'the one in ~/.ssh is found'
has_key "$ssh_key_unknown"
run run --repo "$ssh_url/plain" -- true
refused "cannot fetch '$ssh_url/plain': 127.0.0.1 does not accept the key" '*--ssh-key FILE*' \
	'one that the server does not know: not from the mirror either'
has_key "$ssh_key" id_ecdsa
run run --repo "$ssh_url/plain" -- git rev-parse HEAD
expect_out "$first" 'each of them is tried'
chmod 644 "$HOME/.ssh/id_ecdsa"
run run --repo "$ssh_url/plain" -- true
is "$rc" 125 'but not one that others can read'
rm "$HOME"/.ssh/id_*
run run --repo "$ssh_url/plain" -- true
refused '*127.0.0.1 wants a key, and there is none' 'name one with --ssh-key*' 'none'
run run --repo "$ssh_url/plain" --ssh-key "$ssh_key_rsa" -- true
refused '*127.0.0.1 does not accept the key' '*SHA-1*' 'an RSA key'
run run --repo "$ssh_url/plain" --ssh-key "$ssh_key.pub" -- true
refused "'$ssh_key.pub' is no private key of ssh" 'it is the public half*' 'the wrong half'
run run --repo "$ssh_url/plain" --ssh-key "$work/none" -- true
refused "--ssh-key: cannot read '$work/none'*" '*' 'a file that is not there'
head -c 20000 /dev/zero >"$work/w/zero"
run run --repo "$ssh_url/plain" --ssh-key "$work/w/zero" -- true
refused "'$work/w/zero' is no private key of ssh" '*' 'what is none'
rm "$work/w/zero"
finish

begin_ssh 'a key is nowhere'
has_key "$ssh_key"
run run --repo "$ssh_url/plain" -- sh -c 'git rev-parse HEAD; env; ls -la ~ ~/.ssh
cat /proc/*/environ /proc/*/cmdline; find / -xdev -type f -size -64k -newer /proc/self/exe -exec cat {} + \
2>/dev/null; cat .git/config'
[ "$rc" = 0 ] && grep -q "$first" "$work/out"
ok 'the repository is checked out'
! grep -qaF -e "$secret_line" "$work/out"
ok 'inside it is not'
is "$(traces_of_key "$secret_line")" '' 'nor outside'
# control: it is found where it is
cp "$ssh_key" "$work/home/found"
is "$(traces_of_key "$secret_line")" "$work/home/found" 'where it is it would be found'
rm "$work/home/found"
run run --session s --repo "$ssh_url/plain" -- true
expect_status 0 'of a session that lasts'
is "$(traces_of_key "$secret_line")" '' 'it is nowhere, too'
is "$(find "$work/state" "$work/runtime" /var/lib/casemate -name known_hosts 2>/dev/null)" '' \
	'what was known of the server is gone'
run rm --files --force s
expect_status 0 'and it goes'
finish

begin_ssh 'a passphrase'
run run --repo "$ssh_url/plain" --ssh-key "$ssh_key_locked" -- true
refused "the key '$ssh_key_locked' has a passphrase, and none is given" 'export CASEMATE_SSH_PASSPHRASE*' \
	'is asked for'
CASEMATE_SSH_PASSPHRASE=$ssh_passphrase run run --repo "$ssh_url/plain" --ssh-key "$ssh_key_locked" \
	-- sh -c 'git rev-parse HEAD; env'
[ "$rc" = 0 ] && grep -q "$first" "$work/out" && ! grep -qF "$ssh_passphrase" "$work/out"
ok 'is taken from the environment, and away from it'
is "$(traces_of_key "$ssh_passphrase")" '' 'it is nowhere'
CASEMATE_SSH_PASSPHRASE=wrong run run --repo "$ssh_url/plain" --ssh-key "$ssh_key_locked" -- true
refused '*the key for 127.0.0.1 cannot be used' 'check the passphrase*' 'a wrong one'
has_key "$ssh_key_locked"
run run --repo "$ssh_url/plain" -- true
refused '*wants a key, and there is none' '*' 'the one in ~/.ssh is not taken without it'
like "$(err)" "*the key '$HOME/.ssh/id_ed25519' has a passphrase*" 'and it is said why'
CASEMATE_SSH_PASSPHRASE=$ssh_passphrase run run --repo "$ssh_url/plain" -- git rev-parse HEAD
expect_out "$first" 'but with it'
finish

begin_ssh 'a host key'
has_key "$ssh_key"
rm "$HOME/.ssh/known_hosts"
run run --repo "$ssh_url/plain" -- true
refused "cannot fetch '$ssh_url/plain': the host key of 127.0.0.1 is not a known one: ED25519 $fingerprint" \
	"compare it *: ssh-keyscan -p $ssh_port 127.0.0.1 >>~/.ssh/known_hosts" 'that is unknown'
[ ! -e "$HOME/.ssh/known_hosts" ]
ok 'and stays so'
# on a busy machine it gives up on a key
scanned() {
	ssh-keyscan -p "$ssh_port" 127.0.0.1 2>/dev/null >"$HOME/.ssh/known_hosts"
	grep -q ed25519 "$HOME/.ssh/known_hosts"
}
until_true 20 scanned
run run --repo "$ssh_url/plain" -- git rev-parse HEAD
expect_out "$first" 'the command that is told adds it'
for order in sort 'sort -r'; do
	$order "$ssh_known_hosts" >"$work/ordered"
	knows "$work/ordered"
	run run --repo "$ssh_url/plain" -- git rev-parse HEAD
	expect_out "$first" "it is found beside another kind: $order"
done
ssh-keygen -q -H -f "$HOME/.ssh/known_hosts" 2>/dev/null >&2
rm -f "$HOME/.ssh/known_hosts.old"
give "$HOME/.ssh/known_hosts"
run run --repo "$ssh_url/plain" -- git rev-parse HEAD
expect_out "$first" 'it is found where the names are hidden'
knows "$ssh_known_others"
run run --repo "$ssh_url/plain" -- true
refused "*warning: the host key of 127.0.0.1 has changed*ED25519 $fingerprint is none of those*" \
	"*ssh-keygen -R '\[127.0.0.1\]:$ssh_port'*" 'that is another'
sed 's/^/@revoked /' "$ssh_known_hosts" | cat - "$ssh_known_hosts" >"$work/revoked"
knows "$work/revoked"
run run --repo "$ssh_url/plain" -- true
refused "*warning: the host key of 127.0.0.1 is revoked*ED25519 $fingerprint*" '*' 'that is revoked'
{
	echo '@cert-authority * ssh-ed25519 AAAA'
	echo '* sk-ssh-ed25519@openssh.com AAAA'
	echo 'nonsense'
	cat "$ssh_known_hosts"
} >"$work/odd"
knows "$work/odd"
run run --repo "$ssh_url/plain" -- git rev-parse HEAD
expect_out "$first" 'among lines that the library knows nothing of'
if is_root; then
	: >"$work/none"
	knows "$work/none"
	[ -d /etc/ssh ] && mount -t tmpfs casemate-test /etc/ssh && cp "$ssh_known_hosts" /etc/ssh/ssh_known_hosts
	run run --repo "$ssh_url/plain" -- git rev-parse HEAD
	expect_out "$first" 'that the machine knows'
	umount /etc/ssh
fi
grep ssh-rsa "$ssh_known_hosts" >"$work/rsa"
knows "$work/rsa"
run run --repo "$ssh_url/plain" -- true
refused '*127.0.0.1 has no host key of a kind that is known of it' '*ssh-keyscan*' 'of RSA alone'
finish

begin_ssh 'configuration'
has_key "$ssh_key_unknown"
has_key "$ssh_key" work
knows "$ssh_known_hosts"
configured "Host work w*\n HostName 127.0.0.1\n Port $ssh_port\n User $ssh_user\n IdentityFile ~/.ssh/work\n"
for url in ssh://work/plain work:/plain "$ssh_user@work:/plain" ssh://w/group/app.git; do
	run run --repo "$url" -- sh -c 'git rev-parse HEAD; git remote get-url origin'
	is "$rc $(out)" "0 $first
$url" "$url"
done
configured "Host work\n HostName bad/name\n"
run run --repo ssh://work/plain -- true
refused "*/.ssh/config has a HostName for 'work' that is none" '*' 'a name that is none'
configured "Host 127.*\n IdentityFile ~/.ssh/work\n"
run run --repo "$ssh_url/plain" -- git rev-parse HEAD
expect_out "$first" 'only a key'
chmod 666 "$HOME/.ssh/config"
run run --repo "$ssh_url/plain" -- true
is "$rc" 125 'which others could have written is not read'
finish

begin_ssh 'an agent'
run run --repo "$ssh_url/plain" --ssh-agent -- true
if [ "$identity" = root ] && is_root; then
	refused "root's ssh agent cannot be used*" '*--ssh-key FILE*' "root's"
else
	refused '--ssh-agent: SSH_AUTH_SOCK names no socket' '*ssh-agent*' 'that is not there'
	agent=$work/home/agent
	"${as[@]}" ssh-agent -a "$agent" >"$work/agent"
	agent_pid=$(sed -n 's/.*SSH_AGENT_PID=\([0-9]*\).*/\1/p' "$work/agent")
	export SSH_AUTH_SOCK=$agent
	"${as[@]}" ssh-add -q "$ssh_key_unknown"
	run run --repo "$ssh_url/plain" --ssh-agent -- true
	refused '*127.0.0.1 does not accept the key' '*' 'without the key'
	"${as[@]}" ssh-add -q "$ssh_key"
	run run --repo "$ssh_url/plain" --ssh-agent -- sh -c 'git rev-parse HEAD; find / -xdev -type s 2>/dev/null'
	expect_out "$first" 'signs, and is not in the jail of the session'
	run run --repo "$ssh_url/plain" -- true
	refused '*127.0.0.1 wants a key, and there is none' '*' 'is not asked unless it is said'
	unset SSH_AUTH_SOCK
	kill "$agent_pid"
	until_gone "$agent_pid"
	rm -f "$agent"
fi
finish

begin_ssh 'a password'
printf '%s:%s' "$ssh_user" hunter2 >"$work/w/password"
chmod 600 "$work/w/password"
give "$work/w/password"
run run --repo "$ssh_url/plain" --git-credential "file:$work/w/password" -- true
refused '*127.0.0.1 wants another kind of credential than there is' '*it may want a key*' 'where a key is wanted'
run run --repo "ssh://127.0.0.1:$ssh_port/plain" --git-credential "file:$work/w/password" -- true
refused '*127.0.0.1 wants another kind of credential than there is' '*' 'whose name is not in the address'
rm "$work/w/password"
finish

begin_ssh 'what is not there'
has_key "$ssh_key"
run run --repo "$ssh_url/none" -- true
refused '*127.0.0.1 has no such repository' '*' 'a repository'
run run --repo ssh://127.0.0.1:1/x -- true
refused '*cannot connect to 127.0.0.1 port 1*' '*' 'a server'
cp "$ssh_dir/command" "$work/command"
says 'printf "\\033[31mERROR: Repository not found.\\n" >\&2; exit 1'
run run --repo "$ssh_url/plain" -- true
refused '*127.0.0.1 has no such repository' '*' 'a repository, in other words'
! grep -q 'ERROR\|\[31m' "$work/err"
ok 'which are not shown'
says 'printf "\\033[31mgo away\\n" >\&2; exit 1'
run run --repo "$ssh_url/plain" -- true
refused '*127.0.0.1 refuses to serve this repository' "*git ls-remote*" 'the right to read it'
! grep -q 'go away\|\[31m' "$work/err"
ok 'nor are these'
says 'kill -9 \$PPID'
run run --repo "$ssh_url/plain" -- true
refused '*the connection to 127.0.0.1 broke off*' 'try again' 'a connection that lasts'
cp "$work/command" "$ssh_dir/command"
run run --repo "$ssh_url/plain" -- git rev-parse HEAD
expect_out "$first" 'afterwards it is'
finish

begin_ssh 'a server with other keys'
has_key "$ssh_key"
run run --repo "$ssh_url/plain" -- true
expect_status 0 'is believed before'
ssh_change_host_keys
ok 'it gets others'
run run --repo "$ssh_url/plain" -- true
refused "*has changed*ED25519 $other_fingerprint*" '*' 'and not after: not from the mirror'
knows "$ssh_known_others"
run run --repo "$ssh_url/plain" -- git rev-parse HEAD
expect_out "$first" 'but with these'
finish

# The same server, but that it wants a password, which only this test's accounts have.
wants_password() {
	local shadow=$ssh_dir/shadow-password
	(umask 077 && sed "s|^$ssh_user:[^:]*:|$ssh_user:$(openssl passwd -6 "$1"):|" /etc/shadow >"$shadow") &&
		mount --bind "$shadow" /etc/shadow || return
	ssh_configuration() {
		with_keys "$@" | sed 's/^\(AuthenticationMethods\) .*/\1 password/; s/^\(PermitRootLogin\) .*/\1 yes/'
	}
	stop_server "$ssh_pid" && ssh_begin other "$ssh_port"
}

if is_root && command -v openssl >/dev/null; then
	eval "$(declare -f ssh_configuration | sed '1s/.*/with_keys ()/')"
	password=open-$RANDOM-sesame
	wants_password "$password" || bail 'cannot begin a server with passwords'
	begin_ssh 'a password that is right'
	knows "$ssh_known_others"
	for url in "$ssh_url/plain" "ssh://127.0.0.1:$ssh_port/plain"; do
		TOKEN=$ssh_user:$password run run --repo "$url" --git-credential env:TOKEN -- git rev-parse HEAD
		expect_out "$first" "by --git-credential: ${url%%"$ssh_port"*}"
	done
	run run --repo "${ssh_url/@/:$password@}/plain" -- git remote get-url origin
	expect_out "$ssh_url/plain" 'in the address, and out of it'
	is "$(traces_of_key "$password")" '' 'it is nowhere'
	TOKEN=$ssh_user:wrong run run --repo "$ssh_url/plain" --git-credential env:TOKEN -- true
	refused '*127.0.0.1 does not accept the password' '*' 'a wrong one'
	has_key "$ssh_key"
	run run --repo "$ssh_url/plain" -- true
	refused '*127.0.0.1 wants another kind of credential than there is' '*--git-credential*' 'a key in its place'
	finish
else
	skip ROOT 'only root has accounts for it' 'a password that is right'
fi

done_testing
