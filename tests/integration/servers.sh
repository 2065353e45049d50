# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Git servers on loopback, the real ones: what a checkout over a network is tested against.  Sourced
# after lib.sh, or by a script that sets `top`, a directory of its own, and calls stop_servers at
# its end.
#
#   server_https DIR     every repository below DIR, by nginx and git-http-backend
#   server_git DIR       the same, by git daemon
#   server_ssh DIR       the same, by sshd and git-shell
#   server_bad MODE      one that misbehaves, over http:// and git://
#
# A server_* returns when its server listens, and says where in variables; 1 when it cannot be had,
# with the program that is not there in $missing.
# They are to be called as they are, not in $(...): a server ends with the shell that began it,
# however that ends.  Nothing listens on anything but 127.0.0.1.
#
# Servers run as who runs the test: as root they read any repository, whoever owns it.
#
# shellcheck disable=SC2034,SC2154
# SC2034: what is set here is read by the tests
# SC2154: top is set by lib.sh

# What the machine's clients would go through, and whom they would believe.
unset http_proxy https_proxy all_proxy no_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY
unset GIT_SSL_CAINFO GIT_SSL_CAPATH GIT_SSL_NO_VERIFY SSL_CERT_FILE SSL_CERT_DIR CURL_CA_BUNDLE
unset GIT_SSH GIT_SSH_COMMAND GIT_ASKPASS SSH_ASKPASS SSH_AUTH_SOCK

server_pids=()
n_servers=0
ends+=(stop_servers)
. "$(dirname "${BASH_SOURCE[0]}")/servers-https.sh"
. "$(dirname "${BASH_SOURCE[0]}")/servers-ssh.sh"

# All of a process's children and theirs, it included.
descendants() { # PID
	local child
	echo "$1"
	for child in $(ps -o pid= --ppid "$1"); do
		descendants "$child"
	done
}

stop_server() { # PID
	local pid
	# first of all the one that could begin others
	for pid in $(descendants "$1"); do
		kill -KILL "$pid" 2>/dev/null
	done
	# not a child that could be waited for: see serve
	until_gone "$1"
}

until_gone() { # PID
	local i
	for ((i = 0; i < 500; i++)); do
		kill -0 "$1" 2>/dev/null || return 0
		sleep 0.01
	done
	return 1
}

stop_servers() {
	local pid
	for pid in "${server_pids[@]}"; do
		stop_server "$pid"
	done
	server_pids=()
}

# A directory for a server's own files, with a short name: sockets are in it, and 107 bytes is all
# that a socket's name may have.
new_server_dir() {
	n_servers=$((n_servers + 1))
	server_dir=$top/s$n_servers
	mkdir "$server_dir"
	[ -e "$top/gitconfig" ] || {
		# the repositories may belong to the user that casemate is called by
		printf '[safe]\n\tdirectory = *\n[uploadpack]\n\tallowFilter = true\n' \
			>"$top/gitconfig"
		chmod 644 "$top/gitconfig"
	}
}

# Ports below those that the kernel gives to clients.  Somebody else may take one at any time: a
# server that cannot have its port ends, and is begun again with another.
free_port() {
	local port
	while :; do
		port=$((20000 + RANDOM % 12000))
		case " ${ports_taken:-} " in *" $port "*) continue ;; esac
		grep -q ":$(printf %04X $port) " /proc/net/tcp || break
	done
	ports_taken="${ports_taken:-} $port"
	free_port=$port
}

# Of that process, and not of another that was there first.
is_listening() { # PID PORT
	local inode
	inode=$(awk -v local="0100007F:$(printf %04X "$2")" \
		'$2 == local && $4 == "0A" { print $10 }' /proc/net/tcp)
	[ -n "$inode" ] && [ -n "$(find "/proc/$1/fd" -lname "socket:\[$inode\]" 2>/dev/null)" ]
}

