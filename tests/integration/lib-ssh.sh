# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Homes with what ssh finds there, for the tests of --repo by ssh.  After lib-remote.sh.
# shellcheck disable=SC2154
# SC2154: servers.sh knows the keys, and lib.sh where

# A home with the server's keys in it, and none of the user's.
begin_ssh() { # NAME
	begin_mirrors "$1"
	allow '/home/\.ssh( |/)'
	mkdir -m 700 "$HOME/.ssh"
	knows "$ssh_known_hosts"
	give "$HOME/.ssh"
	start_files
}

knows() { # FILE
	cp "$1" "$HOME/.ssh/known_hosts"
	give "$HOME/.ssh/known_hosts"
}

has_key() { # FILE [NAME]
	install -m 600 "$1" "$HOME/.ssh/${2:-id_ed25519}"
	give "$HOME/.ssh/${2:-id_ed25519}"
}

configured() { # LINES
	printf '%b' "$1" >"$HOME/.ssh/config"
	chmod 644 "$HOME/.ssh/config"
	give "$HOME/.ssh/config"
}

# Beside the user's own.
traces_of_key() { traces "$1" | grep -v "^$HOME/.ssh/"; } # TEXT

# The server's own words are looked through, and never shown.
says() { # LINE-OF-SHELL
	sed -i "s|^exec git-shell.*|$1 #was exec|; s|.*#was exec\$|$1 #was exec|" "$ssh_dir/command"
}
