#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# In the virtual machine: run a command as another user, in a control group, with a bare environment.
#
#   as.sh USER [GROUP] -- COMMAND [ARGUMENT...]
user=$1
[ "$2" = -- ] || {
	echo $BASHPID >"$2/cgroup.procs" || exit 99
	shift
}
shift 2
exec setpriv --reuid="$user" --regid="$user" --init-groups --inh-caps=-all -- \
	env -i PATH="$PATH" HOME="/home/$user" LANG=C.UTF-8 "$@"