# serve READY LOG COMMAND...: until READY is true with the pid as its last argument; 1 when the
# process ends before that.  The kernel ends it with this shell, and a plain `wait` of the test's
# does not wait for it.
serve() {
	# where Debian has servers, and an ordinary user does not look
	local PATH=$PATH:/usr/sbin ready log=$2 pid i
	read -ra ready <<<"$1"
	shift 2
	GIT_CONFIG_GLOBAL=$top/gitconfig GIT_CONFIG_SYSTEM=/dev/null \
		setpriv --pdeathsig KILL -- "$@" >>"$log" 2>&1 </dev/null &
	pid=$!
	disown "$pid"
	server_pids+=("$pid")
	for ((i = 0; i < 1000; i++)); do
		kill -0 "$pid" 2>/dev/null || return 1
		"${ready[@]}" "$pid" && return 0
		sleep 0.02
	done
	stop_server "$pid"
	return 1
}

is_serving_at() { is_listening "$2" "$1"; } # PORT PID
has_socket() { [ -S "$1" ]; }               # PATH PID

# missing_program PROGRAM...: says which of them is not there; false when all are
missing_program() {
	local program PATH=$PATH:/usr/sbin
	for program; do
		command -v "$program" >/dev/null && continue
		echo "$program"
		return 0
	done
	return 1
}

# --- git:// -------------------------------------------------------------------------------------

# Each repository DIR/NAME at $git_url/NAME.  git_requests prints what was asked of it.
server_git() { # DIR
	local try
	missing=$(missing_program git) && return 1
	new_server_dir
	git_log=$server_dir/log
	for ((try = 0; try < 10; try++)); do
		free_port
		git_url=git://127.0.0.1:$free_port
		# not by `git daemon`, which would be another process
		serve "is_serving_at $free_port" "$git_log" "$(git --exec-path)/git-daemon" \
			--listen=127.0.0.1 --port="$free_port" --base-path="$1" --export-all \
			--verbose --informative-errors "$1" && return 0
	done
	cat "$git_log" >&2
	return 1
}

git_requests() { sed -n "s/^\[[0-9]*\] Request \(.*\)/\1/p" "$git_log"; }

# --- misbehaviour -------------------------------------------------------------------------------

# server_bad MODE [OPTION...]: as tests/helpers/bad_git_server.c has them; $bad_git_server, which the
# test sets, is its path.  $bad_url is its address, $bad_git_url the one by git://; any path will do.
# bad_asked prints the first line of each request, bad_sent how many bytes each connection took that
# is over.
server_bad() {
	missing=$(missing_program "$bad_git_server") && return 1
	new_server_dir
	bad_log=$server_dir/log
	: >"$bad_log"
	serve "says_port $bad_log" "$bad_log" "$bad_git_server" "$@" || {
		cat "$bad_log" >&2
		return 1
	}
	bad_port=$(sed -n 's/^port //p' "$bad_log")
	bad_pid=${server_pids[-1]}
	bad_url=http://127.0.0.1:$bad_port/repository
	bad_git_url=git://127.0.0.1:$bad_port/repository
}

says_port() { grep -q '^port ' "$1"; } # LOG PID
bad_asked() { sed -n 's/^asked //p' "$bad_log"; }
bad_sent() { sed -n 's/^sent //p' "$bad_log"; }

# Sets bad_pack to the options that have it send a repository's branch main, or what
# tests/helpers/hostile_pack.py makes.
bad_pack_of() { # REPOSITORY
	local of=(git -c 'safe.directory=*' -C "$1")
	new_server_dir
	"${of[@]}" rev-list --objects main | "${of[@]}" pack-objects -q --stdout >"$server_dir/pack"
	bad_pack=(--head "$("${of[@]}" rev-parse main)" --pack "$server_dir/pack")
}

bad_pack_hostile() { # KIND AMOUNT
	local id
	new_server_dir
	id=$(python3 "$(dirname "${BASH_SOURCE[0]}")/../helpers/hostile_pack.py" "$1" "$2" \
		"$server_dir/pack") || return 1
	bad_pack=(--head "$id" --pack "$server_dir/pack")
}
