# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the tests of repositories that another host serves share: servers, a directory $repos for what
# they serve, and blocks that know where mirrors are.  After lib.sh.
# shellcheck disable=SC2154
# SC2154: lib.sh knows where, and who calls
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/repositories.sh"
. "$here/servers.sh"

command -v git >/dev/null || skip_all TOOLS 'no git'
git_settings
unset CASEMATE_GIT_TOKEN CASEMATE_SSH_PASSPHRASE
repos=$top/repos
mkdir "$repos"

# The mirrors stay, and where they are; there is none at the beginning.  The block says start_files.
begin_mirrors() { # NAME
	begin "$1"
	allow '/cache/casemate '
	allow '/cache/casemate/mirrors( |/)'
	mirrors=$work/cache/casemate/mirrors
	[ "$identity" != root ] || ! is_root || mirrors=/var/cache/casemate/mirrors
	rm -rf "$mirrors"
}
