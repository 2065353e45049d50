# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Repositories by sshd and git-shell, over servers.sh, which sources this.
#
# Each repository DIR/NAME at $ssh_url/NAME, for $ssh_user, who is the one that runs the test: an
# sshd that is not root's can log in nobody else.
#
#   ssh_key ssh_key_rsa   private keys that are let in; the public ones end with .pub
#   ssh_key_locked        another, whose passphrase is $ssh_passphrase
#   ssh_key_unknown       a key that is not let in
#   ssh_known_hosts       a file with the server's host keys, ed25519 and rsa
#   ssh_known_others      one with other keys for the same address
#
# What it answers to git-lfs-authenticate is in the file $ssh_lfs_answer, @ in it being the repository;
# without the file it does not know the command.
#
# ssh_change_host_keys begins it again at the same port, with the keys of ssh_known_others.
# ssh_commands prints what it was asked to run.
#
# shellcheck disable=SC2034,SC2154
# SC2034: what is set here is read by the tests
# SC2154: top and others are set by lib.sh and servers.sh

server_ssh() { # DIR
	missing=$(missing_program sshd ssh-keygen git-shell) && return 1
	ssh_user=$(id -un)
	"$(getent passwd "$ssh_user" | cut -d : -f 7)" -c true >/dev/null 2>&1 || {
		missing="shell of $ssh_user's"
		return 1
	}
	new_server_dir
	ssh_dir=$server_dir
	ssh_keys || return 1
	ssh_command "$1"
	! is_root || ssh_as_root || return 1
	ssh_begin host
}

ssh_keys() {
	local kind
	ssh_passphrase=open-sesame-$RANDOM
	for kind in ed25519 rsa; do
		ssh-keygen -q -N '' -t $kind -f "$ssh_dir/host_$kind"
		ssh-keygen -q -N '' -t $kind -f "$ssh_dir/other_$kind"
		ssh-keygen -q -N '' -t $kind -f "$ssh_dir/key_$kind"
	done
	ssh-keygen -q -N "$ssh_passphrase" -t ed25519 -f "$ssh_dir/key_locked"
	ssh-keygen -q -N '' -t ed25519 -f "$ssh_dir/key_unknown" || return 1
	cat "$ssh_dir"/key_{ed25519,rsa,locked}.pub >"$ssh_dir/authorized"
	ssh_key=$ssh_dir/key_ed25519
	ssh_key_rsa=$ssh_dir/key_rsa
	ssh_key_locked=$ssh_dir/key_locked
	ssh_key_unknown=$ssh_dir/key_unknown
	ssh_known_hosts=$ssh_dir/known_hosts
	ssh_known_others=$ssh_dir/known_others
	# who calls casemate has to read the private ones, and nobody else may
	[ "$(type -t give)" != function ] || give "$ssh_dir"/key_*
}

# Whatever is asked for is written down, and what is no command of git's is refused by git-shell.
ssh_command() { # DIR
	: >"$ssh_dir/commands"
	ssh_lfs_answer=$ssh_dir/lfs-answer
	cat >"$ssh_dir/command" <<-EOF
		#!/bin/sh
		printf '%s\n' "\$SSH_ORIGINAL_COMMAND" >>"$ssh_dir/commands"
		export GIT_CONFIG_SYSTEM=/dev/null GIT_CONFIG_GLOBAL="$top/gitconfig"
		cd "$1" || exit 1
		case \$SSH_ORIGINAL_COMMAND in
		'git-lfs-authenticate '*)
			[ ! -e "$ssh_lfs_answer" ] || {
				set -- \$SSH_ORIGINAL_COMMAND
				exec sed "s|@|\${2#/}|" "$ssh_lfs_answer"
			}
			;;
		esac
		case \$SSH_ORIGINAL_COMMAND in
		"git-upload-pack '/"*) set -- "git-upload-pack './\${SSH_ORIGINAL_COMMAND#"git-upload-pack '/"}" ;;
		*) set -- "\$SSH_ORIGINAL_COMMAND" ;;
		esac
		exec git-shell -c "\$1"
	EOF
	chmod 755 "$ssh_dir/command"
}

# Without PAM an account whose password is locked is not let in, with a key neither; PAM would ask
# for more than a container has.  Only this test sees the other file.  The directory is sshd's own,
# which Debian's start script makes and leaves, too.
ssh_as_root() {
	[ -d /run/sshd ] || mkdir -m 755 /run/sshd
	case $(getent shadow "$ssh_user" | cut -d : -f 2) in
	'!'*) ;;
	*) return 0 ;;
	esac
	[ -n "${CM_TEST_IN_NAMESPACE:-}" ] || {
		missing="password of $ssh_user's that is not locked"
		return 1
	}
	(umask 077 && sed "s/^$ssh_user:[^:]*:/$ssh_user:*:/" /etc/shadow >"$ssh_dir/shadow") &&
		mount --bind "$ssh_dir/shadow" /etc/shadow
}

ssh_configuration() { # KEYS PORT
	cat <<-EOF
		ListenAddress 127.0.0.1:$2
		HostKey $ssh_dir/$1_ed25519
		HostKey $ssh_dir/$1_rsa
		AuthorizedKeysFile $ssh_dir/authorized
		ForceCommand $ssh_dir/command
		AllowUsers $ssh_user
		PidFile none
		UsePAM no
		StrictModes no
		PermitRootLogin prohibit-password
		AuthenticationMethods publickey
		AcceptEnv GIT_PROTOCOL
		DisableForwarding yes
		PermitTTY no
		PrintMotd no
	EOF
}

ssh_begin() { # KEYS [PORT]
	local try port=${2:-}
	for ((try = 0; try < 10; try++)); do
		[ -n "${2:-}" ] || {
			free_port
			port=$free_port
		}
		ssh_configuration "$1" "$port" >"$ssh_dir/sshd_config"
		# sshd runs itself again, by its path
		serve "is_serving_at $port" "$ssh_dir/log" "$(PATH=$PATH:/usr/sbin command -v sshd)" \
			-D -e -f "$ssh_dir/sshd_config" && break
	done
	[ $try -lt 10 ] || {
		cat "$ssh_dir/log" >&2
		return 1
	}
	ssh_port=$port
	ssh_pid=${server_pids[-1]}
	ssh_url=ssh://$ssh_user@127.0.0.1:$port
	sed "s/^/[127.0.0.1]:$port /" "$ssh_dir"/host_*.pub >"$ssh_known_hosts"
	sed "s/^/[127.0.0.1]:$port /" "$ssh_dir"/other_*.pub >"$ssh_known_others"
}

ssh_change_host_keys() {
	stop_server "$ssh_pid" && ssh_begin other "$ssh_port"
}

ssh_commands() { cat "$ssh_dir/commands"; }
